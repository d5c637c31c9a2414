"""Put a flat plate under each part that stands at the bottom of the scene."""

from __future__ import annotations

from dataclasses import dataclass, replace

import manifold3d
import numpy as np

from meshhub.builtin_plugins.plinth import PlinthOptions
from meshhub.model.notes import did, note
from meshhub.model.scene import Float64, Mesh, Part, Scene
from meshhub.toolkit.combining import note_overlaps
from meshhub.toolkit.geometry import bounds, bounds_of_parts
from meshhub.toolkit.reshaping import name_of, reshaped_in_place, to_manifold, unite_overlaps, united
from meshhub.toolkit.topology import is_closed
from meshhub.toolkit.validity import find_damage, note_damage

FLAT_MM = 0.01
"""Millimeters; vertices within it of the lowest point touch a bed: more than float32 files round."""

MIN_FOOT_RATIO = 0.1
"""Least area of the hull of those faces per area of the hull of the lowest layer; else, a point or line touches."""

SINK_RATIO = 0.5
"""Depth, per thickness of the plate, to which a model that stands on points or lines sinks into it."""

CORNER_SEGMENTS = 64
"""Segments of a full circle at the corners of a plate with a margin."""


def run(scene: Scene, options: PlinthOptions) -> Scene:
    """Add a plate of the thickness `plinth_mm` below each part that reaches the lowest `plinth_mm` of the scene.

    Args:
        scene: Millimeters, Z up.
        options: `plinth_margin_mm` is how far the plates protrude; `plinth_mm` None leaves the scene unchanged.
    Returns:
        Scene with the plates, which look like the nearest place of their meshes. The model keeps its place, so that
        the plates are below it.
    Raises:
        ConversionFailed: A part that gets a plate is not a closed solid.
        ValueError: The scene has no faces.
    """
    if options.plinth_mm is None:
        return scene
    plates = _Plates(float(bounds(scene)[0, 2]), options.plinth_mm, options.plinth_margin_mm)
    result = reshaped_in_place(scene, plates.change)
    did(plates=plates.count, plate_area_mm2=plates.area)
    _note_overlaps(result, plates)
    return result


@dataclass
class _Plates:
    """Plates of all parts.

    bottom:    lowest height of the scene
    thickness: millimeters
    margin:    how far the plates protrude
    """

    bottom: float
    thickness: float
    margin: float
    count: int = 0
    area: float = 0.0

    def change(self, mesh: Mesh, parts: list[Part]) -> Mesh:
        """Return the mesh with its plate; itself if it does not stand at the bottom."""
        if mesh.vertices[mesh.faces, 2].min() > self.bottom + FLAT_MM:
            return mesh
        original, mesh = mesh, unite_overlaps(mesh, parts)
        if mesh is not original:
            note_overlaps(name_of(mesh, parts))
        solid = to_manifold(mesh, parts)
        layer = solid.trim_by_plane((0, 0, -1), -(self.bottom + self.thickness))
        points = np.asarray(layer.to_mesh64().vert_properties)[:, :2]
        outline = self._outline(points)
        self.count += len(parts)
        self.area += manifold3d.CrossSection.hull_points(outline).area() * len(parts)
        flat = _with_flat_foot(mesh, self.bottom)
        area = manifold3d.CrossSection.hull_points(points).area()
        if _foot_area(flat, self.bottom) >= MIN_FOOT_RATIO * area and is_closed(flat.vertices, flat.faces):
            result = united(flat, to_manifold(flat, parts), [self._make_plate(outline, self.bottom)])
            if find_damage(result).is_clean:
                return result
        # on a point or a line, also beside a flat foot, the contact has no area unless the model sinks into the plate
        result = united(mesh, solid, [self._make_plate(outline, self.bottom + SINK_RATIO * self.thickness)])
        note_damage(name_of(mesh, parts), find_damage(result))
        return result

    def _make_plate(self, outline: Float64, top: float) -> manifold3d.Manifold:
        corners = [np.column_stack([outline, np.full(len(outline), height)]) for height in (top - self.thickness, top)]
        return manifold3d.Manifold.hull_points(np.concatenate(corners))

    def _outline(self, points: Float64) -> Float64:
        """Return points (k, 2) whose convex hull is the outline of the plate below points (n, 2)."""
        if self.margin == 0:
            # cross-sections have rounded points, which would not be flush with the sides of the model
            return points
        hull = manifold3d.CrossSection.hull_points(points)
        wider = hull.offset(self.margin, manifold3d.JoinType.Round, circular_segments=CORNER_SEGMENTS)
        outline: Float64 = np.concatenate(wider.to_polygons())
        return outline


def _with_flat_foot(mesh: Mesh, bottom: float) -> Mesh:
    """Return a mesh whose vertices at the bottom are exactly in one plane, that of the plate."""
    vertices = mesh.vertices.copy()
    vertices[vertices[:, 2] <= bottom + FLAT_MM, 2] = bottom
    return replace(mesh, vertices=vertices)


def _foot_area(mesh: Mesh, bottom: float) -> float:
    """Return the area of the convex hull of the faces that touch a bed at the bottom; 0.0 without any."""
    faces = mesh.faces[(mesh.vertices[mesh.faces, 2] <= bottom).all(axis=1)]
    return manifold3d.CrossSection.hull_points(mesh.vertices[faces.ravel(), :2]).area() if len(faces) else 0.0


def _note_overlaps(result: Scene, plates: _Plates) -> None:
    """Say where plates of several parts may overlap: their boxes do, below the parts."""
    boxes = bounds_of_parts(result)
    boxes = boxes[boxes[:, 0, 2] < plates.bottom - FLAT_MM][:, :, :2]
    low, high = boxes[:, 0], boxes[:, 1]
    meets = (low[:, None] < high[None]).all(axis=2) & (low[None] < high[:, None]).all(axis=2)
    count = int((meets.sum(axis=1) > 1).sum())
    if count:
        note(
            "plates_may_overlap",
            f"the plates of {count} parts are close together and may overlap; use {{merge_parts}} for one plate",
            options=("merge_parts",),
            count=int(count),
        )
