"""Open an address: in a window of its own where Chromium, Chrome or Edge is installed, else in the default browser."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import webbrowser
from collections.abc import Iterator
from pathlib import Path

from meshhub.toolkit.programs import find_program

_NAMES = (
    "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "microsoft-edge", "microsoft-edge-stable",
    "msedge", "chrome",
)  # fmt: skip
"""Programs on the search path that know `--app`."""

_MACOS_PROGRAMS = (
    "Google Chrome.app/Contents/MacOS/Google Chrome",
    "Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    "Chromium.app/Contents/MacOS/Chromium",
)
_WINDOWS_PROGRAMS = (r"Google\Chrome\Application\chrome.exe", r"Microsoft\Edge\Application\msedge.exe")

_PROGRAM_FOLDERS = ("PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA")
"""Variables of Windows with the folders of programs."""

_WINDOW_SIZE = "1360,860"
"""Pixels of a new window: the panel and the view beside it, on the screen of a laptop."""


def open_window(url: str) -> bool:
    """Open an address; return False on a machine without a display."""
    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        # a browser for text would take the terminal
        return False
    program = next(_list_programs(), None)
    if program is None:
        return webbrowser.open(url)
    command = [program, f"--app={url}", f"--window-size={_WINDOW_SIZE}"]
    process = subprocess.Popen(  # noqa: S603
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    threading.Thread(target=_open_elsewhere_if_failed, args=(process, url), daemon=True).start()
    return True


def _open_elsewhere_if_failed(process: subprocess.Popen[bytes], url: str) -> None:
    """Open the default browser if a window of its own fails, as Chromium does for root."""
    if process.wait() > 0:
        webbrowser.open(url)


def _list_programs() -> Iterator[str]:
    for name in _NAMES:
        if (path := find_program(name)) is not None:
            yield path
    roots = [os.environ.get(name) for name in _PROGRAM_FOLDERS] if sys.platform == "win32" else ["/Applications"]
    names = _WINDOWS_PROGRAMS if sys.platform == "win32" else _MACOS_PROGRAMS
    places = (Path(root, name) for root in roots if root for name in names)
    yield from (str(place) for place in places if place.is_file())
