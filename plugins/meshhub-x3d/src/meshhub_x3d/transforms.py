"""Matrices of nodes that place others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from meshhub import UnreadableFile
from meshhub.errors import quote
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import unit_vectors
from meshhub_x3d.fields import read_vector
from meshhub_x3d.nodes import Node


def rotations(rows: Float64) -> Float64:
    """Return (n, 3, 3) rotations about axes by angles in radians (Rodrigues' formula); an axis of zero turns nothing.

    Args:
        rows: (n, 4) axis and angle.
    """
    x, y, z = unit_vectors(rows[:, :3]).T
    zero = np.zeros(len(rows))
    cross = np.stack([zero, -z, y, z, zero, -x, -y, x, zero], axis=1).reshape(-1, 3, 3)
    angles = rows[:, 3, None, None]
    matrix: Float64 = np.eye(3) + np.sin(angles) * cross + (1 - np.cos(angles)) * (cross @ cross)
    return matrix


def _translate(values: Float64) -> Float64:
    matrix = np.eye(4)
    matrix[:3, 3] = values
    return matrix


def _rotate(values: Float64) -> Float64:
    matrix = np.eye(4)
    if values[3] != 0:
        matrix[:3, :3] = rotations(values[None])[0]
    return matrix


def read_transform(node: Node, radians: float = 1.0, scale_field: str = "scale") -> Float64:
    """Return the matrix of a Transform (ISO/IEC 19775-1, 10.4.4).

    Args:
        node: Node with the fields of a Transform.
        radians: Radians of the unit of angles.
        scale_field: Name of the field with the scale.
    Raises:
        UnreadableFile: The matrix is not finite.
    """
    center = read_vector(node, "center", (0, 0, 0))
    oblique = _rotate(_angle(node, "scaleOrientation", radians))
    scale = np.diag([*read_vector(node, scale_field, (1, 1, 1)), 1.0])
    matrix = (
        _translate(read_vector(node, "translation", (0, 0, 0)) + center)
        @ _rotate(_angle(node, "rotation", radians))
        @ oblique
        @ scale
        @ oblique.T
        @ _translate(-center)
    )
    return _check(node, matrix)


def _angle(node: Node, name: str, radians: float) -> Float64:
    return read_vector(node, name, (0, 0, 1, 0)) * [1, 1, 1, radians]


def _check(node: Node, matrix: Float64) -> Float64:
    if not np.isfinite(matrix).all():
        name = quote((node.name or node.kind)[:40])
        raise UnreadableFile(f"{name} has a transform that is not finite; export the file again")
    return matrix


def read_matrix(node: Node) -> Float64:
    """Return the matrix of a MatrixTransform, whose numbers are for row vectors (VRML 1.0). Raises UnreadableFile."""
    values = read_vector(node, "matrix", tuple(np.eye(4).ravel()))
    return _check(node, values.reshape(4, 4).T)


def read_texture_transform(node: Node, radians: float = 1.0) -> Float64:
    """Return the (3, 3) matrix of a TextureTransform (ISO/IEC 19775-1, 18.4.9)."""
    center, translation = (np.eye(3), np.eye(3))
    center[:2, 2], translation[:2, 2] = read_vector(node, "center", (0, 0)), read_vector(node, "translation", (0, 0))
    angle = float(read_vector(node, "rotation", (0,))[0]) * radians
    turn = rotations(np.array([[0.0, 0, 1, angle]]))[0]
    scale = np.diag([*read_vector(node, "scale", (1, 1)), 1.0])
    matrix: Float64 = np.linalg.inv(center) @ scale @ turn @ center @ translation
    return matrix


VRML1_TRANSFORMS: dict[str, Callable[[Node], Float64]] = {
    "Transform": lambda node: read_transform(node, scale_field="scaleFactor"),
    "MatrixTransform": read_matrix,
    "Translation": lambda node: _check(node, _translate(read_vector(node, "translation", (0, 0, 0)))),
    "Rotation": lambda node: _check(node, _rotate(read_vector(node, "rotation", (0, 0, 1, 0)))),
    "Scale": lambda node: _check(node, np.diag([*read_vector(node, "scaleFactor", (1, 1, 1)), 1.0])),
}
"""Matrices of the nodes of VRML 1.0 that change the place of the shapes after them."""
