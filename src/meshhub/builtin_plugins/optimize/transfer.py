"""Transfer of materials, colors and texture coordinates to a reduced surface."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.spatial import cKDTree

from meshhub.builtin_plugins.optimize.charts import Charts
from meshhub.builtin_plugins.optimize.mesh_reduction import ReducedSurface
from meshhub.model.scene import Float64, Int32, Mesh
from meshhub.toolkit.geometry import IntIndex, compacted, face_normals, weld

EXTRA_SAMPLE_COUNT = 20_000
"""Approximate number of extra samples on large faces, so that points near their boundary also find these faces."""

NEAREST_SAMPLE_COUNT = 8
"""Nearest samples whose faces are compared by exact distance; bounds the work per point."""

CHUNK_SIZE = 65_536
"""Points per query; bounds the memory."""


def transfer_attributes(mesh: Mesh, reduced: ReducedSurface) -> tuple[Mesh, bool]:
    """Transfer the attributes of a mesh to its reduced surface.

    Each reduced face gets the chart of the face nearest to its center. Each of its corners gets the values of the
    nearest point *of that chart*, so that no face extends across a seam.

    Args:
        mesh: Mesh before the reduction.
        reduced: Surface after the reduction, in the same frame.
    Returns:
        Reduced mesh without normals, and whether seams moved.
    """
    if reduced.charts is None:
        bare = replace(mesh, vertices=reduced.points, faces=reduced.faces, normals=None, uv=None, colors=None)
        return compacted(bare), False
    source_faces = _SourceFaces(mesh, reduced.charts)
    centers = reduced.points[reduced.faces].mean(axis=1)
    nearest, _ = source_faces.find_nearest(centers, face_normals(reduced.points, reduced.faces))
    if reduced.pieces is not None:
        nearest = _vote_by_piece(nearest, reduced.charts.of_face, reduced.pieces)
    chart = reduced.charts.of_face[nearest]
    # one vertex per point and chart; a corner where a chart meets itself, because only the face determines the side
    meets_itself = np.bincount(reduced.charts.of_face, reduced.charts.on_seam) > 0
    is_ambiguous = meets_itself[chart] & (mesh.uv is not None)
    side = np.where(is_ambiguous, np.arange(len(chart)), -1)
    keys = (reduced.faces.ravel(), np.repeat(chart, 3), np.repeat(side, 3))
    first, row = weld(np.stack(keys, axis=1).astype(np.float64))
    point, own = reduced.faces.ravel()[first], np.repeat(nearest, 3)[first]
    source, weights = source_faces.find_in_chart(reduced.points[point], np.repeat(chart, 3)[first], own)
    if is_ambiguous.any():
        again = np.repeat(is_ambiguous, 3)[first]
        source[again], weights[again] = source_faces.find_on_side(
            reduced.points[point[again]], np.repeat(chart, 3)[first[again]], own[again]
        )
    corners = mesh.faces[source]
    result = Mesh(
        vertices=reduced.points[point],
        faces=row.reshape(-1, 3),
        uv=None if mesh.uv is None else np.einsum("ij,ijk->ik", weights, mesh.uv[corners]).astype(np.float32),
        colors=None
        if mesh.colors is None
        else np.rint(np.einsum("ij,ijk->ik", weights, mesh.colors[corners].astype(np.float64))).astype(np.uint8),
        face_material=None if mesh.face_material is None else mesh.face_material[nearest],
        name=mesh.name,
    )
    return _merge_equal_vertices(result), reduced.charts.has_seams and reduced.pieces is None


def _vote_by_piece(nearest: IntIndex, of_face: Int32, pieces: Int32) -> IntIndex:
    """Give all faces of a piece the chart that is nearest to most of its faces.

    Args:
        nearest: Source face of each reduced face.
        pieces: Piece of each reduced face.
    """
    pairs = np.stack([pieces.astype(np.float64), of_face[nearest].astype(np.float64)], axis=1)
    first, pair = weld(pairs)
    votes = np.bincount(pair)
    order = np.lexsort((-votes, pieces[first]))
    best = order[np.concatenate([[True], np.diff(pieces[first][order]) != 0])]
    elected = np.empty(int(pieces.max()) + 1, np.intp)
    elected[pieces[first][best]] = nearest[first[best]]
    agrees = of_face[nearest] == of_face[elected[pieces]]
    chosen: IntIndex = np.where(agrees, nearest, elected[pieces])
    return chosen


def _merge_equal_vertices(mesh: Mesh) -> Mesh:
    """Merge the vertices that are equal in position and all attributes."""
    columns = [mesh.vertices]
    if mesh.uv is not None:
        columns.append(mesh.uv.astype(np.float64))
    if mesh.colors is not None:
        columns.append(mesh.colors.astype(np.float64))
    first, index = weld(np.concatenate(columns, axis=1))
    if len(first) == len(mesh.vertices):
        return mesh
    return replace(
        mesh,
        vertices=mesh.vertices[first],
        faces=index[mesh.faces],
        uv=None if mesh.uv is None else mesh.uv[first],
        colors=None if mesh.colors is None else mesh.colors[first],
    )


class _SourceFaces:
    """Faces of a mesh before its reduction, for nearest-point queries.

    Each query returns, for points (q, 3), the (q,) source faces and the (q, 3) barycentric weights in them.
    """

    def __init__(self, mesh: Mesh, charts: Charts) -> None:
        self.corners = mesh.vertices[mesh.faces]
        self.chart, self.on_seam = charts.of_face, charts.on_seam
        self.normals = face_normals(mesh.vertices, mesh.faces)
        area = np.linalg.norm(self.normals, axis=1)
        self.normals = self.normals / np.where(area > 0, area, 1)[:, None]
        min_area = max(float(area.sum()) / EXTRA_SAMPLE_COUNT, np.finfo(np.float64).tiny)
        extra_count = np.floor(area / min_area).astype(np.intp)
        extra_face = np.repeat(np.arange(len(area)), extra_count)
        place = np.arange(len(extra_face)) - np.repeat(np.cumsum(extra_count) - extra_count, extra_count) + 1
        # an additive recurrence spreads the samples evenly over each face (Roberts, "R2", 2018)
        u, v = (0.7548776662466927 * place) % 1, (0.5698402909980532 * place) % 1
        is_outside = u + v > 1
        u, v = np.where(is_outside, 1 - u, u), np.where(is_outside, 1 - v, v)
        a, b, c = (self.corners[extra_face, corner] for corner in range(3))
        extra = a + (b - a) * u[:, None] + (c - a) * v[:, None]
        self.face_of_sample = np.concatenate([np.arange(len(area)), extra_face])
        samples = np.concatenate([self.corners.mean(axis=1), extra])
        self.tree = cKDTree(samples, balanced_tree=False, compact_nodes=False)
        self.count = min(NEAREST_SAMPLE_COUNT, len(samples))
        self.uv = None if mesh.uv is None else mesh.uv[mesh.faces].astype(np.float64)
        if self.uv is not None:
            edge_a, edge_b = self.uv[:, 1] - self.uv[:, 0], self.uv[:, 2] - self.uv[:, 0]
            uv_area = np.abs(edge_a[:, 0] * edge_b[:, 1] - edge_a[:, 1] * edge_b[:, 0])
            self.stretch = np.sqrt(area / np.where(uv_area > 0, uv_area, np.inf))

    def find_nearest(self, points: Float64, normals: Float64) -> tuple[IntIndex, Float64]:
        """Find the nearest face to each point among the faces with the same direction as `normals` (q, 3)."""
        results = [
            self._find_same_facing(points[at : at + CHUNK_SIZE], normals[at : at + CHUNK_SIZE])
            for at in range(0, len(points), CHUNK_SIZE)
        ]
        return _concatenate(results)

    def find_in_chart(self, points: Float64, chart: Int32, own: IntIndex) -> tuple[IntIndex, Float64]:
        """Find the nearest face of the given chart to each point; `own` (q,) is a face of the chart as fallback."""
        results = []
        for at in range(0, len(points), CHUNK_SIZE):
            here = slice(at, at + CHUNK_SIZE)
            faces, weights, distance = self._find_candidates(points[here], [own[here, None]])
            distance = np.where(self.chart[faces] == chart[here, None], distance, np.inf)
            results.append(_choose_nearest(faces, weights, distance))
        return _concatenate(results)

    def find_on_side(self, points: Float64, chart: Int32, own: IntIndex) -> tuple[IntIndex, Float64]:
        """Find the nearest face of a chart that meets itself at a seam, on the side of the seam where `own` (q,) is."""
        assert self.uv is not None
        # a corner beyond the seam projects to one of the faces on its near side
        seam_faces = np.flatnonzero(self.on_seam)
        tree = cKDTree(self.corners[seam_faces].mean(axis=1), balanced_tree=False, compact_nodes=False)
        ranks = np.arange(1, min(NEAREST_SAMPLE_COUNT, len(seam_faces)) + 1)
        results = []
        for at in range(0, len(points), CHUNK_SIZE):
            here = slice(at, at + CHUNK_SIZE)
            extra = [seam_faces[tree.query(points[here], k=ranks)[1]], own[here, None]]
            faces, weights, distance = self._find_candidates(points[here], extra)
            uv = np.einsum("qkc,qkcd->qkd", weights, self.uv[faces])
            # distance in the texture from the face itself, converted to a length on the surface
            uv_distance = np.linalg.norm(uv - uv[:, -1:, :], axis=2) * self.stretch[own[here]][:, None]
            penalty = np.maximum(0, uv_distance - 2 * distance[:, -1:])
            distance = np.where(self.chart[faces] == chart[here, None], distance + penalty, np.inf)
            results.append(_choose_nearest(faces, weights, distance))
        return _concatenate(results)

    def _find_same_facing(self, points: Float64, normals: Float64) -> tuple[IntIndex, Float64]:
        faces, weights, distance = self._find_candidates(points, [])
        # penalize opposite faces, so that the far side of a thin wall is not chosen
        size = np.linalg.norm(normals, axis=1)
        facing = np.einsum("qkd,qd->qk", self.normals[faces], normals)
        return _choose_nearest(faces, weights, distance + np.where(facing < 0, np.sqrt(size)[:, None], 0))

    def _find_candidates(self, points: Float64, extra: list[IntIndex]) -> tuple[IntIndex, Float64, Float64]:
        """Return faces near each point and the `extra` ones (q, k), weights of their nearest points, and distances."""
        _, at = self.tree.query(points, k=np.arange(1, self.count + 1))
        faces = np.concatenate([self.face_of_sample[at], *extra], axis=1)
        triangles = self.corners[faces]
        weights = nearest_weights(points[:, None, :], triangles)
        nearest = np.einsum("qkc,qkcd->qkd", weights, triangles)
        return faces, weights, np.linalg.norm(nearest - points[:, None, :], axis=2)


def _choose_nearest(faces: IntIndex, weights: Float64, distance: Float64) -> tuple[IntIndex, Float64]:
    best = np.argmin(distance, axis=1)
    rows = np.arange(len(faces))
    return faces[rows, best], weights[rows, best]


def _concatenate(results: list[tuple[IntIndex, Float64]]) -> tuple[IntIndex, Float64]:
    return np.concatenate([faces for faces, _ in results]), np.concatenate([weights for _, weights in results])


def nearest_weights(points: Float64, triangles: Float64) -> Float64:
    """Compute the barycentric weights of the point of each triangle that is nearest to a query point.

    Args:
        points: (…, 3) query points, any length unit.
        triangles: (…, 3, 3) corners.
    Returns:
        (…, 3) weights; they sum to 1.
    Source:
        Ericson, "Real-Time Collision Detection", 2005, section 5.1.5.
    """
    a, b, c = triangles[..., 0, :], triangles[..., 1, :], triangles[..., 2, :]
    ab, ac = b - a, c - a

    def dot(left: Float64, right: Float64) -> Float64:
        product: Float64 = (left * right).sum(axis=-1)
        return product

    d1, d2 = dot(ab, points - a), dot(ac, points - a)
    d3, d4 = dot(ab, points - b), dot(ac, points - b)
    d5, d6 = dot(ab, points - c), dot(ac, points - c)
    va, vb, vc = d3 * d6 - d5 * d4, d5 * d2 - d1 * d6, d1 * d4 - d3 * d2

    def ratio(numerator: Float64, denominator: Float64) -> Float64:
        return np.clip(numerator / np.where(denominator == 0, 1, denominator), 0, 1)

    on_ab, on_ac, on_bc = ratio(d1, d1 - d3), ratio(d2, d2 - d6), ratio(d4 - d3, (d4 - d3) + (d5 - d6))
    total = va + vb + vc
    inside_v, inside_w = ratio(vb, total), ratio(vc, total)
    zero, one = np.zeros_like(d1), np.ones_like(d1)
    cases = [
        (d1 <= 0) & (d2 <= 0),
        (d3 >= 0) & (d4 <= d3),
        (vc <= 0) & (d1 >= 0) & (d3 <= 0),
        (d6 >= 0) & (d5 <= d6),
        (vb <= 0) & (d2 >= 0) & (d6 <= 0),
        (va <= 0) & (d4 - d3 >= 0) & (d5 - d6 >= 0),
    ]
    v = np.select(cases, [zero, one, on_ab, zero, zero, 1 - on_bc], inside_v)
    w = np.select(cases, [zero, zero, zero, one, on_ac, on_bc], inside_w)
    return np.stack([1 - v - w, v, w], axis=-1)
