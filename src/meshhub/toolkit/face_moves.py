"""Where the vertices of a surface move when its faces move along their normals, and which vertices have to stay."""

# why this way: docs/decisions/0052-moved-faces.md
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.model.scene import Float64, Int32
from meshhub.toolkit.crossings import find_crossings
from meshhub.toolkit.geometry import face_normals, unit_vectors
from meshhub.toolkit.topology import Index, components, edges, half_edges

Mask = NDArray[np.bool_]


CROSSING_RATIO = 0.02
"""Depth from which faces cross, as a share of the offset; simplification makes shallower crossings."""

SKEW = 0.06 * np.array([0.5, 0.59, 0.63])
"""Additional move, as a share of the offset, where crossings are searched. It depends on the direction: the flush sides
of a slit, which pass through each other, would only touch."""

MAX_COLLAPSE_ERROR_RATIO = 0.03
"""Maximum distance of a collapsed vertex from the moved planes of its faces, as a share of the offset."""

MITER_RATIO = 3.0
"""Maximum distance of a moved vertex from its place, as a share of the offset; edges sharper than 39° get a bevel."""

RANK_RATIO = 1e-3
"""Eigenvalue, as a share of the largest, below which planes that meet at a vertex count as parallel: within 4°."""

POWER_STEPS = 4
"""Products that give the axis of parallel normals within rounding: each divides its error by 1 / RANK_RATIO."""

FOLD_RATIO = 0.01
"""Height of a moved face, as a share of the offset, from which it has turned around."""

MAX_COLLAPSE_ROUNDS = 12
"""Rounds of collapsing edges; more change little."""

MAX_STILL_ROUNDS = 8
"""Rounds of keeping the vertices of faces that cross others; mostly, two suffice."""


class _Planes(NamedTuple):
    """Moved planes of faces: normals (m, 3) and offsets (m,)."""

    normals: Float64
    offsets: Float64

    def chosen(self, mask: Mask) -> _Planes:
        """Return the planes of a mask (m,)."""
        return _Planes(self.normals[mask], self.offsets[mask])

    def meet(self, corners: Index, centers: Float64) -> tuple[Float64, Float64]:
        """Return where the planes around points (k, 3) meet, nearest to them, and the distances (k,) that remain.

        Args:
            corners: (m, 3) points at the corners of the faces.
            centers: (k, 3) positions.
        """
        count, point = len(centers), corners.ravel()
        normals = np.repeat(self.normals, 3, axis=0)
        heights = np.repeat(self.offsets, 3) - np.einsum("ij,ij->i", normals, centers[point])
        total = np.maximum(np.bincount(point, minlength=count), 1)
        matrix, right = np.empty((count, 3, 3)), np.empty((count, 3))
        for i in range(3):
            right[:, i] = np.bincount(point, normals[:, i] * heights, count) / total
            for j in range(i, 3):
                matrix[:, i, j] = np.bincount(point, normals[:, i] * normals[:, j], count) / total
                matrix[:, j, i] = matrix[:, i, j]
        moves = _solve(matrix, right)
        errors = np.zeros(count)
        np.maximum.at(errors, point, np.abs(np.einsum("ij,ij->i", normals, moves[point]) - heights))
        return centers + moves, errors


def _solve(matrix: Float64, right: Float64) -> Float64:
    """Return the shortest solutions (k, 3) of equations with mean products of unit normals (k, 3, 3).

    Where all normals are parallel, as on most vertices of a fine mesh, few products give the only axis that counts.
    """
    # the trace is 1, so that the other eigenvalues are at most the rest
    axis = np.take_along_axis(matrix, matrix.diagonal(axis1=1, axis2=2).argmax(axis=1)[:, None, None], axis=1)[:, 0]
    for _ in range(POWER_STEPS):
        axis = unit_vectors(np.einsum("kij,kj->ki", matrix, axis))
    value = np.einsum("ki,kij,kj->k", axis, matrix, axis)
    moves: Float64 = axis * (np.einsum("ki,ki->k", axis, right) / np.where(value > 0, value, 1))[:, None]
    rows = np.flatnonzero(1 - value > RANK_RATIO * value)
    values, axes = np.linalg.eigh(matrix[rows])
    is_known = values > RANK_RATIO * np.maximum(values[:, 2:], np.finfo(np.float64).tiny)
    inverse = np.divide(1.0, values, out=np.zeros_like(values), where=is_known)
    moves[rows] = np.einsum("kij,kj,klj,kl->ki", axes, inverse, axes, right[rows])
    return moves


