"""PLY: read in ASCII and in binary of both byte orders; written in ASCII or binary."""

from typing import Annotated

from msgspec import Meta, Struct

from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import Format, Reader, Writer

PLY = Format(
    id="ply",
    label="PLY",
    extensions=(".ply",),
    media_types=("application/octet-stream",),
    specification="Greg Turk, The PLY Polygon File Format, 1994",
    memory_base_bytes=256 << 20,
    memory_ratio=16.0,
)


class PlyWriterOptions(Struct, frozen=True, kw_only=True):
    """Options of the PLY writer."""

    ply_ascii: Annotated[
        bool,
        Meta(title="PLY as text", description="Write text instead of the smaller binary (little endian) form."),
    ] = False


@hookimpl
def meshhub_readers() -> list[Reader]:
    """Declare the reader: text and both byte orders, polygons, strips, colors, UV, textures from companions."""
    return [
        Reader(
            format=PLY,
            run="meshhub.builtin_plugins.ply.reader:read",
            sniff="meshhub.builtin_plugins.ply.sniff:sniff",
            carries=frozenset({"normals", "uv", "colors", "materials", "textures"}),
        )
    ]


@hookimpl
def meshhub_writers() -> list[Writer]:
    """Declare the writer: one mesh; material colors become vertex colors."""
    return [
        Writer(
            format=PLY,
            merges_parts=True,
            run="meshhub.builtin_plugins.ply.writer:write",
            options=PlyWriterOptions,
            carries=frozenset({"normals", "uv", "colors"}),
        )
    ]
