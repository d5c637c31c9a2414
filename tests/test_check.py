"""Checks: verdicts, findings and their places, checks of other plug-ins, and the command `meshhub check`."""

from __future__ import annotations

import json
import shlex
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import pytest
import trimesh
from click.testing import CliRunner
from msgspec import Meta, Struct

from meshhub import (
    Check,
    ConversionFailed,
    Finding,
    InvalidOption,
    Isolated,
    Mesh,
    Note,
    Part,
    Registry,
    Scene,
    did,
    hookimpl,
    note,
)
from meshhub.cli import root
from support.processor_cores import limit_cores

pytestmark = pytest.mark.once

BOX = np.array([[x, y, z] for x in (0.0, 10.0) for y in (0.0, 20.0) for z in (0.0, 30.0)])
BOX_FACES = np.array(
    [[0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1], [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4],
     [1, 5, 7], [1, 7, 3]], np.int32
)  # fmt: skip


def box(missing: int = 0) -> Scene:
    """A box of 10 x 20 x 30 mm without its last faces."""
    return Scene(meshes=(Mesh(BOX, BOX_FACES[: len(BOX_FACES) - missing]),), parts=(Part(0),))


class TallOptions(Struct, frozen=True, kw_only=True):
    """Options of the check `tall`."""

    tall_mm: Annotated[float, Meta(title="Most height", ge=1)] = 100.0


class TallPlugin:
    """A check of another plug-in, which has options, and one that fails."""

    __name__ = "tall"

    @hookimpl
    def meshhub_checks(self) -> Iterable[Check]:
        return [
            Check(id="tall", label="Tall", description="Height.", options=TallOptions, run=f"{__name__}:run_tall"),
            Check(id="broken", label="Broken", description="Raises.", run=f"{__name__}:run_broken"),
            Check(id="refused", label="Refused", description="Rejects.", run=f"{__name__}:run_refused"),
            Check(id="wrong", label="Wrong", description="Returns texts.", run=f"{__name__}:run_wrong"),
            Check(id="missing", label="Missing", description="Needs.", run=f"{__name__}:run_wrong", needs=("none_x",)),
        ]


def run_tall(scene: Scene, options: TallOptions) -> Iterator[Finding]:
    height = float(np.ptp(scene.meshes[0].vertices[:, 2]))
    did(height_mm=height)
    if height > options.tall_mm:
        yield Finding(
            code="too_tall",
            severity="info",
            message="the model is tall\n; use {target_height_mm}",
            options=("target_height_mm",),
            amount=height,
            limit=options.tall_mm,
            unit="mm",
            remedy={"target_height_mm": options.tall_mm},
        )


def run_broken(scene: Scene, options: object) -> list[Finding]:
    raise KeyError("height")


def run_refused(scene: Scene, options: object) -> list[Finding]:
    raise ConversionFailed("the model is open; use {repair}", options=("repair",))


def run_wrong(scene: Scene, options: object) -> list[str]:
    return ["tall"]


@pytest.fixture
def registry() -> Iterator[Registry]:
    with Registry([TallPlugin()], entry_points=False) as registry:
        assert registry.faults == ()
        yield registry


def codes(findings: Iterable[Finding]) -> list[tuple[str, str]]:
    return [(finding.check, finding.code) for finding in findings]


REMEDIES: dict[str, dict[str, Any]] = {
    "helps": {"target_height_mm": 40.0},
    "changes nothing": {"rotate_z_deg": 90.0},
    "makes an error": {"target_height_mm": 5.0},
    "fails": {"split_for_bed": "no size"},
    "is not known": {"no_such_option": 1.0},
}


class ThinOptions(Struct, frozen=True, kw_only=True):
    """Option of the check `thin`: a key of `REMEDIES`."""

    thin_remedy: Annotated[str, Meta(title="Remedy")] = "helps"


