"""What many plug-ins share: welding, bounds, volume, frames, baking. Numpy throughout, no loop over faces.

Topology is asked of welded positions, never of raw indices: seams in UV or normals keep their
duplicated vertices, and `weld` says which of them are one point.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from meshhub.capabilities import MILLIMETRES_PER, Frame
from meshhub.columns import as_numpy
from meshhub.scene import Float64, Int32, Mesh, Part, Scene

IntIndex = NDArray[np.intp]


def distinct(points: NDArray[Any]) -> tuple[NDArray[Any], Int32]:
    """The different rows of an array, in the order in which they are met, and which of them each row is.

    points: (n, k) numbers of any type; -0.0 and 0.0 are one.
    Returns the (u, k) rows and an (n,) int32 index with `rows[index] == points`.

    A dictionary encoding of the raw bytes: measured 2 to 30 times faster than any sort.
    """
    rows = np.ascontiguousarray(points + points.dtype.type(0))
    if len(rows) == 0:
        return rows, np.empty(0, np.int32)
    width = rows.shape[1] * rows.itemsize
    array = pa.Array.from_buffers(pa.binary(width), len(rows), [None, pa.py_buffer(rows)])
    encoded = array.dictionary_encode()
    values = np.frombuffer(encoded.dictionary.buffers()[1], rows.dtype, len(encoded.dictionary) * rows.shape[1])
    return values.reshape(-1, rows.shape[1]), as_numpy(encoded.indices)


def weld(points: NDArray[np.floating[Any] | np.integer[Any]]) -> tuple[IntIndex, Int32]:
    """Which rows are exactly the same point.

    points: (n, k) numbers of any type; -0.0 and 0.0 are one.
    Returns `first` (u,), the row where each distinct point is met first, in the order of meeting,
    and `index` (n,) int32 with `points[first][index] == points`.
    """
    rows, index = distinct(points)
    first = np.empty(len(rows), np.intp)
    first[index[::-1]] = np.arange(len(index) - 1, -1, -1)
    return first, index


def welded(mesh: Mesh) -> tuple[Float64, Int32]:
    """The mesh as distinct points (u, 3) and faces (m, 3) over them; degenerate faces are kept."""
    points, index = distinct(mesh.vertices)
    return points, index[mesh.faces]


def face_normals(vertices: Float64, faces: Int32) -> Float64:
    """(m, 3) normals of length twice the face's area; zero for degenerate faces."""
    a = vertices[faces[:, 0]]
    crossed: Float64 = np.cross(vertices[faces[:, 1]] - a, vertices[faces[:, 2]] - a)
    return crossed


def signed_volume(vertices: Float64, faces: Int32) -> float:
    """The enclosed volume, positive when the faces look outward; meaningful for a closed surface."""
    if len(faces) == 0:
        return 0.0
    origin = vertices[faces[0, 0]]
    a, b, c = (vertices[faces[:, corner]] - origin for corner in range(3))
    return float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6.0)


def area(vertices: Float64, faces: Int32) -> float:
    """The sum of the faces' areas."""
    return float(np.linalg.norm(face_normals(vertices, faces), axis=1).sum() / 2.0)


def transformed(points: Float64, matrix: Float64) -> Float64:
    """(n, 3) points through a (4, 4) affine matrix of column vectors."""
    if np.array_equal(matrix, np.eye(4)):
        return points
    moved: Float64 = points @ matrix[:3, :3].T + matrix[:3, 3]
    return moved


def mirrors(matrix: Float64) -> bool:
    """Whether a matrix turns the inside out."""
    return bool(np.linalg.det(matrix[:3, :3]) < 0)


def placed_mesh(mesh: Mesh, matrix: Float64) -> Mesh:
    """The mesh with a part's matrix baked in; a mirror flips the winding, so that outside stays outside."""
    if np.array_equal(matrix, np.eye(4)):
        return mesh
    normals = mesh.normals
    if normals is not None:
        linear = matrix[:3, :3]
        # the cofactor matrix is right for singular and mirroring matrices too, up to the sign
        cofactor = np.stack(
            [np.cross(linear[1], linear[2]), np.cross(linear[2], linear[0]), np.cross(linear[0], linear[1])]
        )
        turned = normals @ (cofactor * (-1 if mirrors(matrix) else 1)).T
        length = np.linalg.norm(turned, axis=1, keepdims=True)
        normals = (turned / np.where(length > 0, length, 1)).astype(np.float32)
    faces = mesh.faces[:, ::-1] if mirrors(matrix) else mesh.faces
    return replace(mesh, vertices=transformed(mesh.vertices, matrix), faces=faces, normals=normals)


def extremes(points: Float64) -> tuple[Float64, Float64]:
    """(k,) the lowest and (k,) the highest of (n, k) points.

    Column by column: 1 ms where numpy's `min(axis=0)` and `max(axis=0)` took 60 for half a million points.
    """
    columns = points.T
    return np.array([column.min() for column in columns]), np.array([column.max() for column in columns])


