"""Contracts of the built-in readers, writers and operations: the tests that plug-in authors inherit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import trimesh

from meshhub import Frame, Registry, Source
from meshhub.model.capabilities import HOST_FRAME, Reader
from meshhub.testing import OperationContract, ReaderContract, WriterContract
from meshhub.testing.sample_scenes import SIZE, png
from meshhub.toolkit.geometry import frame_matrix

WRITTEN_BY_TRIMESH = ("stl", "obj", "ply", "glb", "gltf", "3mf")
"""Formats that trimesh writes, as a program that shares no code with meshhub."""

OPTIONS = {
    "boolean": {"boolean": "union"},
    "optimize": {"optimize_target_faces": 10},
    "cut-plane": {"cut_plane": "z=10", "cut_plane_keep": "low"},
    "reduce-colors": {
        "reduce_colors_palette": "name,hex,td\nWhite,#FFFFFF,4.5\nFire red,#D01020,3.5\n",
        "reduce_colors_wall_mm": 1.2,
    },
    "offset": {"offset_mm": 5},
    "hollow": {"hollow_wall_mm": 3},
    "thicken": {"thicken_mm": 12},
    # the cells of the grid without pymeshlab grow with the gap: for the example, 5 mm, they take six times as long
    "repair": {
        "repair": True,
        "repair_solid": True,
        "repair_self_intersections": True,
        "repair_fragments_mm": 1,
        "repair_wrap_mm": 20,
    },
}
"""Options of operations whose examples do not go together, rename parts, or take long."""


def write_trimesh_brick(reader: Reader) -> Source | None:
    """Return the brick in the reader's frame, written by trimesh; None for a format that trimesh does not write."""
    format_id = reader.format.id
    if format_id not in WRITTEN_BY_TRIMESH:
        return None
    box = trimesh.creation.box(bounds=[[0, 0, 0], SIZE])
    box.apply_transform(frame_matrix(HOST_FRAME, reader.frame or Frame("mm", "z")))
    options = {"merge_buffers": True} if format_id == "gltf" else {}
    content = trimesh.Scene([box]).export(file_type=format_id, **options)
    if isinstance(content, dict):
        companions = {name: data for name, data in content.items() if name != "model.gltf"}
        return Source.from_bytes(content["model.gltf"], "brick.gltf", companions)
    data = content.encode() if isinstance(content, str) else content
    return Source.from_bytes(data, "brick" + reader.format.extensions[0])


def colored_stl() -> Source:
    """Return a red and a blue triangle, colored by the attribute that most programs read."""
    records = np.zeros(2, [("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
    records["corners"][0] = [[0, 0, 0], [10, 0, 0], [0, 10, 0]]
    records["corners"][1] = [[0, 0, 5], [10, 0, 5], [0, 10, 5]]
    records["attribute"] = [0x8000 | 31 << 10, 0x8000 | 31]
    return Source.from_bytes(b"colors".ljust(80) + (2).to_bytes(4, "little") + records.tobytes(), "colored.stl")


def named_stl() -> Source:
    """Return an ASCII STL file with two named solids."""
    facet = "facet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\nendloop\nendfacet\n"
    text = f"solid left\n{facet}endsolid left\nsolid right\n{facet}endsolid right\n"
    return Source.from_bytes(text.encode(), "named.stl")


def textured_ply() -> Source:
    """Return a PLY file with a texture and texture coordinates."""
    text = (
        "ply\nformat ascii 1.0\ncomment TextureFile paint.png\nelement vertex 3\nproperty float x\nproperty float y\n"
        "property float z\nproperty float s\nproperty float t\nelement face 1\n"
        "property list uchar int vertex_indices\nend_header\n0 0 0 0 0\n10 0 0 1 0\n0 10 0 0 1\n3 0 1 2\n"
    )
    return Source.from_bytes(text.encode(), "textured.ply", {"paint.png": png()})


def grouped_obj() -> Source:
    """Return an OBJ file with an object of two groups."""
    groups = (f"g {name}\nv {x} 0 0\nv {x} 1 0\nv {x} 0 1\nf -3 -2 -1\n" for x, name in enumerate(("lid", "base")))
    return Source.from_bytes(("o body\n" + "".join(groups)).encode(), "grouped.obj")


SAMPLES = {"obj": (grouped_obj(),), "stl": (colored_stl(), named_stl()), "ply": (textured_ply(),)}
"""Files with features that the format's own writer does not write."""

DEPENDENT = ("stl", "obj", "ply", "glb", "gltf", "3mf", "repair")
"""Formats and operations that depend on the Python version or on optional packages."""


@pytest.mark.large
def load_for_random_bytes(contract: ReaderContract) -> None:
    """Run the test of random bytes for a reader whose library is loaded for each file."""
    ReaderContract.test_random_bytes_give_a_scene_or_a_coded_error(contract)


def build_contracts() -> dict[str, type]:
    """Return a test class for each built-in reader, writer and operation, by name."""
    classes: dict[str, type] = {}

    def add(contract: type, capability_id: str, **attributes: Any) -> None:
        name = f"Test{contract.__name__.removesuffix('Contract')}_{capability_id.replace('-', '_')}"
        marks = {} if capability_id in DEPENDENT else {"pytestmark": [pytest.mark.once]}
        classes[name] = type(name, (contract,), {"__module__": __name__, **attributes, **marks})

    for reader in (declared.capability for declared in DECLARATIONS.readers):
        format_id = reader.format.id
        samples = SAMPLES.get(format_id, ())
        # a reader with a dependency uses native code, which may crash its process
        attributes = {"brick": write_trimesh_brick(reader), "samples": samples, "may_crash": bool(reader.needs)}
        if reader.needs:
            attributes["test_random_bytes_give_a_scene_or_a_coded_error"] = load_for_random_bytes
        add(ReaderContract, format_id, format_id=format_id, **attributes)
    for writer in DECLARATIONS.writers:
        format_id = writer.capability.format.id
        add(WriterContract, format_id, format_id=format_id)
    for operation in DECLARATIONS.operations:
        operation_id = operation.capability.id
        add(OperationContract, operation_id, operation_id=operation_id, options=OPTIONS.get(operation_id, {}))
    return classes


DECLARATIONS = Registry(entry_points=False).declarations

globals().update(build_contracts())


def test_a_contract_fails_for_a_builtin_that_is_gone() -> None:
    class TestGone(ReaderContract):
        format_id = "gone"

    with pytest.raises(AssertionError, match="a reader of 'gone' is not registered"):
        TestGone().test_a_carried_feature_is_read("names")
