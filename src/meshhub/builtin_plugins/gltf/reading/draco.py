"""Decode primitives that KHR_draco_mesh_compression compresses."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.gltf.reading.accessors import Accessors, AttributeRows
from meshhub.builtin_plugins.gltf.reading.buffers import Buffers
from meshhub.builtin_plugins.gltf.reading.json_object import JsonObject
from meshhub.errors import UnreadableFile
from meshhub.model.installing import describe_install

EXTENSION = "KHR_draco_mesh_compression"


@cache
def is_available() -> bool:
    """Return whether the decoder is installed."""
    return find_spec("DracoPy") is not None


def decode(
    extension: JsonObject, attributes: JsonObject, buffers: Buffers, accessors: Accessors
) -> tuple[NDArray[Any], dict[str, AttributeRows]]:
    """Decode a compressed primitive.

    Args:
        attributes: Attributes of the primitive; their accessors state whether integers are normalized.
    Returns:
        (m, 3) triangles, and the attributes by semantic.
    Raises:
        UnreadableFile: The data are damaged, or the decoder is not installed.
    """
    if not is_available():
        raise UnreadableFile(
            f"the model is compressed with {EXTENSION}, whose decoder is not installed; "
            f"run `{describe_install('meshhub[draco]')}`, or export the model uncompressed",
            values={"extension": EXTENSION},
        )
    import DracoPy

    data, _ = buffers.view(extension.integer("bufferView"), extension.path_of("bufferView"))
    try:
        mesh = DracoPy.decode(bytes(data))
        faces = np.asarray(mesh.faces).reshape(-1, 3)
        decoded = {int(attribute["unique_id"]): np.asarray(attribute["data"]) for attribute in mesh.attributes}
    except Exception:
        # the library raises exceptions of many types for damaged data
        raise UnreadableFile(f"{extension.path} cannot be decompressed; export the glTF file again") from None
    # primitives can reuse the same data, and a few triangles can have many vertices
    buffers.spend(len(data) + sum(len(values) for values in decoded.values()))
    ids = extension.child_or_empty("attributes")
    rows: dict[str, AttributeRows] = {}
    for semantic in ids.data:
        number = ids.integer(semantic)
        if number not in decoded:
            ids.reject(semantic, f"names the Draco attribute {number}, which the compressed data do not have")
        values = decoded[number]
        is_normalized = False
        if attributes.has(semantic):
            accessor = accessors.declaration(attributes.integer(semantic), attributes.path_of(semantic))
            is_normalized = accessor.flag("normalized")
        rows[semantic] = AttributeRows(values.reshape(len(values), -1), is_normalized, ids.path_of(semantic))
    return faces, rows
