"""Contracts of meshhub, run against the installed plug-in: one format of each kind of file."""

from __future__ import annotations

from typing import ClassVar

from cell_bricks import hexahedra, tetrahedra, write

from meshhub import Source
from meshhub.testing import ReaderContract

# by hand, as small programs write it
MSH_BRICK = """$MeshFormat
2.2 0 8
$EndMeshFormat
$Nodes
8
1 0 0 0
2 10 0 0
3 10 20 0
4 0 20 0
5 0 0 30
6 10 0 30
7 10 20 30
8 0 20 30
$EndNodes
$Elements
1
1 5 2 1 1 1 2 3 4 5 6 7 8
$EndElements
"""


PAINTED = hexahedra(2)
PAINTED.point_data = {"value": PAINTED.point_data["height"]}
STRIPED = tetrahedra()
STRIPED.cell_data = {"value": STRIPED.cell_data["layer"]}
STRIPED.point_data = {}


class TestVtk(ReaderContract):
    format_id = "vtk"
    brick = write(hexahedra(2), "vtk")
    samples = (write(PAINTED, "vtk"), write(STRIPED, "vtk"))
    options: ClassVar = {"meshio_color_by": "value"}


class TestGmsh(ReaderContract):
    format_id = "gmsh"
    brick = Source.from_bytes(MSH_BRICK.encode(), "brick.msh")
    samples = (write(PAINTED, "gmsh"), write(STRIPED, "gmsh"))
    options: ClassVar = {"meshio_color_by": "value"}


class TestXdmf(ReaderContract):
    format_id = "xdmf"
    brick = write(hexahedra(1), "xdmf")
    samples = (write(PAINTED, "xdmf"), write(STRIPED, "xdmf"))
    options: ClassVar = {"meshio_color_by": "value"}


class TestAbaqus(ReaderContract):
    format_id = "abaqus"
    brick = write(hexahedra(1), "abaqus")


class TestTetgen(ReaderContract):
    format_id = "tetgen"
    brick = write(tetrahedra(), "tetgen")
