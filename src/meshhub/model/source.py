"""Input and output of a conversion: readers read a `Source`, writers write a `Target`."""

from __future__ import annotations

import errno
import io
import os
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast
from urllib.parse import unquote

from meshhub.errors import DiskFull, UnreadableFile
from meshhub.model.text_encoding import as_utf8

HEAD_BYTES = 65_536
"""Bytes from the start of a file that sniffers receive; text formats may begin with long comments."""

_DESCRIPTORS = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
"""Paths of descriptors of this process; in a worker process, they refer to another file."""

_OUT_OF_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Errors for lack of disk space."""

_FIRST_BED = "-bed1"
"""End of the name of the file of the first bed, without the extension."""

_EXTENSION = re.compile(r"(?:\.gcode)?\.[^.]*\Z", re.IGNORECASE)
"""Extension of a name; that of a G-code package has two parts, such as `.gcode.3mf`."""


class _Companions:
    """Companions of a file, normalized only once, because a model may refer to thousands of them.

    Attributes:
        files: Path or content by normalized name.
        by_last_component: First normalized name for each last component.
    """

    def __init__(self, companions: Mapping[str, Path | bytes]) -> None:
        self.files = {_normalize(name): content for name, content in companions.items()}
        self.by_last_component = {posixpath.basename(name): name for name in sorted(self.files, reverse=True)}


class Source:
    """Input file and its companions, such as the materials and textures of an OBJ file.

    A source from a path finds companions in the folder of the path and below. A source with `companions` finds only
    those. No other file is read, and nothing is downloaded.

    Text in UTF-16 or UTF-32 is converted to UTF-8, and a byte order mark is left out: readers need not handle them.
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
        """Create a source; prefer `from_path` and `from_bytes`.

        Args:
            name: Label, whose extension may determine the format; never used as a path.
            path: File with the content. Pass either `path` or `data`.
            data: Content.
            companions: Path or content of each companion by name, relative to the same root as `name`.
            folder: Folder that contains further companions.
        Raises:
            ValueError: Both or none of `path` and `data` are passed.
        """
        if (path is None) == (data is None):
            raise ValueError("a source needs either a path or data")
        self.name = name
        self._path = path
        self._data = data
        self._companions = _Companions(companions or {})
        self._folder = folder

    @classmethod
    def from_path(cls, path: str | os.PathLike[str]) -> Source:
        """Create a source from a file, which finds companions in its folder and below.

        A pipe or a descriptor such as /dev/stdin is read immediately, and has no companions.

        Raises:
            FileNotFoundError: The path does not exist.
            IsADirectoryError: The path is a folder.
            UnreadableFile: The path is a device, or cannot be read.
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
        """Create a source from bytes.

        Args:
            data: Content.
            name: Label, whose extension may determine the format.
            companions: Path or content of each companion by name, relative to the same root as `name`.
        """
        return cls(name, data=data, companions=companions)

    @property
    def stem(self) -> str:
        """The name without folders and without the last extension."""
        return PurePosixPath(self.name.replace("\\", "/")).stem

    @property
    def extension(self) -> str:
        """The last extension of the name in lower case, with the dot; "" if the name has none."""
        return PurePosixPath(self.name.replace("\\", "/")).suffix.lower()

    @property
    def size(self) -> int:
        """The number of bytes, before text is converted."""
        return len(self._data) if self._data is not None else cast(Path, self._path).stat().st_size

    @property
    def path(self) -> Path | None:
        """The path of the content, for libraries that open only paths; None for bytes in memory and converted text."""
        if self._path is None:
            return None
        head = self._read_raw(HEAD_BYTES)
        return self._path if as_utf8(head) == head else None

    @property
    def paths(self) -> tuple[Path, ...]:
        """The paths of the content and of the companions that were passed by path."""
        files = (self._path, *self._companions.files.values())
        return tuple(file for file in files if isinstance(file, Path))

    def read(self) -> bytes:
        """Return the content."""
        return as_utf8(self._read_raw())

    def read_binary(self) -> bytes:
        """Return the content as it is in the file, for data that is never text, such as buffers and images."""
        return self._read_raw()

    def open(self) -> BinaryIO:
        """Open the content for binary reading, for files that need not be in memory as a whole. Close it after use."""
        path = self.path
        return io.BytesIO(self.read()) if path is None else path.open("rb")

    def head(self, count: int = HEAD_BYTES) -> bytes:
        """Return the content of the first `count` bytes, or of all bytes of a shorter file."""
        return as_utf8(self._read_raw(count))

    def _read_raw(self, count: int | None = None) -> bytes:
        """Return the first bytes, or all, as they are in the file."""
        if self._data is not None:
            return self._data if count is None else self._data[:count]
        with cast(Path, self._path).open("rb") as file:
            return file.read() if count is None else file.read(count)

    def sibling(self, reference: str) -> Source | None:
        """Find a companion by the name that the model refers to.

        Backslashes, percent-encoding, a leading `./` and letter case do not matter. If a reference leads elsewhere (an
        absolute path, a drive, a path above the root of the companions), only its last component counts.

        Args:
            reference: Name as it is in the model, relative to this file.
        Returns:
            The companion, which finds the same companions as this file; None if no companion has this name.
        """
        for name in _list_spellings(reference):
            companion = self._find_companion(name) or self._find_in_folder(name)
            if companion is not None:
                return companion
        return None

    def _find_companion(self, name: str) -> Source | None:
        files = self._companions.files
        if not files:
            return None
        path = posixpath.normpath(posixpath.join(posixpath.dirname(_normalize(self.name)), name.casefold()))
        key = path if path in files else self._companions.by_last_component.get(posixpath.basename(path))
        if key is None:
            return None
        content = files[key]
        companion = Source(key, data=content) if isinstance(content, bytes) else Source(key, path=content)
        companion._companions = self._companions
        return companion

    def _find_in_folder(self, name: str) -> Source | None:
        if self._folder is None or ".." in name.split("/"):
            return None
        path = self._folder
        try:
            for component in name.split("/"):
                path = _find_child(path, component)
            resolved = path.resolve(strict=True)
        except OSError:
            return None
        # a symlink may point outside the folder
        if not resolved.is_relative_to(self._folder.resolve()) or not resolved.is_file():
            return None
        return Source(path.name, path=resolved, folder=self._folder)


class Assembly(Source):
    """Several files that become one scene, each as an object of its own.

    Attributes:
        members: The sources of the files, in order.
    """

    def __init__(self, members: Sequence[Source]) -> None:
        """Name the whole after its first file. Raises ValueError without files."""
        if not members:
            raise ValueError("an assembly needs at least one file")
        super().__init__(members[0].name, data=b"")
        self.members = tuple(members)

    @property
    def size(self) -> int:
        """The number of bytes of all files."""
        return sum(member.size for member in self.members)


def members_of(source: Source) -> tuple[Source, ...]:
    """Return the files of a source."""
    return source.members if isinstance(source, Assembly) else (source,)


def _find_child(folder: Path, component: str) -> Path:
    """Return the entry of a folder with a name, ignoring letter case. Raise OSError if no entry matches."""
    exact = folder / component
    if exact.exists():
        return exact
    folded = component.casefold()
    for entry in sorted(os.listdir(folder)):
        if entry.casefold() == folded:
            return folder / entry
    raise FileNotFoundError(component)


def _normalize(name: str) -> str:
    """Return a name with single forward slashes, without ".", in folded case."""
    return "/".join(part for part in name.replace("\\", "/").split("/") if part not in ("", ".")).casefold()


def _list_spellings(reference: str) -> Iterator[str]:
    """Yield the relative names to which a reference may refer, the most literal first."""
    tried: set[str] = set()
    for text in (reference, unquote(reference)):
        parts = [part for part in text.strip().strip('"').replace("\\", "/").split("/") if part not in ("", ".")]
        if not parts or "\0" in text:
            continue
        is_absolute = text.lstrip().startswith(("/", "\\")) or ":" in parts[0]
        for spelling in ("" if is_absolute else "/".join(parts), parts[-1]):
            if spelling and spelling != ".." and spelling not in tried:
                tried.add(spelling)
                yield spelling


def name_bed(name: str, number: int) -> str:
    """Return the name of the file of a bed: "parts.stl" and "parts-bed1.stl" become "parts-bed2.stl"."""
    match = _EXTENSION.search(name, 1)
    stem, extension = (name[: match.start()], match[0]) if match else (name, "")
    return f"{stem.removesuffix(_FIRST_BED)}-bed{number}{extension}"


class Target:
    """Output file and its companions, such as the materials and textures of an OBJ file.

    A result with a file for each bed has the first bed in the file, and the others in `beds`.

    A target with a `folder` creates the files there; without one it keeps them in memory. The host moves complete
    files to their final place, so no partial file ever has the requested name.
    """

    def __init__(self, name: str = "model", *, folder: Path | None = None) -> None:
        """Create a target.

        Args:
            name: Name of the file in the folder.
            folder: Existing folder for the files; None keeps them in memory.
        """
        self.name = name
        self.folder = folder
        self._contents: dict[str, bytes] = {}
        self._companions: list[str] = []
        self.beds: list[Target] = []

    def add_bed(self) -> Target:
        """Add the file of a further bed; all beds share the companions."""
        bed = Target(name_bed(self.name, len(self.beds) + 2), folder=self.folder)
        bed._contents, bed._companions = self._contents, self._companions
        self.beds.append(bed)
        return bed

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open the file for binary writing.

        Raises:
            DiskFull: The disk of the folder is full.
        """
        with self._open(self.name) as file:
            yield file

    def companion(self, name: str, data: bytes) -> None:
        """Write a companion.

        Args:
            name: Plain file name, which must not come from the name of the upload.
            data: Content.
        Raises:
            ValueError: The name has a path, or is that of the file itself.
            DiskFull: The disk of the folder is full.
        """
        if not self._is_companion_name(name):
            raise ValueError(f"a companion needs a plain file name that differs from the file's, got {name!r}")
        with self._open(name) as file:
            file.write(data)
        if name not in self._companions:
            self._companions.append(name)

    def _is_companion_name(self, name: str) -> bool:
        return name not in ("", ".", "..", self.name) and not any(mark in name for mark in "/\\:\0")

    def _has_file(self, name: str) -> bool:
        try:
            return self.folder is not None and (self.folder / name).is_file()
        except OSError:
            # the name is too long for the file system
            return False

    @contextmanager
    def _open(self, name: str) -> Iterator[BinaryIO]:
        if self.folder is not None:
            try:
                with (self.folder / name).open("wb") as file:
                    yield file
            except OSError as error:
                if error.errno not in _OUT_OF_SPACE:
                    raise
                raise DiskFull("the disk of the output is full; free some space and try again") from error
            return
        buffer = io.BytesIO()
        yield buffer
        self._contents[name] = buffer.getvalue()

    @property
    def files(self) -> tuple[Target, ...]:
        """The file, and those of further beds."""
        return (self, *self.beds)

    @property
    def names(self) -> tuple[str, ...]:
        """The name of the file, followed by those of its companions."""
        return (self.name, *self._companions)

    @property
    def size(self) -> int:
        """The number of bytes of the file without its companions; 0 before it is written."""
        if self.folder is None:
            return len(self._contents.get(self.name, b""))
        path = self.folder / self.name
        return path.stat().st_size if path.exists() else 0

    def read(self, name: str | None = None) -> bytes:
        """Return the content of the file, or of the companion `name`."""
        name = self.name if name is None else name
        return self._contents[name] if self.folder is None else (self.folder / name).read_bytes()

    def found(self, companions: tuple[str, ...], beds: int = 0) -> None:
        """Register what another process wrote to the folder; ignore invalid names and missing files.

        Args:
            companions: Names of the companions.
            beds: Number of files of further beds.
        """
        self._companions = [
            name for name in dict.fromkeys(companions) if self._is_companion_name(name) and self._has_file(name)
        ]
        self.beds = []
        while len(self.beds) < beds and self._has_file(name_bed(self.name, len(self.beds) + 2)):
            self.add_bed()

    def take(self, other: Target) -> None:
        """Copy the files and the companions of another target."""
        for mine, theirs in zip((self, *(self.add_bed() for _ in other.beds)), other.files, strict=True):
            with mine.open() as file:
                file.write(theirs.read())
        for name in other.names[1:]:
            self.companion(name, other.read(name))
