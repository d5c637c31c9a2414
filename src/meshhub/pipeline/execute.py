"""Run a resolved chain: read, validate, convert to millimeters and Z up, operate, end, report.

This module needs the chain, a source and a target, but no registry, because a worker process calls it too.
"""

from __future__ import annotations

import errno
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import cast

import numpy as np

# imported here, because np.unique imports it at its first call, where no lock protects forked children
import numpy.ma
from msgspec import Struct

from meshhub.errors import (
    ConversionFailed,
    EngineError,
    MeshhubError,
    ModelTooComplex,
    PluginError,
    ServerBusy,
    UnreadableFile,
    format_number,
    quote,
)
from meshhub.model import options as opt
from meshhub.model import progress
from meshhub.model.capabilities import HOST_FRAME, UNIT_NAMES, Feature, Frame, Unit, Up
from meshhub.model.chain import Chain, Inspect, Position, Preview, Render, Step, Write
from meshhub.model.features import FeatureTable
from meshhub.model.merging import merging_parts
from meshhub.model.notes import Note, collecting, note
from meshhub.model.report import FileReport, Inspection, Loss, ModelInspection, Report, StepReport
from meshhub.model.scene import InvalidIndex, Project, Scene
from meshhub.model.source import Source, Target, members_of
from meshhub.pipeline.declarations import load
from meshhub.pipeline.fork_lock import IMPORTING
from meshhub.pipeline.plugin_errors import describe_error, log_arguments, name_type
from meshhub.pipeline.preview_options import PreviewOptions
from meshhub.pipeline.scene_check import MAX_RESULT_EXTENT, check_read_scene, find_scene_fault
from meshhub.toolkit.geometry import bounds, to_frame
from meshhub.toolkit.surface_colors import bake_textures

log = logging.getLogger(__name__)

MAX_PLACED_EXTENT_MM = 1e13
"""Maximum millimeters from the origin; broken files of real programs place parts two million kilometers away."""

MAX_METER_LIKE_EXTENT_MM = 0.5
"""Millimeters up to which the numbers are probably meters, as 0.5 for half a meter; prints are larger."""

MAX_INCH_LIKE_EXTENT_MM = 3.0
"""Millimeters up to which the numbers are probably inches, as 3 for three inches; most prints are larger."""

MIN_MILLIMETER_LIKE_EXTENT_MM = 10_000.0
"""Millimeters; if a glTF is longer than ten meters, its numbers are probably millimeters instead of meters."""

MIN_USUAL_EXTENT_MM, MAX_USUAL_EXTENT_MM = 2.0, 2000.0
"""Millimeters; nozzles cannot print anything smaller, and hardly any printer has room for more."""

MAX_NAME_LENGTH = 80
"""Maximum characters of a file name that a message shows, counted from its end."""

_DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})

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

Check = Callable[[int], None]
"""Called with the number of each step before it, and with their count after the last; raises EngineError to stop. """


def _no_check(step: int) -> None:
    """Let the chain continue."""


class _Run:
    """One run of a chain: its source, and the notes, figures and seconds of its steps in order."""

    source_report: FileReport
    feature_table: FeatureTable | None = None

    def __init__(self, chain: Chain, source: Source, check: Check) -> None:
        self.chain = chain
        self.source = source
        self.check = check
        self.notes: list[Note] = list(chain.notes)
        self._reports: list[StepReport] = []
        self._start = time.perf_counter()

    @contextmanager
    def step(self) -> Iterator[Position]:
        """Collect the notes and figures of the next step."""
        number = len(self._reports)
        self.check(number)
        progress.begin_step(number)
        position = Position(self.chain, number)
        step = position.step
        start = time.perf_counter()
        with collecting(step.id, self.chain.reduction) as remarks, np.errstate(all="ignore"):
            yield position
        self.notes += remarks.notes
        self._reports.append(StepReport(step.id, step.kind, round(time.perf_counter() - start, 4), remarks.figures))

    def note_losses(self, project: Project | None) -> None:
        """Add the notes of a project that the output does not keep."""
        if project is not None:
            self.notes += project.notes

    def inspection(self, model: ModelInspection) -> Inspection:
        """Return the inspection of a scene with the facts of its file."""
        return Inspection(
            source=self.source_report, model=model, feature_table=self.feature_table, notes=tuple(self.notes)
        )

    def report(
        self, target: FileReport, losses: Iterable[Loss] = (), feature_table: FeatureTable | None = None
    ) -> Report:
        """Return the report after the last step."""
        return Report(
            source=self.source_report,
            target=target,
            feature_table=feature_table,
            steps=tuple(self._reports),
            losses=tuple(losses),
            notes=tuple(self.notes),
            seconds=round(time.perf_counter() - self._start, 4),
        )


