"""Check `estimate`: volume, weight, support and time of a print."""

# why this way: docs/decisions/0036-estimates.md
from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from msgspec import structs

from meshhub.builtin_plugins.print import PrintOptions
from meshhub.builtin_plugins.print.bodies import FLOAT32_RATIO, oriented, sheets_of, topology_of
from meshhub.builtin_plugins.print.deposits import Shells, Spacing, fill_shells, line_spacing
from meshhub.builtin_plugins.print.layering import CELL_RATIO, hanging_of, layers_of
from meshhub.model.estimate import Estimate, PartEstimate
from meshhub.model.notes import did, note
from meshhub.model.scene import Float64, Int32, Mesh, Scene
from meshhub.model.verdict import Finding
from meshhub.toolkit.geometry import area, extremes, face_normals, placed_mesh, round_lengths, signed_volume, soup
from meshhub.toolkit.layers import Layers, slice_layers
from meshhub.toolkit.lengths import LINE_RATIO
from meshhub.toolkit.once_per_scene import OncePerScene
from meshhub.toolkit.scene_defects import find_defects
from meshhub.toolkit.support_material import Skin, stand_below, stand_everywhere
from meshhub.toolkit.union_volume import measure_union

MAX_CELLS_COUNT = 4_000_000
"""Maximum cells of the model, and of all its parts together."""

WALL_CELLS_COUNT = 4
"""Cells across the mean wall of a model, below which it gets four times as many cells."""

MAX_PARTS_COUNT = 100
"""Maximum parts with own figures."""

VOLUME_COLUMNS_COUNT = 400
"""Columns along a side of the model that measure how much of its volume overlaps."""

MAX_GRID_ERROR_RATIO = 0.05
"""Difference of the cells from the volume of an open surface up to which they are scaled to it."""

RESIN_SUPPORT_RATIO = 0.1
"""Share of the space of support that pillars of resin fill; an assumption."""

SLOW_RATIO = 0.5
"""Speed of lines that are visible from outside or above, and of all lines of the first layer, per speed of the others.
"""

SHORT_LOOP_SPEED_MM_S = 15.0
"""Speed of short loops of walls."""

ACCELERATION_MM_S2, CORNER_SPEED_MM_S = 1000.0, 10.0
"""Acceleration of common printers, and the speed at which they pass corners."""

SOLID_TURNS, SPARSE_TURNS, WALL_TURNS_PER_MM = 1.17, 1.55, 0.044
"""Stops at corners per line of a solid layer, per line of infill, and per millimeter of walls; fitted."""

CONTOUR_S, REGION_S = 0.52, 0.27
"""Seconds of retraction and travel per closed wall, and per region of solid layers and infill; fitted."""

TRAVEL_S_PER_MM = 0.006
"""Seconds of travel per millimeter of the contours of a layer; fitted."""

MIN_LAYER_S, MIN_SPEED_MM_S = 5.0, 10.0
"""Seconds that a layer has to cool, for which lines slow down at most to this speed."""

TIME_ERROR_RATIO, SUPPORT_ERROR_RATIO = 0.13, 0.4
"""Range of the time without support at the usual speed, and what it grows per share of support in the filament. It
covers 58 of 65 parts on which it was not fitted."""

RESIN_LAYER_S = 8.0
"""Seconds to expose, lift and lower a layer of resin; an assumption."""


class _Deposit(NamedTuple):
    """Layers of a model as they are printed; `scale` corrects the volume of the cells."""

    layers: Layers
    shells: Shells
    scale: float

    @property
    def material_mm3(self) -> float:
        """The volume of the material."""
        shells = self.shells
        return float((shells.outer + shells.inner + shells.solid + shells.sparse).sum()) * self.scale


def run(scene: Scene, options: PrintOptions) -> Iterator[Estimate | Finding]:
    """Estimate the print of a scene.

    Args:
        scene: Millimeters, Z up.
        options: Process, material, layers, walls and infill.
    """
    yield find_missing_volume(scene, options) or estimate_print(scene, options)


