"""STEP: files of CAD programs are read complete, closed, in millimeters, with names and colors; damage has a code."""

from __future__ import annotations

import math
import re
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from meshhub import Isolated, Registry, errors
from meshhub.builtin_plugins.step import StepReadOptions, StepWriteOptions
from meshhub.builtin_plugins.step.reader import read, read_with_features
from meshhub.builtin_plugins.step.sniff import sniff
from meshhub.builtin_plugins.step.writer import write
from meshhub.errors import EmptyModel, ExternalReference, MeshhubError, ModelTooComplex, SourceError, UnreadableFile
from meshhub.model.capabilities import HOST_FRAME, Frame
from meshhub.model.notes import collecting
from meshhub.model.scene import Material, Mesh, Part, Scene
from meshhub.model.source import Source, Target
from meshhub.toolkit.geometry import bounds, placed_mesh, soup, to_frame
from models import brick, edge_counts, scene_of, volume

pytest.importorskip("OCP", reason="reading STEP needs OpenCASCADE: pip install meshhub[step]")

from OCP.BRep import BRep_Builder
from OCP.BRepAlgoAPI import BRepAlgoAPI_Cut
from OCP.BRepBuilderAPI import BRepBuilderAPI_MakeEdge
from OCP.BRepFilletAPI import BRepFilletAPI_MakeFillet
from OCP.BRepGProp import BRepGProp
from OCP.BRepMesh import BRepMesh_IncrementalMesh
from OCP.BRepPrimAPI import BRepPrimAPI_MakeBox, BRepPrimAPI_MakeCylinder, BRepPrimAPI_MakeSphere
from OCP.gp import gp_Ax2, gp_Dir, gp_Pnt, gp_Trsf, gp_Vec
from OCP.GProp import GProp_GProps
from OCP.Interface import Interface_Static
from OCP.STEPControl import STEPControl_AsIs, STEPControl_Writer
from OCP.TopAbs import TopAbs_EDGE, TopAbs_FACE
from OCP.TopExp import TopExp_Explorer
from OCP.TopLoc import TopLoc_Location
from OCP.TopoDS import TopoDS, TopoDS_Compound

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]
DAMAGE = runpy.run_path(str(ROOT / "benchmarks" / "step_mutations.py"))

SCHEMAS = {3: b"CONFIG_CONTROL_DESIGN", 4: b"AUTOMOTIVE_DESIGN", 5: b"AP242"}


@pytest.fixture
def export_shape(tmp_path: Path) -> Iterator[Callable[..., bytes]]:
    """Return a function that writes a shape with the kernel; restore the settings of the kernel afterwards."""
    original: dict[str, Any] = {}

    def export(shape: Any, **settings: str | int) -> bytes:
        writer = STEPControl_Writer()
        for name, value in settings.items():
            key = "write.step." + name
            original.setdefault(key, Interface_Static.CVal_s(key))
            set_ = Interface_Static.SetCVal_s if isinstance(value, str) else Interface_Static.SetIVal_s
            assert set_(key, value)
        writer.Transfer(shape, STEPControl_AsIs)
        path = tmp_path / "exported.step"
        writer.Write(str(path))
        return path.read_bytes()

    yield export
    for key, value in original.items():
        Interface_Static.SetCVal_s(key, value)


def machined() -> Any:
    """Return a filleted plate with a hole."""
    plate = BRepPrimAPI_MakeBox(40.0, 30.0, 10.0).Shape()
    hole = BRepPrimAPI_MakeCylinder(gp_Ax2(gp_Pnt(20, 15, -1), gp_Dir(0, 0, 1)), 6.0, 12.0).Shape()
    edges = TopExp_Explorer(plate, TopAbs_EDGE)
    fillet = BRepFilletAPI_MakeFillet(plate)
    while edges.More():
        fillet.Add(2.0, TopoDS.Edge(edges.Current()))
        edges.Next()
    return BRepAlgoAPI_Cut(fillet.Shape(), hole).Shape()


def true_volume(shape: Any) -> float:
    properties = GProp_GProps()
    BRepGProp.VolumeProperties_s(shape, properties)
    return float(properties.Mass())


