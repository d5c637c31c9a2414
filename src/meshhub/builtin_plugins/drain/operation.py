"""Drill holes straight up into the lowest places of all cavities."""

from __future__ import annotations

import manifold3d
import numpy as np

from meshhub.builtin_plugins.drain import DrainOptions
from meshhub.errors import format_count, format_number
from meshhub.model.notes import did, note
from meshhub.model.scene import Float64, Int32, Mesh, Part, Scene
from meshhub.toolkit.combining import note_overlaps
from meshhub.toolkit.containment import TURN, hosts_of
from meshhub.toolkit.geometry import IntIndex
from meshhub.toolkit.reshaping import (
    name_of,
    reshaped_in_place,
    solid_surface,
    subtracted,
    to_manifold,
    unite_overlaps,
)
from meshhub.toolkit.topology import shells
from meshhub.toolkit.validity import find_damage, note_damage

HOLE_SEGMENTS = 48
"""Segments of a hole; so many keep the polygon within 0.3 % of the circle."""

CLEARANCE = 1.05
"""Radii between the center of a hole and the walls of its cavity, so that the rays along its rim do not graze them."""

HEIGHTS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.7)
"""Shares of the height of a cavity, lowest first; a hole ends below the first height at which it has room."""

MAX_CENTERS = 2000
"""Maximum places for holes to compare; bounds the time."""


def run(scene: Scene, options: DrainOptions) -> Scene:
    """Drill `drain_count` holes of the diameter `drain_holes_mm` into each cavity, from the outside below it.

    Args:
        scene: Millimeters, Z up.
        options: `drain_holes_mm` None leaves the scene unchanged.
    Returns:
        Scene with the holes; their faces get the appearance of the nearest surface of their mesh.
    Raises:
        ConversionFailed: A part is not a closed solid.
    """
    if options.drain_holes_mm is None:
        return scene
    drilling = _Drilling(options.drain_holes_mm / 2, options.drain_count)
    result = reshaped_in_place(scene, drilling.change)
    if drilling.holes == 0 and drilling.missed == 0:
        note("no_cavity", "the model has no cavity to drain; use {hollow_wall_mm}", options=("hollow_wall_mm",))
    did(holes=drilling.holes)
    return result


class _Drilling:
    """Holes of all parts."""

    def __init__(self, radius: float, count: int) -> None:
        self.radius = radius
        self.count = count
        self.holes = self.missed = 0

    def change(self, mesh: Mesh, parts: list[Part]) -> Mesh:
        """Return the mesh with holes; the mesh itself if it has no cavity."""
        original, mesh = mesh, unite_overlaps(mesh, parts)
        points, faces = solid_surface(mesh, parts)
        cavities = _find_cavities(points, faces)
        if not cavities:
            return original
        solid = to_manifold(mesh, parts)
        drills = [drill for cavity in cavities for drill in self._drill(solid, points, cavity)]
        self.holes += len(drills) * len(parts)
        missing = self.count * len(cavities) - len(drills)
        if missing:
            self.missed += missing * len(parts)
            note(
                "no_room_for_drain",
                f"no room for {format_count(missing, 'drain hole', 'drain holes')} "
                f"of {format_number(2 * self.radius, 3)} mm in cavities of "
                f"{name_of(mesh, parts)}; lower {{drain_holes_mm}} or {{drain_count}}",
                options=("drain_holes_mm", "drain_count"),
                count=missing,
                size=2 * self.radius,
                name=name_of(mesh, parts),
            )
        if not drills:
            return original
        if mesh is not original:
            note_overlaps(name_of(mesh, parts))
        result = subtracted(mesh, solid, drills)
        note_damage(name_of(mesh, parts), find_damage(result))
        return result

    def _drill(self, solid: manifold3d.Manifold, points: Float64, faces: Int32) -> list[manifold3d.Manifold]:
        """Return the holes into a cavity whose faces (m, 3) point into the material."""
        used, corners = np.unique(faces, return_inverse=True)
        room = manifold3d.Manifold(manifold3d.Mesh64(points[used], corners.reshape(-1, 3).astype(np.uint64)))
        low, high = points[used, 2].min(), points[used, 2].max()
        best: list[manifold3d.Manifold] = []
        for share in HEIGHTS:
            top = low + share * (high - low)
            floor = room.trim_by_plane((0, 0, -1), -top).project()
            drills = []
            for x, y in _choose_centers(floor.offset(-CLEARANCE * self.radius), self.count, 2.5 * self.radius):
                bottom = self._find_outside(solid, x, y, top)
                if bottom is not None:
                    drill = manifold3d.Manifold.cylinder(top - bottom, self.radius, self.radius, HOLE_SEGMENTS)
                    drills.append(drill.translate((x, y, bottom)))
            if len(drills) > len(best):
                best = drills
            if len(best) == self.count:
                break
        return best

    def _find_outside(self, solid: manifold3d.Manifold, x: float, y: float, top: float) -> float | None:
        """Return a height just below the wall under a hole whose upper end is in a cavity; None without such a wall."""
        angle = np.linspace(0, 2 * np.pi, 8, endpoint=False)
        ring = np.stack([x + self.radius * np.cos(angle), y + self.radius * np.sin(angle)], axis=1)
        end = solid.bounding_box()[2] - 1
        heights = []
        for px, py in [(x, y), *ring.tolist()]:
            # the floor of the cavity, then the outside of the wall
            hits = [hit.position[2] for hit in solid.ray_cast((px, py, top), (px, py, end))]
            if len(hits) < 2:
                return None
            heights.append(hits[1])
        return float(min(heights)) - 0.1 * self.radius


def _choose_centers(area: manifold3d.CrossSection, count: int, distance: float) -> list[tuple[float, float]]:
    """Choose places in an area that are far apart: the first one near its center, at most a given number."""
    polygons = area.to_polygons()
    if not polygons:
        return []
    corners = np.concatenate(polygons)
    triangles = corners[manifold3d.triangulate(polygons)]
    places = np.concatenate(
        [corners, triangles.mean(axis=1), (triangles + np.roll(triangles, 1, axis=1)).reshape(-1, 2) / 2]
    )
    places = places[:: len(places) // MAX_CENTERS + 1]
    chosen: list[tuple[float, float]] = []
    gap = np.linalg.norm(places - (corners.min(axis=0) + corners.max(axis=0)) / 2, axis=1)
    at = int(gap.argmin())
    gap[:] = np.inf
    while len(chosen) < count and gap[at] >= distance:
        chosen.append((float(places[at, 0]), float(places[at, 1])))
        gap = np.minimum(gap, np.linalg.norm(places - places[at], axis=1))
        at = int(gap.argmax())
    return chosen


def _find_cavities(points: Float64, faces: Int32) -> list[Int32]:
    """Return the faces of each cavity, reversed to point out of it."""
    count, shell = shells(faces)
    corners = points[faces]
    a, b, c = (corners[:, corner] - points[0] for corner in range(3))
    volume = np.bincount(shell, np.einsum("ij,ij->i", a, np.cross(b, c)), count).astype(np.float64)
    hosts = hosts_of(corners @ TURN, shell, np.ones(count, np.bool_), volume)
    cavities: IntIndex = np.flatnonzero(hosts >= 0)
    return [faces[shell == cavity][:, ::-1] for cavity in cavities]
