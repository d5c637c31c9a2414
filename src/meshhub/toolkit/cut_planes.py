"""Values of options that are planes at which to cut, such as z=40 or z=50%,x=0."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from meshhub.errors import InvalidOption, quote
from meshhub.model.quantities import parse_quantity, units_of

if TYPE_CHECKING:
    from meshhub.model.scene import Float64

_POSITION = re.compile(r"([xyz])=(-?\d{1,6}(?:\.\d{1,6})?)([^\d.,]*)", re.ASCII)
"""Axis, number, and a unit of length or the percent sign; without a unit, millimeters."""


class Plane(NamedTuple):
    """Plane perpendicular to an axis (0, 1 or 2), in millimeters."""

    axis: int
    offset: float

    @property
    def axis_name(self) -> str:
        """Name of the axis, as in the value of an option."""
        return "xyz"[self.axis]

    def crosses(self, box: Float64, tolerance: float) -> bool:
        """Return whether a box (2, 3) reaches beyond the plane on both sides by more than a tolerance."""
        low, high = box[:, self.axis]
        return bool(low + tolerance < self.offset < high - tolerance)


class PlanePosition(NamedTuple):
    """Position of a plane along an axis (0, 1 or 2), in millimeters or in percent of the extent of a scene."""

    axis: int
    value: float
    is_percent: bool

    def place(self, box: Float64) -> Plane:
        """Return the plane in a scene with this box (2, 3)."""
        if not self.is_percent:
            return Plane(self.axis, self.value)
        low, high = box[:, self.axis]
        return Plane(self.axis, float(low + (high - low) * self.value / 100))


def parse_planes(option: str, text: str, max_count: int) -> tuple[PlanePosition, ...]:
    """Return the positions of planes in the value of an option, which are separated by commas and optional spaces.

    Args:
        option: Name of the option, for the message.
        text: Value, such as "z=50%,x=0".
        max_count: Maximum planes.
    Raises:
        InvalidOption: The value has another form, a percentage is not between 0 and 100, or there are too many planes.
    """
    texts = text.replace(" ", "").split(",")
    positions = [position for each in texts if (position := _parse_position(each))]
    is_inside = all(not position.is_percent or 0 < position.value < 100 for position in positions)
    if len(positions) < len(texts) or len(positions) > max_count or not is_inside:
        raise InvalidOption(
            f"option '{{{option}}}' must be 1 to {max_count} planes, such as z=40 or z=50%,x=0, got {quote(text)}",
            options=(option,),
        )
    return tuple(positions)


def _parse_position(text: str) -> PlanePosition | None:
    match = _POSITION.fullmatch(text)
    if match is None:
        return None
    is_percent = match[3] == "%"
    value = parse_quantity(match[2] + match[3], units_of("_percent" if is_percent else "_mm"))
    return None if value is None else PlanePosition("xyz".index(match[1]), value, is_percent)
