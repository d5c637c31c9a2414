"""Checks `walls` and `gaps`: walls that are too thin to print, and gaps that fuse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from meshhub.builtin_plugins.print import PrintOptions
from meshhub.builtin_plugins.print.bodies import oriented
from meshhub.errors import format_count, format_number
from meshhub.model.notes import did
from meshhub.model.scene import Float64, Scene
from meshhub.model.verdict import MAX_PLACES, Finding, Place
from meshhub.toolkit.geometry import IntIndex, soup
from meshhub.toolkit.thickness import OppositeSides, Samples, group_nearby, sample_evenly

TOLERANCE_RATIO = 0.02
"""Shortfall per limit that is not reported: rounding of files, and facets of round walls."""

TOUCHING_RATIO = 1e-3
"""Distance per limit up to which two surfaces touch."""

MIN_AREA_RATIO = 2.0
"""Least area of a place, per square of the limit: sharp tips and edges that are smaller print as they do elsewhere."""

MIN_HEIGHT_RATIO = 0.8
"""Least height of a wall per thickness: the root of a wall, which is narrower, is not a wall."""

THINNEST_QUANTILE = 0.05
"""Share of a place that is thinner than its amount: balls beside the edges of facets are smaller than the wall."""

MAX_DETAIL_MM = 2.0
"""Size of the smallest details that are examined from which a finding says so; models of 100 mm have finer ones."""

VANISHING_RATIO = 0.5
"""Thickness per limit below which slicers leave out a wall."""

VANISHING_QUANTILE = 0.75
"""Share of a place that is so thin where a wall vanishes; wedges are as thin only at their tip."""


class _Region(NamedTuple):
    """Place that is too narrow.

    width:    ray that all but `THINNEST_QUANTILE` of the place exceed, in mm
    ball:     the same for balls, in mm
    typical:  ray that `VANISHING_QUANTILE` of the place have at most, in mm
    area:     mm²
    """

    place: Place
    width: float
    ball: float
    typical: float
    area: float


def run_walls(scene: Scene, options: PrintOptions) -> Iterator[Finding]:
    """Find walls that are thinner than the process can print.

    Args:
        scene: Millimeters, Z up.
        options: Process, nozzle, and the limit.
    """
    limit = options.min_wall_mm
    regions, share, detail = _find_regions(scene, limit, gaps=False)
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
    vanishing = [region for region in regions if region.typical < VANISHING_RATIO * limit]
    did(thinnest_mm=worst.width, thin_area_mm2=sum(region.area for region in regions))
    count = format_count(len(regions), "place", "places")
    result = "slicers leave such walls out" if vanishing else "they may break, or print with gaps"
    yield Finding(
        code="thin_walls",
        severity="error" if vanishing else "warning",
        message=f"walls are thinner than {format_number(limit, 3)} mm at {count}, the thinnest {_describe(worst)}; "
        f"{result}; use {{thicken_mm}}, or scale the model",
        options=("thicken_mm",),
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
    regions, share, detail = _find_regions(scene, limit, gaps=True)
    did(limit_mm=limit, smallest_detail_mm=detail)
    if not regions:
        return
    worst = regions[0]
    did(narrowest_mm=worst.width)
    count = format_count(len(regions), "place", "places")
    yield Finding(
        code="narrow_gaps",
        severity="warning",
        message=f"gaps are narrower than {format_number(limit, 3)} mm at {count}, the narrowest {_describe(worst)}; "
        "both sides may fuse, and joints may not move",
        amount=worst.width,
        limit=limit,
        unit="mm",
        share=share,
        places=tuple(region.place for region in regions[:MAX_PLACES]),
        places_found=len(regions),
    )


def _describe(region: _Region) -> str:
    return f"{format_number(region.width, 3)} mm (ray; {format_number(region.ball, 3)} mm for a ball)"


def _find_regions(scene: Scene, limit: float, *, gaps: bool) -> tuple[list[_Region], float, float]:
    """Return the places that are narrower than a limit, the narrowest first, and their share of the surface.

    The last is the size in mm of the smallest details that were examined.
    """
    vertices, faces = soup(oriented(scene))
    samples = sample_evenly(vertices, faces, limit)
    if len(samples.points) == 0:
        return [], 0.0, 0.0
    sides = OppositeSides(vertices, faces, samples)
    # where bodies touch, a surface has neither a wall nor a gap, up to rounding
    touching = TOUCHING_RATIO * limit
    width, straight = sides.measure(np.arange(len(samples.points)), limit, gaps=gaps)
    is_narrow = (width < (1 - TOLERANCE_RATIO) * limit) & (width > touching)
    if not gaps:
        is_foil = sides.find_foils(touching)
        width[is_foil] = straight[is_foil] = 0.0
        is_narrow |= is_foil
    narrow = np.flatnonzero(is_narrow)
    if len(narrow) == 0:
        return [], 0.0, samples.detail
    regions = list(_group(scene, samples, narrow, width[narrow], straight[narrow], limit))
    share = sum(region.area for region in regions) / float(samples.areas.sum())
    return sorted(regions, key=lambda region: region.width), share, samples.detail


def _group(
    scene: Scene, samples: Samples, narrow: IntIndex, width: Float64, straight: Float64, limit: float
) -> Iterator[_Region]:
    points = samples.points[narrow]
    count, group = group_nearby(points, max(2 * samples.spacing, limit))
    order = np.lexsort((straight, group))
    ends = np.cumsum(np.bincount(group, minlength=count))
    part_ends = np.cumsum([len(scene.meshes[part.mesh].faces) for part in scene.parts])
    for start, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
        members = order[start:end]
        area = float(samples.areas[narrow[members]].sum())
        size = float(np.linalg.norm(np.ptp(points[members], axis=0)))
        thinnest = members[int(THINNEST_QUANTILE * len(members))]
        typical = members[int(VANISHING_QUANTILE * len(members))]
        # both sides of a wall are in its place
        is_low = area / 2 < MIN_HEIGHT_RATIO * straight[typical] * size
        if area < MIN_AREA_RATIO * limit**2 or is_low:
            continue
        x, y, z = points[thinnest].tolist()
        yield _Region(
            place=Place(
                position_mm=(x, y, z),
                size_mm=size,
                part=int(np.searchsorted(part_ends, samples.faces[narrow[thinnest]], side="right")),
                amount=float(straight[thinnest]),
            ),
            width=float(straight[thinnest]),
            ball=float(np.quantile(width[members], THINNEST_QUANTILE)),
            typical=float(straight[typical]),
            area=area,
        )
