"""Reduce the faces of a scene: distribute the target over the meshes, and report the result."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from meshhub.builtin_plugins.optimize import OptimizeOptions
from meshhub.builtin_plugins.optimize.mesh_reduction import MeshReduction
from meshhub.builtin_plugins.optimize.transfer import transfer_attributes
from meshhub.errors import format_number
from meshhub.model.notes import did, note
from meshhub.model.progress import track
from meshhub.model.scene import Float64, Scene
from meshhub.toolkit.geometry import bounds
from meshhub.toolkit.meshlab import is_usable

MAX_SIZE_CHANGE_RATIO = 0.01
"""Change of a side of the bounding box up to which no note is added; small, because parts must fit others."""

_TINY_MM = 1e-300
"""Avoids a division by zero for a model without extent."""

BISECTION_COUNT = 60
"""Bisection steps for the common share; more than the 52 bits of a float64."""


def run(scene: Scene, options: OptimizeOptions) -> Scene:
    """Reduce the scene to `optimize_target_faces` triangles, or as close as its topology allows.

    Each mesh is reduced once, however often it is placed. Watertight meshes stay watertight. Materials, colors and
    texture coordinates are transferred from the original surface; normals are dropped.

    Args:
        scene: Millimeters, Z up.
        options: `optimize_target_faces` counts every instance; None leaves the scene unchanged.
    Returns:
        Reduced scene; instances stay shared.
    """
    target = options.optimize_target_faces
    if target is None:
        return scene
    before = scene.face_count
    if before <= target:
        note("already_below_target", f"model has {before} faces, not more than the target of {target}; left unchanged")
        did(faces_before=before, faces_after=before)
        return scene
    uses = Counter(part.mesh for part in scene.parts)
    placements = {part.mesh: part.transform for part in reversed(scene.parts)}
    reductions = {
        index: MeshReduction(scene.meshes[index], placements[index]) for index in uses if len(scene.meshes[index].faces)
    }
    # the largest mesh that is placed once comes last, and compensates for the goals that the others missed
    order = sorted(reductions, key=lambda index: (uses[index] == 1, uses[index] * reductions[index].size, index))
    times = np.array([uses[index] for index in order], np.float64)
    sizes = np.array([reductions[index].size for index in order], np.float64)
    minimums = np.array([reductions[index].min_faces for index in order], np.float64)
    goals = _distribute(sizes, minimums, times, target)
    weights = times * sizes
    remaining = np.cumsum(weights[::-1])[::-1]
    meshes = list(scene.meshes)
    carry = 0.0
    any_seams_moved = False
    for place, index in track(enumerate(order), sizes):
        reduction = reductions[index]
        goal = goals[place] + carry * weights[place] / remaining[place] / times[place]
        goal = max(goal, goals[place] / 2, minimums[place])
        reduced = reduction.reduce(int(min(sizes[place], np.floor(goal + 1e-6))))
        carry += times[place] * (goals[place] - len(reduced.faces))
        if reduced.faces is reduction.mesh.faces:
            continue
        meshes[index], seams_moved = transfer_attributes(reduction.mesh, reduced)
        any_seams_moved |= seams_moved
    # all meshes lose their normals, so that the whole scene is shaded alike
    result = replace(scene, meshes=tuple(replace(mesh, normals=None) for mesh in meshes))
    _write_notes(result.face_count, target, sum(times * minimums), any_seams_moved)
    _note_changed_size(scene, result)
    did(faces_before=before, faces_after=result.face_count)
    return result


def _note_changed_size(before: Scene, after: Scene) -> None:
    """Note a side of the bounding box that the reduction changed by more than a percent."""
    size, reduced = np.ptp(bounds(before), axis=0), np.ptp(bounds(after), axis=0)
    change = (reduced - size) / max(float(size.max()), _TINY_MM)
    change[size > 0] = reduced[size > 0] / size[size > 0] - 1
    axis = int(np.abs(change).argmax())
    if abs(change[axis]) > MAX_SIZE_CHANGE_RATIO:
        note(
            "size_changed",
            f"so few faces change the size along {'XYZ'[axis]} by {change[axis]:+.1%}, "
            f"from {format_number(size[axis], 4)} to {format_number(reduced[axis], 4)} mm; "
            "raise {optimize_target_faces}",
            options=("optimize_target_faces",),
        )


def _distribute(sizes: Float64, minimums: Float64, times: Float64, target: int) -> Float64:
    """Return the goal of each mesh: the same share of its faces, or its minimum if that is larger.

    Args:
        times: Number of instances of each mesh.
    """
    low, high = 0.0, 1.0
    for _ in range(BISECTION_COUNT):
        share = (low + high) / 2
        if float(times @ np.clip(share * sizes, minimums, sizes)) > target:
            high = share
        else:
            low = share
    return np.clip(low * sizes, minimums, sizes)


def _write_notes(faces: int, target: int, minimum: float, seams_moved: bool) -> None:
    if seams_moved:
        note(
            "seams_approximated",
            "attribute seams have more faces than the target, so materials, colors or texture coordinates come from "
            "the nearest surface; raise the target to keep the seams",
        )
    if abs(faces - target) <= 1:
        return
    if faces < target:
        reason = "all instances of a mesh lose their faces together"
    elif minimum > target:
        reason = "its separate bodies need more faces to stay closed"
    else:
        reason = "fewer would tear surfaces or change outlines; use {repair} if the model is open"
        if not is_usable():
            reason += ", or install 'meshhub[meshlab]'"
    note("target_faces_missed", f"result has {faces} faces instead of {target}: {reason}", options=("repair",))
