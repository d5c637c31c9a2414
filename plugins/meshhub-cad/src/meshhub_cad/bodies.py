"""Bodies of a CAD file as a scene: loose faces are sewn to solids, faces keep their colors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from meshhub import EmptyModel, Frame, Material, Mesh, Part, Scene, UnreadableFile, did, note
from meshhub.toolkit.opencascade import explore, is_kernel_failure
from meshhub_cad.tessellation import BodyMesh, list_faces, tessellate

Color = tuple[float, float, float, float]
"""Red, green, blue and alpha, 0 … 1, sRGB."""


class Body(NamedTuple):
    """A shape of the kernel in millimeters, its name, and the color of a face of it."""

    shape: Any
    name: str
    color_of: Callable[[Any], Color | None]


class Accuracy(NamedTuple):
    """Bounds of the tessellation, and the option that sets the deviation."""

    deviation_mm: float
    angle_degrees: float
    option: str


def build_scene(bodies: Sequence[Body], accuracy: Accuracy, frame: Frame, mm_per_unit: float, label: str) -> Scene:
    """Return the triangles of all bodies, one mesh each.

    Args:
        bodies: Bodies in millimeters.
        accuracy: Bounds of the tessellation.
        frame: Frame of the scene.
        mm_per_unit: Millimeters in the unit of the frame.
        label: Format of the file, for messages.
    Raises:
        EmptyModel: No body has a face.
        UnreadableFile: No face can be triangulated.
    """
    meshes: list[Mesh] = []
    results: list[BodyMesh] = []
    materials: dict[Color, int] = {}
    for body in bodies:
        result = tessellate(body.shape, accuracy.deviation_mm, math.radians(accuracy.angle_degrees), label)
        if result is None:
            continue
        results.append(result)
        if len(result.faces):
            meshes.append(_build_mesh(body, result, materials, mm_per_unit))
    if not results:
        raise EmptyModel(f"the {label} file has no faces, only curves or points; export solids or surfaces")
    if not meshes:
        raise UnreadableFile(f"no face of the {label} file could be meshed: its geometry is damaged; export it again")
    _report(results, accuracy)
    return Scene(
        tuple(meshes),
        tuple(Part(number, name=mesh.name) for number, mesh in enumerate(meshes)),
        tuple(Material(base_color=color, alpha_mode="blend" if color[3] < 1 else "opaque") for color in materials),
        frame=frame,
    )


def _build_mesh(body: Body, result: BodyMesh, materials: dict[Color, int], mm_per_unit: float) -> Mesh:
    colors = [body.color_of(face) for face in list_faces(body.shape)[0]]
    numbers = [-1 if color is None else materials.setdefault(color, len(materials)) for color in colors]
    material = np.array(numbers, np.int32)[result.kernel_face]
    return Mesh(
        result.vertices / mm_per_unit,
        result.faces,
        face_material=material if bool((material >= 0).any()) else None,
        name=body.name,
    )


def _report(results: list[BodyMesh], accuracy: Accuracy) -> None:
    faces = sum(result.face_count for result in results)
    solids = sum(result.solid_count for result in results)
    used_mm = max(result.deviation_mm for result in results)
    did(solids=solids, faces=faces, deviation_mm=used_mm)
    if failed := sum(result.failed_face_count for result in results):
        note("faces_not_meshed", f"{failed} of {faces} faces could not be meshed and were left out; use 'repair'")
    if open_count := sum(result.open_solid_count for result in results):
        note("open_solid", f"{open_count} of {solids} solids are not closed as meshes; 'repair' closes holes")
    if loose := sum(result.loose_face_count for result in results):
        note(
            "surface_model",
            f"{loose} of {faces} faces belong to no solid: the model may be open; 'repair' closes holes",
        )
    if any(not math.isclose(result.deviation_mm, accuracy.deviation_mm) for result in results):
        note(
            "deviation_adjusted",
            f"{accuracy.option} does not suit the size of every body; up to {used_mm:.3g} mm was used",
        )


def sew(body: Body, tolerance_mm: float) -> Body:
    """Sew the faces of a body that belong to no solid, and make a solid of each shell that closes.

    A body that the kernel cannot sew stays as it is, with a note.
    """
    try:
        return _sew(body, tolerance_mm)
    except Exception as failure:
        if not is_kernel_failure(failure):
            raise
        note(
            "faces_not_sewn",
            f"the CAD kernel cannot join the faces of a body ({type(failure).__name__}); 'repair' closes the gaps",
        )
        return body


def _sew(body: Body, tolerance_mm: float) -> Body:
    from OCP.BRep import BRep_Builder
    from OCP.BRepBuilderAPI import BRepBuilderAPI_Sewing
    from OCP.TopAbs import TopAbs_FACE, TopAbs_SHELL, TopAbs_SOLID
    from OCP.TopoDS import TopoDS_Compound

    loose = list(explore(body.shape, TopAbs_FACE, TopAbs_SOLID))
    if len(loose) < 2:
        return body
    sewing = BRepBuilderAPI_Sewing(tolerance_mm)
    for face in loose:
        sewing.Add(face)
    sewing.Perform()
    builder, compound = BRep_Builder(), TopoDS_Compound()
    builder.MakeCompound(compound)
    for solid in explore(body.shape, TopAbs_SOLID):
        builder.Add(compound, solid)
    sewn = sewing.SewedShape()
    for shell in explore(sewn, TopAbs_SHELL):
        builder.Add(compound, _solid_of(shell))
    for face in explore(sewn, TopAbs_FACE, TopAbs_SHELL):
        builder.Add(compound, face)
    originals = _FaceColors()
    for face in loose:
        color = body.color_of(face)
        if color is not None:
            originals.add(sewing.Modified(face) if sewing.IsModified(face) else face, color)
    return Body(compound, body.name, lambda face: originals.find(face) or body.color_of(face))


class _FaceColors:
    """Colors of faces, which are found in any orientation of the face."""

    def __init__(self) -> None:
        from OCP.collections import IndexedMap_TopoDS_Shape_TopTools_ShapeMapHasher

        self._numbers = IndexedMap_TopoDS_Shape_TopTools_ShapeMapHasher()
        self._colors: list[Color] = []

    def add(self, shape: Any, color: Color) -> None:
        from OCP.TopAbs import TopAbs_FACE

        for face in explore(shape, TopAbs_FACE):
            if self._numbers.Add(face) > len(self._colors):
                self._colors.append(color)

    def find(self, face: Any) -> Color | None:
        number = self._numbers.FindIndex(face)
        return self._colors[number - 1] if number else None


def _solid_of(shell: Any) -> Any:
    """Return the solid that a closed shell bounds; an open shell unchanged."""
    from OCP.BRep import BRep_Tool
    from OCP.BRepBuilderAPI import BRepBuilderAPI_MakeSolid
    from OCP.TopoDS import TopoDS

    return BRepBuilderAPI_MakeSolid(TopoDS.Shell(shell)).Solid() if BRep_Tool.IsClosed_s(shell) else shell