def compound(*shapes: Any) -> Any:
    result, builder = TopoDS_Compound(), BRep_Builder()
    builder.MakeCompound(result)
    for shape in shapes:
        builder.Add(result, shape)
    return result


def load(data: bytes, **options: Any) -> Scene:
    return read(Source.from_bytes(data, "model.step"), StepReadOptions(**options))


def load_with_notes(data: bytes, **options: Any) -> tuple[Scene, dict[str, str]]:
    with collecting("read") as remarks:
        scene = load(data, **options)
    return scene, {note.code: note.message for note in remarks.notes}


def write_step(scene: Scene) -> bytes:
    """Write a scene with meshhub's writer; return the file."""
    target = Target("model.step")
    write(scene, target, StepWriteOptions())
    return target.read()


def size(scene: Scene) -> np.ndarray:
    extent: np.ndarray = np.ptp(bounds(to_frame(scene, HOST_FRAME)), axis=0)
    return extent


# -- geometry --


@pytest.mark.parametrize("schema", SCHEMAS)
def test_every_protocol_gives_the_closed_solid(export_shape: Callable[..., bytes], schema: int) -> None:
    shape = machined()
    data = export_shape(shape, schema=schema)
    assert SCHEMAS[schema] in data
    scene, notes = load_with_notes(data)
    vertices, faces = soup(scene)
    assert edge_counts(faces) == (0, 0)
    assert volume(vertices, faces) == pytest.approx(true_volume(shape), rel=1e-3)
    assert size(scene) == pytest.approx([40, 30, 10], abs=1e-6)
    assert notes == {}


def test_a_plain_reading_gives_the_closed_solid_without_features(export_shape: Callable[..., bytes]) -> None:
    shape = machined()
    source = Source.from_bytes(export_shape(shape), "model.step")
    scene, features = read_with_features(source, StepReadOptions(step_reading="plain"))
    vertices, faces = soup(scene)
    assert edge_counts(faces) == (0, 0)
    assert volume(vertices, faces) == pytest.approx(true_volume(shape), rel=1e-3)
    assert features is None


def test_each_of_two_touching_solids_is_closed(export_shape: Callable[..., bytes]) -> None:
    first = BRepPrimAPI_MakeBox(10.0, 10.0, 10.0).Shape()
    second = BRepPrimAPI_MakeBox(gp_Pnt(10, 0, 0), 10.0, 10.0, 10.0).Shape()
    vertices, faces = soup(load(export_shape(compound(first, second))))
    assert len(vertices) == 16
    assert edge_counts(faces) == (0, 0)
    assert volume(vertices, faces) == pytest.approx(2000)


def test_a_smaller_deviation_is_more_accurate(export_shape: Callable[..., bytes]) -> None:
    shape = BRepPrimAPI_MakeSphere(10.0).Shape()
    data, true = export_shape(shape), true_volume(shape)
    lost = [
        true - volume(*soup(load(data, step_deviation_mm=deviation, step_angle_degrees=angle)))
        for deviation, angle in ((0.3, 45), (0.05, 45), (0.01, 11.46), (0.01, 4))
    ]
    assert lost == sorted(lost, reverse=True)
    assert lost[-1] < true * 1e-3


def test_no_point_is_farther_than_the_deviation(export_shape: Callable[..., bytes]) -> None:
    scene = load(export_shape(BRepPrimAPI_MakeSphere(50.0).Shape()), step_deviation_mm=0.05)
    vertices, faces = soup(scene)
    assert np.linalg.norm(vertices, axis=1) == pytest.approx(50)
    middles = np.linalg.norm(vertices[faces].mean(axis=1), axis=1)
    assert middles.min() > 50 - 2 * 0.05


@pytest.mark.parametrize("radius", [0.1, 2.5, 2500, 1e6])
def test_tiny_and_huge_spheres_are_round_with_bounded_face_counts(
    export_shape: Callable[..., bytes], radius: float
) -> None:
    shape = BRepPrimAPI_MakeSphere(radius).Shape()
    scene, notes = load_with_notes(export_shape(shape))
    assert volume(*soup(scene)) == pytest.approx(true_volume(shape), rel=1e-2)
    assert scene.face_count < 200_000
    assert ("deviation_adjusted" in notes) == (radius != 2.5)


