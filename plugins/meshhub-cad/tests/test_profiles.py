"""DXF and SVG: exact areas times the height, units, nested outlines, curves, and hostile drawings."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import ezdxf
import pytest
from shapes import dxf, rectangle, svg

from meshhub import Inspection, MeshhubError, Registry, Source

REGISTRY = Registry()
DISC = math.pi


def inspect(data: bytes, name: str, **options: Any) -> Inspection:
    return REGISTRY.inspect(Source.from_bytes(data, name), options=options)


def codes(inspection: Inspection) -> set[str]:
    return {note.code for note in inspection.notes}


@pytest.mark.parametrize(
    ("unit", "millimeters"), [(0, 1), (1, 25.4), (2, 304.8), (4, 1), (5, 10), (6, 1000), (9, 0.0254), (14, 100)]
)
def test_units_of_dxf(unit: int, millimeters: float) -> None:
    inspection = inspect(dxf(rectangle(10, 20), unit=unit), "a.dxf", dxf_height_mm=5)
    assert inspection.model.size_mm == pytest.approx((10 * millimeters, 20 * millimeters, 5), rel=1e-6)
    assert ("unit_assumed" in codes(inspection)) == (unit == 0)


def test_the_unit_of_an_option_beats_that_of_the_drawing() -> None:
    inspection = inspect(dxf(rectangle(1, 2), unit=0), "a.dxf", dxf_unit="in", dxf_height_mm=2)
    assert inspection.model.size_mm == pytest.approx((25.4, 50.8, 2))
    assert "unit_assumed" not in codes(inspection)


def draw_plate(space: Any, _: Any) -> None:
    space.add_lwpolyline([(0, 0), (100, 0), (100, 50), (0, 50)], close=True)
    space.add_circle((20, 25), 10)
    space.add_circle((20, 25), 4)
    space.add_ellipse((70, 25), (15, 0), 0.5)
    space.add_text("not a shape")


def draw_slot(space: Any, _: Any) -> None:
    space.add_lwpolyline([(0, 0, 0), (20, 0, 1), (20, 10, 0), (0, 10, 1)], format="xyb", close=True)


def draw_old_slot(space: Any, _: Any) -> None:
    space.add_polyline2d([(0, 0, 0), (20, 0, 1), (20, 10, 0), (0, 10, 1)], format="xyb", close=True)


def draw_loose_slot(space: Any, _: Any) -> None:
    space.add_line((0, 0), (20, 0))
    space.add_arc((20, 5), 5, -90, 90)
    space.add_line((0, 10), (20.0004, 10))
    space.add_arc((0, 5), 5, 90, 270)


def draw_slot_with_wires(space: Any, document: Any) -> None:
    draw_loose_slot(space, document)
    space.add_line((20, 0), (30, -10))
    space.add_line((30, -10), (40, -10))


def draw_blocks(space: Any, document: Any) -> None:
    draw_slot(document.blocks.new("SLOT"), document)
    space.add_blockref("SLOT", (0, 0), dxfattribs={"xscale": -1})
    space.add_blockref("SLOT", (100, 0), dxfattribs={"xscale": 2, "rotation": 30})


def draw_crossing_squares(space: Any, _: Any) -> None:
    for x in (0, 5):
        space.add_lwpolyline([(x, 0), (x + 10, 0), (x + 10, 10), (x, 10)], close=True)


def draw_spline(space: Any, _: Any) -> None:
    # one Bézier segment from (0, 0) to (30, 0), and the line back
    spline = space.add_spline(degree=3)
    spline.control_points = [(0, 0), (0, 30), (30, 30), (30, 0)]
    spline.knots = [0, 0, 0, 0, 1, 1, 1, 1]
    space.add_line((30, 0), (0, 0))


SLOT_MM2 = 200 + 25 * DISC


@pytest.mark.parametrize(
    ("draw", "area_mm2", "bodies"),
    [
        (draw_plate, 5000 - 100 * DISC + 16 * DISC - 112.5 * DISC, 2),
        (draw_slot, SLOT_MM2, 1),
        (draw_old_slot, SLOT_MM2, 1),
        (draw_loose_slot, SLOT_MM2, 1),
        (draw_slot_with_wires, SLOT_MM2, 1),
        (draw_blocks, 3 * SLOT_MM2, 2),
        (draw_crossing_squares, 2 * 50, 2),
        (draw_spline, 540, 1),
    ],
)
def test_areas_of_dxf(draw: Any, area_mm2: float, bodies: int) -> None:
    model = inspect(dxf(draw), "a.dxf", dxf_height_mm=2, dxf_tolerance_mm=0.0005).model
    assert model.volume_mm3 == pytest.approx(2 * area_mm2, rel=1e-4)
    assert (model.watertight, model.bodies) == (True, bodies)


@pytest.mark.parametrize("version", ["R12", "R2000", "R2018"])
def test_versions_of_dxf(version: str) -> None:
    assert inspect(dxf(draw_old_slot, version=version), "a.dxf").model.volume_mm3 == pytest.approx(
        3 * SLOT_MM2, rel=1e-3
    )


@pytest.mark.parametrize(
    ("attributes", "millimeters"),
    [
        ('width="100mm" height="50mm" viewBox="0 0 100 50"', 1),
        ('width="10cm" height="5cm" viewBox="0 0 100 50"', 1),
        ('width="1in" height="0.5in" viewBox="0 0 100 50"', 0.254),
        ('width="72pt" height="36pt" viewBox="0 0 100 50"', 0.254),
        ('width="200mm" height="100mm" viewBox="0 0 100 50"', 2),
        ('width="960" height="480"', 25.4 / 96),
        ("", 25.4 / 96),
        ('viewBox="0 0 100 50"', 25.4 / 96),
    ],
)
def test_units_of_svg(attributes: str, millimeters: float) -> None:
    model = inspect(svg('<rect x="5" y="5" width="10" height="20"/>', attributes), "a.svg").model
    assert model.size_mm == pytest.approx((10 * millimeters, 20 * millimeters, 3), rel=1e-6)


def test_the_resolution_of_svg() -> None:
    drawing = svg('<rect width="72" height="36"/>', "")
    assert inspect(drawing, "a.svg", svg_dpi=72).model.size_mm == pytest.approx((25.4, 12.7, 3))


@pytest.mark.parametrize(
    ("body", "area_mm2"),
    [
        ('<rect width="100" height="50"/><circle cx="20" cy="25" r="10" fill="none" stroke="red"/>', 5000),
        ('<path d="M0 0h40v40h-40z M10 10h20v20h-20z"/>', 1600),
        ('<path d="M0 0h40v40h-40z M10 10v20h20v-20z"/>', 1200),
        ('<path fill-rule="evenodd" d="M0 0h40v40h-40z M10 10h20v20h-20z"/>', 1200),
        ('<rect width="20" height="20"/><rect x="10" width="20" height="20" fill="white"/>', 600),
        ('<ellipse cx="50" cy="25" rx="20" ry="10"/>', 200 * DISC),
        ('<path d="M10 25 A 15 10 0 0 1 40 25 Z"/>', 75 * DISC),
        # 3/20 of the cross products of the control points
        ('<path d="M0 0 C 0 30 30 30 30 0 Z"/>', 540),
        ('<path d="M0 0 Q 15 30 30 0 Z"/>', 300),
        ('<polygon points="0,0 10,0 10,10"/>', 50),
        ('<polyline points="0,0 10,0 10,10"/>', 50),
        ('<rect width="10" height="10" transform="translate(40 5) rotate(30) scale(2 .5)"/>', 100),
        ('<defs><rect id="a" width="10" height="10"/></defs><use xlink:href="#a"/><use href="#a" x="20"/>', 200),
        ('<symbol id="a"><rect width="10" height="10"/></symbol><use href="#a"/>', 100),
        ('<rect width="3" height="3"/><rect x="9" width="30" height="3" display="none"/>', 9),
        ('<rect width="3" height="3"/><clipPath id="c"><rect width="99" height="9"/></clipPath>', 9),
    ],
)
def test_areas_of_svg(body: str, area_mm2: float) -> None:
    model = inspect(svg(body), "a.svg", svg_height_mm=2, svg_tolerance_mm=0.0005).model
    assert model.volume_mm3 == pytest.approx(2 * area_mm2, rel=1e-4)
    assert model.watertight


def draw_touching_squares(space: Any, _: Any) -> None:
    for x in (0, 10):
        for (a, b), (c, d) in pairwise([(0, 0), (10, 0), (10, 10), (0, 10), (0, 0)]):
            space.add_line((a + x, b + x), (c + x, d + x))


def draw_twice(space: Any, _: Any) -> None:
    corners = [(0, 0), (10, 0), (10, 10), (0, 10)]
    space.add_lwpolyline(corners, close=True)
    space.add_lwpolyline([*corners[2:], *corners[:2]][::-1], close=True)
    for _turn in range(3):
        space.add_line((20, 0), (30, 0))
    space.add_lwpolyline([(30, 0), (30, 10), (20, 0)])


def test_curves_drawn_twice_count_once() -> None:
    inspection = inspect(dxf(draw_twice), "a.dxf")
    assert inspection.model.volume_mm3 == pytest.approx(3 * (100 + 50))
    assert "duplicates_left_out" in codes(inspection)


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (svg('<rect width="10" height="10"/><rect x="10" y="10" width="10" height="10"/>'), "a.svg"),
        (dxf(draw_touching_squares), "a.dxf"),
    ],
)
def test_outlines_that_touch_at_a_point_give_a_valid_solid(data: bytes, name: str) -> None:
    inspection = inspect(data, name)
    assert (inspection.model.watertight, inspection.model.bodies) == (True, 2)
    assert "touching_outlines" in codes(inspection)
    assert inspection.model.volume_mm3 == pytest.approx(600, rel=2e-3)


@pytest.mark.parametrize(("overlaps", "area_mm2"), [("holes", 1200), ("union", 1600)])
def test_shapes_inside_shapes_are_holes_or_merge(overlaps: str, area_mm2: float) -> None:
    body = '<rect width="40" height="40"/><rect x="10" y="10" width="20" height="20" fill="white"/>'
    inspection = inspect(svg(body), "a.svg", svg_overlaps=overlaps)
    assert inspection.model.volume_mm3 == pytest.approx(3 * area_mm2)
    assert ("shapes_merged" in codes(inspection)) == (overlaps == "union")


@pytest.mark.parametrize(("strokes", "area_mm2"), [("area", 78), ("outlines", 10 * 10)])
def test_lines_are_walls_or_outlines(strokes: str, area_mm2: float) -> None:
    body = '<g fill="none" stroke="red" stroke-width="2"><path d="M10 10 H20 V20"/><path d="M20 20 H10 V10"/></g>'
    inspection = inspect(svg(body), "a.svg", svg_strokes=strokes)
    assert inspection.model.volume_mm3 == pytest.approx(3 * area_mm2)
    assert ("strokes_extruded" in codes(inspection)) == (strokes == "area")


LINE = '<path fill="none" stroke="red" stroke-width="4" d="M10 10 H30" {}/>'
ANGLE = '<path fill="none" stroke="red" stroke-width="4" d="M10 10 H30 V30" {}/>'


@pytest.mark.parametrize(
    ("body", "area_mm2"),
    [
        (LINE.format(""), 80),
        (LINE.format('stroke-linecap="square"'), 96),
        (LINE.format('stroke-linecap="round"'), 80 + 4 * DISC),
        (LINE.format('stroke-dasharray="3 2"'), 48),
        (LINE.format('stroke-dasharray="3"  stroke-dashoffset="3"'), 36),
        (LINE.format('transform="scale(1 2)"'), 160),
        (LINE.format('transform="scale(1 2)" vector-effect="non-scaling-stroke"'), 20 * 4 * 25.4 / 96),
        (LINE.format('stroke-opacity="0"') + "<rect width='3' height='3'/>", 9),
        (ANGLE.format(""), 160),
        (ANGLE.format('stroke-linejoin="bevel"'), 160 - 2),
        (ANGLE.format('stroke-linejoin="round"'), 160 - 4 + DISC),
        (ANGLE.format('stroke-miterlimit="1"'), 160 - 2),
        ('<circle cx="20" cy="20" r="10" fill="none" stroke="red" stroke-width="2"/>', 40 * DISC),
        ('<path d="M20 20h0" stroke="red" stroke-width="8" stroke-linecap="round"/>', 16 * DISC),
        ('<line x1="1mm" y1="9mm" x2="11mm" y2="9mm" style="stroke:red;stroke-width:1mm"/>', 10),
    ],
)
def test_strokes(body: str, area_mm2: float) -> None:
    attributes = ('width="100mm" height="50mm"',) if "mm" in body else ()
    model = inspect(svg(body, *attributes), "a.svg", svg_height_mm=2, svg_tolerance_mm=0.0005).model
    assert model.volume_mm3 == pytest.approx(2 * area_mm2, rel=4e-4)
    assert model.watertight


SQUARE = '<rect id="s" width="10" height="10"/>'
LINK = '<marker id="m" markerWidth="2" markerHeight="2" refX="1" refY="1"><rect width="9" height="9"/></marker>'


@pytest.mark.parametrize(
    ("body", "area_mm2"),
    [
        *((f"<{tag} id='x'>{SQUARE}</{tag}><rect width='3' height='3'/>", 9)
          for tag in ("mask", "pattern", "marker", "clipPath", "symbol", "defs", "linearGradient", "unknown")),
        ('<g display="none"><rect width="9" height="9"/></g><rect width="5" height="5"/>', 25),
        ('<g opacity="0"><rect width="9" height="9"/></g><rect width="5" height="5"/>', 25),
        ('<g visibility="hidden"><rect width="9" height="9"/><rect visibility="visible" width="5" height="5"/>'
         '</g>', 25),
        ('<style>.a{fill:none} #s{fill:red} g > .b{fill:none}</style><g><rect class="b" width="40" height="40"/></g>'
         '<rect class="a" width="30" height="30"/><rect id="s" class="a" width="5" height="5"/>', 25),
        ('<style>rect{fill:none}</style><rect width="5" height="5" fill="red" style="fill:blue"/>', 25),
        ('<style>rect{fill:none!important}</style><rect width="9" height="9" style="fill:red"/>'
         '<path d="M0 0h5v5H0"/>', 25),
        ('<g style="--a:none"><rect width="9" height="9" fill="var(--a, red)"/></g>'
         '<rect width="5" height="5" fill="var(--a,red)"/>', 25),
        ('<g fill="none"><rect width="9" height="9"/><rect width="5" height="5" fill="#123"/></g>', 25),
        ('<rect width="9" height="9" fill="#12340000"/><rect width="5" height="5" fill="rgb(0 0 0/50%)"/>', 25),
        ('<linearGradient id="g"><stop stop-color="red"/></linearGradient>'
         '<rect width="5" height="5" fill="url(#g)"/>', 25),
        ('<rect width="9" height="9" fill="url(#none)"/><rect width="5" height="5" fill="url(#none) red"/>', 25),
        ('<svg x="10" y="10" width="20" height="10" viewBox="0 0 10 10"><rect width="10" height="10"/></svg>', 100),
        ('<svg width="20" height="10" viewBox="0 0 10 10" preserveAspectRatio="none">'
         '<rect width="5" height="10"/></svg>', 100),
        ('<svg width="20" height="10" viewBox="0 0 10 10" preserveAspectRatio="xMinYMin slice">'
         '<rect width="9" height="9"/></svg>', 180),
        ('<svg width="5" height="5"><rect width="10" height="10"/></svg>', 25),
        ('<svg width="5" height="5" overflow="visible"><rect width="10" height="10"/></svg>', 100),
        ('<symbol id="y" viewBox="0 0 10 10"><rect width="10" height="10"/></symbol>'
         '<use href="#y" width="30" height="20"/>', 400),
        (f'<defs>{SQUARE}<use id="t" href="#s" x="20"/></defs><use xlink:href="#t" y="10"/><use href="#s"/>', 200),
        ('<switch><rect systemLanguage="xx" width="9" height="9"/><rect width="5" height="5"/>'
         '<rect width="7" height="7"/></switch>', 25),
        ('<rect width="10" height="10" style="transform:translate(20px,5px) scale(150%)"/>', 225),
        ('<rect x="20" y="20" width="10" height="10" transform="scale(2)" style="transform-origin:25px 25px"/>', 400),
        ('<rect x="20" y="20" width="10" height="10" style="transform:scale(2);'
         'transform-box:fill-box;transform-origin:center"/>', 400),
        ('<clipPath id="c"><circle cx="10" cy="10" r="5"/></clipPath>'
         '<rect width="40" height="40" clip-path="url(#c)"/>', 25 * DISC),
        ('<clipPath id="c" clipPathUnits="objectBoundingBox"><rect width=".5" height="1"/></clipPath>'
         '<g clip-path="url(#c)"><rect width="20" height="10"/></g>', 100),
        ('<mask id="m"><rect width="40" height="40" fill="white"/><rect width="5" height="5" fill="black"/></mask>'
         '<rect width="10" height="10" mask="url(#m)"/>', 75),
        (f'{LINK}<path fill="none" d="M10 10h20v20" style="marker:url(#m)" stroke="red" stroke-width="2"/>',
         80 + 48 - 16),
        ('<rect x="-10" width="20" height="10"/>', 100),
        ('<path d="M0 0h10v10h-10z M20 0 a 5 5 0 7 1 9 9 z"/>', 100),
        ('<path d="M10 10a5 5 0 1110 0 5 5 0 11-10 0z"/>', 25 * DISC),
        ('<path d="M0 0 m5 5 l10,0 0,10-10,0z m20 0h5v5h-5z"/>', 125),
        ('<rect width="20" height="20" rx="5"/>', 400 - 100 + 25 * DISC),
        ('<rect width="50%" height="20%"/>', 500),
        ('<rect width="1cm" height="5mm"/>', 50),
    ],
)  # fmt: skip
def test_the_solid_is_what_a_browser_paints(body: str, area_mm2: float) -> None:
    attributes = 'width="100mm" height="50mm" viewBox="0 0 100 50"'
    if 'cm"' in body:
        attributes = 'width="100mm" height="50mm"'
    model = inspect(svg(body, attributes), "a.svg", svg_height_mm=2, svg_tolerance_mm=0.0005).model
    assert model.volume_mm3 == pytest.approx(2 * area_mm2, rel=2e-4)
    assert model.watertight


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("<text>x</text>", "entities_left_out"),
        ('<image href="a.png" width="9" height="9"/>', "entities_left_out"),
        ('<use href="b.svg#a"/>', "entities_left_out"),
        ('<rect width="9" height="9" filter="url(#f)"/>', "effects_ignored"),
        ('<rect width="9" height="9" clip-path="circle(3px)"/>', "effects_ignored"),
        (
            '<pattern id="p" width="9" height="9"><path/></pattern><path fill="url(#p)" d="M0 0h9v9"/>',
            "effects_ignored",
        ),
        ('<rect x="-5" width="9" height="9"/>', "outside_page"),
        ('<path d="M1e12 0h9v9z"/>', "outside_page"),
    ],
)
def test_what_the_solid_lacks_is_noted(body: str, code: str) -> None:
    rest = '<rect x="20" width="9" height="9"/>'
    assert codes(inspect(svg(rest), "a.svg")) == set()
    assert code in codes(inspect(svg(rest + body), "a.svg"))


def test_a_symbol_on_a_page_without_bounds() -> None:
    body = '<symbol id="a"><rect width="96" height="48"/></symbol><use href="#a"/>'
    assert inspect(svg(body, ""), "a.svg").model.size_mm == pytest.approx((25.4, 12.7, 3))


def test_a_drawing_without_physical_size_is_noted() -> None:
    drawing = svg('<rect width="9" height="9"/>', 'width="90" height="90"')
    assert codes(inspect(drawing, "a.svg")) == {"unit_assumed"}
    assert codes(inspect(drawing, "a.svg", svg_dpi=72)) == set()


def test_the_fill_rule_of_merged_shapes() -> None:
    body = '<path d="M0 0h40v40h-40z M10 10h20v20h-20z" {}/>'
    areas = [
        inspect(svg(body.format(rule)), "a.svg", svg_overlaps="union").model.volume_mm3
        for rule in ("", 'fill-rule="evenodd"', 'style="fill-rule:evenodd"')
    ]
    assert areas == pytest.approx([4800, 3600, 3600])


def test_the_image_is_not_mirrored() -> None:
    """SVG's Y axis points down, the model's up: the notch is at the upper left of both."""
    scene = REGISTRY.read(Source.from_bytes(svg('<path d="M10 0 H20 V20 H0 V10 H10 Z"/>'), "a.svg"))
    vertices = scene.meshes[0].vertices
    assert {(round(x), round(y)) for x, y, _ in vertices} == {
        (10, 0),
        (20, 0),
        (20, -20),
        (0, -20),
        (0, -10),
        (10, -10),
    }


def test_content_that_is_not_an_outline_is_noted() -> None:
    assert "entities_left_out" in codes(inspect(dxf(draw_plate), "a.dxf"))
    text = inspect(svg('<text>hello</text><rect width="30" height="30"/>'), "a.svg")
    assert "entities_left_out" in codes(text)
    drawing = svg('<rect width="30" height="30"/><path fill="none" stroke="red" d="M0 40 L10 40"/>')
    opened = inspect(drawing, "a.svg", svg_strokes="outlines")
    assert "open_curves_left_out" in codes(opened)


def draw_hidden(space: Any, document: Any) -> None:
    document.layers.add("off").off()
    space.add_lwpolyline([(0, 0), (10, 0), (10, 10), (0, 10)], close=True)
    space.add_circle((30, 0), 5, dxfattribs={"layer": "OFF"})


def draw_only_hidden(space: Any, document: Any) -> None:
    document.layers.add("frozen").freeze()
    space.add_circle((30, 0), 5, dxfattribs={"layer": "frozen"})
    space.add_lwpolyline([(0, 0), (10, 0), (10, 10), (0, 10)], close=True, dxfattribs={"invisible": 1})


@pytest.mark.parametrize(
    ("draw", "area_mm2", "code"), [(draw_hidden, 100, "hidden_ignored"), (draw_only_hidden, 178.5, "hidden_read")]
)
def test_hidden_layers_are_left_out_unless_all_are(draw: Any, area_mm2: float, code: str) -> None:
    inspection = inspect(dxf(draw), "a.dxf", dxf_height_mm=1)
    assert inspection.model.volume_mm3 == pytest.approx(area_mm2, rel=2e-3)
    assert code in codes(inspection)


def draw_fine_outline(space: Any, document: Any) -> None:
    """A circle of lines that are shorter than the tolerance, and a square with gaps."""
    steps = [(math.cos(step * math.tau / 2000), math.sin(step * math.tau / 2000)) for step in range(2000)]
    for begin, end in zip(steps, steps[1:] + steps[:1], strict=True):
        space.add_line(begin, end)
    corners = [(5, 0), (15, 0), (15, 10), (5, 10)]
    for (x, y), end in zip(corners, corners[1:] + corners[:1], strict=True):
        space.add_line((x + 0.004, y), end)


def test_lines_shorter_than_the_tolerance_form_outlines() -> None:
    model = inspect(dxf(draw_fine_outline), "a.dxf", dxf_height_mm=1, dxf_tolerance_mm=0.01).model
    assert model.volume_mm3 == pytest.approx(100 + math.pi, rel=1e-3)


def test_binary_dxf_is_read(tmp_path: Path) -> None:
    document = ezdxf.new(units=4)
    draw_hidden(document.modelspace(), document)
    document.saveas(tmp_path / "a.dxf", fmt="bin")
    inspection = inspect((tmp_path / "a.dxf").read_bytes(), "a.dxf", dxf_height_mm=1)
    assert inspection.model.volume_mm3 == pytest.approx(100)


def draw_bomb(space: Any, document: Any) -> None:
    document.blocks.new("B0").add_circle((0, 0), 1)
    for level in range(1, 8):
        block = document.blocks.new(f"B{level}")
        for column in range(10):
            block.add_blockref(f"B{level - 1}", (column, 0))
    space.add_blockref("B7", (0, 0))


def draw_own_block(space: Any, document: Any) -> None:
    block = document.blocks.new("OWN")
    block.add_circle((0, 0), 1)
    block.add_blockref("OWN", (1, 1))
    space.add_blockref("OWN", (0, 0))


def draw_grid(space: Any, document: Any) -> None:
    document.blocks.new("DOT").add_circle((0, 0), 1)
    grid = {"row_count": 30_000, "column_count": 30_000, "row_spacing": 3, "column_spacing": 3}
    space.add_blockref("DOT", (0, 0), dxfattribs=grid)


SVG_BOMB = '<g id="a0"><rect width="1" height="1"/></g>' + "".join(
    f'<g id="a{level}">' + f'<use href="#a{level - 1}"/>' * 10 + "</g>" for level in range(1, 9)
)


@pytest.mark.parametrize(
    ("data", "name", "code", "message"),
    [
        (dxf(lambda space, _: space.add_line((0, 0), (9, 0))), "a.dxf", "empty_model", "form a closed outline"),
        (dxf(lambda space, _: space.add_text("x")), "a.dxf", "empty_model", "no outline, only 1 TEXT"),
        (dxf(lambda *_: None), "a.dxf", "empty_model", "no outline"),
        (dxf(rectangle(1e12, 1e12)), "a.dxf", "unreadable_file", "larger than 1 km"),
        (dxf(draw_bomb), "a.dxf", "model_too_complex", "over 100000 entities"),
        (dxf(draw_own_block), "a.dxf", "model_too_complex", "contains itself"),
        (dxf(draw_grid), "a.dxf", "model_too_complex", "over 100000 entities"),
        (b"AutoCAD Binary DXF\r\n\x1a\0rubbish", "a.dxf", "unreadable_file", "not a readable DXF"),
        (b"  0\nSECTION\n", "a.dxf", None, "."),
        (svg('<path fill="none" d="M0 0 L10 0 L10 10"/>'), "a.svg", "empty_model", "without fill and stroke"),
        (svg('<rect x="-9" width="9" height="9"/>'), "a.svg", "empty_model", "outside of its page"),
        (svg("<text>x</text>"), "a.svg", "empty_model", "no outline, only 1 text"),
        (svg('<path d="M0 0 L10 0"/>'), "a.svg", "empty_model", "no area"),
        (svg("<g>"), "a.svg", "unreadable_file", "not well-formed"),
        (b"<html></html>", "a.svg", "unreadable_file", "not svg"),
        (svg('<g id="a"><use href="#a"/></g>'), "a.svg", "model_too_complex", "'use' of itself"),
        (svg(SVG_BOMB), "a.svg", "model_too_complex", "over 100000 elements"),
        (svg("<g>" * 5000 + "</g>" * 5000), "a.svg", "model_too_complex", "levels"),
        (svg('<path d="M0 0 L1e300 0 L0 1e300 z"/>'), "a.svg", "unreadable_file", "larger than 1 km"),
        (svg('<path d="M0 0 Lnan 0 z rubbish"/>'), "a.svg", None, "."),
    ],
)
def test_the_error_of_a_bad_drawing_says_why(data: bytes, name: str, code: str | None, message: str) -> None:
    with pytest.raises(MeshhubError, match=message) as caught:
        inspect(data, name, input_format=name[2:])
    assert caught.value.error_code in ((code,) if code else ("unreadable_file", "empty_model"))


def test_expanding_entities_end_in_an_error() -> None:
    entities = "".join(f'<!ENTITY a{level} "{f"&a{level - 1};" * 10}">' for level in range(1, 10))
    drawing = f'<!DOCTYPE svg [<!ENTITY a0 "ha">{entities}]>'.encode() + svg("<text>&a9;</text>")
    with pytest.raises(MeshhubError) as caught:
        inspect(drawing, "a.svg")
    assert caught.value.error_code == "unreadable_file"
