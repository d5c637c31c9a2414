"""glTF 2.0: one binary file (GLB), or JSON; read with Draco compression, quantized values and instances."""

from __future__ import annotations

from collections.abc import Iterable

from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import Feature, Format, Frame, Magic, Reader, Writer

_SPECIFICATION = "https://registry.khronos.org/glTF/specs/2.0/glTF-2.0.html"
_FRAME = Frame("m", "y")
"""glTF 2.0 §3.4: meters, right-handed, +Y up."""

_CARRIES: frozenset[Feature] = frozenset(
    {"names", "hierarchy", "instances", "normals", "uv", "colors", "materials", "textures", "units"}
)

_DECODERS = ("DracoPy", "meshoptimizer")
"""Libraries for compressed meshes, which are optional."""

GLB = Format(
    id="glb",
    label="GLB (binary glTF)",
    extensions=(".glb",),
    media_types=("model/gltf-binary",),
    magic=(Magic(b"glTF"),),
    specification=_SPECIFICATION,
    memory_base_bytes=256 << 20,
    memory_ratio=20.0,
)
GLTF = Format(
    id="gltf",
    label="glTF",
    extensions=(".gltf",),
    media_types=("model/gltf+json",),
    specification=_SPECIFICATION,
    memory_base_bytes=256 << 20,
    memory_ratio=20.0,
)


@hookimpl
def meshhub_readers() -> Iterable[Reader]:
    """Return the readers of `glb` and `gltf`, which share one function."""
    return [
        Reader(
            format=GLB,
            run="meshhub.builtin_plugins.gltf.reader:read",
            preload=_DECODERS,
            carries=_CARRIES,
            frame=_FRAME,
        ),
        Reader(
            format=GLTF,
            run="meshhub.builtin_plugins.gltf.reader:read",
            preload=_DECODERS,
            carries=_CARRIES,
            frame=_FRAME,
            sniff="meshhub.builtin_plugins.gltf.sniff:sniff",
        ),
    ]


@hookimpl
def meshhub_writers() -> Iterable[Writer]:
    """Return the writers of `glb` and `gltf`."""
    return [
        Writer(format=GLB, run="meshhub.builtin_plugins.gltf.writer:write_glb", carries=_CARRIES, frame=_FRAME),
        Writer(format=GLTF, run="meshhub.builtin_plugins.gltf.writer:write_gltf", carries=_CARRIES, frame=_FRAME),
    ]
