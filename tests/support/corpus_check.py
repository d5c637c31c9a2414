"""Conversion of every real file to every mesh target, checked by the readers of other programs.

`tox -e corpus` runs it over all of MESHHUB_CORPUS and prints the counts; `tests/test_corpus.py` runs a fixed sample.
A file that is expected to convert must convert to all six targets. For an outside reader, the results must have the
same bounding box (in millimeters), triangle count and volume as the source.
"""

from __future__ import annotations

import csv
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

from meshhub import Isolated, MeshhubError, Registry, Report

TIMEOUT = 60.0
TOLERANCE = 1e-5
Y_UP_METERS = np.array([[1000.0, 0, 0], [0, 0, -1000.0], [0, 1000.0, 0]])
LIB3MF_UNITS = (0.001, 1.0, 10.0, 25.4, 304.8, 1000.0)


@dataclass
class Shape:
    """Shape that an outside reader finds in a file, in millimeters, Z up."""

    low: np.ndarray
    high: np.ndarray
    faces: int
    volume: float
    by: str = ""

    def differs(self, other: Shape, tolerance: float) -> str:
        """Describe the difference to another shape; return "" if there is none."""
        diagonal = max(float(np.linalg.norm(self.high - self.low)), 1e-30)
        reach = max(diagonal, float(np.abs([self.low, self.high]).max()))
        if self.faces != other.faces:
            return f"faces {self.faces} ({self.by}) != {other.faces} ({other.by})"
        off = max(np.abs(self.low - other.low).max(), np.abs(self.high - other.high).max())
        if off > tolerance * reach:
            return f"bounds off by {off / diagonal:.2g} of the diagonal ({other.by})"
        if abs(self.volume - other.volume) > 20 * tolerance * reach * diagonal**2:
            return f"volume {self.volume:.6g} != {other.volume:.6g} ({other.by})"
        return ""


@dataclass
class Verdict:
    """Result of one file."""

    file: str
    expect: str
    outcome: str
    judged: bool = False
    faults: list[str] = field(default_factory=list)
    seconds: float = 0.0


def shape(triangles: np.ndarray, by: str) -> Shape:
    corners = np.asarray(triangles, np.float64).reshape(-1, 3, 3)
    points = corners.reshape(-1, 3)
    center = points.mean(axis=0)
    a, b, c = np.moveaxis(corners - center, 1, 0)
    return Shape(
        points.min(axis=0),
        points.max(axis=0),
        len(corners),
        float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6),
        by,
    )


def by_trimesh(path: Path, kind: str) -> Shape:
    import trimesh

    with path.open("rb") as file:
        resolver = trimesh.resolvers.FilePathResolver(str(path))
        scene = trimesh.load_scene(file, file_type=kind, process=False, resolver=resolver)
    corners = []
    for node in scene.graph.nodes_geometry:
        matrix, name = scene.graph[node]
        mesh = scene.geometry[name]
        if isinstance(mesh, trimesh.Trimesh) and len(mesh.faces):
            placed = trimesh.transform_points(mesh.vertices, matrix)[mesh.faces]
            corners.append(placed[:, ::-1] if np.linalg.det(matrix[:3, :3]) < 0 else placed)
    triangles = np.concatenate(corners)
    return shape(triangles @ Y_UP_METERS.T if kind in ("glb", "gltf") else triangles, "trimesh")


def by_meshio(path: Path, kind: str) -> Shape:
    import meshio

    read = {"stl": meshio.stl.read, "ply": meshio.ply.read, "obj": meshio.obj.read}[kind]
    mesh = read(str(path))
    cells = [block.data for block in mesh.cells if block.type == "triangle"]
    if any(block.type not in ("triangle", "vertex", "line") for block in mesh.cells):
        raise ValueError("polygons")
    return shape(mesh.points[np.concatenate(cells)], "meshio")


