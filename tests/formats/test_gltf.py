"""glTF and GLB: reading, rejected files, and checks of written files by other programs."""

from __future__ import annotations

import base64
import io
import json
import os
import shutil
import struct
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pygltflib
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from gltf_models import (
    PIXEL,
    SQUARE,
    TWO,
    Document,
    glb,
    load,
    load_with_notes,
    parse_json,
    square,
    to_meters,
    to_millimeters,
    write_scene,
)
from meshhub.builtin_plugins.gltf.reader import read
from meshhub.builtin_plugins.gltf.reading import draco, meshopt
from meshhub.builtin_plugins.gltf.sniff import sniff
from meshhub.errors import EmptyModel, ExternalReference, MeshhubError, ModelTooComplex, UnreadableFile
from meshhub.model.capabilities import NoOptions
from meshhub.model.scene import Image, Material, Mesh, Part, Scene
from meshhub.model.source import Source
from meshhub.toolkit.geometry import bounds, placed_mesh, soup, welded
from models import brick, edge_counts, move_mesh, scene_of, sphere, volume

pytestmark = pytest.mark.once


def rotation(angle: float, axis: str = "z") -> np.ndarray[Any, Any]:
    matrix: np.ndarray[Any, Any] = trimesh.transformations.rotation_matrix(
        angle, {"x": [1, 0, 0], "y": [0, 1, 0], "z": [0, 0, 1]}[axis]
    )
    return matrix


# ---- reading: triangles ----------------------------------------------------------------------------------------------


def test_a_square_is_read_in_meters_with_y_up() -> None:
    scene = load(square().glb())
    assert (scene.frame.unit, scene.frame.up) == ("m", "y")
    assert np.array_equal(scene.meshes[0].vertices, SQUARE)
    assert scene.meshes[0].faces.tolist() == [[0, 1, 2], [0, 2, 3]]
    assert bounds(to_millimeters(scene)).tolist() == [[0, 0, 0], [1000, 0, 1000]]


@pytest.mark.parametrize("kind", ["glb", "gltf"])
def test_glb_and_gltf_give_the_same_scene(kind: str) -> None:
    document = square()
    assert load(getattr(document, kind)()).face_count == 2


@pytest.mark.parametrize("excess", [1, 2, 3])
@pytest.mark.parametrize("is_padded", [True, False])
@pytest.mark.parametrize("between", [b"", b"spare"])
def test_a_glb_with_unaligned_chunk_lengths_is_read(excess: int, is_padded: bool, between: bytes) -> None:
    """glTF 2.0 §4.4.3 requires multiples of four; exporters state the unpadded length and may omit the padding."""
    document = square()
    document.data += bytes(5)
    document.json["buffers"] = [{"byteLength": len(document.data)}]
    text = json.dumps(document.json).encode()
    text += b" " * ((excess - len(text)) % 4)
    chunks = b""
    for kind, data in ((b"JSON", text), (b"XTRA", between), (b"BIN\0", document.data)):
        if data:
            chunks += struct.pack("<I4s", len(data), kind) + data + bytes(-len(data) % 4 * is_padded)
    scene, codes = load_with_notes(struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks)
    assert np.array_equal(scene.meshes[0].vertices, SQUARE)
    assert scene.meshes[0].faces.tolist() == [[0, 1, 2], [0, 2, 3]]
    assert codes == []


@pytest.mark.parametrize(
    ("mode", "indices", "faces"),
    [
        (5, [0, 1, 3, 2], [[0, 1, 3], [1, 2, 3]]),
        (5, [0, 1, 3, 65535, 1, 2, 3], [[0, 1, 3], [1, 2, 3]]),
        (5, [0, 1, 3, 3, 2, 2, 1, 0], [[0, 1, 3], [2, 0, 1]]),
        (6, [0, 1, 2, 3], [[1, 2, 0], [2, 3, 0]]),
        (6, [0, 1, 2, 65535, 1, 2, 3], [[1, 2, 0], [2, 3, 1]]),
        (5, [0, 1], []),
    ],
)
def test_strips_and_fans_keep_their_winding(mode: int, indices: list[int], faces: list[list[int]]) -> None:
    document = Document()
    primitive = {"attributes": {"POSITION": document.accessor(SQUARE)}, "mode": mode}
    primitive["indices"] = document.accessor(np.array(indices, np.uint16))
    document.mesh(primitive)
    scene = load(document.place({"mesh": 0}).glb())
    assert [mesh.faces.tolist() for mesh in scene.meshes] == ([faces] if faces else [])


def test_triangles_without_indices_are_read() -> None:
    document = Document()
    document.mesh({"attributes": {"POSITION": document.accessor(SQUARE[[0, 1, 2, 0, 2, 3]])}})
    scene = load(document.place({"mesh": 0}).glb())
    assert scene.meshes[0].faces.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_points_and_lines_are_left_out_with_a_note() -> None:
    document = square()
    for mode in (0, 1, 2, 3):
        document.json["meshes"][0]["primitives"].append({"attributes": {"POSITION": 0}, "mode": mode})
    scene, codes = load_with_notes(document.glb())
    assert scene.face_count == 2
    assert set(codes) == {"points_ignored", "lines_ignored"}


def test_interleaved_sparse_and_quantized_vertices_are_read() -> None:
    document = Document()
    packed = np.zeros((4, 8), np.int16)
    packed[:, :3] = SQUARE * 32767
    view = document.view(packed.tobytes(), byteStride=16)
    document.json["accessors"].append(
        {
            "bufferView": view,
            "componentType": 5122,
            "normalized": True,
            "count": 4,
            "type": "VEC3",
            "sparse": {
                "count": 1,
                "indices": {"bufferView": document.view(np.array([2], np.uint8).tobytes()), "componentType": 5121},
                "values": {"bufferView": document.view(np.array([32767, 32767, -32767], np.int16).tobytes())},
            },
        }
    )
    document.json["extensionsRequired"] = ["KHR_mesh_quantization"]
    document.mesh({"attributes": {"POSITION": 0}, "indices": document.accessor(TWO)})
    vertices = load(document.place({"mesh": 0}).glb()).meshes[0].vertices
    assert np.allclose(vertices, [[0, 0, 0], [1, 0, 0], [1, 1, -1], [0, 1, 0]])


