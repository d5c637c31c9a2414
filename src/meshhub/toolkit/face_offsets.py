"""Closed surfaces whose faces move along their normals: flat faces stay flat, and edges stay sharp.

Each vertex moves to the point where the moved planes of its faces meet. Edges that would turn around collapse first, as
the rounding of an inner edge does whose radius is smaller than the distance. Where faces still turn around or cross
others, the vertices stay, and the volumes that their faces sweep are united with the solid, or subtracted from it.
"""

# why this way: docs/decisions/0052-moved-faces.md
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from manifold3d import Error, Manifold

from meshhub.errors import ConversionFailed, ModelTooComplex, format_number
from meshhub.model.progress import advance
from meshhub.model.scene import Float64, Int32, Mesh
from meshhub.toolkit.distances import SurfaceDistance
from meshhub.toolkit.face_moves import MITER_RATIO, Moves, find_still
from meshhub.toolkit.face_sweeps import list_sweeps, sweep, to_solid
from meshhub.toolkit.geometry import area, face_normals, signed_volume, unit_vectors, weld
from meshhub.toolkit.solids import find_tolerance
from meshhub.toolkit.thickness import sample_evenly
from meshhub.toolkit.topology import edges, following, remove_degenerate_faces, shells
from meshhub.toolkit.validity import find_damage

ROUNDS = ((0.01, 0.3, 4_000), (0.04, 0.1, 12_000))
"""Rounds: distance by which the surface may be simplified before, and maximum error of a vertex, as shares of the
offset; maximum number of swept volumes, of which 6,800 take 11 s of a core. The second round runs where the first one
does not suffice."""

MAX_WALL_ERROR_RATIO = 0.03
"""Maximum error of a vertex, as a share of the offset, where the distance is that of a wall."""

FINISH_RATIO = 0.01
"""Distance by which the new surface may be simplified, as a share of the offset."""

MAX_CRUMB_SHARE = 0.3
"""Share of the points of a shell that may be nearer to the original surface than 0.95 offsets; those of gaps between
sweeps are, and those of bodies and cavities are not."""

MIN_SHELL_RATIO = 0.05
"""Mean thickness of a shell, as a share of the offset, below which it is a gap between sweeps, too."""

MIN_AREA_RATIO = 1e-3
"""Area of the whole surface per square of the offset, below which nothing remains."""

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
    solid, nearness = to_solid(vertices, faces), SurfaceDistance.limited(vertices, faces, abs(distance) / 3)
    results: list[MovedFaces] = []
    for ratio, error_ratio, max_sweeps in ROUNDS:
        moves = Moves.find(*_arrays(solid.simplify(ratio * abs(distance))), distance, error_ratio)
        still = find_still(moves, abs(distance))
        advance(0.2)
        hulls, prisms = list_sweeps(moves, still, distance)
        count = len(hulls) + len(prisms)
        if count > max_sweeps:
            continue
        moved = sweep(moves, still, hulls, prisms, distance)
        if moved.status() != Error.NoError:
            continue
        advance(0.8)
        result = _finish(moved, nearness, distance)
        if len(result.faces) == 0 and distance < 0:
            return result
        if len(result.faces) and _is_plausible((vertices, faces), result, nearness, distance):
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


def move_all_faces(vertices: Float64, faces: Int32, distance: float) -> tuple[Float64, Int32] | None:
    """Return a closed surface with all faces moved along their normals, if none of them turns around or meets another.

    Args:
        vertices: (n, 3) positions, in millimeters.
        faces: (m, 3) indices into `vertices`, closed and outward.
        distance: Millimeters, not 0; positive to grow and negative to shrink.
    Returns:
        Vertices and outward faces, whose vertices are within 3 % of the distance from the moved planes of their faces;
        None for another surface, which takes a sixth of the time of `move_faces` to find out.
    """
    ratio = ROUNDS[0][0]
    simple = _arrays(to_solid(vertices, faces).simplify(ratio * abs(distance)))
    moves = Moves.find(*simple, distance, MAX_WALL_ERROR_RATIO)
    still = moves.is_wide | np.isin(np.arange(len(moves.points)), moves.faces[moves.is_turned])
    if still.any() or find_still(moves, abs(distance)).any():
        return None
    nearness = SurfaceDistance.limited(vertices, faces, abs(distance) / 3)
    result = _finish(sweep(moves, still, [], [], distance), nearness, distance)
    if len(result.faces) == 0 or len(result.uneven) or not _is_plausible((vertices, faces), result, nearness, distance):
        return None
    return result.vertices, result.faces


def _arrays(solid: Manifold) -> tuple[Float64, Int32]:
    mesh = solid.to_mesh64()
    return np.array(mesh.vert_properties)[:, :3], np.array(mesh.tri_verts).astype(np.int32)


def _finish(solid: Manifold, nearness: SurfaceDistance, distance: float) -> MovedFaces:
    """Return the surface of a solid as in files, without crumbs, and its uneven places."""
    surface = _arrays(solid.simplify(FINISH_RATIO * abs(distance)))
    if len(surface[1]):
        surface = _settle(*_remove_crumbs(*surface, nearness, abs(distance)))
    if len(surface[1]) == 0 or area(*surface) < MIN_AREA_RATIO * distance**2:
        return MovedFaces(surface[0][:0], surface[1][:0], np.empty((0, 3)))
    places, _, gaps = _measure(surface, nearness, abs(distance))
    uneven = [places[gaps < DEEP_RATIO * abs(distance)], _find_excess(surface[0], nearness, abs(distance))]
    return MovedFaces(*surface, np.concatenate(uneven))


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
    if find_damage(Mesh(*after)) or to_solid(*after).status() != Error.NoError:
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
    result: Float64 = far[nearness.find_nearer(far, distances)[0] > EXCESS_RATIO * size]
    return result
