"""Checks that patches follow the mesh between its corners, and do not fold."""

from __future__ import annotations

import numpy as np

from meshhub.builtin_plugins.step.recognition.arrays import lengths, normalize, sum_by_label
from meshhub.builtin_plugins.step.recognition.patches import Patch
from meshhub.builtin_plugins.step.recognition.regions import Regions
from meshhub.builtin_plugins.step.recognition.skin import Skin
from meshhub.builtin_plugins.step.recognition.surfaces import SurfaceKind
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex

_MAX_SAGITTA_RATIO = 2.0
"""Distance of the middle of an edge from a patch over the sagitta of an arc with its turn; more is an overshoot."""

_MAX_FOLDED_RATIO = 1e-3
"""Part of the area whose triangles may be turned over in the parameters; rounding turns slivers."""

_MIN_FACING_COS = np.cos(np.radians(75.0))
"""Cosine of the angle between a triangle and the patch over it."""


def find_bad_patches(skin: Skin, regions: Regions) -> IntIndex:
    """Return the patches that leave the mesh between its corners, that fold, or that face another way than the mesh.

    Args:
        skin: Mesh, millimeters.
        regions: Regions with their surfaces.
    """
    patches = np.flatnonzero(regions.surfaces.kind == SurfaceKind.PATCH)
    bad = [
        region
        for region in patches.tolist()
        if _is_bad(skin, np.flatnonzero(regions.region == region), regions, region)
    ]
    return np.array(bad, np.intp)


def _is_bad(skin: Skin, faces: IntIndex, regions: Regions, region: int) -> bool:
    patch: Patch = regions.surfaces.profile[region]
    number, triangles = np.unique(skin.faces[faces], return_inverse=True)
    points, triangles, cross = skin.points[number], triangles.reshape(-1, 3), skin.cross[faces]
    sense = 1.0 if regions.outward[region] else -1.0
    return _folds(patch, points, triangles, cross, sense) or _overshoots(
        patch, points, triangles, cross, float(regions.limit[region])
    )


def _folds(patch: Patch, points: Float64, triangles: IntIndex, cross: Float64, sense: float) -> bool:
    """Return whether a patch is turned over within some triangles, or covers itself.

    Args:
        patch: The patch.
        points: (p, 3) corners of the triangles, mm.
        triangles: (m, 3) indices into `points`.
        cross: (m, 3) normals of the triangles, twice their area long.
        sense: 1 if the normal of the patch is that of the triangles, -1 if it is the opposite.
    """
    corner = patch.locate(points)[triangles]
    if patch.is_closed:
        corner[..., 0] += np.round(corner[:, :1, 0] - corner[..., 0])
    side = corner[:, 1:] - corner[:, :1]
    area = sense * (side[:, 0, 0] * side[:, 1, 1] - side[:, 0, 1] * side[:, 1, 0]) / 2
    allowed = _MAX_FOLDED_RATIO * float(np.abs(area).sum())
    if -float(area[area < 0].sum()) > allowed or float(area.sum()) > 1 + allowed:
        return True
    size, turned = lengths(cross), np.zeros(len(triangles), np.bool_)
    for weights in ((1 / 3, 1 / 3, 1 / 3), (0.5, 0.5, 0.0), (0.0, 0.5, 0.5), (0.5, 0.0, 0.5)):
        parameters = np.einsum("ijk,j->ik", corner, np.array(weights))
        if patch.is_closed:
            parameters[:, 0] %= 1.0
        _, u, v = patch.derive(parameters, 1)
        facing = sense * np.einsum("ij,ij->i", normalize(np.cross(u, v)), normalize(cross))
        turned |= facing < _MIN_FACING_COS
    return float(size[turned].sum()) > _MAX_FOLDED_RATIO * float(size.sum())


def _overshoots(patch: Patch, points: Float64, triangles: IntIndex, cross: Float64, limit: float) -> bool:
    """Return whether the patch is farther from the middles of edges and triangles than the turn there explains."""
    count = len(points)
    owner = triangles.ravel()
    mean = normalize(np.stack([sum_by_label(owner, np.repeat(cross[:, k], 3), count) for k in range(3)], axis=1))
    cosine = np.einsum("ij,ij->i", mean[owner], np.repeat(normalize(cross), 3, axis=0))
    spread = np.zeros(count)
    np.maximum.at(spread, owner, np.arccos(np.clip(cosine, -1, 1)))
    begin, end = owner, triangles[:, [1, 2, 0]].ravel()
    turn = np.arccos(np.clip(np.einsum("ij,ij->i", mean[begin], mean[end]), -1, 1)) + spread[begin] + spread[end]
    sagitta = lengths(points[end] - points[begin]) * turn / 8
    gap = np.abs(patch.relate((points[begin] + points[end]) / 2).distance)
    middle_gap = np.abs(patch.relate(points[triangles].mean(axis=1)).distance)
    deepest = sagitta.reshape(-1, 3).max(axis=1)
    is_off = (gap > _MAX_SAGITTA_RATIO * sagitta + 2 * limit).any()
    return bool(is_off or (middle_gap > _MAX_SAGITTA_RATIO * deepest + 2 * limit).any())
