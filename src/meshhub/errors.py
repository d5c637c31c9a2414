"""Errors that meshhub raises on purpose, and the text of messages.

A message says what is wrong, where, and what to do. `error_codes.py` has the meaning of each code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar

from meshhub.error_codes import ERROR_CODES, list_values

__all__ = [
    "Canceled",
    "ConversionFailed",
    "ConversionTimeout",
    "EmptyModel",
    "EngineError",
    "ExternalReference",
    "InvalidOption",
    "MeshhubError",
    "MissingDependency",
    "ModelTooComplex",
    "OutputExists",
    "PluginError",
    "PremiumRequired",
    "RequestError",
    "RequestRefused",
    "ServerBusy",
    "ServiceUnreachable",
    "ShuttingDown",
    "SourceError",
    "UnreadableFile",
    "UnsafeArchive",
    "UnsupportedFormat",
    "UnsupportedTarget",
    "WorkerCrashed",
]
"""Errors that `meshhub` exports; the others are for its own interfaces."""

ErrorValue = int | float | str
"""Number or name in the message of an error."""


MAX_MESSAGE_CHARS = 2000
"""Maximum characters of a message; more than any message needs, but less than a line of a hostile file."""

MAX_QUOTED_CHARS = 40
"""Maximum characters of a quoted value; leaves room for the rest of the message on one line."""

_MESSAGE_TAIL_CHARS = 200
"""Characters kept from the end of a message that is cut; the end often names the remedy."""

_MIN_PLAIN = 1e-9
_MAX_PLAIN = 1e15
"""Bounds of the numbers that are written without an exponent; up to 1e15 a float holds every integer."""

_IN_BRACES = re.compile(r"\{(\w+)((?:=[\w-]+)?)\}", re.ASCII)
"""Option in a template, with a value or without: {input_unit}, {input_unit=mm}."""


def printable(text: str) -> str:
    """Replace each unprintable character by "?", and cut the middle of a text over MAX_MESSAGE_CHARS.

    Messages quote names and lines of untrusted files, which may hold terminal control sequences and marks that
    reverse the direction of text.
    """
    if len(text) > MAX_MESSAGE_CHARS:
        text = f"{text[: MAX_MESSAGE_CHARS - _MESSAGE_TAIL_CHARS - 1]}…{text[-_MESSAGE_TAIL_CHARS:]}"
    return text if text.isprintable() else "".join(letter if letter.isprintable() else "?" for letter in text)


def quote(value: object) -> str:
    """Quote a value for a message, cut to MAX_QUOTED_CHARS.

    Args:
        value: Text is quoted and escaped as by `repr`; other values are not quoted.
    """
    text = value if isinstance(value, str) else str(value)
    if len(text) > MAX_QUOTED_CHARS:
        text = f"{text[:MAX_QUOTED_CHARS]}…"
    return repr(text) if isinstance(value, str) else text


def format_number(value: float, digits: int = 15) -> str:
    """Format a number without an exponent if its magnitude is between 1e-9 and 1e15.

    Args:
        value: The number.
        digits: Significant digits. The default keeps every digit of an option or a bound; use fewer for measurements.
    """
    text = f"{value:.{digits}g}"
    if "e" not in text or not _MIN_PLAIN <= abs(value) <= _MAX_PLAIN:
        return text
    from decimal import Decimal

    return f"{Decimal(text):f}"


def format_count(number: int, one: str, many: str) -> str:
    """Return a number with its noun, such as "1 face" or "1,400 faces"."""
    return f"{number:,} {one if number == 1 else many}"


def describe_missing(feature: str, packages: Iterable[str], remedy: str) -> str:
    """Describe a feature whose packages are not installed.

    Args:
        feature: Subject of the sentence, such as "writing STEP".
        packages: Names of the missing packages.
        remedy: Command that installs them.
    """
    names = list(packages)
    return f"{feature} needs {', '.join(names)}, which {'is' if len(names) == 1 else 'are'} not installed; {remedy}"


def spell_options(template: str, options: Iterable[str], spelling: Callable[[str], str], mark: str = "") -> str:
    """Return a template with the names of options as an interface spells them.

    Args:
        template: Text with options in braces, each with a value or without: {input_unit=mm}, {place_on_bed}.
        options: Names of the options; other braces stay.
        spelling: Converts the name of an option, such as "target_height_mm" to "--target-height-mm".
        mark: Quotation mark around each option.
    """
    names = frozenset(options)

    def spell(match: re.Match[str]) -> str:
        return f"{mark}{spelling(match[1])}{match[2]}{mark}" if match[1] in names else match[0]

    return _IN_BRACES.sub(spell, template)


class MeshhubError(Exception):
    """Base class of the errors that meshhub raises on purpose.

    Attributes:
        error_code: Stable code for programs.
        message: One printable line for people.
        template: The message with the names of options in braces.
        options: Names of the options that the template mentions.
        values: Numbers and names in the message, for sentences in other languages; ERROR_CODES lists their names.

    An error that mentions options writes their names in braces, so that each interface can use its own spelling:
    `InvalidOption("{target_height_mm} is too large", options=("target_height_mm",))`.
    """

    error_code = "internal_error"

    fallback_http_status: ClassVar[int] = 500
    """HTTP status of an error whose code has no HTTP status in ERROR_CODES, such as a plug-in's own code."""

    own_exit_status: ClassVar[int | None] = None
    """Exit status of the class if it differs from that of its code in ERROR_CODES."""

    def __init__(
        self,
        message: str,
        *,
        error_code: str | None = None,
        options: tuple[str, ...] = (),
        values: Mapping[str, ErrorValue] | None = None,
    ) -> None:
        self.template = printable(message)
        self.options = options
        self.values = {
            name: printable(value) if isinstance(value, str) else value for name, value in (values or {}).items()
        }
        if options and "option" in list_values(error_code or self.error_code):
            self.values.setdefault("option", options[0])
        self.message = self.spelled(str)
        super().__init__(self.message)
        if error_code is not None:
            self.error_code = error_code

    @property
    def http_status(self) -> int:
        """The status of the HTTP response: that of the code or, for a code of a plug-in, that of the class."""
        row = ERROR_CODES.get(self.error_code)
        return row.http_status if row is not None and row.http_status is not None else self.fallback_http_status

    def spelled(self, spelling: Callable[[str], str]) -> str:
        """Return the message with the names of options as an interface spells them.

        Args:
            spelling: Converts the name of an option, such as "target_height_mm" to "--target-height-mm".
        """
        return spell_options(self.template, self.options, spelling)

    def about(self, subject: str) -> MeshhubError:
        """Return the error with a subject before its message, unless the message names it."""
        if subject in self.message:
            return self
        return _rebuild(type(self), f"{subject}: {self.template}", self.error_code, self.options, self.values)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.template, self.error_code, self.options, self.values)


