"""Conversion request and resolved chain: plain data that serializes to JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, TypeAlias

from msgspec import Struct

from meshhub.model.capabilities import Feature, Frame
from meshhub.model.notes import Note, describe_reduction
from meshhub.model.options import Value
from meshhub.model.report import Inspection, Loss, Report, StepKind
from meshhub.model.verdict import Result, Verdict

BUILT_IN = "built-in"
"""Origin of the plug-ins that meshhub includes."""

GIVEN = "given"
"""Origin of the plug-ins that a program passes to its registry."""


class Request(Struct, frozen=True, kw_only=True):
    """Request for a conversion, or for another purpose."""

    target: str = ""
    """Id or extension of the target format of a conversion, of the file in which a check marks its findings, or of the
    file that a preview measures."""

    purpose: str = "convert"
    """Name of a file of `pipeline/purposes/`. "read" returns a scene to the program."""

    options: Mapping[str, object] = {}
    """Texts or values by option name."""


class Step(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One step of a chain."""

    kind: StepKind
    """Kind of the step."""

    id: str
    """Id of the operation or of the format."""

    label: str
    """Name for people."""

    because: str
    """Reason why the step is in the chain."""

    plugin: str
    """Name of the plug-in."""

    run: str
    """Code as "package.module:function" of the code."""

    features: str | None = None
    """Code of a reader that also returns the feature table; called instead of `run`."""

    options_type: str
    """Code as "package.module:class" of the options Struct."""

    options: dict[str, Value] = {}
    """Parsed values of the set options."""

    crash_options: dict[str, Value] = {}
    """Options with which a reader runs again if its native code crashes; empty: it does not run again."""

    frame: Frame | None = None
    """Frame of a reader or writer; None for an operation, and for a reader whose files declare their own."""

    drops: tuple[Feature, ...] = ()
    """Features that an operation does not keep."""

    requires: str | None = None
    """Entitlement that the caller's plan must grant; None: none."""

    keeps_state: bool = False
    """Whether the worker process runs no other task, because a library keeps state."""

    concurrent: bool = False
    """Whether a check may run in a thread beside other checks."""

    needs: tuple[str, ...] = ()
    """Top-level modules of libraries that the code needs."""

    missing: str = ""
    """Why a check cannot run: a package that is not installed, and the command that installs it; "" if it can."""

    origin: str = ""
    """Distribution and version of the plug-in, or "built-in"."""

    @property
    def is_foreign(self) -> bool:
        """Whether the step runs code of a third party."""
        return self.origin not in ("", BUILT_IN)

    def __str__(self) -> str:
        """Describe the step for messages, with its plug-in and the distribution of the plug-in."""
        kinds = {
            "read": "the reader of",
            "operation": "the operation",
            "write": "the writer of",
            "check": "the check",
            "preview": "the reduction for the",
            "render": "the renderer of",
        }
        has_distribution = self.is_foreign and self.origin != GIVEN
        plugin = f"plug-in {self.plugin!r}" + (f", {self.origin}" if has_distribution else "")
        return f"{kinds[self.kind]} {self.label} ({plugin})"


class _End(Struct, frozen=True):
    """Base class of endings."""

    result: ClassVar[type[Result]] = Report
    """What a run returns."""

    informs: ClassVar[bool] = False
    """Whether the listeners of plug-ins receive the report."""


class Write(_End, frozen=True, kw_only=True, tag="write"):
    """Ending of a conversion: the last step writes the scene."""

    informs = True

    carried: tuple[Feature, ...]
    """Features that the writer keeps."""

    texture_colors: str | None
    """Where to write the colors of textures, "vertex" or "face"; None: textures stay, or are lost."""

    merges_parts: bool = False
    """Whether programs read all parts of the file as one mesh."""

    max_colors: int | None = None
    """Maximum number of colors that programs print; None: unlimited."""

    each_bed: bool = False
    """Whether the objects of each bed get a file of their own."""


class Render(_End, frozen=True, tag="render"):
    """Ending: the last step draws the scene; after operations, the scene before and after them."""


