"""What meshhub does where POSIX is missing; real Windows has more differences than those simulated here."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.once, pytest.mark.skipif(sys.platform == "win32", reason="this is Windows")]

SUPPORT = Path(__file__).parent / "support"


@pytest.mark.parametrize("task", ["library", "command-line", "service"])
@pytest.mark.large
def test_meshhub_works_without_posix(task: str, tmp_path: Path) -> None:
    if task == "service" and importlib.util.find_spec("litestar") is None:
        pytest.skip("litestar is not installed")
    (tmp_path / "sitecustomize.py").write_text("import without_posix\nwithout_posix.leave_posix_before_import()\n")
    (tmp_path / "models").mkdir()
    done = subprocess.run(
        [sys.executable, SUPPORT / "without_posix.py", task, tmp_path / "models"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(SUPPORT)])},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    # workers did the same
    assert "sitecustomize" not in done.stderr
