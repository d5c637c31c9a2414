"""Six CAD parts as meshes, clean and noisy, to STEP: meshhub, mesh2cad, breptile, FreeCAD, and sewing by OpenCASCADE.

    python benchmarks/step_peers.py [--mesh2cad PYTHON] [--breptile PYTHON] [--parts bracket …] [--noise 0 0.01 0.05]

`PYTHON` is the interpreter of an environment with this package (with `cadquery-ocp<8`, which both need); FreeCAD takes
part where `freecadcmd` is installed. The parts are of the kinds that mesh2cad publishes figures for, whose files are in
no package registry. OpenCASCADE makes and triangulates them (0.05 mm, 0.35 rad). For noise, edges are split to 3 mm,
and each vertex moves by a normal distribution with this deviation along each axis.

Clean meshes are converted with each program's defaults. With noise, programs get the option that their manual has for
it: the largest distance of a vertex from its surface in meshhub and breptile (four deviations), the noise in mesh2cad
(one deviation). Sewing and FreeCAD have none.

OpenCASCADE judges each file in a process of its own: valid (one valid solid), volume against that of the part, and
faces by kind (*triangles*: flat faces with three straight edges). It triangulates the result and the part finely
(0.003 mm, 0.1 rad), and pymeshlab measures distances in both directions, between result and mesh and between result
and part. Seconds are processor time of the program, its start included; a program has 30.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import itertools
import json
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parent.parent / "tests" / "support"))

from cad_parts import occ
from cad_parts.triangles import triangulate_occ, write_stl

TIMEOUT_S = 300.0
"""Seconds for one conversion on a loaded machine."""
MAX_CPU_S = 30
"""Processor seconds for one process of a conversion."""
NOISE_EDGE_MM = 3.0
"""Millimeters; longest edge of a mesh that gets noise."""
FINE = (0.003, 0.1)
"""Millimeters and radians of the triangulations that distances are taken between."""
SAMPLES_COUNT = 30_000
"""Points on the faces of a mesh that distances are taken from, besides its vertices and edges."""
KINDS = ("plane", "cylinder", "cone", "sphere", "torus", "freeform", "triangles")
FIGURES = ("valid", "hausdorff_mm", "rms_mm", "part_hausdorff_mm", "part_rms_mm", "volume_error_percent", *KINDS)
"""What the judge returns of a file."""

MESHHUB = """
import sys
from meshhub import Registry
options = {"step_tolerance_mm": 4 * float(sys.argv[3])} if float(sys.argv[3]) else {}
Registry().convert(sys.argv[1], sys.argv[2], **options)
"""
MESH2CAD = """
import sys
from mesh2cad.convert import convert_file
convert_file(sys.argv[1], sys.argv[2], tol=float(sys.argv[3]) or None)
"""
BREPTILE = """
import sys
from breptile import convert
convert(sys.argv[1], sys.argv[2], tol=4 * float(sys.argv[3]) or None)
"""
FREECAD = """
import os, Mesh, Part
shape = Part.Shape()
shape.makeShapeFromMesh(Mesh.Mesh(os.environ["SOURCE"]).Topology, 0.1)
Part.makeSolid(shape.removeSplitter()).exportStep(os.environ["TARGET"])
"""
"""What FreeCAD's commands do: shape from mesh with the default tolerance, refine, make a solid, export."""


def round_edges(part: Any, radius: float, chosen: Callable[[Any], bool]) -> Any:
    """Return the part with the edges rounded whose middle point is chosen."""
    from OCP.BRepAdaptor import BRepAdaptor_Curve
    from OCP.BRepFilletAPI import BRepFilletAPI_MakeFillet
    from OCP.TopAbs import TopAbs_EDGE
    from OCP.TopoDS import TopoDS

    operation = BRepFilletAPI_MakeFillet(part)
    for shape in occ.list_shapes(part, TopAbs_EDGE):
        edge = TopoDS.Edge(shape)
        curve = BRepAdaptor_Curve(edge)
        if chosen(curve.Value((curve.FirstParameter() + curve.LastParameter()) / 2)):
            operation.Add(radius, edge)
    return operation.Shape()


def bracket() -> Any:
    """An angle with a rounded inner corner, two holes, and a countersunk one in the wall."""
    part = occ.join(occ.box(0, 0, 0, 4, 36, 20), occ.box(-16, 0, 0, 24, 4, 20))
    part = occ.unify(part)
    part = round_edges(part, 4, lambda at: abs(at.X() + 14) < 1e-6 and abs(at.Z() - 4) < 1e-6)
    across = occ.turn(occ.join(occ.cylinder(0, 0, -1, 5, 2), occ.cylinder(0, 0, 2, 4.5, 2, 4.5)), (0, 1, 0), 90)
    return occ.cut(part, *(occ.cylinder(x, 0, -1, 9, 2.25) for x in (-4, 9)), occ.move(across, -18, 0, 15))


