"""Measures and defects that a picture shows in place of the colors of the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.spatial import cKDTree

from meshhub.model.report import DefectKind
from meshhub.model.scene import Float64, Int32, Scene, UInt8
from meshhub.toolkit.geometry import IntIndex, face_normals, unit_vectors
from meshhub.toolkit.hanging import Printable, find_hanging
from meshhub.toolkit.layers import slice_layers
from meshhub.toolkit.orientation import oriented, topology_of
from meshhub.toolkit.rendering.options import Measure, RenderOptions
from meshhub.toolkit.rendering.scales import NEUTRAL, Scale
from meshhub.toolkit.rendering.triangles import PlacedTriangles, place_triangles
from meshhub.toolkit.scene_defects import find_defects
from meshhub.toolkit.supports import find_overhangs
from meshhub.toolkit.thickness import OppositeSides, sample_evenly

WALL_LIMIT_MM = 0.8
"""Default limit of the thickness: two lines of a nozzle of 0.4 mm."""

OVERHANG_LIMIT_DEG = 35.0
"""Default limit of overhangs: printers build steeper ones without support."""

THICKNESS_RANGE_RATIO = 4.0
"""Greatest thickness of the scale, per limit; thicker walls are thick enough."""

SPACING_RATIO = 2.5
"""Distance between measured points, per distance that checks use; it may be larger, because a picture shows a mean, not
the thinnest spot."""

NEIGHBORS_COUNT = 4
"""Measured points whose mean a sample of the picture shows."""

LAYER_MM, CELL_MM = 0.2, 0.2
"""Layers and cells in which islands are found: those of a nozzle of 0.4 mm."""

PRINTABLE = Printable(angle_deg=OVERHANG_LIMIT_DEG, reach_mm=3.6, bridge_mm=30.0, line_mm=0.45)
"""What such a nozzle prints without support."""

MARK_COLORS: dict[DefectKind | str, tuple[int, int, int]] = {
    "open_edges": (213, 94, 0),
    "nonmanifold_edges": (0, 114, 178),
    "flipped_faces": (204, 121, 167),
    "stray_fragments": (230, 159, 0),
    "islands": (213, 94, 0),
}
"""Colors of marks, which color-blind people can distinguish (Okabe and Ito)."""

_DEFECT_WORDS: dict[DefectKind, str] = {
    "open_edges": "open edges",
    "nonmanifold_edges": "non-manifold edges",
    "flipped_faces": "flipped faces",
    "stray_fragments": "stray fragments",
}

Field: TypeAlias = Callable[[IntIndex, Float64], Float64]
"""Function from faces (q,) and positions (q, 3) on them to values (q,)."""

Entries: TypeAlias = list[tuple[str, UInt8]]
"""Entries of a legend: label and (4,) color."""


class Shapes(NamedTuple):
    """Edges, faces or places to mark.

    corners: (k, 2, 3) ends of edges or (k, 3, 3) corners of faces, in the frame of the scene
    centers: (q, 3) places to circle
    sizes:   (q,) their diameters
    color:   (3,)
    """

    corners: Float64
    centers: Float64
    sizes: Float64
    color: tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class Analysis:
    """Values or marks that a picture shows in place of the colors of a scene.

    scale:   scale of the values; None if there are only marks
    field:   values; None if there are only marks
    detail:  length within which the values hardly change; infinite if each face has one value
    entries: entries of the legend
    shapes:  marks
    """

    scale: Scale | None = None
    field: Field | None = None
    detail: float = np.inf
    entries: Entries | None = None
    shapes: tuple[Shapes, ...] = ()


def analyze_scene(scene: Scene, options: RenderOptions) -> Analysis | None:
    """Return the measure that the option `color_by` selects, or None if it selects another coloring.

    Args:
        scene: Millimeters, Z up.
        options: The measure and the limit.
    """
    if options.color_by in ("thickness", "overhang"):
        return measure_surface(scene, options.color_by, options.color_limit)
    if options.color_by == "defects":
        return _find_defects(scene)
    if options.color_by == "islands":
        return _find_islands(scene)
    return None


def measure_surface(scene: Scene, measure: Measure, limit: float | None) -> Analysis:
    """Return a measure of the surface of a scene, which has a scale and a field.

    Args:
        scene: Millimeters, Z up. Bodies that are inside out are measured as if they were not, as checks do.
        measure: Quantity to measure.
        limit: Limit that the scale marks; None: the default of the measure.
    """
    triangles = place_triangles(oriented(scene))
    if measure == "thickness":
        return _measure_thickness(triangles, limit or WALL_LIMIT_MM)
    return _measure_overhangs(triangles, limit or OVERHANG_LIMIT_DEG)


def _measure_thickness(triangles: PlacedTriangles, limit: float) -> Analysis:
    vertices, faces = triangles.vertices, triangles.faces
    top = THICKNESS_RANGE_RATIO * limit
    samples = sample_evenly(vertices, faces, SPACING_RATIO * limit)
    sides = OppositeSides(vertices, faces, samples)
    thickness = np.minimum(sides.measure(np.arange(len(samples.points)), top), top)
    # points on the other side of a thin wall can be nearer than those on this side, so each direction has its own tree
    direction = _find_directions(samples.normals)
    trees = {}
    for number in np.unique(direction).tolist():
        members = np.flatnonzero(direction == number)
        trees[number] = cKDTree(samples.points[members]), thickness[members]
    face_direction = _find_directions(unit_vectors(face_normals(vertices, faces)))

    def field(face: IntIndex, points: Float64) -> Float64:
        values = np.full(len(points), np.nan)
        own = face_direction[face]
        for number, (tree, known) in trees.items():
            chosen = np.flatnonzero(own == number)
            shape = len(chosen), min(NEIGHBORS_COUNT, len(known))
            distance, near = (found.reshape(shape) for found in tree.query(points[chosen], k=shape[1]))
            weight = 1 / np.maximum(distance, 1e-3 * limit)
            values[chosen] = (known[near] * weight).sum(axis=1) / weight.sum(axis=1)
        return values

    return Analysis(Scale("wall thickness", "mm", top, limit, is_open=True), field, samples.spacing)


def _find_directions(normals: Float64) -> Int32:
    """Return the axis to which each normal (k, 3) is nearest, and its sign, as one number."""
    axis = np.abs(normals).argmax(axis=1)
    is_negative = np.take_along_axis(normals, axis[:, None], axis=1)[:, 0] < 0
    result: Int32 = (2 * axis + is_negative).astype(np.int32)
    return result


def _measure_overhangs(triangles: PlacedTriangles, limit: float) -> Analysis:
    vertices, faces = triangles.vertices, triangles.faces
    normals = face_normals(vertices, faces)
    z = vertices[:, 2][faces]
    on_bed = z.max(axis=1) <= z.min() + LAYER_MM
    # vertical walls do not overhang, although rounding tilts some of their faces
    looks_down = find_overhangs(vertices, faces, normals, 90.0) & ~on_bed
    steepness = np.clip(-unit_vectors(normals)[:, 2], -1, 1)
    angle = np.where(looks_down, np.rad2deg(np.arccos(steepness)), np.nan)
    return Analysis(
        Scale("overhang, angle from the bed", "degrees", 90.0, limit, is_open=False),
        lambda face, _: angle[face],
        entries=[("no overhang", _opaque(NEUTRAL))],
    )


def _find_defects(scene: Scene) -> Analysis:
    entries: Entries = []
    shapes = []
    for defect in find_defects(scene, topology_of(scene)):
        found = defect.finding
        color = MARK_COLORS[found.kind]
        entries.append((f"{_DEFECT_WORDS[found.kind]}: {found.count:,}", _opaque(color)))
        centers = np.array([place.position_mm for place in found.places]).reshape(-1, 3)
        shapes.append(Shapes(defect.corners, centers, np.array([place.size_mm for place in found.places]), color))
    return Analysis(entries=entries or [("no defects", _opaque(NEUTRAL))], shapes=tuple(shapes))


def _find_islands(scene: Scene) -> Analysis:
    triangles = place_triangles(oriented(scene))
    layers = slice_layers(triangles.vertices, triangles.faces, CELL_MM, LAYER_MM)
    hanging = find_hanging(layers, PRINTABLE)
    islands = hanging.of("island")
    color = MARK_COLORS["islands"]
    sizes = 2 * np.sqrt(hanging.area[islands] / np.pi)
    count = len(islands)
    label = f"islands: {count:,} (layers begin in the air)" if count else "no islands"
    shapes = Shapes(np.empty((0, 2, 3)), hanging.center[islands], sizes, color)
    return Analysis(entries=[(label, _opaque(color if count else NEUTRAL))], shapes=(shapes,))


def _opaque(color: tuple[int, int, int] | UInt8) -> UInt8:
    return np.array([*color, 255], np.uint8)
