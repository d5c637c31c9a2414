"""Every store of jobs: states, leases, fairness, ledger, webhook messages, retention."""

from __future__ import annotations

import json
import threading
from collections import Counter
from typing import Any

import pytest

from job_stores import Clock, OpenStore, new_job
from meshhub.errors import ServerBusy, TooManyJobs
from meshhub.model.progress import Progress
from meshhub.service.jobs.job import Job, JobProgress, JobRequest, JobResult, NewJob, Outcome
from meshhub.service.jobs.store import (
    DELIVERY_LEASE_S,
    EXPIRED_ROW_S,
    LEASE_S,
    MAX_ATTEMPTS_COUNT,
    MAX_QUEUED_S,
    JobStore,
)

pytestmark = pytest.mark.once

DONE = Outcome(
    result=JobResult(
        name="a.3mf", media_type="model/3mf", bytes=50, sha256="ab" * 32, headers={"X-Meshhub-Report": "{}"}
    ),
    cpu_seconds=1.5,
)
FAILED = Outcome(error_code="unreadable_file", error="line 3 is not a facet")


def submit(store: JobStore, caller: str = "key:mh_a", **values: Any) -> Job:
    job, is_new = store.submit(new_job(caller, **values), max_queued=100_000)
    assert is_new
    return job


def claim(store: JobStore, worker: str = "w") -> Job:
    job = store.claim(worker)
    assert job is not None
    assert job.token
    return job


def run(store: JobStore, outcome: Outcome = DONE) -> Job:
    """Run the next job to its end; return its row."""
    job = claim(store)
    assert store.finish(job.id, job.token or "", outcome)
    return get(store, job)


def get(store: JobStore, job: NewJob) -> Job:
    row = store.get(job.id)
    assert row is not None
    return row


def test_a_job_runs_from_the_queue_to_its_result(store: JobStore, clock: Clock) -> None:
    job = submit(store)
    assert (job.state, job.attempt, job.token, job.started) == ("queued", 0, None, None)
    assert job.request == JobRequest(files=job.request.files, texts={"target": "3mf"})
    clock.now += 5
    running = claim(store)
    assert (running.id, running.state, running.attempt, running.started) == (job.id, "running", 1, clock.now)
    clock.now += 5
    assert store.finish(job.id, running.token or "", DONE)
    done = get(store, job)
    assert (done.state, done.finished, done.expires) == ("done", clock.now, clock.now + 3600)
    assert done.result == DONE.result
    assert done.token == running.token
    assert store.claim("w") is None


def test_an_unknown_job_does_not_exist(store: JobStore) -> None:
    assert store.get("x") is None
    assert store.cancel("x") is None
    assert not store.finish("x", "y", DONE)
    assert not store.release("x", "y")


def test_a_failed_job_has_its_error_and_no_result(store: JobStore) -> None:
    submit(store)
    failed = run(store, FAILED)
    assert (failed.state, failed.outcome, failed.result) == ("failed", FAILED, None)


def test_rows_survive_a_new_connection(open_store: OpenStore) -> None:
    job = submit(open_store())
    assert get(open_store(), job) == job


def test_a_lost_lease_returns_the_job_to_the_queue_and_the_stale_finish_is_refused(
    store: JobStore, clock: Clock
) -> None:
    job = submit(store, webhook_url="https://example.com/hook")
    stale = claim(store, "frozen")
    clock.now += LEASE_S + 0.1
    assert store.sweep().requeued == (job.id,)
    second = claim(store, "other")
    assert second.attempt == 2
    assert second.token != stale.token
    # the frozen worker wakes up
    assert store.beat("frozen", {}) == set()
    assert not store.finish(job.id, stale.token or "", FAILED)
    assert store.finish(job.id, second.token or "", DONE)
    assert not store.finish(job.id, second.token or "", FAILED)
    assert get(store, job).state == "done"
    assert [(usage.job_id, usage.attempts, usage.state) for usage in store.list_usage()] == [(job.id, 2, "done")]
    assert len(store.claim_deliveries(10)) == 1


def test_a_beat_keeps_the_lease_and_stores_the_progress(store: JobStore, clock: Clock) -> None:
    job = submit(store)
    token = claim(store).token or ""
    progress = JobProgress(Progress(step="stl", kind="read", label="STL", index=0, count=2, fraction=0.5))
    for _ in range(5):
        clock.now += LEASE_S - 1
        assert store.beat("w", {token: progress}) == {token}
        assert store.sweep().requeued == ()
    assert get(store, job).progress == progress


def test_a_beat_does_not_change_the_jobs_of_others(store: JobStore) -> None:
    job = submit(store)
    token = claim(store, "w").token or ""
    progress = JobProgress(Progress(step="stl", kind="read", label="STL", index=0, count=2))
    assert store.beat("x", {token: progress}) == set()
    assert get(store, job).progress is None