def execute(chain: Chain, source: Source, target: Target, check: Check = _no_check) -> Report | Inspection:
    """Run a chain.

    Args:
        chain: Resolved chain.
        source: File to read, with its companions; or several.
        target: Receives the output and its companions; an inspection writes nothing.
        check: Stops the chain between steps by raising an EngineError.
    Returns:
        Report with notes, certain losses, figures, sizes, and seconds per step; the inspection for a chain that
        inspects.
    Raises:
        MeshhubError: The chain failed; no other exception escapes.
    """
    run = _Run(chain, source, check)
    result: Report | Inspection
    match chain.ending:
        case Write() as ending:
            result = _convert(run, ending, target)
        case Render():
            result = _render(run, target)
        case Preview():
            result = _preview(run, target)
        case Inspect():
            result = _inspect(run)
    check(len(chain.steps))
    return result


def _convert(run: _Run, ending: Write, target: Target) -> Report:
    """Run the operations, and write the scene."""
    scene, project = _read(run)
    losses: list[Loss] = []
    for step in run.chain.operations:
        features = scene.features()
        with merging_parts(ending.merges_parts):
            scene = _operate(run, scene)
        losses += [Loss(feature, step.id) for feature in step.drops if feature in features - scene.features()]
    if scene.project is None or run.chain.target_format != scene.project.format:
        run.note_losses(project)
    with run.step() as position:
        if ending.texture_colors is not None and "textures" in scene.features():
            with _attributing(str(position.step), position):
                scene = bake_textures(scene, by_face=ending.texture_colors == "face")
        if ending.texture_colors == "face":
            meshes = tuple(mesh.with_division(None) for mesh in scene.meshes)
            scene = replace(scene, meshes=meshes).with_project(scene.project)
        losses += [Loss(feature, run.chain.target_format) for feature in sorted(scene.features() - set(ending.carried))]
        _write(position, scene, target)
    run.notes += [
        Note(loss.code, f"{_describe_loss(loss, ending)} cannot be kept in this chain and were left out", loss.step)
        for loss in losses
    ]
    return run.report(_report_output(position.step, target, scene), losses, run.feature_table)


def _render(run: _Run, target: Target) -> Report:
    """Draw a picture of the scene; with operations, of the scene before and after them."""
    with IMPORTING.held():
        from meshhub.toolkit.png import encode_png

    scene, project = _read(run)
    run.note_losses(project)
    before = scene if run.chain.operations else None
    for _ in run.chain.operations:
        scene = _operate(run, scene)
    with run.step() as position, _attributing(str(position.step), position):
        pixels = load(position.step.run)(scene, _build_options(position.step), before)
        with target.open() as file:
            file.write(encode_png(pixels))
    return run.report(FileReport(format=position.step.id, bytes=target.size))


def _preview(run: _Run, target: Target) -> Report:
    """Reduce the scene for display, and write a GLB with its defects."""
    with IMPORTING.held():
        from meshhub.pipeline.inspection import examine
        from meshhub.pipeline.preview import PreviewFacts, annotate_glb, reduce_scene

    scene, project = _read(run)
    run.note_losses(project)
    with run.step() as position, _attributing("the preview", position):
        options = cast(PreviewOptions, _build_options(position.step))
        model, defects = examine(scene)
        reduced = reduce_scene(scene, options.max_triangles)
    facts = PreviewFacts(
        triangles=reduced.face_count,
        is_reduced=reduced.face_count < scene.face_count,
        max_triangles=options.max_triangles,
        inspection=run.inspection(model),
    )
    plain = Target(target.name)
    with run.step() as position:
        _write(position, reduced, plain)
        with _attributing(str(position.step), position), target.open() as file:
            file.write(annotate_glb(plain.read(), facts, defects))
    return run.report(_report_output(position.step, target, reduced))


def _inspect(run: _Run) -> Inspection:
    """Inspect the scene of the file."""
    with IMPORTING.held():
        from meshhub.pipeline.inspection import inspect

    scene, project = _read(run)
    run.note_losses(project)
    end = len(run.chain.steps)
    run.check(end)
    progress.begin_step(end)
    with _attributing("inspection", Position(run.chain, 0)):
        return run.inspection(inspect(scene))


def _read(run: _Run) -> tuple[Scene, Project | None]:
    """Read the file, or all files of an assembly into one scene.

    Returns:
        The scene in the host's frame, and the project in the file.
    """
    chain, members = run.chain, members_of(run.source)
    if len(members) == 1:
        scene, project, frame = _read_file(run, members[0])
    else:
        scene, frame = _read_assembly(run, members)
        project = None
    run.source_report = _report_file(chain.source_format, run.source.size, scene, frame)
    return scene, project


