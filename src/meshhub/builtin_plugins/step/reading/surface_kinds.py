"""Kinds of the surfaces of kernel faces, and a color for each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from meshhub.model.scene import Color
from meshhub.toolkit.opencascade import explore

OTHER_KIND = "free-form"
"""Kind of Bézier and B-spline surfaces, of offsets, and of surfaces that the kernel does not name."""

_KINDS = {
    "GeomAbs_Plane": "plane",
    "GeomAbs_Cylinder": "cylinder",
    "GeomAbs_Cone": "cone",
    "GeomAbs_Sphere": "sphere",
    "GeomAbs_Torus": "torus",
    "GeomAbs_SurfaceOfExtrusion": "extrusion",
    "GeomAbs_SurfaceOfRevolution": "revolution",
}

_COLOR_CODES = {
    "plane": "a9bacb",
    "cylinder": "4a8fd6",
    "cone": "e39b35",
    "sphere": "d75a5c",
    "torus": "58ad6a",
    "extrusion": "cdb94a",
    "revolution": "4fb3b3",
    OTHER_KIND: "9a74c6",
}

SURFACE_COLORS: dict[str, Color] = {
    kind: (int(code[:2], 16) / 255, int(code[2:4], 16) / 255, int(code[4:], 16) / 255, 1.0)
    for kind, code in _COLOR_CODES.items()
}
"""Color of each kind, in sRGB."""


def surface_kind(surface: Any) -> str:
    """Return the kind of an adapted surface of the kernel."""
    return _KINDS.get(surface.GetType().name, OTHER_KIND)


def iterate_surface_colors(shape: Any) -> Iterator[tuple[Any, Color]]:
    """Yield each face of a shape with the color of its kind."""
    from OCP.BRepAdaptor import BRepAdaptor_Surface
    from OCP.TopAbs import TopAbs_FACE
    from OCP.TopoDS import TopoDS

    for face in explore(shape, TopAbs_FACE):
        yield face, SURFACE_COLORS[surface_kind(BRepAdaptor_Surface(TopoDS.Face(face), False))]
