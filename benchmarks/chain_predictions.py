"""Operations of `operations.py`: options that suit a part, and what must be true of the result.

Predictions follow the order of the stages. Where an operation may do anything in a range, the prediction is the range.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import manifold3d
import numpy as np
from manifold3d import Manifold, Mesh64, OpType
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from meshhub.model.scene import Float64, Int32, Scene
from meshhub.toolkit.geometry import transformed

ROUNDING_MM = 1e-3
"""Millimeters by which a file of 32-bit numbers may move a surface; the parts are within 600 mm of the origin."""

OFFSET_RATIO = 0.25
"""Share of an offset by which a side may miss it; rounded edges and steep corners are exact to less."""

TEXT_AREA_MM2 = 60.0
"""Square millimeters that "A1" with a height of 5 mm covers at most: 12 x 5."""


@dataclass(frozen=True)
class PartFigures:
    """Figures of a part as it stands in its file.

    file_volume:   sum over the tetrahedra of its faces
    signed_volume: the same of the solids of manifold3d, which leaves out faces that lie on each other
    united_volume: of the union of all bodies, without cavities
    cavity_volume: of the cavities
    area:          of the surface in mm²
    bodies:        shells that are no cavities; those that share an edge are one
    shells:        the same, apart where they only share edges; unknown, so infinite, if manifold3d left out faces
    hull:          (n, 3) corners of the convex hull in mm
    """

    faces: int
    file_volume: float
    signed_volume: float
    united_volume: float
    cavity_volume: float
    area: float
    bodies: int
    shells: float
    hull: Float64

    @property
    def sides(self) -> Float64:
        """Extents along X, Y and Z in mm."""
        sides: Float64 = np.ptp(self.hull, axis=0)
        return sides


@dataclass(frozen=True)
class Prediction:
    """What must be true of a result.

    volume:     least and greatest volume in mm³
    bodies:     least and greatest number of bodies
    area:       greatest area in mm², for tolerances
    hull:       (n, 3) points with the sides of the model in mm; None if the pose is not predicted
    growth:     (2, 3) least and greatest growth of the sides beyond those of `hull`
    scale:      factor since the source; None if it depends on a pose
    is_source:  whether the model is the source, only scaled
    is_similar: whether the model is the source, only scaled and turned
    is_on_bed:  whether the lowest point must be at 0
    wall:       least wall around cavities in mm; 0 if nothing is predicted
    """

    volume: tuple[float, float]
    bodies: tuple[int, float]
    area: float
    hull: Float64 | None
    growth: Float64 = dataclasses.field(default_factory=lambda: np.zeros((2, 3)))
    scale: float | None = 1.0
    is_source: bool = True
    is_similar: bool = True
    is_on_bed: bool = False
    wall: float = 0.0

    def change(self, **fields: object) -> Prediction:
        """Return the prediction after an operation that changes the shape."""
        return dataclasses.replace(self, **{"is_source": False, "is_similar": False, **fields})  # type: ignore[arg-type]

    def add_volume(self, low: float, high: float) -> tuple[float, float]:
        """Return the range of the volume after another range was added."""
        return max(0.0, self.volume[0] + low), self.volume[1] + high

    def grow(self, low: object, high: object) -> Float64:
        """Return the growth of the sides after they grew by another range."""
        return self.growth + np.stack([np.broadcast_to(np.asarray(x, np.float64), 3) for x in (low, high)])

    @property
    def base_area(self) -> float:
        """Greatest area in mm² that a plane can cut out of the model."""
        if self.hull is None:
            return math.inf
        sides = np.sort(np.ptp(self.hull, axis=0) + self.growth[1])
        return float(sides[1] * sides[2])


ReadSource = Callable[[], Manifold]
"""Reads the source as one solid."""

Predict = Callable[[Prediction, PartFigures, ReadSource], Prediction]


@dataclass(frozen=True)
class Operation:
    """An operation with options for a part.

    options:   returns the options
    predict:   returns the prediction after the operation, from the one before it, the figures and the source
    primitive: whether a block in the middle of the part is a second input
    """

    options: Callable[[PartFigures], Mapping[str, object]]
    predict: Predict
    primitive: bool = False


def read_surfaces(scene: Scene) -> list[tuple[Float64, Int32]]:
    """Return each part as welded 32-bit numbers and triangles, as another program reads it from STL."""
    surfaces = []
    for part in scene.parts:
        mesh = scene.meshes[part.mesh]
        # + 0.0 turns -0.0 into 0.0
        points = transformed(mesh.vertices, part.transform).astype(np.float32) + np.float32(0.0)
        distinct, index = np.unique(points, axis=0, return_inverse=True)
        faces = index.reshape(-1)[mesh.faces]
        faces = faces[(faces != np.roll(faces, 1, axis=1)).all(axis=1)]
        if np.linalg.det(part.transform[:3, :3]) < 0:
            faces = faces[:, ::-1]
        surfaces.append((distinct.astype(np.float64), np.ascontiguousarray(faces, np.int32)))
    return surfaces


def read_solids(scene: Scene) -> list[Manifold]:
    """Return each part as a solid, which may be invalid."""
    return [Manifold(Mesh64(points, faces.astype(np.uint64))) for points, faces in read_surfaces(scene)]


def measure(solids: list[Manifold], file_volume: float, file_faces: int) -> PartFigures:
    """Return the figures of valid solids, and the volume in mm³ and the faces of their file."""
    shells = [shell for solid in solids for shell in solid.decompose()]
    bodies = [shell for shell in shells if shell.volume() > 0]
    cavities = sum(-shell.volume() for shell in shells if shell.volume() < 0)
    signed = sum(shell.volume() for shell in shells)
    points = np.concatenate([np.asarray(solid.hull().to_mesh64().vert_properties)[:, :3] for solid in solids])
    united = signed + cavities if len(bodies) == 1 else Manifold.batch_boolean(bodies, OpType.Add).volume()
    return PartFigures(
        faces=sum(solid.num_tri() for solid in solids),
        file_volume=file_volume,
        signed_volume=signed,
        united_volume=united - cavities,
        cavity_volume=cavities,
        area=sum(solid.surface_area() for solid in solids),
        bodies=sum(count_bodies(solid) for solid in solids),
        shells=len(bodies) if sum(solid.num_tri() for solid in solids) == file_faces else math.inf,
        hull=points,
    )


def count_bodies(solid: Manifold) -> int:
    """Return the number of bodies; those that share an edge are one, because four faces at an edge pair in two ways."""
    mesh = solid.to_mesh64()
    points, index = np.unique(np.asarray(mesh.vert_properties)[:, :3], axis=0, return_inverse=True)
    faces = index.reshape(-1)[np.asarray(mesh.tri_verts).astype(np.int64)]
    ends = np.sort(np.stack([faces, np.roll(faces, 1, axis=1)], axis=2), axis=2)
    _, edges = np.unique(ends[..., 0] * len(points) + ends[..., 1], return_inverse=True)
    face = np.repeat(np.arange(len(faces)), 3)
    size = len(faces) + int(edges.max()) + 1
    links = coo_array((np.ones(len(face), bool), (face, len(faces) + edges.reshape(-1))), shape=(size, size))
    _, label = connected_components(links, directed=False)
    volumes = np.linalg.det(points[faces])
    return int((np.bincount(label[: len(faces)], weights=volumes) > 0).sum())


def make_block(figures: PartFigures) -> Manifold:
    """Return a block in the middle of a part, half as long as each side."""
    low, sides = figures.hull.min(axis=0), figures.sides
    return Manifold.cube((sides / 2).tolist()).translate((low + sides / 4).tolist())


def start(figures: PartFigures) -> Prediction:
    """Return the prediction of a plain conversion; shells that share an edge may come apart."""
    low, *_, high = sorted((figures.file_volume, figures.signed_volume, figures.united_volume))
    return Prediction((low, high), (figures.bodies, max(figures.bodies, figures.shells)), figures.area, figures.hull)


def judge(prediction: Prediction, solids: list[Manifold]) -> str:
    """Return what is wrong with the parts of a result, "" if nothing is."""
    for number, solid in enumerate(solids):
        if solid.status() is not manifold3d.Error.NoError:
            return f"part {number} of {len(solids)}: {solid.status().name}"
    shells = [shell for solid in solids for shell in solid.decompose()]
    volume = sum(solid.volume() for solid in solids)
    area = sum(solid.surface_area() for solid in solids)
    bodies = sum(count_bodies(solid) for solid in solids)
    tolerance = ROUNDING_MM * max(prediction.area, area)
    low, high = prediction.volume
    # "not" also rejects NaN
    if not low - tolerance <= volume <= high + tolerance or volume <= 0:
        return f"volume {volume:.6g}, predicted {_range(low, high)}"
    if not prediction.bodies[0] <= bodies <= prediction.bodies[1]:
        return f"{bodies} bodies, predicted {_range(*prediction.bodies)}"
    boxes = np.array([solid.bounding_box() for solid in solids])
    bottom, top = boxes[:, :3].min(axis=0), boxes[:, 3:].max(axis=0)
    if prediction.is_on_bed and abs(bottom[2]) > ROUNDING_MM:
        return f"lowest point at {bottom[2]:.4g}"
    if prediction.hull is not None:
        sides = top - bottom
        wanted = np.ptp(prediction.hull, axis=0) + prediction.growth
        if (sides < wanted[0] - 2 * ROUNDING_MM).any() or (sides > wanted[1] + 2 * ROUNDING_MM).any():
            return f"sides {_list(sides)}, predicted {_list(wanted[0])} to {_list(wanted[1])}"
    return _judge_walls(prediction.wall, shells)


def _judge_walls(wall: float, shells: list[Manifold]) -> str:
    """Return what is wrong with the walls around cavities.

    The distance from corners of cavities to a grid on the outside is never less than the wall.
    """
    cavities = [shell for shell in shells if shell.volume() < 0]
    if not wall or not cavities:
        return ""
    outside = Manifold.compose([shell for shell in shells if shell.volume() > 0]).refine_to_length(wall)
    corners = np.concatenate([np.asarray(cavity.to_mesh64().vert_properties)[:, :3] for cavity in cavities])
    distance = cKDTree(np.asarray(outside.to_mesh64().vert_properties)[:, :3]).query(corners)[0].min()
    return f"a wall of {distance:.3g} mm, at least {wall:.3g} wanted" if distance < 0.9 * wall else ""


def _range(low: float, high: float) -> str:
    return f"{low:.6g}" if low == high else f"{low:.6g} to {high:.6g}"


def _list(numbers: Float64) -> str:
    return " x ".join(f"{number:.4g}" for number in numbers)


def _same(prediction: Prediction, _: PartFigures, __: ReadSource) -> Prediction:
    return prediction


def _options(**options: object) -> Callable[[PartFigures], Mapping[str, object]]:
    return lambda _: options


def _unite(prediction: Prediction, _: PartFigures, __: ReadSource) -> Prediction:
    """Overlapping bodies become one; everything else stays."""
    return prediction.change(bodies=(1, prediction.bodies[1]))


def _repair_solid(prediction: Prediction, figures: PartFigures, _: ReadSource) -> Prediction:
    """Cavities are filled, bodies in others are united."""
    return prediction.change(
        volume=prediction.add_volume(-0.01 * prediction.volume[0], figures.cavity_volume),
        bodies=(1, prediction.bodies[1]),
    )


def _reduce(prediction: Prediction, _: PartFigures, __: ReadSource) -> Prediction:
    """A side may change by 1 % before a note names it, and the volume by about as much of the box."""
    sides = np.ptp(prediction.hull, axis=0) if prediction.hull is not None else np.zeros(3)
    change = 0.02 * prediction.volume[1]
    return prediction.change(
        volume=prediction.add_volume(-change, change), growth=prediction.grow(-0.01 * sides, 0.01 * sides)
    )


ERROR_MM = 0.05
"""Distance of a reduction in mm."""


def _reduce_within(prediction: Prediction, _: PartFigures, __: ReadSource) -> Prediction:
    """The surface moves by at most the distance."""
    change = ERROR_MM * prediction.area
    return prediction.change(
        volume=prediction.add_volume(-change, change), growth=prediction.grow(-2 * ERROR_MM, 2 * ERROR_MM)
    )


def _turn(prediction: Prediction, _: PartFigures, __: ReadSource) -> Prediction:
    """The pose is free, so only what does not depend on it is predicted."""
    return dataclasses.replace(prediction, hull=None, growth=np.zeros((2, 3)), is_source=False)


def _mirror(prediction: Prediction, _: PartFigures, __: ReadSource) -> Prediction:
    hull = None if prediction.hull is None else prediction.hull * [-1, 1, 1]
    return dataclasses.replace(prediction, hull=hull)


ANGLE_DEG = 30.0
"""Angle of a turn about X."""


def _rotate(prediction: Prediction, figures: PartFigures, source: ReadSource) -> Prediction:
    if prediction.hull is None or prediction.growth.any():
        return _turn(prediction, figures, source)
    sine, cosine = math.sin(math.radians(ANGLE_DEG)), math.cos(math.radians(ANGLE_DEG))
    matrix = np.array([[1, 0, 0], [0, cosine, -sine], [0, sine, cosine]])
    return dataclasses.replace(prediction, hull=prediction.hull @ matrix.T, is_source=False)


def _scale(prediction: Prediction, factor: float | None) -> Prediction:
    if factor is None:
        return dataclasses.replace(prediction, volume=(0.0, math.inf), hull=None, scale=None)
    return dataclasses.replace(
        prediction,
        volume=(prediction.volume[0] * factor**3, prediction.volume[1] * factor**3),
        area=prediction.area * factor**2,
        hull=None if prediction.hull is None else prediction.hull * factor,
        growth=prediction.growth * factor,
        scale=None if prediction.scale is None else prediction.scale * factor,
    )


def _fit(prediction: Prediction, figures: PartFigures, _: ReadSource) -> Prediction:
    if prediction.hull is None or prediction.growth.any():
        return _scale(prediction, None)
    return _scale(prediction, float((_fit_box(figures) / np.ptp(prediction.hull, axis=0)).min()))


def _fit_box(figures: PartFigures) -> Float64:
    return np.round(0.8 * figures.sides, 2) + 0.1


def _reach_height(prediction: Prediction, figures: PartFigures, _: ReadSource) -> Prediction:
    if prediction.hull is None or prediction.growth.any():
        return _scale(prediction, None)
    return _scale(prediction, _height(figures) / float(np.ptp(prediction.hull[:, 2])))


def _height(figures: PartFigures) -> float:
    return round(1.1 * float(figures.sides[2]), 2)


def _combine(kind: OpType) -> Predict:
    """Predict manifold3d's own answer, of the source and a block."""

    def predict(prediction: Prediction, figures: PartFigures, source: ReadSource) -> Prediction:
        hull = None if kind is OpType.Intersect else prediction.hull
        bodies = (1, math.inf)
        if not prediction.is_similar or prediction.scale is None:
            return prediction.change(volume=(0.0, math.inf), hull=hull, bodies=bodies)
        answer = Manifold.batch_boolean([source(), make_block(figures)], kind).volume() * prediction.scale**3
        # bodies that overlap count twice in one reading and once in the other
        slack = prediction.volume[1] - prediction.volume[0]
        return prediction.change(volume=(answer - slack, answer + slack), hull=hull, bodies=bodies)

    return predict


