"""Build a scene from the build items and components of all model parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

import numpy as np

from meshhub.builtin_plugins.threemf.reading.appearance import PropertyReader
from meshhub.builtin_plugins.threemf.reading.beam_lattice import add_lattice
from meshhub.builtin_plugins.threemf.reading.filaments import FilamentReader, PaintMode
from meshhub.builtin_plugins.threemf.reading.model_document import (
    MAX_PARTS_COUNT,
    ModelDocument,
    ModelObject,
    ObjectPlacement,
    TriangleMesh,
)
from meshhub.builtin_plugins.threemf.reading.model_parser import parse_model
from meshhub.builtin_plugins.threemf.reading.package import Package
from meshhub.builtin_plugins.threemf.reading.slicer_project import SlicerProject
from meshhub.builtin_plugins.threemf.reading.unread_geometry import UnreadGeometry, note_required_extensions
from meshhub.errors import EmptyModel, ModelTooComplex, UnreadableFile, quote
from meshhub.model.capabilities import MILLIMETERS_PER
from meshhub.model.notes import note
from meshhub.model.progress import advance, portion
from meshhub.model.scene import Float64, Mesh, Part

_ENCRYPTED = b"%3McF"
"""First bytes of an encrypted part (Secure Content §4.2)."""

_MAX_STEPS_COUNT = 1_000_000
"""Maximum components to visit when parts are searched; empty components are not parts, but take time too."""

_MAX_DEPTH_COUNT = 64
"""Maximum nested components; bounds the paths of parts."""

_Key = tuple[str, int]
"""Model part and id of an object."""

_SKIPPED_KINDS = {
    "support": "support structures",
    "solidsupport": "support structures",
    "other": "objects that are not printed (modifiers, for instance)",
}


class _Visit(NamedTuple):
    """An object to expand: its matrix, the path and the name of its part, and the filament of its component."""

    key: _Key
    matrix: Float64
    path: tuple[str, ...]
    name: str
    filament: int | None


class SceneBuilder:
    """Builds meshes and parts from the objects of all model parts of a package."""

    def __init__(self, package: Package, root: str, paint: PaintMode) -> None:
        """Read the root model part; `paint` selects how to read triangles with several filaments.

        Raises:
            UnreadableFile: The root model part is damaged or encrypted.
        """
        self.properties = PropertyReader(package)
        self._package = package
        self._has_keystore = package.has_keystore()
        self._documents: dict[str, ModelDocument] = {}
        self._parsed_bytes = 0
        self.root = self._load_document(root)
        self._project = SlicerProject(package, self.root)
        self._filaments = FilamentReader(paint, self._project.colors)
        self._part_counts: dict[_Key, int] = {}
        self._step_counts: dict[_Key, int] = {}
        self._unread = UnreadGeometry()
        self._has_skipped = False
        self._meshes: list[Mesh] = []
        self._mesh_indices: dict[_Key, int] = {}

    def build(self) -> tuple[tuple[Mesh, ...], tuple[Part, ...]]:
        """Return the meshes, and a part for each placement of an object that has one.

        Raises:
            EmptyModel: The build section places nothing that is printed.
            ModelTooComplex: The model has too many parts.
            UnreadableFile: A model part is damaged, or the model has only geometry that is not read.
        """
        note_required_extensions(self.root.required)
        if not self.root.items:
            raise EmptyModel(
                "the build section of the 3MF file is empty, so there is nothing to print; "
                "put the objects on the plate and export again"
            )
        placed: list[tuple[ObjectPlacement, _Key]] = []
        parts_count = steps_count = 0
        for item in self._choose_items():
            key = self._resolve(item, self.root)
            if self._is_skipped(self._get_object(key)):
                continue
            self._count(key)
            parts_count += self._part_counts[key]
            steps_count += self._step_counts[key]
            _check_counts(parts_count, steps_count)
            placed.append((item, key))
        plates: dict[int, int] = {}
        instances = Counter[int]()
        for item in self.root.items:
            plates[id(item)] = self._project.find_plate(item.object, instances[item.object])
            instances[item.object] += 1
        parts: list[Part] = []
        for item, key in placed:
            parts.extend(self._expand(item, key, plates[id(item)]))
        if not parts_count:
            self._unread.reject()
            if not placed or self._has_skipped or self._project.has_skipped:
                self._reject_skipped()
        self._unread.note_losses()
        self._project.note_losses()
        meshes, parts = self._filaments.assign_materials(self._meshes, parts, self.properties.materials)
        return tuple(meshes), tuple(parts)

    def _reject_skipped(self) -> NoReturn:
        """Reject a model that has nothing besides what was left out. Raises EmptyModel."""
        if not all(item.is_printable for item in self.root.items):
            raise EmptyModel(
                "the 3MF file marks its models as not printable, and builds only supports or modifiers; "
                "make the models printable and export again"
            )
        raise EmptyModel(
            "the 3MF file builds only support structures, modifiers or other objects that are not a model; "
            "add the model and export again"
        )

    def _choose_items(self) -> list[ObjectPlacement]:
        """Return the printable items, or all items of a file that has no printable one."""
        printable = [item for item in self.root.items if item.is_printable]
        if not printable:
            note("not_printable_read", "the file marks all its objects as not printable; all of them were read")
            return self.root.items
        if len(printable) < len(self.root.items):
            note("not_printable_skipped", "objects that the file marks as not printable were left out")
        return printable

    # -- look-up --

    def _load_document(self, name: str) -> ModelDocument:
        if name not in self._documents:
            data = self._package.read(name)
            if self._has_keystore and data.startswith(_ENCRYPTED):
                raise UnreadableFile(
                    f"{quote(name)} is encrypted (3MF Secure Content) for one receiver; "
                    "export the model without protection"
                )
            total_bytes = max(self._package.model_bytes, 1)
            with portion(self._parsed_bytes / total_bytes, (self._parsed_bytes + len(data)) / total_bytes):
                self._documents[name] = parse_model(data, name)
            self._parsed_bytes += len(data)
            advance(self._parsed_bytes / total_bytes)
        return self._documents[name]

    def _resolve(self, placement: ObjectPlacement, document: ModelDocument) -> _Key:
        if placement.part is None:
            return document.part, placement.object
        name = self._package.find(placement.part, document.part)
        if name is None:
            raise UnreadableFile(
                f"{quote(document.part)} places an object of {quote(placement.part)}, which is not in the file; "
                "export the model again"
            )
        return name, placement.object

    def _get_object(self, key: _Key) -> ModelObject:
        model_object = self._load_document(key[0]).objects.get(key[1])
        if model_object is None:
            raise UnreadableFile(f"{quote(key[0])} places object {key[1]}, which does not exist; export it again")
        return model_object

    def _get_children(self, key: _Key) -> list[_Key]:
        document = self._load_document(key[0])
        return [self._resolve(component, document) for component in self._get_object(key).components]

    def _is_skipped(self, model_object: ModelObject) -> bool:
        """Return whether an object is not printed, and note why."""
        if model_object.kind == "surface":
            note(
                "surfaces_read",
                "objects of type 'surface' enclose no volume; they were read as open meshes, which {repair} may close",
                options=("repair",),
            )
            return False
        if model_object.kind == "model":
            return self._project.leave_out(model_object)
        kind = _SKIPPED_KINDS.get(model_object.kind, f"objects of type {quote(model_object.kind)}")
        self._has_skipped = True
        note("not_a_model_skipped", f"{kind} were left out")
        return True

    # -- counting before expansion --

    def _count(self, top: _Key) -> None:
        """Count the parts that an object becomes, without expanding it.

        Raises:
            ModelTooComplex: The count or the depth exceeds its limit.
            UnreadableFile: The object contains itself.
        """
        if top in self._part_counts:
            return
        stack: list[tuple[_Key, list[_Key], Iterator[_Key]]] = []
        ancestors: set[_Key] = set()

        def enter(key: _Key) -> None:
            if key in ancestors:
                raise UnreadableFile(f"{quote(key[0])}: object {key[1]} contains itself; export the model again")
            if len(stack) >= _MAX_DEPTH_COUNT:
                raise ModelTooComplex(f"the model nests components more than {_MAX_DEPTH_COUNT} deep; flatten it")
            children = self._get_children(key)
            stack.append((key, children, iter(children)))
            ancestors.add(key)

        enter(top)
        while stack:
            key, children, remaining = stack[-1]
            child = next(remaining, None)
            if child is not None:
                is_new = child not in self._part_counts
                if child in ancestors or (is_new and not self._is_skipped(self._get_object(child))):
                    enter(child)
                continue
            model_object = self._get_object(key)
            own = 1 if model_object.has_surface else 0
            self._unread.record(model_object, has_triangles=bool(own or children))
            self._part_counts[key] = own + sum(self._part_counts.get(child, 0) for child in children)
            self._step_counts[key] = 1 + sum(self._step_counts.get(child, 1) for child in children)
            _check_counts(self._part_counts[key], self._step_counts[key])
            ancestors.discard(key)
            stack.pop()

    # -- expansion --

    def _expand(self, item: ObjectPlacement, top: _Key, plate: int) -> Iterator[Part]:
        """Yield the parts below a build item, depth first in the order of the file."""
        stack: list[_Visit] = []
        if self._part_counts.get(top):
            stack.append(_Visit(top, item.matrix @ self._unit_matrix(top, self.root.part), (), item.name, None))
        while stack:
            key, matrix, path, placement_name, filament = stack.pop()
            model_object = self._get_object(key)
            components = model_object.components
            if model_object.has_surface:
                self._filaments.record_part(self._project.get_filament(top[1], key, filament))
                part_name = placement_name or model_object.name
                yield Part(self._add_mesh(key, model_object), matrix, part_name, path, plate=plate)
            document = self._load_document(key[0])
            name = model_object.name or placement_name
            for component in reversed(components):
                child = self._resolve(component, document)
                if not self._part_counts.get(child):
                    continue
                # the only member of a group takes the name of the group if it has none
                is_wrapped = len(components) == 1 and not self._get_object(child).name
                child_path = path if is_wrapped or not name else (*path, name)
                child_matrix = matrix @ component.matrix
                if self._load_document(child[0]).unit != document.unit:
                    child_matrix = child_matrix @ self._unit_matrix(child, key[0])
                child_filament = filament if component.filament is None else component.filament
                stack.append(_Visit(child, child_matrix, child_path, name if is_wrapped else "", child_filament))

    def _unit_matrix(self, key: _Key, outer: str) -> Float64:
        """Return the matrix that converts the unit of an object to the unit of the model part that places it."""
        inner_unit, outer_unit = self._load_document(key[0]).unit, self._load_document(outer).unit
        matrix = np.eye(4)
        if inner_unit != outer_unit:
            matrix[:3, :3] *= MILLIMETERS_PER[inner_unit] / MILLIMETERS_PER[outer_unit]
        return matrix

    def _add_mesh(self, key: _Key, model_object: ModelObject) -> int:
        """Return the index of the mesh of an object; build it if it is new."""
        if key not in self._mesh_indices:
            document = self._load_document(key[0])
            mesh = _checked_mesh(document, model_object)
            if model_object.lattice is not None:
                clipping = document.objects.get(model_object.lattice.clip_object or 0)
                clip = None if clipping is None else _checked_mesh(document, clipping)
                mesh = add_lattice(mesh, model_object.lattice, clip, key[0])
            self._project.count_paint(mesh)
            self._mesh_indices[key] = len(self._meshes)
            source = self._filaments.read_mesh(document, mesh)
            self._meshes.append(self.properties.build_mesh(document, model_object, source))
        return self._mesh_indices[key]


def _checked_mesh(document: ModelDocument, model_object: ModelObject) -> TriangleMesh:
    """Return the mesh of an object. Raises UnreadableFile if a triangle refers to a vertex that does not exist."""
    mesh = model_object.mesh or TriangleMesh(np.empty((0, 3)), np.empty((0, 3), np.int32))
    if len(mesh.triangles) and not 0 <= int(mesh.triangles.min()) <= int(mesh.triangles.max()) < len(mesh.vertices):
        raise UnreadableFile(
            f"{quote(document.part)}: object {model_object.id} has triangles whose vertices do not exist; "
            "export it again"
        )
    return mesh


def _check_counts(parts: int, steps: int) -> None:
    if parts > MAX_PARTS_COUNT:
        raise ModelTooComplex(
            f"the model places more than {MAX_PARTS_COUNT} parts through components; merge some",
            values={"limit": MAX_PARTS_COUNT},
        )
    if steps > _MAX_STEPS_COUNT:
        raise ModelTooComplex(f"the model places components more than {_MAX_STEPS_COUNT} times; remove empty ones")
