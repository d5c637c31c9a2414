"""Reduction of a surface by collapsing edges in the order of their quadric error, many at once.

One queue serves all bodies of a surface. Each round collapses cheap edges that share no face, so that none of them
changes the conditions of another. Numpy only; no Python loop over faces.

Source:
    Garland and Heckbert, "Surface simplification using quadric error metrics", SIGGRAPH 1997.
"""

from __future__ import annotations

import copy
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.model.scene import Float64, Int32
from meshhub.toolkit.geometry import IntIndex, face_normals, unit_vectors
from meshhub.toolkit.topology import Index, components, edges, half_edges

Bool = NDArray[np.bool_]

_TINY = 1e-300
"""Avoids a division by zero for degenerate faces."""

CANDIDATE_RATIO = 0.15
"""Share of the edges, cheapest first, that a round may collapse; with more, the order matters less."""

MAX_REMOVED_RATIO = 0.3
"""Share of the excess of faces that a round may remove; with a larger share, the order near the goal matters less."""

MIN_BATCH_COUNT = 64
"""Edges that a round may collapse even if that is more than its share; bounds the number of rounds."""

BOUNDARY_WEIGHT_RATIO = 100.0
"""Weight of a plane through a boundary edge relative to that of a face; with less, open surfaces shrink."""

POINT_WEIGHT_RATIO = 1e-7
"""Weight of the distance to the original points relative to that to planes; spreads points evenly where it is flat."""

MAX_MOVE_RATIO = 1.0
"""Maximum distance of a new point from the middle of its edge, as a multiple of the length of the edge."""

EXTREME_RATIO = 1e-6
"""Distance from the box of its body, per diagonal, up to which a point keeps a side of the box in place."""

NOISE_RATIO = 0.1
"""Share by which the costs of edges vary in the selection: where costs ascend along a row, few edges would be local
minima."""

STALL_ROUNDS = 64
"""Rounds that together must remove a share of the excess; bounds the time where almost every collapse is rejected."""

MIN_PROGRESS_RATIO = 0.02
"""Share of the excess of faces that `STALL_ROUNDS` rounds remove at least; with less, the goal counts as missed."""

SELECTIONS_PER_ROUND = 3
"""Passes that look for further independent edges in a round."""

MIN_COSINE = 0.1
"""Minimum cosine of the angle by which a collapse may turn a face, as long as the goal can be reached so."""

MIN_QUALITY_RATIO = 0.001
"""Quality (1: equilateral) below which a collapse may not bring a face; prevents degenerate faces."""

MAX_VOLUME_LOSS_RATIO = 0.8
"""Share of the volume of its body that a collapse may remove; with more, a small body may turn inside out."""

CHUNK_SIZE = 1 << 15
"""Edges whose costs are computed together; their columns fit into the cache."""

_UNTAKEN = np.iinfo(np.int32).max


class Candidates(NamedTuple):
    """Edges that share no face, and the faces around them.

    edge:    (k,) positions in the edge list, by ascending cost
    a, b:    (k,) end points
    ring:    (r,) faces on either end point
    own:     (r,) position of the edge in `edge`, for each face of the ring
    on_a:    (r,) whether the face is on end point `a`
    on_b:    (r,) whether the face is on end point `b`
    removed: (k,) number of faces on both end points, which a collapse removes
    """

    edge: IntIndex
    a: Int32
    b: Int32
    ring: IntIndex
    own: Int32
    on_a: Bool
    on_b: Bool
    removed: IntIndex


