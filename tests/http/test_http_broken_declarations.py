"""A service with plug-ins that declare anything: it serves what works, and lists the faults."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from broken_declarations import CASES, PACKAGE, install_all
from http_serving import ASCII_STL, serving
from meshhub.engine.isolated import Isolated
from meshhub.pipeline.hooks import Hooks

pytestmark = pytest.mark.once


def test_a_service_works_beside_broken_plugins(
    tmp_path: Path, engine: Isolated, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "installed"
    folder.mkdir()
    install_all(folder)
    monkeypatch.syspath_prepend(str(folder))
    try:
        with serving(tmp_path, {}, engine, hooks=Hooks()) as running:
            converted = running.post("/convert", {"file": ("a.stl", ASCII_STL)}, {"target": "ply"})
            assert (converted.status_code, converted.content[:3]) == (200, b"ply")
            faults = {fault["plugin"]: fault["message"] for fault in running.get("/supported").json()["faults"]}
            assert faults.keys() == CASES.keys()
            assert all(CASES[name].expected in message for name, message in faults.items())
            for path in ("/plan", "/schema/openapi.json", "/health/ready"):
                assert running.get(path).status_code == 200, path
    finally:
        sys.modules.pop(PACKAGE, None)