def bounds(scene: Scene) -> Float64:
    """(2, 3): the lowest and highest corner of everything placed, counting only vertices that faces use.

    Raises ValueError when there is no face.
    """
    low, high = np.full(3, np.inf), np.full(3, -np.inf)
    used: dict[int, Float64] = {}
    for part in scene.parts:
        mesh = scene.meshes[part.mesh]
        if len(mesh.faces) == 0:
            continue
        if part.mesh not in used:
            mask = np.zeros(len(mesh.vertices), np.bool_)
            mask[mesh.faces] = True
            used[part.mesh] = mesh.vertices if mask.all() else mesh.vertices[mask]
        points = transformed(used[part.mesh], part.transform)
        lowest, highest = extremes(points)
        low, high = np.minimum(low, lowest), np.maximum(high, highest)
    if not np.isfinite(low).all():
        raise ValueError("a scene without faces has no bounds")
    return np.stack([low, high])


def frame_matrix(source: Frame, target: Frame) -> Float64:
    """The (4, 4) matrix that brings coordinates from one frame into another."""
    scale = MILLIMETRES_PER[source.unit] / MILLIMETRES_PER[target.unit]
    linear = np.eye(3)
    if source.up == "y" and target.up == "z":
        linear = np.array([[1.0, 0, 0], [0, 0, -1.0], [0, 1.0, 0]])
    elif source.up == "z" and target.up == "y":
        linear = np.array([[1.0, 0, 0], [0, 0, 1.0], [0, -1.0, 0]])
    matrix = np.eye(4)
    matrix[:3, :3] = linear * scale
    return matrix


def to_frame(scene: Scene, frame: Frame) -> Scene:
    """The same scene in another frame: baked into the vertices, the parts' matrices conjugated."""
    if scene.frame == frame:
        return scene
    matrix = frame_matrix(scene.frame, frame)
    inverse = np.linalg.inv(matrix)
    rotation = matrix[:3, :3] / np.linalg.norm(matrix[:3, 0])
    meshes = tuple(
        replace(
            mesh,
            vertices=transformed(mesh.vertices, matrix),
            normals=None if mesh.normals is None else (mesh.normals @ rotation.T).astype(np.float32),
        )
        for mesh in scene.meshes
    )
    identity = np.eye(4)
    parts = tuple(
        part if np.array_equal(part.transform, identity) else replace(part, transform=matrix @ part.transform @ inverse)
        for part in scene.parts
    )
    return replace(scene, meshes=meshes, parts=parts, frame=frame)


def moved(scene: Scene, matrix: Float64) -> Scene:
    """The whole scene through one rigid or uniformly scaling matrix, instances kept."""
    return replace(scene, parts=tuple(replace(part, transform=matrix @ part.transform) for part in scene.parts))


def baked(scene: Scene) -> Scene:
    """The scene with every part's matrix in its vertices, a mesh for each part, identity transforms.

    A part's own material goes into `face_material`, so that nothing is said by the part any more but its name.
    """
    meshes: list[Mesh] = []
    parts: list[Part] = []
    for part in scene.parts:
        mesh = placed_mesh(scene.meshes[part.mesh], part.transform)
        if part.material is not None:
            own = mesh.face_material
            shown = np.full(len(mesh.faces), part.material, np.int32)
            mesh = replace(mesh, face_material=shown if own is None else np.where(own < 0, shown, own))
        parts.append(Part(len(meshes), name=part.name or mesh.name, path=part.path))
        meshes.append(mesh)
    return replace(scene, meshes=tuple(meshes), parts=tuple(parts))


def soup(scene: Scene) -> tuple[Float64, Int32]:
    """All triangles of the placed scene over one vertex array: (n, 3) vertices, (m, 3) faces."""
    vertices: list[Float64] = []
    faces: list[Int32] = []
    offset = 0
    for part in scene.parts:
        mesh = placed_mesh(scene.meshes[part.mesh], part.transform)
        vertices.append(mesh.vertices)
        faces.append(mesh.faces + np.int32(offset))
        offset += len(mesh.vertices)
    if not vertices:
        return np.empty((0, 3)), np.empty((0, 3), np.int32)
    return np.concatenate(vertices), np.concatenate(faces).astype(np.int32, copy=False)


def compacted(mesh: Mesh) -> Mesh:
    """The mesh without the vertices that no face uses."""
    mask = np.zeros(len(mesh.vertices), np.bool_)
    mask[mesh.faces] = True
    if mask.all():
        return mesh
    renumbered = np.cumsum(mask, dtype=np.int32) - np.int32(1)
    return replace(
        mesh,
        vertices=mesh.vertices[mask],
        faces=renumbered[mesh.faces],
        normals=None if mesh.normals is None else mesh.normals[mask],
        uv=None if mesh.uv is None else mesh.uv[mask],
        colors=None if mesh.colors is None else mesh.colors[mask],
    )
