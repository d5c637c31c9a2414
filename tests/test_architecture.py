"""The shape of the code: imports only go up, hooks are documented as they are, names are public."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import meshhub
from meshhub import hookspecs

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "meshhub"

LIGHT = (
    "errors names capabilities notes options plans redaction settings logs scratch source report chain hookspecs "
    "plugins collect"
).split()
HEAVY = (
    "columns scene colors polygons geometry topology containment zip_directory archive inspection run engine registry "
    "supported keys builtin_plugins http cli testing"
).split()
ORDER = LIGHT + HEAVY
"""From the bottom up; what is listed earlier never imports what is listed later."""


def imports(path: Path) -> set[str]:
    """The meshhub modules that a file imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return {name.split(".")[1] for name in found if name.startswith("meshhub.")}


def rooms() -> list[tuple[str, Path]]:
    return [
        (path.relative_to(SOURCE).parts[0].removesuffix(".py"), path)
        for path in sorted(SOURCE.rglob("*.py"))
        if path.relative_to(SOURCE).parts[0] not in ("__init__.py", "__main__.py")
    ]


def test_every_module_has_its_place() -> None:
    assert {room for room, _ in rooms()} <= set(ORDER)


@pytest.mark.parametrize(("room", "path"), [pytest.param(*one, id=str(one[1].relative_to(SOURCE))) for one in rooms()])
def test_imports_only_go_up(room: str, path: Path) -> None:
    later = {name for name in imports(path) & set(ORDER) if ORDER.index(name) > ORDER.index(room)}
    assert not later, f"{path.name} imports {later}, which come after {room}"


@pytest.mark.parametrize("path", sorted((SOURCE / "builtin_plugins").rglob("*.py")), ids=lambda path: path.parent.name)
def test_builtins_use_what_any_plugin_may_use(path: Path) -> None:
    assert not imports(path) & {"registry", "run", "engine", "plugins", "collect", "http", "cli", "keys"}
    own = "meshhub.builtin_plugins." + path.relative_to(SOURCE / "builtin_plugins").parts[0].removesuffix(".py")
    others = re.findall(r"^\s*(?:from|import) (meshhub\.builtin_plugins\.\S+)", path.read_text(encoding="utf-8"), re.M)
    assert all(other.startswith(own) for other in others)


def test_public_names_exist_and_are_listed_alike() -> None:
    tree = ast.parse((SOURCE / "__init__.py").read_text(encoding="utf-8"))
    typed = {
        (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module != "__future__"
        for alias in node.names
        if node.module != "typing"
    }
    lazily = {(module, name) for module, names in meshhub._HOME.items() for name in names.split()}
    assert typed == lazily
    for module, name in lazily:
        assert getattr(meshhub, name) is getattr(importlib.import_module(module), name)


def hooks() -> dict[str, str]:
    """Every hook and its signature as it is written."""
    return {
        name: str(inspect.signature(function)).replace("'", "")
        for module in hookspecs.MODULES
        for name, function in vars(module).items()
        if name.startswith("meshhub_")
    }


@pytest.mark.parametrize(("name", "signature"), hooks().items())
def test_every_hook_is_documented_with_its_signature(name: str, signature: str) -> None:
    assert f"{name}{signature}" in (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")


def test_every_hook_is_used_or_tested() -> None:
    said = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py"))
    for name in hooks():
        assert name in said


def test_the_code_runs_where_python_starts() -> None:
    """A plug-in's declarations never import numpy: the listing of formats stays light."""
    for path in (SOURCE / "builtin_plugins").glob("*/__init__.py"):
        assert "numpy" not in path.read_text(encoding="utf-8").split()


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc")
def test_what_is_loaded_before_the_fork_starts_no_thread() -> None:
    from meshhub.engine.isolated import SINGLE_THREADED

    code = "import meshhub.engine.preload, os; print(len(os.listdir('/proc/self/task')))"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **SINGLE_THREADED}, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "1"
