"""Programs that use clients of a service: what `tests/clients` shares."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
GENERATION_TIMEOUT_S = 300
"""Seconds for one generator, compiler or client; an idle machine needs 10."""

needs_node = pytest.mark.skipif(shutil.which("npm") is None, reason="Node.js is not installed")


@dataclass
class Service:
    """A running `meshhub serve` and the key of a Pro customer."""

    url: str
    key: str

    @property
    def document(self) -> str:
        return f"{self.url}/schema/openapi.json"


def run(*command: str | Path, folder: Path) -> str:
    """Run a command in a folder; return its output."""
    result = subprocess.run(
        [str(word) for word in command], cwd=folder, capture_output=True, text=True, timeout=GENERATION_TIMEOUT_S
    )
    assert result.returncode == 0, f"{command}\n{result.stdout[-5000:]}\n{result.stderr[-5000:]}"
    return result.stdout + result.stderr
