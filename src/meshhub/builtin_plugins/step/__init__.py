"""STEP (ISO 10303-21): CAD files, written as boundary representations that people can edit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from msgspec import Meta, Struct

from meshhub.capabilities import Format, Magic, Writer
from meshhub.hookspecs import hookimpl

STEP = Format(
    id="step",
    label="STEP",
    extensions=(".step", ".stp"),
    media_types=("model/step",),
    magic=(Magic(b"ISO-10303-21;"),),
    specification="ISO 10303-21 (Part 21), ISO 10303-214 (AP214)",
)


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
