"""Find the surface of a mesh of a simulation, which VTK, Gmsh, MEDCoupling, Netgen, FreeCAD or a plain reader reads."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import vtk
from numpy.typing import NDArray
from stl import write_stl
from vtk.util.numpy_support import vtk_to_numpy


def read_vtk(path: Path) -> vtk.vtkDataSet:
    readers = {
        ".vtk": vtk.vtkDataSetReader,
        ".vtu": vtk.vtkXMLUnstructuredGridReader,
        ".avs": vtk.vtkAVSucdReader,
    }
    if path.suffix in (".xdmf", ".xmf"):
        from vtkmodules.vtkIOXdmf2 import vtkXdmfReader

        reader = vtkXdmfReader()
    else:
        reader = readers[path.suffix]()
    reader.SetFileName(str(path))
    reader.Update()
    output = reader.GetOutputDataObject(0)
    if not isinstance(output, vtk.vtkCompositeDataSet):
        return output
    append = vtk.vtkAppendFilter()
    walk = output.NewIterator()
    while not walk.IsDoneWithTraversal():
        append.AddInputData(walk.GetCurrentDataObject())
        walk.GoToNextItem()
    append.Update()
    return append.GetOutput()


def read_gmsh(path: Path) -> vtk.vtkDataSet:
    import gmsh

    if not gmsh.isInitialized():
        gmsh.initialize(interruptible=False)
    gmsh.clear()
    gmsh.option.setNumber("General.Terminal", 0)
    gmsh.option.setNumber("Mesh.SaveAll", 1)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "mesh.vtk"
        if path.suffix in (".nas", ".fem"):
            # Gmsh knows Nastran by one extension
            path = shutil.copy(path, Path(folder) / "mesh.bdf")
        gmsh.merge(str(path))
        gmsh.write(str(out))
        return read_vtk(out)


def read_med(path: Path) -> vtk.vtkDataSet:
    import medcoupling

    append = vtk.vtkAppendFilter()
    with tempfile.TemporaryDirectory() as folder:
        for name in medcoupling.GetMeshNames(str(path)):
            mesh = medcoupling.MEDFileMesh.New(str(path), name)
            for level in mesh.getNonEmptyLevels():
                out = Path(folder) / f"{name.strip()}{level}.vtu"
                mesh[level].writeVTK(str(out))
                append.AddInputData(read_vtk(out))
        append.Update()
    return append.GetOutput()


def read_netgen(path: Path) -> vtk.vtkDataSet:
    from netgen.meshing import Mesh

    mesh = Mesh()
    mesh.Load(str(path))
    points = np.array([point.p for point in mesh.Points()]).reshape(-1, 3)
    kinds = {(2, 3): 5, (2, 4): 9, (3, 4): 10, (3, 5): 14, (3, 6): 13, (3, 8): 12}
    cells: dict[int, list[list[int]]] = {}
    for dimension, elements in ((2, mesh.Elements2D()), (3, mesh.Elements3D())):
        for element in elements:
            corners = [point.nr - 1 for point in element.vertices]
            cells.setdefault(kinds[dimension, len(corners)], []).append(corners)
    return _grid(points, cells)


def read_freecad(path: Path) -> vtk.vtkDataSet:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "mesh.vtk"
        command = ["freecadcmd", str(Path(__file__).with_name("abaqus_to_vtk.py"))]
        places = {"JUDGED_FILE": str(path), "JUDGED_RESULT": str(out)}
        silent = subprocess.DEVNULL
        subprocess.run(command, env=os.environ | places, stdin=silent, stdout=silent, stderr=silent, check=False)
        return read_vtk(out)


def read_plain(path: Path) -> vtk.vtkDataSet:
    """Read SU2, FLAC3D and TetGen by their specifications; no other program that reads them is a package."""
    return {".su2": _read_su2, ".f3grid": _read_flac, ".ele": _read_tetgen}[path.suffix](path)


def _read_su2(path: Path) -> vtk.vtkDataSet:
    lines = [line.split("%")[0].split() for line in path.read_text().splitlines()]
    words = [line for line in lines if line]
    cells: dict[int, list[list[int]]] = {}
    points: list[list[float]] = []
    dimension = count = 0
    name = ""
    for line in words:
        if "=" in line[0] or (len(line) > 1 and line[1].startswith("=")):
            name, value, *_ = re.split(r"\s*=\s*", " ".join(line))
            dimension = int(value) if name == "NDIME" else dimension
            count = int(value.split()[0]) if name in ("NPOIN", "NELEM", "MARKER_ELEMS") else 0
        elif count:
            count -= 1
            if name == "NPOIN":
                points.append([float(word) for word in line[:dimension]] + [0.0] * (3 - dimension))
            elif (kind := int(line[0])) in _CORNERS:
                cells.setdefault(kind, []).append([int(word) for word in line[1 : 1 + _CORNERS[kind]]])
    return _grid(np.array(points), cells)


_CORNERS = {5: 3, 9: 4, 10: 4, 12: 8, 13: 6, 14: 5}
"""Number of corners for each kind of cell, which SU2 numbers like VTK."""

_FLAC_ORDER = {
    "T4": (10, [0, 1, 2, 3]), "P5": (14, [0, 1, 4, 2, 3]), "W6": (13, [0, 1, 3, 2, 4, 5]),
    "B8": (12, [0, 1, 4, 2, 3, 6, 7, 5]), "T3": (5, [0, 1, 2]), "Q4": (9, [0, 1, 2, 3]),
}  # fmt: skip
"""Kind of VTK, and the corners of FLAC3D in the order of VTK."""


def _read_flac(path: Path) -> vtk.vtkDataSet:
    points: dict[int, list[float]] = {}
    cells: dict[int, list[list[int]]] = {}
    for line in path.read_text().splitlines():
        words = line.split()
        if words[:1] == ["G"]:
            points[int(words[1])] = [float(word) for word in words[2:5]]
        elif words[:1] in (["Z"], ["F"]):
            kind, order = _FLAC_ORDER[words[1]]
            corners = [int(word) for word in words[3 : 3 + len(order)]]
            cells.setdefault(kind, []).append([corners[k] for k in order])
    number = {key: k for k, key in enumerate(points)}
    return _grid(
        np.array(list(points.values())),
        {kind: [[number[key] for key in cell] for cell in group] for kind, group in cells.items()},
    )


def _read_tetgen(path: Path) -> vtk.vtkDataSet:
    nodes, elements = (
        [row for line in each.read_text().splitlines() if (row := line.split("#")[0].split())]
        for each in (path.with_suffix(".node"), path)
    )
    points = np.array([row[1:4] for row in nodes[1 : 1 + int(nodes[0][0])]], float)
    first = int(nodes[1][0])
    corners = np.array([row[1:5] for row in elements[1 : 1 + int(elements[0][0])]], int) - first
    return _grid(points, {10: corners.tolist()})


def _grid(points: NDArray[np.float64], cells: dict[int, list[list[int]]]) -> vtk.vtkDataSet:
    grid = vtk.vtkUnstructuredGrid()
    shared = vtk.vtkPoints()
    shared.SetDataTypeToDouble()
    for point in points:
        shared.InsertNextPoint(*point)
    grid.SetPoints(shared)
    for kind, group in cells.items():
        for cell in group:
            grid.InsertNextCell(kind, len(cell), cell)
    return grid


def find_surface(data: vtk.vtkDataSet) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the outer side of cells, and the surface cells that are no side of a volume."""
    if isinstance(data, vtk.vtkUnstructuredGrid):
        data = _drop_sides(data)
    surface = vtk.vtkDataSetSurfaceFilter()
    surface.SetInputData(data)
    triangles = vtk.vtkTriangleFilter()
    triangles.SetInputConnection(surface.GetOutputPort())
    triangles.PassVertsOff()
    triangles.PassLinesOff()
    triangles.Update()
    mesh = triangles.GetOutput()
    if not mesh.GetNumberOfPolys():
        return np.empty((0, 3)), np.empty((0, 3), np.int64)
    faces = vtk_to_numpy(mesh.GetPolys().GetConnectivityArray()).reshape(-1, 3)
    return vtk_to_numpy(mesh.GetPoints().GetData()).astype(float), faces.astype(np.int64)


