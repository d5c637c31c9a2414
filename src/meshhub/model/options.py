"""Options of capabilities: one Struct is the source of form fields, flags, JSON Schema and parsed values.

The options of a capability are a frozen `msgspec.Struct`. Every field has a default, and an `Annotated`
type with `msgspec.Meta(title=…, description=…)` and its bounds:

    class ResizeOptions(Struct, frozen=True, kw_only=True):
        target_height_mm: Annotated[
            float, Meta(title="Target height", description="…", ge=0.001, le=100_000)
        ] | None = None

Rules between several options are declared, too. `Meta(extra={"requires": ("paint_color",)})` names options that must
also be set, `Meta(extra={"conflicts_with": ("paint_auto",)})` options that must not be. A method `check` of the Struct
raises ValueError, or InvalidOption, for any other combination that it rejects. An option is set unless it is absent or
false.

`Meta(extra={"file_extensions": (".csv",)})` lets the command line take the path of a file, whose content becomes the
value. Other interfaces take only the content. `Meta(extra={"everyday": True})` marks the few options that the short
help of the command line lists, and `names_material` those that say of what a model is printed.

`Meta(extra={"titles": {"mk4": "Prusa MK4"}})` makes a text a choice of these values, with their titles in every
language, and `aliases` maps other spellings to them, as `fold_choice` returns them.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from types import NoneType
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from msgspec import inspect as shape

from meshhub.errors import MAX_QUOTED_CHARS, ErrorValue, InvalidOption, format_number, quote
from meshhub.model.capabilities import Unit, Up
from meshhub.model.quantities import describe_number, parse_quantity, units_of

Kind = Literal["flag", "integer", "number", "choice", "text"]
"""Kind of an option field."""

Value = bool | int | float | str | None
"""Parsed value of an option field; None if the field is absent."""

INTERFACE_NAMES = frozenset(
    "file files archive companions target report output output_dir force json jobs timeout "
    "source to caller cancel progress on_result overwrite options "
    "name watch dry_run skip_existing quiet verbose file_options sources help kind webhook_url rates "
    "printer start replace".split()
)
"""Field names of the interfaces and keywords of `Registry`, which are not options."""

TRUE = frozenset(("true", "1", "yes", "on"))
"""Texts that set a flag; letter case is ignored."""

FALSE = frozenset(("false", "0", "no", "off"))
"""Texts that clear a flag; letter case is ignored."""

MAX_LISTED_COUNT = 5
"""Maximum unknown options that one message lists; more do not fit into a line."""

_RULES = frozenset(("requires", "conflicts_with", "file_extensions", "everyday", "names_material", "titles", "aliases"))
"""Keys of `Meta(extra=…)`."""

_SEPARATORS = re.compile(r"[\s_-]+")

_INTEGER = re.compile(r"[+-]?\d{1,18}", re.ASCII)
"""Whole number of at most 18 digits, which always fits into a signed 64-bit integer."""


def fold_choice(text: str) -> str:
    """Return the value of a choice, however people spell it: "Prusa  MK4" and "prusa_mk4" become "prusa-mk4"."""
    return _SEPARATORS.sub("-", text.strip().lower())


def flag_of(name: str) -> str:
    """Return the command line flag of an option: "target_height_mm" becomes "--target-height-mm"."""
    return "--" + name.replace("_", "-")


class HostOptions(Struct, frozen=True, kw_only=True):
    """Options of the host, which apply to every reader and writer, and a recipe."""

    input_unit: (
        Annotated[
            Unit,
            Meta(
                title="Unit of the file",
                description="The unit of the numbers in the file; overrides the file.",
                extra={"everyday": True},
            ),
        ]
        | None
    ) = None
    input_up: (
        Annotated[Up, Meta(title="Up axis of the file", description="The axis that points up; overrides the file.")]
        | None
    ) = None
    input_format: (
        Annotated[
            str,
            Meta(
                title="Format of the file", description="A format id; overrides the content and the name of the file."
            ),
        ]
        | None
    ) = None
    texture_colors: (
        Annotated[
            Literal["texture", "vertex", "face", "paint"],
            Meta(
                title="Colors of textures in the result",
                description="texture keeps textures; vertex writes their colors at the vertices, and face one color "
                "for each triangle, if the format has vertex colors. Default: texture, but vertex for formats with "
                "only vertex colors, such as PLY. With reduced colors, 3MF files for slicers are painted inside "
                "triangles (paint), unless face keeps the triangles that are split along the borders.",
            ),
        ]
        | None
    ) = None
    each_bed: Annotated[
        bool,
        Meta(
            title="One file for each bed",
            description="Write the objects of each bed to a file of its own, named NAME-bed1, NAME-bed2, …, with the "
            "middle of the bed's objects at X = Y = 0.",
        ),
    ] = False
    recipe: (
        Annotated[
            str,
            Meta(
                title="Recipe",
                description="Named list of options; options that the request sets take precedence.",
                extra={"everyday": True},
            ),
        ]
        | None
    ) = None


class OptionField(Struct, frozen=True, kw_only=True):
    """One field of an options Struct, as forms, flags and JSON Schema need it."""

    name: str
    """Name of the form field."""

    kind: Kind
    """Kind of the values."""

    default: Value
    """Value if the field is absent."""

    title: str
    """Short label."""

    description: str
    """Sentences for people."""

    choices: tuple[str, ...] = ()
    """Values of a choice."""

    titles: Mapping[str, str] = {}
    """Titles of choices that are names in every language, such as those of printers, by value."""

    aliases: Mapping[str, str] = {}
    """Values of a choice by other spellings, as `fold_choice` returns them."""

    minimum: float | None = None
    """Least value of a number, or None."""

    exclusive_minimum: float | None = None
    """Bound that a number must exceed, or None."""

    maximum: float | None = None
    """Greatest value of a number, or None."""

    max_length: int | None = None
    """Greatest number of characters of a text, or None."""

    example: Value = None
    """Typical value, or None."""

    requires: tuple[str, ...] = ()
    """Options that must be set if this one is."""

    conflicts_with: tuple[str, ...] = ()
    """Options that must not be set if this one is."""

    file_extensions: tuple[str, ...] = ()
    """Extensions of files whose content the command line reads as the value; other arguments are the value itself."""

    everyday: bool = False
    """Whether the short help of the command line lists the option."""

    names_material: bool = False
    """Whether the value says of what a model is printed, so that the material of a rate card must agree."""

    @property
    def flag(self) -> str:
        """The command line flag of the field."""
        return flag_of(self.name)

    def bounds(self) -> str:
        """Describe the bounds, such as "at least 1 and at most 9"; "" without bounds."""
        parts = []
        if self.minimum is not None:
            parts.append(f"at least {format_number(self.minimum)}")
        elif self.exclusive_minimum is not None:
            parts.append(f"more than {format_number(self.exclusive_minimum)}")
        if self.maximum is not None:
            parts.append(f"at most {format_number(self.maximum)}")
        return " and ".join(parts)

    def rules(self, spelling: Callable[[str], str] = str) -> str:
        """Describe the rules that concern other options, such as "needs --a, not with --b"; "" without rules.

        Args:
            spelling: Converts the name of an option to the spelling of an interface.
        """
        parts = [f"needs {spelling(name)}" for name in self.requires]
        parts += [f"not with {spelling(name)}" for name in self.conflicts_with]
        return ", ".join(parts)

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema (2020-12) of the field; `x-requires` and `x-conflicts-with` list other fields."""
        types = {"flag": "boolean", "integer": "integer", "number": "number"}
        keywords: dict[str, Any] = {
            "type": types.get(self.kind, "string"),
            "title": self.title,
            "description": self.description,
            "enum": list(self.choices),
            "minimum": self.minimum,
            "exclusiveMinimum": self.exclusive_minimum,
            "maximum": self.maximum,
            "maxLength": self.max_length,
            "default": self.default,
            "examples": [] if self.example is None else [self.example],
            "x-requires": list(self.requires),
            "x-conflicts-with": list(self.conflicts_with),
        }
        return {keyword: value for keyword, value in keywords.items() if value not in (None, "", [])}

    def parse(self, value: object) -> Value:
        """Parse the text of a form, or check the object of a program.

        Args:
            value: Text, a bool, a number, or None.
        Returns:
            Value of the field's kind within its bounds; None for None and for empty text, which mean "absent".
        Raises:
            InvalidOption: The value is malformed or out of bounds; the message names the field.
        """
        if value is None:
            return None
        if not isinstance(value, str):
            parsed = self._check_object(value)
        elif text := value.strip():
            parsed = self._parse_text(text)
        else:
            return None
        self._check_bounds(parsed, value)
        return parsed

    def resolve_choice(self, text: str) -> str:
        """Return the value of a choice for a text that may spell it otherwise; the text, folded, if there is none."""
        name = fold_choice(text)
        return self.aliases.get(name, name)

    def _parse_text(self, text: str) -> Value:
        match self.kind:
            case "flag":
                word = text.lower()
                if word not in TRUE | FALSE:
                    raise self._error(text, "must be true, 1, yes, on, false, 0, no or off")
                return word in TRUE
            case "integer":
                if not _INTEGER.fullmatch(text):
                    raise self._error(text, "must be a whole number of at most 18 digits")
                return int(text)
            case "number":
                units = units_of(self.name)
                number = parse_quantity(text, units)
                if number is None:
                    raise self._error(text, describe_number(text, units))
                return number
            case "choice":
                return self.resolve_choice(text)
            case "text":
                return text

    def _check_object(self, value: object) -> Value:
        if self.kind == "flag" and isinstance(value, bool):
            return value
        if self.kind == "integer" and isinstance(value, int) and not isinstance(value, bool):
            return value
        if self.kind == "number" and isinstance(value, int | float) and not isinstance(value, bool):
            try:
                return float(value)
            except OverflowError:
                raise self._error(value, "must be a finite number") from None
        expected = {"flag": "true or false", "integer": "a whole number", "number": "a number"}
        raise self._error(value, f"must be {expected.get(self.kind, 'text')}")

    def _check_bounds(self, value: Value, requested: object) -> None:
        """Raise InvalidOption, which quotes `requested`, if the parsed value is not a choice or out of bounds."""
        if self.kind == "choice" and value not in self.choices:
            raise self._error(requested, f"must be one of {', '.join(self.choices)}")
        if isinstance(value, str) and self.max_length is not None and len(value) > self.max_length:
            raise self._error(requested, f"must have at most {self.max_length} characters")
        if not isinstance(value, int | float) or isinstance(value, bool):
            return
        if not math.isfinite(value):
            raise self._error(requested, "must be a finite number")
        if (
            (self.minimum is not None and value < self.minimum)
            or (self.exclusive_minimum is not None and value <= self.exclusive_minimum)
            or (self.maximum is not None and value > self.maximum)
        ):
            bounds = {"min": self.minimum, "max": self.maximum}
            has_unit = isinstance(requested, str) and not requested.strip()[-1:].isdigit()
            unit = f" {next(iter(units_of(self.name)), '')}" if has_unit else ""
            raise self._error(
                requested,
                f"must be {self.bounds()}{unit}".rstrip(),
                **{k: v for k, v in bounds.items() if v is not None},
            )

    def _error(self, value: object, rule: str, **bounds: float) -> InvalidOption:
        values: dict[str, ErrorValue] = {"option": self.name, "value": str(value)[:MAX_QUOTED_CHARS], **bounds}
        return InvalidOption(
            f"option '{{{self.name}}}' {rule}, got {quote(value)}", options=(self.name,), values=values
        )


