"""The commands of the README, and the links of all pages."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest

from test_docs_samples import PAGES, ROOT, code, commands, folder, run_command, shell

__all__ = ["folder"]


def test_the_python_example_shows_the_registry() -> None:
    for page in ("README.md", "docs/how-to/embed.md"):
        assert "Registry" in "\n".join(code(page, "python"))


@pytest.mark.once
def test_command_line_examples_run(folder: Path) -> None:
    lines = [line for line in commands("README.md") if line.startswith("meshhub ") and "serve" not in line]
    assert len(lines) >= 5
    for line in lines:
        run_command(line, folder)


def test_the_first_command_does_the_main_job(folder: Path) -> None:
    *_, conversion, app = commands("README.md")[0].split(" && ")
    result = shell(conversion.replace(".venv/bin/meshhub ", "meshhub "), folder)
    assert result.returncode == 0, result.stderr
    assert (folder / "bracket.3mf").stat().st_size > 1000
    # tests/test_app.py starts the app
    assert app == ".venv/bin/meshhub app bracket.3mf"


def test_continuous_integration_calls_the_second_command() -> None:
    second = commands("README.md")[1]
    assert second.endswith("tox")
    assert second in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_links_have_existing_targets() -> None:
    links = [
        (page, link)
        for page in PAGES
        for link in re.findall(r"\]\(([^)]+)", (ROOT / page).read_text(encoding="utf-8"))
        if "://" not in link
    ]
    for page, link in links:
        path, _, anchor = link.partition("#")
        linked = (ROOT / page).parent / path if path else ROOT / page
        assert linked.exists(), f"{page} links to {link}"
        if anchor and linked.suffix == ".md":
            assert anchor in list_anchors(linked), f"{page} links to {link}"


@functools.cache
def list_anchors(document: Path) -> set[str]:
    """The anchors of a page's headings, as code hosts and the site make them."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(encoding="utf-8"), re.M)
    plain = (
        re.sub(r"[^\w\s-]", "", re.sub(r"\[(.*?)\]\(.*?\)", r"\1", heading)).strip().lower() for heading in headings
    )
    return {re.sub(r"\s", "-", heading) for heading in plain}
