"""The manual pages: complete, and valid roff."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from test_cli_verbosity import COMMANDS

pytestmark = pytest.mark.once

MAN = Path(__file__).parent.parent / "docs" / "man"
PAGES = sorted(MAN.glob("*.1"))


def test_every_command_has_a_page() -> None:
    names = {"meshhub.1", *(f"meshhub-{'-'.join(path)}.1" for path, _ in COMMANDS)}
    assert {page.name for page in PAGES} == names


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_groff_formats_the_page_without_a_warning(page: Path) -> None:
    done = subprocess.run(["groff", "-man", "-wall", "-Tutf8", page], capture_output=True, check=True)
    assert done.stderr == b""
    text = re.sub(r"\x1b\[[0-9;]*m|.\x08", "", done.stdout.decode())
    for heading in ("NAME", "SYNOPSIS", "OPTIONS", "EXIT STATUS"):
        assert f"\n{heading}\n" in text
    # an escape that groff does not know stays in the text
    assert not re.search(r"\\[\[f(&-]", text)


def test_the_page_of_convert_has_the_options_of_plugins_and_plain_dashes() -> None:
    text = (MAN / "meshhub-convert.1").read_text(encoding="ascii")
    assert "\\fB\\-\\-target\\-height\\-mm\\fR \\fINUMBER\\fR" in text
    assert "Scale the whole scene" in text
