"""STEP writer (AP214): boundary representations as text, composed by numpy and Arrow without a CAD kernel."""

from __future__ import annotations

import io
import time
from dataclasses import dataclass, replace
from typing import BinaryIO

import numpy as np

from meshhub.builtin_plugins.step import StepWriteOptions
from meshhub.builtin_plugins.step.beginnings import DraftedSkin, count_facets, draft_skin
from meshhub.builtin_plugins.step.draft import Draft, Drafting
from meshhub.builtin_plugins.step.facets.bodies import orient_outward, shell_volumes
from meshhub.builtin_plugins.step.facets.skin import Skin, build_skin
from meshhub.builtin_plugins.step.kernel.kernel_check import (
    MAX_CHECK_RATIO,
    MAX_CHECK_S,
    MAX_FACES_COUNT,
    Verdict,
    find_load_error,
    is_available,
    read_back,
)
from meshhub.builtin_plugins.step.kernel.kernel_comparison import (
    GAPS,
    expected_bodies,
    find_faults,
    is_as_expected,
)
from meshhub.builtin_plugins.step.part21.appearance import collect_paint
from meshhub.builtin_plugins.step.part21.assembly import (
    ProductShape,
    ShapePlacement,
    collect_shapes,
    needs_assembly,
    write_assembly,
)
from meshhub.builtin_plugins.step.part21.brep import WrittenIds, write_model
from meshhub.builtin_plugins.step.part21.document import ProductIds, StepDocument
from meshhub.builtin_plugins.step.part21.part21 import Part21Writer, choose_decimals
from meshhub.builtin_plugins.step.recognition.design_values import count_design_radii
from meshhub.builtin_plugins.step.report import (
    DEVIATION,
    HAUSDORFF,
    RMS,
    Fault,
    WrittenProduct,
    note_facets,
    note_faults,
    note_rejected,
    note_smoothed,
    reject_invalid,
    report_products,
)
from meshhub.builtin_plugins.step.solids.distances import measure_distances
from meshhub.builtin_plugins.step.solids.model import BrepModel
from meshhub.builtin_plugins.step.surfaces.arrays import lengths
from meshhub.builtin_plugins.step.surfaces.kinds import ANALYTIC_KINDS, KINDS
from meshhub.builtin_plugins.step.surfaces.surface_array import SurfaceKind
from meshhub.errors import ConversionFailed
from meshhub.model.deadline import seconds_left
from meshhub.model.notes import did, note
from meshhub.model.progress import track
from meshhub.model.scene import Color, Float64, Scene
from meshhub.model.source import Target
from meshhub.toolkit.materials import note_lost_finish

_MAX_REPLACEMENTS_COUNT = 4
"""Models in which the faces that OpenCASCADE finds invalid are replaced, before surfaces are tried in groups."""

_RECHECKS = 4
"""Times that OpenCASCADE may check a file again after it found an invalid body, in seconds of the first check."""


@dataclass(eq=False)
class _ShapeState:
    """A shape that may be written again.

    drafting: candidates, and their checks
    draft:    what is written
    mesh_points: (p, 3) points of the mesh, if they were moved before
    noise_mm: mm, deviation of the noise of these points
    unmoved:  the same shape with the points of the mesh; None if that is what is written
    is_searched: whether surfaces were fitted to its smooth regions
    palette:  colors that the paint of the skin indexes; None for no color
    volume:   of the closed shells of the mesh, mm³
    """

    drafting: Drafting
    draft: Draft
    mesh_points: Float64 | None
    noise_mm: float
    unmoved: DraftedSkin | None
    is_searched: bool
    palette: list[Color | None]
    volume: float


