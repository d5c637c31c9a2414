"""Colors of AMF: of materials, objects, volumes, vertices and triangles, as fractions of sRGB."""

from __future__ import annotations

import math
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import NDArray

from meshhub import Material, note
from meshhub.model.scene import Color
from meshhub.toolkit.columns import Irregular
from meshhub.toolkit.names import single_line
from meshhub_amf.tags import Index, Tags

WHITE: Color = (1.0, 1.0, 1.0, 1.0)


class Palette:
    """Materials of the file and of its colors; equal ones are shared.

    Attributes:
        materials: Materials of the scene.
    """

    def __init__(self, root: Element) -> None:
        """Collect the <material> elements of a file."""
        self.materials: list[Material] = []
        self._index: dict[tuple[str, Color], int] = {}
        self._by_id = {element.get("id", ""): element for element in root.findall("material")}

    def add(self, name: str, color: Color) -> int:
        """Return the index of a material with a name and a color."""
        if (name, color) not in self._index:
            self._index[name, color] = len(self.materials)
            self.materials.append(Material(name, color))
        return self._index[name, color]

    def resolve(self, volume: Element, owner: Element) -> tuple[str, Color] | None:
        """Return name and color of the faces of a volume, or None: volume before object before material."""
        material = self._by_id.get(volume.get("materialid", ""))
        name = ""
        if material is not None:
            name = single_line(material.findtext("metadata[@type='name']") or "")
        for element in (volume, owner, material):
            color = None if element is None else parse_color(element.find("color"))
            if color is not None:
                return name, color
        return (name, WHITE) if name else None


def parse_color(element: Element | None) -> Color | None:
    """Return the color of a <color> element; None without one, or for a formula, with a note."""
    if element is None:
        return None
    try:
        values = [float(element.findtext(name) or default) for name, default in zip("rgba", "0001", strict=True)]
    except ValueError:
        values = [math.nan]
    if not all(map(math.isfinite, values)):
        _note_formula()
        return None
    red, green, blue, alpha = (min(max(value, 0.0), 1.0) for value in values)
    return red, green, blue, alpha


def color_table(tags: Tags, owner: Index) -> NDArray[np.uint8] | None:
    """Return the colors of repeated elements (n, 5): sRGB bytes and a flag for presence; None without colors."""
    if not tags.has("color"):
        return None
    try:
        fractions, _ = tags.table(owner, "color", "r g b a")
    except Irregular:
        _note_formula()
        return None
    is_present = np.asarray(np.isfinite(fractions[:, :3]).all(axis=1))
    if not is_present.any():
        return None
    fractions[:, 3] = np.where(np.isnan(fractions[:, 3]), 1.0, fractions[:, 3])
    rgba: NDArray[Any] = np.rint(np.clip(np.where(is_present[:, None], fractions, 1.0), 0, 1) * 255)
    return np.column_stack([rgba, is_present]).astype(np.uint8)


def _note_formula() -> None:
    note("color_formula_left_out", "dropped colors that are formulas; only numbers from 0 to 1 are read")
