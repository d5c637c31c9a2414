"""Turn the whole scene, as one rigid body, so that it prints with little support."""

# why this way: docs/decisions/0037-orientation.md
from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from fast_simplification import simplify
from scipy.spatial import ConvexHull, QhullError

from meshhub.builtin_plugins.orient import OrientOptions
from meshhub.model.notes import did, note
from meshhub.model.progress import track
from meshhub.model.scene import Float64, Int32, Scene
from meshhub.toolkit.geometry import extremes, face_normals, soup, turned, unit_vectors
from meshhub.toolkit.layers import slice_layers
from meshhub.toolkit.poses import center_of_mass, find_sides, rotation_to_bed
from meshhub.toolkit.support_material import Skin, stand_columns

MAX_SIDES = 24
"""Maximum sides of the hull to try, the largest first."""

MAX_NORMALS = 12
"""Maximum directions of the surface to try, those with the largest area first."""

NORMAL_BIN = 8
"""Steps of a component of a normal; directions in one step, about 7 degrees wide, count as one."""

MAX_FACES = 60_000
"""Maximum faces on which poses are measured; more faces are smaller than the cells of a printer."""

MAX_COARSE_FACES = 15_000
"""Maximum faces of the sample on which all poses are compared."""

COARSE_CELLS, CELLS = 56, 96
"""Cells along the longest diagonal, for all poses and for the best of them."""

MAX_FINALISTS = 6
"""Poses that are measured on the finer grid."""

MAX_SAME_COSINE = float(np.cos(np.deg2rad(1.0)))
"""Cosine of the angle below which two directions count as one."""

MIN_SIZE_MM = 40.0
"""Shortest diagonal in millimeters; smaller models are compared at this size, because later steps may enlarge them."""

LAYER_MM, NOZZLE_MM = 0.2, 0.4
"""Layers and nozzle of usual printers of filament."""

LIMIT_DEG = 1.0
"""Degrees beyond the steepest overhang at which slicers still add support."""

MIN_GAIN, MIN_GAIN_RATIO = 0.001, 0.05
"""Score, and share of the score, by which another pose must be better than the original pose."""

CONTACT_MM = 0.2
"""Millimeters above the bed within which a point touches it: the first layer."""

_AXES = [np.array(step, np.float64) for step in itertools.product((-1, 0, 1), repeat=3) if any(step)]


class Pose(NamedTuple):
    """A pose and its figures; a lower score is better."""

    score: float
    down: Float64
    support_mm3: float
    contact_mm2: float
    height_mm: float
    is_stable: bool


class _Model(NamedTuple):
    """What poses are compared by.

    scale: size at which it is measured per size of the model
    volume_mm3: of the hull
    shadow_mm2: the area of the largest side of the bounding box
    """

    skin: Skin
    hull: Float64
    center: Float64
    scale: float
    volume_mm3: float
    shadow_mm2: float
    diagonal_mm: float

    @classmethod
    def of(cls, vertices: Float64, faces: Int32) -> _Model | None:
        """Return the model of a surface; None if it has no volume."""
        used = vertices[np.unique(faces)]
        low, high = extremes(used)
        sides = high - low
        try:
            hull = ConvexHull((used - low) / sides.max())
        except (QhullError, ValueError):
            return None
        diagonal = float(np.linalg.norm(sides))
        scale = max(1.0, MIN_SIZE_MM / diagonal)
        sides, diagonal, vertices = scale * sides, scale * diagonal, scale * (vertices - low)
        return cls(
            _simplify(vertices, faces, MAX_FACES),
            scale * (used[hull.vertices] - low),
            center_of_mass(vertices, faces),
            scale,
            float(hull.volume) * float(sides.max()) ** 3,
            float(np.sort(sides)[1:].prod()),
            diagonal,
        )


