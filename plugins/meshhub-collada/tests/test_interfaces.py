"""The plug-in, loaded by entry point, in the registry and on the command line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from dae_files import dae

from meshhub import Registry, Source, Target
from meshhub.testing import sample_scenes


def test_the_registry_loads_the_plugin_by_entry_point() -> None:
    registry = Registry()
    assert not [fault for fault in registry.faults if fault.plugin == "collada"]
    assert next(plugin for plugin in registry.plugins if plugin.name == "collada").origin.startswith("meshhub-collada ")


@pytest.mark.parametrize("target", ["stl", "obj", "ply", "glb", "3mf"])
def test_dae_converts_to_and_from_every_other_format(target: str) -> None:
    registry, other, back = Registry(), Target(), Target()
    registry.convert(Source.from_bytes(dae(), "a.dae"), other, target=target)
    report = registry.convert(Source.from_bytes(other.read(), "a." + target), back, target="dae")
    assert report.target.size_mm == pytest.approx((10, 20, 30))
    assert registry.inspect(Source.from_bytes(back.read(), "b.dae")).model.volume_mm3 == pytest.approx(6000)


def test_the_command_line_writes_a_file_and_its_texture(tmp_path: Path) -> None:
    target = Target()
    Registry().write(sample_scenes.textures(), target, target="glb")
    model, result = tmp_path / "a.glb", tmp_path / "out" / "b.dae"
    model.write_bytes(target.read())
    result.parent.mkdir()
    command = [sys.executable, "-m", "meshhub", "convert", str(model), str(result)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    assert len(list(result.parent.iterdir())) == 2
    assert [image.data for image in Registry().read(result).images] == [sample_scenes.png()]
