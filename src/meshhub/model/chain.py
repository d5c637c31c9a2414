"""Conversion request and resolved chain: plain data that serializes to JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from meshhub.model.capabilities import (
    Feature,
    Frame,
)
from meshhub.model.notes import Note
from meshhub.model.options import Value
from meshhub.model.report import Loss

BUILT_IN = "built-in"
"""The origin of the plug-ins that come with meshhub."""

GIVEN = "given"
"""The origin of the plug-ins that a program passes to its registry."""


class Request(Struct, frozen=True, kw_only=True):
    """What a caller asks for: a target format (None: only read), and option fields as text or values."""

    target: str | None
    options: Mapping[str, object] = {}


class Step(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One step of a chain; `options_type` names the Struct that `options` are decoded into.

    origin: distribution and version of the plug-in, or "built-in"
    """

    kind: Literal["read", "operation", "write"]
    id: str
    label: str
    because: str
    plugin: str
    run: str
    options_type: str
    options: dict[str, Value] = {}
    frame: Frame | None = None
    drops: tuple[Feature, ...] = ()
    requires: str | None = None
    origin: str = ""

    @property
    def is_foreign(self) -> bool:
        """Whether code of a third party runs in this step."""
        return self.origin not in ("", BUILT_IN)

    def __str__(self) -> str:
        """Describe the step for messages, with its plug-in and the distribution of that."""
        kinds = {"read": "the reader of", "operation": "the operation", "write": "the writer of"}
        has_distribution = self.is_foreign and self.origin != GIVEN
        plugin = f"plug-in {self.plugin!r}" + (f", {self.origin}" if has_distribution else "")
        return f"{kinds[self.kind]} {self.label} ({plugin})"


class Chain(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The resolved pipeline: a read, operations in stage order, and a write unless only reading was asked for.

    `losses` are possible ones; `input_frame` holds what the caller says against the file.
    """

    steps: tuple[Step, ...]
    losses: tuple[Loss, ...] = ()
    notes: tuple[Note, ...] = ()
    carried: tuple[Feature, ...] = ()
    input_unit: str | None = None
    input_up: str | None = None

    @property
    def source_format(self) -> str:
        """The id of the format that is read."""
        return self.steps[0].id

    @property
    def target_format(self) -> str:
        """The id of the format that is written, or "" when nothing is."""
        return self.steps[-1].id if self.steps[-1].kind == "write" else ""


class Position:
    """Position in a chain that runs, for messages; `step` is the number of the step that began last, if any did."""

    def __init__(self, chain: Chain, step: int | None = None) -> None:
        self._begun = chain.steps[: step + 1] if step is not None else ()

    @property
    def step(self) -> Step:
        """Return the step that began last."""
        return self._begun[-1]

    @property
    def is_foreign(self) -> bool:
        """Whether code of a third party has run."""
        return any(step.is_foreign for step in self._begun)

    @property
    def text(self) -> str:
        """Return " in " and the step that began last; "" before the first."""
        return f" in {self.step}" if self._begun else ""

    @property
    def remedy(self) -> str:
        """Return what to do about a crash; the file is blamed only where no code of a third party ran."""
        foreign = [step for step in self._begun if step.is_foreign]
        return f"report it to the maintainer of {foreign[-1].plugin!r}" if foreign else "the file may be damaged"
