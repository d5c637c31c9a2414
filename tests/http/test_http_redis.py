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
from waiting import wait_until

pytestmark = pytest.mark.once

URL = os.environ.get("MESHHUB_TEST_REDIS_URL", "")
if not URL:
    pytest.skip("MESHHUB_TEST_REDIS_URL names no Redis", allow_module_level=True)
pytest.importorskip("redis", reason="Redis needs the package redis")

LIMIT = 20
LOG = "server.log"


@contextlib.contextmanager
def server(folder: Path) -> Iterator[str]:
    """Start a server in its own process, with its log in `folder`; yield its URL."""
    folder.mkdir()
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
    with (
        (folder / LOG).open("w") as log,
        subprocess.Popen(command, stderr=log, env=environment) as process,
    ):
        try:
            yield wait_until(lambda: re.search(r"http://127\.0\.0\.1:\d+", (folder / LOG).read_text()))[0]
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(300)


def new_caller() -> dict[str, str]:
    """Return the headers of a new caller, as a trusted proxy forwards them."""
    return {"X-Forwarded-For": str(ipaddress.IPv6Address((0x2001_0DB8 << 96) | random.getrandbits(96)))}


@pytest.mark.large
def test_two_servers_share_one_limit(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]

    def ask(number: int, caller: dict[str, str]) -> httpx.Response:
        return client.get(f"{(first, second)[number % 2]}/plan", headers=caller)

    def burst() -> tuple[list[httpx.Response], int] | None:
        """Ask both servers as a new caller; return the answers, and the number of minutes that have a share in them."""
        begin, caller = time.monotonic(), new_caller()
        with ThreadPoolExecutor(12) as threads:
            answers = list(threads.map(lambda number: ask(number, caller), range(3 * LIMIT)))
        minutes = 1 + int((time.monotonic() - begin) // 60)
        # where a busy machine delays Redis, a server counts alone for a while, as it should
        logs = [(folder / LOG).read_text() for folder in folders]
        fallbacks = sum(log.count("this process counts alone") for log in logs)
        seen.append(fallbacks)
        is_shared = seen[-1] == seen[-2] and fallbacks == sum(log.count("works again") for log in logs)
        return (answers, minutes) if is_shared else None

    seen = [0]
    with server(folders[0]) as first, server(folders[1]) as second, httpx.Client(timeout=300) as client:
        answers, minutes = wait_until(burst)
        passed = [answer for answer in answers if answer.status_code == 200]
        assert LIMIT <= len(passed) <= LIMIT * minutes
        assert {answer.status_code for answer in answers} <= {200, 429}
        assert {str(answer.url)[: len(first)] for answer in passed} == {first, second}
        assert min(int(answer.headers["ratelimit-remaining"]) for answer in passed) == 0


def test_counts_survive_a_restart() -> None:
    address = new_caller()["X-Forwarded-For"]

    async def hits(count: int) -> list[bool]:
        limits = RateLimits(URL)
        passed = [(await limits.hit(address, 3)).passed for _ in range(count)]
        await limits.close()
        return passed

    assert asyncio.run(hits(2)) == [True, True]
    assert asyncio.run(hits(2)) == [True, False]
