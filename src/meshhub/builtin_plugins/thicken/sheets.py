"""Give sheets a thickness."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from meshhub.model.scene import Float64, Int32, Mesh
from meshhub.toolkit.crossings import find_crossings
from meshhub.toolkit.geometry import chosen_faces, face_normals, unit_vectors, welded
from meshhub.toolkit.offsets import surround_surface
from meshhub.toolkit.reshaping import vertex_normals, with_faces
from meshhub.toolkit.sheets import find_shells
from meshhub.toolkit.topology import edges, following, remove_degenerate_faces
from meshhub.toolkit.validity import find_damage

MIN_COSINE = 0.5
"""Least cosine between the faces at a vertex and its direction; at sharper creases the thickness is smaller."""

CROSSING_RATIO = 1e-3
"""Depth per thickness from which faces of the result cross."""


def thicken_sheet(mesh: Mesh, thickness: float) -> Mesh:
    """Return a solid around a sheet, half of its thickness on each side; solids beside it stay as they are.

    The sides are copies of the sheet with its attributes, joined along its border. Where these would cross, because
    the sheet bends more than its thickness allows, the result is the rounded surface at the distance from the sheet.

    Args:
        mesh: Sheet, in millimeters.
        thickness: Millimeters.
    Raises:
        ModelTooComplex: The sheet is too large for the rounded surface.
        ConversionFailed: No closed surface was found around the sheet.
    """
    found = find_shells(mesh)
    is_sheet = (found.is_open | found.is_flat)[found.label]
    result = _thicken_open(chosen_faces(mesh, found.chosen[is_sheet & ~found.is_back]), thickness)
    solids = chosen_faces(mesh, found.chosen[~is_sheet])
    return with_faces(solids, result.vertices, result.faces, like=mesh) if len(solids.faces) else result


def _thicken_open(mesh: Mesh, thickness: float) -> Mesh:
    result = _join_sides(mesh, thickness)
    if find_damage(result).is_clean:
        crossings = find_crossings(result.vertices[result.faces], CROSSING_RATIO * thickness)
        if len(crossings.points) == 0:
            return result
    points, faces = welded(mesh)
    points, faces = surround_surface(points, faces, thickness / 2, "thicken_mm")
    # points in creases may meet after rounding, as in a file
    points, faces = welded(Mesh(points.astype(np.float32).astype(np.float64), faces))
    return with_faces(chosen_faces(mesh, np.empty(0, np.intp)), points, remove_degenerate_faces(faces), like=mesh)


def _join_sides(mesh: Mesh, thickness: float) -> Mesh:
    """Return both sides of a sheet without collapsed faces, and the strip between them."""
    points, faces = welded(mesh)
    half = edges(faces).border()
    offset = (thickness / 2 * _find_directions(points, faces))[faces]
    moves = np.zeros_like(mesh.vertices)
    moves[mesh.faces] = offset
    begin, end, under = mesh.faces.ravel()[half], mesh.faces.ravel()[following(half)], np.int32(len(mesh.vertices))
    strip = np.stack([end, begin, begin + under, end, begin + under, end + under], axis=1).reshape(-1, 3)
    material = mesh.face_material
    if material is not None:
        material = np.concatenate([material, material, np.repeat(material[half // 3], 2)])
    return replace(
        mesh,
        vertices=np.concatenate([mesh.vertices + moves, mesh.vertices - moves]),
        faces=np.concatenate([mesh.faces, mesh.faces[:, ::-1] + under, strip]).astype(np.int32),
        normals=None,
        uv=None if mesh.uv is None else np.concatenate([mesh.uv, mesh.uv]),
        colors=None if mesh.colors is None else np.concatenate([mesh.colors, mesh.colors]),
        face_material=material,
    )


def _find_directions(points: Float64, faces: Int32) -> Float64:
    """Return the vector (n, 3) from each point to the surface at distance 1 from the faces around it."""
    normals, corner = face_normals(points, faces), faces.ravel()
    direction = vertex_normals(points, faces)
    cosine = np.einsum("ij,ij->i", direction[corner], np.repeat(unit_vectors(normals), 3, axis=0))
    weight = np.repeat(np.linalg.norm(normals, axis=1), 3)
    total = np.maximum(np.bincount(corner, weight, len(points)), np.finfo(np.float64).tiny)
    mean = np.bincount(corner, cosine * weight, len(points)) / total
    result: Float64 = direction / np.maximum(mean, MIN_COSINE)[:, None]
    return result
