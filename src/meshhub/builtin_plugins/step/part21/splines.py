"""Interpolating B-spline curves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.interpolate import make_interp_spline

from meshhub.builtin_plugins.step.part21.part21 import Part21Writer, format_real, format_references
from meshhub.builtin_plugins.step.surfaces.arrays import lengths
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex


def write_splines(file: Part21Writer, points: Float64, begin: IntIndex) -> IntIndex:
    """Write cubic B-splines through points, parameterized by chord length from 0 to 1.

    Args:
        file: Output.
        points: (n, 3) millimeters.
        begin: (s + 1,) spline i interpolates `points[begin[i]:begin[i + 1]]`, which are at least four.
    Returns:
        (s,) ids of the curves.
    """
    curves: list[tuple[Float64, Float64]] = []
    for start, stop in zip(begin[:-1].tolist(), begin[1:].tolist(), strict=True):
        through = points[start:stop]
        chord = np.concatenate([[0.0], np.cumsum(lengths(np.diff(through, axis=0)))])
        spline = make_interp_spline(chord / chord[-1], through, k=3)
        curves.append((np.asarray(spline.t, np.float64), np.asarray(spline.c, np.float64)))
    return write_cubic_curves(file, curves)


def write_cubic_curves(file: Part21Writer, curves: Sequence[tuple[Float64, Float64]]) -> IntIndex:
    """Write cubic B-splines.

    Args:
        file: Output.
        curves: Knots (k,) from 0 to 1, each end four times, and poles (k - 4, 3) in millimeters.
    Returns:
        Ids of the curves.
    Source:
        ISO 10303-42, B_SPLINE_CURVE_WITH_KNOTS.
    """
    if not curves:
        return np.empty(0, np.int64)
    pole_ids = file.write_points(np.concatenate([poles for _, poles in curves]))
    ids = []
    first = 0
    for knots, poles in curves:
        references = format_references(pole_ids[first : first + len(poles)])
        first += len(poles)
        inner_knots = knots[4:-4]
        multiplicities = ",".join(["4", *["1"] * len(inner_knots), "4"])
        parameters = ",".join(["0.", *[format_real(knot) for knot in inner_knots.tolist()], "1."])
        ids.append(
            file.write_entity(
                f"B_SPLINE_CURVE_WITH_KNOTS('',3,({references}),.UNSPECIFIED.,.F.,.F.,"
                f"({multiplicities}),({parameters}),.UNSPECIFIED.)"
            )
        )
    return np.array(ids, np.int64)
