"""From a chain to a report: read, check, bring to millimetres, operate, write, and tell what happened.

Runs wherever it is called: in this process or in a worker. It needs the chain, a source and a
target, and no registry.
"""

from __future__ import annotations

import errno
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

import numpy as np
from msgspec import Struct

from meshhub.errors import (
    ConversionFailed,
    EmptyModel,
    EngineError,
    MeshhubError,
    ModelTooComplex,
    PluginError,
    ServerBusy,
    UnreadableFile,
    format_number,
)
from meshhub.model import options as opt
from meshhub.model.capabilities import HOST_FRAME, Feature, Frame, Unit, Up
from meshhub.model.chain import Chain, Position
from meshhub.model.notes import Note, collecting, note
from meshhub.model.report import FileReport, Inspection, Loss, Report, StepReport
from meshhub.model.scene import Scene
from meshhub.model.source import Source, Target
from meshhub.pipeline.declarations import load
from meshhub.toolkit.geometry import bounds, to_frame

log = logging.getLogger(__name__)

LARGEST = 1e12
"""Coordinates beyond this, in the file's own unit, are no model of anything."""

LARGEST_MM = 1e13
"""The same for what is placed, in millimetres: broken files of real programs reach two thousand million metres."""

MOST_PLACED = 20_000_000
"""Triangles, each instance counted, of a file that holds fewer: a small file can place one mesh without end."""

OVERFLOWS = 1e30
"""Beyond this what an operation returns nears the end of float32, which most formats are written in."""

METRES_BELOW = 0.5
INCHES_BELOW = 3.0
MILLIMETRES_ABOVE = 10_000.0
"""Largest extents, in millimetres as read, outside which a unit is doubted: half a metre as metres, three
inches as inches, ten metres as millimetres taken for metres."""

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})

_SAID: dict[Feature, str] = {
    "names": "names of parts",
    "instances": "instances (each is written out)",
    "normals": "normals",
    "uv": "texture coordinates",
    "colors": "vertex colours",
    "materials": "materials and their colours",
    "textures": "textures",
    "units": "the unit",
}


Check = Callable[[int], None]
"""Called with the number of each step before it, and with their count after the last; raises EngineError to stop."""


def _unchecked(step: int) -> None:
    """Let the chain go on."""


class _Log:
    """What the steps of one conversion said, in order."""

    def __init__(self, chain: Chain, check: Check) -> None:
        self.notes: list[Note] = list(chain.notes)
        self.steps: list[StepReport] = []
        self._chain = chain
        self.check = check

    @contextmanager
    def step(self, number: int) -> Iterator[Position]:
        self.check(number)
        position = Position(self._chain, number)
        step = position.step
        started = time.perf_counter()
        with collecting(step.id) as remarks, np.errstate(all="ignore"):
            yield position
        self.notes += remarks.notes
        self.steps.append(StepReport(step.id, step.kind, round(time.perf_counter() - started, 4), remarks.figures))


def run(chain: Chain, source: Source, target: Target, check: Check = _unchecked) -> Report:
    """Run a whole chain and say what happened. Raises MeshhubError and nothing else."""
    started = time.perf_counter()
    told = _Log(chain, check)
    scene, frame = _read(chain, source, told)
    before = _file_report(chain.source_format, source.size, scene, frame)
    losses: list[Loss] = []
    *operations, write = chain.steps[1:]
    for number, step in enumerate(operations, 1):
        before_step = scene.features()
        with told.step(number) as position:
            scene = _operate(position, scene)
        losses += [Loss(feature, step.id) for feature in step.drops if feature in before_step - scene.features()]
    losses += [Loss(feature, write.id) for feature in sorted(scene.features() - set(chain.carried))]
    with told.step(len(chain.steps) - 1) as position:
        _write(position, scene, target)
    check(len(chain.steps))
    told.notes += [
        Note(loss.code, f"{_said(loss, chain)} cannot be kept in this chain and were left out", loss.step)
        for loss in losses
    ]
    return Report(
        source=before,
        target=_file_report(write.id, target.size, scene, write.frame or HOST_FRAME),
        steps=tuple(told.steps),
        losses=tuple(losses),
        notes=tuple(told.notes),
        seconds=round(time.perf_counter() - started, 4),
    )


