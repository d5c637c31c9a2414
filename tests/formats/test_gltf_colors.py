"""Visible colors of glTF materials: samplers, transforms, UV sets, factors, vertex colors, alpha and images."""

from __future__ import annotations

import base64
import io
import json
from typing import Any

import numpy as np
import pytest
from PIL import Image as Picture

from gltf_models import SQUARE, TWO, Document, load, parse_json, write_scene
from meshhub import Registry
from meshhub.model.scene import Mesh, Part, Scene
from meshhub.model.source import Source, Target
from meshhub.toolkit.surface_colors import Surface, SurfaceColors

pytestmark = pytest.mark.once

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)
PIXELS = np.array([[(*RED, 255), (*GREEN, 255)], [(*BLUE, 255), (*WHITE, 0)]], np.uint8)
"""Pixels of the texture, the upper row first; white is transparent."""

UV = np.array([[0, 1], [1, 1], [1, 0], [0, 0]], np.float32)
"""Coordinates of the square that show the picture upright."""

QUADRANTS = {"upper left": (0.25, 0.75), "upper right": (0.75, 0.75), "lower left": (0.25, 0.25)}


def encode_picture(kind: str) -> bytes:
    data = io.BytesIO()
    picture = Picture.fromarray(PIXELS)
    (picture.convert("RGB") if kind in ("BMP", "GIF") else picture).save(
        data, kind, **({"lossless": True, "exact": True} if kind == "WEBP" else {})
    )
    return data.getvalue()


def build_square(
    material: dict[str, Any],
    *,
    sampler: dict[str, Any] | None = None,
    uv: dict[str, np.ndarray] | None = None,
    colors: np.ndarray | None = None,
    kind: str = "PNG",
) -> bytes:
    """Return a GLB file with a textured square; a sampler is NEAREST by default."""
    document = Document()
    attributes = {"POSITION": document.accessor(SQUARE)}
    for name, rows in (uv or {"TEXCOORD_0": UV}).items():
        attributes[name] = document.accessor(rows)
    if colors is not None:
        attributes["COLOR_0"] = document.accessor(colors)
    document.mesh({"attributes": attributes, "indices": document.accessor(TWO), "material": 0})
    media_type = {"PNG": "image/png", "WEBP": "image/webp"}.get(kind, f"image/{kind.lower()}")
    document.json["images"] = [{"bufferView": document.view(encode_picture(kind)), "mimeType": media_type}]
    document.json["samplers"] = [{"magFilter": 9728, **(sampler or {})}]
    texture = {"sampler": 0, "source": 0}
    if kind == "WEBP":
        texture = {"sampler": 0, "extensions": {"EXT_texture_webp": {"source": 0}}}  # type: ignore[dict-item]
    document.json["textures"] = [texture]
    document.json["materials"] = [material]
    return document.place({"mesh": 0}).glb()


def texture(**more: Any) -> dict[str, Any]:
    return {"pbrMetallicRoughness": {"baseColorTexture": {"index": 0, **more}}}


def look(
    scene: Scene, background: tuple[int, int, int] = (255, 0, 255), *, emission: bool = False
) -> dict[str, tuple[int, ...]]:
    """Return the colors of the middles of the quadrants."""
    (part,) = scene.parts
    mesh = scene.meshes[part.mesh]
    colors = SurfaceColors(scene, [Surface(part.mesh, part.material)], background, emission=emission)
    assert np.array_equal(mesh.vertices[mesh.faces], SQUARE[TWO.reshape(2, 3)])
    result = {}
    for name, (x, y) in {**QUADRANTS, "lower right": (0.75, 0.25)}.items():
        # the lower face has y below x; its corners are (0, 0), (1, 0), (1, 1)
        face, weights = (0, (1 - x, x - y, y)) if y <= x else (1, (1 - y, x, y - x))
        color = colors.sample(np.array([face]), np.array([weights], np.float32))
        result[name] = tuple(color[0].tolist())
    return result


def quadrants(*colors: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    return dict(zip([*QUADRANTS, "lower right"], colors, strict=True))


UPRIGHT = quadrants(RED, GREEN, BLUE, WHITE)
MAGENTA = (255, 0, 255)


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "BMP", "TIFF"])
def test_images_of_several_types_are_shown(kind: str) -> None:
    assert look(load(build_square(texture(), kind=kind))) == UPRIGHT


