"""Filaments and paint of slicers' projects become materials."""

from __future__ import annotations

import io
import json
import random
import re
import shutil
import subprocess
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import lib3mf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from meshhub.builtin_plugins.threemf import ThreeMFReadOptions, ThreeMFWriteOptions
from meshhub.builtin_plugins.threemf.reader import read
from meshhub.builtin_plugins.threemf.writer import write
from meshhub.errors import EmptyModel
from meshhub.model.notes import collecting
from meshhub.model.scene import Material, Mesh, Part, Scene
from meshhub.model.source import Source, Target
from meshhub.toolkit.geometry import bounds
from meshhub.toolkit.topology import is_closed
from models import brick, sphere
from threemf_models import CORE, mesh_xml, model, package, thing
from threemf_projects import DIALECTS, paint_triangles, project

pytestmark = pytest.mark.once

BRICK = brick()
BALL = sphere(200)
"""Mesh that is large enough for the fast path."""

COLORS = ["#FF0000", "#00FF00", "#0000FF"]
"""Colors of the filaments 1 to 3."""

CODES = {1: "4", 2: "8", 3: "0C", 15: "CC", 17: "EC", 18: "0FC", 32: "EFC"}
"""Codes of triangles with one filament."""


def palette(dialect: str) -> dict[str, str]:
    """Return the file with the colors of the filaments."""
    if dialect == "prusa":
        # the second extruder has the color of its filament
        return {
            "Metadata/Slic3r_PE.config": '; extruder_colour = #FF0000;"";#0000FF\n; filament_colour = #111111;#00FF00'
        }
    return {"Metadata/project_settings.config": json.dumps({"filament_colour": COLORS, "version": [1]})}


def load(source: Source, paint: Any = "dominant") -> tuple[Scene, dict[str, str]]:
    """Read a project; notes on the settings, which every project has, are left out."""
    with collecting("3mf") as remarks:
        scene = read(source, ThreeMFReadOptions(threemf_paint=paint))
    listed = [*remarks.notes, *(scene.project.notes if scene.project else ())]
    assert all(len(note.message) < 160 for note in listed)
    return scene, {note.code: note.message for note in listed if note.code != "slicer_settings_dropped"}


def filaments(scene: Scene, part: int = 0) -> list[int]:
    """Return the filament of each face of a part, 0 for a face without a material."""
    mesh, own = scene.meshes[scene.parts[part].mesh], scene.parts[part].material
    materials = np.full(len(mesh.faces), -1) if mesh.face_material is None else mesh.face_material
    matches = [re.fullmatch(r"Filament (\d+)", material.name) for material in scene.materials]
    numbers = np.array([int(match[1]) if match else -1 for match in matches] + [0])
    return numbers[np.where(materials < 0, -1 if own is None else own, materials)].tolist()


def face_areas(mesh: Mesh) -> np.ndarray:
    a, b, c = mesh.vertices[mesh.faces].transpose(1, 0, 2)
    return np.asarray(np.linalg.norm(np.cross(b - a, c - a), axis=1) / 2)


def attribute(dialect: str, code: str) -> str:
    return f' {"slic3rpe:mmu_segmentation" if dialect == "prusa" else "paint_color"}="{code}"'


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("mesh", [BRICK, BALL], ids=["by the XML parser", "in columns"])
def test_painted_triangles_have_the_material_of_their_filament(dialect: str, mesh: Mesh) -> None:
    paint = {2 * k: attribute(dialect, code) for k, code in enumerate(list(CODES.values())[:6])}
    scene, notes = load(project(dialect, {"a": paint_triangles(mesh, paint)}, files=palette(dialect)))
    expected = [1] * len(mesh.faces)
    for k, number in enumerate(list(CODES)[:6]):
        expected[2 * k] = number
    assert filaments(scene) == expected
    colors = {material.name: material.base_color for material in scene.materials}
    assert colors["Filament 1"] == (1, 0, 0, 1)
    assert colors["Filament 2"] == (0, 1, 0, 1)
    assert colors["Filament 3"] == (0, 0, 1, 1)
    assert len(set(colors.values())) == len(colors)
    assert set(notes) == {"filament_colors_unknown"}
    assert "3 of 6 filaments" in notes["filament_colors_unknown"]


