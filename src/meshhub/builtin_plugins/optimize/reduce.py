"""Reducing a scene: how many faces each mesh may keep, and what is told about it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from meshhub.builtin_plugins.optimize import OptimizeOptions, meshlab
from meshhub.builtin_plugins.optimize.decimate import Reduction
from meshhub.builtin_plugins.optimize.transfer import carried
from meshhub.notes import did, note
from meshhub.scene import Scene

_HALVINGS = 60


def run(scene: Scene, options: OptimizeOptions) -> Scene:
    """The scene with `optimize_target_faces` triangles, instances counted, or as near as topology allows.

    A mesh is reduced once, however often it is placed. What was watertight stays watertight; materials,
    colours and texture coordinates are carried over from the surface as it was, normals are dropped.
    """
    target = options.optimize_target_faces
    if target is None:
        return scene
    before = scene.face_count
    if before <= target:
        note("already_below_target", f"the model has {before} faces, not more than {target}: none was taken away")
        did(faces_before=before, faces_after=before)
        return scene
    uses = Counter(part.mesh for part in scene.parts)
    places = {part.mesh: part.transform for part in reversed(scene.parts)}
    jobs = {index: Reduction(scene.meshes[index], places[index]) for index in uses if len(scene.meshes[index].faces)}
    # the largest that is placed once comes last, and makes up for what the others could not keep to
    order = sorted(jobs, key=lambda index: (uses[index] == 1, uses[index] * jobs[index].size, index))
    times = np.array([uses[index] for index in order], np.float64)
    sizes = np.array([jobs[index].size for index in order], np.float64)
    least = np.array([jobs[index].least for index in order], np.float64)
    goals = _shares(sizes, least, times, target)
    weights = times * sizes
    remaining = np.cumsum(weights[::-1])[::-1]
    meshes = list(scene.meshes)
    carry = 0.0
    approximate = False
    for place, index in enumerate(order):
        job = jobs[index]
        wanted = goals[place] + carry * weights[place] / remaining[place] / times[place]
        wanted = max(wanted, goals[place] / 2, least[place])
        result = job.run(int(min(sizes[place], np.floor(wanted + 1e-6))))
        carry += times[place] * (goals[place] - len(result.faces))
        if result.faces is job.mesh.faces:
            continue
        meshes[index], seams_moved = carried(job.mesh, result)
        approximate |= seams_moved
    # all lose their normals, so that the whole scene is shaded alike
    made = replace(scene, meshes=tuple(replace(mesh, normals=None) for mesh in meshes))
    _tell(made.face_count, target, sum(times * least), approximate)
    did(faces_before=before, faces_after=made.face_count)
    return made


def _shares(sizes: np.ndarray, least: np.ndarray, times: np.ndarray, target: int) -> np.ndarray:
    """How many faces each mesh may keep: one share of its own for all, but for those that need more to stay closed."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        share = (low + high) / 2
        if float(times @ np.clip(share * sizes, least, sizes)) > target:
            high = share
        else:
            low = share
    return np.clip(low * sizes, least, sizes)


def _tell(after: int, target: int, least: float, approximate: bool) -> None:
    if approximate:
        note(
            "seams_approximated",
            "materials, colours or texture coordinates were carried over from the nearest surface, because their "
            "seams alone have more faces than were asked for; ask for more faces to keep the seams",
        )
    if abs(after - target) <= 1:
        return
    if after < target:
        reason = "parts that are placed several times lose their faces together"
    elif least > target:
        reason = "its separate bodies need more to stay closed"
    else:
        reason = (
            "a further reduction would have torn its surfaces or eaten their outlines; add 'repair' if they are open"
        )
        if not meshlab.available():
            reason += "; with the extra 'meshlab' (pip install 'meshhub[meshlab]') less is often possible"
    note("target_faces_missed", f"{after} faces are left instead of {target}: {reason}")
