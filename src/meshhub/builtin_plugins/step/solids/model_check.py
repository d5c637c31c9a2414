"""Checks of a model without a CAD kernel: short edges, crossing outlines, closed and consistently oriented shells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from meshhub.builtin_plugins.step.facets.bodies import shell_sizes, shell_volumes
from meshhub.builtin_plugins.step.recognition.deviation import MAX_AREA_CHANGE_RATIO, MAX_SAGITTA_RATIO, chord_volumes
from meshhub.builtin_plugins.step.recognition.regions import region_areas
from meshhub.builtin_plugins.step.solids.curves import CurveKind, edge_regions
from meshhub.builtin_plugins.step.solids.edge_segments import EdgeSegments
from meshhub.builtin_plugins.step.solids.model import BrepModel
from meshhub.builtin_plugins.step.solids.seams import find_unslit_walls
from meshhub.builtin_plugins.step.solids.tolerances import MIN_EDGE_MM
from meshhub.builtin_plugins.step.solids.touching_arcs import find_touching
from meshhub.builtin_plugins.step.solids.trimmed_faces import TrimmedFaces
from meshhub.builtin_plugins.step.surfaces import traits
from meshhub.builtin_plugins.step.surfaces.arrays import (
    TINY,
    distinct_pairs,
    expand_ranges,
    lengths,
    perpendicular,
    sum_by_label,
)
from meshhub.builtin_plugins.step.surfaces.surfaces import distances, pool_patches
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex, face_normals
from meshhub.toolkit.topology import fans

MAX_VOLUME_RATIO = 1e-3
"""Share of a solid's volume by which the volume of its faces may differ, and of the area of a plane, whose corners may
be moved onto arcs; integration over arcs has this error."""
THIN_VOLUME_RATIO = 1e-7
"""Share of a solid's area to the power of 1.5 by which its volume may also differ, for solids with almost no volume."""

_OFF_RATIO = 1.5
"""Distance of a corner from its surface, in limits of its region, above which the corner is off the mesh; corners of
accepted surfaces lie within one limit."""
_CHUNK_SEGMENTS_COUNT = 1 << 15
"""Segments of several faces that are projected at once; bounds the memory."""
_CHUNK_PAIRS_COUNT = 1 << 18
"""Pairs of segments that are compared at once; bounds the memory."""
_MAX_PAIRS_COUNT = 5_000_000
"""Pairs of edge segments to compare; bounds time and memory. The search for crossings is skipped beyond it."""


def find_invalid_regions(
    model: BrepModel, segments: EdgeSegments, faces: TrimmedFaces, size: Float64, *, is_strict: bool = False
) -> IntIndex:
    """Return the curved regions that are off the mesh, have outlines that cross themselves, or border bad edges.

    An edge is bad if it is short, crosses another edge of a plane, or bounds a plane whose area differs from that of
    its triangles.

    Args:
        model: Regions with their surfaces, curves and seams.
        segments: Its edges as segments.
        faces: Areas within these edges.
        size: (r,) area of each region. Of several curved neighbors of a bad edge, the smallest is returned.
        is_strict: Whether to return also regions that CAD programs may reject: those with arcs that only touch, and
            faces all around an axis that have holes but no seam.
    """
    outline, curves = model.outline, model.curves
    left, right = edge_regions(outline)
    bent = curves.kind != CurveKind.LINE
    length = np.bincount(segments.edge, lengths(segments.end - segments.begin), len(bent))
    moved = np.isin(outline.start[outline.edge_chain], model.seams.corner)
    moved |= np.isin(outline.stop[outline.edge_chain], model.seams.corner)
    bad = (length < MIN_EDGE_MM) & (bent | moved)
    face, edges = _find_crossings(model, segments, left, right, is_strict=is_strict)
    on_curved = model.regions.curved[face]
    crossing = edges[~on_curved].ravel()
    bad[crossing[bent[crossing]]] = True
    has_other_area = _have_other_areas(model, faces.area)
    beside_curved = model.regions.curved[left] | model.regions.curved[right]
    bad |= beside_curved & (has_other_area[left] | has_other_area[right])
    left, right = left[bad], right[bad]
    smallest = np.where(size[left] <= size[right], left, right)
    is_invalid = (has_other_area | _are_off_mesh(model)) & model.regions.curved
    if is_strict:
        is_invalid[find_unslit_walls(model.skin, model.regions, outline, curves, model.seams)] = True
    curved: IntIndex = np.concatenate(
        [face[on_curved], smallest[model.regions.curved[smallest]], np.flatnonzero(is_invalid)]
    )
    return curved


