"""Generated tables in pages that are written by hand, between `<!-- generated: NAME -->` and `<!-- end -->`."""

from __future__ import annotations

import ast
import importlib
import re
import tomllib
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import meshhub
from meshhub import errors
from meshhub.builtin_plugins.threemf.printers import PRINTERS
from meshhub.model.capabilities import Operation, Stage
from meshhub.model.options import OptionField, option_fields
from meshhub.toolkit.print_materials import MATERIALS
from meshhub.toolkit.slicers import SLICERS
from reference_pages import REGISTRY, code, python_api, table

SOURCE = Path(meshhub.__file__).parent

_BLOCK = re.compile(r"(<!-- generated: ([\w-]+)(?: (\S+))? -->\n).*?(<!-- end -->)", re.DOTALL)


def has_blocks(text: str) -> bool:
    """Return whether a page has generated tables."""
    return _BLOCK.search(text) is not None


def fill_blocks(text: str) -> str:
    """Return a page with its generated tables."""
    return _BLOCK.sub(lambda match: f"{match[1]}\n{_fill(match[2], match[3])}\n\n{match[4]}", text)


def _fill(name: str, argument: str | None) -> str:
    return _BLOCKS[name]() if argument is None else python_api.describe(argument)


def _summary(plugin: str) -> str:
    """Return the text after the colon in the first paragraph of the docstring of a plug-in."""
    text = importlib.import_module(f"meshhub.builtin_plugins.{plugin}").__doc__ or ""
    return " ".join(text.partition("\n\n")[0].partition(":")[2].split()).removesuffix(".")


def _formats() -> str:
    """Return the table of formats: a row for each plug-in that reads or writes some."""
    declarations, rows = REGISTRY.declarations, []
    for plugin in sorted({each.plugin for each in (*declarations.writers, *declarations.readers)}):
        writers = [each.capability for each in declarations.writers if each.plugin == plugin]
        readers = [each.capability for each in declarations.readers if each.plugin == plugin]
        labels = dict.fromkeys(each.format.label for each in (*writers, *readers))
        kept = {*writers[0].carries}.union(*writers[0].carries_with.values()) if writers else {"–"}
        rows.append((", ".join(labels), _summary(plugin), ", ".join(sorted(kept))))
    return table(("format", "what is read and written", "what the writer keeps"), rows)


def _operations() -> str:
    """Return the table of operations, in the order in which they run."""
    rows = (
        (_summary(each.plugin), code(_call(option_fields(each.capability.options)[0])))
        for each in REGISTRY.declarations.operations
    )
    return table(("operation", "option"), rows)


def _call(field: OptionField) -> str:
    """Return the flag of an option with its example."""
    values = {"flag": "", "integer": " N", "number": " N"}
    return field.flag + values.get(field.kind, f" {field.example}")


def _stages() -> str:
    """Return the table of stages with their operations and reasons."""
    operations = [each.capability for each in REGISTRY.declarations.operations]
    rows = (
        (name.lower(), ", ".join(_options_of(stage, operations)), reason)
        for (name, reason), stage in zip(_docstrings(Stage), Stage, strict=True)
    )
    return table(("stage", "operations", "why it is there"), rows)


def _options_of(stage: Stage, operations: list[Operation]) -> Iterator[str]:
    for operation in operations:
        if operation.stage == stage:
            yield code(option_fields(operation.options)[0].name)


def _docstrings(kind: type) -> Iterator[tuple[str, str]]:
    """Yield the name of each assignment in a class, and the text below it."""
    (path,) = SOURCE.rglob(f"{kind.__module__.rpartition('.')[2]}.py")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == kind.__name__)
    for statement, text in pairwise(body):
        if isinstance(statement, ast.Assign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            yield ast.unparse(statement.targets[0]), " ".join(str(text.value.value).split())


def _checks() -> str:
    """Return the table of checks, with the codes of their findings.

    Raises:
        ValueError: The code of a finding is missing in `findings.toml`.
    """
    rows = []
    for check in REGISTRY.declarations.checks:
        folder = SOURCE / "builtin_plugins" / check.plugin
        findings = tomllib.loads((folder / "findings.toml").read_text(encoding="utf-8"))
        if missing := _finding_codes(folder) - {name for row in findings.values() for name in row["codes"]}:
            raise ValueError(f"{folder / 'findings.toml'} lacks {missing}")
        row = findings[check.capability.id]
        rows.append((code(check.capability.id), ", ".join(map(code, row["codes"])), row["finds"]))
    return table(("check", "codes", "what it finds"), rows)


def _finding_codes(folder: Path) -> set[str]:
    calls = (
        node
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Finding"
    )
    values = [keyword.value for call in calls for keyword in call.keywords if keyword.arg == "code"]
    values += [branch for value in values if isinstance(value, ast.IfExp) for branch in (value.body, value.orelse)]
    return {str(value.value) for value in values if isinstance(value, ast.Constant)}


def _densities() -> str:
    """Return the table of the densities of materials, with a row for each source."""
    names: dict[str, list[str]] = {}
    for name, material in MATERIALS.items():
        names.setdefault(material.density_source, []).append(name)
    rows = (
        (", ".join(map(code, each)), ", ".join(f"{MATERIALS[name].density_g_cm3:.2f}" for name in each), source)
        for source, each in names.items()
    )
    return table(("`print_material`", "g/cm³", "source"), rows)


def _project_printers() -> str:
    """Return the table of the printers of projects by the slicers that know them, those of several slicers first."""
    names: dict[tuple[str, ...], list[str]] = {}
    for name, printer in PRINTERS.items():
        names.setdefault(printer.presets.slicers, []).append(name)
    rows = (
        (", ".join(map(code, each)), " and ".join(SLICERS[slicer].label for slicer in slicers))
        for slicers, each in sorted(names.items(), key=lambda item: -len(item[0]))
    )
    return table(("`threemf_printer`", "slicers"), rows)


def _toolkit() -> str:
    """Return the table of the modules of the toolkit, with their functions and classes."""
    rows = []
    for path in sorted((SOURCE / "toolkit").glob("[a-z]*")):
        file = path / "__init__.py" if path.is_dir() else path
        if file.suffix != ".py":
            continue
        tree = ast.parse(file.read_text(encoding="utf-8"))
        names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
        listed = ", ".join(code(name) for name in names if not name.startswith("_"))
        summary = " ".join((ast.get_docstring(tree) or "").partition("\n\n")[0].split())
        rows.append((f"[{code(path.stem)}](../../src/meshhub/toolkit/{path.name})", summary, listed))
    return table(("module", "what it has", "functions and classes"), rows)


def _error_classes() -> str:
    """Return the public classes of errors."""
    return "\n\n".join(python_api.describe(f"{errors.__name__}.{name}") for name in errors.__all__)


_BLOCKS: dict[str, Callable[[], str]] = {
    "formats": _formats,
    "operations": _operations,
    "stages": _stages,
    "checks": _checks,
    "densities": _densities,
    "project-printers": _project_printers,
    "toolkit": _toolkit,
    "error-classes": _error_classes,
}
