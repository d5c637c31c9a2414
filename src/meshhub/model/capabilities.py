"""Declarations of plug-ins: formats, readers, writers and operations as plain data.

A declaration names its code by a string, so that listing capabilities imports no code of a plug-in.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Annotated, BinaryIO, Literal, Protocol, SupportsIndex, get_args, runtime_checkable

from msgspec import Meta, Struct

Feature = Literal[
    "names", "hierarchy", "instances", "normals", "uv", "colors", "materials", "textures", "metadata", "units"
]
"""Property that a scene has beside its triangles, and that a format can or cannot keep."""

FEATURES: frozenset[Feature] = frozenset(get_args(Feature))
"""Every feature."""

Unit = Literal["um", "mm", "cm", "m", "in", "ft"]
"""Unit of length of the coordinates of a file."""

Up = Literal["y", "z"]
"""Axis that points up."""

UNIT_NAMES: dict[Unit, str] = {
    "um": "micrometers",
    "mm": "millimeters",
    "cm": "centimeters",
    "m": "meters",
    "in": "inches",
    "ft": "feet",
}
"""Names of the units for people, in the plural."""

MILLIMETERS_PER: dict[Unit, float] = {
    "um": 0.001,
    "mm": 1.0,
    "cm": 10.0,
    "m": 1000.0,
    "in": 25.4,
    "ft": 304.8,
}
"""Millimeters in each unit."""

Id = Annotated[
    str,
    Meta(title="an id of a-z, 0-9, '.', '_', '+' and '-'", pattern=r"^[a-z0-9][a-z0-9._+-]*\Z", max_length=64),
]
"""Stable id. A title describes the values of a field in the fault of a declaration."""

Reference = Annotated[
    str,
    Meta(
        title='text "package.module:function"',
        pattern=r"^[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*\Z",
        max_length=200,
    ),
]
"""Name of a function, which is imported when it is needed."""

Extension = Annotated[
    str,
    Meta(title="an extension in lower case with its dot", pattern=r"^(\.[a-z0-9_+-]+)+\Z", max_length=64),
]
"""Extension of a file."""

MediaType = Annotated[str, Meta(title="a media type", pattern=r"^[!-~]+/[!-~]+(; ?[!-~]+)*\Z", max_length=200)]
"""Media type, which HTTP responses send as `Content-Type`."""

Count = Annotated[int, Meta(title="a whole number of at least 0", ge=0)]
"""Number of bytes, files or requests."""

Score = Annotated[int, Meta(title="a whole number from 0 to 100", ge=0, le=100)]
"""Preference or certainty; higher is better."""


SCHEME = r"[a-z][a-z0-9+.-]+"
"""Regular expression of a scheme (RFC 3986 §3.1) of two or more characters, because one letter is a drive of Windows.
"""


class Frame(Struct, frozen=True):
    """Unit and up axis of coordinates; always right-handed."""

    unit: Unit = "mm"
    up: Up = "z"

    def __str__(self) -> str:
        """Describe the frame for messages."""
        return f"{UNIT_NAMES[self.unit]}, {self.up.upper()} up"


HOST_FRAME = Frame("mm", "z")
"""Frame of every scene that operations receive."""


class Stage(IntEnum):
    """Position of an operation in a chain. Operations of one stage run in the order of their ids."""

    REPAIR = 1
    """All others need valid meshes."""

    REDUCE = 2
    """Fewer triangles make all others faster, and are the same before and after a turn or a change of size; later
    operations duplicate instances."""

    TURN = 3
    """Heights and boxes refer to the model as it stands."""

    RESIZE = 4
    """Lengths of later operations refer to the final size."""

    SHAPE = 5
    """They move surfaces, from which later ones measure."""

    HOLLOW = 6
    """Walls are measured from the final surface."""

    CUT = 7
    """They open cavities, and make the side on which the model stands."""

    BASE = 8
    """They work on that side; holes go through the plinth."""

    DIVIDE = 9
    """They make several parts of one; until then, each part is whole."""

    COLOR = 10
    """It splits triangles, and needs all original colors."""

    PLACE = 11
    """They need the final size."""


class NoOptions(Struct, frozen=True, kw_only=True):
    """Options of a capability that has none."""


class Magic(Struct, frozen=True):
    """Signature of a format."""

    data: Annotated[bytes, Meta(title="bytes, at least one", min_length=1)]
    """Bytes that every file of the format has at the offset."""

    offset: Count = 0
    """Bytes from the start of the file."""


class Format(Struct, frozen=True, kw_only=True):
    """File format. A reader and a writer may declare the same id; their declarations must be equal."""

    id: Id
    """Stable id, such as "3mf"."""

    label: str
    """Name for people."""

    extensions: Annotated[tuple[Extension, ...], Meta(title="a tuple of extensions, at least one", min_length=1)]
    """Extensions in lower case with the dot; writers use the first."""

    media_types: Annotated[tuple[MediaType, ...], Meta(title="a tuple of media types, at least one", min_length=1)] = (
        "application/octet-stream",
    )
    """Media types; HTTP responses use the first."""

    magic: tuple[Magic, ...] = ()
    """Signatures at fixed offsets."""

    specification: str = ""
    """Link or title."""

    generator_entry: str = ""
    """Entry of a ZIP archive that names the program which wrote the file; "": the beginning of the file names it.

    A derived output replaces a file only if "meshhub" is in its first 64 KB, because other files may be originals of a
    user.
    """

    is_compressed: bool = False
    """Whether the files are compressed, so that a ZIP of results only stores them."""

    memory_base_bytes: Count = 512 << 20
    """Memory of a conversion of a tiny file, with the libraries.

    A job starts on a worker that has this memory free, and `memory_ratio` for its file.
    """

    memory_ratio: Annotated[float, Meta(title="a number of at least 0", ge=0)] = 25.0
    """Further bytes of memory for each byte of the file; leave room for repair and reduction."""


MemoryFactor = Annotated[float, Meta(title="a number of at least 1", ge=1)]


class Memory(Struct, frozen=True, kw_only=True):
    """Memory that a capability needs while it runs; see `benchmarks/memory.py`."""

    factor: MemoryFactor = 1.0
    """In multiples of the `memory_ratio` of formats."""

    base_bytes: Count = 0
    """Further bytes, however small the model, such as those of a grid."""

    options: dict[str, MemoryFactor] = {}
    """Factors of options that need more than the others."""

    def of(self, options: Iterable[str]) -> Memory:
        """Return the memory with these options set."""
        return self.including(Memory(factor=self.options[name]) for name in options if name in self.options)

    def including(self, others: Iterable[Memory]) -> Memory:
        """Return what is enough for this and for others, one after the other."""
        needs = [self, *others]
        return Memory(factor=max(need.factor for need in needs), base_bytes=max(need.base_bytes for need in needs))


class Capability(Struct, frozen=True, kw_only=True):
    """Base class of readers, writers and operations."""

    run: Reference
    """Code as "package.module:function"; imported when a chain first needs it."""

    needs: tuple[str, ...] = ()
    """Top-level modules that `run` needs. The capability is disabled if one is missing; none is imported."""

    install: str = ""
    """Requirement that provides the modules, such as "meshhub[step]"; messages name the packages that it adds."""

    preload: tuple[str, ...] = ()
    """Modules that `run` imports late, such as submodules of `needs`; a service imports them once for all workers.

    Built-in plug-ins only, because the process from which workers are forked must not run other code.
    """

    requires: str | None = None
    """Entitlement that the caller's plan must grant, such as "pro"; None: none."""

    keeps_state: bool = False
    """Whether a library keeps state between calls that cannot be compared, such as settings and caches.

    The worker process then runs no other task. Only tasks of built-in plug-ins share a worker process.
    """