def _rebuild(
    kind: type[MeshhubError], message: str, error_code: str, options: tuple[str, ...], values: dict[str, ErrorValue]
) -> MeshhubError:
    # plug-ins may define subclasses that accept neither options nor values
    error = kind(message, error_code=error_code, options=options) if options else kind(message, error_code=error_code)
    error.values = values
    return error


class RequestError(MeshhubError):
    """The request is invalid."""

    error_code = "bad_request"
    fallback_http_status = 400


class InvalidOption(RequestError):
    """An option is unknown, malformed or out of bounds; `values` name the first option that the message mentions."""

    error_code = "invalid_option"


class UnsupportedTarget(RequestError):
    """No writer is registered for the target format."""

    error_code = "unsupported_target"


class UnsupportedFormat(RequestError):
    """Neither the content nor the name of the file matches a registered format."""

    error_code = "unsupported_format"


class PremiumRequired(RequestError):
    """The caller's plan does not grant the entitlement that a step requires."""

    error_code = "premium_format_required"


class InvalidKey(RequestError):
    """The API key is unknown, expired or revoked."""

    error_code = "invalid_api_key"


class InvalidSettings(InvalidOption, ValueError):
    """A setting of the operator is unknown, malformed or out of bounds."""


class RequestRefused(RequestError):
    """A review plug-in rejected the request; the error has the code of the objection."""

    error_code = "request_refused"
    fallback_http_status = 403


class TooManyJobs(RequestError):
    """The caller already has the maximum number of unfinished jobs."""

    error_code = "too_many_jobs"


class OutputExists(RequestError):
    """The output file exists, and the caller did not allow overwriting it."""

    error_code = "output_exists"

    is_input = False
    """Whether the file is an input of the run, which no option replaces."""


