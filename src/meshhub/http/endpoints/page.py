"""GET / and the other files of pages, those of `/schema` included: no API key, no rate limit."""

from __future__ import annotations

from collections.abc import Iterable

from litestar import Response, get
from litestar.handlers import HTTPRouteHandler

from meshhub.http.endpoints.access import PUBLIC
from meshhub.http.responses.conditions import choose_encoding, matches
from meshhub.http.state import AnyRequest, state_of


def page_handler(paths: Iterable[str]) -> HTTPRouteHandler:
    """Return the handler for the paths of files of pages."""

    @get(list(paths), opt=PUBLIC)
    async def page_file(request: AnyRequest) -> Response[bytes]:
        """Return a file of the page."""
        file = state_of(request).page_files[request.scope["path"]]
        if matches(request.headers.get("if-none-match", ""), file.headers["ETag"]):
            return Response(b"", status_code=304, media_type=file.media_type, headers=dict(file.headers))
        encoding = choose_encoding(request.headers.get("accept-encoding", ""), filter(None, file.contents))
        headers = {**file.headers, **({"Content-Encoding": encoding} if encoding else {})}
        return Response(file.contents[encoding], media_type=file.media_type, headers=headers)

    return page_file