class Preview(_End, frozen=True, tag="preview"):
    """Ending: the last two steps reduce the scene for display, and write it with its defects as GLB."""

    informs = True

    file: Write | None = None
    """Ending of the conversion whose file the step before them writes, to measure it; None: no file is measured."""


class Inspect(_End, frozen=True, tag="inspect"):
    """Ending: the scene of the file is inspected; this is not a step, because no plug-in does it."""

    result = Inspection


class Judge(_End, frozen=True, tag="judge"):
    """Ending: the last steps check the scene, each for itself."""

    result = Verdict

    needs_estimate: bool = False
    """Whether an estimate was requested, so that the chain fails without it."""

    marks: bool = False
    """Whether the last step writes the scene with the findings as colors."""

    remedies: tuple[Step, ...] = ()
    """Operations in stage order, without options, with which remedies of findings are tried."""


Ending: TypeAlias = Write | Render | Preview | Inspect | Judge
"""Ending of a chain."""


class Chain(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Resolved pipeline: a reader for each file, operations in stage order, and the steps of its ending."""

    steps: tuple[Step, ...]
    """The steps in order."""

    ending: Ending
    """Use of the scene."""

    losses: tuple[Loss, ...] = ()
    """Features that the source format can hold and that the output cannot keep."""

    notes: tuple[Note, ...] = ()
    """Notes about the request, such as unused options."""

    input_unit: str | None = None
    """Unit of the source, which overrides the file; None: as the file declares."""

    input_up: str | None = None
    """Up axis of the source, which overrides the file; None: as the file declares."""

    reduction: str | None = None
    """Option that reduces the faces and that the request does not use yet; None: no such option."""

    @property
    def source_format(self) -> str:
        """The id of the source format, of several files that of the first."""
        return self.steps[0].id

    @property
    def operations(self) -> tuple[Step, ...]:
        """The operations in order."""
        return tuple(step for step in self.steps if step.kind == "operation")

    @property
    def checks(self) -> tuple[Step, ...]:
        """The checks in order."""
        return tuple(step for step in self.steps if step.kind == "check")

    @property
    def target_format(self) -> str:
        """The id of the target format; "" if the chain inspects, checks or draws a picture."""
        return self.steps[-1].id if self.steps[-1].kind == "write" else ""

    @property
    def writes(self) -> bool:
        """Whether the chain writes files."""
        match self.ending:
            case Inspect():
                return False
            case Judge():
                return self.ending.marks
            case _:
                return True


class Position:
    """Position in a running chain, for messages.

    Args:
        chain: The chain.
        step: Index of the step that began last; None before the first.
    """

    def __init__(self, chain: Chain, step: int | None = None) -> None:
        self._begun = chain.steps[: step + 1] if step is not None else ()
        # operations run after the reader, so a reduction would come too late for it
        is_reading = bool(self._begun) and self.step.kind == "read"
        self._advice, self._options = describe_reduction(None if is_reading else chain.reduction)

    @property
    def step(self) -> Step:
        """The step that began last."""
        return self._begun[-1]

    @property
    def is_foreign(self) -> bool:
        """Whether code of a third party has run."""
        return any(step.is_foreign for step in self._begun)

    @property
    def text(self) -> str:
        """The words " in " and the step that began last; "" before the first."""
        return f" in {self.step}" if self._begun else ""

    @property
    def remedy(self) -> str:
        """The advice after a crash: the file is named as a possible cause only if no third-party code ran."""
        foreign = [step for step in self._begun if step.is_foreign]
        if not foreign:
            return "the file may be damaged"
        # the text of the position names the distribution of its step
        origin = f" ({foreign[-1].origin})" if foreign[-1] is not self.step else ""
        return f"report it to the maintainer of {foreign[-1].plugin!r}{origin}"

    @property
    def reduction(self) -> str:
        """The advice after a step that needs too much time, memory or disk; it mentions `options`.

        If the step runs third-party code, the advice is only to report it to the maintainer.
        """
        if self._begun and self.step.is_foreign:
            return self.remedy
        report = f" or {self.remedy}" if self.is_foreign else ""
        return f"{self._advice}{report}"

    @property
    def options(self) -> tuple[str, ...]:
        """The options that `reduction` mentions."""
        return self._options
