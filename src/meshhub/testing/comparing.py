"""Whether two scenes show the same triangles, whatever their order, indices and parts."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshhub.capabilities import Feature
from meshhub.geometry import baked, soup
from meshhub.scene import Float64, Mesh, Scene

Values = NDArray[np.float64]

CLOSE = 1e-5
"""How far a coordinate may be off, as a share of the scene's extent: float32 with room to spare."""

_OFF: dict[Feature, float] = {"normals": 0.01, "uv": 1e-4, "colors": 2.5 / 255, "materials": 2.5 / 255, "textures": 0}


def difference(wanted: Scene, found: Scene, feature: Feature | None = None) -> str:
    """How the triangles differ, or what a feature shows on them; "" when they do not."""
    one, other = soup(wanted), soup(found)
    corners, others = one[0][one[1]], other[0][other[1]]
    if len(corners) != len(others):
        return f"{len(others)} faces instead of {len(corners)}"
    close = CLOSE * float(np.abs(corners).max())
    apart = _apart(corners.mean(axis=1), others.mean(axis=1))
    match = apart.argmin(axis=1)
    if float(apart.min(axis=1).max()) > close or len(set(match.tolist())) != len(match):
        return f"the faces lie elsewhere: {_box(others)} instead of {_box(corners)}"
    others = others[match]
    turns = np.stack([np.abs(np.roll(others, -turn, axis=1) - corners).max(axis=(1, 2)) for turn in range(3)])
    if float(turns.min(axis=0).max()) > close:
        return "faces have other corners, or turn the other way round"
    if feature is None or feature not in _OFF:
        return ""
    shown, had = _shown(found, feature), _shown(wanted, feature)
    assert had is not None, f"the scene has no {feature}"
    if shown is None:
        return f"{feature} are gone"
    turn = turns.argmin(axis=0)
    corner = (np.arange(3) + turn[:, None]) % 3
    shown = shown[match[:, None], corner]
    off = float(np.abs(shown - had).max())
    return f"{feature} differ by up to {off:.3g}" if off > _OFF[feature] else ""


def names(scene: Scene) -> list[str]:
    """What the parts are called, sorted."""
    return sorted(part.name or scene.meshes[part.mesh].name for part in scene.parts)


def _apart(one: Float64, other: Float64) -> Float64:
    """(n, m) distances of all points to all points."""
    distance: Float64 = np.linalg.norm(one[:, None] - other[None], axis=2)
    return distance


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