class Moves(NamedTuple):
    """Where the vertices of a surface move.

    points:  (n, 3) positions
    faces:   (m, 3) indices into `points`
    normals: (m, 3) unit normals
    targets: (n, 3) positions after the move
    cluster: (n,) equal for vertices that collapse to one
    is_split: (n,) whether the planes meet nowhere
    is_far:  (n,) whether the planes meet too far away
    is_turned: (m,) whether the face turns around
    """

    points: Float64
    faces: Int32
    normals: Float64
    targets: Float64
    cluster: Index
    is_split: Mask
    is_far: Mask
    is_turned: Mask

    @property
    def is_wide(self) -> Mask:
        """Whether each vertex (n,) has no target that it can move to."""
        wide: Mask = self.is_split | self.is_far
        return wide

    @classmethod
    def find(cls, points: Float64, faces: Int32, distance: float, max_error_ratio: float) -> Moves:
        """Find where the vertices move.

        Args:
            points: (n, 3) positions, in millimeters.
            faces: (m, 3) indices into `points`, closed and outward.
            distance: Millimeters by which the planes move.
            max_error_ratio: Maximum distance of a vertex from the moved planes of its faces, as a share of the offset.
                Its faces tilt by less, because their other corners are exact.
        """
        size = abs(distance)
        normals = unit_vectors(face_normals(points, faces))
        planes = _Planes(
            normals,
            np.einsum("ij,ij->i", normals, points[faces[:, 0]]) + distance,
        )
        cluster, targets, errors = _collapse(points, faces, planes, size)
        far = np.linalg.norm(targets - points, axis=1)
        is_split, is_far = errors > max_error_ratio * size, far > MITER_RATIO * size
        moves = cls(points, faces, normals, targets, cluster, is_split, is_far, np.zeros(len(faces), np.bool_))
        return moves._replace(is_turned=moves.find_turned(targets, cluster, size))

    def find_tips(self, vertices: Index, normals: Float64, distance: float) -> Float64:
        """Return where vertices (k,) move with a face that has the normal (k, 3).

        If its planes meet too far away, the vertex moves toward that place, within the plane of the face.
        """
        straight = self.points[vertices] + distance * normals
        rest = self.targets[vertices] - straight
        length = np.maximum(np.linalg.norm(rest, axis=1), np.finfo(np.float64).tiny)
        share = np.minimum(1, np.sqrt(MITER_RATIO**2 - 1) * abs(distance) / length)
        share[self.is_split[vertices]] = 0
        share[~self.is_wide[vertices]] = 1
        tips: Float64 = straight + share[:, None] * rest
        return tips

    def find_turned(self, targets: Float64, cluster: Index, size: float) -> Mask:
        """Return which faces (m,) turn around if the vertices move to targets (n, 3)."""
        sides = np.roll(targets[self.faces], -1, axis=1) - targets[self.faces]
        longest = np.sqrt(np.einsum("ijk,ijk->ij", sides, sides)).max(axis=1)
        heights = np.einsum("ij,ij->i", face_normals(targets, self.faces), self.normals)
        turned: Mask = (heights < -FOLD_RATIO * size * longest) & _is_proper(cluster[self.faces])
        return turned


def _is_proper(corners: Index) -> Mask:
    a, b, c = corners.T
    proper: Mask = (a != b) & (b != c) & (c != a)
    return proper