def test_a_job_that_ends_the_service_three_times_fails(store: JobStore, clock: Clock) -> None:
    job = submit(store)
    for attempt in range(1, MAX_ATTEMPTS_COUNT + 1):
        assert claim(store).attempt == attempt
        clock.now += LEASE_S + 1
        swept = store.sweep()
        assert (swept.requeued == (job.id,)) == (attempt < MAX_ATTEMPTS_COUNT)
    lost = get(store, job)
    assert lost.state == "failed"
    assert lost.outcome is not None
    assert lost.outcome.error_code == "worker_lost"
    assert store.depth().running == 0


def test_a_released_job_runs_again_first_and_does_not_count_the_attempt(store: JobStore) -> None:
    first = submit(store)
    submit(store)
    running = claim(store)
    assert store.release(first.id, running.token or "")
    assert not store.release(first.id, running.token or "")
    again = claim(store)
    assert (again.id, again.attempt) == (first.id, 1)


def test_callers_take_turns(store: JobStore) -> None:
    for _ in range(50):
        submit(store, "key:mh_big")
    for number in range(9):
        submit(store, f"key:mh_{number}")
    callers = [claim(store).caller for _ in range(20)]
    assert set(callers[:11]) == {"key:mh_big", *(f"key:mh_{number}" for number in range(9))}


def test_pro_goes_before_free_and_free_advances(store: JobStore) -> None:
    for _ in range(100):
        submit(store, "ip:1.2.3.4", weight=1)
        submit(store, "key:mh_a", weight=4)
    callers = [claim(store).caller for _ in range(100)]
    assert callers[0] == "key:mh_a"
    assert 78 <= Counter(callers)["key:mh_a"] <= 82
    assert "ip:1.2.3.4" in callers[:5]


def test_an_idle_caller_saves_up_no_turns(store: JobStore) -> None:
    submit(store, "key:mh_late")
    run(store)
    for _ in range(30):
        submit(store, "key:mh_busy")
    for _ in range(20):
        run(store)
    for _ in range(10):
        submit(store, "key:mh_late")
    callers = Counter(claim(store).caller for _ in range(10))
    assert callers["key:mh_busy"] >= 4
    assert callers["key:mh_late"] >= 4


def test_a_given_caller_is_claimed(store: JobStore) -> None:
    submit(store, "key:mh_a")
    submit(store, "key:mh_b")
    assert store.waiting_callers(10) == ["key:mh_a", "key:mh_b"]
    job = store.claim("w", "key:mh_b")
    assert job is not None
    assert job.caller == "key:mh_b"
    assert store.claim("w", "key:mh_b") is None
    assert store.waiting_callers(10) == ["key:mh_a"]


def test_the_position_counts_own_jobs_and_the_turns_of_others(store: JobStore) -> None:
    first, second = submit(store, "key:mh_a"), submit(store, "key:mh_a")
    assert (store.position(first), store.position(second)) == (1, 2)
    for _ in range(5):
        submit(store, "key:mh_b")
    assert (store.position(first), store.position(second)) == (2, 4)
    assert store.position(claim(store)) is None


def test_a_caller_has_a_limit_of_unfinished_jobs(store: JobStore) -> None:
    for _ in range(2):
        submit(store, "ip:1.2.3.4", max_unfinished=2)
    with pytest.raises(TooManyJobs, match="2 unfinished"):
        submit(store, "ip:1.2.3.4", max_unfinished=2)
    submit(store, "ip:5.6.7.8", max_unfinished=2)
    run(store)
    submit(store, "ip:1.2.3.4", max_unfinished=2)


def test_a_full_queue_accepts_no_job(store: JobStore) -> None:
    submit(store)
    with pytest.raises(ServerBusy):
        store.submit(new_job("key:mh_b"), max_queued=1)
    assert store.depth().queued == 1


def test_an_idempotency_key_submits_once_for_each_caller(store: JobStore) -> None:
    job = submit(store, idempotency_key="order-7", fingerprint="f")
    again, is_new = store.submit(new_job(idempotency_key="order-7", fingerprint="g"), max_queued=10)
    assert (again, is_new) == (job, False)
    assert store.find("key:mh_a", "order-7") == job
    other = submit(store, "key:mh_b", idempotency_key="order-7")
    assert other.id != job.id
    assert store.depth().queued == 2


def test_concurrent_submits_with_one_idempotency_key_make_one_job(store: JobStore) -> None:
    ids: list[str] = []
    start = threading.Barrier(8)

    def work() -> None:
        start.wait()
        ids.append(store.submit(new_job(idempotency_key="k"), max_queued=100)[0].id)

    run_threads(8, work)
    assert len(ids) == 8
    assert len(set(ids)) == 1
    assert store.depth().queued == 1


def test_cancel_while_queued_running_and_finished(store: JobStore) -> None:
    queued = submit(store)
    canceled = store.cancel(queued.id)
    assert canceled is not None
    assert canceled.state == "canceled"
    assert store.claim("w") is None
    running = submit(store)
    token = claim(store).token or ""
    canceled = store.cancel(running.id)
    assert canceled is not None
    assert canceled.state == "canceled"
    assert store.beat("w", {}) == set()
    # the worker was finishing
    assert not store.finish(running.id, token, DONE)
    assert not store.record_canceled(running.id, "another", 9.0)
    assert store.record_canceled(running.id, token, 2.5)
    done = submit(store)
    run(store)
    expired = store.cancel(done.id)
    assert expired is not None
    assert (expired.state, expired.result) == ("expired", None)
    assert sorted((row.state, row.cpu_seconds) for row in store.list_usage()) == [("canceled", 2.5), ("done", 1.5)]
    depth = store.depth()
    assert (depth.queued, depth.running, depth.bytes) == (0, 0, 0)