def test_an_accessor_without_bytes_is_zeros_with_sparse_rows() -> None:
    document = Document()
    document.json["accessors"].append(
        {
            "componentType": 5126,
            "count": 3,
            "type": "VEC3",
            "sparse": {
                "count": 2,
                "indices": {"bufferView": document.view(np.array([1, 2], np.uint16).tobytes()), "componentType": 5123},
                "values": {"bufferView": document.view(np.array([1, 0, 0, 0, 1, 0], np.float32).tobytes())},
            },
        }
    )
    document.mesh({"attributes": {"POSITION": 0}})
    vertices = load(document.place({"mesh": 0}).glb()).meshes[0].vertices
    assert vertices.tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0]]


def test_primitives_become_one_mesh_with_a_material_for_each_face() -> None:
    document = Document()
    position = document.accessor(SQUARE)
    document.json["materials"] = [{"name": "red"}, {"name": "blue"}]
    halves = [document.accessor(half) for half in (TWO[:3], TWO[3:])]
    document.mesh(
        *(
            {"attributes": {"POSITION": position}, "indices": half, "material": material}
            for half, material in zip(halves, (1, 0), strict=True)
        ),
        {"attributes": {"POSITION": document.accessor(SQUARE + np.float32(5))}, "indices": halves[0]},
    )
    scene = load(document.place({"mesh": 0}).glb())
    (mesh,) = scene.meshes
    assert len(mesh.vertices) == 4 + 3
    assert mesh.face_material is not None
    assert [scene.materials[index].name if index >= 0 else "" for index in mesh.face_material] == ["blue", "red", ""]
    assert np.allclose(mesh.vertices[mesh.faces[2]], SQUARE[:3] + 5)


def test_meshes_that_share_a_large_accessor_take_their_own_vertices() -> None:
    document = Document()
    position = document.accessor(np.tile(SQUARE, (1000, 1)))
    indices = document.accessor(np.array([3996, 3997, 3998], np.uint16))
    document.mesh({"attributes": {"POSITION": position}, "indices": indices})
    (mesh,) = load(document.place({"mesh": 0}).glb()).meshes
    assert len(mesh.vertices) == 3
    assert np.array_equal(mesh.vertices[mesh.faces[0]], SQUARE[:3])


def test_missing_normals_are_computed_if_another_primitive_has_normals() -> None:
    document = Document()
    up = document.accessor(np.tile(np.array([0, 0, 2], np.float32), (4, 1)))
    indices = document.accessor(TWO)
    document.mesh(
        {"attributes": {"POSITION": document.accessor(SQUARE), "NORMAL": up}, "indices": indices},
        {"attributes": {"POSITION": document.accessor(SQUARE[:, [2, 0, 1]])}, "indices": indices},
    )
    (mesh,) = load(document.place({"mesh": 0}).glb()).meshes
    assert mesh.normals is not None
    assert np.allclose(mesh.normals, [[0, 0, 1]] * 4 + [[1, 0, 0]] * 4)


def test_triangles_with_indices_out_of_range_are_dropped_with_a_note() -> None:
    document = square()
    document.json["meshes"][0]["primitives"][0]["indices"] = document.accessor(np.array([0, 1, 2, 0, 2, 9], np.uint8))
    scene, codes = load_with_notes(document.glb())
    assert scene.face_count == 1
    assert codes == ["faces_dropped"]


# ---- reading: nodes --------------------------------------------------------------------------------------------------


def test_transforms_names_and_paths_are_read() -> None:
    document = square()
    document.json["meshes"][0]["name"] = "plate"
    half = np.sqrt(0.5)
    document.place(
        {"name": "machine", "children": [1], "translation": [1, 2, 3]},
        {"children": [2, 3]},
        {"name": "turned", "mesh": 0, "rotation": [0, 0, half, half], "scale": [2, 3, 4]},
        {"name": "matrix", "mesh": 0, "matrix": [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 7, 8, 9, 1]},
        roots=[0],
    )
    scene = load(document.glb())
    assert [(part.name, part.path) for part in scene.parts] == [("turned", ("machine",)), ("matrix", ("machine",))]
    assert scene.meshes[0].name == "plate"
    assert {part.mesh for part in scene.parts} == {0}
    assert np.allclose(scene.parts[0].transform @ [1, 0, 0, 1], [1, 4, 3, 1])
    assert np.allclose(scene.parts[0].transform @ [0, 1, 0, 1], [-2, 2, 3, 1])
    assert np.allclose(scene.parts[1].transform[:3, 3], [8, 10, 12])


def test_a_mirrored_node_keeps_its_faces_outward() -> None:
    document = Document()
    cube = brick(1, 1, 1)
    position = document.accessor(cube.vertices.astype(np.float32))
    indices = document.accessor(cube.faces.astype(np.uint16).ravel())
    document.mesh({"attributes": {"POSITION": position}, "indices": indices})
    scene = load(document.place({"mesh": 0, "scale": [-1, 1, 1]}).glb())
    assert volume(*soup(scene)) == pytest.approx(1)


def test_instancing_makes_parts_that_share_a_mesh() -> None:
    document = square()
    attributes = {
        "TRANSLATION": document.accessor(np.array([[0, 0, 0], [5, 0, 0]], np.float32)),
        "SCALE": document.accessor(np.array([[1, 1, 1], [2, 2, 2]], np.float32)),
    }
    extension = {"EXT_mesh_gpu_instancing": {"attributes": attributes}}
    document.place({"mesh": 0, "translation": [0, 10, 0], "extensions": extension})
    scene = load(document.glb())
    assert [part.mesh for part in scene.parts] == [0, 0]
    assert np.allclose(bounds(scene), [[0, 10, 0], [7, 12, 0]])