def _have_other_areas(model: BrepModel, area: Float64) -> np.ndarray:
    """Return which faces (r,) differ in area from their triangles with the arcs around them, or are reversed by arcs.

    Args:
        model: Regions with their outlines.
        area: (r,) area within the curves of each face, mm²; NaN if unknown.
    """
    outline, skin = model.outline, model.skin
    chain = np.repeat(np.arange(len(outline.edge)), np.diff(outline.chain_begin))
    bent = (model.curves.kind != CurveKind.LINE)[outline.edge[chain]]
    vector = skin.points[skin.end[outline.half]] - skin.points[skin.begin[outline.half]]
    square = np.where(bent, np.einsum("ij,ij->i", vector, vector), 0.0)
    expected = region_areas(skin, model.regions)
    allowed = MAX_SAGITTA_RATIO * sum_by_label(outline.region[chain], square, len(expected))
    allowed += np.where(model.regions.curved, MAX_AREA_CHANGE_RATIO, MAX_VOLUME_RATIO) * expected
    has_loops = np.bincount(outline.loop_region, minlength=len(expected)) > 0
    is_reversed = ~model.regions.curved & (area <= 0)
    differs: np.ndarray = has_loops & ((np.abs(area - expected) > allowed) | is_reversed)
    return differs


def _are_off_mesh(model: BrepModel) -> np.ndarray:
    """Return which regions (r,) have a triangle with a corner that is farther from the surface than they allow."""
    regions, skin = model.regions, model.skin
    curved = np.flatnonzero(regions.curved[regions.region])
    surfaces = regions.surfaces.take(regions.region[curved])
    is_off = np.zeros(len(regions.surfaces), np.bool_)
    for corner in skin.faces[curved].T:
        off = np.abs(distances(surfaces, skin.points[corner])) > _OFF_RATIO * regions.limit[regions.region[curved]]
        is_off[regions.region[curved[off]]] = True
    return is_off


def find_invalid_shells(model: BrepModel, faces: TrimmedFaces) -> IntIndex:
    """Return the closed shells that are torn, or whose volume differs from that of their triangles.

    A shell is torn if an edge is not used once in each direction, or if a flat face is reversed. Its volume is measured
    within its curves and may differ from that of the triangles and the arcs over them (not tested for shells with
    patches). The latter volume is compared with that between the surfaces and the mesh, whose corners may have been
    moved.

    Args:
        model: Regions with their surfaces, curves and seams.
        faces: Areas and volumes within the edges of the model.
    """
    skin, regions = model.skin, model.regions
    shell = _shells_of_regions(model)
    bad = np.zeros(len(skin.closed), np.bool_)
    bad[shell[_regions_of_unpaired_edges(model)]] = True
    loop_count = np.bincount(model.outline.loop_region, minlength=len(shell))
    bad[shell[(faces.area <= 0) & ~regions.curved & (loop_count > 0)]] = True
    volume = sum_by_label(shell, faces.cone, len(bad)) / 3
    expected = model.shell_volumes
    allowed = MAX_VOLUME_RATIO * np.abs(expected) + THIN_VOLUME_RATIO * shell_sizes(skin)
    # false for NaN: patches have no such integral
    bad |= np.abs(volume - expected) > allowed
    if skin.points is not model.mesh_points:
        mesh = replace(skin, points=model.mesh_points, cross=face_normals(model.mesh_points, skin.faces))
        gained = chord_volumes(mesh, regions.region, regions.surfaces)
        difference = np.abs(expected - shell_volumes(mesh) - gained)
        bad |= difference > allowed + MAX_AREA_CHANGE_RATIO * np.abs(gained)
    return np.flatnonzero(bad & skin.closed)


def _regions_of_unpaired_edges(model: BrepModel) -> IntIndex:
    """Return, for each edge that is not used once in each direction, one of its regions."""
    outline = model.outline
    chain = outline.edge_chain
    is_used_twice = np.bincount(outline.edge, minlength=len(chain)) == 2
    start = outline.start[chain]
    backward = np.flatnonzero(~outline.forward)
    is_opposed = np.ones(len(chain), np.bool_)
    is_opposed[outline.edge[backward]] = outline.stop[backward] == start[outline.edge[backward]]
    unpaired: IntIndex = outline.region[chain[~(is_used_twice & is_opposed)]].astype(np.intp)
    return unpaired


def _shells_of_regions(model: BrepModel) -> IntIndex:
    """Return the shell (r,) of each region."""
    shell = np.empty(len(model.regions.surfaces), np.intp)
    shell[model.regions.region] = model.skin.shell
    return shell


