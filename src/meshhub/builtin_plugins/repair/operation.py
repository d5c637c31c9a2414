"""Repair every mesh of a scene, and report every action."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from meshhub.builtin_plugins.repair import RepairOptions, meshlab
from meshhub.builtin_plugins.repair.batch_validity import measure_valid_meshes
from meshhub.builtin_plugins.repair.contacts import separate_parts
from meshhub.builtin_plugins.repair.intersections import unite_bodies
from meshhub.builtin_plugins.repair.orient import measure_closed_volume
from meshhub.builtin_plugins.repair.passes import RepairResult, repair_surface
from meshhub.builtin_plugins.repair.patch_colors import divide_new_faces
from meshhub.builtin_plugins.repair.solid import make_solid, remove_inner_walls, remove_small_shells
from meshhub.builtin_plugins.repair.validity import FileCheck, check_surface
from meshhub.builtin_plugins.repair.welded_mesh import to_mesh, weld_mesh
from meshhub.builtin_plugins.repair.wrap import wrap_mesh
from meshhub.errors import format_count, format_number
from meshhub.model.destination import get_destination
from meshhub.model.notes import did, note
from meshhub.model.progress import advance, portion, track
from meshhub.model.scene import Float64, Mesh, Part, Scene
from meshhub.toolkit import topology
from meshhub.toolkit.geometry import bounds, extremes, transformed, welded

FIGURES = (
    "vertices_merged",
    "degenerate_faces_removed",
    "duplicate_faces_removed",
    "cracks_welded",
    "faces_flipped",
    "fragments_removed",
    "vertices_split",
    "edges_split",
    "vertices_moved",
    "holes_closed",
    "faces_added",
)
"""Figures that count actions, reported even if they are 0."""

MAX_SHRINKING_RATIO = 0.99
"""Ratio of a side of a part after its repair to that before, below which the part has lost something visible."""

FIRST_RATIO, BODIES_RATIO = 0.5, 0.8
"""Shares of the work on a part at which the second stage and changes of bodies begin, which report no progress."""

SOLID_FIGURES = ("inner_faces_removed", "inner_shells_removed", "floating_shells_removed")
"""Figures of `repair_solid`."""


class RepairedMesh(NamedTuple):
    """Mesh after its repair, and its bodies and volume before and after."""

    mesh: Mesh
    before: tuple[int, float]
    after: tuple[int, float]


def run(scene: Scene, options: RepairOptions) -> Scene:
    """Repair every mesh of the scene.

    Args:
        scene: Millimeters, Z up.
        options: Additional actions, in this order: wrap, remove small shells, unite bodies, make solid.
    Returns:
        Repaired scene; instances stay shared, and a valid mesh stays the same object.
    Raises:
        ModelTooComplex: A part is too large for `repair_wrap_mm`.
    """
    placed: dict[int, list[Part]] = {}
    for part in scene.parts:
        placed.setdefault(part.mesh, []).append(part)
    tally: Counter[str] = Counter()
    before, after = [0, 0.0], [0, 0.0]
    meshes = list(scene.meshes)
    valid_volumes = measure_valid_meshes(scene.meshes)
    sizes = [len(scene.meshes[index].faces) for index in placed]
    for index, parts in track(placed.items(), sizes):
        mesh = scene.meshes[index]
        if len(mesh.faces) == 0:
            continue
        result = _wrap(mesh, parts, options, index)
        if result is None and np.isnan(valid_volumes[index]):
            result = repair_mesh(mesh, _find_farthest(mesh, parts), tally, _describe(mesh, parts, index))
        elif result is None:
            measure = (1, float(valid_volumes[index]))
            result = RepairedMesh(mesh, measure, measure)
        result = _change_bodies(scene, index, parts, result, options, tally)
        meshes[index] = result.mesh
        scale = sum(abs(float(np.linalg.det(part.transform[:3, :3]))) for part in parts)
        for total, bodies, volume in ((before, *result.before), (after, *result.after)):
            total[0] += bodies * len(parts)
            total[1] += volume * scale
    is_changed = any(mesh is not original for mesh, original in zip(meshes, scene.meshes, strict=True))
    repaired = replace(scene, meshes=tuple(meshes)) if is_changed else scene
    if get_destination().merges_parts and (
        len(scene.parts) > 1 or not np.array_equal(scene.parts[0].transform, np.eye(4))
    ):
        repaired, moved = separate_parts(repaired)
        tally["vertices_moved"] += moved
        is_changed = is_changed or moved > 0
    size = _measure_size(scene)
    did(
        **{name: tally[name] for name in (*FIGURES, *_list_figures(options))},
        bodies_before=before[0],
        bodies_after=after[0],
        volume_before=before[1],
        volume_after=after[1],
        size_before=size,
        size_after=_measure_size(repaired) if is_changed else size,
        meshes_repaired=tally["meshes_repaired"],
        watertight=0 < tally["meshes_invalid"] == tally["meshes_made_valid"],
    )
    if not is_changed and not tally["meshes_invalid"]:
        note("already_sound", "The model is valid; 'repair' left it unchanged.")
    return repaired


def _change_bodies(
    scene: Scene, index: int, parts: list[Part], result: RepairedMesh, options: RepairOptions, tally: Counter[str]
) -> RepairedMesh:
    """Apply the options beyond a plain repair to a repaired mesh, and measure it again if that changes it."""
    advance(BODIES_RATIO)
    original, mesh = scene.meshes[index], result.mesh
    name = _describe(original, parts, index)
    if options.repair_fragments_mm is not None:
        mesh = remove_small_shells(mesh, options.repair_fragments_mm / _find_scale(parts), tally)
    if options.repair_self_intersections:
        mesh = unite_bodies(mesh, tally, name, len(scene.materials))
    if options.repair_solid:
        matrix = parts[0].transform
        mesh = make_solid(mesh, matrix, tally, name)
        outer = remove_inner_walls(mesh, _find_farthest(original, parts), tally, name)
        # shells in the void between the walls are inside the outer wall now
        mesh = outer if outer is mesh else make_solid(outer, matrix, tally, name)
    if mesh is result.mesh:
        return result
    check = check_surface(weld_mesh(mesh)[0])
    return RepairedMesh(mesh, result.before, (check.bodies, check.volume))


def _wrap(mesh: Mesh, parts: list[Part], options: RepairOptions, index: int) -> RepairedMesh | None:
    """Wrap a mesh if `repair_wrap_mm` asks for it, and report the deviation; None if there is no valid wrap."""
    if options.repair_wrap_mm is None:
        return None
    name, scale = _describe(mesh, parts, index), _find_scale(parts)
    wrap = wrap_mesh(mesh, options.repair_wrap_mm / scale)
    if wrap is None:
        note(
            "not_wrapped",
            f"Part {name} cannot be wrapped with this {{repair_wrap_mm}}, and was repaired instead; use a larger one.",
            options=("repair_wrap_mm",),
            name=name,
        )
        return None
    rms, greatest = scale * wrap.rms, scale * wrap.greatest
    note(
        "wrapped",
        f"Part {name} is a new surface, {format_number(rms, 2)} mm from the model on average, at most "
        f"{format_number(greatest, 2)} mm; compare it with the model.",
        name=name,
        mean=float(rms),
        greatest=float(greatest),
    )
    did(wrap_deviation_rms_mm=rms, wrap_deviation_max_mm=greatest)
    before, after = (check_surface(weld_mesh(each)[0]) for each in (mesh, wrap.mesh))
    return RepairedMesh(wrap.mesh, (before.bodies, before.volume), (after.bodies, after.volume))


def _find_scale(parts: list[Part]) -> float:
    """Return the length in mm of one unit of a mesh in its largest instance."""
    return max(abs(float(np.linalg.det(part.transform[:3, :3]))) ** (1 / 3) for part in parts) or 1.0


def repair_mesh(mesh: Mesh, farthest: float, tally: Counter[str], name: str) -> RepairedMesh:
    """Repair one mesh, and write notes about the defects that remain.

    Args:
        mesh: Mesh with faces.
        farthest: Largest absolute coordinate of any placed instance, in the unit of the mesh.
        tally: Counts the actions.
        name: Name of the part in notes.
    """
    surface, merged = weld_mesh(mesh)
    initial = check_surface(surface)
    before = initial.bodies, initial.volume
    if initial.valid and not merged:
        return RepairedMesh(mesh, before, before)
    if initial.valid:
        tally.update(vertices_merged=merged, meshes_repaired=1)
        return RepairedMesh(to_mesh(surface, mesh), before, before)
    tally["meshes_invalid"] += 1
    with portion(0.0, FIRST_RATIO):
        result = repair_surface(surface, initial.edges, farthest)
    surface = result.surface
    if len(surface.faces) == 0:
        note("no_volume", f"Part {name} has only faces without area; give it a thickness to print it.", name=name)
        return RepairedMesh(mesh, before, before)
    surface = divide_new_faces(surface, mesh)
    is_flipped = surface.is_original & (surface.source == mesh.faces[surface.parent][:, [0, 2, 1]]).all(axis=1)
    counts = result.counts
    counts.update(
        vertices_merged=merged, faces_flipped=int(is_flipped.sum()), faces_added=int((~surface.is_original).sum())
    )
    if counts["fragments_removed"]:
        _note_large_strays(name, mesh, surface.points[surface.faces], counts["fragments_removed"])
    repaired = mesh
    if any(counts.values()):
        repaired = to_mesh(surface, mesh)
        tally.update(counts, meshes_repaired=1)
    return _finish(mesh, repaired, before, result, tally, name)


def _note_large_strays(name: str, mesh: Mesh, corners: Float64, removed: int) -> None:
    """Write a note if the part is smaller without the removed shells, which may have been deliberate."""
    before, after = (np.ptp(each.reshape(-1, 3), axis=0) for each in (mesh.vertices[mesh.faces], corners))
    ratios = np.divide(after, before, out=np.ones(3), where=before > 0)
    axis = int(ratios.argmin())
    if ratios[axis] < MAX_SHRINKING_RATIO:
        note(
            "strays_removed",
            f"Part {name} is {1 - ratios[axis]:.0%} smaller along {'XYZ'[axis]} without "
            f"{format_count(removed, 'stray shell', 'stray shells')}; omit {{repair}} to keep all of it.",
            options=("repair",),
            name=name,
            percent=round(100 * (1 - ratios[axis])),
            axis="XYZ"[axis],
            count=removed,
        )


def _finish(
    mesh: Mesh, repaired: Mesh, before: tuple[int, float], result: RepairResult, tally: Counter[str], name: str
) -> RepairedMesh:
    """Measure the repaired mesh; if it has defects, repair it with pymeshlab, or write notes about them."""
    bodies, volume = result.surface.shell_count, result.check.volume
    if result.sheets:
        volume = measure_closed_volume(result.surface)
        note(
            "open_surface",
            f"Part {name} is a sheet that encloses no volume, so it was left open; {{thicken_mm}} makes it a solid.",
            options=("thicken_mm",),
        )
    elif result.check.valid:
        tally["meshes_made_valid"] += 1
    else:
        advance(FIRST_RATIO)
        second = meshlab.repair_with_meshlab(mesh, repaired)
        if second is None:
            _write_notes(name, result.check)
        else:
            tally["meshes_made_valid"] += 1
            repaired, volume = second[0], second[1].volume
            bodies = topology.shells(welded(repaired)[1])[0]
            note(
                "second_stage",
                f"Part {name} was repaired by pymeshlab, because the built-in repair left defects.",
                name=name,
            )
    return RepairedMesh(repaired, before, (bodies, volume))


def _find_farthest(mesh: Mesh, parts: list[Part]) -> float:
    """Return the largest absolute coordinate of any placed instance, in the unit of the mesh."""
    low, high = extremes(mesh.vertices[mesh.faces.ravel()])
    corners = np.stack(np.meshgrid(*np.stack([low, high], axis=1)), axis=-1).reshape(-1, 3)
    farthest = float(np.abs(corners).max())
    for part in parts:
        scale = abs(float(np.linalg.det(part.transform[:3, :3]))) ** (1 / 3)
        if scale > 0:
            farthest = max(farthest, float(np.abs(transformed(corners, part.transform)).max()) / scale)
    return farthest


def _list_figures(options: RepairOptions) -> tuple[str, ...]:
    """Return the figures of the options beyond a plain repair."""
    solid = SOLID_FIGURES if options.repair_solid else ()
    return (*solid, "self_intersections_united") if options.repair_self_intersections else solid


def _describe(mesh: Mesh, parts: list[Part], index: int) -> str:
    """Return the name of a mesh for notes: quoted, or its number."""
    name = next((part.name for part in parts if part.name), "") or mesh.name
    return repr(name) if name else f"#{index + 1}"


def _measure_size(scene: Scene) -> list[float | str]:
    try:
        low, high = bounds(scene)
    except ValueError:
        return []
    return [float(side) for side in high - low]


def _write_notes(name: str, check: FileCheck) -> None:
    nonmanifold = check.nonmanifold + check.inconsistent
    if check.boundary:
        note(
            "not_closed",
            f"Part {name} could not be closed: "
            f"{format_count(int(check.boundary), 'boundary edge remains', 'boundary edges remain')}; "
            "repair it in a mesh editor.",
            name=name,
            count=int(check.boundary),
        )
    if nonmanifold:
        note(
            "not_manifold",
            f"Part {name} could not be made manifold: {format_count(int(nonmanifold), 'edge remains', 'edges remain')} "
            "that slicers interpret differently.",
            name=name,
            count=int(nonmanifold),
        )
    if not check.defects and check.volume <= 0:
        note("no_volume", f"Part {name} is closed but encloses no volume; give it a thickness to print it.", name=name)
