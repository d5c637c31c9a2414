"""Closed surfaces whose faces move along their normals: flat faces stay flat, and edges stay sharp.

Each vertex moves to the point where the moved planes of its faces meet. Edges that would turn around collapse first, as
the rounding of an inner edge does whose radius is smaller than the distance. Where faces still turn around or cross
others, the vertices stay, and the volumes that their faces sweep are united with the solid, or subtracted from it.
"""

# why this way: docs/decisions/0052-moved-faces.md
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from manifold3d import Error, Manifold, Mesh64, OpType
from numpy.typing import NDArray

from meshhub.errors import ConversionFailed, ModelTooComplex, format_number
from meshhub.model.progress import advance
from meshhub.model.scene import Float64, Int32, Mesh
from meshhub.toolkit.crossings import find_crossings, morton_codes
from meshhub.toolkit.distances import SurfaceDistance
from meshhub.toolkit.geometry import IntIndex, area, face_normals, signed_volume, unit_vectors, weld
from meshhub.toolkit.solids import find_tolerance
from meshhub.toolkit.thickness import sample_evenly
from meshhub.toolkit.topology import (
    Index,
    components,
    edges,
    following,
    half_edges,
    preceding,
    remove_degenerate_faces,
    shells,
)
from meshhub.toolkit.validity import find_damage

Mask = NDArray[np.bool_]

SIMPLIFY_RATIOS = {0.01: 4_000, 0.04: 12_000}
"""Distances by which the surface may be simplified before, as shares of the offset, and the maximum number of swept
volumes: a fifth of the accuracy of 5 % or, where that leaves more sweeps or no good surface, most of it. 6,800 sweeps
take 11 s of a core."""

FINISH_RATIO = 0.01
"""Distance by which the new surface may be simplified, as a share of the offset."""

CROSSING_RATIO = 0.02
"""Depth from which faces cross, as a share of the offset; simplification makes shallower crossings."""

SKEW = 0.06 * np.array([0.5, 0.59, 0.63])
"""Additional move, as a share of the offset, where crossings are searched. It depends on the direction: the flush sides
of a slit, which pass through each other, would only touch."""

MAX_COLLAPSE_ERROR_RATIO = 0.03
"""Maximum distance of a collapsed vertex from the moved planes of its faces, as a share of the offset."""

MAX_VERTEX_ERROR_RATIO = 0.1
"""The same for a single vertex. Its faces tilt by less, because their other corners are exact; with 0.03, sweeps take
five times as long on meshes with facets along curved edges."""

MITER_RATIO = 3.0
"""Maximum distance of a moved vertex from its place, as a share of the offset; edges sharper than 39° get a bevel."""

RANK_RATIO = 1e-3
"""Eigenvalue, as a share of the largest, below which planes that meet at a vertex count as parallel: within 4°."""

SLIVER_RATIO = 0.02
"""Height of a face, as a share of the offset, below which its normal is less reliable than those of its neighbors."""

FOLD_RATIO = 0.01
"""Height of a moved face, as a share of the offset, from which it has turned around."""

FLAT_COSINE = 0.99
"""Cosine of the angle of two faces above which the sweeps of both leave no gap between them."""

MAX_COLLAPSE_ROUNDS = 12
"""Rounds of collapsing edges; more change little."""

MAX_STILL_ROUNDS = 8
"""Rounds of keeping the vertices of faces that cross others; mostly, two suffice."""

UNION_COUNT = 8
"""Neighboring volumes that are united at once; operands stay small, or meet others in few places."""

MAX_CRUMB_SHARE = 0.3
"""Share of the points of a shell that may be nearer to the original surface than 0.95 offsets; those of gaps between
sweeps are, and those of bodies and cavities are not."""

MIN_SHELL_RATIO = 0.05
"""Mean thickness of a shell, as a share of the offset, below which it is a gap between sweeps, too."""

NUDGE_MM = 1e-4
"""Millimeters by which vertices at one position move apart, where files would join them to edges of four faces."""

MAX_NUDGES = 6
"""Rounds of moving vertices apart."""

MAX_SHORT_RATIO = 0.01
"""Share of the new surface that may be nearer to the original than 0.95 offsets; `move_faces` fails above."""

SHORT_RATIO = 0.95
"""Distance to the original surface, as a share of the offset, that the new surface has within the accuracy of 5 %."""

