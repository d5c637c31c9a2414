"""Feature table of a STEP file: faces by kind, radii, holes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from meshhub.builtin_plugins.step.reading.holes import FoundHole, Openness, RoundFace, find_holes
from meshhub.builtin_plugins.step.reading.surface_kinds import surface_kind
from meshhub.builtin_plugins.step.reading.xcaf import PlacedProduct
from meshhub.model.features import (
    MAX_PLACES,
    FeatureTable,
    Hole,
    HoleStep,
    RadiusCount,
    SurfaceCount,
    Vector,
)
from meshhub.model.scene import Float64
from meshhub.toolkit.opencascade import explore

DECIMALS = 4
"""Decimals of millimeters and degrees in the table: a tenth of a micrometer, far below the accuracy of parts."""

UNKNOWN_SIZE: Vector = (-1.0, -1.0, -1.0)
"""Stands for extents that the caller measures on the triangles."""

_ANALYTIC_KINDS = frozenset(("plane", "cylinder", "cone", "sphere", "torus"))
"""Kinds whose exact extents take microseconds; a B-spline surface takes a tenth of a second."""

POINTS_PER_EDGE = 65
"""Points on each edge; the height of a round rim is then within 0.1 % of its variation."""

Side = Literal["inside", "outside"]


@dataclass
class _ProductFeatures:
    """Features of one product, in its frame.

    faces: number by kind
    radii: number by kind, radius and side
    """

    solids: int = 0
    faces: Counter[str] = field(default_factory=Counter)
    radii: Counter[tuple[str, float, Side]] = field(default_factory=Counter)
    holes: list[FoundHole] = field(default_factory=list)


def list_features(shapes: dict[str, Any], placements: list[PlacedProduct]) -> FeatureTable:
    """Return the feature table of all placed products.

    Args:
        shapes: Kernel shape of each product, by key.
        placements: Instances of the products.
    Returns:
        Table; its size is UNKNOWN_SIZE if the exact extents would be slow to compute.
    """
    products = {key: _collect(shape) for key, shape in shapes.items()}
    faces: Counter[str] = Counter()
    radii: Counter[tuple[str, float, Side]] = Counter()
    holes: dict[tuple[float, float, str, tuple[HoleStep, ...]], list[tuple[Vector, Vector]]] = {}
    solids = 0
    for placement in placements:
        product = products.get(placement.product)
        if product is None:
            continue
        solids += product.solids
        faces += product.faces
        radii += product.radii
        for hole in product.holes:
            key = (_rounded(hole.diameter_mm), _rounded(hole.depth_mm), hole.end, tuple(map(_rounded_step, hole.steps)))
            holes.setdefault(key, []).append(_place(hole, placement.matrix))
    return FeatureTable(
        size_mm=_exact_size(shapes, placements, faces.keys() <= _ANALYTIC_KINDS),
        solids=solids,
        faces=tuple(SurfaceCount(kind=kind, count=count) for kind, count in faces.most_common()),
        radii=tuple(
            RadiusCount(kind=kind, radius_mm=radius, side=side, count=count)
            for (kind, radius, side), count in sorted(radii.items(), key=lambda item: (item[0][1], item[0]))
        ),
        holes=tuple(
            Hole(
                diameter_mm=diameter,
                depth_mm=depth,
                end="through" if end == "through" else "blind",
                steps=steps,
                count=len(places),
                places=tuple(places[:MAX_PLACES]),
            )
            for (diameter, depth, end, steps), places in sorted(holes.items(), key=lambda item: item[0][:3])
        ),
    )


def _exact_size(shapes: dict[str, Any], placements: list[PlacedProduct], is_analytic: bool) -> Vector:
    """Return the extents of a model of one part of analytic surfaces, UNKNOWN_SIZE for others."""
    from OCP.Bnd import Bnd_Box
    from OCP.BRepBndLib import BRepBndLib

    if (
        not is_analytic
        or len(shapes) != 1
        or len(placements) != 1
        or not np.array_equal(placements[0].matrix, np.eye(4))
    ):
        return UNKNOWN_SIZE
    box = Bnd_Box()
    BRepBndLib.AddOptimal_s(next(iter(shapes.values())), box, False, False)
    low, high = box.CornerMin(), box.CornerMax()
    return rounded_vector(np.array([high.X() - low.X(), high.Y() - low.Y(), high.Z() - low.Z()]))


def _collect(shape: Any) -> _ProductFeatures:
    from OCP.BRepAdaptor import BRepAdaptor_Surface
    from OCP.TopAbs import TopAbs_FACE, TopAbs_SOLID
    from OCP.TopoDS import TopoDS

    features = _ProductFeatures(solids=sum(1 for _ in explore(shape, TopAbs_SOLID)))
    inward: list[RoundFace] = []
    for face in explore(shape, TopAbs_FACE):
        adaptor = BRepAdaptor_Surface(TopoDS.Face(face), False)
        kind = surface_kind(adaptor)
        features.faces[kind] += 1
        if kind not in ("cylinder", "cone", "sphere", "torus"):
            continue
        surface = getattr(adaptor, kind.capitalize())()
        side = _side(face, surface)
        if kind != "cone":
            radius = surface.MinorRadius() if kind == "torus" else surface.Radius()
            features.radii[kind, _rounded(radius), side] += 1
        if side == "inside" and kind != "torus":
            inward.append(_round_face(kind, face, surface))
    if any(face.kind == "cylinder" for face in inward):
        features.holes = find_holes(inward, Openness(shape))
    return features


def _side(face: Any, surface: Any) -> Side:
    """Return on which side of a surface of revolution the material is: its normal points away from the axis."""
    from OCP.TopAbs import TopAbs_REVERSED

    is_reversed = face.Orientation() == TopAbs_REVERSED
    return "inside" if is_reversed == surface.Position().Direct() else "outside"


def _round_face(kind: Any, face: Any, surface: Any) -> RoundFace:
    """Return a cylinder, cone or sphere with its range along its axis."""
    from OCP.BRepTools import BRepTools
    from OCP.TopoDS import TopoDS

    low_u, high_u, low_v, high_v = BRepTools.UVBounds_s(TopoDS.Face(face))
    frame = surface.Position()
    axis, origin = frame.Direction(), frame.Location()
    direction = np.array([axis.X(), axis.Y(), axis.Z()])
    location = np.array([origin.X(), origin.Y(), origin.Z()])
    if kind == "cylinder":
        heights = (_sample_edges(face) - location) @ direction
        ends = [(float(heights.min()), surface.Radius()), (float(heights.max()), surface.Radius())]
    elif kind == "cone":
        slope = surface.SemiAngle()
        ends = [(v * np.cos(slope), abs(surface.RefRadius() + v * np.sin(slope))) for v in (low_v, high_v)]
    else:
        ends = [(surface.Radius() * np.sin(v), surface.Radius() * np.cos(v)) for v in (low_v, high_v)]
    leading = direction[np.flatnonzero(np.abs(direction) > 1e-9)[0]]
    if leading < 0:
        direction = -direction
        ends = [(-distance, radius) for distance, radius in ends]
    shift = float(location @ direction)
    (low, low_radius), (high, high_radius) = sorted(ends)
    return RoundFace(
        kind,
        direction,
        location - shift * direction,
        high_u - low_u,
        low + shift,
        high + shift,
        low_radius,
        high_radius,
        face,
    )


def _sample_edges(face: Any) -> Float64:
    """Return points (n, 3) on the edges of a face: where they are splines, the bounds of the kernel are too wide."""
    from OCP.BRepAdaptor import BRepAdaptor_Curve
    from OCP.TopAbs import TopAbs_EDGE
    from OCP.TopoDS import TopoDS

    points = []
    for edge in explore(face, TopAbs_EDGE):
        curve = BRepAdaptor_Curve(TopoDS.Edge(edge))
        for parameter in np.linspace(curve.FirstParameter(), curve.LastParameter(), POINTS_PER_EDGE).tolist():
            point = curve.Value(parameter)
            points.append((point.X(), point.Y(), point.Z()))
    return np.array(points)


def _place(hole: FoundHole, matrix: Float64) -> tuple[Vector, Vector]:
    """Return the entry and the direction of a hole of an instance."""
    entry = matrix[:3, :3] @ hole.entry + matrix[:3, 3]
    return rounded_vector(entry), rounded_vector(matrix[:3, :3] @ hole.direction)


def _rounded(value: float) -> float:
    # -0.0 becomes 0.0
    return round(float(value), DECIMALS) + 0.0


def _rounded_step(step: HoleStep) -> HoleStep:
    return HoleStep(
        kind=step.kind,
        diameter_mm=_rounded(step.diameter_mm),
        depth_mm=_rounded(step.depth_mm),
        angle_deg=None if step.angle_deg is None else _rounded(step.angle_deg),
    )


def rounded_vector(values: Float64) -> Vector:
    """Return a vector as the table shows it."""
    x, y, z = (_rounded(value) for value in values)
    return x, y, z
