"""Placement of jobs on the workers of a cluster, inside a transaction.

Callers take turns, and share the slots of each worker, as on one machine; a caller's slots on all workers count. Among
the workers with enough free slots and memory, a job goes to the one with the most free slots. After a while, one worker
is kept for the oldest job that fits on none, because smaller jobs could otherwise take its slots and memory forever.
"""

# why this way: docs/decisions/0027-cluster.md
from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sql
from sqlalchemy.dialects import postgresql

from meshhub.service.jobs.job import Placement, WorkerNode
from meshhub.service.jobs.store import LEASE_S
from meshhub.service.jobs.tables import CALLERS, JOBS, WORKERS
from meshhub.service.jobs.weights import DEFAULT_MEMORY_BYTES
from meshhub.service.sharing import LONG_S, SlotLimits, SlotUse, has_key

_MAX_WAIT_S = 10.0
"""Seconds after which a job that needs much memory keeps a worker for itself."""

_MAX_PLACED_COUNT = 200
"""Maximum jobs that one placement considers; bounds the duration of its transaction."""

_FORGET_S = 60.0
"""Seconds from the end of its lease until the row of a worker is deleted."""

_MEMORY = sql.func.coalesce(JOBS.c.memory_bytes, DEFAULT_MEMORY_BYTES)


@dataclass
class _Room:
    """Slots in use and free memory of a worker.

    Attributes:
        worker: Name of the worker.
        limits: Limits of its slots.
        total_memory_bytes: Memory of the idle worker.
        held: Slots in use, by whether their callers have a key.
        long: Slots in use for longer than LONG_S.
        is_kept: Whether a large job waits until this worker is free.
    """

    worker: str
    limits: SlotLimits
    memory_bytes: int
    total_memory_bytes: int
    held: Counter[bool] = field(default_factory=Counter)
    long: int = 0
    is_kept: bool = False

    def has_slot(self, job: Any, own: int) -> bool:
        """Return whether a job may start, if its memory is free.

        Args:
            job: Row of the job.
            own: Slots of its caller on all workers.
        """
        if self.is_kept and own:
            return False
        total = self.held.total()
        if not self.long:
            # a slot will be free soon, and the weights of the callers decide who gets it
            return total < self.limits.shared
        use = SlotUse(total=total, own=own, own_class=self.held[has_key(job.caller)], long=self.long)
        return self.limits.can_start(use)

    def has_memory(self, job: Any, own: int) -> bool:
        """Return whether the memory of a job is free; a caller with slots must leave some for a small job of others."""
        reserve = DEFAULT_MEMORY_BYTES if own else 0
        memory_bytes = int(job.memory)
        return self.memory_bytes >= min(memory_bytes + reserve, max(memory_bytes, self.total_memory_bytes))

    def add(self, job: Any) -> None:
        """Count a job that is placed here."""
        self.held[has_key(job.caller)] += 1
        self.memory_bytes -= job.memory


def announce(connection: sql.Connection, node: WorkerNode, now: float) -> None:
    """Record that a worker is alive."""
    values = {"slots": node.slots, "memory_bytes": node.memory_bytes, "lease_until": now + LEASE_S}
    statement = postgresql.insert(WORKERS).values(worker=node.worker, **values)
    connection.execute(statement.on_conflict_do_update(index_elements=[WORKERS.c.worker], set_=values))


def retire(connection: sql.Connection, worker: str) -> None:
    """Forget a worker, and take back the jobs that it has not claimed."""
    _withdraw(connection, JOBS.c.worker == worker)
    connection.execute(WORKERS.delete().where(WORKERS.c.worker == worker))


def withdraw_placements(connection: sql.Connection, now: float) -> None:
    """Take back old placements, and delete workers that ended without signing off."""
    _withdraw(connection, JOBS.c.placed < now - LEASE_S)
    connection.execute(WORKERS.delete().where(WORKERS.c.lease_until < now - _FORGET_S))


def _withdraw(connection: sql.Connection, condition: sql.ColumnElement[bool]) -> None:
    connection.execute(
        JOBS.update()
        .where(JOBS.c.state == "queued", JOBS.c.placed.is_not(None), condition)
        .values(worker=None, placed=None)
    )


def place_jobs(connection: sql.Connection, now: float) -> list[Placement]:
    """Choose workers for the next jobs; the caller excludes other placements."""
    rooms, own = _measure_rooms(connection, now)
    free_count = sum(max(0, room.limits.total - room.held.total()) for room in rooms)
    if not free_count:
        return []
    chosen: dict[int, _Room] = {}
    placements = []
    turns = _Turns(connection, min(free_count, _MAX_PLACED_COUNT))
    _keep_room(rooms, turns.list_first(), now)
    while (job := turns.take()) is not None:
        open_rooms = [room for room in rooms if room.has_slot(job, own[job.caller])]
        room = max(
            (room for room in open_rooms if room.has_memory(job, own[job.caller])),
            key=lambda room: (not room.is_kept, room.limits.shared - room.held.total(), room.memory_bytes),
            default=None,
        )
        if room is not None:
            room.add(job)
            own[job.caller] += 1
            chosen[job.number] = room
            placements.append(Placement(job.id, room.worker))
            turns.charge(job)
        elif not open_rooms:
            turns.drop(job.caller)
    for worker in {room.worker for room in chosen.values()}:
        numbers = [number for number, room in chosen.items() if room.worker == worker]
        connection.execute(JOBS.update().where(JOBS.c.number.in_(numbers)).values(worker=worker, placed=now))
    turns.store()
    return placements


