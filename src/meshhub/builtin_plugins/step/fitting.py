"""Many surfaces fitted at once: closed-form guesses from normals, then Gauss-Newton on the points, group by group."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.skin import lengths, summed
from meshhub.builtin_plugins.step.surfaces import Kind, Surfaces, cylindrical, distances, perpendicular
from meshhub.scene import Float64

_FIRST_STEPS = 3
_STEPS = 4
_ENOUGH = 4000
_HOPELESS = 1000.0
_AS_PROMISED = 2.0
_ROOM = 2.25
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
    point = (samples.point - middle[samples.group]) / size[samples.group][:, None]
    centre = (samples.centre - middle[samples.normal_group]) / size[samples.normal_group][:, None]
    whole = samples._replace(point=point, centre=centre)
    local = _some(whole)
    limits = Limits(limits.allowed / size, limits.share, limits.floor / size)
    with np.errstate(all="ignore"):
        if kind == Kind.SPHERE:
            made, near = _sphere(local), np.arange(samples.groups)
        else:
            made, near = _approached(local, kind, limits)
            if len(near):
                better, fine = _refined(chosen(local, near), made.take(near), kind, limits.take(near), _STEPS)
                made, near = put(made, near, better), near[fine]
        worst = np.full(samples.groups, np.inf)
        if len(near):
            worst[near] = _worst(chosen(whole, near), made.take(near)) * size[near]
    worst = np.where(np.isfinite(worst), worst, np.inf)
    second = made.second * size if kind == Kind.TORUS else made.second
    return Surfaces(made.kind, made.origin * size[:, None] + middle, made.axis, made.radius * size, second), worst


def _approached(samples: Samples, kind: Kind, limits: Limits) -> tuple[Surfaces, Groups]:
    """The surfaces after a few steps, and the groups that may still come within their limits."""
    guess = _cylinder(samples) if kind == Kind.CYLINDER else _revolved(samples, kind)
    made, near = _refined(samples, guess, kind, limits, _FIRST_STEPS)
    off = np.full(samples.groups, np.inf)
    off[near] = _worst(chosen(samples, near), made.take(near)) if len(near) else 0.0
    if kind == Kind.CONE:
        other, found = _refined(samples, _cone(samples), kind, limits, _FIRST_STEPS)
        if len(found):
            away = _worst(chosen(samples, found), other.take(found))
            better = away < off[found]
            found = found[better]
            off[found] = away[better]
            made = put(made, found, other.take(found))
    return made, np.flatnonzero(off <= _HOPELESS * limits.allowed)


def _refined(samples: Samples, made: Surfaces, kind: Kind, limits: Limits, steps: int) -> tuple[Surfaces, Groups]:
    """The surfaces after some steps of Gauss-Newton, and the groups that have not come to rest too far off.

    A step that leaves about the distances that its linear equations promised has no better one behind it.
    """
    now, active, promised = made, np.arange(samples.groups), np.zeros(samples.groups)
    for _ in range(steps):
        step = _step(samples, now, kind)
        settled = np.flatnonzero(step.off < _AS_PROMISED * promised)
        if len(settled):
            few = chosen(samples, settled)
            stuck = promised[settled] > _ROOM * limits.take(active[settled]).of(_deepest(few, now.take(settled)))
            going = np.ones(len(active), np.bool_)
            going[settled[stuck]] = False
            kept = np.flatnonzero(going)
            if len(kept) == 0:
                return made, kept
            samples, active = chosen(samples, kept), active[kept]
            step = _Step(step.made.take(kept), step.off[kept], step.promised[kept])
        now, promised = step.made, step.promised
        made = put(made, active, now)
    return made, active


def _deepest(samples: Samples, made: Surfaces) -> Float64:
    """(g,) how far the middle of a facet of each group lies off its surface, at most."""
    begin = np.searchsorted(samples.normal_group, np.arange(samples.groups))
    depth: Float64 = np.maximum.reduceat(np.abs(distances(made.take(samples.normal_group), samples.centre)), begin)
    return depth


def _some(samples: Samples) -> Samples:
    """So many of the points and facets of each group as tell its surface."""

    def kept(group: Groups) -> NDArray[np.bool_]:
        size = np.bincount(group, minlength=samples.groups)
        place = np.arange(len(group)) - (np.cumsum(size) - size)[group]
        made: NDArray[np.bool_] = place % -(-size // _ENOUGH)[group] == 0
        return made

    return _selected(samples, kept(samples.group), kept(samples.normal_group))


def _selected(samples: Samples, points: NDArray[np.bool_], facets: NDArray[np.bool_]) -> Samples:
    return Samples(
        samples.groups, samples.group[points], samples.point[points], samples.normal_group[facets],
        samples.centre[facets], samples.normal[facets], samples.weight[facets],
    )  # fmt: skip


def _worst(samples: Samples, made: Surfaces) -> Float64:
    """(g,) the distance of the farthest point of each group."""
    off: Float64 = np.maximum.reduceat(np.abs(distances(made.take(samples.group), samples.point)), _begins(samples))
    return off


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


def _sums(group: Groups, count: int, columns: list[Float64]) -> Float64:
    """(count, k, k): for each group the sum of the products of all pairs of columns."""
    size = len(columns)
    made = np.empty((count, size, size))
    for row in range(size):
        for column in range(row, size):
            made[:, row, column] = made[:, column, row] = np.bincount(group, columns[row] * columns[column], count)
    return made


def _solved(matrix: Float64, right: Float64) -> Float64:
    """Batches of small symmetric systems, with a ridge that singular ones survive."""
    size = matrix.shape[-1]
    trace = np.trace(matrix, axis1=1, axis2=2)[:, None, None]
    matrix = np.nan_to_num(matrix + np.eye(size) * (_RIDGE * trace + 1e-300), posinf=0, neginf=0)
    made: Float64 = np.linalg.solve(matrix + np.eye(size) * (trace <= 0), np.nan_to_num(right)[..., None])[..., 0]
    return made


def _circle(group: Groups, count: int, x: Float64, y: Float64) -> tuple[Float64, Float64, Float64]:
    """Centre and radius of the algebraic best circle of each group (Kåsa, 1976)."""
    one = np.ones_like(x)
    sums = _sums(group, count, [x, y, one, x * x + y * y])
    solution = _solved(sums[:, :3, :3], sums[:, :3, 3])
    a, b = solution[:, 0] / 2, solution[:, 1] / 2
    return a, b, np.sqrt(np.maximum(solution[:, 2] + a * a + b * b, 0))


def _sphere(samples: Samples) -> Surfaces:
    x, y, z = samples.point.T
    sums = _sums(samples.group, samples.groups, [x, y, z, np.ones_like(x), x * x + y * y + z * z])
    solution = _solved(sums[:, :4, :4], sums[:, :4, 4])
    centre = solution[:, :3] / 2
    radius = np.sqrt(np.maximum(solution[:, 3] + np.einsum("ij,ij->i", centre, centre), 0))
    axis = np.tile([0.0, 0.0, 1.0], (samples.groups, 1))
    return Surfaces(np.full(samples.groups, Kind.SPHERE, np.int8), centre, axis, radius, np.zeros(samples.groups))


def _cylinder(samples: Samples) -> Surfaces:
    """The axis is what all normals are perpendicular to."""
    root = np.sqrt(samples.weight)[:, None]
    spread = _sums(samples.normal_group, samples.groups, list((samples.normal * root).T))
    axis = np.linalg.eigh(np.nan_to_num(spread))[1][:, :, 0]
    u = perpendicular(axis)
    v = np.cross(axis, u)
    x = np.einsum("ij,ij->i", samples.point, u[samples.group])
    y = np.einsum("ij,ij->i", samples.point, v[samples.group])
    a, b, radius = _circle(samples.group, samples.groups, x, y)
    origin = a[:, None] * u + b[:, None] * v
    kind = np.full(samples.groups, Kind.CYLINDER, np.int8)
    return Surfaces(kind, origin, axis, radius, np.zeros(samples.groups))


def _revolved(samples: Samples, kind: Kind) -> Surfaces:
    """The axis is the line that all normals meet (Pottmann and Randrup, 1998); then a profile about it."""
    root = np.sqrt(samples.weight)[:, None]
    moment = np.cross(samples.centre, samples.normal)
    columns = list((moment * root).T) + list((samples.normal * root).T)
    sums = _sums(samples.normal_group, samples.groups, columns)
    a, b, c = sums[:, :3, :3], sums[:, :3, 3:], sums[:, 3:, 3:]
    c = c + np.eye(3) * (1e-10 * np.trace(c, axis1=1, axis2=2)[:, None, None] + 1e-300)
    inner = np.linalg.solve(np.nan_to_num(c), np.nan_to_num(b.transpose(0, 2, 1)))
    axis = np.linalg.eigh(np.nan_to_num(a - b @ inner))[1][:, :, 0]
    about = -np.einsum("ijk,ik->ij", inner, axis)
    origin = np.cross(axis, about)
    guess = Surfaces(
        np.full(samples.groups, kind, np.int8), origin, axis, np.zeros(samples.groups), np.zeros(samples.groups)
    )
    height, distance, _ = cylindrical(guess.take(samples.group), samples.point)
    if kind == Kind.CONE:
        return _with_slope(samples, guess, height, distance)
    ring, up, tube = _circle(samples.group, samples.groups, distance, height)
    return Surfaces(guess.kind, origin + axis * up[:, None], axis, ring, tube)


def _cone(samples: Samples) -> Surfaces:
    """The axis is what all normals lean from alike.

    The normals of one whole ring of facets meet in a point, and every line through it: `_revolved` is at a loss there.
    """
    root = np.sqrt(samples.weight)[:, None]
    group, count = samples.normal_group, samples.groups
    total = summed(group, samples.weight, count)
    mean = np.stack([summed(group, samples.weight * samples.normal[:, k], count) / total for k in range(3)], axis=1)
    spread = _sums(group, count, list(((samples.normal - mean[group]) * root).T))
    axis = np.linalg.eigh(np.nan_to_num(spread))[1][:, :, 0]
    u = perpendicular(axis)
    v = np.cross(axis, u)
    x, y, height = (np.einsum("ij,ij->i", samples.point, line[samples.group]) for line in (u, v, axis))
    # circles about one axis, the square of whose radius is a parabola of the height
    sums = _sums(samples.group, count, [x, y, np.ones_like(x), height, height**2, x * x + y * y])
    solution = _solved(sums[:, :5, :5], sums[:, :5, 5]) / 2
    origin = solution[:, :1] * u + solution[:, 1:2] * v
    kind = np.full(count, Kind.CONE, np.int8)
    guess = Surfaces(kind, origin, axis, np.zeros(count), np.zeros(count))
    height, distance, _ = cylindrical(guess.take(samples.group), samples.point)
    return _with_slope(samples, guess, height, distance)


def _with_slope(samples: Samples, guess: Surfaces, height: Float64, distance: Float64) -> Surfaces:
    """Cones about axes: their radii and slopes from the heights of the points, and their distances from the axes."""
    sums = _sums(samples.group, samples.groups, [np.ones_like(height), height, distance])
    line = _solved(sums[:, :2, :2], sums[:, :2, 2])
    return Surfaces(guess.kind, guess.origin, guess.axis, line[:, 0], line[:, 1])


def _tips(samples: Samples, made: Surfaces, distance: Float64, u: Float64, v: Float64) -> Float64:
    """What points next to the axes of cones add to the equations: the axes go through them."""
    tip = np.flatnonzero(distance <= _TIP)
    group = samples.group[tip]
    offset = samples.point[tip] - made.origin[group]
    height = np.einsum("ij,ij->i", offset, made.axis[group])
    one, nothing = np.ones_like(height), np.zeros_like(height)
    sideways = [np.einsum("ij,ij->i", offset, line[group]) for line in (u, v)]
    return _sums(group, samples.groups, [-one, nothing, -height, nothing, nothing, nothing, sideways[0]]) + _sums(
        group, samples.groups, [nothing, -one, nothing, -height, nothing, nothing, sideways[1]]
    )


class _Step(NamedTuple):
    """Surfaces after a step, the root mean square of the distances before it, and what the step promised of that."""

    made: Surfaces
    off: Float64
    promised: Float64


def _step(samples: Samples, made: Surfaces, kind: Kind) -> _Step:
    """One step of Gauss-Newton.

    Unknowns: shifts along u, v and the axis, tilts towards u and v, radius, second.
    """
    unknowns = list(_UNKNOWNS[kind])
    group = samples.group
    u = perpendicular(made.axis)
    v = np.cross(made.axis, u)
    each = made.take(group)
    height, distance, away = cylindrical(each, samples.point)
    along_u = np.einsum("ij,ij->i", away, u[group])
    along_v = np.einsum("ij,ij->i", away, v[group])
    one, nothing = np.ones_like(height), np.zeros_like(height)
    off = distances(each, samples.point)
    if kind == Kind.CONE:
        # at a tip the way from the axis has no direction: there it holds only the height
        tip = distance <= _TIP
        off -= np.where(tip, distance / np.sqrt(1 + each.second**2), 0.0)
        along_u, along_v = np.where(tip, 0.0, along_u), np.where(tip, 0.0, along_v)
    if kind == Kind.CYLINDER:
        by_distance, by_height, by_radius, by_second = one, nothing, -one, nothing
    elif kind == Kind.CONE:
        cosine = 1 / np.sqrt(1 + each.second**2)
        by_distance, by_height, by_radius, by_second = cosine, -each.second * cosine, -cosine, -height * cosine
    else:
        ring = distance - each.radius
        tube = np.maximum(np.sqrt(ring**2 + height**2), 1e-300)
        by_distance, by_height, by_radius, by_second = ring / tube, height / tube, -ring / tube, -one
    columns = [
        -by_distance * along_u,
        -by_distance * along_v,
        -by_height,
        -by_distance * along_u * height + by_height * along_u * distance,
        -by_distance * along_v * height + by_height * along_v * distance,
        by_radius,
        by_second,
    ]
    rows = [columns[index] for index in unknowns] + [off]
    sums = _sums(group, samples.groups, rows)
    if kind == Kind.CONE:
        sums += _tips(samples, made, distance, u, v)
    step = np.zeros((samples.groups, 7))
    solution = _solved(sums[:, :-1, :-1], sums[:, :-1, -1])
    step[:, unknowns] = -solution
    size = np.bincount(group, minlength=samples.groups)
    left = sums[:, -1, -1] - np.einsum("ij,ij->i", solution, sums[:, :-1, -1])
    step = np.clip(np.nan_to_num(step), -1.0, 1.0)
    axis = made.axis + step[:, 3:4] * u + step[:, 4:5] * v
    origin = made.origin + step[:, 0:1] * u + step[:, 1:2] * v + step[:, 2:3] * made.axis
    axis = axis / np.maximum(lengths(axis), 1e-300)[:, None]
    made = Surfaces(made.kind, origin, axis, made.radius + step[:, 5], made.second + step[:, 6])
    return _Step(made, np.sqrt(sums[:, -1, -1] / size), np.sqrt(np.maximum(left, 0) / size))
