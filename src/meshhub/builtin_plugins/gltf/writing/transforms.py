"""Matrices as glTF's nodes want them."""

from __future__ import annotations

from typing import Any

import numpy as np

from meshhub.model.scene import Float64

FAR = 1024.0
"""How many times its own size away from the origin a mesh is moved to it, its node bearing the distance: float32 has
24 bits, of which 10 would go into the distance. Not sooner: parts that touch each other round alike only
while they have one origin."""

_TINY = 1e-12


def local_origin(low: Float64, high: Float64) -> Float64:
    """(3,) what to take off vertices between two corners, so that float32 does not coarsen them; mostly zeros.

    It is a multiple of a power of two, so that taking it off is exact wherever it can be.
    """
    extent = float((high - low).max())
    if not 0 < extent * FAR < float(np.maximum(np.abs(low), np.abs(high)).max()):
        return np.zeros(3)
    step = 2.0 ** np.ceil(np.log2(extent))
    origin: Float64 = np.rint((low + high) / (2 * step)) * step
    return origin


def node_transform(matrix: Float64) -> dict[str, Any] | None:
    """Translation, rotation and scale of a (4, 4) matrix as a node's members, what is the default left out.

    None for a matrix with shear or without volume, which these cannot say (glTF 2.0 §3.5.3). A mirror is a negative
    scale along x.
    """
    linear = matrix[:3, :3]
    node: dict[str, Any] = {}
    if matrix[:3, 3].any():
        node["translation"] = (matrix[:3, 3] + 0.0).tolist()
    if np.array_equal(linear, np.eye(3)):
        return node
    scale = np.linalg.norm(linear, axis=0)
    if not (scale > 0).all():
        return None
    if np.linalg.det(linear / scale) < 0:
        scale[0] = -scale[0]
    rotation = linear / scale
    if np.abs(rotation.T @ rotation - np.eye(3)).max() > 1e-9:
        return None
    if np.abs(rotation - np.eye(3)).max() > _TINY:
        node["rotation"] = _quaternion(rotation).tolist()
    if np.abs(scale - 1).max() > _TINY:
        node["scale"] = scale.tolist()
    return node


def _quaternion(rotation: Float64) -> Float64:
    """(4,) x y z w of a rotation matrix, w not negative (Shepperd 1978: divide by the largest component)."""
    m = rotation
    diagonal = np.diag(m)
    trace = float(diagonal.sum())
    squares = np.array([*(1 + 2 * diagonal - trace), 1 + trace])
    largest = int(np.argmax(squares))
    root = 2 * np.sqrt(squares[largest])
    candidates = (
        (squares[0], m[0, 1] + m[1, 0], m[0, 2] + m[2, 0], m[2, 1] - m[1, 2]),
        (m[0, 1] + m[1, 0], squares[1], m[1, 2] + m[2, 1], m[0, 2] - m[2, 0]),
        (m[0, 2] + m[2, 0], m[1, 2] + m[2, 1], squares[2], m[1, 0] - m[0, 1]),
        (m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1], squares[3]),
    )
    found: Float64 = np.array(candidates[largest], np.float64) / root
    found *= (1.0 if found[3] >= 0 else -1.0) / np.linalg.norm(found)
    return found + 0.0
