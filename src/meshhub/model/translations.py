"""Translations: texts of declarations in other languages than English."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct

ENGLISH = "en"
"""Language of the declarations themselves."""


class Translation(Struct, frozen=True, kw_only=True):
    """Catalog in one language: a TOML file with the texts that a `Catalog` has."""

    language: Annotated[
        str,
        Meta(
            title='a language tag, such as "de" or "pt-BR"',
            pattern=r"^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*\Z",
            max_length=35,
        ),
    ]
    """Language tag (RFC 5646); letter case does not matter."""

    file: Annotated[
        str,
        Meta(
            title='text "package:file.toml"',
            pattern=r"^[^\W\d]\w*(\.[^\W\d]\w*)*:(\w[\w.-]*/)*\w[\w.-]*\.toml\Z",
            max_length=200,
        ),
    ]
    """File in a package as "package:file.toml", or "package:folder/file.toml"; read when the language is requested."""


Text = Annotated[str, Meta(min_length=1)]
"""Text for people."""


class OptionTexts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Texts of an option; those that are absent stay English."""

    title: Text = ""
    """Short label."""

    description: Text = ""
    """Sentences for people."""

    choices: Mapping[str, Text] = {}
    """Titles of values, by value."""


class RecipeTexts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Texts of a recipe; those that are absent stay English."""

    label: Text = ""
    """Name for people."""

    description: Text = ""
    """What the options are for."""


class Catalog(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Texts by name of the option, or by id of the format, operation, recipe or plan.

    Those that are absent stay English. A catalog may translate the declarations of other plug-ins.
    """

    options: Mapping[str, OptionTexts] = {}
    """Texts of options."""

    formats: Mapping[str, Text] = {}
    """Labels of formats."""

    operations: Mapping[str, Text] = {}
    """Labels of operations."""

    recipes: Mapping[str, RecipeTexts] = {}
    """Texts of recipes."""

    plans: Mapping[str, Text] = {}
    """Labels of plans."""


class Texts(Catalog, frozen=True, kw_only=True):
    """Texts of all plug-ins in one language."""

    language: str = ENGLISH
    """Language tag."""
