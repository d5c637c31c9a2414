"""Child processes for conversions: they have another hash seed and another date, and a crash does no harm there."""

from __future__ import annotations

import atexit
import hashlib
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, cast

from meshhub.testing.child_tasks import (
    ChainRun,
    check_outcome,
    check_score,
    fingerprint_result,
    serialize,
    try_chain,
)
from meshhub.testing.guards import DEADLINE_S, deadline_s

_HASH_SEEDS = ("0", "1")
_CHILD_CODE = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from meshhub.testing.child_process import main; main()"
)

MAX_CRASHES_COUNT = 5
"""Maximum crashes per list of hostile files; a process takes longer to start than all files take to read. """

MAX_TASK_CPU_S = 10.0
"""Processor seconds for one task; the system ends native code that hangs on a damaged file as if it had crashed."""

MAX_ALLOWED_HANG_CPU_S = 3.0
"""Processor seconds for a hostile file if the reader may crash: a hang is accepted, and a longer one shows no more."""

MAX_SNIFF_CPU_S = 1.0
"""Processor seconds for one sniffer on one head; a service allows no more for all sniffers together."""

_WORKING_FOLDER = Path.cwd()
"""Folder in which children start: `forbid_side_effects` moves this process into short-lived folders."""

_CLOCK_SHIFT_S = 100 * 24 * 3600.0
"""Seconds by which the clock of a child is ahead: 100 days, so that dates change in day, month and often year."""

_TASKS: dict[str, Callable[[Any], str]] = {
    "fingerprint": fingerprint_result,
    "outcome": check_outcome,
    "try": try_chain,
    "score": check_score,
}


class _Child:
    """Python process that answers tasks until this one ends."""

    def __init__(self, hash_seed: str) -> None:
        self._process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", _CHILD_CODE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            cwd=_WORKING_FOLDER,
        )
        self._requests = cast(IO[bytes], self._process.stdin)
        self._answers = cast(IO[bytes], self._process.stdout)
        pickle.dump(sys.path, self._requests)
        atexit.register(self.close)

    def run(self, task: str, arguments: Sequence[Any], max_cpu_s: float) -> Iterator[tuple[bool, str]]:
        """Run a task on each argument; end early when the process dies.

        Args:
            task: Key of `_TASKS`.
            arguments: One argument per run.
            max_cpu_s: Processor seconds for each run; `deadline_s` bounds the wall-clock time. Past either, the
                process is killed.
        Yields:
            Whether the task returned, and its result or the traceback.
        """
        pickle.dump((sys.path, task, max_cpu_s, list(arguments)), self._requests)
        self._requests.flush()
        for _ in arguments:
            deadline = threading.Timer(deadline_s(), self._process.kill)
            deadline.start()
            try:
                yield pickle.load(self._answers)  # noqa: S301 - from the process started here
            except EOFError:
                return
            finally:
                deadline.cancel()

    def wait_for_end(self) -> str:
        """Wait for the process to end and return how it ended, as a predicate."""
        status = self._process.wait()
        if status >= 0:
            return f"ends its process (exit status {status})"
        name = signal.Signals(-status).name
        timeouts = {"SIGPROF": "takes too much processor time", "SIGKILL": f"takes more than {DEADLINE_S:g} s"}
        return timeouts.get(name, f"crashes its process ({name})")

    def close(self) -> None:
        """Kill the process and wait for its end."""
        atexit.unregister(self.close)
        self._process.kill()
        self._process.communicate()


_children: dict[str, _Child] = {}
"""Running children by hash seed."""

_last_ending = ""
"""How the last child that died ended."""

_endings: dict[bytes, str] = {}
"""How the child that tried a chain ended, by a digest of chain and source; "" if it did not crash."""


def fingerprint_in_children(chain_runs: Sequence[ChainRun]) -> list[list[str]]:
    """Return the fingerprints of all results, from each of two children. Raises AssertionError if a child dies."""
    results = [_run_in_child("fingerprint", chain_runs, seed) for seed in _HASH_SEEDS]
    if any(len(fingerprints) < len(chain_runs) for fingerprints in results):
        limit = f"{MAX_TASK_CPU_S:g} s of processor time"
        raise AssertionError(f"it crashes its process, or takes more than {limit}")
    return results


