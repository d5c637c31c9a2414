"""Inspect a scene: is it printable? Topology on welded positions, sizes of the placed parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.model.report import ModelInspection, PartInspection
from meshhub.model.scene import Float64, Int32, Mesh, Part, Scene
from meshhub.toolkit.containment import hosts_of
from meshhub.toolkit.geometry import IntIndex, area, bounds, face_normals, transformed, weld
from meshhub.toolkit.topology import Edges, Index, components, edges, fans, following, shells

MAX_LISTED_PARTS = 100
"""Count of parts that an inspection lists one by one; the totals count all."""

SIMILARITY_RATIO = 1e-9
"""Relative difference of a matrix's axes in length and angle up to which the matrix is a uniform scale."""


class _MeshMeasures(NamedTuple):
    """Counts, volume and area of each mesh, (k,) each, in its own coordinates."""

    faces: IntIndex
    points: IntIndex
    bodies: IntIndex
    cavities: IntIndex
    holes: IntIndex
    open: IntIndex
    nonmanifold: IntIndex
    inconsistent: IntIndex
    degenerate: IntIndex
    balanced: IntIndex
    volume: Float64
    area: Float64


def inspect(scene: Scene) -> ModelInspection:
    """Measure a scene; every instance counts.

    A surface has a volume if every edge is traversed as often in one direction as in the other. It is watertight if
    every edge also lies on exactly two faces.

    Args:
        scene: Millimeters, Z up.
    """
    measures = _measure_meshes(scene.meshes)
    mesh_of = np.array([part.mesh for part in scene.parts], np.intp)
    is_valid = (
        (measures.open == 0)
        & (measures.nonmanifold == 0)
        & (measures.inconsistent == 0)
        & (measures.faces > measures.degenerate)
    )
    box = bounds(scene)
    scales = np.array([abs(float(np.linalg.det(part.transform[:3, :3]))) for part in scene.parts])
    volumes = measures.volume[mesh_of] * scales
    has_volume = (measures.balanced == 1)[mesh_of]
    has_faces = measures.faces[mesh_of] > 0
    return ModelInspection(
        size_mm=_triple(box[1] - box[0]),
        bounds_mm=(_triple(box[0]), _triple(box[1])),
        faces=scene.face_count,
        vertices=int(measures.points[mesh_of].sum()),
        parts=len(scene.parts),
        bodies=int(measures.bodies[mesh_of].sum()),
        cavities=int(measures.cavities[mesh_of].sum()),
        holes=int(measures.holes[mesh_of].sum()),
        open_edges=int(measures.open[mesh_of].sum()),
        nonmanifold_edges=int(measures.nonmanifold[mesh_of].sum()),
        inconsistent_edges=int(measures.inconsistent[mesh_of].sum()),
        degenerate_faces=int(measures.degenerate[mesh_of].sum()),
        watertight=bool(is_valid[mesh_of][has_faces].all()),
        volume_mm3=float(volumes[has_faces].sum()) if has_volume[has_faces].all() else None,
        area_mm2=float(sum(_measure_part_area(scene, part, float(measures.area[part.mesh])) for part in scene.parts)),
        features=tuple(sorted(scene.features())),
        parts_listed=tuple(
            PartInspection(
                name=part.name or scene.meshes[part.mesh].name,
                faces=int(measures.faces[part.mesh]),
                bodies=int(measures.bodies[part.mesh]),
                cavities=int(measures.cavities[part.mesh]),
                watertight=bool(is_valid[part.mesh]),
                size_mm=_measure_part_size(scene.meshes[part.mesh], part),
                volume_mm3=float(volume) if measures.balanced[part.mesh] else None,
            )
            for part, volume in zip(scene.parts[:MAX_LISTED_PARTS], volumes[:MAX_LISTED_PARTS], strict=True)
        ),
    )


def _triple(values: Float64) -> tuple[float, float, float]:
    x, y, z = (float(value) for value in values)
    return x, y, z


def _measure_part_size(mesh: Mesh, part: Part) -> tuple[float, float, float]:
    """Return the extent of a part in millimeters; zero without faces."""
    if len(mesh.faces) == 0:
        return 0.0, 0.0, 0.0
    used = np.zeros(len(mesh.vertices), np.bool_)
    used[mesh.faces] = True
    return _triple(np.ptp(transformed(mesh.vertices[used], part.transform), axis=0))


