"""Distances between a mesh and the faces of its model, in both directions, inside the faces and along their edges."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meshhub.builtin_plugins.step.recognition.deviation import (
    MAX_LIKELY_COUNT,
    MIN_SPACING_MM,
    RADON_POINTS,
    find_bulges,
    locate_triangles,
    measure_largest_bulge,
)
from meshhub.builtin_plugins.step.solids.curves import CurveKind, edge_regions
from meshhub.builtin_plugins.step.solids.edge_segments import EdgeSegments, segment_edges
from meshhub.builtin_plugins.step.solids.model import BrepModel
from meshhub.builtin_plugins.step.surfaces import traits
from meshhub.builtin_plugins.step.surfaces.arrays import expand_ranges, lengths, normalize
from meshhub.builtin_plugins.step.surfaces.surface_array import SurfaceArray
from meshhub.builtin_plugins.step.surfaces.surfaces import distances, gradients, pool_patches
from meshhub.model.scene import Float64
from meshhub.toolkit.distances import SurfaceDistance, closest_points
from meshhub.toolkit.geometry import IntIndex

MEASURING_ERROR_RATIO = 0.04
"""Share by which a measured distance may differ from what OpenCASCADE's triangles of the faces show."""

_FRACTIONS = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
"""Places on an edge of a triangle that are measured."""

_CORNERS = [(1, 0, 0), (0, 1, 0), (0, 0, 1)]
"""Barycentric coordinates of the corners of a triangle."""

_PLACES = [*_CORNERS, (0.5, 0.5, 0), (0, 0.5, 0.5), (0.5, 0, 0.5), *(tuple(weights) for weights, _ in RADON_POINTS)]
"""Barycentric coordinates of the thirteen points of a triangle that are measured."""

_MAX_SAMPLES_COUNT = 100_000
"""Samples of all splines together."""


class Distances(NamedTuple):
    """Distances between a mesh and the faces of its model.

    corners: mm, largest at a corner of the mesh
    largest: mm, largest anywhere, in both directions
    rms:     mm, root mean square over the area
    area:    mm² of the mesh
    """

    corners: float
    largest: float
    rms: float
    area: float


class _Borders(NamedTuple):
    """Samples of the borders between faces, where the mesh and the model differ.

    edge:      (n,) edge of each sample
    mesh_gap:  (n,) mm from a point on an edge of the mesh to the model
    model_gap: (n,) mm from a point on an edge of the model to the mesh
    """

    edge: IntIndex
    mesh_gap: Float64
    model_gap: Float64


def measure_distances(model: BrepModel) -> Distances:
    """Measure how far the mesh and the faces of its model are apart.

    Inside a face, a point of a triangle is as far from an analytic surface as the surface is from the triangle below
    it, so its distance counts in both directions. A patch may bulge away from its triangles, so its own points count,
    too. Where surfaces meet at a small angle, their edge is farther from the edge of the mesh than they are.
    """
    corner, surfaces = model.mesh_points[model.skin.faces], model.regions.surfaces.take(model.regions.region)
    area = lengths(model.skin.cross) / 2
    squares = sum(share * float(area @ _measure(surfaces, corner, weights) ** 2) for weights, share in RADON_POINTS)
    corners = max(float(_measure(surfaces, corner, weights).max()) for weights in _CORNERS)
    total, borders = float(area.sum()), _measure_borders(model)
    inside = [float(_tighten(_refine(model), _find_farthest(model)[0]).max()), measure_largest_bulge(corner, surfaces)]
    largest = max(*inside, float(borders.mesh_gap.max(initial=0.0)), float(borders.model_gap.max(initial=0.0)))
    return Distances(corners, largest, (squares / total) ** 0.5 if total else 0.0, total)


def find_distant_regions(model: BrepModel, tolerance_mm: float) -> IntIndex:
    """Return the curved regions that are farther from the mesh than a tolerance, in any direction."""
    limit_mm, regions = tolerance_mm * (1 + MEASURING_ERROR_RATIO), model.regions
    is_distant = np.zeros(len(regions.surfaces), np.bool_)
    gap, _ = _find_farthest(model)
    triangles = np.flatnonzero(gap > limit_mm)
    triangles = triangles[_refine(model)(triangles) > limit_mm]
    is_distant[regions.region[np.union1d(triangles, _find_bulging(model, limit_mm))]] = True
    borders = _measure_borders(model)
    edge = borders.edge[np.maximum(borders.mesh_gap, borders.model_gap) > limit_mm]
    for side in edge_regions(model.outline):
        is_distant[side[edge]] = True
    return np.flatnonzero(is_distant & regions.curved)


