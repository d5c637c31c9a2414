"""Uploads to stand-ins for the three services; `test_printers_real.py` has real ones."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from meshhub_printers import EXTENSIONS
from meshhub_printers.files import open_printer
from meshhub_printers.hosts import FILE_VARIABLE
from printer_services import KEY, Printer, serving

from meshhub import Caller, InvalidOption, OutputExists, Plan, Registry, RequestError, UnreadableFile
from meshhub.cli import main
from meshhub.supported import supported

IDLE = {"octoprint": "Operational", "moonraker": "standby", "prusalink": "IDLE"}
GCODE = b"G28\nG1 X1 E1\n"


@pytest.fixture(params=IDLE)
def printer(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Printer]:
    with serving(Printer(request.param, IDLE[request.param])) as running:
        configure(tmp_path, monkeypatch, running.kind, running.url)
        yield running


def configure(folder: Path, monkeypatch: pytest.MonkeyPatch, kind: str, url: str, key: str = KEY) -> Path:
    file = folder / "printers.toml"
    file.write_text(f'[shop]\nkind = "{kind}"\nurl = "{url}"\nkey = "{key}"\n')
    file.chmod(0o600)
    monkeypatch.setenv(FILE_VARIABLE, str(file))
    return file


def run(*arguments: str) -> int:
    """Run the command line; return its status."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
        patch.setattr(sys, "argv", ["meshhub", *arguments])
        main()
    return int(ended.value.code or 0)


def store(printer: Printer, tmp_path: Path, name: str = "part.gcode", *, overwrite: bool = False) -> None:
    file = tmp_path / "result.gcode"
    file.write_bytes(GCODE)
    open_printer(f"{printer.kind}://shop/{name}").store([file], overwrite=overwrite)


def uploads_of(printer: Printer) -> list[str]:
    return [path for method, path in printer.requests if method != "GET"]


def test_a_file_is_uploaded_and_not_started(printer: Printer, tmp_path: Path) -> None:
    store(printer, tmp_path)
    assert printer.files == {"part.gcode": GCODE}
    assert printer.starts == []


def test_a_print_starts_once(printer: Printer, tmp_path: Path) -> None:
    store(printer, tmp_path, "part.gcode?print=true")
    assert printer.starts == ["part.gcode"]
    assert len(uploads_of(printer)) == 1


def test_a_busy_printer_gets_nothing(printer: Printer, tmp_path: Path) -> None:
    printer.state = "Printing"
    with pytest.raises(OSError, match="is printing, so no print starts and nothing was sent"):
        store(printer, tmp_path, "part.gcode?print=true")
    assert uploads_of(printer) == []
    store(printer, tmp_path)
    assert printer.starts == []


def test_an_existing_file_stays(printer: Printer, tmp_path: Path) -> None:
    store(printer, tmp_path, "folder/part.gcode")
    with pytest.raises(OutputExists, match="already exists on shop"):
        store(printer, tmp_path, "folder/part.gcode")
    printer.files["part.gcode"] = b"old"
    with pytest.raises(OutputExists, match="already exists on shop"):
        store(printer, tmp_path)
    assert printer.files["part.gcode"] == b"old"
    store(printer, tmp_path, overwrite=True)
    assert printer.files["part.gcode"] == GCODE


def test_a_full_printer_gets_nothing(printer: Printer, tmp_path: Path) -> None:
    printer.free = 5
    with pytest.raises(OSError, match="only 5 bytes free; delete files there"):
        store(printer, tmp_path)
    assert uploads_of(printer) == []


@pytest.mark.parametrize(
    ("status", "message"),
    [(507, "no room"), (413, "no room"), (409, "busy"), (500, "status 500"), (302, "status 302")],
)
def test_a_failed_upload_is_not_repeated(printer: Printer, tmp_path: Path, status: int, message: str) -> None:
    printer.upload_status = status
    with pytest.raises(OSError, match=message):
        store(printer, tmp_path, "part.gcode?print=true")
    assert len(uploads_of(printer)) == 1
    assert printer.files == {}


