"""Checks of the layers of a print: `islands`, `overhangs`, `spans` and `cups`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

import numpy as np
from scipy.spatial.transform import Rotation

from meshhub.builtin_plugins.print import PrintOptions
from meshhub.builtin_plugins.print.bodies import Bodies, find_cavities, list_bodies, oriented, topology_of
from meshhub.builtin_plugins.print.places import list_places
from meshhub.builtin_plugins.print.standing import MIN_CONTACT_MM2
from meshhub.errors import format_count, format_number
from meshhub.model.notes import did
from meshhub.model.options import Value
from meshhub.model.remedy_search import are_remedies_wanted
from meshhub.model.scene import Float64, Int32, Scene
from meshhub.model.verdict import MAX_PLACES, Finding
from meshhub.toolkit.geometry import soup
from meshhub.toolkit.hanging import REACH_LINES, Hanging, HangingKind, Printable, find_hanging
from meshhub.toolkit.layers import Layers, find_cups, slice_layers
from meshhub.toolkit.lengths import LINE_RATIO
from meshhub.toolkit.once_per_scene import OncePerScene
from meshhub.toolkit.support_material import stand_below

CELL_RATIO = 0.5
"""Side of a cell per diameter of the nozzle."""

SIDES_DEG = ((180.0, 0.0), (90.0, 0.0), (-90.0, 0.0), (0.0, 90.0), (0.0, -90.0))
"""Turns about X and Y to the other sides of a model, which are tried against overhangs and cups."""

TRIAL_RATIO = 2.0
"""Cells and layers of a trial per those of the check; it takes an eighth of the time."""

MAX_TRIAL_S = 5.0
"""Seconds of the processor after which no other side is tried."""

MIN_CUP_MM3 = 100.0
"""Volume from which suction matters; blind holes of screws are smaller."""

DRAIN_MM = 3.0
"""Diameter of drains, which resin and powder leave well."""

TILTS_DEG = ((110.0, 20.0), (20.0, 110.0), (70.0, 20.0), (20.0, 70.0), (30.0, 20.0))
"""Turns about X and Y after which no flat side lies on the bed, which are tried against cups."""


def layers_of(scene: Scene, options: PrintOptions) -> Layers:
    """Return the layers of a scene as the process builds it."""
    return _slice(scene, CELL_RATIO * options.print_nozzle_mm, options.layer_mm)


@OncePerScene
def _slice(scene: Scene, cell: float, height: float) -> Layers:
    """Return the layers of a scene in cells, both in millimeters."""
    return slice_layers(*soup(oriented(scene)), cell, height)


@OncePerScene
def _find_hanging(scene: Scene, cell: float, height: float, printable: Printable) -> Hanging:
    """Return the places of a scene that need support."""
    return find_hanging(_slice(scene, cell, height), printable)


def hanging_of(scene: Scene, options: PrintOptions) -> Hanging:
    """Return the places of a scene that its process cannot print without support."""
    return _find_hanging(scene, CELL_RATIO * options.print_nozzle_mm, options.layer_mm, _printable(options))


def _printable(options: PrintOptions) -> Printable:
    line = LINE_RATIO * options.print_nozzle_mm
    reach = REACH_LINES * line
    # resin hardens below the layers before, and does not bridge
    bridge = options.print_bridge_mm if options.print_process == "fdm" else 2 * reach
    return Printable(options.print_overhang_deg, reach, bridge, line)


def _try_turns(
    vertices: Float64, faces: Int32, turns: Iterable[tuple[float, float]], options: PrintOptions
) -> Iterator[tuple[dict[str, Value], Layers]]:
    """Yield the options of turns about X and Y, and coarse layers after each of them, as long as the time allows."""
    begin = time.thread_time()
    cell, height = TRIAL_RATIO * CELL_RATIO * options.print_nozzle_mm, TRIAL_RATIO * options.layer_mm
    for angles in turns:
        rotation = Rotation.from_euler("xy", angles, degrees=True).as_matrix()
        turn: dict[str, Value] = dict(zip(("rotate_x_deg", "rotate_y_deg"), angles, strict=True))
        layers = slice_layers(vertices @ rotation.T, faces, cell, height)
        yield {option: angle for option, angle in turn.items() if angle}, layers
        if time.thread_time() - begin > MAX_TRIAL_S:
            return


@OncePerScene
def _find_turn(scene: Scene, options: PrintOptions) -> tuple[dict[str, Value], float]:
    """Try to lay a scene on its other sides; return the turn after which the least hangs, and its area in mm².

    If it stands on no other side, the area is infinite.
    """
    best: tuple[dict[str, Value], float] = {}, np.inf
    for turn, layers in _try_turns(*soup(oriented(scene)), SIDES_DEG, options):
        area = float(find_hanging(layers, _printable(options)).area.sum())
        if area < best[1] and np.count_nonzero(layers.filled[0]) * layers.cell**2 >= MIN_CONTACT_MM2:
            best = turn, area
        if best[1] == 0:
            break
    return best


def _advise(scene: Scene, options: PrintOptions) -> tuple[dict[str, Value], str]:
    """Return the turn after which less hangs, if one was found, and the advice."""
    by_hand = "use support in the slicer, or divide the model there"
    if not are_remedies_wanted():
        return {}, by_hand
    turn, rest = _find_turn(scene, options)
    if rest >= hanging_of(scene, options).area.sum():
        return {}, by_hand
    return turn, f"turn the model with {' and '.join(f'{{{option}}}' for option in turn)}, or {by_hand}"


def run_islands(scene: Scene, options: PrintOptions) -> Iterator[Finding]:
    """Find places where a layer begins in the air.

    Args:
        scene: Millimeters, Z up.
        options: Process, nozzle and layers.
    """
    if options.print_process == "sls":
        # the powder holds them
        return
    layers, hanging = layers_of(scene, options), hanging_of(scene, options)
    own = hanging.of("island")
    did(islands=len(own), cell_mm=layers.cell, layer_mm=layers.height)
    line_mm = LINE_RATIO * options.print_nozzle_mm
    if layers.cell > line_mm:
        yield Finding(
            code="coarse_examination",
            severity="info",
            message=f"the model is so large that its layers were examined in cells of {format_number(layers.cell, 2)} "
            "mm, and narrower islands may be missed; check such parts by themselves",
            amount=layers.cell,
            limit=line_mm,
            unit="mm",
        )
    if len(own) == 0:
        return
    above_bed = format_number(float(hanging.center[own, 2].min() - layers.low[2]), 3)
    remedy, advice = _advise(scene, options)
    lowest = above_bed if len(own) == 1 else f"the lowest {above_bed}"
    yield Finding(
        code="islands",
        severity="error",
        message=f"{format_count(len(own), 'place begins', 'places begin')} in the air, {lowest} mm above the bed; "
        f"{'it falls' if len(own) == 1 else 'they fall'} without support; {advice}",
        options=tuple(remedy),
        amount=float(hanging.area[own].max()),
        unit="mm²",
        places=list_places(hanging.center[own], hanging.area[own]),
        places_found=len(own),
        remedy=remedy,
        picture={"color_by": "islands", "view": "iso-below"},
    )


def run_overhangs(scene: Scene, options: PrintOptions) -> Iterator[Finding]:
    """Find layers that reach so far into the air that lines fall.

    Args:
        scene: Millimeters, Z up.
        options: Process, nozzle, layers, and the angle from which a slope needs no support.
    """
    if options.print_process != "sls":
        limit = REACH_LINES * LINE_RATIO * options.print_nozzle_mm
        yield from _describe_spans(scene, options, hanging_of(scene, options), "overhang", limit)


def run_spans(scene: Scene, options: PrintOptions) -> Iterator[Finding]:
    """Find long bridges.

    Args:
        scene: Millimeters, Z up.
        options: Process, nozzle, layers, and the limit of bridges.
    """
    if options.print_process == "fdm":
        yield from _describe_spans(scene, options, hanging_of(scene, options), "bridge", options.print_bridge_mm)


def _describe_spans(
    scene: Scene, options: PrintOptions, hanging: Hanging, kind: HangingKind, limit: float
) -> Iterator[Finding]:
    own = hanging.of(kind)
    longest = float(hanging.length[own].max(initial=0.0))
    did(**{f"longest_{kind}_mm": longest})
    if len(own) == 0:
        return
    layers = layers_of(scene, options)
    support = float(stand_below(layers, hanging.bottoms(layers), options.layer_mm).space.sum())
    did(support_mm3=support)
    remedy, advice = _advise(scene, options)
    if kind == "bridge":
        reach = f"{format_count(len(own), 'bridge is', 'bridges are')} longer than"
    else:
        reach = f"{format_count(len(own), 'place reaches', 'places reach')} into the air farther than"
    yield Finding(
        code="long_bridges" if kind == "bridge" else "overhangs",
        severity="warning",
        message=f"{reach} {format_number(limit, 3)} mm, the longest {format_number(longest, 3)} mm; lines sag there; "
        f"{advice}",
        options=tuple(remedy),
        amount=longest,
        limit=limit,
        unit="mm",
        places=list_places(hanging.center[own], hanging.length[own]),
        places_found=len(own),
        remedy=remedy,
        picture={"color_by": "overhang", "color_limit": options.print_overhang_deg, "view": "iso-below"},
    )


def run_cups(scene: Scene, options: PrintOptions) -> Iterator[Finding]:
    """Find volumes from which resin or powder cannot flow, and those that pull at the film of a resin printer.

    Args:
        scene: Millimeters, Z up.
        options: Process, nozzle and layers.
    """
    scene = oriented(scene)
    bodies = list_bodies(scene, topology_of(scene))
    volumes, cavities = find_cavities(bodies)
    trapped = float(volumes.sum())
    did(trapped_mm3=trapped)
    if options.print_process == "fdm":
        return
    if trapped > 0:
        material = "resin" if options.print_process == "resin" else "powder"
        yield Finding(
            code="trapped_volume",
            severity="warning",
            message=f"closed cavities hold {format_number(trapped / 1000, 3)} ml of {material}; "
            "drill drains with {drain_holes_mm}, or open them in the program that made the model",
            options=("drain_holes_mm",),
            amount=trapped,
            unit="mm³",
            places=cavities[:MAX_PLACES],
            places_found=len(cavities),
            remedy={"drain_holes_mm": DRAIN_MM},
        )
    if options.print_process == "sls":
        return
    place, volume = find_cups(layers_of(scene, options))
    own = np.argsort(-volume, kind="stable")
    own = own[volume[own] > MIN_CUP_MM3]
    if len(own) == 0:
        return
    remedy = _turn_cups(bodies, options, has_cavities=bool((volumes > MIN_CUP_MM3).any()))
    subject = format_count(len(own), "hollow closes", "hollows close")
    advice = "give the model a hole near the bed"
    if remedy:
        named = " and ".join(f"{{{option}}}" for option in remedy if option.startswith("rotate"))
        verb = "drill drains with {drain_holes_mm} after" if "drain_holes_mm" in remedy else "turn the model with"
        advice = f"{verb} {named}, or {advice}"
    yield Finding(
        code="suction_cups",
        severity="warning",
        message=f"{subject} against the film during the print, up to {format_number(volume.max() / 1000, 3)} ml, and "
        f"{'pulls' if len(own) == 1 else 'pull'} at it; {advice}",
        options=tuple(option for option in remedy if option != "drain_count"),
        amount=float(volume.max()),
        limit=MIN_CUP_MM3,
        unit="mm³",
        places=list_places(place[own], volume[own]),
        places_found=len(own),
        remedy=remedy,
    )


def _turn_cups(bodies: Bodies, options: PrintOptions, has_cavities: bool) -> dict[str, Value]:
    """Return the turn after which no hollow closes, with drains of closed cavities; empty if no turn was found.

    Args:
        bodies: Bodies in millimeters.
        options: Nozzle and layers.
        has_cavities: Whether closed cavities need drains. The bed closes drains in flat undersides, so such models
            stand at an angle.
    """
    if not are_remedies_wanted():
        return {}
    corners = bodies.corners[~bodies.hollow[bodies.body]]
    faces = np.arange(3 * len(corners), dtype=np.int32).reshape(-1, 3)
    turns = TILTS_DEG if has_cavities else (*SIDES_DEG, *TILTS_DEG)
    drains: dict[str, Value] = {"drain_holes_mm": DRAIN_MM, "drain_count": 2} if has_cavities else {}
    for turn, layers in _try_turns(corners.reshape(-1, 3), faces, turns, options):
        if not (find_cups(layers)[1] > MIN_CUP_MM3).any():
            return turn | drains
    return {}
