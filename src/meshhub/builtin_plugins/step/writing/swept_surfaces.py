"""Swept profiles as STEP surfaces: extrusions and surfaces of revolution (ISO 10303-42)."""

from __future__ import annotations

import numpy as np

from meshhub.builtin_plugins.step.recognition.arrays import lengths
from meshhub.builtin_plugins.step.recognition.surfaces import SWEPT_KINDS, SurfaceArray, SurfaceKind
from meshhub.builtin_plugins.step.writing.part21 import Part21Writer
from meshhub.builtin_plugins.step.writing.seams import Seams
from meshhub.builtin_plugins.step.writing.splines import write_cubic_curves
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex


def write_swept_surfaces(file: Part21Writer, surfaces: SurfaceArray, seams: Seams) -> tuple[IntIndex, IntIndex]:
    """Write the swept surfaces among those of the regions, each with its profile.

    Args:
        file: Output.
        surfaces: (r,) surfaces of the regions.
        seams: Their placements; the profile of a surface of revolution lies at the X axis.
    Returns:
        Regions (n,) and ids of their surfaces (n,).
    """
    regions = np.flatnonzero(np.isin(surfaces.kind, SWEPT_KINDS))
    curves = [_place_profile(surfaces, seams, region) for region in regions.tolist()]
    curve_ids = write_cubic_curves(file, curves)
    ids = []
    for region, curve in zip(regions.tolist(), curve_ids.tolist(), strict=True):
        direction = file.write_direction(surfaces.axis[region])
        if surfaces.kind[region] == SurfaceKind.EXTRUSION:
            vector = file.write_entity(f"VECTOR('',#{direction},1.)")
            ids.append(file.write_entity(f"SURFACE_OF_LINEAR_EXTRUSION('',#{curve},#{vector})"))
        else:
            point = file.write_point(surfaces.origin[region])
            line = file.write_entity(f"AXIS1_PLACEMENT('',#{point},#{direction})")
            ids.append(file.write_entity(f"SURFACE_OF_REVOLUTION('',#{curve},#{line})"))
    return regions, np.array(ids, np.int64)


def write_profile_seam(file: Part21Writer, surfaces: SurfaceArray, seams: Seams, region: int, start: Float64) -> int:
    """Write the profile of a surface of revolution from its end at `start` (3,) to the other one; return its id."""
    knots, poles = _place_profile(surfaces, seams, region)
    if lengths((poles - start)[[0, -1]]).argmin() == 1:
        knots, poles = 1 - knots[::-1], poles[::-1]
    return int(write_cubic_curves(file, [(knots, poles)])[0])


def _place_profile(surfaces: SurfaceArray, seams: Seams, region: int) -> tuple[Float64, Float64]:
    """Return the knots (k,) of the profile of a region, and its poles (k - 4, 3) in millimeters."""
    profile, axis = surfaces.profile[region], surfaces.axis[region]
    if surfaces.kind[region] == SurfaceKind.EXTRUSION:
        basis = np.stack([profile.x_axis, np.cross(axis, profile.x_axis)])
    else:
        basis = np.stack([seams.reference[region], axis])
    return profile.knots, surfaces.origin[region] + profile.poles @ basis
