"""What stands around the geometry: header, units, products, assemblies, colours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from meshhub.builtin_plugins.step.writing.names import quoted
from meshhub.builtin_plugins.step.writing.part21 import Part21
from meshhub.model.scene import Color, Float64

_HEADER = """ISO-10303-21;
HEADER;
FILE_DESCRIPTION(('boundary representation from triangles'),'2;1');
FILE_NAME('model','2000-01-01T00:00:00',(''),(''),'meshhub','meshhub','');
FILE_SCHEMA(('AUTOMOTIVE_DESIGN { 1 0 10303 214 1 1 1 1 }'));
ENDSEC;
DATA;
"""
_NEAR = "1.E-07"
"""Millimetres below which two points are one. Faces share their edges and corners, so nothing needs more; told of
more, OpenCASCADE closes gaps in single faces that are narrower, and tears the shell there. It finds out by itself
how far edges are off."""

_TRAILER = "ENDSEC;\nEND-ISO-10303-21;\n"


class Product(NamedTuple):
    """Ids of a product's PRODUCT_DEFINITION and of its main SHAPE_REPRESENTATION."""

    definition: int
    representation: int


class Document:
    """The frame of one STEP file: AP214, millimetres, a fixed time stamp."""

    def __init__(self, file: Part21) -> None:
        """Writes the header and what every product refers to."""
        self.file = file
        file.raw(_HEADER)
        one = file.one
        application = one("APPLICATION_CONTEXT('core data for automotive mechanical design processes')")
        one(f"APPLICATION_PROTOCOL_DEFINITION('international standard','automotive_design',2000,#{application})")
        self._product_context = one(f"PRODUCT_CONTEXT('',#{application},'mechanical')")
        self._definition_context = one(f"PRODUCT_DEFINITION_CONTEXT('part definition',#{application},'design')")
        length = one("(LENGTH_UNIT()NAMED_UNIT(*)SI_UNIT(.MILLI.,.METRE.))")
        angle = one("(NAMED_UNIT(*)PLANE_ANGLE_UNIT()SI_UNIT($,.RADIAN.))")
        solid = one("(NAMED_UNIT(*)SI_UNIT($,.STERADIAN.)SOLID_ANGLE_UNIT())")
        near = one(
            f"UNCERTAINTY_MEASURE_WITH_UNIT(LENGTH_MEASURE({_NEAR}),#{length},'distance_accuracy_value',"
            "'confusion accuracy')"
        )
        self.context = one(
            "(GEOMETRIC_REPRESENTATION_CONTEXT(3)"
            f"GLOBAL_UNCERTAINTY_ASSIGNED_CONTEXT((#{near}))"
            f"GLOBAL_UNIT_ASSIGNED_CONTEXT((#{length},#{angle},#{solid}))"
            "REPRESENTATION_CONTEXT('','3D'))"
        )
        self.origin = self.placement(np.eye(4))
        self._assemblies: dict[int, tuple[str, list[int]]] = {}
        self._styled: list[int] = []
        self._styles: dict[Color, int] = {}

    def placement(self, matrix: Float64) -> int:
        """An AXIS2_PLACEMENT_3D from a rigid (4, 4) matrix."""
        return self.file.placement(matrix[:3, 3], matrix[:3, 2], matrix[:3, 0])

    def product(self, name: str, solids: Sequence[int], sheets: Sequence[int]) -> Product:
        """A product with solids and SHELL_BASED_SURFACE_MODELs; one without either is an assembly."""
        one = self.file.one
        text = quoted(name)
        product = one(f"PRODUCT({text},{text},'',(#{self._product_context}))")
        one(f"PRODUCT_RELATED_PRODUCT_CATEGORY('part',$,(#{product}))")
        formation = one(f"PRODUCT_DEFINITION_FORMATION('','',#{product})")
        definition = one(f"PRODUCT_DEFINITION('design','',#{formation},#{self._definition_context})")
        shape = one(f"PRODUCT_DEFINITION_SHAPE('','',#{definition})")
        kinds = [("ADVANCED_BREP_SHAPE_REPRESENTATION", solids), ("MANIFOLD_SURFACE_SHAPE_REPRESENTATION", sheets)]
        kinds = [(kind, items) for kind, items in kinds if items]
        if not kinds:
            main = self.file.reserve()
            self._assemblies[main] = (text, [self.origin])
        elif len(kinds) == 1:
            main = self._representation(kinds[0][0], text, kinds[0][1])
        else:
            main = self._representation("SHAPE_REPRESENTATION", text, ())
            for kind, items in kinds:
                other = self._representation(kind, text, items)
                one(f"SHAPE_REPRESENTATION_RELATIONSHIP('','',#{main},#{other})")
        one(f"SHAPE_DEFINITION_REPRESENTATION(#{shape},#{main})")
        return Product(definition, main)

    def _representation(self, kind: str, text: str, items: Sequence[int]) -> int:
        return self.file.one(self._representation_text(kind, text, (self.origin, *items)))

    def _representation_text(self, kind: str, text: str, items: Sequence[int]) -> str:
        return f"{kind}({text},({','.join(f'#{item}' for item in items)}),#{self.context})"

    def occurrence(self, number: int, name: str, parent: Product, child: Product, matrix: Float64) -> None:
        """One placed instance of a product in an assembly; `matrix` is rigid."""
        one = self.file.one
        usage = one(
            f"NEXT_ASSEMBLY_USAGE_OCCURRENCE('{number}',{quoted(name)},'',#{parent.definition},#{child.definition},$)"
        )
        shape = one(f"PRODUCT_DEFINITION_SHAPE('','',#{usage})")
        at = self.placement(matrix)
        # what is transformed to must be an item of the assembly's own representation (ISO 10303-43)
        self._assemblies[parent.representation][1].append(at)
        item = one(f"ITEM_DEFINED_TRANSFORMATION('','',#{self.origin},#{at})")
        relation = one(
            f"(REPRESENTATION_RELATIONSHIP('','',#{child.representation},#{parent.representation})"
            f"REPRESENTATION_RELATIONSHIP_WITH_TRANSFORMATION(#{item})"
            "SHAPE_REPRESENTATION_RELATIONSHIP())"
        )
        one(f"CONTEXT_DEPENDENT_SHAPE_REPRESENTATION(#{relation},#{shape})")

    def colour(self, items: Sequence[int], color: Color) -> None:
        """Colour solids, surface models or faces; sRGB, the fourth number is the opacity."""
        style = self._styles.get(color)
        if style is None:
            style = self._styles[color] = self._style(color)
        if items:
            ids = np.asarray(items, np.int64)
            first = self.file.many(len(ids), f"STYLED_ITEM('',(#{style}),#", ids, ")")
            self._styled += range(first, first + len(ids))

    def _style(self, color: Color) -> int:
        one = self.file.one
        red, green, blue, opacity = color
        rgb = one(f"COLOUR_RGB('',{red:.6f},{green:.6f},{blue:.6f})")
        fill = one(f"FILL_AREA_STYLE_COLOUR('',#{rgb})")
        area = one(f"FILL_AREA_STYLE('',(#{fill}))")
        sides = [one(f"SURFACE_STYLE_FILL_AREA(#{area})")]
        if opacity < 1:
            clear = one(f"SURFACE_STYLE_TRANSPARENT({1 - opacity:.6f})")
            sides.append(one(f"SURFACE_STYLE_RENDERING_WITH_PROPERTIES(.NORMAL_SHADING.,#{rgb},(#{clear}))"))
        listed = ",".join(f"#{side}" for side in sides)
        side = one(f"SURFACE_SIDE_STYLE('',({listed}))")
        usage = one(f"SURFACE_STYLE_USAGE(.BOTH.,#{side})")
        return one(f"PRESENTATION_STYLE_ASSIGNMENT((#{usage}))")

    def close(self) -> None:
        """Write what comes last."""
        for number, (text, items) in self._assemblies.items():
            self.file.reserved(number, self._representation_text("SHAPE_REPRESENTATION", text, items))
        if self._styled:
            listed = ",".join(f"#{item}" for item in self._styled)
            self.file.one(f"MECHANICAL_DESIGN_GEOMETRIC_PRESENTATION_REPRESENTATION('',({listed}),#{self.context})")
        self.file.raw(_TRAILER)
