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
from meshhub.builtin_plugins.step.recognition.contacts import find_contact
from meshhub.builtin_plugins.step.recognition.corner_spheres import add_corner_spheres
from meshhub.builtin_plugins.step.recognition.creases import split_at_creases
from meshhub.builtin_plugins.step.recognition.noisy_design import find_relations, information, round_radii
from meshhub.builtin_plugins.step.recognition.noisy_points import measure_roughness
from meshhub.builtin_plugins.step.recognition.noisy_regions import NoisyRegions, fit_surface, grow_regions
from meshhub.builtin_plugins.step.recognition.recognize import Segments
from meshhub.builtin_plugins.step.surfaces import traits
from meshhub.builtin_plugins.step.surfaces.arrays import distinct_pairs, lengths, normalize
from meshhub.builtin_plugins.step.surfaces.surface_array import SurfaceArray, SurfaceKind, concatenate
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

_MAX_EQUATIONS = 8
"""Surfaces that determine a point: those, and the ones that cross them where they touch."""

_REFINEMENTS = 3
"""Turns of competition and fits; the fits are biased by the faces of neighbors, which the next turn finds."""

_RIDGE = 1e-11
"""Addition to squared sines of angles between surfaces; where they touch, Newton's method halves the distance."""

_CONTACT_RIDGE = 1e-8
"""The same at a contact, which another surface determines: angles by rounding must not move points along it."""

_MIN_EDGE_RATIO = 1e-3
"""Length of an edge over the median one, up to which both ends are one point: where four surfaces touch in a point."""

_SPREADINGS = 20
"""Steps that spread the points."""

_PRECISION_MM = 1e-6
"""Distance of a point from its surfaces up to which it is on them."""

_MAX_OFF_RATIO = 8.0
"""Distance of a point from its surfaces over the noise, up to which the distance counts as noise."""

_MAX_SAGITTA_RATIO = 0.2
"""The same over the median edge: where surfaces touch, points beside the border are off by the depth of triangles."""

_MAX_MOVE_RATIO = 4.0
"""Distance over the median edge by which points may move."""

_MAX_CORRELATION = 0.5
"""Correlation of the distances of neighboring points from a surface; that of noise is zero."""

_SIMPLER: dict[SurfaceKind, tuple[SurfaceKind, ...]] = {
    SurfaceKind.PLANE: (),
    SurfaceKind.CYLINDER: (SurfaceKind.PLANE,),
    SurfaceKind.SPHERE: (SurfaceKind.PLANE, SurfaceKind.CYLINDER),
    SurfaceKind.CONE: (SurfaceKind.PLANE, SurfaceKind.CYLINDER),
    SurfaceKind.TORUS: (SurfaceKind.PLANE, SurfaceKind.CYLINDER, SurfaceKind.SPHERE, SurfaceKind.CONE),
}
"""Kinds with fewer parameters, the simplest first."""

_MAX_SIMPLER_RATIO = 1.03
"""Root mean square of a simpler surface over that of another one, from which the parameters of the latter are noise."""

_MAX_DISSOLVED_FACES = 200
"""Triangles of a region that may be a remainder between others."""

_MIN_FACES = 12
"""Triangles of a region that is one in any case only if its neighbors are far away."""

_MAX_MERGED_RATIO = 1.5
"""Root mean square distance of points from the surface of a neighbor over the largest noise, up to which it fits."""

_MAX_ISLAND_RATIO = 0.1
"""Area of a component of a region over the largest one, up to which noise separated it."""

_MAX_SIMPLER_NOISE_RATIO = 0.5
"""The same over the noise; two rings of points around a hole are on a sphere, and on a cone."""

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
    sides = split_at_creases(skin)
    regions = grow_regions(sides, measure_roughness(sides))
    if len(regions.surfaces) < _MIN_REGIONS_COUNT or (regions.region < 0).mean() > _MAX_FREE_RATIO:
        return None
    regions = _merge_equal(skin, refine(sides, regions))
    if (regions.region < 0).mean() > _MAX_FREE_RATIO:
        return None
    regions = design(skin, _dissolve(skin, _fill_gaps(skin, regions)))
    regions = _join_islands(skin, choose_sides(skin, regions))
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
            surface = _fit_simplest(
                skin, SurfaceKind(int(surfaces.kind[number])), faces, own, float(regions.sigma[number])
            )
            off = np.abs(distances(surface.take(np.zeros(len(own), np.intp)), skin.points[own]))
            if np.isfinite(off).all() and np.median(off) < 2 * sigma[number]:
                surfaces = surfaces.replace_rows(np.array([number]), surface)
                sigma[number] = _MEDIAN_RATIO * float(np.median(off))
        sigma = np.maximum(sigma, _MIN_NOISE_RATIO * sigma.max())
        regions = NoisyRegions(regions.region, surfaces, sigma)
    return add_corner_spheres(skin, _drop_systematic(skin, regions), _find_room(skin, regions))


def _find_room(skin: Skin, regions: NoisyRegions) -> float:
    """Return the distance (mm) of a point from a surface up to which it may be one of its points."""
    edge = float(np.median(lengths(skin.points[skin.end] - skin.points[skin.begin])))
    return max(_MAX_OFF_RATIO * float(regions.sigma.max(initial=0.0)), _MAX_SAGITTA_RATIO * edge)


