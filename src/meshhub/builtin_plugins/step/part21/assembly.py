"""Parts of a scene as STEP products: distinct shapes, each written once, and their rigid placements."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from meshhub.builtin_plugins.step.part21.document import ProductIds, StepDocument
from meshhub.model.scene import Float64, Mesh, Scene
from meshhub.toolkit.geometry import placed_mesh

_MAX_RIGID_ERROR = 2e-6
"""Largest deviation of RRᵀ from the unit matrix; rotations are stored as 32-bit numbers or with six decimals.
STEP stores two axes, which every program orthogonalizes."""


@dataclass(frozen=True, eq=False)
class ProductShape:
    """A mesh that is written as one product; material: of the triangles that have none of their own."""

    mesh: Mesh
    material: int | None
    name: str


@dataclass(frozen=True, eq=False)
class ShapePlacement:
    """An instance of a shape.

    shape:  index of the shape
    matrix: rigid (4, 4) from the shape's frame to the scene's, millimeters
    name:   name of the instance
    path:   names of the groups above, outermost first
    """

    shape: int
    matrix: Float64
    name: str
    path: tuple[str, ...]


def collect_shapes(scene: Scene) -> tuple[list[ProductShape], list[ShapePlacement]]:
    """Return the distinct shapes of a scene and their placements.

    STEP placements are rotations and translations. Scaling, shearing and mirroring are applied to the vertices, which
    makes a separate shape. Parts that share a mesh but not the material are separate shapes, too.
    """
    shapes: list[ProductShape] = []
    placements: list[ShapePlacement] = []
    shape_numbers: dict[tuple[int, bytes, int | None], int] = {}
    is_single = len(scene.parts) == 1 and not scene.parts[0].path
    for part in scene.parts:
        mesh = scene.meshes[part.mesh]
        if len(mesh.faces) == 0:
            continue
        matrix = part.transform
        baked_matrix = np.eye(4)
        if not is_rigid(matrix):
            baked_matrix[:3, :3] = matrix[:3, :3]
            matrix = np.eye(4)
            matrix[:3, 3] = part.transform[:3, 3]
        key = (part.mesh, baked_matrix.tobytes(), part.material)
        if key not in shape_numbers:
            shape_numbers[key] = len(shapes)
            name = (part.name or mesh.name) if is_single else (mesh.name or part.name)
            bare = replace(mesh, normals=None, uv=None)
            shapes.append(ProductShape(placed_mesh(bare, baked_matrix), part.material, name or "part"))
        placements.append(ShapePlacement(shape_numbers[key], matrix, part.name or mesh.name, part.path))
    return shapes, placements


def is_rigid(matrix: Float64) -> bool:
    """Return whether a (4, 4) matrix is a rotation and a translation, without scaling or mirroring."""
    linear = matrix[:3, :3]
    return bool(np.abs(linear @ linear.T - np.eye(3)).max() <= _MAX_RIGID_ERROR and np.linalg.det(linear) > 0)


def needs_assembly(placements: list[ShapePlacement]) -> bool:
    """Return whether the scene is more than one shape in its own frame."""
    return len(placements) != 1 or bool(placements[0].path) or not np.array_equal(placements[0].matrix, np.eye(4))


def write_assembly(
    document: StepDocument, scene: Scene, products: list[ProductIds | None], placements: list[ShapePlacement]
) -> None:
    """Write the groups of the scene as assemblies, with the placements in them.

    Args:
        document: Output.
        scene: Its name is the root's name if the parts have no common group.
        products: Ids of each shape's product; None for a shape without a surface.
        placements: Instances of the shapes.
    """
    placements = [placement for placement in placements if products[placement.shape] is not None]
    tops = {placement.path[:1] for placement in placements}
    has_common_top = len(tops) == 1 and () not in tops
    root = next(iter(tops)) if has_common_top else ()
    root_name = root[0] if has_common_top else scene.name or "assembly"
    groups: dict[tuple[str, ...], ProductIds] = {root: document.write_product(root_name, (), ())}
    number = 0
    for placement in placements:
        for depth in range(len(root) + 1, len(placement.path) + 1):
            path = placement.path[:depth]
            if path not in groups:
                number += 1
                groups[path] = document.write_product(path[-1] or "group", (), ())
                document.write_occurrence(number, path[-1] or "group", groups[path[:-1]], groups[path], np.eye(4))
        number += 1
        product = products[placement.shape]
        assert product is not None
        document.write_occurrence(number, placement.name or "part", groups[placement.path], product, placement.matrix)
