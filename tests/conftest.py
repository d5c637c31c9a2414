"""What every test may ask for."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest
from hypothesis import settings

# a build must not turn red for an example that nobody can reproduce: new ones are looked for outside of it
settings.register_profile("ci", derandomize=True, deadline=None)
if os.environ.get("CI"):
    settings.load_profile("ci")


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