def by_lib3mf(path: Path, kind: str) -> Shape:
    del kind
    import lib3mf

    model = lib3mf.get_wrapper().CreateModel()
    model.QueryReader("3mf").ReadFromFile(str(path))
    unit = LIB3MF_UNITS[int(model.GetUnit())]
    corners: list[np.ndarray] = []

    def matrix(transform: object) -> np.ndarray:
        placement = np.eye(4)
        placement[:, :3] = np.array([list(row) for row in transform.Fields])  # type: ignore[attr-defined]
        return placement

    def walk(component: object, placed: np.ndarray) -> None:
        if component.GetType() != lib3mf.ObjectType.Model:  # type: ignore[attr-defined]
            return  # supports and the like are not printed
        if component.IsMeshObject():  # type: ignore[attr-defined]
            mesh = model.GetMeshObjectByID(component.GetResourceID())  # type: ignore[attr-defined]
            points = np.array([list(vertex.Coordinates) for vertex in mesh.GetVertices()]).reshape(-1, 3)
            faces = np.array([list(triangle.Indices) for triangle in mesh.GetTriangleIndices()], int).reshape(-1, 3)
            moved = (points @ placed[:3, :3] + placed[3, :3])[faces]
            corners.append(moved[:, ::-1] if np.linalg.det(placed[:3, :3]) < 0 else moved)
        elif component.IsComponentsObject():  # type: ignore[attr-defined]
            parts = model.GetComponentsObjectByID(component.GetResourceID())  # type: ignore[attr-defined]
            for index in range(parts.GetComponentCount()):
                part = parts.GetComponent(index)
                walk(part.GetObjectResource(), matrix(part.GetTransform()) @ placed)

    items = model.GetBuildItems()
    while items.MoveNext():
        item = items.GetCurrent()
        walk(item.GetObjectResource(), matrix(item.GetObjectTransform()))
    return shape(np.concatenate(corners) * unit, "lib3mf")


def by_assimp(path: Path, kind: str) -> Shape:
    program = shutil.which("assimp")
    if program is None:
        raise FileNotFoundError("assimp is not installed")
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / f"model.{kind}", Path(folder) / "model.stl"
        shutil.copyfile(path, source)
        subprocess.run([program, "export", source, target, "-fstlb"], check=True, capture_output=True, timeout=TIMEOUT)
        data = target.read_bytes()
    record = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
    triangles = np.frombuffer(data, record, offset=84)["corners"].reshape(-1, 3)
    return shape(triangles @ Y_UP_METERS.T if kind in ("glb", "gltf") else triangles, "assimp")


JUDGES: dict[str, tuple[Callable[[Path, str], Shape], ...]] = {
    "stl": (by_trimesh, by_meshio, by_assimp),
    "ply": (by_trimesh, by_meshio, by_assimp),
    "obj": (by_trimesh, by_meshio, by_assimp),
    "glb": (by_trimesh, by_assimp),
    "gltf": (by_trimesh, by_assimp),
    "3mf": (by_lib3mf, by_trimesh),
}


def outside(path: Path, kind: str) -> Iterator[Shape]:
    """Yield the shapes that the readers of other programs find in a file; skip the readers that fail."""
    for judge in JUDGES[kind]:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                shape = judge(path, kind)
        except Exception:
            continue
        yield shape


@cache
def registry() -> Registry:
    return Registry(entry_points=False, engine=Isolated(workers=1))


def convert(source: Path, target: Path) -> Report | str:
    """Convert a file; return the report, or the code of the error."""
    try:
        return registry().convert(source, target, timeout=TIMEOUT)
    except MeshhubError as error:
        return error.error_code


