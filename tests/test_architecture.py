"""The shape of the code: imports only go up, hooks are documented as they are, names are public."""

# why the number of lines has no limit: docs/decisions/0034-lines.md

# why this way: docs/decisions/0002-order-of-modules.md
from __future__ import annotations

import ast
import functools
import importlib
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import meshhub
from meshhub import Registry, errors, hookspecs
from meshhub.pipeline.declarations import Declared, is_importable

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "meshhub"

PACKAGES = (
    "error_codes errors model toolkit interop hookspecs pipeline engine registry supported reporting service client "
    "builtin_plugins http cli testing"
).split()
"""From the bottom up: a package imports only itself and packages listed before it."""

LAYERS = {
    "http": (
        "context translating errors headers loops admission intake responses metrics conversions jobs local_app "
        "sending slicers state description endpoints openapi server"
    ).split(),
    "builtin_plugins/step": (
        "surfaces facets recognition solids part21 reading kernel draft beginnings report writer"
    ).split(),
}
"""The same order inside large packages."""

WITHOUT_NUMPY = (
    "error_codes errors model.api_version model.capabilities model.notes model.options model.report model.source "
    "model.plans model.chain model.deadline model.progress hookspecs "
    "pipeline.loading pipeline.declarations pipeline.collecting pipeline.resolve service.settings engine.scratch "
    "engine.logs registry supported builtin_plugins.stl builtin_plugins.step builtin_plugins.repair"
).split()
"""Listing capabilities stays light: these modules never import numpy, not even through others."""


REFERENCE = re.compile(r"(meshhub(?:\.\w+)+)(?::\w+)?")
"""Text that names a module or a function in it."""

LOADED_BY_NAME = {"pipeline/plugin_errors.py": "meshhub.builtin_plugins"}
"""Modules that a file may name although they come after it. Built-in plug-ins are loaded by name, as all others are."""


@functools.cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def list_imports(path: Path) -> set[str]:
    """Dotted names of the meshhub modules that a file imports or names in a text, wherever in it."""
    names: set[str] = set()
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            match = REFERENCE.fullmatch(node.value)
            if match is not None and is_module(match[1]):
                names.add(match[1])
    names.discard(LOADED_BY_NAME.get(path.relative_to(SOURCE).as_posix(), ""))
    return {name for name in names if name.startswith("meshhub.")}


def is_module(name: str) -> bool:
    path = SOURCE.joinpath(*name.split(".")[1:])
    return path.is_dir() or path.with_suffix(".py").is_file()


def list_files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*.py")) if path.parent != folder or path.stem[:2] != "__"]


def list_packages(path: Path, folder: Path) -> tuple[str, set[str]]:
    """The package of `folder` that a file is in, and the packages of `folder` that the file imports."""
    prefix = ".".join(("meshhub", *folder.relative_to(SOURCE).parts, ""))
    imported = {name.removeprefix(prefix).split(".")[0] for name in list_imports(path) if name.startswith(prefix)}
    return path.relative_to(folder).parts[0].removesuffix(".py"), imported


@pytest.mark.once
def test_every_module_is_in_a_listed_package() -> None:
    assert {list_packages(path, SOURCE)[0] for path in list_files(SOURCE)} == set(PACKAGES)
    http = {list_packages(path, SOURCE / "http")[0] for path in list_files(SOURCE / "http")}
    assert http == set(LAYERS["http"])


@pytest.mark.once
@pytest.mark.parametrize("folder", ["", *LAYERS])
def test_imports_only_go_up(folder: str) -> None:
    order = LAYERS.get(folder, PACKAGES)
    for path in list_files(SOURCE / folder):
        package, imported = list_packages(path, SOURCE / folder)
        if package in order:
            above = {name for name in imported & set(order) if order.index(name) > order.index(package)}
            assert not above, f"{path.relative_to(SOURCE)} imports {above}, which come after {package}"


@pytest.mark.once
def test_no_two_modules_import_each_other() -> None:
    """Imports for type checkers alone do not count, nor do those of a package and its modules."""
    imported: dict[str, set[str]] = {}
    for path in list_files(SOURCE):
        tree = parse(path)
        typing = [node for node in tree.body if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)]
        unused = {child for node in typing for child in ast.walk(node)}
        nodes = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node not in unused]
        names = {f"{node.module}.{alias.name}" for node in nodes for alias in node.names}
        module = ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts)
        imported[module] = names | {str(node.module) for node in nodes}
    pairs = [(a, b) for a in imported for b in imported[a] & imported.keys() if a < b and a in imported[b]]
    assert pairs == []


