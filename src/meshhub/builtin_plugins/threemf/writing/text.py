"""Names, colours and matrices as XML text."""

from __future__ import annotations

import re

from meshhub.model.scene import Float64

_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
)


def escaped(text: str) -> str:
    """Text for an attribute or an element; what XML 1.0 cannot hold is left out."""
    return _ILLEGAL.sub("", text).translate(_ESCAPES)


def attribute(name: str, value: object) -> str:
    """` name="value"`, or nothing for an empty value."""
    text = escaped(str(value))
    return f' {name}="{text}"' if text else ""


def color(rgba: tuple[int, int, int, int]) -> str:
    """`#RRGGBB`, and the alpha when it is not opaque."""
    red, green, blue, alpha = rgba
    return f"#{red:02X}{green:02X}{blue:02X}" + (f"{alpha:02X}" if alpha < 255 else "")


def matrix(transform: Float64) -> str:
    """A transform attribute (core §3.3: row vectors, translation last), or nothing for the identity."""
    numbers = (transform[:3].T + 0.0).ravel().tolist()
    text = " ".join(repr(number).removesuffix(".0") for number in numbers)
    return "" if text == "1 0 0 0 1 0 0 0 1 0 0 0" else f' transform="{text}"'
