"""The brick of the conformance kit, of 10 × 20 × 30 mm, in cells of every type."""

from __future__ import annotations

import tempfile
from pathlib import Path

import meshio
import numpy as np
from meshhub_meshio import FORMATS

from meshhub import Source

EXTENSIONS = {row.id: row.extensions[0] for row in FORMATS}
SIZE = np.array([10.0, 20.0, 30.0])

# corners in the order of hexahedra of VTK
CORNERS = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]], np.float64)
TETRAHEDRA = np.array([[0, 1, 2, 6], [0, 2, 3, 6], [0, 3, 7, 6], [0, 7, 4, 6], [0, 4, 5, 6], [0, 5, 1, 6]])


def hexahedra(count: int) -> meshio.Mesh:
    """Return the brick divided into count³ hexahedra, with data at points and in cells."""
    steps = np.linspace(0, 1, count + 1)
    points = np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), axis=-1).reshape(-1, 3)
    first = np.arange((count + 1) ** 3).reshape(count + 1, count + 1, count + 1)[:-1, :-1, :-1].ravel()
    offsets = CORNERS.astype(int) @ [(count + 1) ** 2, count + 1, 1]
    cells = first[:, None] + offsets
    return meshio.Mesh(
        points * SIZE,
        [("hexahedron", cells)],
        point_data={"height": points[:, 2]},
        cell_data={"layer": [np.arange(len(cells)) % count]},
    )


def tetrahedra(count: int = 1) -> meshio.Mesh:
    """Return the brick in tetrahedra, six for each hexahedron."""
    mesh = hexahedra(count)
    cells = mesh.cells[0].data[:, TETRAHEDRA].reshape(-1, 4)
    return meshio.Mesh(
        mesh.points, [("tetra", cells)], mesh.point_data, {"layer": [np.repeat(mesh.cell_data["layer"][0], 6)]}
    )


def write(mesh: meshio.Mesh, format_id: str) -> Source:
    """Return a mesh as a file that meshio wrote, with its companions."""
    extension = EXTENSIONS[format_id]
    if format_id in ("abaqus", "nastran", "su2", "tetgen", "netgen", "med", "medit", "flac3d"):
        # these cannot hold named data
        mesh = meshio.Mesh(mesh.points, mesh.cells)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"brick{extension}")
        meshio.write(path, mesh, file_format=format_id)
        companions: dict[str, Path | bytes] = {
            file.name: file.read_bytes() for file in Path(folder).iterdir() if file != path
        }
        return Source.from_bytes(path.read_bytes(), path.name, companions)
