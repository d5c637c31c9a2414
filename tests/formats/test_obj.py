"""OBJ reader and writer: layouts, materials, damaged files, and programs that read our files."""

from __future__ import annotations

import hashlib
import io
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from meshhub import Frame, Registry
from meshhub.builtin_plugins.obj import ObjReaderOptions, ObjWriterOptions
from meshhub.builtin_plugins.obj.reader import read
from meshhub.builtin_plugins.obj.sniff import sniff
from meshhub.builtin_plugins.obj.writer import write
from meshhub.errors import EmptyModel, ModelTooComplex, SourceError, UnreadableFile
from meshhub.model.notes import collecting
from meshhub.model.scene import Image, Material, Mesh, Part, Scene
from meshhub.model.source import Source, Target
from meshhub.toolkit.geometry import bounds, soup, welded
from models import brick, edge_counts, move_mesh, scene_of, sphere, volume

pytestmark = pytest.mark.once

PNG = b"\x89PNG\r\n\x1a\n" + b"a picture"
JPEG = b"\xff\xd8\xff\xe0" + b"another"

TETRA = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\n"
FACES = "f 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
TABLES = "vt 0 0\nvt 1 0\nvt 0 1\nvn 0 0 1\nvn 0 1 0\nvn 1 0 0\nvn 0 0 -1\n"


def parse_obj(text: str | bytes, **companions: bytes) -> Scene:
    data = text.encode() if isinstance(text, str) else text
    named = {name.replace("__", "."): content for name, content in companions.items()}
    return read(Source.from_bytes(data, "upload.obj", named), ObjReaderOptions())


def parse_with_notes(text: str | bytes, companions: dict[str, bytes] | None = None) -> tuple[Scene, dict[str, str]]:
    data = text.encode() if isinstance(text, str) else text
    with collecting("read") as remarks:
        scene = read(Source.from_bytes(data, "upload.obj", companions), ObjReaderOptions())
    return scene, {entry.code: entry.message for entry in remarks.notes}


def write_obj(scene: Scene) -> tuple[bytes, dict[str, bytes]]:
    target = Target()
    write(scene, target, ObjWriterOptions())
    return target.read(), {name: target.read(name) for name in target.names[1:]}


def round_trip(scene: Scene) -> Scene:
    data, companions = write_obj(scene)
    return read(Source.from_bytes(data, "other.obj", companions), ObjReaderOptions())


def assert_tetra(scene: Scene) -> None:
    vertices, faces = soup(scene)
    points, index = np.unique(vertices, axis=0, return_inverse=True)
    assert len(faces) == 4
    assert len(points[np.unique(index[faces])]) == 4
    assert edge_counts(index.ravel()[faces].astype(np.int32)) == (0, 0)
    assert volume(vertices, faces) == pytest.approx(1 / 6)


@pytest.mark.parametrize(
    "faces",
    [
        FACES,
        "f 1/1 3/2 2/3\nf 1/1 2/2 4/3\nf 1/1 4/2 3/3\nf 2/1 3/2 4/3\n",
        "f 1//1 3//1 2//1\nf 1//2 2//2 4//2\nf 1//3 4//3 3//3\nf 2//4 3//4 4//4\n",
        "f 1/1/1 3/2/1 2/3/1\nf 1/1/2 2/2/2 4/3/2\nf 1/1/3 4/2/3 3/3/3\nf 2/1/4 3/2/4 4/3/4\n",
        "f 1/1/1 3/2/1 2/3/1\nf 1//2 2//2 4//2\nf 1/1 4/2 3/3\nf 2 3 4\n",
        "f 1/1 3 2//3\nf 1 2/1/1 4\nf 1 4 3\nf 2 3 4\n",
        "f 1// 3// 2//\nf 1/ 2/ 4/\nf 1/1/ 4/2/ 3/3/\nf 2 3 4\n",
        "f -4 -2 -3\nf -4 -3 -1\nf 1 -1 -2\nf -3 -2 4\n",
        "f -4/-3/-4 -2/-2/-4 -3/-1/-4\nf 1/1/2 2/2/2 4/3/2\nf 1/1/3 4/2/3 3/3/3\nf 2/1/4 3/2/4 4/3/4\n",
        "f 1 3 \\\n2\nf 1 2 4\nf \\\n 1 4 3\nf 2 3 4",
        "f  1   3 2  \nf\t1\t2\t4\n  f 1 4 3\n\tf 2 3 4 # the last\n",
        "s 1\nf 1 3 2\ns off\nf 1 2 4\nf 1 4 3\nunknown 1 2\nf 2 3 4\n",
    ],
)
def test_every_form_of_a_face_is_read(faces: str) -> None:
    assert_tetra(parse_obj(TETRA + TABLES + faces))


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: text.replace("\n", "\r").encode(),
        lambda text: text.replace(" ", "\t").encode(),
        lambda text: text.replace("v ", "  v   ").encode(),
        lambda text: text.replace("\n", " \n").encode(),
        lambda text: text.replace("\n", "\n\n\n").encode(),
        lambda text: text.replace("\n", " # remark 1 2 3\n").encode(),
        lambda text: text.replace("0 0 1", "+0 -0.0e+5 1E0").encode(),
        lambda text: text.replace("0 0 1", "0 \\\n 0 \\\n 1").encode(),
        lambda text: b"\xef\xbb\xbf" + text.encode(),
        lambda text: text.encode("utf-16"),
        lambda text: b"\xfe\xff" + text.encode("utf-16-be"),
        lambda text: text.rstrip().encode(),
        lambda text: b"# C:\\models\\\n" + text.encode(),
        lambda text: "".join(sorted(text.splitlines(keepends=True))).encode(),  # faces before vertices, sorted
    ],
)
def test_every_text_layout_is_read(change: object) -> None:
    tetra = "v 0 0 0\nv 0 0 1\nv 0 1 0\nv 1 0 0\n"
    faces = "f 1 3 4\nf 1 4 2\nf 1 2 3\nf 4 3 2\n"
    assert_tetra(parse_obj(change(tetra + faces)))  # type: ignore[operator]


def test_tables_between_the_faces_are_read() -> None:
    text = "".join(f"v {k} 0 0\nv {k} 1 0\nvt 0 0\nv {k} 0 1\nf -3/-1 -2/-1 -1/-1\n" for k in range(5000))
    scene = parse_obj(text)
    vertices, faces = soup(scene)
    assert len(faces) == 5000
    assert np.array_equal(np.unique(vertices[faces][:, :, 0]), np.arange(5000))
    assert (np.ptp(vertices[faces][:, :, 0], axis=1) == 0).all()


def test_polygons_keep_their_area_and_winding() -> None:
    outline = [(0, 0), (4, 0), (4, 1), (1, 1), (1, 3), (4, 3), (4, 4), (0, 4)]
    text = "".join(f"v {x} {y} 0\n" for x, y in outline) + "f 1 2 3 4 5 6 7 8\nf 1 2 7 8\n"
    vertices, faces = soup(parse_obj(text))
    a, b, c = (vertices[faces[:, k], :2] for k in range(3))
    areas = ((b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0]) / 2
    assert len(faces) == 6 + 2
    assert areas[:6].sum() == pytest.approx(10)
    assert (areas[:6] > 0).all()
    assert areas[6:].sum() == pytest.approx(16)