def test_the_ledger_has_the_cost_of_each_job(store: JobStore, clock: Clock) -> None:
    job = submit(store)
    run(store)
    clock.now += 10
    submit(store, "ip:1.2.3.4", kind="check")
    run(store, FAILED)
    first, second = store.list_usage()
    assert (first.job_id, first.key_id, first.plan, first.kind) == (job.id, "mh_a", "pro", "convert")
    assert (first.bytes_in, first.bytes_out, first.cpu_seconds) == (100, 50, 1.5)
    assert (second.key_id, second.kind, second.state, second.bytes_out) == ("", "check", "failed", 0)
    assert store.list_usage(since=clock.now) == [second]
    assert store.list_usage(until=clock.now) == [first]
    assert store.list_usage(key_id="mh_a") == [first]


def test_a_webhook_message_is_claimed_by_one_and_returns_until_it_is_settled(store: JobStore, clock: Clock) -> None:
    job = submit(store, webhook_url="https://example.com/hook", kind="check")
    assert store.claim_deliveries(10) == []
    run(store)
    (message,) = store.claim_deliveries(10)
    assert (message.job_id, message.key_id, message.url, message.attempt) == (job.id, "mh_a", job.webhook_url, 1)
    payload = json.loads(message.payload)
    assert payload["type"] == "job.done"
    assert (payload["data"]["id"], payload["data"]["kind"]) == (job.id, "check")
    assert payload["data"]["result"]["url"] == f"/jobs/{job.id}/result"
    assert store.claim_deliveries(10) == []
    clock.now += DELIVERY_LEASE_S
    (again,) = store.claim_deliveries(10)
    assert (again.id, again.payload, again.attempt) == (message.id, message.payload, 2)
    store.settle_delivery(again.id, retry_in_s=300, error="status 500")
    clock.now += 299
    assert store.claim_deliveries(10) == []
    clock.now += 1
    (third,) = store.claim_deliveries(10)
    assert (third.id, third.attempt) == (message.id, 3)
    store.settle_delivery(third.id, retry_in_s=None)
    clock.now += 1e6
    assert store.claim_deliveries(10) == []


@pytest.mark.parametrize("outcome", [DONE, FAILED])
def test_a_job_without_webhook_leaves_no_message(store: JobStore, outcome: Outcome) -> None:
    submit(store)
    run(store, outcome)
    assert store.claim_deliveries(10) == []


def test_results_expire_after_their_retention_and_rows_later(store: JobStore, clock: Clock) -> None:
    job = submit(store, idempotency_key="k")
    run(store)
    kept = submit(store, retention_s=None)
    run(store)
    clock.now += 3601
    assert store.sweep().expired == (job.id,)
    assert store.sweep().expired == ()
    expired = get(store, job)
    assert (expired.state, expired.result, expired.request) == ("expired", None, JobRequest())
    assert store.select_known([job.id, kept.id, "other"]) == {kept.id}
    submit(store, idempotency_key="k")
    clock.now += EXPIRED_ROW_S + 1
    store.sweep()
    assert store.get(job.id) is None
    assert get(store, kept).state == "done"
    # the ledger is kept
    assert {usage.job_id for usage in store.list_usage()} == {job.id, kept.id}


def test_a_queued_job_outlives_its_retention_but_not_a_week(store: JobStore, clock: Clock) -> None:
    job = submit(store)
    clock.now += MAX_QUEUED_S - 1
    assert store.sweep().expired == ()
    clock.now += 2
    assert store.sweep().expired == (job.id,)
    assert store.claim("w") is None
    assert store.depth().queued == 0


def test_jobs_are_listed_by_key_the_newest_first(store: JobStore) -> None:
    jobs = [submit(store) for _ in range(5)]
    submit(store, "key:mh_b")
    first = store.list_jobs("mh_a", limit=2)
    assert [job.id for job in first] == [jobs[4].id, jobs[3].id]
    rest = store.list_jobs("mh_a", limit=10, before=first[-1].number)
    assert [job.id for job in rest] == [jobs[2].id, jobs[1].id, jobs[0].id]


def test_jobs_on_four_workers_finish_once(open_store: OpenStore) -> None:
    store = open_store()
    ids = {submit(store, f"key:mh_{number % 7}").id for number in range(200)}
    finished: list[str] = []

    def work() -> None:
        own = open_store()
        while (job := own.claim("w")) is not None:
            if own.finish(job.id, job.token or "", DONE):
                finished.append(job.id)

    run_threads(4, work)
    assert len(finished) == 200
    assert set(finished) == ids
    assert {usage.job_id for usage in store.list_usage()} == ids
    depth = store.depth()
    assert (depth.queued, depth.running, depth.bytes) == (0, 0, 0)


def run_threads(count: int, work: Any) -> None:
    errors: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
