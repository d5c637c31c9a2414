"""The conformance kit judges: a sound plug-in keeps every contract, and each contract fails one that is wrong."""

from __future__ import annotations

import inspect
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import faulty_plugins
from faulty_plugins import (
    FORMAT,
    Contradictory,
    Exemplary,
    Misnamed,
    Unbounded,
    Undescribed,
    UndescribedLift,
    Untitled,
    Wrong,
)
from meshhub import Frame, PluginError, Reader, Source, hookimpl
from meshhub.model.capabilities import FEATURES
from meshhub.testing import Contract, OperationContract, ReaderContract, WriterContract, elsewhere, watching
from meshhub.testing.comparing import difference
from meshhub.testing.models import SHOWING, brick, full, odd

KINDS: dict[str, tuple[type[Contract[Any]], dict[str, Any]]] = {
    "reader": (ReaderContract, {"format_id": "sound"}),
    "writer": (WriterContract, {"format_id": "sound"}),
    "operation": (OperationContract, {"operation_id": "lift"}),
}


def contract(kind: str, plugin: Wrong, **attributes: Any) -> Any:
    base, identity = KINDS[kind]
    return type("TestIt", (base,), {**identity, "plugins": (plugin,), **attributes})()


def cases(kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every test of a contract, with the arguments of each of its cases."""
    for name, method in inspect.getmembers(KINDS[kind][0], inspect.isfunction):
        if name.startswith("test_"):
            marks = [mark for mark in getattr(method, "pytestmark", ()) if mark.name == "parametrize"]
            arguments = [{mark.args[0]: value} for mark in marks for value in mark.args[1]] or [{}]
            yield from ((name, one) for one in arguments)


SOUND = Wrong()


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in KINDS for name in dict(cases(kind))])
def test_a_sound_plugin_keeps_every_contract(kind: str, name: str) -> None:
    for case, arguments in cases(kind):
        if case == name:
            try:
                getattr(contract(kind, SOUND), name)(**arguments)
            except pytest.skip.Exception as skipped:
                pytest.fail(f"{name} is skipped: {skipped}")


def run(name: str) -> dict[str, str]:
    return {"run": f"faulty_plugins:{name}"}


UNKNOWN = {"format": msgspec.structs.replace(FORMAT, magic=()), "sniff": None}
BRICK = "test_a_brick_keeps_its_size_and_orientation"
QUICK = "test_the_sniffer_is_quick_and_gives_scores"

WRONG: list[tuple[str, str, Any, str]] = [
    # reader
    ("reader", "test_the_plugin_has_no_faults", {"sniff": "nowhere:sniff"}, "nowhere"),
    ("reader", "test_options_are_declared_well", {"options": Untitled}, "needs a title"),
    ("reader", "test_options_are_declared_well", {"options": Undescribed}, "no description"),
    ("reader", "test_options_are_declared_well", {"options": Unbounded}, "refuses its own default"),
    ("reader", "test_options_are_named_after_their_owner", {"options": Misnamed}, "must start with"),
    ("reader", "test_its_files_are_recognised", UNKNOWN, "taken for"),
    ("reader", "test_a_brick_keeps_its_size_and_orientation", run("read_larger"), "lies from"),
    ("reader", "test_a_brick_keeps_its_size_and_orientation", run("read_lying"), "lies from"),
    ("reader", "test_a_brick_keeps_its_size_and_orientation", run("read_inside_out"), "volume of -6000"),
    ("reader", "test_the_frame_is_as_declared", run("read_metres"), "declared is"),
    ("reader", "test_a_carried_feature_is_read", run("read_bare"), "shows any"),
    ("reader", "test_nothing_undeclared_is_read", {"carries": FEATURES - {"colors"}}, "colors"),
    ("reader", "test_scenes_are_the_same_each_time", run("read_by_hash"), "in another process"),
    ("reader", "test_scenes_are_finite", run("read_not_finite"), "not finite"),
    ("reader", "test_nothing_at_all_gives_a_coded_error", run("read_nothing"), "DID NOT RAISE"),
    ("reader", "test_a_file_cut_off_anywhere_gives_a_scene_or_a_coded_error", run("read_raising"), "DecodeError"),
    ("reader", "test_a_file_cut_off_anywhere_gives_a_scene_or_a_coded_error", run("read_warning"), "warns: short"),
    ("reader", "test_a_file_cut_off_anywhere_gives_a_scene_or_a_coded_error", run("read_littering"), "leaves files"),
    ("reader", "test_a_file_cut_off_anywhere_gives_a_scene_or_a_coded_error", run("read_printing"), "prints"),
    ("reader", "test_random_bytes_give_a_scene_or_a_coded_error", run("read_greedy"), "allocates"),
    ("reader", "test_random_bytes_give_a_scene_or_a_coded_error", run("read_crashing"), "crashes the process"),
    ("reader", "test_the_plugin_has_no_faults", {"score": 101}, "from 0 to 100, got 101"),
    ("reader", "test_the_plugin_has_no_faults", {"score": -1}, "from 0 to 100, got -1"),
    ("reader", BRICK, run("read_and_exit"), "ends its process (exit status 0)"),
    ("reader", BRICK, run("read_and_end_natively"), "ends its process (exit status 0)"),
    ("reader", "test_scenes_are_finite", run("read_and_exit"), "ends its process (exit status 0)"),
    ("reader", "test_scenes_are_the_same_each_time", run("read_and_exit"), "ends its process (exit status 0)"),
    ("reader", QUICK, {"sniff": "faulty_plugins:sniff_above"}, "from 0 to 100, got 101"),
    ("reader", QUICK, {"sniff": "faulty_plugins:sniff_below"}, "from 0 to 100, got -1"),
    ("reader", QUICK, {"sniff": "faulty_plugins:sniff_text"}, "got '100'"),
    ("reader", QUICK, {"sniff": "faulty_plugins:sniff_raising"}, "IndexError"),
    ("reader", QUICK, {"sniff": "faulty_plugins:sniff_and_quit"}, "SystemExit"),
    ("reader", "test_its_files_are_recognised", {"sniff": "faulty_plugins:sniff_and_exit"}, "ends its process (exit"),
    ("reader", QUICK, {"sniff": "faulty_plugins:sniff_and_exit"}, "ends its process (exit status 0)"),
    # writer
    ("writer", "test_the_plugin_has_no_faults", {"score": 1000}, "from 0 to 100"),
    ("writer", BRICK, run("write_and_exit"), "ends its process (exit status 0)"),
    ("writer", "test_the_scene_stays_untouched", run("write_and_exit"), "ends its process (exit status 0)"),
    ("writer", "test_the_plugin_has_no_faults", {"run": "nowhere:write"}, "nowhere"),
    ("writer", "test_options_are_declared_well", {"options": Undescribed}, "no description"),
    ("writer", "test_options_are_named_after_their_owner", {"options": Misnamed}, "must start with"),
    ("writer", "test_a_brick_keeps_its_size_and_orientation", run("write_lying"), "elsewhere"),
    ("writer", "test_a_brick_keeps_its_size_and_orientation", {"frame": Frame("m", "y")}, "elsewhere"),
    ("writer", "test_a_part_placed_twice_stays_two", run("write_once"), "12 faces instead of 24"),
    ("writer", "test_a_part_placed_twice_stays_two", run("write_in_one_place"), "elsewhere"),
    ("writer", "test_a_mirrored_part_is_not_inside_out", run("write_mirrored_inside_out"), "the other way round"),
    ("writer", "test_what_is_not_carried_does_no_harm", run("write_textured_only"), "faces instead of"),
    ("writer", "test_bytes_are_the_same_each_time", run("write_by_hash"), "in another process"),
    ("writer", "test_bytes_are_the_same_each_time", run("write_by_time"), "in another process"),
    ("writer", "test_bytes_are_the_same_each_time", run("write_signed"), "the name of the file"),
    ("writer", "test_a_folder_gets_the_same_bytes_as_memory", run("write_beside"), "beside.txt"),
    ("writer", "test_the_scene_stays_untouched", run("write_in_place"), "changes the scene"),
    ("writer", "test_it_does_nothing_but_write", run("write_littering"), "scratch.txt"),
    ("writer", "test_an_odd_scene_is_written_or_refused", run("write_no_sheets"), "AssertionError"),
    # operation
    ("operation", "test_it_does_nothing_but_work", run("lift_and_exit"), "ends its process (exit status 0)"),
    ("operation", "test_the_scene_stays_untouched", run("lift_and_exit"), "ends its process (exit status 0)"),
    ("operation", "test_options_are_declared_well", {"options": Contradictory}, "refuses its own example 7"),
    ("operation", "test_the_plugin_has_no_faults", {"run": "nowhere:lift"}, "nowhere"),
    ("operation", "test_options_are_declared_well", {"options": UndescribedLift}, "no description"),
    ("operation", "test_options_are_named_after_their_owner", {"options": Misnamed}, "must start with"),
    ("operation", "test_a_closed_brick_stays_closed_and_outward", run("lift_open"), "opens a closed brick"),
    ("operation", "test_a_closed_brick_stays_closed_and_outward", run("lift_inside_out"), "inside out"),
    ("operation", "test_a_part_placed_twice_stays_two", run("lift_one"), "1 bodies of two"),
    ("operation", "test_a_part_placed_twice_stays_two", run("lift_onto_one_place"), "in one place"),
    ("operation", "test_it_drops_what_it_declares_and_nothing_else", run("lift_no_colors"), "does not declare it"),
    ("operation", "test_it_drops_what_it_declares_and_nothing_else", {"drops": frozenset({"uv"})}, "keeps it"),
    ("operation", "test_scenes_are_the_same_each_time", run("lift_by_hash"), "in another process"),
    ("operation", "test_the_scene_stays_untouched", run("lift_in_place"), "changes the scene"),
    ("operation", "test_it_does_nothing_but_work", run("lift_warning"), "warns: lifting"),
    ("operation", "test_an_odd_scene_gives_a_scene_or_a_coded_error", run("lift_no_sheets"), "AssertionError"),
]  # fmt: skip


def failures(kind: str, name: str, plugin: Wrong, **attributes: Any) -> list[str]:
    """What a contract says of a plug-in, case by case."""
    told = []
    for case, arguments in cases(kind):
        if case == name:
            try:
                getattr(contract(kind, plugin, **attributes), name)(**arguments)
            except pytest.skip.Exception:
                continue
            except (AssertionError, pytest.fail.Exception) as failed:
                told.append(str(failed))
    return told


@pytest.mark.parametrize(("kind", "name", "change", "told"), WRONG)
def test_a_wrong_plugin_is_failed(kind: str, name: str, change: Any, told: str) -> None:
    disguised = {"brick": Source.from_bytes(b"{}", "brick.stl")} if "recognised" in name else {}
    found = failures(kind, name, Wrong(**{kind: change}), **disguised)
    assert any(told in one for one in found), found


BROKEN_FEATURES = {
    "names": "write_no_names",
    "instances": "write_no_instances",
    "normals": "write_no_normals",
    "uv": "write_no_uv",
    "colors": "write_pale",
    "materials": "write_no_materials",
    "textures": "write_no_textures",
}


@pytest.mark.parametrize("feature", sorted(BROKEN_FEATURES))
def test_a_feature_that_is_declared_and_lost_is_noticed(feature: Any) -> None:
    wrong = Wrong(writer=run(BROKEN_FEATURES[feature]))
    with pytest.raises(AssertionError):
        contract("writer", wrong).test_a_carried_feature_survives(feature)


def test_a_unit_that_the_reader_does_not_get_is_noticed() -> None:
    wrong = Wrong(writer={"frame": Frame("cm", "z")})
    with pytest.raises(AssertionError):
        contract("writer", wrong).test_a_carried_feature_survives("units")


def test_an_operation_that_is_not_asked_for_takes_no_part() -> None:
    with pytest.raises(AssertionError, match="takes no part"):
        contract("operation", SOUND, options={"sound_loud": True}).test_it_takes_part_when_it_is_asked_for()


def test_every_contract_has_a_wrong_plugin() -> None:
    apart = {
        ("writer", "test_a_carried_feature_survives"),
        ("operation", "test_it_takes_part_when_it_is_asked_for"),
    }
    assert {(kind, name) for kind, name, _, _ in WRONG} | apart == {
        (kind, name) for kind in KINDS for name, _ in cases(kind)
    }


def test_what_is_not_declared_is_skipped_and_what_is_missing_too() -> None:
    few = Wrong(reader={"carries": frozenset({"names"})}, writer={"carries": frozenset({"names"})})
    for kind, name in (("reader", "test_a_carried_feature_is_read"), ("writer", "test_a_carried_feature_survives")):
        with pytest.raises(pytest.skip.Exception, match="does not declare uv"):
            getattr(contract(kind, few), name)("uv")
    lacking = Wrong(writer={"needs": ("no_such_module",), "install": "meshhub-sound[all]"})
    with pytest.raises(pytest.skip.Exception, match="meshhub-sound\\[all\\]"):
        contract("writer", lacking).test_it_does_nothing_but_write()


def test_a_reader_that_may_crash_is_held_by_its_process() -> None:
    crashing = Wrong(reader=run("read_crashing"))
    found = failures("reader", "test_random_bytes_give_a_scene_or_a_coded_error", crashing, may_crash=True)
    assert found == []


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system counts no processor time")
def test_a_reader_that_hangs_does_not_hang_the_kit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elsewhere, "LONGEST", 0.5)
    found = failures("reader", "test_random_bytes_give_a_scene_or_a_coded_error", Wrong(reader=run("read_hanging")))
    assert any("processor time" in one for one in found), found


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system counts no processor time")
@pytest.mark.parametrize("sniff", ["sniff_words", "sniff_name", "sniff_everywhere"])
def test_a_sniffer_that_a_head_can_hold_up_is_failed(monkeypatch: pytest.MonkeyPatch, sniff: str) -> None:
    found = failures("reader", QUICK, Wrong(reader={"sniff": f"faulty_plugins:{sniff}"}))
    assert any("repeated" in one and "1 s are allowed" in one for one in found), found


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system counts no processor time")
def test_every_call_has_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elsewhere, "LONGEST", 0.5)
    busy = failures("operation", "test_it_does_nothing_but_work", Wrong(operation=run("lift_busily")))
    assert any("takes too much processor time" in one for one in busy), busy
    monkeypatch.setattr(elsewhere, "LONGEST", 10)
    monkeypatch.setattr(elsewhere, "DEADLINE_S", 3)
    asleep = failures("reader", BRICK, Wrong(reader=run("read_asleep")))
    assert any("takes more than 3 s" in one for one in asleep), asleep


class Declaring:
    """A plug-in that does something else than to declare."""

    def __init__(self, act: Callable[[], object]) -> None:
        self.act = act

    @hookimpl
    def meshhub_readers(self) -> list[Reader]:
        self.act()
        return SOUND.meshhub_readers()


@pytest.mark.parametrize(
    ("act", "told"),
    [(lambda: os._exit(0), "os._exit(0)"), (sys.exit, "sys.exit"), (lambda: time.sleep(20), "more than 2 s")],
)
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timer")
def test_a_declaration_neither_ends_nor_holds_up_the_run(
    monkeypatch: pytest.MonkeyPatch, act: Callable[[], object], told: str
) -> None:
    monkeypatch.setattr(watching, "DEADLINE_S", 2)
    found = failures("reader", "test_the_plugin_has_no_faults", Declaring(act))  # type: ignore[arg-type]
    assert any(told in one for one in found), found


def test_a_plugin_that_ends_the_process_fails_the_run(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        f"import sys\nsys.path.append({str(Path(faulty_plugins.__file__).parent)!r})\n"
        "from faulty_plugins import Wrong\n"
        "from meshhub.testing import ReaderContract\n"
        "class TestIt(ReaderContract):\n    format_id = 'sound'\n"
        "    plugins = (Wrong(reader={'run': 'faulty_plugins:read_and_exit'}),)\n"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-k",
            "finite",
            "--rootdir",
            tmp_path,
            tmp_path,
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout
    assert "ends its process (exit status 0)" in done.stdout


def test_a_reader_that_quits_fails_the_run() -> None:
    with pytest.raises(PluginError, match="SystemExit"):
        contract("reader", Wrong(reader=run("read_and_quit"))).test_scenes_are_finite()


def test_an_author_names_the_value_to_try() -> None:
    declared = {"options": Exemplary, **run("lift_as_said")}
    for name in ("test_it_takes_part_when_it_is_asked_for", "test_a_closed_brick_stays_closed_and_outward"):
        assert failures("operation", name, Wrong(operation=declared)) == []
    assert contract("operation", Wrong(operation=declared)).asked() == {"lift_mm": "7 mm"}
    assert contract("operation", Wrong(operation=declared), options={"lift_mm": "8 mm"}).asked() == {"lift_mm": "8 mm"}


def test_a_reader_without_a_writer_needs_a_brick() -> None:
    class ReaderAlone:
        meshhub_readers = Wrong.meshhub_readers
        changes = SOUND.changes

    with pytest.raises(AssertionError, match="needs a `brick`"):
        contract("reader", ReaderAlone()).test_a_brick_keeps_its_size_and_orientation()


def test_pytest_collects_what_is_inherited(tmp_path: Any) -> None:
    (tmp_path / "test_it.py").write_text(
        "from meshhub.testing import OperationContract, ReaderContract, WriterContract\n"
        "class TestBed(OperationContract):\n    operation_id = 'place-on-bed'\n"
    )
    found = pytest.main(["-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path / "test_it.py")])
    assert found == pytest.ExitCode.OK


def test_the_models_hold_what_they_are_named_for() -> None:
    for feature, scene in SHOWING.items():
        assert feature in {*scene.features(), "units"}
    assert full().features() == FEATURES - {"units"}
    assert difference(brick(), brick()) == ""
    assert all(scene.face_count > 0 for scene in odd().values())
    assert faulty_plugins.MAGIC
