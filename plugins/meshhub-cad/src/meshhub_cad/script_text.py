"""Text of scripts for build123d and OpenSCAD: parameters, heights, then features by name."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from meshhub_cad.features import Body, Design, Feature, Parameter, Shape, show
from meshhub_cad.prisms import Outline, arc_of

_MIN_DEVIATION_MM = 5e-7
"""Millimeters; smaller deviations are not printed."""

_BUILD123D_HEAD = '''"""Part in millimeters, written by meshhub from a mesh: change the parameters, and run it."""

from math import cos, radians, sin

from build123d import (
    Axis, Circle, Line, Plane, Pos, Rectangle, RectangleRounded, ThreePointArc, Wire,
    extrude, make_face, revolve,
)

'''

_BUILD123D_FUNCTIONS = '''

def row(x, y, dx, dy, count, spacing):
    """Return places at equal distances on a line."""
    return [(x + k * spacing * dx, y + k * spacing * dy) for k in range(count)]


def grid(x, y, columns, rows, dx, dy):
    """Return places in columns and rows."""
    return [(x + i * dx, y + j * dy) for i in range(columns) for j in range(rows)]


def bolt_circle(x, y, first, count, diameter):
    """Return places at equal angles on a circle."""
    angles = [radians(first + 360 * k / count) for k in range(count)]
    return [(x + diameter / 2 * cos(angle), y + diameter / 2 * sin(angle)) for angle in angles]


def outline(plane, start, edges, low, high):
    """Return the solid of lines to points, and of arcs through a middle to an end."""
    curves = []
    for edge in edges:
        end = edge[-1] if isinstance(edge[0], tuple) else edge
        curves.append(ThreePointArc(start, *edge) if isinstance(edge[0], tuple) else Line(start, edge))
        start = end
    return extrude(plane.offset(low) * make_face(Wire(curves)), high - low)


def rectangle(plane, x, y, length, width, corner_radius, low, high):
    """Return a box whose edges along the axis may be round."""
    radius = min(corner_radius, 0.499 * min(length, width))
    area = RectangleRounded(length, width, radius) if radius else Rectangle(length, width)
    return extrude(plane.offset(low) * Pos(x, y) * area, high - low)


def disk(plane, x, y, diameter, low, high):
    """Return a cylinder between two heights."""
    return extrude(plane.offset(low) * Pos(x, y) * Circle(diameter / 2), high - low)


def turned(plane, x, y, bottom, top, bulge, low, high):
    """Return a round solid whose diameter changes between two heights, along a line or an arc."""
    ends = (bottom / 2, low), (top / 2, high)
    middle = ((bottom + top) / 4 + bulge * (high - low), (low + high) / 2)
    curves = [ThreePointArc(ends[0], middle, ends[1]) if bulge else Line(*ends)]
    if top:
        curves.append(Line(ends[1], (0, high)))
    curves.append(Line((0, high), (0, low)))
    if bottom:
        curves.append(Line((0, low), ends[0]))
    return plane * Pos(x, y) * revolve(Plane.XZ * make_face(Wire(curves)), Axis.Z)

'''

_SCAD_FUNCTIONS = """
// largest distance of a straight edge from its arc
resolution = 0.01;

function pieces(r, angle) = max(3, ceil(abs(angle) / (2 * acos(1 - min(0.5, resolution / max(r, resolution))))));
// points of an arc without its last one; angles in degrees
function arc(x, y, r, from, angle) =
    let (n = pieces(r, angle), step = angle / n)
    [for (i = [0 : n - 1]) [x + r * cos(from + step * i), y + r * sin(from + step * i)]];
function row(x, y, dx, dy, count, spacing) = [for (k = [0 : count - 1]) [x + k * spacing * dx, y + k * spacing * dy]];
function grid(x, y, columns, rows, dx, dy) =
    [for (i = [0 : columns - 1]) for (j = [0 : rows - 1]) [x + i * dx, y + j * dy]];