def flange() -> Any:
    """A disc with a hub on a fillet, a bore with a chamfer, and six bolt holes."""
    part = occ.join(occ.cylinder(0, 0, 0, 5, 20), occ.cylinder(0, 0, 0, 14, 9))
    part = round_edges(part, 2, lambda at: abs(at.Z() - 5) < 1e-6 and math.hypot(at.X(), at.Y()) < 10)
    holes = [occ.cylinder(15 * math.cos(k * math.pi / 3), 15 * math.sin(k * math.pi / 3), -1, 6, 1.7) for k in range(6)]
    return occ.cut(part, occ.cylinder(0, 0, -1, 15, 6), occ.cylinder(0, 0, 13, 14.5, 6, 7.5), *holes)


def housing() -> Any:
    """A gear housing: an open box with rounded corners, two bearing seats and four screw posts."""

    def rounded_box(low: float, high: float, length: float, width: float, radius: float) -> Any:
        block = occ.box(0, 0, low, high, length, width)
        middle = (low + high) / 2
        return round_edges(block, radius, lambda at: abs(at.Z() - middle) < 1e-6)

    part = occ.cut(rounded_box(0, 14, 40, 28, 4), rounded_box(2.5, 15, 35, 23, 2))
    posts = [(x, y) for x in (-15.5, 15.5) for y in (-9.5, 9.5)]
    part = occ.join(part, *(occ.cylinder(x, y, 2, 14, 2.5) for x, y in posts))
    part = occ.join(part, occ.cylinder(-7, 0, 2, 6, 5), occ.cylinder(7, 0, 2, 6, 4))
    bores = [occ.cylinder(-7, 0, -1, 7, 3), occ.cylinder(7, 0, 1, 7, 2)]
    return occ.unify(occ.cut(part, *bores, *(occ.cylinder(x, y, 5, 15, 1.2) for x, y in posts)))


def tee() -> Any:
    """A pipe with a thinner branch."""
    along = occ.turn(occ.cylinder(0, 0, -20, 20, 8), (0, 1, 0), 90)
    bore = occ.turn(occ.cylinder(0, 0, -21, 21, 6), (0, 1, 0), 90)
    return occ.cut(occ.join(along, occ.cylinder(0, 0, 0, 18, 6)), bore, occ.cylinder(0, 0, 0, 19, 4.5))


def knob() -> Any:
    """A turned knob with a rounded top, eight finger grooves, a conical foot and a D-shaped hole."""
    part = round_edges(occ.cylinder(0, 0, 4, 16, 12), 3, lambda at: abs(at.Z() - 16) < 1e-6)
    part = occ.join(part, occ.cylinder(0, 0, 0, 4, 6, 9))
    grooves = [occ.cylinder(13 * math.cos(k * math.pi / 4), 13 * math.sin(k * math.pi / 4), 3, 17, 2) for k in range(8)]
    hole = occ.cut(occ.cylinder(0, 0, -1, 10, 3), occ.box(0, 4, -2, 11, 8, 4))
    return occ.unify(occ.cut(part, *grooves, hole, occ.ball(0, 0, 22, 8)))


def filleted_plate() -> Any:
    """A plate with rounded corners and top edges, a pocket and two countersunk holes."""
    part = round_edges(occ.box(0, 0, 0, 6, 40, 28), 5, lambda at: abs(at.Z() - 3) < 1e-6)
    part = round_edges(part, 1.5, lambda at: abs(at.Z() - 6) < 1e-6)
    pocket = round_edges(occ.box(0, 0, 3, 7, 16, 14), 3, lambda at: abs(at.Z() - 5) < 1e-6)
    drills = [occ.join(occ.cylinder(x, 0, -1, 7, 1.7), occ.cylinder(x, 0, 4, 6.5, 1.7, 4.2)) for x in (-14, 14)]
    return occ.cut(part, pocket, *drills)


PARTS = {
    "bracket": bracket,
    "flange": flange,
    "housing": housing,
    "tee": tee,
    "knob": knob,
    "plate": filleted_plate,
}


def make(name: str, noise_mm: str, mesh_path: str, fine_path: str) -> dict[str, Any]:
    """Write a part as the mesh that is converted and as fine triangles; return its volume and faces."""
    import manifold3d
    import trimesh
    from OCP.BRepTools import BRepTools

    shape = PARTS[name]()
    kinds = count_faces(shape)
    write_stl(fine_path, triangulate_occ(shape, *FINE))
    BRepTools.Clean_s(shape)
    triangles = triangulate_occ(shape, 0.05, 0.35)
    if sigma := float(noise_mm):
        mesh = trimesh.Trimesh(**trimesh.triangles.to_kwargs(triangles))
        solid = manifold3d.Manifold(manifold3d.Mesh(mesh.vertices.astype(np.float32), mesh.faces.astype(np.uint32)))
        refined = solid.refine_to_length(NOISE_EDGE_MM).to_mesh()
        positions = np.asarray(refined.vert_properties)[:, :3].astype(np.float64)
        vertices = positions + np.random.default_rng(1).normal(0, sigma, positions.shape)
        triangles = vertices[refined.tri_verts]
    write_stl(mesh_path, triangles)
    return {"valid": occ.is_valid(shape), "volume": volume(shape), "triangles": len(triangles), "faces": kinds}


