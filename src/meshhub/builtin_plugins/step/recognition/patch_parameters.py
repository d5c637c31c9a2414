"""Parameters of pieces of a mesh for the fit of patches: projections of open pieces, conformal maps of rings."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.sparse import block_diag, csr_matrix
from scipy.sparse.csgraph import breadth_first_order
from scipy.sparse.linalg import spsolve

from meshhub.builtin_plugins.step.recognition.rim_curves import order_loops
from meshhub.builtin_plugins.step.surfaces.arrays import TINY, lengths, normalize, sum_by_label
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex
from meshhub.toolkit.topology import components

MAX_TILT_COS = np.cos(np.radians(65.0))
"""Cosine of the angle between a triangle and the plane onto which a piece is projected."""

_MARGIN_RATIO = 0.02
"""Width of the margin around a projected piece over its size; its outline stays inside of the patch."""

_MIN_AREA_RATIO = 1e-6
"""Area of a triangle over the mean one, below which its direction is rounding noise."""

_MAX_CORNER_RAD = np.radians(140.0)
"""Radians between two sides of a border; along a side, the triangles at a point have about 180°."""

_RECTANGLE_CORNERS = 4
"""Corners of a piece that is unrolled to a rectangle."""

RING_LOOPS = 2
"""Loops on the border of a ring."""

_RULING_ENDS = 2
"""Points of a ruling."""

_FLAT_SINE = 5e-5
"""Sine of the angle between the two triangles of a flat facet; ten times the rounding of small facets."""


class Piece(NamedTuple):
    """Connected triangles of a mesh.

    points:    (p, 3) millimeters
    triangles: (m, 3) indices into `points`
    rim:       (b, 2) half-edges on the border, as points
    loop:      (b,) loop of each
    number:    (p,) indices of the points in the mesh
    """

    points: Float64
    triangles: IntIndex
    rim: IntIndex
    loop: IntIndex
    number: IntIndex

    @property
    def loop_count(self) -> int:
        """Number of loops on the border."""
        return int(self.loop.max(initial=-1)) + 1


class Frame(NamedTuple):
    """Box around a projected piece; axes: (3, 3) unit vectors in rows, the last one across; low, size: (2,) mm."""

    axes: Float64
    low: Float64
    size: Float64


def cut_piece(faces: IntIndex, points: Float64) -> Piece | None:
    """Return triangles (m, 3) of a mesh as a piece; None if loops touch in a point or the piece has handles."""
    number, triangles = np.unique(faces, return_inverse=True)
    triangles = triangles.reshape(-1, 3)
    begin, end = triangles.ravel(), triangles[:, [1, 2, 0]].ravel()
    count = len(number)
    forward, backward = begin * count + end, end * count + begin
    is_rim = ~np.isin(forward, backward)
    rim = np.stack([begin[is_rim], end[is_rim]], axis=1)
    if (np.bincount(rim[:, 0], minlength=count) > 1).any():
        return None
    _, label = components(count, rim[:, 0], rim[:, 1])
    _, loop = np.unique(label[rim[:, 0]], return_inverse=True)
    piece = Piece(points[number], triangles, rim, loop, number)
    edges = (3 * len(triangles) + len(rim)) // 2
    return piece if count - edges + len(triangles) == 2 - piece.loop_count else None


def project_piece(piece: Piece) -> tuple[Float64, Frame] | None:
    """Return the coordinates (p, 3) of the points in a frame, the first two from 0 to 1; None if the piece overhangs.

    The first axis is the longest one of the piece.
    """
    corner = piece.points[piece.triangles]
    cross = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    area = lengths(cross)
    across = normalize(cross.sum(axis=0)[None])[0]
    sure = area > _MIN_AREA_RATIO * area.mean()
    if float((normalize(cross[sure]) @ across).min()) < MAX_TILT_COS:
        return None
    flat = piece.points - np.outer(piece.points @ across, across)
    flat = flat - flat.mean(axis=0)
    _, vectors = np.linalg.eigh(flat.T @ flat)
    along = vectors[:, 2]
    axes = np.stack([along, np.cross(across, along), across])
    place = piece.points @ axes.T
    low, size = place.min(axis=0)[:2], np.ptp(place, axis=0)[:2]
    low, size = low - _MARGIN_RATIO * size, (1 + 2 * _MARGIN_RATIO) * size
    place[:, :2] = (place[:, :2] - low) / size
    return place, Frame(axes, low, size)


def flatten_disc(piece: Piece) -> Float64 | None:
    """Return parameters (p, 2) of a piece, from 0 to 1; None if it cannot be flattened.

    The first direction is the longer one. The map is conformal as far as possible, and its border is free.

    Source:
        Lévy, Petitjean, Ray and Maillot, "Least squares conformal maps for automatic texture atlas generation", ACM
        Transactions on Graphics 21, 2002; the form of its energy: Mullen, Tong, Alliez and Desbrun, "Spectral
        conformal parameterization", Computer Graphics Forum 27, 2008.
    """
    count = len(piece.points)
    dirichlet = _assemble(_stiffness(piece), piece.triangles, count)
    begin, end = piece.rim.T
    half = np.full(len(begin), 0.5)
    rows, columns = np.concatenate([begin, end]), np.concatenate([end, begin]) + count
    area = csr_matrix((np.concatenate([half, -half]), (rows, columns)), (2 * count, 2 * count))
    energy = (block_diag([dirichlet, dirichlet]) - area - area.T).tocsr()
    # two points of the border that are far from each other stay where they are
    border = piece.points[begin]
    first = int(lengths(border - border.mean(axis=0)).argmax())
    second = int(lengths(border - border[first]).argmax())
    fixed = np.array([begin[first], begin[second], begin[first] + count, begin[second] + count])
    flat = np.zeros(2 * count)
    flat[fixed[1]] = lengths((border[second] - border[first])[None])[0]
    free = np.setdiff1d(np.arange(2 * count), fixed)
    flat[free] = spsolve(energy[free][:, free].tocsc(), -(energy[free] @ flat))
    if not np.isfinite(flat).all():
        return None
    place = flat.reshape(2, count).T
    place -= place.mean(axis=0)
    _, vectors = np.linalg.eigh(place.T @ place)
    place = place @ vectors[:, ::-1]
    low, size = place.min(axis=0), np.ptp(place, axis=0)
    if size.min() <= 0:
        return None
    return np.asarray((place - low + _MARGIN_RATIO * size) / ((1 + 2 * _MARGIN_RATIO) * size), np.float64)


def unroll_rectangle(piece: Piece) -> Float64 | None:
    """Return parameters (p, 2) of a piece with one loop and four corners, 0…1; None if it has another shape.

    The first direction is the longer one. Both coordinates are harmonic: one is 0 and 1 on two sides, the other on the
    other two.
    """
    sides = _find_sides(piece)
    if sides is None:
        return None
    count = len(piece.points)
    matrix = _assemble(_stiffness(piece), piece.triangles, count)
    parameters = np.empty((count, 2))
    for axis, (zero, one) in enumerate(((sides[3], sides[1]), (sides[0], sides[2]))):
        fixed = np.union1d(zero, one)
        free = np.setdiff1d(np.arange(count), fixed)
        value = np.zeros(count)
        value[one] = 1.0
        if len(free):
            value[free] = spsolve(matrix[free][:, free].tocsc(), -(matrix[free] @ value))
        parameters[:, axis] = value
    return np.clip(parameters, 0.0, 1.0) if np.isfinite(parameters).all() else None


def _find_sides(piece: Piece) -> list[IntIndex] | None:
    """Return the points of the four sides of a piece, the longer ones first and third; None if it has no four."""
    if piece.loop_count != 1:
        return None
    loop = piece.rim[order_loops(*piece.rim.T)[0], 0]
    corner = np.flatnonzero(_border_angles(piece)[loop] < _MAX_CORNER_RAD)
    if len(corner) != _RECTANGLE_CORNERS:
        return None
    loop = np.roll(loop, -corner[0])
    begin = [*(corner - corner[0]).tolist(), len(loop)]
    loop = np.append(loop, loop[0])
    sides = [loop[start : stop + 1] for start, stop in pairwise(begin)]
    length = [float(lengths(np.diff(piece.points[side], axis=0)).sum()) for side in sides]
    if length[0] + length[2] < length[1] + length[3]:
        sides = [*sides[1:], sides[0]]
    return sides


def unroll_strip(piece: Piece) -> Float64 | None:
    """Return parameters (p, 2) of a piece all of whose points are the ends of rulings; None if it has another shape.

    Rulings are the edges from one rim to the other, except for the diagonals of flat facets. Both ends of a ruling have
    one parameter along the strip.
    """
    rungs = _find_rungs(piece)
    if rungs is None:
        return None
    low, high = piece.points[rungs].transpose(1, 0, 2)
    step = (lengths(np.roll(low, -1, axis=0) - low) + lengths(np.roll(high, -1, axis=0) - high)) / 2
    along = np.concatenate([[0.0], np.cumsum(step)])
    parameters = np.empty((len(piece.points), 2))
    parameters[rungs, 0] = (along[:-1] / along[-1 if piece.loop_count == RING_LOOPS else -2])[:, None]
    parameters[rungs, 1] = (0.0, 1.0)
    return parameters


def _find_rungs(piece: Piece) -> IntIndex | None:
    """Return the (n, 2) rulings of a strip in order, from one rim to the other; None if the piece is not a strip."""
    count = len(piece.points)
    begin, end = piece.triangles.ravel(), piece.triangles[:, [1, 2, 0]].ravel()
    keys = begin * count + end
    order = np.argsort(keys)
    place = np.minimum(np.searchsorted(keys[order], end * count + begin), len(order) - 1)
    twin = order[place]
    half = np.flatnonzero((begin[twin] == end) & (end[twin] == begin) & (begin < end))
    corner = piece.points[piece.triangles]
    normal = normalize(np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0]))
    is_flat = lengths(np.cross(normal[half // 3], normal[twin[half] // 3])) <= _FLAT_SINE
    inner = np.stack([begin[half], end[half]], axis=1)[~is_flat]
    if piece.loop_count == RING_LOOPS:
        loop = np.full(count, -1)
        loop[piece.rim[:, 0]] = piece.loop
        first = piece.rim[piece.loop == 0]
        chain = first[order_loops(*first.T)[0], 0]
        ends = inner[:, 0]
        rungs = np.where((loop[ends] == 0)[:, None], inner, inner[:, ::-1])
        if (loop[rungs] != (0, 1)).any():
            return None
    else:
        sides = _find_sides(piece)
        if sides is None:
            return None
        if len(sides[1]) > len(sides[0]):
            sides = [*sides[1:], sides[0]]
        if not len(sides[1]) == len(sides[3]) == _RULING_ENDS:
            return None
        chain = sides[0]
        rungs = np.concatenate([inner, [sides[1], sides[3]]])
        on_chain = np.isin(rungs, chain)
        if (on_chain.sum(axis=1) != 1).any():
            return None
        rungs = np.where(on_chain[:, :1], rungs, rungs[:, ::-1])
    if len(rungs) != len(chain) or 2 * len(rungs) != count or len(np.unique(rungs)) != count:
        return None
    place = np.empty(count, np.intp)
    place[chain] = np.arange(len(chain))
    result: IntIndex = rungs[np.argsort(place[rungs[:, 0]])]
    return result


def _border_angles(piece: Piece) -> Float64:
    """Return the sum of the triangle angles at each point (p,), radians."""
    corner = piece.points[piece.triangles]
    sides = [normalize(np.roll(corner, -step, axis=1)[:, k] - corner[:, k]) for k in range(3) for step in (1, 2)]
    angle = [np.arccos(np.clip(np.einsum("ij,ij->i", sides[2 * k], sides[2 * k + 1]), -1, 1)) for k in range(3)]
    return sum_by_label(piece.triangles.T.ravel(), np.concatenate(angle), len(piece.points))


def unroll_ring(piece: Piece) -> Float64 | None:
    """Return parameters (p, 2) of a piece with two loops: around it, and from one loop to the other, both 0…1.

    The parameter around the piece is 0 at one point of each loop.

    Source:
        Discrete conformal maps: Pinkall and Polthier, "Computing discrete minimal surfaces and their conjugates",
        Experimental Mathematics 2, 1993.
    """
    count = len(piece.points)
    low, high = (np.unique(piece.rim[piece.loop == number, 0]) for number in range(2))
    stiffness = _stiffness(piece)
    matrix = _assemble(stiffness, piece.triangles, count)
    across = np.zeros(count)
    across[high] = 1.0
    free = np.setdiff1d(np.arange(count), np.concatenate([low, high]))
    if len(free):
        across[free] = spsolve(matrix[free][:, free].tocsc(), -(matrix[free] @ across))
    jump = _find_jumps(piece)
    right = np.zeros(count)
    np.add.at(right, piece.triangles, -np.einsum("ijk,ik->ij", stiffness, jump))
    around = np.zeros(count)
    around[1:] = spsolve(matrix[1:][:, 1:].tocsc(), right[1:])
    if not (np.isfinite(across).all() and np.isfinite(around).all()):
        return None
    around %= 1.0
    # the two points that are nearest to one line along the ring
    order = np.argsort(around[high])
    place = np.searchsorted(around[high][order], around[low])
    candidates = order[np.stack([place - 1, place % len(high)])]
    gap = wrap(around[high][candidates] - around[low])
    row, column = np.unravel_index(np.abs(gap).argmin(), gap.shape)
    around = (around - around[low[column]] - gap[row, column] * across) % 1.0
    around[[low[column], high[candidates[row, column]]]] = 0.0
    return np.stack([around, np.clip(across, 0.0, 1.0)], axis=1)


def wrap(share: Float64) -> Float64:
    """Return parts of a turn in -½…½."""
    wrapped: Float64 = (share + 0.5) % 1.0 - 0.5
    return wrapped


def _stiffness(piece: Piece) -> Float64:
    """Return the (m, 3, 3) energy of linear functions on each triangle; one without area is as stiff as a sliver."""
    corner = piece.points[piece.triangles]
    opposite = np.stack([corner[:, 2] - corner[:, 1], corner[:, 0] - corner[:, 2], corner[:, 1] - corner[:, 0]], axis=1)
    area = lengths(np.cross(opposite[:, 0], opposite[:, 1]))
    area = np.maximum(area, max(_MIN_AREA_RATIO * float(area.mean()), TINY))
    energy: Float64 = np.einsum("ijk,ilk->ijl", opposite, opposite) / (2 * area)[:, None, None]
    return energy


def _assemble(stiffness: Float64, triangles: IntIndex, count: int) -> csr_matrix:
    rows, columns = np.repeat(triangles, 3, axis=1).ravel(), np.tile(triangles, (1, 3)).ravel()
    return csr_matrix((stiffness.ravel(), (rows, columns)), (count, count))


def _find_jumps(piece: Piece) -> Float64:
    """Return a value for each corner of each triangle (m, 3); the differences along the edges sum to 1 around a ring.

    The edges that a strip of triangles from one loop to the other crosses have a difference of 1.
    """
    triangles = piece.triangles
    count = len(piece.points)
    begin, end = triangles.ravel(), triangles[:, [1, 2, 0]].ravel()
    order = np.argsort(begin * count + end)
    place = np.searchsorted((begin * count + end)[order], end * count + begin)
    place = np.minimum(place, len(order) - 1)
    twin = order[place]
    twin = np.where((begin[twin] == end) & (end[twin] == begin), twin, -1)
    half = np.flatnonzero(twin >= 0)
    size = len(triangles)
    graph = csr_matrix((np.ones(len(half)), (half // 3, twin[half] // 3)), (size, size))
    rim_loop = np.full(count, -1)
    rim_loop[piece.rim[:, 0]] = piece.loop
    border = np.flatnonzero(twin < 0)
    first, last = (border[rim_loop[begin[border]] == loop][0] for loop in range(2))
    _, before = breadth_first_order(graph, first // 3)
    difference = np.zeros(len(begin))
    difference[last] += 1.0
    triangle = last // 3
    while triangle != first // 3:
        for edge in range(3 * triangle, 3 * triangle + 3):
            if twin[edge] >= 0 and twin[edge] // 3 == before[triangle]:
                difference[edge] -= 1.0
                difference[twin[edge]] += 1.0
                break
        triangle = before[triangle]
    difference[first] -= 1.0
    edges = difference.reshape(-1, 3)
    return np.stack([np.zeros(size), edges[:, 0], -edges[:, 2]], axis=1)