def test_the_default_scene_is_read_and_hidden_nodes_are_not() -> None:
    document = square()
    hidden = {"KHR_node_visibility": {"visible": False}}
    document.place(
        {"mesh": 0},
        {"children": [2], "extensions": hidden},
        {"mesh": 0},
        {"mesh": 0, "translation": [3, 0, 0]},
    )
    document.json |= {"scene": 1, "scenes": [{"nodes": [0]}, {"nodes": [1, 3], "name": "shown"}]}
    scene, codes = load_with_notes(document.glb())
    assert scene.name == "shown"
    assert [part.transform[0, 3] for part in scene.parts] == [3]
    assert set(codes) == {"hidden_ignored", "scenes_ignored"}


def test_a_file_that_hides_all_nodes_is_read_with_a_note() -> None:
    document = square()
    hidden = {"KHR_node_visibility": {"visible": False}}
    document.place({"children": [1, 2], "extensions": hidden}, {"mesh": 0}, {"mesh": 0}, roots=[0])
    scene, codes = load_with_notes(document.glb())
    assert len(scene.parts) == 2
    assert set(codes) == {"hidden_read"}


def test_without_scenes_all_roots_are_read() -> None:
    document = square()
    document.place({"children": [1]}, {"mesh": 0}, {"mesh": 0})
    del document.json["scenes"], document.json["scene"]
    assert len(load(document.glb()).parts) == 2


def test_a_node_below_several_parents_is_placed_below_each() -> None:
    document = square()
    document.place(
        {"children": [2], "translation": [5, 0, 0]}, {"children": [2], "scale": [2, 2, 2]}, {"mesh": 0}, roots=[0, 1]
    )
    scene, codes = load_with_notes(document.glb())
    assert np.allclose(bounds(scene), [[0, 0, 0], [6, 2, 0]])
    assert codes == ["node_repeated"]


def test_a_node_that_a_scene_names_twice_is_placed_once() -> None:
    document = square()
    document.json["scenes"][0]["nodes"] *= 2
    scene, codes = load_with_notes(document.glb())
    assert (len(scene.parts), codes) == (1, ["node_repeated"])


def test_a_cycle_of_nodes_is_rejected() -> None:
    document = square().place({"children": [1]}, {"children": [0], "mesh": 0}, roots=[0])
    with pytest.raises(UnreadableFile, match=r"nodes\[1\]\.children names nodes\[0\]"):
        load(document.glb())


def test_nodes_that_double_at_every_level_are_rejected() -> None:
    document = square().place(*({"children": [n + 1, n + 1]} for n in range(60)), {"mesh": 0}, roots=[0])
    with pytest.raises(UnreadableFile, match="other parents"):
        load(document.glb())


def test_ten_thousand_levels_of_nodes_are_read() -> None:
    count = 10_000
    chain = [{"name": "n", "mesh": 0, "translation": [0, 0, 1], "children": [n + 1]} for n in range(count)]
    document = square().place(*chain, {"mesh": 0}, roots=[0])
    scene = load(document.glb())
    assert scene.parts[-1].transform[2, 3] == count


def test_a_skinned_mesh_is_read_in_its_bind_pose() -> None:
    document = square()
    inverse = np.eye(4, dtype=np.float32)
    inverse[3, 0] = -7
    document.json["skins"] = [{"joints": [1], "inverseBindMatrices": document.accessor(inverse.reshape(1, 16))}]
    document.place({"mesh": 0, "skin": 0, "translation": [50, 0, 0]}, {"translation": [7, 3, 0]})
    scene, codes = load_with_notes(document.glb())
    assert np.allclose(bounds(scene), [[0, 3, 0], [1, 4, 0]])
    assert codes == ["skin_ignored"]


# ---- reading: appearance ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
@pytest.mark.parametrize("width", [3, 4])
def test_linear_colors_become_srgb(dtype: type[np.generic], width: int) -> None:
    top = 1 if dtype is np.float32 else np.iinfo(dtype).max  # type: ignore[type-var]
    linear = np.array([[0, 0.2158605, 1, 0.5]] * 4)[:, :width]
    colors = (linear * top).round(0 if top > 1 else 9).astype(dtype)
    document = square(material=0)
    document.json["materials"] = [{"alphaMode": "BLEND"}]
    document.json["meshes"][0]["primitives"][0]["attributes"]["COLOR_0"] = document.accessor(colors, normalized=top > 1)
    read = load(document.glb()).meshes[0].colors
    assert read is not None
    assert np.abs(read[0].astype(int) - [0, 128, 255, 128 if width == 4 else 255]).max() <= 1


def material_scene(material: dict[str, Any], **more: Any) -> tuple[Scene, list[str]]:
    document = square(material=0)
    uv = document.accessor(np.array([[0, 0], [1, 0], [1, 1], [0, 1]], np.float32))
    other = document.accessor(np.full((4, 2), 0.25, np.float32))
    document.json["meshes"][0]["primitives"][0]["attributes"] |= {"TEXCOORD_0": uv, "TEXCOORD_1": other}
    document.json |= {
        "materials": [material],
        "textures": [{"source": 0, "sampler": 0}],
        "samplers": [{"wrapS": 33071, "wrapT": 33648}],
        "images": [{"bufferView": document.view(PIXEL), "mimeType": "image/png", "name": "dot"}],
        **more,
    }
    return load_with_notes(document.glb())


