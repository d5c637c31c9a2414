"""Preparation as multiples of a plain conversion: `python benchmarks/preparation.py [JOB …]`.

Each job is a command in a process of its own, on the closed wavy sphere of `speed.py` as binary STL. A round runs all
jobs one after the other, beginning with `meshhub convert` to STL; the ratio is the processor time of a job, over all of
its processes, divided by that of the conversion in the same round. The table has medians of the ratios, and the
largest resident memory. Peers that are not installed are left out: `uv pip install meshlib pymeshlab trimesh`, and
Debian's `prusa-slicer`.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import os
import resource
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from speed import write_sphere

FACES = (10_000, 100_000, 1_000_000)

PLAIN = "convert"

COMMANDS = {
    PLAIN: "convert {source} {target}",
    "check": "check {source}",
    "quote": "quote {source}",
    "repair": "convert {source} {target} --repair",
    "repair_self_intersections": "convert {source} {target} --repair-self-intersections",
    "optimize_target_faces": "convert {source} {target} --optimize-target-faces {few}",
    "orient": "convert {source} {target} --orient",
    "hollow_wall_mm": "convert {source} {target} --hollow-wall-mm 2",
    "offset_mm": "convert {source} {target} --offset-mm 0.2",
    "thicken_mm": "convert {source} {target} --thicken-mm 1",
    "render": "render {source} {picture}",
}

MESHLIB = """
import sys
from meshlib import mrmeshpy as m
mesh = m.loadMesh(sys.argv[1])
"""

PEERS = {
    "MeshLib: self-intersections": ("meshlib", MESHLIB + "m.findSelfCollidingTriangles(m.MeshPart(mesh))"),
    "MeshLib: wall thickness": ("meshlib", MESHLIB + "m.computeRayThicknessAtVertices(mesh)"),
    "MeshLib: offset": (
        "meshlib",
        MESHLIB
        + """
options = m.OffsetParameters()
options.voxelSize = m.suggestVoxelSize(mesh, 5e6)
m.saveMesh(m.offsetMesh(mesh, 0.2, options), sys.argv[2])""",
    ),
    "MeshLib: reduction": (
        "meshlib",
        MESHLIB
        + """
options = m.DecimateSettings()
options.maxDeletedFaces = mesh.topology.numValidFaces() - int(sys.argv[3])
options.maxError = 1e9
m.decimateMesh(mesh, options)
m.saveMesh(mesh, sys.argv[2])""",
    ),
    "pymeshlab: reduction": (
        "pymeshlab",
        """
import sys, pymeshlab
meshes = pymeshlab.MeshSet(verbose=False)
meshes.load_new_mesh(sys.argv[1])
meshes.meshing_decimation_quadric_edge_collapse(targetfacenum=int(sys.argv[3]))
meshes.save_current_mesh(sys.argv[2])""",
    ),
    "trimesh: convert": (
        "trimesh",
        "import sys, trimesh; trimesh.load_mesh(sys.argv[1]).export(sys.argv[2])",
    ),
}

SLICER = "PrusaSlicer: G-code"


def measure(command: list[str], expected: tuple[int, ...]) -> tuple[float, float]:
    """Return the processor time of a command and its children, s, and the largest resident memory of one, MB."""
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        null = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(null, number)
        child = os.posix_spawnp(command[0], command, os.environ)
        _, status = os.waitpid(child, 0)
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        failed = os.waitstatus_to_exitcode(status) not in expected
        text = "" if failed else f"{usage.ru_utime + usage.ru_stime} {usage.ru_maxrss / 1000}"
        os.write(writer, text.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    os.waitpid(process, 0)
    if not text:
        raise RuntimeError(f"failed: {' '.join(command)}")
    seconds, megabytes = map(float, text.split())
    return seconds, megabytes


def list_commands(source: Path, folder: Path, few: int) -> dict[str, list[str]]:
    """Return the command of each job and of each installed peer."""
    target, picture = folder / "result.stl", folder / "result.png"
    names = {"source": source, "target": target, "picture": picture, "few": few}
    program = [sys.executable, "-m", "meshhub"]
    commands = {job: [*program, *text.format(**names).split(), "--timeout", "0"] for job, text in COMMANDS.items()}
    for peer, (package, code) in PEERS.items():
        if importlib.util.find_spec(package) is not None:
            commands[peer] = [sys.executable, "-c", code, str(source), str(target), str(few)]
    if shutil.which("prusa-slicer"):
        commands[SLICER] = ["prusa-slicer", "--export-gcode", "--output", str(folder / "result.gcode"), str(source)]
    return commands


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jobs", nargs="*", help="jobs and peers, by the beginning of their name; default: all")
    parser.add_argument("--faces", type=int, nargs="+", default=FACES)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--csv", type=Path)
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        for faces in arguments.faces:
            source = write_sphere(folder, faces, ".stl")
            commands = list_commands(source, folder, max(1000, faces // 20))
            chosen = [job for job in commands if not arguments.jobs or job.startswith((PLAIN, *arguments.jobs))]
            rounds: dict[str, list[tuple[float, float]]] = {job: [] for job in chosen}
            for _ in range(arguments.rounds):
                for job in chosen:
                    for result in folder.glob("result.*"):
                        result.unlink()
                    # 1: `check` found a problem
                    rounds[job].append(measure(commands[job], (0, 1) if job == "check" else (0,)))
            for job, results in rounds.items():
                plain = [seconds for seconds, _ in rounds[PLAIN]]
                ratio = statistics.median(own / base for (own, _), base in zip(results, plain, strict=True))
                row = {
                    "faces": faces,
                    "job": job,
                    "cpu_s": f"{statistics.median(seconds for seconds, _ in results):.3g}",
                    "ratio": f"{ratio:.3g}",
                    "peak_mb": f"{max(megabytes for _, megabytes in results):.0f}",
                }
                print(" | ".join(str(value) for value in row.values()), flush=True)
                rows.append(row)
    if arguments.csv:
        with arguments.csv.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
