"""Defects of a scene with their geometry: open and non-manifold edges, flipped faces, stray fragments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.model.report import DefectKind, DefectPlace, Finding
from meshhub.model.scene import Float64, Scene
from meshhub.pipeline.scene_topology import SceneTopology
from meshhub.toolkit.fragments import find_small_shells
from meshhub.toolkit.geometry import IntIndex, transformed
from meshhub.toolkit.topology import Index, components, following

MAX_PLACES_COUNT = 50
"""Places that a finding lists; more do not fit on a page."""

MAX_SHOWN_COUNT = 20_000
"""Edges or faces of one kind whose geometry is returned; 1.4 MB as float32 triangles."""


@dataclass(frozen=True, eq=False)
class Defect:
    """Defects of one kind.

    finding: counts and places
    corners: (k, 2, 3) ends of edges or (k, 3, 3) corners of faces, in the scene; at most MAX_SHOWN_COUNT
    """

    finding: Finding
    corners: Float64


class _Items(NamedTuple):
    """Defects of one kind in the coordinates of their meshes, sorted by mesh.

    corners: (k, c, 3) positions
    label:   (k,) connected group
    owner:   (k,) mesh
    """

    corners: Float64
    label: IntIndex
    owner: IntIndex


def find_defects(scene: Scene, topology: SceneTopology) -> tuple[Defect, ...]:
    """Return the defects of a scene; a kind without defects is absent.

    Args:
        scene: Any frame.
        topology: Topology of its meshes.
    """
    edges, shells = topology.edges, topology.shells
    first = edges.order[edges.start]
    corners: Index = topology.joined.faces[~topology.joined.collapsed].ravel()
    is_fragment = _find_fragments(topology, corners.reshape(-1, 3))
    kinds: tuple[tuple[DefectKind, _Items], ...] = (
        ("open_edges", _edge_items(topology, corners, first[edges.size == 1])),
        ("nonmanifold_edges", _edge_items(topology, corners, first[edges.size > 2])),
        ("flipped_faces", _face_items(topology, corners, _find_flipped_faces(topology))),
        ("stray_fragments", _face_items(topology, corners, is_fragment[shells.label])),
    )
    return tuple(_place(scene, kind, items) for kind, items in kinds if _is_placed(scene, items))


def _is_placed(scene: Scene, items: _Items) -> bool:
    return bool(np.isin([part.mesh for part in scene.parts], items.owner).any())


def _edge_items(topology: SceneTopology, corners: Index, half: Index) -> _Items:
    """Return edges as items.

    Args:
        topology: Topology of the meshes.
        corners: (3k,) vertex of each corner of the faces that are not collapsed.
        half: Half-edge of each edge.
    """
    ends = np.stack([half, following(half)], axis=1)
    return _sort_items(topology, ends, corners[ends], half // 3)


def _face_items(topology: SceneTopology, corners: Index, mask: NDArray[np.bool_]) -> _Items:
    face = np.flatnonzero(mask)
    ends = 3 * face[:, None] + np.arange(3)
    return _sort_items(topology, ends, corners[ends], face)


def _sort_items(topology: SceneTopology, ends: Index, vertices: Index, face: Index) -> _Items:
    """Group items that share welded points, and sort them by mesh."""
    owner = topology.owner[face]
    order = np.argsort(owner, kind="stable")
    points, index = np.unique(topology.faces.ravel()[ends[order]], return_inverse=True)
    index = index.reshape(ends.shape)
    starts, stops = index[:, :-1].ravel(), index[:, 1:].ravel()
    _, label = components(len(points), starts, stops)
    return _Items(topology.joined.vertices[vertices[order]], label[index[:, 0]].astype(np.intp), owner[order])


def _find_flipped_faces(topology: SceneTopology) -> NDArray[np.bool_]:
    """Return the (k,) faces whose orientation contradicts most of their shell, and those of shells that are inside out.

    Each face has two nodes, one for each orientation; pairs of half-edges connect nodes that agree. On an orientable
    surface the nodes form two components, and the smaller area is flipped.
    """
    shells, half, twin = topology.shells, topology.half, topology.twin
    is_inside_out = shells.closed & ((shells.volume < 0) != shells.hollow)
    flipped: NDArray[np.bool_] = is_inside_out[shells.label]
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
    # equal areas: the component of the first face stays
    is_minority = (area[own] < area[other]) | ((area[own] == area[other]) & (own > other))
    flipped[chosen] = is_minority
    return flipped


def _find_fragments(topology: SceneTopology, faces: Index) -> NDArray[np.bool_]:
    """Return the (s,) shells that are stray fragments of their mesh; `faces` are (k, 3) vertices."""
    shells, joined = topology.shells, topology.joined
    is_border = np.zeros(len(shells.owner), np.bool_)
    is_border[shells.label[topology.edges.order[topology.edges.start[topology.edges.size == 1]] // 3]] = True
    is_fragment = np.zeros(len(shells.owner), np.bool_)
    for mesh in np.flatnonzero(np.bincount(shells.owner, minlength=1) > 1):
        of_faces, of_shells = (
            slice(*np.searchsorted(owners, [mesh, mesh + 1])) for owners in (topology.owner, shells.owner)
        )
        is_fragment[of_shells] = find_small_shells(
            joined.vertices,
            faces[of_faces],
            shells.label[of_faces] - of_shells.start,
            is_border[of_shells],
            lambda of_shells=of_shells: shells.volume[of_shells],  # type: ignore[misc]
        )
    return is_fragment


def _place(scene: Scene, kind: DefectKind, items: _Items) -> Defect:
    """Return the defects of all parts that use the meshes of the items."""
    count = places_found = shown = 0
    places: list[DefectPlace] = []
    corners: list[Float64] = []
    for number, part in enumerate(scene.parts):
        begin, end = np.searchsorted(items.owner, [part.mesh, part.mesh + 1])
        if begin == end:
            continue
        groups = np.unique(items.label[begin:end])
        count += len(groups) if kind == "stray_fragments" else int(end - begin)
        places_found += len(groups)
        own = items.corners[begin:end]
        placed = transformed(own.reshape(-1, 3), part.transform).reshape(own.shape)
        corners.append(placed[: MAX_SHOWN_COUNT - shown])
        shown += len(corners[-1])
        places += _list_places(placed, items.label[begin:end], number)
    places.sort(key=lambda place: -place.count)
    finding = Finding(kind=kind, count=count, places_found=places_found, places=tuple(places[:MAX_PLACES_COUNT]))
    return Defect(finding, np.concatenate(corners))


def _list_places(corners: Float64, label: IntIndex, part: int) -> Iterator[DefectPlace]:
    """Yield the groups with the most items, at most MAX_PLACES_COUNT."""
    order = np.argsort(label, kind="stable")
    _, start, size = np.unique(label[order], return_index=True, return_counts=True)
    sorted_corners = corners[order]
    low = np.minimum.reduceat(sorted_corners.min(axis=1), start)
    high = np.maximum.reduceat(sorted_corners.max(axis=1), start)
    for group in np.argsort(-size, kind="stable")[:MAX_PLACES_COUNT]:
        x, y, z = ((low[group] + high[group]) / 2).tolist()
        diagonal = float(np.linalg.norm(high[group] - low[group]))
        yield DefectPlace(position_mm=(x, y, z), size_mm=diagonal, count=int(size[group]), part=part)
