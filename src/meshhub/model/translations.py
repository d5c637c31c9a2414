"""Translations: texts of declarations in other languages than English."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct

ENGLISH = "en"
"""Language of the declarations themselves."""


Text = Annotated[str, Meta(min_length=1)]
"""Text for people."""


class OptionTexts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Texts of an option; absent ones stay English."""

    title: Text = ""
    """Short label."""

    description: Text = ""
    """Sentences for people."""

    choices: Mapping[str, Text] = {}
    """Titles of values, by value."""


class RecipeTexts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Texts of a recipe; absent ones stay English."""

    label: Text = ""
    """Name for people."""

    description: Text = ""
    """What the options are for."""


class CheckTexts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Texts of a check; absent ones stay English."""

    label: Text = ""
    """Name for people."""

    description: Text = ""
    """What it looks for."""


class Catalog(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Texts in one language: the file `translations/<language>.toml` in the package of a plug-in, such as `de.toml`.

    Texts are found by the name of the option, or by the id of the format, operation, check, recipe or plan; absent ones
    stay English. A catalog may translate the declarations of other plug-ins. If two catalogs translate the same text,
    the plug-in that is loaded first takes precedence. A file is read when its language is first requested; an invalid
    one is a fault of the plug-in.
    """

    options: Mapping[str, OptionTexts] = {}
    """Texts of options."""

    formats: Mapping[str, Text] = {}
    """Labels of formats."""

    actions: Mapping[str, Text] = {}
    """Titles of formats beside the operations, as in `Writer.action`, by format."""

    operations: Mapping[str, Text] = {}
    """Labels of operations."""

    checks: Mapping[str, CheckTexts] = {}
    """Texts of checks."""

    recipes: Mapping[str, RecipeTexts] = {}
    """Texts of recipes."""

    plans: Mapping[str, Text] = {}
    """Labels of plans."""

    errors: Mapping[str, Text] = {}
    """Meanings of error codes, which precede the English messages."""

    marks: Mapping[str, Text] = {}
    """Marks in numbers: of `thousands` and of `decimals`."""

    figures: Mapping[str, Text] = {}
    """Sentences about figures of reports, by figure, as in `Operation.figures`."""

    notes: Mapping[str, Text] = {}
    """Messages of notes by code, with the names of their values in braces."""

    findings: Mapping[str, Text] = {}
    """Messages of findings of checks by code, with `{amount}` and `{limit}`, which have a unit."""

    sentences: Mapping[str, Text] = {}
    """Parts of messages, which have "; " between them, by the English part. Both have names in braces in place of
    values, and names of options in quotes: `"{count} edges are open" = "{count} Kanten sind offen"`."""

    def localize(self, number: str) -> str:
        """Replace the English marks of thousands and decimals in the text of a number."""
        return number.translate({ord(","): self.marks.get("thousands", ","), ord("."): self.marks.get("decimals", ".")})


class Texts(Catalog, frozen=True, kw_only=True):
    """Texts of all plug-ins in one language."""

    language: str = ENGLISH
    """Language tag."""
