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
from meshhub.toolkit.geometry import extremes, face_normals, soup, turned, unit_vectors, weld
from meshhub.toolkit.hanging import REACH_LINES, Printable, find_hanging
from meshhub.toolkit.layers import Layers, slice_layers
from meshhub.toolkit.lengths import LINE_RATIO
from meshhub.toolkit.poses import center_of_mass, find_sides, rotation_to_bed
from meshhub.toolkit.support_material import Skin, stand_below, stand_columns

MAX_SIDES = 24
"""Maximum sides of the hull to try, the largest first."""

MAX_NORMALS = 12
"""Maximum directions of the surface to try, those with the largest area first."""

NORMAL_BIN = 8
"""Steps of a component of a normal; directions in one step, about 7 degrees wide, count as one."""

MAX_FACES = 60_000
"""Maximum faces on which poses are measured; more faces are smaller than the cells of a printer."""

MAX_EXACT_FACES = 240_000
"""Faces from which vertices in one cell are merged first: the reduction of 900,000 faces takes 10 s without."""

CLUSTER_CELLS = 512
"""Cells along the longest diagonal in which vertices are merged; smaller than those of `CELLS`."""

MAX_COARSE_FACES = 15_000
"""Maximum faces of the sample on which all poses are compared."""

COARSE_CELLS, CELLS = 56, 192
"""Cells along the longest diagonal, for all poses and for the best of them."""

MIN_CELL_MM = 0.3
"""Millimeters; smaller cells are finer than the lines of a printer."""

MAX_FINALISTS = 8
"""Poses that are measured on the finer grid."""

MAX_SAME_COSINE = float(np.cos(np.deg2rad(1.0)))
"""Cosine of the angle below which two directions count as one."""

MIN_SIZE_MM = 40.0
"""Shortest diagonal in millimeters; smaller models are compared at this size, because later steps may enlarge them."""

LAYER_MM, NOZZLE_MM = 0.2, 0.4
"""Layers and nozzle of usual printers of filament."""

BRIDGE_MM = 30.0
"""Millimeters up to which printers bridge between two ends, as for `check`."""

LIMIT_DEG = 1.0
"""Degrees beyond the steepest overhang at which slicers still add support."""

MIN_GAIN, MIN_GAIN_RATIO = 0.001, 0.05
"""Score, and share of the score, by which another pose must be better than the original pose."""

DELIBERATE_GAIN = 0.01
"""Gain by contact and height for which a pose may need more support; their default weights give at most 0.004."""

CONTACT_MM = 0.2
"""Millimeters above the bed within which a point touches it: the first layer."""

_AXES = [np.array(step, np.float64) for step in itertools.product((-1, 0, 1), repeat=3) if any(step)]


