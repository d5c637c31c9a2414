"""Run the checks of a chain on a scene, several of them at the same time where they allow it."""

# why they are no faster: docs/decisions/0059-speed-of-preparation.md
from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from itertools import count, groupby
from operator import attrgetter
from typing import NamedTuple

from msgspec import structs

from meshhub.errors import ConversionFailed, EngineError, MeshhubError, MissingDependency, PluginError
from meshhub.model import progress
from meshhub.model.chain import Position, Step
from meshhub.model.estimate import Estimate
from meshhub.model.notes import quote_options, spell_message
from meshhub.model.scene import Scene
from meshhub.model.verdict import CHECK_FAILED, MAX_PLACES, Finding
from meshhub.pipeline.declaration_check import check_declaration
from meshhub.pipeline.declarations import load
from meshhub.pipeline.plugin_errors import InvalidDeclaration
from meshhub.pipeline.running import Measured, Run, attributing, build_step_options, wrong_result
from meshhub.toolkit.threads import count_cores

MAX_RESULTS = 1_000
"""Maximum findings of one check; a person reads a few."""

MAX_THREADS = 2
"""Maximum checks at the same time; each needs memory, and the longest one takes a third of the time of all."""

MIN_FACES = 20_000
"""Faces from which threads pay off."""


class _Outcome(NamedTuple):
    """Result of a check; `error` if it failed."""

    findings: list[Finding]
    estimate: Estimate | None
    error: MeshhubError | None
    measured: Measured


def run_checks(run: Run, scene: Scene, *, needs_estimate: bool) -> tuple[list[Finding], Estimate | None]:
    """Run each check of a chain, and return the findings in the order of the checks, and the last estimate.

    Args:
        run: Run of the chain, after the operations.
        scene: Millimeters, Z up.
        needs_estimate: Whether each check must make an estimate, as for a quote. Its error is raised; otherwise, a
            check that fails does not stop the others.
    """
    findings: list[Finding] = []
    estimate: Estimate | None = None
    for is_concurrent, group in groupby(run.chain.checks, attrgetter("concurrent")):
        steps = list(group)
        with _open_threads() as pool:
            pending: list[Future[_Outcome]] = []
            if is_concurrent and scene.face_count >= MIN_FACES and count_cores() > 1:
                pending = [
                    pool.submit(copy_context().run, _examine_silently, run, run.position(number), scene)
                    for number in range(len(steps))
                ]
            for number, step in enumerate(steps):
                position = run.begin_step()
                outcome = pending[number].result() if pending else _examine(run, position, scene)
                if needs_estimate and outcome.error is not None:
                    raise outcome.error
                if needs_estimate and outcome.estimate is None:
                    raise _describe_missing_estimate(position, outcome.findings)
                run.end_step(step, outcome.measured)
                findings += outcome.findings
                if outcome.error is not None:
                    findings.append(_describe_failed_check(step, outcome.error))
                estimate = outcome.estimate or estimate
    return findings, estimate


@contextmanager
def _open_threads() -> Iterator[ThreadPoolExecutor]:
    """Open threads for checks. After an error, those that did not begin are dropped, and others are left behind."""
    pool = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="meshhub-check")
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _examine(run: Run, position: Position, scene: Scene) -> _Outcome:
    """Run a check."""
    findings: list[Finding] = []
    estimate: Estimate | None = None
    failure: MeshhubError | None = None
    with run.measuring(position) as measured:
        try:
            for result in list_results(position, scene):
                if isinstance(result, Finding):
                    findings.append(result)
                else:
                    estimate = result
        except EngineError:
            raise
        except MeshhubError as error:
            failure = error
    return _Outcome(findings, estimate, failure, measured)


def _examine_silently(run: Run, position: Position, scene: Scene) -> _Outcome:
    """Run a check in a thread, whose progress is not that of the step that the caller sees."""
    with progress.reporting(lambda _step, _fraction: None):
        return _examine(run, position, scene)


def list_results(position: Position, scene: Scene) -> Iterator[Finding | Estimate]:
    """Yield the findings of a check, each message as one printable line, and its estimate. Raises MeshhubError."""
    step = position.step
    if step.missing:
        raise MissingDependency(step.missing)
    with attributing(str(step), position):
        results = iter(load(step.run)(scene, build_step_options(step)))
    for number in count():
        with attributing(str(step), position):
            result = next(results, None)
        if result is None:
            return
        if number == MAX_RESULTS:
            raise PluginError(f"{step} returned more than {MAX_RESULTS:,} findings; {position.remedy}")
        if isinstance(result, Finding):
            with attributing(str(step), position):
                result = structs.replace(result, check=step.id, places=tuple(result.places[:MAX_PLACES]))
            _check_values(result, Finding, position)
            yield structs.replace(result, message=quote_options(result.message, result.options))
        elif isinstance(result, Estimate):
            _check_values(result, Estimate, position)
            yield result
        else:
            raise wrong_result(position, result, "a finding or an estimate")


def _check_values(result: Finding | Estimate, expected: type[Finding | Estimate], position: Position) -> None:
    """Raise PluginError, which names each field with a value that another process could not read."""
    try:
        check_declaration(expected, result)
    except InvalidDeclaration as error:
        kind = expected.__name__.lower()
        raise PluginError(f"{position.step} returned an invalid {kind}: {error}; {position.remedy}") from None


def _describe_failed_check(step: Step, error: MeshhubError) -> Finding:
    # templates of errors may have quotes around the braces
    template = error.template.replace("'{", "{").replace("}'", "}")
    return Finding(
        code=CHECK_FAILED,
        severity="warning",
        message=f"{step.label} could not be checked: {quote_options(template, error.options)}",
        options=error.options,
        check=step.id,
    )


def _describe_missing_estimate(position: Position, findings: Sequence[Finding]) -> MeshhubError:
    """Return the error of a quote without an estimate: the finding that says why."""
    if not findings:
        return PluginError(f"{position.step} made no estimate; {position.remedy}")
    finding = findings[0]
    # errors have names of options in braces
    template = spell_message(finding.message, finding.options, lambda name: f"'{{{name}}}'")
    return ConversionFailed(template, options=finding.options)
