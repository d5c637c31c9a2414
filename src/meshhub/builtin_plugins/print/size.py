"""Check `size`: whether the model fits on a printer, a wrong unit, and more colors than it has filaments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from meshhub.builtin_plugins.print import PrintOptions
from meshhub.builtin_plugins.print.places import place_box
from meshhub.errors import format_number
from meshhub.model.notes import did
from meshhub.model.options import Value
from meshhub.model.scene import Float64, Scene
from meshhub.model.verdict import MAX_PLACES, Finding
from meshhub.toolkit.crossings import pair_boxes
from meshhub.toolkit.geometry import bounds_of_parts, extremes, soup
from meshhub.toolkit.objects import find_objects
from meshhub.toolkit.printers import PRINTERS, Printer
from meshhub.toolkit.supports import ROUNDING_RATIO
from meshhub.toolkit.surface_colors import Surface, get_face_materials
from meshhub.toolkit.topology import components

TOUCH_MM = 0.01
"""Distance up to which boxes of objects touch, as those of the pieces of a cut."""

MIN_USUAL_MM = 2.0
"""Longest side of the smallest usual prints; nozzles print nothing smaller."""

MAX_USUAL_MM = 1000 * MIN_USUAL_MM
"""The same of the largest: hardly any printer has room for more, and in meters it would be too small."""

MAX_METERS_MM = 0.5
"""Longest side up to which the numbers are probably meters, as 0.5 for half a meter; above, inches."""

_OPAQUE_WHITE = 0xFFFFFFFF
"""Bytes of the vertex color that changes nothing."""


def run(scene: Scene, options: PrintOptions) -> Iterator[Finding]:
    """Find models that do not fit on the printer, a wrong unit, and more colors than it has filaments.

    Args:
        scene: Millimeters, Z up.
        options: Printer, and its filaments.
    """
    low, high = extremes(soup(scene)[0])
    yield from _find_unit_doubt(float((high - low).max()))
    printer = options.printer()
    yield from _find_misfits(scene, printer)
    filaments = options.print_filaments if printer is None else printer.filaments
    if filaments is not None and options.print_process == "fdm":
        yield from _find_colors(scene, "printer" if printer is None else printer.name, filaments)


def _find_misfits(scene: Scene, printer: Printer | None) -> Iterator[Finding]:
    """Find objects that do not fit on a printer, or on any known one, and beds on which too much stands."""
    boxes = bounds_of_parts(scene)
    number = {id(part): index for index, part in enumerate(scene.parts)}
    objects = [[number[id(part)] for part in parts] for parts in find_objects(scene)[0]]
    alone = _join_boxes(boxes, objects)
    beds = _join_boxes(boxes, _find_beds(scene, objects, alone))
    boxes_to_fit = np.concatenate([alone, beds])
    fitting = [key for key, known in PRINTERS.items() if _fit(boxes_to_fit, known)]
    did(printers=list(fitting))
    if _fit(boxes_to_fit, printer) if printer is not None else fitting:
        return
    known = list(PRINTERS.values()) if printer is None else [printer]
    large = [index for index, box in enumerate(alone) if not any(_fit(box[None], each) for each in known)]
    shown = alone[large] if large else beds
    size = np.ptp(shown, axis=1)
    words = " x ".join(format_number(side, 4) for side in size[size.max(axis=1).argmax()].tolist())
    if not large:
        subject, is_many = f"what stands on one bed, {words} mm,", False
    elif len(objects) == 1:
        subject, is_many = f"the model of {words} mm", False
    else:
        subject, is_many = f"{len(large):,} of {len(objects):,} objects, of up to {words} mm,", len(large) > 1
    # an object is printed as one, but its parts may fit alone
    are_parts_large = [
        not any(_fit(boxes[[part]], each) for each in known) for index in large for part in objects[index]
    ]
    options, remedy = _advise_misfit(printer, any(are_parts_large), len(are_parts_large) > len(large), len(objects) > 1)
    if printer is None:
        reach = f"{'fit' if is_many else 'fits'} on none of {len(PRINTERS)} common printers"
    else:
        room = _spell_room(printer).replace("x", " x ")
        reach = f"{'do' if is_many else 'does'} not fit on the {printer.name} ({room} mm)"
    advice = " and ".join(f"{{{option}}}" for option in options)
    yield Finding(
        code="does_not_fit",
        severity="error",
        message=f"{subject} {reach}; use {advice}, {'or check the unit' if printer is None else 'or {fit_mm}'}",
        options=options if printer is None else (*options, "fit_mm"),
        amount=float(size.max()),
        limit=None if printer is None else max(printer.volume_mm),
        unit="mm",
        places=tuple(map(place_box, shown[:MAX_PLACES])),
        places_found=len(shown),
        remedy=remedy,
    )


def _advise_misfit(
    printer: Printer | None, is_large: bool, has_parts: bool, is_several: bool
) -> tuple[tuple[str, ...], dict[str, Value]]:
    """Return the options to name, and the remedy.

    Args:
        printer: The printer; None without a remedy.
        is_large: Whether a part must be cut.
        has_parts: Whether an object that is too large has several parts.
        is_several: Whether there are several objects.
    """
    room = "" if printer is None else _spell_room(printer)
    remedy: dict[str, Value] = {}
    if is_large:
        remedy["split_for_bed"] = room
    if not is_large or is_several or has_parts:
        remedy["arrange_bed"] = room.rpartition("x")[0]
    if has_parts:
        remedy["arrange_by"] = "parts"
    return tuple(remedy), remedy if printer is not None else {}


def _spell_room(printer: Printer) -> str:
    return "x".join(format_number(side, 4) for side in printer.volume_mm)


def _fit(boxes: Float64, printer: Printer) -> bool:
    """Return whether boxes (k, 2, 3) fit on a printer, each alone; rounding to float32 moves their sides."""
    rounding = ROUNDING_RATIO * float(np.abs(boxes).max(initial=0.0))
    sides = np.maximum(np.ptp(boxes, axis=1) - rounding, 0)
    flat = np.sort(sides[:, :2], axis=1)
    return printer.fits((flat[:, 1].max(initial=0.0), flat[:, 0].max(initial=0.0)), sides[:, 2].max(initial=0.0))


def _join_boxes(boxes: Float64, groups: Sequence[Sequence[int]]) -> Float64:
    """Return the box (k, 2, 3) around the boxes of each group."""
    joined = [np.stack([boxes[group, 0].min(axis=0), boxes[group, 1].max(axis=0)]) for group in groups]
    return np.array(joined).reshape(-1, 2, 3)


def _find_beds(scene: Scene, objects: list[list[int]], boxes: Float64) -> list[list[int]]:
    """Return the parts of each bed on which objects stand apart.

    Objects that touch, such as the pieces of a cut, are moved apart before they are printed.
    """
    plates = np.array([scene.parts[parts[0]].plate for parts in objects], np.intp)
    beds = []
    for plate in np.unique(plates).tolist():
        own = np.flatnonzero(plates == plate)
        low, high = boxes[own, 0] - TOUCH_MM / 2, boxes[own, 1] + TOUCH_MM / 2
        first, second = (np.concatenate(pairs) for pairs in zip(*pair_boxes(low, high), strict=True))
        if components(len(own), first, second)[0] > 1:
            beds.append([part for index in own.tolist() for part in objects[index]])
    return beds


def is_usual_size(extent: float) -> bool:
    """Return whether the longest side of a model, in mm, raises no doubt about the unit.

    Limits in millimeters say nothing about a model in another unit.
    """
    return MIN_USUAL_MM <= extent <= MAX_USUAL_MM


def _find_unit_doubt(extent: float) -> Iterator[Finding]:
    """Find a size that suggests another unit than that in which the file was read."""
    if is_usual_size(extent):
        return
    if extent > MAX_USUAL_MM:
        problem = "more than printers have room for"
        limit, factor, reason = MAX_USUAL_MM, 0.001, "millimeters read as meters, or micrometers as millimeters"
    else:
        problem, limit = "less than nozzles print", MIN_USUAL_MM
        is_meters = extent <= MAX_METERS_MM
        factor, reason = (1000, "meters read as millimeters") if is_meters else (25.4, "inches read as millimeters")
    yield Finding(
        code="doubtful_unit",
        severity="warning",
        message=f"the longest side measures {format_number(extent, 4)} mm, {problem}; if the unit is wrong, the factor "
        f"is probably {format_number(factor)} ({reason}); use {{input_unit}} or {{scale_percent}}",
        options=("input_unit", "scale_percent"),
        amount=extent,
        limit=limit,
        unit="mm",
        remedy={"scale_percent": 100 * factor},
    )


def _find_colors(scene: Scene, printer: str, filaments: int) -> Iterator[Finding]:
    """Find more colors than a printer has filaments; textures, and faces whose vertices differ, have shades."""
    colors: set[tuple[object, int]] = set()
    has_shades = False
    for surface in {Surface(part.mesh, part.material) for part in scene.parts}:
        mesh, material = scene.meshes[surface.mesh], get_face_materials(scene, surface)
        own = np.full((len(mesh.faces), 1), _OPAQUE_WHITE, np.uint32)
        if mesh.colors is not None:
            own = np.ascontiguousarray(mesh.colors).view(np.uint32).ravel()[mesh.faces]
            has_shades = has_shades or bool((own != own[:, :1]).any())
        for key in np.unique(material.astype(np.int64) << 32 | own[:, 0]).tolist():
            number = key >> 32
            colors.add((scene.materials[number].base_color if number >= 0 else None, key & _OPAQUE_WHITE))
            has_shades = has_shades or (number >= 0 and scene.materials[number].base_color_image is not None)
    count = len(colors)
    did(colors=count)
    if count <= filaments and not has_shades:
        return
    words = "shades of a texture or of vertex colors" if has_shades else f"{count:,} colors"
    yield Finding(
        code="too_many_colors",
        severity="info",
        message=f"the model has {words}, and the {printer} prints {filaments} "
        f"{'filament' if filaments == 1 else 'filaments'} at once; use {{reduce_colors={filaments}}}, or change "
        "filaments during the print",
        options=("reduce_colors",),
        amount=None if has_shades else count,
        limit=filaments,
        remedy={"reduce_colors": filaments},
    )
