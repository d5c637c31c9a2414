"""Looking at a scene: is it printable? Topology on welded positions, sizes of the placed parts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.model.report import ModelInspection, PartInspection
from meshhub.model.scene import Float64, Int32, Mesh, Part, Scene
from meshhub.toolkit.containment import hosts_of
from meshhub.toolkit.geometry import IntIndex, area, bounds, face_normals, transformed, weld
from meshhub.toolkit.topology import Edges, Index, components, edges, fans, following, shells

LISTED = 100
"""So many parts are told one by one."""

SIMILAR = 1e-9
"""How much the axes of a matrix may differ in length and angle, as a share, and still count as one scale."""


class _Meshes(NamedTuple):
    """What is known of each mesh, (k,) each, in its own coordinates."""

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
    """What a scene in millimetres, Z up, is like; every instance counts.

    A surface has a volume when every edge is run through as often in one direction as in the other. It is
    watertight when every edge lies on exactly two faces, too.
    """
    known = _meshes(scene.meshes)
    mesh_of = np.array([part.mesh for part in scene.parts], np.intp)
    sound = (known.open == 0) & (known.nonmanifold == 0) & (known.inconsistent == 0) & (known.faces > known.degenerate)
    box = bounds(scene)
    scales = np.array([abs(float(np.linalg.det(part.transform[:3, :3]))) for part in scene.parts])
    volumes = known.volume[mesh_of] * scales
    closed = (known.balanced == 1)[mesh_of]
    filled = known.faces[mesh_of] > 0
    return ModelInspection(
        size_mm=_triple(box[1] - box[0]),
        bounds_mm=(_triple(box[0]), _triple(box[1])),
        faces=scene.face_count,
        vertices=int(known.points[mesh_of].sum()),
        parts=len(scene.parts),
        bodies=int(known.bodies[mesh_of].sum()),
        cavities=int(known.cavities[mesh_of].sum()),
        holes=int(known.holes[mesh_of].sum()),
        open_edges=int(known.open[mesh_of].sum()),
        nonmanifold_edges=int(known.nonmanifold[mesh_of].sum()),
        inconsistent_edges=int(known.inconsistent[mesh_of].sum()),
        degenerate_faces=int(known.degenerate[mesh_of].sum()),
        watertight=bool(sound[mesh_of][filled].all()),
        volume_mm3=float(volumes[filled].sum()) if closed[filled].all() else None,
        area_mm2=float(sum(_area(scene, part, float(known.area[part.mesh])) for part in scene.parts)),
        features=tuple(sorted(scene.features())),
        parts_listed=tuple(
            PartInspection(
                name=part.name or scene.meshes[part.mesh].name,
                faces=int(known.faces[part.mesh]),
                bodies=int(known.bodies[part.mesh]),
                cavities=int(known.cavities[part.mesh]),
                watertight=bool(sound[part.mesh]),
                size_mm=_size(scene.meshes[part.mesh], part),
                volume_mm3=float(volume) if known.balanced[part.mesh] else None,
            )
            for part, volume in zip(scene.parts[:LISTED], volumes[:LISTED], strict=True)
        ),
    )


def _triple(values: Float64) -> tuple[float, float, float]:
    x, y, z = (float(value) for value in values)
    return x, y, z


def _size(mesh: Mesh, part: Part) -> tuple[float, float, float]:
    """The extent of one part; zero when it has no face."""
    if len(mesh.faces) == 0:
        return 0.0, 0.0, 0.0
    used = np.zeros(len(mesh.vertices), np.bool_)
    used[mesh.faces] = True
    return _triple(np.ptp(transformed(mesh.vertices[used], part.transform), axis=0))


def _area(scene: Scene, part: Part, own: float) -> float:
    """The area of a part: scaled from its mesh's, unless the matrix stretches it."""
    linear = part.transform[:3, :3]
    square = linear.T @ linear
    scale = float(np.trace(square)) / 3
    if np.allclose(square, scale * np.eye(3), rtol=0, atol=SIMILAR * scale):
        return own * scale
    mesh = scene.meshes[part.mesh]
    return area(transformed(mesh.vertices, part.transform), mesh.faces)