def test_tessellations_in_the_file_are_recomputed(export_shape: Callable[..., bytes]) -> None:
    shape = BRepPrimAPI_MakeCylinder(5.0, 10.0).Shape()
    BRepMesh_IncrementalMesh(shape, 1.0, False, 1.0)
    data = export_shape(shape, schema=5, tessellated=1)
    assert b"TRIANGULATED_FACE" in data
    scene, notes = load_with_notes(data)
    assert volume(*soup(scene)) == pytest.approx(250 * math.pi, rel=2e-3)
    assert notes == {}


# -- units --


@pytest.mark.parametrize(("unit", "ours"), [("MM", "mm"), ("CM", "cm"), ("M", "m"), ("INCH", "in"), ("FT", "ft")])
@pytest.mark.parametrize("kernel_unit", ["MM", "M"])
def test_every_unit_of_the_file_is_converted_to_millimeters(
    export_shape: Callable[..., bytes], unit: str, ours: str, kernel_unit: str
) -> None:
    data = export_shape(BRepPrimAPI_MakeBox(10.0, 20.0, 30.0).Shape(), unit=unit)
    before = Interface_Static.CVal_s("xstep.cascade.unit")
    Interface_Static.SetCVal_s("xstep.cascade.unit", kernel_unit)
    try:
        scene = load(data, step_deviation_mm=0.02)
        assert Interface_Static.CVal_s("xstep.cascade.unit") == kernel_unit
    finally:
        Interface_Static.SetCVal_s("xstep.cascade.unit", before)
    assert scene.frame == Frame(ours, "z")  # type: ignore[arg-type]
    assert size(scene) == pytest.approx([10, 20, 30], rel=1e-9)


def test_a_unit_of_the_caller_overrides_that_of_the_file(export_shape: Callable[..., bytes]) -> None:
    data = export_shape(BRepPrimAPI_MakeBox(254.0, 254.0, 254.0).Shape(), unit="INCH")
    inspection = Registry(entry_points=False).inspect(Source.from_bytes(data, "a.step"), input_unit="mm")
    assert inspection.model.size_mm == pytest.approx((10, 10, 10))


# -- names, instances, colors --


def placed(x: float, turned: bool = False) -> np.ndarray:
    matrix = np.eye(4)
    if turned:
        matrix[:3, :3] = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]
    matrix[0, 3] = x
    return matrix


def test_names_places_and_colors_survive_a_round_trip() -> None:
    colors = [(1.0, 0.0, 0.0, 1.0), (0.0, 0.5, 0.25, 1.0), (0.2, 0.3, 0.4, 0.5)]
    block = brick()
    painted = Mesh(block.vertices, block.faces, face_material=[0] * 2 + [1] * 10, name="Würfel 'α'\\")
    other = brick(5, 5, 5, name="small")
    before = Scene(
        (painted, other),
        (
            Part(0, placed(100), "left", ("Top", "Inner")),
            Part(0, placed(200, turned=True), "right", ("Top", "Inner")),
            Part(1, placed(0), "loose", ("Top",), material=2),
        ),
        materials=tuple(Material(base_color=color) for color in colors),
    )
    after = load(write_step(before))
    assert [mesh.name for mesh in after.meshes] == [painted.name, "small"]
    assert [(part.mesh, part.name, part.path) for part in after.parts] == [
        (0, "left", ("Top", "Inner")), (0, "right", ("Top", "Inner")), (1, "loose", ("Top",)),
    ]  # fmt: skip
    for part, same in zip(before.parts, after.parts, strict=True):
        assert same.transform == pytest.approx(part.transform)
    assert shown_areas(after) == pytest.approx(shown_areas(before))
    assert {material.base_color for material in after.materials} == set(colors)


