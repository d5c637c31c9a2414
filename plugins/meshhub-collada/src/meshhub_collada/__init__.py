"""COLLADA (DAE) for meshhub: declarations. Other modules do the work."""

from __future__ import annotations

from meshhub import Feature, Format, Frame, Reader, Writer, hookimpl

COLLADA = Format(
    id="dae",
    label="COLLADA",
    extensions=(".dae", ".zae"),
    media_types=("model/vnd.collada+xml",),
    specification="https://www.khronos.org/files/collada_spec_1_5.pdf",
)

_CARRIES: frozenset[Feature] = frozenset(
    {"names", "hierarchy", "instances", "normals", "uv", "colors", "materials", "textures", "units"}
)


@hookimpl
def meshhub_readers() -> list[Reader]:
    """Declare the reader; each file states its unit and its up axis."""
    return [
        Reader(
            format=COLLADA,
            run="meshhub_collada.reader:read",
            sniff="meshhub_collada.sniff:sniff",
            carries=_CARRIES,
            frame=None,
        )
    ]


@hookimpl
def meshhub_writers() -> list[Writer]:
    """Declare the writer: COLLADA 1.4.1 in millimeters, Z up; textures are companions."""
    return [
        Writer(format=COLLADA, run="meshhub_collada.writer:write", carries=_CARRIES, frame=Frame("mm", "z")),
    ]