def find_missing_volume(scene: Scene, options: PrintOptions) -> Finding | None:
    """Return the finding about a scene that cannot be estimated, because it encloses no volume; None if it does."""
    scene = oriented(scene)
    vertices, faces = soup(scene)
    diagonal = float(np.linalg.norm(np.subtract(*extremes(vertices))))
    # the normals of a closed surface add up to zero; those of an open one make its volume depend on where it lies
    opening = float(np.linalg.norm(face_normals(vertices, faces).sum(axis=0))) / 2
    doubt = diagonal * max(FLOAT32_RATIO * area(vertices, faces), opening / 3)
    # seen from a vertex: from a point beside it, a flat sheet encloses a volume
    if signed_volume(vertices - vertices[0], faces) > doubt and measure_volume(scene) > 0:
        return None
    return Finding(
        code="no_volume",
        severity="warning",
        message="the model encloses no volume, because it is flat, open or inside out, so its weight and price cannot "
        "be estimated; use {repair}, or give a sheet a thickness with {thicken_mm}",
        options=("repair", "thicken_mm"),
        remedy={"repair": True, **options.sheet_remedy} if sheets_of(scene) else {"repair": True},
    )


@OncePerScene
def measure_volume(scene: Scene) -> float:
    """Return the volume of a scene in mm³; bodies that overlap count once."""
    return measure_union(*soup(scene), VOLUME_COLUMNS_COUNT)


def estimate_print(scene: Scene, options: PrintOptions) -> Estimate:
    """Return the estimate of a scene.

    Args:
        scene: Millimeters, Z up; it encloses a volume.
        options: Process, material, layers, walls and infill.
    """
    topology = topology_of(scene)
    is_closed = bool(topology.shells.closed.all())
    if {"open_edges", "flipped_faces"} & {defect.finding.kind for defect in find_defects(scene, topology)}:
        note(
            "open_estimate",
            "the surface is open or inside out, so volume, weight and time may be wrong; use {repair}",
            options=("repair",),
        )
    hanging = np.empty((0, 3))
    if options.print_process != "sls":
        hanging = hanging_of(scene, options).bottoms(layers_of(scene, options))
    scene = oriented(scene)
    vertices, faces = soup(scene)
    low, high = extremes(vertices)
    volume = material = measure_volume(scene)
    support = support_material = 0.0
    seconds: float | None = None
    error: float | None = None
    if options.print_process != "sls":
        layers = _slice(vertices, faces, options, MAX_CELLS_COUNT)
        if options.print_process == "fdm" and options.print_support == "everywhere":
            line_mm = LINE_RATIO * options.print_nozzle_mm
            columns = stand_everywhere(Skin.of(vertices, faces), layers, line_mm, options.layer_mm)
        else:
            columns = stand_below(layers, hanging, options.layer_mm)
        support = float(columns.space.sum())
        if options.print_process == "resin":
            support_material = RESIN_SUPPORT_RATIO * support
            seconds = float(np.ceil((high - low)[2] / options.layer_mm)) * RESIN_LAYER_S
        else:
            deposit = _fill(layers, volume, options, is_closed)
            filaments = columns.material(options.print_nozzle_mm)
            # cells miss a foil
            material, support_material = deposit.material_mm3 or volume, float(filaments.sum())
            seconds = _time(deposit, filaments, columns.count_lines(options.print_nozzle_mm, layers.height), options)
            # acceleration limits fast lines
            faster = max(1.0, options.print_speed_mm_s / PrintOptions().print_speed_mm_s)
            share = support_material / (material + support_material)
            error = TIME_ERROR_RATIO * faster**0.5 + SUPPORT_ERROR_RATIO * share
    density = options.density_g_cm3
    x, y, z = round_lengths(high - low, np.stack([low, high])).tolist()
    result = Estimate(
        method="model",
        process=options.print_process,
        material=options.material,
        density_g_cm3=density,
        size_mm=(x, y, z),
        volume_mm3=volume,
        area_mm2=area(vertices, faces),
        material_mm3=material,
        support_mm3=support,
        support_material_mm3=support_material,
        weight_g=(material + support_material) * density / 1000,
        support_weight_g=support_material * density / 1000,
        seconds=seconds,
        seconds_error=error,
        parts=tuple(_estimate_parts(scene, options, material, is_closed)),
    )
    did(weight_g=result.weight_g, support_mm3=support, seconds=seconds)
    return result