SCORES = range(101)
"""Scores of sniffers, readers and writers; higher is better."""


def checked_score(score: object) -> int:
    """Return a score as an int.

    Raises:
        ValueError: The score is not a whole number from 0 to 100.
    """
    # True is an answer to another question, and would be a score of 1
    if not isinstance(score, bool) and isinstance(score, SupportsIndex):
        number = operator.index(score)
        if number in SCORES:
            return number
    raise ValueError(f"a score must be a whole number from 0 to 100, got {score!r:.60}")


Occasion = Literal["display", "surfaces", "crash"]
"""Why a reader uses other options than the requested ones."""

Problem = Literal["many_faces", "many_colors", "open_mesh"]
"""Problem of a model that an operation solves."""


class Reader(Capability, frozen=True, kw_only=True):
    """Reader of a format: `run(source: Source, options) -> Scene`, in the frame of the file."""

    format: Format
    """The format."""

    options: type[Struct] = NoOptions
    """Struct of the options."""

    carries: frozenset[Feature] = frozenset()
    """Features that the reader keeps."""

    frame: Frame | None = HOST_FRAME
    """Frame of all files of the format, and of scenes that state none; None if each file states its own."""

    score: Score = 50
    """Preference among several readers of the format; the highest wins, then the first name."""

    features: Reference | None = None
    """Code as "package.module:function" of `features(source, options) -> tuple[Scene, FeatureTable | None]`.

    It reads like `run`, and also returns the feature table of a format with exact surfaces. Inspections and conversions
    call it instead of `run`.
    """

    options_for: dict[Occasion, dict[str, str]] = {}
    """Values of options on some occasions: `{"crash": {"abc_careful": "true"}}`.

    "display": The scene is only shown, in an inspection, a picture or a preview. Requested options take precedence. A
    picture with operations ignores these, because it shows the result of a conversion.
    "surfaces": The picture shows the kinds of surfaces. The reader then gives each face a material with the name of its
    kind, such as "cylinder". Without them, the format has no surfaces.
    "crash": Native code of the reader has crashed, and a new process reads the file again. These take precedence over
    requested ones, and a note reports them. Without them, the request fails.
    """

    sniff: Reference | None = None
    """Code as "package.module:function" of `sniff(head: bytes, size: int) -> int`.

    It returns a score from 0 (another format) to 100 (certainly this format) for the first bytes of a file.
    """


