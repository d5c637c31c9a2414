"""What all contracts share: the registry with the plug-in under test, its declaration, and its options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import ClassVar, Generic, TypeVar

import pytest

from meshhub.errors import describe_missing
from meshhub.model.capabilities import Capability
from meshhub.model.options import OptionField, option_fields
from meshhub.pipeline.declarations import Declared
from meshhub.registry import Registry
from meshhub.testing import fixture
from meshhub.testing.watching import bounded, require

C = TypeVar("C", bound=Capability)


@cache
def _registry(plugins: tuple[object, ...]) -> Registry:
    with bounded("a plug-in, declaring what it does,"):
        return Registry((*plugins, fixture))


class Contract(Generic[C]):
    """What a capability declares, and that it is declared well. Inherit one of the three kinds, not this.

    plugins: modules or objects with hooks, to test what is not installed; what is installed is found by itself
    options: values for the capability's own options
    """

    plugins: ClassVar[Sequence[object]] = ()
    options: ClassVar[Mapping[str, object]] = {}

    @property
    def registry(self) -> Registry:
        """The registry that everything goes through: built-ins, installed plug-ins and `plugins`."""
        return _registry(tuple(self.plugins))

    @property
    def candidates(self) -> Iterable[Declared[C]]:
        """The declarations that may be meant, best first."""
        raise NotImplementedError

    @property
    def what(self) -> str:
        """What is tested, in words."""
        raise NotImplementedError

    @property
    def owner(self) -> str:
        """The id that its options start with."""
        raise NotImplementedError

    @property
    def declared(self) -> Declared[C]:
        """The declaration. Fails when there is none, skips when this machine lacks what it needs."""
        found = next(iter(self.candidates), None)
        faults = "; ".join(f"{fault.plugin}: {fault.message}" for fault in self.registry.faults) or "none"
        if found is None:
            raise AssertionError(f"{self.what} is not registered; faults of plug-ins: {faults}")
        if found.missing:
            pytest.skip(describe_missing(self.what, found.missing, found.remedy))
        return found

    @property
    def capability(self) -> C:
        """The declared capability."""
        return self.declared.capability

    @property
    def option_fields(self) -> tuple[OptionField, ...]:
        """The fields of its options."""
        raise NotImplementedError

    def test_the_plugin_has_no_faults(self) -> None:
        """Everything that the plug-in declares was taken into the registry."""
        plugin = self.declared.plugin
        faults = [fault.message for fault in self.registry.faults if fault.plugin == plugin]
        require(not faults, f"the plug-in {plugin!r} has faults: {'; '.join(faults)}")

    def test_options_are_declared_well(self) -> None:
        """Every option has a title, a description, and a default and an example that it would itself accept."""
        for field in self.option_fields:
            where = f"option {field.name!r}"
            require(field.name == field.name.lower() and field.name.isidentifier(), f"{where} is no plain name")
            require(field.title.strip(), f"{where} has no title")
            require(field.description.strip(), f"{where} has no description")
            require(field.kind != "choice" or field.choices, f"{where} has nothing to choose from")
            try:
                accepted = field.parse(field.default)
            except Exception as error:
                raise AssertionError(f"{where} refuses its own default {field.default!r}: {error}") from error
            require(accepted == field.default, f"{where} takes its default {field.default!r} for {accepted!r}")
            try:
                field.parse(field.example)
            except Exception as error:
                raise AssertionError(f"{where} refuses its own example {field.example!r}: {error}") from error

    def test_options_are_named_after_their_owner(self) -> None:
        """Every option starts with the id of what takes it, or with the plug-in's name."""
        prefixes = {one.replace("-", "_") for one in (self.owner, self.declared.plugin)}
        for field in self.option_fields:
            require(
                any(field.name == prefix or field.name.startswith(prefix + "_") for prefix in prefixes),
                f"option {field.name!r} does not start with {' or '.join(sorted(prefixes))}",
            )


def fields_of(options: type) -> tuple[OptionField, ...]:
    """The fields of an options Struct; fails for a Struct that no face can show."""
    try:
        return option_fields(options)
    except TypeError as error:
        raise AssertionError(str(error)) from error
