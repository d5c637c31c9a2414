"""Draw a scene, or a scene before and after operations: views, their arrangement, captions and legend."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.model.scene import Float64, Scene, UInt8
from meshhub.toolkit.geometry import face_normals, unit_vectors
from meshhub.toolkit.rendering.appearance import UNCOLORED, collect_appearance, part_color
from meshhub.toolkit.rendering.camera import (
    MARGIN_RATIO,
    Float32,
    Projection,
    project,
    turn,
    unproject,
    view_rotation,
)
from meshhub.toolkit.rendering.legend import MAX_LABEL_LENGTH, Entries, draw_legend, draw_scale, ink, shorten, write
from meshhub.toolkit.rendering.marks import DEPTH_TOLERANCE_SAMPLES, draw_numbers, draw_rings, find_hidden, find_marked
from meshhub.toolkit.rendering.options import RenderOptions, Size, View, parse_marks, parse_size, parse_views
from meshhub.toolkit.rendering.outlines import SurfaceFacts, find_lines
from meshhub.toolkit.rendering.shading import SampledFaces, shade
from meshhub.toolkit.rendering.triangles import PlacedTriangles, place_triangles, smooth_normals
from meshhub.toolkit.rendering.visibility import VisibleSamples, find_visible

if TYPE_CHECKING:
    from meshhub.toolkit.rendering.analysis import Analysis

SAMPLES_PER_SIDE = 2
"""Samples along each side of a pixel; their mean is the pixel."""

PIXELS_PER_SCALE = 360
"""Shorter side, in pixels, of a picture with letters of 7 pixels; larger pictures have larger letters."""

LINE_BRIGHTNESS = 0.28
"""Brightness of lines, as a share of the brightness of the surface."""

BACKGROUNDS = {"light": (247, 248, 250, 255), "dark": (34, 38, 44, 255), "transparent": (0, 0, 0, 0)}
"""Color behind the model."""

MEASURES = frozenset(("thickness", "overhang", "defects", "islands"))
"""Values of `color_by` that need measurements."""

MEASURED_LIGHT = 0.45
"""Share of the shading on measured colors, so that they stay those of the legend."""


MARK_DEPTH_MM = 0.5
"""Millimeters by which a numbered place may lie below the surface: checks report middles of regions."""


class _Style(NamedTuple):
    """Input that all views of a picture share.

    scene, triangles: the scene and its triangles
    normals:          (m, 3, 3) smooth normals of the corners; None for flat facets
    options:          of the picture
    analysis:         what it shows in place of colors
    """

    scene: Scene
    triangles: PlacedTriangles
    normals: Float32 | None
    options: RenderOptions
    analysis: Analysis | None


def render(scene: Scene, options: RenderOptions | None = None, before: Scene | None = None) -> UInt8:
    """Draw a scene.

    Orthographic views, all at one scale; light from the upper left. The same scene and options give the same pixels.
    Transparent materials are drawn opaque.

    Args:
        scene: Millimeters, Z up, front toward -Y.
        options: Default: an isometric view of 1280 × 960 pixels.
        before: The same scene before operations, in the same frame; each view shows both, with this one on the left at
            its own scale and with the palette of the result as the legend.
    Returns:
        (height, width, 4) sRGB pixels with alpha.
    Raises:
        InvalidOption: A view or the size is invalid.
        ValueError: A scene has no faces.
    """
    options = options or RenderOptions()
    size, views = parse_size(options.size), parse_views(options.view)
    styles = [_choose_style(each, options) for each in (before, scene) if each is not None]
    legend = _list_legend(styles[-1], is_compared=before is not None)
    analysis = styles[-1].analysis
    picture = np.empty((size.height, size.width, 4), np.uint8)
    picture[:] = BACKGROUNDS[options.background]
    scale = max(1, round(min(size) / PIXELS_PER_SCALE))
    height = size.height - draw_legend(picture, legend, scale, options.background)
    if analysis is not None and analysis.scale is not None:
        height -= draw_scale(picture[:height], analysis.scale, scale, options.background)
    columns, rows = _arrange(len(views), len(styles), Size(size.width, height))
    tile = Size(size.width // columns, height // rows)
    boxes = [[_measure(style.triangles, view) for view in views] for style in styles]
    factors = [min(_fit(box, tile) for box in row) for row in boxes]
    for number in range(len(views) * len(styles)):
        place, which = divmod(number, len(styles))
        top, left = number // columns * tile.height, number % columns * tile.width
        area = picture[top : top + tile.height, left : left + tile.width]
        middle = boxes[which][place].mean(axis=0)
        area[:] = _draw_view(styles[which], views[place], middle, factors[which], tile, scale)
        words = [("before", "after")[which]] if before is not None else []
        words += [views[place]] if len(views) > 1 else []
        write(area, ", ".join(words), 4 * scale, 4 * scale, scale, options.background)
    return picture


def _choose_style(scene: Scene, options: RenderOptions) -> _Style:
    triangles = place_triangles(scene)
    if len(triangles.faces) == 0:
        raise ValueError("a scene without faces cannot be drawn")
    analysis = None
    if options.color_by in MEASURES:
        # imported here, because other pictures need no scipy
        from meshhub.toolkit.rendering.analysis import analyze_scene

        analysis = analyze_scene(scene, options)
    return _Style(scene, triangles, smooth_normals(triangles), options, analysis)


def _arrange(count: int, together: int, size: Size) -> tuple[int, int]:
    """Return the columns and rows of equal tiles that leave the largest square for each view.

    Args:
        count: Views.
        together: Number of adjacent tiles for each view, which are kept together.
        size: Of the whole area.
    """
    layouts = [(columns * together, math.ceil(count / columns)) for columns in range(1, count + 1)]
    return max(layouts, key=lambda layout: min(size.width / layout[0], size.height / layout[1]))


def _measure(triangles: PlacedTriangles, view: View) -> Float64:
    """Return the (2, 2) least and greatest coordinates of the triangles to the right and up."""
    is_used = np.zeros(len(triangles.vertices), np.bool_)
    is_used[triangles.faces] = True
    points = triangles.vertices if is_used.all() else triangles.vertices[is_used]
    return np.array([(values.min(), values.max()) for values in turn(points, view_rotation(view))[:2]]).T


def _fit(box: Float64, size: Size) -> float:
    """Return the samples per unit at which a box fits into a tile."""
    margin = 2 * MARGIN_RATIO * min(size)
    extents = np.maximum(box[1] - box[0], 1e-9)
    return float(((np.array(size) - margin) * SAMPLES_PER_SIDE / extents).min())


def _draw_view(style: _Style, view: View, middle: Float64, factor: float, tile: Size, scale: int) -> UInt8:
    """Return the (height, width, 4) pixels of one view.

    Args:
        style: What to draw.
        view: Direction.
        middle: (2,) coordinates right and up of the middle of the picture.
        factor: Samples per unit of the scene.
        tile: Size of the view.
        scale: Scale of the letters.
    """
    triangles, options, analysis = style.triangles, style.options, style.analysis
    width, height = tile.width * SAMPLES_PER_SIDE, tile.height * SAMPLES_PER_SIDE
    projection = Projection(view_rotation(view), middle, factor, width, height)
    shapes = analysis.shapes if analysis is not None else ()
    marks = np.array(parse_marks(options.marks)).reshape(-1, 3)
    points = np.concatenate([triangles.vertices, *(shape.corners.reshape(-1, 3) for shape in shapes), marks])
    x, y, depth = project(points, projection)
    visible = find_visible(x, y, depth, triangles.faces, width, height)
    number = np.zeros(len(triangles.faces), np.int32)
    number[visible.face] = 1
    seen = np.flatnonzero(number)
    number[seen] = np.arange(len(seen), dtype=np.int32)
    face = number[visible.face]
    corners = triangles.faces[seen]
    normals = _rotate(unit_vectors(face_normals(triangles.vertices, corners)), projection)
    is_front = normals[:, 2] >= 0
    corner_normals = normals[:, None] if style.normals is None else _rotate(style.normals[seen], projection)
    faces = SampledFaces(x[corners], y[corners], corner_normals, is_front)
    appearance = collect_appearance(style.scene, triangles, seen, "none" if analysis else options.color_by)
    samples = np.full(height * width, _packed(BACKGROUNDS[options.background]), np.uint32)
    samples[visible.position] = shade(faces, appearance, face, visible.position, width)
    if analysis is not None and analysis.field is not None:
        near = float(turn(points, projection.rotation)[2].max())
        samples[visible.position] = _color_by_value(analysis, samples[visible.position], visible, projection, near)
    if options.edges != "none":
        part = np.searchsorted(triangles.first_face, seen, side="right").astype(np.int32)
        toward = np.where(is_front[:, None], normals, -normals)
        line, outline = find_lines(visible, face, SurfaceFacts(toward, part), (height, width), options.edges)
        samples[line] = _darkened(samples[line])
        samples[outline] = _packed((*ink(options.background), 255))
    first = len(triangles.vertices)
    for shape in shapes:
        rows = slice(first, first + shape.corners.size // 3)
        positions = [values[rows].reshape(shape.corners.shape[:2]) for values in (x, y, depth)]
        marked = find_marked(positions, visible, (height, width), 2 * SAMPLES_PER_SIDE * scale)
        samples[marked] = _packed((*shape.color, 255))
        first = rows.stop
    pixels = _reduce(samples.reshape(height, width))
    for shape in shapes:
        if len(shape.centers):
            column, row, _ = project(shape.centers, projection)
            centers = np.stack([column, row], axis=1).astype(np.float64) / SAMPLES_PER_SIDE
            draw_rings(pixels, centers, shape.sizes * factor / SAMPLES_PER_SIDE / 2, shape.color, scale)
    if len(marks):
        tolerance = DEPTH_TOLERANCE_SAMPLES + MARK_DEPTH_MM * factor
        centers = np.stack([x[first:], y[first:]], axis=1).astype(np.float64)
        is_hidden = find_hidden(centers, depth[first:] - tolerance, visible, (height, width))
        draw_numbers(pixels, centers / SAMPLES_PER_SIDE, is_hidden, scale)
    return pixels


def _color_by_value(
    analysis: Analysis, shaded: NDArray[np.uint32], visible: VisibleSamples, projection: Projection, near: float
) -> NDArray[np.uint32]:
    """Return the colors of visible samples by their values, with a part of the shading.

    Args:
        analysis: Values and their scale.
        shaded: (k,) samples of the model in one color.
        visible: The visible samples.
        projection: Camera.
        near: Coordinate toward the viewer at which the depth is 0.
    """
    assert analysis.field is not None and analysis.scale is not None
    row, column = np.divmod(visible.position, projection.width)
    pixel = (row // SAMPLES_PER_SIDE) * projection.width + column // SAMPLES_PER_SIDE
    # samples of a pixel are next to each other in the model, if they show one face
    key = pixel * (int(visible.face.max(initial=0)) + 1) + visible.face
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    points = unproject(visible.position[first], visible.depth[first], projection, near)
    colors = analysis.scale.colors(analysis.field(visible.face[first], points))[group.reshape(-1)]
    light = shaded.view(np.uint8).reshape(-1, 4)[:, :1] / np.float32(UNCOLORED[0])
    result = np.full((len(colors), 4), 255, np.uint8)
    result[:, :3] = np.minimum(colors * (1 - MEASURED_LIGHT * (1 - light)), 255)
    packed: NDArray[np.uint32] = result.view(np.uint32).ravel()
    return packed


def _rotate(vectors: NDArray[np.floating[Any]], projection: Projection) -> Float32:
    """Return vectors in the camera's frame."""
    return vectors.astype(np.float32) @ projection.rotation.T.astype(np.float32)


