"""Feature tables: holes, radii and faces of parts with known features, built with OpenCASCADE."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from meshhub import FeatureTable, Hole, Part, Registry, Scene, Source, Target
from meshhub.builtin_plugins.step import StepReadOptions, StepWriteOptions
from meshhub.builtin_plugins.step.reader import read
from meshhub.builtin_plugins.step.writer import write

pytest.importorskip("OCP", reason="reading STEP needs OpenCASCADE: pip install meshhub[step]")

from OCP.BRepAlgoAPI import BRepAlgoAPI_Cut, BRepAlgoAPI_Fuse
from OCP.BRepBuilderAPI import BRepBuilderAPI_Transform
from OCP.BRepFilletAPI import BRepFilletAPI_MakeFillet
from OCP.BRepPrimAPI import (
    BRepPrimAPI_MakeBox,
    BRepPrimAPI_MakeCone,
    BRepPrimAPI_MakeCylinder,
    BRepPrimAPI_MakeSphere,
)
from OCP.gp import gp_Ax1, gp_Ax2, gp_Dir, gp_Pnt, gp_Trsf, gp_Vec
from OCP.STEPControl import STEPControl_AsIs, STEPControl_Writer
from OCP.TopAbs import TopAbs_EDGE
from OCP.TopExp import TopExp_Explorer
from OCP.TopoDS import TopoDS

pytestmark = pytest.mark.process

Place = tuple[float, float, float]
DOWN: Place = (0, 0, -1)


def box(*size: float, at: Place = (0, 0, 0)) -> Any:
    return BRepPrimAPI_MakeBox(gp_Pnt(*at), *size).Shape()


def cylinder(diameter: float, length: float, at: Place, direction: Place = DOWN) -> Any:
    return BRepPrimAPI_MakeCylinder(gp_Ax2(gp_Pnt(*at), gp_Dir(*direction)), diameter / 2, length).Shape()


def cone(diameter: float, end: float, length: float, at: Place, direction: Place = DOWN) -> Any:
    return BRepPrimAPI_MakeCone(gp_Ax2(gp_Pnt(*at), gp_Dir(*direction)), diameter / 2, end / 2, length).Shape()


def cut(shape: Any, *tools: Any) -> Any:
    for tool in tools:
        shape = BRepAlgoAPI_Cut(shape, tool).Shape()
    return shape


def move_shape(shape: Any) -> Any:
    """Return the shape rotated and moved to an arbitrary position."""
    turn, move = gp_Trsf(), gp_Trsf()
    turn.SetRotation(gp_Ax1(gp_Pnt(3, -7, 11), gp_Dir(0.3, -0.5, 0.8)), 1.234)
    move.SetTranslation(gp_Vec(120.5, -33.25, 7))
    return BRepBuilderAPI_Transform(shape, move.Multiplied(turn), True).Shape()


def read_table(shape: Any, folder: Path) -> FeatureTable:
    writer = STEPControl_Writer()
    writer.Transfer(shape, STEPControl_AsIs)
    path = folder / "part.step"
    writer.Write(str(path))
    inspection = Registry(entry_points=False).inspect(path)
    table = inspection.feature_table
    assert table is not None
    assert inspection.figures["solids"] == 1
    return table


def summary(hole: Hole) -> tuple[Any, ...]:
    steps = [(step.kind, step.diameter_mm, step.depth_mm, step.angle_deg) for step in hole.steps]
    return hole.count, hole.diameter_mm, hole.depth_mm, hole.end, steps


PLATE = box(60, 40, 12)
TOP = 12.0

PARTS: dict[str, tuple[Any, list[tuple[Any, ...]]]] = {
    "none": (PLATE, []),
    "through": (cut(PLATE, cylinder(5, 99, (10, 10, TOP))), [(1, 5, 12, "through", [])]),
    "blind": (cut(PLATE, cylinder(5, 8, (10, 10, TOP))), [(1, 5, 8, "blind", [])]),
    "drilled, with a point": (
        cut(PLATE, cylinder(5, 8, (10, 10, TOP)), cone(5, 0, 1.5, (10, 10, 4))),
        [(1, 5, 8, "blind", [])],
    ),
    "with a ball end": (
        cut(PLATE, cylinder(6, 7, (10, 10, TOP)), BRepPrimAPI_MakeSphere(gp_Pnt(10, 10, 5), 3).Shape()),
        [(1, 6, 7, "blind", [])],
    ),
    "counterbore": (
        cut(PLATE, cylinder(5, 99, (10, 10, TOP)), cylinder(10, 4, (10, 10, TOP))),
        [(1, 5, 12, "through", [("counterbore", 10, 4, None)])],
    ),
    "countersink": (
        cut(PLATE, cylinder(5, 99, (10, 10, TOP)), cone(10, 5, 2.5, (10, 10, TOP))),
        [(1, 5, 12, "through", [("countersink", 10, 2.5, 90)])],
    ),
    "countersink, counterbore, blind": (
        cut(
            PLATE,
            cylinder(4, 10, (10, 10, TOP)),
            cylinder(8, 4, (10, 10, TOP)),
            cone(10, 8, 1, (10, 10, TOP)),
        ),
        [(1, 4, 10, "blind", [("countersink", 10, 1, 90), ("counterbore", 8, 3, None)])],
    ),
    "a pattern": (
        cut(PLATE, *(cylinder(3, 99, (10.0 * x, 10.0 * y, TOP)) for x in range(1, 6) for y in range(1, 4))),
        [(15, 3, 12, "through", [])],
    ),
    "from the side": (cut(PLATE, cylinder(5, 20, (0, 20, 6), (1, 0, 0))), [(1, 5, 20, "blind", [])]),
    "two walls": (
        cut(box(40, 20, 30), box(30, 20, 30, at=(4, 0, 4)), cylinder(8, 99, (-1, 10, 20), (1, 0, 0))),
        [(1, 8, 4, "through", []), (1, 8, 6, "through", [])],
    ),
    "across a shaft": (
        cut(cylinder(20, 50, (0, 0, 50)), cylinder(6, 99, (-50, 0, 25), (1, 0, 0))),
        [(1, 6, 20, "through", [])],
    ),
    "into another hole": (
        cut(box(40, 40, 40), cylinder(16, 99, (20, 20, 40)), cylinder(6, 20, (0, 20, 20), (1, 0, 0))),
        # depth to the bore
        [(1, 6, None, "through", []), (1, 16, 40, "through", [])],
    ),
    "a shaft is no hole": (BRepAlgoAPI_Fuse(PLATE, cylinder(10, 30, (30, 20, 40))).Shape(), []),
    "a slot is no hole": (
        cut(PLATE, cylinder(6, 99, (20, 20, TOP)), cylinder(6, 99, (40, 20, TOP)), box(20, 6, 12, at=(20, 17, 0))),
        [],
    ),
}  # fmt: skip


@pytest.mark.parametrize("where", ["straight", "turned"])
@pytest.mark.parametrize("part", PARTS)
def test_holes_are_found_with_their_dimensions(part: str, where: str, tmp_path: Path) -> None:
    shape, expected = PARTS[part]
    table = read_table(move_shape(shape) if where == "turned" else shape, tmp_path)
    holes = [summary(hole) for hole in table.holes]
    assert len(holes) == len(expected)
    for actual, reference in zip(holes, expected, strict=True):
        for value, target in zip(actual, reference, strict=True):
            if target is not None and not isinstance(target, list):
                assert value == (target if isinstance(target, str) else pytest.approx(target, abs=2e-4))
        assert [step[0] for step in actual[4]] == [step[0] for step in reference[4]]
        for step, target in zip(actual[4], reference[4], strict=True):
            assert step[1:3] == pytest.approx(target[1:3], abs=2e-4)
            assert step[3] == (None if target[3] is None else pytest.approx(target[3], abs=1e-3))
    assert table.solids == 1


def test_a_hole_has_a_place_and_a_direction(tmp_path: Path) -> None:
    shape = cut(PLATE, cylinder(5, 8, (10, 15, TOP)), cylinder(5, 8, (40, 25, 0), (0, 0, 1)))
    (hole,) = read_table(shape, tmp_path).holes
    assert sorted(hole.places) == [((10, 15, 12), (0, 0, -1)), ((40, 25, 0), (0, 0, 1))]


def test_the_table_counts_faces_and_lists_radii_and_size(tmp_path: Path) -> None:
    shape = box(30, 20, 10)
    fillet = BRepFilletAPI_MakeFillet(shape)
    fillet.Add(2.5, TopoDS.Edge(TopExp_Explorer(shape, TopAbs_EDGE).Current()))
    table = read_table(cut(fillet.Shape(), cylinder(4, 99, (15, 10, 10))), tmp_path)
    assert table.size_mm == pytest.approx((30, 20, 10), abs=1e-3)
    assert {entry.kind: entry.count for entry in table.faces} == {"plane": 6, "cylinder": 2}
    assert [(entry.radius_mm, entry.side, entry.count) for entry in table.radii] == [
        (2, "inside", 1),
        (2.5, "outside", 1),
    ]


def test_instances_are_counted_with_their_own_places(tmp_path: Path) -> None:
    writer = STEPControl_Writer()
    writer.Transfer(cut(PLATE, cylinder(5, 99, (10, 10, TOP))), STEPControl_AsIs)
    writer.Write(str(tmp_path / "one.step"))
    scene = read(Source.from_path(tmp_path / "one.step"), StepReadOptions())
    away = np.eye(4)
    away[:3, 3] = 0, 100, 0
    target = Target("three.step", folder=tmp_path)
    write(
        Scene(scene.meshes, (Part(0), Part(0, away), Part(0, away @ away)), frame=scene.frame),
        target,
        StepWriteOptions(),
    )
    table = Registry(entry_points=False).inspect(tmp_path / "three.step").feature_table
    assert table is not None
    assert table.solids == 3
    (hole,) = table.holes
    assert (hole.count, hole.diameter_mm, hole.end) == (3, pytest.approx(5, abs=1e-3), "through")
    assert sorted(round(entry[1]) for entry, _ in hole.places) == [10, 110, 210]


def test_reports_and_the_command_line_contain_the_table(tmp_path: Path) -> None:
    read_table(cut(PLATE, cylinder(5, 8, (10, 15, TOP))), tmp_path)
    path = tmp_path / "part.step"
    report = Registry(entry_points=False).convert(path, tmp_path / "part.stl")
    assert report.feature_table is not None
    assert report.feature_table.holes[0].diameter_mm == 5
    # the table is in millimeters, so another unit of the file would make it wrong
    assert Registry(entry_points=False).convert(path, tmp_path / "part.stl", input_unit="in").feature_table is None
    text, data = (
        subprocess.run(
            [sys.executable, "-m", "meshhub", "inspect", str(path), *more], capture_output=True, check=True, text=True
        ).stdout
        for more in ((), ("--json",))
    )
    assert "1 × Ø5 mm, 8 mm deep, blind" in text
    assert json.loads(data)["feature_table"]["holes"][0]["depth_mm"] == 8


def test_surfaces_are_colored_by_kind(tmp_path: Path) -> None:
    read_table(cut(PLATE, cylinder(5, 8, (10, 15, TOP))), tmp_path)
    registry = Registry(entry_points=False)
    scene = read(Source.from_path(tmp_path / "part.step"), StepReadOptions(step_colors="surface"))
    assert sorted(material.name for material in scene.materials) == ["cylinder", "plane"]
    material = scene.meshes[0].face_material
    assert material is not None
    corners = scene.meshes[0].vertices[scene.meshes[0].faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    flat = np.abs(normals).max(axis=1) > 0.999 * np.linalg.norm(normals, axis=1)
    planes = np.array([scene.materials[number].name == "plane" for number in material])
    assert (flat[planes]).all()
    assert math.isclose(planes.sum(), flat.sum(), abs_tol=8)
    registry.render(tmp_path / "part.step", tmp_path / "part.png", color_by="surface", size="300x200")
    plain = tmp_path / "plain.png"
    registry.render(tmp_path / "part.step", plain, size="300x200")
    assert plain.read_bytes() != (tmp_path / "part.png").read_bytes()
