"""Hooks that add recipes."""

from __future__ import annotations

from collections.abc import Iterable

from meshhub.hookspecs.marker import hookspec
from meshhub.model.recipes import Recipe


@hookspec
def meshhub_recipes() -> Iterable[Recipe]:  # type: ignore[empty-body]
    """Declare recipes: named lists of options. Called once, when a registry is built.

    A recipe with an option that no plug-in declares, or with an invalid value, is a fault and is left out.
    `meshhub.toolkit.recipes.read_recipes` reads them from TOML files.
    """
