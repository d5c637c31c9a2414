"""Compare the solid of an SVG drawing with the picture that resvg paints.

    python benchmarks/svg_judge.py FILE_OR_FOLDER…

The picture's alpha is what is painted. The base of the solid is drawn by the same renderer, so that both have the same
soft edges, and the difference of both is measured. The size is compared as well, because the solid's millimeters decide
where its base is drawn.
"""

from __future__ import annotations

import argparse
import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy.ndimage import maximum_filter, minimum_filter

from meshhub import MeshhubError, Registry, Scene
from meshhub.toolkit.geometry import soup

RESVG_PYTHON = os.environ.get("RESVG_PYTHON", sys.executable)
"""Python with the package resvg-py."""

SIDE_PX = 2000
"""Pixels of the longer side of a picture."""

MAX_DIFFERENCE_RATIO = 0.01
"""Share of the painted area by which solid and picture may differ."""

MM_PER_PX = 25.4 / 96

DEADLINE_S = 120
"""Seconds for one picture."""

_CODE = """
import sys, resvg_py
source, zoom, target = sys.argv[1:]
picture = resvg_py.svg_to_bytes(svg_path=source, zoom=float(zoom), dpi=96, skip_system_fonts=True)
open(target, "wb").write(bytes(picture))
"""


class Difference(NamedTuple):
    """Areas in mm²: what the picture paints, and where only the picture or only the solid is."""

    painted: float
    only_picture: float
    only_solid: float

    @property
    def ratio(self) -> float:
        """Return the symmetric difference as a share of the painted area."""
        return (self.only_picture + self.only_solid) / self.painted if self.painted else float("inf")


def measure_difference(path: Path, scene: Scene) -> Difference | None:
    """Measure how a solid differs from the picture of its drawing; None if resvg rejects the drawing.

    Args:
        path: Drawing.
        scene: Solid that meshhub made of it with the default options.
    """
    first = _render(path, 1.0)
    if first is None:
        return None
    zoom = SIDE_PX / max(first.shape)
    picture = _render(path, zoom)
    if picture is None:
        return None
    vertices, faces = soup(scene)
    corners = vertices[faces]
    base = corners[np.abs(corners[:, :, 2] - vertices[:, 2].min()).max(axis=1) < 1e-6][:, :, :2]
    with tempfile.NamedTemporaryFile("w", suffix=".svg") as file:
        file.write(_draw(base * (zoom / MM_PER_PX, -zoom / MM_PER_PX), picture.shape))
        file.flush()
        solid = _render(Path(file.name), 1.0)
    if solid is None:
        return None
    painted = _binarize(picture)
    pixel = (MM_PER_PX / zoom) ** 2
    only_picture = np.maximum(painted - solid, 0).sum() * pixel
    return Difference(painted.sum() * pixel, only_picture, np.maximum(solid - painted, 0).sum() * pixel)


def _binarize(alpha: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how much of each pixel is painted: a translucent area counts as a painted one, a soft edge in part."""
    is_even = (maximum_filter(alpha, 3) - minimum_filter(alpha, 3) < 0.1) & (alpha > 2 / 255)
    level = maximum_filter(np.where(is_even, alpha, 0.0), 3)
    return np.where(is_even, 1.0, np.minimum(alpha / np.where(level > 0, level, 1.0), 1.0))


def _draw(triangles: NDArray[np.float64], shape: tuple[int, ...]) -> str:
    """Return a drawing of triangles."""
    numbers = np.char.mod("%.3f", triangles.reshape(-1, 6))
    data = " ".join("M" + " ".join(row) + "z" for row in numbers.tolist())
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="{shape[1]}" height="{shape[0]}"><path d="{data}"/></svg>'


def _render(path: Path, zoom: float) -> NDArray[np.float64] | None:
    """Return the alpha of a picture, from 0 to 1; None if the drawing is rejected."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "picture.png"
        command = [RESVG_PYTHON, "-c", _CODE, str(path), repr(zoom), str(target)]
        try:
            subprocess.run(command, timeout=DEADLINE_S, capture_output=True, check=True)
        except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
            return None
        data = target.read_bytes()
    with Image.open(io.BytesIO(data)) as image:
        return np.asarray(image.convert("RGBA"), np.float64)[:, :, 3] / 255


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", type=Path, nargs="+")
    arguments = parser.parse_args()
    registry = Registry()
    files = [file for path in arguments.paths for file in (sorted(path.rglob("*.svg")) if path.is_dir() else [path])]
    worse = 0
    for path in files:
        try:
            scene = registry.read(path, input_format="svg", options={"svg_tolerance_mm": 1e-3})
        except MeshhubError as error:
            print(f"{path.name[:50]:50} rejected: {error.message}")
            continue
        difference = measure_difference(path, scene)
        if difference is None:
            print(f"{path.name[:50]:50} rejected by resvg")
            continue
        worse += difference.ratio > MAX_DIFFERENCE_RATIO
        verdict = "different" if difference.ratio > MAX_DIFFERENCE_RATIO else "equal"
        areas = f"{difference.painted:12.4g} {difference.only_picture:10.3g} {difference.only_solid:10.3g}"
        print(f"{path.name[:50]:50} {areas} {difference.ratio:8.4f} {verdict}", flush=True)
    print(f"{worse} of {len(files)} differ")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
