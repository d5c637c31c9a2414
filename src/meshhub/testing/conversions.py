"""Reading, writing and operating through a registry, each tried in a child process first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from meshhub.model.chain import Chain, Request
from meshhub.model.report import Report
from meshhub.model.scene import Scene
from meshhub.model.source import Source, Target
from meshhub.registry import Registry
from meshhub.testing.child_process import try_in_child
from meshhub.testing.child_tasks import ChainRun, fingerprint_result
from meshhub.testing.guards import fail_on_exit_or_timeout
from meshhub.testing.memory_format import SCENE, SceneSource, SceneTarget

Options = Mapping[str, object]


def resolve_chain(registry: Registry, source: Source, target: str, options: Options, reader: str = SCENE.id) -> Chain:
    """Resolve the chain from an explicit source format to a target format.

    Args:
        registry: Registry with the plug-in under test.
        source: File to convert; its format is not detected.
        target: Id of the target format.
        options: Raw option values.
        reader: Id of the source format.
    """
    with fail_on_exit_or_timeout("a plug-in"):
        return registry.resolve(Request(target=target, options={**options, "input_format": reader}), source)


def run_guarded(registry: Registry, chain_run: ChainRun, target: Target) -> Report:
    """Run a chain in a child process, then in this one, because a plug-in may end, crash or block its process."""
    try_in_child(chain_run)
    with fail_on_exit_or_timeout("a plug-in"):
        return cast(Report, registry.run(*chain_run, target))


def fingerprint_guarded(chain_run: ChainRun) -> str:
    """Run a chain in a child process, then in this one, and return the fingerprint of its files."""
    try_in_child(chain_run)
    with fail_on_exit_or_timeout("a plug-in"):
        return fingerprint_result(chain_run)


def read(registry: Registry, format_id: str, source: Source, options: Options) -> tuple[Scene, Report]:
    """Read a file.

    Returns:
        Scene in the host frame, in millimeters, Z up; report of the conversion.
    """
    target = SceneTarget()
    report = run_guarded(registry, (resolve_chain(registry, source, SCENE.id, options, format_id), source), target)
    return target.scene, report


def write(registry: Registry, format_id: str, scene: Scene, options: Options, name: str = "model") -> Target:
    """Write a scene (millimeters, Z up) to a file in memory."""
    source, target = SceneSource(scene), Target(name)
    run_guarded(registry, (resolve_chain(registry, source, format_id, options), source), target)
    return target


def operate(registry: Registry, scene: Scene, options: Options) -> Scene:
    """Run the operations that the options select on a scene (millimeters, Z up)."""
    source, target = SceneSource(scene), SceneTarget()
    run_guarded(registry, (resolve_chain(registry, source, SCENE.id, options), source), target)
    return target.scene


def as_source(target: Target, extension: str) -> Source:
    """Return a written file, with its companions, as a source."""
    companions = {name: target.read(name) for name in target.names[1:]}
    return Source.from_bytes(target.read(), "written" + extension, companions)
