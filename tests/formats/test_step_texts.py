"""STEP reader: names in the encodings of machines, hidden objects, and checks that fail."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from meshhub.builtin_plugins.step import StepReadOptions, StepWriteOptions
from meshhub.builtin_plugins.step.reader import read
from meshhub.builtin_plugins.step.writer import write
from meshhub.model.notes import collecting
from meshhub.model.scene import Part, Scene
from meshhub.model.source import Source, Target
from models import brick

pytest.importorskip("OCP", reason="the reader needs the extra step")

pytestmark = pytest.mark.once


def load(data: bytes) -> tuple[Scene, dict[str, str]]:
    with collecting("read") as remarks:
        scene = read(Source.from_bytes(data, "model.step"), StepReadOptions())
    return scene, {note.code: note.message for note in remarks.notes}


def assembly(*parts: Part) -> bytes:
    """Return a STEP file with two products, of 6000 mm³ and 1000 mm³."""
    target = Target("model.step")
    scene = Scene((brick(), brick(10, 10, 10, name="cube")), parts or (Part(0, name="left"), Part(1, name="right")))
    write(scene, target, StepWriteOptions())
    return target.read()


def append(data: bytes, *entities: str) -> bytes:
    """Return a STEP file with further entities at its end."""
    end = data.rindex(b"ENDSEC;")
    return data[:end] + "".join(f"{entity};\n" for entity in entities).encode() + data[end:]


def find_ids(data: bytes, entity: str) -> list[str]:
    return re.findall(rf"(#\d+)={entity}\(", data.decode())


def count_faces(data: bytes) -> tuple[int, dict[str, str]]:
    scene, notes = load(data)
    return sum(len(scene.meshes[part.mesh].faces) for part in scene.parts), notes


# -- names --


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("Gehäuse".encode("latin-1"), "Gehäuse"),
        ("装配体1".encode("gb18030"), "装配体1"),
        # the second byte of two characters is a reverse solidus
        ("表部品ソ".encode("cp932"), "表部品ソ"),
        ("Корпус".encode("cp1251"), "Корпус"),
        ("Gehäuse".encode(), "Gehäuse"),
        ("姿态控制舱段".encode(), "姿态控制舱段"),
        # a line end is not part of a string (ISO 10303-21 §6.3)
        ("部品".encode("cp932")[:1] + b"\r\n" + "部品".encode("cp932")[1:], "部品"),
        (rb"a\X2\4E" + b"\n" + rb"2D\X0\b", "a中b"),
        (rb"\X2\59FF6001\X0\ 2", "姿态 2"),
        (rb"\X4\0001F600\X0\!", "😀!"),
        (rb"Petit \X\E9tui", "Petit étui"),
        (rb"\X\E9\X\E9n", "één"),
        (rb"\X\E4\X\F6\X\FC\X\C4\X\D6\X\DC", "äöüÄÖÜ"),
        (rb"Geh\S\duse \PE\\S\:", "Gehäuse К"),
        # as Revit writes GBK
        (rb"\X\B2\X\BF\X\BC\X\FE\X\CB\X\B5\X\C3\X\F7", "部件说明"),
        (rb"LIFT-O-MAT\X\C2\X\AE T\X\C3\X\BCr", "LIFT-O-MAT® Tür"),
        (b"it''s", "it's"),
        (rb"C:\\parts\\x", r"C:\parts\x"),
    ],
)
def test_names_of_products_and_instances_are_decoded(raw: bytes, name: str) -> None:
    data = assembly(Part(0, name="instance"), Part(1))
    data = data.replace(b"'brick'", b"'" + raw + b"'").replace(b"'instance'", b"'" + raw + b"'")
    scene, _ = load(data)
    assert scene.meshes[0].name == name
    assert scene.parts[0].name == name


def test_names_in_two_encodings_are_decoded() -> None:
    data = assembly().replace(b"'brick'", "'Träger'".encode()).replace(b"'left'", "'Größe'".encode("cp1252"))
    scene, _ = load(data)
    assert (scene.meshes[0].name, scene.parts[0].name) == ("Träger", "Größe")


# -- hidden objects --


def hide_items(data: bytes, *items: str) -> bytes:
    """Hide items as CATIA does: by styled items without a style."""
    styled = [f"#{90010 + number}=STYLED_ITEM('',(#90001),{item})" for number, item in enumerate(items)]
    ids = ",".join(entity.partition("=")[0] for entity in styled)
    style = "#90001=PRESENTATION_STYLE_ASSIGNMENT((NULL_STYLE(.NULL.)))"
    return append(data, style, *styled, f"#90002=INVISIBILITY(({ids}))")


def test_a_hidden_solid_is_left_out_with_a_note() -> None:
    data = assembly()
    scene, notes = load(hide_items(data, find_ids(data, "MANIFOLD_SOLID_BREP")[0]))
    assert [part.name for part in scene.parts] == ["right"]
    assert np.ptp(scene.meshes[0].vertices, axis=0).tolist() == [10, 10, 10]
    assert list(notes) == ["hidden_ignored"]


def test_a_solid_is_hidden_if_all_of_its_faces_are() -> None:
    data = assembly()
    faces = find_ids(data, "ADVANCED_FACE")
    scene, notes = load(hide_items(data, *faces[:6]))
    assert [part.name for part in scene.parts] == ["right"]
    assert list(notes) == ["hidden_ignored"]
    # a single hidden face would leave a hole
    assert count_faces(hide_items(data, faces[0])) == (24, {})


def test_the_solids_of_a_hidden_layer_are_left_out() -> None:
    data = assembly()
    solid = find_ids(data, "MANIFOLD_SOLID_BREP")[0]
    layer = f"#90003=PRESENTATION_LAYER_ASSIGNMENT('construction','',({solid}))"
    hidden = "#90004=INVISIBILITY((#90003))"
    faces, notes = count_faces(append(data, layer, hidden))
    assert (faces, list(notes)) == (12, ["hidden_ignored"])
    assert count_faces(append(data, layer)) == (24, {})
    # on a visible layer, too
    other = layer.replace("#90003", "#90005").replace("construction", "parts")
    assert count_faces(append(data, layer, hidden, other)) == (24, {})


def test_a_hidden_layer_of_styled_items_is_left_out() -> None:
    """SolidWorks assigns styled items to layers."""
    data = assembly()
    solid = find_ids(data, "MANIFOLD_SOLID_BREP")[1]
    style = "#90001=PRESENTATION_STYLE_ASSIGNMENT((NULL_STYLE(.NULL.)))"
    styled = f"#90002=STYLED_ITEM('NONE',(#90001),{solid})"
    layer = "#90003=PRESENTATION_LAYER_ASSIGNMENT('','',(#90002))"
    scene, notes = load(append(data, style, styled, layer, "#90004=INVISIBILITY((#90003))"))
    assert [part.name for part in scene.parts] == ["left"]
    assert list(notes) == ["hidden_ignored"]


def test_a_file_that_hides_everything_is_read_with_a_note() -> None:
    data = assembly()
    faces, notes = count_faces(hide_items(data, *find_ids(data, "MANIFOLD_SOLID_BREP")))
    assert (faces, list(notes)) == (24, ["hidden_read"])


def test_a_hidden_instance_is_left_out_and_the_other_is_not(tmp_path: Path) -> None:
    scene, notes = load(write_hidden_instance(tmp_path))
    assert [part.name for part in scene.parts] == ["shown"]
    assert list(notes) == ["hidden_ignored"]


def write_hidden_instance(folder: Path) -> bytes:
    """Return a file of the kernel: a block placed twice, of which one instance is hidden."""
    from OCP.BRepPrimAPI import BRepPrimAPI_MakeBox
    from OCP.gp import gp_Trsf, gp_Vec
    from OCP.Quantity import Quantity_Color, Quantity_TOC_sRGB
    from OCP.STEPCAFControl import STEPCAFControl_Writer
    from OCP.STEPControl import STEPControl_AsIs
    from OCP.TCollection import TCollection_ExtendedString
    from OCP.TDataStd import TDataStd_Name
    from OCP.TDocStd import TDocStd_Document
    from OCP.TopLoc import TopLoc_Location
    from OCP.XCAFApp import XCAFApp_Application
    from OCP.XCAFDoc import XCAFDoc_ColorGen, XCAFDoc_DocumentTool

    document = TDocStd_Document(TCollection_ExtendedString("BinXCAF"))
    XCAFApp_Application.GetApplication_s().InitDocument(document)
    shapes = XCAFDoc_DocumentTool.ShapeTool_s(document.Main())
    colors = XCAFDoc_DocumentTool.ColorTool_s(document.Main())
    block, top = shapes.AddShape(BRepPrimAPI_MakeBox(1.0, 2.0, 3.0).Shape(), False), shapes.NewShape()
    for distance, name in ((0.0, "hidden"), (10.0, "shown")):
        moving = gp_Trsf()
        moving.SetTranslation(gp_Vec(distance, 0, 0))
        component = shapes.AddComponent(top, block, TopLoc_Location(moving))
        TDataStd_Name.Set_s(component, TCollection_ExtendedString(name))
        # the kernel writes no visibility without a color
        colors.SetColor(component, Quantity_Color(1, 0, 0, Quantity_TOC_sRGB), XCAFDoc_ColorGen)
        colors.SetVisibility(component, name == "shown")
    shapes.UpdateAssemblies()
    writer = STEPCAFControl_Writer()
    writer.Transfer(document, STEPControl_AsIs)
    path = folder / "hidden.step"
    writer.Write(str(path))
    return path.read_bytes()


# -- checks that fail --


def fail(*_arguments: Any) -> None:
    from OCP.Standard import Standard_OutOfRange

    raise Standard_OutOfRange("index")


def test_a_check_that_fails_leaves_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    from OCP.BRepGProp import BRepGProp

    data = assembly()
    monkeypatch.setattr(BRepGProp, "SurfaceProperties_s", fail)
    faces, notes = count_faces(data)
    assert faces == 24
    assert notes == {
        "faces_unchecked": "the CAD kernel cannot measure the area of 12 of 12 faces, to which their triangles are "
        "compared; inspect the model"
    }
