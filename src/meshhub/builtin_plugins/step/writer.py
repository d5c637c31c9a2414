"""STEP writer (AP214): boundary representations as text, composed by numpy and Arrow without a CAD kernel."""

from __future__ import annotations

import io
import time
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

import numpy as np

from meshhub.builtin_plugins.step import StepWriteOptions
from meshhub.builtin_plugins.step.recognition.arrays import lengths
from meshhub.builtin_plugins.step.recognition.bodies import orient_outward, shell_volumes
from meshhub.builtin_plugins.step.recognition.deviation import chord_volumes
from meshhub.builtin_plugins.step.recognition.skin import Skin, build_skin
from meshhub.builtin_plugins.step.recognition.surfaces import SurfaceKind, distances
from meshhub.builtin_plugins.step.writing.appearance import collect_paint
from meshhub.builtin_plugins.step.writing.assembly import (
    ProductShape,
    ShapePlacement,
    collect_shapes,
    needs_assembly,
    write_assembly,
)
from meshhub.builtin_plugins.step.writing.brep import BrepModel, WrittenIds, write_model
from meshhub.builtin_plugins.step.writing.document import ProductIds, StepDocument
from meshhub.builtin_plugins.step.writing.kernel_check import (
    MAX_CHECK_RATIO,
    MAX_CHECK_S,
    MAX_FACES_COUNT,
    Verdict,
    is_available,
    read_back,
)
from meshhub.builtin_plugins.step.writing.kernel_comparison import (
    ExpectedBody,
    expected_bodies,
    find_faults,
    is_as_expected,
)
from meshhub.builtin_plugins.step.writing.model_builder import build_model
from meshhub.builtin_plugins.step.writing.part21 import Part21Writer, choose_decimals
from meshhub.errors import ConversionFailed
from meshhub.model.deadline import seconds_left
from meshhub.model.notes import did, note
from meshhub.model.scene import Color, Scene
from meshhub.model.source import Target

_DEVIATION = "max_deviation_mm"

MANY_FACES_COUNT = 20_000
"""Faces beyond which CAD programs are slow: OpenCASCADE takes about a millisecond and 20 KB to read each."""


class _WrittenProduct(NamedTuple):
    """A product in the file.

    ids:         of the product
    uses:        number of its instances
    bodies:      its solids in file order, then its open shells
    shell_count: shells of its mesh
    figures:     for the report; they count every instance, except for faces
    """

    ids: ProductIds
    uses: int
    bodies: list[ExpectedBody]
    shell_count: int
    figures: dict[str, int | float]


class _Fault(NamedTuple):
    """A body that OpenCASCADE rejects; shape: index of its shape."""

    shape: int
    body: ExpectedBody
    reason: str


@dataclass(frozen=True, eq=False)
class _SceneWriter:
    """Writer of a scene, for several attempts.

    uses:        number of instances of each shape
    flat_shells: by shape, the shells that keep flat faces
    """

    scene: Scene
    options: StepWriteOptions
    shapes: list[ProductShape]
    placements: list[ShapePlacement]
    uses: list[int]
    flat_shells: dict[int, set[int]]

    def write_scene(self, stream: BinaryIO) -> list[_WrittenProduct | None]:
        """Write all shapes and their assembly; return the product of each shape, None without a surface."""
        reach_mm = max((float(np.abs(placement.matrix[:3, 3]).max()) for placement in self.placements), default=0.0)
        decimals = choose_decimals(reach_mm, 0.0)
        document = StepDocument(Part21Writer(stream, decimals))
        products = [self._write_shape(document, number) for number in range(len(self.shapes))]
        if not any(products):
            raise ConversionFailed("every triangle of the model is degenerate: there is no surface to write")
        document.file.decimals = decimals
        if needs_assembly(self.placements):
            ids = [product.ids if product else None for product in products]
            write_assembly(document, self.scene, ids, self.placements)
        document.close()
        return products

    def write_shape_alone(self, number: int) -> bytes:
        """Return a file that holds one shape once."""
        stream = io.BytesIO()
        document = StepDocument(Part21Writer(stream, choose_decimals(0.0, 0.0)))
        self._write_shape(document, number)
        document.close()
        return stream.getvalue()

    def _write_shape(self, document: StepDocument, number: int) -> _WrittenProduct | None:
        """Write the product of one shape; nothing if all its triangles are degenerate."""
        shape = self.shapes[number]
        mesh = shape.mesh
        paint, palette = collect_paint(self.scene, mesh, shape.material)
        skin = orient_outward(build_skin(mesh.vertices, mesh.faces, paint))
        if len(skin.faces) == 0:
            return None
        volume = float(shell_volumes(skin)[skin.closed].sum())
        area = float(lengths(skin.cross).sum()) / 2
        thickness_mm = abs(volume) / area if area else 0.0
        document.file.decimals = choose_decimals(float(np.abs(skin.points).max()), thickness_mm)
        model = build_model(skin, self.options, np.array(sorted(self.flat_shells.get(number, ())), np.intp))
        ids = write_model(document.file, model)
        product = document.write_product(shape.name, ids.solids, ids.sheets)
        _write_colors(document, skin, model.regions.region, ids, palette)
        figures = _collect_figures(model, ids, volume, skin.closed, self.uses[number])
        bodies = expected_bodies(shape.name, model)
        return _WrittenProduct(product, self.uses[number], bodies, len(skin.closed), figures)


