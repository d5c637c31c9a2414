"""The program `meshhub`, which runs in a process of its own, so that Cura's Python needs no packages."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

from UM.Application import Application

PREFERENCE = "meshhub/command"
"""Command that runs the program, with its path if it is not in PATH."""

TIMEOUT_S = 600
"""Seconds for one command."""

OF_CURA = ("PYTHONHOME", "PYTHONPATH", "LD_LIBRARY_PATH")
"""Variables by which an AppImage of Cura leads other programs to its own libraries."""


class MeshhubFailed(Exception):
    """meshhub ended with an error; the message is for people."""


def run_meshhub(*words: str) -> tuple[str, str]:
    """Return the standard output of a command, and its report for people. Raises MeshhubFailed."""
    command = Application.getInstance().getPreferences().getValue(PREFERENCE)
    program = [command] if Path(command).is_file() else shlex.split(command)
    kept = {name: value for name, value in os.environ.items() if "APPDIR" not in os.environ or name not in OF_CURA}
    try:
        done = subprocess.run(  # noqa: S603
            [*program, *words],
            capture_output=True,
            encoding="utf-8",
            timeout=TIMEOUT_S,
            check=False,
            env=kept,
            # no console on Windows
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except OSError:
        raise MeshhubFailed(
            f"{command!r} was not found: install meshhub, and set its path in Extensions > meshhub"
        ) from None
    except subprocess.TimeoutExpired:
        raise MeshhubFailed(f"meshhub took longer than {TIMEOUT_S} s") from None
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"meshhub ended with status {done.returncode}"]
        raise MeshhubFailed(lines[-1].split(": ", 1)[-1])
    return done.stdout, done.stderr
