"""Number of cores that a program sees."""

from __future__ import annotations

import os

import pytest


def limit_cores(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Let this process see a number of cores until the test ends."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(count)), raising=False)
