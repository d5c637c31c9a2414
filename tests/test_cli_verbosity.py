"""Flags and widths that all commands have in common."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from meshhub.cli import root
from test_cli import EXAMPLE, meshhub_cli, meshhub_process, write_stl

pytestmark = pytest.mark.once


def list_commands(group: click.Group, *path: str) -> list[tuple[tuple[str, ...], click.Command]]:
    """Return every command with its names."""
    context = click.Context(group)
    commands = []
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        commands.append(((*path, name), command))
        if isinstance(command, click.Group):
            commands += list_commands(command, *path, name)
    return commands


COMMANDS = list_commands(root)


def run_narrow(*arguments: object, cwd: Path | None = None) -> list[str]:
    """Run a command on a terminal of 80 columns; return the lines of both streams."""
    done = meshhub_cli(*arguments, cwd=cwd, columns=80)
    assert done.returncode == 0, done.stderr
    return (done.stdout + done.stderr).decode().splitlines()


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=lambda value: " ".join(value) if value is tuple else "")
def test_every_command_has_the_flags_of_verbosity(path: tuple[str, ...], command: click.Command) -> None:
    if not isinstance(command, click.Group):
        names = {name for param in command.params for name in param.opts}
        assert {"-q", "--quiet", "-v", "--verbose"} <= names, path


@pytest.mark.parametrize("arguments", [("-v", "convert"), ("convert", "-v"), ("convert", "--verbose")])
def test_verbose_prints_choices_and_timings(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = meshhub_process(*arguments, EXAMPLE, "--output", tmp_path / "a.ply", "--place-on-bed")
    assert done.returncode == 0, done.stderr
    text = done.stderr.decode()
    assert "the reader of STL (plug-in 'stl'): content looks like STL" in text
    assert "the operation Place on bed" in text
    assert "timings: read stl 0." in text
    assert "write ply 0." in text
    assert done.stdout == b""


def test_a_verbose_batch_prints_timings(tmp_path: Path) -> None:
    done = meshhub_process("convert", EXAMPLE, "--to", "ply", "-o", tmp_path, "-v")
    assert b"timings: read stl 0." in done.stderr


def test_verbose_prints_nothing_by_default(tmp_path: Path) -> None:
    done = meshhub_cli("convert", EXAMPLE, tmp_path / "a.ply")
    assert b"plug-in" not in done.stderr
    assert b"timings" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("-q", "convert", "a.stl", "b.stl", "--output-dir", "out", "--to", "obj"),
        ("convert", "a.stl", "b.obj", "--quiet"),
        ("-q", "convert", "a.stl", "-", "--to", "obj"),
        ("inspect", "-q", "a.stl", "--input-unit", "m"),
        ("explain", "a.stl", "step", "--ply-ascii", "-q"),
        ("-q", "render", "a.stl", "a.png"),
        ("formats", "-q"),
    ],
)
def test_quiet_prints_nothing_but_results(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    for name in ("a.stl", "b.stl"):
        write_stl(tmp_path / name)
    done = meshhub_process(*arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""


def test_quiet_prints_errors(tmp_path: Path) -> None:
    done = meshhub_cli("-q", "convert", tmp_path / "none.stl", tmp_path / "b.ply")
    assert done.returncode == 3
    assert b"does not exist" in done.stderr


@pytest.mark.parametrize("arguments", [("-q", "-v", "formats"), ("-q", "formats", "-v"), ("-v", "convert", "-q", "x")])
def test_quiet_and_verbose_exclude_each_other(arguments: tuple[str, ...]) -> None:
    done = meshhub_process(*arguments)
    assert done.returncode == 2
    assert b"either --quiet or --verbose" in done.stderr


@pytest.mark.parametrize("path", [(), *(path for path, _ in COMMANDS)], ids=" ".join)
def test_help_fits_80_columns(path: tuple[str, ...]) -> None:
    lines = run_narrow(*path, "--help")
    assert [line for line in lines if len(line) > 80] == []
    # a list of commands cuts long summaries
    listed = lines[lines.index("Commands:") :] if "Commands:" in lines else []
    assert [line for line in listed if line.endswith("...")] == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("formats",),
        ("operations",),
        ("plugins",),
        ("config",),
        ("inspect", "long.stl", "m.stl"),
        ("explain", "long.stl", "step", "--repair", "--optimize-target-faces", "123456", "--obj-up", "y"),
        ("convert", "long.stl", "--output", "a.ply", "--repair", "--target-height-mm", "40", "--flatten-base-mm", "1"),
        ("convert", "m.stl", "long.stl", "-o", "a/rather/long/folder/name/for/the/output", "--to", "obj", "--repair"),
        ("convert", "m.stl", "long.stl", "-o", "a/rather/long/folder/name/for", "--to", "obj", "--repair", "--dry-run"),
        ("render", "m.stl", "m.png"),
    ],
    ids=lambda arguments: f"{arguments[0]} {len(arguments)}",
)
def test_output_fits_80_columns(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    (tmp_path / "long.stl").write_bytes(EXAMPLE.read_bytes())
    write_stl(tmp_path / "m.stl", (0.01, 0.02, 0.03))
    lines = run_narrow(*arguments, cwd=tmp_path)
    assert [line for line in lines if len(line) > 80] == []
    assert any(lines)


def test_a_pipe_gets_each_note_and_figure_on_one_line(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    done = subprocess.run(
        [sys.executable, "-m", "meshhub", "convert", EXAMPLE, tmp_path / "a.ply", "--repair"],
        capture_output=True,
        env=environment,
        check=True,
    )
    assert max(map(len, done.stderr.decode().splitlines())) > 80
