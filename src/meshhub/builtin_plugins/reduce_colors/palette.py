"""Choice of a palette: clusters in OKLab, weighted by area, or some of the user's filaments."""

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

MIN_PURE_AREA_RATIO = 0.01
"""Share of the area from which pure white or black counts as used; a smaller area is mostly a margin of a texture."""

MAX_PURE_DELTA_E = 0.25
"""Growth of the mean CIEDE2000 difference up to which pure white and black are kept as colors of the palette."""

PURE_COLORS = np.array([(255, 255, 255), (0, 0, 0)], np.uint8)
"""Colors that clusters must not tint."""


class ColorBins:
    """Histogram of the colors of a surface.

    colors: (b, 3) mean sRGB color of each bin
    oklab:  (b, 3) mean color in OKLab
    lab:    (b, 3) mean color in CIE L*a*b*
    weight: (b,) share of the area
    pure:   (2,) share of the area with each of PURE_COLORS
    """

    def __init__(self, colors: UInt8, area: Float64) -> None:
        """Sum the areas (k,) of points by their colors (k, 3)."""
        packed = pack_colors(colors)
        distinct, index = _number_values(packed, 1 << 24)
        weight = np.bincount(index, area)
        rgb = unpack_colors(distinct)
        for bits in range(8, 3, -1):
            levels = pack_colors(np.right_shift(rgb, np.uint8(8 - bits)), bits)
            occupied, place = _number_values(levels, 1 << 3 * bits)
            if len(occupied) <= MAX_BIN_COUNT:
                break
        self.weight: Float64 = np.bincount(place, weight).astype(np.float64)
        oklab = convert_to_oklab(rgb)
        total = np.maximum(self.weight, np.finfo(np.float64).tiny)[:, None]
        self.oklab = np.stack([np.bincount(place, weight * oklab[:, axis]) for axis in range(3)], axis=1) / total
        self.colors = convert_from_oklab(self.oklab)
        self.lab = convert_to_lab(self.colors)
        self.weight = self.weight / max(float(self.weight.sum()), np.finfo(np.float64).tiny)
        shares = weight / max(float(weight.sum()), np.finfo(np.float64).tiny)
        self.pure = np.array([shares[distinct == color].sum() for color in pack_colors(PURE_COLORS)])

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


def cluster_palette(bins: ColorBins, count: int) -> UInt8:
    """Return at most `count` colors (n, 3) that represent the bins; pure white and black stay where they are used.

    Source:
        Arthur, Vassilvitskii, "k-means++: the advantages of careful seeding", SODA 2007; Lloyd's algorithm in OKLab.
    """
    best = _cluster(bins, count, PURE_COLORS[:0])
    limit = bins.measure_error(best) + MAX_PURE_DELTA_E
    is_used = bins.pure >= MIN_PURE_AREA_RATIO
    for chosen in ([0, 1], [0], [1]):
        if is_used[chosen].all() and len(chosen) <= count:
            palette = _cluster(bins, count, PURE_COLORS[chosen])
            if bins.measure_error(palette) <= limit:
                return palette
    return best


def _cluster(bins: ColorBins, count: int, fixed: UInt8) -> UInt8:
    """Return the palette with the least mean difference among several starts; it begins with the fixed colors."""
    best, lowest = fixed, np.inf
    for seed in range(START_COUNT):
        centers = _seed_centers(bins, count, convert_to_oklab(fixed), np.random.default_rng(seed))
        centers = _move_centers(bins, centers, len(fixed))
        colors = np.concatenate([fixed, convert_from_oklab(centers[len(fixed) :])])
        palette = unpack_colors(np.array(list(dict.fromkeys(pack_colors(colors).tolist())), np.uint32))
        error = bins.measure_error(palette)
        if error < lowest:
            best, lowest = palette, error
    return best


def _seed_centers(bins: ColorBins, count: int, fixed: Float64, random: np.random.Generator) -> Float64:
    centers = fixed
    distance = _squared_distances(bins.oklab, fixed).min(axis=1, initial=np.inf) if len(fixed) else None
    while len(centers) < count:
        potential = bins.weight if distance is None else bins.weight * distance
        total = np.cumsum(potential)
        if not total[-1] > 0:
            break
        # the best of a few candidates, because a poor start costs more than the comparison
        candidates = np.unique(np.searchsorted(total, random.random(8) * total[-1]))
        closer = _squared_distances(bins.oklab, bins.oklab[candidates])
        if distance is not None:
            closer = np.minimum(closer, distance[:, None])
        choice = int((bins.weight @ closer).argmin())
        centers, distance = np.concatenate([centers, bins.oklab[candidates[choice]][None]]), closer[:, choice]
    return centers


def _move_centers(bins: ColorBins, centers: Float64, fixed_count: int) -> Float64:
    """Move all but the first centers to the means of their clusters, until none changes."""
    nearest: IntIndex = np.full(len(bins.weight), -1)
    for _ in range(MAX_ROUNDS):
        previous, nearest = nearest, _squared_distances(bins.oklab, centers).argmin(axis=1)
        if (nearest == previous).all():
            break
        size = np.bincount(nearest, bins.weight, minlength=len(centers))
        means = np.stack(
            [np.bincount(nearest, bins.weight * bins.oklab[:, axis], minlength=len(centers)) for axis in range(3)],
            axis=1,
        )
        is_moved = size > 0
        is_moved[:fixed_count] = False
        centers = np.where(is_moved[:, None], means / np.where(size > 0, size, 1)[:, None], centers)
    return centers


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
