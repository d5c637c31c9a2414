"""Base of the contracts: the registry with the plug-in under test, its declaration, and tests of its options."""

# why this way: docs/decisions/0010-contracts.md
from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import ClassVar, Generic, TypeVar

import pytest

from meshhub.errors import describe_missing
from meshhub.model.api_version import API_VERSION, DECLARATION
from meshhub.model.capabilities import Check, Operation, Reader, Writer
from meshhub.model.chain import BUILT_IN
from meshhub.model.options import OptionField, option_fields
from meshhub.pipeline.declarations import Declared
from meshhub.registry import Registry
from meshhub.testing import memory_format
from meshhub.testing.guards import fail_on_exit_or_timeout, require

C = TypeVar("C", Reader, Writer, Operation, Check)


@cache
def _build_registry(plugins: tuple[object, ...]) -> Registry:
    with fail_on_exit_or_timeout("a plug-in, declaring its capabilities,"):
        return Registry((*plugins, memory_format))


class Contract(Generic[C]):
    """Tests of the declaration of a capability. Inherit one of its four subclasses instead.

    Attributes:
        plugins: Modules or objects with hooks to test without installing them; installed plug-ins are found by
            entry point.
        options: Values for options of the capability.
    """

    plugins: ClassVar[Sequence[object]] = ()
    options: ClassVar[Mapping[str, object]] = {}

    @property
    def registry(self) -> Registry:
        """Registry of the built-ins, the installed plug-ins and `plugins`."""
        return _build_registry(tuple(self.plugins))

    @property
    def candidates(self) -> Iterable[Declared[C]]:
        """Declarations with the id under test, highest score first."""
        raise NotImplementedError

    @property
    def what(self) -> str:
        """Name of the capability in failure messages."""
        raise NotImplementedError

    @property
    def owner(self) -> str:
        """Id with which the names of the options start."""
        raise NotImplementedError

    @property
    def declared(self) -> Declared[C]:
        """Declaration under test. Fails without a declaration; skips if a dependency is missing on this machine."""
        declaration = next(iter(self.candidates), None)
        if declaration is None:
            faults = "; ".join(f"{fault.plugin}: {fault.message}" for fault in self.registry.faults) or "none"
            raise AssertionError(f"{self.what} is not registered; faults of plug-ins: {faults}")
        if declaration.missing:
            pytest.skip(describe_missing(self.what, declaration.missing, declaration.remedy))
        return declaration

    def require_available(self) -> None:
        """Fail if the capability is not registered; skip the test if a dependency is missing on this machine."""
        self.declared  # noqa: B018 - fails or skips

    @property
    def capability(self) -> C:
        """Capability under test."""
        return self.declared.capability

    @property
    def option_fields(self) -> tuple[OptionField, ...]:
        """Fields of the capability's options. Fail if the interfaces cannot present them."""
        try:
            return option_fields(self.capability.options)
        except TypeError as error:
            raise AssertionError(str(error)) from error

    def test_the_plugin_has_no_faults(self) -> None:
        """Test that the registry accepts all declarations of the plug-in."""
        plugin = self.declared.plugin
        faults = [fault.message for fault in self.registry.faults if fault.plugin == plugin]
        require(not faults, f"the plug-in {plugin!r} has faults: {'; '.join(faults)}")

    def test_it_declares_the_api_version(self) -> None:
        """Test that the plug-in names the version of the plug-in API for which it was written."""
        declared = self.declared
        (plugin,) = (plugin for plugin in self.registry.plugins if plugin.name == declared.plugin)
        if declared.origin == BUILT_IN:
            pytest.skip("the built-in plug-ins belong to this version")
        if not plugin.api_version:
            pytest.skip(f'the plug-in declares no version; add {DECLARATION} = "{API_VERSION}"')

    def test_it_uses_nothing_deprecated(self) -> None:
        """Test that the plug-in loads, and its declaring hooks run, without a deprecation warning."""
        plugin = self.declared.plugin
        with warnings.catch_warnings():
            warnings.simplefilter("error", DeprecationWarning)
            registry = Registry((*self.plugins, memory_format))
        faults = [fault.message for fault in registry.faults if fault.plugin == plugin]
        require(not faults, f"the plug-in {plugin!r} uses deprecated features: {'; '.join(faults)}")

    def test_options_are_declared_well(self) -> None:
        """Test that each option has a title, a description, and a default and an example that it accepts."""
        for field in self.option_fields:
            option = f"option {field.name!r}"
            require(field.title.strip(), f"{option} has no title")
            require(field.description.strip(), f"{option} has no description")
            require(field.kind != "choice" or field.choices, f"{option} has no choices")

    def test_options_are_named_after_their_owner(self) -> None:
        """Test that the name of each option starts with the owner's id or the plug-in's name."""
        prefixes = {owner.replace("-", "_") for owner in (self.owner, self.declared.plugin)}
        for field in self.option_fields:
            require(
                any(field.name == prefix or field.name.startswith(prefix + "_") for prefix in prefixes),
                f"option {field.name!r} does not start with {' or '.join(sorted(prefixes))}",
            )
