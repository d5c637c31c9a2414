"""Loaded plug-ins and what they declare, by id. Nothing here runs a conversion or a hook of a request."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from meshhub.model.capabilities import Format, Operation, Writer
from meshhub.model.options import OptionField
from meshhub.model.plans import Caller, Objection, Plan
from meshhub.model.recipes import Recipe
from meshhub.model.translations import Texts
from meshhub.pipeline.collecting import collect
from meshhub.pipeline.declarations import Declarations
from meshhub.pipeline.loading import Fault, Plugin, Plugins


class PluginIndex:
    """The listings of a `Registry`."""

    def __init__(self, plugins: Plugins) -> None:
        """Collect the declarations of loaded plug-ins."""
        self._loaded = plugins
        self._collected = collect(plugins)

    @property
    def declarations(self) -> Declarations:
        """Every registered format, reader, writer and operation."""
        return self._collected.declarations

    @property
    def formats(self) -> Mapping[str, Format]:
        """Formats by id; `declarations` lists which can be read and written."""
        return self.declarations.formats

    @property
    def operations(self) -> Mapping[str, Operation]:
        """Operations by id, in the order in which chains run them."""
        return {declared.capability.id: declared.capability for declared in self.declarations.operations}

    @property
    def options(self) -> Mapping[str, OptionField]:
        """Options of the host, and of all readers, operations and writers, by name."""
        return self.declarations.fields()

    @property
    def recipes(self) -> Mapping[str, Recipe]:
        """Recipes by id."""
        return MappingProxyType(dict(self.declarations.recipes))

    @property
    def plans(self) -> Mapping[str, Plan]:
        """Customer plans by id."""
        return MappingProxyType(self._collected.plans)

    @property
    def plugins(self) -> tuple[Plugin, ...]:
        """The loaded plug-ins."""
        return tuple(self._loaded.loaded)

    @property
    def disabled_plugins(self) -> tuple[Plugin, ...]:
        """The plug-ins that are installed, but disabled."""
        return tuple(self._loaded.disabled)

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Defects of plug-ins that were found on loading."""
        return tuple(self._loaded.faults)

    def texts(self, language: str) -> Texts:
        """Return the texts of declarations in another language, as far as plug-ins translate them.

        Args:
            language: Tag such as "de" or "de-AT", or several as in the header Accept-Language; an unknown one means
                English.
        """
        return self._collected.catalogs.texts(language)

    def objections_to(self, caller: Caller, capability: Writer | Operation) -> list[Objection]:
        """Return the objections that rules of plug-ins declare to a writer or an operation for a caller."""
        rules = [rule for rule in self._collected.rules if rule.concerns(caller.plan)]
        if isinstance(capability, Operation):
            return [rule.objection for rule in rules if capability.id in rule.operations]
        return [rule.objection for rule in rules if capability.format.id in rule.formats]
