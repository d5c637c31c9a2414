"""Degenerate faces, doubled faces, and cracks between border points that mean to be one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from meshhub import topology
from meshhub.builtin_plugins.repair.surface import Surface
from meshhub.scene import Float64, Int32
from meshhub.topology import Index

CRACKS = (2e-6, 2e-5, 2e-4)
"""How far apart border points may be, as a share of the part's diagonal; the narrower is tried first."""

SHARE_OF_EDGE = 0.25
"""And as a share of the shortest border edge at either of them: no edge is ever welded shut."""

NEIGHBOURS = 8


def without_degenerate(surface: Surface) -> tuple[Surface, int]:
    """The surface without the faces that have one point twice, and how many they were."""
    a, b, c = surface.faces.T
    flat = (a == b) | (b == c) | (c == a)
    count = int(flat.sum())
    return (surface.keep(~flat), count) if count else (surface, 0)


def without_doubled(surface: Surface, found: topology.Edges) -> tuple[Surface, int]:
    """The surface without faces over the same three points as another, and how many they were.

    Of faces that look the same way one stays. Of two that look opposite ways both stay where they are the
    wall between two bodies, that is where every edge around such a patch carries two more faces;
    else (a skin with its back drawn too) the first of them stays.
    """
    doubles = _suspects(len(surface.faces), found)
    if not doubles.any():
        return surface, 0
    at = np.flatnonzero(doubles)
    ordered = np.sort(surface.faces[at], axis=1)
    turn = _winding(surface.faces[at])
    order = np.lexsort((at, turn, *ordered.T[::-1]))
    same = (ordered[order[1:]] == ordered[order[:-1]]).all(axis=1)
    same_way = same & (turn[order[1:]] == turn[order[:-1]])
    drop = np.zeros(len(surface.faces), np.bool_)
    drop[at[order[1:][same_way]]] = True
    back = np.flatnonzero(same & ~same_way)
    if len(back):
        # `order` puts one winding before the other; the later one in the file is the back
        one, other = at[order[_begin_of_run(same_way, back)]], at[order[back + 1]]
        wall = _walls(surface.faces, drop, one, other)
        drop[np.maximum(one, other)[~wall]] = True
    return surface.keep(~drop), int(drop.sum())


