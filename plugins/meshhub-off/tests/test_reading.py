"""OFF files in the layouts of other programs, and damaged files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from meshhub_off.reader import read
from off_files import BRICK

from meshhub import MeshhubError, Registry, Source, UnreadableFile
from meshhub.model.capabilities import NoOptions
from meshhub.model.notes import collecting

SQUARE = "0 0 0\n4 0 0\n4 4 0\n0 4 0\n"


def scene(text: str) -> Any:
    return read(Source.from_bytes(text.encode(), "a.off"), NoOptions())


def mesh(text: str) -> Any:
    return scene(text).meshes[0]


@pytest.mark.parametrize(
    "text",
    [
        f"OFF\n4 1 4\n{SQUARE}4 0 1 2 3\n",
        f"OFF\n4 1\n{SQUARE}4 0 1 2 3\n",
        f"OFF 4 1 4\n{SQUARE}4 0 1 2 3",
        f"OFF\n4\n1\n4\n{SQUARE}4 0 1 2 3\n",
        f"OFF\n4 1\n0\n{SQUARE}4 0 1 2 3\n",
        f"# made by hand\n\nOFF # the word\n# counts\n4 1 0 # and edges\n\n{SQUARE}\n  4   0 1 2 3 # a square\n\n",
        f"OFF\r\n4 1 0\r\n{SQUARE}4 0 1 2 3\r\n".replace("\r\n", "\n").replace("\n", "\r\n"),
        f"OFF\n4 1 0\n{SQUARE}4 0 1 2 3\n".replace("\n", "\r"),
        "OFF\n4 1 0\n0 0 0 4 0 0 4 4 0 0 4 0\n4 0 1 2 3\n",
        f"\ufeffOFF\n4 1 0\n{SQUARE}4 0 1 2 3\n",
        f"OFF\n4 1 0\n{SQUARE}4 0 1 2 3\n1 2 3",
    ],
)
def test_a_square_is_read_in_every_layout(text: str) -> None:
    square = mesh(text)
    assert square.vertices.tolist() == [[0, 0, 0], [4, 0, 0], [4, 4, 0], [0, 4, 0]]
    assert sorted(map(sorted, square.faces.tolist())) == [[0, 1, 2], [0, 2, 3]]


def test_a_concave_polygon_keeps_its_area() -> None:
    polygon = mesh("OFF\n5 1 0\n0 0 0\n4 0 0\n4 4 0\n2 1 0\n0 4 0\n5 0 1 2 3 4\n")
    a, b, c = (polygon.vertices[polygon.faces[:, corner]] for corner in range(3))
    assert np.cross(b - a, c - a)[:, 2].sum() / 2 == pytest.approx(10)
    assert len(polygon.faces) == 3


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("255 0 128 255", [255, 0, 128, 255]),
        ("1.0 0 0.5 1", [255, 0, 128, 255]),
        ("255 0 128", [255, 0, 128, 255]),
    ],
)
@pytest.mark.parametrize("word", ["COFF", "OFF"])
def test_vertex_colors(row: str, expected: list[int], word: str) -> None:
    rows = "".join(f"{line} {row}\n" for line in SQUARE.splitlines())
    assert mesh(f"{word}\n4 1 0\n{rows}4 0 1 2 3\n").colors.tolist() == [expected] * 4


def test_normals_colors_and_texture_coordinates_in_their_order() -> None:
    rows = "".join(f"{line} 0 0 1 9 8 7 255 0.25 0.75\n" for line in SQUARE.splitlines())
    result = mesh(f"STCNOFF\n4 1 0\n{rows}4 0 1 2 3\n")
    assert result.normals.tolist() == [[0, 0, 1]] * 4
    assert result.colors.tolist() == [[9, 8, 7, 255]] * 4
    assert result.uv.tolist() == [[0.25, 0.75]] * 4


@pytest.mark.parametrize("word", ["OFF4 1 0", "OFF 4 1 0", "off\n4 1 0", "OFF4 1", "4 1 0", "# by hand\n4 1 0"])
def test_the_first_word_may_lack_a_line_of_its_own(word: str) -> None:
    """ModelNet writes digits behind the word; in Geomview, the word is optional."""
    data = f"{word}\n{SQUARE}4 0 1 2 3\n".encode()
    report = Registry().inspect(Source.from_bytes(data, "a.off"))
    assert report.model.faces == 2
    assert report.model.size_mm == pytest.approx((4, 4, 0))


@pytest.mark.parametrize("word", ["NCOFF", "CNOFF", "NCSTOFF", "STCNOFF", "CSTNOFF", "ST C NOFF"])
@pytest.mark.parametrize("is_color_first", [False, True])
def test_letters_of_the_first_word_may_have_any_order(word: str, is_color_first: bool) -> None:
    """MeshLab writes colors before normals, Geomview normals before colors; both have NC in files."""
    uv = " 0.25 0.75" if "ST" in word else ""
    row = f"255 128 0 255 0 0.6 0.8{uv}" if is_color_first else f"0 0.6 0.8 255 128 0 255{uv}"
    rows = "".join(f"{line} {row}\n" for line in SQUARE.splitlines())
    result = mesh(f"{word}\n4 1 0\n{rows}4 0 1 2 3\n")
    assert result.colors.tolist() == [[255, 128, 0, 255]] * 4
    assert result.normals == pytest.approx(np.array([[0, 0.6, 0.8]] * 4))
    assert (result.uv is not None) == ("ST" in word)


def test_negative_numbers_without_a_letter_are_normals() -> None:
    rows = "".join(f"{line} 0 0 -1\n" for line in SQUARE.splitlines())
    result = mesh(f"OFF\n4 1 0\n{rows}4 0 1 2 3\n")
    assert result.colors is None
    assert result.normals.tolist() == [[0, 0, -1]] * 4


def test_faces_may_mix_bytes_and_fractions() -> None:
    painted = scene(f"OFF\n4 3 0\n{SQUARE}3 0 1 2 255 0 0\n3 0 2 3 0.5 0.5 1.0 1\n3 0 1 3 1 0 0\n")
    colors = [painted.materials[index].base_color for index in painted.meshes[0].face_material]
    assert colors == [(1, 0, 0, 1), (128 / 255, 128 / 255, 1, 1), (1 / 255, 0, 0, 1)]


def test_face_colors_become_materials() -> None:
    painted = scene(f"OFF\n4 3 0\n{SQUARE}3 0 1 2 255 0 0\n3 0 2 3 0 255 0 128\n3 0 1 3\n")
    colors = [painted.materials[index].base_color for index in painted.meshes[0].face_material[:2]]
    assert colors == [(1, 0, 0, 1), (0, 1, 0, 128 / 255)]
    assert painted.meshes[0].face_material[2] == -1


def test_skipped_faces_and_colors_give_notes() -> None:
    with collecting("read") as remarks:
        scene(f"OFF\n4 2 0\n{SQUARE}2 0 1\n3 0 1 2 5\n")
    assert [note.code for note in remarks.notes] == ["faces_left_out", "color_numbers_left_out"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("OFF BINARY\n\0\0", "binary OFF"),
        ("4OFF\n1 1 0\n", "three numbers"),
        ("nOFF\n4\n1 1 0\n", "three numbers"),
        ("PLY\n", "does not begin with the word OFF"),
        ("OFF\n", "numbers of vertices and faces are missing"),
        ("OFF\n999999999999 1 0\n0 0 0\n", "cut off"),
        (f"OFF\n4 9 0\n{SQUARE}3 0 1 2\n", "it declares 9 faces"),
        (f"OFF\n4 1 0\n{SQUARE}3 0 1 4\n", "refers to a vertex outside"),
        (f"OFF\n4 1 0\n{SQUARE}3 0 1 -1\n", "refers to a vertex outside"),
        (f"OFF\n4 1 0\n{SQUARE}9 0 1 2\n", "corner count of a face"),
        (f"OFF\n4 1 0\n{SQUARE}3 0 1 two\n", "not a number"),
        (f"OFF\n4 1 0\n{SQUARE.replace('4 4 0', '4 nan 0')}3 0 1 2\n", "infinite or NaN numbers"),
    ],
)
def test_the_error_of_an_unreadable_file_says_why(text: str, message: str) -> None:
    with pytest.raises(UnreadableFile, match=message):
        scene(text)


def test_a_file_without_faces_is_an_empty_model() -> None:
    with pytest.raises(MeshhubError) as caught:
        Registry().inspect(Source.from_bytes(f"OFF\n4 0 0\n{SQUARE}".encode(), "points.off"))
    assert caught.value.error_code == "empty_model"


def test_content_is_detected_under_any_name() -> None:
    inspection = Registry().inspect(Source.from_bytes(BRICK, "brick.stl"))
    assert inspection.source.format == "off"
    assert [note.code for note in inspection.notes] == ["content_beats_name"]
