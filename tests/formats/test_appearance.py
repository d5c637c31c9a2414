"""Colors between formats: products of colors are kept if the target can hold them, and other losses are named."""

from __future__ import annotations

import io
import zipfile
from dataclasses import replace
from typing import Any

import lib3mf
import numpy as np
import pytest
from PIL import Image as Picture

from meshhub import Registry, Report, Source, Target
from meshhub.builtin_plugins.gltf.reader import read as read_glb
from meshhub.builtin_plugins.gltf.writer import write_glb
from meshhub.builtin_plugins.ply.reader import read as read_ply
from meshhub.builtin_plugins.threemf import ThreeMFReadOptions
from meshhub.builtin_plugins.threemf.reader import read as read_3mf
from meshhub.model.capabilities import HOST_FRAME, NoOptions
from meshhub.model.chain import Request
from meshhub.model.scene import Image, Material, Mesh, Part, Scene, UInt8
from meshhub.toolkit.geometry import to_frame
from models import brick

pytestmark = pytest.mark.once

BRICK = brick(0.1, 0.2, 0.3)
"""Meters."""

UV = np.random.default_rng(0).random((8, 2)).astype(np.float32)
COLORS = np.random.default_rng(1).integers(0, 256, (8, 4)).astype(np.uint8)
COLORS[:, 3] = 255
REGISTRY = Registry(entry_points=False)


def picture() -> bytes:
    buffer = io.BytesIO()
    Picture.new("RGB", (2, 2), (200, 100, 50)).save(buffer, "PNG")
    return buffer.getvalue()


def scene_with(material: Material, *, colors: UInt8 | None = None, uv: bool = True) -> Scene:
    mesh = replace(BRICK, uv=UV if uv else None, colors=colors)
    return Scene((mesh,), (Part(0, material=0),), (material,), (Image(picture(), "image/png"),))


def convert(scene: Scene, target_format: str) -> tuple[bytes, Report]:
    """Convert the scene from GLB with the whole chain; return the file and the report."""
    source, target = Target("model.glb"), Target(f"model.{target_format}")
    write_glb(scene, source, NoOptions())
    data = Source.from_bytes(source.read(), "model.glb")
    report = REGISTRY.run(REGISTRY.resolve(Request(target=target_format), data), data, target)
    return target.read(), report


def codes(report: Report) -> set[str]:
    return {note.code for note in report.notes} - {"frame_converted", "names_dropped", "looks_like_millimeters"}


def product(first: UInt8, second: tuple[float, ...]) -> UInt8:
    """Multiply two sRGB colors in linear light, by the formulas of IEC 61966-2-1."""

    def linear(value: float) -> float:
        return value / 12.92 if value <= 0.04045 else float(((value + 0.055) / 1.055) ** 2.4)

    def encoded(value: float) -> float:
        return value * 12.92 if value <= 0.0031308 else float(1.055 * value ** (1 / 2.4) - 0.055)

    rows = [
        [round(255 * encoded(linear(a / 255) * linear(b))) for a, b in zip(row[:3], second[:3], strict=True)]
        for row in first.tolist()
    ]
    return np.array([[*row, 255] for row in rows], np.uint8)


def corner_colors(mesh: Mesh) -> UInt8:
    assert mesh.colors is not None
    corners: UInt8 = mesh.colors[mesh.faces]
    return corners


# -- sampling


@pytest.mark.parametrize("blend", ["nearest", "linear"])
def test_the_sampler_of_a_texture_survives_glb_to_3mf_to_glb(blend: str) -> None:
    wood = Material(base_color_image=0, wrap=("mirror", "clamp"), filter=blend)  # type: ignore[arg-type]
    data, report = convert(scene_with(wood), "3mf")
    assert codes(report) == set()
    (inside,) = read_3mf(Source.from_bytes(data, "a.3mf"), ThreeMFReadOptions()).materials
    assert (inside.wrap, inside.filter) == (("mirror", "clamp"), blend)
    target = Target("b.glb")
    source = Source.from_bytes(data, "a.3mf")
    REGISTRY.run(REGISTRY.resolve(Request(target="glb"), source), source, target)
    (last,) = read_glb(Source.from_bytes(target.read(), "b.glb"), NoOptions()).materials
    assert (last.wrap, last.filter) == (("mirror", "clamp"), blend)


