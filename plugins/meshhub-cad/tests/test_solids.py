"""IGES and BREP: volumes, units, names, colors, faces without connections, and damaged files."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from OCP.TopAbs import TopAbs_FACE
from shapes import bored_box, box, brep, colored_iges, iges, named_iges

from meshhub import MeshhubError, Registry, Source
from meshhub.toolkit.opencascade import explore, use_kernel

REGISTRY = Registry()
BORED_MM3 = 40 * 20 * 10 - math.pi * 25 * 10


def test_the_registry_loads_the_plugin_by_entry_point() -> None:
    assert not [fault for fault in REGISTRY.faults if fault.plugin == "cad"]
    assert {"iges", "brep", "dxf", "svg"} <= set(REGISTRY.formats)
    assert not {"iges", "brep", "dxf", "svg"} & set(Registry(entry_points=False).formats)


@pytest.mark.parametrize("solids", [True, False])
@pytest.mark.parametrize(("unit", "name"), [("MM", "mm"), ("INCH", "in"), ("M", "m")])
def test_iges_volumes_do_not_depend_on_the_unit_or_on_connections(
    tmp_path: Path, unit: str, name: str, solids: bool
) -> None:
    data = iges(tmp_path / "a.igs", bored_box(), unit=unit, solids=solids)
    source = Source.from_bytes(data, "a.igs")
    inspection = REGISTRY.inspect(source, options={"iges_deviation_mm": 0.001, "iges_angle_degrees": 2})
    assert inspection.source.frame.unit == name
    assert inspection.model.size_mm == pytest.approx((40, 20, 10), abs=1e-6)
    assert inspection.model.watertight
    assert inspection.model.bodies == 1
    assert inspection.model.volume_mm3 == pytest.approx(BORED_MM3, rel=1e-4)


@pytest.mark.parametrize("binary", [False, True])
def test_brep_volumes(binary: bool) -> None:
    source = Source.from_bytes(brep(bored_box(), binary=binary), "a.brep")
    coarse = REGISTRY.inspect(source, options={"brep_deviation_mm": 0.1, "brep_angle_degrees": 40}).model
    fine = REGISTRY.inspect(source, options={"brep_deviation_mm": 0.001, "brep_angle_degrees": 2}).model
    assert fine.watertight
    assert fine.volume_mm3 == pytest.approx(BORED_MM3, rel=1e-4)
    assert coarse.faces < fine.faces / 4


def test_names_and_colors_of_iges(tmp_path: Path) -> None:
    scene = REGISTRY.read(Source.from_bytes(colored_iges(tmp_path / "a.igs"), "a.igs"))
    mesh = scene.meshes[0]
    assert mesh.name == "red box"
    assert mesh.face_material is not None
    colors = [scene.materials[number].base_color for number in mesh.face_material]
    assert sorted(colors) == [(0, 1, 0, 1)] * 10 + [(1, 0, 0, 1)] * 2


def test_each_root_of_iges_is_a_mesh(tmp_path: Path) -> None:
    source = Source.from_bytes(iges(tmp_path / "a.igs", box(), bored_box(), solids=False), "a.igs")
    assert len(REGISTRY.read(source).meshes) == 2
    assert not {"open_solid", "surface_model"} & {note.code for note in REGISTRY.inspect(source).notes}


@pytest.mark.parametrize("target", ["iges", "brep", "step"])
def test_threads_take_turns_in_the_kernel(tmp_path: Path, target: str) -> None:
    """Its messages are silenced for the process: a second thread would print them, or restore them too early."""
    if target == "step":
        data = REGISTRY.convert_bytes(brep(box()), "step", options={"input_format": "brep"})
    else:
        data = iges(tmp_path / "a.igs", box()) if target == "iges" else brep(box())
    assert REGISTRY.inspect(data, input_format=target).model.bodies == 1
    with ThreadPoolExecutor() as pool:
        with use_kernel("other"):
            reading = pool.submit(REGISTRY.inspect, data, input_format=target)
            # long enough for a reader that does not wait
            with pytest.raises(TimeoutError):
                reading.result(timeout=0.5)
        assert reading.result().model.bodies == 1


def test_content_is_detected_under_any_name(tmp_path: Path) -> None:
    for data, name in (
        (iges(tmp_path / "a.igs", box()), "iges"),
        (brep(box()), "brep"),
        (brep(box(), binary=True), "brep"),
    ):
        assert REGISTRY.inspect(Source.from_bytes(data, "a.stl")).source.format == name


@pytest.mark.parametrize(
    ("data", "name", "code", "message"),
    [
        (b"", "a.igs", "empty_model", "is empty"),
        (b"x" * 500, "a.igs", "unreadable_file", "more than 80 columns"),
        (b"hello\n", "a.igs", "unreadable_file", "cut off"),
        (b"x" * 72 + b"S      1\n" + b" " * 72 + b"T      1\n", "a.igs", "unreadable_file", "damaged"),
        (b"", "a.brep", "unreadable_file", "does not begin as BREP"),
        (b"CASCADE Topology V1, (c) Matra-Datavision\n", "a.brep", "empty_model", "holds no shape"),
        (brep(box())[:-200], "a.brep", "unreadable_file", "cut off"),
        (brep(box()).replace(b"Curves 12", b"Curves 99"), "a.brep", "unreadable_file", "damaged"),
        (brep(box()).replace(b"+34 0", b"+99 0"), "a.brep", "unreadable_file", "refers to shapes"),
        (b"Open CASCADE Topology V1 (c)\n", "a.brep", None, "."),
    ],
)
def test_the_error_of_a_damaged_file_says_why(data: bytes, name: str, code: str | None, message: str) -> None:
    with pytest.raises(MeshhubError, match=message) as caught:
        REGISTRY.inspect(Source.from_bytes(data, name), options={"input_format": name[2:].replace("igs", "iges")})
    assert caught.value.error_code in ((code,) if code else ("unreadable_file", "empty_model"))


def two_boxes(path: Path) -> bytes:
    """Return an IGES file of two solids, and the names "NAMEONE1" and "NAMETWO2"."""
    return named_iges(path, {"NAMEONE1": box(), "NAMETWO2": box(10, 10, 10)})


def blank(data: bytes, *numbers: int) -> bytes:
    """Hide solids by their blank status, the columns 65 and 66 of a directory entry (IGES 5.3 §2.2.4.4.9.1)."""
    lines = data.split(b"\n")
    solids = [at for at, line in enumerate(lines) if line[72:73] == b"D" and line[:8].strip() == b"186"]
    entries = [at for at in solids if lines[at][64:72].strip().isdigit()]
    for number in numbers:
        at = entries[number]
        lines[at] = lines[at][:64] + b"01" + lines[at][66:]
    return b"\n".join(lines)


def test_hidden_solids_of_iges_are_left_out_unless_all_are(tmp_path: Path) -> None:
    data = two_boxes(tmp_path / "a.igs")
    some = REGISTRY.inspect(Source.from_bytes(blank(data, 0), "a.igs"))
    assert some.model.volume_mm3 == pytest.approx(1000)
    assert "hidden_ignored" in {note.code for note in some.notes}
    everything = REGISTRY.inspect(Source.from_bytes(blank(data, 0, 1), "a.igs"))
    assert everything.model.volume_mm3 == pytest.approx(7000)
    assert "hidden_read" in {note.code for note in everything.notes}


@pytest.mark.parametrize(
    ("encoding", "name"), [("cp1252", "Größe123"), ("gb18030", "装配体12"), ("utf-8", "Größe1"), ("cp932", "部品表面")]
)
def test_names_of_iges_are_decoded(tmp_path: Path, encoding: str, name: str) -> None:
    data = two_boxes(tmp_path / "a.igs").replace(b"NAMEONE1", name.encode(encoding))
    scene = REGISTRY.read(Source.from_bytes(data, "a.igs"))
    assert [part.name for part in scene.parts] == [name, "NAMETWO2"]


def test_a_shape_that_a_compound_holds_twice_is_read_once() -> None:
    from OCP.BRep import BRep_Builder
    from OCP.TopoDS import TopoDS_Compound

    solid, compound, builder = box(), TopoDS_Compound(), BRep_Builder()
    builder.MakeCompound(compound)
    for shape in (solid, solid, *explore(solid, TopAbs_FACE)):
        builder.Add(compound, shape)
    model = REGISTRY.inspect(Source.from_bytes(brep(compound), "a.brep")).model
    assert (model.faces, model.volume_mm3) == (12, pytest.approx(6000))


def test_a_body_that_cannot_be_sewn_is_read_with_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from OCP import BRepBuilderAPI
    from OCP.Standard import Standard_OutOfRange

    def fail(*_arguments: object) -> None:
        raise Standard_OutOfRange("index")

    data = iges(tmp_path / "a.igs", box(), solids=False)
    monkeypatch.setattr(BRepBuilderAPI, "BRepBuilderAPI_Sewing", fail)
    inspection = REGISTRY.inspect(Source.from_bytes(data, "a.igs"))
    assert inspection.model.faces == 12
    assert {"faces_not_sewn", "surface_model"} <= {note.code for note in inspection.notes}
