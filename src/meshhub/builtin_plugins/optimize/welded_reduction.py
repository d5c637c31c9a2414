"""Reduction of one welded surface, with checks that the result is not torn, incomplete or inside out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import fast_simplification
import numpy as np

from meshhub.builtin_plugins.optimize import meshlab
from meshhub.model.scene import Float64, Int32
from meshhub.toolkit.geometry import weld
from meshhub.toolkit.meshlab import is_usable
from meshhub.toolkit.topology import EdgeStatistics, edge_statistics, edges, remove_degenerate_faces, shells

Triangles = tuple[Float64, Int32]
"""Points (n, 3) and faces (m, 3)."""

AGGRESSIVENESS_EXPONENT = 7.0
"""Exponent of fast-simplification's error threshold; below 7, it may stall above its target."""

LOW_AGGRESSIVENESS_EXPONENT = 5.0
"""Exponent for the second attempt; tears fewer surfaces, but may stall above its target."""

GOAL_FACTORS = (1.0, 1.15, 1.4, 2.0, 3.0, 5.0, 8.0)
"""Multiples of the goal, tried in this order until a result is valid."""

MIN_FACES_PER_BOUNDARY_EDGE_RATIO = 2.5
"""Minimum faces per edge of a boundary that is kept; with fewer, the surface between boundaries is distorted."""

MIN_FACES_PER_SHELL = 50
"""Faces per shell below which a goal is coarse, and may change much of the volume."""

MAX_COARSE_VOLUME_CHANGE_RATIO = 0.95
"""Share of the volume that a coarse reduction may change; a tetrahedron has 12 % of the volume of its ball."""

MAX_VOLUME_CHANGE_RATIO = 0.3
"""Share of the volume that a finer reduction may change; a larger change means that parts are lost."""

MAX_FAST_VOLUME_CHANGE_RATIO = 0.02
"""Share of the volume that the fast stage may change before the second stage, which cannot restore it."""

MIN_FAST_STAGE_FACES = 20_000
"""Faces up to which the second stage alone is fast enough."""

MAX_MESHLAB_FACES = 250_000
"""Maximum faces for the second stage, which takes 20 s for a million; larger surfaces use only the fast stage."""

MAX_MEAN_CROWDING = 40
"""Maximum sum of squared face counts around points, per face; even meshes have about 18."""

MAX_CROWDING = 2_000_000
"""Extra sum of squared face counts around points; the second stage takes time in proportion to it."""

MAX_SEPARATE_SHELLS = 200
"""Maximum shells, largest first, to reduce one by one if they cannot be reduced together; bounds the time."""


class SurfaceState(NamedTuple):
    """Properties of a surface that a reduction must preserve.

    smallest: faces of the smallest shell
    inward:   number of shells with negative volume
    volume:   signed, in cubed units of the points
    """

    edges: EdgeStatistics
    shells: int
    smallest: int
    inward: int
    volume: float

    @property
    def closed(self) -> bool:
        """Whether every edge is on two faces that traverse it in opposite directions."""
        return self.edges == (0, 0, 0)


def simplify_fast(points: Float64, faces: Int32, goal: int, aggressiveness: float, keep_border: bool) -> Triangles:
    """Reduce a surface with fast-simplification; remove degenerate faces and unused points.

    Args:
        points: (n, 3) welded positions; the thresholds of the library suit a diagonal of about 100.
        faces: (m, 3) indices into `points`.
        goal: Number of faces to reach.
        aggressiveness: Exponent of the error threshold, which grows from pass to pass.
        keep_border: Whether the boundary stays unchanged.
    Source:
        Forstmann, "Fast Quadric Mesh Simplification", 2014.
    """
    # the library rejects read-only arrays
    points, faces = fast_simplification.simplify(
        points.copy(),
        faces.astype(np.int32),
        target_count=min(goal, len(faces)),
        agg=aggressiveness,
        preserve_border=keep_border,
    )
    return points, remove_degenerate_faces(faces).astype(np.int32, copy=False)