DEEP_RATIO = 0.5
"""Distance to the original surface, as a share of the offset, below which a place is reported."""

EXCESS_RATIO = 1.5
"""Distance to the original surface, as a share of the offset, from which a vertex must be the tip of a sharp edge."""

NEIGHBOR_RATIO = 0.1
"""Difference of distances, as a share of the offset, up to which faces near a vertex belong to the same edge."""

MAX_VOLUME_RATIO = 1.5
"""Volume between both surfaces, per offset and per larger area of both. The volume is the integral of the areas of all
surfaces between, which mostly are between those two."""

MAX_SAMPLES = 10_000
"""Maximum number of points of the new surface whose distances are measured; they take half a second."""

_NEAREST = 12
"""Samples whose faces are measured for a distance."""


class MovedFaces(NamedTuple):
    """Closed surface whose faces have moved.

    vertices: (n, 3) positions, rounded as in files
    faces:    (m, 3) indices into `vertices`, outward; empty if nothing remains
    uneven:   (k, 3) places that lie too near to the original surface, or too far from it; mostly empty
    """

    vertices: Float64
    faces: Int32
    uneven: Float64


def move_faces(vertices: Float64, faces: Int32, distance: float, option: str) -> MovedFaces:
    """Return a closed surface with all faces moved along their normals.

    Args:
        vertices: (n, 3) positions, in millimeters.
        faces: (m, 3) indices into `vertices`, closed and outward.
        distance: Millimeters, not 0; positive to grow and negative to shrink.
        option: Option that sets the distance, for messages.
    Returns:
        Surface whose flat and round faces are within 5 % of the distance, and whose outside edges are sharp.
    Raises:
        ConversionFailed: No closed surface was found at the distance.
        ModelTooComplex: Too many places of the surface turn around or collide.
    """
    solid = _to_solid(vertices, faces)
    nearness = SurfaceDistance(vertices, faces, max(float(np.sqrt(area(vertices, faces) / 100_000)), abs(distance) / 3))
    results: list[MovedFaces] = []
    for ratio, max_sweeps in SIMPLIFY_RATIOS.items():
        moves = _Moves.find(*_arrays(solid.simplify(ratio * abs(distance))), distance)
        still = _find_still(moves, abs(distance))
        advance(0.2)
        hulls, prisms = _list_sweeps(moves, still, distance)
        count = len(hulls) + len(prisms)
        if count > max_sweeps:
            continue
        moved = _sweep(moves, still, hulls, prisms, distance)
        if moved.status() != Error.NoError:
            continue
        advance(0.8)
        result = _finish(moved, nearness, distance)
        if len(result.faces) == 0:
            return result
        if _is_plausible((vertices, faces), result, nearness, distance):
            results.append(result)
            if len(result.uneven) == 0:
                break
    if results:
        return min(results, key=lambda result: len(result.uneven))
    if count > max_sweeps:
        raise ModelTooComplex(
            f"'{{{option}}}' {format_number(distance, 3)} mm makes the surface collide with itself in {count:,} "
            "places; use a smaller one, or reduce the model",
            options=(option,),
        )
    raise ConversionFailed(
        f"no reliable surface was found at the distance of '{{{option}}}'; change it slightly, or use {{repair}}",
        options=(option, "repair"),
    )


def _to_solid(points: Float64, faces: Index) -> Manifold:
    # manifold3d rejects read-only arrays and views
    return Manifold(Mesh64(np.array(points, np.float64, order="C"), np.array(faces, np.uint64, order="C")))


def _arrays(solid: Manifold) -> tuple[Float64, Int32]:
    mesh = solid.to_mesh64()
    return np.array(mesh.vert_properties)[:, :3], np.array(mesh.tri_verts).astype(np.int32)


