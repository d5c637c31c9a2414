"""POST /preview."""

from __future__ import annotations

import io
import json
import struct
from typing import Any

import httpx
import numpy as np
import pytest
from PIL import Image as Pillow

from http_serving import ASCII_STL, Running, check_error, read_report
from meshhub.model.scene import Image, Material, Mesh, Scene
from meshhub.model.source import Source
from meshhub.registry import Registry
from meshhub.toolkit.clustering import reduce_for_display
from models import brick, move_mesh, scene_of, sphere
from threemf_models import mesh_xml
from threemf_projects import DIALECTS, paint_triangles, project
from waiting import wait_until


def preview(service: Running, *files: tuple[str, bytes], **fields: str) -> tuple[dict[str, Any], bytes]:
    """Return the document and the buffer of a preview."""
    model, *companions = files
    answer = service.post("/preview", [("file", model), *(("companions", file) for file in companions)], fields)
    assert answer.status_code == 200, answer.text
    return unpack(answer)


def unpack(answer: httpx.Response) -> tuple[dict[str, Any], bytes]:
    assert answer.headers["content-type"] == "model/gltf-binary"
    content = answer.content
    assert struct.unpack_from("<4sII", content) == (b"glTF", 2, len(content))
    (length,) = struct.unpack_from("<I", content, 12)
    document = json.loads(content[20 : 20 + length])
    assert document["buffers"][0]["byteLength"] == len(content) - 28 - length
    return document, content[28 + length :]


def read_defects(document: dict[str, Any], buffer: bytes) -> dict[str, tuple[dict[str, Any], int, Any]]:
    """Return the extras, the mode and the points of each kind."""
    root = document["nodes"][document["scenes"][0]["nodes"][-1]]
    assert root["name"] == "meshhub:defects"
    defects = {}
    for node in (document["nodes"][child] for child in root["children"]):
        (primitive,) = document["meshes"][node["mesh"]]["primitives"]
        accessor = document["accessors"][primitive["attributes"]["POSITION"]]
        view = document["bufferViews"][accessor["bufferView"]]
        points = np.frombuffer(buffer, "<f4", 3 * accessor["count"], view["byteOffset"]).reshape(-1, 3)
        assert accessor["min"] == points.min(axis=0).tolist()
        assert accessor["max"] == points.max(axis=0).tolist()
        defects[node["name"]] = (node["extras"], primitive["mode"], points)
    return defects


def read_scene(content: bytes) -> Scene:
    with Registry(entry_points=False) as registry:
        return registry.read(Source.from_bytes(content, "a.glb"))


def write_model(scene: Scene, target: str) -> bytes:
    with Registry(entry_points=False) as registry:
        return registry.convert_bytes(scene, target)


def test_a_preview_has_the_model_its_facts_and_its_defects(service: Running) -> None:
    document, buffer = preview(service, ("part.stl", ASCII_STL))
    facts = document["asset"]["extras"]["meshhub"]
    assert (facts["triangles"], facts["is_reduced"], facts["max_triangles"]) == (2, False, 100_000)
    inspected = service.post("/inspect", {"file": ("part.stl", ASCII_STL)}).json()
    assert facts["inspection"] == inspected
    defects = read_defects(document, buffer)
    assert set(defects) == {"open_edges"}
    extras, mode, points = defects["open_edges"]
    assert mode == 1
    assert extras == {"kind": "open_edges", "count": 4, "shown": 4}
    # meters, Y up
    assert points.shape == (8, 3)
    assert np.allclose(np.ptp(points, axis=0), [0.01, 0.001, 0.02])


def test_a_valid_model_has_no_defects(isolated: Running) -> None:
    document, _ = preview(isolated, ("ball.stl", write_model(scene_of(sphere(10)), "stl")))
    assert [node.get("name") for node in document["nodes"]] != ["meshhub:defects"]
    assert document["asset"]["extras"]["meshhub"]["inspection"]["model"]["watertight"]
    wait_until(lambda: not isolated.leftovers())


def test_flipped_faces_are_triangles(service: Running) -> None:
    ball = sphere(10)
    faces = ball.faces.copy()
    faces[:3] = faces[:3, ::-1]
    document, buffer = preview(service, ("ball.stl", write_model(scene_of(Mesh(ball.vertices, faces)), "stl")))
    extras, mode, points = read_defects(document, buffer)["flipped_faces"]
    assert (extras["count"], mode, len(points)) == (3, 4, 9)


def test_the_budget_is_respected(service: Running) -> None:
    content = write_model(scene_of(sphere(10, 128), move_mesh(sphere(3, 64), 50, 0, 0)), "stl")
    answer = service.post("/preview", {"file": ("balls.stl", content)}, {"max_triangles": "2000"})
    facts = unpack(answer)[0]["asset"]["extras"]["meshhub"]
    assert facts["is_reduced"]
    assert 1000 < facts["triangles"] <= 2000
    assert facts["inspection"]["model"]["faces"] == sphere(10, 128).faces.shape[0] + sphere(3, 64).faces.shape[0]
    assert facts["inspection"]["model"]["watertight"]
    assert read_report(answer)["faces_out"] == facts["triangles"]


