"""GET /schema: the OpenAPI 3.1 document, also as a page."""

from __future__ import annotations

from urllib.parse import urlsplit

from litestar import Response, get

from meshhub.http.description.endpoint import Endpoint
from meshhub.http.description.parts import Json, describe_json, read_example
from meshhub.http.state import AnyRequest, state_of
from meshhub.registry import Registry


@get("/schema")
async def schema_page(request: AnyRequest) -> Response[bytes]:
    """Return the page to browsers, and the document to other clients."""
    state = state_of(request)
    if "text/html" in request.headers.get("accept", ""):
        headers = {"Vary": "Accept", "Content-Security-Policy": _page_policy(state.settings.base_url)}
        return Response(state.schema_page, media_type="text/html", headers=headers)
    return Response(state.schema_document, media_type="application/json", headers={"Vary": "Accept"})


@get("/schema/openapi.json")
async def schema_document(request: AnyRequest) -> Response[bytes]:
    """Return the document."""
    return Response(state_of(request).schema_document, media_type="application/json")


def _page_policy(base_url: str | None) -> str:
    """Return the policy of the page: its own scripts and styles, and requests only to the service."""
    address = urlsplit(base_url or "")
    service = f" {address.scheme}://{address.netloc}" if address.netloc else ""
    return (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        f"connect-src 'self'{service}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _describe_page(_: Registry) -> Json:
    text = "This document, or a page for browsers (Accept: text/html)."
    response = describe_json(text, None, read_example(__name__))
    response["content"]["text/html"] = {"schema": {"type": "string"}}
    return response


ENDPOINTS = (
    Endpoint(handler=schema_page, summary="This document as a page", tag="description", answer=_describe_page),
    Endpoint(
        handler=schema_document,
        summary="This document",
        tag="description",
        answer=lambda _: describe_json("OpenAPI 3.1.", None, read_example(__name__)),
    ),
)
