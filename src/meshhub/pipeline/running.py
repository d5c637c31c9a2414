"""One run of a chain: its steps with their notes, figures and seconds, and the errors that name them."""

from __future__ import annotations

import errno
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

import numpy as np
from msgspec import Struct

from meshhub.error_codes import list_values
from meshhub.errors import (
    ConversionFailed,
    EngineError,
    MeshhubError,
    ModelTooComplex,
    PluginError,
    ServerBusy,
    UnreadableFile,
)
from meshhub.model import options as opt
from meshhub.model import progress
from meshhub.model.capabilities import HOST_FRAME, Frame
from meshhub.model.chain import Chain, Position, Step
from meshhub.model.estimate import Estimate
from meshhub.model.features import FeatureTable
from meshhub.model.notes import Note, Remarks, collecting
from meshhub.model.report import FileReport, Inspection, Loss, ModelInspection, Report, StepReport
from meshhub.model.scene import InvalidIndex, Project, Scene
from meshhub.model.source import Source
from meshhub.model.verdict import SEVERITIES, Finding, Verdict, judge
from meshhub.pipeline.declarations import load
from meshhub.pipeline.plugin_errors import describe_error, log_arguments, name_type
from meshhub.pipeline.scene_check import MAX_RESULT_EXTENT, find_scene_fault
from meshhub.toolkit.geometry import bounds, round_lengths, to_frame, without_unused_vertices

log = logging.getLogger(__name__)

_DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})

Checkpoint = Callable[[int], None]
"""Called with the number of each step before it, and with their count after the last; raises EngineError to stop. """


def no_checkpoint(step: int) -> None:
    """Let the chain continue."""


@dataclass
class Measured:
    """Notes and figures of a step, and its seconds."""

    remarks: Remarks
    seconds: float = 0.0


class Run:
    """One run of a chain: its source, and the notes, figures and seconds of its steps in order."""

    source_report: FileReport
    feature_table: FeatureTable | None = None

    def __init__(self, chain: Chain, source: Source, checkpoint: Checkpoint) -> None:
        self.chain = chain
        self.source = source
        self.checkpoint = checkpoint
        self.notes: list[Note] = list(chain.notes)
        self._reports: list[StepReport] = []
        self._start = time.perf_counter()

    @contextmanager
    def step(self) -> Iterator[Position]:
        """Collect the notes and figures of the next step."""
        position = self.begin_step()
        with self.measuring(position) as measured:
            yield position
        self.end_step(position.step, measured)

    def position(self, offset: int) -> Position:
        """Return the position of a step: `offset` steps after the one that begins next."""
        return Position(self.chain, len(self._reports) + offset)

    def begin_step(self) -> Position:
        """Begin the next step, and return its position."""
        number = len(self._reports)
        self.checkpoint(number)
        progress.begin_step(number)
        return self.position(0)

    @contextmanager
    def measuring(self, position: Position) -> Iterator[Measured]:
        """Collect the notes and figures of a step, which runs inside."""
        start = time.perf_counter()
        with collecting(position.step.id, self.chain.reduction) as remarks, np.errstate(all="ignore"):
            measured = Measured(remarks)
            yield measured
        measured.seconds = round(time.perf_counter() - start, 4)

    def end_step(self, step: Step, measured: Measured) -> None:
        """Add the notes and figures of the step that began last."""
        self.notes += measured.remarks.notes
        self._reports.append(StepReport(step.id, step.kind, measured.seconds, measured.remarks.figures))

    def note_losses(self, project: Project | None) -> None:
        """Add the notes of a project that the output does not keep."""
        if project is not None:
            self.notes += project.notes

    def inspection(self, model: ModelInspection) -> Inspection:
        """Return the inspection of a scene with the facts of its file."""
        reading = [report.figures for report in self._reports if report.kind == "read"]
        return Inspection(
            source=self.source_report,
            model=model,
            feature_table=self.feature_table,
            figures=reading[0] if reading else {},
            notes=tuple(self.notes),
        )

    def verdict(self, findings: Iterable[Finding], estimate: Estimate | None, scene: Scene) -> Verdict:
        """Return the verdict after the last check, the worst findings first."""
        ordered = tuple(sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity)))
        source = self.source_report
        if self.chain.operations:
            source = report_file(source.format, source.bytes, scene, source.frame or HOST_FRAME)
        return Verdict(
            verdict=judge(ordered),
            source=source,
            findings=ordered,
            estimate=estimate,
            checks=tuple(report for report in self._reports if report.kind == "check"),
            notes=tuple(self.notes),
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


def wrong_result(position: Position, result: object, expected: str) -> PluginError:
    """Return the error for a step that returned a value of another type."""
    return PluginError(f"{position.step} returned {name_type(result)} instead of {expected}; {position.remedy}")


def build_step_options(step: Step) -> Struct:
    """Return the options Struct of a step."""
    return opt.build_options(cast(type[Struct], load(step.options_type)), step.options)


def operate(step: Step, position: Position, scene: Scene) -> Scene:
    """Run an operation on a scene, and return its scene in the frame of meshhub. Raises MeshhubError."""
    with attributing(str(step), position):
        result = load(step.run)(scene, build_step_options(step))
    if not isinstance(result, Scene):
        raise wrong_result(position, result, "a scene")
    if result is not scene:
        with attributing(f"the scene of {step}", position):
            result = without_unused_vertices(result)
            fault = find_scene_fault(result, MAX_RESULT_EXTENT)
        if fault:
            raise PluginError(f"{step} returned a broken scene: {fault}; {position.remedy}")
    if result.face_count == 0:
        raise ConversionFailed(f"{step.label} left nothing of the model; change or omit its options")
    return to_frame(result, HOST_FRAME)


@contextmanager
def attributing(subject: str, position: Position) -> Iterator[None]:
    """Turn an unexpected exception into an error that names the step and its plug-in."""
    try:
        yield
    except (KeyboardInterrupt, progress.ListenerFailed):
        # perhaps the interrupt is the user's; a worker attributes it
        raise
    except BaseException as error:
        # deadlines and cancellation belong to the engine; a plug-in must not raise them
        if isinstance(error, MeshhubError) and not isinstance(error, EngineError):
            _name_step(error, position.step)
            raise
        raise attributed(error, subject, position) from error


def _name_step(error: MeshhubError, step: Step) -> None:
    """Add the format or the operation of the step to the values of an error, if errors of its code have it."""
    names = list_values(error.error_code)
    if step.kind == "read" and "format" in names:
        error.values.setdefault("format", step.label)
    elif step.kind == "operation" and "operation" in names:
        error.values.setdefault("operation", step.id)


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
        return ConversionFailed(
            f"{subject} ran out of disk space; free some space and try again", error_code=ServerBusy.error_code
        )
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


def report_file(format_id: str, size_bytes: int, scene: Scene, frame: Frame) -> FileReport:
    """Describe a file that holds a scene in millimeters, Z up."""
    box = bounds(scene)
    x, y, z = round_lengths(np.ptp(box, axis=0), box).tolist()
    return FileReport(
        format=format_id,
        bytes=size_bytes,
        faces=scene.face_count,
        parts=len(scene.parts),
        size_mm=(x, y, z),
        frame=frame,
    )