def shown_areas(scene: Scene) -> dict[tuple[float, ...], float]:
    """Return the visible area of each color."""
    areas: dict[tuple[float, ...], float] = {}
    for part in scene.parts:
        mesh = placed_mesh(scene.meshes[part.mesh], part.transform)
        corners = mesh.vertices[mesh.faces]
        each = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1) / 2
        own = mesh.face_material if mesh.face_material is not None else np.full(len(mesh.faces), -1)
        for index in np.unique(own).tolist():
            material = part.material if index < 0 else index
            color = () if material is None else scene.materials[material].base_color
            areas[color] = areas.get(color, 0.0) + float(each[own == index].sum())
    return areas


def test_the_name_of_the_product_replaces_a_generated_name() -> None:
    block = brick(name="block")
    data = write_step(Scene((block,), (Part(0, placed(0), "NAUO1"), Part(0, placed(50), "second"))))
    assert [part.name for part in load(data).parts] == ["block", "second"]


def test_a_shape_has_the_placement_of_the_file(export_shape: Callable[..., bytes]) -> None:
    moving = gp_Trsf()
    moving.SetTranslation(gp_Vec(100, 0, 0))
    box = BRepPrimAPI_MakeBox(10.0, 20.0, 30.0).Shape().Moved(TopLoc_Location(moving))
    for shape in (box, compound(box)):
        assert bounds(load(export_shape(shape))) == pytest.approx(np.array([[100, 0, 0], [110, 20, 30]]))


def test_exponential_assemblies_are_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = instances_in_color(tmp_path)
    monkeypatch.setattr("meshhub.builtin_plugins.step.reading.xcaf.MAX_PLACEMENTS", 2)
    with pytest.raises(ModelTooComplex, match="more than 2 parts"):
        load(data)


def test_an_instance_can_have_its_own_color(tmp_path: Path) -> None:
    scene = load(instances_in_color(tmp_path))
    assert len(scene.meshes) == 1
    assert scene.meshes[0].name == "block"
    color_by_part = {
        part.name: None if part.material is None else scene.materials[part.material].base_color for part in scene.parts
    }
    assert color_by_part == {"plain": (1.0, 0.0, 0.0, 1.0), "special": (0.0, 0.5, 0.0, 1.0)}
    assert all(part.path == ("Top",) for part in scene.parts)


def instances_in_color(folder: Path) -> bytes:
    """Return a file of the kernel: a red block placed twice, of which one instance is green."""
    from OCP.Quantity import Quantity_Color, Quantity_TOC_sRGB
    from OCP.STEPCAFControl import STEPCAFControl_Writer
    from OCP.TCollection import TCollection_ExtendedString
    from OCP.TDataStd import TDataStd_Name
    from OCP.TDocStd import TDocStd_Document
    from OCP.XCAFApp import XCAFApp_Application
    from OCP.XCAFDoc import XCAFDoc_ColorSurf, XCAFDoc_DocumentTool

    document = TDocStd_Document(TCollection_ExtendedString("BinXCAF"))
    XCAFApp_Application.GetApplication_s().InitDocument(document)
    shapes = XCAFDoc_DocumentTool.ShapeTool_s(document.Main())
    colors = XCAFDoc_DocumentTool.ColorTool_s(document.Main())

    def named(label: Any, name: str) -> Any:
        TDataStd_Name.Set_s(label, TCollection_ExtendedString(name))
        return label

    block = named(shapes.AddShape(BRepPrimAPI_MakeBox(1.0, 2.0, 3.0).Shape(), False), "block")
    colors.SetColor(block, Quantity_Color(1, 0, 0, Quantity_TOC_sRGB), XCAFDoc_ColorSurf)
    top = named(shapes.NewShape(), "Top")
    named(shapes.AddComponent(top, block, TopLoc_Location()), "plain")
    moving = gp_Trsf()
    moving.SetTranslation(gp_Vec(10, 0, 0))
    special = named(shapes.AddComponent(top, block, TopLoc_Location(moving)), "special")
    colors.SetColor(special, Quantity_Color(0, 0.5, 0, Quantity_TOC_sRGB), XCAFDoc_ColorSurf)
    shapes.UpdateAssemblies()
    writer = STEPCAFControl_Writer()
    writer.Transfer(document, STEPControl_AsIs)
    path = folder / "colors.step"
    writer.Write(str(path))
    return path.read_bytes()


