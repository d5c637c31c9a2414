"""3MF: core, materials and production; units, instances, colors, textures."""

from __future__ import annotations

from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import HOST_FRAME, Feature, Format, Reader, Writer

THREEMF = Format(
    id="3mf",
    label="3MF",
    extensions=(".3mf",),
    media_types=("model/3mf", "application/vnd.ms-package.3dmanufacturing-3dmodel+xml"),
    specification="https://github.com/3MFConsortium/spec_core",
)

_CARRIES: frozenset[Feature] = frozenset({"names", "instances", "uv", "colors", "materials", "textures", "units"})


@hookimpl
def meshhub_readers() -> list[Reader]:
    """Return the reader. It has no fixed frame: Z is up, but each file states its own unit."""
    return [
        Reader(
            format=THREEMF,
            run="meshhub.builtin_plugins.threemf.reader:read",
            sniff="meshhub.builtin_plugins.threemf.sniff:sniff",
            carries=_CARRIES,
            frame=None,
        )
    ]


@hookimpl
def meshhub_writers() -> list[Writer]:
    """Return the writer, which writes millimeters."""
    return [
        Writer(
            format=THREEMF,
            run="meshhub.builtin_plugins.threemf.writer:write",
            carries=_CARRIES,
            frame=HOST_FRAME,
        )
    ]
