"""The two ways in which binary STL colours its faces in the attribute bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshhub.model.scene import Int32, Material

_VALID = 0x8000
_MARK = b"COLOR="
_UNCOLOURED = b"\x7f\x7f\x7f\x20"
"""The grey that MeshLab's library puts in the header of every model without colours."""


def face_colors(header: bytes, attributes: NDArray[np.uint16]) -> tuple[tuple[Material, ...], Int32 | None]:
    """Materials, one for each colour, and the (m,) index of each face's; no materials and None without colours.

    VisCAM, SolidView: bit 15 says that the face has a colour, blue in the lowest five bits.
    Materialise Magics: the header says `COLOR=` and four bytes for the whole body; bit 15 says that
    the face shows that one, else it has its own, red in the lowest five bits.

    Alpha is left at opaque: the header's fourth byte is a blank in most files, and faces have none.
    A Magics file whose attributes are all zero was never coloured by face: its body's colour holds.
    """
    at = header.find(_MARK)
    body = header[at + len(_MARK) : at + len(_MARK) + 4] if at >= 0 else b""
    magics = len(body) == 4
    if not magics and not attributes.any():
        return (), None
    values, index = np.unique(attributes, return_inverse=True)
    if magics:
        if not values.any():
            if body == _UNCOLOURED:
                return (), None
            values = np.array([_VALID], np.uint16)
        shows = np.ones(len(values), np.bool_)
    else:
        shows = (values & _VALID) != 0
    if not shows.any():
        return (), None
    fives = np.stack([values & 31, (values >> 5) & 31, (values >> 10) & 31], axis=1)
    colors: NDArray[Any] = np.round(fives * (255 / 31))
    if magics:
        colors[(values & _VALID) != 0] = list(body[:3])
    else:
        colors = colors[:, ::-1]
    # two attributes may name one colour: those are one material
    distinct, shared = np.unique(colors[shows], axis=0, return_inverse=True)
    number = np.full(len(values), -1, np.int32)
    number[shows] = shared.reshape(-1)
    materials = tuple(
        Material(base_color=(red / 255, green / 255, blue / 255, 1.0)) for red, green, blue in distinct.tolist()
    )
    return materials, number[index.reshape(-1)]