def test_paint_on_every_triangle_is_read_in_columns_like_by_the_xml_parser() -> None:
    everywhere = {k: f' paint_color="{list(CODES.values())[k % 7]}"' for k in range(len(BALL.faces))}
    text = paint_triangles(BALL, everywhere)
    for mesh in (text, re.sub(r'v1="(\d+)"', r"v1='\1'", text, count=1)):
        scene, _ = load(project("bambu", {"a": mesh}))
        assert filaments(scene) == [list(CODES)[k % 7] for k in range(len(BALL.faces))]
        assert np.array_equal(scene.meshes[0].faces, BALL.faces)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_parts_have_the_filament_of_their_volume_or_object(dialect: str) -> None:
    volumes = {"a": mesh_xml(), "b": mesh_xml(scale=2), "c": paint_triangles(BRICK, {0: attribute(dialect, "4")})}
    source = project(dialect, volumes, object_filament=2, filaments={"a": 1, "b": 3}, files=palette(dialect))
    scene, notes = load(source)
    numbers = [number for part in range(len(scene.parts)) for number in filaments(scene, part)]
    assert numbers == [1] * 12 + [3] * 12 + [1] + [2] * 11
    assert notes == {}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_volumes_that_are_not_printed_do_not_shift_the_filaments_of_others(dialect: str) -> None:
    volumes = {"x": mesh_xml(scale=7), "a": mesh_xml(), "b": mesh_xml(scale=2)}
    kind = "ParameterModifier" if dialect == "prusa" else "modifier_part"
    scene, _ = load(project(dialect, volumes, kinds={"x": kind}, filaments={"a": 2, "b": 3}))
    numbers = [number for part in range(len(scene.parts)) for number in filaments(scene, part)]
    assert numbers == [2] * 12 + [3] * 12


def test_instances_of_one_mesh_keep_their_own_filaments() -> None:
    def stated(number: object) -> str:
        return f'<metadatagroup><metadata name="cura:extruder_nr">{number}</metadata></metadatagroup>{mesh_xml()}'

    build = '<item objectid="1"/><item objectid="2"/>'
    scene, _ = load(package(model(thing(1, stated(0)) + thing(2, stated(1)), build)))
    assert filaments(scene, 0) == [1] * 12
    assert filaments(scene, 1) == [2] * 12
    scene, notes = load(package(model(thing(1, stated(0)) + thing(2, stated("²")), build)))
    assert scene.materials == () and notes == {}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_project_with_the_first_filament_alone_keeps_its_color(dialect: str) -> None:
    scene, notes = load(project(dialect, {"a": mesh_xml()}, object_filament=1, files=palette(dialect)))
    assert filaments(scene) == [1] * 12 and notes == {}
    assert [material.base_color for material in scene.materials] == [(1, 0, 0, 1)]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_project_with_the_first_filament_alone_has_no_material_without_a_color(dialect: str) -> None:
    scene, notes = load(project(dialect, {"a": mesh_xml()}, object_filament=1))
    assert scene.materials == () and notes == {}


@pytest.mark.parametrize("profile", ["standard", "prusa"])
def test_merged_copies_of_a_mesh_have_their_own_filaments(profile: str) -> None:
    """BambuStudio writes copies that share a mesh as parts with one id."""
    place = '<component p:path="/3D/Objects/a.model" objectid="1" transform="1 0 0 0 1 0 0 0 1 {} 0 0"/>'
    part = '<part id="1" subtype="normal_part"><metadata key="extruder" value="{}"/></part>'
    root = thing(2, f"<components>{place.format(0)}{place.format(100)}{place.format(200)}</components>")
    parts = part.format(3) + part.format(1) + part.format(2)
    source = package(
        model(root, '<item objectid="2"/>', 'requiredextensions="p"'),
        {
            "3D/Objects/a.model": model(thing(1), ""),
            "Metadata/model_settings.config": f'<config><object id="2">{parts}</object></config>',
            **palette("bambu"),
        },
    )
    scene, notes = load(source)
    assert notes == {}
    assert [filaments(scene, part) for part in range(3)] == [[3] * 12, [1] * 12, [2] * 12]
    data, _ = write_project(scene, profile)
    reader = lib3mf.get_wrapper().CreateModel().QueryReader("3mf")
    reader.SetStrictModeActive(True)
    reader.ReadFromBuffer(data)
    assert reader.GetWarningCount() == 0
    again, _ = load(Source.from_bytes(data, "a.3mf"))
    assert [filaments(again, part) for part in range(3)] == [[3] * 12, [1] * 12, [2] * 12]


