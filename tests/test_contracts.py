"""Every built-in reader, writer and operation keeps the contracts that third parties inherit."""

from __future__ import annotations

from typing import Any

import numpy as np
import trimesh

from meshhub import Frame, Registry, Source
from meshhub.model.capabilities import HOST_FRAME, Reader
from meshhub.testing import OperationContract, ReaderContract, WriterContract
from meshhub.testing.sample_scenes import SIZE, png
from meshhub.toolkit.geometry import frame_matrix

TRIMESH = ("stl", "obj", "ply", "glb", "gltf", "3mf")
"""The formats that trimesh writes, as a program that knows nothing of ours."""


def brick_of_trimesh(reader: Reader) -> Source | None:
    """The brick in the frame that the reader states, written by trimesh; None for what it cannot write."""
    name = reader.format.id
    if name not in TRIMESH:
        return None
    box = trimesh.creation.box(bounds=[[0, 0, 0], SIZE])
    box.apply_transform(frame_matrix(HOST_FRAME, reader.frame or Frame("mm", "z")))
    made = trimesh.Scene([box]).export(file_type=name, **({"merge_buffers": True} if name == "gltf" else {}))
    if isinstance(made, dict):
        return Source.from_bytes(made["model.gltf"], "brick.gltf", {k: v for k, v in made.items() if k != "model.gltf"})
    return Source.from_bytes(made.encode() if isinstance(made, str) else made, "brick" + reader.format.extensions[0])


def coloured_stl() -> Source:
    """Two triangles in red and blue, by the attribute that most programs read."""
    record = np.zeros(2, [("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
    record["corners"][0] = [[0, 0, 0], [10, 0, 0], [0, 10, 0]]
    record["corners"][1] = [[0, 0, 5], [10, 0, 5], [0, 10, 5]]
    record["attribute"] = [0x8000 | 31 << 10, 0x8000 | 31]
    return Source.from_bytes(b"colours".ljust(80) + (2).to_bytes(4, "little") + record.tobytes(), "coloured.stl")


def named_stl() -> Source:
    facet = "facet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\nendloop\nendfacet\n"
    text = f"solid left\n{facet}endsolid left\nsolid right\n{facet}endsolid right\n"
    return Source.from_bytes(text.encode(), "named.stl")


def textured_ply() -> Source:
    text = (
        "ply\nformat ascii 1.0\ncomment TextureFile paint.png\nelement vertex 3\nproperty float x\nproperty float y\n"
        "property float z\nproperty float s\nproperty float t\nelement face 1\n"
        "property list uchar int vertex_indices\nend_header\n0 0 0 0 0\n10 0 0 1 0\n0 10 0 0 1\n3 0 1 2\n"
    )
    return Source.from_bytes(text.encode(), "textured.ply", {"paint.png": png()})


MORE = {"stl": (coloured_stl(), named_stl()), "ply": (textured_ply(),)}
"""Files of what a format's own writer does not write."""


def contracts() -> dict[str, type]:
    """A class of tests for everything that is registered."""
    have = Registry(entry_points=False).declarations
    made: dict[str, type] = {}

    def add(kind: type, identity: str, **attributes: Any) -> None:
        name = f"Test{kind.__name__.removesuffix('Contract')}_{identity.replace('-', '_')}"
        made[name] = type(name, (kind,), {"__module__": __name__, **attributes})

    for reader in have.readers:
        name = reader.capability.format.id
        brick = brick_of_trimesh(reader.capability)
        # what rests on a foreign kernel may take its process along
        may_crash = bool(reader.capability.needs)
        add(ReaderContract, name, format_id=name, brick=brick, samples=MORE.get(name, ()), may_crash=may_crash)
    for writer in have.writers:
        name = writer.capability.format.id
        add(WriterContract, name, format_id=name)
    for operation in have.operations:
        name = operation.capability.id
        add(OperationContract, name, operation_id=name)
    return made


globals().update(contracts())


def test_every_capability_has_a_contract() -> None:
    have = Registry(entry_points=False).declarations
    found = [name for name in globals() if name.startswith("Test")]
    assert len(found) == len(have.readers) + len(have.writers) + len(have.operations) > 15
