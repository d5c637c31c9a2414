"""Commands of the documentation that call the service run as they are, except for the port."""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from pathlib import Path

import pytest

from http_serving import Running
from meshhub.registry import Registry
from test_docs_samples import PAGES, SERVICE, blocks, commands, copy_examples, run_command

pytestmark = pytest.mark.once


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    copy_examples(tmp_path)
    return tmp_path


def run_page(page: str, service: Running, folder: Path) -> dict[str, str]:
    """Run the commands of a page against a service; return the output of each curl by its endpoint."""
    outputs: dict[str, str] = {}
    for command in commands(page):
        if command.startswith(("meshhub serve", "python3 -m venv")):
            continue
        if command.startswith("curl "):
            assert SERVICE in command
        elif page == "README.md":
            # test_readme.py runs the other commands
            continue
        outputs[command.rpartition("/")[2]] = run_command(command.replace(SERVICE, f"{service.url}/"), folder)
    return outputs


def test_the_readme_shows_the_endpoints() -> None:
    endpoints = [command.rpartition("/")[2] for command in commands("README.md") if command.startswith("curl ")]
    assert endpoints == ["convert", "supported"]


def test_the_commands_of_the_readme_run(service: Running, folder: Path) -> None:
    outputs = run_page("README.md", service, folder)
    inspection = Registry().inspect(folder / "bracket.3mf")
    assert inspection.source.format == "3mf"
    assert inspection.model.watertight
    assert "3mf" in json.loads(outputs["supported"])["output_formats"]


def calls_service(page: str) -> bool:
    return any(SERVICE in command for command in commands(page))


CHECKED = {"README.md", "docs/how-to/convert-over-http.md", "docs/tutorial/first-service.md"}
"""Pages whose outputs the other tests check."""


@pytest.mark.parametrize("page", [page for page in PAGES if calls_service(page) and page not in CHECKED])
def test_the_commands_of_a_page_run(service: Running, folder: Path, page: str) -> None:
    assert run_page(page, service, folder)


@pytest.mark.large
def test_the_guide_to_http_converts_an_archive(service: Running, folder: Path) -> None:
    outputs = run_page("docs/how-to/convert-over-http.md", service, folder)
    with zipfile.ZipFile(folder / "parts-out.zip") as archive:
        assert "report.json" in archive.namelist()
        assert {"bracket.3mf", "bracket-clean.3mf"} <= set(archive.namelist())
    assert json.loads(outputs["plan"])["plan"] == "free"


def test_other_programs_send_what_the_service_takes(service: Running, folder: Path) -> None:
    """Send the requests that n8n makes of its nodes; the command of Home Assistant sends the first, too."""
    nodes, command = "", ""
    for block in blocks("docs/how-to/automations.md"):
        nodes = block.text if block.language == "json" else nodes
        match = re.search(r"curl [^\n]+", block.text) if block.language == "yaml" else None
        command = match[0].replace("/media/models/{{ name }}", "examples/bracket.stl") if match else command
    for node in json.loads(nodes)["nodes"]:
        parameters = node["parameters"]
        fields = [
            f"-F {field['name']}=" + ("@examples/bracket.stl" if "parameterType" in field else field["value"])
            for field in parameters["bodyParameters"]["parameters"]
        ]
        sent = f"curl -sf -X {parameters['method']} {' '.join(fields)} -o {node['name']} {parameters['url']}"
        run_command(sent.replace(SERVICE, f"{service.url}/"), folder)
    assert json.loads((folder / "Check").read_bytes())["verdict"] == "will_not_print"
    (folder / "Convert").rename(folder / "converted.3mf")
    assert Registry().inspect(folder / "converted.3mf").model.watertight
    # the same request as that of the first node
    assert command == f"curl -s -F file=@examples/bracket.stl {SERVICE}check"


def test_the_service_tutorial_shows_the_error_that_it_explains(service: Running, folder: Path) -> None:
    outputs = run_page("docs/tutorial/first-service.md", service, folder)
    assert any(
        json.loads(output)["error_code"] == "invalid_option" for output in outputs.values() if "error_code" in output
    )