# -- surfaces, damaged files, other formats --


def test_surfaces_are_read_with_a_note(export_shape: Callable[..., bytes]) -> None:
    faces = TopExp_Explorer(BRepPrimAPI_MakeBox(10.0, 20.0, 30.0).Shape(), TopAbs_FACE)
    scene, notes = load_with_notes(export_shape(faces.Current()))
    assert scene.face_count == 2
    assert list(notes) == ["surface_model"]


def test_a_wireframe_is_an_empty_model(export_shape: Callable[..., bytes]) -> None:
    edge = BRepBuilderAPI_MakeEdge(gp_Pnt(0, 0, 0), gp_Pnt(5, 0, 0)).Edge()
    with pytest.raises(EmptyModel, match="only curves"):
        load(export_shape(edge))


def test_lost_entities_are_noted() -> None:
    data = write_step(scene_of(brick()))
    lines = data.splitlines(keepends=True)
    face = next(number for number, line in enumerate(lines) if b"=ADVANCED_FACE" in line)
    scene, notes = load_with_notes(b"".join(lines[:face] + lines[face + 1 :]))
    assert scene.face_count == 10
    assert {"damaged_file", "surface_model"} <= set(notes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data[: len(data) // 2], "cut short"),
        (lambda data: data[:150], "no DATA section"),
        (lambda data: data.replace(b"ENDSEC;\nEND-ISO", b"END-ISO"), "ENDSEC"),
        (lambda data: data.replace(b"CLOSED_SHELL('',(", b"CLOSED_SHELL('',"), "pairs"),
        (lambda data: data.replace(b"CLOSED_SHELL('',(", b"CLOSED_SHELL(',("), "pairs"),
        (lambda data: data.replace(b"DATA;", b"DATA; /* never closed "), "pairs"),
        # the kernel would end the process
        (lambda data: data.replace(b"CLOSED_SHELL('',(", b"CLOSED_SHELL(''," + nest(500_000) + b",("), "nested"),
        (lambda data: data.replace(b"AUTOMOTIVE_DESIGN", b"IFC4X3"), "building model"),
        (lambda data: b"solid x\n" + b"x" * 100_000 + data, "does not begin"),
        (lambda data: data.replace(b"ADVANCED_FACE", b"UNKNOWN_FACE_"), "shape|shapes|kernel"),
        (lambda data: data.replace(b"=", b"~"), "damaged"),
    ],
)
def test_the_error_describes_the_damage(change: Callable[[bytes], bytes], message: str) -> None:
    data = write_step(scene_of(brick()))
    assert change(data) != data
    with pytest.raises(SourceError, match=message):
        load(change(data))


def nest(depth: int) -> bytes:
    return b"(" * depth + b")" * depth


def test_brackets_in_names_and_comments_are_not_damage() -> None:
    data = write_step(scene_of(brick(name="a(b it's :-) '(")))
    assert load(write_step(scene_of(brick(name="(" * 1000)))).parts[0].name.startswith("(" * 100)
    data = data.replace(b"DATA;", b"DATA; /* it's (not) over :-( */")
    scene = load(data)
    assert scene.parts[0].name == "a(b it's :-) '("


def test_files_that_the_file_names_are_never_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the check, the kernel would read any STEP file of the machine that an upload refers to."""
    (tmp_path / "secret.stp").write_bytes(write_step(scene_of(brick(99, 99, 99, name="secret"))))
    monkeypatch.chdir(tmp_path)
    data = assembly_of_files("secret.stp")
    for spelt in (data, data.replace(b"DOCUMENT_FILE(", b"DOCUMENT_FILE /* */ (")):
        scene, notes = load_with_notes(spelt)
        assert [part.name for part in scene.parts] == ["here", "there"]
        assert size(scene).max() < 99
        assert "secret.stp" in notes["external_reference"]
    with pytest.raises(ExternalReference, match=r"secret\.stp"):
        load(data.replace(b"ADVANCED_FACE", b"UNKNOWN_FACE_"))


def assembly_of_files(name: str) -> bytes:
    """Return two blocks, the second of which refers to another file, as ISO 10303-214 specifies."""
    data = write_step(scene_of(brick(name="here"), brick(name="there")))
    ids = re.findall(rb"(#\d+)=PRODUCT_DEFINITION\(", data)
    lines = f"""#90001=DOCUMENT_TYPE('geometry');
