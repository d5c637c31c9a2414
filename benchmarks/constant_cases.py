"""Small fast cases for `constants.py`, and what is observed of each: verdicts, repaired meshes, recognized surfaces."""

from __future__ import annotations

import contextlib
import csv
import itertools
import pickle
import re
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
import numpy as np

STEADY_DIGITS = 4
"""Digits of figures that are compared."""

SURFACE = re.compile(
    rb"=\s*(PLANE|CYLINDRICAL_SURFACE|CONICAL_SURFACE|SPHERICAL_SURFACE|TOROIDAL_SURFACE|B_SPLINE_SURFACE_WITH_KNOTS|"
    rb"SURFACE_OF_LINEAR_EXTRUSION|SURFACE_OF_REVOLUTION)\(([^;]*)\);"
)
"""Surface of a STEP file, and its arguments."""


class Case(NamedTuple):
    """Input of a run.

    path:    model, or a pickled scene
    options: options of the request
    """

    name: str
    path: Path
    options: dict[str, Any]


def trim(value: Any) -> Any:
    """Return figures with few digits, for JSON."""
    if isinstance(value, dict):
        return {str(key): trim(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [trim(item) for item in value]
    return float(f"{value:.{STEADY_DIGITS}g}") + 0.0 if isinstance(value, float) else value


def list_real(folders: list[Path], faces: range, suffixes: tuple[str, ...]) -> Iterator[tuple[Path, dict[str, str]]]:
    """Yield the small files that the INDEX.csv of each folder lists, and their rows; the smallest first."""
    for folder in folders:
        with (folder / "INDEX.csv").open(newline="", encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if Path(row["file"]).suffix.lower() in suffixes]
        for row in sorted(rows, key=lambda row: int(row["bytes"])):
            # a binary STL file has 50 bytes for each face
            if int(row.get("n_faces") or int(row["bytes"]) // 50) in faces:
                yield folder / row["file"], row


# print checks


def make_print(folder: Path, parts: list[Path]) -> Iterator[Case]:
    """Yield scenes of `check.py`, whole checks of small designs, real parts, and their bad twins."""
    import check
    from meshhub import Registry
    from printed_parts import TWIN_CHECKS, make_twins, read_solid

    def keep(name: str, scene: Any, **options: Any) -> Case:
        path = folder / f"{zlib.crc32(name.encode())}.pickle"
        path.write_bytes(pickle.dumps(scene))
        return Case(name, path, options)

    for kind in check.KINDS:
        random = np.random.default_rng(7)
        for is_bad in (True, False):
            case = kind.make(random, is_bad)
            yield keep(f"{kind.name}{', bad' * is_bad}", check.as_scene(case.parts), checks=kind.check, **kind.options)
    for name, solids, options in list_designs():
        yield keep(name, check.as_scene(solids), skip_checks="slicer", **options)
    chosen = [path for path, _ in list_real(parts[1:], range(400, 3000), (".stl",))][:12:2]
    chosen += [path for path, _ in list_real(parts[:1], range(100, 2500), (".stl",))][::5]
    with Registry(entry_points=False) as registry:
        for number, path in enumerate(chosen):
            yield Case(path.stem[-40:], path, {"skip_checks": "slicer"})
            solid = read_solid(registry, path) if number == 0 else None
            if solid is None:
                continue
            for kind_name, twin in make_twins(solid, np.random.default_rng(number)):
                checks = TWIN_CHECKS.get(kind_name, "size,walls")
                yield keep(f"{path.stem[-30:]}: {kind_name}", check.as_scene((twin.solid,)), checks=checks)


def list_designs() -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """Yield names, solids and options of bodies at the limits of the checks."""
    from manifold3d import Manifold

    from check import block

    cylinder = Manifold.cylinder
    cup = cylinder(12, 10, 10, 48) - cylinder(10, 8, 8, 48).translate((0, 0, -0.01))
    ball = Manifold.sphere(10, 48) - Manifold.sphere(8, 48)
    vented = ball - cylinder(12, 1.2, 1.2, 24)
    table = block(50, 10, 3, (0, 0, 10)) + block(5, 10, 11) + block(5, 10, 11, (45, 0, 0))
    shelf = block(10, 10, 30) + block(18, 10, 2, (0, 0, 20))
    tower = cylinder(60, 2, 2, 32)
    tip = cylinder(20, 2.3, 8, 48)
    parted = tuple(block(20, 10, 5, (22 * number, 0, 0)) for number in range(3))
    stack = block(20, 20, 5), block(20, 20, 5, (0, 0, 5.03)), block(4, 4, 4, (30, 0, 2))
    lattice = Manifold()
    for number in range(5):
        lattice += block(30, 0.9, 1, (0, 7 * number, 0)) + block(0.9, 29, 1, (7 * number, 0, 0.5))
    for process in ("resin", "sls"):
        for name, solid in (("cup", cup), ("hollow ball", ball), ("vented ball", vented), ("table", table)):
            yield f"{name}, {process}", (solid,), {"print_process": process}
    for name, solids in {
        "cup": (cup,), "table": (table,), "shelf": (shelf,), "tower": (tower,), "tip": (tip,),
        "three parts": parted, "stack": stack, "lattice": (lattice,), "ball": (Manifold.sphere(12, 48),),
        "in meters": (block(0.05, 0.03, 0.02),), "of half a meter": (block(0.6, 0.4, 0.3),),
        "of 1.5 mm": (block(1.5, 1, 1),), "of 3 mm": (block(3, 2, 2),),
        "of 1.2 m": (block(1200, 30, 20),), "of 3 m": (block(3000, 900, 200),),
        "above the bed": (block(20, 20, 5, (0, 0, 0.02)),), "slab": (block(120, 80, 4),),
    }.items():  # fmt: skip
        yield f"{name}, filament", solids, {}
    for name, solid in (("shelf", shelf), ("table", table)):
        yield f"{name}, support everywhere", (solid,), {"print_support": "everywhere"}
    yield "table, nozzle of 0.8 mm", (table,), {"print_nozzle_mm": 0.8, "print_layer_mm": 0.4}
    yield "ball, 150 mm/s", (Manifold.sphere(12, 48),), {"print_speed_mm_s": 150.0, "print_infill_percent": 60.0}


def observe_print(case: Case) -> Any:
    """Check a model; return the verdict."""
    from meshhub import Registry

    scene = pickle.loads(case.path.read_bytes()) if case.path.suffix == ".pickle" else case.path
    with Registry(entry_points=False) as registry:
        verdict = registry.check(scene, **case.options)
    findings = [
        (finding.code, finding.severity, finding.amount, finding.share, finding.places_found, finding.remedy,
         [np.round(place.position_mm, 1).tolist() for place in finding.places[:5]])
        for finding in verdict.findings
    ]  # fmt: skip
    figures = {check.step: check.figures for check in verdict.checks}
    estimate = verdict.estimate
    return trim([verdict.verdict, findings, figures, msgspec.to_builtins(estimate)])


# repair


def make_repair(folder: Path, parts: list[Path]) -> Iterator[Case]:
    """Yield damaged bodies, sheets and valid meshes of `repair/recipes.py`, and open or crossing real files."""
    from benchmarks.repair import recipes
    from benchmarks.repair.judge import write_stl

    def keep(case: Any, **options: Any) -> Case:
        path = folder / f"{zlib.crc32(case.name.encode())}.stl"
        if not path.exists():
            write_stl(path, case.parts)
        return Case(", ".join([case.name, *options]), path, options or {"repair": True})

    damaged, valid = list(recipes.make_damaged(1)), list(recipes.make_valid(1))
    yield from (keep(case) for case in (*damaged, *recipes.make_sheets(1), *valid))
    crumbs = [case for case in damaged if case.name.startswith(("crumbs", "stray_shells", "everything", "collapsed"))]
    yield from (keep(case, repair_fragments_mm=1.0) for case in crumbs)
    pairs = [case for case in valid if case.name.startswith(("overlapping", "body in", "hollow", "many", "knot"))]
    yield from (keep(case, repair_self_intersections=True) for case in pairs)
    yield from (keep(case, repair_solid=True) for case in (*crumbs, *pairs, *recipes.make_double_shells(4)))
    yield from (keep(case, repair_wrap_mm=2.0) for case in damaged[:8:3])
    yield from list_open(parts[0])


def list_open(folder: Path) -> Iterator[Case]:
    """Yield the small files of a folder that are not closed."""
    for path, row in list_real([folder], range(2, 3500), (".stl", ".obj", ".ply")):
        if row["watertight"] == "False" and row["expect"] == "converts":
            yield Case(path.name[-40:], path, {"repair": True})
            if int(row["n_bodies"] or 1) > 1 and int(row["n_faces"]) > 100:
                yield Case(f"{path.name[-40:]}, solid", path, {"repair_solid": True})
                yield Case(f"{path.name[-40:]}, united", path, {"repair_self_intersections": True})


def observe_repair(case: Case) -> Any:
    """Repair a file; return its figures, notes and shape."""
    from meshhub import Registry

    with tempfile.TemporaryDirectory() as folder, Registry(entry_points=False) as registry:
        target = Path(folder, "model.stl")
        report = registry.convert(case.path, target, options=case.options)
        record = np.dtype([("normal", "<f4", 3), ("corner", "<f4", (3, 3)), ("attribute", "<u2")])
        corners = np.frombuffer(target.read_bytes(), record, offset=84)["corner"].astype(np.float64)
    points, index = np.unique(corners.reshape(-1, 3), axis=0, return_inverse=True)
    faces = index.reshape(-1, 3)
    ends = np.stack([faces, np.roll(faces, -1, axis=1)], axis=2).reshape(-1, 2)
    keys = ends[:, 0] * len(points) + ends[:, 1]
    open_count = int((~np.isin(keys, ends[:, 1] * len(points) + ends[:, 0])).sum())
    volume = float(np.einsum("ij,ij->i", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])).sum() / 6)
    area = float(np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1).sum())
    figures = {name: value for step in report.steps for name, value in step.figures.items()
               if not name.startswith(("volume_", "size_"))}  # fmt: skip
    return trim([figures, sorted(note.code for note in report.notes), len(faces), open_count, volume, area])


