"""Whether two scenes show the same triangles, whatever their order, indices and parts."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshhub.model.capabilities import Feature
from meshhub.model.scene import Float64, Mesh, Scene
from meshhub.toolkit.geometry import baked, soup

Values = NDArray[np.float64]

CLOSE = 1e-5
"""How far a coordinate may be off, as a share of the scene's extent: float32 with room to spare."""

_OFF: dict[Feature, float] = {"normals": 0.01, "uv": 1e-4, "colors": 2.5 / 255, "materials": 2.5 / 255, "textures": 0}


def difference(wanted: Scene, found: Scene, feature: Feature | None = None) -> str:
    """How the surfaces differ, or what a feature shows on them; "" when they do not.

    Triangles are compared one by one. Where they are not the same, the flat patches that they make up
    are: a format of surfaces may cut its faces into other triangles.
    """
    one, other = soup(wanted), soup(found)
    corners, others = one[0][one[1]], other[0][other[1]]
    had = shown = None
    if feature in _OFF:
        had, shown = _shown(wanted, feature), _shown(found, feature)
        assert had is not None, f"the scene has no {feature}"
    fault, match = _matched(corners, others)
    if fault:
        patches, others_patches = _patches(corners, had), _patches(others, shown)
        close = CLOSE * float(np.abs(corners).max()) ** 2
        if len(patches) != len(others_patches) or np.abs(patches[:, :8] - others_patches[:, :8]).max() > close:
            return fault
    if had is None or feature is None:
        return ""
    if shown is None:
        return f"{feature} are gone"
    off = float(np.abs(patches[:, 8:] - others_patches[:, 8:] if fault else shown[match] - had).max())
    return f"{feature} differ by up to {off:.3g}" if off > _OFF[feature] else ""


def _matched(corners: Float64, others: Float64) -> tuple[str, tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """The difference between two lists of triangles (m, 3, 3), and which corner of which is which of the other."""
    none = np.empty((0, 1), np.intp), np.empty((0, 3), np.intp)
    if len(corners) != len(others):
        return f"{len(others)} faces instead of {len(corners)}", none
    close = CLOSE * float(np.abs(corners).max())
    apart = np.linalg.norm(corners.mean(axis=1)[:, None] - others.mean(axis=1)[None], axis=2)
    match = apart.argmin(axis=1)
    if float(apart.min(axis=1).max()) > close or len(set(match.tolist())) != len(match):
        return f"the faces lie elsewhere: {_box(others)} instead of {_box(corners)}", none
    others = others[match]
    turns = np.stack([np.abs(np.roll(others, -turn, axis=1) - corners).max(axis=(1, 2)) for turn in range(3)])
    if float(turns.min(axis=0).max()) > close:
        return "faces have other corners, or turn the other way round", none
    return "", (match[:, None], (np.arange(3) + turns.argmin(axis=0)[:, None]) % 3)


def _patches(corners: Float64, values: Values | None) -> Float64:
    """(p, 8 + k): for each plane that triangles lie in its normal and place, their area, their middle, and values."""
    crossed = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    area = np.linalg.norm(crossed, axis=1) / 2
    flat = area > 0
    normal = crossed[flat] / (2 * area[flat, None])
    place = np.einsum("ij,ij->i", normal, corners[flat, 0])
    planes, index = np.unique(np.round(np.column_stack([normal, place]), 2) + 0.0, axis=0, return_inverse=True)
    shown = np.zeros((len(corners), 3, 0)) if values is None else values
    columns = np.concatenate([corners, shown], axis=2).mean(axis=1)[flat] * area[flat, None]
    summed = np.zeros((len(planes), 1 + columns.shape[1]))
    np.add.at(summed, index.reshape(-1), np.column_stack([area[flat], columns]))
    made: Float64 = np.concatenate([planes, summed[:, :1], summed[:, 1:] / summed[:, :1]], axis=1)
    return made


def names(scene: Scene) -> list[str]:
    """What the parts are called, sorted."""
    return sorted(part.name or scene.meshes[part.mesh].name for part in scene.parts)


def _box(corners: Float64) -> str:
    points = corners.reshape(-1, 3)
    return f"{np.round(points.min(axis=0), 4).tolist()} … {np.round(points.max(axis=0), 4).tolist()}"


def _shown(scene: Scene, feature: Feature) -> Values | None:
    """(m, 3, k): what a feature shows at each corner of each face; None when no part has it."""
    whole = baked(scene)
    found = [_of_mesh(whole, mesh, feature) for mesh in (whole.meshes[part.mesh] for part in whole.parts)]
    width = max((one.shape[2] for one in found if one is not None), default=0)
    if width == 0:
        return None
    filled = [
        np.ones((len(whole.meshes[part.mesh].faces), 3, width)) if one is None else one
        for part, one in zip(whole.parts, found, strict=True)
    ]
    return np.concatenate(filled)


def _of_mesh(scene: Scene, mesh: Mesh, feature: Feature) -> Values | None:
    if feature == "normals":
        return _at_corners(mesh, mesh.normals)
    if feature == "uv":
        return _at_corners(mesh, mesh.uv)
    if feature == "textures":
        if mesh.face_material is None:
            return None
        prints = np.array([*(_fingerprint(scene, index) for index in range(len(scene.materials))), 0.0])
        return _on_faces(prints[mesh.face_material][:, None])
    # a format may keep colours of vertices as materials, and the other way round: what is seen counts
    paint = _at_corners(mesh, None if mesh.colors is None else mesh.colors / 255.0)
    if mesh.face_material is None:
        return paint
    base = np.array([*(material.base_color for material in scene.materials), (1.0, 1.0, 1.0, 1.0)])
    surface = _on_faces(base[mesh.face_material])
    return surface if paint is None else paint * surface


def _at_corners(mesh: Mesh, values: NDArray[Any] | None) -> Values | None:
    return None if values is None else values[mesh.faces].astype(np.float64)


def _on_faces(values: Values) -> Values:
    return np.repeat(values[:, None], 3, axis=1)


def _fingerprint(scene: Scene, material: int) -> float:
    """A number that stands for the bytes of a material's texture; 0 without one."""
    image = scene.materials[material].base_color_image
    return 0.0 if image is None else float(zlib.crc32(scene.images[image].data))
