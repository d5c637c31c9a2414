"""Add the options of a recipe to those of a request."""

from __future__ import annotations

from collections.abc import Mapping

from meshhub.errors import InvalidOption, quote
from meshhub.model.chain import Request
from meshhub.model.options import HostOptions, OptionField, drop_conflicts, option_fields
from meshhub.pipeline.declarations import Declarations


def expand_recipe(
    declarations: Declarations, request: Request, fields: Mapping[str, OptionField]
) -> tuple[Mapping[str, object], frozenset[str]]:
    """Return the options of a request with those of its recipe, and the names of the added ones.

    Options of the request take precedence, also over those that they exclude. Those of checks are left out of a
    conversion; inspections and scenes for the program get only the options of the host and of readers.

    Raises:
        InvalidOption: No recipe has the name.
    """
    explicit = {name for name, value in request.options.items() if value is not None and str(value).strip()}
    if "recipe" not in explicit:
        return request.options, frozenset()
    name = str(request.options["recipe"]).strip()
    if name not in declarations.recipes:
        known = ", ".join(declarations.recipes) or "none"
        raise InvalidOption(f"unknown recipe {quote(name)}; known are {known}", options=("recipe",))
    options = {name: value for name, value in declarations.recipes[name].options.items() if name in fields}
    if request.purpose in ("read", "inspect"):
        structs = [HostOptions, *(reader.capability.options for reader in declarations.readers)]
        read_names = {field.name for struct in structs for field in option_fields(struct)}
        options = {name: value for name, value in options.items() if name in read_names}
    added = {name: value for name, value in drop_conflicts(options, explicit, fields).items() if name not in explicit}
    return {**request.options, **added}, frozenset(added)
