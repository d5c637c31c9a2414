"""Examine each of several files, and print what was found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import click
import msgspec

from meshhub.cli.exits import BATCH_FAILED, error_data, explained_here, report_error
from meshhub.cli.texts import labeled
from meshhub.errors import printable

T = TypeVar("T")


def examine_each(
    files: Sequence[str],
    examine: Callable[[str], T],
    print_result: Callable[[str, T], None],
    *,
    as_json: bool,
    is_several: bool,
) -> tuple[list[object], int]:
    """Examine each file; an error of one file does not stop the others.

    Args:
        files: Paths.
        examine: Returns the result for a path.
        print_result: Prints it for people; not called with `as_json`.
        as_json: Whether the caller prints the results as JSON.
        is_several: Whether the command was given several files or a folder.
    Returns:
        Results and errors as plain data, and the exit status.
    """
    results: list[object] = []
    status = 0
    for path in files:
        try:
            result = examine(path)
        except Exception as error:
            status = report_error(error) if not is_several else BATCH_FAILED
            results.append({"file": path, **error_data(error)})
            if not as_json and is_several:
                click.echo(printable(labeled("error", f"{path}: {explained_here(error)}")), err=True)
            continue
        results.append({"file": path, **msgspec.to_builtins(result)})
        if not as_json:
            print_result(path, result)
    return results, status
