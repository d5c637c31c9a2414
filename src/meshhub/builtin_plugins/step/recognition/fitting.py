"""Many surfaces fitted at once: guesses from normals, then Gauss-Newton on the points."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.recognition.initial_fits import cone, cone_about, cylinder, sphere, torus
from meshhub.builtin_plugins.step.recognition.sample_blocks import (
    Block,
    Groups,
    Samples,
    about,
    across,
    along,
    begins,
    blocks,
    boxes,
    chosen,
    frame,
    products,
    solved,
)
from meshhub.builtin_plugins.step.recognition.skin import lengths, normalize
from meshhub.builtin_plugins.step.recognition.surfaces import SurfaceArray, SurfaceKind, distances, profile
from meshhub.model.scene import Float64

_FIRST_STEPS = 3
_STEPS = 4
_HOPELESS = 1000.0
_AS_PROMISED = 2.0
_ROOM = 2.25
_TIP = 1e-3
OF_DEPTH = 0.05
"""Points must lie nearer to a surface than this part of the depth of its facets."""

_UNKNOWNS = {
    SurfaceKind.CYLINDER: (0, 1, 3, 4, 5),
    SurfaceKind.CONE: (0, 1, 3, 4, 5, 6),
    SurfaceKind.TORUS: (0, 1, 2, 3, 4, 5, 6),
}


class Limits(NamedTuple):
    """How far the points of each group may lie off its surface, at most and by how deep its facets lie below it.

    allowed: (g,) at most
    share:   (g,) of the depth of its deepest facet
    floor:   (g,) which that share need not be less than
    """

    allowed: Float64
    share: Float64
    floor: Float64

    def of(self, depth: Float64) -> Float64:
        """(g,) the limits for facets that lie so deep."""
        by_depth = np.minimum(np.maximum(self.share * depth, self.floor), OF_DEPTH * depth)
        made: Float64 = np.minimum(self.allowed, by_depth)
        return made

    def take(self, groups: NDArray[Any]) -> Limits:
        """The limits of some groups."""
        return Limits(self.allowed[groups], self.share[groups], self.floor[groups])


def fit(samples: Samples, kind: SurfaceKind, limits: Limits) -> tuple[SurfaceArray, Float64]:
    """The surface of one kind that fits each group best, and the distance of its worst point.

    Groups are moved to their centre and scaled to size one meanwhile, for the condition of the equations. Of large ones
    some points are enough: a scan is one group of a million. Groups that will not come within their limits are given up
    as soon as that is seen: their distance is infinite.
    """
    low, high = boxes(samples)
    middle, size = (low + high) / 2, np.maximum(lengths(high - low), 1e-300)
    limits = Limits(limits.allowed / size, limits.share, limits.floor / size)
    nothing = np.zeros(samples.groups)
    made = SurfaceArray(
        np.full(samples.groups, kind, np.int8), middle, np.tile([0.0, 0.0, 1.0], (samples.groups, 1)), nothing, nothing
    )
    found: list[Groups] = []
    with np.errstate(all="ignore"):
        for groups, block in blocks(samples, middle, size):
            some, near = _fitted(block, kind, limits.take(groups))
            made = put(made, groups, some)
            found.append(groups[near])
        near = np.concatenate(found)
        worst = np.full(samples.groups, np.inf)
        if len(near):
            near = np.sort(near)
            whole = chosen(samples, near)
            point = (whole.point - middle[near][whole.group]) / size[near][whole.group][:, None]
            off = np.abs(distances(made.take(near[whole.group]), point))
            worst[near] = np.maximum.reduceat(off, begins(whole)) * size[near]
    worst = np.where(np.isfinite(worst), worst, np.inf)
    second = made.second * size if kind == SurfaceKind.TORUS else made.second
    return SurfaceArray(made.kind, made.origin * size[:, None] + middle, made.axis, made.radius * size, second), worst


def _fitted(block: Block, kind: SurfaceKind, limits: Limits) -> tuple[SurfaceArray, Groups]:
    """The surfaces of a block, and the groups that may be within their limits."""
    if kind == SurfaceKind.SPHERE:
        made = sphere(block)
        return made, np.arange(len(made))
    guesses = {SurfaceKind.CYLINDER: cylinder, SurfaceKind.CONE: cone, SurfaceKind.TORUS: torus}
    made, near = _refined(block, guesses[kind](block), kind, limits, _FIRST_STEPS)
    off = np.full(len(made), np.inf)
    off[near] = _worst(block.take(near), made.take(near), kind)
    if kind == SurfaceKind.CONE:
        # from elsewhere, what came to rest too far off does so again
        hopeful = block.take(near)
        other, found = _refined(hopeful, cone_about(hopeful), kind, limits.take(near), _FIRST_STEPS)
        away, place = _worst(hopeful.take(found), other.take(found), kind), near[found]
        better = away < off[place]
        off[place[better]] = away[better]
        made = put(made, place[better], other.take(found[better]))
    near = np.flatnonzero(off <= _HOPELESS * limits.allowed)
    final, fine = _refined(block.take(near), made.take(near), kind, limits.take(near), _STEPS)
    return put(made, near, final), near[fine]


def _refined(
    block: Block, made: SurfaceArray, kind: SurfaceKind, limits: Limits, steps: int
) -> tuple[SurfaceArray, Groups]:
    """The surfaces after some steps of Gauss-Newton, and the groups that have not come to rest too far off.

    Where a step leaves about the distances that its linear equations promised, and the next one promises no better,
    there is nothing better.
    """
    now, active, promised = made, np.arange(len(made)), np.zeros(len(made))
    for _ in range(steps):
        if len(active) == 0:
            break
        step = _step(block, now, kind)
        settled = np.flatnonzero(step.off < _AS_PROMISED * promised)
        if len(settled):
            depth = _deepest(block.take(settled), now.take(settled), kind)
            stuck = step.promised[settled] > np.maximum(
                promised[settled] / _AS_PROMISED, _ROOM * limits.take(active[settled]).of(depth)
            )
            going = np.ones(len(active), np.bool_)
            going[settled[stuck]] = False
            kept = np.flatnonzero(going)
            if len(kept) < len(going):
                block, active = block.take(kept), active[kept]
                step = _Step(step.made.take(kept), step.off[kept], step.promised[kept])
        now, promised = step.made, step.promised
        made = put(made, active, now)
    return made, active


def _off(points: Float64, made: SurfaceArray, kind: SurfaceKind) -> Float64:
    """(n, g) the distances of (3, n, g) points from the surfaces of their groups."""
    return profile(kind, *about(points, made), made.radius, made.second)[0]


def _worst(block: Block, made: SurfaceArray, kind: SurfaceKind) -> Float64:
    """(g,) the distance of the farthest point of each group."""
    off: Float64 = np.abs(_off(block.point, made, kind)).max(axis=0)
    return off


def _deepest(block: Block, made: SurfaceArray, kind: SurfaceKind) -> Float64:
    """(g,) how far the middle of a facet of each group lies off its surface, at most."""
    depth: Float64 = np.abs(_off(block.centre, made, kind)).max(axis=0)
    return depth


def put(all_of_them: SurfaceArray, index: Groups, made: SurfaceArray) -> SurfaceArray:
    """The surfaces with some of them replaced."""
    columns = []
    for field in fields(SurfaceArray):
        column = getattr(all_of_them, field.name).copy()
        column[index] = getattr(made, field.name)
        columns.append(column)
    return SurfaceArray(*columns)


class _Step(NamedTuple):
    """Surfaces after a step, the root mean square of the distances before it, and what the step promised of that."""

    made: SurfaceArray
    off: Float64
    promised: Float64


def _step(block: Block, made: SurfaceArray, kind: SurfaceKind) -> _Step:
    """One step of Gauss-Newton on the true distances.

    Unknowns: shifts along u, v and the axis, tilts towards u and v, radius, second.
    """
    unknowns = list(_UNKNOWNS[kind])
    u, v, up = frame(made)
    offset = block.point - made.origin.T[:, None, :]
    height, beside_u, beside_v = (along(offset, line) for line in (up, u, v))
    distance = across(beside_u, beside_v)
    off, by_distance, by_height = profile(kind, height, distance, made.radius, made.second)
    # at a tip the way from the axis has no direction: there it holds only the height
    direct = block.there / np.maximum(distance, 1e-300)
    tip = distance <= _TIP
    tips = kind == SurfaceKind.CONE and bool(tip.any())
    if tips:
        off, direct = np.where(tip, off - distance * by_distance, off), np.where(tip, 0.0, direct)
    along_u, along_v = beside_u * direct, beside_v * direct
    tilting = by_height * distance - by_distance * height
    columns = [-by_distance * along_u, -by_distance * along_v, tilting * along_u, tilting * along_v]
    columns.append(-by_distance * block.there)
    if kind == SurfaceKind.CONE:
        columns.append(height * columns[-1])
    if kind == SurfaceKind.TORUS:
        columns.insert(2, -by_height * block.there)
        columns.append(-block.there)
    sums = products([*columns, off * block.there])
    if tips:
        _add_tips(sums, np.where(tip, block.there, 0.0), height, beside_u, beside_v)
    solution = solved(sums[:-1, :-1], sums[:-1, -1])
    left = sums[-1, -1] - np.einsum("ij,ij->j", solution, sums[:-1, -1])
    step = np.zeros((7, len(made)))
    step[unknowns] = np.clip(np.nan_to_num(-solution), -1.0, 1.0)
    axis = up + step[3] * u + step[4] * v
    origin = made.origin.T + step[0] * u + step[1] * v + step[2] * up
    after = SurfaceArray(made.kind, origin.T, normalize(axis.T), made.radius + step[5], made.second + step[6])
    count = block.there.sum(axis=0)
    return _Step(after, np.sqrt(sums[-1, -1] / count), np.sqrt(np.maximum(left, 0) / count))


def _add_tips(sums: Float64, tip: Float64, height: Float64, beside_u: Float64, beside_v: Float64) -> None:
    """What points next to the axes of cones add to the equations, in place: the axes go through them.

    tip: (p, g) 1 for such points
    """
    nothing = np.zeros_like(tip)
    for shift, tilt, beside in ((0, 2, beside_u), (1, 3, beside_v)):
        columns = [nothing] * len(sums)
        columns[shift], columns[tilt], columns[-1] = -tip, -height * tip, beside * tip
        sums += products(columns)
