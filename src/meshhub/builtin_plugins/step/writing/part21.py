"""Part-21 text in columns: entities by the hundred thousand, joined by Arrow, no Python loop over rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, BinaryIO, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from meshhub.errors import ConversionFailed, format_number

Column: TypeAlias = "str | NDArray[np.integer[Any]] | pa.Array"
"""A literal that every row has, integers (references are written after a literal `#`), or ready text."""

_CHUNK = 1 << 16
_LARGEST = 1e15
_SIGNIFICANT = 11
_MOST_SIGNIFICANT = 16
_UNIT_DECIMALS = 12
_MOST_DECIMALS = 15
_OF_THICKNESS = 1e-7


class Decimals(NamedTuple):
    """Decimals of lengths, and of the components of directions."""

    lengths: int
    directions: int


def decimals_for(largest: float, thickness: float) -> Decimals:
    """Decimals that hold coordinates up to `largest` to eleven significant digits, and more for what is thin.

    thickness: volume over area in mm; what is written moves a face by less than 1e-7 of it, as far as
    64-bit numbers go

    Raises ConversionFailed for coordinates that no such number of digits holds.
    """
    if not largest < _LARGEST:
        raise ConversionFailed(
            f"coordinates of {format_number(largest, 3)} mm are beyond what a STEP file can hold; "
            "check the unit of the model"
        )
    before_point = int(np.floor(np.log10(max(largest, 1e-9)))) + 1
    fine = int(np.ceil(-np.log10(max(thickness, 1e-30) * _OF_THICKNESS))) if thickness > 0 else 0
    finest = min(_MOST_DECIMALS, _MOST_SIGNIFICANT - before_point)
    return Decimals(
        int(np.clip(max(_SIGNIFICANT - before_point, min(fine, finest)), 3, _MOST_DECIMALS)),
        int(np.clip(fine + before_point, _UNIT_DECIMALS, _MOST_DECIMALS)),
    )


def reals(values: NDArray[np.float64], decimals: int) -> pa.Array:
    """Fixed-point text with a decimal point (ISO 10303-21 §6.3.2), trailing zeros left away."""
    scale = 10**decimals
    size = np.abs(values)
    whole = np.floor(size).astype(np.int64)
    part = np.rint((size - whole) * scale).astype(np.int64)
    carry = part == scale
    whole += carry
    part[carry] = 0
    negative = (values < 0) & ((whole > 0) | (part > 0))
    sign = pa.array(["", "-"]).take(pa.array(negative.astype(np.int8)))
    fraction = pc.ascii_rtrim(pc.utf8_slice_codeunits(integers(part + scale), 1), characters="0")
    return pc.binary_join_element_wise(sign, integers(whole), ".", fraction, "")


def integers(values: NDArray[np.integer[Any]]) -> pa.Array:
    """Decimal text of integers."""
    return pc.cast(pa.array(np.ascontiguousarray(values)), pa.string())


def real(value: float, decimals: int = _UNIT_DECIMALS) -> str:
    """One number as `reals` writes it; for few numbers this is faster."""
    text = f"{value:.{decimals}f}".rstrip("0")
    return "0." if text == "-0." else text


def triple(point: NDArray[np.float64] | Sequence[float], decimals: int) -> str:
    """Three numbers in parentheses."""
    return "(" + ",".join(real(float(value), decimals) for value in point) + ")"


def references(ids: NDArray[np.integer[Any]], begin: NDArray[np.integer[Any]]) -> pa.Array:
    """Lists of references, `#1,#2,#3`: row i holds `ids[begin[i]:begin[i + 1]]`."""
    marked = pc.binary_join_element_wise("#", integers(ids), "")
    lists = pa.ListArray.from_arrays(pa.array(begin.astype(np.int32)), marked)
    return pc.binary_join(lists, ",")


class Part21:
    """Writes entities into a binary stream and counts their ids."""

    def __init__(self, file: BinaryIO, decimals: Decimals) -> None:
        """`decimals` may be changed between entities."""
        self._file = file
        self.decimals = decimals
        self.last = 0

    def raw(self, text: str) -> None:
        """Text as it is."""
        self._file.write(text.encode("ascii"))

    def one(self, text: str) -> int:
        """One entity; returns its id."""
        self.last += 1
        self.raw(f"#{self.last}={text};\n")
        return self.last

    def reserve(self) -> int:
        """An id for an entity that is written later."""
        self.last += 1
        return self.last

    def reserved(self, number: int, text: str) -> None:
        """The entity of a reserved id."""
        self.raw(f"#{number}={text};\n")

    def many(self, count: int, *columns: Column) -> int:
        """`count` entities from columns side by side; returns the first id, the others follow."""
        first = self.last + 1
        self.last += count
        for start in range(0, count, _CHUNK):
            stop = min(count, start + _CHUNK)
            pieces: list[Any] = ["#", integers(np.arange(first + start, first + stop)), "="]
            for column in columns:
                if isinstance(column, str):
                    pieces.append(column)
                elif isinstance(column, np.ndarray):
                    pieces.append(integers(column[start:stop]))
                else:
                    pieces.append(column.slice(start, stop - start))
            rows = pc.binary_join_element_wise(*pieces, ";\n", "")
            offsets = np.frombuffer(rows.buffers()[1], np.int32)
            text = memoryview(rows.buffers()[2])
            self._file.write(text[offsets[rows.offset] : offsets[rows.offset + len(rows)]])
        return first

    def points(self, values: NDArray[np.float64]) -> int:
        """One CARTESIAN_POINT for each row of (n, 3); returns the first id."""
        return self._triples("CARTESIAN_POINT", values, self.decimals.lengths)

    def directions(self, values: NDArray[np.float64]) -> int:
        """One DIRECTION for each row of (n, 3); returns the first id."""
        return self._triples("DIRECTION", values, self.decimals.directions)

    def _triples(self, kind: str, values: NDArray[np.float64], decimals: int) -> int:
        x, y, z = (reals(np.ascontiguousarray(values[:, axis]), decimals) for axis in range(3))
        return self.many(len(values), f"{kind}('',(", x, ",", y, ",", z, "))")

    def point(self, at: NDArray[np.float64]) -> int:
        """One CARTESIAN_POINT."""
        return self.one(f"CARTESIAN_POINT('',{triple(at, self.decimals.lengths)})")

    def direction(self, along: NDArray[np.float64]) -> int:
        """One DIRECTION."""
        return self.one(f"DIRECTION('',{triple(along, self.decimals.directions)})")

    def placement(self, at: NDArray[np.float64], z: NDArray[np.float64], x: NDArray[np.float64]) -> int:
        """One AXIS2_PLACEMENT_3D."""
        return self.one(f"AXIS2_PLACEMENT_3D('',#{self.point(at)},#{self.direction(z)},#{self.direction(x)})")

    def placements(
        self, at: NDArray[np.float64], z: NDArray[np.float64], x: NDArray[np.float64]
    ) -> NDArray[np.integer[Any]]:
        """One AXIS2_PLACEMENT_3D for each row; returns all ids."""
        number = np.arange(len(at))
        points = self.points(at) + number
        along = self.directions(z) + number
        towards = self.directions(x) + number
        first = self.many(len(at), "AXIS2_PLACEMENT_3D('',#", points, ",#", along, ",#", towards, ")")
        made: NDArray[np.integer[Any]] = first + number
        return made

    def lengths(self, values: NDArray[np.float64]) -> pa.Array:
        """Lengths as text, for `many`."""
        return reals(values, self.decimals.lengths)

    def circle(self, at: NDArray[np.float64], z: NDArray[np.float64], x: NDArray[np.float64], radius: float) -> int:
        """One CIRCLE, begun at `x`."""
        return self.one(f"CIRCLE('',#{self.placement(at, z, x)},{real(radius, self.decimals.lengths)})")

    def bound(self, edges: Sequence[tuple[int, bool]]) -> int:
        """One FACE_OUTER_BOUND of edge curves, each run along or against its direction."""
        oriented = [self.one(f"ORIENTED_EDGE('',*,*,#{edge},.{'T' if along else 'F'}.)") for edge, along in edges]
        loop = self.one(f"EDGE_LOOP('',({','.join(f'#{edge}' for edge in oriented)}))")
        return self.one(f"FACE_OUTER_BOUND('',#{loop},.T.)")
