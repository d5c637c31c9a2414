"""A noisy or irregular mesh as a mesh of exact surfaces: each vertex moves onto the surfaces that meet there."""

# why this way: docs/decisions/0058-noisy-meshes.md
from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from meshhub.builtin_plugins.step.facets.faceting import FacetedSkin, outline_faces
from meshhub.builtin_plugins.step.facets.planar import ROUNDING_RATIO, estimate_tolerance
from meshhub.builtin_plugins.step.facets.skin import Skin, build_skin
from meshhub.builtin_plugins.step.recognition.noisy_design import find_relations, information, round_radii
from meshhub.builtin_plugins.step.recognition.noisy_points import measure_roughness
from meshhub.builtin_plugins.step.recognition.noisy_regions import NoisyRegions, fit_surface, grow_regions
from meshhub.builtin_plugins.step.recognition.recognize import Segments
from meshhub.builtin_plugins.step.surfaces import traits
from meshhub.builtin_plugins.step.surfaces.arrays import distinct_pairs, lengths, normalize
from meshhub.builtin_plugins.step.surfaces.surface_array import SurfaceArray, SurfaceKind
from meshhub.builtin_plugins.step.surfaces.surfaces import distances, gradients
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex, face_normals
from meshhub.toolkit.topology import components, first_members

_MIN_REGIONS_COUNT = 2
"""Regions of a mesh that is worth a second attempt."""

_MAX_FREE_RATIO = 0.3
"""Share of triangles without a region, above which the mesh is not made of these surfaces, such as a sculpture."""

_MAX_SURFACES = 4
"""Surfaces that meet in a point; others are ignored."""

_REFINEMENTS = 3
"""Turns of competition and fits; the fits are biased by the faces of neighbors, which the next turn finds."""

_RIDGE = 1e-11
"""Addition to squared sines of angles between surfaces; where they touch, Newton's method halves the distance."""

_MIN_EDGE_RATIO = 1e-3
"""Length of an edge over the median one, up to which both ends are one point: where four surfaces touch in a point."""

_SPREADINGS = 20
"""Steps that spread the points."""

_PRECISION_MM = 1e-6
"""Distance of a point from its surfaces up to which it is on them."""

_MAX_OFF_RATIO = 8.0
"""Distance of a point from its surfaces over the noise, up to which the distance counts as noise."""

_MAX_SAGITTA_RATIO = 0.1
"""The same over the median edge: where surfaces touch, points beside the border are off by the depth of triangles."""

_MAX_MOVE_RATIO = 4.0
"""Distance over the median edge by which points may move."""

_MAX_CORRELATION = 0.5
"""Correlation of the distances of neighboring points from a surface; that of noise is zero."""

_SIMPLER: dict[SurfaceKind, tuple[SurfaceKind, ...]] = {
    SurfaceKind.PLANE: (),
    SurfaceKind.CYLINDER: (SurfaceKind.PLANE,),
    SurfaceKind.SPHERE: (SurfaceKind.PLANE,),
    SurfaceKind.CONE: (SurfaceKind.PLANE, SurfaceKind.CYLINDER),
    SurfaceKind.TORUS: (SurfaceKind.PLANE, SurfaceKind.CYLINDER, SurfaceKind.SPHERE, SurfaceKind.CONE),
}
"""Kinds with fewer parameters, the simplest first."""

_MAX_SIMPLER_RATIO = 1.03
"""Root mean square of a simpler surface over that of another one, from which the parameters of the latter are noise."""

_MAX_GAP_ROUNDS = 4
"""Rings of free faces that join the regions around them."""

_MEDIAN_RATIO = 1.48
"""Deviation of a normal distribution over the median of its absolute values."""

_MIN_NOISE_RATIO = 0.05
"""Smallest noise of a region over the largest one; planes of an irregular mesh may be exact."""

_MAX_DEVIATIONS = 4.5
"""Distance of a point from the surface of its region in deviations of the noise."""

_MAX_TURN = 0.5
"""One minus the cosine of 60°: angle between a triangle and the surface of its region."""

_TURN_UNIT = 0.13
"""One minus the cosine of 30°: angle that counts as much as a distance of one deviation."""

_MIN_HEIGHT_RATIO = 6.0
"""Height of a triangle in deviations of the noise, below which its normal is noise."""

_MIN_POINTS = 10
"""Points of a fit."""


