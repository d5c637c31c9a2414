"""Check the values of declarations against their types, because a plug-in may put anything into any field.

The types in `meshhub.model` are the only rules, and msgspec applies them. Their bounds and patterns are `msgspec.Meta`,
whose title describes valid values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin

import msgspec
from msgspec import Meta, Struct, structs

from meshhub.errors import quote
from meshhub.pipeline.plugin_errors import InvalidDeclaration, show_value

T = TypeVar("T", bound=Struct)

_MAX_PROBLEMS_COUNT = 10
"""Invalid fields of one declaration that a fault lists."""

_PLACE = re.compile(r" - at .*`\$(.*)`")
"""Place of an error in a value, at the end of a message of msgspec."""


def check_declaration(kind: type[T], item: object) -> T:
    """Return a declaration whose fields have the declared types.

    Raises:
        InvalidDeclaration: The declaration or a field has another type or a value out of bounds; the message names each
            field, and what it must be.
    """
    return cast(T, _convert_struct(kind, item, ""))


def subject_of(kind: type[Struct], item: object) -> str:
    """Name a declaration for messages: its kind, and its id if that is text; "" for another value."""
    if not issubclass(type(item), kind):
        return ""
    name = kind.__name__.lower()
    subjects = ("format.id", "of "), ("scheme", "of "), ("id", ""), ("objection.code", "with ")
    for path, joint in subjects:
        value: object = item
        for field in path.split("."):
            value = getattr(value, field, None)
        if isinstance(value, str):
            return f"{name} {joint}{quote(value)}"
    return name


def _convert_struct(kind: type[Struct], item: object, path: str) -> Struct:
    """Return a Struct of exactly this type with converted fields.

    Raises InvalidDeclaration, which lists all problems.
    """
    if not issubclass(type(item), kind):
        raise InvalidDeclaration(f"{path or 'it'} must be a {kind.__name__}(…), got {show_value(item)}")
    values: dict[str, Any] = {}
    problems: list[str] = []
    for field in structs.fields(kind):
        try:
            values[field.name] = _convert(field.type, getattr(item, field.name), f"{path}.{field.name}".lstrip("."))
        except InvalidDeclaration as error:
            problems.append(str(error))
    if problems:
        left_out = len(problems) - _MAX_PROBLEMS_COUNT
        more = [f"{left_out} more fields are invalid"] if left_out > 0 else []
        raise InvalidDeclaration("; ".join(problems[:_MAX_PROBLEMS_COUNT] + more))
    return kind(**values)


def _convert(hint: Any, value: Any, path: str) -> Any:
    """Return a value of the declared type. Raises InvalidDeclaration."""
    members = get_args(hint) if get_origin(hint) in (tuple, Union, UnionType) else (hint,)
    # msgspec does not look into a Struct that already has the declared type
    struct = next((member for member in members if isinstance(member, type) and issubclass(member, Struct)), None)
    if struct is None or (value is None and NoneType in members):
        return _convert_plain(hint, value, path)
    if get_origin(hint) is not tuple:
        return _convert_struct(struct, value, path)
    if not isinstance(value, tuple | list):
        raise InvalidDeclaration(f"{path} must be a tuple of {struct.__name__}(…), got {show_value(value)}")
    return tuple(_convert_struct(struct, item, f"{path}[{number}]") for number, item in enumerate(value))


def _convert_plain(hint: Any, value: Any, path: str) -> Any:
    """Return a value without Structs of the declared type, which JSON can hold. Raises InvalidDeclaration."""
    try:
        result = msgspec.convert(value, hint, dec_hook=_take_class)
        msgspec.json.encode(result, enc_hook=str)
    except msgspec.ValidationError as error:
        place = match[1] if (match := _PLACE.search(str(error))) else ""
        title = next(_list_titles(_item_of(hint) if place else hint), "")
        reason = f" must be {title}, got {show_value(value)}" if title else f": {_PLACE.sub('', str(error))}"
        raise InvalidDeclaration(f"{path}{place}{reason}") from None
    except UnicodeEncodeError:
        raise InvalidDeclaration(f"{path} must be text that UTF-8 can hold, got {show_value(value)}") from None
    if not _is_finite(result):
        raise InvalidDeclaration(f"{path} must be finite, got {show_value(result)}")
    return result


def _is_finite(value: object) -> bool:
    """Return whether a value, or each item of a container, is not infinite and not NaN."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, tuple | list):
        return all(map(_is_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def _take_class(_: type, value: object) -> object:
    """Return a class of options, of which msgspec knows no more than that it is a class."""
    if isinstance(value, type) and issubclass(value, Struct):
        return value
    raise ValueError(f"must be a class derived from msgspec.Struct, got {show_value(value)}")


def _list_titles(hint: Any) -> Iterator[str]:
    """Yield the titles of a type, or its choices, but not those of its items."""
    for member in get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,):
        if get_origin(member) is Literal:
            yield f"one of {', '.join(map(repr, get_args(member)))}"
        if get_origin(member) is Annotated:
            yield from (meta.title for meta in get_args(member)[1:] if isinstance(meta, Meta) and meta.title)


def _item_of(hint: Any) -> Any:
    """Return the type of the items of a container."""
    if get_origin(hint) is Annotated:
        return _item_of(get_args(hint)[0])
    items = [item for item in get_args(hint) if item is not ...]
    return items[-1] if items else hint
