"""Plug-ins that declare anything: each mistake is a fault of its own plug-in, and everything else works."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from broken_declarations import CASES, PACKAGE, BrokenPlugin, Lenient, good_plan, install_all
from meshhub import LOCAL, Registry
from meshhub.pipeline.loading import Fault
from meshhub.supported import supported

OBJ = b"v 0 0 0\nv 9 0 0\nv 0 9 0\nv 0 0 9\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Install every broken plug-in as a distribution of its own."""
    installed = tmp_path / "installed"
    install_all(installed)
    monkeypatch.syspath_prepend(str(installed))
    yield installed
    sys.modules.pop(PACKAGE, None)


def check_fault(name: str, fault: Fault) -> None:
    assert fault.plugin == name
    assert CASES[name].expected in fault.message
    assert len(fault.message) < 500
    assert fault.message.isprintable()


def check_works(registry: Registry) -> None:
    msgspec.json.encode(supported(registry, LOCAL))
    assert registry.convert_bytes(OBJ, "ply").startswith(b"ply")


@pytest.mark.parametrize("name", CASES)
def test_a_mistake_is_a_fault_that_names_plugin_and_field(name: str, folder: Path) -> None:
    registry = Registry([BrokenPlugin(name)], entry_points=False, builtins=False)
    (fault,) = registry.faults
    check_fault(name, fault)
    assert good_plan(name) in registry.plans
    assert "bad" not in registry.declarations.formats
    msgspec.json.encode(supported(registry, LOCAL))


def test_mistakes_of_many_plugins_are_blamed_on_each_of_them(folder: Path) -> None:
    registry = Registry([Lenient(), *map(BrokenPlugin, CASES)], entry_points=False)
    faults = {fault.plugin: fault for fault in registry.faults}
    assert len(faults) == len(registry.faults)
    assert faults.keys() == CASES.keys()
    for name, fault in faults.items():
        check_fault(name, fault)
    assert {good_plan(name) for name in CASES} <= registry.plans.keys()
    assert registry.formats["lenient"].extensions == (".lenient",)
    check_works(registry)
