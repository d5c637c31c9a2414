"""Make solid bodies hollow: add a cavity at the distance of the wall to each."""

from __future__ import annotations

import numpy as np

from meshhub.builtin_plugins.hollow import HollowOptions
from meshhub.errors import format_number
from meshhub.model.notes import did, note
from meshhub.model.scene import Float64, Int32, Mesh, Part, Scene
from meshhub.toolkit.combining import note_overlaps
from meshhub.toolkit.containment import TURN, hosts_of
from meshhub.toolkit.distances import SurfaceDistance
from meshhub.toolkit.face_offsets import move_all_faces
from meshhub.toolkit.geometry import chosen_faces, signed_volume, weld
from meshhub.toolkit.offsets import offset_surface
from meshhub.toolkit.reshaping import (
    name_of,
    reshaped,
    solid_surface,
    unite_overlaps,
    with_faces,
)
from meshhub.toolkit.topology import shells
from meshhub.toolkit.validity import check_mesh, find_damage, note_damage, without_empty_faces

MIN_CAVITY_RATIO = 0.5
"""Volume of a cavity per cubed wall; a ball as wide as the wall has this volume, and saves too little for its faces."""

WALL_RATIOS = (1.0, 1.003, 1.01)
"""Thicknesses, per wall, to try in this order until a file does not round two places of a cavity to one."""


def run(scene: Scene, options: HollowOptions) -> Scene:
    """Add cavities to all closed bodies, `hollow_wall_mm` below their surface.

    Args:
        scene: Millimeters, Z up.
        options: `hollow_wall_mm` is the thickness of the wall; None leaves the scene unchanged.
    Returns:
        Scene with the same outside, except that bodies of a mesh that overlap are united; cavities come after the faces
        of their meshes, with the appearance of the nearest outside. Cavities that a new one surrounds become part of
        it. Instances stay shared.
    Raises:
        ConversionFailed: A part is not a closed solid.
        ModelTooComplex: The surface is too large for the wall.
    """
    wall = options.hollow_wall_mm
    if wall is None:
        return scene
    result = _Hollowing(wall)
    hollow = reshaped(scene, result.change)
    result.report()
    return hollow


class _Hollowing:
    """Figures of the hollowed meshes, with each instance."""

    def __init__(self, wall: float) -> None:
        self.wall = wall
        self.volume = self.saved = 0.0
        self.cavities = 0
        self.solid: dict[str, int] = {}

    def change(self, mesh: Mesh, parts: list[Part]) -> Mesh:
        """Return the mesh with its cavities; the mesh itself if it is too thin."""
        original, name = mesh, name_of(mesh, parts)
        mesh = unite_overlaps(mesh, parts)
        points, faces = solid_surface(mesh, parts)
        volume = signed_volume(points, faces)
        self.volume += volume * len(parts)
        before = check_mesh(mesh)
        for ratio in WALL_RATIOS:
            vertices, triangles = _find_cavities(points, faces, ratio * self.wall)
            kept, vertices, triangles, removed = _remove_islands(mesh, vertices, triangles)
            result = without_empty_faces(with_faces(kept, vertices, triangles[:, ::-1]))
            count = shells(triangles)[0]
            damage = find_damage(result, before, before.shells - removed + count)
            if damage.is_clean:
                break
        solid_count = _count_solid_bodies(points, faces, vertices, self.wall)
        if solid_count:
            self.solid[name] = self.solid.get(name, 0) + solid_count * len(parts)
        if count == 0:
            return original
        if mesh is not original:
            note_overlaps(name)
        note_damage(name, damage)
        self.cavities += (count - removed) * len(parts)
        self.saved += (volume - signed_volume(result.vertices, result.faces)) * len(parts)
        return result

    def report(self) -> None:
        """Write the notes and figures."""
        for name, count in self.solid.items():
            bodies = "a body" if count == 1 else f"{count} bodies"
            note(
                "stays_solid",
                f"{bodies} of {name} stayed solid: a wall of {format_number(self.wall, 3)} mm leaves no room; "
                "lower {hollow_wall_mm}",
                options=("hollow_wall_mm",),
                count=count,
                name=name,
                size=self.wall,
            )
        did(
            cavities=self.cavities,
            saved_mm3=self.saved,
            saved_percent=100 * self.saved / self.volume if self.volume else 0.0,
        )