class Writer(Capability, frozen=True, kw_only=True):
    """Writer of a format: `run(scene: Scene, target: Target, options) -> None`."""

    format: Format
    """The format."""

    options: type[Struct] = NoOptions
    """Struct of the options."""

    carries: frozenset[Feature] = frozenset()
    """Features that the writer keeps."""

    carries_with: dict[str, frozenset[Feature]] = {}
    """Features that the writer keeps in addition if an option is set, by option name."""

    memory: Memory = Memory()
    """Memory that it needs."""

    figures: dict[str, str] = {}
    """Sentences about figures, as in `Operation.figures`."""

    action: str = ""
    """Title under which the page offers the format beside the operations, such as "Slice", with its everyday options;
    "": only in the list of formats.
    """

    merges_parts: bool = False
    """Whether programs read all parts of a file as one mesh, so that parts that touch become one."""

    max_colors: dict[str, dict[str, int]] = {}
    """Maximum number of colors that programs print, by option and its value: `{"abc_printer": {"mono": 1}}`.

    Operations that reduce colors use no more. Other values: unlimited.
    """

    frame: Frame = HOST_FRAME
    """Frame in which the writer receives the scene."""

    up_option: str | None = None
    """Option whose value, "y" or "z", is the up axis of the frame; None: that of `frame`."""

    score: Score = 50
    """Preference among several writers of the format; the highest wins, then the first name."""


class Storage(Capability, frozen=True, kw_only=True):
    """Storage of files at addresses with a scheme, such as s3://bucket/key: `run(address: str) -> StoredFile`.

    Python calls and the command line use it for the addresses that a person names. The HTTP service sends files to the
    printers of a storage, for callers with the entitlement `requires`, and opens no other address.
    """

    scheme: Annotated[
        str, Meta(title="a scheme of two or more of a-z, 0-9, '+', '.' and '-'", pattern=rf"^{SCHEME}\Z", max_length=64)
    ]
    """Scheme in lower case, without "://"."""

    printers: Reference | None = None
    """Code as "package.module:function" of `printers(scheme: str) -> list[NetworkPrinter]`.

    It asks the printers for their states. None: the storage has no printers.
    """

    prints: tuple[Extension, ...] = ()
    """Extensions of the files that the printers take."""

    start_query: str = ""
    """End of the address of a file that is printed as soon as it is stored, such as "?print=true"."""


