"""Part-21 text in columns: Arrow joins hundreds of thousands of entities without a Python loop over rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, BinaryIO, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from meshhub.errors import ConversionFailed, format_number
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex

Integers: TypeAlias = NDArray[np.integer[Any]]
Column: TypeAlias = "str | Integers | pa.Array"
"""Text of every row, or integers (for references, after a literal that ends with `#`), or one text for each row."""

_CHUNK_ROWS_COUNT = 1 << 16
"""Entities that are joined at a time; bounds the memory."""
_MAX_COORDINATE_MM = 1e15
"""Millimeters; float64 resolves only 0.1 mm there."""
_SIGNIFICANT_DIGITS = 13
"""Significant digits of the largest coordinate; the ends of a seam must agree to 1e-9 rad, even on a small rim."""
_MAX_SIGNIFICANT_DIGITS = 16
"""Significant digits of a coordinate in thin models; float64 has no more."""
_MIN_LENGTH_DECIMALS = 3
"""Decimals of lengths in huge models."""
_DIRECTION_DECIMALS = 12
"""Decimals of the components of unit vectors, and of parameters."""
_MAX_DECIMALS = 15
"""Decimals; a fraction times 10^15 is an exact integer in float64."""
_THICKNESS_RATIO = 1e-7
"""Share of a model's mean thickness by which rounding may move a face."""
_MIN_LENGTH_MM = 1e-9
"""Millimeters; keeps the logarithm of the largest coordinate finite for a model in the origin."""


class Decimals(NamedTuple):
    """Decimals of lengths, and of the components of directions."""

    lengths: int
    directions: int


def choose_decimals(largest_mm: float, thickness_mm: float) -> Decimals:
    """Choose the decimals of a model's numbers.

    Coordinates get thirteen significant digits. Thin models get more: rounding moves a face by less than 1e-7 of the
    thickness, within the limits of 64-bit numbers.

    Args:
        largest_mm: Largest absolute coordinate.
        thickness_mm: Volume over area; 0 if unknown.
    Raises:
        ConversionFailed: The coordinates exceed _MAX_COORDINATE_MM or are not finite.
    """
    if not largest_mm < _MAX_COORDINATE_MM:
        raise ConversionFailed(
            f"coordinates of {format_number(largest_mm, 3)} mm are too large for a STEP file; "
            "check the unit of the model"
        )
    before_point = int(np.floor(np.log10(max(largest_mm, _MIN_LENGTH_MM)))) + 1
    fine = int(np.ceil(-np.log10(max(thickness_mm, 1e-30) * _THICKNESS_RATIO))) if thickness_mm > 0 else 0
    finest = min(_MAX_DECIMALS, _MAX_SIGNIFICANT_DIGITS - before_point)
    lengths = max(_SIGNIFICANT_DIGITS - before_point, min(fine, finest))
    return Decimals(
        int(np.clip(lengths, _MIN_LENGTH_DECIMALS, _MAX_DECIMALS)),
        int(np.clip(fine + before_point, _DIRECTION_DECIMALS, _MAX_DECIMALS)),
    )


def format_reals(values: Float64, decimals: int) -> pa.Array:
    """Format numbers in fixed point with a decimal point and without trailing zeros.

    Args:
        values: (n,) finite numbers.
        decimals: Digits after the point, at most _MAX_DECIMALS.
    Returns:
        (n,) texts.
    Raises:
        ConversionFailed: A number is not finite.
    Source:
        ISO 10303-21 §6.4.2 (reals have a decimal point).
    """
    if not np.isfinite(values).all():
        raise _not_finite()
    scale = 10**decimals
    size = np.abs(values)
    whole = np.floor(size).astype(np.int64)
    part = np.rint((size - whole) * scale).astype(np.int64)
    carry = part == scale
    whole += carry
    part[carry] = 0
    negative = (values < 0) & ((whole > 0) | (part > 0))
    sign = pa.array(["", "-"]).take(pa.array(negative.astype(np.int8)))
    fraction = pc.ascii_rtrim(pc.utf8_slice_codeunits(format_integers(part + scale), 1), characters="0")
    return pc.binary_join_element_wise(sign, format_integers(whole), ".", fraction, "")


def _not_finite() -> ConversionFailed:
    return ConversionFailed(
        "the STEP model has a number that is not finite; set {step_surfaces} to planar", options=("step_surfaces",)
    )


def format_integers(values: Integers) -> pa.Array:
    """Format (n,) integers in decimal."""
    return pc.cast(pa.array(np.ascontiguousarray(values)), pa.string())


def format_real(value: float, decimals: int = _DIRECTION_DECIMALS) -> str:
    """Format a number like `format_reals`; faster for few numbers."""
    if not math.isfinite(value):
        raise _not_finite()
    text = f"{value:.{decimals}f}".rstrip("0")
    return "0." if text == "-0." else text


def format_triple(point: Float64 | Sequence[float], decimals: int) -> str:
    """Format three numbers in parentheses."""
    return "(" + ",".join(format_real(float(value), decimals) for value in point) + ")"


def format_reference_lists(ids: Integers, begin: Integers) -> pa.Array:
    """Format lists of references such as `#1,#2,#3`; row i holds `ids[begin[i]:begin[i + 1]]`."""
    marked = pc.binary_join_element_wise("#", format_integers(ids), "")
    lists = pa.ListArray.from_arrays(pa.array(begin.astype(np.int32)), marked)
    return pc.binary_join(lists, ",")


