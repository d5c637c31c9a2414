"""Conversions in other processes: with another seed of hashes, on another day, and where a crash does no harm."""

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

from meshhub.testing.jobs import Job, content, digest_of, outcome_of, score_of, trial_of
from meshhub.testing.watching import DEADLINE_S

_SEEDS = ("0", "1")
_CODE = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from meshhub.testing.elsewhere import main; main()"
)
_CRASHES = 5
"""So many processes are started anew for one list of jobs: starting them takes the most time."""

LONGEST = 10.0
"""Seconds of processor time for one job; native code that hangs on a damaged file is ended as if it had crashed."""

SNIFF_S = 1.0
"""Seconds of processor time for one look at the head of a file; a service gives all sniffers together no more."""

_FOLDER = Path.cwd()
"""Where the other processes start: `watched` moves this one into folders that do not last."""

_DAYS = 100 * 24 * 3600.0

_QUESTIONS: dict[str, Callable[[Any], str]] = {
    "digest": digest_of,
    "outcome": outcome_of,
    "trial": trial_of,
    "score": score_of,
}


class _Process:
    """Another Python, which lives as long as this one."""

    def __init__(self, seed: str) -> None:
        self._process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", _CODE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=_FOLDER,
        )
        self._questions = cast(IO[bytes], self._process.stdin)
        self._answers = cast(IO[bytes], self._process.stdout)
        pickle.dump(sys.path, self._questions)
        atexit.register(self.close)

    def ask(self, question: str, jobs: Sequence[Any], longest: float) -> Iterator[tuple[bool, str]]:
        """For each job whether it could be answered, and the answer; ends early when the process dies.

        It is killed when a job takes more than `longest` seconds of processor time, or DEADLINE_S by the clock.
        """
        pickle.dump((sys.path, question, longest, list(jobs)), self._questions)
        self._questions.flush()
        for _ in jobs:
            deadline = threading.Timer(DEADLINE_S, self._process.kill)
            deadline.start()
            try:
                yield pickle.load(self._answers)  # noqa: S301 - from the process started here
            except EOFError:
                return
            finally:
                deadline.cancel()

    def ending(self) -> str:
        """How it died, in words."""
        status = self._process.wait()
        if status >= 0:
            return f"ends its process (exit status {status})"
        name = signal.Signals(-status).name
        late = {"SIGPROF": "takes too much processor time", "SIGKILL": f"takes more than {DEADLINE_S:g} s"}
        return late.get(name, f"crashes its process ({name})")

    def close(self) -> None:
        """End it, and wait for the end."""
        atexit.unregister(self.close)
        self._process.kill()
        self._process.communicate()


_processes: dict[str, _Process] = {}


def digests_elsewhere(jobs: Sequence[Job]) -> list[list[str]]:
    """The fingerprints of what jobs write, from two other processes. Raises AssertionError when one dies."""
    found = [_answers("digest", jobs, seed) for seed in _SEEDS]
    if any(len(digests) < len(jobs) for digests in found):
        raise AssertionError(f"it crashes a process of its own, or takes more than {LONGEST:g} s of processor time")
    return found


def outcomes_elsewhere(jobs: Sequence[Job], *, may_crash: bool) -> list[str | None]:
    """What becomes of each job in another process: "" when all is well, else the fault; None for a crash or a hang.

    Unless it may crash, the first crash is the last outcome; if it may, the last of a few.
    """
    outcomes: list[str | None] = []
    crashes = _CRASHES if may_crash else 1
    while len(outcomes) < len(jobs) and outcomes.count(None) < crashes:
        outcomes += _answers("outcome", jobs[len(outcomes) :], _SEEDS[0])
        if len(outcomes) < len(jobs):
            outcomes.append(None)
    return outcomes


def try_elsewhere(job: Job) -> None:
    """Run a job in another process, once, before it runs in this one, which it may end, crash or hold up.

    Raises AssertionError when it does. What else goes wrong shows in this process, too.
    """
    chain, source = job
    scene = getattr(source, "scene", None)
    key = hashlib.sha256(b"\0".join((repr(chain).encode(), source.name.encode(), source.read(), content(scene))))
    if key.digest() not in _tried:
        died = not _answers("trial", [job], _SEEDS[0])
        _tried[key.digest()] = _ending if died else ""
    if ending := _tried[key.digest()]:
        raise AssertionError(f"{' → '.join(step.label for step in chain.steps)}: a plug-in {ending}")


_tried: dict[bytes, str] = {}
"""How the process of each job ended that was tried; "" when it did not."""


def scores_elsewhere(sniff: str, heads: Sequence[tuple[str, bytes]]) -> None:
    """Look at heads with a sniffer. Raises AssertionError for one that takes too long, fails, or gives no score."""
    looks = [(sniff, b""), *((sniff, head) for _, head in heads)]
    # the first look imports the sniffer
    faults = _answers("score", looks[:1], _SEEDS[0])
    faults += _answers("score", looks[1:], _SEEDS[0], SNIFF_S) if faults else []
    named = ["nothing", *(name for name, _ in heads)]
    for name, fault in zip(named, faults, strict=False):
        if fault:
            raise AssertionError(f"the sniffer {fault} on {name}")
    if len(faults) < len(looks):
        raise AssertionError(f"the sniffer {_ending} on {named[len(faults)]}; {SNIFF_S:g} s are allowed")


_ending = ""
"""How the last process that died did so."""


def _answers(question: str, jobs: Sequence[Any], seed: str, longest: float | None = None) -> list[str]:
    """All answers, or those until the process died; it is replaced then. Raises AssertionError for what cannot run."""
    global _ending
    if seed not in _processes:
        _processes[seed] = _Process(seed)
    answers = list(_processes[seed].ask(question, jobs, LONGEST if longest is None else longest))
    if len(answers) < len(jobs):
        died = _processes.pop(seed)
        _ending = died.ending()
        died.close()
    for answered, answer in answers:
        if not answered:
            raise AssertionError(f"it fails in a process of its own:\n{answer}")
    return [answer for _, answer in answers]


def main() -> None:
    """What the other processes run: answer until standard input ends."""
    _another_day()
    # native code prints where it likes: the answers have a channel of their own
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while True:
        try:
            sys.path[:], question, longest, jobs = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the process above
        except EOFError:
            return
        for job in jobs:
            if hasattr(signal, "setitimer"):
                # nothing handles it, so the system ends the process, whatever holds the interpreter
                signal.setitimer(signal.ITIMER_PROF, longest)
            try:
                answer = True, _QUESTIONS[question](job)
            except Exception:
                answer = False, traceback.format_exc()
            pickle.dump(answer, answers)
            answers.flush()


def _another_day() -> None:
    """Move Python's clock on, so that a time in the output shows."""
    import datetime

    now, local, greenwich = time.time, time.localtime, time.gmtime

    class Moved(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Moved:
            return cls.fromtimestamp(now() + _DAYS, tz)

    clock: Any = time
    clock.time = lambda: now() + _DAYS
    clock.localtime = lambda seconds=None: local(time.time() if seconds is None else seconds)
    clock.gmtime = lambda seconds=None: greenwich(time.time() if seconds is None else seconds)
    module: Any = datetime
    module.datetime = Moved
