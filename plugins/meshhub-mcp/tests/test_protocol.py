"""The protocol as clients speak it: over standard input and output, and over HTTP on a real port."""

from __future__ import annotations

import asyncio
import base64
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from mcp import StdioServerParameters
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult
from mcp_servers import TOOLS, Server
from meshhub_mcp.folders import Folders
from meshhub_mcp.server import Tools

from meshhub import LOCAL, Progress, Registry

CORNERS = [(0, 0, 0), (10, 0, 0), (10, 20, 0), (0, 20, 0), (0, 0, 30), (10, 0, 30), (10, 20, 30), (0, 20, 30)]
QUADS = [(4, 3, 2, 1), (5, 6, 7, 8), (1, 2, 6, 5), (2, 3, 7, 6), (3, 4, 8, 7), (4, 1, 5, 8)]
BRICK = "".join([f"v {x} {y} {z}\n" for x, y, z in CORNERS] + [f"f {a} {b} {c} {d}\n" for a, b, c, d in QUADS])


def call(server: Server, *calls: tuple[str, dict[str, Any]]) -> list[CallToolResult]:
    async def run() -> list[CallToolResult]:
        async with Client(server.url) as client:
            return [await client.call_tool(name, arguments) for name, arguments in calls]

    return asyncio.run(run())


@pytest.fixture
def brick(server: Server, request: pytest.FixtureRequest) -> str:
    """Return the path of a model in a folder of this test."""
    folder = server.folder / request.node.name.partition("[")[0]
    folder.mkdir(exist_ok=True)
    (folder / "brick.obj").write_text(BRICK)
    return f"{folder.name}/brick.obj"


def test_every_tool_over_standard_input_and_output(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "brick.obj").write_text(BRICK)
    (tmp_path / "secret").mkdir()
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "meshhub_mcp", "--plan", "free"], env=environment, cwd=tmp_path
    )
    progress: list[float] = []

    async def receive(value: float, total: float | None, message: str | None) -> None:
        progress.append(value)

    async def run() -> None:
        async with Client(parameters) as client:
            tools = (await client.list_tools()).tools
            assert {tool.name for tool in tools} == TOOLS
            assert all(tool.description and tool.annotations for tool in tools)
            listed = await client.call_tool("list_models", {})
            assert listed.structured_content == {
                "files": [{"path": "brick.obj", "bytes": len(BRICK)}], "is_truncated": False,
            }  # fmt: skip
            arguments = {"source": "brick.obj", "target": "brick.stl", "options": {"target_height_mm": 60}}
            converted = await client.call_tool("convert", arguments, progress_callback=receive)
            assert not converted.is_error, converted
            assert converted.structured_content["report"]["target"]["size_mm"] == pytest.approx([20, 40, 60])
            limits = (await client.call_tool("plan_limits", {})).structured_content
            assert (limits["plan"], limits["max_file_bytes"]) == ("free", 20 << 20)
            paid = await client.call_tool("convert", {"source": "brick.obj", "target": "brick.step"})
            assert paid.structured_content["error_code"] == "premium_format_required"

    asyncio.run(run())
    assert len((tmp_path / "brick.stl").read_bytes()) == 84 + 50 * 12
    assert progress == sorted(set(progress))
    assert progress[-1] == 1
    assert sorted(os.listdir(tmp_path)) == ["brick.obj", "brick.stl", "secret"]


