"""Carrying materials, colours and texture coordinates over to a reduced surface."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.spatial import cKDTree

from meshhub.builtin_plugins.optimize.charts import Charts
from meshhub.builtin_plugins.optimize.decimate import Reduced
from meshhub.geometry import IntIndex, compacted, face_normals, weld
from meshhub.scene import Float64, Int32, Mesh

SAMPLES = 20_000
"""Large faces get further samples, about so many in all, so that they are found from their rim too."""

NEAREST = 8
"""How many samples are looked at for the face that is really nearest."""

CHUNK = 65_536


def carried(mesh: Mesh, made: Reduced) -> tuple[Mesh, bool]:
    """The reduced mesh with the attributes of the surface it came from, and whether seams had to move.

    Each reduced face takes the chart of the face nearest to its middle, each of its corners the values of
    the nearest point *of that chart*: so no face ever reaches across a seam.
    """
    if made.charts is None:
        bare = replace(mesh, vertices=made.points, faces=made.faces, normals=None, uv=None, colors=None)
        return compacted(bare), False
    surface = _Surface(mesh, made.charts)
    middles = made.points[made.faces].mean(axis=1)
    nearest, _ = surface.nearest(middles, face_normals(made.points, made.faces))
    if made.pieces is not None:
        nearest = _by_majority(nearest, made.charts.of_face, made.pieces)
    chart = made.charts.of_face[nearest]
    # one row for each point and chart; where a chart meets itself one for each corner, whose face tells the side
    closes = np.bincount(made.charts.of_face, made.charts.rim) > 0
    closing = closes[chart] & (mesh.uv is not None)
    side = np.where(closing, np.arange(len(chart)), -1)
    keys = (made.faces.ravel(), np.repeat(chart, 3), np.repeat(side, 3))
    first, row = weld(np.stack(keys, axis=1).astype(np.float64))
    point, own = made.faces.ravel()[first], np.repeat(nearest, 3)[first]
    source, weights = surface.within(made.points[point], np.repeat(chart, 3)[first], own)
    if closing.any():
        again = np.repeat(closing, 3)[first]
        source[again], weights[again] = surface.beside(
            made.points[point[again]], np.repeat(chart, 3)[first[again]], own[again]
        )
    corners = mesh.faces[source]
    result = Mesh(
        vertices=made.points[point],
        faces=row.reshape(-1, 3),
        uv=None if mesh.uv is None else np.einsum("ij,ijk->ik", weights, mesh.uv[corners]).astype(np.float32),
        colors=None
        if mesh.colors is None
        else np.rint(np.einsum("ij,ijk->ik", weights, mesh.colors[corners].astype(np.float64))).astype(np.uint8),
        face_material=None if mesh.face_material is None else mesh.face_material[nearest],
        name=mesh.name,
    )
    return _merged(result), made.charts.seams and made.pieces is None


def _by_majority(nearest: IntIndex, of_face: Int32, pieces: Int32) -> IntIndex:
    """For each piece the chart that most of its faces found, and a face of that chart for all of its faces."""
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


def _merged(mesh: Mesh) -> Mesh:
    """The mesh without doubled vertices, those that differ in nothing."""
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


class _Surface:
    """The surface as it was, to be asked for its nearest points."""

    def __init__(self, mesh: Mesh, charts: Charts) -> None:
        self.corners = mesh.vertices[mesh.faces]
        self.chart, self.rim = charts.of_face, charts.rim
        self.normals = face_normals(mesh.vertices, mesh.faces)
        area = np.linalg.norm(self.normals, axis=1)
        self.normals = self.normals / np.where(area > 0, area, 1)[:, None]
        more = np.floor(area / max(float(area.sum()) / SAMPLES, np.finfo(np.float64).tiny)).astype(np.intp)
        further = np.repeat(np.arange(len(area)), more)
        place = np.arange(len(further)) - np.repeat(np.cumsum(more) - more, more) + 1
        # an additive recurrence spreads them evenly over each face (Roberts, "R2", 2018)
        u, v = (0.7548776662466927 * place) % 1, (0.5698402909980532 * place) % 1
        folded = u + v > 1
        u, v = np.where(folded, 1 - u, u), np.where(folded, 1 - v, v)
        a, b, c = (self.corners[further, corner] for corner in range(3))
        spread = a + (b - a) * u[:, None] + (c - a) * v[:, None]
        self.face_of_sample = np.concatenate([np.arange(len(area)), further])
        samples = np.concatenate([self.corners.mean(axis=1), spread])
        self.tree = cKDTree(samples, balanced_tree=False, compact_nodes=False)
        self.count = min(NEAREST, len(samples))
        self.uv = None if mesh.uv is None else mesh.uv[mesh.faces].astype(np.float64)
        if self.uv is not None:
            one, other = self.uv[:, 1] - self.uv[:, 0], self.uv[:, 2] - self.uv[:, 0]
            shown = np.abs(one[:, 0] * other[:, 1] - one[:, 1] * other[:, 0])
            self.stretch = np.sqrt(area / np.where(shown > 0, shown, np.inf))

    def nearest(self, points: Float64, normals: Float64) -> tuple[IntIndex, Float64]:
        """The face nearest to each point that looks the same way, (q,), and the weights of its corners (q, 3)."""
        found = [
            self._looking_the_same_way(points[at : at + CHUNK], normals[at : at + CHUNK])
            for at in range(0, len(points), CHUNK)
        ]
        return np.concatenate([one for one, _ in found]), np.concatenate([other for _, other in found])

    def within(self, points: Float64, chart: Int32, own: IntIndex) -> tuple[IntIndex, Float64]:
        """The same within a chart; `own` is a face of it to fall back on."""
        found = []
        for at in range(0, len(points), CHUNK):
            here = slice(at, at + CHUNK)
            faces, weights, distance = self._candidates(points[here], [own[here, None]])
            distance = np.where(self.chart[faces] == chart[here, None], distance, np.inf)
            found.append(_best(faces, weights, distance))
        return np.concatenate([one for one, _ in found]), np.concatenate([other for _, other in found])

    def beside(self, points: Float64, chart: Int32, own: IntIndex) -> tuple[IntIndex, Float64]:
        """The same within a chart that meets itself at a seam: `own` tells on which side."""
        assert self.uv is not None
        # a corner beyond the seam has its place on the near side of it, and that is one of these
        rim = np.flatnonzero(self.rim)
        tree = cKDTree(self.corners[rim].mean(axis=1), balanced_tree=False, compact_nodes=False)
        near = np.arange(1, min(NEAREST, len(rim)) + 1)
        found = []
        for at in range(0, len(points), CHUNK):
            here = slice(at, at + CHUNK)
            further = [rim[tree.query(points[here], k=near)[1]], own[here, None]]
            faces, weights, distance = self._candidates(points[here], further)
            uv = np.einsum("qkc,qkcd->qkd", weights, self.uv[faces])
            # how far in the texture each candidate is from the own face, as a length on the surface
            away = np.linalg.norm(uv - uv[:, -1:, :], axis=2) * self.stretch[own[here]][:, None]
            strange = np.maximum(0, away - 2 * distance[:, -1:])
            distance = np.where(self.chart[faces] == chart[here, None], distance + strange, np.inf)
            found.append(_best(faces, weights, distance))
        return np.concatenate([one for one, _ in found]), np.concatenate([other for _, other in found])

    def _looking_the_same_way(self, points: Float64, normals: Float64) -> tuple[IntIndex, Float64]:
        faces, weights, distance = self._candidates(points, [])
        # the far side of a thin wall is no neighbour
        size = np.linalg.norm(normals, axis=1)
        facing = np.einsum("qkd,qd->qk", self.normals[faces], normals)
        return _best(faces, weights, distance + np.where(facing < 0, np.sqrt(size)[:, None], 0))

    def _candidates(self, points: Float64, further: list[IntIndex]) -> tuple[IntIndex, Float64, Float64]:
        """Faces near each point and `further` ones (q, k), the weights of their nearest points, the distances."""
        _, at = self.tree.query(points, k=np.arange(1, self.count + 1))
        faces = np.concatenate([self.face_of_sample[at], *further], axis=1)
        triangles = self.corners[faces]
        weights = nearest_weights(points[:, None, :], triangles)
        reached = np.einsum("qkc,qkcd->qkd", weights, triangles)
        return faces, weights, np.linalg.norm(reached - points[:, None, :], axis=2)


def _best(faces: IntIndex, weights: Float64, distance: Float64) -> tuple[IntIndex, Float64]:
    best = np.argmin(distance, axis=1)
    rows = np.arange(len(faces))
    return faces[rows, best], weights[rows, best]


def nearest_weights(points: Float64, triangles: Float64) -> Float64:
    """Barycentric weights (…, 3) of the point of each triangle (…, 3, 3) that is nearest to a point (…, 3).

    Source: Ericson, "Real-Time Collision Detection", 2005, 5.1.5.
    """
    a, b, c = triangles[..., 0, :], triangles[..., 1, :], triangles[..., 2, :]
    ab, ac = b - a, c - a

    def dot(one: Float64, other: Float64) -> Float64:
        product: Float64 = (one * other).sum(axis=-1)
        return product

    d1, d2 = dot(ab, points - a), dot(ac, points - a)
    d3, d4 = dot(ab, points - b), dot(ac, points - b)
    d5, d6 = dot(ab, points - c), dot(ac, points - c)
    va, vb, vc = d3 * d6 - d5 * d4, d5 * d2 - d1 * d6, d1 * d4 - d3 * d2

    def ratio(above: Float64, below: Float64) -> Float64:
        return np.clip(above / np.where(below == 0, 1, below), 0, 1)

    on_ab, on_ac, on_bc = ratio(d1, d1 - d3), ratio(d2, d2 - d6), ratio(d4 - d3, (d4 - d3) + (d5 - d6))
    whole = va + vb + vc
    inside_v, inside_w = ratio(vb, whole), ratio(vc, whole)
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