def separate_triangle(k: int) -> str:
    return f"v {k} 0 0\nv {k} 1 0\nv {k} 0 1\nf -3 -2 -1\n"


def test_objects_and_groups_become_parts() -> None:
    triangle = separate_triangle
    text = triangle(0) + "o body\n" + triangle(1) + "g lid\n" + triangle(2) + "g base\n" + triangle(3) + triangle(4)
    text += "g lid\nf 7 9 8\no arm # right\n" + triangle(5) + "o body\nf 4 6 5\ng\nf 5 6 4\n"
    scene, notes = parse_with_notes(text)
    rows = [(part.path, part.name, len(scene.meshes[part.mesh].faces)) for part in scene.parts]
    assert rows == [((), "", 1), ((), "body", 3), (("body",), "lid", 2), (("body",), "base", 2), ((), "arm", 1)]
    lid = scene.meshes[scene.parts[2].mesh]
    assert np.array_equal(
        lid.vertices[lid.faces],
        [[[2, 0, 0], [2, 1, 0], [2, 0, 1]], [[2, 0, 0], [2, 0, 1], [2, 1, 0]]],
    )
    assert len(lid.vertices) == 3
    assert "groups_joined" not in notes


SIDES = ("1 2 4 3", "5 7 8 6", "1 5 6 2", "3 4 8 7", "1 3 7 5", "2 6 8 4")
"""The sides of a brick over `corners_of`, seen from outside."""


def corners_of(at: float = 0) -> str:
    return "".join(f"v {at + x} {y} {z}\n" for x in (0, 10) for y in (0, 20) for z in (0, 30))


def sides(keyword: str, after: int = 0) -> str:
    """Return the six sides of a brick, each after its own statement."""
    shifted = [" ".join(str(int(corner) + after) for corner in side.split()) for side in SIDES]
    return "".join(f"{keyword} side {k}\nf {side}\n" for k, side in enumerate(shifted))


def parts_of(scene: Scene) -> list[tuple[tuple[str, ...], str, int, int]]:
    """Return the path, name, face count and open edges of each part."""
    return [
        (part.path, part.name, len(mesh.faces), edge_counts(welded(mesh)[1])[0])
        for part in scene.parts
        for mesh in [scene.meshes[part.mesh]]
    ]


def test_a_brick_in_six_groups_is_one_watertight_part_before_and_after_repair(tmp_path: Path) -> None:
    text = corners_of() + sides("g")
    scene, notes = parse_with_notes(text)
    assert parts_of(scene) == [((), "side 0", 12, 0)]
    assert "6 groups" in notes["groups_joined"] and "1 part" in notes["groups_joined"]
    assert volume(*soup(scene)) == pytest.approx(6000)
    upload = tmp_path / "brick.obj"
    upload.write_text(text)
    registry = Registry(entry_points=False)
    inspection = registry.inspect(upload)
    assert inspection.model is not None
    assert (inspection.model.watertight, inspection.model.parts, inspection.model.holes) == (True, 1, 0)
    registry.convert(upload, tmp_path / "plain.stl")
    report = registry.convert(upload, tmp_path / "repaired.stl", repair=True)
    assert "open_surface" not in {entry.code for entry in report.notes}
    assert (tmp_path / "plain.stl").read_bytes() == (tmp_path / "repaired.stl").read_bytes()


def test_joined_groups_keep_the_materials_and_uv_of_their_faces() -> None:
    text = corners_of() + "vt 0 0\nvt 1 0\nvt 1 1\nvt 0 1\n"
    for k, side in enumerate(SIDES):
        corners = " ".join(f"{corner}/{place}" for place, corner in enumerate(side.split(), 1))
        text += f"g side {k}\nusemtl paint {k % 2}\nf {corners}\n"
    scene = parse_obj(text)
    (mesh,) = scene.meshes
    assert mesh.face_material is not None and mesh.uv is not None
    assert mesh.face_material.tolist() == [0, 0, 1, 1] * 3
    assert [material.name for material in scene.materials] == ["paint 0", "paint 1"]
    for face in range(0, 12, 2):
        quad = np.unique(mesh.uv[mesh.faces[face : face + 2]].reshape(-1, 2), axis=0)
        assert quad.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]


def test_two_bricks_in_two_groups_are_two_named_parts() -> None:
    left, right = (sides("#", after).replace("# side", "# ") for after in (0, 8))
    scene, notes = parse_with_notes(corners_of() + corners_of(10) + "g left\n" + left + "g right\n" + right)
    assert parts_of(scene) == [((), "left", 12, 0), ((), "right", 12, 0)]
    assert notes == {}


def test_joined_groups_have_the_name_of_their_object() -> None:
    text = corners_of() + corners_of(50) + separate_triangle(99)
    scene = parse_obj(text.replace("f ", "o box\ng flag\nf ") + sides("g"))
    assert parts_of(scene) == [(("box",), "flag", 1, 3), ((), "box", 12, 0)]
    # the name of an object that is split into several parts would not distinguish them
    scene = parse_obj(corners_of() + corners_of(50) + "o box\n" + sides("g near") + sides("g far", 8))
    assert parts_of(scene) == [(("box",), "near side 0", 12, 0), (("box",), "far side 0", 12, 0)]
    # faces before the first group have no name
    first, *others = sides("g").split("g side 0\n")[1].split("\n", 1)
    assert parts_of(parse_obj(corners_of() + first + "\n" + others[0])) == [((), "side 1", 12, 0)]


def test_objects_that_are_closed_only_together_are_one_part() -> None:
    scene, notes = parse_with_notes(corners_of() + sides("o"))
    assert parts_of(scene) == [((), "side 0", 12, 0)]
    assert "groups_joined" in notes
    # a wedge that shares two corners with the brick is closed by itself
    beside = "v -10 0 0\nv -10 20 0\nv -10 0 30\no wedge\nf 1 2 9\nf 1 9 11\nf 1 11 2\nf 2 11 9\n"
    assert [row[1:] for row in parts_of(parse_obj(corners_of() + sides("o") + beside))] == [
        ("side 0", 12, 0),
        ("wedge", 4, 0),
    ]


def test_objects_that_are_open_together_stay_separate() -> None:
    five = corners_of() + sides("o").rpartition("o side 5")[0]
    scene, notes = parse_with_notes(five)
    assert [row[1] for row in parts_of(scene)] == [f"side {k}" for k in range(5)]
    assert "groups_joined" not in notes
    # groups, by contrast, are joined: the shell with a hole is one part, which repair can close
    assert parts_of(parse_obj(five.replace("o side", "g side"))) == [((), "side 0", 10, 4)]


def test_groups_of_different_objects_are_not_joined() -> None:
    text = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 1 1 0\no a\ng x\nf 1 2 3\ng y\nf 3 2 1\no b\ng x\nf 2 4 3\ng y\nf 2 3 4\n"
    assert [row[:3] for row in parts_of(parse_obj(text))] == [((), "a", 2), ((), "b", 2)]


