"""What a command imports: the time of a short command is the time of its imports."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import click
import pytest

from meshhub import Registry
from meshhub.cli import _COMMANDS, root
from meshhub.pipeline import collecting

EXAMPLE = Path(__file__).parent.parent / "examples" / "bracket.stl"

LISTING = """
import sys
from meshhub.cli import main

sys.argv = ["meshhub", *sys.argv[1:]]
try:
    main()
except SystemExit:
    print(*sys.modules, file=sys.stderr)
"""

CONVERSION = """
import sys
from meshhub import Registry

Registry(entry_points=False).convert(sys.argv[1], sys.argv[2])
print(*sys.modules, file=sys.stderr)
"""

UNUSED = set(
    "numpy pyarrow scipy manifold3d isal httpx asyncio multiprocessing concurrent.futures subprocess socket "
    "importlib.metadata importlib.resources email zipfile".split()
)
"""Modules that no listing needs; each costs milliseconds."""


def list_modules(code: str, *arguments: str) -> set[str]:
    result = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    return set(result.stderr.splitlines()[-1].split())


@pytest.mark.parametrize(
    "arguments",
    [("--help",), ("formats",), ("operations", "--json"), ("explain", str(EXAMPLE), "3mf"), ("convert", "--help")],
    ids=" ".join,
)
def test_a_command_that_converts_nothing_imports_little(arguments: tuple[str, ...]) -> None:
    used = list_modules(LISTING, *arguments)
    if importlib.util.find_spec("OCP") is None:
        # what is missing is named by the metadata of the distribution
        used -= list_modules("import sys, importlib.metadata; print(*sys.modules, file=sys.stderr)")
    assert not used & UNUSED


@pytest.mark.parametrize("suffix", [".stl", ".glb", ".ply"])
def test_a_small_binary_file_is_converted_without_pyarrow_to_the_same_bytes(tmp_path: Path, suffix: str) -> None:
    alone, beside = tmp_path / f"alone{suffix}", tmp_path / f"beside{suffix}"
    assert not list_modules(CONVERSION, str(EXAMPLE), str(alone)) & {"pyarrow", "scipy"}
    list_modules(f"import meshhub.toolkit.columns{CONVERSION}", str(EXAMPLE), str(beside))
    assert alone.read_bytes() == beside.read_bytes()


def test_the_service_imports_no_numpy() -> None:
    """It only moves files; the libraries of models would double the memory of its process."""
    pytest.importorskip("litestar")
    modules = list_modules("import sys, meshhub.http; print(*sys.modules, file=sys.stderr)")
    assert not modules & {"numpy", "pyarrow", "scipy", "reportlab"}


def test_the_help_imports_no_command() -> None:
    modules = list_modules(LISTING, "--help")
    assert "meshhub.cli" in modules
    assert not modules & {reference.partition(":")[0] for reference, _ in _COMMANDS.values()}
    assert "msgspec" not in modules


def test_the_summary_of_each_command_is_that_of_its_help() -> None:
    context = click.Context(root)
    for name, (_, summary) in _COMMANDS.items():
        command = root.get_command(context, name)
        assert command is not None
        assert command.get_short_help_str(200) == summary


def test_declarations_of_builtins_pass_the_checks_that_they_are_spared(monkeypatch: pytest.MonkeyPatch) -> None:
    spared = Registry(entry_points=False)
    monkeypatch.setattr(collecting, "_is_tested", lambda _: False)
    checked = Registry(entry_points=False)
    assert checked.faults == ()
    assert checked.declarations == spared.declarations
    assert checked.plans == spared.plans


def test_options_do_not_postpone_annotations() -> None:
    """msgspec compiles each postponed annotation from its text: a tenth of the time of `meshhub formats`."""
    for _, struct in Registry(entry_points=False).declarations.option_structs():
        assert not any(isinstance(annotation, str) for annotation in struct.__annotations__.values()), struct
