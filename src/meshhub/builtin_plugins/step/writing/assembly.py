"""Parts of a scene as STEP sees them: shapes, each written once, and rigid placements of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from meshhub.builtin_plugins.step.writing.product import Document, Product
from meshhub.model.scene import Float64, Mesh, Scene
from meshhub.toolkit.geometry import placed_mesh

_RIGID = 2e-6
"""Rotations come as 32-bit numbers or with six decimals; of their axes in STEP, every program squares them up."""


@dataclass(frozen=True, eq=False)
class Shape:
    """A mesh to be written as one product; material: what colours the faces that name none."""

    mesh: Mesh
    material: int | None
    name: str


@dataclass(frozen=True, eq=False)
class Placement:
    """A shape placed; matrix: (4, 4), rigid."""

    shape: int
    matrix: Float64
    name: str
    path: tuple[str, ...]


def shapes_of(scene: Scene) -> tuple[list[Shape], list[Placement]]:
    """The shapes of a scene and where they stand.

    STEP places by rotation and translation only: scales, shears and mirrors are baked into a shape of their own.
    A part whose material differs from another's of the same mesh gets a shape of its own, too.
    """
    shapes: list[Shape] = []
    placements: list[Placement] = []
    known: dict[tuple[int, bytes, int | None], int] = {}
    alone = len(scene.parts) == 1 and not scene.parts[0].path
    for part in scene.parts:
        mesh = scene.meshes[part.mesh]
        if len(mesh.faces) == 0:
            continue
        matrix = part.transform
        baked = np.eye(4)
        if not is_rigid(matrix):
            baked[:3, :3] = matrix[:3, :3]
            matrix = np.eye(4)
            matrix[:3, 3] = part.transform[:3, 3]
        key = (part.mesh, baked.tobytes(), part.material)
        if key not in known:
            known[key] = len(shapes)
            name = (part.name or mesh.name) if alone else (mesh.name or part.name)
            bare = replace(mesh, normals=None, uv=None)
            shapes.append(Shape(placed_mesh(bare, baked), part.material, name or "part"))
        placements.append(Placement(known[key], matrix, part.name or mesh.name, part.path))
    return shapes, placements


def is_rigid(matrix: Float64) -> bool:
    """Whether a (4, 4) matrix is a rotation and a translation, no mirror."""
    linear = matrix[:3, :3]
    return bool(np.abs(linear @ linear.T - np.eye(3)).max() <= _RIGID and np.linalg.det(linear) > 0)


def needs_assembly(placements: list[Placement]) -> bool:
    """Whether there is more to say than one shape where it is."""
    return len(placements) != 1 or bool(placements[0].path) or not np.array_equal(placements[0].matrix, np.eye(4))


def write_assembly(document: Document, scene: Scene, products: list[Product | None], placed: list[Placement]) -> None:
    """Write the groups as assemblies, and the placements in them."""
    placed = [one for one in placed if products[one.shape] is not None]
    tops = {one.path[:1] for one in placed}
    common = len(tops) == 1 and () not in tops
    root = next(iter(tops)) if common else ()
    groups: dict[tuple[str, ...], Product] = {}
    groups[root] = document.product(root[0] if common else scene.name or "assembly", (), ())
    number = 0
    for one in placed:
        for depth in range(len(root) + 1, len(one.path) + 1):
            path = one.path[:depth]
            if path not in groups:
                number += 1
                groups[path] = document.product(path[-1] or "group", (), ())
                document.occurrence(number, path[-1] or "group", groups[path[:-1]], groups[path], np.eye(4))
        number += 1
        product = products[one.shape]
        assert product is not None
        document.occurrence(number, one.name or "part", groups[one.path], product, one.matrix)
