"""Charts: smooth parts of a scan or a sculpture that one B-spline surface each follows within a distance.

What no surface explains is halved by planes until a surface over a plane follows each part. The triangles are cut, too:
where borders run along their edges, they zigzag, and the outlines of two charts cross.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from meshhub.builtin_plugins.step.facets.facet_graph import FacetGraph
from meshhub.builtin_plugins.step.facets.faceting import FacetedSkin, outline_faces
from meshhub.builtin_plugins.step.facets.skin import Skin, pair_skin
from meshhub.builtin_plugins.step.recognition.chart_cuts import ChartMesh
from meshhub.builtin_plugins.step.recognition.patch_parameters import Piece, cut_piece, project_piece
from meshhub.builtin_plugins.step.recognition.patch_search import add_surfaces, raise_heights
from meshhub.builtin_plugins.step.recognition.recognize import Segments
from meshhub.builtin_plugins.step.surfaces.arrays import lengths
from meshhub.builtin_plugins.step.surfaces.patch_fit import FitPoints, Stiffness, fit_patch
from meshhub.builtin_plugins.step.surfaces.patches import Patch
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex, face_normals
from meshhub.toolkit.topology import components

_MIN_PIECE_COUNT = 32
"""Facets of a smooth piece that is divided into charts; with fewer, it is more of a part than of a scan."""

_MIN_CHART_COUNT = 3
"""Facets of a chart; fewer are as good as faces."""

_MIN_CUT_COUNT = 8
"""Facets of a chart that is halved if no surface follows it."""

_MAX_SMALL_COUNT = 64
"""Facets of a small chart; if hardly any surface follows such charts, even smaller ones are as good as facets."""

_SAMPLE_COUNT = 300
"""Small charts after which this is judged."""

_MIN_PROMISING_RATIO = 0.1
"""Part of the small charts that a surface must follow."""

_MAX_ROUNDS_COUNT = 64
"""Rounds in which charts are halved; ends the search also where a plane separates nothing."""

_MIN_EXTENT_RATIO = 4.0
"""Extent of such a chart over the allowed distance; facets around one point can be halved forever."""

_MAX_CHART_COUNT = 3000
"""Triangles of a chart; surfaces with more details are slow to fit and to check."""

_MAX_CORNERS = 8
"""Corners of a facet of a scan, of which some lie in one plane by chance; a facet with more is a flat face."""

_MAX_AREA_RATIO = 0.05
"""Area of a facet with more than three corners over that of its piece; a larger one is a flat face."""

_ERROR_RATIO = 0.5
"""Desired distance of a point from its chart over the allowed one."""

_SMOOTHING = 1e-5
"""Weight of the bends of a chart over that of its distances: triangles approximate a surface, and are no part of it."""

_MAX_POLES_RATIO = 0.3
"""Poles over points; there are about eight points for each point of the mesh."""

_MIN_POLES_COUNT = 25
"""Poles of a chart that few points allow."""

_ACROSS_SPANS = 2
"""Spans of the first grid across a chart."""

_MAX_ALONG_SPANS = 20
"""The same along it, at most."""

_SAMPLES = np.array([[2, 2, 2], [3, 3, 0], [0, 3, 3], [3, 0, 3]]) / 6
"""Barycentric coordinates of the points of a triangle that a chart follows, apart from its corners."""


class Layout(NamedTuple):
    """A skin whose triangles are cut along the borders of its charts.

    skin, faceted: the same shape as before
    facet:         (f,) facet before of which each facet is a part
    segments:      surfaces with the charts
    """

    skin: Skin
    faceted: FacetedSkin
    facet: IntIndex
    segments: Segments


def lay_out_charts(
    skin: Skin, faceted: FacetedSkin, graph: FacetGraph, segments: Segments, allowed: float
) -> Layout | None:
    """Return charts of the facets on no surface; None if there are no large smooth pieces of them.

    Args:
        skin: Mesh, millimeters.
        faceted: Its planar facets.
        graph: Graph of these facets.
        segments: Surfaces recognized before.
        allowed: Millimeters between a chart and the mesh.
    """
    piece = _find_pieces(faceted, graph, segments)
    if piece.max() < 0:
        return None
    faces = skin.faces.astype(np.intp)
    rows = np.arange(len(faces))
    mesh = ChartMesh(skin.points, faces, skin.twin, rows, rows, piece[faceted.region])
    mesh, owner, patches = _divide(mesh, faceted.region.astype(np.intp), allowed)
    return _transfer(skin, faceted, segments, (mesh, owner, patches), allowed) if patches else None


def _find_pieces(faceted: FacetedSkin, graph: FacetGraph, segments: Segments) -> IntIndex:
    """Return (f,) the smooth piece of each facet; -1 for those on surfaces, flat faces and small pieces."""
    corners = np.bincount(faceted.outline.region, minlength=graph.count)
    usable = (segments.segment < 0) & (corners <= _MAX_CORNERS)
    for _ in range(2):
        joins = usable[graph.left] & usable[graph.right]
        label = components(graph.count, graph.left[joins], graph.right[joins])[1]
        area = np.bincount(label, np.where(usable, graph.area, 0.0), graph.count)
        usable &= graph.is_triangle | (graph.area <= _MAX_AREA_RATIO * area[label])
    size = np.bincount(label[usable], minlength=graph.count)
    return np.where(usable & (size[label] >= _MIN_PIECE_COUNT), label, -1).astype(np.intp)


def _divide(mesh: ChartMesh, region: IntIndex, allowed: float) -> tuple[ChartMesh, IntIndex, list[Patch]]:
    """Halve charts until a patch follows each.

    Args:
        mesh: Triangles; each connected part of a chart is divided.
        region: (m,) facet of each triangle of the first mesh.
        allowed: Millimeters between a patch and its triangles.
    Returns:
        The mesh as it is cut, the patch of each triangle or -1, and the patches. Where noise exceeds the distance, few
        patches follow even small charts, and the search ends.
    """
    mesh = mesh.separate(mesh.chart)
    patches: list[Patch] = []
    owner = np.full(len(mesh.faces), -1)
    is_open = mesh.chart >= 0
    small = followed = 0
    for _ in range(_MAX_ROUNDS_COUNT):
        if not is_open.any() or (small > _SAMPLE_COUNT and followed < _MIN_PROMISING_RATIO * small):
            break
        rows = np.flatnonzero(is_open)
        rows = rows[np.argsort(mesh.chart[rows], kind="stable")]
        to_cut: list[IntIndex] = []
        for chart in np.split(rows, np.flatnonzero(np.diff(mesh.chart[rows])) + 1):
            facets = len(np.unique(region[mesh.origin[chart]]))
            patch = _follow(mesh, chart, allowed) if facets >= _MIN_CHART_COUNT else None
            if _MIN_CUT_COUNT <= facets <= _MAX_SMALL_COUNT:
                small, followed = small + 1, followed + (patch is not None)
            if patch is not None:
                owner[chart] = len(patches)
                patches.append(patch)
            elif facets >= _MIN_CUT_COUNT and _measure_extent(mesh, chart) > _MIN_EXTENT_RATIO * allowed:
                to_cut.append(chart)
                continue
            is_open[chart] = False
        if to_cut:
            middle, axis = zip(*(_find_longest_axis(mesh, chart) for chart in to_cut), strict=True)
            mesh = mesh.cut(mesh.chart[[chart[0] for chart in to_cut]], np.array(middle), np.array(axis))
            owner, is_open = owner[mesh.parent], is_open[mesh.parent]
    return mesh, owner, patches


def _follow(mesh: ChartMesh, rows: IntIndex, allowed: float) -> Patch | None:
    """Return a patch within a distance (mm) of some triangles; None if there is none, or they have handles."""
    if len(rows) > _MAX_CHART_COUNT:
        return None
    piece = cut_piece(mesh.faces[rows], mesh.points)
    return None if piece is None else _fit_chart(piece, allowed)


def _fit_chart(piece: Piece, allowed: float) -> Patch | None:
    """Return a patch over a plane within a distance (mm) of triangles; None if they overhang, or if there is none."""
    projected = project_piece(piece)
    if projected is None:
        return None
    place, frame = projected
    between = np.einsum("ijk,lj->lik", place[piece.triangles], _SAMPLES).reshape(-1, 3)
    # the edges of a chart are its border, which it shares with the one beside it
    rim = (place[piece.rim[:, 0]] + place[piece.rim[:, 1]]) / 2
    place = np.concatenate([place, between, rim])
    points = FitPoints(place[:, :2], place[:, 2:], np.zeros((len(place), 2), np.bool_))
    aspect = float(frame.size[0] / frame.size[1])
    heights = fit_patch(
        points,
        (_ERROR_RATIO * allowed, allowed),
        is_closed=False,
        may_slide=False,
        first_spans=(min(round(_ACROSS_SPANS * aspect), _MAX_ALONG_SPANS), _ACROSS_SPANS),
        aspect=aspect,
        stiffness=Stiffness(_SMOOTHING, max(_MIN_POLES_COUNT, int(_MAX_POLES_RATIO * len(place)))),
    )
    return None if heights is None else replace(raise_heights(heights, frame), is_chart=True)


def _measure_extent(mesh: ChartMesh, rows: IntIndex) -> float:
    """Return the millimeters between the corners of the box around some triangles."""
    return float(np.linalg.norm(np.ptp(mesh.points[mesh.faces[rows].ravel()], axis=0)))


def _find_longest_axis(mesh: ChartMesh, rows: IntIndex) -> tuple[Float64, Float64]:
    """Return the center of some triangles, and the direction in which they extend farthest."""
    corners = mesh.faces[rows]
    center, weight = mesh.points[corners].mean(axis=1), lengths(face_normals(mesh.points, corners.astype(np.int32)))
    middle = np.average(center, axis=0, weights=weight)
    offset = (center - middle) * np.sqrt(weight)[:, None]
    return middle, np.linalg.eigh(offset.T @ offset)[1][:, 2]


def _transfer(
    skin: Skin,
    faceted: FacetedSkin,
    segments: Segments,
    charts: tuple[ChartMesh, IntIndex, list[Patch]],
    allowed: float,
) -> Layout:
    """Return the layout of a mesh that was divided; facets keep their surfaces, and those between charts are whole."""
    mesh, owner, patches = charts
    cut_skin = pair_skin(mesh.points, mesh.faces.astype(np.int32), mesh.twin, skin.paint[mesh.origin])
    region = faceted.region[mesh.origin].astype(np.intp)
    group = region * (len(patches) + 1) + owner + 1
    half = np.flatnonzero(mesh.twin >= 0)
    left, right = half // 3, mesh.twin[half] // 3
    joins = group[left] == group[right]
    count, facet = components(len(mesh.faces), left[joins], right[joins])
    cut_faceted = outline_faces(cut_skin, facet.astype(np.int32), count, faceted.tolerance)
    before, patch = np.empty((2, count), np.intp)
    before[facet], patch[facet] = region, owner
    limit = allowed + faceted.tolerance
    candidates = [(np.flatnonzero(patch == number), surface, limit) for number, surface in enumerate(patches)]
    return Layout(cut_skin, cut_faceted, before, add_surfaces(segments.select(before), candidates))
