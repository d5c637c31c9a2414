"""Product data around the geometry: header, units, products, assemblies, colors (AP214)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from meshhub.builtin_plugins.step.part21.part21 import Part21Writer, format_references
from meshhub.builtin_plugins.step.part21.strings import encode_string
from meshhub.model.scene import Color, Float64

_HEADER = """ISO-10303-21;
HEADER;
FILE_DESCRIPTION(('boundary representation from triangles'),'2;1');
FILE_NAME('model','2000-01-01T00:00:00',(''),(''),'meshhub','meshhub','');
FILE_SCHEMA(('AUTOMOTIVE_DESIGN { 1 0 10303 214 1 1 1 1 }'));
ENDSEC;
DATA;
"""
_UNCERTAINTY_MM = "1.E-07"
"""Millimeters below which two points are equal. Faces share their edges and corners, so a larger value is not needed;
with a larger value OpenCASCADE closes narrower gaps in single faces, and tears the shell there. It measures the
distance of edges from their surfaces itself."""

_TRAILER = "ENDSEC;\nEND-ISO-10303-21;\n"


class ProductIds(NamedTuple):
    """Ids of a product's PRODUCT_DEFINITION and of its main SHAPE_REPRESENTATION."""

    definition: int
    representation: int


class StepDocument:
    """One STEP file: AP214, millimeters, a fixed time stamp (so that equal models give equal bytes)."""

    def __init__(self, file: Part21Writer) -> None:
        """Write the header and the entities that every product refers to."""
        self.file = file
        file.write_text(_HEADER)
        write = file.write_entity
        application = write("APPLICATION_CONTEXT('core data for automotive mechanical design processes')")
        write(f"APPLICATION_PROTOCOL_DEFINITION('international standard','automotive_design',2000,#{application})")
        self._product_context = write(f"PRODUCT_CONTEXT('',#{application},'mechanical')")
        self._definition_context = write(f"PRODUCT_DEFINITION_CONTEXT('part definition',#{application},'design')")
        length = write("(LENGTH_UNIT()NAMED_UNIT(*)SI_UNIT(.MILLI.,.METRE.))")
        angle = write("(NAMED_UNIT(*)PLANE_ANGLE_UNIT()SI_UNIT($,.RADIAN.))")
        solid_angle = write("(NAMED_UNIT(*)SI_UNIT($,.STERADIAN.)SOLID_ANGLE_UNIT())")
        uncertainty = write(
            f"UNCERTAINTY_MEASURE_WITH_UNIT(LENGTH_MEASURE({_UNCERTAINTY_MM}),#{length},'distance_accuracy_value',"
            "'confusion accuracy')"
        )
        self._geometric_context = write(
            "(GEOMETRIC_REPRESENTATION_CONTEXT(3)"
            f"GLOBAL_UNCERTAINTY_ASSIGNED_CONTEXT((#{uncertainty}))"
            f"GLOBAL_UNIT_ASSIGNED_CONTEXT((#{length},#{angle},#{solid_angle}))"
            "REPRESENTATION_CONTEXT('','3D'))"
        )
        self._origin = self._write_matrix(np.eye(4))
        self._assemblies: dict[int, tuple[str, list[int]]] = {}
        self._styled_items: list[int] = []
        self._styles: dict[Color, int] = {}

    def _write_matrix(self, matrix: Float64) -> int:
        """Write a rigid (4, 4) matrix as an AXIS2_PLACEMENT_3D."""
        return self.file.write_placement(matrix[:3, 3], matrix[:3, 2], matrix[:3, 0])

    def write_product(self, name: str, solids: Sequence[int], sheets: Sequence[int]) -> ProductIds:
        """Write a product.

        Args:
            name: Any text.
            solids: Ids of solids.
            sheets: Ids of SHELL_BASED_SURFACE_MODELs. A product without solids and sheets is an assembly.
        """
        write = self.file.write_entity
        text = encode_string(name)
        product = write(f"PRODUCT({text},{text},'',(#{self._product_context}))")
        write(f"PRODUCT_RELATED_PRODUCT_CATEGORY('part',$,(#{product}))")
        formation = write(f"PRODUCT_DEFINITION_FORMATION('','',#{product})")
        definition = write(f"PRODUCT_DEFINITION('design','',#{formation},#{self._definition_context})")
        shape = write(f"PRODUCT_DEFINITION_SHAPE('','',#{definition})")
        kinds = [("ADVANCED_BREP_SHAPE_REPRESENTATION", solids), ("MANIFOLD_SURFACE_SHAPE_REPRESENTATION", sheets)]
        kinds = [(kind, items) for kind, items in kinds if items]
        if not kinds:
            main = self.file.reserve_id()
            self._assemblies[main] = (text, [self._origin])
        elif len(kinds) == 1:
            main = self._write_representation(kinds[0][0], text, kinds[0][1])
        else:
            main = self._write_representation("SHAPE_REPRESENTATION", text, ())
            for kind, items in kinds:
                other = self._write_representation(kind, text, items)
                write(f"SHAPE_REPRESENTATION_RELATIONSHIP('','',#{main},#{other})")
        write(f"SHAPE_DEFINITION_REPRESENTATION(#{shape},#{main})")
        return ProductIds(definition, main)

    def _write_representation(self, kind: str, text: str, items: Sequence[int]) -> int:
        return self.file.write_entity(self._format_representation(kind, text, (self._origin, *items)))

    def _format_representation(self, kind: str, text: str, items: Sequence[int]) -> str:
        return f"{kind}({text},({format_references(items)}),#{self._geometric_context})"

    def write_occurrence(self, number: int, name: str, parent: ProductIds, child: ProductIds, matrix: Float64) -> None:
        """Write an instance of a product in an assembly.

        Args:
            number: Identifier of the instance, unique in the file.
            name: Any text.
            parent: The assembly.
            child: The product.
            matrix: Rigid (4, 4) matrix from the child's frame to the parent's, millimeters.
        """
        write = self.file.write_entity
        usage = write(
            f"NEXT_ASSEMBLY_USAGE_OCCURRENCE('{number}',{encode_string(name)},'',"
            f"#{parent.definition},#{child.definition},$)"
        )
        shape = write(f"PRODUCT_DEFINITION_SHAPE('','',#{usage})")
        placement = self._write_matrix(matrix)
        # the target of the transformation must be an item of the assembly's own representation (ISO 10303-43)
        self._assemblies[parent.representation][1].append(placement)
        transformation = write(f"ITEM_DEFINED_TRANSFORMATION('','',#{self._origin},#{placement})")
        relation = write(
            f"(REPRESENTATION_RELATIONSHIP('','',#{child.representation},#{parent.representation})"
            f"REPRESENTATION_RELATIONSHIP_WITH_TRANSFORMATION(#{transformation})"
            "SHAPE_REPRESENTATION_RELATIONSHIP())"
        )
        write(f"CONTEXT_DEPENDENT_SHAPE_REPRESENTATION(#{relation},#{shape})")

    def write_color(self, items: Sequence[int], color: Color) -> None:
        """Color solids, surface models or faces.

        Args:
            items: Ids.
            color: sRGB and opacity, 0 to 1.
        """
        style = self._styles.get(color)
        if style is None:
            style = self._styles[color] = self._write_style(color)
        if items:
            ids = np.asarray(items, np.int64)
            self._styled_items += self.file.write_entities(len(ids), f"STYLED_ITEM('',(#{style}),#", ids, ")").tolist()

    def _write_style(self, color: Color) -> int:
        write = self.file.write_entity
        red, green, blue, opacity = color
        rgb = write(f"COLOUR_RGB('',{red:.6f},{green:.6f},{blue:.6f})")
        fill = write(f"FILL_AREA_STYLE_COLOUR('',#{rgb})")
        area = write(f"FILL_AREA_STYLE('',(#{fill}))")
        elements = [write(f"SURFACE_STYLE_FILL_AREA(#{area})")]
        if opacity < 1:
            transparency = write(f"SURFACE_STYLE_TRANSPARENT({1 - opacity:.6f})")
            elements.append(
                write(f"SURFACE_STYLE_RENDERING_WITH_PROPERTIES(.NORMAL_SHADING.,#{rgb},(#{transparency}))")
            )
        side = write(f"SURFACE_SIDE_STYLE('',({format_references(elements)}))")
        usage = write(f"SURFACE_STYLE_USAGE(.BOTH.,#{side})")
        return write(f"PRESENTATION_STYLE_ASSIGNMENT((#{usage}))")

    def close(self) -> None:
        """Write the representations of the assemblies, the list of colored items and the trailer."""
        for number, (text, items) in self._assemblies.items():
            self.file.write_reserved(number, self._format_representation("SHAPE_REPRESENTATION", text, items))
        if self._styled_items:
            self.file.write_entity(
                "MECHANICAL_DESIGN_GEOMETRIC_PRESENTATION_REPRESENTATION"
                f"('',({format_references(self._styled_items)}),#{self._geometric_context})"
            )
        self.file.write_text(_TRAILER)
