"""Areas that an SVG drawing paints: its elements with styles, transforms, viewports, clips, masks and markers."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import ClassVar, Literal, NamedTuple

import manifold3d
import numpy as np

from meshhub import ModelTooComplex, UnreadableFile
from meshhub_cad.profiles import MAX_COORDINATE_MM, MAX_POINTS, Points, cross_section, join_curves
from meshhub_cad.svg_paths import (
    Curves,
    Polyline,
    ellipse,
    flatten,
    parse_numbers,
    parse_path,
    polygon,
    rectangle,
    transform,
    transform_curves,
)
from meshhub_cad.svg_strokes import Pencil, stroke
from meshhub_cad.svg_styles import (
    Element,
    Style,
    StyleSheet,
    Units,
    affine,
    fit_box,
    is_transparent,
    parse_origin,
    parse_ratio,
    parse_transform,
    parse_view_box,
    reference_of,
    rotation,
    tag_of,
    translation,
)

MAX_ELEMENTS = 100_000
"""Maximum elements that are drawn; `use` and markers may repeat them exponentially."""

MAX_DEPTH = 200
"""Maximum levels of elements, because drawing recurses."""

MAX_CLIP_POINTS = 20_000_000
"""Maximum points of all clips that are applied; a clip costs its points for each of its shapes."""

MM_PER_INCH = 25.4

_LINK = "{http://www.w3.org/1999/xlink}href"

_SHAPES = frozenset({"path", "rect", "circle", "ellipse", "line", "polyline", "polygon"})
_WITH_MARKERS = frozenset({"path", "line", "polyline", "polygon"})
_LEFT_OUT = frozenset({"text", "image", "foreignObject"})

_WHITE = frozenset({"white", "#fff", "#ffffff", "rgb(255,255,255)", "rgb(100%,100%,100%)"})
_BLACK = frozenset({"black", "#000", "#000000", "rgb(0,0,0)", "rgb(0%,0%,0%)"})


class Layer(NamedTuple):
    """Area in millimeters, Y up, and its paint."""

    area: manifold3d.CrossSection
    paint: str


class Shape(NamedTuple):
    """Painted areas of an element, and the points of its geometry in millimeters, with or without paint."""

    layers: list[Layer]
    points: Points


class Place(NamedTuple):
    """Where and how an element is drawn.

    Attributes:
        matrix: (3, 3) from its parent's user space to millimeters.
        style: Style of its parent.
        units: Units of lengths.
        depth: Levels above it.
        is_clip: Whether it belongs to a clip path, whose geometry alone counts.
        paints: Fill and stroke of the shape of a marker.
    """

    matrix: Points
    style: Style
    units: Units
    depth: int
    is_clip: bool = False
    paints: tuple[str, str] = ("none", "none")


class Drawing:
    """Elements of an SVG document, drawn as areas.

    Attributes:
        left_out: Content without geometry, such as text, by kind.
        ignored: Effects that change the picture, but not the areas, by kind.
        open_curves: Curves without fill whose ends do not meet, if strokes are outlines.
        outline_count: Subpaths of shapes that have a stroke and no fill.
        unpainted_count: Shapes without fill and stroke.
        far_count: Shapes far from the page.
    """

    def __init__(self, root: Element, dpi: float, tolerance_mm: float, strokes: Literal["area", "outlines"]) -> None:
        self._root = root
        self._namespace = str(root.tag).rpartition("}")[0]
        self._sheet = StyleSheet(root)
        self._by_id: dict[str, Element] = {}
        for element in root.iter():
            self._by_id.setdefault(element.get("id", ""), element)
        self._parents = {child: parent for parent in root.iter() for child in parent}
        self._tolerance_mm = tolerance_mm
        self.strokes = strokes
        self._base = affine(MM_PER_INCH / dpi, 0, 0, -MM_PER_INCH / dpi)
        self._dpi = dpi
        self._element_count = self._point_count = self._clip_count = 0
        self._used: list[Element] = []
        self._clips: dict[tuple[Element, bytes], manifold3d.CrossSection] = {}
        self.left_out: Counter[str] = Counter()
        self.ignored: Counter[str] = Counter()
        self.open_curves: list[Points] = []
        self.outline_count = self.unpainted_count = self.far_count = 0
        self._page: manifold3d.CrossSection | None = None
        if self._sheet.unsupported_count:
            self.ignored["style rule"] = self._sheet.unsupported_count

    def draw(self) -> tuple[list[Shape], manifold3d.CrossSection | None]:
        """Return the shapes in the order of painting, and the page; None for a page without bounds.

        Raises:
            ModelTooComplex: The drawing has too many elements, levels, points or clips.
            UnreadableFile: A coordinate is not finite, or beyond MAX_COORDINATE_MM.
        """
        root = self._root
        box = parse_view_box(root)
        units = Units(self._dpi, 16.0, 0.0, 0.0)
        size = _page_size(root, box, units)
        if size is None:
            return [], None
        style = self._sheet.resolve(root, {})
        if style.get("display") == "none" or parse_ratio(style.get("opacity", "1")) <= 0:
            return [], None
        units = units._replace(width=size[0], height=size[1])
        matrix = self._base @ self._own_matrix(root, style, Place(self._base, {}, units, 0))
        place = Place(matrix, style, units, 0)
        has_page = min(size) > 0 and style.get("overflow") != "visible"
        page = self._page = _area(rectangle(0, 0, *size), matrix) if has_page else None
        shapes = self._draw_content(root, place, size if box is not None else None)
        return self._apply_effects(style, place, shapes), page

    def _visit(self, element: Element, place: Place) -> list[Shape]:
        """Return the shapes of an element that may be drawn where it is."""
        namespace, _, tag = str(element.tag).rpartition("}")
        draw = self._DRAW.get(tag)
        if namespace != self._namespace or draw is None or not _meets_conditions(element):
            return []
        self._element_count += 1
        if self._element_count > MAX_ELEMENTS:
            raise ModelTooComplex(f"the SVG drawing expands to over {MAX_ELEMENTS} elements; simplify it")
        if place.depth > MAX_DEPTH:
            raise ModelTooComplex(f"the SVG drawing has over {MAX_DEPTH} levels; simplify it")
        style = self._sheet.resolve(element, place.style)
        if style.get("display") == "none" or (parse_ratio(style.get("opacity", "1")) <= 0 and not place.is_clip):
            return []
        if place.is_clip and tag not in _SHAPES and tag not in ("use", "text"):
            return []
        place = place._replace(units=place.units.with_font(style), style=style, depth=place.depth + 1)
        place = place._replace(matrix=place.matrix @ self._own_matrix(element, style, place))
        return self._apply_effects(style, place, draw(self, element, place))

    def _own_matrix(self, element: Element, style: Style, place: Place) -> Points:
        """Return the transform of an element about its origin."""
        text = style.get("transform", "none")
        if text == "none":
            return np.eye(3)
        origin = style.get("transform-origin", "")
        units, corner = place.units, (0.0, 0.0)
        if style.get("transform-box") in ("fill-box", "content-box", "stroke-box"):
            shapes = self._DRAW[tag_of(element)](self, element, place)
            low, high = _bounds(shapes, place.matrix)
            corner = (float(low[0]), float(low[1]))
            units = units._replace(width=float(high[0] - low[0]), height=float(high[1] - low[1]))
        x, y = parse_origin(origin, units)
        x, y = x + corner[0], y + corner[1]
        return translation(x, y) @ parse_transform(text, units) @ translation(-x, -y)

    def _draw_children(self, element: Element, place: Place) -> list[Shape]:
        return [shape for child in element for shape in self._visit(child, place)]

    def _draw_switch(self, element: Element, place: Place) -> list[Shape]:
        """Draw the first child whose conditions are met (SVG 2 §5.7)."""
        for child in element:
            if str(child.tag).rpartition("}")[0] == self._namespace and _meets_conditions(child):
                return self._visit(child, place)
        return []

    def _draw_use(self, element: Element, place: Place) -> list[Shape]:
        link = element.get("href") or element.get(_LINK) or ""
        target = self._by_id.get(link.removeprefix("#"))
        if not link.startswith("#") or target is None:
            self.left_out["use of another file"] += bool(link) and not link.startswith("#")
            return []
        if target in self._used:
            raise ModelTooComplex(f"the SVG drawing has a 'use' of itself ({link[:40]}); remove it")
        x, y = (place.units.parse(place.style.get(axis, "0"), axis) or 0.0 for axis in "xy")
        style = {name: value for name, value in place.style.items() if name not in ("x", "y", "width", "height")}
        place = place._replace(matrix=place.matrix @ translation(x, y), style=style)
        self._used.append(target)
        try:
            if tag_of(target) not in ("symbol", "svg") or place.is_clip:
                return self._visit(target, place)
            own = self._sheet.resolve(target, style)
            if own.get("display") == "none":
                return []
            place = place._replace(style=own, depth=place.depth + 1)
            place = place._replace(matrix=place.matrix @ self._own_matrix(target, own, place))
            sizes = {name: element.get(name, own.get(name, "100%")) for name in ("width", "height")}
            shapes = self._draw_viewport(target, place, sizes)
            return self._apply_effects(own, place, shapes)
        finally:
            self._used.pop()

    def _draw_svg(self, element: Element, place: Place) -> list[Shape]:
        return self._draw_viewport(element, place, {})

    def _draw_viewport(self, element: Element, place: Place, sizes: dict[str, str]) -> list[Shape]:
        """Draw a nested svg or a symbol in its viewport."""
        style, units = place.style, place.units
        x, y = (units.parse(style.get(axis, "0"), axis) or 0.0 for axis in "xy")
        texts = [sizes.get(name, style.get(name, "100%")) for name in ("width", "height")]
        lengths = [units.parse(text, axis) for text, axis in zip(texts, "xy", strict=True)]
        width, height = (
            full if length is None else length
            for length, full in zip(lengths, (units.width, units.height), strict=True)
        )
        place = place._replace(matrix=place.matrix @ translation(x, y))
        if min(units.width, units.height) == 0 and texts == ["100%", "100%"]:
            # the page has no bounds
            box = parse_view_box(element)
            return self._draw_content(element, place, None if box is None else (box[2], box[3]))
        if width <= 0 or height <= 0:
            return []
        shapes = self._draw_content(element, place, (width, height))
        if style.get("overflow") in ("visible", "auto"):
            return shapes
        return self._clip(shapes, _area(rectangle(0, 0, width, height), place.matrix))

    def _draw_content(self, element: Element, place: Place, size: tuple[float, float] | None) -> list[Shape]:
        """Draw the children of an element in the view box that fills its viewport at the origin."""
        box = parse_view_box(element)
        if box is not None and size is not None:
            fit = fit_box(box, size, element.get("preserveAspectRatio", ""))
            size = (box[2], box[3])
            place = place._replace(matrix=place.matrix @ fit)
        if size is not None:
            place = place._replace(units=place.units._replace(width=size[0], height=size[1]))
        return self._draw_children(element, place)

    def _leave_out(self, element: Element, place: Place) -> list[Shape]:
        tag = tag_of(element)
        if tag != "text" or "".join(element.itertext()).strip():
            self.left_out[tag] += place.style.get("visibility", "visible") == "visible"
        return []

    def _draw_shape(self, element: Element, place: Place) -> list[Shape]:
        style, tag = place.style, tag_of(element)
        curves = _read_geometry(element, tag, style, place.units)
        with np.errstate(all="ignore"):
            scale = float(np.abs(place.matrix[:2, :2]).sum())
        if not len(curves.control) or abs(np.linalg.det(place.matrix[:2, :2])) == 0 or not math.isfinite(scale):
            return []
        lines = flatten(curves, self._tolerance_mm / scale)
        outlines = [transform(line.points, place.matrix) for line in lines]
        points = np.concatenate(outlines)
        if self._is_far(points):
            self.far_count += 1
            return []
        self._count_points(outlines)
        if style.get("visibility", "visible") != "visible":
            return [Shape([], points)]
        if place.is_clip:
            return [Shape([Layer(_fill(outlines, style.get("clip-rule")), "black")], points)]
        layers = []
        fill, line_paint = self._paint("fill", place), self._paint("stroke", place)
        if fill is not None:
            layers.append(Layer(_fill(outlines, style.get("fill-rule")), fill))
        width = place.units.parse(style.get("stroke-width", "1"))
        width = 1.0 if width is None else width
        if line_paint is not None and width > 0:
            layers += self._draw_stroke(curves, lines, outlines, place, (line_paint, width, fill is not None))
        if tag in _WITH_MARKERS:
            layers += self._draw_markers(curves, place, (fill or "none", line_paint or "none"), width)
        self.unpainted_count += not layers
        return [Shape(layers, points)]

    def _draw_stroke(
        self,
        curves: Curves,
        lines: list[Polyline],
        outlines: list[Points],
        place: Place,
        paint: tuple[str, float, bool],
    ) -> list[Layer]:
        """Return the area of a stroke, or what its outlines enclose.

        Args:
            curves, lines, outlines: The path in user space, its edges there, and its edges in millimeters.
            place: Where it is.
            paint: Its paint, its width, and whether the shape is filled as well.
        """
        color, width, is_filled = paint
        style = place.style
        self.outline_count += 0 if is_filled else len(lines)
        if self.strokes == "outlines":
            if is_filled:
                return []
            own = join_curves(outlines, self._tolerance_mm)
            self.open_curves += [
                curve for curve in outlines if own.open_count and np.hypot(*(curve[0] - curve[-1])) > self._tolerance_mm
            ]
            return [Layer(_fill(own.closed, style.get("fill-rule")), color)] if own.closed else []
        matrix = place.matrix
        if style.get("vector-effect") == "non-scaling-stroke":
            matrix = self._base
            curves = transform_curves(curves, np.linalg.inv(matrix) @ place.matrix)
            lines = flatten(curves, self._tolerance_mm / abs(matrix[0, 0]))
        pencil = _read_pencil(style, width, place.units)
        tolerance = self._tolerance_mm / float(np.abs(matrix[:2, :2]).sum())
        edges = [transform(outline, matrix) for outline in stroke(lines, pencil, tolerance)]
        self._count_points(edges)
        return [Layer(cross_section(edges, manifold3d.FillRule.NonZero), color)] if edges else []

    def _draw_markers(self, curves: Curves, place: Place, paints: tuple[str, str], width: float) -> list[Layer]:
        """Return the areas of the markers at the vertices of a path (SVG 2 §13.7)."""
        names = ("marker-start", "marker-mid", "marker-end")
        links = [reference_of(place.style.get(name, "none")) for name in names]
        markers = [self._by_id.get(link or " ") for link in links]
        if not any(marker is not None and tag_of(marker) == "marker" for marker in markers):
            return []
        vertices = _list_vertices(curves)
        layers: list[Layer] = []
        for number, (x, y, degrees) in enumerate(vertices):
            kinds = [0] * (number == 0) + [1] * (0 < number < len(vertices) - 1) + [2] * (number == len(vertices) - 1)
            for kind in kinds:
                marker = markers[kind]
                if marker is not None and tag_of(marker) == "marker":
                    orient = marker.get("orient", "0")
                    turn = degrees + 180 * (orient == "auto-start-reverse" and kind == 0)
                    turn = turn if orient.startswith("auto") else sum(parse_numbers(orient)[:1])
                    spot = place._replace(matrix=place.matrix @ translation(x, y) @ rotation(turn), paints=paints)
                    shapes = self._draw_marker(marker, spot, width)
                    layers += [layer for shape in shapes for layer in shape.layers]
        return layers

    def _draw_marker(self, marker: Element, place: Place, width: float) -> list[Shape]:
        if place.depth > MAX_DEPTH:
            raise ModelTooComplex(f"the SVG drawing has over {MAX_DEPTH} levels; simplify it")
        units = place.units
        size = tuple(
            units.parse(marker.get(name, "3"), axis) or 0.0
            for name, axis in (("markerWidth", "x"), ("markerHeight", "y"))
        )
        if min(size) <= 0:
            return []
        factor = 1.0 if marker.get("markerUnits") == "userSpaceOnUse" else width
        box = parse_view_box(marker)
        fit = np.eye(3) if box is None else fit_box(box, (size[0], size[1]), marker.get("preserveAspectRatio", ""))
        words = {"left": 0.0, "top": 0.0, "center": 0.5, "right": 1.0, "bottom": 1.0}
        x0, y0, full_width, full_height = box or [0.0, 0.0, *size]
        reference = [
            low + words[text] * full if text in words else units.parse(text) or 0.0
            for text, low, full in (
                (marker.get("refX", "0"), x0, full_width),
                (marker.get("refY", "0"), y0, full_height),
            )
        ]
        at = transform(np.array(reference), fit)
        matrix = place.matrix @ affine(factor, 0, 0, factor) @ translation(-at[0], -at[1])
        style = self._style_of(marker)
        place = place._replace(matrix=matrix, style=style, depth=place.depth + 2)
        shapes = self._draw_content(marker, place, (size[0], size[1]))
        if style.get("overflow") in ("visible", "auto"):
            return shapes
        return self._clip(shapes, _area(rectangle(0, 0, size[0], size[1]), matrix))

    def _style_of(self, element: Element) -> Style:
        """Return the style of an element where it stands in the document."""
        chain = [element]
        while (parent := self._parents.get(chain[-1])) is not None:
            chain.append(parent)
        style: Style = {}
        for each in reversed(chain):
            style = self._sheet.resolve(each, style)
        return style

    def _paint(self, name: str, place: Place) -> str | None:
        """Return the paint of "fill" or "stroke"; None if nothing is painted."""
        style = place.style
        value = style.get(name, "black" if name == "fill" else "none")
        if parse_ratio(style.get(f"{name}-opacity", "1")) <= 0:
            return None
        if value in ("context-fill", "context-stroke"):
            value = place.paints[value == "context-stroke"]
        link = reference_of(value)
        if link is not None:
            server = self._by_id.get(link)
            if server is not None and (tag_of(server).endswith("Gradient") or tag_of(server) == "pattern"):
                return value if self._has_paint(server) else None
            value = value.partition(")")[2].strip() or "none"
        if value.lower() == "currentcolor":
            value = style.get("color", "black")
        return None if is_transparent(value) else value.lower()

    def _has_paint(self, server: Element) -> bool:
        """Return whether a gradient has a visible stop, or a pattern content."""
        chain: list[Element] = []
        element: Element | None = server
        # the first one with content counts
        while element is not None and element not in chain:
            chain.append(element)
            if tag_of(element) == "pattern" and len(element):
                self.ignored["pattern"] += 1
                sizes = [
                    next((each.get(name, "") for each in chain if name in each.attrib), "")
                    for name in ("width", "height")
                ]
                return all(any(number > 0 for number in parse_numbers(size)) for size in sizes)
            stops = [self._style_of(child) for child in element if tag_of(child) == "stop"]
            if stops:
                shown = [
                    parse_ratio(stop.get("stop-opacity", "1")) > 0
                    and not is_transparent(stop.get("stop-color", "black"))
                    for stop in stops
                ]
                self.ignored["transparent end of a gradient"] += any(shown) and not all(shown)
                return any(shown)
            element = self._by_id.get((element.get("href") or element.get(_LINK) or " ").removeprefix("#"))
        return False

    def _apply_effects(self, style: Style, place: Place, shapes: list[Shape]) -> list[Shape]:
        """Clip and mask the shapes of an element."""
        for name in ("clip-path", "mask", "filter"):
            value = style.get(name, "none")
            if value == "none" or not shapes:
                continue
            target = self._by_id.get(reference_of(value) or " ")
            if name == "clip-path" and target is not None and tag_of(target) == "clipPath":
                shapes = self._clip(shapes, self._clip_area(target, place, shapes))
            elif name == "mask" and target is not None and tag_of(target) == "mask":
                shapes = self._clip(shapes, self._mask_area(target, place, shapes))
            elif reference_of(value) is None or name == "filter":
                self.ignored[name] += 1
        return shapes

    def _clip(self, shapes: list[Shape], area: manifold3d.CrossSection) -> list[Shape]:
        """Intersect shapes with an area. Raises ModelTooComplex."""
        box = area.bounds()
        size = (box[2] - box[0], box[3] - box[1])
        is_box = area.num_vert() == 4 and math.isclose(area.area(), size[0] * size[1], rel_tol=1e-9)
        clipped = []
        for shape in shapes:
            layers = []
            for layer in shape.layers:
                low_x, low_y, high_x, high_y = layer.area.bounds()
                if is_box and low_x >= box[0] and low_y >= box[1] and high_x <= box[2] and high_y <= box[3]:
                    layers.append(layer)
                    continue
                self._clip_count += area.num_vert()
                if self._clip_count > MAX_CLIP_POINTS:
                    raise ModelTooComplex("the clips of the SVG drawing have too many points; apply them before")
                layers.append(layer._replace(area=layer.area ^ area))
            clipped.append(shape._replace(layers=[layer for layer in layers if not layer.area.is_empty()]))
        return clipped

    def _clip_area(self, element: Element, place: Place, shapes: list[Shape]) -> manifold3d.CrossSection:
        """Return the area of a clip path (CSS Masking §7)."""
        is_relative = element.get("clipPathUnits") == "objectBoundingBox"
        key = (element, place.matrix.tobytes())
        if key in self._clips and not is_relative:
            return self._clips[key]
        style = self._style_of(element)
        inner = place._replace(style=style, is_clip=True, depth=place.depth + 1)
        matrix = place.matrix @ self._own_matrix(element, style, inner)
        if is_relative:
            matrix = matrix @ _box_matrix(shapes, place.matrix)
        content = self._draw_children(element, inner._replace(matrix=matrix))
        if reference_of(style.get("clip-path", "none")) is not None:
            if inner.depth > MAX_DEPTH:
                raise ModelTooComplex(f"the SVG drawing has over {MAX_DEPTH} levels; simplify it")
            content = self._apply_effects({"clip-path": style["clip-path"]}, inner, content)
        area = unite(layer.area for shape in content for layer in shape.layers)
        self._clips[key] = area
        return area

    def _mask_area(self, element: Element, place: Place, shapes: list[Shape]) -> manifold3d.CrossSection:
        """Return the area of a mask: where it is not black, or where it paints (CSS Masking §8)."""
        style = self._style_of(element)
        box = _box_matrix(shapes, place.matrix)
        matrix = place.matrix @ (box if element.get("maskContentUnits") == "objectBoundingBox" else np.eye(3))
        content = self._draw_children(element, place._replace(matrix=matrix, style=style, depth=place.depth + 1))
        is_user = element.get("maskUnits") == "userSpaceOnUse"
        units = place.units if is_user else place.units._replace(width=1.0, height=1.0)
        names = (("x", "-10%", "x"), ("y", "-10%", "y"), ("width", "120%", "x"), ("height", "120%", "y"))
        frame = [units.parse(element.get(name, default), axis) or 0.0 for name, default, axis in names]
        area = manifold3d.CrossSection()
        for paint, run in _list_runs([layer for shape in content for layer in shape.layers]):
            is_black = paint in _BLACK and style.get("mask-type") != "alpha"
            self.ignored["mask in shades"] += paint not in _BLACK and paint not in _WHITE
            area = area - unite(run) if is_black else area + unite(run)
        frame_matrix = place.matrix if is_user else place.matrix @ box
        return area ^ _area(rectangle(frame[0], frame[1], frame[2], frame[3]), frame_matrix)

    def _is_far(self, points: Points) -> bool:
        """Return whether points beyond MAX_COORDINATE_MM are all on one side of the page, where nothing shows."""
        if self._page is None or not np.isfinite(points).all() or np.abs(points).max() < MAX_COORDINATE_MM:
            return False
        low_x, low_y, high_x, high_y = self._page.bounds()
        low, high = points.min(axis=0), points.max(axis=0)
        return bool(low[0] > high_x or low[1] > high_y or high[0] < low_x or high[1] < low_y)

    def _count_points(self, outlines: list[Points]) -> None:
        """Check the number and position of points."""
        self._point_count += sum(map(len, outlines))
        if self._point_count > MAX_POINTS:
            raise ModelTooComplex(f"the SVG drawing has over {MAX_POINTS} points; set a larger tolerance")
        for outline in outlines:
            # written so that NaN is rejected, too
            if not np.abs(outline).max() < MAX_COORDINATE_MM:
                raise UnreadableFile("the SVG drawing is larger than 1 km, or damaged; check its unit")

    _DRAW: ClassVar[dict[str, Callable[[Drawing, Element, Place], list[Shape]]]] = {
        "g": _draw_children,
        "a": _draw_children,
        "switch": _draw_switch,
        "use": _draw_use,
        "svg": _draw_svg,
        **dict.fromkeys(_LEFT_OUT, _leave_out),
        **dict.fromkeys(_SHAPES, _draw_shape),
    }


def _page_size(root: Element, box: list[float] | None, units: Units) -> tuple[float, float] | None:
    """Return width and height of the page in pixels, 0 for an unknown one; None if it has no area."""
    texts = [root.get(name, "") for name in ("width", "height")]
    # a percentage is one of a window
    width, height = (None if "%" in text else units.parse(text) for text in texts)
    if any(side is not None and side <= 0 for side in (width, height)):
        return None
    if box is None:
        return width or 0.0, height or 0.0
    if width is None:
        width = box[2] if height is None else height * box[2] / box[3]
    return width, width * box[3] / box[2] if height is None else height


def unite(areas: Iterable[manifold3d.CrossSection]) -> manifold3d.CrossSection:
    """Return the union of areas."""
    return manifold3d.CrossSection.batch_boolean(list(areas), manifold3d.OpType.Add)


def _list_runs(layers: list[Layer]) -> list[tuple[str, list[manifold3d.CrossSection]]]:
    """Return the areas of neighboring layers with the same paint."""
    runs: list[tuple[str, list[manifold3d.CrossSection]]] = []
    for layer in layers:
        paint = layer.paint.replace(" ", "")
        if not runs or runs[-1][0] != paint:
            runs.append((paint, []))
        runs[-1][1].append(layer.area)
    return runs


def _fill(outlines: list[Points], rule: str | None) -> manifold3d.CrossSection:
    return cross_section(outlines, manifold3d.FillRule.EvenOdd if rule == "evenodd" else manifold3d.FillRule.NonZero)


def _area(curves: Curves, matrix: Points) -> manifold3d.CrossSection:
    """Return the area of a shape of straight edges."""
    return _fill([transform(line.points, matrix) for line in flatten(curves, 1.0)], None)


def _bounds(shapes: list[Shape], matrix: Points) -> tuple[Points, Points]:
    """Return the corners of the box of shapes in user space."""
    if not shapes:
        return np.zeros(2), np.zeros(2)
    points = transform(
        np.concatenate([shape.points for shape in shapes]), np.asarray(np.linalg.inv(matrix), np.float64)
    )
    return points.min(axis=0), points.max(axis=0)


def _box_matrix(shapes: list[Shape], matrix: Points) -> Points:
    """Return the matrix from the unit square to the box of shapes in user space."""
    low, high = _bounds(shapes, matrix)
    return translation(low[0], low[1]) @ affine(high[0] - low[0], 0, 0, high[1] - low[1])


def _meets_conditions(element: Element) -> bool:
    """Return whether an element is for this program and English (SVG 2 §5.8)."""
    languages = element.get("systemLanguage")
    if element.get("requiredExtensions") is not None:
        return False
    return languages is None or any(each.strip().lower().startswith("en") for each in languages.split(","))


def _read_geometry(element: Element, tag: str, style: Style, units: Units) -> Curves:
    """Return the curves of a shape in user space."""

    def length(name: str, axis: str) -> float:
        return units.parse(style.get(name, element.get(name, "0")), axis) or 0.0

    if tag == "path":
        match = re.fullmatch(r"""path\(\s*["'](.*)["']\s*\)""", style.get("d", ""), re.DOTALL)
        return parse_path(match[1] if match else element.get("d", ""))
    if tag == "line":
        return polygon([length("x1", "x"), length("y1", "y"), length("x2", "x"), length("y2", "y")], False)
    if tag in ("polyline", "polygon"):
        return polygon(parse_numbers(element.get("points", "")), tag == "polygon")
    if tag == "rect":
        return _read_rectangle(style, units, length)
    radii = (length("r", "d"),) * 2 if tag == "circle" else _read_radii(style, units)
    if min(radii) <= 0:
        return polygon([], False)
    return ellipse(length("cx", "x"), length("cy", "y"), radii)


def _read_radii(style: Style, units: Units) -> tuple[float, float]:
    """Return the radii of an ellipse or of corners; one that is missing is the other."""
    rx, ry = units.parse(style.get("rx", "auto"), "x"), units.parse(style.get("ry", "auto"), "y")
    rx, ry = (None if each is None or each < 0 else each for each in (rx, ry))
    return (rx if rx is not None else ry or 0.0), (ry if ry is not None else rx or 0.0)


def _read_rectangle(style: Style, units: Units, length: Callable[[str, str], float]) -> Curves:
    width, height = length("width", "x"), length("height", "y")
    if not (width > 0 and height > 0):
        return polygon([], False)
    rx, ry = _read_radii(style, units)
    return rectangle(length("x", "x"), length("y", "y"), width, height, (min(rx, width / 2), min(ry, height / 2)))


def _read_pencil(style: Style, width: float, units: Units) -> Pencil:
    text = style.get("stroke-dasharray", "none")
    dashes = [units.parse(each) for each in re.split(r"[\s,]+", text.strip())] if text != "none" else []
    lengths = [each for each in dashes if each is not None]
    if len(lengths) != len(dashes) or min(lengths, default=0.0) < 0 or not sum(lengths) > 0:
        lengths = []
    return Pencil(
        width,
        style.get("stroke-linecap", "butt"),
        style.get("stroke-linejoin", "miter"),
        sum(parse_numbers(style.get("stroke-miterlimit", "4"))[:1]),
        tuple(lengths * (1 + len(lengths) % 2)),
        units.parse(style.get("stroke-dashoffset", "0")) or 0.0,
    )


def _list_vertices(curves: Curves) -> list[tuple[float, float, float]]:
    """Return the position and the direction in degrees of each vertex of a path."""
    p0, p1, p2, p3 = curves.control.transpose(1, 0, 2)

    def first_nonzero(*vectors: Points) -> Points:
        result = vectors[-1]
        for vector in vectors[-2::-1]:
            result = np.where((vector != 0).any(axis=1, keepdims=True), vector, result)
        length = np.hypot(result[:, 0], result[:, 1])[:, None]
        return np.asarray(result / np.where(length == 0, 1, length))

    leave, arrive = first_nonzero(p1 - p0, p2 - p0, p3 - p0), first_nonzero(p3 - p2, p3 - p1, p3 - p0)
    vertices: list[tuple[float, float, float]] = []
    bounds = [*curves.starts.tolist(), len(p0)]
    for start, end, is_closed in zip(bounds[:-1], bounds[1:], curves.closed.tolist(), strict=True):
        kept = [start, *(number + 1 for number in range(start, end) if curves.ends[number])]
        for number in kept:
            before = arrive[number - 1] if number > start else arrive[end - 1] * is_closed
            after = leave[number] if number < end else leave[start] * is_closed
            x, y = p0[number] if number < end else p3[number - 1]
            direction = before + after
            vertices.append((float(x), float(y), math.degrees(math.atan2(direction[1], direction[0]))))
    return vertices
