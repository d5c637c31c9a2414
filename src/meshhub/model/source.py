"""Named bytes in, named bytes out: what readers read from, what writers write to."""

from __future__ import annotations

import errno
import io
import os
import posixpath
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast
from urllib.parse import unquote

from meshhub.errors import DiskFull, UnreadableFile

HEAD_BYTES = 65_536
"""How much of a file the sniffers see."""


_DESCRIPTORS = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
"""Paths that mean something else in a worker process, even where they lead to plain files."""

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})


class _Companions:
    """Files that came together, sorted once: a model may ask for thousands of them.

    files:     by their names, in one spelling
    namesakes: the first of those names by their last components
    """

    def __init__(self, given: Mapping[str, Path | bytes]) -> None:
        self.files = {_normal(name): held for name, held in given.items()}
        self.namesakes = {posixpath.basename(name): name for name in sorted(self.files, reverse=True)}


class Source:
    """A file to read, and the files that came with it.

    Made from a path, its siblings are the files of the path's folder and below; made with
    `companions`, they are those and no others. Nothing is ever fetched from anywhere else.
    """

    def __init__(
        self,
        name: str,
        *,
        path: Path | None = None,
        data: bytes | None = None,
        companions: Mapping[str, Path | bytes] | None = None,
        folder: Path | None = None,
    ) -> None:
        """`name` labels the source; it is never used as a path. `folder` is where siblings may be looked up."""
        if (path is None) == (data is None):
            raise ValueError("a source is made of a path or of data")
        self.name = name
        self._path = path
        self._data = data
        self._companions = _Companions(companions or {})
        self._folder = folder

    @classmethod
    def from_path(cls, path: str | os.PathLike[str]) -> Source:
        """A file on this machine, which sees its own folder; what a pipe carries is read at once, and sees nothing.

        Raises FileNotFoundError, IsADirectoryError, UnreadableFile.
        """
        path = Path(path)
        if path.is_dir():
            raise IsADirectoryError(f"{path} is a folder; name the model file in it")
        if not path.exists():
            raise FileNotFoundError(f"{path} does not exist")
        if path.is_char_device() or path.is_block_device():
            raise UnreadableFile(f"{path} is a device; name a file or a pipe")
        try:
            if not path.is_file() or str(path).startswith(_DESCRIPTORS):
                return cls(path.name, data=path.read_bytes())
            with path.open("rb"):
                return cls(path.name, path=path, folder=path.parent)
        except OSError as error:
            raise UnreadableFile(f"{path} cannot be read: {error.strerror}") from error

    @classmethod
    def from_bytes(cls, data: bytes, name: str, companions: Mapping[str, Path | bytes] | None = None) -> Source:
        """Bytes in memory under a name, whose extension may help to tell the format."""
        return cls(name, data=data, companions=companions)

    @property
    def stem(self) -> str:
        """The name without folders and without its last extension."""
        return PurePosixPath(self.name.replace("\\", "/")).stem

    @property
    def extension(self) -> str:
        """The last extension of the name, lower case, with its dot; "" without one."""
        return PurePosixPath(self.name.replace("\\", "/")).suffix.lower()

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self._data) if self._data is not None else cast(Path, self._path).stat().st_size

    @property
    def path(self) -> Path | None:
        """Where the bytes lie on this machine, for libraries that only open paths; None in memory."""
        return self._path

    def read(self) -> bytes:
        """All of it."""
        return self._data if self._data is not None else cast(Path, self._path).read_bytes()

    def head(self, count: int = HEAD_BYTES) -> bytes:
        """The first bytes."""
        if self._data is not None:
            return self._data[:count]
        with cast(Path, self._path).open("rb") as file:
            return file.read(count)

    def sibling(self, reference: str) -> Source | None:
        """A file that came together with this one, found by the name the model gives it; None without.

        Backslashes, percent-encoding, a leading `./` and letter case are forgiven. A name that leads
        elsewhere (absolute, with a drive, out of what came) is looked up by its last component alone.
        """
        for wanted in _spellings(reference):
            found = self._companion(wanted) or self._in_folder(wanted)
            if found is not None:
                return found
        return None

    def _companion(self, wanted: str) -> Source | None:
        files = self._companions.files
        if not files:
            return None
        inside = posixpath.normpath(posixpath.join(posixpath.dirname(_normal(self.name)), wanted.casefold()))
        key = inside if inside in files else self._companions.namesakes.get(posixpath.basename(inside))
        if key is None:
            return None
        held = files[key]
        found = Source(key, data=held) if isinstance(held, bytes) else Source(key, path=held)
        found._companions = self._companions
        return found

    def _in_folder(self, wanted: str) -> Source | None:
        if self._folder is None or ".." in wanted.split("/"):
            return None
        here = self._folder
        try:
            for component in wanted.split("/"):
                here = _child(here, component)
            real = here.resolve(strict=True)
        except OSError:
            return None
        if not real.is_relative_to(self._folder.resolve()) or not real.is_file():
            return None
        return Source(here.name, path=real, folder=self._folder)


