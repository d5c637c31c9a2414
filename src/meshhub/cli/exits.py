"""Exit statuses of the command line, and the line on standard error that reports an error."""

from __future__ import annotations

import logging

import click

from meshhub.cli.locale import ENGLISH, language
from meshhub.cli.texts import labeled, tr
from meshhub.error_codes import ERROR_CODES
from meshhub.errors import MeshhubError, PluginError, UnreadableFile, exit_status_of, printable
from meshhub.model.options import flag_of
from meshhub.pipeline.archived_models import SeveralModels

BATCH_FAILED = 1
"""Exit status if some files of a batch failed."""

EXIT_HELP = """\b
Exit status: 0 success · 1 some files of a batch failed · 2 invalid request ·
3 unreadable input · 4 conversion failed · 5 timeout or worker crash ·
6 output cannot be written · 7 missing package · 70 internal error ·
130 interrupted · 129 SIGHUP · 141 SIGPIPE · 143 SIGTERM
"""


def code_of(error: BaseException) -> str:
    """Return the stable code of an error, for programs."""
    if isinstance(error, MeshhubError):
        return error.error_code
    if isinstance(error, FileNotFoundError | IsADirectoryError):
        return UnreadableFile.error_code
    return "output_failed" if isinstance(error, OSError) else MeshhubError.error_code


def exit_status(error: BaseException) -> int:
    """Return the exit status of a command that an error ends."""
    if isinstance(error, MeshhubError):
        return exit_status_of(error)
    status = ERROR_CODES[code_of(error)].exit_status
    assert status is not None
    return status


def error_data(error: BaseException) -> dict[str, str]:
    """Return an error as data for programs: its description, and its code."""
    return {"error": describe_error(error), "error_code": code_of(error)}


def explained(error: BaseException) -> str:
    """Describe an error in one line, with its code if meshhub raised it on purpose."""
    return describe_error(error, f" [{error.error_code}]" if isinstance(error, MeshhubError) else "")


def describe_error(error: BaseException, mark: str = "") -> str:
    """Describe an error in one line; a mark follows the message of an error that meshhub raised on purpose."""
    if isinstance(error, SeveralModels):
        summary = error.message.removesuffix(SeveralModels.REMEDY)
        return f"{summary}unpack it, or convert all of them with --to FORMAT --output-dir DIR{mark}"
    if isinstance(error, MeshhubError):
        # the text of a plug-in's exception, which the message for the service leaves out
        notes = error.details if isinstance(error, PluginError) else "; ".join(getattr(error, "__notes__", ()))
        return f"{error.spelled(flag_of)}{mark}" + (f": {notes}" if notes else "")
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        return f"{error.filename}: {reason}" if error.filename else reason
    return f"{type(error).__name__}: {error}; this is a defect of meshhub, please report it (run with -v for more)"


def explained_here(error: BaseException) -> str:
    """Describe an error in one line for people: its meaning in the language of the locale, and the English message."""
    if language() == ENGLISH:
        return explained(error)
    # imported here, because it costs time that most errors do not need
    from meshhub.cli.catalogs import host_texts
    from meshhub.model.sentences import translate_error

    return translate_error(code_of(error), explained(error), host_texts())


def report_usage_error(error: click.ClickException) -> None:
    """Report a wrong use of a command on standard error, as click does, in the language of the locale."""
    if language() == ENGLISH:
        error.show()
        return
    # imported here, because English needs no catalog
    from meshhub.cli.catalogs import texts
    from meshhub.model.sentences import translate_error
    from meshhub.model.translations import Catalog

    sentences = {**texts().usage_errors, ": ": tr(": ")}
    catalog = Catalog(sentences=sentences, errors={"": tr("wrong usage")})
    message = translate_error("", error.format_message(), catalog)
    if isinstance(error, click.UsageError) and error.ctx is not None:
        context = error.ctx
        hint = tr("Try '{command} {option}' for help.")
        hint = hint.format(command=context.command_path, option=context.help_option_names[-1])
        click.echo(f"{context.get_usage()}\n{hint}\n", err=True)
    click.echo(printable(labeled("error", message)), err=True)


def report_error(error: Exception) -> int:
    """Report an error on standard error, and return the exit status."""
    # with --verbose only, because by default the log of a service has no traceback beside the line below
    if not isinstance(error, PluginError):
        # the frames of the plug-in were logged when it failed
        logging.getLogger("meshhub").debug("the command failed", exc_info=error)
    click.echo(printable(labeled("error", explained_here(error))), err=True)
    return exit_status(error)