#90002=DOCUMENT_FILE('{name}','','',#90001,'',$);
#90003=APPLIED_DOCUMENT_REFERENCE(#90002,'',({ids[-1].decode()}));
#90004=EXTERNAL_SOURCE(IDENTIFIER(''));
#90005=IDENTIFICATION_ROLE('external document id and location',$);
#90006=APPLIED_EXTERNAL_IDENTIFICATION_ASSIGNMENT('{name}',#90005,#90004,(#90002));
"""
    end = data.rindex(b"ENDSEC;")
    return data[:end] + lines.encode() + data[end:]


def test_sniffing_recognizes_step() -> None:
    data = write_step(scene_of(brick()))
    for opening in (b"", b"\r\n \t", b"/* made * by / hand */\n"):
        assert sniff(opening + data, len(data)) == 100
        assert load(opening + data).face_count == 12
    assert sniff(b"solid ISO-10303-21;", 19) == 0


def test_the_kernel_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    data = write_step(scene_of(brick()))
    load(data)
    with pytest.raises(MeshhubError):
        load(data.replace(b"=", b"~"))
    assert capfd.readouterr() == ("", "")


# -- in workers --


@pytest.fixture(scope="module")
def isolated() -> Iterator[Registry]:
    registry = Registry(entry_points=False, engine=Isolated(workers=2))
    yield registry
    registry.close()


@pytest.mark.process
def test_a_preloaded_worker_converts(isolated: Registry, export_shape: Callable[..., bytes]) -> None:
    shape = machined()
    for _ in range(3):
        inspection = isolated.inspect(Source.from_bytes(export_shape(shape), "a.step"), timeout=60)
        assert inspection.model.watertight
        assert inspection.model.volume_mm3 == pytest.approx(true_volume(shape), rel=1e-3)


@pytest.mark.parametrize("number", range(30))
def test_damaged_files_end_as_a_result_or_a_coded_error(
    isolated: Registry, damaged: list[tuple[str, bytes]], number: int
) -> None:
    kind, data = damaged[number]
    result, _ = DAMAGE["outcome"](isolated, data, 3.0)
    codes = {
        error.error_code for error in vars(errors).values() if isinstance(error, type) and hasattr(error, "error_code")
    }
    assert result == "converted" or result in codes - {"internal_error", "conversion_failed"}, kind


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, bytes]]:
    """Return thirty damaged files, the same in every run."""
    writer = STEPControl_Writer()
    writer.Transfer(machined(), STEPControl_AsIs)
    path = tmp_path_factory.mktemp("step") / "machined.step"
    writer.Write(str(path))
    files = [path.read_bytes(), instances_in_color(path.parent)]
    return list(DAMAGE["mutations"](files, 30, 3))


# -- real files --


@pytest.mark.parametrize("reading", ["full", "plain"])
def test_real_files_are_complete(corpus: Path, corpus_index: list[dict[str, str]], reading: str) -> None:
    rows = [row for row in corpus_index if row["file"].startswith("step/") and row["expect"] == "converts"]
    assert rows
    for row in rows:
        data = (corpus / row["file"]).read_bytes()
        scene, notes = load_with_notes(data, step_angle_degrees=30, step_reading=reading)
        tags = row["feature_tags"].split()
        assert ("surface_model" in notes) == ("shell_models" in tags), row["file"]
        assert not {"damaged_file", "faces_lost", "faces_not_meshed"} & set(notes), row["file"]
        if "surface_model" not in notes:
            assert all(edge_counts(mesh.faces) == (0, 0) for mesh in scene.meshes), row["file"]
        if "styled" in tags:
            assert scene.used_materials(), row["file"]


def test_real_files_without_shapes_are_rejected_with_a_code(corpus: Path) -> None:
    for path in sorted((corpus / "step").glob("stepcode*")):
        with pytest.raises((EmptyModel, ExternalReference, UnreadableFile)):
            load(path.read_bytes())
