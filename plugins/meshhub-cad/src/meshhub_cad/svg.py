"""SVG reader: closed outlines in physical size, extruded to a solid.

svgelements applies transforms, view boxes, units, styles and `use`; curves are flattened here.
"""

from __future__ import annotations

import io
import itertools
import re
import warnings
import xml.etree.ElementTree as ElementTree
from collections import Counter
from typing import Any

import manifold3d
import numpy as np

from meshhub import EmptyModel, ModelTooComplex, Scene, Source, UnreadableFile
from meshhub_cad import SvgOptions
from meshhub_cad.profiles import (
    MAX_SEGMENTS,
    Outlines,
    Points,
    arc_segments,
    check_outlines,
    cross_section,
    extrude,
    join_curves,
)

MAX_ELEMENTS = 100_000
"""Maximum elements after the expansion of `use`, which may nest."""

MAX_DEPTH = 200
"""Maximum levels of nested elements, because svgelements and the expansion of `use` recurse."""

MM_PER_INCH = 25.4

_NAMESPACE = "{http://www.w3.org/2000/svg}"

_LENGTH = re.compile(r"\s*([+]?[\d.]+(?:[eE][+-]?\d+)?)\s*(mm|cm|in|pt|pc|Q)\s*", re.ASCII)
"""A physical length, parsed here: svgelements takes a millimeter for 0.0393701 inches, wrong by a millionth. """

_PER_INCH = {"mm": 25.4, "cm": 2.54, "in": 1.0, "pt": 72.0, "pc": 6.0, "Q": 101.6}

_LINK = "{http://www.w3.org/1999/xlink}href"


def read(source: Source, options: SvgOptions) -> Scene:
    """Read an SVG drawing and extrude its closed outlines.

    Returns:
        Scene in millimeters with the profile at Z = 0; Y up, as seen on the screen.
    Raises:
        UnreadableFile: The file is truncated, damaged or not SVG.
        EmptyModel: The drawing has no closed outline.
        ModelTooComplex: The drawing has too many elements or points.
    """
    data = _prepare(source.read(), options.svg_dpi)
    scale = MM_PER_INCH / options.svg_dpi
    tolerance = options.svg_tolerance_mm / scale
    left_out: Counter[str] = Counter()
    shapes: list[tuple[list[Points], manifold3d.FillRule]] = []
    open_curves: list[Points] = []
    for path, is_filled, fill_rule in _list_paths(data, options.svg_dpi, left_out):
        curves = _flatten_path(path, tolerance)
        # millimeters, and Y up
        curves = [curve * (scale, -scale) for curve in curves]
        own = join_curves([_close(curve) for curve in curves] if is_filled else curves, options.svg_tolerance_mm)
        shapes.append((own.closed, fill_rule))
        if own.open_count:
            open_curves += [curve for curve in curves if np.hypot(*(curve[0] - curve[-1])) > options.svg_tolerance_mm]
    joined = join_curves(open_curves, options.svg_tolerance_mm)
    shapes.append((joined.closed, manifold3d.FillRule.EvenOdd))
    outlines = Outlines([outline for closed, _ in shapes for outline in closed], joined.open_count)
    ignored = ", ".join(f"{count} {kind}" for kind, count in left_out.most_common())
    check_outlines(outlines, ignored, "SVG")
    if options.svg_overlaps == "holes":
        section = cross_section(outlines.closed, manifold3d.FillRule.EvenOdd)
    else:
        sections = [cross_section(closed, fill_rule) for closed, fill_rule in shapes if closed]
        section = manifold3d.CrossSection.batch_boolean(sections, manifold3d.OpType.Add)
    return extrude(section, len(outlines.closed), options.svg_height_mm, "SVG")


def _close(curve: Points) -> Points:
    """Return a curve that ends where it begins, because a fill closes open curves (SVG 2 §13.3)."""
    return np.concatenate([curve, curve[:1]])


def _prepare(data: bytes, dpi: float) -> bytes:
    """Return the drawing as svgelements reads it correctly: with exact lengths, and without templates as content.

    Raises:
        UnreadableFile: The file is not SVG.
        EmptyModel: The file is empty.
        ModelTooComplex: The drawing expands to too many elements, or has too many levels.
    """
    if not data.strip():
        raise EmptyModel("the file is empty; export it again")
    try:
        root = ElementTree.fromstring(data)  # noqa: S314 - expat loads no entities and limits their expansion
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise UnreadableFile(f"the SVG file is not well-formed XML ({error}); export it again") from None
    if root.tag.rpartition("}")[2] != "svg":
        raise UnreadableFile("the file is XML, but its first element is not svg; check its format")
    _check_size(root)
    for name in ("width", "height"):
        match = _LENGTH.fullmatch(root.get(name, ""))
        if match is not None:
            root.set(name, repr(float(match[1]) / _PER_INCH[match[2]] * dpi))
    for parent in list(root.iter()):
        # only `use` draws a symbol, wherever it is
        for symbol in [child for child in parent if child.tag == f"{_NAMESPACE}symbol"]:
            parent.remove(symbol)
            ElementTree.SubElement(root, f"{_NAMESPACE}defs").append(symbol)
    return ElementTree.tostring(root)


