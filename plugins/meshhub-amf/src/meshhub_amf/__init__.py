"""Additive Manufacturing File Format (AMF) for meshhub: declarations. Other modules do the work."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from meshhub import Feature, Format, Frame, Reader, Writer, hookimpl

AMF = Format(
    id="amf",
    label="AMF",
    extensions=(".amf",),
    media_types=("application/x-amf", "model/amf"),
    specification="ISO/ASTM 52915:2020",
    generator_entry="model.amf",
)

_CARRIES: frozenset[Feature] = frozenset({"names", "colors", "materials", "metadata", "units"})
_INSTANCES: frozenset[Feature] = frozenset({"instances"})


class AmfWriterOptions(Struct, frozen=True, kw_only=True):
    """Options of the AMF writer."""

    amf_compress: Annotated[
        bool,
        Meta(
            title="Compress",
            description="Write a ZIP archive, about ten times smaller; a few programs read only plain AMF.",
        ),
    ] = False
    amf_rotations: Annotated[
        bool,
        Meta(
            title="Turned instances",
            description="Turn instances by angles in degrees, as the standard requires; PrusaSlicer 2.5 reads radians.",
        ),
    ] = False


@hookimpl
def meshhub_readers() -> list[Reader]:
    """Declare the reader; each file states its unit, Z is up."""
    return [
        Reader(
            format=AMF,
            run="meshhub_amf.reader:read",
            sniff="meshhub_amf.sniff:sniff",
            carries=_CARRIES | _INSTANCES | {"hierarchy"},
            frame=None,
        )
    ]


@hookimpl
def meshhub_writers() -> list[Writer]:
    """Declare the writer, which writes millimeters."""
    return [
        Writer(
            format=AMF,
            run="meshhub_amf.writer:write",
            options=AmfWriterOptions,
            carries=_CARRIES,
            carries_with={"amf_rotations": _INSTANCES},
            frame=Frame("mm", "z"),
        )
    ]
