"""STL reader and writer: files of other programs, damaged files, and programs that read our files."""

from __future__ import annotations

import io
import re
import shutil
import struct
import subprocess
from pathlib import Path

import meshio
import numpy as np
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st

from meshhub.builtin_plugins.stl import StlWriterOptions
from meshhub.builtin_plugins.stl.reader import read
from meshhub.builtin_plugins.stl.sniff import sniff
from meshhub.builtin_plugins.stl.writer import write
from meshhub.errors import ConversionFailed, EmptyModel, MeshhubError, UnreadableFile
from meshhub.model.capabilities import NoOptions
from meshhub.model.notes import Remarks, collecting
from meshhub.model.scene import Float64, Material, Mesh, Part, Scene
from meshhub.model.source import Source, Target
from meshhub.toolkit.geometry import bounds, soup
from models import brick, edge_counts, move_mesh, scene_of, sphere, volume

pytestmark = pytest.mark.once


def load(data: bytes) -> Scene:
    return read(Source.from_bytes(data, "model.stl"), NoOptions())


def load_with_notes(data: bytes) -> tuple[Scene, list[str]]:
    with collecting("read") as remarks:
        scene = load(data)
    return scene, codes(remarks)


def codes(remarks: Remarks) -> list[str]:
    return [note.code for note in remarks.notes]


def dump(scene: Scene, ascii_: bool = False) -> bytes:
    target = Target("model.stl")
    write(scene, target, StlWriterOptions(stl_ascii=ascii_))
    return target.read()


def binary(
    corners: Float64, header: bytes = b"made by a test", attributes: object = 0, count: int | None = None
) -> bytes:
    rows = np.zeros(len(corners), [("n", "<f4", 3), ("v", "<f4", (3, 3)), ("a", "<u2")])
    rows["v"] = corners
    rows["a"] = attributes
    return header.ljust(80, b" ") + struct.pack("<I", len(corners) if count is None else count) + rows.tobytes()


def text(corners: Float64, name: str = "thing", line: str = "\n") -> str:
    lines = [f"solid {name}"]
    for triangle in corners:
        lines += ["facet normal 0 0 1", " outer loop"]
        lines += [f"  vertex {x:g} {y:g} {z:g}" for x, y, z in triangle]
        lines += [" endloop", "endfacet"]
    return line.join([*lines, f"endsolid {name}", ""])


BRICK = brick()
CORNERS = BRICK.vertices[BRICK.faces]


def assert_is_the_brick(scene: Scene) -> None:
    vertices, faces = soup(scene)
    assert len(vertices) == 8
    assert len(faces) == 12
    assert edge_counts(faces) == (0, 0)
    assert bounds(scene).tolist() == [[0, 0, 0], [10, 20, 30]]
    assert volume(vertices, faces) == pytest.approx(6000)


# --- binary


@pytest.mark.parametrize("header", [b"made by a test", b"solid thing", b"solid facet normal", b"\0" * 80, b"\xff" * 80])
def test_binary_is_detected_by_size_with_any_header(header: bytes) -> None:
    data = binary(CORNERS, header)
    assert sniff(data, len(data)) >= 90
    assert_is_the_brick(load(data))


@pytest.mark.parametrize("count", [0, 5, 13, 2**32 - 1])
def test_a_wrong_count_gives_a_note_and_all_triangles(count: int) -> None:
    scene, notes = load_with_notes(binary(CORNERS, count=count))
    assert_is_the_brick(scene)
    assert notes == ["wrong_count"]


@pytest.mark.parametrize("tail", [b"x", b"trailing", b"\0" * 50, b"\xff" * 100])
def test_bytes_after_the_last_triangle_are_ignored(tail: bytes) -> None:
    scene, notes = load_with_notes(binary(CORNERS, b"solid x") + tail)
    assert_is_the_brick(scene)
    assert notes == ["trailing_bytes"]


@pytest.mark.parametrize("missing", [1, 49, 51, 301])
def test_the_error_of_a_cut_off_binary_counts_the_complete_triangles(missing: int) -> None:
    whole = (600 - missing) // 50
    with pytest.raises(UnreadableFile, match=rf"declares 12 triangles, and {whole} are complete"):
        load(binary(CORNERS)[:-missing])


def test_a_file_cut_off_between_triangles_is_read_with_a_note() -> None:
    with collecting("read") as remarks:
        scene = load(binary(CORNERS)[:-100])
    assert scene.face_count == 10
    assert "10 of 12" in remarks.notes[0].message