class RegularMesh(NamedTuple):
    """A mesh whose vertices lie on surfaces.

    skin:     mesh
    faceted:  its planar facets; each triangle of a curved region is one
    segments: surfaces of the curved regions
    points:   (p, 3) points of the original
    sigma:    mm, deviation of the noise of the original
    """

    skin: Skin
    faceted: FacetedSkin
    segments: Segments
    points: Float64
    sigma: float


def regularize(skin: Skin) -> RegularMesh | None:
    """Return a mesh with its vertices on the surfaces of its smooth regions; None if it has none."""
    regions = grow_regions(skin, measure_roughness(skin))
    if len(regions.surfaces) < _MIN_REGIONS_COUNT or (regions.region < 0).mean() > _MAX_FREE_RATIO:
        return None
    regions = refine(skin, regions)
    if (regions.region < 0).mean() > _MAX_FREE_RATIO:
        return None
    regions = choose_sides(skin, design(skin, regions))
    skin, moved, region = _join_points(skin, move_points(skin, regions), regions.region)
    regions = regions._replace(region=region)
    faceted = _outline_regions(moved, regions)
    surface = np.full(faceted.faces, -1, np.intp)
    is_curved = (region >= 0) & (regions.surfaces.kind[region] != SurfaceKind.PLANE)
    surface[faceted.region[is_curved]] = region[is_curved]
    limit = np.full(len(regions.surfaces), faceted.tolerance)
    segments = Segments(regions.surfaces, limit, surface, surface)
    return RegularMesh(moved, faceted, segments, skin.points, float(regions.sigma.max()))


def _join_points(skin: Skin, points: Float64, region: IntIndex) -> tuple[Skin, Skin, IntIndex]:
    """Join points at the same place; return the mesh without the faces between them, moved, and its regions."""
    length = lengths(points[skin.end] - points[skin.begin])
    short = length < _MIN_EDGE_RATIO * float(np.median(length))
    _, label = components(len(points), skin.begin[short].astype(np.intp), skin.end[short].astype(np.intp))
    first = first_members(label, int(label.max()) + 1)[label]
    faces = first[skin.faces]
    kept = (faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 2] != faces[:, 0])
    moved = build_skin(points, faces[kept].astype(np.int32), skin.paint[kept])
    before = np.empty_like(moved.points)
    before[moved.faces] = skin.points[faces[kept]]
    return replace(moved, points=before, cross=face_normals(before, moved.faces)), moved, region[kept]


def _outline_regions(skin: Skin, regions: NoisyRegions) -> FacetedSkin:
    """Return the skin as planar faces: connected triangles of a plane and a color, and single ones of other regions."""
    half = np.flatnonzero(skin.twin > np.arange(len(skin.twin)))
    one, other = half // 3, skin.twin[half] // 3
    region = regions.region
    is_same = (region[one] == region[other]) & (region[one] >= 0) & (skin.paint[one] == skin.paint[other])
    is_same &= regions.surfaces.kind[region[one]] == SurfaceKind.PLANE
    count, label = components(len(region), one[is_same], other[is_same])
    return outline_faces(skin, label.astype(np.int32), count, estimate_tolerance(skin.points))


def _neighbors(skin: Skin) -> tuple[IntIndex, IntIndex]:
    half = np.flatnonzero(skin.twin >= 0)
    return half // 3, skin.twin[half] // 3


def _costs(skin: Skin, regions: NoisyRegions, face: IntIndex, region: IntIndex) -> Float64:
    """Return how badly a region (n,) explains a face (n,): 1 at a distance of one deviation, or an angle of 30°."""
    surfaces, sigma = regions.surfaces.take(region), float(regions.sigma.max())
    corner = skin.points[skin.faces[face]]
    off = np.stack([distances(surfaces, corner[:, k]) for k in range(3)], axis=1)
    _, normal = gradients(surfaces, corner.mean(axis=1))
    turn = 1 - np.abs(np.einsum("ij,ij->i", normal, normalize(skin.cross[face])))
    longest = np.max([lengths(corner[:, k] - corner[:, k - 1]) for k in range(3)], axis=0)
    # the normal of a thin triangle is noise
    turn[lengths(skin.cross[face]) < _MIN_HEIGHT_RATIO * sigma * longest] = 0.0
    is_far = (np.abs(off).max(axis=1) > _MAX_DEVIATIONS * sigma) | (turn > _MAX_TURN)
    return np.where(is_far, np.inf, np.mean(off**2, axis=1) / sigma**2 + turn / _TURN_UNIT)


