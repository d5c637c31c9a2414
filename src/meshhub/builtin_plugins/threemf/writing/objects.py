"""Which objects a scene becomes: a shape for each mesh as it is shown, groups for paths, and the build."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from meshhub.model.scene import Float64, Mesh, Part, Scene
from meshhub.toolkit.geometry import mirrors, placed_mesh

_FLIP = np.diag([-1.0, 1.0, 1.0, 1.0])


@dataclass(eq=False)
class Shape:
    """An object with a mesh: its matrix is baked in, and the material is shown by faces that name none."""

    index: int
    baked: Float64
    material: int | None
    name: str = ""
    id: int = 0

    def mesh(self, scene: Scene) -> Mesh:
        """The triangles."""
        return placed_mesh(scene.meshes[self.index], self.baked)


@dataclass(eq=False)
class Group:
    """An object of placed objects."""

    name: str
    members: list[tuple[Shape | Group, Float64]] = field(default_factory=list)
    inner: dict[str, Group] = field(default_factory=dict)
    id: int = 0


@dataclass
class Plan:
    """The objects, and the build items: what and where. Groups are made after those they lie in."""

    shapes: list[Shape] = field(default_factory=list)
    wrappers: dict[tuple[int, str], Group] = field(default_factory=dict)
    groups: list[Group] = field(default_factory=list)
    items: list[tuple[Shape | Group, Float64]] = field(default_factory=list)

    def objects(self) -> list[Shape | Group]:
        """All of them, each after those it is made of."""
        return [*self.shapes, *self.wrappers.values(), *reversed(self.groups)]


def planned(scene: Scene) -> Plan:
    """The plan of a scene; parts without faces are left out.

    3MF has no mirrors (core §3.3: a transform that flips must not be used for them), so a mirrored
    part gets a mirrored object, which all its mirrored instances share. A matrix that flattens is baked in.
    """
    plan = Plan()
    shapes: dict[tuple[object, ...], Shape] = {}
    users: dict[int, list[Part]] = {}
    placed: list[tuple[Part, Shape, Float64]] = []
    for number, part in enumerate(scene.parts):
        mesh = scene.meshes[part.mesh]
        if len(mesh.faces) == 0:
            continue
        material = part.material if mesh.face_material is None or bool((mesh.face_material < 0).any()) else None
        baked, rest, kind = _split(part.transform)
        key = (part.mesh, material, kind if kind != "flat" else number)
        if key not in shapes:
            shapes[key] = Shape(part.mesh, baked, material)
            plan.shapes.append(shapes[key])
        users.setdefault(id(shapes[key]), []).append(part)
        placed.append((part, shapes[key], rest))
    for shape in plan.shapes:
        names = {part.name for part in users[id(shape)]}
        own = scene.meshes[shape.index].name
        # instances of different names are named by groups of one, shared by namesakes, around an object without
        # a name; the part number of a build item would do too, but trimesh drops items that share one
        shape.name = (names.pop() or own) if len(names) == 1 else ""
    top = Group("")
    for part, shape, rest in placed:
        one: Shape | Group = shape
        if part.name not in ("", shape.name):
            one = plan.wrappers.setdefault((id(shape), part.name), Group(part.name, [(shape, np.eye(4))]))
        members = _group(plan, top, part.path).members if part.path else plan.items
        members.append((one, rest))
    return plan


def _split(transform: Float64) -> tuple[Float64, Float64, str]:
    """What is baked into the mesh, what is left to the item, and the kind of object it takes."""
    linear = transform[:3, :3]
    size = float(np.abs(linear).max())
    if size == 0 or abs(float(np.linalg.det(linear / size))) < 1e-9:
        return transform, np.eye(4), "flat"
    if mirrors(transform):
        return _FLIP, transform @ _FLIP, "mirrored"
    return np.eye(4), transform, "plain"


def _group(plan: Plan, top: Group, path: tuple[str, ...]) -> Group:
    """The group of a path, made with all those above it when it is new."""
    group = top
    for depth, name in enumerate(path):
        if name not in group.inner:
            made = Group(name)
            plan.groups.append(made)
            if depth == 0:
                plan.items.append((made, np.eye(4)))
            else:
                group.members.append((made, np.eye(4)))
            group.inner[name] = made
        group = group.inner[name]
    return group
