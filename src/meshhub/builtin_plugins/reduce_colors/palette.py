"""Choice of a palette: clusters in OKLab, or some of the user's filaments."""

# why this way: docs/decisions/0044-palette.md

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from meshhub.model.scene import Float64, Int32, UInt8
from meshhub.toolkit.colors import (
    convert_from_oklab,
    convert_to_lab,
    convert_to_oklab,
    decode_srgb,
    encode_srgb,
    measure_delta_e,
)
from meshhub.toolkit.geometry import IntIndex

MAX_BIN_COUNT = 4096
"""Maximum color bins to cluster, each at the mean of its colors; bounds the time."""

START_COUNT = 8
"""Random starts of the clustering."""

MAX_ROUNDS = 60
"""Maximum rounds of the clustering; most end after 20."""

LIGHTNESS_WEIGHT = 0.6
"""Weight of lightness against hue and chroma in the clusters; with a larger one, shades get separate filaments."""

SEED_POWERS = (0.5, 0.75)
"""Powers of the areas that weight the search for clusters; a small one also finds small regions of a distinct color."""

MAX_DELTA_E_GROWTH = 1.0
"""Growth of the mean CIEDE2000 difference for small regions; beyond it, large regions would share a filament."""

SEED_BITS = 4
"""Bits of each channel in the bins among which clusters are found; in finer bins, each blend would count by itself."""

MIN_EXACT_AREA_RATIO = 0.5
"""Share of a cluster from which the color that most of it has replaces the mean."""

BORDER_DEVIATION = 0.02
"""Standard deviation of OKLab colors within a cell that halves the weight of its samples, squared."""

SAMPLES_PER_BORDER_CELL = 3.0
"""Samples in a cell in which colors are compared, at least."""


class ColorBins:
    """Histogram of the colors of a surface.

    colors: (b, 3) mean sRGB color of each bin
    oklab:  (b, 3) mean color in OKLab
    lab:    (b, 3) mean color in CIE L*a*b*
    weight: (b,) share of the area
    exact:  (b, 3) the color that covers most of each bin
    exact_weight: (b,) its share of the area
    """

    def __init__(self, colors: UInt8, area: Float64) -> None:
        """Sum the areas (k,) of points by their colors (k, 3)."""
        packed = pack_colors(colors)
        distinct, index = _number_values(packed, 1 << 24)
        weight: Float64 = np.bincount(index, area).astype(np.float64)
        rgb = unpack_colors(distinct)
        for bits in range(8, 3, -1):
            levels = pack_colors(np.right_shift(rgb, np.uint8(8 - bits)), bits)
            occupied, place = _number_values(levels, 1 << 3 * bits)
            if len(occupied) <= MAX_BIN_COUNT:
                break
        self.weight: Float64 = np.bincount(place, weight).astype(np.float64)
        oklab = convert_to_oklab(rgb)
        self.oklab = _average(oklab, weight, place, len(occupied))
        self.colors = convert_from_oklab(self.oklab)
        self.lab = convert_to_lab(self.colors)
        self.weight = self.weight / max(float(self.weight.sum()), np.finfo(np.float64).tiny)
        self.exact_weight: Float64 = np.zeros(len(occupied))
        np.maximum.at(self.exact_weight, place, weight)
        is_largest = weight == self.exact_weight[place]
        self.exact = np.zeros((len(occupied), 3), np.uint8)
        self.exact[place[is_largest]] = rgb[is_largest]
        self.exact_weight /= max(float(weight.sum()), np.finfo(np.float64).tiny)

    def measure_error(self, palette: UInt8) -> float:
        """Return the mean CIEDE2000 difference from the nearest color of a palette (n, 3)."""
        return float(self.weight @ measure_delta_e(self.lab[:, None], convert_to_lab(palette)).min(axis=1))


def _number_values(values: NDArray[np.uint32], limit: int) -> tuple[NDArray[np.uint32], Int32]:
    """Return the distinct values, ascending, of (k,) numbers below a limit, and the position (k,) of each among them.

    A table takes a quarter of the time of `np.unique`, which sorts.
    """
    is_present = np.zeros(limit, np.bool_)
    is_present[values] = True
    present = np.flatnonzero(is_present)
    position = np.empty(limit, np.int32)
    position[present] = np.arange(len(present), dtype=np.int32)
    return present.astype(np.uint32), position[values]


