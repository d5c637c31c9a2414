"""Every error meshhub raises on purpose, and the stable code each one carries.

    MeshhubError
    ├── RequestError              what was asked for cannot be
    │   ├── InvalidOption             invalid_option
    │   ├── UnsupportedTarget         unsupported_target
    │   ├── UnsupportedFormat         unsupported_format
    │   ├── PremiumRequired           premium_format_required
    │   ├── InvalidKey                invalid_api_key
    │   ├── InvalidSettings           invalid_option: the operator's, and a ValueError too
    │   ├── RequestRefused            the code of the objection that refused it
    │   └── OutputExists              output_exists
    ├── SourceError               the file that was sent is at fault
    │   ├── UnreadableFile            unreadable_file
    │   ├── EmptyModel                empty_model
    │   ├── ExternalReference         external_reference
    │   ├── UnsafeArchive             unsafe_archive
    │   └── ModelTooComplex           model_too_complex
    ├── ConversionFailed          conversion_failed: a sound file that this chain cannot carry through
    │   └── DiskFull                  server_busy
    ├── EngineError               the place where the conversion ran gave up
    │   ├── ConversionTimeout         conversion_timeout
    │   ├── WorkerCrashed             worker_crashed
    │   ├── Cancelled                 cancelled
    │   ├── ServerBusy                server_busy
    │   └── ShuttingDown              shutting_down
    ├── KeyStoreUnavailable       server_busy
    ├── MissingDependency         missing_dependency; unsupported_target, unsupported_format or invalid_option
    │                             for a registered writer, reader or operation
    └── PluginError               conversion_failed: a plug-in broke its contract; never the caller's fault

A message says what went wrong, where, and what to do about it. Codes never change.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal

_IN_BRACES = re.compile(r"\{(\w+)\}", re.ASCII)

LONGEST_MESSAGE = 2000
"""Characters; more than any message needs, and less than a line of a hostile file."""


MAX_QUOTED = 40
"""Characters of a value that a message quotes; with the rest of the message they fit into one line."""


def printable(text: str) -> str:
    """A message without what steers a terminal or turns text around, cut where nobody reads on.

    Messages quote names and lines of files that strangers sent.
    """
    if len(text) > LONGEST_MESSAGE:
        text = f"{text[: LONGEST_MESSAGE - 201]}…{text[-200:]}"
    return text if text.isprintable() else "".join(letter if letter.isprintable() else "?" for letter in text)


def quote(value: object) -> str:
    """Quote a value in a message, cut to MAX_QUOTED characters."""
    text = value if isinstance(value, str) else str(value)
    if len(text) > MAX_QUOTED:
        text = f"{text[:MAX_QUOTED]}…"
    return repr(text) if isinstance(value, str) else text


def format_number(value: float, digits: int = 15) -> str:
    """Format a number without an exponent, except beyond 1e-9 and 1e15.

    Args:
        value: The number; a bound or an option keeps all its digits by default.
        digits: Significant digits; fewer suit what was measured.
    """
    text = f"{value:.{digits}g}"
    return f"{Decimal(text):f}" if "e" in text and 1e-9 <= abs(value) <= 1e15 else text


class MeshhubError(Exception):
    """Base of every error raised on purpose.

    `code` is stable and meant for programs; `message` is meant for people: one printable line.
    `options` are the names of options that the text mentions, each written in braces:
    `InvalidOption("{target_height_mm} is too large", options=("target_height_mm",))`. Each interface
    shows them in its own spelling.
    """

    code = "internal_error"

    def __init__(self, message: str, *, code: str | None = None, options: tuple[str, ...] = ()) -> None:
        self.template = printable(message)
        self.options = options
        self.message = self.spelled(str)
        super().__init__(self.message)
        if code is not None:
            self.code = code

    def spelled(self, spelling: Callable[[str], str]) -> str:
        """Return the message with the names of options as an interface spells them."""
        names = set(self.options)
        return _IN_BRACES.sub(lambda match: spelling(match[1]) if match[1] in names else match[0], self.template)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.template, self.code, self.options)


def _rebuild(kind: type[MeshhubError], message: str, code: str, options: tuple[str, ...]) -> MeshhubError:
    # subclasses of plug-ins may not take options
    return kind(message, code=code, options=options) if options else kind(message, code=code)


class RequestError(MeshhubError):
    """What was asked for cannot be done as asked."""

    code = "bad_request"


class InvalidOption(RequestError):
    """An option is unknown, malformed, or out of its bounds."""

    code = "invalid_option"


class UnsupportedTarget(RequestError):
    """No writer is registered for the format that was asked for."""

    code = "unsupported_target"


class UnsupportedFormat(RequestError):
    """Neither the content nor the name of the file tells a format that is registered."""

    code = "unsupported_format"


class PremiumRequired(RequestError):
    """The caller's plan does not grant the entitlement that a step requires."""

    code = "premium_format_required"


class InvalidKey(RequestError):
    """The API key is unknown, expired or revoked."""

    code = "invalid_api_key"


class InvalidSettings(InvalidOption, ValueError):
    """What the operator set makes no sense."""


class RequestRefused(RequestError):
    """A review plug-in objected; the code is the objection's own."""

    code = "request_refused"


class OutputExists(RequestError):
    """The output file is there already and overwriting it was not asked for."""

    code = "output_exists"


class SourceError(MeshhubError):
    """The file that was sent is at fault."""

    code = "unreadable_file"


class UnreadableFile(SourceError):
    """The bytes do not follow their format."""

    code = "unreadable_file"


class EmptyModel(SourceError):
    """The file is read right and holds no triangle."""

    code = "empty_model"


class ExternalReference(SourceError):
    """The model needs a file that did not come with it."""

    code = "external_reference"


class UnsafeArchive(SourceError):
    """The archive is built to harm, or cannot be unpacked safely."""

    code = "unsafe_archive"


class ModelTooComplex(SourceError):
    """The model needs more memory, output or work than one conversion may take."""

    code = "model_too_complex"


class ConversionFailed(MeshhubError):
    """The file is sound and the request valid, yet a step cannot carry it through."""

    code = "conversion_failed"


class DiskFull(ConversionFailed):
    """The disk of the output is full; the same request may succeed later."""

    code = "server_busy"


class EngineError(MeshhubError):
    """The place where the conversion ran gave up on it."""

    code = "worker_crashed"


class ConversionTimeout(EngineError):
    """The deadline passed; the worker was killed."""

    code = "conversion_timeout"


class WorkerCrashed(EngineError):
    """The worker process died before it answered."""

    code = "worker_crashed"


class Cancelled(EngineError):
    """The caller left; the job was killed."""

    code = "cancelled"


class ServerBusy(EngineError):
    """The queue is full; the same request may succeed a moment later."""

    code = "server_busy"


class ShuttingDown(EngineError):
    """The engine takes no more jobs."""

    code = "shutting_down"


class KeyStoreUnavailable(MeshhubError):
    """The database of keys cannot be asked now."""

    code = "server_busy"


class MissingDependency(MeshhubError):
    """A package is not installed on this machine; the message names the install command."""

    code = "missing_dependency"


class PluginError(MeshhubError):
    """A plug-in broke its contract: an unexpected exception, or a result that is not a scene."""

    code = "conversion_failed"
