"""Reader of Abaqus input, because meshio 5.3 reads neither parts and instances nor several lists of nodes.

Source: Abaqus keywords reference, *INSTANCE, *NODE, *ELEMENT, *SYSTEM, *INCLUDE
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from meshhub import ModelTooComplex, Source, UnreadableFile, note
from meshhub.errors import quote
from meshhub.model.scene import Float64
from meshhub.toolkit.columns import Irregular, read_numbers
from meshhub_meshio.surface import Index

if TYPE_CHECKING:
    import meshio

_KEYWORD = re.compile(rb"^[ \t]*\*(?!\*)(?:[^\n]*,[ \t]*\n)*[^\n]*", re.MULTILINE)
"""Line of a keyword; one that ends with a comma continues."""

_COMMENT = re.compile(rb"^[ \t]*\*\*[^\n]*\n?", re.MULTILINE)
_MISSING = re.compile(rb",(?=[ \t]*,)")
"""Place of a number that is left out, which stands for 0."""

_VOLUME = re.compile(r"(?:[ADEPQ]*C3D|COH3D|CSS|SC)(\d+)")
_SURFACE = re.compile(r"(?:STRI|DS|S|SFM3D|M3D|R3D|F3D|CPS|CPEG|CPE|CGAX|CAX|AC2D|ACAX|DC2D|DCAX)(\d)")
_LINE = re.compile(
    r"[TBR][23]D?\d|PIPE|ELBOW|FRAME|SPRING|DASHPOT|MASS|ROTARYI|CONN|GAP|RB|SAX|RAX|MAX|DC1D|AC1D|D$|JOINT|ITT|HEATCAP"
)
_VOLUMES = {
    4: "tetra", 5: "pyramid", 6: "wedge", 8: "hexahedron", 10: "tetra10",
    13: "pyramid13", 15: "wedge15", 20: "hexahedron20", 27: "hexahedron27",
}  # fmt: skip
_SURFACES = {3: "triangle", 4: "quad", 6: "triangle6", 8: "quad8", 9: "quad9"}

_GENERATORS = ("NGEN", "NFILL", "NCOPY", "NMAP", "ELGEN", "ELCOPY", "SUBSTRUCTURE GENERATE")
"""Keywords that make nodes or elements from others."""

_MAX_INCLUDES_COUNT = 100
"""Maximum included files; a file may include itself."""

_MAX_POINTS_COUNT = 100_000_000
"""Maximum points of all instances, which multiply."""


@dataclass
class _Part:
    """Nodes and elements of a part, of an instance or of the whole model."""

    numbers: list[Index] = field(default_factory=list)
    points: list[Float64] = field(default_factory=list)
    cells: list[tuple[str, Index]] = field(default_factory=list)


@dataclass(frozen=True)
class _Block:
    """A keyword with its parameters and its lines of data."""

    keyword: str
    parameters: dict[str, str]
    data: bytes


def read_model(source: Source) -> meshio.Mesh:
    """Read the mesh of a model, with its instances in their places. Raises UnreadableFile, ModelTooComplex."""
    import meshio

    model = _Model(source)
    for block in model.blocks(source):
        model.add(block)
    if model.ignored:
        note("cells_left_out", f"elements of these types were left out: {', '.join(sorted(model.ignored))[:100]}")
    points: list[Float64] = []
    cells: list[tuple[str, Index]] = []
    count = 0
    for part, matrix in model.placed():
        own_points, own_cells = _index_cells(part)
        points.append(own_points @ matrix[:3, :3].T + matrix[:3, 3])
        cells += [(kind, rows + count) for kind, rows in own_cells]
        count += len(own_points)
        if count > _MAX_POINTS_COUNT:
            raise ModelTooComplex(
                f"the instances of the file have more than {_MAX_POINTS_COUNT:,} nodes; split the model"
            )
    return meshio.Mesh(np.concatenate(points) if points else np.empty((0, 3)), cells)


class _Model:
    """Model that is being read, keyword by keyword."""

    def __init__(self, source: Source) -> None:
        self.ignored: set[str] = set()
        self._source = source
        self._includes_count = 0
        self._parts: dict[str, _Part] = {}
        self._instances: list[tuple[_Part, str, Float64]] = []
        self._root = self._current = _Part()
        self._system = np.eye(4)

    def blocks(self, source: Source) -> Iterator[_Block]:
        """Yield the keywords of a file, and those of the files that it includes. Raises UnreadableFile."""
        text = _COMMENT.sub(b"", source.read().replace(b"\r\n", b"\n").replace(b"\r", b"\n"))
        matches = list(_KEYWORD.finditer(text))
        if not matches:
            raise UnreadableFile("the file has no keywords of Abaqus, which begin with *; check its format")
        ends = [*(match.start() for match in matches[1:]), len(text)]
        for match, end in zip(matches, ends, strict=True):
            keyword, parameters = _parse_keyword(match[0].decode("utf-8", "replace"))
            file = self._find(parameters.get("INPUT", "")) if keyword in ("INCLUDE", "NODE", "ELEMENT") else None
            if keyword == "INCLUDE":
                if file is None:
                    raise UnreadableFile("an *INCLUDE names no file; correct it in the file")
                yield from self.blocks(file)
            else:
                own = text[match.end() : end]
                yield _Block(keyword, parameters, own if file is None else _COMMENT.sub(b"", file.read()))

    def _find(self, name: str) -> Source | None:
        """Return a file that the model includes; None without a name. Raises UnreadableFile."""
        if not name:
            return None
        self._includes_count += 1
        if self._includes_count > _MAX_INCLUDES_COUNT:
            raise UnreadableFile(f"the file includes more than {_MAX_INCLUDES_COUNT} files, or itself; join them")
        file = self._source.sibling(name)
        if file is None:
            raise UnreadableFile(f"the file includes {quote(name)}, which is missing; send both in one archive")
        return file

    def add(self, block: _Block) -> None:
        """Add what a keyword defines. Raises UnreadableFile."""
        keyword = block.keyword
        if keyword in _GENERATORS:
            raise UnreadableFile(
                f"the file generates its mesh with *{keyword}, which is not read; export plain nodes and elements"
            )
        if keyword in ("PART", "INSTANCE", "END PART", "END INSTANCE", "ASSEMBLY", "END ASSEMBLY"):
            self._enter(block)
        elif keyword == "SYSTEM":
            self._system = _read_system(block.data)
        elif keyword == "NODE":
            numbers, points = _read_nodes(block)
            self._current.numbers.append(numbers)
            self._current.points.append(points @ self._system[:3, :3].T + self._system[:3, 3])
        elif keyword == "ELEMENT":
            self._add_elements(block)

    def _enter(self, block: _Block) -> None:
        """Begin or end a part, an instance or the assembly."""
        self._system = np.eye(4)
        self._current = self._root
        name = block.parameters.get("PART" if block.keyword == "INSTANCE" else "NAME", "")
        if block.keyword == "PART":
            self._current = self._parts.setdefault(name, _Part())
        elif block.keyword == "INSTANCE":
            if not name:
                raise UnreadableFile("an *INSTANCE names no part, but results of another job; export the whole model")
            self._current = _Part()
            self._instances.append((self._current, name, _read_placement(block.data)))

    def _add_elements(self, block: _Block) -> None:
        kind = block.parameters.get("TYPE", "")
        count, cell = _find_cell(kind)
        if not cell:
            if not _LINE.match(kind):
                self.ignored.add(kind)
            return
        numbers, _ = _numbers(block.data, f"*ELEMENT, TYPE={kind}")
        if len(numbers) % (count + 1):
            raise UnreadableFile(
                f"elements of type {kind[:20]} have {count} nodes, but their list has {len(numbers)} numbers"
            )
        self._current.cells.append((cell, numbers.astype(np.int64).reshape(-1, count + 1)[:, 1:]))

    def placed(self) -> Iterator[tuple[_Part, Float64]]:
        """Yield the parts of the model with their matrices. Raises UnreadableFile."""
        yield self._root, np.eye(4)
        for own, name, matrix in self._instances:
            if name not in self._parts:
                raise UnreadableFile(
                    f"an *INSTANCE refers to the part {quote(name[:40])}, which the file does not have"
                )
            yield self._parts[name], matrix
            yield own, matrix
        if not self._instances:
            for part in self._parts.values():
                yield part, np.eye(4)


def _parse_keyword(text: str) -> tuple[str, dict[str, str]]:
    """Return the name of a keyword, and its parameters; both in upper case, except for names of files."""
    keyword, *words = re.sub(r"\s+", " ", text).split(",")
    parameters = {}
    for word in words:
        name, _, value = word.partition("=")
        name, value = name.strip().upper(), value.strip().strip('"')
        parameters[name] = value if name == "INPUT" else value.upper()
    return keyword.strip().lstrip("*").strip().upper(), parameters


def _find_cell(kind: str) -> tuple[int, str]:
    """Return the nodes of an element type, and the cell as meshio names it; "" for lines, points and unknown types."""
    if kind == "STRI65":
        return 6, "triangle6"
    match = _VOLUME.match(kind)
    if match:
        return int(match[1]), _VOLUMES.get(int(match[1]), "")
    match = _SURFACE.match(kind)
    return (int(match[1]), _SURFACES.get(int(match[1]), "")) if match else (0, "")


def _numbers(data: bytes, what: str) -> tuple[Float64, Index]:
    """Return the numbers of lines of data, and the count on each line that has some. Raises UnreadableFile."""
    # numbers in double precision may have the exponent D
    plain = _MISSING.sub(b",0", data).translate(bytes.maketrans(b",dD", b" eE"))
    try:
        numbers, per_line = read_numbers(plain, "f8")
    except Irregular as error:
        raise UnreadableFile(f"{what} has {quote(error.word)}, which is not a number; export it again") from None
    if not np.isfinite(numbers).all():
        raise UnreadableFile(f"{what} has infinite or NaN numbers; export it again")
    return numbers, per_line[per_line > 0]


def _read_nodes(block: _Block) -> tuple[Index, Float64]:
    """Return the numbers of nodes, and their positions. Raises UnreadableFile."""
    numbers, per_line = _numbers(block.data, "*NODE")
    start = np.cumsum(per_line) - per_line
    points = np.zeros((len(per_line), 3))
    for axis in range(3):
        has_axis = per_line > axis + 1
        points[has_axis, axis] = numbers[start[has_axis] + axis + 1]
    system = block.parameters.get("SYSTEM", "R")[:1]
    if system in ("C", "S"):
        radius, angle = points[:, 0], np.radians(points[:, 1])
        height = np.radians(points[:, 2]) if system == "S" else points[:, 2]
        across, up = (radius * np.cos(height), radius * np.sin(height)) if system == "S" else (radius, height)
        points = np.stack([across * np.cos(angle), across * np.sin(angle), up], axis=1)
    return numbers[start].astype(np.int64), points


def _read_system(data: bytes) -> Float64:
    """Return the matrix of a local system: its origin, a point on its X axis, and one in its XY plane."""
    values, _ = _numbers(data, "*SYSTEM")
    matrix = np.eye(4)
    if len(values) == 0:
        return matrix
    origin, first, second = np.concatenate([values, np.zeros(9)])[:9].reshape(3, 3)
    matrix[:3, 3] = origin
    if len(values) > 3:
        x = first - origin
        # without a third point, the X axis stays in the XY plane
        z = np.cross(x, second - origin) if len(values) > 6 else np.array([0.0, 0.0, 1.0])
        lengths = np.linalg.norm(x), np.linalg.norm(z)
        if min(lengths) == 0:
            raise UnreadableFile("the points of a *SYSTEM are on one line; correct them in the file")
        x, z = x / lengths[0], z / lengths[1]
        matrix[:3, :3] = np.stack([x, np.cross(z, x), z], axis=1)
    return matrix


def _read_placement(data: bytes) -> Float64:
    """Return the matrix of an instance: a translation, then a rotation about an axis through two points."""
    values, per_line = _numbers(data, "*INSTANCE")
    matrix = np.eye(4)
    move = values[: per_line[0]] if len(per_line) else values
    matrix[: len(move[:3]), 3] = move[:3]
    if len(per_line) < 2:
        return matrix
    turn = values[per_line[0] : per_line[0] + per_line[1]]
    axis = turn[3:6] - turn[:3] if len(turn) == 7 else np.zeros(3)
    length = float(np.linalg.norm(axis))
    if length == 0:
        raise UnreadableFile("the rotation of an *INSTANCE needs two points and an angle; correct it in the file")
    x, y, z = axis / length
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    angle = np.radians(turn[6])
    rotation = np.eye(4)
    rotation[:3, :3] += np.sin(angle) * cross + (1 - np.cos(angle)) * (cross @ cross)
    rotation[:3, 3] = turn[:3] - rotation[:3, :3] @ turn[:3]
    return rotation @ matrix


def _index_cells(part: _Part) -> tuple[Float64, list[tuple[str, Index]]]:
    """Return the points of a part, and its cells by indices of points. Raises UnreadableFile."""
    points = np.concatenate([np.empty((0, 3)), *part.points])
    numbers = np.concatenate([np.empty(0, np.int64), *part.numbers])
    # the last of several nodes with the same number counts
    distinct, last = np.unique(numbers[::-1], return_index=True)
    cells = []
    for kind, rows in part.cells:
        position = np.minimum(np.searchsorted(distinct, rows), len(distinct) - 1)
        if len(rows) and (len(distinct) == 0 or (distinct[position] != rows).any()):
            raise UnreadableFile("an element refers to a node that its part does not have; export the file again")
        cells.append((kind, len(numbers) - 1 - last[position]))
    return points, cells