def measure_state(points: Float64, faces: Int32) -> SurfaceState:
    """Measure the edges, shells and volume of a surface over welded points."""
    mesh_edges = edges(faces)
    statistics = edge_statistics(faces, mesh_edges)
    count, labels = shells(faces, mesh_edges)
    if count == 0:
        return SurfaceState(statistics, 0, 0, 0, 0.0)
    a, b, c = (points[faces[:, corner]] for corner in range(3))
    volumes = np.bincount(labels, np.einsum("ij,ij->i", a, np.cross(b, c)), minlength=count) / 6
    sizes = np.bincount(labels, minlength=count)
    return SurfaceState(statistics, count, int(sizes.min()), int((volumes < 0).sum()), float(volumes.sum()))


def has_crowded_points(faces: Int32) -> bool:
    """Return whether so many faces meet in single points that the second stage would take minutes."""
    around = np.bincount(faces.ravel()).astype(np.float64)
    return float(around @ around) > MAX_MEAN_CROWDING * len(faces) + MAX_CROWDING


class WeldedReduction:
    """Reduction of one surface over welded points.

    points:    (n, 3) centered on the origin, with a diagonal of about 100, which suits fast-simplification
    faces:     (m, 3) indices into `points`
    placement: (4, 4) transform to the scene, to find out which points a float32 file would merge
    """

    def __init__(self, points: Float64, faces: Int32, placement: Float64) -> None:
        self.points, self.faces, self.placement = points, faces, placement
        self.state = measure_state(points, faces)
        self._own_float32_edges: EdgeStatistics | None = None
        self._stalled_at = 0
        self._min_with_border = int(MIN_FACES_PER_BOUNDARY_EDGE_RATIO * self.state.edges.boundary)

    @property
    def min_faces(self) -> int:
        """The minimum number of faces: a tetrahedron for each shell of a surface without a boundary."""
        return min(len(self.faces), 2 if self.state.edges.boundary else 4 * self.state.shells)

    def reduce(self, goal: int) -> Triangles:
        """Reduce the surface to `goal` faces; if a valid result needs more, to as few as possible.

        An open surface accepts the least damaged result if no result is undamaged. A closed one stays unchanged.
        """
        if goal >= len(self.faces):
            return self.points, self.faces
        best: Triangles | None = None
        least_damaged: tuple[int, Triangles] | None = None
        for factor in GOAL_FACTORS:
            target = max(int(goal * factor), self.min_faces)
            if target >= (len(self.faces) if best is None else len(best[1])):
                break
            any_damaged = False
            for result in self._attempt(target):
                damage = self.measure_damage(result, goal)
                any_damaged |= damage > 0
                if damage and len(result[1]) and (least_damaged is None or damage < least_damaged[0]):
                    least_damaged = damage, result
                if damage == 0 and (best is None or len(result[1]) < len(best[1])):
                    best = result
                if damage == 0 and len(result[1]) <= target + 1:
                    return result if factor == 1 else self._compare_by_shells(result, goal)
            if not any_damaged or not self.state.closed:
                break
        if best is None and not self.state.closed and least_damaged is not None:
            return least_damaged[1]
        return self._compare_by_shells(best or (self.points, self.faces), goal)

    def _attempt(self, goal: int) -> Iterator[Triangles]:
        """Yield reductions to `goal`, the best method first; the caller stops at the first valid one."""
        keep_border = self.state.edges.boundary > 0
        if is_usable():
            base = self._reduce_partly(goal, keep_border)
            if len(base[1]) <= MAX_MESHLAB_FACES and not has_crowded_points(base[1]):
                yield self._collapse_edges(base, goal)
                yield self._collapse_edges(base, goal, moves_points=False)
        for aggressiveness in (AGGRESSIVENESS_EXPONENT, LOW_AGGRESSIVENESS_EXPONENT):
            if self._stalled_at <= goal:
                target = max(goal, self._min_with_border)
                result = simplify_fast(self.points, self.faces, target, aggressiveness, keep_border)
                if len(result[1]) > goal + 1:
                    self._stalled_at = len(result[1])
                yield result

    def _reduce_partly(self, goal: int, keep_border: bool) -> Triangles:
        """Reduce to twice the goal with the fast stage; if that damages the surface, reduce it less or not at all."""
        if len(self.faces) <= max(MIN_FAST_STAGE_FACES, 3 * goal):
            return self.points, self.faces
        for times, aggressiveness in ((2, AGGRESSIVENESS_EXPONENT), (4, LOW_AGGRESSIVENESS_EXPONENT)):
            target = max(times * goal, self._min_with_border, times * MIN_FAST_STAGE_FACES // 2)
            if target < len(self.faces):
                result = simplify_fast(self.points, self.faces, target, aggressiveness, keep_border)
                if self.measure_damage(result, goal, MAX_FAST_VOLUME_CHANGE_RATIO) == 0:
                    return result
        return self.points, self.faces

    def _collapse_edges(self, base: Triangles, goal: int, moves_points: bool = True) -> Triangles:
        if goal >= len(base[1]):
            return base
        points, faces = meshlab.collapse_edges(*base, goal, moves_points)
        return points, remove_degenerate_faces(faces)

    def measure_damage(self, result: Triangles, goal: int, max_volume_change: float = MAX_VOLUME_CHANGE_RATIO) -> int:
        """Count the defects that a reduction added.

        Args:
            result: Reduced surface, in the frame of `points`.
            goal: Requested number of faces.
            max_volume_change: Share of the volume that may change.
        Returns:
            0 if the result is as valid as the surface was; larger for more defects.
        """
        points, faces = result
        if len(faces) == 0:
            return 1 << 40
        after, before = measure_state(points, faces), self.state
        damage = _count_added(after.edges, before.edges)
        damage += 2 * len(faces) < min(goal, len(self.faces))
        if before.edges.boundary == 0:
            damage += abs(after.shells - before.shells) + (after.smallest < min(4, before.smallest))
        if before.closed:
            damage += abs(after.inward - before.inward)
            is_coarse = goal < MIN_FACES_PER_SHELL * before.shells
            max_change = MAX_COARSE_VOLUME_CHANGE_RATIO if is_coarse else max_volume_change
            damage += abs(after.volume - before.volume) > max_change * abs(before.volume)
        return damage or self._measure_float32_damage(points, faces)

    def _measure_float32_damage(self, points: Float64, faces: Int32) -> int:
        """Count the invalid edges that appear only in a float32 file, beyond those that the surface had there."""
        after = self._float32_edges(points, faces)
        if _count_added(after, self.state.edges) == 0:
            return 0
        if self._own_float32_edges is None:
            self._own_float32_edges = self._float32_edges(self.points, self.faces)
        return _count_added(after, self._own_float32_edges)

    def _float32_edges(self, points: Float64, faces: Int32) -> EdgeStatistics:
        """Return the edge statistics of the placed surface as an STL file would store it."""
        placed = (points @ self.placement[:3, :3].T + self.placement[:3, 3]).astype(np.float32)
        return edge_statistics(remove_degenerate_faces(weld(placed)[1][faces]))

    def _compare_by_shells(self, best: Triangles, goal: int) -> Triangles:
        """Return the best result, or the result of reducing each shell separately if it has fewer faces."""
        if self.state.shells < 2 or not self.state.closed:
            return best
        by_shells = self._reduce_by_shells(goal)
        return by_shells if len(by_shells[1]) < len(best[1]) else best

    def _reduce_by_shells(self, goal: int) -> Triangles:
        """Reduce each shell to its share of the goal; shells that cannot be reduced stay unchanged."""
        count, labels = shells(self.faces)
        order = np.argsort(labels, kind="stable")
        begin = np.searchsorted(labels[order], np.arange(count + 1))
        sizes = np.diff(begin)
        chosen = np.argsort(-sizes, kind="stable")[:MAX_SEPARATE_SHELLS]
        kept = np.ones(len(self.faces), np.bool_)
        points, faces = [self.points], []
        offset = len(self.points)
        budget = goal - (sizes.sum() - sizes[chosen].sum())
        share = max(budget, 0) / sizes[chosen].sum()
        for shell in chosen:
            own = order[begin[shell] : begin[shell + 1]]
            used, corners = np.unique(self.faces[own], return_inverse=True)
            reduction = WeldedReduction(self.points[used], corners.reshape(-1, 3).astype(np.int32), self.placement)
            shell_points, shell_faces = reduction.reduce(max(4, int(share * len(own))))
            kept[own] = False
            points.append(shell_points)
            faces.append(shell_faces + np.int32(offset))
            offset += len(shell_points)
        return np.concatenate(points), np.concatenate([self.faces[kept], *faces]).astype(np.int32)


def _count_added(after: EdgeStatistics, before: EdgeStatistics) -> int:
    return sum(max(0, now - allowed) for now, allowed in zip(after, before, strict=True))
