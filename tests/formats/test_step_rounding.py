"""Surfaces of parts whose coordinates were rounded in text, and of pipes with flat rings."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

pytest.importorskip("OCP.STEPControl", reason="OpenCASCADE builds these parts")

from cad_parts import occ
from cad_parts.triangles import triangulate_occ
from meshhub import Registry, Source, Target
from meshhub.builtin_plugins.step.facets.planar import estimate_tolerance

PLACE = np.array([57.3, 31.1, 3.3])
TURN_RAD = 0.4


def elbow(degrees: float) -> Any:
    """Return a bent and a straight pipe of radius 5 mm."""
    from OCP.BRepPrimAPI import BRepPrimAPI_MakeCylinder, BRepPrimAPI_MakeTorus
    from OCP.gp import gp_Ax2, gp_Dir, gp_Pnt

    bend = BRepPrimAPI_MakeTorus(gp_Ax2(gp_Pnt(0, 0, 0), gp_Dir(0, 0, 1)), 20, 5, math.radians(degrees)).Shape()
    straight = BRepPrimAPI_MakeCylinder(gp_Ax2(gp_Pnt(20, 0, 0), gp_Dir(0, -1, 0)), 5, 30).Shape()
    return occ.unify(occ.join(bend, straight))


def bossed_plate() -> Any:
    """Return a plate with a boss and two holes."""
    part = occ.join(occ.box(0, 0, 0, 4, 50, 24), occ.cylinder(0, 0, 3, 12, 8))
    return occ.cut(part, *(occ.cylinder(x, 0, -1, 6, 3) for x in (-18, 18)))


def write_text(triangles: np.ndarray, form: str) -> bytes:
    """Return an STL file with coordinates in a format of C."""
    lines = ["solid part"]
    for triangle in triangles:
        lines += ["facet normal 0 0 0", "outer loop"]
        lines += ["vertex " + " ".join(form % number for number in corner) for corner in triangle]
        lines += ["endloop", "endfacet"]
    return "\n".join([*lines, "endsolid part"]).encode()


def count_surfaces(data: bytes) -> dict[str, int]:
    """Convert an STL file to STEP; return the numbers of its surfaces."""
    target = Target("part.step")
    with Registry(entry_points=False) as registry:
        figures: dict[str, Any] = (
            registry.convert(Source.from_bytes(data, "part.stl"), target, target="step").steps[-1].figures
        )
    assert figures["valid_solids"] == figures["solids"] == 1
    kinds = ("planes", "cylinders", "spheres", "cones", "tori", "bsplines")
    return {kind: figures[kind] for kind in kinds if figures.get(kind)}


@pytest.mark.parametrize("degrees", [90, 180])
@pytest.mark.parametrize(("deviation", "angle"), [(0.1, 0.5), (0.05, 0.3)])
def test_a_bent_pipe_has_its_torus_although_a_ring_is_flat(degrees: float, deviation: float, angle: float) -> None:
    data = write_text(triangulate_occ(elbow(degrees), deviation, angle), "%.9g")
    assert count_surfaces(data) == {"planes": 2, "cylinders": 1, "tori": 1}


@pytest.mark.parametrize("form", ["%.9g", "%.4f", "%g"])
def test_a_part_has_its_surfaces_with_the_decimals_that_programs_write(form: str) -> None:
    cosine, sine = math.cos(TURN_RAD), math.sin(TURN_RAD)
    turn = np.array([[cosine, -sine, 0], [sine, cosine, 0], [0, 0, 1]])
    triangles = triangulate_occ(bossed_plate(), 0.01, 0.2) @ turn.T + PLACE
    assert count_surfaces(write_text(triangles, form)) == {"planes": 7, "cylinders": 3}


def test_the_tolerance_follows_the_rounding_of_coordinates_and_not_the_grid_of_a_design() -> None:
    points = np.random.default_rng(1).uniform(0, 90, (100, 3))
    exact = estimate_tolerance(points.astype(np.float32).astype(np.float64))
    assert estimate_tolerance(np.round(points, 4)) > 2 * exact
    assert estimate_tolerance(np.round(points, 3)) == pytest.approx(1.2e-3)
    for grid in (1.0, 0.5, 0.01):
        assert estimate_tolerance(np.round(points / grid) * grid) == pytest.approx(exact, rel=0.05)
    # a few corners may be those of a design
    assert estimate_tolerance(np.round(points[:8], 3)) < 2 * exact
