"""Curves of a drawing as outlines, and outlines as a solid."""

from __future__ import annotations

from typing import Any, NamedTuple

import manifold3d
import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from meshhub import EmptyModel, Mesh, ModelTooComplex, Part, Scene, UnreadableFile, did, note
from meshhub.errors import format_count
from meshhub.toolkit.geometry import distinct
from meshhub.toolkit.topology import components

Points = NDArray[np.float64]

MAX_POINTS = 2_000_000
"""Maximum points of all outlines; with more, extruding takes minutes."""

MAX_COORDINATE_MM = 1e6
"""Millimeters (1 km); a larger coordinate means that the unit of a drawing is wrong, and rounding would move outlines.
"""

SEPARATION_MM = 0.001
"""Maximum millimeters by which a profile with touching outlines shrinks; far below what a printer resolves."""
_SEPARATION_RATIO = 1e-5
"""Share of the profile's size by which it shrinks; a drawing of a few millimeters keeps its area."""

_COINCIDENCE_RATIO = 1e-3
"""Share of the tolerance up to which ends coincide."""

_DUPLICATE_DIGITS = 5
"""Decimals of millimeters to which curves that are drawn twice are equal."""

MAX_SEGMENTS = 4096
"""Straight edges for one curve."""


class Outlines(NamedTuple):
    """Closed outlines, (n, 2) points each without repetition of the first, and the number of open curves."""

    closed: list[Points]
    open_count: int


def arc_segments(
    radius: NDArray[np.floating[Any]] | float, angle: NDArray[np.floating[Any]] | float, tolerance: float
) -> Any:
    """Return the number of straight edges that keep each arc within the tolerance."""
    with np.errstate(all="ignore"):
        step = 2 * np.arccos(np.clip(1 - tolerance / np.maximum(radius, tolerance), -1, 1))
        count = np.ceil(np.abs(angle) / np.minimum(step, np.pi / 4))
    return np.clip(np.nan_to_num(count, nan=1), 1, MAX_SEGMENTS).astype(np.intp)


def drop_duplicates(curves: list[Points]) -> list[Points]:
    """Return curves without those drawn twice, which would cancel each other by the even-odd rule, with a note.

    A curve is the same in both directions, and a closed one from any start.
    """
    unique: dict[bytes, Points] = {}
    for curve in curves:
        points = np.round(curve, _DUPLICATE_DIGITS) + 0.0
        keys = []
        for line in (points, points[::-1]):
            if len(line) > 2 and (line[0] == line[-1]).all():
                line = np.roll(line[:-1], -int(np.lexsort(line[:-1].T)[0]), axis=0)
            keys.append(line.tobytes())
        unique.setdefault(min(keys), curve)
    count = len(curves) - len(unique)
    if count:
        note("duplicates_left_out", f"left out {format_count(count, 'curve', 'curves')} drawn twice; delete them")
    return list(unique.values())


def join_curves(curves: list[Points], tolerance: float) -> Outlines:
    """Join curves whose ends meet to closed outlines: first where they coincide, then across gaps.

    So the points of a finely divided outline, which lie closer to each other than the tolerance, stay in their order.

    Args:
        curves: (n, 2) points each; a curve whose ends meet is itself an outline.
        tolerance: Distance up to which ends meet.
    """
    closed: list[Points] = []
    pieces: list[Points] = []
    for curve in curves:
        if len(curve) > 3 and np.hypot(*(curve[0] - curve[-1])) <= tolerance:
            closed.append(curve[:-1])
        else:
            pieces.append(curve)
    for distance in (_COINCIDENCE_RATIO * tolerance, tolerance):
        # a shorter curve has both ends at one place
        chains, pieces = _chain([piece for piece in pieces if np.ptp(piece, axis=0).max() > distance], distance)
        closed += chains
    return Outlines(closed, len(pieces))


def _chain(pieces: list[Points], tolerance: float) -> tuple[list[Points], list[Points]]:
    """Return the outlines that open curves form, and the curves that belong to none.

    Curves with a loose end are removed repeatedly. Each other curve belongs to an outline if an even number of curves
    meet at each of its ends, and at each end along the outline. Every path around then gives the same area by the
    even-odd rule, even if outlines share a corner.
    """
    if not pieces:
        return [], []
    ends = np.concatenate([[piece[0] for piece in pieces], [piece[-1] for piece in pieces]])
    tree = cKDTree(ends)
    distance, nearest = tree.query(ends, k=min(4, len(ends)), distance_upper_bound=tolerance)
    first, nth = np.nonzero(np.isfinite(distance))
    _, node = components(len(ends), first, nearest[first, nth])
    count = len(pieces)
    kept = _drop_loose(node[:count], node[count:])
    degree = np.bincount(np.concatenate([node[:count][kept], node[count:][kept]]), minlength=len(node))
    _, group = components(len(node), node[:count][kept], node[count:][kept])
    is_bad = np.zeros(int(group.max()) + 1, np.bool_)
    is_bad[group[degree % 2 == 1]] = True
    usable = kept[~is_bad[group[node[:count][kept]]]]
    unused = np.setdiff1d(np.arange(count), usable)
    return _walk(pieces, node, usable), [pieces[number] for number in unused.tolist()]


