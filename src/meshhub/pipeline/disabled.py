"""Plug-ins that the user has disabled: a variable of the environment, and a file that the command line writes."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable
from pathlib import Path

import platformdirs

log = logging.getLogger(__name__)

VARIABLE = "MESHHUB_DISABLED_PLUGINS"
"""Variable of the environment with names of plug-ins, separated by commas."""


def list_path() -> Path:
    """Return the file of disabled plug-ins in the user's configuration folder, with one name per line."""
    return platformdirs.user_config_path("meshhub", appauthor=False) / "disabled-plugins.txt"


def read_disabled() -> frozenset[str]:
    """Return the names of the disabled plug-ins. A file that cannot be read disables no plug-in, with a warning."""
    return split_names(os.environ.get(VARIABLE, "")) | read_list()


def read_list() -> frozenset[str]:
    """Return the names in the file."""
    try:
        return split_names(list_path().read_text("utf-8"))
    except FileNotFoundError:
        return frozenset()
    except (OSError, UnicodeDecodeError) as error:
        log.warning("the list of disabled plug-ins cannot be read, so it disables none: %s: %s", list_path(), error)
        return frozenset()


def write_list(names: Iterable[str]) -> None:
    """Replace the names in the file. Raises OSError."""
    path = list_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    # another process may read it meanwhile
    staged = path.with_name(f"{path.name}.{os.getpid()}")
    staged.write_text("".join(f"{name}\n" for name in sorted(names)), "utf-8")
    staged.replace(path)


def split_names(text: str) -> frozenset[str]:
    """Return the names in a text, which commas or spaces separate."""
    return frozenset(name for name in re.split(r"[,\s]+", text) if name)
