"""Signatures and docstrings of public Python code, as Markdown."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from types import ModuleType

_SECTION = re.compile(r"(Args|Attributes|Returns|Yields|Raises|Source):(.*)")
"""Head of a section of a docstring."""

_TITLES = {"Args": "Arguments"}

_LISTS = ("Args", "Attributes", "Raises")
"""Sections of names with texts."""

_ITEM = re.compile(r"(\*{0,2}[\w.]+(?:, [\w.]+)*): (.*)")

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

_WIDTH = 110
"""Columns of a signature on one line."""


def describe(path: str) -> str:
    """Return the section of a class, a function or a value, named `package.module.name`; of all of a module."""
    try:
        module = importlib.import_module(path)
    except ModuleNotFoundError:
        module_name, _, name = path.rpartition(".")
        return _join(_describe(importlib.import_module(module_name), name))
    names = getattr(module, "__all__", None) or _list_public(module)
    return _join([_to_markdown(_parse(module)), *(block for name in names for block in _describe(module, name))])


def _join(blocks: Iterable[str]) -> str:
    return "\n\n".join(filter(None, blocks))


@functools.cache
def _parse(module: ModuleType) -> ast.Module:
    return ast.parse(Path(inspect.getfile(module)).read_text(encoding="utf-8"))


def _list_public(module: ModuleType) -> list[str]:
    return [name for node, _ in _pairs(_parse(module).body) if (name := _name(node)) and not name.startswith("_")]


def _pairs(body: Iterable[ast.stmt]) -> Iterator[tuple[ast.stmt, ast.stmt | None]]:
    """Yield each statement with the next one, which may be the text below a value."""
    yield from pairwise([*body, None])  # type: ignore[misc]


def _name(node: ast.stmt) -> str:
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return node.name
    if isinstance(node, ast.AnnAssign):
        return ast.unparse(node.target)
    return node.targets[0].id if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) else ""


def _describe(module: ModuleType, name: str) -> Iterator[str]:
    """Yield the blocks of a name of a module."""
    value = getattr(module, name)
    if inspect.isclass(value) or inspect.isfunction(value):
        module = importlib.import_module(value.__module__)
    for node, below in _pairs(_parse(module).body):
        if _name(node) != name:
            continue
        yield f"### {name}"
        if isinstance(node, ast.ClassDef):
            yield from _describe_class(value, node)
        elif isinstance(node, _FUNCTIONS):
            yield from _describe_function(node, node.name)
        else:
            yield f"```py\n{_fold(ast.unparse(node))}\n```"
            yield _text_of(below)
        return


def _describe_class(kind: type, node: ast.ClassDef) -> Iterator[str]:
    bases = ", ".join(map(ast.unparse, node.bases))
    yield f"```py\nclass {node.name}" + (f"({bases})" if bases else "") + "\n```"
    yield _to_markdown(node)
    fields = [(each, below) for owner in _owners(kind) for each, below in _pairs(owner.body)]
    yield "\n".join(_describe_fields(fields))
    initializers = [each for each, _ in fields if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
    for initializer in initializers[:1]:
        yield from _describe_function(initializer, node.name)
    done = set()
    for each, _ in fields:
        if isinstance(each, _FUNCTIONS) and not each.name.startswith("_") and each.name not in done:
            done.add(each.name)
            yield f"#### {node.name}.{each.name}"
            yield from _describe_function(each, each.name)


def _owners(kind: type) -> Iterator[ast.ClassDef]:
    """Yield a class and its bases in meshhub."""
    for owner in kind.__mro__:
        if owner.__module__.startswith("meshhub"):
            body = _parse(importlib.import_module(owner.__module__)).body
            yield from (node for node in body if isinstance(node, ast.ClassDef) and node.name == owner.__name__)


def _describe_fields(fields: Iterable[tuple[ast.stmt, ast.stmt | None]]) -> Iterator[str]:
    done = set()
    for node, below in fields:
        name = _name(node)
        if not isinstance(node, ast.AnnAssign | ast.Assign) or not name or name.startswith("_") or name in done:
            continue
        done.add(name)
        kind = f": {ast.unparse(node.annotation)}" if isinstance(node, ast.AnnAssign) else ""
        default = f" = {ast.unparse(node.value)}" if node.value else ""
        text = " ".join(_text_of(below).split())
        yield f"- `{' '.join(f'{name}{kind}{default}'.split())}`" + (f": {text}" if text else "")


def _text_of(node: ast.stmt | None) -> str:
    """Return the text below a value."""
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return inspect.cleandoc(node.value.value) if is_text else ""  # type: ignore[union-attr]


def _describe_function(node: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> Iterator[str]:
    is_property = any(ast.unparse(each) in ("property", "functools.cached_property") for each in node.decorator_list)
    arguments = [argument for argument in _arguments(node) if argument not in ("self", "cls")]
    listed = "" if is_property else f"({', '.join(arguments)})"
    returns = f" -> {ast.unparse(node.returns)}" if node.returns and node.name != "__init__" else ""
    prefix = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    line = f"{prefix}{name}{listed}{returns}"
    if len(line) > _WIDTH:
        line = f"{prefix}{name}(\n" + "".join(f"    {argument},\n" for argument in arguments) + f"){returns}"
    yield f"```py\n{line}\n```"
    yield _to_markdown(node)


def _arguments(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """Return the arguments with their types and defaults."""
    arguments, given = node.args, [*node.args.posonlyargs, *node.args.args]
    defaults = [None] * (len(given) - len(arguments.defaults)) + list(arguments.defaults)
    texts = [_argument(each, default) for each, default in zip(given, defaults, strict=True)]
    if arguments.vararg:
        texts.append(f"*{_argument(arguments.vararg, None)}")
    elif arguments.kwonlyargs:
        texts.append("*")
    pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    texts += [_argument(each, default) for each, default in pairs]
    return texts + ([f"**{_argument(arguments.kwarg, None)}"] if arguments.kwarg else [])


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    return ast.unparse(argument) + ("" if default is None else f" = {ast.unparse(default)}")


def _fold(text: str) -> str:
    return "\n".join(textwrap.wrap(text, _WIDTH, subsequent_indent="    ", break_long_words=False))


def _to_markdown(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """Return a docstring with its sections as lists."""
    lines: list[str] = []
    section = ""
    for line in (ast.get_docstring(node) or "").splitlines():
        text = line.strip()
        if match := _SECTION.fullmatch(line):
            section = match[1]
            lines += ["", f"{_TITLES.get(section, section)}:" + match[2], ""]
        elif section in _LISTS and line.startswith("    "):
            is_item = not line.startswith("     ")
            match = _ITEM.fullmatch(text) if is_item else None
            named = f"- `{match[1].replace(', ', '`, `')}`: {match[2]}" if match else f"- {text}"
            lines.append(named if is_item else f"  {text}")
        else:
            section = section if not text or line.startswith(" ") else ""
            lines.append(text if section else line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")