def _fill(prediction: Prediction, _: PartFigures, __: ReadSource) -> Prediction:
    """Holes become material; a filled hole may join no bodies and separate none."""
    room = math.inf if prediction.hull is None else float(np.ptp(prediction.hull, axis=0).prod())
    return prediction.change(volume=prediction.add_volume(0, room))


OFFSET_MM = -0.2
"""Offset that makes parts fit, in mm."""


def _shrink(prediction: Prediction, _: PartFigures, __: ReadSource) -> Prediction:
    """Faces move inward; thin places vanish, so that sides have no least growth, and bodies may part."""
    move = -OFFSET_MM
    return prediction.change(
        volume=prediction.add_volume(-2 * move * prediction.area, -0.3 * move * prediction.area),
        bodies=(1, math.inf),
        growth=prediction.grow(-math.inf, -2 * move * (1 - OFFSET_RATIO)),
    )


THICKEN_MM = 0.8
"""Least wall in mm: two lines of a nozzle of 0.4 mm."""


def _thicken(prediction: Prediction, _: PartFigures, __: ReadSource) -> Prediction:
    """Thin walls grow to both sides by at most half of the least wall; bodies may join."""
    return prediction.change(
        volume=prediction.add_volume(-0.02 * THICKEN_MM * prediction.area, THICKEN_MM * prediction.area),
        bodies=(1, prediction.bodies[1]),
        growth=prediction.grow(-0.02 * THICKEN_MM, THICKEN_MM),
    )


