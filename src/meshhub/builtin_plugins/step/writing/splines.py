"""Curves through points, as B-splines."""

from __future__ import annotations

import numpy as np
from scipy.interpolate import make_interp_spline

from meshhub.builtin_plugins.step.recognition.arrays import lengths
from meshhub.builtin_plugins.step.writing.part21 import Part21, real
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex


def write_splines(file: Part21, points: Float64, begin: IntIndex) -> IntIndex:
    """Cubic B-splines by chord length; one goes through `points[begin[i]:begin[i + 1]]`, four at least.

    Returns their ids.
    """
    poles: list[Float64] = []
    knots: list[Float64] = []
    for start, stop in zip(begin[:-1].tolist(), begin[1:].tolist(), strict=True):
        through = points[start:stop]
        chord = np.concatenate([[0.0], np.cumsum(lengths(np.diff(through, axis=0)))])
        spline = make_interp_spline(chord / chord[-1], through, k=3)
        poles.append(np.asarray(spline.c, np.float64))
        knots.append(np.asarray(spline.t, np.float64)[4:-4])
    if not poles:
        return np.empty(0, np.int64)
    pole = file.points(np.concatenate(poles))
    made = []
    for one, inner in zip(poles, knots, strict=True):
        listed = ",".join(f"#{number}" for number in range(pole, pole + len(one)))
        pole += len(one)
        multiplicities = ",".join(["4", *["1"] * len(inner), "4"])
        places = ",".join(["0.", *[real(knot) for knot in inner.tolist()], "1."])
        made.append(
            file.one(
                f"B_SPLINE_CURVE_WITH_KNOTS('',3,({listed}),.UNSPECIFIED.,.F.,.F.,"
                f"({multiplicities}),({places}),.UNSPECIFIED.)"
            )
        )
    return np.array(made, np.int64)
