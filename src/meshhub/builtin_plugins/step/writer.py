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
from meshhub.builtin_plugins.step.recognition.design_values import count_design_radii
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
from meshhub.builtin_plugins.step.writing.model_builder import ModelDraft
from meshhub.builtin_plugins.step.writing.part21 import Part21Writer, choose_decimals
from meshhub.builtin_plugins.step.writing.repair import find_causes
from meshhub.errors import ConversionFailed
from meshhub.model.deadline import seconds_left
from meshhub.model.notes import advise_reduction, did, note
from meshhub.model.progress import track
from meshhub.model.scene import Color, Scene
from meshhub.model.source import Target
from meshhub.toolkit.geometry import IntIndex
from meshhub.toolkit.materials import note_lost_finish

_DEVIATION = "max_deviation_mm"

_MAX_REPAIRS_COUNT = 4
"""Times that a file is written again; at the last time, bodies that are still invalid get flat faces."""
_NO_REGIONS: IntIndex = np.empty(0, np.intp)
"""Causes of a fault that has no known place."""
_MAX_GAINED_RATIO = 0.005
"""Share of the volume of a mesh by which that of its file may differ without a note; a ring of 36 facets gains it."""
MANY_FACES_COUNT = 20_000
"""Faces beyond which CAD programs are slow: OpenCASCADE takes about a millisecond and 20 KB to read each."""


_FREE_FIGURES = {
    SurfaceKind.EXTRUSION: "extrusions",
    SurfaceKind.REVOLUTION: "revolutions",
    SurfaceKind.PATCH: "bsplines",
}
"""Figures of free-form surfaces, which are reported only if they are not zero."""


class _WrittenProduct(NamedTuple):
    """A product in the file.

    name:        for notes
    ids:         of the product
    uses:        number of its instances
    bodies:      its solids in file order, then its open shells
    shell_count: shells of its mesh
    figures:     for the report; they count every instance, except for faces
    """

    name: str
    ids: ProductIds
    uses: int
    bodies: list[ExpectedBody]
    shell_count: int
    figures: dict[str, int | float]

    @property
    def volumes(self) -> list[float]:
        """Expected volumes of its solids, mm³."""
        return [body.volume_mm3 for body in self.bodies if body.volume_mm3 is not None]


class _Fault(NamedTuple):
    """A body that OpenCASCADE rejects.

    shape:  index of its shape
    causes: its curved regions that are at fault; none if this is unclear
    """

    shape: int
    body: ExpectedBody
    reason: str
    causes: IntIndex


class _Fallback(NamedTuple):
    """A body that was written again.

    reason:   why OpenCASCADE rejected it first
    surfaces: number of its surfaces that became flat; None for all
    """

    reason: str
    surfaces: int | None


@dataclass(eq=False)
class _ShapeState:
    """A shape that may be written again.

    draft:       facets, and the surfaces to try
    model:       what was written; None if the draft changed since
    palette:     colors that the paint of the skin indexes; None for no color
    volume:      of the closed shells of the mesh, mm³
    is_repaired: whether OpenCASCADE rejected a body of it
    """

    draft: ModelDraft
    model: BrepModel | None
    palette: list[Color | None]
    volume: float
    is_repaired: bool = False