def _suspects(count: int, found: topology.Edges) -> NDArray[np.bool_]:
    """The faces that may have a double: at a crowded edge, or with one other face on all three sides."""
    suspect = np.zeros(count, np.bool_)
    suspect[found.order[np.repeat(found.size > 2, found.size)] // 3] = True
    one, other = found.pairs()
    beside = np.full((count, 3), -1, np.int32)
    beside.ravel()[one], beside.ravel()[other] = other // 3, one // 3
    first, second, third = beside.T
    lone: NDArray[np.bool_] = (first >= 0) & (first == second) & (second == third)
    return suspect | lone


def _winding(faces: Int32) -> NDArray[np.bool_]:
    a, b, c = faces.T
    odd: NDArray[np.bool_] = (a < b) ^ (b < c) ^ (a < c)
    return odd


def _begin_of_run(joined: NDArray[np.bool_], at: Index) -> Index:
    """For each place the beginning of the run of `joined` places that ends there."""
    places = np.arange(len(joined) + 1)
    begins = np.concatenate([[True], ~joined])
    begin = np.maximum.accumulate(np.where(begins, places, 0))
    return begin[at]


def _walls(faces: Int32, dropped: NDArray[np.bool_], one: Index, other: Index) -> NDArray[np.bool_]:
    """Which of the opposite pairs of faces belong to a patch that separates two bodies."""
    kept = np.flatnonzero(~dropped)
    place = np.full(len(faces), -1, np.intp)
    place[kept] = np.arange(len(kept))
    paired = np.full(len(kept), -1, np.intp)
    paired[place[one]] = paired[place[other]] = np.arange(len(one))
    found = topology.edges(faces[kept])
    edge = np.repeat(np.arange(len(found.size)), found.size)
    pair = paired[found.order // 3]
    others = np.bincount(edge[pair < 0], minlength=len(found.size))
    sides = np.unique(np.stack([edge, pair])[:, pair >= 0], axis=1)
    edge, pair = sides
    first = topology.first_members(np.unique(edge, return_inverse=True)[1], len(np.unique(edge)))
    leader = pair[first][np.unique(edge, return_inverse=True)[1]]
    count, patch = topology.components(len(one), pair, leader)
    rim = others[edge] > 0
    even = np.bincount(patch[pair[rim & (others[edge] % 2 == 0)]], minlength=count)
    odd = np.bincount(patch[pair[rim & (others[edge] % 2 == 1)]], minlength=count)
    return (even > odd)[patch]


def without_cracks(surface: Surface, found: topology.Edges) -> tuple[Surface, int]:
    """The surface with border points welded that lie within a hair of each other, and how many vanished."""
    welded = 0
    diagonal = float(np.linalg.norm(np.ptp(surface.points, axis=0)))
    close: _Neighbours | None = None
    for share in CRACKS:
        border = found.border()
        if len(border) == 0:
            break
        if close is None:
            close = _neighbours(surface, border, CRACKS[-1] * diagonal)
        one, other, apart = close
        within = apart <= share * diagonal
        if not within.any():
            continue
        tried, count = _welded(surface, one[within], other[within], 2 * share * diagonal)
        edges = topology.edges(tried.faces)
        if (edges.size == 1).sum() < len(border):
            surface, found, welded, close = tried, edges, welded + count, None
    return surface, welded


_Neighbours = tuple[topology.Index, topology.Index, Float64]


def _neighbours(surface: Surface, border: topology.Index, tolerance: float) -> _Neighbours:
    """Pairs of border points that may be welded, and how far apart they are."""
    begin, end = (each[border] for each in topology.half_edges(surface.faces))
    length = np.linalg.norm(surface.points[begin] - surface.points[end], axis=1)
    shortest = np.full(len(surface.points), np.inf)
    np.minimum.at(shortest, begin, length)
    np.minimum.at(shortest, end, length)
    point = np.flatnonzero(np.isfinite(shortest))
    reach = shortest[point] * SHARE_OF_EDGE
    # a bounded number of neighbours: all pairs would be quadratic where many points crowd
    distance, near = cKDTree(surface.points[point]).query(
        surface.points[point], k=min(NEIGHBOURS, len(point)), distance_upper_bound=tolerance
    )
    distance, near = distance.reshape(len(point), -1), near.reshape(len(point), -1)
    one, column = np.nonzero(np.isfinite(distance))
    other, apart = near[one, column], distance[one, column]
    close = (one < other) & (apart <= np.minimum(reach[one], reach[other]))
    return point[one[close]], point[other[close]], apart[close]


def _welded(surface: Surface, one: topology.Index, other: topology.Index, most: float) -> tuple[Surface, int]:
    """The surface with these points joined in pairs, and how many vanished.

    A chain of pairs that reaches further than `most` is no crack, and stays.
    """
    point, places = np.unique(np.concatenate([one, other]), return_inverse=True)
    count, label = topology.components(len(point), places[: len(one)], places[len(one) :])
    low, high = np.full((count, 3), np.inf), np.full((count, 3), -np.inf)
    np.minimum.at(low, label, surface.points[point])
    np.maximum.at(high, label, surface.points[point])
    short = np.linalg.norm(high - low, axis=1) <= most
    point, label = point[short[label]], label[short[label]]
    into = np.arange(len(surface.points), dtype=np.int32)
    leader = np.zeros(count, np.int32)
    leader[label[::-1]] = point[::-1]
    into[point] = leader[label]
    joined, _ = without_degenerate(replace(surface, faces=into[surface.faces]))
    return joined, len(point) - int(short.sum())
