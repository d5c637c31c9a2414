"""Search for patches: smooth pieces of a mesh that no other surface explains become B-spline surfaces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.facets.facet_graph import FacetGraph
from meshhub.builtin_plugins.step.facets.faceting import FacetedSkin
from meshhub.builtin_plugins.step.facets.skin import Skin
from meshhub.builtin_plugins.step.recognition.patch_parameters import (
    RING_LOOPS,
    Frame,
    Piece,
    cut_piece,
    flatten_disc,
    project_piece,
    unroll_rectangle,
    unroll_ring,
    unroll_strip,
    wrap,
)
from meshhub.builtin_plugins.step.recognition.recognize import Segments
from meshhub.builtin_plugins.step.recognition.rim_curves import RimPoints, probe_border
from meshhub.builtin_plugins.step.surfaces.arrays import lengths, normalize, sum_by_label
from meshhub.builtin_plugins.step.surfaces.kinds import SurfaceKind
from meshhub.builtin_plugins.step.surfaces.patch_fit import MIN_SPANS, FitPoints, fit_patch
from meshhub.builtin_plugins.step.surfaces.patches import DEGREE, Patch
from meshhub.builtin_plugins.step.surfaces.surfaces import SurfaceArray, concatenate
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex
from meshhub.toolkit.topology import components

_MIN_FACET_COUNT = 8
"""Facets of a patch; fewer points say little about a surface."""

_MAX_WALL_CORNERS = 8
"""Corners of a facet of a smooth piece, of which some lie in one plane; a facet with more is a flat face."""

_MAX_AREA_RATIO = 4.0
"""Area of a facet with over three corners, over that of its largest neighbor; a larger one is a flat face."""

_MIN_WALL_RATIO = 0.02
"""Area of a flat face over that of the smooth piece beside it; smaller facets are flat parts of the piece."""

_MAX_WEAK_TURN_COS = np.cos(np.radians(50.0))
"""Cosine of the angle between the mean direction of a recognized surface and its facets, up to which it can be a part
of a patch: rows of its facets fit cones by chance."""

_MAX_WEAK_AREA_RATIO = 0.25
"""Area of such a surface over that of the patch."""

_MIN_FREE_RATIO = 0.65
"""Area of the facets on no surface over that of a patch with bands."""

_MIN_FREE_AMONG_SMALL_RATIO = 0.45
"""The same if all bands are small; on a finely triangulated tube, hundreds of small tori fit by chance."""

_MAX_SMALL_RATIO = 0.1
"""Area of a small band over that of the patch."""

_MAX_LARGE_ROUNDS = 4
"""Rounds in which surfaces that are faces by themselves are found; each makes pieces smaller."""

_ERROR_RATIO = 2e-5
"""Distance of a point from its patch over the diagonal of the piece."""

_MAX_ERROR_MM = 1e-3
"""Millimeters; the same for large pieces. CAD programs approximate intersections as closely."""

_SAGITTA_SHARE_RATIO = 0.2
"""Distance of a point from its patch over the sagitta of the triangles, allowed if a finer grid does not help."""

_MAX_LOOSE_ERROR_RATIO = 3e-4
"""The same over the diagonal of the piece."""

_NOISE_TOLERANCES = 2.0
"""Tolerances by which rounding moves a point off any patch."""

_RING_SPANS = 6
"""Spans of the first grid around a ring."""

_MIN_OPENNESS_RATIO = 0.2
"""Area of a piece seen along its mean normal over its area; that of a nearly closed piece is close to zero."""

_MAX_SPANS_RATIO = 0.5
"""Spans of the first grid along a strip over the corners on its rim; more slow CAD programs down."""

_MAX_FIRST_SPANS = 120
"""Spans of the first grid along a piece, at most; bounds the time."""

_TINY = 1e-300
"""Smallest divisor, so that an edge without a length does not divide by zero."""

Mask = NDArray[np.bool_]


class _Candidate(NamedTuple):
    """Patch of some facets; limit: millimeters that a point may lie off."""

    facets: IntIndex
    patch: Patch
    limit: float


class _Share(NamedTuple):
    """Recognized surfaces that may be parts of patches.

    facets:         (f,) their facets
    min_free_ratio: area of the facets on no surface over that of the patch
    """

    facets: Mask
    min_free_ratio: float


def add_patches(skin: Skin, faceted: FacetedSkin, graph: FacetGraph, segments: Segments) -> Segments:
    """Return the segments with patches of the smooth pieces of facets that no other surface explains.

    Args:
        skin: Mesh, millimeters.
        faceted: Its planar facets.
        graph: Graph of these facets.
        segments: Surfaces recognized before.
    """
    search = _Search(skin, faceted, graph, segments)
    candidates: list[_Candidate] = []
    for share in search.list_shares():
        for facets in search.find_pieces(share):
            candidate = search.fit_piece(facets)
            if candidate is not None:
                candidates.append(candidate)
                search.take(facets)
    candidates = search.refit(candidates)
    return add_surfaces(segments, candidates)


def add_surfaces(segments: Segments, candidates: Sequence[tuple[IntIndex, Patch, float]]) -> Segments:
    """Return the segments with patches: their facets, the patch, and the millimeters that a point may lie off."""
    if not candidates:
        return segments
    segment, uncut = segments.segment.copy(), segments.uncut.copy()
    for number, (facets, _, _) in enumerate(candidates, len(segments.surfaces)):
        segment[facets] = uncut[facets] = number
    surfaces = concatenate([segments.surfaces, *(_make_surface(patch) for _, patch, _ in candidates)])
    return Segments(surfaces, np.concatenate([segments.limit, [limit for *_, limit in candidates]]), segment, uncut)


def _make_surface(patch: Patch) -> SurfaceArray:
    """Return a patch as a surface; its origin and its axis lie in its middle."""
    place, u, v = patch.derive(np.full((1, 2), 0.5), 1)
    zero, shape = np.zeros(1), np.empty(1, np.object_)
    shape[0] = patch
    return SurfaceArray(np.array([SurfaceKind.PATCH], np.int8), place, normalize(np.cross(u, v)), zero, zero, shape)


class _Search:
    """Search for the smooth pieces of a mesh."""

    def __init__(self, skin: Skin, faceted: FacetedSkin, graph: FacetGraph, segments: Segments) -> None:
        self._skin, self._faceted, self._graph, self._segments = skin, faceted, graph, segments
        self._is_taken = np.zeros(graph.count, np.bool_)
        # (f,) smooth piece of each facet, -1 for flat faces; those of patches have the highest numbers
        self._piece = np.full(graph.count, -1, np.intp)
        self._taken_count = 0
        self._tried: set[bytes] = set()

    def take(self, facets: IntIndex) -> None:
        """Leave the facets of a patch out of the following pieces."""
        self._is_taken[facets] = True
        self._piece[facets] = self._graph.count + self._taken_count
        self._taken_count += 1

    def list_shares(self) -> list[_Share]:
        """Return which recognized surfaces may be parts of patches, in the order in which this is tried."""
        nothing = np.zeros(self._graph.count, np.bool_)
        # short bands of a tube fit tori by chance
        return [_Share(self._find_bands(), _MIN_FREE_RATIO), _Share(self._find_weak(), 0.0), _Share(nothing, 0.0)]

    def find_pieces(self, share: _Share) -> Iterator[IntIndex]:
        """Iterate over the facets of the pieces that were not tried yet, large ones first."""
        graph, owner = self._graph, self._segments.segment >= 0
        usable = (~owner | share.facets) & ~self._is_taken
        usable &= ~self._find_walls(usable)
        for _ in range(_MAX_LARGE_ROUNDS):
            large = self._find_large(usable)
            if not large.any():
                break
            usable &= ~large
        label = self._label(usable)
        size = np.bincount(label[usable], minlength=graph.count)
        area = sum_by_label(label[usable], graph.area[usable], graph.count)
        free = usable & ~owner
        free_area = sum_by_label(label[free], graph.area[free], graph.count)
        order = np.argsort(-size, kind="stable")
        is_small = self._measure_largest(label, usable & owner) <= _MAX_SMALL_RATIO * area
        min_free_ratio = np.where(
            is_small, min(share.min_free_ratio, _MIN_FREE_AMONG_SMALL_RATIO), share.min_free_ratio
        )
        is_piece = (size >= _MIN_FACET_COUNT) & (free_area > min_free_ratio * area)
        label = np.where(usable, label, -1)
        self._fill_islands(label)
        self._piece = np.where(self._is_taken, self._piece, np.where(is_piece[label] & (label >= 0), label, -1))
        for number in order[is_piece[order]].tolist():
            facets = np.flatnonzero(label == number)
            key = facets.tobytes()
            if key not in self._tried:
                self._tried.add(key)
                yield facets

    def _measure_largest(self, label: IntIndex, own: Mask) -> Float64:
        """Return (f,) the largest area of one surface in each piece, mm²; `own` are the facets on surfaces (f,)."""
        facets, largest = np.flatnonzero(own), np.zeros(self._graph.count)
        count = len(self._segments.surfaces)
        keys, part = np.unique(label[facets] * count + self._segments.segment[facets], return_inverse=True)
        np.maximum.at(largest, keys // max(count, 1), sum_by_label(part, self._graph.area[facets], len(keys)))
        return largest

    def _find_large(self, usable: Mask) -> Mask:
        """Return (f,) the usable facets of surfaces with much of the area of their pieces: faces by themselves."""
        graph, segment = self._graph, self._segments.segment
        label, count = self._label(usable), len(self._segments.surfaces)
        own = np.flatnonzero((segment >= 0) & usable)
        piece_area = sum_by_label(label[usable], graph.area[usable], graph.count)
        own_area = sum_by_label(segment[own], graph.area[own], count)
        largest = np.zeros(count)
        np.maximum.at(largest, segment[own], piece_area[label[own]])
        large = np.zeros(graph.count, np.bool_)
        large[own] = (own_area > _MAX_WEAK_AREA_RATIO * largest)[segment[own]]
        return large

    def _fill_islands(self, label: IntIndex) -> None:
        """Add facets that one piece surrounds, and that are small beside it, to the piece; changes labels in place.

        They are slivers with arbitrary normals, and flat parts of the piece.
        """
        skin, region, count = self._skin, self._faceted.region, self._graph.count
        area = sum_by_label(label[label >= 0], self._graph.area[label >= 0], count)
        is_free = ((label < 0) & ~self._is_taken) | (area[label] <= _MIN_WALL_RATIO * area.max())
        half = np.flatnonzero(skin.twin >= 0)
        left, right = region[half // 3], region[skin.twin[half] // 3]
        joins = is_free[left] & is_free[right]
        islands, island = components(count, left[joins], right[joins])
        is_shore = is_free[left] & ~is_free[right]
        shore, beside = island[left[is_shore]], label[right[is_shore]]
        low, high = np.full(islands, count), np.full(islands, -1)
        np.minimum.at(low, shore, beside)
        np.maximum.at(high, shore, beside)
        island_area = sum_by_label(island[is_free], self._graph.area[is_free], islands)
        is_filled = (low == high) & (island_area <= _MIN_WALL_RATIO * area[np.maximum(high, 0)])
        # a flat end meets the piece at sharp edges only
        one, other = self._graph.left, self._graph.right
        is_smooth = is_free[one] & ~is_free[other]
        is_filled &= np.bincount(island[one[is_smooth]], minlength=islands) > 0
        filled = is_free & is_filled[island]
        label[filled] = low[island[filled]]

    def _label(self, usable: Mask) -> IntIndex:
        """Return (f,) labels of the smooth pieces of usable facets."""
        graph = self._graph
        joins = usable[graph.left] & usable[graph.right]
        return components(graph.count, graph.left[joins], graph.right[joins])[1].astype(np.intp)

    def _find_bands(self) -> Mask:
        """Return (f,) the facets of surfaces of revolution."""
        segment = self._segments.segment
        bands = segment >= 0
        bands[bands] = self._segments.surfaces.kind[segment[bands]] != SurfaceKind.PATCH
        return bands

    def _find_weak(self) -> Mask:
        """Return (f,) the facets of surfaces that can be parts of patches."""
        graph, segments = self._graph, self._segments
        owner = np.flatnonzero(segments.segment >= 0)
        segment, count = segments.segment[owner], len(segments.surfaces)
        mean = np.stack([sum_by_label(segment, graph.normal[owner, axis], count) for axis in range(3)], axis=1)
        turn_cos = np.ones(count)
        sure = ~graph.is_sliver[owner]
        cosine = np.einsum("ij,ij->i", graph.normal[owner], normalize(mean)[segment])
        np.minimum.at(turn_cos, segment[sure], cosine[sure])
        weak = np.zeros(graph.count, np.bool_)
        weak[owner] = (turn_cos > _MAX_WEAK_TURN_COS)[segment]
        return weak

    def _find_walls(self, usable: Mask) -> Mask:
        """Return (f,) the facets that are flat faces."""
        graph = self._graph
        corners = np.bincount(self._faceted.outline.region, minlength=graph.count)
        others = np.zeros(graph.count)
        joins = usable[graph.right] & ~graph.is_broad[graph.right]
        np.maximum.at(others, graph.left[joins], graph.area[graph.right[joins]])
        doubtful = corners > _MAX_WALL_CORNERS
        doubtful |= ~graph.is_triangle & ~graph.is_sliver & (graph.area > _MAX_AREA_RATIO * others)
        # a flat facet within a large smooth piece is a part of it
        label = self._label(usable & ~doubtful)
        piece_area = sum_by_label(label, np.where(usable & ~doubtful, graph.area, 0.0), graph.count)
        beside = np.zeros(graph.count)
        np.maximum.at(beside, graph.left, piece_area[label[graph.right]])
        loops = np.bincount(self._faceted.outline.loop_region, minlength=graph.count)
        walls: Mask = doubtful & ((graph.area > _MIN_WALL_RATIO * beside) | (loops > 1))
        return walls

    def fit_piece(self, facets: IntIndex) -> _Candidate | None:
        """Return the patch of some facets; None if they have no parameters, or no patch passes through their points."""
        member = np.zeros(self._graph.count, np.bool_)
        member[facets] = True
        faces = self._skin.faces[member[self._faceted.region]]
        piece = cut_piece(faces.astype(np.intp), self._skin.points)
        if piece is None:
            return None
        diagonal = float(np.linalg.norm(np.ptp(piece.points, axis=0)))
        noise = _NOISE_TOLERANCES * self._faceted.tolerance
        # the shape of a piece that is as coarsely rounded is unknown, and so is the volume under it
        if noise > _MAX_LOOSE_ERROR_RATIO * diagonal:
            return None
        error = max(min(_ERROR_RATIO * diagonal, _MAX_ERROR_MM), noise)
        allowed = min(_SAGITTA_SHARE_RATIO * _measure_sagitta(piece), _MAX_LOOSE_ERROR_RATIO * diagonal)
        rim = probe_border(self._skin, self._faceted, self._segments, facets, self._piece)
        allowed = max(error, allowed)
        patch = fit_surface(piece, rim, (error, allowed))
        if patch is None:
            return None
        off = float(np.abs(patch.relate(np.concatenate([piece.points, rim.position])).distance).max())
        return _Candidate(facets, patch, off + self._faceted.tolerance) if off <= allowed else None

    def refit(self, candidates: list[_Candidate]) -> list[_Candidate]:
        """Return the candidates, fitted again to the straight edges of pieces beside them that stay facets."""
        region, skin, count = self._faceted.region, self._skin, self._graph.count
        half = np.flatnonzero(skin.twin >= 0)
        left, right = region[half // 3], region[skin.twin[half] // 3]
        is_border = (self._piece[left] >= count) & (self._piece[right] >= 0) & (self._piece[right] < count)
        changed = np.unique(self._piece[left[is_border]]) - count
        self._piece[self._piece < count] = -1
        result = []
        for number, candidate in enumerate(candidates):
            fitted = self.fit_piece(candidate.facets) if number in changed else candidate
            if fitted is None:
                self._piece[candidate.facets] = -1
            else:
                result.append(fitted)
        return result


def _measure_sagitta(piece: Piece) -> float:
    """Return the millimeters between most triangles and an arc with the turns at their edges."""
    count = len(piece.points)
    begin, end = piece.triangles.ravel(), piece.triangles[:, [1, 2, 0]].ravel()
    corner = piece.points[piece.triangles]
    cross = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    order, twins = np.argsort(begin * count + end), np.argsort(end * count + begin)
    keys, twin_keys = (begin * count + end)[order], (end * count + begin)[twins]
    place = np.minimum(np.searchsorted(keys, twin_keys), len(keys) - 1)
    is_pair = keys[place] == twin_keys
    one, other = twins[is_pair], order[place[is_pair]]
    normal = normalize(cross)
    turn = np.arccos(np.clip(np.einsum("ij,ij->i", normal[one // 3], normal[other // 3]), -1, 1))
    side = np.maximum(lengths(piece.points[end[one]] - piece.points[begin[one]]), _TINY)
    return float(np.percentile(lengths(cross)[one // 3] / side * turn / 8, 90)) if len(one) else 0.0


def fit_surface(piece: Piece, rim: RimPoints, error: tuple[float, float]) -> Patch | None:
    """Return a patch within an error of the points of a piece; None if there is none.

    Args:
        piece: Triangles.
        rim: Points on the border of the piece.
        error: Millimeters that a point may lie off: desired, and allowed.
    """
    is_ring = piece.loop_count == RING_LOOPS
    fits = (_fit_strip, _fit_heights, *((_fit_ring,) if is_ring else (_fit_rectangle, _fit_disc)))
    return next((patch for fit in fits if (patch := fit(piece, rim, error)) is not None), None)


def _fit_heights(piece: Piece, rim: RimPoints, error: tuple[float, float]) -> Patch | None:
    """Return a patch over a plane; None if the piece overhangs it, or if no such patch is near its points."""
    projected = project_piece(piece)
    if projected is None:
        return None
    place, frame = projected
    between = rim.position @ frame.axes.T
    between[:, :2] = (between[:, :2] - frame.low) / frame.size
    place = np.concatenate([place, between])
    if place[:, :2].min() < 0 or place[:, :2].max() > 1:
        return None
    points = FitPoints(place[:, :2], place[:, 2:], np.zeros((len(place), 2), np.bool_))
    heights = fit_patch(points, error, is_closed=False, may_slide=False)
    return None if heights is None else raise_heights(heights, frame)


def _fit_strip(piece: Piece, rim: RimPoints, error: tuple[float, float]) -> Patch | None:
    """Return a patch with straight rulings between two rims; None if the piece has other points."""
    parameters = unroll_strip(piece)
    if parameters is None:
        return None
    is_closed = piece.loop_count == RING_LOOPS
    points = _add_rim(piece, rim, parameters, is_closed=is_closed)
    spans = _limit_spans(_MAX_SPANS_RATIO * len(piece.points) / 4), 1
    # nothing but the rulings determines the middle of the strip
    return fit_patch(points, error, is_closed=is_closed, may_slide=False, first_spans=spans, aspect=np.inf)


def _fit_ring(piece: Piece, rim: RimPoints, error: tuple[float, float]) -> Patch | None:
    """Return a closed patch between two rims."""
    parameters = unroll_ring(piece)
    if parameters is None:
        return None
    points = _add_rim(piece, rim, parameters, is_closed=True)
    held = np.isin(points.parameters, (0.0, 1.0))
    held[:, 0] &= held[:, 1]
    around = float(lengths(piece.points[piece.rim[:, 1]] - piece.points[piece.rim[:, 0]]).sum()) / 2
    aspect = around**2 / _measure_area(piece)
    spans = _RING_SPANS, _limit_spans(_RING_SPANS / aspect)
    points = points._replace(held=held)
    return fit_patch(points, error, is_closed=True, may_slide=True, first_spans=spans, aspect=aspect)


def _fit_rectangle(piece: Piece, rim: RimPoints, error: tuple[float, float]) -> Patch | None:
    """Return an open patch that ends at the four sides of the piece; None if it has another shape."""
    parameters = unroll_rectangle(piece)
    if parameters is None:
        return None
    points = _add_rim(piece, rim, parameters, is_closed=False)
    points = points._replace(held=np.isin(points.parameters, (0.0, 1.0)))
    begin, end = piece.rim.T
    is_along = (parameters[begin, 1] == parameters[end, 1]) & np.isin(parameters[begin, 1], (0.0, 1.0))
    along = float(lengths(piece.points[end] - piece.points[begin])[is_along].sum()) / 2
    aspect = along**2 / _measure_area(piece)
    corners = int(is_along.sum()) / 2
    spans = _limit_spans(min(MIN_SPANS * aspect, _MAX_SPANS_RATIO * corners)), MIN_SPANS
    return fit_patch(points, error, is_closed=False, may_slide=True, first_spans=spans, aspect=aspect)


def _fit_disc(piece: Piece, rim: RimPoints, error: tuple[float, float]) -> Patch | None:
    """Return an open patch that may overhang, and reaches beyond the piece."""
    corner = piece.points[piece.triangles]
    cross = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    if float(np.linalg.norm(cross.sum(axis=0))) < _MIN_OPENNESS_RATIO * float(lengths(cross).sum()):
        return None
    parameters = flatten_disc(piece)
    if parameters is None:
        return None
    return fit_patch(_add_rim(piece, rim, parameters, is_closed=False), error, is_closed=False, may_slide=True)


def _add_rim(piece: Piece, rim: RimPoints, parameters: Float64, *, is_closed: bool) -> FitPoints:
    """Return the points of a piece with parameters (p, 2), and those on its border with parameters between these."""
    begin, end = (parameters[np.searchsorted(piece.number, corner)] for corner in (rim.begin, rim.end))
    step = end - begin
    if is_closed:
        step[:, 0] = wrap(step[:, 0])
    between = begin + rim.share[:, None] * step
    if is_closed:
        between[:, 0] %= 1.0
    place = np.concatenate([parameters, between])
    return FitPoints(place, np.concatenate([piece.points, rim.position]), np.zeros((len(place), 2), np.bool_))


def _measure_area(piece: Piece) -> float:
    """Return the area of a piece in mm²."""
    corner = piece.points[piece.triangles]
    return float(lengths(np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])).sum()) / 2


def _limit_spans(count: float) -> int:
    """Return a number of spans along a piece that are about as long as those across it."""
    return min(max(MIN_SPANS, round(count)), _MAX_FIRST_SPANS)


def raise_heights(heights: Patch, frame: Frame) -> Patch:
    """Return the patch of heights (c, d, 1) over the box of a frame."""
    poles = np.empty((*heights.poles.shape[:2], 3))
    # a spline whose poles lie at the averages of its knots is linear
    for axis, knots in enumerate((heights.u_knots, heights.v_knots)):
        place = np.convolve(knots[1:-1], np.ones(DEGREE) / DEGREE, "valid")
        shape = (-1, 1) if axis == 0 else (1, -1)
        poles[..., axis] = (frame.low[axis] + frame.size[axis] * place).reshape(shape)
    poles[..., 2] = heights.poles[..., 0]
    return Patch(heights.u_knots, heights.v_knots, poles @ frame.axes)