# why edges collapse in rounds, and what was measured: docs/decisions/0039-reduction.md
class EdgeCollapse:
    """Surface that is reduced edge by edge.

    points:   (n, 3) current positions; those of points without faces are obsolete
    faces:    (m, 3) current faces
    """

    def __init__(
        self,
        points: Float64,
        faces: Int32,
        *,
        fixed: Bool,
        scale: Float64 | None = None,
        uses: Int32 | None = None,
        is_careful: bool = False,
        weighs_area: bool = True,
    ) -> None:
        """Measure the error of all edges.

        Args:
            points: (n, 3) welded positions, each body near the origin.
            faces: (m, 3) indices into `points`, without degenerate faces.
            fixed: (n,) points that must not move.
            scale: (n,) factor that makes the errors of bodies comparable; default: 1.
            uses: (n,) number of instances of each point; default: 1.
            is_careful: Whether to move no point, so that none gets close to another, and to turn no face over.
            weighs_area: Whether the square of an error counts by area, for a small mean error; otherwise, errors are
                those of all planes around a point together, which is about the largest error.
        """
        self.points = points.copy()
        self.faces = faces.astype(np.int32)
        self._scale = np.ones(len(points)) if scale is None else scale
        self._uses = np.ones(len(points), np.int32) if uses is None else uses
        self._is_careful = is_careful
        mesh_edges = edges(self.faces)
        begin, end = half_edges(self.faces)
        first = mesh_edges.order[mesh_edges.start]
        low, high = np.minimum(begin[first], end[first]), np.maximum(begin[first], end[first])
        is_singular = mesh_edges.size != 2
        self._singular = np.zeros(len(points), np.bool_)
        """Points on edges that are not on exactly two faces."""
        self._singular[low[is_singular]] = self._singular[high[is_singular]] = True
        normals = face_normals(self.points, self.faces)
        volumes = np.einsum("ij,ij->i", self.points[self.faces[:, 0]], normals) / 6
        bodies, self._body = components(len(points), low, high)
        self._volume = np.bincount(self._body[self.faces[:, 0]], volumes, minlength=bodies).astype(np.float64)
        """Signed volume of each closed body; infinite for open ones."""
        self._volume[self._body[low[is_singular]]] = np.inf
        self._quadrics = self._sum_quadrics(normals, first[mesh_edges.size == 1], weighs_area)
        used = np.unique(self.faces)
        self._box_low, self._box_high = _measure_boxes(self.points[used], self._body[used], bodies)
        self._anchored = np.zeros(len(points), np.bool_)
        """Points that stay where they are: others merge into them."""
        self._fixed = fixed
        free = ~(fixed[low] | fixed[high])
        self._low, self._high = low[free], high[free]
        self._cost = self._measure_cost(self._low, self._high)
        self._blocked = np.zeros(len(self._low), np.bool_)
        """Edges that cannot be collapsed as long as the faces around them stay the same."""

    @property
    def face_count(self) -> int:
        """Number of faces in all instances."""
        return int(self._uses[self.faces[:, 0]].sum())

    def copy(self) -> EdgeCollapse:
        """Return a copy that is reduced separately."""
        result = copy.copy(self)
        result.points, result._quadrics, result._volume = self.points.copy(), self._quadrics.copy(), self._volume.copy()
        result.faces, result._singular, result._blocked = self.faces.copy(), self._singular.copy(), self._blocked.copy()
        result._anchored = self._anchored.copy()
        return result

    def fix(self, points: IntIndex, *, whole_bodies: bool = False) -> None:
        """Let some points (k,) stay as they are, or all points of their bodies."""
        is_fixed = np.zeros(len(self.points), np.bool_)
        is_fixed[points] = True
        if whole_bodies:
            is_fixed = np.isin(self._body, self._body[points])
        self._keep_edges(~(is_fixed[self._low] | is_fixed[self._high]))

    def _keep_edges(self, is_kept: Bool) -> None:
        self._low, self._high = self._low[is_kept], self._high[is_kept]
        self._cost, self._blocked = self._cost[is_kept], self._blocked[is_kept]

    def keep_boxes(self) -> None:
        """Anchor a point on each side of each body's box that no fixed point keeps in place; one point may keep three.

        Without this, boxes do not grow, but may shrink.
        """
        used = np.unique(self.faces)
        points, body = self.points[used], self._body[used]
        low, high = self._box_low[body], self._box_high[body]
        slack = EXTREME_RATIO * np.linalg.norm(high - low, axis=1)[:, None]
        attains = np.concatenate([points <= low + slack, points >= high - slack], axis=1)
        sides = attains.sum(axis=1)
        stays = self._fixed[used]
        for side in attains.T:
            is_kept = np.bincount(body[side & stays], minlength=len(self._box_low)) > 0
            candidates = np.flatnonzero(side & ~is_kept[body])
            order = candidates[np.lexsort((-sides[candidates], body[candidates]))]
            stays[order[np.diff(body[order], prepend=-1) > 0]] = True
        self._anchored[used[stays]] = True
        self._keep_edges(~(self._anchored[self._low] & self._anchored[self._high]))
        changed = np.flatnonzero(self._anchored[self._low] | self._anchored[self._high])
        self._cost[changed] = self._measure_cost(self._low[changed], self._high[changed])

    def reduce(self, goal: int) -> None:
        """Collapse edges until `goal` faces are left in all instances, or until none can be collapsed.

        Closed surfaces lose two faces at a time, so that the result may have one face less; with instances, it may have
        up to two less for each instance. Faces turn over only if the goal is reached by that.
        """
        if self.reduce_gently(goal) or self._is_careful:
            return
        turned = self.copy()
        if turned._collapse_all(goal, -np.inf, np.inf):
            vars(self).update(vars(turned))

    def reduce_gently(self, goal: int, max_error: float = np.inf) -> bool:
        """Collapse edges that turn no face over, and whose error is at most `max_error` if areas are not weighed.

        Returns:
            Whether the goal was reached.
        """
        return self._collapse_all(goal, MIN_COSINE, max_error**2)

    def _collapse_all(self, goal: int, min_cosine: float, max_cost: float) -> bool:
        excess = self.face_count - goal
        self._blocked[:] = False
        while excess > 0:
            before = excess
            for _ in range(STALL_ROUNDS):
                chosen = self._select(excess, max_cost)
                if len(chosen) == 0:
                    return False
                excess -= self._collapse_cheapest(chosen, excess, min_cosine)
                if excess <= 0:
                    return True
            if excess > (1 - MIN_PROGRESS_RATIO) * before:
                return False
        return True

    def _sum_quadrics(self, normals: Float64, border: Index, weighs_area: bool) -> Float64:
        """Return the quadrics (n, 10) of all points: planes of faces, planes through boundary edges, and the points."""
        area = np.sqrt(np.einsum("ij,ij->i", normals, normals)) / 2
        normals = normals / np.maximum(2 * area, _TINY)[:, None]
        begin, end = (ends[border] for ends in half_edges(self.faces))
        along = self.points[end] - self.points[begin]
        across = unit_vectors(np.cross(along, normals[border // 3]))
        length = np.einsum("ij,ij->i", along, along)
        if not weighs_area:
            area, length = np.ones_like(area), np.ones_like(length) / BOUNDARY_WEIGHT_RATIO
        of_face = _square_distance_to_planes(normals, self.points[self.faces[:, 0]], area)
        of_border = _square_distance_to_planes(across, self.points[begin], BOUNDARY_WEIGHT_RATIO * length)
        count = len(self.points)
        quadrics = np.empty((count, 10))
        for column in range(10):
            total = np.bincount(self.faces.ravel(), np.repeat(of_face[column], 3), minlength=count)
            for ends in (begin, end):
                total += np.bincount(ends, of_border[column], minlength=count)
            quadrics[:, column] = total
        weight = POINT_WEIGHT_RATIO * np.bincount(self.faces.ravel(), np.repeat(area, 3), minlength=count)
        quadrics[:, [0, 3, 5]] += weight[:, None]
        quadrics[:, 6:9] -= weight[:, None] * self.points
        quadrics[:, 9] += weight * np.einsum("ij,ij->i", self.points, self.points)
        # a squared distance, or an area times this
        quadrics *= (self._scale ** (4 if weighs_area else 2))[:, None]
        return quadrics

    def _measure_cost(self, a: Int32, b: Int32) -> Float64:
        cost = np.empty(len(a))
        for start in range(0, len(a), CHUNK_SIZE):
            chunk = slice(start, start + CHUNK_SIZE)
            cost[chunk] = self._place(a[chunk], b[chunk])[1]
        return cost

    def _place(self, a: Int32, b: Int32) -> tuple[Float64, Float64]:
        """Return the position (k, 3) of least error for the collapse of each edge, and that error (k,)."""
        xx, xy, xz, yy, yz, zz, x, y, z, c = (self._quadrics[a] + self._quadrics[b]).T.copy()
        # relative to the middle of the edge, because the terms of distant points cancel
        mx, my, mz = ((self.points[a] + self.points[b]) / 2).T
        gx = x + xx * mx + xy * my + xz * mz
        gy = y + xy * mx + yy * my + yz * mz
        gz = z + xz * mx + yz * my + zz * mz
        at_middle = c + mx * (x + gx) + my * (y + gy) + mz * (z + gz)
        # Cramer's rule
        axx, axy, axz = yy * zz - yz * yz, xz * yz - xy * zz, xy * yz - xz * yy
        ayy, ayz, azz = xx * zz - xz * xz, xy * xz - xx * yz, xx * yy - xy * xy
        determinant = xx * axx + xy * axy + xz * axz
        with np.errstate(all="ignore"):
            factor = -1 / determinant
        factor[~(np.isfinite(factor) & (determinant > 0))] = 0
        dx = factor * (axx * gx + axy * gy + axz * gz)
        dy = factor * (axy * gx + ayy * gy + ayz * gz)
        dz = factor * (axz * gx + ayz * gy + azz * gz)
        # planes that are nearly parallel intersect far from the surface
        edge = self.points[a] - self.points[b]
        length = np.einsum("ij,ij->i", edge, edge)
        share = np.minimum(1, MAX_MOVE_RATIO * np.sqrt(length / np.maximum(dx * dx + dy * dy + dz * dz, _TINY)))
        body = self._body[a]
        position = np.stack([mx + share * dx, my + share * dy, mz + share * dz], axis=1)
        position = np.clip(position, self._box_low[body], self._box_high[body])
        end_a, end_b = self.points[a], self.points[b]
        takes_a, takes_b = self._anchored[a], self._anchored[b]
        if self._is_careful:
            is_nearest = np.linalg.norm(position - end_a, axis=1) <= np.linalg.norm(position - end_b, axis=1)
            takes_a, takes_b = takes_a | (is_nearest & ~takes_b), takes_b | (~is_nearest & ~takes_a)
        position = np.where(takes_a[:, None], end_a, np.where(takes_b[:, None], end_b, position))
        dx, dy, dz = position.T - (mx, my, mz)
        rise = dx * (2 * gx + xx * dx) + dy * (2 * gy + yy * dy) + dz * (2 * gz + zz * dz)
        rise += 2 * (xy * dx * dy + xz * dx * dz + yz * dy * dz)
        return position, np.maximum(at_middle + rise, 0)

    def _collapse_cheapest(self, chosen: IntIndex, excess: int, min_cosine: float) -> int:
        """Collapse the cheapest of edges that share no face; return the number of faces removed."""
        found = self._find_rings(chosen)
        target, _ = self._place(found.a, found.b)
        rejected, change = self._measure_changes(found, target, min_cosine)
        rejected |= self._find_tears(found)
        self._blocked[found.edge[rejected]] = True
        removed = np.where(rejected, 0, found.removed * self._uses[found.a])
        before = np.cumsum(removed) - removed
        limit = min(excess, max(int(MAX_REMOVED_RATIO * excess), 2 * MIN_BATCH_COUNT))
        accepted = ~rejected & (before < limit)
        fits = accepted & (before + removed <= excess + 1)
        accepted = fits if fits.any() else accepted
        np.add.at(self._volume, self._body[found.a[accepted]], change[accepted])
        self._collapse(found, accepted, target)
        return int(removed[accepted].sum())

    def _select(self, excess: int, max_cost: float) -> IntIndex:
        """Return edges of low cost that share no face, by ascending cost."""
        order = np.flatnonzero(~self._blocked)
        order = order[self._cost[order] <= max_cost]
        if len(order) == 0:
            return order
        # the last faces must not be removed from a body with so many instances that the result falls below the goal
        fits = 2 * self._uses[self._low[order]] <= excess + 1
        order = order[fits] if fits.any() else order
        limit = max(int(CANDIDATE_RATIO * len(order)), MIN_BATCH_COUNT)
        if limit < len(order):
            cost = self._cost[order]
            order = order[cost <= np.partition(cost, limit)[limit]]
        # the same noise for an edge in each trial, so that a small change of the surface has small consequences
        mixed = self._low[order].astype(np.uint32) * np.uint32(0x9E3779B1) ^ self._high[order].astype(np.uint32)
        noise = 1 + NOISE_RATIO * ((mixed * np.uint32(0x85EBCA6B) >> np.uint32(8)) / 2.0**23 - 1)
        order = order[np.argsort(self._cost[order] * noise, kind="stable")]
        corners = self.faces.T.copy()
        selected = []
        taken = np.zeros(len(self.points), np.bool_)
        for _ in range(SELECTIONS_PER_ROUND):
            a, b = self._low[order], self._high[order]
            rank = np.arange(len(order), dtype=np.int32)
            best = np.full(len(self.points), _UNTAKEN, np.int32)
            # of equal indices, the last assignment counts
            best[np.stack([a, b], axis=1)[::-1].ravel()] = np.repeat(rank[::-1], 2)
            best_of_face = best[corners].min(axis=0)
            for corner in corners:
                np.minimum.at(best, corner, best_of_face)
            wins = (best[a] == rank) & (best[b] == rank)
            selected.append(order[wins])
            is_end = np.zeros(len(self.points), np.bool_)
            is_end[a[wins]] = is_end[b[wins]] = True
            taken[corners[:, is_end[corners].any(axis=0)]] = True
            order = order[~(taken[a] | taken[b])]
        chosen = np.concatenate(selected)
        return chosen[np.argsort(self._cost[chosen], kind="stable")]

    def _find_rings(self, chosen: IntIndex) -> Candidates:
        a, b = self._low[chosen], self._high[chosen]
        owner_a, owner_b = (np.full(len(self.points), -1, np.int32) for _ in range(2))
        owner_a[a] = owner_b[b] = np.arange(len(chosen), dtype=np.int32)
        corners = self.faces.T.copy()
        on_a, on_b = owner_a[corners].max(axis=0), owner_b[corners].max(axis=0)
        own = np.maximum(on_a, on_b)
        ring = np.flatnonzero(own >= 0)
        own, is_a, is_b = own[ring], on_a[ring] >= 0, on_b[ring] >= 0
        removed = np.bincount(own[is_a & is_b], minlength=len(chosen))
        return Candidates(chosen, a, b, ring, own, is_a, is_b, removed)

    def _find_tears(self, found: Candidates) -> Bool:
        """Return the edges (k,) whose collapse would change the topology.

        Source:
            Dey and others, "Topology preserving edge contraction", 1999: the link condition.
        """
        count = len(found.edge)
        left = np.bincount(found.own[~(found.on_a & found.on_b)], minlength=count)
        is_singular = found.removed != 2
        rejected = (found.removed == 0) | (left < np.where(is_singular, 1, 3))
        rejected |= self._singular[found.a] & self._singular[found.b] & ~is_singular
        corners = self.faces[found.ring]
        own = found.own[:, None]
        is_other = (corners != found.a[own]) & (corners != found.b[own])
        key = own.astype(np.int64) * len(self.points) + corners
        near_a, near_b = (np.sort(key[is_other & side[:, None]]) for side in (found.on_a, found.on_b))
        near_a, near_b = (near[np.diff(near, prepend=-1) > 0] for near in (near_a, near_b))
        both = np.sort(np.concatenate([near_a, near_b]))
        common = both[:-1][both[1:] == both[:-1]] // len(self.points)
        rejected |= np.bincount(common, minlength=count) != found.removed
        tears: Bool = rejected
        return tears

    def _measure_changes(self, found: Candidates, target: Float64, min_cosine: float) -> tuple[Bool, Float64]:
        """Return the edges (k,) whose collapse would harm faces or bodies, and the volume (k,) that each adds.

        A collapse must not turn a face too far, make it degenerate, or remove most of the volume of a body.
        """
        own, corners = found.own, self.faces[found.ring]
        old = self.points[corners]
        moves = (corners == found.a[own][:, None]) | (corners == found.b[own][:, None])
        new = np.where(moves[:, :, None], target[own][:, None, :], old)
        old_normal, old_quality = _measure_faces(old)
        new_normal, new_quality = _measure_faces(new)
        lengths = np.einsum("ij,ij->i", old_normal, old_normal) * np.einsum("ij,ij->i", new_normal, new_normal)
        cosine = np.einsum("ij,ij->i", old_normal, new_normal) / np.maximum(np.sqrt(lengths), _TINY)
        is_bad = (cosine < min_cosine) & (old_quality > MIN_QUALITY_RATIO)
        is_bad |= new_quality < np.minimum(MIN_QUALITY_RATIO, old_quality)
        is_bad &= ~(found.on_a & found.on_b)
        volumes = np.einsum("ij,ij->i", new[:, 0], new_normal) - np.einsum("ij,ij->i", old[:, 0], old_normal)
        change = np.bincount(own, volumes, minlength=len(target)) / 6
        volume = self._volume[self._body[found.a]]
        is_lost = change * np.sign(volume) < -MAX_VOLUME_LOSS_RATIO * np.abs(volume)
        rejected: Bool = is_lost | (np.bincount(own[is_bad], minlength=len(target)) > 0)
        return rejected, change

    def _collapse(self, found: Candidates, accepted: Bool, target: Float64) -> None:
        kept, gone = found.a[accepted], found.b[accepted]
        self.points[kept] = target[accepted]
        self._quadrics[kept] += self._quadrics[gone]
        self._singular[kept] |= self._singular[gone]
        self._anchored[kept] |= self._anchored[gone]
        is_end, is_near = (np.zeros(len(self.points), np.bool_) for _ in range(2))
        is_end[kept] = is_end[gone] = True
        changes = accepted[found.own]
        ring = found.ring[changes]
        is_near[self.faces[ring]] = True
        moved = np.arange(len(self.points), dtype=np.int32)
        moved[gone] = kept
        self.faces[ring] = moved[self.faces[ring]]
        is_left = np.ones(len(self.faces), np.bool_)
        is_left[ring[(found.on_a & found.on_b)[changes]]] = False
        self.faces = self.faces[is_left]
        low, high = self._low, self._high
        is_stale = is_end[low] | is_end[high]
        self._blocked &= ~(is_near[low] | is_near[high])
        a, b = moved[low[is_stale]], moved[high[is_stale]]
        key = np.sort(np.minimum(a, b).astype(np.int64) << 32 | np.maximum(a, b))
        key = key[np.diff(key, prepend=-1) > 0]
        a, b = (key >> 32).astype(np.int32), (key & 0xFFFFFFFF).astype(np.int32)
        is_free = (a != b) & ~(self._anchored[a] & self._anchored[b])
        a, b = a[is_free], b[is_free]
        self._low, self._high = np.concatenate([low[~is_stale], a]), np.concatenate([high[~is_stale], b])
        self._cost = np.concatenate([self._cost[~is_stale], self._measure_cost(a, b)])
        self._blocked = np.concatenate([self._blocked[~is_stale], np.zeros(len(a), np.bool_)])


def _measure_boxes(points: Float64, body: Int32, count: int) -> tuple[Float64, Float64]:
    """Return the lowest and the highest corner (count, 3) of the box of each body, of points (k, 3)."""
    low, high = np.full((count, 3), np.inf), np.full((count, 3), -np.inf)
    order = np.argsort(body, kind="stable")
    begin = np.flatnonzero(np.diff(body[order], prepend=-1))
    if len(order):
        low[body[order[begin]]] = np.minimum.reduceat(points[order], begin)
        high[body[order[begin]]] = np.maximum.reduceat(points[order], begin)
    return low, high


def _square_distance_to_planes(normals: Float64, points: Float64, weights: Float64) -> list[Float64]:
    """Return the ten coefficients of the weighted squared distance to planes, each (k,)."""
    x, y, z = normals.T
    d = -np.einsum("ij,ij->i", normals, points)
    columns = (x * x, x * y, x * z, y * y, y * z, z * z, x * d, y * d, z * d, d * d)
    return [column * weights for column in columns]


def _measure_faces(corners: Float64) -> tuple[Float64, Float64]:
    """Return the normals (k, 3) of triangles (k, 3, 3), and their quality (k,): 1 if equilateral, 0 if degenerate."""
    a, b, c = (corners[:, corner].T.copy() for corner in range(3))
    u, v, w = b - a, c - a, c - b
    normals = np.empty((len(corners), 3))
    normals[:, 0] = u[1] * v[2] - u[2] * v[1]
    normals[:, 1] = u[2] * v[0] - u[0] * v[2]
    normals[:, 2] = u[0] * v[1] - u[1] * v[0]
    doubled = np.sqrt(np.einsum("ij,ij->i", normals, normals))
    length = (u * u + v * v + w * w).sum(axis=0)
    return normals, 2 * np.sqrt(3) * doubled / np.maximum(length, _TINY)
