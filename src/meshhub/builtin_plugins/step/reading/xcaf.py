"""Contents of an XCAF document: products, their placements, names and colors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from meshhub.errors import ModelTooComplex
from meshhub.model.scene import Color, Float64
from meshhub.toolkit.colors import encode_srgb
from meshhub.toolkit.names import single_line
from meshhub.toolkit.opencascade import explore

MAX_PLACEMENTS = 200_000
"""Instances of products and assemblies; nested assemblies multiply and would exhaust the memory."""
MAX_DEPTH = 256
"""Levels of nested assemblies; bounds the paths of the parts."""
_MAX_NAME_LENGTH = 250
"""Characters; bounds the names in the scene and in the files written from it."""
_GENERIC_NAME = re.compile(r"=>\[[\d:]*\]|\*?(?:NAUO|DIT)?[\d#:_.-]*")
"""Generated instance names: the label, number or entity of the instance."""


@dataclass(frozen=True, eq=False)
class PlacedProduct:
    """An instance of a product.

    product:         key of the product
    matrix:          (4, 4) from the product's frame to the document's, millimeters
    name:            name of the instance
    path:            names of the assemblies above, outermost first
    own_color:       color of this instance
    inherited_color: color of the nearest assembly above that has one
    """

    product: str
    matrix: Float64
    name: str
    path: tuple[str, ...]
    own_color: Color | None
    inherited_color: Color | None


@dataclass(frozen=True, eq=False)
class XcafProduct:
    """A product that is not an assembly.

    name:  name of the product
    label: its label in the document
    color: its color
    shape: its shape in the kernel, in its frame, without hidden bodies
    """

    name: str
    label: Any
    color: Color | None
    shape: Any


@dataclass(frozen=True, eq=False)
class Contents:
    """Products of a document.

    products:     products by key
    placements:   their instances in file order
    roots:        names of the roots
    hidden_count: hidden instances, products and bodies, which were left out
    """

    products: dict[str, XcafProduct]
    placements: list[PlacedProduct]
    roots: list[str]
    hidden_count: int

    def face_count(self) -> int:
        """Return the faces of all products."""
        from OCP.TopAbs import TopAbs_FACE

        shapes = [product.shape for product in self.products.values()]
        return sum(1 for shape in shapes if not is_null(shape) for _ in explore(shape, TopAbs_FACE))


def collect_products(document: Any, *, reads_hidden: bool) -> Contents:
    """Return the products of a document and their placements.

    Args:
        document: XCAF document.
        reads_hidden: Whether hidden instances, products and bodies are read, too.
    Raises:
        ModelTooComplex: The assemblies have more than MAX_PLACEMENTS instances or MAX_DEPTH levels.
    """
    from OCP.XCAFDoc import XCAFDoc_DocumentTool

    walk = _AssemblyWalk(None if reads_hidden else _Visibility(document))
    roots = [
        _read_instance(root, walk.visibility)
        for root in _list_labels(XCAFDoc_DocumentTool.ShapeTool_s(document.Main()).GetFreeShapes)
    ]
    for root in roots:
        walk.visit(root)
    return Contents(walk.products, walk.placements, [root.name for root in roots], len(walk.hidden))


@dataclass(frozen=True, eq=False)
class _Instance:
    """A label that places a product or an assembly; read once, however often the assembly above it is used.

    key:       key of the product
    entry:     label that is hidden, if any: its own or that of the product
    is_hidden: whether it is left out
    """

    key: str
    entry: str
    is_hidden: bool
    label: Any
    matrix: Float64
    name: str
    color: Color | None


@dataclass(frozen=True, eq=False)
class _Assembly:
    components: list[_Instance]
    color: Color | None


class _AssemblyWalk:
    """A walk over all assemblies that collects products and placements."""

    def __init__(self, visibility: _Visibility | None) -> None:
        self.products: dict[str, XcafProduct] = {}
        self.placements: list[PlacedProduct] = []
        self.hidden: set[str] = set()
        self.visibility = visibility
        self._assemblies: dict[str, _Assembly] = {}
        self._visits = 0

    def visit(self, root: _Instance) -> None:
        """Collect every placement below a root, in file order."""
        pending: list[tuple[_Instance, Float64, tuple[str, ...], Color | None]] = [(root, np.eye(4), (), None)]
        while pending:
            instance, matrix_above, path, inherited = pending.pop()
            if instance.is_hidden:
                self.hidden.add(instance.entry)
                continue
            self._visits += 1
            if self._visits > MAX_PLACEMENTS or len(path) > MAX_DEPTH:
                raise ModelTooComplex(
                    f"the STEP assembly has more than {MAX_PLACEMENTS} parts or {MAX_DEPTH} levels; export a part of it"
                )
            matrix = matrix_above @ instance.matrix
            assembly = self._read_assembly(instance)
            if assembly is None:
                self.placements.append(
                    PlacedProduct(instance.key, matrix, instance.name, path, instance.color, inherited)
                )
                continue
            color = instance.color or assembly.color or inherited
            path_below = (*path, instance.name)
            pending += [(component, matrix, path_below, color) for component in reversed(assembly.components)]

    def _read_assembly(self, instance: _Instance) -> _Assembly | None:
        """Return the assembly that an instance places, or record its product and return None.

        A product whose bodies are all hidden becomes an assembly without components.
        """
        from OCP.XCAFDoc import XCAFDoc_ShapeTool

        label = instance.label
        if instance.key not in self.products and instance.key not in self._assemblies:
            if XCAFDoc_ShapeTool.IsAssembly_s(label):
                components = _list_labels(lambda sequence: XCAFDoc_ShapeTool.GetComponents_s(label, sequence, False))
                self._assemblies[instance.key] = _Assembly(
                    [_read_instance(component, self.visibility) for component in components], _read_color(label)
                )
            elif (shape := self._read_shape(label)) is None:
                self._assemblies[instance.key] = _Assembly([], None)
            else:
                self.products[instance.key] = XcafProduct(_read_name(label), label, _read_color(label), shape)
        return self._assemblies.get(instance.key)

    def _read_shape(self, label: Any) -> Any:
        """Return the shape of a product without hidden bodies; None if all are hidden."""
        from OCP.XCAFDoc import XCAFDoc_ShapeTool

        shape = XCAFDoc_ShapeTool.GetShape_s(label)
        if self.visibility is None:
            return shape
        labels = _list_labels(lambda sequence: XCAFDoc_ShapeTool.GetSubShapes_s(label, sequence))
        hidden = [part for part in labels if self.visibility.hides(part)]
        if not hidden:
            return shape
        visible, count = _leave_out(shape, [XCAFDoc_ShapeTool.GetShape_s(part) for part in hidden])
        self.hidden |= {f"{_label_entry(label)}/{number}" for number in range(count)}
        return visible


class _Visibility:
    """What a document hides: labels (INVISIBILITY of styled items) and layers."""

    def __init__(self, document: Any) -> None:
        from OCP.XCAFDoc import XCAFDoc_DocumentTool, XCAFDoc_LayerTool

        layers = XCAFDoc_DocumentTool.LayerTool_s(document.Main())
        members: dict[bool, set[str]] = {False: set(), True: set()}
        for layer in _list_labels(layers.GetLayerLabels):
            labels = _list_labels(partial(XCAFDoc_LayerTool.GetShapesOfLayer_s, layer))
            members[layers.IsVisible(layer)] |= {_label_entry(label) for label in labels}
        self._on_hidden_layers = members[False] - members[True]

    def hides(self, label: Any) -> bool:
        """Return whether a label, or each of its layers, is hidden."""
        from OCP.XCAFDoc import XCAFDoc_ColorTool

        return not XCAFDoc_ColorTool.IsVisible_s(label) or _label_entry(label) in self._on_hidden_layers


def _leave_out(shape: Any, hidden: list[Any]) -> tuple[Any, int]:
    """Return a shape without hidden bodies, and their number.

    Bodies are solids, and faces outside solids. A solid is hidden if all of its faces are. A single hidden face of a
    solid stays, because the solid would be open.

    Args:
        shape: Shape of a product.
        hidden: Shapes within it that are hidden.
    Returns:
        Compound of the other bodies, None without any; number of hidden solids and faces outside solids.
    """
    from OCP.BRep import BRep_Builder
    from OCP.collections import IndexedMap_TopoDS_Shape_TopTools_ShapeMapHasher
    from OCP.TopAbs import TopAbs_FACE, TopAbs_SOLID
    from OCP.TopExp import TopExp
    from OCP.TopoDS import TopoDS_Compound

    left_out = IndexedMap_TopoDS_Shape_TopTools_ShapeMapHasher()
    for part in hidden:
        for kind in (TopAbs_SOLID, TopAbs_FACE):
            TopExp.MapShapes_s(part, kind, left_out)
    builder, visible = BRep_Builder(), TopoDS_Compound()
    builder.MakeCompound(visible)
    bodies = [*explore(shape, TopAbs_SOLID), *explore(shape, TopAbs_FACE, TopAbs_SOLID)]
    shown = [
        body
        for body in bodies
        if not left_out.Contains(body) and not all(left_out.Contains(face) for face in explore(body, TopAbs_FACE))
    ]
    for body in shown:
        builder.Add(visible, body)
    return visible if shown else None, len(bodies) - len(shown)


def _read_instance(label: Any, visibility: _Visibility | None) -> _Instance:
    from OCP.TDF import TDF_Label
    from OCP.XCAFDoc import XCAFDoc_ShapeTool

    entry = _label_entry(label)
    is_hidden = visibility is not None and visibility.hides(label)
    if not XCAFDoc_ShapeTool.IsReference_s(label):
        # the shape of a root contains its location
        return _Instance(entry, entry, is_hidden, label, np.eye(4), _read_name(label), None)
    target = TDF_Label()
    XCAFDoc_ShapeTool.GetReferredShape_s(label, target)
    target_entry = _label_entry(target)
    if visibility is not None and visibility.hides(target):
        entry, is_hidden = target_entry, True
    return _Instance(
        target_entry,
        entry,
        is_hidden,
        target,
        location_matrix(XCAFDoc_ShapeTool.GetLocation_s(label)),
        _read_instance_name(label) or _read_name(target),
        _read_color(label),
    )


def is_null(shape: Any) -> bool:
    """Return whether a product has no shape."""
    return shape is None or shape.IsNull()


def iterate_colored_shapes(product: XcafProduct) -> Iterator[tuple[Any, Color]]:
    """Yield the kernel's shapes within a product that have their own color, with this color."""
    from OCP.XCAFDoc import XCAFDoc_ShapeTool

    for part in _list_labels(lambda sequence: XCAFDoc_ShapeTool.GetSubShapes_s(product.label, sequence)):
        color = _read_color(part)
        if color is not None:
            yield XCAFDoc_ShapeTool.GetShape_s(part), color


