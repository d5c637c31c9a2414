"""Cylinders and cones all around their axis whose rims have notches, or whose walls have holes: where to slit them.

A program that gets such a face without a seam edge adds one, splitting edges for it that other faces have, too; by
rounding it may tear the shell there. So the seam is written: straight, where it meets the two rims and nothing else.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.recognition.arrays import normalize
from meshhub.builtin_plugins.step.recognition.outline import Outline
from meshhub.builtin_plugins.step.recognition.regions import Regions
from meshhub.builtin_plugins.step.recognition.skin import Skin
from meshhub.builtin_plugins.step.recognition.surfaces import SurfaceKind, cylindrical, perpendicular
from meshhub.builtin_plugins.step.writing.curves import Curve, Curves
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex

_SIDES = 32
_CLEAR = np.cos(np.radians(10.0))
_CROSSED = 4.0
_NEAR_RATIO = 0.5
"""Share of a rim's half-edge; closer to a fixed corner, a seam would leave an edge too short for CAD programs."""
_NEAR_RAD = 0.02
"""Radians about the axis; the same where the half-edges are tiny, as beside a tangent point."""
_ALIGNED_MM = 1e-5
"""Millimeters between two fixed corners and one seam; below the shortest edge that CAD programs keep apart."""

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Belt:
    """A face all around its axis, and where its seam meets its rims.

    side:     (3,) the unit direction from the axis to the seam
    loops:    its two rims
    points:   the corner of each rim that the seam meets, or a point of the skin that is to become it
    position: (2, 3) where on their circles these go
    """

    region: int
    side: Float64
    loops: tuple[int, int]
    points: tuple[int, int]
    position: Float64


def common_side(axis: Float64) -> Float64:
    """(n, 3) directions away from (n, 3) axes, the same for axes that are nearly equal or opposite."""
    # rounded, so that the noise of nearly equal axes does not choose another helper
    helper = np.eye(3)[np.argmin(np.round(np.abs(axis), 2), axis=1)]
    return normalize(helper - axis * np.einsum("ij,ij->i", helper, axis)[:, None])


@dataclass(frozen=True, eq=False)
class _Walls:
    """The outlines of faces all around their axis, a row for each half-edge.

    region:    (w,) the faces
    half:      (h,) half-edges, as places in `Outline.half`; those of one loop side by side
    wall:      (h,) the face of each, as a place in `region`
    loop:      (h,)
    chain:     (h,)
    low, high: (h, 3) unit directions from the axis to its ends
    rim:       (h,) whether it is part of a circle about the axis
    """

    region: IntIndex
    half: IntIndex
    wall: IntIndex
    loop: IntIndex
    chain: IntIndex
    low: Float64
    high: Float64
    rim: Mask


