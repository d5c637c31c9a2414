"""Plug-in of the kit: a format that passes scenes in memory, so that tests run complete chains through a registry."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import FEATURES, Format, NoOptions, Reader, Writer
from meshhub.model.source import Source, Target

if TYPE_CHECKING:
    from meshhub.model.scene import Scene

SCENE = Format(id="meshhub-scene", label="Scene in memory", extensions=(".meshhub-scene",))


class SceneSource(Source):
    """Source that holds a scene in memory."""

    def __init__(self, scene: Scene) -> None:
        """Hold `scene`; the reader of the format returns this same object."""
        super().__init__("scene.meshhub-scene", data=b"scene")
        self.scene = scene


class SceneTarget(Target):
    """Target to which the writer of the format passes the scene."""

    scene: Scene


@hookimpl
def meshhub_readers() -> list[Reader]:
    """Declare the reader of scenes in memory."""
    return [Reader(format=SCENE, run="meshhub.testing.memory_format:read_scene", carries=FEATURES, frame=None)]


@hookimpl
def meshhub_writers() -> list[Writer]:
    """Declare the writer of scenes in memory."""
    return [Writer(format=SCENE, run="meshhub.testing.memory_format:write_scene", carries=FEATURES)]


def read_scene(source: Source, options: NoOptions) -> Scene:  # noqa: ARG001
    """Return the scene that the source holds."""
    return cast(SceneSource, source).scene


def write_scene(scene: Scene, target: Target, options: NoOptions) -> None:  # noqa: ARG001
    """Leave the scene in the target, and write its serialization for fingerprints."""
    from meshhub.testing.child_tasks import serialize

    if isinstance(target, SceneTarget):
        target.scene = scene
    with target.open() as file:
        file.write(serialize(scene))
