"""Checks `overhangs`, `standing` and `size`: what needs support, how the model stands, and whether it fits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull, QhullError

from meshhub.builtin_plugins.print import PRINTERS, PrintOptions
from meshhub.builtin_plugins.print.printers import Printer
from meshhub.errors import format_number
from meshhub.model.notes import did
from meshhub.model.scene import Float64, Int32, Scene
from meshhub.model.verdict import MAX_PLACES, Finding, Place
from meshhub.toolkit.geometry import IntIndex, extremes, face_normals, soup, weld
from meshhub.toolkit.poses import center_of_mass, find_sides
from meshhub.toolkit.supports import measure_support
from meshhub.toolkit.surface_colors import Surface, get_face_materials
from meshhub.toolkit.topology import components, edges

MIN_OVERHANG_MM2 = 5.0
"""Area of the smallest overhang that counts; smaller ones print with a rough surface."""

MIN_CONTACT_MM2 = 20.0
"""Area on the bed from which a model holds without a brim, if it is not high."""

MAX_SLENDERNESS = 10.0
"""Height per side of a square as large as the contact, up to which a model holds."""

MAX_TURN = 1e-9
"""One minus the cosine of a turn that changes nothing."""

MIN_USUAL_MM, MAX_USUAL_MM = 2.0, 2000.0
"""Longest side of usual prints; nozzles print nothing smaller, and hardly any printer has room for more."""

MAX_METERS_MM = 0.5
"""Longest side up to which the numbers are probably meters, as 0.5 for half a meter; above, inches."""

FINE_RATIO = 0.25
"""Length of edges per diameter of the nozzle below which no printer shows the difference."""


def run_overhangs(scene: Scene, options: PrintOptions) -> Iterator[Finding]:
    """Find surfaces that need support.

    Args:
        scene: Millimeters, Z up.
        options: Process, layers, and the angle.
    """
    if options.print_process == "sls":
        return
    vertices, faces = soup(scene)
    normals = face_normals(vertices, faces)
    doubled = np.linalg.norm(normals, axis=1)
    bed = float(vertices[:, 2].min())
    on_bed = vertices[:, 2][faces].max(axis=1) <= bed + options.layer_mm
    steep = (-normals[:, 2] > np.cos(np.deg2rad(options.print_overhang_deg)) * doubled) & ~on_bed
    area, center = _group_faces(vertices, faces, np.flatnonzero(steep), doubled / 2)
    large = np.flatnonzero(area >= MIN_OVERHANG_MM2)
    total = float(area[large].sum())
    did(overhang_area_mm2=total)
    if len(large) == 0:
        return
    support = measure_support(vertices, faces, options.print_overhang_deg, options.layer_mm).volume_mm3
    did(support_mm3=support)
    order = large[np.argsort(-area[large], kind="stable")]
    rows = zip(center[order[:MAX_PLACES]].tolist(), area[order[:MAX_PLACES]].tolist(), strict=True)
    count = "1 place" if len(large) == 1 else f"{len(large):,} places"
    yield Finding(
        code="overhangs",
        severity="warning",
        message=f"{format_number(total, 3)} mm² overhang at less than {format_number(options.print_overhang_deg, 3)}° "
        f"from the bed, at {count}; support takes about {format_number(support / 1000, 3)} cm³; try {{orient}}, or "
        "support in the slicer",
        options=("orient",),
        amount=total,
        unit="mm²",
        share=total / float(doubled.sum() / 2),
        places=tuple(Place(position_mm=(x, y, z), amount=amount) for (x, y, z), amount in rows),
        places_found=len(large),
        remedy={"orient": True},
        picture={"color_by": "overhang", "color_limit": options.print_overhang_deg, "view": "iso-below"},
    )


def run_standing(scene: Scene, options: PrintOptions) -> Iterator[Finding]:
    """Find models that hold badly on the bed, or tip over.

    Args:
        scene: Millimeters, Z up.
        options: Process and layers.
    """
    if options.print_process == "sls":
        return
    vertices, faces = soup(scene)
    low, high = extremes(vertices)
    touching = vertices[:, 2][faces].max(axis=1) <= low[2] + options.layer_mm
    normals = face_normals(vertices, faces)
    contact = float(np.maximum(-normals[touching, 2], 0).sum() / 2)
    height = float(high[2] - low[2])
    did(contact_mm2=contact, height_mm=height)
    foot = np.unique(vertices[faces[touching].ravel()][:, :2], axis=0)
    center = center_of_mass(vertices, faces)
    stands = _is_above(foot, center[:2])
    if stands and contact >= MIN_CONTACT_MM2 and height <= MAX_SLENDERNESS * np.sqrt(contact):
        return
    sides = find_sides(vertices[np.unique(faces)], center)
    if sides is None:
        # a flat sheet does not stand; other findings say that it has no volume
        return
    x, y, z = float(center[0]), float(center[1]), float(low[2])
    if not stands:
        yield Finding(
            code="tips_over",
            severity="warning",
            message="the center of mass is not above what touches the bed, so that the model may tip over; "
            "use {lay_flat} or {orient}, or a brim in the slicer",
            options=("lay_flat", "orient"),
            places=(Place(position_mm=(x, y, z)),),
            places_found=1,
            remedy={"lay_flat": True},
        )
    else:
        lies_flat = sides.normals[sides.best, 2] < -1 + MAX_TURN
        advice = "a brim in the slicer" if lies_flat else "{lay_flat}, or a brim in the slicer"
        yield Finding(
            code="small_contact",
            severity="warning",
            message=f"{format_number(contact, 3)} mm² touch the bed below a height of {format_number(height, 3)} mm; "
            f"use {advice}",
            options=() if lies_flat else ("lay_flat",),
            amount=contact,
            limit=MIN_CONTACT_MM2,
            unit="mm²",
            places=(Place(position_mm=(x, y, z)),),
            places_found=1,
            remedy={} if lies_flat else {"lay_flat": True},
        )


def run_size(scene: Scene, options: PrintOptions) -> Iterator[Finding]:
    """Find models that do not fit on the printer, a wrong unit, and more colors or triangles than it can show.

    Args:
        scene: Millimeters, Z up.
        options: Printer, and nozzle.
    """
    vertices, faces = soup(scene)
    low, high = extremes(vertices)
    yield from _find_unit_doubt(float((high - low).max()))
    size = sorted((high - low)[:2].tolist(), reverse=True), float(high[2] - low[2])
    fitting = [name for name, printer in PRINTERS.items() if printer.fits(size[0], size[1])]
    did(printers=list(fitting))
    printer = PRINTERS[options.print_printer] if options.print_printer is not None else None
    words = " x ".join(format_number(value, 4) for value in (high - low).tolist())
    if printer is not None and options.print_printer not in fitting:
        room = " x ".join(format_number(value, 4) for value in printer.volume_mm)
        yield Finding(
            code="does_not_fit",
            severity="error",
            message=f"the model of {words} mm does not fit on the {printer.label} ({room} mm); use {{fit_mm}}, or "
            "{split_for_bed}",
            options=("fit_mm", "split_for_bed"),
            amount=float((high - low).max()),
            limit=max(printer.volume_mm),
            unit="mm",
            remedy={"split_for_bed": "x".join(format_number(value, 4) for value in printer.volume_mm)},
        )
    elif printer is None and not fitting:
        yield Finding(
            code="does_not_fit",
            severity="warning",
            message=f"the model of {words} mm fits on none of {len(PRINTERS)} common printers; use {{split_for_bed}}, "
            "or check the unit",
            options=("split_for_bed",),
            amount=float((high - low).max()),
            unit="mm",
        )
    if printer is not None and options.print_process == "fdm":
        yield from _find_colors(scene, printer)
    length = _typical_edge(vertices, faces)
    if len(faces) > 100_000 and length < FINE_RATIO * options.print_nozzle_mm:
        yield Finding(
            code="too_detailed",
            severity="info",
            message=f"edges are about {format_number(length, 2)} mm long, far finer than a nozzle of "
            f"{format_number(options.print_nozzle_mm, 2)} mm; {{optimize_target_faces}} makes the file smaller",
            options=("optimize_target_faces",),
            amount=length,
            limit=FINE_RATIO * options.print_nozzle_mm,
            unit="mm",
            remedy={"optimize_target_faces": max(50_000, len(faces) // 10)},
        )


def _find_unit_doubt(extent: float) -> Iterator[Finding]:
    """Find a size that suggests another unit than that in which the file was read."""
    if MIN_USUAL_MM <= extent <= MAX_USUAL_MM:
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


def _find_colors(scene: Scene, printer: Printer) -> Iterator[Finding]:
    """Find more colors than the printer has filaments; textures and colors of vertices have as many as there are."""
    surfaces = {Surface(part.mesh, part.material) for part in scene.parts}
    used = {number for surface in surfaces for number in np.unique(get_face_materials(scene, surface)).tolist()}
    materials = [scene.materials[number] for number in used - {-1}]
    count = len({material.base_color for material in materials}) + (-1 in used)
    did(colors=count)
    has_shades = any(scene.meshes[surface.mesh].colors is not None for surface in surfaces) or any(
        material.base_color_image is not None for material in materials
    )
    if count <= printer.filaments and not has_shades:
        return
    words = "shades of a texture or of vertex colors" if has_shades else f"{count:,} colors"
    filaments = "1 filament" if printer.filaments == 1 else f"{printer.filaments} filaments"
    yield Finding(
        code="too_many_colors",
        severity="info",
        message=f"the model has {words}, and the {printer.label} prints {filaments} at once; "
        f"use {{reduce_colors={printer.filaments}}}",
        options=("reduce_colors",),
        amount=None if has_shades else count,
        limit=printer.filaments,
        remedy={"reduce_colors": printer.filaments},
    )


def _typical_edge(vertices: Float64, faces: Int32) -> float:
    """Return the side of an equilateral triangle of mean area."""
    area = float(np.linalg.norm(face_normals(vertices, faces), axis=1).sum()) / 2
    return float(np.sqrt(area / max(1, len(faces)) * 4 / np.sqrt(3)))


def _group_faces(vertices: Float64, faces: Int32, chosen: IntIndex, area: Float64) -> tuple[Float64, Float64]:
    """Return the area of each connected group of faces, and the center of its face nearest to the middle."""
    if len(chosen) == 0:
        return np.empty(0), np.empty((0, 3))
    own = weld(vertices)[1][faces[chosen]]
    half_a, half_b = edges(own).pairs()
    count, label = components(len(chosen), half_a // 3, half_b // 3)
    total: Float64 = np.bincount(label, area[chosen], count).astype(np.float64)
    centers = vertices[faces[chosen]].mean(axis=1)
    sums = np.stack([np.bincount(label, area[chosen] * centers[:, axis], count) for axis in range(3)], axis=1)
    middle = sums / np.maximum(total, 1e-12)[:, None]
    distance = np.linalg.norm(centers - middle[label], axis=1)
    order = np.lexsort((distance, label))
    nearest = order[np.searchsorted(label[order], np.arange(count))]
    return total, centers[nearest]


def _is_above(foot: Float64, point: Float64) -> bool:
    """Return whether a point (2,) is in the convex hull of points (n, 2)."""
    try:
        hull = ConvexHull(foot)
    except (QhullError, ValueError):
        return False
    inside: NDArray[np.bool_] = hull.equations[:, :2] @ point + hull.equations[:, 2] <= 1e-6
    return bool(inside.all())
