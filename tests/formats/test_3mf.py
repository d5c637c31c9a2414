"""3MF: reading of packages of all kinds, and reading of our packages by other programs."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import lib3mf
import numpy as np
import pytest
import trimesh
from hypothesis import example, given, settings
from hypothesis import strategies as st

from meshhub.builtin_plugins.threemf import ThreeMFReadOptions, ThreeMFWriteOptions
from meshhub.builtin_plugins.threemf.reader import read
from meshhub.builtin_plugins.threemf.sniff import sniff
from meshhub.builtin_plugins.threemf.writer import write
from meshhub.errors import EmptyModel, MeshhubError, ModelTooComplex, UnreadableFile, UnsafeArchive
from meshhub.model.capabilities import HOST_FRAME
from meshhub.model.notes import collecting
from meshhub.model.scene import Image, Material, Mesh, Part, Scene
from meshhub.model.source import Source, Target
from meshhub.toolkit.geometry import bounds, soup, to_frame
from models import brick, scene_of, sphere, volume
from threemf_models import CORE, SPACES, mesh_xml, model, package, png, rels, thing

BRICK = brick()
DEFAULTS = ThreeMFReadOptions()


def scene(source: Source) -> Scene:
    """Read a package into the frame of the host: millimeters, Z up."""
    return to_frame(read(source, DEFAULTS), HOST_FRAME)


def read_with_codes(source: Source) -> tuple[Scene, set[str]]:
    with collecting("3mf") as remarks:
        result = read(source, DEFAULTS)
    return result, {note.code for note in [*remarks.notes, *(result.project.notes if result.project else ())]}


def write_package(input_scene: Scene) -> bytes:
    target = Target("model.3mf")
    write(input_scene, target, ThreeMFWriteOptions())
    return target.read()


def round_trip(input_scene: Scene) -> Scene:
    return read(Source.from_bytes(write_package(input_scene), "x.3mf"), DEFAULTS)


def corner_colors(result: Scene) -> Any:
    mesh = result.meshes[result.parts[0].mesh]
    assert mesh.colors is not None
    return mesh.colors[mesh.faces]


def read_strictly(data: bytes) -> tuple[int, Any]:
    """Read with the reference library, which must not warn; return the triangle count and the bounding box."""
    wrapper = lib3mf.get_wrapper()
    model = wrapper.CreateModel()
    reader = model.QueryReader("3mf")
    reader.SetStrictModeActive(True)
    reader.ReadFromBuffer(data)
    assert [reader.GetWarning(k) for k in range(reader.GetWarningCount())] == []
    return count_triangles(model)


def has_lattice(model: Any) -> bool:
    meshes = model.GetMeshObjects()
    while meshes.MoveNext():
        if meshes.GetCurrentMeshObject().BeamLattice().GetBeamCount():
            return True
    return False


def count_triangles(model: Any) -> tuple[int, Any]:
    def triangles(item: Any) -> int:
        number = item.GetResourceID()
        if item.IsMeshObject():
            return int(model.GetMeshObjectByID(number).GetTriangleCount())
        group = model.GetComponentsObjectByID(number)
        return sum(triangles(group.GetComponent(k).GetObjectResource()) for k in range(group.GetComponentCount()))

    total, items = 0, model.GetBuildItems()
    while items.MoveNext():
        total += triangles(items.GetCurrent().GetObjectResource())
    box = model.GetOutbox()
    return total, np.array([box.MinCoordinate[:], box.MaxCoordinate[:]])


# -- reading --


@pytest.mark.parametrize(
    ("unit", "factor"),
    [("micron", 0.001), ("millimeter", 1), ("centimeter", 10), ("meter", 1000), ("inch", 25.4), ("foot", 304.8)],
)
def test_the_whole_matrix_scales_with_the_unit(unit: str, factor: float) -> None:
    item = '<item objectid="1" transform="0 1 0 -1 0 0 0 0 1 100 200 300"/>'
    result = scene(package(model(thing(), item, f'unit="{unit}"')))
    assert np.allclose(bounds(result), np.array([[80, 200, 300], [100, 210, 330]]) * factor)


def test_a_missing_unit_means_millimeters_and_an_unknown_unit_is_rejected() -> None:
    assert np.allclose(bounds(scene(package(model(thing())))), [[0, 0, 0], [10, 20, 30]])
    with pytest.raises(UnreadableFile, match="parsec"):
        read(package(model(thing(), attributes='unit="parsec"')), DEFAULTS)


def test_components_are_read_with_nested_transforms_and_shared_meshes() -> None:
    resources = (
        thing(1, more='name="bolt"')
        + thing(2, '<components><component objectid="1"/><component objectid="1" '
                   'transform="1 0 0 0 1 0 0 0 1 100 0 0"/></components>', 'name="pair"')
        + thing(3, '<components><component objectid="2" transform="2 0 0 0 2 0 0 0 2 0 0 5"/>'
                   '<component objectid="1" transform="-1 0 0 0 1 0 0 0 1 -50 0 0"/></components>', 'name="all"')
    )  # fmt: skip
    result = scene(package(model(resources, '<item objectid="3" transform="1 0 0 0 1 0 0 0 1 0 1000 0"/>')))
    assert len(result.meshes) == 1
    assert [(part.path, part.name) for part in result.parts] == [
        (("all", "pair"), "bolt"), (("all", "pair"), "bolt"), (("all",), "bolt")
    ]  # fmt: skip
    assert np.allclose(bounds(result), [[-60, 1000, 0], [220, 1040, 65]])
    assert volume(*soup(result)) == pytest.approx(6000 * 17)


def test_items_and_groups_of_one_object_name_the_parts() -> None:
    resources = (
        thing(1, more='name="mesh"')
        + thing(2)
        + thing(3, '<components><component objectid="2"/></components>', 'name="wrap"')
    )
    build = '<item objectid="1" partnumber="left"/><item objectid="1"/><item objectid="3"/>'
    result = scene(package(model(resources, build)))
    assert [(part.path, part.name) for part in result.parts] == [((), "left"), ((), "mesh"), ((), "wrap")]
    assert result.meshes[0].name == "mesh"


def test_production_paths_refer_to_model_files_with_their_own_units() -> None:
    root = model(
        thing(1, '<components><component objectid="7" p:path="/3D/Objects/a.model" '
                 'transform="1 0 0 0 1 0 0 0 1 100 0 0"/></components>'),
        '<item objectid="1"/><item objectid="7" p:path="/3D/Objects/A.MODEL"/>',
        'requiredextensions="p"',
    )  # fmt: skip
    other = model(thing(7), "", 'unit="centimeter"')
    result, notes = read_with_codes(package(root, {"3D/Objects/a.model": other}))
    assert np.allclose(bounds(result), [[0, 0, 0], [200, 200, 300]])
    assert len(result.meshes) == 1 and notes == set()
    with pytest.raises(UnreadableFile, match=r"a\.model"):
        read(package(root), DEFAULTS)


@pytest.mark.parametrize("kind", ["support", "solidsupport", "other"])
def test_objects_that_are_not_printed_are_left_out_with_a_note(kind: str) -> None:
    resources = thing(1) + thing(2, mesh_xml(scale=9), f'type="{kind}"')
    resources += thing(3, '<components><component objectid="1"/><component objectid="2"/></components>')
    result, notes = read_with_codes(package(model(resources, '<item objectid="3"/><item objectid="2"/>')))
    assert result.face_count == 12 and notes == {"not_a_model_skipped"}
    with pytest.raises(EmptyModel, match="support"):
        read(package(model(resources, '<item objectid="2"/>')), DEFAULTS)


@pytest.mark.parametrize("place", ["item", "beside a model", "component"])
def test_surfaces_are_read_as_open_meshes(place: str) -> None:
    """FreeCAD and others write open meshes as this type, and lib3mf reads them without a warning."""
    sheet = replace(BRICK, faces=BRICK.faces[:6])
    resources = thing(1) + thing(2, mesh_xml(sheet), 'type="surface"')
    resources += thing(3, '<components><component objectid="1"/><component objectid="2"/></components>')
    build, count = {
        "item": ('<item objectid="2"/>', 6),
        "beside a model": ('<item objectid="1"/><item objectid="2"/>', 18),
        "component": ('<item objectid="3"/>', 18),
    }[place]
    result, notes = read_with_codes(package(model(resources, build)))
    assert result.face_count == count and notes == {"surfaces_read"}


def test_a_file_that_builds_no_model_says_so() -> None:
    with pytest.raises(EmptyModel, match="only support structures, modifiers"):
        read(package(model(thing(2, more='type="solidsupport"'), '<item objectid="2"/>')), DEFAULTS)


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        ('<item objectid="3"/>', "only support structures, modifiers"),
        ('<item objectid="4"/><item objectid="2"/>', "only support structures, modifiers"),
        ('<item objectid="2"/><item objectid="1" printable="0"/>', "marks its models as not printable"),
    ],
)
def test_the_reason_for_an_empty_model_is_true(build: str, reason: str) -> None:
    resources = (
        thing()
        + thing(2, more='type="support"')
        + thing(3, '<components><component objectid="2"/></components>')
        + thing(4, "<mesh><vertices/><triangles/></mesh>")
    )
    with pytest.raises(EmptyModel, match=reason):
        read(package(model(resources, build)), DEFAULTS)


def test_a_file_whose_items_are_all_unprintable_is_read() -> None:
    result, notes = read_with_codes(package(model(thing(), '<item objectid="1" printable="0"/>')))
    assert result.face_count == 12 and notes == {"not_printable_read"}


def test_unprintable_items_are_left_out_with_a_note() -> None:
    build = '<item objectid="1"/><item objectid="1" printable="0" transform="1 0 0 0 1 0 0 0 1 99 0 0"/>'
    result, notes = read_with_codes(package(model(thing(), build)))
    assert len(result.parts) == 1 and notes == {"not_printable_skipped"}


def test_the_model_is_the_part_that_the_relationships_name() -> None:
    decoy = model(thing(1, mesh_xml(scale=5)))
    source = package(decoy, {"_rels/.rels": rels("/odd/place.model"), "odd/place.model": model(thing())})
    assert np.allclose(bounds(scene(source)), [[0, 0, 0], [10, 20, 30]])
    result, notes = read_with_codes(package(model(thing()), {"_rels/.rels": ""}))
    assert result.face_count == 12 and notes == {"missing_relationship"}


def test_a_sliced_file_and_an_archive_without_a_model_have_different_errors() -> None:
    empty = model("", "")
    for source in (package(empty, {"Metadata/plate_1.gcode": "G28"}), package(None, {"Metadata/plate_1.gcode": "G28"})):
        with pytest.raises(UnreadableFile, match="the file is sliced and has no model") as error:
            read(source, DEFAULTS)
        assert error.value.values["defect"] == "sliced"
    with pytest.raises(UnreadableFile, match="not a 3MF file"):
        read(package(None), DEFAULTS)
    with pytest.raises(EmptyModel):
        read(package(empty), DEFAULTS)
    sliced = package(model(thing()), {"Metadata/plate_1.gcode": "G28"})
    assert scene(sliced).face_count == 12


def test_modifiers_of_slicer_projects_are_left_out() -> None:
    both = Mesh(np.concatenate([BRICK.vertices, BRICK.vertices * 7]), np.concatenate([BRICK.faces, BRICK.faces + 8]))
    prusa = (
        '<config><object id="1" instances_count="1"><volume firstid="0" lastid="11">'
        '<metadata type="volume" key="volume_type" value="ModelPart"/></volume><volume firstid="12" lastid="23">'
        '<metadata type="volume" key="volume_type" value="ParameterModifier"/></volume></object></config>'
    )
    source = package(model(thing(1, mesh_xml(both))), {"Metadata/Slic3r_PE_model.config": prusa})
    result, notes = read_with_codes(source)
    assert np.allclose(bounds(result), bounds(scene_of(BRICK))) and notes == {"modifiers_skipped"}
    bambu = (
        '<config><object id="3"><part id="1" subtype="normal_part"/>'
        '<part id="2" subtype="negative_part"/></object></config>'
    )
    resources = thing(1) + thing(2, mesh_xml(scale=9))
    resources += thing(3, '<components><component objectid="1"/><component objectid="2"/></components>')
    source = package(model(resources, '<item objectid="3"/>'), {"Metadata/model_settings.config": bambu})
    result, notes = read_with_codes(source)
    assert result.face_count == 12 and notes == {"modifiers_skipped"}
    for broken in (prusa[:-5], prusa.replace('"12"', '"999999999"').replace('"23"', '"4"'), "x"):
        source = package(model(thing(1, mesh_xml(both))), {"Metadata/Slic3r_PE_model.config": broken})
        assert read(source, DEFAULTS).face_count in (12, 24)


def test_harmless_extensions_are_ignored_and_others_are_named() -> None:
    beams = "http://schemas.microsoft.com/3dmanufacturing/beamlattice/2017/02"
    spaces = f'{SPACES} xmlns:b="{beams}" xmlns:z="http://example.org/z"'
    lattice = '<b:beamlattice radius="1"><b:beams><b:beam v1="0" v2="1"/></b:beams></b:beamlattice>'
    with_mesh = mesh_xml().replace("</mesh>", lattice + "</mesh>")
    result, notes = read_with_codes(
        package(model(thing(1, with_mesh), attributes='requiredextensions="b z"', spaces=spaces))
    )
    assert result.face_count > 12 and notes == {"unknown_required_extension"}


GEOMETRY = ("triangles", "lattice", "slices", "triangles, lattice", "triangles, slices", "triangles, coarse")


def build_with_lib3mf(objects: list[str]) -> Source:
    """Return a file with objects that have triangles, a beam lattice and slices, as the reference library writes it."""
    wrapper = lib3mf.get_wrapper()
    document = wrapper.CreateModel()
    for name in objects:
        mesh = document.AddMeshObject()
        mesh.SetName(name)
        points = [lib3mf.Position((lib3mf.ctypes.c_float * 3)(*point)) for point in BRICK.vertices.tolist()]
        faces = [lib3mf.Triangle((lib3mf.ctypes.c_uint32 * 3)(*face)) for face in BRICK.faces.tolist()]
        if "slices" not in name.split(", ")[:1]:
            mesh.SetGeometry(points, faces if "triangles" in name else [])
        if "lattice" in name:
            beam = lib3mf.Beam()
            beam.Indices[:], beam.Radii[:] = (0, 1), (1.0, 1.0)
            mesh.BeamLattice().AddBeam(beam)
        if "slices" in name or "coarse" in name:
            stack = document.AddSliceStack(0.0)
            layer = stack.AddSlice(1.0)
            corners = [(0.0, 0.0), (10.0, 0.0), (10.0, 10.0)]
            layer.SetVertices([lib3mf.Position2D((lib3mf.ctypes.c_float * 2)(*corner)) for corner in corners])
            layer.AddPolygon([0, 1, 2, 0])
            mesh.AssignSliceStack(stack)
            if "coarse" in name:
                mesh.SetSlicesMeshResolution(lib3mf.SlicesMeshResolution.Lowres)
        document.AddBuildItem(mesh, wrapper.GetIdentityTransform())
    return Source.from_bytes(bytes(document.QueryWriter("3mf").WriteToBuffer()), "a.3mf")


@settings(max_examples=25)
@given(st.lists(st.sampled_from(GEOMETRY), min_size=1, max_size=4))
def test_triangles_and_lattices_are_read_beside_slices_which_are_noted(objects: list[str]) -> None:
    source = build_with_lib3mf(objects)
    printed = [name for name in objects if name != "slices"]
    if not printed:
        with pytest.raises(UnreadableFile, match="slices") as caught:
            read(source, DEFAULTS)
        assert "export it as triangles" in str(caught.value) and len(str(caught.value)) <= 160
        return
    with collecting("3mf") as remarks:
        result = read(source, DEFAULTS)
    assert [part.name for part in result.parts] == printed
    for part in result.parts:
        box, lattice = (12 if "triangles" in part.name else 0), "lattice" in part.name
        count = len(result.meshes[part.mesh].faces)
        assert count > box if lattice else count == box
    text = "|".join(objects)
    expected = {
        "objects_without_triangles": len(printed) < len(objects),
        "low_resolution_mesh": "coarse" in text,
        "slices_ignored": "triangles, slices" in objects and "coarse" not in text,
    }
    notes = {note.code: note.message for note in remarks.notes}
    assert set(notes) == {code for code, is_expected in expected.items() if is_expected}
    assert all(len(message) <= 160 for message in notes.values())
    if "slices" in objects:
        assert f"slices: {objects.count('slices')}" in notes["objects_without_triangles"]
    if "triangles, slices" in objects and "coarse" not in text:
        assert f"{objects.count('triangles, slices')} object" in notes["slices_ignored"]


def test_an_encrypted_part_is_reported() -> None:
    root = model(thing(1, '<components><component objectid="7" p:path="/3D/a.model"/></components>'))
    both = rels().replace("</Relationships>", "") + (
        '<Relationship Target="/Secure/keystore.xml" Id="k" '
        'Type="http://schemas.microsoft.com/3dmanufacturing/2019/04/keystore"/></Relationships>'
    )
    with pytest.raises(UnreadableFile, match="encrypted"):
        read(package(root, {"_rels/.rels": both, "3D/a.model": b"%3McF\x00\x00\x01"}), DEFAULTS)


IRREGULAR = [
    lambda text: text.replace('"', "'"),
    lambda text: text.replace("<vertices>", "<vertices><!-- <vertices> -->", 1),
    lambda text: text.replace('v1="0"', 'v1="&#48;"'),
    lambda text: text.replace("/>\n", " />"),
    lambda text: text.replace(' y="', '\n y="'),
    lambda text: text.replace("/>\n<triangle", "></triangle>\n<triangle"),
    lambda text: text.replace("<vertex ", "<vertex  p:unknown='1' ", 3),
]
REGULAR = [
    lambda text: text.replace("/>\n", "/>"),
    lambda text: text.replace("\n", "\r\n"),
    lambda text: text.replace("\n<", "\n\t\t  <").replace('"/>', '" />'),
    lambda text: text.replace('.0"', '.000e+000"'),
    lambda text: text.replace("<triangle ", '<triangle paint_color="4" ', 5),
    lambda text: text.replace("<vertex", "<vertex ").replace('="', ' = "'),
    lambda text: text.replace("/>", "></vertex>", 8),
]


@pytest.mark.parametrize("change", IRREGULAR + REGULAR)
@pytest.mark.parametrize("mesh", [BRICK, sphere()])
def test_every_layout_gives_the_same_mesh(change: Any, mesh: Mesh) -> None:
    result = scene(package(model(thing(1, change(mesh_xml(mesh))))))
    assert np.array_equal(result.meshes[0].vertices, mesh.vertices)
    assert np.array_equal(result.meshes[0].faces, mesh.faces)


def test_the_order_of_attributes_and_a_prefix_do_not_matter() -> None:
    swapped = mesh_xml()
    for x, y, z in BRICK.vertices.tolist():
        swapped = swapped.replace(f'x="{x}" y="{y}" z="{z}"', f'z="{z}" x="{x}" y="{y}"')
    assert np.array_equal(scene(package(model(thing(1, swapped)))).meshes[0].vertices, BRICK.vertices)
    text = model(thing()).replace(f'xmlns="{CORE}"', f'xmlns:c="{CORE}"').replace("</", "</c:").replace("<", "<c:")
    text = text.replace("<c:/c:", "</c:")
    assert np.array_equal(scene(package(text)).meshes[0].faces, BRICK.faces)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_xml_is_read_in_both_encodings(encoding: str) -> None:
    text = '<?xml version="1.0" encoding="UTF-16"?>' if "16" in encoding else '<?xml version="1.0" encoding="utf-8"?>'
    result = scene(package((text + model(thing(more='name="Würfel"'))).encode(encoding)))
    assert result.face_count == 12 and result.parts[0].name == "Würfel"


@pytest.mark.parametrize(
    "text",
    [
        '<!DOCTYPE model [<!ENTITY a "b">]>' + model(thing()),
        '<!DOCTYPE model SYSTEM "file:///etc/passwd">' + model(thing()),
        "<a>" * 500 + "</a>" * 500,
        model("<a>" * 500 + "</a>" * 500),
        "<html/>",
        "",
        "not xml",
        model(thing()).replace("</model>", ""),
        model(thing()).replace('v1="0"', 'v1="8"'),
        model(thing()).replace('v1="0"', 'v1="-1"'),
        model(thing()).replace('v1="0"', 'v1="99999999999999999999"'),
        model(thing()).replace('v1="0"', ""),
        model(thing()).replace('x="0.0"', 'x="one"'),
        model(thing()).replace('x="0.0"', 'x="1_0"'),
        model(thing() + thing()),
        model(thing(), '<item objectid="2"/>'),
        model(thing(), '<item objectid="1" transform="1 0 0"/>'),
        model(thing(1, '<components><component objectid="1"/></components>')),
        model(thing(1, '<components><component objectid="2"/></components>')
              + thing(2, '<components><component objectid="1"/></components>')),
        model("<basematerials id='4'/><m:compositematerials id='5' matid='4' matindices='0 x'/>" + thing()),
        model("<m:colorgroup id='5'><m:color color='red'/></m:colorgroup>" + thing(1, more='pid="5" pindex="0"')),
        model("<vertices><vertices></vertices></vertices><basematerials id='4'><basematerials id='5'>"
              "</basematerials></basematerials>" + thing(1, "<mesh><vertices><vertices/></vertices></mesh>")),
    ],
)  # fmt: skip
def test_broken_and_hostile_models_end_in_a_coded_error(text: str) -> None:
    source = package(text or b" ")
    try:
        result = read(source, DEFAULTS)
    except (UnreadableFile, EmptyModel):
        return
    assert result.face_count == 0


def test_exponential_components_are_rejected_before_their_expansion() -> None:
    resources = thing(1)
    for number in range(2, 40):
        twice = f'<component objectid="{number - 1}"/>' * 2
        resources += thing(number, f"<components>{twice}</components>")
    with pytest.raises(ModelTooComplex):
        read(package(model(resources, '<item objectid="39"/>')), DEFAULTS)
    deep = thing(1) + "".join(
        thing(k, f'<components><component objectid="{k - 1}"/></components>') for k in range(2, 5000)
    )
    with pytest.raises(ModelTooComplex):
        read(package(model(deep, '<item objectid="4999"/>')), DEFAULTS)


def test_a_plate_of_equal_parts_is_accepted() -> None:
    count = 1500
    resources = "".join(thing(number) for number in range(1, count + 1))
    source = package(model(resources, "".join(f'<item objectid="{k}"/>' for k in range(1, count + 1))))
    assert len(resources) > 1 << 20 and source.size * 60 < len(resources)
    assert len(read(source, DEFAULTS).parts) == count


def test_a_compression_bomb_in_the_model_is_rejected() -> None:
    with pytest.raises(UnsafeArchive):
        read(package(b"<model>" + b" " * 40_000_000), DEFAULTS)


FACES = len(BRICK.faces)


def test_color_groups_become_vertex_colors_with_the_necessary_seams_only() -> None:
    group = '<m:colorgroup id="5"><m:color color="#FF0000"/><m:color color="#00ff0080"/></m:colorgroup>'
    result = scene(package(model(group + thing(1, more='pid="5" pindex="1"'))))
    assert (corner_colors(result) == [0, 255, 0, 128]).all()
    assert len(result.meshes[0].vertices) == 8
    text = mesh_xml().replace("/>\n<triangle", ' pid="5" p1="0" p2="1" p3="0"/>\n<triangle', 9)
    text = text.replace(' pid="5" p1="0" p2="1" p3="0"', "", 8)
    result = scene(package(model(group + thing(1, text, 'pid="5" pindex="1"'))))
    colors = corner_colors(result)
    assert (colors[:, 1] == [0, 255, 0, 128]).all()
    assert (colors[:, [0, 2]] == [255, 0, 0, 255]).all(axis=(1, 2)).sum() == 1
    assert 8 < len(result.meshes[0].vertices) <= 11
    assert volume(*soup(result)) == pytest.approx(6000)


def test_base_materials_become_materials_of_faces() -> None:
    group = (
        '<basematerials id="5"><base name="PLA" displaycolor="#FF0000"/>'
        '<base name="TPU" displaycolor="#0000FF40"/></basematerials>'
    )
    mixed = mesh_xml(triangle=' pid="5" p1="1"').replace(' pid="5" p1="1"', "", 4)
    result = scene(package(model(group + thing(1, mixed, 'pid="5" pindex="0"'))))
    assert [material.name for material in result.materials] == ["PLA", "TPU"]
    assert result.materials[0].base_color == (1, 0, 0, 1) and result.materials[1].alpha_mode == "blend"
    assert result.meshes[0].face_material is not None
    assert result.meshes[0].face_material.tolist() == [0] * 4 + [1] * 8
    assert result.meshes[0].colors is None and len(result.meshes[0].vertices) == 8


def test_composites_blend_to_a_color() -> None:
    group = (
        '<basematerials id="5"><base name="a" displaycolor="#FF0000"/>'
        '<base name="b" displaycolor="#0000FF"/></basematerials>'
        '<m:compositematerials id="6" matid="5" matindices="0 1"><m:composite values="3 1"/></m:compositematerials>'
    )
    result = scene(package(model(group + thing(1, more='pid="6" pindex="0"'))))
    assert (corner_colors(result) == [191, 0, 64, 255]).all()


TEXTURE = (
    '<m:texture2d id="4" path="/3D/Textures/a.png" contenttype="image/png" tilestyleu="mirror" tilestylev="clamp"/>'
    '<m:texture2dgroup id="5" texid="4"><m:tex2coord u="0" v="0"/><m:tex2coord u="1" v="0"/><m:tex2coord u="0" v="1"/>'
    "</m:texture2dgroup>"
)


def test_textures_are_read_with_their_coordinates() -> None:
    resources = TEXTURE + thing(1, mesh_xml(triangle=' pid="5" p1="0" p2="1" p3="2"'))
    result, notes = read_with_codes(package(model(resources), {"3D/Textures/a.png": png()}))
    mesh = result.meshes[0]
    assert mesh.uv is not None and notes == set()
    assert (mesh.uv[mesh.faces] == [[0, 0], [1, 0], [0, 1]]).all()
    assert result.images[0].data == png() and result.images[0].media_type == "image/png"
    assert result.materials[0].wrap == ("mirror", "clamp") and result.materials[0].base_color_image == 0
    result, notes = read_with_codes(package(model(resources)))
    assert result.face_count == 12 and notes == {"missing_texture"}


def test_multiproperties_are_layered() -> None:
    group = (
        TEXTURE + '<basematerials id="7"><base name="a" displaycolor="#FF0000"/></basematerials>'
        '<m:colorgroup id="8"><m:color color="#808080"/></m:colorgroup>'
        '<m:multiproperties id="9" pids="7 8" blendmethods="{}"><m:multi pindices="0 0"/></m:multiproperties>'
        '<m:multiproperties id="10" pids="5 8" blendmethods="multiply"><m:multi pindices="2 0"/></m:multiproperties>'
    )
    files: dict[str, str | bytes] = {"3D/Textures/a.png": png()}
    result = scene(package(model(group.format("multiply") + thing(1, more='pid="9" pindex="0"')), files))
    assert (corner_colors(result) == [128, 128, 128, 255]).all()
    assert result.meshes[0].face_material is not None and result.materials[0].name == "a"
    result = scene(package(model(group.format("mix") + thing(1, more='pid="9" pindex="0"')), files))
    assert (corner_colors(result) == [128, 128, 128, 255]).all() and result.meshes[0].face_material is None
    result = scene(package(model(group.format("mix") + thing(1, more='pid="10" pindex="0"')), files))
    assert (corner_colors(result) == [128, 128, 128, 255]).all()
    assert result.meshes[0].uv is not None and (result.meshes[0].uv == [0, 1]).all()


def test_invalid_property_references_are_noted_and_keep_the_geometry() -> None:
    group = '<m:colorgroup id="5"><m:color color="#FF0000"/></m:colorgroup>'
    for wrong in (' pid="5" p1="7"', ' pid="6" p1="0"', ' pid="5" p1="4000000000"'):
        result, notes = read_with_codes(package(model(group + thing(1, mesh_xml(triangle=wrong)))))
        assert result.face_count == 12 and notes == {"bad_property"} and result.meshes[0].colors is None


def test_metadata_names_the_scene() -> None:
    text = model(thing()).replace("<resources>", '<metadata name="Title">A &amp; B</metadata><resources>', 1)
    result = scene(package(text))
    assert result.name == "A & B" and result.metadata["Title"] == "A & B"


@settings(max_examples=150)
@given(st.data())
def test_changed_text_ends_in_a_scene_or_a_coded_error(data: st.DataObject) -> None:
    resources = (
        TEXTURE
        + thing(1, mesh_xml(triangle=' pid="5" p1="0" p2="1" p3="2"'))
        + thing(2, '<components><component objectid="1" transform="1 0 0 0 1 0 0 0 1 5 5 5"/></components>')
    )
    text = bytearray(model(resources, '<item objectid="2"/><item objectid="1"/>').encode())
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, len(text) - 1))
        piece = data.draw(
            st.sampled_from([b"", b"<", b">", b'"', b"9", b"-", b" ", b"\xff", b"\0", b"/>", b"e99", b"\n"])
        )
        text[at : at + data.draw(st.integers(0, 9))] = piece
    try:
        read(package(bytes(text) or b" ", {"3D/Textures/a.png": png()}), DEFAULTS)
    except MeshhubError as error:
        assert error.error_code in ("unreadable_file", "empty_model", "model_too_complex")


@settings(max_examples=100)
@given(st.data())
def test_the_fast_path_and_the_xml_parser_read_the_same(data: st.DataObject) -> None:
    text = model(thing(1, mesh_xml(sphere(10, 16))))
    begin = text.index("<vertices>") + len("<vertices>")
    pieces = [
        "9",
        "-",
        " ",
        "e1",
        "\n",
        "\t",
        ".",
        "+",
        ' p:a="1"',
        "/",
        "",
        '" ',
        "/>\n<triangle v1='1' v2='2' v3='3'",
    ]
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(begin, len(text) - 1))
        text = text[:at] + data.draw(st.sampled_from(pieces)) + text[at + data.draw(st.integers(0, 2)) :]

    def outcome(text: str) -> Scene | None:
        try:
            return read(package(text), DEFAULTS)
        except MeshhubError:
            return None

    fast = outcome(text)
    parsed = outcome(text.replace("<vertices>", "<vertices><!-- -->").replace("<triangles>", "<triangles><!-- -->"))
    assert (fast is None) == (parsed is None)
    if fast is not None and parsed is not None:
        assert np.array_equal(fast.meshes[0].vertices, parsed.meshes[0].vertices)
        assert np.array_equal(fast.meshes[0].faces, parsed.meshes[0].faces)


def test_sniffing_distinguishes_3mf_from_other_archives() -> None:
    def score(data: bytes) -> int:
        return sniff(data[:65536], len(data))

    assert score(package(model(thing())).read()) >= 90
    assert score(write_package(scene_of(BRICK))) >= 90
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("part.stl", b"solid")
    assert score(buffer.getvalue()) == 0
    assert score(b"solid") == score(b"") == score(b"PK\x03\x04") == 0


# -- writing --


def placement(x: float = 0, y: float = 0, z: float = 0, scale: tuple[float, float, float] = (1, 1, 1)) -> Any:
    matrix = np.diag([*scale, 1.0])
    matrix[:3, 3] = x, y, z
    return matrix


COLORED = Mesh(BRICK.vertices, BRICK.faces, colors=np.arange(32).reshape(8, 4).astype(np.uint8))
UV = np.random.default_rng(0).random((8, 2)).astype(np.float32)
MATERIALS = (
    Material("wood", base_color_image=0, wrap=("mirror", "clamp")),
    Material("red", (1, 0, 0, 1)),
    Material("green wood", (0.5, 1, 0.2, 1), base_color_image=0),
)
IMAGES = (Image(png(), "image/png", "wood"),)


def paint(*materials: int, **more: Any) -> Mesh:
    own = np.repeat(np.array(materials, np.int32), FACES // len(materials))
    return Mesh(BRICK.vertices, BRICK.faces, face_material=own, **more)


SCENES = {
    "plain": scene_of(BRICK, sphere()),
    "instances": Scene(
        (BRICK,), (Part(0, name="a"), Part(0, placement(100), name="a"), Part(0, placement(0, 0.1, 50), name="b"))
    ),
    "mirrors": Scene(
        (BRICK,), (Part(0), Part(0, placement(90, scale=(-1, 1, 1))), Part(0, placement(0, 90, scale=(-2, -2, -2))))
    ),
    "groups": Scene(
        (BRICK, sphere()),
        (
            Part(0, name="a", path=("G",)), Part(0, placement(50), name="b", path=("G", "H")),
            Part(1, placement(0, 90), name="s", path=("G",)), Part(1, placement(0, -90), name="s2"),
        ),
    ),
    "colors": Scene((COLORED,), (Part(0),)),
    "materials": Scene((paint(1, -1),), (Part(0), Part(0, placement(40), material=1)), MATERIALS, IMAGES),
    "of the part": Scene((BRICK,), (Part(0, material=1), Part(0, placement(40))), MATERIALS, IMAGES),
    "textures": Scene((paint(0, 1, uv=UV),), (Part(0),), MATERIALS, IMAGES),
    "bare beside textures": Scene((paint(0, -1, uv=UV),), (Part(0),), MATERIALS, IMAGES),
    "tinted textures": Scene((paint(0, 1, 2, uv=UV, colors=COLORED.colors),), (Part(0),), MATERIALS, IMAGES),
    "picture without uv": Scene((paint(0, 1),), (Part(0),), MATERIALS, IMAGES),
    "flattened": Scene((BRICK,), (Part(0, placement(scale=(1, 1, 0))), Part(0))),
    "faces on a point": Scene(
        (Mesh(BRICK.vertices, np.concatenate([BRICK.faces, [[0, 0, 1], [2, 2, 2]]])),), (Part(0),)
    ),
    "odd names": Scene(
        (Mesh(BRICK.vertices, BRICK.faces, name='<&">\x01\ud800 ü\n🎉'),), (Part(0, name="]]>\x00"),),
        name="T<&", metadata={"Copyright": "me & you", "unheard": "of", "CreationDate": "2020-01-01"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SCENES)
def test_the_reference_library_reads_our_files_strictly_and_without_a_warning(name: str) -> None:
    input_scene = SCENES[name]
    count, box = read_strictly(write_package(input_scene))
    assert count == input_scene.face_count
    assert np.allclose(box, bounds(input_scene), atol=1e-4)


@pytest.mark.parametrize("name", SCENES)
def test_written_scenes_survive_a_round_trip(name: str) -> None:
    input_scene = SCENES[name]
    result = round_trip(input_scene)
    assert result.frame == HOST_FRAME and result.face_count == input_scene.face_count
    assert np.array_equal(bounds(result), bounds(input_scene))
    assert volume(*soup(result)) == pytest.approx(volume(*soup(input_scene)))
    assert len(result.parts) == len(input_scene.parts)
    expected_features = input_scene.features() - ({"textures"} if name == "picture without uv" else set())
    assert expected_features - {"instances"} <= result.features()
    if name in ("instances", "mirrors", "groups"):
        assert "instances" in result.features()


def read_like_bambustudio(data: bytes) -> list[list[str]]:
    """Return the color of each triangle of each mesh object, "" for none, as BambuStudio reads it.

    It reads color groups alone, by these literal names, and a triangle without a property has that of its object.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        text = file.read("3D/3dmodel.model").decode()
    groups = {
        number: re.findall(r'<m:color color="([^"]+)"/>', body)
        for number, body in re.findall(r'<m:colorgroup id="(\d+)">(.*?)</m:colorgroup>', text, re.DOTALL)
    }
    result = []
    for attributes, body in re.findall(r"<object ([^>]*)>(.*?)</object>", text, re.DOTALL):
        rows = [dict(re.findall(r'(\w+)="([^"]*)"', row)) for row in re.findall(r"<triangle ([^>]*)/>", body)]
        own = dict(re.findall(r'(\w+)="([^"]*)"', attributes))
        keys = [(row.get("pid", own.get("pid")), row.get("p1", own.get("pindex", "0"))) for row in rows]
        if rows:
            result.append([groups[pid][int(index)] if pid in groups else "" for pid, index in keys])
    return result