def _measure_part_area(scene: Scene, part: Part, mesh_area: float) -> float:
    """Return the area of a part: scaled from its mesh's, unless the matrix is not a uniform scale."""
    linear = part.transform[:3, :3]
    square = linear.T @ linear
    scale = float(np.trace(square)) / 3
    if np.allclose(square, scale * np.eye(3), rtol=0, atol=SIMILARITY_RATIO * scale):
        return mesh_area * scale
    mesh = scene.meshes[part.mesh]
    return area(transformed(mesh.vertices, part.transform), mesh.faces)


@dataclass(frozen=True, eq=False)
class _JoinedMeshes:
    """All meshes in one array, so that thousands of small meshes cost no more than a large one.

    vertices: (n, 3) positions of all meshes
    faces:    (m, 3) indices into `vertices`
    welded:   (m, 3) indices of distinct points; points of different meshes are never the same
    owner:    (m,) mesh of each face, ascending
    collapsed: (m,) mask of faces with two corners at one point
    sizes:    (k,) number of faces of each mesh
    """

    vertices: Float64
    faces: Index
    welded: Int32
    owner: IntIndex
    collapsed: NDArray[np.bool_]
    sizes: IntIndex


def _join(meshes: tuple[Mesh, ...]) -> _JoinedMeshes:
    sizes = np.array([len(mesh.faces) for mesh in meshes], np.intp)
    first = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes)])
    vertices = np.concatenate([mesh.vertices for mesh in meshes] or [np.empty((0, 3))])
    faces = np.concatenate(
        [mesh.faces.astype(np.int64) + start for mesh, start in zip(meshes, first, strict=False)]
        or [np.empty((0, 3), np.int64)]
    )
    point = _weld_by_mesh(vertices, np.repeat(np.arange(len(meshes)), np.diff(first)))
    welded = point[faces]
    a, b, c = welded[:, 0], welded[:, 1], welded[:, 2]
    collapsed = (a == b) | (b == c) | (c == a)
    return _JoinedMeshes(vertices, faces, welded, np.repeat(np.arange(len(meshes)), sizes), collapsed, sizes)


