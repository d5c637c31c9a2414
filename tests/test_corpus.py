"""A fixed sample of the corpus through every target; `tox -e corpus` runs all of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import corpus_check

FOLDER = Path(os.environ.get("MESHHUB_CORPUS", "."))
SAMPLE = corpus_check.rows(FOLDER)[::9] if (FOLDER / "INDEX.csv").is_file() else []


@pytest.mark.parametrize("row", SAMPLE, ids=lambda row: row["file"])
def test_a_real_file_gives_the_expected_result(corpus: Path, row: dict[str, str]) -> None:
    verdict = corpus_check.check(corpus / row["file"], row["expect"])
    assert not verdict.faults


def test_the_sample_has_enough_files(corpus: Path) -> None:
    assert (corpus / "INDEX.csv").is_file()
    assert len(SAMPLE) > 40