@dataclass(frozen=True, eq=False)
class _SceneWriter:
    """Writer of a scene, for several attempts.

    uses:   number of instances of each shape
    states: by shape; empty if the scene has too many faces to be checked
    """

    scene: Scene
    options: StepWriteOptions
    shapes: list[ProductShape]
    placements: list[ShapePlacement]
    uses: list[int]
    states: dict[int, _ShapeState]

    def write_scene(self, stream: BinaryIO) -> list[WrittenProduct | None]:
        """Write all shapes and their assembly; return the product of each shape, None without a surface."""
        reach_mm = max((float(np.abs(placement.matrix[:3, 3]).max()) for placement in self.placements), default=0.0)
        decimals = choose_decimals(reach_mm, 0.0)
        document = StepDocument(Part21Writer(stream, decimals))
        sizes = [len(shape.mesh.faces) for shape in self.shapes]
        products = [self._write_shape(document, number) for number in track(range(len(self.shapes)), sizes)]
        if not any(products):
            raise ConversionFailed("every triangle of the model is degenerate: there is no surface to write")
        document.file.decimals = decimals
        if needs_assembly(self.placements):
            ids = [product.ids if product else None for product in products]
            write_assembly(document, self.scene, ids, self.placements)
        document.close()
        return products

    def can_simplify(self, fault: Fault) -> bool:
        """Return whether the body of a fault has simpler surfaces."""
        state = self.states.get(fault.shape)
        if state is None:
            return False
        return state.unmoved is not None or len(state.draft.find_curved(np.array(fault.body.shells, np.intp))) > 0

    def simplify(self, fault: Fault, deadline: float) -> None:
        """Keep the surfaces with which OpenCASCADE accepts the body of a fault."""
        state = self.states[fault.shape]
        if state.unmoved is not None:
            self.states[fault.shape] = _ShapeState(*state.unmoved, state.palette, state.volume)
            return

        def accept(model: BrepModel) -> bool:
            return self._find_fault(fault, model, deadline) is None

        shells = np.array(fault.body.shells, np.intp)
        state.draft = self._replace_faulty(fault, deadline) or state.drafting.keep_valid(
            state.draft, shells, fault.reason, accept, deadline
        )

    def _replace_faulty(self, fault: Fault, deadline: float) -> Draft | None:
        """Return a draft without the surfaces that OpenCASCADE finds invalid; None if it still rejects the body."""
        state, shells = self.states[fault.shape], np.array(fault.body.shells, np.intp)
        draft = state.draft
        for _ in range(_MAX_REPLACEMENTS_COUNT):
            regions = draft.find_faces(fault.faulty, shells)
            simpler = state.drafting.step_down(draft, regions, fault.reason) if len(regions) else None
            if simpler is None:
                return None
            remaining = self._find_fault(fault, simpler.model, deadline)
            if remaining is None:
                return simpler
            draft, fault = simpler, remaining
        return None

    def _find_fault(self, fault: Fault, model: BrepModel, deadline: float) -> Fault | None:
        """Return the fault of the same body in another model; None if OpenCASCADE accepts it there."""
        name = self.shapes[fault.shape].name
        bodies = expected_bodies(name, model)
        number = [body.name for body in bodies].index(fault.body.name)
        if len(model.regions.surfaces) > MAX_FACES_COUNT:
            # OpenCASCADE checks fewer faces; flat ones are the best guess
            is_mine = np.isin(model.skin.shell, fault.body.shells)
            return fault if model.regions.curved[model.regions.region[is_mine]].any() else None
        left = deadline - time.monotonic()
        volumes = [body.volume_mm3 for body in bodies if body.volume_mm3 is not None]
        verdict = read_back(self._write_alone(name, model), left, volumes) if left > 0 else None
        if verdict is None:
            return fault._replace(faulty=())
        reason = find_faults(verdict, bodies).get(number, GAPS)
        return None if reason == GAPS else Fault(fault.shape, bodies[number], reason, verdict.list_faulty(number))

    def read_alone(self, number: int, product: WrittenProduct, seconds: float) -> Verdict | None:
        """Read a file that holds one shape once."""
        state = self.states.get(number) or self._prepare_shape(number)
        assert state is not None
        return read_back(self._write_alone(product.name, state.draft.model), seconds, product.volumes)

    def _write_alone(self, name: str, model: BrepModel) -> bytes:
        """Return a file that holds one model once."""
        stream = io.BytesIO()
        document = StepDocument(Part21Writer(stream, choose_decimals(0.0, 0.0)))
        _write_product(document, name, model)
        document.close()
        return stream.getvalue()

    def _write_shape(self, document: StepDocument, number: int) -> WrittenProduct | None:
        """Write the product of one shape; nothing if all its triangles are degenerate."""
        state = self.states.get(number) or self._prepare_shape(number)
        if state is None:
            return None
        model, name, uses = state.draft.model, self.shapes[number].name, self.uses[number]
        product, ids = _write_product(document, name, model)
        _write_colors(document, model.skin, model.regions.region, ids, state.palette)
        if state.mesh_points is not None:
            model = replace(model, mesh_points=state.mesh_points)
        figures = _collect_figures(model, ids, state.volume, uses)
        return WrittenProduct(
            name,
            product,
            uses,
            expected_bodies(name, model),
            len(model.skin.closed),
            figures,
            state.draft.rejected,
            state.drafting.count_flat_facets(state.draft),
            state.noise_mm,
            len(model.skin.faces),
            0 if self.options.step_surfaces == "planar" else count_facets(model.regions),
            state.is_searched,
        )

    def _prepare_shape(self, number: int) -> _ShapeState | None:
        """Return a shape with its recognized surfaces; None if all its triangles are degenerate.

        It is kept for another attempt, as long as all shapes together have so few faces that OpenCASCADE checks them.
        """
        shape = self.shapes[number]
        mesh = shape.mesh
        paint, palette = collect_paint(self.scene, mesh, shape.material)
        skin = orient_outward(build_skin(mesh.vertices, mesh.faces, paint))
        if len(skin.faces) == 0:
            return None
        volume = float(shell_volumes(skin)[skin.closed].sum())
        drafted = draft_skin(skin, self.options, is_strict=not is_available())
        state = self.states[number] = _ShapeState(*drafted, palette, volume)
        if sum(len(kept.draft.model.regions.surfaces) for kept in self.states.values()) > MAX_FACES_COUNT:
            self.states.clear()
        return state


