"""Smooth regions of a mesh, and the surface of each, where vertices are off their surfaces by noise.

The other recognition begins from planar facets and strips of them, as CAD programs triangulate. Here each region grows
from a seed over the triangles near the surface that is fitted to it, so that the triangulation does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.facets.planar import ROUNDING_RATIO
from meshhub.builtin_plugins.step.facets.skin import Skin
from meshhub.builtin_plugins.step.recognition.noisy_points import Roughness, estimate_noise
from meshhub.builtin_plugins.step.surfaces import traits
from meshhub.builtin_plugins.step.surfaces.arrays import expand_ranges, lengths, normalize
from meshhub.builtin_plugins.step.surfaces.fitting import FitLimits, fit_surfaces
from meshhub.builtin_plugins.step.surfaces.sample_blocks import Samples
from meshhub.builtin_plugins.step.surfaces.surface_array import SurfaceArray, SurfaceKind, concatenate, make_planes
from meshhub.builtin_plugins.step.surfaces.surfaces import distances, gradients
from meshhub.model.deadline import seconds_left
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex
from meshhub.toolkit.topology import components

Mask = NDArray[np.bool_]

_REACH_RATIO = 3.5
"""Distance of a vertex from its surface in deviations of the noise."""

_MAX_ROUNDS = 10
"""Rounds of fits and growth of a region."""

_MIN_FACES = 6
"""Faces of a region."""

_MIN_FINAL_FACES = 24
"""Faces of a region that larger noise does not change."""

_MIN_INNER_POINTS = 3
"""Points of a sphere or a torus that are not on its border; two rings of points are on a cone, too."""

_SEED_RINGS = (8, 4, 2)
"""Rings of faces around a seed that the first surface is fitted to; the wider ones first, because noise tilts less."""

_MAX_FAILURES = 20
"""Seeds without a region after which the rest stays as it is."""

_MAX_FIRST_FAILURES = 6
"""The same before the first region: free-form meshes have none, and 20 meshes of CAD parts had one after at most 3."""

_MIN_TIME_RATIO = 0.5
"""Share of the time until the deadline that growth leaves to the steps after it, or to the writing of facets."""

_MAX_ROUGH_FAILURES = 4
"""The same for seeds that a quadric does not fit to; mostly they are beside an edge."""

_MIN_NOISE_RATIO = 20.0
"""Noise over rounding, from which a mesh is noisy as a whole."""

_MAX_NOISE_RATIO = 0.004
"""Noise over the diagonal of the mesh, above which features cannot be told from it."""

_WIDER_RATIO = 1.3
"""Noise of the second time over that of the first, for the regions that are left."""

_CHORD_RATIOS = (0.002, 0.006, 0.02)
"""Distances of vertices from their surfaces over the median edge, in a mesh made from the chords of another one."""

_MIN_CHORD_RATIO = 2.0
"""These distances over the noise, below which they are noise."""

_MAX_FREE_RATIO = 0.02
"""Share of free faces that are left alone."""

_MIN_SMALL_REGIONS = 8
"""Regions of one round that show a mesh without large surfaces, if nearly all of its faces are free: of 24 CAD parts,
at most 55 % of the faces were free after the first round, and of two other meshes 96 and 98 %."""

_MAX_USELESS_FREE_RATIO = 0.9
"""Share of free faces of such a mesh."""

_VALUES = {
    SurfaceKind.PLANE: 1.0,
    SurfaceKind.CYLINDER: 0.8,
    SurfaceKind.SPHERE: 0.8,
    SurfaceKind.CONE: 0.6,
    SurfaceKind.TORUS: 0.5,
}
"""Value of the area of a surface; one with more parameters must explain more."""


_MIN_SAME_RATIO = 0.9
"""Area of a cone over that of a sphere, or the reverse, from which the distances of the points decide between them.

