"""Inspect a scene: is it printable? Topology on welded positions, sizes of the placed parts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meshhub.model.report import ModelInspection, PartInspection
from meshhub.model.scene import Float64, Int32, Part, Scene
from meshhub.toolkit.geometry import IntIndex, area, bounds_of_parts, round_lengths, transformed
from meshhub.toolkit.scene_defects import Defect, find_defects
from meshhub.toolkit.scene_topology import SceneTopology, analyze
from meshhub.toolkit.topology import Edges, Index, components, fans_at, following

MAX_LISTED_PARTS = 100
"""Maximum parts that an inspection lists one by one; the totals count all."""

SIMILARITY_RATIO = 1e-9
"""Relative difference of the axes of a matrix, in length and angle, up to which the matrix counts as a uniform scale.
"""


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
    boxes = bounds_of_parts(scene)
    low, high = boxes[:, 0].min(axis=0), boxes[:, 1].max(axis=0)
    sizes = round_lengths(np.maximum(boxes[:, 1] - boxes[:, 0], 0), boxes)
    scales = np.array([abs(float(np.linalg.det(part.transform[:3, :3]))) for part in scene.parts])
    volumes = measures.volume[mesh_of] * scales
    has_volume = (measures.balanced == 1)[mesh_of]
    has_faces = measures.faces[mesh_of] > 0
    model = ModelInspection(
        size_mm=_triple(round_lengths(high - low, boxes)),
        bounds_mm=(_triple(round_lengths(low, boxes)), _triple(round_lengths(high, boxes))),
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
                size_mm=_triple(size),
                volume_mm3=float(volume) if measures.balanced[part.mesh] else None,
            )
            for part, volume, size in list(zip(scene.parts, volumes, sizes, strict=True))[:MAX_LISTED_PARTS]
        ),
        findings=tuple(defect.finding for defect in defects),
    )
    return Examination(model, defects)


def _triple(values: Float64) -> tuple[float, float, float]:
    x, y, z = (float(value) for value in values)
    return x, y, z


def _measure_part_area(scene: Scene, part: Part, mesh_area: float) -> float:
    """Return the area of a part: that of its mesh, scaled; computed anew if the matrix is not a uniform scale."""
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
    shell_owner, hollow = topology.shells.owner, topology.shells.hollow

    def per_mesh(owners: IntIndex) -> IntIndex:
        return np.bincount(owners, minlength=count)

    border = per_mesh(edge_owner[mesh_edges.size == 1])
    inconsistent = per_mesh(face_owner[topology.half[topology.is_inconsistent] // 3])
    unbalanced = per_mesh(edge_owner[_find_unbalanced_edges(faces, mesh_edges)])
    return _MeshMeasures(
        faces=joined.sizes,
        points=per_mesh(_find_point_owners(joined.welded, owner)),
        bodies=per_mesh(shell_owner[~hollow]),
        cavities=per_mesh(shell_owner[hollow]),
        holes=per_mesh(_find_hole_owners(faces, mesh_edges, topology.half, topology.twin, face_owner)),
        open=border,
        nonmanifold=per_mesh(edge_owner[mesh_edges.size > 2]),
        inconsistent=inconsistent,
        degenerate=per_mesh(owner[joined.collapsed | (areas == 0)]),
        balanced=((border + inconsistent + unbalanced == 0) & (per_mesh(face_owner) > 0)).astype(np.intp),
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
    """Return the edges on more than two faces that are traversed more often in one direction than in the other."""
    chosen = np.flatnonzero(mesh_edges.size > 2)
    if len(chosen) == 0:
        return chosen
    size = mesh_edges.size[chosen]
    start = np.cumsum(size) - size
    half = mesh_edges.order[np.repeat(mesh_edges.start[chosen] - start, size) + np.arange(size.sum())]
    begin, end = faces.ravel()[half], faces.ravel()[following(half)]
    balance = np.add.reduceat(np.where(begin < end, 1, -1), start)
    return np.compress(balance != 0, chosen)


def _find_hole_owners(faces: Int32, mesh_edges: Edges, half: Index, twin: Index, owner: IntIndex) -> IntIndex:
    """Return the mesh of each hole (a connected part of the border); loops that only touch are separate holes."""
    border = mesh_edges.border()
    if len(border) == 0:
        return np.empty(0, np.intp)
    after = following(border)
    number, fan = fans_at(faces, half, twin, faces.ravel()[np.concatenate([border, after])])
    begin, end = fan[border], fan[after]
    _, label = components(number, begin, end)
    _, first = np.unique(label[begin], return_index=True)
    return owner[border[first] // 3]
