"""Reads STEP: products as meshes, instances as parts, colours as materials, tessellated by OpenCASCADE."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

import numpy as np

from meshhub.builtin_plugins.step import StepReadOptions
from meshhub.builtin_plugins.step.reading.envelope import checked
from meshhub.builtin_plugins.step.reading.kernel import Loaded, loaded
from meshhub.builtin_plugins.step.reading.tessellation import Surface, tessellate
from meshhub.builtin_plugins.step.reading.xcaf import Placement, Product, colored_shapes, placements, shape_of
from meshhub.errors import EmptyModel, ExternalReference, UnreadableFile, format_number
from meshhub.model.capabilities import MILLIMETRES_PER, Frame, Unit
from meshhub.model.notes import did, note
from meshhub.model.scene import Color, Float64, Material, Mesh, Part, Scene
from meshhub.model.source import Source

_FACES = (b"ADVANCED_FACE", b"FACE_SURFACE")
_TESSELLATED = (b"TRIANGULATED_FACE", b"TRIANGULATED_SURFACE_SET")
_CURVES = (b"GEOMETRIC_CURVE_SET", b"GEOMETRIC_SET", b"WIREFRAME", b"POLYLINE", b"TRIMMED_CURVE", b"B_SPLINE_CURVE")
_DOCUMENT_FILE = b"DOCUMENT_FILE"
_FILE_NAMED = re.compile(
    rb"EXTERNAL_IDENTIFICATION_ASSIGNMENT\s*\(\s*'([^']{1,200})'|DOCUMENT_FILE\s*\(\s*'([^']{1,200})'"
)


def read(source: Source, options: StepReadOptions) -> Scene:
    """A STEP file as a scene in the file's unit, Z up; each product is one mesh, closed where it is a solid.

    Raises UnreadableFile, EmptyModel, ExternalReference, ModelTooComplex.
    """
    data = checked(source.read())
    with loaded(data) as file:
        if not file.whole:
            raise _nothing(data, {})
        products, placed, roots = placements(file.document)
        surfaces = _surfaces(products, options)
    if not any(surface is not None and len(surface.faces) for surface in surfaces.values()):
        raise _nothing(data, surfaces)
    _tell(data, file, surfaces, options)
    return _Builder(products, surfaces, file.unit).scene(placed, roots)


def _surfaces(products: dict[str, Product], options: StepReadOptions) -> dict[str, Surface | None]:
    angle = math.radians(options.step_angle_degrees)
    made: dict[str, Surface | None] = {}
    for key, product in products.items():
        shape = shape_of(product.label)
        made[key] = (
            None
            if shape is None or shape.IsNull()
            else tessellate(shape, colored_shapes(product.label), options.step_deviation_mm, angle)
        )
    return made


def _nothing(data: bytes, surfaces: dict[str, Surface | None]) -> Exception:
    """Why there is no triangle."""
    if any(surface is not None for surface in surfaces.values()):
        return UnreadableFile(
            "none of the faces of the STEP file could be meshed: its geometry is damaged; "
            "check it in its CAD program and export it again"
        )
    if any(entity in data for entity in (*_FACES, *_TESSELLATED)):
        return UnreadableFile(
            "the STEP file has faces, but none of them can be read: its structure is damaged; export it again"
        )
    if _DOCUMENT_FILE in data:
        return ExternalReference(
            f"the shapes of this STEP assembly lie in other files ({_outside(data)}); export the assembly as one file"
        )
    if any(entity in data for entity in _CURVES):
        return EmptyModel(
            "the STEP file holds only curves (a wireframe or a sketch), no faces; export solids or surfaces"
        )
    return EmptyModel("the STEP file holds no shapes, only data about them; export it with its geometry")


def _outside(data: bytes) -> str:
    """The other files that a file names."""
    names = {(one or other).decode("utf-8", "replace") for one, other in _FILE_NAMED.findall(data)}
    return ", ".join(sorted(names)[:5]) or "without a name"


def _tell(data: bytes, file: Loaded, surfaces: dict[str, Surface | None], options: StepReadOptions) -> None:
    made = [surface for surface in surfaces.values() if surface is not None]
    faces, loose = sum(one.all_faces for one in made), sum(one.loose_faces for one in made)
    failed = sum(one.failed_faces for one in made)
    declared = sum(data.count(entity) for entity in _FACES)
    did(solids=sum(one.solids for one in made), faces=faces)
    if _DOCUMENT_FILE in data:
        note(
            "external_reference",
            f"the STEP file names other files ({_outside(data)}); shapes in them were left out: export it as one file",
        )
    if file.unresolved:
        note(
            "damaged_file",
            f"{file.unresolved} references in the STEP file lead to nothing: shapes may be missing; export it again",
        )
    if faces < declared:
        note("faces_lost", f"{declared - faces} of {declared} faces of the STEP file belong to no shape that was read")
    if failed:
        note("faces_not_meshed", f"{failed} of {faces} faces could not be meshed and were left out")
    if loose:
        note(
            "surface_model",
            f"{loose} of {faces} faces belong to no solid: the model may be open; 'repair' closes holes",
        )
    if len(made) < len(surfaces):
        note("curves_left_out", f"{len(surfaces) - len(made)} of {len(surfaces)} products have no faces, only curves")
    _tell_deviation(made, options.step_deviation_mm)


def _tell_deviation(surfaces: list[Surface], wanted: float) -> None:
    used = [surface.deviation for surface in surfaces]
    low, high = min(used), max(used)
    did(deviation_mm=high)
    if not math.isclose(low, wanted) or not math.isclose(high, wanted):
        span = (
            f"{format_number(low, 3)} mm"
            if math.isclose(low, high)
            else f"{format_number(low, 3)} to {format_number(high, 3)} mm"
        )
        note(
            "deviation_adjusted",
            f"step_deviation_mm={format_number(wanted)} does not suit the size of every part; {span} was used",
        )


@dataclass(eq=False)
class _Builder:
    """Meshes, materials and parts of a scene from surfaces."""

    products: dict[str, Product]
    surfaces: dict[str, Surface | None]
    unit: Unit
    _materials: dict[Color, int] = field(default_factory=dict)
    _meshes: list[Mesh] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)

    def scene(self, placed: list[Placement], roots: list[str]) -> Scene:
        """The scene in the file's unit."""
        overridden = {one.product for one in placed if one.own is not None}
        parts = [part for one in placed if (part := self._part(one, one.product in overridden)) is not None]
        return Scene(
            tuple(self._meshes),
            tuple(parts),
            tuple(_material(color) for color in self._materials),
            frame=Frame(self.unit, "z"),
            name=roots[0] if len(roots) == 1 else "",
        )

    def _part(self, one: Placement, overridden: bool) -> Part | None:
        """A placement as a part; a product's colour is its mesh's, unless an instance has another."""
        surface, product = self.surfaces[one.product], self.products[one.product]
        if surface is None or len(surface.faces) == 0:
            return None
        if one.product not in self._numbers:
            self._numbers[one.product] = len(self._meshes)
            self._meshes.append(self._mesh(surface, product, None if overridden else product.color))
        shown = (one.own or product.color) if overridden else None
        if product.color is None:
            shown = one.own or one.inherited
        return Part(
            self._numbers[one.product],
            self._scaled_matrix(one.matrix),
            one.name,
            one.path,
            None if shown is None else self._number(shown),
        )

    def _mesh(self, surface: Surface, product: Product, whole: Color | None) -> Mesh:
        table = np.array([*map(self._number, surface.colors), -1 if whole is None else self._number(whole)], np.int32)
        material = table[surface.color]
        return Mesh(
            surface.vertices / MILLIMETRES_PER[self.unit],
            surface.faces,
            face_material=material if bool((material >= 0).any()) else None,
            name=product.name,
        )

    def _number(self, color: Color) -> int:
        return self._materials.setdefault(color, len(self._materials))

    def _scaled_matrix(self, matrix: Float64) -> Float64:
        scaled = matrix.copy()
        scaled[:3, 3] /= MILLIMETRES_PER[self.unit]
        return scaled


def _material(color: Color) -> Material:
    return Material(base_color=color, alpha_mode="blend" if color[3] < 1 else "opaque")
