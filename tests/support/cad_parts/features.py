"""Features of printed and machined parts: holes, pockets, bosses, ribs, text, snap hooks, patterns.

Each function takes a kernel (`occ` or a `Scad`), a part, the center of a cell of `CELL_MM`, the height of the face
that the feature starts at, the thickness below it, and a random generator; it returns the part with the feature.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

Point = tuple[float, float]

CELL_MM = 24.0
"""Millimeters of a part for each feature."""


class Place(NamedTuple):
    """Where a feature is: center of the cell, height of its face, thickness below; millimeters."""

    x: float
    y: float
    top: float
    thickness: float


def polygon(x: float, y: float, sides: int, inner_radius: float, turn: float) -> list[Point]:
    """Return the corners of a regular polygon whose sides touch a circle."""
    reach = inner_radius / math.cos(math.pi / sides)
    angles = [turn + 2 * math.pi * side / sides for side in range(sides)]
    return [(x + reach * math.cos(angle), y + reach * math.sin(angle)) for angle in angles]


def bridged_hole(kernel: Any, part: Any, at: Place, chance: random.Random) -> Any:
    """Cut a counterbore from below whose ceiling a printer bridges: a slot, then a square, then the hole they touch."""
    x, y, top, thickness = at
    radius = chance.uniform(1.2, 3)
    wide, deep = radius * chance.uniform(1.6, 2.5), chance.uniform(0.2, 0.5) * thickness
    layer = chance.choice([0.2, 0.3, 0.5])
    low = top - thickness
    bore = kernel.cylinder(x, y, low, low + deep + 3 * layer, wide)
    if chance.random() < 0.4:
        hexagon = polygon(x, y, 6, wide, chance.choice([0, math.pi / 6]))
        bore = kernel.prism(hexagon, low, low + deep + 3 * layer)
    slot = kernel.common(bore, kernel.box(x, y, low + deep, low + deep + layer, 4 * wide, 2 * radius))
    square = kernel.box(x, y, low + deep, low + deep + 2 * layer, 2 * radius, 2 * radius)
    lower = kernel.common(bore, kernel.box(x, y, low - 1, low + deep, 4 * wide, 4 * wide))
    tools = [lower, slot, square, kernel.cylinder(x, y, low - 1, top + 1, radius)]
    if chance.random() < 0.3:
        tools.remove(slot)
    return kernel.cut(part, *tools)


def circle_in_polygon(kernel: Any, part: Any, at: Place, chance: random.Random) -> Any:
    """Cut a pocket whose sides touch a hole in its floor."""
    x, y, top, thickness = at
    radius, sides = chance.uniform(2, 6), chance.choice([3, 4, 4, 5, 6, 8])
    turn = chance.choice([0.0, math.pi / sides, chance.uniform(0, 6)])
    bottom = top - thickness + (-1.0 if chance.random() < 0.6 else 0.1 * thickness)
    pocket = kernel.prism(polygon(x, y, sides, radius, turn), top - chance.uniform(0.4, 0.8) * thickness, top + 1)
    return kernel.cut(part, pocket, kernel.cylinder(x, y, bottom, top + 1, radius))


def circle_beside_pocket(kernel: Any, part: Any, at: Place, chance: random.Random) -> Any:
    """Cut a pocket of which one side, or two, touch a hole in its floor."""
    x, y, top, thickness = at
    radius, floor = chance.uniform(1, 3), top - chance.uniform(0.4, 0.8) * thickness
    length, width = chance.uniform(7, 12), chance.uniform(7, 12)
    across = x + length / 2 - radius
    beside = y if chance.random() < 0.5 else y + width / 2 - radius
    hole = kernel.cylinder(across, beside, top - thickness - 1, top + 1, radius)
    return kernel.cut(part, kernel.box(x, y, floor, top + 1, length, width), hole)


def counterbore(kernel: Any, part: Any, at: Place, chance: random.Random) -> Any:
    """Cut a hole with a wider one above, around one axis or touching it from within."""
    x, y, top, thickness = at
    radius = chance.uniform(1.5, 3)
    wide = radius * chance.uniform(1.4, 2.5)
    aside = wide - radius if chance.random() < 0.3 else 0.0
    angle = chance.choice([0, math.pi / 2, math.pi, chance.uniform(0, 6)])
    low = top - thickness - 1
    narrow = kernel.cylinder(x + aside * math.cos(angle), y + aside * math.sin(angle), low, top + 1, radius)
    return kernel.cut(part, narrow, kernel.cylinder(x, y, top - chance.uniform(0.3, 0.7) * thickness, top + 1, wide))


def chamfered_hole(kernel: Any, part: Any, at: Place, chance: random.Random) -> Any:
    """Cut a hole with a chamfer or a countersink at one end or both; gentle chamfers resemble a torus."""
    x, y, top, thickness = at
    radius, deep = chance.uniform(1.5, 4), chance.uniform(0.03, 0.2) * thickness
    low = top - thickness
    tools = [kernel.cylinder(x, y, low - 1, top + 1, radius)]
    slope = chance.choice([1.0, 1.0, 0.3, 0.15])
    tools.append(kernel.cylinder(x, y, top - deep, top, radius, radius + slope * deep))
    if chance.random() < 0.6:
        tools.append(kernel.cylinder(x, y, low, low + deep, radius + slope * deep, radius))
    return kernel.cut(part, *tools)


def blind_hole(kernel: Any, part: Any, at: Place, chance: random.Random) -> Any:
    """Cut a blind hole with the cone of a drill, or with a round end."""
    x, y, top, thickness = at
    radius, floor = chance.uniform(0.8, 3), top - chance.uniform(0.3, 0.6) * thickness
    tools = [kernel.cylinder(x, y, floor, top + 1, radius)]
    if chance.random() < 0.6:
        tools.append(kernel.cylinder(x, y, floor - 0.3 * radius, floor, 0.0, radius))
    else:
        tools.append(kernel.ball(x, y, floor, radius))
    return kernel.cut(part, *tools)


def slot(kernel: Any, part: Any, at: Place, chance: random.Random) -> Any:
    """Cut a slot with round ends, in which holes may touch its sides."""
    x, y, top, thickness = at
    radius, half = chance.uniform(1.5, 3.5), chance.uniform(2, 6)
    is_blind = chance.random() < 0.6
    floor = top - (chance.uniform(0.3, 0.7) * thickness if is_blind else thickness + 1)
    tools = [kernel.box(x, y, floor, top + 1, 2 * half, 2 * radius)]
    tools += [kernel.cylinder(x + side * half, y, floor, top + 1, radius) for side in (-1, 1)]
    if is_blind and chance.random() < 0.7:
        tools.append(kernel.cylinder(x + chance.choice([0, half, half / 3]), y, top - thickness - 1, top + 1, radius))
    return kernel.cut(part, *tools)


def hex_pocket(kernel: Any, part: Any, at: Place, chance: random.Random) -> Any:
    """Cut a nut trap with a smaller screw hole, which may have a chamfer."""
    x, y, top, thickness = at
    inner = chance.uniform(2.5, 6)
    floor = top - chance.uniform(0.3, 0.7) * thickness
    hexagon = polygon(x, y, 6, inner, chance.choice([0, math.pi / 6, chance.uniform(0, 1)]))
    tools = [kernel.prism(hexagon, floor, top + 1)]
    tools.append(kernel.cylinder(x, y, top - thickness - 1, top + 1, inner * chance.uniform(0.4, 0.8)))
    if chance.random() < 0.4:
        tools.append(kernel.cylinder(x, y, top - 0.5, top, inner, inner + 0.9))
    return kernel.cut(part, *tools)


def boss(kernel: Any, part: Any, at: Place, chance: random.Random) -> Any:
    """Add a boss on a block that is as wide as it, with a hole."""
    x, y, top, thickness = at
    radius, high = chance.uniform(3, 8), chance.uniform(3, 9)
    width = 2 * radius * chance.choice([1.0, 1.0, 1.4])
    base = kernel.box(x, y, top - 0.5, top + 3, width, 2 * radius)
    pin = kernel.cylinder(x, y, top - 0.5, top + 3 + high, radius)
    hole = kernel.cylinder(x, y, top - thickness - 1, top + 20, radius * chance.uniform(0.3, 0.7))
    return kernel.cut(kernel.join(part, base, pin), hole)


def ribbed_boss(kernel: Any, part: Any, at: Place, chance: random.Random) -> Any:
    """Add a tapered boss with three or four triangular ribs."""
    x, y, top, _ = at
    radius, high, count = chance.uniform(2, 3.5), chance.uniform(5, 9), chance.choice([3, 4])
    thick, reach = chance.uniform(0.8, 1.5), chance.uniform(3, 6)
    pin = kernel.cylinder(x, y, top - 0.5, top + high, radius, radius * chance.choice([1.0, 0.95, 0.85]))
    side = [(0.0, -0.5), (radius + reach, -0.5), (radius + reach, 0.2), (0.5, 0.8 * high), (0.0, 0.8 * high)]
    rib = kernel.turn(kernel.prism(side, -thick / 2, thick / 2), (1, 0, 0), 90)
    tools = [pin]
    start = chance.choice([0.0, 45.0, chance.uniform(0, 90)])
    for number in range(count):
        turned = kernel.turn(rib, (0, 0, 1), start + 360 * number / count)
        tools.append(kernel.move(turned, x, y, top))
    hole = kernel.cylinder(x, y, top, top + high + 1, 0.5 * radius)
    return kernel.cut(kernel.join(part, *tools), hole)


def hole_pattern(kernel: Any, part: Any, at: Place, chance: random.Random) -> Any:
    """Cut equal holes in a grid or on a circle; some come close to each other."""
    x, y, top, thickness = at
    radius = chance.uniform(0.5, 1.6)
    if chance.random() < 0.5:
        step = chance.uniform(2.2, 3.5) * radius
        count = min(4, int((CELL_MM - 2 * radius) / step))
        centers = [
            (x + step * (column - count / 2), y + step * (row - count / 2))
            for row in range(count)
            for column in range(count)
        ]
    else:
        count, around = chance.choice([3, 4, 5, 6, 8, 12]), chance.uniform(5, 10)
        angles = [2 * math.pi * number / count for number in range(count)]
        centers = [(x + around * math.cos(angle), y + around * math.sin(angle)) for angle in angles]
    return kernel.cut(part, *(kernel.cylinder(a, b, top - thickness - 1, top + 1, radius) for a, b in centers))


def near_miss(kernel: Any, part: Any, at: Place, chance: random.Random) -> Any:
    """Cut two holes, or a hole and a pocket, that almost touch or overlap by little; this makes slivers."""
    x, y, top, thickness = at
    radius, gap = chance.uniform(1, 4), chance.choice([-1, 1]) * 10 ** chance.uniform(-3, -0.5)
    low = top - thickness - 1
    hole = kernel.cylinder(x - radius - gap / 2, y, low, top + 1, radius)
    if chance.random() < 0.5:
        other = chance.uniform(1, 4)
        tool = kernel.cylinder(x + gap / 2 + other, y, top - 0.5 * thickness, top + 1, other)
    else:
        tool = kernel.box(x + gap / 2 + 2.5, y, top - 0.5 * thickness, top + 1, 5, chance.uniform(1, 9))
    return kernel.cut(part, hole, tool)


def vents(kernel: Any, part: Any, at: Place, chance: random.Random) -> Any:
    """Cut parallel slots, straight or with round ends."""
    x, y, top, thickness = at
    count, width, length = chance.randrange(2, 6), chance.uniform(1, 2), chance.uniform(8, 18)
    is_round = chance.random() < 0.5
    tools = []
    for number in range(count):
        across = y + 3.5 * (number - (count - 1) / 2)
        tools.append(kernel.box(x, across, top - thickness - 1, top + 1, length, width))
        for side in (-1, 1) if is_round else ():
            end = x + side * length / 2
            tools.append(kernel.cylinder(end, across, top - thickness - 1, top + 1, width / 2))
    return kernel.cut(part, *tools)


def snap_hook(kernel: Any, part: Any, at: Place, chance: random.Random) -> Any:
    """Add one or two cantilever hooks."""
    x, y, top, _ = at
    high, thick, width = chance.uniform(6, 12), chance.uniform(1.2, 2), chance.uniform(4, 8)
    lip = chance.uniform(0.6, 1.5)
    side = [(0.0, -0.5), (thick, -0.5), (thick, high - 2.5), (thick + lip, high - 2), (thick + 0.2, high), (0.0, high)]
    hook = kernel.move(kernel.turn(kernel.prism(side, -width / 2, width / 2), (1, 0, 0), 90), 0, 0, 0)
    tools = [kernel.move(hook, x + 2, y, top)]
    if chance.random() < 0.5:
        tools.append(kernel.move(kernel.turn(hook, (0, 0, 1), 180), x - 2, y, top))
    return kernel.join(part, *tools)


def drafted_boss(kernel: Any, part: Any, at: Place, chance: random.Random) -> Any:
    """Add a block with inclined sides, and a pocket with draft in it."""
    x, y, top, _ = at
    sides, size, high = chance.choice([4, 4, 6, 8]), chance.uniform(5, 9), chance.uniform(4, 9)
    scale = chance.uniform(0.85, 0.97)
    outside = kernel.prism(polygon(0, 0, sides, size, math.pi / sides), 0, high, scale)
    inside = kernel.prism(polygon(0, 0, sides, size * 0.7 * scale, math.pi / sides), 0, high, 1 / scale)
    block = kernel.join(part, kernel.move(outside, x, y, top))
    return kernel.cut(block, kernel.move(inside, x, y, top + 1))


_STROKES: dict[str, Sequence[tuple[float, float, float, float]]] = {
    "L": [(0, 0, 1, 6), (0, 0, 4, 1)],
    "T": [(1.5, 0, 2.5, 6), (0, 5, 4, 6)],
    "H": [(0, 0, 1, 6), (3, 0, 4, 6), (0, 2.5, 4, 3.5)],
    "E": [(0, 0, 1, 6), (0, 0, 4, 1), (0, 2.5, 3, 3.5), (0, 5, 4, 6)],
    "I": [(1.5, 0, 2.5, 6)],
}
"""Letters as rectangles: low x and y, high x and y."""


def text(kernel: Any, part: Any, at: Place, chance: random.Random) -> Any:
    """Emboss or engrave three letters, some of them round."""
    x, y, top, _ = at
    depth, scale = chance.uniform(0.3, 1), chance.uniform(0.8, 1.2)
    is_raised = chance.random() < 0.5
    low, high = (top - 0.2, top + depth) if is_raised else (top - depth, top + 1)
    tools = []
    for number in range(3):
        left = x + (number * 6 - 8) * scale
        letter = chance.choice("LTHEIODP")
        if letter in _STROKES:
            for x_low, y_low, x_high, y_high in _STROKES[letter]:
                middle = left + (x_low + x_high) / 2 * scale, y + (y_low + y_high) / 2 * scale
                tools.append(kernel.box(*middle, low, high, (x_high - x_low) * scale, (y_high - y_low) * scale))
            continue
        radius = (3 if letter != "P" else 1.75) * scale
        center = left + (2.5 if letter == "O" else 1) * scale, y + 6 * scale - radius
        inner = kernel.cylinder(*center, low - 1, high + 1, radius - scale)
        round_part = kernel.cut(kernel.cylinder(*center, low, high, radius), inner)
        if letter != "O":
            half = kernel.box(center[0] + 5 * scale, center[1], low, high, 10 * scale, 10 * scale)
            round_part = kernel.common(round_part, half)
            tools.append(kernel.box(left + 0.5 * scale, y + 3 * scale, low, high, scale, 6 * scale))
        tools.append(round_part)
    return (kernel.join if is_raised else kernel.cut)(part, *tools)


def dimple(kernel: Any, part: Any, at: Place, chance: random.Random) -> Any:
    """Cut or add a spherical cap, a groove of circular section, or a cone."""
    x, y, top, _ = at
    kind = chance.randrange(3)
    if kind == 0:
        radius = chance.uniform(3, 9)
        tool = kernel.ball(x, y, top + chance.uniform(-0.4, 0.6) * radius, radius)
    elif kind == 1:
        tool = kernel.ring(x, y, top + chance.uniform(-0.3, 0.3), chance.uniform(4, 9), chance.uniform(0.8, 2))
    else:
        tool = kernel.cylinder(x, y, top - 3, top + 4, chance.uniform(2, 4), chance.uniform(5, 8))
    return (kernel.cut if chance.random() < 0.6 else kernel.join)(part, tool)


Feature = Callable[[Any, Any, Place, random.Random], Any]

FEATURES: tuple[Feature, ...] = (
    bridged_hole,
    circle_in_polygon,
    circle_beside_pocket,
    counterbore,
    chamfered_hole,
    blind_hole,
    slot,
    hex_pocket,
    boss,
    ribbed_boss,
    hole_pattern,
    near_miss,
    vents,
    snap_hook,
    drafted_boss,
    text,
    dimple,
)