class _Planes(NamedTuple):
    """Moved planes of faces: normals (m, 3), offsets (m,), and weights of the corners (m, 3)."""

    normals: Float64
    offsets: Float64
    weights: Float64

    def chosen(self, mask: Mask) -> _Planes:
        """Return the planes of a mask (m,)."""
        return _Planes(self.normals[mask], self.offsets[mask], self.weights[mask])

    def meet(self, corners: Index, centers: Float64) -> tuple[Float64, Float64]:
        """Return where the planes around points (k, 3) meet, nearest to them, and the distances (k,) that remain.

        Args:
            corners: (m, 3) points at the corners of the faces.
            centers: (k, 3) positions.
        """
        count, point = len(centers), corners.ravel()
        normals, weights = np.repeat(self.normals, 3, axis=0), self.weights.ravel()
        heights = np.repeat(self.offsets, 3) - np.einsum("ij,ij->i", normals, centers[point])
        total = np.maximum(np.bincount(point, weights, count), np.finfo(np.float64).tiny)
        matrix, right = np.empty((count, 3, 3)), np.empty((count, 3))
        for i in range(3):
            right[:, i] = np.bincount(point, weights * normals[:, i] * heights, count) / total
            for j in range(i, 3):
                matrix[:, i, j] = np.bincount(point, weights * normals[:, i] * normals[:, j], count) / total
                matrix[:, j, i] = matrix[:, i, j]
        values, axes = np.linalg.eigh(matrix)
        is_known = values > RANK_RATIO * np.maximum(values[:, 2:], np.finfo(np.float64).tiny)
        inverse = np.divide(1.0, values, out=np.zeros_like(values), where=is_known)
        moves = np.einsum("kij,kj,klj,kl->ki", axes, inverse, axes, right)
        errors = np.zeros(count)
        np.maximum.at(errors, point, np.abs(np.einsum("ij,ij->i", normals, moves[point]) - heights))
        return centers + moves, errors


class _Moves(NamedTuple):
    """Where the vertices of a surface move.

    points:  (n, 3) positions
    faces:   (m, 3) indices into `points`
    normals: (m, 3) unit normals
    targets: (n, 3) positions after the move
    cluster: (n,) equal for vertices that collapse to one
    is_split: (n,) whether the planes meet nowhere
    is_far:  (n,) whether the planes meet too far away
    is_turned: (m,) whether the face turns around
    """

    points: Float64
    faces: Int32
    normals: Float64
    targets: Float64
    cluster: Index
    is_split: Mask
    is_far: Mask
    is_turned: Mask

    @property
    def is_wide(self) -> Mask:
        """Whether each vertex (n,) has no target that it can move to."""
        wide: Mask = self.is_split | self.is_far
        return wide

    @classmethod
    def find(cls, points: Float64, faces: Int32, distance: float) -> _Moves:
        """Find where the vertices move."""
        size = abs(distance)
        normals = unit_vectors(face_normals(points, faces))
        planes = _Planes(
            normals,
            np.einsum("ij,ij->i", normals, points[faces[:, 0]]) + distance,
            _weigh_corners(points[faces], SLIVER_RATIO * size),
        )
        cluster, targets, errors = _collapse(points, faces, planes, size)
        far = np.linalg.norm(targets - points, axis=1)
        is_split, is_far = errors > MAX_VERTEX_ERROR_RATIO * size, far > MITER_RATIO * size
        moves = cls(points, faces, normals, targets, cluster, is_split, is_far, np.zeros(len(faces), np.bool_))
        return moves._replace(is_turned=moves.find_turned(targets, cluster, size))

    def find_tips(self, vertices: Index, normals: Float64, distance: float) -> Float64:
        """Return where vertices (k,) move with a face that has the normal (k, 3).

        If its planes meet too far away, the vertex moves toward that place, within the plane of the face.
        """
        straight = self.points[vertices] + distance * normals
        rest = self.targets[vertices] - straight
        length = np.maximum(np.linalg.norm(rest, axis=1), np.finfo(np.float64).tiny)
        share = np.minimum(1, np.sqrt(MITER_RATIO**2 - 1) * abs(distance) / length)
        share[self.is_split[vertices]] = 0
        share[~self.is_wide[vertices]] = 1
        tips: Float64 = straight + share[:, None] * rest
        return tips

    def find_turned(self, targets: Float64, cluster: Index, size: float) -> Mask:
        """Return which faces (m,) turn around if the vertices move to targets (n, 3)."""
        sides = np.roll(targets[self.faces], -1, axis=1) - targets[self.faces]
        longest = np.sqrt(np.einsum("ijk,ijk->ij", sides, sides)).max(axis=1)
        heights = np.einsum("ij,ij->i", face_normals(targets, self.faces), self.normals)
        turned: Mask = (heights < -FOLD_RATIO * size * longest) & _is_proper(cluster[self.faces])
        return turned


