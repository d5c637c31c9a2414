"""Heat maps: scenes whose vertices have the colors of a measure, for any viewer."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from meshhub.model.scene import Float64, Int32, Mesh, Scene
from meshhub.toolkit.geometry import IntIndex, face_normals, unit_vectors
from meshhub.toolkit.refining import edge_lengths, halve_edges
from meshhub.toolkit.rendering.analysis import Analysis, measure_surface
from meshhub.toolkit.rendering.options import Measure
from meshhub.toolkit.rendering.scales import Scale
from meshhub.toolkit.rendering.triangles import PlacedTriangles, place_triangles
from meshhub.toolkit.thickness import sample_evenly
from meshhub.toolkit.topology import edges

EVEN_SHARE = 0.5
"""Share of the triangles that divide the surface evenly; the others divide it where the values change."""

MIN_STEP_RATIO = 0.04
"""Change of the value along an edge, as a share of the scale, above which the edge is divided; about the smallest
visible change."""

NORMAL_RATIO = 0.05
"""Weight of the normals in the search for the measured triangle of a reduced one: opposite normals count like positions
at this distance, per size of the model."""

LOOKUP_DETAIL_MM = 0.01
"""Millimeters; detail of the points of this search, so fine that the maximum number of points is used."""


class HeatMap(NamedTuple):
    """Scene in the colors of a measure.

    scene: the same parts, each with its own colored mesh
    scale: meaning of the colors
    """

    scene: Scene
    scale: Scale


class _Surface(NamedTuple):
    """Triangles with values at their corners.

    vertices: (n, 3) positions
    faces:    (m, 3) vertex indices
    origin:   (m,) measured face that each face stands for
    part:     (m,) part of each face, ascending
    values:   (m, 3)
    """

    vertices: Float64
    faces: Int32
    origin: IntIndex
    part: IntIndex
    values: Float64


def map_measure(scene: Scene, shown: Scene, measure: Measure, limit: float | None, max_faces: int) -> HeatMap:
    """Color a scene by a measure. Large triangles are divided, because colors belong to vertices.

    Args:
        scene: Scene to measure. Millimeters, Z up.
        shown: Scene to color: the same, or a reduced one with the same parts.
        measure: Quantity to measure.
        limit: Limit that the scale marks; None: the default of the measure.
        max_faces: Number of triangles that divisions do not exceed.
    """
    analysis = measure_surface(scene, measure, limit)
    assert analysis.scale is not None
    drawn = place_triangles(shown)
    origin = np.arange(len(drawn.faces)) if shown is scene else _find_origins(place_triangles(scene), drawn)
    part = np.repeat(np.arange(len(shown.parts)), np.diff(drawn.first_face))
    values = _evaluate(analysis, drawn.vertices, drawn.faces, origin)
    surface = _divide(analysis, _Surface(drawn.vertices, drawn.faces, origin, part, values), max_faces)
    return HeatMap(_build_scene(shown, surface, analysis.scale), analysis.scale)


def _find_origins(triangles: PlacedTriangles, drawn: PlacedTriangles) -> IntIndex:
    """Return the measured triangle (m,) that each drawn one stands for: the nearest that faces about the same way."""
    samples = sample_evenly(triangles.vertices, triangles.faces, LOOKUP_DETAIL_MM)
    if len(samples.points) == 0:
        return np.zeros(len(drawn.faces), np.intp)
    weight = NORMAL_RATIO / 2 * float(np.ptp(samples.points, axis=0).max())
    tree = cKDTree(np.hstack([samples.points, weight * samples.normals]))
    centers = drawn.vertices[drawn.faces].mean(axis=1)
    normals = unit_vectors(face_normals(drawn.vertices, drawn.faces))
    result: IntIndex = samples.faces[tree.query(np.hstack([centers, weight * normals]))[1]]
    return result


def _evaluate(analysis: Analysis, vertices: Float64, faces: Int32, origin: IntIndex) -> Float64:
    """Return the values (m, 3) at the corners of faces."""
    assert analysis.field is not None
    key = origin[:, None].astype(np.int64) * len(vertices) + faces
    distinct, place = np.unique(key, return_inverse=True)
    face, vertex = np.divmod(distinct, max(len(vertices), 1))
    values: Float64 = analysis.field(face, vertices[vertex])[place.reshape(-1)].reshape(-1, 3)
    return values


def _divide(analysis: Analysis, surface: _Surface, max_faces: int) -> _Surface:
    """Halve long edges, the longest first: up to `EVEN_SHARE` of the triangles everywhere, then where values change."""
    assert analysis.scale is not None
    step = MIN_STEP_RATIO * analysis.scale.top
    even_faces = max(len(surface.faces), int(EVEN_SHARE * max_faces))
    for is_even, limit in ((True, even_faces), (False, max_faces)):
        while True:
            mesh_edges = edges(surface.faces)
            lengths = edge_lengths(surface.vertices, mesh_edges, surface.faces)
            if not is_even:
                is_changing = np.repeat(np.ptp(surface.values, axis=1) > step, 3)[mesh_edges.order]
                lengths[~np.logical_or.reduceat(is_changing, mesh_edges.start)] = 0.0
            longest = float(lengths.max(initial=0.0))
            if longest <= analysis.detail:
                break
            chosen = np.flatnonzero(lengths > max(analysis.detail, longest / 2))
            chosen = chosen[np.argsort(-lengths[chosen], kind="stable")]
            # a halved edge adds a triangle for each triangle beside it
            fits = np.cumsum(mesh_edges.size[chosen]) <= limit - len(surface.faces)
            vertices, faces, origin = halve_edges(surface.vertices, surface.faces, mesh_edges, chosen[fits])
            own = surface.origin[origin]
            values = _evaluate(analysis, vertices, faces, own)
            surface = _Surface(vertices, faces, own, surface.part[origin], values)
            if not fits.all():
                break
    return surface


def _build_scene(shown: Scene, surface: _Surface, scale: Scale) -> Scene:
    """Return the parts with meshes whose corners share a vertex if they have the same color."""
    colors = scale.colors(surface.values.reshape(-1))
    red, green, blue = colors.astype(np.int64).T
    key = surface.faces.reshape(-1).astype(np.int64) << 24 | red << 16 | green << 8 | blue
    first_face = np.searchsorted(surface.part, np.arange(len(shown.parts) + 1))
    meshes, parts = [], []
    for number, part in enumerate(shown.parts):
        corners = slice(3 * first_face[number], 3 * first_face[number + 1])
        distinct, index = np.unique(key[corners], return_inverse=True)
        rgba = np.stack([distinct >> shift & 255 for shift in (16, 8, 0)] + [np.full(len(distinct), 255)], axis=1)
        vertices = surface.vertices[distinct >> 24]
        faces = index.reshape(-1, 3).astype(np.int32)
        mesh = Mesh(vertices, faces, colors=rgba.astype(np.uint8), name=shown.meshes[part.mesh].name)
        meshes.append(mesh)
        parts.append(replace(part, mesh=number, transform=np.eye(4), material=None))
    return replace(shown, meshes=tuple(meshes), parts=tuple(parts), materials=(), images=())
