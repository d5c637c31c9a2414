"""Check `overlaps`: faces that cross, bodies that overlap or lie in others, and what is there twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from meshhub.builtin_plugins.print import PrintOptions
from meshhub.builtin_plugins.print.bodies import find_common_solids, list_bodies, topology_of
from meshhub.model.notes import did
from meshhub.model.scene import Float64, Scene
from meshhub.model.verdict import MAX_PLACES, Finding, Place
from meshhub.toolkit.crossings import Crossings, find_crossings
from meshhub.toolkit.geometry import IntIndex, weld
from meshhub.toolkit.scene_topology import SceneTopology
from meshhub.toolkit.topology import components

MIN_DEPTH_MM = 0.005
"""Depth from which faces cross; slicers close as much themselves."""

MIN_DEPTH_RATIO = 1e-6
"""The same per diagonal of the model: what rounding to float32 moves points."""


def run(scene: Scene, _: PrintOptions) -> Iterator[Finding]:
    """Find faces that cross others of their body, bodies that overlap, and faces and parts that are there twice.

    Args:
        scene: Millimeters, Z up.
    """
    distinct, copies = _without_copies(scene)
    topology = topology_of(scene)
    bodies = list_bodies(distinct, topology)
    corners, part = bodies.corners, bodies.part
    if len(corners) == 0:
        return
    depth = max(MIN_DEPTH_MM, MIN_DEPTH_RATIO * float(np.linalg.norm(np.ptp(corners, axis=(0, 1)))))
    crossings = find_crossings(corners, depth)
    is_own = bodies.body[crossings.first] == bodies.body[crossings.second]
    own, other = crossings.chosen(is_own), crossings.chosen(~is_own)
    crossing_count = len(np.unique([own.first, own.second]))
    crossing_pairs = bodies.body[np.stack([other.first, other.second], axis=1)]
    common = find_common_solids(bodies, crossing_pairs, depth)
    nested_count = sum(solid.is_nested for solid in common)
    common = [solid for solid in common if not solid.is_nested]
    overlapping = np.unique([*crossing_pairs.ravel().tolist(), *(body for solid in common for body in solid.pair)])
    twice = _count_duplicate_faces(distinct, topology)
    did(
        crossing_faces=crossing_count,
        overlapping_bodies=len(overlapping),
        nested_bodies=nested_count,
        duplicate_faces=twice,
        duplicate_parts=copies,
    )
    if crossing_count:
        places, found = _list_places(corners, own, part)
        yield Finding(
            code="self_intersections",
            severity="warning",
            message=f"{_count(crossing_count, 'face crosses others', 'faces cross others')} of the same body; slicers "
            "may fill the wrong side there; use {repair_self_intersections}",
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
            message=f"{len(overlapping):,} bodies overlap; most slicers unite them, but the volume where they overlap "
            f"counts twice; use {{{option}}}",
            options=(option,),
            amount=len(overlapping),
            places=places,
            places_found=found + len(common),
            remedy={"repair": True, option: True} if is_within else {option: "union"},
        )
    if nested_count:
        yield Finding(
            code="nested_bodies",
            severity="warning",
            message=f"{_count(nested_count, 'body lies', 'bodies lie')} in the material of another one, as a double "
            "wall; slicers may leave a hollow there; use {repair_solid}",
            options=("repair_solid",),
            amount=nested_count,
            remedy={"repair": True, "repair_solid": True},
        )
    if twice:
        yield Finding(
            code="duplicate_faces",
            severity="warning",
            message=f"{_count(twice, 'face lies', 'faces lie')} exactly on another one; slicers may leave the place "
            "empty; use {repair}",
            options=("repair",),
            amount=twice,
            remedy={"repair": True},
        )
    if copies:
        yield Finding(
            code="duplicate_parts",
            severity="warning",
            message=f"{_count(copies, 'part lies', 'parts lie')} exactly where another one lies, and would print "
            "twice; use {merge_parts}",
            options=("merge_parts",),
            amount=copies,
            remedy={"merge_parts": "union"},
        )


def _count(number: int, one: str, many: str) -> str:
    return f"1 {one}" if number == 1 else f"{number:,} {many}"


def _count_duplicate_faces(scene: Scene, topology: SceneTopology) -> int:
    """Count the faces whose three points another face of the same mesh has; each instance counts."""
    corners = np.sort(topology.faces, axis=1)
    order = np.lexsort(corners.T)
    is_twice = np.zeros(len(corners), np.bool_)
    is_twice[order[1:]] = (corners[order[1:]] == corners[order[:-1]]).all(axis=1)
    counts = np.bincount(topology.owner[is_twice], minlength=len(scene.meshes))
    return int(sum(counts[part.mesh] for part in scene.parts))


def _without_copies(scene: Scene) -> tuple[Scene, int]:
    """Return the scene without the parts whose mesh already lies in the same place, and their number."""
    parts = {(part.mesh, part.transform.tobytes()): part for part in reversed(scene.parts)}
    return replace(scene, parts=tuple(reversed(parts.values()))), len(scene.parts) - len(parts)


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
    _, place, sizes = np.unique(label[a[first]], return_inverse=True, return_counts=True)
    order = np.argsort(place.reshape(-1), kind="stable")
    begin = np.cumsum(sizes) - sizes
    points = crossings.points[order]
    low, high = np.minimum.reduceat(points, begin), np.maximum.reduceat(points, begin)
    part_low, part_high = (
        reduce.reduceat(np.stack([part[crossings.first], part[crossings.second]])[:, order], begin, axis=1)
        for reduce in (np.minimum, np.maximum)
    )
    one, other = part_low.min(axis=0), part_high.max(axis=0)
    places = []
    for group in np.argsort(-sizes, kind="stable")[:MAX_PLACES].tolist():
        x, y, z = ((low[group] + high[group]) / 2).tolist()
        places.append(
            Place(
                position_mm=(x, y, z),
                size_mm=float(np.linalg.norm(high[group] - low[group])),
                part=int(one[group]) if one[group] == other[group] else None,
                amount=int(sizes[group]),
            )
        )
    return tuple(places), len(sizes)
