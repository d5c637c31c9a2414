"""Curves through points, as B-splines."""

from __future__ import annotations

import numpy as np
from scipy.interpolate import make_interp_spline

from meshhub.builtin_plugins.step.part21 import Part21, real, references
from meshhub.builtin_plugins.step.skin import lengths
from meshhub.scene import Float64


def write_spline(file: Part21, points: Float64) -> int:
    """A cubic B-spline through (n, 3) points, n ≥ 4, by chord length; returns its id."""
    chord = np.concatenate([[0.0], np.cumsum(lengths(np.diff(points, axis=0)))])
    spline = make_interp_spline(chord / chord[-1], points, k=3)
    poles = file.vectors("CARTESIAN_POINT", np.asarray(spline.c, np.float64))
    count = len(spline.c)
    listed = references(np.arange(poles, poles + count), np.array([0, count]))[0].as_py()
    inner = spline.t[4:-4]
    multiplicities = ",".join(["4", *["1"] * len(inner), "4"])
    knots = ",".join(["0.", *[real(float(knot)) for knot in inner], "1."])
    return file.one(
        f"B_SPLINE_CURVE_WITH_KNOTS('',3,({listed}),.UNSPECIFIED.,.F.,.F.,({multiplicities}),({knots}),.UNSPECIFIED.)"
    )
