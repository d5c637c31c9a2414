"""State of `meshhub app`: the token of its page, the files that were opened, and the tabs that show them."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import hmac
import itertools
import os
import secrets
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec
from msgspec import structs

from meshhub.http.errors import ServiceError
from meshhub.model.plans import LOCAL, Caller, Limits
from meshhub.pipeline.companion_mentions import find_companions

TOKEN_HEADER = "X-Meshhub-Token"  # noqa: S105 - the name of a header
"""Header of requests. A header and not a cookie: browsers send cookies to every port of a host."""

OWNER = Caller(
    plan=structs.replace(LOCAL.plan, limits=Limits(conversion_timeout_seconds=None, job_timeout_seconds=None,
                                                   job_retention_seconds=None)),
    id=LOCAL.id,
    entitled=True,
)  # fmt: skip
"""Caller of the app: every entitlement, and no limit."""

_TOKEN_BYTES = 24
"""Random bytes of a token, which cannot be guessed."""

_POLL_S = 0.2
"""Seconds between two looks of a tab for newly opened files."""

_HEARTBEAT_S = 10.0
"""Seconds between comments in an idle stream, by which a connection that broke is noticed."""


class OpenedFile(NamedTuple):
    """File that the owner opened, with the files that it mentions by their relative names."""

    id: int
    path: Path
    companions: dict[str, Path]
    is_closed: bool = False
    """Whether a tab has removed it: tabs that have it keep it, and new ones do not show it."""

    def describe(self) -> dict[str, object]:
        """Return the file as data for the page."""
        return {
            "id": self.id,
            "name": to_text(self.path.name),
            "folder": to_text(str(self.path.parent)),
            "companions": list(map(to_text, self.companions)),
            "closed": self.is_closed,
        }

    def find_companion(self, name: str) -> Path | None:
        """Return the companion with a name of `describe`."""
        return next((path for companion, path in self.companions.items() if to_text(companion) == name), None)


class Content(msgspec.Struct, frozen=True):
    """Size and digest of a file, by which it is recognized."""

    size: int
    sha256: str


class Result:
    """Result that is written into the folder of its input."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        """Write to an open file."""
        self.path = path
        self._file = file
        self._hash = hashlib.sha256()

    def write(self, chunk: bytes) -> None:
        """Append a part of the result. Raises OSError."""
        self._file.write(chunk)
        self._hash.update(chunk)

    @property
    def content(self) -> Content:
        """Content that was written."""
        return Content(size=self._file.tell(), sha256=self._hash.hexdigest())


class LocalApp:
    """State of the app. Files may be opened in any thread."""

    def __init__(self) -> None:
        """Start without files and tabs."""
        self.token = secrets.token_urlsafe(_TOKEN_BYTES)
        self.files: dict[int, OpenedFile] = {}
        # a tab reads the earlier version of a file and saves beside it until it has the next one
        self._replaced: dict[int, OpenedFile] = {}
        self._ids = itertools.count(1)
        self._lock = threading.Lock()
        self._saved: dict[str, Path] = {}
        self._unfinished: set[Path] = set()
        self._own: set[Content] = set()
        self._left: float | None = None
        self.tabs = 0

    def check_token(self, token: str) -> None:
        """Raise ServiceError for a request without the token."""
        if not hmac.compare_digest(token.encode(), self.token.encode()):
            raise ServiceError(
                "the address of the page lacks its token; open the page with 'meshhub app'",
                error_code="app_token_required",
            )

    def open(self, path: Path) -> None:
        """Show a file in every tab, in place of an earlier version of it. Raises OSError."""
        path = path.absolute()
        _check_file(path)
        companions = find_companions(path)
        with self._lock:
            # a tab asks for the files after the last id it has, so ids follow the order in which files appear
            opened = OpenedFile(next(self._ids), path, companions)
            replaced = {id_: file for id_, file in self.files.items() if file.path == path}
            self._replaced.update(replaced)
            others = {id_: file for id_, file in self.files.items() if id_ not in replaced}
            self.files = {**others, opened.id: opened}

    def open_soon(self, paths: Sequence[Path]) -> None:
        """Open files in a thread, because large ones are searched for their companions. Raises OSError."""
        for path in paths:
            _check_file(path)
        if self._left is not None:
            # a new tab needs time to connect
            self._left = time.monotonic()

        def open_all() -> None:
            for path in paths:
                # removed since it was checked
                with contextlib.suppress(OSError):
                    self.open(path)

        threading.Thread(target=open_all, daemon=True).start()

    def open_arrival(self, path: Path) -> None:
        """Show a file that has arrived in a watched folder, unless it is a result of the app. Raises OSError."""
        if path.resolve() not in self._unfinished and not self._is_own(path):
            self.open(path)

    def keep_own(self, content: Content) -> None:
        """Recognize a result by its content if it arrives in a watched folder: browsers choose its name and folder."""
        self._own.add(content)

    def _is_own(self, path: Path) -> bool:
        """Return whether a file has the content of a result. Raises OSError."""
        size = path.stat().st_size
        if not any(content.size == size for content in tuple(self._own)):
            return False
        with path.open("rb") as file:
            return Content(size=size, sha256=hashlib.file_digest(file, "sha256").hexdigest()) in self._own

    def find(self, file_id: int) -> OpenedFile:
        """Return an opened file. Raises ServiceError."""
        file = self.files.get(file_id) or self._replaced.get(file_id)
        if file is None:
            raise ServiceError(f"no file with the id {file_id} is open; open it again", error_code="not_found")
        return file

    def close(self, file_id: int) -> None:
        """Mark a file as closed: new tabs do not show it, and those that have it can still use it."""
        with self._lock:
            self.files = {
                id_: file._replace(is_closed=True) if id_ == file_id else file for id_, file in self.files.items()
            }

    @contextlib.contextmanager
    def saving(self, file_id: int, name: str) -> Iterator[Result]:
        """Yield a new file for a result beside its input; it is removed if the block fails. Raises ServiceError.

        Args:
            file_id: Id of the input.
            name: Name for the result; it gets a number if the folder has such a file.
        """
        folder = self.find(file_id).path.parent
        try:
            path = _create_file(folder / name)
        except OSError as error:
            raise ServiceError(
                f"{folder} is not writable: {error.strerror}; download the result", error_code="save_failed"
            ) from error
        unfinished = path.resolve()
        self._unfinished.add(unfinished)
        try:
            with path.open("wb") as file:
                result = Result(path, file)
                yield result
                content = result.content
            # the last bytes are written when the file is closed
            self.keep_own(content)
        except BaseException as error:
            path.unlink(missing_ok=True)
            if isinstance(error, OSError):
                raise ServiceError(f"{path} cannot be written: {error.strerror}", error_code="save_failed") from error
            raise
        finally:
            self._unfinished.discard(unfinished)
        self._saved[to_text(str(path))] = path

    def find_saved(self, text: str) -> Path:
        """Return a result by its path as text. Raises ServiceError: a page must not pass other files to programs."""
        path = self._saved.get(text)
        if path is None:
            raise ServiceError("only a result that was saved can be opened; save it first", error_code="not_found")
        return path

    def list_after(self, after: int) -> list[dict[str, object]]:
        """Return the descriptions of the files that were opened after one."""
        return [file.describe() for id_, file in self.files.items() if id_ > after]

    async def stream_files(self, after: int, is_over: Callable[[], bool]) -> AsyncIterator[bytes]:
        """Yield lists of the files after one as server-sent events.

        A tab is open while it receives them. Tabs of one browser share a stream.
        """
        loop = asyncio.get_running_loop()
        self.tabs += 1
        try:
            sent = loop.time()
            yield b": open\n\n"
            while not is_over():
                new = [file for id_, file in self.files.items() if id_ > after]
                if new:
                    after, sent = new[-1].id, loop.time()
                    yield b"data: " + msgspec.json.encode([file.describe() for file in new]) + b"\n\n"
                if loop.time() - sent > _HEARTBEAT_S:
                    sent = loop.time()
                    yield b": still open\n\n"
                await asyncio.sleep(_POLL_S)
        finally:
            self.tabs -= 1
            self._left = time.monotonic()

    def expect_tab(self, within_s: float) -> None:
        """Count the seconds without a tab, although none was open, if none is open within this time."""
        if self._left is None:
            self._left = time.monotonic() + within_s

    @property
    def seconds_without_tab(self) -> float:
        """The seconds since the last tab was closed; 0 before the first one, unless one is expected."""
        return 0.0 if self.tabs or self._left is None else time.monotonic() - self._left


def _check_file(path: Path) -> None:
    if not path.is_file():
        # reading a pipe would never end
        raise OSError(errno.ENOENT, "not a file", str(path))
    with path.open("rb"):
        # may be another user's
        pass


def to_text(name: str) -> str:
    """Return a name without the bytes that are not UTF-8, which JSON cannot hold."""
    return os.fsencode(name).decode("utf-8", "replace")


def _create_file(path: Path) -> Path:
    """Create a file at a path, or at the first free path with a number. Raises OSError."""
    for candidate in (path, *(path.with_stem(f"{path.stem}-{number}") for number in range(2, 10_000))):
        with contextlib.suppress(FileExistsError):
            candidate.touch(exist_ok=False)
            return candidate
    raise FileExistsError(0, "too many files of this name", str(path))
