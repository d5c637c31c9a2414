"""Previews: a GLB that also carries the defects of the model as lines and triangles, and its facts as `extras`.

Its colors are those of the model, or of a measure.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from meshhub.model.capabilities import HOST_FRAME, Frame
from meshhub.model.report import Inspection
from meshhub.model.scene import Scene, UInt8
from meshhub.pipeline.purposes.preview import PreviewOptions
from meshhub.toolkit.clustering import reduce_for_display
from meshhub.toolkit.geometry import frame_matrix, transformed
from meshhub.toolkit.images import shrink_image
from meshhub.toolkit.rendering.heat_maps import map_measure
from meshhub.toolkit.rendering.options import Measure
from meshhub.toolkit.rendering.scales import ANCHORS, NEUTRAL
from meshhub.toolkit.scene_defects import Defect

DEFECTS_NODE = "meshhub:defects"
"""Name of the root node whose children are the defects."""

MAX_TEXTURE_SIDE = 1024
"""Maximum pixels of a side of a texture; enough for a preview on a phone."""

_FRAME = Frame("m", "y")
"""Frame of GLB files (glTF 2.0 §3.4)."""

_FLOAT, _ARRAY = 5126, 34962
_MODES = {2: 1, 3: 4}
"""Mode of a primitive by the number of its corners: LINES, TRIANGLES (glTF 2.0 §3.7.2.1)."""

Object = dict[str, Any]


class MeasureScale(Struct, frozen=True, kw_only=True):
    """Scale of a measure that colors a preview, for a legend."""

    measure: Measure
    """Measured quantity."""

    title: str
    """Its name."""

    unit: str
    """Unit of the values."""

    top: float
    """Value of the last color; the first one is 0."""

    limit: float
    """Value that a legend marks."""

    is_open: bool
    """Whether there are values above the last one, which have its color."""

    colors: tuple[str, ...]
    """Colors at equal distances, such as "#440154"."""

    neutral: str
    """Color of surfaces without a value."""


class PreviewFacts(Struct, frozen=True, kw_only=True):
    """Facts in `asset.extras.meshhub` of a preview."""

    triangles: int
    """Triangles in the preview; each instance counts."""

    is_reduced: bool
    """Whether the model has more triangles."""

    max_triangles: int
    """Requested bound."""

    inspection: Inspection
    """Inspection of the model, as `/inspect` returns it."""

    scale: MeasureScale | None = None
    """Scale of the colors; None for those of the model."""

    file_bytes: int | None = None
    """Bytes of the file that a conversion to the target writes; None without a target."""


def reduce_scene(scene: Scene, max_triangles: int) -> Scene:
    """Return the scene with few triangles and small textures."""
    used = {image for index in scene.used_materials() for image in scene.materials[index].images()}
    images = (
        shrink_image(image, MAX_TEXTURE_SIDE) if index in used else image for index, image in enumerate(scene.images)
    )
    return reduce_for_display(replace(scene, images=tuple(images)), max_triangles)


def color_scene(scene: Scene, reduced: Scene, options: PreviewOptions) -> tuple[Scene, MeasureScale | None]:
    """Return the reduced scene in the colors of the requested measure, and the scale; without one, the scene itself.

    Args:
        scene: Scene to measure. Millimeters, Z up.
        reduced: The same scene with fewer triangles, or the same.
    """
    if options.color_by == "model":
        return reduced, None
    heat_map = map_measure(scene, reduced, options.color_by, options.color_limit, options.max_triangles)
    scale = heat_map.scale
    return heat_map.scene, MeasureScale(
        measure=options.color_by,
        title=scale.title,
        unit=scale.unit,
        top=scale.top,
        limit=scale.limit,
        is_open=scale.is_open,
        colors=tuple(_name_color(color) for color in ANCHORS),
        neutral=_name_color(NEUTRAL),
    )


def _name_color(color: UInt8) -> str:
    return f"#{color.tobytes().hex()}"


def annotate_glb(content: bytes, facts: PreviewFacts, defects: Iterable[Defect]) -> bytes:
    """Return a GLB with facts and defects.

    Args:
        facts: Facts for `asset.extras`.
        defects: Defects in millimeters, Z up.
    Raises:
        ValueError: The content is not a GLB file with one buffer.
    """
    document, binary = _unpack(content)
    document["asset"].setdefault("extras", {})["meshhub"] = facts
    chunks, size = [binary], len(binary)
    lists = {name: document.setdefault(name, []) for name in ("nodes", "meshes", "accessors", "bufferViews")}
    children = []
    for defect in defects:
        data = _add_defect(lists, defect, size)
        children.append(len(lists["nodes"]) - 1)
        chunks.append(data)
        size += len(data)
    if children:
        document["scenes"][document.get("scene", 0)].setdefault("nodes", []).append(len(lists["nodes"]))
        lists["nodes"].append({"name": DEFECTS_NODE, "children": children})
    document["buffers"][0]["byteLength"] = size
    text = msgspec.json.encode(document)
    text += b" " * (-len(text) % 4)
    header = struct.pack("<4sII", b"glTF", 2, 12 + 8 + len(text) + 8 + size)
    return b"".join(
        [header, struct.pack("<I4s", len(text), b"JSON"), text, struct.pack("<I4s", size, b"BIN\0"), *chunks]
    )


def _unpack(content: bytes) -> tuple[Object, bytes]:
    """Return the document and the padded buffer of a GLB (glTF 2.0 §4.4)."""
    magic, _, _ = struct.unpack_from("<4sII", content)
    length, kind = struct.unpack_from("<I4s", content, 12)
    start = 20 + length
    size, binary_kind = struct.unpack_from("<I4s", content, start)
    if (magic, kind, binary_kind) != (b"glTF", b"JSON", b"BIN\0"):
        raise ValueError("the writer of GLB files wrote another format")
    binary = content[start + 8 : start + 8 + size]
    return msgspec.json.decode(content[20:start]), binary + bytes(-len(binary) % 4)


def _add_defect(lists: Object, defect: Defect, offset: int) -> bytes:
    """Add a node with the geometry of defects, which begins at `offset` in the buffer; return its bytes."""
    points = transformed(defect.corners.reshape(-1, 3), frame_matrix(HOST_FRAME, _FRAME)).astype("<f4")
    data = points.tobytes()
    lists["bufferViews"].append({"buffer": 0, "byteOffset": offset, "byteLength": len(data), "target": _ARRAY})
    lists["accessors"].append(
        {
            "bufferView": len(lists["bufferViews"]) - 1,
            "componentType": _FLOAT,
            "count": len(points),
            "type": "VEC3",
            "min": np.min(points, axis=0).tolist(),
            "max": np.max(points, axis=0).tolist(),
        }
    )
    primitive = {"attributes": {"POSITION": len(lists["accessors"]) - 1}, "mode": _MODES[defect.corners.shape[1]]}
    lists["meshes"].append({"name": defect.finding.kind, "primitives": [primitive]})
    lists["nodes"].append(
        {
            "name": defect.finding.kind,
            "mesh": len(lists["meshes"]) - 1,
            "extras": {"kind": defect.finding.kind, "count": defect.finding.count, "shown": len(defect.corners)},
        }
    )
    return data
