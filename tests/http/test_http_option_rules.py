"""Rules that concern several options: declared ones, and checks by the code of a plug-in."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest
from msgspec import Meta, Struct

import coat
from distributions import install
from http_serving import check_error, serving
from meshhub import LOCAL, InvalidOption, Isolated, Operation, PluginError, Registry, Source, Stage, Target, hookimpl
from meshhub.model.chain import Request
from meshhub.pipeline.hooks import Hooks
from meshhub.supported import supported
from models import brick, scene_of

pytestmark = pytest.mark.once

SUPPORT = Path(__file__).parents[1] / "support"
BRICK = Registry(entry_points=False).convert_bytes(scene_of(brick()), "stl")

REJECTED: dict[str, tuple[dict[str, Any], str]] = {
    "requires": ({"coat_layers": 2}, "option 'coat_layers' needs 'coat_gray'; set both"),
    "conflict": ({"coat_clear": True, "coat_gray": 7}, "options 'coat_clear' and 'coat_gray' exclude each other"),
    "conflict with a built-in": ({"coat_clear": True, "repair": True}, "'coat_clear' and 'repair' exclude"),
    "check with names": ({"coat_gray": 0, "coat_layers": 2}, "coat_layers 2 is too much for black"),
    "check": ({"coat_gray": 0, "coat_layers": 3}, "three black layers never dry"),
}
ACCEPTED: tuple[dict[str, Any], ...] = (
    {"coat_layers": 2, "coat_gray": 3},
    {"coat_clear": True},
    {"coat_clear": False, "coat_gray": 7},
    {"coat_clear": True, "repair": False},
    {"coat_layers": "", "coat_clear": "true"},
)


@pytest.fixture(scope="module", params=["given", "installed"])
def registry(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """A registry that calls checks in this process, or in a worker."""
    if request.param == "given":
        yield Registry([coat], entry_points=False)
        return
    if sys.platform == "win32":
        pytest.skip("the checks need POSIX")
    folder = tmp_path_factory.mktemp("installed")
    install(folder, "meshhub-coat", coat="coat")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        with Registry(engine=Isolated(workers=1), hooks=Hooks(hook_s=2)) as registry:
            yield registry


@pytest.mark.parametrize(("options", "message"), REJECTED.values(), ids=REJECTED)
def test_combinations_are_rejected_before_the_source_is_read(
    registry: Registry, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidOption, match=message) as raised:
        registry.check_request(Request(target="stl", options=options))
    assert raised.value.error_code == "invalid_option"
    assert raised.value.options


@pytest.mark.parametrize("options", ACCEPTED)
def test_other_combinations_are_accepted(registry: Registry, options: dict[str, Any]) -> None:
    registry.check_request(Request(target="stl", options=options))


def test_the_options_of_a_writer_are_checked(registry: Registry) -> None:
    options = {"coatfile_short": True, "coatfile_lines": 6}
    with pytest.raises(InvalidOption, match="at most five lines"):
        registry.convert(Source.from_bytes(BRICK, "a.stl"), Target(), target="coatfile", options=options)
    # the writer is not in this chain
    assert registry.convert(Source.from_bytes(BRICK, "a.stl"), Target(), target="stl", options=options).ok


@pytest.mark.parametrize("mood", ["raise", "hang", "exit"])
def test_a_broken_check_rejects_the_request(registry: Registry, mood: str) -> None:
    if not any(plugin.entry_point for plugin in registry.plugins) and mood != "raise":
        pytest.skip("only a worker contains it")
    with pytest.raises(PluginError, match=r"the check of options of plug-in 'coat' \(.*\) failed") as raised:
        registry.check_request(Request(target="stl", options={"coat_mood": mood, "coat_gray": 1}))
    assert "secret" not in raised.value.message
    registry.check_request(Request(target="stl", options={"coat_gray": 1}))


def test_rules_are_listed() -> None:
    listed = supported(Registry([coat], entry_points=False), LOCAL)
    (operation,) = (entry for entry in listed["operations"] if entry["id"] == "coat")
    properties = operation["options"]["properties"]
    assert properties["coat_layers"]["x-requires"] == ["coat_gray"]
    assert properties["coat_clear"]["x-conflicts-with"] == ["coat_gray", "repair"]
    assert not any("x-" in key for key in properties["coat_gray"])


def test_a_rule_about_an_unknown_option_is_a_fault() -> None:
    class Options(Struct, frozen=True, kw_only=True):
        odd_size: Annotated[float, Meta(title="Size", extra={"requires": ("odd_shape",)})] | None = None

    class Odd:
        @hookimpl
        def meshhub_operations(self) -> list[Operation]:
            return [Operation(id="odd", label="Odd", stage=Stage.PLACE, options=Options, run="coat:run")]

    (fault,) = Registry([Odd()], entry_points=False).faults
    assert fault.message == "option 'odd_size' has a rule about 'odd_shape', which no plug-in declares"


@pytest.mark.parametrize("extra", [{"require": ("odd_size",)}, {"requires": "odd_size"}, {"conflicts_with": (1,)}])
def test_a_malformed_rule_is_a_fault(extra: dict[str, Any]) -> None:
    field = ("odd_size", Annotated[float, Meta(title="Size", extra=extra)] | None, None)
    options = msgspec.defstruct("Options", [field], frozen=True, kw_only=True)

    class Odd:
        @hookimpl
        def meshhub_operations(self) -> list[Operation]:
            return [Operation(id="odd", label="Odd", stage=Stage.PLACE, options=options, run="coat:run")]

    registry = Registry([Odd()], entry_points=False)
    assert "rule" in registry.faults[0].message
    assert "odd" not in registry.operations


def run_command(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join((str(tmp_path / "site"), str(SUPPORT)))
    return subprocess.run(
        [sys.executable, "-m", "meshhub", *arguments],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "200"},
    )


def test_the_command_line_names_flags(tmp_path: Path) -> None:
    install(tmp_path / "site", "meshhub-coat", coat="coat")
    (tmp_path / "a.stl").write_bytes(BRICK)
    done = run_command(tmp_path, "convert", "a.stl", "b.ply", "--coat-layers", "2")
    assert done.returncode == 2
    assert "option '--coat-layers' needs '--coat-gray'; set both [invalid_option]" in done.stderr
    done = run_command(tmp_path, "convert", "a.stl", "b.ply", "--coat-gray", "0", "--coat-layers", "3")
    assert (done.returncode, done.stderr) == (2, "error: three black layers never dry [invalid_option]\n")
    shown = " ".join(run_command(tmp_path, "convert", "--help-all").stdout.split())
    assert "(at least 1 and at most 99; needs --coat-gray)" in shown
    assert "(not with --coat-gray, not with --repair)" in shown


def test_the_service_responds_with_a_code(tmp_path: Path) -> None:
    with serving(tmp_path, {"workers": 1}, plugins=(coat,)) as server:
        for options, message in REJECTED.values():
            fields = {name: str(value).lower() for name, value in options.items()}
            response = server.convert(BRICK, "a.stl", "stl", **fields)
            assert message in check_error(response, 400, "invalid_option")["error"]
