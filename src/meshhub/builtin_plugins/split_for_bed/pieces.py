"""Division of a solid into pieces that fit a bed."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

import numpy as np
from manifold3d import Manifold

from meshhub.errors import InvalidOption
from meshhub.model.scene import Float64
from meshhub.toolkit.solids import split_solid

MIN_THICKNESS_MM = 10.0
"""Minimum millimeters of a body; a plane is moved if a thinner body would be cut off."""

MAX_PIECES = 500
"""Maximum pieces of one part; more are due to a wrong unit or bed."""

SHIFTS = (0.0, -0.3, 0.3, -0.6, 0.6, -0.9, 0.9)
"""Positions of a plane between its limits (-1 and 1) and the middle (0), in the order of preference."""

ROUNDING_RATIO = 1e-6
"""Excess over the bed, relative to it, that counts as rounding."""


class Plane(NamedTuple):
    """Plane of a cut, perpendicular to an axis, in millimeters."""

    axis: int
    offset: float


class Pieces(NamedTuple):
    """Result of a division.

    solids: pieces that fit the bed
    planes: planes of the cuts at which a piece ends
    thin:   number of cuts that leave bodies thinner than MIN_THICKNESS_MM
    """

    solids: list[Manifold]
    planes: set[Plane]
    thin: int


def box_of(solid: Manifold) -> Float64:
    """Return the lowest and the highest corner (2, 3) of a solid."""
    return np.array(solid.bounding_box()).reshape(2, 3)


def divide(solid: Manifold, bed: Float64, protrusion: float) -> Pieces:
    """Cut a solid into few pieces of similar size that fit a bed.

    Bodies that a cut separates become separate pieces, so that each gets only the cuts that it needs.

    Args:
        solid: Millimeters.
        bed: (3,) sides of the bed.
        protrusion: Length by which connectors extend pieces at their high ends.
    Raises:
        InvalidOption: There would be more than MAX_PIECES pieces.
    """
    result = Pieces([], set(), 0)
    queue = [solid]
    thin = 0
    while queue:
        piece = queue.pop()
        size = np.ptp(box_of(piece), axis=0)
        ratio = size / bed
        if ratio.max() <= 1 + ROUNDING_RATIO:
            result.solids.append(piece)
        elif len(bodies := _separate(piece)) > 1:
            queue += reversed(bodies)
        else:
            axis = int(ratio.argmax())
            plane, halves, is_thin = _cut(piece, axis, float(bed[axis]) - protrusion)
            result.planes.add(plane)
            queue += reversed(halves)
            thin += is_thin
        if len(result.solids) + len(queue) > MAX_PIECES:
            raise InvalidOption(
                f"option '{{split_for_bed}}' would make over {MAX_PIECES} pieces of one part; choose a larger bed, or "
                "check the unit of the model",
                options=("split_for_bed",),
            )
    return result._replace(thin=thin)


def _separate(solid: Manifold) -> list[Manifold]:
    """Return the bodies of a solid, or the solid itself if it has cavities."""
    shells: list[Manifold] = solid.decompose()
    return shells if all(shell.volume() > 0 for shell in shells) else [solid]


def _cut(solid: Manifold, axis: int, length: float) -> tuple[Plane, tuple[Manifold, Manifold], bool]:
    """Cut off the lowest piece, of at most this length; all pieces along the axis may have the same length.

    Returns:
        The plane, both halves, and whether one has a thin body.
    """
    low, high = box_of(solid)[:, axis]
    count = max(2, ceil((high - low) / length - ROUNDING_RATIO))
    equal = (high - low) / count
    # the remaining pieces must not become too long
    shortest = (high - low) - (count - 1) * length
    best = None
    for shift in SHIFTS:
        limit = length if shift > 0 else max(shortest, min(MIN_THICKNESS_MM, equal))
        offset = float(low + equal + abs(shift) * (limit - equal))
        halves = split_solid(solid, axis, offset)
        thin = sum(np.ptp(box_of(body)[:, axis]) < MIN_THICKNESS_MM for half in halves for body in half.decompose())
        if best is None or thin < best[0]:
            best = thin, offset, halves
        if thin == 0:
            break
    assert best is not None
    return Plane(axis, best[1]), best[2], bool(best[0])
