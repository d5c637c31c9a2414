"""STEP reader: products become meshes, instances become parts, colors become materials (through OpenCASCADE)."""

# why this way: docs/decisions/0011-step-reading.md
from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace

import numpy as np
from msgspec import structs

from meshhub.builtin_plugins.step import StepReadOptions
from meshhub.builtin_plugins.step.reading.envelope import check_envelope
from meshhub.builtin_plugins.step.reading.features import UNKNOWN_SIZE, list_features, rounded_vector
from meshhub.builtin_plugins.step.reading.kernel import HIDING_ENTITY, LoadedFile, load_file
from meshhub.builtin_plugins.step.reading.surface_kinds import SURFACE_COLORS, iterate_surface_colors
from meshhub.builtin_plugins.step.reading.tessellation import Tessellation, tessellate
from meshhub.builtin_plugins.step.reading.texts import normalize_strings
from meshhub.builtin_plugins.step.reading.xcaf import (
    Contents,
    PlacedProduct,
    XcafProduct,
    collect_products,
    is_null,
    iterate_colored_shapes,
)
from meshhub.errors import EmptyModel, ExternalReference, UnreadableFile, format_count, format_number
from meshhub.model.capabilities import MILLIMETERS_PER, Frame, Unit
from meshhub.model.features import FeatureTable
from meshhub.model.notes import did, note
from meshhub.model.progress import track
from meshhub.model.scene import Color, Float64, Material, Mesh, Part, Scene
from meshhub.model.source import Source
from meshhub.toolkit.geometry import bounds
from meshhub.toolkit.visibility import report_hidden

_FACE_ENTITIES = (b"ADVANCED_FACE", b"FACE_SURFACE")
_TESSELLATED_ENTITIES = (b"TRIANGULATED_FACE", b"TRIANGULATED_SURFACE_SET")
_CURVE_ENTITIES = (
    b"GEOMETRIC_CURVE_SET",
    b"GEOMETRIC_SET",
    b"WIREFRAME",
    b"POLYLINE",
    b"TRIMMED_CURVE",
    b"B_SPLINE_CURVE",
)
_DOCUMENT_FILE = b"DOCUMENT_FILE"
_EXTERNAL_NAME = re.compile(
    rb"EXTERNAL_IDENTIFICATION_ASSIGNMENT\s*\(\s*'([^']{1,200})'|DOCUMENT_FILE\s*\(\s*'([^']{1,200})'"
)
_MAX_NAMES_COUNT = 5
"""File names in a message; keeps it short."""


def read(source: Source, options: StepReadOptions) -> Scene:
    """Read a STEP file and tessellate its surfaces.

    Args:
        source: The STEP file.
        options: Bounds of the tessellation's deviation and angle.
    Returns:
        Scene in the file's unit, Z up. Each product is one mesh, closed where the product is solid.
    Raises:
        UnreadableFile: The file is truncated, damaged or not a STEP model.
        EmptyModel: The file has no faces.
        ExternalReference: The geometry is in other files.
        ModelTooComplex: The assembly has too many instances or levels.
    """
    return _read(source, options, lists_features=False)[0]


def read_with_features(source: Source, options: StepReadOptions) -> tuple[Scene, FeatureTable | None]:
    """Read a STEP file as `read` does, and list its faces, radii and holes.

    Returns:
        Scene, and the feature table; None if the kernel cannot list the features, with a note, or `step_reading` is
        "plain".
    """
    return _read(source, options, lists_features=True)


def _read(source: Source, options: StepReadOptions, *, lists_features: bool) -> tuple[Scene, FeatureTable | None]:
    data, is_plain = normalize_strings(check_envelope(source.read())), options.step_reading == "plain"
    with load_file(data, is_plain=is_plain) as file:
        if not file.is_complete:
            raise _no_triangles_error(data, {})
        contents, tessellations, hidden_face_count = _read_products(file, data, options)
        products, placements = contents.products, contents.placements
        if options.step_colors == "surface":
            products = {key: replace(product, color=None) for key, product in products.items()}
            placements = [replace(placement, own_color=None, inherited_color=None) for placement in placements]
        features = _list_features(products, placements) if lists_features and not is_plain else None
    if not _has_triangles(tessellations):
        raise _no_triangles_error(data, tessellations)
    _report(data, file, tessellations, options, hidden_face_count)
    names = {color: kind for kind, color in SURFACE_COLORS.items()} if options.step_colors == "surface" else {}
    scene = _SceneBuilder(products, tessellations, file.unit, names).build(placements, contents.roots)
    if features is not None and features.size_mm == UNKNOWN_SIZE:
        extent = np.ptp(bounds(scene), axis=0) * MILLIMETERS_PER[file.unit]
        features = structs.replace(features, size_mm=rounded_vector(extent))
    return scene, features