WALL_MM = 1.5
"""Wall of hollow bodies in mm."""


def _hollow(prediction: Prediction, figures: PartFigures, _: ReadSource) -> Prediction:
    """The outside stays, and at least the wall, except around old cavities; a body as thin as its wall stays solid."""
    wall = 0.0 if figures.cavity_volume else WALL_MM
    return prediction.change(volume=(0.0, prediction.volume[1]), wall=wall)


FLATTEN_MM = 0.5
"""Millimeters to cut off."""


def _flatten(prediction: Prediction, figures: PartFigures, source: ReadSource) -> Prediction:
    """What is left is what manifold3d leaves of the source; of another model, at most the box above the cut."""
    low = prediction.add_volume(-FLATTEN_MM * prediction.base_area, 0)[0]
    volume = low, prediction.volume[1]
    if prediction.is_source and prediction.scale is not None and prediction.bodies == (1, 1):
        height = float(figures.hull[:, 2].min()) + FLATTEN_MM / prediction.scale
        answer = source().trim_by_plane((0, 0, 1), height).volume() * prediction.scale**3
        volume = answer, answer
    return prediction.change(
        volume=volume,
        bodies=(1, math.inf),
        growth=prediction.grow([-math.inf, -math.inf, -FLATTEN_MM], [0, 0, -FLATTEN_MM]),
        wall=0.0,
    )


