"""Wavefront OBJ: with materials (MTL) and textures."""

from collections.abc import Iterable
from typing import Annotated, Literal

from msgspec import Meta, Struct

from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import Feature, Format, Reader, Writer

OBJ = Format(
    id="obj",
    label="Wavefront OBJ",
    extensions=(".obj",),
    media_types=("model/obj", "text/prs.wavefront-obj", "application/x-tgif"),
    specification="Wavefront Technologies, Advanced Visualizer Manual, Appendix B1: Object Files, 1992",
    memory_base_bytes=256 << 20,
    memory_ratio=12.0,
)

_CARRIES: frozenset[Feature] = frozenset({"names", "normals", "uv", "colors", "materials", "textures"})


class ObjReaderOptions(Struct, frozen=True, kw_only=True):
    """Options of the OBJ reader."""

    obj_kd: Annotated[
        Literal["multiply", "ignore"],
        Meta(
            title="Gray under textures when reading OBJ",
            description="The diffuse color Kd of a material with a texture, where it is gray: multiply darkens the "
            "texture, as MTL defines it; ignore shows the texture as it is. 3ds Max and old versions of Blender write "
            "such a gray and do not apply it.",
        ),
    ] = "multiply"


class ObjWriterOptions(Struct, frozen=True, kw_only=True):
    """Options of the OBJ writer."""

    obj_up: Annotated[
        Literal["z", "y"],
        Meta(
            title="Up axis of the OBJ",
            description="The axis that points up in the written file: z for printers, y for most viewers.",
        ),
    ] = "z"


@hookimpl
def meshhub_readers() -> Iterable[Reader]:
    """Declare the reader: objects and groups become parts; MTL files and textures are companions."""
    return [
        Reader(
            format=OBJ,
            run="meshhub.builtin_plugins.obj.reader:read",
            sniff="meshhub.builtin_plugins.obj.sniff:sniff",
            options=ObjReaderOptions,
            carries=_CARRIES | {"hierarchy"},
        )
    ]


@hookimpl
def meshhub_writers() -> Iterable[Writer]:
    """Declare the writer: one object per part; MTL files and textures become companions."""
    return [
        Writer(
            format=OBJ,
            run="meshhub.builtin_plugins.obj.writer:write",
            options=ObjWriterOptions,
            carries=_CARRIES,
            up_option="obj_up",
        )
    ]
