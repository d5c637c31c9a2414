"""Compression of text responses: JSON reports, lists and documents. Files of models stay as they are."""

from __future__ import annotations

import gzip
import re
from typing import Any

from meshhub.http.responses.conditions import accepts

MIN_BYTES = 1024
"""Bytes; a smaller body fits into one packet anyway."""

LEVEL = 5
"""gzip level; 9 takes three times as long for 1 % less (OpenAPI document)."""

_COMPRESSIBLE = re.compile(rb"(application/json|text/(?!event-stream))")

Message = dict[str, Any]


class Compressor:
    """Compressor of the body of one response, if it comes in one piece and the client accepts gzip."""

    def __init__(self, accept_encoding: str) -> None:
        """Read the header Accept-Encoding of the request."""
        self._is_accepted = accepts(accept_encoding, "gzip")
        self._start: Message | None = None

    def handle(self, message: Message) -> list[Message]:
        """Return the messages to send in place of the next message of the application."""
        if message["type"] == "http.response.start":
            if not _is_compressible(message):
                return [message]
            self._start = message
            return []
        if self._start is None:
            return [message]
        start, self._start = self._start, None
        headers = [*start["headers"], (b"vary", b"Accept-Encoding")]
        body = message.get("body", b"")
        if not self._is_accepted or message.get("more_body", False) or len(body) < MIN_BYTES:
            return [{**start, "headers": headers}, message]
        body = gzip.compress(body, LEVEL, mtime=0)
        changed = {b"content-length": str(len(body)).encode(), b"content-encoding": b"gzip"}
        # an ETag stays: clients compare it only with If-None-Match, for which encodings are equal (RFC 9110 §13.1.2)
        kept = [(name, value) for name, value in headers if name.lower() not in changed]
        return [{**start, "headers": [*kept, *changed.items()]}, {**message, "body": body}]


def _is_compressible(start: Message) -> bool:
    headers = {name.lower(): value for name, value in start["headers"]}
    is_text = _COMPRESSIBLE.match(headers.get(b"content-type", b"")) is not None
    return is_text and b"content-encoding" not in headers and start["status"] not in (204, 304)
