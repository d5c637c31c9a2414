"""COLLADA files in the layouts of other programs, and damaged files."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest
from dae_files import POSITIONS, dae

from meshhub import Image, Material, Mesh, MeshhubError, Part, Registry, Scene, Source, Target
from meshhub.testing import sample_scenes
from meshhub.toolkit.geometry import bounds, signed_volume, soup

VERTEX = '<input semantic="VERTEX" source="#v" offset="0"/>'
SIDES = ("3 2 1 0", "4 5 6 7", "0 1 5 4", "1 2 6 5", "2 3 7 6", "3 0 4 7")
MATERIALS = """<library_images><image id="i"><init_from>file:///C:/x/Brick%20red.png</init_from></image></library_images>
<library_effects><effect id="e"><profile_COMMON>
<newparam sid="surface"><surface type="2D"><init_from>i</init_from></surface></newparam>
<newparam sid="sampler"><sampler2D><source>surface</source></sampler2D></newparam>
<technique sid="c"><phong><diffuse>{diffuse}</diffuse>{transparent}</phong></technique></profile_COMMON></effect>
</library_effects><library_materials>
<material id="m" name="Red"><instance_effect url="#e"/></material></library_materials>
"""
BOUND = (
    '<instance_geometry url="#g"><bind_material><technique_common><instance_material symbol="paint" target="#m"/>'
    "</technique_common></bind_material></instance_geometry>"
)
RED = "<color>1 0 0 1</color>"

REGISTRY = Registry()


def read(data: bytes, **companions: bytes) -> Scene:
    files = {name.replace("_", " ") + ".png": content for name, content in companions.items()}
    return REGISTRY.read(Source.from_bytes(data, "a.dae", files), input_format="dae")


def codes(data: bytes) -> list[str]:
    return [note.code for note in REGISTRY.inspect(Source.from_bytes(data, "a.dae"), input_format="dae").notes]


def volume(scene: Scene) -> float:
    return signed_volume(*soup(scene))


def painted(diffuse: str = RED, transparent: str = "", node: str = BOUND) -> bytes:
    return dae(libraries=MATERIALS.format(diffuse=diffuse, transparent=transparent), node=node)


@pytest.mark.parametrize(
    ("asset", "expected"),
    [
        ('<unit meter="0.0254"/><up_axis>Z_UP</up_axis>', [[0, 0, 0], [254, 508, 762]]),
        ('<unit meter="0,001"/><up_axis>Z_UP</up_axis>', [[0, 0, 0], [10, 20, 30]]),
        ('<unit meter="0.002"/><up_axis>Z_UP</up_axis>', [[0, 0, 0], [20, 40, 60]]),
        ('<unit meter="0.001"/><up_axis>Y_UP</up_axis>', [[0, -30, 0], [10, 0, 20]]),
        ('<unit meter="0.001"/><up_axis>X_UP</up_axis>', [[-20, -30, 0], [0, 0, 10]]),
        ("", [[0, -30_000, 0], [10_000, 0, 20_000]]),
    ],
)
def test_units_and_axes(asset: str, expected: list[list[float]]) -> None:
    scene = read(dae(asset=asset))
    assert bounds(scene) == pytest.approx(np.array(expected))
    assert volume(scene) > 0


@pytest.mark.parametrize(
    "mesh",
    [
        f"<polygons>{VERTEX}{''.join(f'<p>{side}</p>' for side in SIDES)}</polygons>",
        f"<trifans>{VERTEX}{''.join(f'<p>{side}</p>' for side in SIDES)}</trifans>",
        f"<tristrips>{VERTEX}<p>1 0 2 3 6 7 5 4 1 0</p><p>1 2 5 6</p><p>3 0 7 4</p></tristrips>",
    ],
    ids=["polygons", "fans", "strips"],
)
def test_every_kind_of_primitive(mesh: str) -> None:
    scene = read(dae(mesh=mesh))
    assert scene.face_count == 12
    assert volume(scene) == pytest.approx(6000)


def test_attributes_with_their_own_indices() -> None:
    sources = (
        '<source id="n"><float_array id="na">0 0 2 1 0 0</float_array><technique_common>'
        '<accessor source="#na" count="2" stride="3"/></technique_common></source>'
        '<source id="c"><float_array id="ca">9 1 0 0 0 1 0</float_array><technique_common>'
        '<accessor source="#ca" count="2" stride="3" offset="1"/></technique_common></source>'
        '<source id="t"><float_array id="ta">0.25 0.75 9 0.5 1 9</float_array><technique_common><accessor source="#ta"'
        ' count="2" stride="3"><param name="S"/><param name="T"/><param/></accessor></technique_common></source>'
    )
    mesh = (
        f'<triangles count="1">{VERTEX}<input semantic="NORMAL" source="#n" offset="1"/>'
        '<input semantic="COLOR" source="#c" offset="2"/><input semantic="TEXCOORD" source="#t" offset="2"/>'
        "<p>0 0 0  1 0 1  2 1 1</p></triangles>"
    )
    result = read(dae(mesh=mesh, sources=sources)).meshes[0]
    order = result.faces[0]
    assert result.vertices[order].tolist() == [[0, 0, 0], [10, 0, 0], [10, 20, 0]]
    assert result.normals is not None and result.normals[order].tolist() == [[0, 0, 1], [0, 0, 1], [1, 0, 0]]
    assert result.colors is not None
    assert result.colors[order].tolist() == [[255, 0, 0, 255], [0, 255, 0, 255], [0, 255, 0, 255]]
    assert result.uv is not None and result.uv[order].tolist() == [[0.25, 0.75], [0.5, 1], [0.5, 1]]


def test_decimal_commas() -> None:
    scene = read(dae(node='<translate>0,5 0 0</translate><instance_geometry url="#g"/>'))
    assert bounds(scene)[0].tolist() == [0.5, 0, 0]


def test_transforms_apply_in_their_order() -> None:
    node = "<translate>100 0 0</translate><rotate>0 0 1 90</rotate><scale>2 1 1</scale>"
    scene = read(dae(node=node + '<instance_geometry url="#g"/>'))
    assert bounds(scene).round(6).tolist() == [[80, 0, 0], [100, 20, 30]]
    skew = read(dae(node='<skew>45 1 0 0 0 1 0</skew><instance_geometry url="#g"/>'))
    assert volume(skew) == pytest.approx(6000)


def test_instances_of_nodes_share_a_mesh_and_keep_names() -> None:
    library = (
        '<library_nodes><node id="lib" name="inner"><matrix>1 0 0 0 0 1 0 0 0 0 -1 0 0 0 0 1</matrix>'
        '<instance_geometry url="#g"/></node></library_nodes>'
    )
    node = '<instance_node url="#lib"/><node name="b"><translate>50 0 0</translate><instance_node url="#lib"/></node>'
    scene = read(dae(libraries=library, node=node))
    assert [(part.mesh, part.name, part.path) for part in scene.parts] == [
        (0, "inner", ("part",)),
        (0, "inner", ("part", "b")),
    ]
    assert bounds(scene).tolist() == [[0, 0, -30], [60, 20, 0]]
    assert volume(scene) == pytest.approx(12000)


def test_a_skin_has_its_bind_pose() -> None:
    library = (
        '<library_controllers><controller id="k"><skin source="#g"><bind_shape_matrix>'
        "2 0 0 0 0 2 0 0 0 0 2 0 0 0 0 1</bind_shape_matrix></skin></controller></library_controllers>"
    )
    data = dae(libraries=library, node='<instance_controller url="#k"/>')
    assert volume(read(data)) == pytest.approx(48000)
    assert "bind_pose" in codes(data)


def test_colors_and_transparency() -> None:
    half = "<transparency><float>0.5</float></transparency>"
    for transparent, alpha in (
        ("", 1),
        (f"<transparent><color>1 1 1 1</color></transparent>{half}", 0.5),
        (f'<transparent opaque="RGB_ZERO"><color>1 1 1 1</color></transparent>{half}', 0.5),
        ('<transparent opaque="RGB_ZERO"><color>0 0 0 1</color></transparent>', 1),
        ("<transparent><color>0 0 0 0</color></transparent>", 1),
    ):
        scene = read(painted(transparent=transparent))
        (index,) = scene.used_materials()
        assert scene.materials[index].name == "Red"
        assert scene.materials[index].base_color == pytest.approx((1, 0, 0, alpha), abs=1e-5)
    assert read(painted(node='<instance_geometry url="#g"/>')).used_materials() == ()


def test_textures_are_companions_or_in_the_archive() -> None:
    data = painted('<texture texture="sampler" texcoord="UV"/>')
    picture = sample_scenes.png()
    assert [image.data for image in read(data, Brick_red=picture).images] == [picture]
    assert "texture_missing" in codes(data)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("manifest.xml", "<dae_root>./model/a%20b.dae</dae_root>")
        archive.writestr("model/a b.dae", data)
        archive.writestr("model/textures/brick red.png", picture)
    packed = Source.from_bytes(buffer.getvalue(), "x.zae")
    assert [image.data for image in REGISTRY.read(packed).images] == [picture]


def test_written_textures_have_names_of_their_content() -> None:
    picture = sample_scenes.png()
    mesh = Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]], uv=[[0, 0], [1, 0], [0, 1]])
    materials = (Material("a", base_color_image=0), Material("b", base_color_image=1, metallic_roughness_image=0))
    images = (Image(picture, "image/png", "secret"), Image(picture, "image/png"))
    parts = (Part(0, material=0), Part(0, material=1))
    target = Target()
    REGISTRY.write(Scene((mesh,), parts, materials, images), target, target="dae")
    assert len(target.names) == 2
    assert target.names[1].startswith("texture-")
    assert b"secret" not in target.read()
    files = {name: target.read(name) for name in target.names[1:]}
    back = REGISTRY.read(Source.from_bytes(target.read(), "a.dae", files))
    assert {image.data for image in back.images} == {picture}
    assert len(back.meshes) == 1


BOMB = b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><COLLADA>&b;</COLLADA>'
CYCLE = '<library_nodes><node id="lib"><instance_node url="#lib"/></node></library_nodes>'
TWICE = '<node id="d{}"><instance_node url="#d{}"/><instance_node url="#d{}"/></node>'
DOUBLING = f"<library_nodes>{''.join(TWICE.format(n, n + 1, n + 1) for n in range(30))}</library_nodes>"


@pytest.mark.parametrize(
    ("data", "code", "message"),
    [
        (BOMB, "unreadable_file", "document type or entities"),
        (b"<COLLADA>" + b"<a>" * 1000, "unreadable_file", "deep"),
        (dae()[:-20], "unreadable_file", "well-formed"),
        (dae().replace(b"COLLADA", b"COLADA"), "unreadable_file", "root element"),
        (dae().replace(b"<p>3 ", b"<p>8 "), "unreadable_file", "outside 0 … 7"),
        (dae().replace(b"<p>3 ", b"<p>-1 "), "unreadable_file", "outside 0 … 7"),
        (dae().replace(b"<p>3 ", b"<p>x "), "unreadable_file", "not a number"),
        (dae().replace(b"<p>3 ", b"<p>"), "unreadable_file", "cut off"),
        (dae().replace(b"<vcount>4", b"<vcount>-4"), "unreadable_file", "out of range"),
        (dae().replace(b'count="8"', b'count="9"'), "unreadable_file", "cut off"),
        (dae().replace(b'count="8"', b'count="99999999999"'), "unreadable_file", "cut off"),
        (dae().replace(b'stride="3"', b'stride="0"'), "unreadable_file", "accessor"),
        (dae().replace(b'offset="0"', b'offset="9999999"'), "unreadable_file", "offset"),
        (dae().replace(b'source="#s"', b'source="#q"'), "unreadable_file", "'#q'"),
        (dae(asset='<unit meter="-1"/>'), "unreadable_file", "positive"),
        (dae(node="<matrix>1 2 3</matrix>"), "unreadable_file", "16 finite"),
        (dae(libraries=CYCLE, node='<instance_node url="#lib"/>'), "unreadable_file", "itself"),
        (dae(libraries=DOUBLING, node='<instance_node url="#d0"/>'), "model_too_complex", "nodes"),
        (dae(node=""), "empty_model", "no triangles"),
    ],
)
def test_the_error_of_a_bad_file_says_why(data: bytes, code: str, message: str) -> None:
    with pytest.raises(MeshhubError, match=message) as caught:
        read(data)
    assert caught.value.error_code == code


def test_numbers_that_are_not_finite_are_rejected() -> None:
    with pytest.raises(MeshhubError):
        REGISTRY.inspect(Source.from_bytes(dae().replace(b">0 0 0 10 ", b">nan 0 0 10 "), "a.dae"))


RING = (
    '<polygons count="2"><input semantic="VERTEX" source="#v" offset="0"/>{plain}'
    "<ph><p>{outline}</p><h>{hole}</h><h>{other}</h></ph></polygons>"
)
PLATE = [(0, 0), (30, 0), (30, 20), (0, 20), (5, 5), (5, 10), (10, 10), (10, 5), (20, 5), (20, 10), (25, 10), (25, 5)]


@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize("up", [0, 1, 2])
def test_polygons_keep_their_holes(up: int, is_turned: bool) -> None:
    """The specification states no direction for holes, so programs write both."""
    rows = np.insert(np.array(PLATE, float), up, 0.0, axis=1)
    mesh = RING.format(
        plain="<p>4 5 6</p>", outline="0 1 2 3", hole="4 5 6 7", other="11 10 9 8" if is_turned else "8 9 10 11"
    )
    data = dae(mesh=mesh).replace(POSITIONS.encode(), " ".join(f"{value:g}" for value in rows.ravel()).encode())
    data = data.replace(b'count="24"', b'count="36"').replace(b'count="8"', b'count="12"')
    scene = read(data)
    vertices, faces = soup(scene)
    a, b, c = (vertices[faces[:, corner]] for corner in range(3))
    areas = np.cross(b - a, c - a)[:, up] / 2 * (-1 if up == 1 else 1)
    assert areas[1:].sum() == pytest.approx(600 - 2 * 25)
    assert (areas[1:] > 0).all()
    assert len(faces) == 1 + 12 + 2 * 2 - 2
    assert codes(data) == []


def test_bytes_that_are_not_utf_8_do_not_matter() -> None:
    data = dae().replace(b'name="part"', b'name="gr\xfcn"')
    assert read(data).parts[0].name == "gr?n"
