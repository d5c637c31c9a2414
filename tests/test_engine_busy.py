"""Isolated workers on a machine that has too much to do."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import toys
from meshhub import Isolated, Registry, Source, Target
from meshhub.engine import descendants


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked for as Linux has them")
def test_a_result_waits_while_its_worker_takes_seconds_to_die(monkeypatch: pytest.MonkeyPatch) -> None:
    kill = descendants.kill_marked
    monkeypatch.setattr(descendants, "kill_marked", lambda mark, timeout_s: kill(mark, timeout_s) and timeout_s > 3)
    registry = Registry([toys], entry_points=False, engine=Isolated(workers=1))
    try:
        target = Target()
        registry.convert(Source.from_bytes(b"toy!", "a.toy"), target, to="toy", timeout=60)
        assert target.read()
    finally:
        registry.close()


def test_a_queue_without_end_waits_longer_than_the_timeout() -> None:
    registry = Registry([toys], entry_points=False, engine=Isolated(workers=1, queue=None))

    def convert(_: int) -> int:
        source = Source.from_bytes(b"toy! sleep 2", "a.toy")
        return registry.convert(source, Target(), to="toy", timeout=5).target.faces

    try:
        with ThreadPoolExecutor(5) as pool:
            assert list(pool.map(convert, range(5))) == [12] * 5
    finally:
        registry.close()