def find_other_genus(model: BrepModel) -> IntIndex:
    """Return the closed shells whose faces differ from their triangles in the Euler characteristic.

    Shells with tori are not tested. A flat face whose loops touch in several corners differs without a defect.

    Source:
        Mäntylä, An Introduction to Solid Modeling, 1988, §9 (Euler–Poincaré formula).
    """
    skin, outline, regions = model.skin, model.outline, model.regions
    shell, count = _shells_of_regions(model), len(skin.closed)
    # a point where a shell touches itself is a corner of each of its fans
    half = np.flatnonzero(skin.twin >= 0)
    fan_count, fan = fans(skin.faces, half, skin.twin[half])
    fan_shell = np.empty(fan_count, np.intp)
    fan_shell[fan] = np.repeat(skin.shell, 3)
    start = fan[outline.half[outline.chain_begin[:-1]]]
    # a face with l loops is a sphere with l holes; two loops that touch in a corner make one hole
    visits, _ = distinct_pairs(outline.region, start, fan_count)
    touching = np.bincount(outline.region, minlength=len(shell)) - np.bincount(visits, minlength=len(shell))
    loop_count = np.bincount(outline.loop_region, minlength=len(shell))
    written = sum_by_label(shell, 2 - loop_count + touching, count)
    written += np.bincount(fan_shell[np.unique(start)], minlength=count)
    written -= np.bincount(shell[outline.region[outline.edge_chain]], minlength=count)
    triangles = np.bincount(skin.shell, minlength=count)
    points = np.bincount(fan_shell, minlength=count)
    # the characteristic of a face on a torus does not follow from its number of loops
    has_torus = np.bincount(shell, traits.HAS_TUBE[regions.surfaces.kind], count) > 0
    return np.flatnonzero((written != points - triangles / 2) & ~has_torus & skin.closed)


class _FaceSegments(NamedTuple):
    """Segments in the parameters of faces, sorted by face and lowest first parameter.

    row:       (k,) index of the segment
    face:      (k,) region
    a, b:      (k, 2) ends, mm
    low, high: (k, 2) bounding boxes
    key:       (k, 2) intervals of the first parameter, shifted so that those of different faces are disjoint
    """

    row: IntIndex
    face: IntIndex
    a: Float64
    b: Float64
    low: Float64
    high: Float64
    key: Float64


def _collect_tested_segments(
    model: BrepModel, segments: EdgeSegments, left: IntIndex, right: IntIndex
) -> tuple[IntIndex, IntIndex]:
    """Return the segments around curved faces and planes with arcs, and their faces in ascending order."""
    bent = model.curves.kind != CurveKind.LINE
    is_tested = model.regions.curved.copy()
    is_tested[left[bent]] = is_tested[right[bent]] = True
    face = np.concatenate([left[segments.edge], right[segments.edge]])
    row = np.tile(np.arange(len(segments.edge)), 2)
    row, face = row[is_tested[face]], face[is_tested[face]]
    order = np.argsort(face, kind="stable")
    return row[order], face[order]


def _project_to_faces(model: BrepModel, segments: EdgeSegments, row: IntIndex, face: IntIndex) -> _FaceSegments:
    """Return segments (k,) in the parameters of their faces (k,)."""
    a, b, period = _parameterize(model, face, segments.begin[row], segments.end[row])
    for axis in range(2):
        # segments that begin near the low end of a period are also compared at its high end
        reach = np.abs(b - a)[:, axis].max()
        is_near = np.flatnonzero((period[:, axis] > 0) & (np.minimum(a, b)[:, axis] < reach - period[:, axis] / 2))
        shift = np.zeros((len(is_near), 2))
        shift[:, axis] = period[is_near, axis]
        a, b = np.concatenate([a, a[is_near] + shift]), np.concatenate([b, b[is_near] + shift])
        row, face, period = (np.concatenate([column, column[is_near]]) for column in (row, face, period))
    # arcs reach beyond their segments
    reach = np.where(model.regions.curved[face], 0.0, segments.sagitta[row] + MIN_EDGE_MM)[:, None]
    low, high = np.minimum(a, b) - reach, np.maximum(a, b) + reach
    # the faces are laid out along X, so that one sorted sweep compares the segments of each
    shift_x = 3 * float(np.abs(np.concatenate([a, b])).max())
    order = np.argsort(low[:, 0] + face * shift_x, kind="stable")
    a, b, low, high, row, face = a[order], b[order], low[order], high[order], row[order], face[order]
    key = np.stack([low[:, 0] + face * shift_x, high[:, 0] + face * shift_x], axis=1)
    return _FaceSegments(row, face, a, b, low, high, key)