PLINTH_MM = 2.0
"""Thickness of a plinth in mm, and its default margin."""


def _stand(prediction: Prediction, _: PartFigures, __: ReadSource) -> Prediction:
    """A plate below the model, at most as wide as the box and its margin; what stands on points sinks to its middle."""
    if prediction.hull is None:
        return prediction.change(volume=(prediction.volume[0], math.inf), bodies=(1, prediction.bodies[1]))
    width, depth, _ = np.ptp(prediction.hull, axis=0) + prediction.growth[1] + 2 * PLINTH_MM
    return prediction.change(
        volume=prediction.add_volume(0, PLINTH_MM * float(width * depth)),
        bodies=(1, prediction.bodies[1]),
        growth=prediction.grow([0, 0, PLINTH_MM / 2], [2 * PLINTH_MM, 2 * PLINTH_MM, PLINTH_MM]),
    )


CHAMFER_MM = 0.4
"""Width of a chamfer in mm."""


def _chamfer(prediction: Prediction, _: PartFigures, __: ReadSource) -> Prediction:
    """Less than the lowest layer of that height vanishes."""
    return prediction.change(
        volume=prediction.add_volume(-CHAMFER_MM * prediction.base_area, 0),
        growth=prediction.grow([-2 * CHAMFER_MM, -2 * CHAMFER_MM, 0], 0),
        wall=0.0,
    )