def pack_colors(colors: UInt8, bits: int = 8) -> NDArray[np.uint32]:
    """Return (…, 3) colors as one number each, the red bits lowest."""
    wide = colors.astype(np.uint32)
    result: NDArray[np.uint32] = wide[..., 0] | wide[..., 1] << np.uint32(bits) | wide[..., 2] << np.uint32(2 * bits)
    return result


def unpack_colors(packed: NDArray[np.uint32]) -> UInt8:
    """Return (n, 3) colors of packed ones."""
    result: UInt8 = np.ascontiguousarray(packed).view(np.uint8).reshape(-1, 4)[:, :3]
    return result


def weigh_flat_samples(points: Float64, colors: UInt8, area: Float64, cell: float) -> Float64:
    """Return the areas of samples, reduced at borders between colors, because textures are blended there.

    Otherwise, blends get filaments of their own.

    Args:
        points: (k, 3) positions in millimeters.
        colors: (k, 3) sRGB.
        area: (k,) in square millimeters.
        cell: Side of the cubes in which colors are compared, in millimeters, if they hold enough samples.
    """
    side = max(cell, float(np.sqrt(SAMPLES_PER_BORDER_CELL * area.sum() / max(len(area), 1))))
    # equal hashes of different cubes are rare, and only reduce a few weights
    key = np.floor(points / side).astype(np.int64) @ np.array([73_856_093, 19_349_663, 83_492_791])
    _, cube = np.unique(key, return_inverse=True)
    count = np.bincount(cube)
    oklab = convert_to_oklab(colors)
    means = _average(oklab, np.ones(len(oklab)), cube, len(count))
    variance = np.bincount(cube, np.square(oklab - means[cube]).sum(axis=1)) / count
    result: Float64 = area / (1 + variance[cube] / BORDER_DEVIATION**2)
    return result


def cluster_palette(bins: ColorBins, count: int) -> UInt8:
    """Return at most `count` colors (n, 3) that represent the bins.

    Clusters are found among coarse bins with areas to the smallest power of SEED_POWERS that does not increase the mean
    difference much, as the best of several random starts, and then moved to the means of the full areas.

    Source:
        Arthur, Vassilvitskii, "k-means++: the advantages of careful seeding", SODA 2007; Lloyd's algorithm in OKLab.
    """
    best = _cluster(bins, count, 1.0)
    limit = bins.measure_error(best) + MAX_DELTA_E_GROWTH
    palettes = (_cluster(bins, count, power) for power in SEED_POWERS)
    return next((palette for palette in palettes if bins.measure_error(palette) <= limit), best)


def _cluster(bins: ColorBins, count: int, power: float) -> UInt8:
    """Return at most `count` colors (n, 3): means of clusters that are found with areas to a power."""
    points = bins.oklab * (LIGHTNESS_WEIGHT, 1, 1)
    occupied, place = _number_values(pack_colors(bins.colors >> np.uint8(8 - SEED_BITS), SEED_BITS), 1 << 3 * SEED_BITS)
    seed_points = _average(points, bins.weight, place, len(occupied))
    seed_weight = np.power(np.bincount(place, bins.weight), power)
    best, lowest = points[:0], np.inf
    for seed in range(START_COUNT):
        centers = _seed_centers(seed_points, seed_weight, count, np.random.default_rng(seed))
        centers = _move_centers(seed_points, seed_weight, centers)
        error = float(seed_weight @ _squared_distances(seed_points, centers).min(axis=1))
        if error < lowest:
            best, lowest = centers, error
    centers = _move_centers(points, bins.weight, best)
    return _take_exact_colors(bins, convert_from_oklab(centers / (LIGHTNESS_WEIGHT, 1, 1)))


