"""Writes a scene as STEP: AP214, boundary representations, text made by numpy and Arrow, no CAD kernel."""

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
from meshhub.builtin_plugins.step.recognition.surfaces import SurfaceKind
from meshhub.builtin_plugins.step.writing.appearance import paint_of
from meshhub.builtin_plugins.step.writing.assembly import Placement, Shape, needs_assembly, shapes_of, write_assembly
from meshhub.builtin_plugins.step.writing.brep import Items, write_model
from meshhub.builtin_plugins.step.writing.kernel_check import MAX_CHECK_S, MAX_FACES, Verdict, is_available, read_back
from meshhub.builtin_plugins.step.writing.model import modelled
from meshhub.builtin_plugins.step.writing.part21 import Part21, decimals_for
from meshhub.builtin_plugins.step.writing.product import Document, Product
from meshhub.builtin_plugins.step.writing.verification import Body, agrees, bodies_in, faults_in
from meshhub.errors import ConversionFailed
from meshhub.model.notes import did, note
from meshhub.model.scene import Color, Scene
from meshhub.model.source import Target

MANY_FACES = 20_000
"""OCCT needs about a millisecond and 20 KB for each face it reads."""


class _Written(NamedTuple):
    """A product in the file.

    uses:    how often it is in the file
    bodies:  its solids in the file's order, then its open shells
    shells:  how many its mesh has
    figures: for the report; they count once for each use, but for faces
    """

    product: Product
    uses: int
    bodies: list[Body]
    shells: int
    figures: dict[str, int | float]


@dataclass(frozen=True, eq=False)
class _Job:
    """A scene to write; uses: how often each shape is placed; flat: the shells of each that keep flat faces."""

    scene: Scene
    options: StepWriteOptions
    shapes: list[Shape]
    placed: list[Placement]
    uses: list[int]
    flat: dict[int, set[int]]

    def write(self, stream: BinaryIO) -> list[_Written | None]:
        """Write the whole file."""
        reach = max((float(np.abs(one.matrix[:3, 3]).max()) for one in self.placed), default=0.0)
        usual = decimals_for(reach, 0.0)
        document = Document(Part21(stream, usual))
        written = [_write_shape(document, self, number) for number in range(len(self.shapes))]
        if not any(written):
            raise ConversionFailed("every triangle of the model is degenerate: there is no surface to write")
        document.file.decimals = usual
        if needs_assembly(self.placed):
            products = [one.product if one else None for one in written]
            write_assembly(document, self.scene, products, self.placed)
        document.close()
        return written

    def write_alone(self, number: int) -> bytes:
        """Return a file that holds one shape."""
        stream = io.BytesIO()
        document = Document(Part21(stream, decimals_for(0.0, 0.0)))
        _write_shape(document, self, number)
        document.close()
        return stream.getvalue()


def write(scene: Scene, target: Target, options: StepWriteOptions) -> None:
    """Write the scene and check the file; bodies that fail get flat faces.

    Raises ConversionFailed when every triangle is degenerate, or coordinates are out of all bounds.
    """
    shapes, placed = shapes_of(scene)
    uses = np.bincount([one.shape for one in placed], minlength=len(shapes)).tolist()
    job = _Job(scene, options, shapes, placed, uses, {})
    with target.open() as stream:
        written = job.write(stream)
    deadline = time.monotonic() + MAX_CHECK_S
    verdict = _read_back(target, written, deadline)
    if verdict is not None and not _agrees(verdict, written):
        faults = _faults(job, written, verdict, deadline)
        if options.step_surfaces == "analytic":
            for number, body, reason in faults:
                job.flat.setdefault(number, set()).update(body.shells)
                note("flat_body", f"{body.name} was written with flat faces only: with curved ones {reason}")
            with target.open() as stream:
                written = job.write(stream)
            verdict = _read_back(target, written, deadline)
            faults = []
            if verdict is not None and not _agrees(verdict, written):
                faults = _faults(job, written, verdict, deadline)
        for _, body, reason in faults:
            note("invalid_solid", f"{body.name} is not right in the STEP file: {reason}; 'repair' the model first")
    _report(written, verdict)


def _read_back(target: Target, written: list[_Written | None], deadline: float) -> Verdict | None:
    """The file as OpenCASCADE reads it; None where it is not installed, the file too large or the time over."""
    if not is_available() or sum(one.figures["faces"] for one in written if one) > MAX_FACES:
        return None
    verdict = read_back(target.read(), deadline - time.monotonic())
    if verdict is None:
        note(
            "step_unchecked",
            f"OpenCASCADE did not finish its check of the STEP file within {MAX_CHECK_S:g} s; "
            "only the writer's own checks were made",
        )
    return verdict


