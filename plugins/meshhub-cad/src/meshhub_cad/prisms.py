"""Solids of stacked profiles along one axis: outlines of lines and arcs, and round shapes whose radius may change."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from meshhub import ConversionFailed
from meshhub.model.scene import Float64
from meshhub.toolkit.opencascade import explore

Point = tuple[float, float]

_MAX_TILT = 2e-3
"""Sine of the largest angle to the axis that counts as none; corners of meshes are rounded."""

_LEVEL_MM = 2e-3
"""Millimeters between heights that are the same."""

_JOIN_MM = 2e-3
"""Millimeters between ends that meet, and between values that are equal."""

_MAX_LEVELS_COUNT = 100
"""Most heights of a part that was designed; a terrain has more."""

_MAX_EDGES_COUNT = 2000
"""Most lines and arcs of a layer; a curve in pieces has more."""


class Edge(NamedTuple):
    """Line, or arc through a point in its middle."""

    end: Point
    middle: Point | None


class Outline(NamedTuple):
    """Closed outline: its first point, and the edges from there back to it."""

    start: Point
    edges: tuple[Edge, ...]


class Circle(NamedTuple):
    """Round outline."""

    center: Point
    radius: float


class Turned(NamedTuple):
    """Round outline whose radius changes from a lower to a higher plane.

    low, high: radius at the ends, in millimeters
    bulge:     radius in the middle, less the mean of the ends, as a share of the height; 0 for a cone
    """

    center: Point
    low: float
    high: float
    bulge: float


Loop = Outline | Circle | Turned


class Item(NamedTuple):
    """Extruded or turned profile, which is material or an opening.

    depth:     number of profiles around it; openings have an odd one
    low, high: heights along the axis, in millimeters
    """

    depth: int
    low: float
    high: float
    loop: Loop


class Prism(NamedTuple):
    """Solid of profiles; the deeper ones are added to or cut out of those around them.

    axis, across: unit vectors of the direction of the extrusions, and of the first coordinate of profiles
    """

    axis: tuple[float, float, float]
    across: tuple[float, float, float]
    items: tuple[Item, ...]


def find_prism(solid: Any, name: str) -> Prism:
    """Return a solid of OpenCASCADE as layers. Raises ConversionFailed if it is none."""
    normals, radial, others = _list_directions(solid)
    axis = _find_axis(normals, radial, others, name)
    across = _find_across(axis)
    up = np.cross(axis, across)
    levels = _find_levels(solid, axis)
    if len(levels) > _MAX_LEVELS_COUNT:
        raise _reject(name, f"it has {len(levels)} heights along its axis")
    frame = _Frame(axis, across, up)
    items: list[Item] = []
    for low, high in pairwise(levels):
        loops = _find_loops(solid, low, high, frame, name)
        for depth, loop in zip(_nest(loops), loops, strict=True):
            items.append(Item(depth, _round(low), _round(high), loop))
    if not items:
        raise _reject(name, "it has no profile")
    return Prism(_as_tuple(axis), _as_tuple(across), _merge(items))


class _Frame(NamedTuple):
    """Axis of the extrusions, and the two directions of profiles."""

    axis: Float64
    across: Float64
    up: Float64


def _find_loops(solid: Any, low: float, high: float, frame: _Frame, name: str) -> list[Loop]:
    """Return the profiles between two heights; the radius of round ones may change between them."""
    places = [low + (high - low) * fraction for fraction in (0.25, 0.5, 0.75)]
    lower, middle, upper = (_cut(solid, place, *frame, name) for place in places)
    return [_follow(loop, lower, upper, high - low, name) for loop in middle]


def _follow(loop: Loop, lower: list[Loop], upper: list[Loop], height: float, name: str) -> Loop:
    """Return the profile of a section, from those a quarter of the height below and above it."""
    if isinstance(loop, Circle):
        below, above = _find_same(loop, lower), _find_same(loop, upper)
        if below is not None and above is not None:
            return _turn(loop, below.radius, above.radius, height)
    elif any(_is_same(loop, other) for other in lower) and any(_is_same(loop, other) for other in upper):
        return loop
    raise _reject(name, "an outline that is not round changes along the axis, as at a dimple in a side")


def _find_same(circle: Circle, others: list[Loop]) -> Circle | None:
    """Return the circle about the same center with the nearest radius."""
    same = [
        other for other in others if isinstance(other, Circle) and _distance(other.center, circle.center) < _JOIN_MM
    ]
    return min(same, key=lambda other: abs(other.radius - circle.radius), default=None)


def _is_same(one: Loop, other: Loop) -> bool:
    """Return whether two outlines have the same corners."""
    if not isinstance(one, Outline) or not isinstance(other, Outline) or len(one.edges) != len(other.edges):
        return False
    pairs = zip(one.edges, other.edges, strict=True)
    return all(_distance(edge.end, twin.end) < _JOIN_MM for edge, twin in pairs)


def _turn(circle: Circle, below: float, above: float, height: float) -> Loop:
    """Return the round profile through radii at a quarter, at half and at three quarters of its height."""
    radius = circle.radius
    if max(abs(below - radius), abs(above - radius)) < _JOIN_MM / 4:
        return circle
    sag = radius - (below + above) / 2
    if abs(sag) < _JOIN_MM / 4:
        ends = radius - (above - below), radius + (above - below)
        return Turned(circle.center, _round(max(ends[0], 0.0)), _round(max(ends[1], 0.0)), 0.0)
    (z, r), arc = circle_through((-height / 4, below), (0.0, radius), (height / 4, above))
    low, high = (
        _round(max(r + math.copysign(_find_reach(end - z, arc), sag), 0.0)) for end in (-height / 2, height / 2)
    )
    bulge = (radius - (low + high) / 2) / height
    if abs(abs(high - low) - height) < _JOIN_MM:
        # a quarter of a circle, whose middle the rounding of the mesh moves
        bulge = math.copysign((math.sqrt(3) - 1) / 2, bulge)
    return Turned(circle.center, low, high, bulge)


def _find_reach(height: float, radius: float) -> float:
    """Return the distance of a point of a circle from its axis; zero at its ends, where rounding moves it far."""
    square = radius**2 - height**2
    return math.sqrt(square) if square > 2 * radius * _JOIN_MM else 0.0


def _reject(name: str, reason: str) -> ConversionFailed:
    label = f"{name!r} " if name else "the part "
    return ConversionFailed(
        f"{label}is not a stack of profiles along one axis: {reason}; leave this out, or choose STEP",
        error_code="not_prismatic",
    )


def _list_directions(solid: Any) -> tuple[list[Float64], list[Float64], Counter[str]]:
    """Return the normals of planes, the axes of round surfaces, and the numbers of other surfaces by kind."""
    from OCP.BRepAdaptor import BRepAdaptor_Surface
    from OCP.GeomAbs import GeomAbs_Cone, GeomAbs_Cylinder, GeomAbs_Plane, GeomAbs_Sphere, GeomAbs_Torus
    from OCP.TopAbs import TopAbs_FACE
    from OCP.TopoDS import TopoDS

    normals, axes = [], []
    others: Counter[str] = Counter()
    for face in explore(solid, TopAbs_FACE):
        surface = BRepAdaptor_Surface(TopoDS.Face(face))
        kind = surface.GetType()
        if kind == GeomAbs_Plane:
            normals.append(_vector(surface.Plane().Axis().Direction()))
        elif kind == GeomAbs_Cylinder:
            axes.append(_vector(surface.Cylinder().Axis().Direction()))
        elif kind == GeomAbs_Cone:
            axes.append(_vector(surface.Cone().Axis().Direction()))
        elif kind == GeomAbs_Torus:
            axes.append(_vector(surface.Torus().Axis().Direction()))
        elif kind == GeomAbs_Sphere:
            # a ball is round about any axis
            continue
        else:
            others[kind.name.removeprefix("GeomAbs_").lower()] += 1
    return normals, axes, others


def _find_axis(normals: list[Float64], radial: list[Float64], others: Counter[str], name: str) -> Float64:
    """Return the axis along or across which all faces lie; Z, then Y and X are preferred."""
    if others:
        raise _reject(name, "it has " + ", ".join(f"{count} {kind}" for kind, count in sorted(others.items())))
    candidates = [np.array(axis, np.float64) for axis in ((0, 0, 1), (0, 1, 0), (1, 0, 0))]
    fewest: tuple[float, tuple[int, int]] = math.inf, (0, 0)
    for axis in [*candidates, *radial[:1], *normals[:50]]:
        planes = np.abs(np.array(normals) @ axis) if normals else np.empty(0)
        cylinders = np.abs(np.array(radial) @ axis) if radial else np.empty(0)
        along = planes > math.sqrt(1 - _MAX_TILT**2)
        oblique = int(((planes >= _MAX_TILT) & ~along).sum()), int((cylinders <= math.sqrt(1 - _MAX_TILT**2)).sum())
        if not any(oblique):
            return axis / np.linalg.norm(axis)
        fewest = min(fewest, (sum(oblique), oblique))
    flat, turned = fewest[1]
    reasons = [
        f"{flat} flat faces are oblique, as chamfers of outlines and drafts are" * (flat > 0),
        f"{turned} round faces lie across, as side holes and fillets along outlines do" * (turned > 0),
    ]
    raise _reject(name, reasons[0] or reasons[1])


def _find_across(axis: Float64) -> Float64:
    """Return the direction of the first coordinate of profiles: X, or Y for an axis along X."""
    reference = np.array([1.0, 0, 0]) if abs(axis[0]) < 0.9 else np.array([0, 1.0, 0])
    across = reference - axis * (reference @ axis)
    return np.asarray(across / np.linalg.norm(across))


def _find_levels(solid: Any, axis: Float64) -> list[float]:
    """Return the heights of the faces across the axis, and of the ends of round faces whose radius changes."""
    from OCP.BRepAdaptor import BRepAdaptor_Surface
    from OCP.GeomAbs import GeomAbs_Cylinder, GeomAbs_Plane
    from OCP.TopAbs import TopAbs_FACE
    from OCP.TopoDS import TopoDS

    heights = []
    for face in explore(solid, TopAbs_FACE):
        surface = BRepAdaptor_Surface(TopoDS.Face(face))
        if surface.GetType() == GeomAbs_Plane:
            plane = surface.Plane()
            if abs(_vector(plane.Axis().Direction()) @ axis) > 0.5:
                heights.append(float(_vector(plane.Location()) @ axis))
        elif surface.GetType() != GeomAbs_Cylinder:
            heights += _list_turns(surface, axis)
    levels: list[float] = []
    for height in sorted(heights):
        if not levels or height - levels[-1] > _LEVEL_MM:
            levels.append(height)
    return levels


def _list_turns(surface: Any, axis: Float64) -> list[float]:
    """Return the heights at which a cone, a ball or a torus about the axis begins, ends and turns back."""
    from OCP.GeomAbs import GeomAbs_Sphere, GeomAbs_Torus

    if surface.GetType() == GeomAbs_Sphere:
        # its own axis may have any direction
        ball = surface.Sphere()
        middle = float(_vector(ball.Location()) @ axis)
        return [middle - ball.Radius(), middle, middle + ball.Radius(), *_list_ends(surface, axis)]
    first, last = surface.FirstVParameter(), surface.LastVParameter()
    angles = [first, last]
    if surface.GetType() == GeomAbs_Torus:
        # the top and the bottom of the tube, which the face may contain
        quarters = (math.pi / 2 * number for number in range(-3, 8, 2))
        angles += [angle for angle in quarters if first < angle < last]
    u = surface.FirstUParameter()
    return [float(_vector(surface.Value(u, angle)) @ axis) for angle in angles]


def _list_ends(surface: Any, axis: Float64) -> list[float]:
    """Return the heights of the corners of a face."""
    from OCP.BRep import BRep_Tool
    from OCP.TopAbs import TopAbs_VERTEX
    from OCP.TopoDS import TopoDS

    corners = (BRep_Tool.Pnt_s(TopoDS.Vertex(vertex)) for vertex in explore(surface.Face(), TopAbs_VERTEX))
    return [float(_vector(corner) @ axis) for corner in corners]


def _cut(solid: Any, height: float, axis: Float64, across: Float64, up: Float64, name: str) -> list[Loop]:
    """Return the outlines of the solid at a height."""
    from OCP.BRepAdaptor import BRepAdaptor_Curve
    from OCP.BRepAlgoAPI import BRepAlgoAPI_Section
    from OCP.GeomAbs import GeomAbs_Circle, GeomAbs_Ellipse, GeomAbs_Line
    from OCP.gp import gp_Dir, gp_Pln, gp_Pnt
    from OCP.TopAbs import TopAbs_EDGE
    from OCP.TopoDS import TopoDS

    plane = gp_Pln(gp_Pnt(*(axis * height).tolist()), gp_Dir(*axis.tolist()))
    section = BRepAlgoAPI_Section(solid, plane)
    pieces: list[tuple[Point, Point | None, Point]] = []
    loops: list[Loop] = []

    def flat(point: Any) -> Point:
        position = _vector(point)
        return float(position @ across), float(position @ up)

    edges = list(explore(section.Shape(), TopAbs_EDGE))
    if len(edges) > _MAX_EDGES_COUNT:
        raise _reject(name, f"a profile has {len(edges)} edges, as engraved letters have")
    for edge in edges:
        curve = BRepAdaptor_Curve(TopoDS.Edge(edge))
        first, last = curve.FirstParameter(), curve.LastParameter()
        begin, end = flat(curve.Value(first)), flat(curve.Value(last))
        if curve.GetType() == GeomAbs_Line:
            pieces.append((begin, None, end))
        elif curve.GetType() not in (GeomAbs_Circle, GeomAbs_Ellipse):
            raise _reject(name, "a profile has a curve other than an arc, as letters have")
        elif abs(last - first) > 2 * math.pi - 1e-6:
            # an ellipse is the cut of a cylinder whose axis is a little off; the part is compared with the mesh
            thirds = [flat(curve.Value(first + (last - first) * k / 3)) for k in range(3)]
            loops.append(_tidy(circle_through(*thirds)))
        else:
            pieces.append((begin, flat(curve.Value((first + last) / 2)), end))
    return loops + _chain(pieces, name)


def _chain(pieces: list[tuple[Point, Point | None, Point]], name: str) -> list[Loop]:
    """Return the closed outlines of lines and arcs in any order and direction."""
    loops: list[Loop] = []
    while pieces:
        start, middle, end = pieces.pop()
        chain = [(start, middle, end)]
        while _distance(end, start) > _JOIN_MM:
            gaps = [min(_distance(end, piece[0]), _distance(end, piece[2])) for piece in pieces]
            nearest = int(np.argmin(gaps)) if gaps else -1
            if nearest < 0 or gaps[nearest] > _JOIN_MM:
                raise _reject(name, "an outline of a profile is open")
            begin, middle, last = pieces.pop(nearest)
            if _distance(end, begin) > _distance(end, last):
                begin, last = last, begin
            chain.append((begin, middle, last))
            end = last
        loops.append(_tidy(_simplify(chain)))
    return loops


def _simplify(chain: list[tuple[Point, Point | None, Point]]) -> Outline | Circle:
    """Join neighbors on one line or one circle; return a circle if all are on one."""
    circles = [None if middle is None else circle_through(start, middle, end) for start, middle, end in chain]
    first = circles[0]
    if first is not None and all(each is not None and _is_same_circle(each, first) for each in circles):
        return first
    # begin where two edges are not one
    count = len(chain)
    same = [_continues(chain[k - 1], circles[k - 1], chain[k], circles[k]) for k in range(count)]
    offset = next((k for k in range(count) if not same[k]), 0)
    merged: list[tuple[Point, Circle | None, list[Point], Point]] = []
    for k in (*range(offset, count), *range(offset)):
        start, middle, end = chain[k]
        if same[k] and merged:
            begin, circle, points, last = merged[-1]
            merged[-1] = (begin, circle, [*points, last, *([middle] if middle else [])], end)
        else:
            merged.append((start, circles[k], [middle] if middle else [], end))
    edges = []
    for _, circle, points, end in merged:
        edges.append(Edge(end, None if circle is None else points[len(points) // 2]))
    return Outline(merged[0][0], tuple(edges))


def _continues(
    one: tuple[Point, Point | None, Point],
    one_circle: Circle | None,
    other: tuple[Point, Point | None, Point],
    other_circle: Circle | None,
) -> bool:
    if one_circle is not None and other_circle is not None:
        return _is_same_circle(one_circle, other_circle)
    if one_circle is not None or other_circle is not None:
        return False
    (x0, y0), (x1, y1), (x2, y2) = one[0], one[2], other[2]
    length = max(_distance(one[0], other[2]), 1e-12)
    offset = abs((x1 - x0) * (y2 - y0) - (y1 - y0) * (x2 - x0)) / length
    return offset < _JOIN_MM / 2 and (x1 - x0) * (x2 - x1) + (y1 - y0) * (y2 - y1) > 0


def _is_same_circle(one: Circle, other: Circle) -> bool:
    return _distance(one.center, other.center) < _JOIN_MM and abs(one.radius - other.radius) < _JOIN_MM


def circle_through(one: Point, two: Point, three: Point) -> Circle:
    """Return the circle through three points."""
    (ax, ay), (bx, by), (cx, cy) = one, two, three
    double = 2 * (ax * (by - cy) + bx * (cy - ay) + cx * (ay - by))
    a, b, c = ax * ax + ay * ay, bx * bx + by * by, cx * cx + cy * cy
    x = (a * (by - cy) + b * (cy - ay) + c * (ay - by)) / double
    y = (a * (cx - bx) + b * (ax - cx) + c * (bx - ax)) / double
    return Circle((x, y), math.hypot(ax - x, ay - y))


def _nest(loops: Sequence[Loop]) -> list[int]:
    """Return for each outline in how many others it is."""
    polygons = [np.array(flatten(loop, 24)) for loop in loops]
    return [
        sum(_contains(polygon, own[0]) for other, polygon in enumerate(polygons) if other != number)
        for number, own in enumerate(polygons)
    ]


def _contains(polygon: Float64, point: Float64) -> bool:
    x, y = point
    x0, y0 = polygon.T
    x1, y1 = np.roll(polygon, -1, axis=0).T
    crosses = (y0 > y) != (y1 > y)
    with np.errstate(all="ignore"):
        at = x0 + (y - y0) / (y1 - y0) * (x1 - x0)
    return bool((crosses & (at > x)).sum() % 2)


def flatten(loop: Loop, pieces_per_turn: int) -> list[Point]:
    """Return the points of an outline, with arcs in straight pieces."""
    if isinstance(loop, Turned):
        loop = Circle(loop.center, (loop.low + loop.high) / 2)
    if isinstance(loop, Circle):
        angles = np.linspace(0, 2 * math.pi, pieces_per_turn, endpoint=False)
        (x, y), r = loop
        return [(x + r * math.cos(angle), y + r * math.sin(angle)) for angle in angles.tolist()]
    points = [loop.start]
    for edge in loop.edges:
        if edge.middle is not None:
            circle, first, sweep = arc_of(points[-1], edge)
            count = max(2, math.ceil(abs(sweep) / (2 * math.pi) * pieces_per_turn))
            (x, y), r = circle
            angles = first + sweep * np.arange(1, count) / count
            points += [(x + r * math.cos(angle), y + r * math.sin(angle)) for angle in angles.tolist()]
        points.append(edge.end)
    return points[:-1]


def arc_of(start: Point, edge: Edge) -> tuple[Circle, float, float]:
    """Return the circle of an arc, the angle of its start, and the angle that it turns, in radians."""
    assert edge.middle is not None
    circle = circle_through(start, edge.middle, edge.end)
    x, y = circle.center
    first, middle, last = (math.atan2(p[1] - y, p[0] - x) for p in (start, edge.middle, edge.end))
    to_middle, to_last = (middle - first) % (2 * math.pi), (last - first) % (2 * math.pi)
    return circle, first, to_last if to_middle < to_last else to_last - 2 * math.pi


def _merge(items: list[Item]) -> tuple[Item, ...]:
    """Join neighbors with the same profile, or on the same cone."""
    merged: list[Item] = []
    for item in items:
        joined = [(below, _join(other, item)) for below, other in enumerate(merged)]
        below, whole = next(((below, whole) for below, whole in joined if whole is not None), (len(merged), item))
        merged[below : below + 1] = [whole]
    return tuple(sorted(merged, key=repr))


def _join(low: Item, high: Item) -> Item | None:
    """Return two neighbors as one; None if they are not one."""
    if low.high != high.low or low.depth != high.depth:
        return None
    one, other = low.loop, high.loop
    if one == other and not isinstance(one, Turned):
        return low._replace(high=high.high)
    if not isinstance(one, Turned) or not isinstance(other, Turned) or one.bulge or other.bulge:
        return None
    share = (low.high - low.low) / (high.high - low.low)
    between = one.low + share * (other.high - one.low)
    is_same = max(_distance(one.center, other.center), abs(one.high - between), abs(other.low - between)) < _JOIN_MM
    return Item(low.depth, low.low, high.high, Turned(one.center, one.low, other.high, 0.0)) if is_same else None


def _tidy(loop: Outline | Circle) -> Outline | Circle:
    """Round the numbers of an outline, and begin at its lowest point, so that equal outlines are equal."""
    if isinstance(loop, Circle):
        return Circle(_round_point(loop.center), _round(loop.radius))
    edges = [Edge(_round_point(edge.end), edge.middle and _round_point(edge.middle)) for edge in loop.edges]
    starts = [edges[-1].end, *(edge.end for edge in edges[:-1])]
    area = sum(x0 * y1 - x1 * y0 for (x0, y0), (x1, y1) in zip(starts, [edge.end for edge in edges], strict=True))
    if area < 0:
        edges = [Edge(start, edge.middle) for start, edge in zip(starts, edges, strict=True)][::-1]
    ends = [edge.end for edge in edges]
    first = (ends.index(min(ends)) + 1) % len(ends)
    edges = edges[first:] + edges[:first]
    return Outline(edges[-1].end, tuple(edges))


def _round(value: float) -> float:
    """Return a length without the noise of meshes: a multiple of 0.001 mm where it is close to one."""
    short = round(value, 3)
    return (short if abs(short - value) < 2e-4 else round(value, 5)) + 0.0


def _round_point(point: Point) -> Point:
    return _round(point[0]), _round(point[1])


def _distance(one: Point, other: Point) -> float:
    return math.dist(one, other)


def _vector(value: Any) -> Float64:
    return np.array([value.X(), value.Y(), value.Z()])


def _as_tuple(vector: Float64) -> tuple[float, float, float]:
    x, y, z = (round(value, 9) + 0.0 for value in vector.tolist())
    return x, y, z
