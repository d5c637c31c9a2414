"""Speed of the main jobs compared with other programs in one run: `python benchmarks/speed.py [job …]`.

Each contender runs in its own process: once to warm up, then three times (`warm` is the median); `cold` is a whole new
process from start to end. The ratio is the contender's warm time over meshhub's, or cold over cold if there is no warm
time. `peak` is the largest resident memory. Contenders that are not installed are left out.
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


def write_sphere(folder: Path, faces: int) -> Path:
    """Write the sphere as binary STL, with holes and reversed faces if it has FACES_DAMAGED faces."""
    path = folder / f"sphere-{faces}.stl"
    if not path.exists():
        corners = make_sphere(faces)
        records = np.zeros(len(corners), [("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
        records["corners"] = corners
        if faces == FACES_DAMAGED:
            records["corners"][100::1000] = records["corners"][100::1000, ::-1]
            records = np.delete(records, np.s_[::1000])
            corners = records["corners"]
        path.write_bytes(bytes(80) + np.uint32(len(corners)).tobytes() + records.tobytes())
    return path


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
    from meshhub import Source
    from meshhub.builtin_plugins.stl.reader import read
    from meshhub.model.capabilities import NoOptions

    del target
    return lambda: read(Source.from_path(source), NoOptions())


def plain_reads(source: Path, target: Path) -> Callable[[], object]:
    del target
    return source.read_bytes


def trimesh_reads(source: Path, target: Path) -> Callable[[], object]:
    import trimesh

    del target
    return lambda: trimesh.load_mesh(source)


def prusa_converts(source: Path, target: Path) -> list[str]:
    kind = target.suffix[1:]
    return ["prusa-slicer", f"--export-{kind}", "--output", str(target), str(source)]


def assimp_converts(source: Path, target: Path) -> list[str]:
    return ["assimp", "export", str(source), str(target)]


def meshhub_program(source: Path, target: Path) -> list[str]:
    return [sys.executable, "-m", "meshhub", "convert", str(source), "--output", str(target), "--force", "--quiet"]


JOBS: dict[str, tuple[str, int, str, list[Callable[..., object]]]] = {
    "to-3mf": (
        "20 MB binary STL → 3MF",
        FACES_20_MB,
        ".3mf",
        [meshhub_converts, pymeshlab_converts, trimesh_converts, meshhub_program, prusa_converts, assimp_converts],
    ),
    "to-obj": (
        "20 MB binary STL → OBJ",
        FACES_20_MB,
        ".obj",
        [
            meshhub_converts,
            trimesh_converts,
            pymeshlab_converts,
            meshio_converts,
            meshhub_program,
            prusa_converts,
            assimp_converts,
        ],
    ),
    "reduce": (
        "1 M faces → 50 000 (STL in and out)",
        FACES_1_M,
        ".stl",
        [meshhub_reduces, pymeshlab_reduces, trimesh_reduces],
    ),
    "repair": ("repair 200 000 faces with 200 holes", FACES_DAMAGED, ".stl", [meshhub_repairs, trimesh_repairs]),
    "read": ("read and weld 50 MB of binary STL", FACES_1_M, ".none", [meshhub_reads, plain_reads, trimesh_reads]),
}

PROGRAMS = (meshhub_program, prusa_converts, assimp_converts)


def measure_in_process(job: str, contender: str, folder: Path) -> None:
    """Run one contender in this process; print its times and peak as JSON."""
    _, faces, suffix, _ = JOBS[job]
    source, target = write_sphere(folder, faces), folder / f"{contender}{suffix}"
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
    _, faces, suffix, _ = JOBS[job]
    source, target = write_sphere(folder, faces), folder / f"{contender.__name__}{suffix}"
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
    with tempfile.TemporaryDirectory(prefix="meshhub-speed-") as folder:
        for job in arguments.what or JOBS:
            title, _, _, contenders = JOBS[job]
            print(f"\n### {title}\n")
            print("| contender | warm s | cold s | ratio | peak MB | output MB |\n|---|---|---|---|---|---|")
            base: dict[str, float] = {}
            for contender in contenders:
                figures = measure(job, contender, Path(folder))
                if figures is None:
                    continue
                base = {**figures, **base}
                kind = "warm" if "warm" in figures else "cold"
                cells = [f"{figures[name]:.2f}" if name in figures else "–" for name in ("warm", "cold")]
                peak = f"{figures['peak']:.0f}" if "peak" in figures else "–"
                name = contender.__name__.replace("_", " ")
                print(
                    f"| {name} | {' | '.join(cells)} | {figures[kind] / base[kind]:.1f} | {peak} "
                    f"| {figures.get('bytes', 0) / 1e6:.1f} |",
                    flush=True,
                )
    versions = (f"{name} {importlib.import_module(name).__version__}" for name in ("numpy", "pyarrow", "trimesh"))
    print(f"\nPython {sys.version.split()[0]}, {', '.join(versions)}, {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
