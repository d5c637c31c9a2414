"""Recognition of swept curves: extrusions, and surfaces of revolution with a free profile.

Seen along the direction of an extrusion, all its points lie on one curve, in whatever way its triangles connect them.
The points of a surface of revolution do so in the half plane beside its axis. Steps along the edges of the triangles
add up to the position of each point on the curve, and a spline through the points is the profile. Facets between two
curves that are much wider than their neighbors stay planes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import breadth_first_order
from scipy.spatial import cKDTree

from meshhub.builtin_plugins.step.recognition.arrays import distinct_pairs, lengths, normalize, sum_by_label
from meshhub.builtin_plugins.step.recognition.facet_graph import FacetGraph
from meshhub.builtin_plugins.step.recognition.faceting import FacetedSkin
from meshhub.builtin_plugins.step.recognition.profiles import Profile, fit_profile
from meshhub.builtin_plugins.step.recognition.recognize import Segments
from meshhub.builtin_plugins.step.recognition.skin import Skin
from meshhub.builtin_plugins.step.recognition.surfaces import SurfaceArray, SurfaceKind, concatenate, perpendicular
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex
from meshhub.toolkit.topology import components

_MAX_FRAMES = 8
"""Directions of extrusions, and axes of surfaces of revolution, that are tried; bounds the time."""

_MIN_RIM_CORNERS = 8
"""Corners of an outline around the axis of a surface of revolution."""

_PARALLEL_COS = 1 - 1e-8
"""Cosine of the angle between equal directions; 0.008°."""

_MAX_NORMAL_SINE = {SurfaceKind.EXTRUSION: 0.05, SurfaceKind.REVOLUTION: 0.2}
"""Sine of the angle between a facet and the direction of its sweep: triangles between three points of a curved surface
lean, those of a surface of revolution by up to a third of their turn."""

_MAX_INNER_SINE = 0.3
"""The same for triangles within the sweep."""

_MAX_INNER_COUNT = 4
"""Such triangles that lie together; more are a wall with draft."""

_MIN_AXIS_DISTANCE_RATIO = 0.02
"""Distance of a profile from the axis over its largest one; faces that meet the axis would need a pole."""

_MAX_POLES_RATIO = 2 / 3
"""Poles of a profile over the points on its surface; with more, the curve passes through any points."""

_MIN_WIDTH_LIMITS = 100.0
"""Width of a sweep over the distance of its points; a few facets as small as the rounding fit any curve, and CAD
programs tear faces that are as narrow as the tolerances of their edges."""

_MAX_RELEASED_RATIO = 0.25
"""Facets of replaced surfaces that become flat again, over the facets of the sweep."""

_MIN_FACET_COUNT = 4
"""Facets of an extrusion; through fewer points, a cubic curve passes without a check."""

_LARGE_COUNT = 16_384
"""Free facets of a mesh that may be a scan; they form hundreds of small pieces by chance."""

_MIN_SHARE_RATIO = 0.01
"""Facets of an extrusion over the free facets of such a mesh."""

_NODE_TOLERANCES = 4.0
"""Tolerances within which points on one line of an extrusion lie, seen along it."""

_MAX_WIDTH_RATIO = 2.0
"""Width of a planar facet, seen along the direction, over those of its neighbors; a wider one is a plane."""

_MAX_TURN_RATIO = 3.0
"""Turn at an edge over those at all other edges of its facets; more is a corner."""

_MIN_CORNER_RAD = np.radians(6.0)
"""Radians; smaller turns are not corners."""

_MAX_WEAK_TURN_RAD = np.radians(58.0)
"""Radians between the outer facets of a cylinder that can be part of another curve; those of a fillet turn by 60°."""

_MIN_FREE_RATIO = 0.05
"""Part of the facets of an extrusion that are not facets of such cylinders; none is in a chain of true arcs."""

_MIN_SEAM_RATIO = 0.1
"""Length of a seam over the height of its extrusion; a shorter one is between two notches."""

_MIN_ZONE_COUNT = 5
"""Cones around one axis that meet smoothly, from which on they are rows of facets of one free profile."""

_MAX_CONTRADICTION_RATIO = 0.05
"""Difference of two ways to a point, over the length of the curve."""

_CLOSED_RATIO = 0.5
"""Part of the length of the curve by which two ways to a point differ if the curve is closed."""

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class _Frame:
    """Plane of a profile.

    kind:         of the swept surface
    origin, axis: (3,) as in `SurfaceArray`
    x_axis:       (3,) unit vector across the axis; the first coordinate of an extrusion's profile
    """

    kind: SurfaceKind
    origin: Float64
    axis: Float64
    x_axis: Float64

    def directions(self, points: Float64) -> tuple[Float64, Float64, Float64]:
        """Return (n, 3) unit vectors at points (n, 3): along both coordinates of the profile, and along the sweep."""
        if self.kind == SurfaceKind.EXTRUSION:
            axes = self.x_axis, np.cross(self.axis, self.x_axis), self.axis
            x, y, z = (np.broadcast_to(axis, points.shape) for axis in axes)
            return x, y, z
        offset = points - self.origin
        away = normalize(offset - (offset @ self.axis)[:, None] * self.axis)
        along = np.broadcast_to(self.axis, points.shape)
        return away, along, np.cross(along, away)

    def flatten(self, points: Float64) -> Float64:
        """Return the coordinates (n, 2) of points (n, 3) in the plane of the profile."""
        x, y, _ = self.directions(points)
        offset = points - self.origin
        return np.stack([np.einsum("ij,ij->i", offset, x), np.einsum("ij,ij->i", offset, y)], axis=1)

    def sweep(self, profile: Profile) -> SurfaceArray:
        """Return the surface of a profile."""
        kind, zero = np.array([self.kind], np.int8), np.zeros(1)
        profiles = np.empty(1, np.object_)
        profiles[0] = profile
        return SurfaceArray(kind, self.origin[None], self.axis[None], zero, zero, profiles)


def add_swept_surfaces(skin: Skin, faceted: FacetedSkin, graph: FacetGraph, segments: Segments) -> Segments:
    """Return the segments with the swept surfaces among their free facets.

    Args:
        skin: Mesh, millimeters.
        faceted: Its planar facets.
        graph: Graph of these facets.
        segments: Surfaces recognized before.
    """
    search = _Search(skin, faceted, graph, segments)
    for frame in [*_find_axes(skin, faceted, graph, segments), *_find_directions(graph, segments)]:
        search.try_frame(frame)
    search.award()
    surfaces = concatenate([segments.surfaces, *search.surfaces])
    uncut = np.where(search.segment == segments.segment, segments.uncut, search.segment)
    return Segments(surfaces, np.concatenate([segments.limit, search.limits]), search.segment, uncut)


def _find_directions(graph: FacetGraph, segments: Segments) -> list[_Frame]:
    """Return frames of extrusions along the normals of the largest facets, each direction once."""
    rows = np.flatnonzero((segments.segment < 0) & graph.is_broad)
    rows = rows[np.argsort(-graph.area[rows], kind="stable")]
    frames: list[_Frame] = []
    while len(rows) and len(frames) < _MAX_FRAMES:
        axis = graph.normal[rows[0]]
        axis = axis if axis[np.argmax(np.abs(axis))] > 0 else -axis
        frames.append(_Frame(SurfaceKind.EXTRUSION, graph.center[rows[0]], axis, perpendicular(axis[None])[0]))
        rows = rows[np.abs(graph.normal[rows] @ axis) < _PARALLEL_COS]
    return frames


def _find_axes(skin: Skin, faceted: FacetedSkin, graph: FacetGraph, segments: Segments) -> list[_Frame]:
    """Return frames of surfaces of revolution around the axes of round facets and recognized surfaces."""
    is_revolved = np.isin(segments.surfaces.kind, (SurfaceKind.CYLINDER, SurfaceKind.CONE, SurfaceKind.TORUS))
    size = np.bincount(segments.segment[segments.segment >= 0], minlength=len(segments.surfaces))
    rows = np.flatnonzero(is_revolved & (size > 0))
    rows = rows[np.argsort(-size[rows], kind="stable")][:_MAX_FRAMES]
    lines = [(segments.surfaces.origin[row], segments.surfaces.axis[row]) for row in rows.tolist()]
    outline = faceted.outline
    corners = np.diff(outline.loop_begin)
    loops = np.flatnonzero((corners >= _MIN_RIM_CORNERS) & (segments.segment[outline.loop_region] < 0))
    for loop in loops[np.argsort(-corners[loops], kind="stable")][:_MAX_FRAMES].tolist():
        rim = skin.points[outline.start[outline.loop_begin[loop] : outline.loop_begin[loop + 1]]]
        normal = graph.normal[outline.loop_region[loop]]
        center = _fit_center(rim, normal, _NODE_TOLERANCES * faceted.tolerance)
        if center is not None:
            lines.append((center, normal))
    frames: list[_Frame] = []
    for origin, axis in lines:
        offsets = [origin - frame.origin for frame in frames]
        aside = [np.linalg.norm(np.cross(offset, axis)) for offset in offsets]
        same = [
            distance <= _NODE_TOLERANCES * faceted.tolerance and abs(frame.axis @ axis) > _PARALLEL_COS
            for distance, frame in zip(aside, frames, strict=True)
        ]
        if not any(same):
            frames.append(_Frame(SurfaceKind.REVOLUTION, origin, axis, perpendicular(axis[None])[0]))
    return frames[:_MAX_FRAMES]


def _fit_center(points: Float64, normal: Float64, limit: float) -> Float64 | None:
    """Return the center (3,) of a circle through points (n, 3) across a normal; None if they do not lie on one."""
    x_axis = perpendicular(normal[None])[0]
    basis = np.stack([x_axis, np.cross(normal, x_axis)])
    mean = points.mean(axis=0)
    flat = (points - mean) @ basis.T
    columns = np.column_stack([2 * flat, np.ones(len(flat))])
    solution = np.linalg.lstsq(columns, np.einsum("ij,ij->i", flat, flat), rcond=None)[0]
    distance = lengths(flat - solution[:2])
    center: Float64 = mean + solution[:2] @ basis
    return center if float(np.abs(distance - distance.mean()).max()) <= limit else None


def _find_weak(graph: FacetGraph, segments: Segments) -> Mask:
    """Return (f,) the facets of cylinders that can be parts of another curve: short arcs fit many curves."""
    owner = np.flatnonzero(segments.segment >= 0)
    segment = segments.segment[owner]
    count = len(segments.surfaces)
    mean = np.stack([sum_by_label(segment, graph.normal[owner, axis], count) for axis in range(3)], axis=1)
    turn_cos = np.ones(count)
    np.minimum.at(turn_cos, segment, np.einsum("ij,ij->i", graph.normal[owner], normalize(mean)[segment]))
    is_weak = turn_cos > np.cos(_MAX_WEAK_TURN_RAD / 2)
    weak = np.zeros(graph.count, np.bool_)
    weak[owner] = is_weak[segment]
    return weak


class _Candidate(NamedTuple):
    """Swept surface of some facets; limit: millimeters that a point may lie off."""

    facets: IntIndex
    surface: SurfaceArray
    limit: float


class _Search:
    """State of a search for swept surfaces.

    surfaces, limits: swept surfaces, and millimeters that a point may lie off each
    segment:          (f,) surface of each facet; the swept ones follow those recognized before
    """

    def __init__(self, skin: Skin, faceted: FacetedSkin, graph: FacetGraph, segments: Segments) -> None:
        self._skin, self._faceted, self._graph = skin, faceted, graph
        self._free = segments.segment < 0
        self._usable = self._free | _find_weak(graph, segments)
        # each row of facets around an axis is a cone
        kind = segments.surfaces.kind[segments.segment[~self._free]]
        self._is_zone = np.zeros(graph.count, np.bool_)
        self._is_zone[~self._free] = np.isin(kind, (SurfaceKind.CYLINDER, SurfaceKind.CONE))
        self._first = len(segments.surfaces)
        self._candidates: list[_Candidate] = []
        self.segment = segments.segment.copy()
        self.surfaces: list[SurfaceArray] = []
        self.limits: list[float] = []

    def try_frame(self, frame: _Frame) -> None:
        """Try each smooth set of facets that a profile in a frame can sweep."""
        graph = self._graph
        max_sine = _MAX_NORMAL_SINE[frame.kind]
        lean = np.einsum("ij,ij->i", graph.normal, frame.directions(graph.center)[2])
        usable = self._usable | self._is_zone if frame.kind == SurfaceKind.REVOLUTION else self._usable
        swept = usable & ((np.abs(lean) <= max_sine) | graph.is_sliver)
        swept |= self._find_inner(swept, usable & graph.is_triangle & (np.abs(lean) <= _MAX_INNER_SINE))
        swept &= ~self._find_walls(frame, swept)
        if np.count_nonzero(swept) < _MIN_FACET_COUNT:
            return
        joins = swept[graph.left] & swept[graph.right] & ~self._find_corners(swept)
        count, label = components(graph.count, graph.left[joins], graph.right[joins])
        size = np.bincount(label[swept], minlength=count)
        free_size = np.bincount(label[swept & self._free], minlength=count)
        owner, _ = distinct_pairs(label[swept & ~self._free], self.segment[swept & ~self._free], self._first)
        is_new = free_size >= _MIN_FREE_RATIO * size
        if frame.kind == SurfaceKind.REVOLUTION:
            is_new |= np.bincount(owner, minlength=count) >= _MIN_ZONE_COUNT
        free_count = int(np.count_nonzero(self._free))
        min_count = max(_MIN_FACET_COUNT, _MIN_SHARE_RATIO * free_count if free_count > _LARGE_COUNT else 0)
        for piece in np.flatnonzero((size >= min_count) & is_new).tolist():
            self._try_piece(np.flatnonzero(swept & (label == piece)), frame)

    def award(self) -> None:
        """Assign facets to the candidates, large ones first; each facet once."""
        for facets, surface, limit in sorted(self._candidates, key=lambda candidate: -len(candidate.facets)):
            replaced = np.isin(self.segment, np.setdiff1d(self.segment[facets], [-1]))
            replaced[facets] = False
            is_taken = (self.segment[facets] >= self._first).any()
            if is_taken or np.count_nonzero(replaced) > _MAX_RELEASED_RATIO * len(facets):
                continue
            self.segment[replaced] = -1
            self.segment[facets] = self._first + len(self.surfaces)
            self.surfaces.append(surface)
            self.limits.append(limit)

    def _find_inner(self, swept: Mask, leaning: Mask) -> Mask:
        """Return (f,) the leaning triangles within a sweep: few together, with smooth edges to the sweep only."""
        graph, leaning = self._graph, leaning & ~swept
        joins = leaning[graph.left] & leaning[graph.right]
        count, group = components(graph.count, graph.left[joins], graph.right[joins])
        is_beside = leaning[graph.left] & swept[graph.right]
        is_outside = leaning[graph.left] & ~swept[graph.right] & ~leaning[graph.right]
        is_inner = np.bincount(group[leaning], minlength=count) <= _MAX_INNER_COUNT
        is_inner &= np.bincount(group[graph.left[is_beside]], minlength=count) > 0
        is_inner &= np.bincount(group[graph.left[is_outside]], minlength=count) == 0
        inner: Mask = leaning & is_inner[group]
        return inner

    def _find_walls(self, frame: _Frame, swept: Mask) -> Mask:
        """Return (f,) the planar facets that are much wider than their neighbors."""
        graph = self._graph
        owner, point = graph.expand(np.arange(graph.count))
        x, y, _ = frame.directions(graph.center)
        along = -np.einsum("ij,ij->i", graph.normal, y), np.einsum("ij,ij->i", graph.normal, x)
        reach = np.einsum("ij,ij->i", frame.flatten(graph.points[point]), np.stack(along, axis=1)[owner])
        width = np.maximum.reduceat(reach, graph.begin[:-1]) - np.minimum.reduceat(reach, graph.begin[:-1])
        widest = np.zeros(graph.count)
        joins = swept[graph.left] & swept[graph.right]
        np.maximum.at(widest, graph.left[joins], width[graph.right[joins]])
        walls: Mask = swept & ~graph.is_triangle & ~graph.is_sliver & (width > _MAX_WIDTH_RATIO * widest)
        if frame.kind == SurfaceKind.REVOLUTION:
            # the directions at the center of an end are arbitrary
            walls |= swept & graph.is_broad & (np.abs(graph.normal @ frame.axis) >= _PARALLEL_COS)
        return walls

    def _find_corners(self, swept: Mask) -> Mask:
        """Return (e,) the pairs of facets that turn much more than the others around them."""
        graph = self._graph
        cosine = np.einsum("ij,ij->i", graph.normal[graph.left], graph.normal[graph.right])
        turn = np.arccos(np.clip(cosine, -1, 1))
        turn[~(swept[graph.left] & swept[graph.right])] = 0.0
        turn[graph.is_sliver[graph.left] | graph.is_sliver[graph.right]] = 0.0
        # the largest turn of each facet, and the largest one but that
        order = np.lexsort((turn, graph.left))
        last = np.searchsorted(graph.left[order], np.arange(graph.count), side="right") - 1
        largest, second = np.zeros(graph.count), np.zeros(graph.count)
        has_any = np.bincount(graph.left, minlength=graph.count) > 0
        has_two = np.bincount(graph.left, minlength=graph.count) > 1
        largest[has_any] = turn[order][last[has_any]]
        second[has_two] = turn[order][last[has_two] - 1]
        others = np.maximum(
            np.where(turn == largest[graph.left], second[graph.left], largest[graph.left]),
            np.where(turn == largest[graph.right], second[graph.right], largest[graph.right]),
        )
        corners: Mask = (turn > _MIN_CORNER_RAD) & (turn > _MAX_TURN_RATIO * others)
        return corners

    def _try_piece(self, facets: IntIndex, frame: _Frame) -> None:
        """Add the swept surface of some facets to the candidates, if their points lie on a smooth curve."""
        tolerance = self._faceted.tolerance
        member = np.zeros(self._graph.count, np.bool_)
        member[facets] = True
        faces = np.flatnonzero(member[self._faceted.region])
        points = np.unique(self._skin.faces[faces])
        flat = frame.flatten(self._skin.points[points])
        is_revolved = frame.kind == SurfaceKind.REVOLUTION
        if is_revolved and float(flat[:, 0].min()) <= _MIN_AXIS_DISTANCE_RATIO * float(flat[:, 0].max()):
            return
        nodes, node = _merge_points(flat, _NODE_TOLERANCES * tolerance)
        if len(nodes) <= _MIN_FACET_COUNT:
            return
        x, y, _ = frame.directions(self._skin.points[self._skin.faces[faces]].mean(axis=1))
        cross = self._skin.cross[faces]
        normal = np.stack([np.einsum("ij,ij->i", cross, axis) for axis in (x, y)], axis=1)
        steps = _collect_steps(nodes, node[np.searchsorted(points, self._skin.faces[faces])], normal)
        ends = np.empty(0, np.intp)
        if not is_revolved:
            height = (self._skin.points[points] - frame.origin) @ frame.axis
            ends = self._find_seam_nodes(member, points, node, height)
        order, is_closed = _order_nodes(steps, len(nodes), ends)
        if len(order) <= _MIN_FACET_COUNT:
            return
        profile = fit_profile(nodes[order], frame.x_axis, tolerance, is_closed=is_closed)
        if profile is None or len(profile.poles) > _MAX_POLES_RATIO * len(points):
            return
        limit = float(np.abs(profile.relate(flat).distance).max()) + tolerance
        extent = float(np.linalg.norm(np.ptp(self._skin.points[points], axis=0)))
        if float(lengths(cross).sum()) / 2 < _MIN_WIDTH_LIMITS * limit * extent:
            return
        self._candidates.append(_Candidate(facets, frame.sweep(profile), limit))

    def _find_seam_nodes(
        self, member: Mask, points: NDArray[np.integer[Any]], node: IntIndex, height: Float64
    ) -> IntIndex:
        """Return nodes that are corners on exactly two outlines of a piece, one above the other.

        Args:
            member: (f,) facets of the piece.
            points: (k,) points of the piece, ascending.
            node: (k,) their nodes.
            height: (k,) their heights, mm.
        """
        skin = self._skin
        inside = member[self._faceted.region]
        half = np.flatnonzero(np.repeat(inside, 3) & ~((skin.twin >= 0) & inside[np.maximum(skin.twin // 3, 0)]))
        border = np.searchsorted(points, np.unique(skin.begin[half]))
        count = int(node.max()) + 1
        low, high = np.full(count, np.inf), np.full(count, -np.inf)
        np.minimum.at(low, node[border], height[border])
        np.maximum.at(high, node[border], height[border])
        is_pair = (np.bincount(node[border], minlength=count) == 2) & (high - low >= np.ptp(height) * _MIN_SEAM_RATIO)
        return np.flatnonzero(is_pair)


def _merge_points(points: Float64, limit: float) -> tuple[Float64, IntIndex]:
    """Merge points (n, 2) closer than a limit: return their means, and the mean of each point."""
    pairs = cKDTree(points).query_pairs(limit, output_type="ndarray")
    count, node = components(len(points), pairs[:, 0], pairs[:, 1])
    size = np.bincount(node, minlength=count)
    means = np.stack([np.bincount(node, points[:, axis], count) / size for axis in range(2)], axis=1)
    return means, node.astype(np.intp)


class _Steps(NamedTuple):
    """Steps from node to node along edges of triangles.

    start, stop: (n,) nodes
    size:        (n,) signed length of the arc between them, positive with the normals on the right, mm
    """

    start: IntIndex
    stop: IntIndex
    size: Float64


def _collect_steps(nodes: Float64, corner: IntIndex, normal: Float64) -> _Steps:
    """Return the steps along the edges of triangles (m, 3), with their vector areas (m, 2) across the direction."""
    count = len(nodes)
    mean = normalize(
        np.stack([sum_by_label(corner.ravel(), np.repeat(normal[:, k], 3), count) for k in range(2)], axis=1)
    )
    start, stop = corner.ravel(), corner[:, [1, 2, 0]].ravel()
    low, high = distinct_pairs(np.minimum(start, stop), np.maximum(start, stop), count)
    low, high = low[low != high], high[low != high]
    chord = nodes[high] - nodes[low]
    middle = mean[low] + mean[high]
    sense = np.sign(middle[:, 0] * chord[:, 1] - middle[:, 1] * chord[:, 0])
    half_turn = np.arccos(np.clip(np.einsum("ij,ij->i", mean[low], mean[high]), -1, 1)) / 2
    return _Steps(low, high, sense * lengths(chord) / np.sinc(half_turn / np.pi))


def _order_nodes(steps: _Steps, count: int, ends: IntIndex) -> tuple[IntIndex, bool]:
    """Return the nodes along their curve, and whether it is closed; a closed one begins at one of `ends`.

    Returns:
        No nodes if their positions contradict each other, or if none of `ends` is on a closed curve.
    """
    position = _sum_steps(steps, count)
    difference = position[steps.start] + steps.size - position[steps.stop]
    extent = float(np.ptp(position))
    is_around = np.abs(difference) > _CLOSED_RATIO * extent
    if is_around.any():
        period = float(np.median(np.abs(difference[is_around])))
        position = np.mod(position - position[ends[0]], period) if len(ends) else position
        extent = period
        difference -= np.rint(difference / period) * period
    if float(np.abs(difference).max()) > _MAX_CONTRADICTION_RATIO * extent or (is_around.any() and len(ends) == 0):
        return np.empty(0, np.intp), False
    return np.argsort(position, kind="stable"), bool(is_around.any())


def _sum_steps(steps: _Steps, count: int) -> Float64:
    """Return (count,) the position of each node, along a tree of steps."""
    start, stop = np.concatenate([steps.start, steps.stop]), np.concatenate([steps.stop, steps.start])
    size = np.concatenate([steps.size, -steps.size])
    weights = coo_matrix((np.arange(1, len(size) + 1), (start, stop)), (count, count)).tocsr()
    order, before = breadth_first_order(weights, int(start[0]), directed=True)
    reached = order[1:]
    step = size[np.asarray(weights[before[reached], reached]).ravel() - 1]
    position = np.zeros(count)
    for node, parent, length in zip(reached.tolist(), before[reached].tolist(), step.tolist(), strict=True):
        position[node] = position[parent] + length
    return position
