"""Conversion report: losses, notes, figures, timings. Inspection: topology and sizes of a model."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from meshhub.model.capabilities import Feature, Frame
from meshhub.model.notes import Figure, Note


class Loss(Struct, frozen=True):
    """Feature that the output cannot keep.

    In a chain a loss is possible: the source format can hold the feature. In a report it is certain: the source file
    holds the feature.

    Attributes:
        feature: The feature.
        step: Id of the operation or of the format that drops it.
    """

    feature: Feature
    step: str

    @property
    def code(self) -> str:
        """The code of the note that reports the loss."""
        return f"{'colours' if self.feature == 'colors' else self.feature}_dropped"


class StepReport(Struct, frozen=True, omit_defaults=True):
    """Report of one step.

    Attributes:
        step: Id of the operation or of the format.
        kind: Kind of the step.
        seconds: Duration of the step.
        figures: Values that the step reported with `did`.
    """

    step: str
    kind: Literal["read", "operation", "write"]
    seconds: float
    figures: dict[str, Figure] = field(default_factory=dict)


class FileReport(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Input or output file of a conversion.

    Attributes:
        format: Id of the format.
        bytes: Size of the file.
        faces: Number of triangles; each instance counts.
        parts: Number of placed parts.
        size_mm: Extents along X, Y and Z in millimeters; None without triangles.
        frame: Unit and up axis of the coordinates in the file; None if unknown.
    """

    format: str
    bytes: int = 0
    faces: int = 0
    parts: int = 0
    size_mm: tuple[float, float, float] | None = None
    frame: Frame | None = None


class Failure(Struct, frozen=True):
    """Reason for which a conversion failed.

    Attributes:
        error_code: Stable code for programs.
        error: Message for people.
    """

    error_code: str
    error: str


class Report(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Conversion report. It contains no file names.

    Attributes:
        source: Input file.
        target: Output file; only its format after a failure.
        steps: Reports of the steps, in the order of the chain.
        losses: Features of the source that the output does not keep.
        notes: Remarks for the caller.
        seconds: Duration of the conversion.
        error: Reason of a failure; None after a success.
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
    """Topology and size of one placed part; the fields are those of `ModelInspection`."""

    name: str
    faces: int
    bodies: int
    cavities: int
    watertight: bool
    size_mm: tuple[float, float, float]
    volume_mm3: float | None


class ModelInspection(Struct, frozen=True, kw_only=True):
    """Topology and size of a model, for the decision whether it can be printed.

    Topology is computed on welded vertices. Lengths are in millimeters, Z up.

    Attributes:
        size_mm: Extents along X, Y and Z.
        bounds_mm: Lower and upper corner of the bounding box.
        faces: Number of triangles; each instance counts.
        vertices: Number of welded vertices that faces use.
        parts: Number of placed parts.
        bodies: Number of connected shells that are not cavities.
        cavities: Number of closed shells that face inward inside of a body.
        holes: Number of boundary loops.
        open_edges: Number of edges with one face.
        nonmanifold_edges: Number of edges with more than two faces.
        inconsistent_edges: Number of edges that two faces use in the same direction.
        degenerate_faces: Number of triangles without area.
        watertight: Whether every edge has exactly two faces, which are oriented alike.
        volume_mm3: Enclosed volume; None unless the faces use every edge as often in one direction as in the other.
        area_mm2: Surface area.
        features: Features that the model has beside its triangles.
        parts_listed: The first parts, at most a hundred.
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
    """Result of `Registry.inspect`, `meshhub inspect` and `/inspect`.

    Attributes:
        source: Input file.
        model: Topology and size.
        notes: Remarks for the caller.
    """

    source: FileReport
    model: ModelInspection
    notes: tuple[Note, ...] = ()
