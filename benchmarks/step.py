"""STEP files checked by OpenCASCADE: round trips of CAD files, a drilled plate, all closed meshes of the corpus.

    MESHHUB_CORPUS=… python benchmarks/step.py round-trip [--faces 700] [files …]
    python benchmarks/step.py plate [--holes 28] [--segments 32]
    MESHHUB_CORPUS=… python benchmarks/step.py sweep [--triangles 50000] [--faces 20000] [--surfaces analytic]
    MESHHUB_CORPUS=… python benchmarks/step.py programs [files …]
    python benchmarks/step.py booleans [--bodies 180]

`round-trip` converts STEP → STL → STEP and counts the planar and cylindrical faces of the original that return as
one face of the same kind on the same surface, with the radius of cylinders within 0.1 %. Halves of one cylinder that
return as one face count. `plate` compares the writer with sewing triangles in OpenCASCADE, on a tenth of the triangles.
`sweep` writes every watertight mesh. `programs` reads some files in FreeCAD and gmsh, where they are installed.
`booleans` cuts and joins random round and square bodies at random places and angles, up to four times each.

OpenCASCADE runs in separate processes.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from meshhub import MeshhubError, Registry

TIMEOUT_S = 600.0
"""Seconds for one file in OpenCASCADE; large files take minutes."""
MAX_ERROR_RATIO = 1e-3
"""Share of the size by which a returned surface may differ."""


def in_process(*arguments: str, seconds: float = TIMEOUT_S) -> dict[str, Any]:
    """Run this file with a hidden command and return its JSON."""
    try:
        result = subprocess.run(
            [sys.executable, __file__, *arguments], capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return {"error": f"nothing in {seconds:g} s"}
    if result.returncode != 0:
        last = (result.stderr.strip().splitlines() or [""])[-1]
        return {"error": f"exit {result.returncode}: {last}"[:100]}
    return json.loads(result.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def judge(path: str) -> dict[str, Any]:
    """Return the faces with kind, parameters and bounds, and validity and volume."""
    from OCP.Bnd import Bnd_Box
    from OCP.BRepAdaptor import BRepAdaptor_Surface
    from OCP.BRepBndLib import BRepBndLib
    from OCP.BRepCheck import BRepCheck_Analyzer
    from OCP.BRepGProp import BRepGProp
    from OCP.GProp import GProp_GProps
    from OCP.IFSelect import IFSelect_RetDone
    from OCP.STEPControl import STEPControl_Reader
    from OCP.TopAbs import TopAbs_FACE, TopAbs_SOLID
    from OCP.TopExp import TopExp_Explorer
    from OCP.TopoDS import TopoDS

    began = time.perf_counter()
    reader = STEPControl_Reader()
    if reader.ReadFile(path) != IFSelect_RetDone:
        return {"error": "not read"}
    reader.TransferRoots()
    shape = reader.OneShape()
    seconds = time.perf_counter() - began

    def each(kind: Any) -> list[Any]:
        shapes, explorer = [], TopExp_Explorer(shape, kind)
        while explorer.More():
            shapes.append(explorer.Current())
            explorer.Next()
        return shapes

    volume = 0.0
    solids = each(TopAbs_SOLID)
    for solid in solids:
        properties = GProp_GProps()
        BRepGProp.VolumeProperties_s(solid, properties)
        volume += properties.Mass()
    faces = []
    for face in each(TopAbs_FACE):
        surface = BRepAdaptor_Surface(TopoDS.Face(face))
        kind = str(surface.GetType()).rsplit("_", 1)[-1]
        box = Bnd_Box()
        BRepBndLib.AddOptimal_s(face, box, False, False)
        low, high = box.CornerMin(), box.CornerMax()
        row: dict[str, Any] = {"kind": kind, "low": [low.X(), low.Y(), low.Z()], "high": [high.X(), high.Y(), high.Z()]}
        if kind in ("Plane", "Cylinder"):
            axis = surface.Plane().Axis() if kind == "Plane" else surface.Cylinder().Axis()
            at, along = axis.Location(), axis.Direction()
            row |= {"at": [at.X(), at.Y(), at.Z()], "along": [along.X(), along.Y(), along.Z()]}
            row["radius"] = surface.Cylinder().Radius() if kind == "Cylinder" else 0.0
        faces.append(row)
    valid = BRepCheck_Analyzer(shape).IsValid() and all(BRepCheck_Analyzer(solid).IsValid() for solid in solids)
    return {"valid": valid, "solids": len(solids), "volume": volume, "faces": faces, "seconds": seconds}


def came_back(original: list[dict[str, Any]], returned: list[dict[str, Any]], kind: str) -> tuple[int, int]:
    """Count the faces of a kind, and those that came back as one face on the same surface."""
    expected = [face for face in original if face["kind"] == kind]
    candidates = [face for face in returned if face["kind"] == kind]
    if not expected or not candidates:
        return len(expected), 0
    at, along = (np.array([face[key] for face in candidates]) for key in ("at", "along"))
    low, high = (np.array([face[key] for face in candidates]) for key in ("low", "high"))
    radius = np.array([face["radius"] for face in candidates])
    matched = 0
    for face in expected:
        size = float(np.linalg.norm(np.subtract(face["high"], face["low"])))
        offset = at - face["at"]
        if kind == "Plane":
            off = np.abs(offset @ face["along"])
        else:
            off = np.linalg.norm(np.cross(offset, face["along"]), axis=1)
        good = (np.abs(along @ face["along"]) > 1 - 1e-5) & (off <= MAX_ERROR_RATIO * max(size, face["radius"]))
        good &= np.abs(radius - face["radius"]) <= MAX_ERROR_RATIO * face["radius"]
        # facets are chords: the returned outline may lie inside by their sagitta
        room = 0.02 * size + 1e-3
        good &= (low <= np.array(face["low"]) + room).all(axis=1) & (high >= np.array(face["high"]) - room).all(axis=1)
        matched += bool(good.any())
    return len(expected), matched


def convert(source: Path, target: Path, **options: Any) -> tuple[float, dict[str, Any]]:
    """Return the CPU seconds of this process and the figures of the report."""
    registry = Registry()
    began = time.process_time()
    report = registry.convert(source, target, **options)
    figures: dict[str, Any] = {}
    for step in report.steps:
        figures |= step.figures
    return time.process_time() - began, figures


def round_trip(paths: list[Path], most_faces: int) -> int:
    print(
        f"{'file':44} {'faces':>6} {'back':>6} {'planes':>9} {'cylinders':>9} {'volume':>9} {'s':>6} {'KB':>7}  valid"
    )
    totals = {"Plane": [0, 0], "Cylinder": [0, 0]}
    for path in paths:
        before = in_process("judge", str(path))
        if "error" in before or not before["faces"] or len(before["faces"]) > most_faces:
            continue
        with tempfile.TemporaryDirectory() as folder:
            mesh, step_file = Path(folder, "model.stl"), Path(folder, "model.step")
            try:
                convert(path, mesh)
                seconds, _ = convert(mesh, step_file)
            except MeshhubError as error:
                print(f"{path.name[-44:]:44} {error.error_code}: {error.message[:60]}")
                continue
            after = in_process("judge", str(step_file))
            size = step_file.stat().st_size
        if "error" in after:
            print(f"{path.name[-44:]:44} {after['error']}")
            continue
        columns = []
        for kind, total in totals.items():
            there, back = came_back(before["faces"], after["faces"], kind)
            total[0] += there
            total[1] += back
            columns.append(f"{back:>4}/{there:<4}")
        off = (after["volume"] - before["volume"]) / before["volume"] if before["volume"] and after["volume"] else 0.0
        print(
            f"{path.name[-44:]:44} {len(before['faces']):>6} {len(after['faces']):>6} {columns[0]} {columns[1]} "
            f"{off:>9.1e} {seconds:>6.2f} {size / 1000:>7.0f}  {'yes' if after['valid'] else 'NO'}"
        )
    good = True
    for kind, (there, back) in totals.items():
        share = back / there if there else 1.0
        good &= share >= 0.9
        print(f"{kind}: {back} of {there}, {share:.1%}")
    return 0 if good else 1


def plate(holes: int, segments: int) -> Any:
    """Return the vertices (mm) and faces of a plate with holes × holes round holes."""
    import manifold3d

    side = 4.0 * holes + 2
    hole = manifold3d.Manifold.cylinder(20, 1.2, 1.2, segments)
    drilled = manifold3d.Manifold.cube([side, side, 5]) - manifold3d.Manifold.compose(
        [hole.translate([3 + 4 * row, 3 + 4 * column, -5]) for row in range(holes) for column in range(holes)]
    )
    mesh = drilled.to_mesh64()
    return np.asarray(mesh.vert_properties)[:, :3], np.asarray(mesh.tri_verts, np.int32)


def write_plate(path: str, holes: int, segments: int) -> dict[str, Any]:
    from meshhub.builtin_plugins.step import StepWriteOptions
    from meshhub.builtin_plugins.step.writer import write
    from meshhub.model.scene import Mesh, Part, Scene
    from meshhub.model.source import Target

    vertices, faces = plate(holes, segments)
    scene = Scene((Mesh(vertices, faces),), (Part(0),))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began, cpu = time.perf_counter(), time.process_time()
    write(scene, Target(Path(path).name, folder=Path(path).parent), StepWriteOptions())
    return {
        "triangles": len(faces),
        "seconds": time.perf_counter() - began,
        "cpu": time.process_time() - cpu,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "before": before / 1024,
        "bytes": Path(path).stat().st_size,
    }


def sew_plate(path: str, holes: int, segments: int) -> dict[str, Any]:
    """Write a plate as usual OpenCASCADE recipes do: a face for each triangle, sewn to a solid."""
    from OCP.BRepBuilderAPI import (
        BRepBuilderAPI_MakeFace,
        BRepBuilderAPI_MakePolygon,
        BRepBuilderAPI_MakeSolid,
        BRepBuilderAPI_Sewing,
    )
    from OCP.gp import gp_Pnt
    from OCP.STEPControl import STEPControl_AsIs, STEPControl_Writer
    from OCP.TopoDS import TopoDS

    vertices, faces = plate(holes, segments)
    began = time.perf_counter()
    sewing = BRepBuilderAPI_Sewing(1e-6)
    for face in faces.tolist():
        corners = [gp_Pnt(*vertices[index].tolist()) for index in face]
        wire = BRepBuilderAPI_MakePolygon(*corners, True).Wire()
        sewing.Add(BRepBuilderAPI_MakeFace(wire, True).Face())
    sewing.Perform()
    solid = BRepBuilderAPI_MakeSolid(TopoDS.Shell(sewing.SewedShape())).Solid()
    writer = STEPControl_Writer()
    writer.Transfer(solid, STEPControl_AsIs)
    writer.Write(path)
    return {
        "triangles": len(faces),
        "seconds": time.perf_counter() - began,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "bytes": Path(path).stat().st_size,
    }


def compare_plates(holes: int, segments: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        ours = str(Path(folder, "ours.step"))
        theirs = str(Path(folder, "theirs.step"))
        cost = in_process("write-plate", ours, str(holes), str(segments))
        sewn = in_process("sew-plate", theirs, str(max(1, round(holes / 10**0.5))), str(segments))
        verdict = in_process("judge", ours)
    print(f"written: {json.dumps(cost)}")
    print(f"sewn by OpenCASCADE, a tenth: {json.dumps(sewn)}")
    print(
        f"read back: valid {verdict.get('valid')}, {len(verdict.get('faces', []))} faces, "
        f"volume {verdict.get('volume')}"
    )
    if "error" in sewn or "error" in cost:
        return 1
    ratio = (sewn["seconds"] / sewn["triangles"]) / (cost["seconds"] / cost["triangles"])
    print(f"per triangle {ratio:.0f} times faster, {sewn['bytes'] / sewn['triangles']:.0f} against "
          f"{cost['bytes'] / cost['triangles']:.0f} bytes")  # fmt: skip
    return 0 if cost["cpu"] < 3 and cost["megabytes"] < 300 else 1


def sweep(corpus: Path, most_triangles: int, most_faces: int, surfaces: str) -> int:
    """Check that every watertight mesh becomes valid solids of its volume plus the volume of the arcs."""
    with (corpus / "INDEX.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["watertight"] == "True"]
    rows = [row for row in rows if int(row["n_faces"]) <= most_triangles and row["expect"] == "converts"]
    limit = 1e-6 if surfaces == "planar" else 1e-3
    counts = dict.fromkeys(("good", "bad", "left out", "arcs"), 0)
    print(f"{'file':50} {'triangles':>9} {'faces':>6} {'solids':>6} {'of mesh':>9} {'of arcs':>9} {'s':>6}  verdict")
    for row in sorted(rows, key=lambda row: int(row["n_faces"])):
        path = corpus / row["file"]
        with tempfile.TemporaryDirectory() as folder:
            step_file = Path(folder, "model.step")
            try:
                seconds, figures = convert(path, step_file, step_surfaces=surfaces)
            except MeshhubError as error:
                print(f"{path.name[-50:]:50} {error.error_code}: {error.message[:60]}")
                counts["bad"] += 1
                continue
            if figures["faces"] > most_faces:
                print(f"{path.name[-50:]:50} {row['n_faces']:>9} {figures['faces']:>6}  left out: too many faces")
                counts["left out"] += 1
                continue
            verdict = in_process("judge", str(step_file))
        if "error" in verdict:
            print(f"{path.name[-50:]:50} {verdict['error']}")
            counts["bad"] += 1
            continue
        mesh = abs(Registry().inspect(path).model.volume_mm3 or figures["mesh_volume_mm3"])
        arcs = mesh + figures["volume_gained_mm3"]
        of_mesh, of_arcs = (verdict["volume"] / expected - 1 if expected else 0.0 for expected in (mesh, arcs))
        good = verdict["valid"] and verdict["solids"] == figures["solids"] and abs(of_arcs) <= limit
        counts["good" if good else "bad"] += 1
        counts["arcs"] += good and abs(of_mesh) > limit
        print(
            f"{path.name[-50:]:50} {row['n_faces']:>9} {figures['faces']:>6} {verdict['solids']:>6} {of_mesh:>9.1e} "
            f"{of_arcs:>9.1e} {seconds:>6.2f}  {'good' if good else 'BAD'}"
        )
    print(
        f"of {len(rows)}: {counts['good']} good, {counts['arcs']} of them farther from the mesh than {limit:g} by the "
        f"arcs over its chords; {counts['bad']} bad, {counts['left out']} left out"
    )
    return 1 if counts["bad"] else 0


SAMPLE = (
    "models_groups.obj",
    "models_fuze_ascii.ply",
    "models_pyramids.3mf",
    "models_testplate.glb",
    "models_cylinder.stl",
    "stl_ascii_HalfDonut.stl",
    "BREP_base_interface_AP214.STEP",
    "Havocglass8_left.obj",
)
FREECAD = """
import json, os, Part
shape = Part.Shape()
shape.read(os.environ["MADE"])
volume = sum(solid.Volume for solid in shape.Solids)
print("\\n" + json.dumps({"valid": shape.isValid(), "solids": len(shape.Solids), "volume": volume}))
"""
GMSH = """
SetFactory("OpenCASCADE");
bodies() = ShapeFromFile("%s");
volume = 0;
For index In {0 : #bodies() - 1}
  one = Mass Volume {bodies(index)};
  volume += one;
EndFor
Printf('{"valid": true, "solids": %%g, "volume": %%.15g}', #bodies(), volume);
"""


def programs(paths: list[Path]) -> int:
    """Read files of this writer in FreeCAD and gmsh."""
    installed = [name for name in ("freecadcmd", "gmsh") if shutil.which(name)]
    print(f"programs: {', '.join(installed) or 'none is installed'}")
    bad = 0
    for path in paths:
        with tempfile.TemporaryDirectory() as folder:
            step_file = Path(folder, "model.step")
            _, figures = convert(path, step_file)
            scripts = {"freecadcmd": Path(folder, "ask.py"), "gmsh": Path(folder, "ask.geo")}
            scripts["freecadcmd"].write_text(FREECAD, encoding="utf-8")
            scripts["gmsh"].write_text(GMSH % step_file, encoding="utf-8")
            for name in installed:
                words = [name, str(scripts[name]), *(["-parse_and_exit"] if name == "gmsh" else [])]
                result = subprocess.run(
                    words,
                    capture_output=True,
                    text=True,
                    timeout=TIMEOUT_S,
                    check=False,
                    env={**os.environ, "MADE": str(step_file)},
                )
                lines = [line for line in result.stdout.splitlines() if line.startswith("{")]
                answer = json.loads(lines[-1]) if lines else {"valid": False, "solids": 0, "volume": 0.0}
                off = answer["volume"] / (figures["mesh_volume_mm3"] + figures["volume_gained_mm3"]) - 1
                good = answer["valid"] and answer["solids"] == figures["solids"] and abs(off) <= 1e-3
                bad += not good
                verdict = "good" if good else "BAD"
                print(f"{path.name[-50:]:50} {name:10} {answer['solids']:>3.0f} solids {off:>9.1e}  {verdict}")
    return 1 if bad else 0


def body(number: int) -> Any:
    """Return random bodies that are subtracted, united or intersected by a mesh boolean."""
    from manifold3d import CrossSection, Manifold

    rng = np.random.default_rng(number)

    def random_solid() -> Any:
        segments, size, kind = int(rng.choice([24, 32, 48, 64, 100])), rng.uniform(2, 10), rng.integers(7)
        if kind < 3:
            solid = Manifold.cylinder(rng.uniform(5, 40), size, size, segments, True)
        elif kind == 3:
            solid = Manifold.cylinder(rng.uniform(5, 20), size, size * rng.uniform(0.2, 2), segments, True)
        elif kind == 4:
            solid = Manifold.sphere(size, segments)
        elif kind == 5:
            tube = CrossSection.circle(size * rng.uniform(0.1, 0.4), segments // 2)
            solid = Manifold.revolve(tube.translate([size, 0]), segments)
        else:
            solid = Manifold.cube(rng.uniform(4, 30, 3), True)
        turn = rng.uniform(0, 360, 3) if rng.random() < 0.5 else 90 * rng.integers(0, 4, 3)
        return solid.rotate(turn).translate(rng.uniform(-8, 8, 3) * (rng.random() < 0.6))

    solid = random_solid()
    for _ in range(rng.integers(1, 5)):
        other, how = random_solid(), rng.integers(4)
        changed = solid - other if how < 2 else solid + other if how == 2 else solid ^ other
        solid = random_solid() if changed.is_empty() else changed
    return solid


def booleans(count: int) -> int:
    """Write round bodies whose facets were cut; print invalid solids and the number of curved faces."""
    import trimesh

    bad, triangles, seconds = 0, 0, 0.0
    faces: Counter[str] = Counter()
    for number in range(count):
        mesh = body(number).to_mesh()
        with tempfile.TemporaryDirectory() as folder:
            path, step_file = Path(folder, "body.stl"), Path(folder, "body.step")
            trimesh.Trimesh(mesh.vert_properties[:, :3], mesh.tri_verts, process=False).export(path)
            took, figures = convert(path, step_file)
            verdict = in_process("judge", str(step_file))
        triangles, seconds = triangles + len(mesh.tri_verts), seconds + took
        if "error" in verdict:
            bad += 1
            print(f"body {number}: {verdict['error']}")
            continue
        for face in verdict["faces"]:
            faces[face["kind"]] += 1
        off = verdict["volume"] / (figures["mesh_volume_mm3"] + figures["volume_gained_mm3"]) - 1
        if not (verdict["valid"] and verdict["solids"] == figures["solids"] and abs(off) <= 3e-3):
            bad += 1
            print(f"body {number}: valid {verdict['valid']}, {verdict['solids']} solids, volume off by {off:.1e}")
    counts = ", ".join(f"{kind} {number}" for kind, number in faces.items())
    print(f"{count} bodies of {triangles} triangles in {seconds:.0f} s: {bad} bad; faces: {counts}")
    return 1 if bad else 0


def main() -> int:
    hidden = {"judge": judge, "write-plate": write_plate, "sew-plate": sew_plate}
    if len(sys.argv) > 1 and sys.argv[1] in hidden:
        arguments = [int(word) if word.isdigit() else word for word in sys.argv[2:]]
        print(json.dumps(hidden[sys.argv[1]](*arguments)))  # type: ignore[operator]
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    trip = commands.add_parser("round-trip")
    trip.add_argument("files", nargs="*", type=Path)
    trip.add_argument("--faces", type=int, default=700)
    drilled = commands.add_parser("plate")
    drilled.add_argument("--holes", type=int, default=28)
    drilled.add_argument("--segments", type=int, default=32)
    all_of_them = commands.add_parser("sweep")
    all_of_them.add_argument("--triangles", type=int, default=50_000)
    all_of_them.add_argument("--faces", type=int, default=20_000)
    all_of_them.add_argument("--surfaces", choices=("analytic", "planar"), default="analytic")
    seen_by = commands.add_parser("programs")
    seen_by.add_argument("files", nargs="*", type=Path)
    cut = commands.add_parser("booleans")
    cut.add_argument("--bodies", type=int, default=180)
    options = parser.parse_args()
    if options.command == "booleans":
        return booleans(options.bodies)
    if options.command == "plate":
        return compare_plates(options.holes, options.segments)
    corpus = Path(os.environ.get("MESHHUB_CORPUS", ""))
    if options.command == "round-trip":
        files = options.files or sorted(path for path in (corpus / "step").iterdir() if path.suffix.lower() != ".p21")
        return round_trip(files, options.faces)
    if options.command == "programs":
        return programs(options.files or [path for path in sorted(corpus.glob("*/*")) if path.name.endswith(SAMPLE)])
    return sweep(corpus, options.triangles, options.faces, options.surfaces)


if __name__ == "__main__":
    sys.exit(main())
