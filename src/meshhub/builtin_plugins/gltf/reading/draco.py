"""Primitives compressed by KHR_draco_mesh_compression."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.gltf.reading.accessors import Accessors, Column
from meshhub.builtin_plugins.gltf.reading.buffers import Buffers
from meshhub.builtin_plugins.gltf.reading.document import Item
from meshhub.errors import UnreadableFile

EXTENSION = "KHR_draco_mesh_compression"


@cache
def available() -> bool:
    """Whether the library that decodes is installed."""
    return find_spec("DracoPy") is not None


def decoded(
    item: Item, attributes: Item, buffers: Buffers, accessors: Accessors
) -> tuple[NDArray[Any], dict[str, Column]]:
    """The triangles (m, 3) and the columns by their semantics.

    item: the extension's object; attributes: those of the primitive, whose accessors say how to understand integers.

    Raises UnreadableFile.
    """
    if not available():
        raise UnreadableFile(
            f"the model is compressed by {EXTENSION}, and the library that reads it is not installed; "
            "`pip install 'meshhub[draco]'`, or export the model uncompressed"
        )
    import DracoPy

    data, _ = buffers.view(item.integer("bufferView"), item.place("bufferView"))
    try:
        mesh = DracoPy.decode(bytes(data))
        faces = np.asarray(mesh.faces).reshape(-1, 3)
        held = {int(one["unique_id"]): np.asarray(one["data"]) for one in mesh.attributes}
    except Exception:
        # the library raises plain exceptions of many kinds for damaged data
        raise UnreadableFile(f"{item.where} cannot be decompressed; the file is damaged, export it again") from None
    # the same data may be named again and again, and few triangles may have many vertices
    buffers.spend(len(data) + sum(len(values) for values in held.values()))
    ids = item.item("attributes") or Item({}, item.place("attributes"))
    columns: dict[str, Column] = {}
    for semantic in ids.data:
        number = ids.integer(semantic)
        if number not in held:
            ids.refuse(semantic, f"names the Draco attribute {number}, which the compressed data lack")
        values = held[number]
        normalized = False
        if attributes.has(semantic):
            accessor = accessors.shape(attributes.integer(semantic), attributes.place(semantic))
            normalized = accessor.flag("normalized")
        columns[semantic] = Column(values.reshape(len(values), -1), normalized, ids.place(semantic))
    return faces, columns