def _parameterize(model: BrepModel, face: IntIndex, begin: Float64, end: Float64) -> tuple[Float64, Float64, Float64]:
    """Map segments to the parameters of surfaces, in mm.

    Args:
        model: Regions with their surfaces and seams.
        face: (k,) region of each segment.
        begin, end: (k, 3) mm.
    Returns:
        (k, 2) each: begin and end in the coordinates of a plane, of an unrolled cylinder or cone (angle, height), of a
        torus (both angles), of the stereographic projection of a sphere, of a patch. (k, 2) periods; 0 where there is
        none.
    """
    surfaces = model.regions.surfaces.take(face)
    is_sphere = traits.HAS_FREE_AXIS[surfaces.kind]
    is_torus = traits.HAS_TUBE[surfaces.kind]
    is_flat = traits.IS_PLANE[surfaces.kind] | is_sphere
    axis = np.where(is_sphere[:, None], model.seams.axis[face], surfaces.axis)
    u = perpendicular(axis)
    v = np.cross(axis, u)
    ends = []
    for points in (begin, end):
        offset = points - surfaces.origin
        x, y, height = (np.einsum("ij,ij->i", offset, direction) for direction in (u, v, axis))
        above = np.maximum(surfaces.radius - height, TINY)
        scale = np.where(is_sphere, 2 * surfaces.radius / above, 1.0)
        around, away = np.arctan2(y, x), np.hypot(x, y)
        tube = np.arctan2(height, away - surfaces.radius)
        ends.append((x * scale, y * scale, around, np.where(is_torus, tube, height), away))
    (x, y, around, second, away), (end_x, end_y, end_around, end_second, end_away) = ends
    # at a tip or on the axis the angle is that of the other end
    around = np.where(away > MIN_EDGE_MM, around, end_around)
    turn = np.where(np.minimum(away, end_away) > MIN_EDGE_MM, _wrap(end_around - around), 0.0)
    widest = np.zeros(len(model.regions.surfaces))
    np.maximum.at(widest, face, np.maximum(away, end_away))
    radius = np.where(traits.HAS_SLOPE[surfaces.kind], widest[face], surfaces.radius)
    climb = np.where(is_torus, _wrap(end_second - second) * surfaces.second, end_second - second)
    second = np.where(is_torus, second * surfaces.second, second)
    a = np.stack([np.where(is_flat, x, around * radius), np.where(is_flat, y, second)], axis=1)
    b = np.stack([np.where(is_flat, end_x, (around + turn) * radius), np.where(is_flat, end_y, second + climb)], axis=1)
    period = 2 * np.pi * np.stack([np.where(is_flat, 0, radius), np.where(is_torus, surfaces.second, 0)], axis=1)
    if traits.IS_PATCH[surfaces.kind].any():
        pool, rows, owner = pool_patches(surfaces)
        low, high = pool.locate(owner, begin[rows]), pool.locate(owner, end[rows])
        closed = pool.is_closed[owner]
        high[:, 0] += np.where(closed, np.round(low[:, 0] - high[:, 0]), 0.0)
        counts = np.bincount(owner)
        size = np.stack(
            [sum_by_label(owner, lengths(along), len(counts)) / counts for along in pool.derive(owner, low, 1)[1:]],
            axis=1,
        )[owner]
        a[rows], b[rows], period[rows] = low * size, high * size, size * np.stack([closed, closed & False], axis=1)
    return a, b, period


def _wrap(angle: Float64) -> Float64:
    """Return angles in -π…π."""
    wrapped: Float64 = (angle + np.pi) % (2 * np.pi) - np.pi
    return wrapped


def _find_crossings(
    model: BrepModel, segments: EdgeSegments, left: IntIndex, right: IntIndex, *, is_strict: bool
) -> tuple[IntIndex, IntIndex]:
    """Return pairs of edges that cross by more than the error of their samples: faces (n,) and pairs (n, 2).

    With `is_strict`, return also pairs that touch.
    """
    tested_row, tested_face = _collect_tested_segments(model, segments, left, right)
    faces, pairs = [np.empty(0, np.intp)], [np.empty((0, 2), np.intp)]
    for start, stop in _split_by_face(tested_face):
        projected = _project_to_faces(model, segments, tested_row[start:stop], tested_face[start:stop])
        face, pair = _find_crossings_of(model, segments, projected, (left, right), is_strict=is_strict)
        faces.append(face)
        pairs.append(pair)
    return np.concatenate(faces), np.concatenate(pairs)