@pytest.mark.parametrize("kind", ["WEBP", "BMP", "TIFF"])
@pytest.mark.parametrize("target", ["glb", "3mf", "obj"])
def test_images_of_several_types_reach_every_format(tmp_path: Any, kind: str, target: str) -> None:
    source = tmp_path / "a.glb"
    source.write_bytes(build_square(texture(), kind=kind, sampler={"magFilter": 9729}))
    with Registry() as registry:
        report = registry.convert(source, tmp_path / f"b.{target}")
        scene = registry.read(tmp_path / f"b.{target}")
    assert [note.code for note in report.notes if note.code.startswith("texture")] == []
    (image,) = scene.images
    with Picture.open(io.BytesIO(image.data)) as picture:
        assert picture.convert("RGB").getpixel((0, 1)) == BLUE


@pytest.mark.parametrize(
    ("wrap", "expected"),
    [
        (10497, quadrants(RED, GREEN, BLUE, WHITE)),
        (33648, quadrants(GREEN, RED, WHITE, BLUE)),
        (33071, quadrants(GREEN, GREEN, WHITE, WHITE)),
    ],
    ids=["repeat", "mirror", "clamp"],
)
def test_wrap_modes_continue_the_texture(wrap: int, expected: dict[str, tuple[int, ...]]) -> None:
    uv = UV + np.array([1, 0], np.float32)
    assert look(load(build_square(texture(), uv={"TEXCOORD_0": uv}, sampler={"wrapS": wrap}))) == expected


def test_a_texture_transform_moves_the_picture() -> None:
    transform = {"extensions": {"KHR_texture_transform": {"offset": [0.5, 0.0]}}}
    assert look(load(build_square(texture(**transform)))) == quadrants(GREEN, RED, WHITE, BLUE)


def test_the_second_set_of_coordinates_is_used() -> None:
    uv = {"TEXCOORD_0": np.zeros((4, 2), np.float32), "TEXCOORD_1": UV}
    assert look(load(build_square(texture(texCoord=1), uv=uv))) == UPRIGHT


def test_mirrored_coordinates_mirror_the_picture() -> None:
    assert look(load(build_square(texture(), uv={"TEXCOORD_0": UV[[1, 0, 3, 2]]}))) == quadrants(
        GREEN, RED, WHITE, BLUE
    )


def test_linear_filters_act_in_linear_light() -> None:
    uv = np.full((4, 2), [0.5, 0.25], np.float32)
    # half of red and half of green
    data = build_square(texture(), uv={"TEXCOORD_0": uv}, sampler={"magFilter": 9729, "wrapT": 33071})
    assert set(look(load(data)).values()) == {(188, 188, 0)}


def test_factor_texture_and_vertex_colors_are_multiplied() -> None:
    colors = np.tile(np.array([1, 1, 0.5, 1], np.float32), (4, 1))
    material = texture()
    material["pbrMetallicRoughness"]["baseColorFactor"] = [0.5, 1, 1, 1]
    # linear 0.5 is 188 in sRGB
    expected = quadrants((188, 0, 0), GREEN, (0, 0, 188), (188, 255, 188))
    assert look(load(build_square(material, colors=colors))) == expected


@pytest.mark.parametrize(
    ("material", "corner"),
    [
        ({"alphaMode": "OPAQUE"}, WHITE),
        ({"alphaMode": "BLEND"}, MAGENTA),
        ({"alphaMode": "MASK", "alphaCutoff": 0.5}, MAGENTA),
        ({"extensions": {"KHR_materials_unlit": {}}}, WHITE),
    ],
    ids=["opaque", "blend", "mask", "unlit"],
)
def test_transparent_points_show_the_background(material: dict[str, Any], corner: tuple[int, ...]) -> None:
    assert look(load(build_square({**texture(), **material}))) == quadrants(RED, GREEN, BLUE, corner)


HALF = np.tile(np.array([1, 0, 0, 0.5], np.float32), (4, 1))
"""Red vertex colors with an alpha of one half."""


def convert_square(tmp_path: Any, target: str, mode: str, *, factor: float, colors: np.ndarray | None) -> Scene:
    """Convert a square of one material, and read the result."""
    document = Document()
    attributes = {"POSITION": document.accessor(SQUARE)}
    if colors is not None:
        attributes["COLOR_0"] = document.accessor(colors)
    document.mesh({"attributes": attributes, "indices": document.accessor(TWO), "material": 0})
    document.json["materials"] = [
        {"alphaMode": mode, "pbrMetallicRoughness": {"baseColorFactor": [1, 0, 0, factor]}},
    ]
    source = tmp_path / "a.glb"
    source.write_bytes(document.place({"mesh": 0}).glb())
    with Registry() as registry:
        registry.convert(source, tmp_path / f"b.{target}")
        return registry.read(tmp_path / f"b.{target}")