def test_a_face_of_two_corners_joins_nothing() -> None:
    text = separate_triangle(0) + "g a\nf 1 4\n" + "g b\n" + separate_triangle(1) + "g a\nf 4\n"
    assert [row[1:3] for row in parts_of(parse_obj(text))] == [("", 1), ("b", 1)]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 29)), min_size=1, max_size=25))
@settings(max_examples=100)
def test_joined_groups_equal_those_of_a_simple_search(drawn: list[tuple[int, int, int]]) -> None:
    """Each object has its own vertices, so that only groups can be joined."""
    text = "".join(f"v {k % 7} {k % 5} {k}\n" for k in range(4 * 40))
    surfaces: list[set[tuple[str, int, int]]] = []
    for owner, group, at in drawn:
        corners = [40 * owner + at + step for step in range(3)]
        text += f"o {owner}\ng group {group}\nf {' '.join(str(corner + 1) for corner in corners)}\n"
        mine = {("group", owner, group), *(("vertex", owner, corner) for corner in corners)}
        for other in [surface for surface in surfaces if surface & mine]:
            surfaces.remove(other)
            mine |= other
        surfaces.append(mine)
    scene = parse_obj(text)
    assert len(scene.parts) == len(surfaces)
    assert scene.face_count == len(drawn)


def test_ten_thousand_groups_are_ten_thousand_parts() -> None:
    text = "".join(f"g part {k}\n{separate_triangle(k)}f -1 -2 -3\n" for k in range(10_000))
    scene = parse_obj(text)
    assert len(scene.parts) == 10_000
    assert scene.parts[9_999].name == "part 9999"
    assert all(len(mesh.faces) == 2 and len(mesh.vertices) == 3 for mesh in scene.meshes)


def test_a_strip_of_a_hundred_thousand_groups_is_one_part() -> None:
    count = 100_000
    text = "".join(f"v {k} {k % 2} 0\n" for k in range(count + 2))
    text += "".join(f"g {k}\nf {k + 1} {k + 2} {k + 3}\n" for k in range(count))
    scene, notes = parse_with_notes(text)
    assert [row[:3] for row in parts_of(scene)] == [((), "0", count)]
    assert "too_many_groups" not in notes


def test_parts_beyond_the_limit_are_joined() -> None:
    scene, notes = parse_with_notes("".join(f"g {k}\n{separate_triangle(k)}" for k in range(30_000)))
    assert len(scene.parts) == 1
    assert scene.face_count == 30_000
    assert "too_many_groups" in notes


def test_names_that_are_not_utf_8_are_read() -> None:
    scene = parse_obj(TETRA.encode() + b"o Geh\xe4use\n" + FACES.encode())
    assert scene.parts[0].name == "Gehäuse"
    assert parse_obj(TETRA + "o Gehäuse №1\n" + FACES).parts[0].name == "Gehäuse №1"


def test_materials_are_per_face() -> None:
    scene = parse_obj(TETRA + "f 1 3 2\nusemtl red clay\nf 1 2 4\nusemtl blue\nf 1 4 3\nusemtl red clay\nf 2 3 4\n")
    assert [material.name for material in scene.materials] == ["red clay", "blue"]
    assert scene.meshes[0].face_material is not None
    assert scene.meshes[0].face_material.tolist() == [-1, 0, 1, 0]
    assert len(scene.parts) == 1


def test_materials_stay_with_faces_that_are_reordered() -> None:
    text = "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\no a\nusemtl m\nf 1 2 3 4\no b\nusemtl n\nf 1 2 3\no a\nf 4 3 2 1\n"
    scene = parse_obj(text)
    assert [part.name for part in scene.parts] == ["a", "b"]
    face_materials = [mesh.face_material for mesh in scene.meshes]
    assert face_materials[0] is not None and face_materials[1] is not None
    assert face_materials[0].tolist() == [0, 0, 1, 1]
    assert face_materials[1].tolist() == [1]


@pytest.mark.parametrize(
    ("rows", "colors"),
    [
        (["1 0 0", "0 1 0", "0 0 0.5"], [[255, 0, 0, 255], [0, 255, 0, 255], [0, 0, 128, 255]]),
        (["255 0 0", "0 17 0", "1 1 1"], [[255, 0, 0, 255], [0, 17, 0, 255], [1, 1, 1, 255]]),
        (["1 0 0", "nan nan nan", ""], [[255, 0, 0, 255], [255, 255, 255, 255], [255, 255, 255, 255]]),
        (["1 0 0 1", "0 0 0 0.2", "0 1 0 0"], [[255, 0, 0, 255], [0, 0, 0, 51], [0, 255, 0, 0]]),
        (["1 1 1 0", "0 0 0 0", "0 1 0 0"], [[255, 255, 255, 255], [0, 0, 0, 255], [0, 255, 0, 255]]),
    ],
)
def test_vertex_colors_are_read(rows: list[str], colors: list[list[int]]) -> None:
    places = ["0 0 0", "1 0 0", "0 1 0"]
    text = "".join(f"v {place} {row}\n" for place, row in zip(places, rows, strict=True)) + "f 1 2 3\n"
    mesh = parse_obj(text).meshes[0]
    assert mesh.colors is not None
    assert mesh.colors.tolist() == colors
    assert mesh.vertices.tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0]]


POLYPAINT = "#MRGB ffff0000ff00ff00\n#MRGB 00ff8000ffFFFFFF\n"
"""Colors of the four vertices of the tetrahedron, in two comments of ZBrush."""


def test_colors_in_comments_of_zbrush_are_read() -> None:
    mesh = parse_obj(TETRA + POLYPAINT + FACES).meshes[0]
    assert mesh.colors is not None
    colors = dict(zip(map(tuple, mesh.vertices.tolist()), mesh.colors.tolist(), strict=True))
    assert [colors[tuple(map(float, line.split()[1:]))] for line in TETRA.splitlines()] == [
        [255, 0, 0, 255],
        [0, 255, 0, 255],
        [255, 128, 0, 255],
        [255, 255, 255, 255],
    ]


@pytest.mark.parametrize("comments", [POLYPAINT[:30], POLYPAINT.replace("8", "x"), "mtllib a.mtl\n" + POLYPAINT])
def test_colors_in_comments_need_one_for_each_vertex_and_no_materials(comments: str) -> None:
    assert parse_obj(TETRA + comments + FACES).meshes[0].colors is None


def test_weights_are_not_read_as_coordinates_or_colors() -> None:
    scene, notes = parse_with_notes(TETRA.replace("\n", " 2\n") + FACES)
    assert_tetra(scene)
    assert "weights_ignored" in notes
    assert scene.meshes[0].colors is None
    assert "weights_ignored" not in parse_with_notes(TETRA.replace("\n", " 1.0\n") + FACES)[1]


