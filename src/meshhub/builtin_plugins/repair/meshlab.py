"""The second stage: pymeshlab's recipe, where it is installed and the own one was not enough.

pymeshlab is GPL-3.0. Nothing here imports it unless it is there, and nothing else knows of it.
"""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from meshhub.builtin_plugins.repair.judge import Verdict, verdict
from meshhub.geometry import weld, welded
from meshhub.scene import Float64, Int32, Mesh

NEAR = 0.005
"""The result is refused when it is further from the input than this share of the diagonal (root mean square)."""

_MOST_FACES = 2_000_000
_SAMPLES = 20_000


def bettered(mesh: Mesh, own: Mesh) -> tuple[Mesh, Verdict] | None:
    """A sound mesh near the input, or None; own: what the first stage made of `mesh`."""
    if find_spec("pymeshlab") is None or len(mesh.faces) > _MOST_FACES:
        return None
    for begin in (own, mesh):
        points, faces = welded(begin)
        solid = faces[(faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 2] != faces[:, 0])]
        if len(solid) == 0:
            continue
        made = _recipe(points, solid)
        if made is None:
            continue
        found = verdict(*made)
        if found.right and _distance(mesh, made) <= NEAR:
            return _dressed(mesh, *made), found
    return None


def _recipe(points: Float64, faces: Int32) -> tuple[Float64, Int32] | None:
    """MeshLab's filters for one watertight surface; None when they give up."""
    import pymeshlab

    meshes: Any = pymeshlab.MeshSet(verbose=False)
    meshes.add_mesh(pymeshlab.Mesh(vertex_matrix=points, face_matrix=faces))
    try:
        meshes.meshing_remove_duplicate_vertices()
        meshes.meshing_remove_duplicate_faces()
        meshes.meshing_remove_null_faces()
        meshes.meshing_repair_non_manifold_edges(method="Remove Faces")
        meshes.meshing_repair_non_manifold_vertices(vertdispratio=1e-5)
        meshes.meshing_close_holes(maxholesize=100_000, newfaceselected=False)
        meshes.meshing_repair_non_manifold_edges(method="Remove Faces")
        meshes.meshing_close_holes(maxholesize=100_000, newfaceselected=False)
        meshes.meshing_re_orient_faces_coherently()
        if meshes.get_geometric_measures().get("mesh_volume", 0.0) < 0:
            meshes.meshing_invert_face_orientation(forceflip=True)
    except pymeshlab.PyMeshLabException:
        return None
    current = meshes.current_mesh()
    made = np.array(current.vertex_matrix(), np.float64), np.array(current.face_matrix(), np.int32)
    return made if len(made[1]) else None


def _distance(mesh: Mesh, made: tuple[Float64, Int32]) -> float:
    """The root mean square distance of the input from the result, as a share of the input's diagonal."""
    import pymeshlab

    meshes: Any = pymeshlab.MeshSet(verbose=False)
    meshes.add_mesh(pymeshlab.Mesh(vertex_matrix=mesh.vertices, face_matrix=mesh.faces))
    meshes.add_mesh(pymeshlab.Mesh(vertex_matrix=made[0], face_matrix=made[1]))
    try:
        measured = meshes.get_hausdorff_distance(sampledmesh=0, targetmesh=1, samplenum=_SAMPLES)
    except pymeshlab.PyMeshLabException:
        return float("inf")
    return float(measured["RMS"]) / max(float(measured["diag_mesh_0"]), 1e-300)


def _dressed(mesh: Mesh, points: Float64, faces: Int32) -> Mesh:
    """The result with what the nearest vertices and faces of the input show."""
    first, index = weld(points)
    points, faces = points[first], index[faces]
    bare = mesh.normals is None and mesh.uv is None and mesh.colors is None
    near = None if bare else cKDTree(mesh.vertices).query(points)[1]
    material = mesh.face_material
    if material is not None:
        middles = mesh.vertices[mesh.faces].mean(axis=1)
        material = material[cKDTree(middles).query(points[faces].mean(axis=1))[1]]
    return replace(
        mesh,
        vertices=points,
        faces=faces,
        normals=None if mesh.normals is None else mesh.normals[near],
        uv=None if mesh.uv is None else mesh.uv[near],
        colors=None if mesh.colors is None else mesh.colors[near],
        face_material=material,
    )
