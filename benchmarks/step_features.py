"""Plates with the features of printed and machined parts, as a CAD program triangulates them, through meshhub to STEP.

    python benchmarks/step_features.py [--parts 200] [--first 0]

Each plate has up to four features that share tangent points: bridged screw holes, circles tangent to the sides of
square and hexagonal pockets, counterbores, countersinks, slots with holes at their ends, circles that touch from
within, bosses as wide as their block. OpenCASCADE cuts the plate into triangles at one of several tolerances, a binary
STL file rounds their corners to 32 bits, half of the plates are turned and moved; OpenCASCADE judges the STEP file.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from meshhub import Registry, Source
from step import convert, in_process

CELL_MM = 24.0
"""Millimeters of the plate for each feature."""
THICKNESS_MM = 10.0
"""Millimeters of the plate."""


def cylinder(x: float, y: float, low: float, high: float, radius: float, top_radius: float | None = None) -> Any:
    """A cylinder or a cone that stands on the plane z = low."""
    from OCP.BRepPrimAPI import BRepPrimAPI_MakeCone, BRepPrimAPI_MakeCylinder
    from OCP.gp import gp_Ax2, gp_Dir, gp_Pnt

    axes = gp_Ax2(gp_Pnt(x, y, low), gp_Dir(0, 0, 1))
    if top_radius is None or top_radius == radius:
        return BRepPrimAPI_MakeCylinder(axes, radius, high - low).Shape()
    return BRepPrimAPI_MakeCone(axes, radius, top_radius, high - low).Shape()


def box(x: float, y: float, low: float, high: float, length: float, width: float) -> Any:
    """A box around the line x, y."""
    from OCP.BRepPrimAPI import BRepPrimAPI_MakeBox
    from OCP.gp import gp_Pnt

    return BRepPrimAPI_MakeBox(gp_Pnt(x - length / 2, y - width / 2, low), length, width, high - low).Shape()


def prism(x: float, y: float, low: float, high: float, sides: int, inner_radius: float, turn: float) -> Any:
    """A regular prism whose sides touch a circle."""
    from OCP.BRepBuilderAPI import BRepBuilderAPI_MakeFace, BRepBuilderAPI_MakePolygon
    from OCP.BRepPrimAPI import BRepPrimAPI_MakePrism
    from OCP.gp import gp_Pnt, gp_Vec

    outline = BRepBuilderAPI_MakePolygon()
    for side in range(sides):
        angle = turn + 2 * math.pi * side / sides
        reach = inner_radius / math.cos(math.pi / sides)
        outline.Add(gp_Pnt(x + reach * math.cos(angle), y + reach * math.sin(angle), low))
    outline.Close()
    return BRepPrimAPI_MakePrism(BRepBuilderAPI_MakeFace(outline.Wire()).Face(), gp_Vec(0, 0, high - low)).Shape()


def cut(part: Any, *tools: Any) -> Any:
    """The part without the tools."""
    from OCP.BRepAlgoAPI import BRepAlgoAPI_Cut

    for tool in tools:
        part = BRepAlgoAPI_Cut(part, tool).Shape()
    return part


def join(part: Any, *tools: Any) -> Any:
    """The part with the tools."""
    from OCP.BRepAlgoAPI import BRepAlgoAPI_Fuse

    for tool in tools:
        part = BRepAlgoAPI_Fuse(part, tool).Shape()
    return part


def common(one: Any, other: Any) -> Any:
    """The volume that two solids share."""
    from OCP.BRepAlgoAPI import BRepAlgoAPI_Common

    return BRepAlgoAPI_Common(one, other).Shape()


def bridged_hole(part: Any, x: float, y: float, chance: random.Random) -> Any:
    """A counterbore from below whose ceiling a printer bridges: a slot, then a square, then the hole they touch."""
    radius = chance.uniform(1.2, 3)
    wide, deep, layer = radius * chance.uniform(1.6, 2.5), chance.uniform(2, 5), chance.choice([0.2, 0.3, 0.5])
    bore = cylinder(x, y, 0, deep + 3 * layer, wide)
    if chance.random() < 0.4:
        bore = prism(x, y, 0, deep + 3 * layer, 6, wide, chance.choice([0, math.pi / 6]))
    slot = common(bore, box(x, y, deep, deep + layer, 4 * wide, 2 * radius))
    square = box(x, y, deep, deep + 2 * layer, 2 * radius, 2 * radius)
    lower = common(bore, box(x, y, 0, deep, 4 * wide, 4 * wide))
    tools = [lower, slot, square, cylinder(x, y, -1, THICKNESS_MM + 1, radius)]
    if chance.random() < 0.3:
        tools.remove(slot)
    return cut(part, *tools)


def circle_in_polygon(part: Any, x: float, y: float, chance: random.Random) -> Any:
    """A pocket whose sides touch a hole in its floor."""
    radius, sides = chance.uniform(2, 6), chance.choice([3, 4, 4, 5, 6, 8])
    depth = chance.uniform(2, 6)
    turn = chance.choice([0.0, math.pi / sides, chance.uniform(0, 6)])
    bottom = -1.0 if chance.random() < 0.6 else 1.0
    pocket = prism(x, y, depth, THICKNESS_MM + 1, sides, radius, turn)
    return cut(part, pocket, cylinder(x, y, bottom, THICKNESS_MM + 1, radius))


def circle_beside_pocket(part: Any, x: float, y: float, chance: random.Random) -> Any:
    """A pocket of which one side, or two, touch a hole in its floor."""
    radius, depth = chance.uniform(1, 3), chance.uniform(2, 6)
    length, width = chance.uniform(7, 12), chance.uniform(7, 12)
    across = x + length / 2 - radius
    beside = y if chance.random() < 0.5 else y + width / 2 - radius
    hole = cylinder(across, beside, -1, THICKNESS_MM + 1, radius)
    return cut(part, box(x, y, depth, THICKNESS_MM + 1, length, width), hole)


def counterbore(part: Any, x: float, y: float, chance: random.Random) -> Any:
    """A hole with a wider one above, around one axis or touching it from within."""
    radius = chance.uniform(1.5, 3)
    wide = radius * chance.uniform(1.4, 2.5)
    aside = wide - radius if chance.random() < 0.5 else 0.0
    angle = chance.choice([0, math.pi / 2, math.pi, chance.uniform(0, 6)])
    narrow = cylinder(x + aside * math.cos(angle), y + aside * math.sin(angle), -1, THICKNESS_MM + 1, radius)
    return cut(part, narrow, cylinder(x, y, chance.uniform(3, 7), THICKNESS_MM + 1, wide))


def chamfered_hole(part: Any, x: float, y: float, chance: random.Random) -> Any:
    """A hole with a chamfer or a countersink at one end or both."""
    radius, deep = chance.uniform(1.5, 4), chance.uniform(0.3, 2)
    tools = [cylinder(x, y, -1, THICKNESS_MM + 1, radius)]
    slope = chance.choice([1.0, 1.0, 0.3, 0.15])
    tools.append(cylinder(x, y, THICKNESS_MM - deep, THICKNESS_MM, radius, radius + slope * deep))
    if chance.random() < 0.6:
        tools.append(cylinder(x, y, 0, deep, radius + slope * deep, radius))
    return cut(part, *tools)


def slot(part: Any, x: float, y: float, chance: random.Random) -> Any:
    """A slot with round ends, in which holes may touch its sides."""
    radius, half, depth = chance.uniform(1.5, 3.5), chance.uniform(2, 6), chance.choice([-1.0, 3.0, 5.0])
    tools = [box(x, y, depth, THICKNESS_MM + 1, 2 * half, 2 * radius)]
    tools += [cylinder(x + side * half, y, depth, THICKNESS_MM + 1, radius) for side in (-1, 1)]
    if depth > 0 and chance.random() < 0.7:
        tools.append(cylinder(x + chance.choice([0, half, half / 3]), y, -1, THICKNESS_MM + 1, radius))
    return cut(part, *tools)


def boss(part: Any, x: float, y: float, chance: random.Random) -> Any:
    """A boss on a block that is as wide as it, with a hole."""
    radius, high = chance.uniform(3, 8), chance.uniform(3, 9)
    width = 2 * radius * chance.choice([1.0, 1.0, 1.4])
    base = box(x, y, THICKNESS_MM, THICKNESS_MM + 3, width, 2 * radius)
    pin = cylinder(x, y, THICKNESS_MM, THICKNESS_MM + 3 + high, radius)
    return cut(join(part, base, pin), cylinder(x, y, -1, THICKNESS_MM + 20, radius * chance.uniform(0.3, 0.7)))


FEATURES: tuple[Callable[[Any, float, float, random.Random], Any], ...] = (
    bridged_hole,
    circle_in_polygon,
    circle_beside_pocket,
    counterbore,
    chamfered_hole,
    slot,
    boss,
)


def design(number: int) -> tuple[Any, float, float, list[str]]:
    """Return a plate, the accuracy of its triangles (deviation in mm, angle in radians), and its features."""
    from OCP.BRepBuilderAPI import BRepBuilderAPI_Transform
    from OCP.gp import gp_Ax1, gp_Dir, gp_Pnt, gp_Trsf, gp_Vec
    from OCP.ShapeUpgrade import ShapeUpgrade_UnifySameDomain

    chance = random.Random(number)
    count = chance.randrange(1, 5)
    part = box(CELL_MM * count / 2, 0, 0, THICKNESS_MM, CELL_MM * count, CELL_MM)
    names = []
    for cell in range(count):
        feature = chance.choice(FEATURES)
        names.append(feature.__name__)
        part = feature(part, CELL_MM * (cell + 0.5), 0.0, chance)
    whole = ShapeUpgrade_UnifySameDomain(part, True, True, False)
    whole.Build()
    part = whole.Shape()
    if chance.random() < 0.5:
        turn, shift = gp_Trsf(), gp_Trsf()
        along = gp_Dir(chance.uniform(-1, 1), chance.uniform(-1, 1), chance.uniform(0.1, 1))
        turn.SetRotation(gp_Ax1(gp_Pnt(0, 0, 0), along), chance.uniform(0, 6))
        shift.SetTranslation(gp_Vec(*(chance.uniform(-150, 150) for _ in range(3))))
        part = BRepBuilderAPI_Transform(part, shift.Multiplied(turn), True).Shape()
    return part, chance.choice([0.005, 0.03, 0.1]), chance.choice([0.1, 0.2, 0.35, 0.5]), names


def triangulate(number: int, path: str) -> list[str]:
    """Write the triangles of a plate and return the names of its features."""
    from OCP.BRepCheck import BRepCheck_Analyzer
    from OCP.BRepMesh import BRepMesh_IncrementalMesh
    from OCP.StlAPI import StlAPI_Writer

    part, deviation, angle, names = design(number)
    if not BRepCheck_Analyzer(part).IsValid():
        sys.exit("OpenCASCADE made no valid part")
    BRepMesh_IncrementalMesh(part, deviation, False, angle, False)
    triangles = StlAPI_Writer()
    triangles.ASCIIMode = False
    triangles.Write(part, path)
    return names


def main() -> int:
    """Build, convert and check the plates; print the invalid ones, and whether the report has a note on them."""
    if sys.argv[1:2] == ["make"]:
        print(json.dumps(triangulate(int(sys.argv[2]), sys.argv[3])))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    chosen = parser.parse_args()
    counts: Counter[str] = Counter()
    for number in range(chosen.first, chosen.first + chosen.parts):
        with tempfile.TemporaryDirectory() as folder:
            part, back = Path(folder, "part.stl"), Path(folder, "back.step")
            # in a separate process, because OpenCASCADE may crash
            command = [sys.executable, __file__, "make", str(number), str(part)]
            made = subprocess.run(command, capture_output=True, text=True, check=False)
            if made.returncode != 0 or not Registry().inspect(Source.from_path(part)).model.watertight:
                counts["left out"] += 1
                continue
            _, figures = convert(part, back)
            after = in_process("judge", str(back))
        valid = "error" not in after and after["valid"] and after["solids"] == figures["solids"]
        expected = figures["mesh_volume_mm3"] + figures["volume_gained_mm3"]
        valid = valid and abs(after["volume"] / expected - 1) <= 1e-3
        is_silent = figures.get("valid_solids") == figures["solids"]
        counts["valid" if valid else "silent" if is_silent else "invalid and reported"] += 1
        if not valid:
            names = ", ".join(json.loads(made.stdout.splitlines()[-1]))
            print(f"plate {number} ({names}): {after.get('error', 'invalid')}; step_check {figures['step_check']}")
    print(", ".join(f"{count} {name}" for name, count in counts.items()))
    return 1 if counts["silent"] else 0


if __name__ == "__main__":
    sys.exit(main())
