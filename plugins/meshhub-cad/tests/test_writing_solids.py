"""Solids that are written as IGES and BREP, as OpenCASCADE reads them."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from meshhub_cad import kernel_files
from OCP.BRep import BRep_Builder
from OCP.BRepAdaptor import BRepAdaptor_Surface
from OCP.BRepCheck import BRepCheck_Analyzer
from OCP.BRepGProp import BRepGProp
from OCP.BRepTools import BRepTools
from OCP.GProp import GProp_GProps
from OCP.IGESControl import IGESControl_Reader
from OCP.TopAbs import TopAbs_FACE, TopAbs_SOLID
from OCP.TopoDS import TopoDS, TopoDS_Shape
from shapes import bored_box, brep

from meshhub import ConversionFailed, Registry, Source
from meshhub.builtin_plugins.step import writer
from meshhub.builtin_plugins.step.kernel.kernel_check import KernelSolid, Verdict
from meshhub.testing import sample_scenes
from meshhub.toolkit.opencascade import explore

REGISTRY = Registry()


def load(data: bytes, target: str, folder: Path) -> Any:
    if target == "brep":
        shape = TopoDS_Shape()
        BRepTools.Read_s(shape, io.BytesIO(data), BRep_Builder())
        return shape
    path = folder / "result.igs"
    path.write_bytes(data)
    reader = IGESControl_Reader()
    reader.ReadFile(str(path))
    reader.TransferRoots()
    return reader.OneShape()


def volume(shape: Any) -> float:
    properties = GProp_GProps()
    BRepGProp.VolumeProperties_s(shape, properties)
    return float(properties.Mass())


def kinds(shape: Any) -> Counter[str]:
    faces = explore(shape, TopAbs_FACE)
    return Counter(BRepAdaptor_Surface(TopoDS.Face(face)).GetType().name.removeprefix("GeomAbs_") for face in faces)


@pytest.mark.parametrize("target", ["iges", "brep"])
def test_a_hole_of_triangles_becomes_a_cylinder(target: str, tmp_path: Path) -> None:
    model = REGISTRY.read(Source.from_bytes(brep(bored_box()), "a.brep"))
    shape = load(REGISTRY.convert_bytes(model, target), target, tmp_path)
    assert BRepCheck_Analyzer(shape).IsValid()
    assert len(list(explore(shape, TopAbs_SOLID))) == 1
    assert kinds(shape) == {"Plane": 6, "Cylinder": 1}
    assert volume(shape) == pytest.approx(volume(bored_box()), rel=1e-6)


@pytest.mark.parametrize("target", ["iges", "brep"])
def test_flat_faces_keep_the_facets(target: str, tmp_path: Path) -> None:
    model = REGISTRY.read(Source.from_bytes(brep(bored_box()), "a.brep"))
    data = REGISTRY.convert_bytes(model, target, options={f"{target}_surfaces": "planar"})
    shape = load(data, target, tmp_path)
    assert BRepCheck_Analyzer(shape).IsValid()
    assert kinds(shape).keys() == {"Plane"}
    assert volume(shape) == pytest.approx(REGISTRY.inspect(model).model.volume_mm3, rel=1e-6)


@pytest.mark.parametrize("target", ["iges", "brep"])
def test_every_instance_is_a_solid_in_its_place(target: str, tmp_path: Path) -> None:
    shape = load(REGISTRY.convert_bytes(sample_scenes.twice(), target), target, tmp_path)
    assert len(list(explore(shape, TopAbs_SOLID))) == 2
    assert volume(shape) == pytest.approx(12000)


def test_a_report_has_the_figures_of_surfaces() -> None:
    report = REGISTRY.convert(sample_scenes.brick(), io.BytesIO(), target="iges")
    assert report.steps[-1].figures["planes"] == 6
    assert report.steps[-1].figures["solids"] == 1


@pytest.mark.parametrize("target", ["iges", "brep"])
def test_an_invalid_solid_is_rejected_in_words_of_the_format(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = KernelSolid(False, 1.0)
    monkeypatch.setattr(writer, "read_back", lambda data, seconds, volumes: Verdict(False, (bad,)))
    with pytest.raises(ConversionFailed, match=f"not a valid solid in {target.upper()}; use 'repair'") as caught:
        REGISTRY.convert_bytes(sample_scenes.brick(), target)
    assert caught.value.error_code == "invalid_solid"


def test_a_solid_that_changes_in_iges_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_files, "_MAX_VOLUME_RATIO", -1.0)
    with pytest.raises(ConversionFailed, match="another volume or other faces; choose STEP") as caught:
        REGISTRY.convert_bytes(sample_scenes.brick(), "iges")
    assert caught.value.error_code == "invalid_solid"


def test_all_texts_are_in_german() -> None:
    texts = REGISTRY.texts("de")
    for name in ("iges_surfaces", "iges_tolerance_mm", "brep_surfaces", "brep_tolerance_mm"):
        assert texts.options[name].title
        assert texts.options[name].description