CUT_OFF: Mapping[str, ErrorValue] = {"defect": "cut_off"}
"""Values of the error for a file that ends early, such as after an interrupted download."""

OTHER_KIND: Mapping[str, ErrorValue] = {"defect": "other_kind"}
"""Values of the error for a file whose extension or format is wrong, such as a web page named `.stl`."""

SLICED: Mapping[str, ErrorValue] = {"defect": "sliced"}
"""Values of the error for a file with machine code for a printer, and without a model."""

OTHER_VERSION: Mapping[str, ErrorValue] = {"defect": "other_version"}
"""Values of the error for a version of a format that cannot be read."""


class SourceError(MeshhubError):
    """The input file cannot be converted."""

    error_code = "unreadable_file"
    fallback_http_status = 422


class UnreadableFile(SourceError):
    """The file does not follow its format."""

    error_code = "unreadable_file"


class EmptyModel(SourceError):
    """The file is empty, or has no triangles."""

    error_code = "empty_model"


class ExternalReference(SourceError):
    """The model needs a companion that was not sent."""

    error_code = "external_reference"


class UnsafeArchive(SourceError):
    """The archive cannot be unpacked safely."""

    error_code = "unsafe_archive"


class ModelTooComplex(SourceError):
    """The model needs more memory, output or time than one conversion may use."""

    error_code = "model_too_complex"


class ConversionFailed(MeshhubError):
    """The file and the request are valid, but a step cannot convert the model."""

    error_code = "conversion_failed"


class DiskFull(ConversionFailed):
    """The disk of the output is full; the same request may succeed later."""

    error_code = "server_busy"
    own_exit_status = ERROR_CODES["output_failed"].exit_status


class EngineError(MeshhubError):
    """The engine stopped the conversion."""

    error_code = "worker_crashed"
    fallback_http_status = 503


class ConversionTimeout(EngineError):
    """The conversion passed its deadline, and the engine stopped it."""

    error_code = "conversion_timeout"


class WorkerCrashed(EngineError):
    """The worker process ended without a result."""

    error_code = "worker_crashed"


class Canceled(EngineError):
    """The caller canceled the conversion, and the engine stopped it."""

    error_code = "canceled"


class ServerBusy(EngineError):
    """The queue is full; the same request may succeed a moment later.

    Attributes:
        retry_after_s: Seconds after which it will probably succeed; None: unknown.
    """

    error_code = "server_busy"
    retry_after_s: int | None = None


class ServiceUnreachable(EngineError):
    """No service of meshhub responds at an address, or the connection fails."""

    error_code = "service_unreachable"


class ShuttingDown(EngineError):
    """The engine is closing and accepts no conversions."""

    error_code = "shutting_down"


class KeyStoreUnavailable(MeshhubError):
    """The database of API keys does not respond, or rejects a statement."""

    error_code = "server_busy"
    own_exit_status = ERROR_CODES["output_failed"].exit_status


class JobStoreUnavailable(MeshhubError):
    """The database of jobs does not respond, or rejects a statement."""

    error_code = "server_busy"
    own_exit_status = ERROR_CODES["output_failed"].exit_status


class MissingDependency(MeshhubError):
    """A package is not installed; the message names the command that installs it."""

    error_code = "missing_dependency"


class PluginError(MeshhubError):
    """A plug-in broke its contract: it raised an unexpected exception, or its result is not a scene.

    Attributes:
        details: Type, text and line of the plug-in's exception; "" without one. They follow the message in
            `str(error)`. Responses of the service leave them out: they may contain paths and secrets.
    """

    error_code = "conversion_failed"
    fallback_http_status = 422
    details: str = ""

    def __str__(self) -> str:
        return f"{self.message}: {self.details}" if self.details else self.message

    def __reduce__(self) -> tuple[object, ...]:
        return (*super().__reduce__(), {"details": self.details})


def exit_status_of(error: MeshhubError) -> int:
    """Return the exit status of the command line for an error.

    The class decides, not the code of the instance: MissingDependency has one exit status and several codes.
    A class that a plug-in defines has the exit status of its nearest base class in this module.
    """
    kind = next(base for base in type(error).__mro__ if base.__module__ == __name__)
    assert issubclass(kind, MeshhubError)
    status = kind.own_exit_status or ERROR_CODES[kind.error_code].exit_status
    assert status is not None
    return status