def _read_products(
    file: LoadedFile, data: bytes, options: StepReadOptions
) -> tuple[Contents, dict[str, Tessellation | None], int]:
    """Return the products, their triangles, and the number of faces that are left out because they are hidden.

    Hidden products are read only if nothing else has triangles.
    """
    contents = collect_products(file.document, reads_hidden=HIDING_ENTITY not in data)
    tessellations = _tessellate_products(contents.products, options)
    if not contents.hidden_count:
        return contents, tessellations, 0
    whole = collect_products(file.document, reads_hidden=True)
    is_all_hidden = not _has_triangles(tessellations)
    report_hidden(contents.hidden_count, is_read=is_all_hidden)
    if is_all_hidden:
        return whole, _tessellate_products(whole.products, options), 0
    return contents, tessellations, whole.face_count() - contents.face_count()


def _list_features(products: dict[str, XcafProduct], placements: list[PlacedProduct]) -> FeatureTable | None:
    """Return the feature table, None with a note if the kernel fails."""
    shapes = {key: product.shape for key, product in products.items()}
    try:
        return list_features({key: shape for key, shape in shapes.items() if not is_null(shape)}, placements)
    except MemoryError:
        raise
    except Exception as failure:
        note("features_not_listed", f"the CAD kernel cannot list radii and holes ({type(failure).__name__})")
        return None


def _tessellate_products(products: dict[str, XcafProduct], options: StepReadOptions) -> dict[str, Tessellation | None]:
    """Return the triangles of each product; None for a product without faces."""
    angle_rad = math.radians(options.step_angle_degrees)
    tessellations: dict[str, Tessellation | None] = {}
    for key, product in track(products.items()):
        shape = product.shape
        if is_null(shape):
            tessellations[key] = None
        else:
            by_surface = options.step_colors == "surface"
            colors = iterate_surface_colors(shape) if by_surface else iterate_colored_shapes(product)
            tessellations[key] = tessellate(
                shape, colors, options.step_deviation_mm, angle_rad, is_plain=options.step_reading == "plain"
            )
    return tessellations


def _has_triangles(tessellations: dict[str, Tessellation | None]) -> bool:
    return any(item is not None and len(item.faces) for item in tessellations.values())


def _no_triangles_error(data: bytes, tessellations: dict[str, Tessellation | None]) -> Exception:
    """Return the error that explains why a file yields no triangles."""
    if any(item is not None for item in tessellations.values()):
        return UnreadableFile(
            "none of the faces of the STEP file could be meshed: its geometry is damaged; "
            "check it in its CAD program and export it again"
        )
    if any(entity in data for entity in (*_FACE_ENTITIES, *_TESSELLATED_ENTITIES)):
        return UnreadableFile(
            "the STEP file has faces, but none of them can be read: its structure is damaged; export it again"
        )
    if _DOCUMENT_FILE in data:
        return ExternalReference(
            f"the shapes of this STEP assembly are in other files ({_external_names(data)}); "
            "export the assembly as one file",
            values={"files": _external_names(data)},
        )
    if any(entity in data for entity in _CURVE_ENTITIES):
        return EmptyModel(
            "the STEP file holds only curves (a wireframe or a sketch), no faces; export solids or surfaces"
        )
    return EmptyModel("the STEP file holds no shapes, only data about them; export it with its geometry")


def _external_names(data: bytes) -> str:
    """Return the names of other files that a STEP file refers to, for a message."""
    names = {(first or second).decode("utf-8", "replace") for first, second in _EXTERNAL_NAME.findall(data)}
    return ", ".join(sorted(names)[:_MAX_NAMES_COUNT]) or "without a name"


def _report(
    data: bytes,
    file: LoadedFile,
    tessellations: dict[str, Tessellation | None],
    options: StepReadOptions,
    hidden_face_count: int,
) -> None:
    """Report figures, and notes about everything that was not read."""
    used = [item for item in tessellations.values() if item is not None]
    faces, loose = sum(item.face_count for item in used), sum(item.loose_face_count for item in used)
    failed = sum(item.failed_face_count for item in used)
    declared = sum(data.count(entity) for entity in _FACE_ENTITIES) - hidden_face_count
    did(solids=sum(item.solid_count for item in used), faces=faces)
    if _DOCUMENT_FILE in data:
        note(
            "external_reference",
            f"the STEP file refers to other files ({_external_names(data)}), which were not read; "
            "export it as one file",
        )
    if file.unresolved_count:
        note(
            "damaged_file",
            f"{format_count(file.unresolved_count, 'reference', 'references')} without a target in the STEP file: "
            "shapes may be missing; "
            "export it again",
            count=file.unresolved_count,
        )
    if faces < declared:
        note(
            "faces_lost",
            f"{declared - faces} of {declared} faces of the STEP file belong to no readable shape; export it again",
            count=declared - faces,
            total=declared,
        )
    if failed:
        note(
            "faces_not_meshed",
            f"{failed} of {faces} faces could not be meshed and were left out; use {{repair}}",
            options=("repair",),
            count=failed,
            total=faces,
        )
    if open_count := sum(item.open_solid_count for item in used):
        solid_count = sum(item.solid_count for item in used)
        note(
            "open_solid",
            f"{open_count} of {solid_count} solids are not closed as meshes; {{repair}} closes holes",
            options=("repair",),
            count=open_count,
            total=solid_count,
        )
    if inexact := sum(item.inexact_face_count for item in used):
        note(
            "inexact_faces",
            f"the triangles of {inexact} of {faces} faces do not have the area of their surface; "
            "inspect the model or set a smaller {step_deviation_mm}",
            options=("step_deviation_mm",),
            count=inexact,
            total=faces,
        )
    if unchecked := sum(item.unchecked_face_count for item in used):
        note(
            "faces_unchecked",
            f"the CAD kernel cannot measure the area of {unchecked} of {faces} faces, to which their triangles are "
            "compared; inspect the model",
            count=unchecked,
            total=faces,
        )
    if loose:
        note(
            "surface_model",
            f"{loose} of {faces} faces belong to no solid: the model may be open; {{repair}} closes holes",
            options=("repair",),
            count=loose,
            total=faces,
        )
    if len(used) < len(tessellations):
        note(
            "curves_left_out",
            f"{len(tessellations) - len(used)} of {len(tessellations)} products have only curves, which were left out",
            count=len(tessellations) - len(used),
            total=len(tessellations),
        )
    _report_deviation(used, options.step_deviation_mm)


