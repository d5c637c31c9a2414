"""What is told about a conversion: losses, notes, figures, seconds."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from meshhub.capabilities import Feature, Frame
from meshhub.notes import Figure, Note


class Loss(Struct, frozen=True):
    """A feature that does not reach the output, and the step that drops it.

    Before a conversion a loss is possible: the source's format can hold the feature. After reading
    it is certain: the source does hold it.
    """

    feature: Feature
    step: str

    @property
    def code(self) -> str:
        """The loss as a note's code."""
        return f"{'colours' if self.feature == 'colors' else self.feature}_dropped"


class StepReport(Struct, frozen=True, omit_defaults=True):
    """What one step did, and how long it took."""

    step: str
    kind: Literal["read", "operation", "write"]
    seconds: float
    figures: dict[str, Figure] = field(default_factory=dict)


class FileReport(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One end of a conversion. `size_mm` is the extent along X, Y and Z, in millimetres."""

    format: str
    bytes: int = 0
    faces: int = 0
    parts: int = 0
    size_mm: tuple[float, float, float] | None = None
    frame: Frame | None = None


class Failure(Struct, frozen=True):
    """Why a conversion failed."""

    error_code: str
    error: str


class Report(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A whole conversion: what went in, what came out, what was done and lost. No file name is in it.

    `error` is set, and `target` holds no figures, when the conversion failed.
    """

    source: FileReport
    target: FileReport
    steps: tuple[StepReport, ...] = ()
    losses: tuple[Loss, ...] = ()
    notes: tuple[Note, ...] = ()
    seconds: float = 0.0
    error: Failure | None = None

    @property
    def ok(self) -> bool:
        """Whether the conversion succeeded."""
        return self.error is None
