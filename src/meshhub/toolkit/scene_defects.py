"""Defects of a scene with their geometry: open and non-manifold edges, flipped faces, stray fragments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.model.report import DefectKind, DefectPlace, Defects
from meshhub.model.scene import Float64, Part, Scene
from meshhub.toolkit.fragments import find_small_shells
from meshhub.toolkit.geometry import IntIndex, extremes, transformed
from meshhub.toolkit.scene_topology import SceneTopology
from meshhub.toolkit.topology import Index, components, following

MAX_PLACES_COUNT = 50
"""Maximum places that a finding lists; more do not fit on a page."""

MAX_SHOWN_COUNT = 20_000
"""Maximum edges or faces of one kind whose geometry is returned: 1.4 MB as float32 triangles."""


@dataclass(frozen=True, eq=False)
class Defect:
    """Defects of one kind.

    finding: counts and places
    corners: (k, 2, 3) ends of edges or (k, 3, 3) corners of faces, in the scene; at most MAX_SHOWN_COUNT
    """

    finding: Defects
    corners: Float64


class _Items(NamedTuple):
    """Defects of one kind on one mesh.

    vertices: (k, c) vertices of the corners
    label:    (k,) connected group, from 0
    size:     (g,) number of items of each group
    extent:   (g,) diagonal of the bounding box of each group, in the frame of the mesh
    total:    number of defects: items, or the shells that they form
    """

    vertices: Index
    label: IntIndex
    size: IntIndex
    extent: Float64
    total: int


def find_defects(scene: Scene, topology: SceneTopology) -> tuple[Defect, ...]:
    """Return the defects of a scene; a kind without defects is absent.

    Args:
        scene: Any frame.
        topology: Topology of its meshes.
    """
    edges = topology.edges
    first = edges.order[edges.start]
    corners: Index = topology.joined.faces[~topology.joined.collapsed].ravel()
    is_fragment = _find_fragments(topology, corners.reshape(-1, 3))
    kinds: tuple[tuple[DefectKind, dict[int, _Items]], ...] = (
        ("open_edges", _edge_items(topology, corners, first[edges.size == 1])),
        ("nonmanifold_edges", _edge_items(topology, corners, first[edges.size > 2])),
        ("flipped_faces", _face_items(topology, corners, _find_flipped_faces(topology))),
        ("stray_fragments", _fragment_items(topology, corners, is_fragment)),
    )
    used = {part.mesh for part in scene.parts}
    vertices = topology.joined.vertices
    return tuple(_place(scene, vertices, kind, items) for kind, items in kinds if not used.isdisjoint(items))


def _edge_items(topology: SceneTopology, corners: Index, half: Index) -> dict[int, _Items]:
    """Return edges as items, by mesh.

    Args:
        corners: (3k,) vertex of each corner of the faces that are not collapsed.
    """
    ends = np.stack([half, following(half)], axis=1)
    return _group_items(topology, ends, corners[ends], half // 3)


def _face_items(topology: SceneTopology, corners: Index, mask: NDArray[np.bool_]) -> dict[int, _Items]:
    face = np.flatnonzero(mask)
    ends = 3 * face[:, None] + np.arange(3)
    return _group_items(topology, ends, corners[ends], face)


def _fragment_items(topology: SceneTopology, corners: Index, is_fragment: NDArray[np.bool_]) -> dict[int, _Items]:
    """Return the faces of shells; each shell is one defect, even if several touch in a point and form one group."""
    counts = np.bincount(topology.shells.owner[is_fragment])
    items = _face_items(topology, corners, is_fragment[topology.shells.label])
    return {mesh: own._replace(total=int(counts[mesh])) for mesh, own in items.items()}


def _group_items(topology: SceneTopology, ends: Index, vertices: Index, face: Index) -> dict[int, _Items]:
    """Group items that share welded points, by mesh."""
    owner = topology.owner[face]
    order = np.argsort(owner, kind="stable")
    owner, vertices, points = owner[order], vertices[order], topology.faces.ravel()[ends[order]]
    # a mask and a count, because `np.unique` takes ten times as long
    is_used = np.zeros(int(points.max(initial=-1)) + 1, np.bool_)
    is_used[points] = True
    index = (np.cumsum(is_used) - 1)[points]
    _, labels = components(int(is_used.sum()), index[:, :-1].ravel(), index[:, 1:].ravel())
    label = labels[index[:, 0]]
    begin = np.flatnonzero(np.diff(owner, prepend=-1))
    items = {}
    for start, stop in zip(begin, [*begin[1:], len(owner)], strict=False):
        # points and labels ascend by mesh
        own = label[start:stop] - label[start:stop].min()
        size = np.bincount(own)
        extent = _measure_groups(topology.joined.vertices[vertices[start:stop]], own, size)
        items[int(owner[start])] = _Items(vertices[start:stop], own, size, extent, int(stop - start))
    return items


def _measure_groups(corners: Float64, label: IntIndex, size: IntIndex) -> Float64:
    """Return the diagonals of the bounding boxes of groups; `corners` are (k, c, 3), the rest as in _Items."""
    ordered = corners[np.argsort(label, kind="stable")]
    starts = np.cumsum(size) - size
    sides = [
        np.maximum.reduceat(column.max(axis=1), starts) - np.minimum.reduceat(column.min(axis=1), starts)
        for column in np.moveaxis(ordered, 2, 0)
    ]
    diagonals: Float64 = np.linalg.norm(sides, axis=0)
    return diagonals


def _find_flipped_faces(topology: SceneTopology) -> NDArray[np.bool_]:
    """Return the (k,) faces whose orientation contradicts most of their shell, and those of shells that are inside out.

    Each face has two nodes, one for each orientation; pairs of half-edges connect nodes that agree. On an orientable
    surface, the nodes form two components; the faces of the component with the smaller area are flipped.
    """
    shells, half, twin = topology.shells, topology.half, topology.twin
    flipped: NDArray[np.bool_] = shells.inverted[shells.label]
    inconsistent = np.zeros(len(shells.owner), np.bool_)
    inconsistent[shells.label[half[topology.is_inconsistent] // 3]] = True
    if not inconsistent.any():
        return flipped
    chosen = np.flatnonzero(inconsistent[shells.label])
    number = np.full(len(topology.faces), -1, np.int64)
    number[chosen] = np.arange(len(chosen))
    linked = inconsistent[shells.label[half // 3]]
    a, b = number[half[linked] // 3], number[twin[linked] // 3]
    size, opposed = len(chosen), topology.is_inconsistent[linked]
    starts = np.concatenate([a, a + size])
    ends = np.concatenate([np.where(opposed, b + size, b), np.where(opposed, b, b + size)])
    count, label = components(2 * size, starts, ends)
    own, other = label[:size], label[size:]
    areas = np.linalg.norm(topology.normals[~topology.joined.collapsed][chosen], axis=1)
    area = np.bincount(own, areas, minlength=count)
    # with equal areas, the component of the first face stays
    is_minority = (area[own] < area[other]) | ((area[own] == area[other]) & (own > other))
    flipped[chosen] = is_minority
    return flipped


def _find_fragments(topology: SceneTopology, faces: Index) -> NDArray[np.bool_]:
    """Return the (s,) shells that are stray fragments of their mesh; `faces` are (k, 3) vertices."""
    shells = topology.shells
    is_fragment = np.zeros(len(shells.owner), np.bool_)
    several = np.flatnonzero(np.bincount(shells.owner, minlength=1) > 1)
    if len(several) == 0:
        return is_fragment
    border = np.sort(topology.edges.border())
    points = np.empty((int(topology.faces.max()) + 1, 3))
    points[topology.faces.ravel()] = topology.joined.vertices[faces.ravel()]
    for mesh in several:
        of_faces, of_shells = (
            slice(*np.searchsorted(owners, [mesh, mesh + 1])) for owners in (topology.owner, shells.owner)
        )
        of_border = slice(*np.searchsorted(border, [3 * of_faces.start, 3 * of_faces.stop]))
        is_fragment[of_shells] = find_small_shells(
            points,
            topology.faces[of_faces],
            shells.label[of_faces] - of_shells.start,
            border[of_border] - 3 * of_faces.start,
            lambda of_shells=of_shells: shells.volume[of_shells],  # type: ignore[misc]
        )
    return is_fragment


def _place(scene: Scene, vertices: Float64, kind: DefectKind, items: Mapping[int, _Items]) -> Defect:
    """Return the defects of all parts that use the meshes of the items."""
    count = places_found = shown = 0
    places: list[DefectPlace] = []
    corners: list[Float64] = []
    for number, part in enumerate(scene.parts):
        own = items.get(part.mesh)
        if own is None:
            continue
        count += own.total
        places_found += len(own.size)
        if shown < MAX_SHOWN_COUNT:
            corners.append(_position(vertices, own.vertices[: MAX_SHOWN_COUNT - shown], part))
            shown += len(corners[-1])
        # the diagonal of a box may grow by less than twice when the box is turned
        longest = 2 * float(own.extent.max()) * float(np.linalg.norm(part.transform[:3, :3], 2))
        if len(places) < MAX_PLACES_COUNT or longest > places[-1].size_mm:
            places += _list_places(vertices, own, part, number)
            places = sorted(places, key=lambda place: -place.size_mm)[:MAX_PLACES_COUNT]
    finding = Defects(kind=kind, count=count, places_found=places_found, places=tuple(places))
    return Defect(finding, np.concatenate(corners))


def _position(vertices: Float64, corners: Index, part: Part) -> Float64:
    """Return the positions (…, 3) of vertices of a part in the scene."""
    return transformed(vertices[corners.ravel()], part.transform).reshape(*corners.shape, 3)


def _list_places(vertices: Float64, items: _Items, part: Part, number: int) -> Iterator[DefectPlace]:
    """Yield the groups of the greatest extent, at most MAX_PLACES_COUNT."""
    groups = np.argsort(-items.extent, kind="stable")[:MAX_PLACES_COUNT]
    rank = np.full(len(items.size), -1)
    rank[groups] = np.arange(len(groups))
    chosen = np.flatnonzero(rank[items.label] >= 0)
    chosen = chosen[np.argsort(rank[items.label[chosen]], kind="stable")]
    size = items.size[groups]
    corners = _position(vertices, items.vertices[chosen], part)
    for group, own in zip(groups, np.split(corners, np.cumsum(size)[:-1]), strict=True):
        low, high = extremes(own.reshape(-1, 3))
        x, y, z = ((low + high) / 2).tolist()
        diagonal = float(np.linalg.norm(high - low))
        yield DefectPlace(position_mm=(x, y, z), size_mm=diagonal, count=int(items.size[group]), part=number)
