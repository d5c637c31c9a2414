"""What is in folders."""

from __future__ import annotations

import time
from pathlib import Path


def emptied(folder: Path, pattern: str = "*") -> bool:
    """Whether all that is named so is soon gone from a folder: on a busy machine an answer may come before."""
    limit = time.monotonic() + 30
    while any(folder.glob(pattern)) and time.monotonic() < limit:
        time.sleep(0.02)
    return not any(folder.glob(pattern))
