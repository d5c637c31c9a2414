"""The conformance kit: a correct plug-in passes every contract, and each contract fails a faulty plug-in."""

from __future__ import annotations

import inspect
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import faulty_plugins
from faulty_plugins import (
    FORMAT,
    FaultyPlugin,
    MisnamedOption,
    OutOfBoundsDefault,
    OutOfBoundsExample,
    TextOptionWithExample,
    UndescribedLiftOption,
    UndescribedOption,
    UntitledOption,
)
from meshhub import Frame, Part, PluginError, Reader, Scene, Source, hookimpl, hookspecs
from meshhub.hookspecs import hookspec
from meshhub.model.capabilities import FEATURES
from meshhub.testing import (
    CheckContract,
    Contract,
    OperationContract,
    ReaderContract,
    WriterContract,
    child_process,
    guards,
)
from meshhub.testing.comparison import describe_difference
from meshhub.testing.sample_scenes import FEATURE_SCENES, brick, full, unusual

pytestmark = pytest.mark.once

TOWER = Scene(brick().meshes, (Part(0, np.diag([1.0, 1.0, 5.0, 1.0])),))

CONTRACTS: dict[str, tuple[type[Contract[Any]], dict[str, Any]]] = {
    "reader": (ReaderContract, {"format_id": "demo"}),
    "writer": (WriterContract, {"format_id": "demo"}),
    "operation": (OperationContract, {"operation_id": "lift"}),
    "check": (CheckContract, {"check_id": "tall", "finds": {"too_tall": TOWER}}),
}


def build_contract(kind: str, plugin: FaultyPlugin, **attributes: Any) -> Any:
    base, identity = CONTRACTS[kind]
    return type("TestIt", (base,), {**identity, "plugins": (plugin,), **attributes})()


