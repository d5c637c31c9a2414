"""Random parts as a CAD program models and triangulates them, through meshhub and back to CAD.

    python benchmarks/step_designs.py [--parts 200] [--first 0]

A part is a box, a pin or a stepped pin. Up to four cylinders, cones, spheres, tori and boxes are cut from it or joined
to it, some of its edges are rounded or chamfered, and half of the parts are rotated. OpenCASCADE triangulates it
coarsely or finely, and checks the returned file: a valid solid for each body, and the number of faces of each kind.
Fillets that are not surfaces of revolution are not counted. Parts that OpenCASCADE cannot build, or whose triangles
do not close, are left out.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from meshhub import Registry, Source
from step import KINDS, convert, in_process

MAX_FACES_RATIO = 1.5
"""Faces per face of the original, plus three; a part with more stayed flat somewhere."""


def design(number: int) -> Any:
    """Return the shape of a part, and the accuracy of its triangles: deviation (mm) and angle (radians)."""
    from OCP.BRepAlgoAPI import BRepAlgoAPI_Cut, BRepAlgoAPI_Fuse
    from OCP.BRepBuilderAPI import BRepBuilderAPI_Transform
    from OCP.BRepPrimAPI import BRepPrimAPI_MakeBox, BRepPrimAPI_MakeCylinder
    from OCP.gp import gp_Ax1, gp_Dir, gp_Pnt, gp_Trsf
    from OCP.ShapeUpgrade import ShapeUpgrade_UnifySameDomain

    chance = random.Random(number)
    begin = chance.randrange(4)
    if begin < 2:
        part = BRepPrimAPI_MakeBox(*(chance.uniform(*sides) for sides in ((20, 60), (20, 60), (8, 30)))).Shape()
    elif begin == 2:
        part = BRepPrimAPI_MakeCylinder(chance.uniform(8, 25), chance.uniform(8, 40)).Shape()
    else:
        wide = BRepPrimAPI_MakeCylinder(chance.uniform(10, 25), chance.uniform(5, 15)).Shape()
        thin = BRepPrimAPI_MakeCylinder(chance.uniform(3, 9), chance.uniform(20, 40)).Shape()
        part = BRepAlgoAPI_Fuse(wide, thin).Shape()
    for _ in range(chance.randrange(5)):
        tool = cutter(chance)
        part = (BRepAlgoAPI_Cut if chance.random() < 0.75 else BRepAlgoAPI_Fuse)(part, tool).Shape()
    if chance.random() < 0.7:
        part = rounded(part, chance)
    whole = ShapeUpgrade_UnifySameDomain(part, True, True, False)
    whole.Build()
    turn = gp_Trsf()
    if chance.random() < 0.5:
        along = gp_Dir(chance.uniform(-1, 1), chance.uniform(-1, 1), chance.uniform(0.1, 1))
        turn.SetRotation(gp_Ax1(gp_Pnt(0, 0, 0), along), chance.uniform(0, 6))
    rotated = BRepBuilderAPI_Transform(whole.Shape(), turn, True).Shape()
    return rotated, chance.choice([0.01, 0.03, 0.1]), chance.choice([0.1, 0.2, 0.35, 0.5])


def cutter(chance: random.Random) -> Any:
    """Return a random body that is cut from a part or joined to it."""
    from OCP.BRepPrimAPI import (
        BRepPrimAPI_MakeBox,
        BRepPrimAPI_MakeCone,
        BRepPrimAPI_MakeCylinder,
        BRepPrimAPI_MakeSphere,
        BRepPrimAPI_MakeTorus,
    )
    from OCP.gp import gp_Ax2, gp_Dir, gp_Pnt

    where = gp_Pnt(chance.uniform(0, 40), chance.uniform(0, 40), chance.uniform(-5, 20))
    axes = gp_Ax2(where, chance.choice([gp_Dir(1, 0, 0), gp_Dir(0, 1, 0), gp_Dir(0, 0, 1)]))
    kind = chance.random()
    if kind < 0.5:
        return BRepPrimAPI_MakeCylinder(axes, chance.uniform(1.5, 6), chance.uniform(5, 80)).Shape()
    if kind < 0.65:
        return BRepPrimAPI_MakeCone(axes, chance.uniform(1, 4), chance.uniform(4, 9), chance.uniform(4, 20)).Shape()
    if kind < 0.75:
        return BRepPrimAPI_MakeSphere(where, chance.uniform(3, 9)).Shape()
    if kind < 0.8:
        return BRepPrimAPI_MakeTorus(axes, chance.uniform(8, 14), chance.uniform(1, 4)).Shape()
    corner = gp_Pnt(chance.uniform(0, 30), chance.uniform(0, 30), chance.uniform(-5, 10))
    return BRepPrimAPI_MakeBox(corner, *(chance.uniform(*sides) for sides in ((3, 15), (3, 15), (5, 60)))).Shape()


def rounded(part: Any, chance: random.Random) -> Any:
    """Return the part with some edges rounded or chamfered; unchanged if three attempts fail."""
    from OCP.BRepCheck import BRepCheck_Analyzer
    from OCP.BRepFilletAPI import BRepFilletAPI_MakeChamfer, BRepFilletAPI_MakeFillet
    from OCP.Standard import Standard_Failure
    from OCP.TopAbs import TopAbs_EDGE
    from OCP.TopExp import TopExp_Explorer
    from OCP.TopoDS import TopoDS

    edges = []
    found = TopExp_Explorer(part, TopAbs_EDGE)
    while found.More():
        edges.append(TopoDS.Edge(found.Current()))
        found.Next()
    for _ in range(3):
        made = (BRepFilletAPI_MakeFillet if chance.random() < 0.6 else BRepFilletAPI_MakeChamfer)(part)
        try:
            for edge in chance.sample(edges, min(len(edges), chance.randrange(1, 6))):
                made.Add(chance.uniform(0.5, 2.5), edge)
            if BRepCheck_Analyzer(made.Shape()).IsValid():
                return made.Shape()
        except (Standard_Failure, RuntimeError):
            continue
    return part


def make(number: int, path: str) -> dict[str, int]:
    """Write the triangles of a part and return the number of its faces of each kind."""
    from OCP.BRepAdaptor import BRepAdaptor_Surface
    from OCP.BRepCheck import BRepCheck_Analyzer
    from OCP.BRepMesh import BRepMesh_IncrementalMesh
    from OCP.StlAPI import StlAPI_Writer
    from OCP.TopAbs import TopAbs_FACE
    from OCP.TopExp import TopExp_Explorer
    from OCP.TopoDS import TopoDS

    part, deviation, angle = design(number)
    if not BRepCheck_Analyzer(part).IsValid():
        sys.exit("OpenCASCADE made no valid part")
    BRepMesh_IncrementalMesh(part, deviation, False, angle, False)
    triangles = StlAPI_Writer()
    triangles.ASCIIMode = False
    triangles.Write(part, path)
    kinds = Counter[str]()
    faces = TopExp_Explorer(part, TopAbs_FACE)
    while faces.More():
        kinds[str(BRepAdaptor_Surface(TopoDS.Face(faces.Current())).GetType()).rsplit("_", 1)[-1]] += 1
        faces.Next()
    return kinds


def main() -> int:
    """Build, convert and check the parts; print the invalid ones, those that stayed flat, and totals."""
    if sys.argv[1:2] == ["make"]:
        print(json.dumps(make(int(sys.argv[2]), sys.argv[3])))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    tried = bad = flat = others = triangles = 0
    seconds = 0.0
    had, have = Counter[str](), Counter[str]()
    for number in range(options.first, options.first + options.parts):
        with tempfile.TemporaryDirectory() as folder:
            part, back = Path(folder, "part.stl"), Path(folder, "back.step")
            # in a separate process, because fillets may crash OpenCASCADE
            command = [sys.executable, __file__, "make", str(number), str(part)]
            made = subprocess.run(command, capture_output=True, text=True, check=False)
            if made.returncode != 0:
                continue
            model = Registry().inspect(Source.from_path(part)).model
            if not model.watertight:
                continue
            took, figures = convert(part, back)
            after = in_process("judge", str(back))
        before = Counter[str](json.loads(made.stdout.splitlines()[-1]))
        tried, seconds, triangles = tried + 1, seconds + took, triangles + model.faces
        if "error" in after or not after["valid"] or after["solids"] != figures["solids"]:
            bad += 1
            print(f"part {number}: {after.get('error', '')} {after.get('solids')} solids of {figures['solids']}")
            continue
        if set(before) - set(KINDS):
            others += 1
            continue
        returned = Counter(face["kind"] for face in after["faces"])
        had, have = had + before, have + returned
        if returned.total() > MAX_FACES_RATIO * before.total() + 3:
            flat += 1
            print(f"part {number}: {dict(before)} -> {dict(returned)}")
    print(
        f"{tried} parts of {triangles} triangles in {seconds:.0f} s: {bad} bad; {others} have surfaces of other kinds."
    )
    print(f"Of the rest {flat} stayed flat somewhere; faces: {dict(had)} -> {dict(have)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
