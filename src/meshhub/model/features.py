"""Feature table of a CAD model: size, surfaces and holes. Readers with exact surfaces return it with the scene."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Vector = tuple[float, float, float]
"""X, Y and Z."""


class SurfaceCount(Struct, frozen=True, kw_only=True):
    """Faces of one kind."""

    kind: str
    """Kind of the surface, such as "plane", "cylinder", "free-form"."""

    count: int
    """Number of faces; every instance counts."""


class RadiusCount(Struct, frozen=True, kw_only=True):
    """Faces of one kind with one radius."""

    kind: str
    """Kind of the surface: "cylinder", "sphere", or "torus" with the radius of its tube."""

    radius_mm: float
    """Radius."""

    side: Literal["inside", "outside"]
    """Whether the material is around the surface, as in a hole, or within it, as in a shaft."""

    count: int
    """Number of faces; every instance counts."""


class HoleStep(Struct, frozen=True, kw_only=True):
    """Wider section of a hole."""

    kind: Literal["counterbore", "countersink"]
    """Cylinder or cone."""

    diameter_mm: float
    """Greatest diameter of the section."""

    depth_mm: float
    """Length along the axis."""

    angle_deg: float | None = None
    """Full angle of a countersink."""


class Hole(Struct, frozen=True, kw_only=True):
    """Round holes of one kind."""

    diameter_mm: float
    """Diameter of the narrowest cylinder."""

    depth_mm: float
    """Length along the axis including all steps, without a conical or round bottom."""

    end: Literal["through", "blind"]
    """Whether the hole is open on both sides."""

    steps: tuple[HoleStep, ...] = ()
    """Counterbores and countersinks, from the entry of the hole."""

    count: int = 1
    """Number of such holes; every instance counts."""

    places: tuple[tuple[Vector, Vector], ...] = ()
    """Center of the entry in millimeters, and direction into the hole, for the first MAX_PLACES holes."""


MAX_PLACES = 100
"""Maximum places of equal holes that a table lists; `count` counts them all."""


class FeatureTable(Struct, frozen=True, kw_only=True):
    """Feature table of a CAD model."""

    size_mm: Vector
    """Extents along X, Y and Z."""

    solids: int
    """Number of solids; every instance counts."""

    faces: tuple[SurfaceCount, ...]
    """Faces by kind, the most frequent first."""

    radii: tuple[RadiusCount, ...]
    """Radii of round faces, the smallest first."""

    holes: tuple[Hole, ...]
    """Holes, the smallest first."""