def test_a_material_and_its_texture_are_read() -> None:
    scene, codes = material_scene(
        {
            "name": "skin",
            "pbrMetallicRoughness": {
                "baseColorFactor": [0.2158605, 1, 0, 0.5],
                "baseColorTexture": {"index": 0},
                "metallicFactor": 0.25,
                "roughnessFactor": 0.75,
            },
            "emissiveFactor": [1, 0, 0],
            "alphaMode": "MASK",
            "alphaCutoff": 0.3,
            "doubleSided": True,
            "extensions": {"KHR_materials_unlit": {}},
        }
    )
    (material,) = scene.materials
    assert material.base_color == pytest.approx((0.50196, 1, 0, 0.5), abs=1e-4)
    assert (material.name, material.metallic, material.roughness) == ("skin", 0.25, 0.75)
    assert (material.alpha_mode, material.alpha_cutoff, material.double_sided) == ("mask", 0.3, True)
    assert material.unlit
    assert material.emissive == (1, 0, 0)
    assert material.wrap == ("clamp", "mirror")
    assert scene.images[material.base_color_image or 0] == Image(PIXEL, "image/png", "dot")
    assert scene.meshes[0].uv is not None
    assert scene.meshes[0].uv.tolist() == [[0, 1], [1, 1], [1, 0], [0, 0]]
    assert codes == []


def test_a_texture_transform_is_baked_into_the_coordinates() -> None:
    transform = {"offset": [0.25, 0.5], "rotation": np.pi / 2, "scale": [2, 4]}
    texture = {"index": 0, "extensions": {"KHR_texture_transform": transform}}
    scene, _ = material_scene({"pbrMetallicRoughness": {"baseColorTexture": texture}})
    uv = scene.meshes[0].uv
    assert uv is not None
    # after the scale, a quarter turn maps u to -v and v to u
    assert np.allclose(uv, [[0.25, 0.5], [0.25, 2.5], [4.25, 2.5], [4.25, 0.5]], atol=1e-6)


def test_the_second_uv_set_is_used_if_the_texture_refers_to_it() -> None:
    scene, codes = material_scene(
        {
            "pbrMetallicRoughness": {"baseColorTexture": {"index": 0, "texCoord": 1}},
            "normalTexture": {"index": 0},
        }
    )
    assert scene.meshes[0].uv is not None
    assert np.allclose(scene.meshes[0].uv, [0.25, 0.75])
    assert scene.materials[0].normal_image is None
    assert codes == ["texture_dropped"]


def test_specular_glossiness_gives_its_diffuse_color() -> None:
    glossy = {"diffuseFactor": [1, 0, 0, 1], "diffuseTexture": {"index": 0}, "glossinessFactor": 0.25}
    scene, _ = material_scene({"extensions": {"KHR_materials_pbrSpecularGlossiness": glossy}})
    (material,) = scene.materials
    assert material.base_color == (1, 0, 0, 1)
    assert (material.base_color_image, material.metallic, material.roughness) == (0, 0, 0.75)


def test_a_buffer_that_starts_as_text_is_read_as_it_is() -> None:
    points = np.full((3, 3), 1.5, np.float32) + np.eye(3, dtype=np.float32) / 3
    points.reshape(-1)[0] = np.frombuffer(b"\xef\xbb\xbf\x3f", np.float32)[0]
    document = {
        "asset": {"version": "2.0"},
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}],
        "buffers": [{"uri": "a.bin", "byteLength": 36}],
        "bufferViews": [{"buffer": 0, "byteLength": 36}],
        "accessors": [{"bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3"}],
    }
    # zeros would show that the buffer is not text
    content = points.tobytes().replace(b"\0", b"\1")
    scene = load(json.dumps(document).encode(), **{"a.bin": content})
    assert np.array_equal(scene.meshes[0].vertices, np.frombuffer(content, np.float32).reshape(3, 3))


def test_a_missing_image_is_named_and_a_companion_is_used() -> None:
    document = square(material=0)
    document.json |= {
        "materials": [{"pbrMetallicRoughness": {"baseColorTexture": {"index": 0}}}],
        "textures": [{"source": 0}],
        "images": [{"uri": "wood%20grain.png"}],
    }
    scene, codes = load_with_notes(document.glb())
    assert codes == ["texture_missing"]
    assert scene.face_count == 2
    scene, codes = load_with_notes(document.glb(), **{"wood grain.png": PIXEL})
    assert codes == []
    assert [image.data for image in scene.images] == [PIXEL]


@pytest.mark.parametrize("invalid", [{"baseColorFactor": "red"}, {"metallicFactor": True}])
def test_an_invalid_material_is_noted_and_the_geometry_kept(invalid: dict[str, Any]) -> None:
    scene, codes = material_scene({"pbrMetallicRoughness": invalid})
    assert scene.face_count == 2
    assert codes == ["material_ignored"]


# ---- reading: extensions ---------------------------------------------------------------------------------------------


def test_unknown_required_extensions_are_rejected() -> None:
    document = square()
    document.json["extensionsRequired"] = ["ACME_sparkle"]
    _, codes = load_with_notes(document.glb())
    assert codes == ["extension_ignored"]
    document.json["extensionsRequired"] = ["ACME_mesh_wavelets"]
    with pytest.raises(UnreadableFile, match="ACME_mesh_wavelets"):
        load(document.glb())


def draco_document() -> Document:
    library = pytest.importorskip("DracoPy", reason="DracoPy is not installed")
    ball = sphere(1, 16)
    document = Document()
    view = document.view(library.encode(ball.vertices.astype(np.float32), ball.faces.astype(np.uint32)))
    document.json["accessors"] = [
        {"componentType": 5126, "count": len(ball.vertices), "type": "VEC3"},
        {"componentType": 5123, "count": ball.faces.size, "type": "SCALAR"},
    ]
    document.json["extensionsRequired"] = [draco.EXTENSION]
    packed = {draco.EXTENSION: {"bufferView": view, "attributes": {"POSITION": 0}}}
    document.mesh({"attributes": {"POSITION": 0}, "indices": 1, "extensions": packed})
    return document.place({"mesh": 0})


def test_draco_is_read() -> None:
    scene = load(draco_document().glb())
    ball = sphere(1, 16)
    assert scene.face_count == len(ball.faces)
    assert volume(*soup(scene)) == pytest.approx(volume(ball.vertices, ball.faces), rel=1e-2)


