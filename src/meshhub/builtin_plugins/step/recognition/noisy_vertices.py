"""Vertices of a noisy mesh on the surfaces that meet in them, evenly spread along borders and within regions."""

# why this way: docs/decisions/0061-limits-of-noisy-meshes.md
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from meshhub.builtin_plugins.step.facets.skin import Skin
from meshhub.builtin_plugins.step.recognition.contacts import find_contact
from meshhub.builtin_plugins.step.recognition.noisy_faces import find_room, list_region_points
from meshhub.builtin_plugins.step.recognition.noisy_regions import NoisyRegions
from meshhub.builtin_plugins.step.surfaces.arrays import lengths
from meshhub.builtin_plugins.step.surfaces.surface_array import SurfaceArray, concatenate
from meshhub.builtin_plugins.step.surfaces.surfaces import distances, gradients
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex

_MAX_SURFACES = 4
"""Surfaces that meet in a point; others are ignored."""

_MAX_EQUATIONS = 2 * _MAX_SURFACES
"""Surfaces that determine a point: those, and the ones that cross them where they touch."""

_RIDGE = 1e-11
"""Addition to squared sines of angles between surfaces; where they touch, Newton's method halves the distance."""

_CONTACT_RIDGE = 1e-8
"""The same at a contact, which another surface determines: angles by rounding must not move points along it."""

_SPREADINGS = 20
"""Steps that spread the points."""

_PRECISION_MM = 1e-6
"""Distance of a point from its surfaces up to which it is on them."""

_MAX_MOVE_RATIO = 4.0
"""Distance over the longest edge of a point by which it may move."""


class _Meeting(NamedTuple):
    """Surfaces that meet in the points of a mesh.

    row, column: (k,) point, and number of the surface among those of the point
    surfaces:    (k,) surfaces
    size:        (p,) number of surfaces, free faces counted as one
    owner:       (k,) region of each surface
    ridge:       (p,) addition to squared sines
    """

    row: IntIndex
    column: IntIndex
    surfaces: SurfaceArray
    size: IntIndex
    owner: IntIndex
    ridge: Float64

    def project(self, points: Float64, max_step: float, steps: int) -> Float64:
        """Return the points (p, 3) on all their surfaces, by Gauss-Newton steps of least length."""
        points = points.copy()
        shape = (len(points), _MAX_EQUATIONS)
        has = np.zeros(shape, np.bool_)
        has[self.row, self.column] = True
        ridge = np.eye(_MAX_EQUATIONS) * np.where(has, self.ridge[:, None], 1.0)[:, None, :]
        for _ in range(steps):
            off, jacobian = np.zeros(shape), np.zeros((*shape, 3))
            off[self.row, self.column], jacobian[self.row, self.column] = gradients(self.surfaces, points[self.row])
            gram = jacobian @ jacobian.transpose(0, 2, 1) + ridge
            step = np.einsum("ijk,ij->ik", jacobian, np.linalg.solve(gram, off[:, :, None])[:, :, 0])
            length = lengths(step)
            points -= step * np.minimum(1, max_step / np.maximum(length, 1e-300))[:, None]
            if length.max() < 1e-12:
                break
        return points

    def measure(self, points: Float64) -> Float64:
        """Return the largest distance (p,) of each point from its surfaces."""
        worst = np.zeros(len(points))
        np.maximum.at(worst, self.row, np.abs(distances(self.surfaces, points[self.row])))
        return worst


def _find_meeting(skin: Skin, regions: NoisyRegions) -> _Meeting:
    point, owner = list_region_points(skin, regions.region)
    column = np.arange(len(point)) - np.searchsorted(point, point)
    kept = column < _MAX_SURFACES
    count = np.bincount(point, minlength=len(skin.points))
    count[np.unique(skin.faces[regions.region < 0])] += 1
    ridge = np.full(len(count), _RIDGE)
    return _Meeting(point[kept], column[kept], regions.surfaces.take(owner[kept]), count, owner[kept], ridge)


