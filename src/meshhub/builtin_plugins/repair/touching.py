"""Bodies that touch at an edge where both have a hole: consistent faces across it turn one body inside out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.repair.planar import MAX_TESTED_COUNT
from meshhub.model.scene import Float64, Int32
from meshhub.toolkit import topology
from meshhub.toolkit.geometry import face_normals
from meshhub.toolkit.topology import Index

MAX_OPENNESS_RATIO = 0.7
"""Length of the vector area per area; 0 for a closed surface, 0.5 for half a sphere, 1 for a flat one."""

MIN_ROUNDNESS = 0.01
"""Volume per area to the power of 1.5: 0.094 for a sphere, 0.068 for a cube, near 0 for a region that hardly bends."""


class _Moments(NamedTuple):
    """Sums over the faces of each piece, by which any set of pieces is measured.

    area:   (p,) area
    vector: (p, 3) vector area
    first:  (p, 3) area times center
    volume: (p,) signed volume of the cone to the origin
    low, high: (p, 3) bounding box
    """

    area: Float64
    vector: Float64
    first: Float64
    volume: Float64
    low: Float64
    high: Float64


class _Side(NamedTuple):
    """Surface on one side of a link: signed volume about its center; whether it may be a body; bounding box."""

    volume: float
    is_body: bool
    low: Float64
    high: Float64


def find_inverted_bodies(points: Float64, faces: Int32, half_a: Index, half_b: Index) -> NDArray[np.bool_]:
    """Find the bodies that are inside out because the only link to another body is an edge that both touch.

    A thin link joins faces across an edge between two border points, or across an edge on more than two faces. Where
    a surface falls apart without one such link, and one side is outward and the other inward, both are bodies.

    Args:
        points: (n, 3) positions, any length unit.
        faces: (m, 3) consistent across all pairs.
        half_a: (p,) first half-edge of each pair.
        half_b: (p,) second half-edge, in the opposite direction.
    Returns:
        (m,) faces to flip.
    """
    flip = np.zeros(len(faces), np.bool_)
    is_thin = _find_thin_links(len(points), faces, half_a, half_b)
    if not is_thin.any():
        return flip
    face_a, face_b = half_a // 3, half_b // 3
    count, piece = topology.components(len(faces), face_a[~is_thin], face_b[~is_thin])
    links = np.sort(np.stack([piece[face_a[is_thin]], piece[face_b[is_thin]]], axis=1), axis=1)
    links = np.unique(links[links[:, 0] != links[:, 1]], axis=0)
    moments = _measure_pieces(points, faces, piece, count)
    sign = np.ones(count)
    is_cut = np.zeros(len(links), np.bool_)
    for link in np.argsort(-moments.area[links].min(axis=1), kind="stable")[:MAX_TESTED_COUNT].tolist():
        is_cut[link] = True
        inverted = _find_inverted_side(moments, sign, links[~is_cut], links[link])
        if inverted is None:
            is_cut[link] = False
        else:
            sign[inverted] *= -1
    inverted_piece: NDArray[np.bool_] = (sign < 0)[piece]
    return inverted_piece


def _find_thin_links(count: int, faces: Int32, half_a: Index, half_b: Index) -> NDArray[np.bool_]:
    begin, end = topology.half_edges(faces)
    is_open = np.ones(len(begin), np.bool_)
    is_open[half_a] = is_open[half_b] = False
    on_border = np.zeros(count, np.bool_)
    on_border[begin[is_open]] = on_border[end[is_open]] = True
    mesh_edges = topology.edges(faces)
    is_crowded = np.zeros(len(begin), np.bool_)
    is_crowded[mesh_edges.order] = np.repeat(mesh_edges.size > 2, mesh_edges.size)
    is_thin: NDArray[np.bool_] = (on_border[begin[half_a]] & on_border[end[half_a]]) | is_crowded[half_a]
    return is_thin


def _measure_pieces(points: Float64, faces: Int32, piece: Index, count: int) -> _Moments:
    points = points - points[faces[0, 0]]
    vector = face_normals(points, faces) / 2
    area = np.linalg.norm(vector, axis=1)
    center = points[faces].mean(axis=1)
    columns = [area, *vector.T, *(area[:, None] * center).T, np.einsum("ij,ij->i", vector, center) / 3]
    sums = np.stack([np.bincount(piece, column, minlength=count).astype(np.float64) for column in columns], axis=1)
    low, high = np.full((count, 3), np.inf), np.full((count, 3), -np.inf)
    for corner in range(3):
        np.minimum.at(low, piece, points[faces[:, corner]])
        np.maximum.at(high, piece, points[faces[:, corner]])
    return _Moments(sums[:, 0], sums[:, 1:4], sums[:, 4:7], sums[:, 7], low, high)


def _find_inverted_side(moments: _Moments, sign: Float64, others: Index, link: Index) -> Index | None:
    """Return the pieces to flip if a link joins an outward and an inward body, otherwise None.

    Args:
        sign: (p,) -1 for pieces that are flipped already.
        others: (k, 2) pieces at the other links.
        link: (2,) pieces at the link.
    """
    label = topology.components(len(sign), others[:, 0], others[:, 1])[1]
    if label[link[0]] == label[link[1]]:
        return None
    which = [np.flatnonzero(label == label[piece]) for piece in link]
    a, b = (_measure_side(moments, sign, pieces) for pieces in which)
    if not (a.is_body and b.is_body and a.volume * b.volume < 0) or _is_inside(a, b) or _is_inside(b, a):
        return None
    return which[0] if a.volume < 0 else which[1]


def _measure_side(moments: _Moments, sign: Float64, pieces: Index) -> _Side:
    area = max(float(moments.area[pieces].sum()), 1e-300)
    vector = sign[pieces] @ moments.vector[pieces]
    center = moments.first[pieces].sum(axis=0) / area
    volume = float(sign[pieces] @ moments.volume[pieces] - center @ vector / 3)
    is_body = np.linalg.norm(vector) < MAX_OPENNESS_RATIO * area and abs(volume) > MIN_ROUNDNESS * area**1.5
    return _Side(volume, bool(is_body), moments.low[pieces].min(axis=0), moments.high[pieces].max(axis=0))


def _is_inside(a: _Side, b: _Side) -> bool:
    """Return whether the center of one box is in the other box; then the sides are those of a wall, or nested."""
    center = (a.low + a.high) / 2
    return bool(((center > b.low) & (center < b.high)).all())