def _child(folder: Path, component: str) -> Path:
    exact = folder / component
    if exact.exists():
        return exact
    folded = component.casefold()
    for entry in sorted(os.listdir(folder)):
        if entry.casefold() == folded:
            return folder / entry
    raise FileNotFoundError(component)


def _normal(name: str) -> str:
    return "/".join(part for part in name.replace("\\", "/").split("/") if part not in ("", ".")).casefold()


def _spellings(reference: str) -> Iterator[str]:
    """The ways to understand a reference, the most literal first, none of them absolute."""
    tried: set[str] = set()
    for text in (reference, unquote(reference)):
        parts = [part for part in text.strip().strip('"').replace("\\", "/").split("/") if part not in ("", ".")]
        if not parts or "\0" in text:
            continue
        absolute = text.lstrip().startswith(("/", "\\")) or ":" in parts[0]
        for spelling in ("" if absolute else "/".join(parts), parts[-1]):
            if spelling and spelling != ".." and spelling not in tried:
                tried.add(spelling)
                yield spelling


class Target:
    """Where a writer writes: one file, and companions beside it (an OBJ's .mtl and textures).

    With a `folder` the files are made there, under `name` and the companions' own names; without
    one they are kept in memory. The host puts finished files in their place, so nothing half
    written is ever seen under the name that was asked for.
    """

    def __init__(self, name: str = "model", *, folder: Path | None = None) -> None:
        """`name` is the file's name in `folder`."""
        self.name = name
        self.folder = folder
        self._held: dict[str, bytes] = {}
        self._companions: list[str] = []

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """The file itself, open for writing in binary."""
        with self._writing(self.name) as file:
            yield file

    def companion(self, name: str, data: bytes) -> None:
        """A file that belongs beside it. `name` is one plain file name, made from the content, not from the upload."""
        if not self._may_have(name):
            raise ValueError(f"a companion needs a plain file name of its own, got {name!r}")
        with self._writing(name) as file:
            file.write(data)
        if name not in self._companions:
            self._companions.append(name)

    def _may_have(self, companion: str) -> bool:
        """Whether it is a plain name, and not the file's own."""
        return companion not in ("", ".", "..", self.name) and not any(mark in companion for mark in "/\\:\0")

    def _has(self, name: str) -> bool:
        try:
            return self.folder is not None and (self.folder / name).is_file()
        except OSError:
            # a name longer than the system knows
            return False

    @contextmanager
    def _writing(self, name: str) -> Iterator[BinaryIO]:
        if self.folder is not None:
            try:
                with (self.folder / name).open("wb") as file:
                    yield file
            except OSError as error:
                if error.errno not in _NO_ROOM:
                    raise
                raise DiskFull("the disk has no room for the result; free some space and try again") from error
            return
        buffer = io.BytesIO()
        yield buffer
        self._held[name] = buffer.getvalue()

    @property
    def names(self) -> tuple[str, ...]:
        """The file's name, then those of its companions."""
        return (self.name, *self._companions)

    @property
    def size(self) -> int:
        """Bytes of the file itself; 0 when nothing was written."""
        if self.folder is None:
            return len(self._held.get(self.name, b""))
        path = self.folder / self.name
        return path.stat().st_size if path.exists() else 0

    def read(self, name: str | None = None) -> bytes:
        """The bytes of the file, or of a companion."""
        name = self.name if name is None else name
        return self._held[name] if self.folder is None else (self.folder / name).read_bytes()

    def found(self, companions: tuple[str, ...]) -> None:
        """Take note of companions that another process wrote into the folder."""
        self._companions = [name for name in dict.fromkeys(companions) if self._may_have(name) and self._has(name)]

    def take(self, other: Target) -> None:
        """Take over the bytes of another target, its companions too."""
        with self.open() as file:
            file.write(other.read())
        for name in other.names[1:]:
            self.companion(name, other.read(name))
