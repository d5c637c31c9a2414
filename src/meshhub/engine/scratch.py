"""Temporary folders that do not outlive the program for long, even when it is killed.

A folder is locked as long as the program that made it lives: the system lets go of the lock however
a program ends. Whoever starts next removes what nobody holds.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import stat
import sys
import tempfile
import time
from pathlib import Path

from meshhub.pipeline.fork_lock import ForkLock

_NAME = re.compile(r"meshhub-(?:job|service)-(\d+)-[A-Za-z0-9_]+", re.ASCII)

_YOUNG_SECONDS = 60.0
"""So long a folder may be without its lock while its maker, in another container, is still making it."""

_MAKING = ForkLock()
"""Held while a folder is made: another thread would take it for one that a killed program left."""

_LOCKS: set[int] = set()
"""The locks that this process holds. Forked children let go of them: a folder is locked as long as its maker lives."""


def _begin_in_child() -> None:
    for lock in _LOCKS:
        os.close(lock)
    _LOCKS.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_in_child)


class Scratch:
    """A temporary folder, ours alone. `kind` is "job" or "service"; `folder` is where it is made."""

    def __init__(self, kind: str, folder: str | Path | None = None) -> None:
        self._maker = os.getpid()
        with _MAKING.held():
            self.path = Path(tempfile.mkdtemp(prefix=f"meshhub-{kind}-{self._maker}-", dir=folder))
            try:
                self._lock = _locked(self.path)
            except OSError:
                # too many files are open: nobody would remove the folder as long as this program lives
                self.path.rmdir()
                raise
            if self._lock is not None:
                _LOCKS.add(self._lock)

    def remove(self) -> None:
        """Remove it with all that is in it, unless it is the parent's: forked children leave it alone."""
        if self._maker != os.getpid():
            return
        remove_tree(self.path)
        if self._lock is not None:
            _LOCKS.discard(self._lock)
            os.close(self._lock)
            self._lock = None


def remove_tree(root: Path) -> None:
    """Remove a folder with all that is in it, however deep, and whatever rights were taken away; never raises.

    `shutil.rmtree` follows every level with a call and an open file, which hostile depth exhausts. Here what
    lies deeper is moved up to the root first, so that no path grows long.
    """
    if sys.platform == "win32":
        shutil.rmtree(root, ignore_errors=True)
        return
    if root.is_symlink():
        # whoever put it there does not get what it leads to removed
        with contextlib.suppress(OSError):
            root.unlink()
        return
    prefix = f"{os.urandom(8).hex()}-"
    numbers = itertools.count()
    folders = [root]
    emptied: list[Path] = []
    while folders:
        folder = folders.pop()
        emptied.append(folder)
        with contextlib.suppress(OSError):
            _open_up(folder)
            for entry in list(folder.iterdir()):
                with contextlib.suppress(OSError):
                    if not stat.S_ISDIR(entry.lstat().st_mode):
                        entry.unlink()
                        continue
                    # a folder is moved only by who may write in it
                    _open_up(entry)
                    folders.append(entry.rename(root / f"{prefix}{next(numbers)}"))
    for folder in reversed(emptied):
        with contextlib.suppress(OSError):
            folder.rmdir()


def _open_up(folder: Path) -> None:
    if folder.lstat().st_mode & stat.S_IRWXU != stat.S_IRWXU:
        folder.chmod(stat.S_IRWXU)


def sweep(folder: str | Path | None = None) -> int:
    """Remove what programs of this user left in a folder (the system's, unless told) as they were killed; how many."""
    if sys.platform == "win32":
        return 0
    swept = 0
    with _MAKING.held(), contextlib.suppress(OSError), os.scandir(folder or tempfile.gettempdir()) as entries:
        for entry in entries:
            named = _NAME.fullmatch(entry.name)
            if named is None:
                continue
            with contextlib.suppress(OSError):
                if _is_left(entry, int(named[1])):
                    remove_tree(Path(entry.path))
                    swept += 1
    return swept


def _is_left(entry: os.DirEntry[str], maker: int) -> bool:
    """Whether it is a folder of this user that no program holds."""
    told = entry.stat(follow_symlinks=False)
    if not stat.S_ISDIR(told.st_mode) or told.st_uid != os.getuid():
        return False
    if maker != os.getpid() and lives(maker) and time.time() - told.st_mtime < _YOUNG_SECONDS:
        return False
    lock = _locked(Path(entry.path))
    if lock is None:
        return False
    os.close(lock)
    return True


def lives(process: int) -> bool:
    """Whether there is a process of this number, anybody's."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _locked(path: Path) -> int | None:
    """The open folder with its lock, or None when somebody else has it."""
    if sys.platform == "win32":
        return None
    import fcntl

    held = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(held)
        return None
    return held