def test_the_reference_library_reads_the_filter_strictly() -> None:
    data, _ = convert(scene_with(Material(base_color_image=0, filter="nearest", wrap=("clamp", "mirror"))), "3mf")
    model = lib3mf.get_wrapper().CreateModel()
    reader = model.QueryReader("3mf")
    reader.SetStrictModeActive(True)
    reader.ReadFromBuffer(data)
    assert reader.GetWarningCount() == 0
    textures = model.GetTexture2Ds()
    assert textures.MoveNext()
    texture = textures.GetCurrentTexture2D()
    assert texture.GetFilter() == lib3mf.TextureFilter.Nearest
    assert texture.GetTileStyleUV() == (lib3mf.TextureTileStyle.Clamp, lib3mf.TextureTileStyle.Mirror)
    assert not textures.MoveNext()


@pytest.mark.parametrize("profile", ["standard", "prusa", "bambu", "orca"])
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "BMP", "TGA", "GIF", "TIFF", "WEBP"])
def test_the_reference_library_reads_textures_of_every_format(kind: str, profile: str) -> None:
    """Projects of BambuStudio and OrcaSlicer lack UUIDs, so no texture makes them strictly valid."""
    mode = {"standard": "RGB", "prusa": "L", "bambu": "RGBA", "orca": "P"}[profile]
    original = Picture.fromarray(np.random.default_rng(2).integers(0, 256, (8, 8, 3)).astype(np.uint8))
    encoded = io.BytesIO()
    original.convert("CMYK" if kind == "JPEG" and mode in ("RGBA", "P") else mode).save(encoded, kind)
    obj = "mtllib a.mtl\nusemtl a\nv 0 0 0\nv 1 0 0\nv 0 1 0\nvt 0 0\nvt 1 0\nvt 0 1\nf 1/1 2/2 3/3\n"
    companions = {"a.mtl": b"newmtl a\nmap_Kd a.img\n", "a.img": encoded.getvalue()}
    target = Target("a.3mf")
    REGISTRY.convert(
        Source.from_bytes(obj.encode(), "a.obj", companions=companions), target, target="3mf", threemf_profile=profile
    )
    model = lib3mf.get_wrapper().CreateModel()
    reader = model.QueryReader("3mf")
    reader.SetStrictModeActive(profile in ("standard", "prusa"))
    reader.ReadFromBuffer(target.read())
    warnings = [reader.GetWarning(k)[1] for k in range(reader.GetWarningCount())]
    assert [warning for warning in warnings if "UUID" not in warning] == []
    textures = model.GetTexture2Ds()
    assert textures.MoveNext()
    texture = textures.GetCurrentTexture2D()
    content = bytes(texture.GetAttachment().WriteToBuffer())
    declared = {lib3mf.TextureType.PNG: "PNG", lib3mf.TextureType.JPEG: "JPEG"}[texture.GetContentType()]
    with Picture.open(io.BytesIO(content)) as stored, Picture.open(encoded) as expected:
        assert stored.format == declared
        assert np.array_equal(np.asarray(stored.convert("RGBA")), np.asarray(expected.convert("RGBA")))


def test_one_picture_with_two_samplers_becomes_two_textures() -> None:
    materials = (Material("a", base_color_image=0), Material("b", base_color_image=0, filter="nearest"))
    mesh = replace(BRICK, uv=UV, face_material=np.repeat([0, 1], 6).astype(np.int32))
    data, _ = convert(Scene((mesh,), (Part(0),), materials, (Image(picture(), "image/png"),)), "3mf")
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        model = file.read("3D/3dmodel.model")
    assert model.count(b"<m:texture2d ") == 2
    assert model.count(b' filter="nearest"') == 1


@pytest.mark.parametrize(
    "more", [{"wrap": ("mirror", "mirror")}, {"wrap": ("clamp", "repeat")}, {"filter": "nearest"}], ids=str
)
def test_obj_names_the_sampling_that_it_cannot_hold(more: dict[str, Any]) -> None:
    _, report = convert(scene_with(Material(base_color_image=0, **more)), "obj")
    assert codes(report) == {"texture_sampling_dropped"}
    _, report = convert(scene_with(Material(base_color_image=0, wrap=("clamp", "clamp"))), "obj")
    assert codes(report) == set()


# -- products


FACTOR = (0.4, 0.7, 0.9, 1.0)


def test_ply_has_the_product_of_factor_and_vertex_colors() -> None:
    data, report = convert(scene_with(Material(base_color=FACTOR), colors=COLORS, uv=False), "ply")
    mesh = read_ply(Source.from_bytes(data, "a.ply"), NoOptions()).meshes[0]
    assert len(mesh.vertices) == 8
    expected = product(COLORS, FACTOR)
    assert np.abs(corner_colors(mesh).astype(int) - expected[BRICK.faces]).max() <= 1
    assert codes(report) == {"materials_as_colors", "materials_dropped"}


