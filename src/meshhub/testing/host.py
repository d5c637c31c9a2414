"""What contracts do: read, write and operate through a registry, as every face of meshhub does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from meshhub.model.capabilities import NoOptions
from meshhub.model.chain import Chain, Request
from meshhub.model.report import Report
from meshhub.model.scene import Scene
from meshhub.model.source import Source, Target
from meshhub.registry import Registry
from meshhub.testing.elsewhere import try_elsewhere
from meshhub.testing.fixture import SCENE, SceneSource, SceneTarget
from meshhub.testing.jobs import Job, content, digest_of
from meshhub.testing.watching import bounded

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
    with bounded("a plug-in"):
        return registry.resolve(Request(target=target, options={**options, "input_format": reader}), source)


def run_here(registry: Registry, job: Job, target: Target) -> Report:
    """Run a job in this process, after another one has: a plug-in may end, crash or hold up the process."""
    try_elsewhere(job)
    with bounded("a plug-in"):
        return registry.run(*job, target)


def digest_here(job: Job) -> str:
    """The fingerprint of what a chain writes in this process."""
    try_elsewhere(job)
    with bounded("a plug-in"):
        return digest_of(job)


def read(registry: Registry, format_id: str, source: Source, options: Options) -> tuple[Scene, Report]:
    """A file's scene as operations would see it, in millimetres and Z up, and the report."""
    target = SceneTarget()
    report = run_here(registry, (chain_of(registry, source, SCENE.id, options, format_id), source), target)
    return target.scene, report


def write(registry: Registry, format_id: str, scene: Scene, options: Options, name: str = "model") -> Target:
    """A scene as a file in memory."""
    source, target = SceneSource(scene), Target(name)
    run_here(registry, (chain_of(registry, source, format_id, options), source), target)
    return target


def operate(registry: Registry, scene: Scene, options: Options) -> Scene:
    """What the operations that the options ask for make of a scene."""
    source, target = SceneSource(scene), SceneTarget()
    run_here(registry, (chain_of(registry, source, SCENE.id, options), source), target)
    return target.scene


def as_source(target: Target, extension: str) -> Source:
    """A written file as something to read, with its companions beside it."""
    companions = {name: target.read(name) for name in target.names[1:]}
    return Source.from_bytes(target.read(), "written" + extension, companions)