def test_every_tool_over_http(server: Server, brick: str) -> None:
    target = brick.replace(".obj", ".3mf")
    convert, inspect, check, quote, explain, render, supported = call(
        server,
        ("convert", {"source": brick, "target": target, "options": {"repair": True}}),
        ("inspect", {"source": target}),
        ("check_model", {"source": brick, "options": {"checks": "mesh", "place_on_bed": True}}),
        ("quote_model", {"source": brick, "options": {"print_process": "sls"}}),
        ("explain", {"source": brick, "to": "stl", "options": {"place_on_bed": "true"}}),
        ("render", {"source": brick, "options": {"size": "320x240"}}),
        ("supported", {}),
    )
    assert convert.structured_content["target"] == target
    assert (server.folder / target).read_bytes().startswith(b"PK")
    assert inspect.structured_content["model"]["watertight"]
    assert inspect.structured_content["model"]["volume_mm3"] == pytest.approx(6000)
    assert check.structured_content["verdict"] == "ready"
    assert [step["step"] for step in check.structured_content["checks"]] == ["mesh"]
    assert quote.structured_content["estimate"]["volume_mm3"] == pytest.approx(6000)
    assert quote.structured_content["price"] is None
    assert [step["id"] for step in explain.structured_content["steps"]] == ["obj", "place-on-bed", "stl"]
    picture = render.content[0]
    assert picture.type == "image"
    assert base64.b64decode(picture.data).startswith(b"\x89PNG")
    formats = {item["id"]: item for item in supported.structured_content["formats"]}
    assert formats["stl"]["read"]
    assert formats["stl"]["write"]
    # the plug-in of another distribution, found by entry point
    assert (formats["slow"]["read"], formats["slow"]["write"]) == (True, False)
    assert "mesh" in {check["id"] for check in supported.structured_content["checks"]}
    assert "repair" in {option["name"] for option in supported.structured_content["options"]}


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("inspect", {"source": "/etc/passwd"}, "path_not_allowed"),
        ("inspect", {"source": "../x.stl"}, "path_not_allowed"),
        ("inspect", {"source": "s3://bucket/a.stl"}, "not_found"),
        ("inspect", {"source": "missing.stl"}, "not_found"),
        ("check_model", {"source": "missing.stl"}, "not_found"),
        ("check_model", {"source": "{brick}", "options": {"checks": "paint"}}, "invalid_option"),
        ("quote_model", {"source": "{brick}", "options": {"material": "gold"}}, "invalid_option"),
        ("render", {"source": "missing.stl"}, "not_found"),
        ("explain", {"source": "missing.stl", "to": "stl"}, "not_found"),
        ("list_models", {"folder": "/"}, "path_not_allowed"),
        ("list_models", {"folder": "missing"}, "not_found"),
        ("convert", {"source": "{brick}", "target": "/tmp/x.stl"}, "path_not_allowed"),
        ("convert", {"source": "{brick}", "target": "missing/x.stl"}, "not_found"),
        ("convert", {"source": "{brick}", "target": "{brick}"}, "output_exists"),
        ("convert", {"source": "{brick}", "target": "x.xyz"}, "unsupported_target"),
        ("convert", {"source": "{brick}", "target": "x"}, "unsupported_target"),
        ("convert", {"source": "{brick}", "target": "x.stl", "options": {"repare": True}}, "invalid_option"),
        ("convert", {"source": "{brick}.large", "target": "x.stl"}, "file_too_large"),
        ("inspect", {"source": "{brick}.bad"}, "unsupported_format"),
    ],
)
def test_errors_have_codes_and_write_nothing(
    server: Server, brick: str, tool: str, arguments: dict[str, Any], code: str
) -> None:
    (server.folder / f"{brick}.large").write_bytes(b" " * 1_000_001)
    (server.folder / f"{brick}.bad").write_bytes(b"\x00 no model")
    before = sorted(server.folder.rglob("*"))
    arguments = {
        name: value.format(brick=brick) if isinstance(value, str) else value for name, value in arguments.items()
    }
    (result,) = call(server, (tool, arguments))
    assert result.is_error
    assert result.structured_content["error_code"] == code
    assert f"[{code}]" in result.content[0].text
    assert sorted(server.folder.rglob("*")) == before


def test_a_canceled_call_ends_its_worker_and_writes_nothing(server: Server, brick: str) -> None:
    folder = (server.folder / brick).parent
    mark = folder / "worker"
    (folder / "model.slow").write_text(str(mark))

    async def run() -> None:
        async with Client(server.url) as client:
            arguments = {"source": f"{folder.name}/model.slow", "target": f"{folder.name}/x.stl"}
            conversion = asyncio.ensure_future(client.call_tool("convert", arguments))
            await wait_until(lambda: mark.exists() and mark.read_text() != "")
            conversion.cancel()
            with suppress(asyncio.CancelledError):
                await conversion
            await wait_until(lambda: not is_running(int(mark.read_text())))
            after = await client.call_tool("inspect", {"source": brick})
            assert not after.is_error

    asyncio.run(run())
    assert not (folder / "x.stl").exists()


