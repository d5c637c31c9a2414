"""Buffer views compressed by EXT_meshopt_compression and KHR_meshopt_compression."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.gltf.reading.document import Item
from meshhub.errors import UnreadableFile

EXTENSIONS = ("KHR_meshopt_compression", "EXT_meshopt_compression")

LARGEST_RATIO = 1100
"""The most that the codec can unfold: blocks of 256 rows of zeros whose every four bytes cost one."""


@cache
def available() -> bool:
    """Whether the library that decodes is installed."""
    return find_spec("meshoptimizer") is not None


def decoded(item: Item, data: memoryview) -> memoryview:
    """The bytes of a compressed view.

    item: the extension's object; data: the compressed bytes.

    Raises UnreadableFile.
    """
    import meshoptimizer as library

    count, stride = item.integer("count"), item.integer("byteStride", least=1)
    mode, kind = item.text("mode"), item.text("filter", "NONE")
    if count * stride > LARGEST_RATIO * len(data) + 65_536:
        item.refuse("count", f"is {count}, more than {len(data)} compressed bytes can hold")
    if mode not in ("ATTRIBUTES", "TRIANGLES", "INDICES"):
        item.refuse("mode", f"is {mode[:40]!r}, which is unknown")
    if mode == "ATTRIBUTES":
        if stride % 4 or stride > 256:
            item.refuse("byteStride", f"is {stride}; it must be a multiple of 4 up to 256")
    elif stride not in (2, 4) or (mode == "TRIANGLES" and count % 3):
        item.refuse("count", f"({count}, in strides of {stride} bytes) is wrong for indices")
    if count == 0:
        return memoryview(b"")
    packed = np.frombuffer(data, np.uint8)
    try:
        if mode == "ATTRIBUTES":
            plain = library.decode_vertex_buffer(count, stride, packed, dtype=np.dtype((np.void, stride)))
        elif mode == "TRIANGLES":
            plain = library.decode_index_buffer(count, stride, packed)
        else:
            plain = library.decode_index_sequence(count, stride, packed)
    except (RuntimeError, ValueError):
        raise UnreadableFile(f"{item.where} cannot be decompressed; the file is damaged, export it again") from None
    # 16-bit indices are written into the first half of the library's 32-bit array
    bytes_: NDArray[np.uint8] = plain.view(np.uint8)[: count * stride]
    if mode == "ATTRIBUTES" and kind != "NONE":
        bytes_ = _filtered(item, kind, bytes_, count, stride)
    return memoryview(bytes_.data)


def _filtered(item: Item, kind: str, data: NDArray[np.uint8], count: int, stride: int) -> NDArray[np.uint8]:
    import meshoptimizer as library

    filters = {
        "OCTAHEDRAL": (library.decode_filter_oct, (4, 8)),
        "QUATERNION": (library.decode_filter_quat, (8,)),
        "EXPONENTIAL": (library.decode_filter_exp, range(4, 257, 4)),
    }
    if kind not in filters:
        item.refuse("filter", f"is {kind[:40]!r}, which cannot be read; export the model without it")
    function, strides = filters[kind]
    if stride not in strides:
        item.refuse("byteStride", f"is {stride}, which the filter {kind} does not have")
    # the filters work on whole groups of four rows
    padded = np.zeros((count + 3) // 4 * 4 * stride, np.uint8)
    padded[: count * stride] = data
    filtered: NDArray[np.uint8] = function(padded, len(padded) // stride, stride)
    return filtered[: count * stride]