@cache
def option_fields(options: type[Struct]) -> tuple[OptionField, ...]:
    """Return the fields of an options Struct.

    Raises:
        TypeError: A form or a flag cannot represent a field. Each field needs a default, a title, and the type bool,
            int, float, str or Literal of str, optionally `| None`.
    """
    info = shape.type_info(options)
    if not isinstance(info, shape.StructType):
        raise TypeError(f"options must be a msgspec.Struct, got {options!r}")
    return tuple(_convert_field(field) for field in info.fields)


def _convert_field(field: shape.Field) -> OptionField:
    """Convert a field of a Struct. Raise TypeError as `option_fields` does."""
    if field.required or not isinstance(field.default, bool | int | float | str | NoneType):
        raise TypeError(f"option {field.name!r} needs a plain default")
    bare_type, metadata = _unwrap(field.type)
    if not metadata.get("title"):
        raise TypeError(f"option {field.name!r} needs a title: Annotated[…, msgspec.Meta(title=…)]")
    return OptionField(
        name=field.name,
        default=field.default,
        title=str(metadata["title"]),
        description=str(metadata.get("description", "")),
        example=next(iter(metadata.get("examples", ())), None),
        requires=_list_names(field.name, metadata.get("requires", ())),
        conflicts_with=_list_names(field.name, metadata.get("conflicts_with", ())),
        file_extensions=_list_names(field.name, metadata.get("file_extensions", ())),
        everyday=metadata.get("everyday") is True,
        names_material=metadata.get("names_material") is True,
        **_describe_type(field.name, bare_type, metadata),
    )