def settle(skin: Skin, regions: NoisyRegions) -> NoisyRegions:
    """Let neighboring regions compete for the faces at their border, and for free faces."""
    one, other = _neighbors(skin)
    region = regions.region.copy()
    for _ in range(12):
        has = region >= 0
        cost = np.full(len(region), np.inf)
        cost[has] = _costs(skin, regions, np.flatnonzero(has), region[has])
        offers = (region[other] >= 0) & (region[other] != region[one])
        face, offered = one[offers], region[other[offers]]
        price = _costs(skin, regions, face, offered)
        better = price < 0.8 * cost[face]
        if not better.any():
            break
        face, offered, price = face[better], offered[better], price[better]
        order = np.argsort(-price, kind="stable")
        region[face[order]] = offered[order]
    return regions._replace(region=_smooth(skin, regions._replace(region=region)))


def refine(skin: Skin, regions: NoisyRegions) -> NoisyRegions:
    """Let neighboring regions compete, and fit the surface of each to the points that only it has, in turns."""
    for _ in range(_REFINEMENTS):
        regions = settle(skin, regions)
        point, owner = _region_points(skin, regions.region)
        is_own = (np.bincount(point, minlength=len(skin.points)) == 1)[point]
        sigma = regions.sigma.copy()
        surfaces = regions.surfaces
        for number in np.unique(owner).tolist():
            mine = owner == number
            own = point[mine & is_own]
            if len(own) < _MIN_POINTS:
                continue
            faces = np.flatnonzero(regions.region == number)
            surface = _fit_simplest(skin, SurfaceKind(int(surfaces.kind[number])), faces, own)
            off = np.abs(distances(surface.take(np.zeros(len(own), np.intp)), skin.points[own]))
            if np.isfinite(off).all() and np.median(off) < 2 * sigma[number]:
                surfaces = surfaces.replace_rows(np.array([number]), surface)
                sigma[number] = _MEDIAN_RATIO * float(np.median(off))
        sigma = np.maximum(sigma, _MIN_NOISE_RATIO * sigma.max())
        regions = NoisyRegions(regions.region, surfaces, sigma)
    return _fill_gaps(skin, _drop_systematic(skin, regions))


def _fill_gaps(skin: Skin, regions: NoisyRegions) -> NoisyRegions:
    """Return the regions with the free faces that are as near to the surface of a neighbor as their own edges allow.

    A flat facet beside a round face would have an edge that is not on it.
    """
    one, other = _neighbors(skin)
    region = regions.region.copy()
    edge = float(np.median(lengths(skin.points[skin.end] - skin.points[skin.begin])))
    limit = max(_MAX_OFF_RATIO * float(regions.sigma.max()), _MAX_SAGITTA_RATIO * edge)
    for _ in range(_MAX_GAP_ROUNDS):
        offers = (region[one] < 0) & (region[other] >= 0)
        face, offered = one[offers], region[other[offers]]
        corner, surfaces = skin.points[skin.faces[face]], regions.surfaces.take(offered)
        off = np.max([np.abs(distances(surfaces, corner[:, k])) for k in range(3)], axis=0)
        near = np.flatnonzero(off <= limit)
        if len(near) == 0:
            break
        near = near[np.argsort(-off[near], kind="stable")]
        region[face[near]] = offered[near]
    return regions._replace(region=region)


def _fit_simplest(skin: Skin, kind: SurfaceKind, faces: IntIndex, point: IntIndex) -> SurfaceArray:
    """Fit a surface of one kind to points, or of a simpler kind that fits as well."""
    directions = faces, normalize(skin.cross[faces])
    result = fit_surface(skin, kind, directions, point)
    nothing = np.zeros(len(point), np.intp)
    allowed = _MAX_SIMPLER_RATIO * float(lengths(distances(result.take(nothing), skin.points[point])[None])[0])
    for simpler in _SIMPLER[kind]:
        surface = fit_surface(skin, simpler, directions, point)
        if float(lengths(distances(surface.take(nothing), skin.points[point])[None])[0]) <= allowed:
            return surface
    return result


