"""Colours, UV and textures of PLY files, under the many names that programs give them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.ply.rows import Column, Table
from meshhub.model.notes import note
from meshhub.model.scene import Float32, Image, Material, UInt8
from meshhub.model.source import Source

_CHANNELS = (
    ("red", "green", "blue", "alpha"),
    ("r", "g", "b", "a"),
    ("diffuse_red", "diffuse_green", "diffuse_blue", "diffuse_alpha"),
)
_UV = (("s", "t"), ("u", "v"), ("texture_u", "texture_v"), ("tex_u", "tex_v"), ("texture_s", "texture_t"))

COLOR_NAMES = frozenset(name for names in _CHANNELS for name in names)
UV_NAMES = frozenset(name for names in _UV for name in names)

_PICTURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"BM", "image/bmp"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
)
"""How pictures begin; what is none of them may still be a TGA, which begins with nothing of its own."""


def colors(table: Table) -> UInt8 | None:
    """(n, 4) sRGB colours of an element's rows, or None."""
    for names in _CHANNELS:
        if not all(name in table.columns for name in names[:3]):
            continue
        made = np.full((table.count, 4), 255, np.uint8)
        floats = [table.columns[name] for name in names[:3]]
        unit = all(one.dtype.kind != "f" or not len(one) or float(np.nanmax(one, initial=0)) <= 1 for one in floats)
        for channel, name in enumerate(names):
            if name in table.columns:
                made[:, channel] = _bytes(table.columns[name], unit)
        if table.count and not made[:, 3].any():
            made[:, 3] = 255
            note("alpha_zero", "every colour in the PLY file is wholly transparent: read as opaque")
        return made
    return None


def _bytes(values: Column, unit: bool) -> UInt8:
    """One channel as bytes. Floats run to 1, or to 255 when any is beyond 1; 16-bit integers to 65535."""
    if values.dtype == np.uint8:
        return values
    scale = 255.0 if values.dtype.kind == "f" and unit else 1 / 257 if values.dtype == np.uint16 else 1.0
    scaled = np.nan_to_num(values.astype(np.float64), nan=0, posinf=255, neginf=0) * scale
    made: UInt8 = np.clip(np.rint(scaled), 0, 255).astype(np.uint8)
    return made


def uv(table: Table) -> Float32 | None:
    """(n, 2) texture coordinates of an element's rows, or None."""
    for across, up in _UV:
        if across in table.columns and up in table.columns:
            return finite(np.stack([table.columns[across], table.columns[up]], axis=1))
    return None


def finite(values: NDArray[Any]) -> Float32:
    """What is no number becomes 0: a texture must not cost the model."""
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32)
    made: Float32 = np.nan_to_num(narrow, nan=0, posinf=0, neginf=0)
    return made


def normals(table: Table) -> Float32 | None:
    """(n, 3) unit normals of an element's rows, or None; zeros stay."""
    if not all(name in table.columns for name in ("nx", "ny", "nz")):
        return None
    given = np.stack([table.columns[name] for name in ("nx", "ny", "nz")], axis=1).astype(np.float64)
    if not np.isfinite(given).all() or not given.any():
        return None
    length = np.linalg.norm(given, axis=1, keepdims=True)
    unit: Float32 = np.divide(given, length, out=np.zeros_like(given), where=length > 0).astype(np.float32)
    return unit


def textures(source: Source, names: list[str]) -> tuple[tuple[Material, ...], tuple[Image, ...]]:
    """A material for each picture the header names, with the pictures that came together with the file."""
    materials: list[Material] = []
    images: list[Image] = []
    held: dict[str, int] = {}  # one file may be named again and again
    for name in names[:256]:
        found = source.sibling(name)
        shown = "".join(letter if letter.isprintable() else "?" for letter in name[:80])
        if found is None:
            note("missing_texture", f"the texture {shown!r} did not come with the file: send both in one archive")
            materials.append(Material())
            continue
        last = shown.replace("\\", "/").rpartition("/")[2]
        key = str(found.path or found.name)
        if key not in held:
            held[key] = len(images)
            data = found.read()
            images.append(Image(data, _media_type(data), last))
        materials.append(Material(name=last.rpartition(".")[0] or last, base_color_image=held[key]))
    return tuple(materials), tuple(images)


def _media_type(data: bytes) -> str:
    """What kind of picture the bytes are, by how they begin."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _PICTURES if data.startswith(magic)), "image/x-tga")
