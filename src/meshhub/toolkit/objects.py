"""Objects of a scene: what slicers list, move and print as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from meshhub.model.scene import Part, Scene
from meshhub.toolkit.geometry import bounds, moved, without_unused_meshes


def find_objects(scene: Scene) -> tuple[list[list[Part]], int]:
    """Find the parts of each object: of each top group, or a part without a group; parts without faces are left out.

    A group that contains everything else in groups of its own is the root of a file, and no object.

    Returns:
        The parts of each object, and the number of roots, with which the path of each part begins.
    """
    parts = [part for part in scene.parts if len(scene.meshes[part.mesh].faces)]
    roots = _count_roots([part.path for part in parts])
    objects: dict[object, list[Part]] = {}
    for number, part in enumerate(parts):
        objects.setdefault(part.path[roots] if len(part.path) > roots else number, []).append(part)
    return list(objects.values()), roots


def renamed(part: Part, roots: int, number: int) -> Part:
    """Return a part with a number behind the name of its object, so that it is another object in a slicer."""
    if len(part.path) <= roots:
        return part
    return replace(part, path=(*part.path[:roots], f"{part.path[roots]}-{number}", *part.path[roots + 1 :]))


def divide_beds(scene: Scene) -> list[Scene]:
    """Return the scene of each bed, in the order of their numbers.

    Args:
        scene: Z up. Several beds stand side by side; in the results, the middle of the bounding box is at X = Y = 0.
    """
    beds = []
    for number in sorted({part.plate for part in scene.parts}):
        parts = tuple(replace(part, plate=0) for part in scene.parts if part.plate == number)
        bed = without_unused_meshes(replace(scene, parts=parts))
        matrix = np.eye(4)
        matrix[:2, 3] = -bounds(bed)[:, :2].mean(axis=0)
        beds.append(moved(bed, matrix))
    return beds


def _count_roots(paths: Sequence[tuple[str, ...]]) -> int:
    """Return how many outer groups contain all parts, each in a further group."""
    depth = 0
    while paths and all(len(path) > depth + 1 for path in paths) and len({path[: depth + 1] for path in paths}) == 1:
        depth += 1
    return depth
