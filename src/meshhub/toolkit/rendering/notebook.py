"""Scenes in notebooks: a picture and the facts."""

from __future__ import annotations

import base64

import numpy as np

from meshhub.model.capabilities import HOST_FRAME
from meshhub.model.html import format_size, format_table, list_rows
from meshhub.model.scene import Scene
from meshhub.toolkit.geometry import bounds, to_frame
from meshhub.toolkit.png import encode_png
from meshhub.toolkit.rendering.options import RenderOptions
from meshhub.toolkit.rendering.picture import render

MAX_DRAWN_FACES_COUNT = 2_000_000
"""Maximum number of triangles to draw; they take about two seconds, and the output of a cell should not take longer."""

_OPTIONS = RenderOptions(size="400x300", background="transparent")


def describe_scene(scene: Scene) -> str:
    """Return a picture and a table of facts as HTML; the picture is left out where it would take seconds."""
    with np.errstate(all="ignore"):
        placed = to_frame(scene, HOST_FRAME)
    size, frame = _measure(placed), scene.frame or HOST_FRAME
    names = [part.name for part in scene.parts if part.name]
    rows: list[tuple[str, object]] = [
        ("name", scene.name),
        ("size", format_size(size)),
        ("faces", scene.face_count),
        ("vertices", sum(len(scene.meshes[part.mesh].vertices) for part in scene.parts)),
        ("parts", len(scene.parts)),
        ("meshes", len(scene.meshes)),
        ("materials", len(scene.materials) or None),
        ("images", len(scene.images) or None),
        ("coordinates", f"{frame.unit}, {frame.up.upper()} up"),
        ("carries", ", ".join(sorted(scene.features())) or "triangles only"),
        *list_rows("part", names),
    ]
    picture = ""
    if size is None:
        rows.append(("picture", "nothing to draw"))
    elif scene.face_count > MAX_DRAWN_FACES_COUNT:
        rows.append(("picture", "too many faces to draw here; use Registry.render"))
    else:
        png = base64.b64encode(encode_png(render(placed, _OPTIONS))).decode("ascii")
        picture = f"data:image/png;base64,{png}"
    return format_table("Scene", rows, picture)


def _measure(scene: Scene) -> list[float] | None:
    """Return the extents of a scene; None without faces, or if a coordinate is not finite."""
    try:
        size: list[float] = np.ptp(bounds(scene), axis=0).tolist()
    except ValueError:
        return None
    return size
