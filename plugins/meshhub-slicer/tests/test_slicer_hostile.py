"""Profiles and uploads that try to run, read or send something."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import pytest
from meshhub_slicer.profiles import FOLDER_VARIABLE, keep_safe
from slicer_models import make_box, make_scene, needs_prusa

from meshhub import InvalidOption, MeshhubError, Registry, Source, Target

BOX = make_scene(make_box(10, 10, 1))

HOSTILE = {
    "post_process = /usr/bin/touch {mark}": "post_process",
    "post_process = \"/bin/sh -c 'touch {mark}'\"": "post_process",
    "post-process = /usr/bin/touch {mark}": "post-process",
    "POST_PROCESS = /usr/bin/touch {mark}": "POST_PROCESS",
    "  post_process=/usr/bin/touch {mark}": "post_process",
    "post_process = /bin/true;/usr/bin/touch {mark}": "post_process",
    "print_host = http://127.0.0.1:9": "print_host",
    "printhost_apikey = secret": "printhost_apikey",
    "printhost_cafile = /etc/passwd": "printhost_cafile",
    "octoprint_host = 127.0.0.1": "octoprint_host",
    "serial_port = /dev/ttyUSB0": "serial_port",
    "bed_custom_texture = /etc/passwd": "bed_custom_texture",
    "bed_custom_model = /etc/passwd": "bed_custom_model",
    "output_filename_format = ../../{{mark}}": "output_filename_format",
    "datadir = /tmp": "datadir",
    "load = /etc/passwd": "load",
    r"start_gcode = G28\nM118 //action:shell touch": "start_gcode",
    r"start_gcode = G28\n@execute touch": "start_gcode",
    r"end_gcode = RUN_SHELL_COMMAND CMD=touch\nM84": "end_gcode",
    r"layer_gcode = M30 /x.gcode": "layer_gcode",
    r"toolchange_gcode = M{{100+18}} host": "toolchange_gcode",
    r"start_filament_gcode = M587 S\"net\" P\"password\"": "start_filament_gcode",
}
"""Lines of profiles, and the key that is removed from each."""


@needs_prusa
@pytest.mark.parametrize("line", HOSTILE)
def test_a_hostile_profile_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    mark = tmp_path / "RAN"
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    (tmp_path / "bad.ini").write_text(line.format(mark=mark) + "\nperimeters = 3\n")
    target = Target("part.gcode")
    report = Registry().write(BOX, target, target="gcode", slicer_printer="prusa-mk3s", slicer_profile="bad")
    (removed,) = [note for note in report.notes if note.code == "slicer_keys_removed"]
    assert removed.values["keys"] == HOSTILE[line]
    text = target.read().decode()
    assert not mark.exists()
    assert "; perimeters = 3\n" in text
    for word in ("M118", "@execute", "RUN_SHELL", "M30 /x", "M587", "/etc/passwd", "127.0.0.1"):
        assert word not in text


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (r"G28\nM\118 x\nM84", r"G28\nM84"),
        (r"G28\rM118 x", r"G28\r"),
        ("; a\\nG28\nM118 x", "; a\\nG28\n"),
        ("{if true}M118 x{endif}", ""),
        ("G28 M118 x", ""),
        ('"G4 P1";"M118 x";"G4 P3"', '"G4 P1";"";"G4 P3"'),
        ('"M118 x"', '""'),
    ],
)
def test_hidden_commands_are_removed(code: str, expected: str) -> None:
    assert keep_safe({"start_gcode": code}) == ({"start_gcode": expected}, ["start_gcode"])


@needs_prusa
def test_a_command_that_is_put_together_is_found_in_the_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    (tmp_path / "bad.ini").write_text("start_gcode = G28\\nM1{1}8 x\n")
    with pytest.raises(InvalidOption, match=r"its G-code has 'M118 x', a command for a host"):
        Registry().write(BOX, Target("a"), target="gcode", slicer_printer="prusa-mk3s", slicer_profile="bad")


@needs_prusa
def test_a_hostile_project_runs_nothing(tmp_path: Path) -> None:
    mark = tmp_path / "RAN"
    plain = Target("box.3mf")
    Registry().write(BOX, plain, target="3mf", threemf_profile="prusa")
    data = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(plain.read())) as source, zipfile.ZipFile(data, "w") as archive:
        for name in source.namelist():
            content = source.read(name)
            if name == "Metadata/Slic3r_PE.config":
                content += f"; post_process = /usr/bin/touch {mark}\n; start_gcode = M118 hostile\n".encode()
            archive.writestr(name, content)
    target = Target("part.gcode")
    upload = Source.from_bytes(data.getvalue(), "box.3mf")
    Registry().convert(upload, target, target="gcode", slicer_printer="prusa-mk3s")
    assert not mark.exists()
    assert b"hostile" not in target.read()


@pytest.mark.parametrize("name", ["../bad", "/etc/passwd", "a/b", "..", "", ".hidden", "a\nb", "none"])
def test_only_names_of_the_folder_are_profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    (tmp_path / "profiles").mkdir()
    (tmp_path / "bad.ini").write_text("layer_height = 0.2\n")
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "profiles"))
    from meshhub_slicer.profiles import read_profiles

    with pytest.raises(InvalidOption, match="slicer_profile"):
        read_profiles(name, ".ini")


def test_a_damaged_profile_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    from meshhub_slicer.profiles import read_profiles

    (tmp_path / "bad.json").write_text("[" * 5000)
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "binary.ini").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "bundle.ini").write_text("[printer:A]\nbed_shape = 0x0,9x0,9x9\n")
    for name, ending in (("bad", ".json"), ("list", ".json"), ("binary", ".ini"), ("bundle", ".ini")):
        with pytest.raises(MeshhubError, match="cannot be read"):
            read_profiles(name, ending)


@needs_prusa
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("max_print_height = high", "max_print_height must be a number, got 'high'"),
        ("max_print_height = -1", "max_print_height must be a number, got '-1'"),
        ("bed_shape = 1.2.3x.,5", "the profile has no bed_shape"),
    ],
)
def test_settings_that_are_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, message: str) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    (tmp_path / "bad.ini").write_text(f"{line}\n")
    with pytest.raises(InvalidOption, match=message):
        Registry().write(BOX, Target("a"), target="gcode", slicer_printer="prusa-mk3s", slicer_profile="bad")


@pytest.mark.parametrize(
    "profile",
    [
        {"layer_height": "0.2", "support_material": "1", "printer_model": "MK3S", "gcode_flavor": "marlin"},
        {"start_gcode": r"G28\nM104 S200\nM1002 x\nM140 S60\nT[initial_tool]\nSTART_PRINT BED=60"},
        {"machine_start_gcode": ["G28\nM25 ; pause\nM117 hello"]},
    ],
)
def test_harmless_settings_are_kept(profile: dict[str, Any]) -> None:
    assert keep_safe(profile) == (profile, [])