def _meshes(meshes: tuple[Mesh, ...]) -> _Meshes:
    """Looks at all meshes at once, so that thousands of small ones cost no more than a large one."""
    count = len(meshes)
    sizes = np.array([len(mesh.faces) for mesh in meshes], np.intp)
    owner = np.repeat(np.arange(count), sizes)
    first = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes)])
    vertices = np.concatenate([mesh.vertices for mesh in meshes] or [np.empty((0, 3))])
    raw = np.concatenate(
        [mesh.faces.astype(np.int64) + start for mesh, start in zip(meshes, first, strict=False)]
        or [np.empty((0, 3), np.int64)]
    )
    index = _welded(vertices, np.repeat(np.arange(count), np.diff(first)))
    faces = index[raw]
    crossed = face_normals(vertices, raw.astype(np.int32))
    areas = np.linalg.norm(crossed, axis=1) / 2
    a, b, c = faces[:, 0], faces[:, 1], faces[:, 2]
    fallen = (a == b) | (b == c) | (c == a)
    # measured from a corner of each mesh, so that far from the origin no digits are lost
    origin = np.array([mesh.vertices[mesh.faces[0, 0]] if len(mesh.faces) else np.zeros(3) for mesh in meshes])
    volumes = np.einsum("ij,ij->i", vertices[raw[:, 0]] - origin.reshape(-1, 3)[owner], crossed) / 6

    solid, solid_owner = faces[~fallen], owner[~fallen]
    found = edges(solid)
    edge_owner = solid_owner[found.order[found.start] // 3]
    begin = solid.ravel()
    one, other = found.pairs()
    same_way = begin[one] == begin[other]
    number, label = shells(solid, found)
    shell_owner = np.zeros(number, np.intp)
    shell_owner[label] = solid_owner
    irregular = np.concatenate([label[found.order[found.start[found.size != 2]] // 3], label[one[same_way] // 3]])
    closed = np.bincount(irregular, minlength=number) == 0
    # a mesh that is inside out as a whole has its cavities turned outward
    direction = np.sign(np.bincount(owner, volumes, minlength=count))[shell_owner]
    enclosed = (np.bincount(label, volumes[~fallen], minlength=number) * direction).astype(np.float64)
    hollow = _cavities(vertices, raw[~fallen], label, solid_owner, shell_owner, closed, enclosed)
    unbalanced = np.bincount(edge_owner[_lopsided(solid, found)], minlength=count)
    used = np.zeros(int(index.max(initial=-1)) + 1, np.bool_)
    point_owner = np.zeros(len(used), np.intp)
    used[faces] = True
    point_owner[faces] = owner[:, None]

    def counted(owners: IntIndex) -> IntIndex:
        return np.bincount(owners, minlength=count)

    return _Meshes(
        faces=sizes,
        points=counted(point_owner[used]),
        bodies=counted(shell_owner[~hollow]),
        cavities=counted(shell_owner[hollow]),
        holes=counted(_holes(solid, found, one, other, solid_owner)),
        open=counted(edge_owner[found.size == 1]),
        nonmanifold=counted(edge_owner[found.size > 2]),
        inconsistent=counted(solid_owner[one[same_way] // 3]),
        degenerate=counted(owner[fallen | (areas == 0)]),
        balanced=((unbalanced == 0) & (counted(solid_owner) > 0)).astype(np.intp),
        volume=np.bincount(owner, volumes, minlength=count).astype(np.float64),
        area=np.bincount(owner, areas, minlength=count).astype(np.float64),
    )


def _welded(vertices: Float64, owner: IntIndex) -> Int32:
    """Which distinct point each vertex is; vertices of different meshes are never one."""
    if len(owner) == 0 or owner[0] == owner[-1]:
        return weld(vertices)[1]
    return weld(np.concatenate([vertices, owner[:, None].astype(np.float64)], axis=1))[1]


def _cavities(
    vertices: Float64,
    faces: Index,
    shell: Index,
    owner: IntIndex,
    shell_owner: IntIndex,
    closed: NDArray[np.bool_],
    volume: Float64,
) -> NDArray[np.bool_]:
    """Return which shells are cavities of another of the same mesh; faces and shells are in the order of the meshes."""
    hollow = np.zeros(len(closed), np.bool_)
    for mesh in np.unique(shell_owner[closed & (volume < 0)]):
        mine, own = (slice(*np.searchsorted(owners, [mesh, mesh + 1])) for owners in (owner, shell_owner))
        hollow[own] = hosts_of(vertices[faces[mine]], shell[mine] - own.start, closed[own], volume[own]) >= 0
    return hollow


def _lopsided(faces: Int32, found: Edges) -> IntIndex:
    """The edges that are run through more often in one direction than in the other."""
    if len(found.start) == 0:
        return np.empty(0, np.intp)
    begin, end = faces.ravel(), faces[:, [1, 2, 0]].ravel()
    direction = np.where(begin < end, 1, -1)[found.order]
    return np.flatnonzero(np.add.reduceat(direction, found.start))


def _holes(faces: Int32, found: Edges, one: Index, other: Index, owner: IntIndex) -> IntIndex:
    """The owner of each hole: of what hangs together of the border, where loops that only touch are two."""
    border = found.border()
    if len(border) == 0:
        return np.empty(0, np.intp)
    number, fan = fans(faces, one, other)
    begin, end = fan[border], fan[following(border)]
    _, label = components(number, begin, end)
    _, first = np.unique(label[begin], return_index=True)
    return owner[border[first] // 3]
