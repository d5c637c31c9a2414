"""Found by entry point, and there on every face: registry, command line, HTTP."""

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
from test_conformance import BRICK

from meshhub import Registry, Source, Target
from meshhub.http import Settings, create_app


@pytest.fixture
def brick(tmp_path: Path) -> Path:
    path = tmp_path / "a.off"
    path.write_bytes(BRICK)
    return path


def test_the_registry_finds_it_by_entry_point() -> None:
    registry = Registry()
    assert not [fault for fault in registry.faults if fault.plugin == "off"]
    assert next(plugin for plugin in registry.plugins if plugin.name == "off").origin.startswith("meshhub-off ")
    assert "off" not in Registry(entry_points=False).declarations.formats


@pytest.mark.parametrize("target", ["stl", "obj", "ply", "glb", "3mf"])
def test_every_other_format_is_reached_from_it_and_leads_to_it(target: str) -> None:
    registry, made, back = Registry(), Target(), Target()
    registry.convert(Source.from_bytes(BRICK, "a.off"), made, to=target)
    report = registry.convert(Source.from_bytes(made.read(), "a." + target), back, to="off")
    assert report.target.size_mm == pytest.approx((10, 20, 30))
    assert Registry().inspect(Source.from_bytes(back.read(), "b.off")).model.volume_mm3 == pytest.approx(6000)


def test_trimesh_reads_what_is_written(tmp_path: Path, brick: Path) -> None:
    Registry().convert(brick, tmp_path / "b.off")
    found = trimesh.load(tmp_path / "b.off")
    assert found.volume == pytest.approx(6000)
    assert found.bounds.tolist() == [[0, 0, 0], [10, 20, 30]]


def test_the_command_line_converts_it(tmp_path: Path, brick: Path) -> None:
    made = tmp_path / "b.stl"
    done = subprocess.run(
        [sys.executable, "-m", "meshhub", "convert", str(brick), str(made)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert trimesh.load(made).volume == pytest.approx(6000)
    back = tmp_path / "c.off"
    line = [sys.executable, "-m", "meshhub", "convert", str(made), str(back), "--off-fractions"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert back.read_bytes().startswith(b"OFF\n8 12 0\n")


def test_the_service_converts_it(brick: Path, tmp_path: Path) -> None:
    settings = Settings(database_url=f"sqlite:///{tmp_path / 'keys.sqlite3'}", temporary_folder=str(tmp_path))
    server = uvicorn.Server(uvicorn.Config(create_app(settings), log_config=None, lifespan="on"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            # the listener queues the connection until the server is up
            with httpx.Client(base_url=f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=120) as client:
                supported = client.get("/supported").json()
                to_stl = client.post("/convert", files={"file": ("a.off", brick.read_bytes())}, data={"target": "stl"})
                to_off = client.post("/convert", files={"file": ("b.stl", to_stl.content)}, data={"target": "off"})
                cut = client.post("/convert", files={"file": ("a.off", BRICK[:90])}, data={"target": "stl"})
        finally:
            server.should_exit = True
            thread.join()
    assert "off" in supported["input_formats"]
    assert "off" in supported["output_formats"]
    assert "off_fractions" in supported["formats"]["off"]["options"]["properties"]
    assert to_stl.status_code == 200
    assert len(to_stl.content) == 84 + 50 * 12
    assert to_off.status_code == 200
    assert to_off.headers["content-type"] == "model/vnd.off"
    assert to_off.content.startswith(b"OFF\n8 12 0\n")
    assert cut.status_code == 422
    assert cut.json()["error_code"] == "unreadable_file"
