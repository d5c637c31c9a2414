"""Solids as OpenSCAD makes them: circles are polygons with few segments, and booleans cut the triangles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Point = tuple[float, float]

_ROUND_RATIO = 4
"""Segments of a circle are a multiple of it, so that circles have corners on the axes."""


class Scad:
    """Mesh kernel whose circles have a fixed number of segments; it has the operations of `occ`."""

    has_fillets = False
    """Whether edges can be rounded."""

    def __init__(self, segments: int) -> None:
        self._segments = -(-segments // _ROUND_RATIO) * _ROUND_RATIO

    def cylinder(
        self, x: float, y: float, low: float, high: float, radius: float, top_radius: float | None = None
    ) -> Any:
        from manifold3d import Manifold

        top = radius if top_radius is None else top_radius
        return Manifold.cylinder(high - low, radius, top, self._segments).translate([x, y, low])

    def box(self, x: float, y: float, low: float, high: float, length: float, width: float) -> Any:
        from manifold3d import Manifold

        return Manifold.cube([length, width, high - low]).translate([x - length / 2, y - width / 2, low])

    def ball(self, x: float, y: float, z: float, radius: float) -> Any:
        from manifold3d import Manifold

        return Manifold.sphere(radius, self._segments).translate([x, y, z])

    def ring(self, x: float, y: float, z: float, radius: float, tube: float) -> Any:
        from manifold3d import CrossSection, Manifold

        section = CrossSection.circle(tube, self._segments).translate([radius, 0])
        return Manifold.revolve(section, self._segments).translate([x, y, z])

    def prism(self, points: Sequence[Point], low: float, high: float, top_scale: float = 1.0) -> Any:
        from manifold3d import CrossSection, FillRule, Manifold

        section = CrossSection([points], FillRule.EvenOdd)
        return Manifold.extrude(section, high - low, 0, 0.0, [top_scale, top_scale]).translate([0, 0, low])

    def revolution(self, profile: Sequence[Point]) -> Any:
        from manifold3d import CrossSection, FillRule, Manifold

        return Manifold.revolve(CrossSection([profile], FillRule.EvenOdd), self._segments)

    def cut(self, part: Any, *tools: Any) -> Any:
        for tool in tools:
            part = part - tool
        return part

    def join(self, part: Any, *tools: Any) -> Any:
        for tool in tools:
            part = part + tool
        return part

    def common(self, first: Any, second: Any) -> Any:
        return first ^ second

    def move(self, part: Any, x: float, y: float, z: float) -> Any:
        return part.translate([x, y, z])

    def turn(self, part: Any, axis: tuple[float, float, float], degrees: float) -> Any:
        import numpy as np
        from scipy.spatial.transform import Rotation

        direction = np.array(axis) / np.linalg.norm(axis)
        matrix = Rotation.from_rotvec(np.radians(degrees) * direction).as_matrix()
        return part.transform(np.hstack([matrix, np.zeros((3, 1))]))
