"""Colors, UV, normals and textures of PLY files, under the names that different programs use."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.ply.row_layout import Column, ElementTable
from meshhub.errors import printable, quote
from meshhub.model.notes import note
from meshhub.model.scene import Float32, Image, Material, UInt8
from meshhub.model.source import Source
from meshhub.toolkit.geometry import unit_vectors
from meshhub.toolkit.images import detect_media_type

_CHANNELS = (
    ("red", "green", "blue", "alpha"),
    ("r", "g", "b", "a"),
    ("diffuse_red", "diffuse_green", "diffuse_blue", "diffuse_alpha"),
)
_UV = (("s", "t"), ("u", "v"), ("texture_u", "texture_v"), ("tex_u", "tex_v"), ("texture_s", "texture_t"))
_NORMAL = ("nx", "ny", "nz")

COLOR_NAMES = frozenset(name for names in _CHANNELS for name in names)
UV_NAMES = frozenset(name for names in _UV for name in names)

_MAX_BYTE_LIKE = 1023.0
"""Largest number of a color whose range is 255; larger ones range to 65535."""

MAX_TEXTURES_COUNT = 256
"""Maximum textures to read; each is a file to look up, and real files name a few."""

MAX_TEXTURE_NAME_LENGTH = 80
"""Maximum characters of a texture's file name; bounds names from hostile headers."""


def read_colors(table: ElementTable) -> UInt8 | None:
    """Return the (n, 4) sRGB colors of an element's rows, or None."""
    for names in _CHANNELS:
        present = [name for name in names[:3] if name in table.columns]
        if len(present) < 3:
            if len(present) > 1:
                note("value_ignored", f"the PLY file has only {' and '.join(present)} of a color: ignored")
            continue
        colors = np.full((table.count, 4), 255, np.uint8)
        rgb = [table.columns[name] for name in names[:3]]
        for channel, name in enumerate(names):
            if name in table.columns:
                values = table.columns[name]
                # a dark channel has the range of the other channels of its type
                peers = [column for column in rgb if column.dtype == values.dtype] or [values]
                colors[:, channel] = _to_bytes(
                    values, max(float(np.max(peer, where=np.isfinite(peer), initial=0)) for peer in peers)
                )
        if not all(_is_in_range(column) for column in rgb):
            note(
                "value_ignored",
                "colors of the PLY file are not finite, or outside of 0 to 255 or 65535: read as the nearest",
            )
        if table.count and not colors[:, 3].any():
            colors[:, 3] = 255
            note("alpha_zero", "all colors in the PLY file are fully transparent: read as opaque")
        return colors
    return None


def _is_in_range(column: Column) -> bool:
    """Return whether the numbers of a channel are finite, and inside of a range of colors."""
    if column.dtype in (np.uint8, np.uint16) or not len(column):
        return True
    low, high = float(column.min()), float(column.max())
    return low >= 0 and (high <= 255 or _MAX_BYTE_LIKE < high <= 65535)


def _to_bytes(values: Column, largest: float) -> UInt8:
    """Return a channel as bytes, by the largest number of its range.

    Floats range to 1, and 16-bit integers to 65535. Some programs write 0 to 255 in these types, too.
    """
    if values.dtype == np.uint8:
        return values
    scale = 1.0
    if values.dtype.kind == "f" and largest <= 1:
        scale = 255.0
    elif largest > (255 if values.dtype == np.uint16 else _MAX_BYTE_LIKE):
        scale = 1 / 257
    scaled = np.nan_to_num(values.astype(np.float64), nan=0, posinf=255, neginf=0) * scale
    channel: UInt8 = np.clip(np.rint(scaled), 0, 255).astype(np.uint8)
    return channel


def read_uv(table: ElementTable) -> Float32 | None:
    """Return the (n, 2) texture coordinates of an element's rows, or None."""
    for u, v in _UV:
        if u in table.columns and v in table.columns:
            return replace_non_finite(np.stack([table.columns[u], table.columns[v]], axis=1))
    return None


def replace_non_finite(values: NDArray[Any]) -> Float32:
    """Return texture coordinates with 0 instead of NaN and infinity, so that a bad texture does not fail the model."""
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32)
    finite: Float32 = np.nan_to_num(narrow, nan=0, posinf=0, neginf=0)
    return finite


def read_normals(table: ElementTable) -> Float32 | None:
    """Return the (n, 3) unit normals of an element's rows, with zeros kept; None if missing, not finite or all zero."""
    if not all(name in table.columns for name in _NORMAL):
        return None
    normals = np.stack([table.columns[name] for name in _NORMAL], axis=1).astype(np.float64)
    if not np.isfinite(normals).all():
        note("value_ignored", "normals of the PLY file are not finite numbers: read without normals")
        return None
    if not normals.any():
        return None
    return unit_vectors(normals).astype(np.float32)


def read_textures(source: Source, names: list[str]) -> tuple[tuple[Material, ...], tuple[Image, ...]]:
    """Return a material for each texture named in the header, and the images found among the companions."""
    materials: list[Material] = []
    images: list[Image] = []
    image_index: dict[str, int] = {}  # the header may name one file several times
    for name in names[:MAX_TEXTURES_COUNT]:
        companion = source.sibling(name)
        if companion is None:
            note(
                "missing_texture",
                f"the texture {quote(name)} is missing; keep it beside the model, or pack both in one archive",
                name=quote(name),
            )
            materials.append(Material())
            continue
        file_name = printable(name[:MAX_TEXTURE_NAME_LENGTH]).replace("\\", "/").rpartition("/")[2]
        key = str(companion.path or companion.name)
        if key not in image_index:
            image_index[key] = len(images)
            data = companion.read_binary()
            images.append(Image(data, detect_media_type(data), file_name))
        stem = file_name.rpartition(".")[0] or file_name
        materials.append(Material(name=stem, base_color_image=image_index[key]))
    return tuple(materials), tuple(images)
