"""Log lines: text for people, or one JSON object per line for machines.

A JSON line does not contain the text of an exception, which may quote the content of a file. It contains the type of
the exception and where it was raised.
"""

from __future__ import annotations

import logging
import sys
import traceback
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

Kind = Literal["text", "json"]

REQUEST: ContextVar[str] = ContextVar("meshhub_request", default="")
"""Id of the current request."""

FIELDS = "fields"
"""Attribute of a record (`extra`) with a dict of values for its JSON line."""

_MAX_FRAMES = 12
"""Maximum innermost frames of an exception in a JSON line, which deep recursion would make long."""


class JsonLines(logging.Formatter):
    """Format of a record as one line of JSON: time, level, logger, message, request_id, and further fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line without its end."""
        values: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if REQUEST.get():
            values["request_id"] = REQUEST.get()
        values |= getattr(record, FIELDS, {})
        if record.exc_info and record.exc_info[0] is not None:
            values["exception"] = record.exc_info[0].__name__
            values["raised_at"] = [
                f"{Path(frame.filename).name}:{frame.lineno} {frame.name}"
                for frame in traceback.extract_tb(record.exc_info[2])[-_MAX_FRAMES:]
            ]
        import json

        return json.dumps(values, ensure_ascii=True, default=str)


class Lines(logging.Formatter):
    """Format of a record as a line for people, with the id of its request."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - overrides a method of logging.Formatter
        """Return the line without the traceback."""
        line = super().formatMessage(record)
        return f"{line} request={REQUEST.get()}" if REQUEST.get() else line


def to_stderr(kind: Kind) -> None:
    """Log to standard error, unless the embedding program has configured logging."""
    root = logging.getLogger()
    if root.handlers:
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if kind == "json" else Lines())
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger("meshhub").setLevel(logging.INFO)
