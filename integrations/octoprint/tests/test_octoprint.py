"""The plug-in in a real OctoPrint: `tox -e octoprint`."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("octoprint", reason="OctoPrint is installed in `tox -e octoprint`")

from meshhub import Registry

EXAMPLES = Path(__file__).parents[3] / "examples"
KEY = "0123456789abcdef0123456789abcdef"
WAIT_S = 240.0
"""Seconds for OctoPrint to start, and for a check with the lowest priority."""

OFFLINE = "tracking softwareupdate announcements pluginmanager discovery errortracking achievements".split()
"""Plug-ins of OctoPrint that ask the network."""


class Octoprint:
    """A running OctoPrint."""

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        self.folder = folder
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        config = {
            "api": {"key": KEY},
            "server": {"firstRun": False, "onlineCheck": {"enabled": False}, "pluginBlacklist": {"enabled": False}},
            "plugins": {"_disabled": OFFLINE, "meshhub": settings},
        }
        # JSON is YAML
        (folder / "config.yaml").write_text(json.dumps(config), encoding="utf-8")
        self._url = f"http://127.0.0.1:{port}/api/"
        serve = [sys.executable, "-m", "octoprint", "serve", "--iknowwhatimdoing", "--basedir", str(folder)]
        with (folder / "printed.txt").open("w") as printed:
            self._process = subprocess.Popen(
                [*serve, "--host", "127.0.0.1", "--port", str(port)], stdout=printed, stderr=printed
            )
        wait_for(lambda: isinstance(self.get("version"), dict), folder / "printed.txt")

    def get(self, path: str, data: bytes | None = None, kind: str = "application/json") -> Any:
        """Return the response to a request; None if OctoPrint does not answer."""
        request = urllib.request.Request(self._url + path, data, {"X-Api-Key": KEY, "Content-Type": kind})
        try:
            with urllib.request.urlopen(request, timeout=WAIT_S) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            return error.code
        except (OSError, http.client.HTTPException):
            # a part of it that answers while it starts speaks no HTTP
            return None

    def upload(self, name: str, data: bytes) -> Any:
        """Upload a file."""
        mark = uuid.uuid4().hex
        head = f'--{mark}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
        body = head.encode() + data + f"\r\n--{mark}--\r\n".encode()
        return self.get("files/local", body, f"multipart/form-data; boundary={mark}")

    def stored(self, name: str) -> Path:
        """Return where a file is."""
        return self.folder / "uploads" / name

    def log(self) -> str:
        """Return the log."""
        return (self.folder / "logs" / "octoprint.log").read_text(encoding="utf-8")

    def close(self) -> None:
        """Stop it."""
        self._process.terminate()
        self._process.wait(WAIT_S)


def wait_for(condition: Callable[[], Any], printed: Path) -> Any:
    """Return the first true value of a condition."""
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.5)
    raise AssertionError(printed.read_text(encoding="utf-8")[-4000:])


@pytest.fixture(scope="module")
def octoprint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Octoprint]:
    program = Octoprint(tmp_path_factory.mktemp("octoprint"), {"repair": True})
    yield program
    program.close()


def read_verdict(octoprint: Octoprint, name: str) -> Any:
    """Wait for the verdict about a file in what OctoPrint knows about it."""
    metadata = octoprint.folder / "uploads" / ".metadata.json"

    def read() -> Any:
        return json.loads(metadata.read_text(encoding="utf-8")).get(name, {}).get("meshhub")

    return wait_for(read, octoprint.folder / "printed.txt")


def test_an_upload_is_repaired_and_checked(octoprint: Octoprint) -> None:
    answer = octoprint.upload("bracket.stl", (EXAMPLES / "bracket.stl").read_bytes())
    assert answer["files"]["local"]["name"] == "bracket.stl"
    assert Registry(entry_points=False).inspect(octoprint.stored("bracket.stl")).model.watertight
    verdict = read_verdict(octoprint, "bracket.stl")
    assert verdict["verdict"] in ("ready", "check_this")
    assert "open_edges" not in {finding["code"] for finding in verdict["findings"]}
    # what it needed in between is gone
    assert list((octoprint.folder / "data" / "meshhub").iterdir()) == []


def test_a_file_that_cannot_be_repaired_stays_as_it_is(octoprint: Octoprint) -> None:
    octoprint.upload("text.stl", b"no model")
    assert octoprint.stored("text.stl").read_bytes() == b"no model"
    wait_for(lambda: "text.stl: could not be checked" in octoprint.log(), octoprint.folder / "printed.txt")
    assert "text.stl: could not be repaired" in octoprint.log()
    assert "[unreadable_file]" in octoprint.log()


def test_files_for_the_printer_are_left_alone(octoprint: Octoprint) -> None:
    octoprint.upload("a.gcode", b"G28\n")
    assert octoprint.stored("a.gcode").read_bytes() == b"G28\n"
    assert "a.gcode: could not" not in octoprint.log()


def test_without_repair_an_upload_is_only_checked(tmp_path: Path) -> None:
    octoprint = Octoprint(tmp_path, {})
    try:
        data = (EXAMPLES / "bracket.stl").read_bytes()
        octoprint.upload("bracket.stl", data)
        assert octoprint.stored("bracket.stl").read_bytes() == data
        verdict = read_verdict(octoprint, "bracket.stl")
        assert verdict["verdict"] == "will_not_print"
        assert "open_edges" in {finding["code"] for finding in verdict["findings"]}
        assert "16 edges are open" in octoprint.log()
    finally:
        octoprint.close()