def _measure_meshes(meshes: tuple[Mesh, ...]) -> _MeshMeasures:
    """Measure all meshes at once."""
    joined = _join(meshes)
    count, owner, collapsed = len(meshes), joined.owner, joined.collapsed
    normals = face_normals(joined.vertices, joined.faces.astype(np.int32))
    areas = np.linalg.norm(normals, axis=1) / 2
    volumes = _signed_volumes(meshes, joined, normals)

    faces, face_owner = joined.welded[~collapsed], owner[~collapsed]
    mesh_edges = edges(faces)
    edge_owner = face_owner[mesh_edges.order[mesh_edges.start] // 3]
    begin = faces.ravel()
    half, twin = mesh_edges.pairs()
    is_inconsistent = begin[half] == begin[twin]
    shell_owner, hollow = _find_shells(joined, mesh_edges, half[is_inconsistent], volumes)
    unbalanced = np.bincount(edge_owner[_find_unbalanced_edges(faces, mesh_edges)], minlength=count)

    def per_mesh(owners: IntIndex) -> IntIndex:
        return np.bincount(owners, minlength=count)

    return _MeshMeasures(
        faces=joined.sizes,
        points=per_mesh(_find_point_owners(joined.welded, owner)),
        bodies=per_mesh(shell_owner[~hollow]),
        cavities=per_mesh(shell_owner[hollow]),
        holes=per_mesh(_find_hole_owners(faces, mesh_edges, half, twin, face_owner)),
        open=per_mesh(edge_owner[mesh_edges.size == 1]),
        nonmanifold=per_mesh(edge_owner[mesh_edges.size > 2]),
        inconsistent=per_mesh(face_owner[half[is_inconsistent] // 3]),
        degenerate=per_mesh(owner[collapsed | (areas == 0)]),
        balanced=((unbalanced == 0) & (per_mesh(face_owner) > 0)).astype(np.intp),
        volume=np.bincount(owner, volumes, minlength=count).astype(np.float64),
        area=np.bincount(owner, areas, minlength=count).astype(np.float64),
    )


def _signed_volumes(meshes: tuple[Mesh, ...], joined: _JoinedMeshes, normals: Float64) -> Float64:
    """Return the signed volume (m,) of the tetrahedron between each face and a corner of its mesh.

    A corner of the mesh, not the origin: far from the origin, digits would be lost.
    """
    corner = np.array([mesh.vertices[mesh.faces[0, 0]] if len(mesh.faces) else np.zeros(3) for mesh in meshes])
    offset = joined.vertices[joined.faces[:, 0]] - corner.reshape(-1, 3)[joined.owner]
    volumes: Float64 = np.einsum("ij,ij->i", offset, normals) / 6
    return volumes


def _weld_by_mesh(vertices: Float64, owner: IntIndex) -> Int32:
    """Return the distinct point of each vertex; vertices of different meshes are never the same point."""
    if len(owner) == 0 or owner[0] == owner[-1]:
        return weld(vertices)[1]
    return weld(np.concatenate([vertices, owner[:, None].astype(np.float64)], axis=1))[1]


def _find_point_owners(welded: Int32, owner: IntIndex) -> IntIndex:
    """Return the mesh of each point that a face uses."""
    used = np.zeros(int(welded.max(initial=-1)) + 1, np.bool_)
    point_owner = np.zeros(len(used), np.intp)
    used[welded] = True
    point_owner[welded] = owner[:, None]
    return point_owner[used]


def _find_shells(
    joined: _JoinedMeshes, mesh_edges: Edges, inconsistent: Index, volumes: Float64
) -> tuple[IntIndex, NDArray[np.bool_]]:
    """Return the mesh of each shell, and which shells are cavities of another shell of the same mesh.

    Args:
        joined: All meshes.
        mesh_edges: Edges of the faces that are not collapsed.
        inconsistent: Half-edges whose twin runs in the same direction.
        volumes: (m,) signed volume of each face.
    """
    count = len(joined.sizes)
    owner = joined.owner[~joined.collapsed]
    number, shell = shells(joined.welded[~joined.collapsed], mesh_edges)
    shell_owner = np.zeros(number, np.intp)
    shell_owner[shell] = owner
    is_irregular = mesh_edges.size != 2
    irregular = np.concatenate([shell[mesh_edges.order[mesh_edges.start[is_irregular]] // 3], shell[inconsistent // 3]])
    closed = np.bincount(irregular, minlength=number) == 0
    # the cavities of a mesh that is inside out are outward
    direction = np.sign(np.bincount(joined.owner, volumes, minlength=count))[shell_owner]
    volume = (np.bincount(shell, volumes[~joined.collapsed], minlength=number) * direction).astype(np.float64)
    faces = joined.faces[~joined.collapsed]
    hollow = np.zeros(number, np.bool_)
    for mesh in np.unique(shell_owner[closed & (volume < 0)]):
        of_faces, of_shells = (slice(*np.searchsorted(owners, [mesh, mesh + 1])) for owners in (owner, shell_owner))
        corner = joined.vertices[faces[of_faces]]
        hosts = hosts_of(corner, shell[of_faces] - of_shells.start, closed[of_shells], volume[of_shells])
        hollow[of_shells] = hosts >= 0
    return shell_owner, hollow


def _find_unbalanced_edges(faces: Int32, mesh_edges: Edges) -> IntIndex:
    """Return the edges that are traversed more often in one direction than in the other."""
    if len(mesh_edges.start) == 0:
        return np.empty(0, np.intp)
    begin, end = faces.ravel(), faces[:, [1, 2, 0]].ravel()
    direction = np.where(begin < end, 1, -1)[mesh_edges.order]
    return np.flatnonzero(np.add.reduceat(direction, mesh_edges.start))


def _find_hole_owners(faces: Int32, mesh_edges: Edges, half: Index, twin: Index, owner: IntIndex) -> IntIndex:
    """Return the mesh of each hole: a connected part of the border; loops that only touch are separate."""
    border = mesh_edges.border()
    if len(border) == 0:
        return np.empty(0, np.intp)
    number, fan = fans(faces, half, twin)
    begin, end = fan[border], fan[following(border)]
    _, label = components(number, begin, end)
    _, first = np.unique(label[begin], return_index=True)
    return owner[border[first] // 3]
