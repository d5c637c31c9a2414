"""Seams of bands: faces of cylinders and cones that wind once around their axis, with notched rims or with holes.

A CAD program that reads such a face without a seam edge adds one, and splits edges that other faces share. Rounding may
then tear the shell there. The writer therefore adds the seam: a straight edge that meets the two rims and nothing else.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.facets.outline import Outline
from meshhub.builtin_plugins.step.facets.skin import Skin
from meshhub.builtin_plugins.step.recognition.regions import Regions
from meshhub.builtin_plugins.step.solids.curves import CurveKind, Curves
from meshhub.builtin_plugins.step.solids.tolerances import MIN_EDGE_MM
from meshhub.builtin_plugins.step.surfaces import traits
from meshhub.builtin_plugins.step.surfaces.arrays import normalize, perpendicular
from meshhub.builtin_plugins.step.surfaces.surfaces import cylindrical
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex

_DIRECTIONS_COUNT = 32
"""Directions about the axis that are tried, beside the common one."""
_CLEAR_COS = np.cos(np.radians(10.0))
"""Cosine of the angle between the common direction and the nearest notch or hole from which it is preferred."""
_CROSSING_COST = 4.0
"""Cost of a seam that meets a notch or a hole; costs without it are cosines from -1 to 1."""
_NEAR_RATIO = 0.5
"""Share of a rim's half-edge; closer to a fixed corner, a seam would leave an edge too short for CAD programs."""
_NEAR_RAD = 0.02
"""Radians about the axis; the same where the half-edges are tiny, as beside a tangent point."""
PARALLEL_COS = 1 - 1e-6
"""Cosine of the angle between the axes of a rim and of its surface; 0.08°, more than the error of fitted axes."""

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Band:
    """A face that winds once around its axis, and the ends of its seam.

    region:    its region
    direction: (3,) unit vector from the axis to the seam
    loops:     its two rims
    points:    the corner of each rim at which the seam ends, or a point of the skin that becomes this corner
    position:  (2, 3) positions of these corners on the circles of the rims, mm
    """

    region: int
    direction: Float64
    loops: tuple[int, int]
    points: tuple[int, int]
    position: Float64


def common_directions(axis: Float64) -> Float64:
    """Return (n, 3) unit vectors perpendicular to (n, 3) axes, equal for axes that are nearly equal or opposite.

    Seams of adjacent faces in a common direction end in one corner.
    """
    # rounded, so that the noise of nearly equal axes does not select different helpers
    helper = np.eye(3)[np.argmin(np.round(np.abs(axis), 2), axis=1)]
    return normalize(helper - axis * np.einsum("ij,ij->i", helper, axis)[:, None])


@dataclass(frozen=True, eq=False)
class _BandEdges:
    """Outlines of all bands, a row for each half-edge.

    region:    (w,) region of each band
    half:      (h,) index in `Outline.half`; half-edges of one loop are adjacent
    band:      (h,) index in `region`
    loop:      (h,) loop of the outline
    chain:     (h,) chain of the outline
    low, high: (h, 3) unit vectors from the axis to the beginning and the end
    rim:       (h,) whether the half-edge is part of a circle about the axis
    whole:     (h,) whether the half-edge is part of an edge that winds once around the axis, but is no such circle
    """

    region: IntIndex
    half: IntIndex
    band: IntIndex
    loop: IntIndex
    chain: IntIndex
    low: Float64
    high: Float64
    rim: Mask
    whole: Mask

    def take(self, bands: IntIndex) -> _BandEdges:
        """Return the half-edges of some bands."""
        number = np.full(len(self.region), -1, np.intp)
        number[bands] = np.arange(len(bands))
        kept = number[self.band] >= 0
        return _BandEdges(
            self.region[bands],
            self.half[kept],
            number[self.band[kept]],
            self.loop[kept],
            self.chain[kept],
            self.low[kept],
            self.high[kept],
            self.rim[kept],
            self.whole[kept],
        )


