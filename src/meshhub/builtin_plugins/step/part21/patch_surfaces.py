"""Patches as STEP surfaces, and the seams of those that close (ISO 10303-42)."""

from __future__ import annotations

import numpy as np

from meshhub.builtin_plugins.step.part21.part21 import Part21Writer, format_real, format_references
from meshhub.builtin_plugins.step.part21.splines import write_cubic_curves
from meshhub.builtin_plugins.step.surfaces import traits
from meshhub.builtin_plugins.step.surfaces.arrays import lengths
from meshhub.builtin_plugins.step.surfaces.patches import Patch
from meshhub.builtin_plugins.step.surfaces.surface_array import SurfaceArray
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex


def write_patches(file: Part21Writer, surfaces: SurfaceArray) -> tuple[IntIndex, IntIndex]:
    """Write the patches among the surfaces of the regions; return the regions (n,) and the ids of their surfaces (n,).

    Source:
        ISO 10303-42, B_SPLINE_SURFACE_WITH_KNOTS.
    """
    regions = np.flatnonzero(traits.IS_PATCH[surfaces.kind])
    return regions, np.array([_write_patch(file, patch) for patch in surfaces.patch[regions].tolist()], np.int64)


def _write_patch(file: Part21Writer, patch: Patch) -> int:
    rows, columns = patch.poles.shape[:2]
    poles = file.write_points(patch.poles.reshape(-1, 3)).reshape(rows, columns)
    lists = ",".join(f"({format_references(row)})" for row in poles)
    u_multiplicities, u_knots = _format_knots(patch.u_knots)
    v_multiplicities, v_knots = _format_knots(patch.v_knots)
    closed = "T" if patch.is_closed else "F"
    return file.write_entity(
        f"B_SPLINE_SURFACE_WITH_KNOTS('',3,3,({lists}),.UNSPECIFIED.,.{closed}.,.F.,.F.,"
        f"({u_multiplicities}),({v_multiplicities}),({u_knots}),({v_knots}),.UNSPECIFIED.)"
    )


def _format_knots(knots: Float64) -> tuple[str, str]:
    """Return the multiplicities and the distinct knots."""
    distinct, counts = np.unique(knots, return_counts=True)
    return ",".join(map(str, counts.tolist())), ",".join(map(format_real, distinct.tolist()))


def write_patch_seam(file: Part21Writer, patch: Patch, start: Float64) -> int:
    """Write the curve at which a closed patch begins, from its end at `start` (3,) to the other one; return its id."""
    knots, poles = patch.v_knots, patch.poles[0]
    if lengths((poles - start)[[0, -1]]).argmin() == 1:
        knots, poles = 1 - knots[::-1], poles[::-1]
    return int(write_cubic_curves(file, [(knots, poles)])[0])