@pytest.mark.parametrize(
    ("records", "expected", "count"),
    [([3, 2], [3, 2, 3], "1 copy"), ([3], [3, 3, 3], "2 copies"), ([], [4, 4, 4], ""), ([3, 2, 1], [3, 2, 1], "")],
)
def test_copies_without_settings_of_their_own_are_like_the_first_and_noted(
    records: list[int], expected: list[int], count: str
) -> None:
    place = '<component objectid="1" transform="1 0 0 0 1 0 0 0 1 {} 0 0"/>'
    root = thing(1) + thing(2, f"<components>{''.join(map(place.format, (0, 100, 200)))}</components>")
    parts = "".join(f'<part id="1"><metadata key="extruder" value="{number}"/></part>' for number in records)
    config = f'<config><object id="2"><metadata key="extruder" value="4"/>{parts}</object></config>'
    files = {"Metadata/model_settings.config": config, **palette("bambu")}
    scene, notes = load(package(model(root, '<item objectid="2"/>'), files))
    assert [filaments(scene, part)[0] for part in range(3)] == expected
    assert count in notes.get("volume_settings_copied", "")
    assert bool(count) is ("volume_settings_copied" in notes)


KINDS = ("normal_part", "modifier_part", "negative_part", "support_blocker")


@st.composite
def assemblies(draw: st.DrawFn) -> tuple[Source, list[int | None], int]:
    """Return a project of BambuStudio, the filament of each component, None for an unprinted one, and the instances.

    Ids repeat in several model parts and within the object. The list of volumes mirrors that of the components, is in
    another order if the ids differ, or lacks its end.
    """
    keys = draw(st.lists(st.tuples(st.sampled_from(["root", "a", "b"]), st.integers(1, 3)), min_size=1, max_size=7))
    owner = draw(st.none() | st.integers(1, 3))
    volumes = [
        (number, draw(st.none() | st.integers(1, 5)), draw(st.sampled_from(KINDS[:1] * 3 + KINDS)))
        for _, number in keys
    ]
    stated = volumes[: draw(st.integers(0, len(keys)))]
    if len({number for number, *_ in volumes}) == len(volumes) and draw(st.booleans()):
        stated = draw(st.permutations(volumes))

    expected: list[int | None] = []
    for place, (_, number) in enumerate(keys):
        same_id = [volume for volume in stated if volume[0] == number]
        own = stated[place] if place < len(stated) and stated[place] in same_id else next(iter(same_id), None)
        is_printed = own is None or own[2] == "normal_part"
        expected.append(((own and own[1]) or owner or 1) if is_printed else None)

    documents = {
        name: "".join(thing(number) for number in sorted({number for file, number in keys if file == name}))
        for name in ("root", "a", "b")
    }
    paths = {"root": "", "a": ' p:path="/3D/Objects/a.model"', "b": ' p:path="/3D/Objects/b.model"'}
    components = "".join(
        f'<component objectid="{number}" transform="1 0 0 0 1 0 0 0 1 {100 * place} 0 0"{paths[file]}/>'
        for place, (file, number) in enumerate(keys)
    )
    extruder = '<metadata key="extruder" value="{}"/>'
    parts = "".join(
        f'<part id="{number}" subtype="{kind}">{extruder.format(filament) if filament else ""}</part>'
        for number, filament, kind in stated
    )
    settings_text = (
        f'<config><object id="9">{extruder.format(owner) if owner else ""}{parts}</object>'
        # the filaments of other objects are not those of parts with their ids
        f'<object id="1">{extruder.format(5)}</object></config>'
    )
    root = documents["root"] + thing(9, f"<components>{components}</components>")
    count = draw(st.integers(1, 2))
    source = package(
        model(root, '<item objectid="9"/>' * count, 'requiredextensions="p"'),
        {f"3D/Objects/{name}.model": model(documents[name], "") for name in ("a", "b") if documents[name]}
        | {"Metadata/model_settings.config": settings_text}
        | palette("bambu"),
    )
    return source, expected, count


@settings(max_examples=60)
@given(assemblies())
def test_components_have_the_filaments_of_the_volumes_at_their_position(
    assembly: tuple[Source, list[int | None], int],
) -> None:
    source, expected, count = assembly
    printed = {place: number for place, number in enumerate(expected) if number is not None}
    if not printed:
        with pytest.raises(EmptyModel, match="modifiers"):
            load(source)
        return
    scene, _ = load(source)
    assert [filaments(scene, part) for part in range(len(scene.parts))] == [[n] * 12 for n in printed.values()] * count
    assert [part.transform[0, 3] / 100 for part in scene.parts] == [*printed] * count


