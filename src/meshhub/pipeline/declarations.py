"""Registered capabilities with the plug-ins that declare them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from typing import Any, Generic, TypeVar

from msgspec import Struct

from meshhub.model import options as opt
from meshhub.model.capabilities import (
    Capability,
    Format,
    Operation,
    Reader,
    Writer,
)
from meshhub.model.options import OptionField

C = TypeVar("C", bound=Capability)


class Declared(Struct, Generic[C], frozen=True):
    """A capability, the plug-in that declared it, and what it lacks on this machine."""

    plugin: str
    capability: C
    missing: tuple[str, ...] = ()
    origin: str = ""

    @property
    def remedy(self) -> str:
        """What to do about what is missing."""
        install = self.capability.install
        return f'pip install "{install}"' if install else f"install {', '.join(self.missing)}"


def declared(plugin: str, origin: str, capability: C) -> Declared[C]:
    """The capability with its missing dependencies, which are looked up, not imported."""
    return Declared(plugin, capability, tuple(name for name in capability.needs if not _present(name)), origin)


def _present(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False


class Declarations(Struct, frozen=True, kw_only=True):
    """Everything that is registered, sorted: readers and writers best first, operations by stage and id."""

    formats: Mapping[str, Format]
    readers: tuple[Declared[Reader], ...] = ()
    writers: tuple[Declared[Writer], ...] = ()
    operations: tuple[Declared[Operation], ...] = ()

    def option_structs(self) -> Iterator[tuple[str, type[Struct]]]:
        """Every options Struct with the id of what takes it; one Struct may serve several."""
        yield "host", opt.HostOptions
        for reader in self.readers:
            yield reader.capability.format.id, reader.capability.options
        for operation in self.operations:
            yield operation.capability.id, operation.capability.options
        for writer in self.writers:
            yield writer.capability.format.id, writer.capability.options

    def fields(self) -> dict[str, OptionField]:
        """Every option field by its name."""
        return {field.name: field for _, struct in self.option_structs() for field in opt.option_fields(struct)}

    def format_of(self, name: str) -> Format | None:
        """The format with this id or extension; case and a leading dot are forgiven."""
        wanted = name.strip().lower().removeprefix(".")
        if wanted in self.formats:
            return self.formats[wanted]
        return next((one for one in self.formats.values() if "." + wanted in one.extensions), None)


def load(named: str) -> Callable[..., Any]:
    """The function that "package.module:function" names. Raises ImportError, AttributeError, ValueError."""
    module, colon, attribute = named.partition(":")
    if not colon or not module or not attribute:
        raise ValueError(f"{named!r} must be written package.module:function")
    found: Callable[..., Any] = getattr(importlib.import_module(module), attribute)
    return found