# recognition

TRIANGULATIONS = MappingProxyType(
    {
        "clean": range(10),
        "split": (0, 4),
        "remeshed": (0, 4),
        "reduced": (1,),
        "noise 0.02": (2, 8),
        "noise 0.05": (0,),
    }
)
"""Numbers of the parts of `step_triangulations.py` in each triangulation."""

DESIGNS = range(40, 56)
"""Numbers of the random parts."""

MAX_BYTES = 200_000
"""Largest file of a made part: 4000 triangles."""


def make_recognition(folder: Path, parts: list[Path]) -> Iterator[Case]:
    """Yield CAD parts in several triangulations, random designs, free-form parts, and real parts."""
    import step_freeform
    import step_triangulations
    from cad_parts.parts import make

    for kind, numbers in TRIANGULATIONS.items():
        for number in numbers:
            path = folder / f"{kind}-{number}.stl"
            step_triangulations.make(number, kind, str(path))
            yield Case(f"{kind}: {step_triangulations.BUILDERS[number % 10].__name__} {number}", path, {})
    designs: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = [
        *((f"design {number}", make, (number,)) for number in DESIGNS),
        *((f"freeform {family.__name__}", step_freeform.triangulate, (family.__name__, number))
          for number, family in enumerate(step_freeform.FAMILIES)),
    ]  # fmt: skip
    for name, build, arguments in designs:
        path = folder / f"{name}.stl"
        # some parts cannot be built, which OpenCASCADE reports in many ways
        with contextlib.suppress(Exception, SystemExit):
            build(*arguments, str(path))
        if path.exists() and path.stat().st_size < MAX_BYTES:
            yield Case(name, path, {})
    for path, _ in itertools.islice(list_real(parts[1:], range(400, 2500), (".stl",)), 0, 6, 3):
        yield Case(path.stem[-40:], path, {})
    for number, (path, row) in enumerate(list_real(parts[:1], range(60, 1500), (".stl", ".obj", ".ply"))):
        if row["watertight"] == "True" and number % 3 == 0:
            yield Case(path.name[-40:], path, {})


