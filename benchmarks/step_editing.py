"""Whether written STEP files can be edited like the originals: fillets, cuts, push-pull in OpenCASCADE; gmsh agrees.

    python benchmarks/step_editing.py [--parts 60] [--first 0] [STEP files …]

Each part, from `cad_parts` or a STEP file, becomes triangles, goes through meshhub to STEP, and comes back. The
original is written to STEP by OpenCASCADE and read back, too, because that alone loses some fillets:
- `line`, `circle`: edges of the original that OpenCASCADE fillets, and those of them whose edge at the same place in
  the result fillets, too, with the same radius, to a valid solid that lost or gained the same volume.
- `peer_line`, `peer_circle`: the same for the original itself, written by OpenCASCADE without the parameter curves of
  its edges, which few other programs write.
- `cut`: a box around each corner of the part; what it cuts off and what stays must have the volume of the part.
- `push`, `pull`: planar faces that OpenCASCADE moves inward and outward on the original, and on the result.
- `gmsh`: number and volume of the solids, where gmsh is installed.

Each edit gets a copy of the solid: an edit widens tolerances, also in the solid that it starts from, and the next one
may fail because of that. Every part has a process of its own with a time limit, because fillets may crash or hang
OpenCASCADE.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.append(str(Path(__file__).parent.parent / "tests" / "support"))

from cad_parts import occ
from cad_parts.parts import choose_triangulation, design
from meshhub import Registry

PART_TIMEOUT_S = 240.0
"""Seconds for one part; most take under ten."""
MAX_EDGES_COUNT = 16
"""Edges of each kind and part, spread over all of them; every fillet takes up to a second."""
MAX_PLANES_COUNT = 6
"""Planar faces of a part that are moved."""
FILLET_RATIO = 0.1
"""Radius of a fillet as a share of the length of the edge."""
MAX_FILLET_MM = 0.5
"""Millimeters; larger fillets fail on the originals."""
MIN_FILLET_MM = 1e-3
"""Millimeters; edges that are too short for this radius are left out."""
MOVE_MM = 0.3
"""Millimeters by which a face is moved."""
VOLUME_RATIO = 1e-4
"""Share of the volume by which volumes that must be equal may differ."""
FILLET_VOLUME_RATIO = 0.1
"""Share of the volume of a fillet by which that of its twin may differ."""
MAX_EDGE_GAP_RATIO = 2e-3
"""Distance of the middle of an edge from its twin over its length; facets lie on chords."""
MAX_LENGTH_CHANGE_RATIO = 0.05
"""Part by which the length of a twin may differ, to compare the volumes of the fillets."""
CHECKS = ("line", "circle", "peer_line", "peer_circle", "cut", "push", "pull", "gmsh")


class Edge(NamedTuple):
    """Edge of a solid: kernel edge, kind ("line", "circle"), middle, length in millimeters."""

    edge: Any
    kind: str
    middle: np.ndarray
    length_mm: float


def explore(shape: Any, kind: Any) -> Iterator[Any]:
    """Yield the distinct subshapes of a kind."""
    from OCP.collections import IndexedMap_TopoDS_Shape_TopTools_ShapeMapHasher
    from OCP.TopExp import TopExp

    shapes = IndexedMap_TopoDS_Shape_TopTools_ShapeMapHasher()
    TopExp.MapShapes_s(shape, kind, shapes)
    for number in range(1, shapes.Extent() + 1):
        yield shapes.FindKey(number)


def edges(shape: Any) -> list[Edge]:
    """Return the straight and circular edges between two faces."""
    from OCP.BRep import BRep_Tool
    from OCP.BRepAdaptor import BRepAdaptor_Curve
    from OCP.GCPnts import GCPnts_AbscissaPoint
    from OCP.GeomAbs import GeomAbs_Circle, GeomAbs_Line
    from OCP.TopAbs import TopAbs_EDGE
    from OCP.TopoDS import TopoDS

    edge_list = []
    for shape_edge in explore(shape, TopAbs_EDGE):
        edge = TopoDS.Edge(shape_edge)
        if BRep_Tool.Degenerated_s(edge):
            continue
        curve = BRepAdaptor_Curve(edge)
        kind = {GeomAbs_Line: "line", GeomAbs_Circle: "circle"}.get(curve.GetType())
        if kind is None:
            continue
        middle = curve.Value((curve.FirstParameter() + curve.LastParameter()) / 2)
        position = np.array([middle.X(), middle.Y(), middle.Z()])
        edge_list.append(Edge(edge, kind, position, GCPnts_AbscissaPoint.Length_s(curve)))
    return edge_list


def find_twin(edge: Edge, candidates: list[Edge]) -> Edge | None:
    """Return the edge of its kind through the middle of another; a seam may divide only one of them."""
    from OCP.BRepBuilderAPI import BRepBuilderAPI_MakeVertex
    from OCP.BRepExtrema import BRepExtrema_DistShapeShape
    from OCP.gp import gp_Pnt

    middle = BRepBuilderAPI_MakeVertex(gp_Pnt(*edge.middle.tolist())).Vertex()
    gaps = [
        BRepExtrema_DistShapeShape(middle, other.edge).Value() if other.kind == edge.kind else np.inf
        for other in candidates
    ]
    nearest = int(np.argmin(gaps)) if gaps else -1
    return candidates[nearest] if gaps and gaps[nearest] <= MAX_EDGE_GAP_RATIO * edge.length_mm else None


def volume(shape: Any) -> float:
    """Return the volume."""
    from OCP.BRepGProp import BRepGProp
    from OCP.GProp import GProp_GProps

    properties = GProp_GProps()
    BRepGProp.VolumeProperties_s(shape, properties)
    return float(properties.Mass())


def is_solid(shape: Any) -> bool:
    """Return whether a shape is valid and has a volume."""
    from OCP.BRepCheck import BRepCheck_Analyzer

    return not shape.IsNull() and BRepCheck_Analyzer(shape).IsValid() and volume(shape) > 0


def copy(shape: Any, part: Any) -> tuple[Any, Any]:
    """Return a copy of a shape, and the copy of an edge or a face of it."""
    from OCP.BRepBuilderAPI import BRepBuilderAPI_Copy

    operation = BRepBuilderAPI_Copy(shape)
    return operation.Shape(), operation.ModifiedShape(part)


def fillet_volume(shape: Any, edge: Any, radius_mm: float) -> float | None:
    """Return by how much a fillet changes the volume; None if it fails."""
    from OCP.BRepFilletAPI import BRepFilletAPI_MakeFillet
    from OCP.TopoDS import TopoDS

    shape, edge = copy(shape, edge)
    try:
        tool = BRepFilletAPI_MakeFillet(shape)
        tool.Add(radius_mm, TopoDS.Edge(edge))
        tool.Build()
        return volume(tool.Shape()) - volume(shape) if tool.IsDone() and is_solid(tool.Shape()) else None
    except Exception:
        return None


def moves(shape: Any, face: Any, distance_mm: float) -> bool:
    """Return whether a planar face can be pulled out, or pushed in if negative, and the volume changes accordingly."""
    from OCP.BRepAlgoAPI import BRepAlgoAPI_Cut, BRepAlgoAPI_Fuse
    from OCP.BRepPrimAPI import BRepPrimAPI_MakePrism
    from OCP.gp import gp_Vec
    from OCP.TopoDS import TopoDS

    shape, face = copy(shape, face)
    normal = outward_normal(TopoDS.Face(face)) * distance_mm
    try:
        prism = BRepPrimAPI_MakePrism(face, gp_Vec(*normal.tolist())).Shape()
        before, added = volume(shape), abs(volume(prism))
        operation = BRepAlgoAPI_Fuse if distance_mm > 0 else BRepAlgoAPI_Cut
        result = operation(shape, prism).Shape()
        return is_solid(result) and abs(volume(result) - before) <= added * (1 + 1e-3) + VOLUME_RATIO * before
    except Exception:
        return False


def outward_normal(face: Any) -> np.ndarray:
    """Return the unit normal of a planar face, out of the material."""
    from OCP.BRepAdaptor import BRepAdaptor_Surface
    from OCP.TopAbs import TopAbs_REVERSED

    axes = BRepAdaptor_Surface(face, False).Plane().Position()
    direction = axes.Direction()
    sign = -1 if (face.Orientation() == TopAbs_REVERSED) == axes.Direct() else 1
    return sign * np.array([direction.X(), direction.Y(), direction.Z()])


def planes(shape: Any) -> list[tuple[Any, np.ndarray, float]]:
    """Return the planar faces with their centroid and area."""
    from OCP.BRepAdaptor import BRepAdaptor_Surface
    from OCP.BRepGProp import BRepGProp
    from OCP.GeomAbs import GeomAbs_Plane
    from OCP.GProp import GProp_GProps
    from OCP.TopAbs import TopAbs_FACE
    from OCP.TopoDS import TopoDS

    planar_faces = []
    for shape_face in explore(shape, TopAbs_FACE):
        face = TopoDS.Face(shape_face)
        if BRepAdaptor_Surface(face, False).GetType() == GeomAbs_Plane:
            properties = GProp_GProps()
            BRepGProp.SurfaceProperties_s(face, properties)
            center = properties.CentreOfMass()
            planar_faces.append((face, np.array([center.X(), center.Y(), center.Z()]), float(properties.Mass())))
    return sorted(planar_faces, key=lambda item: -item[2])


def cuts_balance(shape: Any) -> tuple[int, int]:
    """Return the boxes around the corners of a part, and those that divide its volume without loss."""
    from OCP.Bnd import Bnd_Box
    from OCP.BRepAlgoAPI import BRepAlgoAPI_Common, BRepAlgoAPI_Cut
    from OCP.BRepBndLib import BRepBndLib
    from OCP.BRepPrimAPI import BRepPrimAPI_MakeBox
    from OCP.gp import gp_Pnt

    box = Bnd_Box()
    BRepBndLib.Add_s(shape, box)
    corners = [np.array([point.X(), point.Y(), point.Z()]) for point in (box.CornerMin(), box.CornerMax())]
    total, good = volume(shape), 0
    for number in range(8):
        corner = np.array([corners[number >> axis & 1][axis] for axis in range(3)])
        half = (corners[1] - corners[0]) * 0.4037
        low = np.where(corner == corners[0], corner - 1, corner - half)
        size = half + 1
        tool = BRepPrimAPI_MakeBox(gp_Pnt(*low.tolist()), *size.tolist()).Shape()
        try:
            inside, outside = (
                operation(copy(shape, shape)[0], tool).Shape() for operation in (BRepAlgoAPI_Common, BRepAlgoAPI_Cut)
            )
            good += abs(volume(inside) + volume(outside) - total) <= VOLUME_RATIO * total
        except Exception:
            continue
    return 8, good


def nearest(items: list[Any], position: np.ndarray, length: float, key: Any) -> Any:
    """Return the item at a place with about this size, None if there is none."""
    for item in items:
        place, size = key(item)
        if np.linalg.norm(place - position) < 0.02 * length + 0.05 and abs(size - length) < 0.05 * length + 0.05:
            return item
    return None


def compare(original: Any, peer: Any, result: Any) -> dict[str, list[Any]]:
    """Return by check: attempts that succeed on the original, those that succeed on the result, and failures.

    Args:
        original: Solid to compare with.
        peer: The same, without the parameter curves of its edges.
        result: Solid that meshhub wrote.
    """
    report: dict[str, list[Any]] = {check: [0, 0, []] for check in CHECKS}
    for prefix, other in (("", result), ("peer_", peer)):
        before, after = edges(original), edges(other)
        for kind in ("line", "circle"):
            sides = ([edge for edge in side if edge.kind == kind] for side in (before, after))
            _compare_fillets(original, other, *sides, report[prefix + kind])
    report["cut"][:2] = cuts_balance(result)
    _compare_moves(original, result, report)
    return report


def _compare_fillets(original: Any, result: Any, before: list[Edge], after: list[Edge], row: list[Any]) -> None:
    """Count the edges of the original that can be filleted, and their twins in the result that can."""
    step = max(1, len(before) // MAX_EDGES_COUNT)
    for edge in before[::step][:MAX_EDGES_COUNT]:
        radius = min(MAX_FILLET_MM, FILLET_RATIO * edge.length_mm)
        expected = fillet_volume(original, edge.edge, radius) if radius >= MIN_FILLET_MM else None
        if expected is not None:
            _count(row, judge_fillet(result, edge, find_twin(edge, after), radius, expected))


def judge_fillet(result: Any, edge: Edge, twin: Edge | None, radius_mm: float, expected: float) -> str:
    """Return why a fillet of the result is not that of the original, or nothing.

    Their volumes are not compared if a seam divides only one of the edges.
    """
    if twin is None:
        return "no such edge"
    change = fillet_volume(result, twin.edge, radius_mm)
    if change is None:
        return "fillet fails"
    is_same_edge = abs(twin.length_mm - edge.length_mm) <= MAX_LENGTH_CHANGE_RATIO * edge.length_mm
    allowed = FILLET_VOLUME_RATIO * abs(expected) + VOLUME_RATIO**2 * volume(result)
    return "fillet of another volume" if is_same_edge and abs(change - expected) > allowed else ""


def _compare_moves(original: Any, result: Any, report: dict[str, list[Any]]) -> None:
    """Count the planar faces of the original that can be pushed and pulled, and their twins that can."""
    moved = planes(result)
    for face, center, area in planes(original)[:MAX_PLANES_COUNT]:
        twin = nearest(moved, center, area**0.5, lambda other: (other[1], other[2] ** 0.5))
        for check, distance in (("push", -MOVE_MM), ("pull", MOVE_MM)):
            if moves(original, face, distance):
                _count(
                    report[check],
                    "no such face" if twin is None else "" if moves(result, twin[0], distance) else "no solid",
                )


def _count(row: list[Any], failure: str) -> None:
    row[0] += 1
    if failure:
        row[2].append(failure)
    else:
        row[1] += 1


def ask_gmsh(path: str, solids: int, expected: float) -> list[Any]:
    """Return whether gmsh reads as many solids with the same volume: attempts, successes, failures."""
    try:
        import gmsh
    except (ImportError, OSError):
        return [0, 0, []]
    gmsh.initialize()
    gmsh.option.setNumber("General.Terminal", 0)
    try:
        bodies = [tag for dimension, tag in gmsh.model.occ.importShapes(path) if dimension == 3]
        total = sum(gmsh.model.occ.getMass(3, tag) for tag in bodies)
    finally:
        gmsh.finalize()
    if len(bodies) != solids:
        return [1, 0, [f"{len(bodies)} solids of {solids}"]]
    good = abs(total - expected) <= VOLUME_RATIO * abs(expected)
    return [1, int(good), [] if good else ["other volume"]]


def read(path: str) -> Any:
    """Return the shape of a STEP file, millimeters."""
    from OCP.STEPControl import STEPControl_Reader

    reader = STEPControl_Reader()
    reader.ReadFile(path)
    reader.TransferRoots()
    return reader.OneShape()


def rewrite(shape: Any, path: str, *, has_parameter_curves: bool) -> Any:
    """Return a shape as OpenCASCADE writes it to a STEP file and reads it back."""
    from OCP.Interface import Interface_Static
    from OCP.STEPControl import STEPControl_AsIs, STEPControl_Writer

    writer = STEPControl_Writer()
    Interface_Static.SetIVal_s("write.surfacecurve.mode", int(has_parameter_curves))
    writer.Transfer(shape, STEPControl_AsIs)
    writer.Write(path)
    return read(path)


def judge(name: str, folder: Path) -> dict[str, Any]:
    """Convert one part and compare the result with the original."""
    from OCP.BRepCheck import BRepCheck_Analyzer
    from OCP.BRepMesh import BRepMesh_IncrementalMesh
    from OCP.StlAPI import StlAPI_Writer
    from OCP.TopAbs import TopAbs_SOLID

    try:
        if name.isdecimal():
            original = design(int(name), occ).shape
            _, deviation, angle, _ = choose_triangulation(int(name))
        else:
            original, deviation, angle = read(name), 0.01, 0.2
    except Exception as failure:
        return {"error": f"no original: {failure}"}
    if not BRepCheck_Analyzer(original).IsValid() or not any(explore(original, TopAbs_SOLID)):
        return {"error": "no valid original"}
    original = rewrite(original, str(folder / "original.step"), has_parameter_curves=True)
    peer = rewrite(original, str(folder / "peer.step"), has_parameter_curves=False)
    BRepMesh_IncrementalMesh(original, deviation, False, angle, False)
    triangles = StlAPI_Writer()
    triangles.ASCIIMode = False
    triangles.Write(original, str(folder / "part.stl"))
    registry = Registry()
    if not registry.inspect(folder / "part.stl").model.watertight:
        return {"error": "triangles of the original are open"}
    registry.convert(folder / "part.stl", folder / "part.step")
    result = read(str(folder / "part.step"))
    report = compare(original, peer, result)
    solids = list(explore(result, TopAbs_SOLID))
    report["gmsh"] = ask_gmsh(str(folder / "part.step"), len(solids), volume(result))
    return {"report": report}


def main() -> int:
    """Compare every part and print the shares."""
    if sys.argv[1:2] == ["judge"]:
        print(json.dumps(judge(sys.argv[2], Path(sys.argv[3]))))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--parts", type=int, default=60)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    names = options.files or [str(number) for number in range(options.first, options.first + options.parts)]
    attempted, good, reasons = Counter[str](), Counter[str](), Counter[str]()
    errors = 0
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, __file__, "judge", name, folder]
            try:
                result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PART_TIMEOUT_S)
                answer = json.loads(result.stdout.splitlines()[-1]) if result.returncode == 0 else None
            except subprocess.TimeoutExpired:
                answer = None
        if answer is None or "error" in answer:
            errors += 1
            print(f"{name}: {'crash or timeout' if answer is None else answer['error']}", flush=True)
            continue
        failures = []
        for check, (attempts, successes, texts) in answer["report"].items():
            attempted[check] += attempts
            good[check] += successes
            reasons.update(f"{check}: {text}" for text in texts)
            failures += [f"{check} {successes}/{attempts}"] if successes < attempts else []
        print(f"{name}: {', '.join(failures) or 'all'}", flush=True)
    for check in CHECKS:
        share = good[check] / attempted[check] if attempted[check] else 1.0
        print(f"{check:12} {good[check]:5} of {attempted[check]:5} = {share:.1%}")
    print(f"{len(names) - errors} parts compared, {errors} not; reasons: {dict(reasons.most_common())}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