def list_cases(kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name of each test of a contract with the arguments of each of its cases."""
    for name, method in inspect.getmembers(CONTRACTS[kind][0], inspect.isfunction):
        if name.startswith("test_"):
            marks = [mark for mark in getattr(method, "pytestmark", ()) if mark.name == "parametrize"]
            arguments = [{mark.args[0]: value} for mark in marks for value in mark.args[1]] or [{}]
            yield from ((name, each) for each in arguments)


CORRECT = FaultyPlugin()


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in CONTRACTS for name in dict(list_cases(kind))])
def test_a_correct_plugin_passes_every_contract(kind: str, name: str) -> None:
    for case, arguments in list_cases(kind):
        if case == name:
            try:
                getattr(build_contract(kind, CORRECT), name)(**arguments)
            except pytest.skip.Exception as skipped:
                pytest.fail(f"{name} is skipped: {skipped}")


def run(name: str) -> dict[str, str]:
    """Return the change of a declaration that lets another function of `faulty_plugins` run."""
    return {"run": f"faulty_plugins:{name}"}


UNDETECTABLE = {"format": msgspec.structs.replace(FORMAT, magic=()), "sniff": None}
BRICK_TEST = "test_a_brick_keeps_its_size_and_orientation"
SNIFFER_TEST = "test_the_sniffer_is_quick_and_gives_scores"

FAULTY_DECLARATIONS: list[tuple[str, str, Any, str]] = [
    # reader
    ("reader", "test_the_plugin_has_no_faults", {"sniff": "nowhere:sniff"}, "nowhere"),
    ("reader", "test_options_are_declared_well", {"options": UntitledOption}, "needs a title"),
    ("reader", "test_options_are_declared_well", {"options": UndescribedOption}, "no description"),
    ("reader", "test_options_are_declared_well", {"options": OutOfBoundsDefault}, "rejects its own default"),
    ("reader", "test_options_are_named_after_their_owner", {"options": MisnamedOption}, "must start with"),
    ("reader", "test_its_files_are_recognized", UNDETECTABLE, "detected as"),
    ("reader", "test_a_brick_keeps_its_size_and_orientation", run("read_larger"), "lies from"),
    ("reader", "test_a_brick_keeps_its_size_and_orientation", {"frame": Frame("mm", "y")}, "lies from"),
    ("reader", "test_a_brick_keeps_its_size_and_orientation", run("read_inside_out"), "volume of -6000"),
    ("reader", "test_text_is_read_in_another_encoding", run("read_by_stated_size"), "lies from"),
    ("reader", "test_a_carried_feature_is_read", run("read_without_features"), "none of its files shows it"),
    ("reader", "test_nothing_undeclared_is_read", {"carries": FEATURES - {"colors"}}, "colors"),
    ("reader", "test_scenes_are_the_same_each_time", run("read_by_hash"), "in another process"),
    ("reader", "test_scenes_are_finite", run("read_not_finite"), "not finite"),
    ("reader", "test_nothing_at_all_gives_a_coded_error", run("read_empty_files"), "DID NOT RAISE"),
    ("reader", "test_a_file_cut_off_anywhere_gives_a_scene_or_a_coded_error", run("read_raising"), "DecodeError"),
    ("reader", "test_a_file_cut_off_anywhere_gives_a_scene_or_a_coded_error", run("read_warning"), "warns: short"),
    ("reader", "test_a_file_cut_off_anywhere_gives_a_scene_or_a_coded_error", run("read_littering"), "leaves files"),
    ("reader", "test_a_file_cut_off_anywhere_gives_a_scene_or_a_coded_error", run("read_printing"), "prints"),
    ("reader", "test_random_bytes_give_a_scene_or_a_coded_error", run("read_without_memory"), "allocates"),
    ("reader", "test_random_bytes_give_a_scene_or_a_coded_error", run("read_crashing"), "crashes the process"),
    ("reader", "test_the_plugin_has_no_faults", {"score": 101}, "from 0 to 100, got 101"),
    ("reader", "test_the_plugin_has_no_faults", {"score": -1}, "from 0 to 100, got -1"),
    ("reader", BRICK_TEST, run("read_and_exit"), "ends its process (exit status 0)"),
    ("reader", BRICK_TEST, run("read_and_end_natively"), "ends its process (exit status 0)"),
    ("reader", "test_scenes_are_finite", run("read_and_exit"), "ends its process (exit status 0)"),
    ("reader", "test_scenes_are_the_same_each_time", run("read_and_exit"), "ends its process (exit status 0)"),
    ("reader", SNIFFER_TEST, {"sniff": "faulty_plugins:sniff_above"}, "from 0 to 100, got 101"),
    ("reader", SNIFFER_TEST, {"sniff": "faulty_plugins:sniff_below"}, "from 0 to 100, got -1"),
    ("reader", SNIFFER_TEST, {"sniff": "faulty_plugins:sniff_text"}, "got '100'"),
    ("reader", SNIFFER_TEST, {"sniff": "faulty_plugins:sniff_raising"}, "IndexError"),
    ("reader", SNIFFER_TEST, {"sniff": "faulty_plugins:sniff_and_quit"}, "SystemExit"),
    ("reader", "test_its_files_are_recognized", {"sniff": "faulty_plugins:sniff_and_exit"}, "ends its process (exit"),
    ("reader", SNIFFER_TEST, {"sniff": "faulty_plugins:sniff_and_exit"}, "ends its process (exit status 0)"),
    # writer
    ("writer", "test_the_plugin_has_no_faults", {"score": 1000}, "from 0 to 100"),
    ("writer", BRICK_TEST, run("write_and_exit"), "ends its process (exit status 0)"),
    ("writer", "test_the_scene_stays_untouched", run("write_and_exit"), "ends its process (exit status 0)"),
    ("writer", "test_the_plugin_has_no_faults", {"run": "nowhere:write"}, "nowhere"),
    ("writer", "test_options_are_declared_well", {"options": UndescribedOption}, "no description"),
    ("writer", "test_options_are_named_after_their_owner", {"options": MisnamedOption}, "must start with"),
    ("writer", "test_a_brick_keeps_its_size_and_orientation", run("write_axes_swapped"), "elsewhere"),
    ("writer", "test_a_brick_keeps_its_size_and_orientation", {"frame": Frame("m", "y")}, "elsewhere"),
    ("writer", "test_a_part_placed_twice_stays_two", run("write_one_instance"), "12 faces instead of 24"),
    ("writer", "test_a_part_placed_twice_stays_two", run("write_in_one_place"), "elsewhere"),
    ("writer", "test_a_mirrored_part_is_not_inside_out", run("write_mirrored_inside_out"), "the opposite orientation"),
    ("writer", "test_what_is_not_carried_does_no_harm", run("write_textured_only"), "faces instead of"),
    ("writer", "test_bytes_are_the_same_each_time", run("write_by_hash"), "in another process"),
    ("writer", "test_bytes_are_the_same_each_time", run("write_by_time"), "in another process"),
    ("writer", "test_bytes_are_the_same_each_time", run("write_file_name"), "the name of the file"),
    ("writer", "test_a_folder_gets_the_same_bytes_as_memory", run("write_beside"), "beside.txt"),
    ("writer", "test_the_scene_stays_untouched", run("write_in_place"), "changes the scene"),
    ("writer", "test_it_does_nothing_but_write", run("write_littering"), "scratch.txt"),
    ("writer", "test_an_odd_scene_is_written_or_refused", run("write_no_open_meshes"), "AssertionError"),
    # operation
    ("operation", "test_it_does_nothing_but_work", run("lift_and_exit"), "ends its process (exit status 0)"),
    ("operation", "test_the_scene_stays_untouched", run("lift_and_exit"), "ends its process (exit status 0)"),
    ("operation", "test_options_are_declared_well", {"options": OutOfBoundsExample}, "rejects its own example 7"),
    ("operation", "test_the_plugin_has_no_faults", {"run": "nowhere:lift"}, "nowhere"),
    ("operation", "test_options_are_declared_well", {"options": UndescribedLiftOption}, "no description"),
    ("operation", "test_options_are_named_after_their_owner", {"options": MisnamedOption}, "must start with"),
    ("operation", "test_a_closed_brick_stays_closed_and_outward", run("lift_open"), "opens a closed brick"),
    ("operation", "test_a_closed_brick_stays_closed_and_outward", run("lift_inside_out"), "inside out"),
    ("operation", "test_a_part_placed_twice_stays_two", run("lift_one_part"), "1 bodies of two"),
    ("operation", "test_a_part_placed_twice_stays_two", run("lift_to_one_place"), "to one place"),
    ("operation", "test_it_drops_what_it_declares_and_nothing_else", run("lift_no_colors"), "does not declare it"),
    ("operation", "test_it_drops_what_it_declares_and_nothing_else", {"drops": frozenset({"uv"})}, "keeps it"),
    ("operation", "test_scenes_are_the_same_each_time", run("lift_by_hash"), "in another process"),
    ("operation", "test_the_scene_stays_untouched", run("lift_in_place"), "changes its input scene"),
    ("operation", "test_it_does_nothing_but_work", run("lift_warning"), "warns: lifting"),
    ("operation", "test_an_odd_scene_gives_a_scene_or_a_coded_error", run("lift_no_open_meshes"), "AssertionError"),
    # check
    ("check", "test_the_plugin_has_no_faults", {"run": "nowhere:measure"}, "nowhere"),
    ("check", "test_options_are_declared_well", {"options": UndescribedOption}, "no description"),
    ("check", "test_options_are_named_after_their_owner", {"options": MisnamedOption}, "must start with"),
    ("check", "test_it_finds_what_it_is_for", run("find_nothing"), "reports nothing instead of too_tall"),
    ("check", "test_it_passes_good_models", run("find_always"), "objects to a good model"),
    ("check", "test_findings_are_complete", run("find_by_wrong_code"), "the code 'Too tall'"),
    ("check", "test_findings_are_complete", run("find_uncounted"), "lists 1 places of 0"),
    ("check", "test_places_lie_on_the_model", run("find_elsewhere"), "beside the model"),
    ("check", "test_mentioned_options_exist", run("advise_unknown"), "unknown options: shrink_mm"),
    ("check", "test_mentioned_options_exist", run("advise_out_of_bounds"), "is invalid"),
    ("check", "test_remedies_help", run("advise_vainly"), "does not help"),
    ("check", "test_findings_are_the_same_each_time", run("find_by_hash"), "in another process"),
    ("check", "test_the_scene_stays_untouched", run("check_in_place"), "changes its scene"),
    ("check", "test_it_does_nothing_but_check", run("check_loudly"), "prints 'tall"),
    ("check", "test_it_does_nothing_but_check", run("check_and_exit"), "ends its process (exit status 0)"),
    ("check", "test_an_odd_scene_gives_findings_or_a_coded_error", run("check_no_open_meshes"), "AssertionError"),
]  # fmt: skip


def failures(kind: str, name: str, plugin: FaultyPlugin, **attributes: Any) -> list[str]:
    """Return the failure messages of a contract's test, one per case that fails."""
    messages = []
    for case, arguments in list_cases(kind):
        if case == name:
            try:
                getattr(build_contract(kind, plugin, **attributes), name)(**arguments)
            except pytest.skip.Exception:
                continue
            except (AssertionError, pytest.fail.Exception) as failed:
                messages.append(str(failed))
    return messages


@pytest.mark.parametrize(("kind", "name", "change", "message"), FAULTY_DECLARATIONS)
def test_each_fault_fails_its_contract(kind: str, name: str, change: Any, message: str) -> None:
    brick = {"brick": Source.from_bytes(b"{}", "brick.stl")} if "recognized" in name else {}
    messages = failures(kind, name, FaultyPlugin(**{kind: change}), **brick)
    assert any(message in each for each in messages), messages


def test_a_scene_in_another_frame_than_declared_fails_the_contract() -> None:
    contract = build_contract("reader", FaultyPlugin(reader=run("read_in_meters")))
    with pytest.raises(PluginError, match="declares millimeters, Z up, but its scene states meters, Z up"):
        contract.test_a_brick_keeps_its_size_and_orientation()


BROKEN_FEATURES = {
    "names": "write_no_names",
    "hierarchy": "write_no_hierarchy",
    "metadata": "write_no_metadata",
    "instances": "write_no_instances",
    "normals": "write_no_normals",
    "uv": "write_no_uv",
    "colors": "write_faded_colors",
    "materials": "write_no_materials",
    "textures": "write_no_textures",
}


@pytest.mark.parametrize("feature", sorted(BROKEN_FEATURES))
def test_losing_a_declared_feature_fails_the_contract(feature: Any) -> None:
    faulty = FaultyPlugin(writer=run(BROKEN_FEATURES[feature]))
    with pytest.raises(AssertionError):
        build_contract("writer", faulty).test_a_carried_feature_survives(feature)


def test_a_lost_unit_fails_the_contract() -> None:
    faulty = FaultyPlugin(writer={"frame": Frame("cm", "z")})
    with pytest.raises(AssertionError):
        build_contract("writer", faulty).test_a_carried_feature_survives("units")


def test_an_invalid_severity_fails_the_contract() -> None:
    contract = build_contract("check", FaultyPlugin(check=run("find_fatal")))
    with pytest.raises(PluginError, match="severity must be one of 'error', 'warning', 'info', got 'fatal'"):
        contract.test_findings_are_complete()


def test_a_check_that_is_never_seen_to_find_anything_fails_the_contract() -> None:
    with pytest.raises(AssertionError, match="set `finds`"):
        build_contract("check", CORRECT, finds={}).test_it_finds_what_it_is_for()


def test_an_operation_that_its_options_do_not_select_fails_the_contract() -> None:
    with pytest.raises(AssertionError, match="is not in the chain"):
        build_contract("operation", CORRECT, options={"demo_loud": True}).test_it_takes_part_when_it_is_asked_for()


def test_every_contract_has_a_faulty_plugin() -> None:
    tested_separately = {
        ("writer", "test_a_carried_feature_survives"),
        ("operation", "test_it_takes_part_when_it_is_asked_for"),
        *((kind, "test_it_declares_the_api_version") for kind in CONTRACTS),
        *((kind, "test_it_uses_nothing_deprecated") for kind in CONTRACTS),
    }
    assert {(kind, name) for kind, name, _, _ in FAULTY_DECLARATIONS} | tested_separately == {
        (kind, name) for kind in CONTRACTS for name, _ in list_cases(kind)
    }


def test_undeclared_features_and_missing_dependencies_are_skipped() -> None:
    names_only = FaultyPlugin(reader={"carries": frozenset({"names"})}, writer={"carries": frozenset({"names"})})
    for kind, name in (("reader", "test_a_carried_feature_is_read"), ("writer", "test_a_carried_feature_survives")):
        with pytest.raises(pytest.skip.Exception, match="does not declare uv"):
            getattr(build_contract(kind, names_only), name)("uv")
    lacking = FaultyPlugin(writer={"needs": ("no_such_module",), "install": "meshhub-demo[all]"})
    with pytest.raises(pytest.skip.Exception, match="meshhub-demo\\[all\\]"):
        build_contract("writer", lacking).test_it_does_nothing_but_write()


def test_a_reader_that_may_crash_passes_in_its_own_process() -> None:
    crashing = FaultyPlugin(reader=run("read_crashing"))
    messages = failures("reader", "test_random_bytes_give_a_scene_or_a_coded_error", crashing, may_crash=True)
    assert messages == []


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system counts no processor time")
def test_a_hanging_reader_fails_at_its_processor_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_process, "MAX_TASK_CPU_S", 0.5)
    messages = failures(
        "reader", "test_random_bytes_give_a_scene_or_a_coded_error", FaultyPlugin(reader=run("read_hanging"))
    )
    assert any("processor time" in each for each in messages), messages


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system counts no processor time")
@pytest.mark.parametrize("sniff", ["sniff_words", "sniff_name", "sniff_everywhere"])
def test_a_sniffer_with_a_slow_pattern_fails(monkeypatch: pytest.MonkeyPatch, sniff: str) -> None:
    monkeypatch.setattr(child_process, "MAX_SNIFF_CPU_S", 0.4)
    messages = failures("reader", SNIFFER_TEST, FaultyPlugin(reader={"sniff": f"faulty_plugins:{sniff}"}))
    assert any("repeated" in each and "the limit is 0.4 s" in each for each in messages), messages


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system counts no processor time")
def test_every_call_has_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_process, "MAX_TASK_CPU_S", 0.5)
    busy = failures("operation", "test_it_does_nothing_but_work", FaultyPlugin(operation=run("lift_busily")))
    assert any("takes too much processor time" in each for each in busy), busy
    monkeypatch.setattr(child_process, "MAX_TASK_CPU_S", 10)
    for module in (guards, child_process):
        monkeypatch.setattr(module, "DEADLINE_S", 3)
    asleep = failures("reader", BRICK_TEST, FaultyPlugin(reader=run("read_sleeping")))
    assert any("takes more than 3 s" in each for each in asleep), asleep


