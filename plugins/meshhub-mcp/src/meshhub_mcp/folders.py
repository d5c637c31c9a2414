"""Read and write files below allowed folders only.

Every path is walked from an open folder, component by component, without following links. A link or a folder that
another program swaps in meanwhile therefore cannot lead elsewhere. Files are read once, and conversions get the bytes:
the checked file and the converted file are the same. An existing file is never replaced.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from urllib.parse import quote as percent_encode

from meshhub import OutputExists, RequestError, RequestRefused, Source

MAX_LISTED_COUNT = 500
"""Maximum files in a listing; more would fill the context of an assistant."""

MAX_COMPANION_COUNT = 200
"""Maximum files beside a model that are considered as its companions."""

MAX_SEARCHED_BYTES = 16 << 20
"""Bytes of a model in which names of companions are searched; text formats name them at the beginning."""

_FOLDER_FLAGS = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_FILE_FLAGS = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_NEW_FILE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)


class PathNotAllowed(RequestRefused):
    """The path leads outside the allowed folders, or through a link."""

    error_code = "path_not_allowed"


class PathNotFound(RequestError):
    """The path does not exist."""

    error_code = "not_found"


class FileTooLarge(RequestError):
    """The file is larger than the server allows."""

    error_code = "file_too_large"


class ListedFile(NamedTuple):
    """A file in a listing; the path is relative to the first allowed folder, or absolute in another one."""

    path: str
    size: int


class _Root(NamedTuple):
    """An allowed folder; names: the path that the operator gave and the resolved one."""

    names: tuple[PurePosixPath, ...]
    descriptor: int


class Folders:
    """The allowed folders. Relative paths belong to the first one."""

    def __init__(self, paths: Sequence[Path], max_bytes: int) -> None:
        """Open the folders.

        Args:
            paths: Allowed folders, including everything below them.
            max_bytes: Maximum size of a file that is read, with its companions.
        Raises:
            OSError: A folder cannot be opened.
        """
        self._max_bytes = max_bytes
        self._roots = [
            _Root(
                (PurePosixPath(Path.cwd() / path), PurePosixPath(path.resolve())),
                os.open(path.resolve(), _FOLDER_FLAGS),
            )
            for path in paths
        ]

    def close(self) -> None:
        """Close the folders."""
        for root in self._roots:
            os.close(root.descriptor)

    def read(self, path: str) -> Source:
        """Return a model file with the companions that it names.

        Raises:
            PathNotAllowed, PathNotFound: See the classes.
            FileTooLarge: The file and its companions exceed the limit.
        """
        root, parts = self._locate(path)
        if not parts:
            raise PathNotFound(f"{path[:100]!r} is a folder; name a file in it")
        with _opened_folder(root, parts[:-1], path) as folder:
            data = self._read_file(folder, parts[-1], path, self._max_bytes)
            companions = self._read_companions(folder, parts[-1], data)
        return Source.from_bytes(data, parts[-1], companions)

    def check_new(self, path: str) -> None:
        """Raise the error with which `write` would fail now.

        Raises:
            PathNotAllowed, PathNotFound: See the classes.
            OutputExists: The file exists.
        """
        root, parts = self._locate(path)
        if not parts or path.endswith("/"):
            raise OutputExists(f"{path[:100]!r} is a folder; name a new file in it")
        with _opened_folder(root, parts[:-1], path) as folder:
            if _exists(folder, parts[-1]):
                raise _output_exists(path)

    def write(self, path: str, content: bytes, companions: Mapping[str, bytes]) -> None:
        """Write a new file and its companions; the file appears complete or not at all.

        Raises:
            PathNotAllowed, PathNotFound: See the classes.
            OutputExists: The file exists, or a companion exists with other content.
        """
        root, parts = self._locate(path)
        with _opened_folder(root, parts[:-1], path) as folder:
            if _exists(folder, parts[-1]):
                raise _output_exists(path)
            for name, data in companions.items():
                try:
                    _write_new(folder, name, data)
                except FileExistsError:
                    if self._read_file(folder, name, name, len(data)) != data:
                        raise OutputExists(
                            f"the companion {name!r} exists with other content; use another folder"
                        ) from None
            try:
                _write_new(folder, parts[-1], content)
            except FileExistsError:
                raise _output_exists(path) from None

    def list_files(self, path: str, extensions: frozenset[str]) -> tuple[list[ListedFile], bool]:
        """Return the files of a folder and below that have one of the extensions, and whether there are more.

        Raises:
            PathNotAllowed, PathNotFound: See the classes.
        """
        root, parts = self._locate(path)
        prefix = "" if root is self._roots[0] else f"{root.names[0]}/"
        files: list[ListedFile] = []
        with _opened_folder(root, parts, path) as folder:
            for name, status in _walk(folder, parts):
                if PurePosixPath(name).suffix.lower() in extensions:
                    if len(files) == MAX_LISTED_COUNT:
                        return files, True
                    files.append(ListedFile(prefix + name, status.st_size))
        return files, False

    def _locate(self, path: str) -> tuple[_Root, tuple[str, ...]]:
        """Return the allowed folder of a path, and the components below it."""
        if "\0" in path or ".." in PurePosixPath(path).parts:
            raise PathNotAllowed("a path must not contain '..' or a null character; name a path in an allowed folder")
        pure = PurePosixPath(path)
        if not pure.is_absolute():
            return self._roots[0], pure.parts
        for root in self._roots:
            for name in root.names:
                if pure.is_relative_to(name):
                    return root, pure.relative_to(name).parts
        allowed = ", ".join(str(root.names[0]) for root in self._roots)
        raise PathNotAllowed(f"{path[:100]!r} is outside the allowed folders: {allowed}")

    def _read_file(self, folder: int, name: str, path: str, max_bytes: int) -> bytes:
        with _translated(path):
            descriptor = os.open(name, _FILE_FLAGS, dir_fd=folder)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise PathNotFound(f"{path[:100]!r} is not a file; name a model file")
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                data = file.read(max_bytes + 1)
        finally:
            os.close(descriptor)
        if len(data) > max_bytes:
            raise FileTooLarge(f"{path[:100]!r} is larger than {max_bytes} bytes, the limit of this server")
        return data

    def _read_companions(self, folder: int, model: str, data: bytes) -> dict[str, bytes]:
        """Return the files below the folder that the model, or another companion, names."""
        companions: dict[str, bytes] = {}
        candidates = [name for name, _ in _walk(folder, (), MAX_COMPANION_COUNT, depth=1) if name != model]
        pending = [data]
        left = self._max_bytes - len(data)
        while pending:
            text = pending.pop()[:MAX_SEARCHED_BYTES]
            for name in candidates:
                last = PurePosixPath(name).name
                if name in companions or not (last.encode() in text or percent_encode(last).encode() in text):
                    continue
                *parents, last = name.split("/")
                with _opened_folder(_Root((), folder), tuple(parents), name) as parent:
                    companions[name] = self._read_file(parent, last, name, left)
                left -= len(companions[name])
                pending.append(companions[name])
        return companions


@contextlib.contextmanager
def _opened_folder(root: _Root, parts: tuple[str, ...], path: str) -> Iterator[int]:
    """Yield the descriptor of a folder below a root."""
    descriptor = os.dup(root.descriptor)
    try:
        for part in parts:
            with _translated(path):
                below = os.open(part, _FOLDER_FLAGS, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _translated(path: str) -> Iterator[None]:
    """Raise errors with codes for errors of the system."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise PathNotAllowed(f"{path[:100]!r} is a link; name the file itself") from None
        if error.errno == errno.ENOTDIR:
            raise PathNotAllowed(f"{path[:100]!r} leads through a link or a file; name folders only") from None
        if error.errno in (errno.ENOENT, errno.ENAMETOOLONG):
            raise PathNotFound(f"{path[:100]!r} does not exist; see list_models") from None
        raise PathNotAllowed(f"{path[:100]!r} cannot be opened: {error.strerror}") from None