def test_a_print_that_does_not_start_is_reported(printer: Printer, tmp_path: Path) -> None:
    if printer.kind == "prusalink":
        pytest.skip("PrusaLink does not state whether a print started")
    printer.accepts_starts = False
    with pytest.raises(OSError, match="is on shop, but its print did not start"):
        store(printer, tmp_path, "part.gcode?print=true")


def test_a_wrong_key_is_named_and_not_shown(printer: Printer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(tmp_path, monkeypatch, printer.kind, printer.url, key="0badc0de")
    with pytest.raises(OSError, match="shop rejects the key; correct it in") as error:
        store(printer, tmp_path)
    assert "$MESHHUB_PRINTER_HOSTS" in str(error.value)
    assert "0badc0de" not in str(error.value)
    assert uploads_of(printer) == []


def test_an_unreachable_printer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
    configure(tmp_path, monkeypatch, "moonraker", url)
    with pytest.raises(OSError, match="shop cannot be reached; switch it on"):
        store(Printer("moonraker", ""), tmp_path)


def test_another_service_at_the_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Printer("prusalink", "IDLE")) as other:
        configure(tmp_path, monkeypatch, "octoprint", other.url)
        with pytest.raises(OSError, match=r"check its url|is unknown"):
            store(Printer("octoprint", ""), tmp_path, "part.gcode?print=true")
        assert other.files == {}


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("moonraker://shop/part.stl", "printers print G-code, not .stl"),
        ("moonraker://shop/../part.gcode", "has '..'"),
        ("moonraker://shop/", "is empty"),
        ("moonraker://shop/a.gcode?print=maybe", "no such options"),
        ("moonraker://shop/a.gcode?key=1", "no such options"),
        ("moonraker:///a.gcode", "no such options"),
        ("moonraker://shop/a\\b.gcode", "too long"),
    ],
)
def test_addresses_of_another_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, message: str) -> None:
    configure(tmp_path, monkeypatch, "moonraker", "http://127.0.0.1:9")
    with pytest.raises(RequestError, match=message):
        open_printer(address)


def test_printers_that_the_file_does_not_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(tmp_path, monkeypatch, "moonraker", "http://127.0.0.1:9")
    with pytest.raises(InvalidOption, match=r"no printer 'evil\.example' .* there are: shop"):
        open_printer("moonraker://evil.example/a.gcode")
    with pytest.raises(InvalidOption, match="is of kind moonraker; write moonraker://shop"):
        open_printer("octoprint://shop/a.gcode")


def test_a_file_that_others_can_read_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = configure(tmp_path, monkeypatch, "moonraker", "http://127.0.0.1:9")
    for mode in (0o644, 0o640, 0o604):
        file.chmod(mode)
        with pytest.raises(OSError, match="others can read it; run: chmod 600"):
            open_printer("moonraker://shop/a.gcode")
    file.unlink()
    with pytest.raises(InvalidOption, match=r"\"\$MESHHUB_PRINTER_HOSTS\" does not exist"):
        open_printer("moonraker://shop/a.gcode")


