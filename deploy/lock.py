"""Lock the packages of the image, with hashes.

    python deploy/lock.py              # write the locks; packages move only as far as pyproject.toml demands
    python deploy/lock.py --upgrade    # move all packages to their latest versions
    python deploy/lock.py --check      # fail if pyproject.toml demands other packages

It needs uv.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).parent

SLIM = ("cluster", "draco", "http", "opentelemetry", "postgres", "redis", "report", "text", "textures")
"""Extras of the slim image: all that a service uses, except CAD files, and pymeshlab, which is GPL-3.0."""

LOCKS: dict[str, Sequence[str]] = {
    "requirements.txt": ("pyproject.toml", *(f"--extra={extra}" for extra in SLIM)),
    "requirements-all.txt": ("pyproject.toml", *(f"--extra={extra}" for extra in (*SLIM, "meshlab", "step"))),
    "requirements-build.txt": ("deploy/build.in",),
}
"""Arguments of uv by lock."""

UNUSED = ("faker", "polyfactory")
"""Packages that litestar requires for the examples in its own OpenAPI documents; meshhub writes its own document."""

_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.M)


def compile_lock(name: str, output: Path, *more: str) -> None:
    """Write the lock with a name to a file; the versions in the file stay if they fit."""
    command = [
        "uv", "pip", "compile", *LOCKS[name], "--python-version=3.13", "--python-platform=x86_64-manylinux_2_36",
        "--generate-hashes", "--no-header", "--no-annotate", "--no-emit-index-url", "--quiet",
        *(f"--no-emit-package={package}" for package in UNUSED), f"--output-file={output}", *more,
    ]  # fmt: skip
    subprocess.run(command, check=True, cwd=FOLDER.parent, stdout=subprocess.DEVNULL)


def read_pins(text: str) -> dict[str, str]:
    """Return the versions in a lock by package."""
    return dict(_PIN.findall(text))


def find_outdated() -> list[str]:
    """Return the names of the locks that do not fit pyproject.toml."""
    outdated = []
    with tempfile.TemporaryDirectory() as folder:
        for name in LOCKS:
            current = (FOLDER / name).read_text(encoding="utf-8")
            copy = Path(folder, name)
            copy.write_text(current, encoding="utf-8")
            compile_lock(name, copy)
            # a package index may add files, and so hashes, to a version
            if read_pins(copy.read_text(encoding="utf-8")) != read_pins(current):
                outdated.append(name)
    return outdated


def main(*arguments: str) -> None:
    """Write or check the locks."""
    if "--check" in arguments:
        outdated = find_outdated()
        if outdated:
            sys.exit(f"run `python deploy/lock.py`: {', '.join(outdated)} do not fit pyproject.toml")
        return
    for name in LOCKS:
        compile_lock(name, FOLDER / name, *(["--upgrade"] if "--upgrade" in arguments else []))


if __name__ == "__main__":
    main(*sys.argv[1:])
