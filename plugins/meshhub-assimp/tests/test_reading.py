"""FBX files in the layouts of other programs, and damaged files."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from fbx_files import (
    AXES_Y,
    AXES_Z,
    LINKED,
    PAINTED,
    PLACE,
    RED,
    TWICE,
    array,
    binary_fbx,
    fbx,
    layer,
    material,
    model,
    normals,
    slots,
    texture,
    uv,
)

from meshhub import MeshhubError, Registry, Scene, Source, Target
from meshhub.testing import sample_scenes
from meshhub.toolkit.geometry import bounds, signed_volume, soup

REGISTRY = Registry()


def read(data: bytes, **companions: bytes) -> Scene:
    files = {f"{name}.png": content for name, content in companions.items()}
    return REGISTRY.read(Source.from_bytes(data, "a.fbx", files), input_format="fbx")


def codes(data: bytes) -> list[str]:
    return [note.code for note in REGISTRY.inspect(Source.from_bytes(data, "a.fbx")).notes]


def volume(scene: Scene) -> float:
    return signed_volume(*soup(scene))


def test_the_registry_loads_the_plugin_by_entry_point() -> None:
    registry = REGISTRY
    assert not [fault for fault in registry.faults if fault.plugin == "assimp"]
    assert next(plugin for plugin in registry.plugins if plugin.name == "assimp").origin.startswith("meshhub-assimp ")


def test_the_command_line_converts_fbx_in_a_worker(tmp_path: Path) -> None:
    (tmp_path / "a.fbx").write_bytes(PAINTED)
    command = [sys.executable, "-m", "meshhub", "convert", str(tmp_path / "a.fbx"), str(tmp_path / "a.3mf")]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    assert [image.data for image in REGISTRY.read(tmp_path / "a.3mf").images] == [sample_scenes.png()]


@pytest.mark.parametrize("target", ["stl", "obj", "ply", "glb", "3mf"])
def test_fbx_converts_to_every_other_format(target: str) -> None:
    report = REGISTRY.convert(Source.from_bytes(fbx(), "a.fbx"), Target(), target=target)
    assert report.target.size_mm == pytest.approx((10, 20, 30))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (fbx(unit_cm=2.54), [[0, 0, 0], [254, 508, 762]]),
        (fbx(unit_cm=0.2), [[0, 0, 0], [20, 40, 60]]),
        (fbx(unit_cm=1, axes=AXES_Y), [[0, -300, 0], [100, 0, 200]]),
    ],
)
def test_units_and_axes(data: bytes, expected: list[list[float]]) -> None:
    scene = read(data)
    assert bounds(scene) == pytest.approx(np.array(expected), abs=1e-6)
    assert volume(scene) > 0


@pytest.mark.parametrize(("axes", "up"), [(AXES_Y, "Y"), (AXES_Z, "Z")])
def test_the_note_names_the_axis_of_the_file(axes: dict[str, int], up: str) -> None:
    report = REGISTRY.convert(Source.from_bytes(fbx(axes=axes, unit_cm=1), "a.fbx"), Target(), target="stl")
    assert [note.values["up"] for note in report.notes if note.code == "frame_converted"] == [up]


def test_instances_colors_and_names() -> None:
    scene = read(TWICE)
    assert [(part.mesh, part.name) for part in scene.parts] == [(0, "one"), (0, "two")]
    assert bounds(scene)[1] == pytest.approx([110, 20, 30])
    colors = scene.meshes[0].colors
    assert colors is not None
    seen = colors[scene.meshes[0].faces].reshape(-1, 12)
    assert [tuple(row[:4]) for row in seen.tolist()] == [(255, 0, 0, 255)] * 10 + [(0, 0, 255, 128)] * 2


def test_groups_and_pivots_place_parts() -> None:
    turned = 'P: "Lcl Rotation", "Lcl Rotation", "", "A",0,0,90\nP: "RotationPivot", "Vector3D", "Vector", "",10,0,0'
    geometric = 'P: "GeometricScaling", "Vector3D", "Vector", "",1,1,-2'
    models = model(20, "brick", turned + "\n" + geometric) + model(21, "group", PLACE.format(5, 0, 0), "Null")
    scene = read(fbx(models=models, links=('"OO",21,0', '"OO",20,21', '"OO",10,20')))
    assert scene.parts[0].path == ("group",)
    assert bounds(scene) == pytest.approx(np.array([[-5, -10, -60], [15, 0, 0]]), abs=1e-6)
    assert volume(scene) == pytest.approx(12000)


def test_materials_of_faces() -> None:
    objects = material(30, "red") + material(31, "half", RED.replace("1,0,0", "0,1,0") + "\n" + OPACITY)
    data = fbx(layers=slots([0, 0, 0, 0, 0, 1]), objects=objects, links=(*LINKED, '"OO",31,20'))
    scene = read(data)
    assert [each.base_color for each in scene.materials] == [(1, 0, 0, 1), pytest.approx((0, 1, 0, 0.5))]
    material_of_face = scene.meshes[0].face_material
    assert material_of_face is not None and material_of_face.tolist() == [0] * 10 + [1] * 2
    assert read(fbx(layers=slots([0] * 6), objects=material(30, "red"), links=LINKED)).parts[0].material == 0


OPACITY = 'P: "TransparentColor", "Color", "", "A",1,1,1\nP: "TransparencyFactor", "Number", "", "A",0.5'


def test_textures_are_embedded_or_companions() -> None:
    assert [image.data for image in read(PAINTED).images] == [sample_scenes.png()]
    data = fbx(
        layers=uv() + slots([0] * 6),
        objects=material(30, "painted") + texture(40, None),
        links=(*LINKED, '"OP",40,30,"DiffuseColor"', '"OO",41,40'),
    )
    assert [image.data for image in read(data, paint=sample_scenes.png()).images] == [sample_scenes.png()]
    assert "texture_missing" in codes(data)


def test_invisible_objects_are_skipped() -> None:
    hidden = 'P: "Show", "bool", "", "",0'
    models = model(20, "brick") + model(21, "hidden", hidden)
    data = fbx(models=models, links=('"OO",20,0', '"OO",21,0', '"OO",10,20', '"OO",10,21'))
    assert len(read(data).parts) == 1
    assert "hidden_ignored" in codes(data)


CHAIN = "".join(model(100 + level, "n", kind="Null") for level in range(1100))
LINKS = [f'"OO",{100 + level},{101 + level}' for level in range(1099)]


@pytest.mark.parametrize(
    ("data", "code", "message"),
    [
        (b"; FBX 7.4.0 project file\n", "unreadable_file", "end of file"),
        (fbx()[:700], "unreadable_file", "not a readable FBX"),
        (b"Kaydara FBX Binary  \0\x1a\0" + b"\xff" * 100, "unreadable_file", "not a readable FBX"),
        (fbx().replace(b"a: 3,2,1", b"a: 99,2,1"), "unreadable_file", "index out of range"),
        (fbx(unit_cm=-1), "unreadable_file", "positive"),
        (
            fbx(models=model(20, "brick") + CHAIN, links=('"OO",10,20', '"OO",20,100', *LINKS, '"OO",1199,0')),
            "model_too_complex",
            "1024 deep",
        ),
        (fbx(links=('"OO",20,0',)), "empty_model", "no triangles"),
    ],
)
def test_the_error_of_a_bad_file_says_why(data: bytes, code: str, message: str) -> None:
    with pytest.raises(MeshhubError, match=message) as caught:
        read(data)
    assert caught.value.error_code == code


def test_numbers_that_are_not_finite_are_rejected() -> None:
    with pytest.raises(MeshhubError):
        REGISTRY.inspect(Source.from_bytes(fbx().replace(b"a: 0,0,0,10", b"a: nan,0,0,10"), "a.fbx"))


def test_scenes_outlive_the_library() -> None:
    """Test that arrays are copies, and that none refers to the freed import."""
    for data in (PAINTED, TWICE) * 5:
        scene = read(data)
        gc.collect()
        assert volume(scene) == pytest.approx(6000 * len(scene.parts))


def test_a_damaged_mesh_is_dropped_with_a_note() -> None:
    damaged = fbx().split(b"Geometry: 10")[1].split(b"Model: 20")[0].replace(b"a: 3,2,1", b"a: 99,2,1").decode()
    data = fbx(
        models=model(20, "brick") + model(21, "damaged"),
        objects="Geometry: 11" + damaged,
        links=('"OO",20,0', '"OO",21,0', '"OO",10,20', '"OO",11,21'),
    )
    assert [part.name for part in read(data).parts] == ["brick"]
    assert "damaged_element" in codes(data)


SIX = [value for row in np.eye(3).tolist() * 2 for value in (*row, 1)]
"""Red, green and blue, twice."""


def colors_by_face(scene: Scene) -> list[tuple[int, ...]]:
    """Return the color of each triangle, whose corners have the same one."""
    mesh = scene.meshes[0]
    assert mesh.colors is not None
    corners = mesh.colors[mesh.faces]
    assert (corners == corners[:, :1]).all()
    return [tuple(row) for row in corners[:, 0, :3].tolist()]


@pytest.mark.parametrize(
    ("mapping", "reference", "colors", "index"),
    [
        ("ByPolygon", "Direct", SIX, None),
        ("ByPolygon", "IndexToDirect", SIX[:12], [0, 1, 2, 0, 1, 2]),
        ("ByPolygon", "Index", SIX[:12], [0, 1, 2, 0, 1, 2]),
        ("ByPolygonVertex", "Index", SIX[:12], [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2] * 2),
        ("AllSame", "Direct", SIX[:4], None),
        ("AllSame", "IndexToDirect", SIX[:8], [0]),
    ],
)
def test_colors_of_polygons(mapping: str, reference: str, colors: list[float], index: list[int] | None) -> None:
    arrays = array("Colors", colors) + ("" if index is None else array("ColorIndex", index))
    scene = read(fbx(layers=normals() + layer("LayerElementColor", mapping, reference, arrays)))
    sides = [(255, 0, 0)] * 6 if mapping == "AllSame" else [(255, 0, 0), (0, 255, 0), (0, 0, 255)] * 2
    assert colors_by_face(scene) == [color for color in sides for _ in range(2)]
    assert scene.meshes[0].normals is not None


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("ended", [False, True])
def test_binary_files_are_written_anew_for_their_colors(wide: bool, ended: bool) -> None:
    scene = read(binary_fbx("ByPolygon", "Direct", SIX, wide=wide, ended=ended))
    assert colors_by_face(scene) == [color for color in [(255, 0, 0), (0, 255, 0), (0, 0, 255)] * 2 for _ in range(2)]
    assert volume(scene) == pytest.approx(6_000_000)
    assert [part.name for part in scene.parts] == ["brick"]


@pytest.mark.parametrize(("mapping", "index"), [("ByEdge", "0,1"), ("ByPolygon", "0,1"), ("ByPolygon", "x")])
def test_colors_that_are_not_read_have_a_note(mapping: str, index: str) -> None:
    arrays = array("Colors", SIX) + f"ColorIndex: *2 {{ a: {index} }}\n"
    data = fbx(layers=layer("LayerElementColor", mapping, "IndexToDirect", arrays))
    assert read(data).meshes[0].colors is None
    assert "colors_not_read" in codes(data)