def _drop_systematic(skin: Skin, regions: NoisyRegions) -> NoisyRegions:
    """Return the regions without those whose points are off as their neighbors are: another surface would fit them."""
    point, owner = _region_points(skin, regions.region)
    is_own = (np.bincount(point, minlength=len(skin.points)) == 1)[point]
    own = np.full(len(skin.points), -1, np.intp)
    own[point[is_own]] = owner[is_own]
    count, has = len(regions.surfaces), own >= 0
    off = np.zeros(len(skin.points))
    off[has] = distances(regions.surfaces.take(own[has]), skin.points[has])
    size = np.maximum(np.bincount(own[has], minlength=count), 1)
    off[has] -= (np.bincount(own[has], off[has], count) / size)[own[has]]
    linked = has[skin.begin] & (own[skin.begin] == own[skin.end])
    begin, end = skin.begin[linked], skin.end[linked]
    shared = np.bincount(own[begin], off[begin] * off[end], count)
    total = np.bincount(own[begin], off[begin] ** 2 + off[end] ** 2, count) / 2
    rounding = ROUNDING_RATIO * float(np.abs(skin.points).max())
    spread = np.sqrt(np.bincount(own[has], off[has] ** 2, count) / size)
    is_lost = (shared > _MAX_CORRELATION * total) & (spread > 2 * rounding) & (size > _MIN_POINTS)
    # points of borders alone are on many surfaces
    is_lost |= (size <= _MIN_POINTS) & (regions.surfaces.kind != SurfaceKind.PLANE)
    return regions._replace(region=np.where((regions.region >= 0) & is_lost[regions.region], -1, regions.region))


