"""Turn the whole scene, as one rigid body, so that it prints with little support."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from fast_simplification import simplify
from scipy.spatial import ConvexHull, QhullError

from meshhub.builtin_plugins.orient import OrientOptions
from meshhub.model.notes import did, note
from meshhub.model.scene import Float64, Int32, Scene
from meshhub.toolkit.geometry import extremes, face_normals, soup, turned, unit_vectors
from meshhub.toolkit.poses import center_of_mass, find_sides, rotation_to_bed
from meshhub.toolkit.supports import measure_support

MAX_SIDES = 24
"""Maximum sides of the hull to try, the largest first."""

MAX_NORMALS = 12
"""Maximum directions of the surface to try, those with the largest area first."""

NORMAL_BIN = 8
"""Steps of a component of a normal; directions in one step, about 7 degrees wide, count as one."""

MAX_FACES = 60_000
"""Maximum faces of the sample on which many poses are compared; the best poses are measured on all faces."""

MAX_FINALISTS = 4
"""Poses that are measured on all faces."""

MAX_SAME_COSINE = float(np.cos(np.deg2rad(1.0)))
"""Cosine of the angle below which two directions count as one."""

MIN_GAIN = 0.005
"""Score by which another pose must be better than the original pose."""

CONTACT_MM = 0.2
"""Millimeters above the bed within which a point touches it: the first layer."""

TIP_PENALTY = 1.0
"""Added to the score of a pose in which the model tips over: as much as a support of the size of the hull."""

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

    volume_mm3: of the hull
    shadow_mm2: the area of the largest side of the bounding box
    """

    vertices: Float64
    faces: Int32
    hull: Float64
    center: Float64
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
        volume = float(hull.volume) * float(sides.max()) ** 3
        shadow = float(np.sort(sides)[1:].prod())
        corners = used[hull.vertices]
        return cls(
            vertices, faces, corners, center_of_mass(vertices, faces), volume, shadow, float(np.linalg.norm(sides))
        )


def run(scene: Scene, options: OrientOptions) -> Scene:
    """Turn the scene to the best of many poses: on the sides of its hull, on its main surfaces, and along the axes.

    The score of a pose adds the volume of its support, the share of the shadow that does not touch the bed, and the
    height, each with its weight; a pose in which the model tips over costs TIP_PENALTY. The original pose is one of
    them, and wins if it is as good.

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
    vertices, faces = soup(scene)
    model = _Model.of(vertices, faces)
    if model is None:
        note("not_oriented", "the model is flat or a line, and was not turned")
        return scene
    coarse = _simplify(model)
    as_drawn = np.array([0.0, 0.0, -1.0])
    rough = sorted((_measure(coarse, down, options) for down in _list_directions(model)), key=_rank)
    finalists = [pose.down for pose in rough[:MAX_FINALISTS]]
    drawn = _measure(model, as_drawn, options)
    poses = sorted([drawn, *(_measure(model, down, options) for down in finalists)], key=_rank)
    # a turn must be worth it
    best = drawn if drawn.score <= poses[0].score + MIN_GAIN else poses[0]
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


def _rank(pose: Pose) -> tuple[float, float]:
    """Return the sort key of poses: the rounded score, then how little they turn the model."""
    return round(pose.score, 6), float(pose.down[2])


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
    normals = face_normals(model.vertices, model.faces)
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


def _simplify(model: _Model) -> _Model:
    """Return the model with at most about MAX_FACES faces."""
    if len(model.faces) <= MAX_FACES:
        return model
    vertices, faces = simplify(
        model.vertices.astype(np.float32), model.faces, target_reduction=1 - MAX_FACES / len(model.faces)
    )
    return model._replace(vertices=vertices.astype(np.float64), faces=faces.astype(np.int32))


def _measure(model: _Model, down: Float64, options: OrientOptions) -> Pose:
    """Measure a pose."""
    rotation = rotation_to_bed(down)
    support = measure_support(model.vertices @ rotation.T, model.faces, options.orient_angle_deg)
    hull = model.hull @ rotation.T
    height = float(np.ptp(hull[:, 2]))
    is_stable = _stands(hull, rotation @ model.center)
    score = (
        options.orient_support_weight * support.volume_mm3 / model.volume_mm3
        + options.orient_contact_weight * max(0.0, 1 - support.contact_mm2 / model.shadow_mm2)
        + options.orient_height_weight * height / model.diagonal_mm
        + (0.0 if is_stable else TIP_PENALTY)
    )
    return Pose(score, down, support.volume_mm3, support.contact_mm2, height, is_stable)


def _stands(hull: Float64, center: Float64) -> bool:
    """Return whether the center of mass is above the contact with the bed, whose outline may be a thin support."""
    contact = hull[hull[:, 2] <= hull[:, 2].min() + CONTACT_MM][:, :2]
    try:
        outline = ConvexHull(contact)
    except (QhullError, ValueError):
        # a point or a line
        return False
    return bool((outline.equations[:, :2] @ center[:2] + outline.equations[:, 2]).max() <= 0)
