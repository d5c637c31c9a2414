"""GET /schema: what the service can do, as OpenAPI 3.1 and as a page."""

from __future__ import annotations

from litestar import Response, get

from meshhub.http.state import AnyRequest, shared_of

_PAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


@get("/schema")
async def schema_page(request: AnyRequest) -> Response[bytes]:
    """A page for browsers, the document for everyone else."""
    shared = shared_of(request)
    if "text/html" in request.headers.get("accept", ""):
        headers = {"Vary": "Accept", "Content-Security-Policy": _PAGE_POLICY}
        return Response(shared.schema_page, media_type="text/html", headers=headers)
    return Response(shared.schema_document, media_type="application/json", headers={"Vary": "Accept"})


@get("/schema/openapi.json")
async def schema_document(request: AnyRequest) -> Response[bytes]:
    """The document."""
    return Response(shared_of(request).schema_document, media_type="application/json")