class ThinPlugin:
    """A check whose finding depends on the height of the model."""

    __name__ = "thin"

    @hookimpl
    def meshhub_checks(self) -> Iterable[Check]:
        run = f"{__name__}:run_thin"
        return [Check(id="thin", label="Thin", description="Walls.", options=ThinOptions, run=run)]


def run_thin(scene: Scene, options: ThinOptions) -> Iterator[Finding]:
    height = float(np.ptp(scene.meshes[0].vertices[:, 2]))
    remedy = REMEDIES[options.thin_remedy]
    (name,) = remedy
    yield Finding(
        code="thin",
        severity="warning",
        message=f"walls are thin; use {{{name}}}, or scale the model, or use {{offset_mm}}",
        options=(name, "offset_mm"),
        amount=0.5 if height < 35 else 0.75,
        limit=0.8,
        remedy=remedy,
    )
    if height < 8:
        yield Finding(code="crushed", severity="error", message="nothing is left")


@pytest.mark.parametrize("case", REMEDIES)
def test_a_remedy_is_offered_only_if_it_helps(case: str) -> None:
    with Registry([ThinPlugin()], entry_points=False) as registry:
        (finding,) = registry.check(box(), checks="thin", options={"thin_remedy": case}).findings
    is_offered = case == "helps"
    (name,) = REMEDIES[case]
    assert finding.remedy == (REMEDIES[case] if is_offered else {})
    assert finding.options == ((name, "offset_mm") if is_offered else ("offset_mm",))
    advice = f"use '{name}', or scale the model, or use 'offset_mm'"
    assert finding.message == f"walls are thin; {advice if is_offered else advice.partition(', or ')[2]}"


class SlowPlugin:
    """A slow check of low models, with two findings that different remedies remove."""

    __name__ = "slow"

    @hookimpl
    def meshhub_checks(self) -> Iterable[Check]:
        return [Check(id="slow", label="Slow", description="Waits.", run=f"{__name__}:run_slow")]


def run_slow(scene: Scene, options: object) -> Iterator[Finding]:
    if np.ptp(scene.meshes[0].vertices[:, 2]) > 30:
        end = time.thread_time() + 0.6
        while time.thread_time() < end:
            pass
        return
    for height in (40, 41):
        yield Finding(
            code="low", severity="warning", message="low", remedy={"target_height_mm": height}, places_found=1
        )


def test_no_trial_begins_that_may_take_longer_than_the_rest_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("meshhub.pipeline.remedies.MIN_TRIALS_S", 1.0)
    with Registry([SlowPlugin()], entry_points=False) as registry:
        findings = registry.check(box(), checks="slow").findings
    assert [finding.remedy for finding in findings] == [{"target_height_mm": 40}, {}]


def test_a_remedy_that_is_applied_already_is_not_repeated() -> None:
    with Registry([ThinPlugin()], entry_points=False) as registry:
        (finding,) = registry.check(box(), checks="thin", target_height_mm=40).findings
    assert finding.remedy == {}


def test_a_sound_model_passes() -> None:
    with Registry(entry_points=False) as registry:
        verdict = registry.check(box(), checks="mesh")
    assert verdict.verdict == "ready"
    assert verdict.findings == ()
    assert [check.step for check in verdict.checks] == ["mesh"]
    assert verdict.source.size_mm == (10, 20, 30)


def test_an_open_model_fails_with_places_and_a_remedy_that_mends_it() -> None:
    with Registry(entry_points=False) as registry:
        verdict = registry.check(box(missing=1), checks="mesh")
        (finding,) = verdict.findings
        assert verdict.verdict == "will_not_print"
        assert (finding.code, finding.severity, finding.amount) == ("open_edges", "error", 3)
        assert finding.places[0].position_mm == (5, 10, 30)
        assert registry.check(box(missing=1), checks="mesh", **finding.remedy).verdict == "ready"  # type: ignore[arg-type]


