"""The plug-in, loaded by entry point, in the registry and on the command line."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from amf_files import amf

from meshhub import Part, Registry, Source, Target
from meshhub.testing import sample_scenes
from meshhub.toolkit.geometry import bounds


def test_the_registry_loads_the_plugin_by_entry_point() -> None:
    registry = Registry()
    assert not [fault for fault in registry.faults if fault.plugin == "amf"]
    assert next(plugin for plugin in registry.plugins if plugin.name == "amf").origin.startswith("meshhub-amf ")


@pytest.mark.parametrize("target", ["stl", "obj", "ply", "glb", "3mf"])
def test_amf_converts_to_and_from_every_other_format(target: str) -> None:
    registry, other, back = Registry(), Target(), Target()
    registry.convert(Source.from_bytes(amf(), "a.amf"), other, target=target)
    report = registry.convert(Source.from_bytes(other.read(), "a." + target), back, target="amf")
    assert report.target.size_mm == pytest.approx((10, 20, 30))
    assert registry.inspect(Source.from_bytes(back.read(), "b.amf")).model.volume_mm3 == pytest.approx(6000)


def test_instances_differ_in_position_or_with_the_option_in_rotation() -> None:
    turned, moved = sample_scenes.placement(5, 0, 0, is_turned=True), sample_scenes.placement(100, 5, 7)
    scene = replace(sample_scenes.brick(), parts=(Part(0), Part(0, moved), Part(0, turned)))
    registry = Registry()
    for options, count in (({}, 2), ({"amf_rotations": True}, 1)):
        target = Target()
        registry.write(scene, target, target="amf", **options)
        back = registry.read(Source.from_bytes(target.read(), "a.amf"))
        assert len({part.mesh for part in back.parts}) == count
        assert bounds(back) == pytest.approx(bounds(scene))
        assert (b"<rz>90.0</rz>" in target.read()) == bool(options)


def test_the_command_line_converts_amf(tmp_path: Path) -> None:
    plain, packed = tmp_path / "a.amf", tmp_path / "b.amf"
    plain.write_bytes(amf())
    command = [sys.executable, "-m", "meshhub", "convert", str(plain), str(packed), "--amf-compress"]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    assert packed.read_bytes().startswith(b"PK\3\4")
    assert Registry().inspect(packed).model.volume_mm3 == pytest.approx(6000)
