"""Check on real parts whether the distance in the report of a STEP file is that of the written solid.

    python benchmarks/step_distances.py FOLDER … [--parts 60] [--triangles 20000] [--results FILE]

The binary STL files of the folders with fewest triangles are converted. OpenCASCADE reads the file back and
triangulates its faces to 0.002 mm, and pymeshlab measures how far the vertices, points of the edges and points of the
faces of these triangles are from the mesh, and those of the mesh from these triangles. Nothing of meshhub takes part.
A part of less than 5 mm is taken to be in meters. `stated` and `measured` should differ by less than 4 % and 0.004 mm,
twice the deviation of the triangles.

OpenCASCADE leaves some faces without triangles (`bare`), and cuts corners of others. So the farthest points of the mesh
are measured again by OpenCASCADE from the faces themselves, and points of its triangles count only if they are on a
face.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import json
import multiprocessing
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parent.parent / "tests" / "support"))

from cad_parts import occ
from cad_parts.triangles import triangulate_occ, write_stl
from step_peers import count_faces

DEVIATION_MM, ANGLE_RAD = 0.002, 0.1
"""Deviation and angle of the triangles that are measured."""
MAX_ERROR_RATIO, MAX_ERROR_MM = 0.04, 2 * DEVIATION_MM
"""Difference of a stated distance from the measured one, beyond which it is wrong."""
SAMPLES_COUNT = 50_000
"""Points on the faces of a mesh, besides its vertices and edges."""
FRACTIONS = (0.25, 0.5, 0.75)
"""Places on an edge that are measured."""
MIN_EXTENT_MM = 5.0
"""Millimeters; a part whose longest side is shorter is taken to be in meters."""
MAX_EXACT_COUNT = 400
"""Farthest points that are measured from the faces themselves."""
COLUMNS = (
    "machine", "recorded", "part", "triangles", "stated_mm", "measured_mm", "verdict", "valid", "bare", "planes",
    "curved", "freeform", "seconds", "error",
)  # fmt: skip
_ROW = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])


def read_triangles(path: Path) -> np.ndarray:
    """Return the triangles (n, 3, 3) of a binary STL file; none for another file."""
    data = path.read_bytes()
    count = int.from_bytes(data[80:84], "little")
    if len(data) != 84 + count * _ROW.itemsize:
        return np.empty((0, 3, 3))
    return np.frombuffer(data, _ROW, offset=84)["corners"].astype(np.float64)


def judge(source: Path) -> dict[str, Any]:
    """Convert a part; return its row."""
    from meshhub import Registry

    triangles = read_triangles(source)
    if np.ptp(triangles.reshape(-1, 3), axis=0).max() < MIN_EXTENT_MM:
        triangles = triangles * 1000
    with tempfile.TemporaryDirectory() as folder:
        mesh, back = Path(folder, "part.stl"), Path(folder, "part.step")
        write_stl(str(mesh), triangles)
        began, figures = time.process_time(), {}
        for step in Registry().convert(mesh, back, step_invalid="keep").steps:
            figures |= step.figures
        row = {
            "triangles": len(triangles),
            "stated_mm": figures["hausdorff_mm"],
            "seconds": time.process_time() - began,
        }
        shape = read_shape(back)
        kinds = count_faces(shape)
        row |= {
            "valid": int(occ.is_valid(shape)),
            "planes": kinds["plane"] + kinds["triangles"],
            "curved": sum(kinds[kind] for kind in ("cylinder", "cone", "sphere", "torus")),
            "freeform": kinds["freeform"],
        }
        fine = triangulate_occ(shape, DEVIATION_MM, ANGLE_RAD)
    faces = Faces(shape)
    row["bare"] = faces.bare_count
    points, gap = measure(fine, triangles)
    there = find_farthest(
        gap, lambda number: gap[number] if faces.measure(points[number], MAX_ERROR_MM) < MAX_ERROR_MM else 0
    )
    others, back_gap = measure(triangles, fine)
    back_mm = find_farthest(back_gap, lambda number: faces.measure(others[number], back_gap[number]))
    return row | {"measured_mm": max(there, back_mm)}


def find_farthest(gap: np.ndarray, refine: Callable[[int], float]) -> float:
    """Return the largest of some distances, of which the function returns better values, at most the given ones."""
    largest = 0.0
    for number in np.argsort(-gap)[:MAX_EXACT_COUNT].tolist():
        if gap[number] <= largest:
            break
        largest = max(largest, float(refine(number)))
    return largest


class Faces:
    """Faces of a shape, to which few points are compared."""

    def __init__(self, shape: Any) -> None:
        from OCP.Bnd import Bnd_Box
        from OCP.BRep import BRep_Tool
        from OCP.BRepBndLib import BRepBndLib
        from OCP.TopAbs import TopAbs_FACE
        from OCP.TopLoc import TopLoc_Location
        from OCP.TopoDS import TopoDS

        self.faces = [TopoDS.Face(face) for face in occ.list_shapes(shape, TopAbs_FACE)]
        self.bare_count = sum(BRep_Tool.Triangulation_s(face, TopLoc_Location()) is None for face in self.faces)
        bounds = []
        for face in self.faces:
            box = Bnd_Box()
            BRepBndLib.Add_s(face, box, False)
            bounds.append([(corner.X(), corner.Y(), corner.Z()) for corner in (box.CornerMin(), box.CornerMax())])
        self.low, self.high = np.array(bounds).transpose(1, 0, 2)

    def measure(self, point: np.ndarray, limit: float) -> float:
        """Return the distance of a point (3,) from the faces, at most a limit."""
        from OCP.BRepBuilderAPI import BRepBuilderAPI_MakeVertex
        from OCP.BRepExtrema import BRepExtrema_DistShapeShape
        from OCP.gp import gp_Pnt

        vertex = BRepBuilderAPI_MakeVertex(gp_Pnt(*point.tolist())).Vertex()
        away = np.linalg.norm(np.maximum(0, np.maximum(self.low - point, point - self.high)), axis=1)
        nearest = float(limit)
        for number in np.argsort(away).tolist():
            if away[number] >= nearest:
                break
            nearest = min(nearest, BRepExtrema_DistShapeShape(vertex, self.faces[number]).Value())
        return nearest


def measure(triangles: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return points (n, 3) of triangles, and their distances (n,) from other triangles."""
    import pymeshlab

    chance = np.random.default_rng(1)
    area = np.linalg.norm(np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0]), axis=1)
    chosen = triangles[chance.choice(len(triangles), SAMPLES_COUNT, p=area / area.sum())]
    weights = chance.dirichlet((1, 1, 1), SAMPLES_COUNT)
    on_edges = [triangles + fraction * (np.roll(triangles, -1, axis=1) - triangles) for fraction in FRACTIONS]
    points = np.concatenate([np.einsum("ijk,ij->ik", chosen, weights), *(part.reshape(-1, 3) for part in on_edges),
                             triangles.reshape(-1, 3), triangles.mean(axis=1)])  # fmt: skip
    points = np.unique(points, axis=0)
    corners, index = np.unique(others.reshape(-1, 3), axis=0, return_inverse=True)
    meshes = pymeshlab.MeshSet()
    meshes.add_mesh(pymeshlab.Mesh(points))
    meshes.add_mesh(pymeshlab.Mesh(corners, index.reshape(-1, 3)))
    meshes.compute_scalar_by_distance_from_another_mesh_per_vertex(measuremesh=0, refmesh=1, signeddist=False)
    return points, np.abs(meshes.mesh(0).vertex_scalar_array())


