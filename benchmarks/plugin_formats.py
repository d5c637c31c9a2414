"""Compare the format plug-ins with other programs on the files of a folder.

    python benchmarks/plugin_formats.py FOLDER [--format amf|brep|dae|dxf|…] [--judge assimp|bpy|gmsh|…]

For each file of a format, and for each model that meshhub writes to the format from the files of FOLDER/models, the
table shows what meshhub and the judge read: triangles, area, volume, size, used materials. Judges differ in units and
in the axis that points up, so sizes are compared after sorting them, with the scale between both as a column. A summary
follows.

Judges of CAD files know no triangles. Gmsh reports the exact area and volume of IGES and BREP files, though it
contains OpenCASCADE, too. rhino3dm is McNeel's library, by which meshhub-rhino writes files as well; here it lists the
meshes of a file. PrusaSlicer states the length of filament in its G-code, whose volume the drawn toolpath has to have;
FOLDER/models are sliced for it. trimesh has its own readers of drawings: the extent and the area that the outlines of a
drawing enclose are compared with the base of the solid.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from meshhub import MeshhubError, Registry, Scene
from meshhub.toolkit.geometry import area, bounds, soup

TOLERANCE_RATIO = 2e-3
"""Relative difference of areas, volumes and sizes up to which two readings are equal: judges print few digits."""

DEADLINE_S = 120
"""Seconds for one file of a judge."""

Points = NDArray[np.float64]


@dataclass(frozen=True)
class Measures:
    """Figures of a model; None for those that a judge does not report."""

    faces: int | None
    sizes: tuple[float, ...]
    area: float | None = None
    volume: float | None = None
    materials: int | None = None


def measure(scene: Scene) -> Measures:
    low, high = bounds(scene)
    vertices, faces = soup(scene)
    sizes = tuple(sorted((high - low).tolist()))
    used = len(scene.used_materials())
    return Measures(len(faces), sizes, area(vertices, faces), centered_volume(vertices, faces), used)


def measure_profile(scene: Scene) -> Measures:
    """Measure the base of a solid that a drawing was extruded to."""
    low, high = bounds(scene)
    height = float((high - low)[2])
    sizes = tuple(sorted((high - low)[:2].tolist()))
    return Measures(None, sizes, centered_volume(*soup(scene)) / height)


def measure_print(scene: Scene) -> Measures:
    """Measure the filament of a toolpath; a slicer states nothing else."""
    return Measures(None, (1.0,), volume=centered_volume(*soup(scene)))


def centered_volume(vertices: Points, faces: NDArray[np.int32]) -> float:
    """Return the volume about the center of the box, so that open models compare as well."""
    corners = vertices[faces].reshape(-1, 3)
    center = (corners.min(axis=0) + corners.max(axis=0)) / 2
    a, b, c = (vertices[faces[:, corner]] - center for corner in range(3))
    return abs(float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6))


def measure_triangles(vertices: Points, faces: NDArray[np.int64], materials: int | None = None) -> Measures:
    sizes = tuple(sorted(np.ptp(vertices[faces].reshape(-1, 3), axis=0).tolist()))
    flat = faces.astype(np.int32)
    return Measures(len(faces), sizes, area(vertices, flat), centered_volume(vertices, flat), materials)


def run_judge(command: list[str]) -> None:
    """Run a program; one that fails or exceeds the deadline writes no result."""
    silent = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=silent, stderr=silent, start_new_session=True) as process:
        try:
            process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            # some programs are scripts that start the real one
            os.killpg(process.pid, signal.SIGKILL)


def judge_assimp(path: Path) -> Measures | None:
    """Let assimp convert a file to its JSON dump, and add up what its nodes place."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.assjson"
        # triangulate and keep the hierarchy, so that instances and node matrices are the judge's own
        command = ["assimp", "export", str(path), str(out), "-fassjson", "-tri"]
        run_judge(command)
        if not out.exists():
            return None
        try:
            dump = json.loads(out.read_text("utf-8", "replace"))
        except ValueError:
            # assimp writes NaN and control characters as they are
            return None
    vertices: list[Points] = []
    faces: list[NDArray[np.int64]] = []
    used: set[int] = set()
    count = 0
    for matrix, index in _placed_meshes(dump["rootnode"], np.eye(4)):
        mesh = dump["meshes"][index]
        triangles = [face for face in mesh["faces"] if len(face) == 3]
        if not triangles:
            continue
        # assimp writes NaN as text
        points = np.array(mesh["vertices"], float).reshape(-1, 3)
        used.add(mesh["materialindex"])
        # a mirror turns the surface inside out
        step = -1 if np.linalg.det(matrix[:3, :3]) < 0 else 1
        faces.append(np.array(triangles)[:, ::step] + count)
        vertices.append(points @ matrix[:3, :3].T + matrix[:3, 3])
        count += len(points)
    if not faces:
        return None
    # assimp adds a material for faces without one
    named = [index for index in used if _name_of(dump["materials"][index]) not in _DEFAULT_MATERIALS]
    return measure_triangles(np.concatenate(vertices), np.concatenate(faces), len(named))


