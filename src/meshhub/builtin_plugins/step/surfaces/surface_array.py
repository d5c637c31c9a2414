"""Surfaces of all kinds as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshhub.model.scene import Float64


class SurfaceKind(IntEnum):
    """Kind of a surface."""

    PLANE = 0
    CYLINDER = 1
    SPHERE = 2
    CONE = 3
    TORUS = 4
    PATCH = 5


@dataclass(frozen=True, eq=False)
class SurfaceArray:
    """Surfaces as parallel arrays; lengths in millimeters, in the frame of the mesh.

    kind:   (s,) a `SurfaceKind`
    origin: (s, 3) a point of a plane, or on the axis of a cylinder or a cone; the center of a sphere or a torus; the
            middle of a patch
    axis:   (s, 3) unit vector; the normal of a plane
    radius: (s,) that of a cone is at its origin, that of a torus is the larger one
    second: (s,) slope of a cone (radius gained per length along the axis), smaller radius of a torus
    patch:  (s,) a `Patch`; None for other kinds
    """

    kind: NDArray[np.int8]
    origin: Float64
    axis: Float64
    radius: Float64
    second: Float64
    patch: NDArray[np.object_] = field(default_factory=lambda: np.empty(0, np.object_))

    def __post_init__(self) -> None:
        if len(self.patch) != len(self.kind):
            object.__setattr__(self, "patch", np.full(len(self.kind), None, np.object_))

    def __len__(self) -> int:
        return len(self.kind)

    def take(self, index: NDArray[Any]) -> SurfaceArray:
        """Return some of the surfaces, by index or mask."""
        return SurfaceArray(*(getattr(self, column.name)[index] for column in fields(self)))

    def replace_rows(self, index: NDArray[Any], surfaces: SurfaceArray) -> SurfaceArray:
        """Return a copy with the surfaces at `index` replaced."""
        columns = []
        for name in [column.name for column in fields(self)]:
            column = getattr(self, name).copy()
            column[index] = getattr(surfaces, name)
            columns.append(column)
        return SurfaceArray(*columns)


def make_planes(normal: Float64, center: Float64) -> SurfaceArray:
    """Return planes as surfaces, from (s, 3) unit normals and (s, 3) points."""
    zero = np.zeros(len(normal))
    return SurfaceArray(np.full(len(normal), SurfaceKind.PLANE, np.int8), center, normal, zero, zero)


def concatenate(parts: Sequence[SurfaceArray]) -> SurfaceArray:
    """Concatenate arrays of surfaces."""
    return SurfaceArray(
        *(np.concatenate([getattr(part, column.name) for part in parts]) for column in fields(SurfaceArray))
    )
