"""The page in Firefox, on the whole way from a file to its result."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from meshhub import Registry

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]
WEB = ROOT / "web"
MIN_COLORS = 100
"""Colors of a picture that shows a shaded model; a blank view has one, and its ground a few."""


def read_pixels(path: Path) -> np.ndarray:
    from PIL import Image

    return np.asarray(Image.open(path).convert("RGB")).astype(int)


def test_firefox_walks_from_a_file_to_its_result(address: str, tmp_path: Path) -> None:
    firefox = os.environ.get("MESHHUB_TEST_FIREFOX") or shutil.which("firefox-esr") or shutil.which("firefox")
    node, screen = shutil.which("node"), shutil.which("xvfb-run")
    if not (firefox and node and screen and (WEB / "node_modules/puppeteer-core").is_dir()):
        pytest.skip("needs Firefox, xvfb-run, and `npm ci` in web/")
    command = [screen, "-a", node, "firefox.mjs", address, str(ROOT / "examples/bracket.stl"), str(tmp_path)]
    variables = {**os.environ, "MESHHUB_TEST_FIREFOX": firefox}
    walk = subprocess.run(command, cwd=WEB, env=variables, capture_output=True, text=True, check=False)
    assert walk.returncode == 0, walk.stderr
    # no errors of scripts, and a phone scrolls in one direction
    assert json.loads(walk.stdout) == {"problems": [], "width": 360}
    pictures = {name: read_pixels(tmp_path / f"{name}.png") for name in ("model", "taller", "result")}
    for picture in pictures.values():
        assert len(np.unique(picture.reshape(-1, 3), axis=0)) > MIN_COLORS
    assert (np.abs(pictures["model"] - pictures["taller"]).max(axis=2) > 40).sum() > 1_000
    model = Registry().inspect(tmp_path / "bracket.3mf").model
    assert model.watertight
    assert model.size_mm[2] == pytest.approx(80)
