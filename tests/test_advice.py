"""Notes and errors advise options that exist, may be used and are not used yet, in the spelling of the interface."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import pytest
from msgspec import Meta, Struct

from deadlines import time_out
from meshhub import Caller, Cancel, Progress, Registry
from meshhub.builtin_plugins.step import writer as step_writer
from meshhub.builtin_plugins.step.kernel.kernel_check import KernelSolid, Verdict
from meshhub.cli.exits import explained
from meshhub.errors import Canceled, ConversionFailed, ConversionTimeout, InvalidOption
from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import Operation, Stage
from meshhub.model.chain import Request
from meshhub.model.notes import advise_reduction, collecting, note
from meshhub.model.options import flag_of
from meshhub.model.plans import Plan
from meshhub.model.source import Source
from test_cli import EXAMPLE, meshhub_cli, meshhub_process, write_stl

TIMEOUTS_S = (0.05, 1.0, 10.0)
"""Seconds; the reader begins within the first of them on an idle machine."""

OPEN_SURFACE = ("open_surface", "step")
OWN_REDUCTION = "reduce the model with melt_faces"
ELSEWHERE = "split the model, or simplify it in another program"


class MeltOptions(Struct, frozen=True, kw_only=True):
    melt_faces: Annotated[int, Meta(title="Faces", description="Faces to keep.")] | None = None


def plugin(**fields: Any) -> ModuleType:
    def meshhub_operations() -> list[Operation]:
        return [
            Operation(
                id="melt",
                label="Melt",
                stage=Stage.REDUCE,
                options=MeltOptions,
                run="meshhub.builtin_plugins.optimize.operation:run",
                **{"solves": {"many_faces": "melt_faces"}, **fields},
            )
        ]

    module = ModuleType("melt")
    vars(module)["meshhub_operations"] = hookimpl(meshhub_operations)
    return module


def late(
    registry: Registry,
    options: Mapping[str, object],
    caller: Caller | None = None,
    describe: Callable[[BaseException], str] = str,
    kind: str = "write",
) -> str:
    """Return the error of a conversion whose deadline passes in its step of this kind."""
    arguments = {} if caller is None else {"caller": caller}

    def convert(timeout_s: float) -> str:
        is_reached = False

        def wait(progress: Progress) -> None:
            nonlocal is_reached
            if progress.kind == kind:
                is_reached = True
                time.sleep(timeout_s)

        with pytest.raises(ConversionTimeout) as error:
            registry.convert(
                EXAMPLE, io.BytesIO(), target="ply", timeout=timeout_s, progress=wait, options=options, **arguments
            )
        return describe(error.value) if is_reached else "the step did not begin"

    return time_out(convert, TIMEOUTS_S)


def test_a_late_conversion_advises_a_reduction_that_exists_and_is_not_used_yet() -> None:
    assert "optimize_target_faces" in late(Registry(entry_points=False), {})
    assert late(Registry(entry_points=False, disabled=["optimize"]), {}).endswith(ELSEWHERE)
    assert late(Registry(entry_points=False), {"optimize_target_faces": 100}).endswith(ELSEWHERE)
    # a reduction runs after the reader
    assert late(Registry(entry_points=False), {}, kind="read").endswith(ELSEWHERE)


def test_a_late_conversion_advises_the_reduction_of_a_plugin_if_the_plan_grants_it() -> None:
    free = Caller(plan=Plan(id="free", label="Free"))
    for requires, advice in ((None, OWN_REDUCTION), ("pro", ELSEWHERE)):
        registry = Registry([plugin(requires=requires)], entry_points=False, disabled=["optimize"])
        assert late(registry, {}, free).endswith(advice)


def test_a_reduction_must_name_an_option_of_its_operation() -> None:
    registry = Registry([plugin(solves={"many_faces": "melt"})], entry_points=False)
    assert [fault.message for fault in registry.faults] == [
        "operation 'melt': solves['many_faces'] must be one of its options, got 'melt'"
    ]


def test_paint_needs_an_operation_that_reduces_colors_whose_option_the_error_advises() -> None:
    def check(plugins: list[ModuleType], disabled: list[str], **options: object) -> None:
        registry = Registry(plugins, entry_points=False, disabled=disabled)
        registry.check_request(Request(target="3mf", options={"texture_colors": "paint", **options}))

    others = [plugin(solves={"many_colors": "melt_faces"})]
    check([], [], reduce_colors=4)
    check(others, [], melt_faces=4)
    for plugins, disabled, advice in (
        ([], [], "set 'reduce_colors' to their number"),
        (others, ["reduce_colors"], "set 'melt_faces' to their number"),
        ([], ["reduce_colors"], "no installed plug-in has any"),
    ):
        with pytest.raises(InvalidOption, match=advice):
            check(plugins, disabled, place_on_bed=True)


def test_a_step_gets_the_advice_of_its_chain() -> None:
    source = Source.from_path(EXAMPLE)
    for disabled, options in (([], ("optimize_target_faces",)), (["optimize"], ())):
        chain = Registry(entry_points=False, disabled=disabled).resolve(Request(target="step"), source)
        with collecting("step", chain.reduction):
            assert advise_reduction()[1] == options


def test_a_canceled_conversion_addresses_its_caller() -> None:
    cancel = Cancel()
    cancel()
    with pytest.raises(Canceled, match="canceled") as error:
        Registry(entry_points=False).convert(EXAMPLE, io.BytesIO(), target="ply", cancel=cancel)
    assert "left" not in error.value.message


def test_a_note_names_options_in_the_spelling_of_the_interface() -> None:
    with collecting("step") as remarks:
        note("far", "'place_on_bed' {other}: use {place_on_bed}, or set {input_unit=in}", options=("place_on_bed",))
        note("unit", "a part 'input_up': set {input_unit=in}", options=("input_unit",))
    far, unit = remarks.notes
    assert far.message == "'place_on_bed' {other}: use 'place_on_bed', or set {input_unit=in}"
    assert unit.message == "a part 'input_up': set 'input_unit=in'"
    assert unit.spelled(flag_of) == "a part 'input_up': set --input-unit=in"


def test_the_command_line_names_flags_in_notes_and_python_names_keywords(tmp_path: Path) -> None:
    path = write_stl(tmp_path / "small.stl", (0.02, 0.02, 0.02))
    printed = meshhub_cli("convert", path, "ply").stderr.decode()
    (message,) = [remark.message for remark in Registry().inspect(path).notes if remark.code == "looks_like_meters"]
    assert "set --input-unit=m (factor" in printed
    assert "set 'input_unit=m' (factor" in message


def test_a_note_advises_no_option_that_is_missing_or_already_set(tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.obj"
    sheet.write_text("v 0 0 0\nv 10 0 0\nv 0 10 0\nf 1 2 3\n")
    advice = "; 'repair' closes holes"
    for registry, options, is_advised in (
        (Registry(entry_points=False), {}, True),
        (Registry(entry_points=False), {"repair": True}, False),
        (Registry(entry_points=False, disabled=["repair"]), {}, False),
    ):
        report = registry.convert(sheet, io.BytesIO(), target="step", options=options)
        (message,) = [remark.message for remark in report.notes if (remark.code, remark.step) == OPEN_SURFACE]
        assert message.endswith(advice if is_advised else "became surfaces, not solids")


def test_an_error_of_the_command_line_names_flags() -> None:
    assert "--optimize-target-faces" in late(Registry(entry_points=False), {}, describe=explained)


def test_an_error_advises_no_repair_that_is_missing_or_already_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_stl(tmp_path / "a.stl")
    monkeypatch.setattr(step_writer, "is_available", lambda: True)
    monkeypatch.setattr(
        step_writer, "read_back", lambda data, seconds, volumes: Verdict(False, (KernelSolid(False, 1.0),))
    )
    for registry, options, advice in (
        (Registry(entry_points=False), {}, "use repair, or set step_invalid=keep"),
        (Registry(entry_points=False), {"repair": True}, "set step_invalid=keep"),
        (Registry(entry_points=False, disabled=["repair"]), {}, "set step_invalid=keep"),
    ):
        with pytest.raises(ConversionFailed) as error:
            registry.convert(source, io.BytesIO(), target="step", options={**options, "step_surfaces": "planar"})
        assert str(error.value).rpartition("; ")[2] == error.value.message.rpartition("; ")[2] == advice
        assert explained(error.value).endswith("set --step-invalid=keep [invalid_solid]")


@pytest.mark.parametrize("disabled", [False, True])
def test_the_table_of_an_inspection_advises_a_repair_that_exists(tmp_path: Path, disabled: bool) -> None:
    sheet = tmp_path / "sheet.obj"
    sheet.write_text("v 0 0 0\nv 10 0 0\nv 0 10 0\nf 1 2 3\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MESHHUB_DISABLED_PLUGINS", "repair" if disabled else "")
        printed = meshhub_process("inspect", sheet).stdout.decode()
    assert "watertight" in printed
    assert ("--repair" in printed) is not disabled