def test_draco_without_its_library_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    data = draco_document().glb()
    monkeypatch.setattr(draco, "is_available", lambda: False)
    with pytest.raises(UnreadableFile, match=r"KHR_draco_mesh_compression.*pip install \"dracopy"):
        load(data)


def meshopt_document() -> Document:
    pytest.importorskip("meshoptimizer", reason="meshoptimizer is not installed")
    from meshoptimizer import encode_index_buffer, encode_vertex_buffer

    ball = sphere(1, 16)
    vertices = np.ascontiguousarray(ball.vertices, np.float32)
    packed = [
        (encode_vertex_buffer(vertices, len(vertices), 12), "ATTRIBUTES", 12, len(vertices)),
        (encode_index_buffer(ball.faces.ravel().astype(np.uint32), ball.faces.size, len(vertices)), "TRIANGLES", 4, 0),
    ]
    document = Document()
    for data, mode, stride, count in packed:
        count = count or ball.faces.size
        compressed = {
            "buffer": 0,
            "byteOffset": len(document.data),
            "byteLength": len(data),
            "byteStride": stride,
            "count": count,
            "mode": mode,
        }
        document.data += bytes(data) + bytes(-len(data) % 4)
        document.json["bufferViews"].append(
            {
                "buffer": 1,
                "byteOffset": 0,
                "byteLength": count * stride,
                "extensions": {"EXT_meshopt_compression": compressed},
            }
        )
    document.json["accessors"] = [
        {"bufferView": 0, "componentType": 5126, "count": len(vertices), "type": "VEC3"},
        {"bufferView": 1, "componentType": 5125, "count": ball.faces.size, "type": "SCALAR"},
    ]
    document.json["extensionsRequired"] = ["EXT_meshopt_compression"]
    document.mesh({"attributes": {"POSITION": 0}, "indices": 1})
    return document.place({"mesh": 0})


def meshopt_bytes() -> bytes:
    document = meshopt_document()
    document.json["buffers"] = [{"byteLength": len(document.data)}, {"byteLength": 1 << 20}]
    return glb(json.dumps(document.json).encode(), document.data)


def test_meshopt_is_read() -> None:
    scene = load(meshopt_bytes())
    ball = sphere(1, 16)
    assert volume(*soup(scene)) == pytest.approx(volume(ball.vertices, ball.faces), rel=1e-5)


def test_meshopt_without_its_library_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    data = meshopt_bytes()
    monkeypatch.setattr(meshopt, "is_available", lambda: False)
    with pytest.raises(UnreadableFile, match=r'EXT_meshopt_compression.*pip install "meshoptimizer'):
        load(data)


def test_the_uncompressed_copy_is_read_if_a_library_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draco, "is_available", lambda: False)
    monkeypatch.setattr(meshopt, "is_available", lambda: False)
    document = square()
    junk = document.view(b"junk")
    packed = {draco.EXTENSION: {"bufferView": junk, "attributes": {"POSITION": 0}}}
    document.json["meshes"][0]["primitives"][0]["extensions"] = packed
    compressed = {"buffer": 0, "byteOffset": 0, "byteLength": 4, "byteStride": 12, "count": 4, "mode": "ATTRIBUTES"}
    document.json["bufferViews"][0]["extensions"] = {"KHR_meshopt_compression": compressed}
    assert np.array_equal(load(document.glb()).meshes[0].vertices, SQUARE)


def test_a_file_read_by_its_path_finds_its_companions(tmp_path: Path) -> None:
    document = square()
    (tmp_path / "model.gltf").write_bytes(document.gltf(uri="./parts/shape%20one.bin"))
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "shape one.bin").write_bytes(document.data)
    scene = read(Source.from_path(tmp_path / "model.gltf"), NoOptions())
    assert scene.face_count == 2


# ---- rejecting -------------------------------------------------------------------------------------------------------


def test_missing_buffers_are_named_and_companions_used() -> None:
    document = square()
    data = document.gltf(uri="shape.bin")
    with pytest.raises(ExternalReference, match=r"shape\.bin"):
        load(data)
    assert load(data, **{"shape.bin": document.data}).face_count == 2
    for uri in ("http://127.0.0.1:1/shape.bin", "file:///etc/passwd", "../../etc/passwd"):
        with pytest.raises(ExternalReference):
            load(document.gltf(uri=uri))


