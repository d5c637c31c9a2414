"""Endpoints that only `meshhub app` has, for its own page: opened files, results in their folders, and slicers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import msgspec
from litestar import Response, delete, get, post
from litestar.exceptions import InternalServerException
from litestar.response import Stream

from meshhub.errors import UnreadableFile, quote
from meshhub.http.errors import ServiceError
from meshhub.http.intake.names import label
from meshhub.http.local_app import Content, LocalApp, to_text
from meshhub.http.responses.results import FileResponse, file_response
from meshhub.http.slicers import find_slicers, open_in_slicer
from meshhub.http.state import AnyRequest, state_of


@post("/local/files", status_code=200)
async def open_files(request: AnyRequest) -> dict[str, int]:
    """Open the files of a JSON list of paths, as a second `meshhub app` sends it; return the number of tabs.

    Tabs of one browser count once, because they share a stream. The paths are percent-encoded, because JSON cannot hold
    names that are not UTF-8.
    """
    app = app_of(request)
    try:
        encoded = msgspec.json.decode(await request.body(), type=list[str])
    except msgspec.DecodeError as error:
        raise ServiceError(f"the body is not a list of paths: {error}") from None
    try:
        app.open_soon([Path(os.fsdecode(unquote_to_bytes(each))) for each in encoded])
    except OSError as error:
        raise UnreadableFile(f"{quote(error.filename)} cannot be read: {error.strerror}") from error
    return {"tabs": app.tabs}


@get("/local/files")
async def list_files(request: AnyRequest) -> Response[bytes]:
    """Return the opened files as a tab shows them when it is loaded; `after` is the last id it has."""
    body = msgspec.json.encode(app_of(request).list_after(_read_after(request)))
    return Response(body, media_type="application/json", headers={"Cache-Control": "no-store"})


@get("/local/files/events")
async def follow_files(request: AnyRequest) -> Stream:
    """Return lists of opened files as server-sent events, until the tab is closed; `after` is the last id it has."""
    resources = state_of(request).resources
    stream = app_of(request).stream_files(_read_after(request), lambda: resources.is_closing)
    return Stream(stream, media_type="text/event-stream", headers={"Cache-Control": "no-store"})


def _read_after(request: AnyRequest) -> int:
    after = request.query_params.get("after", "0")
    if not after.isdecimal():
        raise ServiceError(f"after is {quote(after)}, which is not the id of a file")
    return int(after)


@get("/local/files/{file_id:int}")
async def read_file(request: AnyRequest) -> FileResponse:
    """Return the content of an opened file, or of the companion that `companion` names."""
    file = app_of(request).find(request.path_params["file_id"])
    name = request.query_params.get("companion")
    path = file.path if name is None else file.find_companion(name)
    if path is None or not path.is_file():
        raise ServiceError(f"{path or quote(name or '')} no longer exists; open it again", error_code="not_found")
    headers = {"Cache-Control": "no-store"}
    return file_response(
        state_of(request).resources.threads, path, "application/octet-stream", label(path.name), headers
    )


@delete("/local/files/{file_id:int}", status_code=204)
async def close_file(request: AnyRequest) -> None:
    """Close an opened file: new tabs do not show it, and those that have it keep it."""
    app_of(request).close(request.path_params["file_id"])


@post("/local/files/{file_id:int}/results", status_code=201, request_max_body_size=None)
async def save_result(request: AnyRequest) -> Response[bytes]:
    """Save the body as a file of this `name` in the folder of an opened file; return its path."""
    threads = state_of(request).resources.threads
    name = label(request.query_params.get("name", ""))
    with app_of(request).saving(request.path_params["file_id"], name) as result:
        path = result.path
        try:
            async for chunk in request.stream():
                await threads.run(result.write, chunk)
        except InternalServerException as error:
            raise ServiceError("the page was closed before the result was complete; save it again") from error
    body = msgspec.json.encode({"path": to_text(str(path)), "name": path.name})
    return Response(body, status_code=201, media_type="application/json")


@post("/local/downloads", status_code=204)
async def report_download(request: AnyRequest) -> None:
    """Recognize a file that the page passes to the browser, so that it is not shown as new in a watched folder."""
    try:
        app_of(request).keep_own(msgspec.json.decode(await request.body(), type=Content))
    except msgspec.DecodeError as error:
        raise ServiceError(f"the body is not the size and SHA-256 of a file: {error}") from None


@get("/local/slicers")
async def list_slicers() -> dict[str, str]:
    """Return the names of the installed slicers by id."""
    return {id_: label for id_, (label, _) in find_slicers().items()}


@post("/local/slicers/{slicer:str}", status_code=204)
async def open_result(request: AnyRequest) -> None:
    """Open a saved result in a slicer; its `path` is in the query."""
    slicer = request.path_params["slicer"]
    path = app_of(request).find_saved(request.query_params.get("path", ""))
    _, program = find_slicers().get(slicer, ("", ""))
    if not program:
        raise ServiceError(f"the slicer {quote(slicer)} is not installed", error_code="not_found")
    try:
        open_in_slicer(program, path)
    except OSError as error:
        raise ServiceError(
            f"the slicer {quote(slicer)} does not start: {error.strerror}; open {path} in it", error_code="not_found"
        ) from error


HANDLERS = (
    open_files, list_files, follow_files, read_file, close_file, save_result, report_download, list_slicers,
    open_result,
)  # fmt: skip
"""Handlers of the app."""


def app_of(connection: Any) -> LocalApp:
    """Return the app that received this connection."""
    app = state_of(connection).local_app
    assert app is not None
    return app
