"""Format names, colors and matrices as XML text."""

from __future__ import annotations

import re

from meshhub.model.scene import Float64

_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
)


def escape_xml(text: str) -> str:
    """Escape text for an attribute or an element; characters that XML 1.0 does not allow are left out."""
    return _ILLEGAL.sub("", text).translate(_ESCAPES)


def format_attribute(name: str, value: str) -> str:
    """Return ` name="value"`, or "" for an empty value."""
    text = escape_xml(value)
    return f' {name}="{text}"' if text else ""


def format_color(rgba: tuple[int, int, int, int]) -> str:
    """Return `#RRGGBB`, or `#RRGGBBAA` if the color is not opaque."""
    red, green, blue, alpha = rgba
    return f"#{red:02X}{green:02X}{blue:02X}" + (f"{alpha:02X}" if alpha < 255 else "")


def format_transform(matrix: Float64) -> str:
    """Return the transform attribute of a (4, 4) matrix for column vectors, or "" for the identity.

    Source:
        3MF core §3.3: twelve numbers, for row vectors, translation last.
    """
    numbers = (matrix[:3].T + 0.0).ravel().tolist()
    text = " ".join(repr(number).removesuffix(".0") for number in numbers)
    return "" if text == "1 0 0 0 1 0 0 0 1 0 0 0" else f' transform="{text}"'
