"""Placement of jobs on the workers of a cluster: turns, slots, memory, workers that end."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator

import pytest

from job_stores import Clock, new_job
from meshhub import Registry
from meshhub.service.jobs.job import Job, JobFile, Outcome, WorkerNode
from meshhub.service.jobs.postgres import PostgresJobStore
from meshhub.service.jobs.store import LEASE_S
from meshhub.service.jobs.weights import DEFAULT_MEMORY_BYTES, estimate_memory
from meshhub.service.sharing import LONG_S
from postgres_schemas import URL, temporary_schema

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(not URL, reason="MESHHUB_TEST_POSTGRES_URL names no PostgreSQL"),
]

GIB = 1 << 30
DECLARATIONS = Registry(entry_points=False).declarations
DONE = Outcome(error_code="unreadable_file", error="no model")


@pytest.fixture
def store(clock: Clock) -> Iterator[PostgresJobStore]:
    with temporary_schema() as url:
        store = PostgresJobStore(url, clock=clock)
        yield store
        store.close()


def submit(store: PostgresJobStore, caller: str = "key:mh_a", **values: object) -> Job:
    return store.submit(new_job(caller, **values), max_queued=100_000)[0]


def place(store: PostgresJobStore) -> dict[str, str]:
    return {placement.job_id: placement.worker for placement in store.place_jobs()}


def run(store: PostgresJobStore, job_id: str, worker: str) -> Job:
    job = store.claim_placed(worker, job_id)
    assert job is not None
    assert store.finish(job.id, job.token or "", DONE)
    return job


def test_jobs_wait_for_a_worker_with_a_free_slot(store: PostgresJobStore) -> None:
    jobs = [submit(store) for _ in range(5)]
    assert place(store) == {}
    store.announce(WorkerNode("a", 1, 8 * GIB))
    store.announce(WorkerNode("b", 2, 8 * GIB))
    placed = place(store)
    assert sorted(placed) == sorted(job.id for job in jobs[:3])
    assert Counter(placed.values()) == {"a": 1, "b": 2}
    assert place(store) == {}
    run(store, *next((job, worker) for job, worker in placed.items() if worker == "a"))
    assert place(store) == {jobs[3].id: "a"}


def test_only_the_worker_of_the_placement_starts_a_job_and_only_once(store: PostgresJobStore) -> None:
    store.announce(WorkerNode("a", 2, 8 * GIB))
    job = submit(store)
    assert store.claim_placed("a", job.id) is None
    assert place(store) == {job.id: "a"}
    assert store.claim_placed("b", job.id) is None
    # placed jobs are not claimed in turn
    assert store.claim("b") is None
    running = store.claim_placed("a", job.id)
    assert running is not None
    assert (running.state, running.worker, running.attempt) == ("running", "a", 1)
    assert store.claim_placed("a", job.id) is None


def test_a_canceled_job_does_not_start(store: PostgresJobStore) -> None:
    store.announce(WorkerNode("a", 1, 8 * GIB))
    job = submit(store)
    place(store)
    store.cancel(job.id)
    assert store.claim_placed("a", job.id) is None
    other = submit(store)
    assert place(store) == {other.id: "a"}


def test_a_worker_that_ends_loses_its_placements(store: PostgresJobStore, clock: Clock) -> None:
    store.announce(WorkerNode("a", 2, 8 * GIB))
    jobs = [submit(store), submit(store)]
    assert len(place(store)) == 2
    running = store.claim_placed("a", jobs[0].id)
    assert running is not None
    clock.now += LEASE_S + 0.1
    store.announce(WorkerNode("b", 2, 8 * GIB))
    assert store.sweep().requeued == (jobs[0].id,)
    assert place(store) == {job.id: "b" for job in jobs}
    assert store.claim_placed("a", jobs[1].id) is None
    assert [node.worker for node in store.statistics().workers] == ["b"]


def test_a_worker_that_drains_returns_its_placements_at_once(store: PostgresJobStore) -> None:
    store.announce(WorkerNode("a", 1, 8 * GIB))
    job = submit(store)
    place(store)
    store.retire("a")
    assert store.claim_placed("a", job.id) is None
    store.announce(WorkerNode("b", 1, 8 * GIB))
    assert place(store) == {job.id: "b"}


def test_a_job_does_not_start_where_its_memory_is_not_free(store: PostgresJobStore) -> None:
    store.announce(WorkerNode("small", 4, 1 * GIB))
    step = submit(store, memory_bytes=estimate_memory([JobFile("a.step", 200 << 20)], DECLARATIONS))
    small = submit(store, memory_bytes=estimate_memory([JobFile("a.stl", 1000)], DECLARATIONS))
    assert place(store) == {small.id: "small"}
    store.announce(WorkerNode("large", 4, 8 * GIB))
    assert place(store) == {step.id: "large"}
    second = submit(store, memory_bytes=5 * GIB)
    assert place(store) == {}
    run(store, step.id, "large")
    assert place(store) == {second.id: "large"}


def test_a_job_of_an_older_program_has_the_weight_of_a_small_one(store: PostgresJobStore) -> None:
    store.announce(WorkerNode("a", 9, 2 * DEFAULT_MEMORY_BYTES))
    for number in range(3):
        submit(store, f"key:mh_{number}", memory_bytes=None)
    assert len(place(store)) == 2


def test_small_jobs_do_not_keep_a_large_one_from_its_place(store: PostgresJobStore, clock: Clock) -> None:
    running: list[Job] = []
    large = ""
    for step in range(12):
        for _ in range(3):
            submit(store, "key:mh_b", memory_bytes=1 * GIB)
        if step == 2:
            large = submit(store, "key:mh_c", memory_bytes=4 * GIB).id
        store.announce(WorkerNode("a", 4, 4 * GIB))
        placed = place(store)
        if large in placed:
            return
        started = [store.claim_placed("a", job_id) for job_id in placed]
        running += [job for job in started if job is not None]
        # another small job starts before the last one ends
        done = running.pop(0)
        assert store.finish(done.id, done.token or "", DONE)
        clock.now += 4
        store.announce(WorkerNode("a", 4, 4 * GIB))
        store.beat("a", {})
    pytest.fail("the large job did not start")


def test_callers_take_turns_and_pro_goes_first(store: PostgresJobStore) -> None:
    for _ in range(60):
        submit(store, "ip:1.2.3.4", weight=1)
        submit(store, "key:mh_a", weight=4)
    started: list[str] = []
    store.announce(WorkerNode("a", 1, 8 * GIB))
    for _ in range(50):
        ((job_id, worker),) = place(store).items()
        started.append(run(store, job_id, worker).caller)
    assert 38 <= Counter(started)["key:mh_a"] <= 42
    assert "ip:1.2.3.4" in started[:5]


def test_small_callers_start_beside_five_hundred_jobs_of_another(store: PostgresJobStore) -> None:
    for _ in range(500):
        submit(store, "key:mh_big")
    small = {submit(store, f"key:mh_{number}").id for number in range(9)}
    store.announce(WorkerNode("a", 20, 64 * GIB))
    assert small < set(place(store))


def start_long_jobs(store: PostgresJobStore, clock: Clock) -> Counter[str]:
    """Start all jobs that can start, until no more can, and let each run for long; return their callers."""
    started = Counter[str]()
    while placed := place(store):
        for job_id, worker in placed.items():
            job = store.claim_placed(worker, job_id)
            assert job is not None
            started[job.caller] += 1
        clock.now += LONG_S
        for worker in set(placed.values()):
            store.beat(worker, {})
    return started


def test_small_callers_start_beside_the_long_jobs_of_one_key(store: PostgresJobStore, clock: Clock) -> None:
    for worker in "ab":
        store.announce(WorkerNode(worker, 1, 8 * GIB))
    for _ in range(200):
        submit(store, "key:mh_big", weight=4)
    assert start_long_jobs(store, clock) == {"key:mh_big": 2}
    small = {submit(store, f"key:mh_{number}").id for number in range(5)}
    small |= {submit(store, f"ip:1.2.3.{number}", weight=1).id for number in range(4)}
    rounds = []
    while small and len(rounds) < 9:
        placed = place(store)
        assert placed.keys() <= small
        for job_id, worker in placed.items():
            run(store, job_id, worker)
        small -= placed.keys()
        rounds.append(len(placed))
    # two beside each long job
    assert rounds == [4, 4, 1]


@pytest.mark.parametrize(("flood", "other"), [("ip:1.2.3.", "key:mh_"), ("key:mh_", "ip:1.2.3.")])
def test_long_jobs_of_one_class_of_callers_leave_a_slot_for_the_other(
    store: PostgresJobStore, clock: Clock, flood: str, other: str
) -> None:
    store.announce(WorkerNode("a", 2, 64 * GIB))
    for number in range(20):
        for _ in range(2):
            submit(store, f"{flood}{number}")
    # two, one for a new caller, two beside long ones
    assert start_long_jobs(store, clock).total() == 5
    first, second = submit(store, f"{other}1"), submit(store, f"{other}2")
    assert place(store) == {first.id: "a"}
    run(store, first.id, "a")
    assert place(store) == {second.id: "a"}


def test_one_caller_with_large_jobs_leaves_memory_for_a_small_one(store: PostgresJobStore, clock: Clock) -> None:
    store.announce(WorkerNode("a", 2, 8 * GIB))
    for _ in range(3):
        submit(store, "key:mh_big", memory_bytes=4 * GIB)
    assert start_long_jobs(store, clock) == {"key:mh_big": 1}
    small = submit(store, "key:mh_small")
    assert place(store) == {small.id: "a"}


def test_a_large_job_that_waits_keeps_no_worker_from_a_new_caller(store: PostgresJobStore, clock: Clock) -> None:
    store.announce(WorkerNode("a", 2, 8 * GIB))
    for _ in range(2):
        submit(store, "key:mh_big", memory_bytes=8 * GIB - DEFAULT_MEMORY_BYTES)
    assert start_long_jobs(store, clock) == {"key:mh_big": 1}
    for _ in range(5):
        clock.now += 4
        store.announce(WorkerNode("a", 2, 8 * GIB))
        store.beat("a", {})
    small = submit(store, "key:mh_small")
    assert place(store) == {small.id: "a"}


def test_placements_at_the_same_time_share_the_slots(store: PostgresJobStore) -> None:
    store.announce(WorkerNode("a", 7, 64 * GIB))
    for _ in range(50):
        submit(store)
    placed: list[str] = []

    def work() -> None:
        placed.extend(place(store))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(placed) == len(set(placed)) == 7


def test_a_job_says_that_no_worker_has_its_memory(store: PostgresJobStore) -> None:
    job = submit(store, memory_bytes=6 * GIB)
    assert store.missing_memory(job) is None
    store.announce(WorkerNode("a", 2, 4 * GIB))
    # a worker that starts no more jobs
    store.announce(WorkerNode("b", None, 8 * GIB))
    assert place(store) == {}
    assert store.missing_memory(job) == 6 * GIB
    assert store.statistics().cluster_fault == (
        "a queued job needs 6.0 GiB of memory, and the largest worker has 4.0 GiB",
        "start one with a larger worker_memory_bytes",
    )
    store.announce(WorkerNode("c", 1, 6 * GIB))
    assert store.missing_memory(job) is None
    assert store.statistics().cluster_fault is None
    assert place(store) == {job.id: "c"}


def test_the_statistics_show_the_queue(store: PostgresJobStore, clock: Clock) -> None:
    store.announce(WorkerNode("a", 2, 8 * GIB))
    submit(store)
    clock.now += 3
    submit(store)
    store.announce(WorkerNode("a", 2, 8 * GIB))
    statistics = store.statistics()
    assert (statistics.queued, statistics.running, statistics.oldest_s) == (2, 0, 3.0)
    assert statistics.workers == (WorkerNode("a", 2, 8 * GIB),)