def _is_proper(corners: Index) -> Mask:
    a, b, c = corners.T
    proper: Mask = (a != b) & (b != c) & (c != a)
    return proper


def _weigh_corners(corners: Float64, min_height: float) -> Float64:
    """Return the angles (m, 3) of faces; those of slivers, whose normals are unreliable, are smaller."""
    sides = np.roll(corners, -1, axis=1) - corners
    lengths = np.sqrt(np.einsum("ijk,ijk->ij", sides, sides))
    units = sides / np.maximum(lengths, np.finfo(np.float64).tiny)[..., None]
    cosines = -np.einsum("ijk,ijk->ij", units, np.roll(units, 1, axis=1))
    doubled = np.linalg.norm(np.cross(sides[:, 0], sides[:, 1]), axis=1)
    heights = doubled / np.maximum(lengths.max(axis=1), np.finfo(np.float64).tiny)
    weights: Float64 = np.arccos(np.clip(cosines, -1, 1)) * (np.clip(heights / min_height, 1e-6, 1) ** 2)[:, None]
    return weights


def _collapse(points: Float64, faces: Int32, planes: _Planes, size: float) -> tuple[Index, Float64, Float64]:
    """Collapse the edges that would turn around; return cluster (n,), target (n, 3) and error (n,) of each vertex."""
    cluster: Index = np.arange(len(points))
    targets, errors = planes.meet(faces, points)
    table = edges(faces)
    begin, end = half_edges(faces)
    first, second = begin[table.order[table.start]], end[table.order[table.start]]
    before = points[second] - points[first]
    is_allowed = np.ones(len(first), np.bool_)
    for _ in range(MAX_COLLAPSE_ROUNDS):
        a, b = cluster[first], cluster[second]
        turns = (a != b) & is_allowed & (np.einsum("ij,ij->i", before, targets[b] - targets[a]) < 0)
        if not turns.any():
            break
        count, group = components(len(targets), a[turns], b[turns])
        label = group[cluster]
        members = np.bincount(label, minlength=count)
        centers = np.stack([np.bincount(label, points[:, axis], count) / members for axis in range(3)], axis=1)
        corners = label[faces]
        proper = _is_proper(corners)
        meeting, remaining = planes.chosen(proper).meet(corners[proper], centers)
        far = np.zeros(count)
        np.maximum.at(far, label, np.linalg.norm(meeting[label] - points, axis=1))
        is_joined = np.bincount(group, minlength=count) > 1
        fails = is_joined & ((remaining > MAX_COLLAPSE_ERROR_RATIO * size) | (far > MITER_RATIO * size))
        is_allowed[turns & fails[group[a]]] = False
        # failed groups keep their former clusters
        kept, cluster = np.unique(np.where(fails[label], count + cluster, label), return_inverse=True)
        is_new = kept < count
        old = kept[~is_new] - count
        new_targets, new_errors = np.empty((len(kept), 3)), np.empty(len(kept))
        new_targets[is_new], new_targets[~is_new] = meeting[kept[is_new]], targets[old]
        new_errors[is_new], new_errors[~is_new] = remaining[kept[is_new]], errors[old]
        targets, errors = new_targets, new_errors
    return cluster, targets[cluster], errors[cluster]


def _find_still(moves: _Moves, size: float) -> Mask:
    """Return which vertices must stay, so that the others move without crossings."""
    still = moves.is_wide.copy()
    still[moves.faces[moves.is_turned]] = True
    for _ in range(MAX_STILL_ROUNDS):
        targets, cluster = _keep(moves, still)
        proper = np.flatnonzero(_is_proper(cluster[moves.faces]))
        corners = cluster[moves.faces[proper]]
        table = edges(corners)
        steps = targets - moves.points
        skewed = targets + steps * (np.linalg.norm(SKEW) + unit_vectors(steps) @ SKEW)[:, None]
        crossed = find_crossings(skewed[moves.faces[proper]], CROSSING_RATIO * size)
        several = table.order[np.repeat(table.size != 2, table.size)] // 3
        faces = np.concatenate([crossed.first, crossed.second, several])
        grown = still.copy()
        grown[moves.faces[proper[faces]]] = True
        grown[moves.faces[moves.find_turned(targets, cluster, size)]] = True
        if np.array_equal(grown, still):
            break
        still = grown
    return still


