"""Connectors between the pieces of a solid: pegs, dowels and dovetails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import product
from typing import Literal, NamedTuple

import numpy as np
from manifold3d import CrossSection, JoinType, Manifold, OpType

from meshhub.builtin_plugins.split_for_bed.pieces import box_of
from meshhub.model.scene import Float64
from meshhub.toolkit.cut_planes import Plane
from meshhub.toolkit.solids import surface_of
from meshhub.toolkit.validity import find_damage

Kind = Literal["none", "pegs", "dowels", "dovetail"]

PROTRUDING: tuple[Kind, ...] = ("pegs", "dovetail")
"""Connectors that are part of a piece, and extend it."""

PEG_RADII_MM = (4.0, 3.0, 2.0)
"""Radii of pegs and dowels, of which the largest that fits is used; a peg is as long as it is thick."""

MAX_LENGTH_MM = 2 * PEG_RADII_MM[0]
"""Millimeters by which a connector protrudes from a piece."""

WALL_MM = 1.2
"""Millimeters of material around a connector: three lines of a 0.4 mm nozzle."""

ROOT_MM = 1.0
"""Depth of the material below a peg that belongs to it."""

LEVEL_STEP_MM = 1.0
"""Distance of the cross-sections in which a connector needs material."""

MAX_PEGS = 4
"""Maximum pegs on one connected area of a cut."""

MIN_DISTANCE_MM = 20.0
"""Distance of the axes of pegs; between two pegs on a smaller area, four radii are enough."""

GRID = 24
"""Positions tried along each side of the box around an area."""

SEGMENTS = 32
"""Sides of pegs and holes."""

DOVETAIL_WIDTHS_MM = (20.0, 12.0, 6.0)
"""Widths of a dovetail, of which the largest that fits is used; its depth is at most half of it."""

FULL_RATIO = 0.98
"""Share of a rectangle around a dovetail that must be material; the rest allows for rounded edges."""

DOVETAIL_SLOPE = float(np.tan(np.deg2rad(15)))
"""Widening of a dovetail per depth."""

CONTACT_MM = 0.01
"""Distance from the plane of the cross-sections that count as contact; the one in the plane is undefined. """


@dataclass
class Connectors:
    """Connectors that were found.

    added:   solids to add to each piece
    removed: solids to remove from each piece
    dowels:  separate solids
    count:   number of connectors
    bare: number of contacts without connectors
    boxes:   (2, 3) box around each connector
    """

    added: dict[int, list[Manifold]] = field(default_factory=dict)
    removed: dict[int, list[Manifold]] = field(default_factory=dict)
    dowels: list[Manifold] = field(default_factory=list)
    count: int = 0
    bare: int = 0
    boxes: list[Float64] = field(default_factory=list)

    def add(self, site: _Site, outline: Manifold, added: Manifold, removed: Sequence[Manifold]) -> bool:
        """Add a connector, unless it meets another one.

        Args:
            site: Area of the connector; all solids are turned like its pieces.
            outline: Solid that contains the connector and its holes.
            added: The connector.
            removed: Hole in the upper piece and, for a separate connector, that in the lower piece.
        """
        back = np.column_stack([_turn(site.axis)[:, :3].T, np.zeros(3)])
        box = box_of(outline.transform(back))
        if any((box[0] < other[1]).all() and (other[0] < box[1]).all() for other in self.boxes):
            return False
        self.boxes.append(box)
        for number, hole in zip((site.high, site.low), removed, strict=False):
            self.removed.setdefault(number, []).append(hole.transform(back))
        if len(removed) == 1:
            self.added.setdefault(site.low, []).append(added.transform(back))
        else:
            self.dowels.append(added.transform(back))
        self.count += 1
        return True

    def apply(self, pieces: Sequence[Manifold]) -> list[Manifold]:
        """Return the pieces with their connectors and holes."""
        result = []
        for number, piece in enumerate(pieces):
            if number in self.removed:
                piece = Manifold.batch_boolean([piece, *self.removed[number]], OpType.Subtract)
            if number in self.added:
                piece = Manifold.batch_boolean([piece, *self.added[number]], OpType.Add)
            result.append(piece)
        return result


class _Contact(NamedTuple):
    """Two pieces that touch in a plane, turned so that the plane is horizontal.

    low, high: the pieces below and above, only near the plane
    level:     height of the plane
    """

    low: Manifold
    high: Manifold
    level: float

    def section(self, height: float) -> CrossSection:
        """Return the cross-section at a height above the plane, or below it."""
        return (self.high if height > 0 else self.low).slice(self.level + height)

    def common(self, low: float, high: float) -> CrossSection:
        """Return the area that has material at all heights of a range around the plane."""
        count = max(2, int(np.ceil((high - low) / LEVEL_STEP_MM)) + 1)
        heights = np.linspace(low, high, count)
        # on both sides of the plane, but not in it
        levels = {CONTACT_MM if abs(height) < CONTACT_MM else float(height) for height in heights}
        sections = [self.section(height) for height in sorted({*levels, -CONTACT_MM, CONTACT_MM})]
        return reduce(lambda first, second: first ^ second, sections)


def find_connectors(pieces: Sequence[Manifold], planes: set[Plane], kind: Kind, clearance: float) -> Connectors:
    """Find places for connectors between pieces, where there is enough material around them on both sides.

    Args:
        pieces: Solids that touch in the planes, in millimeters.
        planes: Planes of the cuts.
        kind: Kind of connectors.
        clearance: Gap between a connector and its hole, in millimeters.
    """
    result = Connectors()
    boxes = [box_of(piece) for piece in pieces]
    for axis, offset in sorted(planes):
        lows = [number for number, box in enumerate(boxes) if box[1, axis] == offset]
        highs = [number for number, box in enumerate(boxes) if box[0, axis] == offset]
        for low, high in product(lows, highs):
            overlap = np.minimum(boxes[low][1], boxes[high][1]) - np.maximum(boxes[low][0], boxes[high][0])
            if (np.delete(overlap, axis) <= 0).any():
                continue
            turn = _turn(axis)
            contact = _Contact(
                _crop(pieces[low].transform(turn), offset), _crop(pieces[high].transform(turn), offset), offset
            )
            before = result.count
            areas = [area for area in contact.common(-CONTACT_MM, CONTACT_MM).decompose() if not area.is_empty()]
            for area in areas:
                site = _Site(contact, area, axis, low, high)
                if kind == "dovetail":
                    _add_dovetails(result, site, clearance)
                else:
                    _add_pegs(result, site, clearance, are_separate=kind == "dowels")
            result.bare += bool(areas) and result.count == before
    return result


class _Site(NamedTuple):
    """Connected area in which two pieces touch."""

    contact: _Contact
    area: CrossSection
    axis: int
    low: int
    high: int


def _turn(axis: int) -> Float64:
    """Return the (3, 4) matrix that rotates the axes cyclically, so that `axis` becomes Z."""
    return np.column_stack([np.roll(np.eye(3), axis + 1, axis=1), np.zeros(3)])


def _crop(solid: Manifold, level: float) -> Manifold:
    """Return the part of a solid near a plane, so that further operations take less time."""
    low, high = box_of(solid)
    size = high - low + 2
    size[2] = 4 * MAX_LENGTH_MM
    corner = low - 1
    corner[2] = level - 2 * MAX_LENGTH_MM
    return solid ^ Manifold.cube(size.tolist()).translate(corner.tolist())


def _add_pegs(result: Connectors, site: _Site, clearance: float, *, are_separate: bool) -> None:
    """Add pegs or, if they are separate, dowels, as thick as the room allows."""
    contact = site.contact
    for radius in PEG_RADII_MM:
        length, gap = 2 * radius, radius + clearance
        depth = length + clearance + WALL_MM
        below = depth if are_separate else ROOT_MM
        room = (site.area ^ contact.common(-below, depth)).offset(-(gap + WALL_MM), JoinType.Round)
        is_found = False
        for spot in _choose_spots(room, radius):
            outline = _cylinder(spot, gap + WALL_MM / 2, contact.level - below, contact.level + depth)
            # cross-sections are samples; the volume is exact
            if (outline - contact.low - contact.high).volume() > 1e-6 * outline.volume():
                continue
            holes = [_cylinder(spot, gap, contact.level - ROOT_MM, contact.level + length + clearance)]
            if are_separate:
                holes.append(_cylinder(spot, gap, contact.level - length - clearance, contact.level + ROOT_MM))
            begin = contact.level - (length if are_separate else ROOT_MM)
            is_found |= result.add(site, outline, _cylinder(spot, radius, begin, contact.level + length), holes)
        if is_found:
            return


def _cylinder(spot: Float64, radius: float, low: float, high: float) -> Manifold:
    return Manifold.cylinder(high - low, radius, circular_segments=SEGMENTS).translate((*spot.tolist(), low))


def _choose_spots(room: CrossSection, radius: float) -> list[Float64]:
    """Return positions (2,) in the areas of a room that are far apart, and not closer than pegs may be."""
    spots: list[Float64] = []
    for area in room.decompose():
        points = _grid_inside(area)
        if len(points) == 0:
            continue
        far = np.linalg.norm(points - points.mean(axis=0), axis=1)
        chosen = [points[far.argmax()]]
        while len(chosen) < MAX_PEGS:
            distance = np.min([np.linalg.norm(points - spot, axis=1) for spot in chosen], axis=0)
            if distance.max() < max(4 * radius, MIN_DISTANCE_MM if len(chosen) > 1 else 0):
                break
            chosen.append(points[distance.argmax()])
        spots += chosen if len(chosen) > 1 else [points[far.argmin()]]
    return spots


def _grid_inside(area: CrossSection) -> Float64:
    """Return the points (k, 2) of a grid that are inside an area, by the parity of the sides that a ray crosses."""
    x0, y0, x1, y1 = area.bounds()
    fractions = (np.arange(GRID) + 0.5) / GRID
    x, y = (values.ravel() for values in np.meshgrid(x0 + (x1 - x0) * fractions, y0 + (y1 - y0) * fractions))
    is_inside = np.zeros(len(x), np.bool_)
    for polygon in area.to_polygons():
        begin, end = polygon[:, :, None], np.roll(polygon, -1, axis=0)[:, :, None]
        spans = (begin[:, 1] > y) != (end[:, 1] > y)
        rise = np.where(begin[:, 1] == end[:, 1], 1, end[:, 1] - begin[:, 1])
        is_left = x < begin[:, 0] + (y - begin[:, 1]) / rise * (end[:, 0] - begin[:, 0])
        is_inside ^= (spans & is_left).sum(axis=0) % 2 == 1
    return np.column_stack([x, y])[is_inside]


def _add_dovetails(result: Connectors, site: _Site, clearance: float) -> None:
    """Add one dovetail, or two on a long area, that slide together along Z or, between layers, along Y."""
    across, along = (1, 0) if site.axis == 1 else (0, 1)
    box = np.array(site.area.bounds()).reshape(2, 2)
    begin, end = box[:, across]
    for width in DOVETAIL_WIDTHS_MM:
        middles = [(begin + end) / 2] if end - begin < 4 * width else [(3 * begin + end) / 4, (begin + 3 * end) / 4]
        tails = [_Dovetail(site.contact, middle, width, box[:, along], across) for middle in middles]
        added = [tail.add_to(result, site, clearance) for tail in tails if tail.has_room(clearance)]
        if any(added):
            return


class _Dovetail(NamedTuple):
    """Prism whose section is a trapezoid, in a contact.

    middle: center along the axis `across`
    width:  largest width
    reach:  (2,) begin and end along the other axis
    """

    contact: _Contact
    middle: float
    width: float
    reach: Float64
    across: int

    @property
    def depth(self) -> float:
        """Length above the plane."""
        return min(self.width / 2, MAX_LENGTH_MM)

    def has_room(self, clearance: float) -> bool:
        """Return whether there is material around, and both ends are open, so that the pieces can slide together."""
        around = self._rectangle(self.width / 2 + clearance + WALL_MM, *self.reach)
        strip = self._rectangle(self.width / 2, self.reach[0] - 1e5, self.reach[1] + 1e5)
        full, open_ended = around.area(), self._rectangle(self.width / 2, *self.reach).area()
        for height in np.arange(-ROOT_MM, self.depth + WALL_MM, LEVEL_STEP_MM) + CONTACT_MM:
            section = self.contact.section(float(height))
            if (section ^ around).area() < FULL_RATIO * full or (section ^ strip).area() > open_ended / FULL_RATIO:
                return False
        return True

    def add_to(self, result: Connectors, site: _Site, clearance: float) -> bool:
        """Add the dovetail, cut like the surfaces of the pieces, and its slot."""
        low, high = self.contact.low, self.contact.high
        upper, root = self._prism(0, self.depth, 0, 0), self._prism(-ROOT_MM, 0, 0, 0)
        tail = self._prism(-ROOT_MM, self.depth, 0, 0) - (upper - high) - (root - low)
        slot = self._prism(-ROOT_MM, self.depth + clearance, clearance, 1)
        if not all(find_damage(surface_of(solid)).is_clean for solid in (low + tail, high - slot)):
            # a rounded edge left a sliver
            return False
        return result.add(site, self._prism(-ROOT_MM, self.depth + clearance, clearance, 0), tail, [slot])

    def _rectangle(self, half: float, begin: float, end: float) -> CrossSection:
        low, high = np.array([self.middle - half, begin]), np.array([self.middle + half, end])
        if self.across == 1:
            low, high = low[::-1], high[::-1]
        return CrossSection.square((high - low).tolist()).translate(low.tolist())

    def _prism(self, low: float, high: float, gap: float, excess: float) -> Manifold:
        """Return the prism between two heights, wider on both sides by a gap, and longer at both ends."""
        neck = self.width / 2 - DOVETAIL_SLOPE * self.depth
        # the sides are inclined above the plane, and vertical below
        halves = [(height, neck + gap + DOVETAIL_SLOPE * max(height, 0.0)) for height in (low, max(low, 0.0), high)]
        begin, end = self.reach[0] - excess, self.reach[1] + excess
        corners = [
            (self.middle + side * half, place, self.contact.level + height)
            for height, half in halves
            for side in (-1, 1)
            for place in (begin, end)
        ]
        points = np.array(corners)
        if self.across == 1:
            points = points[:, [1, 0, 2]]
        return Manifold.batch_boolean(
            [Manifold.hull_points(points[start : start + 8]) for start in (0, 4)][(0 if low < 0 else 1) :], OpType.Add
        )
