"""Make walls that are too thin thicker: add a layer to both of their sides; give sheets a thickness."""

from __future__ import annotations

import manifold3d
import numpy as np

from meshhub.builtin_plugins.thicken import ThickenOptions
from meshhub.builtin_plugins.thicken.sheets import thicken_sheet
from meshhub.builtin_plugins.thicken.walls import MEASURED_RATIO, fill_strips, make_layers, measure_walls
from meshhub.errors import format_number
from meshhub.model.notes import did, note
from meshhub.model.progress import advance
from meshhub.model.scene import Float64, Int32, Mesh, Part, Scene
from meshhub.toolkit.combining import note_overlaps
from meshhub.toolkit.geometry import area, face_normals, signed_volume
from meshhub.toolkit.reshaping import name_of, reshaped, solid_surface, to_manifold, unite_overlaps, united
from meshhub.toolkit.sheets import is_sheet
from meshhub.toolkit.validity import find_damage

TARGET_TRIANGLES = 60_000
"""Triangles that take some seconds; the surface is divided into about as many, or into edges as long as the wall."""

TOLERANCE_RATIO = 0.03
"""Shortfall of a wall, per thickness, that counts as thick enough."""

MIN_SHELL_RATIO = 0.1
"""Side of the cube, per thickness, as large as the smallest gap or crumb of layers that stays."""

MAX_THIN_RATIO = 0.02
"""Share of the thin surface that may stay thin without a note: places at the ends of walls."""


def run(scene: Scene, options: ThickenOptions) -> Scene:
    """Make all walls at least `thicken_mm` thick, and sheets exactly as thick.

    Args:
        scene: Millimeters, Z up.
        options: `thicken_mm` None leaves the scene unchanged.
    Returns:
        Scene with layers on thin walls, which look like the nearest place of their mesh. Vertices of other places
        stay. Instances stay shared.
    Raises:
        ConversionFailed: A part is neither a closed solid nor a sheet.
        ModelTooComplex: A sheet that bends more than its thickness allows is too large.
    """
    if options.thicken_mm is None:
        return scene
    thickening = _Thickening(options.thicken_mm)
    result = reshaped(scene, thickening.change)
    if thickening.thin_area == 0:
        note(
            "walls_thick_enough",
            f"no wall is thinner than {format_number(options.thicken_mm, 3)} mm",
            size=options.thicken_mm,
        )
    did(thin_area_mm2=thickening.thin_area, thinnest_mm=thickening.thinnest, volume_added_mm3=thickening.added)
    return result


class _Thickening:
    """Figures of all meshes, with each instance."""

    def __init__(self, target: float) -> None:
        self.target = self.thinnest = target
        self.thin_area = self.added = 0.0

    def change(self, mesh: Mesh, parts: list[Part]) -> Mesh:
        """Return the mesh with thicker walls; itself if none is thin."""
        if is_sheet(mesh):
            return self._thicken_sheet(mesh, parts)
        original, mesh = mesh, unite_overlaps(mesh, parts)
        solid = to_manifold(mesh, parts)
        points, faces, thickness = self._measure(_to_solid(*solid_surface(mesh, parts)))
        layers = make_layers(points, faces, fill_strips(points, faces, thickness, self.target), self.target)
        if not layers:
            return original
        if mesh is not original:
            note_overlaps(name_of(mesh, parts))
        advance(0.5)
        result = united(mesh, solid, layers, (MIN_SHELL_RATIO * self.target) ** 3)
        if not find_damage(result).is_clean:
            result = mesh
        thin_area = self._measure_thin_area(points, faces, thickness)
        self.thin_area += thin_area * len(parts)
        self.thinnest = min(self.thinnest, float(thickness.min()))
        body = solid if result is mesh else _to_solid(*solid_surface(result, parts))
        remaining = thin_area if result is mesh else self._measure_thin_area(*self._measure(body))
        if remaining > MAX_THIN_RATIO * thin_area:
            note(
                "walls_stay_thin",
                f"{format_number(remaining, 3)} mm² of {name_of(mesh, parts)} stay thinner than "
                f"{format_number(self.target, 3)} mm; inspect it, or use {{offset_mm}}",
                options=("offset_mm",),
                area=float(remaining),
                name=name_of(mesh, parts),
                size=self.target,
            )
        self.added += (body.volume() - solid.volume()) * len(parts)
        return result

    def _thicken_sheet(self, mesh: Mesh, parts: list[Part]) -> Mesh:
        result = thicken_sheet(mesh, self.target)
        note(
            "sheet_thickened",
            f"{name_of(mesh, parts)} had no volume; now it is {format_number(self.target, 3)} mm thick",
            name=name_of(mesh, parts),
            size=self.target,
        )
        self.thinnest = 0.0
        self.thin_area += area(mesh.vertices, mesh.faces) * len(parts)
        self.added += signed_volume(result.vertices, result.faces) * len(parts)
        return result

    def _measure(self, solid: manifold3d.Manifold) -> tuple[Float64, Int32, Float64]:
        """Return the surface of a solid, divided into triangles that are not much longer than walls, and its walls."""
        length = max(self.target, float(np.sqrt(solid.surface_area() / TARGET_TRIANGLES * 4 / np.sqrt(3))))
        fine = solid.refine_to_length(length).to_mesh64()
        points, faces = np.asarray(fine.vert_properties)[:, :3], np.asarray(fine.tri_verts).astype(np.int32)
        return points, faces, measure_walls(solid, points, faces, MEASURED_RATIO * self.target)

    def _measure_thin_area(self, points: Float64, faces: Int32, thickness: Float64) -> float:
        thin = faces[thickness < (1 - TOLERANCE_RATIO) * self.target]
        return float(np.linalg.norm(face_normals(points, thin), axis=1).sum()) / 2


def _to_solid(points: Float64, faces: Int32) -> manifold3d.Manifold:
    return manifold3d.Manifold(manifold3d.Mesh64(points, faces.astype(np.uint64)))
