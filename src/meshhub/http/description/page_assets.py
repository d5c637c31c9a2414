"""Page that shows the OpenAPI document with Swagger UI, and its scripts and styles."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from meshhub.http.responses.page_files import FOREVER, PageFile, load_file

VERSION = "5.35.0"
"""Version of Swagger UI in the folder `swagger_ui` and in `page.html`."""

_NAMES = (f"{VERSION}/swagger-ui.css", "style.css", f"{VERSION}/swagger-ui-bundle.js", "start.js")
"""Files that the page loads, relative to `schema/`."""

_FOLDER = Path(__file__).parent

PAGE = (_FOLDER / "page.html").read_bytes()

_HEADERS = {"X-Content-Type-Options": "nosniff"}


@cache
def load_assets() -> Mapping[str, PageFile]:
    """Return the scripts and styles by path, such as "/schema/start.js"."""
    files = {}
    for name in _NAMES:
        version, _, own = name.rpartition("/")
        path = _FOLDER / "swagger_ui" / own if version else _FOLDER / own
        files[f"/schema/{name}"] = load_file(path, {**_HEADERS, **({"Cache-Control": FOREVER} if version else {})})
    return files
