"""Descriptions of faults of a plug-in, which do not fail if the text of an exception or a value does."""

from __future__ import annotations

import contextlib
import reprlib
import traceback
from pathlib import PurePath
from types import BuiltinFunctionType, FunctionType, MethodType, TracebackType

from meshhub.errors import MeshhubError, printable

MAX_TEXT_CHARS = 300
"""Maximum characters of an exception's text in a message."""

MAX_VALUE_CHARS = 60
"""Maximum characters of a value in a message."""

_HOST = frozenset(("meshhub", "pluggy", "importlib", "importlib._bootstrap", "importlib._bootstrap_external"))
"""Packages that call code of plug-ins."""

BUILTINS = "meshhub.builtin_plugins"
"""Package of the built-in plug-ins."""

_SHOWN = (str, bytes, int, float, bool, type(None), tuple, list, dict, set, frozenset)
"""Types whose values a message shows; for other types, the representation is useless, or runs code of the plug-in."""

_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = MAX_VALUE_CHARS
"""Shows the first items of large containers."""

_ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None]

_FUNCTIONS = (FunctionType, MethodType, BuiltinFunctionType)


class InvalidDeclaration(Exception):
    """Reason why a declaration, or the result of a function, is left out."""


def describe_error(error: BaseException) -> str:
    """Describe an exception of a plug-in in one line: type, text, and the last line of its own code."""
    try:
        text = " ".join(str(error).split())
    # the text of an exception is code of the plug-in, too
    except Exception as failure:
        text = f"its text cannot be read ({name_type(failure)})"
    place = _find_place(error)
    if isinstance(error, InvalidDeclaration) or (isinstance(error, MeshhubError) and not place):
        return printable(text)
    words = (name_type(error), f": {text[:MAX_TEXT_CHARS]}" if text else "", f" ({place})" if place else "")
    return printable("".join(words))


def describe_failure(error: BaseException) -> str:
    """Describe how a function of a plug-in failed, as a predicate: "raised KeyError: 'x' (acme.py:3)"."""
    return describe_error(error) if isinstance(error, InvalidDeclaration) else f"raised {describe_error(error)}"


def summarize_failure(error: BaseException) -> str:
    """Describe how a function of a plug-in failed, without the text of its exception: "raised KeyError"."""
    if isinstance(error, InvalidDeclaration):
        return describe_error(error)
    return printable(f"raised {name_type(error)}")


def own_traceback(error: BaseException) -> TracebackType | None:
    """Return the traceback without the frames of meshhub that called the plug-in; None without others."""
    frames = error.__traceback__
    while frames is not None and _is_host(_module_of(frames)):
        frames = frames.tb_next
    return frames


def log_arguments(error: BaseException | None) -> _ExcInfo | None:
    """Return the argument `exc_info` of a log call that shows the plug-in's traceback alone; None without one."""
    if error is None or isinstance(error, InvalidDeclaration):
        return None
    return type(error), error, own_traceback(error)


def show_value(value: object) -> str:
    """Show a value that a plug-in declared: plain values as they are, others by type."""
    kind = type(value)
    if kind in _SHOWN:
        # an item may be an object of the plug-in
        with contextlib.suppress(Exception):
            text = _REPR.repr(value)
            return printable(text if len(text) <= MAX_VALUE_CHARS else f"{text[:MAX_VALUE_CHARS]}…")
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return "a function" if issubclass(kind, _FUNCTIONS) else f"an object of type {name_type(value)}"


def name_type(value: object) -> str:
    """Return the name of a value's type."""
    return type(value).__name__


def _find_place(error: BaseException) -> str:
    """Return file and line of the innermost frame in the package whose code the host called; "" without one."""
    frames = own_traceback(error)
    if frames is None:
        return ""
    package = _module_of(frames).partition(".")[0]
    place = ""
    for frame, line in traceback.walk_tb(frames):
        module = str(frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] == package:
            # the path from the package on, because an absolute one would reveal folders of this machine
            path = PurePath(frame.f_code.co_filename).parts
            is_package = path[-1:] == ("__init__.py",)
            place = f"{'/'.join(path[-len(module.split('.')) - is_package :])}:{line}"
    return place


def _module_of(frames: TracebackType) -> str:
    return str(frames.tb_frame.f_globals.get("__name__", ""))


def _is_host(module: str) -> bool:
    is_builtin = module == BUILTINS or module.startswith(BUILTINS + ".")
    return not is_builtin and (module in _HOST or module.partition(".")[0] in _HOST)
