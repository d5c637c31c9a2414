"""Where commands read from and write to: paths, folders, and `-` for the standard streams."""

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
from meshhub.model.source import Source

STREAM = "-"


def read_from(path: str) -> Source:
    """The source behind a path or `-`."""
    if path == STREAM:
        if sys.stdin is None:
            raise click.UsageError("standard input is closed; name a file")
        return Source.from_bytes(sys.stdin.buffer.read(), "standard input")
    return Source.from_path(path)


def worker_log() -> Kind | None:
    """How workers log: with --verbose to standard error, with the tracebacks of plug-ins."""
    return "text" if click.get_current_context().find_root().params.get("verbose") else None


def bounded_hooks(limit: float | None, method: str | None = "fork") -> HookProcess:
    """Where third parties' sniffers and hooks run, each for `limit` seconds at most; `method` as of `Isolated`."""
    return HookProcess(sniff_s=limit, hook_s=limit, method=method, log=worker_log())


class Ended(KeyboardInterrupt):
    """A signal asked the command to end; like Ctrl-C, it removes what is half-written."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def end_on(*names: str) -> None:
    """Raise Ended at the named signals, which end a program by default."""
    for name in names:
        number = getattr(signal, name, None)
        # A handler that the parent set stays, for example that of nohup.
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end)


def _end(number: int, _: FrameType | None) -> None:
    raise Ended(number)


def identity(path: str | Path) -> tuple[int, int] | None:
    """Return the device and number of the file behind a path or `-`; None without a file."""
    try:
        found = os.fstat(0) if path == STREAM else Path(path).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def deadline(seconds: float) -> float | None:
    """The deadline that `--timeout` means; 0 is none."""
    if not 0 <= seconds < 1e9:
        raise click.BadParameter("must be a number of seconds, 0 for no deadline", param_hint="--timeout")
    return seconds or None


def expanded(paths: Iterable[str], extensions: frozenset[str], output_dir: Path) -> Iterator[tuple[Path, PurePath]]:
    """Each input file and the folder it goes to below the output folder; a folder stands for its model files.

    An output folder below an input folder is left out: its files come from an earlier run.
    """
    results = output_dir.resolve()
    for named in paths:
        path = Path(named)
        if not path.is_dir():
            yield path, PurePath()
            continue
        found = sorted(one for one in path.rglob("*") if one.suffix.lower() in extensions and _shown(one, path))
        if path.resolve() in results.parents:
            found = [one for one in found if not one.parent.resolve().is_relative_to(results)]
        if not found:
            raise click.UsageError(f"{named} is a folder without a model file in it")
        for one in found:
            yield one, one.relative_to(path).parent


def _shown(file: Path, folder: Path) -> bool:
    """Whether it is a file that a folder shows: macOS leaves a `._part.stl` beside each `part.stl` it copies."""
    return file.is_file() and not any(name.startswith(".") for name in file.relative_to(folder).parts)


def unique(path: Path, taken: set[str]) -> Path:
    """Return the path, or `a-2.3mf` when `a.3mf` is taken, for file systems of every kind and through links."""
    chosen, number = path, 1
    while (key := _key(chosen)) in taken:
        number += 1
        chosen = path.with_name(f"{path.stem}-{number}{path.suffix}")
    taken.add(key)
    return chosen


def _key(path: Path) -> str:
    """Return the text that paths share if any file system may take them for one."""
    return unicodedata.normalize("NFC", os.path.realpath(path).casefold())
