"""CAD files for meshhub: IGES and BREP solids, DXF and SVG profiles extruded to solids: declarations."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from meshhub import Feature, Format, Frame, Reader, Writer, hookimpl

MESHHUB_API = "1.0"

IGES = Format(
    id="iges",
    label="IGES",
    extensions=(".igs", ".iges"),
    media_types=("model/iges",),
    specification="IGES 5.3 (US PRO/IPO-100)",
)
BREP = Format(
    id="brep",
    label="OpenCASCADE BREP",
    extensions=(".brep", ".brp"),
    media_types=("model/x-brep",),
    specification="https://dev.opencascade.org/doc/overview/html/specification__brep_format.html",
)
DXF = Format(
    id="dxf",
    label="DXF profile",
    extensions=(".dxf",),
    media_types=("image/vnd.dxf",),
    specification="AutoCAD DXF Reference",
)
BUILD123D = Format(
    id="build123d",
    label="build123d script",
    extensions=(".py",),
    media_types=("text/x-python",),
    specification="https://build123d.readthedocs.io",
)
SCAD = Format(
    id="scad",
    label="OpenSCAD script",
    extensions=(".scad",),
    media_types=("application/x-openscad",),
    specification="https://openscad.org/documentation.html",
)
SVG = Format(
    id="svg",
    label="SVG profile (experimental)",
    extensions=(".svg",),
    media_types=("image/svg+xml",),
    specification="https://www.w3.org/TR/SVG2/",
)

_CARRIES: frozenset[Feature] = frozenset({"names", "materials", "units"})

Deviation = Annotated[
    float,
    Meta(
        title="Maximum deviation in mm",
        description=(
            "Maximum distance of a triangle from the true surface. It is clamped to 1/50000 to 1/100 of the diagonal "
            "of each body."
        ),
        ge=1e-4,
        le=100.0,
    ),
]
Angle = Annotated[
    float,
    Meta(
        title="Maximum angle in degrees",
        description="Maximum angle between neighboring edges of a curve; smaller is rounder.",
        ge=1.0,
        le=60.0,
    ),
]
Height = Annotated[
    float,
    Meta(title="Height of the solid in mm", description="Height to which the profile is extruded.", ge=1e-3, le=1e4),
]
Tolerance = Annotated[
    float,
    Meta(
        title="Tolerance of curves in mm",
        description=(
            "Maximum distance of a straight edge from its curve, and maximum gap between the ends of two lines that "
            "meet."
        ),
        ge=1e-4,
        le=10.0,
    ),
]


class IgesOptions(Struct, frozen=True, kw_only=True):
    """Accuracy of the triangles that replace the curved surfaces of an IGES file."""

    iges_deviation_mm: Deviation = 0.01
    iges_angle_degrees: Angle = 11.46


class BrepOptions(Struct, frozen=True, kw_only=True):
    """Accuracy of the triangles that replace the curved surfaces of a BREP file."""

    brep_deviation_mm: Deviation = 0.01
    brep_angle_degrees: Angle = 11.46


Surfaces = Annotated[
    Literal["analytic", "freeform", "planar"],
    Meta(
        title="Surfaces of the file",
        description=(
            "analytic recognizes the planes, cylinders, cones, spheres and tori that the triangles approximate; "
            "freeform also fits B-spline faces to other smooth regions; planar only merges coplanar triangles into "
            "faces. As for STEP."
        ),
    ),
]
SurfaceTolerance = Annotated[
    float,
    Meta(
        title="Tolerance of the surfaces in mm",
        description=(
            "Maximum distance of a mesh point from its recognized surface. Default: the rounding error of 32-bit "
            "coordinates."
        ),
        ge=1e-6,
        le=1.0,
    ),
]


class IgesWriterOptions(Struct, frozen=True, kw_only=True):
    """Kinds of surfaces to recognize for an IGES file, and how closely they must fit the mesh."""

    iges_surfaces: Surfaces = "freeform"
    iges_tolerance_mm: SurfaceTolerance | None = None


class BrepWriterOptions(Struct, frozen=True, kw_only=True):
    """Kinds of surfaces to recognize for a BREP file, and how closely they must fit the mesh."""

    brep_surfaces: Surfaces = "freeform"
    brep_tolerance_mm: SurfaceTolerance | None = None


ScriptSurfaces = Annotated[
    Literal["analytic", "planar"],
    Meta(
        title="Surfaces of the script",
        description="analytic recognizes the arcs and round holes that the triangles approximate; planar keeps facets.",
    ),
]


class Build123dOptions(Struct, frozen=True, kw_only=True):
    """Surfaces to recognize for a script of build123d, and how closely they must fit the mesh."""

    build123d_surfaces: ScriptSurfaces = "analytic"
    build123d_tolerance_mm: SurfaceTolerance | None = None


class ScadOptions(Struct, frozen=True, kw_only=True):
    """Surfaces to recognize for a script of OpenSCAD, and how closely they must fit the mesh."""

    scad_surfaces: ScriptSurfaces = "analytic"
    scad_tolerance_mm: SurfaceTolerance | None = None


class DxfOptions(Struct, frozen=True, kw_only=True):
    """Height, unit and accuracy of an extruded DXF drawing."""

    dxf_height_mm: Height = 3.0
    dxf_tolerance_mm: Tolerance = 0.01
    dxf_unit: (
        Annotated[
            Literal["um", "mm", "cm", "m", "in", "ft"],
            Meta(
                title="Unit of the drawing", description="Unit of the coordinates (default: the drawing's $INSUNITS)."
            ),
        ]
        | None
    ) = None


class SvgOptions(Struct, frozen=True, kw_only=True):
    """Height, scale and accuracy of an extruded SVG drawing."""

    svg_height_mm: Height = 3.0
    svg_tolerance_mm: Tolerance = 0.01
    svg_dpi: Annotated[
        float,
        Meta(
            title="Pixels per inch",
            description="Scale of a drawing without physical units: 96 by the standard, 72 or 90 in some programs.",
            ge=1.0,
            le=10000.0,
        ),
    ] = 96.0
    svg_overlaps: Annotated[
        Literal["union", "holes"],
        Meta(
            title="Shapes over other shapes",
            description="union merges all shapes, whatever their color; holes cuts a shape out of the one below it.",
        ),
    ] = "union"
    svg_strokes: Annotated[
        Literal["area", "outlines"],
        Meta(
            title="Lines",
            description=(
                "area extrudes lines with their width; outlines fills closed lines without fill, and ignores the width."
            ),
        ),
    ] = "area"


@hookimpl
def meshhub_readers() -> list[Reader]:
    """Declare the readers; IGES and BREP need OpenCASCADE."""
    return [
        Reader(
            format=IGES,
            run="meshhub_cad.iges:read",
            sniff="meshhub_cad.sniff:sniff_iges",
            needs=("OCP",),
            install="meshhub-cad",
            options=IgesOptions,
            carries=_CARRIES,
            frame=None,
        ),
        Reader(
            format=BREP,
            run="meshhub_cad.brep:read",
            sniff="meshhub_cad.sniff:sniff_brep",
            needs=("OCP",),
            install="meshhub-cad",
            options=BrepOptions,
            frame=Frame("mm", "z"),
        ),
        Reader(
            format=DXF,
            run="meshhub_cad.dxf:read",
            sniff="meshhub_cad.sniff:sniff_dxf",
            needs=("ezdxf",),
            install="meshhub-cad",
            options=DxfOptions,
            frame=None,
        ),
        Reader(
            format=SVG,
            run="meshhub_cad.svg:read",
            sniff="meshhub_cad.sniff:sniff_svg",
            needs=("manifold3d",),
            install="meshhub-cad",
            options=SvgOptions,
            frame=None,
        ),
    ]


@hookimpl
def meshhub_writers() -> list[Writer]:
    """Declare the writers, which recognize surfaces as the STEP writer does, and need OpenCASCADE."""
    return [
        Writer(
            format=IGES,
            run="meshhub_cad.kernel_files:write_iges",
            needs=("OCP",),
            install="meshhub-cad",
            requires="pro",
            keeps_state=True,
            options=IgesWriterOptions,
            carries=_CARRIES,
            frame=Frame("mm", "z"),
        ),
        Writer(
            format=BREP,
            run="meshhub_cad.kernel_files:write_brep",
            needs=("OCP",),
            install="meshhub-cad",
            requires="pro",
            keeps_state=True,
            options=BrepWriterOptions,
            frame=Frame("mm", "z"),
        ),
        Writer(
            format=BUILD123D,
            run="meshhub_cad.scripts:write_build123d",
            needs=("OCP",),
            install="meshhub-cad",
            requires="pro",
            keeps_state=True,
            options=Build123dOptions,
            frame=Frame("mm", "z"),
        ),
        Writer(
            format=SCAD,
            run="meshhub_cad.scripts:write_scad",
            needs=("OCP",),
            install="meshhub-cad",
            requires="pro",
            keeps_state=True,
            options=ScadOptions,
            frame=Frame("mm", "z"),
        ),
    ]
