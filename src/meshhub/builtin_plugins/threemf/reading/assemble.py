"""From build items and components, over all model parts, to placed meshes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from meshhub.builtin_plugins.threemf.reading.appearance import Surfaces
from meshhub.builtin_plugins.threemf.reading.document import (
    CORE,
    MATERIAL,
    MOST_PARTS,
    PRODUCTION,
    SLICE,
    Component,
    Document,
    Object,
)
from meshhub.builtin_plugins.threemf.reading.model import read_model
from meshhub.builtin_plugins.threemf.reading.package import Package
from meshhub.builtin_plugins.threemf.reading.slicer import Project
from meshhub.errors import EmptyModel, ModelTooComplex, UnreadableFile
from meshhub.model.capabilities import MILLIMETRES_PER
from meshhub.model.notes import note
from meshhub.model.scene import Float64, Mesh, Part

_ENCRYPTED = b"%3McF"
"""How an encrypted part begins (Secure Content §4.2)."""

MOST_STEPS = 1_000_000
"""Components that are walked to find parts; empty ones cost time and are no parts."""

DEEPEST = 64

_Key = tuple[str, int]

_EXTENSIONS = {
    "beamlattice": "Beam Lattice",
    "booleanoperations": "Boolean Operations",
    "displacement": "Displacement",
    "implicit": "Implicit",
    "securecontent": "Secure Content",
    "volumetric": "Volumetric",
}
_KNOWN = CORE | {MATERIAL, PRODUCTION, SLICE}
_HARMLESS = ("/slice/", "/trianglesets/", "/production/")
_LEFT_OUT = {
    "support": "support structures",
    "solidsupport": "support structures",
    "surface": "surfaces that are not printed",
    "other": "objects that are not printed (modifiers, for instance)",
}


class Assembly:
    """The objects of a package, found over all its model parts."""

    def __init__(self, package: Package, root: str) -> None:
        self.surfaces = Surfaces(package)
        self._package = package
        self._protected = package.is_protected()
        self._documents: dict[str, Document] = {}
        self.root = self._document(root)
        self._project = Project(package, self.root)
        self._counts: dict[_Key, int] = {}
        self._steps: dict[_Key, int] = {}
        self._meshes: list[Mesh] = []
        self._made: dict[_Key, int] = {}

    def build(self) -> tuple[tuple[Mesh, ...], tuple[Part, ...]]:
        """The meshes, and a part for each time that the build places one."""
        self._tell_extensions()
        if not self.root.items:
            raise EmptyModel(
                "the 3MF file places nothing in its build section, so there is nothing to print; "
                "put the objects on the plate and export again"
            )
        placed: list[tuple[Component, _Key]] = []
        total = steps = 0
        for item in self.root.items:
            key = self._resolve(item, self.root)
            if not item.printable:
                note("not_printable_skipped", "objects that the file marks as not printable were left out")
                continue
            if self._left_out(self._object(key)):
                continue
            self._count(key)
            total += self._counts[key]
            steps += self._steps[key]
            self._bound(total, steps)
            placed.append((item, key))
        parts: list[Part] = []
        for item, key in placed:
            parts.extend(self._expanded(item, key))
        if not placed:
            raise EmptyModel(
                "the 3MF file builds only supports or objects marked as not printable; mark the model as printable"
            )
        self._project.note_losses()
        return tuple(self._meshes), tuple(parts)

    # -- finding --

    def _document(self, name: str) -> Document:
        if name not in self._documents:
            data = self._package.read(name)
            if self._protected and data.startswith(_ENCRYPTED):
                raise UnreadableFile(
                    f"{name!r} is encrypted (3MF Secure Content), and only the receiver it was made for can read it; "
                    "export the model without protection"
                )
            self._documents[name] = read_model(data, name)
        return self._documents[name]

    def _resolve(self, component: Component, document: Document) -> _Key:
        if component.part is None:
            return document.part, component.object
        name = self._package.find(component.part, document.part)
        if name is None:
            raise UnreadableFile(
                f"{document.part!r} places an object of {component.part[-80:]!r}, which is not in the file; "
                "export the model again"
            )
        return name, component.object

    def _object(self, key: _Key) -> Object:
        found = self._document(key[0]).objects.get(key[1])
        if found is None:
            raise UnreadableFile(f"{key[0]!r} places an object {key[1]} that is not there; export the model again")
        return found

    def _children(self, key: _Key) -> list[_Key]:
        document = self._document(key[0])
        return [self._resolve(component, document) for component in self._object(key).components]

    def _left_out(self, made: Object) -> bool:
        if made.kind == "model":
            return self._project.leave_out(made)
        left = _LEFT_OUT.get(made.kind, f"objects of the type {made.kind[:20]!r}")
        note("not_a_model_skipped", f"{left} were left out")
        return True

    # -- counting before expanding --

    def _count(self, top: _Key) -> None:
        """How many meshes an object places, without expanding it. Refuses cycles, depth and explosions."""
        if top in self._counts:
            return
        stack: list[tuple[_Key, list[_Key], Iterator[_Key]]] = []
        above: set[_Key] = set()

        def enter(key: _Key) -> None:
            if key in above:
                raise UnreadableFile(f"{key[0]!r}: object {key[1]} holds itself; export the model again")
            if len(stack) >= DEEPEST:
                raise ModelTooComplex(f"the model nests its components more than {DEEPEST} deep; flatten it")
            children = self._children(key)
            stack.append((key, children, iter(children)))
            above.add(key)

        enter(top)
        while stack:
            key, children, rest = stack[-1]
            child = next(rest, None)
            if child is not None:
                if child in above or (child not in self._counts and not self._left_out(self._object(child))):
                    enter(child)
                continue
            made = self._object(key)
            own = 1 if made.mesh is not None and len(made.mesh.triangles) else 0
            if not own and not made.components:
                self._refuse_foreign(made)
            self._counts[key] = own + sum(self._counts.get(child, 0) for child in children)
            self._steps[key] = 1 + sum(self._steps.get(child, 1) for child in children)
            self._bound(self._counts[key], self._steps[key])
            above.discard(key)
            stack.pop()

    def _bound(self, count: int, steps: int) -> None:
        if count > MOST_PARTS:
            raise ModelTooComplex(f"the model places more than {MOST_PARTS} parts through its components; merge some")
        if steps > MOST_STEPS:
            raise ModelTooComplex(f"the model places components more than {MOST_STEPS} times; leave out empty ones")

    # -- expanding --

    def _expanded(self, item: Component, top: _Key) -> Iterator[Part]:
        """The parts below one build item, depth first in the order of the file."""
        stack: list[tuple[_Key, Float64, tuple[str, ...], str]] = []
        matrix = item.matrix @ self._scale(top, self.root.part)
        if self._counts.get(top):
            stack.append((top, matrix, (), item.name))
        while stack:
            key, matrix, path, given = stack.pop()
            made = self._object(key)
            components = made.components
            if made.mesh is not None and len(made.mesh.triangles):
                yield Part(self._mesh(key, made), matrix, name=given or made.name, path=path)
            document = self._document(key[0])
            name = made.name or given
            for component in reversed(components):
                child = self._resolve(component, document)
                if not self._counts.get(child):
                    continue
                # a group of one without a name of its own is named by the group
                alone = len(components) == 1 and not self._object(child).name
                inner = path if alone or not name else (*path, name)
                below = matrix @ component.matrix
                if self._document(child[0]).unit != document.unit:
                    below = below @ self._scale(child, key[0])
                stack.append((child, below, inner, name if alone else ""))

    def _scale(self, key: _Key, outer: str) -> Float64:
        """What brings a part in another unit into that of the part which places it."""
        inside, outside = self._document(key[0]).unit, self._document(outer).unit
        scale = np.eye(4)
        if inside != outside:
            scale[:3, :3] *= MILLIMETRES_PER[inside] / MILLIMETRES_PER[outside]
        return scale

    def _mesh(self, key: _Key, made: Object) -> int:
        if key not in self._made:
            assert made.mesh is not None
            triangles = made.mesh.triangles
            if int(triangles.min()) < 0 or int(triangles.max()) >= len(made.mesh.vertices):
                raise UnreadableFile(
                    f"{key[0]!r}: object {key[1]} has triangles that name vertices which do not exist; export it again"
                )
            self._tell_object(made)
            self._project.count_paint(made.mesh)
            self._made[key] = len(self._meshes)
            self._meshes.append(self.surfaces.mesh(self._document(key[0]), made, made.mesh))
        return self._made[key]

    # -- telling --

    def _tell_object(self, made: Object) -> None:
        if made.coarse:
            note("low_resolution_mesh", "the file keeps its fine shape as slices; its coarse mesh was read")
        for namespace in sorted(made.foreign):
            if _is_geometry(namespace):
                note("extension_ignored", f"{_called(namespace)} geometry beside the triangles was not read")

    def _tell_extensions(self) -> None:
        for prefix, namespace in sorted(self.root.required.items()):
            if namespace not in _KNOWN and not any(part in namespace for part in _HARMLESS):
                note(
                    "unknown_required_extension",
                    f"the file asks for the 3MF extension {_called(namespace)} ({prefix[:20]}), which is not read; "
                    "its plain triangles were",
                )

    def _refuse_foreign(self, made: Object) -> None:
        """An object without triangles may have its shape from an extension; it must not vanish silently."""
        foreign = sorted(filter(_is_geometry, made.foreign))
        if foreign:
            raise UnreadableFile(
                f"object {made.id} is made of {_called(foreign[0])} geometry, a 3MF extension that is not read; "
                "export it as triangles"
            )


def _is_geometry(namespace: str) -> bool:
    return any(f"/{key}/" in namespace for key in _EXTENSIONS)


def _called(namespace: str) -> str:
    return next((label for key, label in _EXTENSIONS.items() if f"/{key}/" in namespace), repr(namespace[-80:]))
