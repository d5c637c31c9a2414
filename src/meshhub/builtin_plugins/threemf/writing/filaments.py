"""Write the colors of materials as filaments of PrusaSlicer: paint of triangles, and its project files."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from meshhub.builtin_plugins.threemf.writing.appearance import Chunk
from meshhub.builtin_plugins.threemf.writing.object_tree import MeshObject
from meshhub.builtin_plugins.threemf.writing.xml_text import format_attribute
from meshhub.model.notes import note
from meshhub.model.scene import Float64, Int32, Mesh, Scene

NAMESPACE = ' xmlns:slic3rpe="http://schemas.slic3r.org/3mf/2017/06"'
"""Declaration of the namespace of the paint."""

METADATA = (
    b'<metadata name="slic3rpe:Version3mf">1</metadata>\n<metadata name="slic3rpe:MmPaintingVersion">1</metadata>\n'
)
"""Version of the paint, which PrusaSlicer checks."""

_MAX_FILAMENT = 15
"""Largest filament that PrusaSlicer paints with."""

_NOZZLE_MM = 0.4
"""Millimeters; PrusaSlicer counts extruders by their nozzles. 0.4 is the default of its printers."""

_NUMBERED = re.compile(r"Filament ([1-9][0-9]?)")
"""Name of a material that the reader made from a filament."""


@dataclass
class _Object:
    """Mesh object of the project: its id, its name, its number of triangles, and its filament."""

    id: int
    name: str
    count: int
    filament: int


class FilamentWriter:
    """Assigns the materials of a scene to filaments, one per color."""

    def __init__(self, scene: Scene) -> None:
        """Number the filaments: as the reader named them, otherwise in the order of the materials."""
        used = scene.used_materials()
        rgb = [tuple(round(255 * value) for value in scene.materials[index].base_color[:3]) for index in used]
        matches = [_NUMBERED.fullmatch(scene.materials[index].name) for index in used]
        if used and all(match and int(match.group(1)) <= _MAX_FILAMENT for match in matches):
            numbers = [int(match.group(1)) for match in matches if match]
        else:
            order = {color: number for number, color in enumerate(dict.fromkeys(rgb), 1)}
            numbers = [order[color] for color in rgb]
        self._colors: dict[int, tuple[int, ...]] = {}
        for number, color in zip(numbers, rgb, strict=True):
            self._colors.setdefault(number, color)
        # faces without a material have the first filament
        self._number_of = np.ones(len(scene.materials) + 1, np.int32)
        self._number_of[list(used)] = self._limit(numbers)
        self._objects: list[_Object] = []
        self._note_losses(scene)

    def add_object(self, item: MeshObject, mesh: Mesh, vertices: Float64, faces: Int32) -> tuple[int, Int32]:
        """Record an object, and return its filament and those of its triangles.

        Args:
            item: Numbered object.
            mesh: Source of the materials.
            vertices: (n, 3).
            faces: (m, 3) vertex indices, in the order of the faces of the mesh.
        Returns:
            The filament that covers most of the object, and the filament (m,) of each triangle.
        """
        own = -1 if item.material is None else item.material
        materials = np.full(len(faces), -1) if mesh.face_material is None else mesh.face_material
        numbers = self._number_of[np.where(materials < 0, own, materials)]
        a, b, c = vertices[faces].transpose(1, 0, 2)
        areas = np.bincount(numbers, np.linalg.norm(np.cross(b - a, c - a), axis=1))
        filament = int(areas.argmax()) or 1
        self._objects.append(_Object(item.id, item.name, len(faces), filament))
        return filament, numbers

    def entries(self) -> list[tuple[str, list[Chunk]]]:
        """Return the project files: filaments of the objects, and colors of the filaments."""
        rows = [
            f'<object id="{entry.id}"><metadata type="object" key="extruder" value="{entry.filament}"/>\n'
            f'<volume firstid="0" lastid="{entry.count - 1}">'
            f'<metadata type="volume" key="name"{format_attribute("value", entry.name)}/>'
            '<metadata type="volume" key="volume_type" value="ModelPart"/></volume></object>\n'
            for entry in self._objects
        ]
        model = '<?xml version="1.0" encoding="UTF-8"?>\n<config>\n' + "".join(rows) + "</config>\n"
        count = max(self._colors, default=1)
        colors = ";".join(
            "#{:02X}{:02X}{:02X}".format(*self._colors.get(number, (255, 255, 255))) for number in range(1, count + 1)
        )
        settings = "".join(
            f"; {name} = {value}\n"
            for name, value in (
                ("extruder_colour", colors),
                ("filament_colour", colors),
                ("nozzle_diameter", ",".join([f"{_NOZZLE_MM}"] * count)),
            )
        )
        return [
            ("Metadata/Slic3r_PE_model.config", [model.encode()]),
            ("Metadata/Slic3r_PE.config", [settings.encode()]),
        ]

    def _limit(self, numbers: list[int]) -> list[int]:
        """Return the numbers with each one that PrusaSlicer lacks replaced by that of the nearest color."""
        surplus = [number for number in self._colors if number > _MAX_FILAMENT]
        if not surplus:
            return numbers
        note(
            "too_many_filaments",
            f"the model has {len(self._colors)} colors, PrusaSlicer {_MAX_FILAMENT} filaments; "
            "the other colors became the nearest filament",
        )
        colors = {number: np.array(color) for number, color in self._colors.items()}
        kept = [number for number in colors if number <= _MAX_FILAMENT]
        nearest = {
            number: min(kept, key=lambda other: float(np.square(colors[other] - colors[number]).sum()))
            for number in surplus
        }
        self._colors = {number: self._colors[number] for number in kept}
        return [nearest.get(number, number) for number in numbers]

    @staticmethod
    def _note_losses(scene: Scene) -> None:
        has_texture = any(scene.materials[index].base_color_image is not None for index in scene.used_materials())
        if has_texture or any(scene.meshes[part.mesh].colors is not None for part in scene.parts):
            note(
                "colors_not_printed",
                "textures and vertex colors are in the file, but PrusaSlicer prints the color of their material",
            )


def format_paint(filament: int) -> str:
    """Return the attribute that paints a triangle with a filament."""
    code = f"{4 * filament:X}" if filament < 3 else f"{filament - 3:X}C"
    return f' slic3rpe:mmu_segmentation="{code}"'