def _add_contacts(meeting: _Meeting, surfaces: SurfaceArray) -> _Meeting:
    """Return the meeting with the surfaces that cross touching ones, because these alone do not determine a point."""
    extra_point, extra = _find_contacts(meeting.row, meeting.owner, surfaces)
    point = np.concatenate([meeting.row, extra_point])
    order = np.argsort(point, kind="stable")
    point, surfaces = point[order], concatenate([meeting.surfaces, *extra]).take(order)
    column = np.arange(len(point)) - np.searchsorted(point, point)
    kept = column < _MAX_EQUATIONS
    ridge = meeting.ridge.copy()
    ridge[extra_point] = _CONTACT_RIDGE
    return meeting._replace(row=point[kept], column=column[kept], surfaces=surfaces.take(kept), ridge=ridge)


def _find_contacts(point: IntIndex, owner: IntIndex, surfaces: SurfaceArray) -> tuple[IntIndex, list[SurfaceArray]]:
    """Return points where two touching surfaces meet, and the surface that crosses both there, for each."""
    first = np.searchsorted(point, point)
    size = np.bincount(point)[point]
    pairs = [
        np.stack([place, place + ahead], axis=1)
        for ahead in range(1, _MAX_SURFACES)
        for place in [np.flatnonzero(np.arange(len(point)) - first + ahead < size)]
    ]
    one, other = np.concatenate(pairs).T
    points, extra = [np.empty(0, np.intp)], []
    key, number = np.unique(owner[one] * len(surfaces) + owner[other], return_inverse=True)
    for k, (a, b) in enumerate(zip((key // len(surfaces)).tolist(), (key % len(surfaces)).tolist(), strict=True)):
        contact = find_contact(surfaces.take(np.array([a])), surfaces.take(np.array([b])))
        if contact is not None:
            points.append(point[one[number == k]])
            extra.append(contact.take(np.zeros(len(points[-1]), np.intp)))
    return np.concatenate(points), extra


def move_points(skin: Skin, regions: NoisyRegions) -> Float64:
    """Return the points (p, 3) on all surfaces that meet there, evenly spread along borders and within regions.

    Without the spreading, triangles that are as small as the noise would be folded.
    """
    alone = _find_meeting(skin, regions)
    meeting = _add_contacts(alone, regions.surfaces)
    edge = float(np.median(lengths(skin.points[skin.end] - skin.points[skin.begin])))
    average, is_fixed = _make_average(skin, regions, meeting.size)
    points = meeting.project(skin.points, edge, 20)
    for _ in range(_SPREADINGS):
        spread = np.where(is_fixed[:, None], points, average @ points)
        points = meeting.project((points + spread) / 2, edge, 2)
    points = meeting.project(points, edge, 30)
    is_bad = ~np.isfinite(points).all(axis=1) | (meeting.measure(points) > _PRECISION_MM)
    longest = np.zeros(len(points))
    np.maximum.at(longest, skin.begin, lengths(skin.points[skin.end] - skin.points[skin.begin]))
    is_bad |= lengths(points - skin.points) > _MAX_MOVE_RATIO * longest
    is_bad |= alone.measure(skin.points) > find_room(skin, regions)
    return np.where(is_bad[:, None], skin.points, points)


def _make_average(skin: Skin, regions: NoisyRegions, count: IntIndex) -> tuple[csr_array, NDArray[np.bool_]]:
    """Return the average of the neighbors of each point, along the border for points of borders; and points to keep."""
    label = regions.region[np.arange(len(skin.twin)) // 3]
    beyond = np.where(skin.twin >= 0, regions.region[skin.twin // 3], -1)
    is_border = label != beyond
    begin, end = skin.begin, skin.end
    used = is_border | (count[begin] == 1)
    begin, end = begin[used], end[used]
    links = csr_array((np.ones(len(begin)), (begin, end)), shape=(len(count), len(count)))
    degree = np.asarray(links.sum(axis=1)).ravel()
    is_fixed = (count > 2) | (count == 0) | ((count == 2) & (degree != 2)) | (degree == 0)
    free = np.unique(skin.faces[regions.region < 0])
    is_fixed[free] = True
    scale = csr_array((1 / np.maximum(degree, 1), (np.arange(len(count)), np.arange(len(count)))))
    return scale @ links, is_fixed
