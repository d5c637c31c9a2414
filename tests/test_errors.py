"""Parts of messages: numbers, quoted values, URLs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshhub.errors import MAX_QUOTED_CHARS, format_number, quote
from meshhub.service.redaction import redact_error, redact_url


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (1e8, 15, "100000000"),
        (100_000_000, 15, "100000000"),
        (123_456_789, 15, "123456789"),
        (0.001, 15, "0.001"),
        (1.5e-7, 15, "0.00000015"),
        (1234.5678, 3, "1230"),
        (40.0, 4, "40"),
        (-5e6, 15, "-5000000"),
        (1e300, 15, "1e+300"),
        (float("inf"), 15, "inf"),
    ],
)
def test_numbers_are_written_out(value: float, digits: int, text: str) -> None:
    assert format_number(value, digits) == text


@given(st.integers(-(10**15), 10**15))
def test_whole_numbers_keep_every_digit(value: int) -> None:
    assert format_number(value) == str(value)


@pytest.mark.once
@given(st.text())
def test_quotes_are_short(text: str) -> None:
    assert len(text) > MAX_QUOTED_CHARS or quote(text) == repr(text)
    assert len(quote("9" * 50)) < 50


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://:geheim@host:6379/1", "redis://:***@host:6379/1"),
        ("postgresql://user:ge@heim@host/db", "postgresql://user:***@host/db"),
        (
            "postgresql://user@host/db?password=geheim&sslmode=require",
            "postgresql://user@host/db?password=***&sslmode=require",
        ),
        ("redis://host:6379", "redis://host:6379"),
    ],
)
def test_urls_are_shown_without_passwords(url: str, shown: str) -> None:
    assert redact_url(url) == shown
    assert redact_error(f"cannot read {url!r}", url) == f"cannot read {shown!r}"


def test_parts_of_a_password_are_masked() -> None:
    url = "redis://user:ge@heim:geheim2@host"
    assert redact_error("port 'heim:geheim2' is not a number", url) == "port '***:***' is not a number"
