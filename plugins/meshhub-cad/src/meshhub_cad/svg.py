"""SVG reader: the area that a drawing paints in physical size, extruded to a solid."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import manifold3d
import numpy as np

from meshhub import EmptyModel, ModelTooComplex, Scene, Source, UnreadableFile, note
from meshhub.errors import format_count
from meshhub_cad import SvgOptions
from meshhub_cad.profiles import Points, cross_section, extrude, join_curves
from meshhub_cad.svg_drawing import Drawing, Layer, Shape, unite
from meshhub_cad.svg_styles import is_physical

_OLD_DPI = {
    re.compile(rb"Adobe Illustrator|Adobe_Illustrator"): 72,
    # Inkscape changed to 96 with 0.92
    re.compile(rb"inkscape:version=\"0\.(?:[0-8]\d?|9|91)[^\d]"): 90,
}
"""Pixels per inch of programs that do not follow the standard, by what their files contain."""

_VISIBLE_RATIO = 1e-6
"""Share of the area from which a difference is reported; less is rounding."""


def read(source: Source, options: SvgOptions) -> Scene:
    """Read an SVG drawing and extrude what it paints.

    Returns:
        Scene in millimeters with the profile at Z = 0; Y up, as seen on the screen.
    Raises:
        UnreadableFile: The file is truncated, damaged or not SVG.
        EmptyModel: The drawing paints nothing.
        ModelTooComplex: The drawing has too many elements or points.
    """
    data = source.read()
    root = _parse(data)
    try:
        drawing = Drawing(root, options.svg_dpi, options.svg_tolerance_mm, options.svg_strokes)
        shapes, page = drawing.draw()
    except RecursionError:
        raise ModelTooComplex("the SVG drawing has too many levels; simplify it") from None
    if re.search(rb"<\?xml-stylesheet|@import", data):
        drawing.ignored["style sheet of another file"] += 1
    shapes = [shape for shape in shapes if shape.layers]
    shapes += _join_open_curves(drawing, options.svg_tolerance_mm)
    _note_content(drawing)
    if not shapes:
        raise _explain_empty(drawing)
    profile = _combine(shapes, options.svg_overlaps)
    if page is not None:
        profile = _cut_page(profile, page, drawing.far_count)
    _note_unit(root, data, options.svg_dpi)
    return extrude(profile, profile.num_contour(), options.svg_height_mm, "SVG")


def _parse(data: bytes) -> ElementTree.Element:
    """Return the root of a drawing. Raises EmptyModel and UnreadableFile."""
    if not data.strip():
        raise EmptyModel("the file is empty; export it again")
    try:
        root = ElementTree.fromstring(data)  # noqa: S314 - expat loads no entities and limits their expansion
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise UnreadableFile(f"the SVG file is not well-formed XML ({error}); export it again") from None
    if root.tag.rpartition("}")[2] != "svg":
        raise UnreadableFile("the file is XML, but its first element is not svg; check its format")
    return root


def _join_open_curves(drawing: Drawing, tolerance_mm: float) -> list[Shape]:
    """Return what open curves enclose together, and report those that enclose nothing."""
    joined = join_curves(drawing.open_curves, tolerance_mm)
    if joined.open_count:
        note(
            "open_curves_left_out",
            f"left out {format_count(joined.open_count, 'curve', 'curves')} without a closed outline; close the gaps",
        )
    if not joined.closed:
        return []
    area = cross_section(joined.closed, manifold3d.FillRule.EvenOdd)
    return [Shape([Layer(area, "")], np.concatenate(joined.closed))]


def _list_counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)


def _note_content(drawing: Drawing) -> None:
    """Report what the solid lacks, and strokes that may be meant as outlines."""
    if left_out := _list_counts(drawing.left_out):
        note("entities_left_out", f"only shapes are extruded; left out: {left_out}; convert text to paths"[:300])
    if ignored := _list_counts(drawing.ignored):
        note("effects_ignored", f"the solid differs from the picture, because it ignores: {ignored}"[:300])
    if drawing.outline_count and drawing.strokes == "area":
        count = format_count(drawing.outline_count, "line", "lines")
        note(
            "strokes_extruded",
            f"{count} without fill became walls of the line width; 'svg_strokes=outlines' fills closed lines instead",
        )


def _explain_empty(drawing: Drawing) -> EmptyModel:
    left_out = _list_counts(drawing.left_out)
    if drawing.open_curves:
        count = format_count(len(drawing.open_curves), "curve", "curves")
        return EmptyModel(
            f"none of the {count} of the SVG drawing form a closed outline; close the gaps, or set a larger tolerance"
        )
    if drawing.unpainted_count:
        count = format_count(drawing.unpainted_count, "shape", "shapes")
        return EmptyModel(f"the SVG drawing paints nothing: {count} without fill and stroke; fill closed outlines")
    return EmptyModel(
        "the SVG drawing has no outline" + (f", only {left_out}; convert text to paths" if left_out else "")
    )


def _combine(shapes: list[Shape], overlaps: str) -> manifold3d.CrossSection:
    """Return the profile of shapes that merge, or that cut each other in turn."""
    merged = unite(layer.area for shape in shapes for layer in shape.layers)
    if len(shapes) < 2 or (overlaps == "union" and len({layer.paint for s in shapes for layer in s.layers}) < 2):
        return merged
    areas = [unite(layer.area for layer in shape.layers) for shape in shapes]
    outlines: list[Points] = [outline for area in areas for outline in area.to_polygons()]
    cut = cross_section(outlines, manifold3d.FillRule.EvenOdd)
    if overlaps == "holes":
        return cut
    if merged.area() - cut.area() > _VISIBLE_RATIO * merged.area():
        note(
            "shapes_merged",
            "shapes of different colors (white is one) overlap and merge; 'svg_overlaps=holes' makes inner ones holes",
        )
    return merged


def _cut_page(
    profile: manifold3d.CrossSection, page: manifold3d.CrossSection, far_count: int
) -> manifold3d.CrossSection:
    """Return the part of a profile on the page, and report the rest. Raises EmptyModel."""
    inside = profile ^ page
    if not profile.is_empty() and inside.is_empty():
        raise EmptyModel("all shapes of the SVG drawing lie outside of its page; set its viewBox to the shapes")
    if far_count or profile.area() - inside.area() > _VISIBLE_RATIO * profile.area():
        note("outside_page", "left out what lies outside of the page of the SVG drawing; set its viewBox to the shapes")
    return inside


def _note_unit(root: ElementTree.Element, data: bytes, dpi: float) -> None:
    """Report the scale of a drawing whose size has no physical unit."""
    if is_physical(root.get("width", "")) or is_physical(root.get("height", "")) or dpi != 96:
        return
    hint = next((f"its program uses {value}" for pattern, value in _OLD_DPI.items() if pattern.search(data)), "")
    note(
        "unit_assumed",
        f"the SVG drawing has no physical size; 96 pixels per inch were assumed{', but ' + hint if hint else ''}; "
        "'svg_dpi' sets another number",
    )
