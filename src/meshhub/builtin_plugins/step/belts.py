"""Cylinders and cones all around their axis whose rims have notches, or whose walls have holes: where to slit them.

A program that gets such a face without a seam edge adds one, splitting edges for it that other faces have, too; by
rounding it may tear the shell there. So the seam is written: straight, where it meets the two rims and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.curves import Curve, Curves
from meshhub.builtin_plugins.step.outline import Outline
from meshhub.builtin_plugins.step.regions import Regions
from meshhub.builtin_plugins.step.skin import Skin, normalised
from meshhub.builtin_plugins.step.surfaces import Kind, cylindrical, perpendicular
from meshhub.geometry import IntIndex
from meshhub.scene import Float64

_SIDES = 32
_CLEAR = np.cos(np.radians(10.0))
_CROSSED = 4.0

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
    return normalised(helper - axis * np.einsum("ij,ij->i", helper, axis)[:, None])


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
    half = np.flatnonzero(np.isin(surfaces.kind, (Kind.CYLINDER, Kind.CONE))[regions.region[outline.half // 3]])
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
    return walls.region, _sides(walls, regions.surfaces.axis[walls.region])


def _sides(walls: _Walls, axis: Float64) -> Float64:
    """(w, 3) the side of each wall that meets two rims and nothing else, and keeps clear of notches and holes."""
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
    best = np.round(cost, 3).argmin(axis=0)
    best[cost[0] < _CLEAR] = 0
    made: Float64 = sides[best, np.arange(len(walls.region))]
    return made


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
    side = _sides(walls, axis)
    met = np.flatnonzero(_met(walls, side, axis))
    met = met[np.lexsort((walls.loop[met], walls.wall[met]))]
    count = np.bincount(walls.wall[met], minlength=len(walls.region))
    rims = np.bincount(walls.wall[met], walls.rim[met], len(walls.region))
    begin = np.cumsum(count) - count
    chains = np.bincount(outline.region, minlength=len(regions.surfaces))[walls.region]
    corners = _Corners(skin, outline, walls)
    made: list[Belt] = []
    taken: set[int] = set()
    for wall in np.flatnonzero((count == 2) & (rims == 2) & (chains > 2)).tolist():
        pair = met[begin[wall] : begin[wall] + 2]
        one, other = walls.loop[pair].tolist()
        points = tuple(corners.at(walls.loop[row], walls.half[row]) for row in pair.tolist())
        if one == other or min(points) < 0 or not taken.isdisjoint(points):
            continue
        taken.update(points)
        edge = outline.edge[walls.chain[pair]]
        towards = side[wall] - curves.axis[edge] * (curves.axis[edge] @ side[wall])[:, None]
        position = curves.centre[edge] + curves.radius[edge][:, None] * normalised(towards)
        made.append(Belt(int(walls.region[wall]), side[wall], (one, other), (points[0], points[1]), position))
    return tuple(made)


class _Corners:
    """Which points of rims can be where a seam begins."""

    def __init__(self, skin: Skin, outline: Outline, walls: _Walls) -> None:
        self._skin, self._outline = skin, outline
        edge, count = outline.edge_chain, len(skin.points)
        self._edges = np.bincount(np.concatenate([outline.start[edge], outline.stop[edge]]), minlength=count)
        rim = outline.half[walls.half[walls.rim]]
        self._rims = np.bincount(np.concatenate([skin.begin[rim], skin.end[rim]]), minlength=count)

    def at(self, loop: int, half: int) -> int:
        """The point of a loop that can move to where a seam meets one of its half-edges; -1 where none can."""
        outline, skin = self._outline, self._skin
        first, stop = outline.loop_begin[loop], outline.loop_begin[loop + 1]
        if stop - first == 1:
            point = int(outline.start[first])
            return point if self._edges[point] == 2 else -1
        ends = int(skin.begin[outline.half[half]]), int(skin.end[outline.half[half]])
        # a corner between two pieces of one circle, else a point that is none yet
        for edges in (2, 0):
            for point in ends:
                if self._edges[point] == edges and self._rims[point] >= 2:
                    return point
        return -1


def new_corners(outline: Outline, belts: tuple[Belt, ...]) -> IntIndex:
    """The points that are to become corners."""
    points = np.array([point for belt in belts for point in belt.points], np.intp)
    return np.setdiff1d(points, outline.start)
