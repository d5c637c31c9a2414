"""Checks `walls` and `gaps`: walls that are too thin to print, and gaps that fuse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from meshhub.builtin_plugins.print import PrintOptions
from meshhub.builtin_plugins.print.bodies import ROUNDING_RATIO, oriented
from meshhub.errors import format_count, format_number
from meshhub.model.notes import did
from meshhub.model.scene import Float64, Scene
from meshhub.model.verdict import MAX_PLACES, Finding, Place
from meshhub.toolkit.geometry import IntIndex, soup
from meshhub.toolkit.thickness import OppositeSides, Samples, group_nearby, sample_evenly

TOLERANCE_RATIO = 0.02
"""Shortfall per limit that is not reported: rounding of files, and facets of round walls."""

MIN_WALL_AREA_RATIO, MIN_GAP_AREA_RATIO = 12.0, 50.0
"""Area of both sides of the smallest place per square of the least wall: smaller ones are not visible in a print."""

MIN_HEIGHT_RATIO = 0.8
"""Least height of a wall per thickness: the root of a wall, which is narrower, is not a wall."""

QUANTILES = (0.05, 0.25, 0.75)
"""Shares of a place whose widths are compared; balls beside the edges of facets are smaller than the wall."""

MIN_EVEN_RATIO = 0.7
"""Least ratio of the latter two widths. A knife edge, the tip of a chamfer and a curved face that runs out have all
widths from 0 on, and a ratio of up to 0.55."""

MAX_DETAIL_MM = 2.0
"""Size of the smallest details that are examined from which a finding says so; models of 100 mm have finer ones."""

LOST_RATIO = 0.3
"""Width per nozzle under which no slicer prints a wall: for 0.4 mm, PrusaSlicer 2.5 prints 0.15 mm as gap fill
and nothing of 0.11 mm, with and without its option for thin walls."""


class _Region(NamedTuple):
    """Place that is too narrow.

    width:   all but the first of `QUANTILES` of the place exceed it, in mm
    typical: the last of `QUANTILES` of the place have at most this width, in mm
    area:    mm²
    """

    place: Place
    width: float
    typical: float
    area: float


def run_walls(scene: Scene, options: PrintOptions) -> Iterator[Finding]:
    """Find walls that are thinner than the process can print.

    Args:
        scene: Millimeters, Z up.
        options: Process, nozzle, and the limit.
    """
    limit = options.min_wall_mm
    regions, share, detail = _find_regions(scene, options, limit, gaps=False)
    did(limit_mm=limit, smallest_detail_mm=detail)
    if detail > MAX_DETAIL_MM:
        yield Finding(
            code="coarse_examination",
            severity="info",
            message="the model is so large, and its triangles so small, that walls and gaps of details under "
            f"{format_number(detail, 2)} mm may be missed; check such parts by themselves",
            amount=detail,
            limit=MAX_DETAIL_MM,
            unit="mm",
        )
    if not regions:
        return
    worst = regions[0]
    is_line = options.print_process == "fdm"
    lost_mm = LOST_RATIO * (options.print_nozzle_mm if is_line else limit)
    is_lost = any(region.typical < lost_mm for region in regions)
    did(thinnest_mm=worst.width, thin_area_mm2=sum(region.area for region in regions))
    count = format_count(len(regions), "place", "places")
    result = "they may break"
    if is_lost:
        result = "slicers leave such walls out"
    elif is_line:
        result = "some slicers leave them out, others print one thin line"
    yield Finding(
        code="thin_walls",
        severity="error" if is_lost else "warning",
        message=f"walls are thinner than {format_number(limit, 3)} mm at {count}, the thinnest "
        f"{format_number(worst.width, 3)} mm; {result}; use {{thicken_mm}}, or scale the model, or use {{offset_mm}}",
        options=("thicken_mm", "offset_mm"),
        amount=worst.width,
        limit=limit,
        unit="mm",
        share=share,
        places=tuple(region.place for region in regions[:MAX_PLACES]),
        places_found=len(regions),
        remedy={"thicken_mm": limit},
        picture={"color_by": "thickness", "color_limit": limit},
    )


def run_gaps(scene: Scene, options: PrintOptions) -> Iterator[Finding]:
    """Find gaps within and between parts that are narrower than the process keeps open.

    Args:
        scene: Millimeters, Z up.
        options: Process, and the limit.
    """
    limit = options.min_gap_mm
    regions, share, detail = _find_regions(scene, options, limit, gaps=True)
    did(limit_mm=limit, smallest_detail_mm=detail)
    if not regions:
        return
    worst = regions[0]
    did(narrowest_mm=worst.width)
    count = format_count(len(regions), "place", "places")
    yield Finding(
        code="narrow_gaps",
        severity="warning",
        message=f"gaps are narrower than {format_number(limit, 3)} mm at {count}, the narrowest "
        f"{format_number(worst.width, 3)} mm; both sides may fuse, and joints may not move",
        amount=worst.width,
        limit=limit,
        unit="mm",
        share=share,
        places=tuple(region.place for region in regions[:MAX_PLACES]),
        places_found=len(regions),
    )


def _find_regions(
    scene: Scene, options: PrintOptions, limit: float, *, gaps: bool
) -> tuple[list[_Region], float, float]:
    """Return the places that are narrower than a limit, the narrowest first, and their share of the surface.

    The last is the size in mm of the smallest details that were examined.
    """
    vertices, faces = soup(oriented(scene))
    samples = sample_evenly(vertices, faces, limit)
    if len(samples.points) == 0:
        return [], 0.0, 0.0
    sides = OppositeSides(vertices, faces, samples)
    # where bodies touch, a surface has neither a wall nor a gap, up to rounding
    touching = ROUNDING_RATIO * options.min_wall_mm
    straight = sides.measure(np.arange(len(samples.points)), limit, gaps=gaps)
    width = straight
    if options.print_process == "fdm":
        width = _measure_in_layers(straight, samples, np.inf if gaps else options.layer_mm / 2)
    is_narrow = (width < (1 - TOLERANCE_RATIO) * limit) & (straight > touching)
    if not gaps:
        is_foil = sides.find_foils(touching)
        width[is_foil] = 0.0
        is_narrow |= is_foil
    narrow = np.flatnonzero(is_narrow)
    if len(narrow) == 0:
        return [], 0.0, samples.detail
    least = (MIN_GAP_AREA_RATIO if gaps else MIN_WALL_AREA_RATIO) * options.min_wall_mm**2
    regions = list(_group(scene, samples, narrow, width[narrow], max(2 * samples.spacing, limit), least))
    share = sum(region.area for region in regions) / float(samples.areas.sum())
    return sorted(regions, key=lambda region: region.width), share, samples.detail


def _measure_in_layers(straight: Float64, samples: Samples, flat_mm: float) -> Float64:
    """Return the widths (k,) of walls within their layers: lines are as wide as a level cut through the wall.

    Args:
        straight: (k,) widths across the wall.
        samples: Points on the surface.
        flat_mm: Height under which layers miss a wall or bridge a gap that lies flat.
    """
    level = np.sqrt(np.maximum(1 - samples.normals[:, 2] ** 2, 0.0))
    upright = np.abs(samples.normals[:, 2])
    width = np.where(straight < np.inf, straight / np.maximum(level, 1e-9), np.inf)
    return np.where(straight < flat_mm * upright, straight, width)


def _group(
    scene: Scene, samples: Samples, narrow: IntIndex, width: Float64, distance: float, least_mm2: float
) -> Iterator[_Region]:
    """Yield the places of narrow samples (q,) with widths (q,), which steps of a distance connect."""
    points = samples.points[narrow]
    count, group = group_nearby(points, distance)
    order = np.lexsort((width, group))
    ends = np.cumsum(np.bincount(group, minlength=count))
    part_ends = np.cumsum([len(scene.meshes[part.mesh].faces) for part in scene.parts])
    for start, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
        members = order[start:end]
        area = float(samples.areas[narrow[members]].sum())
        if area < least_mm2:
            continue
        size = float(np.linalg.norm(np.ptp(points[members], axis=0)))
        thinnest = members[int(QUANTILES[0] * len(members))]
        low, typical = (float(width[members[int(share * len(members))]]) for share in QUANTILES[1:])
        # both sides of a wall are in its place
        if area / 2 < MIN_HEIGHT_RATIO * typical * size or low < MIN_EVEN_RATIO * typical:
            continue
        x, y, z = points[thinnest].tolist()
        thickness = float(width[thinnest])
        yield _Region(
            place=Place(
                position_mm=(x, y, z),
                size_mm=size,
                part=int(np.searchsorted(part_ends, samples.faces[narrow[thinnest]], side="right")),
                amount=thickness,
            ),
            width=thickness,
            typical=typical,
            area=area,
        )
