"""Random parts with free-form faces, as a CAD program triangulates them, through meshhub and back to CAD.

    python benchmarks/step_freeform.py [--parts 60] [--first 0] [--surfaces freeform] [--family extruded_blob]

Families: extruded closed and open splines, gears, ellipses, revolved splines, lofts, sweeps, fillets with varying
radius, tilted fillets. OpenCASCADE triangulates each part at one of three tolerances, a binary STL file rounds its
corners to 32 bits, half of the parts are turned and moved; OpenCASCADE judges the STEP file. Volumes are those of fine
triangles: the integrals of OpenCASCADE over B-spline surfaces are off by up to 1.5 %.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent.parent / "tests" / "support"))

from cad_parts.occ import box, cut, cylinder, join, measure_volume
from meshhub import Registry, Source
from step import convert, in_process

ACCURACIES = ((0.005, 0.1), (0.03, 0.2), (0.1, 0.5))
"""Deviation (mm) and angle (radians) of the triangles."""


def spline_edge(points: list[tuple[float, float, float]], *, closed: bool = False) -> Any:
    """An edge on the spline through some points."""
    from OCP.BRepBuilderAPI import BRepBuilderAPI_MakeEdge
    from OCP.collections import HArray1_gp_Pnt
    from OCP.GeomAPI import GeomAPI_Interpolate
    from OCP.gp import gp_Pnt

    array = HArray1_gp_Pnt(1, len(points))
    for number, point in enumerate(points, 1):
        array.SetValue(number, gp_Pnt(*point))
    spline = GeomAPI_Interpolate(array, closed, 1e-6)
    spline.Perform()
    return BRepBuilderAPI_MakeEdge(spline.Curve()).Edge()


def line_edge(a: tuple[float, float, float], b: tuple[float, float, float]) -> Any:
    """A straight edge."""
    from OCP.BRepBuilderAPI import BRepBuilderAPI_MakeEdge
    from OCP.gp import gp_Pnt

    return BRepBuilderAPI_MakeEdge(gp_Pnt(*a), gp_Pnt(*b)).Edge()


def wire(*edges: Any) -> Any:
    """A wire of edges in order."""
    from OCP.BRepBuilderAPI import BRepBuilderAPI_MakeWire

    builder = BRepBuilderAPI_MakeWire()
    for edge in edges:
        builder.Add(edge)
    return builder.Wire()


def extrude(outline: Any, height: float) -> Any:
    """A prism over a wire."""
    from OCP.BRepBuilderAPI import BRepBuilderAPI_MakeFace
    from OCP.BRepPrimAPI import BRepPrimAPI_MakePrism
    from OCP.gp import gp_Vec

    return BRepPrimAPI_MakePrism(BRepBuilderAPI_MakeFace(outline).Face(), gp_Vec(0, 0, height)).Shape()


def ring(
    chance: random.Random, reach: float, rough: float, count: int, z: float = 0.0
) -> list[tuple[float, float, float]]:
    """Points around the origin at random distances."""
    return [
        (distance * math.cos(angle), distance * math.sin(angle), z)
        for angle, distance in (
            (2 * math.pi * k / count, reach * chance.uniform(1 - rough, 1 + rough)) for k in range(count)
        )
    ]


def extruded_blob(chance: random.Random) -> Any:
    """A plate with a smooth closed outline, some with a hole."""
    part = extrude(
        wire(spline_edge(ring(chance, 20, 0.25, chance.randrange(5, 10)), closed=True)), chance.uniform(3, 15)
    )
    return cut(part, cylinder(0, 0, -1, 20, chance.uniform(2, 8))) if chance.random() < 0.5 else part


def extruded_outline(chance: random.Random) -> Any:
    """A block with one wavy side, some with a hole through it."""
    length, height = chance.uniform(20, 50), chance.uniform(5, 20)
    wave = [(length * k / 6, 10 + chance.uniform(-3, 3), 0.0) for k in range(7)]
    corners = [wave[-1], (length, 0.0, 0.0), (0.0, 0.0, 0.0), wave[0]]
    edges = [spline_edge(wave), *(line_edge(a, b) for a, b in itertools.pairwise(corners))]
    part = extrude(wire(*edges), height)
    if chance.random() < 0.4:
        from OCP.BRepPrimAPI import BRepPrimAPI_MakeCylinder
        from OCP.gp import gp_Ax2, gp_Dir, gp_Pnt

        axes = gp_Ax2(gp_Pnt(length / 2, -5, height / 2), gp_Dir(0, 1, 0))
        part = cut(part, BRepPrimAPI_MakeCylinder(axes, height / 5, 40).Shape())
    return part


def gear(chance: random.Random) -> Any:
    """A gear with spline flanks, lands and bottoms, and a bore."""
    teeth, inner, outer = chance.randrange(8, 20), 15.0, 15 + chance.uniform(2, 4)
    pitch = 2 * math.pi / teeth
    edges, last, first = [], None, None
    for tooth in range(teeth):
        base = tooth * pitch

        def at(radius: float, share: float, base: float = base) -> tuple[float, float, float]:
            return radius * math.cos(base + share * pitch), radius * math.sin(base + share * pitch), 0.0

        shares = [0.25 - 0.12 * (t + 0.6 * t * t) / 1.6 for t in (0, 0.25, 0.5, 0.75, 1)]
        radii = [inner + (outer - inner) * t for t in (0, 0.25, 0.5, 0.75, 1)]
        rise = [at(radius, -share) for radius, share in zip(radii, shares, strict=True)]
        fall = [at(radius, share) for radius, share in zip(radii[::-1], shares[::-1], strict=True)]
        if last is not None:
            edges.append(line_edge(last, rise[0]))
        first = first or rise[0]
        edges += [spline_edge(rise), line_edge(rise[-1], fall[0]), spline_edge(fall)]
        last = fall[-1]
    assert last is not None and first is not None
    edges.append(line_edge(last, first))
    return cut(extrude(wire(*edges), chance.uniform(4, 12)), cylinder(0, 0, -1, 20, chance.uniform(2, 8)))


def ellipse_plate(chance: random.Random) -> Any:
    """An elliptical plate with an elliptical hole."""
    from OCP.BRepBuilderAPI import BRepBuilderAPI_MakeEdge
    from OCP.gp import gp_Ax2, gp_Dir, gp_Elips, gp_Pnt

    def ellipse(major: float, minor: float) -> Any:
        return wire(BRepBuilderAPI_MakeEdge(gp_Elips(gp_Ax2(gp_Pnt(0, 0, 0), gp_Dir(0, 0, 1)), major, minor)).Edge())

    major, height = chance.uniform(15, 30), chance.uniform(3, 12)
    outer = extrude(ellipse(major, major * chance.uniform(0.4, 0.9)), height)
    return cut(outer, extrude(ellipse(major * 0.3, major * 0.2), height))


def turned(chance: random.Random) -> Any:
    """A turned body with a free profile: whole or a sector, with flat ends."""
    from OCP.BRepBuilderAPI import BRepBuilderAPI_MakeFace
    from OCP.BRepPrimAPI import BRepPrimAPI_MakeRevol
    from OCP.gp import gp_Ax1, gp_Dir, gp_Pnt

    height = chance.uniform(20, 50)
    outer = [(chance.uniform(8, 18), 0.0, height * k / 5) for k in range(6)]
    core = chance.choice([0.0, 3.0])
    corners = [outer[-1], (core, 0.0, height), (core, 0.0, 0.0), outer[0]]
    edges = [spline_edge(outer), *(line_edge(a, b) for a, b in itertools.pairwise(corners))]
    face = BRepBuilderAPI_MakeFace(wire(*edges)).Face()
    angle = chance.choice([2 * math.pi, 2 * math.pi, chance.uniform(1, 5)])
    return BRepPrimAPI_MakeRevol(face, gp_Ax1(gp_Pnt(0, 0, 0), gp_Dir(0, 0, 1)), angle).Shape()


def loft(chance: random.Random) -> Any:
    """A smooth body through closed sections."""
    from OCP.BRepOffsetAPI import BRepOffsetAPI_ThruSections

    builder = BRepOffsetAPI_ThruSections(True, False, 1e-6)
    for level in range(chance.randrange(2, 5)):
        builder.AddWire(wire(spline_edge(ring(chance, chance.uniform(10, 20), 0.1, 8, 12.0 * level), closed=True)))
    builder.Build()
    return builder.Shape()


def varying_fillet(chance: random.Random) -> Any:
    """A block with fillets whose radius varies along the edge."""
    from OCP.BRepFilletAPI import BRepFilletAPI_MakeFillet
    from OCP.TopAbs import TopAbs_EDGE
    from OCP.TopExp import TopExp_Explorer
    from OCP.TopoDS import TopoDS

    part = box(0, 0, 0, chance.uniform(12, 25), chance.uniform(25, 50), chance.uniform(20, 40))
    edges, explorer = [], TopExp_Explorer(part, TopAbs_EDGE)
    while explorer.More():
        edges.append(TopoDS.Edge(explorer.Current()))
        explorer.Next()
    builder = BRepFilletAPI_MakeFillet(part)
    builder.Add(chance.uniform(0.5, 2), chance.uniform(2.5, 5), chance.choice(edges))
    return builder.Shape()


def tilted_fillet(chance: random.Random) -> Any:
    """A plate with a leaning pin and a fillet around its foot."""
    from OCP.BRepAdaptor import BRepAdaptor_Curve
    from OCP.BRepFilletAPI import BRepFilletAPI_MakeFillet
    from OCP.BRepPrimAPI import BRepPrimAPI_MakeCylinder
    from OCP.GeomAbs import GeomAbs_Ellipse
    from OCP.gp import gp_Ax2, gp_Dir, gp_Pnt
    from OCP.TopAbs import TopAbs_EDGE
    from OCP.TopExp import TopExp_Explorer
    from OCP.TopoDS import TopoDS

    plate = box(0, 0, 0, 8, 60, 50)
    axes = gp_Ax2(gp_Pnt(0, 0, 2), gp_Dir(chance.uniform(0.2, 0.6), 0, 1))
    part = join(plate, BRepPrimAPI_MakeCylinder(axes, chance.uniform(5, 9), 35).Shape())
    builder = BRepFilletAPI_MakeFillet(part)
    explorer = TopExp_Explorer(part, TopAbs_EDGE)
    while explorer.More():
        edge = TopoDS.Edge(explorer.Current())
        if BRepAdaptor_Curve(edge).GetType() == GeomAbs_Ellipse:
            builder.Add(chance.uniform(1, 3), edge)
            break
        explorer.Next()
    return builder.Shape()


def pipe(chance: random.Random) -> Any:
    """A round profile along a spline in space."""
    from OCP.BRepBuilderAPI import BRepBuilderAPI_MakeFace
    from OCP.BRepOffsetAPI import BRepOffsetAPI_MakePipe

    path = [(10.0 * k, chance.uniform(-6, 6), chance.uniform(-6, 6)) for k in range(5)]
    across = [(0.0, 3 * math.cos(a), 3 * math.sin(a)) for a in (2 * math.pi * k / 8 for k in range(8))]
    profile = wire(spline_edge([(path[0][0], path[0][1] + y, path[0][2] + z) for _, y, z in across], closed=True))
    return BRepOffsetAPI_MakePipe(wire(spline_edge(path)), BRepBuilderAPI_MakeFace(profile).Face()).Shape()


FAMILIES: tuple[Callable[[random.Random], Any], ...] = (
    extruded_blob,
    extruded_outline,
    gear,
    ellipse_plate,
    turned,
    loft,
    varying_fillet,
    tilted_fillet,
    pipe,
)


def triangulate(family: str, number: int, path: str) -> dict[str, Any]:
    """Write the triangles of a part and return its volume and number of faces."""
    from OCP.BRepBuilderAPI import BRepBuilderAPI_Transform
    from OCP.BRepCheck import BRepCheck_Analyzer
    from OCP.BRepMesh import BRepMesh_IncrementalMesh
    from OCP.gp import gp_Ax1, gp_Dir, gp_Pnt, gp_Trsf, gp_Vec
    from OCP.StlAPI import StlAPI_Writer
    from OCP.TopAbs import TopAbs_FACE
    from OCP.TopExp import TopExp_Explorer

    chance = random.Random(number)
    part = globals()[family](chance)
    if chance.random() < 0.5:
        turn, shift = gp_Trsf(), gp_Trsf()
        along = gp_Dir(chance.uniform(-1, 1), chance.uniform(-1, 1), chance.uniform(0.1, 1))
        turn.SetRotation(gp_Ax1(gp_Pnt(0, 0, 0), along), chance.uniform(0, 6))
        shift.SetTranslation(gp_Vec(*(chance.uniform(-100, 100) for _ in range(3))))
        part = BRepBuilderAPI_Transform(part, shift.Multiplied(turn), True).Shape()
    if not BRepCheck_Analyzer(part).IsValid():
        sys.exit("OpenCASCADE made no valid part")
    deviation, angle = ACCURACIES[number % len(ACCURACIES)]
    BRepMesh_IncrementalMesh(part, deviation, False, angle, False)
    triangles = StlAPI_Writer()
    triangles.ASCIIMode = False
    triangles.Write(part, path)
    faces, explorer = 0, TopExp_Explorer(part, TopAbs_FACE)
    while explorer.More():
        faces += 1
        explorer.Next()
    return {"faces": faces, "volume": measure_volume(part)}


def measure_file(path: str) -> dict[str, Any]:
    """Return the volume of a STEP file."""
    from OCP.STEPControl import STEPControl_Reader

    reader = STEPControl_Reader()
    reader.ReadFile(path)
    reader.TransferRoots()
    return {"volume": measure_volume(reader.OneShape())}


def in_another_process(*arguments: str) -> dict[str, Any] | None:
    """Run a part of this file in a separate process, because OpenCASCADE may crash; None if it does."""
    command = [sys.executable, __file__, *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return json.loads(result.stdout.splitlines()[-1]) if result.returncode == 0 else None


def main() -> int:
    """Build, convert and check the parts; print a row for each family."""
    if sys.argv[1:2] == ["make"]:
        print(json.dumps(triangulate(sys.argv[2], int(sys.argv[3]), sys.argv[4])))
        return 0
    if sys.argv[1:2] == ["measure"]:
        print(json.dumps(measure_file(sys.argv[2])))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=int, default=60)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--surfaces", default="freeform")
    parser.add_argument("--family", choices=[family.__name__ for family in FAMILIES])
    parser.add_argument("--keep", type=Path, help="folder for the files")
    chosen = parser.parse_args()
    families = [chosen.family] if chosen.family else [family.__name__ for family in FAMILIES]
    sums: dict[str, Counter[str]] = defaultdict(Counter)
    silent = 0
    print("part                      triangles  original   planar    faces  valid  volume    s")
    for number in range(chosen.first, chosen.first + chosen.parts):
        family = families[number % len(families)]
        with tempfile.TemporaryDirectory() as folder:
            place = chosen.keep or Path(folder)
            stem = f"{family}-{number}"
            part, back, before = place / f"{stem}.stl", place / f"{stem}.step", place / f"{stem}-before.step"
            original = in_another_process("make", family, str(number), str(part))
            summary = Registry().inspect(Source.from_path(part)).model if original else None
            if original is None or summary is None or not summary.watertight:
                sums[family]["left out"] += 1
                continue
            _, flat = convert(part, before, step_surfaces="planar")
            seconds, figures = convert(part, back, step_surfaces=chosen.surfaces)
            after = in_process("judge", str(back))
            measured = in_another_process("measure", str(back))
        valid = "error" not in after and after["valid"] and after["solids"] == figures["solids"]
        error = measured["volume"] / original["volume"] - 1 if valid and measured else math.nan
        silent += not valid and figures.get("valid_solids") == figures["solids"]
        sums[family] += Counter(
            parts=1, valid=valid, original=original["faces"], flat=flat["faces"], faces=figures["faces"]
        )
        sums[family]["few"] += figures["faces"] <= 3 * original["faces"]
        sums[family]["s"] += seconds
        print(
            f"{stem:26}{summary.faces:9}{original['faces']:10}{flat['faces']:9}{figures['faces']:9}"
            f"{'yes' if valid else 'NO':>7}{error:9.1e}{seconds:5.1f}",
            figures.get("step_check"),
            flush=True,
        )
    for family, row in sums.items():
        print(
            f"{family:18} {row['parts']:3} parts, {row['valid']:3} valid, {row['left out']} left out;"
            f" faces of the original {row['original']}, planar {row['flat']}, now {row['faces']};"
            f" {row['few']} with at most 3 × those of the original; {row['s']:.1f} s"
        )
    print(f"{silent} invalid without a note")
    return 1 if silent else 0


if __name__ == "__main__":
    sys.exit(main())
