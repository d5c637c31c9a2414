"""Packages of the image: locked, small enough, and complete."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

pytest.importorskip("uv")

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "deploy" / "requirements.txt"

MAX_TREE_BYTES = 450_000_000
"""Bytes of the installed packages without CAD files, bytecode included."""

MODEL = (
    "solid a\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 9 0 0\nvertex 0 9 0\nendloop\nendfacet\nendsolid a\n"
)


def run(*command: str | Path, **more: str) -> str:
    environment = {**os.environ, **more}
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, env=environment, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Install what the image contains, except for Python."""
    if sys.version_info[:2] != (3, 13):
        pytest.skip("the locks are those of Python 3.13")
    folder = tmp_path_factory.mktemp("image") / "tree"
    search = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    run(ROOT / "deploy" / "install-tree", folder, LOCK, PATH=search)
    yield folder


def read_pins() -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9.-]+)==(\S+)", LOCK.read_text(encoding="utf-8"), re.M))


def test_the_locks_fit_the_requirements_and_have_hashes() -> None:
    run(sys.executable, "deploy/lock.py", "--check")
    for lock in LOCK.parent.glob("requirements*.txt"):
        text = lock.read_text(encoding="utf-8")
        assert "://" not in text
        pins = re.split(r"^(?=[a-z0-9.-]+==)", text, flags=re.M)[1:]
        assert pins and all("--hash=sha256:" in pin for pin in pins)


def test_the_tree_is_small_and_converts(tree: Path, tmp_path: Path) -> None:
    files = {path: path.lstat().st_size for path in tree.rglob("*") if path.is_file() and not path.is_symlink()}
    assert sum(files.values()) < MAX_TREE_BYTES
    assert json.loads(run(tree / "bin" / "meshhub", "doctor", "--json"))["can_convert"] is True
    (tmp_path / "a.stl").write_text(MODEL)
    for extension in ("obj", "ply", "glb", "3mf"):
        target = tmp_path / f"b.{extension}"
        run(tree / "bin" / "meshhub", "convert", tmp_path / "a.stl", target, "--place-on-bed")
        run(tree / "bin" / "meshhub", "inspect", target)
    for module in ("serve", "work", "keys", "webhooks", "usage"):
        run(tree / "bin" / "meshhub", module, "--help")


def test_the_service_of_the_tree_converts_checks_and_draws(tree: Path, tmp_path: Path) -> None:
    with subprocess.Popen(
        [tree / "bin" / "meshhub", "serve", "--port", "0"],
        stderr=subprocess.PIPE,
        env={**os.environ, "XDG_DATA_HOME": str(tmp_path), "MESHHUB_TEMPORARY_FOLDER": str(tmp_path)},
        text=True,
    ) as process:
        try:
            assert process.stderr is not None
            address = re.search(r"http://127\.0\.0\.1:\d+", process.stderr.readline())
            assert address is not None
            with httpx.Client(base_url=address.group(), timeout=120) as client:
                for target in ("stl", "obj", "ply", "glb", "gltf", "3mf"):
                    upload(client, "/convert", target=target, place_on_bed="true")
                assert upload(client, "/render").headers["content-type"] == "image/png"
                assert upload(client, "/check", report="pdf").content.startswith(b"%PDF")
                assert upload(client, "/inspect").json()
                assert client.get("/schema").is_success
        finally:
            process.terminate()
            _, log = process.communicate(timeout=120)
    assert "Traceback" not in log


def upload(client: httpx.Client, path: str, **fields: str) -> httpx.Response:
    response = client.post(path, files={"file": ("a.stl", MODEL.encode())}, data=fields)
    assert response.is_success, response.text
    return response


def test_the_bill_of_materials_lists_the_locked_versions(tree: Path) -> None:
    text = run(Path(sys.executable).parent / "cyclonedx-py", "environment", tree / "bin" / "python", "--of", "JSON")
    components = {item["name"].lower().replace("_", "-"): item for item in json.loads(text)["components"]}
    assert {name: item["version"] for name, item in components.items() if name != "meshhub"} == read_pins()
    assert components["numpy"]["licenses"]
