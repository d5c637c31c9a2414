"""Boxes of rhino3dm; as a program: write a solid with render meshes of some of its faces."""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np
import rhino3dm

QUADS = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))


def make_box(size: tuple[float, float, float] = (10, 20, 30), quads: tuple[tuple[int, ...], ...] = QUADS) -> Any:
    """Return a mesh of a corner at the origin, closed with all quads."""
    mesh = rhino3dm.Mesh()
    for corner in np.ndindex(2, 2, 2):
        mesh.Vertices.Add(*(float(value) for value in np.array(corner) * size))
    for quad in quads:
        mesh.Faces.AddFace(*quad)
    return mesh


if __name__ == "__main__":
    brep = rhino3dm.Brep.CreateFromMesh(make_box(), True)
    meshes = {number: make_box(quads=(QUADS[number],)) for number in map(int, sys.argv[2:])}
    for number, mesh in meshes.items():
        mesh.Vertices.CullUnused()
        brep.Faces[number].SetMesh(mesh, rhino3dm.MeshType.Render)
    file = rhino3dm.File3dm()
    file.Objects.AddBrep(brep)
    file.Write(sys.argv[1], 7)
    # both the solid and Python would free the meshes
    os._exit(0)
