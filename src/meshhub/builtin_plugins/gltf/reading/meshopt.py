"""Decode buffer views that EXT_meshopt_compression or KHR_meshopt_compression compresses."""

# why this way: docs/decisions/0004-meshopt.md
from __future__ import annotations

from functools import cache
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.gltf.reading.json_object import JsonObject
from meshhub.errors import UnreadableFile, quote

EXTENSIONS = ("KHR_meshopt_compression", "EXT_meshopt_compression")

_MAX_EXPANSION_RATIO = 1100
"""Maximum decoded bytes per compressed byte; valid data reach 1024: 256 zero rows cost one byte per 4 bytes. """

_MAX_FREE_BYTES = 65_536
"""Maximum decoded bytes allowed beyond the ratio, for tiny views."""


@cache
def is_available() -> bool:
    """Return whether the decoder is installed."""
    return find_spec("meshoptimizer") is not None


def decode(extension: JsonObject, data: memoryview) -> memoryview:
    """Decode a compressed view.

    Args:
        data: Compressed bytes.
    Returns:
        Decoded bytes.
    Raises:
        UnreadableFile: The object is invalid or the data are damaged.
    """
    count, stride = extension.integer("count"), extension.integer("byteStride", minimum=1)
    mode, filter_name = extension.text("mode"), extension.text("filter", "NONE")
    _check_layout(extension, count, stride, len(data))
    if count == 0:
        return memoryview(b"")
    try:
        decoded = _decode_rows(mode, count, stride, np.frombuffer(data, np.uint8))
    except (RuntimeError, ValueError):
        raise UnreadableFile(f"{extension.path} cannot be decompressed; export the glTF file again") from None
    # the decoder writes 16-bit indices into the first half of its 32-bit array
    content: NDArray[np.uint8] = decoded.view(np.uint8)[: count * stride]
    if mode == "ATTRIBUTES" and filter_name != "NONE":
        content = _apply_filter(extension, content, count, stride)
    return memoryview(content.data)


def _check_layout(extension: JsonObject, count: int, stride: int, size: int) -> None:
    """Check count, stride and mode against the specification of the extension, and the count against the bytes."""
    mode = extension.text("mode")
    if count * stride > _MAX_EXPANSION_RATIO * size + _MAX_FREE_BYTES:
        extension.reject("count", f"is {count}, more than {size} compressed bytes can hold")
    if mode not in ("ATTRIBUTES", "TRIANGLES", "INDICES"):
        extension.reject("mode", f"is {quote(mode)}; it must be ATTRIBUTES, TRIANGLES or INDICES")
    if mode == "ATTRIBUTES":
        if stride % 4 or stride > 256:
            extension.reject("byteStride", f"is {stride}; it must be a multiple of 4 up to 256")
    elif stride not in (2, 4) or (mode == "TRIANGLES" and count % 3):
        extension.reject("count", f"({count}, with a stride of {stride} bytes) is not valid for indices")


def _decode_rows(mode: str, count: int, stride: int, data: NDArray[np.uint8]) -> NDArray[np.generic]:
    import meshoptimizer

    rows: NDArray[np.generic]
    if mode == "ATTRIBUTES":
        rows = meshoptimizer.decode_vertex_buffer(count, stride, data, dtype=np.dtype((np.void, stride)))
    elif mode == "TRIANGLES":
        rows = meshoptimizer.decode_index_buffer(count, stride, data)
    else:
        rows = meshoptimizer.decode_index_sequence(count, stride, data)
    return rows


def _apply_filter(extension: JsonObject, data: NDArray[np.uint8], count: int, stride: int) -> NDArray[np.uint8]:
    import meshoptimizer

    filters = {
        "OCTAHEDRAL": (meshoptimizer.decode_filter_oct, (4, 8)),
        "QUATERNION": (meshoptimizer.decode_filter_quat, (8,)),
        "EXPONENTIAL": (meshoptimizer.decode_filter_exp, range(4, 257, 4)),
    }
    name = extension.text("filter", "NONE")
    if name not in filters:
        extension.reject("filter", f"is {quote(name)}; it must be NONE, OCTAHEDRAL, QUATERNION or EXPONENTIAL")
    function, strides = filters[name]
    if stride not in strides:
        extension.reject("byteStride", f"is {stride}, which is not valid for the filter {name}")
    # the filters process whole groups of four rows
    padded = np.zeros((count + 3) // 4 * 4 * stride, np.uint8)
    padded[: count * stride] = data
    filtered: NDArray[np.uint8] = function(padded, len(padded) // stride, stride)
    return filtered[: count * stride]
