"""Scripts of prismatic parts: what they describe, and that they rebuild the part."""

from __future__ import annotations

import functools
import io
import math
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from meshhub_cad.features import describe
from meshhub_cad.prisms import find_prism
from meshhub_cad.rebuilding import rebuild
from OCP.BRepAdaptor import BRepAdaptor_Curve
from OCP.BRepAlgoAPI import BRepAlgoAPI_Cut, BRepAlgoAPI_Fuse
from OCP.BRepBuilderAPI import BRepBuilderAPI_Transform
from OCP.BRepCheck import BRepCheck_Analyzer
from OCP.BRepFilletAPI import BRepFilletAPI_MakeFillet
from OCP.BRepGProp import BRepGProp
from OCP.BRepPrimAPI import (
    BRepPrimAPI_MakeBox,
    BRepPrimAPI_MakeCone,
    BRepPrimAPI_MakeCylinder,
    BRepPrimAPI_MakeSphere,
    BRepPrimAPI_MakeWedge,
)
from OCP.GeomAbs import GeomAbs_Circle, GeomAbs_Line
from OCP.gp import gp_Ax1, gp_Ax2, gp_Dir, gp_Pnt, gp_Trsf
from OCP.GProp import GProp_GProps
from OCP.TopAbs import TopAbs_EDGE, TopAbs_SOLID
from OCP.TopoDS import TopoDS
from shapes import bored_box, box, brep

from meshhub import ConversionFailed, Registry, Scene, Source
from meshhub.testing import sample_scenes
from meshhub.toolkit.opencascade import explore

REGISTRY = Registry()
TARGETS = ("build123d", "scad")


def cylinder(x: float, y: float, low: float, diameter: float, height: float) -> Any:
    return BRepPrimAPI_MakeCylinder(gp_Ax2(gp_Pnt(x, y, low), gp_Dir(0, 0, 1)), diameter / 2, height).Shape()


def block(x: float, y: float, z: float, *size: float) -> Any:
    return BRepPrimAPI_MakeBox(gp_Pnt(x, y, z), *size).Shape()


def cut(shape: Any, *tools: Any) -> Any:
    for tool in tools:
        shape = BRepAlgoAPI_Cut(shape, tool).Shape()
    return shape


def fuse(*shapes: Any) -> Any:
    result = shapes[0]
    for shape in shapes[1:]:
        result = BRepAlgoAPI_Fuse(result, shape).Shape()
    return result


def bracket() -> Any:
    """Return a plate with round ends and a step, a counterbore and a blind hole."""
    plate = fuse(block(0, 0, 0, 40, 20, 6), cylinder(0, 10, 0, 20, 6), cylinder(40, 10, 0, 20, 6))
    part = fuse(plate, block(10, 0, 6, 15, 20, 9))
    return cut(part, cylinder(0, 10, 0, 5, 6), cylinder(0, 10, 3, 9, 3), cylinder(40, 10, 2, 6, 4))


def turn(shape: Any) -> Any:
    transform = gp_Trsf()
    transform.SetRotation(gp_Ax1(gp_Pnt(0, 0, 0), gp_Dir(1, 2, 3)), 0.7)
    return BRepBuilderAPI_Transform(shape, transform, True).Shape()


def model(shape: Any) -> Scene:
    return REGISTRY.read(Source.from_bytes(brep(shape), "a.brep"))


def convert(shape: Any, target: str, **options: object) -> tuple[str, dict[str, Any]]:
    stream = io.BytesIO()
    report = REGISTRY.convert(model(shape), stream, target=target, options=options)
    return stream.getvalue().decode(), dict(report.steps[-1].figures)


def cone(x: float, y: float, low: float, bottom: float, top: float, height: float) -> Any:
    axis = gp_Ax2(gp_Pnt(x, y, low), gp_Dir(0, 0, 1))
    return BRepPrimAPI_MakeCone(axis, bottom / 2, top / 2, height).Shape()


def flange() -> Any:
    """Return a plate with round corners, four countersunk holes, a bolt circle, a grid, and a conical boss."""
    plate = round_edges(block(0, 0, 0, 80, 60, 8), 4, is_upright)
    part = fuse(plate, cone(40, 30, 8, 24, 20, 10))
    part = cut(part, cylinder(40, 30, 0, 10, 18), cone(40, 30, 17, 10, 12, 1))
    for x, y in ((8, 8), (72, 8), (8, 52), (72, 52)):
        part = cut(part, cylinder(x, y, 0, 4.2, 8), cone(x, y, 6, 4.2, 8.2, 2))
    for number in range(6):
        angle = math.radians(15 + 60 * number)
        part = cut(part, cylinder(40 + 18 * math.cos(angle), 30 + 18 * math.sin(angle), 4, 3, 4))
    return part