class NetworkPrinter(Struct, frozen=True, kw_only=True):
    """Printer to which a storage sends files."""

    address: str
    """Scheme and name, such as "octoprint://ender"; its files are at octoprint://ender/part.gcode."""

    name: str
    """Name for people."""

    state: str = ""
    """State, such as "ready" or "printing"; "" if it is not known."""

    error: str = ""
    """Reason why the state is not known, without hosts, paths and keys, because callers of the service read it."""


class StoredFile(Protocol):
    """File at one address of a storage. `run` raises RequestError for an address that it rejects.

    `fetch` raises FileNotFoundError if the file does not exist, and UnreadableFile for other failures. `store` raises
    OutputExists if it would replace a file that it must keep, and OSError for other failures.
    """

    def fetch(self, file: BinaryIO) -> None:
        """Write the content of the file to an open local file."""

    def store(self, files: Sequence[Path], *, overwrite: bool) -> None:
        """Store local files: the result at the address, and its companions beside it.

        Args:
            files: The result, followed by its companions, which have their final names. A companion must not replace
                a file with other content.
            overwrite: Whether to replace an existing file at the address.
        """


@runtime_checkable
class StoredFolderFile(StoredFile, Protocol):
    """File whose storage can list the files beside it, so that a model gets the companions that it mentions."""

    def list_folder(self) -> Mapping[str, StoredFile]:
        """Return the files beside this one and in folders below, by relative path with slashes."""


class Check(Capability, frozen=True, kw_only=True):
    """Check of a model: `run(scene: Scene, options) -> Iterable[Finding | Estimate]`, in millimeters, Z up.

    A check changes nothing. It reports figures, such as the thickness of the thinnest wall, with `did`. All checks of a
    chain receive the same scene. If one fails, the others still run, and a finding says that it did not.
    """

    id: Id
    """Stable id."""

    label: str
    """Name for people."""

    description: str
    """What it looks for, in one sentence."""

    options: type[Struct] = NoOptions
    """Struct of the options; checks may share one."""

    concurrent: bool = False
    """Whether `run` may run in a thread beside other checks of the same scene, on models of many faces."""

    memory: Memory = Memory()
    """Memory that it needs."""

    estimates: Literal["model", "slicer"] | None = None
    """How the check makes the estimate of a quote; None: it makes none. One by a slicer runs only on request."""


class Operation(Capability, frozen=True, kw_only=True):
    """Operation on a scene: `run(scene: Scene, options) -> Scene`, in millimeters, Z up.

    An operation joins a chain if one of its options is set to a value other than false.
    """

    id: Id
    """Stable id."""

    label: str
    """Name for people."""

    stage: Stage
    """Position in a chain."""

    options: type[Struct]
    """Struct of the options."""

    memory: Memory = Memory()
    """Memory that it needs."""

    drops: frozenset[Feature] = frozenset()
    """Features that the operation does not keep."""

    transfers: frozenset[Feature] = frozenset()
    """Features of `drops` whose content the result keeps in another form (textures as materials), which is not a loss.
    """

    solves: dict[Problem, str] = {}
    """Options that solve a problem, which messages recommend: `{"many_faces": "abc_faces"}`.

    "many_faces": Option that reduces the number of faces.
    "many_colors": Option that sets the number of colors, or filaments; `texture_colors=paint` needs such an operation.
    "open_mesh": Flag that makes meshes closed and consistently oriented.
    """

    figures: dict[str, str] = {}
    """Sentences about figures that `run` reports with `did`, for people, by the figure that must not be 0 or absent.

    "{}" is its value, other names in braces are other figures. A text for 1 precedes the one for other numbers:
    "closed {} hole|closed {} holes". A text with several figures, such as "height {height_before_mm} → {} mm", is left
    out while they are equal. Figures without a text appear only as JSON.
    """
