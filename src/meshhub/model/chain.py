"""Conversion request and resolved chain: plain data that serializes to JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from meshhub.model.capabilities import Feature, Frame
from meshhub.model.notes import Note
from meshhub.model.options import Value
from meshhub.model.report import Loss


class Request(Struct, frozen=True, kw_only=True):
    """What a caller asks for: a target format (None: only read), and option fields as text or values."""

    target: str | None
    options: Mapping[str, object] = {}


class Step(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One step of a chain; `options_type` names the Struct that `options` are decoded into."""

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