def test_checks_of_other_plugins_run_and_failures_of_one_are_findings(registry: Registry) -> None:
    verdict = registry.check(box(), skip_checks="mesh", options={"tall_mm": 25})
    found = codes(verdict.findings)
    assert ("tall", "too_tall") in found
    assert [(check, code) for check, code in found if code == "check_failed"] == [
        ("broken", "check_failed"),
        ("missing", "check_failed"),
        ("refused", "check_failed"),
        ("wrong", "check_failed"),
    ]
    tall = next(finding for finding in verdict.findings if finding.check == "tall")
    assert "\n" not in tall.message
    assert tall.spelled("--{}".format).endswith("use --target_height_mm")
    assert verdict.verdict == "incomplete"
    refused = next(finding for finding in verdict.findings if finding.check == "refused")
    assert refused.message == "Refused could not be checked: the model is open; use 'repair'"
    figures = {check.step: check.figures for check in verdict.checks}
    assert figures["tall"] == {"height_mm": 30.0}


class HungryPlugin:
    """A check that needs more memory than there is."""

    @hookimpl
    def meshhub_checks(self) -> Iterable[Check]:
        return [Check(id="hungry", label="Hungry", description="Memory.", run=f"{__name__}:run_hungry")]


def run_hungry(scene: Scene, options: object) -> list[Finding]:
    np.empty(1 << 60, np.uint8)
    return []


def test_a_check_that_lacks_memory_makes_the_verdict_incomplete() -> None:
    with Registry([HungryPlugin()], entry_points=False) as registry:
        verdict = registry.check(box(), checks="hungry,mesh")
        (finding,) = verdict.findings
        assert (verdict.verdict, finding.check, finding.code) == ("incomplete", "hungry", "check_failed")
        assert "memory" in finding.message
        worse = registry.check(box(missing=1), checks="hungry,mesh")
        assert worse.verdict == "will_not_print"


def test_a_check_that_cannot_run_is_never_ready(registry: Registry) -> None:
    """Named or not, and a worker says the same."""
    with Registry([TallPlugin()], entry_points=False, engine=Isolated(method="fork")) as apart:
        for checking in (registry, apart):
            verdict = checking.check(box(), checks="missing")
            (finding,) = verdict.findings
            assert (verdict.verdict, finding.code, finding.severity) == ("incomplete", "check_failed", "warning")
            assert finding.message == (
                "Missing could not be checked: it needs none_x, which is not installed; install none_x"
            )
        assert "check_failed" in {finding.code for finding in registry.check(box()).findings}
        assert registry.check(box(), checks="mesh").verdict == "ready"


BAD_VALUES = {
    "severity": "fatal",
    "code": None,
    "amount": float("nan"),
    "places": ("here",),
    "places_found": 1.5,
    "remedy": {"repair": object()},
}


class SloppyPlugin:
    """Checks that return values of wrong types."""

    __name__ = "sloppy"

    @hookimpl
    def meshhub_checks(self) -> Iterable[Check]:
        names = (*BAD_VALUES, "endless", "late")
        return [Check(id=name, label=name, description="Sloppy.", run=f"{__name__}:run_{name}") for name in names]


def _make_check(name: str) -> Callable[[Scene, object], Iterator[Finding]]:
    def run(scene: Scene, options: object) -> Iterator[Finding]:
        values = {"code": "sloppy", "severity": "info", "message": "sloppy", name: BAD_VALUES[name]}
        yield Finding(**values)  # type: ignore[arg-type]

    return run


run_severity, run_code, run_amount, run_places, run_places_found, run_remedy = map(_make_check, BAD_VALUES)


def run_endless(scene: Scene, options: object) -> Iterator[Finding]:
    while True:
        yield Finding(code="endless", severity="info", message="again")


def run_late(scene: Scene, options: object) -> Iterator[Finding]:
    yield Finding(code="early", severity="info", message="found before the failure")
    raise KeyError("late")