def _split_by_face(face: IntIndex) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows that hold whole faces; a range with several faces has few rows."""
    bounds = np.append(np.flatnonzero(np.diff(face, prepend=-1)), len(face))
    start = 0
    while start < len(face):
        following = bounds[bounds > start]
        stop = int(following[max(0, int(np.searchsorted(following, start + _CHUNK_SEGMENTS_COUNT, "right")) - 1)])
        yield start, stop
        start = stop


def _find_crossings_of(
    model: BrepModel,
    segments: EdgeSegments,
    projected: _FaceSegments,
    sides: tuple[IntIndex, IntIndex],
    *,
    is_strict: bool,
) -> tuple[IntIndex, IntIndex]:
    """Return the crossings among projected segments, as `_find_crossings` does.

    Args:
        model: Regions with their surfaces and curves.
        segments: Segments of all edges.
        projected: Segments of some faces.
        sides: (e,) each, the regions on both sides of the edges.
        is_strict: Also return pairs that touch.
    """
    left, right = sides
    size = np.searchsorted(projected.key[:, 0], projected.key[:, 1], side="right") - np.arange(len(projected.row)) - 1
    if size.sum() > _MAX_PAIRS_COUNT:
        return np.empty(0, np.intp), np.empty((0, 2), np.intp)
    row, face, a, b, _, _, _ = projected
    i, j = _find_near_pairs(segments, projected, size)
    one, other = segments.edge[row[i]], segments.edge[row[j]]
    limit = MIN_EDGE_MM + 2 * np.maximum(segments.sagitta[row[i]], segments.sagitta[row[j]])
    crossing = _are_separated(a[i], b[i], a[j], b[j], limit)
    crossing &= _are_separated(a[j], b[j], a[i], b[i], limit)
    if is_strict:
        kind, regions = model.curves.kind, model.regions
        is_tested = ~regions.curved[face[i]] & ((kind[one] == CurveKind.CIRCLE) | (kind[other] == CurveKind.CIRCLE))
        widest = np.maximum(regions.limit[left], regions.limit[right])
        touch_limit = np.maximum(MIN_EDGE_MM, np.maximum(widest[one], widest[other]))[is_tested]
        crossing[is_tested] |= find_touching(model, one[is_tested], other[is_tested], touch_limit)
    i, j = i[crossing], j[crossing]
    return face[i], np.stack([segments.edge[row[i]], segments.edge[row[j]]], axis=1)


def _find_near_pairs(segments: EdgeSegments, projected: _FaceSegments, size: IntIndex) -> tuple[IntIndex, IntIndex]:
    """Return the pairs of segments of one face whose bounding boxes meet, and that share no end.

    Args:
        segments: Segments of all edges.
        projected: Segments in the parameters of faces.
        size: (k,) number of the following segments that each one is compared with.
    """
    row, face, _, _, low, high, _ = projected
    low_second, high_second = low[:, 1].copy(), high[:, 1].copy()
    stop = np.cumsum(size)
    pairs = [(np.empty(0, np.intp), np.empty(0, np.intp))]
    first = 0
    while first < len(size):
        # as many segments as together have a chunk of pairs, but at least one
        last = max(first + 1, int(np.searchsorted(stop, stop[first] - size[first] + _CHUNK_PAIRS_COUNT)))
        owner, j = expand_ranges(np.arange(first, last) + 1, size[first:last])
        i = first + owner
        first = last
        near = (low_second[i] <= high_second[j]) & (low_second[j] <= high_second[i])
        i, j = i[near], j[near]
        near = face[i] == face[j]
        i, j = i[near], j[near]
        for ends in (segments.first, segments.last):
            for other_ends in (segments.first, segments.last):
                is_apart = ends[row[i]] != other_ends[row[j]]
                i, j = i[is_apart], j[is_apart]
        pairs.append((i, j))
    one, other = (np.concatenate(column) for column in zip(*pairs, strict=True))
    return one, other


def _are_separated(a: Float64, b: Float64, c: Float64, d: Float64, limit: Float64) -> np.ndarray:
    """Return whether c and d lie on different sides of the line a–b, each farther away than `limit`, as a mask (k,).

    Args:
        a, b, c, d: (k, 2) mm.
        limit: (k,) mm.
    """
    along = b - a
    size = np.maximum(np.hypot(along[:, 0], along[:, 1]), TINY)
    c_side, d_side = (
        (along[:, 0] * (point[:, 1] - a[:, 1]) - along[:, 1] * (point[:, 0] - a[:, 0])) / size for point in (c, d)
    )
    separated: np.ndarray = (c_side * d_side < 0) & (np.minimum(np.abs(c_side), np.abs(d_side)) > limit)
    return separated
