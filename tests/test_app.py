"""`meshhub app` as a process: its browser, its second start, the folder that it watches, and its end."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from meshhub import Registry
from meshhub.cli.app_instance import Address
from meshhub.cli.desktop_entry import install
from waiting import MAX_WAIT_S, wait_until

pytest.importorskip("litestar", reason="needs the extra 'http'")
pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(sys.platform == "win32", reason="a signal ends a program in another way there"),
]

BRACKET = Path(__file__).parent.parent / "examples" / "bracket.stl"

PROGRAM = """
import importlib
from meshhub.cli import watch
watch.POLL_S, watch._SETTLE_S = 0.05, 0.3
importlib.import_module("meshhub.cli.app")._BROWSER_START_S = 2.0
from meshhub.__main__ import main
main()
"""
"""The program, with a fraction of its waits."""

BROWSER = """#!/bin/sh
echo "$@" >> "$MESHHUB_TEST_OPENED"
exit 0
"""
"""Browser that writes what it is to open."""


class Tab:
    """Connection of a tab, with the names of the files that it is informed of."""

    def __init__(self, address: Address) -> None:
        self.names: list[str] = []
        connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=MAX_WAIT_S)
        connection.request("GET", "/local/files/events", headers={"X-Meshhub-Token": address.token})
        self._socket = connection.sock
        self._response = connection.getresponse()
        assert self._response.status == 200
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while line := self._response.readline():
            if line.startswith(b"data: "):
                self.names += [file["name"] for file in json.loads(line.removeprefix(b"data: "))]

    def close(self) -> None:
        with contextlib.suppress(OSError):
            # closed already, or the app has ended
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._response.close()
        self._socket.close()


class Programs:
    """Processes of one user."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.opened = folder / "opened"
        self._processes: list[subprocess.Popen[bytes]] = []
        self._tabs: list[Tab] = []
        browser = folder / "bin/chromium"
        browser.parent.mkdir()
        browser.write_text(BROWSER)
        browser.chmod(0o755)

    def start(self, *arguments: object, display: str = "") -> subprocess.Popen[bytes]:
        names = ("DISPLAY", "WAYLAND_DISPLAY")
        environment = {name: value for name, value in os.environ.items() if name not in names}
        environment |= {
            "HOME": str(self.folder),
            "XDG_STATE_HOME": str(self.folder / "state"),
            "XDG_DATA_HOME": str(self.folder / "share"),
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "MESHHUB_TEST_OPENED": str(self.opened),
            # limits of callers do not concern the owner
            "MESHHUB_PLAN_FREE_MAX_BATCH_FILES": "1",
            "http_proxy": "http://127.0.0.1:9",
            **({"DISPLAY": display} if display else {}),
        }
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, "app", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=self.folder,
        )
        self._processes.append(process)
        return process

    def read_address(self, process: subprocess.Popen[bytes]) -> Address:
        assert process.stdout is not None
        match = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/#token=([\w-]{32})\n", process.stdout.readline().decode())
        assert match is not None, process.communicate()
        return Address(int(match[1]), match[2])

    def connect(self, address: Address) -> Tab:
        self._tabs.append(Tab(address))
        return self._tabs[-1]

    def end(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.kill()
            process.communicate()
        for tab in self._tabs:
            tab.close()


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    programs = Programs(tmp_path)
    yield programs
    programs.end()


def test_the_app_ends_after_its_last_tab(programs: Programs) -> None:
    process = programs.start(BRACKET, "--no-browser", "--end-after", "0.5")
    address = programs.read_address(process)
    first, second = programs.connect(address), programs.connect(address)
    wait_until(lambda: first.names == second.names == ["bracket.stl"])
    first.close()
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(2)
    second.close()
    assert process.wait(MAX_WAIT_S) == 0
    assert not programs.opened.exists()
    assert not list((programs.folder / "state/meshhub").glob("app.json"))
    assert process.communicate() == (b"", b"")


def test_the_app_ends_if_no_browser_is_found_and_no_tab_opened(programs: Programs) -> None:
    process = programs.start(BRACKET, "--end-after", "0.5")
    output, errors = process.communicate(timeout=MAX_WAIT_S)
    assert process.returncode == 0, errors
    assert output.startswith(b"http://127.0.0.1:")
    assert b"no browser was found" in errors


def test_the_app_ends_if_the_browser_shows_no_tab(programs: Programs) -> None:
    process = programs.start("--end-after", "0.5", display=":0")
    programs.read_address(process)
    assert process.wait(MAX_WAIT_S) == 0
    assert programs.opened.read_text().startswith("--app=http://127.0.0.1:")


def test_a_start_waits_for_an_app_that_ends(programs: Programs) -> None:
    """The first ends by a signal, although it has a tab."""
    first = programs.start("--no-browser")
    programs.connect(programs.read_address(first))
    first.send_signal(signal.SIGINT)
    second = programs.start("--no-browser")
    address = programs.read_address(second)
    assert first.wait(MAX_WAIT_S) == 0
    programs.connect(address)


@pytest.mark.large
def test_a_second_start_opens_its_files_in_the_first(programs: Programs, tmp_path: Path) -> None:
    process = programs.start("--no-browser")
    address = programs.read_address(process)
    tab = programs.connect(address)
    shutil.copy(BRACKET, tmp_path / "second.stl")
    second = programs.start("second.stl")
    assert second.wait(MAX_WAIT_S) == 0
    wait_until(lambda: tab.names == ["second.stl"])
    # a folder stands for the models in it
    (tmp_path / "models").mkdir()
    shutil.copy(BRACKET, tmp_path / "models/third.stl")
    (tmp_path / "models/notes.txt").write_text("x")
    assert programs.start("models").wait(MAX_WAIT_S) == 0
    wait_until(lambda: tab.names == ["second.stl", "third.stl"])
    watching = programs.start("--watch", "models")
    assert watching.wait(MAX_WAIT_S) == 2
    assert b"already runs" in watching.communicate()[1]
    # without a tab, the second start opens a window
    tab.close()
    third = programs.start(BRACKET, display=":0")
    assert third.wait(MAX_WAIT_S) == 0
    wait_until(lambda: programs.opened.exists() and address.url in programs.opened.read_text())
    assert process.poll() is None


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_a_name_that_is_not_utf_8_is_shown_and_read(programs: Programs, tmp_path: Path) -> None:
    source = tmp_path / os.fsdecode(b"caf\xe9.stl")
    shutil.copy(BRACKET, source)
    address = programs.read_address(programs.start(BRACKET, "--no-browser"))
    tab = programs.connect(address)
    second = programs.start(source)
    assert second.communicate(timeout=MAX_WAIT_S)[1:] == (b"opened in the window of the running app\n",)
    wait_until(lambda: tab.names == ["bracket.stl", "caf\ufffd.stl"])
    connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=MAX_WAIT_S)
    connection.request("GET", "/local/files/2", headers={"X-Meshhub-Token": address.token})
    assert connection.getresponse().read() == BRACKET.read_bytes()
    connection.close()