def _drop_loose(first: NDArray[np.integer[Any]], last: NDArray[np.integer[Any]]) -> NDArray[np.intp]:
    """Return the curves that remain after those with a loose end are removed, one after the other.

    Args:
        first: (k,) node at the beginning of each curve.
        last: (k,) node at its end.
    """
    at_node: dict[int, set[int]] = {}
    for piece, nodes in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
        for node in nodes:
            at_node.setdefault(node, set()).add(piece)
    kept = np.ones(len(first), np.bool_)
    loose = [node for node, pieces in at_node.items() if len(pieces) == 1]
    while loose:
        pieces = at_node[loose.pop()]
        if len(pieces) != 1:
            continue
        (piece,) = pieces
        kept[piece] = False
        for node in (int(first[piece]), int(last[piece])):
            at_node[node].discard(piece)
            if len(at_node[node]) == 1:
                loose.append(node)
    return np.flatnonzero(kept)


def _walk(pieces: list[Points], node: NDArray[np.integer[Any]], usable: NDArray[np.intp]) -> list[Points]:
    """Return the outlines of curves that form closed chains; each is walked until it returns to its start."""
    count = len(pieces)
    at_node: dict[int, list[int]] = {}
    for piece in usable.tolist():
        at_node.setdefault(int(node[piece]), []).append(piece)
        at_node.setdefault(int(node[piece + count]), []).append(piece)
    chains: list[Points] = []
    remaining = set(usable.tolist())
    while remaining:
        piece = remaining.pop()
        start, current = int(node[piece]), int(node[piece + count])
        parts = [pieces[piece][:-1]]
        while current != start:
            # curves that were already walked from their other end are still listed here
            while piece not in remaining:
                piece = at_node[current].pop()
            remaining.remove(piece)
            is_forward = int(node[piece]) == current
            parts.append((pieces[piece] if is_forward else pieces[piece][::-1])[:-1])
            current = int(node[piece + count] if is_forward else node[piece])
        chains.append(np.concatenate(parts))
    return chains


def extrude(section: manifold3d.CrossSection, outline_count: int, height_mm: float, label: str) -> Scene:
    """Return the solid between a profile at Z = 0 and the same at the height.

    Raises:
        EmptyModel: The profile has no area.
    """
    if section.is_empty():
        raise EmptyModel(f"the closed outlines of the {label} drawing enclose no area; check that they do not coincide")
    corners = np.concatenate(section.to_polygons())
    if len(distinct(corners)[0]) < len(corners):
        separation_mm = min(SEPARATION_MM, _SEPARATION_RATIO * float(np.ptp(corners, axis=0).max()))
        note(
            "touching_outlines",
            f"outlines touch at points, where a solid has no thickness; gaps of {2 * separation_mm:.1g} mm part them",
        )
        section = section.offset(-separation_mm, manifold3d.JoinType.Miter)
    mesh = manifold3d.Manifold.extrude(section, height_mm).to_mesh64()
    did(outlines=outline_count, area_mm2=section.area(), height_mm=height_mm)
    vertices = np.asarray(mesh.vert_properties, np.float64)[:, :3]
    return Scene((Mesh(vertices, np.asarray(mesh.tri_verts).astype(np.int32)),), (Part(0),))


def cross_section(outlines: list[Points], fill: manifold3d.FillRule) -> manifold3d.CrossSection:
    """Return the area that outlines enclose by a fill rule."""
    return manifold3d.CrossSection([outline for outline in outlines if len(outline) > 2], fill)


def check_outlines(outlines: Outlines, ignored: str, label: str) -> None:
    """Report open curves, and check the number and position of the points.

    Args:
        outlines: Outlines in millimeters.
        ignored: Content that was left out, such as "3 TEXT"; "" for none.
        label: Format of the file, for messages.
    Raises:
        EmptyModel: The drawing has no closed outline.
        UnreadableFile: A coordinate is not finite, or beyond MAX_COORDINATE_MM.
        ModelTooComplex: The outlines have more than MAX_POINTS points.
    """
    if ignored:
        note("entities_left_out", f"only closed outlines are extruded; left out: {ignored}"[:300])
    if not outlines.closed:
        if outlines.open_count:
            raise EmptyModel(
                f"none of the {outlines.open_count} curves of the {label} drawing form a closed outline; "
                "close the gaps, or set a larger tolerance"
            )
        raise EmptyModel(f"the {label} drawing has no outline" + (f", only {ignored}" if ignored else ""))
    if outlines.open_count:
        note(
            "open_curves_left_out",
            f"left out {format_count(outlines.open_count, 'curve', 'curves')} without a closed outline; close the gaps",
        )
    points = np.concatenate(outlines.closed)
    if len(points) > MAX_POINTS:
        raise ModelTooComplex(f"the {label} drawing has over {MAX_POINTS} points; set a larger tolerance")
    # written so that NaN is rejected, too
    if not np.abs(points).max() < MAX_COORDINATE_MM:
        raise UnreadableFile(f"the {label} drawing is larger than 1 km, or damaged; check its unit")
