"""Slots and queue: callers share the workers and the queue, however many requests one of them sends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from http_serving import Running, check_error, unzip_response, zip_files
from meshhub.engine.isolated import Isolated
from meshhub.errors import ServerBusy, ShuttingDown
from meshhub.http.admission.slots import SlotQueue, Ticket
from meshhub.service.sharing import LONG_S, SlotLimits
from waiting import wait_until

MAX_QUEUE_FACTOR = 8
"""Requests that may wait per place of the queue, where conversions are short."""


class ManualLoop(asyncio.SelectorEventLoop):
    """Event loop whose time passes only when a test says so."""

    now = 0.0

    def time(self) -> float:
        return self.now


async def let_time_pass(seconds: float) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, ManualLoop)
    loop.now += seconds
    await run_callbacks()


def run_with_manual_time(simulation: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=ManualLoop) as runner:
        runner.run(simulation)


class Simulation:
    """Requests that use a slot queue, named by their caller and a number."""

    def __init__(self, at_once: int, queue: int, overlap: int = 0) -> None:
        self.slots = SlotQueue(SlotLimits(shared=at_once, overlap=overlap), queue)
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
            slot = await self.slots.acquire(ticket, None)
        except (ServerBusy, ShuttingDown):
            self.refused.append(name)
            return
        self.begun.append(name)
        try:
            await self._leave[name].wait()
        finally:
            self.slots.release(slot)

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


def test_a_caller_without_a_slot_starts_beside_long_conversions() -> None:
    async def simulate() -> None:
        simulation = Simulation(2, 10, overlap=2)
        await simulation.add_requests("a1", "a2", "a3", "b1", "c1", "d1", "e1", "f1")
        assert simulation.begun == ["a1", "a2", "b1"]
        await let_time_pass(LONG_S / 2)
        assert simulation.slots.waiting == 5
        await let_time_pass(LONG_S / 2)
        assert simulation.begun[3:] == ["c1", "d1"]
        # these two are long now, but so many conversions take all memory
        await let_time_pass(LONG_S)
        assert simulation.slots.waiting == 3
        await simulation.leave("c1")
        assert simulation.begun[5:] == ["e1"]
        # the places of ended conversions are for callers without any
        await simulation.leave("e1", "f1", "a1", "b1")
        assert simulation.begun[6:] == ["f1"]
        await simulation.leave("d1")
        assert simulation.begun[7:] == ["a3"]
        await simulation.close()

    run_with_manual_time(simulate())


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
        slots = SlotQueue(SlotLimits(shared=1), 0)
        batch, other = Ticket("a"), Ticket("b")
        first = await slots.acquire(batch, None)
        other_slot = await slots.acquire(other, None)
        second = asyncio.ensure_future(slots.acquire(batch, None))
        await run_callbacks()
        assert not second.done()
        slots.release(other_slot)
        slots.release(first)
        slots.release(await second)

    asyncio.run(simulate())


def test_all_files_of_a_rejected_batch_are_rejected() -> None:
    async def simulate() -> None:
        slots = SlotQueue(SlotLimits(shared=1), 1)
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


@example(
    at_once=1,
    queue=1,
    overlap=0,
    moves=[*[("come", 0)] * 3, ("come", 1), *[("come", 0)] * 6, ("time", 0), ("leave", 13), ("come", 0)],
)
@settings(max_examples=100)
@given(
    at_once=st.integers(1, 3),
    queue=st.integers(0, 4),
    overlap=st.integers(0, 2),
    moves=st.lists(st.tuples(st.sampled_from(["come", "leave", "give_up", "time"]), st.integers(0, 30)), max_size=40),
)
def test_no_slot_is_lost_or_given_twice(at_once: int, queue: int, overlap: int, moves: list[tuple[str, int]]) -> None:
    async def simulate() -> None:
        simulation = Simulation(at_once, queue, overlap)
        names: list[str] = []
        has_durations = False
        for move, number in moves:
            if move == "come":
                names.append(f"{'abc'[number % 3]}{len(names)}")
                await simulation.add_requests(names[-1])
            elif move == "time":
                has_durations = True
                await let_time_pass(LONG_S / 3)
            elif names and move == "leave":
                await simulation.leave(names[number % len(names)])
            elif names:
                await simulation.give_up(names[number % len(names)])
            assert simulation.slots.running <= at_once + 1 + overlap
            # short conversions may wait beyond the size of the queue
            assert simulation.slots.waiting <= (MAX_QUEUE_FACTOR * queue if has_durations else queue)
            assert not simulation.slots.waiting or simulation.slots.running >= at_once
        if names:
            await simulation.close()
        assert simulation.slots.running == simulation.slots.waiting == 0

    run_with_manual_time(simulate())


@pytest.mark.usefixtures("no_short_conversions")
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
            wait_until(lambda: resources.slots.running == 1)
            flood = [threads.submit(send_flood, number) for number in range(1, 7)]
            wait_until(lambda: sum(request.done() for request in flood) == 2)
            assert resources.slots.waiting == 4
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


@pytest.mark.usefixtures("no_short_conversions")
def test_a_displaced_archive_is_rejected_as_a_whole(
    serve: Callable[..., Running], engine: Isolated, tmp_path: Path
) -> None:
    running = serve(engine, workers=1, queue=2, trusted_proxies=("127.0.0.1",))
    resources: Any = running.server.config.app.state.service.resources  # type: ignore[union-attr]
    go = tmp_path / "go"

    def convert_as(address: str) -> Any:
        return running.convert(f"toy wait {go}".encode(), headers={"X-Forwarded-For": address})

    with ThreadPoolExecutor(7) as threads:
        try:
            # as many as ever run beside each other, so that no later request starts beside long ones
            running_requests = [threads.submit(convert_as, f"7.7.7.{number}") for number in range(4)]
            wait_until(lambda: resources.slots.running == 4)
            first = threads.submit(convert_as, "6.6.6.6")
            wait_until(lambda: resources.slots.waiting == 1)
            archive = zip_files({"a.toy": b"toy", "b.unknown": b"no model"})
            batch = threads.submit(running.batch, archive, headers={"X-Forwarded-For": "6.6.6.6"})
            wait_until(lambda: resources.slots.waiting == 2)
            other = threads.submit(convert_as, "8.8.8.8")
            check_error(batch.result(60), 503, "server_busy")
        finally:
            go.write_text("go")
        assert [request.result().status_code for request in (*running_requests, first, other)] == [200] * 6


@pytest.mark.parametrize(("flood", "other"), [("ip:", "key:"), ("key:", "ip:")])
def test_callers_of_one_class_leave_a_slot_for_those_of_the_other(flood: str, other: str) -> None:
    async def simulate() -> None:
        slots = SlotQueue(SlotLimits(shared=2, reserved=1), 64)
        for number in range(3):
            await slots.acquire(Ticket(f"{flood}{number}"), None)
        waiting = asyncio.ensure_future(slots.acquire(Ticket(f"{flood}9"), None))
        await run_callbacks()
        assert not waiting.done()
        first = await slots.acquire(Ticket(f"{other}a"), None)
        second = asyncio.ensure_future(slots.acquire(Ticket(f"{other}b"), None))
        await run_callbacks()
        assert not second.done()
        # the reserved slot goes to the same class again, although a caller of the other has waited longer
        slots.release(first)
        await second
        assert not waiting.done()
        waiting.cancel()

    asyncio.run(simulate())


def test_a_queue_full_of_callers_without_a_key_accepts_one_with_a_key() -> None:
    async def simulate() -> None:
        slots = SlotQueue(SlotLimits(shared=1), 2)
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


def test_a_small_caller_starts_beside_the_slow_conversions_of_three_addresses(
    serve: Callable[..., Running], tmp_path: Path
) -> None:
    running = serve(None, workers=2, trusted_proxies=("127.0.0.1",))
    gate = tmp_path / "gate"

    def convert(address: int) -> int:
        headers = {"X-Forwarded-For": f"10.0.0.{address}"}
        status: int = running.convert(f"toy wait {gate}".encode(), headers=headers).status_code
        return status

    with ThreadPoolExecutor(6) as callers:
        slow = [callers.submit(convert, number % 3) for number in range(6)]
        try:
            wait_until(lambda: len(list(tmp_path.glob("gate.*"))) > 0)
            for number in (7, 8, 9):
                other = {"X-Forwarded-For": f"10.0.0.{number}"}
                assert running.convert(headers=other).status_code == 200
                job = running.post(
                    "/jobs", {"file": ("a.toy", b"toy")}, {"kind": "convert", "target": "toy"}, headers=other
                )
                wait_until(lambda job=job: running.get(f"/jobs/{job.json()['id']}").json()["state"] == "done")
            assert not any(request.done() for request in slow)
        finally:
            gate.touch()
        assert [request.result() for request in slow] == [200] * 6


def test_conversions_share_the_memory() -> None:
    async def simulate() -> None:
        slots = SlotQueue(SlotLimits(shared=8), 64, memory_bytes=10)
        first = await slots.acquire(Ticket("a"), None, 6)
        large = asyncio.create_task(slots.acquire(Ticket("b"), None, 5))
        await run_callbacks()
        assert not large.done()
        # a smaller one overtakes it
        second = await slots.acquire(Ticket("c"), None, 4)
        await let_time_pass(20)
        slots.release(second)
        # not any longer
        small = asyncio.create_task(slots.acquire(Ticket("d"), None, 1))
        await run_callbacks()
        assert not small.done()
        slots.release(first)
        slots.release(await large)
        slots.release(await small)
        # one that needs more than there is runs alone
        slots.release(await slots.acquire(Ticket("e"), None, 100))

    run_with_manual_time(simulate())


def test_a_queue_of_short_conversions_may_be_longer_and_says_when_to_come_back() -> None:
    async def simulate() -> None:
        slots = SlotQueue(SlotLimits(shared=2), 2)

        async def hold(seconds: float) -> None:
            slot = await slots.acquire(Ticket("x"), None)
            await let_time_pass(seconds)
            slots.release(slot)

        await hold(0.5)
        held = [await slots.acquire(Ticket(caller), None) for caller in ("a", "b", "c")]
        # 16 conversions of half a second take four seconds on two slots
        queued = [asyncio.ensure_future(slots.acquire(Ticket(f"ip:{number}"), None)) for number in range(16)]
        await run_callbacks()
        assert not any(entry.done() for entry in queued)
        with pytest.raises(ServerBusy) as caught:
            slots.check("ip:17")
        assert caught.value.retry_after_s == 4
        slots.stop()
        await asyncio.wait(queued)
        assert [isinstance(entry.exception(), ShuttingDown) for entry in queued] == [True] * 16
        del held

    run_with_manual_time(simulate())


def test_the_queue_of_a_new_service_expects_short_conversions_until_they_turn_out_long() -> None:
    async def simulate() -> None:
        slots = SlotQueue(SlotLimits(shared=2), 2, least_s=0.1)
        for caller in ("a", "b", "c"):
            await slots.acquire(Ticket(caller), None)
        queued = [asyncio.ensure_future(slots.acquire(Ticket(f"ip:{number}"), None)) for number in range(10)]
        await run_callbacks()
        await let_time_pass(3)
        # workers still start
        slots.check("ip:10")
        await let_time_pass(3)
        with pytest.raises(ServerBusy) as caught:
            slots.check("ip:10")
        assert caught.value.retry_after_s == 30
        slots.stop()
        await asyncio.wait(queued)

    run_with_manual_time(simulate())


def test_the_pace_of_a_busy_service_says_how_long_a_queue_takes() -> None:
    """Two slots and an additional one: each conversion takes 1.5 s, and one ends every half second."""

    async def simulate() -> None:
        slots = SlotQueue(SlotLimits(shared=2), 1)
        queued = [asyncio.ensure_future(slots.acquire(Ticket(f"ip:{number}"), None)) for number in range(3)]
        await run_callbacks()
        for number in range(3, 15):
            queued.append(asyncio.ensure_future(slots.acquire(Ticket(f"ip:{number}"), None)))
            await let_time_pass(0.5)
            slots.release(await queued[number - 3])
        # 8 more take four seconds; two slots alone would take six
        queued += [asyncio.ensure_future(slots.acquire(Ticket(f"ip:{number}"), None)) for number in range(15, 23)]
        await run_callbacks()
        with pytest.raises(ServerBusy) as caught:
            slots.check("ip:23")
        assert caught.value.retry_after_s == 4
        slots.stop()
        await asyncio.gather(*queued, return_exceptions=True)

    run_with_manual_time(simulate())


def test_a_queue_of_long_conversions_has_its_size() -> None:
    async def simulate() -> None:
        slots = SlotQueue(SlotLimits(shared=1), 2)
        slot = await slots.acquire(Ticket("x"), None)
        await let_time_pass(20)
        slots.release(slot)
        for caller in ("a", "b"):
            await slots.acquire(Ticket(caller), None)
        queued = [asyncio.ensure_future(slots.acquire(Ticket(f"ip:{number}"), None)) for number in range(2)]
        await run_callbacks()
        with pytest.raises(ServerBusy) as caught:
            slots.check("ip:3")
        assert caught.value.retry_after_s == 40
        slots.stop()
        await asyncio.wait(queued)

    run_with_manual_time(simulate())
