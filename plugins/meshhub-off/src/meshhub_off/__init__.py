"""The Object File Format (OFF) for meshhub: what is declared. The work is done in `reader` and `writer`."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from meshhub import Feature, Format, Reader, Writer, hookimpl

OFF = Format(
    id="off",
    label="OFF",
    extensions=(".off",),
    media_types=("model/vnd.off", "application/x-off"),
    specification="https://www.geomview.org/docs/html/OFF.html",
)

_CARRIES: frozenset[Feature] = frozenset({"colors", "materials", "normals", "uv"})


class OffWriterOptions(Struct, frozen=True, kw_only=True):
    """How OFF is written."""

    off_fractions: Annotated[
        bool,
        Meta(title="Colours as fractions", description="Write colours from 0 to 1 instead of from 0 to 255."),
    ] = False


@hookimpl
def meshhub_readers() -> list[Reader]:
    """The reader: polygons are cut into triangles, colours of faces become materials."""
    return [Reader(format=OFF, run="meshhub_off.reader:read", sniff="meshhub_off.sniff:sniff", carries=_CARRIES)]


@hookimpl
def meshhub_writers() -> list[Writer]:
    """The writer: one list of vertices and faces, the base colours of materials as colours of faces."""
    return [Writer(format=OFF, run="meshhub_off.writer:write", options=OffWriterOptions, carries=_CARRIES)]
