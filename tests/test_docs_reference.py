"""Reference pages say what the code says."""

# why tests hold lists of files to touch: docs/decisions/0049-what-newcomers-miss.md
from __future__ import annotations

import ast
import hashlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import meshhub
from meshhub import errors
from meshhub.builtin_plugins.plans import FREE
from meshhub.error_codes import ERROR_CODES

pytestmark = pytest.mark.once

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
SOURCE = ROOT / "src" / "meshhub"


def table_rows(page: Path) -> list[list[str]]:
    lines = page.read_text(encoding="utf-8").splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| `")]


def test_every_error_code_is_documented_with_its_statuses() -> None:
    rows = {row[0].strip("`"): row[1:] for row in table_rows(DOCS / "reference" / "errors.md") if len(row) == 7}
    assert list(rows) == list(ERROR_CODES)
    for code, (http_status, exit_statuses, _, retry_after, meaning, _) in rows.items():
        row = ERROR_CODES[code]
        assert http_status == str(row.http_status or "–"), code
        assert str(row.exit_status or "–") in exit_statuses.split(", "), code
        assert retry_after == (f"{row.retry_after_s} s" if row.retry_after_s else "–"), code
        assert meaning == row.meaning, code


def test_every_value_of_an_error_is_documented() -> None:
    unknown = []
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            keywords = {keyword.arg: keyword.value for keyword in node.keywords}
            values, code = keywords.get("values"), keywords.get("error_code")
            kind = getattr(errors, ast.unparse(node.func), None)
            if isinstance(values, ast.Dict) and (kind or isinstance(code, ast.Constant)):
                row = ERROR_CODES[str(code.value) if isinstance(code, ast.Constant) else kind.error_code]
                names = [key.value for key in values.keys if isinstance(key, ast.Constant)]
                unknown += [(path.name, name) for name in names if name not in row.values]
    assert unknown == []


def test_generated_pages_are_current() -> None:
    pytest.importorskip("litestar", reason="the service needs the extra http")
    code = "import make_reference; print(*make_reference.outdated())"
    result = subprocess.run([sys.executable, "-c", code], cwd=DOCS, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert not result.stdout.strip(), f"run python docs/make_reference.py: {result.stdout}"


def test_every_public_name_is_in_the_python_reference() -> None:
    text = (DOCS / "reference" / "python.md").read_text(encoding="utf-8")
    documented = {name: module for module, name in re.findall(r"<!-- generated: api (\S+)\.(\w+) -->", text)}
    documented |= {name: "meshhub.errors" for name in re.findall(r"^### (\w+)$", text, re.M) if hasattr(errors, name)}
    public = {name: meshhub._MODULE_OF.get(name, "meshhub.errors") for name in meshhub.__all__}
    assert {name: documented.get(name) for name in public} == public


def test_the_architecture_page_names_every_package_and_module() -> None:
    import test_architecture

    rows = table_rows(DOCS / "explanation" / "architecture.md")
    names = {name for row in rows for name in re.findall(r"`(\w+)`", row[0])}
    diagram = (DOCS / "explanation" / "packages.svg").read_text(encoding="utf-8")
    for package in test_architecture.PACKAGES:
        assert package in names
        assert package in diagram
    for package in ("pipeline", "engine"):
        assert {path.stem for path in (SOURCE / package).glob("[a-z]*.py")} <= names
    folders = {path.parent.name for path in (SOURCE / "http").glob("*/__init__.py")}
    assert folders <= names


@pytest.mark.parametrize(
    ("document", "min_paths"),
    [
        ("CONTRIBUTING.md", 11),
        ("README.md", 0),
        ("SECURITY.md", 1),
        ("docs/explanation/architecture.md", 11),
        ("docs/explanation/step-code.md", 11),
    ],
)
def test_paths_in_guides_exist(document: str, min_paths: int) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    paths = {path for path in re.findall(r"`([\w./-]+(?:\.(?:py|md|toml)|/))`", text) if "/" in path}
    assert len(paths) >= min_paths
    roots = (ROOT, SOURCE, SOURCE / "builtin_plugins", SOURCE / "builtin_plugins" / "step")
    missing = {path for path in paths if not any((root / path).exists() for root in roots)}
    # a pattern
    assert missing <= {"docs/decisions/NNNN-name.md"}


def test_decisions_have_numbers_without_holes_and_links_from_the_code() -> None:
    files = {path.name: path for path in (DOCS / "decisions").glob("[0-9]*.md")}
    headings = [path.read_text(encoding="utf-8").split(".")[0] for _, path in sorted(files.items())]
    assert [int(name[:4]) for name in sorted(files)] == list(range(1, len(files) + 1))
    assert headings == [f"# {number}" for number in range(1, len(files) + 1)]
    linked = {
        name
        for folder in ("src", "tests", "docs", "plugins")
        for path in (ROOT / folder).rglob("*.py")
        for name in re.findall(r"# .*why .*: docs/decisions/(\S+)$", path.read_text(encoding="utf-8"), re.M)
    }
    superseded = {name for name, path in files.items() if "\n\nSuperseded by" in path.read_text(encoding="utf-8")}
    assert linked == files.keys() - superseded


def test_decisions_are_short() -> None:
    too_long = []
    for path in sorted((DOCS / "decisions").glob("[0-9]*.md")):
        lines = path.read_text(encoding="utf-8").splitlines()
        wide = [line for line in lines if len(line) > 120 and not line.startswith("|")]
        if len(lines) > 40 or wide or ("\n\nSuperseded by" in path.read_text(encoding="utf-8") and len(lines) > 3):
            too_long.append((path.name, len(lines), wide))
    assert too_long == []


def test_every_page_is_in_the_navigation() -> None:
    def pages(entries: list[dict[str, object]]) -> list[str]:
        paths: list[str] = []
        for entry in entries:
            for value in entry.values():
                paths += [value] if isinstance(value, str) else pages(value)  # type: ignore[arg-type]
        return paths

    config = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]
    files = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    decisions = {name for name in files if re.match(r"decisions/\d", name)}
    assert sorted(pages(config["nav"])) == sorted(files - decisions)


def test_the_readme_names_the_extras_and_the_free_limits() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    extras = set(re.findall(r"`(\w+)`", text.partition("## Extras")[2].partition("\n## ")[0]))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["optional-dependencies"].keys() <= extras
    limits = FREE.limits
    megabytes = (limits.max_file_bytes or 0) >> 20
    assert (
        f"{megabytes} MB per file, {limits.max_batch_files} files per batch, "
        f"{limits.requests_per_minute} requests per minute" in " ".join(text.split())
    )


def test_the_pictures_show_the_built_page() -> None:
    build = SOURCE / "http" / "page" / "index.html"
    shown = (DOCS / "images" / "page.sha256").read_text(encoding="utf-8").strip()
    assert hashlib.sha256(build.read_bytes()).hexdigest() == shown, "run python docs/make_page_pictures.py"
