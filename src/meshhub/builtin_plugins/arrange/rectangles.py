"""Beds for rectangles, whose sizes and gaps are exact: a grid would round them up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.arrange.packing import Growth, Spot, extend, find_costs
from meshhub.model.scene import Float64

SLACK_MM = 1e-6
"""Millimeters by which sums of sizes and gaps may exceed a room, because of rounding."""


class RectangleBed:
    """A bed, with the largest rectangles that are free on it.

    Args:
        size: (2,) depth and width, in mm.
        gap: Between two rectangles, in mm.
        growth: As in `GridBed`.

    Source:
        Jylänki, "A thousand ways to pack the bin", 2010: maximal rectangles.
    """

    def __init__(self, size: Float64, gap: float, growth: Growth) -> None:
        self._size, self._gap, self._growth = size, gap, growth
        # with a gap behind each rectangle and behind the bed, rectangles that touch are a gap apart
        self._free = np.array([[[0.0, 0.0], size + gap]])
        self._box = np.empty((0, 2))

    def fill(self, stamps: dict[int, Float64], count: int) -> list[Spot]:
        """Place rectangles (2,) of one kind, as many as there is room for; return their poses and places."""
        spots: list[Spot] = []
        while len(spots) < count and (spot := self._choose(stamps)) is not None:
            pose, row, column = spot
            self._take(np.array([row, column]), stamps[pose])
            spots.append(spot)
        return spots

    def used(self) -> float:
        """Return the area of the used rectangle, in mm²."""
        return float(np.prod(np.ptp(self._box, axis=0))) if len(self._box) else 0.0

    def middle(self) -> Float64:
        """Return the middle of the used rectangle: row and column, in mm."""
        result: Float64 = self._box.mean(axis=0)
        return result

    def _choose(self, stamps: dict[int, Float64]) -> Spot | None:
        best: tuple[float, Spot] | None = None
        for pose, size in stamps.items():
            fits = (self._free[:, 1] - self._free[:, 0] >= size + self._gap - SLACK_MM).all(axis=1)
            places = self._free[fits, 0]
            if len(places) == 0:
                continue
            cost = find_costs(self._size, self._box, size, places, self._growth)
            least = int(np.argmin(cost))
            if best is None or cost[least] < best[0]:
                best = float(cost[least]), Spot(pose, *places[least].tolist())
        return best[1] if best else None

    def _take(self, place: Float64, size: Float64) -> None:
        """Remove a rectangle and the gap behind it from what is free."""
        corners = np.stack([place, place + size])
        self._box = extend(self._box, corners)
        low, high = place, corners[1] + self._gap
        meets = ((self._free[:, 0] < high - SLACK_MM) & (self._free[:, 1] > low + SLACK_MM)).all(axis=1)
        crossed, kept = self._free[meets], self._free[~meets]
        parts = []
        for axis in (0, 1):
            before, behind = crossed.copy(), crossed.copy()
            before[:, 1, axis] = np.minimum(before[:, 1, axis], low[axis])
            behind[:, 0, axis] = np.maximum(behind[:, 0, axis], high[axis])
            parts += [before, behind]
        new = np.unique(np.concatenate(parts), axis=0)
        new = new[(new[:, 1] - new[:, 0] > SLACK_MM).all(axis=1)]
        self._free = np.concatenate([kept, new[~_lie_within(new, kept)]])


def _lie_within(new: Float64, kept: Float64) -> NDArray[np.bool_]:
    """Return which new rectangles lie within kept ones or within larger new ones, and so add no room."""
    others = np.concatenate([kept, new])
    is_low = (others[None, :, 0] <= new[:, None, 0]).all(axis=2)
    is_high = (others[None, :, 1] >= new[:, None, 1]).all(axis=2)
    within: NDArray[np.bool_] = np.asarray(is_low & is_high)
    within[np.arange(len(new)), len(kept) + np.arange(len(new))] = False
    result: NDArray[np.bool_] = np.asarray(within.any(axis=1))
    return result