def test_every_triangle_has_a_color_for_slicers_if_one_has() -> None:
    palette = (Material("", (1, 0, 0, 1)), Material("glass", (0, 0, 1, 0.5), alpha_mode="blend"))
    parts = (Part(0), Part(1, placement(40)), Part(1, placement(80), material=1), Part(2, placement(120)))
    colored = replace(COLORED, colors=np.tile(np.array([255, 0, 0, 255], np.uint8), (8, 1)))
    mixed = Scene((paint(0, -1, 1), BRICK, colored), parts, palette)
    # equal colors of different groups are the same text, so that slicers use one filament
    assert read_like_bambustudio(write_package(mixed)) == [
        ["#FF0000"] * 4 + ["#FFFFFF"] * 4 + ["#0000FF80"] * 4,
        ["#FFFFFF"] * 12,
        ["#0000FF80"] * 12,
        ["#FF0000"] * 12,
    ]
    assert read_like_bambustudio(write_package(scene_of(BRICK))) == [[""] * 12]
    result = round_trip(mixed)
    assert [material.name for material in result.materials] == ["Material 1", "glass"]
    assert np.array_equal(result.meshes[0].face_material, np.repeat([0, -1, 1], 4))
    assert [part.material for part in result.parts] == [None] * 4
    assert result.meshes[1].face_material is None and result.meshes[2].face_material.tolist() == [1] * 12


