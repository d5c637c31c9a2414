"""Read the files of a slicer's project that are not part of 3MF, and note those that cannot be read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from meshhub.builtin_plugins.threemf.reading.package import Package
from meshhub.errors import UnreadableFile, quote
from meshhub.model.notes import note

Content = TypeVar("Content")


def read_project_file(
    package: Package, name: str, decode: Callable[[bytes], Content], *, risk: str = ""
) -> Content | None:
    """Return what `decode` makes of a file of the package; None for no such file, or with a note for a damaged one.

    Settings are not part of 3MF, so damaged ones do not make the model unreadable.

    Args:
        package: The project.
        name: Path of the file.
        decode: Raises UnreadableFile or the errors of msgspec for damaged content.
        risk: What may be wrong in the scene if the file is damaged.
    """
    path = package.find(name)
    if path is None:
        return None
    try:
        return decode(package.read(path))
    except (UnreadableFile, msgspec.MsgspecError, RecursionError):
        note_damaged(path, risk)
        return None


def note_damaged(name: str, risk: str = "") -> None:
    """Note that settings of a project have no meaning, and what may be wrong because of that."""
    note(
        "project_settings_damaged",
        f"settings of the slicer in {quote(name)} are damaged; {f'{risk}; ' if risk else ''}save the project again",
        name=quote(name),
    )
