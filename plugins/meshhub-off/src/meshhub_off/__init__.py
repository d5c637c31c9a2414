"""Object File Format (OFF) for meshhub: declarations. The modules `reader` and `writer` do the work."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from meshhub import Feature, Format, Reader, Writer, hookimpl

MESHHUB_API = "1.0"

OFF = Format(
    id="off",
    label="OFF",
    extensions=(".off",),
    media_types=("model/vnd.off", "application/x-off"),
    specification="https://www.geomview.org/docs/html/OFF.html",
)

_CARRIES: frozenset[Feature] = frozenset({"colors", "materials", "normals", "uv"})


class OffWriterOptions(Struct, frozen=True, kw_only=True):
    """Options of the OFF writer."""

    off_fractions: Annotated[
        bool,
        Meta(title="Colors as fractions", description="Write colors from 0 to 1 instead of from 0 to 255."),
    ] = False


@hookimpl
def meshhub_readers() -> list[Reader]:
    """Declare the reader: polygons are triangulated, face colors become materials."""
    return [Reader(format=OFF, run="meshhub_off.reader:read", sniff="meshhub_off.sniff:sniff", carries=_CARRIES)]


@hookimpl
def meshhub_writers() -> list[Writer]:
    """Declare the writer: one list of vertices and faces; the base colors of materials become face colors."""
    return [Writer(format=OFF, run="meshhub_off.writer:write", options=OffWriterOptions, carries=_CARRIES)]
