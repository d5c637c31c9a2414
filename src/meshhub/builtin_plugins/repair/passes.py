"""Repair passes: the steps that turn a defective surface into a valid one, in their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from meshhub.builtin_plugins.repair import clean, fragments, holes, orient, split
from meshhub.builtin_plugins.repair.touching import find_inverted_bodies
from meshhub.builtin_plugins.repair.validity import FileCheck, check_as_file
from meshhub.builtin_plugins.repair.welded_mesh import WeldedMesh, reweld
from meshhub.model.progress import track
from meshhub.toolkit import topology
from meshhub.toolkit.fragments import MAX_FEW_FACES
from meshhub.toolkit.geometry import signed_volume
from meshhub.toolkit.pairing import pair_half_edges
from meshhub.toolkit.topology import Edges, Index

MAX_PASSES = 3
"""Passes; nearly every mesh needs one. Bounds the time for the others."""


class RepairResult(NamedTuple):
    """Result of the best pass: the surface, its sheets left open, its check, and the counted actions so far."""

    surface: WeldedMesh
    sheets: int
    check: FileCheck
    counts: Counter[str]


@dataclass(eq=False)
class RepairState:
    """Surface during a pass.

    mesh_edges: edges of `surface`; kept up to date until the half-edges are paired
    farthest:   largest absolute coordinate of any placed instance, in the unit of the mesh
    counts:     actions of all passes, by the name of their figure
    half_a, half_b: (p,) pairs of half-edges, from the step that pairs them on
    sheets:     number of shells left open on purpose
    """

    surface: WeldedMesh
    mesh_edges: Edges
    farthest: float
    counts: Counter[str]
    half_a: Index = field(default_factory=lambda: np.empty(0, np.intp))
    half_b: Index = field(default_factory=lambda: np.empty(0, np.intp))
    sheets: int = 0

    def replace_faces(self, surface: WeldedMesh, figure: str, count: int) -> None:
        """Set the surface after a step that changed faces `count` times, and its edges."""
        self.surface = surface
        self.counts[figure] += count
        if count:
            self.mesh_edges = topology.edges(surface.faces)


def remove_degenerate_faces(state: RepairState) -> None:
    """Remove the faces that use a point twice."""
    surface, count = clean.remove_degenerate_faces(state.surface)
    state.replace_faces(surface, "degenerate_faces_removed", count)


def remove_duplicate_faces(state: RepairState) -> None:
    """Remove the faces over the same three points as another one."""
    surface, count = clean.remove_duplicate_faces(state.surface, state.mesh_edges)
    state.replace_faces(surface, "duplicate_faces_removed", count)


def weld_cracks(state: RepairState) -> None:
    """Weld border points that are nearly equal."""
    surface, count = clean.weld_cracks(state.surface, state.mesh_edges)
    state.replace_faces(surface, "cracks_welded", count)


def pair_and_orient(state: RepairState) -> None:
    """Pair the half-edges, and flip faces so that partners have opposite directions."""
    surface, mesh_edges = state.surface, state.mesh_edges
    half_a, half_b = _without_folds(surface, *mesh_edges.pairs())
    flip, conflict = orient.find_flips(surface.faces, half_a, half_b)
    if (mesh_edges.size > 2).any():
        # pairing by angle needs faces that are mostly outward
        surface = surface.flip_faces(flip)
        if signed_volume(surface.points, surface.faces) < 0:
            surface = surface.flip_faces(np.ones(len(flip), np.bool_))
        half_a, half_b = _pair_by_angle(surface)
        flip, conflict = orient.find_flips(surface.faces, half_a, half_b)
    state.surface = surface.flip_faces(flip)
    half_a, half_b = half_a[~conflict], half_b[~conflict]
    if flip.any():
        half_a, half_b = (np.where(flip[half // 3], half // 3 * 3 + (2 - half % 3), half) for half in (half_a, half_b))
    inverted = find_inverted_bodies(state.surface.points, state.surface.faces, half_a, half_b)
    if inverted.any():
        state.surface = state.surface.flip_faces(inverted)
        half_a, half_b = _pair_opposite(state.surface)
    state.half_a, state.half_b = half_a, half_b


def _pair_by_angle(surface: WeldedMesh) -> tuple[Index, Index]:
    """Pair the half-edges of faces that are mostly outward."""
    pairs = pair_half_edges(surface.points, surface.faces, topology.edges(surface.faces))
    return _without_folds(surface, *pairs)


def _pair_opposite(surface: WeldedMesh) -> tuple[Index, Index]:
    """Pair the half-edges again after flips, without the pairs that have the same direction now."""
    half_a, half_b = _pair_by_angle(surface)
    begin, _ = topology.half_edges(surface.faces)
    is_opposite = begin[half_a] != begin[half_b]
    return half_a[is_opposite], half_b[is_opposite]


def _without_folds(surface: WeldedMesh, half_a: Index, half_b: Index) -> tuple[Index, Index]:
    """Return the pairs without those of two faces over the same points: the sides of a wall belong to two bodies."""
    a, b, c = surface.faces.T
    total = a.astype(np.int64) + b + c
    may_fold = np.flatnonzero(total[half_a // 3] == total[half_b // 3])
    corners = [np.sort(surface.faces[half[may_fold] // 3], axis=1) for half in (half_a, half_b)]
    is_fold = np.zeros(len(half_a), np.bool_)
    is_fold[may_fold] = (corners[0] == corners[1]).all(axis=1)
    return half_a[~is_fold], half_b[~is_fold]


def remove_fragments(state: RepairState) -> None:
    """Remove the stray fragments."""
    state.surface, count, (state.half_a, state.half_b) = fragments.remove_fragments(
        state.surface, state.half_a, state.half_b
    )
    state.counts["fragments_removed"] += count


def split_points(state: RepairState) -> None:
    """Give each fan a point of its own."""
    state.surface, count = split.split_points(state.surface, state.half_a, state.half_b)
    state.counts["vertices_split"] += count


def split_edges(state: RepairState) -> None:
    """Split the edges that are still on more than two faces."""
    state.surface, count = split.split_edges(state.surface)
    state.counts["edges_split"] += count


def remove_flat_shells(state: RepairState) -> None:
    """Remove the closed shells without volume."""
    state.surface, count = fragments.remove_flat_shells(state.surface)
    state.counts["fragments_removed"] += count


def fill_holes(state: RepairState) -> None:
    """Close the holes, except in sheets."""
    state.surface, count, state.sheets = holes.fill_holes(state.surface)
    state.counts["holes_closed"] += count
    # scraps inside of a hole, whose patch is their back
    state.surface, count = fragments.remove_flat_shells(state.surface, MAX_FEW_FACES)
    state.counts["fragments_removed"] += count


def orient_shells(state: RepairState) -> None:
    """Orient bodies outward and cavities inward."""
    state.surface = orient.orient_shells(state.surface)


def separate_copies(state: RepairState) -> None:
    """Move points that share a position slightly apart."""
    state.surface, count = split.separate_copies(state.surface, state.farthest)
    if count:
        state.counts["vertices_moved"] += count
        state.surface = orient.orient_shells(state.surface)  # the move may have inverted a very thin shell


STEPS: tuple[Callable[[RepairState], None], ...] = (
    remove_degenerate_faces,
    remove_duplicate_faces,
    weld_cracks,
    pair_and_orient,
    remove_fragments,
    split_points,
    split_edges,
    remove_flat_shells,
    fill_holes,
    orient_shells,
    separate_copies,
)
"""The steps of one pass. Each relies on the ones before: holes, for example, need points with one fan each."""


def repair_surface(surface: WeldedMesh, mesh_edges: Edges, farthest: float) -> RepairResult:
    """Repair a surface in up to MAX_PASSES passes.

    Args:
        surface: Defective surface.
        farthest: Largest absolute coordinate of any placed instance, in the unit of the mesh.
    Returns:
        The result with the fewest defects.
    """
    best: RepairResult | None = None
    counts: Counter[str] = Counter()
    for _ in track(range(MAX_PASSES)):
        state = RepairState(surface, mesh_edges, farthest, counts)
        for step in track(STEPS):
            step(state)
            if len(state.surface.faces) == 0:
                break
        check = check_as_file(state.surface.points, state.surface.faces)
        if best is None or check.defects < best.check.defects:
            best = RepairResult(state.surface, state.sheets, check, counts.copy())
        if check.valid or state.sheets or len(state.surface.faces) == 0:
            break
        surface = reweld(state.surface)
        mesh_edges = topology.edges(surface.faces)
    assert best is not None
    return best
