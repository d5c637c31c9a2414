"""The plug-in, loaded by entry point, in the registry and on the command line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from usda_files import usda

from meshhub import Registry, Source, Target


def test_the_registry_loads_the_plugin_by_entry_point() -> None:
    registry = Registry()
    assert not [fault for fault in registry.faults if fault.plugin == "usdz"]
    assert next(plugin for plugin in registry.plugins if plugin.name == "usdz").origin.startswith("meshhub-usdz ")


@pytest.mark.parametrize("target", ["stl", "obj", "ply", "glb", "3mf"])
def test_usdz_converts_to_and_from_every_other_format(target: str) -> None:
    registry, other, back = Registry(), Target(), Target()
    registry.convert(Source.from_bytes(usda(), "a.usda"), other, target=target)
    report = registry.convert(Source.from_bytes(other.read(), "a." + target), back, target="usdz")
    assert report.target.size_mm == pytest.approx((10, 20, 30))
    assert registry.inspect(Source.from_bytes(back.read(), "b.usdz")).model.volume_mm3 == pytest.approx(6000)


def test_the_command_line_converts_usdz(tmp_path: Path) -> None:
    layer, packed = tmp_path / "a.usda", tmp_path / "b.usdz"
    layer.write_bytes(usda())
    command = [sys.executable, "-m", "meshhub", "convert", str(layer), str(packed)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    assert packed.read_bytes().startswith(b"PK\3\4")
    assert Registry().inspect(packed).model.volume_mm3 == pytest.approx(6000)


def test_the_command_line_reports_a_damaged_file(tmp_path: Path) -> None:
    (tmp_path / "a.usda").write_bytes(usda()[:300])
    command = [sys.executable, "-m", "meshhub", "convert", str(tmp_path / "a.usda"), str(tmp_path / "a.stl")]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 3
    assert "damaged" in process.stderr
    assert "Warning" not in process.stderr