def _find_bulging(model: BrepModel, limit_mm: float) -> IntIndex:
    """Return the triangles over which a patch is farther from the mesh than a limit."""
    regions = model.regions
    triangles = np.flatnonzero(traits.IS_PATCH[regions.surfaces.kind[regions.region]])
    if len(triangles) == 0:
        return triangles
    pool, rows, patch = pool_patches(regions.surfaces.take(regions.region[triangles]))
    triangles = triangles[rows]
    corner = model.mesh_points[model.skin.faces[triangles]]
    parameters = locate_triangles(pool, patch, pool.locate(np.repeat(patch, 3), corner.reshape(-1, 3)))
    return triangles[find_bulges(pool, patch, parameters, corner, np.full(len(triangles), limit_mm))]


def _measure(surfaces: SurfaceArray, corner: Float64, weights: ArrayLike) -> Float64:
    """Return the distances (m,) in mm of a point of each triangle (m, 3, 3) from its surface."""
    off: Float64 = np.abs(distances(surfaces, np.einsum("ijk,j->ik", corner, np.asarray(weights))))
    return off


def _find_farthest(model: BrepModel) -> tuple[Float64, IntIndex]:
    """Return for each triangle its largest distance (m,) in mm from its surface, and the place (m,) of it."""
    corner, surfaces = model.mesh_points[model.skin.faces], model.regions.surfaces.take(model.regions.region)
    gap, place = np.zeros(len(corner)), np.zeros(len(corner), np.intp)
    for number, weights in enumerate(_PLACES):
        off = _measure(surfaces, corner, weights)
        place[off > gap] = number
        np.maximum(gap, off, out=gap)
    return gap, place


def _refine(model: BrepModel) -> Callable[[IntIndex], Float64]:
    """Return a function that measures triangles of a model by their farthest places, with all faces around them.

    A surface without its borders may be nearer or farther than the face: the farthest place of a triangle may be next
    to another face, and the point of the surface below it next to another triangle.
    """
    regions, corner = model.regions, model.mesh_points[model.skin.faces]
    gap, place = _find_farthest(model)
    mesh = _Triangles(model.mesh_points, model.skin.faces)
    flat = _Triangles(model.mesh_points, model.skin.faces[~regions.curved[regions.region]])
    segments = segment_edges(model)
    lines = np.stack([segments.begin, segments.end, segments.end], axis=1).reshape(-1, 3)
    edges = _Triangles(lines, np.arange(len(lines), dtype=np.int32).reshape(-1, 3))

    def refine(triangles: IntIndex) -> Float64:
        points = np.einsum("ijk,ij->ik", corner[triangles], np.array(_PLACES)[place[triangles]])
        offset, normal = gradients(regions.surfaces.take(regions.region[triangles]), points)
        limits = gap[triangles]
        to_model = edges.measure(points, flat.measure(points, limits))
        to_mesh = mesh.measure(points - offset[:, None] * normal, limits)
        is_curved = regions.curved[regions.region[triangles]]
        return np.where(is_curved, np.maximum(to_model, to_mesh), limits)

    return refine


class _Triangles:
    """Triangles to which few points are compared."""

    def __init__(self, points: Float64, faces: NDArray[np.int32]) -> None:
        # one sample for each triangle; only exact distances are used
        self._surface = SurfaceDistance(points, faces, np.inf) if len(faces) else None

    def measure(self, points: Float64, limits: Float64) -> Float64:
        """Return the distances (n,) of points (n, 3), at most the limits (n,)."""
        if self._surface is None or len(points) == 0:
            return limits
        return self._surface.find_nearer(points, limits)[0]


def _tighten(measure: Callable[[IntIndex], Float64], limits: Float64) -> Float64:
    """Return n distances with upper bounds (n,), of which those are measured that may be the largest."""
    result, order = limits.copy(), np.argsort(-limits)
    largest, begin, size = 0.0, 0, MAX_LIKELY_COUNT
    while begin < len(order) and limits[order[begin]] > largest:
        part = order[begin : begin + size]
        result[part] = measure(part)
        largest = max(largest, float(result[part].max()))
        begin, size = begin + size, 2 * size
    return np.minimum(result, largest)


