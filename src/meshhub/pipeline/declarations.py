"""Registered capabilities with the plug-ins that declare them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from typing import Any, Generic, TypeVar

from msgspec import Struct

from meshhub.errors import InvalidOption
from meshhub.model import options as opt
from meshhub.model.capabilities import Capability, Check, Format, Operation, Reader, Storage, Writer
from meshhub.model.installing import describe_install
from meshhub.model.options import OptionField, Value
from meshhub.model.recipes import Recipe
from meshhub.pipeline.fork_lock import IMPORTING

C = TypeVar("C", bound=Capability)


class Declared(Struct, Generic[C], frozen=True):
    """A capability, the plug-in that declares it, and the dependencies that are missing on this machine.

    origin: distribution and version of the plug-in, or "built-in"
    """

    plugin: str
    capability: C
    missing: tuple[str, ...] = ()
    origin: str = ""

    @property
    def remedy(self) -> str:
        """The command that installs the missing dependencies."""
        install = self.capability.install
        return describe_install(install) if install else f"install {', '.join(self.missing)}"


def declare(plugin: str, origin: str, capability: C) -> Declared[C]:
    """Return the capability with its missing dependencies, found without importing them."""
    return Declared(plugin, capability, tuple(name for name in capability.needs if not is_importable(name)), origin)


def is_importable(module: str) -> bool:
    """Return whether a module can be found, without importing it."""
    try:
        return find_module(module)
    # Python imports the package to find a module in it
    except (Exception, SystemExit):
        return False


def find_module(module: str) -> bool:
    """Return whether a module exists. Raises the exceptions that its package raises while it is imported."""
    # the main program is loaded, but has no specification by which it could be found
    if sys.modules.get(module) is not None:
        return True
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module}.".startswith(f"{error.name}."):
            return False
        # the package exists, but lacks a module that it needs
        raise
    except ValueError:
        return False


class Declarations(Struct, frozen=True, kw_only=True):
    """Every registered capability: readers and writers by score, operations by stage and id, checks by id, storages by
    scheme, recipes by id.
    """

    formats: Mapping[str, Format]
    readers: tuple[Declared[Reader], ...] = ()
    writers: tuple[Declared[Writer], ...] = ()
    operations: tuple[Declared[Operation], ...] = ()
    checks: tuple[Declared[Check], ...] = ()
    storages: Mapping[str, Declared[Storage]] = {}
    recipes: Mapping[str, Recipe] = {}

    def option_structs(self) -> Iterator[tuple[str, type[Struct]]]:
        """Yield every options Struct of conversions with the id of its owner; owners may share one."""
        yield "host", opt.HostOptions
        for reader in self.readers:
            yield reader.capability.format.id, reader.capability.options
        for operation in self.operations:
            yield operation.capability.id, operation.capability.options
        for writer in self.writers:
            yield writer.capability.format.id, writer.capability.options

    def fields(self) -> dict[str, OptionField]:
        """Return every option field of conversions by name."""
        return {field.name: field for _, struct in self.option_structs() for field in opt.option_fields(struct)}

    def check_fields(self) -> dict[str, OptionField]:
        """Return the option fields of checks by name."""
        return {field.name: field for check in self.checks for field in opt.option_fields(check.capability.options)}

    def find_wrong_option(
        self, options: Mapping[str, object], fields: Mapping[str, OptionField]
    ) -> tuple[str, InvalidOption] | None:
        """Return the first wrong option of a file by name, and its error; None if there is none.

        Args:
            options: Options of the file.
            fields: Options that the file may have, by name.
        """
        values: dict[str, Value] = {}
        for name, value in options.items():
            try:
                values |= opt.parse_options(fields, {name: value})
            except InvalidOption as error:
                return name, error
        # checks share their options
        for struct in dict.fromkeys(check.capability.options for check in self.checks):
            problem = opt.find_problem(struct, values)
            # options of the request may complete others
            if problem is not None and len(problem.options) == 1 and problem.options[0] in values:
                return problem.options[0], problem
        return None

    def figures(self) -> dict[str, str]:
        """Return the sentences about figures of operations and writers, by figure; the first declaration stays."""
        capabilities: list[Operation | Writer] = [item.capability for item in self.operations]
        capabilities += [item.capability for item in self.writers]
        return {name: text for capability in reversed(capabilities) for name, text in capability.figures.items()}

    def format_of(self, name: str) -> Format | None:
        """Return the format with this id or extension; case and a leading dot do not matter."""
        name = name.strip().lower().removeprefix(".")
        if name in self.formats:
            return self.formats[name]
        return next((format_ for format_ in self.formats.values() if "." + name in format_.extensions), None)

    def readers_of(self, format_: Format | None) -> list[Declared[Reader]]:
        """Return the readers of a format, best first."""
        return [reader for reader in self.readers if format_ and reader.capability.format.id == format_.id]

    def writers_of(self, format_: Format | None) -> list[Declared[Writer]]:
        """Return the writers of a format, best first."""
        return [writer for writer in self.writers if format_ and writer.capability.format.id == format_.id]

    def list_readable(self) -> str:
        """List the ids of the formats that can be read, for messages."""
        return ", ".join(sorted({reader.capability.format.id for reader in self.readers}))

    def list_writable(self) -> str:
        """List the ids of the formats that can be written, for messages."""
        return ", ".join(sorted({writer.capability.format.id for writer in self.writers}))


def reference_of(options: type[Struct]) -> str:
    """Return the "package.module:class" of an options Struct."""
    return f"{options.__module__}:{options.__qualname__}"


def load(reference: str) -> Callable[..., Any]:
    """Import the function that "package.module:function" names.

    Raises:
        ValueError: The reference has another form.
        ImportError: The module cannot be imported.
        AttributeError: The module has no such function.
    """
    module, colon, attribute = reference.partition(":")
    if not colon or not module or not attribute:
        raise ValueError(f"{reference!r} must have the form package.module:function")
    if module not in sys.modules:
        with IMPORTING.held():
            importlib.import_module(module)
    function: Callable[..., Any] = getattr(importlib.import_module(module), attribute)
    return function
