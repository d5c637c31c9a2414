"""Plan the objects of a 3MF file: mesh objects, groups of objects, and the build items."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from meshhub.model.scene import Float64, Mesh, Part, Scene
from meshhub.toolkit.geometry import placed_mesh

_MIRROR_X = np.diag([-1.0, 1.0, 1.0, 1.0])

_MIN_DETERMINANT = 1e-9
"""Determinant, for a largest number of 1, below which a matrix flattens; readers reject such a matrix. """


@dataclass(eq=False)
class MeshObject:
    """An object with a mesh.

    mesh:     index in the scene
    baked:    (4, 4) matrix that is applied to the vertices
    material: material of the faces without one
    """

    mesh: int
    baked: Float64
    material: int | None
    name: str = ""
    id: int = 0

    def transformed_mesh(self, scene: Scene) -> Mesh:
        """Return the mesh with the baked matrix applied."""
        return placed_mesh(scene.meshes[self.mesh], self.baked)


@dataclass(eq=False)
class GroupObject:
    """An object of placed objects."""

    name: str
    members: list[tuple[MeshObject | GroupObject, Float64]] = field(default_factory=list)
    subgroups: dict[str, GroupObject] = field(default_factory=dict)
    id: int = 0


class BuildItem(NamedTuple):
    """An object that the build section places.

    item:   the object
    matrix: (4, 4) placement
    plate:  number of its bed, from 0
    """

    item: MeshObject | GroupObject
    matrix: Float64
    plate: int


@dataclass
class ObjectTree:
    """The objects of a file, and the build items.

    meshes:   objects with a mesh
    wrappers: groups of one that name an instance, by the id of the mesh object and the name
    groups:   groups for the paths of parts; each follows the group that contains it
    items:    objects that the build section places
    """

    meshes: list[MeshObject] = field(default_factory=list)
    wrappers: dict[tuple[int, str], GroupObject] = field(default_factory=dict)
    groups: list[GroupObject] = field(default_factory=list)
    items: list[BuildItem] = field(default_factory=list)

    def objects(self) -> list[MeshObject | GroupObject]:
        """Return all objects; each follows the objects that it contains."""
        return [*self.meshes, *self.wrappers.values(), *reversed(self.groups)]


def build_object_tree(scene: Scene) -> ObjectTree:
    """Build the objects of a scene; parts without faces are left out.

    3MF forbids mirrors (core §3.3), so a mirrored part gets a mirrored object, which its mirrored instances share.
    A matrix that flattens is baked into a separate object.
    """
    tree = ObjectTree()
    placements = _add_mesh_objects(tree, scene)
    _name_mesh_objects(tree, scene, placements)
    top = GroupObject("")
    for part, mesh_object, matrix in placements:
        member: MeshObject | GroupObject = mesh_object
        if part.name not in ("", mesh_object.name):
            wrapper = GroupObject(part.name, [(mesh_object, np.eye(4))])
            member = tree.wrappers.setdefault((id(mesh_object), part.name), wrapper)
        if part.path:
            _find_group(tree, top, part).members.append((member, matrix))
        else:
            tree.items.append(BuildItem(member, matrix, part.plate))
    return tree


def _add_mesh_objects(tree: ObjectTree, scene: Scene) -> list[tuple[Part, MeshObject, Float64]]:
    """Add the mesh objects, and return the object and the remaining matrix of each part."""
    by_key: dict[tuple[object, ...], MeshObject] = {}
    placements = []
    for number, part in enumerate(scene.parts):
        mesh = scene.meshes[part.mesh]
        if len(mesh.faces) == 0:
            continue
        material = part.material if mesh.face_material is None or bool((mesh.face_material < 0).any()) else None
        baked, matrix, kind = _split_transform(part.transform)
        key = (part.mesh, material, kind if kind != "flat" else number)
        if key not in by_key:
            by_key[key] = MeshObject(part.mesh, baked, material)
            tree.meshes.append(by_key[key])
        placements.append((part, by_key[key], matrix))
    return placements


def _name_mesh_objects(tree: ObjectTree, scene: Scene, placements: list[tuple[Part, MeshObject, Float64]]) -> None:
    """Name each mesh object after its instances if all have the same name.

    Instances with different names get wrappers around an object without a name. The part number of a build item could
    store the name too, but trimesh drops items with equal part numbers.
    """
    names: dict[int, set[str]] = {}
    for part, mesh_object, _ in placements:
        names.setdefault(id(mesh_object), set()).add(part.name)
    for mesh_object in tree.meshes:
        own = names[id(mesh_object)]
        mesh_object.name = (own.pop() or scene.meshes[mesh_object.mesh].name) if len(own) == 1 else ""


def _split_transform(transform: Float64) -> tuple[Float64, Float64, str]:
    """Return the matrix to bake into the mesh, the remaining matrix, and the kind: "flat", "mirrored" or "plain"."""
    linear = transform[:3, :3]
    size = float(np.abs(linear).max())
    if size == 0:
        return transform, np.eye(4), "flat"
    # LAPACK divides by the pivots, which overflows for denormal ones; the result is then 0 or NaN
    with np.errstate(all="ignore"):
        determinant = float(np.linalg.det(linear / size))
    if not abs(determinant) >= _MIN_DETERMINANT:
        return transform, np.eye(4), "flat"
    if determinant < 0:
        return _MIRROR_X, transform @ _MIRROR_X, "mirrored"
    return np.eye(4), transform, "plain"


def _find_group(tree: ObjectTree, top: GroupObject, part: Part) -> GroupObject:
    """Return the innermost group of a part; create it and the groups above it if they are new."""
    group = top
    for depth, name in enumerate(part.path):
        if name not in group.subgroups:
            subgroup = GroupObject(name)
            tree.groups.append(subgroup)
            if depth == 0:
                tree.items.append(BuildItem(subgroup, np.eye(4), part.plate))
            else:
                group.members.append((subgroup, np.eye(4)))
            group.subgroups[name] = subgroup
        group = group.subgroups[name]
    return group
