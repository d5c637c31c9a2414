"""Find and read catalogs, the files `translations/<language>.toml` of packages, and choose a language."""

# why this way: docs/decisions/0054-texts.md
from __future__ import annotations

import re
import threading
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import Struct

from meshhub.model.translations import ENGLISH, Catalog, Texts
from meshhub.pipeline.plugin_errors import InvalidDeclaration, describe_error, show_value
from meshhub.toolkit.package_files import package_folder

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable
    from pathlib import Path

    from meshhub.pipeline.declarations import Declarations
    from meshhub.pipeline.loading import Plugin, Plugins

T = TypeVar("T", bound=Struct)

FOLDER = "translations"
"""Folder of the catalogs of a package."""

MAX_BYTES = 262_144
"""Maximum bytes of a catalog; many times those of the largest built-in one."""

MAX_REQUESTED_CHARS = 1000
"""Maximum characters of a requested language that are read; more than a header of a browser has."""

_SUFFIX = ".toml"

_LANGUAGE = re.compile(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*")
"""Language tag (RFC 5646)."""

_RANGE = re.compile(r"([a-z0-9-]+)(?:;q=([01](?:\.\d{0,3})?))?", re.ASCII)
"""Language and its weight, in lower case without spaces (RFC 9110 §12.5.4)."""


def find_catalogs(package: str) -> dict[str, Path | Traversable]:
    """Return the catalogs of a package by their names, which are languages."""
    folder = package_folder(package) / FOLDER
    files = folder.iterdir() if folder.is_dir() else ()
    return {file.name.removesuffix(_SUFFIX): file for file in files if file.name.endswith(_SUFFIX)}


def read_texts(package: str, language: str, kind: type[T]) -> T:
    """Return the texts of a package of the host in a language; in English, the defaults of their fields."""
    return kind() if language == ENGLISH else _read(find_catalogs(package)[language], kind)


class Catalogs:
    """Catalogs of all plug-ins in the order of registration: the first text of an option, format, … stays."""

    def __init__(
        self,
        plugins: Plugins,
        packages: Mapping[str, Plugin],
        declarations: Declarations,
        plans: Collection[str],
    ) -> None:
        """Find the catalogs, without reading them.

        Args:
            plugins: Takes the faults.
            packages: Plug-ins by the name of their package, in the order of precedence.
            declarations: What catalogs may translate.
            plans: Ids of the plans, which catalogs may also translate.
        """
        self._plugins = plugins
        self._files: list[tuple[Plugin, str, Path | Traversable]] = []
        for package, plugin in packages.items():
            with plugins.guarding(plugin, "translations cannot be found"):
                self._files += [(plugin, name, file) for name, file in sorted(find_catalogs(package).items())]
        for plugin, name, file in self._files:
            if not _LANGUAGE.fullmatch(name):
                message = f"{show_value(file.name)} must be named after a language, such as de.toml or pt-BR.toml"
                plugins.add_fault(plugin, f"translations: {message}")
        self._fields = declarations.fields() | declarations.check_fields()
        self._known: dict[str, Collection[str]] = {
            "options": self._fields,
            "formats": declarations.formats,
            "actions": {item.capability.format.id for item in declarations.writers if item.capability.action},
            "operations": {operation.capability.id for operation in declarations.operations},
            "checks": {check.capability.id for check in declarations.checks},
            "recipes": declarations.recipes,
            "plans": plans,
            "figures": declarations.figures(),
            "marks": ("thousands", "decimals"),
        }
        names = {name.lower(): name for _, name, _ in reversed(self._files) if _LANGUAGE.fullmatch(name)}
        self._languages = {ENGLISH: ENGLISH, **names}
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
        for tag in _list_preferred(requested[:MAX_REQUESTED_CHARS]):
            parts = tag.split("-")
            for count in range(len(parts), 0, -1):
                if (prefix := "-".join(parts[:count])) in self._languages:
                    return prefix
        return ENGLISH

    def _read_all(self, language: str) -> Texts:
        tables: dict[str, dict[str, object]] = {name: {} for name in Catalog.__struct_fields__}
        for plugin, name, file in self._files:
            if name.lower() != language:
                continue
            subject = f"translation to {name!r}"
            try:
                catalog = _read(file, Catalog)
            except InvalidDeclaration as error:
                self._plugins.add_fault(plugin, f"{subject}: {describe_error(error)}", error)
                continue
            for unknown in self._list_unknown(catalog):
                self._plugins.add_fault(plugin, f"{subject}: no plug-in declares {unknown}")
            for part, table in tables.items():
                tables[part] = {**getattr(catalog, part), **table}
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


def _read(file: Path | Traversable, kind: type[T]) -> T:
    """Read a catalog. Raises InvalidDeclaration."""
    import tomllib

    try:
        with file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise InvalidDeclaration(f"{file.name} is longer than {MAX_BYTES} bytes")
        return msgspec.convert(tomllib.loads(data.decode("utf-8")), kind)
    except OSError as error:
        raise InvalidDeclaration(f"{file.name} cannot be read: {error.strerror}") from None
    # tomllib raises a plain ValueError for very long numbers, and RecursionError for deep nesting
    except (ValueError, RecursionError) as error:
        raise InvalidDeclaration(f"{file.name}: {str(error)[:200]}") from None