def _merge_equal(skin: Skin, regions: NoisyRegions) -> NoisyRegions:
    """Return the regions where neighbors that one surface fits are one region: noise separated them."""
    one, other = _neighbors(skin)
    while True:
        region, surfaces = regions.region.copy(), regions.surfaces
        size = np.bincount(region[region >= 0], minlength=len(surfaces))
        meets = (region[one] >= 0) & (region[other] > region[one])
        pairs = np.stack(distinct_pairs(region[one[meets]], region[other[meets]], len(surfaces)), axis=1)
        merged = np.zeros(len(surfaces), np.bool_)
        for pair in pairs[np.argsort(-size[pairs].min(axis=1), kind="stable")].tolist():
            large, small = sorted(pair, key=lambda number: -size[number])
            if merged[[large, small]].any() or surfaces.kind[large] != surfaces.kind[small]:
                continue
            surface = _fit_union(skin, regions, large, small)
            if surface is not None:
                surfaces = surfaces.replace_rows(np.array([large]), surface)
                region[region == small] = large
                merged[[large, small]] = True
        if not merged.any():
            return regions
        regions = NoisyRegions(region, surfaces, regions.sigma)


def _fit_union(skin: Skin, regions: NoisyRegions, large: int, small: int) -> SurfaceArray | None:
    """Return the surface of two regions; None if its points are off by more than noise, in either region."""
    kind = SurfaceKind(int(regions.surfaces.kind[large]))
    sides = [np.flatnonzero(regions.region == number) for number in (large, small)]
    faces = np.concatenate(sides)
    surface = fit_surface(skin, kind, (faces, normalize(skin.cross[faces])), np.unique(skin.faces[faces]))
    limit = _MAX_MERGED_RATIO * float(regions.sigma.max())
    for side in sides:
        point = np.unique(skin.faces[side])
        off = distances(surface.take(np.zeros(len(point), np.intp)), skin.points[point])
        if not float(np.sqrt(np.mean(off**2))) <= limit:
            return None
    return surface


def _dissolve(skin: Skin, regions: NoisyRegions) -> NoisyRegions:
    """Return the regions without those whose faces are as near to the surfaces of neighbors as noise allows."""
    size = np.bincount(regions.region[regions.region >= 0], minlength=len(regions.surfaces))
    limit = _MAX_MERGED_RATIO * float(regions.sigma.max())
    for number in np.argsort(size, kind="stable").tolist():
        inside = np.flatnonzero(regions.region == number)
        if not 0 < len(inside) <= _MAX_DISSOLVED_FACES:
            continue
        region = regions.region.copy()
        region[inside] = -1
        filled = _fill_gaps(skin, regions._replace(region=region))
        owner = filled.region[inside]
        if (owner < 0).any():
            continue
        corner = skin.points[skin.faces[inside]].reshape(-1, 3)
        off = distances(regions.surfaces.take(np.repeat(owner, 3)), corner)
        if len(inside) <= _MIN_FACES or float(np.sqrt(np.mean(off**2))) <= limit:
            regions = filled
    return regions


def _join_islands(skin: Skin, regions: NoisyRegions) -> NoisyRegions:
    """Return the regions as one component each; the others join the region around them, if it explains them."""
    one, other = _neighbors(skin)
    region = regions.region
    is_same = region[one] == region[other]
    count, label = components(len(region), one[is_same], other[is_same])
    area = np.bincount(label, lengths(skin.cross), count)
    owner = region[first_members(label, count)]
    largest = np.zeros(len(regions.surfaces))
    np.maximum.at(largest, owner[owner >= 0], area[owner >= 0])
    is_island = (owner >= 0) & (area < _MAX_ISLAND_RATIO * largest[owner])
    filled = _fill_gaps(skin, regions._replace(region=np.where(is_island[label], -1, region))).region
    return regions._replace(region=np.where(filled < 0, region, filled))


def _fill_gaps(skin: Skin, regions: NoisyRegions) -> NoisyRegions:
    """Return the regions with the free faces that are as near to the surface of a neighbor as their own edges allow.

    A flat facet beside a round face would have an edge that is not on it.
    """
    one, other = _neighbors(skin)
    region = regions.region.copy()
    limit = _find_room(skin, regions)
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


def _fit_simplest(skin: Skin, kind: SurfaceKind, faces: IntIndex, point: IntIndex, sigma: float) -> SurfaceArray:
    """Fit a surface of one kind to points, or of a simpler kind that fits as well."""
    directions = faces, normalize(skin.cross[faces])
    result = fit_surface(skin, kind, directions, point)
    nothing = np.zeros(len(point), np.intp)
    allowed = _MAX_SIMPLER_RATIO * float(lengths(distances(result.take(nothing), skin.points[point])[None])[0])
    allowed = max(allowed, _MAX_SIMPLER_NOISE_RATIO * sigma * len(point) ** 0.5)
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
    point, owner = _region_points(skin, regions.region)
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
    is_bad |= lengths(points - skin.points) > _MAX_MOVE_RATIO * edge
    is_bad |= alone.measure(skin.points) > _find_room(skin, regions)
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
