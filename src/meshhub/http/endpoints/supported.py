"""GET /supported: formats, operations and options, as the registry declares them."""

from __future__ import annotations

import hashlib
import re

import msgspec
from litestar import Response, get

from meshhub.http.state import AnyRequest, caller_of, shared_of
from meshhub.supported import supported as told_by


@get("/supported")
async def supported(request: AnyRequest) -> Response[bytes]:
    """What this caller can read, write and ask for."""
    body = msgspec.json.encode(told_by(shared_of(request).registry, caller_of(request)))
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {"ETag": etag, "Cache-Control": "private, no-cache", "Vary": "X-Api-Key"}
    if _matches(request.headers.get("if-none-match", ""), etag):
        return Response(b"", status_code=304, media_type="application/json", headers=headers)
    return Response(body, media_type="application/json", headers=headers)


def _matches(sent: str, etag: str) -> bool:
    """Whether the client has this version already (RFC 9110 §13.1.2: compared weakly)."""
    return sent.strip() == "*" or etag in re.findall(r'"[^"]*"', sent)
