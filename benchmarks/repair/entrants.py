"""Entrants: functions that read an STL file and write the repaired one.

A new entrant is a function in this file; `README.md` has an example.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from shutil import which

Entrant = Callable[[Path, Path], None]
"""Called with the file to read and the file to write."""

ENTRANTS: dict[str, Entrant] = {}
"""Functions by name, in the order of the table."""


def entrant(name: str) -> Callable[[Entrant], Entrant]:
    """Add a function to the entrants."""

    def add(function: Entrant) -> Entrant:
        ENTRANTS[name] = function
        return function

    return add


@entrant("meshhub")
def _meshhub(source: Path, target: Path, solid: bool = False) -> None:
    from meshhub import Registry

    global _registry
    if _registry is None:
        _registry = Registry(entry_points=False)
    _registry.convert(source, target, options={"repair_solid" if solid else "repair": True})


_registry = None


@entrant("meshhub, repair_solid")
def _meshhub_solid(source: Path, target: Path) -> None:
    _meshhub(source, target, solid=True)


@entrant("pymeshlab recipe")
def _pymeshlab(source: Path, target: Path) -> None:
    import pymeshlab

    meshes = pymeshlab.MeshSet(verbose=False)
    meshes.load_new_mesh(str(source))
    meshes.meshing_remove_duplicate_vertices()
    meshes.meshing_remove_duplicate_faces()
    meshes.meshing_remove_null_faces()
    meshes.meshing_repair_non_manifold_edges(method="Remove Faces")
    meshes.meshing_repair_non_manifold_vertices(vertdispratio=1e-5)
    meshes.meshing_close_holes(maxholesize=100_000, newfaceselected=False)
    meshes.meshing_repair_non_manifold_edges(method="Remove Faces")
    meshes.meshing_close_holes(maxholesize=100_000, newfaceselected=False)
    meshes.meshing_re_orient_faces_coherently()
    if meshes.get_geometric_measures().get("mesh_volume", 0.0) < 0:
        meshes.meshing_invert_face_orientation(forceflip=True)
    meshes.save_current_mesh(str(target))


@entrant("alpha wrap (pymeshlab)")
def _alpha_wrap(source: Path, target: Path) -> None:
    import pymeshlab

    meshes = pymeshlab.MeshSet(verbose=False)
    meshes.load_new_mesh(str(source))
    meshes.generate_alpha_wrap(alpha=pymeshlab.PercentageValue(5), offset=pymeshlab.PercentageValue(0.25))
    meshes.save_current_mesh(str(target))


@entrant("pymeshfix")
def _pymeshfix(source: Path, target: Path) -> None:
    import numpy as np
    import pymeshfix
    import trimesh

    mesh = trimesh.load(source, force="mesh")
    points, faces = pymeshfix.clean_from_arrays(np.array(mesh.vertices, np.float64), np.array(mesh.faces, np.int32))
    trimesh.Trimesh(points, faces, process=False).export(target)


@entrant("trimesh")
def _trimesh(source: Path, target: Path) -> None:
    import trimesh

    mesh = trimesh.load(source, force="mesh")
    mesh.update_faces(mesh.unique_faces())
    mesh.update_faces(mesh.nondegenerate_faces())
    trimesh.repair.fill_holes(mesh)
    trimesh.repair.fix_normals(mesh, multibody=True)
    mesh.export(target)


@entrant("MeshLib")
def _meshlib(source: Path, target: Path) -> None:
    from meshlib import mrmeshpy

    mesh = mrmeshpy.loadMesh(str(source))
    options = mrmeshpy.FillHoleParams()
    for edge in mesh.topology.findHoleRepresentiveEdges():
        mrmeshpy.fillHole(mesh, edge, options)
    mrmeshpy.saveMesh(mesh, str(target))


@entrant("admesh")
def _admesh(source: Path, target: Path) -> None:
    if which("admesh") is None:
        raise ImportError("the program admesh is not installed")
    subprocess.run(
        ["admesh", f"--write-binary-stl={target}", str(source)], capture_output=True, timeout=60, check=False
    )


@entrant("PrusaSlicer")
def _prusaslicer(source: Path, target: Path) -> None:
    program = which("prusa-slicer") or which("PrusaSlicer")
    if program is None:
        raise ImportError("the program prusa-slicer is not installed")
    command = [program, "--repair", "--export-stl", "--output", str(target), str(source)]
    subprocess.run(command, capture_output=True, timeout=60, check=False)
    if not target.exists():
        return
    # it places models on its bed
    import trimesh

    before, after = (trimesh.load(path, force="mesh", process=False) for path in (source, target))
    after.apply_translation(before.bounds[0] - after.bounds[0])
    after.export(target)
