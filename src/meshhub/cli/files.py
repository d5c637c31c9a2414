"""Where commands read from and write to: paths, folders, and `-` for the standard streams."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath

import click

from meshhub.source import Source

STREAM = "-"


def read_from(path: str) -> Source:
    """The source behind a path or `-`."""
    if path == STREAM:
        if sys.stdin is None:
            raise click.UsageError("standard input is closed; name a file")
        return Source.from_bytes(sys.stdin.buffer.read(), "standard input")
    return Source.from_path(path)


def ended_in_order() -> None:
    """Let a request to end, and a terminal that closes, be like Ctrl-C: what is half-written is removed."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        # what somebody around has set, such as nohup, stays
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)


def deadline(seconds: float) -> float | None:
    """The deadline that `--timeout` means; 0 is none."""
    if not 0 <= seconds < 1e9:
        raise click.BadParameter("must be a number of seconds, 0 for no deadline", param_hint="--timeout")
    return seconds or None


def expanded(paths: Iterable[str], extensions: frozenset[str]) -> Iterator[tuple[Path, PurePath]]:
    """Each input file and the folder it goes to below the output folder; a folder stands for its model files."""
    for named in paths:
        path = Path(named)
        if not path.is_dir():
            yield path, PurePath()
            continue
        found = sorted(one for one in path.rglob("*") if one.suffix.lower() in extensions and _shown(one, path))
        if not found:
            raise click.UsageError(f"{named} is a folder without a model file in it")
        for one in found:
            yield one, one.relative_to(path).parent


def _shown(file: Path, folder: Path) -> bool:
    """Whether it is a file that a folder shows: macOS leaves a `._part.stl` beside each `part.stl` it copies."""
    return file.is_file() and not any(name.startswith(".") for name in file.relative_to(folder).parts)


def unique(name: PurePath, taken: set[str]) -> PurePath:
    """The name, or `a-2.3mf` when `a.3mf` is taken; letter case does not make a difference."""
    made, number = name, 1
    while str(made).casefold() in taken:
        number += 1
        made = name.with_name(f"{name.stem}-{number}{name.suffix}")
    taken.add(str(made).casefold())
    return made
