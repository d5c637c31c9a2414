"""Conversion report: losses, notes, figures, timings. Inspection: topology and sizes of a model."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct, field

from meshhub.errors import ErrorValue
from meshhub.model.capabilities import Feature, Frame
from meshhub.model.features import FeatureTable
from meshhub.model.html import format_size, format_table, list_rows
from meshhub.model.notes import Figure, Note


class Loss(Struct, frozen=True):
    """Feature that the output cannot keep.

    In a chain, a loss is possible, because the source format can hold the feature. In a report, it is certain, because
    the source file holds the feature.
    """

    feature: Feature
    """The feature."""

    step: str
    """Id of the operation or of the format that drops it."""

    @property
    def code(self) -> str:
        """The code of the note that reports the loss."""
        return f"{self.feature}_dropped"


StepKind: TypeAlias = Literal["read", "operation", "check", "preview", "write", "render"]
"""Kind of a step of a chain."""


class StepReport(Struct, frozen=True, omit_defaults=True):
    """Report of one step."""

    step: str
    """Id of the operation or of the format."""

    kind: StepKind
    """Kind of the step."""

    seconds: float
    """Duration of the step."""

    figures: dict[str, Figure] = field(default_factory=dict)
    """Values that the step reported with `did`."""


class FileReport(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Input or output file of a conversion."""

    format: str
    """Id of the format."""

    bytes: int = 0
    """Size of the file."""

    faces: int = 0
    """Number of triangles; each instance counts."""

    parts: int = 0
    """Number of placed parts."""

    size_mm: tuple[float, float, float] | None = None
    """Extents along X, Y and Z in millimeters; None without triangles."""

    frame: Frame | None = None
    """Unit and up axis of the coordinates in the file; None if unknown."""


class Failure(Struct, frozen=True):
    """Reason for which a conversion failed."""

    error_code: str
    """Stable code for programs."""

    error: str
    """Message for people."""


class FileError(Struct, frozen=True, omit_defaults=True):
    """Reason for which one file of a batch failed."""

    file: str
    """Name of the file."""

    error: str
    """Message for people."""

    error_code: str
    """Stable code for programs."""

    values: dict[str, ErrorValue] = {}
    """Numbers and names in the message, for sentences in other languages."""