def inspect(chain: Chain, source: Source, check: Check = _unchecked) -> Inspection:
    """Run a chain that only reads, and look at what came. Raises MeshhubError and nothing else."""
    from meshhub.pipeline.inspection import inspect as inspect_scene

    told = _Log(chain, check)
    scene, frame = _read(chain, source, told)
    check(len(chain.steps))
    model = _guarded("inspection", Position(chain, 0), lambda: inspect_scene(scene))
    check(len(chain.steps))
    return Inspection(
        source=_file_report(chain.source_format, source.size, scene, frame), model=model, notes=tuple(told.notes)
    )


def _read(chain: Chain, source: Source, told: _Log) -> tuple[Scene, Frame]:
    """The source's scene in the host's frame, and the frame it came in."""
    with told.step(0) as position:
        step = position.step
        scene = _call(position, source)
        if not isinstance(scene, Scene):
            raise PluginError(f"{step} returned {type(scene).__name__} instead of a scene")
        _guarded(f"the scene of {step}", position, lambda: _validate(scene, source))
        frame = Frame(
            cast(Unit, chain.input_unit or scene.frame.unit),
            cast(Up, chain.input_up or scene.frame.up),
        )
        if frame != scene.frame:
            scene = replace(scene, frame=frame)
        if frame != HOST_FRAME:
            note("frame_converted", f"read in {_spoken(frame)}; brought to {_spoken(HOST_FRAME)}")
        scene = to_frame(scene, HOST_FRAME)
        box = bounds(scene)
        if not np.abs(box).max() <= LARGEST_MM:
            raise UnreadableFile(
                f"{source.name[-80:]!r} places its model farther out than {format_number(LARGEST_MM)} mm"
            )
        if chain.input_unit is None:
            _doubt_unit(float(np.ptp(box, axis=0).max()), frame, told=step.frame is None)
    return scene, frame


def _operate(position: Position, scene: Scene) -> Scene:
    step = position.step
    changed = _call(position, scene)
    if not isinstance(changed, Scene):
        raise PluginError(f"{step} returned {type(changed).__name__} instead of a scene")
    if changed is not scene:
        fault = _guarded(f"the scene of {step}", position, lambda: _fault(changed, OVERFLOWS))
        if fault:
            raise PluginError(f"{step} returned a broken scene: {fault}")
    if changed.face_count == 0:
        raise ConversionFailed(f"{step.label} left nothing of the model; ask for less of it")
    return changed


def _write(position: Position, scene: Scene, target: Target) -> None:
    step = position.step
    frame = step.frame or HOST_FRAME
    if frame != HOST_FRAME:
        note("frame_converted", f"written in {_spoken(frame)}, as {step.label} has it")
    _call(position, to_frame(scene, frame), target)
    if target.size == 0:
        raise PluginError(f"{step} wrote nothing")


def _spoken(frame: Frame) -> str:
    units = {"um": "micrometres", "mm": "millimetres", "cm": "centimetres", "m": "metres", "in": "inches", "ft": "feet"}
    return f"{units[frame.unit]}, {frame.up.upper()} up"


def _said(loss: Loss, chain: Chain) -> str:
    """What is lost, in words; a chain that carries colours may have kept those of the materials."""
    if loss.feature == "materials" and "colors" in chain.carried:
        return "materials"
    return _SAID[loss.feature]


def _call(position: Position, *arguments: object) -> Any:
    """The step's function, called with its options; what it raises unexpectedly is the plug-in's fault."""

    step = position.step

    def called() -> Any:
        struct = cast(type[Struct], load(step.options_type))
        return load(step.run)(*arguments, opt.decode(struct, step.options))

    return _guarded(str(step), position, called)