def _placed_meshes(node: dict[str, object], parent: Points) -> Iterator[tuple[Points, int]]:
    matrix = parent @ np.array(node["transformation"]).reshape(4, 4)
    for index in node.get("meshes", []):  # type: ignore[attr-defined]
        yield matrix, index
    for child in node.get("children", []):  # type: ignore[attr-defined]
        yield from _placed_meshes(child, matrix)


def _name_of(material: dict[str, object]) -> str:
    return next((each["value"] for each in material["properties"] if each["key"] == "?mat.name"), "")  # type: ignore[attr-defined]


_DEFAULT_MATERIALS = ("DefaultMaterial", "")
"""Names of the material that assimp adds."""


def judge_prusa(path: Path) -> Measures | None:
    """Let PrusaSlicer export a file as STL, with all objects and instances where they are."""
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / path.name, Path(folder) / "out.stl"
        data = path.read_bytes()
        # PrusaSlicer reads the angles of text files, which ISO/ASTM 52915 defines in degrees, as radians
        source.write_bytes(_ANGLE.sub(lambda match: b"%s%.9f<" % (match[1], math.radians(float(match[2]))), data))
        run_judge(["prusa-slicer", "--no-ensure-on-bed", "--export-stl", "-o", str(out), str(source)])
        if not out.exists():
            return None
        data = out.read_bytes()
    facets = np.frombuffer(data, [("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")], offset=84)
    points = facets["corners"].reshape(-1, 3).astype(np.float64)
    return measure_triangles(points, np.arange(len(points)).reshape(-1, 3)) if len(points) else None


_ANGLE = re.compile(rb"(<r[xyz]>)\s*([-+.\deE]+)\s*<")
"""Rotation of an AMF instance about an axis."""


def judge_slicer(path: Path) -> Measures | None:
    """Return the volume of the filament that PrusaSlicer states in its G-code."""
    text = path.read_text(encoding="utf-8")
    length, diameter = (
        re.search(rf"^; {re.escape(name)} = ([\d.]+)", text, re.MULTILINE)
        for name in ("filament used [mm]", "filament_diameter")
    )
    if length is None or diameter is None:
        return None
    return Measures(None, (1.0,), volume=float(length[1]) * math.pi / 4 * float(diameter[1]) ** 2)