def test_a_conversion_ends_at_the_timeout(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "model.slow").write_text(str(tmp_path / "worker"))
    command = ["-m", "meshhub_mcp", "--timeout", "1", "--folder", str(tmp_path)]

    async def run() -> CallToolResult:
        async with Client(StdioServerParameters(command=sys.executable, args=command, env=environment)) as client:
            return await client.call_tool("inspect", {"source": "model.slow"})

    assert asyncio.run(run()).structured_content["error_code"] == "conversion_timeout"


async def wait_until(condition: Callable[[], bool], timeout_s: float = 30) -> None:
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end
        await asyncio.sleep(0.05)


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_page_of_another_host_cannot_call_the_server(server: Server) -> None:
    import httpx2

    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = {"Accept": "application/json, text/event-stream", "Origin": "http://evil.example"}
    assert httpx2.post(server.url, json=body, headers=headers).status_code == 403
    headers = {"Accept": "application/json, text/event-stream", "Host": "evil.example"}
    assert httpx2.post(server.url, json=body, headers=headers).status_code in (403, 421)


def test_a_token_is_required_where_one_is_set(environment: dict[str, str], tmp_path: Path) -> None:
    import httpx2

    command = [sys.executable, "-m", "meshhub_mcp", "--http", "0.0.0.0:0", "--folder", str(tmp_path)]
    refused = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (refused.returncode, "set MESHHUB_MCP_TOKEN" in refused.stderr) == (2, True)
    environment = {**environment, "MESHHUB_MCP_TOKEN": "token"}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        url = process.stderr.readline().removeprefix("listening on ").strip().replace("0.0.0.0", "127.0.0.1")

        async def run(token: str) -> set[str]:
            headers = {"Authorization": f"Bearer {token}"}
            async with (
                httpx2.AsyncClient(headers=headers) as http,
                Client(streamable_http_client(url, http_client=http)) as client,
            ):
                return {tool.name for tool in (await client.list_tools()).tools}

        try:
            assert asyncio.run(run("token")) == TOOLS
            assert httpx2.post(url, json={}).status_code == 401
            assert httpx2.post(url, json={}, headers={"Authorization": "Bearer tokem"}).status_code == 401
        finally:
            process.terminate()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--http", "8000"), "write HOST:PORT"),
        (("--http", "127.0.0.1:99999"), "write HOST:PORT"),
        (("--plan", "none"), "the plans are free, pro"),
        (("--folder", "/no/such/folder"), "No such file or directory"),
        (("--timeout", "0"), "invalid positive number"),
    ],
)
def test_bad_arguments(arguments: tuple[str, ...], message: str) -> None:
    command = [sys.executable, "-m", "meshhub_mcp", *arguments]
    process = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert (process.returncode, message in process.stderr) == (2, True), process.stderr


def test_notifications_follow_the_steps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("meshhub_mcp.server.PROGRESS_S", 0.01)
    received: list[tuple[float, str]] = []

    class Recorder:
        async def report_progress(self, value: float, total: float, message: str) -> None:
            assert total == 1.0
            received.append((value, message))

    async def work(listen: Callable[[Progress], None]) -> str:
        await asyncio.sleep(0.1)
        for index, fraction in ((0, 0.5), (1, None), (1, 0.9)):
            listen(
                Progress(
                    step="repair", kind="operation", label=f"Step {index}", index=index, count=4, fraction=fraction
                )
            )
            await asyncio.sleep(0.1)
        return "done"

    tools = Tools(Registry(entry_points=False), Folders([tmp_path], 1 << 20), LOCAL, 1 << 20, 60)
    assert asyncio.run(tools._with_progress(Recorder(), work)) == "done"
    values = [value for value, _ in received]
    assert values == sorted(set(values))
    assert received[0][1] == "waiting"
    by_step = {message: value for value, message in received}
    assert by_step["Step 0"] == pytest.approx(0.125, abs=0.01)
    assert by_step["Step 1"] == pytest.approx(0.475, abs=0.01)
