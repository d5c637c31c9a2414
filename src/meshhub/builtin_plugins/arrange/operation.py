"""Place the objects of a scene side by side on beds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.arrange import ArrangeOptions
from meshhub.builtin_plugins.arrange.packing import GridBed, Item, Packing, Place, Pose, Shadow, pack
from meshhub.builtin_plugins.arrange.rectangles import RectangleBed
from meshhub.builtin_plugins.arrange.shadows import ROUNDING_RATIO, Cells, draw_shadow, find_shape
from meshhub.errors import ConversionFailed, InvalidOption, ModelTooComplex, format_count, format_number, quote
from meshhub.model.notes import did, note
from meshhub.model.progress import track
from meshhub.model.scene import Float64, Part, Scene
from meshhub.toolkit.geometry import bounds, extremes, round_lengths, soup, without_unused_meshes
from meshhub.toolkit.objects import find_objects, renamed

GRID_SIZES = sorted(range(300, 601), key=lambda size: abs(size - 440))
"""Cells along the longer side of a bed, 0.5 mm on a bed of 220 mm for 440, which is preferred. One of them makes cells
of 0.5 mm or of its halves or multiples, of which most sizes and gaps are whole numbers."""

MAX_TRIED_PLACES, MIN_POSES = 400_000_000, 2
"""Objects times poses times cells of a bed, from which fewer poses are tried: 250 objects in 12 poses take 12 s. The
first two are those as drawn and turned by the least angle."""

MAX_OBJECTS = 10_000
"""Objects; a service must end, and no slicer shows more."""

PLATE_STRIDE = 1.2
"""Distance between the middles of two beds, per side of a bed; BambuStudio and OrcaSlicer place theirs so."""

MIDDLE_DIGITS = 6
"""Digits after the decimal point of the reported middles, in millimeters."""

ANGLES_DEG: dict[str, tuple[float, ...]] = {
    "none": (0.0,),
    "right-angles": (0.0, 90.0, 180.0, 270.0),
    "any": tuple(15.0 * step for step in range(24)),
}
"""Turns about Z that are tried."""


@dataclass(frozen=True)
class _Shape:
    """Objects of one shape, which differ only by where they are.

    numbers:  number of each object in the scene
    objects:  the parts of each object
    matrices: (4, 4) for each pose: turn the first one about Z, and move its lowest X, Y and Z to 0
    sizes:    (2,) width and depth of each pose, in mm
    """

    numbers: list[int] = field(default_factory=list)
    objects: list[list[Part]] = field(default_factory=list)
    matrices: list[Float64] = field(default_factory=list)
    sizes: list[Float64] = field(default_factory=list)

    def matrix(self, number: int, pose: int) -> Float64:
        """Return the matrix of a pose for another one of the objects."""
        shift = np.eye(4)
        shift[:3, 3] = self.objects[0][0].transform[:3, 3] - self.objects[number][0].transform[:3, 3]
        return self.matrices[pose] @ shift


def run(scene: Scene, options: ArrangeOptions) -> Scene:
    """Place each object on the bed, the largest first, where it costs least room.

    The middle of the first bed is at X = Y = 0, its surface at Z = 0. Several beds stand in rows, as in slicers.

    Args:
        scene: Millimeters, Z up.
        options: `arrange_bed` None leaves the scene unchanged.
    Returns:
        Scene with moved and turned objects; instances stay shared. Each part has the number of its bed.
    Raises:
        ConversionFailed: An object is larger than the bed.
        ModelTooComplex: There are more than MAX_OBJECTS objects.
        InvalidOption: `arrange_plate` is larger than the number of beds.
    """
    if options.arrange_bed is None:
        return scene
    objects = _find_objects(scene, options.arrange_by)
    total = len(objects)
    if total > MAX_OBJECTS:
        raise ModelTooComplex(
            f"the model has {total:,} objects, and '{{arrange_bed}}' places at most {MAX_OBJECTS:,}; convert fewer",
            options=("arrange_bed",),
            values={"count": total, "limit": MAX_OBJECTS},
        )
    bed = np.array(options.bed())
    shapes = _find_shapes(objects)
    for shape in shapes:
        _add_poses(scene, shape, options.arrange_turns)
    middles, places = _pack(scene, shapes, bed, options.arrange_gap_mm)
    bed_count = len(middles)
    kept = options.arrange_plate
    if kept is not None and kept > bed_count:
        raise InvalidOption(
            f"option '{{arrange_plate}}' is {kept}, but the objects need only {format_count(bed_count, 'bed', 'beds')}",
            options=("arrange_plate",),
        )
    bed_middles = _find_middles(bed_count, bed) if kept is None else np.zeros((bed_count, 2))
    placed: dict[int, list[Part]] = {}
    for index, shape in enumerate(shapes):
        for number, (plate, spot) in enumerate(places[index]):
            if kept not in (None, plate + 1):
                continue
            matrix = np.eye(4)
            # in the middle of its bed is what stands there
            matrix[:2, 3] = bed_middles[plate] + np.array([spot.column, spot.row]) - middles[plate]
            matrix = matrix @ shape.matrix(number, spot.pose)
            placed[shape.numbers[number]] = [
                replace(part, transform=matrix @ part.transform, plate=plate if kept is None else 0)
                for part in shape.objects[number]
            ]
    parts = tuple(part for number in sorted(placed) for part in placed[number])
    result = without_unused_meshes(replace(scene, parts=parts))
    did(objects=total)
    counts = np.bincount([plate for chosen in places for plate, _ in chosen])
    _report_beds(counts, bed, bed_middles - bounds(result)[:, :2].mean(axis=0), kept)
    return result


def _pack(scene: Scene, shapes: list[_Shape], bed: Float64, gap_mm: float) -> tuple[Float64, list[list[Place]]]:
    """Pack the objects of all shapes.

    Rectangles are packed exactly. Other outlines are packed as the rectangles around them as well as on a grid, on
    which they nest but are rounded up, and the better of both is returned.

    Returns:
        (b, 2) middles of what stands on each bed, X and Y from the corner of the bed, in mm; and the places of the
        objects of each shape, in mm.
    Raises:
        ConversionFailed: An object is larger than the bed.
    """
    total = sum(len(shape.objects) for shape in shapes)
    cell = _choose_cell(shapes, bed, gap_mm)
    draw = _draw_box if total == 1 else draw_shadow
    drawn = [_draw(draw, scene, shape, bed, cell) for shape in track(shapes)]
    for shape, poses in zip(shapes, drawn, strict=True):
        if not any(pose.fits for pose in poses):
            raise _too_large(scene, shape)
    boxes = _pack_boxes(shapes, drawn, bed, gap_mm)
    is_full = all(pose.cells.all() for poses in drawn for pose in poses if pose.fits)
    if not is_full:
        grid = _pack_shadows(shapes, drawn, _round_up(bed / cell)[::-1], int(_round_up(gap_mm / cell)))
        beds, used = grid.size
        if (beds, used * cell**2) < boxes.size:
            middles = cell * np.array([plate.middle()[::-1] for plate in grid.plates])
            return middles, [[place.scaled(cell) for place in grid.places[index]] for index in range(len(shapes))]
    return np.array([plate.middle()[::-1] for plate in boxes.plates]), [boxes.places[i] for i in range(len(shapes))]


def _pack_boxes(shapes: list[_Shape], drawn: list[list[Pose]], bed: Float64, gap_mm: float) -> Packing[Float64]:
    """Pack the rectangles around the objects, without a grid."""
    items = []
    for shape, poses in zip(shapes, drawn, strict=True):
        stamps = {number: shape.sizes[number][::-1] for number, pose in enumerate(poses) if pose.fits}
        first = shape.sizes[0]
        items.append(Item(stamps, len(shape.objects), float(first.prod()), float(first.max())))
    return pack(items, lambda growth: RectangleBed(bed[::-1], gap_mm, growth))


def _pack_shadows(shapes: list[_Shape], drawn: list[list[Pose]], size: NDArray[np.intp], gap: int) -> Packing[Shadow]:
    """Pack the shadows of the objects on beds of cells."""
    items = []
    total = sum(len(shape.objects) for shape in shapes)
    count = max(MIN_POSES, MAX_TRIED_PLACES // (total * int(size.prod())))
    for shape, poses in zip(shapes, drawn, strict=True):
        fitting = [number for number, pose in enumerate(poses) if pose.fits]
        stamps = {number: Shadow(poses[number], gap) for number in fitting[:count]}
        first = poses[0].cells
        items.append(Item(stamps, len(shape.objects), float(first.sum()), float(max(first.shape))))
    rows, columns = size.tolist()
    return pack(items, lambda growth: GridBed((rows, columns), growth))


def _report_beds(counts: NDArray[np.intp], bed: Float64, middles: Float64, kept: int | None) -> None:
    """Report the beds, or the one that is kept.

    Args:
        counts: (b,) number of the objects on each bed.
        bed: Width and depth.
        middles: (b, 2) middles of the beds, relative to that of the objects, because writers and `place-on-bed` move
            all of them together.
        kept: Number of the bed whose objects are kept, from 1.
    """
    shown = slice(None) if kept is None else slice(kept - 1, kept)
    did(
        beds=len(counts),
        bed_objects=counts[shown].tolist(),
        bed_mm=bed.tolist(),
        bed_middles_mm=[*middles[shown].round(MIDDLE_DIGITS).ravel().tolist()],
    )
    if len(counts) > 1 and kept is None:
        note(
            "several_beds",
            f"the objects need {len(counts)} beds, which stand side by side; {{each_bed}} writes a file for each, and "
            "{arrange_plate} keeps one",
            options=("each_bed", "arrange_plate"),
            count=len(counts),
        )


def _find_objects(scene: Scene, by: str) -> list[list[Part]]:
    """Return what is placed as one: the parts of each object, without the roots of their paths, or each part alone."""
    objects, roots = find_objects(scene)
    if by == "objects":
        return [[replace(part, path=part.path[roots:]) for part in parts] for parts in objects]
    # the parts of one group on several beds would be one object of a slicer
    alone = [replace(part, path=part.path[roots:]) for part in chain.from_iterable(objects)]
    return [[renamed(part, 0, number)] for number, part in enumerate(alone, 1)]


def _find_shapes(objects: list[list[Part]]) -> list[_Shape]:
    """Group the objects of one shape: the same meshes, equally turned, and equally apart."""
    shapes: dict[object, _Shape] = {}
    for number, parts in enumerate(objects):
        first = parts[0].transform[:3, 3]
        key = tuple(
            (part.mesh, part.transform[:3, :3].tobytes(), (part.transform[:3, 3] - first).tobytes()) for part in parts
        )
        shape = shapes.setdefault(key, _Shape())
        shape.numbers.append(number)
        shape.objects.append(parts)
    return list(shapes.values())


def _add_poses(scene: Scene, shape: _Shape, turns: str) -> None:
    """Add the turns about Z of a shape, with their sizes."""
    points = _points(scene, shape)
    for angle in ANGLES_DEG[turns]:
        cosine, sine = np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))
        matrix = np.eye(4)
        # exact for right angles, so that coordinates keep their values
        matrix[:2, :2] = np.round([[cosine, -sine], [sine, cosine]], 15)
        low, high = extremes(points if angle == 0 else points @ matrix[:3, :3].T)
        matrix[:3, 3] = -low
        shape.matrices.append(matrix)
        shape.sizes.append(round_lengths(high - low, np.stack([low, high]))[:2])


def _points(scene: Scene, shape: _Shape) -> Float64:
    """Return the corners (3 m, 3) of the triangles of the first object of a shape."""
    vertices, faces = soup(replace(scene, parts=tuple(shape.objects[0])))
    return vertices[faces].reshape(-1, 3)


def _draw_box(triangles: Float64, cell: float) -> Cells:
    """Return the rectangle around a shadow, which is all that an object alone needs."""
    return np.ones(find_shape(triangles, cell), np.bool_)


def _draw(
    draw: Callable[[Float64, float], Cells], scene: Scene, shape: _Shape, bed: Float64, cell: float
) -> list[Pose]:
    """Return the shadows of the poses of a shape; of equal shadows, only the first one fits a bed."""
    points = _points(scene, shape)
    poses: list[Pose] = []
    for matrix, size in zip(shape.matrices, shape.sizes, strict=True):
        outline = (points @ matrix[:2, :3].T + matrix[:2, 3]).reshape(-1, 3, 2)
        column, row = np.floor((bed - size) / cell + ROUNDING_RATIO).astype(int).tolist()
        pose = Pose(draw(np.maximum(outline, 0), cell), row, column)
        is_known = any(np.array_equal(pose.cells, other.cells) for other in poses)
        poses.append(pose._replace(last_row=-1) if is_known else pose)
    return poses


def _choose_cell(shapes: list[_Shape], bed: Float64, gap_mm: float) -> float:
    """Return the side of a cell, in mm, to which the sizes of the objects and the gap are rounded up least."""
    sizes = np.array([shape.sizes[0] for shape in shapes]).reshape(-1, 1)
    counts = np.repeat([len(shape.objects) for shape in shapes], 2)
    cells = float(bed.max()) / np.array(GRID_SIZES)
    waste = (_round_up(sizes / cells) + _round_up(gap_mm / cells)) * cells - sizes - gap_mm
    return float(cells[np.argmin(counts @ waste)])


def _round_up(cells: Float64 | float) -> NDArray[np.intp]:
    """Return how many whole cells a length takes."""
    return np.ceil(np.asarray(cells) - ROUNDING_RATIO).astype(np.intp)


def _find_middles(count: int, bed: Float64) -> Float64:
    """Return the middles (count, 2) of beds in rows."""
    row, column = np.divmod(np.arange(count), int(np.ceil(np.sqrt(count))))
    middles: Float64 = np.stack([column, -row], axis=1) * bed * PLATE_STRIDE
    return middles


def _too_large(scene: Scene, shape: _Shape) -> ConversionFailed:
    """Describe an object that fits no bed."""
    part = shape.objects[0][0]
    name = (part.path[0] if part.path else part.name) or scene.meshes[part.mesh].name or "the model"
    box = bounds(replace(scene, parts=tuple(shape.objects[0])))
    width, depth = (format_number(side, 4) for side in (box[1] - box[0])[:2])
    by = "" if len(shape.objects[0]) == 1 else ", place parts alone with '{arrange_by}'"
    return ConversionFailed(
        f"{quote(name)} is {width} × {depth} mm, larger than the bed of '{{arrange_bed}}'; cut it with "
        f"'{{split_for_bed}}', or shrink it with '{{fit_mm}}'{by}",
        options=("arrange_bed", "split_for_bed", "fit_mm", "arrange_by")
        if by
        else ("arrange_bed", "split_for_bed", "fit_mm"),
    )
