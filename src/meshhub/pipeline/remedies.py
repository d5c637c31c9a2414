"""Trial of the remedies of findings: only those that help are offered."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import cast

from msgspec import Struct, structs

from meshhub.errors import EngineError, MeshhubError
from meshhub.model import options as opt
from meshhub.model import progress
from meshhub.model.chain import Position, Step
from meshhub.model.options import Value
from meshhub.model.remedy_search import without_remedies
from meshhub.model.scene import Scene
from meshhub.model.verdict import SEVERITIES, Finding
from meshhub.pipeline.advice import drop_remedy
from meshhub.pipeline.declarations import load
from meshhub.pipeline.judging import list_results
from meshhub.pipeline.running import Run, operate

TRIALS_RATIO = 0.2
"""Seconds of the processor for all trials per second of all checks; other programs do not use up this time."""

MIN_TRIALS_S, MAX_SMALL_FACES = 15.0, 50_000
"""The least time for trials of a model with so few faces. They take 1 to 5 s, and the first imports of libraries as
much on a busy machine, which must not decide what is offered."""

MAX_REST_RATIO = 0.5
"""What may remain of a finding after its remedy, per what was found before."""


def keep_helpful_remedies(
    run: Run, scene: Scene, findings: Sequence[Finding], operations: Sequence[Step], check_seconds: float
) -> list[Finding]:
    """Return the findings; those whose remedy did not help, or was not tried in time, are without it.

    A remedy runs on the scene itself: the checks measure points and cells, and are not faster with fewer triangles.

    Args:
        run: Run of the chain, after its checks.
        scene: Scene that was checked. Millimeters, Z up.
        findings: Findings of all checks.
        operations: Operations to try, in stage order.
        check_seconds: Time of the processor that all checks took, which limits that of the trials.
    """
    least = MIN_TRIALS_S if scene.face_count <= MAX_SMALL_FACES else 0.0
    trials = _Trials(run, scene, operations, max(least, TRIALS_RATIO * check_seconds))
    kept = list(findings)
    for number in sorted(range(len(kept)), key=lambda number: SEVERITIES.index(kept[number].severity)):
        finding = kept[number]
        if finding.remedy and not trials.help(finding, findings):
            kept[number] = drop_remedy(finding)
    return kept


class _Trials:
    """Scenes after remedies, and what checks find in them, until the time is over."""

    def __init__(self, run: Run, scene: Scene, operations: Sequence[Step], seconds: float) -> None:
        self._run = run
        self._scene = scene
        self._operations = operations
        self._deadline = time.thread_time() + seconds
        self._longest = 0.0
        self._scenes: dict[str, Scene] = {}
        self._findings: dict[tuple[str, str], list[Finding]] = {}

    def help(self, finding: Finding, findings: Sequence[Finding]) -> bool:
        """Return whether the remedy of a finding was tried, and the finding shrank without a new error.

        A trial begins only if there is time for one as long as the longest so far.
        """
        steps = self._choose_steps(finding.remedy)
        begin = time.thread_time()
        # progress is not reported within a call of a library, so that a trial may end long after the deadline
        if not steps or begin + self._longest > self._deadline:
            return False
        try:
            with progress.reporting(self._stop_late):
                after = self._check(finding, steps)
        except (progress.ListenerFailed, MeshhubError) as error:
            if isinstance(error, EngineError):
                raise
            return False
        finally:
            self._longest = max(self._longest, time.thread_time() - begin)
        known = {other.code for other in findings if other.check == finding.check and other.severity == "error"}
        if any(other.severity == "error" and other.code not in known for other in after):
            return False
        return all(_has_shrunk(finding, other) for other in after if other.code == finding.code)

    def _stop_late(self, _step: int, _fraction: float | None) -> None:
        """Stop a trial when the time is over; called with the progress of its steps."""
        if time.thread_time() > self._deadline:
            raise progress.ListenerFailed

    def _choose_steps(self, remedy: Mapping[str, Value]) -> list[Step]:
        """Return the operations of a remedy; none if all of its options are set already, or one is not available."""
        applied = {name: value for step in self._run.chain.operations for name, value in step.options.items()}
        missing = set(remedy)
        steps = []
        for step in self._operations:
            own = missing & {field.name for field in opt.option_fields(cast(type[Struct], load(step.options_type)))}
            if own:
                steps.append(structs.replace(step, options={name: remedy[name] for name in own}))
                missing -= own
        return [] if missing or all(applied.get(name) == remedy[name] for name in remedy) else steps

    def _check(self, finding: Finding, steps: Sequence[Step]) -> list[Finding]:
        """Return what the check of a finding finds after its remedy. Raises MeshhubError, ListenerFailed."""
        remedy = repr(sorted(finding.remedy.items()))
        own = next(
            n for n, step in enumerate(self._run.chain.steps) if (step.kind, step.id) == ("check", finding.check)
        )
        position = Position(self._run.chain, own)
        if remedy not in self._scenes:
            scene = self._scene
            for step in steps:
                progress.begin_step(own)
                with self._run.measuring(position):
                    scene = operate(step, position, scene)
            self._scenes[remedy] = scene
        if (remedy, finding.check) not in self._findings:
            progress.begin_step(own)
            with self._run.measuring(position), without_remedies():
                results = list(list_results(position, self._scenes[remedy]))
            self._findings[remedy, finding.check] = [result for result in results if isinstance(result, Finding)]
        return self._findings[remedy, finding.check]


def _has_shrunk(before: Finding, after: Finding) -> bool:
    """Return whether at most half of a finding remains: of its places, or of the distance to its limit."""
    if before.places_found and after.places_found <= MAX_REST_RATIO * before.places_found:
        return True
    if before.amount is None or after.amount is None:
        return False
    limit = before.limit or 0.0
    return abs(after.amount - limit) <= MAX_REST_RATIO * abs(before.amount - limit)