def test_the_object_has_the_color_of_most_of_its_triangles() -> None:
    data = write_package(Scene((paint(1, 2, 2, 2),), (Part(0),), (*MATERIALS[:2], Material("blue", (0, 0, 1, 1)))))
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        text = file.read("3D/3dmodel.model").decode()
    (pid,) = re.findall(r'<object id="\d+" type="model" pid="(\d+)" pindex="0">', text)
    assert f'<m:colorgroup id="{pid}"><m:color color="#0000FF"/></m:colorgroup>' in text


@pytest.mark.parametrize("name", SCENES)
def test_output_is_reproducible_and_a_valid_archive(name: str) -> None:
    data = write_package(SCENES[name])
    assert data == write_package(SCENES[name])
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        assert file.testzip() is None
        assert {info.date_time for info in file.infolist()} == {(1980, 1, 1, 0, 0, 0)}


@pytest.mark.parametrize("name", ["plain", "instances", "mirrors", "groups", "colors", "textures"])
def test_trimesh_reads_the_same_geometry(name: str) -> None:
    input_scene = SCENES[name]
    trimesh_model = trimesh.load_scene(io.BytesIO(write_package(input_scene)), file_type="3mf").to_mesh()
    assert trimesh_model.volume == pytest.approx(volume(*soup(input_scene)), rel=1e-5)
    assert np.allclose(trimesh_model.bounds, bounds(input_scene), atol=1e-4)