@pytest.mark.parametrize("target", ["obj", "3mf"])
@pytest.mark.parametrize(("mode", "alpha"), [("OPAQUE", 1.0), ("BLEND", 128 / 255)])
def test_opaque_materials_ignore_the_alpha_of_their_color(tmp_path: Any, target: str, mode: str, alpha: float) -> None:
    (material,) = convert_square(tmp_path, target, mode, factor=0.5, colors=None).materials
    assert material.base_color[3] == pytest.approx(alpha, abs=0.01)


@pytest.mark.parametrize("target", ["ply", "3mf"])
@pytest.mark.parametrize(("mode", "alpha"), [("OPAQUE", 255), ("BLEND", 128)])
def test_opaque_materials_ignore_the_alpha_of_vertex_colors(tmp_path: Any, target: str, mode: str, alpha: int) -> None:
    (mesh,) = convert_square(tmp_path, target, mode, factor=1.0, colors=HALF).meshes
    assert mesh.colors is not None and set(mesh.colors[:, 3].tolist()) == {alpha}


def test_vertices_of_only_opaque_primitives_are_opaque() -> None:
    document = Document()
    attributes = {"POSITION": document.accessor(SQUARE), "COLOR_0": document.accessor(HALF)}
    primitives = [
        {"attributes": attributes, "indices": document.accessor(TWO[corners]), "material": material}
        for material, corners in enumerate((slice(0, 3), slice(3, 6)))
    ]
    document.mesh(*primitives)
    document.json["materials"] = [{"name": "solid"}, {"name": "glass", "alphaMode": "BLEND"}]
    (mesh,) = load(document.place({"mesh": 0}).glb()).meshes
    assert mesh.colors is not None and mesh.colors[:, 3].tolist() == [128, 255, 128, 128]


@pytest.mark.parametrize(("alpha", "mode"), [(128, "BLEND"), (255, None)])
def test_transparent_colors_without_a_material_are_written_as_such(alpha: int, mode: str | None) -> None:
    colors = np.tile(np.uint8([255, 0, 0, alpha]), (4, 1))
    scene = Scene((Mesh(SQUARE, TWO.reshape(-1, 3), colors=colors),), (Part(0),))
    document = parse_json(write_scene(scene))
    (primitive,) = document["meshes"][0]["primitives"]
    assert document["materials"][primitive["material"]].get("alphaMode") == mode


def test_specular_glossiness_shows_its_diffuse_texture() -> None:
    glossy = {"diffuseFactor": [1, 1, 0.5, 1], "diffuseTexture": {"index": 0}}
    material = {"extensions": {"KHR_materials_pbrSpecularGlossiness": glossy}}
    assert look(load(build_square(material))) == quadrants(RED, GREEN, (0, 0, 188), (255, 255, 188))


@pytest.mark.parametrize(
    ("emission", "expected"),
    [
        ({"emissiveFactor": [0, 0, 0.5]}, quadrants((255, 0, 188), (0, 255, 188), BLUE, WHITE)),
        ({"emissiveFactor": [1, 1, 1], "emissiveTexture": {"index": 0}}, UPRIGHT),
        (
            {"emissiveFactor": [0, 1, 0], "emissiveTexture": {"index": 0}, "pbrMetallicRoughness": {}},
            quadrants(WHITE, WHITE, WHITE, WHITE),
        ),
        (
            {
                "emissiveFactor": [1, 1, 0],
                "emissiveTexture": {"index": 0},
                "pbrMetallicRoughness": {"baseColorFactor": [0, 0, 0, 1]},
            },
            quadrants(RED, GREEN, (0, 0, 0), (255, 255, 0)),
        ),
    ],
    ids=["factor", "map", "map on white", "map on black"],
)
def test_emission_is_added_on_request(emission: dict[str, Any], expected: dict[str, tuple[int, ...]]) -> None:
    scene = load(build_square({**texture(), **emission}))
    assert look(scene, emission=True) == expected
    without = {"emissiveFactor": [0, 0, 0]}
    assert look(scene) == look(load(build_square({**texture(), **emission, **without})))


def test_a_texture_with_only_a_ktx2_image_has_a_note() -> None:
    data = build_square(texture())
    document = json.loads(data[20 : 20 + int.from_bytes(data[12:16], "little")])
    document["textures"] = [{"extensions": {"KHR_texture_basisu": {"source": 0}}}]
    document["buffers"][0]["uri"] = "data:;base64," + base64.b64encode(data[data.index(b"BIN\0") + 4 :]).decode()
    source = Source.from_bytes(json.dumps(document).encode(), "a.gltf")
    with Registry() as registry:
        report = registry.convert(source, Target(), target="glb")
    assert [note.message for note in report.notes if note.code == "texture_dropped"] == [
        "textures[0] has only a KTX2 image, which is not read; export PNG or JPEG"
    ]
