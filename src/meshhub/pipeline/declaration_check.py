"""Check the values of declarations against their types, because a plug-in may put anything into any field.

The types in `meshhub.model` are the only rules. Their bounds and patterns are `msgspec.Meta`, whose title describes
valid values.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import cache
from itertools import islice
from types import MemberDescriptorType, NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Struct

from meshhub.errors import quote
from meshhub.pipeline.plugin_errors import InvalidDeclaration, show_value

T = TypeVar("T", bound=Struct)

MAX_TEXT_CHARS = 100_000
"""Maximum characters of one text, because an option of a recipe may hold a file."""

MAX_ITEMS_COUNT = 10_000
"""Maximum items of one tuple, set or dict."""

_MAX_PROBLEMS_COUNT = 10
"""Invalid fields of one declaration that a fault lists."""

_SIZE_OF_INTEGER = 1 << 63
"""Bound of the integers that JSON and msgpack can hold."""

_SURROGATE = re.compile("[\ud800-\udfff]")
"""Half of a UTF-16 pair, which UTF-8 cannot hold."""

_WORDS: dict[object, str] = {
    str: "text",
    bytes: "bytes",
    int: "a whole number below 2**63",
    float: "a finite number",
    bool: "True or False",
    NoneType: "None",
    tuple: "a tuple",
    frozenset: "a frozenset",
    dict: "a dict",
    Mapping: "a dict",
    type: "a class derived from msgspec.Struct",
}

_ACCEPTED: dict[object, tuple[type, ...]] = {
    tuple: (tuple, list),
    frozenset: (frozenset, set, tuple, list),
    float: (float, int),
}
"""Types that are converted, by declared type; others must be exactly of the declared type or a subclass."""


def check_declaration(kind: type[T], item: object) -> T:
    """Return a declaration of exactly the declared types, which shares no mutable value with the plug-in.

    Raises:
        InvalidDeclaration: The declaration or a field has another type or a value out of bounds; the message names each
            field, its value, and what it must be.
    """
    if not issubclass(type(item), kind):
        raise InvalidDeclaration(f"it must be a {kind.__name__}(…), got {show_value(item)}")
    return cast(T, _convert_struct(kind, item, ""))


def subject_of(kind: type[Struct], item: object) -> str:
    """Name a declaration for messages: its kind, and its id if that is text; "" for another value."""
    if not issubclass(type(item), kind):
        return ""
    name = kind.__name__.lower()
    subjects = ("format.id", "of "), ("scheme", "of "), ("id", ""), ("objection.code", "with ")
    for path, joint in subjects:
        value = item
        for field in path.split("."):
            value = _read_field(value, field)
        if type(value) is str:
            return f"{name} {joint}{quote(value)}"
    return name


def _read_field(item: object, name: str) -> object:
    """Return a field of a Struct; None if it is not set. Ignore properties of subclasses: plug-ins define them."""
    for kind in type.__dict__["__mro__"].__get__(type(item)):
        member = kind.__dict__.get(name)
        if isinstance(member, MemberDescriptorType):
            with contextlib.suppress(AttributeError):
                return cast(object, member.__get__(item))
    return None


def _convert(hint: Any, value: object, path: str) -> Any:
    """Return the value converted according to the type. Raises InvalidDeclaration."""
    origin = get_origin(hint)
    if origin is Annotated:
        return _convert_bounded(hint, value, path)
    if origin in (Union, UnionType):
        for member in get_args(hint):
            if _is_of(member, value):
                return _convert(member, value, path)
        raise _mismatch(hint, value, path)
    if not _is_of(hint, value):
        raise _mismatch(hint, value, path)
    return _convert_plain(hint, origin, value, path)


def _convert_plain(hint: Any, origin: Any, value: Any, path: str) -> Any:
    """Convert a value that already has the declared type, and its items."""
    if origin in (tuple, frozenset):
        items = _list_items(value, path)
        member = get_args(hint)[0]
        return origin(_convert(member, item, f"{path}[{number}]") for number, item in enumerate(items))
    if origin in (dict, Mapping):
        keys, values = get_args(hint)
        return {
            _convert(keys, key, f"{path} key"): _convert(values, item, f"{path}[{show_value(key)}]")
            for key, item in _list_items(value.items(), path)
        }
    if isinstance(hint, type) and issubclass(hint, Struct):
        return _convert_struct(hint, value, path)
    convert = _SCALARS.get(str if origin is Literal else hint)
    result = value if convert is None else convert(value)
    if type(result) is str and len(result) > MAX_TEXT_CHARS:
        raise InvalidDeclaration(f"{path} must have at most {MAX_TEXT_CHARS} characters")
    if not _is_representable(result) or (origin is Literal and result not in get_args(hint)):
        raise _mismatch(hint, value, path)
    return result


def _convert_struct(kind: type[Struct], item: object, path: str) -> Struct:
    """Return a new Struct of exactly this type; subclasses could change how it behaves.

    Raises InvalidDeclaration, which lists all invalid fields.
    """
    prefix = f"{path}." if path else ""
    values: dict[str, Any] = {}
    problems: list[str] = []
    for name, hint in _hints_of(kind):
        try:
            values[name] = _convert(hint, _read_field(item, name), prefix + name)
        except InvalidDeclaration as error:
            problems.append(str(error))
    if problems:
        left_out = len(problems) - _MAX_PROBLEMS_COUNT
        more = [f"{left_out} more fields are invalid"] if left_out > 0 else []
        raise InvalidDeclaration("; ".join(problems[:_MAX_PROBLEMS_COUNT] + more))
    return kind(**values)


def _convert_bounded(hint: Any, value: object, path: str) -> Any:
    """Convert a value, and check the bounds and the pattern of its type."""
    if not _is_of(hint, value):
        raise _mismatch(hint, value, path)
    result = _convert(get_args(hint)[0], value, path)
    try:
        # only the bounds are left to check, because containers of other declarations are not types for msgspec
        bounds = tuple(meta for meta in get_args(hint)[1:] if isinstance(meta, Meta))
        plain = tuple[Any, ...] if type(result) is tuple else type(result)
        msgspec.convert(result, Annotated[(plain, *bounds)])
    except msgspec.ValidationError:
        raise _mismatch(hint, value, path) from None
    return result


def _list_items(values: Iterable[Any], path: str) -> list[Any]:
    items = list(islice(values, MAX_ITEMS_COUNT + 1))
    if len(items) > MAX_ITEMS_COUNT:
        raise InvalidDeclaration(f"{path} must have at most {MAX_ITEMS_COUNT} items")
    return items


def _is_of(hint: Any, value: object) -> bool:
    """Return whether the type of a value itself, without its items, is the declared one."""
    origin = get_origin(hint)
    if origin is Annotated:
        return _is_of(get_args(hint)[0], value)
    if origin is Literal:
        return issubclass(type(value), str)
    kind = origin or hint
    if kind is type:
        return issubclass(type(value), type) and issubclass(cast(type, value), Struct)
    if type(value) is bool:
        return kind is bool
    return issubclass(type(value), _ACCEPTED.get(kind, (kind,)))


def _is_representable(value: object) -> bool:
    """Return whether JSON can hold a plain value."""
    if type(value) is str:
        return _SURROGATE.search(value) is None
    if type(value) is int:
        return -_SIZE_OF_INTEGER <= value < _SIZE_OF_INTEGER
    return type(value) is not float or math.isfinite(value)


def _mismatch(hint: Any, value: object, path: str) -> InvalidDeclaration:
    return InvalidDeclaration(f"{path} must be {_describe_type(hint)}, got {show_value(value)}")


def _describe_type(hint: Any) -> str:
    origin = get_origin(hint)
    if origin is Annotated:
        titles = [meta.title for meta in get_args(hint)[1:] if isinstance(meta, Meta) and meta.title]
        return titles[0] if titles else _describe_type(get_args(hint)[0])
    if origin in (Union, UnionType):
        return " or ".join(map(_describe_type, get_args(hint)))
    if origin is Literal:
        return f"one of {', '.join(map(repr, get_args(hint)))}"
    kind = origin or hint
    if isinstance(kind, type) and issubclass(kind, Enum):
        return f"a {kind.__name__}, such as {kind.__name__}.{next(iter(kind.__members__))}"
    return _WORDS.get(kind) or f"a {kind.__name__}(…)"


@cache
def _hints_of(kind: type[Struct]) -> tuple[tuple[str, Any], ...]:
    hints = get_type_hints(kind, include_extras=True)
    return tuple((name, hints[name]) for name in kind.__struct_fields__)


def _to_float(value: float) -> float:
    try:
        return float.__float__(value) if isinstance(value, float) else float(int.__index__(value))
    except OverflowError:
        return math.inf


_SCALARS: dict[object, Callable[[Any], Any]] = {
    # methods of the types themselves, because those of a subclass are code of the plug-in
    str: str.__str__,
    bytes: lambda value: bytes(memoryview(value)),
    int: int.__index__,
    float: _to_float,
}
"""Converters by type: each returns a value of exactly the type."""