@pytest.mark.parametrize("name", ["plain", "instances", "mirrors", "groups", "colors", "textures"])
def test_assimp_reads_the_same_geometry(name: str, tmp_path: Path) -> None:
    program = shutil.which("assimp")
    if program is None:
        pytest.skip("assimp is not installed")
    input_scene = SCENES[name]
    (tmp_path / "x.3mf").write_bytes(write_package(input_scene))
    subprocess.run([program, "export", "x.3mf", "x.stl"], cwd=tmp_path, check=True, capture_output=True, timeout=300)
    trimesh_model = trimesh.load_mesh(tmp_path / "x.stl")
    assert len(trimesh_model.faces) == input_scene.face_count
    assert trimesh_model.volume == pytest.approx(volume(*soup(input_scene)), rel=1e-5)
    assert np.allclose(trimesh_model.bounds, bounds(input_scene), atol=1e-3)


def test_prusaslicer_reads_the_same_geometry(tmp_path: Path) -> None:
    program = shutil.which("prusa-slicer")
    if program is None:
        pytest.skip("prusa-slicer is not installed")
    input_scene = Scene((BRICK,), (Part(0), Part(0, placement(90, scale=(-1, 1, 1))), Part(0, placement(0, 50))))
    (tmp_path / "x.3mf").write_bytes(write_package(input_scene))
    command = [program, "--export-stl", "--dont-arrange", "-o", "x.stl", "x.3mf"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=300)
    trimesh_model = trimesh.load_mesh(tmp_path / "x.stl")
    assert trimesh_model.volume == pytest.approx(18_000, rel=1e-5)
    assert np.allclose(np.ptp(trimesh_model.bounds, axis=0), [90, 70, 30], atol=1e-3)


