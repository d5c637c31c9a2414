"""Forty CAD parts in eight triangulations, to STEP: which true faces return, and how exactly.

    python benchmarks/step_triangulations.py [--parts 40] [--meshes clean split …] [--jobs 2] [--csv FILE]

Ten kinds of parts in four sizes each are made and triangulated by OpenCASCADE (0.01 mm, 0.2 rad). *split* has edges of
at most 2 mm, without another change; *remeshed* is remeshed isotropically and *reduced* to half of the triangles of
that by quadrics, both with pymeshlab; *noise* moves each vertex of *split* by a normal distribution of 0.02, 0.05 or
0.2 mm along each axis; *holes* has noise of 0.05 mm, loses 1 % of its triangles, is closed by pymeshlab, and converted
with `repair`, because triangles that fill neighboring holes share edges with more than one other.

A true face is found if a face of the file has its kind, its bounds, and its radius, within a thousandth of its size and
two deviations of the noise. A row per triangulation has the shares of found faces by kind, the median and largest
error of a radius, the faces of the file over the true ones, the distance that the report states, valid files, and the
processor time over that of *clean*.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import multiprocessing
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parent.parent / "tests" / "support"))

from cad_parts import occ, truth
from cad_parts.triangles import triangulate_occ, write_stl
from step_peers import filleted_plate, flange, round_edges

EDGE_MM = 2.0
"""Longest edge of the meshes that are not clean."""
DEVIATIONS_MM = {"noise 0.02": 0.02, "noise 0.05": 0.05, "noise 0.2": 0.2, "holes": 0.05}
MAX_FACES_RATIO = 200
"""Faces of a file over the true faces up to which they are compared."""
MESHES = ("clean", "split", "remeshed", "reduced", *DEVIATIONS_MM)


def rounded_box(size: float) -> Any:
    return round_edges(occ.box(0, 0, 0, 20 * size, 40 * size, 30 * size), 3 * size, lambda _: True)


def linkage(size: float) -> Any:
    bars = [occ.box(0, 0, 0, 5 * size, 40 * size, 12 * size)]
    ends = [occ.cylinder(x * size, 0, 0, 5 * size, 6 * size) for x in (-20, 20)]
    holes = [occ.cylinder(x * size, 0, -1, 6 * size, 2.5 * size) for x in (-20, 20)]
    return occ.cut(occ.unify(occ.join(*bars, *ends)), *holes)


def bossed_plate(size: float) -> Any:
    places = [(-12 * size, 0.0), (12 * size, 0.0)]
    part = occ.join(occ.box(0, 0, 0, 4 * size, 50 * size, 24 * size),
                    *(occ.cylinder(x, y, 0, 12 * size, 5 * size) for x, y in places))  # fmt: skip
    return occ.cut(part, *(occ.cylinder(x, y, 3 * size, 13 * size, 2 * size) for x, y in places))


def drilled_box(size: float) -> Any:
    holes = [occ.cylinder(x * size, y * size, -1, 21 * size, 2 * size) for x in (-12, 0, 12) for y in (-8, 8)]
    across = occ.move(occ.turn(occ.cylinder(0, 0, -30 * size, 30 * size, 2.5 * size), (0, 1, 0), 90), 0, 0, 10 * size)
    return occ.cut(occ.box(0, 0, 0, 20 * size, 40 * size, 30 * size), *holes, across)


def pocketed_block(size: float) -> Any:
    pocket = occ.round_edges_along(occ.box(0, 0, 5 * size, 20 * size, 26 * size, 18 * size), 2, 4 * size)
    return occ.cut(occ.box(0, 0, 0, 15 * size, 40 * size, 30 * size), pocket)


def turned_part(size: float) -> Any:
    rings = [(0, 10, 12.0, None), (10, 16, 12.0, 8.0), (16, 30, 8.0, None)]
    part = occ.join(*(occ.cylinder(0, 0, low * size, high * size, radius * size, top and top * size)
                      for low, high, radius, top in rings))  # fmt: skip
    return occ.unify(occ.cut(part, occ.cylinder(0, 0, -1, 31 * size, 4 * size)))


def ball_end(size: float) -> Any:
    return occ.unify(occ.join(occ.cylinder(0, 0, 0, 25 * size, 5 * size), occ.ball(0, 0, 30 * size, 9 * size)))


def sheet(size: float) -> Any:
    part = occ.join(occ.box(0, 0, 0, 2 * size, 40 * size, 30 * size),
                    occ.box(-19 * size, 0, 0, 25 * size, 2 * size, 30 * size))  # fmt: skip
    part = occ.unify(part)
    inner, outer = (-18 * size, 2 * size), (-20 * size, 0.0)
    for (x, z), radius in ((inner, 3 * size), (outer, 5 * size)):
        part = round_edges(part, radius, lambda at, x=x, z=z: abs(at.X() - x) + abs(at.Z() - z) < 1e-6)
    return occ.cut(part, occ.cylinder(6 * size, 0, -1, 3 * size, 3 * size))


def scaled(build: Callable[[], Any]) -> Callable[[float], Any]:
    """Return the builder of a part of `step_peers` in a size."""

    def build_scaled(size: float) -> Any:
        from OCP.BRepBuilderAPI import BRepBuilderAPI_Transform
        from OCP.gp import gp_Pnt, gp_Trsf

        change = gp_Trsf()
        change.SetScale(gp_Pnt(0, 0, 0), size)
        return BRepBuilderAPI_Transform(build(), change, True).Shape()

    build_scaled.__name__ = build.__name__
    return build_scaled


BUILDERS = (rounded_box, linkage, bossed_plate, drilled_box, pocketed_block, turned_part, ball_end, sheet,
            scaled(flange), scaled(filleted_plate))  # fmt: skip
SIZES = (1.0, 0.8, 1.5, 2.2)


def size_of(number: int) -> float:
    """Return the size of a part; they alternate, so that 20 parts have each kind twice, and every size."""
    turn = number // len(BUILDERS)
    return SIZES[(2 * turn + number % 2 + turn // 2) % len(SIZES)]


def make(number: int, kind: str, path: str) -> list[dict[str, Any]]:
    """Write a part in a triangulation as STL; return its true faces."""
    shape = BUILDERS[number % len(BUILDERS)](size_of(number))
    if number % 3 == 1:
        shape = occ.turn(shape, (1, 2, 3), 25)
    faces = truth.list_faces(shape)
    triangles = triangulate_occ(shape, 0.01, 0.2)
    if kind != "clean":
        triangles = change(triangles, kind)
    write_stl(path, triangles)
    return faces


def change(triangles: np.ndarray, kind: str) -> np.ndarray:
    """Return the triangles of a part in another triangulation."""
    import manifold3d
    import pymeshlab

    positions, index = np.unique(triangles.reshape(-1, 3).astype(np.float32), axis=0, return_inverse=True)
    solid = manifold3d.Manifold(manifold3d.Mesh(positions, index.reshape(-1, 3).astype(np.uint32)))
    mesh = solid.refine_to_length(EDGE_MM).to_mesh64()
    vertices, faces = np.asarray(mesh.vert_properties)[:, :3], np.asarray(mesh.tri_verts, np.int64)
    if kind == "split":
        return vertices[faces]
    chance = np.random.default_rng(1)
    if kind in DEVIATIONS_MM:
        vertices = vertices + chance.normal(0, DEVIATIONS_MM[kind], vertices.shape)
    if kind == "holes":
        faces = faces[chance.random(len(faces)) > 0.01]
    elif kind in DEVIATIONS_MM:
        return vertices[faces]
    meshes = pymeshlab.MeshSet()
    meshes.add_mesh(pymeshlab.Mesh(vertices, faces))
    if kind == "holes":
        meshes.meshing_repair_non_manifold_vertices()
        meshes.meshing_close_holes(maxholesize=30, selfintersection=False)
    else:
        meshes.meshing_isotropic_explicit_remeshing(targetlen=pymeshlab.PureValue(EDGE_MM * 0.7), featuredeg=20)
        if kind == "reduced":
            meshes.meshing_decimation_quadric_edge_collapse(targetperc=0.5, planarquadric=True)
    result = meshes.current_mesh()
    return result.vertex_matrix()[result.face_matrix()]


def is_found(face: dict[str, Any], returned: list[dict[str, Any]], room: float) -> tuple[bool, float]:
    """Return whether a face of the file is this true face within a distance (mm), and the error of its radius."""
    low, high = np.array(face["low"]), np.array(face["high"])
    reach = room + 0.02 * float(np.linalg.norm(high - low))
    best = math.inf
    for other in returned:
        if other["kind"] != face["kind"]:
            continue
        if max(np.abs(low - other["low"]).max(), np.abs(high - other["high"]).max()) > reach:
            continue
        # the axis of a cone may have either direction, and its angle either sign
        names = ("second",) if face["kind"] == "Cone" else ("radius", "second")
        best = min(best, max(abs(abs(face[name]) - abs(other[name])) for name in names))
    return best <= room, best


def convert(number: int, kind: str) -> dict[str, Any]:
    """Convert a part; return the row of its results."""
    from meshhub import MeshhubError, Registry

    with tempfile.TemporaryDirectory() as folder:
        path, back = Path(folder, "part.stl"), Path(folder, "part.step")
        faces = make(number, kind, str(path))
        row: dict[str, Any] = {"number": number, "mesh": kind, "true": Counter(face["kind"] for face in faces)}
        began = time.process_time()
        try:
            report = Registry().convert(path, back, repair=kind == "holes")
        except MeshhubError as error:
            return row | {"error": error.error_code, "seconds": time.process_time() - began}
        row["seconds"] = time.process_time() - began
        figures: dict[str, Any] = {}
        for step in report.steps:
            figures |= step.figures
        row["notes"] = [note.code for note in report.notes]
        row["fault"], solid = truth.find_fault(back, figures)
        row["hausdorff"] = figures.get("hausdorff_mm", 0.0)
        row["faces"] = figures["faces"]
        # a file with more faces consists of facets, which take minutes to describe
        returned = truth.list_faces(solid) if figures["faces"] <= MAX_FACES_RATIO * len(faces) else []
    found: Counter[str] = Counter()
    row["errors"] = []
    for face in faces:
        size = max(float(np.linalg.norm(np.subtract(face["high"], face["low"]))), face.get("radius", 0.0))
        good, error = is_found(face, returned, 1e-3 * size + 2 * DEVIATIONS_MM.get(kind, 0.0))
        found[face["kind"]] += good
        if math.isfinite(error) and face["kind"] in ("Cylinder", "Sphere", "Torus"):
            row["errors"].append(error)
    return row | {"found": found}


def run(task: tuple[int, str]) -> dict[str, Any]:
    """Convert a part; return the row of its results, or its error."""
    try:
        return convert(*task)
    except Exception as error:  # OpenCASCADE raises many kinds where a file is damaged
        return {"number": task[0], "mesh": task[1], "error": f"{type(error).__name__}: {error}"[:90]}


def summarize(rows: list[dict[str, Any]], kinds: list[str]) -> None:
    """Print a row per triangulation."""
    print(f"{'mesh':11} {'valid':>7}  {'found':>6}  " + "".join(f"{kind:>15}" for kind in truth.KINDS)
          + "   radius error mm   faces  hausdorff     CPU")  # fmt: skip
    clean = {row["number"]: row["seconds"] for row in rows if row["mesh"] == "clean" and "seconds" in row}
    for kind in kinds:
        all_rows = [row for row in rows if row["mesh"] == kind]
        mine = [row for row in all_rows if "found" in row]
        if not mine:
            print(f"{kind:11} {all_rows}"[:200])
            continue
        true, found = (sum((Counter(row[name]) for row in mine), Counter()) for name in ("true", "found"))
        shares = "".join(
            f"{f'{found[name]}/{true[name]} {found[name] / max(true[name], 1):.0%}':>15}" for name in truth.KINDS
        )
        ratio_faces = sum(row["faces"] for row in mine) / sum(true.values())
        errors = [error for row in mine for error in row["errors"]] or [0.0]
        ratio = [row["seconds"] / clean[row["number"]] for row in mine if row["number"] in clean]
        valid = sum(not row["fault"] for row in mine)
        print(f"{kind:11} {valid:>3}/{len(all_rows):<3}  {sum(found.values()) / sum(true.values()):>6.1%}  {shares}"
              f"   {np.median(errors):.4f} {max(errors):.4f}  {ratio_faces:>6.2f}"
              f"  {np.median([row['hausdorff'] for row in mine]):.3f} {max(row['hausdorff'] for row in mine):.3f}"
              f"  {np.median(ratio or [math.nan]):.1f}")  # fmt: skip


def write_csv(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write a line per conversion; one without a file has the error instead."""
    with path.open("w", newline="") as file:
        names = "part,size,mesh,true_faces,found,written,fault,largest_radius_error_mm,hausdorff_mm,cpu_s"
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*names.split(","), *truth.KINDS])
        for row in rows:
            number, found = row["number"], row.get("found", {})
            writer.writerow(
                [
                    BUILDERS[number % len(BUILDERS)].__name__,
                    size_of(number),
                    row["mesh"],
                    sum(row.get("true", {}).values()),
                    sum(found.values()),
                    row.get("faces", ""),
                    row.get("error") or row["fault"],
                    f"{max(row.get('errors') or [0.0]):.4f}",
                    f"{row.get('hausdorff', 0.0):.4f}",
                    f"{row.get('seconds', 0.0):.1f}",
                    *(found.get(kind, 0) for kind in truth.KINDS),
                ]
            )


def main() -> int:
    """Convert the parts; print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=int, default=len(BUILDERS) * len(SIZES))
    parser.add_argument("--meshes", nargs="*", choices=MESHES, default=list(MESHES))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--csv", type=Path, help="file to write the rows to")
    options = parser.parse_args()
    tasks = [(number, kind) for kind in options.meshes for number in range(options.parts)]
    with ProcessPoolExecutor(options.jobs, multiprocessing.get_context("spawn")) as pool:
        rows = []
        for row in pool.map(run, tasks):
            rows.append(row)
            print(json.dumps(row), flush=True)
    summarize(rows, options.meshes)
    if options.csv:
        write_csv(options.csv, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
