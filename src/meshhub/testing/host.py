"""What contracts do: read, write and operate through a registry, as every face of meshhub does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, cast

import numpy as np

from meshhub.capabilities import NoOptions
from meshhub.chain import Chain, Request
from meshhub.registry import Registry
from meshhub.report import Report
from meshhub.scene import Scene
from meshhub.source import Source, Target
from meshhub.testing.fixture import SCENE, SceneSource, SceneTarget

Options = Mapping[str, object]


def read_scene(source: Source, options: NoOptions) -> Scene:  # noqa: ARG001
    """The fixture's reader: the scene that the source holds."""
    return cast(SceneSource, source).scene


def write_scene(scene: Scene, target: Target, options: NoOptions) -> None:  # noqa: ARG001
    """The fixture's writer: leaves the scene with the target, and its content as bytes."""
    if isinstance(target, SceneTarget):
        target.scene = scene
    with target.open() as file:
        file.write(content(scene))


def chain_of(registry: Registry, source: Source, target: str, options: Options, reader: str = SCENE.id) -> Chain:
    """The chain from a format that is told outright to another."""
    return registry.resolve(Request(target=target, options={**options, "input_format": reader}), source)


def read(registry: Registry, format_id: str, source: Source, options: Options) -> tuple[Scene, Report]:
    """A file's scene as operations would see it, in millimetres and Z up, and the report."""
    target = SceneTarget()
    report = registry.run(chain_of(registry, source, SCENE.id, options, format_id), source, target)
    return target.scene, report


def write(registry: Registry, format_id: str, scene: Scene, options: Options, name: str = "model") -> Target:
    """A scene as a file in memory."""
    source, target = SceneSource(scene), Target(name)
    registry.run(chain_of(registry, source, format_id, options), source, target)
    return target


def operate(registry: Registry, scene: Scene, options: Options) -> Scene:
    """What the operations that the options ask for make of a scene."""
    source, target = SceneSource(scene), SceneTarget()
    registry.run(chain_of(registry, source, SCENE.id, options), source, target)
    return target.scene


def as_source(target: Target, extension: str) -> Source:
    """A written file as something to read, with its companions beside it."""
    companions = {name: target.read(name) for name in target.names[1:]}
    return Source.from_bytes(target.read(), "written" + extension, companions)


def content(value: Any) -> bytes:
    """Everything a scene holds, as bytes: equal for equal scenes, and different for different ones."""
    if isinstance(value, np.ndarray):
        return b"%s %s " % (str(value.dtype).encode(), str(value.shape).encode()) + value.tobytes()
    if is_dataclass(value) and not isinstance(value, type):
        return b"".join(field.name.encode() + b"=" + content(getattr(value, field.name)) for field in fields(value))
    if isinstance(value, tuple):
        return b"(" + b",".join(content(one) for one in value) + b")"
    return repr(value).encode()
