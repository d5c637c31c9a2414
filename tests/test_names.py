"""Names in text formats."""

from __future__ import annotations

import pytest

from meshhub.toolkit.names import single_line


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("bracket", "bracket"),
        ("  left \t bracket\r\n", "left bracket"),
        ("a\x1b[31mb", "a [31mb"),
        ("a\u2028b\u202ec", "a b c"),
        ("Größe 4 µm", "Größe 4 µm"),
        ("\n\t", ""),
    ],
)
def test_names_become_one_printable_line(name: str, line: str) -> None:
    assert single_line(name) == line
