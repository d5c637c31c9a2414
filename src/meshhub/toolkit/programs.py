"""Programs on the search path."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def find_program(name: str) -> str | None:
    """Return the path of a program on the search path; None if there is none.

    Windows would search the current folder first: models arrive there from anywhere, and a program may be among them.
    """
    if sys.platform != "win32":
        return shutil.which(name)
    places = (Path(folder, f"{name}.exe") for folder in os.get_exec_path())
    return next((str(place) for place in places if place.is_absolute() and place.is_file()), None)
