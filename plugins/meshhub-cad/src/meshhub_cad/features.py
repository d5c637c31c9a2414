"""Features of a prism by name: profiles, bosses, holes and their patterns, with named parameters."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from meshhub_cad.prisms import Circle, Item, Loop, Outline, Point, Prism, Turned

_EQUAL_MM = 2e-3
"""Millimeters between values that get one parameter; corners of meshes are rounded."""

_ANGLE_DEG = 0.05
"""Degrees between equal angles of a pattern."""

_MIN_PATTERN_COUNT = 3
"""Places from which a row or a circle is a pattern; two are written as places."""

_ROUNDS_MM = (0.1, 0.05, 0.01, 0.001)
"""Millimeters; a parameter is a multiple of the first that is close to its value."""


class Parameter(NamedTuple):
    """Named value of a script.

    value:     millimeters, or a count
    deviation: largest distance of a value of the mesh from it, mm; None for a count
    """

    name: str
    value: float
    deviation: float | None


class Shape(NamedTuple):
    """Solid at each place of a feature; its numbers are expressions.

    kind:    "disk", "rectangle", "outline" or "turned"
    numbers: of a disk: diameter; of a rectangle: length, width, corner radius; of a turned solid: lower and upper
             diameter, bulge
    low, high: heights
    outline: of an outline
    """

    kind: str
    numbers: tuple[str, ...]
    low: str
    high: str
    outline: Outline | None = None


class Feature(NamedTuple):
    """Shapes that are added to or cut out of a body, at one or more places.

    title:  for a comment
    sign:   "+" or "-"
    places: expression of a list of places; None for an outline, which has its own coordinates
    shapes: from low to high
    places_count: number of places
    """

    title: str
    sign: str
    places: str | None
    shapes: tuple[Shape, ...]
    places_count: int


class Body(NamedTuple):
    """Features of one prism, and the expressions of its heights by name."""

    prism: Prism
    heights: tuple[tuple[str, str], ...]
    features: tuple[Feature, ...]


class Design(NamedTuple):
    """Parameters and bodies of a script."""

    parameters: tuple[Parameter, ...]
    bodies: tuple[Body, ...]


@dataclass
class _Table:
    """Parameters while they are collected; equal values of one quantity share one."""

    parameters: list[Parameter] = field(default_factory=list)
    quantities: list[str] = field(default_factory=list)

    def add(self, feature: str, quantity: str, value: float) -> str:
        """Return the name of a length of a feature."""
        for number, (parameter, other) in enumerate(zip(self.parameters, self.quantities, strict=True)):
            if other == quantity and abs(parameter.value - value) <= _EQUAL_MM:
                deviation = max(parameter.deviation or 0.0, abs(parameter.value - value))
                self.parameters[number] = parameter._replace(deviation=deviation)
                return parameter.name
        rounded = round_length(value)
        return self._append(f"{feature}_{quantity}", quantity, rounded, abs(rounded - value))

    def count(self, feature: str, quantity: str, value: int) -> str:
        """Return the name of a number of places."""
        return self._append(f"{feature}_{quantity}", "", value, None)

    def _append(self, name: str, quantity: str, value: float, deviation: float | None) -> str:
        taken = {parameter.name for parameter in self.parameters}
        unique, number = name, 2
        while unique in taken:
            unique, number = f"{name}_{number}", number + 1
        self.parameters.append(Parameter(unique, value, deviation))
        self.quantities.append(quantity)
        return unique


def round_length(value: float) -> float:
    """Return a length as somebody designs it, if that is within what the mesh supports."""
    for step in _ROUNDS_MM:
        rounded = round(round(value / step) * step, 6)
        if abs(rounded - value) <= min(_EQUAL_MM / 4, step / 4) and rounded > 0:
            return rounded
    return round(value, 5)


def describe(prisms: Sequence[Prism]) -> Design:
    """Return the features and parameters of solids."""
    table = _Table()
    bodies = [
        _describe_body(prism, "" if len(prisms) == 1 else f"body_{number}_", table)
        for number, prism in enumerate(prisms, 1)
    ]
    return Design(tuple(table.parameters), tuple(bodies))


@dataclass
class _Body:
    """A body while its features are collected.

    prefix: of the names of its parameters
    levels: heights of its material, by their expressions
    """

    table: _Table
    prefix: str
    levels: dict[float, str]
    numbers: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def name(self, kind: str) -> str:
        """Return the name of the next feature of a kind."""
        self.numbers[kind] += 1
        return f"{self.prefix}{kind}_{self.numbers[kind]}"


def _describe_body(prism: Prism, prefix: str, table: _Table) -> Body:
    """Return the features of a solid: outlines, then round shapes, the outer ones first."""
    outlines = [item for item in prism.items if isinstance(item.loop, Outline)]
    stacks = _list_stacks([item for item in prism.items if not isinstance(item.loop, Outline)])
    solid = [item for item in outlines if item.depth % 2 == 0]
    solid += [item for stack in stacks if stack[0].depth % 2 == 0 for item in stack]
    heights, levels = _name_levels(solid, prefix, table)
    body = _Body(table, prefix, levels)
    features: list[tuple[int, Feature]] = [(item.depth, _describe_outline(item, body)) for item in outlines]
    features += [(group[0][0].depth, _describe_stacks(group, body)) for group in _group_stacks(stacks)]
    features.sort(key=lambda pair: pair[0])
    return Body(prism, heights, tuple(feature for _, feature in features))


def _name_levels(solid: list[Item], prefix: str, table: _Table) -> tuple[tuple[tuple[str, str], ...], dict[float, str]]:
    """Return the heights at which material begins or ends, with their expressions, and their names."""
    ends = sorted({end for item in solid for end in (item.low, item.high)})
    names = {end: f"{prefix}z_{number}" for number, end in enumerate(ends)}
    heights = [(names[ends[0]], show(ends[0]))]
    for low, high in pairwise(ends):
        quantity = "thickness" if len(ends) == 2 else "height"
        feature = f"{prefix}part" if len(ends) == 2 else f"{prefix}step_{len(heights)}"
        step = table.add(feature, quantity, high - low)
        heights.append((names[high], f"{names[low]} + {step}"))
    return tuple(heights), names


def _describe_outline(item: Item, body: _Body) -> Feature:
    """Return the extrusion of an outline; a rectangle has a length and a width."""
    is_solid = item.depth % 2 == 0
    assert isinstance(item.loop, Outline)
    name = body.name("profile" if is_solid else "pocket")
    low, high = _name_ends(item.low, item.high, name, body)
    rectangle = _find_rectangle(item.loop)
    if rectangle is None:
        return Feature(name, "+" if is_solid else "-", None, (Shape("outline", (), low, high, item.loop),), 1)
    (x, y), length, width, radius = rectangle
    numbers = [body.table.add(name, "length", length), body.table.add(name, "width", width), "0"]
    if radius:
        numbers[2] = body.table.add(name, "corner_radius", radius)
    places = f"[[{show(x)}, {show(y)}]]"
    return Feature(name, "+" if is_solid else "-", places, (Shape("rectangle", tuple(numbers), low, high),), 1)


def _name_ends(low: float, high: float, name: str, body: _Body) -> tuple[str, str]:
    """Return the expressions of two heights: those of the material, or at a depth below or above one of them."""
    bottom, top = body.levels.get(low), body.levels.get(high)
    if bottom is None and top is None:
        bottom = show(low)
    if bottom is None:
        bottom = f"{top} - {body.table.add(name, 'depth', high - low)}"
    elif top is None:
        top = f"{bottom} + {body.table.add(name, 'depth', high - low)}"
    assert top is not None
    return bottom, top


def _find_rectangle(outline: Outline) -> tuple[Point, float, float, float] | None:
    """Return center, length, width and corner radius of a rectangle along the axes, with sharp or round corners."""
    starts = [outline.start, *(edge.end for edge in outline.edges[:-1])]
    lines = [(start, edge.end) for start, edge in zip(starts, outline.edges, strict=True) if edge.middle is None]
    arcs = [(start, edge.end) for start, edge in zip(starts, outline.edges, strict=True) if edge.middle is not None]
    if len(lines) != 4 or len(arcs) not in (0, 4):
        return None
    if any(min(abs(x0 - x1), abs(y0 - y1)) > _EQUAL_MM for (x0, y0), (x1, y1) in lines):
        return None
    xs, ys = zip(*starts, strict=True)
    low, high = (min(xs), min(ys)), (max(xs), max(ys))
    length, width = high[0] - low[0], high[1] - low[1]
    radius = 0.0
    if arcs:
        spans = [abs(a - b) for start, end in arcs for a, b in zip(start, end, strict=True)]
        radius = sum(spans) / 8
        if max(abs(span - radius) for span in spans) > _EQUAL_MM or not _are_convex(outline, low, high, radius):
            return None
    center = ((low[0] + high[0]) / 2, (low[1] + high[1]) / 2)
    return center, length, width, radius


def _are_convex(outline: Outline, low: Point, high: Point, radius: float) -> bool:
    """Return whether the middles of all arcs lie where those of rounded corners do."""
    inset = radius * (1 - math.sqrt(0.5))
    corners = [(x, y) for x in (low[0] + inset, high[0] - inset) for y in (low[1] + inset, high[1] - inset)]
    middles = [edge.middle for edge in outline.edges if edge.middle is not None]
    # the middle of an arc need not be exactly in its middle
    allowed = radius / 2
    return all(min(math.dist(middle, corner) for corner in corners) <= allowed for middle in middles)


def _list_stacks(items: list[Item]) -> list[list[Item]]:
    """Return the round items about the same center that touch, from low to high."""
    stacks: list[list[Item]] = []
    for item in sorted(items, key=lambda item: (item.depth, item.low)):
        for stack in stacks:
            last = stack[-1]
            is_next = last.depth == item.depth and abs(last.high - item.low) <= _EQUAL_MM
            if is_next and math.dist(_center(last.loop), _center(item.loop)) <= _EQUAL_MM:
                stack.append(item)
                break
        else:
            stacks.append([item])
    return stacks


def _group_stacks(stacks: list[list[Item]]) -> list[list[list[Item]]]:
    """Return the stacks that differ only by their place."""
    groups: list[list[list[Item]]] = []
    for stack in stacks:
        for group in groups:
            if _is_equal(group[0], stack):
                group.append(stack)
                break
        else:
            groups.append([stack])
    return groups


def _is_equal(one: list[Item], other: list[Item]) -> bool:
    if len(one) != len(other) or one[0].depth != other[0].depth:
        return False
    numbers = [
        [value for item in stack for value in (item.low, item.high, *_radii(item.loop))] for stack in (one, other)
    ]
    return all(abs(a - b) <= _EQUAL_MM for a, b in zip(*numbers, strict=True))


def _center(loop: Loop) -> Point:
    assert not isinstance(loop, Outline)
    return loop.center


def _radii(loop: Loop) -> tuple[float, float, float]:
    """Return the lower and the upper radius, and the bulge."""
    assert not isinstance(loop, Outline)
    return (loop.low, loop.high, loop.bulge) if isinstance(loop, Turned) else (loop.radius, loop.radius, 0.0)


def _describe_stacks(group: list[list[Item]], body: _Body) -> Feature:
    """Return a boss or a hole, at all its places."""
    is_solid = group[0][0].depth % 2 == 0
    name = body.name("boss" if is_solid else "hole")
    shapes = _describe_turns(group[0], name, body)
    places = _describe_places([_center(stack[0].loop) for stack in group], name, body)
    return Feature(name, "+" if is_solid else "-", places, shapes, len(group))


def _describe_turns(stack: list[Item], name: str, body: _Body) -> tuple[Shape, ...]:
    """Return the shapes of a stack: the narrowest one gets the rest of the height of the others."""
    core = min(range(len(stack)), key=lambda k: (not isinstance(stack[k].loop, Circle), min(_radii(stack[k].loop)[:2])))
    diameter = _Diameters(name, body.table)
    roles = [_find_role(stack, k, core) for k in range(len(stack))]
    # the diameter of the core comes first
    diameter.add(_radii(stack[core].loop)[0], "")
    sides = []
    for item, role in zip(stack, roles, strict=True):
        low, high, bulge = _radii(item.loop)
        sides.append((diameter.of(low, high, role, item), diameter.of(high, low, role or "top", item), show(bulge)))
    ends = _chain_heights(stack, roles, core, name, body)
    return tuple(
        Shape("disk", (lower,), low, high)
        if lower == upper and bulge == "0"
        else Shape("turned", (lower, upper, bulge), low, high)
        for (lower, upper, bulge), (low, high) in zip(sides, ends, strict=True)
    )


def _find_role(stack: list[Item], number: int, core: int) -> str:
    """Return what a part of a hole or a boss is called."""
    item = stack[number]
    low, high, bulge = _radii(item.loop)
    if number == core:
        return ""
    is_hole = item.depth % 2 == 1
    if isinstance(item.loop, Circle):
        return "counterbore" if is_hole else "step"
    is_even = abs(abs(high - low) - (item.high - item.low)) <= _EQUAL_MM
    if bulge:
        return "rim_radius" if is_even else "rounding"
    return "chamfer" if is_even else "countersink" if is_hole else "cone"


@dataclass
class _Diameters:
    """Diameters of one stack; ends that meet have the same expression."""

    name: str
    table: _Table
    known: list[tuple[float, str]] = field(default_factory=list)

    def add(self, radius: float, role: str) -> str:
        """Return the parameter of a diameter."""
        quantity = f"{role}_diameter" if role else "diameter"
        text = "0" if radius <= _EQUAL_MM else self.table.add(self.name, quantity, 2 * radius)
        self.known.append((radius, text))
        return text

    def of(self, radius: float, other: float, role: str, item: Item) -> str:
        """Return the expression of a diameter of a part whose other end has another radius."""
        for known, text in self.known:
            if abs(known - radius) <= _EQUAL_MM:
                return text
        if role in ("chamfer", "rim_radius") and radius > other:
            narrow = next((text for known, text in self.known if abs(known - other) <= _EQUAL_MM), None)
            if narrow is not None:
                size = self.table.add(self.name, role, item.high - item.low)
                text = f"{narrow} + 2 * {size}"
                self.known.append((radius, text))
                return text
        return self.add(radius, role)


def _chain_heights(stack: list[Item], roles: list[str], core: int, name: str, body: _Body) -> list[tuple[str, str]]:
    """Return the expressions of the heights of all parts, from both ends to the core."""

    def add(number: int) -> str:
        role, height = roles[number], stack[number].high - stack[number].low
        if role in ("chamfer", "rim_radius"):
            return body.table.add(name, role, height)
        return body.table.add(name, f"{role}_depth" if role else "depth", height)

    bottom, top = body.levels.get(stack[0].low), body.levels.get(stack[-1].high)
    if bottom is None and top is None:
        bottom = show(stack[0].low)
    ends: list[list[str]] = [["", ""] for _ in stack]
    if bottom is not None:
        ends[0][0] = bottom
        for k in range(core if top is not None else len(stack)):
            ends[k][1] = f"{ends[k][0]} + {add(k)}"
            if k + 1 < len(stack):
                ends[k + 1][0] = ends[k][1]
    if top is not None:
        ends[-1][1] = top
        for k in range(len(stack) - 1, core if bottom is not None else -1, -1):
            ends[k][0] = f"{ends[k][1]} - {add(k)}"
            if k:
                ends[k - 1][1] = ends[k][0]
    return [(low, high) for low, high in ends]


def _describe_places(centers: list[Point], name: str, body: _Body) -> str:
    """Return the places of a feature: a row, a grid, a circle, or a list."""
    centers = sorted(centers)
    for find in (_find_row, _find_grid, _find_circle):
        places = find(centers, name, body) if len(centers) >= _MIN_PATTERN_COUNT else None
        if places is not None:
            return places
    return "[" + ", ".join(f"[{show(x)}, {show(y)}]" for x, y in centers) + "]"


def _find_row(centers: list[Point], name: str, body: _Body) -> str | None:
    """Return the expression of places at equal distances on a line."""
    (x, y), (end_x, end_y), count = centers[0], centers[-1], len(centers)
    step = (end_x - x) / (count - 1), (end_y - y) / (count - 1)
    if any(math.dist((x + k * step[0], y + k * step[1]), place) > _EQUAL_MM for k, place in enumerate(centers)):
        return None
    spacing = math.hypot(*step)
    direction = ", ".join(show(part / spacing) for part in step)
    numbers = body.table.count(name, "count", count), body.table.add(name, "spacing", spacing)
    return f"row({show(x)}, {show(y)}, {direction}, {numbers[0]}, {numbers[1]})"


def _find_grid(centers: list[Point], name: str, body: _Body) -> str | None:
    """Return the expression of places in rows and columns along the axes."""
    columns, rows = (_find_steps([place[axis] for place in centers]) for axis in (0, 1))
    if columns is None or rows is None or columns[1] * rows[1] != len(centers):
        return None
    numbers = [
        body.table.count(name, "columns", columns[1]),
        body.table.count(name, "rows", rows[1]),
        body.table.add(name, "column_spacing", columns[2]),
        body.table.add(name, "row_spacing", rows[2]),
    ]
    return f"grid({show(columns[0])}, {show(rows[0])}, {', '.join(numbers)})"


def _find_steps(values: list[float]) -> tuple[float, int, float] | None:
    """Return the first of values at equal distances, their number, and the distance."""
    distinct: list[float] = []
    for value in sorted(values):
        if not distinct or value - distinct[-1] > _EQUAL_MM:
            distinct.append(value)
    if len(distinct) < 2:
        return None
    step = (distinct[-1] - distinct[0]) / (len(distinct) - 1)
    if any(abs(distinct[0] + k * step - value) > _EQUAL_MM for k, value in enumerate(distinct)):
        return None
    return distinct[0], len(distinct), step


def _find_circle(centers: list[Point], name: str, body: _Body) -> str | None:
    """Return the expression of places at equal angles on a circle."""
    count = len(centers)
    x, y = (sum(values) / count for values in zip(*centers, strict=True))
    radii = [math.dist((x, y), place) for place in centers]
    radius = sum(radii) / count
    if max(abs(other - radius) for other in radii) > _EQUAL_MM:
        return None
    angles = sorted(math.degrees(math.atan2(place[1] - y, place[0] - x)) % 360 for place in centers)
    if any(abs(angles[0] + k * 360 / count - angle) > _ANGLE_DEG for k, angle in enumerate(angles)):
        return None
    numbers = body.table.count(name, "count", count), body.table.add(name, "circle_diameter", 2 * radius)
    return f"bolt_circle({show(x)}, {show(y)}, {show(round(angles[0], 2))}, {numbers[0]}, {numbers[1]})"


def show(value: float) -> str:
    """Return a number with up to six decimals."""
    text = f"{value:.6f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