DRAIN_MM = 2.0
"""Diameter of drain holes in mm."""


def _drain(prediction: Prediction, figures: PartFigures, _: ReadSource) -> Prediction:
    """Holes through walls, of which a hollow model has some for each cavity."""
    is_hollow = prediction.wall > 0 or figures.cavity_volume > 0
    low = 0.0 if is_hollow else prediction.volume[0]
    return prediction.change(volume=(low, prediction.volume[1]), wall=0.0)


TEXT_MM = 0.6
"""Default height of a text in mm."""


def _emboss(prediction: Prediction, _: PartFigures, __: ReadSource) -> Prediction:
    return prediction.change(
        volume=prediction.add_volume(0, TEXT_MM * TEXT_AREA_MM2), growth=prediction.grow(0, [0, 0, TEXT_MM]), wall=0.0
    )


def _copy(prediction: Prediction, _: PartFigures, __: ReadSource) -> Prediction:
    return prediction.change(
        volume=(2 * prediction.volume[0], 2 * prediction.volume[1]),
        bodies=(2 * prediction.bodies[0], 2 * prediction.bodies[1]),
        area=2 * prediction.area,
        hull=None,
    )


def _cut(prediction: Prediction, _: PartFigures, __: ReadSource) -> Prediction:
    """The pieces sum up, and keep their places."""
    return prediction.change(bodies=(prediction.bodies[0], math.inf), wall=0.0)


