"""Support that a slicer prints below a model: columns of cells, wider than the overhangs, with dense layers on top."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np
from scipy import ndimage

from meshhub.model.scene import Float64, Int32
from meshhub.toolkit.geometry import IntIndex, face_extremes, face_normals, weld
from meshhub.toolkit.layers import ROUNDING_RATIO, Cells, Layers, grow
from meshhub.toolkit.lengths import LINE_RATIO
from meshhub.toolkit.supports import cross_columns, find_overhangs
from meshhub.toolkit.topology import Index, edges, following

MARGIN_MM = 1.5
"""Millimeters by which slicers extend the support beyond an overhang."""

GAP_MM = 0.3
"""Millimeters between support and the walls beside it."""

BRIDGE_LINES = 2.0
"""Distance from the outline from which a bridge has infill, in lines."""

INTERFACE_LAYERS = 3
"""Dense layers between support and overhang."""

FILL_RATIO, INTERFACE_RATIO, SHEATH_LINES = 0.14, 1.0, 1.05
"""Filled share of support and of its dense layers, and lines around it; fitted."""

MIN_RISE = 1e-6
"""Sine of the smallest angle to the bed at which a face counts as rising; smaller angles are rounding."""


class Skin(NamedTuple):
    """Surface that is measured in several poses.

    vertices: (n, 3) distinct positions of the faces in mm, Z up
    faces:    (m, 3) oriented outward
    ends:     (e, 2) vertices of each edge between two faces, in the direction of the first face
    sides:    (e, 2) faces of each edge
    """

    vertices: Float64
    faces: Int32
    ends: IntIndex
    sides: Index

    @classmethod
    def of(cls, vertices: Float64, faces: Int32) -> Skin:
        """Return the skin of a surface: (n, 3) positions, (m, 3) faces."""
        first, index = weld(vertices)
        faces = index[faces]
        # a vertex without a face may be far away, and the layers extend to all vertices
        is_used = np.zeros(len(first), np.bool_)
        is_used[faces] = True
        first, faces = first[is_used], (np.cumsum(is_used) - 1)[faces].astype(faces.dtype)
        half = np.stack(edges(faces).pairs(), axis=1)
        corners = faces.ravel()
        ends = np.stack([corners[half[:, 0]], corners[following(half[:, 0])]], axis=1)
        return cls(vertices[first], faces, ends, half // 3)

    def turned(self, rotation: Float64) -> Skin:
        """Return the skin in another pose."""
        return self._replace(vertices=self.vertices @ rotation.T)

    def contact(self, layer_mm: float) -> float:
        """Return the area in mm² that touches the bed: faces that look down within the first layer."""
        z = self.vertices[:, 2]
        low, high = face_extremes(z, self.faces)
        own = self.faces[high <= low.min() + layer_mm]
        return float(np.maximum(-face_normals(self.vertices, own)[:, 2], 0).sum()) / 2


class Columns(NamedTuple):
    """Support of each layer, (l,) each.

    space:     volume, mm³
    interface: volume of its dense part beside an overhang, mm³
    border:    area of its sides, mm²
    """

    space: Float64
    interface: Float64
    border: Float64

    def material(self, nozzle_mm: float) -> Float64:
        """Return the filament of each layer in mm³."""
        sheath = SHEATH_LINES * LINE_RATIO * nozzle_mm
        result: Float64 = (
            FILL_RATIO * (self.space - self.interface) + INTERFACE_RATIO * self.interface + sheath * self.border
        )
        return result

    def count_lines(self, nozzle_mm: float, height_mm: float) -> Float64:
        """Return the number of straight lines of each layer, from side to side.

        Parallel lines at a distance cross a border as often as its length per distance times 2/π.

        Args:
            nozzle_mm: Diameter of the nozzle.
            height_mm: Height of the layers.
        Source:
            Crofton's formula.
        """
        dense = self.interface / np.maximum(self.space, 1e-9)
        per_mm = (FILL_RATIO * (1 - dense) + INTERFACE_RATIO * dense) / (LINE_RATIO * nozzle_mm)
        result: Float64 = self.border / height_mm / np.pi * per_mm
        return result


def stand_columns(
    skin: Skin, layers: Layers, angle_deg: float, layer_mm: float, *, with_edges: bool = False
) -> Columns:
    """Compute the columns that reach from overhangs down to the bed, or to the model below.

    Args:
        skin: Surface of the model.
        layers: Layers of the same model.
        angle_deg: An overhang needs support if its angle with the bed is smaller.
        layer_mm: Gap between overhang and support.
        with_edges: Whether edges and corners that point down need support, too. Poses on a corner have no other
            overhangs; the constants of the material were fitted without them.
    """
    column, row, z = _find_overhangs(skin, angle_deg, layers.low, layers.cell, with_edges)
    return _stand(layers, column, row, z, layer_mm)


def stand_everywhere(skin: Skin, layers: Layers, line_mm: float, layer_mm: float) -> Columns:
    """Compute the columns that slicers print by default, also where lines would hold without them.

    Below each layer that reaches farther over the one before than half of a line, except below bridges.

    Args:
        skin: Surface of the model.
        layers: Layers of the same model.
        line_mm: Width of a line.
        layer_mm: Height of a layer.
    Source:
        PrusaSlicer 2.5, `SupportMaterial.cpp`, `detect_overhangs` and `remove_bridges_from_contacts`.
    """
    angle_deg = float(np.rad2deg(np.arctan2(layer_mm, line_mm / 2)))
    column, row, z = _find_overhangs(skin, angle_deg, layers.low, layers.cell, with_edges=False)
    # the layer that begins at an overhang is the first whose middle is above it
    level = np.ceil((z - layers.low[2]) / layers.height - 0.5 - ROUNDING_RATIO).astype(np.int64)
    known = level < len(layers.filled)
    column, row, z, level = column[known], row[known], z[known], level[known]
    hangs = ~_find_bridges(layers, line_mm)[level, row, column]
    return _stand(layers, column[hangs], row[hangs], z[hangs], layer_mm)


def stand_below(layers: Layers, points: Float64, layer_mm: float) -> Columns:
    """Compute the columns that reach from points down to the bed, or to the model below.

    Args:
        layers: Layers of a model.
        points: (k, 3) mm, on undersides of the model.
        layer_mm: Gap between an underside and its support.
    """
    cells = np.floor((points[:, :2] - layers.low[:2]) / layers.cell).astype(np.intp)
    return _stand(layers, cells[:, 0], cells[:, 1], points[:, 2], layer_mm)


def _stand(layers: Layers, column: IntIndex, row: IntIndex, z: Float64, layer_mm: float) -> Columns:
    filled, low, cell, height = layers
    level = np.floor((z - low[2] - layer_mm) / height).astype(np.int64)
    known = (z > low[2] + layer_mm) & (level < len(filled))
    space, interface, border = np.zeros((3, len(filled)))
    if not known.any():
        return Columns(space, interface, border)
    level, row, column = level[known], row[known], column[known]
    order = np.argsort(level, kind="stable")
    ends = np.searchsorted(level[order], np.arange(len(filled) + 1))
    # the support may be wider than the model, and one cell around it stays empty
    margin = int(np.ceil(MARGIN_MM / cell)) + 1
    dense = max(1, int(np.ceil(INTERFACE_LAYERS * layer_mm / height)))
    own = np.zeros((filled.shape[1] + 2 * margin, filled.shape[2] + 2 * margin), np.bool_)
    # what begins in the latest layers; layer by layer, because all layers at once take ten times the memory
    latest: deque[Cells] = deque(maxlen=dense)
    for number in range(int(level.max()), -1, -1):
        begins = np.zeros_like(own)
        chosen = order[ends[number] : ends[number + 1]]
        if len(chosen):
            begins[row[chosen] + margin, column[chosen] + margin] = True
            begins = grow(begins, MARGIN_MM / cell)
        latest.append(begins)
        own = (own | begins) & ~grow(np.pad(filled[number], margin), GAP_MM / cell)
        space[number] = np.count_nonzero(own)
        interface[number] = np.count_nonzero(own & np.logical_or.reduce(list(latest)))
        inner = own[1:-1, 1:-1] & own[:-2, 1:-1] & own[2:, 1:-1] & own[1:-1, :-2] & own[1:-1, 2:]
        border[number] = space[number] - np.count_nonzero(inner)
    volume = cell**2 * height
    return Columns(space * volume, interface * volume, border * cell * height)


def _find_bridges(layers: Layers, line_mm: float) -> Cells:
    """Return the cells above nothing that lines between two ends hold."""
    filled, cell = layers.filled, layers.cell
    result = np.zeros_like(filled)
    above_nothing = filled[1:] & ~filled[:-1]
    for number in np.flatnonzero(above_nothing.any(axis=(1, 2))) + 1:
        rows, columns = (np.flatnonzero(above_nothing[number - 1].any(axis=axis)) for axis in (1, 0))
        # the grid has an empty cell on each side
        box = slice(rows[0] - 1, rows[-1] + 2), slice(columns[0] - 1, columns[-1] + 2)
        own, held = above_nothing[number - 1][box], filled[number - 1][box] & filled[number][box]
        # a bridge has infill, not only walls
        label, count = ndimage.label(own, np.ones((3, 3)))
        inside = ndimage.distance_transform_edt(filled[number])[box] > BRIDGE_LINES * line_mm / cell
        is_wide = np.bincount(label[inside & own], minlength=count + 1) > 0
        spans, ends = zip(*(_cross_regions(own, held, shear) for shear in (None, 0, 1, -1)), strict=True)
        covered = np.array([np.bincount(label[span], minlength=count + 1) for span in spans])
        best = covered.argmax(axis=0)
        is_bridge = is_wide & (covered.max(axis=0) > 0)
        is_bridge[0] = False
        free = np.zeros_like(own)
        for direction, loose in enumerate(ends):
            free |= loose & (best[label] == direction)
        result[number][box] = is_bridge[label] & ~grow(free, MARGIN_MM / cell)
    return result


def _cross_regions(own: Cells, held: Cells, shear: int | None) -> tuple[Cells, Cells]:
    """Cross regions of a layer by parallel lines.

    Args:
        own: (h, w) cells of the regions.
        held: (h, w) cells beside them that hold a line.
        shear: Columns by which a line moves in each row; None: a line along a row.
    Returns:
        (h, w) cells on lines that are held at both ends; cells at ends that are not.
    """
    if shear is None:
        span, loose = _cross_regions(own.T, held.T, 0)
        return span.T, loose.T
    height, width = own.shape
    row = np.arange(height)[:, None]
    column = np.arange(width) - shear * row + (height if shear > 0 else 0)
    turned = np.zeros((2, height, width + height + 1), np.bool_)
    turned[0, row, column], turned[1, row, column] = own, held
    both, loose = np.ones((2, *turned.shape[1:]), np.bool_)
    loose = ~loose
    for way in (slice(None), slice(None, None, -1)):
        line, support = turned[0, way], turned[1, way]
        before = np.maximum.accumulate(np.where(line, 0, row), axis=0)
        is_held = np.take_along_axis(support, before, axis=0)
        both[way] &= is_held & line
        loose[way][1:] |= line[1:] & ~line[:-1] & ~is_held[1:]
    return both[row, column], loose[row, column]


def _find_overhangs(
    skin: Skin, angle_deg: float, low: Float64, cell: float, with_edges: bool
) -> tuple[IntIndex, IntIndex, Float64]:
    """Return column, row and height of the places that need support."""
    normals = face_normals(skin.vertices, skin.faces)
    length = np.linalg.norm(normals, axis=1)
    hanging = skin.faces[find_overhangs(skin.vertices, skin.faces, normals, angle_deg)]
    key, z = np.empty(0, np.int64), np.empty(0)
    if len(hanging):
        key, _, z = cross_columns(skin.vertices, hanging, low, cell)
    column, row = key & ((1 << 20) - 1), key >> 20
    if with_edges:
        points = np.concatenate([_find_keels(skin, normals, length, angle_deg, cell), _find_tips(skin, normals)])
        cells = np.floor((points[:, :2] - low[:2]) / cell).astype(np.int64)
        column, row = np.concatenate([column, cells[:, 0]]), np.concatenate([row, cells[:, 1]])
        z = np.concatenate([z, points[:, 2]])
    return column, row, z


def _find_keels(skin: Skin, normals: Float64, length: Float64, angle_deg: float, step: float) -> Float64:
    """Return points on flat edges from which both faces rise, at most a step apart."""
    begin, end = (skin.vertices[skin.ends[:, side]] for side in (0, 1))
    along = end - begin
    size = np.linalg.norm(along, axis=1)
    is_keel = np.abs(along[:, 2]) < np.sin(np.deg2rad(angle_deg)) * size
    for side, sign in ((0, 1), (1, -1)):
        face = skin.sides[:, side]
        rise = sign * (normals[face, 0] * along[:, 1] - normals[face, 1] * along[:, 0])
        is_keel &= (rise > MIN_RISE * size * length[face]) & (normals[face, 2] < 0)
    chosen = np.flatnonzero(is_keel)
    count = np.ceil(np.abs(along[chosen, :2]).max(axis=1, initial=0) / step).astype(np.int64) + 1
    number = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    chosen = np.repeat(chosen, count)
    share = number / np.maximum(np.repeat(count, count) - 1, 1)
    points: Float64 = begin[chosen] + share[:, None] * along[chosen]
    return points


def _find_tips(skin: Skin, normals: Float64) -> Float64:
    """Return the corners below all their neighbors, if the material is above them."""
    z = skin.vertices[:, 2]
    is_above = np.zeros(len(z), np.bool_)
    for a, b in (skin.ends.T, skin.ends.T[::-1]):
        is_above[a[z[a] > z[b]]] = True
    tip = np.flatnonzero(~is_above)
    facing = np.bincount(skin.faces.ravel(), np.repeat(normals[:, 2], 3), len(z))
    points: Float64 = skin.vertices[tip[facing[tip] < 0]]
    return points
