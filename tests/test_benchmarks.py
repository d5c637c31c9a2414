"""Every benchmark can be imported, and STEP files of any size can be damaged."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).parent.parent
MODULES = sorted(".".join(path.relative_to(ROOT).with_suffix("").parts) for path in (ROOT / "benchmarks").rglob("*.py"))
OPTIONAL = {"OCP", "httpx", "litestar", "playwright", "procrastinate", "psycopg", "sqlalchemy", "uvicorn"}
"""Packages of extras and dependency groups that benchmarks import."""

SMALL_STEP = b"ISO-10303-21;\nHEADER;\nENDSEC;\nDATA;\n#1=DIRECTION('',(0.,1.,0.));\nENDSEC;\nEND-ISO-10303-21;\n"


@pytest.fixture(autouse=True)
def _import_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """Import the benchmarks as `python -m` and `python benchmarks/…` do."""
    monkeypatch.setattr(sys, "path", [str(ROOT), str(ROOT / "benchmarks"), *sys.path])


@pytest.mark.parametrize("module", MODULES)
def test_every_benchmark_can_be_imported(module: str) -> None:
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in OPTIONAL:
            raise
        pytest.skip(f"{package} is not installed")


@pytest.mark.parametrize("data", [SMALL_STEP, b"ISO-10303-21;", b"?"])
def test_a_file_of_any_size_can_be_damaged(data: bytes) -> None:
    mutations = importlib.import_module("benchmarks.step_mutations").mutations
    results = list(mutations([data], 400, seed=1))
    assert len({kind for kind, _ in results}) == 8
    assert len({content for _, content in results}) > 4