@pytest.mark.parametrize("engine", [None, Isolated(method="fork")], ids=["here", "apart"])
def test_a_finding_with_wrong_values_fails_its_own_check_only(engine: Isolated | None) -> None:
    with Registry([SloppyPlugin()], entry_points=False, engine=engine) as registry:
        verdict = registry.check(box(missing=1), checks=",".join(["mesh", "endless", "late", *BAD_VALUES]))
    found = codes(verdict.findings)
    assert ("mesh", "open_edges") in found and ("late", "early") in found
    failed = {check for check, code in found if code == "check_failed"}
    assert failed == {"endless", "late", *BAD_VALUES}
    assert len(json.dumps(msgspec.to_builtins(verdict))) < 1_000_000


def test_an_invalid_severity_names_field_value_and_choices() -> None:
    with Registry([SloppyPlugin()], entry_points=False) as registry:
        messages = [registry.check(box(), checks=name).findings[0].message for name in ("severity", "amount")]
    assert "severity must be one of 'error', 'warning', 'info', got 'fatal'" in messages[0]
    assert "amount must be finite, got nan" in messages[1]


def test_a_worker_returns_the_same_verdict() -> None:
    with Registry(entry_points=False) as here, Registry(entry_points=False, engine=Isolated(method="fork")) as apart:
        verdicts = [registry.check(box(missing=2), checks="mesh") for registry in (here, apart)]
    assert verdicts[0].findings == verdicts[1].findings


MEETING = threading.Barrier(2)


class PairPlugin:
    """Two checks that wait for each other on large models, and one that runs alone."""

    __name__ = "pair"

    @hookimpl
    def meshhub_checks(self) -> Iterable[Check]:
        run = f"{__name__}:run_pair"
        return [
            Check(id="pair-a", label="A", description="One of a pair.", run=run, concurrent=True),
            Check(id="pair-b", label="B", description="One of a pair.", run=run, concurrent=True),
            Check(id="single", label="Single", description="Alone.", run=f"{__name__}:run_single"),
        ]


def run_pair(scene: Scene, options: object) -> Iterator[Finding]:
    is_large = scene.face_count > 1000
    if is_large:
        MEETING.wait(60)
    did(thread=threading.get_ident(), large=is_large)
    note("pair", "a note")
    yield Finding(code="met", severity="info", message="met")


def run_single(scene: Scene, options: object) -> Iterator[Finding]:
    did(thread=threading.get_ident())
    yield from ()


def grid(side: int) -> Scene:
    """A square of 2 side² triangles."""
    x, y = np.meshgrid(np.arange(side + 1.0), np.arange(side + 1.0))
    corner = (np.arange(side)[:, None] * (side + 1) + np.arange(side)).reshape(-1, 1)
    faces = np.concatenate([corner + [0, 1, side + 1], corner + [1, side + 2, side + 1]]).astype(np.int32)
    vertices = np.stack([x.ravel(), y.ravel(), np.zeros(x.size)], axis=1)
    return Scene(meshes=(Mesh(vertices, faces),), parts=(Part(0),))


def test_checks_that_allow_it_run_at_the_same_time_on_large_models(monkeypatch: pytest.MonkeyPatch) -> None:
    limit_cores(monkeypatch, 2)
    with Registry([PairPlugin()], entry_points=False) as registry:
        verdicts = [registry.check(model, checks="single,pair-b,pair-a") for model in (grid(120), box())]
    for verdict, is_large in zip(verdicts, (True, False), strict=True):
        assert codes(verdict.findings) == [("pair-a", "met"), ("pair-b", "met")]
        assert [(note.step, note.code) for note in verdict.notes] == [("pair-a", "pair"), ("pair-b", "pair")]
        threads = {report.step: report.figures["thread"] for report in verdict.checks}
        assert list(threads) == ["pair-a", "pair-b", "single"]
        assert threads["single"] == threading.get_ident()
        assert len(set(threads.values())) == (3 if is_large else 1)


