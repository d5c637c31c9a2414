"""Reduce the faces of a scene: distribute the target over the meshes, and report the result."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from meshhub.builtin_plugins.optimize import OptimizeOptions
from meshhub.builtin_plugins.optimize.bounded_error import reduce_within
from meshhub.builtin_plugins.optimize.mesh_reduction import MIN_FACES_PER_BODY, MeshReduction, ReducedSurface
from meshhub.builtin_plugins.optimize.scene_queue import SceneQueue
from meshhub.builtin_plugins.optimize.transfer import transfer_attributes
from meshhub.errors import format_count, format_number
from meshhub.model.notes import did, note
from meshhub.model.progress import advance, portion, track
from meshhub.model.scene import Float64, Int32, Scene
from meshhub.toolkit.geometry import bounds

MAX_SIZE_CHANGE_RATIO = 0.01
"""Change of a side of the bounding box up to which no note is added; small, because parts must fit others."""

_TINY_MM = 1e-300
"""Avoids a division by zero for a model without extent."""

FACES_PER_HANDLE = 16
"""Faces of a triangular hole through a plate: six walls, and the plate around both of its ends."""

PREPARED_RATIO, COLLAPSED_RATIO = 0.2, 0.9
"""Shares of the time after which the meshes are prepared and their edges are collapsed."""

ERROR_DIGITS = 6
"""Digits after the decimal point of the reported error, in millimeters."""

BISECTION_COUNT = 60
"""Bisection steps for the common share; more than the 52 bits of a float64."""


def run(scene: Scene, options: OptimizeOptions) -> Scene:
    """Reduce the scene to `optimize_target_faces` triangles, or as far as `optimize_max_error_mm` allows.

    Each mesh is reduced once, however often it is placed. Watertight meshes stay watertight. Materials, colors and
    texture coordinates are transferred from the original surface; normals are dropped.

    Args:
        scene: Millimeters, Z up.
        options: `optimize_target_faces` counts every instance. `optimize_max_error_mm` limits the distance between the
            surfaces before and after, which is measured at corners and samples both ways. The first one that is reached
            stops the reduction. If both are None, the scene is left unchanged.
    Returns:
        Reduced scene; instances stay shared.
    """
    target, limit_mm = options.optimize_target_faces, options.optimize_max_error_mm
    if target is None and limit_mm is None:
        return scene
    before = scene.face_count
    if target is not None and before <= target:
        note(
            "already_below_target",
            f"model has {before} faces, not more than the target of {target}; left unchanged",
            faces=before,
            target=target,
        )
    if before <= (target or 0):
        did(faces_before=before, faces_after=before)
        return scene
    uses = Counter(part.mesh for part in scene.parts)
    # errors count in the largest instance
    by_size = sorted(scene.parts, key=lambda part: float(np.linalg.norm(part.transform[:3, :3], 2)))
    placements = {part.mesh: part.transform for part in by_size}
    reductions = {
        index: MeshReduction(scene.meshes[index], placements[index]) for index in uses if len(scene.meshes[index].faces)
    }
    advance(PREPARED_RATIO)
    times = np.array([uses[index] for index in reductions], np.int32)
    sizes = np.array([reduction.size for reduction in reductions.values()], np.float64)
    minimums = np.array([reduction.min_faces for reduction in reductions.values()], np.float64)
    goals = _distribute(sizes, minimums, times, before if target is None else target)
    states = [reduction.welded.state for reduction in reductions.values()]
    bodies, handles = (int(times @ counts) for counts in ([s.shells for s in states], [s.handles for s in states]))
    minimum = int(times @ minimums)
    queue = SceneQueue(
        [*reductions.values()],
        [
            reduction.prepare(int(goal + 1e-6), is_exact=limit_mm is not None)
            for reduction, goal in zip(reductions.values(), goals, strict=True)
        ],
        times,
        weighs_area=limit_mm is None,
    )
    if target is None or target >= MIN_FACES_PER_BODY * bodies:
        queue.edges.keep_boxes()
    is_limited = False
    with portion(PREPARED_RATIO, COLLAPSED_RATIO):
        if limit_mm is None:
            queue.edges.reduce(max(target or 0, minimum))
            surfaces = queue.finish()
        else:
            bounded = reduce_within(queue, max(target or 0, minimum), limit_mm)
            surfaces, is_limited = bounded.surfaces, bounded.is_limited
            did(error_mm=round(bounded.error_mm, ERROR_DIGITS))
            if bounded.is_out_of_time:
                note(
                    "reduction_stopped",
                    "the time of the conversion ended before {optimize_max_error_mm} was reached, so more faces are "
                    "left than it allows; raise it, or use {optimize_target_faces}",
                    options=("optimize_max_error_mm", "optimize_target_faces"),
                )
    result = _replace_meshes(scene, reductions, surfaces, target)
    if target is not None:
        _note_missed_target(result.face_count, target, minimum, handles, is_limited)
    _note_changed_size(scene, result, target)
    did(faces_before=before, faces_after=result.face_count)
    return result


def _replace_meshes(
    scene: Scene, reductions: dict[int, MeshReduction], surfaces: list[ReducedSurface | None], target: int | None
) -> Scene:
    """Return the scene with the reduced surface of each mesh, with its attributes; note seams that moved."""
    meshes = list(scene.meshes)
    any_seams_moved = False
    sizes = [reduction.size for reduction in reductions.values()]
    with portion(COLLAPSED_RATIO, 1):
        for (index, reduction), surface in track(zip(reductions.items(), surfaces, strict=True), sizes):
            if surface is None or surface.faces is reduction.mesh.faces:
                continue
            meshes[index], seams_moved = transfer_attributes(reduction.mesh, surface)
            any_seams_moved |= seams_moved
    if any_seams_moved:
        _note_moved_seams(target)
    # all meshes lose their normals, so that the whole scene is shaded alike
    return replace(scene, meshes=tuple(replace(mesh, normals=None) for mesh in meshes))


def _note_changed_size(before: Scene, after: Scene, target: int | None) -> None:
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
            + ("lower {optimize_max_error_mm}" if target is None else "raise {optimize_target_faces}"),
            options=("optimize_max_error_mm" if target is None else "optimize_target_faces",),
            axis="XYZ"[axis],
            before=float(size[axis]),
            after=float(reduced[axis]),
        )


def _distribute(sizes: Float64, minimums: Float64, times: Int32, target: int) -> Float64:
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


def _note_moved_seams(target: int | None) -> None:
    note(
        "seams_approximated",
        "attribute seams have too many faces to be kept, so materials, colors or texture coordinates come from the "
        "nearest surface" + ("" if target is None else "; raise the target to keep the seams"),
    )


def _note_missed_target(faces: int, target: int, minimum: int, handles: int, is_limited: bool) -> None:
    if abs(faces - target) <= 1:
        return
    options: tuple[str, ...] = ()
    if faces < target:
        reason = "all instances of a mesh lose their faces together"
    elif is_limited:
        reason = "fewer would exceed {optimize_max_error_mm}"
        options = ("optimize_max_error_mm",)
    elif minimum > target:
        reason = "its separate bodies need more faces to stay closed"
    elif target < minimum + FACES_PER_HANDLE * handles:
        noun = format_count(handles, "through hole or handle needs", "through holes and handles need")
        reason = f"its {noun} more faces"
    else:
        options = ("repair",)
        reason = "fewer would tear surfaces or change outlines; use {repair} if the model is open"
    note(
        "target_faces_missed",
        f"result has {faces} faces instead of {target}: {reason}",
        options=options,
        faces=faces,
        target=target,
    )
