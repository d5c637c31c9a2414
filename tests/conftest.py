"""What every test may ask for."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of real files, named by MESHHUB_CORPUS."""
    named = os.environ.get("MESHHUB_CORPUS", "")
    if not named or not (Path(named) / "INDEX.csv").is_file():
        pytest.skip("MESHHUB_CORPUS does not name a folder of real files")
    return Path(named)


@pytest.fixture(scope="session")
def corpus_index(corpus: Path) -> list[dict[str, str]]:
    """The rows of the corpus's INDEX.csv."""
    with (corpus / "INDEX.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
