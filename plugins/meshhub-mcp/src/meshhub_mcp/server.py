"""Tools of the server: each reads and writes in allowed folders, and returns structured data."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable
from pathlib import PurePosixPath
from typing import Annotated, Any, ParamSpec, TypedDict, TypeVar

import msgspec
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field

from meshhub import Caller, MeshhubError, Progress, Registry, Request, Target
from meshhub.model.options import OptionField, option_fields
from meshhub.model.progress import Listener
from meshhub.pipeline.rates import RateCard
from meshhub_mcp.folders import Folders

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger("meshhub.mcp")

PROGRESS_S = 1.0
"""Seconds between progress notifications of a running conversion."""

_KEEPALIVE_SHARE = 1e-4
"""Minimum growth between notifications; a step that reports no fractions grows by 1 % in 100 s."""

INSTRUCTIONS = """\
Convert, inspect and draw 3D model files for printing. Paths are relative to the allowed folder. Results are new files:
an existing file is never replaced. Inspect a model before you convert it: 'watertight' shows whether it can be printed.
The tool 'check_model' lists what is wrong with a model, where, and the options of 'convert' that repair it ('remedy').
The tool 'quote_model' estimates weight, time and price of a print.
Options, such as repair=true or target_height_mm=40, are listed by the tool 'supported'. A failed call has an
'error_code', which stays the same between versions."""

READ_ONLY = ToolAnnotations(read_only_hint=True, open_world_hint=False)
WRITES_NEW_FILES = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False
)

PathText = Annotated[str, Field(description="Path in an allowed folder, such as 'parts/bracket.stl'", max_length=4096)]
Options = Annotated[
    dict[str, str | bool | int | float],
    Field(description="Options by name, as the tool 'supported' lists them, such as {'repair': true}"),
]

NO_OPTIONS: dict[str, str | bool | int | float] = {}


class ConvertResult(TypedDict):
    """Result of a conversion."""

    target: str
    """Path of the result."""

    companions: list[str]
    """Names of further files beside the result, such as materials."""

    report: dict[str, Any]
    """Sizes, faces, losses, notes, and the figures of each step."""


class ListResult(TypedDict):
    """Model files of a folder."""

    files: list[dict[str, Any]]
    """Path and size in bytes."""

    is_truncated: bool
    """Whether there are more files than the list contains."""


class SupportResult(TypedDict):
    """Formats, operations, checks and options."""

    formats: list[dict[str, Any]]
    operations: list[dict[str, Any]]
    checks: list[dict[str, Any]]
    """With the options that only 'check_model' and 'quote_model' take."""

    options: list[dict[str, Any]]


class LimitsResult(TypedDict):
    """Limits of this server, and the plans."""

    max_file_bytes: int
    timeout_seconds: float
    plan: str
    grants: list[str]
    plans: list[dict[str, Any]]


class Tools:
    """The tools; a method is a tool, and its docstring is the description that assistants read."""

    def __init__(
        self,
        registry: Registry,
        folders: Folders,
        caller: Caller,
        max_bytes: int,
        timeout_s: float,
        rates: RateCard | None = None,
    ) -> None:
        self._registry, self._folders, self._caller = registry, folders, caller
        self._max_bytes, self._timeout_s, self._rates = max_bytes, timeout_s, rates

    async def list_models(self, folder: PathText = ".") -> ListResult:
        """List the model files in an allowed folder and below."""
        readers = self._registry.declarations.readers
        extensions = frozenset(name for reader in readers for name in reader.capability.format.extensions)
        files, is_truncated = await asyncio.to_thread(self._folders.list_files, folder, extensions)
        return {"files": [{"path": file.path, "bytes": file.size} for file in files], "is_truncated": is_truncated}

    async def convert(
        self,
        source: PathText,
        target: PathText,
        context: Context,
        to: str | None = None,
        options: Options = NO_OPTIONS,
    ) -> ConvertResult:
        """Convert a model file to a new file. The extension of the target determines the format; `to` overrides it."""
        await asyncio.to_thread(self._folders.check_new, target)
        model = await asyncio.to_thread(self._folders.read, source)
        result = Target("result")
        report = await self._with_progress(
            context,
            lambda listener: self._registry.convert_async(
                model,
                result,
                target=to or PurePosixPath(target).suffix or None,
                caller=self._caller,
                timeout=self._timeout_s,
                progress=listener,
                options=options,
            ),
        )
        companions = {name: result.read(name) for name in result.names[1:]}
        await asyncio.to_thread(self._folders.write, target, result.read(), companions)
        await context.report_progress(1.0, 1.0, "written")
        return {"target": target, "companions": sorted(companions), "report": msgspec.to_builtins(report)}

    async def inspect(self, source: PathText, context: Context, options: Options = NO_OPTIONS) -> dict[str, Any]:
        """Inspect a model file: size in millimeters, faces, bodies, holes, volume, and whether it is watertight."""
        model = await asyncio.to_thread(self._folders.read, source)
        inspection = await self._with_progress(
            context,
            lambda listener: self._registry.inspect_async(
                model, caller=self._caller, timeout=self._timeout_s, progress=listener, options=options
            ),
        )
        result: dict[str, Any] = msgspec.to_builtins(inspection)
        return result

    async def check_model(self, source: PathText, context: Context, options: Options = NO_OPTIONS) -> dict[str, Any]:
        """Check whether a model prints: a verdict, and findings with places and options of 'convert' that repair them.

        With options of operations, the model is checked after them. The options 'checks' and 'skip_checks' take ids of
        checks, separated by commas, as the tool 'supported' lists them.
        """
        model = await asyncio.to_thread(self._folders.read, source)
        verdict = await self._with_progress(
            context,
            lambda listener: self._registry.check_async(
                model, caller=self._caller, timeout=self._timeout_s, progress=listener, options=options
            ),
        )
        result: dict[str, Any] = msgspec.to_builtins(verdict)
        return result

    async def quote_model(self, source: PathText, context: Context, options: Options = NO_OPTIONS) -> dict[str, Any]:
        """Estimate a print: weight, support and time of one piece, and the price if the server has a rate card.

        Amounts of money are texts. With options of operations, the model is quoted after them. Further options:
        'quantity', 'material' (of the rate card), and those of checks, such as 'print_infill_percent'.
        """
        model = await asyncio.to_thread(self._folders.read, source)
        quote = await self._with_progress(
            context,
            lambda listener: self._registry.quote_async(
                model,
                rates=self._rates,
                caller=self._caller,
                timeout=self._timeout_s,
                progress=listener,
                options=options,
            ),
        )
        result: dict[str, Any] = msgspec.to_builtins(quote)
        return result

    async def explain(self, source: PathText, to: str, options: Options = NO_OPTIONS) -> dict[str, Any]:
        """Show the steps of a conversion, their reasons, and possible losses, without converting."""
        model = await asyncio.to_thread(self._folders.read, source)
        request = Request(target=to, options=options)
        chain = await asyncio.to_thread(self._registry.resolve, request, model, self._caller)
        result: dict[str, Any] = msgspec.to_builtins(chain)
        return result

    async def render(self, source: PathText, context: Context, options: Options = NO_OPTIONS) -> Image:
        """Draw a picture of a model file. Options: view ('iso,front'), size ('800x600'), and those of the reader."""
        model = await asyncio.to_thread(self._folders.read, source)
        picture = Target("picture.png")
        await self._with_progress(
            context,
            lambda listener: self._registry.render_async(
                model, picture, caller=self._caller, timeout=self._timeout_s, progress=listener, options=options
            ),
        )
        return Image(data=picture.read(), format="png")

    async def supported(self) -> SupportResult:
        """List formats, operations, checks and options, including those of installed plug-ins."""
        declarations = self._registry.declarations
        readable = {item.capability.format.id for item in declarations.readers if not item.missing}
        allowed = self._caller.plan.allows
        writable = {
            item.capability.format.id
            for item in declarations.writers
            if not item.missing and allowed(item.capability.requires)
        }
        return {
            "formats": [
                {
                    "id": item.id,
                    "label": item.label,
                    "extensions": list(item.extensions),
                    "read": item.id in readable,
                    "write": item.id in writable,
                }
                for item in self._registry.formats.values()
            ],
            "operations": [
                {"id": item.id, "label": item.label, "allowed": allowed(item.requires)}
                for item in self._registry.operations.values()
            ],
            "checks": [
                {
                    "id": check.capability.id,
                    "label": check.capability.label,
                    "options": list(map(_describe_option, option_fields(check.capability.options))),
                }
                for check in declarations.checks
            ],
            "options": list(map(_describe_option, self._registry.options.values())),
        }

    async def plan_limits(self) -> LimitsResult:
        """Return the limits of this server, and the plans that exist."""
        return {
            "max_file_bytes": self._max_bytes,
            "timeout_seconds": self._timeout_s,
            "plan": self._caller.plan.id,
            "grants": sorted(self._caller.plan.grants),
            "plans": [msgspec.to_builtins(plan) for plan in self._registry.plans.values()],
        }

    async def _with_progress(self, context: Context, start: Callable[[Listener], Awaitable[T]]) -> T:
        """Start the work with a listener and await it; report the finished share of its steps, below 1."""
        latest: Progress | None = None

        def listen(progress: Progress) -> None:
            nonlocal latest
            latest = progress

        async def report() -> None:
            share = 0.0
            while True:
                # each notification must have a greater value (MCP, "Progress"), and keeps the client waiting
                share = max(share + _KEEPALIVE_SHARE, _find_share(latest))
                if share < 1:
                    await context.report_progress(share, 1.0, "waiting" if latest is None else latest.label)
                await asyncio.sleep(PROGRESS_S)

        reporting = asyncio.ensure_future(report())
        # a client that has left must not end the conversion, and nothing awaits this task
        reporting.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            return await start(listen)
        finally:
            reporting.cancel()


def _describe_option(field: OptionField) -> dict[str, Any]:
    return {name: value for name, value in msgspec.to_builtins(field).items() if value not in (None, [], "")}


def _find_share(progress: Progress | None) -> float:
    """Return the finished share of all steps; 0 before the first one."""
    return 0.0 if progress is None else (progress.index + (progress.fraction or 0.0)) / progress.count


def with_codes(tool: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T | CallToolResult]]:
    """Return a tool whose errors have a code as structured data, and a message that an assistant can act on."""

    @functools.wraps(tool)
    async def call(*args: P.args, **kwargs: P.kwargs) -> T | CallToolResult:
        try:
            return await tool(*args, **kwargs)
        except MeshhubError as error:
            code, message = error.error_code, error.message
        except OSError as error:
            code, message = "output_failed", error.strerror or "the file cannot be written"
        except Exception:
            log.exception("the tool %s failed", tool.__name__)
            code, message = "internal_error", "the server has a defect; its log has the details"
        return CallToolResult(
            content=[TextContent(type="text", text=f"{message} [{code}]")],
            structured_content={"error": message, "error_code": code},
            is_error=True,
        )

    return call


def create_server(tools: Tools, version: str) -> MCPServer:
    """Return the server with all tools."""
    server: MCPServer = MCPServer(
        "meshhub", title="meshhub", instructions=INSTRUCTIONS, version=version, log_level="WARNING"
    )
    server.add_tool(with_codes(tools.convert), annotations=WRITES_NEW_FILES)
    reading = (
        tools.list_models,
        tools.inspect,
        tools.check_model,
        tools.quote_model,
        tools.explain,
        tools.render,
        tools.supported,
        tools.plan_limits,
    )
    for tool in reading:
        server.add_tool(with_codes(tool), annotations=READ_ONLY)
    return server
