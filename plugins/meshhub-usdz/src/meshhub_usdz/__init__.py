"""USDZ (Universal Scene Description) for meshhub: declarations. Other modules do the work."""

from __future__ import annotations

from meshhub import Feature, Format, Frame, Reader, Writer, hookimpl

USDZ = Format(
    id="usdz",
    label="USDZ",
    extensions=(".usdz", ".usdc", ".usda", ".usd"),
    media_types=("model/vnd.usdz+zip", "model/vnd.pixar.usd"),
    specification="https://openusd.org/release/spec_usdz.html",
)

_CARRIES: frozenset[Feature] = frozenset(
    {"names", "hierarchy", "instances", "normals", "uv", "colors", "materials", "textures", "units"}
)


@hookimpl
def meshhub_readers() -> list[Reader]:
    """Declare the reader; each file states its unit and its up axis."""
    return [
        Reader(
            format=USDZ,
            run="meshhub_usdz.reader:read",
            sniff="meshhub_usdz.sniff:sniff",
            needs=("pxr",),
            install="usd-core",
            carries=_CARRIES,
            frame=None,
        )
    ]


@hookimpl
def meshhub_writers() -> list[Writer]:
    """Declare the writer: meters, Y up, as previews in augmented reality expect."""
    return [
        Writer(
            format=USDZ,
            run="meshhub_usdz.writer:write",
            needs=("pxr",),
            install="usd-core",
            carries=_CARRIES,
            frame=Frame("m", "y"),
        )
    ]