Between other kinds they do not: chords of an earlier mesh are off systematically, and a torus fits that of a sphere."""

_MIN_EVIDENCE = 10.0
"""Logarithm of the likelihood of normal noise with one surface over that with another one."""


class SearchStopped(Exception):
    """Growth has taken its share of the time until the deadline."""


class NoisyRegions(NamedTuple):
    """Regions of faces, and their surfaces.

    region:   (m,) region of each face, -1 for none
    surfaces: (r,) surfaces
    sigma:    (r,) mm, deviation of the noise of each region
    """

    region: IntIndex
    surfaces: SurfaceArray
    sigma: Float64


class _Candidate(NamedTuple):
    """A surface and its region.

    surface: single surface
    inside:  (m,) whether a face belongs to it
    area:    mm²
    rms:     mm, root mean square distance of its points
    size:    number of its points
    """

    surface: SurfaceArray
    inside: Mask
    area: float
    rms: float
    size: int

    def is_better_than(self, other: _Candidate) -> bool:
        """Return whether this surface explains more, or, of a cone and a sphere, nearly the same more exactly."""
        is_same = min(self.area, other.area) > _MIN_SAME_RATIO * max(self.area, other.area)
        if is_same and {self.kind, other.kind} == {SurfaceKind.CONE, SurfaceKind.SPHERE}:
            evidence = self.size * np.log(max(other.rms, 1e-300) / max(self.rms, 1e-300))
            if abs(evidence) > _MIN_EVIDENCE:
                return bool(evidence > 0)
        return self.area * _VALUES[self.kind] > other.area * _VALUES[other.kind]

    @property
    def kind(self) -> SurfaceKind:
        return SurfaceKind(int(self.surface.kind[0]))


@dataclass
class _Growth:
    """Growth of regions on a mesh.

    skin:      mesh
    sigma:     mm
    one:       (e,) faces
    other:     (e,) their neighbors
    region:    (m,) region of each face, -1 for none
    normal:    (m, 3) unit normals
    smooth:    (m,) the same of the surroundings, with less noise
    area:      (m,) mm²
    by_point:  (3 m,) faces in the order of their corners
    fan:       (2, p) begin and number of the faces at each point in `by_point`
    min_cosine: (m,) cosine of the angle that noise may turn a face by; -1 where the normal is noise
    min_seconds_left: seconds until the deadline at which growth stops
    """

    skin: Skin
    sigma: float
    one: IntIndex
    other: IntIndex
    region: IntIndex
    normal: Float64
    smooth: Float64
    area: Float64
    by_point: IntIndex
    fan: IntIndex
    min_cosine: Float64
    min_seconds_left: float

    @classmethod
    def start(cls, skin: Skin, smooth: Float64) -> _Growth:
        half = np.flatnonzero(skin.twin > np.arange(len(skin.twin)))
        count, corner = len(skin.faces), skin.faces.reshape(-1)
        size = np.bincount(corner, minlength=len(skin.points))
        return cls(
            skin, 0.0, half // 3, skin.twin[half] // 3, np.full(count, -1, np.intp),
            normalize(skin.cross), smooth, lengths(skin.cross) / 2,
            np.argsort(corner, kind="stable") // 3, np.stack([np.cumsum(size) - size, size]), np.zeros(count),
            _MIN_TIME_RATIO * (seconds_left() or 0.0),
        )  # fmt: skip

    def set_noise(self, sigma: float) -> None:
        """Set the deviation of the noise."""
        corner = self.skin.points[self.skin.faces]
        longest = np.max([lengths(corner[:, k] - corner[:, k - 1]) for k in range(3)], axis=0)
        height = 2 * self.area / np.maximum(longest, 1e-300)
        tilt = np.radians(15) + np.arctan(3 * sigma / np.maximum(height, 1e-300))
        self.sigma, self.min_cosine = sigma, np.where(tilt < np.radians(70), np.cos(tilt), -1.0)

    def release_small(self) -> None:
        """Free the faces of small regions: with less noise, pieces of one surface are explained by several."""
        size = np.bincount(self.region[self.region >= 0], minlength=1)
        self.region[(self.region >= 0) & (size[self.region] < _MIN_FINAL_FACES)] = -1

    def grow_all(self, roughness: Roughness, base: int) -> list[SurfaceArray]:
        """Grow regions until seeds fail, first from places that a quadric fits; number them from `base`."""
        flatness = roughness.flat[self.skin.faces].max(axis=1)
        is_rough = roughness.local[self.skin.faces].max(axis=1) > 2.5 * self.sigma
        surfaces = self._grow_from(is_rough, flatness, base, _MAX_FAILURES)
        if (self.region < 0).mean() < _MAX_FREE_RATIO:
            return surfaces
        # a quadric does not fit to a hole that is a few edges wide
        return surfaces + self._grow_from(~is_rough, flatness, base + len(surfaces), _MAX_ROUGH_FAILURES)

    def _grow_from(self, tried: Mask, flatness: Float64, base: int, max_failures: int) -> list[SurfaceArray]:
        """Grow regions from the faces that were not tried, the flattest first."""
        surfaces: list[SurfaceArray] = []
        failures = 0
        while failures < (max_failures if surfaces else min(max_failures, _MAX_FIRST_FAILURES)):
            left = seconds_left()
            if left is not None and left < self.min_seconds_left:
                raise SearchStopped
            is_free = self.region < 0
            seeds = np.flatnonzero(is_free & ~tried)
            if len(seeds) == 0:
                break
            seed = int(seeds[np.argmin(flatness[seeds])])
            surface, inside = self._grow_best(seed, is_free)
            if surface is None:
                failures += int(inside.sum() >= _MIN_FACES)
                tried[inside] = True
                tried[seed] = True
                continue
            self.region[inside] = base + len(surfaces)
            surfaces.append(surface)
        return surfaces

    def _grow_best(self, seed: int, is_free: Mask) -> tuple[SurfaceArray | None, Mask]:
        """Return the surface of most value around a seed, and its faces; without a surface, those that were tried."""
        best: _Candidate | None = None
        for rings in _SEED_RINGS:
            patch = self.patch(seed, is_free, rings)
            if patch.sum() < _MIN_FACES:
                continue
            for kind in _VALUES:
                candidate = self.grow(kind, seed, patch, is_free)
                if candidate is None:
                    continue
                if best is None or candidate.is_better_than(best):
                    best = candidate
                is_large = candidate.area > 8 * self.area[patch].sum()
                if kind == SurfaceKind.PLANE and is_large and candidate.rms < 1.15 * self.sigma:
                    return best.surface, best.inside
            if best is not None:
                return best.surface, best.inside
        return None, self.patch(seed, is_free, 2)

    def patch(self, seed: int, is_free: Mask, rings: int) -> Mask:
        """Return the free faces within some rings around a seed."""
        inside = np.zeros(len(self.area), np.bool_)
        inside[seed] = True
        faces = np.array([seed])
        ring = faces
        for _ in range(rings):
            _, around = expand_ranges(*self.fan[:, np.unique(self.skin.faces[ring])])
            ring = np.unique(self.by_point[around])
            ring = ring[is_free[ring] & ~inside[ring]]
            inside[ring] = True
            faces = np.concatenate([faces, ring])
        inside[faces] = self.smooth[faces] @ self.smooth[seed] > np.cos(np.radians(50))
        return inside

    def fit(self, kind: SurfaceKind, faces: IntIndex) -> SurfaceArray:
        """Fit a surface to the vertices of faces."""
        return fit_surface(self.skin, kind, (faces, self.smooth[faces]), np.unique(self.skin.faces[faces]))

    def near(self, surface: SurfaceArray, is_free: Mask, reach: float) -> Mask:
        """Return the free faces near a surface in its direction."""
        faces = np.flatnonzero(is_free)
        every = surface.take(np.zeros(len(self.skin.points), np.intp))
        off = np.abs(distances(every, self.skin.points)) <= reach
        faces = faces[off[self.skin.faces[faces]].all(axis=1)]
        middle = self.skin.points[self.skin.faces[faces]].mean(axis=1)
        _, normal = gradients(surface.take(np.zeros(len(faces), np.intp)), middle)
        cosine = np.einsum("ij,ij->i", normal, self.normal[faces])
        side = np.sign(np.sum(cosine * self.area[faces]))
        result = np.zeros(len(is_free), np.bool_)
        result[faces[side * cosine >= self.min_cosine[faces]]] = True
        return result

    def component(self, seed: int, chosen: Mask) -> Mask:
        """Return the chosen faces connected with a seed."""
        linked = chosen[self.one] & chosen[self.other]
        _, label = components(len(chosen), self.one[linked], self.other[linked])
        result: Mask = chosen & (label == label[seed])
        return result

    def grow(self, kind: SurfaceKind, seed: int, patch: Mask, is_free: Mask) -> _Candidate | None:
        """Return a surface of a kind, and its region around a seed; None if there is none."""
        inside, size = patch, 0
        surface = self.fit(kind, np.flatnonzero(patch))
        for _ in range(_MAX_ROUNDS):
            if not np.isfinite(surface.radius).all() or not np.isfinite(surface.origin).all():
                return None
            inside = self.near(surface, is_free, _REACH_RATIO * self.sigma)
            if not inside[seed]:
                return None
            inside = self.component(seed, inside)
            count = int(inside.sum())
            if count < _MIN_FACES or abs(count - size) <= 0.005 * count:
                break
            size = count
            surface = self.fit(kind, np.flatnonzero(inside))
        points = self.skin.points[np.unique(self.skin.faces[inside])]
        rms = float(np.sqrt(np.mean(distances(surface.take(np.zeros(len(points), np.intp)), points) ** 2)))
        if count < _MIN_FACES or rms > 1.4 * self.sigma:
            return None
        is_double = not traits.IS_PLANE[kind] and not traits.IS_RULED[kind]
        if is_double and self.count_inner_points(inside) < _MIN_INNER_POINTS:
            return None
        return _Candidate(surface, inside, float(self.area[inside].sum()), rms, len(points))

    def count_inner_points(self, inside: Mask) -> int:
        """Return the number of points of a region that are not on its border."""
        beyond = self.skin.twin.reshape(-1, 3)[inside] // 3
        is_border = (beyond < 0) | ~inside[beyond]
        faces = self.skin.faces[inside]
        border = np.concatenate([faces[is_border], np.roll(faces, -1, axis=1)[is_border]])
        return len(np.unique(faces)) - len(np.unique(border))


def fit_surface(skin: Skin, kind: SurfaceKind, directions: tuple[IntIndex, Float64], point: IntIndex) -> SurfaceArray:
    """Fit a surface of one kind to some points (k,), and to faces (n,) with normals (n, 3) for its first estimate."""
    faces, normal = directions
    points = skin.points[point]
    if kind == SurfaceKind.PLANE:
        middle = points.mean(axis=0)
        offset = points - middle
        normal = np.linalg.eigh(offset.T @ offset)[1][:, 0]
        return make_planes(normal[None], middle[None])
    zero = np.zeros(len(faces), np.intp)
    samples = Samples(1, np.zeros(len(point), np.intp), points, zero, skin.points[skin.faces[faces]].mean(axis=1),
                      normal, lengths(skin.cross[faces]))  # fmt: skip
    limit = np.full(1, 1e3)
    return fit_surfaces(samples, kind, FitLimits(limit, limit, limit))[0]


def grow_regions(skin: Skin, roughness: Roughness) -> NoisyRegions:
    """Grow regions on a mesh, the flattest first.

    Vertices on planes may be exact where those on other surfaces are not, so the noise is estimated again from the
    faces that are free.

    Raises:
        SearchStopped: The deadline is near.
    """
    growth = _Growth.start(skin, normalize(roughness.normal[skin.faces].sum(axis=1)))
    surfaces: list[SurfaceArray] = []
    sigmas: list[float] = []
    for sigma in _list_scales(skin, roughness):
        growth.set_noise(sigma)
        growth.release_small()
        found = growth.grow_all(roughness, len(surfaces))
        surfaces += found
        sigmas += [sigma] * len(found)
        free_ratio = (growth.region < 0).mean()
        if not surfaces or free_ratio < _MAX_FREE_RATIO:
            break
        if len(found) >= _MIN_SMALL_REGIONS and free_ratio > _MAX_USELESS_FREE_RATIO:
            break
    every = concatenate(surfaces) if surfaces else make_planes(np.empty((0, 3)), np.empty((0, 3)))
    return NoisyRegions(growth.region, every, np.array(sigmas))


def _list_scales(skin: Skin, roughness: Roughness) -> list[float]:
    """Return the deviations of the noise (mm) to grow regions with, one after another.

    The residuals of quadrics show the noise of planes. If planes are exact, the vertices of other surfaces may lie on
    the chords of an earlier mesh.
    """
    noise = estimate_noise(roughness.local)
    floor = 2 * ROUNDING_RATIO * float(np.abs(skin.points).max())
    edge = float(np.median(lengths(skin.points[skin.end] - skin.points[skin.begin])))
    chords = [ratio * edge for ratio in _CHORD_RATIOS]
    if noise > _MIN_NOISE_RATIO * floor:
        largest = _MAX_NOISE_RATIO * float(lengths(np.ptp(skin.points, axis=0)[None])[0])
        wider = [chord for chord in chords if chord > _MIN_CHORD_RATIO * noise]
        return [noise, _WIDER_RATIO * noise, *wider] if noise < largest else []
    return [floor, *chords]