def _collect_band_edges(skin: Skin, regions: Regions, outline: Outline, curves: Curves) -> _BandEdges:
    surfaces = regions.surfaces
    is_revolved = traits.IS_RULED[surfaces.kind]
    half = np.flatnonzero(is_revolved[regions.region[outline.half // 3]])
    owner = regions.region[outline.half[half] // 3]
    surface = surfaces.take(owner)
    _, _, low = cylindrical(surface, skin.points[skin.begin[outline.half[half]]])
    _, _, high = cylindrical(surface, skin.points[skin.end[outline.half[half]]])
    turn = np.arctan2(np.einsum("ij,ij->i", np.cross(low, high), surface.axis), np.einsum("ij,ij->i", low, high))
    chain = np.repeat(np.arange(len(outline.edge)), np.diff(outline.chain_begin))[half]
    loop = np.repeat(np.arange(len(outline.loop_begin) - 1), np.diff(outline.loop_begin))[chain]
    winds_around = np.abs(np.bincount(loop, turn, len(outline.loop_begin) - 1)) > np.pi
    is_band = np.zeros(len(surfaces), np.bool_)
    is_band[outline.loop_region[winds_around]] = True
    edge = outline.edge[chain]
    is_parallel = np.abs(np.einsum("ij,ij->i", curves.axis[edge], surface.axis)) > PARALLEL_COS
    rim = (curves.kind[edge] == CurveKind.CIRCLE) & is_parallel
    is_whole = winds_around & (np.diff(outline.loop_begin) == 1)
    is_whole &= (outline.start == outline.stop)[outline.loop_begin[:-1]]
    edges = _BandEdges(
        np.arange(len(surfaces)), half, owner.astype(np.intp), loop, chain, low, high, rim, is_whole[loop] & ~rim
    )
    return edges.take(np.flatnonzero(is_band))


def find_free_directions(skin: Skin, regions: Regions, outline: Outline, curves: Curves) -> tuple[IntIndex, Float64]:
    """Return the regions (w,) of all bands, and for each the direction (w, 3) farthest from its notches and holes."""
    edges = _collect_band_edges(skin, regions, outline, curves)
    best = common_directions(regions.surfaces.axis[edges.region])
    # all directions are equal for a band between two whole circles
    notched = _find_notched(outline, edges)
    directions, cost = _rate_directions(edges.take(notched), regions.surfaces.axis[edges.region[notched]])
    best[notched] = directions[cost.argmin(axis=0), np.arange(len(notched))]
    return edges.region, best


def _find_notched(outline: Outline, edges: _BandEdges) -> IntIndex:
    """Return the indices of the bands whose outline is not just two whole circles."""
    count = int(edges.region.max(initial=-1)) + 1
    has_several_chains = np.bincount(outline.region, minlength=count)[edges.region] > 2
    return np.union1d(np.flatnonzero(has_several_chains), edges.band[~edges.rim])


def _rate_directions(edges: _BandEdges, axis: Float64) -> tuple[Float64, Float64]:
    """Return candidate directions (s, w, 3) of the bands' seams, and their costs (s, w).

    The cost is below `_CROSSING_COST` - 1 if the seam meets two rims and nothing else. The lowest cost is farthest
    from notches and holes.
    """
    common = common_directions(axis)
    u = perpendicular(axis)
    v = np.cross(axis, u)
    angle = np.arange(_DIRECTIONS_COUNT) * (2 * np.pi / _DIRECTIONS_COUNT)
    directions = np.concatenate([common[None], np.cos(angle)[:, None, None] * u + np.sin(angle)[:, None, None] * v])
    cost = np.full((len(directions), len(edges.region)), -1.0)
    is_obstacle = ~(edges.rim | edges.whole)
    band = edges.band[is_obstacle]
    for number, direction in enumerate(directions):
        for to_end in (edges.low[is_obstacle], edges.high[is_obstacle]):
            np.maximum.at(cost[number], band, np.einsum("ij,ij->i", to_end, direction[band]))
        met_count = np.bincount(edges.band[_are_met(edges, direction, axis)], minlength=len(edges.region))
        cost[number] += np.where(met_count == 2, 0.0, _CROSSING_COST)
    # rounded, so that rounding noise does not decide between equal candidates
    cost = np.round(cost, 3)
    cost[0, cost[0] < _CLEAR_COS] = -1.0
    return directions, cost


def _are_met(edges: _BandEdges, direction: Float64, axis: Float64) -> Mask:
    """Return which half-edges (h,) the seam of their band meets; a seam has a direction (w, 3) from its axis (w, 3)."""
    across = np.cross(axis, direction)
    low_before = np.einsum("ij,ij->i", edges.low, across[edges.band]) < 0
    high_before = np.einsum("ij,ij->i", edges.high, across[edges.band]) < 0
    is_on_side = np.einsum("ij,ij->i", edges.low + edges.high, direction[edges.band]) > 0
    met: Mask = (low_before != high_before) & is_on_side
    return met


def find_bands(skin: Skin, regions: Regions, outline: Outline, curves: Curves) -> tuple[Band, ...]:
    """Return the bands that a seam can slit.

    The seam must meet two circles about the axis, or one of them and the corner of another edge that is a whole loop,
    such as an ellipse. Bands whose outline is two whole circles are left out: `seams` finds their seams without fixed
    corners.
    """
    edges = _collect_band_edges(skin, regions, outline, curves)
    edges = edges.take(_find_notched(outline, edges))
    axis = regions.surfaces.axis[edges.region]
    directions, cost = _rate_directions(edges, axis)
    order = np.argsort(cost, axis=0, kind="stable")
    finder = _SeamFinder(skin, outline, curves, edges)
    bands: list[Band] = []
    for number in range(len(edges.region)):
        usable = order[cost[order[:, number], number] < _CROSSING_COST - 1, number]
        candidates = (finder.find(number, direction, axis[number]) for direction in directions[usable, number])
        band = next((candidate for candidate in candidates if candidate is not None), None)
        if band is not None:
            bands.append(band)
    return tuple(bands)


class _SeamFinder:
    """Search for the corners of rims at which seams can end; a corner is moved to one position at most."""

    def __init__(self, skin: Skin, outline: Outline, curves: Curves, edges: _BandEdges) -> None:
        self._skin, self._outline, self._curves, self._edges = skin, outline, curves, edges
        chain, count = outline.edge_chain, len(skin.points)
        self._edge_count = np.bincount(np.concatenate([outline.start[chain], outline.stop[chain]]), minlength=count)
        rim = outline.half[edges.half[edges.rim]]
        self._rim_count = np.bincount(np.concatenate([skin.begin[rim], skin.end[rim]]), minlength=count)
        order = np.argsort(edges.band, kind="stable")
        begin = np.searchsorted(edges.band[order], np.arange(len(edges.region) + 1))
        self._rows = [order[first:stop] for first, stop in itertools.pairwise(begin.tolist())]
        self._moved: dict[int, Float64] = {}

    def find(self, band: int, direction: Float64, axis: Float64) -> Band | None:
        """Return a band with its seam in a direction, or at a fixed corner close to it; None if neither is possible."""
        edges = self._edges
        pair = self._find_rims(band, direction, axis)
        fixed = [self._find_fixed_corner(row, direction, axis) for row in pair]
        nearest = min((corner for corner in fixed if corner is not None), default=None)
        whole = [row for row in pair if edges.whole[row]]
        if len(whole) == 1:
            nearest = 0.0, self._find_first_half_edge(whole[0])
        if nearest is not None:
            # the seam goes through the corner that cannot move, also on the other rim
            direction = edges.low[nearest[1]]
            pair = self._find_rims(band, direction, axis)
        if len(pair) != 2:
            return None
        (point, position), (far_point, far_position) = (self._find_end(row, direction, axis) for row in pair)
        if min(point, far_point) < 0:
            return None
        ends = ((point, position), (far_point, far_position))
        self._moved.update((end, place) for end, place in ends if self._edge_count[end] <= 2)
        loops = int(edges.loop[pair[0]]), int(edges.loop[pair[1]])
        region = int(edges.region[band])
        return Band(region, direction, loops, (point, far_point), np.stack([position, far_position]))

    def _find_rims(self, band: int, direction: Float64, axis: Float64) -> list[int]:
        """Return the half-edges of two rims that a seam meets; none if it meets anything else."""
        edges, rows = self._edges, self._rows[band]
        across = np.cross(axis, direction)
        is_crossed = (edges.low[rows] @ across < 0) != (edges.high[rows] @ across < 0)
        met = rows[is_crossed & ((edges.low[rows] + edges.high[rows]) @ direction > 0)]
        met = met[np.argsort(edges.loop[met], kind="stable")]
        loop = edges.loop[met]
        is_usable = len(met) == 2 and (edges.rim | edges.whole)[met].all() and loop[0] != loop[1]
        is_usable = is_usable and edges.rim[met].any()
        return met.tolist() if is_usable else []

    def _find_first_half_edge(self, met: int) -> int:
        """Return the half-edge at which the loop of a half-edge begins."""
        edges = self._edges
        rows = self._rows[edges.band[met]]
        rows = rows[edges.loop[rows] == edges.loop[met]]
        corner = self._outline.start[self._outline.loop_begin[edges.loop[met]]]
        return int(rows[self._skin.begin[self._outline.half[edges.half[rows]]] == corner][0])

    def _find_fixed_corner(self, met: int, direction: Float64, axis: Float64) -> tuple[float, int] | None:
        """Return the fixed corner of a rim that is too close to a seam: the angle (rad), and its half-edge."""
        edges, skin = self._edges, self._skin
        rows = self._rows[edges.band[met]]
        rows = rows[edges.loop[rows] == edges.loop[met]]
        rows = rows[self._edge_count[skin.begin[self._outline.half[edges.half[rows]]]] > 2]
        if len(rows) == 0:
            return None
        half_edge_rad = float(np.arccos(np.clip(edges.low[met] @ edges.high[met], -1, 1)))
        limit = max(_NEAR_RATIO * half_edge_rad, _NEAR_RAD)
        angle = np.arctan2(np.abs(edges.low[rows] @ np.cross(axis, direction)), edges.low[rows] @ direction)
        nearest = int(angle.argmin())
        return (float(angle[nearest]), int(rows[nearest])) if angle[nearest] <= limit else None

    def _find_end(self, met: int, direction: Float64, axis: Float64) -> tuple[int, Float64]:
        """Return the corner and position (3,) at which a seam ends on a half-edge; corner -1 if none is possible."""
        edges, skin, outline = self._edges, self._skin, self._outline
        edge = outline.edge[edges.chain[met]]
        if edges.whole[met]:
            point = int(outline.start[outline.loop_begin[edges.loop[met]]])
            is_free = self._edge_count[point] == 2 and point not in self._moved
            return (point if is_free else -1), skin.points[point]
        center, rim_axis = self._curves.center[edge], self._curves.axis[edge]
        towards = normalize((direction - rim_axis * (rim_axis @ direction))[None])[0]
        position = center + self._curves.radius[edge] * towards
        near = self._find_fixed_corner(met, direction, axis)
        if near is not None:
            corner = int(skin.begin[outline.half[edges.half[near[1]]]])
            is_aligned = float(np.linalg.norm(skin.points[corner] - position)) <= MIN_EDGE_MM
            is_usable = is_aligned and self._rim_count[corner] >= 2
            return (corner if is_usable else -1), skin.points[corner]
        first, stop = outline.loop_begin[edges.loop[met]], outline.loop_begin[edges.loop[met] + 1]
        if stop - first == 1:
            point = int(outline.start[first])
            is_free = self._edge_count[point] == 2 and point not in self._moved
            return (point if is_free else -1), position
        half = outline.half[edges.half[met]]
        ends = int(skin.begin[half]), int(skin.end[half])
        for point in ends:
            # a second corner at the end of the seam of the adjacent band would leave an edge of length zero
            if point in self._moved and float(np.linalg.norm(self._moved[point] - position)) <= MIN_EDGE_MM:
                return point, self._moved[point]
        # a corner between two arcs of one circle, otherwise a point that is not a corner yet
        for edge_count in (2, 0):
            for point in ends:
                is_free = self._edge_count[point] == edge_count and point not in self._moved
                if is_free and self._rim_count[point] >= 2:
                    return point, position
        return -1, position


def find_new_corners(outline: Outline, bands: tuple[Band, ...]) -> IntIndex:
    """Return the points of the skin that must become corners."""
    points = np.array([point for band in bands for point in band.points], np.intp)
    return np.setdiff1d(points, outline.start)
