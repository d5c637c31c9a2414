"""Slicers that are installed on this machine: where they are, their versions, and runs of their command lines."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, NamedTuple

from meshhub.errors import ConversionFailed, DiskFull
from meshhub.model.deadline import seconds_left
from meshhub.toolkit.programs import find_program

MAX_SECONDS = 600.0
"""Seconds for one model without a deadline; large models take a minute."""

MAX_OUTPUT_BYTES = 1 << 20
"""Bytes of what a slicer prints that are read; it prints some lines for each step."""

_MARGIN_S = 2.0
"""Seconds before the deadline at which a slicer is ended, so that the error names it."""

_VERSION_TIMEOUT_S = 20.0
"""Seconds to print a version; PrusaSlicer takes one."""

_VERSION = re.compile(r"(?:Slicer|Studio|Engine)(?: version)?[- ]v?(\d+(?:\.\d+)+)")


_FULL_DISK = re.compile(r"disk full|no space left", re.IGNORECASE)
_PROGRESS = re.compile(r"\[trace\]|=>|^Object name:")


class Slicer(NamedTuple):
    """Program that makes G-code.

    Attributes:
        id: Stable id.
        label: Name for people.
        names: Names on the search path of the program that opens the files of its command line.
        windows: Place below the folder of programs.
        console: Names of the program that slices without a window; default: the same.
        arguments: Arguments with which it prints its version.
    """

    id: str
    label: str
    names: tuple[str, ...]
    windows: str
    console: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ("--help",)

    def find(self) -> str | None:
        """Return the path of the program with a window; None if it is not installed."""
        return _find(self.names, self.label, self.windows)

    def find_console(self) -> str | None:
        """Return the path of the program that slices; None if it is not installed."""
        return _find(self.console or self.names, self.label, self.windows)

    def read_version(self) -> str:
        """Return the version of the program that slices; "" if it prints none."""
        program = self.find_console()
        return "" if program is None else _read_version(program, self.arguments)


SLICERS: dict[str, Slicer] = {
    slicer.id: slicer
    for slicer in (
        Slicer(
            "prusa",
            "PrusaSlicer",
            ("prusa-slicer", "PrusaSlicer"),
            r"Prusa3D\PrusaSlicer\prusa-slicer.exe",
            ("prusa-slicer-console", "prusa-slicer", "PrusaSlicer"),
        ),
        Slicer("orca", "OrcaSlicer", ("orca-slicer", "OrcaSlicer"), r"OrcaSlicer\orca-slicer.exe"),
        Slicer("bambu", "BambuStudio", ("bambu-studio", "BambuStudio"), r"Bambu Studio\bambu-studio.exe"),
        Slicer(
            "cura",
            "Cura",
            ("cura", "UltiMaker-Cura"),
            r"UltiMaker Cura\UltiMaker-Cura.exe",
            ("CuraEngine", "curaengine"),
            ("help",),
        ),
    )
}
"""Slicers by id."""


def run_slicer(label: str, command: Sequence[str], log: Path, environment: dict[str, str] | None = None) -> str:
    """Run a slicer until it ends, shortly before the deadline, or for MAX_SECONDS; then its process group is killed.

    Args:
        label: Name for people.
        command: Program and arguments.
        log: File that receives what it prints, in a temporary folder.
        environment: Variables in addition to those of this process.
    Returns:
        The end of what it printed.
    Raises:
        ConversionFailed: It took too long, ended with an error, or cannot be started.
        DiskFull: It ended because the disk is full.
    """
    left = seconds_left()
    limit = MAX_SECONDS if left is None else min(MAX_SECONDS, max(left - _MARGIN_S, left / 2))
    with log.open("wb") as output:
        status = _run(label, command, limit, output, {**os.environ, **(environment or {})})
    text = _read_end(log)
    if status and _FULL_DISK.search(text):
        raise DiskFull("the disk of the temporary folder is full; free some space and try again")
    if status:
        reason = f"was ended by signal {-status}" if status < 0 else f"failed with status {status}"
        raise ConversionFailed(f"{label} {reason}: {last_line(text)[:80]}; repair the model, or set other options")
    return text


def last_line(output: str) -> str:
    """Return the last line that a slicer printed, without its progress, and the name of the object."""
    lines = (line.strip() for line in reversed(output.splitlines()) if not _PROGRESS.search(line))
    return next(filter(None, lines), "it states no reason")


def _run(label: str, command: Sequence[str], limit_s: float, output: IO[bytes], environment: dict[str, str]) -> int:
    """Return the status with which the process ended."""
    # other systems find the children of a worker by its process group
    has_own_group = sys.platform == "linux"
    try:
        process: subprocess.Popen[bytes] = subprocess.Popen(  # noqa: S603
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=Path(output.name).parent,
            env=environment,
            process_group=0 if has_own_group else None,
        )
    except OSError as error:
        raise ConversionFailed(f"{label} cannot be started: {error.strerror or error}; install it again") from None
    try:
        return process.wait(limit_s)
    except subprocess.TimeoutExpired:
        raise ConversionFailed(
            f"{label} took longer than {limit_s:.0f} s; allow more time, or simplify the model"
        ) from None
    finally:
        # also its children, whether it ended or not
        with contextlib.suppress(OSError):
            if has_own_group:
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
        process.wait()


def _read_end(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - MAX_OUTPUT_BYTES))
        return file.read(MAX_OUTPUT_BYTES).decode("utf-8", "replace")


@functools.cache
def _read_version(program: str, arguments: tuple[str, ...]) -> str:
    try:
        done = subprocess.run(  # noqa: S603
            [program, *arguments],
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_VERSION_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    match = _VERSION.search((done.stdout + done.stderr).decode("utf-8", "replace"))
    return match[1] if match else ""


def _find(names: tuple[str, ...], label: str, windows: str) -> str | None:
    on_path = next(filter(None, map(find_program, names)), None)
    if on_path is not None:
        return on_path
    if sys.platform == "win32":
        program = Path(os.environ.get("PROGRAMFILES", ""), windows)
        places = [*(program.with_name(f"{name}.exe") for name in names), program]
    else:
        places = [Path("/Applications", f"{label}.app/Contents/MacOS", name) for name in names]
    return next((str(place) for place in places if place.is_file()), None)