def _walls(skin: Skin, regions: Regions, outline: Outline, curves: Curves) -> _Walls:
    surfaces = regions.surfaces
    half = np.flatnonzero(
        np.isin(surfaces.kind, (SurfaceKind.CYLINDER, SurfaceKind.CONE))[regions.region[outline.half // 3]]
    )
    owner = regions.region[outline.half[half] // 3]
    each = surfaces.take(owner)
    _, _, low = cylindrical(each, skin.points[skin.begin[outline.half[half]]])
    _, _, high = cylindrical(each, skin.points[skin.end[outline.half[half]]])
    turn = np.arctan2(np.einsum("ij,ij->i", np.cross(low, high), each.axis), np.einsum("ij,ij->i", low, high))
    chain = np.repeat(np.arange(len(outline.edge)), np.diff(outline.chain_begin))[half]
    loop = np.repeat(np.arange(len(outline.loop_begin) - 1), np.diff(outline.loop_begin))[chain]
    winding = np.abs(np.bincount(loop, turn, len(outline.loop_begin) - 1)) > np.pi
    whole = np.zeros(len(surfaces), np.bool_)
    whole[outline.loop_region[winding]] = True
    region = np.flatnonzero(whole)
    place = np.full(len(surfaces), -1, np.intp)
    place[region] = np.arange(len(region))
    mine = place[owner] >= 0
    edge = outline.edge[chain]
    parallel = np.abs(np.einsum("ij,ij->i", curves.axis[edge], each.axis)) > 1 - 1e-6
    rim = (curves.kind[edge] == Curve.CIRCLE) & parallel
    return _Walls(region, half[mine], place[owner][mine], loop[mine], chain[mine], low[mine], high[mine], rim[mine])


def free_sides(skin: Skin, regions: Regions, outline: Outline, curves: Curves) -> tuple[IntIndex, Float64]:
    """Faces all around their axis, and for each the direction from it that is farthest from notches and holes."""
    walls = _walls(skin, regions, outline, curves)
    sides, cost = _sides(walls, regions.surfaces.axis[walls.region])
    made: Float64 = sides[cost.argmin(axis=0), np.arange(len(walls.region))]
    return walls.region, made


def _sides(walls: _Walls, axis: Float64) -> tuple[Float64, Float64]:
    """(s, w, 3) sides of each wall, and their (s, w) costs: under `_CROSSED` where they meet two rims and nothing else.

    The lowest cost is farthest from notches and holes.
    """
    common = common_side(axis)
    u = perpendicular(axis)
    v = np.cross(axis, u)
    angle = np.arange(_SIDES) * (2 * np.pi / _SIDES)
    sides = np.concatenate([common[None], np.cos(angle)[:, None, None] * u + np.sin(angle)[:, None, None] * v])
    cost = np.full((len(sides), len(walls.region)), -1.0)
    for number, side in enumerate(sides):
        for out in (walls.low[~walls.rim], walls.high[~walls.rim]):
            which = walls.wall[~walls.rim]
            np.maximum.at(cost[number], which, np.einsum("ij,ij->i", out, side[which]))
        met = np.bincount(walls.wall[_met(walls, side, axis)], minlength=len(walls.region))
        cost[number] += np.where(met == 2, 0.0, _CROSSED)
    # rounded, so that noise does not choose among equals
    cost = np.round(cost, 3)
    cost[0, cost[0] < _CLEAR] = -1.0
    return sides, cost


def _met(walls: _Walls, side: Float64, axis: Float64) -> Mask:
    """(h,) the half-edges that the seams at some sides meet."""
    across = np.cross(axis, side)
    before = np.einsum("ij,ij->i", walls.low, across[walls.wall]) < 0
    behind = np.einsum("ij,ij->i", walls.high, across[walls.wall]) < 0
    made: Mask = (before != behind) & (np.einsum("ij,ij->i", walls.low + walls.high, side[walls.wall]) > 0)
    return made


def belts_of(skin: Skin, regions: Regions, outline: Outline, curves: Curves) -> tuple[Belt, ...]:
    """The faces that can be slit so: those whose seam meets two circles about their axis.

    Those with nothing but two whole circles as outline are not among them.
    """
    walls = _walls(skin, regions, outline, curves)
    axis = regions.surfaces.axis[walls.region]
    sides, cost = _sides(walls, axis)
    order = np.argsort(cost, axis=0, kind="stable")
    chains = np.bincount(outline.region, minlength=len(regions.surfaces))[walls.region]
    slits = _Slits(skin, outline, curves, walls)
    made: list[Belt] = []
    for wall in np.flatnonzero(chains > 2).tolist():
        usable = order[cost[order[:, wall], wall] < _CROSSED - 1, wall]
        belts = (slits.at(wall, side, axis[wall]) for side in sides[usable, wall])
        belt = next((belt for belt in belts if belt is not None), None)
        if belt is not None:
            made.append(belt)
    return tuple(made)


class _Slits:
    """Finds the corners of rims at which seams can begin; no corner is moved for two of them."""

    def __init__(self, skin: Skin, outline: Outline, curves: Curves, walls: _Walls) -> None:
        self._skin, self._outline, self._curves, self._walls = skin, outline, curves, walls
        edge, count = outline.edge_chain, len(skin.points)
        self._edges = np.bincount(np.concatenate([outline.start[edge], outline.stop[edge]]), minlength=count)
        rim = outline.half[walls.half[walls.rim]]
        self._rims = np.bincount(np.concatenate([skin.begin[rim], skin.end[rim]]), minlength=count)
        order = np.argsort(walls.wall, kind="stable")
        begin = np.searchsorted(walls.wall[order], np.arange(len(walls.region) + 1))
        self._rows = [order[first:stop] for first, stop in itertools.pairwise(begin.tolist())]
        self._moved: set[int] = set()

    def at(self, wall: int, side: Float64, axis: Float64) -> Belt | None:
        """The belt of a wall whose seam is at a side, or at a fixed corner close to it; None where none can be."""
        pair = self._pair(wall, side, axis)
        fixed = [self._fixed(row, side, axis) for row in pair]
        near = min((corner for corner in fixed if corner is not None), default=None)
        if near is not None:
            # a corner that has its place already takes the seam; the other rim follows
            side = self._walls.low[near[1]]
            pair = self._pair(wall, side, axis)
        if len(pair) != 2:
            return None
        ends = [self._end(row, side, axis) for row in pair]
        (one, start), (other, stop) = ends
        if min(one, other) < 0:
            return None
        self._moved.update(point for point in (one, other) if self._edges[point] <= 2)
        walls = self._walls
        loops = int(walls.loop[pair[0]]), int(walls.loop[pair[1]])
        return Belt(int(walls.region[wall]), side, loops, (one, other), np.stack([start, stop]))

    def _pair(self, wall: int, side: Float64, axis: Float64) -> list[int]:
        """The half-edges of two rims that a seam meets; none where it meets anything else."""
        walls, rows = self._walls, self._rows[wall]
        across = np.cross(axis, side)
        apart = (walls.low[rows] @ across < 0) != (walls.high[rows] @ across < 0)
        met = rows[apart & ((walls.low[rows] + walls.high[rows]) @ side > 0)]
        met = met[np.argsort(walls.loop[met], kind="stable")]
        loop = walls.loop[met]
        good = len(met) == 2 and walls.rim[met].all() and loop[0] != loop[1]
        return met.tolist() if good else []

    def _fixed(self, met: int, side: Float64, axis: Float64) -> tuple[float, int] | None:
        """The fixed corner of a rim that is too close to a side: the angle between, and the half-edge it begins."""
        walls, skin = self._walls, self._skin
        rows = self._rows[walls.wall[met]]
        rows = rows[walls.loop[rows] == walls.loop[met]]
        rows = rows[self._edges[skin.begin[self._outline.half[walls.half[rows]]]] > 2]
        if len(rows) == 0:
            return None
        limit = max(_NEAR_RATIO * float(np.arccos(np.clip(walls.low[met] @ walls.high[met], -1, 1))), _NEAR_RAD)
        off = np.arctan2(np.abs(walls.low[rows] @ np.cross(axis, side)), walls.low[rows] @ side)
        nearest = int(off.argmin())
        return (float(off[nearest]), int(rows[nearest])) if off[nearest] <= limit else None

    def _end(self, met: int, side: Float64, axis: Float64) -> tuple[int, Float64]:
        """The corner where a seam ends that meets a half-edge, and its position; -1 where none can be."""
        walls, skin, outline = self._walls, self._skin, self._outline
        edge = outline.edge[walls.chain[met]]
        centre, about = self._curves.centre[edge], self._curves.axis[edge]
        towards = normalize((side - about * (about @ side))[None])[0]
        position = centre + self._curves.radius[edge] * towards
        near = self._fixed(met, side, axis)
        if near is not None:
            corner = int(skin.begin[outline.half[walls.half[near[1]]]])
            aligned = float(np.linalg.norm(skin.points[corner] - position)) <= _ALIGNED_MM
            whole = aligned and self._rims[corner] >= 2
            return (corner if whole else -1), skin.points[corner]
        first, stop = outline.loop_begin[walls.loop[met]], outline.loop_begin[walls.loop[met] + 1]
        if stop - first == 1:
            point = int(outline.start[first])
            free = self._edges[point] == 2 and point not in self._moved
            return (point if free else -1), position
        half = outline.half[walls.half[met]]
        ends = int(skin.begin[half]), int(skin.end[half])
        # a corner between two pieces of one circle, else a point that is none yet
        for edges in (2, 0):
            for point in ends:
                if self._edges[point] == edges and self._rims[point] >= 2 and point not in self._moved:
                    return point, position
        return -1, position


def new_corners(outline: Outline, belts: tuple[Belt, ...]) -> IntIndex:
    """The points that are to become corners."""
    points = np.array([point for belt in belts for point in belt.points], np.intp)
    return np.setdiff1d(points, outline.start)
