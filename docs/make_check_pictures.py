"""Draw the pictures of `how-to/check-a-model.md`: `python docs/make_check_pictures.py`.

It needs Pillow, and Chromium for the page of a report.
"""

from __future__ import annotations

import subprocess
import tempfile
from datetime import date
from pathlib import Path

import numpy as np
from manifold3d import Manifold as Solid
from PIL import Image

from meshhub import Registry, Scene
from meshhub.model.scene import Mesh, Part
from meshhub.reporting.collecting import collect_model
from meshhub.reporting.writing import render_report

IMAGES = Path(__file__).parent / "images"

LOOKS = {
    "thickness": {"view": "iso,iso-back"},
    "overhang": {"view": "iso-below,front"},
    "defects": {"view": "iso,iso-back"},
    "islands": {"view": "iso,iso-below"},
}
"""Options of each picture, by its colors."""


def make_tray() -> Scene:
    """Return a tray with a thin wall, a shelf, a cup with a hole in its rim, and two bodies in the air."""
    cup = Solid.cylinder(20, 8, 8, 64) - Solid.cylinder(30, 6.5, 6.5, 64).translate((0, 0, 1))
    tray = Solid.cube((80, 50, 3)) + cup.translate((62, 10, 2))
    for wall in (
        Solid.cube((0.6, 50, 25)).translate((10, 0, 2)),
        Solid.cube((2, 50, 30)).translate((40, 0, 2)),
        Solid.cube((30, 12, 3)).translate((41, 30, 29)),
    ):
        tray += wall
    cone, drop = Solid.cylinder(15, 1, 7, 64).translate((25, 25, 10)), Solid.sphere(4, 48).translate((25, 12, 20))
    meshes = []
    for solid in (tray, cone, drop):
        native = solid.to_mesh64()
        meshes.append(Mesh(np.asarray(native.vert_properties)[:, :3], np.asarray(native.tri_verts).astype(np.int32)))
    centers = meshes[0].vertices[meshes[0].faces].mean(axis=1)
    is_hole = (np.hypot(centers[:, 0] - 62, centers[:, 1] - 10) < 8.1) & (centers[:, 2] > 21) & (centers[:, 1] < 6)
    meshes[0] = Mesh(meshes[0].vertices, meshes[0].faces[~is_hole])
    return Scene(tuple(meshes), tuple(Part(number) for number in range(len(meshes))))


def main() -> None:
    """Draw the model as `meshhub render --color-by` does."""
    with tempfile.TemporaryDirectory() as name, Registry(entry_points=False) as registry:
        model = Path(name) / "tray.3mf"
        registry.write(make_tray(), model)
        for colors, look in LOOKS.items():
            options = {"color_by": colors, "size": "960x480", **look}
            registry.render(model, IMAGES / f"check-{colors}.png", options=options)
        photograph_report(registry, model, Path(name))


def photograph_report(registry: Registry, model: Path, folder: Path) -> None:
    """Draw the first page of a report."""
    checked = collect_model(registry, registry.read(model), model.name, registry.check(model))
    page, shot = folder / "report.html", folder / "report.png"
    page.write_bytes(render_report([checked], page.name, registry, "en", date(2030, 1, 2)))
    command = ["chromium", "--headless", "--no-sandbox", "--hide-scrollbars", "--window-size=760,1075"]
    subprocess.run([*command, f"--screenshot={shot}", page.as_uri()], check=True, capture_output=True)  # noqa: S603 - own files
    with Image.open(shot) as image:
        image.convert("RGB").save(IMAGES / "check-report.webp", quality=80, method=6)


if __name__ == "__main__":
    main()