def _keep(moves: _Moves, still: Mask) -> tuple[Float64, Index]:
    """Return targets (n, 3), and the first vertex (n,) of each cluster, with those of a mask alone in place."""
    numbers = np.arange(len(still))
    _, first, group = np.unique(
        np.where(still, len(still) + numbers, moves.cluster), return_index=True, return_inverse=True
    )
    return np.where(still[:, None], moves.points, moves.targets), first[group]


def _move(moves: _Moves, still: Mask) -> Manifold:
    """Return the solid whose vertices have moved, except those that stay."""
    targets, cluster = _keep(moves, still)
    used, corners = np.unique(cluster[moves.faces], return_inverse=True)
    return _to_solid(targets[used], remove_degenerate_faces(corners.reshape(-1, 3)))


def _list_sweeps(moves: _Moves, still: Mask, distance: float) -> tuple[list[Float64], list[IntIndex]]:
    """Return what the faces of still vertices sweep: points of convex volumes, and faces of prisms."""
    swept = still[moves.faces].any(axis=1)
    is_loose = swept & (moves.is_turned | moves.is_wide[moves.faces].any(axis=1))
    return _list_hulls(moves, is_loose, distance), _group_prisms(moves, swept & ~is_loose)


def _sweep(moves: _Moves, still: Mask, hulls: list[Float64], prisms: list[IntIndex], distance: float) -> Manifold:
    """Return the solid whose vertices have moved, united with the swept volumes, or without them."""
    moved, volume = _move(moves, still), _unite(moves, hulls, prisms, distance)
    return moved + volume if distance > 0 else moved - volume


def _finish(solid: Manifold, nearness: SurfaceDistance, distance: float) -> MovedFaces:
    """Return the surface of a solid as in files, without crumbs, and its uneven places."""
    surface = _arrays(solid.simplify(FINISH_RATIO * abs(distance)))
    if len(surface[1]) == 0:
        return MovedFaces(*surface, np.empty((0, 3)))
    surface = _settle(*_remove_crumbs(*surface, nearness, abs(distance)))
    places, _, gaps = _measure(surface, nearness, abs(distance))
    uneven = [places[gaps < DEEP_RATIO * abs(distance)], _find_excess(surface[0], nearness, abs(distance))]
    return MovedFaces(*surface, np.concatenate(uneven))


def _unite(moves: _Moves, hulls: list[Float64], prisms: list[IntIndex], distance: float) -> Manifold:
    """Return the union of swept volumes, without the solid, because each operation with a large one takes long."""
    tools = [_make_prism(moves, rows, distance < 0) for rows in prisms]
    tools += [Manifold.hull_points(np.array(points, np.float64, order="C")) for points in hulls]
    tools = [tool for tool in tools if not tool.is_empty()]
    if not tools:
        return Manifold()
    boxes = np.array([tool.bounding_box() for tool in tools]).reshape(-1, 2, 3)
    tools = [tools[number] for number in np.argsort(morton_codes(boxes.mean(axis=1)))]
    while len(tools) > 1:
        tools = [
            Manifold.batch_boolean(tools[start : start + UNION_COUNT], OpType.Add)
            for start in range(0, len(tools), UNION_COUNT)
        ]
        # without an evaluation here, manifold3d would join all of them to one union
        tools = [tool for tool in tools if not tool.is_empty()]
    return tools[0]


