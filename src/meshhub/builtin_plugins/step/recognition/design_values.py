"""Axes, centers, radii and angles as a designer enters them, where the corners of the facets agree with them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.facets.facet_graph import FacetGraph
from meshhub.builtin_plugins.step.recognition.recognize import Segments
from meshhub.builtin_plugins.step.surfaces import traits
from meshhub.builtin_plugins.step.surfaces.surface_array import SurfaceArray, SurfaceKind
from meshhub.builtin_plugins.step.surfaces.surfaces import distances
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex

_LENGTH_DECIMALS = 3
"""Decimals of design lengths in millimeters; also of inches in steps of 1/8."""

_ANGLE_DECIMALS = 2
"""Decimals of design angles in degrees."""

_MIN_ALIGNED_COSINE = 1 - 5e-7
"""Cosine of 0.06°: angle below which an axis may be one of the coordinate axes."""

_EXACT_RATIO = 0.25
"""Part of the tolerance that corners may lie off; about two roundings to 32 bits."""


def round_to_design_values(graph: FacetGraph, segments: Segments, tolerance: float) -> Segments:
    """Round the parameters of surfaces, one after another, if all corners of a surface stay within rounding.

    Equal and concentric surfaces thereby get the same numbers.

    Args:
        graph: Facets of the mesh.
        segments: Surfaces and their facets.
        tolerance: Millimeters that rounding explains.
    """
    facet = np.flatnonzero(segments.segment >= 0)
    if len(facet) == 0:
        return segments
    owner, point = graph.expand(facet)
    index, corner = segments.segment[facet][owner], graph.points[point]
    used = np.unique(index)
    used = used[~traits.IS_PATCH[segments.surfaces.kind[used]]]
    is_used = np.isin(index, used)
    index, corner = np.searchsorted(used, index[is_used]), corner[is_used]
    # corners of cut facets lie on chords
    is_on = np.abs(distances(segments.surfaces.take(used[index]), corner)) <= segments.limit[used[index]]
    surfaces = _center_origins(segments.surfaces.take(used), index, corner)
    index, corner = index[is_on], corner[is_on]
    before = _farthest(surfaces, index, corner)
    allowed = np.maximum(before, np.minimum(_EXACT_RATIO * tolerance, segments.limit[used]))
    for rounded in (_align_axes, _round_centers, _round_radii, _round_angles):
        candidates = rounded(surfaces)
        good = np.flatnonzero(_farthest(candidates, index, corner) <= allowed)
        surfaces = surfaces.replace_rows(good, candidates.take(good))
    return replace(segments, surfaces=segments.surfaces.replace_rows(used, surfaces))


def are_design_lengths(values: Float64) -> NDArray[np.bool_]:
    """Return whether lengths (…) in millimeters have at most `_LENGTH_DECIMALS` decimals."""
    result: NDArray[np.bool_] = np.round(values, _LENGTH_DECIMALS) == values
    return result


def count_design_radii(surfaces: SurfaceArray) -> int:
    """Return how many cylinders, spheres and tori have radii as a designer enters them."""
    is_rounded = np.isin(surfaces.kind, (SurfaceKind.CYLINDER, SurfaceKind.SPHERE, SurfaceKind.TORUS))
    is_rounded &= are_design_lengths(surfaces.radius) & are_design_lengths(surfaces.second)
    return int(is_rounded.sum())


def _center_origins(surfaces: SurfaceArray, index: IntIndex, corner: Float64) -> SurfaceArray:
    """Move the origins of cylinders and cones along their axes to the middle of their corners."""
    count = np.bincount(index, minlength=len(surfaces))
    middle = np.stack([np.bincount(index, column, len(surfaces)) / count for column in corner.T], axis=1)
    height = np.einsum("ij,ij->i", middle - surfaces.origin, surfaces.axis)
    height = np.where(traits.IS_RULED[surfaces.kind], height, 0.0)
    slope = np.where(traits.HAS_SLOPE[surfaces.kind], surfaces.second, 0.0)
    origin = surfaces.origin + height[:, None] * surfaces.axis
    return replace(surfaces, origin=origin, radius=surfaces.radius + slope * height)


def _farthest(surfaces: SurfaceArray, index: IntIndex, corner: Float64) -> Float64:
    """Return the distance (s,) of the farthest corner of each surface in millimeters."""
    farthest = np.zeros(len(surfaces))
    np.maximum.at(farthest, index, np.abs(distances(surfaces.take(index), corner)))
    return farthest


def _align_axes(surfaces: SurfaceArray) -> SurfaceArray:
    nearest = np.round(surfaces.axis)
    is_aligned = np.abs(surfaces.axis).max(axis=1) >= _MIN_ALIGNED_COSINE
    return replace(surfaces, axis=np.where(is_aligned[:, None], nearest, surfaces.axis))


def _round_centers(surfaces: SurfaceArray) -> SurfaceArray:
    """Round the centers of spheres and tori, and of cylinders and cones about coordinate axes across these."""
    is_centered = traits.HAS_CENTER[surfaces.kind]
    is_aligned = np.abs(surfaces.axis).max(axis=1) == 1
    is_rounded = is_centered[:, None] | (is_aligned[:, None] & (surfaces.axis == 0))
    origin = np.where(is_rounded, np.round(surfaces.origin, _LENGTH_DECIMALS), surfaces.origin)
    return replace(surfaces, origin=origin)


def _round_radii(surfaces: SurfaceArray) -> SurfaceArray:
    """Round all radii but those of cones, which depend on the height of the origin."""
    is_cone, is_torus = traits.HAS_SLOPE[surfaces.kind], traits.HAS_TUBE[surfaces.kind]
    radius = np.where(is_cone, surfaces.radius, np.round(surfaces.radius, _LENGTH_DECIMALS))
    second = np.where(is_torus, np.round(surfaces.second, _LENGTH_DECIMALS), surfaces.second)
    return replace(surfaces, radius=radius, second=second)


def _round_angles(surfaces: SurfaceArray) -> SurfaceArray:
    """Round the angles between cones and their axes."""
    slope = np.tan(np.radians(np.round(np.degrees(np.arctan(surfaces.second)), _ANGLE_DECIMALS)))
    return replace(surfaces, second=np.where(traits.HAS_SLOPE[surfaces.kind], slope, surfaces.second))