@pytest.mark.parametrize(
    "table", ["vt 0.25\nvt 0.5\nvt 1\n", "vt 0.25 0\nvt 0.5 0\nvt 1 0\n", "vt 0.25 0 9\nvt 0.5\nvt 1 0\n"]
)
def test_texture_coordinates_of_one_to_three_numbers_are_read(table: str) -> None:
    mesh = parse_obj(TETRA + table + "f 1/1 2/2 3/3\n").meshes[0]
    assert mesh.uv is not None
    assert sorted(mesh.uv.tolist()) == [[0.25, 0], [0.5, 0], [1, 0]]


def test_a_seam_duplicates_only_its_own_vertices() -> None:
    text = (
        "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nvt 0 0\nvt 1 0\nvt 1 1\nvt 0 1\nvt 0.5 0.5\nf 1/1 2/2 3/3\nf 1/5 3/3 4/4\n"
    )
    mesh = parse_obj(text).meshes[0]
    assert len(mesh.vertices) == 5
    assert mesh.uv is not None
    corners = {(*mesh.vertices[v].tolist(), *mesh.uv[v].tolist()) for v in mesh.faces.ravel()}
    assert corners == {(0, 0, 0, 0, 0), (1, 0, 0, 1, 0), (1, 1, 0, 1, 1), (0, 0, 0, 0.5, 0.5), (0, 1, 0, 0, 1)}
    points, faces = welded(mesh)
    assert len(points) == 4 and len(faces) == 2


def test_normals_are_normalized() -> None:
    mesh = parse_obj(TETRA + "vn 0 0 8\nvn 3 4 0\nf 1//1 2//1 3//2\n").meshes[0]
    assert mesh.normals is not None
    assert {tuple(row) for row in np.round(mesh.normals.astype(float), 6).tolist()} == {(0, 0, 1), (0.6, 0.8, 0)}


def test_missing_tables_keep_the_geometry() -> None:
    scene, notes = parse_with_notes(TETRA + "f 1/9/9 3/9/9 2/9/9\nf 1//1 2//1 4//1\nf 1 4 3\nf 2 3 4\n")
    assert_tetra(scene)
    assert scene.meshes[0].uv is None and scene.meshes[0].normals is None
    assert "missing_references" in notes


def test_indices_from_zero_are_detected() -> None:
    scene, notes = parse_with_notes(TETRA + "f 0 2 1\nf 0 1 3\nf 0 3 2\nf 1 2 3\n")
    assert_tetra(scene)
    assert "counted_from_zero" in notes
    with pytest.raises(UnreadableFile, match="line 5 "):
        parse_obj(TETRA + "f 0 2 1\nf 4 1 3\n")


def test_lines_points_and_curves_are_skipped_with_a_note() -> None:
    scene, notes = parse_with_notes(TETRA + FACES + "l 1 2 3\np 1\nvp 0.5\ncurv 0 1 1 2\n")
    assert_tetra(scene)
    assert "lines" in notes["ignored_elements"] and "points" in notes["ignored_elements"]
    with pytest.raises(EmptyModel, match="only lines"):
        parse_obj(TETRA + "l 1 2 3\n")
    with pytest.raises(EmptyModel, match="4 points and no faces"):
        parse_obj(TETRA)


def test_a_face_of_two_corners_is_skipped_with_a_note() -> None:
    scene, notes = parse_with_notes(TETRA + "f 1 2\n" + FACES + "f 3\nf \n")
    assert_tetra(scene)
    assert "3 of 7" in notes["incomplete_faces"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (TETRA + "f 1 2 5\n", 5),
        (TETRA + "f 1 2 -5\n", 5),
        (TETRA + "# f\n\nf 1 2 3\nf 1 2 99999999999999999999\n", 8),
        (TETRA + "f 1 2 -9223372036854775808\n", 5),
        (TETRA + "f 1 2 3\nf 1 2 three\n", 6),
        (TETRA + "f 1 2 3\nf 1.5 2 3\n", 6),
        (TETRA + "f 1 2 3\nf /1 2 3\n", 6),
        (TETRA + "f 1 2 3\nf 1/1/1/1 2 3\n", 6),
        (TETRA + "v 1 2 x\nf 1 2 3\n", 5),
        (TETRA + "v 1 2\nf 1 2 3\n", 5),
        (TETRA + "f 1 2 \\\n 3\nf \\\n1 2 \\\n9\nf 1 2 3\n", 7),
        ("f -3 -2 -1\n" + TETRA, 1),
        ("v 0 0 0\nv 1 2 3\0\n" + TETRA + FACES, 2),
    ],
)
def test_an_error_names_the_line(text: str, line: int) -> None:
    with pytest.raises(UnreadableFile, match=f"line {line} of the OBJ"):
        parse_obj(text)


def test_a_face_with_too_many_corners_is_rejected() -> None:
    text = TETRA + "f" + " 1 2 3" * 10_000 + "\n"
    with pytest.raises(ModelTooComplex, match=r"line 5 .* 30000 corners"):
        parse_obj(text)


@pytest.mark.parametrize("data", [b"", b"\n" * 1000, b"\\\n" * 1000, b"hello\nworld\n", b"\0" * 1000, b"f\nv\n"])
def test_files_that_are_not_obj_are_rejected(data: bytes) -> None:
    with pytest.raises(SourceError):
        parse_obj(data)


@given(st.binary(max_size=300))
@settings(max_examples=150)
def test_random_bytes_give_a_coded_error_or_a_model(noise: bytes) -> None:
    for data in (noise, (TETRA + FACES).encode()[:40] + noise, b"v " + noise + b"\nf " + noise):
        try:
            scene = parse_obj(data)
        except SourceError:
            continue
        assert scene.face_count > 0


@given(st.text("vfnt 0123456789./-\n\\#gou", max_size=400))
@settings(max_examples=200)
def test_random_words_give_a_coded_error_or_a_model(noise: str) -> None:
    for text in (noise, TETRA + TABLES + "f 1 2 3\nf " + noise):
        try:
            scene = parse_obj(text)
        except SourceError:
            continue
        for mesh in scene.meshes:
            assert len(mesh.faces) == 0 or (mesh.faces.min() >= 0 and mesh.faces.max() < len(mesh.vertices))


# --- materials -----------------------------------------------------------------------------------

PAINTED = "mtllib {library}\nv 0 0 0\nv 1 0 0\nv 0 1 0\nvt 0 0\nvt 1 0\nvt 0 1\nusemtl paint\nf 1/1 2/2 3/3\n"


def material(statements: str, **companions: bytes) -> tuple[Scene, dict[str, str]]:
    files = {"m.mtl": f"newmtl paint\n{statements}\n".encode()}
    files |= {name.replace("__", "."): data for name, data in companions.items()}
    return parse_with_notes(PAINTED.format(library="m.mtl"), files)


