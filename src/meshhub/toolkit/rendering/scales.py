"""Scales of measured values: colors that stay ordered for color-blind people and in gray."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meshhub.errors import format_number
from meshhub.model.scene import Float64, UInt8

ANCHORS = np.frombuffer(
    bytes.fromhex(
        "440154 481A6C 472F7D 414487 39568C 31688E 2A788E 23888E "
        "1F988B 22A884 35B779 54C568 7AD151 A5DB36 D2E21B FDE725"
    ),
    np.uint8,
).reshape(-1, 3)
"""Colors of the scale viridis (Smith and van der Walt, CC0) at equal distances, the least value first."""

NEUTRAL = np.array([205, 208, 213], np.uint8)
"""Color of surfaces without a value."""


class Scale(NamedTuple):
    """Scale of a measure.

    title:   measured quantity
    unit:    unit of the values
    top:     value of the last color; greater values have it too
    limit:   value that the legend marks
    is_open: whether there are greater values
    """

    title: str
    unit: str
    top: float
    limit: float
    is_open: bool

    def colors(self, values: Float64) -> UInt8:
        """Return the colors (k, 3) of values (k,); `NEUTRAL` for NaN."""
        with np.errstate(invalid="ignore"):
            place = np.clip(values / self.top, 0, 1) * (len(ANCHORS) - 1)
        place = np.nan_to_num(place)
        first = np.minimum(place.astype(np.intp), len(ANCHORS) - 2)
        share = (place - first)[:, None]
        colors: UInt8 = np.rint(ANCHORS[first] * (1 - share) + ANCHORS[first + 1] * share).astype(np.uint8)
        colors[np.isnan(values)] = NEUTRAL
        return colors

    def labels(self) -> list[tuple[float, str]]:
        """Return the values at which the legend has labels, ascending, with the labels."""
        end = f"{format_number(self.top, 3)} {self.unit}" + (" or more" if self.is_open else "")
        return [(0.0, "0"), (self.limit, f"limit {format_number(self.limit, 3)}"), (self.top, end)]