def _split_box(figures: PartFigures) -> str:
    return "x".join(f"{max(31.0, 0.6 * side):.1f}" for side in figures.sides.tolist())


def _arrange(prediction: Prediction, figures: PartFigures, source: ReadSource) -> Prediction:
    return dataclasses.replace(_turn(prediction, figures, source), is_on_bed=True)


def _place(prediction: Prediction, _: PartFigures, __: ReadSource) -> Prediction:
    return dataclasses.replace(prediction, is_on_bed=True)


OPERATIONS: Mapping[str, Operation] = {
    "repair": Operation(_options(repair=True), _same),
    "repair-solid": Operation(_options(repair_solid=True), _repair_solid),
    "repair-self-intersections": Operation(_options(repair_self_intersections=True), _unite),
    "optimize": Operation(lambda figures: {"optimize_target_faces": figures.faces // 2}, _reduce),
    "optimize-error": Operation(_options(optimize_max_error_mm=ERROR_MM), _reduce_within),
    "lay-flat": Operation(_options(lay_flat=True), _turn),
    "mirror": Operation(_options(mirror="x"), _mirror),
    "orient": Operation(_options(orient=True), _turn),
    "rotate": Operation(_options(rotate_x_deg=ANGLE_DEG), _rotate),
    "fit": Operation(lambda figures: {"fit_mm": "x".join(f"{side:.2f}" for side in _fit_box(figures))}, _fit),
    "scale": Operation(_options(scale_percent=90), lambda prediction, _, __: _scale(prediction, 0.9)),
    "target-height": Operation(lambda figures: {"target_height_mm": _height(figures)}, _reach_height),
    "union": Operation(_options(boolean="union"), _combine(OpType.Add), primitive=True),
    "difference": Operation(_options(boolean="difference"), _combine(OpType.Subtract), primitive=True),
    "intersection": Operation(_options(boolean="intersection"), _combine(OpType.Intersect), primitive=True),
    "fill-holes": Operation(_options(fill_holes_mm=4), _fill),
    "offset": Operation(_options(offset_mm=OFFSET_MM), _shrink),
    "thicken": Operation(_options(thicken_mm=THICKEN_MM), _thicken),
    "hollow": Operation(_options(hollow_wall_mm=WALL_MM), _hollow),
    "flatten-base": Operation(_options(flatten_base_mm=FLATTEN_MM), _flatten),
    "merge-parts": Operation(_options(merge_parts="union"), _unite),
    "plinth": Operation(_options(plinth_mm=PLINTH_MM), _stand),
    "chamfer-base": Operation(_options(chamfer_base_mm=CHAMFER_MM), _chamfer),
    "drain": Operation(_options(drain_holes_mm=DRAIN_MM), _drain),
    "emboss": Operation(_options(emboss_text="A1"), _emboss),
    "copies": Operation(_options(copies=2), _copy),
    "cut-plane": Operation(_options(cut_plane="z=50%"), _cut),
    "split-for-bed": Operation(lambda figures: {"split_for_bed": _split_box(figures)}, _cut),
    "split-parts": Operation(_options(split_parts=True), _cut),
    "reduce-colors": Operation(_options(reduce_colors=4), _same),
    "arrange": Operation(_options(arrange_bed="1000x1000"), _arrange),
    "place-on-bed": Operation(_options(place_on_bed=True), _place),
}
"""Operations in the order of their stages."""


def predict(chain: tuple[str, ...], figures: PartFigures, source: ReadSource) -> Prediction:
    """Return the prediction of a chain, whose operations are in the order of the stages."""
    prediction = start(figures)
    for name in chain:
        prediction = OPERATIONS[name].predict(prediction, figures, source)
    return prediction
