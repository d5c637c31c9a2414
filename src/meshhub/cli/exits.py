"""How a command ends: one table from errors to exit statuses, and the line that tells a person."""

from __future__ import annotations

import logging

import click

from meshhub import errors
from meshhub.model.options import flag_of

BATCH_FAILED = 1
INTERNAL = 70
INTERRUPTED = 130
SIGNALED = 128
"""What a shell adds to the number of the signal that ended a program."""

EXITS: dict[type[BaseException], int] = {
    errors.OutputExists: 6,
    errors.RequestError: 2,
    errors.SourceError: 3,
    errors.DiskFull: 6,
    errors.ConversionFailed: 4,
    errors.PluginError: 4,
    errors.EngineError: 5,
    errors.KeyStoreUnavailable: 6,
    errors.MissingDependency: 7,
    FileNotFoundError: 3,
    IsADirectoryError: 3,
    OSError: 6,
}
"""Looked through in order; 0 is success, 1 a batch in which some file failed, 70 a fault of meshhub's own."""

EXIT_HELP = """\b
Exit status: 0 done · 1 some files of a batch failed · 2 the request cannot be · 3 the input cannot
be read · 4 the conversion failed · 5 time ran out or the worker died · 6 the output cannot be
written · 7 something is not installed · 70 a fault of meshhub's own · 130 interrupted · 129
SIGHUP · 143 SIGTERM
"""


def exit_status(error: BaseException) -> int:
    """The exit status that an error ends a command with."""
    return next((status for kind, status in EXITS.items() if isinstance(error, kind)), INTERNAL)


def explained(error: BaseException) -> str:
    """One line for a person."""
    if isinstance(error, errors.OutputExists):
        return f"{error.message}; say --force to overwrite it [{error.code}]"
    if isinstance(error, errors.MeshhubError):
        return f"{error.spelled(flag_of)} [{error.code}]"
    if isinstance(error, OSError):
        what = error.strerror or str(error)
        return f"{error.filename}: {what}" if error.filename else what
    return f"{type(error).__name__}: {error}; this is a fault of meshhub's own, please report it (run with -v for more)"


def code_of(error: BaseException) -> str:
    """The error's stable code, for programs."""
    if isinstance(error, errors.MeshhubError):
        return error.code
    if isinstance(error, OSError):
        return "output_failed" if exit_status(error) == EXITS[OSError] else "unreadable_file"
    return errors.MeshhubError.code


def told_and_done(error: Exception) -> int:
    """Tell the error on standard error; the status to exit with."""
    status = exit_status(error)
    # for --verbose alone: a service that logs at its usual level tells the one line below, too
    logging.getLogger("meshhub").debug("the command failed", exc_info=error)
    click.echo(errors.printable(f"error: {explained(error)}"), err=True)
    return status