def rounded_boss() -> Any:
    """Return a plate with a boss whose foot is rounded, and a hole whose rim is rounded."""
    part = fuse(block(0, 0, 0, 60, 30, 5), cylinder(15, 15, 5, 12, 10))
    part = round_edges(part, 2, lambda curve: is_circle(curve, 5, 6))
    part = cut(part, cylinder(45, 15, 0, 8, 5))
    return round_edges(part, 1.5, lambda curve: is_circle(curve, 5, 4))


def round_edges(shape: Any, radius: float, is_chosen: Callable[[Any], bool]) -> Any:
    """Return a shape with fillets on some edges."""
    tool = BRepFilletAPI_MakeFillet(shape)
    for edge in explore(shape, TopAbs_EDGE):
        if is_chosen(BRepAdaptor_Curve(TopoDS.Edge(edge))):
            tool.Add(radius, TopoDS.Edge(edge))
    return tool.Shape()


def is_upright(curve: Any) -> bool:
    return curve.GetType() == GeomAbs_Line and abs(curve.Line().Direction().Z()) > 0.9


def is_circle(curve: Any, height: float, radius: float) -> bool:
    if curve.GetType() != GeomAbs_Circle:
        return False
    circle = curve.Circle()
    return abs(circle.Location().Z() - height) < 1e-6 and abs(circle.Radius() - radius) < 1e-6


def parameters_of(text: str) -> dict[str, float]:
    """Return the parameters of a script by name."""
    return {
        name: float(value) for name, value in re.findall(r"^(\w+) = ([-\d.]+);? +(?:#|//) (?:mm|number)", text, re.M)
    }


def drafted() -> Any:
    """Return a block with four inclined sides."""
    return BRepPrimAPI_MakeWedge(20.0, 20.0, 10.0, 2.0, 2.0, 18.0, 18.0).Shape()


def groove() -> Any:
    """Return a disk with an annular groove, so that an island is in an opening."""
    ring = cut(cylinder(0, 0, 3, 20, 3), cylinder(0, 0, 3, 10, 3))
    return cut(cylinder(0, 0, 0, 30, 6), ring)


def measure(shape: Any) -> float:
    properties = GProp_GProps()
    BRepGProp.VolumeProperties_s(shape, properties)
    return float(properties.Mass())


BRACKET_MM3 = 6 * (800 + 314.159265) + 9 * 300 - 3 * 19.634954 - 3 * 63.617251 - 4 * 28.274334

REBUILT = {
    "bracket": (bracket(), BRACKET_MM3),
    "turned bracket": (turn(bracket()), BRACKET_MM3),
    "cavity": (cut(box(20, 20, 20), block(5, 5, 5, 10, 10, 10)), 7000),
    "ring": (cut(cylinder(0, 0, 0, 40, 10), cylinder(0, 0, 0, 30, 10)), 5497.787),
    "two bodies": (fuse(block(0, 0, 0, 10, 10, 10), cylinder(30, 0, 0, 10, 20)), 1000 + 1570.796),
    "ball": (BRepPrimAPI_MakeSphere(2.0).Shape(), 33.51032),
    **{name: (shape, measure(shape)) for name, shape in (("flange", flange()), ("rims", rounded_boss()))},
    "groove": (groove(), measure(groove())),
}
"""Parts that can be rebuilt, and their volumes."""


@functools.cache
def convert_once(name: str, target: str) -> tuple[str, dict[str, Any]]:
    """Return the script of a part of REBUILT and the figures; some take seconds to compare."""
    return convert(REBUILT[name][0], target)


def test_a_script_names_profiles_extrusions_and_holes() -> None:
    text, figures = convert_once("bracket", "build123d")
    assert (figures["bodies"], figures["extrusions"], figures["holes"]) == (1, 2, 2)
    assert parameters_of(text) == {
        "step_1_height": 6,
        "step_2_height": 9,
        "profile_2_length": 15,
        "profile_2_width": 20,
        "hole_1_diameter": 5,
        "hole_1_counterbore_diameter": 9,
        "hole_1_counterbore_depth": 3,
        "hole_2_diameter": 6,
        "hole_2_depth": 4,
    }
    assert "body_1 -= disk(plane_1, 40, 10, hole_2_diameter, z_1 - hole_2_depth, z_1)" in text
    scad, _ = convert_once("bracket", "scad")
    assert parameters_of(scad) == parameters_of(text)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", REBUILT)
def test_the_rebuilt_part_is_the_same(name: str, target: str) -> None:
    _, figures = convert_once(name, target)
    assert figures["rebuilt_volume_mm3"] == pytest.approx(REBUILT[name][1], rel=1e-5)
    assert figures["distance_mm"] < 0.03


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (drafted(), "flat faces are oblique, as chamfers"),
        (cut(box(20, 20, 20), BRepPrimAPI_MakeSphere(gp_Pnt(20, 10, 10), 5.0).Shape()), "changes along the axis"),
        (cut(block(-10, -10, -10, 20, 20, 20), turn(cylinder(0, 0, -30, 6, 60))), "1 round faces lie across"),
    ],
    ids=["drafted", "dimple in a side", "tilted hole"],
)
@pytest.mark.parametrize("target", TARGETS)
def test_another_part_is_rejected_with_the_reason(target: str, shape: Any, message: str) -> None:
    with pytest.raises(ConversionFailed, match=message) as caught:
        convert(shape, target)
    assert caught.value.error_code == "not_prismatic"