def judge_rhino(path: Path) -> Measures | None:
    """Let rhino3dm list the meshes of a file, and place those of blocks."""
    import rhino3dm  # type: ignore[import-not-found]

    model = rhino3dm.File3dm.Read(str(path))
    if model is None:
        return None
    items = {str(item.Attributes.Id): item for item in model.Objects}
    definitions = {str(each.Id): each.GetObjectIds() for each in model.InstanceDefinitions}
    inside = {str(number) for numbers in definitions.values() for number in numbers}
    placed: list[tuple[Points, NDArray[np.int64]]] = []

    def place(item: object, matrix: Points) -> None:
        geometry = item.Geometry  # type: ignore[attr-defined]
        if isinstance(geometry, rhino3dm.InstanceReference):
            rows = geometry.Xform.ToFloatArray(True)
            for number in definitions[str(geometry.ParentIdefId)]:
                place(items[str(number)], matrix @ np.array(rows).reshape(4, 4))
        elif isinstance(geometry, rhino3dm.Mesh):
            points = np.array([(each.X, each.Y, each.Z) for each in geometry.Vertices]).reshape(-1, 3)
            quads = np.array([geometry.Faces[k] for k in range(len(geometry.Faces))], np.int64).reshape(-1, 4)
            split = quads[quads[:, 2] != quads[:, 3]][:, [0, 2, 3]]
            step = -1 if np.linalg.det(matrix[:3, :3]) < 0 else 1
            faces = np.concatenate([quads[:, :3], split])[:, ::step]
            placed.append((points @ matrix[:3, :3].T + matrix[:3, 3], faces))

    for number, item in items.items():
        if number not in inside:
            place(item, np.eye(4))
    if not placed:
        return None
    offsets = np.cumsum([0, *(len(points) for points, _ in placed)])
    triangles = [faces + offset for (_, faces), offset in zip(placed, offsets, strict=False)]
    return measure_triangles(np.concatenate([points for points, _ in placed]), np.concatenate(triangles))


def judge_lightusd(path: Path) -> Measures | None:
    """Let LightUSD, which shares no code with OpenUSD, extract what a stage shows."""
    import lightusd  # type: ignore[import-not-found]
    from lightusd import tydra

    stage = lightusd.load(str(path))
    scene = tydra.to_render_scene(stage)
    # classes are prototypes, which a renderer does not show
    classes = tuple(f"{node.prim_path}/" for node in scene.nodes if stage.prim_at(node.prim_path).specifier == "class")
    placed: list[tuple[Points, NDArray[np.int64]]] = []
    used: set[int] = set()
    for node in scene.nodes:
        if node.type != "mesh" or not node.visible or node.prim_path.startswith(classes):
            continue
        mesh = scene.meshes[node.data_id]
        matrix = np.array(node.world_transform)
        faces = np.asarray(mesh.triangulated_indices).reshape(-1, 3).astype(np.int64)
        step = -1 if np.linalg.det(matrix[:3, :3]) < 0 else 1
        placed.append((np.asarray(mesh.points) @ matrix[:3, :3] + matrix[3, :3], faces[:, ::step]))
        # subsets are (first face, number of faces, material)
        used |= {mesh.material_id, *(subset[2] for subset in mesh.subsets)} - {-1}
    if not placed:
        return None
    offsets = np.cumsum([0, *(len(points) for points, _ in placed)])
    triangles = [faces + offset for (_, faces), offset in zip(placed, offsets, strict=False)]
    return measure_triangles(np.concatenate([points for points, _ in placed]), np.concatenate(triangles), len(used))


_GMSH_CODE = """
import json, sys, gmsh
gmsh.initialize(interruptible=False)
gmsh.option.setNumber("General.Terminal", 0)
# boxes of control points would be too large
gmsh.option.setNumber("Geometry.OCCBoundsUseStl", 1)
occ = gmsh.model.occ
occ.importShapes(sys.argv[1], highestDimOnly=False)
occ.synchronize()
# lists of pairs (dimension, tag)
areas = [occ.getMass(*entity) for entity in occ.getEntities(2)]
volumes = [occ.getMass(*entity) for entity in occ.getEntities(3)]
boxes = [occ.getBoundingBox(*entity) for entity in occ.getEntities(2)]
sizes = [max(b[k + 3] for b in boxes) - min(b[k] for b in boxes) for k in range(3)]
json.dump({"sizes": sorted(sizes), "area": sum(areas), "volume": sum(volumes)}, open(sys.argv[2], "w"))
"""


