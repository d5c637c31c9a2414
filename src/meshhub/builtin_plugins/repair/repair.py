"""The operation itself: which mesh needs what, in which order, and what is told about it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from meshhub import topology
from meshhub.builtin_plugins.repair import RepairOptions, meshlab
from meshhub.builtin_plugins.repair.clean import without_cracks, without_degenerate, without_doubled
from meshhub.builtin_plugins.repair.holes import filled
from meshhub.builtin_plugins.repair.judge import Verdict, health, verdict
from meshhub.builtin_plugins.repair.orient import enclosed, outward, turns
from meshhub.builtin_plugins.repair.pairing import paired
from meshhub.builtin_plugins.repair.screen import sound_volumes
from meshhub.builtin_plugins.repair.split import apart, split_edges, split_points
from meshhub.builtin_plugins.repair.strays import without_strays
from meshhub.builtin_plugins.repair.surface import Surface, closed, opened, rewelded
from meshhub.geometry import bounds, signed_volume, transformed, welded
from meshhub.notes import did, note
from meshhub.scene import Mesh, Part, Scene
from meshhub.topology import Index

_PASSES = 3

_COUNTED = (
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


def run(scene: Scene, options: RepairOptions) -> Scene:  # noqa: ARG001  the shape of every operation
    """Repair every mesh of a scene; instances stay instances, and a sound mesh stays the same object."""
    placed: dict[int, list[Part]] = {}
    for part in scene.parts:
        placed.setdefault(part.mesh, []).append(part)
    tally: Counter[str] = Counter()
    before, after = [0, 0.0], [0, 0.0]
    meshes = list(scene.meshes)
    volumes = sound_volumes(scene.meshes)
    for index, parts in placed.items():
        mesh = scene.meshes[index]
        if len(mesh.faces) == 0:
            continue
        if np.isnan(volumes[index]):
            made = repair_mesh(mesh, _reach(mesh, parts), tally, _called(mesh, parts, index))
        else:
            made = Repaired(mesh, (1, float(volumes[index])), (1, float(volumes[index])))
        meshes[index] = made.mesh
        scale = sum(abs(float(np.linalg.det(part.transform[:3, :3]))) for part in parts)
        for total, bodies, volume in ((before, *made.before), (after, *made.after)):
            total[0] += bodies * len(parts)
            total[1] += volume * scale
    changed = any(one is not other for one, other in zip(meshes, scene.meshes, strict=True))
    repaired = replace(scene, meshes=tuple(meshes)) if changed else scene
    size = _size(scene)
    did(
        **{name: tally[name] for name in _COUNTED},
        bodies_before=before[0],
        bodies_after=after[0],
        volume_before=before[1],
        volume_after=after[1],
        size_before=size,
        size_after=_size(repaired) if changed else size,
        meshes_repaired=tally["meshes_repaired"],
    )
    if not changed and not tally["meshes_unsound"]:
        note("already_sound", "The model is sound; repair left it as it is.")
    return repaired


class Repaired(NamedTuple):
    """One mesh, repaired, and its bodies and volume before and after."""

    mesh: Mesh
    before: tuple[int, float]
    after: tuple[int, float]


class _Result(NamedTuple):
    surface: Surface
    sheets: int
    verdict: Verdict
    counts: Counter[str]


def repair_mesh(mesh: Mesh, reach: float, tally: Counter[str], name: str) -> Repaired:
    """Repair one mesh. What was done is counted in `tally`, what could not be is noted under the part's name.

    reach: the furthest coordinate of any placed instance, in the mesh's units.
    """
    surface, merged = opened(mesh)
    was = health(surface)
    before = was.bodies, was.volume
    if was.sound and not merged:
        return Repaired(mesh, before, before)
    if was.sound:
        tally.update(vertices_merged=merged, meshes_repaired=1)
        return Repaired(closed(surface, mesh), before, before)
    tally["meshes_unsound"] += 1
    result = _mended(surface, reach, was.edges)
    surface, now = result.surface, result.verdict
    if len(surface.faces) == 0:
        note("no_volume", f"{name} has only faces without area. Give it a thickness to print it.")
        return Repaired(mesh, before, before)
    turned = surface.own & (surface.source == mesh.faces[surface.parent][:, [0, 2, 1]]).all(axis=1)
    counts = result.counts
    counts.update(vertices_merged=merged, faces_flipped=int(turned.sum()), faces_added=int((~surface.own).sum()))
    made, bodies, volume = mesh, surface.shells, now.volume
    if any(counts.values()):
        made = closed(surface, mesh)
        tally.update(counts, meshes_repaired=1)
    if result.sheets:
        volume = enclosed(surface)
        note(
            "open_surface",
            f"{name} is a sheet: it has an outline and encloses nothing, so it was left open. "
            "Give it a thickness to print it.",
        )
    elif not now.right:
        bettered = meshlab.bettered(mesh, made)
        if bettered is not None:
            made, volume = bettered[0], bettered[1].volume
            bodies = topology.shells(welded(made)[1])[0]
            note("second_stage", f"{name} was repaired by pymeshlab, where meshhub's own repair left defects.")
        else:
            _tell(name, now)
    return Repaired(made, before, (bodies, volume))


def _mended(surface: Surface, reach: float, found: topology.Edges) -> _Result:
    """The best of a few passes; one is enough for nearly every mesh."""
    best: _Result | None = None
    counts: Counter[str] = Counter()
    for _ in range(_PASSES):
        surface, sheets = _one_pass(surface, reach, found, counts)
        now = verdict(surface.points, surface.faces)
        if best is None or now.defects < best.verdict.defects:
            best = _Result(surface, sheets, now, counts.copy())
        if now.right or sheets or len(surface.faces) == 0:
            break
        surface = rewelded(surface)
        found = topology.edges(surface.faces)
    assert best is not None
    return best


def _one_pass(surface: Surface, reach: float, found: topology.Edges, counts: Counter[str]) -> tuple[Surface, int]:
    """The recipe once, and how many shells it left open as sheets."""
    surface, count = without_degenerate(surface)
    counts["degenerate_faces_removed"] += count
    found = topology.edges(surface.faces) if count else found
    surface, count = without_doubled(surface, found)
    counts["duplicate_faces_removed"] += count
    found = topology.edges(surface.faces) if count else found
    surface, count = without_cracks(surface, found)
    counts["cracks_welded"] += count
    found = topology.edges(surface.faces) if count else found
    if len(surface.faces) == 0:
        return surface, 0
    surface, one, other = _agreed(surface, found)
    surface, count, (one, other) = without_strays(surface, one, other)
    counts["fragments_removed"] += count
    surface, count = split_points(surface, one, other)
    counts["vertices_split"] += count
    surface, count = split_edges(surface)
    counts["edges_split"] += count
    surface, count, sheets = filled(surface)
    counts["holes_closed"] += count
    surface = outward(surface)
    surface, count = apart(surface, reach)
    if count:
        counts["vertices_moved"] += count
        surface = outward(surface)  # a shell as thin as a hair may have turned over
    return surface, sheets


def _agreed(surface: Surface, found: topology.Edges) -> tuple[Surface, Index, Index]:
    """The surface wound alike on both sides of each pair of half-edges, and those pairs."""
    one, other = found.pairs()
    flip, conflict = turns(surface.faces, one, other)
    crowded = bool((found.size > 2).any())
    if crowded:
        # which faces bound one wedge of matter is asked of faces that look outward, by and large
        surface = surface.flip(flip)
        if signed_volume(surface.points, surface.faces) < 0:
            surface = surface.flip(np.ones(len(flip), np.bool_))
        found = topology.edges(surface.faces)
        one, other = paired(surface.points, surface.faces, found)
        flip, conflict = turns(surface.faces, one, other)
    turned = surface.flip(flip)
    one, other = one[~conflict], other[~conflict]
    if flip.any():
        one, other = (np.where(flip[half // 3], half // 3 * 3 + (2 - half % 3), half) for half in (one, other))
    return turned, one, other


def _reach(mesh: Mesh, parts: list[Part]) -> float:
    low, high = mesh.vertices[mesh.faces].min(axis=(0, 1)), mesh.vertices[mesh.faces].max(axis=(0, 1))
    corners = np.stack(np.meshgrid(*np.stack([low, high], axis=1)), axis=-1).reshape(-1, 3)
    furthest = float(np.abs(corners).max())
    for part in parts:
        scale = abs(float(np.linalg.det(part.transform[:3, :3]))) ** (1 / 3)
        if scale > 0:
            furthest = max(furthest, float(np.abs(transformed(corners, part.transform)).max()) / scale)
    return furthest


def _called(mesh: Mesh, parts: list[Part], index: int) -> str:
    name = next((part.name for part in parts if part.name), "") or mesh.name
    return f"Part {name!r}" if name else f"Mesh {index + 1}"


def _size(scene: Scene) -> list[float | str]:
    try:
        low, high = bounds(scene)
    except ValueError:
        return []
    return [float(side) for side in high - low]


def _tell(name: str, now: Verdict) -> None:
    awry = now.nonmanifold + now.inconsistent
    if now.boundary:
        note(
            "not_closed",
            f"{name} could not be closed: {now.boundary} boundary edges remain. Repair it in a mesh editor, "
            "or print it with care.",
        )
    if awry:
        note("not_manifold", f"{name} could not be made manifold: {awry} edges remain that no slicer can tell apart.")
    if not now.defects and now.volume <= 0:
        note("no_volume", f"{name} is closed and encloses no volume. Give it a thickness to print it.")
