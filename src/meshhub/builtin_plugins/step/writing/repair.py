"""Regions that cause the faults which OpenCASCADE finds in a solid."""

from __future__ import annotations

import numpy as np

from meshhub.builtin_plugins.step.recognition.arrays import lengths, sort_unique
from meshhub.builtin_plugins.step.recognition.regions import region_areas
from meshhub.builtin_plugins.step.writing.brep import BrepModel
from meshhub.builtin_plugins.step.writing.curves import edge_regions
from meshhub.builtin_plugins.step.writing.face_order import order_faces
from meshhub.builtin_plugins.step.writing.kernel_check import KernelSolid
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex

_MIN_AREA_RATIO = 0.9
"""Area of a face over that of its triangles; a surface that bends both ways may have less, by the turn of a chord."""
_MAX_AREA_RATIO = 1.35
"""The same; chords of 85° on a sphere have 1.3 times less area."""


def find_causes(model: BrepModel, shells: tuple[int, ...], solid: KernelSolid) -> IntIndex:
    """Return the curved regions that make a solid invalid; none if this is unclear.

    Args:
        model: Model that was written.
        shells: Shells of the solid.
        solid: The solid, as read back; its faces are in file order unless OpenCASCADE split or dropped some.
    """
    order, begin = order_faces(model.skin, model.regions)
    region = np.concatenate([order[begin[shell] : begin[shell + 1]] for shell in shells])
    if len(region) != len(solid.faces):
        return np.empty(0, np.intp)
    curved = model.regions.curved
    area = np.array([face.area for face in solid.faces])
    expected = region_areas(model.skin, model.regions)[region]
    has_other_area = curved[region] & ((area < _MIN_AREA_RATIO * expected) | (area > _MAX_AREA_RATIO * expected))
    causes = [region[has_other_area]]
    for face, number in zip(solid.faces, region.tolist(), strict=True):
        if not face.valid:
            causes.append(_find_causes_at(model, number, np.array(face.spots).reshape(-1, 3)))
    return sort_unique(np.concatenate(causes))


def _find_causes_at(model: BrepModel, region: int, spots: Float64) -> IntIndex:
    """Return an invalid region if it is curved; otherwise its curved neighbors at some spots, or all without spots."""
    curved = model.regions.curved
    if curved[region]:
        return np.array([region], np.intp)
    outline = model.outline
    left, right = edge_regions(outline)
    edges = np.unique(outline.edge[outline.region == region])
    neighbor = np.where(left[edges] == region, right[edges], left[edges])
    edges, neighbor = edges[curved[neighbor]], neighbor[curved[neighbor]]
    if len(spots) == 0 or len(edges) == 0:
        return np.unique(neighbor)
    chain = outline.edge_chain[edges]
    middle = np.stack([_middle(model, first, stop) for first, stop in _chain_ranges(model, chain)])
    nearest = [int(lengths(middle - spot).argmin()) for spot in spots]
    return np.unique(neighbor[nearest])


def _chain_ranges(model: BrepModel, chain: IntIndex) -> list[tuple[int, int]]:
    begin = model.outline.chain_begin
    return list(zip(begin[chain].tolist(), begin[chain + 1].tolist(), strict=True))


def _middle(model: BrepModel, first: int, stop: int) -> Float64:
    """Return the (3,) middle of the mesh points along a chain, from its half-edges."""
    half = model.outline.half[first:stop]
    skin = model.skin
    middle = half[len(half) // 2]
    point: Float64 = skin.points[skin.begin[middle]]
    if len(half) % 2:
        point = (point + skin.points[skin.end[middle]]) / 2
    return point
