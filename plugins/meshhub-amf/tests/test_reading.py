"""AMF files in the layouts of other programs, and damaged files."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest
from amf_files import amf

from meshhub import MeshhubError, Registry, Scene, Source
from meshhub.toolkit.geometry import bounds, signed_volume, soup

RED, BLUE = "<color><r>1</r><g>0</g><b>0</b></color>", "<color><r>0</r><g>0</g><b>1</b><a>0.5</a></color>"

REGISTRY = Registry()


def read(data: bytes) -> Scene:
    return REGISTRY.read(Source.from_bytes(data, "a.amf"), input_format="amf")


def codes(data: bytes) -> list[str]:
    return [note.code for note in REGISTRY.inspect(Source.from_bytes(data, "a.amf"), input_format="amf").notes]


def corner_colors(scene: Scene) -> set[tuple[float, ...]]:
    """Return the visible colors of all corners of all faces."""
    palette = np.array([*(material.base_color for material in scene.materials), (1, 1, 1, 1)])
    seen: set[tuple[float, ...]] = set()
    for part in scene.parts:
        mesh = scene.meshes[part.mesh]
        own = np.full(len(mesh.faces), -1) if mesh.face_material is None else mesh.face_material
        index = np.where(own < 0, -1 if part.material is None else part.material, own)
        vertex = 1 if mesh.colors is None else mesh.colors[mesh.faces] / 255
        rows = np.round(palette[index][:, None] * np.broadcast_to(vertex, (len(own), 3, 4)), 2)
        seen |= {tuple(row) for row in rows.reshape(-1, 4).tolist()}
    return seen


@pytest.mark.parametrize(("unit", "mm"), [("inch", 25.4), ("feet", 304.8), ("meter", 1000), ("micron", 0.001)])
def test_units(unit: str, mm: float) -> None:
    assert bounds(read(amf(unit=unit))).tolist() == [[0, 0, 0], pytest.approx([10 * mm, 20 * mm, 30 * mm])]


def test_archives_and_utf_16() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("brick.amf", amf())
    for data in (buffer.getvalue(), amf().decode().replace("utf-8", "utf-16").encode("utf-16")):
        assert signed_volume(*soup(read(data))) == pytest.approx(6000)
        assert REGISTRY.inspect(Source.from_bytes(data, "a.bin")).source.format == "amf"


def test_the_color_of_a_triangle_wins_over_vertices_volume_and_object() -> None:
    data = amf(vertex=RED).replace(b"<triangle><v1>3", f"<triangle>{BLUE}<v1>3".encode())
    assert corner_colors(read(data)) == {(1, 0, 0, 1), (0, 0, 1, 0.5)}
    data = amf().replace(b"<volume>", f"<volume>{RED}".encode()).replace(b'id="1">', f'id="1">{BLUE}'.encode())
    assert corner_colors(read(data)) == {(1, 0, 0, 1)}
    data = amf().replace(b'id="1">', f'id="1">{BLUE}'.encode())
    assert corner_colors(read(data)) == {(0, 0, 1, 0.5)}


def test_a_vertex_without_color_gets_that_of_the_material() -> None:
    material = f'<material id="7"><metadata type="name">PLA</metadata>{BLUE}</material>'
    data = amf(before=material).replace(b"<volume>", b'<volume materialid="7">')
    scene = read(data)
    assert [(each.name, each.base_color) for each in scene.materials] == [("PLA", (0, 0, 1, 0.5))]
    scene = read(data.replace(b"<vertex>", f"<vertex>{RED}".encode(), 1))
    assert corner_colors(scene) == {(1, 0, 0, 1), (0, 0, 1, 0.5)}


def test_names_and_metadata() -> None:
    data = amf(before='<metadata type="name">Plate</metadata><metadata type="author">Ann &amp; Bo</metadata>')
    data = data.replace(b'id="1">', b'id="1"><metadata type="name"><![CDATA[a < b]]></metadata>')
    scene = read(data)
    assert (scene.name, dict(scene.metadata), scene.parts[0].name) == ("Plate", {"author": "Ann & Bo"}, "a < b")


def test_nested_constellations_place_instances() -> None:
    data = amf(
        after='<constellation id="8"><instance objectid="1"><deltax>5</deltax><rz>90</rz></instance>'
        '<instance objectid="1"/></constellation><constellation id="9">'
        '<instance objectid="8"><deltaz>100</deltaz><rx>90</rx></instance></constellation>'
    )
    scene = read(data)
    assert [part.mesh for part in scene.parts] == [0, 0]
    assert bounds(scene).round(9).tolist() == [[-15, -30, 100], [10, 0, 120]]


def test_slic3r_angles_are_radians() -> None:
    data = amf(
        before='<metadata type="cad">Slic3r 2.5.0</metadata>',
        after='<constellation id="8"><instance objectid="1"><rz>1.5707963267948966</rz><scalez>2</scalez>'
        "<mirrorx>-1</mirrorx></instance></constellation>",
    )
    scene = read(data)
    assert bounds(scene).round(9).tolist() == [[-20, -10, 0], [0, 0, 60]]
    assert signed_volume(*soup(scene)) == pytest.approx(12000)


SETTING = '<metadata type="slic3r.{}">{}</metadata>'


@pytest.mark.parametrize(
    ("metadata", "kind"),
    [
        ((("modifier", "1"), ("volume_type", "ParameterModifier")), "modifiers: 1"),
        ((("modifier", "1"),), "modifiers: 1"),
        ((("volume_type", "SupportBlocker"),), "support enforcers or blockers: 1"),
        ((("volume_type", "NegativeVolume"),), "negative volumes (the cut was not applied): 1"),
        ((("modifier", "0"), ("extruder", "2")), ""),
        ((("modifier", "1"), ("volume_type", "ModelPart")), ""),
    ],
)
def test_volumes_that_are_not_printed_are_left_out(metadata: tuple[tuple[str, str], ...], kind: str) -> None:
    head, _, rest = amf().partition(b"<volume>")
    volume = rest.partition(b"</volume>")[0]
    settings = "".join(SETTING.format(*each) for each in metadata).encode()
    data = head + b"<volume>" + settings + volume + b"</volume><volume>" + rest
    report = REGISTRY.inspect(Source.from_bytes(data, "a.amf"), input_format="amf")
    assert len(read(data).parts) == (1 if kind else 2)
    assert [note.message.rpartition("; ")[2] for note in report.notes] == ([kind] if kind else [])


@pytest.mark.parametrize(("second", "count", "code"), [("0", 2, "not_printable_read"), ("1", 1, "instance_skipped")])
def test_instances_are_all_read_if_none_is_printable(second: str, count: int, code: str) -> None:
    instances = "".join(
        f'<instance objectid="1"><deltax>{9 * number}</deltax><printable>{value}</printable></instance>'
        for number, value in enumerate(("0", second))
    )
    data = amf(after=f'<constellation id="8">{instances}</constellation>')
    assert len(read(data).parts) == count
    assert code in codes(data)


def test_objects_and_constellations_have_ids_of_their_own() -> None:
    """PrusaSlicer and Slic3r number objects from 0, and name their only constellation 1."""
    brick = amf().partition(b"<object")[2].partition(b"</object>")[0].partition(b">")[2]
    objects = b"".join(b'<object id="%d">%s</object>' % (number, brick) for number in range(3))
    instances = "".join(
        f'<instance objectid="{number}"><deltax>{100 * number}</deltax></instance>' for number in (0, 1, 2)
    )
    data = b'<amf unit="millimeter">' + objects + f'<constellation id="1">{instances}</constellation></amf>'.encode()
    scene = read(data)
    assert [part.transform[0, 3] for part in scene.parts] == [0, 100, 200]
    assert signed_volume(*soup(scene)) == pytest.approx(18000)


def test_objects_with_the_same_id_are_all_read() -> None:
    brick = amf().partition(b"<object")[2].partition(b"</object>")[0].partition(b">")[2]
    twice = b"<amf>" + 2 * (b"<object>%s</object>" % brick) + b"</amf>"
    assert len(read(twice).parts) == 2
    placed = twice.replace(b"<object>", b'<object id="1">')
    placed = placed.replace(b"</amf>", b'<constellation><instance objectid="1"/></constellation></amf>')
    with pytest.raises(MeshhubError, match="several objects have the id '1'"):
        read(placed)


def test_an_object_may_have_several_meshes() -> None:
    assert (
        len(
            read(
                amf().replace(b"</mesh>", b"</mesh>" + amf().partition(b'id="1">')[2].partition(b"</object>")[0])
            ).parts
        )
        == 2
    )


@pytest.mark.parametrize("name", ["model", "Geometry/model.xml", "brick.AMF"])
def test_the_file_in_an_archive_may_have_any_name(name: str) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, amf())
    assert signed_volume(*soup(read(buffer.getvalue()))) == pytest.approx(6000)


@pytest.mark.parametrize("cad", ["Slic3r 1.3.0", "PrusaSlicer 2.6", "BambuStudio 1.0", "SuperSlicer"])
def test_settings_of_slicers_are_no_metadata(cad: str) -> None:
    data = amf(
        before=f'<metadata type="cad">{cad}</metadata><metadata type="slic3r.config">; layer_height = 0.2</metadata>',
        after='<constellation id="8"><instance objectid="1"><rz>1.5707963267948966</rz></instance></constellation>',
    )
    scene = read(data)
    assert dict(scene.metadata) == {"cad": cad}
    assert "slicer_settings_dropped" in codes(data)
    assert bounds(scene).round(9).tolist() == [[-20, 0, 0], [0, 10, 30]]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (amf(vertex="<normal><nx>1</nx><ny>0</ny><nz>0</nz></normal>"), "curves_left_out"),
        (amf(triangle="<texmap><utex1>0</utex1></texmap>"), "amf_features_left_out"),
        (amf(before='<texture id="1">AA==</texture>'), "amf_features_left_out"),
        (amf(triangle="<color><r>x*0.1</r><g>0</g><b>0</b></color>"), "color_formula_left_out"),
    ],
)
def test_losses_give_notes(data: bytes, code: str) -> None:
    assert code in codes(data)
    assert signed_volume(*soup(read(data))) == pytest.approx(6000)


BOMB = '<?xml version="1.0"?><!DOCTYPE amf [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;">]><amf>&b;</amf>'
TWICE = '<constellation id="c{}"><instance objectid="{}"/><instance objectid="{}"/></constellation>'
DOUBLING = "".join(TWICE.format(level, *[f"c{level + 1}" if level < 28 else "1"] * 2) for level in range(29))


@pytest.mark.parametrize(
    ("data", "code", "message"),
    [
        (BOMB.encode(), "unreadable_file", "document type or entities"),
        (b"<amf>" + b"<a>" * 100, "unreadable_file", "deep"),
        (amf()[:-20], "unreadable_file", "well-formed"),
        (amf()[:500], "unreadable_file", "cut off"),
        (b"<!-- " * 50_000 + b"<amf>", "unreadable_file", "comment"),
        (amf().replace(b"<v1>3", b"<v1>8"), "unreadable_file", "from 0 to 7"),
        (amf().replace(b"<v1>3", b"<v1>-1"), "unreadable_file", "from 0 to 7"),
        (amf().replace(b"<v1>3", b"<v1>1e30"), "unreadable_file", "from 0 to 7"),
        (amf().replace(b"<v1>3</v1>", b""), "unreadable_file", "three vertices"),
        (amf().replace(b"<x>10<", b"<x>nan<"), "unreadable_file", "finite"),
        (amf().replace(b"<x>10<", b"<x>1 0<"), "unreadable_file", "not a number"),
        (amf().replace(b"<x>10<", b"<x/><x>10<"), "unreadable_file", "coordinate"),
        (amf().replace(b"</triangle>", b"</triangel>", 1), "unreadable_file", "do not match"),
        (amf(unit="parsec"), "unreadable_file", "unit"),
        (amf().replace(b"amf", b"fma"), "unreadable_file", "root element"),
        (amf(after='<constellation id="2"><instance objectid="9"/></constellation>'), "unreadable_file", "'9'"),
        (amf(after='<constellation id="2"><instance objectid="2"/></constellation>'), "unreadable_file", "itself"),
        (amf(after=DOUBLING), "model_too_complex", "constellations"),
        (b"<amf></amf>", "empty_model", "no triangles"),
    ],
)
def test_the_error_of_a_bad_file_says_why(data: bytes, code: str, message: str) -> None:
    with pytest.raises(MeshhubError, match=message) as caught:
        read(data)
    assert caught.value.error_code == code


def test_an_archive_bomb_is_rejected() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.amf", b"<amf>" + b" " * (80 << 20))
    with pytest.raises(MeshhubError) as caught:
        read(buffer.getvalue())
    assert caught.value.error_code == "unsafe_archive"


def test_a_hundred_thousand_triangles_take_seconds() -> None:
    side = 230
    rows, columns = np.mgrid[0:side, 0:side]
    points = np.stack([rows.ravel(), columns.ravel(), np.sin(rows.ravel())], axis=1)
    corner = (np.arange(side - 1)[:, None] * side + np.arange(side - 1)).ravel()
    faces = np.concatenate(
        [np.stack([corner, corner + side, corner + 1], 1), np.stack([corner + side, corner + side + 1, corner + 1], 1)]
    )
    text = "<amf><object id='0'><mesh><vertices>"
    text += "".join(f"<vertex><coordinates><x>{x}</x><y>{y}</y><z>{z}</z></coordinates></vertex>" for x, y, z in points)
    text += "</vertices><volume>"
    text += "".join(f"<triangle><v1>{a}</v1><v2>{b}</v2><v3>{c}</v3></triangle>" for a, b, c in faces)
    scene = read((text + "</volume></mesh></object></amf>").encode())
    assert np.array_equal(scene.meshes[0].vertices[scene.meshes[0].faces], points[faces])
