"""Plug-in of Cura: open formats that Cura does not read, and check and repair the selected models, by meshhub."""

from __future__ import annotations

from typing import Any

from . import extension, reader


def getMetaData() -> dict[str, Any]:  # noqa: N802 - Cura calls it by this name
    """Return the formats, for the dialog that opens files."""
    return {
        "mesh_reader": [
            {"extension": suffix, "description": label}
            for label, suffixes in reader.FORMATS.items()
            for suffix in suffixes
        ]
    }


def register(app: Any) -> dict[str, Any]:
    """Return the parts of the plug-in."""
    return {"mesh_reader": reader.Reader(app), "extension": extension.Menu(app)}