def _group_prisms(moves: _Moves, chosen: Mask) -> list[IntIndex]:
    """Group chosen faces that are connected and have the same main direction, so that their sweep is one prism."""
    rows = np.flatnonzero(chosen)
    if len(rows) == 0:
        return []
    normals = moves.normals[rows]
    axis = np.abs(normals).argmax(axis=1)
    direction = 2 * axis + (normals[np.arange(len(rows)), axis] > 0)
    one, other = (half // 3 for half in edges(moves.faces[rows]).pairs())
    same = direction[one] == direction[other]
    count, label = components(len(rows), one[same], other[same])
    order = np.argsort(label, kind="stable")
    return np.split(rows[order], np.cumsum(np.bincount(label, minlength=count))[:-1])


def _make_prism(moves: _Moves, rows: IntIndex, is_inward: bool) -> Manifold:
    """Return the volume between faces and their moved copies."""
    used, corners = np.unique(moves.faces[rows], return_inverse=True)
    corners = corners.reshape(-1, 3)
    count = len(used)
    half = edges(corners).border()
    a, b = (ends[half] for ends in half_edges(corners))
    # both triangles of a wall meet at the diagonal from its lower vertex, as in the wall of the neighboring prism
    is_up = (a < b)[:, None]
    walls = [
        np.where(is_up, np.stack([a, b, b + count], axis=1), np.stack([a, b, a + count], axis=1)),
        np.where(is_up, np.stack([a, b + count, a + count], axis=1), np.stack([b, b + count, a + count], axis=1)),
    ]
    triangles = np.concatenate([corners + count, corners[:, ::-1], *walls])
    return _to_solid(
        np.concatenate([moves.points[used], moves.targets[used]]), triangles[:, ::-1] if is_inward else triangles
    )


def _list_hulls(moves: _Moves, chosen: Mask, distance: float) -> list[Float64]:
    """Return the points of the convex volumes that chosen faces, and edges and vertices without targets, sweep."""
    rows = np.flatnonzero(chosen)
    corners = moves.faces[rows]
    tips = moves.find_tips(corners.ravel(), np.repeat(moves.normals[rows], 3, axis=0), distance)
    groups = list(np.concatenate([moves.points[corners], tips.reshape(-1, 3, 3)], axis=1))
    return [*groups, *_list_edge_hulls(moves, distance), *_list_vertex_hulls(moves, distance)]


def _list_edge_hulls(moves: _Moves, distance: float) -> Float64:
    """Return the points (k, 8, 3) that bent edges at vertices without targets sweep: ends, and tips of both faces."""
    half, other = edges(moves.faces).pairs()
    begin, end = (ends[half] for ends in half_edges(moves.faces))
    one, two = moves.normals[half // 3], moves.normals[other // 3]
    rise = np.einsum("ij,ij->i", one, moves.points[moves.faces.ravel()[preceding(other)]] - moves.points[begin])
    chosen = moves.is_wide[begin] | moves.is_wide[end]
    chosen &= (np.einsum("ij,ij->i", one, two) < FLAT_COSINE) & (rise * distance < 0)
    begin, end, one, two = begin[chosen], end[chosen], one[chosen], two[chosen]
    middle = unit_vectors(one + two)
    columns = [moves.points[begin], moves.points[end]]
    columns += [moves.find_tips(vertex, normals, distance) for vertex in (begin, end) for normals in (one, two, middle)]
    return np.stack(columns, axis=1)


def _list_vertex_hulls(moves: _Moves, distance: float) -> list[Float64]:
    """Return the points that vertices without targets sweep: the vertex, its moves with each face, and their middle."""
    corner = np.flatnonzero(moves.is_wide[moves.faces.ravel()])
    corner = corner[np.argsort(moves.faces.ravel()[corner], kind="stable")]
    wide, first = np.unique(moves.faces.ravel()[corner], return_index=True)
    if len(wide) == 0:
        return []
    places = moves.points[wide]
    normals = moves.normals[corner // 3]
    tips = moves.find_tips(moves.faces.ravel()[corner], normals, distance)
    middle = moves.find_tips(wide, unit_vectors(np.add.reduceat(normals, first)), distance)
    return [
        np.concatenate([[place], [tip], group])
        for place, tip, group in zip(places, middle, np.split(tips, first[1:]), strict=True)
    ]


def _remove_crumbs(points: Float64, faces: Int32, nearness: SurfaceDistance, size: float) -> tuple[Float64, Int32]:
    """Remove the shells that are nowhere at the distance, or without thickness: gaps between sweeps and leftovers."""
    count, label = shells(faces)
    if count == 1:
        return points, faces
    a, b, c = points[faces].transpose(1, 0, 2)
    doubled = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    volume = np.abs(np.bincount(label, np.einsum("ij,ij->i", a, np.cross(b, c)) / 6, count))
    is_thick = volume > MIN_SHELL_RATIO * size * np.bincount(label, doubled, count) / 4
    is_other = label != np.bincount(label, minlength=count).argmax()
    places = np.concatenate([points[faces[is_other]].reshape(-1, 3), points[faces[is_other]].mean(axis=1)])
    owner = np.concatenate([np.repeat(label[is_other], 3), label[is_other]])
    is_short = nearness.measure(places, _NEAREST) < SHORT_RATIO * size
    is_crumb = np.bincount(owner, is_short, count) > MAX_CRUMB_SHARE * np.bincount(owner, minlength=count)
    kept = faces[(is_thick & ~is_crumb)[label]]
    used, corners = np.unique(kept, return_inverse=True)
    return points[used], corners.reshape(-1, 3).astype(np.int32)


def _settle(points: Float64, faces: Int32) -> tuple[Float64, Int32]:
    """Return a surface rounded to float32, as in files, whose edges have two faces also after welding.

    Vertices at one position that would join edges of more faces move inward, and so apart.
    """
    points = points.copy()
    nudge = max(NUDGE_MM, 2 * find_tolerance(points))
    for step in range(1, MAX_NUDGES + 1):
        rounded = points.astype(np.float32).astype(np.float64)
        first, index = weld(rounded)
        proper = remove_degenerate_faces(index[faces])
        table = edges(proper)
        wrong = table.order[np.repeat(table.size != 2, table.size)]
        if len(wrong) == 0:
            break
        joined = np.zeros(len(first), np.bool_)
        joined[proper.ravel()[wrong]] = joined[proper.ravel()[following(wrong)]] = True
        moved = np.flatnonzero(joined[index])
        normals = face_normals(points, faces)
        inward = np.stack(
            [np.bincount(faces.ravel(), np.repeat(normals[:, axis], 3), len(points)) for axis in range(3)],
            axis=1,
            dtype=np.float64,
        )
        points[moved] -= step * nudge * unit_vectors(inward[moved])
    used, corners = np.unique(proper, return_inverse=True)
    return rounded[first[used]], corners.reshape(-1, 3).astype(np.int32)


def _is_plausible(
    before: tuple[Float64, Int32], result: MovedFaces, nearness: SurfaceDistance, distance: float
) -> bool:
    """Return whether a surface is closed, at the distance from another one, and on the right side of it."""
    after = result.vertices, result.faces
    if find_damage(Mesh(*after)) or _to_solid(*after).status() != Error.NoError:
        return False
    size = abs(distance)
    gained = np.sign(distance) * (signed_volume(*after) - signed_volume(*before))
    if not 0 < gained < MAX_VOLUME_RATIO * size * max(area(*before), area(*after)):
        return False
    _, areas, gaps = _measure(after, nearness, size)
    return bool(areas[gaps < SHORT_RATIO * size].sum() <= MAX_SHORT_RATIO * areas.sum())


def _measure(
    surface: tuple[Float64, Int32], nearness: SurfaceDistance, size: float
) -> tuple[Float64, Float64, Float64]:
    """Return places (k, 3) all over a surface, their areas (k,), and their distances (k,) to the original one."""
    samples = sample_evenly(*surface, size)
    step = -(-len(samples.points) // MAX_SAMPLES)
    points = samples.points[::step]
    return points, samples.areas[::step], nearness.measure(points, _NEAREST)


def _find_excess(points: Float64, nearness: SurfaceDistance, size: float) -> Float64:
    """Return the vertices (k, 3) that lie too far out: above the moved planes of all faces of the nearest edge."""
    far = points[nearness.measure(points) > EXCESS_RATIO * size]
    if len(far) == 0:
        return far
    gap, near = nearness.list_near(far, _NEAREST)
    length = np.linalg.norm(gap, axis=2)
    a, b, c = nearness.corners[near.ravel()].transpose(1, 0, 2)
    normals = unit_vectors(np.cross(b - a, c - a)).reshape(gap.shape)
    heights = np.abs(np.einsum("ijk,ijk->ij", normals, gap))
    heights[length > length.min(axis=1, keepdims=True) + NEIGHBOR_RATIO * size] = np.inf
    distances = length.min(axis=1)
    is_excess = (heights.min(axis=1) > EXCESS_RATIO * size) | (distances > EXCESS_RATIO * MITER_RATIO * size)
    far, distances = far[is_excess], distances[is_excess]
    result: Float64 = far[nearness.measure_exactly(far, distances) > EXCESS_RATIO * size]
    return result
