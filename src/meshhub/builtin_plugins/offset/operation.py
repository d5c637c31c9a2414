"""Grow or shrink all parts: move their faces along their normals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from meshhub.builtin_plugins.offset import OffsetOptions
from meshhub.builtin_plugins.offset.changes import Change, find_changes
from meshhub.errors import InvalidOption, format_number
from meshhub.model.notes import did, note
from meshhub.model.scene import Float64, Int32, Mesh, Part, Scene
from meshhub.toolkit.combining import note_overlaps
from meshhub.toolkit.distances import SurfaceDistance
from meshhub.toolkit.face_offsets import move_faces
from meshhub.toolkit.geometry import signed_volume
from meshhub.toolkit.reshaping import name_of, reshaped, solid_surface, unite_overlaps


def run(scene: Scene, options: OffsetOptions) -> Scene:
    """Move all surfaces by `offset_mm` along their normals.

    Args:
        scene: Millimeters, Z up.
        options: `offset_mm` is positive to grow and negative to shrink; None and 0 leave the scene unchanged.
    Returns:
        Scene with new triangles, which have the vertex colors and materials of the nearest surface, without textures.
        Instances stay shared.
    Raises:
        ConversionFailed: A part is not a closed solid, or no reliable surface was found.
        InvalidOption: A part would vanish.
        ModelTooComplex: The surface collides with itself in too many places.
    """
    distance = options.offset_mm
    if not distance:
        return scene
    volumes = np.zeros(2)

    def change(mesh: Mesh, parts: list[Part]) -> Mesh:
        original, mesh = mesh, unite_overlaps(mesh, parts)
        if mesh is not original:
            note_overlaps(name_of(mesh, parts))
        points, faces = solid_surface(mesh, parts)
        vertices, triangles, uneven = move_faces(points, faces, distance, "offset_mm")
        if len(triangles) == 0:
            raise InvalidOption(
                f"option '{{offset_mm}}' {format_number(distance)} would leave nothing of {name_of(mesh, parts)}",
                options=("offset_mm",),
            )
        volumes[:] += len(parts) * np.array([signed_volume(points, faces), signed_volume(vertices, triangles)])
        for place in find_changes((points, faces), (vertices, triangles), distance):
            _report(place, mesh, parts, distance)
        if len(uneven):
            _report_uneven(uneven, mesh, parts)
        return _with_look(mesh, vertices, triangles, distance)

    result = reshaped(scene, change)
    did(volume_before_mm3=float(volumes[0]), volume_mm3=float(volumes[1]))
    materials = (
        replace(
            material,
            base_color_image=None,
            metallic_roughness_image=None,
            normal_image=None,
            occlusion_image=None,
            emissive_image=None,
        )
        for material in scene.materials
    )
    return replace(result, materials=tuple(materials), images=())


def _report(change: Change, mesh: Mesh, parts: list[Part], distance: float) -> None:
    """Add a note on a wall that is gone, or a gap that is closed, with its place in the scene."""
    x, y, z = _locate(change.place, parts)
    name, size = name_of(mesh, parts), format_number(change.width, 3)
    where = f"at {', '.join(map(format_number, (x, y, z)))} mm"
    if distance < 0:
        note(
            "wall_vanished",
            f"{where}, {name} was {size} mm thick; nothing is left there after {{offset_mm}}",
            options=("offset_mm",),
            x=x,
            y=y,
            z=z,
            name=name,
            size=change.width,
        )
    elif change.joins:
        note(
            "bodies_joined",
            f"{where}, two bodies of {name} were {size} mm apart; they are joined there after {{offset_mm}}",
            options=("offset_mm",),
            x=x,
            y=y,
            z=z,
            name=name,
            size=change.width,
        )
    else:
        note(
            "gap_closed",
            f"{where}, a hole or gap of {name} was {size} mm wide; it is closed there after {{offset_mm}}",
            options=("offset_mm",),
            x=x,
            y=y,
            z=z,
            name=name,
            size=change.width,
        )


def _report_uneven(uneven: Float64, mesh: Mesh, parts: list[Part]) -> None:
    """Add a note on places (k, 3) that are not at the distance."""
    x, y, z = _locate(uneven[0], parts)
    name = name_of(mesh, parts)
    note(
        "offset_uneven",
        f"at {', '.join(map(format_number, (x, y, z)))} mm, the surface of {name} moved by much less or more "
        "than {offset_mm}; inspect it, or use {repair} before",
        options=("offset_mm", "repair"),
        x=x,
        y=y,
        z=z,
        name=name,
        count=len(uneven),
    )


def _locate(place: Float64, parts: list[Part]) -> tuple[float, float, float]:
    """Return the coordinates in the scene of a place (3,) of a mesh, rounded for a message."""
    # the mesh has the size of its part, but not yet its rotation
    left, _, right = np.linalg.svd(parts[0].transform[:3, :3])
    x, y, z = (round(float(value), 2) + 0.0 for value in left @ right @ place + parts[0].transform[:3, 3])
    return x, y, z


def _with_look(mesh: Mesh, vertices: Float64, faces: Int32, distance: float) -> Mesh:
    """Return a new surface with the vertex colors and materials of the nearest faces of a mesh."""
    colors = material = None
    if mesh.colors is not None or mesh.face_material is not None:
        nearest = SurfaceDistance.limited(mesh.vertices, mesh.faces, abs(distance))
    if mesh.colors is not None:
        corners = mesh.faces[nearest.nearest(vertices)[1]]
        gaps = np.linalg.norm(mesh.vertices[corners] - vertices[:, None], axis=2)
        colors = mesh.colors[corners[np.arange(len(corners)), gaps.argmin(axis=1)]]
    if mesh.face_material is not None:
        material = mesh.face_material[nearest.nearest(vertices[faces].mean(axis=1))[1]]
    return Mesh(vertices, faces, colors=colors, face_material=material, name=mesh.name)
