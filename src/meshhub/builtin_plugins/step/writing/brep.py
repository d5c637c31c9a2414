"""From regions, outlines and curves to STEP entities: points, edges, loops, faces, shells, solids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from meshhub.builtin_plugins.step.recognition.arrays import normalize
from meshhub.builtin_plugins.step.recognition.bodies import Bodies
from meshhub.builtin_plugins.step.recognition.outline import Outline, signed_areas
from meshhub.builtin_plugins.step.recognition.regions import Regions
from meshhub.builtin_plugins.step.recognition.skin import Skin
from meshhub.builtin_plugins.step.recognition.surfaces import SurfaceKind
from meshhub.builtin_plugins.step.writing.curves import Curve, Curves
from meshhub.builtin_plugins.step.writing.part21 import Part21, references
from meshhub.builtin_plugins.step.writing.seams import Ring, Seams
from meshhub.builtin_plugins.step.writing.splines import write_splines
from meshhub.toolkit.geometry import IntIndex


@dataclass(frozen=True, eq=False)
class Model:
    """All that is known of one skin when it is written."""

    skin: Skin
    regions: Regions
    outline: Outline
    curves: Curves
    seams: Seams
    bodies: Bodies


class Items(NamedTuple):
    """Ids of what was written: a face for each region, the solids, the surface models of open shells."""

    faces: IntIndex
    solids: list[int]
    sheets: list[int]


class _Edges(NamedTuple):
    """Ids: of the vertex of each corner (by point), and of each edge curve."""

    vertex: IntIndex
    curve: IntIndex


def write_model(file: Part21, model: Model) -> Items:
    """Write all shells of a skin."""
    edges = _write_edges(file, model)
    bounds = _write_bounds(file, model, edges)
    faces = _write_faces(file, model, bounds)
    return _write_shells(file, model, faces)


def _write_edges(file: Part21, model: Model) -> _Edges:
    outline, curves = model.outline, model.curves
    chain = outline.edge_chain
    start, stop = outline.start[chain], outline.stop[chain]
    used = np.zeros(len(model.skin.points), np.bool_)
    used[outline.start] = used[outline.stop] = True
    place = np.cumsum(used) - 1
    points = model.skin.points.copy()
    points[model.seams.corner] = model.seams.position
    count = int(used.sum())
    point = file.points(points[used]) + place
    vertex = file.many(count, "VERTEX_POINT('',#", point[used], ")") + place
    curve = np.empty(len(chain), np.int64)

    line = np.flatnonzero(curves.kind == Curve.LINE)
    number = np.arange(len(line))
    along = normalize(points[stop[line]] - points[start[line]])
    direction = file.directions(along) + number
    vector = file.many(len(line), "VECTOR('',#", direction, ",1.)") + number
    curve[line] = file.many(len(line), "LINE('',#", point[start[line]], ",#", vector, ")") + number

    ring = np.flatnonzero(curves.kind == Curve.CIRCLE)
    number = np.arange(len(ring))
    towards = normalize(points[start[ring]] - curves.centre[ring])
    axes = file.placements(curves.centre[ring], curves.axis[ring], towards)
    curve[ring] = file.many(len(ring), "CIRCLE('',#", axes, ",", file.lengths(curves.radius[ring]), ")") + number

    spline = curves.kind == Curve.SPLINE
    begin = np.append(curves.spline_begin[:-1][spline], curves.spline_begin[-1])
    curve[spline] = write_splines(file, curves.spline, begin)
    edge_curve = file.many(
        len(chain), "EDGE_CURVE('',#", vertex[start], ",#", vertex[stop], ",#", curve, ",.T.)"
    ) + np.arange(len(chain))
    return _Edges(vertex, edge_curve)


def _write_bounds(file: Part21, model: Model, edges: _Edges) -> IntIndex:
    """The ids of the face bounds, one for each loop."""
    outline, surfaces = model.outline, model.regions.surfaces
    chains, loops = len(outline.start), len(outline.loop_begin) - 1
    ids = edges.curve[outline.edge]
    oriented = np.empty(chains, np.int64)
    for mask, flag in ((outline.forward, "T"), (~outline.forward, "F")):
        count = int(mask.sum())
        oriented[mask] = file.many(count, "ORIENTED_EDGE('',*,*,#", ids[mask], f",.{flag}.)") + np.arange(count)
    plain = np.ones(loops, np.bool_)
    for ring in model.seams.rings:
        plain[[loop for loop in (ring.loop, ring.other) if loop >= 0]] = False
    count = int(plain.sum())
    listed = references(oriented, outline.loop_begin).filter(pa.array(plain))
    loop = np.zeros(loops, np.int64)
    loop[plain] = file.many(count, "EDGE_LOOP('',(", listed, "))") + np.arange(count)
    outer = signed_areas(model.skin, outline, surfaces.axis) > 0
    number = np.bincount(outline.loop_region, minlength=len(surfaces))
    curved = model.regions.curved[outline.loop_region]
    outer = np.where(curved, number[outline.loop_region] == 1, outer)
    several = np.bincount(outline.loop_region, outer, len(surfaces)) != 1
    outer &= ~several[outline.loop_region]
    bound = np.zeros(loops, np.int64)
    for mask, kind in ((outer & plain, "FACE_OUTER_BOUND"), (~outer & plain, "FACE_BOUND")):
        count = int(mask.sum())
        bound[mask] = file.many(count, f"{kind}('',#", loop[mask], ",.T.)") + np.arange(count)
    for ring in model.seams.rings:
        bound[ring.loop] = _write_slit(file, model, ring, oriented, edges)
    return bound


def _write_slit(file: Part21, model: Model, ring: Ring, oriented: IntIndex, edges: _Edges) -> int:
    """The one bound of a face between two rims, or a rim and a tip: slit open along its seam."""
    start, stop = ring.start, ring.stop
    rim, far_rim = _rim(model.outline, ring.loop, ring.corner), np.empty(0, np.intp)
    begin = int(edges.vertex[ring.corner])
    if ring.other >= 0:
        far_rim = _rim(model.outline, ring.other, ring.opposite)
        end = int(edges.vertex[ring.opposite])
    else:
        end = file.one(f"VERTEX_POINT('',#{file.point(stop)})")
    if ring.centre is None:
        along = normalize((stop - start)[None])[0]
        vector = file.one(f"VECTOR('',#{file.direction(along)},1.)")
        curve = file.one(f"LINE('',#{file.point(start)},#{vector})")
    else:
        towards = normalize((start - ring.centre)[None])[0]
        curve = file.circle(ring.centre, ring.axis, towards, ring.radius)
    seam = file.one(f"EDGE_CURVE('',#{begin},#{end},#{curve},.T.)")
    there, back = (file.one(f"ORIENTED_EDGE('',*,*,#{seam},.{flag}.)") for flag in "TF")
    listed = ",".join(f"#{edge}" for edge in (*oriented[rim], there, *oriented[far_rim], back))
    loop = file.one(f"EDGE_LOOP('',({listed}))")
    return file.one(f"FACE_OUTER_BOUND('',#{loop},.T.)")


def _rim(outline: Outline, loop: int, corner: int) -> IntIndex:
    """The chains of a loop, from a corner on."""
    chains = np.arange(outline.loop_begin[loop], outline.loop_begin[loop + 1])
    return np.roll(chains, -int(np.flatnonzero(outline.start[chains] == corner)[0]))


def _write_whole_bounds(file: Part21, model: Model) -> tuple[IntIndex, IntIndex]:
    """Bounds for whole spheres and tori, and for spheres with holes: the face, slit open along its seams."""
    seams = model.seams
    bare = np.bincount(model.outline.loop_region, minlength=len(seams.axis)) == 0
    bare[list(seams.slit)] = True
    bounds = [
        _write_slit_sphere(file, seams, face)
        if model.regions.surfaces.kind[face] == SurfaceKind.SPHERE
        else _write_slit_torus(file, seams, face)
        for face in np.flatnonzero(bare).tolist()
    ]
    return np.flatnonzero(bare), np.array(bounds, np.int64)


def _write_slit_sphere(file: Part21, seams: Seams, face: int) -> int:
    centre, axis, towards, radius = seams.origin[face], seams.axis[face], seams.reference[face], seams.radius[face]
    south, north = (file.one(f"VERTEX_POINT('',#{file.point(centre + side * radius * axis)})") for side in (-1, 1))
    meridian = file.circle(centre, np.cross(towards, axis), -axis, radius)
    edge = file.one(f"EDGE_CURVE('',#{south},#{north},#{meridian},.T.)")
    return file.bound([(edge, True), (edge, False)])


def _write_slit_torus(file: Part21, seams: Seams, face: int) -> int:
    centre, axis, towards = seams.origin[face], seams.axis[face], seams.reference[face]
    radius, second = seams.radius[face], seams.second[face]
    corner = file.one(f"VERTEX_POINT('',#{file.point(centre + (radius + second) * towards)})")
    around = file.circle(centre, axis, towards, radius + second)
    across = file.circle(centre + radius * towards, np.cross(towards, axis), towards, second)
    edges = [file.one(f"EDGE_CURVE('',#{corner},#{corner},#{curve},.T.)") for curve in (around, across)]
    return file.bound([(edges[0], True), (edges[1], True), (edges[0], False), (edges[1], False)])


def _write_faces(file: Part21, model: Model, bounds: IntIndex) -> IntIndex:
    outline, surfaces = model.outline, model.regions.surfaces
    count = len(surfaces)
    bare, whole = _write_whole_bounds(file, model)
    loop_region = np.concatenate([outline.loop_region, bare])
    bounds = np.concatenate([bounds, whole])
    # the second rim of a slit face is part of the first one's loop
    loop_region, bounds = loop_region[bounds > 0], bounds[bounds > 0]
    order = np.argsort(loop_region, kind="stable")
    begin = np.searchsorted(loop_region[order], np.arange(count + 1))
    listed = references(bounds[order], begin)
    surface = _write_surfaces(file, model)
    face = np.empty(count, np.int64)
    for mask, flag in ((model.regions.outward, "T"), (~model.regions.outward, "F")):
        number = int(mask.sum())
        chosen = listed.filter(pa.array(mask))
        face[mask] = file.many(number, "ADVANCED_FACE('',(", chosen, "),#", surface[mask], f",.{flag}.)") + np.arange(
            number
        )
    return face


def _write_surfaces(file: Part21, model: Model) -> IntIndex:
    surfaces, seams = model.regions.surfaces, model.seams
    made = np.empty(len(surfaces), np.int64)
    axes = file.placements(seams.origin, seams.axis, seams.reference)
    radius, second = file.lengths(seams.radius), file.lengths(seams.second)
    # a tube thicker than its ring meets itself: its outer side is a surface of its own name
    thick = (surfaces.kind == SurfaceKind.TORUS) & (surfaces.radius < surfaces.second)
    names = (
        (SurfaceKind.PLANE, "PLANE", ""),
        (SurfaceKind.CYLINDER, "CYLINDRICAL_SURFACE", ""),
        (SurfaceKind.SPHERE, "SPHERICAL_SURFACE", ""),
        (SurfaceKind.CONE, "CONICAL_SURFACE", ""),
        (SurfaceKind.TORUS, "TOROIDAL_SURFACE", ""),
        (SurfaceKind.TORUS, "DEGENERATE_TOROIDAL_SURFACE", ",.T."),
    )
    for kind, name, flag in names:
        mask = (surfaces.kind == kind) & (thick == bool(flag))
        count = int(mask.sum())
        columns = [axes[mask]]
        more = []
        if kind != SurfaceKind.PLANE:
            more += [",", radius.filter(pa.array(mask))]
        if kind in (SurfaceKind.CONE, SurfaceKind.TORUS):
            more += [",", second.filter(pa.array(mask))]
        made[mask] = file.many(count, f"{name}('',#", *columns, *more, f"{flag})") + np.arange(count)
    return made


def _write_shells(file: Part21, model: Model, faces: IntIndex) -> Items:
    skin, bodies = model.skin, model.bodies
    shell = np.empty(len(faces), np.intp)
    shell[model.regions.region] = skin.shell
    order = np.argsort(shell, kind="stable")
    count = len(skin.closed)
    begin = np.searchsorted(shell[order], np.arange(count + 1))
    listed = references(faces[order], begin).to_pylist()
    solids: list[int] = []
    for outer, cavities in bodies.solids:
        whole = file.one(f"CLOSED_SHELL('',({listed[outer]}))")
        if not cavities:
            solids.append(file.one(f"MANIFOLD_SOLID_BREP('',#{whole})"))
            continue
        voids = []
        for cavity in cavities:
            inner = file.one(f"CLOSED_SHELL('',({listed[cavity]}))")
            voids.append(file.one(f"ORIENTED_CLOSED_SHELL('',*,#{inner},.T.)"))
        text = ",".join(f"#{void}" for void in voids)
        solids.append(file.one(f"BREP_WITH_VOIDS('',#{whole},({text}))"))
    sheets: list[int] = []
    if bodies.sheets:
        opened = [file.one(f"OPEN_SHELL('',({listed[sheet]}))") for sheet in bodies.sheets]
        text = ",".join(f"#{sheet}" for sheet in opened)
        sheets.append(file.one(f"SHELL_BASED_SURFACE_MODEL('',({text}))"))
    return Items(faces, solids, sheets)
