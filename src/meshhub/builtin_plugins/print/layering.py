"""Checks of the layers of a print: `islands`, `spans` and `cups`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.spatial.transform import Rotation

from meshhub.builtin_plugins.print import PrintOptions
from meshhub.builtin_plugins.print.bodies import Bodies, find_cavities, list_bodies, oriented, topology_of
from meshhub.builtin_plugins.print.places import list_places
from meshhub.errors import format_count, format_number
from meshhub.model.notes import did
from meshhub.model.options import Value
from meshhub.model.scene import Scene
from meshhub.model.verdict import MAX_PLACES, Finding
from meshhub.toolkit.geometry import soup
from meshhub.toolkit.layers import Layers, find_cups, find_islands, find_spans, slice_layers
from meshhub.toolkit.once_per_scene import OncePerScene

CELL_RATIO = 0.5
"""Side of a cell per diameter of the nozzle."""

MAX_CELL_RATIO = 1.25
"""Side of a cell per diameter of the nozzle from which islands as wide as a line may be missed."""

MIN_SPAN_MM2 = 1.0
"""Area of the smallest region that hangs in the air and counts."""

MAX_CANTILEVER_MM = 2.0
"""Length up to which lines that begin in the air at one end still hold on to the others."""

MIN_CUP_MM3 = 100.0
"""Volume from which suction matters; blind holes of screws are smaller."""

DRAIN_MM = 3.0
"""Diameter of drains, which resin and powder leave well."""

TURNS_DEG = ((90.0, 0.0), (0.0, 90.0))
"""Turns about X and Y to try, after which cups open to a side."""

TILTS_DEG = ((110.0, 20.0), (20.0, 110.0), (70.0, 20.0), (20.0, 70.0), (30.0, 20.0))
"""The same, after which also no flat side lies on the bed."""

TURN_LAYERS = 4.0
"""Layers per layer of the slices that try a turn; a hollow closes over many layers."""


def layers_of(scene: Scene, options: PrintOptions) -> Layers:
    """Return the layers of a scene as the process builds it."""
    return _slice(scene, CELL_RATIO * options.print_nozzle_mm, options.layer_mm)


@OncePerScene
def _slice(scene: Scene, cell: float, height: float) -> Layers:
    """Return the layers of a scene in cells, both in millimeters."""
    return slice_layers(*soup(oriented(scene)), cell, height)


def run_islands(scene: Scene, options: PrintOptions) -> Iterator[Finding]:
    """Find places where a layer begins in the air.

    Args:
        scene: Millimeters, Z up.
        options: Process, nozzle and layers.
    """
    if options.print_process == "sls":
        # the powder holds them
        return
    layers = layers_of(scene, options)
    islands = find_islands(layers)
    did(islands=len(islands.area), cell_mm=layers.cell, layer_mm=layers.height)
    if layers.cell > MAX_CELL_RATIO * options.print_nozzle_mm:
        yield Finding(
            code="coarse_examination",
            severity="info",
            message=f"the model is so large that its layers were examined in cells of {format_number(layers.cell, 2)} "
            "mm, and narrower islands may be missed; check such parts by themselves",
            amount=layers.cell,
            limit=MAX_CELL_RATIO * options.print_nozzle_mm,
            unit="mm",
        )
    if len(islands.area) == 0:
        return
    order = np.argsort(-islands.area, kind="stable")
    above_bed = format_number(float(islands.center[:, 2].min() - layers.low[2]), 3)
    lowest = above_bed if len(order) == 1 else f"the lowest {above_bed}"
    yield Finding(
        code="islands",
        severity="warning",
        message=f"{format_count(len(order), 'place begins', 'places begin')} in the air, {lowest} mm above the bed; "
        "prints fail there without support; try {orient}, or use support in the slicer",
        options=("orient",),
        amount=float(islands.area.max()),
        unit="mm²",
        places=list_places(islands.center[order], islands.area[order]),
        places_found=len(order),
        remedy={"orient": True},
        picture={"color_by": "islands", "view": "iso-below"},
    )


def run_spans(scene: Scene, options: PrintOptions) -> Iterator[Finding]:
    """Find long bridges, and layers that reach far into the air.

    Args:
        scene: Millimeters, Z up.
        options: Process, nozzle, layers, and the limit of bridges.
    """
    if options.print_process != "fdm":
        return
    spans = find_spans(layers_of(scene, options), MIN_SPAN_MM2)
    order = np.argsort(-spans.length, kind="stable")
    for is_bridge, limit in ((True, options.print_bridge_mm), (False, MAX_CANTILEVER_MM)):
        own = order[spans.is_bridge[order] == is_bridge]
        lengths = spans.length[own]
        did(**{"longest_bridge_mm" if is_bridge else "longest_cantilever_mm": float(lengths.max(initial=0.0))})
        own = own[lengths > limit]
        if len(own) == 0:
            continue
        longest = float(spans.length[own[0]])
        if is_bridge:
            reach = f"{format_count(len(own), 'bridge is', 'bridges are')} longer than"
        else:
            reach = f"{format_count(len(own), 'layer reaches', 'layers reach')} into the air farther than"
        yield Finding(
            code="long_bridges" if is_bridge else "cantilevers",
            severity="warning",
            message=f"{reach} {format_number(limit, 3)} mm, the longest {format_number(longest, 3)} mm; lines sag "
            "there without support; try {orient}, or use support in the slicer",
            options=("orient",),
            amount=longest,
            limit=limit,
            unit="mm",
            places=list_places(spans.center[own], spans.length[own]),
            places_found=len(own),
            remedy={"orient": True},
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
            "drill drains with {drain_holes_mm}",
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
    turns = [option for option in remedy if option.startswith("rotate")]
    if "drain_holes_mm" in remedy:
        advice = f"drill drains with {{drain_holes_mm}} after {' and '.join(f'{{{turn}}}' for turn in turns)}"
    elif turns:
        advice = f"turn the model with {' and '.join(f'{{{turn}}}' for turn in turns)}, or give it a hole near the bed"
    else:
        advice = "give the model a hole near the bed"
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
    corners = bodies.corners[~bodies.hollow[bodies.body]]
    faces = np.arange(3 * len(corners), dtype=np.int32).reshape(-1, 3)
    for x_deg, y_deg in TILTS_DEG if has_cavities else (*TURNS_DEG, *TILTS_DEG):
        rotation = Rotation.from_euler("xy", (x_deg, y_deg), degrees=True).as_matrix()
        cell, height = CELL_RATIO * options.print_nozzle_mm, TURN_LAYERS * options.layer_mm
        if (find_cups(slice_layers(corners.reshape(-1, 3) @ rotation.T, faces, cell, height))[1] > MIN_CUP_MM3).any():
            continue
        turns: dict[str, Value] = {"rotate_x_deg": x_deg, "rotate_y_deg": y_deg}
        drains: dict[str, Value] = {"drain_holes_mm": DRAIN_MM, "drain_count": 2} if has_cavities else {}
        return {option: value for option, value in turns.items() if value} | drains
    return {}
