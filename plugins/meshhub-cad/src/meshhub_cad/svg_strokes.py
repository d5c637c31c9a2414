"""Area of SVG strokes: width, caps, joins, miter limit and dashes (SVG 2 §13.5)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub import ModelTooComplex
from meshhub_cad.profiles import Points, arc_segments
from meshhub_cad.svg_paths import Bools, Polyline

MAX_DASHES = 50_000
"""Maximum dashes of a path; short dashes on a long path would take minutes."""


class Pencil(NamedTuple):
    """Style of a stroke, in the unit of its points."""

    width: float
    cap: str
    join: str
    miter_limit: float
    dashes: tuple[float, ...]
    dash_offset: float


def stroke(lines: list[Polyline], pencil: Pencil, tolerance: float) -> list[Points]:
    """Return outlines whose area by the nonzero rule is the stroke.

    Args:
        lines: Subpaths.
        pencil: Width and shape of the stroke.
        tolerance: Maximum distance of an edge from a round cap or join.
    Raises:
        ModelTooComplex: The stroke has more than MAX_DASHES dashes.
    """
    if pencil.dashes:
        lines = [piece for line in lines for piece in _cut_dashes(line, pencil)]
    return [outline for line in lines for outline in _outline(line, pencil, tolerance)]


def _cut_dashes(line: Polyline, pencil: Pencil) -> list[Polyline]:
    """Return the pieces of a line that its dashes cover."""
    length = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(line.points, axis=0).T))])
    pattern = np.array(pencil.dashes, np.float64)
    period = float(pattern.sum())
    repeats = (length[-1] + period) / period
    if not repeats * len(pattern) < MAX_DASHES:
        raise ModelTooComplex(f"a line of the SVG drawing has over {MAX_DASHES} dashes; draw it without dashes")
    ends = np.concatenate([[0.0], np.cumsum(np.tile(pattern, int(repeats) + 1))]) - pencil.dash_offset % period
    pieces = []
    for low, high in zip(ends[:-1:2].tolist(), ends[1::2].tolist(), strict=False):
        begin, end = max(low, 0.0), min(high, float(length[-1]))
        if begin <= end and low < length[-1] and (begin < end or low == high):
            inner = (length > begin) & (length < end)
            at = np.concatenate([[begin], length[inner], [end]])
            points = np.stack([np.interp(at, length, line.points[:, axis]) for axis in range(2)], axis=1)
            pieces.append(Polyline(points, np.concatenate([[True], line.corner[inner], [True]]), False))
    return pieces


def _outline(line: Polyline, pencil: Pencil, tolerance: float) -> list[Points]:
    half = pencil.width / 2
    is_new = np.append(True, (np.diff(line.points, axis=0) != 0).any(axis=1))
    points = line.points[is_new]
    # points that coincide are one, and a corner if one of them is
    corner = np.logical_or.reduceat(line.corner, np.flatnonzero(is_new))
    if len(points) == 1:
        return _dot(points[0], pencil.cap, half, tolerance)
    is_closed = line.closed and len(points) > 2
    if is_closed and (points[0] == points[-1]).all():
        points, corner = points[:-1], corner[:-1]
    forward = _offset(points, corner, is_closed, pencil, tolerance)
    backward = _offset(points[::-1], corner[::-1], is_closed, pencil, tolerance)
    if is_closed:
        return [forward, backward]
    ends = [_cap(points[-2:], pencil.cap, half, tolerance), _cap(points[1::-1], pencil.cap, half, tolerance)]
    return [np.concatenate([forward, ends[0], backward, ends[1]])]


def _dot(center: Points, cap: str, half: float, tolerance: float) -> list[Points]:
    """Return the caps of a subpath without length."""
    if cap == "round":
        turn = np.linspace(0, 2 * np.pi, int(arc_segments(half, 2 * np.pi, tolerance)), endpoint=False)
        return [center + half * np.stack([np.cos(turn), np.sin(turn)], axis=1)]
    if cap == "square":
        return [center + half * np.array([(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)])]
    return []


def _cap(edge: Points, cap: str, half: float, tolerance: float) -> Points:
    """Return the points of a cap between both sides of the last edge of a line."""
    ahead = (edge[1] - edge[0]) * (half / np.hypot(*(edge[1] - edge[0])))
    left = np.array([-ahead[1], ahead[0]])
    if cap == "square":
        return np.asarray(edge[1] + np.array([left + ahead, ahead - left]))
    if cap == "round":
        turn = np.linspace(0, np.pi, int(arc_segments(half, np.pi, tolerance)) + 1)[1:-1, None]
        return np.asarray(edge[1] + np.cos(turn) * left + np.sin(turn) * ahead)
    return np.empty((0, 2))


def _offset(points: Points, corner: Bools, is_closed: bool, pencil: Pencil, tolerance: float) -> Points:
    """Return the left side of a line with its joins.

    Where the line turns left, its left side passes the corner itself if the neighboring edges are short. So all edges
    and joins add areas of the same orientation, and the nonzero rule unites them.
    """
    half = pencil.width / 2
    edges = np.diff(np.concatenate([points, points[:1]]) if is_closed else points, axis=0)
    length = np.hypot(edges[:, 0], edges[:, 1])
    normal = np.stack([-edges[:, 1], edges[:, 0]], axis=1) * (half / length)[:, None]
    into = np.arange(-1, len(edges) - 1) if is_closed else np.arange(len(edges) - 1)
    first, second = normal[into], normal[into + 1]
    at = points if is_closed else points[1:-1]
    corner = corner if is_closed else corner[1:-1]
    cross = first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0]
    dot = (first * second).sum(axis=1)
    angle = np.arctan2(cross, dot)
    angle[angle == np.pi] = -np.pi
    with np.errstate(all="ignore"):
        tip = (first + second) / (1 + dot / half**2)[:, None]
        is_short = half * np.abs(np.tan(angle / 2)) > np.minimum(length[into], length[into + 1])
        is_miter = corner & (1 / np.cos(angle / 2) <= pencil.miter_limit) & (pencil.join not in ("round", "bevel"))
    is_inner = angle > 0
    is_round = ~corner | (pencil.join == "round")
    steps = np.where(is_round, arc_segments(half, angle, tolerance), 1)
    steps = np.where(is_inner, np.where(is_short, 2, 0), np.where(is_miter, 0, steps))
    joins = _joins(at, (first, second, tip), angle, steps, is_inner)
    if is_closed:
        return joins
    return np.concatenate([points[:1] + normal[:1], joins, points[-1:] + normal[-1:]])


def _joins(
    at: Points,
    spokes: tuple[Points, Points, Points],
    angle: NDArray[np.float64],
    steps: NDArray[np.intp],
    is_inner: Bools,
) -> Points:
    """Return the points of all joins.

    Args:
        at: (n, 2) corners.
        spokes: (n, 2) from the corner to the side of the edge before it, of that after it, and to where both meet.
        angle: (n,) turn at the corner.
        steps: (n,) edges of the join; 0 for the point where both sides meet.
        is_inner: (n,) whether the join is inside of the turn, where two edges pass the corner.
    """
    first, second, tip = spokes
    join = np.repeat(np.arange(len(at)), steps + 1)
    step = np.arange(len(join)) - np.repeat(np.cumsum(steps + 1) - steps - 1, steps + 1)
    turn = angle[join] * step / np.maximum(steps[join], 1)
    cos, sin = np.cos(turn), np.sin(turn)
    x, y = first[join].T
    spoke = np.stack([cos * x - sin * y, sin * x + cos * y], axis=1)
    is_last = step == steps[join]
    spoke[is_last] = second
    spoke[is_inner[join] & (step == 1) & ~is_last] = 0.0
    spoke[steps[join] == 0] = tip[steps == 0]
    return np.asarray(at[join] + spoke)