def _measure_borders(model: BrepModel) -> _Borders:
    """Measure the edges of a model, and the edges of the mesh that they replace."""
    edge, half, fraction = _sample_borders(model)
    points = model.mesh_points
    place = points[model.skin.begin[half]] * (1 - fraction)[:, None] + points[model.skin.end[half]] * fraction[:, None]
    segments = segment_edges(model)
    foot = _project_onto_edges(model, segments, edge, place)
    move = foot - place
    gap = lengths(move)
    # a face that extends beyond the edge of the mesh covers the points there up to its surface
    mesh_gap = gap.copy()
    for side in (half, model.skin.twin[half]):
        inner = np.flatnonzero(side >= 0)
        region = model.regions.region[side[inner] // 3]
        off, normal = gradients(model.regions.surfaces.take(region), place[inner])
        # the mesh itself may be turned by noise: triangles beside the edge of a fillet are thin
        normal *= np.where(model.regions.outward[region], 1.0, -1.0)[:, None]
        along = points[model.skin.end[side[inner]]] - points[model.skin.begin[side[inner]]]
        is_covered = np.einsum("ij,ij->i", move[inner], np.cross(along, normal)) > 0
        covered = inner[is_covered]
        mesh_gap[covered] = np.minimum(mesh_gap[covered], np.abs(off[is_covered]))
    return _Borders(edge, mesh_gap, _measure_to_mesh(model, foot, gap))


def _sample_borders(model: BrepModel) -> tuple[IntIndex, IntIndex, Float64]:
    """Return samples of the edges of the mesh beside curved faces: edge, half-edge, and place on it."""
    outline, curved = model.outline, model.regions.curved
    left, right = edge_regions(outline)
    bent = np.flatnonzero(curved[left] | curved[right])
    chain = outline.edge_chain[bent]
    begin = outline.chain_begin[chain]
    owner, place = expand_ranges(begin, outline.chain_begin[chain + 1] - begin)
    half = outline.half[place].astype(np.intp)
    count = len(_FRACTIONS)
    return np.repeat(bent[owner], count), np.repeat(half, count), np.tile(_FRACTIONS, len(half))


def _project_onto_edges(model: BrepModel, segments: EdgeSegments, edge: IntIndex, points: Float64) -> Float64:
    """Return the points of the edges (n,) of a model nearest to points (n, 3)."""
    curves, chain = model.curves, model.outline.edge_chain[edge]
    corners = model.skin.points.copy()
    corners[model.seams.corner] = model.seams.position
    begin, end = corners[model.outline.start[chain]], corners[model.outline.stop[chain]]
    foot = closest_points(points, np.stack([begin, end, end], axis=1))
    circle = np.flatnonzero(curves.kind[edge] == CurveKind.CIRCLE)
    own = edge[circle]
    offset = points[circle] - curves.center[own]
    radial = offset - np.einsum("ij,ij->i", offset, curves.axis[own])[:, None] * curves.axis[own]
    foot[circle] = curves.center[own] + curves.radius[own][:, None] * normalize(radial)
    on_spline, of_spline = curves.kind[edge] == CurveKind.SPLINE, curves.kind[segments.edge] == CurveKind.SPLINE
    if on_spline.any():
        begin, end = segments.begin[of_spline], segments.end[of_spline]
        spacing = max(float(lengths(end - begin).sum()) / _MAX_SAMPLES_COUNT, MIN_SPACING_MM)
        lines = np.stack([begin, end, end], axis=1).reshape(-1, 3)
        surface = SurfaceDistance(lines, np.arange(len(lines), dtype=np.int32).reshape(-1, 3), spacing)
        foot[on_spline] = surface.nearest(points[on_spline])[0]
    return foot


def _measure_to_mesh(model: BrepModel, points: Float64, limits: Float64) -> Float64:
    """Return the distances (n,) of points (n, 3) from the mesh, at most the limits (n,)."""
    mesh = _Triangles(model.mesh_points, model.skin.faces)
    return _tighten(lambda part: mesh.measure(points[part], limits[part]), limits)
