"""Between glTF's linear colours and the scene's sRGB (IEC 61966-2-1)."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.gltf.reading.accessors import Column
from meshhub.model.scene import UInt8
from meshhub.toolkit.colors import decode_srgb, encode_srgb


@cache
def _encode_table(kind: str) -> UInt8:
    count = 256 if kind == "u1" else 65_536
    return np.rint(encode_srgb(np.arange(count) / (count - 1)) * 255).astype(np.uint8)


@cache
def _decode_table() -> NDArray[np.uint16]:
    return np.rint(decode_srgb(np.arange(256) / 255) * 65_535).astype(np.uint16)


def to_srgb(column: Column) -> UInt8:
    """The rows of COLOR_0, three or four components, as (n, 4) sRGB with alpha."""
    values = column.values
    rows = np.full((len(values), 4), 255, np.uint8)
    if values.dtype.kind == "u" and values.dtype.itemsize <= 2:
        rows[:, :3] = _encode_table(f"u{values.dtype.itemsize}")[values[:, :3]]
        alpha: NDArray[Any] = values[:, 3:4].astype(np.float64) / np.iinfo(values.dtype).max
    else:
        plain = column.floats()
        rows[:, :3] = np.rint(encode_srgb(plain[:, :3]) * 255)
        alpha = np.clip(np.nan_to_num(plain[:, 3:4]), 0, 1)
    if alpha.shape[1]:
        rows[:, 3:4] = np.rint(alpha * 255)
    return rows


def to_linear(colors: UInt8) -> NDArray[np.uint16]:
    """(n, 4) sRGB as (n, 4) linear in 16 bits, fine enough that every sRGB byte comes back."""
    rows = np.empty((len(colors), 4), np.uint16)
    rows[:, :3] = _decode_table()[colors[:, :3]]
    rows[:, 3] = colors[:, 3].astype(np.uint16) * 257
    return rows
