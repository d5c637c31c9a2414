"""Writers of editable source: prismatic parts as scripts for build123d and OpenSCAD, verified before."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from meshhub import ConversionFailed, Scene, Target, did
from meshhub.model.scene import Float64, Int32
from meshhub.toolkit.distances import SurfaceDistance
from meshhub.toolkit.geometry import soup
from meshhub.toolkit.opencascade import explore
from meshhub_cad import Build123dOptions, ScadOptions
from meshhub_cad.kernel_files import find_surfaces, list_bodies, use_kernel_to_write
from meshhub_cad.prisms import Circle, Layer, Loop, Point, Prism, arc_of, find_prism
from meshhub_cad.tessellation import tessellate

_MAX_BODIES_COUNT = 50
"""Bodies of a script; more are an assembly, which nobody edits as one."""

_MAX_VOLUME_RATIO = 2e-3
"""Share of the volume by which the rebuilt part may differ from the surfaces that were found."""

_MAX_DISTANCE_RATIO = 1e-3
"""Distance between the rebuilt part and the mesh, as a share of the diagonal; facets may be farther from their arcs."""

_NEAREST_SAMPLES = 128
"""Samples whose faces are measured; at the rim of a hole, a fan of narrow faces has many samples at one place."""

_SAMPLE_RATIO = 0.01
"""Spacing of the samples of a surface, as a share of the diagonal."""


def write_build123d(scene: Scene, target: Target, options: Build123dOptions) -> None:
    """Write a Python script for build123d. Where build123d is installed, its result is compared with the mesh.

    Raises:
        ConversionFailed: A body is not a stack of profiles, or the rebuilt part differs from the mesh.
    """
    bodies, prisms = _find_prisms(scene, options.build123d_surfaces, options.build123d_tolerance_mm, "build123d")
    text = print_build123d(prisms)
    with use_kernel_to_write("build123d"):
        is_run = importlib.util.find_spec("build123d") is not None
        shape = _run_build123d(text) if is_run else rebuild(prisms)
        _verify(scene, bodies, shape, "build123d")
    did(script_run=is_run)
    with target.open() as file:
        file.write(text.encode())


def write_scad(scene: Scene, target: Target, options: ScadOptions) -> None:
    """Write a script for OpenSCAD; the same profiles, rebuilt by OpenCASCADE, are compared with the mesh.

    Raises:
        ConversionFailed: As `write_build123d`.
    """
    bodies, prisms = _find_prisms(scene, options.scad_surfaces, options.scad_tolerance_mm, "scad")
    with use_kernel_to_write("OpenSCAD"):
        _verify(scene, bodies, rebuild(prisms), "scad")
    with target.open() as file:
        file.write(print_scad(prisms).encode())


def _find_prisms(scene: Scene, surfaces: Any, tolerance_mm: float | None, prefix: str) -> tuple[list[Any], list[Prism]]:
    """Return the solids of a scene, and each as layers."""
    step = find_surfaces(scene, surfaces, tolerance_mm, "the script", prefix)
    with use_kernel_to_write("a script"):
        from OCP.TopAbs import TopAbs_SOLID

        placed = list_bodies(step)
        solids = [(solid, name) for shape, name in placed for solid in explore(shape, TopAbs_SOLID)]
        if not solids:
            raise ConversionFailed(
                "the model has no closed body, and a script describes solids; use '{repair}', or choose STEP",
                error_code="not_prismatic",
                options=("repair",),
            )
        if len(solids) > _MAX_BODIES_COUNT:
            raise ConversionFailed(
                f"the model has {len(solids)} bodies, and a script describes at most {_MAX_BODIES_COUNT}; choose STEP",
                error_code="not_prismatic",
            )
        prisms = [find_prism(solid, name) for solid, name in solids]
    did(
        bodies=len(prisms),
        extrusions=sum(len(prism.layers) for prism in prisms),
        holes=sum(len(prism.holes) for prism in prisms),
    )
    return [solid for solid, _ in solids], prisms


def _run_build123d(text: str) -> Any:
    """Run a script of build123d, and return its part."""
    names: dict[str, Any] = {"__name__": "part"}
    # the text has only numbers of this module
    exec(compile(text, "part.py", "exec"), names)  # noqa: S102
    return names["part"].wrapped


def _verify(scene: Scene, solids: Sequence[Any], rebuilt: Any, prefix: str) -> None:
    """Compare a rebuilt part with the surfaces and the mesh; report the figures.

    Raises:
        ConversionFailed: The volume or the surface differs.
    """
    expected = sum(_measure_volume(solid) for solid in solids)
    volume = _measure_volume(rebuilt)
    vertices, faces = soup(scene)
    diagonal = float(np.linalg.norm(np.ptp(vertices, axis=0)))
    result = tessellate(rebuilt, 1e-3, math.radians(5), "script")
    if result is None:
        raise _describe_difference("it has no faces", prefix)
    there = _measure_distance(vertices, faces, result.vertices, result.faces, diagonal)
    back = _measure_distance(result.vertices, result.faces, vertices, faces, diagonal)
    distance = max(there, back)
    did(rebuilt_volume_mm3=round(volume, 3), distance_mm=round(distance, 4))
    if abs(volume - expected) > _MAX_VOLUME_RATIO * abs(expected):
        raise _describe_difference(f"its volume is {volume:.6g} instead of {expected:.6g} mm³", prefix)
    is_close = distance <= _MAX_DISTANCE_RATIO * diagonal
    if not is_close and distance > 2 * _find_chord_error(solids, vertices, faces, diagonal):
        raise _describe_difference(f"it is up to {distance:.3g} mm from the mesh", prefix)


def _describe_difference(what: str, prefix: str) -> ConversionFailed:
    return ConversionFailed(
        f"the part cannot be rebuilt as a stack of profiles: {what}; choose STEP, "
        f"or set '{{{prefix}_surfaces=planar}}'",
        error_code="not_prismatic",
        options=(f"{prefix}_surfaces",),
    )


def _find_chord_error(solids: Sequence[Any], vertices: Float64, faces: Int32, diagonal: float) -> float:
    """Return how far the mesh is from the surfaces that were found for it, because its facets are chords of them."""
    errors = [0.0]
    for solid in solids:
        exact = tessellate(solid, 1e-3, math.radians(5), "script")
        if exact is not None:
            errors.append(_measure_distance(exact.vertices, exact.faces, vertices, faces, diagonal))
    return max(errors)


def _measure_distance(
    vertices: Float64, faces: Int32, other_vertices: Float64, other_faces: Int32, diagonal: float
) -> float:
    """Return the largest distance of samples of a surface from another one."""
    spacing = _SAMPLE_RATIO * diagonal
    samples = SurfaceDistance(vertices, faces, spacing)
    points = np.concatenate([vertices[np.unique(faces)], samples.corners.mean(axis=1)])
    return float(SurfaceDistance(other_vertices, other_faces, spacing).measure(points, _NEAREST_SAMPLES).max())


def _measure_volume(shape: Any) -> float:
    from OCP.BRepGProp import BRepGProp
    from OCP.GProp import GProp_GProps

    properties = GProp_GProps()
    BRepGProp.VolumeProperties_s(shape, properties)
    return float(properties.Mass())


def rebuild(prisms: Sequence[Prism]) -> Any:
    """Return the part of layers and holes, built by OpenCASCADE."""
    from OCP.BRepAlgoAPI import BRepAlgoAPI_Cut, BRepAlgoAPI_Fuse

    part: Any = None
    for prism in prisms:
        body: Any = None
        for layer in prism.layers:
            for outer in layer.outer:
                solid = _extrude(outer, prism, layer.low, layer.high)
                body = solid if body is None else BRepAlgoAPI_Fuse(body, solid).Shape()
            for inner in layer.inner:
                body = BRepAlgoAPI_Cut(body, _extrude(inner, prism, layer.low, layer.high)).Shape()
        for hole in prism.holes:
            body = BRepAlgoAPI_Cut(body, _extrude(hole.circle, prism, hole.low, hole.high)).Shape()
        part = body if part is None else BRepAlgoAPI_Fuse(part, body).Shape()
    return part


def _extrude(loop: Loop, prism: Prism, low: float, high: float) -> Any:
    from OCP.BRepBuilderAPI import BRepBuilderAPI_MakeEdge, BRepBuilderAPI_MakeFace, BRepBuilderAPI_MakeWire
    from OCP.BRepPrimAPI import BRepPrimAPI_MakePrism
    from OCP.GC import GC_MakeArcOfCircle
    from OCP.gp import gp_Ax2, gp_Circ, gp_Dir, gp_Pnt, gp_Vec

    axis, across = np.array(prism.axis), np.array(prism.across)
    up = np.cross(axis, across)

    def place(point: Point) -> Any:
        return gp_Pnt(*(across * point[0] + up * point[1] + axis * low).tolist())

    wire = BRepBuilderAPI_MakeWire()
    if isinstance(loop, Circle):
        circle = gp_Circ(gp_Ax2(place(loop.center), gp_Dir(*axis.tolist())), loop.radius)
        wire.Add(BRepBuilderAPI_MakeEdge(circle).Edge())
    else:
        start = loop.start
        for edge in loop.edges:
            if edge.middle is None:
                wire.Add(BRepBuilderAPI_MakeEdge(place(start), place(edge.end)).Edge())
            else:
                arc = GC_MakeArcOfCircle(place(start), place(edge.middle), place(edge.end)).Value()
                wire.Add(BRepBuilderAPI_MakeEdge(arc).Edge())
            start = edge.end
    face = BRepBuilderAPI_MakeFace(wire.Wire()).Face()
    return BRepPrimAPI_MakePrism(face, gp_Vec(*(axis * (high - low)).tolist())).Shape()


def print_build123d(prisms: Sequence[Prism]) -> str:
    """Return the text of a script for build123d."""
    lines = [
        '"""Part in millimeters, written by meshhub from a mesh: profiles, extrusions and holes."""',
        "",
        "from build123d import Align, Circle, Cylinder, Line, Plane, Pos, ThreePointArc, Wire, extrude, make_face",
        "",
        "",
        "def outline(start, *edges):",
        '    """Return the area of lines to points, and of arcs through a middle to an end."""',
        "    curves = []",
        "    for edge in edges:",
        "        if isinstance(edge[0], tuple):",
        "            curves.append(ThreePointArc(start, *edge))",
        "            start = edge[1]",
        "        else:",
        "            curves.append(Line(start, edge))",
        "            start = edge",
        "    return make_face(Wire(curves))",
        "",
        "",
        "def disk(x, y, diameter):",
        '    """Return a round area."""',
        "    return Pos(x, y) * Circle(diameter / 2)",
        "",
        "",
        "def hole(plane, x, y, diameter, low, high):",
        '    """Return a round hole between two heights."""',
        "    size = Cylinder(diameter / 2, high - low, align=(Align.CENTER, Align.CENTER, Align.MIN))",
        "    return plane.offset(low) * Pos(x, y) * size",
        "",
    ]
    for number, prism in enumerate(prisms, 1):
        body, plane = f"body_{number}", f"plane_{number}"
        lines += ["", f"{plane} = Plane(origin=(0, 0, 0), x_dir={_list(prism.across)}, z_dir={_list(prism.axis)})"]
        for index, layer in enumerate(prism.layers, 1):
            profile = f"profile_{number}_{index}"
            areas = [f"{profile} {sign}= {_print_area(loop)}" for sign, loop in _list_areas(layer)]
            areas[0] = areas[0].replace(" += ", " = ", 1)
            lines += areas
            height = f"{plane}.offset({_show(layer.low)}) * {profile}, {_show(layer.high - layer.low)}"
            lines.append(f"{body} {'=' if index == 1 else '+='} extrude({height})")
        lines += [
            f"{body} -= hole({plane}, {_print_circle(hole.circle)}, {_show(hole.low)}, {_show(hole.high)})"
            for hole in prism.holes
        ]
    lines += ["", "part = " + " + ".join(f"body_{number}" for number in range(1, len(prisms) + 1))]
    lines += [
        "",
        'if __name__ == "__main__":',
        "    from build123d import export_step",
        "",
        '    export_step(part, "part.step")',
        "",
    ]
    return "\n".join(lines)


def _list_areas(layer: Layer) -> list[tuple[str, Loop]]:
    return [*(("+", loop) for loop in layer.outer), *(("-", loop) for loop in layer.inner)]


def _print_area(loop: Loop) -> str:
    if isinstance(loop, Circle):
        return f"disk({_print_circle(loop)})"
    edges = [
        _list(edge.end) if edge.middle is None else f"({_list(edge.middle)}, {_list(edge.end)})" for edge in loop.edges
    ]
    return f"outline({', '.join([_list(loop.start), *edges])})"


def print_scad(prisms: Sequence[Prism]) -> str:
    """Return the text of a script for OpenSCAD."""
    lines = [
        "// Part in millimeters, written by meshhub from a mesh: profiles, extrusions and holes.",
        "",
        "// largest distance of a straight edge from its arc",
        "resolution = 0.01;",
        "",
        "function pieces(r, angle) = max(3, ceil(abs(angle) / (2 * acos(1 - min(0.5, resolution / r)))));",
        "// points of an arc without its last one; angles in degrees",
        "function arc(x, y, r, from, angle) =",
        "    let (n = pieces(r, angle), step = angle / n)",
        "    [for (i = [0 : n - 1]) [x + r * cos(from + step * i), y + r * sin(from + step * i)]];",
        "module disk(x, y, d) { translate([x, y]) circle(d = d, $fn = pieces(d / 2, 360)); }",
        "module layer(low, high) { translate([0, 0, low]) linear_extrude(height = high - low) children(); }",
        "module hole(x, y, d, low, high) { layer(low, high) disk(x, y, d); }",
        "",
    ]
    for prism in prisms:
        axis, across = np.array(prism.axis), np.array(prism.across)
        columns = np.stack([across, np.cross(axis, across), axis], axis=1)
        matrix = ", ".join("[" + ", ".join(_show(value) for value in [*row, 0.0]) + "]" for row in columns.tolist())
        lines += [f"multmatrix([{matrix}, [0, 0, 0, 1]])", "difference() {", "  union() {"]
        for layer in prism.layers:
            lines.append(f"    layer({_show(layer.low)}, {_show(layer.high)}) difference() {{")
            lines.append("      union() {")
            lines += [f"        {_print_polygon(loop)}" for loop in layer.outer]
            lines.append("      }")
            lines += [f"      {_print_polygon(loop)}" for loop in layer.inner]
            lines.append("    }")
        lines.append("  }")
        lines += [
            f"  hole({_print_circle(hole.circle)}, {_show(hole.low)}, {_show(hole.high)});" for hole in prism.holes
        ]
        lines += ["}", ""]
    return "\n".join(lines)


def _print_polygon(loop: Loop) -> str:
    if isinstance(loop, Circle):
        return f"disk({_print_circle(loop)});"
    parts = []
    start = loop.start
    for edge in loop.edges:
        if edge.middle is None:
            parts.append(f"[[{_show(start[0])}, {_show(start[1])}]]")
        else:
            circle, first, sweep = arc_of(start, edge)
            (x, y), degrees = circle.center, (math.degrees(first), math.degrees(sweep))
            parts.append(f"arc({', '.join(_show(value) for value in (x, y, circle.radius, *degrees))})")
        start = edge.end
    return f"polygon(concat({', '.join(parts)}));"


def _print_circle(circle: Circle) -> str:
    return f"{_show(circle.center[0])}, {_show(circle.center[1])}, {_show(2 * circle.radius)}"


def _list(values: Sequence[float]) -> str:
    return "(" + ", ".join(_show(value) for value in values) + ")"


def _show(value: float) -> str:
    text = f"{value:.6f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