class ActingInHook:
    """A plug-in whose declaration hook also runs code."""

    def __init__(self, act: Callable[[], object]) -> None:
        self.act = act

    @hookimpl
    def meshhub_readers(self) -> list[Reader]:
        self.act()
        return CORRECT.meshhub_readers()


@pytest.mark.parametrize(
    ("act", "message"),
    [(lambda: os._exit(0), "os._exit(0)"), (sys.exit, "SystemExit"), (lambda: time.sleep(600), "more than 2 s")],
)
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timer")
def test_a_declaration_hook_that_exits_or_hangs_fails_the_test(
    monkeypatch: pytest.MonkeyPatch, act: Callable[[], object], message: str
) -> None:
    monkeypatch.setattr(guards, "DEADLINE_S", 2)
    messages = failures("reader", "test_the_plugin_has_no_faults", ActingInHook(act))  # type: ignore[arg-type]
    assert any(message in each for each in messages), messages


@pytest.mark.large
def test_a_plugin_that_ends_the_process_fails_the_pytest_run(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        f"import sys\nsys.path.append({str(Path(faulty_plugins.__file__).parent)!r})\n"
        "from faulty_plugins import FaultyPlugin\n"
        "from meshhub.testing import ReaderContract\n"
        "class TestIt(ReaderContract):\n    format_id = 'demo'\n"
        "    plugins = (FaultyPlugin(reader={'run': 'faulty_plugins:read_and_exit'}),)\n"
    )
    result = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:schemathesis",
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
    assert result.returncode == pytest.ExitCode.TESTS_FAILED, result.stdout
    assert "ends its process (exit status 0)" in result.stdout


