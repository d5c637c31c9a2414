"""Temporary folders, and the removal of those that a killed program left.

A folder is locked while its program runs. However the program ends, the system releases the lock, and the next program
that starts removes folders without a lock.
"""

# why this way: docs/decisions/0014-leftovers.md
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

_MIN_AGE_S = 60.0
"""Seconds after which a folder without a lock counts as abandoned; a program in another container may be about to lock
a younger one.
"""

_CREATING = ForkLock(2)
"""Held while a folder is created and locked, so that a sweep in another thread does not remove it in between. """

_LOCKS: set[int] = set()
"""Descriptors of the locks of this process. A forked child closes them: only the creator of a folder keeps its lock.
"""


def _close_parents_locks() -> None:
    for lock in _LOCKS:
        os.close(lock)
    _LOCKS.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_parents_locks)


class Scratch:
    """Temporary folder that only this user can open."""

    def __init__(self, kind: str, folder: str | Path | None = None) -> None:
        """Create a folder.

        Args:
            kind: "job" or "service".
            folder: Folder in which to create it (default: that of the system).
        """
        self._process = os.getpid()
        with _CREATING.held():
            self.path = Path(tempfile.mkdtemp(prefix=f"meshhub-{kind}-{self._process}-", dir=folder))
            try:
                self._lock = _lock_folder(self.path)
            except OSError:
                # too many files are open; without the lock, another program's sweep could remove the folder while this
                # program runs
                self.path.rmdir()
                raise
            if self._lock is not None:
                _LOCKS.add(self._lock)

    def remove(self) -> None:
        """Remove the folder with its content. In a forked child, leave the folder of the parent."""
        if self._process != os.getpid():
            return
        remove_tree(self.path)
        if self._lock is not None:
            _LOCKS.discard(self._lock)
            os.close(self._lock)
            self._lock = None


def remove_tree(root: Path) -> None:
    """Remove a folder with its content, of any depth and with any permissions; never raises.

    `shutil.rmtree` needs a stack frame and an open file per level, so a hostile depth exhausts both. This function
    moves deeper folders up to the root first, so no path grows long.
    """
    if sys.platform == "win32":
        shutil.rmtree(root, ignore_errors=True)
        return
    if root.is_symlink():
        # keep the folder to which the symlink points
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
            _allow_access(folder)
            for entry in list(folder.iterdir()):
                with contextlib.suppress(OSError):
                    if not stat.S_ISDIR(entry.lstat().st_mode):
                        entry.unlink()
                        continue
                    # moving a folder needs write permission for it
                    _allow_access(entry)
                    folders.append(entry.rename(root / f"{prefix}{next(numbers)}"))
    for folder in reversed(emptied):
        with contextlib.suppress(OSError):
            folder.rmdir()


def _allow_access(folder: Path) -> None:
    if folder.lstat().st_mode & stat.S_IRWXU != stat.S_IRWXU:
        folder.chmod(stat.S_IRWXU)


def sweep(folder: str | Path | None = None) -> int:
    """Remove the folders that killed programs of this user left; return their number.

    Args:
        folder: Folder in which to look for them (default: that of the system).
    """
    if sys.platform == "win32":
        return 0
    swept = 0
    with _CREATING.held(), contextlib.suppress(OSError), os.scandir(folder or tempfile.gettempdir()) as entries:
        for entry in entries:
            match = _NAME.fullmatch(entry.name)
            if match is None:
                continue
            with contextlib.suppress(OSError):
                if _is_left_over(entry, int(match[1])):
                    remove_tree(Path(entry.path))
                    swept += 1
    return swept


def _is_left_over(entry: os.DirEntry[str], process: int) -> bool:
    """Return whether an entry is a folder of this user without a lock; `process` created it."""
    status = entry.stat(follow_symlinks=False)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        return False
    if process != os.getpid() and is_running(process) and time.time() - status.st_mtime < _MIN_AGE_S:
        return False
    lock = _lock_folder(Path(entry.path))
    if lock is None:
        return False
    os.close(lock)
    return True


def is_running(process: int) -> bool:
    """Return whether a process with this id exists, of any user."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _lock_folder(path: Path) -> int | None:
    """Open and lock a folder; return the descriptor, or None if another process holds the lock."""
    if sys.platform == "win32":
        return None
    import fcntl

    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
