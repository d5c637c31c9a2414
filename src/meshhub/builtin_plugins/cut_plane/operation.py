"""Cut the whole scene, part by part, at planes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal

from manifold3d import Manifold

from meshhub.builtin_plugins.cut_plane import CutPlaneOptions
from meshhub.errors import InvalidOption, format_number, quote
from meshhub.model.notes import did, note
from meshhub.model.progress import track
from meshhub.model.scene import Float64, Part, Scene
from meshhub.toolkit.cut_planes import Plane
from meshhub.toolkit.dividing import Divider, Piece
from meshhub.toolkit.geometry import bounds, bounds_of_parts
from meshhub.toolkit.solids import find_tolerance, split_solid

_Keep = Literal["both", "low", "high"]


def run(scene: Scene, options: CutPlaneOptions) -> Scene:
    """Cut each part at the planes that cross it, and cap the pieces.

    Args:
        scene: Millimeters, Z up.
        options: `cut_plane` is where to cut; None leaves the scene unchanged. `cut_plane_keep` removes pieces.
    Returns:
        Scene with the pieces in their places, from low to high, named NAME-a, NAME-b, …; parts that no plane crosses do
        not change. Instances with equal cuts share meshes.
    Raises:
        InvalidOption: The cut would leave nothing.
        ConversionFailed: A part that a plane crosses is not a solid.
    """
    if options.cut_plane is None:
        return scene
    box = bounds(scene)
    planes = [position.place(box) for position in options.planes()]
    _note_misses(planes, box)
    divider = Divider(scene, "repair")
    parts: list[Part] = []
    parts_cut = 0
    for part, part_box in zip(track(scene.parts), bounds_of_parts(scene), strict=True):
        crossing = _find_crossing(planes, part_box, find_tolerance(box), options.cut_plane_keep)
        if crossing:
            local = [plane._replace(offset=plane.offset - part.transform[plane.axis, 3]) for plane in crossing]
            parts += divider.divide(part, partial(_cut_solid, planes=local, keep=options.cut_plane_keep), tuple(local))
            parts_cut += 1
        elif crossing is not None:
            parts.append(part)
    if not parts:
        raise InvalidOption(
            "options '{cut_plane}' and '{cut_plane_keep}' would leave nothing of the model; change the planes",
            options=("cut_plane", "cut_plane_keep"),
        )
    for name, place in divider.invalid:
        plane = min(planes, key=lambda each: abs(each.offset - place[each.axis]))
        note(
            "cut_not_closed",
            f"the cut at {plane.axis_name}={format_number(plane.offset)} left invalid edges in {quote(name)}; repair "
            "the result with {repair}",
            options=("repair",),
        )
    did(parts_cut=parts_cut, parts_before=len(scene.parts), parts_after=len(parts))
    return divider.finish(parts)


def _note_misses(planes: Sequence[Plane], box: Float64) -> None:
    for plane in planes:
        low, high = box[:, plane.axis]
        if not low < plane.offset < high:
            name = plane.axis_name
            note(
                "plane_misses_model",
                f"the plane {name}={format_number(plane.offset)} is beside the model, which is from {name}="
                f"{format_number(low, 6)} to {format_number(high, 6)}; change {{cut_plane}}",
                options=("cut_plane",),
                axis=name.upper(),
                offset=plane.offset,
                low=float(low),
                high=float(high),
            )


def _find_crossing(planes: Sequence[Plane], box: Float64, tolerance: float, keep: _Keep) -> list[Plane] | None:
    """Return the planes that cross the box (2, 3) of a part; None if the part is on a side that is not kept."""
    crossing = []
    for plane in planes:
        if plane.crosses(box, tolerance):
            crossing.append(plane)
        elif keep not in ("both", "low" if box[:, plane.axis].mean() < plane.offset else "high"):
            return None
    return crossing


def _cut_solid(solid: Manifold, *, planes: Sequence[Plane], keep: _Keep) -> list[Piece]:
    """Return the kept pieces of a solid, from low to high."""
    pieces = [solid]
    for axis, offset in planes:
        halves: list[Manifold] = []
        for piece in pieces:
            low, high = split_solid(piece, axis, offset)
            halves += {"both": [low, high], "low": [low], "high": [high]}[keep]
        pieces = [half for half in halves if not half.is_empty()]
    return [Piece(piece) for piece in pieces]
