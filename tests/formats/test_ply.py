"""PLY reader and writer: all layouts, damaged files, and programs that read our files."""

from __future__ import annotations

import io
import re
import shutil
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path

import meshio
import numpy as np
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st

from meshhub.builtin_plugins.ply import PlyWriterOptions
from meshhub.builtin_plugins.ply.reader import read
from meshhub.builtin_plugins.ply.sniff import sniff
from meshhub.builtin_plugins.ply.writer import write
from meshhub.errors import EmptyModel, MeshhubError, UnreadableFile
from meshhub.model.capabilities import NoOptions
from meshhub.model.notes import collecting
from meshhub.model.scene import Material, Mesh, Part, Scene
from meshhub.model.source import Source, Target
from meshhub.toolkit.geometry import bounds, soup, welded
from models import brick, edge_counts, move_mesh, scene_of, sphere, volume

pytestmark = pytest.mark.once

ENCODINGS = ("ascii", "binary_little_endian", "binary_big_endian")
CODES = {"char": "b", "uchar": "B", "short": "h", "ushort": "H", "int": "i", "uint": "I", "float": "f", "double": "d"}
PNG = b"\x89PNG\r\n\x1a\n" + b"picture"


def load(data: bytes, companions: dict[str, bytes] | None = None) -> Scene:
    return read(Source.from_bytes(data, "model.ply", companions), NoOptions())


def load_with_notes(data: bytes) -> tuple[Scene, list[str]]:
    with collecting("read") as remarks:
        scene = load(data)
    return scene, [note.code for note in remarks.notes]


def dump(scene: Scene, ascii_: bool = False) -> bytes:
    target = Target("model.ply")
    write(scene, target, PlyWriterOptions(ply_ascii=ascii_))
    return target.read()


Rows = Sequence[Sequence[object]]


def ply(encoding: str, *elements: tuple[str, str, Rows], comments: Sequence[str] = (), eol: str = "\n") -> bytes:
    """Return a file of elements (name, "float x, list uchar int vertex_indices", rows); lists are nested sequences."""
    lines = ["ply", f"format {encoding} 1.0", *comments]
    body = b""
    order = ">" if encoding == "binary_big_endian" else "<"
    for name, properties, rows in elements:
        kinds = [declaration.split() for declaration in properties.split(",")]
        lines.append(f"element {name} {len(rows)}")
        lines += [f"property {declaration.strip()}" for declaration in properties.split(",")]
        for row in rows:
            words = []
            for kind, value in zip(kinds, row, strict=True):
                values = value if kind[0] == "list" else [value]
                codes = CODES[kind[2]] if kind[0] == "list" else CODES[kind[0]]
                if kind[0] == "list":
                    words.append(str(len(values)))
                    if encoding != "ascii":
                        body += struct.pack(order + CODES[kind[1]], len(values))
                words += [str(value) for value in values]
                if encoding != "ascii":
                    body += struct.pack(order + codes * len(values), *values)
            if encoding == "ascii":
                body += (" ".join(words) + eol).encode()
    return eol.join([*lines, "end_header", ""]).encode() + body


BRICK = brick()
POINTS = [[float(x) for x in row] for row in BRICK.vertices]
XYZ = "float x, float y, float z"
LIST = "list uchar int vertex_indices"
QUADS = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
MIXED = [[*QUADS[0]], *(list(map(int, f)) for f in BRICK.faces[2:6]), *QUADS[3:]]


def faces_of(lists: Sequence[Sequence[int]]) -> Rows:
    return [[indices] for indices in lists]


def assert_is_the_brick(scene: Scene) -> None:
    vertices, faces = soup(scene)
    assert len(faces) == 12
    assert bounds(scene).tolist() == [[0, 0, 0], [10, 20, 30]]
    assert volume(vertices, faces) == pytest.approx(6000)
    assert edge_counts(welded(Mesh(vertices, faces))[1]) == (0, 0)