def _agrees(verdict: Verdict, written: list[_Written | None]) -> bool:
    bodies = [(body, one.uses) for one in written if one for body in one.bodies]
    return agrees(verdict, [body for body, _ in bodies], [uses for _, uses in bodies])


def _faults(
    job: _Job, written: list[_Written | None], verdict: Verdict, deadline: float
) -> list[tuple[int, Body, str]]:
    """The bodies that fail, with their shapes and the reasons; each shape is read by itself where there are several."""
    products = [(number, one) for number, one in enumerate(written) if one]
    faults: list[tuple[int, Body, str]] = []
    for number, one in products:
        alone = (
            verdict
            if len(products) == one.uses == 1
            else read_back(job.write_alone(number), deadline - time.monotonic())
        )
        if alone is not None:
            faults += [(number, one.bodies[index], reason) for index, reason in faults_in(alone, one.bodies).items()]
    if faults:
        return faults
    return [(number, body, "OpenCASCADE finds the file invalid") for number, one in products for body in one.bodies]


def _report(written: list[_Written | None], verdict: Verdict | None) -> None:
    for one in written:
        if one is None:
            continue
        did(**one.figures)
        sheets, faces = one.figures["open_shells"] // one.uses, one.figures["faces"]
        if sheets:
            note(
                "open_surface",
                f"{sheets} of {one.shells} shells are open or without a volume, "
                "and were written as surfaces, not as solids; "
                "'repair' closes holes",
            )
        if faces > MANY_FACES:
            note(
                "many_faces",
                f"the STEP file has {faces} faces, which makes CAD programs slow; "
                "'optimize_target_faces' reduces the triangles first",
            )
    if verdict is None:
        did(step_check="writer")
        for body in (body for one in written if one for body in one.bodies if body.torn):
            note("invalid_solid", f"{body.name} does not close in the STEP file; 'repair' the model first")
    else:
        did(step_check="kernel", valid_solids=sum(solid.valid for solid in verdict.solids))


def _write_shape(document: Document, job: _Job, number: int) -> _Written | None:
    """Write the product of one shape, or nothing."""
    shape = job.shapes[number]
    mesh = shape.mesh
    paint, palette = paint_of(job.scene, mesh, shape.material)
    skin = orient_outward(build_skin(mesh.vertices, mesh.faces, paint))
    if len(skin.faces) == 0:
        return None
    volume = float(shell_volumes(skin)[skin.closed].sum())
    area = float(lengths(skin.cross).sum()) / 2
    document.file.decimals = decimals_for(float(np.abs(skin.points).max()), abs(volume) / area if area else 0.0)
    model = modelled(skin, job.options, np.array(sorted(job.flat.get(number, ())), np.intp))
    items = write_model(document.file, model)
    product = document.product(shape.name, items.solids, items.sheets)
    _colour(document, skin, model.regions.region, items, palette)
    uses = job.uses[number]
    gained = shell_volumes(model.skin) + chord_volumes(model.skin, model.regions.region, model.regions.surfaces)
    kinds = np.bincount(model.regions.surfaces.kind, minlength=len(SurfaceKind))
    figures = {
        "faces": len(model.regions.surfaces),
        **{
            f"{kind.name.lower()}s": int(kinds[kind])
            for kind in (SurfaceKind.PLANE, SurfaceKind.CYLINDER, SurfaceKind.CONE, SurfaceKind.SPHERE)
        },
        "tori": int(kinds[SurfaceKind.TORUS]),
        "solids": len(items.solids) * uses,
        "open_shells": len(model.bodies.sheets) * uses,
        "mesh_volume_mm3": volume * uses,
        "volume_gained_mm3": (float(gained[skin.closed].sum()) - volume) * uses,
    }
    return _Written(product, uses, bodies_in(shape.name, model), len(skin.closed), figures)


def _colour(document: Document, skin: Skin, region: np.ndarray, items: Items, palette: list[Color | None]) -> None:
    paint = np.empty(len(items.faces), np.int32)
    paint[region] = skin.paint
    common = int(np.bincount(paint).argmax())
    main = palette[common]
    if main is not None:
        document.colour(items.solids + items.sheets, main)
    for index in np.unique(paint).tolist():
        color = palette[index]
        if index != common and color is not None:
            document.colour(items.faces[paint == index].tolist(), color)
