"""Plates of many generated bodies, and how a reduced plate differs from the original."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import manifold3d
import numpy as np
from numpy.typing import NDArray

from meshhub.model.scene import Float64, Int32
from meshhub.toolkit.geometry import face_normals, unit_vectors, weld
from meshhub.toolkit.rendering.camera import Projection, project
from meshhub.toolkit.rendering.visibility import find_visible
from meshhub.toolkit.topology import components, is_closed

Surface = tuple[Float64, Int32]
Random = np.random.Generator
Solid = manifold3d.Manifold

SIZES_MM = (6.0, 40.0)
"""Least and largest size of a body."""

FACE_SPREAD = 1.0
"""Standard deviation of the logarithm of the number of faces of a body: some have 50 times as many as others."""

MIN_FACES = 200
"""Faces of a body at least, about."""

SAMPLE_COUNT = 400_000
"""Samples of each surface for the distances."""

VIEW_PIXELS = 1000
"""Pixels of the longest side of a view."""

VIEWS = [np.array(view, np.float64) for view in itertools.product((-1, 1), repeat=3)]
"""Directions to the viewer."""


def make_ball(random: Random, faces: int) -> Solid:
    """Return an uneven ball, like a scan."""
    waves, phases = random.normal(size=(3, 12)) * 5, random.uniform(0, 6, 12)

    def bulge(points: Float64) -> Float64:
        result: Float64 = points * (1 + 0.03 * np.sin(points @ waves + phases).sum(axis=1, keepdims=True))
        return result

    ball = Solid.sphere(1, _even(np.sqrt(2 * faces)))
    return ball.warp_batch(bulge).scale(random.uniform(0.6, 1, 3).tolist())


def make_ring(random: Random, faces: int) -> Solid:
    """Return a ring."""
    around = _even(np.sqrt(faces / 6))
    section = manifold3d.CrossSection.circle(random.uniform(0.1, 0.3), around).translate((0.7, 0))
    return section.revolve(3 * around)


def make_screw(random: Random, faces: int) -> Solid:
    """Return a twisted column with lobes."""
    around = _even(np.sqrt(faces / 2))
    angle = np.arange(around) * 2 * np.pi / around
    radius = 0.4 + random.uniform(0.02, 0.1) * np.cos(random.integers(2, 7) * angle)
    outline = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return manifold3d.CrossSection([outline]).extrude(
        random.uniform(0.8, 2), around, random.uniform(90, 400), (0.8, 0.8)
    )


def make_vase(random: Random, faces: int) -> Solid:
    """Return a bowl with a thin wall."""
    rows = _even(np.sqrt(faces / 8))
    height = np.linspace(0, 1.4, rows)
    radius = 0.6 + 0.15 * np.sin(height * random.uniform(2, 5) + random.uniform(0, 6))
    outer, inner = np.stack([radius, height], 1), np.stack([radius - 0.08, np.maximum(height, 0.08)], 1)[::-1]
    outline = np.concatenate([[[0, 0]], outer, inner, [[0, 0.08]]])
    return manifold3d.CrossSection([outline], manifold3d.FillRule.NonZero).revolve(2 * rows)


def make_bracket(random: Random, faces: int) -> Solid:
    """Return a plate with holes and a rib, triangulated as CAD programs do."""
    solid = Solid.cube((2, 1.5, 0.25)) + Solid.cube((2, 0.2, 1))
    holes = random.integers(2, 7)
    for place in np.linspace(0.25, 1.75, holes):
        solid -= Solid.cylinder(2, 0.1, circular_segments=_even(faces / 4 / holes)).translate((place, 0.8, -0.5))
    return solid.translate((-1, -0.75, 0))


def make_gear(random: Random, faces: int) -> Solid:
    """Return a helical gear with a bore and holes in its web."""
    teeth, layers, spokes = int(random.integers(12, 30)), 6, int(random.integers(3, 7))
    angle = np.arange(teeth * max(6, faces // (5 * layers * teeth)))
    angle = angle * 2 * np.pi / len(angle)
    radius = 0.9 + 0.08 * np.tanh(3 * np.sin(teeth * angle))
    section = manifold3d.CrossSection([np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)])
    segments = _even(faces / 32 / spokes)
    section -= manifold3d.CrossSection.circle(0.15, segments)
    for turn in np.arange(spokes) * 360 / spokes:
        section -= manifold3d.CrossSection.circle(0.17, segments).translate((0.5, 0)).rotate(turn)
    return section.extrude(0.4, layers, random.uniform(5, 20))


def make_knot(random: Random, faces: int) -> Solid:
    """Return a tube along a trefoil knot."""
    around = _even(np.sqrt(faces / 24))
    thickness = random.uniform(0.08, 0.14)

    def bend(points: Float64) -> Float64:
        angle = np.arctan2(points[:, 1], points[:, 0])
        out, up = (np.hypot(points[:, 0], points[:, 1]) - 1)[:, None], points[:, 2:]
        path = np.stack(
            [np.sin(angle) + 2 * np.sin(2 * angle), np.cos(angle) - 2 * np.cos(2 * angle), -np.sin(3 * angle)], axis=1
        )
        along = np.stack(
            [np.cos(angle) + 4 * np.cos(2 * angle), 4 * np.sin(2 * angle) - np.sin(angle), -3 * np.cos(3 * angle)],
            axis=1,
        )
        side = unit_vectors(np.cross(along, path + [0, 0, 5]))
        result: Float64 = (path + 3 * (out * side + up * unit_vectors(np.cross(side, along)))) / 3
        return result

    ring = manifold3d.CrossSection.circle(thickness, around).translate((1, 0)).revolve(12 * around)
    knot = ring.warp_batch(bend)
    return knot if knot.volume() > 0 else knot.mirror((1, 0, 0))


def make_grille(random: Random, faces: int) -> Solid:
    """Return an uneven plate with many holes."""
    count = int(random.integers(3, 5))
    solid = Solid.cube((2, 2, 0.3), center=True)
    for x, y in itertools.product((np.arange(count) + 0.5) * 2 / count - 1, repeat=2):
        solid -= Solid.cylinder(2, 0.6 / count, circular_segments=16, center=True).translate((x, y, 0))
    return _make_uneven(solid, random, faces)


def make_lattice(random: Random, faces: int) -> Solid:
    """Return crossing bars with an uneven surface: a body with many handles."""
    count, width = int(random.integers(2, 4)), random.uniform(0.12, 0.2)
    places = np.linspace(-0.8, 0.8, count)
    bars = []
    for bar in (Solid.cube(size, center=True) for size in ((2, width, width), (width, 2, width), (width, width, 2))):
        free = [places if side <= width else [0.0] for side in np.ptp(np.reshape(bar.bounding_box(), (2, 3)), axis=0)]
        bars += [bar.translate(place) for place in itertools.product(*free)]
    return _make_uneven(Solid.batch_boolean(bars, manifold3d.OpType.Add), random, faces)


def _make_uneven(solid: Solid, random: Random, faces: int) -> Solid:
    """Divide the faces of a solid, and bend them a little."""
    waves, phases = random.normal(size=(3, 3)) * 3, random.uniform(0, 6, 3)

    def bend(points: Float64) -> Float64:
        result: Float64 = points + 0.02 * np.sin(points @ waves + phases)
        return result

    # an equilateral triangle of side 1 has an area of 0.43
    return solid.refine_to_length(float(np.sqrt(solid.surface_area() / faces / 0.4))).warp_batch(bend)


def _even(count: float) -> int:
    return max(8, 4 * round(float(count) / 4))


SMOOTH = (make_ball, make_ring, make_screw, make_vase, make_knot)
MECHANICAL = (make_bracket, make_gear, make_ring, make_grille)
HANDLES = (make_gear, make_grille, make_lattice, make_knot)
ALL = tuple(dict.fromkeys(SMOOTH + MECHANICAL + HANDLES))

PLATES: dict[str, tuple[int, int, tuple[Callable[[Random, int], Solid], ...]]] = {
    "mixed, small": (44, 150_000, ALL),
    "mechanical": (50, 150_000, MECHANICAL),
    "smooth": (40, 250_000, SMOOTH),
    "handles": (40, 300_000, HANDLES),
    "mixed": (60, 450_000, ALL),
    "mixed, large": (48, 1_000_000, ALL),
}
"""Number of bodies, number of faces (about), and kinds of bodies of each plate."""


def make_plate(name: str) -> Surface:
    """Return one of the plates: closed bodies in a grid, most of them with few faces."""
    bodies, total, kinds = PLATES[name]
    random = np.random.default_rng(sorted(PLATES).index(name))
    shares = np.exp(random.normal(0, FACE_SPREAD, bodies))
    goals = np.maximum(shares / shares.sum() * total, MIN_FACES).astype(int)
    columns = int(np.ceil(np.sqrt(bodies)))
    points: list[Float64] = []
    faces: list[Int32] = []
    start = 0
    for number, goal in enumerate(goals.tolist()):
        mesh = kinds[number % len(kinds)](random, goal).to_mesh64()
        corners, triangles = np.asarray(mesh.vert_properties)[:, :3], np.asarray(mesh.tri_verts).astype(np.int32)
        first, index = weld(corners.astype(np.float32).astype(np.float64))
        corners, triangles = corners[first], index[triangles]
        size = np.exp(random.uniform(*np.log(SIZES_MM))) / np.ptp(corners, axis=0).max()
        row, column = divmod(number, columns)
        middle = np.array([column * 1.1 * SIZES_MM[1], row * 1.1 * SIZES_MM[1], -size * corners[:, 2].min()])
        points.append(size * corners + middle)
        faces.append((triangles + start).astype(np.int32))
        start += len(corners)
    return np.concatenate(points), np.concatenate(faces)


class Figures(NamedTuple):
    """How a reduced surface differs from the original.

    faces:      number of faces
    is_closed:  whether it is closed after welding as float32
    bodies:     connected components
    mean_error: mean distance of samples of either surface to the other, per diagonal
    max_error:  largest one
    silhouette: pixels that only one of the surfaces covers, per pixel that either covers; mean of 8 views
    normal_deg: mean angle between the normals of a pixel that both cover
    """

    faces: int
    is_closed: bool
    bodies: int
    mean_error: float
    max_error: float
    silhouette: float
    normal_deg: float


def measure(before: Surface, after: Surface) -> Figures:
    """Compare a reduced surface with the original; pymeshlab measures the distances."""
    points, faces = after
    mean, largest = _measure_distances(before, after)
    views = np.array([_compare_view(before, after, view) for view in VIEWS])
    silhouette, angle = views.mean(axis=0)
    closed = is_closed(np.asarray(points, np.float32), np.asarray(faces, np.int32))
    return Figures(len(faces), closed, count_bodies(after), mean, largest, float(silhouette), float(angle))


def count_bodies(surface: Surface) -> int:
    """Return the number of connected components of the faces."""
    faces = weld(surface[0])[1][surface[1]]
    used, index = np.unique(faces, return_inverse=True)
    a, b, c = index.reshape(-1, 3).T
    return components(len(used), np.concatenate([a, b]), np.concatenate([b, c]))[0]


def _measure_distances(before: Surface, after: Surface) -> tuple[float, float]:
    """Return the mean and the largest two-sided distance, per diagonal."""
    import pymeshlab as library

    meshes = library.MeshSet(verbose=False)
    for points, faces in (before, after):
        meshes.add_mesh(library.Mesh(np.asarray(points, np.float64), np.asarray(faces, np.int32)))

    def sample(source: int, *, at_points: bool) -> dict[str, Any]:
        result: dict[str, Any] = meshes.get_hausdorff_distance(
            sampledmesh=source, targetmesh=1 - source, samplevert=at_points, sampleedge=False, sampleface=not at_points,
            samplenum=SAMPLE_COUNT, maxdist=library.PercentageValue(100),
        )  # fmt: skip
        return result

    inside = [sample(source, at_points=False) for source in (0, 1)]
    corners = [sample(source, at_points=True) for source in (0, 1)]
    diagonal = float(np.linalg.norm(np.ptp(before[0], axis=0)))
    mean = sum(float(figures["mean"]) for figures in inside) / 2
    return mean / diagonal, max(float(figures["max"]) for figures in inside + corners) / diagonal


def _compare_view(before: Surface, after: Surface, toward: Float64) -> tuple[float, float]:
    """Return the difference of the silhouettes, and the mean angle between normals in degrees."""
    toward = toward / np.linalg.norm(toward)
    right = unit_vectors(np.cross([[0.0, 0.0, 1.0]], toward))[0]
    rotation = np.stack([right, np.cross(toward, right), toward])
    seen = before[0] @ rotation.T
    size = np.ptp(seen[:, :2], axis=0)
    middle = seen[:, :2].min(axis=0) + size / 2
    scale = VIEW_PIXELS / float(size.max())
    width, height = (int(side) for side in np.ceil(size * scale) + 8)
    projection = Projection(rotation, middle, scale, width, height)
    pictures: list[NDArray[np.float64]] = []
    for points, faces in (before, after):
        x, y, depth = project(np.asarray(points, np.float64), projection)
        visible = find_visible(x, y, depth - depth.min(), np.asarray(faces, np.int32), width, height)
        picture = np.zeros((width * height, 3))
        picture[visible.position] = unit_vectors(face_normals(points, faces))[visible.face]
        pictures.append(picture)
    covered = [picture.any(axis=1) for picture in pictures]
    both, either = covered[0] & covered[1], covered[0] | covered[1]
    cosine = np.einsum("ij,ij->i", pictures[0][both], pictures[1][both])
    angle = np.rad2deg(np.arccos(np.clip(cosine, -1, 1)).mean())
    return float((either & ~both).sum() / either.sum()), float(angle)
