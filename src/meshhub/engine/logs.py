"""Logs: plain lines for people, or JSON, an object a line, for machines that collect them.

A JSON line holds no text of an exception, which may quote what a file holds: only its type and
where it was raised.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

Kind = Literal["text", "json"]

REQUEST: ContextVar[str] = ContextVar("meshhub_request", default="")
"""The id of the request that is being served."""

FIELDS = "fields"
"""What a record may carry as `extra` for JSON: a dict of figures and words."""


class JsonLines(logging.Formatter):
    """A record as one line of JSON: time, level, logger, message, request_id, and the fields it carries."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        told: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if REQUEST.get():
            told["request_id"] = REQUEST.get()
        told |= getattr(record, FIELDS, {})
        if record.exc_info and record.exc_info[0] is not None:
            told["exception"] = record.exc_info[0].__name__
            told["raised_at"] = [
                f"{Path(frame.filename).name}:{frame.lineno} {frame.name}"
                for frame in traceback.extract_tb(record.exc_info[2])[-12:]
            ]
        return json.dumps(told, ensure_ascii=True, default=str)


class Lines(logging.Formatter):
    """A record as a line for people, with the id of the request that it belongs to."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        """The line, before what is told of an exception."""
        line = super().formatMessage(record)
        return f"{line} request={REQUEST.get()}" if REQUEST.get() else line


def to_stderr(kind: Kind) -> None:
    """Log to standard error, unless the program around has set up its own."""
    root = logging.getLogger()
    if root.handlers:
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if kind == "json" else Lines())
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger("meshhub").setLevel(logging.INFO)
