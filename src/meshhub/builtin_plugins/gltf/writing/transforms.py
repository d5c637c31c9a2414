"""Transforms in the form that glTF nodes require."""

from __future__ import annotations

from typing import Any

import numpy as np

from meshhub.model.scene import Float64

_MAX_DISTANCE_RATIO = 1024.0
"""Distance from the origin, in extents of the mesh, beyond which the distance moves from the vertices to the node.

At this ratio, 10 of the 24 bits of float32 store the distance. Nearer meshes keep their origin, because the vertices of
touching parts are rounded to equal positions only if the parts share an origin.
"""

_MAX_SHEAR = 1e-9
"""Deviation of the rotation from an orthogonal matrix that counts as rounding."""
_MAX_NOISE = 1e-12
"""Deviation from the identity up to which a transform is not written."""


def choose_local_origin(low: Float64, high: Float64) -> Float64:
    """Choose an origin for a mesh that is far from the origin, so that float32 keeps its details.

    Args:
        low: (3,) lower corner of the bounding box.
        high: (3,) upper corner.
    Returns:
        (3,) vector to subtract from the vertices; zero for meshes near the origin. It is a multiple of a power of
        two, so that most differences are exact.
    """
    extent = float((high - low).max())
    if not 0 < extent * _MAX_DISTANCE_RATIO < float(np.maximum(np.abs(low), np.abs(high)).max()):
        return np.zeros(3)
    step = 2.0 ** np.ceil(np.log2(extent))
    origin: Float64 = np.rint((low + high) / (2 * step)) * step
    return origin


def decompose_transform(matrix: Float64) -> dict[str, Any] | None:
    """Return translation, rotation and scale of a matrix as members of a node; defaults are left out.

    Args:
        matrix: (4, 4) affine matrix for column vectors.
    Returns:
        Members of the node; a mirror is a negative scale along X. None if the matrix shears or flattens, which nodes
        cannot represent (glTF 2.0 §3.5.3).
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
    with np.errstate(all="ignore"):  # LAPACK divides by the pivots, which can be denormal
        if np.linalg.det(linear / scale) < 0:
            scale[0] = -scale[0]
    rotation = linear / scale
    if np.abs(rotation.T @ rotation - np.eye(3)).max() > _MAX_SHEAR:
        return None
    if np.abs(rotation - np.eye(3)).max() > _MAX_NOISE:
        node["rotation"] = _quaternion(rotation).tolist()
    if np.abs(scale - 1).max() > _MAX_NOISE:
        node["scale"] = scale.tolist()
    return node


def _quaternion(rotation: Float64) -> Float64:
    """Return the quaternion (4,) x y z w, with w >= 0, of a rotation (3, 3).

    Source:
        Shepperd, "Quaternion from rotation matrix", 1978: divide by the largest component.
    """
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
    quaternion: Float64 = np.array(candidates[largest], np.float64) / root
    quaternion *= (1.0 if quaternion[3] >= 0 else -1.0) / np.linalg.norm(quaternion)
    return quaternion + 0.0
