"""Reduction and cutting compared with other libraries.

    python benchmarks/reduction.py [--faces 1000000]
    python benchmarks/reduction.py --plates RESULT.csv

The first command reduces and cuts a generated closed sphere with waves. Each job runs once on a small model to warm up
and then three times; the median counts. The second one reduces generated plates of many bodies (plates.py) to 2 % and
10 %, each in a process of its own, and measures the results. Libraries that are not installed are left out.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import importlib.util
import multiprocessing
import platform
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import numpy as np

import plates
from meshhub.builtin_plugins.flatten_base import FlattenBaseOptions
from meshhub.builtin_plugins.flatten_base.operation import run as flatten
from meshhub.builtin_plugins.optimize import OptimizeOptions
from meshhub.builtin_plugins.optimize.operation import run as reduce
from meshhub.model.scene import Float64, Int32, Mesh, Part, Scene
from meshhub.toolkit.topology import is_closed

Surface = plates.Surface
Job = Callable[[Float64, Int32], Surface]

RUNS = 3
CUT_HEIGHT_MM = 30.0
"""Millimeters that are cut off at the bottom."""

SHARES = (0.02, 0.1)
"""Shares of the faces of a plate that are kept."""

SMALL_FACES = 5000
"""Faces of the model with which jobs warm up."""


def make_sphere(faces: int) -> Surface:
    """Return a closed sphere with waves and a radius of 50."""
    segments = max(8, 2 * int(np.sqrt(faces) / 2))
    rings = segments // 2 * 2
    theta = np.linspace(0, np.pi, rings // 2 + 1)[1:-1]
    phi = np.linspace(0, 2 * np.pi, segments, endpoint=False)
    grid = np.stack(
        [np.outer(np.sin(theta), np.cos(phi)), np.outer(np.sin(theta), np.sin(phi)), np.outer(np.cos(theta), phi**0)],
        axis=2,
    ).reshape(-1, 3)
    directions = np.concatenate([grid, [[0, 0, 1], [0, 0, -1]]])
    waves = np.random.default_rng(7).normal(size=(3, 24)) * 8
    vertices = directions * (50 + np.sin(directions @ waves).sum(axis=1, keepdims=True) * 0.5)
    ring = np.arange(segments, dtype=np.int32)
    following = (ring + 1) % segments
    rows = np.arange(len(theta) - 1, dtype=np.int32)[:, None] * segments
    a, b = (rows + ring).ravel(), (rows + following).ravel()
    last = (len(theta) - 1) * segments
    north, south = np.full(segments, len(grid)), np.full(segments, len(grid) + 1)
    parts = [
        np.stack([north, ring, following], axis=1),
        np.stack([a, a + segments, b + segments], axis=1),
        np.stack([a, b + segments, b], axis=1),
        np.stack([south, last + following, last + ring], axis=1),
    ]
    return vertices, np.concatenate(parts).astype(np.int32)


def make_scene(vertices: Float64, faces: Int32) -> Scene:
    return Scene((Mesh(vertices, faces),), (Part(0),))


def get_surface(scene: Scene) -> Surface:
    return scene.meshes[0].vertices, scene.meshes[0].faces


def reducers(share: float) -> dict[str, Job]:
    """Return functions that keep a share of the faces, meshhub's first."""

    def ours(vertices: Float64, faces: Int32) -> Surface:
        target = int(len(faces) * share)
        return get_surface(reduce(make_scene(vertices, faces), OptimizeOptions(optimize_target_faces=target)))

    def fast_simplification(vertices: Float64, faces: Int32) -> Surface:
        import fast_simplification as library

        points, triangles = library.simplify(vertices, faces, target_count=int(len(faces) * share))
        return points, triangles.astype(np.int32)

    def pymeshlab(vertices: Float64, faces: Int32) -> Surface:
        import pymeshlab as library

        meshes = library.MeshSet(verbose=False)
        meshes.add_mesh(library.Mesh(vertices, faces))
        meshes.meshing_decimation_quadric_edge_collapse(targetfacenum=int(len(faces) * share), preservetopology=True)
        return meshes.current_mesh().vertex_matrix(), meshes.current_mesh().face_matrix()

    def meshlib(vertices: Float64, faces: Int32) -> Surface:
        from meshlib import mrmeshnumpy, mrmeshpy

        mesh = mrmeshnumpy.meshFromFacesVerts(faces, vertices)
        settings = mrmeshpy.DecimateSettings()
        settings.maxDeletedFaces = len(faces) - int(len(faces) * share)
        settings.maxError = np.finfo(np.float32).max
        settings.packMesh = True
        mrmeshpy.decimateMesh(mesh, settings)
        return mrmeshnumpy.getNumpyVerts(mesh), mrmeshnumpy.getNumpyFaces(mesh.topology)

    return {
        "meshhub": ours,
        "fast_simplification": fast_simplification,
        "pymeshlab": pymeshlab,
        "meshlib": meshlib,
    }