def _guarded(what: str, position: Position, function: Callable[[], Any]) -> Any:
    try:
        return function()
    except (Exception, SystemExit) as error:
        # that a deadline passed or a caller left is for the engine to say, not for a plug-in
        if isinstance(error, MeshhubError) and not isinstance(error, EngineError):
            raise
        number = error.errno if isinstance(error, OSError) else None
        if isinstance(error, MemoryError) or number == errno.ENOMEM:
            raise ModelTooComplex(
                f"{what} ran out of memory: the model is too complex; reduce it first ({{optimize_target_faces}})",
                options=("optimize_target_faces",),
            ) from error
        if number == errno.EFBIG:
            raise ModelTooComplex(
                f"{what} wrote a larger file than one may be; reduce the model first ({{optimize_target_faces}})",
                options=("optimize_target_faces",),
            ) from error
        if number in _NO_ROOM:
            # not the file's fault: the same request may succeed later
            raise ConversionFailed(
                f"{what} ran out of room on the disk; free some space and try again", code=ServerBusy.code
            ) from error
        # only the kind of the error is told: its text may hold paths of this machine
        log.warning("%s failed", what, exc_info=error)
        raise PluginError(f"{what} failed unexpectedly ({type(error).__name__}); {position.remedy}") from error


def _validate(scene: Scene, source: Source) -> None:
    fault = _fault(scene, LARGEST)
    if fault:
        raise UnreadableFile(f"{source.name[-80:]!r}: {fault}")
    count = scene.face_count
    if count == 0:
        raise EmptyModel(f"{source.name[-80:]!r} holds no triangles; there is nothing to convert")
    if count > max(MOST_PLACED, sum(len(mesh.faces) for mesh in scene.meshes)):
        raise ModelTooComplex(
            f"{source.name[-80:]!r} places its meshes so often that they make {count:,} triangles, and "
            f"{MOST_PLACED:,} are the most; send fewer instances, or a simpler mesh"
        )


def _fault(scene: Scene, largest: float) -> str:
    """What is broken in a scene, or "". No number of it may be beyond `largest`."""
    for number, mesh in enumerate(scene.meshes):
        where = f"mesh {number}" + (f" ({mesh.name[:60]!r})" if mesh.name else "")
        if not np.isfinite(mesh.vertices).all():
            return f"{where} has coordinates that are not finite numbers"
        if len(mesh.vertices) and np.abs(mesh.vertices).max() > largest:
            return f"{where} has coordinates beyond {format_number(largest)}"
        if len(mesh.faces) and (mesh.faces.min() < 0 or mesh.faces.max() >= len(mesh.vertices)):
            return f"{where} has faces that name vertices which do not exist"
        own = mesh.face_material
        if own is not None and len(own) and (own.min() < -1 or own.max() >= len(scene.materials)):
            return f"{where} has faces of materials that do not exist"
    for number, part in enumerate(scene.parts):
        where = f"part {number}" + (f" ({part.name[:60]!r})" if part.name else "")
        if not 0 <= part.mesh < len(scene.meshes):
            return f"{where} places a mesh that does not exist"
        if part.material is not None and not 0 <= part.material < len(scene.materials):
            return f"{where} has a material that does not exist"
        if not np.isfinite(part.transform).all() or not np.array_equal(part.transform[3], [0, 0, 0, 1]):
            return f"{where} has a transform that is not affine and finite"
        if np.abs(part.transform).max() > largest:
            return f"{where} has a transform beyond {format_number(largest)}"
    for number, material in enumerate(scene.materials):
        if any(not 0 <= image < len(scene.images) for image in material.images()):
            return f"material {number} names an image that does not exist"
    return ""


def _doubt_unit(extent: float, frame: Frame, told: bool) -> None:
    """Note a size that no print has; never a silent scale."""
    size = f"the model measures {format_number(extent, 4)} mm at its longest"
    if frame.unit == "m" and extent > MILLIMETRES_ABOVE:
        note("looks_like_millimetres", f"{size}; if its numbers are millimetres, say input_unit=mm (a factor of 0.001)")
    if told or frame.unit != "mm" or extent <= 0:
        return
    if extent <= METRES_BELOW:
        note("looks_like_metres", f"{size}; if its numbers are metres, say input_unit=m (a factor of 1000)")
    elif extent <= INCHES_BELOW:
        note("looks_like_inches", f"{size}; if its numbers are inches, say input_unit=in (a factor of 25.4)")


def _file_report(format_id: str, size: int, scene: Scene, frame: Frame) -> FileReport:
    x, y, z = np.ptp(bounds(scene), axis=0).tolist()
    return FileReport(
        format=format_id, bytes=size, faces=scene.face_count, parts=len(scene.parts), size_mm=(x, y, z), frame=frame
    )
