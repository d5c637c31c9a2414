"""Contents of an XCAF document: products, their placements, names and colors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from meshhub.errors import ModelTooComplex
from meshhub.model.scene import Color, Float64
from meshhub.toolkit.colors import encode_srgb

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
    """A product that is not an assembly: its name, its label in the document, its color."""

    name: str
    label: Any
    color: Color | None


def collect_products(document: Any) -> tuple[dict[str, XcafProduct], list[PlacedProduct], list[str]]:
    """Return the products of a document by key, their placements in file order, and the names of the roots.

    Raises:
        ModelTooComplex: The assemblies have more than MAX_PLACEMENTS instances or MAX_DEPTH levels.
    """
    from OCP.XCAFDoc import XCAFDoc_DocumentTool

    walk = _AssemblyWalk()
    roots = [
        _read_instance(root) for root in _list_labels(XCAFDoc_DocumentTool.ShapeTool_s(document.Main()).GetFreeShapes)
    ]
    for root in roots:
        walk.visit(root)
    return walk.products, walk.placements, [root.name for root in roots]


@dataclass(frozen=True, eq=False)
class _Instance:
    """A label that places a product or an assembly; read once, however often the assembly above it is used."""

    key: str
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

    def __init__(self) -> None:
        self.products: dict[str, XcafProduct] = {}
        self.placements: list[PlacedProduct] = []
        self._assemblies: dict[str, _Assembly] = {}
        self._visits = 0

    def visit(self, root: _Instance) -> None:
        """Collect every placement below a root, in file order."""
        pending: list[tuple[_Instance, Float64, tuple[str, ...], Color | None]] = [(root, np.eye(4), (), None)]
        while pending:
            instance, matrix_above, path, inherited = pending.pop()
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
        """Return the assembly that an instance places, or record its product and return None."""
        from OCP.XCAFDoc import XCAFDoc_ShapeTool

        label = instance.label
        if instance.key not in self.products and instance.key not in self._assemblies:
            if XCAFDoc_ShapeTool.IsAssembly_s(label):
                components = _list_labels(lambda sequence: XCAFDoc_ShapeTool.GetComponents_s(label, sequence, False))
                self._assemblies[instance.key] = _Assembly(
                    [_read_instance(component) for component in components], _read_color(label)
                )
            else:
                self.products[instance.key] = XcafProduct(_read_name(label), label, _read_color(label))
        return self._assemblies.get(instance.key)


def _read_instance(label: Any) -> _Instance:
    from OCP.TDF import TDF_Label
    from OCP.XCAFDoc import XCAFDoc_ShapeTool

    if not XCAFDoc_ShapeTool.IsReference_s(label):
        # the shape of a root contains its location
        return _Instance(_label_entry(label), label, np.eye(4), _read_name(label), None)
    target = TDF_Label()
    XCAFDoc_ShapeTool.GetReferredShape_s(label, target)
    return _Instance(
        _label_entry(target),
        target,
        location_matrix(XCAFDoc_ShapeTool.GetLocation_s(label)),
        _read_instance_name(label) or _read_name(target),
        _read_color(label),
    )


def product_shape(product: XcafProduct) -> Any:
    """Return the kernel's shape of a product, in the product's frame."""
    from OCP.XCAFDoc import XCAFDoc_ShapeTool

    return XCAFDoc_ShapeTool.GetShape_s(product.label)


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
    return name.encode("utf-8", "replace").decode().strip()[:_MAX_NAME_LENGTH]
