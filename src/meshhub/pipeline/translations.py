"""Read the catalogs of plug-ins, and choose a language."""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from meshhub.model.translations import ENGLISH, Catalog, Texts
from meshhub.pipeline.declarations import Declarations
from meshhub.pipeline.loading import Plugin, Plugins
from meshhub.pipeline.plugin_errors import InvalidDeclaration, describe_error, show_value

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable
    from pathlib import Path

MAX_BYTES = 262_144
"""Maximum bytes of a catalog; the largest built-in one has 19,000."""

_RANGE = re.compile(r"([a-z0-9-]+)(?:;q=([01](?:\.\d{0,3})?))?", re.ASCII)
"""Language and its weight, in lower case without spaces (RFC 9110 §12.5.4)."""


class CatalogFile(Struct, frozen=True):
    """A declared translation, whose file exists."""

    plugin: Plugin
    language: str
    file: Path | Traversable


class Translations:
    """Catalogs of all plug-ins in the order of registration: the first text of an option, format, … stays."""

    def __init__(
        self, plugins: Plugins, files: Sequence[CatalogFile], declarations: Declarations, plans: Collection[str]
    ) -> None:
        """Keep the catalogs, without reading them.

        Args:
            plugins: Takes the faults.
            files: Catalogs of all languages.
            declarations: What catalogs may translate.
            plans: Ids of the plans, which catalogs may also translate.
        """
        self._plugins = plugins
        self._files = files
        self._fields = declarations.fields() | declarations.check_fields()
        self._known: dict[str, Collection[str]] = {
            "options": self._fields,
            "formats": declarations.formats,
            "operations": {operation.capability.id for operation in declarations.operations},
            "checks": {check.capability.id for check in declarations.checks},
            "recipes": declarations.recipes,
            "plans": plans,
            "figures": declarations.figures(),
        }
        self._languages = {ENGLISH: ENGLISH, **{item.language.lower(): item.language for item in reversed(files)}}
        self._texts: dict[str, Texts] = {}
        self._lock = threading.Lock()

    def texts(self, requested: str) -> Texts:
        """Return the texts in the requested language; without a catalog, in English.

        Read its catalogs at the first call. An invalid catalog is a fault of its plug-in.

        Args:
            requested: Language tag, or several as in the header Accept-Language.
        """
        language = self._choose(requested)
        with self._lock:
            if language not in self._texts:
                self._texts[language] = self._read_all(language)
            return self._texts[language]

    def _choose(self, requested: str) -> str:
        """Return the known language in lower case that is preferred, also by a longer tag (RFC 4647 §3.4)."""
        for tag in _list_preferred(requested):
            parts = tag.split("-")
            for count in range(len(parts), 0, -1):
                if (prefix := "-".join(parts[:count])) in self._languages:
                    return prefix
        return ENGLISH

    def _read_all(self, language: str) -> Texts:
        tables: dict[str, dict[str, object]] = {name: {} for name in Catalog.__struct_fields__}
        for item in self._files:
            if item.language.lower() != language:
                continue
            subject = f"translation to {item.language!r}"
            try:
                catalog = _read(item.file)
            except InvalidDeclaration as error:
                self._plugins.add_fault(item.plugin, f"{subject}: {describe_error(error)}", error)
                continue
            for unknown in self._list_unknown(catalog):
                self._plugins.add_fault(item.plugin, f"{subject}: no plug-in declares {unknown}")
            for name, table in tables.items():
                tables[name] = {**getattr(catalog, name), **table}
        return Texts(language=self._languages[language], **tables)  # type: ignore[arg-type]

    def _list_unknown(self, catalog: Catalog) -> Iterator[str]:
        """Yield the names that a catalog translates although they do not exist."""
        for table, known in self._known.items():
            for key in getattr(catalog, table):
                if key not in known:
                    yield f"the {table.removesuffix('s')} {show_value(key)}"
        for name, texts in catalog.options.items():
            for choice in texts.choices:
                if name in self._fields and choice not in self._fields[name].choices:
                    yield f"the choice {show_value(choice)} of the option {show_value(name)}"


def _list_preferred(requested: str) -> list[str]:
    """Return the language tags of a request in lower case, the preferred one first."""
    matches = [_RANGE.fullmatch(item) for item in re.sub(r"\s", "", requested.lower()).split(",")]
    weights = [(float(match[2] or 1), match[1]) for match in matches if match]
    return [tag for weight, tag in sorted(weights, key=lambda item: -item[0]) if weight > 0]


def _read(file: Path | Traversable) -> Catalog:
    """Read a catalog. Raises InvalidDeclaration."""
    import tomllib

    try:
        with file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise InvalidDeclaration(f"{file.name} is longer than {MAX_BYTES} bytes")
        return msgspec.convert(tomllib.loads(data.decode("utf-8")), Catalog)
    except OSError as error:
        raise InvalidDeclaration(f"{file.name} cannot be read: {error.strerror}") from None
    # tomllib raises a plain ValueError for very long numbers, and RecursionError for deep nesting
    except (ValueError, RecursionError) as error:
        raise InvalidDeclaration(f"{file.name}: {str(error)[:200]}") from None
