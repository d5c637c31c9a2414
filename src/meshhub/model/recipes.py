"""Recipes: named lists of options."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from meshhub.model.capabilities import Id


class Recipe(Struct, frozen=True, kw_only=True):
    """Named list of options; a request that names it gets those options that it does not set itself."""

    id: Id
    """Stable id in kebab-case, such as "print"."""

    label: str
    """Name for people."""

    description: str = ""
    """What the options are for."""

    options: Mapping[str, str | bool | int | float]
    """Values by option name."""
