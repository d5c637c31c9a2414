"""Check `overlaps`: faces that cross, bodies that overlap or lie in others, and what is there twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from meshhub.builtin_plugins.print import PrintOptions
from meshhub.builtin_plugins.print.bodies import (
    FLOAT32_RATIO,
    ROUNDING_RATIO,
    find_common_solids,
    list_bodies,
    topology_of,
)
from meshhub.builtin_plugins.print.mesh import BY_HAND, CLOSED_MM, HARMLESS
from meshhub.builtin_plugins.print.places import place_box
from meshhub.errors import format_count
from meshhub.model.notes import did
from meshhub.model.scene import Float64, Int32, Mesh, Scene
from meshhub.model.verdict import MAX_PLACES, Finding, Place
from meshhub.toolkit.crossings import Crossings, find_crossings
from meshhub.toolkit.geometry import IntIndex, area, bounds_of_parts, measure_diagonal, placed_mesh, signed_volume, weld
from meshhub.toolkit.scene_topology import SceneTopology
from meshhub.toolkit.topology import components

MIN_DEPTH_MM = 0.005
"""Depth from which faces cross; slicers close as much themselves."""


def run(scene: Scene, _: PrintOptions) -> Iterator[Finding]:
    """Find faces that cross others of their body, bodies that overlap, and faces and parts that are there twice.

    Args:
        scene: Millimeters, Z up.
    """
    copies = _find_copies(scene)
    others = np.setdiff1d(np.arange(len(scene.parts)), np.array(copies, np.intp))
    distinct = replace(scene, parts=tuple(scene.parts[number] for number in others.tolist()))
    topology = topology_of(scene)
    bodies = list_bodies(distinct, topology)
    bodies = bodies._replace(part=others[bodies.part], parts=others[bodies.parts])
    corners, part = bodies.corners, bodies.part
    if len(corners) == 0:
        return
    depth = max(MIN_DEPTH_MM, FLOAT32_RATIO * measure_diagonal(corners))
    crossings = find_crossings(corners, depth)
    is_own = bodies.body[crossings.first] == bodies.body[crossings.second]
    own, other = crossings.chosen(is_own), crossings.chosen(~is_own)
    crossing_count = len(np.unique([own.first, own.second]))
    crossing_pairs = bodies.body[np.stack([other.first, other.second], axis=1)]
    common = find_common_solids(bodies, crossing_pairs, depth)
    nested = [solid.place for solid in common if solid.is_nested]
    common = [solid for solid in common if not solid.is_nested]
    overlapping = np.unique([*crossing_pairs.ravel().tolist(), *(body for solid in common for body in solid.pair)])
    is_twice = _find_duplicate_faces(topology)[bodies.face]
    twice = int(np.count_nonzero(is_twice))
    did(
        crossing_faces=crossing_count,
        overlapping_bodies=len(overlapping),
        nested_bodies=len(nested),
        duplicate_faces=twice,
        duplicate_parts=len(copies),
    )
    if crossing_count:
        places, found = _list_places(corners, own, part)
        yield Finding(
            code="self_intersections",
            severity="warning",
            message=f"{format_count(crossing_count, 'face crosses others', 'faces cross others')} of the same body; "
            f"slicers may fill the wrong side there; use {{repair_self_intersections}}, {BY_HAND}",
            options=("repair_self_intersections",),
            amount=crossing_count,
            share=crossing_count / len(corners),
            places=places,
            places_found=found,
            remedy={"repair": True, "repair_self_intersections": True},
        )
    if len(overlapping):
        places, found = _list_places(corners, other, part)
        places = (*places, *(solid.place for solid in common))[:MAX_PLACES]
        pairs = np.concatenate([crossing_pairs, np.array([solid.pair for solid in common], np.intp).reshape(-1, 2)])
        is_within = bool((bodies.parts[pairs[:, 0]] == bodies.parts[pairs[:, 1]]).all())
        option = "repair_self_intersections" if is_within else "merge_parts"
        yield Finding(
            code="overlapping_bodies",
            severity="info",
            message=f"{len(overlapping):,} bodies overlap; most slicers unite them; to be sure, use {{{option}}}",
            options=(option,),
            amount=len(overlapping),
            places=places,
            places_found=found + len(common),
            remedy={"repair": True, option: True} if is_within else {option: "union"},
        )
    if nested:
        yield Finding(
            code="nested_bodies",
            severity="warning",
            message=f"{format_count(len(nested), 'body lies', 'bodies lie')} in the material of another one, as a "
            f"double wall; slicers may leave a hollow there; use {{repair_solid}}, {BY_HAND}",
            options=("repair_solid",),
            amount=len(nested),
            places=tuple(nested[:MAX_PLACES]),
            places_found=len(nested),
            remedy={"repair": True, "repair_solid": True},
        )
    if twice:
        places, found = _group_faces(corners[is_twice], part[is_twice])
        is_small = found == len(places) and all(place.size_mm <= CLOSED_MM for place in places)
        yield Finding(
            code="duplicate_faces",
            severity="info" if is_small else "warning",
            message=f"{format_count(twice, 'face lies', 'faces lie')} exactly on another one; "
            f"{HARMLESS if is_small else 'slicers may leave the place empty'}; use {{repair}}, {BY_HAND}",
            options=("repair",),
            amount=twice,
            places=places,
            places_found=found,
            remedy={"repair": True},
        )
    if copies:
        yield Finding(
            code="duplicate_parts",
            severity="warning",
            message=f"{format_count(len(copies), 'part lies', 'parts lie')} exactly where another one lies, and would "
            f"print twice; use {{merge_parts}}, {BY_HAND}",
            options=("merge_parts",),
            amount=len(copies),
            places=_list_boxes(scene, copies),
            places_found=len(copies),
            remedy={"merge_parts": "union"},
        )


def _find_duplicate_faces(topology: SceneTopology) -> NDArray[np.bool_]:
    """Return the faces (k,) whose three points a former face of the same mesh has."""
    corners = np.sort(topology.faces, axis=1)
    order = np.lexsort(corners.T)
    is_twice = np.zeros(len(corners), np.bool_)
    is_twice[order[1:]] = (corners[order[1:]] == corners[order[:-1]]).all(axis=1)
    return is_twice


def _group_faces(corners: Float64, part: IntIndex) -> tuple[tuple[Place, ...], int]:
    """Return the places of faces (k, 3, 3) of parts (k,), which are connected faces, and their number."""
    _, point = weld(corners.reshape(-1, 3))
    a, b, c = point.reshape(-1, 3).T
    _, label = components(int(point.max()) + 1, np.concatenate([a, a]), np.concatenate([b, c]))
    return _describe_groups(label[a], corners, np.stack([part, part], axis=1))


def _describe_groups(label: Int32, points: Float64, parts: IntIndex) -> tuple[tuple[Place, ...], int]:
    """Return the places of groups, the largest first, and their number.

    Args:
        label: (k,) group of each member.
        points: (k, p, 3) points of each member.
        parts: (k, 2) its parts.
    """
    _, group, sizes = np.unique(label, return_inverse=True, return_counts=True)
    order = np.argsort(group.reshape(-1), kind="stable")
    begin = np.cumsum(sizes) - sizes
    low, one = (np.minimum.reduceat(values.min(axis=1)[order], begin) for values in (points, parts))
    high, other = (np.maximum.reduceat(values.max(axis=1)[order], begin) for values in (points, parts))
    boxes = np.stack([low, high], axis=1)
    places = (
        place_box(boxes[number], int(one[number]) if one[number] == other[number] else None, int(sizes[number]))
        for number in np.argsort(-sizes, kind="stable")[:MAX_PLACES].tolist()
    )
    return tuple(places), len(sizes)


def _find_copies(scene: Scene) -> list[int]:
    """Return the parts that lie exactly where a former one lies; their meshes may have other points and edges."""
    kept: dict[tuple[int, bytes], int] = {}
    copies = set()
    for number, part in enumerate(scene.parts):
        if kept.setdefault((part.mesh, part.transform.tobytes()), number) != number:
            copies.add(number)
    boxes = bounds_of_parts(scene)
    chosen = np.array([number for number in kept.values() if np.isfinite(boxes[number]).all()], np.intp)
    if len(chosen) < 2:
        return sorted(copies)
    distance = FLOAT32_RATIO * float(np.abs(boxes[chosen]).max())
    surfaces: dict[int, _Surface] = {}
    # few boxes are equal, and only then are the parts compared
    for a, b in sorted(cKDTree(boxes[chosen].reshape(-1, 6)).query_pairs(distance, p=np.inf)):
        first, second = int(chosen[a]), int(chosen[b])
        if first in copies or second in copies:
            continue
        for number in (first, second):
            if number not in surfaces:
                part = scene.parts[number]
                surfaces[number] = _Surface.of(placed_mesh(scene.meshes[part.mesh], part.transform))
        if surfaces[first].equals(surfaces[second], distance):
            copies.add(second)
    return sorted(copies)


class _Surface(NamedTuple):
    """Points (n, 3), area and volume of a placed mesh."""

    points: cKDTree
    area: float
    volume: float

    @classmethod
    def of(cls, mesh: Mesh) -> _Surface:
        points = mesh.vertices[np.unique(mesh.faces)]
        moved = mesh.vertices - points.mean(axis=0)
        return cls(cKDTree(points), area(mesh.vertices, mesh.faces), signed_volume(moved, mesh.faces))

    def equals(self, other: _Surface, distance: float) -> bool:
        """Return whether all points are within a distance of one of the other surface, and all figures are equal."""
        if abs(self.volume - other.volume) > distance * self.area:
            return False
        if abs(self.area - other.area) > ROUNDING_RATIO * self.area:
            return False
        pairs = ((self.points, other.points), (other.points, self.points))
        return all(bool((tree.query(points.data, p=np.inf)[0] <= distance).all()) for tree, points in pairs)


def _list_boxes(scene: Scene, parts: list[int]) -> tuple[Place, ...]:
    """Return the boxes of parts as places."""
    shown = parts[:MAX_PLACES]
    boxes = bounds_of_parts(replace(scene, parts=tuple(scene.parts[number] for number in shown)))
    return tuple(place_box(box, part) for box, part in zip(boxes, shown, strict=True))


def _list_places(corners: Float64, crossings: Crossings, part: IntIndex) -> tuple[tuple[Place, ...], int]:
    """Return the places where faces cross, those with the most pairs first, and their number."""
    if len(crossings.points) == 0:
        return (), 0
    # a place is a set of faces that share corners or cross
    chosen, index = np.unique([crossings.first, crossings.second], return_inverse=True)
    first, second = index.reshape(2, -1)
    _, point = weld(corners[chosen].reshape(-1, 3))
    a, b, c = point.reshape(-1, 3).T
    starts, ends = np.concatenate([a, a, a[first]]), np.concatenate([b, c, a[second]])
    _, label = components(int(point.max()) + 1, starts, ends)
    parts = np.stack([part[crossings.first], part[crossings.second]], axis=1)
    return _describe_groups(label[a[first]], crossings.points[:, None], parts)
