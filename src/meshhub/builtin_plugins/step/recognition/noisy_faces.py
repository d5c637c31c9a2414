"""Which surface each face of a noisy mesh belongs to: neighboring regions compete, merge, and fill gaps."""

# why this way: docs/decisions/0058-noisy-meshes.md
from __future__ import annotations

import numpy as np

from meshhub.builtin_plugins.step.facets.planar import ROUNDING_RATIO
from meshhub.builtin_plugins.step.facets.skin import Skin
from meshhub.builtin_plugins.step.recognition.corner_spheres import add_corner_spheres
from meshhub.builtin_plugins.step.recognition.deviation import MAX_SAGITTA_RATIO
from meshhub.builtin_plugins.step.recognition.noisy_regions import NoisyRegions, fit_surface
from meshhub.builtin_plugins.step.surfaces.arrays import distinct_pairs, lengths, normalize
from meshhub.builtin_plugins.step.surfaces.surface_array import SurfaceArray, SurfaceKind
from meshhub.builtin_plugins.step.surfaces.surfaces import distances, gradients
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex
from meshhub.toolkit.topology import components, first_members

_REFINEMENTS = 3
"""Turns of competition and fits; the fits are biased by the faces of neighbors, which the next turn finds."""

_MAX_OFF_RATIO = 8.0
"""Distance of a point from its surfaces over the noise, up to which the distance counts as noise."""

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

_MAX_SIMPLER_NOISE_RATIO = 0.5
"""The same over the noise; two rings of points around a hole are on a sphere, and on a cone."""

_MAX_DISSOLVED_FACES = 200
"""Triangles of a region that may be a remainder between others."""

_MIN_FACES = 12
"""Triangles of a region up to which it joins its neighbors wherever these can take its faces."""

_MAX_MERGED_RATIO = 1.5
"""Root mean square distance of points from the surface of a neighbor over the largest noise, up to which it fits."""

_MAX_ISLAND_RATIO = 0.1
"""Area of a component of a region over the largest one, up to which noise separated it."""

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

_MIN_SIDE_COSINE = 0.7
"""Cosine of the angle between differences of normals on one side of a contact; on the other side, they are reversed."""

_MIN_HEIGHT_RATIO = 6.0
"""Height of a triangle in deviations of the noise, below which its normal is noise."""

MIN_POINTS = 10
"""Points of a fit."""

_MIN_INNER_SHARE = 0.97
"""Share of the points of a region that are no outliers; more are those on the chords of an earlier mesh."""


def list_neighbors(skin: Skin) -> tuple[IntIndex, IntIndex]:
    """Return the faces of each pair of neighbors, in both orders."""
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


def _settle(skin: Skin, regions: NoisyRegions) -> NoisyRegions:
    """Let neighboring regions compete for the faces at their border, and for free faces."""
    one, other = list_neighbors(skin)
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
        regions = _settle(skin, regions)
        point, owner = list_region_points(skin, regions.region)
        is_own = (np.bincount(point, minlength=len(skin.points)) == 1)[point]
        sigma = regions.sigma.copy()
        surfaces = regions.surfaces
        for number in np.unique(owner).tolist():
            mine = owner == number
            own = point[mine & is_own]
            if len(own) < MIN_POINTS:
                continue
            faces = np.flatnonzero(regions.region == number)
            kind, noise = SurfaceKind(int(surfaces.kind[number])), float(regions.sigma[number])
            surface = _fit_simplest(skin, kind, faces, own, noise)
            off = _measure_off(skin, surface, own)
            # a single point of a neighbor may turn a narrow surface
            inner = own[off <= _MAX_DEVIATIONS * _MEDIAN_RATIO * np.median(off)]
            if max(MIN_POINTS, _MIN_INNER_SHARE * len(own)) <= len(inner) < len(own):
                # without them, a kind with more parameters would fit what is left of the noise
                surface = _fit_simplest(skin, SurfaceKind(int(surface.kind[0])), faces, inner, noise)
                off = _measure_off(skin, surface, inner)
            if np.isfinite(off).all() and np.median(off) < 2 * sigma[number]:
                surfaces = surfaces.replace_rows(np.array([number]), surface)
                sigma[number] = _MEDIAN_RATIO * float(np.median(off))
        sigma = np.maximum(sigma, _MIN_NOISE_RATIO * sigma.max())
        regions = NoisyRegions(regions.region, surfaces, sigma)
    return add_corner_spheres(skin, _drop_systematic(skin, regions), find_room(skin, regions))


