"""Take the pictures of the page: `python docs/make_page_pictures.py`. Run it after each build of the page.

It needs Pillow, Playwright and Chromium: the dependency groups `test` and `page`, and `apt install chromium`.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from manifold3d import Manifold as Solid
from PIL import Image
from playwright.sync_api import sync_playwright

from meshhub import Mesh, Part, Registry, Scene

HERE = Path(__file__).parent
IMAGES = HERE / "images"
SCAN = HERE.parent / "web" / "src" / "examples" / "rabbit.ply"
"""First example of the page: a repair of it is seen."""

BUILD = HERE.parent / "src" / "meshhub" / "http" / "page" / "index.html"
"""Names all scripts and styles of the built page, each with the hash of its content."""

DIGEST = IMAGES / "page.sha256"
"""SHA-256 of the build that the pictures show; a test compares it."""

sys.path += [str(HERE.parent / "tests" / "support"), str(HERE.parent / "tests" / "page")]

from conftest import BROWSER_ARGUMENTS  # noqa: E402
from page_visits import Visit, convert, draw, pick, serving  # noqa: E402


def digest_build() -> str:
    """Return the digest of the built page."""
    return hashlib.sha256(BUILD.read_bytes()).hexdigest()


def show_model(page: Any, _: Path) -> None:
    """Show the problems of the scan."""
    pick(page, SCAN)


def show_result(page: Any, _: Path) -> None:
    """Show the scan before and after its repair."""
    pick(page, SCAN)
    convert(page, "Repair and save as 3MF")


def show_check(page: Any, folder: Path) -> None:
    """Show the first place of the first finding of a check."""
    plate = Solid.cube((60, 40, 4)) + Solid.cube((0.3, 30, 24)).translate((20, 5, 3))
    mesh = (plate + Solid.cube((6, 30, 24)).translate((40, 5, 3))).to_mesh64()
    part = Mesh(np.asarray(mesh.vert_properties)[:, :3], np.asarray(mesh.tri_verts).astype(np.int32))
    with Registry(entry_points=False) as registry:
        registry.write(Scene((part,), (Part(0),)), folder / "holder.stl")
    pick(page, folder / "holder.stl")
    page.get_by_role("button", name="Will it print?").click()
    findings = page.get_by_role("region", name="Print check").get_by_role("listitem")
    findings.first.get_by_role("button", name="Show place").click()


PICTURES: dict[str, tuple[Callable[[Any, Path], None], dict[str, Any]]] = {
    "page-model": (show_model, {"viewport": {"width": 1200, "height": 760}}),
    "page-result": (show_result, {"viewport": {"width": 1200, "height": 760}}),
    "page-check": (show_check, {"viewport": {"width": 1280, "height": 800}}),
    "page-phone": (show_result, {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark", "has_touch": True}),
}
"""What each picture shows, and the window of its browser."""


@contextlib.contextmanager
def running_app(folder: Path) -> Iterator[str]:
    """Run `meshhub app` with the scan, and yield its address."""
    command = [sys.executable, "-m", "meshhub", "app", str(SCAN), "--no-browser"]
    environment = {**os.environ, "XDG_STATE_HOME": str(folder), "XDG_RUNTIME_DIR": str(folder)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:  # noqa: S603
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.terminate()


def save(page: Any, picture: str) -> None:
    """Save a picture of the page after the motion of its view."""
    draw(page)
    pixels = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    pixels.save(IMAGES / f"{picture}.webp", quality=80, method=6)


def main() -> None:
    """Take the pictures in one browser."""
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=BROWSER_ARGUMENTS)
        with serving(folder) as address:
            for picture, (show, window) in PICTURES.items():
                visit = Visit(browser, address, **window)
                show(visit.open(), folder)
                save(visit.page, picture)
                visit.close()
        with running_app(folder) as address:
            visit = Visit(browser, address, viewport={"width": 1200, "height": 760})
            visit.page.goto(address)
            convert(visit.page, "Repair and save as 3MF")
            save(visit.page, "app")
            visit.close()
        browser.close()
    DIGEST.write_text(digest_build() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