def write(scene: Scene, target: Target, options: StepWriteOptions) -> None:
    """Write the scene as STEP and check the file.

    Where OpenCASCADE is installed, it reads the file back. Bodies that fail are written again with flat faces.

    Args:
        scene: Millimeters, Z up.
        target: The file to write.
        options: Kinds of surfaces to recognize, and their tolerance.
    Raises:
        ConversionFailed: Every triangle is degenerate, or coordinates are too large for STEP.
    """
    shapes, placements = collect_shapes(scene)
    uses = np.bincount([placement.shape for placement in placements], minlength=len(shapes)).tolist()
    writer = _SceneWriter(scene, options, shapes, placements, uses, {})
    with target.open() as stream:
        products = writer.write_scene(stream)
    left = seconds_left()
    limit = MAX_CHECK_S if left is None else min(MAX_CHECK_S, MAX_CHECK_RATIO * left)
    deadline = time.monotonic() + limit
    verdict = _check_file(target, products, deadline)
    faults = _find_faults(writer, products, verdict, deadline)
    if faults and options.step_surfaces == "analytic":
        for number, body, reason in faults:
            writer.flat_shells.setdefault(number, set()).update(body.shells)
            note("flat_body", f"{body.name} was written with flat faces only: with curved ones {reason}")
        with target.open() as stream:
            products = writer.write_scene(stream)
        verdict = _check_file(target, products, deadline)
        faults = _find_faults(writer, products, verdict, deadline)
    for _, body, reason in faults:
        note("invalid_solid", f"{body.name} is invalid in the STEP file: {reason}; 'repair' the model first")
    _report(products, verdict)


def _check_file(target: Target, products: list[_WrittenProduct | None], deadline: float) -> Verdict | None:
    """Return the file as OpenCASCADE reads it; None if it is not installed, the file too large, or the time over."""
    if not is_available():
        return None
    faces_count = sum(product.figures["faces"] for product in products if product)
    if faces_count > MAX_FACES_COUNT:
        note(
            "step_unchecked",
            f"the STEP file has {faces_count} faces, and OpenCASCADE checks at most {MAX_FACES_COUNT}; "
            "only the writer's own checks were made, so a solid may be invalid",
        )
        return None
    verdict = read_back(target.read(), deadline - time.monotonic())
    if verdict is None:
        note(
            "step_unchecked",
            "OpenCASCADE did not finish its check of the STEP file in time; only the writer's own checks were made, "
            "so a solid may be invalid",
        )
    return verdict


def _find_faults(
    writer: _SceneWriter, products: list[_WrittenProduct | None], verdict: Verdict | None, deadline: float
) -> list[_Fault]:
    """Return the bodies that OpenCASCADE rejects, all bodies if it is unclear which; none without a verdict.

    A file with several instances does not show which shape is at fault: each shape is then read by itself.
    """
    numbered = [(number, product) for number, product in enumerate(products) if product]
    bodies = [body for _, product in numbered for body in product.bodies]
    uses = [product.uses for _, product in numbered for _ in product.bodies]
    if verdict is None or is_as_expected(verdict, bodies, uses):
        return []
    faults: list[_Fault] = []
    for number, product in numbered:
        is_alone = len(numbered) == product.uses == 1
        shape_verdict: Verdict | None = verdict
        if not is_alone:
            shape_verdict = read_back(writer.write_shape_alone(number), deadline - time.monotonic())
        if shape_verdict is not None:
            reasons = find_faults(shape_verdict, product.bodies)
            faults += [_Fault(number, product.bodies[index], reason) for index, reason in reasons.items()]
    if faults:
        return faults
    reason = "OpenCASCADE finds the file invalid"
    return [_Fault(number, body, reason) for number, product in numbered for body in product.bodies]


