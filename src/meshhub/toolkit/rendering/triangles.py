"""All placed triangles of a scene in one array, with smooth normals where facets approximate a curved surface."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.model.scene import Float64, Int32, Scene
from meshhub.toolkit.geometry import face_normals, mirrors, transformed, unit_vectors, weld
from meshhub.toolkit.rendering.camera import Float32
from meshhub.toolkit.topology import edges, fans

MAX_SMOOTH_FACES = 200_000
"""Triangles up to which normals are smoothed; in larger models, facets are about as small as pixels."""

CREASE_COSINE = float(np.cos(np.deg2rad(30.0)))
"""Cosine of the angle between triangles from which their common side is a sharp edge."""


class PlacedTriangles(NamedTuple):
    """Triangles of all parts, in the frame of the scene.

    vertices:   (n, 3) positions
    faces:      (m, 3) vertex indices, counter-clockwise seen from outside
    first_face: (p + 1,) first face of each part, and the number of faces
    is_flipped: (p,) whether the matrix of a part mirrors; its faces have the corners of the mesh in reverse order
    """

    vertices: Float64
    faces: Int32
    first_face: NDArray[np.intp]
    is_flipped: NDArray[np.bool_]


def place_triangles(scene: Scene) -> PlacedTriangles:
    """Return the triangles of every part."""
    vertices: list[Float64] = [np.empty((0, 3))]
    faces: list[Int32] = [np.empty((0, 3), np.int32)]
    is_flipped = np.zeros(len(scene.parts), np.bool_)
    offset = 0
    for number, part in enumerate(scene.parts):
        mesh = scene.meshes[part.mesh]
        is_flipped[number] = mirrors(part.transform)
        vertices.append(transformed(mesh.vertices, part.transform))
        faces.append((mesh.faces[:, ::-1] if is_flipped[number] else mesh.faces) + np.int32(offset))
        offset += len(mesh.vertices)
    first_face = np.cumsum([0, *(len(rows) for rows in faces[1:])])
    return PlacedTriangles(np.concatenate(vertices), np.concatenate(faces), first_face, is_flipped)


def smooth_normals(triangles: PlacedTriangles) -> Float32 | None:
    """Return (m, 3, 3) normals of the corners; None if the triangles are too many.

    A normal is the mean over the triangles around the point that are connected without a sharp edge, weighted by area.
    """
    if len(triangles.faces) > MAX_SMOOTH_FACES:
        return None
    _, index = weld(triangles.vertices)
    faces = index[triangles.faces]
    half_a, half_b = edges(faces).pairs()
    areas = face_normals(triangles.vertices, triangles.faces)
    normals = unit_vectors(areas)
    cosine = np.einsum("ij,ij->i", normals[half_a // 3], normals[half_b // 3])
    is_smooth = cosine > CREASE_COSINE
    count, fan = fans(faces, half_a[is_smooth], half_b[is_smooth])
    weighted = np.repeat(areas, 3, axis=0)
    sums: Float64 = np.stack(
        [np.bincount(fan, weighted[:, axis], minlength=count).astype(np.float64) for axis in range(3)], axis=1
    )
    return unit_vectors(sums)[fan].reshape(-1, 3, 3).astype(np.float32)
