"""Division of a solid into pieces that fit a bed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil
from typing import NamedTuple

import numpy as np
from manifold3d import Manifold

from meshhub.errors import InvalidOption
from meshhub.model.scene import Float64
from meshhub.toolkit.cut_planes import Plane
from meshhub.toolkit.printers import ROUNDING_RATIO
from meshhub.toolkit.solids import find_tolerance, split_solid

MIN_THICKNESS_MM = 10.0
"""Minimum millimeters of a body; a plane is moved if a thinner body would be cut off."""

MAX_PIECES = 500
"""Maximum pieces of one part; more are due to a wrong unit or bed."""

SHIFTS = (0.0, -0.3, 0.3, -0.6, 0.6, -0.9, 0.9)
"""Positions of a plane between its limits (-1 and 1) and the middle (0), in the order of preference."""


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


def divide(solid: Manifold, bed: Float64, protrusion: float, cuts: Sequence[Plane] = ()) -> Pieces:
    """Cut a solid at planes, and then into few pieces of similar size that fit a bed.

    Bodies that a cut separates become separate pieces, so that each gets only the cuts that it needs.

    Args:
        solid: Millimeters.
        bed: (3,) sides of the bed.
        protrusion: Length by which connectors extend pieces at their high ends.
        cuts: Planes at which to cut first, whether the bed requires it or not.
    Raises:
        InvalidOption: There would be more than MAX_PIECES pieces.
    """
    solids: list[Manifold] = []
    queue, planes, thin = _cut_at_planes(solid, cuts)
    queue.reverse()
    while queue:
        piece = queue.pop()
        box = box_of(piece)
        is_cut_above = np.array([Plane(axis, end) in planes for axis, end in enumerate(box[1].tolist())])
        ratio = (box[1] - box[0]) / (bed - protrusion * is_cut_above)
        if ratio.max() <= 1 + ROUNDING_RATIO:
            solids.append(piece)
        elif len(bodies := _separate(piece)) > 1:
            queue += reversed(bodies)
        else:
            axis = int(ratio.argmax())
            plane, halves, is_thin = _cut(piece, axis, float(bed[axis]) - protrusion)
            planes.add(plane)
            queue += reversed(halves)
            thin += is_thin
        _check_count(len(solids) + len(queue), "split_for_bed", "choose a larger bed, or check the unit of the model")
    return Pieces(solids, planes, thin)


def _check_count(count: int, option: str, remedy: str) -> None:
    if count > MAX_PIECES:
        raise InvalidOption(
            f"option '{{{option}}}' would make over {MAX_PIECES} pieces of one part; {remedy}", options=(option,)
        )


def _separate(solid: Manifold) -> list[Manifold]:
    """Return the bodies of a solid, or the solid itself if it has cavities."""
    shells: list[Manifold] = solid.decompose()
    return shells if all(shell.volume() > 0 for shell in shells) else [solid]


def _cut_at_planes(solid: Manifold, cuts: Sequence[Plane]) -> Pieces:
    """Cut a solid at the planes that cross it; bodies that the cuts separate become pieces."""
    pieces, planes, thin = [solid], set(), 0
    for plane in cuts:
        divided = [_halve(piece, plane) for piece in pieces]
        crossed = [halves for halves in divided if len(halves) > 1]
        if crossed:
            planes.add(plane)
        thin += sum(_count_thin(halves, plane.axis) > 0 for halves in crossed)
        pieces = [half for halves in divided for half in halves]
        _check_count(len(pieces), "split_for_bed_cuts", "remove some of its planes")
    return Pieces([body for piece in pieces for body in _separate(piece)] if planes else pieces, planes, thin)


def _halve(piece: Manifold, plane: Plane) -> list[Manifold]:
    """Return the halves of a piece that are left, or the piece itself if the plane is beside it."""
    box = box_of(piece)
    if not plane.crosses(box, find_tolerance(box)):
        return [piece]
    return [half for half in split_solid(piece, *plane) if not half.is_empty()]


def _count_thin(solids: Iterable[Manifold], axis: int) -> int:
    """Return the number of bodies that are thinner along an axis than MIN_THICKNESS_MM."""
    return sum(bool(np.ptp(box_of(body)[:, axis]) < MIN_THICKNESS_MM) for solid in solids for body in solid.decompose())


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
        thin = _count_thin(halves, axis)
        if best is None or thin < best[0]:
            best = thin, offset, halves
        if thin == 0:
            break
    assert best is not None
    return Plane(axis, best[1]), best[2], bool(best[0])