function bolt_circle(x, y, first, count, diameter) =
    [for (k = [0 : count - 1]) [x + diameter / 2 * cos(first + 360 * k / count),
                                y + diameter / 2 * sin(first + 360 * k / count)]];
module outline(points, low, high) { translate([0, 0, low]) linear_extrude(height = high - low) polygon(points); }
module rectangle(x, y, length, width, corner_radius, low, high) {
  r = min(corner_radius, 0.499 * min(length, width));
  translate([x, y, low]) linear_extrude(height = high - low)
    if (r > 0) offset(r = r, $fn = 4 * pieces(r, 90)) square([length - 2 * r, width - 2 * r], center = true);
    else square([length, width], center = true);
}
module disk(x, y, d, low, high) {
  translate([x, y, low]) cylinder(h = high - low, d = d, $fn = $fn ? $fn : pieces(d / 2, 360));
}
// round solid whose diameter changes between two heights, along a line or an arc
module turned(x, y, bottom, top, bulge, low, high) {
  h = high - low;
  middle = (bottom + top) / 4 + bulge * h;
  n = bulge == 0 ? 1 : 4 * pieces(h, 90);
  translate([x, y, low]) rotate_extrude($fn = $fn ? $fn : pieces(max(bottom, top) / 2, 360))
    polygon(concat([[0, 0]], bulge == 0 ? [[bottom / 2, 0], [top / 2, h]]
      : through([bottom / 2, 0], [middle, h / 2], [top / 2, h], n), [[0, h]]));
}
function center(a, b, c) =
    let (d = 2 * (a.x * (b.y - c.y) + b.x * (c.y - a.y) + c.x * (a.y - b.y)), p = a * a, q = b * b, s = c * c)
    [p * (b.y - c.y) + q * (c.y - a.y) + s * (a.y - b.y), p * (c.x - b.x) + q * (a.x - c.x) + s * (b.x - a.x)] / d;
function angle(v) = atan2(v.y, v.x);
function turn(from, to) = to - from - 360 * floor((to - from) / 360);
function through(a, b, c, n) =
    let (m = center(a, b, c), r = norm(a - m), from = angle(a - m), left = turn(from, angle(c - m)),
         sweep = turn(from, angle(b - m)) < left ? left : left - 360)
    [for (i = [0 : n]) let (p = m + r * [cos(from + sweep * i / n), sin(from + sweep * i / n)]) [max(p.x, 0), p.y]];
