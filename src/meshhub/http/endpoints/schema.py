"""GET /schema: the OpenAPI 3.1 document, also as a page."""

from __future__ import annotations

from litestar import Response, get

from meshhub.http.state import AnyRequest, state_of

_PAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


@get("/schema")
async def schema_page(request: AnyRequest) -> Response[bytes]:
    """Return the page to browsers, and the document to other clients."""
    state = state_of(request)
    if "text/html" in request.headers.get("accept", ""):
        headers = {"Vary": "Accept", "Content-Security-Policy": _PAGE_POLICY}
        return Response(state.schema_page, media_type="text/html", headers=headers)
    return Response(state.schema_document, media_type="application/json", headers={"Vary": "Accept"})


@get("/schema/openapi.json")
async def schema_document(request: AnyRequest) -> Response[bytes]:
    """Return the document."""
    return Response(state_of(request).schema_document, media_type="application/json")
