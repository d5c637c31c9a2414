"""Colors, normals and texture coordinates of face sets (ISO/IEC 19775-1, 11.2.1 and 11.2.2)."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from meshhub import note
from meshhub.model.scene import Float64
from meshhub_x3d.fields import Index, read_flag, read_floats, read_integers
from meshhub_x3d.nodes import Node
from meshhub_x3d.surfaces import Surface


class Corners(NamedTuple):
    """What attributes may refer to at each corner of the polygons.

    vertices: row of the coordinates
    polygons: number of the polygon
    places: place in `coordIndex`; None for nodes whose attributes have no index of their own
    """

    vertices: Index
    polygons: Index
    places: Index | None = None


class _Attribute(NamedTuple):
    """Field of a face set with values, and those that state where they apply."""

    name: str
    field: str
    kinds: dict[str, tuple[str, int]]
    index_field: str
    flag: str


_ATTRIBUTES = (
    _Attribute("colors", "color", {"Color": ("color", 3), "ColorRGBA": ("color", 4)}, "colorIndex", "colorPerVertex"),
    _Attribute("normals", "normal", {"Normal": ("vector", 3)}, "normalIndex", "normalPerVertex"),
    _Attribute("uv", "texCoord", {"TextureCoordinate": ("point", 2)}, "texCoordIndex", ""),
)


def add_attributes(surface: Surface, node: Node, corners: Corners) -> Surface:
    """Return a surface with the attributes of its node; those that do not fit are left out with a note."""
    attributes = dict(surface.attributes)
    for attribute in _ATTRIBUTES:
        source = _find(node, attribute)
        if source is None:
            continue
        values = read_floats(source, *attribute.kinds[source.kind])
        rows = _find_rows(node, attribute, corners, len(values))
        if rows is not None:
            attributes[attribute.name] = (_with_alpha(values) if attribute.name == "colors" else values, rows)
        elif len(values):
            note("bad_attribute", f"dropped {attribute.name} of a face set: they do not fit to its faces")
    return replace(surface, attributes=attributes)


def has_colors(node: Node) -> bool:
    """Return whether a geometry has colors of its own, which replace that of the material."""
    return _find(node, _ATTRIBUTES[0]) is not None


def _find(node: Node, attribute: _Attribute) -> Node | None:
    """Return the node with the values of an attribute; of several layers of textures, the first."""
    layers = node.find(attribute.field, "MultiTextureCoordinate")
    return (node if layers is None else layers).find(attribute.field, *attribute.kinds)


def _find_rows(node: Node, attribute: _Attribute, corners: Corners, count: int) -> Index | None:
    """Return the row of the values at each corner; None if there are too few values."""
    index = read_integers(node, attribute.index_field) if corners.places is not None else np.empty(0, np.int64)
    per_vertex = not attribute.flag or read_flag(node, attribute.flag, True)
    places = corners.places if per_vertex else corners.polygons
    if len(index) and places is not None:
        rows = index[places] if len(places) == 0 or places.max() < len(index) else None
    else:
        rows = corners.vertices if per_vertex else corners.polygons
    if rows is None or (len(rows) and not (rows.min() >= 0 and rows.max() < count)):
        return None
    return rows


def _with_alpha(colors: Float64) -> Float64:
    return colors if colors.shape[1] == 4 else np.column_stack([colors, np.ones(len(colors))])
