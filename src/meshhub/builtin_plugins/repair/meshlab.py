"""Second stage of the repair, if pymeshlab is installed and the first stage left defects.

pymeshlab is GPL-3.0. Only this module imports it, and only if it is installed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from meshhub.builtin_plugins.repair.validity import FileCheck, check_as_file
from meshhub.model.scene import Float64, Int32, Mesh
from meshhub.toolkit.geometry import weld, welded
from meshhub.toolkit.meshlab import is_usable
from meshhub.toolkit.topology import remove_degenerate_faces

MAX_DISTANCE_RATIO = 0.005
"""Root mean square distance of the input from the result per diagonal; a result farther away is another shape."""

MAX_FACES = 2_000_000
"""Faces; bounds the time, because pymeshlab repairs only about 88 000 faces per second."""

MAX_UNION_FACES = 100_000
"""Faces; bounds the time, because exact unions take about a second for 1000 faces that intersect."""

DISTANCE_SAMPLE_COUNT = 20_000
"""Samples for the distance; enough for a mean, and fast."""


def repair_with_meshlab(mesh: Mesh, repaired: Mesh) -> tuple[Mesh, FileCheck] | None:
    """Repair a mesh with pymeshlab.

    Args:
        mesh: Mesh before the repair.
        repaired: Result of the first stage, which is tried first.
    Returns:
        A valid mesh close to the input and its check, or None.
    """
    if len(mesh.faces) > MAX_FACES or not is_usable():
        return None
    for start in (repaired, mesh):
        points, faces = welded(start)
        faces = remove_degenerate_faces(faces)
        if len(faces) == 0:
            continue
        result = _apply_filters(points, faces)
        if result is None:
            continue
        check = check_as_file(*result)
        if check.valid and _measure_distance(mesh, *result) <= MAX_DISTANCE_RATIO:
            return transfer_attributes(mesh, *result), check
    return None


def _apply_filters(points: Float64, faces: Int32) -> tuple[Float64, Int32] | None:
    """Apply MeshLab's filters for a watertight surface; return None if they fail."""
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
    result = _current_arrays(meshes)
    return result if len(result[1]) else None


def unite_with_meshlab(mesh: Mesh) -> Mesh | None:
    """Return the union of a mesh with itself, which resolves self-intersections; None without pymeshlab.

    Args:
        mesh: Closed mesh, oriented outward.
    Returns:
        A valid mesh with less volume, or None.
    """
    if len(mesh.faces) > MAX_UNION_FACES or not is_usable():
        return None
    import pymeshlab

    points, faces = welded(mesh)
    meshes: Any = pymeshlab.MeshSet(verbose=False)
    for _ in range(2):
        meshes.add_mesh(pymeshlab.Mesh(vertex_matrix=points, face_matrix=faces))
    try:
        meshes.generate_boolean_union(first_mesh=0, second_mesh=1)
    except pymeshlab.PyMeshLabException:
        return None
    result = _current_arrays(meshes)
    if len(result[1]) == 0 or not check_as_file(*result).valid:
        return None
    return transfer_attributes(mesh, *result)


def wrap_with_meshlab(points: Float64, faces: Int32, alpha: float, offset: float) -> tuple[Float64, Int32] | None:
    """Return the alpha wrap of any triangles; None without pymeshlab or if it fails.

    Args:
        points: (n, 3) positions, any length unit.
        faces: (m, 3) indices into `points`.
        alpha: Largest width of the gaps that it closes.
        offset: Distance of the wrap from the surface.
    """
    if not is_usable():
        return None
    import pymeshlab

    if not hasattr(pymeshlab.MeshSet, "generate_alpha_wrap"):
        return None
    meshes: Any = pymeshlab.MeshSet(verbose=False)
    meshes.add_mesh(pymeshlab.Mesh(vertex_matrix=points, face_matrix=faces))
    try:
        meshes.generate_alpha_wrap(alpha=pymeshlab.PureValue(alpha), offset=pymeshlab.PureValue(offset))
    except pymeshlab.PyMeshLabException:
        return None
    result = _current_arrays(meshes)
    return result if len(result[1]) else None


def _current_arrays(meshes: Any) -> tuple[Float64, Int32]:
    current = meshes.current_mesh()
    return np.array(current.vertex_matrix(), np.float64), np.array(current.face_matrix(), np.int32)


def _measure_distance(mesh: Mesh, points: Float64, faces: Int32) -> float:
    """Return the root mean square distance of the input from the result, per diagonal of the input."""
    import pymeshlab

    meshes: Any = pymeshlab.MeshSet(verbose=False)
    meshes.add_mesh(pymeshlab.Mesh(vertex_matrix=mesh.vertices, face_matrix=mesh.faces))
    meshes.add_mesh(pymeshlab.Mesh(vertex_matrix=points, face_matrix=faces))
    try:
        distance = meshes.get_hausdorff_distance(sampledmesh=0, targetmesh=1, samplenum=DISTANCE_SAMPLE_COUNT)
    except pymeshlab.PyMeshLabException:
        return float("inf")
    return float(distance["RMS"]) / max(float(distance["diag_mesh_0"]), 1e-300)


def transfer_attributes(mesh: Mesh, points: Float64, faces: Int32) -> Mesh:
    """Return the result with the attributes of the input: each face has those of the face nearest to its center.

    All corners of a face take them from one face of the input, so that none shows the space between two charts.
    """
    first, index = weld(points)
    points, faces = points[first], index[faces]
    nearest = cKDTree(mesh.vertices[mesh.faces].mean(axis=1)).query(points[faces].mean(axis=1))[1]
    material = None if mesh.face_material is None else mesh.face_material[nearest]
    if mesh.normals is None and mesh.uv is None and mesh.colors is None:
        return replace(mesh, vertices=points, faces=faces, face_material=material)
    own = mesh.faces[nearest]
    source = np.stack([_find_nearest_corners(mesh, own, points[faces[:, corner]]) for corner in range(3)], axis=1)
    first, rows = weld(np.stack([faces.ravel(), source.ravel()], axis=1))
    source = source.ravel()[first]
    return Mesh(
        points[faces.ravel()[first]],
        rows.reshape(-1, 3),
        normals=None if mesh.normals is None else mesh.normals[source],
        uv=None if mesh.uv is None else mesh.uv[source],
        colors=None if mesh.colors is None else mesh.colors[source],
        face_material=material,
        name=mesh.name,
    )


def _find_nearest_corners(mesh: Mesh, faces: Int32, points: Float64) -> Int32:
    """Return the vertex (m,) of each of the faces (m, 3) that is nearest to its point (m, 3)."""
    distance = np.stack([np.square(mesh.vertices[faces[:, i]] - points).sum(axis=1) for i in range(3)], axis=1)
    nearest: Int32 = faces[np.arange(len(faces)), distance.argmin(axis=1)]
    return nearest