def _report_deviation(tessellations: list[Tessellation], requested_mm: float) -> None:
    used = [item.deviation_mm for item in tessellations]
    low, high = min(used), max(used)
    did(deviation_mm=high)
    if not math.isclose(low, requested_mm) or not math.isclose(high, requested_mm):
        span = (
            f"{format_number(low, 3)} mm"
            if math.isclose(low, high)
            else f"{format_number(low, 3)} to {format_number(high, 3)} mm"
        )
        note(
            "deviation_adjusted",
            f"{{step_deviation_mm}} of {format_number(requested_mm)} mm does not suit the size of every part; "
            f"{span} was used",
            options=("step_deviation_mm",),
            requested=requested_mm,
            greatest=high,
        )


@dataclass(eq=False)
class _SceneBuilder:
    """Builder of meshes, materials and parts from tessellated products."""

    products: dict[str, XcafProduct]
    tessellations: dict[str, Tessellation | None]
    unit: Unit
    color_names: dict[Color, str]
    _materials: dict[Color, int] = field(default_factory=dict)
    _meshes: list[Mesh] = field(default_factory=list)
    _mesh_numbers: dict[str, int] = field(default_factory=dict)

    def build(self, placements: list[PlacedProduct], roots: list[str]) -> Scene:
        """Return the scene in the file's unit, Z up."""
        overridden = {placement.product for placement in placements if placement.own_color is not None}
        parts = [self._build_part(placement, placement.product in overridden) for placement in placements]
        return Scene(
            tuple(self._meshes),
            tuple(part for part in parts if part is not None),
            tuple(_material(color, self.color_names.get(color, "")) for color in self._materials),
            frame=Frame(self.unit, "z"),
            name=roots[0] if len(roots) == 1 else "",
        )

    def _build_part(self, placement: PlacedProduct, is_overridden: bool) -> Part | None:
        """Return the part of a placement; None without triangles.

        The color of a product is its mesh's, unless an instance of the product has its own color.
        """
        key = placement.product
        tessellation, product = self.tessellations[key], self.products[key]
        if tessellation is None or len(tessellation.faces) == 0:
            return None
        if key not in self._mesh_numbers:
            self._mesh_numbers[key] = len(self._meshes)
            self._meshes.append(self._build_mesh(tessellation, product, None if is_overridden else product.color))
        color = (placement.own_color or product.color) if is_overridden else None
        if product.color is None:
            color = placement.own_color or placement.inherited_color
        return Part(
            self._mesh_numbers[key],
            self._matrix_in_file_unit(placement.matrix),
            placement.name,
            placement.path,
            None if color is None else self._material_number(color),
        )

    def _build_mesh(self, tessellation: Tessellation, product: XcafProduct, mesh_color: Color | None) -> Mesh:
        material_of_color = [self._material_number(color) for color in tessellation.colors]
        # the last entry is the one that the color index -1 selects
        uncolored = -1 if mesh_color is None else self._material_number(mesh_color)
        material = np.array([*material_of_color, uncolored], np.int32)[tessellation.color]
        return Mesh(
            tessellation.vertices / MILLIMETERS_PER[self.unit],
            tessellation.faces,
            face_material=material if bool((material >= 0).any()) else None,
            name=product.name,
        )

    def _material_number(self, color: Color) -> int:
        return self._materials.setdefault(color, len(self._materials))

    def _matrix_in_file_unit(self, matrix: Float64) -> Float64:
        scaled = matrix.copy()
        scaled[:3, 3] /= MILLIMETERS_PER[self.unit]
        return scaled


def _material(color: Color, name: str) -> Material:
    return Material(name, base_color=color, alpha_mode="blend" if color[3] < 1 else "opaque")
