"""Interpolating B-spline curves."""

from __future__ import annotations

import numpy as np
from scipy.interpolate import make_interp_spline

from meshhub.builtin_plugins.step.recognition.arrays import lengths
from meshhub.builtin_plugins.step.writing.part21 import Part21Writer, format_real, format_references
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
    Source:
        ISO 10303-42, B_SPLINE_CURVE_WITH_KNOTS.
    """
    poles: list[Float64] = []
    inner_knots: list[Float64] = []
    for start, stop in zip(begin[:-1].tolist(), begin[1:].tolist(), strict=True):
        through = points[start:stop]
        chord = np.concatenate([[0.0], np.cumsum(lengths(np.diff(through, axis=0)))])
        spline = make_interp_spline(chord / chord[-1], through, k=3)
        poles.append(np.asarray(spline.c, np.float64))
        inner_knots.append(np.asarray(spline.t, np.float64)[4:-4])
    if not poles:
        return np.empty(0, np.int64)
    pole_ids = file.write_points(np.concatenate(poles))
    ids = []
    first = 0
    for spline_poles, knots in zip(poles, inner_knots, strict=True):
        references = format_references(pole_ids[first : first + len(spline_poles)])
        first += len(spline_poles)
        multiplicities = ",".join(["4", *["1"] * len(knots), "4"])
        parameters = ",".join(["0.", *[format_real(knot) for knot in knots.tolist()], "1."])
        ids.append(
            file.write_entity(
                f"B_SPLINE_CURVE_WITH_KNOTS('',3,({references}),.UNSPECIFIED.,.F.,.F.,"
                f"({multiplicities}),({parameters}),.UNSPECIFIED.)"
            )
        )
    return np.array(ids, np.int64)
