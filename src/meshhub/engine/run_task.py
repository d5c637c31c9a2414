"""Run a task for a program: on an engine, with a report for the listeners of plug-ins."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs

from meshhub.engine.contract import Cancel, Engine, Task
from meshhub.errors import MeshhubError
from meshhub.model.options import OptionField
from meshhub.model.report import Failure, FileReport, Report
from meshhub.model.verdict import Result
from meshhub.pipeline.advice import drop_useless_advice, drop_useless_alternatives
from meshhub.pipeline.hooks import Hooks


def run_task(
    engine: Engine,
    hooks: Hooks,
    task: Task,
    options: Mapping[str, OptionField],
    timeout: float | None,
    cancel: Cancel | None,
) -> Result:
    """Run a task on an engine, and inform the listeners of a conversion, also of a failed one.

    Args:
        engine: Where the task runs.
        hooks: Calls the listeners.
        options: Options of the registry; notes and errors recommend no others.
        timeout: Seconds; None for no deadline.
        cancel: Stops the task.
    """
    try:
        result = engine.run(task, timeout=timeout, cancel=cancel)
    except MeshhubError as error:
        drop_useless_alternatives(error, task.chain, options)
        if task.chain.ending.informs:
            hooks.inform(
                Report(
                    source=FileReport(format=task.chain.source_format, bytes=task.source.size),
                    target=FileReport(format=task.chain.target_format),
                    error=Failure(error.error_code, error.message),
                )
            )
        raise
    result = structs.replace(result, notes=drop_useless_advice(result.notes, task.chain, options))
    if task.chain.ending.informs and isinstance(result, Report):
        hooks.inform(result)
    return result
