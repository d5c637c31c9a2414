"""Fixtures and settings of all tests."""

# why they take this long: docs/decisions/0040-duration-of-the-tests.md
from __future__ import annotations

import csv
import os
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# on a busy machine an example may take any time; in CI, hypothesis repeats the same examples, so that a failure can be
# reproduced, and developers search for new ones
settings.register_profile(
    "meshhub",
    derandomize=bool(os.environ.get("CI")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("meshhub")

# commands print texts in the language of the locale
for name in ("LANGUAGE", "LC_ALL", "LC_MESSAGES"):
    os.environ.pop(name, None)
os.environ["LANG"] = "C.UTF-8"


MODULE_OF_ONCE = re.compile(r"^pytestmark = (\[\s*)?pytest\.mark\.once\b", re.MULTILINE)
"""Statement that marks all tests of a module as `once`."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip modules whose tests `-m "not once"` excludes: to compile and to import them takes half of the collection."""
    if "not once" not in config.option.markexpr or collection_path.suffix != ".py":
        return None
    return bool(MODULE_OF_ONCE.search(collection_path.read_text(encoding="utf-8"))) or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that use the corpus, before `-m` selects."""
    for item in items:
        if "corpus" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.real_files)


@pytest.fixture
def small_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw the pictures of reports in a fiftieth of their pixels, which takes a twentieth of the time."""
    monkeypatch.setattr("meshhub.reporting.collecting.PICTURE_SIZE", "96x72")


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Return the folder of real files that MESHHUB_CORPUS names."""
    folder = os.environ.get("MESHHUB_CORPUS")
    if not folder:
        pytest.skip("MESHHUB_CORPUS does not name a folder of real files")
    assert (Path(folder) / "INDEX.csv").is_file(), f"MESHHUB_CORPUS names {folder}, which has no INDEX.csv"
    return Path(folder)


@pytest.fixture(scope="session")
def corpus_index(corpus: Path) -> list[dict[str, str]]:
    """Return the rows of the corpus's INDEX.csv."""
    with (corpus / "INDEX.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
