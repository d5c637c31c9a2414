"""Add the options of a recipe to those of a request."""

from __future__ import annotations

from collections.abc import Mapping

from meshhub.errors import InvalidOption, quote
from meshhub.model.options import HostOptions, OptionField, drop_conflicts, option_fields
from meshhub.pipeline.declarations import Declarations
from meshhub.pipeline.purpose import Purpose


def expand_recipe(
    declarations: Declarations, purpose: Purpose, options: Mapping[str, object], fields: Mapping[str, OptionField]
) -> tuple[Mapping[str, object], frozenset[str]]:
    """Return the options of a request with those of its recipe, and the names of the added ones.

    Options of the request take precedence, also over those that they exclude. Those of checks are left out of a
    conversion; inspections and scenes for the program get only the options of the host and of readers.

    Raises:
        InvalidOption: No recipe has the name.
    """
    explicit = {name for name, value in options.items() if value is not None and str(value).strip()}
    if "recipe" not in explicit:
        return options, frozenset()
    name = str(options["recipe"]).strip()
    if name not in declarations.recipes:
        known = ", ".join(declarations.recipes) or "none"
        raise InvalidOption(f"unknown recipe {quote(name)}; known are {known}", options=("recipe",))
    own = {name: value for name, value in declarations.recipes[name].options.items() if name in fields}
    if not purpose.expands_recipes:
        structs = [HostOptions, *(reader.capability.options for reader in declarations.readers)]
        read_names = {field.name for struct in structs for field in option_fields(struct)}
        own = {name: value for name, value in own.items() if name in read_names}
    added = {name: value for name, value in drop_conflicts(own, explicit, fields).items() if name not in explicit}
    return {**options, **added}, frozenset(added)
