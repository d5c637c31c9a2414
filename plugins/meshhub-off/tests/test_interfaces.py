"""The plug-in, loaded by entry point, in the registry, on the command line and over HTTP."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest
import trimesh
import uvicorn
from off_files import BRICK

from meshhub import Registry, Source, Target
from meshhub.http import Settings, create_app


@pytest.fixture
def brick(tmp_path: Path) -> Path:
    path = tmp_path / "a.off"
    path.write_bytes(BRICK)
    return path


def test_the_registry_loads_the_plugin_by_entry_point() -> None:
    registry = Registry()
    assert not [fault for fault in registry.faults if fault.plugin == "off"]
    assert next(plugin for plugin in registry.plugins if plugin.name == "off").origin.startswith("meshhub-off ")
    assert "off" not in Registry(entry_points=False).declarations.formats


@pytest.mark.parametrize("target", ["stl", "obj", "ply", "glb", "3mf"])
def test_off_converts_to_and_from_every_other_format(target: str) -> None:
    registry, other, back = Registry(), Target(), Target()
    registry.convert(Source.from_bytes(BRICK, "a.off"), other, target=target)
    report = registry.convert(Source.from_bytes(other.read(), "a." + target), back, target="off")
    assert report.target.size_mm == pytest.approx((10, 20, 30))
    assert Registry().inspect(Source.from_bytes(back.read(), "b.off")).model.volume_mm3 == pytest.approx(6000)


def test_trimesh_reads_written_files(tmp_path: Path, brick: Path) -> None:
    Registry().convert(brick, tmp_path / "b.off")
    mesh = trimesh.load(tmp_path / "b.off")
    assert mesh.volume == pytest.approx(6000)
    assert mesh.bounds.tolist() == [[0, 0, 0], [10, 20, 30]]


def test_the_command_line_converts_off(tmp_path: Path, brick: Path) -> None:
    stl = tmp_path / "b.stl"
    process = subprocess.run(
        [sys.executable, "-m", "meshhub", "convert", str(brick), str(stl)], capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    assert trimesh.load(stl).volume == pytest.approx(6000)
    back = tmp_path / "c.off"
    command = [sys.executable, "-m", "meshhub", "convert", str(stl), str(back), "--off-fractions"]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    assert back.read_bytes().startswith(b"OFF\n# meshhub\n8 12 0\n")


def test_the_service_converts_off(brick: Path, tmp_path: Path) -> None:
    settings = Settings(database_url=f"sqlite:///{tmp_path / 'keys.sqlite3'}", temporary_folder=str(tmp_path))
    server = uvicorn.Server(uvicorn.Config(create_app(settings), log_config=None, lifespan="on"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            # the socket queues the connection until the server is ready
            with httpx.Client(base_url=f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=120) as client:
                supported = client.get("/supported", headers={"Accept-Language": "de"}).json()
                to_stl = client.post("/convert", files={"file": ("a.off", brick.read_bytes())}, data={"target": "stl"})
                to_off = client.post("/convert", files={"file": ("b.stl", to_stl.content)}, data={"target": "off"})
                cut = client.post("/convert", files={"file": ("a.off", BRICK[:90])}, data={"target": "stl"})
        finally:
            server.should_exit = True
            thread.join()
    assert "off" in supported["input_formats"]
    assert "off" in supported["output_formats"]
    options = supported["formats"]["off"]["options"]["properties"]
    assert options["off_fractions"]["title"] == "Farben als Bruchteile"
    assert to_stl.status_code == 200
    assert len(to_stl.content) == 84 + 50 * 12
    assert to_off.status_code == 200
    assert to_off.headers["content-type"] == "model/vnd.off"
    assert to_off.content.startswith(b"OFF\n# meshhub\n8 12 0\n")
    assert cut.status_code == 422
    assert cut.json()["error_code"] == "unreadable_file"
