"""Splines through the points of edges: on both surfaces, or through the corners of the mesh beside patches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import make_interp_spline

from meshhub.builtin_plugins.step.recognition.rim_curves import FRACTIONS, interpolate_corners, project
from meshhub.builtin_plugins.step.solids.edge_paths import Paths, Sides
from meshhub.builtin_plugins.step.solids.tolerances import MAX_GAP_MM
from meshhub.builtin_plugins.step.surfaces import traits
from meshhub.builtin_plugins.step.surfaces.arrays import lengths
from meshhub.builtin_plugins.step.surfaces.patches import DEGREE
from meshhub.builtin_plugins.step.surfaces.surfaces import project_onto_both
from meshhub.model.scene import Float64

_MAX_SPLINE_ERROR_MM = 1e-7
"""Distance of a spline from its surfaces, as the files state; CAD programs fail to fillet beside less exact ones."""
_MAX_SPLINE_MOVE_RATIO = 0.05
"""Distance of a spline beside a patch from its other surface, over the limit of the surfaces."""
_MAX_SPLINE_ROUNDS = 2
"""Attempts to halve the steps of a spline; each one divides its error by 16."""
_MAX_MISS_RATIO = 2.0
"""Distance of a smooth curve through the corners beside a patch from both surfaces, over the limit of the surfaces."""
Mask = NDArray[np.bool_]


def refine_splines(paths: Paths, sides: Sides, selected: Mask) -> Paths:
    """Return the paths with points of the intersection added until the splines through (n,) selected ones lie on it.

    Paths with a corner off the surfaces stay: small steps beside it would bend the spline.
    """
    off = np.maximum.reduceat(sides.distances(paths.point, paths.path), paths.begin[:-1])
    selected = selected & (off <= MAX_GAP_MM)
    for _ in range(_MAX_SPLINE_ROUNDS):
        rows = np.flatnonzero(selected)
        middles = [_interpolate_middles(paths.point[paths.begin[row] : paths.begin[row + 1]]) for row in rows.tolist()]
        if not middles:
            break
        owner = np.repeat(rows, np.diff(paths.begin)[rows] - 1)
        middle = np.concatenate(middles)
        off = np.zeros(paths.count)
        np.maximum.at(off, owner, sides.distances(middle, owner))
        selected = selected & (off > _MAX_SPLINE_ERROR_MM)
        is_added = selected[owner]
        owner, middle = owner[is_added], middle[is_added]
        on_both = project_onto_both(sides.left.take(owner), sides.right.take(owner), middle)
        after = np.flatnonzero(selected[paths.path])
        # the last point of a path has no point after it
        after = after[after + 1 < paths.begin[paths.path[after] + 1]]
        place = np.concatenate([np.arange(len(paths.path)), after + 0.5])
        order = np.argsort(place, kind="stable")
        path = np.concatenate([paths.path, owner])[order]
        point = np.concatenate([paths.point, on_both])[order]
        paths = Paths(np.searchsorted(path, np.arange(paths.count + 1)), path, point)
    return paths


def _interpolate_middles(points: Float64) -> Float64:
    """Return the middle points (k - 1, 3) between points (k, 3) on the cubic spline through them."""
    chord = np.concatenate([[0.0], np.cumsum(lengths(np.diff(points, axis=0)))])
    curve = make_interp_spline(chord, points, k=3)
    return np.asarray(curve((chord[:-1] + chord[1:]) / 2), np.float64)


def interpolate_paths(paths: Paths, sides: Sides, limit: Float64) -> tuple[Paths, Mask]:
    """Return smooth curves through the points of the paths beside patches, and (n,) which paths have one.

    A patch meets its neighbors where the corners of the mesh are, also if it is tangent to them.
    """
    is_patch = [traits.IS_PATCH[side.kind] for side in sides]
    rows = np.flatnonzero((is_patch[0] | is_patch[1]) & (np.diff(paths.begin) > 2))
    curves, needs_more = [], np.zeros(paths.count, np.bool_)
    for path in rows.tolist():
        corner = paths.point[paths.begin[path] : paths.begin[path + 1]]
        between = interpolated = interpolate_corners(corner)
        if not (is_patch[0][path] and is_patch[1][path]):
            between = project((sides.right if is_patch[0][path] else sides.left).take(np.array([path])), between)
        moved = float(lengths(between - interpolated).max())
        # otherwise, the spline through the corners is the curve; CAD programs read long splines slowly
        needs_more[path] = len(corner) <= DEGREE or (corner[0] == corner[-1]).all()
        needs_more[path] |= moved > _MAX_SPLINE_MOVE_RATIO * limit[path]
        curves.append(between)
    owner = np.repeat(rows, [len(curve) for curve in curves])
    between = np.concatenate([np.empty((0, 3)), *curves])
    # written so that NaN is wrong, too
    is_off = ~(sides.distances(between, owner) <= _MAX_MISS_RATIO * limit[owner])
    is_smooth = np.zeros(paths.count, np.bool_)
    is_smooth[rows] = True
    is_smooth[owner[is_off]] = False
    corners = paths.select(is_smooth)
    is_added = (is_smooth & needs_more)[owner]
    owner, between = owner[is_added], between[is_added]
    after = np.flatnonzero((np.diff(corners.path, append=-1) == 0) & needs_more[corners.path])
    place = np.concatenate([np.arange(len(corners.path)), (after[:, None] + FRACTIONS).ravel()])
    order = np.argsort(place, kind="stable")
    point = np.concatenate([corners.point, between])[order]
    number = np.concatenate([corners.path, owner])[order]
    return Paths(np.searchsorted(number, np.arange(paths.count + 1)), number, point), is_smooth