def _walk(
    folder: int, above: tuple[str, ...], count: int = 100_000, depth: int = 8
) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the visible files of a folder and below, without links, sorted by name in each folder.

    Args:
        folder: Descriptor of the folder.
        above: Components that precede the names.
        count: Maximum number of files and folders to visit.
        depth: Maximum number of levels below the folder.
    """
    pending: list[tuple[str, ...]] = [()]
    while pending:
        parts = pending.pop()
        for name, status in _list_folder(folder, parts):
            count -= 1
            if count < 0:
                return
            if stat.S_ISDIR(status.st_mode) and len(parts) < depth:
                pending.append((*parts, name))
            elif stat.S_ISREG(status.st_mode):
                yield "/".join((*above, *parts, name)), status


def _list_folder(folder: int, parts: tuple[str, ...]) -> list[tuple[str, os.stat_result]]:
    """Return the visible entries of a folder below another one; those that another program removes are left out."""
    entries = []
    with (
        contextlib.suppress(OSError, PathNotAllowed, PathNotFound),
        _opened_folder(_Root((), folder), parts, "") as below,
    ):
        for name in sorted(os.listdir(below)):
            if not name.startswith("."):
                with contextlib.suppress(OSError):
                    entries.append((name, os.stat(name, dir_fd=below, follow_symlinks=False)))
    return entries


def _exists(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


def _write_new(folder: int, name: str, content: bytes) -> None:
    """Write a file under a temporary name, and link it to its name. Raises FileExistsError."""
    temporary = f".meshhub-{os.urandom(8).hex()}"
    try:
        with os.fdopen(os.open(temporary, _NEW_FILE_FLAGS, 0o666, dir_fd=folder), "wb") as file:
            file.write(content)
        os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)


def _output_exists(path: str) -> OutputExists:
    return OutputExists(f"{path[:100]!r} exists and was not changed; name a new file")