def test_a_mixed_triangle_takes_the_filament_with_the_largest_area() -> None:
    # half of the triangle is 3, a quarter each 1 and 2
    scene, notes = load(project("orca", {"a": paint_triangles(BRICK, {4: attribute("orca", "480C2")})}))
    assert filaments(scene) == [1] * 4 + [3] + [1] * 7
    assert "(1)" in notes["paint_simplified"]
    assert "threemf_paint=split" in notes["paint_simplified"]


@pytest.mark.parametrize("code", ["3", "zz", "", "4843", "1" * 40 + "3"])
def test_malformed_paint_is_noted_and_the_triangle_keeps_the_filament_of_its_part(code: str) -> None:
    for paint in ("dominant", "split"):
        source = project("orca", {"a": paint_triangles(BRICK, {4: attribute("orca", code)})}, object_filament=2)
        scene, notes = load(source, paint)
        assert filaments(scene) == [2] * 12
        assert ("bad_paint" in notes) == bool(code)


@pytest.mark.parametrize(
    ("content", "is_damaged"),
    [
        ("", False),
        ("{", True),
        ("[]", True),
        ('{"filament_colour": 3}', True),
        ('{"filament_colour": ["red", 1]}', True),
        ("[" * 100_000, True),
        ('{"filament_colour": ["red"]}', False),
    ],
)
def test_unusable_settings_leave_distinct_colors(content: str, is_damaged: bool) -> None:
    source = project(
        "bambu",
        {"a": mesh_xml(), "b": mesh_xml()},
        filaments={"b": 2},
        files={"Metadata/project_settings.config": content},
    )
    scene, notes = load(source)
    assert scene.materials[0].base_color != scene.materials[1].base_color
    assert set(notes) - {"project_settings_damaged"} == {"filament_colors_unknown"}
    assert ("project_settings_damaged" in notes) == is_damaged


def random_code(depth: int, rng: random.Random) -> str:
    """Return a code with all kinds of splits."""
    sides = rng.choice([0, 0, 1, 2, 3]) if depth else 0
    if sides == 0:
        return rng.choice(["0", "4", "8", "0C", "EC", "2FC"])
    return "".join(random_code(depth - 1, rng) for _ in range(sides + 1)) + format(
        sides | rng.choice([0, 1, 2]) << 2, "X"
    )


def filament_areas(code: str, corners: np.ndarray) -> dict[int, float]:
    """Return the area of each filament in a painted triangle, by recursion."""
    areas: dict[int, float] = {}
    digits = iter(reversed(code))

    def visit(corners: np.ndarray) -> None:
        digit = int(next(digits), 16)
        sides, upper = digit & 3, digit >> 2
        if sides == 0:
            if upper == 3 and (upper := int(next(digits), 16) + 3) == 18:
                upper = int(next(digits), 16) + 18
            areas[upper] = (
                areas.get(upper, 0) + np.linalg.norm(np.cross(corners[1] - corners[0], corners[2] - corners[0])) / 2
            )
            return
        a, b, c = np.roll(corners, -upper, axis=0)
        ab, bc, ca = (a + b) / 2, (b + c) / 2, (c + a) / 2
        children = {
            1: [(a, b, bc), (bc, c, a)],
            2: [(a, ab, ca), (ab, b, ca), (b, c, ca)],
            3: [(a, ab, ca), (ab, b, bc), (bc, c, ca), (ab, bc, ca)],
        }[sides]
        for child in reversed(children):
            visit(np.array(child))

    visit(corners)
    return areas


def split_areas(codes: Mapping[int, str], mesh: Mesh) -> dict[int, float]:
    """Return the area of each filament of a painted mesh; unpainted triangles have filament 1."""
    areas: dict[int, float] = {}
    for face, corners in enumerate(mesh.vertices[mesh.faces]):
        for number, area in filament_areas(codes.get(face, "0"), corners).items():
            areas[number or 1] = areas.get(number or 1, 0) + area
    return areas


