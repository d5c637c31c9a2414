"""Comparison of two scenes by the triangles that they show, in any order, with any indices and parts."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshhub.model.capabilities import Feature
from meshhub.model.scene import Float64, Mesh, Scene
from meshhub.toolkit.geometry import baked, soup

Values = NDArray[np.float64]
Matches = tuple[NDArray[np.intp], NDArray[np.intp]]

POSITION_TOLERANCE_RATIO = 1e-5
"""Tolerance of a coordinate, relative to the largest one: float32 rounding with a margin."""

_FEATURE_TOLERANCES: dict[Feature, float] = {
    "normals": 0.01,
    "uv": 1e-4,
    "colors": 2.5 / 255,
    "materials": 2.5 / 255,
    "textures": 0,
}
"""Tolerance of each component: colors may be rounded twice to 8 bits; textures compare by checksum."""


def describe_difference(expected: Scene, actual: Scene, feature: Feature | None = None) -> str:
    """Describe how two scenes differ in shape, or in a feature on their faces.

    Triangles are compared one by one. If they differ, the flat patches that they form are compared, because a format of
    surfaces may triangulate its faces differently.

    Args:
        expected: Scene that was written, in the host frame.
        actual: Scene that was read back, in the host frame.
        feature: Feature to compare as well; `expected` must have it.
    Returns:
        Description of the difference; "" for equal values.
    """
    expected_corners, actual_corners = _corner_positions(expected), _corner_positions(actual)
    expected_values = actual_values = None
    if feature in _FEATURE_TOLERANCES:
        expected_values, actual_values = _feature_values(expected, feature), _feature_values(actual, feature)
        assert expected_values is not None, f"the scene has no {feature}"
    fault, matches = _match_triangles(expected_corners, actual_corners)
    if fault:
        expected_patches = _flat_patches(expected_corners, expected_values)
        actual_patches = _flat_patches(actual_corners, actual_values)
        tolerance = POSITION_TOLERANCE_RATIO * float(np.abs(expected_corners).max()) ** 2
        if len(expected_patches) != len(actual_patches):
            return fault
        if np.abs(expected_patches[:, :8] - actual_patches[:, :8]).max() > tolerance:
            return fault
    if expected_values is None or feature is None:
        return ""
    if actual_values is None:
        return f"{feature} are gone"
    deviations = expected_patches[:, 8:] - actual_patches[:, 8:] if fault else actual_values[matches] - expected_values
    deviation = float(np.abs(deviations).max())
    return f"{feature} differ by up to {deviation:.3g}" if deviation > _FEATURE_TOLERANCES[feature] else ""


def part_names(scene: Scene) -> list[str]:
    """Return the names of the parts, or of their meshes, sorted."""
    return sorted(part.name or scene.meshes[part.mesh].name for part in scene.parts)


def part_groups(scene: Scene) -> list[tuple[str, tuple[str, ...]]]:
    """Return the names and paths of the parts, sorted, without groups that hold all parts: STEP needs one."""
    paths = [part.path for part in scene.parts]
    common = 0
    while all(len(path) > common and path[common] == paths[0][common] for path in paths):
        common += 1
    return sorted((part.name, part.path[common:]) for part in scene.parts)


def _corner_positions(scene: Scene) -> Float64:
    """Return the (m, 3, 3) corner positions of all faces of all parts."""
    vertices, faces = soup(scene)
    corners: Float64 = vertices[faces]
    return corners


def _match_triangles(expected: Float64, actual: Float64) -> tuple[str, Matches]:
    """Match two lists of triangles.

    Args:
        expected: (m, 3, 3) corner positions.
        actual: (k, 3, 3) corner positions.
    Returns:
        Description of the difference, or ""; indices into the faces (m, 1) and corners (m, 3) of `actual` for
        each corner of `expected`.
    """
    no_matches = np.empty((0, 1), np.intp), np.empty((0, 3), np.intp)
    if len(expected) != len(actual):
        return f"{len(actual)} faces instead of {len(expected)}", no_matches
    tolerance = POSITION_TOLERANCE_RATIO * float(np.abs(expected).max())
    distances = np.linalg.norm(expected.mean(axis=1)[:, None] - actual.mean(axis=1)[None], axis=2)
    nearest = distances.argmin(axis=1)
    if float(distances.min(axis=1).max()) > tolerance or len(set(nearest.tolist())) != len(nearest):
        return f"the faces lie elsewhere: {_format_bounds(actual)} instead of {_format_bounds(expected)}", no_matches
    actual = actual[nearest]
    deviations = np.stack([np.abs(np.roll(actual, -shift, axis=1) - expected).max(axis=(1, 2)) for shift in range(3)])
    if float(deviations.min(axis=0).max()) > tolerance:
        return "faces have other corners, or the opposite orientation", no_matches
    return "", (nearest[:, None], (np.arange(3) + deviations.argmin(axis=0)[:, None]) % 3)


def _flat_patches(corners: Float64, values: Values | None) -> Float64:
    """Sum up the triangles of each plane.

    Args:
        corners: (m, 3, 3) corner positions.
        values: (m, 3, k) values at the corners.
    Returns:
        (p, 8 + k), one row per plane: normal (3), offset, area, centroid (3), mean values.
    """
    cross_products = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    areas = np.linalg.norm(cross_products, axis=1) / 2
    has_area = areas > 0
    normals = cross_products[has_area] / (2 * areas[has_area, None])
    offsets = np.einsum("ij,ij->i", normals, corners[has_area, 0])
    planes, plane_index = np.unique(np.round(np.column_stack([normals, offsets]), 2) + 0.0, axis=0, return_inverse=True)
    columns = corners if values is None else np.concatenate([corners, values], axis=2)
    weighted = columns.mean(axis=1)[has_area] * areas[has_area, None]
    sums = np.zeros((len(planes), 1 + weighted.shape[1]))
    np.add.at(sums, plane_index.reshape(-1), np.column_stack([areas[has_area], weighted]))
    patches: Float64 = np.concatenate([planes, sums[:, :1], sums[:, 1:] / sums[:, :1]], axis=1)
    return patches


def _format_bounds(corners: Float64) -> str:
    points = corners.reshape(-1, 3)
    return f"{np.round(points.min(axis=0), 4).tolist()} … {np.round(points.max(axis=0), 4).tolist()}"


def _feature_values(scene: Scene, feature: Feature) -> Values | None:
    """Return the (m, 3, k) values of a feature at each corner of each face; None if no part has it."""
    scene = baked(scene)
    meshes = [scene.meshes[part.mesh] for part in scene.parts]
    values = [_mesh_values(scene, mesh, feature) for mesh in meshes]
    width = max((each.shape[2] for each in values if each is not None), default=0)
    if width == 0:
        return None
    return np.concatenate(
        [
            np.ones((len(mesh.faces), 3, width)) if each is None else each
            for mesh, each in zip(meshes, values, strict=True)
        ]
    )


def _mesh_values(scene: Scene, mesh: Mesh, feature: Feature) -> Values | None:
    if feature == "normals":
        return _spread_vertices(mesh, mesh.normals)
    if feature == "uv":
        return _spread_vertices(mesh, mesh.uv)
    if feature == "textures":
        if mesh.face_material is None:
            return None
        checksums = np.array([*(_texture_checksum(scene, index) for index in range(len(scene.materials))), 0.0])
        return _spread_faces(checksums[mesh.face_material][:, None])
    # a format may store vertex colors as materials or the reverse, so the visible color is compared
    vertex_colors = _spread_vertices(mesh, None if mesh.colors is None else mesh.colors / 255.0)
    if mesh.face_material is None:
        return vertex_colors
    base_colors = np.array([*(material.base_color for material in scene.materials), (1.0, 1.0, 1.0, 1.0)])
    face_colors = _spread_faces(base_colors[mesh.face_material])
    return face_colors if vertex_colors is None else vertex_colors * face_colors


def _spread_vertices(mesh: Mesh, values: NDArray[Any] | None) -> Values | None:
    """Return (n, k) vertex values as (m, 3, k) corner values."""
    return None if values is None else values[mesh.faces].astype(np.float64)


def _spread_faces(values: Values) -> Values:
    """Return (m, k) face values as (m, 3, k) corner values."""
    return np.repeat(values[:, None], 3, axis=1)


def _texture_checksum(scene: Scene, material: int) -> float:
    """Return a checksum of the texture's bytes as a number to compare; 0.0 without a texture."""
    image = scene.materials[material].base_color_image
    return 0.0 if image is None else float(zlib.crc32(scene.images[image].data))
