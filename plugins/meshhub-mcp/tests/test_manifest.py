"""The manifest for registries of servers: it says what the server and its command line have."""

from __future__ import annotations

import json
import re
from importlib.metadata import version
from pathlib import Path

from mcp_servers import TOOLS
from meshhub_mcp.__main__ import create_parser

FOLDER = Path(__file__).parent.parent
MANIFEST = json.loads((FOLDER / "server.json").read_text(encoding="utf-8"))
(PACKAGE,) = MANIFEST["packages"]


def test_the_package_is_this_one() -> None:
    assert (PACKAGE["identifier"], PACKAGE["transport"]) == ("meshhub-mcp", {"type": "stdio"})
    assert MANIFEST["version"] == PACKAGE["version"] == version("meshhub-mcp")
    # the registry finds the name in the description of the package on PyPI
    assert f"mcp-name: {MANIFEST['name']}" in (FOLDER / "README.md").read_text(encoding="utf-8")


def test_the_bounds_of_the_schema_hold() -> None:
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", MANIFEST["name"])
    assert len(MANIFEST["description"]) <= 100
    assert len(MANIFEST["title"]) <= 100


def test_the_arguments_are_those_of_the_command() -> None:
    words = []
    for argument in PACKAGE["packageArguments"]:
        assert argument["type"] == "named"
        words += [argument["name"], argument.get("default", "a")]
    arguments = create_parser().parse_args(words)
    assert (arguments.folder, arguments.rates) == ([Path("a")], "a")
    # a client that shows them would otherwise set others
    defaults = create_parser().parse_args([])
    assert (arguments.timeout, arguments.max_file_bytes) == (defaults.timeout, defaults.max_file_bytes)


def test_the_tools_are_those_of_the_server() -> None:
    assert set(MANIFEST["_meta"]["io.modelcontextprotocol.registry/publisher-provided"]["tools"]) == TOOLS