def test_a_file_in_place_of_the_state_folder_is_named(programs: Programs) -> None:
    path = programs.folder / "state/meshhub"
    path.parent.mkdir(exist_ok=True)
    path.touch()
    process = programs.start("--no-browser")
    assert process.wait(MAX_WAIT_S) == 6
    assert f"{path} must be a folder" in process.communicate()[1].decode()


@pytest.mark.large
def test_the_app_starts_again_after_it_was_killed(programs: Programs) -> None:
    process = programs.start("--no-browser")
    old = programs.read_address(process)
    process.kill()
    process.wait(MAX_WAIT_S)
    assert programs.read_address(programs.start("--no-browser")).token != old.token


def test_the_next_start_has_the_same_port(programs: Programs) -> None:
    """Browsers keep presets, the theme and the palette by the port."""

    def start_and_end() -> Address:
        process = programs.start("--no-browser")
        address = programs.read_address(process)
        process.terminate()
        assert process.wait(MAX_WAIT_S) == 0, process.communicate()
        return address

    first = start_and_end()
    again = start_and_end()
    assert (again.port, again.token != first.token) == (first.port, True)
    # another program has the port in the meantime
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", first.port))
        other.listen()
        elsewhere = start_and_end()
    assert elsewhere.port != first.port
    assert start_and_end().port == first.port