def replace_print(estimate: Estimate, method: str, material_mm3: float, support_mm3: float, seconds: float) -> Estimate:
    """Return an estimate with the material and the time of another method.

    Args:
        estimate: Estimate of the model.
        method: Name of the other method.
        material_mm3: Material without support.
        support_mm3: Material of the support.
        seconds: Time.
    """
    density, ratio = estimate.density_g_cm3, material_mm3 / estimate.material_mm3
    return structs.replace(
        estimate,
        method=method,
        material_mm3=material_mm3,
        support_material_mm3=support_mm3,
        weight_g=(material_mm3 + support_mm3) * density / 1000,
        support_weight_g=support_mm3 * density / 1000,
        seconds=seconds,
        seconds_error=None,
        parts=tuple(structs.replace(part, weight_g=part.weight_g * ratio) for part in estimate.parts),
    )


def _slice(vertices: Float64, faces: Int32, options: PrintOptions, max_cells: int) -> Layers:
    width, depth, height = np.subtract(*extremes(vertices)[::-1]).tolist()
    cell = (width * depth * height / options.layer_mm / max_cells) ** 0.5
    # coarse cells break thin walls into fragments, each of which would be a contour of its own
    volume = abs(signed_volume(vertices - vertices[0], faces))
    if 2 * volume < WALL_CELLS_COUNT * cell * area(vertices, faces):
        cell /= 2
    return slice_layers(vertices, faces, max(CELL_RATIO * options.print_nozzle_mm, cell), options.layer_mm)


def _fill(layers: Layers, volume_mm3: float, options: PrintOptions, is_closed: bool) -> _Deposit:
    """Return the layers of a model with their walls and infill."""
    shells = fill_shells(
        layers,
        options.print_shell_lines,
        round(options.print_solid_layers * options.layer_mm / layers.height),
        Spacing.of(options.print_nozzle_mm, options.layer_mm),
        options.print_infill_percent / 100,
    )
    cells = np.count_nonzero(layers.filled) * layers.cell**2 * layers.height
    ratio = volume_mm3 / float(cells) if cells else 0.0
    return _Deposit(layers, shells, ratio if is_closed or abs(ratio - 1) <= MAX_GRID_ERROR_RATIO else 1.0)


