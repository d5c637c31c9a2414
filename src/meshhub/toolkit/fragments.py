"""Stray fragments: small shells beside the body, which repair removes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from meshhub.model.scene import Float64
from meshhub.toolkit.topology import Index

MAX_FEW_FACES = 4
"""Faces; a larger closed shell is a deliberate body, however small, and a larger open one may be a part of one."""

MAX_FEW_FACES_RATIO = 0.5
"""Faces of open shells of few faces per faces of the mesh; with more, they are what the mesh is made of."""

MAX_OPEN_DIAGONAL_RATIO = 0.01
"""Diagonal of an open shell per diagonal of the largest shell; larger shells may be deliberate."""

MAX_CRUMB_DIAGONAL_RATIO = 0.02
"""Diagonal of a closed shell of few faces per diagonal of the largest shell; larger ones may be deliberate."""

MAX_UNPRINTABLE_DIAGONAL_RATIO = 0.05
"""As `MAX_CRUMB_DIAGONAL_RATIO`, for shells that are smaller than a nozzle."""

NOZZLE_MM = 0.4
"""Millimeters; diameter of the usual nozzle, which prints nothing smaller."""

MAX_FRAGMENT_VOLUME_RATIO = 0.0001
"""Volume of a fragment per volume of its mesh; larger shells may be deliberate."""


def find_small_shells(
    points: Float64, faces: Index, label: Index, border: Index, measure: Callable[[], Float64]
) -> NDArray[np.bool_]:
    """Find the stray fragments among the shells of one mesh.

    An open shell of up to four faces is a fragment at any size, unless it fills a gap of another open shell. Any other
    fragment has at most 0.01 % of the volume, and is small beside the largest shell: below 1 % if it is open; below
    2 %, or 5 % and a nozzle, if it has four faces.

    Args:
        points: (n, 3) positions, in millimeters.
        faces: (m, 3) indices into `points`.
        label: (m,) shell of each face.
        border: (b,) half-edges without a partner.
        measure: Returns the (s,) signed volumes of the shells; called only if a shell may be a fragment.
    Returns:
        (s,) mask of shells; never all of them.
    """
    count = int(label.max(initial=-1)) + 1
    nothing = np.zeros(count, np.bool_)
    if count < 2:
        return nothing
    is_open = nothing.copy()
    is_open[label[border // 3]] = True
    face_count = np.bincount(label, minlength=count)
    has_few_faces = face_count <= MAX_FEW_FACES
    if not (is_open | has_few_faces).any():
        return nothing
    size = _measure_diagonals(points, faces, label, count)
    is_large = ~has_few_faces if not has_few_faces.all() else ~is_open if not is_open.all() else ~nothing
    largest = float(size[is_large].max())
    volume = np.abs(measure())
    is_negligible = volume <= MAX_FRAGMENT_VOLUME_RATIO * volume.sum()
    is_stray = _find_stray_faces(faces, label, border, is_open & has_few_faces, face_count)
    is_crumb = (size < MAX_CRUMB_DIAGONAL_RATIO * largest) | (
        (size < MAX_UNPRINTABLE_DIAGONAL_RATIO * largest) & (size < NOZZLE_MM)
    )
    is_small = np.where(is_open, size < MAX_OPEN_DIAGONAL_RATIO * largest, has_few_faces & is_crumb)
    is_fragment: NDArray[np.bool_] = is_stray | (is_small & is_negligible)
    return nothing if is_fragment.all() else is_fragment


def _measure_diagonals(points: Float64, faces: Index, label: Index, count: int) -> Float64:
    """Return the (s,) diagonals of the bounding boxes of the shells."""
    order = np.argsort(label, kind="stable")
    begin = np.concatenate([[0], np.cumsum(np.bincount(label, minlength=count))[:-1]])
    a, b, c = points[faces[order].T]
    low = np.minimum.reduceat(np.minimum(np.minimum(a, b), c), begin)
    high = np.maximum.reduceat(np.maximum(np.maximum(a, b), c), begin)
    diagonal: Float64 = np.linalg.norm(high - low, axis=1)
    return diagonal


def _find_stray_faces(
    faces: Index, label: Index, border: Index, candidate: NDArray[np.bool_], face_count: Index
) -> NDArray[np.bool_]:
    """Return the candidates (s,) that do not fill a gap of another shell; none if they are most of the mesh."""
    if not candidate.any() or face_count[candidate].sum() > MAX_FEW_FACES_RATIO * face_count.sum():
        return np.zeros_like(candidate)
    is_rim = np.zeros(int(faces.max()) + 1, np.bool_)
    others = border[~candidate[label[border // 3]]]
    is_rim[faces[others // 3, others % 3]] = True
    own = border[candidate[label[border // 3]]]
    contacts = np.bincount(label[own // 3], is_rim[faces[own // 3, own % 3]], minlength=len(candidate))
    stray: NDArray[np.bool_] = candidate & (contacts < 2)
    return stray
