"""The kit's own plug-in: a format that is a scene in memory, so that everything else goes through the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import FEATURES, Format, Reader, Writer
from meshhub.model.source import Source, Target

if TYPE_CHECKING:
    from meshhub.model.scene import Scene

SCENE = Format(id="meshhub-scene", label="Scene in memory", extensions=(".meshhub-scene",))


class SceneSource(Source):
    """A scene as something to read."""

    def __init__(self, scene: Scene) -> None:
        """`scene` is what the fixture's reader returns, the same object."""
        super().__init__("scene.meshhub-scene", data=b"scene")
        self.scene = scene


class SceneTarget(Target):
    """Where the fixture's writer leaves the scene that it was given."""

    scene: Scene


@hookimpl
def meshhub_readers() -> list[Reader]:
    """The reader of scenes in memory."""
    return [Reader(format=SCENE, run="meshhub.testing.host:read_scene", carries=FEATURES, frame=None)]


@hookimpl
def meshhub_writers() -> list[Writer]:
    """The writer of scenes in memory."""
    return [Writer(format=SCENE, run="meshhub.testing.host:write_scene", carries=FEATURES)]
