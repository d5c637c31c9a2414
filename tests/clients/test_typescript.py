"""The client in `clients/typescript`: its tests against a real service, and its tarball in a bare folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from client_programs import EXAMPLES, Service, needs_node, run
from meshhub import Registry

yaml = pytest.importorskip("yaml")
pytest.importorskip("openapi_generator_cli", reason="tests of clients run in `tox -e clients`")

pytestmark = needs_node

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "clients" / "typescript"
WORKFLOW = ROOT / ".github" / "workflows" / "release.yml"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the package, built as its README says."""
    folder = tmp_path_factory.mktemp("typescript") / "client"
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("node_modules", "dist", "build", "schema.ts"))
    run_workflow("package", folder)
    return folder


def run_workflow(name: str, folder: Path, appended: str = "") -> str:
    """Run the commands that a job of the release runs in the folder of the package; return what they print."""
    job = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"][name]
    commands = [step["run"] for step in job["steps"] if "run" in step and "working-directory" not in step]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "GITHUB_REPOSITORY": "owner/meshhub", "GITHUB_REF_NAME": "v0.2.0rc1"}
    printed = ""
    for command in commands:
        # the npm of the machine stays as it is
        if "--global" not in command:
            words = ["bash", "-euc", command + appended]
            done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
            printed += done.stdout + done.stderr
    return printed


def test_it_passes_its_tests_against_a_service(
    package: Path, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("URL", service.url), ("KEY", service.key), ("MODELS", str(EXAMPLES))):
        monkeypatch.setenv(f"MESHHUB_TEST_{name}", value)
    assert "# fail 0" in run("npm", "test", folder=package)


def test_a_release_would_publish_it(package: Path) -> None:
    printed = run_workflow("npm", package, " --dry-run")
    assert "with tag next and public access (dry-run)" in printed
    assert "+ meshhub-client@" in printed


def test_its_tarball_converts_and_checks_in_a_bare_folder(package: Path, service: Service, tmp_path: Path) -> None:
    (tarball,) = package.glob("*.tgz")
    # without a package.json here, npm would look for one above
    (tmp_path / "package.json").write_text('{"private": true, "type": "module"}', encoding="utf-8")
    run("npm", "install", "--no-audit", "--no-fund", tarball, folder=tmp_path)
    # the client has no dependencies, and no sources of its build
    assert [path.name for path in (tmp_path / "node_modules").iterdir() if path.name[0] != "."] == ["meshhub-client"]
    assert {path.name for path in (tmp_path / "node_modules" / "meshhub-client").iterdir()} == {
        "README.md", "dist", "package.json",
    }  # fmt: skip
    environment = {**os.environ, "MESHHUB_API_KEY": service.key}

    def use(*words: str | Path) -> subprocess.CompletedProcess[str]:
        command = ["npx", "--no-install", "meshhub-client", *map(str, words), "--server", service.url]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100)

    bracket, clean = EXAMPLES / "bracket.stl", EXAMPLES / "bracket-clean.stl"
    done = use("convert", bracket, "b.3mf", "--repair", "--target-height-mm", "40")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    model = Registry(entry_points=False).inspect(tmp_path / "b.3mf").model
    assert model.watertight
    assert model.size_mm[2] == pytest.approx(40)
    assert use("convert", bracket, clean, "all.zip", "--target", "ply").returncode == 0
    checked = use("check", bracket)
    assert (checked.returncode, "will not print" in checked.stdout) == (1, True)
    assert '"weight_g"' in use("quote", clean).stdout
    for words, status, message in (
        (("convert", bracket, "b.3mf"), 6, "EEXIST"),
        (("convert", bracket, "b.nothing"), 2, "[unsupported_target]"),
        (("convert", "none.stl", "c.3mf"), 3, "none.stl"),
        (("convrt", bracket, "c.3mf"), 2, "no such command"),
        (("inspect", "package.json"), 2, "[unsupported_format]"),
    ):
        failed = use(*words)
        assert (failed.returncode, message in failed.stderr) == (status, True), failed.stderr
    program = "import { Client } from 'meshhub-client'; import { openModel } from 'meshhub-client/node';"
    program += "const [url, model] = process.argv.slice(2);"
    program += "const { model: { faces } } = await new Client(url).inspect(await openModel(model)); console.log(faces);"
    (tmp_path / "use.js").write_text(program, encoding="utf-8")
    assert int(run("node", "use.js", service.url, clean, folder=tmp_path)) > 100
