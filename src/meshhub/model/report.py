"""What is told about a conversion: losses, notes, figures, seconds."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from meshhub.model.capabilities import Feature, Frame
from meshhub.model.notes import Figure, Note


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


class PartInspection(Struct, frozen=True, kw_only=True):
    """One placed part, as `ModelInspection` has the whole."""

    name: str
    faces: int
    bodies: int
    cavities: int
    watertight: bool
    size_mm: tuple[float, float, float]
    volume_mm3: float | None


class ModelInspection(Struct, frozen=True, kw_only=True):
    """Is it printable? Topology on welded positions, lengths in millimetres, Z up.

    holes: boundary loops; bodies: connected shells; cavities: closed shells that face inward inside a body, which are
    not bodies; volume_mm3: None when the surface is not closed.
    parts_listed: the first parts, at most a hundred.
    """

    size_mm: tuple[float, float, float]
    bounds_mm: tuple[tuple[float, float, float], tuple[float, float, float]]
    faces: int
    vertices: int
    parts: int
    bodies: int
    cavities: int
    holes: int
    open_edges: int
    nonmanifold_edges: int
    inconsistent_edges: int
    degenerate_faces: int
    watertight: bool
    volume_mm3: float | None
    area_mm2: float
    features: tuple[Feature, ...]
    parts_listed: tuple[PartInspection, ...]


class Inspection(Struct, frozen=True, kw_only=True):
    """What `inspect` answers."""

    source: FileReport
    model: ModelInspection
    notes: tuple[Note, ...] = ()
