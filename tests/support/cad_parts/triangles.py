"""Triangles of solids, by OpenCASCADE and by gmsh."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np


def triangulate_occ(shape: Any, deviation_mm: float, angle_rad: float) -> np.ndarray:
    """Return (n, 3, 3) the triangles of a shape by OpenCASCADE."""
    from OCP.BRepMesh import BRepMesh_IncrementalMesh
    from OCP.StlAPI import StlAPI_Writer

    BRepMesh_IncrementalMesh(shape, deviation_mm, False, angle_rad, False)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "part.stl")
        writer = StlAPI_Writer()
        writer.ASCIIMode = False
        if not writer.Write(shape, str(path)):
            raise ValueError("OpenCASCADE wrote no triangles")
        return _read_stl(path.read_bytes())


def triangulate_gmsh(shape: Any, segments: int) -> np.ndarray:
    """Return (n, 3, 3) the triangles of a shape by gmsh, with some segments for each full circle.

    Raises:
        ImportError: gmsh is not installed.
        ValueError: gmsh failed.
    """
    import gmsh
    from OCP.BRepTools import BRepTools

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "part.brep")
        BRepTools.Write_s(shape, str(path))
        gmsh.initialize(interruptible=False)
        try:
            gmsh.option.setNumber("General.Terminal", 0)
            gmsh.option.setNumber("Mesh.MeshSizeFromCurvature", segments)
            gmsh.option.setNumber("Mesh.MeshSizeMax", 6.0)
            gmsh.option.setNumber("Mesh.MeshSizeMin", 0.2)
            gmsh.model.occ.importShapes(str(path))
            gmsh.model.occ.synchronize()
            gmsh.model.mesh.generate(2)
            tags, positions, _ = gmsh.model.mesh.getNodes()
            _, corners = gmsh.model.mesh.getElementsByType(2)
        except Exception as error:
            raise ValueError(f"gmsh: {error}") from error
        finally:
            gmsh.finalize()
    place = np.zeros(int(tags.max()) + 1, np.intp)
    place[tags] = np.arange(len(tags))
    triangles: np.ndarray = positions.reshape(-1, 3)[place[corners]].reshape(-1, 3, 3)
    return triangles


_STL_ROW = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
"""A triangle of a binary STL file."""


def _read_stl(data: bytes) -> np.ndarray:
    return np.frombuffer(data, _STL_ROW, offset=84)["corners"].astype(np.float64)


def write_stl(path: str, triangles: np.ndarray) -> None:
    """Write (n, 3, 3) triangles as binary STL."""
    rows = np.zeros(len(triangles), _STL_ROW)
    rows["corners"] = triangles
    Path(path).write_bytes(bytes(80) + np.uint32(len(rows)).tobytes() + rows.tobytes())
