"""From regions and outlines to STEP entities: points, edges, loops, faces, shells, solids."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meshhub.builtin_plugins.step.bodies import Bodies
from meshhub.builtin_plugins.step.outline import Outline, signed_areas
from meshhub.builtin_plugins.step.part21 import UNIT_DIGITS, Part21, references
from meshhub.builtin_plugins.step.planar import Planes
from meshhub.builtin_plugins.step.skin import Skin, normalised
from meshhub.geometry import IntIndex
from meshhub.scene import Float64


class Items(NamedTuple):
    """Ids of what was written: a face for each region, the solids, the surface models of open shells."""

    faces: IntIndex
    solids: list[int]
    sheets: list[int]


class _Edges(NamedTuple):
    """First ids: vertices of the corners (by `corner`), edge curves, directions of the lines."""

    corner: IntIndex
    point: int
    vertex: int
    curve: int
    direction: Float64


def write_skin(
    file: Part21, skin: Skin, region: IntIndex, planes: Planes, outline: Outline, bodies: Bodies
) -> Items:
    """Write all shells of a skin."""
    edges = _write_edges(file, skin, outline)
    bounds = _write_bounds(file, skin, outline, planes, edges)
    faces = _write_faces(file, skin, outline, planes, bounds)
    return _write_shells(file, skin, region, faces, bodies)


def _write_edges(file: Part21, skin: Skin, outline: Outline) -> _Edges:
    chain = outline.edge_chain
    start, stop = outline.start[chain], outline.stop[chain]
    used = np.zeros(len(skin.points), np.bool_)
    used[outline.start] = used[outline.stop] = True
    corner = np.cumsum(used) - 1
    count = int(used.sum())
    point = file.vectors("CARTESIAN_POINT", skin.points[used])
    vertex = file.many(count, "VERTEX_POINT('',#", point + np.arange(count), ")")
    along = normalised(skin.points[stop] - skin.points[start])
    size = len(chain)
    direction = file.vectors("DIRECTION", along, UNIT_DIGITS)
    vector = file.many(size, "VECTOR('',#", direction + np.arange(size), ",1.)")
    line = file.many(size, "LINE('',#", point + corner[start], ",#", vector + np.arange(size), ")")
    curve = file.many(
        size,
        "EDGE_CURVE('',#", vertex + corner[start], ",#", vertex + corner[stop], ",#", line + np.arange(size), ",.T.)",
    )  # fmt: skip
    return _Edges(corner, point, vertex, curve, along)


def _write_bounds(file: Part21, skin: Skin, outline: Outline, planes: Planes, edges: _Edges) -> IntIndex:
    """The ids of the face bounds, one for each loop."""
    chains, loops = len(outline.start), len(outline.loop_begin) - 1
    ids = edges.curve + outline.edge
    first = file.last + 1
    oriented = np.empty(chains, np.int64)
    for mask, flag in ((outline.forward, "T"), (~outline.forward, "F")):
        count = int(mask.sum())
        oriented[mask] = file.many(count, "ORIENTED_EDGE('',*,*,#", ids[mask], f",.{flag}.)") + np.arange(count)
    assert file.last == first + chains - 1
    loop = file.many(loops, "EDGE_LOOP('',(", references(oriented, outline.loop_begin), "))") + np.arange(loops)
    area = signed_areas(skin, outline, planes.normal)
    outer = area > 0
    several = np.bincount(outline.loop_region, outer, len(planes.normal)) != 1
    outer &= ~several[outline.loop_region]
    bound = np.empty(loops, np.int64)
    for mask, kind in ((outer, "FACE_OUTER_BOUND"), (~outer, "FACE_BOUND")):
        count = int(mask.sum())
        bound[mask] = file.many(count, f"{kind}('',#", loop[mask], ",.T.)") + np.arange(count)
    return bound


def _write_faces(file: Part21, skin: Skin, outline: Outline, planes: Planes, bounds: IntIndex) -> IntIndex:
    count = len(planes.normal)
    loop_region = outline.loop_region
    order = np.argsort(loop_region, kind="stable")
    begin = np.searchsorted(loop_region[order], np.arange(count + 1))
    first = outline.loop_begin[order[begin[:-1]]]
    across = skin.points[outline.stop[first]] - skin.points[outline.start[first]]
    across -= planes.normal * np.einsum("ij,ij->i", across, planes.normal)[:, None]
    number = np.arange(count)
    at = file.vectors("CARTESIAN_POINT", planes.centre)
    normal = file.vectors("DIRECTION", planes.normal, UNIT_DIGITS)
    reference = file.vectors("DIRECTION", normalised(across), UNIT_DIGITS)
    axes = file.many(
        count, "AXIS2_PLACEMENT_3D('',#", at + number, ",#", normal + number, ",#", reference + number, ")"
    )
    plane = file.many(count, "PLANE('',#", axes + number, ")")
    listed = references(bounds[order], begin)
    face: IntIndex = file.many(count, "ADVANCED_FACE('',(", listed, "),#", plane + number, ",.T.)") + number
    return face


def _write_shells(file: Part21, skin: Skin, region: IntIndex, faces: IntIndex, bodies: Bodies) -> Items:
    shell = np.empty(len(faces), np.intp)
    shell[region] = skin.shell
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


def extent_of(points: Float64) -> float:
    """The largest |coordinate|."""
    return float(np.abs(points).max(initial=0.0))