def _collapse(points: Float64, faces: Int32, planes: _Planes, size: float) -> tuple[Index, Float64, Float64]:
    """Collapse the edges that would turn around; return cluster (n,), target (n, 3) and error (n,) of each vertex."""
    cluster: Index = np.arange(len(points))
    targets, errors = planes.meet(faces, points)
    table = edges(faces)
    begin, end = half_edges(faces)
    first, second = begin[table.order[table.start]], end[table.order[table.start]]
    before = points[second] - points[first]
    is_allowed = np.ones(len(first), np.bool_)
    for _ in range(MAX_COLLAPSE_ROUNDS):
        a, b = cluster[first], cluster[second]
        turns = (a != b) & is_allowed & (np.einsum("ij,ij->i", before, targets[b] - targets[a]) < 0)
        if not turns.any():
            break
        count, group = components(len(targets), a[turns], b[turns])
        label = group[cluster]
        joined = np.flatnonzero(np.bincount(group, minlength=count) > 1)
        _, remaining, far = _meet_clusters(points, faces, planes, label, joined)
        fails = np.zeros(count, np.bool_)
        fails[joined] = (remaining > MAX_COLLAPSE_ERROR_RATIO * size) | (far > MITER_RATIO * size)
        is_allowed[turns & fails[group[a]]] = False
        # failed groups keep their former clusters
        was_proper, old = _is_proper(cluster[faces]), cluster
        _, member, cluster = np.unique(
            np.where(fails[label], count + cluster, label), return_index=True, return_inverse=True
        )
        targets, errors = targets[old[member]], errors[old[member]]
        # planes of faces that are gone do not count any more
        lost = faces[was_proper & ~_is_proper(cluster[faces])]
        changed = np.unique(cluster[lost])
        targets[changed], errors[changed], _ = _meet_clusters(points, faces, planes, cluster, changed)
    return cluster, targets[cluster], errors[cluster]


def _meet_clusters(
    points: Float64, faces: Int32, planes: _Planes, cluster: Index, chosen: Index
) -> tuple[Float64, Float64, Float64]:
    """Return where the planes around chosen clusters (k,) meet, the errors (k,), and the longest moves (k,) there."""
    # other clusters share a last place
    place = np.full(int(cluster.max()) + 1, len(chosen))
    place[chosen] = np.arange(len(chosen))
    place = place[cluster]
    rows = np.flatnonzero(place < len(chosen))
    own = place[rows]
    members = np.bincount(own, minlength=len(chosen))
    centers = np.zeros((len(chosen) + 1, 3))
    for axis in range(3):
        centers[:-1, axis] = np.bincount(own, points[rows, axis], len(chosen)) / members
    around = _is_proper(cluster[faces]) & (place[faces] < len(chosen)).any(axis=1)
    meeting, errors = planes.chosen(around).meet(place[faces[around]], centers)
    far = np.zeros(len(chosen))
    np.maximum.at(far, own, np.linalg.norm(meeting[own] - points[rows], axis=1))
    return meeting[:-1], errors[:-1], far


def find_still(moves: Moves, size: float) -> Mask:
    """Return which vertices must stay, so that the others move without crossings."""
    still = moves.is_wide.copy()
    still[moves.faces[moves.is_turned]] = True
    is_new = np.ones(len(moves.faces), np.bool_)
    for _ in range(MAX_STILL_ROUNDS):
        targets, cluster = keep_still(moves, still)
        proper = np.flatnonzero(_is_proper(cluster[moves.faces]))
        steps = targets - moves.points
        skewed = targets + steps * (np.linalg.norm(SKEW) + unit_vectors(steps) @ SKEW)[:, None]
        crossed = find_crossings(skewed[moves.faces[proper]], CROSSING_RATIO * size, is_new[proper])
        faces = np.concatenate([crossed.first, crossed.second])
        grown = still.copy()
        grown[moves.faces[proper[faces]]] = True
        grown[moves.faces[moves.find_turned(targets, cluster, size)]] = True
        if np.array_equal(grown, still):
            break
        # pairs of unchanged faces were compared in an earlier round
        is_new = (grown != still)[moves.faces].any(axis=1)
        still = grown
    return still


def keep_still(moves: Moves, still: Mask) -> tuple[Float64, Index]:
    """Return targets (n, 3), and the first vertex (n,) of each cluster, with those of a mask alone in place."""
    numbers = np.arange(len(still))
    _, first, group = np.unique(
        np.where(still, len(still) + numbers, moves.cluster), return_index=True, return_inverse=True
    )
    return np.where(still[:, None], moves.points, moves.targets), first[group]