def test_a_binary_without_triangles_is_empty() -> None:
    with pytest.raises(EmptyModel):
        load(binary(np.empty((0, 3, 3))))


@pytest.mark.parametrize("data", [b"", b"x", b"\x80\x81" * 30, b"\x93" * 5000, b"P" * 84])
def test_files_that_are_not_stl_are_rejected(data: bytes) -> None:
    assert sniff(data, len(data)) == 0
    with pytest.raises(UnreadableFile):
        load(data)


def test_negative_zero_is_zero_when_points_are_welded() -> None:
    corners = CORNERS.copy()
    corners[::2][corners[::2] == 0] = -0.0
    assert_is_the_brick(load(binary(corners)))


# --- colors


def color_of_face(scene: Scene, face: int) -> tuple[int, ...] | None:
    own = scene.meshes[0].face_material
    assert own is not None
    if own[face] < 0:
        return None
    return tuple(round(255 * part) for part in scene.materials[own[face]].base_color)


def test_viscam_colors_have_bit_15_set_and_blue_lowest() -> None:
    attributes = np.zeros(12, np.uint16)
    attributes[0] = 0x8000 | 31 << 10  # red
    attributes[1] = 0x8000 | 31  # blue
    attributes[2] = 31  # bit 15 clear: none
    scene = load(binary(CORNERS, attributes=attributes))
    assert color_of_face(scene, 0) == (255, 0, 0, 255)
    assert color_of_face(scene, 1) == (0, 0, 255, 255)
    assert color_of_face(scene, 2) is None
    assert len(scene.materials) == 2
    assert "materials" in scene.features()


def test_magics_colors_have_bit_15_clear_and_red_lowest() -> None:
    attributes = np.full(12, 0x8000, np.uint16)
    attributes[0] = 31  # red
    attributes[1] = 31 << 10  # blue
    scene = load(binary(CORNERS, b"made by COLOR=\x00\x80\x00\xff,MATERIAL=", attributes))
    assert color_of_face(scene, 0) == (255, 0, 0, 255)
    assert color_of_face(scene, 1) == (0, 0, 255, 255)
    assert color_of_face(scene, 2) == (0, 128, 0, 255)
    assert len(scene.materials) == 3


def test_the_magics_body_color_applies_without_face_colors() -> None:
    assert color_of_face(load(binary(CORNERS, b"COLOR=\x10\x20\x30\xff")), 0) == (16, 32, 48, 255)


@pytest.mark.parametrize(
    ("header", "attributes"), [(b"COLOR=\x7f\x7f\x7f MATERIAL=", 0), (b"Blender", 0x2020), (b"CAD", 0x8000)]
)
def test_default_gray_and_attributes_without_bits_of_colors_give_no_materials(header: bytes, attributes: int) -> None:
    scene = load(binary(CORNERS, header, attributes))
    assert scene.materials == ()
    assert scene.meshes[0].face_material is None


# --- text


@pytest.mark.parametrize("line", ["\n", "\r\n", "\r", "\n\n", "  \n"])
@pytest.mark.parametrize("upper", [False, True])
def test_text_is_read_with_any_line_ends_and_case(line: str, upper: bool) -> None:
    written = text(CORNERS, line=line)
    scene, notes = load_with_notes((written.upper() if upper else written).encode())
    assert_is_the_brick(scene)
    assert scene.parts[0].name == ("THING" if upper else "thing")
    assert notes == []


MANGLED = {
    "tabs": lambda s: s.replace(" ", "\t"),
    "double blanks": lambda s: s.replace("vertex ", "vertex   ").replace("  vertex", " vertex"),
    "uneven blanks": lambda s: s.replace("vertex 10", "vertex    10"),
    "one line": lambda s: " ".join(s.split()),
    "comments": lambda s: "# made\n" + s.replace("\n", " # note solid vertex 1 2\n"),
    "decimal commas": lambda s: s.replace("10", "10,0").replace("20", "20,000"),
    "commas between": lambda s: s.replace("vertex 10 ", "vertex 10.0, "),
    "commas after every number": lambda s: s.replace("vertex 10 ", "vertex 10.0, ").replace(" 20\n", " 20,\n"),
    "exponents": lambda s: s.replace(" 10", " +1.0E+01"),
    "mixed case": lambda s: s.replace("endfacet", "ENDFACET", 3).replace("outer loop", "Outer Loop", 5),
    "upper case end": lambda s: s.replace("endsolid", "ENDSOLID"),
    "byte order mark": lambda s: "\ufeff" + s,
    "leading blank lines": lambda s: "\n  \n" + s,
    "wild normals": lambda s: s.replace("normal 0 0 1", "normal nan -1.#IND 1e400"),
}


