"""Pack shadows on beds, each where it costs least room."""

from __future__ import annotations

from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import fft, ndimage

from meshhub.builtin_plugins.arrange.shadows import Cells
from meshhub.model.progress import track

MAX_TRIED = 40
"""Objects up to which all ways to fill beds are tried; it takes a second for 20 objects."""

HIT = 0.5
"""Least overlap, in cells, of a transform whose exact value is a whole number."""


class Place(NamedTuple):
    """Place of a shadow.

    plate:  number of the bed, from 0
    pose:   index of the pose
    row:    first row on the bed
    column: first column on the bed
    """

    plate: int
    pose: int
    row: int
    column: int


class Pose(NamedTuple):
    """A shadow, and the last row and column on the bed at which it may begin; negative if it is larger than the bed."""

    cells: Cells
    last_row: int
    last_column: int

    @property
    def fits(self) -> bool:
        """Whether the shadow fits an empty bed."""
        return self.last_row >= 0 and self.last_column >= 0


def pack(shapes: list[tuple[list[Pose], int]], bed: tuple[int, int], gap: int) -> Packer:
    """Pack shadows, the largest first: small ones fill what is left between them.

    Args:
        shapes: Poses and number of the objects of each shape; at least one pose fits the bed.
        bed: Rows and columns of cells.
        gap: Cells between two shadows.
    Returns:
        Of several ways to fill beds, the one that needs the fewest, and on these the smallest rectangles.
    """
    is_small = sum(count for _, count in shapes) <= MAX_TRIED
    orders = [_by_area, _by_side] if is_small else [_by_area]
    best: Packer | None = None
    for order, growth in track(list(product(orders, ("square", "rows", "columns")))):
        packer = Packer(bed, gap, growth)
        for number in sorted(range(len(shapes)), key=lambda number: -order(shapes[number][0][0].cells)):
            packer.place(number, *shapes[number])
        if best is None or packer.size < best.size:
            best = packer
        is_alone = sum(count for _, count in shapes) == 1
        if is_alone or (not is_small and len(best.plates) == 1):
            break
    assert best is not None
    return best


def _by_area(cells: Cells) -> int:
    return int(cells.sum())


def _by_side(cells: Cells) -> int:
    return int(max(cells.shape))


class Packer:
    """Beds, and what stands on them.

    Attributes:
        plates: The beds.
        places: Places of the objects of each shape, by its number.
    """

    def __init__(self, bed: tuple[int, int], gap: int, growth: str) -> None:
        self._bed = bed
        self._gap = gap
        self._growth = growth
        self.plates: list[Plate] = []
        self.places: dict[int, list[Place]] = {}

    @property
    def size(self) -> tuple[int, int]:
        """The number of beds, and the cells of the used rectangles."""
        return len(self.plates), sum(plate.used() for plate in self.plates)

    def place(self, shape: int, poses: list[Pose], count: int) -> None:
        """Place the objects of a shape."""
        stamps = {number: _Stamp(pose, self._gap) for number, pose in enumerate(poses) if pose.fits}
        places: list[Place] = []
        number = 0
        while len(places) < count:
            if number == len(self.plates):
                self.plates.append(Plate(self._bed, self._growth))
            plate = self.plates[number]
            room = {pose: plate.find_room(stamp) for pose, stamp in stamps.items()}
            while len(places) < count and (spot := plate.choose(stamps, room)) is not None:
                places.append(Place(number, *spot))
                pose, row, column = spot
                plate.put(stamps[pose], row, column)
                if len(places) < count:
                    for other, free in room.items():
                        _exclude(free, stamps[pose], stamps[other], row, column)
            number += 1
        self.places[shape] = places


class _Stamp:
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

    def meetings(self, other: _Stamp) -> Cells:
        """Return at which offsets another shadow comes closer than the gap; offset (0, 0) is at its own last cell."""
        if id(other) not in self._meetings:
            self._meetings[id(other)] = _convolve(self.wide, other.cells[::-1, ::-1]) > HIT
        return self._meetings[id(other)]


class Plate:
    """A bed: the cells that are taken, and the rectangle around them.

    Args:
        size: Rows and columns.
        growth: Where the next shadow goes: "square" keeps the rectangle small, so that the middle of the bed is used
            first; "rows" and "columns" fill the bed from one side, which wastes less at the others.
    """

    def __init__(self, size: tuple[int, int], growth: str) -> None:
        self.taken: Cells = np.zeros(size, np.bool_)
        self._growth = growth
        self._box: tuple[int, int, int, int] | None = None

    def find_room(self, stamp: _Stamp) -> Cells:
        """Return at which first rows and columns a shadow is far enough from what stands here."""
        rows, columns = stamp.rooms
        if self._box is None:
            return np.ones((rows, columns), np.bool_)
        overlap = _convolve(np.pad(self.taken, stamp.gap), stamp.wide[::-1, ::-1])
        first = tuple(side - 1 for side in stamp.wide.shape)
        return overlap[first[0] : first[0] + rows, first[1] : first[1] + columns] < HIT

    def choose(self, stamps: dict[int, _Stamp], room: dict[int, Cells]) -> tuple[int, int, int] | None:
        """Return the pose, row and column of least cost; None without room."""
        best: tuple[float, int, int, int] | None = None
        for pose, free in room.items():
            row, column = np.nonzero(free)
            if len(row) == 0:
                continue
            cost = self._costs(stamps[pose].cells.shape, row, column)
            least = int(np.argmin(cost))
            if best is None or cost[least] < best[0]:
                best = (float(cost[least]), pose, int(row[least]), int(column[least]))
        return best[1:] if best else None

    def _costs(self, shape: tuple[int, ...], row: NDArray[np.intp], column: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the cost of each place: of growth, and among equals of being far from the first corner."""
        rows, columns = self.taken.shape
        low_row, low_column, high_row, high_column = self._box or (rows, columns, 0, 0)
        top, right = row + shape[0], column + shape[1]
        cost: NDArray[np.float64] = (row + column) / (64 * (rows + columns))
        if self._growth != "square":
            cost += top / rows if self._growth == "rows" else right / columns
            return cost
        deep = np.maximum(top, high_row) - np.minimum(row, low_row)
        wide = np.maximum(right, high_column) - np.minimum(column, low_column)
        cost += np.maximum(deep / rows, wide / columns) + deep * wide / (8 * rows * columns)
        return cost

    def used(self) -> int:
        """Return the cells of the used rectangle."""
        low_row, low_column, high_row, high_column = self._box or (0, 0, 0, 0)
        return (high_row - low_row) * (high_column - low_column)

    def middle(self) -> tuple[float, float]:
        """Return the middle of the used rectangle: column and row."""
        low_row, low_column, high_row, high_column = self._box or (0, 0, 0, 0)
        return (low_column + high_column) / 2, (low_row + high_row) / 2

    def put(self, stamp: _Stamp, row: int, column: int) -> None:
        """Take the cells of a shadow."""
        height, width = stamp.cells.shape
        self.taken[row : row + height, column : column + width] |= stamp.cells
        low_row, low_column, high_row, high_column = self._box or (row, column, row, column)
        self._box = (
            min(row, low_row),
            min(column, low_column),
            max(row + height, high_row),
            max(column + width, high_column),
        )


def _exclude(free: Cells, placed: _Stamp, stamp: _Stamp, row: int, column: int) -> None:
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