@pytest.mark.parametrize(
    ("statements", "alpha", "has_note"),
    [
        ("d 1", 1, False),
        ("d 0.25", 0.25, False),
        ("Tr 0.25", 0.75, False),
        ("Tr 0", 1, False),
        ("Tr 1", 1, True),
        ("d 0", 1, True),
        ("d 0\nTr 0", 1, True),
        ("d 1\nTr 1", 1, False),
        ("d -halo 0.5", 0.5, False),
        ("d much", 1, False),
    ],
)
def test_fully_transparent_materials_become_opaque(statements: str, alpha: float, has_note: bool) -> None:
    scene, notes = material(statements)
    assert scene.materials[0].base_color[3] == alpha
    assert scene.materials[0].alpha_mode == ("blend" if alpha < 1 else "opaque")
    assert ("alpha_zero" in notes) is has_note


@pytest.mark.parametrize(
    ("statements", "color"),
    [
        ("Kd 0.2 0.4 0.6", (0.2, 0.4, 0.6)),
        ("kd 0.5", (0.5, 0.5, 0.5)),
        ("  Kd   1   0\t0 # red", (1, 0, 0)),
        ("Kd 255 0 51", (1, 0, 0.2)),
        ("Kd spectral file.rfl", (1, 1, 1)),
        ("Kd nan 1 1", (1, 1, 1)),
        ("", (1, 1, 1)),
    ],
)
def test_base_colors_are_read(statements: str, color: tuple[float, ...]) -> None:
    assert material(statements)[0].materials[0].base_color[:3] == pytest.approx(color)


def test_physically_based_keys_are_read() -> None:
    scene, _ = material(
        "Kd 1 1 1\nPr 0.3\nPm 0.7\nKe 0.1 0.2 0.3\nmap_Ke glow.png\nnorm bumps.png\nmap_Pr mr.png\nmap_Pm mr.png",
        glow__png=PNG + b"1",
        bumps__png=PNG + b"2",
        mr__png=PNG + b"3",
    )
    shiny = scene.materials[0]
    assert (shiny.roughness, shiny.metallic, shiny.emissive) == (0.3, 0.7, (0.1, 0.2, 0.3))
    slots = (shiny.emissive_image, shiny.normal_image, shiny.metallic_roughness_image)
    assert [scene.images[slot].data[-1:] for slot in slots if slot is not None] == [b"1", b"2", b"3"]


def test_a_larger_specular_exponent_gives_a_smoother_surface() -> None:
    def rough(statements: str) -> float:
        return material(statements)[0].materials[0].roughness

    assert rough("Ks 0 0 0\nNs 900") == 1
    assert rough("Ns 900") == 1
    assert 0 < rough("Ks 1 1 1\nNs 900") < rough("Ks 1 1 1\nNs 50") < rough("Ks 1 1 1\nNs 2") < 1


@pytest.mark.parametrize(
    "reference",
    [
        "wood grain.png",
        "Wood Grain.PNG",
        "./wood grain.png",
        "C:\\textures\\wood grain.png",
        "textures\\wood grain.png",
        "/home/me/wood grain.png",
        '"wood grain.png"',
        "-s 1 1 1 -o 0 0 wood grain.png",
        "-clamp on -bm 0.5 -mm 0 1 -blendu off -imfchan l wood grain.png",
    ],
)
def test_textures_are_found_by_every_form_of_reference(reference: str) -> None:
    scene, notes = parse_with_notes(
        PAINTED.format(library="m.mtl"),
        {"m.mtl": f"newmtl paint\nmap_Kd {reference}\n".encode(), "wood grain.png": PNG},
    )
    index = scene.materials[0].base_color_image
    assert index is not None
    assert (scene.images[index].data, scene.images[index].media_type) == (PNG, "image/png")
    assert scene.images[index].name.casefold() == "wood grain"
    assert scene.materials[0].wrap[0] == ("clamp" if "-clamp on" in reference else "repeat")
    assert "missing_companion" not in notes


def test_a_black_base_color_does_not_hide_a_texture() -> None:
    scene, notes = material("Kd 0 0 0\nmap_Kd a.jpg", a__jpg=JPEG)
    assert scene.materials[0].base_color == (1, 1, 1, 1)
    assert "'paint'" in notes["black_diffuse_ignored"]
    assert "black_diffuse_ignored" not in material("Kd 0 0 0")[1]
    assert scene.images[0].media_type == "image/jpeg"


@pytest.mark.parametrize(
    ("color", "is_gray"),
    [("0.588 0.588 0.588", True), (".64 .64 .64", True), ("1 1 1", False), ("0.8 0.5 0.5", False), ("0 0 0", False)],
)
def test_a_gray_that_darkens_a_texture_is_noted_and_can_be_ignored(color: str, is_gray: bool) -> None:
    scene, notes = material(f"Kd {color}\nmap_Kd a.jpg", a__jpg=JPEG)
    assert ("texture_darkened" in notes) == is_gray
    assert scene.materials[0].base_color[0] == (float(color.split()[0]) or 1.0)
    assert "texture_darkened" not in material(f"Kd {color}")[1]
    companions = {"m.mtl": f"newmtl paint\nKd {color}\nmap_Kd a.jpg\n".encode(), "a.jpg": JPEG}
    source = Source.from_bytes(PAINTED.format(library="m.mtl").encode(), "a.obj", companions)
    kept = 0.8 if color.startswith("0.8") else 1.0
    assert read(source, ObjReaderOptions(obj_kd="ignore")).materials[0].base_color[0] == kept


def test_a_shared_image_is_stored_once() -> None:
    text = PAINTED.format(library="m.mtl") + "usemtl other\nf 3/3 2/2 1/1\n"
    scene, _ = parse_with_notes(
        text, {"m.mtl": b"newmtl paint\nmap_Kd a.png\nnewmtl other\nmap_Kd A.png\n", "a.png": PNG}
    )
    assert len(scene.images) == 1
    assert [material.base_color_image for material in scene.materials] == [0, 0]


def test_scale_and_offset_of_a_texture_change_only_its_coordinates() -> None:
    text = PAINTED.format(library="m.mtl") + "usemtl other\nf 3/3 2/2 1/1\n"
    library = b"newmtl paint\nmap_Kd -s 2 3 -o 0.5 0.25 a.png\nnewmtl other\nmap_Kd a.png\n"
    mesh = parse_with_notes(text, {"m.mtl": library, "a.png": PNG})[0].meshes[0]
    assert mesh.uv is not None
    assert mesh.uv[mesh.faces].tolist() == [
        [[0.5, 0.25], [2.5, 0.25], [0.5, 3.25]],
        [[0, 1], [1, 0], [0, 0]],
    ]


@pytest.mark.parametrize("library", ["m.mtl", "M.MTL", "./m.mtl", "gone.mtl m.mtl", "folder\\m.mtl"])
def test_libraries_are_found_by_every_form_of_reference(library: str) -> None:
    scene, _ = parse_with_notes(PAINTED.format(library=library), {"m.mtl": b"newmtl paint\nKd 1 0 0\n"})
    assert scene.materials[0].base_color == (1, 0, 0, 1)


def test_a_library_with_spaces_in_its_name_is_found() -> None:
    scene, notes = parse_with_notes(
        PAINTED.format(library="my colors.mtl"), {"my colors.mtl": b"newmtl paint\nKd 1 0 0\n"}
    )
    assert scene.materials[0].base_color == (1, 0, 0, 1)
    assert notes == {}


