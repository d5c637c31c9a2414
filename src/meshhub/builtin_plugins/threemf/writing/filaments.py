"""Assign the colors of materials to filaments of slicers: paint of triangles, and the filaments of objects."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from meshhub.builtin_plugins.threemf.paint_trees import PaintTrees
from meshhub.builtin_plugins.threemf.writing.object_tree import MeshObject
from meshhub.builtin_plugins.threemf.writing.paint import Pieces, build_trees
from meshhub.builtin_plugins.threemf.writing.strips import MAX_SLICING_COST, measure_surface, remove_strips
from meshhub.errors import format_number
from meshhub.model.notes import note
from meshhub.model.scene import Division, Int32, Mesh, Scene
from meshhub.toolkit.geometry import face_normals
from meshhub.toolkit.printers import MAX_FILAMENTS

Profile = Literal["prusa", "bambu", "orca"]

MAX_LEAF_COUNT = 200_000
"""Maximum leaves of the paint of a file; PrusaSlicer needs 20 s for them, and more than a minute for 400 000."""


@dataclass(frozen=True)
class Dialect:
    """Names and limits of one slicer.

    name:         name for people
    application:  value of the metadata Application
    declarations: attributes of the model element
    metadata:     further metadata elements
    paint:        name of the attribute of a painted triangle
    max_filament: greatest number of a filament that the slicer paints with
    thumbnail:    name of the picture in the package
    max_slicing_cost: slicing cost up to which narrow strips of paint are kept; None: not measured
    """

    name: str
    application: str
    declarations: str
    metadata: bytes
    paint: str
    max_filament: int
    thumbnail: str
    max_slicing_cost: float | None = None


_BAMBU = Dialect(
    name="BambuStudio",
    # BambuStudio reads the settings of projects whose application starts with its name. Its command line and that of
    # OrcaSlicer reject versions below 2 and versions above their own.
    application="BambuStudio-02.00.00.00",
    # OrcaSlicer needs the second declaration, even without elements of the production extension
    declarations=(
        ' xmlns:BambuStudio="http://schemas.bambulab.com/package/2021"'
        ' xmlns:p="http://schemas.microsoft.com/3dmanufacturing/production/2015/06"'
    ),
    metadata=b'<metadata name="BambuStudio:3mfVersion">1</metadata>\n',
    paint="paint_color",
    max_filament=MAX_FILAMENTS["bambu"],
    thumbnail="Metadata/plate_1.png",
)
DIALECTS: dict[Profile, Dialect] = {
    "prusa": Dialect(
        name="PrusaSlicer",
        application="meshhub",
        declarations=' xmlns:slic3rpe="http://schemas.slic3r.org/3mf/2017/06"',
        # PrusaSlicer checks the version of the paint
        metadata=(
            b'<metadata name="slic3rpe:Version3mf">1</metadata>\n'
            b'<metadata name="slic3rpe:MmPaintingVersion">1</metadata>\n'
        ),
        paint="slic3rpe:mmu_segmentation",
        max_filament=MAX_FILAMENTS["prusa"],
        thumbnail="Metadata/thumbnail.png",
        max_slicing_cost=MAX_SLICING_COST,
    ),
    "bambu": _BAMBU,
    "orca": replace(_BAMBU, name="OrcaSlicer", application="OrcaSlicer-2.3.0"),
}
"""Dialects of the profiles for slicers."""

_NUMBERED = re.compile(r"Filament ([1-9][0-9]?)")
"""Name of a material that the reader made from a filament."""


@dataclass(frozen=True)
class PaintedObject:
    """Mesh object of a project: the number and the area of its triangles, and the filament that covers most of it."""

    count: int
    area: float
    filament: int


class FilamentWriter:
    """Assigns the materials of a scene to filaments, one per color.

    Attributes:
        dialect: Slicer that reads the file.
        objects: Mesh objects of the file, in its order.
        title: Name of the scene, for objects without one.
    """

    def __init__(self, scene: Scene, dialect: Dialect, cell: float, types: Sequence[str] = ()) -> None:
        """Number the filaments: as the reader named them, otherwise in the order of the materials.

        Args:
            scene: Scene whose materials become filaments.
            dialect: Slicer that reads the file.
            cell: Size of the details of paint inside triangles, in millimeters.
            types: Materials of the filaments, such as "PETG"; PLA for the others.
        """
        self.dialect = dialect
        self.objects: dict[MeshObject, PaintedObject] = {}
        self.title = scene.name
        self._types = types
        self._scene = scene
        self._cell = cell
        self._face_count = sum(len(scene.meshes[index].faces) for index in {part.mesh for part in scene.parts})
        used = scene.used_materials()
        rgb = [tuple(round(255 * value) for value in scene.materials[index].base_color[:3]) for index in used]
        matches = [_NUMBERED.fullmatch(scene.materials[index].name) for index in used]
        numbers = [int(match.group(1)) for match in matches if match and int(match.group(1)) <= dialect.max_filament]
        # users can give the same name to several colors, but each color needs a separate filament
        if not used or len(numbers) < len(used) or len(set(zip(numbers, rgb, strict=True))) > len(set(numbers)):
            order = {color: number for number, color in enumerate(dict.fromkeys(rgb), 1)}
            numbers = [order[color] for color in rgb]
        self._colors: dict[int, tuple[int, ...]] = {}
        self._names: dict[int, str] = {}
        for index, number, color in zip(used, numbers, rgb, strict=True):
            self._colors.setdefault(number, color)
            self._names.setdefault(number, scene.materials[index].name)
        # faces without a material have the first filament
        self._number_of = np.ones(len(scene.materials) + 1, np.int32)
        self._number_of[list(used)] = self._limit(numbers)
        self._note_losses()

    def paint(self, item: MeshObject, mesh: Mesh) -> tuple[Mesh, PaintTrees]:
        """Record an object, and return its triangles and their paint; 0 is the filament of the object.

        Args:
            mesh: Its mesh; triangles that its faces divide are restored.
        """
        own = -1 if item.material is None else item.material
        materials = np.full(len(mesh.faces), -1, np.int32) if mesh.face_material is None else mesh.face_material
        numbers = self._number_of[np.where(materials < 0, own, materials)]
        areas = np.bincount(numbers, np.linalg.norm(face_normals(mesh.vertices, mesh.faces), axis=1))
        filament = int(areas.argmax()) or 1
        if mesh.division is None or mesh.colors is not None or mesh.uv is not None:
            nothing = np.zeros(len(mesh.faces), np.int64)
            trees = PaintTrees(np.arange(len(nothing)), nothing, nothing, nothing, numbers.astype(np.int64))
        else:
            trees = self._build_trees(item, mesh, mesh.division, numbers)
            mesh = _join_pieces(mesh, mesh.division, numbers, trees)
        self.objects[item] = PaintedObject(len(mesh.faces), float(areas.sum()), filament)
        return mesh, replace(trees, filament=np.where(trees.filament == filament, 0, trees.filament))

    def _build_trees(self, item: MeshObject, mesh: Mesh, division: Division, numbers: Int32) -> PaintTrees:
        transforms = [part.transform[:3, :3] for part in self._scene.parts if part.mesh == item.mesh]
        cell = self._cell / max(float(np.linalg.norm(matrix, axis=0).max()) for matrix in transforms)
        max_leaf_count = MAX_LEAF_COUNT * len(mesh.faces) // self._face_count
        if self.dialect.max_slicing_cost is not None:
            surface = measure_surface(mesh.vertices, mesh.faces, cell)
            max_cost = self.dialect.max_slicing_cost * len(mesh.faces) / self._face_count
            numbers, width = remove_strips(surface, numbers, max_cost)
            if width:
                note(
                    "narrow_paint_removed",
                    f"strips of paint narrower than {format_number(round(width * self._cell, 3))} mm took the filament "
                    f"beside them: {self.dialect.name} skips such strips, or takes minutes for them",
                    size=round(width * self._cell, 3),
                    program=self.dialect.name,
                )
        pieces = Pieces(mesh.faces, division.owner, numbers)
        trees, is_complete = build_trees(mesh.vertices, division.triangles, pieces, cell, max_leaf_count)
        if not is_complete:
            note(
                "paint_detail_limited",
                f"the paint needs more than {MAX_LEAF_COUNT} leaves at {format_number(self._cell)} mm, so the finest "
                "details are missing; raise {threemf_paint_cell_mm}",
                options=("threemf_paint_cell_mm",),
                limit=MAX_LEAF_COUNT,
                size=self._cell,
            )
        return trees

    def colors(self) -> list[str]:
        """Return the colors `#RRGGBB` of all filaments, from the first to the last one in use."""
        count = max(self._colors, default=1)
        return [
            "#{:02X}{:02X}{:02X}".format(*self._colors.get(number, (255, 255, 255))) for number in range(1, count + 1)
        ]

    def types(self) -> list[str]:
        """Return the material of each filament that `colors` lists; such as "PETG"."""
        count = len(self.colors())
        return [*self._types, *["PLA"] * count][:count]

    def names(self) -> list[str]:
        """Return the names of the filaments that `colors` lists, "" for none or a mere number."""
        names = (self._names.get(number, "") for number in range(1, len(self.colors()) + 1))
        return ["" if _NUMBERED.fullmatch(name) else name for name in names]

    def _limit(self, numbers: list[int]) -> list[int]:
        """Return the numbers; each one that the slicer lacks is replaced by that of the nearest color."""
        limit = self.dialect.max_filament
        surplus = [number for number in self._colors if number > limit]
        if not surplus:
            return numbers
        note(
            "too_many_filaments",
            f"the model has {len(self._colors)} colors, but {self.dialect.name} has only {limit} filaments; "
            "the other colors became the nearest filament",
            count=len(self._colors),
            limit=limit,
            program=self.dialect.name,
        )
        colors = {number: np.array(color) for number, color in self._colors.items()}
        kept = [number for number in colors if number <= limit]
        nearest = {
            number: min(kept, key=lambda other: float(np.square(colors[other] - colors[number]).sum()))
            for number in surplus
        }
        self._colors = {number: self._colors[number] for number in kept}
        return [nearest.get(number, number) for number in numbers]

    def _note_losses(self) -> None:
        scene = self._scene
        has_texture = any(scene.materials[index].base_color_image is not None for index in scene.used_materials())
        if has_texture or any(scene.meshes[part.mesh].colors is not None for part in scene.parts):
            note(
                "colors_not_printed",
                f"{self.dialect.name} prints the colors of materials, not textures and vertex colors; "
                "set {reduce_colors} to the number of filaments",
                options=("reduce_colors",),
                program=self.dialect.name,
            )


def _join_pieces(mesh: Mesh, division: Division, numbers: Int32, trees: PaintTrees) -> Mesh:
    """Return the triangles before their division, each with a material of the filament that covers most of it."""
    present = np.full(len(mesh.faces), -1, np.int32) if mesh.face_material is None else mesh.face_material
    material_of = np.full(int(numbers.max()) + 1, -1, np.int32)
    material_of[numbers] = present
    first = np.empty(len(division.triangles), np.intp)
    first[division.owner] = np.arange(len(division.owner))
    main = trees.filament[trees.roots]
    materials = np.where(numbers[first] == main, present[first], material_of[main])
    return Mesh(mesh.vertices, division.triangles, face_material=materials, name=mesh.name)