@pytest.mark.parametrize("how", MANGLED)
def test_irregular_text_is_read(how: str) -> None:
    data = MANGLED[how](text(CORNERS)).encode()
    assert sniff(Source.from_bytes(data, "a.stl").head(), len(data)) >= 50
    scene, notes = load_with_notes(data)
    assert_is_the_brick(scene)
    assert notes == []


def test_separators_of_thousands_are_read() -> None:
    scene = load(text(CORNERS).replace("vertex 10 ", "vertex 1,000.0 ").encode())
    assert max(mesh.vertices[:, 0].max() for mesh in scene.meshes) == 1000


def test_a_decimal_comma_beside_decimal_points_is_rejected() -> None:
    mixed = text(CORNERS).replace("vertex 10 ", "vertex 10.5 ").replace("vertex 0 ", "vertex 0,5 ")
    with pytest.raises(UnreadableFile, match="'0,5' in place of a number"):
        load(mixed.encode())


def test_text_without_a_header_is_read_with_a_note() -> None:
    body = text(CORNERS).split("\n", 1)[1].rsplit("endsolid", 1)[0]
    scene, notes = load_with_notes(body.encode())
    assert_is_the_brick(scene)
    assert scene.parts[0].name == ""
    assert notes == ["no_end"]


@pytest.mark.parametrize("regular", [True, False])
def test_each_solid_becomes_a_part_with_its_name(regular: bool) -> None:
    names = ["Body A", "größe #2", "facet solid", ""]
    pieces = [text(move_mesh(BRICK, 50 * i, 0, 0).vertices[BRICK.faces], name) for i, name in enumerate(names)]
    written = "".join(pieces)
    scene = load((written if regular else written.replace("vertex 0", "vertex  0")).encode())
    assert [part.name for part in scene.parts] == names
    for index, mesh in enumerate(scene.meshes):
        assert len(mesh.vertices) == 8
        assert mesh.vertices[:, 0].min() == 50 * index


def test_a_solid_without_facets_is_skipped_with_a_note() -> None:
    scene, notes = load_with_notes((text(CORNERS) + "solid nothing\nendsolid nothing\n").encode())
    assert [part.name for part in scene.parts] == ["thing"]
    assert notes == ["empty_solids"]


@pytest.mark.parametrize("data", [b"solid Empty\nendsolid Empty", b"solid", b"solid\n" + b" " * 200 + b"\nendsolid"])
def test_a_text_without_facets_is_empty(data: bytes) -> None:
    with pytest.raises(EmptyModel):
        load(data)


@pytest.mark.parametrize("part", ["facet normal 0", "vertex 1", "vertex 1 2 3\n vertex 1 2 3\n", "endloop"])
def test_text_cut_off_inside_a_facet_is_rejected(part: str) -> None:
    whole = text(CORNERS).rsplit("endsolid", 1)[0]
    opening = "" if part.startswith("facet") else "facet normal 0 0 1\n outer loop\n"
    with pytest.raises(UnreadableFile, match=r"facet 13, after 12 complete"):
        load((whole + opening + part).encode())


def test_the_note_of_text_cut_off_between_facets_counts_the_triangles() -> None:
    with collecting("read") as remarks:
        assert load(text(CORNERS).rsplit("endsolid", 1)[0].encode()).face_count == 12
    assert "12 triangles" in remarks.notes[0].message


def test_facets_with_four_vertices_become_two_triangles() -> None:
    facet = "facet normal 0 0 1\nouter loop\n{}\nendloop\nendfacet\n"
    square = "vertex 0 0 0\nvertex 2 0 0\nvertex 2 2 0\nvertex 0 2 0"
    scene, notes = load_with_notes(f"solid q\n{facet.format(square)}endsolid q\n".encode())
    assert scene.face_count == 2
    assert notes == ["polygons"]


def test_digits_beyond_single_precision_are_kept() -> None:
    corners = np.array([[[0, 0, 0], [1.00000000001, 0, 0], [0, 1, 0]]])
    written = text(corners).replace("vertex 1 0 0", "vertex 1.00000000001 0 0")
    assert load(written.encode()).meshes[0].vertices.max() == 1.00000000001