def _take_exact_colors(bins: ColorBins, palette: UInt8) -> UInt8:
    """Replace colors by the exact ones that cover most of their clusters, and leave out repetitions."""
    nearest = _squared_distances(bins.oklab, convert_to_oklab(palette)).argmin(axis=1)
    total = np.bincount(nearest, bins.weight, minlength=len(palette))
    order = np.argsort(bins.exact_weight, kind="stable")
    largest = np.zeros(len(palette), np.intp)
    largest[nearest[order]] = order
    is_exact = bins.exact_weight[largest] >= MIN_EXACT_AREA_RATIO * total
    exact = np.where(is_exact[:, None], bins.exact[largest], palette)
    return unpack_colors(np.array(list(dict.fromkeys(pack_colors(exact).tolist())), np.uint32))


def _seed_centers(points: Float64, weight: Float64, count: int, random: np.random.Generator) -> Float64:
    centers = np.empty((0, 3))
    distance = np.ones(len(points))
    while len(centers) < count:
        total = np.cumsum(weight * distance)
        if not total[-1] > 0:
            break
        # the best of a few candidates, because a poor start costs more than the comparison
        candidates = np.unique(np.searchsorted(total, random.random(8) * total[-1]))
        closer = _squared_distances(points, points[candidates])
        if len(centers):
            closer = np.minimum(closer, distance[:, None])
        choice = int((weight @ closer).argmin())
        centers, distance = np.concatenate([centers, points[candidates[choice]][None]]), closer[:, choice]
    return centers


def _move_centers(points: Float64, weight: Float64, centers: Float64) -> Float64:
    """Move centers to the means of their clusters, until none changes."""
    nearest: IntIndex = np.full(len(weight), -1)
    for _ in range(MAX_ROUNDS):
        previous, nearest = nearest, _squared_distances(points, centers).argmin(axis=1)
        if (nearest == previous).all():
            break
        is_used = np.bincount(nearest, weight, minlength=len(centers)) > 0
        centers = np.where(is_used[:, None], _average(points, weight, nearest, len(centers)), centers)
    return centers


def _average(points: Float64, weight: Float64, group: IntIndex | Int32, count: int) -> Float64:
    """Return the mean (count, 3) of the points of each group, weighted; 0 for a group without weight."""
    total = np.bincount(group, weight, minlength=count)[:, None]
    sums = [np.bincount(group, weight * points[:, axis], minlength=count) for axis in range(3)]
    result: Float64 = np.stack(sums, axis=1) / np.where(total > 0, total, 1)
    return result


def _squared_distances(points: Float64, centers: Float64) -> Float64:
    result: Float64 = np.square(points[:, None] - centers).sum(axis=2)
    return result


def choose_filaments(bins: ColorBins, palette: UInt8, count: int) -> IntIndex:
    """Return the positions, ascending, of the `count` filaments of a palette (n, 3) with the least mean difference.

    Each step adds the filament that reduces the difference most, then exchanges one if this reduces it further.
    """
    difference = measure_delta_e(bins.lab[:, None], convert_to_lab(palette))
    chosen: list[int] = []
    for place in [*range(count), *range(count)]:
        others = chosen if place >= len(chosen) else [*chosen[:place], *chosen[place + 1 :]]
        nearest = difference[:, others].min(axis=1, initial=np.inf)
        errors = bins.weight @ np.minimum(difference, nearest[:, None])
        errors[others] = np.inf
        chosen = [*others[:place], int(errors.argmin()), *others[place:]]
    return np.sort(np.array(chosen))


def see_through(palette: UInt8, transmission_mm: Float64, wall_mm: float, behind: int) -> UInt8:
    """Return the colors (n, 3) of filaments on a wall in front of another filament, mixed in linear light.

    Args:
        palette: (n, 3) colors.
        transmission_mm: (n,) thickness that lets a tenth of the light through; 0 for opaque filaments.
        wall_mm: Thickness of the wall.
    Source:
        Beer-Lambert law, with the transmission distance of HueForge.
    """
    with np.errstate(divide="ignore"):
        share = np.power(10.0, -wall_mm / transmission_mm)[:, None]
    linear = decode_srgb(palette / 255)
    seen: UInt8 = np.rint(encode_srgb(linear * (1 - share) + linear[behind] * share) * 255).astype(np.uint8)
    return seen