def format_references(ids: Sequence[int] | Integers) -> str:
    """Format one list of references such as `#1,#2,#3`."""
    return ",".join(f"#{number}" for number in ids)


class Part21Writer:
    """Writer of entities to a binary stream; assigns their ids."""

    def __init__(self, stream: BinaryIO, decimals: Decimals) -> None:
        """Start at id 1; `decimals` may be changed between entities."""
        self._stream = stream
        self.decimals = decimals
        self._last_id = 0

    def write_text(self, text: str) -> None:
        """Write ASCII text unchanged."""
        self._stream.write(text.encode("ascii"))

    def write_entity(self, text: str) -> int:
        """Write one entity and return its id."""
        number = self.reserve_id()
        self.write_reserved(number, text)
        return number

    def reserve_id(self) -> int:
        """Return an id for an entity that is written later."""
        self._last_id += 1
        return self._last_id

    def write_reserved(self, number: int, text: str) -> None:
        """Write the entity of a reserved id."""
        self.write_text(f"#{number}={text};\n")

    def write_entities(self, count: int, *columns: Column) -> IntIndex:
        """Write entities whose texts are the rows of adjacent columns.

        Args:
            count: Number of entities.
            columns: Literals, integers (count,) or texts (count,).
        Returns:
            (count,) consecutive ids.
        """
        first = self._last_id + 1
        self._last_id += count
        for start in range(0, count, _CHUNK_ROWS_COUNT):
            stop = min(count, start + _CHUNK_ROWS_COUNT)
            pieces: list[Any] = ["#", format_integers(np.arange(first + start, first + stop)), "="]
            for column in columns:
                if isinstance(column, str):
                    pieces.append(column)
                elif isinstance(column, np.ndarray):
                    pieces.append(format_integers(column[start:stop]))
                else:
                    pieces.append(column.slice(start, stop - start))
            rows = pc.binary_join_element_wise(*pieces, ";\n", "")
            offsets = np.frombuffer(rows.buffers()[1], np.int32)
            text = memoryview(rows.buffers()[2])
            self._stream.write(text[offsets[rows.offset] : offsets[rows.offset + len(rows)]])
        return np.arange(first, first + count, dtype=np.intp)

    def write_points(self, positions: Float64) -> IntIndex:
        """Write a CARTESIAN_POINT for each row of (n, 3) millimeters."""
        return self._write_triples("CARTESIAN_POINT", positions, self.decimals.lengths)

    def write_directions(self, vectors: Float64) -> IntIndex:
        """Write a DIRECTION for each row of (n, 3) unit vectors."""
        return self._write_triples("DIRECTION", vectors, self.decimals.directions)

    def _write_triples(self, kind: str, values: Float64, decimals: int) -> IntIndex:
        x, y, z = (format_reals(np.ascontiguousarray(values[:, axis]), decimals) for axis in range(3))
        return self.write_entities(len(values), f"{kind}('',(", x, ",", y, ",", z, "))")

    def write_placements(self, origin: Float64, z: Float64, x: Float64) -> IntIndex:
        """Write an AXIS2_PLACEMENT_3D (ISO 10303-42) for each row of origins, Z axes and X axes (n, 3)."""
        points = self.write_points(origin)
        z_axes = self.write_directions(z)
        x_axes = self.write_directions(x)
        return self.write_entities(len(origin), "AXIS2_PLACEMENT_3D('',#", points, ",#", z_axes, ",#", x_axes, ")")

    def write_point(self, position: Float64) -> int:
        """Write one CARTESIAN_POINT."""
        return self.write_entity(f"CARTESIAN_POINT('',{format_triple(position, self.decimals.lengths)})")

    def write_direction(self, vector: Float64) -> int:
        """Write one DIRECTION."""
        return self.write_entity(f"DIRECTION('',{format_triple(vector, self.decimals.directions)})")

    def write_placement(self, origin: Float64, z: Float64, x: Float64) -> int:
        """Write one AXIS2_PLACEMENT_3D."""
        point, z_axis, x_axis = self.write_point(origin), self.write_direction(z), self.write_direction(x)
        return self.write_entity(f"AXIS2_PLACEMENT_3D('',#{point},#{z_axis},#{x_axis})")

    def write_circle(self, center: Float64, axis: Float64, start: Float64, radius: float) -> int:
        """Write one CIRCLE whose parameter is 0 in the unit direction `start` from the center."""
        placement = self.write_placement(center, axis, start)
        return self.write_entity(f"CIRCLE('',#{placement},{format_real(radius, self.decimals.lengths)})")

    def format_lengths(self, values: Float64) -> pa.Array:
        """Format (n,) millimeters as a column for `write_entities`."""
        return format_reals(values, self.decimals.lengths)

    def write_edge(self, start_vertex: int, end_vertex: int, curve: int) -> int:
        """Write one EDGE_CURVE along the direction of its curve."""
        return self.write_entity(f"EDGE_CURVE('',#{start_vertex},#{end_vertex},#{curve},.T.)")

    def write_oriented_edge(self, edge: int, *, forward: bool) -> int:
        """Write one ORIENTED_EDGE."""
        return self.write_entity(f"ORIENTED_EDGE('',*,*,#{edge},.{'T' if forward else 'F'}.)")

    def write_outer_bound(self, oriented_edges: Sequence[int] | Integers) -> int:
        """Write one FACE_OUTER_BOUND with its EDGE_LOOP."""
        loop = self.write_entity(f"EDGE_LOOP('',({format_references(oriented_edges)}))")
        return self.write_entity(f"FACE_OUTER_BOUND('',#{loop},.T.)")
