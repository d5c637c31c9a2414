"""Isolated workers on a machine that has too much to do."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

import toys
from deadlines import TIMEOUTS_S
from meshhub import Isolated, Registry, Report, Source, Target
from meshhub.engine import descendants
from meshhub.model.progress import Progress


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked for as Linux has them")
def test_a_result_waits_while_its_worker_takes_seconds_to_die(monkeypatch: pytest.MonkeyPatch) -> None:
    kill = descendants.kill_marked
    monkeypatch.setattr(descendants, "kill_marked", lambda mark, timeout_s: kill(mark, timeout_s) and timeout_s > 3)
    registry = Registry([toys], entry_points=False, engine=Isolated(workers=1))
    try:
        target = Target()
        registry.convert(Source.from_bytes(b"toy!", "a.toy"), target, target="toy", timeout=60)
        assert target.read()
    finally:
        registry.close()


def test_a_queue_without_end_waits_longer_than_the_timeout() -> None:
    def convert(text: str, timeout_s: float | None, progress: Callable[[Progress], None]) -> Report:
        source = Source.from_bytes(text.encode(), "a.toy")
        return registry.convert(source, Target(), target="toy", timeout=timeout_s, progress=progress)

    engine = Isolated(workers=1, queue=None)
    with Registry([toys], entry_points=False, engine=engine) as registry, ThreadPoolExecutor(2) as pool:
        # on a loaded machine, the conversion itself may take longer than the first timeout
        for timeout_s in TIMEOUTS_S:
            has_begun = threading.Event()
            first = pool.submit(convert, f"toy! sleep {timeout_s + 1}", None, lambda _, begun=has_begun: begun.set())
            has_begun.wait()
            second = pool.submit(convert, "toy!", timeout_s, lambda _: None)
            assert first.result().ok
            if second.exception() is None:
                return
    pytest.fail("the timeout counts the time in the queue")
