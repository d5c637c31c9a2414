"""Scripts of prismatic parts: what they describe, and that they rebuild the part."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from OCP.BRepAlgoAPI import BRepAlgoAPI_Cut, BRepAlgoAPI_Fuse
from OCP.BRepBuilderAPI import BRepBuilderAPI_Transform
from OCP.BRepPrimAPI import BRepPrimAPI_MakeBox, BRepPrimAPI_MakeCone, BRepPrimAPI_MakeCylinder, BRepPrimAPI_MakeSphere
from OCP.gp import gp_Ax1, gp_Ax2, gp_Dir, gp_Pnt, gp_Trsf
from shapes import bored_box, box, brep

from meshhub import ConversionFailed, Registry, Scene, Source
from meshhub.testing import sample_scenes

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


def test_a_script_names_profiles_extrusions_and_holes() -> None:
    text, figures = convert(bracket(), "build123d")
    assert (figures["bodies"], figures["extrusions"], figures["holes"]) == (1, 2, 3)
    assert "ThreePointArc" in text
    assert "body_1 = extrude(plane_1.offset(0) * profile_1_1, 6)" in text
    assert "body_1 += extrude(plane_1.offset(6) * profile_1_2, 9)" in text
    for line in ("hole(plane_1, 0, 10, 5, 0, 3)", "hole(plane_1, 0, 10, 9, 3, 6)", "hole(plane_1, 40, 10, 6, 2, 6)"):
        assert line in text
    scad, _ = convert(bracket(), "scad")
    for line in ("hole(0, 10, 5, 0, 3);", "hole(0, 10, 9, 3, 6);", "hole(40, 10, 6, 2, 6);", "layer(6, 15)"):
        assert line in scad


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("shape", "volume"),
    [
        (bracket(), 6 * (800 + 314.159265) + 9 * 300 - 3 * 19.634954 - 3 * 63.617251 - 4 * 28.274334),
        (turn(bracket()), 6 * (800 + 314.159265) + 9 * 300 - 3 * 19.634954 - 3 * 63.617251 - 4 * 28.274334),
        (cut(box(20, 20, 20), block(5, 5, 5, 10, 10, 10)), 7000),
        (cut(cylinder(0, 0, 0, 40, 10), cylinder(0, 0, 0, 30, 10)), 5497.787),
        (fuse(block(0, 0, 0, 10, 10, 10), cylinder(30, 0, 0, 10, 20)), 1000 + 1570.796),
    ],
    ids=["bracket", "turned bracket", "cavity", "ring", "two bodies"],
)
def test_the_rebuilt_part_is_the_same(target: str, shape: Any, volume: float) -> None:
    _, figures = convert(shape, target)
    assert figures["rebuilt_volume_mm3"] == pytest.approx(volume, rel=1e-5)
    assert figures["distance_mm"] < 0.03


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (BRepPrimAPI_MakeSphere(5.0).Shape(), "it has 1 sphere"),
        (fuse(box(), BRepPrimAPI_MakeCone(5.0, 2.0, 40.0).Shape()), "it has 1 cone"),
        (cut(block(-10, -10, -10, 20, 20, 20), turn(cylinder(0, 0, -30, 6, 60))), "neither along nor across"),
    ],
    ids=["sphere", "cone", "tilted hole"],
)
@pytest.mark.parametrize("target", TARGETS)
def test_another_part_is_rejected_with_the_reason(target: str, shape: Any, message: str) -> None:
    with pytest.raises(ConversionFailed, match=message) as caught:
        convert(shape, target)
    assert caught.value.error_code == "not_prismatic"


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
    assert convert(bracket(), target)[0] == convert(bracket(), target)[0]


def test_flat_surfaces_keep_facets() -> None:
    text, figures = convert(bored_box(), "build123d", build123d_surfaces="planar")
    assert figures["holes"] == 0
    assert "profile_1_1 -= outline(" in text


def test_the_script_runs_alone(tmp_path: Path) -> None:
    pytest.importorskip("build123d")
    text, figures = convert(bracket(), "build123d")
    assert figures["script_run"] is True
    (tmp_path / "part.py").write_text(text)
    subprocess.run([sys.executable, "part.py"], cwd=tmp_path, check=True)
    inspection = REGISTRY.inspect(tmp_path / "part.step")
    assert inspection.model.watertight
    assert inspection.model.volume_mm3 == pytest.approx(figures["rebuilt_volume_mm3"], rel=1e-3)


@pytest.mark.skipif(shutil.which("openscad") is None, reason="needs OpenSCAD")
@pytest.mark.parametrize("shape", [bracket(), turn(bracket()), bored_box()])
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