def test_listing_capabilities_imports_no_numpy() -> None:
    modules = ", ".join(f"meshhub.{name}" for name in WITHOUT_NUMPY)
    code = f"import {modules}, sys; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_folder_of_a_builtin_plugin_is_loaded() -> None:
    folders = {path.parent.name for path in (SOURCE / "builtin_plugins").glob("*/__init__.py")}
    assert {plugin.name for plugin in Registry(entry_points=False).plugins} == folders


def test_builtins_use_only_the_public_modules() -> None:
    for path in sorted((SOURCE / "builtin_plugins").rglob("*.py")):
        used = {name.split(".")[1] for name in list_imports(path)}
        assert used <= {"errors", "model", "toolkit", "hookspecs", "builtin_plugins"}, path
        own = "meshhub.builtin_plugins." + path.relative_to(SOURCE / "builtin_plugins").parts[0].removesuffix(".py")
        text = path.read_text(encoding="utf-8")
        others = re.findall(r"^\s*(?:from|import) (meshhub\.builtin_plugins\.\S+)", text, re.M)
        assert all(other.startswith(own) for other in others), path


def test_public_names_exist_and_match_the_list() -> None:
    tree = ast.parse((SOURCE / "__init__.py").read_text(encoding="utf-8"))
    typed = {
        (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        # the form that re-exports a name
        if alias.asname == alias.name
    }
    lazily = {(module, name) for module, names in meshhub._NAMES_BY_MODULE.items() for name in names.split()}
    assert typed == lazily
    for module, name in {*lazily, *(("meshhub.errors", name) for name in errors.__all__)}:
        assert name in meshhub.__all__
        assert name in dir(meshhub)
        assert getattr(meshhub, name) is getattr(importlib.import_module(module), name)


def hooks() -> dict[str, str]:
    """Every hook and its signature as it is written."""
    return {
        name: str(inspect.signature(function)).replace("'", "")
        for name, function in vars(hookspecs).items()
        if name.startswith("meshhub_")
    }


@pytest.mark.parametrize(("name", "signature"), hooks().items())
def test_every_hook_is_documented_with_its_signature(name: str, signature: str) -> None:
    assert f"{name}{signature}" in (ROOT / "docs" / "reference" / "hooks.md").read_text(encoding="utf-8")


def test_every_hook_is_used_or_tested() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py"))
    for name in hooks():
        assert name in text


def test_declarations_of_builtins_do_not_mention_numpy() -> None:
    """A plug-in's declarations never import numpy: the listing of formats stays light."""
    for path in (SOURCE / "builtin_plugins").glob("*/__init__.py"):
        assert "numpy" not in path.read_text(encoding="utf-8").split()


PRELOAD = """
import importlib, os, sys
importlib.import_module(sys.argv[1])
threads = len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 1
print(threads, *sys.modules)
"""


def find_preloaded(module: str) -> set[str]:
    """Return the modules that a fork server has after it has imported a module without starting a thread."""
    from meshhub.engine.start_environment import SINGLE_THREADED

    result = subprocess.run(
        [sys.executable, "-c", PRELOAD, module],
        env={**os.environ, **SINGLE_THREADED},
        capture_output=True,
        text=True,
        check=True,
    )
    threads, *modules = result.stdout.split()
    assert threads == "1"
    return set(modules)


@pytest.mark.process
def test_the_fork_server_of_small_conversions_has_no_large_library() -> None:
    """The fork and the end of a process take time in proportion to its memory."""
    modules = find_preloaded("meshhub.engine.preload")
    assert {"meshhub.builtin_plugins.stl.reader", "meshhub.builtin_plugins.threemf.writer"} <= modules
    assert not {"scipy", "OCP", "pymeshlab", "fast_simplification", "PIL", "trimesh", "litestar"} & modules


@pytest.mark.process
def test_the_other_fork_server_preloads_what_capabilities_declare() -> None:
    modules = find_preloaded("meshhub.engine.preload_libraries")
    declarations = Registry(entry_points=False).declarations
    declared: tuple[Declared[Any], ...] = (*declarations.readers, *declarations.writers, *declarations.operations)
    late = {module for item in declared for module in (*item.capability.needs, *item.capability.preload)}
    assert {"scipy", "pymeshlab", "OCP.BRepMesh", "DracoPy"} <= late
    assert {module for module in late if is_importable(module)} <= modules