def _smooth(skin: Skin, regions: NoisyRegions) -> IntIndex:
    """Return the regions of faces, where a face with two neighbors of another region that explains it joins this."""
    region = regions.region.copy()
    for _ in range(4):
        twin = skin.twin.reshape(-1, 3)
        beside = np.where(twin >= 0, region[twin // 3], -1)
        majority = np.where(beside[:, 0] == beside[:, 1], beside[:, 0], beside[:, 2])
        is_majority = ((beside == majority[:, None]).sum(axis=1) >= 2) & (majority >= 0) & (majority != region)
        face = np.flatnonzero(is_majority)
        face = face[np.isfinite(_costs(skin, regions, face, majority[face]))]
        if len(face) == 0:
            break
        region[face] = majority[face]
    return region


def _region_points(skin: Skin, region: IntIndex) -> tuple[IntIndex, IntIndex]:
    """Return pairs of a point and a region around it."""
    owner, corner = np.repeat(region, 3), skin.faces.ravel().astype(np.intp)
    return distinct_pairs(corner[owner >= 0], owner[owner >= 0], int(region.max()) + 1)


def design(skin: Skin, regions: NoisyRegions) -> NoisyRegions:
    """Return the regions with surfaces that meet as those of a designer do."""
    point, owner = _region_points(skin, regions.region)
    used = np.unique(owner)
    place = np.full(len(regions.surfaces), -1, np.intp)
    place[used] = np.arange(len(used))
    region = np.where(regions.region >= 0, place[regions.region], -1)
    surfaces, owner, sigma = regions.surfaces.take(used), place[owner], regions.sigma[used]
    one, other = _neighbors(skin)
    meets = (region[one] >= 0) & (region[other] > region[one])
    first, second = distinct_pairs(region[one[meets]], region[other[meets]], len(used))
    middle = np.stack([np.bincount(owner, column) for column in skin.points[point].T], 1) / np.bincount(owner)[:, None]
    along = np.einsum("ij,ij->i", middle - surfaces.origin, surfaces.axis)
    along = np.where(traits.IS_RULED[surfaces.kind], along, 0.0)
    slope = np.where(traits.HAS_SLOPE[surfaces.kind], surfaces.second, 0.0)
    origin = surfaces.origin + along[:, None] * surfaces.axis
    surfaces = replace(surfaces, origin=origin, radius=surfaces.radius + slope * along)
    matrices = information(surfaces, owner, skin.points[point], sigma)
    relations = find_relations(surfaces, np.stack([first, second], axis=1), matrices, sigma)
    relations.solve()
    round_radii(relations)
    better = relations.solve()
    before, after = (
        np.sqrt(np.bincount(owner, distances(s.take(owner), skin.points[point]) ** 2) / np.bincount(owner))
        for s in (surfaces, better)
    )
    worse = np.flatnonzero(~(after <= 1.3 * before + 0.1 * sigma))
    better = better.replace_rows(worse, surfaces.take(worse))
    return NoisyRegions(region, better, sigma)


def choose_sides(skin: Skin, regions: NoisyRegions) -> NoisyRegions:
    """Return the regions of faces whose border runs where their surfaces touch.

    Beside such a border, both surfaces explain a face. The difference of their normals shows the side: it vanishes
    where the surfaces touch, and changes its direction there.
    """
    one, other = _neighbors(skin)
    region = regions.region.copy()
    meets = (region[one] >= 0) & (region[other] > region[one])
    first, second = distinct_pairs(region[one[meets]], region[other[meets]], len(regions.surfaces))
    middle = skin.points[skin.faces].mean(axis=1)
    for a, b in zip(first.tolist(), second.tolist(), strict=True):
        face = np.flatnonzero((region == a) | (region == b))
        away_a, normal_a = gradients(regions.surfaces.take(np.full(len(face), a)), middle[face])
        away_b, normal_b = gradients(regions.surfaces.take(np.full(len(face), b)), middle[face])
        facing = np.einsum("ij,ij->i", normal_a, normal_b)
        normal_b = normal_b * np.sign(facing)[:, None]
        turn = normal_b - normal_a
        sigma = regions.sigma[[a, b]].max()
        near = (np.abs(away_a) < 4 * sigma) & (np.abs(away_b) < 4 * sigma) & (np.abs(facing) > 0.9)
        if near.sum() < 2 or np.median(np.abs(facing[near])) < 0.98:
            continue
        band = np.zeros(len(region), np.bool_)
        band[face[near | (lengths(turn) < 0.5)]] = True
        difference = np.zeros((len(region), 3))
        difference[face] = turn
        linked = band[one] & band[other] & (np.einsum("ij,ij->i", difference[one], difference[other]) > 0)
        _, label = components(len(region), one[linked], other[linked])
        size = lengths(difference) * lengths(skin.cross)
        vote = np.bincount(label[face], np.where(region[face] == a, size[face], -size[face]), label.max() + 1)
        changed = face[near]
        region[changed] = np.where(vote[label[changed]] > 0, a, b)
    return regions._replace(region=region)


class _Meeting(NamedTuple):
    """Surfaces that meet in the points of a mesh.

    row, column: (k,) point, and number of the surface among those of the point
    surfaces:    (k,) surfaces
    size:        (p,) number of surfaces, free faces counted as one
    """

    row: IntIndex
    column: IntIndex
    surfaces: SurfaceArray
    size: IntIndex

    def project(self, points: Float64, max_step: float, steps: int) -> Float64:
        """Return the points (p, 3) on all their surfaces, by Gauss-Newton steps of least length."""
        points = points.copy()
        shape = (len(points), _MAX_SURFACES)
        has = np.zeros(shape, np.bool_)
        has[self.row, self.column] = True
        ridge = np.eye(_MAX_SURFACES) * np.where(has, _RIDGE, 1.0)[:, None, :]
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
    point, owner = _region_points(skin, regions.region)
    column = np.arange(len(point)) - np.searchsorted(point, point)
    kept = column < _MAX_SURFACES
    count = np.bincount(point, minlength=len(skin.points))
    count[np.unique(skin.faces[regions.region < 0])] += 1
    return _Meeting(point[kept], column[kept], regions.surfaces.take(owner[kept]), count)


def move_points(skin: Skin, regions: NoisyRegions) -> Float64:
    """Return the points (p, 3) on all surfaces that meet there, evenly spread along borders and within regions.

    Without the spreading, triangles that are as small as the noise would be folded.
    """
    meeting = _find_meeting(skin, regions)
    edge = float(np.median(lengths(skin.points[skin.end] - skin.points[skin.begin])))
    average, is_fixed = _make_average(skin, regions, meeting.size)
    points = meeting.project(skin.points, edge, 20)
    for _ in range(_SPREADINGS):
        spread = np.where(is_fixed[:, None], points, average @ points)
        points = meeting.project((points + spread) / 2, edge, 2)
    points = meeting.project(points, edge, 30)
    is_bad = ~np.isfinite(points).all(axis=1) | (meeting.measure(points) > _PRECISION_MM)
    is_bad |= lengths(points - skin.points) > _MAX_MOVE_RATIO * edge
    is_bad |= meeting.measure(skin.points) > max(_MAX_OFF_RATIO * float(regions.sigma.max()), _MAX_SAGITTA_RATIO * edge)
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
