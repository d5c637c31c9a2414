"""STEP (ISO 10303-21): CAD files, tessellated when read, written as boundary representations that people can edit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from msgspec import Meta, Struct

from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import Format, Magic, Reader, Writer

STEP = Format(
    id="step",
    label="STEP",
    extensions=(".step", ".stp"),
    media_types=("model/step",),
    magic=(Magic(b"ISO-10303-21;"),),
    specification="ISO 10303-21 (Part 21), ISO 10303-214 (AP214)",
)


class StepReadOptions(Struct, frozen=True, kw_only=True):
    """How closely triangles follow the curved surfaces of a STEP file."""

    step_deviation_mm: Annotated[
        float,
        Meta(
            title="Deviation when STEP is read, in mm",
            description=(
                "How far a triangle may lie from the true surface. It is kept between 1/50000 and 1/100 of the "
                "diagonal of each part."
            ),
            ge=1e-4,
            le=100.0,
        ),
    ] = 0.01
    step_angle_degrees: Annotated[
        float,
        Meta(
            title="Angle when STEP is read, in degrees",
            description="How much a curve may turn from one edge to the next; smaller is rounder.",
            ge=1.0,
            le=60.0,
        ),
    ] = 11.46


class StepWriteOptions(Struct, frozen=True, kw_only=True):
    """Which surfaces are looked for, and how closely they must fit."""

    step_surfaces: Annotated[
        Literal["analytic", "planar"],
        Meta(
            title="Surfaces of the STEP file",
            description=(
                "analytic finds the planes, cylinders, cones, spheres and tori that the triangles stand for; "
                "planar only merges coplanar triangles into faces."
            ),
        ),
    ] = "analytic"
    step_tolerance_mm: (
        Annotated[
            float,
            Meta(
                title="Tolerance of the surfaces in mm",
                description=(
                    "How far a point of the mesh may lie from the surface that is found for it; "
                    "by default what the rounding of 32-bit numbers explains."
                ),
                ge=1e-6,
                le=1.0,
            ),
        ]
        | None
    ) = None


@hookimpl
def meshhub_readers() -> Iterable[Reader]:
    """The STEP reader: OpenCASCADE finds the shapes and cuts them into triangles."""
    return [
        Reader(
            format=STEP,
            run="meshhub.builtin_plugins.step.reader:read",
            sniff="meshhub.builtin_plugins.step.sniff:sniff",
            needs=("OCP",),
            install="meshhub[step]",
            options=StepReadOptions,
            carries=frozenset({"names", "instances", "materials", "units"}),
            frame=None,
        )
    ]


@hookimpl
def meshhub_writers() -> Iterable[Writer]:
    """The STEP writer: no CAD kernel needed."""
    return [
        Writer(
            format=STEP,
            run="meshhub.builtin_plugins.step.writer:write",
            requires="pro",
            options=StepWriteOptions,
            carries=frozenset({"names", "instances", "colors", "materials", "units"}),
        )
    ]
