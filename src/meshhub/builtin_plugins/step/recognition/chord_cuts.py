"""Facets that another body was cut from: they have corners on chords, which belong where the true surfaces meet.

A mesh boolean cuts facets, not surfaces: where two round walls meet, half of the new corners lie on the chords of
one, half on the chords of the other. What the corners that were not made by the cut tell of a surface holds for the
cut facets too, and the cut's own corners are moved on to all surfaces that meet there: by no more than the sagitta,
which is as near as the mesh knows its surface anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.recognition.arrays import distinct_pairs, lengths, sort_unique
from meshhub.builtin_plugins.step.recognition.facet_graph import MAX_SMOOTH_TURN_RAD, FacetGraph
from meshhub.builtin_plugins.step.recognition.faceting import FacetedSkin
from meshhub.builtin_plugins.step.recognition.fit_trials import FEWEST_FACETS, FEWEST_POINTS, TILT, plausible
from meshhub.builtin_plugins.step.recognition.fitting import DEPTH_RATIO, FitLimits, fit_surfaces
from meshhub.builtin_plugins.step.recognition.planar import number_labels
from meshhub.builtin_plugins.step.recognition.recognize import KINDS, Segments
from meshhub.builtin_plugins.step.recognition.regions import Regions
from meshhub.builtin_plugins.step.recognition.sample_blocks import Samples, group_extents, select_groups
from meshhub.builtin_plugins.step.recognition.skin import Skin
from meshhub.builtin_plugins.step.recognition.surfaces import SurfaceArray, SurfaceKind, concatenate, gradients
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex
from meshhub.toolkit.topology import components

_OF_SIZE = 1e-5
_DEEPER = 2.0
_EVEN = 4.0
_ROUNDS = 200
_NEWTON = 12
_FARTHEST = 20.0
_PARALLEL = 1e-6

Mask = NDArray[np.bool_]


def assign_cut_facets(
    skin: Skin, faceted: FacetedSkin, graph: FacetGraph, found: Segments, given: float | None
) -> Segments:
    """The segments with the facets that were cut from them, and surfaces all of whose facets were cut.

    given: the distance that was asked for, which then counts instead of what rounding explains
    """
    cutting = _Cutting(graph, found.surfaces, found.limit, found.segment.copy(), _rims(skin, faceted, graph))
    if not cutting.rim.any():
        return found
    for whole in (True, False):
        for kind in KINDS:
            cutting.pieces(kind, faceted.tolerance, given, whole=whole)
        cutting.grow()
    cutting.unite()
    return Segments(cutting.surfaces, cutting.limit, cutting.segment, found.segment)


def move_cut_corners(skin: Skin, regions: Regions, cut: Mask) -> tuple[Skin, IntIndex]:
    """The skin with its cut corners on all surfaces that meet there, and the curved regions where that cannot be.

    cut: (m,) the triangles that were cut
    """
    corner = np.zeros(len(skin.points), np.bool_)
    corner[skin.faces[cut]] = True
    region, point = distinct_pairs(np.repeat(regions.region, 3), skin.faces.ravel(), len(skin.points))
    gap, _ = gradients(regions.surfaces.take(region), skin.points[point])
    held = regions.curved[region] & corner[point]
    if not (held & (np.abs(gap) > regions.limit[region])).any():
        return skin, np.empty(0, np.intp)
    # also those that were on it but for rounding: a curve through both would wriggle
    loose = sort_unique(point[held])
    number = np.full(len(skin.points), -1, np.intp)
    number[loose] = np.arange(len(loose))
    near = number[point] >= 0
    owner, region = number[point[near]], region[near]
    order = np.argsort(owner, kind="stable")
    owner, region = owner[order], region[order]
    begin = np.searchsorted(owner, np.arange(len(loose)))
    surfaces, limit = regions.surfaces.take(region), regions.limit[region]
    points = _onto_all(surfaces, skin.points[loose], owner, begin)
    before = np.maximum.reduceat(np.maximum(np.abs(gap[near][order]), limit), begin)
    off = np.maximum.reduceat(np.abs(gradients(surfaces, points[owner])[0]) / limit, begin)
    wrong = ~((off <= 1) & (lengths(points - skin.points[loose]) <= _FARTHEST * before))
    made = skin.points.copy()
    made[loose[~wrong]] = points[~wrong]
    a, b, c = made[skin.faces].transpose(1, 0, 2)
    changed = replace(skin, points=made, cross=np.cross(b - a, c - a))
    over = number[skin.faces[_folded(skin, changed, regions)]]
    wrong[over[over >= 0]] = True
    bad = sort_unique(region[wrong[owner]])
    return changed, bad[regions.curved[bad]]


def _onto_all(surfaces: SurfaceArray, points: Float64, owner: IntIndex, begin: IntIndex) -> Float64:
    """The points moved on to all their surfaces by the shortest way (Newton's method).

    owner: the point of each surface, in order; begin: where the surfaces of each point begin
    """
    still = float(np.abs(points).max()) * 1e-14
    for _ in range(_NEWTON):
        gap, normal = gradients(surfaces, points[owner])
        across = np.add.reduceat(normal[:, :, None] * normal[:, None, :], begin)
        along = np.add.reduceat(normal * gap[:, None], begin)
        step = np.einsum("ijk,ik->ij", np.linalg.pinv(np.nan_to_num(across), rcond=_PARALLEL, hermitian=True), along)
        points = points - step
        if float(np.abs(step).max()) <= still:
            break
    return points


def _folded(before: Skin, after: Skin, regions: Regions) -> Mask:
    """(m,) the flat triangles that were turned over: the outline of their region crosses itself there."""
    corner = after.points[after.faces]
    _, normal = gradients(regions.surfaces.take(regions.region), before.points[before.faces].mean(axis=1))
    was, became = (np.einsum("ij,ij->i", normal, skin.cross) for skin in (before, after))
    longest = np.max([lengths(corner[:, k] - corner[:, k - 1]) for k in range(3)], axis=0)
    made: Mask = np.sign(was) * became < -regions.limit[regions.region] * longest
    return made & ~regions.curved[regions.region]


def _rims(skin: Skin, faceted: FacetedSkin, graph: FacetGraph) -> Mask:
    """(p,) the points on sharp edges, where something may have been cut off."""
    half = np.arange(len(skin.twin))
    a, b = faceted.region[half // 3], faceted.region[np.where(skin.twin >= 0, skin.twin, half) // 3]
    sharp = np.einsum("ij,ij->i", graph.normal[a], graph.normal[b]) < np.cos(MAX_SMOOTH_TURN_RAD)
    sharp &= ~graph.is_sliver[a] & ~graph.is_sliver[b]
    made = np.zeros(len(skin.points), np.bool_)
    made[skin.begin[sharp]] = made[skin.end[sharp]] = True
    return made


def _below(gap: Float64, depth: Float64, kind: NDArray[np.int8]) -> Mask:
    """Whether distances from a surface are on the side of its facets, and much the same.

    A torus is a saddle on its inner half: there chords are on both sides.
    """
    made: Mask = ((gap * depth >= 0) | (kind == SurfaceKind.TORUS)) & (np.abs(gap) <= _DEEPER * np.abs(depth))
    return made


@dataclass
class _Cutting:
    """Segments that grow; `rim` as `_rims` has it."""

    graph: FacetGraph
    surfaces: SurfaceArray
    limit: Float64
    segment: IntIndex
    rim: Mask

    def grow(self) -> None:
        """Let surfaces take the free facets beside theirs whose corners are on them or were cut from them."""
        graph = self.graph
        if len(self.surfaces) == 0:
            return
        new, before = self.segment >= 0, self._sides()
        for _ in range(_ROUNDS):
            reach = new[graph.left] & (self.segment[graph.right] < 0)
            index, facet = self.segment[graph.left[reach]], graph.right[reach]
            good = self._holds(index, facet)
            if not good.any():
                return
            index, facet = index[good][::-1], facet[good][::-1]
            order = np.argsort(-index, kind="stable")
            self.segment[facet[order]] = index[order]
            # what did not hold does not hold now, unless its surface was found to lie deeper
            sides = self._sides()
            new = (self.segment >= 0) & (sides != before)[self.segment]
            new[facet] = True
            before = sides

    def _sides(self) -> Float64:
        """(s,) how deep the deepest facet of each surface lies below it, with its sign."""
        known = np.flatnonzero((self.segment >= 0) & ~self.graph.is_sliver)
        owner = self.segment[known]
        gap, _ = gradients(self.surfaces.take(owner), self.graph.center[known])
        low, high = np.zeros(len(self.surfaces)), np.zeros(len(self.surfaces))
        np.minimum.at(low, owner, gap)
        np.maximum.at(high, owner, gap)
        return np.where(-low > high, low, high)

    def _holds(self, index: IntIndex, facet: IntIndex, loosely: float = 1.0) -> Mask:
        """Whether each facet's corners are on the surface beside it, or at a rim no deeper than its facets lie.

        loosely: times its limit a corner may lie off
        """
        graph = self.graph
        if len(facet) == 0:
            return np.zeros(0, np.bool_)
        depth, kind = self._sides()[index], self.surfaces.kind[index]
        owner, point = graph.expand(facet)
        gap, _ = gradients(self.surfaces.take(index[owner]), graph.points[point])
        on = np.abs(gap) <= loosely * self.limit[index[owner]]
        fine = on | (self.rim[point] & _below(gap, depth[owner], kind[owner]))
        begin = np.searchsorted(owner, np.arange(len(facet)))
        middle, normal = gradients(self.surfaces.take(index), graph.center[facet])
        facing = np.abs(np.einsum("ij,ij->i", normal, graph.normal[facet]))
        good: Mask = np.logical_and.reduceat(fine, begin) & np.logical_or.reduceat(on, begin)
        good &= (_below(middle, depth, kind) & (facing >= TILT)) | graph.is_sliver[facet]
        return good

    def pieces(self, kind: SurfaceKind, tolerance: float, given: float | None, *, whole: bool) -> None:
        """Try each smooth piece of free facets as one surface, by the corners that no cut has made.

        whole: with facets that were taken, where some are free: of a surface in shreds small parts were found
        """
        group, facet, groups = self._grouped(kind, whole=whole)
        if groups == 0:
            return
        samples = self._sure(kind, group, facet, groups)
        enough = np.bincount(samples.group, minlength=groups) >= FEWEST_POINTS[kind]
        if not enough.any():
            return
        kept = enough[group]
        facet = facet[kept]
        samples = select_groups(samples, np.flatnonzero(enough))
        self._take(kind, samples, facet, tolerance, given)

    def _grouped(self, kind: SurfaceKind, *, whole: bool) -> tuple[IntIndex, IntIndex, int]:
        """Facets by smooth pieces that have some free: the piece of each, the facets, and how many pieces."""
        graph = self.graph
        free = self.segment < 0
        usable = free | whole
        inside = usable[graph.left] & usable[graph.right] & (graph.left < graph.right)
        count, label = components(graph.count, graph.left[inside], graph.right[inside])
        usable &= (np.bincount(label[free], minlength=count) > 0)[label]
        size = np.bincount(label[usable], minlength=count)
        facet = np.flatnonzero(usable & (size[label] >= FEWEST_FACETS[kind]))
        facet = facet[np.argsort(label[facet], kind="stable")]
        group, groups = number_labels(label[facet])
        return group.astype(np.intp), facet, groups

    def _sure(self, kind: SurfaceKind, group: IntIndex, facet: IntIndex, groups: int) -> Samples:
        """What pieces say by corners off the rim; of strips, whose corners are all there, by those of two facets."""
        graph = self.graph
        owner, point = graph.expand(facet)
        pair, times = np.unique(group[owner] * len(graph.points) + point, return_counts=True)
        piece, point = pair // len(graph.points), pair % len(graph.points)
        sure = ~self.rim[point]
        if kind in (SurfaceKind.CYLINDER, SurfaceKind.CONE):
            sure |= times > 1
        samples = graph.collect_samples(group, facet, groups)
        return samples._replace(group=piece[sure], point=graph.points[point[sure]])

    def _take(
        self, kind: SurfaceKind, samples: Samples, facet: IntIndex, tolerance: float, given: float | None
    ) -> None:
        """Fit a surface to each piece, and keep those that hold all of it, by rounding or as chords."""
        graph, group, groups = self.graph, samples.normal_group, samples.groups
        extent = group_extents(samples)
        allowed = np.maximum(4 * tolerance, _OF_SIZE * extent) if given is None else np.full(groups, given)
        limits = FitLimits(allowed, np.full(groups, DEPTH_RATIO), np.zeros(groups))
        surfaces, worst = fit_surfaces(samples, kind, limits)
        gap, normal = gradients(surfaces.take(group), samples.center)
        facing = np.einsum("ij,ij->i", normal, samples.normal)
        sliver = graph.is_sliver[facet]
        gap = np.where(sliver, 0.0, gap)
        first = np.searchsorted(group, np.arange(groups + 1))
        out = np.logical_and.reduceat((facing >= TILT) | sliver, first[:-1])
        into = np.logical_and.reduceat((facing <= -TILT) | sliver, first[:-1])
        low, high = np.minimum.reduceat(gap, first[:-1]), np.maximum.reduceat(gap, first[:-1])
        depth = np.where(-low > high, low, high)
        usual = np.abs(gap)[np.lexsort((np.abs(gap), group))][(first[:-1] + first[1:]) // 2]
        limit = limits.for_depth(np.abs(depth))
        good = (worst <= limit) & (out | into) & plausible(kind, surfaces, samples, extent, limit)
        # a flat end among them would lie deeper than they do
        good &= np.abs(depth) <= _EVEN * usual
        owner, point = graph.expand(facet)
        each = group[owner]
        gap, _ = gradients(surfaces.take(each), graph.points[point])
        fine = (np.abs(gap) <= limit[each]) | (self.rim[point] & _below(gap, depth[each], surfaces.kind[each]))
        good &= np.logical_and.reduceat(fine, np.searchsorted(each, np.arange(groups)))
        number = np.cumsum(good) - 1 + len(self.surfaces)
        taken = good[group]
        self.segment[facet[taken]] = number[group[taken]]
        self.surfaces = concatenate([self.surfaces, surfaces.take(good)])
        self.limit = np.concatenate([self.limit, limit[good]])

    def unite(self) -> None:
        """Let surfaces take over smaller neighbours that are the same: a cut had parted them."""
        graph = self.graph
        if len(self.surfaces) == 0:
            return
        a, b = self.segment[graph.left], self.segment[graph.right]
        meet = (a >= 0) & (b >= 0) & (a != b)
        meet &= self.surfaces.kind[np.maximum(a, 0)] == self.surfaces.kind[np.maximum(b, 0)]
        meet[meet] = self._holds(a[meet], graph.right[meet], 3.0)
        pairs = np.unique(np.stack([a[meet], b[meet]], axis=1), axis=0)
        size = np.bincount(self.segment[self.segment >= 0], minlength=len(self.surfaces))
        one, other = pairs.T
        pairs = pairs[(size[one] > size[other]) | ((size[one] == size[other]) & (one < other))]
        now = np.arange(len(self.surfaces))
        for large, small in pairs[np.argsort(-size[pairs[:, 0]], kind="stable")].tolist():
            large = int(now[large])
            facet = np.flatnonzero(self.segment == small)
            if large != small and len(facet) and self._holds(np.full(len(facet), large), facet, 3.0).all():
                self.segment[facet] = large
                now[now == small] = large
