"""Inspect a scene: is it printable? Topology on welded positions, sizes of the placed parts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meshhub.model.report import ModelInspection, PartInspection
from meshhub.model.scene import Float64, Int32, Mesh, Part, Scene
from meshhub.pipeline.defects import Defect, find_defects
from meshhub.pipeline.scene_topology import SceneTopology, analyze
from meshhub.toolkit.geometry import IntIndex, area, bounds, transformed
from meshhub.toolkit.topology import Edges, Index, components, fans, following

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


class Examination(NamedTuple):
    """Measures of a scene, and the geometry of its defects."""

    model: ModelInspection
    defects: tuple[Defect, ...]


def inspect(scene: Scene) -> ModelInspection:
    """Measure a scene; every instance counts. See `examine`."""
    return examine(scene).model


def examine(scene: Scene) -> Examination:
    """Measure a scene and find its defects; every instance counts.

    A surface has a volume if every edge is traversed as often in one direction as in the other. It is watertight if
    every edge also lies on exactly two faces.

    Args:
        scene: Millimeters, Z up.
    """
    topology = analyze(scene.meshes)
    measures = _measure_meshes(topology)
    defects = find_defects(scene, topology)
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
    model = ModelInspection(
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
        findings=tuple(defect.finding for defect in defects),
    )
    return Examination(model, defects)


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


def _measure_meshes(topology: SceneTopology) -> _MeshMeasures:
    """Measure all meshes at once."""
    joined, mesh_edges, faces = topology.joined, topology.edges, topology.faces
    count, owner, face_owner = len(joined.sizes), joined.owner, topology.owner
    areas = np.linalg.norm(topology.normals, axis=1) / 2
    edge_owner = face_owner[mesh_edges.order[mesh_edges.start] // 3]
    unbalanced = np.bincount(edge_owner[_find_unbalanced_edges(faces, mesh_edges)], minlength=count)
    shell_owner, hollow = topology.shells.owner, topology.shells.hollow

    def per_mesh(owners: IntIndex) -> IntIndex:
        return np.bincount(owners, minlength=count)

    return _MeshMeasures(
        faces=joined.sizes,
        points=per_mesh(_find_point_owners(joined.welded, owner)),
        bodies=per_mesh(shell_owner[~hollow]),
        cavities=per_mesh(shell_owner[hollow]),
        holes=per_mesh(_find_hole_owners(faces, mesh_edges, topology.half, topology.twin, face_owner)),
        open=per_mesh(edge_owner[mesh_edges.size == 1]),
        nonmanifold=per_mesh(edge_owner[mesh_edges.size > 2]),
        inconsistent=per_mesh(face_owner[topology.half[topology.is_inconsistent] // 3]),
        degenerate=per_mesh(owner[joined.collapsed | (areas == 0)]),
        balanced=((unbalanced == 0) & (per_mesh(face_owner) > 0)).astype(np.intp),
        volume=np.bincount(owner, topology.volumes, minlength=count).astype(np.float64),
        area=np.bincount(owner, areas, minlength=count).astype(np.float64),
    )


def _find_point_owners(welded: Int32, owner: IntIndex) -> IntIndex:
    """Return the mesh of each point that a face uses."""
    used = np.zeros(int(welded.max(initial=-1)) + 1, np.bool_)
    point_owner = np.zeros(len(used), np.intp)
    used[welded] = True
    point_owner[welded] = owner[:, None]
    return point_owner[used]


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