def _write_product(document: StepDocument, name: str, model: BrepModel) -> tuple[ProductIds, WrittenIds]:
    """Write a model as a product."""
    skin = model.skin
    area = float(lengths(skin.cross).sum()) / 2
    thickness_mm = abs(float(shell_volumes(skin)[skin.closed].sum())) / area if area else 0.0
    document.file.decimals = choose_decimals(float(np.abs(skin.points).max()), thickness_mm)
    ids = write_model(document.file, model)
    return document.write_product(name, ids.solids, ids.sheets), ids


def write(scene: Scene, target: Target, options: StepWriteOptions) -> None:
    """Write the scene as STEP and check the file.

    Where OpenCASCADE is installed, it reads the file back. The surfaces that make a body invalid return to simpler
    ones, and the file is written and read again.

    Args:
        scene: Millimeters, Z up.
        target: The file to write.
        options: Kinds of surfaces to recognize, and their tolerance.
    Raises:
        ConversionFailed: Every triangle is degenerate, coordinates are too large for STEP, or a body is not a valid
            solid and `step_invalid` is "reject".
    """
    shapes, placements = collect_shapes(scene)
    uses = np.bincount([placement.shape for placement in placements], minlength=len(shapes)).tolist()
    note_lost_finish("STEP", [scene.materials[index] for index in scene.used_materials()])
    writer = _SceneWriter(scene, options, shapes, placements, uses, {})
    started = time.monotonic()
    with target.open() as stream:
        products = writer.write_scene(stream)
    # B-spline faces of a scan take long to write, and as long to check
    deadline = _limit_checks(max(MAX_CHECK_S, time.monotonic() - started))
    began = time.monotonic()
    verdict = _check_file(target, products, deadline)
    faults = _find_faults(writer, products, verdict, deadline)
    doubtful = [fault for fault in faults if fault.is_invalid and writer.can_simplify(fault)]
    if doubtful:
        # without time to check simpler surfaces, all of them would become flat
        deadline = max(deadline, _limit_checks(_RECHECKS * (time.monotonic() - began)))
        for fault in doubtful:
            writer.simplify(fault, deadline)
        with target.open() as stream:
            products = writer.write_scene(stream)
        verdict = _check_file(target, products, deadline)
        faults = _find_faults(writer, products, verdict, deadline)
    if verdict is None:
        faults = _find_torn(products)
    if options.step_invalid == "reject":
        reject_invalid(products, faults)
    for product in products:
        if product:
            note_smoothed(product)
            note_facets(product)
            note_rejected(product)
    note_faults(faults)
    _report(products, verdict, faults)


def _limit_checks(seconds: float) -> float:
    """Return the end of checks that take so many seconds, or earlier, to leave time for writing the file again."""
    left = seconds_left()
    return time.monotonic() + (seconds if left is None else min(seconds, MAX_CHECK_RATIO * left))


def _find_torn(products: list[WrittenProduct | None]) -> list[Fault]:
    """Return the bodies that fail the check without a kernel."""
    return [
        Fault(number, body, "it is not closed, or its volume is wrong")
        for number, product in enumerate(products)
        for body in (product.bodies if product else ())
        if body.is_torn
    ]