def run(scene: Scene, options: OrientOptions) -> Scene:
    """Turn the scene to the best of many poses: on the sides of its hull, on its main surfaces, and along the axes.

    Poses in which the model does not tip over are better than others. Among them, the score adds the support that a
    slicer prints, the share of the shadow that does not touch the bed, and the height, each with its weight. The
    original pose is one of them, and stays unless another one is clearly better.

    Args:
        scene: Millimeters, Z up.
        options: `orient` False leaves the scene unchanged.
    Returns:
        Turned scene; see `turned` for what stays in place.
    Raises:
        ValueError: The scene has no faces.
    """
    if not options.orient:
        return scene
    model = _Model.of(*soup(scene))
    if model is None:
        note("not_oriented", "the model is flat or a line, and was not turned")
        return scene
    as_drawn = np.array([0.0, 0.0, -1.0])
    coarse = model._replace(skin=_simplify(model.skin.vertices, model.skin.faces, MAX_COARSE_FACES))
    rough = sorted(
        (_measure(coarse, down, options, COARSE_CELLS) for down in track(_list_directions(model))), key=_rank
    )
    drawn = _measure(model, as_drawn, options, CELLS)
    poses = sorted([drawn, *(_measure(model, pose.down, options, CELLS) for pose in rough[:MAX_FINALISTS])], key=_rank)
    best = poses[0]
    # a turn must be worth it
    if drawn.is_stable == best.is_stable and drawn.score <= (1 + MIN_GAIN_RATIO) * best.score + MIN_GAIN:
        best = drawn
    did(
        support_before_mm3=drawn.support_mm3,
        support_mm3=best.support_mm3,
        contact_mm2=best.contact_mm2,
        height_mm=best.height_mm,
        poses=[_describe(pose) for pose in poses[:3]],
    )
    if not best.is_stable:
        note("tips_over", "the model may tip over in its best pose; use supports, or a brim")
    return scene if best is drawn else turned(scene, rotation_to_bed(best.down))


def _rank(pose: Pose) -> tuple[bool, float, float]:
    """Return the sort key of poses: whether they tip over, the rounded score, then how little they turn the model."""
    return not pose.is_stable, round(pose.score, 6), float(pose.down[2])


def _describe(pose: Pose) -> str:
    x, y, z = pose.down + 0.0
    return (
        f"down {x:.3f}, {y:.3f}, {z:.3f}: support {pose.support_mm3:.0f} mm³, contact {pose.contact_mm2:.0f} mm², "
        f"height {pose.height_mm:.1f} mm, score {pose.score:.3f}"
    )


def _list_directions(model: _Model) -> list[Float64]:
    """Return the unit vectors that may point down, without repetitions."""
    sides = find_sides(model.hull, model.center)
    directions = [] if sides is None else list(sides.normals[sides.stable][:MAX_SIDES])
    normals = face_normals(model.skin.vertices, model.skin.faces)
    area = np.linalg.norm(normals, axis=1)
    bins, number = np.unique(np.rint(unit_vectors(normals) * NORMAL_BIN), axis=0, return_inverse=True)
    total = np.bincount(number.reshape(-1), area, len(bins))
    largest = np.argsort(-total, kind="stable")[:MAX_NORMALS]
    sums = np.zeros((len(bins), 3))
    np.add.at(sums, number.reshape(-1), normals)
    directions += list(unit_vectors(sums[largest]))
    # last, because an axis that a side almost has would tilt the model
    directions += [axis / np.linalg.norm(axis) for axis in _AXES]
    kept: list[Float64] = []
    for direction in directions:
        if direction.any() and all(direction @ other < MAX_SAME_COSINE for other in kept):
            kept.append(direction)
    return kept


def _simplify(vertices: Float64, faces: Int32, max_faces: int) -> Skin:
    """Return the skin of a surface with at most about this many faces."""
    if len(faces) > max_faces:
        # the library rejects read-only arrays, so both are copied
        points, faces = simplify(
            vertices.astype(np.float32), faces.astype(np.int32), target_reduction=1 - max_faces / len(faces)
        )
        vertices, faces = points.astype(np.float64), faces.astype(np.int32)
    return Skin.of(vertices, faces)


def _measure(model: _Model, down: Float64, options: OrientOptions, cells: int) -> Pose:
    """Measure a pose on a grid of this many cells along the longest diagonal."""
    rotation = rotation_to_bed(down)
    skin = model.skin.turned(rotation)
    cell = model.diagonal_mm / cells
    layers = slice_layers(skin.vertices, skin.faces, cell, cell)
    columns = stand_columns(skin, layers, options.orient_angle_deg + LIMIT_DEG, LAYER_MM, with_edges=True)
    support = float(columns.material(NOZZLE_MM).sum())
    hull = model.hull @ rotation.T
    height = float(np.ptp(hull[:, 2]))
    contact = skin.contact(CONTACT_MM)
    score = (
        options.orient_support_weight * support / model.volume_mm3
        + options.orient_contact_weight * max(0.0, 1 - contact / model.shadow_mm2)
        + options.orient_height_weight * height / model.diagonal_mm
    )
    scale = model.scale
    return Pose(
        score, down, support / scale**3, contact / scale**2, height / scale, _stands(hull, rotation @ model.center)
    )


def _stands(hull: Float64, center: Float64) -> bool:
    """Return whether the center of mass is above the contact with the bed, whose outline may be a thin support."""
    contact = hull[hull[:, 2] <= hull[:, 2].min() + CONTACT_MM][:, :2]
    try:
        outline = ConvexHull(contact)
    except (QhullError, ValueError):
        # a point or a line
        return False
    return bool((outline.equations[:, :2] @ center[:2] + outline.equations[:, 2]).max() <= 0)
