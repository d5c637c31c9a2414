"""From the text of a model part to a `Document`."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import numpy as np

from meshhub.builtin_plugins.threemf.reading.document import (
    CORE,
    CURA,
    MATERIAL,
    MOST_PARTS,
    PAINT,
    PRODUCTION,
    SLICE,
    UNITS,
    Base,
    Colors,
    Component,
    Composite,
    Document,
    Multi,
    Object,
    Texture,
    TextureGroup,
    Triangles,
)
from meshhub.builtin_plugins.threemf.reading.markup import Attributes, as_utf8, parse
from meshhub.builtin_plugins.threemf.reading.tables import Columns, lift
from meshhub.builtin_plugins.threemf.reading.values import Values
from meshhub.errors import ModelTooComplex, UnreadableFile

_LONGEST_TEXT = 10_000
_MATERIAL_ELEMENTS = frozenset(
    "colorgroup color texture2d texture2dgroup tex2coord compositematerials composite multiproperties multi".split()
)
_TRIANGLE = ("pid", "p1", "p2", "p3")
_PLAIN_COUNT = 3
"""Attributes of a triangle that has its vertices and nothing else."""


def read_model(data: bytes, part: str) -> Document:
    """Read a model part. Raises UnreadableFile, ModelTooComplex."""
    data, encoding = as_utf8(data)
    skeleton, lifted = lift(data)
    builder = _Builder(part, lifted)
    parse(
        skeleton,
        f"{part!r}",
        start=builder.start,
        end=builder.end,
        text=builder.text,
        prefix=builder.prefix,
        encoding=encoding,
    )
    if not builder.rooted:
        raise UnreadableFile(f"{part!r} is no 3MF model: its first element is not 'model'")
    return builder.document


class _Builder:
    """Takes the elements as they come, and puts what they say where it belongs."""

    def __init__(self, part: str, lifted: dict[int, Columns]) -> None:
        self.document = Document(part)
        self.rooted = False
        self._part = part
        self._values = Values(part)
        self._lifted = lifted
        self._prefixes: dict[str, str] = {}
        self._open: list[Callable[[], None] | None] = []
        self._object: Object | None = None
        self._rows: dict[str, Any] = {}
        self._painted: dict[str, list[int]] = {}
        self._said: list[str] | None = None
        self._said_letters = 0
        self._elements: dict[str, Callable[[Attributes, int], Callable[[], None] | None]] = {
            "model": self._model,
            "metadata": self._metadata,
            "object": self._object_,
            "vertices": self._vertices,
            "vertex": self._vertex,
            "triangles": self._triangles,
            "triangle": self._triangle,
            "component": self._component,
            "item": self._item,
            "basematerials": self._basematerials,
            "base": self._base,
            "colorgroup": self._colorgroup,
            "color": self._color,
            "texture2d": self._texture2d,
            "texture2dgroup": self._texture2dgroup,
            "tex2coord": self._tex2coord,
            "compositematerials": self._compositematerials,
            "composite": self._composite,
            "multiproperties": self._multiproperties,
            "multi": self._multi,
        }

    def prefix(self, prefix: str, namespace: str) -> None:
        if not self.rooted:
            self._prefixes[prefix] = namespace

    def start(self, namespace: str, local: str, attributes: Attributes, at: int) -> None:
        if namespace in CORE or (namespace == MATERIAL and local in _MATERIAL_ELEMENTS):
            if not self.rooted and local != "model":
                raise UnreadableFile(f"{self._part!r} is no 3MF model: its first element is {local[:40]!r}")
            element = self._elements.get(local)
            self._open.append(element(attributes, at) if element is not None else None)
            return
        if not self.rooted:
            raise UnreadableFile(f"{self._part!r} is no 3MF model: its first element is {local[:40]!r}")
        if self._object is not None:
            self._object.foreign.add(namespace)
        self._open.append(None)

    def end(self) -> None:
        closing = self._open.pop()
        if closing is not None:
            closing()

    def text(self, text: str) -> None:
        if self._said is not None and self._said_letters < _LONGEST_TEXT:
            self._said.append(text)
            self._said_letters += len(text)

    # -- the model --

    def _model(self, attributes: Attributes, _at: int) -> None:
        if self.rooted:
            raise UnreadableFile(f"{self._part!r} holds a model in a model; export it again")
        self.rooted = True
        unit = attributes.get("unit", "millimeter").strip()
        if unit not in UNITS:
            raise UnreadableFile(f"{self._part!r} is in the unit {unit[:40]!r}, which 3MF does not have")
        self.document.unit = UNITS[unit]
        for prefix in attributes.get("requiredextensions", "").split():
            self.document.required[prefix] = self._prefixes.get(prefix, prefix)

    def _metadata(self, attributes: Attributes, _at: int) -> Callable[[], None] | None:
        name = attributes.get("name", "")
        if self._object is not None:
            held = self._object.cura if name in CURA else None
        else:
            held = self.document.metadata if len(self._open) == 1 and name else None
        if held is None:
            return None
        said: list[str] = []
        self._said, self._said_letters = said, 0

        def close() -> None:
            self._said = None
            held.setdefault(name, "".join(said).strip()[:_LONGEST_TEXT])

        return close

    def _object_(self, attributes: Attributes, _at: int) -> Callable[[], None]:
        if self._object is not None:
            raise self._values.wrong("an object lies in an object")
        made = Object(
            self._values.integer(attributes, "id", "object"),
            kind=attributes.get("type", "model").strip() or "model",
            name=attributes.get("name", "") or attributes.get("partnumber", ""),
            group=self._values.integer(attributes, "pid", "object") if "pid" in attributes else None,
            index=self._values.integer(attributes, "pindex", "object") if "pindex" in attributes else 0,
            coarse=attributes.get(f"{SLICE} meshresolution") == "lowres",
        )
        if made.id in self.document.objects:
            raise self._values.wrong(f"two objects have the id {made.id}")
        self._object = made

        def close() -> None:
            self.document.objects[made.id] = made
            self._object = None

        return close

    def _component(self, attributes: Attributes, _at: int) -> None:
        if self._object is not None:
            self._object.components.append(self._placed(attributes, "component"))

    def _item(self, attributes: Attributes, _at: int) -> None:
        if len(self.document.items) >= MOST_PARTS:
            raise ModelTooComplex(f"{self._part!r} places more than {MOST_PARTS} objects; merge some")
        self.document.items.append(self._placed(attributes, "item"))

    def _placed(self, attributes: Attributes, what: str) -> Component:
        return Component(
            self._values.integer(attributes, "objectid", what),
            attributes.get(f"{PRODUCTION} path"),
            self._values.matrix(attributes.get("transform"), what),
            name=attributes.get("partnumber", ""),
            printable=attributes.get("printable", "1").strip().lower() not in ("0", "false"),
        )

    # -- meshes, when they are not lifted --

    def _mesh(self) -> Triangles | None:
        if self._object is None:
            return None
        if self._object.mesh is None:
            self._object.mesh = Triangles(np.empty((0, 3)), np.empty((0, 3), np.int32))
        return self._object.mesh

    def _vertices(self, _attributes: Attributes, at: int) -> Callable[[], None] | None:
        mesh = self._mesh()
        if mesh is None:
            return None
        columns = self._lifted.pop(at, None)
        if columns is not None:
            mesh.vertices = np.stack([columns["x"], columns["y"], columns["z"]], axis=1)
            return None
        self._rows["vertex"] = array("d")

        def close() -> None:
            mesh.vertices = np.array(self._rows.pop("vertex", array("d")), np.float64).reshape(-1, 3)

        return close

    def _vertex(self, attributes: Attributes, _at: int) -> None:
        rows = self._rows.get("vertex")
        if rows is not None:
            rows.extend([self._values.number(attributes, name, "vertex") for name in "xyz"])

    def _triangles(self, _attributes: Attributes, at: int) -> Callable[[], None] | None:
        mesh = self._mesh()
        if mesh is None:
            return None
        columns = self._lifted.pop(at, None)
        if columns is not None:
            _put_triangles(mesh, columns)
            return None
        self._rows["triangle"] = array("q")
        self._painted.clear()

        def close() -> None:
            table = np.array(self._rows.pop("triangle", array("q")), np.int64).reshape(-1, 7)
            columns: Columns = {name: table[:, k] for k, name in enumerate(("v1", "v2", "v3", *_TRIANGLE))}
            for name, rows in self._painted.items():
                columns[name] = np.zeros(len(table), np.int32)
                columns[name][rows] = 1
            self._painted.clear()
            _put_triangles(mesh, columns)

        return close

    def _triangle(self, attributes: Attributes, _at: int) -> None:
        rows = self._rows.get("triangle")
        if rows is not None:
            rows.extend([self._values.integer(attributes, name, "triangle") for name in ("v1", "v2", "v3")])
            rows.extend([self._values.integer(attributes, n, "triangle") if n in attributes else -1 for n in _TRIANGLE])
            if len(attributes) > _PLAIN_COUNT:
                self._note_paint(attributes, len(rows) // 7 - 1)

    def _note_paint(self, attributes: Attributes, row: int) -> None:
        """Record by attribute which triangle a slicer has painted."""
        for name, value in attributes.items():
            local = name.rpartition(" ")[2]
            if value and local in PAINT:
                self._painted.setdefault(local, []).append(row)

    # -- properties --

    def _group(self, made: Any, attributes: Attributes, what: str) -> None:
        self.document.groups.setdefault(self._values.integer(attributes, "id", what), made)

    def _basematerials(self, attributes: Attributes, _at: int) -> Callable[[], None]:
        rows: list[tuple[str, str]] = []
        self._rows["base"] = rows

        def close() -> None:
            colors = self._values.colors([color for _, color in rows])
            self._group(Base(tuple(name for name, _ in rows), colors), attributes, "basematerials")
            self._rows.pop("base", None)

        return close

    def _base(self, attributes: Attributes, _at: int) -> None:
        self._append("base", (attributes.get("name", ""), attributes.get("displaycolor", "#FFFFFF")))

    def _colorgroup(self, attributes: Attributes, at: int) -> Callable[[], None] | None:
        columns = self._lifted.pop(at, None)
        if columns is not None:
            self._group(Colors(columns["rgba"]), attributes, "colorgroup")
            return None
        rows: list[str] = []
        self._rows["color"] = rows

        def close() -> None:
            self._group(Colors(self._values.colors(rows)), attributes, "colorgroup")
            self._rows.pop("color", None)

        return close

    def _color(self, attributes: Attributes, _at: int) -> None:
        self._append("color", attributes.get("color", "#FFFFFF"))

    def _texture2d(self, attributes: Attributes, _at: int) -> None:
        tiles = (attributes.get("tilestyleu", "wrap"), attributes.get("tilestylev", "wrap"))
        texture = Texture(attributes.get("path", ""), tiles, attributes.get("filter", "auto"))
        self.document.textures.setdefault(self._values.integer(attributes, "id", "texture2d"), texture)

    def _texture2dgroup(self, attributes: Attributes, at: int) -> Callable[[], None] | None:
        texture = self._values.integer(attributes, "texid", "texture2dgroup")
        columns = self._lifted.pop(at, None)
        if columns is not None:
            uv = np.stack([columns["u"], columns["v"]], axis=1)
            self._group(TextureGroup(texture, uv), attributes, "texture2dgroup")
            return None
        rows = array("d")
        self._rows["uv"] = rows

        def close() -> None:
            uv = np.array(rows, np.float64).reshape(-1, 2)
            self._group(TextureGroup(texture, uv), attributes, "texture2dgroup")
            self._rows.pop("uv", None)

        return close

    def _tex2coord(self, attributes: Attributes, _at: int) -> None:
        rows = self._rows.get("uv")
        if rows is not None:
            rows.extend([self._values.number(attributes, name, "tex2coord") for name in "uv"])

    def _compositematerials(self, attributes: Attributes, _at: int) -> Callable[[], None]:
        rows: list[tuple[float, ...]] = []
        self._rows["composite"] = rows
        base = self._values.integer(attributes, "matid", "compositematerials")
        members = tuple(self._values.integers(attributes.get("matindices", ""), "compositematerials"))

        def close() -> None:
            self._group(Composite(base, members, tuple(rows)), attributes, "compositematerials")
            self._rows.pop("composite", None)

        return close

    def _composite(self, attributes: Attributes, _at: int) -> None:
        self._append("composite", tuple(self._values.numbers(attributes.get("values", ""), "composite")))

    def _multiproperties(self, attributes: Attributes, _at: int) -> Callable[[], None]:
        groups = tuple(self._values.integers(attributes.get("pids", ""), "multiproperties"))
        if len(groups) > 64:
            raise self._values.wrong("multiproperties name more than 64 layers")
        rows = array("q")
        self._rows["multi"] = (len(groups), rows)

        def close() -> None:
            indices = np.array(rows, np.int64).reshape(-1, max(len(groups), 1))
            blends = tuple(attributes.get("blendmethods", "").split())
            self._group(Multi(groups, blends, indices), attributes, "multiproperties")
            self._rows.pop("multi", None)

        return close

    def _multi(self, attributes: Attributes, _at: int) -> None:
        held = self._rows.get("multi")
        if held is not None:
            layers, rows = held
            given = self._values.integers(attributes.get("pindices", ""), "multi")[:layers]
            rows.extend([*given, *[0] * (layers - len(given))])  # materials §5.1: what is not given is 0

    def _append(self, kind: str, row: Any) -> None:
        rows = self._rows.get(kind)
        if rows is not None:
            rows.append(row)


def _put_triangles(mesh: Triangles, columns: Columns) -> None:
    mesh.triangles = np.stack([columns[name] for name in ("v1", "v2", "v3")], axis=1)
    mesh.group, mesh.index, mesh.paint = None, None, {}
    for name, kind in PAINT.items():
        if name in columns:
            mesh.paint[kind] = mesh.paint.get(kind, np.False_) | (columns[name] > 0)
    if "pid" not in columns and "p1" not in columns:
        return
    absent = np.full(len(mesh.triangles), -1, np.int32)
    group, p1, p2, p3 = (columns.get(name, absent) for name in _TRIANGLE)
    index = np.stack([p1, np.where(p2 < 0, p1, p2), np.where(p3 < 0, p1, p3)], axis=1)
    if (p1 >= 0).any() or (group >= 0).any():
        mesh.group, mesh.index = group, index