def _read_assembly(run: _Run, members: tuple[Source, ...]) -> tuple[Scene, Frame]:
    """Read several files into one scene; return it with the frame of the first file."""
    with IMPORTING.held():
        from meshhub.toolkit.assembling import combined

    scenes, frames = [], []
    for member in members:
        try:
            scene, project, frame = _read_file(run, member)
        except MeshhubError as error:
            raise error.about(quote(shorten_name(member))) from error
        run.note_losses(project)
        scenes.append(scene)
        frames.append(frame)
    # the table describes one file
    run.feature_table = None
    return combined(scenes, [member.stem for member in members]), frames[0]


def _read_file(run: _Run, source: Source) -> tuple[Scene, Project | None, Frame]:
    """Read a file, and check the result of its reader.

    Returns:
        The scene in the host's frame, the project in the file, and the frame of the file.
    """
    chain = run.chain
    features: FeatureTable | None = None
    with run.step() as position:
        step = position.step
        with _attributing(str(step), position):
            if step.features is None:
                scene = load(step.run)(source, _build_options(step))
            else:
                scene, features = load(step.features)(source, _build_options(step))
        if not (features is None or isinstance(features, FeatureTable)):
            raise _wrong_result(position, features, "a feature table")
        if not isinstance(scene, Scene):
            raise _wrong_result(position, scene, "a scene")
        with _attributing(f"the scene of {step}", position):
            check_read_scene(scene, shorten_name(source))
        stated = _find_frame(position, scene)
        frame = Frame(cast(Unit, chain.input_unit or stated.unit), cast(Up, chain.input_up or stated.up))
        project = scene.project
        # with another unit or axis than in the file, the scene is another one
        kept_project = project if frame == stated else None
        scene = replace(scene, frame=frame)
        if frame != HOST_FRAME:
            note("frame_converted", f"read in {_frame_words(frame)}; converted to {_frame_words(HOST_FRAME)}")
        scene = to_frame(scene, HOST_FRAME).with_project(kept_project)
        box = bounds(scene)
        if not np.abs(box).max() <= MAX_PLACED_EXTENT_MM:
            raise UnreadableFile(
                f"{shorten_name(source)!r} places its model beyond {format_number(MAX_PLACED_EXTENT_MM)} mm "
                "from the origin; export it again"
            )
        if chain.input_unit is None:
            _note_implausible_unit(float(np.ptp(box, axis=0).max()), frame, is_declared=step.frame is None)
    run.feature_table = features
    return scene, project, frame


def _find_frame(position: Position, scene: Scene) -> Frame:
    """Return the frame of a file: the frame that its scene states, otherwise the frame that its reader declares.

    Raises:
        PluginError: The two contradict each other.
    """
    declared, stated = position.step.frame, scene.frame
    if declared is not None and stated is not None and declared != stated:
        raise PluginError(
            f"{position.step} declares {_frame_words(declared)}, but its scene states {_frame_words(stated)}; "
            f"{position.remedy}"
        )
    return stated or declared or HOST_FRAME


def _operate(run: _Run, scene: Scene) -> Scene:
    """Run the next operation."""
    with run.step() as position:
        step = position.step
        with _attributing(str(step), position):
            result = load(step.run)(scene, _build_options(step))
        if not isinstance(result, Scene):
            raise _wrong_result(position, result, "a scene")
        if result is not scene:
            with _attributing(f"the scene of {step}", position):
                fault = find_scene_fault(result, MAX_RESULT_EXTENT)
            if fault:
                raise PluginError(f"{step} returned a broken scene: {fault}; {position.remedy}")
        if result.face_count == 0:
            raise ConversionFailed(f"{step.label} left nothing of the model; change or omit its options")
        return to_frame(result, HOST_FRAME)


def _write(position: Position, scene: Scene, target: Target) -> None:
    step = position.step
    frame = step.frame or HOST_FRAME
    if frame != HOST_FRAME:
        note("frame_converted", f"written in {_frame_words(frame)}, the frame of {step.label}")
    with _attributing(str(step), position):
        load(step.run)(to_frame(scene, frame), target, _build_options(step))
    if target.size == 0:
        raise PluginError(f"{step} wrote nothing; {position.remedy}")


def _wrong_result(position: Position, result: object, expected: str) -> PluginError:
    return PluginError(f"{position.step} returned {name_type(result)} instead of {expected}; {position.remedy}")


def _build_options(step: Step) -> Struct:
    return opt.build_options(cast(type[Struct], load(step.options_type)), step.options)


