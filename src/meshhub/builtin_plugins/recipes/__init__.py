"""Recipes for common purposes, and those in the user's configuration folder."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path

import platformdirs

from meshhub.errors import InvalidOption
from meshhub.hookspecs import hookimpl
from meshhub.model.recipes import Recipe
from meshhub.toolkit.package_files import package_folder
from meshhub.toolkit.recipes import EXTENSION, read_recipe, read_recipes

log = logging.getLogger(__name__)


def own_folder() -> Path:
    """Return the folder of the user's recipes."""
    return platformdirs.user_config_path("meshhub", appauthor=False) / "recipes"


@hookimpl
def meshhub_recipes() -> Iterable[Recipe]:
    """Declare the built-in recipes and those in the user's folder; an invalid file of the user is logged."""
    recipes = {recipe.id: recipe for recipe in read_recipes(package_folder(__name__) / "purposes")}
    for file in sorted(own_folder().glob(f"*{EXTENSION}")):
        try:
            recipe = read_recipe(file)
        except InvalidOption as error:
            log.warning("left out a recipe: %s", error.message)
        else:
            recipes[recipe.id] = recipe
    return recipes.values()