def _report(products: list[_WrittenProduct | None], verdict: Verdict | None) -> None:
    """Report figures, open shells, many faces and the result of the check."""
    written = [product for product in products if product]
    # the figures of several products are added; of deviations, the largest counts
    did(max_deviation_mm=max(product.figures[_DEVIATION] for product in written))
    for product in written:
        did(**{name: value for name, value in product.figures.items() if name != _DEVIATION})
        sheets, faces = product.figures["open_shells"] // product.uses, product.figures["faces"]
        if sheets:
            note(
                "open_surface",
                f"{sheets} of {product.shell_count} shells are open or have no volume and became surfaces, not solids; "
                "'repair' closes holes",
            )
        if faces > MANY_FACES_COUNT:
            note(
                "many_faces",
                f"the STEP file has {faces} faces, which makes CAD programs slow; "
                "reduce the triangles with 'optimize_target_faces'",
            )
    if verdict is None:
        did(step_check="writer")
        for body in (body for product in written for body in product.bodies if body.is_torn):
            note("invalid_solid", f"{body.name} is not closed in the STEP file; 'repair' the model first")
    else:
        did(step_check="kernel", valid_solids=sum(solid.valid for solid in verdict.solids))


def _collect_figures(
    model: BrepModel, ids: WrittenIds, volume: float, closed: np.ndarray, uses: int
) -> dict[str, int | float]:
    """Return the figures of a product.

    Args:
        model: The product's model.
        ids: What was written.
        volume: Volume of the closed shells of the mesh, mm³.
        closed: (s,) whether a shell is closed.
        uses: Number of instances.
    """
    surfaces = model.regions.surfaces
    volumes = shell_volumes(model.skin) + chord_volumes(model.skin, model.regions.region, surfaces)
    kinds = np.bincount(surfaces.kind, minlength=len(SurfaceKind))
    named_kinds = (SurfaceKind.PLANE, SurfaceKind.CYLINDER, SurfaceKind.CONE, SurfaceKind.SPHERE)
    return {
        "faces": len(surfaces),
        **{f"{kind.name.lower()}s": int(kinds[kind]) for kind in named_kinds},
        "tori": int(kinds[SurfaceKind.TORUS]),
        "solids": len(ids.solids) * uses,
        "open_shells": len(model.bodies.sheets) * uses,
        _DEVIATION: _measure_deviation(model),
        "mesh_volume_mm3": volume * uses,
        "volume_gained_mm3": (float(volumes[closed].sum()) - volume) * uses,
    }


def _measure_deviation(model: BrepModel) -> float:
    """Return the largest distance of a corner of the mesh from the surface of its triangle, in millimeters."""
    region, faces = model.regions.region, model.skin.faces
    surfaces = model.regions.surfaces.take(region)
    points = model.skin.points
    return max(float(np.abs(distances(surfaces, points[corner])).max()) for corner in faces.T)


def _write_colors(
    document: StepDocument, skin: Skin, region: np.ndarray, ids: WrittenIds, palette: list[Color | None]
) -> None:
    """Color the bodies by the most frequent color of their faces, and the faces of other colors.

    Args:
        document: Output.
        skin: Its `paint` indexes the palette.
        region: (m,) region of each triangle; a region has one color.
        ids: Faces and bodies.
        palette: Colors; None for no color.
    """
    paint = np.empty(len(ids.faces), np.int32)
    paint[region] = skin.paint
    most_frequent = int(np.bincount(paint).argmax())
    body_color = palette[most_frequent]
    if body_color is not None:
        document.write_color(ids.solids + ids.sheets, body_color)
    for index in np.unique(paint).tolist():
        color = palette[index]
        if index != most_frequent and color is not None:
            document.write_color(ids.faces[paint == index].tolist(), color)