@pytest.mark.large
def test_threads_change_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    ball = trimesh.creation.icosphere(subdivisions=5, radius=20)
    scene = Scene(meshes=(Mesh(ball.vertices, ball.faces[7:].astype(np.int32)),), parts=(Part(0), Part(0)))
    verdicts = []
    with Registry(entry_points=False) as registry:
        for count in (1, 2):
            limit_cores(monkeypatch, count)
            verdicts.append(registry.check(scene, print_process="resin"))
    assert verdicts[0].findings
    assert verdicts[0].findings == verdicts[1].findings
    assert verdicts[0].estimate == verdicts[1].estimate
    assert [report.figures for report in verdicts[0].checks] == [report.figures for report in verdicts[1].checks]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"checks": "nothing"}, "names the unknown check 'nothing'; known are broken, .*mesh"),
        ({"checks": "mesh", "skip_checks": "mesh"}, "no check is left"),
        ({"tall_mm": "high"}, "tall_mm"),
    ],
)
def test_invalid_options_are_rejected(registry: Registry, options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        registry.check(box(), options=options)


def test_options_of_checks_are_unknown_to_conversions(registry: Registry) -> None:
    with pytest.raises(InvalidOption, match="tall_mm"):
        registry.convert_bytes(box(), "stl", options={"tall_mm": 5})


def test_the_command_prints_findings_and_ends_with_their_severity(tmp_path: Path) -> None:
    with Registry(entry_points=False) as registry:
        registry.write(box(missing=1), tmp_path / "open.stl")
        registry.write(box(), tmp_path / "sound.stl")
    run = CliRunner().invoke(root, ["check", str(tmp_path / "open.stl"), "--checks", "mesh"])
    assert run.exit_code == 1
    assert "will not print" in run.output
    assert "use --repair, or correct it in the program that made the model [open_edges]" in " ".join(run.output.split())
    assert "open.stl open-fixed.3mf --repair" in " ".join(run.output.split())
    arguments = ["check", str(tmp_path), "--checks", "mesh", "--json", "--fail-on", "never"]
    run = CliRunner().invoke(root, arguments)
    assert run.exit_code == 0
    verdicts = {Path(item["file"]).name: item["verdict"] for item in json.loads(run.stdout)}
    assert verdicts == {"open.stl": "will_not_print", "sound.stl": "ready"}


def test_notes_of_the_reader_are_part_of_the_verdict(tmp_path: Path) -> None:
    with Registry(entry_points=False) as registry:
        small = Scene(meshes=(Mesh(BOX / 1000, BOX_FACES),), parts=(Part(0),))
        registry.write(small, tmp_path / "small.stl")
        verdict = registry.check(tmp_path / "small.stl", checks="mesh")
    assert "looks_like_meters" in [note.code for note in verdict.notes if isinstance(note, Note)]


def test_the_command_of_remedies_repeats_the_request_and_can_be_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "50")
    with Registry(entry_points=False) as registry:
        registry.write(box(missing=1), "--open lid.stl")
    arguments = ["check", "--input-unit", "cm", "--checks", "mesh", "--", "--open lid.stl"]
    output = CliRunner().invoke(root, arguments).output
    (command,) = [line.partition("try: ")[2] for line in output.splitlines() if "try: " in line]
    assert shlex.split(command) == [
        "meshhub", "convert", "./--open lid.stl", "./--open lid-fixed.3mf", "--input-unit", "cm", "--repair",
    ]  # fmt: skip
    assert CliRunner().invoke(root, shlex.split(command)[1:]).exit_code == 0
    with Registry(entry_points=False) as registry:
        assert registry.inspect("--open lid-fixed.3mf").model.size_mm == (100, 200, 300)


def test_standard_input_has_flags_instead_of_a_command(tmp_path: Path) -> None:
    with Registry(entry_points=False) as registry:
        registry.write(box(missing=1), tmp_path / "open.stl")
    content = (tmp_path / "open.stl").read_bytes()
    output = CliRunner().invoke(root, ["check", "-", "--checks", "mesh"], input=content).output
    assert "try: --repair\n" in output