def test_missing_companions_and_materials_give_notes() -> None:
    scene, notes = parse_with_notes(PAINTED.format(library="far/away.mtl"))
    assert "away.mtl" in notes["missing_companion"]
    assert scene.materials[0].name == "paint"
    scene, notes = material("Kd 1 0 0\nmap_Kd gone.png")
    assert "gone.png" in notes["missing_companion"]
    assert scene.materials[0].base_color == (1, 0, 0, 1)
    assert scene.materials[0].base_color_image is None
    _, notes = parse_with_notes(PAINTED.format(library="m.mtl"), {"m.mtl": b"newmtl else\n"})
    assert "paint" in notes["missing_material"]


@given(st.binary(max_size=300))
@settings(max_examples=100)
def test_a_damaged_library_never_fails_the_model(noise: bytes) -> None:
    for library in (noise, b"newmtl paint\nmap_Kd " + noise, b"newmtl paint\nKd " + noise + b"\nNs " + noise):
        scene = parse_obj(PAINTED.format(library="m.mtl"), m__mtl=library)
        assert scene.face_count == 1
        assert all(0 <= value <= 1 for value in scene.materials[0].base_color)


# --- the writer ----------------------------------------------------------------------------------


def painted_scene() -> Scene:
    """Return a part with UV, normals and two materials, one of them textured, and a part with vertex colors."""
    ball = sphere(5)
    unit = (ball.vertices / 5).astype(np.float32)
    first = replace(
        ball,
        normals=unit,
        uv=(unit[:, :2] + 1) / 2,
        face_material=np.arange(len(ball.faces)) % 3 - 1,
    )
    box = move_mesh(brick(name="box"), 20, 0, 0)
    colors = np.array([[k * 30, 255 - k, k, 255] for k in range(8)])
    materials = (
        Material("gold", (1, 0.8, 0.2, 1), 0, metallic=1, roughness=0.25, wrap=("clamp", "clamp")),
        Material("glass", (0.5, 0.5, 1, 0.5), alpha_mode="blend", emissive=(0.1, 0, 0)),
    )
    return Scene(
        (first, replace(box, colors=colors)),
        (Part(0, name="ball"), Part(1, name="box")),
        materials,
        (Image(PNG, "image/png"),),
    )


def test_a_painted_scene_survives_a_round_trip() -> None:
    scene = painted_scene()
    back = round_trip(scene)
    assert [part.name for part in back.parts] == ["ball", "box"]
    ball, box = back.meshes
    assert ball.uv is not None and ball.normals is not None and ball.face_material is not None
    named = [back.materials[index].name for index in ball.face_material]
    assert sorted(named) == sorted(["plain", "gold", "glass"][k % 3] for k in range(len(ball.faces)))
    gold = next(material for material in back.materials if material.name == "gold")
    assert (gold.base_color, gold.metallic, gold.roughness) == ((1, 0.8, 0.2, 1), 1, 0.25)
    assert gold.wrap == ("clamp", "clamp")
    assert gold.base_color_image is not None and back.images[gold.base_color_image].data == PNG
    glass = next(material for material in back.materials if material.name == "glass")
    assert (glass.base_color, glass.alpha_mode, glass.emissive) == ((0.5, 0.5, 1, 0.5), "blend", (0.1, 0, 0))
    assert np.allclose(ball.normals, ball.vertices / 5, atol=1e-6)
    assert np.array_equal(ball.uv, (ball.normals[:, :2] + 1) / 2) or np.allclose(
        ball.uv, (ball.vertices[:, :2] / 5 + 1) / 2, atol=1e-6
    )
    before = {(*v, *c) for v, c in zip(scene.meshes[1].vertices.tolist(), scene.meshes[1].colors.tolist(), strict=True)}  # type: ignore[union-attr]
    assert box.normals is None and box.uv is None
    assert box.colors is not None and ball.colors is None
    assert {(*v, *c) for v, c in zip(box.vertices.tolist(), box.colors.tolist(), strict=True)} == before
    # a part without a material does not inherit that of the part before it
    assert box.face_material is not None
    assert {back.materials[index].name for index in box.face_material} == {"plain"}


@given(
    arrays.arrays(np.float64, st.tuples(st.integers(3, 12), st.just(3)), elements=st.floats(-1e6, 1e6)),
    st.data(),
)
@settings(max_examples=60)
def test_numbers_survive_a_round_trip_exactly(vertices: np.ndarray, data: st.DataObject) -> None:
    faces = data.draw(
        arrays.arrays(np.int32, st.tuples(st.integers(1, 10), st.just(3)), elements=st.integers(0, len(vertices) - 1))
    )
    uv = data.draw(st.none() | arrays.arrays(np.float32, (len(vertices), 2), elements=st.floats(-2, 2, width=32)))
    colors = data.draw(st.none() | arrays.arrays(np.uint8, (len(vertices), 3)))
    opaque = None if colors is None else np.concatenate([colors, np.full((len(colors), 1), 255, np.uint8)], axis=1)
    mesh = round_trip(scene_of(Mesh(vertices, faces, uv=uv, colors=opaque, name="any"))).meshes[0]
    precision = np.float32 if np.array_equal(vertices.astype(np.float32), vertices) else np.float64
    assert np.array_equal(mesh.vertices[mesh.faces].astype(precision), vertices[faces].astype(precision))
    if uv is not None:
        assert mesh.uv is not None
        assert np.array_equal(mesh.uv[mesh.faces], uv[faces])
    if opaque is not None:
        assert mesh.colors is not None
        assert np.array_equal(mesh.colors[mesh.faces], opaque[faces])


def test_seams_do_not_split_the_written_surface() -> None:
    """A box with six sides of four vertices each has eight positions in the file."""
    box = brick()
    corners = box.vertices[box.faces].reshape(-1, 3)
    normals = np.repeat(np.cross(*(np.diff(box.vertices[box.faces], axis=1).swapaxes(0, 1))), 3, axis=0)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    apart = Mesh(corners, np.arange(len(corners)).reshape(-1, 3), normals=normals, name="box")
    text = write_obj(scene_of(apart))[0].decode().splitlines()
    assert sum(line.startswith("v ") for line in text) == 8
    assert sum(line.startswith("vn ") for line in text) == 6
    faces = np.array(
        [[int(corner.split("//")[0]) for corner in line.split()[1:]] for line in text if line.startswith("f ")]
    )
    assert edge_counts(faces.astype(np.int32)) == (0, 0)


def test_instances_are_expanded_and_mirrored_instances_stay_outward() -> None:
    mirror = np.diag([-1.0, 1, 1, 1])
    scene = Scene((brick(),), (Part(0, name="one"), Part(0, mirror, name="two")))
    back = round_trip(scene)
    assert [part.name for part in back.parts] == ["one", "two"]
    assert volume(*soup(back)) == pytest.approx(2 * 6000)
    assert np.allclose(bounds(back), [[-10, 0, 0], [10, 20, 30]])


