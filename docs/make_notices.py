"""Write the licenses of all packages that `meshhub[all]` installs: `python docs/make_notices.py > NOTICES.txt`.

An archive or an image that contains meshhub with its dependencies needs these notices. The packages are those of the
environment that runs this program: `tox -e notices`.
"""

from __future__ import annotations

import re
import sys
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

_LICENSE_FILE = re.compile(r"(^|/)(licen[cs]e|copying|notice|authors)[^/]*$|\.dist-info/licenses/", re.I)
"""Path of a file with the license terms of a distribution."""

_MAX_NAME_CHARS = 100
"""Maximum characters of the name of a license, because some distributions write the whole text into that field."""

_COPYLEFT = re.compile(r"\bA?GPL|General Public License", re.I)
"""Names of licenses whose terms apply to the whole work that contains the package; those of the LGPL do not."""


def list_distributions(extras: frozenset[str] = frozenset({"all"})) -> list[metadata.Distribution]:
    """Return the installed distributions that meshhub with extras requires, directly or not, by name.

    Raises:
        metadata.PackageNotFoundError: One of them is not installed.
    """
    distributions: dict[str, metadata.Distribution] = {}
    pending = [("meshhub", extras)]
    seen: set[tuple[str, str]] = set()
    while pending:
        name, wanted = pending.pop()
        distribution = metadata.distribution(name)
        if name != "meshhub":
            distributions[re.sub(r"[-_.]+", "-", name).lower()] = distribution
        for text in distribution.requires or ():
            requirement = Requirement(text)
            # "" evaluates the markers of requirements without an extra
            for extra in ("", *wanted):
                is_needed = requirement.marker is None or requirement.marker.evaluate({"extra": extra})
                if is_needed and (text, extra) not in seen:
                    seen.add((text, extra))
                    pending.append((requirement.name, frozenset(requirement.extras)))
    return [distributions[name] for name in sorted(distributions)]


def name_license(distribution: metadata.Distribution) -> str:
    """Return the name of the license that a distribution declares."""
    fields = distribution.metadata
    declared = fields.get("License-Expression") or fields.get("License") or ""
    if declared and len(declared) <= _MAX_NAME_CHARS and "\n" not in declared:
        return declared
    classifiers = [
        text.rpartition(" :: ")[2] for text in fields.get_all("Classifier", ()) if text.startswith("License ::")
    ]
    return ", ".join(classifiers) or "see the text below"


def read_texts(distribution: metadata.Distribution) -> list[str]:
    """Return the texts of the license files of a distribution."""
    names = [file for file in distribution.files or () if _LICENSE_FILE.search(str(file)) and file.suffix != ".py"]
    paths = [Path(str(distribution.locate_file(name))) for name in names]
    return [path.read_text(encoding="utf-8", errors="replace").strip() for path in paths if path.is_file()]


def read_vendored() -> list[str]:
    """Return the notices of the files of other projects that meshhub itself contains, a block for each project."""
    blocks = []
    for license_ in sorted((Path(__file__).parent.parent / "src").rglob("LICENSE")):
        readme = license_.with_name("README.md")
        title = readme.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        texts = [
            path.read_text(encoding="utf-8").strip()
            for path in sorted(license_.parent.iterdir())
            if path.name in ("LICENSE", "NOTICE") or path.name.endswith(".LICENSE.txt")
        ]
        blocks.append("\n\n".join(["=" * 80 + f"\n{title}, part of meshhub", *texts]))
    return blocks


def build_notices() -> str:
    """Return the notices."""
    distributions = list_distributions()
    rows = [f"{item.metadata['Name']} {item.version}: {name_license(item)}" for item in distributions]
    copyleft = [row for row in rows if _COPYLEFT.search(row.replace("LGPL", "").replace("Lesser General", ""))]
    blocks = ['Packages that meshhub uses, with the extra "all"', "\n".join(rows)]
    if copyleft:
        terms = "Archives and images that contain these are distributed under their terms:"
        blocks.append("\n".join([terms, *copyleft]))
    for item, row in zip(distributions, rows, strict=True):
        blocks.append("\n\n".join(["=" * 80 + "\n" + row, *read_texts(item)]))
    return "\n\n".join([*blocks, *read_vendored()]) + "\n"


if __name__ == "__main__":
    sys.stdout.write(build_notices())