@pytest.mark.parametrize("dialect", DIALECTS)
@settings(max_examples=20)
@given(seed=st.integers(0, 2**32))
def test_split_triangles_have_exactly_the_painted_areas_and_stay_closed(dialect: str, seed: int) -> None:
    rng, mesh = random.Random(seed), BRICK
    codes = {face: random_code(4, rng) for face in range(len(mesh.faces)) if rng.random() < 0.7}
    paint = {face: attribute(dialect, code) for face, code in codes.items()}
    scene, notes = load(project(dialect, {"a": paint_triangles(mesh, paint)}), "split")
    assert "paint_simplified" not in notes and "bad_paint" not in notes
    (split,) = scene.meshes
    assert is_closed(split.vertices, split.faces)
    areas = face_areas(split)
    assert np.isclose(areas.sum(), face_areas(mesh).sum())
    expected = split_areas(codes, mesh)
    if set(expected) == {1}:
        assert scene.materials == ()
        return
    numbers = np.array(filaments(scene))
    assert set(numbers.tolist()) == set(expected)
    for number, area in expected.items():
        assert np.isclose(areas[numbers == number].sum(), area)


def test_colors_of_the_materials_extension_remain_on_unpainted_triangles() -> None:
    group = '<m:colorgroup id="7"><m:color color="#123456"/></m:colorgroup>'
    mesh = paint_triangles(BRICK, {0: ' paint_color="8"'})
    resources = group + f'<object id="1" type="model" pid="7" pindex="0">{mesh}</object>'
    for paint in ("dominant", "split"):
        scene, _ = load(package(model(resources, '<item objectid="1"/>')), paint)
        (split,) = scene.meshes
        assert split.colors is not None and split.face_material is not None
        painted = split.faces[split.face_material >= 0]
        plain = split.faces[split.face_material < 0]
        assert (split.colors[painted] == 255).all()
        assert (split.colors[plain][..., :3] == [0x12, 0x34, 0x56]).all()


def write_project(scene: Scene, profile: Any = "prusa") -> tuple[bytes, dict[str, str]]:
    """Write a project of a slicer; the note on the place on the plate is left out."""
    target = Target("model.3mf")
    with collecting("3mf") as remarks:
        write(scene, target, ThreeMFWriteOptions(threemf_profile=profile))
    assert all(len(note.message) < 160 for note in remarks.notes)
    return target.read(), {note.code: note.message for note in remarks.notes if note.code != "moved_to_plate"}


def colored_boxes() -> Scene:
    """Return a box of three colors and a blue one."""
    colors = [(1.0, 0.0, 0.0, 1.0), (0.0, 1.0, 0.0, 1.0), (0.0, 0.0, 1.0, 1.0)]
    materials = tuple(Material(name, color) for name, color in zip(("a", "b", "c"), colors, strict=True))
    numbers = np.repeat([0, 1, 2], [8, 2, 2])
    beside = replace(BRICK, vertices=BRICK.vertices + [40, 0, 0])
    return Scene((replace(BRICK, face_material=numbers), beside), (Part(0), Part(1, material=2)), materials)


@pytest.mark.parametrize("profile", DIALECTS)
def test_each_color_becomes_a_filament(profile: str) -> None:
    data, notes = write_project(colored_boxes(), profile)
    scene, _ = load(Source.from_bytes(data, "a.3mf"))
    assert notes == {}
    assert filaments(scene, 0) == [1] * 8 + [2] * 2 + [3] * 2
    assert filaments(scene, 1) == [3] * 12
    assert [material.base_color[:3] for material in scene.materials[-3:]] == [(1, 0, 0), (0, 1, 0), (0, 0, 1)]


@pytest.mark.parametrize("profile", DIALECTS)
def test_colors_with_the_name_of_one_filament_stay_apart(profile: str) -> None:
    scene = colored_boxes()
    materials = tuple(replace(material, name="Filament 1") for material in scene.materials)
    data, _ = write_project(replace(scene, materials=materials), profile)
    scene, _ = load(Source.from_bytes(data, "a.3mf"))
    assert filaments(scene, 0) == [1] * 8 + [2] * 2 + [3] * 2
    assert filaments(scene, 1) == [3] * 12