def test_ply_duplicates_colored_vertices_only_between_different_factors() -> None:
    materials = (Material(base_color=FACTOR), Material("same", base_color=FACTOR), Material(base_color=(1, 0, 0, 1)))
    face_material = np.array([0] * 4 + [1] * 4 + [2] * 2 + [-1] * 2, np.int32)
    data, _ = convert(
        Scene((replace(BRICK, colors=COLORS, face_material=face_material),), (Part(0),), materials), "ply"
    )
    mesh = read_ply(Source.from_bytes(data, "a.ply"), NoOptions()).meshes[0]
    factors = [FACTOR, FACTOR, (1, 0, 0, 1), (1, 1, 1, 1)]
    tables = np.stack([product(COLORS, factor) for factor in factors])
    # GLB sorts the faces by material, with those without a material first
    order = np.argsort(face_material, kind="stable")
    expected = tables[face_material[order][:, None], BRICK.faces[order]]
    assert np.abs(corner_colors(mesh).astype(int) - expected).max() <= 1
    distinct = {
        (vertex, factors[m]) for m, face in zip(face_material, BRICK.faces.tolist(), strict=True) for vertex in face
    }
    assert len(mesh.vertices) == len(distinct)


@pytest.mark.parametrize("colors", [None, COLORS], ids=["factor", "factor and vertex colors"])
def test_3mf_multiplies_a_texture_with_factor_and_vertex_colors(colors: UInt8 | None) -> None:
    data, report = convert(scene_with(Material(base_color=FACTOR, base_color_image=0), colors=colors), "3mf")
    scene = to_frame(read_3mf(Source.from_bytes(data, "a.3mf"), ThreeMFReadOptions()), HOST_FRAME)
    white = np.full((8, 4), 255, np.uint8)
    expected = product(white if colors is None else colors, FACTOR)
    assert np.abs(corner_colors(scene.meshes[0]).astype(int) - expected[BRICK.faces]).max() <= 1
    assert scene.materials[scene.used_materials()[0]].base_color_image is not None
    assert codes(report) == set()


@pytest.mark.parametrize("material", [Material(base_color_image=0), Material(base_color=FACTOR)], ids=str)
def test_obj_names_the_product_that_it_does_not_define(material: Material) -> None:
    textured = material.base_color_image is not None
    _, report = convert(scene_with(material, colors=COLORS, uv=textured), "obj")
    assert codes(report) == {"colors_beside_materials"}
    for colors in (None, np.full((8, 4), 255, np.uint8)):
        _, report = convert(scene_with(material, colors=colors, uv=textured), "obj")
        assert codes(report) == set()


def test_obj_keeps_factor_and_texture_as_kd_and_map_kd() -> None:
    """MTL 4.2: a texture is multiplied by the value of Kd."""
    scene = scene_with(Material(base_color=FACTOR, base_color_image=0))
    source, target = Target("model.glb"), Target("model.obj")
    write_glb(scene, source, NoOptions())
    data = Source.from_bytes(source.read(), "model.glb")
    REGISTRY.run(REGISTRY.resolve(Request(target="obj"), data), data, target)
    library = target.read(next(name for name in target.names if name.endswith(".mtl")))
    assert b"Kd 0.4 0.7 0.9" in library
    assert b"map_Kd " in library


def test_a_textured_model_gets_vertex_colors_in_ply_with_a_note() -> None:
    _, report = convert(scene_with(Material(base_color_image=0)), "ply")
    assert codes(report) == {"textures_as_colors"}


# -- the rest


@pytest.mark.parametrize(
    ("lost", "target", "code", "shown"),
    [
        ({"emissive": (1, 0, 0)}, "3mf", "material_properties_dropped", "emissive colors of 1 material were"),
        ({"normal_image": 0}, "3mf", "material_properties_dropped", "normal maps of 1 material were"),
        ({"occlusion_image": 0}, "3mf", "material_properties_dropped", "occlusion maps of 1 material were"),
        ({"metallic_roughness_image": 0}, "3mf", "material_properties_dropped", "metallic and roughness maps"),
        ({"alpha_mode": "mask"}, "3mf", "alpha_cutoff_dropped", "3MF"),
        ({"alpha_mode": "mask"}, "obj", "alpha_cutoff_dropped", "MTL"),
    ],
)
def test_each_loss_of_a_material_is_named(lost: dict[str, Any], target: str, code: str, shown: str) -> None:
    material = Material(base_color_image=0, **lost)
    _, report = convert(scene_with(material), target)
    assert [shown in note.message for note in report.notes if note.code == code] == [True]
    assert codes(convert(scene_with(material), "glb")[1]) == set()


@pytest.mark.parametrize("target", ["3mf", "obj", "glb"])
def test_a_plain_textured_material_has_no_notes(target: str) -> None:
    _, report = convert(scene_with(Material(base_color=FACTOR, base_color_image=0, metallic=1)), target)
    assert codes(report) == set()
