"""Text in pictures: a font of 5 × 7 pixels that suffices for the names of views, surfaces and parts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from meshhub.model.scene import UInt8

GLYPH_HEIGHT = 8
"""Pixels of a line of text before it is enlarged."""

ADVANCE = 6
"""Pixels from one letter to the next."""

_BORDER = 0.4
"""Value at the border of a letter, between 0 outside and 1 inside; with 0.5, slanted lines would be too thin."""

# five columns of each printable ASCII character, the lowest bit on top
_COLUMNS = np.frombuffer(
    bytes.fromhex(
        "0000000000 00005F0000 0007000700 147F147F14 242A7F2A12 2313086462 3649562050 0008070300 001C224100 0041221C00 "
        "2A1C7F1C2A 08083E0808 0080703000 0808080808 0000606000 2010080402 3E5149453E 00427F4000 7249494946 2141494D33 "
        "1814127F10 2745454539 3C4A494931 4121110907 3649494936 464949291E 0000140000 0040340000 0008142241 1414141414 "
        "0041221408 0201590906 3E415D594E 7C1211127C 7F49494936 3E41414122 7F4141413E 7F49494941 7F09090901 3E41415173 "
        "7F0808087F 00417F4100 2040413F01 7F08142241 7F40404040 7F021C027F 7F0408107F 3E4141413E 7F09090906 3E4151215E "
        "7F09192946 2649494932 03017F0103 3F4040403F 1F2040201F 3F4038403F 6314081463 0304780403 6159494D43 007F414141 "
        "0204081020 004141417F 0402010204 4040404040 0003070800 2054547840 7F28444438 3844444428 384444287F 3854545418 "
        "00087E0902 18A4A49C78 7F08040478 00447D4000 2040403D00 7F10284400 00417F4000 7C04780478 7C08040478 3844444438 "
        "FC18242418 18242418FC 7C08040408 4854545424 04043F4424 3C4040207C 1C2040201C 3C4030403C 4428102844 4C9090907C "
        "4464544C44 0008364100 0000770000 0041360800 0201020402"
    ),
    np.uint8,
).reshape(-1, 5)


def text_width(text: str, scale: int) -> int:
    """Return the width of a text in pixels."""
    return len(text) * ADVANCE * scale


def draw_text(text: str, scale: int) -> NDArray[np.float64]:
    """Return the coverage (height, width) of the pixels of a line of text, from 0 to 1, with smooth borders.

    Args:
        text: One line; characters that are not in the font become "?".
        scale: Pixels per pixel of the font.
    """
    codes = [ord(letter) - 32 if 32 <= ord(letter) < 127 else ord("?") - 32 for letter in text]
    columns = np.zeros((len(codes), ADVANCE), np.uint8)
    columns[:, :5] = _COLUMNS[codes]
    bits = ((columns.reshape(-1)[None, :] >> np.arange(GLYPH_HEIGHT, dtype=np.uint8)[:, None]) & 1).astype(np.float64)
    if scale == 1:
        return bits
    # interpolation between the centers of the font's pixels rounds corners, and turns steps into slanted lines
    values = _interpolate(_interpolate(bits, scale).T, scale).T
    return np.clip((values - _BORDER) * scale + 0.5, 0.0, 1.0)


def _interpolate(rows: NDArray[np.float64], scale: int) -> NDArray[np.float64]:
    """Enlarge an array along its first axis, with linear interpolation between the centers of its rows."""
    places = (np.arange(len(rows) * scale) + 0.5) / scale - 0.5
    before = np.floor(places).astype(int)
    share = (places - before)[:, None]
    padded = np.pad(rows, ((1, 1), (0, 0)))
    result: NDArray[np.float64] = padded[before + 1] * (1 - share) + padded[before + 2] * share
    return result


def blend_text(area: UInt8, coverage: NDArray[np.float64], color: tuple[int, int, int]) -> None:
    """Draw text over a part of a picture, in place.

    Args:
        area: (height, width, 4) sRGB with alpha, not larger than the text.
        coverage: As `draw_text` returns it; cut off at the edge of the area.
        color: sRGB of the text.
    """
    share = coverage[: area.shape[0], : area.shape[1], None]
    below = area[..., 3:] / 255 * (1 - share)
    alpha = share + below
    mixed = (share * np.array(color) + below * area[..., :3]) / np.maximum(alpha, 1e-9)
    area[..., :3] = np.where(alpha > 0, np.rint(mixed), area[..., :3])
    area[..., 3:] = np.rint(255 * alpha)