@pytest.mark.parametrize("layout", ["regular", "tabs", "comments", "blank lines", "CRLF", "upper case", "no facets"])
@pytest.mark.parametrize("word", ["1.2.3", "abc", "--1", "0x10", "nan", "-inf", "1e999", "1,x"])
def test_the_error_names_the_line_of_a_bad_number(word: str, layout: str) -> None:
    lines = ["solid of a vertex", *text(CORNERS).splitlines()[1:]]
    at = [number for number, line in enumerate(lines) if "vertex" in line and number][4]
    lines[at] = lines[at].rpartition(" ")[0] + f" {word}"
    if layout == "tabs":
        lines = [line.replace(" ", "\t") for line in lines]
    elif layout == "comments":
        lines = [f"{line} # a vertex" if number else line for number, line in enumerate(lines)]
    elif layout == "blank lines":
        lines, at = [part for line in lines for part in ("", line)], 2 * at + 1
    elif layout == "upper case":
        lines = [line.upper() for line in lines]
        word = word.upper()
    elif layout == "no facets":
        lines = [line if "vertex" in line else "" for line in lines]
    with pytest.raises(
        UnreadableFile, match=rf"line {at + 1} of the STL text has '{re.escape(word.lower())}' in place"
    ):
        load(("\r\n" if layout == "CRLF" else "\n").join(lines).encode())


# --- writing


def test_binary_is_reproducible_and_never_starts_with_solid() -> None:
    scene = scene_of(brick(name="solid"), move_mesh(sphere(), 100, 0, 0))
    data = dump(scene)
    assert data == dump(scene)
    assert not data.startswith(b"solid")
    assert b"COLOR=" not in data[:80]
    assert data[:80] == dump(scene_of(brick()))[:80]
    assert len(data) == 84 + 50 * scene.face_count


@pytest.mark.parametrize("ascii_", [False, True])
def test_normals_have_unit_length_and_point_outward(ascii_: bool) -> None:
    data = dump(scene_of(sphere(5)), ascii_)
    other = trimesh.load(io.BytesIO(data), file_type="stl", process=False)
    given_normals = other.face_normals
    if not ascii_:
        rows = np.frombuffer(data, [("n", "<f4", 3), ("v", "<f4", (3, 3)), ("a", "<u2")], offset=84)
        given_normals = rows["n"]
        assert not rows["a"].any()
    assert np.allclose(np.linalg.norm(given_normals, axis=1), 1, atol=1e-6)
    assert (np.einsum("ij,ij->i", given_normals, other.triangles_center) > 0).all()


def test_degenerate_faces_get_zero_normals() -> None:
    mesh = Mesh(np.array([[0, 0, 0], [1, 0, 0], [2, 0, 0]], float), np.array([[0, 1, 2]]))
    for ascii_ in (False, True):
        data = dump(scene_of(mesh), ascii_)
        assert b"nan" not in data
        assert load(data).face_count == 1


@pytest.mark.parametrize("ascii_", [False, True])
def test_instances_are_placed_and_mirrors_stay_outward(ascii_: bool) -> None:
    mirrored = np.diag([-1.0, 1, 1, 1])
    scene = Scene((brick(),), (Part(0, name="one"), Part(0, mirrored, name="two")))
    again = load(dump(scene, ascii_))
    vertices, faces = soup(again)
    assert bounds(again).tolist() == [[-10, 0, 0], [10, 20, 30]]
    assert volume(vertices, faces) == pytest.approx(12000)
    assert [part.name for part in again.parts] == (["one", "two"] if ascii_ else [""])


@pytest.mark.parametrize("name", ["two\nlines", "a\tb\r\n", "  blanks  ", "endsolid", "größe", "\x00\x07", ""])
def test_names_are_kept_to_one_line(name: str) -> None:
    data = dump(scene_of(brick(name=name), move_mesh(brick(name="other"), 50, 0, 0)), ascii_=True)
    assert data.count(b"solid ") + data.count(b"solid\n") == 4 + name.count("endsolid") * 2
    again = load(data)
    expected = " ".join(name.replace("\x00", " ").replace("\x07", " ").split())
    assert [part.name for part in again.parts] == [expected, "other"]
    assert again.face_count == 24


def test_coordinates_beyond_float32_are_rejected() -> None:
    with pytest.raises(ConversionFailed):
        dump(scene_of(Mesh(BRICK.vertices * 1e38, BRICK.faces)))


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.integers(-30, 30), st.booleans())
def test_written_files_read_back_exactly(seed: int, count: int, magnitude: int, ascii_: bool) -> None:
    rng = np.random.default_rng(seed)
    vertices = (rng.normal(size=(count + 2, 3)) * 10.0**magnitude).astype(np.float32).astype(np.float64)
    faces = rng.integers(0, len(vertices), (count, 3))
    again = load(dump(scene_of(Mesh(vertices, faces, name="x")), ascii_)).meshes[0]
    assert np.array_equal(again.vertices[again.faces].astype(np.float32), vertices[faces].astype(np.float32))
    assert len(np.unique(again.vertices, axis=0)) == len(again.vertices)


