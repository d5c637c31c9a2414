"""Uploads to a real OctoPrint with its virtual printer, and to a real Moonraker: see tox.ini."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from meshhub_printers.files import open_printer
from meshhub_printers.hosts import FILE_VARIABLE, read_hosts
from meshhub_printers.services import SERVICES

from meshhub import OutputExists

pytestmark = pytest.mark.large

KEY = "0123456789ABCDEF0123456789ABCDEF"
GCODE = "".join(["G28\n", *(f"G1 X{number % 20} Y{number % 7} F6000\n" for number in range(200))])
OCTOPRINT = f"""
api: {{key: {KEY}, allowCrossOrigin: false}}
server: {{firstRun: false, onlineCheck: {{enabled: false}}, seenWizards: {{corewizard: 4, backup: 1}}}}
plugins:
  virtual_printer: {{enabled: true, forceChecksum: false}}
  tracking: {{enabled: false}}
  _disabled: [softwareupdate, announcements, pluginmanager, discovery, errortracking]
serial: {{port: VIRTUAL, autoconnect: true, baudrate: 115200}}
"""
MOONRAKER = """
[server]
host: 127.0.0.1
port: {port}
klippy_uds_address: {folder}/klippy.sock
[authorization]
force_logins: False
[machine]
validate_service: False
provider: none
"""


def find_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return int(unused.getsockname()[1])


def wait(condition: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while True:
        with contextlib.suppress(httpx.HTTPError, OSError):
            if condition():
                return
        assert time.monotonic() < deadline, "the condition was not met in time"
        time.sleep(0.2)


@contextlib.contextmanager
def running(command: list[str], folder: Path) -> Iterator[None]:
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd=folder)
        try:
            yield
        finally:
            process.terminate()
            process.wait(30)


def configure(folder: Path, monkeypatch: pytest.MonkeyPatch, kind: str, port: int, key: str) -> None:
    file = folder / "printers.toml"
    file.write_text(f'[shop]\nkind = "{kind}"\nurl = "http://127.0.0.1:{port}"\nkey = "{key}"\n')
    file.chmod(0o600)
    monkeypatch.setenv(FILE_VARIABLE, str(file))


def read_state(kind: str) -> str:
    return SERVICES[kind](read_hosts()["shop"], "shop").read_state()


def store(address: str, folder: Path, *, overwrite: bool = False) -> None:
    file = folder / "result.gcode"
    file.write_text(GCODE)
    open_printer(address).store([file], overwrite=overwrite)


@pytest.fixture
def octoprint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[httpx.Client]:
    program = shutil.which("octoprint")
    if program is None:
        pytest.skip("OctoPrint is not installed")
    (tmp_path / "config.yaml").write_text(OCTOPRINT)
    port = find_port()
    configure(tmp_path, monkeypatch, "octoprint", port, KEY)
    command = [program, "serve", "--iknowwhatimdoing", "--basedir", str(tmp_path), "--host", "127.0.0.1"]
    with (
        running([*command, "--port", str(port)], tmp_path),
        httpx.Client(base_url=f"http://127.0.0.1:{port}", headers={"X-Api-Key": KEY}, trust_env=False) as client,
    ):
        wait(lambda: read_state("octoprint") == "operational")
        yield client


def has_printed(client: httpx.Client, name: str) -> bool:
    answer = client.get(f"/api/files/local/{name}").json()
    return bool(answer.get("prints", {}).get("success", 0) == 1)


def test_octoprint_stores_and_prints_once(octoprint: httpx.Client, tmp_path: Path) -> None:
    store("octoprint://shop/stored.gcode", tmp_path)
    assert octoprint.get("/api/files/local/stored.gcode").status_code == 200
    with pytest.raises(OutputExists):
        store("octoprint://shop/stored.gcode", tmp_path)
    store("octoprint://shop/stored.gcode", tmp_path, overwrite=True)
    store("octoprint://shop/folder/printed.gcode?print=true", tmp_path)
    wait(lambda: has_printed(octoprint, "folder/printed.gcode"))
    assert "prints" not in octoprint.get("/api/files/local/stored.gcode").json()


def test_octoprint_rejects_a_wrong_key(
    octoprint: httpx.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(tmp_path, monkeypatch, "octoprint", octoprint.base_url.port or 80, "F" * 32)
    with pytest.raises(OSError, match="shop rejects the key"):
        store("octoprint://shop/part.gcode", tmp_path)
    assert octoprint.get("/api/files/local/part.gcode").status_code == 404


def test_one_command_from_stl_to_a_print(octoprint: httpx.Client, tmp_path: Path) -> None:
    pytest.importorskip("meshhub_slicer")
    if shutil.which("prusa-slicer") is None:
        pytest.skip("PrusaSlicer is not installed")
    bracket = Path(__file__).parents[3] / "examples" / "bracket.stl"
    options = ["--slicer-printer", "prusa-mk3s", "--slicer-quality", "draft", "--target-height-mm", "4"]
    command = [sys.executable, "-m", "meshhub", "convert", str(bracket), "octoprint://shop/bracket.gcode?print=true"]
    subprocess.run([*command, *options], check=True)
    wait(lambda: has_printed(octoprint, "bracket.gcode"), 400)


@pytest.fixture
def moonraker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[httpx.Client]:
    program = shutil.which("moonraker")
    if program is None:
        pytest.skip("Moonraker is not installed")
    port = find_port()
    for name in ("config", "gcodes", "logs"):
        (tmp_path / "data" / name).mkdir(parents=True)
    (tmp_path / "data" / "config" / "moonraker.conf").write_text(MOONRAKER.format(port=port, folder=tmp_path))
    configure(tmp_path, monkeypatch, "moonraker", port, "")
    with (
        running([program, "-d", str(tmp_path / "data"), "-n"], tmp_path),
        httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client,
    ):
        wait(lambda: client.get("/server/info").status_code in (200, 401))
        yield client


def test_moonraker_stores(moonraker: httpx.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OSError, match="shop rejects the key"):
        store("moonraker://shop/part.gcode", tmp_path)
    key = find_key(tmp_path / "data")
    configure(tmp_path, monkeypatch, "moonraker", moonraker.base_url.port or 80, key)
    store("moonraker://shop/folder/part.gcode", tmp_path)
    assert (tmp_path / "data/gcodes/folder/part.gcode").read_text() == GCODE
    with pytest.raises(OutputExists):
        store("moonraker://shop/folder/part.gcode", tmp_path)
    # no Klipper runs, so nothing may be sent to be printed
    with pytest.raises(OSError, match="nothing was sent"):
        store("moonraker://shop/started.gcode?print=true", tmp_path)
    assert not (tmp_path / "data/gcodes/started.gcode").exists()


def find_key(data: Path) -> str:
    """Return the key that Moonraker made, from its database."""
    import sqlite3

    (file,) = (data / "database").glob("moonraker-sql.db")
    with contextlib.closing(sqlite3.connect(file)) as database:
        rows = database.execute("SELECT password FROM authorized_users WHERE username = '_API_KEY_USER_'").fetchall()
    return str(rows[0][0])
