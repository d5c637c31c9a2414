"""Many surfaces fitted at once: closed-form guesses from normals, then Gauss-Newton on the points, in columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.skin import lengths, normalised
from meshhub.builtin_plugins.step.surfaces import Kind, Surfaces, distances, perpendicular, profile
from meshhub.scene import Float64

_FIRST_STEPS = 3
_STEPS = 4
_ENOUGH = 4000
_HOPELESS = 1000.0
_AS_PROMISED = 2.0
_ROOM = 2.25
_ALIKE = 1.5
_SMALL_BLOCK = 1 << 13
_BLOCK = 1 << 15
_RIDGE = 1e-13
_TIP = 1e-3
OF_DEPTH = 0.05
"""Points must lie nearer to a surface than this part of the depth of its facets."""

_UNKNOWNS = {
    Kind.CYLINDER: (0, 1, 3, 4, 5),
    Kind.CONE: (0, 1, 3, 4, 5, 6),
    Kind.TORUS: (0, 1, 2, 3, 4, 5, 6),
}

Groups = NDArray[np.intp]


class Samples(NamedTuple):
    """What surfaces are fitted to, by group.

    groups:       how many groups
    group, point: (n,) and (n, 3) points, those of one group side by side
    normal_group: (f,) the group of each facet
    centre:       (f, 3) facet centres
    normal:       (f, 3) facet normals
    weight:       (f,) facet areas
    """

    groups: int
    group: Groups
    point: Float64
    normal_group: Groups
    centre: Float64
    normal: Float64
    weight: Float64


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


def fit(samples: Samples, kind: Kind, limits: Limits) -> tuple[Surfaces, Float64]:
    """The surface of one kind that fits each group best, and the distance of its worst point.

    Groups are moved to their centre and scaled to size one meanwhile, for the condition of the equations. Of large ones
    some points are enough: a scan is one group of a million. Groups that will not come within their limits are given up
    as soon as that is seen: their distance is infinite.
    """
    low, high = _boxes(samples)
    middle, size = (low + high) / 2, np.maximum(lengths(high - low), 1e-300)
    limits = Limits(limits.allowed / size, limits.share, limits.floor / size)
    nothing = np.zeros(samples.groups)
    made = Surfaces(
        np.full(samples.groups, kind, np.int8), middle, np.tile([0.0, 0.0, 1.0], (samples.groups, 1)), nothing, nothing
    )
    found: list[Groups] = []
    with np.errstate(all="ignore"):
        for groups, block in _blocks(samples, middle, size):
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
            worst[near] = np.maximum.reduceat(off, _begins(whole)) * size[near]
    worst = np.where(np.isfinite(worst), worst, np.inf)
    second = made.second * size if kind == Kind.TORUS else made.second
    return Surfaces(made.kind, made.origin * size[:, None] + middle, made.axis, made.radius * size, second), worst


class _Block(NamedTuple):
    """Groups of much the same size in columns: one array operation does something for all of them.

    Shorter columns are filled up with what they begin with.

    point:   (3, p, g) x, y and z of points
    there:   (p, g) 1, and 0 for what fills up
    centre:  (3, f, g) of facets
    normal:  (3, f, g)
    weight:  (f, g) facet areas, and 0 for what fills up
    """

    point: Float64
    there: Float64
    centre: Float64
    normal: Float64
    weight: Float64

    def take(self, groups: Groups) -> _Block:
        """Some of the groups."""
        return _Block(*(column[..., groups] for column in self))


def _blocks(samples: Samples, middle: Float64, size: Float64) -> Iterator[tuple[Groups, _Block]]:
    """The groups in blocks, each moved from its middle and scaled to its size; of large ones, some of their points."""
    begin, facet_begin = _begins(samples), np.searchsorted(samples.normal_group, np.arange(samples.groups))
    length = np.diff(begin, append=len(samples.group))
    facet_length = np.diff(facet_begin, append=len(samples.normal_group))
    stride, facet_stride = -(-length // _ENOUGH), -(-facet_length // _ENOUGH)
    order = np.argsort(length, kind="stable")
    rising = length[order]
    start = 0
    while start < len(order):
        alike = int(np.searchsorted(rising, _ALIKE * rising[start], "right")) - start
        small = int(np.searchsorted(rising[start:] * np.arange(1, len(order) - start + 1), _SMALL_BLOCK, "right"))
        count = max(alike, small)
        count = max(1, min(count, _BLOCK // int(min(rising[start + count - 1], _ENOUGH))))
        groups = np.sort(order[start : start + count])
        start += count
        index, there = _columns(begin[groups], length[groups], stride[groups])
        facet, known = _columns(facet_begin[groups], facet_length[groups], facet_stride[groups])
        shift, scale = middle[groups].T[:, None, :], size[groups]
        yield (
            groups,
            _Block(
                (samples.point.T[:, index] - shift) / scale,
                there.astype(np.float64),
                (samples.centre.T[:, facet] - shift) / scale,
                samples.normal.T[:, facet],
                samples.weight[facet] * known,
            ),
        )


def _columns(begin: Groups, length: Groups, stride: Groups) -> tuple[Groups, NDArray[np.bool_]]:
    """(n, g) where the members of groups are, with a stride, and whether there are so many."""
    many = -(-length // stride)
    place = np.arange(int(many.max()))[:, None]
    there = place < many
    return begin + np.where(there, place * stride, 0), there


def _fitted(block: _Block, kind: Kind, limits: Limits) -> tuple[Surfaces, Groups]:
    """The surfaces of a block, and the groups that may be within their limits."""
    if kind == Kind.SPHERE:
        made = _sphere(block)
        return made, np.arange(len(made))
    guesses = {Kind.CYLINDER: _cylinder, Kind.CONE: _cone, Kind.TORUS: _torus}
    made, near = _refined(block, guesses[kind](block), kind, limits, _FIRST_STEPS)
    off = np.full(len(made), np.inf)
    off[near] = _worst(block.take(near), made.take(near), kind)
    if kind == Kind.CONE:
        # from elsewhere, what came to rest too far off does so again
        hopeful = block.take(near)
        other, found = _refined(hopeful, _cone_about(hopeful), kind, limits.take(near), _FIRST_STEPS)
        away, place = _worst(hopeful.take(found), other.take(found), kind), near[found]
        better = away < off[place]
        off[place[better]] = away[better]
        made = put(made, place[better], other.take(found[better]))
    near = np.flatnonzero(off <= _HOPELESS * limits.allowed)
    final, fine = _refined(block.take(near), made.take(near), kind, limits.take(near), _STEPS)
    return put(made, near, final), near[fine]


def _refined(block: _Block, made: Surfaces, kind: Kind, limits: Limits, steps: int) -> tuple[Surfaces, Groups]:
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


def _frame(made: Surfaces) -> tuple[Float64, Float64, Float64]:
    """(3, g) two directions across each axis, and the axis."""
    u = perpendicular(made.axis)
    v = np.cross(made.axis, u)
    return np.ascontiguousarray(u.T), np.ascontiguousarray(v.T), np.ascontiguousarray(made.axis.T)


def _along(points: Float64, direction: Float64) -> Float64:
    """(n, g) the scalar products of (3, n, g) points and the (3, g) directions of their groups."""
    made: Float64 = points[0] * direction[0] + points[1] * direction[1] + points[2] * direction[2]
    return made


def _across(u: Float64, v: Float64) -> Float64:
    """Distances from the axis; `np.hypot` takes several times as long."""
    made: Float64 = np.sqrt(u * u + v * v)
    return made


def _off(points: Float64, made: Surfaces, kind: Kind) -> Float64:
    """(n, g) the distances of (3, n, g) points from the surfaces of their groups."""
    u, v, axis = _frame(made)
    offset = points - made.origin.T[:, None, :]
    distance = _across(_along(offset, u), _along(offset, v))
    return profile(kind, _along(offset, axis), distance, made.radius, made.second)[0]


def _worst(block: _Block, made: Surfaces, kind: Kind) -> Float64:
    """(g,) the distance of the farthest point of each group."""
    off: Float64 = np.abs(_off(block.point, made, kind)).max(axis=0)
    return off


def _deepest(block: _Block, made: Surfaces, kind: Kind) -> Float64:
    """(g,) how far the middle of a facet of each group lies off its surface, at most."""
    depth: Float64 = np.abs(_off(block.centre, made, kind)).max(axis=0)
    return depth


def _selected(samples: Samples, points: NDArray[np.bool_], facets: NDArray[np.bool_]) -> Samples:
    return Samples(
        samples.groups, samples.group[points], samples.point[points], samples.normal_group[facets],
        samples.centre[facets], samples.normal[facets], samples.weight[facets],
    )  # fmt: skip


def chosen(samples: Samples, groups: Groups) -> Samples:
    """The samples of some groups, renumbered."""
    number = np.full(samples.groups, -1, np.intp)
    number[groups] = np.arange(len(groups))
    points, facets = number[samples.group] >= 0, number[samples.normal_group] >= 0
    made = _selected(samples, points, facets)
    return made._replace(groups=len(groups), group=number[made.group], normal_group=number[made.normal_group])


def put(all_of_them: Surfaces, index: Groups, made: Surfaces) -> Surfaces:
    """The surfaces with some of them replaced."""
    columns = []
    for field in fields(Surfaces):
        column = getattr(all_of_them, field.name).copy()
        column[index] = getattr(made, field.name)
        columns.append(column)
    return Surfaces(*columns)


def _begins(samples: Samples) -> Groups:
    return np.searchsorted(samples.group, np.arange(samples.groups))


def _boxes(samples: Samples) -> tuple[Float64, Float64]:
    """The lower and the upper corners of the boxes around the points of each group."""
    begin = _begins(samples)
    return np.minimum.reduceat(samples.point, begin), np.maximum.reduceat(samples.point, begin)


def extents(samples: Samples) -> Float64:
    """(g,) how far the points of each group reach: the diagonals of their boxes."""
    low, high = _boxes(samples)
    return lengths(high - low)


def _sums(columns: list[Float64]) -> Float64:
    """(k, k, g): for each group the sum of the products of all pairs of (n, g) columns."""
    size = len(columns)
    made = np.empty((size, size, columns[0].shape[1]))
    for row in range(size):
        for column in range(row, size):
            made[row, column] = made[column, row] = np.einsum("ij,ij->j", columns[row], columns[column])
    return made


def _solved(matrix: Float64, right: Float64) -> Float64:
    """(k, g) solutions of small symmetric systems, (k, k, g) and (k, g), with a ridge that singular ones survive.

    Elimination for all systems at once: one call of LAPACK for each takes three times as long.
    """
    size = len(matrix)
    trace = np.einsum("iij->j", matrix)
    least = np.where(trace > 0, _RIDGE * trace, 1.0) + 1e-300
    matrix, right = matrix.copy(), right.copy()
    for row in range(size):
        matrix[row, row] = np.maximum(matrix[row, row] + least, least)
        for below in range(row + 1, size):
            share = matrix[row, below] / matrix[row, row]
            matrix[below, below:] -= share * matrix[row, below:]
            right[below] -= share * right[row]
    for row in range(size - 1, -1, -1):
        for column in range(row + 1, size):
            right[row] -= matrix[row, column] * right[column]
        right[row] /= matrix[row, row]
    return right


def _smallest(spread: Float64) -> Float64:
    """(g, 3) the direction in which (3, 3, g) moments are smallest."""
    made: Float64 = np.linalg.eigh(np.nan_to_num(spread.transpose(2, 0, 1)))[1][:, :, 0]
    return made


def _circle(block: _Block, x: Float64, y: Float64) -> tuple[Float64, Float64, Float64]:
    """Centre and radius of the algebraic best circle of each group (Kåsa, 1976)."""
    sums = _sums([x * block.there, y * block.there, block.there, (x * x + y * y) * block.there])
    a, b, square = _solved(sums[:3, :3], sums[:3, 3])
    a, b = a / 2, b / 2
    return a, b, np.sqrt(np.maximum(square + a * a + b * b, 0))


def _kinds(kind: Kind, axis: Float64) -> NDArray[np.int8]:
    return np.full(len(axis), kind, np.int8)


def _sphere(block: _Block) -> Surfaces:
    x, y, z = block.point
    square = x * x + y * y + z * z
    sums = _sums([x * block.there, y * block.there, z * block.there, block.there, square * block.there])
    solution = _solved(sums[:4, :4], sums[:4, 4])
    centre = solution[:3].T / 2
    radius = np.sqrt(np.maximum(solution[3] + np.einsum("ij,ij->i", centre, centre), 0))
    axis = np.tile([0.0, 0.0, 1.0], (len(centre), 1))
    return Surfaces(_kinds(Kind.SPHERE, axis), centre, axis, radius, np.zeros(len(centre)))


def _cylinder(block: _Block) -> Surfaces:
    """The axis is what all normals are perpendicular to."""
    axis = _smallest(_sums(list(block.normal * np.sqrt(block.weight))))
    nothing = np.zeros(len(axis))
    made = Surfaces(_kinds(Kind.CYLINDER, axis), np.zeros_like(axis), axis, nothing, nothing)
    u, v, _ = _frame(made)
    a, b, radius = _circle(block, _along(block.point, u), _along(block.point, v))
    return Surfaces(made.kind, (a * u + b * v).T, axis, radius, nothing)


def _revolved(block: _Block, kind: Kind) -> Surfaces:
    """The axis is the line that all normals meet (Pottmann and Randrup, 1998)."""
    root = np.sqrt(block.weight)
    moment = np.cross(block.centre, block.normal, axis=0)
    sums = _sums([*(moment * root), *(block.normal * root)]).transpose(2, 0, 1)
    a, b, c = sums[:, :3, :3], sums[:, :3, 3:], sums[:, 3:, 3:]
    c = c + np.eye(3) * (1e-10 * np.trace(c, axis1=1, axis2=2)[:, None, None] + 1e-300)
    inner = np.linalg.solve(np.nan_to_num(c), np.nan_to_num(b.transpose(0, 2, 1)))
    axis = _smallest((a - b @ inner).transpose(1, 2, 0))
    about = -np.einsum("ijk,ik->ij", inner, axis)
    nothing = np.zeros(len(axis))
    return Surfaces(_kinds(kind, axis), np.cross(axis, about), axis, nothing, nothing)


def _torus(block: _Block) -> Surfaces:
    guess = _revolved(block, Kind.TORUS)
    height, distance = _about(block, guess)
    ring, up, tube = _circle(block, distance, height)
    return replace(guess, origin=guess.origin + guess.axis * up[:, None], radius=ring, second=tube)


def _cone_about(block: _Block) -> Surfaces:
    return _with_slope(block, _revolved(block, Kind.CONE))


def _about(block: _Block, made: Surfaces) -> tuple[Float64, Float64]:
    """(p, g) the heights of points along the axes of their groups, and the distances from them."""
    u, v, axis = _frame(made)
    offset = block.point - made.origin.T[:, None, :]
    return _along(offset, axis), _across(_along(offset, u), _along(offset, v))


def _cone(block: _Block) -> Surfaces:
    """The axis is what all normals lean from alike.

    The normals of one whole ring of facets meet in a point, and every line through it: `_revolved` is at a loss there.
    """
    mean = (block.normal * block.weight).sum(axis=1) / block.weight.sum(axis=0)
    axis = _smallest(_sums(list((block.normal - mean[:, None, :]) * np.sqrt(block.weight))))
    nothing = np.zeros(len(axis))
    guess = Surfaces(_kinds(Kind.CONE, axis), np.zeros_like(axis), axis, nothing, nothing)
    u, v, up = _frame(guess)
    x, y, height = (_along(block.point, line) * block.there for line in (u, v, up))
    # circles about one axis, the square of whose radius is a parabola of the height
    sums = _sums([x, y, block.there, height, height**2, x * x + y * y])
    solution = _solved(sums[:5, :5], sums[:5, 5]) / 2
    return _with_slope(block, replace(guess, origin=(solution[0] * u + solution[1] * v).T))


def _with_slope(block: _Block, guess: Surfaces) -> Surfaces:
    """Cones about axes: their radii and slopes from the heights of the points, and their distances from the axes."""
    height, distance = _about(block, guess)
    sums = _sums([block.there, height * block.there, distance * block.there])
    radius, slope = _solved(sums[:2, :2], sums[:2, 2])
    return replace(guess, radius=radius, second=slope)


class _Step(NamedTuple):
    """Surfaces after a step, the root mean square of the distances before it, and what the step promised of that."""

    made: Surfaces
    off: Float64
    promised: Float64


def _step(block: _Block, made: Surfaces, kind: Kind) -> _Step:
    """One step of Gauss-Newton on the true distances.

    Unknowns: shifts along u, v and the axis, tilts towards u and v, radius, second.
    """
    unknowns = list(_UNKNOWNS[kind])
    u, v, up = _frame(made)
    offset = block.point - made.origin.T[:, None, :]
    height, beside_u, beside_v = (_along(offset, line) for line in (up, u, v))
    distance = _across(beside_u, beside_v)
    off, by_distance, by_height = profile(kind, height, distance, made.radius, made.second)
    # at a tip the way from the axis has no direction: there it holds only the height
    direct = block.there / np.maximum(distance, 1e-300)
    tip = distance <= _TIP
    tips = kind == Kind.CONE and bool(tip.any())
    if tips:
        off, direct = np.where(tip, off - distance * by_distance, off), np.where(tip, 0.0, direct)
    along_u, along_v = beside_u * direct, beside_v * direct
    tilting = by_height * distance - by_distance * height
    columns = [-by_distance * along_u, -by_distance * along_v, tilting * along_u, tilting * along_v]
    columns.append(-by_distance * block.there)
    if kind == Kind.CONE:
        columns.append(height * columns[-1])
    if kind == Kind.TORUS:
        columns.insert(2, -by_height * block.there)
        columns.append(-block.there)
    sums = _sums([*columns, off * block.there])
    if tips:
        _add_tips(sums, np.where(tip, block.there, 0.0), height, beside_u, beside_v)
    solution = _solved(sums[:-1, :-1], sums[:-1, -1])
    left = sums[-1, -1] - np.einsum("ij,ij->j", solution, sums[:-1, -1])
    step = np.zeros((7, len(made)))
    step[unknowns] = np.clip(np.nan_to_num(-solution), -1.0, 1.0)
    axis = up + step[3] * u + step[4] * v
    origin = made.origin.T + step[0] * u + step[1] * v + step[2] * up
    after = Surfaces(made.kind, origin.T, normalised(axis.T), made.radius + step[5], made.second + step[6])
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
        sums += _sums(columns)
