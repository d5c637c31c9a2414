"""Steps by which a scene of the embedding program enters and leaves a chain. No plug-in declares them."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from meshhub.model.capabilities import FEATURES, Format, Reader, Writer
from meshhub.model.chain import BUILT_IN
from meshhub.model.source import Source
from meshhub.pipeline.declarations import Declared
from meshhub.pipeline.fork_lock import IMPORTING

if TYPE_CHECKING:
    from meshhub.model.scene import Scene

_FORMAT = Format(id="scene", label="Scene", extensions=())

SCENE_READER = Declared(
    "host",
    Reader(format=_FORMAT, run="meshhub.pipeline.scene_file:read", carries=FEATURES, frame=None),
    origin=BUILT_IN,
)
"""First step of a chain that converts a scene."""

SCENE_WRITER = Declared(
    "host",
    Writer(format=_FORMAT, run="meshhub.pipeline.scene_file:write", carries=FEATURES),
    origin=BUILT_IN,
)
"""Last step of a chain whose result is a scene."""


def decode(content: bytes) -> Scene:
    """Return the scene that a chain with SCENE_WRITER has written."""
    with IMPORTING.held():
        from meshhub.pipeline.scene_file import decode_scene

    return decode_scene(content)


class SceneSource(Source):
    """Source whose content is a scene."""

    def __init__(self, scene: Scene) -> None:
        """Encode the scene, so that a worker process can read it."""
        with IMPORTING.held():
            from meshhub.pipeline.scene_file import encode_scene

        content = io.BytesIO()
        encode_scene(scene, content)
        super().__init__(scene.name or "scene", data=content.getvalue())