@dataclass(frozen=True, eq=False)
class _SceneWriter:
    """Writer of a scene, for several attempts.

    uses:   number of instances of each shape
    states: by shape; empty if the scene has too many faces to be checked, and so is written once
    """

    scene: Scene
    options: StepWriteOptions
    shapes: list[ProductShape]
    placements: list[ShapePlacement]
    uses: list[int]
    states: dict[int, _ShapeState]

    def write_scene(self, stream: BinaryIO) -> list[_WrittenProduct | None]:
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

    def write_shape_alone(self, number: int) -> bytes:
        """Return a file that holds one shape once."""
        stream = io.BytesIO()
        document = StepDocument(Part21Writer(stream, choose_decimals(0.0, 0.0)))
        self._write_shape(document, number)
        document.close()
        return stream.getvalue()

    def has_curved_faces(self, fault: _Fault) -> bool:
        """Return whether the body of a fault has faces that can return to facets."""
        model = self.states[fault.shape].model
        assert model is not None
        is_mine = np.isin(model.skin.shell, fault.body.shells)
        return bool(model.regions.curved[model.regions.region[is_mine]].any())

    def return_to_facets(self, fault: _Fault, *, whole_body: bool) -> int | None:
        """Return the causes of a fault to facets, or its whole body; return the number of causes, None for all."""
        state = self.states[fault.shape]
        assert state.model is not None
        state.is_repaired = True
        is_local = not whole_body and len(fault.causes) > 0
        if is_local:
            state.draft.reject(state.model.regions, fault.causes)
        else:
            state.draft.flatten(np.array(fault.body.shells, np.intp))
        return len(fault.causes) if is_local else None

    def _write_shape(self, document: StepDocument, number: int) -> _WrittenProduct | None:
        """Write the product of one shape; nothing if all its triangles are degenerate."""
        state = self.states.get(number) or self._prepare_shape(number)
        if state is None:
            return None
        model = state.model = state.model or state.draft.build()
        self.states[number] = state
        self._forget_unchecked()
        skin = model.skin
        area = float(lengths(skin.cross).sum()) / 2
        thickness_mm = abs(state.volume) / area if area else 0.0
        document.file.decimals = choose_decimals(float(np.abs(skin.points).max()), thickness_mm)
        ids = write_model(document.file, model)
        name = self.shapes[number].name
        product = document.write_product(name, ids.solids, ids.sheets)
        _write_colors(document, skin, model.regions.region, ids, state.palette)
        figures = _collect_figures(model, ids, state.volume, skin.closed, self.uses[number])
        bodies = expected_bodies(name, model)
        return _WrittenProduct(name, product, self.uses[number], bodies, len(skin.closed), figures)

    def _forget_unchecked(self) -> None:
        """Forget the shapes if they have too many faces to be checked, unless one of them is under repair."""
        faces = sum(len(state.model.regions.surfaces) for state in self.states.values() if state.model)
        if faces > MAX_FACES_COUNT and not any(state.is_repaired for state in self.states.values()):
            self.states.clear()

    def _prepare_shape(self, number: int) -> _ShapeState | None:
        """Return a shape with its recognized surfaces; None if all its triangles are degenerate."""
        shape = self.shapes[number]
        mesh = shape.mesh
        paint, palette = collect_paint(self.scene, mesh, shape.material)
        skin = orient_outward(build_skin(mesh.vertices, mesh.faces, paint))
        if len(skin.faces) == 0:
            return None
        volume = float(shell_volumes(skin)[skin.closed].sum())
        return _ShapeState(ModelDraft(skin, self.options, is_strict=not is_available()), None, palette, volume)


