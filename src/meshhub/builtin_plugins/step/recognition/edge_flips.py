"""Edges that cross the rim between two recognized surfaces: they are flipped, so that each triangle is on one surface.

The hull of a turned part with irregular corners has such edges, and so have meshes whose triangles were improved after
they were made. All corners are on the surfaces; two triangles in a thousand, which lie on none, would leave no common
rim, and surfaces that are tangent to facets return to facets.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.recognition.arrays import lengths, normalize, select_separate
from meshhub.builtin_plugins.step.recognition.claims import MAX_COARSE_DEPTH_RATIO, find_deepest
from meshhub.builtin_plugins.step.recognition.deviation import MAX_SAGITTA_RATIO
from meshhub.builtin_plugins.step.recognition.facet_graph import FacetGraph
from meshhub.builtin_plugins.step.recognition.fit_trials import MIN_STEADY_COSINE
from meshhub.builtin_plugins.step.recognition.recognize import Segments
from meshhub.builtin_plugins.step.recognition.skin import Skin, build_skin
from meshhub.builtin_plugins.step.recognition.surfaces import gradients
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex

_MAX_ROUNDS_COUNT = 16
"""Rounds of flips; in each, a triangle is flipped once. A rim with four corners out of reach takes eight."""

_MAX_GAP_RATIO = 0.2
"""Distance between the diagonals of a pair of triangles over the shorter one; a flip moves the mesh by that."""

Mask = NDArray[np.bool_]


class _Pairs(NamedTuple):
    """Pairs of triangles that share an edge.

    face, other: (n,) triangles
    corners:     (n, 4) points: begin and end of the edge, opposite corners of `face` and of `other`
    """

    face: IntIndex
    other: IntIndex
    corners: IntIndex

    def take(self, index: IntIndex | Mask) -> _Pairs:
        return _Pairs(self.face[index], self.other[index], self.corners[index])

    def flipped(self) -> tuple[IntIndex, IntIndex]:
        """Return (n, 3) each, the triangles beside the other diagonal."""
        begin, end, apex, other_apex = self.corners.T
        return np.stack([apex, begin, other_apex], axis=1), np.stack([apex, other_apex, end], axis=1)


def flip_spanning_edges(skin: Skin, region: NDArray[np.int32], graph: FacetGraph, segments: Segments) -> Skin:
    """Flip the edges of free triangles where a triangle beside the new edge is on a surface next to it.

    Args:
        skin: Mesh.
        region: (m,) facet of each triangle.
        graph: Graph of the facets.
        segments: Recognized surfaces.
    Returns:
        The changed skin, with the triangles in the same order; the same skin if no edge was flipped.
    """
    owner = segments.segment[region]
    is_free = (owner < 0) & ~graph.is_broad[region]
    deepest = find_deepest(graph, segments.surfaces, segments.segment)
    for _ in range(_MAX_ROUNDS_COUNT):
        pairs = _collect_pairs(skin, is_free, owner)
        if len(pairs.face) == 0:
            break
        first, second = (_find_surfaces(skin, owner, pairs, corners, segments, deepest) for corners in pairs.flipped())
        # of two free triangles one may stay free; a triangle that is on a surface must stay on one
        needed = np.where(is_free[pairs.face] & is_free[pairs.other], 1, 2)
        is_better = ((first >= 0).astype(np.intp) + (second >= 0) >= needed) & _can_flip(skin, pairs)
        pairs, first, second = pairs.take(is_better), first[is_better], second[is_better]
        order = np.argsort(-(first >= 0).astype(np.int8) - (second >= 0), kind="stable")
        pairs, first, second = pairs.take(order), first[order], second[order]
        # two pairs may have the same new edge
        edge = len(skin.faces) + _number_edges(pairs.corners[:, 2:], len(skin.points))
        chosen = select_separate(np.stack([pairs.face, pairs.other, edge], axis=1))
        pairs, first, second = pairs.take(chosen), first[chosen], second[chosen]
        if len(pairs.face) == 0:
            break
        faces = skin.faces.copy()
        faces[pairs.face], faces[pairs.other] = pairs.flipped()
        owner[pairs.face], owner[pairs.other] = first, second
        is_free[pairs.face], is_free[pairs.other] = first < 0, second < 0
        skin = build_skin(skin.points, faces, skin.paint)
    return skin


def _collect_pairs(skin: Skin, is_free: Mask, owner: IntIndex) -> _Pairs:
    """Return the pairs of triangles of one color, one or both free, that are on or next to a recognized surface."""
    half = np.flatnonzero((skin.twin >= 0) & np.repeat(is_free, 3))
    beyond = skin.twin[half] // 3
    half = half[((half < skin.twin[half]) & is_free[beyond]) | (owner[beyond] >= 0)]
    face, other = half // 3, skin.twin[half] // 3
    corners = np.stack([skin.begin[half], skin.end[half], _apexes(skin, half), _apexes(skin, skin.twin[half])], axis=1)
    pairs = _Pairs(face, other, corners.astype(np.intp))
    is_near = (owner[_touched_faces(skin, pairs)] >= 0).any(axis=1)
    return pairs.take(is_near & (skin.paint[face] == skin.paint[other]))


def _apexes(skin: Skin, half: IntIndex) -> IntIndex:
    """Return the corner opposite to each half-edge."""
    apexes: IntIndex = skin.faces[half // 3, (half + 2) % 3].astype(np.intp)
    return apexes


def _touched_faces(skin: Skin, pairs: _Pairs) -> IntIndex:
    """Return (n, 8) the triangles of each pair and their neighbors; a triangle itself in place of a missing one."""
    face = np.stack([pairs.face, pairs.other], axis=1)
    twin = skin.twin.reshape(-1, 3)[face]
    beside = np.where(twin >= 0, twin // 3, face[:, :, None])
    return np.concatenate([face, beside.reshape(-1, 6)], axis=1)


def _find_surfaces(
    skin: Skin, owner: IntIndex, pairs: _Pairs, corners: IntIndex, segments: Segments, deepest: Float64
) -> IntIndex:
    """Return the (n,) surface next to each pair of which a triangle with (n, 3) corners is a chord; -1 for none."""
    corner = skin.points[corners]
    normal = normalize(np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0]))
    longest = np.max([lengths(corner[:, k] - corner[:, k - 1]) for k in range(3)], axis=0)
    result = np.full(len(corners), -1, np.intp)
    for candidate in owner[_touched_faces(skin, pairs)].T:
        usable = np.flatnonzero((candidate >= 0) & (result < 0))
        if len(usable) == 0:
            continue
        surfaces, limit = segments.surfaces.take(candidate[usable]), segments.limit[candidate[usable]]
        off = np.max([np.abs(gradients(surfaces, corner[usable, k])[0]) for k in range(3)], axis=0)
        depth, direction = gradients(surfaces, corner[usable].mean(axis=1))
        facing = np.abs(np.einsum("ij,ij->i", direction, normal[usable]))
        is_chord = (np.abs(depth) <= MAX_SAGITTA_RATIO * longest[usable]) & (facing >= MIN_STEADY_COSINE)
        # a triangle across a flat, whose corners are on the surface, too, is deeper
        is_chord &= np.abs(depth) <= MAX_COARSE_DEPTH_RATIO * deepest[candidate[usable]]
        found = usable[(off <= limit) & is_chord]
        result[found] = candidate[found]
    return result


def _can_flip(skin: Skin, pairs: _Pairs) -> Mask:
    """Return (n,) whether the other diagonal is a new edge near the old one, and no triangle turns over."""
    begin, end, apex, other_apex = skin.points[pairs.corners].transpose(1, 0, 2)
    old, new = end - begin, other_apex - apex
    across = np.cross(old, new)
    gap = np.abs(np.einsum("ij,ij->i", apex - begin, normalize(across)))
    is_near = gap <= _MAX_GAP_RATIO * np.minimum(lengths(old), lengths(new))
    normal = skin.cross[pairs.face] + skin.cross[pairs.other]
    for corners in pairs.flipped():
        a, b, c = skin.points[corners].transpose(1, 0, 2)
        is_near &= np.einsum("ij,ij->i", np.cross(b - a, c - a), normal) > 0
    count = len(skin.points)
    edges = _number_edges(np.stack([skin.begin, skin.end], axis=1), count)
    is_new = ~np.isin(_number_edges(pairs.corners[:, 2:], count), edges)
    result: Mask = is_near & is_new
    return result


def _number_edges(ends: NDArray[np.integer[Any]], count: int) -> IntIndex:
    """Return a number for each edge with (n, 2) ends among `count` points."""
    numbers: IntIndex = ends.min(axis=1).astype(np.intp) * count + ends.max(axis=1)
    return numbers
