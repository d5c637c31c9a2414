"""STEP (ISO 10303-21): AP203, AP214, AP242 and assemblies, read as triangles; written as solids with true planes,
cylinders, cones, spheres and tori (plan Pro).
"""

from collections.abc import Iterable
from typing import Annotated, Literal

from msgspec import Meta, Struct

from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import Format, Magic, Memory, Reader, Writer

STEP = Format(
    id="step",
    label="STEP",
    extensions=(".step", ".stp"),
    media_types=("model/step",),
    magic=(Magic(b"ISO-10303-21;"),),
    specification="ISO 10303-21 (Part 21), ISO 10303-214 (AP214)",
    memory_base_bytes=512 << 20,
    memory_ratio=25.0,
)


class StepReadOptions(Struct, frozen=True, kw_only=True):
    """Accuracy of the triangles that replace the curved surfaces of a STEP file, and their colors."""

    step_deviation_mm: Annotated[
        float,
        Meta(
            title="Maximum deviation when reading STEP, in mm",
            description=(
                "Maximum distance of a triangle from the true surface. It is clamped to 1/50000 to 1/100 of the "
                "diagonal of each part."
            ),
            ge=1e-4,
            le=100.0,
        ),
    ] = 0.01
    step_angle_degrees: Annotated[
        float,
        Meta(
            title="Maximum angle when reading STEP, in degrees",
            description="Maximum angle between neighboring edges of a curve; smaller is rounder.",
            ge=1.0,
            le=60.0,
        ),
    ] = 11.46
    step_colors: Annotated[
        Literal["file", "surface"],
        Meta(
            title="Colors when reading STEP",
            description=(
                "file keeps the colors of the file; surface colors each face by the kind of its surface: "
                "plane, cylinder, cone, sphere, torus, free-form."
            ),
        ),
    ] = "file"
    step_reading: Annotated[
        Literal["full", "plain"],
        Meta(
            title="Kernel functions when reading STEP",
            description=(
                "full repairs faces, compares their triangles with their area, and lists radii and holes; plain only "
                "reads and triangulates, on one core. A file that crashes the kernel is read again with plain."
            ),
        ),
    ] = "full"


class StepWriteOptions(Struct, frozen=True, kw_only=True):
    """Kinds of surfaces to recognize, and how closely they must fit the mesh."""

    step_surfaces: Annotated[
        Literal["analytic", "freeform", "planar"],
        Meta(
            title="Surfaces of the STEP file",
            description=(
                "analytic recognizes the planes, cylinders, cones, spheres and tori that the triangles approximate; "
                "freeform also fits B-spline faces to other smooth regions, extruded and turned curves among them; "
                "planar only merges coplanar triangles into faces."
            ),
        ),
    ] = "freeform"
    step_tolerance_mm: (
        Annotated[
            float,
            Meta(
                title="Tolerance of the surfaces in mm",
                description=(
                    "Maximum distance of a mesh point from its recognized surface. "
                    "Default: the rounding error of 32-bit coordinates."
                ),
                ge=1e-6,
                le=1.0,
            ),
        ]
        | None
    ) = None
    step_invalid: Annotated[
        Literal["reject", "keep"],
        Meta(
            title="Invalid solids in the STEP file",
            description=(
                "reject fails if a body is not a valid solid, even with flat faces; "
                "keep writes the file, and a note says so."
            ),
        ),
    ] = "reject"


@hookimpl
def meshhub_readers() -> Iterable[Reader]:
    """Return the STEP reader, which needs OpenCASCADE."""
    return [
        Reader(
            format=STEP,
            run="meshhub.builtin_plugins.step.reader:read",
            sniff="meshhub.builtin_plugins.step.sniff:sniff",
            needs=("OCP",),
            install="meshhub[step]",
            preload=("OCP.STEPCAFControl", "OCP.BRepMesh", "OCP.BinTools"),
            options=StepReadOptions,
            carries=frozenset({"names", "hierarchy", "instances", "materials", "units"}),
            frame=None,
            features="meshhub.builtin_plugins.step.reader:read_with_features",
            options_for={"surfaces": {"step_colors": "surface"}, "crash": {"step_reading": "plain"}},
            keeps_state=True,
        )
    ]


@hookimpl
def meshhub_writers() -> Iterable[Writer]:
    """Return the STEP writer, which needs no CAD kernel, and checks its file with OpenCASCADE if that is installed."""
    return [
        Writer(
            format=STEP,
            run="meshhub.builtin_plugins.step.writer:write",
            needs=("scipy",),
            install="meshhub",
            requires="pro",
            keeps_state=True,
            # with the process that reads the file back
            memory=Memory(factor=5.0),
            options=StepWriteOptions,
            carries=frozenset({"names", "hierarchy", "instances", "colors", "materials", "units"}),
            figures={
                "solids": "{} solid|{} solids",
                "open_shells": "{} open shell|{} open shells",
                "faces": "{} face|{} faces",
                "planes": "{} plane|{} planes",
                "cylinders": "{} cylinder|{} cylinders",
                "cones": "{} cone|{} cones",
                "spheres": "{} sphere|{} spheres",
                "tori": "{} torus|{} tori",
                "bsplines": "{} free-form face|{} free-form faces",
                "hausdorff_mm": "within {} mm of the mesh",
            },
        )
    ]
