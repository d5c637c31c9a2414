"""FBX for meshhub: the declaration of a reader. Other modules do the work."""

from __future__ import annotations

from meshhub import Feature, Format, Magic, Reader, hookimpl

FBX = Format(
    id="fbx",
    label="FBX",
    extensions=(".fbx",),
    media_types=("application/vnd.autodesk.fbx",),
    magic=(Magic(b"Kaydara FBX Binary  \0"),),
    specification="https://help.autodesk.com/view/FBX/2020/ENU/",
)

_CARRIES: frozenset[Feature] = frozenset(
    {"names", "hierarchy", "instances", "normals", "uv", "colors", "materials", "textures", "units"}
)


@hookimpl
def meshhub_readers() -> list[Reader]:
    """Declare the reader; each file states its unit and its axes."""
    return [
        Reader(
            format=FBX,
            run="meshhub_fbx.reader:read",
            sniff="meshhub_fbx.sniff:sniff",
            needs=("cmeel",),
            install="cmeel-assimp",
            carries=_CARRIES,
            frame=None,
        )
    ]