def test_instances_share_one_object_and_mirrored_instances_another() -> None:
    parts = tuple(Part(0, placement(50 * k, scale=(-1 if k % 2 else 1, 1, 1))) for k in range(6))
    with zipfile.ZipFile(io.BytesIO(write_package(Scene((BRICK,), parts)))) as file:
        text = file.read("3D/3dmodel.model").decode()
    assert text.count("<mesh>") == 2 and text.count("<item ") == 6
    result = round_trip(Scene((BRICK,), parts))
    assert all(np.linalg.det(part.transform[:3, :3]) > 0 for part in result.parts)


@pytest.mark.parametrize("name", ["instances", "groups"])
def test_names_and_paths_survive(name: str) -> None:
    input_scene = SCENES[name]
    assert [(p.path, p.name) for p in round_trip(input_scene).parts] == [(p.path, p.name) for p in input_scene.parts]


def test_characters_that_xml_cannot_contain_are_removed_from_names() -> None:
    result = round_trip(SCENES["odd names"])
    assert result.name == "T<&" and result.parts[0].name == "]]>"
    assert dict(result.metadata) == {"Title": "T<&", "Copyright": "me & you", "Application": "meshhub"}


def test_seams_are_closed_and_colors_stay_at_their_corners() -> None:
    corners = BRICK.faces.ravel()
    cut = Mesh(
        BRICK.vertices[corners],
        np.arange(len(corners), dtype=np.int32).reshape(-1, 3),
        colors=np.random.default_rng(1).integers(0, 256, (len(corners), 4)).astype(np.uint8),
    )
    data = write_package(Scene((cut,), (Part(0),)))
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        assert file.read("3D/3dmodel.model").count(b"<vertex ") == 8
    assert cut.colors is not None
    assert np.array_equal(corner_colors(read(Source.from_bytes(data, "x.3mf"), DEFAULTS)), cut.colors[cut.faces])