@pytest.mark.parametrize("profile", DIALECTS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_filaments_keep_their_numbers_and_colors(dialect: str, profile: str) -> None:
    volumes = {"a": paint_triangles(BRICK, {0: attribute(dialect, "0C")}), "b": mesh_xml(scale=2)}
    before, _ = load(project(dialect, volumes, object_filament=2, files=palette(dialect)))
    # a copy is written anew, the scene of a project unchanged
    data, notes = write_project(replace(before), profile)
    after, _ = load(Source.from_bytes(data, "a.3mf"))
    assert notes == {}
    numbers = [
        sorted(n for part in range(len(scene.parts)) for n in filaments(scene, part)) for scene in (before, after)
    ]
    assert numbers[0] == numbers[1] == [2] * 23 + [3]
    assert [material.base_color[:3] for material in after.materials[-2:]] == [(0, 1, 0), (0, 0, 1)]


@pytest.mark.parametrize(("profile", "limit"), [("prusa", 15), ("bambu", 32), ("orca", 32)])
def test_more_colors_than_filaments_become_the_nearest_one(profile: str, limit: int) -> None:
    count = limit + 3
    grays = tuple(Material(f"{k}", (k / 40, k / 40, k / 40, 1.0)) for k in range(count))
    mesh = replace(BALL, face_material=np.arange(len(BALL.faces)) % count)
    data, notes = write_project(Scene((mesh,), (Part(0),), grays), profile)
    assert f"{count} colors" in notes["too_many_filaments"]
    scene, _ = load(Source.from_bytes(data, "a.3mf"))
    assert set(filaments(scene)) == set(range(1, limit + 1))
    # the four lightest colors became the lightest filament
    assert filaments(scene).count(limit) == sum(k % count >= limit - 1 for k in range(len(BALL.faces)))


def metadata(element: ElementTree.Element) -> dict[str | None, str | None]:
    """Return the values of the settings of an element of a project, by key."""
    return {entry.get("key"): entry.get("value") for entry in element.findall("metadata")}


@pytest.mark.parametrize("profile", ["bambu", "orca"])
def test_a_project_lists_objects_parts_and_instances_like_bambustudio(profile: str) -> None:
    """The ids of the objects, of their parts and of the instances on the plate are those of the model."""
    materials = (Material("a", (1.0, 0.0, 0.0, 1.0)), Material("b", (0.0, 1.0, 0.0, 1.0)))
    placed = np.eye(4)
    placed[0, 3] = 30
    parts = (
        Part(0, material=1, name="left"),
        Part(0, placed, material=1, name="right"),
        Part(0, material=0, path=("assembly",), name="small"),
        Part(1, material=1, path=("assembly", "inner"), name="large"),
    )
    scene = Scene((BRICK, replace(BRICK, vertices=2 * BRICK.vertices)), parts, materials)
    data, _ = write_project(scene, profile)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        model = ElementTree.fromstring(archive.read("3D/3dmodel.model"))
        config = ElementTree.fromstring(archive.read("Metadata/model_settings.config"))
        settings = json.loads(archive.read("Metadata/project_settings.config"))
    application = {"bambu": "BambuStudio-02.", "orca": "OrcaSlicer-2."}[profile]
    (stated,) = (entry.text for entry in model.iter(f"{{{CORE}}}metadata") if entry.get("name") == "Application")
    assert stated and stated.startswith(application)
    assert settings["filament_colour"] == ["#FF0000", "#00FF00"]
    items = [item.get("objectid") for item in model.iter(f"{{{CORE}}}item")]
    instances = [metadata(instance) for instance in config.iter("model_instance")]
    assert [instance["object_id"] for instance in instances] == items
    assert len({(instance["object_id"], instance["instance_id"]) for instance in instances}) == len(items)
    things = config.findall("object")
    assert {thing.get("id") for thing in things} == set(items)
    meshes = {thing.get("id") for thing in model.iter(f"{{{CORE}}}object") if thing.find(f"{{{CORE}}}mesh") is not None}
    assert {part.get("id") for part in config.iter("part")} == meshes
    (assembly,) = (thing for thing in things if metadata(thing)["name"] == "assembly")
    assert metadata(assembly)["extruder"] == "2"
    rows = [metadata(part) for part in assembly.findall("part")]
    assert [(row["name"], row["extruder"]) for row in rows] == [("small", "1"), ("large", "2")]


@pytest.mark.parametrize("profile", DIALECTS)
def test_a_project_has_a_thumbnail(profile: str) -> None:
    with zipfile.ZipFile(io.BytesIO(write_project(colored_boxes(), profile)[0])) as archive:
        links = ElementTree.fromstring(archive.read("_rels/.rels"))
        (target,) = (link.get("Target") for link in links if link.get("Type", "").endswith("/metadata/thumbnail"))
        picture = Image.open(io.BytesIO(archive.read(str(target)[1:])))
    pixels = np.asarray(picture.convert("RGBA"))
    assert picture.format == "PNG" and picture.size == (256, 256)
    hues = {int(pixel[:3].argmax()) for pixel in pixels.reshape(-1, 4) if pixel[3] == 255 and np.ptp(pixel[:3]) > 100}
    # the green side faces away
    assert hues == {0, 2}


def test_prusaslicer_gets_the_names_of_the_filaments() -> None:
    names = ('Fire "red"', "a\nb", "Filament 3")
    materials = tuple(Material(name, (0.5 * number, 0.0, 0.0, 1.0)) for number, name in enumerate(names))
    scene = Scene((replace(BRICK, face_material=np.repeat([0, 1, 2], 4)),), (Part(0),), materials)
    with zipfile.ZipFile(io.BytesIO(write_project(scene)[0])) as archive:
        settings = archive.read("Metadata/Slic3r_PE.config").decode().splitlines()
    assert '; filament_settings_id = "Fire \\"red\\"";"a b";""' in settings


@pytest.mark.parametrize("profile", ["bambu", "orca"])
@pytest.mark.parametrize("shift", [0.0, 100.0, 1000.0])
def test_a_model_off_the_plate_moves_to_its_middle(profile: str, shift: float) -> None:
    mesh = replace(BRICK, vertices=BRICK.vertices - BRICK.vertices.mean(axis=0) + [shift, shift, 0])
    target = Target("model.3mf")
    with collecting("3mf") as remarks:
        write(Scene((mesh,), (Part(0),)), target, ThreeMFWriteOptions(threemf_profile=profile))
    box = bounds(load(Source.from_bytes(target.read(), "a.3mf"))[0])
    moved = shift != 100.0
    assert [note.code for note in remarks.notes] == ["moved_to_plate"] * moved
    assert np.allclose(box.mean(axis=0), [128, 128, 0] if moved else [shift, shift, 0])


def test_vertex_colors_are_not_printed_and_noted() -> None:
    mesh = replace(BRICK, colors=np.full((len(BRICK.vertices), 4), 200, np.uint8))
    _, notes = write_project(Scene((mesh,), (Part(0),)))
    assert set(notes) == {"colors_not_printed"}


@pytest.mark.parametrize("profile", DIALECTS)
def test_lib3mf_reads_the_file(profile: str, tmp_path: Path) -> None:
    """Only the paint of PrusaSlicer is valid in strict mode."""
    path = tmp_path / "a.3mf"
    path.write_bytes(write_project(colored_boxes(), profile)[0])
    model = lib3mf.get_wrapper().CreateModel()
    reader = model.QueryReader("3mf")
    reader.SetStrictModeActive(profile == "prusa")
    reader.ReadFromFile(str(path))
    assert profile != "prusa" or reader.GetWarningCount() == 0
    meshes = model.GetMeshObjects()
    counts = []
    while meshes.MoveNext():
        counts.append(meshes.GetCurrentMeshObject().GetTriangleCount())
    assert counts == [12, 12]


@pytest.mark.skipif(shutil.which("prusa-slicer") is None, reason="Debian's prusa-slicer is not installed")
def test_prusaslicer_prints_with_the_expected_tools(tmp_path: Path) -> None:
    path, code = tmp_path / "a.3mf", tmp_path / "a.gcode"
    path.write_bytes(write_project(colored_boxes())[0])
    subprocess.run(["prusa-slicer", "--export-gcode", path, "-o", code], check=True, capture_output=True)
    assert set(re.findall(r"^T\d+", code.read_text(), re.MULTILINE)) == {"T0", "T1", "T2"}


@pytest.mark.skipif(shutil.which("prusa-slicer") is None, reason="Debian's prusa-slicer is not installed")
@pytest.mark.parametrize("profile", ["bambu", "orca"])
def test_prusaslicer_opens_projects_of_other_slicers(profile: str, tmp_path: Path) -> None:
    path, code = tmp_path / "a.3mf", tmp_path / "a.gcode"
    path.write_bytes(write_project(colored_boxes(), profile)[0])
    subprocess.run(["prusa-slicer", "--export-gcode", path, "-o", code], check=True, capture_output=True)
    assert "G1 X" in code.read_text()
