"""Numbers with units, as people write them: 4cm, 45°, 150 %."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

_LENGTHS = {
    "mm": "1", "um": "0.001", "µm": "0.001", "μm": "0.001", "cm": "10", "m": "1000", "in": "25.4", "inch": "25.4",
    '"': "25.4", "ft": "304.8",
}  # fmt: skip
_ANGLES = {"deg": "1", "degree": "1", "degrees": "1", "°": "1"}

UNITS: Mapping[str, Mapping[str, str]] = MappingProxyType({
    "_mm": _LENGTHS,
    "_deg": _ANGLES,
    "_degrees": _ANGLES,
    "_percent": {"%": "1", "percent": "1"},
    "_mm_s": {"mm/s": "1", "mm/sec": "1"},
    "_g_cm3": {"g/cm3": "1", "g/cm³": "1", "g/cm^3": "1"},
})  # fmt: skip
"""Factors of units by the end of the name of an option."""

_NUMBER = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,4})?)\s*(.*)", re.ASCII)
"""Decimal number and the rest; unlike `float`, it excludes underscores, infinity, NaN and digits of other scripts."""

_DECIMAL_COMMA = re.compile(r"[+-]?\d+,(?!\d{3}\b)\d+\s*\D*", re.ASCII)
"""Number with a decimal comma; three digits after it may follow a separator of thousands."""


def units_of(name: str) -> Mapping[str, str]:
    """Return the factors of the units that the values of an option may have; empty for an option without a unit."""
    return next((UNITS[suffix] for suffix in sorted(UNITS, key=len, reverse=True) if name.endswith(suffix)), {})


def parse_quantity(text: str, units: Mapping[str, str]) -> float | None:
    """Return a number with an optional unit, in the first unit; None for another text.

    Letter case and spaces before the unit do not matter.
    """
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        return None
    unit = match[2].strip().lower()
    if unit and unit not in units:
        return None
    if not unit or units[unit] == "1":
        return float(match[1])
    # floats would turn 1.1 in to 27.940000000000001 mm
    from decimal import Decimal

    return float(Decimal(match[1]) * Decimal(units[unit]))


def describe_number(text: str, units: Mapping[str, str]) -> str:
    """Return what a malformed number must be, for a message."""
    if _DECIMAL_COMMA.fullmatch(text.strip()):
        return f"must have a decimal point, such as {text.strip().replace(',', '.')}"
    listed = [unit for unit in units if unit.isascii() and unit.isalpha()] or list(units)[:1]
    return "must be a finite number with a decimal point" + (f", in {', '.join(listed)}" if listed else "")
