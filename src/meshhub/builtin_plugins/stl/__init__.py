"""STL: read in binary and ASCII, with several solids and colors; written in binary or ASCII."""

from typing import Annotated

from msgspec import Meta, Struct

from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import Format, Reader, Writer

STL = Format(
    id="stl",
    label="STL",
    extensions=(".stl",),
    media_types=("model/stl", "application/sla", "application/vnd.ms-pki.stl"),
    specification="3D Systems, StereoLithography Interface Specification, 1989",
    memory_base_bytes=256 << 20,
    memory_ratio=12.0,
)


class StlWriterOptions(Struct, frozen=True, kw_only=True):
    """Options of the STL writer."""

    stl_ascii: Annotated[
        bool,
        Meta(
            title="STL as text",
            description="Write text with a named solid for each part, instead of the smaller binary form.",
        ),
    ] = False


@hookimpl
def meshhub_readers() -> list[Reader]:
    """Declare the reader: face colors of binary files become materials, solids of text files become parts."""
    return [
        Reader(
            format=STL,
            run="meshhub.builtin_plugins.stl.reader:read",
            sniff="meshhub.builtin_plugins.stl.sniff:sniff",
            carries=frozenset({"names", "materials"}),
            preload=("meshhub.builtin_plugins.stl.text_parser",),
        )
    ]


@hookimpl
def meshhub_writers() -> list[Writer]:
    """Declare the writer: binary files hold one list of triangles, text files a named solid for each part."""
    return [
        Writer(
            format=STL,
            merges_parts=True,
            run="meshhub.builtin_plugins.stl.writer:write",
            options=StlWriterOptions,
            carries_with={"stl_ascii": frozenset({"names"})},
        )
    ]