def test_many_parts_of_every_kind_survive_a_round_trip() -> None:
    """Mix parts with and without UV, normals, colors and materials."""
    box = brick(1, 1, 1, name="")
    normals = np.tile([0, 0, 1.0], (8, 1))
    meshes = []
    for k in range(200):
        mesh = move_mesh(box, 3.0 * k, 0, 0)
        if k % 2:
            mesh = replace(mesh, uv=np.full((8, 2), k / 256))
        if k % 3 == 0:
            mesh = replace(mesh, normals=normals)
        if k % 5 == 0:
            mesh = replace(mesh, colors=np.tile([k, 0, 255, 255], (8, 1)))
        if k % 7 == 0:
            mesh = replace(mesh, face_material=np.full(12, k % 2))
        meshes.append(mesh)
    parts = tuple(Part(k, name=f"box {k}") for k in range(200))
    back = round_trip(Scene(tuple(meshes), parts, (Material("one"), Material("two"))))
    assert [part.name for part in back.parts] == [part.name for part in parts]
    for k, mesh in enumerate(back.meshes):
        before = meshes[k]
        assert np.array_equal(
            np.sort(mesh.vertices[mesh.faces], axis=0), np.sort(before.vertices[before.faces], axis=0)
        )
        assert (mesh.uv is None) == (before.uv is None) and (mesh.normals is None) == (before.normals is None)
        assert mesh.uv is None or (mesh.uv == np.float32(k / 256)).all()
        assert (mesh.colors is None) == (before.colors is None)
        assert mesh.colors is None or (mesh.colors == [k, 0, 255, 255]).all()
        assert mesh.face_material is not None
        material_names = {back.materials[index].name for index in mesh.face_material}
        assert material_names == ({["one", "two"][k % 2]} if k % 7 == 0 else {"plain"})


def test_normals_are_lost_only_in_parts_with_a_missing_normal() -> None:
    scene, notes = parse_with_notes(TETRA + "vn 0 0 1\no a\nf 1//1 3//1 2//1\no b\nf 1//1 2 4\no c\nf 1 4 3\n")
    assert [mesh.normals is not None for mesh in scene.meshes] == [True, False, False]
    assert "incomplete_normals" in notes


def test_names_fit_on_a_line_and_are_unique() -> None:
    names = ["lid", "lid", "a\nb", "", "", "x # y", "back\\", "Gehäuse"]
    meshes = [move_mesh(brick(1, 1, 1, name=""), 3 * k, 0, 0) for k in range(len(names))]
    scene = Scene(tuple(meshes), tuple(Part(k, name=name) for k, name in enumerate(names)))
    back = round_trip(scene)
    assert [part.name for part in back.parts] == ["lid", "lid_2", "a b", "part", "part_2", "x _ y", "back", "Gehäuse"]
    assert volume(*soup(back)) == pytest.approx(len(names))


def test_a_single_part_without_a_name_stays_without_one() -> None:
    assert round_trip(Scene((brick(name=""),), (Part(0),))).parts[0].name == ""


def test_the_up_axis_option_changes_the_file_and_the_frame_in_the_report(tmp_path: Path) -> None:
    report = Registry().convert(scene_of(brick()), tmp_path / "a.obj", obj_up="y")
    written = parse_obj((tmp_path / "a.obj").read_bytes())
    low, high = bounds(written)
    assert low.tolist() == [0, 0, -20]
    assert high.tolist() == [10, 30, 0]
    assert volume(*soup(written)) == pytest.approx(6000)
    assert report.target.frame == Frame("mm", "y")
    assert report.target.size_mm == (10, 20, 30)
    assert "frame_converted" in {note.code for note in report.notes}
    assert Registry().convert(scene_of(brick()), tmp_path / "b.obj").target.frame == Frame("mm", "z")


def test_names_of_companions_are_derived_from_their_content() -> None:
    data, companions = write_obj(painted_scene())
    assert len(companions) == 2
    for name, content in companions.items():
        assert name.rpartition(".")[0] == "meshhub-" + hashlib.sha256(content).hexdigest()[:8]
    library = next(name for name in companions if name.endswith(".mtl"))
    assert f"mtllib {library}\n".encode() in data
    assert write_obj(painted_scene()) == (data, companions)
    assert write_obj(scene_of(brick()))[1] == {}


def test_writing_does_not_change_the_scene() -> None:
    scene = painted_scene()
    before = [mesh.vertices.copy() for mesh in scene.meshes]
    write_obj(scene)
    assert all(np.array_equal(mesh.vertices, vertices) for mesh, vertices in zip(scene.meshes, before, strict=True))


@pytest.mark.parametrize(
    "scene", [scene_of(brick()), scene_of(sphere()), painted_scene()], ids=["brick", "sphere", "painted"]
)
def test_trimesh_reads_written_files(scene: Scene, tmp_path: Path) -> None:
    target = Target("model.obj", folder=tmp_path)
    write(scene, target, ObjWriterOptions())
    trimesh_model = trimesh.load(tmp_path / "model.obj", process=False, force="mesh")
    assert len(trimesh_model.faces) == scene.face_count
    assert np.allclose(trimesh_model.bounds, bounds(scene))
    assert trimesh_model.volume == pytest.approx(volume(*soup(scene)), rel=1e-5)


def test_trimesh_reads_colors_and_images(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    PIL.Image.new("RGB", (2, 2), (255, 0, 0)).save(buffer, "PNG")
    ball = replace(sphere(), uv=np.zeros((len(sphere().vertices), 2)), face_material=np.zeros(len(sphere().faces)))
    scene = replace(
        scene_of(ball), materials=(Material("skin", (1, 1, 1, 1), 0),), images=(Image(buffer.getvalue(), "image/png"),)
    )
    write(scene, Target("model.obj", folder=tmp_path), ObjWriterOptions())
    trimesh_model = trimesh.load(tmp_path / "model.obj", process=False, force="mesh")
    assert trimesh_model.visual.material.image.getpixel((0, 0))[:3] == (255, 0, 0)
    box = replace(brick(), colors=np.tile([10, 20, 30, 255], (8, 1)))
    trimesh_model = trimesh.load(io.BytesIO(write_obj(scene_of(box))[0]), file_type="obj", process=False)
    assert trimesh_model.visual.vertex_colors[0].tolist() == [10, 20, 30, 255]


@pytest.mark.skipif(shutil.which("assimp") is None, reason="the assimp command is not installed")
def test_assimp_reads_written_files(tmp_path: Path) -> None:
    scene = painted_scene()
    write(scene, Target("model.obj", folder=tmp_path), ObjWriterOptions())
    subprocess.run(
        ["assimp", "export", "model.obj", "out.stl", "-fstlb"], cwd=tmp_path, check=True, capture_output=True
    )
    trimesh_model = trimesh.load(tmp_path / "out.stl", process=False)
    assert len(trimesh_model.faces) == scene.face_count
    assert trimesh_model.volume == pytest.approx(volume(*soup(scene)), rel=1e-5)


def test_the_registry_detects_and_converts_obj(tmp_path: Path) -> None:
    (tmp_path / "model.stl").write_text(
        TETRA + TABLES + FACES, encoding="utf-8"
    )  # the extension is intentionally wrong
    report = Registry().convert(tmp_path / "model.stl", tmp_path / "out.obj", obj_up="y", input_unit="mm")
    assert report.source.format == "obj"
    assert (tmp_path / "out.obj").read_bytes().startswith(b"# meshhub, mm, Y up\n")


# --- detection of OBJ -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "sure"),
    [
        ((TETRA + FACES).encode(), True),
        (b"# made by hand\r\n" + (TETRA + FACES).replace("\n", "\r\n").encode(), True),
        (b"mtllib a.mtl\nusemtl b\n", True),
        (b"", False),
        (b"solid a\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\n", False),
        (b"ply\nformat ascii 1.0\nelement vertex 3\n", False),
        (b"glTF\x02\0\0\0", False),
        (b"ISO-10303-21;\nHEADER;\n", False),
        (b"OFF\n8 6 0\n0 0 0\n", False),
        (b"f(x) = 1\ng\no\n", False),
    ],
)
def test_sniffing_recognizes_obj(head: bytes, sure: bool) -> None:
    assert (sniff(head, len(head)) >= 50) is sure