@pytest.mark.parametrize(
    "data",
    [
        json.dumps({"asset": {"version": "1.0"}, "meshes": {"a": {}}}).encode(),
        json.dumps({"asset": {"version": 1}}).encode(),
        json.dumps({"meshes": {"a": {}}}).encode(),
        b"glTF\x01\0\0\0\x20\0\0\0\x08\0\0\0\0\0\0\0{}      ",
    ],
)
def test_the_error_of_gltf_1_names_the_version(data: bytes) -> None:
    with pytest.raises(UnreadableFile, match=r"glTF 1\.0"):
        load(data)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda json: json["accessors"][0].update(bufferView="x"), r"accessors\[0\]\.bufferView"),
        (lambda json: json["accessors"][0].update(bufferView=99), r"accessors\[0\]\.bufferView.*bufferViews\[99\]"),
        (lambda json: json["accessors"][0].update(count=10**15), r"accessors\[0\]\.count"),
        (lambda json: json["accessors"][0].update(count=-1), r"accessors\[0\]\.count"),
        (lambda json: json["accessors"][0].update(componentType=5130), r"accessors\[0\]\.componentType"),
        (lambda json: json["accessors"][0].update(type="VEC9"), r"accessors\[0\]\.type"),
        (lambda json: json["accessors"][0].update(type="VEC2"), "POSITION"),
        (lambda json: json["accessors"][0].update(bufferView=None, count=10**12), r"accessors\[0\]\.count"),
        (lambda json: json["bufferViews"][0].update(buffer=1), r"bufferViews\[0\]\.buffer"),
        (lambda json: json["bufferViews"][0].update(byteLength=True), r"bufferViews\[0\]\.byteLength"),
        (lambda json: json["bufferViews"][0].update(byteStride=4), "byteStride"),
        (lambda json: json["accessors"][1].update(componentType=5126), "indices|count"),
        (lambda json: json["accessors"][1].update(type="VEC2", count=3), "indices"),
        (lambda json: json["meshes"][0]["primitives"][0].update(mode=7), r"meshes\[0\]\.primitives\[0\]\.mode"),
        (lambda json: json["meshes"][0].update(primitives={}), r"meshes\[0\]\.primitives"),
        (lambda json: json["nodes"][0].update(mesh=4), r"nodes\[0\]\.mesh"),
        (lambda json: json["nodes"][0].update(matrix=[1] * 15), r"nodes\[0\]\.matrix"),
        (lambda json: json["nodes"][0].update(matrix=[1.0] * 16), r"nodes\[0\]\.matrix"),
        (lambda json: json["nodes"][0].update(children=["a"]), r"nodes\[0\]\.children"),
        (lambda json: json["scenes"][0].update(nodes=[9]), r"scenes\[0\]\.nodes"),
        (lambda json: json.update(nodes=[1]), r"nodes\[0\]"),
    ],
)
def test_the_error_of_an_invalid_value_names_its_place(change: Any, place: str) -> None:
    document = square()
    change(document.json)
    with pytest.raises(UnreadableFile, match=place):
        load(document.glb())


def test_indices_that_end_within_a_triangle_are_left_out() -> None:
    document = square()
    document.json["accessors"][1]["count"] = 5
    scene, codes = load_with_notes(document.glb())
    assert (scene.face_count, codes) == (1, ["indices_left_over"])


def test_a_file_with_only_invalid_indices_is_rejected() -> None:
    document = square()
    document.json["meshes"][0]["primitives"][0]["indices"] = document.accessor(np.array([7, 8, 9], np.uint8))
    with pytest.raises(UnreadableFile, match="vertices up to 9, and there are 4"):
        load(document.glb())


def test_deeply_nested_json_is_rejected() -> None:
    with pytest.raises(UnreadableFile):
        load(b'{"asset":{"version":"2.0"},"extras":' + b"[" * 200_000)


def test_excessively_shared_bytes_are_rejected() -> None:
    document = Document()
    position = document.accessor(np.zeros((60_000, 3), np.float32))
    for number in range(1000):
        document.mesh({"attributes": {"POSITION": position}}, name=f"mesh {number}")
    document.place(*({"mesh": mesh} for mesh in range(1000)))
    with pytest.raises(ModelTooComplex):
        load(document.glb())


def test_the_sniffer_distinguishes_gltf_from_other_json() -> None:
    data = square().gltf()
    assert sniff(b" \n" + data, len(data)) > 80
    assert sniff(b'{"buffers":[{"uri":"data:application/octet-stream;base64,' + b"A" * 60_000, 10**6) > 80
    assert sniff(b'{"accessors": [' + b'{"componentType": 5126, "count": 3},' * 2000, 10**6) > 80
    assert sniff(b'{"nodes": [1, 2], "edges": [[1, 2]]}', 40) == 0
    assert sniff(b'{"name": "package", "version": "1"}', 40) == 0
    assert sniff(b"solid asset", 40) == 0


@settings(max_examples=150)
@given(data=st.data())
def test_damaged_files_give_a_coded_error_or_a_scene(data: st.DataObject) -> None:
    whole = bytearray(square().glb() if data.draw(st.booleans()) else square().gltf())
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    length = data.draw(st.one_of(st.just(len(whole)), st.integers(0, len(whole))))
    try:
        scene = load(bytes(whole[:length]))
    except MeshhubError:
        return
    for mesh in scene.meshes:
        assert mesh.faces.size == 0 or 0 <= mesh.faces.min() <= mesh.faces.max() < len(mesh.vertices)


# ---- writing ---------------------------------------------------------------------------------------------------------


def rich_scene() -> Scene:
    """Return two materials on one mesh, colors, normals, UV, an image, instances, groups and a mirrored part."""
    ball = sphere(5, 16, name="ball")
    count = len(ball.vertices)
    colored = replace(
        ball,
        normals=ball.vertices / 5,
        colors=np.stack([np.arange(count) % 256] * 3 + [np.full(count, 255)], axis=1),
        uv=np.stack([np.linspace(0, 1, count), np.linspace(0, 0.5, count)], axis=1),
        face_material=np.arange(len(ball.faces)) % 3 - 1,
    )
    mirror = np.diag([-1.0, 1, 1, 1])
    mirror[:3, 3] = [40, 0, 0]
    return Scene(
        (brick(), colored),
        (
            Part(0, name="first"),
            Part(0, rotation(0.3, "x") @ rotation(1.1), "second", ("frame", "left"), 0),
            Part(1, mirror, "third", ("frame",), 2),
            Part(1, trimesh.transformations.translation_matrix([0, 90, 0]), "fourth", ("frame", "left"), 1),
        ),
        (
            Material("red", (1, 0, 0, 1), metallic=0.1, roughness=0.9),
            Material("wood", base_color_image=0, wrap=("clamp", "repeat"), double_sided=True, alpha_mode="blend"),
            Material("glow", (0.5, 0.25, 0.125, 0.5), emissive=(0, 0.5, 1), unlit=True, alpha_mode="mask"),
        ),
        (Image(PIXEL, "image/png", "dot"),),
        name="machine",
    )