def check_outcomes_in_child(chain_runs: Sequence[ChainRun], *, may_crash: bool) -> list[str | None]:
    """Run chains on hostile files in a child.

    Returns:
        For each chain "" for a valid outcome, the fault, or None for a crash or a hang. The list ends after the first
        crash; with `may_crash`, after MAX_CRASHES_COUNT crashes.
    """
    outcomes: list[str | None] = []
    max_crashes = MAX_CRASHES_COUNT if may_crash else 1
    max_cpu_s = MAX_ALLOWED_HANG_CPU_S if may_crash else MAX_TASK_CPU_S
    while len(outcomes) < len(chain_runs) and outcomes.count(None) < max_crashes:
        if _HASH_SEEDS[0] not in _children:
            # the first task of a child also imports the reader, so it has more time
            outcomes += _run_in_child("outcome", chain_runs[len(outcomes) :][:1], _HASH_SEEDS[0])
        if _HASH_SEEDS[0] in _children:
            outcomes += _run_in_child("outcome", chain_runs[len(outcomes) :], _HASH_SEEDS[0], max_cpu_s)
        if len(outcomes) < len(chain_runs):
            outcomes.append(None)
    return outcomes


def try_in_child(chain_run: ChainRun) -> None:
    """Run a chain once in a child before it runs in this process, because it may end, crash or block a process.

    Raises:
        AssertionError: The child died. Other faults also show in this process.
    """
    chain, source = chain_run
    scene = getattr(source, "scene", None)
    key = hashlib.sha256(b"\0".join((repr(chain).encode(), source.name.encode(), source.read(), serialize(scene))))
    if key.digest() not in _endings:
        is_dead = not _run_in_child("try", [chain_run], _HASH_SEEDS[0])
        _endings[key.digest()] = _last_ending if is_dead else ""
    if ending := _endings[key.digest()]:
        raise AssertionError(f"{' → '.join(step.label for step in chain.steps)}: a plug-in {ending}")


def check_scores_in_child(sniff: str, heads: Sequence[tuple[str, bytes]]) -> None:
    """Run a sniffer on heads of files in a child.

    Args:
        sniff: Import path of the sniffer.
        heads: Descriptions and heads; an empty head is added.
    Raises:
        AssertionError: The sniffer takes too long, fails, or returns something other than a score.
    """
    calls = [(sniff, b""), *((sniff, head) for _, head in heads)]
    # the first call also imports the sniffer, so it has more time
    faults = _run_in_child("score", calls[:1], _HASH_SEEDS[0])
    faults += _run_in_child("score", calls[1:], _HASH_SEEDS[0], MAX_SNIFF_CPU_S) if faults else []
    descriptions = ["nothing", *(description for description, _ in heads)]
    for description, fault in zip(descriptions, faults, strict=False):
        if fault:
            raise AssertionError(f"the sniffer {fault} on {description}")
    if len(faults) < len(calls):
        description = descriptions[len(faults)]
        raise AssertionError(f"the sniffer {_last_ending} on {description}; the limit is {MAX_SNIFF_CPU_S:g} s")


def _run_in_child(task: str, arguments: Sequence[Any], hash_seed: str, max_cpu_s: float | None = None) -> list[str]:
    """Return all results, or those before the child died; the next call then starts a new child.

    Raises:
        AssertionError: The task raised an exception.
    """
    global _last_ending
    if hash_seed not in _children:
        _children[hash_seed] = _Child(hash_seed)
    answers = list(_children[hash_seed].run(task, arguments, MAX_TASK_CPU_S if max_cpu_s is None else max_cpu_s))
    if len(answers) < len(arguments):
        child = _children.pop(hash_seed)
        _last_ending = child.wait_for_end()
        child.close()
    for has_returned, result in answers:
        if not has_returned:
            raise AssertionError(f"it fails in a separate process:\n{result}")
    return [result for _, result in answers]


def main() -> None:
    """Answer tasks until standard input ends; runs in the child."""
    _shift_clock()
    # native code may print to descriptor 1, so the answers use a separate descriptor
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while True:
        try:
            sys.path[:], task, max_cpu_s, arguments = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the parent
        except EOFError:
            return
        for argument in arguments:
            if hasattr(signal, "setitimer"):
                # the signal has no handler, so it ends the process even if native code holds the interpreter's lock
                signal.setitimer(signal.ITIMER_PROF, max_cpu_s)
            try:
                answer = True, _TASKS[task](argument)
            except Exception:
                answer = False, traceback.format_exc()
            pickle.dump(answer, answers)
            answers.flush()


def _shift_clock() -> None:
    """Move Python's clock ahead, so that results which contain a time differ."""
    import datetime

    real_time, real_localtime, real_gmtime = time.time, time.localtime, time.gmtime

    class ShiftedDatetime(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> ShiftedDatetime:
            return cls.fromtimestamp(real_time() + _CLOCK_SHIFT_S, tz)

    time_module: Any = time
    time_module.time = lambda: real_time() + _CLOCK_SHIFT_S
    time_module.localtime = lambda seconds=None: real_localtime(time.time() if seconds is None else seconds)
    time_module.gmtime = lambda seconds=None: real_gmtime(time.time() if seconds is None else seconds)
    datetime_module: Any = datetime
    datetime_module.datetime = ShiftedDatetime