def check(path: Path, expect: str, targets: tuple[str, ...] = tuple(JUDGES)) -> Verdict:
    """Convert one file to every target, and check the results."""
    started = time.perf_counter()
    verdict = Verdict(f"{path.parent.name}/{path.name}", expect, "")
    with tempfile.TemporaryDirectory() as folder:
        # copy the file to an empty folder, without its neighbors in the corpus
        alone, out = Path(folder) / "alone" / path.name, Path(folder) / "out"
        alone.parent.mkdir()
        out.mkdir()
        alone.write_bytes(path.read_bytes())
        outcomes = {target: convert(alone, out / f"model.{target}") for target in targets}
        codes = {outcome for outcome in outcomes.values() if isinstance(outcome, str)}
        verdict.outcome = "converts" if not codes else "/".join(sorted(codes))
        if codes and len(codes | {"" for outcome in outcomes.values() if not isinstance(outcome, str)}) > 1:
            ends = {name: outcome if isinstance(outcome, str) else "converts" for name, outcome in outcomes.items()}
            verdict.faults.append(f"not all targets end alike: {ends}")
        fitting = {"converts": not codes, "external_reference": codes == {"external_reference"}, "error": bool(codes)}
        if not fitting.get(expect, True):
            verdict.faults.append(f"expected {expect}, got {verdict.outcome}")
        if codes & {"conversion_failed", "worker_crashed", "conversion_timeout", "internal_error"}:
            verdict.faults.append(f"ended as {verdict.outcome}")
        first = next(iter(outcomes.values()))
        if not codes and isinstance(first, Report):
            _judge(verdict, alone, first, {target: out / f"model.{target}" for target in targets})
    verdict.seconds = time.perf_counter() - started
    return verdict


def _judge(verdict: Verdict, source: Path, report: Report, written: dict[str, Path]) -> None:
    """Compare the written files with the source as outside readers see them; one reader that agrees is enough."""
    first, *_ = written
    ours = next(outside(written[first], first), None)
    if ours is None:
        verdict.faults.append(f"{first}: no outside reader opens what was written")
        return
    words = []
    for shape in outside(source, report.source.format):
        verdict.judged = True
        words.append(shape.differs(ours, TOLERANCE))
        if not words[-1]:
            ours = shape
            break
    else:
        if words:
            verdict.faults.append(f"source: {'; '.join(words)}")
    for kind, path in written.items():
        words = []
        for shape in outside(path, kind):
            words.append(ours.differs(shape, TOLERANCE))
            if not words[-1]:
                break
        else:
            verdict.faults.append(f"{kind}: {'; '.join(words) or 'no outside reader opens what was written'}")


def rows(corpus: Path) -> list[dict[str, str]]:
    """Return the index of the corpus without STEP."""
    with (corpus / "INDEX.csv").open(newline="", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if not row["file"].startswith("step/")]


def _check_row(job: tuple[Path, str]) -> Verdict:
    return check(*job)


def main() -> int:
    """Check all files in parallel and print the counts; return the exit status."""
    corpus = Path(os.environ["MESHHUB_CORPUS"])
    patterns = sys.argv[1:]
    jobs = [
        (corpus / row["file"], row["expect"])
        for row in rows(corpus)
        if not patterns or any(word in row["file"] for word in patterns)
    ]
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        verdicts = list(pool.map(_check_row, jobs))
    for verdict in verdicts:
        for fault in verdict.faults:
            print(f"{verdict.file}: {fault}")
    counts = Counter((verdict.file.split("/")[0], verdict.expect, verdict.outcome) for verdict in verdicts)
    print(f"\n{'format':8}{'expected':20}{'ended as':44}{'files':>6}")
    for (kind, expect, outcome), count in sorted(counts.items()):
        print(f"{kind:8}{expect:20}{outcome:44}{count:6}")
    good = [verdict for verdict in verdicts if not verdict.faults]
    judged = sum(verdict.judged for verdict in verdicts)
    slowest = max(verdicts, key=lambda verdict: verdict.seconds)
    print(f"\n{len(verdicts)} files, {judged} sources judged by an outside reader")
    print(f"slowest: {slowest.file}, {slowest.seconds:.1f} s")
    print(f"{len(good)} passed, {len(verdicts) - len(good)} failed")
    return 0 if len(good) == len(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