def read_shape(path: Path) -> Any:
    """Return the shape of a STEP file."""
    from OCP.IFSelect import IFSelect_RetDone
    from OCP.STEPControl import STEPControl_Reader

    reader = STEPControl_Reader()
    if reader.ReadFile(str(path)) != IFSelect_RetDone:
        raise ValueError("OpenCASCADE does not read the file")
    reader.TransferRoots()
    return reader.OneShape()


def compare(row: dict[str, Any]) -> str:
    """Return whether the stated distance of a row is right, too small or too large."""
    stated, measured = row["stated_mm"], row["measured_mm"]
    if abs(stated - measured) <= MAX_ERROR_RATIO * measured + MAX_ERROR_MM:
        return "right"
    return "too small" if stated < measured else "too large"


def main() -> int:
    """Judge the parts in another process, because OpenCASCADE may crash."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--parts", type=int, default=60)
    parser.add_argument("--triangles", type=int, default=20_000)
    parser.add_argument("--results", type=Path)
    options = parser.parse_args()
    paths = [path for folder in options.folders for path in folder.iterdir() if path.suffix.lower() == ".stl"]
    counts = {path: len(read_triangles(path)) for path in paths}
    chosen = sorted((path for path in paths if 0 < counts[path] <= options.triangles), key=lambda path: counts[path])
    rows = []
    for row in list_rows(chosen[: options.parts]):
        rows.append(row)
        print(json.dumps(row), flush=True)
    verdicts = [row["verdict"] for row in rows]
    print({verdict: verdicts.count(verdict) for verdict in sorted(set(verdicts))})
    if options.results:
        with options.results.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows({key: shorten(value) for key, value in row.items()} for row in rows)
    return 0


def list_rows(paths: list[Path]) -> Iterator[dict[str, Any]]:
    """Yield the rows of parts."""
    pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
    for path in paths:
        row: dict[str, Any] = {"machine": platform.machine(), "recorded": str(datetime.date.today()), "part": path.stem}
        try:
            row |= pool.submit(judge, path).result()
            row["verdict"] = compare(row)
        except BrokenProcessPool:
            row |= {"verdict": "none", "error": "crash"}
            pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
        except Exception as error:  # OpenCASCADE raises many kinds where a file is damaged
            row |= {"verdict": "none", "error": f"{type(error).__name__}: {error}"[:90]}
        yield row
    pool.shutdown()


def shorten(value: Any) -> Any:
    return f"{value:.4f}" if isinstance(value, float) else value


if __name__ == "__main__":
    sys.exit(main())
