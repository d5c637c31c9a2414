"""Beam lattices as solids: each beam a cylinder or a cone, with balls at its ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from manifold3d import Manifold, Mesh64, OpType
from numpy.typing import NDArray

from meshhub.model.scene import Float64, Int32, Mesh
from meshhub.toolkit.geometry import IntIndex
from meshhub.toolkit.solids import surface_of

SIDES_COUNT = 16
"""Sides of a beam around its axis, and of a ball."""

MAX_UNITED_COUNT = 2_000
"""Beams and balls that are united, which takes 2 ms for each; others overlap."""

GIRTH = float(np.sqrt(2 * np.pi / (SIDES_COUNT * np.sin(2 * np.pi / SIDES_COUNT))))
"""Radius of a regular polygon per radius of the circle with the same area, so that beams keep their volume."""


@dataclass(frozen=True)
class Lattice:
    """Beams and balls over points, all in the same unit.

    points: (n, 3)
    beams:  (k, 2) rows of points, which differ in each beam
    radii:  (k, 2) radii at both ends
    nodes:  (b,) rows of points with a ball
    balls:  (b,) radii of the balls
    """

    points: Float64
    beams: IntIndex
    radii: Float64
    nodes: IntIndex
    balls: Float64

    @property
    def count(self) -> int:
        """The number of beams and balls."""
        return len(self.beams) + len(self.nodes)


def triangulate_lattice(lattice: Lattice) -> Mesh:
    """Return a closed surface around each beam and ball; they overlap.

    Args:
        lattice: At least one beam or ball.
    """
    vertices, faces = [], []
    offset = 0
    for corners, template in (_make_beams(lattice), _make_balls(lattice)):
        count, corner_count = corners.shape[:2]
        first = offset + corner_count * np.arange(count, dtype=np.int32)
        vertices.append(corners.reshape(-1, 3))
        faces.append((template + first[:, None, None]).reshape(-1, 3))
        offset += count * corner_count
    return Mesh(np.concatenate(vertices), np.concatenate(faces))


def unite_lattice(lattice: Lattice, clip: Mesh | None = None, *, keeps_inside: bool = True) -> Mesh:
    """Return the surface of the solid that the beams and balls form together.

    Args:
        lattice: At least one beam or ball, at most MAX_UNITED_COUNT.
        clip: Closed surface that cuts the lattice; None to leave it whole.
        keeps_inside: Whether the part inside the clip stays, instead of that outside.
    Returns:
        Closed surface; no faces if the clip leaves nothing.
    """
    members = [_to_solid(points, faces) for corners, faces in (_make_beams(lattice), _make_balls(lattice))
               for points in corners]  # fmt: skip
    solid = Manifold.batch_boolean(members, OpType.Add)
    if clip is not None:
        cutter = _to_solid(clip.vertices, clip.faces)
        solid = solid ^ cutter if keeps_inside else solid - cutter
    return surface_of(solid)


def is_solid(mesh: Mesh) -> bool:
    """Return whether a mesh is the closed surface of a solid, so that it can clip."""
    return not _to_solid(mesh.vertices, mesh.faces).is_empty()


def _make_beams(lattice: Lattice) -> tuple[Float64, Int32]:
    """Return the corners (k, c, 3) of a cylinder or cone for each beam, between its ends, and its faces."""
    ends = lattice.points[lattice.beams]
    along = ends[:, 1] - ends[:, 0]
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    # any direction across: that of the axis to which the beam is the least parallel
    across = np.cross(along, np.eye(3)[np.abs(along).argmin(axis=1)])
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    third = np.cross(along, across)
    angle = 2 * np.pi / SIDES_COUNT * np.arange(SIDES_COUNT)
    rings = np.cos(angle)[:, None] * across[:, None] + np.sin(angle)[:, None] * third[:, None]
    corners = ends[:, :, None] + GIRTH * lattice.radii[:, :, None, None] * rings[:, None]
    return corners.reshape(len(ends), -1, 3), _make_drum()


def _make_drum() -> Int32:
    """Return the faces of a drum over two rings: the first at its lower end, counter-clockwise seen from above."""
    ring = np.arange(SIDES_COUNT)
    following = (ring + 1) % SIDES_COUNT
    top, next_top = ring + SIDES_COUNT, following + SIDES_COUNT
    fan = np.stack([np.zeros_like(ring[1:-1]), ring[1:-1], ring[2:]], axis=1)
    sides = [np.stack([ring, following, next_top], axis=1), np.stack([ring, next_top, top], axis=1)]
    return np.concatenate([*sides, fan[:, ::-1], fan + SIDES_COUNT]).astype(np.int32)


def _make_balls(lattice: Lattice) -> tuple[Float64, Int32]:
    """Return the corners (b, c, 3) of each ball, and its faces."""
    unit = Manifold.sphere(1.0, SIDES_COUNT)
    mesh = surface_of(unit)
    # flat faces inside the sphere would have less volume
    corners = mesh.vertices * (4 / 3 * np.pi / unit.volume()) ** (1 / 3)
    return corners * lattice.balls[:, None, None] + lattice.points[lattice.nodes][:, None], mesh.faces


def _to_solid(vertices: Float64, faces: NDArray[np.integer]) -> Manifold:
    # Manifold takes no read-only arrays
    return Manifold(Mesh64(np.array(vertices), faces.astype(np.uint64)))