def judge_gmsh(path: Path) -> Measures | None:
    """Let Gmsh integrate areas and volumes over the surfaces of a file."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        run_judge([sys.executable, "-c", _GMSH_CODE, str(path), str(out)])
        if not out.exists():
            return None
        figures = json.loads(out.read_text())
    # a file of surfaces without solids has an area alone
    return Measures(None, tuple(figures["sizes"]), figures["area"], figures["volume"] or None)


def judge_trimesh(path: Path) -> Measures | None:
    """Let trimesh read a drawing, and add up the polygons that its outlines enclose."""
    import trimesh

    try:
        drawing = trimesh.load_path(path)
        polygons = drawing.polygons_full
    except (ValueError, KeyError, IndexError, AttributeError, TypeError):
        # trimesh raises these for entities that it does not support
        return None
    if not len(polygons):
        return None
    corners = np.concatenate([np.array(polygon.exterior.coords) for polygon in polygons])
    sizes = tuple(sorted(np.ptp(corners, axis=0).tolist()))
    return Measures(None, sizes, sum(polygon.area for polygon in polygons))


_MESHLAB_CODE = """
import sys, numpy as np, pymeshlab
meshes = pymeshlab.MeshSet()
meshes.load_new_mesh(sys.argv[1])
meshes.generate_by_merging_visible_meshes()
mesh = meshes.current_mesh()
np.savez(sys.argv[2], points=mesh.vertex_matrix(), faces=mesh.face_matrix())
"""


def judge_meshlab(path: Path) -> Measures | None:
    """Let MeshLab import a file; a process, because it crashes on some."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.npz"
        run_judge([sys.executable, "-c", _MESHLAB_CODE, str(path), str(out)])
        if not out.exists():
            return None
        with np.load(out) as arrays:
            return measure_triangles(arrays["points"], arrays["faces"]) if len(arrays["faces"]) else None


_BLENDER_PYTHON = os.environ.get("BLENDER_PYTHON", sys.executable)
"""Python with Blender as a module, which needs an older numpy than meshhub."""

_BLENDER_CODE = """
import sys, bpy, numpy as np
bpy.ops.wm.read_factory_settings(use_empty=True)
bpy.ops.wm.fbx_import(filepath=sys.argv[1], use_anim=False)
points, faces, used, count = [], [], set(), 0
for item in bpy.context.scene.objects:
    if item.type != "MESH":
        continue
    mesh = item.data
    mesh.calc_loop_triangles()
    corners = np.array([each.vertices for each in mesh.loop_triangles]).reshape(-1, 3)
    matrix = np.array(item.matrix_world)
    step = -1 if np.linalg.det(matrix[:3, :3]) < 0 else 1
    own = np.array([each.co for each in mesh.vertices]).reshape(-1, 3)
    points.append(own @ matrix[:3, :3].T + matrix[:3, 3])
    faces.append(corners[:, ::step] + count)
    count += len(own)
    slots = {each.material_index for each in mesh.loop_triangles}
    used |= {item.material_slots[slot].name for slot in slots if slot < len(item.material_slots)}
if points:
    np.savez(sys.argv[2], points=np.concatenate(points), faces=np.concatenate(faces), used=len(used))
"""


def judge_blender(path: Path) -> Measures | None:
    """Let Blender 4.5 or later import a file: its reader of FBX is ufbx."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.npz"
        command = [_BLENDER_PYTHON, "-c", _BLENDER_CODE, str(path), str(out)]
        run_judge(command)
        if not out.exists():
            return None
        with np.load(out) as arrays:
            return measure_triangles(arrays["points"], arrays["faces"], int(arrays["used"]))


def find_usd_faults(path: Path) -> list[str]:
    """Return the faults that OpenUSD's validators find, those of packages and of previews included."""
    from pxr import Usd, UsdValidation  # type: ignore[import-not-found]

    validators = UsdValidation.ValidationRegistry().GetOrLoadAllValidators()
    errors = UsdValidation.ValidationContext(validators).Validate(Usd.Stage.Open(str(path)))
    return [f"{error.GetName()}: {error.GetMessage()[:80]}" for error in errors]


@dataclass(frozen=True)
class Format:
    """Format, its distribution, its extensions, whether meshhub writes it, and its usual judge."""

    distribution: str
    extensions: tuple[str, ...]
    is_written: bool
    judge: str
    measure: Callable[[Scene], Measures] = measure
    options: dict[str, object] = field(default_factory=dict)


