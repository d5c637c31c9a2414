"""The files on the page "Use in web frameworks, task queues, notebooks and Blender" run in those programs."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "frameworks.md"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the files of the page, from which Python imports."""
    for name, text in re.findall(r"^```python\n# (\S+)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S):
        (tmp_path / name).write_text(text, encoding="utf-8")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if (tmp_path / f"{name}.py").exists():
            del sys.modules[name]


def load(name: str) -> ModuleType:
    return importlib.import_module(name)


def bracket() -> bytes:
    return (ROOT / "examples" / "bracket.stl").read_bytes()


def is_3mf(content: bytes) -> bool:
    return content.startswith(b"PK") and b"3D/3dmodel.model" in content


@pytest.mark.usefixtures("folder")
def test_fastapi() -> None:
    testclient: Any = pytest.importorskip("fastapi.testclient", reason="FastAPI is in the group `guides`")
    with testclient.TestClient(load("fastapi_app").app) as client:
        response = client.post("/print-ready", files={"file": ("bracket.stl", bracket())})
        assert response.status_code == 200 and is_3mf(response.content)
        response = client.post("/print-ready", files={"file": ("bracket.stl", b"solid nothing")})
        assert (response.status_code, response.json()["error_code"]) == (422, "empty_model")
        response = client.post("/print-ready", files={"file": ("notes.txt", b"hello")})
        assert (response.status_code, response.json()["error_code"]) == (415, "unsupported_format")


@pytest.mark.usefixtures("folder")
def test_django() -> None:
    django: Any = pytest.importorskip("django", reason="Django is in the group `guides`")
    from django.conf import settings
    from django.core.files.uploadedfile import SimpleUploadedFile
    from django.test import RequestFactory

    settings.configure(DEBUG=False, ALLOWED_HOSTS=["*"])
    django.setup()
    views = load("django_views")
    try:
        upload = SimpleUploadedFile("bracket.stl", bracket())
        response = views.make_print_ready(RequestFactory().post("/", {"file": upload}))
        assert response.status_code == 200 and is_3mf(response.content)
        response = views.make_print_ready(RequestFactory().post("/", {"file": SimpleUploadedFile("a.stl", b"x" * 84)}))
        assert response.status_code == 422 and b"error_code" in response.content
    finally:
        views.registry.close()


def test_celery(folder: Path) -> None:
    pytest.importorskip("celery", reason="Celery is in the group `guides`")
    tasks = load("celery_tasks")
    try:
        result = tasks.make_print_ready.apply((str(folder / "examples" / "bracket.stl"), str(folder / "out.3mf")))
        assert result.get()["faces"] > 0 and is_3mf((folder / "out.3mf").read_bytes())
    finally:
        tasks.registry.close()


def test_the_code_for_notebooks(folder: Path) -> None:
    result = subprocess.run(
        [sys.executable, "notebook.py"], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert result.returncode == 0, result.stderr
    assert "True" in result.stdout


def test_blender(folder: Path) -> None:
    """Blender as a module, from PyPI where it has wheels."""
    pytest.importorskip("bpy", reason="Blender as a module (bpy) is not installed")
    script = (
        "import bpy, bmesh, repair_in_blender\n"
        "bpy.ops.mesh.primitive_cube_add(size=0.02)\n"
        "cube = bpy.context.object\n"
        "mesh = bmesh.new(); mesh.from_mesh(cube.data); mesh.faces.ensure_lookup_table()\n"
        "bmesh.ops.delete(mesh, geom=[mesh.faces[0]], context='FACES_ONLY'); mesh.to_mesh(cube.data)\n"
        "repair_in_blender.repair(cube)\n"
        "mesh = bmesh.new(); mesh.from_mesh(cube.data)\n"
        "print('volume', round(mesh.calc_volume() * 1e9), all(edge.is_manifold for edge in mesh.edges))\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert "volume 8000 True" in result.stdout, result.stderr