# --- layouts


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("faces", [BRICK.faces.tolist(), QUADS, MIXED], ids=["triangles", "quads", "mixed"])
@pytest.mark.parametrize("count", ["uchar", "int", "ushort", "char"])
@pytest.mark.parametrize("item", ["int", "uint", "short", "uchar"])
def test_faces_of_any_size_and_type_are_read(encoding: str, faces: list[list[int]], count: str, item: str) -> None:
    data = ply(encoding, ("vertex", XYZ, POINTS), ("face", f"list {count} {item} vertex_index", faces_of(faces)))
    assert sniff(data, len(data)) == 100
    scene, notes = load_with_notes(data)
    assert_is_the_brick(scene)
    assert len(scene.meshes[0].vertices) == 8
    assert notes == []


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_properties_in_any_order_and_unknown_elements_are_read(encoding: str) -> None:
    vertex = [[7, [1, 2, 3][: i % 4], z, 0.5, x, y] for i, (x, y, z) in enumerate(POINTS)]
    face = [[[0.25] * (i % 3), [9] * i, indices, -1] for i, indices in enumerate(MIXED)]
    data = ply(
        encoding,
        ("camera", "float a, list int double b", [[1.5, [1, 2]], [2.5, []]]),
        ("vertex", "uchar flags, list uchar short tags, double z, float quality, double x, short y",
         [[f, t, z, q, x, int(y)] for f, t, z, q, x, y in vertex]),
        ("edge", "int vertex1, int vertex2", [[0, 1]]),
        ("face", "list uchar float weights, list ushort uchar more, list int int vertex_indices, char kind", face),
        ("tail", "float t", [[1]]),
        comments=["comment made by a test", "obj_info anything goes here"],
    )  # fmt: skip
    assert_is_the_brick(load(data))


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_many_mixed_polygons_span_several_blocks(encoding: str) -> None:
    rng = np.random.default_rng(3)
    sizes = rng.integers(3, 9, 5_000)
    circle = [[np.cos(t), np.sin(t), 0.0] for t in np.linspace(0, 2 * np.pi, 16, endpoint=False)]
    faces = [sorted(rng.choice(16, size, replace=False).tolist()) for size in sizes.tolist()]
    scene = load(ply(encoding, ("vertex", XYZ, circle), ("face", LIST, faces_of(faces))))
    mesh = scene.meshes[0]
    assert len(mesh.faces) == (sizes - 2).sum()
    a, b, c = (mesh.vertices[mesh.faces[:, k]] for k in range(3))
    assert (np.cross(b - a, c - a)[:, 2] > 0).all()