def test_materials_and_textures_survive() -> None:
    result = round_trip(SCENES["textures"])
    mesh = result.meshes[0]
    assert mesh.uv is not None and mesh.face_material is not None
    textured = mesh.face_material[:6]
    assert len(set(textured.tolist())) == 1
    material = result.materials[int(textured[0])]
    assert material.base_color_image is not None and result.images[material.base_color_image].data == png()
    assert material.wrap == ("mirror", "clamp")
    assert np.array_equal(mesh.uv[mesh.faces[:6]], UV[BRICK.faces[:6]])
    plain = result.materials[int(mesh.face_material[6])]
    assert plain.name == "red" and plain.base_color == (1, 0, 0, 1)
    own = round_trip(SCENES["of the part"])
    assert own.materials[own.used_materials()[0]].name == "red" and len(own.used_materials()) == 1


def test_a_tint_is_multiplied_in_linear_light() -> None:
    half = Material("half", (0.5, 0.5, 0.5, 1))
    gray = Mesh(BRICK.vertices, BRICK.faces, colors=np.full((8, 4), [128, 255, 0, 255], np.uint8))
    result = round_trip(Scene((gray,), (Part(0, material=0),), (half,)))
    linear = ((128 / 255 + 0.055) / 1.055) ** 2.4
    product = round((1.055 * (linear * linear) ** (1 / 2.4) - 0.055) * 255)
    assert corner_colors(result)[0, 0].tolist() == [product, 128, 0, 255]