def _measure_rooms(connection: sql.Connection, now: float) -> tuple[list[_Room], Counter[str]]:
    """Return the live workers with their slots and memory, and the slots that each caller has."""
    rooms = {
        node.worker: _Room(
            node.worker, SlotLimits.of_workers(node.slots), node.memory_bytes, total_memory_bytes=node.memory_bytes
        )
        for node in connection.execute(
            sql.select(WORKERS).where(WORKERS.c.lease_until >= now, WORKERS.c.slots.is_not(None))
        )
    }
    own = Counter[str]()
    is_long = sql.and_(JOBS.c.state == "running", JOBS.c.started <= now - LONG_S)
    for job in connection.execute(
        sql.select(JOBS.c.worker, JOBS.c.caller, _MEMORY.label("memory"), is_long.label("is_long")).where(
            JOBS.c.state.in_(("queued", "running")), JOBS.c.worker.is_not(None)
        )
    ):
        room = rooms.get(job.worker)
        if room is None:
            # its lease is about to expire
            continue
        room.add(job)
        room.long += bool(job.is_long)
        own[job.caller] += 1
    return list(rooms.values()), own


def _keep_room(rooms: list[_Room], first: Iterable[Any], now: float) -> None:
    """Keep one worker free, if the oldest of the first jobs waits for a worker of its size.

    Only callers without a slot may start jobs there, if no other worker is free.
    """
    waiting = [
        job for job in first if now - job.created > _MAX_WAIT_S and not any(room.has_memory(job, 0) for room in rooms)
    ]
    for job in sorted(waiting, key=lambda job: job.number):
        large = [room for room in rooms if room.total_memory_bytes >= job.memory]
        if large:
            max(large, key=lambda room: room.memory_bytes).is_kept = True
            return


class _Turns:
    """Queued jobs in turns of their callers: the lowest pass first, then the largest weight."""

    def __init__(self, connection: sql.Connection, count: int) -> None:
        """Read at most as many jobs, of at most as many callers, as can be placed."""
        self._connection = connection
        self._charged: dict[str, float] = {}
        self._jobs: dict[str, deque[Any]] = {}
        self._order: list[tuple[float, int, str]] = []
        first = (
            sql.select(JOBS.c.number, JOBS.c.id, JOBS.c.created, _MEMORY.label("memory"))
            .where(JOBS.c.caller == CALLERS.c.caller, JOBS.c.state == "queued", JOBS.c.placed.is_(None))
            .order_by(JOBS.c.number)
            .limit(count)
            .lateral("first")
        )
        callers = sql.select(CALLERS).where(CALLERS.c.queued > 0).order_by(CALLERS.c.turn).limit(_MAX_PLACED_COUNT)
        for row in connection.execute(
            sql.select(CALLERS.c.caller, CALLERS.c.turn, CALLERS.c.weight, first)
            .select_from(CALLERS.join(first, sql.true()))
            .where(CALLERS.c.caller.in_(callers.with_only_columns(CALLERS.c.caller)))
            .order_by(first.c.number)
        ):
            if row.caller not in self._jobs:
                self._jobs[row.caller] = deque()
                heapq.heappush(self._order, (row.turn, -row.weight, row.caller))
            self._jobs[row.caller].append(row)

    def list_first(self) -> list[Any]:
        """Return the first job of each caller."""
        return [jobs[0] for jobs in self._jobs.values()]

    def take(self) -> Any:
        """Return the next job; None if there are no more."""
        while self._order:
            turn, weight, caller = self._order[0]
            current = self._charged.get(caller, turn)
            if current > turn:
                heapq.heapreplace(self._order, (current, weight, caller))
            elif self._jobs[caller]:
                return self._jobs[caller].popleft()
            else:
                heapq.heappop(self._order)
        return None

    def drop(self, caller: str) -> None:
        """Leave out the other jobs of a caller."""
        self._jobs[caller].clear()

    def charge(self, job: Any) -> None:
        """Move the caller of a job back in the order."""
        self._charged[job.caller] = self._charged.get(job.caller, job.turn) + 1.0 / job.weight

    def store(self) -> None:
        """Store the order."""
        for caller, turn in sorted(self._charged.items()):
            self._connection.execute(CALLERS.update().where(CALLERS.c.caller == caller).values(turn=turn))