FORMATS = {
    "amf": Format("amf", (".amf",), True, "prusa-slicer"),
    # finer than TOLERANCE_RATIO: judges of CAD files integrate over the true surfaces
    "brep": Format(
        "cad", (".brep", ".brp"), True, "gmsh", options={"brep_deviation_mm": 1e-3, "brep_angle_degrees": 2}
    ),
    "dae": Format("collada", (".dae", ".zae"), True, "assimp"),
    "dxf": Format("cad", (".dxf",), False, "trimesh", measure_profile, {"dxf_tolerance_mm": 1e-3}),
    "fbx": Format("assimp", (".fbx",), True, "bpy"),
    "3ds": Format("assimp", (".3ds",), False, "pymeshlab"),
    "x3d": Format("x3d", (".x3d",), False, "pymeshlab"),
    "vrml": Format("x3d", (".wrl",), False, "pymeshlab"),
    "lwo": Format("assimp", (".lwo", ".lxo"), False, "assimp"),
    "ms3d": Format("assimp", (".ms3d",), False, "assimp"),
    "ac3d": Format("assimp", (".ac",), False, "assimp"),
    "b3d": Format("assimp", (".b3d",), False, "assimp"),
    "directx": Format("assimp", (".x",), False, "assimp"),
    "iges": Format(
        "cad", (".igs", ".iges"), True, "gmsh", options={"iges_deviation_mm": 1e-3, "iges_angle_degrees": 2}
    ),
    "gcode": Format("gcode", (".gcode",), False, "slicer", measure_print),
    "off": Format("off", (".off",), True, "assimp"),
    "3dm": Format("rhino", (".3dm",), True, "rhino3dm"),
    "svg": Format("cad", (".svg",), False, "trimesh", measure_profile, {"svg_tolerance_mm": 1e-3}),
    "usdz": Format("usdz", (".usdz",), True, "lightusd"),
}

JUDGES: dict[str, Callable[[Path], Measures | None]] = {
    "assimp": judge_assimp,
    "bpy": judge_blender,
    "gmsh": judge_gmsh,
    "lightusd": judge_lightusd,
    "prusa-slicer": judge_prusa,
    "pymeshlab": judge_meshlab,
    "rhino3dm": judge_rhino,
    "slicer": judge_slicer,
    "trimesh": judge_trimesh,
}


def compare(ours: Measures, theirs: Measures) -> tuple[float, list[str]]:
    """Return the scale from the judge's unit to millimeters, and what differs."""
    longest = ours.sizes[-1]
    scale = longest / theirs.sizes[-1] if theirs.sizes[-1] else 1.0
    faults: list[str] = []
    if None not in (ours.faces, theirs.faces) and ours.faces != theirs.faces:
        faults.append(f"triangles {ours.faces}:{theirs.faces}")
    rows = [("size", own, other, scale) for own, other in zip(ours.sizes, theirs.sizes, strict=True)]
    rows += [("area", ours.area, theirs.area, scale**2), ("volume", ours.volume, theirs.volume, scale**3)]
    limit = {"size": longest, "area": ours.area or 1.0, "volume": longest**3 * 1e-3}
    for name, own, other, factor in rows:
        if own is None or other is None:
            continue
        if abs(own - other * factor) > TOLERANCE_RATIO * max(abs(own), limit[name] * 1e-3):
            faults.append(f"{name} {own:.6g}:{other * factor:.6g}")
    return scale, faults


class Verdict(Enum):
    """Comparison of the readings of a file; the value heads a column of the summary."""

    EQUAL = "equal"
    DIFFERENT = "different"
    JUDGE_REJECTS = "rejected by the judge"
    BOTH_REJECT = "rejected by both"


