"""Rate limits of several servers in the Redis that MESHHUB_TEST_REDIS_URL names."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from meshhub.http.admission.rates import RateLimits

pytestmark = pytest.mark.once

URL = os.environ.get("MESHHUB_TEST_REDIS_URL", "")
if not URL:
    pytest.skip("MESHHUB_TEST_REDIS_URL names no Redis", allow_module_level=True)
pytest.importorskip("redis", reason="Redis needs the package redis")

LIMIT = 20


@contextlib.contextmanager
def server(folder: Path) -> Iterator[str]:
    """Start a server in its own process; yield its URL."""
    environment = {
        **os.environ,
        "XDG_DATA_HOME": str(folder),
        "MESHHUB_TEMPORARY_FOLDER": str(folder),
        "MESHHUB_WORKERS": "1",
        "MESHHUB_RATE_LIMIT_URL": URL,
        "MESHHUB_TRUSTED_PROXIES": "127.0.0.1",
        "MESHHUB_PLAN_FREE_REQUESTS_PER_MINUTE": str(LIMIT),
    }
    command = [sys.executable, "-m", "meshhub", "serve", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=environment, text=True) as process:
        assert process.stderr is not None
        try:
            first = process.stderr.readline()
            match = re.search(r"http://127\.0\.0\.1:\d+", first)
            assert match is not None, first
            yield match[0]
        finally:
            process.send_signal(signal.SIGTERM)
            assert "counts for itself" not in process.stderr.read()
            process.wait(300)


@pytest.fixture
def caller() -> dict[str, str]:
    """Return the headers of a new caller, as a trusted proxy forwards them."""
    return {"X-Forwarded-For": str(ipaddress.IPv6Address((0x2001_0DB8 << 96) | random.getrandbits(96)))}


def test_two_servers_share_one_limit(tmp_path: Path, caller: dict[str, str]) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    with server(folders[0]) as first, server(folders[1]) as second, httpx.Client(timeout=300) as client:

        def ask(number: int) -> httpx.Response:
            return client.get(f"{(first, second)[number % 2]}/plan", headers=caller)

        begin = time.monotonic()
        with ThreadPoolExecutor(12) as threads:
            answers = list(threads.map(ask, range(3 * LIMIT)))
        passed = [answer for answer in answers if answer.status_code == 200]
        # a busy machine takes several minutes for the requests, and each minute has its share
        minutes = 1 + int((time.monotonic() - begin) // 60)
        assert LIMIT <= len(passed) <= LIMIT * minutes
        assert {answer.status_code for answer in answers} <= {200, 429}
        assert {str(answer.url)[: len(first)] for answer in passed} == {first, second}
        assert min(int(answer.headers["ratelimit-remaining"]) for answer in passed) == 0


def test_counts_survive_a_restart(caller: dict[str, str]) -> None:
    async def hits(count: int) -> list[bool]:
        limits = RateLimits(URL)
        passed = [(await limits.hit(caller["X-Forwarded-For"], 3)).passed for _ in range(count)]
        await limits.close()
        return passed

    assert asyncio.run(hits(2)) == [True, True]
    assert asyncio.run(hits(2)) == [True, False]
