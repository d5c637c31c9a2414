"""Files for the code host: workflows, issue forms and hooks fit their schemas, and run what tox has."""

from __future__ import annotations

import configparser
import json
import re
import subprocess
import sys
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")
pytest.importorskip("check_jsonschema")

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]
WORKFLOWS = ROOT / ".github" / "workflows"

specification = spec_from_file_location("release", ROOT / "deploy" / "release.py")
assert specification is not None
assert specification.loader is not None
release = module_from_spec(specification)
specification.loader.exec_module(release)

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
    assert used == {"build", "docs", "lint", "quick", "sbom"}
    assert used <= sections
    # `tox list` shows it
    assert all("description" in config[name] for name in config.sections() if name.startswith("testenv"))


def test_the_matrix_runs_existing_tests_on_all_systems_and_versions() -> None:
    matrix = read(WORKFLOWS / "all.yml")["jobs"]["versions"]["strategy"]["matrix"]
    assert matrix["minor"] == [11, 12, 13, 14]
    assert {os.partition("-")[0] for os in matrix["os"]} == {"ubuntu", "macos", "windows"}
    paths = [path for row in matrix["include"] for path in row["tests"].split()]
    assert paths
    assert all((ROOT / path).exists() for path in paths)


def test_a_release_publishes_only_tags_and_without_tokens() -> None:
    jobs = read(WORKFLOWS / "release.yml")["jobs"]
    assert jobs["bare"]["strategy"]["matrix"]["minor"] == [11, 12, 13, 14]
    for name in ("publish", "image", "npm"):
        assert "bare" in jobs[name]["needs"]
        assert jobs[name]["if"] == "github.ref_type == 'tag'"
        assert jobs[name]["permissions"]["id-token"] == "write"
    text = (WORKFLOWS / "release.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"secrets\.(\w+)", text)) == {"GITHUB_TOKEN"}
    assert jobs["publish"]["steps"][-1]["with"]["attestations"] is True
    build = next(step for step in jobs["image"]["steps"] if step.get("id") == "build")["with"]
    assert (build["platforms"], build["sbom"], build["provenance"]) == ("linux/amd64,linux/arm64", True, "mode=max")


def test_scripts_that_workflows_run_exist() -> None:
    lines = [step.get("run", "") for path in WORKFLOWS.glob("*.yml") for step in steps(path)]
    scripts = {match for line in lines for match in re.findall(r"[\w./]+\.py", line)}
    assert scripts == {"deploy/release.py", "describe.py", "tests/support/release_check.py"}
    assert all((ROOT / script).is_file() for script in scripts - {"describe.py"})


def test_a_release_writes_its_version_to_every_file_that_states_one(tmp_path: Path) -> None:
    for path in release.list_files(ROOT):
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    release.write_version("0.9.0rc1", tmp_path)
    copies = release.list_files(tmp_path)
    assert {path.name for path in copies} == {"pyproject.toml", "CITATION.cff", "package.json", "server.json"}
    assert len(copies) == 4 + len(list((ROOT / "plugins").glob("meshhub-*")))
    before = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    for path in copies:
        text = path.read_text(encoding="utf-8")
        stated = tomllib.loads(text)["project"] if path.suffix == ".toml" else yaml.safe_load(text)
        # npm has the spelling of Semantic Versioning
        version = "0.9.0-rc.1" if path.name == "package.json" else "0.9.0rc1"
        assert stated["version"] == version
        assert all(package["version"] == version for package in stated.get("packages", ()))
        original = (ROOT / path.relative_to(tmp_path)).read_text(encoding="utf-8")
        assert text.replace(version, before) == original


def test_the_notes_of_a_release_are_its_section_of_the_changelog(tmp_path: Path) -> None:
    text = "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-12-01\n\n### Formats\n\n- New.\n\n## [0.1.0]\n\n- 1.\n"
    (tmp_path / "CHANGELOG.md").write_text(text, encoding="utf-8")
    assert release.find_notes("0.2.0", tmp_path) == "### Formats\n\n- New."
    for missing in ("0.3.0", "0x2.0"):
        with pytest.raises(SystemExit, match="has no section"):
            release.find_notes(missing, tmp_path)


def test_the_script_of_a_release_rejects_what_is_no_version() -> None:
    for arguments in ((), ("notes",), ("notes", "main"), ("notes", "v1.2"), ("publish", "1.2.3")):
        command = [sys.executable, ROOT / "deploy" / "release.py", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert "usage: " in done.stderr


def test_the_citation_fits_its_schema() -> None:
    assert validate("citation-file-format", ROOT / "CITATION.cff").returncode == 0
