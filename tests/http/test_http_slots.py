"""Slots and queue: callers share the workers and the queue, however many requests one of them sends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from http_serving import Running, check_error, unzip_response, wait_until, zip_files
from meshhub.engine.isolated import Isolated
from meshhub.errors import ServerBusy, ShuttingDown
from meshhub.http.admission.slots import SlotQueue, Ticket


class Simulation:
    """Requests that use a slot queue, named by their caller and a number."""

    def __init__(self, at_once: int, queue: int) -> None:
        self.slots = SlotQueue(at_once, queue)
        self.begun: list[str] = []
        self.refused: list[str] = []
        self._leave: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def add_requests(self, *names: str) -> None:
        for name in names:
            self._leave[name] = asyncio.Event()
            self._tasks[name] = asyncio.create_task(self._request(name, Ticket(name[0])))
            await run_callbacks()

    async def leave(self, *names: str) -> None:
        for name in names:
            self._leave[name].set()
            await run_callbacks()

    async def give_up(self, name: str) -> None:
        self._tasks[name].cancel()
        await run_callbacks()

    async def _request(self, name: str, ticket: Ticket) -> None:
        try:
            await self.slots.acquire(ticket, None)
        except (ServerBusy, ShuttingDown):
            self.refused.append(name)
            return
        self.begun.append(name)
        try:
            await self._leave[name].wait()
        finally:
            self.slots.release(ticket)

    async def close(self) -> None:
        for event in self._leave.values():
            event.set()
        await asyncio.wait(self._tasks.values())


async def run_callbacks() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_caller_without_a_slot_gets_the_next_one() -> None:
    async def simulate() -> None:
        simulation = Simulation(2, 10)
        await simulation.add_requests("a1", "a2", "a3", "a4")
        assert simulation.begun == ["a1", "a2"]
        # a third slot, for a caller without one
        await simulation.add_requests("b1", "b2", "c1")
        assert simulation.begun[2:] == ["b1"]
        await simulation.leave("a1")
        assert simulation.begun[3:] == ["c1"]
        await simulation.leave("b1")
        assert simulation.begun[4:] == ["b2"]
        await simulation.leave("c1", "b2")
        assert simulation.begun[5:] == ["a3"]
        await simulation.close()
        assert sorted(simulation.begun) == ["a1", "a2", "a3", "a4", "b1", "b2", "c1"]
        assert simulation.slots.running == simulation.slots.waiting == 0

    asyncio.run(simulate())


def test_callers_get_slots_in_turn_however_many_requests_they_have() -> None:
    async def simulate() -> None:
        simulation = Simulation(1, 100)
        await simulation.add_requests("x0", "y0")
        await simulation.add_requests(*(f"a{n}" for n in range(30)), "b0", "b1", "c0")
        await simulation.leave("x0", "y0")
        assert simulation.begun[2:] == ["a0", "b0"]
        await simulation.leave("b0", "c0", "b1")
        assert simulation.begun[4:] == ["c0", "b1"]
        await simulation.leave("a0", "a1")
        assert simulation.begun[6:] == ["a1", "a2"]
        await simulation.close()

    asyncio.run(simulate())


def test_a_caller_with_many_requests_displaces_only_its_own() -> None:
    async def simulate() -> None:
        simulation = Simulation(1, 4)
        await simulation.add_requests("x0", "y0", *(f"a{n}" for n in range(4)))
        simulation.slots.check("b")
        with pytest.raises(ServerBusy):
            simulation.slots.check("a")
        await simulation.add_requests("a4")
        assert simulation.refused == ["a4"]
        await simulation.add_requests("b0", "c0")
        assert simulation.refused == ["a4", "a3", "a2"]
        # two requests of one caller, one of each other: no caller displaces one with as few
        with pytest.raises(ServerBusy):
            simulation.slots.check("b")
        await simulation.add_requests("b1")
        assert simulation.refused[3:] == ["b1"]
        simulation.slots.check("d")
        await simulation.close()
        assert set(simulation.begun) == {"x0", "y0", "a0", "a1", "b0", "c0"}

    asyncio.run(simulate())


def test_without_a_queue_requests_are_rejected_at_once() -> None:
    async def simulate() -> None:
        simulation = Simulation(1, 0)
        await simulation.add_requests("a0", "b0", "c0")
        assert simulation.refused == ["c0"]
        with pytest.raises(ServerBusy):
            simulation.slots.check("c")
        await simulation.close()

    asyncio.run(simulate())


def test_a_batch_that_has_begun_is_not_rejected() -> None:
    async def simulate() -> None:
        slots = SlotQueue(1, 0)
        batch, other = Ticket("a"), Ticket("b")
        await slots.acquire(batch, None)
        await slots.acquire(other, None)
        second = asyncio.ensure_future(slots.acquire(batch, None))
        await run_callbacks()
        assert not second.done()
        slots.release(other)
        slots.release(batch)
        await second
        slots.release(batch)

    asyncio.run(simulate())


def test_all_files_of_a_rejected_batch_are_rejected() -> None:
    async def simulate() -> None:
        slots = SlotQueue(1, 1)
        await slots.acquire(Ticket("x"), None)
        await slots.acquire(Ticket("y"), None)
        first, second = Ticket("a"), Ticket("a")
        waiting = asyncio.ensure_future(slots.acquire(first, None))
        files = [asyncio.ensure_future(slots.acquire(second, None)) for _ in range(2)]
        await run_callbacks()
        assert not waiting.done()
        for file in files:
            with pytest.raises(ServerBusy):
                await file
        with pytest.raises(ServerBusy):
            await slots.acquire(second, None)
        slots.stop()
        with pytest.raises(ShuttingDown):
            await waiting
        with pytest.raises(ShuttingDown):
            slots.check("a")

    asyncio.run(simulate())


@settings(max_examples=100, deadline=None)
@given(
    at_once=st.integers(1, 3),
    queue=st.integers(0, 4),
    moves=st.lists(st.tuples(st.sampled_from(["come", "leave", "give_up"]), st.integers(0, 30)), max_size=40),
)
def test_no_slot_is_lost_or_given_twice(at_once: int, queue: int, moves: list[tuple[str, int]]) -> None:
    async def simulate() -> None:
        simulation = Simulation(at_once, queue)
        names: list[str] = []
        for move, number in moves:
            if move == "come":
                names.append(f"{'abc'[number % 3]}{len(names)}")
                await simulation.add_requests(names[-1])
            elif names and move == "leave":
                await simulation.leave(names[number % len(names)])
            elif names:
                await simulation.give_up(names[number % len(names)])
            assert simulation.slots.running <= at_once + 1
            assert simulation.slots.waiting <= queue
            assert not simulation.slots.waiting or simulation.slots.running >= at_once
        if names:
            await simulation.close()
        assert simulation.slots.running == simulation.slots.waiting == 0

    asyncio.run(simulate())


def test_many_requests_of_one_caller_do_not_block_others(
    serve: Callable[..., Running], engine: Isolated, tmp_path: Path
) -> None:
    running = serve(engine, workers=1, queue=4, trusted_proxies=("127.0.0.1",))
    resources: Any = running.server.config.app.state.service.resources  # type: ignore[union-attr]
    go = tmp_path / "go"

    def send_flood(_: int) -> Any:
        return running.convert(f"toy wait {go}".encode(), headers={"X-Forwarded-For": "6.6.6.6"})

    with ThreadPoolExecutor(8) as threads:
        try:
            first = threads.submit(send_flood, 0)
            wait_until(lambda: resources.running == 1)
            flood = [threads.submit(send_flood, number) for number in range(1, 7)]
            wait_until(lambda: sum(request.done() for request in flood) == 2)
            assert resources.waiting == 4
            for answer in (request.result() for request in flood if request.done()):
                check_error(answer, 503, "server_busy")
                assert int(answer.headers["retry-after"]) > 0
            for number in range(3):
                other = {"X-Forwarded-For": f"7.7.7.{number}"}
                assert running.convert(headers=other).status_code == 200
                assert len(unzip_response(running.many(("a.toy", b"toy"), ("b.toy", b"toy"), headers=other))) == 2
            assert not first.done()
        finally:
            go.write_text("go")
        assert sorted(request.result().status_code for request in flood) == [200] * 4 + [503] * 2


def test_a_displaced_archive_is_rejected_as_a_whole(
    serve: Callable[..., Running], engine: Isolated, tmp_path: Path
) -> None:
    running = serve(engine, workers=1, queue=2, trusted_proxies=("127.0.0.1",))
    resources: Any = running.server.config.app.state.service.resources  # type: ignore[union-attr]
    go = tmp_path / "go"

    def convert_as(address: str) -> Any:
        return running.convert(f"toy wait {go}".encode(), headers={"X-Forwarded-For": address})

    with ThreadPoolExecutor(5) as threads:
        try:
            running_requests = [threads.submit(convert_as, f"7.7.7.{number}") for number in range(2)]
            wait_until(lambda: resources.running == 2)
            first = threads.submit(convert_as, "6.6.6.6")
            wait_until(lambda: resources.waiting == 1)
            archive = zip_files({"a.toy": b"toy", "b.unknown": b"no model"})
            batch = threads.submit(running.batch, archive, headers={"X-Forwarded-For": "6.6.6.6"})
            wait_until(lambda: resources.waiting == 2)
            other = threads.submit(convert_as, "8.8.8.8")
            check_error(batch.result(30), 503, "server_busy")
        finally:
            go.write_text("go")
        assert [request.result().status_code for request in (*running_requests, first, other)] == [200] * 4


def test_callers_without_a_key_leave_slots_for_keys() -> None:
    async def simulate() -> None:
        slots = SlotQueue(2, 64, key_slot_count=1)
        for number in range(3):
            await slots.acquire(Ticket(f"ip:10.0.0.{number}"), None)
        waiting = asyncio.ensure_future(slots.acquire(Ticket("ip:10.0.0.9"), None))
        await run_callbacks()
        assert not waiting.done()
        first = Ticket("key:a")
        await slots.acquire(first, None)
        second = asyncio.ensure_future(slots.acquire(Ticket("key:b"), None))
        await run_callbacks()
        assert not second.done()
        # the slot of a key goes to the next key, although a caller without one has waited longer
        slots.release(first)
        await second
        assert not waiting.done()
        waiting.cancel()

    asyncio.run(simulate())


def test_a_queue_full_of_callers_without_a_key_accepts_one_with_a_key() -> None:
    async def simulate() -> None:
        slots = SlotQueue(1, 2)
        await slots.acquire(Ticket("ip:1"), None)
        await slots.acquire(Ticket("ip:2"), None)
        queued = [asyncio.ensure_future(slots.acquire(Ticket(f"ip:{number}"), None)) for number in (3, 4)]
        await run_callbacks()
        with pytest.raises(ServerBusy):
            slots.check("ip:5")
        slots.check("key:a")
        with_key = asyncio.ensure_future(slots.acquire(Ticket("key:a"), None))
        await run_callbacks()
        with pytest.raises(ServerBusy):
            await queued[1]
        assert not queued[0].done()
        assert not with_key.done()
        slots.stop()
        await asyncio.gather(queued[0], with_key, return_exceptions=True)

    asyncio.run(simulate())


def test_three_addresses_without_a_key_do_not_delay_a_key(serve: Callable[..., Running], tmp_path: Path) -> None:
    running = serve(None, workers=2, trusted_proxies=("127.0.0.1",))
    key, _ = running.keys.create("pro")
    gate = tmp_path / "gate"

    def convert(address: str) -> int:
        headers = {"X-Forwarded-For": address}
        status: int = running.convert(f"toy wait {gate}".encode(), headers=headers).status_code
        return status

    with ThreadPoolExecutor(3) as callers:
        answers = [callers.submit(convert, f"10.0.0.{number}") for number in range(3)]
        try:
            wait_until(lambda: "meshhub_workers_busy 3.0" in running.get("/metrics").text)
            answer = running.convert(b"toy", headers={"X-Api-Key": key, "X-Forwarded-For": "10.0.0.9"})
            assert answer.status_code == 200
            assert not any(pending.done() for pending in answers)
        finally:
            gate.touch()
        assert [pending.result() for pending in answers] == [200] * 3
