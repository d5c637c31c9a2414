"""Formats of `plugins/`, and the programs that judge how they are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.plugin_formats.measures import Measures, measure_base, measure_filament, measure_surface


@dataclass(frozen=True)
class Case:
    """Distribution, id and folder of a format, and its judges; the second decides where the first reads otherwise."""

    distribution: str
    format_id: str
    folder: str
    judges: tuple[str, ...]
    is_written: bool = False
    measure: Callable[[Path], Measures | None] = measure_surface
    options: dict[str, object] = field(default_factory=dict)


# finer than TOLERANCE_RATIO: Gmsh integrates over the true surfaces
_FINE_BREP = {"brep_deviation_mm": 1e-3, "brep_angle_degrees": 2}
_FINE_IGES = {"iges_deviation_mm": 1e-3, "iges_angle_degrees": 2}

CASES = (
    Case("amf", "amf", "amf", ("PrusaSlicer", "assimp"), True),
    Case("assimp", "fbx", "fbx", ("Blender", "three.js"), True),
    Case("assimp", "3ds", "3ds", ("MeshLab", "three.js", "OpenSceneGraph")),
    Case("x3d", "x3d", "x3d", ("MeshLab", "assimp")),
    Case("x3d", "vrml", "vrml", ("MeshLab", "three.js")),
    Case("assimp", "lwo", "lwo", ("assimp", "three.js", "OpenSceneGraph")),
    Case("assimp", "ms3d", "ms3d", ("assimp",)),
    Case("assimp", "ac3d", "ac3d", ("OpenSceneGraph", "assimp")),
    Case("assimp", "b3d", "b3d", ("assimp",)),
    Case("assimp", "directx", "directx", ("assimp", "OpenSceneGraph")),
    Case("cad", "brep", "brep", ("Gmsh, solids", "FreeCAD, solids"), True, options=_FINE_BREP),
    Case("cad", "dxf", "dxf", ("trimesh",), False, measure_base, {"dxf_tolerance_mm": 1e-3}),
    Case("cad", "iges", "iges", ("Gmsh, solids", "FreeCAD, solids"), True, options=_FINE_IGES),
    Case("cad", "svg", "svg", ("resvg", "trimesh"), False, measure_base, {"svg_tolerance_mm": 1e-3}),
    Case("collada", "dae", "dae", ("assimp", "three.js", "Blender"), True),
    Case("gcode", "gcode", "gcode", ("slicer", "Printrun"), False, measure_filament),
    Case("ifc", "ifc", "ifc", ("web-ifc",)),
    Case("meshio", "vtk", "vtk", ("VTK",)),
    Case("meshio", "vtu", "vtu", ("VTK",)),
    Case("meshio", "gmsh", "gmsh", ("Gmsh",)),
    Case("meshio", "abaqus", "inp", ("FreeCAD",)),
    Case("meshio", "nastran", "bdf", ("Gmsh",)),
    Case("meshio", "med", "med", ("MEDCoupling", "Gmsh")),
    Case("meshio", "xdmf", "xdmf", ("VTK",)),
    Case("meshio", "tetgen", "tetgen", ("plain reader",)),
    Case("meshio", "su2", "su2", ("plain reader",)),
    Case("meshio", "medit", "medit", ("Gmsh",)),
    Case("meshio", "netgen", "netgen", ("Netgen",)),
    Case("meshio", "avsucd", "avs", ("VTK",)),
    Case("meshio", "flac3d", "f3grid", ("plain reader",)),
    Case("off", "off", "off", ("assimp", "MeshLab"), True),
    Case("rhino", "3dm", "3dm", ("rhino3dm",), True),
    Case("usdz", "usdz", "usdz", ("LightUSD", "three.js"), True),
)