def _measure_off(skin: Skin, surface: SurfaceArray, point: IntIndex) -> Float64:
    """Return the distances (k,) of points (k,) from a surface."""
    off: Float64 = np.abs(distances(surface.take(np.zeros(len(point), np.intp)), skin.points[point]))
    return off


def find_room(skin: Skin, regions: NoisyRegions) -> float:
    """Return the distance (mm) of a point from a surface up to which it may be one of its points.

    Where surfaces touch, points beside the border are off by the depth of triangles.
    """
    edge = float(np.median(lengths(skin.points[skin.end] - skin.points[skin.begin])))
    return max(_MAX_OFF_RATIO * float(regions.sigma.max(initial=0.0)), MAX_SAGITTA_RATIO * edge)


def merge_equal(skin: Skin, regions: NoisyRegions) -> NoisyRegions:
    """Return the regions where neighbors that one surface fits are one region: noise separated them."""
    one, other = list_neighbors(skin)
    while True:
        region, surfaces = regions.region.copy(), regions.surfaces
        size = np.bincount(region[region >= 0], minlength=len(surfaces))
        near = _spread(skin, region)
        meets = (near[one] >= 0) & (near[other] > near[one])
        pairs = np.stack(distinct_pairs(near[one[meets]], near[other[meets]], len(surfaces)), axis=1)
        merged = np.zeros(len(surfaces), np.bool_)
        for pair in pairs[np.argsort(-size[pairs].min(axis=1), kind="stable")].tolist():
            large, small = sorted(pair, key=lambda number: -size[number])
            kind = _find_common_kind(surfaces, large, small)
            if merged[[large, small]].any() or kind is None:
                continue
            surface = _fit_union(skin, regions, kind, (large, small))
            if surface is not None:
                surfaces = surfaces.replace_rows(np.array([large]), surface)
                region[region == small] = large
                merged[[large, small]] = True
        if not merged.any():
            return regions
        regions = NoisyRegions(region, surfaces, regions.sigma)


def _spread(skin: Skin, region: IntIndex) -> IntIndex:
    """Return the regions of faces (m,) where each free face has that of a neighbor, so that regions around it meet."""
    one, other = list_neighbors(skin)
    region = region.copy()
    while True:
        joins = (region[one] < 0) & (region[other] >= 0)
        if not joins.any():
            return region
        region[one[joins]] = region[other[joins]]


def _find_common_kind(surfaces: SurfaceArray, one: int, other: int) -> SurfaceKind | None:
    """Return the kind of a surface that may include two; a few narrow facets of a cylinder are also on a plane."""
    kinds = {SurfaceKind(int(surfaces.kind[number])) for number in (one, other)}
    if len(kinds) > 1:
        kinds -= {SurfaceKind.PLANE}
    return kinds.pop() if len(kinds) == 1 else None


def _fit_union(skin: Skin, regions: NoisyRegions, kind: SurfaceKind, pair: tuple[int, int]) -> SurfaceArray | None:
    """Return the surface of two regions; None if its points are off by more than noise, in either region."""
    sides = [np.flatnonzero(regions.region == number) for number in pair]
    faces = np.concatenate(sides)
    surface = fit_surface(skin, kind, (faces, normalize(skin.cross[faces])), np.unique(skin.faces[faces]))
    # strips of a flat side beside a fillet would widen it within the noise of the strips, but not within its own
    is_mixed = regions.surfaces.kind[pair[0]] != regions.surfaces.kind[pair[1]]
    for number, side in zip(pair, sides, strict=True):
        sigma = float(regions.sigma[number] if is_mixed else regions.sigma.max())
        point = np.unique(skin.faces[side])
        off = distances(surface.take(np.zeros(len(point), np.intp)), skin.points[point])
        if not float(np.sqrt(np.mean(off**2))) <= _MAX_MERGED_RATIO * sigma:
            return None
    return surface


