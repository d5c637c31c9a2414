"""POST /combine."""

from __future__ import annotations

import io
import zipfile

from http_serving import Running, check_error
from meshhub import Registry
from models import brick, scene_of

STL = Registry(entry_points=False).convert_bytes(scene_of(brick(name="")), "stl")


def test_the_service_combines_files(service: Running) -> None:
    obj = b"mtllib m.mtl\nusemtl red\nv 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n"
    parts = [
        ("files", ("a.stl", STL)),
        ("files", ("b.obj", obj)),
        ("files", ("m.mtl", b"newmtl red\nKd 1 0 0\n")),
    ]
    answer = service.post("/combine", parts, {"target": "3mf", "arrange_bed": "100x100"})
    assert answer.status_code == 200, answer.text
    assert 'filename="a.3mf"' in answer.headers["content-disposition"]
    scene = Registry(entry_points=False).read(io.BytesIO(answer.content))
    assert sorted(part.name for part in scene.parts) == ["a", "b"]
    assert any(material.base_color[:3] == (1, 0, 0) for material in scene.materials)


def test_a_model_without_an_extension_is_not_a_companion(service: Running) -> None:
    parts = [("files", (name, content)) for name, content in (("a.stl", STL), ("b", STL), ("c.txt", b"a note"))]
    answer = service.post("/combine", parts, {"target": "3mf"})
    assert answer.status_code == 200, answer.text
    assert len(Registry(entry_points=False).read(answer.content).parts) == 2


def test_the_service_rejects_too_many_files_and_options_of_files(service: Running) -> None:
    part = ("files", ("a.stl", STL))
    check_error(service.post("/combine", [part] * 4, {"target": "stl"}), 413, "too_many_files")
    options = {"target": "stl", "file_options": '{"0": {"repair": true}}'}
    check_error(service.post("/combine", [part] * 2, options), 400, "invalid_option")
    broken = ("files", ("broken.stl", b"solid x\nfacet normal 0 0 x\n"))
    error = check_error(service.post("/combine", [part, broken], {"target": "stl"}), 422, "unreadable_file")
    assert "broken.stl" in str(error)


def test_each_bed_becomes_a_file_in_a_zip(service: Running) -> None:
    large = Registry(entry_points=False).convert_bytes(scene_of(brick(70, 60, 5)), "stl")
    fields = {"target": "3mf", "arrange_bed": "100x100", "each_bed": "true"}
    parts = [("files", (name, large)) for name in ("a.stl", "b.stl")]
    answer = service.post("/combine", parts, fields)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/zip"
    assert 'filename="a-beds.zip"' in answer.headers["content-disposition"]
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert sorted(archive.namelist()) == ["a-bed1.3mf", "a-bed2.3mf"]
        scenes = [Registry(entry_points=False).read(archive.read(name)) for name in archive.namelist()]
    assert [len(scene.parts) for scene in scenes] == [1, 1]
    single = service.post("/convert", {"file": ("a.stl", large)}, fields)
    with zipfile.ZipFile(io.BytesIO(single.content)) as archive:
        assert archive.namelist() == ["a-bed1.3mf"]
    many = service.post("/convert-many", parts, {**fields, "copies": "2"})
    with zipfile.ZipFile(io.BytesIO(many.content)) as archive:
        assert sorted(archive.namelist()) == ["a-bed1.3mf", "a-bed2.3mf", "b-bed1.3mf", "b-bed2.3mf"]
