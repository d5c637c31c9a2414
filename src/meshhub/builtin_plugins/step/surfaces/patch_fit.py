"""Fit of the smallest uniform grid of a B-spline surface through points with parameters."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline, insert
from scipy.sparse import csr_matrix, diags_array, eye_array, hstack, kron, vstack
from scipy.sparse.linalg import spsolve

from meshhub.builtin_plugins.step.surfaces.arrays import TINY, lengths, normalize
from meshhub.builtin_plugins.step.surfaces.patches import DEGREE, Patch
from meshhub.model.scene import Float64

_SMOOTHING_RATIO = 1e-7
"""Weight of the second differences of the poles over that of the points; as small as the error of a cubic spline."""

_BEND_ORDER = 4
"""Order in the length of a span by which the weight of a squared second difference falls: a curvature, squared."""

_MIN_BEND_RATIO = 1e-6
"""Weight of the bends along the longer spans over that of the bends along the shorter ones, at least."""

MAX_POLES_COUNT = 6000
"""Poles of a patch; the time of the fit grows with their number to the power of 1.5."""

_MAX_SLIDING_POLES = 3000
"""Poles of a patch along which points slide; fewer, because each solution has three times as many unknowns."""

_MAX_SLIDING_POINTS = 8000
"""Points that slide; if there are more, only a random sample of them slides."""

_MAX_POLES_RATIO = 0.8
"""Poles over points; with more, a surface passes through any points."""

MIN_SPANS = 3
"""Spans of a first grid in a direction, at least."""

_MIN_ERROR_RATIO = 0.3
"""Largest error in a span over that of the patch, from which the span is halved."""

_MIN_GAIN_RATIO = 0.8
"""Error of a finer grid over that of the coarser one, above which the finer one does not help."""

_MAX_FAILURES_COUNT = 2
"""Finer grids in a row that do not help, after which the fit stops."""

_CONVERGENCE_ORDER = 3
"""Order in the number of poles by which the error falls at most; cubic splines have 2, adapted grids a little more."""

_MAX_CORRECTIONS_COUNT = 8
"""Corrections of the parameters for each grid."""

_MAX_FIRST_ERROR_RATIO = 0.1
"""Error of the first grid over the diagonal of the points, above which corrections lead nowhere."""

_MIN_CORRECTION_GAIN_RATIO = 0.9
"""Error after a correction over that before it, above which another one does not help."""

_CORRECTION_SPANS = 0.5
"""Spans by which a correction moves a parameter at most; far from the patch, the nearest point is arbitrary."""

_BORDER_STEPS = 4
"""Newton steps to the nearest point of a border."""

_SLIDING_WEIGHT = 0.1
"""Weight of a distance along the patch over that of one across it; points may slide along, as parameters follow."""

_FIXED_WEIGHT = 10.0
"""Weight of the distances of the corners of a patch, over those of other points."""


class FitPoints(NamedTuple):
    """Points that a patch passes through.

    parameters: (n, 2) parameters of the points, 0…1
    position:   (n, d) millimeters; d is the number of coordinates of a pole
    held:       (n, 2) which parameters stay when points slide along the patch; those on its border do
    """

    parameters: Float64
    position: Float64
    held: NDArray[np.bool_]


def fit_patch(
    points: FitPoints,
    tolerances: tuple[float, float],
    *,
    is_closed: bool,
    may_slide: bool,
    first_spans: tuple[int, int] = (MIN_SPANS, MIN_SPANS),
    aspect: float | None = None,
) -> Patch | None:
    """Return a patch with few poles that passes through points, or through a sample of many; None if there is none.

    Parameters that are not finite, as of pieces with triangles of nearly no area, have none.

    Args:
        points: The points and their parameters.
        tolerances: Millimeters between a point and the patch at its parameters: desired, and allowed if no grid of
            acceptable size reaches that.
        is_closed: Whether the patch is periodic in its first parameter.
        may_slide: Whether the parameters are corrected until the points are the nearest ones of the patch.
        first_spans: Spans of the first grid in both directions.
        aspect: Length over width, for patches without points in large parts; there, they bend as little as possible.
    """
    if not np.isfinite(points.parameters).all():
        return None
    points = _sample(points, _MAX_SLIDING_POINTS) if may_slide else points
    fit = _Fit(points, is_closed=is_closed, aspect=aspect)
    grid = (np.linspace(0, 1, first_spans[0] + 1), np.linspace(0, 1, first_spans[1] + 1))
    result = fit.solve(grid)
    if may_slide:
        if result.largest > _MAX_FIRST_ERROR_RATIO * float(np.linalg.norm(np.ptp(points.position, axis=0))):
            return None
        result = fit.correct(result, tolerances[0])
    limit = min(_MAX_SLIDING_POLES if may_slide else MAX_POLES_COUNT, _MAX_POLES_RATIO * len(points.position))
    failures = 0
    while result.largest > tolerances[0] and failures <= _MAX_FAILURES_COUNT:
        if result.largest * (_count_poles(result.grid) / limit) ** _CONVERGENCE_ORDER > tolerances[1]:
            break
        trials = [fit.solve(finer) for finer in result.refine() if _count_poles(finer) <= limit]
        trials = [trial for trial in trials if np.isfinite(trial.largest)]
        if not trials:
            break
        # the gain for each pole that it costs
        cost = np.log([_count_poles(trial.grid) / _count_poles(result.grid) for trial in trials])
        gain = np.log([result.largest / max(trial.largest, tolerances[0] / 2) for trial in trials])
        best = trials[int(np.argmax(gain / cost))]
        if may_slide:
            best = fit.correct(best, tolerances[0])
        failures = failures + 1 if best.largest > _MIN_GAIN_RATIO * result.largest else 0
        result = best
    return result.patch if result.largest <= tolerances[1] else None


def _sample(points: FitPoints, count: int) -> FitPoints:
    """Return at most a number of points, with those on the border that are held."""
    if len(points.position) <= count:
        return points
    sample = np.random.default_rng(0).permutation(len(points.position))[:count]
    rows = np.union1d(sample, np.flatnonzero(points.held.any(axis=1)))
    return FitPoints(points.parameters[rows], points.position[rows], points.held[rows])


class _Result(NamedTuple):
    """A fitted patch; grid: breaks in both directions, error: (n,) mm of each point, parameters: (n, 2)."""

    patch: Patch
    grid: tuple[Float64, Float64]
    error: Float64
    parameters: Float64

    @property
    def largest(self) -> float:
        """Largest error in millimeters."""
        return float(self.error.max())

    def refine(self) -> list[tuple[Float64, Float64]]:
        """Return grids in which the spans with large errors are halved: in one direction, the other, both."""
        one, other = (_halve(breaks, self.parameters[:, axis], self.error) for axis, breaks in enumerate(self.grid))
        return [(one, self.grid[1]), (self.grid[0], other), (one, other)]


def _halve(breaks: Float64, parameter: Float64, error: Float64) -> Float64:
    """Return the breaks with the spans halved that have large errors."""
    span = np.clip(np.searchsorted(breaks, parameter, side="right") - 1, 0, len(breaks) - 2)
    largest = np.zeros(len(breaks) - 1)
    np.maximum.at(largest, span, error)
    halved = largest > _MIN_ERROR_RATIO * error.max()
    middle = (breaks[:-1] + breaks[1:]) / 2
    return np.sort(np.concatenate([breaks, middle[halved]]))


def _count_poles(grid: tuple[Float64, Float64]) -> int:
    return (len(grid[0]) + DEGREE - 1) * (len(grid[1]) + DEGREE - 1)


class _Fit:
    """Least squares of points by grids."""

    def __init__(self, points: FitPoints, *, is_closed: bool, aspect: float | None) -> None:
        self._parameters, self._points, self._held = points
        self._is_closed, self._aspect = is_closed, aspect

    def correct(self, result: _Result, tolerance: float) -> _Result:
        """Return the patch with the parameters of its nearest points, as long as this helps; rims stay rims."""
        best, before = result, np.inf
        for _ in range(_MAX_CORRECTIONS_COUNT):
            # singular equations have no finite solution
            if not np.isfinite(result.patch.poles).all():
                break
            parameters = self._find_nearest(result)
            error = lengths(result.patch.evaluate(parameters) - self._points)
            result = _Result(result.patch, result.grid, error, parameters)
            if not np.isfinite(result.largest):
                break
            if result.largest < best.largest:
                best = result
            if result.largest <= tolerance or result.largest > _MIN_CORRECTION_GAIN_RATIO * before:
                break
            before = result.largest
            result = self._slide(result)
        self._parameters = best.parameters
        return best

    def _find_nearest(self, result: _Result) -> Float64:
        """Return the parameters (n, 2) at which the patch is nearest to each point, limited to a small step."""
        before = result.parameters
        moved = self._locate(result.patch, before) - before
        if self._is_closed:
            moved[:, 0] = (moved[:, 0] + 0.5) % 1.0 - 0.5
        reach = _CORRECTION_SPANS * np.array([np.diff(breaks).min() for breaks in result.grid])
        after: Float64 = before + np.where(self._held, 0.0, np.clip(moved, -reach, reach))
        if self._is_closed:
            after[:, 0] %= 1.0
        return np.clip(after, 0.0, 1.0)

    def _locate(self, patch: Patch, start: Float64) -> Float64:
        """Return the parameters (n, 2) at which the patch, or for points held on its border the border, is nearest."""
        parameters = patch.locate(self._points)
        for axis in range(2):
            rows = np.flatnonzero(self._held[:, 1 - axis] & ~self._held[:, axis])
            along = start[rows]
            for _ in range(_BORDER_STEPS if len(rows) else 0):
                place, *slopes = patch.derive(along, 1)
                slope = slopes[axis]
                step = np.einsum("ij,ij->i", place - self._points[rows], slope)
                along[:, axis] -= step / np.maximum(np.einsum("ij,ij->i", slope, slope), TINY)
                along[:, axis] = along[:, axis] % 1.0 if self._is_closed else np.clip(along[:, axis], 0.0, 1.0)
            parameters[rows] = along
        return parameters

    def _slide(self, result: _Result) -> _Result:
        """Return the patch of the same grid that is nearest to the points if these may slide along it.

        Source:
            Tangent distance minimization: Wang, Pottmann and Liu, "Fitting B-spline curves to point clouds by
            curvature-based squared distance minimization", ACM Transactions on Graphics 25, 2006.
        """
        parameters = result.parameters
        _, along_u, along_v = result.patch.derive(parameters, 1)
        normal, along = normalize(np.cross(along_u, along_v)), normalize(along_u)
        across = np.cross(normal, along)
        weight = self._weigh()
        matrix, energy = self._assemble(parameters, result.grid)
        center = self._points.mean(axis=0)
        rows, right = [], []
        holds_u, holds_v = self._held.T
        # a point of the border may slide along the border only
        for direction, is_kept in ((normal, np.ones_like(holds_u)), (across, holds_v), (along, holds_u)):
            scaled = (weight * np.where(is_kept, 1.0, _SLIDING_WEIGHT))[:, None] * direction
            rows.append(hstack([matrix.multiply(column[:, None]) for column in scaled.T]))
            right.append(np.einsum("ij,ij->i", scaled, self._points - center))
        system = vstack(rows).tocsr()
        normal_matrix = system.T @ system + kron(eye_array(3), self._weigh_bends(matrix) * energy)
        poles = spsolve(normal_matrix.tocsc(), system.T @ np.concatenate(right)).reshape(3, -1).T
        return self._finish(matrix, poles, result.grid, parameters)

    def solve(self, grid: tuple[Float64, Float64]) -> _Result:
        """Return the patch with a grid."""
        matrix, energy = self._assemble(self._parameters, grid)
        weighted = matrix.multiply(self._weigh()[:, None] ** 2).tocsr()
        normal = (matrix.T @ weighted + self._weigh_bends(matrix) * energy).tocsc()
        center = self._points.mean(axis=0)
        poles = spsolve(normal, weighted.T @ (self._points - center)).reshape(matrix.shape[1], -1)
        return self._finish(matrix, poles, grid, self._parameters)

    def _assemble(self, parameters: Float64, grid: tuple[Float64, Float64]) -> tuple[csr_matrix, csr_matrix]:
        """Return the weights (n, c) of the poles at parameters (n, 2), and the form (c, c) of the bends of a grid."""
        closed = (self._is_closed, False)
        bases = [_design(parameters[:, k], grid[k], is_closed=closed[k]) for k in range(2)]
        columns = [basis.shape[1] for basis in bases]
        bends = [_second_differences(columns[k], is_closed=closed[k]) for k in range(2)]
        ratio = (self._aspect * columns[1] / columns[0]) ** _BEND_ORDER if self._aspect is not None else 1.0
        weight = [min(1.0, max(value, _MIN_BEND_RATIO)) for value in (1 / ratio, ratio)]
        energy = weight[0] * kron(bends[0], eye_array(columns[1])) + weight[1] * kron(eye_array(columns[0]), bends[1])
        return _multiply_rows(*bases), csr_matrix(energy)

    def _weigh(self) -> Float64:
        """Return (n,) weights of the distances of the points."""
        return np.where(self._held.all(axis=1), _FIXED_WEIGHT, 1.0)

    def _weigh_bends(self, matrix: csr_matrix) -> float:
        return _SMOOTHING_RATIO * len(self._points) / int(matrix.shape[1])

    def _finish(
        self, matrix: csr_matrix, poles: Float64, grid: tuple[Float64, Float64], parameters: Float64
    ) -> _Result:
        """Return the result with poles (c, d) about the mean of the points."""
        center = self._points.mean(axis=0)
        error = lengths(matrix @ poles - (self._points - center))
        columns = len(grid[0]) + (-1 if self._is_closed else DEGREE - 1)
        patch = _clamp((poles + center).reshape(columns, -1, self._points.shape[1]), grid, is_closed=self._is_closed)
        return _Result(patch, grid, error, parameters)


def _clamp_knots(breaks: Float64) -> Float64:
    """Return the knots of a spline that ends at its first and its last break."""
    return np.concatenate([np.zeros(DEGREE), breaks, np.ones(DEGREE)])


def _wrap_knots(breaks: Float64) -> Float64:
    """Return the knots of a periodic spline."""
    return np.concatenate([breaks[-DEGREE - 1 : -1] - 1, breaks, breaks[1 : DEGREE + 1] + 1])


def _design(parameter: Float64, breaks: Float64, *, is_closed: bool) -> csr_matrix:
    """Return the (n, c) values of the basis at (n,) parameters."""
    if not is_closed:
        return csr_matrix(BSpline.design_matrix(parameter, _clamp_knots(breaks), DEGREE))
    matrix = csr_matrix(BSpline.design_matrix(parameter % 1.0, _wrap_knots(breaks), DEGREE))
    spans = len(breaks) - 1
    return csr_matrix((matrix.data, matrix.indices % spans, matrix.indptr), (len(parameter), spans))


def _multiply_rows(one: csr_matrix, other: csr_matrix) -> csr_matrix:
    """Return the (n, c × d) Kronecker products of the rows of (n, c) and (n, d) matrices with four values each."""
    count = one.shape[0]
    width = DEGREE + 1
    values = one.data.reshape(count, width, 1) * other.data.reshape(count, 1, width)
    columns = one.indices.reshape(count, width, 1).astype(np.int64) * other.shape[1]
    columns = columns + other.indices.reshape(count, 1, width)
    begin = np.arange(count + 1) * width**2
    return csr_matrix((values.ravel(), columns.ravel(), begin), (count, one.shape[1] * other.shape[1]))


def _second_differences(count: int, *, is_closed: bool) -> csr_matrix:
    """Return the (count, count) quadratic form of the sum of squared second differences of poles."""
    if is_closed:
        step = csr_matrix(eye_array(count))[np.roll(np.arange(count), -1)] - eye_array(count)
        second = step @ step
    else:
        second = diags_array([1.0, -2.0, 1.0], offsets=[0, 1, 2], shape=(count - 2, count))
    return csr_matrix(second.T @ second)


def _clamp(poles: Float64, grid: tuple[Float64, Float64], *, is_closed: bool) -> Patch:
    """Return the patch of poles (c, d, k); those of a periodic direction are written out."""
    if not is_closed:
        return Patch(_clamp_knots(grid[0]), _clamp_knots(grid[1]), poles)
    count = len(poles)
    knots = _wrap_knots(grid[0])
    columns = list(poles[np.arange(count + DEGREE) % count].reshape(count + DEGREE, -1).T)
    for parameter in (0.0, 1.0):
        spline = [insert(parameter, (knots, column, DEGREE), m=DEGREE) for column in columns]
        knots, columns = spline[0][0], [column for _, column, _ in spline]
    first = int(np.searchsorted(knots, 0.0))
    knots = knots[first : int(np.searchsorted(knots, 1.0, side="right"))]
    rows = np.stack(columns, axis=1)[first : first + len(knots) - DEGREE - 1]
    rows[-1] = rows[0]
    return Patch(knots, _clamp_knots(grid[1]), rows.reshape(len(rows), -1, poles.shape[2]))
