"""What is left after Back, a reload, and a restart of the service: a real service and a real browser."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from meshhub import Registry
from meshhub.model.scene import Mesh, Part, Scene
from page_visits import Visit, chromium_only, convert, pick, serving

pytestmark = pytest.mark.once

KEPT = chromium_only(reason="going back to a page that Firefox kept does not end")

EXAMPLES = Path(__file__).parents[2] / "examples"
RESTART_MS = 180_000
"""Milliseconds for a job that runs again after a restart, on a loaded machine."""
GRID_COUNT = 260
"""Squares along a side of the large model: its repair outlasts the first stop of the service."""


def write_terrain(path: Path) -> None:
    """Write an open sheet of more than 100 000 triangles."""
    steps = np.arange(GRID_COUNT + 1)
    x, y = np.meshgrid(steps, steps, indexing="ij")
    z = 4 * np.sin(x / 9) * np.cos(y / 7)
    vertices = np.column_stack([x.ravel(), y.ravel(), z.ravel()]).astype(np.float64)
    corner = (np.arange(GRID_COUNT)[:, None] * (GRID_COUNT + 1) + np.arange(GRID_COUNT)).ravel()
    far = corner + GRID_COUNT + 1
    faces = np.concatenate(
        [np.column_stack([corner, far, corner + 1]), np.column_stack([corner + 1, far, far + 1])]
    ).astype(np.int32)
    Registry().write(Scene(meshes=(Mesh(vertices=vertices, faces=faces),), parts=(Part(0, np.eye(4)),)), path)


def find_free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


def start_job(page: Any, button: str) -> None:
    """Start a conversion, and wait until the service has accepted its job."""
    with page.expect_response("**/jobs"):
        page.get_by_role("button", name=button).click()
    page.get_by_role("button", name="1 result").wait_for()


@KEPT
def test_results_are_there_after_back(visit: Visit) -> None:
    page = visit.open()
    pick(page, EXAMPLES / "bracket.stl")
    convert(page, "Repair and save as 3MF")
    page.get_by_role("group", name="Compare").wait_for()
    page.goto(f"{visit.address}schema")
    page.go_back()
    page.get_by_role("button", name="1 result").click()
    page.get_by_role("button", name="Open: bracket.3mf").click()
    page.get_by_role("heading", name="Closed").wait_for()


@KEPT
def test_a_running_job_is_followed_after_back(visit: Visit, tmp_path: Path) -> None:
    write_terrain(tmp_path / "terrain.stl")
    page = visit.open()
    pick(page, tmp_path / "terrain.stl")
    start_job(page, "Repair and save as 3MF")
    page.goto(f"{visit.address}schema")
    page.go_back()
    page.get_by_role("button", name="1 result").click()
    page.get_by_role("button", name="Download terrain.3mf").wait_for(timeout=RESTART_MS)


@pytest.mark.parametrize("way", ["stays", "reloads", pytest.param("goes back", marks=KEPT)])
def test_a_job_survives_a_restart_of_the_service(browser: Any, tmp_path: Path, way: str) -> None:
    pytest.importorskip("litestar", reason="needs the extra 'http'")
    write_terrain(tmp_path / "terrain.stl")
    port = find_free_port()
    folders = {"MESHHUB_JOBS_FOLDER": str(tmp_path / "jobs"), "MESHHUB_SHUTDOWN_SECONDS": "0"}
    with serving(tmp_path, port, **folders) as url:
        visit = Visit(browser, url)
        page = visit.open()
        pick(page, tmp_path / "terrain.stl")
        start_job(page, "Repair and save as 3MF")
    if way == "stays":
        page.get_by_text("The server is still working").wait_for()
    elif way == "goes back":
        page.goto("about:blank")
    with serving(tmp_path, port, **folders):
        if way == "stays":
            page.get_by_role("region", name="Result").wait_for(timeout=RESTART_MS)
            assert page.get_by_role("alert").count() == 0
            page.get_by_role("button", name="Download terrain.3mf").wait_for()
        else:
            if way == "reloads":
                page.reload()
            else:
                page.go_back()
            page.get_by_role("button", name="1 result").click()
            page.get_by_role("button", name="Download terrain.3mf").wait_for(timeout=RESTART_MS)
        visit.close()
