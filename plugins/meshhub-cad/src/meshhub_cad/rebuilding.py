"""Solids of a design, built by OpenCASCADE."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from meshhub_cad.features import Body, Design, Feature, Shape
from meshhub_cad.prisms import Outline, Point

_MAX_CORNER_RATIO = 0.499
"""Largest corner radius as a share of the shorter side."""


def list_row(x: float, y: float, dx: float, dy: float, count: int, spacing: float) -> list[list[float]]:
    """Return places at equal distances on a line."""
    return [[x + k * spacing * dx, y + k * spacing * dy] for k in range(count)]


def list_grid(x: float, y: float, columns: int, rows: int, dx: float, dy: float) -> list[list[float]]:
    """Return places in columns and rows."""
    return [[x + i * dx, y + j * dy] for i in range(columns) for j in range(rows)]


def list_circle(x: float, y: float, first: float, count: int, diameter: float) -> list[list[float]]:
    """Return places at equal angles on a circle; `first` in degrees."""
    angles = (math.radians(first + 360 * k / count) for k in range(count))
    return [[x + diameter / 2 * math.cos(angle), y + diameter / 2 * math.sin(angle)] for angle in angles]


_PATTERNS: dict[str, Any] = {"row": list_row, "grid": list_grid, "bolt_circle": list_circle}


def rebuild(design: Design, changes: Mapping[str, float] | None = None) -> Any:
    """Return the part of a design.

    Args:
        design: Parameters and features.
        changes: Values of parameters in place of those of the design.
    """
    from OCP.BRepAlgoAPI import BRepAlgoAPI_Fuse

    values: dict[str, Any] = {parameter.name: parameter.value for parameter in design.parameters}
    values |= dict(changes or {})
    part: Any = None
    for body in design.bodies:
        shape = _build_body(body, values)
        part = shape if part is None else BRepAlgoAPI_Fuse(part, shape).Shape()
    return part


def _build_body(body: Body, parameters: Mapping[str, Any]) -> Any:
    from OCP.BRepAlgoAPI import BRepAlgoAPI_Cut, BRepAlgoAPI_Fuse

    names = {**_PATTERNS, **parameters, "__builtins__": {}}

    def evaluate(expression: str) -> Any:
        # the text has only numbers and names of this package
        return eval(expression, names)  # noqa: S307

    for name, height in body.heights:
        names[name] = evaluate(height)
    axis, across = np.array(body.prism.axis), np.array(body.prism.across)
    frame = np.stack([across, np.cross(axis, across), axis])
    part: Any = None
    for feature in body.features:
        operation = BRepAlgoAPI_Fuse if feature.sign == "+" else BRepAlgoAPI_Cut
        for solid in _build_feature(feature, evaluate, frame):
            part = solid if part is None else operation(part, solid).Shape()
    return part


def _build_feature(feature: Feature, evaluate: Callable[[str], Any], frame: Any) -> list[Any]:
    """Return the solids of a feature at all its places."""
    places = [[0.0, 0.0]] if feature.places is None else evaluate(feature.places)
    return [_build_shape(shape, x, y, evaluate, frame) for x, y in places for shape in feature.shapes]


def _build_shape(shape: Shape, x: float, y: float, evaluate: Callable[[str], Any], frame: Any) -> Any:
    numbers = [float(evaluate(number)) for number in shape.numbers]
    low, high = float(evaluate(shape.low)), float(evaluate(shape.high))
    if shape.kind == "outline":
        assert shape.outline is not None
        return _extrude(shape.outline, frame, low, high)
    if shape.kind == "rectangle":
        return _extrude(_make_rectangle(x, y, *numbers), frame, low, high)
    bottom, top, bulge = numbers if shape.kind == "turned" else (numbers[0], numbers[0], 0.0)
    return _turn(frame, (x, y), (bottom / 2, top / 2, bulge), low, high)


def _make_rectangle(x: float, y: float, length: float, width: float, radius: float) -> Outline:
    from meshhub_cad.prisms import Edge

    radius = min(radius, _MAX_CORNER_RATIO * min(length, width))
    edges: list[Edge] = []
    for right, up in ((1, -1), (1, 1), (-1, 1), (-1, -1)):
        corner = x + right * length / 2, y + up * width / 2
        if radius == 0:
            edges.append(Edge(corner, None))
            continue
        center = corner[0] - right * radius, corner[1] - up * radius
        beside = (corner[0], center[1]), (center[0], corner[1])
        start, end = beside[::-1] if right * up < 0 else beside
        share = radius * math.sqrt(0.5)
        edges += [Edge(start, None), Edge(end, (center[0] + right * share, center[1] + up * share))]
    return Outline(edges[-1].end, tuple(edges))


def _place(frame: Any, x: float, y: float, z: float) -> Any:
    from OCP.gp import gp_Pnt

    return gp_Pnt(*(np.array([x, y, z]) @ frame).tolist())


def _extrude(outline: Outline, frame: Any, low: float, high: float) -> Any:
    from OCP.BRepBuilderAPI import BRepBuilderAPI_MakeEdge, BRepBuilderAPI_MakeFace, BRepBuilderAPI_MakeWire
    from OCP.BRepPrimAPI import BRepPrimAPI_MakePrism
    from OCP.GC import GC_MakeArcOfCircle
    from OCP.gp import gp_Vec

    def place(point: Point) -> Any:
        return _place(frame, *point, low)

    wire, start = BRepBuilderAPI_MakeWire(), outline.start
    for edge in outline.edges:
        if edge.middle is None:
            wire.Add(BRepBuilderAPI_MakeEdge(place(start), place(edge.end)).Edge())
        else:
            arc = GC_MakeArcOfCircle(place(start), place(edge.middle), place(edge.end)).Value()
            wire.Add(BRepBuilderAPI_MakeEdge(arc).Edge())
        start = edge.end
    face = BRepBuilderAPI_MakeFace(wire.Wire()).Face()
    return BRepPrimAPI_MakePrism(face, gp_Vec(*(frame[2] * (high - low)).tolist())).Shape()


def _turn(frame: Any, center: Point, profile: tuple[float, float, float], low: float, high: float) -> Any:
    """Return the solid that a line or an arc beside an axis encloses; profile: lower and upper radius, bulge."""
    from OCP.BRepBuilderAPI import BRepBuilderAPI_MakeEdge, BRepBuilderAPI_MakeFace, BRepBuilderAPI_MakeWire
    from OCP.BRepPrimAPI import BRepPrimAPI_MakeRevol
    from OCP.GC import GC_MakeArcOfCircle
    from OCP.gp import gp_Ax1, gp_Dir

    bottom, top, bulge = profile
    x, y = center

    def place(radius: float, height: float) -> Any:
        return _place(frame, x + radius, y, height)

    wire = BRepBuilderAPI_MakeWire()
    if bottom > 0:
        wire.Add(BRepBuilderAPI_MakeEdge(place(0, low), place(bottom, low)).Edge())
    if bulge:
        middle = place((bottom + top) / 2 + bulge * (high - low), (low + high) / 2)
        arc = GC_MakeArcOfCircle(place(bottom, low), middle, place(top, high)).Value()
        wire.Add(BRepBuilderAPI_MakeEdge(arc).Edge())
    else:
        wire.Add(BRepBuilderAPI_MakeEdge(place(bottom, low), place(top, high)).Edge())
    if top > 0:
        wire.Add(BRepBuilderAPI_MakeEdge(place(top, high), place(0, high)).Edge())
    wire.Add(BRepBuilderAPI_MakeEdge(place(0, high), place(0, low)).Edge())
    face = BRepBuilderAPI_MakeFace(wire.Wire()).Face()
    return BRepPrimAPI_MakeRevol(face, gp_Ax1(place(0, low), gp_Dir(*frame[2].tolist()))).Shape()