@pytest.mark.parametrize("kind", ["glb", "gltf"])
def test_all_features_survive_a_round_trip(kind: str) -> None:
    scene = rich_scene()
    back = to_millimeters(load(write_scene(scene, kind)))
    assert back.features() == scene.features()
    assert back.name == "machine"
    assert np.allclose(bounds(back), bounds(scene), atol=1e-4)
    part_by_name = {part.name: part for part in back.parts}
    assert len(back.meshes) == 3
    assert part_by_name["first"].mesh == part_by_name["second"].mesh
    for part in scene.parts:
        assert part_by_name[part.name].path == part.path
        assert np.allclose(part_by_name[part.name].transform, part.transform, atol=1e-9)
    assert sorted(material.name for material in back.materials) == ["glow", "red", "wood"]
    for material in back.materials:
        (original,) = [candidate for candidate in scene.materials if candidate.name == material.name]
        assert material.base_color == pytest.approx(original.base_color, abs=1e-8)
        assert material.emissive == pytest.approx(original.emissive, abs=1e-8)
        attributes = ("metallic", "roughness", "double_sided", "unlit", "alpha_mode")
        assert [getattr(material, key) for key in attributes] == [getattr(original, key) for key in attributes]
    (picture,) = back.images
    assert picture.data == PIXEL
    third = placed_mesh(back.meshes[part_by_name["third"].mesh], part_by_name["third"].transform)
    original = placed_mesh(scene.meshes[1], scene.parts[2].transform)
    assert volume(third.vertices, third.faces) == pytest.approx(volume(original.vertices, original.faces), rel=1e-5)
    for name in ("colors", "uv", "normals"):
        assert np.allclose(getattr(third, name), getattr(original, name), atol=1e-6)


def test_faces_keep_their_materials() -> None:
    scene = rich_scene()
    back = to_millimeters(load(write_scene(scene)))
    part_by_name = {part.name: part for part in back.parts}
    for name, third in (("third", "glow"), ("fourth", "wood")):
        mesh = back.meshes[part_by_name[name].mesh]
        assert mesh.face_material is not None
        names = [back.materials[index].name for index in mesh.face_material]
        centers = mesh.vertices[mesh.faces].mean(axis=1)
        ball = scene.meshes[1]
        expected = {
            tuple(center.round(3) + 0.0): [third, "red", "wood"][number % 3]
            for number, center in enumerate(ball.vertices[ball.faces].mean(axis=1))
        }
        assert all(expected[tuple(c.round(3) + 0.0)] == m for c, m in zip(centers, names, strict=True))
    assert part_by_name["first"].material is None
    assert back.materials[part_by_name["second"].material or 0].name == "red"


def test_instances_with_different_materials_share_their_bytes() -> None:
    single = scene_of(sphere(5, 64))
    parts = [Part(0, trimesh.transformations.translation_matrix([20 * n, 0, 0]), material=n % 2) for n in range(6)]
    six = replace(single, parts=parts, materials=(Material("a", (1, 0, 0, 1)), Material("b", (0, 1, 0, 1))))
    assert len(write_scene(six)) < len(write_scene(single)) + 3000
    document = parse_json(write_scene(six))
    assert len(document["meshes"]) == 2
    assert len(document["accessors"]) == 2


def test_output_is_reproducible() -> None:
    for kind in ("glb", "gltf"):
        assert write_scene(rich_scene(), kind) == write_scene(rich_scene(), kind)
    assert parse_json(write_scene(rich_scene()))["asset"] == {"version": "2.0", "generator": "meshhub"}


def test_a_box_is_written_in_meters_and_upright() -> None:
    (accessor,) = [item for item in parse_json(write_scene(scene_of(brick())))["accessors"] if item["type"] == "VEC3"]
    assert accessor["min"] == pytest.approx([0, 0, -0.02])
    assert accessor["max"] == pytest.approx([0.01, 0.03, 0])


