"""X3D and VRML for meshhub: declarations. Other modules do the work."""

from __future__ import annotations

from meshhub import Feature, Format, Frame, Magic, Reader, hookimpl

MESHHUB_API = "1.0"

_X3D = Format(
    id="x3d",
    label="X3D (experimental)",
    extensions=(".x3d", ".x3dv", ".x3dz", ".x3dvz"),
    media_types=("model/x3d+xml", "model/x3d-vrml"),
    magic=(Magic(b"#X3D V"),),
    specification="https://www.web3d.org/standards/number/19776-1",
)
_VRML = Format(
    id="vrml",
    label="VRML",
    extensions=(".wrl", ".wrz", ".vrml"),
    media_types=("model/vrml",),
    magic=(Magic(b"#VRML V"),),
    specification="https://www.web3d.org/documents/specifications/14772/V2.0",
)

_CARRIES: frozenset[Feature] = frozenset(
    {"names", "hierarchy", "instances", "normals", "uv", "colors", "materials", "textures", "metadata"}
)


@hookimpl
def meshhub_readers() -> list[Reader]:
    """Declare the readers; an X3D file may state its unit, otherwise numbers are meters."""
    return [
        Reader(
            format=_X3D,
            run="meshhub_x3d.reader:read",
            sniff="meshhub_x3d.sniff:sniff_x3d",
            carries=_CARRIES | {"units"},
            frame=None,
        ),
        Reader(
            format=_VRML,
            run="meshhub_x3d.reader:read",
            sniff="meshhub_x3d.sniff:sniff_vrml",
            carries=_CARRIES,
            frame=Frame("m", "y"),
        ),
    ]
