"""`meshhub-mcp`: serve over standard input and output, or over HTTP."""

from __future__ import annotations

import argparse
import hmac
import os
import socket
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from meshhub import LOCAL, Caller, Isolated, MeshhubError, Registry

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer
    from starlette.types import ASGIApp, Receive, Scope, Send

TOKEN_VARIABLE = "MESHHUB_MCP_TOKEN"  # noqa: S105 - the name of a variable
"""Environment variable with the token that HTTP requests must send."""

LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")
"""Hosts that other machines cannot reach."""

DEFAULT_MAX_BYTES = 256 << 20
"""Maximum bytes of a model file, because a file is held in memory."""

DEFAULT_TIMEOUT_S = 90.0
"""Seconds for one conversion, as on the command line."""


def main() -> None:
    """Parse the arguments and serve until the client ends the connection, or a signal ends the program."""
    parser = create_parser()
    arguments = parser.parse_args()
    if os.open not in os.supports_dir_fd:
        parser.error("this system cannot confine a program to folders; use Linux or macOS")
    host, port = (None, 0) if arguments.http is None else _parse_address(parser, arguments.http)
    if host is not None and host not in LOOPBACK_HOSTS and not os.environ.get(TOKEN_VARIABLE):
        parser.error(f"other machines can reach {host}: set {TOKEN_VARIABLE}, or serve on 127.0.0.1")
    # heavy imports follow the check of the arguments
    from meshhub.pipeline.rate_files import read_rates
    from meshhub_mcp.folders import Folders
    from meshhub_mcp.server import Tools, create_server

    with Registry(engine=Isolated(workers=arguments.workers)) as registry:
        for fault in registry.faults:
            print(f"plug-in {fault.plugin}: {fault.message}", file=sys.stderr)
        caller = _find_caller(parser, registry, arguments.plan)
        limits = caller.plan.limits
        max_bytes = min(arguments.max_file_bytes, limits.max_file_bytes or arguments.max_file_bytes)
        timeout_s = min(arguments.timeout, limits.conversion_timeout_seconds or arguments.timeout)
        try:
            folders = Folders(arguments.folder or [Path()], max_bytes)
            rates = None if arguments.rates is None else read_rates(arguments.rates)
        except OSError as error:
            parser.error(f"{error.filename}: {error.strerror}")
        except MeshhubError as error:
            parser.error(error.message)
        server = create_server(Tools(registry, folders, caller, max_bytes, timeout_s, rates), version("meshhub-mcp"))
        try:
            if host is None:
                server.run("stdio")
            else:
                serve_http(server, host, port)
        except KeyboardInterrupt:
            pass
        finally:
            folders.close()


def create_parser() -> argparse.ArgumentParser:
    """Return the parser of the arguments."""
    parser = argparse.ArgumentParser(
        prog="meshhub-mcp", description="Serve meshhub to AI assistants over the Model Context Protocol."
    )
    parser.add_argument(
        "--folder", action="append", type=Path, metavar="DIR",
        help="allowed folder, repeatable; relative paths belong to the first (default: the current folder)",
    )  # fmt: skip
    parser.add_argument("--http", metavar="HOST:PORT", help="serve over HTTP (default: standard input and output)")
    parser.add_argument("--plan", metavar="ID", help="plan whose entitlements and limits apply (default: no limits)")
    parser.add_argument("--rates", metavar="FILE", help="rate card (TOML) for prices (default: quotes have no price)")
    parser.add_argument(
        "--timeout", type=_positive(float), default=DEFAULT_TIMEOUT_S, metavar="SECONDS",
        help="limit of one conversion (default: %(default)g)",
    )  # fmt: skip
    parser.add_argument(
        "--max-file-bytes", type=_positive(int), default=DEFAULT_MAX_BYTES, metavar="BYTES",
        help="largest model file, with its companions (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--workers", type=_positive(int), default=2, help="parallel conversions (default: %(default)s)")
    parser.add_argument("--version", action="version", version=version("meshhub-mcp"))
    return parser


def serve_http(server: MCPServer, host: str, port: int) -> None:
    """Serve streamable HTTP at /mcp until a signal ends the program."""
    import uvicorn
    from mcp.server.transport_security import TransportSecuritySettings

    token = os.environ.get(TOKEN_VARIABLE, "")
    # with a token, a page of a browser cannot call the server, because it does not have the token
    security = None if host in LOOPBACK_HOSTS else TransportSecuritySettings(enable_dns_rebinding_protection=False)
    app: ASGIApp = server.streamable_http_app(host=host, transport_security=security)
    config = uvicorn.Config(_RequireToken(app, token) if token else app, log_level="warning", lifespan="on")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family) as listener:
        shown = f"[{host}]" if ":" in host else host
        print(f"listening on http://{shown}:{listener.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
        uvicorn.Server(config).run(sockets=[listener])


class _RequireToken:
    """Application that rejects requests without the token (RFC 6750 §2.1)."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = b"Bearer " + token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from starlette.responses import JSONResponse

        if scope["type"] == "http":
            sent = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(sent, self._expected):
                message = {"error": f"send the token of {TOKEN_VARIABLE} as 'Authorization: Bearer …'"}
                response = JSONResponse(message, 401, {"WWW-Authenticate": "Bearer"})
                await response(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _parse_address(parser: argparse.ArgumentParser, text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65_535 or not host:
        parser.error(f"--http {text}: write HOST:PORT, such as 127.0.0.1:8000")
    return host.strip("[]"), int(port)


def _find_caller(parser: argparse.ArgumentParser, registry: Registry, plan: str | None) -> Caller:
    if plan is None:
        return LOCAL
    if plan not in registry.plans:
        parser.error(f"--plan {plan}: the plans are {', '.join(registry.plans)}")
    return registry.entitled(Caller(plan=registry.plans[plan], id="mcp"))


def _positive(kind: type[int] | type[float]):  # type: ignore[no-untyped-def]
    def parse(text: str) -> float:
        value = kind(text)
        if not 0 < value < 1e12:
            raise ValueError
        return value

    parse.__name__ = "positive number"
    return parse


if __name__ == "__main__":
    main()