def test_a_measure_colors_the_surface(service: Running) -> None:
    plate = write_model(scene_of(brick(20, 20, 1)), "stl")
    document, _ = preview(service, ("plate.stl", plate))
    assert document["asset"]["extras"]["meshhub"]["scale"] is None
    document, _ = preview(service, ("plate.stl", plate), color_by="thickness", color_limit="1.5", max_triangles="3000")
    facts = document["asset"]["extras"]["meshhub"]
    scale = facts["scale"]
    assert (scale["measure"], scale["title"], scale["unit"]) == ("thickness", "wall thickness", "mm")
    assert (scale["limit"], scale["top"], scale["is_open"]) == (1.5, 6.0, True)
    assert (scale["colors"][0], scale["colors"][-1], len(scale["colors"])) == ("#440154", "#fde725", 16)
    assert 12 < facts["triangles"] <= 3000
    assert not facts["is_reduced"]
    assert facts["inspection"]["model"]["faces"] == 12
    (mesh,) = document["meshes"]
    assert "COLOR_0" in mesh["primitives"][0]["attributes"]


def test_a_measure_has_a_default_limit(service: Running) -> None:
    document, _ = preview(service, ("part.stl", ASCII_STL), color_by="overhang")
    scale = document["asset"]["extras"]["meshhub"]["scale"]
    assert (scale["unit"], scale["limit"], scale["top"], scale["is_open"]) == ("degrees", 35.0, 90.0, False)
    assert "COLOR_0" in document["meshes"][0]["primitives"][0]["attributes"]


def test_textures_are_kept_and_made_smaller(service: Running) -> None:
    noise = np.random.default_rng(1).integers(0, 256, (1500, 1200, 3), dtype=np.uint8)
    png = io.BytesIO()
    Pillow.fromarray(noise).save(png, "PNG")
    ball = sphere(10, 128)
    uv = (ball.vertices[:, :2] / 20 + 0.5).astype(np.float32)
    scene = Scene(
        meshes=(Mesh(ball.vertices, ball.faces, uv=uv, face_material=np.zeros(len(ball.faces), np.int32)),),
        parts=scene_of(ball).parts,
        materials=(Material("skin", base_color_image=0),),
        images=(Image(png.getvalue(), "image/png", "noise.png"),),
    )
    content = write_model(scene, "glb")
    answer = service.post("/preview", {"file": ("ball.glb", content)}, {"max_triangles": "3000"})
    assert answer.status_code == 200, answer.text
    shown = read_scene(answer.content)
    (image,) = shown.images
    with Pillow.open(io.BytesIO(image.data)) as picture:
        assert picture.size == (819, 1024)
    assert len(image.data) < len(png.getvalue()) / 3
    (mesh,) = shown.meshes
    assert mesh.uv is not None
    # each corner still shows its own place of the texture
    assert np.abs(mesh.uv - (mesh.vertices[:, :2] / 20 + 0.5)).max() < 0.06
    assert shown.materials[0].base_color_image == 0


def test_companions_are_used(service: Running) -> None:
    obj = b"mtllib m.mtl\nusemtl red\nv 0 0 0\nv 10 0 0\nv 0 10 0\nf 1 2 3\n"
    document, _ = preview(service, ("a.obj", obj), ("m.mtl", b"newmtl red\nKd 1 0 0\n"))
    assert document["materials"][0]["name"] == "red"
    assert document["materials"][0]["pbrMetallicRoughness"]["baseColorFactor"] == [1, 0, 0, 1]


def test_companions_do_not_count_as_models(service: Running) -> None:
    """More files than the plan allows models in one batch."""
    obj = b"mtllib m.mtl\nusemtl red\nv 0 0 0\nv 20 0 0\nv 0 20 0\nv 0 0 20\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
    limit = service.get("/plan").json()["limits"]["max_batch_files"]
    others = [(f"{number}.png", b"unused") for number in range(limit)]
    files = [("file", ("a.obj", obj)), *(("companions", file) for file in [("m.mtl", b"newmtl red\n"), *others])]
    for path in ("/preview", "/inspect", "/check", "/quote", "/render"):
        answer = service.post(path, files)
        assert answer.status_code == 200, (path, answer.text)
    assert "missing_material" not in service.post("/inspect", files).text


def test_companions_follow_their_model(service: Running) -> None:
    files = [("companions", ("m.mtl", b"newmtl red\n")), ("file", ("part.stl", ASCII_STL))]
    check_error(service.post("/preview", files), 400, "bad_request")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_projects_of_slicers_are_shown(service: Running, dialect: str) -> None:
    content = project(dialect, {"body": mesh_xml(brick())}).read()
    document, _ = preview(service, ("a.3mf", content))
    facts = document["asset"]["extras"]["meshhub"]
    assert facts["triangles"] == 12
    assert facts["inspection"] == service.post("/inspect", {"file": ("a.3mf", content)}).json()


