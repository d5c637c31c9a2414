"""Files for the code host: workflows, issue forms and hooks fit their schemas, and run what tox has."""

from __future__ import annotations

import configparser
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")
pytest.importorskip("check_jsonschema")

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]
WORKFLOWS = ROOT / ".github" / "workflows"
SCHEMAS = {"github-workflows": WORKFLOWS, "github-issue-forms": ROOT / ".github" / "ISSUE_TEMPLATE"}


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in read(path)["jobs"].values() for step in job["steps"]]


def validate(schema: str, *paths: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", "-o", "json", *paths]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_files_fit_their_schemas(schema: str) -> None:
    paths = sorted(SCHEMAS[schema].glob("*.yml"))
    assert paths
    result = validate(schema, *paths)
    assert result.returncode == 0, result.stdout


def test_the_schemas_find_a_mistake(tmp_path: Path) -> None:
    workflow = read(WORKFLOWS / "docs.yml")
    workflow["jobs"]["preview"]["runs_on"] = workflow["jobs"]["preview"].pop("runs-on")
    path = tmp_path / "docs.yml"
    path.write_text(yaml.safe_dump(workflow), encoding="utf-8")
    assert validate("github-workflows", path).returncode == 1
    path.write_text(json.dumps({"name": "Bug", "description": "No fields", "body": []}), encoding="utf-8")
    assert validate("github-issue-forms", path).returncode == 1


def test_workflows_and_hooks_run_environments_of_tox() -> None:
    config = configparser.ConfigParser(interpolation=None)
    config.read(ROOT / "tox.ini", encoding="utf-8")
    sections = {name.removeprefix("testenv:") for name in config.sections()}
    (local,) = read(ROOT / ".pre-commit-config.yaml")["repos"]
    assert local["repo"] == "local"
    lines = [hook["entry"] for hook in local["hooks"]]
    lines += [step.get("run", "") for path in WORKFLOWS.glob("*.yml") for step in steps(path)]
    used = {match[1] for line in lines if (match := re.search(r"^tox .*?-e ([a-z]+)(?= |$)", line))}
    assert used == {"docs", "lint", "quick"}
    assert used <= sections


def test_the_matrix_runs_existing_tests_on_all_systems_and_versions() -> None:
    matrix = read(WORKFLOWS / "all.yml")["jobs"]["versions"]["strategy"]["matrix"]
    assert matrix["minor"] == [11, 12, 13, 14]
    assert {os.partition("-")[0] for os in matrix["os"]} == {"ubuntu", "macos", "windows"}
    paths = [path for row in matrix["include"] for path in row["tests"].split()]
    assert paths
    assert all((ROOT / path).exists() for path in paths)