@pytest.mark.parametrize("content", [b"", b"\xff", b"{}", b'[0, true, "80", 70000, 1]', b"[" * 100_000])
def test_damaged_ports_of_earlier_starts_are_ignored(programs: Programs, content: bytes) -> None:
    path = programs.folder / "state/meshhub/app-ports.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    address = programs.read_address(programs.start("--no-browser"))
    assert json.loads(path.read_bytes()) == [address.port]


def test_ports_that_cannot_be_kept_do_not_prevent_a_start(programs: Programs) -> None:
    (programs.folder / "state/meshhub/app-ports.json").mkdir(parents=True)
    programs.read_address(programs.start("--no-browser"))


def test_the_window_has_the_address_which_only_the_user_can_read(programs: Programs) -> None:
    process = programs.start(BRACKET, display=":0")
    address = programs.read_address(process)
    folder = programs.folder / "state/meshhub"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    wait_until(lambda: programs.opened.exists() and programs.opened.read_text())
    assert programs.opened.read_text().startswith(f"--app={address.url} ")


def test_new_files_of_a_watched_folder_appear(programs: Programs, tmp_path: Path) -> None:
    folder = tmp_path / "downloads"
    folder.mkdir()
    shutil.copy(BRACKET, folder / "old.stl")
    tab = programs.connect(programs.read_address(programs.start("--watch", folder, "--no-browser")))
    shutil.copy(BRACKET, folder / "new.stl")
    (folder / "notes.txt").write_text("x")
    wait_until(lambda: tab.names)
    shutil.copy(BRACKET, folder / "newest.stl")
    wait_until(lambda: len(tab.names) > 1)
    assert tab.names == ["new.stl", "newest.stl"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(("missing.stl",), "'missing.stl' does not exist"), (("--watch", "missing"), "'missing' does not exist")],
)
def test_what_is_missing_is_an_error(programs: Programs, arguments: tuple[str, ...], message: str) -> None:
    process = programs.start(*arguments)
    assert process.wait(MAX_WAIT_S) == 2
    assert message in process.communicate()[1].decode()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="desktop entries are for Linux")
def test_the_command_of_the_desktop_entry_keeps_special_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = '/opt/a $b/"c"/`d`/e\\f/100%/python'
    monkeypatch.setattr(sys, "executable", program)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    path = next(iter(install(Registry(entry_points=False))))
    (line,) = [line for line in path.read_text().splitlines() if line.startswith("Exec=")]
    # the escapes of a string, then those of a quoted argument
    command = line.removeprefix("Exec=").replace("\\\\", "\\").replace("%%", "%")
    arguments = [re.sub(r"\\(.)", r"\1", each) for each in re.findall(r'"((?:[^"\\]|\\.)*)"', command)]
    assert arguments == [program, "-m", "meshhub"]
    assert command.endswith('" app %F')


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="desktop entries are for Linux")
def test_the_desktop_entry_opens_models(programs: Programs, tmp_path: Path) -> None:
    process = programs.start("--install-desktop-entry")
    output, _ = process.communicate()
    paths = [Path(line) for line in output.decode().splitlines()]
    assert process.returncode == 0
    assert len(paths) == 3
    parser = ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(paths[0], encoding="utf-8")
    entry: Any = parser["Desktop Entry"]
    assert entry["Exec"].endswith(" app %F")
    assert {"model/stl", "model/3mf", "model/step"} <= set(entry["MimeType"].split(";"))
    assert "application/octet-stream" not in entry["MimeType"]
    types = ElementTree.parse(paths[1]).getroot()
    patterns = {glob.get("pattern") for glob in types.iter() if glob.tag.endswith("}glob")}
    assert {"*.stl", "*.3mf", "*.ply", "*.step"} <= patterns
    assert paths[2].read_text().startswith("<svg")
    if validate := shutil.which("desktop-file-validate"):
        assert subprocess.run([validate, paths[0]], check=False).returncode == 0
