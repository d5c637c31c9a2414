"""Plug-ins with one mistake each beside a plan that works: as objects for a registry, and as entry points."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta, Struct

from distributions import install
from meshhub import (
    Format,
    Frame,
    Limits,
    Magic,
    Objection,
    Operation,
    Plan,
    Reader,
    Recipe,
    Rule,
    Stage,
    Storage,
    Writer,
    hookimpl,
)

PACKAGE = "package_that_raises"
"""Package of `write_package`; its import raises."""


class Options(Struct, frozen=True, kw_only=True):
    bad_mm: Annotated[float, Meta(title="Length", description="A length.", ge=0, le=10)] | None = None


class Axes(Struct, frozen=True, kw_only=True):
    bad_axis: Annotated[Literal["x", "z"], Meta(title="Axis", description="An axis.")] = "z"


class OutOfBounds(Struct, frozen=True, kw_only=True):
    bad_mm: Annotated[float, Meta(title="Length", ge=0, le=10)] = 11.0


class WrongDefault(Struct, frozen=True, kw_only=True):
    bad_mm: Annotated[float, Meta(title="Length")] = "long"  # type: ignore[assignment]


class Untitled(Struct, frozen=True, kw_only=True):
    bad_mm: float | None = None


class WithoutDefault(Struct, frozen=True, kw_only=True):
    bad_mm: Annotated[float, Meta(title="Length")]


class Factory(Struct, frozen=True, kw_only=True):
    bad_mm: Annotated[str, Meta(title="Length")] = msgspec.field(default_factory=lambda: str(1 // 0))


class UpperCase(Struct, frozen=True, kw_only=True):
    bad_Length: Annotated[float, Meta(title="Length")] | None = None  # noqa: N815


class ExampleObject(Struct, frozen=True, kw_only=True):
    bad_text: Annotated[str, Meta(title="Length", examples=[object()])] | None = None


class Surrogate(Struct, frozen=True, kw_only=True):
    bad_mm: Annotated[float, Meta(title="Length \ud800")] | None = None


class Raising(Struct, frozen=True, kw_only=True):
    bad_mm: Annotated[float, Meta(title="Length")] | None = None

    def __post_init__(self) -> None:
        raise LookupError("no such length")


class Unresolved(Struct, frozen=True, kw_only=True):
    bad_mm: NoSuchType  # type: ignore[name-defined]  # noqa: F821


class NotAStruct:
    bad_mm = 1.0


class HostileError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("str")


class Stop(BaseException):
    """Exception that `except Exception` does not catch."""


def sniff(_head: bytes, _size: int) -> int:
    return 100


def bad_format(**fields: Any) -> Format:
    return Format(**{"id": "bad", "label": "Bad", "extensions": (".bad",), **fields})


def reader(**fields: Any) -> list[object]:
    return [Reader(**{"format": bad_format(), "run": "toys:read", **fields})]


def read_format(**fields: Any) -> list[object]:
    return reader(format=bad_format(**fields))


def writer(**fields: Any) -> list[object]:
    return [Writer(**{"format": bad_format(), "run": "toys:write", **fields})]


def operation(**fields: Any) -> list[object]:
    return [
        Operation(**{"id": "bad", "label": "Bad", "stage": Stage.CUT, "options": Options, "run": "toys:spin", **fields})
    ]


def plan(**fields: Any) -> list[object]:
    return [Plan(**{"id": "bad", "label": "Bad", **fields})]


def limits(**fields: Any) -> list[object]:
    return plan(limits=Limits(**fields))


def recipe(**fields: Any) -> list[object]:
    return [Recipe(**{"id": "bad", "label": "Bad", "options": {"repair": True}, **fields})]


def rule(**fields: Any) -> list[object]:
    return [Rule(**{"objection": Objection(code="bad", message="Bad"), **fields})]


def storage(**fields: Any) -> list[object]:
    return [Storage(**{"scheme": "bad", "run": "toys:read", **fields})]


def raise_midway() -> Iterator[object]:
    yield from reader()
    raise LookupError("no more readers")


def raise_error(error: BaseException) -> Any:
    raise error


class Case(NamedTuple):
    """A mistake: the hook that makes it, its result, and the text that the fault must have."""

    hook: str
    declare: Callable[[], object]
    expected: str


def _cases(hook: str, *rows: tuple[str, Callable[[], object], str]) -> Mapping[str, Case]:
    return {name: Case(f"meshhub_{hook}", declare, expected) for name, declare, expected in rows}


CASES: Mapping[str, Case] = {
    **_cases(
        "readers",
        (
            "magic-bytes",
            lambda: read_format(magic=(b"ACME",)),
            "format.magic[0] must be a Magic(…), got b'ACME'",
        ),
        (
            "magic-single",
            lambda: read_format(magic=Magic(b"A")),
            "magic must be a tuple of Magic(…), got an object",
        ),
        ("magic-text", lambda: read_format(magic=(Magic("A"),)), "magic[0].data must be bytes, at least one, got 'A'"),  # type: ignore[arg-type]
        ("magic-empty", lambda: read_format(magic=(Magic(b""),)), "magic[0].data must be bytes, at least one, got b''"),
        (
            "magic-offset",
            lambda: read_format(magic=(Magic(b"A", -1),)),
            "magic[0].offset must be a whole number of at least 0, got -1",
        ),
        (
            "sniff-function",
            lambda: reader(sniff=sniff),
            "reader of 'bad': sniff must be text \"package.module:function\", got a function",
        ),
        ("run-function", lambda: reader(run=sniff), 'run must be text "package.module:function", got a function'),
        ("run-form", lambda: reader(run="toys.read"), "run must be text \"package.module:function\", got 'toys.read'"),
        ("run-module", lambda: reader(run="no_such:read"), "the module of 'no_such:read' does not exist"),
        ("carries-text", lambda: reader(carries="colors"), "reader of 'bad': carries: Expected `array`, got `str`"),
        ("frame-tuple", lambda: reader(frame=("mm", "z")), "frame must be a Frame(…), got ('mm', 'z')"),
        ("frame-axis", lambda: reader(frame=Frame("mm", "x")), "frame.up must be one of 'y', 'z', got 'x'"),  # type: ignore[arg-type]
        ("score-text", lambda: reader(score="high"), "score must be a whole number from 0 to 100, got 'high'"),
        ("score-flag", lambda: reader(score=True), "score must be a whole number from 0 to 100, got True"),
        ("options-dict", lambda: reader(options={}), "options: must be a class derived from msgspec.Struct, got {}"),
        ("options-class", lambda: reader(options=NotAStruct), "msgspec.Struct, got the class NotAStruct"),
        ("needs-text", lambda: reader(needs="numpy"), "needs: Expected `array`, got `str`"),
        ("keeps-state", lambda: reader(keeps_state=None), "keeps_state: Expected `bool`, got `null`"),
        ("requires-list", lambda: reader(requires=["pro"]), "requires: Expected `str | null`, got `array`"),
        ("format-text", lambda: reader(format="acme"), "format must be a Format(…), got 'acme'"),
        ("extensions-text", lambda: read_format(extensions=".a"), "format.extensions must be a tuple of extensions"),
        ("extension-dot", lambda: read_format(extensions=("a",)), "format.extensions[0] must be an extension"),
        ("extension-path", lambda: read_format(extensions=("./../a",)), "got ('./../a',)"),
        (
            "media-type-lines",
            lambda: read_format(media_types=("a/b\r\nc: d",)),
            "format.media_types[0] must be a media",
        ),
        ("id-spaces", lambda: read_format(id="My Format"), "format.id must be an id of a-z"),
        (
            "id-number",
            lambda: read_format(id=3),
            "reader: format.id must be an id of a-z, 0-9, '.', '_', '+' and '-', got 3",
        ),
        (
            "memory-negative",
            lambda: read_format(memory_base_bytes=-1),
            "format.memory_base_bytes must be a whole number of at least 0, got -1",
        ),
        (
            "memory-ratio",
            lambda: read_format(memory_ratio=-1),
            "format.memory_ratio must be a number of at least 0, got -1",
        ),
        ("label-number", lambda: read_format(label=3), "format.label: Expected `str`, got `int`"),
        ("label-surrogate", lambda: read_format(label="\ud800"), "format.label must be text that UTF-8 can hold, got"),
        ("occasion-list", lambda: reader(options_for=["a"]), "options_for: Expected `object`, got `array`"),
        (
            "default-high",
            lambda: reader(options=OutOfBounds),
            "'bad_mm' rejects its own default 11.0; must be at least 0",
        ),
        ("default-text", lambda: reader(options=WrongDefault), "'bad_mm' rejects its own default 'long'"),
        ("default-none", lambda: reader(options=WithoutDefault), "option 'bad_mm' needs a plain default"),
        ("default-factory", lambda: reader(options=Factory), "option 'bad_mm' needs a plain default"),
        ("option-untitled", lambda: reader(options=Untitled), "option 'bad_mm' needs a title"),
        ("option-upper", lambda: reader(options=UpperCase), "option 'bad_Length' must be a lower-case identifier"),
        ("option-surrogate", lambda: reader(options=Surrogate), "options Surrogate cannot be shown as JSON"),
        (
            "example-object",
            lambda: reader(options=ExampleObject),
            "'bad_text' rejects its own example an object of type",
        ),
        ("options-raise", lambda: reader(options=Raising), "LookupError: no such length (broken_declarations.py:"),
        ("options-unresolved", lambda: reader(options=Unresolved), "NameError: name 'NoSuchType' is not defined"),
        ("package-raises", lambda: reader(run=f"{PACKAGE}.inner:read"), "RuntimeError: not here (package_that_raises/"),
        ("single", lambda: reader()[0], "meshhub_readers failed: it must return a list, got an object of type Reader"),
        ("none", lambda: None, "meshhub_readers failed: it must return a list, got None"),
        ("text", lambda: "reader", "meshhub_readers failed: it must return a list, got 'reader'"),
        ("class", lambda: [Reader], "meshhub_readers: it must be a Reader(…), got the class Reader"),
        ("midway", raise_midway, "meshhub_readers failed: LookupError: no more readers (broken_declarations.py:"),
        ("endless", lambda: itertools.repeat(reader()[0]), "meshhub_readers failed: it must return at most 1000 items"),
        ("hostile-error", lambda: raise_error(HostileError()), "HostileError: its text cannot be read (RuntimeError)"),
        ("exit", lambda: sys.exit(3), "meshhub_readers failed: SystemExit: 3 (broken_declarations.py:"),
        ("stop", lambda: raise_error(Stop("stop")), "meshhub_readers failed: Stop: stop (broken_declarations.py:"),
    ),
    **_cases(
        "writers",
        (
            "carries-with",
            lambda: writer(carries_with={"a": "names"}),
            "carries_with[...]: Expected `array`, got `str`",
        ),
        (
            "max-colors",
            lambda: writer(options=Options, max_colors={"bad_mm": {"mono": 1}}),
            "max_colors must name options with their choices, got {'bad_mm': {'mono': 1}}",
        ),
        ("writer-frame", lambda: writer(frame=None), "writer of 'bad': frame must be a Frame(…), got None"),
        (
            "up-option",
            lambda: writer(options=Options, up_option="bad_mm"),
            "up_option must be one of its options, with the choices y and z, got 'bad_mm'",
        ),
        (
            "up-option-choices",
            lambda: writer(options=Axes, up_option="bad_axis"),
            "up_option must be one of its options, with the choices y and z, got 'bad_axis'",
        ),
        ("writer-reader", reader, "meshhub_writers: it must be a Writer(…), got an object of type Reader"),
    ),
    **_cases(
        "operations",
        ("stage-none", lambda: operation(stage=None), "stage: Expected `int`, got `null`"),
        ("no-options", lambda: operation(options=Reader), "option 'run' needs a plain default"),
        (
            "solves-name",
            lambda: operation(solves={"many_colors": "bad_colors"}),
            "solves['many_colors'] must be one of its options, got 'bad_colors'",
        ),
    ),
    **_cases(
        "plans",
        (
            "limit-text",
            lambda: limits(max_file_bytes="10 MB"),
            "plan 'bad': limits.max_file_bytes must be a whole number of at least 0, got '10 MB'",
        ),
        ("limit-negative", lambda: limits(max_batch_files=-1), "limits.max_batch_files must be a whole number of at"),
        (
            "limit-nan",
            lambda: limits(job_timeout_seconds=float("nan")),
            "job_timeout_seconds must be a number of at least 0, got nan",
        ),
        (
            "limit-infinite",
            lambda: limits(job_timeout_seconds=float("inf")),
            "limits.job_timeout_seconds must be finite, got inf",
        ),
        (
            "limits-dict",
            lambda: plan(limits={"max_file_bytes": 1}),
            "limits must be a Limits(…), got {'max_file_bytes'",
        ),
        ("grants-text", lambda: plan(grants="pro"), "grants: Expected `array`, got `str`"),
    ),
    **_cases(
        "recipes",
        ("recipe-list", lambda: recipe(options=["repair"]), "recipe 'bad': options: Expected `object`, got `array`"),
        (
            "recipe-none",
            lambda: recipe(options={"repair": None}),
            "options[...]: Expected `bool | int | float | str`",
        ),
    ),
    **_cases(
        "rules",
        ("objection-text", lambda: rule(objection="no"), "rule: objection must be a Objection(…), got 'no'"),
    ),
    **_cases(
        "storages",
        ("scheme-slashes", lambda: storage(scheme="bad://"), "storage of 'bad://': scheme must be a scheme of two or"),
        ("storage-class", lambda: storage(run=NotAStruct), 'run must be text "package.module:function", got the class'),
    ),
}
"""Mistakes by the name of the plug-in that makes them."""


def good_plan(name: str) -> str:
    """Return the id of the plan that works of a plug-in."""
    return f"good-{name}"


class BrokenPlugin:
    """Plug-in with the mistake of a case, and a plan that works."""

    def __init__(self, name: str) -> None:
        case = CASES[name]
        self.__name__ = name
        good = Plan(id=good_plan(name), label="Good")

        def declare() -> object:
            items = case.declare()
            return [good, *items] if case.hook == "meshhub_plans" and isinstance(items, list) else items

        self.meshhub_plans = hookimpl(lambda: [good])
        setattr(self, case.hook, hookimpl(declare))


def __getattr__(name: str) -> object:
    """Return the plug-in of an entry point."""
    if name.replace("_", "-") in CASES:
        return BrokenPlugin(name.replace("_", "-"))
    raise AttributeError(name)


def write_package(folder: Path) -> None:
    """Write the package whose import raises."""
    (folder / PACKAGE).mkdir()
    (folder / PACKAGE / "__init__.py").write_text('"""Package."""\n\nraise RuntimeError("not here")\n')


def install_all(folder: Path) -> None:
    """Install a distribution with every plug-in."""
    write_package(folder)
    install(folder, "meshhub-broken", **{name: f"broken_declarations:{name.replace('-', '_')}" for name in CASES})


class Lenient:
    """Plug-in without a mistake that matters: it cannot be compared, and declares subclasses, and lists for tuples."""

    __name__ = "lenient"
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("eq")

    def __repr__(self) -> str:
        raise RuntimeError("repr")

    @hookimpl
    def meshhub_readers(self) -> list[object]:
        format_ = bad_format(id="lenient", extensions=[".lenient"], magic=[Magic(b"lenient!")])
        return [Reader(format=format_, run="toys:read", carries={"names"})]  # type: ignore[arg-type]
