"""Speed of the main jobs compared with other programs in one run: `python benchmarks/speed.py [job …]`.

Each contender runs in its own process: once to warm up, then three times (`warm` is the median); `cold` is a whole new
process from start to end. The ratio is the contender's warm time over meshhub's, or cold over cold if there is no warm
time. `peak` is the largest resident memory. The limit
reads the bytes of the source and writes those of meshhub's result, without looking at them. Contenders that are not
installed are left out: `uv pip install lib3mf tinyobjloader --prerelease allow` for two of them.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

FACES_20_MB = 400_000
FACES_1_M = 1_000_000
FACES_DAMAGED = 200_000
RUN_COUNT = 3
SINGLE_THREAD_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "ARROW_IO_THREADS": "1"}


def make_sphere(faces: int) -> np.ndarray:
    """Return about this number of triangles of a closed wavy sphere, 100 mm wide, as (n, 3, 3) float32 corners."""
    segments = int((faces / 2) ** 0.5)
    theta = np.linspace(0, np.pi, segments + 1)
    phi = np.linspace(0, 2 * np.pi, segments + 1)
    a, b = np.meshgrid(theta, phi, indexing="ij")
    radius = 50 + 2 * np.sin(7 * a) ** 2 * np.cos(9 * b)
    grid = np.stack([radius * np.sin(a) * np.cos(b), radius * np.sin(a) * np.sin(b), radius * np.cos(a)], 2)
    grid[:, -1] = grid[:, 0]
    grid[0], grid[-1] = grid[0, 0], grid[-1, 0]
    p, q, r, s = grid[:-1, :-1], grid[1:, :-1], grid[1:, 1:], grid[:-1, 1:]
    corners = np.concatenate([np.stack([p, q, r], 2).reshape(-1, 3, 3), np.stack([p, r, s], 2).reshape(-1, 3, 3)])
    corners = corners.astype(np.float32)
    degenerate = (corners[:, [0, 1, 2]] == corners[:, [1, 2, 0]]).all(axis=2).any(axis=1)
    return corners[~degenerate]


def write_sphere(folder: Path, faces: int, suffix: str) -> Path:
    """Write the sphere, with holes and reversed faces if it has FACES_DAMAGED faces."""
    path = folder / f"sphere-{faces}{suffix}"
    if path.exists():
        return path
    corners = make_sphere(faces)
    if faces == FACES_DAMAGED:
        corners[100::1000] = corners[100::1000, ::-1]
        corners = np.delete(corners, np.s_[::1000], axis=0)
    if suffix == ".stl":
        records = np.zeros(len(corners), [("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
        records["corners"] = corners
        path.write_bytes(bytes(80) + np.uint32(len(corners)).tobytes() + records.tobytes())
    elif suffix == ".ascii.stl":
        vertex = "vertex %.7e %.7e %.7e\n"
        facet = f"facet normal 0 0 0\nouter loop\n{3 * vertex}endloop\nendfacet\n"
        text = "".join(facet % tuple(row) for row in corners.reshape(-1, 9).tolist())
        path.write_text(f"solid sphere\n{text}endsolid sphere\n")
    elif suffix == ".obj":
        _write_quads(path, faces)
    else:
        from meshhub import Registry

        Registry(entry_points=False).convert(write_sphere(folder, faces, ".stl"), path)
    return path


def _write_quads(path: Path, faces: int) -> None:
    """Write half as many quads, with texture coordinates, in ten groups with one material each."""
    side = int((faces / 2) ** 0.5)
    v, u = (grid.ravel() for grid in np.mgrid[: side + 1, : side + 1] / side)
    points = np.column_stack([100 * u, 100 * v, 5 * np.sin(9 * u) * np.cos(7 * v)])
    first = (np.arange(side)[:, None] * (side + 1) + np.arange(side) + 1).ravel()
    quads = first[:, None] + np.array([0, 1, side + 2, side + 1])
    lines = ["mtllib sphere.mtl\n"]
    lines += ["v {:.6f} {:.6f} {:.6f}\n".format(*row) for row in points.tolist()]
    lines += ["vt {:.6f} {:.6f}\n".format(*row) for row in zip(u.tolist(), v.tolist(), strict=True)]
    for number, group in enumerate(np.array_split(quads, 10)):
        lines.append(f"usemtl paint{number}\n")
        lines += ["f {}/{} {}/{} {}/{} {}/{}\n".format(*row) for row in np.repeat(group, 2, axis=1).tolist()]
    path.write_text("".join(lines))
    materials = (f"newmtl paint{number}\nKd 0.{number} 0.5 0.5\n" for number in range(10))
    (path.parent / "sphere.mtl").write_text("".join(materials))


# contenders: each returns a function to run repeatedly, or a command


def meshhub_converts(source: Path, target: Path, **options: object) -> Callable[[], object]:
    from meshhub import Registry

    registry = Registry(entry_points=False)
    return lambda: registry.convert(source, target, **options)  # type: ignore[arg-type]


def trimesh_converts(source: Path, target: Path) -> Callable[[], object]:
    import trimesh

    return lambda: trimesh.load_mesh(source).export(target)


def pymeshlab_converts(source: Path, target: Path) -> Callable[[], object]:
    import pymeshlab

    def convert() -> None:
        meshes = pymeshlab.MeshSet(verbose=False)
        meshes.load_new_mesh(str(source))
        meshes.save_current_mesh(str(target))

    return convert


def meshio_converts(source: Path, target: Path) -> Callable[[], object]:
    import meshio

    return lambda: meshio.read(source).write(target)


def meshhub_reduces(source: Path, target: Path) -> Callable[[], object]:
    return meshhub_converts(source, target, optimize_target_faces=50_000)


def trimesh_reduces(source: Path, target: Path) -> Callable[[], object]:
    import fast_simplification
    import trimesh

    del fast_simplification
    return lambda: trimesh.load_mesh(source).simplify_quadric_decimation(face_count=50_000).export(target)


def pymeshlab_reduces(source: Path, target: Path) -> Callable[[], object]:
    import pymeshlab

    def reduce() -> None:
        meshes = pymeshlab.MeshSet(verbose=False)
        meshes.load_new_mesh(str(source))
        meshes.meshing_decimation_quadric_edge_collapse(targetfacenum=50_000, preservetopology=True)
        meshes.save_current_mesh(str(target))

    return reduce


def meshhub_repairs(source: Path, target: Path) -> Callable[[], object]:
    return meshhub_converts(source, target, repair=True)


def trimesh_repairs(source: Path, target: Path) -> Callable[[], object]:
    import trimesh

    def repair() -> None:
        mesh = trimesh.load_mesh(source)
        trimesh.repair.fix_normals(mesh)
        mesh.fill_holes()
        mesh.export(target)

    return repair


def meshhub_reads(source: Path, target: Path) -> Callable[[], object]:
    from meshhub import Registry

    del target
    registry = Registry(entry_points=False)
    return lambda: registry.read(source)


def meshio_reads(source: Path, target: Path) -> Callable[[], object]:
    import meshio

    del target
    return lambda: meshio.read(source)


def pymeshlab_reads(source: Path, target: Path) -> Callable[[], object]:
    import pymeshlab

    del target
    return lambda: pymeshlab.MeshSet(verbose=False).load_new_mesh(str(source))


def tinyobjloader_reads(source: Path, target: Path) -> Callable[[], object]:
    import tinyobjloader

    del target

    def read() -> None:
        reader = tinyobjloader.ObjReader()
        reader.ParseFromFile(str(source), tinyobjloader.ObjReaderConfig())
        corners = reader.GetAttrib()
        corners.numpy_vertices()
        corners.numpy_texcoords()
        for shape in reader.GetShapes():
            shape.mesh.numpy_indices()
            shape.mesh.numpy_material_ids()

    return read


def lib3mf_reads(source: Path, target: Path) -> Callable[[], object]:
    import lib3mf

    del target
    wrapper = lib3mf.get_wrapper()
    # into its own structures only: its binding would take 15 s to make Python objects of them
    return lambda: wrapper.CreateModel().QueryReader("3mf").ReadFromFile(str(source))


def limit(source: Path, target: Path) -> Callable[[], object]:
    result = target.with_stem("meshhub_converts")
    content = result.read_bytes() if result.exists() else b""

    def read_and_write() -> None:
        source.read_bytes()
        target.write_bytes(content)

    return read_and_write


def trimesh_reads(source: Path, target: Path) -> Callable[[], object]:
    import trimesh

    del target
    return lambda: trimesh.load(source, force="scene")


def prusa_converts(source: Path, target: Path) -> list[str]:
    kind = target.suffix[1:]
    return ["prusa-slicer", f"--export-{kind}", "--output", str(target), str(source)]


def assimp_converts(source: Path, target: Path) -> list[str]:
    return ["assimp", "export", str(source), str(target)]


def meshhub_program(source: Path, target: Path) -> list[str]:
    return [sys.executable, "-m", "meshhub", "convert", str(source), "--output", str(target), "--force", "--quiet"]


class Job(NamedTuple):
    """What all contenders do: a model of so many faces in one format, in another one afterwards."""

    title: str
    face_count: int
    source: str
    target: str
    contenders: tuple[Callable[..., object], ...]


CONVERTERS = (meshhub_converts, limit, trimesh_converts, pymeshlab_converts, meshio_converts)
READERS = (meshhub_reads, limit, trimesh_reads)

JOBS = {
    "to-3mf": Job(
        "20 MB binary STL → 3MF",
        FACES_20_MB,
        ".stl",
        ".3mf",
        (*CONVERTERS[:-1], meshhub_program, prusa_converts, assimp_converts),
    ),
    "to-obj": Job(
        "20 MB binary STL → OBJ",
        FACES_20_MB,
        ".stl",
        ".obj",
        (*CONVERTERS, meshhub_program, prusa_converts, assimp_converts),
    ),
    "to-glb": Job("20 MB binary STL → GLB", FACES_20_MB, ".stl", ".glb", (*CONVERTERS[:3], meshhub_program)),
    "reduce": Job(
        "1 M faces → 50 000 (STL in and out)",
        FACES_1_M,
        ".stl",
        ".stl",
        (meshhub_reduces, pymeshlab_reduces, trimesh_reduces),
    ),
    "repair": Job(
        "repair 200 000 faces with 200 holes", FACES_DAMAGED, ".stl", ".stl", (meshhub_repairs, trimesh_repairs)
    ),
    "read": Job("read and weld 50 MB of binary STL", FACES_1_M, ".stl", ".none", READERS),
    "read-ascii": Job(
        "read and weld 100 MB of ASCII STL",
        FACES_20_MB,
        ".ascii.stl",
        ".none",
        (*READERS, meshio_reads, pymeshlab_reads),
    ),
    "read-obj": Job(
        "read OBJ of 200 000 quads with UV and materials",
        FACES_20_MB,
        ".obj",
        ".none",
        (*READERS, tinyobjloader_reads, pymeshlab_reads),
    ),
    "read-3mf": Job("read 3MF of 400 000 faces", FACES_20_MB, ".3mf", ".none", (*READERS, lib3mf_reads)),
}

PROGRAMS = (meshhub_program, prusa_converts, assimp_converts)


def measure_in_process(job: str, contender: str, folder: Path) -> None:
    """Run one contender in this process; print its times and peak as JSON."""
    _, faces, kind, suffix, _ = JOBS[job]
    source, target = write_sphere(folder, faces, kind), folder / f"{contender}{suffix}"
    call = getattr(sys.modules[__name__], contender)(source, target)
    call()
    times = []
    for _ in range(RUN_COUNT):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    size = target.stat().st_size if target.exists() else 0
    print(json.dumps({"warm": statistics.median(times), "peak": peak, "bytes": size}))


def measure(job: str, contender: Callable[..., object], folder: Path) -> dict[str, float] | None:
    """Return the figures of one contender, or None if it is not installed or fails."""
    _, faces, kind, suffix, _ = JOBS[job]
    source, target = write_sphere(folder, faces, kind), folder / f"{contender.__name__}{suffix}"
    environment = {**os.environ, **SINGLE_THREAD_ENVIRONMENT}
    # as in an installed package, bytecode is compiled before
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    if contender in PROGRAMS:
        command = contender(source, target)
        assert isinstance(command, list)
        if shutil.which(command[0]) is None:
            return None
        target.unlink(missing_ok=True)
        times = []
        for _ in range(RUN_COUNT):
            started = time.perf_counter()
            process = subprocess.run(command, capture_output=True, env=environment, timeout=300, check=False)
            times.append(time.perf_counter() - started)
        if process.returncode or not target.exists():
            return None
        return {"cold": statistics.median(times), "bytes": target.stat().st_size}
    command = [sys.executable, __file__, "--inner", job, contender.__name__, str(folder)]
    process = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600, check=False)
    if process.returncode:
        return None
    figures: dict[str, float] = json.loads(process.stdout.splitlines()[-1])
    return figures


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inner", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("what", nargs="*", help=f"jobs, of {', '.join(JOBS)}; default: all")
    arguments = parser.parse_args()
    if arguments.inner:
        measure_in_process(arguments.what[0], arguments.what[1], Path(arguments.what[2]))
        return
    unknown = [job for job in arguments.what if job not in JOBS]
    if unknown:
        parser.error(f"unknown job {unknown[0]!r}; choose from {', '.join(JOBS)}")
    with tempfile.TemporaryDirectory(prefix="meshhub-speed-") as folder:
        for job in arguments.what or JOBS:
            print(f"\n### {JOBS[job].title}\n")
            print("| contender | warm s | cold s | ratio | peak MB | output MB |\n|---|---|---|---|---|---|")
            base: dict[str, float] = {}
            for contender in JOBS[job].contenders:
                figures = measure(job, contender, Path(folder))
                if figures is None:
                    continue
                base = {**figures, **base}
                kind = "warm" if "warm" in figures else "cold"
                cells = [f"{figures[name]:.3f}" if name in figures else "–" for name in ("warm", "cold")]
                peak = f"{figures['peak']:.0f}" if "peak" in figures else "–"
                name = contender.__name__.replace("_", " ")
                print(
                    f"| {name} | {' | '.join(cells)} | {figures[kind] / base[kind]:.2f} | {peak} "
                    f"| {figures.get('bytes', 0) / 1e6:.1f} |",
                    flush=True,
                )
    versions = (f"{name} {importlib.import_module(name).__version__}" for name in ("numpy", "pyarrow", "trimesh"))
    print(f"\nPython {sys.version.split()[0]}, {', '.join(versions)}, {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
