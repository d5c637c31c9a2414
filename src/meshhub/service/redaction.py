"""Passwords in URLs: masked wherever a URL is shown."""

from __future__ import annotations

import re

_MASK = "***"
_PASSWORD = re.compile(r"(://[^:@/]*):.*@")
_SECRET_PART = re.compile(r"([?&][^=&]*(?:pass|secret|token|key)[^=&]*=)[^&\s]*", re.IGNORECASE)
_SEPARATORS = re.compile(r"[:@/,]")


def redact_url(url: str) -> str:
    """Mask the passwords of a URL: in front of the host, and in the query."""
    return _SECRET_PART.sub(rf"\1{_MASK}", _PASSWORD.sub(rf"\1:{_MASK}@", url))


def redact_error(text: str, url: str) -> str:
    """Mask a URL's passwords in the text of an error about it.

    Libraries quote a URL whole, or only the piece of it that they cannot read.
    """
    secrets = [match[0].partition("=")[2] for match in _SECRET_PART.finditer(url)]
    before_host = url.partition("://")[2].rpartition("@")[0].partition(":")[2]
    secrets += [before_host, *_SEPARATORS.split(before_host)]
    for secret in sorted((one for one in secrets if len(one) > 2), key=len, reverse=True):
        text = text.replace(secret, _MASK)
    return redact_url(text)
