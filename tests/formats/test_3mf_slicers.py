"""3MF projects of slicers: unread data is noted with counts, and unprinted volumes are left out."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from meshhub import InvalidOption, Registry, UnreadableFile
from meshhub.builtin_plugins.threemf import ThreeMFReadOptions
from meshhub.builtin_plugins.threemf.reader import read
from meshhub.errors import EmptyModel
from meshhub.model.notes import collecting
from meshhub.model.scene import Mesh, Scene
from meshhub.model.source import Source, Target
from meshhub.toolkit.geometry import bounds
from models import brick, scene_of, sphere
from threemf_models import CORE, mesh_xml, model, package, thing
from threemf_projects import DIALECTS, paint_triangles, project

pytestmark = pytest.mark.once

BRICK = brick()
BALL = sphere(200)
"""Mesh that is large enough for the fast path."""

PAINT = {
    "seam_paint_dropped": ("slic3rpe:custom_seam", "paint_seam"),
    "support_paint_dropped": ("slic3rpe:custom_supports", "paint_supports"),
    "fuzzy_skin_paint_dropped": ("slic3rpe:fuzzy_skin", "paint_fuzzy_skin"),
}
"""Attributes by note: of PrusaSlicer, and of BambuStudio and OrcaSlicer."""


def load(source: Source) -> tuple[Scene, dict[str, str]]:
    with collecting("3mf") as remarks:
        scene = read(source, ThreeMFReadOptions())
    listed = [*remarks.notes, *(scene.project.notes if scene.project else ())]
    notes = {note.code: note.message for note in listed}
    assert len(notes) == len(listed)
    assert all(len(message) < 160 for message in notes.values())
    return scene, notes


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("code", PAINT)
@pytest.mark.parametrize("mesh", [BRICK, BALL], ids=["by the XML parser", "in columns"])
def test_each_kind_of_paint_is_noted_with_its_count(dialect: str, code: str, mesh: Mesh) -> None:
    name = PAINT[code][dialect != "prusa"]
    paint = {3: f' {name}="4"', 5: f' {name}="84843"', 7: f' {name}=""'}
    scene, notes = load(project(dialect, {"a": paint_triangles(mesh, paint)}))
    assert scene.face_count == len(mesh.faces)
    assert set(notes) == {code}
    assert "2 triangles of 1 object" in notes[code]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("mesh", [BRICK, BALL], ids=["by the XML parser", "in columns"])
def test_paint_of_all_kinds_at_once(dialect: str, mesh: Mesh) -> None:
    """Some triangles have two kinds; triangles with equally many attributes have different kinds."""
    seam, supports, fuzzy = (names[dialect != "prusa"] for names in PAINT.values())
    paint = {0: f' {seam}="8"', 1: f' {fuzzy}="8" {seam}="4"', 2: f' {supports}="4"', 3: f' {fuzzy}="4"'}
    _, notes = load(project(dialect, {"a": paint_triangles(mesh, paint)}))
    counts = {code: message.split(" painted on ")[1].split(" ")[0] for code, message in notes.items()}
    assert counts == dict(zip(PAINT, ["2", "1", "2"], strict=True))


def test_paint_is_counted_over_sub_models_once_for_each_mesh_that_is_printed() -> None:
    first, second = (
        paint_triangles(BRICK, {0: ' paint_seam="4"'}),
        paint_triangles(BALL, {0: ' paint_seam="4"', 9: ' paint_seam="8"'}),
    )
    _, notes = load(project("orca", {"a": first, "b": second, "c": second}, kinds={"c": "modifier_part"}))
    assert "3 triangles of 2 objects" in notes["seam_paint_dropped"]


def painted_project(dialect: str) -> tuple[bytes, set[str]]:
    """Return a project with content that a scene cannot hold, and the codes of the notes on it."""
    color = "slic3rpe:mmu_segmentation" if dialect == "prusa" else "paint_color"
    attributes = [f' {names[dialect != "prusa"]}="84843"' for names in PAINT.values()] + [f' {color}="84843"']
    mesh = paint_triangles(BRICK, dict(enumerate(attributes)))
    kind = "NegativeVolume" if dialect == "prusa" else "negative_part"
    source = project(dialect, {"a": mesh, "x": mesh_xml(scale=0.5)}, kinds={"x": kind}, filaments={"a": 2})
    return source.read(), {*PAINT, "modifiers_skipped", "paint_simplified", "filament_colors_unknown"}


def convert(data: bytes, to: str, **options: Any) -> tuple[bytes, list[str]]:
    """Convert a 3MF file, and return the codes of the notes."""
    target = Target(f"a.{to}")
    report = Registry(entry_points=False).convert(Source.from_bytes(data, "a.3mf"), target, target=to, **options)
    return target.read(), [note.code for note in report.notes]


@pytest.mark.parametrize("profile", ["standard", *DIALECTS])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_project_stays_unchanged_in_its_dialect_and_losses_in_others_are_noted(dialect: str, profile: str) -> None:
    data, lost = painted_project(dialect)
    result, notes = convert(data, "3mf", threemf_profile=profile)
    # OrcaSlicer opens the projects of BambuStudio
    if profile == dialect or (dialect, profile) == ("bambu", "orca"):
        assert result == data and notes == []
    else:
        # projects of slicers get the paint
        lost -= {"paint_simplified"} if profile != "standard" else set()
        assert result != data and lost | {"project_not_kept"} <= set(notes)
        assert ("paint_simplified" in notes) is (profile == "standard")
        assert len(set(notes)) == len(notes)


@pytest.mark.parametrize(
    ("to", "options"),
    [
        ("glb", {}),
        ("stl", {}),
        ("3mf", {"place_on_bed": True}),
        ("3mf", {"target_height_mm": 40}),
        ("3mf", {"input_unit": "in"}),
    ],
)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_each_loss_of_a_changed_project_is_noted_once(dialect: str, to: str, options: dict[str, Any]) -> None:
    data, lost = painted_project(dialect)
    profile = {"threemf_profile": dialect} if to == "3mf" else {}
    lost -= {"paint_simplified"} if profile else set()
    result, notes = convert(data, to, **options, **profile)
    assert result != data and lost <= set(notes)
    assert len(set(notes)) == len(notes)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_inspections_and_pictures_note_what_is_not_read(dialect: str) -> None:
    data, lost = painted_project(dialect)
    # they show the paint
    lost = lost - {"paint_simplified"} | {"paint_split"}
    registry = Registry(entry_points=False)
    assert lost <= {note.code for note in registry.inspect(Source.from_bytes(data, "a.3mf")).notes}
    assert lost <= {note.code for note in registry.render(Source.from_bytes(data, "a.3mf"), Target("a.png")).notes}


def read_entries(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_filaments_get_other_numbers_and_the_rest_of_the_project_is_kept(dialect: str) -> None:
    data, _ = painted_project(dialect)
    result, notes = convert(data, "3mf", threemf_profile=dialect, threemf_remap_filaments="1=4,2=1")
    assert notes == []
    before, after = read_entries(data), read_entries(result)
    changed = {name for name in before if before[name] != after[name]}
    assert list(before) == list(after)
    (painted,) = (name for name in changed if name.endswith(".model"))
    name = "mmu_segmentation" if dialect == "prusa" else "paint_color"
    # the paint 84843 has leaves 2, 1, 2 and 1
    assert before[painted].replace(f'{name}="84843"'.encode(), f'{name}="41C41C3"'.encode()) == after[painted]
    (settings,) = changed - {painted}
    assert [before[settings].count(b'key="extruder" value="%d"' % number) for number in (1, 2, 4)] == [1, 1, 0]
    assert [after[settings].count(b'key="extruder" value="%d"' % number) for number in (1, 2, 4)] == [1, 0, 1]


def test_filaments_with_other_numbers_have_the_colors_of_the_project() -> None:
    colors = json.dumps({"filament_colour": ["#FF0000", "#00FF00", "#0000FF"]})
    mesh = paint_triangles(BRICK, {0: ' paint_color="0C"'})
    source = project("bambu", {"a": mesh}, files={"Metadata/project_settings.config": colors})
    scene = read(source, ThreeMFReadOptions(threemf_remap_filaments="1=2,3=1"))
    names = [scene.materials[number].name for number in scene.used_materials()]
    assert names == ["Filament 1", "Filament 2"]
    assert [material.base_color[:3] for material in scene.materials] == [(1, 0, 0), (0, 1, 0)]
    with pytest.raises(InvalidOption, match="names filament 4, but the project has 3"):
        read(source, ThreeMFReadOptions(threemf_remap_filaments="1=4"))


def test_layers_ranges_and_settings_get_the_new_filaments() -> None:
    files = {
        "Metadata/Slic3r_PE.config": "; extruder_colour = #FF0000;#00FF00\n; perimeter_extruder = 1\n"
        "; support_material_interface_extruder = 0\n; extruder_clearance_height = 1\n",
        "Metadata/Prusa_Slicer_custom_gcode_per_print_z.xml": '<custom_gcodes_per_print_z><code print_z="2" '
        'type="2" extruder="1" color="#FF0000"/></custom_gcodes_per_print_z>',
        "Metadata/Prusa_Slicer_layer_config_ranges.xml": '<objects><object id="1"><range min_z="0" max_z="1">'
        '<option opt_key="extruder">1</option></range></object></objects>',
    }
    data = project("prusa", {"a": mesh_xml()}, files=files).read()
    entries = read_entries(convert(data, "3mf", threemf_profile="prusa", threemf_remap_filaments="1=2")[0])
    settings, layers, ranges = (entries[name].decode() for name in files)
    assert "perimeter_extruder = 2" in settings and "interface_extruder = 0" in settings
    assert "clearance_height = 1" in settings
    assert 'extruder="2"' in layers and '"extruder">2<' in ranges


@pytest.mark.parametrize("text", ["1", "1=2=3", "0=1", "1=33", "1=2,1=3", "a=b"])
def test_malformed_numbers_of_filaments_are_rejected(text: str) -> None:
    with pytest.raises(InvalidOption, match="lists each filament once"):
        convert(painted_project("bambu")[0], "3mf", threemf_remap_filaments=text)


def test_only_projects_have_filaments_to_remap() -> None:
    data = package(model(thing(mesh_xml()))).read()
    with pytest.raises(InvalidOption, match="needs a project of PrusaSlicer"):
        convert(data, "3mf", threemf_remap_filaments="1=2")


def test_a_changed_scene_is_not_a_project() -> None:
    scene = read(Source.from_bytes(painted_project("prusa")[0], "a.3mf"), ThreeMFReadOptions())
    assert scene.project is not None
    assert replace(scene, name="other").project is None


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_first_filament_everywhere_and_plain_settings_of_parts_are_not_noted(dialect: str) -> None:
    volumes = {"a": mesh_xml(), "b": mesh_xml(scale=2)}
    scene, notes = load(project(dialect, volumes, object_filament=1, filaments={"a": 1, "b": 0}))
    assert scene.face_count == 24
    assert notes == {}


@pytest.mark.parametrize(
    ("prusa", "others", "shown"),
    [
        ("ParameterModifier", "modifier_part", "modifiers: 2"),
        ("NegativeVolume", "negative_part", "negative volumes (the cut was not applied): 2"),
        ("SupportBlocker", "support_blocker", "support enforcers or blockers: 2"),
        ("SupportEnforcer", "support_enforcer", "support enforcers or blockers: 2"),
    ],
)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_volumes_that_are_not_printed_are_left_out_and_counted(
    dialect: str, prusa: str, others: str, shown: str
) -> None:
    kind = prusa if dialect == "prusa" else others
    volumes = {"x": mesh_xml(scale=7), "a": mesh_xml(), "y": paint_triangles(BRICK, {0: ' paint_color="4"'})}
    source = project(dialect, volumes, kinds={"x": kind, "y": kind}, filaments={"x": 4, "y": 4})
    scene, notes = load(source)
    assert np.allclose(bounds(scene), bounds(scene_of(BRICK)))
    assert scene.face_count == 12
    assert set(notes) == {"modifiers_skipped"}
    assert notes["modifiers_skipped"].endswith(shown)


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        ("infill_mesh", "modifiers: 1"),
        ("cutting_mesh", "modifiers: 1"),
        ("support_mesh", "support enforcers or blockers: 1"),
        ("anti_overhang_mesh", "support enforcers or blockers: 1"),
    ],
)
@pytest.mark.parametrize("is_grouped", [False, True])
def test_volumes_that_cura_does_not_print_are_left_out(key: str, shown: str, is_grouped: bool) -> None:
    def stated(value: str, scale: float) -> str:
        group = f'<metadatagroup><metadata name="cura:{key}">{value}</metadata></metadatagroup>'
        return group + mesh_xml(scale=scale)

    resources = thing(1, stated("False", 1)) + thing(2, stated("True", 9))
    build = '<item objectid="1"/><item objectid="2"/><item objectid="2"/>'
    if is_grouped:
        components = "".join(f'<component objectid="{number}"/>' for number in (1, 2, 2))
        resources += thing(3, f"<components>{components}</components>")
        build = '<item objectid="3"/>'
    scene, notes = load(package(model(resources, build)))
    assert np.allclose(bounds(scene), bounds(scene_of(BRICK)))
    assert set(notes) == {"modifiers_skipped"}
    assert notes["modifiers_skipped"].endswith(shown)


CURA = "http://software.ultimaker.com/xml/cura/3mf/2015/10"


@pytest.mark.parametrize(
    "settings",
    [
        f'<settings xmlns="{CURA}"><setting key="infill_mesh">True</setting></settings>',
        '<metadatagroup><metadata name="custom0:infill_mesh">True</metadata></metadatagroup>',
    ],
)
def test_cura_settings_of_older_versions_and_with_other_prefixes_are_read(settings: str) -> None:
    resources = thing(1) + thing(2, mesh_xml(scale=9) + settings)
    text = model(resources, '<item objectid="1"/><item objectid="2"/>', f'xmlns:custom0="{CURA}"')
    scene, notes = load(package(text))
    assert np.allclose(bounds(scene), bounds(scene_of(BRICK)))
    assert set(notes) == {"modifiers_skipped"}


def test_a_project_of_modifiers_alone_is_empty() -> None:
    with pytest.raises(EmptyModel, match="only support structures, modifiers"):
        load(project("bambu", {"a": mesh_xml()}, kinds={"a": "modifier_part"}))


@pytest.mark.parametrize("dialect", ["bambu", "orca"])
def test_several_plates_are_noted(dialect: str) -> None:
    _, notes = load(project(dialect, {"a": mesh_xml()}, plates=3))
    assert set(notes) == {"plates_merged"}
    assert "3 plates" in notes["plates_merged"]


@pytest.mark.parametrize(
    ("dialect", "file", "text", "shown"),
    [
        ("prusa", "Metadata/Slic3r_PE.config", "; nozzle_diameter = 0.4,0.4", "print settings"),
        ("bambu", "Metadata/project_settings.config", '{"filament_colour": ["#FF0000"]}', "print settings"),
        ("prusa", "Metadata/Slic3r_PE_layer_heights_profile.txt", "object_id=1|0;0.2", "layer heights"),
        ("orca", "Metadata/layer_config_ranges.xml", "<objects/>", "settings of height ranges"),
        ("bambu", "Cura/a.inst.cfg", "x", "print settings"),
    ],
)
def test_settings_of_the_slicer_are_noted(dialect: str, file: str, text: str, shown: str) -> None:
    _, notes = load(project(dialect, {"a": mesh_xml()}, files={file: text}))
    assert set(notes) == {"slicer_settings_dropped"}
    assert notes["slicer_settings_dropped"].endswith(f"(1 file): {shown}")


@pytest.mark.parametrize(
    ("dialect", "file", "text"),
    [
        ("prusa", "Prusa_Slicer_custom_gcode_per_print_z.xml", "<custom_gcodes>{}<mode/></custom_gcodes>"),
        ("bambu", "custom_gcode_per_layer.xml", "<custom_gcodes_per_layer><plate>{}</plate></custom_gcodes_per_layer>"),
    ],
)
def test_changes_at_layers_are_noted(dialect: str, file: str, text: str) -> None:
    row = '<code print_z="2" type="0" extruder="2"/>' if dialect == "prusa" else '<layer top_z="2" type="2"/>'
    _, notes = load(project(dialect, {"a": mesh_xml()}, files={f"Metadata/{file}": text.format(row * 2)}))
    assert set(notes) == {"layer_changes_dropped"} and "2 layers" in notes["layer_changes_dropped"]
    for content, codes in ((text.format(""), set()), ("<", {"project_settings_damaged"})):
        assert set(load(project(dialect, {"a": mesh_xml()}, files={f"Metadata/{file}": content}))[1]) == codes


def test_unusual_nesting_of_painted_triangles_keeps_the_geometry() -> None:
    row = '<triangle v1="0" v2="1" v3="2" pid="5" p1="0" paint_color="4"/>'
    plain = '<triangle v1="0" v2="1" v3="3"/>'
    corners = np.concatenate([np.zeros((1, 3)), np.eye(3)])
    vertices = "".join(f'<vertex x="{x}" y="{y}" z="{z}"/>' for x, y, z in corners.tolist())
    for triangles, count in (
        (f"<triangles>{row * 5}<triangles>{plain}</triangles>{row}</triangles><triangles>{plain}</triangles>", 1),
        (f"<triangles>{row * 5}</triangles><triangles>{plain * 2}</triangles>", 2),
        (f"<triangles>{row * 2}</triangles><triangles>{row * 3}</triangles>", 3),
    ):
        assert (
            load(package(model(thing(1, f"<mesh><vertices>{vertices}</vertices>{triangles}</mesh>"))))[0].face_count
            == count
        )


LOST = "modifiers_not_found"
DAMAGED = "project_settings_damaged"


@pytest.mark.parametrize(
    ("settings", "codes"),
    [
        ("<config><metadata key='extruder' value='2'/></config>", set()),
        ("<config><part id='1'><object id='9'/><metadata key='extruder' value='x'/></part></config>", set()),
        (
            "<config><volume firstid='5' lastid='1'><metadata key='volume_type' value='NegativeVolume'/></volume>"
            "</config>",
            {LOST},
        ),
        (
            "<config><object id='1'><volume firstid='99' lastid='999999999'><metadata key='modifier' value='1'/>"
            "</volume>",
            {LOST, DAMAGED},
        ),
        ("<config><object id='1'><part id='7' subtype='negative_part'/></object></config>", {LOST}),
        # an export of one plate keeps the settings of all objects
        ("<config><object id='9'><part id='7' subtype='negative_part'/></object></config>", set()),
        ("<volume><volume><volume><metadata/></volume></volume></volume>", set()),
    ],
)
def test_unusual_settings_keep_the_geometry_and_are_noted(settings: str, codes: set[str]) -> None:
    scene, notes = load(package(model(thing()), {"Metadata/model_settings.config": settings}))
    assert scene.face_count == 12
    assert set(notes) == codes
    assert (DAMAGED not in codes) or "modifiers may have become solid" in notes[DAMAGED]


EMBOSSED = (
    '<slic3rpe:text text="V" style_name="Plain" font_descriptor="Sans 10" size_in_mm="10"/>',
    '<slic3rpe:shape filepath="logo.svg" filepath3mf="3D/logo.svg" scale="0.01" depth="2" transform="1 0 0 0"/>',
    '<BambuStudioShape filepath="logo.svg"/><x:y:z x:y:z="1"/>',
)
"""Elements that slicers write without declaring their prefixes; the last one is an invention."""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("element", EMBOSSED)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_volumes_after_an_embossed_text_or_drawing_are_not_printed(dialect: str, element: str, encoding: str) -> None:
    kind = "NegativeVolume" if dialect == "prusa" else "negative_part"
    volumes = {"a": mesh_xml(), "x": mesh_xml(scale=7)}
    data = project(dialect, volumes, kinds={"x": kind}).read()
    name = "Metadata/Slic3r_PE_model.config" if dialect == "prusa" else "Metadata/model_settings.config"
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        files = {entry: archive.read(entry) for entry in archive.namelist()}
    end = "</volume>" if dialect == "prusa" else "</part>"
    files[name] = files[name].decode().replace(end, element + end).encode(encoding)
    files[name] = files[name].replace(b'encoding="UTF-8"', b"")
    scene, notes = load(package(None, files))
    assert np.allclose(bounds(scene), bounds(scene_of(BRICK)))
    assert set(notes) == {"modifiers_skipped"}


def test_a_model_may_use_prefixes_without_declaring_them() -> None:
    """Slicers compare names with their prefixes, so programs that forget the namespaces do not notice."""
    root = model(
        '<object id="1" p:UUID="a"><components><component p:path="/3D/a.model" objectid="1"/></components></object>',
        '<item objectid="1" p:UUID="b" x:y="1"/>',
        spaces=f'xmlns="{CORE}"',
    )
    other = model(thing(1, mesh_xml(triangle=' slic3rpe:custom_seam="4"')), "", spaces=f'xmlns="{CORE}"')
    scene, notes = load(package(root, {"3D/a.model": other}))
    assert np.allclose(bounds(scene), bounds(scene_of(BRICK)))
    assert set(notes) == {"seam_paint_dropped"}
    with pytest.raises(UnreadableFile, match="mismatched"):
        load(package(root.replace("</model>", "</p:model>")))