def test_patterns_are_loops_and_equal_values_are_shared() -> None:
    text, figures = convert_once("flange", "build123d")
    assert figures["holes"] == 1 + 4 + 6
    parameters = parameters_of(text)
    expected = {
        "profile_1_length": 80,
        "profile_1_width": 60,
        "profile_1_corner_radius": 4,
        "hole_2_columns": 2,
        "hole_2_rows": 2,
        "hole_2_column_spacing": 64,
        "hole_2_row_spacing": 44,
        "hole_2_chamfer": 2,
        "boss_1_diameter": 24,
        "boss_1_top_diameter": 20,
        "hole_3_count": 6,
        "hole_3_circle_diameter": 36,
    }
    assert expected.items() <= parameters.items()
    assert len(parameters) <= 21
    assert text.count("for x, y in grid(") == text.count("for x, y in bolt_circle(") == 1


def test_rounded_rims_are_features_with_a_radius() -> None:
    parameters = parameters_of(convert_once("rims", "build123d")[0])
    assert sorted(value for name, value in parameters.items() if "rim_radius" in name) == [1.5, 2]


@pytest.mark.parametrize("shape", [bracket(), flange(), rounded_boss(), groove()])
def test_a_changed_parameter_gives_a_valid_solid(shape: Any) -> None:
    design = describe([find_prism(solid, "part") for solid in explore(shape, TopAbs_SOLID)])
    assert is_valid(rebuild(design))
    for name, value, deviation in design.parameters:
        for factor in (0.9, 1.1):
            changed = value * factor if deviation is not None else value + (1 if factor > 1 else -1)
            assert is_valid(rebuild(design, {name: changed})), (name, changed)


def is_valid(shape: Any) -> bool:
    return BRepCheck_Analyzer(shape).IsValid() and measure(shape) > 0


@pytest.mark.parametrize("target", TARGETS)
def test_an_open_model_is_rejected(target: str) -> None:
    brick = sample_scenes.brick()
    mesh = brick.meshes[0]
    sheet = Scene((type(mesh)(mesh.vertices, mesh.faces[2:]),), brick.parts)
    with pytest.raises(ConversionFailed, match="no closed body") as caught:
        REGISTRY.convert_bytes(sheet, target)
    assert caught.value.error_code == "not_prismatic"


@pytest.mark.parametrize("target", TARGETS)
def test_equal_models_give_equal_scripts(target: str) -> None:
    assert convert(bracket(), target)[0] == convert_once("bracket", target)[0]


def test_flat_surfaces_keep_facets() -> None:
    text, figures = convert(bored_box(), "build123d", build123d_surfaces="planar")
    assert figures["holes"] == 0
    assert "body_1 -= outline(" in text


def test_the_script_runs_alone(tmp_path: Path) -> None:
    pytest.importorskip("build123d")
    text, figures = convert_once("bracket", "build123d")
    assert figures["script_run"] is True
    (tmp_path / "part.py").write_text(text)
    subprocess.run([sys.executable, "part.py"], cwd=tmp_path, check=True)
    inspection = REGISTRY.inspect(tmp_path / "part.step")
    assert inspection.model.watertight
    assert inspection.model.volume_mm3 == pytest.approx(figures["rebuilt_volume_mm3"], rel=1e-3)


@pytest.mark.skipif(shutil.which("openscad") is None, reason="needs OpenSCAD")
@pytest.mark.parametrize("shape", [bracket(), turn(bracket()), bored_box(), flange(), rounded_boss()])
def test_openscad_renders_the_script(shape: Any, tmp_path: Path) -> None:
    text, figures = convert(shape, "scad")
    (tmp_path / "part.scad").write_text(text)
    subprocess.run(["openscad", "-o", "part.stl", "part.scad"], cwd=tmp_path, check=True, capture_output=True)
    inspection = REGISTRY.inspect(tmp_path / "part.stl")
    assert inspection.model.watertight
    assert inspection.model.volume_mm3 == pytest.approx(figures["rebuilt_volume_mm3"], rel=2e-3)


def test_all_texts_are_in_german() -> None:
    texts = REGISTRY.texts("de")
    assert {"build123d", "scad"} <= texts.formats.keys()
    for target in TARGETS:
        for name in (f"{target}_surfaces", f"{target}_tolerance_mm"):
            assert texts.options[name].title
            assert texts.options[name].description