def test_a_reader_that_raises_system_exit_fails() -> None:
    with pytest.raises(PluginError, match="SystemExit"):
        build_contract("reader", FaultyPlugin(reader=run("read_and_quit"))).test_scenes_are_finite()


def test_an_operation_is_tried_with_its_example_or_the_contract_options() -> None:
    declaration = {"options": TextOptionWithExample, **run("lift_by_text")}
    for name in ("test_it_takes_part_when_it_is_asked_for", "test_a_closed_brick_stays_closed_and_outward"):
        assert failures("operation", name, FaultyPlugin(operation=declaration)) == []
    assert build_contract("operation", FaultyPlugin(operation=declaration)).effective_options() == {"lift_mm": "7 mm"}
    chosen = {"lift_mm": "8 mm"}
    assert (
        build_contract("operation", FaultyPlugin(operation=declaration), options=chosen).effective_options() == chosen
    )


def test_a_reader_without_a_writer_needs_a_brick() -> None:
    class ReaderAlone:
        meshhub_readers = FaultyPlugin.meshhub_readers
        changes = CORRECT.changes

    with pytest.raises(AssertionError, match="needs a `brick`"):
        build_contract("reader", ReaderAlone()).test_a_brick_keeps_its_size_and_orientation()


@pytest.mark.large
def test_pytest_collects_inherited_tests(tmp_path: Any) -> None:
    (tmp_path / "test_it.py").write_text(
        "from meshhub.testing import OperationContract, ReaderContract, WriterContract\n"
        "class TestBed(OperationContract):\n    operation_id = 'place-on-bed'\n"
    )
    exit_code = pytest.main(["-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path / "test_it.py")])
    assert exit_code == pytest.ExitCode.OK


def test_sample_scenes_have_the_features_they_are_named_for() -> None:
    for feature, scene in FEATURE_SCENES.items():
        assert feature in {*scene.features(), "units"}
    assert full().features() == FEATURES - {"units"}
    assert describe_difference(brick(), brick()) == ""
    assert all(scene.face_count > 0 for scene in unusual().values())
    assert faulty_plugins.MAGIC


@hookspec(warn_on_impl=DeprecationWarning("meshhub_old is deprecated; use meshhub_readers"))
def meshhub_old() -> None:
    """Stand for a hook of an earlier version of the API that is about to be removed."""


class UsesOldHook(FaultyPlugin):
    @hookimpl
    def meshhub_old(self) -> None:
        pass


def test_the_kit_finds_what_is_deprecated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hookspecs, "meshhub_old", meshhub_old, raising=False)
    build_contract("reader", CORRECT).test_it_uses_nothing_deprecated()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        contract = build_contract("reader", UsesOldHook())
        assert contract.declared
    with pytest.raises(AssertionError, match="use meshhub_readers"):
        contract.test_it_uses_nothing_deprecated()


class FromTheFuture(FaultyPlugin):
    MESHHUB_API = "999.0"


def test_the_kit_reports_an_unsupported_version_of_the_api() -> None:
    with pytest.raises(AssertionError, match=r"needs plug-in API 999\.0"):
        build_contract("reader", FromTheFuture()).test_it_declares_the_api_version()


class Unversioned(FaultyPlugin):
    MESHHUB_API = None


def test_the_kit_skips_a_missing_version_of_the_api() -> None:
    with pytest.raises(pytest.skip.Exception, match="MESHHUB_API"):
        build_contract("reader", Unversioned()).test_it_declares_the_api_version()