def _read_color(label: Any) -> Color | None:
    """Return the surface color of a label in sRGB; the kernel stores linear light."""
    from OCP.Quantity import Quantity_ColorRGBA
    from OCP.XCAFDoc import XCAFDoc_ColorGen, XCAFDoc_ColorSurf, XCAFDoc_ColorTool

    rgba = Quantity_ColorRGBA()
    for kind in (XCAFDoc_ColorSurf, XCAFDoc_ColorGen):
        if XCAFDoc_ColorTool.GetColor_s(label, kind, rgba):
            light = rgba.GetRGB()
            encoded = encode_srgb(np.array([light.Red(), light.Green(), light.Blue()]))
            # rounded, because the kernel stores 32-bit numbers
            red, green, blue = (round(float(channel), 6) for channel in encoded)
            return red, green, blue, round(min(max(rgba.Alpha(), 0.0), 1.0), 6)
    return None


def location_matrix(location: Any) -> Float64:
    """Return a location of the kernel as a (4, 4) matrix."""
    matrix = np.eye(4)
    if not location.IsIdentity():
        transformation = location.Transformation()
        matrix[:3] = [[transformation.Value(row, column) for column in range(1, 5)] for row in range(1, 4)]
    return matrix


def _list_labels(fill: Callable[[Any], None]) -> list[Any]:
    """Return the labels that `fill` puts into a sequence of the kernel."""
    from OCP.collections import Sequence_TDF_Label

    sequence = Sequence_TDF_Label()
    fill(sequence)
    return [sequence.Value(number) for number in range(1, sequence.Length() + 1)]


def _label_entry(label: Any) -> str:
    from OCP.TCollection import TCollection_AsciiString
    from OCP.TDF import TDF_Tool

    entry = TCollection_AsciiString()
    TDF_Tool.Entry_s(label, entry)
    text: str = entry.ToCString()
    return text


def _read_instance_name(label: Any) -> str:
    """Return the name of an instance; "" for a generated name."""
    name = _read_name(label)
    return "" if _GENERIC_NAME.fullmatch(name) else name


def _read_name(label: Any) -> str:
    from OCP.TDataStd import TDataStd_Name

    identity = TDataStd_Name.GetID_s()
    # the kernel's attribute is unusable for a label without a name
    if not label.IsAttribute(identity):
        return ""
    attribute = TDataStd_Name()
    label.FindAttribute(identity, attribute)
    try:
        name: str = attribute.Get().ToExtString()
    except UnicodeError:
        return ""
    return single_line(name.encode("utf-8", "replace").decode())[:_MAX_NAME_LENGTH]
