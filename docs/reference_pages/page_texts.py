"""Texts of plug-ins for the page, by language: messages of notes and findings, which the service writes in English."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

from meshhub.pipeline.catalogs import find_catalogs
from reference_pages import REGISTRY


def pages() -> dict[str, Callable[[], str]]:
    """Return the file of each language by its name."""
    return {f"{language}.json": partial(_page, language) for language in sorted(find_catalogs("meshhub"))}


def _page(language: str) -> str:
    texts = REGISTRY.texts(language)
    tables = {"notes": dict(texts.notes), "findings": dict(texts.findings)}
    return json.dumps(tables, ensure_ascii=False, indent=2, sort_keys=True) + "\n"
