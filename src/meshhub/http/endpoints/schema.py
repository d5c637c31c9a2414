"""GET /schema: the OpenAPI 3.1 document, also as a page."""

from __future__ import annotations

from urllib.parse import urlsplit

from litestar import Response, get

from meshhub.http.state import AnyRequest, state_of


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
