"""Solids of the OpenCASCADE kernel, with the operations that features are composed of."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

Point = tuple[float, float]

has_fillets = True
"""Whether edges can be rounded."""


def cylinder(x: float, y: float, low: float, high: float, radius: float, top_radius: float | None = None) -> Any:
    """Return a cylinder or a cone that stands on the plane z = low."""
    from OCP.BRepPrimAPI import BRepPrimAPI_MakeCone, BRepPrimAPI_MakeCylinder
    from OCP.gp import gp_Ax2, gp_Dir, gp_Pnt

    axes = gp_Ax2(gp_Pnt(x, y, low), gp_Dir(0, 0, 1))
    if top_radius is None or top_radius == radius:
        return BRepPrimAPI_MakeCylinder(axes, radius, high - low).Shape()
    return BRepPrimAPI_MakeCone(axes, radius, top_radius, high - low).Shape()


def box(x: float, y: float, low: float, high: float, length: float, width: float) -> Any:
    """Return a box around the line x, y."""
    from OCP.BRepPrimAPI import BRepPrimAPI_MakeBox
    from OCP.gp import gp_Pnt

    return BRepPrimAPI_MakeBox(gp_Pnt(x - length / 2, y - width / 2, low), length, width, high - low).Shape()


def ball(x: float, y: float, z: float, radius: float) -> Any:
    """Return a ball."""
    from OCP.BRepPrimAPI import BRepPrimAPI_MakeSphere
    from OCP.gp import gp_Pnt

    return BRepPrimAPI_MakeSphere(gp_Pnt(x, y, z), radius).Shape()


def ring(x: float, y: float, z: float, radius: float, tube: float) -> Any:
    """Return a torus about the line x, y."""
    from OCP.BRepPrimAPI import BRepPrimAPI_MakeTorus
    from OCP.gp import gp_Ax2, gp_Dir, gp_Pnt

    return BRepPrimAPI_MakeTorus(gp_Ax2(gp_Pnt(x, y, z), gp_Dir(0, 0, 1)), radius, tube).Shape()


def prism(points: Sequence[Point], low: float, high: float, top_scale: float = 1.0) -> Any:
    """Return a prism on a polygon; `top_scale` tapers it towards the origin."""
    from OCP.BRepBuilderAPI import BRepBuilderAPI_MakeFace
    from OCP.BRepOffsetAPI import BRepOffsetAPI_ThruSections
    from OCP.BRepPrimAPI import BRepPrimAPI_MakePrism
    from OCP.gp import gp_Vec

    if top_scale == 1.0:
        face = BRepBuilderAPI_MakeFace(_polygon(points, low)).Face()
        return BRepPrimAPI_MakePrism(face, gp_Vec(0, 0, high - low)).Shape()
    sections = BRepOffsetAPI_ThruSections(True, True)
    sections.AddWire(_polygon(points, low))
    sections.AddWire(_polygon([(x * top_scale, y * top_scale) for x, y in points], high))
    return sections.Shape()


def _polygon(points: Sequence[Point], height: float) -> Any:
    from OCP.BRepBuilderAPI import BRepBuilderAPI_MakePolygon
    from OCP.gp import gp_Pnt

    outline = BRepBuilderAPI_MakePolygon()
    for x, y in points:
        outline.Add(gp_Pnt(x, y, height))
    outline.Close()
    return outline.Wire()


def revolution(profile: Sequence[Point]) -> Any:
    """Return a polygon of (distance from the z axis, height) turned about the z axis."""
    from OCP.BRepBuilderAPI import BRepBuilderAPI_MakeFace, BRepBuilderAPI_MakePolygon
    from OCP.BRepPrimAPI import BRepPrimAPI_MakeRevol
    from OCP.gp import gp_Ax1, gp_Dir, gp_Pnt

    outline = BRepBuilderAPI_MakePolygon()
    for away, height in profile:
        outline.Add(gp_Pnt(away, 0, height))
    outline.Close()
    face = BRepBuilderAPI_MakeFace(outline.Wire()).Face()
    return BRepPrimAPI_MakeRevol(face, gp_Ax1(gp_Pnt(0, 0, 0), gp_Dir(0, 0, 1))).Shape()


def cut(part: Any, *tools: Any) -> Any:
    """Return the part without the tools."""
    from OCP.BRepAlgoAPI import BRepAlgoAPI_Cut

    for tool in tools:
        part = BRepAlgoAPI_Cut(part, tool).Shape()
    return part


def join(part: Any, *tools: Any) -> Any:
    """Return the part with the tools."""
    from OCP.BRepAlgoAPI import BRepAlgoAPI_Fuse

    for tool in tools:
        part = BRepAlgoAPI_Fuse(part, tool).Shape()
    return part


def common(first: Any, second: Any) -> Any:
    """Return the volume that two solids share."""
    from OCP.BRepAlgoAPI import BRepAlgoAPI_Common

    return BRepAlgoAPI_Common(first, second).Shape()


def move(part: Any, x: float, y: float, z: float) -> Any:
    """Return the part, moved."""
    from OCP.gp import gp_Trsf, gp_Vec

    change = gp_Trsf()
    change.SetTranslation(gp_Vec(x, y, z))
    return _transform(part, change)


def turn(part: Any, axis: tuple[float, float, float], degrees: float) -> Any:
    """Return the part, turned about an axis through the origin."""
    from OCP.gp import gp_Ax1, gp_Dir, gp_Pnt, gp_Trsf

    change = gp_Trsf()
    change.SetRotation(gp_Ax1(gp_Pnt(0, 0, 0), gp_Dir(*axis)), math.radians(degrees))
    return _transform(part, change)


def _transform(part: Any, change: Any) -> Any:
    from OCP.BRepBuilderAPI import BRepBuilderAPI_Transform

    return BRepBuilderAPI_Transform(part, change, True).Shape()


def unify(part: Any) -> Any:
    """Return the part with neighboring faces of one surface merged."""
    from OCP.ShapeUpgrade import ShapeUpgrade_UnifySameDomain

    whole = ShapeUpgrade_UnifySameDomain(part, True, True, False)
    whole.Build()
    return whole.Shape()


def is_valid(part: Any) -> bool:
    """Return whether the kernel finds the part valid."""
    from OCP.BRepCheck import BRepCheck_Analyzer

    return bool(BRepCheck_Analyzer(part).IsValid())


def list_shapes(part: Any, kind: Any) -> list[Any]:
    """Return the distinct faces, edges or solids of a part; `kind` is one of `OCP.TopAbs`."""
    from OCP.collections import IndexedMap_TopoDS_Shape_TopTools_ShapeMapHasher
    from OCP.TopExp import TopExp

    shapes = IndexedMap_TopoDS_Shape_TopTools_ShapeMapHasher()
    TopExp.MapShapes_s(part, kind, shapes)
    return [shapes.FindKey(index + 1) for index in range(shapes.Extent())]


def _failures() -> tuple[type[Exception], ...]:
    """Return the exceptions of operations that are impossible."""
    from OCP.Standard import Standard_Failure
    from OCP.StdFail import StdFail_NotDone

    return Standard_Failure, StdFail_NotDone, RuntimeError


def round_edges(part: Any, chance: random.Random, size: tuple[float, float] = (0.5, 2.5)) -> Any:
    """Return the part with some edges rounded, chamfered, or rounded with a radius that changes.

    The part is unchanged if three attempts fail.
    """
    from OCP.BRepFilletAPI import BRepFilletAPI_MakeChamfer, BRepFilletAPI_MakeFillet
    from OCP.TopAbs import TopAbs_EDGE
    from OCP.TopoDS import TopoDS

    edges = [TopoDS.Edge(edge) for edge in list_shapes(part, TopAbs_EDGE)]
    for _ in range(3):
        kind = chance.random()
        operation = (BRepFilletAPI_MakeFillet if kind < 0.7 else BRepFilletAPI_MakeChamfer)(part)
        try:
            for edge in chance.sample(edges, min(len(edges), chance.randrange(1, 6))):
                radii = [chance.uniform(*size)]
                if kind < 0.15:
                    radii.append(chance.uniform(*size))
                operation.Add(*radii, edge)
            if is_valid(operation.Shape()):
                return operation.Shape()
        except _failures():
            continue
    return part


def round_edges_along(part: Any, axis: int, radius: float) -> Any:
    """Return the part with all straight edges along a coordinate axis rounded; unchanged if this fails."""
    from OCP.BRepAdaptor import BRepAdaptor_Curve
    from OCP.BRepFilletAPI import BRepFilletAPI_MakeFillet
    from OCP.GeomAbs import GeomAbs_Line
    from OCP.TopAbs import TopAbs_EDGE
    from OCP.TopoDS import TopoDS

    operation = BRepFilletAPI_MakeFillet(part)
    for shape in list_shapes(part, TopAbs_EDGE):
        edge = TopoDS.Edge(shape)
        curve = BRepAdaptor_Curve(edge)
        if curve.GetType() == GeomAbs_Line and abs(curve.Line().Direction().Coord(axis + 1)) > 1 - 1e-9:
            operation.Add(radius, edge)
    try:
        return operation.Shape() if is_valid(operation.Shape()) else part
    except _failures():
        return part


def shell(part: Any, thickness: float) -> Any:
    """Return the part hollowed out, open at its highest face; unchanged if this fails."""
    from OCP.Bnd import Bnd_Box
    from OCP.BRepBndLib import BRepBndLib
    from OCP.BRepOffsetAPI import BRepOffsetAPI_MakeThickSolid
    from OCP.collections import List_TopoDS_Shape
    from OCP.TopAbs import TopAbs_FACE

    def lowest(face: Any) -> float:
        bounds = Bnd_Box()
        BRepBndLib.Add_s(face, bounds)
        return float(bounds.CornerMin().Z())

    opening = List_TopoDS_Shape()
    opening.Append(max(list_shapes(part, TopAbs_FACE), key=lowest))
    hollow = BRepOffsetAPI_MakeThickSolid()
    try:
        hollow.MakeThickSolidByJoin(part, opening, -thickness, 1e-3)
        return hollow.Shape() if is_valid(hollow.Shape()) else part
    except _failures():
        return part


def loft(sections: Sequence[tuple[str, float, float]], *, ruled: bool) -> Any:
    """Return a loft through (shape, size, height): circles, squares and ellipses about the z axis."""
    from OCP.BRepOffsetAPI import BRepOffsetAPI_ThruSections

    operation = BRepOffsetAPI_ThruSections(True, ruled)
    for shape, size, height in sections:
        operation.AddWire(_section(shape, size, height))
    operation.CheckCompatibility(True)
    return operation.Shape()


def _section(shape: str, size: float, height: float) -> Any:
    from OCP.BRepBuilderAPI import BRepBuilderAPI_MakeEdge, BRepBuilderAPI_MakeWire
    from OCP.gp import gp_Ax2, gp_Circ, gp_Dir, gp_Elips, gp_Pnt

    axes = gp_Ax2(gp_Pnt(0, 0, height), gp_Dir(0, 0, 1))
    if shape == "circle":
        return BRepBuilderAPI_MakeWire(BRepBuilderAPI_MakeEdge(gp_Circ(axes, size)).Edge()).Wire()
    if shape == "ellipse":
        return BRepBuilderAPI_MakeWire(BRepBuilderAPI_MakeEdge(gp_Elips(axes, size, 0.6 * size)).Edge()).Wire()
    return _polygon([(size, size), (-size, size), (-size, -size), (size, -size)], height)


def sweep(path: Sequence[tuple[float, float, float]], radius: float, bore: float) -> Any:
    """Return a round pipe along a spline through points; it is solid if `bore` is 0."""
    from OCP.BRepBuilderAPI import BRepBuilderAPI_MakeEdge, BRepBuilderAPI_MakeFace, BRepBuilderAPI_MakeWire
    from OCP.BRepOffsetAPI import BRepOffsetAPI_MakePipe
    from OCP.collections import Array1_gp_Pnt
    from OCP.GeomAPI import GeomAPI_PointsToBSpline
    from OCP.gp import gp_Ax2, gp_Circ, gp_Dir, gp_Pnt, gp_Vec

    points = Array1_gp_Pnt(1, len(path))
    for index, point in enumerate(path):
        points.SetValue(index + 1, gp_Pnt(*point))
    curve = GeomAPI_PointsToBSpline(points).Curve()
    start, along = gp_Pnt(), gp_Vec()
    curve.D1(curve.FirstParameter(), start, along)
    spine = BRepBuilderAPI_MakeWire(BRepBuilderAPI_MakeEdge(curve).Edge()).Wire()

    def pipe(size: float) -> Any:
        circle = gp_Circ(gp_Ax2(start, gp_Dir(along)), size)
        wire = BRepBuilderAPI_MakeWire(BRepBuilderAPI_MakeEdge(circle).Edge()).Wire()
        return BRepOffsetAPI_MakePipe(spine, BRepBuilderAPI_MakeFace(wire).Face()).Shape()

    return cut(pipe(radius), pipe(bore)) if bore else pipe(radius)


def thread(radius: float, pitch: float, turns: float, low: float) -> Any:
    """Return a helical ridge of triangular section about the z axis, to join to a pin or cut from a hole."""
    from OCP.BRepBuilderAPI import BRepBuilderAPI_MakeEdge, BRepBuilderAPI_MakePolygon, BRepBuilderAPI_MakeWire
    from OCP.BRepLib import BRepLib
    from OCP.BRepOffsetAPI import BRepOffsetAPI_MakePipeShell
    from OCP.Geom import Geom_CylindricalSurface
    from OCP.Geom2d import Geom2d_Line
    from OCP.gp import gp_Ax3, gp_Dir, gp_Dir2d, gp_Pnt, gp_Pnt2d

    surface = Geom_CylindricalSurface(gp_Ax3(gp_Pnt(0, 0, low), gp_Dir(0, 0, 1)), radius)
    line = Geom2d_Line(gp_Pnt2d(0, 0), gp_Dir2d(2 * math.pi, pitch))
    edge = BRepBuilderAPI_MakeEdge(line, surface, 0, turns * math.hypot(2 * math.pi, pitch)).Edge()
    BRepLib.BuildCurves3d_s(edge)
    depth, half = 0.5 * pitch, 0.4 * pitch
    profile = BRepBuilderAPI_MakePolygon(
        gp_Pnt(radius - 0.1, 0, low - half), gp_Pnt(radius + depth, 0, low), gp_Pnt(radius - 0.1, 0, low + half), True
    ).Wire()
    operation = BRepOffsetAPI_MakePipeShell(BRepBuilderAPI_MakeWire(edge).Wire())
    operation.SetMode(gp_Dir(0, 0, 1))
    operation.Add(profile)
    operation.Build()
    operation.MakeSolid()
    return operation.Shape()


FINE_DEVIATION_MM, FINE_ANGLE_RAD = 0.005, 0.05
"""Deviation and angle of the triangles that give the volume of a shape."""


def measure_volume(shape: Any) -> float:
    """Return the volume between fine triangles; integrals over B-spline surfaces are off by up to 1.5 %."""
    from OCP.BRepGProp import BRepGProp
    from OCP.BRepMesh import BRepMesh_IncrementalMesh
    from OCP.BRepTools import BRepTools
    from OCP.GProp import GProp_GProps

    BRepTools.Clean_s(shape)
    BRepMesh_IncrementalMesh(shape, FINE_DEVIATION_MM, False, FINE_ANGLE_RAD, False)
    properties = GProp_GProps()
    BRepGProp.VolumeProperties_s(shape, properties, False, False, True)
    return float(properties.Mass())
