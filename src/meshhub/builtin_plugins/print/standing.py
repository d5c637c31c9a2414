"""Checks `overhangs` and `standing`: what needs support, and how the model stands."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull, QhullError

from meshhub.builtin_plugins.print import PrintOptions
from meshhub.errors import format_number
from meshhub.model.notes import did
from meshhub.model.scene import Float64, Int32, Scene
from meshhub.model.verdict import MAX_PLACES, Finding, Place
from meshhub.toolkit.geometry import IntIndex, extremes, face_normals, soup, weld
from meshhub.toolkit.poses import center_of_mass, find_sides
from meshhub.toolkit.supports import measure_support
from meshhub.toolkit.topology import components, edges

MIN_OVERHANG_MM2 = 5.0
"""Area of the smallest overhang that counts; smaller ones print with a rough surface."""

MIN_CONTACT_MM2 = 20.0
"""Area on the bed from which a model holds without a brim, if it is not high."""

MAX_SLENDERNESS = 10.0
"""Height per side of a square as large as the contact, up to which a model holds."""

MAX_TURN = 1e-9
"""One minus the cosine of a turn that changes nothing."""


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
