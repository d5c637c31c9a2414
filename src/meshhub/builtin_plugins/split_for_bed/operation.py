"""Cut each part that is larger than a bed into pieces that fit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from manifold3d import Manifold

from meshhub.builtin_plugins.split_for_bed import SplitForBedOptions
from meshhub.builtin_plugins.split_for_bed.connectors import MAX_LENGTH_MM, PROTRUDING, Connectors, find_connectors
from meshhub.builtin_plugins.split_for_bed.pieces import MIN_THICKNESS_MM, divide
from meshhub.errors import format_count, format_number, quote
from meshhub.model.notes import did, note
from meshhub.model.progress import track
from meshhub.model.scene import Part, Scene
from meshhub.toolkit.cut_planes import Plane
from meshhub.toolkit.dividing import Divider, Piece
from meshhub.toolkit.geometry import bounds, bounds_of_parts
from meshhub.toolkit.objects import find_objects, renamed
from meshhub.toolkit.printers import ROUNDING_RATIO
from meshhub.toolkit.solids import find_tolerance


def run(scene: Scene, options: SplitForBedOptions) -> Scene:
    """Cut each part that is larger than the bed into pieces that fit, and connect them.

    Args:
        scene: Millimeters, Z up.
        options: `split_for_bed` None leaves the scene unchanged. `split_for_bed_cuts` are cuts at given planes, before
            those that the bed requires.
    Returns:
        Scene with the pieces in their places, named NAME-a, NAME-b, …, and dowels in theirs, each an object of its
        own; parts that fit do not change. Instances share pieces.
    Raises:
        InvalidOption: There would be too many pieces.
        ConversionFailed: A part that does not fit is not a solid.
    """
    if options.split_for_bed is None:
        return scene
    divider = Divider(scene, "repair")
    cutter = _Cutter(options)
    parts: list[Part] = []
    roots = find_objects(scene)[1]
    cuts = _place_cuts(scene, options)
    unused = set(cuts)
    split_count = 0
    for part, box in zip(track(scene.parts), bounds_of_parts(scene), strict=True):
        if (box[1] - box[0] <= cutter.bed * (1 + ROUNDING_RATIO)).all():
            parts.append(part)
            continue
        crossing = [plane for plane in cuts if plane.crosses(box, find_tolerance(box))]
        unused.difference_update(crossing)
        local = tuple(Plane(axis, offset - float(part.transform[axis, 3])) for axis, offset in crossing)
        pieces = divider.divide(part, partial(cutter.cut, cuts=local), local)
        # in a slicer, the pieces of one object could not be moved apart
        parts += [renamed(piece, roots, len(parts) + number) for number, piece in enumerate(pieces, 1)]
        split_count += 1
    _write_notes(cutter, divider, split_count, len(parts) - len(scene.parts) + split_count)
    if split_count:
        _note_unused(sorted(unused))
    did(parts_split=split_count, parts_before=len(scene.parts), parts_after=len(parts))
    return divider.finish(parts)


def _place_cuts(scene: Scene, options: SplitForBedOptions) -> list[Plane]:
    """Return the requested planes, each once."""
    positions = options.cuts()
    if not positions:
        return []
    box = bounds(scene)
    return sorted({position.place(box) for position in positions})


class _Cutter:
    """Cuts for one bed, with the figures to report."""

    def __init__(self, options: SplitForBedOptions) -> None:
        self.options = options
        self.bed = np.array(options.bed())
        self.thin = self.bare = self.added = 0

    def cut(self, solid: Manifold, *, cuts: Sequence[Plane]) -> list[Piece]:
        """Return the pieces of a solid, which is cut at the planes and where the bed requires it, and its dowels."""
        kind = self.options.split_for_bed_connectors
        pieces = divide(solid, self.bed, MAX_LENGTH_MM if kind in PROTRUDING else 0.0, cuts)
        connectors = Connectors()
        if kind != "none":
            connectors = find_connectors(pieces.solids, pieces.planes, kind, self.options.split_for_bed_clearance_mm)
        result = connectors.apply(pieces.solids)
        self.thin += pieces.thin
        self.bare += connectors.bare
        if self.options.split_for_bed_cuts is not None:
            added = len(pieces.planes.difference(cuts))
            self.added += added
            did(cuts_added=added)
        before, after = solid.volume(), sum(piece.volume() for piece in (*result, *connectors.dowels))
        did(
            planes=len(pieces.planes),
            connectors=connectors.count,
            volume_before_mm3=before,
            volume_after_mm3=after,
            connector_volume_mm3=after - before,
        )
        return [*map(Piece, result), *(Piece(dowel, "dowel") for dowel in connectors.dowels)]


def _write_notes(cutter: _Cutter, divider: Divider, split_count: int, piece_count: int) -> None:
    if not split_count:
        note("fits_bed", "each part fits the bed, so no part was cut")
        return
    note(
        "parts_cut_for_bed",
        f"cut parts that are larger than the bed ({split_count:,}) into pieces that fit ({piece_count:,})",
        count=split_count,
        pieces=piece_count,
    )
    if cutter.added:
        note(
            "cuts_added",
            f"{format_count(cutter.added, 'cut was', 'cuts were')} added to {{split_for_bed_cuts}}, because pieces or "
            "their connectors were still larger than the bed",
            options=("split_for_bed_cuts",),
            count=cutter.added,
        )
    if cutter.thin:
        option = "split_for_bed" if cutter.options.split_for_bed_cuts is None else "split_for_bed_cuts"
        note(
            "thin_pieces",
            f"{format_count(cutter.thin, 'cut', 'cuts')} left bodies thinner than {MIN_THICKNESS_MM:g} mm; "
            f"turn the model, or change {{{option}}}",
            options=(option,),
            count=cutter.thin,
            size=MIN_THICKNESS_MM,
        )
    if cutter.bare:
        note(
            "no_room_for_connectors",
            f"{format_count(cutter.bare, 'contact', 'contacts')} of pieces without a connector, "
            "because there is too little material around",
            count=cutter.bare,
        )
    for name, place in divider.invalid:
        where = ", ".join(format_number(coordinate, 4) for coordinate in place.tolist())
        note(
            "cut_not_closed",
            f"the cut through {quote(name)} left invalid edges at ({where}) mm; repair the result with {{repair}}",
            options=("repair",),
        )


def _note_unused(planes: Sequence[Plane]) -> None:
    for plane in planes:
        name = plane.axis_name
        note(
            "cut_unused",
            f"the plane {name}={format_number(plane.offset, 6)} crosses no part that is larger than the bed, so it "
            "cuts nothing; change {split_for_bed_cuts}",
            options=("split_for_bed_cuts",),
            axis=name.upper(),
            offset=plane.offset,
        )
