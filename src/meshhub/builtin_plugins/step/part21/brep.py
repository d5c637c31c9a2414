"""Boundary representation of a skin as STEP entities: points, edges, loops, faces, shells, solids (ISO 10303-42)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from meshhub.builtin_plugins.step.facets.outline import Outline, signed_areas
from meshhub.builtin_plugins.step.part21.face_order import order_faces
from meshhub.builtin_plugins.step.part21.part21 import Part21Writer, format_reference_lists, format_references
from meshhub.builtin_plugins.step.part21.patch_surfaces import write_patch_seam, write_patches
from meshhub.builtin_plugins.step.part21.splines import write_splines
from meshhub.builtin_plugins.step.solids.curves import CurveKind
from meshhub.builtin_plugins.step.solids.model import BrepModel
from meshhub.builtin_plugins.step.solids.seams import Seams, SlitFace
from meshhub.builtin_plugins.step.surfaces import traits
from meshhub.builtin_plugins.step.surfaces.arrays import normalize
from meshhub.builtin_plugins.step.surfaces.kinds import ANALYTIC_KINDS, KINDS
from meshhub.builtin_plugins.step.surfaces.surface_array import SurfaceKind
from meshhub.toolkit.geometry import IntIndex


class WrittenIds(NamedTuple):
    """Ids: (r,) of the face of each region, of the solids, of the surface models of open shells."""

    faces: IntIndex
    solids: list[int]
    sheets: list[int]


class _EdgeIds(NamedTuple):
    """Ids: (p,) of the vertex at each point, meaningless where there is none, and (e,) of each edge curve."""

    vertex: IntIndex
    curve: IntIndex


def write_model(file: Part21Writer, model: BrepModel) -> WrittenIds:
    """Write all shells of a model."""
    edges = _write_edges(file, model)
    bounds = _write_bounds(file, model, edges)
    faces = _write_faces(file, model, bounds)
    return _write_shells(file, model, faces)


def _write_edges(file: Part21Writer, model: BrepModel) -> _EdgeIds:
    outline, curves = model.outline, model.curves
    chain = outline.edge_chain
    start, stop = outline.start[chain], outline.stop[chain]
    used = np.zeros(len(model.skin.points), np.bool_)
    used[outline.start] = used[outline.stop] = True
    points = model.skin.points.copy()
    points[model.seams.corner] = model.seams.position
    point, vertex = (np.zeros(len(points), np.int64) for _ in range(2))
    point[used] = file.write_points(points[used])
    vertex[used] = file.write_entities(int(used.sum()), "VERTEX_POINT('',#", point[used], ")")
    curve = np.empty(len(chain), np.int64)

    line = np.flatnonzero(curves.kind == CurveKind.LINE)
    direction = file.write_directions(normalize(points[stop[line]] - points[start[line]]))
    vector = file.write_entities(len(line), "VECTOR('',#", direction, ",1.)")
    curve[line] = file.write_entities(len(line), "LINE('',#", point[start[line]], ",#", vector, ")")

    circle = np.flatnonzero(curves.kind == CurveKind.CIRCLE)
    to_start = normalize(points[start[circle]] - curves.center[circle])
    placement = file.write_placements(curves.center[circle], curves.axis[circle], to_start)
    radius = file.format_lengths(curves.radius[circle])
    curve[circle] = file.write_entities(len(circle), "CIRCLE('',#", placement, ",", radius, ")")

    spline = curves.kind == CurveKind.SPLINE
    begin = np.append(curves.spline_begin[:-1][spline], curves.spline_begin[-1])
    curve[spline] = write_splines(file, curves.spline, begin)
    edge_curve = file.write_entities(
        len(chain), "EDGE_CURVE('',#", vertex[start], ",#", vertex[stop], ",#", curve, ",.T.)"
    )
    return _EdgeIds(vertex, edge_curve)


def _write_bounds(file: Part21Writer, model: BrepModel, edges: _EdgeIds) -> IntIndex:
    """Return the id (l,) of the face bound of each loop; 0 for a loop that is part of another bound."""
    outline = model.outline
    loop_count = len(outline.loop_begin) - 1
    ids = edges.curve[outline.edge]
    oriented = np.empty(len(outline.start), np.int64)
    for mask, flag in ((outline.forward, "T"), (~outline.forward, "F")):
        oriented[mask] = file.write_entities(int(mask.sum()), "ORIENTED_EDGE('',*,*,#", ids[mask], f",.{flag}.)")
    plain = np.ones(loop_count, np.bool_)
    for face in model.seams.slit_faces:
        plain[[loop for loop in (face.loop, face.far_loop) if loop >= 0]] = False
    lists = format_reference_lists(oriented, outline.loop_begin).filter(pa.array(plain))
    loop = np.zeros(loop_count, np.int64)
    loop[plain] = file.write_entities(int(plain.sum()), "EDGE_LOOP('',(", lists, "))")
    outer = _find_outer_loops(model)
    bound = np.zeros(loop_count, np.int64)
    for mask, kind in ((outer & plain, "FACE_OUTER_BOUND"), (~outer & plain, "FACE_BOUND")):
        bound[mask] = file.write_entities(int(mask.sum()), f"{kind}('',#", loop[mask], ",.T.)")
    for face in model.seams.slit_faces:
        bound[face.loop] = _write_slit_face(file, model, face, oriented, edges)
    return bound


def _find_outer_loops(model: BrepModel) -> np.ndarray:
    """Return the mask (l,) of the loops that are the outer bound of their face.

    That is the counter-clockwise loop of a flat face, and the only loop of a curved face. A face has at most one
    FACE_OUTER_BOUND (ISO 10303-42).
    """
    outline, surfaces = model.outline, model.regions.surfaces
    is_outer = signed_areas(model.skin, outline, surfaces.axis) > 0
    count = np.bincount(outline.loop_region, minlength=len(surfaces))
    is_curved = model.regions.curved[outline.loop_region]
    is_outer = np.where(is_curved, count[outline.loop_region] == 1, is_outer)
    is_unique = np.bincount(outline.loop_region, is_outer, len(surfaces)) == 1
    outer: np.ndarray = is_outer & is_unique[outline.loop_region]
    return outer


def _write_slit_face(file: Part21Writer, model: BrepModel, face: SlitFace, oriented: IntIndex, edges: _EdgeIds) -> int:
    """Write the only bound of a face between two rims, or a rim and a tip.

    The bound runs along the first rim, the seam, the second rim, and back along the seam.
    """
    rim, far_rim = _rotate_rim(model.outline, face.loop, face.corner), np.empty(0, np.intp)
    begin = int(edges.vertex[face.corner])
    if face.far_loop >= 0:
        far_rim = _rotate_rim(model.outline, face.far_loop, face.far_corner)
        end = int(edges.vertex[face.far_corner])
    else:
        end = _write_vertex(file, face.stop)
    surfaces = model.regions.surfaces
    if traits.IS_PATCH[surfaces.kind[face.region]]:
        curve = write_patch_seam(file, surfaces.patch[face.region], face.start)
    elif face.circle is None:
        direction = normalize((face.stop - face.start)[None])[0]
        vector = file.write_entity(f"VECTOR('',#{file.write_direction(direction)},1.)")
        curve = file.write_entity(f"LINE('',#{file.write_point(face.start)},#{vector})")
    else:
        center, axis, radius = face.circle
        curve = file.write_circle(center, axis, normalize((face.start - center)[None])[0], radius)
    seam = file.write_edge(begin, end, curve)
    there, back = file.write_oriented_edge(seam, forward=True), file.write_oriented_edge(seam, forward=False)
    return file.write_outer_bound([*oriented[rim], there, *oriented[far_rim], back])


def _rotate_rim(outline: Outline, loop: int, corner: int) -> IntIndex:
    """Return the chains of a loop, beginning at a corner."""
    chains = np.arange(outline.loop_begin[loop], outline.loop_begin[loop + 1])
    return np.roll(chains, -int(np.flatnonzero(outline.start[chains] == corner)[0]))


def _write_vertex(file: Part21Writer, position: np.ndarray) -> int:
    return file.write_entity(f"VERTEX_POINT('',#{file.write_point(position)})")


def _write_closed_bounds(file: Part21Writer, model: BrepModel) -> tuple[IntIndex, IntIndex]:
    """Write bounds of whole spheres and tori, and of spheres with holes, along their seams.

    Returns:
        Regions of these faces, and the ids of their bounds.
    """
    seams = model.seams
    needs_bound = np.bincount(model.outline.loop_region, minlength=len(seams.axis)) == 0
    needs_bound[list(seams.slit_spheres)] = True
    bounds = [
        _write_sphere_bound(file, seams, region)
        if traits.HAS_FREE_AXIS[model.regions.surfaces.kind[region]]
        else _write_torus_bound(file, seams, region)
        for region in np.flatnonzero(needs_bound).tolist()
    ]
    return np.flatnonzero(needs_bound), np.array(bounds, np.int64)


def _write_sphere_bound(file: Part21Writer, seams: Seams, region: int) -> int:
    """Write a bound from pole to pole and back along one meridian."""
    center, axis, radius = seams.origin[region], seams.axis[region], seams.radius[region]
    south, north = (_write_vertex(file, center + side * radius * axis) for side in (-1, 1))
    meridian = file.write_circle(center, np.cross(seams.reference[region], axis), -axis, radius)
    edge = file.write_edge(south, north, meridian)
    oriented = [file.write_oriented_edge(edge, forward=forward) for forward in (True, False)]
    return file.write_outer_bound(oriented)


def _write_torus_bound(file: Part21Writer, seams: Seams, region: int) -> int:
    """Write a bound along the outer circle about the axis and a circle of the tube, and back."""
    center, axis, x_axis = seams.origin[region], seams.axis[region], seams.reference[region]
    radius, tube_radius = seams.radius[region], seams.second[region]
    corner = _write_vertex(file, center + (radius + tube_radius) * x_axis)
    around = file.write_circle(center, axis, x_axis, radius + tube_radius)
    across = file.write_circle(center + radius * x_axis, np.cross(x_axis, axis), x_axis, tube_radius)
    edges = [file.write_edge(corner, corner, curve) for curve in (around, across)]
    oriented = [file.write_oriented_edge(edge, forward=forward) for forward in (True, False) for edge in edges]
    return file.write_outer_bound(oriented)


def _write_faces(file: Part21Writer, model: BrepModel, bounds: IntIndex) -> IntIndex:
    """Write a face for each region and return their ids (r,)."""
    outline = model.outline
    count = len(model.regions.surfaces)
    closed_regions, closed_bounds = _write_closed_bounds(file, model)
    owner = np.concatenate([outline.loop_region, closed_regions])
    bounds = np.concatenate([bounds, closed_bounds])
    # the second rim of a slit face is part of the bound of the first
    owner, bounds = owner[bounds > 0], bounds[bounds > 0]
    order = np.argsort(owner, kind="stable")
    begin = np.searchsorted(owner[order], np.arange(count + 1))
    lists = format_reference_lists(bounds[order], begin)
    surface = _write_surfaces(file, model)
    face = np.empty(count, np.int64)
    for mask, flag in ((model.regions.outward, "T"), (~model.regions.outward, "F")):
        selected = lists.filter(pa.array(mask))
        face[mask] = file.write_entities(
            int(mask.sum()), "ADVANCED_FACE('',(", selected, "),#", surface[mask], f",.{flag}.)"
        )
    return face


def _write_surfaces(file: Part21Writer, model: BrepModel) -> IntIndex:
    """Write the surface of each region and return their ids (r,)."""
    surfaces, seams = model.regions.surfaces, model.seams
    ids = np.empty(len(surfaces), np.int64)
    patches, patch_ids = write_patches(file, surfaces)
    ids[patches] = patch_ids
    placed = ~traits.IS_PATCH[surfaces.kind]
    placement = np.zeros(len(surfaces), np.int64)
    placement[placed] = file.write_placements(seams.origin[placed], seams.axis[placed], seams.reference[placed])
    radius, second = file.format_lengths(seams.radius), file.format_lengths(seams.second)
    # a tube thicker than its ring intersects itself; ISO 10303-42 has an entity for its outer part
    is_degenerate = traits.HAS_TUBE[surfaces.kind] & (surfaces.radius < surfaces.second)
    entities = [(kind, KINDS[kind].entity, "") for kind in KINDS if kind in ANALYTIC_KINDS]
    for kind, name, flag in [*entities, (SurfaceKind.TORUS, "DEGENERATE_TOROIDAL_SURFACE", ",.T.")]:
        mask = (surfaces.kind == kind) & (is_degenerate == bool(flag))
        parameters = []
        for values in (radius, second)[: KINDS[kind].lengths]:
            parameters += [",", values.filter(pa.array(mask))]
        ids[mask] = file.write_entities(int(mask.sum()), f"{name}('',#", placement[mask], *parameters, f"{flag})")
    return ids


def _write_shells(file: Part21Writer, model: BrepModel, faces: IntIndex) -> WrittenIds:
    skin, bodies = model.skin, model.bodies
    order, begin = order_faces(skin, model.regions)
    face_lists = format_reference_lists(faces[order], begin).to_pylist()
    write = file.write_entity
    solids: list[int] = []
    for outer, cavities in bodies.solids:
        outer_shell = write(f"CLOSED_SHELL('',({face_lists[outer]}))")
        if not cavities:
            solids.append(write(f"MANIFOLD_SOLID_BREP('',#{outer_shell})"))
            continue
        voids = []
        for cavity in cavities:
            inner_shell = write(f"CLOSED_SHELL('',({face_lists[cavity]}))")
            voids.append(write(f"ORIENTED_CLOSED_SHELL('',*,#{inner_shell},.T.)"))
        solids.append(write(f"BREP_WITH_VOIDS('',#{outer_shell},({format_references(voids)}))"))
    sheets: list[int] = []
    if bodies.sheets:
        open_shells = [write(f"OPEN_SHELL('',({face_lists[sheet]}))") for sheet in bodies.sheets]
        sheets.append(write(f"SHELL_BASED_SURFACE_MODEL('',({format_references(open_shells)}))"))
    return WrittenIds(faces, solids, sheets)
