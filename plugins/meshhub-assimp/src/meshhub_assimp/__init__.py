"""FBX, 3DS and other formats of modeling programs for meshhub: one table of formats. Other modules do the work."""

from __future__ import annotations

from typing import NamedTuple

from meshhub import Feature, Format, Frame, Magic, Reader, Writer, hookimpl
from meshhub.model.capabilities import Unit, Up

MESHHUB_API = "1.0"

FBX = Format(
    id="fbx",
    label="FBX",
    extensions=(".fbx",),
    media_types=("application/vnd.autodesk.fbx",),
    magic=(Magic(b"Kaydara FBX Binary  \0"),),
    specification="https://help.autodesk.com/view/FBX/2020/ENU/",
)

_3DS = Format(
    id="3ds",
    label="3D Studio",
    extensions=(".3ds",),
    media_types=("application/x-3ds",),
    specification="3D Studio File Format (3DS), Autodesk 1997",
)
_LWO = Format(
    id="lwo",
    label="LightWave",
    extensions=(".lwo", ".lxo"),
    magic=(Magic(b"LWO2", 8), Magic(b"LWOB", 8), Magic(b"LXOB", 8)),
    specification="LightWave Object File Format (LWO2), NewTek 2001",
)
_MS3D = Format(
    id="ms3d",
    label="MilkShape 3D",
    extensions=(".ms3d",),
    magic=(Magic(b"MS3D000000"),),
    specification="MilkShape 3D File Format 1.4",
)
_AC3D = Format(
    id="ac3d",
    label="AC3D",
    extensions=(".ac", ".ac3d"),
    magic=(Magic(b"AC3D"), Magic(b"AC3D", 3)),
    specification="https://www.inivis.com/ac3d/man/ac3dfileformat.html",
)
_B3D = Format(
    id="b3d",
    label="Blitz3D",
    extensions=(".b3d",),
    magic=(Magic(b"BB3D"),),
    specification="Blitz3D File Format (B3D) 0.01",
)
_DIRECTX = Format(
    id="directx",
    label="DirectX",
    extensions=(".x",),
    magic=(Magic(b"xof 03"),),
    specification="https://learn.microsoft.com/windows/win32/direct3d9/dx9-graphics-reference-x-file-format",
)

_BASE: frozenset[Feature] = frozenset({"names", "normals", "uv", "materials", "textures"})
_NESTED = _BASE | {"hierarchy"}


class Row(NamedTuple):
    """Format, which assimp reads as Y up.

    format: declaration
    unit: unit of the format, or of the numbers of a format without one; None: each file states its own
    carries: features
    generated_names: regular expression of names of nodes that assimp makes up
    has_sniffer: whether some files have no signature
    up: up axis of the files; without a unit of the format, each file states its own
    """

    format: Format
    unit: Unit | None
    carries: frozenset[Feature]
    generated_names: str = r"\Z"
    has_sniffer: bool = False
    up: Up = "y"


ROWS = (
    # assimp inserts nodes for pivots
    Row(FBX, None, _NESTED | {"instances", "colors", "units"}, r".*_\$AssimpFbx\$_", has_sniffer=True),
    Row(_3DS, "mm", _NESTED, r"<3DS\w*Root>|3DSMesh_\d+\Z", has_sniffer=True, up="z"),
    Row(_LWO, "m", _NESTED | {"colors"}, r"Pivot-|Layer_\d+\Z"),
    Row(_MS3D, "mm", _BASE - {"names"}, "<MS3DRoot>"),
    Row(_AC3D, "mm", _NESTED, r"ACWorld_\d+\Z"),
    Row(_B3D, "mm", _NESTED | {"colors"}),
    Row(_DIRECTX, "mm", _NESTED | {"colors"}, r"\$dummy_\w+\Z"),
)
"""Formats that are read."""


@hookimpl
def meshhub_readers() -> list[Reader]:
    """Declare a reader for each row of the table."""
    return [
        Reader(
            format=row.format,
            run=f"meshhub_assimp.reader:read_{row.format.id}",
            sniff=f"meshhub_assimp.sniff:sniff_{row.format.id}" if row.has_sniffer else None,
            needs=("cmeel",),
            install="cmeel-assimp",
            carries=row.carries,
            frame=None if row.unit is None else Frame(row.unit, row.up),
        )
        for row in ROWS
    ]


@hookimpl
def meshhub_writers() -> list[Writer]:
    """Declare the writer of FBX, which needs no library."""
    return [
        Writer(
            format=FBX,
            run="meshhub_assimp.writer:write",
            carries=_NESTED | {"instances", "colors", "units"},
            frame=Frame("cm", "y"),
        )
    ]