def dissolve_remainders(skin: Skin, regions: NoisyRegions) -> NoisyRegions:
    """Return the regions without those whose faces are as near to the surfaces of neighbors as noise allows."""
    size = np.bincount(regions.region[regions.region >= 0], minlength=len(regions.surfaces))
    limit = _MAX_MERGED_RATIO * float(regions.sigma.max())
    for number in np.argsort(size, kind="stable").tolist():
        inside = np.flatnonzero(regions.region == number)
        if not 0 < len(inside) <= _MAX_DISSOLVED_FACES:
            continue
        region = regions.region.copy()
        region[inside] = -1
        filled = fill_gaps(skin, regions._replace(region=region))
        owner = filled.region[inside]
        if (owner < 0).any():
            continue
        corner = skin.points[skin.faces[inside]].reshape(-1, 3)
        off = distances(regions.surfaces.take(np.repeat(owner, 3)), corner)
        if len(inside) <= _MIN_FACES or float(np.sqrt(np.mean(off**2))) <= limit:
            regions = filled
    return regions


def join_islands(skin: Skin, regions: NoisyRegions) -> NoisyRegions:
    """Return the regions as one component each; the others join the region around them, if it explains them."""
    one, other = list_neighbors(skin)
    region = regions.region
    is_same = region[one] == region[other]
    count, label = components(len(region), one[is_same], other[is_same])
    area = np.bincount(label, lengths(skin.cross), count)
    owner = region[first_members(label, count)]
    largest = np.zeros(len(regions.surfaces))
    np.maximum.at(largest, owner[owner >= 0], area[owner >= 0])
    is_island = (owner >= 0) & (area < _MAX_ISLAND_RATIO * largest[owner])
    filled = fill_gaps(skin, regions._replace(region=np.where(is_island[label], -1, region))).region
    return regions._replace(region=np.where(filled < 0, region, filled))


def fill_gaps(skin: Skin, regions: NoisyRegions) -> NoisyRegions:
    """Return the regions with the free faces that are as near to the surface of a neighbor as their own edges allow.

    A flat facet beside a round face would have an edge that is not on it.
    """
    one, other = list_neighbors(skin)
    region = regions.region.copy()
    limit = find_room(skin, regions)
    while True:
        offers = (region[one] < 0) & (region[other] >= 0)
        face, offered = one[offers], region[other[offers]]
        corner, surfaces = skin.points[skin.faces[face]], regions.surfaces.take(offered)
        off = np.max([np.abs(distances(surfaces, corner[:, k])) for k in range(3)], axis=0)
        near = np.flatnonzero(off <= limit)
        if len(near) == 0:
            return regions._replace(region=region)
        near = near[np.argsort(-off[near], kind="stable")]
        region[face[near]] = offered[near]


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
    point, owner = list_region_points(skin, regions.region)
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
    is_lost = (shared > _MAX_CORRELATION * total) & (spread > 2 * rounding) & (size > MIN_POINTS)
    # points of borders alone are on many surfaces
    is_lost |= (size <= MIN_POINTS) & (regions.surfaces.kind != SurfaceKind.PLANE)
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


def list_region_points(skin: Skin, region: IntIndex) -> tuple[IntIndex, IntIndex]:
    """Return pairs of a point and a region around it."""
    owner, corner = np.repeat(region, 3), skin.faces.ravel().astype(np.intp)
    return distinct_pairs(corner[owner >= 0], owner[owner >= 0], int(region.max()) + 1)


def choose_sides(skin: Skin, regions: NoisyRegions) -> NoisyRegions:
    """Return the regions of faces whose border runs where their surfaces touch.

    Beside such a border, both surfaces explain a face. The difference of their normals shows the side: it vanishes
    where the surfaces touch, and changes its direction there.
    """
    one, other = list_neighbors(skin)
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
        size = lengths(difference)
        cosine = np.einsum("ij,ij->i", difference[one], difference[other])
        linked = band[one] & band[other] & (cosine > _MIN_SIDE_COSINE * size[one] * size[other])
        _, label = components(len(region), one[linked], other[linked])
        size *= lengths(skin.cross)
        vote = np.bincount(label[face], np.where(region[face] == a, size[face], -size[face]), label.max() + 1)
        changed = face[near]
        region[changed] = np.where(vote[label[changed]] > 0, a, b)
    return regions._replace(region=region)
