"""Reader: products of a building as parts, by storey."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import ifcopenshell
import ifcopenshell.geom
import ifcopenshell.util.element
import numpy as np

from meshhub import EmptyModel, Frame, Material, Mesh, NoOptions, Part, Scene, Source, UnreadableFile, note
from meshhub.errors import format_count, quote
from meshhub.toolkit.colors import clamp_fraction
from meshhub.toolkit.names import single_line

_LEFT_OUT = (
    "IfcSpace",
    "IfcSpatialZone",
    "IfcFeatureElement",
    "IfcVirtualElement",
    "IfcAnnotation",
    "IfcGrid",
    "IfcPort",
)
"""Classes of products that are not built: rooms, openings (which are cut out of walls), marks."""

_KERNEL = "opencascade"

_MILLIMETERS_PER_METER = 1000.0
"""The library gives meters for every unit of a file."""

_MAX_DEPTH_COUNT = 32
"""Groups of a product; a damaged file may contain a product in itself."""


class _Model:
    """Scene of a file while it is read."""

    def __init__(self, file: Any) -> None:
        self.file = file
        self.meshes: list[Mesh] = []
        self.parts: list[Part] = []
        self.materials: list[Material] = []
        self._meshes: dict[tuple[str, tuple[int, ...]], tuple[int, int | None] | None] = {}

    def add(self, shape: Any) -> None:
        """Add the triangles of a product."""
        geometry = shape.geometry
        indices = tuple(self._find_material(style) for style in geometry.materials)
        key = (geometry.id, indices)
        if key not in self._meshes:
            self._meshes[key] = self._add_mesh(geometry, indices)
        entry = self._meshes[key]
        if entry is None:
            return
        product = self.file.by_id(shape.id)
        matrix = np.array(shape.transformation.matrix, np.float64).reshape(4, 4).T.copy()
        matrix[:3, 3] *= _MILLIMETERS_PER_METER
        self.parts.append(Part(entry[0], matrix, _name(product), tuple(_list_groups(product)), entry[1]))

    def _add_mesh(self, geometry: Any, indices: tuple[int, ...]) -> tuple[int, int | None] | None:
        """Return the index of the mesh, and its material if it has a single one; None without triangles."""
        vertices = np.array(geometry.verts, np.float64).reshape(-1, 3) * _MILLIMETERS_PER_METER
        faces = np.array(geometry.faces, np.int32).reshape(-1, 3)
        if not len(faces):
            return None
        # -1: without a style
        styles = np.array((*indices, -1), np.int32)
        face_material = styles[np.array(geometry.material_ids, np.int64)]
        used = np.unique(face_material).tolist()
        is_single = len(used) == 1
        self.meshes.append(Mesh(vertices, faces, face_material=None if is_single else face_material))
        return len(self.meshes) - 1, used[0] if is_single and used[0] >= 0 else None

    def _find_material(self, style: Any) -> int:
        """Return the index of the material of a style, which is added."""
        color = [clamp_fraction(value) for value in style.diffuse.components]
        alpha = 1 - clamp_fraction(style.transparency) if style.has_transparency() else 1.0
        material = Material(
            self._name_style(style),
            (color[0], color[1], color[2], alpha),
            alpha_mode="blend" if alpha < 1 else "opaque",
        )
        if material not in self.materials:
            self.materials.append(material)
        return self.materials.index(material)

    def _name_style(self, style: Any) -> str:
        """Return the name of a surface style or of a material of the file."""
        entity = self.file.by_id(style.instance_id()) if style.instance_id() else None
        return single_line(getattr(entity, "Name", None) or "")


def read(source: Source, options: NoOptions) -> Scene:  # noqa: ARG001
    """Read an IFC file.

    Returns:
        Scene in millimeters, with a part of each product; the path of a part is its project, site, building and storey.
    Raises:
        UnreadableFile: The file is damaged.
        EmptyModel: No product has a surface.
    """
    try:
        file = ifcopenshell.file.from_string(source.read().decode("utf-8", "replace"))
        products = [each for each in file.by_type("IfcProduct") if each.Representation and not _is_left_out(each)]
    except (Exception, SystemExit) as error:
        raise UnreadableFile(
            f"ifcopenshell cannot read the file ({quote(single_line(str(error))[:80])}); export it again"
        ) from None
    if not products:
        raise EmptyModel("the IFC file has no products with a shape; export the model again, with geometry")
    model = _Model(file)
    missing = Counter(product.id() for product in products)
    for shape in _shapes(file, products):
        model.add(shape)
        missing.pop(shape.id, None)
    if missing:
        kinds = Counter(file.by_id(number).is_a() for number in missing)
        listed = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
        note("objects_left_out", f"products without a surface were left out: {listed}")
    _note_lost_colors(file)
    if not model.parts:
        raise EmptyModel("no product of the IFC file has a surface; export the model again, with geometry")
    return Scene(tuple(model.meshes), tuple(model.parts), tuple(model.materials), frame=Frame("mm", "z"))


def _shapes(file: Any, products: list[Any]) -> Iterator[Any]:
    """Yield the triangulated shapes of products in meters, each in its own frame."""
    settings = ifcopenshell.geom.settings()
    settings.set("apply-default-materials", False)
    settings.set("no-normals", True)
    iterator = ifcopenshell.geom.iterator(settings, file, 1, include=products, geometry_library=_KERNEL)
    if not iterator.initialize():
        return
    while True:
        yield iterator.get()
        if not iterator.next():
            return


def _note_lost_colors(file: Any) -> None:
    """Report colors of single triangles, which the library does not give; IFC 2x3 has none."""
    count = 0 if file.schema == "IFC2X3" else len(file.by_type("IfcIndexedColourMap"))
    if count:
        note(
            "colors_dropped",
            f"the colors of single triangles of {format_count(count, 'shape', 'shapes')} are lost; "
            "give whole shapes a style",
        )


def _is_left_out(product: Any) -> bool:
    return any(product.is_a(kind) for kind in _LEFT_OUT)


def _name(entity: Any) -> str:
    """Return the name of an entity, or its class."""
    return single_line(entity.Name or "") or entity.is_a().removeprefix("Ifc")


def _list_groups(product: Any) -> list[str]:
    """Return the names of what contains a product, from the project on."""
    names: list[str] = []
    parent = ifcopenshell.util.element.get_parent(product)
    while parent is not None and len(names) < _MAX_DEPTH_COUNT:
        names.append(_name(parent))
        parent = ifcopenshell.util.element.get_parent(parent)
    return names[::-1]
