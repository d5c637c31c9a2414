"""Files of jobs: inputs and results, by id of the job and token of the run."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol

from meshhub.engine.scratch import remove_tree

ORPHAN_AGE_S = 3600.0
"""Seconds after which files without a job are removed; inputs are stored before the row of their job. """


class JobFiles(Protocol):
    """Inputs `in/<job>/` and results `out/<job>/<token>` of jobs; safe to call from several threads."""

    @property
    def folder(self) -> Path | None:
        """Folder for temporary files of runs, from which a result can be moved; None: that of the system."""

    def free_bytes(self) -> int | None:
        """Return the free space; None if it is not limited."""

    def check(self) -> None:
        """Check that the files can be used. Raises JobStoreUnavailable within seconds."""

    def add_inputs(self, job_id: str, paths: Sequence[Path]) -> None:
        """Store the inputs of a job, in order; the paths are moved or copied."""

    def fetch_inputs(self, job_id: str, count: int, folder: Path) -> list[Path]:
        """Return paths of the inputs, which do not change during a run; they may be in `folder`."""

    def add_result(self, job_id: str, token: str, path: Path) -> None:
        """Store the result of a run; the path is moved or copied."""

    def read_result(self, job_id: str, token: str, start: int, size: int) -> bytes:
        """Return a part of a result. Raises FileNotFoundError."""

    def remove_inputs(self, job_id: str) -> None:
        """Remove the inputs of a job that has ended."""

    def remove_result(self, job_id: str, token: str) -> None:
        """Remove the result of a run whose token is stale."""

    def remove_results(self, job_id: str, *, keep: str | None = None) -> None:
        """Remove the results of a job, except that of the run with the token `keep`."""

    def sweep(self, select_known: Callable[[Iterable[str]], set[str]]) -> int:
        """Remove files older than ORPHAN_AGE_S whose jobs do not exist; return the number of jobs."""


class LocalJobFiles:
    """Files of jobs in a folder of this machine."""

    def __init__(self, folder: Path, *, orphan_age_s: float = ORPHAN_AGE_S) -> None:
        """Use a folder, which is created at the first use."""
        self._root = folder
        self._orphan_age_s = orphan_age_s

    @property
    def folder(self) -> Path:
        """Folder for temporary files of runs, on the file system of the results."""
        return self._create("work")

    def free_bytes(self) -> int:
        """Return the free space."""
        return shutil.disk_usage(self._create()).free

    def check(self) -> None:
        """Do nothing: the files are on this machine."""

    def add_inputs(self, job_id: str, paths: Sequence[Path]) -> None:
        """Move the inputs of a job into its folder, in order."""
        folder = self._create("in", job_id)
        for number, path in enumerate(paths):
            _move(path, folder / str(number))
        _sync(folder)

    def fetch_inputs(self, job_id: str, count: int, folder: Path) -> list[Path]:  # noqa: ARG002 - they are local
        """Return the paths of the inputs."""
        return [self._root / "in" / job_id / str(number) for number in range(count)]

    def add_result(self, job_id: str, token: str, path: Path) -> None:
        """Move the result of a run into the folder of its job."""
        folder = self._create("out", job_id)
        _move(path, folder / token)
        _sync(folder)

    def read_result(self, job_id: str, token: str, start: int, size: int) -> bytes:
        """Return a part of a result. Raises FileNotFoundError."""
        with (self._root / "out" / job_id / token).open("rb") as file:
            file.seek(start)
            return file.read(size)

    def remove_inputs(self, job_id: str) -> None:
        """Remove the inputs of a job that has ended."""
        remove_tree(self._root / "in" / job_id)

    def remove_result(self, job_id: str, token: str) -> None:
        """Remove the result of a run whose token is stale."""
        (self._root / "out" / job_id / token).unlink(missing_ok=True)

    def remove_results(self, job_id: str, *, keep: str | None = None) -> None:
        """Remove the results of a job, except that of the run with the token `keep`."""
        folder = self._root / "out" / job_id
        if keep is None:
            remove_tree(folder)
            return
        with contextlib.suppress(OSError):
            for path in folder.iterdir():
                if path.name != keep:
                    path.unlink(missing_ok=True)

    def sweep(self, select_known: Callable[[Iterable[str]], set[str]]) -> int:
        """Remove the folders without a job, except young ones; return the number of jobs."""
        ages: dict[str, float] = {}
        for parent in ("in", "out"):
            with contextlib.suppress(FileNotFoundError), os.scandir(self._root / parent) as entries:
                for entry in entries:
                    with contextlib.suppress(OSError):
                        age = time.time() - entry.stat(follow_symlinks=False).st_mtime
                        ages[entry.name] = min(age, ages.get(entry.name, age))
        old = [job_id for job_id, age in ages.items() if age >= self._orphan_age_s]
        orphans = set(old) - select_known(old)
        for job_id in orphans:
            self.remove_inputs(job_id)
            self.remove_results(job_id)
        return len(orphans)

    def _create(self, *names: str) -> Path:
        path = self._root
        # mkdir with `parents` would not set the mode of the parents, but the files belong to callers
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in names:
            path /= name
            path.mkdir(mode=0o700, exist_ok=True)
        return path


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _move(source: Path, target: Path) -> None:
    """Move a file, also to another file system; a killed program leaves no incomplete target.

    The content reaches the disk first, because the row that follows survives a power failure, so its files must too.
    """
    try:
        _sync(source)
        source.replace(target)
    except OSError:
        partial = target.with_name(f"{target.name}.partial")
        with source.open("rb") as reader, partial.open("xb") as writer:
            shutil.copyfileobj(reader, writer, 1 << 20)
            writer.flush()
            os.fsync(writer.fileno())
        partial.replace(target)
        source.unlink()


def _sync(path: Path) -> None:
    """Flush a file, or the list of files of a folder, to the disk."""
    if os.name == "nt" and path.is_dir():
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
