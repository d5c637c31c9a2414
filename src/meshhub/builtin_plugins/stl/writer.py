"""STL writer: binary with one list of triangles, or text with a named solid for each part."""

from __future__ import annotations

import numpy as np

from meshhub.builtin_plugins.stl import StlWriterOptions
from meshhub.errors import ConversionFailed, format_number
from meshhub.model.notes import note
from meshhub.model.progress import track
from meshhub.model.scene import Float32, Float64, Int32, Scene
from meshhub.model.source import Target
from meshhub.toolkit.geometry import face_normals, placed_mesh, soup, unit_vectors
from meshhub.toolkit.names import single_line

_TITLE = b"Binary STL by meshhub, millimetres"
"""Must not start with "solid", which marks text, or contain "COLOR=", which marks colors."""

_RECORD = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attributes", "<u2")])

_MAX_FACES_PER_BLOCK = 1 << 16
"""Faces prepared at a time; bounds the memory, because instances can multiply the faces of a scene."""

_MIN_NOTED_SHIFT_MM = 0.001
"""Millimeters; float32 rounding below 1 µm is irrelevant for printing."""

_MIN_NOTED_SHIFT_RATIO = 1e-5
"""Share of the model's size; float32 rounding below it is invisible."""

_FACET = (
    "  facet normal ", " ", " ", "\n    outer loop\n      vertex ", " ", " ", "\n      vertex ", " ", " ",
    "\n      vertex ", " ", " ", "\n    endloop\n  endfacet\n",
)  # fmt: skip


def write(scene: Scene, target: Target, options: StlWriterOptions) -> None:
    """Write the placed parts of a scene as STL.

    Raises:
        ConversionFailed: A coordinate exceeds the range of float32.
    """
    if options.stl_ascii:
        _write_text(scene, target)
    else:
        _write_binary(scene, target)


def _write_binary(scene: Scene, target: Target) -> None:
    vertices, faces = soup(scene)
    rounded = _round_to_float32(vertices)
    with target.open() as file:
        file.write(_TITLE.ljust(80, b"\0"))
        file.write(len(faces).to_bytes(4, "little"))
        for start in track(range(0, len(faces), _MAX_FACES_PER_BLOCK)):
            block = faces[start : start + _MAX_FACES_PER_BLOCK]
            rows = np.zeros(len(block), _RECORD)
            rows["normal"] = _unit_normals(vertices, block)
            rows["corners"] = rounded[block]
            file.write(rows.data)


def _write_text(scene: Scene, target: Target) -> None:
    from meshhub.toolkit.columns import shortest, write_rows

    with target.open() as file:
        for part in track(scene.parts):
            mesh = placed_mesh(scene.meshes[part.mesh], part.transform)
            if len(mesh.faces) == 0:
                continue
            name = single_line(part.name or mesh.name)
            _round_to_float32(mesh.vertices)  # text could hold more digits, but readers round them to float32
            vertices = shortest(mesh.vertices)
            normals = _unit_normals(mesh.vertices, mesh.faces) + np.float32(0)
            corners = [vertices[:, axis][mesh.faces[:, corner]] for corner in range(3) for axis in range(3)]
            file.write(f"solid {name}".rstrip().encode() + b"\n")
            file.write(write_rows(_FACET, [*normals.T, *corners]))
            file.write(f"endsolid {name}".rstrip().encode() + b"\n")


def _round_to_float32(vertices: Float64) -> Float32:
    """Round the vertices to float32, and note a visible loss. Raises ConversionFailed beyond its range."""
    with np.errstate(over="ignore"):
        rounded = vertices.astype(np.float32)
    if not np.isfinite(rounded).all():
        raise ConversionFailed(
            "coordinates beyond 3.4e38 mm do not fit into STL; set {input_unit} or {target_height_mm} to reduce them",
            options=("input_unit", "target_height_mm"),
        )
    # axis by axis, because the differences of all take as much memory as the mesh
    shift = max(float(np.abs(rounded[:, axis] - vertices[:, axis]).max(initial=0)) for axis in range(3))
    size = float(np.ptp(vertices, axis=0).max(initial=0))
    if shift > max(_MIN_NOTED_SHIFT_MM, _MIN_NOTED_SHIFT_RATIO * size):
        note(
            "far_from_origin",
            f"points moved by up to {format_number(shift, 2)} mm: the model is too far from the origin for the "
            "32-bit numbers of STL; use {place_on_bed}",
            options=("place_on_bed",),
        )
    return rounded


def _unit_normals(vertices: Float64, faces: Int32) -> Float32:
    """Return the (m, 3) unit normals of the faces, zero for degenerate faces."""
    return unit_vectors(face_normals(vertices, faces)).astype(np.float32)
