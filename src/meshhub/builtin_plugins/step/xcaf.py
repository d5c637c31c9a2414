"""What an XCAF document holds: products, where they stand, their names and colours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from meshhub.errors import ModelTooComplex
from meshhub.scene import Color, Float64

MOST_PLACEMENTS = 200_000
DEEPEST = 256
_LONGEST_NAME = 250
_GENERIC = re.compile(r"=>\[[\d:]*\]|\*?(?:NAUO|DIT)?[\d#:_.-]*")
"""Names that programs make up for an instance: of its label, its number, its entity."""


@dataclass(frozen=True, eq=False)
class Placement:
    """A product placed.

    product:   key of the product
    matrix:    (4, 4), millimetres
    path:      names of the assemblies above, outermost first
    own:       this instance's own colour
    inherited: the colour of the nearest assembly above that has one
    """

    product: str
    matrix: Float64
    name: str
    path: tuple[str, ...]
    own: Color | None
    inherited: Color | None


@dataclass(frozen=True, eq=False)
class Product:
    """A product that is no assembly: its name, its label in the document, its colour as a whole."""

    name: str
    label: Any
    color: Color | None


def placements(document: Any) -> tuple[dict[str, Product], list[Placement], list[str]]:
    """The products by key, where they stand, and the names of the roots.

    Raises ModelTooComplex for assemblies that multiply or nest beyond all reason.
    """
    from OCP.XCAFDoc import XCAFDoc_DocumentTool

    walk = _Walk()
    roots = _sequence(XCAFDoc_DocumentTool.ShapeTool_s(document.Main()).GetFreeShapes)
    names = []
    for root in roots:
        names.append(_name(_referred(root)))
        walk.down(root)
    return walk.products, walk.placements, names


class _Walk:
    def __init__(self) -> None:
        self.products: dict[str, Product] = {}
        self.placements: list[Placement] = []
        self._assemblies: dict[str, list[Any]] = {}
        self._visits = 0

    def down(self, root: Any) -> None:
        """Every placement under a root, in the order of the file."""
        identity = np.eye(4)
        pending: list[tuple[Any, Float64, tuple[str, ...], Color | None]] = [(root, identity, (), None)]
        while pending:
            label, above, path, inherited = pending.pop()
            self._visits += 1
            if self._visits > MOST_PLACEMENTS or len(path) > DEEPEST:
                raise ModelTooComplex(
                    f"the assembly has more than {MOST_PLACEMENTS} parts or {DEEPEST} levels; export a part of it"
                )
            referred = _referred(label)
            key = _entry(referred)
            matrix = above @ _location(label)
            own = None if referred is label else color_of(label)
            components = self._components(key, referred)
            if components is None:
                if key not in self.products:
                    self.products[key] = Product(_name(referred), referred, color_of(referred))
                product = self.products[key]
                name = product.name if referred is label else _instance_name(label) or product.name
                self.placements.append(Placement(key, matrix, name, path, own, inherited))
                continue
            below = (*path, _name(referred) if referred is label else _instance_name(label) or _name(referred))
            passed_on = own or color_of(referred) or inherited
            pending += [(component, matrix, below, passed_on) for component in reversed(components)]

    def _components(self, key: str, label: Any) -> list[Any] | None:
        """The labels of an assembly's components; None for a product that is no assembly."""
        from OCP.XCAFDoc import XCAFDoc_ShapeTool

        if key in self.products:
            return None
        if key not in self._assemblies:
            if not XCAFDoc_ShapeTool.IsAssembly_s(label):
                return None
            self._assemblies[key] = _sequence(lambda found: XCAFDoc_ShapeTool.GetComponents_s(label, found, False))
        return self._assemblies[key]


def shape_of(label: Any) -> Any:
    """The shape of a product, in its own place."""
    from OCP.XCAFDoc import XCAFDoc_ShapeTool

    return XCAFDoc_ShapeTool.GetShape_s(label)


def colored_shapes(label: Any) -> Iterator[tuple[Any, Color]]:
    """The shapes within a product that have a colour of their own."""
    from OCP.XCAFDoc import XCAFDoc_ShapeTool

    for part in _sequence(lambda found: XCAFDoc_ShapeTool.GetSubShapes_s(label, found)):
        color = color_of(part)
        if color is not None:
            yield XCAFDoc_ShapeTool.GetShape_s(part), color


def color_of(label: Any) -> Color | None:
    """The colour of a label's surfaces in sRGB; the kernel holds linear light."""
    from OCP.Quantity import Quantity_ColorRGBA
    from OCP.XCAFDoc import XCAFDoc_ColorGen, XCAFDoc_ColorSurf, XCAFDoc_ColorTool

    found = Quantity_ColorRGBA()
    for kind in (XCAFDoc_ColorSurf, XCAFDoc_ColorGen):
        if XCAFDoc_ColorTool.GetColor_s(label, kind, found):
            light = found.GetRGB()
            red, green, blue = (_encoded(channel) for channel in (light.Red(), light.Green(), light.Blue()))
            return red, green, blue, round(min(max(found.Alpha(), 0.0), 1.0), 6)
    return None


def matrix_of(location: Any) -> Float64:
    """A kernel's location as a (4, 4) matrix."""
    matrix = np.eye(4)
    if not location.IsIdentity():
        moving = location.Transformation()
        matrix[:3] = [[moving.Value(row, column) for column in range(1, 5)] for row in range(1, 4)]
    return matrix


def _location(label: Any) -> Float64:
    from OCP.XCAFDoc import XCAFDoc_ShapeTool

    return matrix_of(XCAFDoc_ShapeTool.GetLocation_s(label))


def _encoded(light: float) -> float:
    """IEC 61966-2-1; rounded, for the kernel holds 32-bit numbers."""
    light = min(max(light, 0.0), 1.0)
    return round(light * 12.92 if light <= 0.0031308 else 1.055 * light ** (1 / 2.4) - 0.055, 6)


def _sequence(fill: Any) -> list[Any]:
    from OCP.collections import Sequence_TDF_Label

    found = Sequence_TDF_Label()
    fill(found)
    return [found.Value(number) for number in range(1, found.Length() + 1)]


def _referred(label: Any) -> Any:
    """The product that an instance places; the label itself when it is no instance."""
    from OCP.TDF import TDF_Label
    from OCP.XCAFDoc import XCAFDoc_ShapeTool

    if not XCAFDoc_ShapeTool.IsReference_s(label):
        return label
    referred = TDF_Label()
    XCAFDoc_ShapeTool.GetReferredShape_s(label, referred)
    return referred


def _entry(label: Any) -> str:
    from OCP.TCollection import TCollection_AsciiString
    from OCP.TDF import TDF_Tool

    entry = TCollection_AsciiString()
    TDF_Tool.Entry_s(label, entry)
    text: str = entry.ToCString()
    return text


def _instance_name(label: Any) -> str:
    """What an instance is called; "" where a program only numbered it."""
    name = _name(label)
    return "" if _GENERIC.fullmatch(name) else name


def _name(label: Any) -> str:
    from OCP.TDataStd import TDataStd_Name

    identity = TDataStd_Name.GetID_s()
    # asked first: the attribute of a label that has none must not be touched
    if not label.IsAttribute(identity):
        return ""
    found = TDataStd_Name()
    label.FindAttribute(identity, found)
    try:
        name: str = found.Get().ToExtString()
    except UnicodeError:
        return ""
    return name.encode("utf-8", "replace").decode().strip()[:_LONGEST_NAME]
