"""Removal of shells that no print needs: inner walls, and small shells that float beside the others."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.repair.inner_walls import find_inner_walls
from meshhub.builtin_plugins.repair.orient import measure_shell_volumes
from meshhub.builtin_plugins.repair.passes import repair_surface
from meshhub.builtin_plugins.repair.patch_colors import divide_new_faces
from meshhub.builtin_plugins.repair.validity import check_as_file
from meshhub.builtin_plugins.repair.welded_mesh import WeldedMesh, to_mesh, weld_mesh
from meshhub.errors import format_count, format_number
from meshhub.model.notes import note
from meshhub.model.scene import Float64, Mesh
from meshhub.toolkit import topology
from meshhub.toolkit.containment import TURN, group_by_shell
from meshhub.toolkit.geometry import compacted, face_normals, transformed
from meshhub.toolkit.nesting import measure_depths

MAX_FLOATING_DIAGONAL_RATIO = 0.05
"""Diagonal of a floating shell per diagonal of its part: 4 mm of 80 mm."""

MAX_FLOATING_VOLUME_RATIO = 0.001
"""Volume of a floating shell per volume of its part."""

MAX_BED_GAP_RATIO = 0.01
"""Distance from the lowest point of the part, per diagonal of a shell, up to which the shell stands on the bed."""

MAX_CAP_RATIO = 0.05
"""Area of the faces that close pin-holes per area of the outer wall; larger openings are not pin-holes."""

MIN_VOID_RATIO = 0.1
"""Volume of the voids per volume of the part, from which a second wall is around them. Voids behind narrow openings of
three real parts have 0.7 to 4.5 %."""

MIN_SERIES_COUNT = 3
"""Equal shells that are parts of a kit; crumbs differ from each other."""

MAX_SERIES_DIFFERENCE = 1e-3
"""Relative difference of the volumes of equal shells, which have as many faces."""


def remove_inner_walls(mesh: Mesh, farthest: float, tally: Counter[str], name: str) -> Mesh:
    """Remove the walls that pin-holes join to the surface, and close the pin-holes.

    Args:
        mesh: Repaired mesh.
        farthest: Largest absolute coordinate of any placed instance, in the unit of the mesh.
        tally: Counts the removed faces.
        name: Name of the part in notes.
    Returns:
        The mesh itself if it has no such walls, or if the outer wall alone would not be valid or hardly larger.
    """
    surface = weld_mesh(mesh)[0]
    before = check_as_file(surface.points, surface.faces)
    if not before.valid:
        return mesh
    is_inner = find_inner_walls(surface)
    if not is_inner.any():
        return mesh
    outer = surface.keep_faces(~is_inner)
    result = repair_surface(outer, topology.edges(outer.faces), farthest)
    new = ~result.surface.is_original
    areas = np.linalg.norm(face_normals(result.surface.points, result.surface.faces), axis=1)
    if result.sheets or not result.check.valid or result.check.volume <= before.volume:
        problem = "the outer wall alone would not be closed"
    elif areas[new].sum() > MAX_CAP_RATIO * areas.sum():
        problem = "openings wider than pin-holes lead to them"
    elif result.check.volume < (1 + MIN_VOID_RATIO) * before.volume:
        return mesh
    else:
        tally["inner_faces_removed"] += int(is_inner.sum())
        return to_mesh(divide_new_faces(result.surface, mesh), mesh)
    note(
        "inner_walls_left",
        f"Part {name} has inner walls that were left, because {problem}; use {{repair_wrap_mm}}.",
        options=("repair_wrap_mm",),
        name=name,
    )
    return mesh


def remove_small_shells(mesh: Mesh, diagonal: float, tally: Counter[str]) -> Mesh:
    """Remove the shells with a smaller diagonal; the largest shell stays.

    Args:
        mesh: Repaired mesh.
        diagonal: Diagonal of the bounding box below which a shell is removed, in the unit of the mesh.
    Returns:
        The mesh itself if no shell is removed.
    """
    surface = weld_mesh(mesh)[0]
    count, label = topology.shells(surface.faces)
    shells = group_by_shell(surface.points @ TURN.T, surface.faces, label, count)
    size = np.linalg.norm(shells.high - shells.low, axis=1)
    is_small = size < diagonal
    is_small[size.argmax()] = False
    tally["fragments_removed"] += int(is_small.sum())
    return mesh if not is_small.any() else _keep_faces(mesh, ~is_small[label])


def _keep_faces(mesh: Mesh, kept: NDArray[np.bool_]) -> Mesh:
    material = None if mesh.face_material is None else mesh.face_material[kept]
    return compacted(replace(mesh, faces=mesh.faces[kept], face_material=material))


def make_solid(mesh: Mesh, matrix: Float64, tally: Counter[str], name: str) -> Mesh:
    """Remove the shells inside of closed ones, and the small ones that touch no other and do not stand on the bed.

    Args:
        mesh: Repaired mesh.
        matrix: (4, 4) matrix of the part, in millimeters with Z up.
        tally: Counts the removed shells.
        name: Name of the part in notes.
    Returns:
        The mesh itself if no shell is removed.
    """
    surface = weld_mesh(mesh)[0]
    mesh_edges = topology.edges(surface.faces)
    count, label = topology.shells(surface.faces, mesh_edges)
    if count < 2:
        return mesh
    surface = replace(surface, shell=label)
    is_closed = np.ones(count, np.bool_)
    is_closed[label[mesh_edges.order[mesh_edges.start[mesh_edges.size == 1]] // 3]] = False
    volume = np.abs(measure_shell_volumes(surface))
    is_inner = measure_depths(surface.points, surface.faces, label, is_closed, volume) > 0
    is_floating = ~is_inner & _find_floating_shells(surface, is_closed, volume, matrix[2, :3])
    tally.update(inner_shells_removed=int(is_inner.sum()), floating_shells_removed=int(is_floating.sum()))
    if is_floating.any():
        _note_floating_shells(surface, is_floating, matrix, name)
    kept = ~(is_inner | is_floating)[label]
    return mesh if kept.all() else _keep_faces(mesh, kept)


def _note_floating_shells(surface: WeldedMesh, is_floating: NDArray[np.bool_], matrix: Float64, name: str) -> None:
    """Say how many shells (s,) are removed, and how large the largest one is and where."""
    shells = group_by_shell(
        transformed(surface.points, matrix) @ TURN.T, surface.faces, surface.shell, surface.shell_count
    )
    size = np.where(is_floating, np.linalg.norm(shells.high - shells.low, axis=1), 0)
    largest, count = int(size.argmax()), int(is_floating.sum())
    place = ((shells.low[largest] + shells.high[largest]) / 2).tolist()
    where = ", ".join(format_number(coordinate, 4) for coordinate in place)
    note(
        "floating_removed",
        f"removed {format_count(count, 'shell', 'shells')} that floated beside part {name}, up to "
        f"{format_number(size[largest], 3)} mm, the largest at ({where}); omit {{repair_solid}} to keep them",
        options=("repair_solid",),
        name=name,
        count=count,
        size=float(size[largest]),
    )


def _find_floating_shells(
    surface: WeldedMesh, is_closed: NDArray[np.bool_], volume: Float64, up: Float64
) -> NDArray[np.bool_]:
    """Return a mask (s,) of the small shells without a corner inside a large one; never all shells.

    Closed shells that stand on the bed, or of which there are several equal ones, are parts of a kit, such as pins.
    """
    shells = group_by_shell(surface.points, surface.faces, surface.shell, surface.shell_count)
    diagonal = np.linalg.norm(shells.high - shells.low, axis=1)
    size = float(np.linalg.norm(np.ptp(surface.points[np.unique(surface.faces)], axis=0)))
    is_small = (diagonal < MAX_FLOATING_DIAGONAL_RATIO * size) & (volume < MAX_FLOATING_VOLUME_RATIO * volume.sum())
    height = surface.points @ (up / np.linalg.norm(up))
    lowest = np.full(surface.shell_count, np.inf)
    np.minimum.at(lowest, np.repeat(surface.shell, 3), height[surface.faces.ravel()])
    stands = lowest <= lowest.min() + MAX_BED_GAP_RATIO * diagonal
    is_floating = is_small & ~(is_closed & (stands | _find_series(surface, volume)))
    for outer in np.flatnonzero(~is_small & is_closed).tolist():
        is_near = (shells.low < shells.high[outer]).all(axis=1) & (shells.high > shells.low[outer]).all(axis=1)
        for shell in np.flatnonzero(is_floating & is_near).tolist():
            corners = shells.corner[shells.begin[shell] : shells.begin[shell + 1]].reshape(-1, 3)
            is_floating[shell] = not shells.contains(outer, corners).any()
    return np.zeros_like(is_floating) if is_floating.all() else is_floating


def _find_series(surface: WeldedMesh, volume: Float64) -> NDArray[np.bool_]:
    """Return a mask (s,) of the shells of which there are several with as many faces and the same volume."""
    faces = np.bincount(surface.shell, minlength=surface.shell_count)
    order = np.lexsort((volume, faces))
    step = np.diff(volume[order]) > MAX_SERIES_DIFFERENCE * volume[order[1:]]
    series = np.cumsum(np.concatenate([[False], step | (np.diff(faces[order]) > 0)]))
    result = np.zeros(surface.shell_count, np.bool_)
    result[order] = np.bincount(series)[series] >= MIN_SERIES_COUNT
    return result
