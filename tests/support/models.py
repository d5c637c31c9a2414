"""Small models made by code, for every test."""

from __future__ import annotations

import numpy as np

from meshhub.model.scene import Float64, Int32, Mesh, Part, Scene

_CORNERS = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], np.float64)
_BOX = np.array(
    [
        [0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1],
        [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3],
    ],
    np.int32,
)  # fmt: skip


def brick(x: float = 10, y: float = 20, z: float = 30, name: str = "brick") -> Mesh:
    """A box with a corner at the origin: 8 vertices, 12 faces, closed, outward."""
    return Mesh(_CORNERS * [x, y, z], _BOX, name=name)


def moved_by(mesh: Mesh, x: float, y: float, z: float) -> Mesh:
    """The mesh elsewhere."""
    return Mesh(mesh.vertices + [x, y, z], mesh.faces, name=mesh.name)


def sphere(radius: float = 10, segments: int = 32, name: str = "sphere") -> Mesh:
    """A closed UV sphere around the origin with `segments * (segments - 2)` faces."""
    rings = segments // 2
    theta = np.linspace(0, np.pi, rings + 1)[1:-1]
    phi = np.linspace(0, 2 * np.pi, segments, endpoint=False)
    grid = np.stack(
        [
            np.outer(np.sin(theta), np.cos(phi)),
            np.outer(np.sin(theta), np.sin(phi)),
            np.outer(np.cos(theta), np.ones(segments)),
        ],
        axis=2,
    ).reshape(-1, 3)
    vertices = np.concatenate([grid, [[0, 0, 1]], [[0, 0, -1]]]) * radius
    ring = np.arange(segments)
    after = (ring + 1) % segments
    faces = [np.stack([np.full(segments, len(grid)), ring, after], axis=1)]
    for row in range(rings - 2):
        a, b = row * segments + ring, row * segments + after
        c, d = a + segments, b + segments
        faces += [np.stack([a, c, d], axis=1), np.stack([a, d, b], axis=1)]
    last = (rings - 2) * segments
    faces.append(np.stack([np.full(segments, len(grid) + 1), last + after, last + ring], axis=1))
    return Mesh(vertices, np.concatenate(faces), name=name)


def scene_of(*meshes: Mesh) -> Scene:
    """A scene in millimetres with one part for each mesh."""
    return Scene(meshes, tuple(Part(index, name=mesh.name) for index, mesh in enumerate(meshes)))


def edge_counts(faces: Int32) -> tuple[int, int]:
    """How many undirected edges lie on exactly one face, and how many on more than two."""
    edges = np.sort(np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]), axis=1)
    _, counts = np.unique(edges, axis=0, return_counts=True)
    return int((counts == 1).sum()), int((counts > 2).sum())


def volume(vertices: Float64, faces: Int32) -> float:
    """The signed volume, computed without meshhub."""
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    return float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6)
