"""Geometry of SVG shapes: path data and basic shapes as cubic Bézier curves, and curves as straight edges."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub import ModelTooComplex
from meshhub_cad.profiles import MAX_POINTS, MAX_SEGMENTS, Points

Bools = NDArray[np.bool_]

NUMBER = r"(?>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
"""A number, which a pattern never splits into two."""
_NUMBER = re.compile(NUMBER, re.ASCII)
_COMMAND = re.compile(r"[\s,]*([MZLHVCSQTAmzlhvcsqta])([\s\d.,+\-eE]*)", re.ASCII)
_ARC = re.compile(
    rf"({NUMBER})[\s,]*" * 3 + r"([01])[\s,]*([01])[\s,]*" + rf"({NUMBER})[\s,]*({NUMBER})[\s,]*", re.ASCII
)
_SIZES = {"M": 2, "L": 2, "H": 1, "V": 1, "C": 6, "S": 4, "Q": 4, "T": 2}
"""Numbers of a segment by its command (SVG 2 §9.3)."""

_ARC_STEP = math.pi / 8
"""Radians of an arc for one cubic curve, whose error is then below 1e-7 of the radius."""


class Curves(NamedTuple):
    """Path as cubic Bézier curves.

    Attributes:
        control: (n, 4, 2) control points.
        starts: (s,) index of the first curve of each subpath.
        closed: (s,) whether the subpath was closed.
        ends: (n,) whether the curve ends a segment of the path, in contrast to a part of an arc.
    """

    control: Points
    starts: NDArray[np.intp]
    closed: Bools
    ends: Bools


class Polyline(NamedTuple):
    """Subpath as straight edges.

    Attributes:
        points: (n, 2) points; a closed subpath ends at its first point.
        corner: (n,) whether two curves meet at the point, in contrast to points inside a curve.
        closed: Whether the subpath was closed.
    """

    points: Points
    corner: Bools
    closed: bool


class Pen:
    """Recorder of path segments, with the absolute coordinates of SVG."""

    def __init__(self) -> None:
        self._values = array("d")
        self._starts: list[int] = []
        self._closed: list[bool] = []
        self._inner: list[int] = []
        self._is_drawing = False
        self._origin = (0.0, 0.0)
        self.at = (0.0, 0.0)
        self._handle: tuple[str, float, float] = ("", 0.0, 0.0)

    def curves(self) -> Curves:
        """Return what was drawn."""
        control = np.array(self._values, np.float64).reshape(-1, 4, 2)
        ends = np.ones(len(control), np.bool_)
        ends[self._inner] = False
        return Curves(control, np.array(self._starts, np.intp), np.array(self._closed, np.bool_), ends)

    def move(self, x: float, y: float) -> None:
        """Begin a subpath."""
        self.at = self._origin = (x, y)
        self._is_drawing = False
        self._handle = ("", x, y)

    def line(self, x: float, y: float) -> None:
        """Draw a straight line."""
        x0, y0 = self.at
        dx, dy = (x - x0) / 3, (y - y0) / 3
        self._draw("", x0 + dx, y0 + dy, x - dx, y - dy, x, y)

    def cubic(self, x1: float, y1: float, x2: float, y2: float, x: float, y: float) -> None:
        """Draw a cubic Bézier curve."""
        self._draw("C", x1, y1, x2, y2, x, y)
        self._handle = ("C", x2, y2)

    def smooth_cubic(self, x2: float, y2: float, x: float, y: float) -> None:
        """Draw a cubic curve that continues the last one smoothly."""
        self.cubic(*self._reflect("C"), x2, y2, x, y)

    def quadratic(self, x1: float, y1: float, x: float, y: float) -> None:
        """Draw a quadratic Bézier curve."""
        x0, y0 = self.at
        self._draw("Q", x0 + (x1 - x0) / 1.5, y0 + (y1 - y0) / 1.5, x + (x1 - x) / 1.5, y + (y1 - y) / 1.5, x, y)
        self._handle = ("Q", x1, y1)

    def smooth_quadratic(self, x: float, y: float) -> None:
        """Draw a quadratic curve that continues the last one smoothly."""
        self.quadratic(*self._reflect("Q"), x, y)

    def arc(self, radii: tuple[float, float], tilt: float, flags: tuple[bool, bool], x: float, y: float) -> None:
        """Draw an elliptical arc.

        Args:
            radii: Along the axes of the ellipse.
            tilt: Degrees from the X axis to the first axis.
            flags: Whether the arc is the large one, and whether its angle increases.
            x, y: End of the arc.
        Source:
            SVG 2, appendix B.2.4.
        """
        (x0, y0), (rx, ry) = self.at, (abs(radii[0]), abs(radii[1]))
        if not (rx and ry) or (x0, y0) == (x, y):
            if (x0, y0) != (x, y):
                self.line(x, y)
            return
        cos, sin = math.cos(math.radians(tilt)), math.sin(math.radians(tilt))
        # half the chord, in units of the radii
        u = (cos * (x0 - x) + sin * (y0 - y)) / 2 / rx
        v = (cos * (y0 - y) - sin * (x0 - x)) / 2 / ry
        length = math.hypot(u, v)
        if length > 1:
            rx, ry, u, v, length = rx * length, ry * length, u / length, v / length, 1.0
        factor = math.sqrt(max(1 / length**2 - 1, 0.0)) if length else 0.0
        if flags[0] == flags[1]:
            factor = -factor
        center = (factor * v, -factor * u)
        first = math.atan2(v - center[1], u - center[0])
        sweep = math.atan2(-v - center[1], -u - center[0]) - first
        sweep += 2 * math.pi * ((flags[1] and sweep < 0) - (not flags[1] and sweep > 0))
        middle = ((x0 + x) / 2, (y0 + y) / 2)

        def place(p: float, q: float) -> tuple[float, float]:
            p, q = (center[0] + p) * rx, (center[1] + q) * ry
            return middle[0] + cos * p - sin * q, middle[1] + sin * p + cos * q

        count = max(1, math.ceil(abs(sweep) / _ARC_STEP))
        step = sweep / count
        reach = 4 / 3 * math.tan(step / 4)
        for k in range(count):
            a, b = first + k * step, first + (k + 1) * step
            out = place(math.cos(a) - reach * math.sin(a), math.sin(a) + reach * math.cos(a))
            back = place(math.cos(b) + reach * math.sin(b), math.sin(b) - reach * math.cos(b))
            end = (x, y) if k == count - 1 else place(math.cos(b), math.sin(b))
            self._draw("A", *out, *back, *end)
            self._inner.append(len(self._values) // 8 - 1)
        self._inner.pop()

    def close(self) -> None:
        """Close the subpath with a straight line."""
        if self.at != self._origin or not self._is_drawing:
            self.line(*self._origin)
        self._closed[-1] = True
        self.move(*self._origin)

    def _draw(self, kind: str, *values: float) -> None:
        if not self._is_drawing:
            self._starts.append(len(self._values) // 8)
            self._closed.append(False)
            self._is_drawing = True
        self._values.extend(self.at)
        self._values.extend(values)
        self.at = (values[4], values[5])
        self._handle = (kind, *self.at)

    def _reflect(self, kind: str) -> tuple[float, float]:
        """Return the mirror image of the last control point if the last segment has the same kind."""
        (x, y), (last, x1, y1) = self.at, self._handle
        return (2 * x - x1, 2 * y - y1) if last == kind else (x, y)


def parse_path(data: str) -> Curves:
    """Parse path data up to its first error, as browsers do (SVG 2 §9.5.4)."""
    pen = Pen()
    position = 0
    while (match := _COMMAND.match(data, position)) is not None:
        letter, arguments = match.groups()
        is_first = position == 0
        position = match.end()
        if (is_first and letter not in "Mm") or not _draw_command(pen, letter, arguments):
            break
    return pen.curves()


def _draw_command(pen: Pen, letter: str, arguments: str) -> bool:
    """Draw the segments of a command, and return whether its arguments are complete."""
    command, is_relative = letter.upper(), letter.islower()
    if command == "Z":
        pen.close()
        return not arguments.strip(" ,\t\r\n")
    if command == "A":
        return _draw_arcs(pen, arguments.strip(), is_relative)
    values = [float(number) for number in _NUMBER.findall(arguments)]
    size = _SIZES[command]
    draw = _DRAW[command]
    for start in range(0, len(values) - size + 1, size):
        x0, y0 = pen.at if is_relative else (0.0, 0.0)
        draw(pen, values[start : start + size], x0, y0, is_relative)
        if command == "M":
            draw = _DRAW["L"]
    return bool(values) and len(values) % size == 0


def _draw_arcs(pen: Pen, arguments: str, is_relative: bool) -> bool:
    """Draw arcs up to the first with invalid arguments, and return whether all are valid."""
    position = 0
    while (match := _ARC.match(arguments, position)) is not None:
        position = match.end()
        rx, ry, tilt, large, sweep, x, y = match.groups()
        x0, y0 = pen.at if is_relative else (0.0, 0.0)
        pen.arc((float(rx), float(ry)), float(tilt), (large == "1", sweep == "1"), x0 + float(x), y0 + float(y))
    return position == len(arguments) > 0


_Draw = Callable[[Pen, list[float], float, float, bool], None]

_DRAW: dict[str, _Draw] = {
    "M": lambda pen, v, x, y, _: pen.move(v[0] + x, v[1] + y),
    "L": lambda pen, v, x, y, _: pen.line(v[0] + x, v[1] + y),
    "H": lambda pen, v, x, _y, _: pen.line(v[0] + x, pen.at[1]),
    "V": lambda pen, v, _x, y, _: pen.line(pen.at[0], v[0] + y),
    "C": lambda pen, v, x, y, _: pen.cubic(v[0] + x, v[1] + y, v[2] + x, v[3] + y, v[4] + x, v[5] + y),
    "S": lambda pen, v, x, y, _: pen.smooth_cubic(v[0] + x, v[1] + y, v[2] + x, v[3] + y),
    "Q": lambda pen, v, x, y, _: pen.quadratic(v[0] + x, v[1] + y, v[2] + x, v[3] + y),
    "T": lambda pen, v, x, y, _: pen.smooth_quadratic(v[0] + x, v[1] + y),
}


def rectangle(x: float, y: float, width: float, height: float, radii: tuple[float, float] = (0.0, 0.0)) -> Curves:
    """Return a rectangle, with rounded corners if both radii are positive (SVG 2 §10.2)."""
    pen = Pen()
    rx, ry = radii
    right, bottom = x + width, y + height
    corners = [(right, y, rx, 0.0, 0.0, ry), (right, bottom, 0.0, ry, -rx, 0.0)]
    corners += [(x, bottom, -rx, 0.0, 0.0, -ry), (x, y, 0.0, -ry, rx, 0.0)]
    pen.move(x + rx, y)
    for a, b, from_x, from_y, to_x, to_y in corners:
        if (a - from_x, b - from_y) != pen.at:
            pen.line(a - from_x, b - from_y)
        if rx and ry:
            pen.arc(radii, 0.0, (False, True), a + to_x, b + to_y)
    pen.close()
    return pen.curves()


def ellipse(x: float, y: float, radii: tuple[float, float]) -> Curves:
    """Return an ellipse that starts at its right (SVG 2 §10.4)."""
    pen = Pen()
    pen.move(x + radii[0], y)
    for a, b in ((0, 1), (-1, 0), (0, -1), (1, 0)):
        pen.arc(radii, 0.0, (False, True), x + a * radii[0], y + b * radii[1])
    pen.close()
    return pen.curves()


def polygon(values: Sequence[float], is_closed: bool) -> Curves:
    """Return a polyline of coordinates in turn; an odd last one is left out."""
    pen = Pen()
    points = list(zip(values[::2], values[1::2], strict=False))
    if points:
        pen.move(*points[0])
        for point in points[1:]:
            pen.line(*point)
        if is_closed and len(points) > 1:
            pen.close()
    return pen.curves()


def parse_numbers(text: str) -> list[float]:
    """Return the numbers of a list."""
    return [float(number) for number in _NUMBER.findall(text)]


def flatten(curves: Curves, tolerance: float) -> list[Polyline]:
    """Cut curves into straight edges.

    Args:
        curves: Curves in any unit.
        tolerance: Maximum distance of an edge from its curve. The second derivative bounds the number of edges
            (Wang, "Subdivision of parametric curves", 1984).
    Raises:
        ModelTooComplex: The curves need more than MAX_POINTS points.
    """
    p0, p1, p2, p3 = curves.control.transpose(1, 0, 2)
    with np.errstate(all="ignore"):
        bend = np.maximum(np.hypot(*(p0 - 2 * p1 + p2).T), np.hypot(*(p1 - 2 * p2 + p3).T))
        count = np.ceil(np.sqrt(0.75 * bend / tolerance))
    count = np.clip(np.nan_to_num(count, nan=1), 1, MAX_SEGMENTS).astype(np.intp)
    last = np.cumsum(count)
    if len(count) and last[-1] > MAX_POINTS:
        raise ModelTooComplex(f"the SVG drawing has over {MAX_POINTS} points; set a larger tolerance")
    curve = np.repeat(np.arange(len(count)), count)
    step = np.arange(len(curve)) - np.repeat(last - count, count) + 1
    t = (step / count[curve])[:, None]
    s = 1 - t
    with np.errstate(all="ignore"):
        points = s**3 * p0[curve] + 3 * s * s * t * p1[curve] + 3 * s * t * t * p2[curve] + t**3 * p3[curve]
    is_end = step == count[curve]
    points[is_end] = p3
    corner = is_end & curves.ends[curve]
    bounds = np.append(curves.starts, len(count))
    lines = []
    for start, end, is_closed in zip(bounds[:-1].tolist(), bounds[1:].tolist(), curves.closed.tolist(), strict=True):
        inner = slice(int(last[start] - count[start]), int(last[end - 1]))
        line = np.concatenate([p0[start : start + 1], points[inner]])
        lines.append(Polyline(line, np.concatenate([[True], corner[inner]]), is_closed))
    return lines


def transform_curves(curves: Curves, matrix: Points) -> Curves:
    """Return curves in the coordinates that an affine (3, 3) matrix leads to."""
    return curves._replace(control=transform(curves.control, matrix))


def transform(points: Points, matrix: Points) -> Points:
    """Return points (…, 2) after an affine (3, 3) matrix."""
    with np.errstate(all="ignore"):
        result: Points = points @ matrix[:2, :2].T + matrix[:2, 2]
    return result
