"""Whether scripts of parts can be edited by the names of their parameters: each one is changed, and the part rebuilt.

    python benchmarks/script_editing.py [--parts 30] [--first 0] [--changes 3]

Each part is a plate with round or sharp corners, holes in rows, grids and circles, countersinks, counterbores, bosses
with cones and rounded feet, and pockets. Its triangles become a script for build123d. Some of its
parameters are changed by -10 % or +10 % (a count by one), one at a time, and the script is run by build123d.
`valid` counts the changes that give a valid solid, `moves` those that change its volume.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import random
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent.parent / "tests" / "support"))

from cad_parts import occ
from cad_parts.triangles import triangulate_occ, write_stl
from meshhub import MeshhubError, Registry

PARAMETER = re.compile(r"^(\w+) = ([-\d.]+)  # (mm|number)", re.MULTILINE)
"""Line of a parameter."""
MIN_VOLUME_CHANGE_RATIO = 1e-9
"""Share of the volume by which a change of a parameter changes it."""


def build(number: int) -> Any:
    """Return the part of a number."""
    chance = random.Random(f"script {number}")
    length, width, high = (round(chance.uniform(*sides), 1) for sides in ((60, 100), (40, 70), (4, 12)))
    part = occ.box(0, 0, 0, high, length, width)
    if chance.random() < 0.6:
        part = occ.round_edges_along(part, 2, round(chance.uniform(2, 8), 1))
    part = _add_boss(part, high, chance)
    part = _cut_corner_holes(part, length, width, high, chance)
    part = _cut_pattern(part, length, width, high, chance)
    return occ.unify(part)


def _add_boss(part: Any, high: float, chance: random.Random) -> Any:
    """Add a round or conical boss in the middle, with a bore."""
    radius, height = round(chance.uniform(6, 9), 1), round(chance.uniform(3, 12), 1)
    kind = chance.choice(["none", "round", "cone", "dome"])
    if kind == "none":
        return part
    top = radius if kind == "round" else round(radius * 0.7, 1)
    part = occ.join(part, occ.cylinder(0, 0, high, high + height, radius, top))
    if kind == "dome":
        return occ.join(part, occ.move(occ.ball(0, 0, 0, top), 0, 0, high + height))
    bore = round(top * chance.uniform(0.4, 0.7), 1)
    return occ.cut(part, occ.cylinder(0, 0, chance.choice([0, high / 2]), high + height, bore))


def _cut_corner_holes(part: Any, length: float, width: float, high: float, chance: random.Random) -> Any:
    """Cut four equal holes with a countersink, a counterbore or a chamfer."""
    radius, kind = round(chance.uniform(1.2, 2), 2), chance.choice(["plain", "countersink", "counterbore", "chamfer"])
    for x in (-1, 1):
        for y in (-1, 1):
            place = x * (length / 2 - 6), y * (width / 2 - 6)
            part = occ.cut(part, occ.cylinder(*place, 0, high, radius))
            if kind == "countersink":
                part = occ.cut(part, occ.cylinder(*place, high - 1.5, high, radius, radius + 1.8))
            elif kind == "counterbore":
                part = occ.cut(part, occ.cylinder(*place, high - 2, high, radius + 1.5))
            elif kind == "chamfer":
                part = occ.cut(part, occ.cylinder(*place, high - 0.5, high, radius, radius + 0.5))
    return part


def _cut_pattern(part: Any, length: float, width: float, high: float, chance: random.Random) -> Any:
    """Cut a bolt circle, a row of holes, or a pocket."""
    kind = chance.choice(["circle", "row", "pocket", "none"])
    if kind == "circle":
        count, reach = chance.choice([3, 5, 6, 8]), round(min(length, width) / 2 - 6, 1)
        for number in range(count):
            angle = 2 * math.pi * number / count + 0.3
            part = occ.cut(part, occ.cylinder(reach * math.cos(angle), reach * math.sin(angle), high / 2, high, 1.1))
    elif kind == "row":
        for number in range(5):
            part = occ.cut(part, occ.cylinder(8 * number - 16, 13, 0, high, 1.4))
    elif kind == "pocket":
        part = occ.cut(part, occ.move(occ.box(0, 0, high / 2, high, 18, 6), 0, -14, 0))
    return part


def run(text: str) -> Any:
    """Return the shape of a script."""
    names: dict[str, Any] = {"__name__": "part"}
    exec(compile(text, "part.py", "exec"), names)
    return names["part"].wrapped


def judge(number: int, folder: Path, changes: int) -> dict[str, Any]:
    """Return how many parameters of a part can be changed."""
    write_stl(str(folder / "part.stl"), triangulate_occ(build(number), 0.02, 0.2))
    report = Registry().convert(folder / "part.stl", folder / "part.py")
    figures = dict(report.steps[-1].figures)
    text = (folder / "part.py").read_text(encoding="utf-8")
    before, failures, moves, chance = occ_volume(run(text)), [], 0, random.Random(number)
    parameters = PARAMETER.findall(text)
    chosen = chance.sample(parameters, min(changes, len(parameters)))
    for name, value, unit in chosen:
        step = chance.choice((-1, 1))
        changed = str(float(value) * (1 + 0.1 * step)) if unit == "mm" else str(int(value) + step)
        try:
            shape = run(re.sub(rf"^{name} = \S+", f"{name} = {changed}", text, flags=re.MULTILINE))
            if not occ.is_valid(shape):
                failures.append(f"{name} = {changed}: invalid")
            moves += abs(occ_volume(shape) - before) > MIN_VOLUME_CHANGE_RATIO * before
        except Exception as failure:
            failures.append(f"{name} = {changed}: {type(failure).__name__}")
    return figures | {
        "changes": len(chosen),
        "valid": len(chosen) - len(failures),
        "moves": moves,
        "failures": failures,
    }


def occ_volume(shape: Any) -> float:
    """Return the volume of a shape, mm³."""
    from OCP.BRepGProp import BRepGProp
    from OCP.GProp import GProp_GProps

    properties = GProp_GProps()
    BRepGProp.VolumeProperties_s(shape, properties)
    return float(properties.Mass())


def main() -> int:
    """Judge every part and print the sums."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=int, default=30)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--changes", type=int, default=3)
    options = parser.parse_args()
    if importlib.util.find_spec("build123d") is None:
        print("needs build123d")
        return 1
    sums: Counter[str] = Counter()
    for number in range(options.first, options.first + options.parts):
        with tempfile.TemporaryDirectory() as folder:
            try:
                row = judge(number, Path(folder), options.changes)
            except MeshhubError as error:
                print(f"{number}: {error}", flush=True)
                sums["rejected"] += 1
                continue
        print(f"{number}: {row}", flush=True)
        sums.update({"scripts": 1} | {key: row[key] for key in ("parameters", "changes", "valid", "moves")})
    print(dict(sums))
    return 0


if __name__ == "__main__":
    sys.exit(main())
