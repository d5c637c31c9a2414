"""Checks of the contents of folders."""

from __future__ import annotations

import time
from pathlib import Path


def becomes_empty(folder: Path, pattern: str = "*") -> bool:
    """Wait up to two minutes until no file matches the pattern; return whether it does.

    Removal may follow the response.
    """
    deadline = time.monotonic() + 120
    while any(folder.glob(pattern)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not any(folder.glob(pattern))