def test_textures_that_3mf_cannot_hold_are_noted() -> None:
    input_scene = Scene(SCENES["textures"].meshes, (Part(0),), MATERIALS, (Image(b"RIFF0000WEBP", "image/webp"),))
    with collecting("3mf") as remarks:
        data = write_package(input_scene)
    assert {note.code for note in remarks.notes} == {"texture_format_unsupported", "uv_dropped"}
    assert read_strictly(data)[0] == 12


@settings(max_examples=60)
@given(
    st.lists(st.tuples(*[st.floats(-1e6, 1e6)] * 3), min_size=3, max_size=12),
    st.lists(st.tuples(*[st.integers(0, 2)] * 3), min_size=1, max_size=12),
    st.lists(st.floats(-100, 100), min_size=12, max_size=12),
)
@example(
    points=[(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)],
    faces=[(0, 1, 2)],
    # denormal pivots, by which the computation of the determinant divides
    numbers=[0.0, 1e-310, 1e-300, 0.0, 0.0, 0.0, 1e-160, 0.0, 2.2e-308, 2.2e-308, 1.0, 0.0],
)
def test_any_mesh_survives_a_round_trip_exactly(points: Any, faces: Any, numbers: Any) -> None:
    matrix = np.eye(4)
    matrix[:3] = np.array(numbers).reshape(3, 4)
    mesh = Mesh(np.array(points), np.array(faces, np.int32))
    result = round_trip(Scene((mesh,), (Part(0),)))
    exact = np.float32 if np.array_equal(mesh.vertices.astype(np.float32), mesh.vertices) else np.float64
    actual, original = result.meshes[0].vertices[result.meshes[0].faces], mesh.vertices[mesh.faces]
    assert np.array_equal(actual.astype(exact), original.astype(exact))
    moved = round_trip(Scene((mesh,), (Part(0, matrix),)))
    expected, moved_by_writer = soup(Scene((mesh,), (Part(0, matrix),))), soup(moved)
    slack = 1e-6 * (1 + np.abs(mesh.vertices).max()) * (1 + np.abs(matrix).max())
    assert np.allclose(
        np.sort(moved_by_writer[0][moved_by_writer[1]], axis=1),
        np.sort(expected[0][expected[1]], axis=1),
        rtol=0,
        atol=slack,
    )


