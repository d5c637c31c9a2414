"""Fits of many surfaces at once: estimates from normals, then Gauss-Newton steps on the distances of the points."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.surfaces import traits
from meshhub.builtin_plugins.step.surfaces.arrays import TINY, lengths, normalize
from meshhub.builtin_plugins.step.surfaces.kinds import PROFILES, TRIALS
from meshhub.builtin_plugins.step.surfaces.profiles import ProfilePoints
from meshhub.builtin_plugins.step.surfaces.sample_blocks import (
    Block,
    Groups,
    Samples,
    axis_coordinates,
    axis_frames,
    dot_products,
    group_boxes,
    group_starts,
    hypotenuses,
    iterate_blocks,
    select_groups,
    solve_symmetric,
    sum_products,
)
from meshhub.builtin_plugins.step.surfaces.surface_array import SurfaceArray, SurfaceKind
from meshhub.builtin_plugins.step.surfaces.surfaces import distances
from meshhub.model.scene import Float64

_FIRST_STEPS = 3
"""Gauss-Newton steps from an estimate; then hopeless groups are dropped."""

_FINAL_STEPS = 4
"""Further steps of the remaining groups."""

_HOPELESS_RATIO = 1000.0
"""Distance, in limits of the group, above which a group is dropped after the first steps."""

_MAX_MISS_RATIO = 2.0
"""Ratio of actual to predicted distance up to which a step was linear, so that the next prediction is reliable."""

_STUCK_RATIO = 2.25
"""Predicted root mean square, in limits of the group, above which a group is dropped, because its largest distance is
at least as large."""

_MIN_TIP_DISTANCE_RATIO = 1e-3
"""Distance from the axis, as a share of the size of the group, up to which a point counts as the tip of a cone."""

DEPTH_RATIO = 0.05
"""Distance that points may have from a surface, as a share of the depth of its facets; points on chords are far beyond
it."""


class FitLimits(NamedTuple):
    """Distances that the points of each group may have from its surface.

    The depth of a facet is the distance of its middle from the surface.

    allowed: (g,) millimeters, in any case
    share:   (g,) part of the depth of the deepest facet
    floor:   (g,) millimeters to which `share` is rounded up
    """

    allowed: Float64
    share: Float64
    floor: Float64

    def for_depth(self, depth: Float64) -> Float64:
        """Return the limits (g,) for groups whose deepest facets have these depths (g,)."""
        by_depth = np.maximum(self.share * depth, np.minimum(self.floor, DEPTH_RATIO * depth))
        result: Float64 = np.minimum(self.allowed, by_depth)
        return result

    def take(self, groups: NDArray[Any]) -> FitLimits:
        """Return the limits of some groups."""
        return FitLimits(self.allowed[groups], self.share[groups], self.floor[groups])


def fit_surfaces(
    samples: Samples, kind: SurfaceKind, limits: FitLimits, *, is_draft: bool = False
) -> tuple[SurfaceArray, Float64]:
    """Fit a surface of one kind to each group.

    Each group is centered and scaled to size one, so that the equations are well-conditioned. Large groups are fitted
    to a part of their points, because a scan can be one group of a million points. A group that cannot come within its
    limits is dropped early.

    Args:
        samples: Points and facets by group.
        kind: Kind of all surfaces, other than a plane.
        limits: (g,) limits of the groups.
        is_draft: Leave out the final steps, because other points of the groups are fitted next.
    Returns:
        (g,) surfaces, and the (g,) largest distance of a point in millimeters; infinite for dropped groups.
    """
    low, high = group_boxes(samples)
    middle, size = (low + high) / 2, np.maximum(lengths(high - low), TINY)
    limits = FitLimits(limits.allowed / size, limits.share, limits.floor / size)
    zero = np.zeros(samples.groups)
    axis = np.tile([0.0, 0.0, 1.0], (samples.groups, 1))
    surfaces = SurfaceArray(np.full(samples.groups, kind, np.int8), middle, axis, zero, zero)
    hopeful: list[Groups] = []
    with np.errstate(all="ignore"):
        for groups, block in iterate_blocks(samples, middle, size):
            block_surfaces, near = _fit_block(block, kind, limits.take(groups), is_draft=is_draft)
            surfaces = surfaces.replace_rows(groups, block_surfaces)
            hopeful.append(groups[near])
        worst = _largest_distances(samples, surfaces, np.sort(np.concatenate(hopeful)), (middle, size))
    worst = np.where(np.isfinite(worst), worst, np.inf)
    second = surfaces.second * size if traits.HAS_TUBE[kind] else surfaces.second
    origin, radius = surfaces.origin * size[:, None] + middle, surfaces.radius * size
    return SurfaceArray(surfaces.kind, origin, surfaces.axis, radius, second), worst


def _largest_distances(
    samples: Samples, surfaces: SurfaceArray, groups: Groups, scale: tuple[Float64, Float64]
) -> Float64:
    """Return the largest distance (g,) of a point of each group in millimeters; infinite except for `groups`.

    Args:
        samples: Points by group.
        surfaces: (g,) surfaces of the centered and scaled groups.
        groups: Ascending groups to measure.
        scale: (g, 3) center and (g,) size of each group.
    """
    middle, size = scale
    worst = np.full(samples.groups, np.inf)
    if len(groups):
        selected = select_groups(samples, groups)
        group = groups[selected.group]
        off = np.abs(distances(surfaces.take(group), (selected.point - middle[group]) / size[group][:, None]))
        worst[groups] = np.maximum.reduceat(off, group_starts(selected)) * size[groups]
    return worst


def _fit_block(block: Block, kind: SurfaceKind, limits: FitLimits, *, is_draft: bool) -> tuple[SurfaceArray, Groups]:
    """Return the surfaces of a block, and the groups that can be within their limits."""
    estimate, *other_estimates = TRIALS[kind].estimates
    surfaces = estimate(block)
    if not TRIALS[kind].unknowns:
        return surfaces, np.arange(len(surfaces))
    surfaces, near = _refine(block, surfaces, kind, limits, _FIRST_STEPS)
    off = np.full(len(surfaces), np.inf)
    off[near] = _max_distances(block.take(near), surfaces.take(near), kind)
    for estimate in other_estimates:
        # groups that were dropped from the first estimate fail from the second one, too
        hopeful = block.take(near)
        others, kept = _refine(hopeful, estimate(hopeful), kind, limits.take(near), _FIRST_STEPS)
        other_off, place = _max_distances(hopeful.take(kept), others.take(kept), kind), near[kept]
        is_better = other_off < off[place]
        off[place[is_better]] = other_off[is_better]
        surfaces = surfaces.replace_rows(place[is_better], others.take(kept[is_better]))
    if is_draft:
        return surfaces, near
    near = np.flatnonzero(off <= _HOPELESS_RATIO * limits.allowed)
    final, kept = _refine(block.take(near), surfaces.take(near), kind, limits.take(near), _FINAL_STEPS)
    return surfaces.replace_rows(near, final), near[kept]


def _refine(
    block: Block, surfaces: SurfaceArray, kind: SurfaceKind, limits: FitLimits, steps: int
) -> tuple[SurfaceArray, Groups]:
    """Take Gauss-Newton steps, and drop the groups that converge too far from their points.

    A group has converged if a step reached the distance that its linear equations predicted, and the next step predicts
    no improvement.

    Returns:
        Surfaces of all groups, and the groups that were not dropped.
    """
    current, active, predicted = surfaces, np.arange(len(surfaces)), np.zeros(len(surfaces))
    for _ in range(steps):
        if len(active) == 0:
            break
        step = _take_step(block, current, kind)
        settled = np.flatnonzero(step.off < _MAX_MISS_RATIO * predicted)
        if len(settled):
            depth = _max_depths(block.take(settled), current.take(settled), kind)
            is_stuck = step.predicted[settled] > np.maximum(
                predicted[settled] / _MAX_MISS_RATIO,
                _STUCK_RATIO * limits.take(active[settled]).for_depth(depth),
            )
            is_going = np.ones(len(active), np.bool_)
            is_going[settled[is_stuck]] = False
            kept = np.flatnonzero(is_going)
            if len(kept) < len(is_going):
                block, active = block.take(kept), active[kept]
                step = _Step(step.surfaces.take(kept), step.off[kept], step.predicted[kept])
        current, predicted = step.surfaces, step.predicted
        surfaces = surfaces.replace_rows(active, current)
    return surfaces, active


def _distances(points: Float64, surfaces: SurfaceArray, kind: SurfaceKind) -> Float64:
    """Return the signed distances (n, g) of points (3, n, g) from the surfaces of their groups."""
    return PROFILES[kind](ProfilePoints(*axis_coordinates(points, surfaces), surfaces.radius, surfaces.second))[0]


def _max_distances(block: Block, surfaces: SurfaceArray, kind: SurfaceKind) -> Float64:
    """Return the distance (g,) of the farthest point of each group."""
    off: Float64 = np.abs(_distances(block.point, surfaces, kind)).max(axis=0)
    return off


def _max_depths(block: Block, surfaces: SurfaceArray, kind: SurfaceKind) -> Float64:
    """Return the distance (g,) of the farthest middle of a facet of each group."""
    depth: Float64 = np.abs(_distances(block.center, surfaces, kind)).max(axis=0)
    return depth


class _Step(NamedTuple):
    """Surfaces after a step.

    surfaces:  (g,) surfaces
    off:       (g,) root mean square of the distances before the step
    predicted: (g,) root mean square after the step, by its linear equations
    """

    surfaces: SurfaceArray
    off: Float64
    predicted: Float64


def _take_step(block: Block, surfaces: SurfaceArray, kind: SurfaceKind) -> _Step:
    """Take one Gauss-Newton step on the distances, with the unknowns of its trial."""
    u, v, up = axis_frames(surfaces)
    offset = block.point - surfaces.origin.T[:, None, :]
    height, beside_u, beside_v = (dot_products(offset, line) for line in (up, u, v))
    distance = hypotenuses(beside_u, beside_v)
    off, by_distance, by_height = PROFILES[kind](ProfilePoints(height, distance, surfaces.radius, surfaces.second))
    # at the tip of a cone the direction away from the axis is undefined; there the point only fixes the height
    inverse = block.mask / np.maximum(distance, TINY)
    is_tip = distance <= _MIN_TIP_DISTANCE_RATIO
    has_tips = traits.HAS_SLOPE[kind] and bool(is_tip.any())
    if has_tips:
        off, inverse = np.where(is_tip, off - distance * by_distance, off), np.where(is_tip, 0.0, inverse)
    along_u, along_v = beside_u * inverse, beside_v * inverse
    tilting = by_height * distance - by_distance * height
    columns = [-by_distance * along_u, -by_distance * along_v, tilting * along_u, tilting * along_v]
    columns.append(-by_distance * block.mask)
    if traits.HAS_SLOPE[kind]:
        columns.append(height * columns[-1])
    if traits.HAS_TUBE[kind]:
        columns.insert(2, -by_height * block.mask)
        columns.append(-block.mask)
    sums = sum_products([*columns, off * block.mask])
    if has_tips:
        _add_tips(sums, np.where(is_tip, block.mask, 0.0), height, beside_u, beside_v)
    solution = solve_symmetric(sums[:-1, :-1], sums[:-1, -1])
    left = sums[-1, -1] - np.einsum("ij,ij->j", solution, sums[:-1, -1])
    step = np.zeros((7, len(surfaces)))
    # in sizes of the group and radians; a longer step leaves the range where the equations are linear
    step[list(TRIALS[kind].unknowns)] = np.clip(np.nan_to_num(-solution), -1.0, 1.0)
    axis = up + step[3] * u + step[4] * v
    origin = surfaces.origin.T + step[0] * u + step[1] * v + step[2] * up
    after = SurfaceArray(
        surfaces.kind, origin.T, normalize(axis.T), surfaces.radius + step[5], surfaces.second + step[6]
    )
    count = block.mask.sum(axis=0)
    return _Step(after, np.sqrt(sums[-1, -1] / count), np.sqrt(np.maximum(left, 0) / count))


def _add_tips(sums: Float64, tip: Float64, height: Float64, beside_u: Float64, beside_v: Float64) -> None:
    """Add equations that pull the axes of cones through their tips.

    Args:
        sums: (k, k, g) normal equations; changed in place.
        tip: (p, g) 1.0 for tips, 0.0 for other points.
        height: (p, g) heights along the axis.
        beside_u: (p, g) coordinates across the axis.
        beside_v: (p, g) coordinates across the axis.
    """
    zero = np.zeros_like(tip)
    for shift, tilt, beside in ((0, 2, beside_u), (1, 3, beside_v)):
        columns = [zero] * len(sums)
        columns[shift], columns[tilt], columns[-1] = -tip, -height * tip, beside * tip
        sums += sum_products(columns)
