"""Run a resolved chain: read, operate, end, report.

This module needs the chain, a source and a target, but no registry, because a worker process calls it too.
"""

from __future__ import annotations

import threading
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

from meshhub.errors import PluginError
from meshhub.model import progress
from meshhub.model.capabilities import HOST_FRAME, Feature
from meshhub.model.chain import Chain, Inspect, Judge, Position, Preview, Render, Step, Write
from meshhub.model.destination import Destination, converting_to
from meshhub.model.notes import Note, did, note
from meshhub.model.report import FileReport, Inspection, Loss, Report
from meshhub.model.scene import Scene
from meshhub.model.source import Source, Target
from meshhub.model.verdict import Result, Verdict
from meshhub.pipeline.declarations import load
from meshhub.pipeline.fork_lock import IMPORTING
from meshhub.pipeline.purposes.preview import PreviewOptions
from meshhub.pipeline.reading import read_scene
from meshhub.pipeline.running import (
    Checkpoint,
    Run,
    attributing,
    build_step_options,
    no_checkpoint,
    operate,
    report_file,
)
from meshhub.toolkit.geometry import to_frame

_FEATURE_WORDS: dict[Feature, str] = {
    "names": "names of parts",
    "hierarchy": "groups of parts",
    "instances": "instances (each is written out)",
    "normals": "normals",
    "uv": "texture coordinates",
    "colors": "vertex colors",
    "materials": "materials and their colors",
    "textures": "textures",
    "metadata": "title, author, license and other descriptions",
    "units": "the unit",
}


def execute(chain: Chain, source: Source, target: Target, checkpoint: Checkpoint = no_checkpoint) -> Result:
    """Run a chain.

    Args:
        chain: Resolved chain.
        source: File to read, with its companions; or several.
        target: Receives the output and its companions; an inspection writes nothing, nor does a check that does not
            mark its findings.
        checkpoint: Stops the chain between steps by raising an EngineError.
    Returns:
        Report with notes, certain losses, figures, sizes, and seconds per step; the inspection or the verdict
        for a chain that inspects or checks.
    Raises:
        MeshhubError: The chain failed; no other exception escapes.
    """
    if threading.active_count() > 1:
        # imported late, where no lock protects children that another thread forks: by np.unique, and by many rows
        with IMPORTING.held():
            import numpy.ma  # noqa: F401

            import meshhub.toolkit.columns  # noqa: F401
    run = Run(chain, source, checkpoint)
    result: Result
    match chain.ending:
        case Write() as ending:
            with _converting(ending):
                result = _convert(run, ending, target)
        case Render():
            result = _render(run, target)
        case Preview() as ending:
            with nullcontext() if ending.file is None else _converting(ending.file):
                result = _preview(run, ending, target)
        case Inspect():
            result = _inspect(run)
        case Judge() as ending:
            result = _check(run, ending, target)
    checkpoint(len(chain.steps))
    return result


def _convert(run: Run, ending: Write, target: Target) -> Report:
    """Run the operations, and write the scene."""
    scene, project = read_scene(run)
    losses: list[Loss] = []
    for step in run.chain.operations:
        features = scene.features()
        scene = _operate(run, scene)
        losses += [Loss(feature, step.id) for feature in step.drops if feature in features - scene.features()]
    if scene.project is None or run.chain.target_format != scene.project.format:
        run.note_losses(project)
    scene = _write_file(run, ending, scene, target)
    losses += [Loss(feature, run.chain.target_format) for feature in sorted(scene.features() - set(ending.carried))]
    run.notes += [
        Note(loss.code, f"{_describe_loss(loss, ending)} cannot be kept in this chain and were left out", loss.step)
        for loss in losses
    ]
    return run.report(_report_output(run.chain.steps[-1], target, scene), losses, run.feature_table)


def _converting(ending: Write) -> AbstractContextManager[None]:
    """Provide the destination of a conversion to readers and operations."""
    return converting_to(Destination(ending.merges_parts, ending.max_colors))


def _write_file(run: Run, ending: Write, scene: Scene, target: Target) -> Scene:
    """Write the file of a conversion. Returns the scene as it was written."""
    with run.step() as position:
        if ending.texture_colors is not None and "textures" in scene.features():
            with attributing(str(position.step), position):
                with IMPORTING.held():
                    from meshhub.toolkit.baking import bake_textures

                scene = bake_textures(scene, by_face=ending.texture_colors == "face")
        if ending.texture_colors == "face":
            meshes = tuple(mesh.with_division(None) for mesh in scene.meshes)
            scene = replace(scene, meshes=meshes).with_project(scene.project)
        if ending.each_bed:
            _write_each_bed(position, scene, target)
        else:
            _write(position, scene, target)
    return scene


def _render(run: Run, target: Target) -> Report:
    """Draw a picture of the scene; with operations, of the scene before and after them."""
    with IMPORTING.held():
        from meshhub.toolkit.png import encode_png

    scene, project = read_scene(run)
    run.note_losses(project)
    before = scene if run.chain.operations else None
    for _ in run.chain.operations:
        scene = _operate(run, scene)
    with run.step() as position, attributing(str(position.step), position):
        pixels = load(position.step.run)(scene, build_step_options(position.step), before)
        with target.open() as file:
            file.write(encode_png(pixels))
    return run.report(FileReport(format=position.step.id, bytes=target.size))