# -- real files --

LIB3MF_UNITS = (0.001, 1, 10, 25.4, 304.8, 1000)


def test_real_files_agree_with_the_reference_library(corpus: Path, corpus_index: list[dict[str, str]]) -> None:
    wrapper = lib3mf.get_wrapper()
    compared = 0
    for row in corpus_index:
        if not row["file"].startswith("3mf/"):
            continue
        source = Source.from_path(corpus / row["file"])
        try:
            result, notes = read_with_codes(source)
        except MeshhubError as error:
            assert row["expect"] != "converts", row["file"]
            assert error.error_code in ("unreadable_file", "empty_model"), row["file"]
            continue
        assert result.face_count > 0
        model = wrapper.CreateModel()
        reader = model.QueryReader("3mf")
        try:
            reader.ReadFromFile(str(source.path))
        except lib3mf.ELib3MFException:
            continue
        if "not_a_model_skipped" in notes:
            continue
        count, box = count_triangles(model)
        if has_lattice(model):
            # the library counts the triangles beside the beams, which have become triangles here
            assert result.face_count > count, row["file"]
            compared += 1
            continue
        assert result.face_count == count, row["file"]
        box = box * LIB3MF_UNITS[int(model.GetUnit())]
        result = to_frame(result, HOST_FRAME)
        assert np.allclose(bounds(result), box, rtol=1e-5, atol=1e-5 * np.abs(box).max()), row["file"]
        second_result = round_trip(result)
        assert read_strictly(write_package(result))[0] == count, row["file"]
        assert volume(*soup(second_result)) == pytest.approx(volume(*soup(result)), rel=1e-5, abs=1e-9), row["file"]
        compared += 1
    assert compared >= 30