class Report(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Conversion report. It contains no file names."""

    source: FileReport
    """Input file."""

    target: FileReport
    """Output file; only its format after a failure."""

    feature_table: FeatureTable | None = None
    """Features of the source, if its format has exact surfaces."""

    steps: tuple[StepReport, ...] = ()
    """Reports of the steps, in the order of the chain."""

    losses: tuple[Loss, ...] = ()
    """Features of the source that the output does not keep."""

    notes: tuple[Note, ...] = ()
    """Notes for the caller."""

    seconds: float = 0.0
    """Duration of the conversion."""

    error: Failure | None = None
    """Reason of a failure; None after a success."""

    @property
    def ok(self) -> bool:
        """Whether the conversion succeeded."""
        return self.error is None

    def _repr_html_(self) -> str:
        """Describe the report for notebooks."""
        return format_table(
            f"{self.source.format} → {self.target.format}" if self.target.format else self.source.format,
            [
                ("error", self.error and f"{self.error.error} [{self.error.error_code}]"),
                *_describe_file("source", self.source),
                *_describe_file("target", self.target),
                *((step.step, _describe_step(step)) for step in self.steps),
                *list_rows("loss", [f"{loss.feature} (at {loss.step})" for loss in self.losses]),
                *list_rows("note", [f"{note.message} [{note.code}]" for note in self.notes]),
                ("duration", f"{self.seconds:.2f} s"),
            ],
        )


def _describe_file(label: str, file: FileReport) -> list[tuple[str, object]]:
    words = [f"{file.bytes:,} bytes", f"{file.faces:,} faces", format_size(file.size_mm)]
    return [(label, ", ".join(word for word in words if word))] if file.bytes else []


def _describe_step(step: StepReport) -> str:
    figures = [f"{name} {value}" for name, value in step.figures.items() if value and not isinstance(value, list)]
    return ", ".join([f"{step.seconds:.2f} s", *figures])


DefectKind = Literal["open_edges", "nonmanifold_edges", "flipped_faces", "stray_fragments"]
"""Kind of defects that have a place."""


class DefectPlace(Struct, frozen=True, kw_only=True):
    """Connected group of defects of one kind."""

    position_mm: tuple[float, float, float]
    """Center of the bounding box."""

    size_mm: float
    """Diagonal of the bounding box."""

    count: int
    """Number of edges or faces."""

    part: int
    """Index of the part."""


class Defects(Struct, frozen=True, kw_only=True):
    """Defects of one kind, with their places."""

    kind: DefectKind
    """Kind of the defects."""

    count: int
    """Number of edges, faces or fragments; each instance counts."""

    places_found: int
    """Number of connected groups."""

    places: tuple[DefectPlace, ...]
    """The groups with the most defects, at most fifty."""


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
    """

    size_mm: tuple[float, float, float]
    """Extents along X, Y and Z."""

    bounds_mm: tuple[tuple[float, float, float], tuple[float, float, float]]
    """Lower and upper corner of the bounding box."""

    faces: int
    """Number of triangles; each instance counts."""

    vertices: int
    """Number of welded vertices that faces use."""

    parts: int
    """Number of placed parts."""

    bodies: int
    """Number of connected shells that are not cavities."""

    cavities: int
    """Number of closed shells that face inward inside a body."""

    holes: int
    """Number of boundary loops."""

    open_edges: int
    """Number of edges with one face."""

    nonmanifold_edges: int
    """Number of edges with more than two faces."""

    inconsistent_edges: int
    """Number of edges that two faces use in the same direction."""

    degenerate_faces: int
    """Number of triangles without area."""

    watertight: bool
    """Whether every edge has exactly two faces, which are oriented alike."""

    volume_mm3: float | None
    """Enclosed volume; None if the faces do not use every edge equally often in both directions."""

    area_mm2: float
    """Surface area."""

    features: tuple[Feature, ...]
    """Features that the model has beside its triangles."""

    parts_listed: tuple[PartInspection, ...]
    """The first parts, at most a hundred."""

    findings: tuple[Defects, ...] = ()
    """Defects with their places; a kind without defects is absent."""


class Inspection(Struct, frozen=True, kw_only=True):
    """Result of `Registry.inspect`, `meshhub inspect` and `/inspect`."""

    source: FileReport
    """Input file."""

    model: ModelInspection
    """Topology and size."""

    feature_table: FeatureTable | None = None
    """Surfaces, radii and holes, if the format has exact surfaces; None otherwise."""

    figures: dict[str, Figure] = field(default_factory=dict)
    """Values that the reader reported by name, such as the time of a print; empty for most formats."""

    notes: tuple[Note, ...] = ()
    """Notes for the caller."""

    def _repr_html_(self) -> str:
        """Describe the inspection for notebooks."""
        model = self.model
        return format_table(
            f"Inspection of {self.source.format}",
            [
                ("size", format_size(model.size_mm)),
                ("faces", model.faces),
                ("parts", model.parts),
                ("bodies", model.bodies),
                ("cavities", model.cavities or None),
                ("volume", None if model.volume_mm3 is None else f"{model.volume_mm3:,.1f} mm³"),
                ("area", f"{model.area_mm2:,.1f} mm²"),
                ("watertight", "yes" if model.watertight else "no"),
                ("holes", model.holes),
                ("non-manifold edges", model.nonmanifold_edges),
                ("inconsistent edges", model.inconsistent_edges),
                ("carries", ", ".join(model.features) or "triangles only"),
                *list_rows("note", [f"{note.message} [{note.code}]" for note in self.notes]),
            ],
        )
