"""What a plug-in can declare: plain data, the code named by string, nothing heavy imported."""

from __future__ import annotations

from enum import IntEnum
from typing import Literal, SupportsIndex, get_args

from msgspec import Struct

Feature = Literal["names", "instances", "normals", "uv", "colors", "materials", "textures", "units"]
"""What a scene can hold beside its triangles, and a format may or may not carry."""

FEATURES: frozenset[Feature] = frozenset(get_args(Feature))

Unit = Literal["um", "mm", "cm", "m", "in", "ft"]
Up = Literal["y", "z"]

MILLIMETRES_PER: dict[Unit, float] = {
    "um": 0.001,
    "mm": 1.0,
    "cm": 10.0,
    "m": 1000.0,
    "in": 25.4,
    "ft": 304.8,
}


class Frame(Struct, frozen=True):
    """The unit and the up axis that coordinates are in; always right-handed."""

    unit: Unit = "mm"
    up: Up = "z"


HOST_FRAME = Frame("mm", "z")
"""What operations see, whatever the file says."""


class Stage(IntEnum):
    """When an operation runs. Ties keep the order of the operations' ids.

    REPAIR first: everything after assumes sound topology. REDUCE before instances are multiplied
    out. RESIZE next: it commutes with reduction and is cheaper on fewer vertices. CUT after it,
    because its millimetres are of the finished size. PLACE last: it reads the final bounding box.
    """

    REPAIR = 1
    REDUCE = 2
    RESIZE = 3
    CUT = 4
    PLACE = 5


class NoOptions(Struct, frozen=True, kw_only=True):
    """For a capability that takes no option."""


class Magic(Struct, frozen=True):
    """Bytes that a file of a format has at an offset."""

    data: bytes
    offset: int = 0


class Format(Struct, frozen=True, kw_only=True):
    """A file format. The same id may be declared by a reader and by a writer; they must agree.

    `extensions` come with their dot, in lower case, the one to write first; the first of
    `media_types` is the one to answer with; `specification` is a link or a title.
    """

    id: str
    label: str
    extensions: tuple[str, ...]
    media_types: tuple[str, ...] = ("application/octet-stream",)
    magic: tuple[Magic, ...] = ()
    specification: str = ""


class Capability(Struct, frozen=True, kw_only=True):
    """Something a plug-in can do.

    run:      "package.module:function"; imported when a chain first needs it.
    needs:    top-level modules without which it is disabled; found without importing them.
    install:  what `pip install` is told to mend that ("meshhub[step]").
    requires: an entitlement that the caller's plan must grant ("pro"), or None.
    """

    run: str
    needs: tuple[str, ...] = ()
    install: str = ""
    requires: str | None = None


SCORES = range(101)
"""How sure a sniffer is of a content, and how good a reader or writer is."""


def checked_score(score: object) -> int:
    """Return a score as an int. Raises ValueError for anything but a whole number from 0 to 100."""
    if not isinstance(score, SupportsIndex) or score.__index__() not in SCORES:
        raise ValueError(f"a score is a whole number from 0 to 100, got {score!r:.60}")
    return score.__index__()


class Reader(Capability, frozen=True, kw_only=True):
    """Turns a file into a scene: `run(source: Source, options) -> Scene`, in the file's own frame.

    frame: what the format's coordinates are in; None when each file says so itself.
    score: which of several readers of one format is chosen; higher wins, then the name.
    sniff: "package.module:function" of `sniff(head: bytes, size: int) -> int`, 0 (no) to 100 (sure).
    """

    format: Format
    options: type[Struct] = NoOptions
    carries: frozenset[Feature] = frozenset()
    frame: Frame | None = HOST_FRAME
    score: int = 50
    sniff: str | None = None


class Writer(Capability, frozen=True, kw_only=True):
    """Writes a scene: `run(scene: Scene, target: Target, options) -> None`; gets it in `frame`.

    carries_with: what is carried beside `carries` when an option field is given and not false.
    """

    format: Format
    options: type[Struct] = NoOptions
    carries: frozenset[Feature] = frozenset()
    carries_with: dict[str, frozenset[Feature]] = {}
    frame: Frame = HOST_FRAME
    score: int = 50


class Operation(Capability, frozen=True, kw_only=True):
    """Changes a scene: `run(scene: Scene, options) -> Scene`, always in millimetres, Z up.

    It takes part when one of its option fields is given and is not false.
    drops: features that do not survive it.
    """

    id: str
    label: str
    stage: Stage
    options: type[Struct]
    drops: frozenset[Feature] = frozenset()
