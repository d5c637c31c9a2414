"""Language of the command line: that of the locale if there is a catalog for it, and English otherwise."""

from __future__ import annotations

import os
from functools import cache

ENGLISH = "en"
"""Language of the texts in the code."""


def language() -> str:
    """Return the language of the locale (POSIX, and LANGUAGE as in GNU gettext)."""
    locale = next(filter(None, map(os.environ.get, ("LC_ALL", "LC_MESSAGES", "LANG"))), "")
    if locale.partition(".")[0] in ("", "C", "POSIX"):
        return ENGLISH
    for wanted in (*os.environ.get("LANGUAGE", "").split(":"), locale):
        name = wanted[:2].lower()
        if not wanted[2:3].isalpha() and (name == ENGLISH or name in _list_languages()):
            return name
    return ENGLISH


@cache
def _list_languages() -> frozenset[str]:
    # imported here, because the list of commands in English needs no catalog
    from meshhub.pipeline.catalogs import find_catalogs

    return frozenset(find_catalogs("meshhub.cli"))
