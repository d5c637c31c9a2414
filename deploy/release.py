"""Prepare a release: the version in every file that has it, and the notes from the changelog.

    python deploy/release.py version 0.2.0    # write the version of meshhub, its distributions and CITATION.cff
    python deploy/release.py notes 0.2.0      # print the section of the changelog

A workflow runs both for a tag such as v0.2.0; "v" may precede the version.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent

_VERSION = re.compile(r"v?(\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?)")
"""Version as PEP 440 and Semantic Versioning both allow it, with pre-releases such as 0.2.0rc1."""


def list_files(root: Path) -> list[Path]:
    """Return the files that state the version."""
    projects = [root / "pyproject.toml", *sorted((root / "plugins").glob("*/pyproject.toml")), root / "CITATION.cff"]
    packages = root / "clients" / "typescript" / "package.json"
    return [*projects, *sorted((root / "plugins").glob("*/server.json")), packages]


def write_version(version: str, root: Path = ROOT) -> None:
    """Write the version to every file that states it. Raises SystemExit if a file has no line for it."""
    for path in list_files(root):
        pattern, line = (r"^version: .*$", f"version: {version}")
        if path.suffix == ".toml":
            pattern, line = (r'^version = ".*"$', f'version = "{version}"')
        elif path.suffix == ".json":
            # npm wants 0.2.0-rc.1; a manifest of the protocol has the version of PyPI, for the server and its package
            spelled = re.sub(r"(a|b|rc)(\d+)$", r"-\1.\2", version) if path.name == "package.json" else version
            pattern, line = (r'^( +)"version": ".*"', rf'\1"version": "{spelled}"')
        text, count = re.subn(pattern, line, path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        if count == 0:
            sys.exit(f"{path} has no line for the version")
        path.write_text(text, encoding="utf-8")


def find_notes(version: str, root: Path = ROOT) -> str:
    """Return the section of a version in the changelog. Raises SystemExit if there is none."""
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    match = re.search(rf"^## \[{re.escape(version)}\][^\n]*\n(.*?)(?=^## \[|\Z)", text, re.MULTILINE | re.DOTALL)
    if match is None or not match[1].strip():
        sys.exit(f"CHANGELOG.md has no section [{version}]; rename Unreleased")
    return match[1].strip()


def main() -> None:
    """Run the command that the arguments name."""
    match = _VERSION.fullmatch(sys.argv[2]) if len(sys.argv) == 3 else None
    if match is None or sys.argv[1] not in ("version", "notes"):
        sys.exit("usage: release.py version|notes VERSION, such as 0.2.0 or v0.2.0")
    if sys.argv[1] == "version":
        write_version(match[1])
    else:
        sys.stdout.write(find_notes(match[1]) + "\n")


if __name__ == "__main__":
    main()