def _check_file(target: Target, products: list[WrittenProduct | None], deadline: float) -> Verdict | None:
    """Return the file as OpenCASCADE reads it; None if it is not installed, the file too large, or the time over."""
    if not is_available() or _count_faces(products) > MAX_FACES_COUNT:
        return None
    volumes = [volume for product in products if product for volume in product.volumes]
    return read_back(target.read(), deadline - time.monotonic(), volumes)


def _count_faces(products: list[WrittenProduct | None]) -> int:
    return int(sum(product.figures["faces"] for product in products if product))


def _find_faults(
    writer: _SceneWriter, products: list[WrittenProduct | None], verdict: Verdict | None, deadline: float
) -> list[Fault]:
    """Return the bodies that OpenCASCADE rejects: all of them if it is unclear which, none without a verdict.

    A file with several instances does not show which shape is at fault, so each shape is then read separately.
    """
    numbered = [(number, product) for number, product in enumerate(products) if product]
    bodies = [body for _, product in numbered for body in product.bodies]
    uses = [product.uses for _, product in numbered for _ in product.bodies]
    if verdict is None or is_as_expected(verdict, bodies, uses):
        return []
    faults: list[Fault] = []
    for number, product in numbered:
        is_alone = len(numbered) == product.uses == 1
        shape_verdict: Verdict | None = verdict
        if not is_alone:
            shape_verdict = writer.read_alone(number, product, deadline - time.monotonic())
        if shape_verdict is not None:
            reasons = find_faults(shape_verdict, product.bodies)
            faults += [
                Fault(number, product.bodies[index], reason, shape_verdict.list_faulty(index))
                for index, reason in reasons.items()
            ]
    if faults:
        return faults
    reason = "OpenCASCADE finds the file invalid"
    return [Fault(number, body, reason) for number, product in numbered for body in product.bodies]


def _report(products: list[WrittenProduct | None], verdict: Verdict | None, faults: list[Fault]) -> None:
    """Report figures, notes and the result of the check."""
    report_products([product for product in products if product])
    if verdict is None:
        did(step_check="writer")
        if is_available():
            _note_unchecked(_count_faces(products))
    else:
        uses = [product.uses if product else 0 for product in products]
        faulty = sum(uses[fault.shape] for fault in faults if fault.is_invalid and fault.body.volume_mm3 is not None)
        valid = sum(solid.valid for solid in verdict.solids)
        did(step_check="kernel", valid_solids=max(0, min(valid, len(verdict.solids) - faulty)))


def _note_unchecked(faces_count: int) -> None:
    """Report that OpenCASCADE did not check the file."""
    if faces_count > MAX_FACES_COUNT:
        cause = f"the STEP file has {faces_count} faces, and OpenCASCADE checks at most {MAX_FACES_COUNT}"
    elif error := find_load_error():
        cause = f"OpenCASCADE cannot be loaded ({error}); 'meshhub doctor' says what is missing"
    else:
        cause = "OpenCASCADE did not finish its check of the STEP file in time"
    note("step_unchecked", f"{cause}; only the writer's own checks were made, so a solid may be invalid")


def _collect_figures(model: BrepModel, ids: WrittenIds, volume: float, uses: int) -> dict[str, int | float]:
    """Return the figures of a product.

    Args:
        model: The product's model.
        ids: What was written.
        volume: Volume of the closed shells of the mesh, mm³.
        uses: Number of instances.
    """
    surfaces = model.regions.surfaces
    kinds = np.bincount(surfaces.kind, minlength=len(SurfaceKind))
    off = measure_distances(model)
    return {
        "faces": len(surfaces),
        **{traits.plural: int(kinds[kind]) for kind, traits in KINDS.items() if kinds[kind] or kind in ANALYTIC_KINDS},
        "design_radii": count_design_radii(surfaces),
        "solids": len(ids.solids) * uses,
        "open_shells": len(model.bodies.sheets) * uses,
        DEVIATION: off.corners,
        HAUSDORFF: off.largest,
        RMS: off.rms,
        "mesh_area_mm2": off.area * uses,
        "mesh_volume_mm3": volume * uses,
        "volume_gained_mm3": (float(model.shell_volumes[model.skin.closed].sum()) - volume) * uses,
    }


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
