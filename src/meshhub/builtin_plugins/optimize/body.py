"""Reducing one welded body, and making sure that nothing was torn, lost or turned inside out by it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import fast_simplification
import numpy as np

from meshhub.builtin_plugins.optimize import meshlab
from meshhub.geometry import weld
from meshhub.scene import Float64, Int32
from meshhub.topology import EdgeStatistics, edge_statistics, edges, shells, without_degenerate

Surface = tuple[Float64, Int32]

AGGRESSIVENESS = 7.0
"""Below it fast-simplification may stall above its target, but tears less."""

GENTLER = (1.0, 1.15, 1.4, 2.0, 3.0, 5.0, 8.0)
"""What the goal is multiplied by, one after the other, as long as no attempt comes out sound."""

BESIDE_BORDER = 2.5
"""So many faces for each edge on a border that is kept as it is; with fewer, what lies between is torn about."""

COARSE = 50
"""With fewer faces for each shell, a body may lose much of its volume."""

DRIFT = 0.3
"""How much of its volume a finer body may gain or lose."""

HALFWAY_DRIFT = 0.02
"""The same for the fast half when the better one follows, which cannot undo what was lost."""

SMALL = 20_000
"""So many faces go to the better half directly."""

MOST_FOR_MESHLAB = 250_000
"""The better half takes 20 s for a million faces; above this the fast half must do alone."""

CROWDED = 2_000_000
"""The better half takes the square of the faces around a point: so much of that beside what even meshes have."""

MOST_SHELLS = 200
"""So many shells, the largest, are reduced one by one when they could not be reduced together."""


class State(NamedTuple):
    """What must not get worse."""

    edges: EdgeStatistics
    shells: int
    smallest: int
    inward: int
    volume: float

    @property
    def closed(self) -> bool:
        """Whether every edge lies on two faces that run through it in opposite directions."""
        return self.edges == (0, 0, 0)


def fast(points: Float64, faces: Int32, goal: int, aggressiveness: float, keep_border: bool) -> Surface:
    """fast-simplification down to `goal` faces; degenerate ones are taken out, unused points too.

    Source: Forstmann, "Fast Quadric Mesh Simplification", 2014.
    """
    # it refuses read-only arrays
    points, faces = fast_simplification.simplify(
        points.copy(),
        faces.astype(np.int32),
        target_count=min(goal, len(faces)),
        agg=aggressiveness,
        preserve_border=keep_border,
    )
    return points, without_degenerate(faces).astype(np.int32, copy=False)


def state(points: Float64, faces: Int32) -> State:
    """Edges, shells and volumes of a surface over welded points."""
    found = edges(faces)
    statistics = edge_statistics(faces, found)
    count, labels = shells(faces, found)
    if count == 0:
        return State(statistics, 0, 0, 0, 0.0)
    a, b, c = (points[faces[:, corner]] for corner in range(3))
    volumes = np.bincount(labels, np.einsum("ij,ij->i", a, np.cross(b, c)), minlength=count) / 6
    sizes = np.bincount(labels, minlength=count)
    return State(statistics, count, int(sizes.min()), int((volumes < 0).sum()), float(volumes.sum()))


def crowded(faces: Int32) -> bool:
    """Whether so many faces meet in single points that the better half would take minutes."""
    around = np.bincount(faces.ravel()).astype(np.float64)
    return float(around @ around) > 40 * len(faces) + CROWDED


class Body:
    """A surface over welded points around the origin, and how it may be reduced.

    points: (n, 3), of a size where fast-simplification's thresholds fit: a diagonal of about 100
    place:  (4, 4), from there to where its part stands, for asking what 32-bit numbers make of it
    """

    def __init__(self, points: Float64, faces: Int32, place: Float64) -> None:
        self.points, self.faces, self.place = points, faces, place
        self.state = state(points, faces)
        self._narrow: EdgeStatistics | None = None
        self._stalled = 0
        self._beside_border = int(BESIDE_BORDER * self.state.edges.boundary)

    @property
    def least(self) -> int:
        """The fewest faces it can have: a tetrahedron for each shell without a border."""
        return min(len(self.faces), 2 if self.state.edges.boundary else 4 * self.state.shells)

    def reduced(self, goal: int) -> Surface:
        """The body with `goal` faces, or as few more as it takes to stay sound; itself when nothing helps."""
        if goal >= len(self.faces):
            return self.points, self.faces
        best: Surface | None = None
        least_bad: tuple[int, Surface] | None = None
        for factor in GENTLER:
            wanted = max(int(goal * factor), self.least)
            if wanted >= (len(self.faces) if best is None else len(best[1])):
                break
            torn = False
            for made in self._attempts(wanted):
                worse = self.damage(made, goal)
                torn |= worse > 0
                if worse and len(made[1]) and (least_bad is None or worse < least_bad[0]):
                    least_bad = worse, made
                if worse == 0 and (best is None or len(made[1]) < len(best[1])):
                    best = made
                if worse == 0 and len(made[1]) <= wanted + 1:
                    return made if factor == 1 else self._completed(made, goal)
            if not torn or not self.state.closed:
                break
        if best is None and not self.state.closed and least_bad is not None:
            return least_bad[1]
        return self._completed(best or (self.points, self.faces), goal)

    def _attempts(self, goal: int) -> Iterator[Surface]:
        """Ways to get to `goal`, the best first, each made only when the one before was not sound or not enough."""
        keep_border = self.state.edges.boundary > 0
        if meshlab.available():
            base = self._halfway(goal, keep_border)
            if len(base[1]) <= MOST_FOR_MESHLAB and not crowded(base[1]):
                yield self._quadric(base, goal)
                yield self._quadric(base, goal, moving=False)
        for aggressiveness in (AGGRESSIVENESS, 5.0):
            if self._stalled <= goal:
                made = fast(self.points, self.faces, max(goal, self._beside_border), aggressiveness, keep_border)
                if len(made[1]) > goal + 1:
                    self._stalled = len(made[1])
                yield made

    def _halfway(self, goal: int, keep_border: bool) -> Surface:
        """Twice the goal by the fast half, where that leaves the body sound; else more, or all of it."""
        if len(self.faces) <= max(SMALL, 3 * goal):
            return self.points, self.faces
        for times, aggressiveness in ((2, AGGRESSIVENESS), (4, 5.0)):
            enough = max(times * goal, self._beside_border, times * SMALL // 2)
            if enough < len(self.faces):
                made = fast(self.points, self.faces, enough, aggressiveness, keep_border)
                if self.damage(made, goal, HALFWAY_DRIFT) == 0:
                    return made
        return self.points, self.faces

    def _quadric(self, base: Surface, goal: int, moving: bool = True) -> Surface:
        if goal >= len(base[1]):
            return base
        points, faces = meshlab.quadric(*base, goal, moving)
        return points, without_degenerate(faces)

    def damage(self, made: Surface, goal: int, drift: float = DRIFT) -> int:
        """How much worse an attempt is than the body was: 0 for sound, and of the same volume but for `drift`."""
        points, faces = made
        if len(faces) == 0:
            return 1 << 40
        now, before = state(points, faces), self.state
        bad = sum(max(0, after - allowed) for after, allowed in zip(now.edges, before.edges, strict=True))
        bad += 2 * len(faces) < min(goal, len(self.faces))
        if before.edges.boundary == 0:
            bad += abs(now.shells - before.shells) + (now.smallest < min(4, before.smallest))
        if before.closed:
            bad += abs(now.inward - before.inward)
            coarse = goal < COARSE * before.shells
            bad += abs(now.volume - before.volume) > (0.95 if coarse else drift) * abs(before.volume)
        if bad == 0:
            narrow = self._as_32_bit(points, faces)
            if any(after > allowed for after, allowed in zip(narrow, before.edges, strict=True)):
                if self._narrow is None:
                    self._narrow = self._as_32_bit(self.points, self.faces)
                bad = sum(max(0, after - allowed) for after, allowed in zip(narrow, self._narrow, strict=True))
        return bad

    def _as_32_bit(self, points: Float64, faces: Int32) -> EdgeStatistics:
        """The edges as an STL file would hold them."""
        placed = (points @ self.place[:3, :3].T + self.place[:3, 3]).astype(np.float32)
        return edge_statistics(without_degenerate(weld(placed)[1][faces]))

    def _completed(self, best: Surface, goal: int) -> Surface:
        """The best there is, or shell by shell, whichever has fewer faces."""
        if self.state.shells < 2 or not self.state.closed:
            return best
        apart = self._by_shells(goal)
        return apart if len(apart[1]) < len(best[1]) else best

    def _by_shells(self, goal: int) -> Surface:
        """Each shell with its share of the goal; those that cannot be reduced alone stay as they are."""
        count, labels = shells(self.faces)
        order = np.argsort(labels, kind="stable")
        begin = np.searchsorted(labels[order], np.arange(count + 1))
        sizes = np.diff(begin)
        chosen = np.argsort(-sizes, kind="stable")[:MOST_SHELLS]
        kept = np.ones(len(self.faces), np.bool_)
        points, faces = [self.points], []
        offset = len(self.points)
        budget = goal - (sizes.sum() - sizes[chosen].sum())
        share = max(budget, 0) / sizes[chosen].sum()
        for shell in chosen:
            own = order[begin[shell] : begin[shell + 1]]
            used, corners = np.unique(self.faces[own], return_inverse=True)
            body = Body(self.points[used], corners.reshape(-1, 3).astype(np.int32), self.place)
            made_points, made_faces = body.reduced(max(4, int(share * len(own))))
            kept[own] = False
            points.append(made_points)
            faces.append(made_faces + np.int32(offset))
            offset += len(made_points)
        return np.concatenate(points), np.concatenate([self.faces[kept], *faces]).astype(np.int32)