def show(direction: str, name: str, path: Path, judge: str, registry: Registry, format_id: str) -> Verdict:
    """Print the row of a file, and return how both readings compare."""
    form = FORMATS[format_id]
    try:
        ours = form.measure(registry.read(path, input_format=format_id, options=form.options))
    except MeshhubError as error:
        # assimp draws the bones and cameras of a file that has no triangles
        is_rejected = error.code == "empty_model" or JUDGES[judge](path) is None
        print(f"{direction:4} {name[:44]:44} {'' if is_rejected else 'only meshhub rejects: '}{error.message[:60]}")
        return Verdict.BOTH_REJECT if is_rejected else Verdict.DIFFERENT
    theirs = JUDGES[judge](path)
    if theirs is None:
        print(f"{direction:4} {name[:44]:44} {ours.faces or '-':>8} only {judge} rejects")
        return Verdict.JUDGE_REJECTS
    scale, faults = compare(ours, theirs)
    if direction == "out" and format_id == "usdz":
        faults += find_usd_faults(path)
    sizes = "×".join(f"{size:.4g}" for size in ours.sizes)
    materials = f"{ours.materials}:{theirs.materials if theirs.materials is not None else '-'}"
    content = ours.area if ours.volume is None else ours.volume
    figures = f"{ours.faces or '-':>8} {sizes:24} {content:12.6g} {materials:>6} {scale:9.4g}"
    print(f"{direction:4} {name[:44]:44} {figures} {'; '.join(faults) or 'equal'}")
    return Verdict.DIFFERENT if faults else Verdict.EQUAL


def is_installed(judge: str) -> bool:
    if judge == "bpy" and sys.executable != _BLENDER_PYTHON:
        return True
    if judge == "slicer":
        judge = "prusa-slicer"
    return shutil.which(judge) is not None or importlib.util.find_spec(judge) is not None


def compare_files(
    format_id: str, judge: str, folder: Path, models: list[Path], registry: Registry
) -> Iterator[tuple[str, Verdict]]:
    """Compare all files of a format, and all models after they are written to it; yield directions and verdicts."""
    form = FORMATS[format_id]
    for path in sorted(path for path in folder.rglob("*") if path.suffix.lower() in form.extensions):
        yield "in", show("in", path.name, path, judge, registry, format_id)
    with tempfile.TemporaryDirectory() as results:
        for model in models if form.judge == "slicer" else ():
            path = Path(results) / (model.stem + ".gcode")
            run_judge(["prusa-slicer", "--export-gcode", "-o", str(path), str(model)])
            if path.exists():
                yield "in", show("in", path.name, path, judge, registry, format_id)
        for model in models if form.is_written else ():
            path = Path(results) / (model.stem + form.extensions[0])
            try:
                registry.convert(model, path)
            except MeshhubError as error:
                print(f"out  {model.name[:44]:44} {error.message[:60]}")
                continue
            yield "out", show("out", model.name, path, judge, registry, format_id)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--format", choices=FORMATS, action="append")
    parser.add_argument("--judge", choices=JUDGES)
    arguments = parser.parse_args()
    registry = Registry()
    companions = (".mtl", ".png", ".jpg")
    models = sorted(path for path in (arguments.folder / "models").glob("*") if path.suffix.lower() not in companions)
    rows: list[tuple[str, str, str, str, Counter[Verdict]]] = []
    for format_id in arguments.format or FORMATS:
        judge = arguments.judge or FORMATS[format_id].judge
        if not is_installed(judge):
            print(f"{format_id}: {judge} is not installed")
            continue
        columns = "triangles, sorted size in mm, volume in mm³ (drawings: area), materials, scale, verdict"
        print(f"\n{format_id}, judge {judge}: {columns}")
        verdicts: dict[str, Counter[Verdict]] = {"in": Counter(), "out": Counter()}
        for direction, verdict in compare_files(format_id, judge, arguments.folder, models, registry):
            verdicts[direction][verdict] += 1
        distribution = f"meshhub-{FORMATS[format_id].distribution}"
        rows += [(distribution, format_id, way, judge, counts) for way, counts in verdicts.items() if counts]
    print("\n| distribution | format | direction | judge | files |", *(f"{verdict.value} |" for verdict in Verdict))
    print("|" + "---|" * (5 + len(Verdict)))
    for *names, counts in rows:
        print("|", *(f"{name} |" for name in names), f"{counts.total()} |", *(f"{counts[each]} |" for each in Verdict))
    return 1 if any(counts[Verdict.DIFFERENT] for *_, counts in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
