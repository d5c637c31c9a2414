"""Collect the facts and pictures of a checked model."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping
from pathlib import PurePath
from types import MappingProxyType
from typing import NamedTuple

from msgspec import Struct

from meshhub.engine.contract import Cancel
from meshhub.errors import printable
from meshhub.model.options import Value, flag_of
from meshhub.model.plans import LOCAL, Caller
from meshhub.model.report import ModelInspection
from meshhub.model.scene import Scene
from meshhub.model.source import Source, Target
from meshhub.model.verdict import Verdict
from meshhub.pipeline.numbered_places import number_places
from meshhub.pipeline.purposes import PURPOSES
from meshhub.registry import Registry

PICTURE_SIZE = "720x540"
"""Pixels of a picture: 200 dpi at its width on paper."""

VIEWS = ("iso", "front", "right")
"""Views in the colors of the model."""

MIN_TIMEOUT_S = 0.05
"""Seconds; an engine needs a positive timeout, even if the time is up."""

FIXED_SUFFIX = "-fixed.3mf"
"""What follows the name of a model in that of the file that remedies write."""


class Picture(NamedTuple):
    """Picture as PNG.

    view:  one of VIEWS; "" for the picture that is colored by a finding
    check: id of the check of that finding; "" for wall thickness, which is shown without findings
    """

    view: str
    png: bytes
    check: str = ""


class CheckedModel(Struct, frozen=True, kw_only=True):
    """A model with verdict, inspection and pictures; without them if it could not be checked."""

    name: str
    """File name."""

    error: str = ""
    """Reason for which it could not be checked."""

    verdict: Verdict | None = None
    inspection: ModelInspection | None = None
    pictures: tuple[Picture, ...] = ()

    fix: str = ""
    """Command that fixes it; "" if no finding has a remedy."""


def read_as_checked(
    registry: Registry,
    source: Source | str,
    options: Mapping[str, object],
    timeout_s: float | None = None,
    cancel: Cancel | None = None,
    caller: Caller = LOCAL,
) -> Scene:
    """Read a model, and run the operations after which it was checked. Raises MeshhubError.

    Args:
        registry: Reads the model.
        source: The file or its address.
        options: Options of the check.
        timeout_s: Seconds to read it.
        cancel: Stops the reading.
        caller: Its plan decides about entitlements.
    """
    return registry.read(
        source, caller=caller, timeout=timeout_s, cancel=cancel, options=without_checks(registry, options)
    )


def without_checks(registry: Registry, options: Mapping[str, object]) -> dict[str, object]:
    """Return the options of a check that a conversion takes, too."""
    of_checks = PURPOSES["check"].own_fields(registry.declarations)
    return {name: value for name, value in options.items() if name not in of_checks}


def collect_model(  # noqa: PLR0913 - a model, how it was checked, and limits
    registry: Registry,
    scene: Scene,
    name: str,
    verdict: Verdict,
    options: Mapping[str, object] = MappingProxyType({}),
    timeout_s: float | None = None,
    cancel: Cancel | None = None,
    caller: Caller = LOCAL,
) -> CheckedModel:
    """Draw the pictures of a model and measure it.

    Args:
        registry: Draws.
        scene: The model as it was checked; see `read_as_checked`.
        name: File name for the report.
        verdict: Result of its check.
        options: Options of the check.
        timeout_s: Seconds for all pictures.
        cancel: Stops the drawing.
        caller: Sender of the request, for reviews.
    Raises:
        MeshhubError: The pictures cannot be drawn.
    """
    end = None if timeout_s is None else time.monotonic() + timeout_s

    def remaining_s() -> float | None:
        return None if end is None else max(MIN_TIMEOUT_S, end - time.monotonic())

    numbered = (item.place.position_mm for places in number_places(verdict) for item in places)
    look: dict[str, Value] = {"size": PICTURE_SIZE, "marks": ";".join(",".join(map(repr, place)) for place in numbered)}
    shown = next((finding for finding in verdict.findings if finding.picture), None)
    colored = shown.picture if shown is not None else {"color_by": "thickness"}
    pictures = []
    for view, colors in (*((view, {"view": view}) for view in VIEWS), ("", colored)):
        target = Target()
        registry.render(scene, target, caller=caller, timeout=remaining_s(), cancel=cancel, options={**look, **colors})
        check = shown.check if shown is not None and not view else ""
        pictures.append(Picture(view, target.read(), check))
    model = registry.inspect(scene, caller=caller, timeout=remaining_s(), cancel=cancel).model
    fix = describe_fix(name, verdict, without_checks(registry, options))
    return CheckedModel(name=name, verdict=verdict, inspection=model, pictures=tuple(pictures), fix=fix)


def describe_fix(path: str, verdict: Verdict, options: Mapping[str, object]) -> str:
    """Return the command that fixes a file as far as the remedies of its findings can.

    "" if there are none, or if a terminal cannot print the command as it is.

    Args:
        path: Path of the file; "" for a model without one, such as standard input, so that only flags remain.
        verdict: Result of its check.
        options: Options of the check that a conversion takes, too; the command repeats them, because a remedy in
            millimeters is wrong in another unit, and an operation may come before it.
    """
    remedies: dict[str, object] = {}
    for finding in verdict.findings:
        # the worst come first
        if finding.severity != "info":
            remedies |= {name: value for name, value in finding.remedy.items() if name not in remedies}
    if not remedies:
        return ""
    flags: list[str] = []
    for name, value in {**options, **remedies}.items():
        if value is True:
            flags.append(flag_of(name))
        elif value is not False and value is not None:
            flags += [flag_of(name), str(value)]
    if not path:
        return shlex.join(flags)
    # a path that begins with a dash would be an option
    paths = (f"./{name}" if name.startswith("-") else name for name in (path, PurePath(path).stem + FIXED_SUFFIX))
    command = shlex.join(["meshhub", "convert", *paths, *flags])
    # a command that a message would cut or change cannot be run
    return command if printable(command) == command else ""