@pytest.mark.parametrize("ascii_", [False, True])
def test_other_programs_read_written_files(ascii_: bool, tmp_path: Path) -> None:
    scene = scene_of(brick(name="a"), move_mesh(sphere(name="b"), 100, 0, 0))
    vertices, faces = soup(scene)
    path = tmp_path / "model.stl"
    path.write_bytes(dump(scene, ascii_))
    loaded = trimesh.load(path, force="mesh")
    assert loaded.is_watertight
    assert loaded.volume == pytest.approx(volume(vertices, faces), rel=1e-6)
    assert np.allclose(loaded.bounds, bounds(scene), rtol=1e-6)
    if not ascii_:  # meshio reads only one solid
        assert len(meshio.read(path).cells[0].data) == len(faces)


@pytest.mark.parametrize("ascii_", [False, True])
def test_assimp_reads_written_files(ascii_: bool, tmp_path: Path) -> None:
    if shutil.which("assimp") is None:
        pytest.skip("assimp is not installed")
    path = tmp_path / "model.stl"
    path.write_bytes(dump(scene_of(brick(name="a")), ascii_))
    output = subprocess.run(
        ["assimp", "info", str(path)], capture_output=True, text=True, timeout=300, check=True
    ).stdout
    assert "Faces:              12" in output
    assert re.search(r"Maximum point +\(10\.0+ 20\.0+ 30\.0+\)", output)


def test_materials_are_not_written() -> None:
    mesh = Mesh(BRICK.vertices, BRICK.faces, face_material=np.zeros(12, np.int32))
    colored = Scene((mesh,), (Part(0),), (Material(base_color=(1, 0, 0, 1)),))
    assert dump(colored) == dump(scene_of(brick()))


# --- hostile


@settings(max_examples=150)
@given(st.binary(max_size=400), st.integers(0, 700), st.booleans())
def test_damaged_bytes_give_a_coded_error_or_a_scene(noise: bytes, at: int, ascii_: bool) -> None:
    good = dump(scene_of(brick()), ascii_)
    for data in (noise, good[:at] + noise + good[at + len(noise) :], good[:at]):
        sniff(data, len(data))
        try:
            scene = load(data)
        except MeshhubError:
            continue
        for mesh in scene.meshes:
            assert 0 <= mesh.faces.min() <= mesh.faces.max() < len(mesh.vertices)


@pytest.mark.parametrize(
    "data",
    [
        b"solid facet normal 0 0 1 " + b"endsolid x " * 50_000,
        b"facet normal 0 0 1 vertex 1 2 3\n" + b"solid\n" * 150_000,
        b"solid a\nfacet normal 0 0 1\n" + b"vertex " * 100_000,
        b"#" * 300_000 + b"\nsolid x\nfacet normal",
    ],
)
def test_hostile_text_is_rejected_in_linear_time(data: bytes) -> None:
    with pytest.raises(MeshhubError):
        load(data)


def test_corpus_files_agree_with_trimesh(corpus: Path, corpus_index: list[dict[str, str]]) -> None:
    rows = [row for row in corpus_index if row["file"].startswith("stl/") and row["expect"] == "converts"]
    assert len(rows) > 30
    for row in rows:
        path = corpus / row["file"]
        scene = read(Source.from_path(path), NoOptions())
        loaded = trimesh.load(path, force="mesh", process=False)
        assert scene.face_count == len(loaded.faces) == int(row["n_faces"]), row["file"]
        assert np.allclose(bounds(scene), loaded.bounds, rtol=1e-6, atol=1e-9), row["file"]
        assert sniff(path.read_bytes()[:65536], path.stat().st_size) >= 50, row["file"]


@pytest.mark.parametrize(
    ("place", "text_with_color"),
    [
        ("solid thing\n", "solid thing\ncolor 0.5 0.5 0.5\n"),
        (" outer loop", "color 1 0 0\n outer loop"),
        ("endfacet", "endfacet color 31"),
    ],
)
def test_color_lines_of_text_are_noted(place: str, text_with_color: str) -> None:
    scene, notes = load_with_notes(text(CORNERS).replace(place, text_with_color).encode())
    assert_is_the_brick(scene)
    assert "value_ignored" in notes
