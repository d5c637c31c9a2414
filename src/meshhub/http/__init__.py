"""The HTTP service: `create_app()` for any ASGI server, `serve()` for the command line.

Requires the packages of the extra `http`.
"""

from __future__ import annotations

from importlib.util import find_spec

from meshhub.model.installing import describe_install

_DEPENDENCIES = ("brotli", "limits", "litestar", "multipart", "prometheus_client", "sqlalchemy", "uvicorn")

_missing = [name for name in _DEPENDENCIES if find_spec(name) is None]
if _missing:
    raise ImportError(
        f"the HTTP service needs {', '.join(_missing)}, which is not installed; {describe_install('meshhub[http]')}",
        name=_missing[0],
    )

from meshhub.http.local_app import LocalApp  # noqa: E402
from meshhub.http.server.app import create_app  # noqa: E402
from meshhub.http.server.serving import serve, serve_app  # noqa: E402
from meshhub.service.settings import Settings  # noqa: E402

__all__ = ["LocalApp", "Settings", "create_app", "serve", "serve_app"]
