"""Rhino files (3DM) for meshhub: declarations. Other modules do the work."""

from __future__ import annotations

from meshhub import Feature, Format, Frame, Magic, Reader, Writer, hookimpl

MESHHUB_API = "1.0"

RHINO = Format(
    id="3dm",
    label="Rhino 3DM",
    extensions=(".3dm",),
    media_types=("model/vnd.3dm", "application/x-3dm"),
    magic=(Magic(b"3D Geometry File Format"),),
    specification="https://developer.rhino3d.com/guides/opennurbs",
    is_compressed=True,
    memory_ratio=60.0,
)

_CARRIES: frozenset[Feature] = frozenset({"names", "hierarchy", "instances", "normals", "colors", "materials", "units"})


@hookimpl
def meshhub_readers() -> list[Reader]:
    """Declare the reader; each file states its unit, Z is up."""
    return [
        Reader(
            format=RHINO,
            run="meshhub_rhino.reader:read",
            needs=("rhino3dm",),
            install="meshhub-rhino",
            carries=_CARRIES,
            frame=None,
        )
    ]


@hookimpl
def meshhub_writers() -> list[Writer]:
    """Declare the writer, which writes millimeters."""
    return [
        Writer(
            format=RHINO,
            run="meshhub_rhino.writer:write",
            needs=("rhino3dm",),
            install="meshhub-rhino",
            carries=_CARRIES,
            frame=Frame("mm", "z"),
        )
    ]
