"""Parse a model part into a `ModelDocument`."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np

from meshhub.builtin_plugins.threemf.reading.attribute_parser import AttributeParser
from meshhub.builtin_plugins.threemf.reading.beam_lattice import MAX_BEAMS_COUNT, add_ball, add_beam, start_lattice
from meshhub.builtin_plugins.threemf.reading.element_columns import Columns, PaintCodes, extract_columns
from meshhub.builtin_plugins.threemf.reading.model_document import (
    BALLS,
    BEAM_LATTICE,
    CORE,
    CURA,
    CURA_KEYS,
    MATERIAL,
    MAX_PARTS_COUNT,
    PAINT,
    PRODUCTION,
    SLICE,
    UNITS,
    BaseMaterials,
    ColorGroup,
    CompositeMaterials,
    ModelDocument,
    ModelObject,
    MultiProperties,
    ObjectPlacement,
    PropertyGroup,
    TextureGroup,
    TextureResource,
    TriangleMesh,
)
from meshhub.errors import OTHER_KIND, ModelTooComplex, UnreadableFile, quote
from meshhub.toolkit.safe_xml import Attributes, as_utf8, parse_xml

_MAX_TEXT_CHARACTERS_COUNT = 10_000
"""Maximum characters of a metadata value; descriptions are shorter."""
_MAX_LAYERS_COUNT = 64
"""Maximum layers of multiproperties; each costs a number per property, and exporters write two."""
_MATERIAL_ELEMENTS = frozenset(
    "colorgroup color texture2d texture2dgroup tex2coord compositematerials composite multiproperties multi".split()
)
_VERTEX_INDICES = ("v1", "v2", "v3")
_PROPERTIES = ("pid", "p1", "p2", "p3")
_PLAIN_ATTRIBUTES_COUNT = len(_VERTEX_INDICES)
"""Attributes of a triangle without properties and paint."""

_ROOT = re.compile(rb"<(?:\w+:)?model\b")
_DECLARATION = re.compile(rb"\sxmlns:([\w.-]+)\s*=")
_PREFIX = re.compile(rb"[<\s]([A-Za-z_][\w.-]*):[\w.-]+(?=[\s=/>])")
"""Prefix of the name of an element or attribute; also of words in texts, whose declaration is harmless."""

_NAMESPACES = {b"p": PRODUCTION.encode(), b"m": MATERIAL.encode(), b"s": SLICE.encode(), b"b": BEAM_LATTICE.encode()}
"""Namespaces of the prefixes that the specifications of 3MF use."""


def parse_model(data: bytes, part: str) -> ModelDocument:
    """Parse a model part.

    Args:
        data: XML.
        part: Name of the part, for error messages and relative references.
    Raises:
        UnreadableFile: The part is malformed.
        ModelTooComplex: The part places too many objects.
    """
    data, encoding = as_utf8(data)
    try:
        return _parse_declared(data, part, encoding)
    except UnreadableFile:
        declared = _declare_prefixes(data)
        if declared is None:
            raise
        return _parse_declared(declared, part, encoding)


def _declare_prefixes(data: bytes) -> bytes | None:
    """Declare the prefixes that a model uses without declaring them, as slicers read it; None if there are none.

    Slicers compare names with their prefixes, and some programs write `p:UUID` or `p:path` without the namespace.
    """
    root = _ROOT.search(data)
    if root is None:
        return None
    declared = set(_DECLARATION.findall(data)) | {b"xml", b"xmlns"}
    missing = sorted({match[1] for match in _PREFIX.finditer(data)} - declared)
    if not missing:
        return None
    texts = (b' xmlns:%s="%s"' % (each, _NAMESPACES.get(each, b"undeclared:" + each)) for each in missing)
    return data[: root.end()] + b"".join(texts) + data[root.end() :]


def _parse_declared(data: bytes, part: str, encoding: str | None) -> ModelDocument:
    codes: PaintCodes = {b"": 0}
    skeleton, extracted = extract_columns(data, codes)
    parser = _ModelParser(part, extracted, codes)
    parse_xml(
        skeleton,
        quote(part),
        start=parser.start,
        end=parser.end,
        text=parser.text,
        prefix=parser.prefix,
        encoding=encoding,
    )
    if not parser.has_root:
        raise parser.root_error("missing")
    parser.document.paint_codes = list(codes)
    return parser.document


class _ModelParser:
    """Callbacks that fill a document. The callback of an element returns the function to call at its end, or None."""

    def __init__(self, part: str, extracted: dict[int, Columns], codes: PaintCodes) -> None:
        self.document = ModelDocument(part)
        self.has_root = False
        self._part = part
        self._values = AttributeParser(part)
        self._extracted = extracted
        self._codes = codes
        self._prefixes: dict[str, str] = {}
        self._open: list[Callable[[], None] | None] = []
        self._object: ModelObject | None = None
        self._rows: dict[str, Any] = {}
        self._paint: dict[str, dict[int, int]] = {}
        self._text: list[str] | None = None
        self._text_length = 0
        self._elements: dict[str, Callable[[Attributes, int], Callable[[], None] | None]] = {
            "model": self._start_model,
            "metadata": self._start_metadata,
            "object": self._start_object,
            "vertices": self._start_vertices,
            "vertex": self._start_vertex,
            "triangles": self._start_triangles,
            "triangle": self._start_triangle,
            "component": self._start_component,
            "item": self._start_item,
            "basematerials": self._start_basematerials,
            "base": self._start_base,
            "colorgroup": self._start_colorgroup,
            "color": self._start_color,
            "texture2d": self._start_texture2d,
            "texture2dgroup": self._start_texture2dgroup,
            "tex2coord": self._start_tex2coord,
            "compositematerials": self._start_compositematerials,
            "composite": self._start_composite,
            "multiproperties": self._start_multiproperties,
            "multi": self._start_multi,
        }

    def prefix(self, prefix: str, namespace: str) -> None:
        if not self.has_root:
            self._prefixes[prefix] = namespace

    def start(self, namespace: str, local: str, attributes: Attributes, at: int) -> None:
        if namespace in CORE or (namespace == MATERIAL and local in _MATERIAL_ELEMENTS):
            if not self.has_root and local != "model":
                raise self.root_error(quote(local))
            element = self._elements.get(local)
            self._open.append(element(attributes, at) if element is not None else None)
            return
        if not self.has_root:
            raise self.root_error(quote(local))
        if self._object is not None and namespace in (BEAM_LATTICE, BALLS):
            self._open.append(self._start_lattice_element(self._object, local, attributes))
            return
        if self._object is not None and namespace == CURA:
            self._open.append(self._start_cura_setting(self._object.cura, attributes) if local == "setting" else None)
            return
        if self._object is not None:
            self._object.foreign.add(namespace)
        self._open.append(None)

    def end(self) -> None:
        close = self._open.pop()
        if close is not None:
            close()

    def text(self, text: str) -> None:
        if self._text is not None and self._text_length < _MAX_TEXT_CHARACTERS_COUNT:
            self._text.append(text)
            self._text_length += len(text)

    def root_error(self, root: str) -> UnreadableFile:
        """Return the error for a document of another kind."""
        return UnreadableFile(
            f"{quote(self._part)} is not a 3MF model: its root element is {root}, not 'model'; export it again",
            values=OTHER_KIND,
        )

    # -- structure --

    def _start_model(self, attributes: Attributes, _at: int) -> None:
        if self.has_root:
            raise self._values.error("a <model> contains another <model>")
        self.has_root = True
        unit = attributes.get("unit", "millimeter").strip()
        if unit not in UNITS:
            raise self._values.error(f"unit {quote(unit)} must be one of {', '.join(UNITS)}")
        self.document.unit = UNITS[unit]
        for prefix in attributes.get("requiredextensions", "").split():
            self.document.required[prefix] = self._prefixes.get(prefix, prefix)

    def _start_metadata(self, attributes: Attributes, _at: int) -> Callable[[], None] | None:
        name = attributes.get("name", "")
        if self._object is not None:
            prefix, _, key = name.rpartition(":")
            if self._prefixes.get(prefix) == CURA:
                name = f"cura:{key}"
            return self._collect_text(self._object.cura, name) if name in CURA_KEYS else None
        return self._collect_text(self.document.metadata, name) if len(self._open) == 1 and name else None

    def _start_cura_setting(self, cura: dict[str, str], attributes: Attributes) -> Callable[[], None] | None:
        """Read a setting of an object as Cura wrote it before 3MF had metadata of objects."""
        name = f"cura:{attributes.get('key', '')}"
        return self._collect_text(cura, name) if name in CURA_KEYS else None

    def _collect_text(self, metadata: dict[str, str], name: str) -> Callable[[], None]:
        """Collect the text of an element; the function to call at its end adds it to the metadata."""
        pieces: list[str] = []
        self._text, self._text_length = pieces, 0

        def close() -> None:
            self._text = None
            metadata.setdefault(name, "".join(pieces).strip()[:_MAX_TEXT_CHARACTERS_COUNT])

        return close

    def _start_object(self, attributes: Attributes, _at: int) -> Callable[[], None]:
        if self._object is not None:
            raise self._values.error("an <object> contains another <object>")
        model_object = ModelObject(
            self._values.integer(attributes, "id", "object"),
            kind=attributes.get("type", "model").strip() or "model",
            name=attributes.get("name", "") or attributes.get("partnumber", ""),
            group=self._values.integer(attributes, "pid", "object") if "pid" in attributes else None,
            index=self._values.integer(attributes, "pindex", "object") if "pindex" in attributes else 0,
            has_slices=f"{SLICE} slicestackid" in attributes,
            is_low_resolution=attributes.get(f"{SLICE} meshresolution") == "lowres",
        )
        if model_object.id in self.document.objects:
            raise self._values.error(f"two objects have the id {model_object.id}")
        self._object = model_object

        def close() -> None:
            self.document.objects[model_object.id] = model_object
            self._object = None

        return close

    def _start_component(self, attributes: Attributes, _at: int) -> None:
        if self._object is not None:
            self._object.components.append(self._parse_placement(attributes, "component"))

    def _start_item(self, attributes: Attributes, _at: int) -> None:
        if len(self.document.items) >= MAX_PARTS_COUNT:
            raise ModelTooComplex(
                f"{quote(self._part)} places more than {MAX_PARTS_COUNT} objects; merge some",
                values={"limit": MAX_PARTS_COUNT},
            )
        self.document.items.append(self._parse_placement(attributes, "item"))

    def _parse_placement(self, attributes: Attributes, element: str) -> ObjectPlacement:
        return ObjectPlacement(
            self._values.integer(attributes, "objectid", element),
            attributes.get(f"{PRODUCTION} path"),
            self._values.matrix(attributes.get("transform"), element),
            name=attributes.get("partnumber", ""),
            is_printable=attributes.get("printable", "1").strip().lower() not in ("0", "false"),
        )

    # -- meshes; long ones are extracted before the XML parser runs --

    def _get_mesh(self) -> TriangleMesh | None:
        """Return the mesh of the open object; None outside objects."""
        if self._object is None:
            return None
        if self._object.mesh is None:
            self._object.mesh = TriangleMesh(np.empty((0, 3)), np.empty((0, 3), np.int32))
        return self._object.mesh

    def _start_vertices(self, _attributes: Attributes, at: int) -> Callable[[], None] | None:
        mesh = self._get_mesh()
        if mesh is None:
            return None
        columns = self._extracted.pop(at, None)
        if columns is not None:
            mesh.vertices = np.stack([columns["x"], columns["y"], columns["z"]], axis=1)
            return None
        self._rows["vertex"] = array("d")

        def close() -> None:
            mesh.vertices = np.array(self._rows.pop("vertex", array("d")), np.float64).reshape(-1, 3)

        return close

    def _start_vertex(self, attributes: Attributes, _at: int) -> None:
        rows = self._rows.get("vertex")
        if rows is not None:
            rows.extend([self._values.number(attributes, name, "vertex") for name in "xyz"])

    def _start_triangles(self, _attributes: Attributes, at: int) -> Callable[[], None] | None:
        mesh = self._get_mesh()
        if mesh is None:
            return None
        columns = self._extracted.pop(at, None)
        if columns is not None:
            _set_triangles(mesh, columns)
            return None
        self._rows["triangle"] = array("q")
        self._paint.clear()

        def close() -> None:
            table = np.array(self._rows.pop("triangle", array("q")), np.int64).reshape(-1, 7)
            columns: Columns = {name: table[:, k] for k, name in enumerate((*_VERTEX_INDICES, *_PROPERTIES))}
            for name, codes in self._paint.items():
                columns[name] = np.zeros(len(table), np.int32)
                columns[name][list(codes)] = list(codes.values())
            self._paint.clear()
            _set_triangles(mesh, columns)

        return close

    def _start_triangle(self, attributes: Attributes, _at: int) -> None:
        rows = self._rows.get("triangle")
        if rows is not None:
            rows.extend([self._values.integer(attributes, name, "triangle") for name in _VERTEX_INDICES])
            for name in _PROPERTIES:
                rows.append(self._values.integer(attributes, name, "triangle") if name in attributes else -1)
            if len(attributes) > _PLAIN_ATTRIBUTES_COUNT:
                self._record_paint(attributes, len(rows) // 7 - 1)

    def _record_paint(self, attributes: Attributes, row: int) -> None:
        """Record the paint of a triangle, by attribute."""
        for name, value in attributes.items():
            local = name.rpartition(" ")[2]
            if value and local in PAINT:
                self._paint.setdefault(local, {})[row] = self._codes.setdefault(value.encode(), len(self._codes))

    # -- beam lattices --

    def _start_lattice_element(
        self, model_object: ModelObject, local: str, attributes: Attributes
    ) -> Callable[[], None] | None:
        lattice = model_object.lattice
        if local == "beamlattice":
            lattice = model_object.lattice = start_lattice(attributes, self._values)
            return lambda: _drop_large_lattice(model_object)
        if lattice is not None and lattice.count <= MAX_BEAMS_COUNT:
            if local == "beam":
                add_beam(lattice, attributes, self._values)
            elif local == "ball":
                add_ball(lattice, attributes, self._values)
        return None

    # -- properties --

    def _add_group(self, group: PropertyGroup, attributes: Attributes, element: str) -> None:
        self.document.groups.setdefault(self._values.integer(attributes, "id", element), group)

    def _start_basematerials(self, attributes: Attributes, _at: int) -> Callable[[], None]:
        rows: list[tuple[str, str]] = []
        self._rows["base"] = rows

        def close() -> None:
            colors = self._values.colors([color for _, color in rows])
            self._add_group(BaseMaterials(tuple(name for name, _ in rows), colors), attributes, "basematerials")
            self._rows.pop("base", None)

        return close

    def _start_base(self, attributes: Attributes, _at: int) -> None:
        self._append("base", (attributes.get("name", ""), attributes.get("displaycolor", "#FFFFFF")))

    def _start_colorgroup(self, attributes: Attributes, at: int) -> Callable[[], None] | None:
        columns = self._extracted.pop(at, None)
        if columns is not None:
            self._add_group(ColorGroup(columns["rgba"]), attributes, "colorgroup")
            return None
        rows: list[str] = []
        self._rows["color"] = rows

        def close() -> None:
            self._add_group(ColorGroup(self._values.colors(rows)), attributes, "colorgroup")
            self._rows.pop("color", None)

        return close

    def _start_color(self, attributes: Attributes, _at: int) -> None:
        self._append("color", attributes.get("color", "#FFFFFF"))

    def _start_texture2d(self, attributes: Attributes, _at: int) -> None:
        tile_styles = (attributes.get("tilestyleu", "wrap"), attributes.get("tilestylev", "wrap"))
        texture = TextureResource(attributes.get("path", ""), tile_styles, attributes.get("filter", "auto"))
        self.document.textures.setdefault(self._values.integer(attributes, "id", "texture2d"), texture)

    def _start_texture2dgroup(self, attributes: Attributes, at: int) -> Callable[[], None] | None:
        texture = self._values.integer(attributes, "texid", "texture2dgroup")
        columns = self._extracted.pop(at, None)
        if columns is not None:
            uv = np.stack([columns["u"], columns["v"]], axis=1)
            self._add_group(TextureGroup(texture, uv), attributes, "texture2dgroup")
            return None
        rows = array("d")
        self._rows["uv"] = rows

        def close() -> None:
            uv = np.array(rows, np.float64).reshape(-1, 2)
            self._add_group(TextureGroup(texture, uv), attributes, "texture2dgroup")
            self._rows.pop("uv", None)

        return close

    def _start_tex2coord(self, attributes: Attributes, _at: int) -> None:
        rows = self._rows.get("uv")
        if rows is not None:
            rows.extend([self._values.number(attributes, name, "tex2coord") for name in "uv"])

    def _start_compositematerials(self, attributes: Attributes, _at: int) -> Callable[[], None]:
        rows: list[tuple[float, ...]] = []
        self._rows["composite"] = rows
        base = self._values.integer(attributes, "matid", "compositematerials")
        members = tuple(self._values.integers(attributes.get("matindices", ""), "compositematerials"))

        def close() -> None:
            self._add_group(CompositeMaterials(base, members, tuple(rows)), attributes, "compositematerials")
            self._rows.pop("composite", None)

        return close

    def _start_composite(self, attributes: Attributes, _at: int) -> None:
        self._append("composite", tuple(self._values.numbers(attributes.get("values", ""), "composite")))

    def _start_multiproperties(self, attributes: Attributes, _at: int) -> Callable[[], None]:
        groups = tuple(self._values.integers(attributes.get("pids", ""), "multiproperties"))
        if len(groups) > _MAX_LAYERS_COUNT:
            raise self._values.error(f"<multiproperties> has more than {_MAX_LAYERS_COUNT} layers")
        rows = array("q")
        self._rows["multi"] = (len(groups), rows)

        def close() -> None:
            indices = np.array(rows, np.int64).reshape(-1, max(len(groups), 1))
            blends = tuple(attributes.get("blendmethods", "").split())
            self._add_group(MultiProperties(groups, blends, indices), attributes, "multiproperties")
            self._rows.pop("multi", None)

        return close

    def _start_multi(self, attributes: Attributes, _at: int) -> None:
        entry = self._rows.get("multi")
        if entry is not None:
            layers, rows = entry
            indices = self._values.integers(attributes.get("pindices", ""), "multi")[:layers]
            rows.extend([*indices, *[0] * (layers - len(indices))])  # materials §5.1: missing indices are 0

    def _append(self, element: str, row: Any) -> None:
        """Add a row of an element; elements outside their container are ignored."""
        rows = self._rows.get(element)
        if rows is not None:
            rows.append(row)


def _drop_large_lattice(model_object: ModelObject) -> None:
    """Leave out a lattice without beams, or with so many that it counts as geometry that is not read."""
    lattice = model_object.lattice
    if lattice is not None and not 0 < lattice.count <= MAX_BEAMS_COUNT:
        model_object.lattice = None
        if lattice.count:
            model_object.foreign.add(BEAM_LATTICE)


def _set_triangles(mesh: TriangleMesh, columns: Columns) -> None:
    """Set the triangles of a mesh with their properties and paint."""
    mesh.triangles = np.stack([columns[name] for name in _VERTEX_INDICES], axis=1)
    mesh.group, mesh.index, mesh.paint = None, None, {}
    for name, kind in PAINT.items():
        if name in columns:
            codes = np.maximum(columns[name], 0)
            mesh.paint[kind] = np.where(codes > 0, codes, mesh.paint.get(kind, 0)).astype(np.int32)
    if "pid" not in columns and "p1" not in columns:
        return
    absent = np.full(len(mesh.triangles), -1, np.int32)
    group, p1, p2, p3 = (columns.get(name, absent) for name in _PROPERTIES)
    index = np.stack([p1, np.where(p2 < 0, p1, p2), np.where(p3 < 0, p1, p3)], axis=1)
    if (p1 >= 0).any() or (group >= 0).any():
        mesh.group, mesh.index = group, index
