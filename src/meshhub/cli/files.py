"""Inputs and outputs of commands: paths, folders, `-` for the standard streams, and the signals that end a command."""

from __future__ import annotations

import os
import signal
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath
from types import FrameType

import click

from meshhub.engine.hook_process import HookProcess
from meshhub.engine.logs import Kind
from meshhub.errors import MeshhubError
from meshhub.model.source import HEAD_BYTES, Source
from meshhub.toolkit.archive import Archive, ArchiveLimits

STREAM = "-"
"""The path that stands for standard input or output."""

_MODEL_OF_3MF = "3D/3dmodel.model"
"""Entry of a 3MF file that names the program that wrote it."""

_HEAD_LIMITS = ArchiveLimits(max_total_bytes=1 << 62, max_entry_bytes=1 << 62, ratio_after=1 << 62)
"""Bytes; sizes are not limited, because only the head of one entry is inflated."""

MAX_TIMEOUT_S = 1e9
"""Seconds; clocks and polls of the system overflow not far above."""


def read_from(path: str) -> Source:
    """Return the source behind a path or `-`."""
    if path == STREAM:
        if sys.stdin is None:
            raise click.UsageError("standard input is closed; name a file")
        return Source.from_bytes(sys.stdin.buffer.read(), "standard input")
    return Source.from_path(path)


def worker_log() -> Kind | None:
    """Return how workers log: with --verbose to standard error, with the tracebacks of plug-ins."""
    return "text" if click.get_current_context().find_root().params.get("verbose") else None


def bounded_hooks(timeout_s: float | None, method: str | None = "fork") -> HookProcess:
    """Return a process for third parties' sniffers and hooks, each limited to `timeout_s` seconds.

    `method` is the start method of `Isolated`.
    """
    return HookProcess(sniff_s=timeout_s, hook_s=timeout_s, method=method, log=worker_log())


class Ended(KeyboardInterrupt):
    """A signal that ends the command; like Ctrl-C, it removes unfinished files."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def end_on(*names: str) -> None:
    """Raise Ended at the named signals, which end a program by default."""
    for name in names:
        number = getattr(signal, name, None)
        # a handler that the parent set stays, for example that of nohup
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end)


def _end(number: int, _: FrameType | None) -> None:
    raise Ended(number)


def identity(path: str | Path) -> tuple[int, int] | None:
    """Return the device and number of the file behind a path or `-`; None without a file."""
    try:
        status = os.fstat(0) if path == STREAM else Path(path).stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def parse_timeout(seconds: float) -> float | None:
    """Return the limit that `--timeout` sets; None for 0, which means no limit."""
    if not 0 <= seconds < MAX_TIMEOUT_S:
        raise click.BadParameter("must be a number of seconds; 0 for no limit", param_hint="--timeout")
    return seconds or None


def expand_inputs(
    paths: Iterable[str], extensions: frozenset[str], output_dir: Path
) -> Iterator[tuple[Path, PurePath]]:
    """Yield each input file with its folder below the output folder; a folder stands for its model files.

    An output folder inside an input folder is left out: its files come from an earlier run.
    """
    results = output_dir.resolve()
    for name in paths:
        path = Path(name)
        if not path.is_dir():
            yield path, PurePath()
            continue
        files = sorted(
            file for file in path.rglob("*") if file.suffix.lower() in extensions and _is_visible(file, path)
        )
        if path.resolve() in results.parents:
            files = [file for file in files if not file.parent.resolve().is_relative_to(results)]
        if not files:
            raise click.UsageError(f"{name} is a folder without a model file in it")
        for file in files:
            yield file, file.relative_to(path).parent


def _is_visible(file: Path, folder: Path) -> bool:
    """Return whether a file is not hidden: macOS leaves a `._part.stl` beside each `part.stl` that it copies."""
    return file.is_file() and not any(name.startswith(".") for name in file.relative_to(folder).parts)


def make_unique(path: Path, taken: set[str]) -> Path:
    """Return the path, or `a-2.3mf` if `a.3mf` is taken, for file systems of every kind and through links."""
    candidate, number = path, 1
    while (key := _comparison_key(candidate)) in taken:
        number += 1
        candidate = path.with_name(f"{path.stem}-{number}{path.suffix}")
    taken.add(key)
    return candidate


def is_own_output(path: Path) -> bool:
    """Return whether meshhub wrote a file: every built-in writer puts the name near the beginning.

    A file that cannot be read, or a damaged archive, counts as written by another program.
    """
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        if head.startswith(b"PK"):
            with Archive(path, _HEAD_LIMITS) as archive:
                model = archive.find(_MODEL_OF_3MF)
                head = archive.read_head(model, HEAD_BYTES) if model is not None else b""
    except (OSError, MeshhubError):
        return False
    return b"meshhub" in head


def leads_elsewhere(target: Path, folder: Path) -> bool:
    """Return whether links lead from a derived output to an existing file that the command did not name.

    A link to a file that does not exist yet is followed if it stays in the folder.
    """
    if not os.path.lexists(target):
        return False
    return (target.is_symlink() and target.exists()) or not target.resolve().is_relative_to(folder.resolve())


def _comparison_key(path: Path) -> str:
    """Return a text that is equal for two paths if any file system may treat them as one file."""
    return unicodedata.normalize("NFC", os.path.realpath(path).casefold())
