"""Header Idempotency-Key, by which a repeated request is recognized."""

from __future__ import annotations

import re
from typing import Any

from litestar import Request

from meshhub.http.errors import ServiceError

_KEY = re.compile(r"[\x20-\x7e]{1,255}")


def read_idempotency_key(request: Request[Any, Any, Any]) -> str | None:
    """Return the key of a request; None without one. Raises ServiceError."""
    key = request.headers.get("idempotency-key")
    if key is not None and not _KEY.fullmatch(key):
        raise ServiceError("Idempotency-Key must have 1 to 255 printable ASCII characters")
    return key