@contextmanager
def _attributing(subject: str, position: Position) -> Iterator[None]:
    """Turn an unexpected exception into an error that names the step and its plug-in."""
    try:
        yield
    except (KeyboardInterrupt, progress.ListenerFailed):
        # perhaps the interrupt is the user's; a worker attributes it
        raise
    except BaseException as error:
        # deadlines and cancellation belong to the engine; a plug-in must not raise them
        if isinstance(error, MeshhubError) and not isinstance(error, EngineError):
            raise
        raise attributed(error, subject, position) from error


def attributed(error: BaseException, subject: str, position: Position) -> MeshhubError:
    """Return the error for an unexpected exception of a step.

    Args:
        error: Exception that the step raised.
        subject: Step, as the subject of a sentence.
        position: Position of the step in its chain.
    """
    number = error.errno if isinstance(error, OSError) else None
    if isinstance(error, MemoryError) or number == errno.ENOMEM:
        failure: MeshhubError = ModelTooComplex(
            f"{subject} ran out of memory; {position.reduction}", options=position.options
        )
        if position.step.is_foreign:
            failure.add_note(describe_error(error))
        return failure
    if number == errno.EFBIG:
        return ModelTooComplex(
            f"{subject} exceeded the maximum size of a file; {position.reduction}",
            options=position.options,
        )
    if number in _DISK_FULL:
        # not the fault of the file, because the same request may succeed later
        return ConversionFailed(f"{subject} ran out of disk space; free some space and try again", code=ServerBusy.code)
    if isinstance(error, InvalidIndex):
        if position.step.kind == "read":
            return UnreadableFile(f"{subject} found an invalid mesh: {error}")
        return PluginError(f"{subject} made an invalid mesh: {error}; {position.remedy}")
    # the message omits the text of the error, which may contain paths of this machine
    _log_failure(subject, error)
    broken = PluginError(f"{subject} failed unexpectedly ({name_type(error)}); {position.remedy}")
    # for the command line and programs; the service only logs it
    broken.details = describe_error(error)
    return broken


def _log_failure(subject: str, error: BaseException) -> None:
    log.warning("%s failed", subject, exc_info=log_arguments(error))


def shorten_name(source: Source) -> str:
    """Return the end of a source's name, for messages."""
    return source.name[-MAX_NAME_LENGTH:]


def _frame_words(frame: Frame) -> str:
    return f"{UNIT_NAMES[frame.unit]}, {frame.up.upper()} up"


def _describe_loss(loss: Loss, ending: Write) -> str:
    """Name a lost feature; if the writer keeps colors, it may have kept those of the materials."""
    if loss.feature == "materials" and "colors" in ending.carried:
        return "materials"
    return _FEATURE_WORDS[loss.feature]


def _note_implausible_unit(extent_mm: float, frame: Frame, *, is_declared: bool) -> None:
    """Note an extent that suggests another unit; the scale never changes silently."""
    size, options = f"the longest side measures {format_number(extent_mm, 4)} mm", ("input_unit",)
    is_fixed_mm = frame.unit == "mm" and not is_declared
    if extent_mm <= 0:
        return
    if frame.unit == "m" and extent_mm > MIN_MILLIMETER_LIKE_EXTENT_MM:
        advice = "if the file is in millimeters, set {input_unit=mm} (factor 0.001)"
        note("looks_like_millimeters", f"{size}; {advice}", options=options)
    elif is_fixed_mm and extent_mm <= MAX_METER_LIKE_EXTENT_MM:
        advice = "if the file is in meters, set {input_unit=m} (factor 1000)"
        note("looks_like_meters", f"{size}; {advice}", options=options)
    elif is_fixed_mm and extent_mm <= MAX_INCH_LIKE_EXTENT_MM:
        advice = "if the file is in inches, set {input_unit=in} (factor 25.4)"
        note("looks_like_inches", f"{size}; {advice}", options=options)
    elif not MIN_USUAL_EXTENT_MM <= extent_mm <= MAX_USUAL_EXTENT_MM:
        advice = "if this is not intended, set {input_unit} to the unit of the file"
        note("unusual_size", f"{size}; {advice}", options=options)


def _report_output(step: Step, target: Target, scene: Scene) -> FileReport:
    return _report_file(step.id, target.size, scene, step.frame or HOST_FRAME)


def _report_file(format_id: str, size_bytes: int, scene: Scene, frame: Frame) -> FileReport:
    x, y, z = np.ptp(bounds(scene), axis=0).tolist()
    return FileReport(
        format=format_id,
        bytes=size_bytes,
        faces=scene.face_count,
        parts=len(scene.parts),
        size_mm=(x, y, z),
        frame=frame,
    )
