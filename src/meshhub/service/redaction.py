"""Redaction of passwords in URLs, for messages and listings."""

from __future__ import annotations

import re

_MASK = "***"

_PASSWORD = re.compile(r"(://[^:@/]*):.*@")
"""User and password before the host; up to the last @, because a password may contain one."""

_SECRET_PARAMETER = re.compile(r"([?&][^=&]*(?:pass|secret|token|key)[^=&]*=)[^&\s]*", re.IGNORECASE)
"""Parameter of the query whose name suggests a secret."""

_SEPARATORS = re.compile(r"[:@/,]")
"""Characters at which URL parsers split a password that is not escaped."""

_MIN_SECRET_CHARS = 3
"""Minimum characters of a part of a password to mask it; shorter parts occur in ordinary words."""


def redact_url(url: str) -> str:
    """Mask the passwords of a URL, before the host and in the query."""
    return _SECRET_PARAMETER.sub(rf"\1{_MASK}", _PASSWORD.sub(rf"\1:{_MASK}@", url))


def redact_error(text: str, url: str) -> str:
    """Mask the passwords of a URL in the text of an error about it.

    Libraries quote a whole URL, or only the piece that they cannot parse.
    """
    secrets = [match[0].partition("=")[2] for match in _SECRET_PARAMETER.finditer(url)]
    before_host = url.partition("://")[2].rpartition("@")[0].partition(":")[2]
    secrets += [before_host, *_SEPARATORS.split(before_host)]
    for secret in sorted((piece for piece in secrets if len(piece) >= _MIN_SECRET_CHARS), key=len, reverse=True):
        text = text.replace(secret, _MASK)
    return redact_url(text)
