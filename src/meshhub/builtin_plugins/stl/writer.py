"""Writes STL: binary with one body list, or text with a named solid for each part."""

from __future__ import annotations

import numpy as np

from meshhub.builtin_plugins.stl import StlWriterOptions
from meshhub.errors import ConversionFailed, format_number
from meshhub.model.notes import note
from meshhub.model.scene import Float32, Float64, Int32, Scene
from meshhub.model.source import Target
from meshhub.toolkit.columns import shortest, write_rows
from meshhub.toolkit.geometry import face_normals, placed_mesh, soup
from meshhub.toolkit.names import single_line

_TITLE = b"Binary STL by meshhub, millimetres"
"""Neither "solid", which means text, nor "COLOR=", which means colours."""

_RECORD = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attributes", "<u2")])

_AT_ONCE = 1 << 18
"""Faces made ready at a time: instances multiplied out may be many, and the memory of one job is bounded."""

_LOST_MM, _LOST_SHARE = 0.001, 1e-5
"""Rounding is told from a micrometre on, when it is more than a hundred-thousandth of the size too."""

_FACET = (
    "  facet normal ", " ", " ", "\n    outer loop\n      vertex ", " ", " ", "\n      vertex ", " ", " ",
    "\n      vertex ", " ", " ", "\n    endloop\n  endfacet\n",
)  # fmt: skip


def write(scene: Scene, target: Target, options: StlWriterOptions) -> None:
    """The placed scene as STL. Raises ConversionFailed when coordinates leave the range of the format's numbers."""
    if options.stl_ascii:
        _write_text(scene, target)
    else:
        _write_binary(scene, target)


def _write_binary(scene: Scene, target: Target) -> None:
    vertices, faces = soup(scene)
    single = _single(vertices)
    with target.open() as file:
        file.write(_TITLE.ljust(80, b"\0"))
        file.write(len(faces).to_bytes(4, "little"))
        for start in range(0, len(faces), _AT_ONCE):
            some = faces[start : start + _AT_ONCE]
            rows = np.zeros(len(some), _RECORD)
            rows["normal"] = _unit_normals(vertices, some)
            rows["corners"] = single[some]
            file.write(rows.data)


def _write_text(scene: Scene, target: Target) -> None:
    with target.open() as file:
        for part in scene.parts:
            mesh = placed_mesh(scene.meshes[part.mesh], part.transform)
            if len(mesh.faces) == 0:
                continue
            name = single_line(part.name or mesh.name)
            _single(mesh.vertices)
            vertices = shortest(mesh.vertices)
            normals = _unit_normals(mesh.vertices, mesh.faces) + np.float32(0)
            corners = [vertices[:, axis][mesh.faces[:, corner]] for corner in range(3) for axis in range(3)]
            file.write(f"solid {name}".rstrip().encode() + b"\n")
            file.write(write_rows(_FACET, [*normals.T, *corners]))
            file.write(f"endsolid {name}".rstrip().encode() + b"\n")


def _single(vertices: Float64) -> Float32:
    """The vertices as the format's numbers, with a note where they lose shape by it. Raises ConversionFailed."""
    with np.errstate(over="ignore"):
        single = vertices.astype(np.float32)
    if not np.isfinite(single).all():
        raise ConversionFailed(
            "coordinates beyond 3.4e38 mm do not fit into STL; set {input_unit} or {target_height_mm} "
            "to bring them down",
            options=("input_unit", "target_height_mm"),
        )
    lost = float(np.abs(single - vertices).max(initial=0))
    if lost > max(_LOST_MM, _LOST_SHARE * float(np.ptp(vertices, axis=0).max(initial=0))):
        note(
            "far_from_origin",
            f"points moved by up to {format_number(lost, 2)} mm, because the model stands so far from the origin "
            "that the 32-bit numbers of STL cannot hold its details; 'place_on_bed' mends that",
        )
    return single


def _unit_normals(vertices: Float64, faces: Int32) -> Float32:
    """(m, 3) unit normals, zero for degenerate faces."""
    normals = face_normals(vertices, faces)
    length = np.sqrt(np.einsum("ij,ij->i", normals, normals))[:, None]
    unit: Float32 = np.divide(normals, length, out=np.zeros_like(normals), where=length > 0).astype(np.float32)
    return unit