class Pose(NamedTuple):
    """A pose and its figures; a lower score is better.

    support_score, shape_score: shares of the support, and of contact and height, in the score
    support_mm3: filament below what a printer cannot build without support
    sliced_mm3: filament below all overhangs that are flatter than the angle, as slicers print it
    """

    down: Float64
    support_score: float
    shape_score: float
    support_mm3: float
    sliced_mm3: float
    contact_mm2: float
    height_mm: float
    is_stable: bool

    @property
    def score(self) -> float:
        """The score."""
        return self.support_score + self.shape_score

    def is_better_than(self, drawn: Pose) -> bool:
        """Return whether a turn from the original pose to this pose is worth it."""
        if self.is_stable != drawn.is_stable:
            return self.is_stable
        if drawn.score <= (1 + MIN_GAIN_RATIO) * self.score + MIN_GAIN:
            return False
        if drawn.shape_score - self.shape_score > DELIBERATE_GAIN:
            return True
        # estimates err, so both must agree that less support is needed
        return all(
            before > (1 + MIN_GAIN_RATIO) * after
            for before, after in ((drawn.support_mm3, self.support_mm3), (drawn.sliced_mm3, self.sliced_mm3))
        )


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

    Poses in which the model does not tip over are better than others. Among them, the score adds the support, the share
    of the shadow that does not touch the bed, and the height, each with its weight. The original pose is one of them.
    It stays if nothing in it needs support.

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
    drawn = _measure(model, as_drawn, options)
    poses = [drawn]
    is_deliberate = options.orient_contact_weight + options.orient_height_weight > DELIBERATE_GAIN
    if is_deliberate or drawn.support_mm3 > 0 or not drawn.is_stable:
        coarse = model._replace(skin=_simplify(model.skin.vertices, model.skin.faces, MAX_COARSE_FACES))
        rough = sorted((_measure_coarsely(coarse, down, options) for down in track(_list_directions(model))), key=_rank)
        poses = sorted([drawn, *(_measure(model, pose.down, options) for pose in rough[:MAX_FINALISTS])], key=_rank)
    best = next((pose for pose in poses if pose.is_better_than(drawn)), drawn)
    did(
        support_before_mm3=drawn.support_mm3,
        support_mm3=best.support_mm3,
        sliced_support_before_mm3=drawn.sliced_mm3,
        sliced_support_mm3=best.sliced_mm3,
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
    if len(faces) > MAX_EXACT_FACES:
        vertices, faces = _merge_vertices(vertices, faces)
    if len(faces) > max_faces:
        # the library rejects read-only arrays, so both are copied
        points, faces = simplify(
            vertices.astype(np.float32), faces.astype(np.int32), target_reduction=1 - max_faces / len(faces)
        )
        vertices, faces = points.astype(np.float64), faces.astype(np.int32)
    return Skin.of(vertices, faces)


def _merge_vertices(vertices: Float64, faces: Int32) -> tuple[Float64, Int32]:
    """Move the vertices in each cell of a grid to one of them, and drop the faces that collapse."""
    low, high = extremes(vertices)
    first, index = weld(((vertices - low) / (np.linalg.norm(high - low) / CLUSTER_CELLS)).astype(np.int32))
    faces = index[faces]
    a, b, c = faces.T
    return vertices[first], faces[(a != b) & (b != c) & (c != a)]


def _measure_coarsely(model: _Model, down: Float64, options: OrientOptions) -> Pose:
    """Measure a pose on few cells, which are too large to follow what holds the layers."""
    skin = model.skin.turned(rotation_to_bed(down))
    cell = model.diagonal_mm / COARSE_CELLS
    return _rate(
        model,
        down,
        skin,
        0.0,
        _support_slopes(skin, slice_layers(skin.vertices, skin.faces, cell, cell), options),
        options,
    )


def _measure(model: _Model, down: Float64, options: OrientOptions) -> Pose:
    """Measure a pose, and follow its layers from the bed up."""
    skin = model.skin.turned(rotation_to_bed(down))
    cell = max(MIN_CELL_MM, model.diagonal_mm / CELLS)
    layers = slice_layers(skin.vertices, skin.faces, cell, cell)
    line = LINE_RATIO * NOZZLE_MM
    hanging = find_hanging(layers, Printable(options.orient_angle_deg, REACH_LINES * line, BRIDGE_MM, line))
    support = float(stand_below(layers, hanging.bottoms(layers), LAYER_MM).material(NOZZLE_MM).sum())
    return _rate(model, down, skin, support, _support_slopes(skin, layers, options), options)


def _support_slopes(skin: Skin, layers: Layers, options: OrientOptions) -> float:
    """Return the filament below all overhangs in mm³."""
    columns = stand_columns(skin, layers, options.orient_angle_deg + LIMIT_DEG, LAYER_MM, with_edges=True)
    return float(columns.material(NOZZLE_MM).sum())


def _rate(model: _Model, down: Float64, skin: Skin, support: float, sliced: float, options: OrientOptions) -> Pose:
    """Return the pose of a turned skin with its support in mm³."""
    rotation = rotation_to_bed(down)
    hull = model.hull @ rotation.T
    height = float(np.ptp(hull[:, 2]))
    contact = skin.contact(CONTACT_MM)
    scale = model.scale
    return Pose(
        down,
        options.orient_support_weight * (support + sliced) / model.volume_mm3,
        options.orient_contact_weight * max(0.0, 1 - contact / model.shadow_mm2)
        + options.orient_height_weight * height / model.diagonal_mm,
        support / scale**3,
        sliced / scale**3,
        contact / scale**2,
        height / scale,
        _stands(hull, rotation @ model.center),
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