def _check_size(root: ElementTree.Element) -> None:
    """Check how many elements a drawing expands to, without expanding it. Raises ModelTooComplex."""
    by_id = {element.get("id", ""): element for element in root.iter()}
    sizes: dict[int, int] = {}

    def count(element: ElementTree.Element, depth: int) -> int:
        """Return the number of elements that an element expands to."""
        if depth > MAX_DEPTH:
            raise ModelTooComplex(f"the SVG drawing has over {MAX_DEPTH} levels, or a 'use' of itself; simplify it")
        if id(element) not in sizes:
            total = 1 + sum(count(child, depth + 1) for child in element)
            target = by_id.get((element.get("href") or element.get(_LINK) or "").removeprefix("#"))
            if element.tag.rpartition("}")[2] == "use" and target is not None:
                total += count(target, depth + 1)
            sizes[id(element)] = total
        return sizes[id(element)]

    if count(root, 0) > MAX_ELEMENTS:
        raise ModelTooComplex(f"the SVG drawing expands to over {MAX_ELEMENTS} elements; simplify it")


def _list_paths(data: bytes, dpi: float, left_out: Counter[str]) -> list[tuple[Any, bool, manifold3d.FillRule]]:
    """Return the visible paths in pixels, whether each is filled, and its fill rule."""
    import svgelements  # type: ignore[import-untyped]

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            drawing = svgelements.SVG.parse(io.BytesIO(data), reify=True, ppi=dpi)
            elements = list(drawing.elements())
            paths = []
            for element in elements:
                if isinstance(element, svgelements.Text | svgelements.Image):
                    left_out["text" if isinstance(element, svgelements.Text) else "image"] += 1
                elif isinstance(element, svgelements.Shape) and element.values.get("visibility") != "hidden":
                    is_filled = element.fill is not None and element.fill.value is not None
                    is_even_odd = element.values.get("fill-rule") == "evenodd"
                    rule = manifold3d.FillRule.EvenOdd if is_even_odd else manifold3d.FillRule.NonZero
                    paths.append((abs(svgelements.Path(element)), is_filled, rule))
    except MemoryError:
        raise
    except Exception as error:
        raise UnreadableFile(
            f"a shape of the SVG drawing is damaged ({type(error).__name__}); export it again"
        ) from error
    return paths


def _flatten_path(path: Any, tolerance: float) -> list[Points]:
    """Return the points (n, 2) of each subpath of a path."""
    import svgelements

    curves: list[Points] = []
    parts: list[Points] = []

    def end_subpath() -> None:
        if parts:
            curves.append(np.concatenate(parts))
        parts.clear()

    for segment in path:
        if isinstance(segment, svgelements.Move):
            end_subpath()
            parts.append(_points(segment.end))
        elif isinstance(segment, svgelements.QuadraticBezier):
            parts.append(_bezier(_points(segment.start, segment.control, segment.end), tolerance))
        elif isinstance(segment, svgelements.CubicBezier):
            parts.append(_bezier(_points(segment.start, segment.control1, segment.control2, segment.end), tolerance))
        elif isinstance(segment, svgelements.Arc):
            count = int(arc_segments(max(segment.rx, segment.ry), float(segment.sweep), tolerance))
            inner = np.asarray(segment.npoint(np.linspace(0, 1, count + 1)[1:-1]), np.float64).reshape(-1, 2)
            parts.append(np.concatenate([inner, _points(segment.end)]))
        elif segment.end is not None:
            parts.append(_points(segment.end))
            if isinstance(segment, svgelements.Close):
                end = segment.end
                end_subpath()
                parts.append(_points(end))
    end_subpath()
    return [curve for curve in curves if len(curve) > 1]


def _points(*points: Any) -> Points:
    return np.array([(point.x, point.y) for point in points], np.float64)


def _bezier(control: Points, tolerance: float) -> Points:
    """Return the points of a Bézier curve after its start.

    The number of edges bounds the second derivative (Wang, "Subdivision of parametric curves", 1984).
    """
    degree = len(control) - 1
    bend = np.linalg.norm(control[:-2] - 2 * control[1:-1] + control[2:], axis=1).max()
    with np.errstate(all="ignore"):
        count = np.ceil(np.sqrt(degree * (degree - 1) * bend / (8 * tolerance)))
    count = int(np.clip(np.nan_to_num(count, nan=1), 1, MAX_SEGMENTS))
    at = (np.arange(1, count + 1) / count)[:, None]
    level = [np.broadcast_to(point, (count, 2)) for point in control]
    while len(level) > 1:
        level = [(1 - at) * first + at * second for first, second in itertools.pairwise(level)]
    return level[0]
