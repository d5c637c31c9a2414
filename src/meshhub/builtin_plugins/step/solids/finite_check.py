"""Check that the numbers of a model are finite: comparisons with NaN are false, so that other checks pass it."""

from __future__ import annotations

import numpy as np

from meshhub.builtin_plugins.step.facets.outline import Outline
from meshhub.builtin_plugins.step.recognition.regions import Regions
from meshhub.builtin_plugins.step.solids.curves import Curves, edge_regions
from meshhub.builtin_plugins.step.solids.seams import Seams
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex


def find_undefined_regions(regions: Regions, outline: Outline, curves: Curves, seams: Seams) -> IntIndex:
    """Return the curved regions whose placement, seam or edges have a number that is not finite."""
    is_undefined = ~_are_finite(seams.origin, seams.axis, seams.reference, seams.radius, seams.second)
    for face in seams.slit_faces:
        is_undefined[face.region] |= not np.isfinite([face.start, face.stop, face.rim_axis]).all()
        if face.circle is not None:
            is_undefined[face.region] |= not np.isfinite([*face.circle.center, *face.circle.axis]).all()
    edge = outline.edge_chain
    is_bad = ~_are_finite(curves.center, curves.axis, curves.radius)
    spline = np.repeat(np.arange(len(edge)), np.diff(curves.spline_begin))
    is_bad[spline[~_are_finite(curves.spline)]] = True
    lost = seams.corner[~_are_finite(seams.position)]
    is_bad |= np.isin(outline.start[edge], lost) | np.isin(outline.stop[edge], lost)
    for side in edge_regions(outline):
        is_undefined[side[is_bad]] = True
    return np.flatnonzero(is_undefined & regions.curved)


def _are_finite(*columns: Float64) -> np.ndarray:
    """Return the mask (n,) of rows whose numbers are all finite; each column is (n,) or (n, 3)."""
    return np.asarray(np.isfinite(np.column_stack(columns)).all(axis=1))
