"""A server over HTTP on a real port, with a slow plug-in that is found by entry point."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from mcp_servers import Server

SLOW_PLUGIN = '''
"""Format `slow`: its reader writes the number of its process to the file's text as a path, and sleeps."""
from meshhub import Format, Reader, hookimpl

@hookimpl
def meshhub_readers():
    return [Reader(format=Format(id="slow", label="Slow", extensions=(".slow",)), run="slow_plugin:read")]

def read(source, options):
    import os, time
    with open(source.read().decode(), "w") as file:
        file.write(str(os.getpid()))
    time.sleep(60)
'''


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the environment of a server with the slow plug-in installed."""
    site = tmp_path_factory.mktemp("site")
    info = site / "meshhub_slow-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: meshhub-slow\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[meshhub]\nslow = slow_plugin\n")
    (site / "slow_plugin.py").write_text(SLOW_PLUGIN)
    return {**os.environ, "PYTHONPATH": str(site)}


@pytest.fixture(scope="session")
def server(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("models")
    command = [sys.executable, "-m", "meshhub_mcp", "--folder", str(folder), "--http", "127.0.0.1:0"]
    command += ["--max-file-bytes", "1000000", "--timeout", "30"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert line.startswith("listening on "), line + process.stderr.read()
        yield Server(line.removeprefix("listening on ").strip(), folder, environment)
        process.terminate()
        assert process.wait(30) in (0, -15), process.stderr.read()
