"""Writes a scene as STEP: AP214, boundary representations, text made by numpy and Arrow, no CAD kernel."""

from __future__ import annotations

import numpy as np

from meshhub.builtin_plugins.step import StepWriteOptions
from meshhub.builtin_plugins.step.assembly import Shape, needs_assembly, shapes_of, write_assembly
from meshhub.builtin_plugins.step.bodies import outward, shell_volumes
from meshhub.builtin_plugins.step.brep import Items, write_model
from meshhub.builtin_plugins.step.check import chord_volume
from meshhub.builtin_plugins.step.model import modelled
from meshhub.builtin_plugins.step.paint import paint_of
from meshhub.builtin_plugins.step.part21 import Part21, decimals_for
from meshhub.builtin_plugins.step.product import Document, Product
from meshhub.builtin_plugins.step.skin import Skin, lengths, skin_of
from meshhub.builtin_plugins.step.surfaces import Kind
from meshhub.errors import ConversionFailed
from meshhub.notes import did, note
from meshhub.scene import Color, Scene
from meshhub.source import Target

MANY_FACES = 20_000
"""OCCT needs about a millisecond and 20 KB for each face it reads."""


def write(scene: Scene, target: Target, options: StepWriteOptions) -> None:
    """Write the scene; see the option fields for what is looked for.

    Raises ConversionFailed when every triangle is degenerate, or coordinates are out of all bounds.
    """
    shapes, placed = shapes_of(scene)
    reach = max((float(np.abs(one.matrix[:3, 3]).max()) for one in placed), default=0.0)
    usual = decimals_for(reach, 0.0)
    uses = np.bincount([one.shape for one in placed], minlength=len(shapes)).tolist()
    with target.open() as stream:
        document = Document(Part21(stream, usual))
        products = [
            _write_shape(document, scene, shape, count, options) for shape, count in zip(shapes, uses, strict=True)
        ]
        if not any(products):
            raise ConversionFailed("every triangle of the model is degenerate: there is no surface to write")
        document.file.decimals = usual
        if needs_assembly(placed):
            write_assembly(document, scene, products, placed)
        document.close()


def _write_shape(
    document: Document, scene: Scene, shape: Shape, uses: int, options: StepWriteOptions
) -> Product | None:
    """The product of one shape, or nothing; what is counted counts once for each of its uses, but for faces."""
    mesh = shape.mesh
    paint, palette = paint_of(scene, mesh, shape.material)
    skin = outward(skin_of(mesh.vertices, mesh.faces, paint))
    if len(skin.faces) == 0:
        return None
    volume = float(shell_volumes(skin)[skin.closed].sum())
    area = float(lengths(skin.cross).sum()) / 2
    document.file.decimals = decimals_for(float(np.abs(skin.points).max()), abs(volume) / area if area else 0.0)
    model = modelled(skin, options)
    count, bodies = len(model.regions.surfaces), model.bodies
    items = write_model(document.file, model)
    product = document.product(shape.name, items.solids, items.sheets)
    _colour(document, skin, model.regions.region, items, palette)
    if bodies.sheets:
        note(
            "open_surface",
            f"{len(bodies.sheets)} of {len(skin.closed)} shells are open or without a volume, "
            "and were written as surfaces, not as solids; "
            "'repair' closes holes",
        )
    kinds = np.bincount(model.regions.surfaces.kind, minlength=len(Kind))
    did(
        faces=count,
        **{f"{kind.name.lower()}s": int(kinds[kind]) for kind in (Kind.PLANE, Kind.CYLINDER, Kind.CONE, Kind.SPHERE)},
        tori=int(kinds[Kind.TORUS]),
        solids=len(items.solids) * uses,
        open_shells=len(bodies.sheets) * uses,
        mesh_volume_mm3=volume * uses,
        volume_gained_mm3=(
            float(shell_volumes(model.skin)[skin.closed].sum())
            - volume
            + chord_volume(model.skin, model.regions.region, model.regions.surfaces)
        )
        * uses,
    )
    if count > MANY_FACES:
        note(
            "many_faces",
            f"the STEP file has {count} faces, which makes CAD programs slow; "
            "'optimize_target_faces' reduces the triangles first",
        )
    return product


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
