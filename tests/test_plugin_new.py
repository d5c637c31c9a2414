"""`meshhub plugin new`: every kind of plug-in passes its tests, the linter and the type checker at once."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from test_cli import meshhub_cli

pytestmark = pytest.mark.once

LONG = "abcdefghij-klmnopqrst-uvwxyzabcd-efghijk"
KINDS = {
    "reader": ["acme-reader", "--reader", "tri"],
    "writer": ["acme-writer", "--writer", ".TRIO"],
    "both": ["meshhub-acme-both", "--reader", "duo", "--writer", "duo"],
    "operation": ["acme-operation", "--operation", "lift-up"],
    "check": ["acme-check", "--check", "too-tall"],
    "recipe": ["acme-recipe", "--recipe", "tall-print"],
    "policy": ["acme-policy", "--policy"],
    "all": [
        "acme",
        "--reader",
        "quad",
        "--writer",
        "quads",
        "--operation",
        "lift",
        "--check",
        "lift",
        "--recipe",
        "tall",
        "--policy",
    ],
    "shortest": [
        "q",
        "--reader",
        "v",
        "--writer",
        "w",
        "--operation",
        "z",
        "--check",
        "x",
        "--recipe",
        "y",
        "--policy",
    ],
    "longest": [LONG, "--reader", "abcdefghijklmnop", "--writer", "abcdefghijklmnop", "--operation", LONG, "--policy"],
}


def run(folder: Path, *arguments: str, path: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, [path, os.environ.get("PYTHONPATH")])),
            "COLUMNS": "200",
        },
    )


def create(folder: Path, *arguments: str) -> Path:
    """Create a plug-in; return its folder."""
    done = meshhub_cli("plugin", "new", *arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    (plugin,) = folder.glob("meshhub-*")
    return plugin


def install(plugin: Path) -> str:
    """Write the metadata that an installer would make; return the path to import from."""
    project = tomllib.loads((plugin / "pyproject.toml").read_text("utf-8"))["project"]
    info = plugin / "src" / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.3\nName: {project['name']}\nVersion: {project['version']}\n", "utf-8"
    )
    points = [f"{name} = {value}" for name, value in project["entry-points"]["meshhub"].items()]
    (info / "entry_points.txt").write_text("\n".join(["[meshhub]", *points, ""]), "utf-8")
    return str(plugin / "src")


@pytest.mark.large
def test_new_plugins_pass_their_tests(tmp_path: Path) -> None:
    """All kinds are installed together, and one run of pytest collects the tests of all."""
    plugins = []
    for kind, arguments in KINDS.items():
        (tmp_path / kind).mkdir()
        plugins.append(create(tmp_path / kind, *arguments))
    path = os.pathsep.join(map(install, plugins))
    run_tests = ("pytest", "-v", "-p", "no:cacheprovider", "-c", str(plugins[0] / "pyproject.toml"), "--rootdir=.")
    done = run(tmp_path, *run_tests, "--import-mode=importlib", *(f"{plugin}/tests" for plugin in plugins), path=path)
    assert done.returncode == 0, done.stdout
    for plugin in plugins:
        assert f"{plugin.name}/tests/" in done.stdout
    assert not re.search(r"^SKIPPED .*test_policy", done.stdout, re.M)
    listed = run(tmp_path, "meshhub", "plugins", path=path)
    assert (listed.returncode, listed.stderr) == (0, "")
    for plugin in plugins:
        assert plugin.name.removeprefix("meshhub-") in listed.stdout


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_plugin_is_clean(kind: str, tmp_path: Path) -> None:
    if shutil.which("ruff") is None:
        pytest.skip("ruff is in the group `lint`")
    plugin = create(tmp_path, *KINDS[kind])
    for arguments in (["check"], ["format", "--check"]):
        done = subprocess.run(["ruff", *arguments], cwd=plugin, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("kind", ["all", "both"])
@pytest.mark.large
def test_a_new_plugin_is_typed(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="mypy is in the group `types`")
    plugin = create(tmp_path, *KINDS[kind])
    done = run(plugin, "mypy")
    assert done.returncode == 0, done.stdout


def test_a_new_plugin_has_all_files(tmp_path: Path) -> None:
    plugin = create(tmp_path, *KINDS["all"])
    names = {str(path.relative_to(plugin)) for path in plugin.rglob("*") if path.is_file()}
    assert names >= {
        "pyproject.toml",
        "README.md",
        "LICENSE",
        ".gitignore",
        ".github/workflows/test.yml",
        "src/meshhub_acme/py.typed",
    }
    for name in names:
        assert not re.search(r"@\w+@", (plugin / name).read_text("utf-8"))
    # pip installs groups since 25.1; Python 3.11 comes with an older one
    assert "--group" not in (plugin / "README.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["acme"], "--reader, --writer, --operation, --check, --recipe or --policy"),
        (["acme", "--check", "Tall"], "must be lower-case words"),
        (["acme", "--check", "walls"], "the check 'walls' exists already"),
        (["acme", "--recipe", "print"], "the recipe 'print' exists already"),
        (["acme", "--recipe", "Tall"], "must be lower-case words"),
        (["Acme", "--policy"], "'Acme' must be lower-case words"),
        (["1acme", "--policy"], "a letter comes first"),
        (["../acme", "--policy"], "must be lower-case words"),
        (["a" * 41, "--policy"], "must be lower-case words"),
        (["acme", "--reader", "a-b"], "at most 16 lower-case letters"),
        (["acme", "--writer", "a" * 17], "at most 16 lower-case letters"),
        (["acme", "--operation", "Lift"], "must be lower-case words"),
        (["stl", "--policy"], "a plug-in 'stl' is installed"),
        (["acme", "--reader", "stl"], "the format 'stl' exists already"),
        (["acme", "--writer", ".STP"], "the format 'stp' exists already"),
        (["acme", "--operation", "repair"], "the operation 'repair' exists already"),
        (["acme", "--operation", "flatten-base"], "exists already"),
        (["pro", "--policy"], "a plan 'pro' exists already"),
    ],
)
def test_names_that_would_be_faults_are_rejected(arguments: list[str], message: str, tmp_path: Path) -> None:
    done = meshhub_cli("plugin", "new", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr.decode()
    assert [path.name for path in tmp_path.iterdir() if path.name != "cache"] == []


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "meshhub-acme").mkdir()
    done = meshhub_cli("plugin", "new", "acme", "--policy", cwd=tmp_path)
    assert done.returncode == 2
    assert b"meshhub-acme exists already; name another --folder" in done.stderr
    assert list((tmp_path / "meshhub-acme").iterdir()) == []
    done = meshhub_cli("plugin", "new", "acme", "--policy", "--folder", "other", cwd=tmp_path)
    assert done.returncode == 0
    assert (tmp_path / "other" / "pyproject.toml").is_file()
    done = meshhub_cli("plugin", "new", "acme", "--policy", "--folder", "no/such/folder", cwd=tmp_path)
    assert done.returncode == 6
    assert b"no/such: is not a folder; create it first" in done.stderr


def test_installed_plugins_are_listed_first(tmp_path: Path) -> None:
    path = install(create(tmp_path, "zebra", "--recipe", "tall-print"))
    listed = run(tmp_path, "meshhub", "plugins", path=path)
    assert (listed.returncode, listed.stderr) == (0, "")
    assert listed.stdout.splitlines()[1].split() == ["zebra", "meshhub-zebra", "0.1.0"]
