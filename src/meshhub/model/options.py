"""Options: from one Struct to form fields, flags, JSON Schema, and back from text to values.

A capability's options are a frozen `msgspec.Struct`. Every field has a default, and an `Annotated`
type with `msgspec.Meta(title=…, description=…)` and its bounds:

    class ResizeOptions(Struct, frozen=True, kw_only=True):
        target_height_mm: Annotated[
            float, Meta(title="Target height", description="…", ge=0.001, le=100_000)
        ] | None = None
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Mapping
from functools import cache
from types import NoneType
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from msgspec import inspect as shape

from meshhub.errors import InvalidOption, format_number, quote
from meshhub.model.capabilities import Unit, Up

Kind = Literal["flag", "integer", "number", "choice", "text"]
Value = bool | int | float | str | None

RESERVED = frozenset(
    "file files archive target report output_dir force json jobs timeout input_unit input_up input_format".split()
)
"""Field names of the faces and of the host, which no plug-in may take."""

TRUE = frozenset(("true", "1", "yes", "on"))
FALSE = frozenset(("false", "0", "no", "off"))

_INTEGER = re.compile(r"[+-]?\d{1,18}", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+(?:\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)


def flag_of(name: str) -> str:
    """Return the command line flag of an option."""
    return "--" + name.replace("_", "-")


class HostOptions(Struct, frozen=True, kw_only=True):
    """What the host itself takes, for every reader."""

    input_unit: (
        Annotated[
            Unit,
            Meta(title="Unit of the file", description="The unit the file's numbers are in, against what it says."),
        ]
        | None
    ) = None
    input_up: (
        Annotated[
            Up, Meta(title="Up axis of the file", description="The axis that points up, against what the file says.")
        ]
        | None
    ) = None
    input_format: (
        Annotated[
            str, Meta(title="Format of the file", description="A format id, where content and name tell it wrong.")
        ]
        | None
    ) = None


class OptionField(Struct, frozen=True, kw_only=True):
    """One field of an options Struct, as the faces need it."""

    name: str
    kind: Kind
    default: Value
    title: str
    description: str
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    exclusive_minimum: float | None = None
    maximum: float | None = None
    example: Value = None

    @property
    def flag(self) -> str:
        """The field as a command line flag."""
        return flag_of(self.name)

    def bounds(self) -> str:
        """The bounds as a person says them, or ""."""
        low = (
            f"at least {format_number(self.minimum)}"
            if self.minimum is not None
            else f"more than {format_number(self.exclusive_minimum)}"
            if self.exclusive_minimum is not None
            else ""
        )
        high = f"at most {format_number(self.maximum)}" if self.maximum is not None else ""
        return " and ".join(part for part in (low, high) if part)

    def schema(self) -> dict[str, Any]:
        """The field as JSON Schema."""
        kinds = {"flag": "boolean", "integer": "integer", "number": "number"}
        words: dict[str, Any] = {
            "type": kinds.get(self.kind, "string"),
            "title": self.title,
            "description": self.description,
            "enum": list(self.choices),
            "minimum": self.minimum,
            "exclusiveMinimum": self.exclusive_minimum,
            "maximum": self.maximum,
            "default": self.default,
            "examples": [] if self.example is None else [self.example],
        }
        return {word: value for word, value in words.items() if value not in (None, "", [])}

    def parse(self, given: object) -> Value:
        """A value from a form's text or a program's object.

        Empty text means absent, and gives None. Raises InvalidOption, naming the field.
        """
        if given is None:
            return None
        if isinstance(given, str):
            text = given.strip()
            if not text:
                return None
            value = self._from_text(text)
        else:
            value = self._from_object(given)
        self._check(value, given)
        return value

    def _from_text(self, text: str) -> Value:
        if self.kind == "flag":
            lowered = text.lower()
            if lowered in TRUE:
                return True
            if lowered in FALSE:
                return False
            raise self._refused(text, "must be true, 1, yes or on, or their opposites")
        if self.kind == "integer":
            if not _INTEGER.fullmatch(text):
                raise self._refused(text, "must be a whole number of at most 18 digits")
            return int(text)
        if self.kind == "number":
            if not _NUMBER.fullmatch(text):
                raise self._refused(text, "must be a finite number with a decimal point")
            return float(text)
        return text.lower() if self.kind == "choice" else text

    def _from_object(self, given: object) -> Value:
        if self.kind == "flag":
            if isinstance(given, bool):
                return given
            raise self._refused(given, "must be true or false")
        if self.kind == "integer" and isinstance(given, int) and not isinstance(given, bool):
            return given
        if self.kind == "number" and isinstance(given, int | float) and not isinstance(given, bool):
            try:
                return float(given)
            except OverflowError:
                raise self._refused(given, "must be a finite number") from None
        wanted = {"integer": "a whole number", "number": "a number", "choice": "text", "text": "text"}[self.kind]
        raise self._refused(given, f"must be {wanted}")

    def _check(self, value: Value, given: object) -> None:
        if self.kind == "choice" and value not in self.choices:
            raise self._refused(given, f"must be one of {', '.join(self.choices)}")
        if not isinstance(value, int | float) or isinstance(value, bool):
            return
        if not math.isfinite(value):
            raise self._refused(given, "must be a finite number")
        if (
            (self.minimum is not None and value < self.minimum)
            or (self.exclusive_minimum is not None and value <= self.exclusive_minimum)
            or (self.maximum is not None and value > self.maximum)
        ):
            raise self._refused(given, f"must be {self.bounds()}")

    def _refused(self, given: object, wanted: str) -> InvalidOption:
        return InvalidOption(f"option '{{{self.name}}}' {wanted}, got {quote(given)}", options=(self.name,))


def _unwrap(kind: shape.Type) -> tuple[shape.Type, dict[str, Any]]:
    """The bare type below Metadata and `| None`, and the JSON Schema words met on the way."""
    words: dict[str, Any] = {}
    while True:
        if isinstance(kind, shape.Metadata):
            words |= {k: v for k, v in (kind.extra_json_schema or {}).items() if k not in words}
            kind = kind.type
        elif isinstance(kind, shape.UnionType):
            others = [one for one in kind.types if not isinstance(one, shape.NoneType)]
            if len(others) != 1:
                raise TypeError("an option is one plain type, optionally `| None`")
            kind = others[0]
        else:
            return kind, words


def _field(name: str, kind: shape.Type, default: Value) -> OptionField:
    bare, words = _unwrap(kind)
    title, description = str(words.get("title", "")), str(words.get("description", ""))
    example = next(iter(words.get("examples", ())), None)

    def made(of: Kind, **more: Any) -> OptionField:
        return OptionField(
            name=name, kind=of, default=default, title=title, description=description, example=example, **more
        )

    if isinstance(bare, shape.BoolType):
        return made("flag")
    if isinstance(bare, shape.IntType | shape.FloatType):
        low = bare.ge if bare.ge is not None else bare.gt
        exclusive = bare.ge is None and bare.gt is not None
        return made(
            "integer" if isinstance(bare, shape.IntType) else "number",
            minimum=None if exclusive else low,
            exclusive_minimum=low if exclusive else None,
            maximum=bare.le,
        )
    if isinstance(bare, shape.LiteralType) and all(isinstance(value, str) for value in bare.values):
        return made("choice", choices=tuple(str(value) for value in bare.values))
    if isinstance(bare, shape.StrType):
        return made("text")
    raise TypeError(f"option {name!r}: a form has no field for {bare!r}")


@cache
def option_fields(options: type[Struct]) -> tuple[OptionField, ...]:
    """The fields of an options Struct.

    Raises TypeError for what no form or flag can hold: a field without a default or a title, or of
    a type other than bool, int, float, str and Literal of str, each optionally `| None`.
    """
    info = shape.type_info(options)
    if not isinstance(info, shape.StructType):
        raise TypeError(f"options must be a msgspec.Struct, got {options!r}")
    found = []
    for field in info.fields:
        if field.required or not isinstance(field.default, bool | int | float | str | NoneType):
            raise TypeError(f"option {field.name!r} needs a plain default")
        made = _field(field.name, field.type, field.default)
        if not made.title:
            raise TypeError(f"option {field.name!r} needs a title: Annotated[…, msgspec.Meta(title=…)]")
        found.append(made)
    return tuple(found)


def decode(options: type[Struct], given: Mapping[str, object]) -> Struct:
    """An options Struct from parsed or unparsed values; what is absent keeps its default."""
    values: dict[str, Value] = {}
    for field in option_fields(options):
        value = field.parse(given.get(field.name))
        if value is not None:
            values[field.name] = value
    return options(**values)


def given_fields(options: type[Struct], given: Mapping[str, object]) -> dict[str, Value]:
    """The fields that were really given, parsed: neither absent, nor empty, nor false."""
    parsed = {field.name: field.parse(given.get(field.name)) for field in option_fields(options)}
    return {name: value for name, value in parsed.items() if value is not None and value is not False}


def schema(options: type[Struct]) -> dict[str, Any]:
    """The JSON Schema (2020-12) of an options Struct, as one flat object that a form can be made from."""
    return {
        "type": "object",
        "properties": {field.name: field.schema() for field in option_fields(options)},
        "additionalProperties": False,
    }


def unknown(given: Iterable[str], known: Iterable[str]) -> InvalidOption | None:
    """The error for fields nobody declared, naming the nearest known one; None when all are known."""
    names = list(known)
    strangers = sorted(name for name in given if name not in names)
    if not strangers:
        return None
    near = difflib.get_close_matches(strangers[0], names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(sorted(names))}"
    listed = ", ".join(quote(name) for name in strangers[:5])
    return InvalidOption(f"unknown option {listed}{hint}", code="invalid_option")
