"""The notices name every package that meshhub installs, with its license."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(find_spec("pymeshlab") is None, reason="needs the extra all"),
]

PROGRAM = Path(__file__).parent.parent / "docs" / "make_notices.py"


def test_every_package_has_a_license_and_the_gpl_is_pointed_out() -> None:
    done = subprocess.run([sys.executable, PROGRAM], capture_output=True, check=True)
    heading, rows, copyleft, *_ = done.stdout.decode().split("\n\n")
    assert "all" in heading
    licenses = dict(re.findall(r"^(\S+) \S+: (.+)$", rows, re.M))
    assert len(licenses) == len(rows.splitlines())
    assert {"numpy", "click", "pluggy", "litestar", "pymeshlab"} <= licenses.keys()
    # a dependency of a dependency; a package of the tests of this repository
    assert "mdurl" in licenses
    assert "hypothesis" not in licenses
    assert [line.split()[0] for line in copyleft.splitlines()[1:]] == ["pymeshlab"]
    assert "Permission is hereby granted" in done.stdout.decode()
    # files of other projects in the package
    assert "Swagger UI" in done.stdout.decode()
    assert "SmartBear Software" in done.stdout.decode()
