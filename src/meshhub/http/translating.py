"""Messages of errors, notes and findings in the language of a request."""

# why this way: docs/decisions/0054-texts.md
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from litestar import Request, Response

from meshhub.http.context import context_of
from meshhub.model.notes import Note
from meshhub.model.sentences import translate_error, translate_message, translate_note
from meshhub.model.translations import ENGLISH, Texts

_VARY = "Accept-Language"


def answer_json(
    request: Request[Any, Any, Any], payload: object, status_code: int = 200, headers: Mapping[str, str] | None = None
) -> Response[bytes]:
    """Return a response with JSON whose messages are in the language of the request."""
    texts = context_of(request.scope).texts
    return Response(
        encode_json(payload, texts),
        status_code=status_code,
        media_type="application/json",
        headers={"Content-Language": texts.language, "Vary": _VARY, **(headers or {})},
    )


def encode_json(payload: object, texts: Texts) -> bytes:
    """Encode an object with its messages in another language."""
    return msgspec.json.encode(
        payload if texts.language == ENGLISH else _translate(msgspec.to_builtins(payload), texts)
    )


def _translate(value: Any, texts: Texts) -> Any:
    """Return JSON with its messages in another language: those beside a code, and reasons of steps."""
    if isinstance(value, list | tuple):
        return [_translate(item, texts) for item in value]
    if not isinstance(value, dict):
        return value
    row = {name: _translate(item, texts) for name, item in value.items()}
    if isinstance(row.get("because"), str):
        row["because"] = translate_message(row["because"], texts)
    for name in ("error", "message"):
        if isinstance(row.get(name), str):
            row[name] = _translate_message(row, row[name], texts)
    return row


def _translate_message(row: dict[str, Any], message: str, texts: Texts) -> str:
    """Return the message of an error, note or finding in another language; any other text unchanged."""
    if isinstance(row.get("error_code"), str):
        return translate_error(row["error_code"], message, texts)
    if isinstance(row.get("code"), str):
        return translate_note(msgspec.convert(row, Note), texts).message
    return message
