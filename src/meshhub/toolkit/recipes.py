"""Recipes in TOML files: `label`, `description` and a table `options`. The id is the name of the file."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from meshhub.errors import InvalidOption, quote
from meshhub.model.recipes import Recipe

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

EXTENSION = ".toml"
"""Extension of recipe files."""

MAX_BYTES = 65_536
"""Maximum bytes of a recipe file; the largest has a few hundred."""

_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


def read_recipes(folder: Path | Traversable) -> list[Recipe]:
    """Read all recipe files of a folder, such as `importlib.resources.files("my_package") / "recipes"`.

    Raises:
        InvalidOption: A file is not a recipe.
        OSError: The folder cannot be read.
    """
    files = sorted((file for file in folder.iterdir() if file.name.endswith(EXTENSION)), key=lambda file: file.name)
    return [read_recipe(file) for file in files]


def read_recipe(file: Path | Traversable) -> Recipe:
    """Read a recipe file.

    Raises:
        InvalidOption: The file cannot be read, is not TOML, or has other content than a recipe.
    """
    recipe_id = file.name.removesuffix(EXTENSION)
    try:
        with file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise InvalidOption(f"recipe file {quote(file.name)} is longer than {MAX_BYTES} bytes")
        content = tomllib.loads(data.decode("utf-8"))
        unknown = sorted(set(content) - {"label", "description", "options"})
        if unknown:
            raise InvalidOption(f"recipe file {quote(file.name)} has the unknown key {quote(unknown[0])}")
        if not _ID.fullmatch(recipe_id):
            raise InvalidOption(f"recipe file {quote(file.name)} needs a name in kebab-case, such as large-print.toml")
        recipe = msgspec.convert({"label": recipe_id, **content, "id": recipe_id}, Recipe)
        if "recipe" in recipe.options:
            raise InvalidOption(f"recipe file {quote(file.name)} names another recipe; list its options instead")
        return recipe
    except OSError as error:
        raise InvalidOption(f"recipe file {quote(file.name)} cannot be read: {error.strerror}") from None
    # tomllib raises a plain ValueError for very long numbers, and RecursionError for deep nesting
    except (ValueError, RecursionError) as error:
        raise InvalidOption(f"recipe file {quote(file.name)}: {str(error)[:100]}") from None
