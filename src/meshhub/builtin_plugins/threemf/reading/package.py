"""Find the model and other parts in a package (OPC, ECMA-376 part 2)."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from types import TracebackType
from urllib.parse import unquote

from meshhub.errors import OTHER_KIND, SLICED, UnreadableFile, quote
from meshhub.model.notes import note
from meshhub.model.source import Source
from meshhub.toolkit.archive import Archive, ArchiveLimits
from meshhub.toolkit.safe_xml import Attributes, as_utf8, parse_xml

_MODEL_RELATIONSHIP = "/3dmodel"
_KEYSTORE_RELATIONSHIP = "/keystore"
_LIMITS = ArchiveLimits(ratio_after=16 << 20)
"""Bytes before the compression ratio is limited, because a plate of a thousand equal small parts exceeds 100:1."""

_RELATIONSHIPS = "_rels/.rels"
_MAX_RELATIONSHIPS_BYTES = 1 << 22
"""Maximum bytes; real relationship parts have a few kilobytes."""


class Package:
    """An open 3MF file; use it in a `with` statement."""

    def __init__(self, source: Source) -> None:
        """Open the archive.

        Raises:
            UnreadableFile: The file is not a valid ZIP archive.
            UnsafeArchive: The archive exceeds a limit.
        """
        self._archive = Archive(source.path if source.path is not None else source.read(), _LIMITS)

    def __enter__(self) -> Package:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._archive.close()

    @property
    def names(self) -> Sequence[str]:
        """Paths of all parts, without a leading slash."""
        return [entry.name for entry in self._archive.entries]

    @property
    def model_bytes(self) -> int:
        """Size of all model parts."""
        return sum(entry.size for entry in self._archive.entries if entry.name.casefold().endswith(".model"))

    def find(self, reference: str, base: str = "") -> str | None:
        """Return the name of the part to which a reference refers, or None.

        Args:
            reference: Absolute path, or path relative to the folder of `base`; may be percent-encoded.
            base: Part that holds the reference.
        """
        for spelling in (reference, unquote(reference)):
            spelling = spelling.strip().replace("\\", "/")
            for path in (spelling, posixpath.join("/", posixpath.dirname(base), spelling)):
                name = self._archive.find(posixpath.normpath("/" + path).lstrip("/"))
                if name is not None:
                    return name
        return None

    def read(self, name: str) -> bytes:
        """Return the bytes of a part. Raise UnreadableFile or UnsafeArchive."""
        return self._archive.read(name)

    def find_model(self) -> str:
        """Return the part that the relationships name as the model, or the most likely one, with a note.

        Raises:
            UnreadableFile: The package has no model.
        """
        for kind, target in self.read_relationships():
            if kind.casefold().endswith(_MODEL_RELATIONSHIP):
                name = self.find(target)
                if name is not None:
                    return name
        models = [name for name in self.names if name.casefold().endswith(".model")]
        guess = next((name for name in models if name.casefold() == "3d/3dmodel.model"), None)
        if guess is None and len(models) == 1:
            guess = models[0]
        if guess is not None:
            note(
                "missing_relationship",
                f"the package does not name the part of its model; {quote(guess)} was read",
                name=quote(guess),
            )
            return guess
        raise missing_model_error(self.names)

    def read_relationships(self) -> list[tuple[str, str]]:
        """Return types and targets of the relationships of the package."""
        name = self.find(_RELATIONSHIPS)
        if name is None:
            return []
        relationships: list[tuple[str, str]] = []

        def start(_namespace: str, local: str, attributes: Attributes, _at: int) -> None:
            if local == "Relationship" and attributes.get("TargetMode", "Internal") == "Internal":
                relationships.append((attributes.get("Type", ""), attributes.get("Target", "")))

        data, encoding = as_utf8(self._archive.read(name, _MAX_RELATIONSHIPS_BYTES))
        parse_xml(data, quote(name), start=start, end=lambda: None, encoding=encoding)
        return relationships

    def has_keystore(self) -> bool:
        """Return whether some parts may be encrypted (Secure Content §2)."""
        return any(kind.casefold().endswith(_KEYSTORE_RELATIONSHIP) for kind, _ in self.read_relationships())


def is_sliced(names: Sequence[str]) -> bool:
    """Return whether the parts include machine code."""
    return any(name.casefold().endswith((".gcode", ".bgcode")) for name in names)


def missing_model_error(names: Sequence[str]) -> UnreadableFile:
    """Return the error for a package without a model."""
    if is_sliced(names):
        return UnreadableFile(
            "the file is sliced and has no model: it has only machine code for one printer; "
            "export the project or the model itself as 3MF",
            values=SLICED,
        )
    return UnreadableFile(
        "the ZIP archive is not a 3MF file, since it has no model; unpack it to convert the models in it",
        values=OTHER_KIND,
    )
