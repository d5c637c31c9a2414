"""`meshhub doctor`: a working installation passes, and each defect is named with its remedy."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from meshhub import InProcess
from meshhub.cli import diagnosis, root
from meshhub.engine.contract import Task
from meshhub.errors import WorkerCrashed
from test_cli import meshhub_cli

pytestmark = pytest.mark.once


@pytest.fixture
def light(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Leave out the processes that the tests of single checks do not need."""
    monkeypatch.setattr(diagnosis, "_try_import", lambda module: "")
    monkeypatch.setattr(diagnosis, "Isolated", lambda workers: InProcess())
    return monkeypatch


def run_doctor() -> tuple[Result, dict[str, Any]]:
    result = CliRunner().invoke(root, ["doctor", "--json"])
    return result, json.loads(result.stdout)


def find_checks(data: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [check for check in data["checks"] if check["name"] == name]


@pytest.mark.large
def test_an_installation_that_converts_passes(tmp_path: Path) -> None:
    done = meshhub_cli("doctor", "--json")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert data["can_convert"] is True
    assert data["meshhub"] == metadata.version("meshhub")
    assert data["packages"]["base"]["numpy"] == metadata.version("numpy")
    statuses = {check["name"]: check["status"] for check in data["checks"]}
    assert {name: statuses[name] for name in ("base", "conversion", "spare process", "temporary folder")} == {
        "base": "ok",
        "conversion": "ok",
        "spare process": "ok",
        "temporary folder": "ok",
    }


def test_every_extra_has_a_purpose() -> None:
    assert set(diagnosis.EXTRAS) == set(metadata.metadata("meshhub").get_all("Provides-Extra")) - {"all"}
    packages = diagnosis.list_packages()
    assert all(packages.values())
    assert "pymeshlab" in packages["meshlab"]
    assert "pymeshlab" not in packages[""]


def test_a_missing_optional_package_is_listed_with_its_purpose(light: pytest.MonkeyPatch) -> None:
    light.setattr(diagnosis, "_find_version", lambda name: None if name == "dracopy" else "1.0")
    result, data = run_doctor()
    assert result.exit_code == 0
    (check,) = find_checks(data, "draco")
    assert check["status"] == "missing"
    assert "glTF" in check["message"]
    assert check["remedy"] == 'pip install "dracopy>=1.4"'
    table = CliRunner().invoke(root, ["doctor"], env={"COLUMNS": "80"})
    assert "conversions run" in table.output
    assert max(map(len, table.output.splitlines())) <= 80


def test_a_missing_base_package_fails(light: pytest.MonkeyPatch) -> None:
    light.setattr(diagnosis, "_find_version", lambda name: None if name == "scipy" else "1.0")
    result, data = run_doctor()
    assert result.exit_code == 1
    assert data["can_convert"] is False
    assert "scipy" in find_checks(data, "base")[0]["message"]


def test_a_package_that_cannot_be_imported_is_a_warning(light: pytest.MonkeyPatch) -> None:
    light.setattr(diagnosis, "_find_version", lambda name: "1.0")
    light.setattr(diagnosis, "_try_import", lambda module: "ImportError: libGL.so.1" * (module == "pymeshlab"))
    result, data = run_doctor()
    assert result.exit_code == 0
    (check,) = find_checks(data, "meshlab")
    assert check["status"] == "warning"
    assert "libGL.so.1" in check["message"]
    assert "libopengl0" in check["remedy"]


def test_an_import_runs_in_another_process() -> None:
    assert diagnosis._try_import("json") == ""
    assert "no_such_module" in diagnosis._try_import("no_such_module")
    assert diagnosis._try_import("json:loads") == ""
    assert "no_such_filter" in diagnosis._try_import("json:no_such_filter")


def test_a_crashing_worker_fails(light: pytest.MonkeyPatch) -> None:
    class Crashing(InProcess):
        def run(self, task: Task, **limits: Any) -> Any:
            raise WorkerCrashed("the worker process ended")

    light.setattr(diagnosis, "Isolated", lambda workers: Crashing())
    result, data = run_doctor()
    assert result.exit_code == 1
    (check,) = find_checks(data, "conversion")
    assert check["status"] == "failed"
    assert "the worker process ended" in check["message"]


def test_an_unwritable_temporary_folder_fails(light: pytest.MonkeyPatch) -> None:
    def fail(kind: str) -> None:
        raise PermissionError(13, "Permission denied")

    light.setattr(diagnosis, "Scratch", fail)
    result, data = run_doctor()
    assert result.exit_code == 1
    (check,) = find_checks(data, "temporary folder")
    assert "Permission denied" in check["message"]
    assert "TMPDIR" in check["remedy"]


def test_a_wrong_setting_is_a_warning(light: pytest.MonkeyPatch) -> None:
    light.setenv("MESHHUB_WORKERS", "0")
    result, data = run_doctor()
    assert result.exit_code == 0
    assert find_checks(data, "settings")[0]["status"] == "warning"
    assert "workers" in find_checks(data, "settings")[0]["message"]
