"""Completion scripts, run by the shells that they are for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from test_cli import meshhub_cli, meshhub_process, write_stl

pytestmark = pytest.mark.once

RUN = {
    # `compopt` works only while bash completes
    "bash": """
compopt() { local IFS=" "; echo "compopt $*"; }
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_meshhub_completion meshhub
printf '%s\\n' "${COMPREPLY[@]}"
""",
    # stubs of what the completion system of zsh provides
    "zsh": """
compdef() { }
compadd() { shift 4; print -l -- ${(P)1} }
_describe() { print -l -- ${completions_with_descriptions%%:*} }
_path_files() { echo "compopt -o default" }
source "$1"; shift
words=("$@"); CURRENT=$#
_meshhub_completion
""",
    "fish": """
source $argv[1]
complete -C "$argv[2..]" | string replace -r "\\t.*" ""
""",
}

SHELLS = [
    pytest.param(name, marks=pytest.mark.skipif(shutil.which(name) is None, reason=f"{name} is not installed"))
    for name in RUN
]


def complete(folder: Path, shell: str, *words: str) -> list[str]:
    """Return what a shell offers for the last word; "compopt -o default" stands for files."""
    script = folder / "completion script"
    if not script.exists():
        script.write_bytes(meshhub_cli("completion", shell).stdout)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    arguments = {"bash": ["bash", "--norc", "-c"], "zsh": ["zsh", "-f", "-c"], "fish": ["fish", "--no-config", "-c"]}
    end = [] if shell == "fish" else [shell]
    done = subprocess.run(
        [*arguments[shell], RUN[shell], *end, script, "meshhub", *words],
        capture_output=True,
        cwd=folder,
        env={**os.environ, "PATH": path},
        timeout=300,
        check=False,
    )
    assert done.stderr == b""
    return done.stdout.decode().split("\n")[:-1]


def ask(*words: str) -> list[str]:
    """Return what the program answers the script of bash, for the last word."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("_MESHHUB_COMPLETE", "bash_complete")
        patch.setenv("COMP_WORDS", " ".join(("meshhub", *words)))
        patch.setenv("COMP_CWORD", str(len(words)))
        return meshhub_cli().stdout.decode().split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["conv"], ["convert"]),
        (["keys", "cr"], ["create"]),
        (["nonsense", "x"], []),
        (
            ["convert", "--repa"],
            ["--repair", "--repair-solid", "--repair-self-intersections", "--repair-fragments-mm", "--repair-wrap-mm"],
        ),
        (["convert", "a.stl", "--target"], ["--target-height-mm"]),
        (["convert", "a.stl", "--to", "g"], ["glb", "gltf"]),
        (["convert", "a.stl", "--step-surfaces", "a"], ["analytic"]),
        (["convert", "a.stl", "3"], ["3mf"]),
        (["inspect", "--input-format", "s"], ["step", "stl"]),
        (["render", "a.stl", "a.png", "--color-by", "su"], ["surface"]),
        (["explain", "a.stl", "ob"], ["obj"]),
        (["keys", "create", "--plan", "p"], ["pro"]),
        (["explain", "a.stl", "3mf", "--plan", "p"], ["pro"]),
        (["convert", "a.stl", "--recipe", "print"], ["print", "print-color"]),
        (["plugins", "disable", "pl"], ["place_on_bed", "plans", "plinth", "ply"]),
        (["completion", "z"], ["zsh"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_commands_options_and_values_are_completed(words: list[str], offered: list[str]) -> None:
    assert ask(*words) == [f"plain,{word}" for word in offered]


@pytest.mark.parametrize(
    "words",
    [
        ["convert", "a.s"],
        ["convert", "a.stl", "a.s"],
        ["convert", "a.stl", "a"],
        ["convert", "--output", "a.s"],
        ["convert", "a.stl", "--recipe", "a.s"],
        ["inspect", "a.s"],
        ["render", "a.s"],
    ],
    ids=" ".join,
)
def test_files_are_completed_by_the_shell(words: list[str]) -> None:
    assert [answer.partition(",")[0] for answer in ask(*words)] == ["file"]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["keys", "cr"], ["create"]),
        (["nonsense", "x"], []),
        (["convert", "a.stl", "--to", "g"], ["glb", "gltf"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_the_shell_offers_the_answers(tmp_path: Path, shell: str, words: list[str], offered: list[str]) -> None:
    found = [word for word in complete(tmp_path, shell, *words) if word]
    # fish has an order of its own
    assert (sorted(found) if shell == "fish" else found) == (sorted(offered) if shell == "fish" else offered)


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("words", [["convert", "a.s"], ["convert", "--output", "a.s"]], ids=" ".join)
def test_the_shell_completes_files(tmp_path: Path, shell: str, words: list[str]) -> None:
    write_stl(tmp_path / "a.stl")
    offered = [word for word in complete(tmp_path, shell, *words) if word]
    assert offered == (["a.stl"] if shell == "fish" else ["compopt -o default"])


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_completes_folders(tmp_path: Path, shell: str) -> None:
    (tmp_path / "parts").mkdir()
    offered = [word for word in complete(tmp_path, shell, "convert", "--watch", "pa") if word]
    assert offered == {"bash": ["compopt -o dirnames"], "zsh": ["compopt -o default"], "fish": ["parts/"]}[shell]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_disabled_plugin_is_completed_no_more(tmp_path: Path, shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert meshhub_process("plugins", "disable", "repair").returncode == 0
    assert "--repair" not in complete(tmp_path, shell, "convert", "--repa")
    assert "repair" not in complete(tmp_path, shell, "plugins", "disable", "rep")
    assert complete(tmp_path, shell, "plugins", "enable", "r") == ["repair"]


def test_an_unknown_shell_is_an_error() -> None:
    done = meshhub_cli("completion", "csh")
    assert done.returncode == 2
    assert b"bash" in done.stderr
