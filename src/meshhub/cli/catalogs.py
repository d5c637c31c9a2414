"""Catalogs of the command line."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from msgspec import Struct

from meshhub.cli.locale import language
from meshhub.model.translations import Catalog, Text
from meshhub.pipeline.catalogs import read_texts


class CommandTexts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Texts of a command."""

    help: Text
    """Help, whose first sentence is the summary."""

    flags: Mapping[str, Text] = {}
    """Help of its own flags, by the name of the parameter."""


class CommandLineTexts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Texts of the command line in one language: the file `translations/<language>.toml`."""

    epilog: str = ""
    """What the exit statuses mean."""

    words: Mapping[str, Text] = {}
    """Words and sentences, by the English ones."""

    usage_errors: Mapping[str, Text] = {}
    """Messages about wrong uses of a command, by the English ones, most of which click writes; see
    `Catalog.sentences`."""

    flags: Mapping[str, Text] = {}
    """Help of flags that several commands have, by the name of the parameter."""

    commands: Mapping[str, CommandTexts] = {}
    """Texts of commands, by their names after "meshhub"."""


def texts() -> CommandLineTexts:
    """Return the texts in the language of the locale."""
    return _read(language())


def host_texts() -> Catalog:
    """Return the texts of the host in the language of the locale: meanings of errors, marks of numbers, messages."""
    return _read_host(language())


@cache
def _read_host(name: str) -> Catalog:
    return read_texts("meshhub", name, Catalog)


@cache
def _read(name: str) -> CommandLineTexts:
    return read_texts("meshhub.cli", name, CommandLineTexts)
