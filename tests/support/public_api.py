"""List of the public Python API: `python tests/support/public_api.py` writes it to tests/public_api.txt.

A test compares the list with the code, so that each change of it is a decision: an addition needs a minor version, a
removal or another signature a major one.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from msgspec import Struct, structs

import meshhub
from meshhub.cli.exits import exit_status
from meshhub.error_codes import ERROR_CODES
from meshhub.errors import MeshhubError

LIST = Path(__file__).parent.parent / "public_api.txt"

PACKAGES = ("meshhub", "meshhub.errors", "meshhub.hookspecs", "meshhub.interop", "meshhub.toolkit")
"""Modules that embedders and authors of plug-ins import, with the modules in them; of `meshhub`, only its names."""


def list_modules() -> Iterator[ModuleType]:
    """Yield the public modules."""
    for name in PACKAGES:
        package = importlib.import_module(name)
        yield package
        if name != "meshhub" and hasattr(package, "__path__"):
            for info in pkgutil.walk_packages(package.__path__, f"{name}."):
                yield importlib.import_module(info.name)


def list_api() -> str:
    """Return the names with their signatures, one a line, and the statuses of errors."""
    lines = [line for module in list_modules() for line in _list_module(module)]
    lines += [*_list_error_codes(), *_list_error_classes(MeshhubError)]
    return "\n".join(lines) + "\n"


def _list_module(module: ModuleType) -> Iterator[str]:
    names = module.__all__ if module.__name__ == "meshhub" else sorted(vars(module))
    for name in names:
        value = getattr(module, name)
        is_own = module.__name__ == "meshhub" or getattr(value, "__module__", None) == module.__name__
        if name.startswith("_") or not is_own:
            continue
        path = f"{module.__name__}.{name}"
        if inspect.isclass(value):
            yield f"{path}({', '.join(base.__name__ for base in _list_bases(value))})"
            yield from (f"{path}.{member}" for member in _list_members(value))
        elif callable(value):
            yield f"{path}{_sign(value)}"
        else:
            yield path


def _list_error_codes() -> Iterator[str]:
    for code, row in ERROR_CODES.items():
        statuses = f"HTTP {row.http_status}, exit {row.exit_status}"
        yield f"error {code}: {statuses}" + (f", retry after {row.retry_after_s} s" if row.retry_after_s else "")


def _list_error_classes(kind: type[MeshhubError]) -> Iterator[str]:
    """Yield a class of errors with its statuses, also those under the code of a plug-in, and the classes below it."""
    error, own = kind("x"), kind("x", error_code="a_code_of_its_own")
    statuses = f"HTTP {error.http_status} or {own.http_status}, exit {exit_status(error)}"
    yield f"{kind.__name__}: {error.error_code}, {statuses}"
    for child in kind.__subclasses__():
        if child.__module__ == kind.__module__:
            yield from _list_error_classes(child)


def _is_private(kind: type) -> bool:
    """Return whether a class is only a part of public classes."""
    home = f"{kind.__module__}."
    is_listed = kind.__name__ in meshhub.__all__ or home.startswith(tuple(f"{name}." for name in PACKAGES[1:]))
    return home.startswith("meshhub.") and not is_listed


def _list_bases(kind: type) -> list[type]:
    """Return the bases of a class, with those of a private one in its place."""
    return [each for base in kind.__bases__ for each in (_list_bases(base) if _is_private(base) else [base])]


def _list_members(kind: type) -> Iterator[str]:
    if issubclass(kind, Struct):
        fields = [(field.name, field.required) for field in structs.fields(kind)]
    elif dataclasses.is_dataclass(kind):
        missing = dataclasses.MISSING
        fields = [(field.name, field.default is field.default_factory is missing) for field in dataclasses.fields(kind)]
    else:
        fields = []
        if "__init__" in vars(kind):
            yield f"__init__{_sign(vars(kind)['__init__'])}"
    names = {name for name, _ in fields}
    yield from (f"{name}{': required' if is_required else ''}" for name, is_required in fields)
    members = {
        name: value for base in reversed(kind.__mro__) if _is_private(base) for name, value in vars(base).items()
    }
    for name, value in sorted({**members, **vars(kind)}.items()):
        if name.startswith("_") or name in names:
            continue
        function = getattr(value, "__func__", value)
        yield f"{name}{_sign(function)}" if inspect.isfunction(function) else name


def _sign(function: object) -> str:
    try:
        return str(inspect.signature(function)).replace("'", "")  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ""


if __name__ == "__main__":
    LIST.write_text(list_api(), encoding="utf-8")