def _drop_sides(grid: vtk.vtkUnstructuredGrid) -> vtk.vtkUnstructuredGrid:
    dimensions = np.array([grid.GetCell(k).GetCellDimension() for k in range(grid.GetNumberOfCells())])
    if not ((dimensions == 3).any() and (dimensions == 2).any()):
        return grid
    starts = vtk_to_numpy(grid.GetCells().GetOffsetsArray())
    corners = vtk_to_numpy(grid.GetCells().GetConnectivityArray())
    cell_of = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    is_inside = np.zeros(grid.GetNumberOfPoints(), bool)
    is_inside[corners[dimensions[cell_of] == 3]] = True
    is_side = np.logical_and.reduceat(is_inside[corners], starts[:-1]) & (dimensions == 2)
    keep = vtk.vtkIdList()
    for k in np.flatnonzero(~is_side):
        keep.InsertNextId(int(k))
    extract = vtk.vtkExtractCells()
    extract.SetInputData(grid)
    extract.SetCellList(keep)
    extract.Update()
    return extract.GetOutput()


READERS: dict[str, Callable[[Path], vtk.vtkDataSet]] = {
    "vtk": read_vtk,
    "gmsh": read_gmsh,
    "med": read_med,
    "netgen": read_netgen,
    "freecad": read_freecad,
    "plain": read_plain,
}


def read(source: str, target: str, reader: str) -> None:
    write_stl(target, [find_surface(READERS[reader](Path(source)))])