@pytest.mark.skipif(sys.platform != "linux", reason="the folder of settings is elsewhere there")
def test_messages_name_the_file_without_the_folders_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(FILE_VARIABLE, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    with pytest.raises(InvalidOption, match=r"no printers: ~/\.config/meshhub/network-printers\.toml does not exist"):
        open_printer("moonraker://shop/a.gcode")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/etc/of-this-machine")
    for home in (str(tmp_path), "/"):
        monkeypatch.setenv("HOME", home)
        with pytest.raises(InvalidOption, match=r"no printers: network-printers\.toml does not exist"):
            open_printer("moonraker://shop/a.gcode")


@pytest.mark.parametrize(
    "text",
    [
        "[shop",
        '[shop]\nkind = "acme"\nurl = "http://a"',
        '[shop]\nkind = "moonraker"\nurl = "http://user:pw@host"',
        "x = 1",
        '["a/b"]\nkind = "moonraker"\nurl = "http://a"',
        '["left one"]\nkind = "moonraker"\nurl = "http://a"',
    ],
)
def test_a_damaged_file_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    file = configure(tmp_path, monkeypatch, "moonraker", "http://127.0.0.1:9")
    file.write_text(text)
    with pytest.raises(OSError, match="is invalid") as error:
        open_printer("moonraker://shop/a.gcode")
    assert "user:pw" not in str(error.value)
    # the status of the command is that of an output that cannot be written, and not that of a wrong argument
    assert run("printers") == 6


def test_files_are_not_read_from_printers(printer: Printer, tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="not read from printers"), (tmp_path / "copy").open("wb") as copy:
        open_printer(f"{printer.kind}://shop/part.gcode").fetch(copy)


def test_the_list_has_states(printer: Printer, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("printers") == 0
    assert f"{printer.kind}://shop" in (text := capsys.readouterr().out)
    assert IDLE[printer.kind].lower() in text
    assert run("printers", "--json") == 0
    (row,) = json.loads(text := capsys.readouterr().out)
    assert (row["address"], row["state"]) == (f"{printer.kind}://shop", IDLE[printer.kind].lower())
    # neither the key nor the host
    assert KEY not in text and "127.0.0.1" not in text


def test_the_list_names_printers_that_are_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(tmp_path, monkeypatch, "prusalink", "http://127.0.0.1:1")
    assert run("printers", "--json") == 1
    assert (
        json.loads(text := capsys.readouterr().out)[0]["error"]
        == "shop cannot be reached; switch it on, or check its url"
    )
    assert "127.0.0.1" not in text
    monkeypatch.setenv(FILE_VARIABLE, str(tmp_path / "none"))
    assert run("printers") == 0
    assert "no printers; install a plug-in" in capsys.readouterr().err


def test_plans_need_the_entitlement(printer: Printer) -> None:
    registry = Registry()
    assert registry.printers(Caller(plan=registry.plans["pro"])) == []
    farm = Caller(plan=Plan(id="farm", label="Farm", grants=frozenset({"printers"})))
    assert [each.name for each in registry.printers(farm)] == ["shop"]
    assert supported(registry, farm)["sends"] == sorted(EXTENSIONS)


def test_a_conversion_goes_to_the_printer(printer: Printer) -> None:
    """The address names the format, and its options belong to the storage."""
    pytest.importorskip("meshhub_slicer")
    import shutil

    if shutil.which("prusa-slicer") is None:
        pytest.skip("PrusaSlicer is not installed")
    bracket = Path(__file__).parents[3] / "examples" / "bracket.stl"
    address = f"{printer.kind}://shop/bracket.gcode?print=true"
    Registry().convert(bracket, address, slicer_printer="prusa-mk3s", slicer_quality="draft")
    assert b"prepared by meshhub" in printer.files["bracket.gcode"]
    assert printer.starts == ["bracket.gcode"]
    with pytest.raises(OutputExists, match="already exists on shop"):
        Registry().convert(bracket, address, slicer_printer="prusa-mk3s", slicer_quality="draft")
    assert printer.starts == ["bracket.gcode"]


def test_a_file_is_sent(printer: Printer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "ready.gcode"
    address = f"{printer.kind}://shop/ready.gcode?print=true"
    assert run("printers", "send", str(file), address) == 2
    assert run("printers", "send", __file__, "shop") == 2
    assert "'shop' is not an address; write moonraker://" in capsys.readouterr().err
    file.write_bytes(GCODE)
    assert run("printers", "send", str(file), address) == 0
    assert printer.starts == ["ready.gcode"]
    assert run("printers", "send", str(file), address) == 6
    assert "already exists on shop" in capsys.readouterr().err
    assert printer.starts == ["ready.gcode"]
