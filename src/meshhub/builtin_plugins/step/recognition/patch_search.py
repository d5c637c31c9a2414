"""Search for patches: smooth pieces of a mesh that no other surface explains become B-spline surfaces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.facets.facet_graph import MAX_SMOOTH_TURN_RAD, FacetGraph
from meshhub.builtin_plugins.step.facets.faceting import FacetedSkin
from meshhub.builtin_plugins.step.facets.skin import Skin
from meshhub.builtin_plugins.step.recognition.deviation import find_bulges, locate_triangles
from meshhub.builtin_plugins.step.recognition.fit_trials import FLAT_FACE_RATIO
from meshhub.builtin_plugins.step.recognition.patch_parameters import Piece, cut_piece
from meshhub.builtin_plugins.step.recognition.piece_fits import fit_surface, measure_sagitta
from meshhub.builtin_plugins.step.recognition.recognize import Segments
from meshhub.builtin_plugins.step.recognition.rim_curves import probe_border
from meshhub.builtin_plugins.step.surfaces import traits
from meshhub.builtin_plugins.step.surfaces.arrays import lengths, normalize, sum_by_label
from meshhub.builtin_plugins.step.surfaces.patches import Patch, PatchPool
from meshhub.builtin_plugins.step.surfaces.surface_array import SurfaceArray, SurfaceKind, concatenate
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex
from meshhub.toolkit.topology import components

_MIN_FACET_COUNT = 8
"""Facets of a patch; fewer points say little about a surface."""

_MAX_WALL_CORNERS = 8
"""Corners of a facet of a smooth piece, of which some lie in one plane; a facet with more is a flat face."""

_MIN_WALL_RATIO = 0.02
"""Area of a flat face over that of the smooth piece beside it; smaller facets are flat parts of the piece."""

_MAX_WEAK_TURN_COS = np.cos(np.radians(50.0))
"""Cosine of the angle between the mean direction of a recognized surface and its facets, up to which it can be a part
of a patch: rows of its facets fit cones by chance."""

_MAX_WEAK_AREA_RATIO = 0.25
"""Area of such a surface over that of the patch."""

_MIN_FREE_RATIO = 0.65
"""Area of the facets on no surface over that of a patch with bands."""

_MIN_FREE_AMONG_SMALL_RATIO = 0.45
"""The same if all bands are small; on a finely triangulated tube, hundreds of small tori fit by chance."""

_MAX_SMALL_RATIO = 0.1
"""Area of a small band over that of the patch."""

_MAX_LARGE_ROUNDS = 4
"""Rounds in which surfaces that are faces by themselves are found; each makes pieces smaller."""

_ERROR_RATIO = 2e-5
"""Distance of a point from its patch over the diagonal of the piece."""

_MAX_ERROR_MM = 1e-3
"""Millimeters; the same for large pieces. CAD programs approximate intersections as closely."""

_SAGITTA_SHARE_RATIO = 0.2
"""Distance of a point from its patch over the sagitta of the triangles, allowed if a finer grid does not help."""

_MAX_LOOSE_ERROR_RATIO = 3e-4
"""The same over the diagonal of the piece."""

_MAX_TURN_SAGITTA_RATIO = float(np.tan(MAX_SMOOTH_TURN_RAD / 4) / 2)
"""Sagitta over chord of an arc of the largest turn between two facets."""

_NOISE_TOLERANCES = 2.0
"""Tolerances by which rounding moves a point off any patch."""

Mask = NDArray[np.bool_]


class _Candidate(NamedTuple):
    """Patch of some facets; limit: millimeters that a point may lie off."""

    facets: IntIndex
    patch: Patch
    limit: float


class _Share(NamedTuple):
    """Recognized surfaces that may be parts of patches.

    facets:         (f,) their facets
    min_free_ratio: area of the facets on no surface over that of the patch
    """

    facets: Mask
    min_free_ratio: float


def add_patches(
    skin: Skin, faceted: FacetedSkin, graph: FacetGraph, segments: Segments, requested: float | None
) -> Segments:
    """Return the segments with patches of the smooth pieces of facets that no other surface explains.

    Args:
        skin: Mesh, millimeters.
        faceted: Its planar facets.
        graph: Graph of these facets.
        segments: Surfaces recognized before.
        requested: Millimeters that noise may move a point: `step_tolerance_mm`.
    """
    search = _Search(skin, faceted, graph, segments, requested)
    candidates: list[_Candidate] = []
    for share in search.list_shares():
        for facets in search.find_pieces(share):
            candidate = search.fit_piece(facets)
            if candidate is not None:
                candidates.append(candidate)
                search.take(facets)
    candidates = search.refit(candidates)
    return _add_surfaces(segments, candidates)


def _add_surfaces(segments: Segments, candidates: Sequence[tuple[IntIndex, Patch, float]]) -> Segments:
    """Return the segments with patches: their facets, the patch, and the millimeters that a point may lie off."""
    if not candidates:
        return segments
    segment, uncut = segments.segment.copy(), segments.uncut.copy()
    for number, (facets, _, _) in enumerate(candidates, len(segments.surfaces)):
        segment[facets] = uncut[facets] = number
    surfaces = concatenate([segments.surfaces, *(_make_surface(patch) for _, patch, _ in candidates)])
    return Segments(surfaces, np.concatenate([segments.limit, [limit for *_, limit in candidates]]), segment, uncut)


def _make_surface(patch: Patch) -> SurfaceArray:
    """Return a patch as a surface; its origin and its axis lie in its middle."""
    place, u, v = patch.derive(np.full((1, 2), 0.5), 1)
    zero, shape = np.zeros(1), np.empty(1, np.object_)
    shape[0] = patch
    return SurfaceArray(np.array([SurfaceKind.PATCH], np.int8), place, normalize(np.cross(u, v)), zero, zero, shape)


def _is_noise(piece: Piece, patch: Patch, noise_mm: float) -> bool:
    """Return whether a patch leaves its triangles by more than the noise, and by more than an arc would."""
    pool, owner = PatchPool([patch]), np.zeros(len(piece.triangles), np.intp)
    place = patch.locate(piece.points)[piece.triangles]
    corner = piece.points[piece.triangles]
    longest = np.max([lengths(corner[:, k] - corner[:, k - 1]) for k in range(3)], axis=0)
    limit = np.maximum(noise_mm, _MAX_TURN_SAGITTA_RATIO * longest)
    return bool(find_bulges(pool, owner, locate_triangles(pool, owner, place), corner, limit).any())


class _Search:
    """Search for the smooth pieces of a mesh."""

    def __init__(
        self, skin: Skin, faceted: FacetedSkin, graph: FacetGraph, segments: Segments, requested: float | None
    ) -> None:
        self._skin, self._faceted, self._graph, self._segments = skin, faceted, graph, segments
        self._requested = requested
        self._is_taken = np.zeros(graph.count, np.bool_)
        # (f,) smooth piece of each facet, -1 for flat faces; those of patches have the highest numbers
        self._piece = np.full(graph.count, -1, np.intp)
        self._taken_count = 0
        self._tried: set[bytes] = set()

    def take(self, facets: IntIndex) -> None:
        """Leave the facets of a patch out of the following pieces."""
        self._is_taken[facets] = True
        self._piece[facets] = self._graph.count + self._taken_count
        self._taken_count += 1

    def list_shares(self) -> list[_Share]:
        """Return which recognized surfaces may be parts of patches, in the order in which this is tried."""
        nothing = np.zeros(self._graph.count, np.bool_)
        # short bands of a tube fit tori by chance
        return [_Share(self._find_bands(), _MIN_FREE_RATIO), _Share(self._find_weak(), 0.0), _Share(nothing, 0.0)]

    def find_pieces(self, share: _Share) -> Iterator[IntIndex]:
        """Iterate over the facets of the pieces that were not tried yet, large ones first."""
        graph, owner = self._graph, self._segments.segment >= 0
        usable = (~owner | share.facets) & ~self._is_taken
        usable &= ~self._find_walls(usable)
        for _ in range(_MAX_LARGE_ROUNDS):
            large = self._find_large(usable)
            if not large.any():
                break
            usable &= ~large
        label = self._label(usable)
        size = np.bincount(label[usable], minlength=graph.count)
        area = sum_by_label(label[usable], graph.area[usable], graph.count)
        free = usable & ~owner
        free_area = sum_by_label(label[free], graph.area[free], graph.count)
        order = np.argsort(-size, kind="stable")
        is_small = self._measure_largest(label, usable & owner) <= _MAX_SMALL_RATIO * area
        min_free_ratio = np.where(
            is_small, min(share.min_free_ratio, _MIN_FREE_AMONG_SMALL_RATIO), share.min_free_ratio
        )
        is_piece = (size >= _MIN_FACET_COUNT) & (free_area > min_free_ratio * area)
        label = np.where(usable, label, -1)
        self._fill_islands(label)
        self._piece = np.where(self._is_taken, self._piece, np.where(is_piece[label] & (label >= 0), label, -1))
        for number in order[is_piece[order]].tolist():
            facets = np.flatnonzero(label == number)
            key = facets.tobytes()
            if key not in self._tried:
                self._tried.add(key)
                yield facets

    def _measure_largest(self, label: IntIndex, own: Mask) -> Float64:
        """Return the largest area (f,) of one surface in the piece of each facet, mm²; `own`: facets on surfaces."""
        facets, largest = np.flatnonzero(own), np.zeros(self._graph.count)
        count = len(self._segments.surfaces)
        keys, part = np.unique(label[facets] * count + self._segments.segment[facets], return_inverse=True)
        np.maximum.at(largest, keys // max(count, 1), sum_by_label(part, self._graph.area[facets], len(keys)))
        return largest

    def _find_large(self, usable: Mask) -> Mask:
        """Return the mask (f,) of usable facets whose surface has much of the area of its piece: a face by itself."""
        graph, segment = self._graph, self._segments.segment
        label, count = self._label(usable), len(self._segments.surfaces)
        own = np.flatnonzero((segment >= 0) & usable)
        piece_area = sum_by_label(label[usable], graph.area[usable], graph.count)
        own_area = sum_by_label(segment[own], graph.area[own], count)
        largest = np.zeros(count)
        np.maximum.at(largest, segment[own], piece_area[label[own]])
        large = np.zeros(graph.count, np.bool_)
        large[own] = (own_area > _MAX_WEAK_AREA_RATIO * largest)[segment[own]]
        return large

    def _fill_islands(self, label: IntIndex) -> None:
        """Add facets that one piece surrounds, and that are small beside it, to the piece; changes labels in place.

        They are slivers with arbitrary normals, and flat parts of the piece.
        """
        skin, region, count = self._skin, self._faceted.region, self._graph.count
        area = sum_by_label(label[label >= 0], self._graph.area[label >= 0], count)
        is_free = ((label < 0) & ~self._is_taken) | (area[label] <= _MIN_WALL_RATIO * area.max())
        half = np.flatnonzero(skin.twin >= 0)
        left, right = region[half // 3], region[skin.twin[half] // 3]
        joins = is_free[left] & is_free[right]
        islands, island = components(count, left[joins], right[joins])
        is_shore = is_free[left] & ~is_free[right]
        shore, beside = island[left[is_shore]], label[right[is_shore]]
        low, high = np.full(islands, count), np.full(islands, -1)
        np.minimum.at(low, shore, beside)
        np.maximum.at(high, shore, beside)
        island_area = sum_by_label(island[is_free], self._graph.area[is_free], islands)
        is_filled = (low == high) & (island_area <= _MIN_WALL_RATIO * area[np.maximum(high, 0)])
        # a flat end meets the piece at sharp edges only
        one, other = self._graph.left, self._graph.right
        is_smooth = is_free[one] & ~is_free[other]
        is_filled &= np.bincount(island[one[is_smooth]], minlength=islands) > 0
        filled = is_free & is_filled[island]
        label[filled] = low[island[filled]]

    def _label(self, usable: Mask) -> IntIndex:
        """Return the label (f,) of the smooth piece of each usable facet."""
        graph = self._graph
        joins = usable[graph.left] & usable[graph.right]
        return components(graph.count, graph.left[joins], graph.right[joins])[1].astype(np.intp)

    def _find_bands(self) -> Mask:
        """Return the mask (f,) of the facets on surfaces of revolution."""
        segment = self._segments.segment
        bands = segment >= 0
        bands[bands] = ~traits.IS_PATCH[self._segments.surfaces.kind[segment[bands]]]
        return bands

    def _find_weak(self) -> Mask:
        """Return the mask (f,) of the facets on surfaces that can be parts of patches."""
        graph, segments = self._graph, self._segments
        owner = np.flatnonzero(segments.segment >= 0)
        segment, count = segments.segment[owner], len(segments.surfaces)
        mean = np.stack([sum_by_label(segment, graph.normal[owner, axis], count) for axis in range(3)], axis=1)
        turn_cos = np.ones(count)
        sure = ~graph.is_sliver[owner]
        cosine = np.einsum("ij,ij->i", graph.normal[owner], normalize(mean)[segment])
        np.minimum.at(turn_cos, segment[sure], cosine[sure])
        weak = np.zeros(graph.count, np.bool_)
        weak[owner] = (turn_cos > _MAX_WEAK_TURN_COS)[segment]
        return weak

    def _find_walls(self, usable: Mask) -> Mask:
        """Return the mask (f,) of the facets that are flat faces."""
        graph = self._graph
        corners = np.bincount(self._faceted.outline.region, minlength=graph.count)
        others = np.zeros(graph.count)
        joins = usable[graph.right] & ~graph.is_broad[graph.right]
        np.maximum.at(others, graph.left[joins], graph.area[graph.right[joins]])
        doubtful = corners > _MAX_WALL_CORNERS
        doubtful |= ~graph.is_triangle & ~graph.is_sliver & (graph.area > FLAT_FACE_RATIO * others)
        # a flat facet within a large smooth piece is a part of it
        label = self._label(usable & ~doubtful)
        piece_area = sum_by_label(label, np.where(usable & ~doubtful, graph.area, 0.0), graph.count)
        beside = np.zeros(graph.count)
        np.maximum.at(beside, graph.left, piece_area[label[graph.right]])
        loops = np.bincount(self._faceted.outline.loop_region, minlength=graph.count)
        walls: Mask = doubtful & ((graph.area > _MIN_WALL_RATIO * beside) | (loops > 1))
        return walls

    def fit_piece(self, facets: IntIndex) -> _Candidate | None:
        """Return the patch of some facets; None if they have no parameters, or no patch passes through their points."""
        member = np.zeros(self._graph.count, np.bool_)
        member[facets] = True
        faces = self._skin.faces[member[self._faceted.region]]
        piece = cut_piece(faces.astype(np.intp), self._skin.points)
        if piece is None:
            return None
        diagonal = float(np.linalg.norm(np.ptp(piece.points, axis=0)))
        noise = _NOISE_TOLERANCES * self._faceted.tolerance
        # the shape of a piece that is as coarsely rounded is unknown, and so is the volume under it
        if noise > _MAX_LOOSE_ERROR_RATIO * diagonal:
            return None
        error = max(min(_ERROR_RATIO * diagonal, _MAX_ERROR_MM), noise)
        allowed = min(_SAGITTA_SHARE_RATIO * measure_sagitta(piece), _MAX_LOOSE_ERROR_RATIO * diagonal)
        rim = probe_border(self._skin, self._faceted, self._segments, facets, self._piece)
        allowed = max(error, allowed)
        patch = fit_surface(piece, rim, (error, allowed))
        if patch is None or (self._requested is not None and _is_noise(piece, patch, self._requested)):
            return None
        off = float(np.abs(patch.relate(np.concatenate([piece.points, rim.position])).distance).max())
        return _Candidate(facets, patch, off + self._faceted.tolerance) if off <= allowed else None

    def refit(self, candidates: list[_Candidate]) -> list[_Candidate]:
        """Return the candidates, fitted again to the straight edges of pieces beside them that stay facets."""
        region, skin, count = self._faceted.region, self._skin, self._graph.count
        half = np.flatnonzero(skin.twin >= 0)
        left, right = region[half // 3], region[skin.twin[half] // 3]
        is_border = (self._piece[left] >= count) & (self._piece[right] >= 0) & (self._piece[right] < count)
        changed = np.unique(self._piece[left[is_border]]) - count
        self._piece[self._piece < count] = -1
        result = []
        for number, candidate in enumerate(candidates):
            fitted = self.fit_piece(candidate.facets) if number in changed else candidate
            if fitted is None:
                self._piece[candidate.facets] = -1
            else:
                result.append(fitted)
        return result