@pytest.mark.parametrize("eol", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_all_line_ends_of_the_header_are_read(encoding: str, eol: str) -> None:
    points = [[10.0, *row[1:]] if row[0] else row for row in POINTS]
    data = ply(encoding, ("vertex", XYZ, points), ("face", LIST, faces_of(MIXED)), eol=eol)
    assert_is_the_brick(load(data))


def test_a_line_feed_after_a_header_with_bare_cr_is_data() -> None:
    first = struct.unpack("<f", b"\n\0\0\0")[0]
    points = [[first, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    data = ply("binary_little_endian", ("vertex", XYZ, points), ("face", LIST, [[[0, 1, 2]]]), eol="\r")
    assert load(data).meshes[0].vertices[0, 0] == pytest.approx(first)


ODD = {
    "blank lines": lambda s: s.replace("\n", "\n\n").replace("end_header\n\n", "end_header\n"),
    "trailing blanks": lambda s: s.replace("\n", " \n"),
    "tabs": lambda s: s.replace(" ", "\t").replace("property\t", "property "),
    "uneven": lambda s: s.replace(" 20", "   20"),
    "one line": lambda s: "end_header\n".join(
        part if part.startswith("ply") else " ".join(part.split()) for part in s.split("end_header\n")
    ),
    "too many numbers": lambda s: s.replace("\n4 0 1 3 2", "\n4 0 1 3 2 9 9 9"),
    "no last line end": lambda s: s.rstrip(),
}  # fmt: skip


@pytest.mark.parametrize("how", ODD)
def test_irregular_text_is_read(how: str) -> None:
    data = ply("ascii", ("vertex", XYZ, POINTS), ("face", LIST, faces_of(MIXED))).decode()
    scene, notes = load_with_notes(ODD[how](data).encode())
    assert_is_the_brick(scene)
    assert notes == []


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_second_triangle_of_a_strip_is_flipped(encoding: str) -> None:
    ring = [0, 4, 1, 5, 3, 7, 2, 6, 0, 4]
    strips = [[*ring, -1, 2, 0, 3, 1, -1, 4, 6, 5, 7]]
    scene = load(ply(encoding, ("vertex", XYZ, POINTS), ("tristrips", "list int int vertex_indices", [strips])))
    assert_is_the_brick(scene)


def test_concave_polygons_keep_their_area() -> None:
    notch = [[0, 0, 0], [4, 0, 0], [4, 4, 0], [2, 1, 0], [0, 4, 0]]
    mesh = load(ply("ascii", ("vertex", XYZ, notch), ("face", LIST, [[[0, 1, 2, 3, 4]]]))).meshes[0]
    a, b, c = (mesh.vertices[mesh.faces[:, k]] for k in range(3))
    assert np.cross(b - a, c - a)[:, 2].min() > 0
    assert np.cross(b - a, c - a)[:, 2].sum() / 2 == pytest.approx(10)


# --- attributes of vertices and faces


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize(
    ("properties", "values", "expected"),
    [
        ("uchar red, uchar green, uchar blue", [255, 128, 0], [255, 128, 0, 255]),
        ("uchar blue, uchar green, uchar red, uchar alpha", [0, 128, 255, 7], [255, 128, 0, 7]),
        ("float red, float green, float blue", [1.0, 0.5, 0.0], [255, 128, 0, 255]),
        ("float r, float g, float b, float a", [1.0, 0.5, 0.0, 0.5], [255, 128, 0, 128]),
        ("ushort red, ushort green, ushort blue", [65535, 32896, 0], [255, 128, 0, 255]),
        ("ushort red, ushort green, ushort blue", [255, 128, 0], [255, 128, 0, 255]),
        ("uchar red, uchar green, uchar blue, float alpha", [255, 128, 0, 128], [255, 128, 0, 128]),
        ("uchar diffuse_red, uchar diffuse_green, uchar diffuse_blue", [255, 128, 0], [255, 128, 0, 255]),
        ("uchar red, uchar green, uchar blue, uchar alpha", [9, 8, 7, 0], [9, 8, 7, 255]),
        ("int red, int green, int blue", [300, 128, -5], [255, 128, 0, 255]),
        ("uchar red, uchar green, uchar blue", [1, 0, 1], [1, 0, 1, 255]),
    ],
)
def test_vertex_colors_of_all_types_are_read(
    encoding: str, properties: str, values: list[float], expected: list[int]
) -> None:
    vertex = [[*point, *values] for point in POINTS]
    scene = load(ply(encoding, ("vertex", f"{XYZ}, {properties}", vertex), ("face", LIST, faces_of(QUADS))))
    colors = scene.meshes[0].colors
    assert colors is not None
    assert (colors == expected).all()


def test_face_colors_become_materials() -> None:
    face = [[indices, *([255, 0, 0] if i < 2 else [0, 0, 255])] for i, indices in enumerate(QUADS)]
    scene = load(ply("ascii", ("vertex", XYZ, POINTS), ("face", f"{LIST}, uchar red, uchar green, uchar blue", face)))
    own = scene.meshes[0].face_material
    assert own is not None
    assert [scene.materials[index].base_color for index in own] == [(1, 0, 0, 1)] * 4 + [(0, 0, 1, 1)] * 8


@pytest.mark.parametrize("names", [("s", "t"), ("u", "v"), ("texture_u", "texture_v")])
def test_uv_and_normals_of_vertices_are_read(names: tuple[str, str]) -> None:
    vertex = [[x / 100, *point, y / 100, 0, 0, 2] for point in POINTS for x, y, _ in [point]]
    properties = f"float {names[0]}, {XYZ}, float {names[1]}, float nx, float ny, float nz"
    mesh = load(ply("binary_big_endian", ("vertex", properties, vertex), ("face", LIST, faces_of(QUADS)))).meshes[0]
    assert mesh.uv is not None
    assert mesh.normals is not None
    assert np.allclose(mesh.uv, mesh.vertices[:, :2] / 100)
    assert (mesh.normals == [0, 0, 1]).all()


def textured(encoding: str = "ascii", name: str = "my pic.png") -> bytes:
    corners = [[0, 0, 1, 0, 1, 1, 0, 1], [0.5, 0.5, 1, 0, 1, 1, 0, 1], [], *[[0, 0, 1, 0, 1, 1, 0, 1]] * 3]
    face = [[indices, [float(x) for x in uv]] for indices, uv in zip(QUADS, corners, strict=True)]
    properties = f"{LIST}, list uchar float texcoord"
    return ply(encoding, ("vertex", XYZ, POINTS), ("face", properties, face), comments=[f"comment TextureFile {name}"])


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_corner_uv_and_a_companion_texture_are_read(encoding: str) -> None:
    scene = load(textured(encoding), {"My Pic.PNG": PNG})
    assert_is_the_brick(scene)
    mesh = scene.meshes[0]
    assert mesh.uv is not None
    assert mesh.uv[mesh.faces[0]].tolist() == [[0, 0], [1, 0], [1, 1]]
    assert mesh.uv[mesh.faces[1]].tolist() == [[0, 0], [1, 1], [0, 1]]
    assert mesh.uv[mesh.faces[2]].tolist()[0] == [0.5, 0.5]
    assert not mesh.uv[mesh.faces[4:6]].any()
    assert scene.images[0].data == PNG
    assert scene.images[0].media_type == "image/png"
    assert mesh.face_material is not None
    assert {scene.materials[index].base_color_image for index in mesh.face_material} == {0}
    assert {"uv", "textures"} <= scene.features()


def test_a_missing_texture_gives_a_note_and_keeps_the_uv() -> None:
    with collecting("read") as remarks:
        scene = load(textured(name="C:\\pics\\gone.png"))
    assert_is_the_brick(scene)
    assert scene.meshes[0].uv is not None
    assert [note.code for note in remarks.notes] == ["missing_texture"]
    assert "gone.png" in remarks.notes[0].message


def test_texture_numbers_select_the_texture_of_each_face() -> None:
    uv = [0.0] * 8
    face = [[indices, uv, i % 3 - (i == 5) * 9] for i, indices in enumerate(QUADS)]
    data = ply(
        "binary_little_endian",
        ("vertex", XYZ, POINTS),
        ("face", f"{LIST}, list uchar float texcoord, int texnumber", face),
        comments=["comment TextureFile a.png", "comment TextureFile b.png"],
    )
    scene = load(data, {"a.png": PNG, "b.png": PNG + b"2"})
    assert scene.meshes[0].face_material is not None
    assert scene.meshes[0].face_material.tolist() == [0, 0, 1, 1, -1, -1, 0, 0, 1, 1, -1, -1]


# --- rejected files


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_point_cloud_is_rejected_as_an_empty_model(encoding: str) -> None:
    for elements in ([("vertex", XYZ, POINTS)], [("vertex", XYZ, POINTS), ("face", LIST, [])]):
        with pytest.raises(EmptyModel, match=r"point cloud: 8 points"):
            load(ply(encoding, *elements))


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("index", [8, -1, 2**31 - 1])
def test_the_error_names_an_index_out_of_range(encoding: str, index: int) -> None:
    faces = faces_of([*QUADS[:5], [0, 1, index]])
    place = "line 23" if encoding == "ascii" else "face 5"  # after a header of 9 lines, 8 points and 5 faces
    with pytest.raises(UnreadableFile, match=rf"{place} of the PLY file refers to vertex {index},"):
        load(ply(encoding, ("vertex", XYZ, POINTS), ("face", LIST, faces)))


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("faces", [QUADS, MIXED], ids=["equal", "mixed"])
def test_a_cut_off_file_is_rejected_or_noted(encoding: str, faces: list[list[int]]) -> None:
    data = ply(encoding, ("vertex", XYZ, POINTS), ("face", LIST, faces_of(faces)))
    for cut in range(1, len(data) - 1):
        try:
            scene, notes = load_with_notes(data[:-cut])
        except MeshhubError:
            continue
        if data[:-cut].split() == data.split():
            continue
        assert notes[0] == "wrong_count" and set(notes) <= {"wrong_count", "points_ignored"}
        assert 0 < scene.face_count < 12


@pytest.mark.parametrize("element", ["vertex", "face", "other"])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_counts_beyond_the_data_allocate_nothing(encoding: str, element: str) -> None:
    data = ply(encoding, ("other", "list int int x", [[[1]]]), ("vertex", XYZ, POINTS), ("face", LIST, faces_of(QUADS)))
    for count in (10**9, 10**17):
        lying = re.sub(rb"element " + element.encode() + rb" \d+", f"element {element} {count}".encode(), data)
        with collecting("read") as remarks:
            try:
                load(lying)
            except MeshhubError:
                continue
        assert [note.code for note in remarks.notes] == ["wrong_count"]


@pytest.mark.parametrize(
    "line",
    ["format ascii", "element face 6", "property float x", "end_header", "format ascii 1.0"],
)
def test_damaged_headers_are_rejected(line: str) -> None:
    data = ply("ascii", ("vertex", XYZ, POINTS), ("face", LIST, faces_of(QUADS))).decode()
    assert line in data
    with pytest.raises(MeshhubError):
        load(data.replace(line, line[:3] + "\x01" + line[4:], 1).encode())


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("keyword", ["comment", "obj_info"])
def test_a_wrapped_comment_line_is_read_with_a_note(encoding: str, keyword: str) -> None:
    comments = [f"{keyword} exported by a program that", "wraps its lines", "  twice, and not format", "comment last"]
    data = ply(encoding, ("vertex", XYZ, POINTS), ("face", LIST, faces_of(QUADS)), comments=comments)
    with collecting("read") as remarks:
        assert_is_the_brick(load(data))
    (note,) = remarks.notes
    assert note.code == "header_line_ignored"
    assert "line 4" in note.message and "'wraps its lines'" in note.message and "1 more" in note.message


@pytest.mark.parametrize("line", ["elment face 6", "propery float w"])
def test_a_line_without_a_keyword_that_follows_no_comment_is_rejected(line: str) -> None:
    data = ply("ascii", ("vertex", XYZ, POINTS), ("face", LIST, faces_of(QUADS)), comments=["comment x"])
    with pytest.raises(UnreadableFile, match="line 8 of the PLY header"):
        load(data.replace(b"element face 6", f"{line}\nelement face 6".encode()))


@pytest.mark.parametrize("how", [None, "tabs", "uneven", "trailing blanks", "too many numbers"])
@pytest.mark.parametrize("eol", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("word", ["x", "nan", "-inf", "1e999", "--", "0x1", "1,5", "-1.#IND"])
def test_the_error_names_the_line_of_a_bad_number(word: str, eol: str, how: str | None) -> None:
    data = ply("ascii", ("vertex", XYZ, POINTS), ("face", LIST, faces_of(MIXED))).decode()
    data = data if how is None else ODD[how](data)
    for at in (9 + 3, 9 + 8 + 2):  # in the third point, and in the second face
        lines = data.split("\n")
        blank = "\t" if how == "tabs" else " "
        lines[at - 1] = lines[at - 1].replace(lines[at - 1].split()[1], word, 1)
        assert word in lines[at - 1].split(blank)
        # an infinite index of a vertex is out of range
        with pytest.raises(
            UnreadableFile, match=rf"line {at} of the PLY file (has .* not a|refers to vertex (nan|-?inf),)"
        ):
            load(eol.join(lines).encode())


def test_the_error_names_a_bad_number_at_the_end_of_the_file() -> None:
    data = ply("ascii", ("vertex", XYZ, POINTS), ("face", LIST, faces_of(MIXED))).decode().rstrip()
    line = len(data.split("\n"))
    with pytest.raises(UnreadableFile, match=rf"line {line} of the PLY file has 'end', which is not a number"):
        load((data.rpartition(" ")[0] + " end").encode())


def test_the_error_names_a_line_that_is_not_a_complete_row() -> None:
    data = ply("ascii", ("vertex", XYZ, POINTS), ("face", LIST, faces_of(MIXED))).decode()
    for at in (9 + 3, 9 + 8 + 2):
        lines = data.split("\n")
        lines[at - 1] = lines[at - 1].rpartition(" ")[0]
        with pytest.raises(UnreadableFile, match=rf"line {at} of the PLY file is not a complete row"):
            load("\n".join(lines).encode())


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize(
    "properties",
    [
        f"{XYZ}, float f_dc_0, float f_dc_1, float f_dc_2, float opacity, float scale_0, float rot_0",
        "uint packed_position, uint packed_rotation, uint packed_scale, uint packed_color",
    ],
)
def test_a_gaussian_splat_is_named(properties: str, encoding: str) -> None:
    rows = [[1] * len(properties.split(","))] * 5
    with pytest.raises(EmptyModel, match=r"is a Gaussian splat: 5 splats and no faces; "):
        load(ply(encoding, ("vertex", properties, rows)))


def test_a_name_of_the_program_without_a_keyword_is_read_with_a_note() -> None:
    # Blender 2.47 wrote such a line; trimesh and assimp read it
    name = "Created by Blender3D 247 - www.blender.org, source file: "
    data = ply("ascii", ("vertex", XYZ, POINTS), ("face", LIST, faces_of(QUADS)), comments=[name])
    with collecting("read") as remarks:
        assert_is_the_brick(load(data))
    (note,) = remarks.notes
    assert note.code == "header_line_ignored"
    assert note.message.startswith("line 3 of the PLY header ('Created by Blender3D") and "ignored" in note.message


def test_the_error_names_the_line_of_a_damaged_first_element() -> None:
    data = ply("ascii", ("vertex", XYZ, POINTS), ("face", LIST, faces_of(QUADS)), comments=["comment x"])
    with pytest.raises(UnreadableFile, match="line 4 of the PLY header is not valid: 'elment vertex 8'"):
        load(data.replace(b"element vertex", b"elment vertex"))


@settings(max_examples=150)
@given(st.binary(max_size=200), st.integers(0, 500), st.sampled_from(ENCODINGS), st.booleans())
def test_damaged_bytes_give_a_coded_error_or_a_scene(noise: bytes, at: int, encoding: str, mixed: bool) -> None:
    good = ply(encoding, ("vertex", XYZ, POINTS), ("face", LIST, faces_of(MIXED if mixed else QUADS)))
    for data in (noise, good[:at] + noise + good[at + len(noise) :], good[:at], good[: -len(noise)] + noise):
        sniff(data, len(data))
        try:
            scene = load(data)
        except MeshhubError:
            continue
        for mesh in scene.meshes:
            assert 0 <= mesh.faces.min() <= mesh.faces.max() < len(mesh.vertices)


# --- writing


def with_attributes(mesh: Mesh) -> Mesh:
    rng = np.random.default_rng(1)
    n = len(mesh.vertices)
    normals = mesh.vertices - mesh.vertices.mean(axis=0)
    return Mesh(
        mesh.vertices,
        mesh.faces,
        normals=normals / np.linalg.norm(normals, axis=1, keepdims=True),
        uv=rng.random((n, 2)),
        colors=rng.integers(0, 256, (n, 4)),
    )


@pytest.mark.parametrize("ascii_", [False, True])
def test_vertex_attributes_survive_a_round_trip(ascii_: bool) -> None:
    mesh = with_attributes(sphere())
    data = dump(scene_of(mesh), ascii_)
    assert data == dump(scene_of(mesh), ascii_)
    again = load(data).meshes[0]
    assert np.array_equal(again.faces, mesh.faces)
    assert np.array_equal(again.vertices, mesh.vertices.astype(np.float32))
    assert again.normals is not None
    assert np.allclose(again.normals, mesh.normals, atol=1e-6)
    assert np.array_equal(again.uv, mesh.uv)
    assert np.array_equal(again.colors, mesh.colors)


@pytest.mark.parametrize("ascii_", [False, True])
def test_double_is_written_only_if_float_would_move_vertices(ascii_: bool) -> None:
    near = Mesh(sphere().vertices / 3, sphere().faces)
    assert b"property float x" in dump(scene_of(near), ascii_)
    far = move_mesh(near, 1e6, 0, 0)
    data = dump(scene_of(far), ascii_)
    assert b"property double x" in data
    assert np.array_equal(load(data).meshes[0].vertices, far.vertices)


@pytest.mark.parametrize("ascii_", [False, True])
def test_material_colors_become_vertex_colors(ascii_: bool) -> None:
    face_material = np.repeat([0, 1, -1], 4)
    mesh = Mesh(BRICK.vertices, BRICK.faces, face_material=face_material)
    materials = (Material(base_color=(1, 0, 0, 1)), Material(base_color=(0, 0, 1, 0.5)))
    again = load(dump(Scene((mesh,), (Part(0),), materials), ascii_)).meshes[0]
    assert again.colors is not None
    expected = np.array([[255, 0, 0, 255], [0, 0, 255, 128], [255, 255, 255, 255]])
    assert np.array_equal(again.colors[again.faces], expected.repeat(4, axis=0)[:, None].repeat(3, axis=1))
    assert np.array_equal(again.vertices[again.faces], mesh.vertices[mesh.faces])


def test_vertices_are_duplicated_only_at_borders_between_colors() -> None:
    ball = sphere()
    upper = (ball.vertices[ball.faces].mean(axis=1)[:, 2] > 0).astype(np.int32)
    red, also_red = Material("a", base_color=(1, 0, 0, 1)), Material("b", base_color=(1, 0, 0, 1))
    blue = Material("c", base_color=(0, 0, 1, 1))
    mesh = Mesh(ball.vertices, ball.faces, face_material=upper)
    equator = int((np.abs(ball.vertices[:, 2]) < 1e-9).sum())
    assert equator > 0
    mesh_of_equal_colors = load(dump(Scene((mesh,), (Part(0),), (red, also_red)))).meshes[0]
    two = load(dump(Scene((mesh,), (Part(0),), (red, blue)))).meshes[0]
    assert len(mesh_of_equal_colors.vertices) == len(ball.vertices)
    assert len(two.vertices) == len(ball.vertices) + equator


def test_placed_parts_are_merged() -> None:
    plain, colored = brick(), with_attributes(move_mesh(brick(), 100, 0, 0))
    mirrored = np.diag([-1.0, 1, 1, 1])
    parts = (Part(0), Part(0, mirrored, material=0), Part(1))
    scene = Scene((plain, colored), parts, (Material(base_color=(0, 1, 0, 1)),))
    with collecting("write") as remarks:
        data = dump(scene)
    again = load(data)
    vertices, faces = soup(again)
    assert volume(vertices, faces) == pytest.approx(18000)
    assert bounds(again).tolist() == bounds(scene).tolist()
    colors = again.meshes[0].colors
    assert colors is not None
    assert (colors[:8] == 255).all()
    assert (colors[8:16] == [0, 255, 0, 255]).all()
    assert np.array_equal(colors[16:], colored.colors)
    assert {note.code for note in remarks.notes} == {"materials_as_colors", "normals_dropped"}


@pytest.mark.parametrize("ascii_", [False, True])
def test_other_programs_read_written_files(ascii_: bool, tmp_path: Path) -> None:
    mesh = with_attributes(sphere())
    data = dump(scene_of(mesh), ascii_)
    loaded = trimesh.load(io.BytesIO(data), file_type="ply", process=False)
    assert np.array_equal(loaded.faces, mesh.faces)
    assert np.allclose(loaded.vertices, mesh.vertices, atol=1e-5)
    assert loaded.volume == pytest.approx(volume(mesh.vertices, mesh.faces), rel=1e-5)
    assert np.array_equal(trimesh.load(io.BytesIO(dump(Scene((Mesh(mesh.vertices, mesh.faces, colors=mesh.colors),),
        (Part(0),)), ascii_)), file_type="ply", process=False).visual.vertex_colors, mesh.colors)  # fmt: skip
    path = tmp_path / "model.ply"
    path.write_bytes(data)
    other = meshio.read(path)
    assert np.array_equal(other.cells[0].data, mesh.faces)
    assert np.allclose(other.points, mesh.vertices, atol=1e-5)


@pytest.mark.parametrize("ascii_", [False, True])
def test_assimp_reads_written_files(ascii_: bool, tmp_path: Path) -> None:
    if shutil.which("assimp") is None:
        pytest.skip("assimp is not installed")
    path = tmp_path / "model.ply"
    path.write_bytes(dump(scene_of(with_attributes(brick())), ascii_))
    output = subprocess.run(
        ["assimp", "info", str(path)], capture_output=True, text=True, timeout=300, check=True
    ).stdout
    assert "Faces:              12" in output
    assert re.search(r"Maximum point +\(10\.0+ 20\.0+ 30\.0+\)", output)


def test_corpus_files_agree_with_trimesh(corpus: Path, corpus_index: list[dict[str, str]]) -> None:
    rows = [row for row in corpus_index if row["file"].startswith("ply/")]
    converting = [row for row in rows if row["expect"] == "converts"]
    assert len(converting) > 15
    for row in rows:
        path = corpus / row["file"]
        try:
            scene = read(Source.from_path(path), NoOptions())
        except MeshhubError:
            assert row["expect"] == "either", row["file"]
            continue
        if row["expect"] != "converts":
            continue
        loaded = trimesh.load(path, force="mesh", process=False)
        assert scene.face_count == len(loaded.faces) == int(row["n_faces"]), row["file"]
        assert np.allclose(bounds(scene), loaded.bounds, rtol=1e-6, atol=1e-9), row["file"]


@pytest.mark.parametrize(
    ("properties", "values"),
    [
        ("float red, float green, float blue", ["nan", 0, 1]),
        ("int red, int green, int blue", [300, 0, -5]),
        ("uchar red, uchar green", [1, 2]),
        ("float nx, float ny, float nz", ["nan", 0, 1]),
    ],
)
def test_colors_and_normals_that_cannot_be_read_are_noted(properties: str, values: list[object]) -> None:
    vertex = [[*point, *values] for point in POINTS]
    _, notes = load_with_notes(
        ply("ascii", ("vertex", f"{XYZ}, {properties}", vertex), ("face", LIST, faces_of(QUADS)))
    )
    assert "value_ignored" in notes