def _find_cavities(points: Float64, faces: Int32, wall: float) -> tuple[Float64, Int32]:
    """Return vertices and outward faces of the spaces inside the walls, without tiny ones."""
    # the grid takes 6 s for 2,150 faces of 60,000 mm², whose moved faces take 0.4 s
    vertices, triangles = move_all_faces(points, faces, -wall) or offset_surface(points, faces, -wall, "hollow_wall_mm")
    count, shell = shells(triangles)
    large = np.abs(_shell_volumes(vertices, triangles, shell, count)) >= MIN_CAVITY_RATIO * wall**3
    return _used_vertices(vertices, triangles[large[shell]])


def _remove_islands(mesh: Mesh, vertices: Float64, triangles: Int32) -> tuple[Mesh, Float64, Int32, int]:
    """Remove the walls around old cavities that would be loose inside of a new one.

    Args:
        mesh: The solid.
        vertices: (n, 3) vertices of the new cavities.
        triangles: (k, 3) outward faces of the new cavities.
    Returns:
        The mesh without old cavities inside of loose walls; vertices and outward faces of the new cavities without
        the loose walls; and the number of old cavities that were removed.
    """
    count, shell = shells(triangles)
    is_island = _shell_volumes(vertices, triangles, shell, count) < 0
    if not is_island.any():
        return mesh, vertices, triangles, 0
    index = weld(mesh.vertices)[1]
    old_count, old_shell = shells(index[mesh.faces])
    corners = np.concatenate([mesh.vertices[mesh.faces], vertices[triangles[:, ::-1]]])
    label = np.concatenate([old_shell, shell + np.int32(old_count)])
    total = old_count + count
    numbers = np.arange(corners.size // 3, dtype=np.int32).reshape(-1, 3)
    volume = _shell_volumes(corners.reshape(-1, 3), numbers, label, total)
    hosts = hosts_of(corners @ TURN, label, np.ones(total, np.bool_), volume)
    is_loose = hosts >= 0
    is_loose[is_loose] = np.append(np.zeros(old_count, np.bool_), is_island)[hosts[is_loose]]
    kept = chosen_faces(mesh, np.flatnonzero(~is_loose[:old_count][old_shell]))
    is_room = ~(is_island | is_loose[old_count:])
    return kept, *_used_vertices(vertices, triangles[is_room[shell]]), int(is_loose[:old_count].sum())


def _used_vertices(vertices: Float64, triangles: Int32) -> tuple[Float64, Int32]:
    used, corners = np.unique(triangles, return_inverse=True)
    return vertices[used], corners.reshape(-1, 3).astype(np.int32)


def _shell_volumes(points: Float64, faces: Int32, shell: Int32, count: int) -> Float64:
    """Return the signed volume of each shell (count,)."""
    a, b, c = (points[faces[:, corner]] - points[:1].sum(axis=0) for corner in range(3))
    volumes: Float64 = np.bincount(shell, np.einsum("ij,ij->i", a, np.cross(b, c)), count) / 6
    return volumes


def _count_solid_bodies(points: Float64, faces: Int32, cavity: Float64, wall: float) -> int:
    """Count the outward shells without vertices of cavities below them."""
    count, shell = shells(faces)
    is_body = _shell_volumes(points, faces, shell, count) > 0
    if len(cavity):
        is_body[shell[SurfaceDistance.limited(points, faces, wall).nearest(cavity)[1]]] = False
    return int(is_body.sum())