def test_options_of_readers_apply(service: Running) -> None:
    document, _ = preview(service, ("a.stl", ASCII_STL), input_unit="m")
    facts = document["asset"]["extras"]["meshhub"]
    assert facts["inspection"]["model"]["size_mm"] == [10_000, 20_000, 1_000]
    assert facts["file_bytes"] is None


def test_operations_apply(service: Running) -> None:
    ball = write_model(scene_of(sphere(10, 64)), "stl")
    document, _ = preview(service, ("a.stl", ball), optimize_target_faces="500", scale_percent="50")
    facts = document["asset"]["extras"]["meshhub"]
    assert facts["triangles"] == facts["inspection"]["model"]["faces"] <= 500
    assert facts["inspection"]["model"]["size_mm"] == pytest.approx([10, 10, 10], rel=0.02)
    assert facts["inspection"]["model"]["watertight"]


@pytest.mark.parametrize(
    ("target", "options"),
    [
        ("stl", {}),
        ("stl", {"stl_ascii": "true"}),
        ("ply", {}),
        ("3mf", {"reduce_colors_palette": "red,white"}),
        ("obj", {}),
        ("glb", {"target_height_mm": "40"}),
    ],
)
def test_a_target_states_the_size_of_its_file(service: Running, target: str, options: dict[str, str]) -> None:
    ball = write_model(scene_of(sphere(10, 64)), "stl")
    options = {"optimize_target_faces": "700", **options}
    document, _ = preview(service, ("a.stl", ball), target=target, **options)
    answer = service.post("/convert", {"file": ("a.stl", ball)}, {"target": target, **options})
    assert answer.status_code == 200, answer.text
    size = read_report(answer)["bytes_out"]
    assert document["asset"]["extras"]["meshhub"]["file_bytes"] == size > 700


def test_a_target_has_the_size_of_a_painted_project_without_operations(service: Running) -> None:
    # a reader splits painted triangles to show them, but not to convert them
    content = project("bambu", {"body": paint_triangles(brick(), {0: ' paint_color="00083"'})}).read()
    document, _ = preview(service, ("a.3mf", content), target="stl")
    answer = service.post("/convert", {"file": ("a.3mf", content)}, {"target": "stl"})
    assert document["asset"]["extras"]["meshhub"]["file_bytes"] == len(answer.content) == 84 + 50 * 12


def test_a_preview_needs_the_rights_of_its_conversion(service: Running) -> None:
    body = service.post("/preview", {"file": ("a.stl", ASCII_STL)}, {"target": "step"})
    check_error(body, 403, "premium_format_required")
    check_error(service.post("/preview", {"file": ("a.stl", ASCII_STL)}, {"target": "dwg"}), 400, "unsupported_target")
    fields = {"optimize_target_faces": "2"}
    check_error(service.post("/preview", {"file": ("a.stl", ASCII_STL)}, fields), 400, "invalid_option")


@pytest.mark.parametrize(
    "fields",
    [
        {"max_triangles": "10"},
        {"max_triangles": "many"},
        {"view": "top"},
        {"color_by": "part"},
        {"color_limit": "0"},
    ],
)
def test_wrong_options_are_errors(service: Running, fields: dict[str, str]) -> None:
    body = check_error(service.post("/preview", {"file": ("a.stl", ASCII_STL)}, fields), 400, "invalid_option")
    assert next(iter(fields)) in body["error"]


def test_wrong_files_are_errors(service: Running) -> None:
    check_error(service.post("/preview", {"file": ("part.stl", b"solid x\nendsolid x\n")}), 422, "empty_model")
    check_error(service.post("/preview", {"files": ("part.stl", ASCII_STL)}), 400, "missing_field")
    check_error(service.convert(b"toy", target="stl", max_triangles="2000"), 400, "invalid_option")


def test_a_preview_counts_as_a_conversion(service: Running) -> None:
    preview(service, ("part.stl", ASCII_STL))
    text = service.get("/metrics").text
    assert 'meshhub_conversions_total{outcome="ok",source="stl",target="glb"}' in text
    assert 'meshhub_requests_total{endpoint="/preview",status="200"}' in text


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_scattered_triangles_are_reduced(size: float) -> None:
    """No grid merges triangles that are far apart."""
    rng = np.random.default_rng(2)
    corners = rng.random((20_000, 1, 3)) * 1000 + rng.random((20_000, 3, 3)) * size
    scene = scene_of(Mesh(corners.reshape(-1, 3), np.arange(60_000).reshape(-1, 3)))
    assert 0 < reduce_for_display(scene, 3000).face_count <= 3000


def test_instances_count_against_the_budget() -> None:
    ball = scene_of(sphere(10, 64))
    scene = Scene(ball.meshes, tuple(ball.parts) * 5)
    reduced = reduce_for_display(scene, 4000)
    assert 2000 < reduced.face_count <= 4000
    assert len(reduced.parts) == 5
    assert reduce_for_display(brick_scene := scene_of(brick()), 1000) is brick_scene
