"""Support that a slicer prints below a model: columns of cells, wider than the overhangs, with dense layers on top."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meshhub.model.scene import Float64, Int32
from meshhub.toolkit.geometry import extremes, face_normals
from meshhub.toolkit.layers import Layers, grow
from meshhub.toolkit.supports import cross_columns

MARGIN_MM = 1.5
"""Millimeters by which slicers extend the support beyond an overhang."""

GAP_MM = 0.3
"""Millimeters between support and the walls beside it."""

INTERFACE_LAYERS = 3
"""Dense layers between support and overhang."""

FILL_RATIO, INTERFACE_RATIO, SHEATH_LINES = 0.14, 1.0, 1.05
"""Filled share of support and of its dense layers, and lines around it; fitted."""

LINE_RATIO = 1.125
"""Width of a line per diameter of the nozzle."""


class Columns(NamedTuple):
    """Support of each layer, (l,) each.

    space:     mm³ that it takes up
    interface: mm³ of it beside an overhang, which are dense
    border:    mm² of its sides
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


def stand_columns(vertices: Float64, faces: Int32, layers: Layers, angle_deg: float, layer_mm: float) -> Columns:
    """Let columns grow from overhangs down to the bed, or to the model below.

    Args:
        vertices: (n, 3) mm, Z up.
        faces: (m, 3) oriented outward.
        layers: Layers of the same model.
        angle_deg: An overhang needs support if its angle with the bed is smaller.
        layer_mm: Gap between overhang and support.
    """
    _, low, cell, height = layers
    # the support may be wider than the model
    margin = int(np.ceil(MARGIN_MM / cell))
    filled = np.pad(layers.filled, ((0, 0), (margin, margin), (margin, margin)))
    normals = face_normals(vertices, faces)
    steep = -normals[:, 2] > np.cos(np.deg2rad(angle_deg)) * np.linalg.norm(normals, axis=1)
    hanging = faces[steep & (vertices[:, 2][faces].max(axis=1) > extremes(vertices)[0][2] + layer_mm)]
    if len(hanging) == 0:
        return Columns(*np.zeros((3, len(filled))))
    column, _, z = cross_columns(vertices, hanging, low, cell)
    level = np.floor((z - low[2] - layer_mm) / height).astype(np.int64)
    known = (level >= 0) & (level < len(filled))
    begins = np.zeros(filled.shape, np.bool_)
    begins[level[known], (column[known] >> 20) + margin, (column[known] & ((1 << 20) - 1)) + margin] = True
    begins = grow(begins, MARGIN_MM / cell)
    free = ~grow(filled, GAP_MM / cell)
    dense = max(1, int(np.ceil(INTERFACE_LAYERS * layer_mm / height)))
    support = np.zeros_like(filled)
    interface = np.zeros(len(filled))
    own = np.zeros(filled.shape[1:], np.bool_)
    for number in range(len(filled) - 1, -1, -1):
        own = (own | begins[number]) & free[number]
        support[number] = own
        interface[number] = np.count_nonzero(own & begins[number : number + dense].any(axis=0))
    space = np.count_nonzero(support, axis=(1, 2))
    inner = support[:, 1:-1, 1:-1] & support[:, :-2, 1:-1] & support[:, 2:, 1:-1]
    inner &= support[:, 1:-1, :-2] & support[:, 1:-1, 2:]
    border = space - np.count_nonzero(inner, axis=(1, 2))
    volume = cell**2 * height
    return Columns(space * volume, interface * volume, border * cell * height)