def cutters() -> dict[str, Job]:
    """Return functions that cut the bottom off and close the cut, meshhub's first."""

    def ours(vertices: Float64, faces: Int32) -> Surface:
        return get_surface(flatten(make_scene(vertices, faces), FlattenBaseOptions(flatten_base_mm=CUT_HEIGHT_MM)))

    def trimesh(vertices: Float64, faces: Int32) -> Surface:
        import trimesh as library

        height = vertices[:, 2].min() + CUT_HEIGHT_MM
        mesh = library.Trimesh(vertices, faces, process=False).slice_plane([0, 0, height], [0, 0, 1], cap=True)
        return mesh.vertices, mesh.faces

    def manifold3d(vertices: Float64, faces: Int32) -> Surface:
        import manifold3d as library

        solid = library.Manifold(library.Mesh64(vertices.copy(), faces.astype(np.uint64)))
        mesh = solid.trim_by_plane([0, 0, 1], float(vertices[:, 2].min() + CUT_HEIGHT_MM)).to_mesh64()
        return mesh.vert_properties[:, :3], mesh.tri_verts.astype(np.int32)

    return {"meshhub": ours, "trimesh": trimesh, "manifold3d": manifold3d}


def compare(title: str, jobs: dict[str, Job], model: Surface) -> None:
    """Run each job and print a row for it."""
    small = make_sphere(SMALL_FACES)
    base = 0.0
    print(f"\n{title}\n{'':<22}{'seconds':>9}{'ratio':>8}{'faces':>10}  closed")
    for name, job in jobs.items():
        if importlib.util.find_spec(name) is None:
            print(f"{name:<22}not installed")
            continue
        try:
            job(*small)
        except ImportError as error:
            print(f"{name:<22}cannot run: {error}")
            continue
        seconds = []
        for _ in range(RUNS):
            start = time.perf_counter()
            vertices, faces = job(*model)
            seconds.append(time.perf_counter() - start)
        median = statistics.median(seconds)
        base = base or median
        closed = is_closed(np.asarray(vertices, np.float32), np.asarray(faces, np.int32))
        print(f"{name:<22}{median:>9.2f}{median / base:>8.2f}{len(faces):>10}  {'yes' if closed else 'no'}")


def reduce_plates(result: Path) -> None:
    """Reduce all plates with all libraries, and write a row for each reduction."""
    names = [name for name in reducers(1) if importlib.util.find_spec(name) is not None]
    with result.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        head = ["machine", "recorded", "plate", "faces_before", "bodies_before", "goal", "library"]
        table.writerow([*head, *plates.Figures._fields, "is_hit", "cpu_s"])
        for plate in plates.PLATES:
            before = plates.make_plate(plate)
            count, bodies = len(before[1]), plates.count_bodies(before)
            for share in SHARES:
                for name in names:
                    row = [platform.processor(), datetime.date.today(), plate, count, bodies, int(count * share), name]
                    try:
                        after, seconds = _reduce_alone(name, share, before)
                    except BrokenProcessPool:
                        print(*row, "crashed", flush=True)
                        continue
                    figures = plates.measure(before, after)
                    row += [f"{figure:.3g}" if isinstance(figure, float) else figure for figure in figures]
                    row += [abs(figures.faces - int(count * share)) <= 1, f"{seconds:.2f}"]
                    table.writerow(row)
                    print(*row, flush=True)
                    file.flush()


def summarize(result: Path) -> None:
    """Print a table of the rows: counts, the medians of the mean and largest errors, means of the views, CPU time."""
    with result.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    head = (
        "share",
        "library",
        "plates",
        "goal hit",
        "closed",
        "bodies",
        "mean",
        "largest",
        "outline",
        "normals",
        "CPU s",
    )
    print(f"| {' | '.join(head)} |\n{'|---' * len(head)}|")
    groups: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in rows:
        groups.setdefault((f"{int(row['goal']) / int(row['faces_before']):.0%}", row["library"]), []).append(row)
    for (share, library), chosen in groups.items():
        hits, closed = (sum(row[name] == "True" for row in chosen) for name in ("is_hit", "is_closed"))
        kept = sum(row["bodies"] == row["bodies_before"] for row in chosen)
        mean, largest = (statistics.median(float(row[name]) for row in chosen) for name in ("mean_error", "max_error"))
        outline, normals = (
            statistics.mean(float(row[name]) for row in chosen) for name in ("silhouette", "normal_deg")
        )
        seconds = sum(float(row["cpu_s"]) for row in chosen)
        print(
            f"| {share} | {library} | {len(chosen)} | {hits} | {closed} | {kept} | {1e4 * mean:.2f} | "
            f"{1e4 * largest:.0f} | {outline:.1%} | {normals:.1f}° | {seconds:.1f} |"
        )


def _reduce_alone(name: str, share: float, model: Surface) -> tuple[Surface, float]:
    """Return a reduced model and the seconds of processor time of all threads, in a process of its own."""
    # threads of a library do not survive a fork
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_reduce_timed, name, share, model).result()


def _reduce_timed(name: str, share: float, model: Surface) -> tuple[Surface, float]:
    job = reducers(share)[name]
    job(*make_sphere(SMALL_FACES))
    start = time.process_time()
    points, faces = job(*model)
    return (np.asarray(points, np.float64), np.asarray(faces, np.int32)), time.process_time() - start


def main() -> None:
    """Run the comparisons."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--faces", type=int, default=1_000_000)
    parser.add_argument("--share", type=float, default=0.05, help="share of the faces that reduction keeps")
    parser.add_argument("--plates", type=Path, metavar="CSV", help="reduce plates of many bodies instead")
    arguments = parser.parse_args()
    if arguments.plates:
        reduce_plates(arguments.plates)
        summarize(arguments.plates)
        return
    model = make_sphere(arguments.faces)
    count = len(model[1])
    compare(f"Reduce {count} faces to {int(count * arguments.share)}", reducers(arguments.share), model)
    compare(f"Cut {count} faces and close the cut", cutters(), model)


if __name__ == "__main__":
    main()
