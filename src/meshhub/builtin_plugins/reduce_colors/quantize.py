"""Assignment of colors to the entries of a palette. It does not depend on meshes or on how colors are stored."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.reduce_colors.palette import pack_colors, unpack_colors
from meshhub.model.scene import Float64, UInt8
from meshhub.toolkit.colors import convert_to_lab, convert_to_oklab, decode_srgb, measure_delta_e

_UNKNOWN = 255
"""Entry of the table for a color that has not occurred."""

_BATCH_SIZE = 65_536
"""Colors to compare with the palette at a time; bounds the memory."""


class Quantizer:
    """Nearest entries of a palette.

    Colors are looked up in a table of the entries found so far, because textures have few colors compared with samples.
    """

    def __init__(self, palette: UInt8, metric: Literal["oklab", "ciede2000"]) -> None:
        """Start with an empty table.

        Args:
            palette: (n, 3) colors.
            metric: Difference between colors.
        """
        self.palette = palette
        self._metric = metric
        self._lab = convert_to_lab(palette)
        oklab = convert_to_oklab(palette)
        self._square, self._doubled = np.square(oklab).sum(axis=1), 2 * oklab
        self._linear = decode_srgb(palette / 255)
        self._nearest = np.full(1 << 24, _UNKNOWN, np.uint8)

    def assign(self, colors: UInt8) -> UInt8:
        """Return the entry (k,) for each color (k, 3)."""
        packed = pack_colors(colors)
        entry: UInt8 = self._nearest[packed]
        unknown = packed[entry == _UNKNOWN]
        if not len(unknown):
            return entry
        for start in range(0, len(unknown), _BATCH_SIZE):
            batch = unknown[start : start + _BATCH_SIZE]
            # earlier batches often have the same colors
            batch = batch[self._nearest[batch] == _UNKNOWN]
            self._nearest[batch] = self._find_nearest(unpack_colors(batch))
        return self._nearest[packed]

    def assign_dithered(self, colors: UInt8, threshold: Float64) -> UInt8:
        """Return the entry (k,) for each color (k, 3): of the two entries that mix to it, the one that a threshold
        selects.

        Args:
            colors: Colors of the points.
            threshold: (k,) numbers from 0 to 1, evenly distributed over neighboring points.
        """
        first = self.assign(colors)
        distinct, index = np.unique(pack_colors(colors), return_inverse=True)
        rgb = unpack_colors(distinct)
        second, share = self._find_mixtures(rgb, self.assign(rgb))
        return np.where(threshold < share[index], second[index], first)

    def measure(self, colors: UInt8, entry: UInt8) -> Float64:
        """Return the CIEDE2000 differences (k,) of colors (k, 3) from entries (k,) of the palette."""
        # a surface has few distinct pairs compared with samples
        pairs, index = np.unique(pack_colors(colors) | entry.astype(np.uint32) << np.uint32(24), return_inverse=True)
        difference = measure_delta_e(convert_to_lab(unpack_colors(pairs)), self._lab[pairs >> np.uint32(24)])
        return difference[index]

    def _find_nearest(self, colors: UInt8) -> NDArray[np.intp]:
        if self._metric == "ciede2000":
            by_difference: NDArray[np.intp] = measure_delta_e(convert_to_lab(colors)[:, None], self._lab).argmin(axis=1)
            return by_difference
        # |c - p|² = |c|² - 2 c·p + |p|², and |c|² is the same for every entry
        products = np.einsum("nc,kc->nk", self._doubled, convert_to_oklab(colors))
        nearest: NDArray[np.intp] = (self._square[:, None] - products).argmin(axis=0)
        return nearest

    def _find_mixtures(self, colors: UInt8, first: UInt8) -> tuple[UInt8, Float64]:
        """Return the entry that best mixes with the first one to each color, and its share, 0 to 1/2.

        Filaments mix like light, so the colors are compared in linear light.
        """
        target = decode_srgb(colors / 255)
        start = self._linear[first]
        direction = self._linear[None] - start[:, None]
        length = np.square(direction).sum(axis=2)
        share = np.einsum("kd,knd->kn", target - start, direction) / np.where(length > 0, length, 1)
        share = np.clip(share, 0, 1)
        residual = np.square(start[:, None] + share[..., None] * direction - target[:, None]).sum(axis=2)
        second = residual.argmin(axis=1)
        return second.astype(np.uint8), share[np.arange(len(colors)), second]