def _time(deposit: _Deposit, support: Float64, support_lines: Float64, options: PrintOptions) -> float:
    """Return the seconds of a print: lines, corners, moves, and slower lines while layers cool."""
    shells, speed = deposit.shells, options.print_speed_mm_s
    # layers of the grid are higher than those of the print if the model has too many
    count = deposit.layers.height / options.layer_mm
    per_mm3 = 1 / count / (line_spacing(options.print_nozzle_mm, options.layer_mm) * options.layer_mm)
    outer, inner, solid, sparse = (
        deposit.scale * per_mm3 * volume for volume in (shells.outer, shells.inner, shells.solid, shells.sparse)
    )
    support = support * per_mm3
    lines = outer * _slowness(shells.short_outer, SLOW_RATIO * speed)
    lines += inner * _slowness(shells.short_inner, speed)
    lines += (solid * (1 + shells.top * (1 / SLOW_RATIO - 1)) + sparse + support) / speed
    lines[0] *= 1 + (1 / SLOW_RATIO - 1) / count
    moves = CONTOUR_S * shells.contours + TRAVEL_S_PER_MM * shells.wall_mm
    moves += REGION_S * (shells.solid_regions + shells.sparse_regions)
    slowest = np.maximum(lines, (outer + inner + solid + sparse + support) / MIN_SPEED_MM_S)
    cooled = np.clip(MIN_LAYER_S - moves, lines, slowest)
    reached = speed * lines / np.maximum(cooled, 1e-9)
    corners = SOLID_TURNS * shells.solid_lines * _lose(reached, solid / np.maximum(shells.solid_lines, 1e-9))
    corners += SPARSE_TURNS * shells.sparse_lines * _lose(reached, sparse / np.maximum(shells.sparse_lines, 1e-9))
    corners += WALL_TURNS_PER_MM * outer * _lose(SLOW_RATIO * reached, 1 / WALL_TURNS_PER_MM)
    corners += WALL_TURNS_PER_MM * inner * _lose(reached, 1 / WALL_TURNS_PER_MM)
    # a line of support turns to the next one, and along it
    turns = 2 * support_lines
    corners += turns * _lose(reached, support / np.maximum(turns, 1e-9))
    return float((cooled + corners + moves).sum() * count)


def _slowness(short_share: Float64, speed: float) -> Float64:
    """Return the seconds per millimeter of walls, of which a share are short loops."""
    return short_share / SHORT_LOOP_SPEED_MM_S + (1 - short_share) / speed


def _lose(speed: Float64, length_mm: Float64 | float) -> Float64:
    """Return the seconds that a line between two corners takes longer than at full speed."""
    start = np.minimum(CORNER_SPEED_MM_S, speed)
    peak = np.sqrt(start**2 + ACCELERATION_MM_S2 * np.asarray(length_mm))
    full = (speed - start) ** 2 / np.maximum(speed, 1e-9) / ACCELERATION_MM_S2
    short = 2 * (peak - start) / ACCELERATION_MM_S2 - length_mm / np.maximum(speed, 1e-9)
    result: Float64 = np.where(peak < speed, short, full)
    return result


def _estimate_parts(
    scene: Scene, options: PrintOptions, material_mm3: float, is_closed: bool
) -> Iterator[PartEstimate]:
    """Yield the sizes and weights of parts; copies share a computation."""
    known: dict[tuple[int, bytes], tuple[float, float]] = {}
    count = min(len(scene.parts), MAX_PARTS_COUNT)
    for part in scene.parts[:MAX_PARTS_COUNT]:
        mesh = placed_mesh(scene.meshes[part.mesh], part.transform)
        low, high = extremes(mesh.vertices[mesh.faces.ravel()]) if len(mesh.faces) else np.zeros((2, 3))
        key = (part.mesh, part.transform[:3, :3].tobytes())
        if key not in known:
            is_alone = len(scene.parts) == 1
            known[key] = (
                (measure_volume(scene), material_mm3) if is_alone else _fill_part(mesh, options, count, is_closed)
            )
        volume, material = known[key]
        x, y, z = round_lengths(high - low, np.stack([low, high])).tolist()
        yield PartEstimate(
            name=part.name,
            size_mm=(x, y, z),
            volume_mm3=volume,
            area_mm2=area(mesh.vertices, mesh.faces),
            weight_g=material * options.density_g_cm3 / 1000,
        )


def _fill_part(mesh: Mesh, options: PrintOptions, count: int, is_closed: bool) -> tuple[float, float]:
    """Return the volume of one of several parts in mm³, and that of its material."""
    volume = measure_union(mesh.vertices, mesh.faces, round(VOLUME_COLUMNS_COUNT / count**0.5))
    if options.print_process != "fdm" or len(mesh.faces) == 0:
        return volume, volume
    layers = _slice(mesh.vertices, mesh.faces, options, MAX_CELLS_COUNT // count)
    return volume, _fill(layers, volume, options, is_closed).material_mm3 or volume