@pytest.mark.parametrize(("count", "component"), [(65_535, 5123), (65_536, 5125)])
def test_indices_have_the_smallest_sufficient_type(count: int, component: int) -> None:
    vertices = np.random.default_rng(1).random((count, 3))
    faces = np.arange(count // 3 * 3).reshape(-1, 3)
    faces = np.concatenate([faces, [[0, 1, count - 1]]])
    (accessor,) = [
        item for item in parse_json(write_scene(scene_of(Mesh(vertices, faces))))["accessors"] if "min" not in item
    ]
    assert accessor["componentType"] == component


def test_a_watertight_mesh_far_from_the_origin_stays_watertight() -> None:
    far = move_mesh(sphere(10, 64), 3_000_000.1, -2_000_000.7, 55.3)
    back = to_millimeters(load(write_scene(scene_of(far))))
    vertices, faces = welded(back.meshes[0])
    assert edge_counts(faces) == (0, 0)
    assert np.abs(bounds(back) - bounds(scene_of(far))).max() < 1e-4
    assert volume(vertices, faces) == pytest.approx(volume(far.vertices, far.faces), rel=1e-5)


def test_a_shear_is_kept() -> None:
    shear = np.eye(4)
    shear[0, 1] = 0.5
    scene = replace(scene_of(brick()), parts=(Part(0, shear), Part(0)))
    back = to_millimeters(load(write_scene(scene)))
    assert np.allclose(bounds(back), bounds(scene), atol=1e-5)
    assert volume(*soup(back)) == pytest.approx(12000, rel=1e-6)


def test_a_texture_on_a_mesh_without_uv_is_left_out() -> None:
    scene = replace(
        scene_of(brick()),
        parts=(Part(0, material=0),),
        materials=(Material("wood", base_color_image=0),),
        images=(Image(PIXEL, "image/png"),),
    )
    (material,) = parse_json(write_scene(scene))["materials"]
    assert material["name"] == "wood"
    assert "baseColorTexture" not in material["pbrMetallicRoughness"]


@settings(max_examples=40)
@given(
    translation=arrays.arrays(np.float64, 3, elements=st.floats(-1e4, 1e4)),
    angles=arrays.arrays(np.float64, 3, elements=st.floats(-4, 4)),
    scale=arrays.arrays(np.float64, 3, elements=st.floats(0.01, 100)),
    mirrored=st.booleans(),
)
def test_any_placement_survives_a_round_trip(translation: Any, angles: Any, scale: Any, mirrored: bool) -> None:
    matrix = trimesh.transformations.translation_matrix(translation)
    for angle, axis in zip(angles, "xyz", strict=True):
        matrix = matrix @ rotation(angle, axis)
    matrix = matrix @ np.diag([*(scale * [-1 if mirrored else 1, 1, 1]), 1])
    scene = replace(scene_of(brick()), parts=(Part(0, matrix),))
    back = to_millimeters(load(write_scene(scene)))
    size = float(np.abs(bounds(scene)).max())
    assert np.abs(bounds(back) - bounds(scene)).max() <= 1e-6 * size
    assert np.linalg.det(back.parts[0].transform) == pytest.approx(np.linalg.det(matrix))


# ---- checks by other programs ----------------------------------------------------------------------------------------


def validator() -> Path:
    for folder in (os.environ.get("MESHHUB_GLTF_VALIDATOR", ""), "node_modules/gltf-validator"):
        if folder and (Path(folder) / "package.json").is_file():
            if shutil.which("node") is None:
                pytest.skip("node is not installed")
            return Path(folder).resolve()
    pytest.skip("glTF-Validator is not found: MESHHUB_GLTF_VALIDATOR names no folder, nor is it in node_modules")


SCRIPT = """
const validator = require(process.argv[1]), fs = require("fs");
validator.validateBytes(new Uint8Array(fs.readFileSync(process.argv[2])))
  .then(report => console.log(JSON.stringify(report.issues)));
"""


def sheared_scene() -> Scene:
    shear = np.eye(4)
    shear[1, 2] = 0.25
    return replace(scene_of(sphere()), parts=(Part(0, shear), Part(0, np.diag([2.0, 1, 1, 1]))))


def unfit_normals() -> Scene:
    """Return normals that are not unit vectors, unused texture coordinates and an unused vertex."""
    box = brick()
    vertices = np.concatenate([box.vertices, [[1e6, 0, 0]]])
    normals = np.concatenate([box.vertices, [[0, 0, 0]]])
    return scene_of(Mesh(vertices, box.faces, normals=normals, uv=np.zeros((9, 2))))


@pytest.mark.parametrize("kind", ["glb", "gltf"])
@pytest.mark.parametrize("make", [rich_scene, sheared_scene, unfit_normals, lambda: scene_of(brick())])
def test_the_validator_finds_no_error(kind: str, make: Any, tmp_path: Path) -> None:
    folder = validator()
    path = tmp_path / f"model.{kind}"
    path.write_bytes(write_scene(make(), kind))
    result = subprocess.run(
        ["node", "-e", SCRIPT, str(folder), str(path)], capture_output=True, text=True, timeout=300, check=True
    )
    issues = json.loads(result.stdout)
    assert (issues["numErrors"], issues["numWarnings"]) == (0, 0), issues["messages"]


@pytest.mark.parametrize("kind", ["glb", "gltf"])
def test_trimesh_reads_the_same_geometry(kind: str) -> None:
    scene = rich_scene()
    loaded = trimesh.load_scene(io.BytesIO(write_scene(scene, kind)), file_type=kind).to_geometry()
    meters = to_meters(scene)
    assert len(loaded.faces) == scene.face_count
    assert np.allclose(loaded.bounds, bounds(meters), atol=1e-7)
    assert loaded.volume == pytest.approx(volume(*soup(meters)), rel=1e-4)


def test_pygltflib_reads_the_same_positions() -> None:
    data = write_scene(scene_of(sphere()))
    document = pygltflib.GLTF2.load_from_bytes(data)
    accessor = document.accessors[document.meshes[0].primitives[0].attributes.POSITION]
    view = document.bufferViews[accessor.bufferView]
    rows = np.frombuffer(document.binary_blob(), "<f4", accessor.count * 3, view.byteOffset).reshape(-1, 3)
    assert np.array_equal(rows, to_meters(scene_of(sphere())).meshes[0].vertices.astype(np.float32))
    assert accessor.min == rows.min(axis=0).tolist()
    assert accessor.max == rows.max(axis=0).tolist()


def test_files_of_trimesh_are_read() -> None:
    written = trimesh.Scene([trimesh.creation.icosphere(subdivisions=2)]).export(file_type="glb")
    scene = load(written)
    assert scene.face_count == 320
    assert volume(*soup(scene)) == pytest.approx(trimesh.creation.icosphere(subdivisions=2).volume, rel=1e-5)


# ---- real files ------------------------------------------------------------------------------------------------------


def test_real_files_give_the_expected_results(corpus: Path, corpus_index: list[dict[str, str]]) -> None:
    expected_codes = {"converts": "converts", "error": "unreadable_file", "external_reference": "external_reference"}
    wrong = []
    for row in corpus_index:
        if not row["file"].startswith(("glb/", "gltf/")):
            continue
        try:
            scene = load((corpus / row["file"]).read_bytes())
            if scene.face_count == 0:
                raise EmptyModel("nothing")
            ended = "converts"
            if row["n_faces"] and "index_out_of_range" not in row["feature_tags"]:
                loss = int(row["n_faces"]) - scene.face_count
                ended = "converts" if loss <= 0 else f"{loss} faces lost"
        except MeshhubError as error:
            ended = error.error_code
        if row["expect"] in expected_codes and ended != expected_codes[row["expect"]]:
            wrong.append((row["file"], row["expect"], ended))
    assert wrong == []


def test_irregular_base64_is_read() -> None:
    document = square()
    text = base64.urlsafe_b64encode(document.data).decode().rstrip("=")
    tidy = document.gltf(uri="data:application/gltf-buffer;base64," + text[:20] + "\n " + text[20:])
    assert load(tidy).face_count == 2
    with pytest.raises(UnreadableFile, match=r"buffers\[0\]\.uri"):
        load(document.gltf(uri="data:application/octet-stream;base64,§§§"))