def _list_names(name: str, names: object) -> tuple[str, ...]:
    """Return the names of options in a rule, or extensions. Raises TypeError."""
    if not isinstance(names, tuple | list) or not all(isinstance(other, str) for other in names):
        raise TypeError(f"option {name!r}: a rule is a tuple of texts, got {names!r:.60}")
    return tuple(names)


def _unwrap(field_type: shape.Type) -> tuple[shape.Type, dict[str, Any]]:
    """Return the type inside `Annotated` and `| None`, and the metadata; the outermost annotation wins."""
    metadata: dict[str, Any] = {}
    while True:
        if isinstance(field_type, shape.Metadata):
            rules = field_type.extra or {}
            if not rules.keys() <= _RULES:
                raise TypeError(f"Meta(extra=…) has rules of options: {', '.join(sorted(_RULES))}")
            metadata = (field_type.extra_json_schema or {}) | rules | metadata
            field_type = field_type.type
        elif isinstance(field_type, shape.UnionType):
            others = [member for member in field_type.types if not isinstance(member, shape.NoneType)]
            if len(others) != 1:
                raise TypeError("an option has one plain type, optionally `| None`")
            field_type = others[0]
        else:
            return field_type, metadata


def _describe_type(name: str, bare_type: shape.Type, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the kind, the choices and the bounds of a type, as arguments of OptionField."""
    match bare_type:
        case shape.BoolType():
            return {"kind": "flag"}
        case shape.IntType() | shape.FloatType():
            return {
                "kind": "integer" if isinstance(bare_type, shape.IntType) else "number",
                "minimum": bare_type.ge,
                "exclusive_minimum": bare_type.gt if bare_type.ge is None else None,
                "maximum": bare_type.le,
            }
        case shape.LiteralType(values=values) if all(isinstance(value, str) for value in values):
            return {"kind": "choice", "choices": tuple(str(value) for value in values)}
        case shape.StrType() if titles := metadata.get("titles"):
            return {
                "kind": "choice",
                "choices": tuple(titles),
                "titles": titles,
                "aliases": metadata.get("aliases", {}),
            }
        case shape.StrType(max_length=max_length):
            return {"kind": "text", "max_length": max_length}
    raise TypeError(f"option {name!r}: a form has no field for {bare_type!r}")


def parse_options(fields: Mapping[str, OptionField], requested: Mapping[str, object]) -> dict[str, Value]:
    """Parse the options of a request.

    Args:
        fields: Every option field, by name.
        requested: Texts or values by name.
    Returns:
        Parsed value for each requested name; None for empty text.
    Raises:
        InvalidOption: A name is unknown, or a value is malformed or out of bounds.
    """
    unknown = sorted(name for name in requested if name not in fields)
    if unknown:
        import difflib

        similar = difflib.get_close_matches(unknown[0], fields, n=1)
        # a list of all options would hide the cause
        hint = f"did you mean {similar[0]!r}?" if similar else "see GET /supported or `meshhub operations`"
        listed = ", ".join(quote(name) for name in unknown[:MAX_LISTED_COUNT])
        raise InvalidOption(f"unknown option {listed}; {hint}")
    return {name: fields[name].parse(value) for name, value in requested.items()}


def build_options(options: type[Struct], values: Mapping[str, Value]) -> Struct:
    """Create an options Struct from parsed values; absent fields and None keep the default. Ignore other names."""
    names = {field.name for field in option_fields(options)}
    return options(**{name: value for name, value in values.items() if name in names and value is not None})


def decode(options: type[Struct], requested: Mapping[str, object]) -> Struct:
    """Create an options Struct from texts or values, which are parsed; absent fields keep the default.

    Raises:
        InvalidOption: A value is malformed or out of bounds.
    """
    return build_options(
        options, {field.name: field.parse(requested.get(field.name)) for field in option_fields(options)}
    )


def check_rules(fields: Mapping[str, OptionField], values: Mapping[str, Value]) -> None:
    """Check which options are set together.

    Args:
        fields: Every option field, by name.
        values: Parsed values by name.
    Raises:
        InvalidOption: A set option requires another one that is not set, or conflicts with another one that is set.
    """
    set_names = {name for name, value in values.items() if _is_set(value)}
    for name in sorted(set_names):
        for other in fields[name].requires:
            if other not in set_names:
                raise InvalidOption(f"option '{{{name}}}' needs '{{{other}}}'; set both", options=(name, other))
        for other in fields[name].conflicts_with:
            if other in set_names:
                raise InvalidOption(
                    f"options '{{{name}}}' and '{{{other}}}' exclude each other; set one of them", options=(name, other)
                )


def drop_conflicts(
    defaults: Mapping[str, object], requested: Iterable[str], fields: Mapping[str, OptionField]
) -> dict[str, object]:
    """Return the options that a recipe or a rate card sets, without those that exclude a requested one.

    Args:
        defaults: Options of the recipe or the card, by name.
        requested: Names of the options that the request sets.
        fields: Every option field, by name.
    """
    names = set(requested)
    excluded = {other for name in names & fields.keys() for other in fields[name].conflicts_with}
    return {
        name: value
        for name, value in defaults.items()
        if name not in excluded and not (name in fields and names & set(fields[name].conflicts_with))
    }


def find_problem(options: type[Struct], values: Mapping[str, Value]) -> InvalidOption | None:
    """Return the error that the method `check` of an options Struct raises for parsed values; None without one.

    Raises:
        Exception: The method is broken, because it raised something other than ValueError or InvalidOption.
    """
    if not has_check(options):
        return None
    try:
        build_options(options, values).check()  # type: ignore[attr-defined]
    except InvalidOption as error:
        return error
    except ValueError as error:
        return InvalidOption(str(error) or "these options cannot be combined")
    return None


def has_check(options: type[Struct]) -> bool:
    """Return whether an options Struct has a method `check`."""
    return callable(getattr(options, "check", None))


def has_set_option(options: type[Struct], values: Mapping[str, Value]) -> bool:
    """Return whether a field of an options Struct has a parsed value other than None and False."""
    return any(_is_set(values.get(field.name)) for field in option_fields(options))


def _is_set(value: Value) -> bool:
    return value is not None and value is not False


def schema(options: type[Struct]) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of an options Struct as one flat object, so that a form can show it."""
    return {
        "type": "object",
        "properties": {field.name: field.schema() for field in option_fields(options)},
        "additionalProperties": False,
    }
