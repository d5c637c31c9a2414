"""The package around the model: which part is the model, and what else lies in it (OPC, ECMA-376 part 2)."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from types import TracebackType
from urllib.parse import unquote

from meshhub.builtin_plugins.threemf.reading.markup import Attributes, as_utf8, parse
from meshhub.errors import UnreadableFile
from meshhub.model.notes import note
from meshhub.model.source import Source
from meshhub.toolkit.archive import Archive, ArchiveLimits

MODEL = "/3dmodel"
KEYSTORE = "/keystore"
LIMITS = ArchiveLimits(ratio_after=16 << 20)
"""A plate of a thousand equal small parts packs better than a hundredfold, and is no bomb."""

_RELATIONSHIPS = "_rels/.rels"
_LARGEST_RELATIONSHIPS = 1 << 22


class Package:
    """An open 3MF file. Use it in a `with`."""

    def __init__(self, source: Source) -> None:
        """Raises UnreadableFile, UnsafeArchive."""
        self._archive = Archive(source.path if source.path is not None else source.read(), LIMITS)

    def __enter__(self) -> Package:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._archive.close()

    @property
    def names(self) -> Sequence[str]:
        """The paths of all parts, without a leading slash."""
        return [entry.name for entry in self._archive.entries]

    def find(self, reference: str, base: str = "") -> str | None:
        """The part that a reference means, from the folder of the part it stands in; None without."""
        for spelling in (reference, unquote(reference)):
            spelling = spelling.strip().replace("\\", "/")
            for path in (spelling, posixpath.join("/", posixpath.dirname(base), spelling)):
                found = self._archive.find(posixpath.normpath("/" + path).lstrip("/"))
                if found is not None:
                    return found
        return None

    def read(self, name: str) -> bytes:
        """The bytes of a part. Raises UnreadableFile, UnsafeArchive."""
        return self._archive.read(name)

    def model(self) -> str:
        """The part that the package says is its model. Raises UnreadableFile when there is none."""
        for kind, target in self.relationships():
            if kind.casefold().endswith(MODEL):
                found = self.find(target)
                if found is not None:
                    return found
        models = [name for name in self.names if name.casefold().endswith(".model")]
        guess = next((name for name in models if name.casefold() == "3d/3dmodel.model"), None)
        if guess is None and len(models) == 1:
            guess = models[0]
        if guess is not None:
            note("missing_relationship", f"the package does not say which part is its model; {guess!r} was taken")
            return guess
        raise no_model(self.names)

    def relationships(self, part: str = "") -> list[tuple[str, str]]:
        """The relationships of a part, or of the package: types and targets."""
        folder, last = posixpath.split(part)
        name = self.find(posixpath.join(folder, "_rels", last + ".rels") if part else _RELATIONSHIPS)
        if name is None:
            return []
        found: list[tuple[str, str]] = []

        def start(_namespace: str, local: str, attributes: Attributes, _at: int) -> None:
            if local == "Relationship" and attributes.get("TargetMode", "Internal") == "Internal":
                found.append((attributes.get("Type", ""), attributes.get("Target", "")))

        data, encoding = as_utf8(self._archive.read(name, _LARGEST_RELATIONSHIPS))
        parse(data, f"{name!r}", start=start, end=lambda: None, encoding=encoding)
        return found

    def is_protected(self) -> bool:
        """Whether some part may be encrypted (Secure Content §2)."""
        return any(kind.casefold().endswith(KEYSTORE) for kind, _ in self.relationships())


def is_sliced(names: Sequence[str]) -> bool:
    """Whether there is machine code among the parts."""
    return any(name.casefold().endswith((".gcode", ".bgcode")) for name in names)


def no_model(names: Sequence[str]) -> UnreadableFile:
    """The error for a package without a model."""
    if is_sliced(names):
        return UnreadableFile(
            "this is a sliced file, no model inside: it holds machine code for one printer; "
            "export the project or the model itself as 3MF"
        )
    return UnreadableFile(
        "this ZIP archive is no 3MF file: no model is inside; send its models in a batch, or one by one"
    )