def write(scene: Scene, target: Target, options: StepWriteOptions) -> None:
    """Write the scene as STEP and check the file.

    Where OpenCASCADE is installed, it reads the file back. The surfaces that make a body invalid return to facets, and
    the file is written and read again; at last, all surfaces of the body do.

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
    seconds = max(MAX_CHECK_S, time.monotonic() - started)
    left = seconds_left()
    deadline = time.monotonic() + (seconds if left is None else min(seconds, MAX_CHECK_RATIO * left))
    verdict = _check_file(target, products, deadline)
    faults = _find_faults(writer, products, verdict, deadline)
    fallbacks: dict[tuple[int, str], _Fallback] = {}
    for attempt in range(_MAX_REPAIRS_COUNT if options.step_surfaces != "planar" else 0):
        # a body that stays invalid with flat faces is not written again
        faults_to_repair = [fault for fault in faults if writer.has_curved_faces(fault)]
        if not faults_to_repair:
            break
        for fault in faults_to_repair:
            whole_body = attempt == _MAX_REPAIRS_COUNT - 1 or verdict is None
            before = fallbacks.get((fault.shape, fault.body.name), _Fallback(fault.reason, 0))
            count = writer.return_to_facets(fault, whole_body=whole_body)
            surfaces = None if count is None or before.surfaces is None else before.surfaces + count
            fallbacks[fault.shape, fault.body.name] = _Fallback(before.reason, surfaces)
        for fault in faults_to_repair:
            writer.states[fault.shape].model = None
        with target.open() as stream:
            products = writer.write_scene(stream)
        verdict = _check_file(target, products, deadline)
        if verdict is not None:
            faults = _find_faults(writer, products, verdict, deadline)
    if verdict is None:
        faults = _find_torn(products)
    if options.step_invalid == "reject":
        _reject_invalid(products, faults)
    _note_faults(fallbacks, faults)
    _report(products, verdict, faults)


def _find_torn(products: list[_WrittenProduct | None]) -> list[_Fault]:
    """Return the bodies that fail the check without a kernel."""
    return [
        _Fault(number, body, "it is not closed, or its volume is wrong", _NO_REGIONS)
        for number, product in enumerate(products)
        for body in (product.bodies if product else ())
        if body.is_torn
    ]


def _reject_invalid(products: list[_WrittenProduct | None], faults: list[_Fault]) -> None:
    """Raise an error if a solid is invalid; open shells are not solids."""
    invalid = [fault for fault in faults if fault.body.volume_mm3 is not None]
    if invalid:
        count = sum(body.volume_mm3 is not None for product in products if product for body in product.bodies)
        raise ConversionFailed(
            f"{len(invalid)} of {count} bodies are not valid solids in STEP ({invalid[0].body.name}: "
            f"{invalid[0].reason}); use {{repair}}, or set {{step_invalid=keep}}",
            code="invalid_solid",
            options=("repair", "step_invalid"),
        )


def _note_faults(fallbacks: dict[tuple[int, str], _Fallback], faults: list[_Fault]) -> None:
    """Report bodies with fewer surfaces, and those that are still invalid."""
    for (_, name), fallback in fallbacks.items():
        if fallback.surfaces is None:
            note("flat_body", f"{name} was written with simpler faces: with the curved ones {fallback.reason}")
        else:
            note(
                "flat_faces",
                f"{name} has simpler faces in place of {fallback.surfaces} curved ones: with these {fallback.reason}",
            )
    for _, body, reason, _ in faults:
        note(
            "invalid_solid",
            f"{body.name} is invalid in the STEP file: {reason}; use {{repair}}",
            options=("repair",),
        )


def _check_file(target: Target, products: list[_WrittenProduct | None], deadline: float) -> Verdict | None:
    """Return the file as OpenCASCADE reads it; None if it is not installed, the file too large, or the time over."""
    if not is_available() or _count_faces(products) > MAX_FACES_COUNT:
        return None
    volumes = [volume for product in products if product for volume in product.volumes]
    return read_back(target.read(), deadline - time.monotonic(), volumes)


def _count_faces(products: list[_WrittenProduct | None]) -> int:
    return int(sum(product.figures["faces"] for product in products if product))


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
            shape_verdict = read_back(writer.write_shape_alone(number), deadline - time.monotonic(), product.volumes)
        if shape_verdict is not None:
            for index, reason in find_faults(shape_verdict, product.bodies).items():
                body, model, causes = product.bodies[index], writer.states[number].model, _NO_REGIONS
                if model is not None and index < min(len(model.bodies.solids), len(shape_verdict.solids)):
                    causes = find_causes(model, body.shells, shape_verdict.solids[index])
                faults.append(_Fault(number, body, reason, causes))
    if faults:
        return faults
    reason = "OpenCASCADE finds the file invalid"
    return [_Fault(number, body, reason, _NO_REGIONS) for number, product in numbered for body in product.bodies]


def _report(products: list[_WrittenProduct | None], verdict: Verdict | None, faults: list[_Fault]) -> None:
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
                "{repair} closes holes",
                options=("repair",),
            )
        _note_gain(product)
        if faces > MANY_FACES_COUNT:
            advice, options = advise_reduction()
            note(
                "many_faces",
                f"the STEP file has {faces} faces, which makes CAD programs slow; {advice}",
                options=options,
            )
    if verdict is None:
        did(step_check="writer")
        if is_available():
            _note_unchecked(_count_faces(products))
    else:
        uses = [product.uses if product else 0 for product in products]
        faulty = sum(uses[fault.shape] for fault in faults if fault.body.volume_mm3 is not None)
        valid = sum(solid.valid for solid in verdict.solids)
        did(step_check="kernel", valid_solids=max(0, min(valid, len(verdict.solids) - faulty)))


def _note_gain(product: _WrittenProduct) -> None:
    """Report a volume that differs from that of the mesh."""
    gained, volume = product.figures["volume_gained_mm3"], product.figures["mesh_volume_mm3"]
    if abs(gained) > _MAX_GAINED_RATIO * abs(volume):
        percent = f" ({gained / volume:+.2%})" if volume else ""
        note(
            "volume_changed",
            f"round surfaces change the volume of {product.name!r} by {gained / product.uses:+.4g} mm³{percent}; "
            "set {step_surfaces=planar} to keep the facets",
            options=("step_surfaces",),
        )


def _note_unchecked(faces_count: int) -> None:
    """Report that OpenCASCADE did not check the file."""
    if faces_count > MAX_FACES_COUNT:
        cause = f"the STEP file has {faces_count} faces, and OpenCASCADE checks at most {MAX_FACES_COUNT}"
    else:
        cause = "OpenCASCADE did not finish its check of the STEP file in time"
    note("step_unchecked", f"{cause}; only the writer's own checks were made, so a solid may be invalid")


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
    kinds = np.bincount(surfaces.kind, minlength=len(SurfaceKind))
    named_kinds = (SurfaceKind.PLANE, SurfaceKind.CYLINDER, SurfaceKind.CONE, SurfaceKind.SPHERE)
    return {
        "faces": len(surfaces),
        **{f"{kind.name.lower()}s": int(kinds[kind]) for kind in named_kinds},
        "tori": int(kinds[SurfaceKind.TORUS]),
        "design_radii": count_design_radii(surfaces),
        **{name: int(kinds[kind]) for kind, name in _FREE_FIGURES.items() if kinds[kind]},
        "solids": len(ids.solids) * uses,
        "open_shells": len(model.bodies.sheets) * uses,
        _DEVIATION: _measure_deviation(model),
        "mesh_volume_mm3": volume * uses,
        "volume_gained_mm3": (float(model.shell_volumes[closed].sum()) - volume) * uses,
    }


def _measure_deviation(model: BrepModel) -> float:
    """Return the largest distance of a corner of the mesh from the surface of its triangle, in millimeters.

    Corners that were moved onto surfaces count where the mesh has them.
    """
    region, faces = model.regions.region, model.skin.faces
    surfaces = model.regions.surfaces.take(region)
    points = model.mesh_points
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
