"""Slits of width zero in flat faces, which booleans leave where bodies touch: CAD programs reject their outlines.

Four faces meet at a slit: two of one plane, which continue each other, and two of the body that touches it. The skin
pairs each lip of the slit with a face of that body. Here the lips become partners instead.
"""

# why this way: docs/decisions/0066-mechanisms-of-step.md
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.facets.faceting import FacetedSkin, facet_skin
from meshhub.builtin_plugins.step.facets.skin import Skin, build_skin, pair_skin
from meshhub.builtin_plugins.step.surfaces.arrays import lengths, select_separate
from meshhub.toolkit.geometry import IntIndex

_MAX_ROUNDS_COUNT = 8
"""Rounds of splitting edges; in each, a triangle is split once."""


def close_slits(skin: Skin, faceted: FacetedSkin) -> tuple[Skin, FacetedSkin]:
    """Return a skin without slits, and its flat faces; the same ones if there are no slits.

    Where one lip of a slit is longer, its edge is split at the end of the other lip first.

    Args:
        skin: Mesh, millimeters.
        faceted: Its flat faces.
    """
    for _ in range(_MAX_ROUNDS_COUNT):
        longer, point = _find_uneven_lips(skin, faceted)
        if len(longer) == 0:
            break
        skin = _split_edges(skin, longer, point)
        faceted = facet_skin(skin)
    paired = _pair_lips(skin, faceted.region)
    return (skin, faceted) if paired is skin else (paired, facet_skin(paired))


def _find_uneven_lips(skin: Skin, faceted: FacetedSkin) -> tuple[IntIndex, IntIndex]:
    """Return the longer half-edge of each pair of consecutive lips of different lengths, and the end of the other."""
    outline = faceted.outline
    half = outline.half
    begin = outline.chain_begin[outline.loop_begin]
    after = np.arange(len(half)) + 1
    after[begin[1:] - 1] = begin[:-1]
    back, ahead = half, half[after]
    tip, far_tip = skin.begin[back], skin.end[ahead]
    corner = skin.points[skin.end[back]]
    to_tip, to_far_tip = skin.points[tip] - corner, skin.points[far_tip] - corner
    size, far_size = lengths(to_tip), lengths(to_far_tip)
    across = lengths(np.cross(to_tip, to_far_tip))
    height = np.minimum(lengths(skin.cross[back // 3]) / size, lengths(skin.cross[ahead // 3]) / far_size)
    # beside the lips of a slit the face goes on; between those of a needle it is as thin as they are near
    is_slit = (across <= faceted.tolerance * np.maximum(size, far_size)) & (height > 2 * faceted.tolerance)
    is_slit &= (np.einsum("ij,ij->i", to_tip, to_far_tip) > 0) & (np.abs(size - far_size) > faceted.tolerance)
    longer = np.where(size > far_size, back, ahead)[is_slit]
    point = np.where(size > far_size, far_tip, tip)[is_slit]
    longer, point = longer[skin.twin[longer] >= 0], point[skin.twin[longer] >= 0]
    is_separate = select_separate(np.stack([longer // 3, skin.twin[longer] // 3], axis=1))
    return longer[is_separate], point[is_separate]


def _split_edges(skin: Skin, half: IntIndex, point: IntIndex) -> Skin:
    """Return the skin with the faces on both sides of some half-edges split at some points; no face is split twice."""
    halves = np.concatenate([half, skin.twin[half]])
    points = np.tile(point, 2)
    face, side = np.divmod(halves, 3)
    faces, added = skin.faces.copy(), skin.faces[face]
    row = np.arange(len(face))
    added[row, side] = points
    faces[face, (side + 1) % 3] = points
    faces, paint = np.concatenate([faces, added]), np.concatenate([skin.paint, skin.paint[face]])
    is_kept = ~_are_back_to_back(faces)
    return build_skin(skin.points, faces[is_kept], paint[is_kept])


def _are_back_to_back(faces: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return, for each face (m,), whether exactly one other face has the same corners, in the opposite order."""
    low = faces.argmin(axis=1)
    rolled = np.take_along_axis(faces, (low[:, None] + np.arange(3)) % 3, axis=1)
    _, group, count = np.unique(np.sort(faces, axis=1), axis=0, return_inverse=True, return_counts=True)
    turn = np.where(rolled[:, 1] < rolled[:, 2], 1, -1)
    result: NDArray[np.bool_] = (count == 2)[group.ravel()] & (np.bincount(group.ravel(), turn) == 0)[group.ravel()]
    return result


def _pair_lips(skin: Skin, region: NDArray[np.int32]) -> Skin:
    """Pair the two lips of each slit with each other, and likewise the two faces of the body that touches them."""
    half = np.flatnonzero((skin.twin >= 0) & (region[np.arange(len(skin.twin)) // 3] != region[skin.twin // 3]))
    begin, end = skin.begin[half], skin.end[half]
    order = np.lexsort((np.maximum(begin, end), np.minimum(begin, end), region[half // 3]))
    one, other = half[order[:-1]], half[order[1:]]
    is_slit = (region[one // 3] == region[other // 3]) & (skin.begin[one] == skin.end[other])
    is_slit &= skin.end[one] == skin.begin[other]
    is_slit[1:] &= ~is_slit[:-1]
    one, other = one[is_slit], other[is_slit]
    # where six faces meet, a half-edge can be a lip of two slits
    is_separate = select_separate(np.stack([one, other, skin.twin[one], skin.twin[other]], axis=1))
    one, other = one[is_separate], other[is_separate]
    if len(one) == 0:
        return skin
    twin = skin.twin.copy()
    behind, beside = skin.twin[one], skin.twin[other]
    twin[one], twin[other] = other, one
    twin[behind], twin[beside] = beside, behind
    return pair_skin(skin.points, skin.faces, twin, skin.paint)
