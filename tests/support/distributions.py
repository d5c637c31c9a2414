"""Fake installed distributions: metadata in a folder of `sys.path`."""

from __future__ import annotations

from pathlib import Path


def install(folder: Path, name: str, version: str = "1.2", **entry_points: str) -> None:
    """Write the metadata of a distribution whose entry points are plug-ins, by name."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = "".join(f"{point} = {value}\n" for point, value in entry_points.items())
    (info / "entry_points.txt").write_text(f"[meshhub]\n{lines}")
