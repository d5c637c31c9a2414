"""Read the files of a chain into one scene in millimeters, Z up; check it, and note a doubtful unit."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np

from meshhub.errors import MeshhubError, PluginError, UnreadableFile, format_number, quote
from meshhub.model.capabilities import HOST_FRAME, Frame, Unit, Up
from meshhub.model.chain import Position
from meshhub.model.features import FeatureTable
from meshhub.model.notes import note
from meshhub.model.scene import Project, Scene
from meshhub.model.source import Source, members_of
from meshhub.pipeline.declarations import load
from meshhub.pipeline.fork_lock import IMPORTING
from meshhub.pipeline.running import Run, attributing, build_step_options, report_file, wrong_result
from meshhub.pipeline.scene_check import check_read_scene
from meshhub.toolkit.geometry import bounds, to_frame, without_unused_vertices

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


def read_scene(run: Run) -> tuple[Scene, Project | None]:
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
    run.source_report = report_file(chain.source_format, run.source.size, scene, frame)
    return scene, project


def _read_assembly(run: Run, members: tuple[Source, ...]) -> tuple[Scene, Frame]:
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


def _read_file(run: Run, source: Source) -> tuple[Scene, Project | None, Frame]:
    """Read a file, and check the result of its reader.

    Returns:
        The scene in the host's frame, the project in the file, and the frame of the file.
    """
    chain = run.chain
    features: FeatureTable | None = None
    with run.step() as position:
        step = position.step
        with attributing(str(step), position):
            if step.features is None:
                scene = load(step.run)(source, build_step_options(step))
            else:
                scene, features = load(step.features)(source, build_step_options(step))
        if not (features is None or isinstance(features, FeatureTable)):
            raise wrong_result(position, features, "a feature table")
        if not isinstance(scene, Scene):
            raise wrong_result(position, scene, "a scene")
        with attributing(f"the scene of {step}", position):
            scene = without_unused_vertices(scene)
            check_read_scene(scene, shorten_name(source))
        stated = _find_frame(position, scene)
        frame = Frame(cast(Unit, chain.input_unit or stated.unit), cast(Up, chain.input_up or stated.up))
        project = scene.project
        # with another unit or axis than in the file, the scene is another one
        kept_project = project if frame == stated else None
        scene = replace(scene, frame=frame)
        if frame != HOST_FRAME:
            note("frame_converted", f"read in {frame}; converted to {HOST_FRAME}", unit=frame.unit, up=frame.up.upper())
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
        raise PluginError(f"{position.step} declares {declared}, but its scene states {stated}; {position.remedy}")
    return stated or declared or HOST_FRAME


def _note_implausible_unit(extent_mm: float, frame: Frame, *, is_declared: bool) -> None:
    """Note an extent that suggests another unit; the scale never changes silently."""
    size, options = f"the longest side measures {format_number(extent_mm, 4)} mm", ("input_unit",)
    is_fixed_mm = frame.unit == "mm" and not is_declared
    if extent_mm <= 0:
        return
    if frame.unit == "m" and extent_mm > MIN_MILLIMETER_LIKE_EXTENT_MM:
        advice = "if the file is in millimeters, set {input_unit=mm} (factor 0.001)"
        note("looks_like_millimeters", f"{size}; {advice}", options=options, size=extent_mm)
    elif is_fixed_mm and extent_mm <= MAX_METER_LIKE_EXTENT_MM:
        advice = "if the file is in meters, set {input_unit=m} (factor 1000)"
        note("looks_like_meters", f"{size}; {advice}", options=options, size=extent_mm)
    elif is_fixed_mm and extent_mm <= MAX_INCH_LIKE_EXTENT_MM:
        advice = "if the file is in inches, set {input_unit=in} (factor 25.4)"
        note("looks_like_inches", f"{size}; {advice}", options=options, size=extent_mm)
    elif not MIN_USUAL_EXTENT_MM <= extent_mm <= MAX_USUAL_EXTENT_MM:
        advice = "if this is not intended, set {input_unit} to the unit of the file"
        note("unusual_size", f"{size}; {advice}", options=options, size=extent_mm)


def shorten_name(source: Source) -> str:
    """Return the end of a source's name, for messages."""
    return source.name[-MAX_NAME_LENGTH:]