def _packed(color: tuple[int, ...]) -> np.uint32:
    """Return a color as one number, whose bytes are red, green, blue, alpha."""
    return np.uint32(int.from_bytes(bytes(color), sys.byteorder))


def _darkened(samples: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the colors of lines on surfaces."""
    colors = samples.view(np.uint8).reshape(-1, 4)
    darkness = np.array([LINE_BRIGHTNESS, LINE_BRIGHTNESS, LINE_BRIGHTNESS, 1], np.float32)
    return (colors * darkness).astype(np.uint8).view(np.uint32).ravel()


def _reduce(samples: NDArray[np.uint32]) -> UInt8:
    """Return the (height, width, 4) means of squares of packed samples; each number holds two sums of two channels."""
    count, lanes = SAMPLES_PER_SIDE, np.uint32(0x00FF00FF)
    squares = [samples[row::count, column::count] for row in range(count) for column in range(count)]
    even = sum((square & lanes for square in squares[1:]), squares[0] & lanes)
    odd = sum(((square >> np.uint32(8)) & lanes for square in squares[1:]), (squares[0] >> np.uint32(8)) & lanes)
    shift = np.uint32(2 * (count - 1))
    mean = ((even >> shift) & lanes) | (((odd >> shift) & lanes) << np.uint32(8))
    pixels = mean.view(np.uint8).reshape(*mean.shape, 4)
    partly = (pixels[..., 3] > 0) & (pixels[..., 3] < 255)
    if partly.any():
        # transparent samples are black, so only the others have a color
        pixels[partly, :3] = np.minimum(pixels[partly, :3] * 255.0 / pixels[partly, 3:], 255).astype(np.uint8)
    return pixels


def _measure_shares(style: _Style) -> Float64:
    """Return the share of the surface (n,) that each material of the scene covers."""
    rows = [np.empty(0, np.int32)]
    for part in style.scene.parts:
        mesh, own = style.scene.meshes[part.mesh], np.int32(-1 if part.material is None else part.material)
        present = np.full(len(mesh.faces), -1, np.int32) if mesh.face_material is None else mesh.face_material
        rows.append(np.where(present < 0, own, present))
    area = np.linalg.norm(face_normals(style.triangles.vertices, style.triangles.faces), axis=1)
    areas = np.bincount(np.concatenate(rows) + 1, area, minlength=len(style.scene.materials) + 1)[1:]
    result: Float64 = areas / max(float(area.sum()), np.finfo(np.float64).tiny)
    return result


def _list_legend(style: _Style, *, is_compared: bool) -> Entries:
    """Return the entries of the legend: label and color."""
    scene, color_by = style.scene, style.options.color_by
    if style.analysis is not None:
        return style.analysis.entries or []
    materials = [scene.materials[number] for number in scene.used_materials()]
    colors = [np.rint(np.array(material.base_color) * 255).astype(np.uint8) for material in materials]
    if color_by == "part":
        entries = [
            (part.name or scene.meshes[part.mesh].name or f"part {number + 1}", part_color(number))
            for number, part in enumerate(scene.parts)
        ]
    elif color_by == "surface":
        entries = [(material.name, color) for material, color in zip(materials, colors, strict=True)]
    elif color_by == "model" and is_compared and not scene.features() & {"colors", "textures"}:
        labels = ["#{:02X}{:02X}{:02X}".format(*color[:3]) for color in colors]
        shares = _measure_shares(style)[list(scene.used_materials())]
        return [
            (f"{material.name[:MAX_LABEL_LENGTH]} {label} {share:.0%}".strip(), color)
            for material, label, share, color in zip(materials, labels, shares, colors, strict=True)
        ]
    else:
        return []
    return shorten(entries)
