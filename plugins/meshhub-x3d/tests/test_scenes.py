"""Scenes: encodings, units, groups, prototypes, references, textures, and damaged or hostile files."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from x3d_files import BRICK, COMPANIONS, FULL, FULL_VRML, MILLIMETERS, POINTS, SIDES, faces, shape, vrml, x3d

from meshhub import MeshhubError, Registry, Scene, Source
from meshhub.testing import sample_scenes
from meshhub.toolkit.geometry import bounds, signed_volume, soup

REGISTRY = Registry()
IMAGE = sample_scenes.png()
VRML_FACES = f"IndexedFaceSet {{ coord Coordinate {{ point [ {POINTS} ] }} coordIndex [ {SIDES} ] }}"
BOX = "Shape { geometry Box { size 1 2 3 } }"


def read(data: bytes, name: str = "a.x3d", **companions: bytes) -> Scene:
    files = {key.replace("_", "."): content for key, content in companions.items()}
    return REGISTRY.read(Source.from_bytes(data, name, files))


def codes(data: bytes) -> list[str]:
    return [note.code for note in REGISTRY.inspect(Source.from_bytes(data, "a.bin")).notes]


def volume(scene: Scene) -> float:
    return signed_volume(*soup(scene))


@pytest.mark.parametrize(
    ("head", "factor"),
    [
        (MILLIMETERS, 1),
        ("", 1000),
        ('<unit category="length" name="inch" conversionFactor="0.0254"/>', 25.4),
        ('<unit category="length" name="cubit" conversionFactor="0.5"/>', 500),
        ('<unit category="force" name="pound" conversionFactor="4.4"/>', 1000),
    ],
)
def test_units_of_length(head: str, factor: float) -> None:
    low, high = bounds(read(x3d(shape(faces()), head)))
    assert (high - low).tolist() == pytest.approx([10 * factor, 20 * factor, 30 * factor])


def test_units_of_angles_and_of_the_classic_encoding() -> None:
    degrees = MILLIMETERS + '<unit category="angle" name="degree" conversionFactor="0.017453292519943295"/>'
    turned = read(x3d(f'<Transform rotation="0 0 1 90">{shape(faces())}</Transform>', degrees))
    assert np.ptp(bounds(turned), axis=0) == pytest.approx([30, 20, 10])
    classic = b'#X3D V3.3 utf8\nPROFILE Immersive\nCOMPONENT Core:1\nUNIT length millimeter 0.001\nMETA "title" "T"\n'
    scene = read(classic + f"Shape {{ geometry {VRML_FACES} }}".encode(), "a.x3dv")
    assert volume(scene) == pytest.approx(6000)
    assert scene.name == "T"


def test_names_groups_and_instances() -> None:
    scene = read(FULL)
    assert [(part.mesh, part.name, part.path) for part in scene.parts] == [
        (0, "shape", ("group", "brick")),
        (0, "shape", ("brick",)),
    ]
    assert scene.name == "A brick"
    assert scene.metadata == {"Title": "A brick", "Designer": "Ann"}
    assert [material.name for material in scene.materials] == ["red"]


def test_vrml_has_the_same_nodes() -> None:
    scene = REGISTRY.read(Source.from_bytes(FULL_VRML, "a.wrl", COMPANIONS))
    assert [(part.name, part.path) for part in scene.parts] == [("brick", ("group",)), ("brick", ("group",))]
    assert bounds(scene).ravel() == pytest.approx([0, -30, 0, 30, 0, 20])
    assert volume(scene) == pytest.approx(2 * 6000)
    assert [image.data for image in scene.images] == [IMAGE]
    assert scene.name == "A brick"


@pytest.mark.parametrize("pack", [lambda data: data, gzip.compress], ids=["plain", "compressed"])
@pytest.mark.parametrize(
    "data",
    [BRICK, BRICK.decode().replace("UTF-8", "UTF-16").encode("utf-16"), b"\xef\xbb\xbf" + BRICK],
    ids=["utf-8", "utf-16", "mark"],
)
def test_encodings_are_found_by_content(data: bytes, pack: object) -> None:
    assert callable(pack)
    assert volume(read(pack(data), "a.bin")) == pytest.approx(6000)


def test_a_transform_turns_and_scales_about_its_center() -> None:
    node = (
        '<Transform translation="1 2 3" center="5 0 0" rotation="0 1 0 1.5707963267948966" scale="1 2 1" '
        f'scaleOrientation="0 0 1 1.5707963267948966">{shape(faces())}</Transform>'
    )
    # X doubles about 5, then is turned to -Z, which is Y of the scene
    assert bounds(read(x3d(node))).ravel() == pytest.approx([-14, -13, 2, 6, 7, 32])


@pytest.mark.parametrize(
    ("scene", "expected"),
    [
        (f'<Switch whichChoice="1"><Shape><Box/></Shape>{shape(faces())}</Switch>', 6000),
        (f"<LOD range='5'>{shape(faces())}<Shape><Box/></Shape></LOD>", 6000),
        (f"<Collision>{shape(faces())}<Shape containerField='proxy'><Box/></Shape></Collision>", 6000),
        (f"<Anchor><Billboard>{shape(faces())}</Billboard></Anchor>", 6000),
        (f"<Layer><CADAssembly><CADPart><CADFace>{shape(faces())}</CADFace></CADPart></CADAssembly></Layer>", 6000),
        (
            f"<HAnimHumanoid><HAnimJoint containerField='skeleton'><HAnimSegment>{shape(faces())}</HAnimSegment>"
            "</HAnimJoint></HAnimHumanoid>",
            6000,
        ),
    ],
)
def test_groups_show_what_a_browser_shows(scene: str, expected: float) -> None:
    result = read(x3d(scene))
    assert len(result.parts) == 1
    assert volume(result) == pytest.approx(expected)


@pytest.mark.parametrize(
    "hidden",
    [
        "<Switch><Shape><Box/></Shape></Switch>",
        "<Transform visible='false'><Shape><Box/></Shape></Transform>",
        "<Shape visible='false'><Box/></Shape>",
        "<Switch whichChoice='1'><Shape><Box/></Shape></Switch>",
        "<CADLayer visible='false'><CADPart><CADFace><Shape><Box/></Shape></CADFace></CADPart></CADLayer>",
        "<CADLayer visible='true false'><Group/><Shape><Box/></Shape></CADLayer>",
    ],
)
def test_hidden_nodes_are_left_out_unless_all_are_hidden(hidden: str) -> None:
    data = x3d(shape(faces()) + hidden)
    assert volume(read(data)) == pytest.approx(6000)
    assert [code for code in codes(data) if code.startswith("hidden")] == ["hidden_ignored"]
    assert len(read(x3d(hidden)).parts) == 1
    assert [code for code in codes(x3d(hidden)) if code.startswith("hidden")] == ["hidden_read"]


def test_a_layer_hides_each_of_its_nodes_by_a_flag() -> None:
    layer = "<CADLayer visible='false true false'>" + "<Shape><Box/></Shape>" * 4 + "</CADLayer>"
    assert len(read(x3d(layer)).parts) == 2


def test_a_hidden_inline_is_not_missed() -> None:
    data = x3d(shape(faces()) + "<Inline url='other.x3d' visible='false'/>")
    assert "hidden_ignored" in codes(data)
    assert "inline_missing" not in codes(data)


def test_hidden_nodes_do_not_stand_for_a_missing_inline() -> None:
    with pytest.raises(MeshhubError, match="another file"):
        read(x3d("<Inline url='other.x3d'/><Switch><Shape><Box/></Shape></Switch>"))


def test_prototypes_are_expanded() -> None:
    data = vrml(
        f"PROTO Inner [ field SFColor c 0 0 1 field MFInt32 i [ ] ] {{ Shape {{ appearance Appearance {{ "
        f"material Material {{ diffuseColor IS c }} }} geometry IndexedFaceSet {{ coord Coordinate {{ point [ {POINTS} "
        f"] }} coordIndex IS i }} }} }}\n"
        f"PROTO Outer [ field SFColor k 0 1 0 field SFVec3f at 30 0 0 exposedField MFNode more [ ] ] {{ Transform {{ "
        f"translation IS at children [ Inner {{ c IS k i [ {SIDES} ] }} Group {{ children IS more }} ] }} }}\n"
        f"Outer {{ }} DEF named Outer {{ k 1 0 0 at 60 0 0 more Inner {{ i [ {SIDES} ] }} }}"
    )
    scene = read(data, "a.wrl")
    assert [scene.materials[part.material or 0].base_color[:3] for part in scene.parts] == [
        (0, 1, 0),
        (1, 0, 0),
        (0, 0, 1),
    ]
    assert [part.transform[0, 3] for part in scene.parts] == pytest.approx([30_000, 60_000, 60_000])
    xml = (
        '<ProtoDeclare name="Colored"><ProtoInterface><field accessType="inputOutput" name="c" type="SFColor" '
        'value="0 0 1"/><field accessType="inputOutput" name="body" type="MFNode"/></ProtoInterface><ProtoBody>'
        '<Transform><IS><connect nodeField="children" protoField="body"/></IS></Transform></ProtoBody></ProtoDeclare>'
        f'<ProtoInstance name="Colored"><fieldValue name="body">{shape(faces())}</fieldValue></ProtoInstance>'
    )
    assert volume(read(x3d(xml))) == pytest.approx(6000)


@pytest.mark.parametrize(
    "scene",
    [
        'EXTERNPROTO Far [ field SFColor c ] "far.wrl#Far" Far { c 1 0 0 }',
        "Unknown { a 1 b [ 2 3 ] }",
        'Inline { url "far.wrl" }',
        "USE nothing",
    ],
)
def test_what_is_in_other_files_is_left_out_with_a_note(scene: str) -> None:
    assert {"prototype_missing", "node_skipped", "inline_missing", "node_missing"} & set(codes(vrml(scene + " " + BOX)))


def test_inline_files_are_companions_with_their_own_unit() -> None:
    meters = x3d('<Transform scale="0.001 0.001 0.001"><Shape><Box size="10 20 30"/></Shape></Transform>', "")
    scene = read(x3d('<Inline url=\'"http://example.com/b.x3d" "b.x3d"\'/>'), b_x3d=meters)
    assert volume(scene) == pytest.approx(6000)
    with pytest.raises(MeshhubError, match=r"another file; send it"):
        read(x3d("<Inline url='\"b.x3d\"'/>"))
    cycle = x3d("<Inline url='\"b.x3d\"'/>")
    with pytest.raises(MeshhubError, match="deep"):
        read(cycle, b_x3d=cycle)


@pytest.mark.parametrize(
    "urls", ["'\"paint.png\"'", '\'"no.png" "paint.png"\'', '"&quot;paint.png&quot;"', '"paint.png"']
)
def test_the_texture_is_the_first_file_that_exists(urls: str) -> None:
    look = f"<Appearance><Material transparency='0.25'/><ImageTexture repeatS='false' url={urls}/></Appearance>"
    data = x3d(shape(faces(), look))
    scene = REGISTRY.read(Source.from_bytes(data, "a.x3d", COMPANIONS))
    assert [image.data for image in scene.images] == [IMAGE]
    assert scene.materials[0].wrap == ("clamp", "repeat")
    assert scene.materials[0].base_color == (1, 1, 1, 0.75)
    assert "texture_missing" in codes(data)


def test_textures_in_the_file() -> None:
    look = "<Appearance><PixelTexture image='2 1 4 0xFF000080 0x00FF00FF'/></Appearance>"
    assert read(x3d(shape(faces(), look))).images[0].media_type == "image/png"
    assert "texture_missing" not in codes(
        vrml(f'Shape {{ appearance Appearance {{ texture ImageTexture {{ url "" }} }} geometry {VRML_FACES} }}')
    )


@pytest.mark.parametrize(
    ("material", "color"),
    [
        ("<Material/>", (0.8, 0.8, 0.8)),
        ("<Material diffuseColor='0 0 0' emissiveColor='1 0 0'/>", (1, 0, 0)),
        ("<PhysicalMaterial baseColor='0 1 0'/>", (0, 1, 0)),
        ("<UnlitMaterial emissiveColor='0 0 1'/>", (0, 0, 1)),
    ],
)
def test_materials(material: str, color: tuple[float, ...]) -> None:
    scene = read(x3d(shape(faces(), f"<Appearance>{material}</Appearance>")))
    assert scene.materials[0].base_color[:3] == color


def test_many_spheres_have_fewer_sides() -> None:
    data = x3d("".join(f"<Transform translation='{n} 0 0'><Shape><Sphere/></Shape></Transform>" for n in range(1001)))
    scene = read(data)
    assert len(scene.meshes) == 1
    assert scene.face_count == 1001 * 24 * 22
    assert "few_sides" in codes(data)


def vrml1(nodes: str) -> bytes:
    return f"#VRML V1.0 ascii\n{nodes}\n".encode()


COORDINATES = f"Coordinate3 {{ point [ {POINTS} ] }}"


@pytest.mark.parametrize(
    ("binding", "index", "counts"),
    [
        ("PER_FACE", "", {(255, 0, 0): 2, (0, 255, 0): 2, (0, 0, 255): 8}),
        ("PER_FACE_INDEXED", "materialIndex [ 1 1 1 0 0 0 ]", {(0, 255, 0): 6, (255, 0, 0): 6}),
        ("OVERALL", "", None),
    ],
)
def test_vrml_1_binds_materials(binding: str, index: str, counts: dict[tuple[int, ...], int] | None) -> None:
    colors = "1 0 0, 0 1 0, 0 0 1, 0 0 1, 0 0 1, 0 0 1"
    scene = read(
        vrml1(
            f"Separator {{ Scale {{ scaleFactor 0.001 0.001 0.001 }} Material {{ diffuseColor [ {colors} ] }} "
            f"MaterialBinding {{ value {binding} }} {COORDINATES} DEF part IndexedFaceSet {{ coordIndex [ {SIDES} ] "
            f"{index} }} }}"
        ),
        "a.wrl",
    )
    mesh = scene.meshes[0]
    assert volume(scene) == pytest.approx(6000)
    if counts is None:
        assert mesh.colors is None and scene.materials[0].base_color == (1, 0, 0, 1)
    else:
        assert mesh.colors is not None
        seen = [tuple(row) for row in mesh.colors[mesh.faces[:, 0], :3].tolist()]
        assert {color: seen.count(color) for color in set(seen)} == counts


def test_vrml_1_has_a_state() -> None:
    scene = read(
        vrml1(
            "DEF top Separator { Translation { translation 1 0 0 } DEF inner Separator { Translation { translation 1 0 "
            "0 } Cube { width 1 } } TransformSeparator { Scale { scaleFactor 9 9 9 } } Cylinder { parts (SIDES | TOP) "
            "} Switch { whichChild -1 Sphere { } } Switch { whichChild 1 Cube { } Cube { } } MatrixTransform { matrix "
            "2 0 0 0 0 2 0 0 0 0 2 0 5 0 0 1 } Cube { } }"
        ),
        "a.wrl",
    )
    assert [part.path for part in scene.parts] == [("top",), (), (), ()]
    assert [part.transform[0, 3] for part in scene.parts] == pytest.approx([2000, 1000, 1000, 6000])
    assert "hidden_ignored" in codes(vrml1("Switch { Sphere { } } Cube { }"))
    hidden = vrml1("Switch { Cube { } } Translation { translation 1 0 0 }")
    assert volume(read(hidden, "a.wrl")) == pytest.approx(8e9)
    assert "hidden_read" in codes(hidden)


DOUBLING = "".join(f"DEF g{n} Group {{ children [ USE g{n - 1} USE g{n - 1} ] }}" for n in range(1, 40))
PROTOS = "PROTO P0 [ field SFFloat r 1 ] { Shape { geometry Sphere { radius IS r } } }" + "".join(
    f"PROTO P{n} [ field SFFloat r 1 field SFFloat s 2 ] {{ Group {{ children [ P{n - 1} {{ r IS r }} P{n - 1} "
    f"{{ r IS s }} ] }} }}"
    for n in range(1, 40)
)
CHAIN = "DEF g0 Group { }" + "".join(f"DEF g{n} Group {{ children USE g{n - 1} }}" for n in range(1, 500))
ENTITIES = '<!DOCTYPE X3D [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>'
GRID = '<ElevationGrid xDimension="{0}" zDimension="{0}" height="0 0 0"/>'
HEAD = b"#VRML V2.0 utf8\n"


@pytest.mark.parametrize(
    ("data", "code", "message"),
    [
        (vrml("DEF g0 Shape { geometry Box { } }" + DOUBLING), "model_too_complex", "after USE"),
        (vrml(PROTOS + "P39 { }"), "model_too_complex", "nodes"),
        (vrml(CHAIN), "model_too_complex", "deep"),
        (vrml("DEF g Group { children USE g }"), "empty_model", "no triangles"),
        (HEAD + b"Group { children " * 500, "model_too_complex", "120 deep"),
        (HEAD + b"Group { children [ " * 500, "model_too_complex", "120 deep"),
        (vrml1("Separator { " * 500), "model_too_complex", "120 deep"),
        (vrml("PROTO P [ ] { " * 500), "model_too_complex", "120 deep"),
        (x3d(shape('<ElevationGrid xDimension="nan" zDimension="2"/>')), "unreadable_file", "not a number"),
        (x3d(f'<Switch whichChoice="inf">{shape(faces())}</Switch>'), "unreadable_file", "not a number"),
        (HEAD + b"Group { " * 500, "unreadable_file", "not a node|cut off"),
        (x3d("<Group>" * 400 + "</Group>" * 400), "model_too_complex", "deep"),
        (x3d("<Group>" * 900 + "</Group>" * 900), "unreadable_file", "deep"),
        (x3d(shape(GRID.format(2_000_000_000))), "unreadable_file", "cut off"),
        (x3d(shape("<PixelTexture/>")), "empty_model", "no triangles"),
        (
            x3d(shape(faces(), "<Appearance><PixelTexture image='90000 90000 3 0'/></Appearance>")),
            "unreadable_file",
            "pix",
        ),
        (
            x3d(shape(f'<TriangleStripSet stripCount="999999999"><Coordinate point="{POINTS}"/></TriangleStripSet>')),
            "unreadable_file",
            "does not fit",
        ),
        (x3d(shape(faces(sides="0 1 99"))), "unreadable_file", "outside"),
        (x3d(shape(faces(sides="0 1 x"))), "unreadable_file", "'x', which is not a number"),
        (x3d(shape(faces()), '<unit category="length" conversionFactor="0"/>'), "unreadable_file", "factor"),
        (x3d(f'<Transform scale="nan 1 1">{shape(faces())}</Transform>'), "unreadable_file", "finite"),
        (x3d("&b;", doctype=ENTITIES), "unreadable_file", "entity"),
        (x3d(shape(faces()))[:-40], "unreadable_file", "well-formed"),
        (HEAD + b"Shape { geometry Box {", "unreadable_file", "cut off"),
        (HEAD + b"]", "unreadable_file", "not a node"),
        (HEAD, "empty_model", "no triangles"),
        (gzip.compress(BRICK)[:-20], "unreadable_file", "cut off"),
        (b'{ "X3D": { } }', "unreadable_file", "JSON"),
        (b"\xe0\0\0\1\0", "unreadable_file", "binary"),
        (b"#Inventor V2.1 ascii\n", "unreadable_file", "begins with"),
    ],
)
def test_the_error_of_a_bad_file_says_why(data: bytes, code: str, message: str) -> None:
    with pytest.raises(MeshhubError, match=message) as caught:
        REGISTRY.read(Source.from_bytes(data, "a.x3d"), input_format="x3d")
    assert caught.value.error_code == code