# --- real files ----------------------------------------------------------------------------------


def test_corpus_files_give_the_expected_results(corpus: Path, corpus_index: list[dict[str, str]]) -> None:
    wrong: list[str] = []
    judged = 0
    for row in corpus_index:
        if not row["file"].startswith("obj/"):
            continue
        path = corpus / row["file"]
        try:
            vertices, faces = soup(read(Source.from_path(path), ObjReaderOptions()))
        except SourceError as error:
            if row["expect"] == "converts":
                wrong.append(f"{row['file']}: {error}")
            continue
        if row["expect"] == "converts" and int(row["n_faces"]) != len(faces):
            wrong.append(f"{row['file']}: {len(faces)} faces, not {row['n_faces']}")
        if "negative_indices" in row["feature_tags"] or not np.isfinite(vertices).all():
            continue  # trimesh counts back from the end of the file instead of from the face
        try:
            other = trimesh.load(path, process=False, force="mesh")
            theirs = other.vertices[other.faces].reshape(-1, 3)
        except Exception:
            continue
        ours = vertices[faces].reshape(-1, 3)
        judged += 1
        if not np.allclose([ours.min(0), ours.max(0)], [theirs.min(0), theirs.max(0)], rtol=1e-6):
            wrong.append(f"{row['file']}: another bounding box")
        if abs(volume(vertices, faces) - volume(other.vertices, other.faces)) > 1e-5 * np.ptp(ours, axis=0).max() ** 3:
            wrong.append(f"{row['file']}: another volume")
    assert not wrong
    assert judged > 50


@pytest.mark.parametrize(
    "line", ["v nan 0 0", "v 0 inf 0", "v 0 0 1e999", "v --1 -3 8", "--1 -3 8", "v-1 -3 8", "1 2 3"]
)
def test_a_damaged_vertex_is_named_by_its_line(line: str) -> None:
    text = f"# a\nv 0 0 0\nv 1 0 0\n{line}\nv 0 1 0\nv 0 0 1\nf 1 2 3\nf 1 2 4\n"
    with pytest.raises(UnreadableFile, match=rf"line 4 of the OBJ, '{re.escape(line)}'"):
        parse_obj(text)


def test_statements_of_other_programs_and_rulers_are_ignored() -> None:
    scene = parse_obj("Made by hand\n----\n...\nvertices 3\nvp 0.5 1\nv 0 0 0\nv 1 0 0\nv 0 1 0\ncall x.obj\nf 1 2 3\n")
    assert scene.face_count == 1


def test_a_vertex_of_no_face_may_have_no_position() -> None:
    assert parse_obj("v 0 0 0\nv nan nan nan\nv 1 0 0\nv 0 1 0\nf 1 3 4\n").face_count == 1


@pytest.mark.parametrize(
    ("kd", "color"),
    [
        ("1,0 0,0 0,0", (1, 0, 0)),
        ("1.0, 0.5, 0.0", (1, 0.5, 0)),
        ("0.5,0.2,0.1", (0.5, 0.2, 0.1)),
        ("1,0,0", (1, 0, 0)),
    ],
)
def test_colors_with_decimal_commas_are_read(kd: str, color: tuple[float, ...]) -> None:
    mtl = f"newmtl a\nKd {kd}\nd 0,5\nKs 1,0 1,0 1,0\nNs 96,0\n".encode()
    scene, notes = parse_with_notes(f"mtllib m.mtl\nusemtl a\n{TETRA}{FACES}", {"m.mtl": mtl})
    (material,) = scene.materials
    assert material.base_color == pytest.approx((*color, 0.5))
    assert material.roughness < 1
    assert not notes


@pytest.mark.parametrize(
    "statement", ["Kd spectral x.rfl 1", "Kd red", "Kd 1 0", "Ke nan 0 0", "d x", "Tr -", "Ns 1e999", "Pr ?"]
)
def test_optional_values_that_cannot_be_read_are_noted(statement: str) -> None:
    mtl = f"newmtl a\n{statement}\n".encode()
    scene, notes = parse_with_notes(f"mtllib m.mtl\nusemtl a\n{TETRA}{FACES}", {"m.mtl": mtl})
    assert scene.materials[0].base_color == (1, 1, 1, 1)
    assert statement.split()[0] in notes["value_ignored"]
    assert len(notes["value_ignored"]) <= 160


def test_decimal_commas_of_vertices_are_read() -> None:
    text = TETRA.replace("1", "1,5").replace(" 0", " 0,0")
    assert np.ptp(bounds(parse_obj(text + FACES)), axis=0) == pytest.approx((1.5, 1.5, 1.5))
    assert_tetra(parse_obj(TETRA.replace(" 0 ", " 0.0, ").replace(" 1 ", " 1, ") + FACES))


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_backslash_ends_no_name_path_or_comment(line_end: str) -> None:
    names = f"# from C:\\models\\\nmtllib m.mtl\no part\\\n{TETRA}usemtl a\\\ng group\\\n"
    text = f"{names}{FACES[:8]} # C:\\x\\\n{FACES[8:-3]} \\\n 4\n"
    mtl = "# C:\\\nnewmtl a\\\nmap_bump C:\\tex\\\nKd 1 \\\n 0 0\n"
    scene, _ = parse_with_notes(text.replace("\n", line_end), {"m.mtl": mtl.replace("\n", line_end).encode()})
    assert sum(len(mesh.faces) for mesh in scene.meshes) == 4
    assert scene.materials[0].name == "a\\"
    assert scene.materials[0].base_color == (1, 0, 0, 1)


def test_normals_that_are_not_numbers_are_noted() -> None:
    _, notes = parse_with_notes(f"{TETRA}vn nan 0 0\n{FACES}")
    assert "1 normals" in notes["value_ignored"]


def test_polypaint_of_another_number_of_vertices_is_noted() -> None:
    _, notes = parse_with_notes(f"{TETRA}#MRGB ffff0000\n{FACES}")
    assert "do not match 4 vertices" in notes["value_ignored"]
