"""Fit of the smallest uniform grid of a B-spline surface through points with parameters."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.interpolate import BSpline, insert
from scipy.sparse import csr_matrix, diags_array, eye_array, kron
from scipy.sparse.linalg import spsolve

from meshhub.builtin_plugins.step.recognition.arrays import lengths
from meshhub.builtin_plugins.step.recognition.patches import Patch
from meshhub.builtin_plugins.step.recognition.profiles import DEGREE
from meshhub.model.scene import Float64

_SMOOTHING_RATIO = 1e-7
"""Weight of the second differences of the poles over that of the points; as small as the error of a cubic spline."""

MAX_POLES_COUNT = 6000
"""Poles of a patch; the time of the fit grows with their number to the power of 1.5."""

_MAX_POLES_RATIO = 0.8
"""Poles over points; with more, a surface passes through any points."""

_FIRST_SPANS = 3
"""Spans of the first grid in each direction."""

_CLOSED_SPANS = 6
"""The same around a closed patch."""

_MIN_ERROR_RATIO = 0.3
"""Largest error in a span over that of the patch, from which the span is halved."""

_MIN_GAIN_RATIO = 0.8
"""Error of a finer grid over that of the coarser one, above which the finer one does not help."""

_MAX_FAILURES_COUNT = 2
"""Finer grids in a row that do not help, after which the fit stops."""

_CONVERGENCE_ORDER = 3
"""Order in the number of poles by which the error falls at most; cubic splines have 2, adapted grids a little more."""

_MAX_CORRECTED_RATIO = 20.0
"""Error over the desired one up to which parameters are corrected; far from the patch this only takes time."""

_MAX_CORRECTIONS_COUNT = 3
"""Corrections of the parameters for each grid."""

_CORRECTION_SPANS = 0.5
"""Spans by which a correction moves a parameter at most; far from the patch, the nearest point is arbitrary."""


def fit_patch(
    parameters: Float64, points: Float64, weights: Float64, tolerances: tuple[float, float], *, is_closed: bool
) -> Patch | None:
    """Return a patch with few poles that passes through points; None if there is none.

    Args:
        parameters: (n, 2) parameters of the points, 0…1.
        points: (n, d) millimeters; d is the number of coordinates of a pole.
        weights: (n,) weights of the squared distances.
        tolerances: Millimeters between a point and the patch at its parameters: desired, and allowed if no grid of
            acceptable size reaches that.
        is_closed: Whether the patch is periodic in its first parameter; its parameters are corrected then.
    """
    fit = _Fit(parameters, points, weights, is_closed=is_closed)
    grid = (np.linspace(0, 1, (_CLOSED_SPANS if is_closed else _FIRST_SPANS) + 1), np.linspace(0, 1, _FIRST_SPANS + 1))
    result = fit.solve(grid)
    limit = min(MAX_POLES_COUNT, _MAX_POLES_RATIO * len(points))
    failures = 0
    while result.largest > tolerances[0] and failures <= _MAX_FAILURES_COUNT:
        if result.largest * (_count_poles(result.grid) / limit) ** _CONVERGENCE_ORDER > tolerances[1]:
            break
        trials = [fit.solve(finer) for finer in result.refine() if _count_poles(finer) <= limit]
        if not trials:
            break
        # the gain for each pole that it costs
        cost = np.log([_count_poles(trial.grid) / _count_poles(result.grid) for trial in trials])
        gain = np.log([result.largest / max(trial.largest, tolerances[0] / 2) for trial in trials])
        best = trials[int(np.argmax(gain / cost))]
        if is_closed and best.largest <= _MAX_CORRECTED_RATIO * tolerances[0]:
            best = fit.correct(best, tolerances[0])
        failures = failures + 1 if best.largest > _MIN_GAIN_RATIO * result.largest else 0
        result = best
    return result.patch if result.largest <= tolerances[1] else None


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

    def __init__(self, parameters: Float64, points: Float64, weights: Float64, *, is_closed: bool) -> None:
        self._parameters, self._points, self._weights = parameters, points, weights
        self._is_closed = is_closed

    def correct(self, result: _Result, tolerance: float) -> _Result:
        """Return the patch with the parameters of the nearest points, as long as this helps; rims stay rims."""
        for _ in range(_MAX_CORRECTIONS_COUNT):
            if result.largest <= tolerance:
                break
            before = self._parameters
            moved = result.patch.locate(self._points) - before
            moved[:, 0] = (moved[:, 0] + 0.5) % 1.0 - 0.5
            reach = _CORRECTION_SPANS * np.array([np.diff(breaks).min() for breaks in result.grid])
            after = before + np.clip(moved, -reach, reach)
            after[:, 0] %= 1.0
            is_rim = (before[:, 1] == 0) | (before[:, 1] == 1)
            after[is_rim, 1] = before[is_rim, 1]
            after[is_rim & (before[:, 0] == 0), 0] = 0.0
            self._parameters = after
            following = self.solve(result.grid)
            if following.largest > result.largest:
                self._parameters = before
                break
            result = following
        return result

    def solve(self, grid: tuple[Float64, Float64]) -> _Result:
        """Return the patch with a grid."""
        closed = (self._is_closed, False)
        bases = [_design(self._parameters[:, k], grid[k], is_closed=closed[k]) for k in range(2)]
        columns = [basis.shape[1] for basis in bases]
        matrix = _multiply_rows(*bases)
        weighted = matrix.multiply(self._weights[:, None]).tocsr()
        smoothing = _SMOOTHING_RATIO * float(self._weights.sum()) / np.prod(columns)
        bends = [_second_differences(columns[k], is_closed=closed[k]) for k in range(2)]
        energy = kron(bends[0], eye_array(columns[1])) + kron(eye_array(columns[0]), bends[1])
        normal = (matrix.T @ weighted + smoothing * energy).tocsc()
        center = self._points.mean(axis=0)
        poles = spsolve(normal, weighted.T @ (self._points - center)).reshape(matrix.shape[1], -1)
        error = lengths(matrix @ poles - (self._points - center))
        patch = _clamp((poles + center).reshape(*columns, -1), grid, is_closed=self._is_closed)
        return _Result(patch, grid, error, self._parameters)


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
