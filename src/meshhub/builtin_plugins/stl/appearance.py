"""Face colors in the attribute bytes of binary STL, in either of two conventions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshhub.model.scene import Int32, Material

_COLOR_BIT = 0x8000
_BODY_COLOR_KEY = b"COLOR="
_DEFAULT_GRAY = b"\x7f\x7f\x7f\x20"
"""Body color in every file without colors that the VCG library of MeshLab writes."""


def read_face_colors(header: bytes, attributes: NDArray[np.uint16]) -> tuple[tuple[Material, ...], Int32 | None]:
    """Read the face colors of a binary STL file as materials.

    VisCAM, SolidView: bit 15 is set if the face has a color; blue is in the lowest five bits. Programs that set bit 15
    of every face and nothing else mean no color: three of 46 parts that people print would be black.
    Materialise Magics: the header contains `COLOR=` and four bytes, the body color. Bit 15 is set if the face has
    the body color; otherwise the face has its own color, with red in the lowest five bits.

    All colors are opaque: the fourth byte of the body color is a space in most files, and face colors have no alpha.
    A Magics file with only zero attributes has no face colors, so the body color applies.

    Args:
        header: The first 80 bytes of the file.
        attributes: (m,) attribute of each face.
    Returns:
        One material per color, and the (m,) material index of each face, -1 for none; `()` and None without colors.
    """
    start = header.find(_BODY_COLOR_KEY)
    body_color = header[start + len(_BODY_COLOR_KEY) : start + len(_BODY_COLOR_KEY) + 4] if start >= 0 else b""
    is_magics = len(body_color) == 4
    if not is_magics and not attributes.any():
        return (), None
    values, index = np.unique(attributes, return_inverse=True)
    if not is_magics and values.tolist() == [_COLOR_BIT]:
        return (), None
    if is_magics:
        if not values.any():
            if body_color == _DEFAULT_GRAY:
                return (), None
            values = np.array([_COLOR_BIT], np.uint16)
        has_color = np.ones(len(values), np.bool_)
    else:
        has_color = (values & _COLOR_BIT) != 0
    if not has_color.any():
        return (), None
    five_bit_channels = np.stack([values & 31, (values >> 5) & 31, (values >> 10) & 31], axis=1)
    colors: NDArray[Any] = np.round(five_bit_channels * (255 / 31))
    if is_magics:
        colors[(values & _COLOR_BIT) != 0] = list(body_color[:3])
    else:
        colors = colors[:, ::-1]
    # two attributes may encode one color, which must become one material
    distinct_colors, material = np.unique(colors[has_color], axis=0, return_inverse=True)
    value_material = np.full(len(values), -1, np.int32)
    value_material[has_color] = material.reshape(-1)
    materials = tuple(
        Material(base_color=(red / 255, green / 255, blue / 255, 1.0)) for red, green, blue in distinct_colors.tolist()
    )
    return materials, value_material[index.reshape(-1)]
