"""Pack objects on beds, each where it costs least room, and beds of cells for shadows."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import product
from typing import Generic, Literal, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import fft, ndimage

from meshhub.builtin_plugins.arrange.shadows import Cells
from meshhub.model.progress import track
from meshhub.model.scene import Float64

MAX_TRIED = 40
"""Objects up to which all ways to fill beds are tried; it takes a second for 20 objects."""

HIT = 0.5
"""Least overlap, in cells, of a transform whose exact value is a whole number."""


Growth = Literal["square", "rows", "columns"]
"""Where the next object goes: "square" keeps the rectangle around all small, so that the middle of the bed is used
first; "rows" and "columns" fill the bed from one side, which wastes less at the others."""

Stamp = TypeVar("Stamp")
"""A pose of an object, as a kind of bed needs it."""


class Spot(NamedTuple):
    """Pose of an object, and its first row and column on a bed, in the unit of the bed."""

    pose: int
    row: float
    column: float


class Place(NamedTuple):
    """Number of a bed, from 0, and the spot on it."""

    plate: int
    spot: Spot

    def scaled(self, unit: float) -> Place:
        """Return the place in another unit."""
        return Place(self.plate, Spot(self.spot.pose, unit * self.spot.row, unit * self.spot.column))


class Pose(NamedTuple):
    """A shadow, and the last row and column on the bed at which it may begin; negative if it is larger than the bed."""

    cells: Cells
    last_row: int
    last_column: int

    @property
    def fits(self) -> bool:
        """Whether the shadow fits an empty bed."""
        return self.last_row >= 0 and self.last_column >= 0


class Bed(Protocol[Stamp]):
    """A bed that is being filled."""

    def fill(self, stamps: dict[int, Stamp], count: int) -> list[Spot]:
        """Place objects of one shape, as many as there is room for; return their poses and places."""

    def used(self) -> float:
        """Return the area of the rectangle around what stands here."""

    def middle(self) -> Float64:
        """Return the middle of this rectangle: row and column."""


class Item(NamedTuple, Generic[Stamp]):
    """Objects of one shape.

    stamps: poses that fit an empty bed, at least one, by their numbers
    copies: number of the objects
    area:   of one object
    side:   of one object, the longer one
    """

    stamps: dict[int, Stamp]
    copies: int
    area: float
    side: float


class Packing(NamedTuple, Generic[Stamp]):
    """Beds, and the places of the objects of each item."""

    plates: list[Bed[Stamp]]
    places: dict[int, list[Place]]

    @property
    def size(self) -> tuple[int, float]:
        """The number of beds, and the area of the used rectangles."""
        return len(self.plates), sum(plate.used() for plate in self.plates)


def pack(items: list[Item[Stamp]], start_bed: Callable[[Growth], Bed[Stamp]]) -> Packing[Stamp]:
    """Pack objects, the largest first: small ones fill what is left between them.

    Args:
        items: Objects of each shape.
        start_bed: Returns an empty bed.
    Returns:
        Of several ways to fill beds, the one that needs the fewest, and on these the smallest rectangles.
    """
    total = sum(item.copies for item in items)
    orders: list[Callable[[Item[Stamp]], float]] = [lambda item: item.area]
    if total <= MAX_TRIED:
        orders.append(lambda item: item.side)
    growths: tuple[Growth, ...] = ("square", "rows", "columns")
    best: Packing[Stamp] | None = None
    for order, growth in track(list(product(orders, growths))):
        packing: Packing[Stamp] = Packing([], {})
        for number in sorted(range(len(items)), key=lambda number: -order(items[number])):
            packing.places[number] = _place(items[number], packing.plates, start_bed, growth)
        if best is None or packing.size < best.size:
            best = packing
        if total == 1 or (total > MAX_TRIED and len(best.plates) == 1):
            break
    assert best is not None
    return best


def _place(
    item: Item[Stamp], plates: list[Bed[Stamp]], start_bed: Callable[[Growth], Bed[Stamp]], growth: Growth
) -> list[Place]:
    """Place the objects of an item on the beds and, where they have no room, on further ones, which are appended."""
    places: list[Place] = []
    number = 0
    while len(places) < item.copies:
        if number == len(plates):
            plates.append(start_bed(growth))
        places += [Place(number, spot) for spot in plates[number].fill(item.stamps, item.copies - len(places))]
        number += 1
    return places


def find_costs(bed: Float64, box: Float64, size: Float64, places: Float64, growth: Growth) -> Float64:
    """Return the cost (k,) of each place: of growth, and among equals of being far from the first corner.

    Args:
        bed: (2,) rows and columns.
        box: (2, 2) corners of the rectangle around what stands there; (0, 2) on an empty bed.
        size: (2,) rows and columns of the object.
        places: (k, 2) first rows and columns.
        growth: How the rectangle shall grow.
    """
    cost: Float64 = places.sum(axis=1) / (64 * bed.sum())
    low, high = box if len(box) else (bed, np.zeros(2))
    if growth == "square":
        deep, wide = ((np.maximum(places + size, high) - np.minimum(places, low)) / bed).T
        cost += np.maximum(deep, wide) + deep * wide / 8
        return cost
    axis = 0 if growth == "rows" else 1
    cost += (places[:, axis] + size[axis]) / bed[axis]
    return cost


def extend(box: Float64, corners: Float64) -> Float64:
    """Return the corners (2, 2) of the rectangle around a box, (0, 2) if it is empty, and other corners (2, 2)."""
    points = np.concatenate([box, corners])
    return np.stack([points.min(axis=0), points.max(axis=0)])


class Shadow:
    """A shadow, and where it may begin on the bed."""

    def __init__(self, pose: Pose, gap: int) -> None:
        self.cells = pose.cells
        self.rooms = pose.last_row + 1, pose.last_column + 1
        self.gap = gap
        self._meetings: dict[int, Cells] = {}

    @cached_property
    def wide(self) -> Cells:
        """The shadow with the gap around it; the first object of a bed does not need it."""
        wide = np.pad(self.cells, self.gap)
        result: Cells = ndimage.distance_transform_edt(~wide) < self.gap + 1 if self.gap else wide
        return result

    def meetings(self, other: Shadow) -> Cells:
        """Return at which offsets another shadow comes closer than the gap; offset (0, 0) is at its own last cell."""
        if id(other) not in self._meetings:
            self._meetings[id(other)] = _convolve(self.wide, other.cells[::-1, ::-1]) > HIT
        return self._meetings[id(other)]


class GridBed:
    """A bed of cells of which some are taken.

    Args:
        size: Rows and columns.
        growth: Where the next shadow goes.
    """

    def __init__(self, size: tuple[int, int], growth: Growth) -> None:
        self._taken: Cells = np.zeros(size, np.bool_)
        self._growth = growth
        self._box = np.empty((0, 2))

    def fill(self, stamps: dict[int, Shadow], count: int) -> list[Spot]:
        """Place shadows of one shape, as many as there is room for; return their poses and places."""
        spots: list[Spot] = []
        room = {pose: self._find_room(stamp) for pose, stamp in stamps.items()}
        while len(spots) < count and (spot := self._choose(stamps, room)) is not None:
            pose, row, column = spot
            self._put(stamps[pose], row, column)
            spots.append(Spot(*spot))
            if len(spots) < count:
                for other, free in room.items():
                    _exclude(free, stamps[pose], stamps[other], row, column)
        return spots

    def used(self) -> float:
        """Return the cells of the used rectangle."""
        return float(np.prod(np.ptp(self._box, axis=0))) if len(self._box) else 0.0

    def middle(self) -> Float64:
        """Return the middle of the used rectangle: row and column."""
        result: Float64 = self._box.mean(axis=0)
        return result

    def _find_room(self, stamp: Shadow) -> Cells:
        """Return at which first rows and columns a shadow is far enough from what stands here."""
        rows, columns = stamp.rooms
        if len(self._box) == 0:
            return np.ones((rows, columns), np.bool_)
        overlap = _convolve(np.pad(self._taken, stamp.gap), stamp.wide[::-1, ::-1])
        first = tuple(side - 1 for side in stamp.wide.shape)
        return overlap[first[0] : first[0] + rows, first[1] : first[1] + columns] < HIT

    def _choose(self, stamps: dict[int, Shadow], room: dict[int, Cells]) -> tuple[int, int, int] | None:
        """Return the pose, row and column of least cost; None without room."""
        best: tuple[float, int, int, int] | None = None
        bed = np.array(self._taken.shape, np.float64)
        for pose, free in room.items():
            places = np.argwhere(free)
            if len(places) == 0:
                continue
            size = np.array(stamps[pose].cells.shape, np.float64)
            cost = find_costs(bed, self._box, size, places.astype(np.float64), self._growth)
            least = int(np.argmin(cost))
            if best is None or cost[least] < best[0]:
                best = (float(cost[least]), pose, *places[least].tolist())
        return best[1:] if best else None

    def _put(self, stamp: Shadow, row: int, column: int) -> None:
        """Take the cells of a shadow."""
        height, width = stamp.cells.shape
        self._taken[row : row + height, column : column + width] |= stamp.cells
        self._box = extend(self._box, np.array([[row, column], [row + height, column + width]], np.float64))


def _exclude(free: Cells, placed: Shadow, stamp: Shadow, row: int, column: int) -> None:
    """Remove the places where a shadow would come too close to one that was placed."""
    meetings = placed.meetings(stamp)
    height, width = stamp.cells.shape
    top, left = row - placed.gap - (height - 1), column - placed.gap - (width - 1)
    rows = slice(max(top, 0), min(top + meetings.shape[0], free.shape[0]))
    columns = slice(max(left, 0), min(left + meetings.shape[1], free.shape[1]))
    if rows.start < rows.stop and columns.start < columns.stop:
        free[rows, columns] &= ~meetings[rows.start - top : rows.stop - top, columns.start - left : columns.stop - left]


def _convolve(first: Cells, second: Cells) -> NDArray[np.float32]:
    """Return the full convolution of two grids, by Fourier transforms."""
    shape = [a + b - 1 for a, b in zip(first.shape, second.shape, strict=True)]
    sizes = [fft.next_fast_len(side, real=True) for side in shape]
    product = fft.rfft2(first.astype(np.float32), sizes) * fft.rfft2(second.astype(np.float32), sizes)
    result: NDArray[np.float32] = fft.irfft2(product, sizes)[: shape[0], : shape[1]]
    return result