"""


def print_build123d(design: Design) -> str:
    """Return the text of a script for build123d."""
    lines = [_BUILD123D_HEAD, *_print_parameters(design.parameters, "#", ""), _BUILD123D_FUNCTIONS]
    for number, body in enumerate(design.bodies, 1):
        name, plane = f"body_{number}", f"plane_{number}"
        across, axis = (_list_numbers(values, "()") for values in (body.prism.across, body.prism.axis))
        lines.append(f"{plane} = Plane(origin=(0, 0, 0), x_dir={across}, z_dir={axis})")
        lines += [f"{height} = {value}" for height, value in body.heights]
        is_first = True
        for feature in body.features:
            lines += ["", f"# {feature.title}"]
            indent = ""
            if feature.places is not None and feature.places_count > 1:
                lines.append(f"for x, y in {feature.places}:")
                indent = "    "
            for shape in feature.shapes:
                operator = "=" if is_first and not indent else f"{feature.sign}="
                if is_first and indent:
                    lines.insert(len(lines) - 1, f"{name} = None")
                    operator = "="
                lines.append(f"{indent}{name} {operator} {_print_build123d_shape(shape, plane, feature)}")
                is_first = False
        lines.append("")
    lines += ["part = " + " + ".join(f"body_{number}" for number in range(1, len(design.bodies) + 1)), ""]
    lines += ['if __name__ == "__main__":', "    from build123d import export_step", ""]
    lines += ['    export_step(part, "part.step")', ""]
    return "\n".join(lines)


def _print_build123d_shape(shape: Shape, plane: str, feature: Feature) -> str:
    if shape.outline is not None:
        edges = [
            _list_numbers(edge.end, "()")
            if edge.middle is None
            else f"({_list_numbers(edge.middle, '()')}, {_list_numbers(edge.end, '()')})"
            for edge in shape.outline.edges
        ]
        start = _list_numbers(shape.outline.start, "()")
        return f"outline({plane}, {start}, [{', '.join(edges)}], {shape.low}, {shape.high})"
    place = "x, y" if feature.places_count > 1 else _print_place(feature)
    return f"{shape.kind}({plane}, {place}, {', '.join([*shape.numbers, shape.low, shape.high])})"


def _print_place(feature: Feature) -> str:
    """Return the coordinates of the only place of a feature."""
    assert feature.places is not None
    return feature.places.strip("[]")


def _print_parameters(parameters: Sequence[Parameter], comment: str, end: str) -> list[str]:
    """Return a line for each parameter, with its unit and how far the mesh is from it."""
    lines = []
    for name, value, deviation in parameters:
        if deviation is None:
            note = "number"
        elif deviation < _MIN_DEVIATION_MM:
            note = "mm"
        else:
            note = f"mm, within {deviation:.1g} of the mesh"
        lines.append(f"{name} = {show(value)}{end}  {comment} {note}")
    return lines


def print_scad(design: Design) -> str:
    """Return the text of a script for OpenSCAD."""
    lines = ["// Part in millimeters, written by meshhub from a mesh: change the parameters.", ""]
    lines += [*_print_parameters(design.parameters, "//", ";"), _SCAD_FUNCTIONS]
    for body in design.bodies:
        lines += [f"{name} = {value};" for name, value in body.heights]
        axis, across = np.array(body.prism.axis), np.array(body.prism.across)
        columns = np.stack([across, np.cross(axis, across), axis], axis=1)
        matrix = ", ".join(_list_numbers([*row, 0.0], "[]") for row in columns.tolist())
        lines += [f"multmatrix([{matrix}, [0, 0, 0, 1]])", *_print_scad_body(body), ""]
    return "\n".join(lines)


def _print_scad_body(body: Body) -> list[str]:
    """Return nested unions and differences: each run of openings is cut out of all that comes before it."""
    lines = ["union() {"]
    sign = "+"
    for feature in body.features:
        if feature.sign == "-" and sign == "+":
            lines = ["difference() {", *("  " + line for line in lines), "  }"]
        elif feature.sign == "+" and sign == "-":
            lines = ["union() {", *("  " + line for line in lines), "  }"]
        sign = feature.sign
        lines.append(f"  // {feature.title}")
        loop = "" if feature.places is None else f"for (p = {feature.places}) "
        parts = [_print_scad_shape(shape) for shape in feature.shapes]
        if len(parts) > 1:
            # parts of one hole have equal corners where they meet
            widths = ", ".join(number for shape in feature.shapes for number in shape.numbers[:2])
            parts = [f"{{ $fn = pieces(max({widths}) / 2, 360); {' '.join(parts)} }}"]
        lines.append(f"  {loop}{parts[0]}")
    return [*lines, "}"]


def _print_scad_shape(shape: Shape) -> str:
    if shape.outline is not None:
        return f"outline({_print_points(shape.outline)}, {shape.low}, {shape.high});"
    return f"{shape.kind}(p.x, p.y, {', '.join([*shape.numbers, shape.low, shape.high])});"


def _print_points(outline: Outline) -> str:
    """Return the expression of the points of an outline."""
    parts, start = [], outline.start
    for edge in outline.edges:
        if edge.middle is None:
            parts.append(f"[{_list_numbers(start, '[]')}]")
        else:
            circle, first, sweep = arc_of(start, edge)
            numbers = (*circle.center, circle.radius, math.degrees(first), math.degrees(sweep))
            parts.append(f"arc({', '.join(show(value) for value in numbers)})")
        start = edge.end
    return f"concat({', '.join(parts)})"


def _list_numbers(values: Sequence[float], brackets: str) -> str:
    return brackets[0] + ", ".join(show(value) for value in values) + brackets[1]
