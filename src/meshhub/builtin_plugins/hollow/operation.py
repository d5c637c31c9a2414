"""Make solid bodies hollow: add a cavity at the distance of the wall to each."""

from __future__ import annotations

import numpy as np

from meshhub.builtin_plugins.hollow import HollowOptions
from meshhub.errors import format_number
from meshhub.model.notes import did, note
from meshhub.model.scene import Float64, Int32, Mesh, Part, Scene
from meshhub.toolkit.distances import SurfaceDistance
from meshhub.toolkit.geometry import signed_volume
from meshhub.toolkit.offsets import offset_surface
from meshhub.toolkit.reshaping import name_of, reshaped, solid_surface, with_faces
from meshhub.toolkit.topology import shells

MIN_CAVITY_RATIO = 0.5
"""Volume of a cavity per cubed wall; a ball as wide as the wall has this volume, and saves too little for its faces."""


def run(scene: Scene, options: HollowOptions) -> Scene:
    """Add cavities to all closed bodies, `hollow_wall_mm` below their surface.

    Args:
        scene: Millimeters, Z up.
        options: `hollow_wall_mm` is the thickness of the wall; None leaves the scene unchanged.
    Returns:
        Scene with the same outside; cavities come after the faces of their meshes, with the appearance of the nearest
        outside. Instances stay shared.
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
        points, faces = solid_surface(mesh, parts)
        self.volume += signed_volume(points, faces) * len(parts)
        vertices, triangles, count = _find_cavities(points, faces, self.wall)
        solid = _count_solid_bodies(points, faces, vertices, self.wall)
        if solid:
            name = name_of(mesh, parts)
            self.solid[name] = self.solid.get(name, 0) + solid * len(parts)
        if count == 0:
            return mesh
        self.cavities += count * len(parts)
        self.saved += signed_volume(vertices, triangles) * len(parts)
        return with_faces(mesh, vertices, triangles[:, ::-1])

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


def _find_cavities(points: Float64, faces: Int32, wall: float) -> tuple[Float64, Int32, int]:
    """Return vertices and outward faces of the spaces inside the walls, without tiny ones, and their number."""
    vertices, triangles = offset_surface(points, faces, -wall, "hollow_wall_mm")
    if len(triangles) == 0:
        return vertices, triangles, 0
    count, shell = shells(triangles)
    origin = vertices[triangles[0, 0]]
    a, b, c = (vertices[triangles[:, corner]] - origin for corner in range(3))
    volume = np.bincount(shell, np.einsum("ij,ij->i", a, np.cross(b, c)) / 6, count)
    large = np.abs(volume) >= MIN_CAVITY_RATIO * wall**3
    used, corners = np.unique(triangles[large[shell]], return_inverse=True)
    return vertices[used], corners.reshape(-1, 3).astype(np.int32), int((large & (volume > 0)).sum())


def _count_solid_bodies(points: Float64, faces: Int32, cavity: Float64, wall: float) -> int:
    """Count the outward shells without vertices of cavities below them."""
    count, shell = shells(faces)
    a, b, c = (points[faces[:, corner]] - points[0] for corner in range(3))
    is_body = np.bincount(shell, np.einsum("ij,ij->i", a, np.cross(b, c)), count) > 0
    if len(cavity):
        is_body[shell[SurfaceDistance(points, faces, wall).nearest(cavity)[1]]] = False
    return int(is_body.sum())