def observe_recognition(case: Case) -> Any:
    """Convert a mesh to STEP without the kernel; return the surfaces by kind, with their radii, and the figures."""
    from meshhub import Registry
    from meshhub.builtin_plugins.step import writer

    # the kernel takes most of the time, and judges what is recognized only at the end
    writer.is_available = lambda: False
    with tempfile.TemporaryDirectory() as folder, Registry(entry_points=False) as registry:
        target = Path(folder, "model.step")
        report = registry.convert(case.path, target, options=case.options)
        surfaces = SURFACE.findall(target.read_bytes())
    kinds = Counter(kind.decode() for kind, _ in surfaces)
    radii = sorted(
        [kind.decode(), *(trim(float(value)) for value in re.findall(rb",([-0-9.E+]+)", arguments))]
        for kind, arguments in surfaces
        if kind not in (b"PLANE", b"B_SPLINE_SURFACE_WITH_KNOTS")
    )
    figures = {name: value for step in report.steps for name, value in step.figures.items()
               if isinstance(value, int)}  # fmt: skip
    return [dict(kinds), radii, figures, sorted(note.code for note in report.notes)]


MAKERS: dict[str, Callable[[Path, list[Path]], Iterator[Case]]] = {
    "print": make_print,
    "repair": make_repair,
    "recognition": make_recognition,
}
"""Cases of each package: called with a folder for files, and the folders of real parts."""

OBSERVERS: dict[str, Callable[[Case], Any]] = {
    "print": observe_print,
    "repair": observe_repair,
    "recognition": observe_recognition,
}
"""Results of a case, for JSON."""