def _preview(run: Run, ending: Preview, target: Target) -> Report:
    """Run the operations, measure the file of the conversion, and write a reduced GLB of the scene with its defects."""
    with IMPORTING.held():
        from meshhub.pipeline.inspection import examine
        from meshhub.pipeline.preview import PreviewFacts, annotate_glb, color_scene, reduce_scene

    scene, project = read_scene(run)
    run.note_losses(project)
    for _ in run.chain.operations:
        scene = _operate(run, scene)
    file_bytes = None if ending.file is None else _measure_file(run, ending.file, scene, target)
    with run.step() as position, attributing("the preview", position):
        options = cast(PreviewOptions, build_step_options(position.step))
        model, defects = examine(scene)
        reduced = reduce_scene(scene, options.max_triangles)
        is_reduced = reduced.face_count < scene.face_count
        reduced, scale = color_scene(scene, reduced, options)
    facts = PreviewFacts(
        triangles=reduced.face_count,
        is_reduced=is_reduced,
        max_triangles=options.max_triangles,
        inspection=run.inspection(model),
        scale=scale,
        file_bytes=file_bytes,
    )
    plain = Target(target.name)
    with run.step() as position:
        _write(position, reduced, plain)
        with attributing(str(position.step), position), target.open() as file:
            file.write(annotate_glb(plain.read(), facts, defects))
    return run.report(_report_output(position.step, target, reduced))


def _measure_file(run: Run, ending: Write, scene: Scene, target: Target) -> int:
    """Return the size in bytes of the file of a conversion, which is written beside the target and removed."""
    with TemporaryDirectory(dir=target.folder) as folder:
        file = Target(folder=Path(folder))
        _write_file(run, ending, scene, file)
        return _count_bytes(file)


def _inspect(run: Run) -> Inspection:
    """Inspect the scene of the file."""
    with IMPORTING.held():
        from meshhub.pipeline.inspection import inspect

    scene, project = read_scene(run)
    run.note_losses(project)
    end = len(run.chain.steps)
    run.checkpoint(end)
    progress.begin_step(end)
    with attributing("inspection", Position(run.chain, 0)):
        return run.inspection(inspect(scene))


def _check(run: Run, ending: Judge, target: Target) -> Verdict:
    """Run the operations and the checks; then write the scene with its findings if they are marked."""
    with IMPORTING.held():
        from meshhub.pipeline.judging import run_checks
        from meshhub.pipeline.remedies import keep_helpful_remedies

    scene, project = read_scene(run)
    run.note_losses(project)
    for _ in run.chain.operations:
        scene = _operate(run, scene)
    start = time.process_time()
    findings, estimate = run_checks(run, scene, needs_estimate=ending.needs_estimate)
    findings = keep_helpful_remedies(run, scene, findings, ending.remedies, time.process_time() - start)
    verdict = run.verdict(findings, estimate, scene)
    if ending.marks:
        with run.step() as position:
            with attributing("marking the findings", position):
                with IMPORTING.held():
                    from meshhub.pipeline.marking import mark_findings

                scene = mark_findings(scene, verdict)
            _write(position, scene, target)
    return verdict


def _operate(run: Run, scene: Scene) -> Scene:
    """Run the next operation."""
    with run.step() as position:
        return operate(position.step, position, scene)


def _write(position: Position, scene: Scene, target: Target) -> None:
    step = position.step
    frame = step.frame or HOST_FRAME
    if frame != HOST_FRAME:
        note("frame_converted", f"written in {frame}, the frame of {step.label}", unit=frame.unit, up=frame.up.upper())
    with attributing(str(step), position):
        load(step.run)(to_frame(scene, frame), target, build_step_options(step))
    if target.size == 0:
        raise PluginError(f"{step} wrote nothing; {position.remedy}")


def _write_each_bed(position: Position, scene: Scene, target: Target) -> None:
    """Write the objects of each bed to a file of its own."""
    with IMPORTING.held():
        from meshhub.toolkit.objects import divide_beds

    beds = divide_beds(scene)
    did(files=len(beds))
    if len(beds) == 1:
        note("one_bed", "all objects are on one bed, so there is one file")
    for number, bed in enumerate(progress.track(beds)):
        _write(position, bed, target.add_bed() if number else target)


def _describe_loss(loss: Loss, ending: Write) -> str:
    """Name a lost feature; if the writer keeps colors, it may have kept those of the materials."""
    if loss.feature == "materials" and "colors" in ending.carried:
        return "materials"
    return _FEATURE_WORDS[loss.feature]


def _report_output(step: Step, target: Target, scene: Scene) -> FileReport:
    return report_file(step.id, _count_bytes(target), scene, step.frame or HOST_FRAME)


def _count_bytes(target: Target) -> int:
    return sum(file.size for file in target.files)