def volume(shape: Any) -> float:
    """Return the volume of a shape in mm³."""
    from OCP.BRepGProp import BRepGProp
    from OCP.GProp import GProp_GProps

    properties = GProp_GProps()
    BRepGProp.VolumeProperties_s(shape, properties)
    return float(properties.Mass())


def count_faces(shape: Any) -> dict[str, int]:
    """Return the number of faces of each kind."""
    from OCP.BRepAdaptor import BRepAdaptor_Curve, BRepAdaptor_Surface
    from OCP.GeomAbs import GeomAbs_Line
    from OCP.TopAbs import TopAbs_EDGE, TopAbs_FACE
    from OCP.TopoDS import TopoDS

    counts: Counter[str] = Counter()
    for face in occ.list_shapes(shape, TopAbs_FACE):
        kind = str(BRepAdaptor_Surface(TopoDS.Face(face)).GetType()).rsplit("_", 1)[-1].lower()
        if kind == "plane" and len(edges := occ.list_shapes(face, TopAbs_EDGE)) == 3:
            straight = [BRepAdaptor_Curve(TopoDS.Edge(edge)).GetType() == GeomAbs_Line for edge in edges]
            kind = "triangles" if all(straight) else kind
        counts[kind if kind in KINDS else "freeform"] += 1
    return {kind: counts[kind] for kind in KINDS}


def sew(source: str, target: str, _noise_mm: str) -> dict[str, Any]:
    """Write a mesh as usual OpenCASCADE recipes do: sew a face for each triangle, merge coplanar faces."""
    import trimesh
    from OCP.BRepBuilderAPI import (
        BRepBuilderAPI_MakeFace,
        BRepBuilderAPI_MakePolygon,
        BRepBuilderAPI_MakeSolid,
        BRepBuilderAPI_Sewing,
    )
    from OCP.gp import gp_Pnt
    from OCP.STEPControl import STEPControl_AsIs, STEPControl_Writer
    from OCP.TopoDS import TopoDS

    sewing = BRepBuilderAPI_Sewing(1e-6)
    for corners in trimesh.load_mesh(source).triangles.tolist():
        wire = BRepBuilderAPI_MakePolygon(*(gp_Pnt(*corner) for corner in corners), True).Wire()
        sewing.Add(BRepBuilderAPI_MakeFace(wire, True).Face())
    sewing.Perform()
    writer = STEPControl_Writer()
    solid = BRepBuilderAPI_MakeSolid(TopoDS.Shell(sewing.SewedShape())).Solid()
    writer.Transfer(occ.unify(solid), STEPControl_AsIs)
    writer.Write(target)
    return {}


def judge(path: str, mesh_path: str, fine_path: str, part_volume: str) -> dict[str, Any]:
    """Return the figures of a STEP file."""
    from OCP.IFSelect import IFSelect_RetDone
    from OCP.STEPControl import STEPControl_Reader
    from OCP.TopAbs import TopAbs_SOLID

    reader = STEPControl_Reader()
    if reader.ReadFile(path) != IFSelect_RetDone:
        raise ValueError("OpenCASCADE does not read the file")
    reader.TransferRoots()
    shape = reader.OneShape()
    valid = occ.is_valid(shape) and len(occ.list_shapes(shape, TopAbs_SOLID)) == 1
    result: dict[str, Any] = {"valid": "yes" if valid else "no"} | count_faces(shape)
    result["volume_error_percent"] = 100 * (volume(shape) / float(part_volume) - 1)
    with tempfile.TemporaryDirectory() as folder:
        result_path = str(Path(folder, "result.stl"))
        write_stl(result_path, triangulate_occ(shape, *FINE))
        for prefix, other in (("", mesh_path), ("part_", fine_path)):
            result[prefix + "hausdorff_mm"], result[prefix + "rms_mm"] = distances(result_path, other)
    return result


