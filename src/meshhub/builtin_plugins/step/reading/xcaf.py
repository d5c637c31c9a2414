"""What an XCAF document holds: products, where they stand, their names and colours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from meshhub.errors import ModelTooComplex
from meshhub.model.scene import Color, Float64

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
    roots = [_instance(root) for root in _sequence(XCAFDoc_DocumentTool.ShapeTool_s(document.Main()).GetFreeShapes)]
    for root in roots:
        walk.down(root)
    return walk.products, walk.placements, [root.name for root in roots]


@dataclass(frozen=True, eq=False)
class _Instance:
    """A label of the document that places a product or an assembly, read once however often it is met."""

    key: str
    referred: Any
    matrix: Float64
    name: str
    own: Color | None


@dataclass(frozen=True, eq=False)
class _Assembly:
    components: list[_Instance]
    color: Color | None


class _Walk:
    def __init__(self) -> None:
        self.products: dict[str, Product] = {}
        self.placements: list[Placement] = []
        self._assemblies: dict[str, _Assembly] = {}
        self._visits = 0

    def down(self, root: _Instance) -> None:
        """Every placement under a root, in the order of the file."""
        pending: list[tuple[_Instance, Float64, tuple[str, ...], Color | None]] = [(root, np.eye(4), (), None)]
        while pending:
            one, above, path, inherited = pending.pop()
            self._visits += 1
            if self._visits > MOST_PLACEMENTS or len(path) > DEEPEST:
                raise ModelTooComplex(
                    f"the assembly has more than {MOST_PLACEMENTS} parts or {DEEPEST} levels; export a part of it"
                )
            matrix = above @ one.matrix
            assembly = self._assembly(one)
            if assembly is None:
                self.placements.append(Placement(one.key, matrix, one.name, path, one.own, inherited))
                continue
            passed_on = one.own or assembly.color or inherited
            below = (*path, one.name)
            pending += [(component, matrix, below, passed_on) for component in reversed(assembly.components)]

    def _assembly(self, one: _Instance) -> _Assembly | None:
        """The assembly that an instance places; None for a product that is none, which is taken down."""
        from OCP.XCAFDoc import XCAFDoc_ShapeTool

        label = one.referred
        if one.key not in self.products and one.key not in self._assemblies:
            if XCAFDoc_ShapeTool.IsAssembly_s(label):
                components = _sequence(lambda found: XCAFDoc_ShapeTool.GetComponents_s(label, found, False))
                self._assemblies[one.key] = _Assembly([_instance(each) for each in components], color_of(label))
            else:
                self.products[one.key] = Product(_name(label), label, color_of(label))
        return self._assemblies.get(one.key)


def _instance(label: Any) -> _Instance:
    from OCP.TDF import TDF_Label
    from OCP.XCAFDoc import XCAFDoc_ShapeTool

    if not XCAFDoc_ShapeTool.IsReference_s(label):
        # a root stands where its shape says
        return _Instance(_entry(label), label, np.eye(4), _name(label), None)
    referred = TDF_Label()
    XCAFDoc_ShapeTool.GetReferredShape_s(label, referred)
    return _Instance(
        _entry(referred),
        referred,
        matrix_of(XCAFDoc_ShapeTool.GetLocation_s(label)),
        _given_name(label) or _name(referred),
        color_of(label),
    )


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


def _encoded(light: float) -> float:
    """IEC 61966-2-1; rounded, for the kernel holds 32-bit numbers."""
    light = min(max(light, 0.0), 1.0)
    return round(light * 12.92 if light <= 0.0031308 else 1.055 * light ** (1 / 2.4) - 0.055, 6)


def _sequence(fill: Any) -> list[Any]:
    from OCP.collections import Sequence_TDF_Label

    found = Sequence_TDF_Label()
    fill(found)
    return [found.Value(number) for number in range(1, found.Length() + 1)]


def _entry(label: Any) -> str:
    from OCP.TCollection import TCollection_AsciiString
    from OCP.TDF import TDF_Tool

    entry = TCollection_AsciiString()
    TDF_Tool.Entry_s(label, entry)
    text: str = entry.ToCString()
    return text


def _given_name(label: Any) -> str:
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