def distances(first: str, second: str) -> tuple[float, float]:
    """Return the two-sided Hausdorff distance of two meshes and the root mean square over both surfaces."""
    import pymeshlab

    meshes = pymeshlab.MeshSet()
    meshes.load_new_mesh(first)
    meshes.load_new_mesh(second)
    largest, squares = 0.0, 0.0
    for sampled, target in ((0, 1), (1, 0)):
        ends = {"sampledmesh": sampled, "targetmesh": target, "samplenum": SAMPLES_COUNT}
        faces = meshes.get_hausdorff_distance(**ends, samplevert=False, sampleedge=False, sampleface=True)
        corners = meshes.get_hausdorff_distance(**ends, samplevert=True, sampleedge=True, sampleface=False)
        largest = max(largest, faces["max"], corners["max"])
        squares += faces["RMS"] ** 2 / 2
    return largest, squares**0.5


def run(command: list[str], source: str, target: str, noise_mm: str) -> tuple[float, str]:
    """Convert a mesh with a program; return its processor seconds, and its error or nothing."""
    words, environment = [*command, source, target, noise_mm], dict(os.environ)
    if Path(command[0]).name == "freecadcmd":
        # it takes each argument for a file to open; a script named freecad.py would hide its own module
        script = Path(target).with_name("mesh_to_step.py")
        script.write_text(FREECAD, encoding="utf-8")
        words, environment = [*command, str(script)], {**os.environ, "SOURCE": source, "TARGET": target}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        process = subprocess.run(
            words,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
            env=environment,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_S, MAX_CPU_S)),
        )
        last = (process.stderr.strip().splitlines() or ["no message"])[-1][:100]
        error = f"exit {process.returncode}: {last}" if process.returncode else "" if Path(target).exists() else last
        if process.returncode == -signal.SIGKILL:
            error = f"nothing in {MAX_CPU_S} s of processor time"
    except subprocess.TimeoutExpired:
        error = f"nothing in {TIMEOUT_S:g} s"
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, error


def ask(*words: str) -> dict[str, Any]:
    """Run this file with a hidden command and return its JSON."""
    process = subprocess.run(
        [sys.executable, __file__, *words], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    if process.returncode != 0:
        raise ValueError((process.stderr.strip().splitlines() or [f"exit {process.returncode}"])[-1][:100])
    return json.loads(process.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def list_programs(mesh2cad: str | None, breptile: str | None) -> dict[str, list[str]]:
    """Return the commands of the programs that are installed, without mesh, STEP file and noise."""
    programs = {
        "meshhub": [sys.executable, "-c", MESHHUB],
        "mesh2cad": [mesh2cad or "", "-c", MESH2CAD],
        "breptile": [breptile or "", "-c", BREPTILE],
        "FreeCAD": [shutil.which("freecadcmd") or ""],
        "sewing": [sys.executable, __file__, "sew"],
    }
    return {name: words for name, words in programs.items() if words[0]}


def _text(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def main() -> int:
    hidden = {"make": make, "sew": sew, "judge": judge}
    if len(sys.argv) > 1 and sys.argv[1] in hidden:
        print(json.dumps(hidden[sys.argv[1]](*sys.argv[2:])))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mesh2cad", metavar="PYTHON")
    parser.add_argument("--breptile", metavar="PYTHON")
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument("--noise", nargs="*", default=["0", "0.01", "0.05"])
    parser.add_argument("--programs", nargs="*", metavar="PROGRAM", help="default: all that are installed")
    arguments = parser.parse_args()
    programs = list_programs(arguments.mesh2cad, arguments.breptile)
    if unknown := set(arguments.programs or ()) - programs.keys():
        parser.error(f"not installed: {', '.join(sorted(unknown))}")
    programs = {name: programs[name] for name in arguments.programs or programs}
    columns = ["machine", "recorded", "part", "noise_mm", "triangles_in", "program", "cpu_s", *FIGURES, "error"]
    rows = csv.DictWriter(sys.stdout, columns, lineterminator="\n")
    rows.writeheader()
    for noise, name in itertools.product(arguments.noise, arguments.parts):
        with tempfile.TemporaryDirectory() as folder:
            source, fine = str(Path(folder, "part.stl")), str(Path(folder, "fine.stl"))
            part = ask("make", name, noise, source, fine)
            print(f"{name}: {part}", file=sys.stderr, flush=True)
            for program, command in programs.items():
                target = str(Path(folder, f"{program}.step"))
                seconds, error = run(command, source, target, noise)
                row: dict[str, Any] = {"recorded": datetime.date.today().isoformat(), "part": name, "noise_mm": noise}
                row |= {
                    "triangles_in": part["triangles"],
                    "program": program,
                    "cpu_s": f"{seconds:.1f}",
                    "error": error,
                }
                try:
                    figures = {} if error else ask("judge", target, source, fine, str(part["volume"]))
                except (ValueError, subprocess.TimeoutExpired) as failure:
                    figures, row["error"] = {}, str(failure)[:100]
                rows.writerow({"valid": "no"} | row | {key: _text(value) for key, value in figures.items()})
                sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
