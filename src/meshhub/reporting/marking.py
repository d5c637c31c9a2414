"""Findings as bodies in a scene, for any viewer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from meshhub.model.scene import Float64, Material, Mesh, Part, Scene
from meshhub.model.verdict import Severity, Verdict
from meshhub.reporting.collecting import number_places
from meshhub.toolkit.geometry import bounds

COLORS: dict[Severity, tuple[float, float, float, float]] = {
    "error": (0.84, 0.37, 0.0, 1.0),
    "warning": (0.9, 0.62, 0.0, 1.0),
    "info": (0.34, 0.71, 0.91, 1.0),
}
"""Colors of severities, which color-blind people can distinguish (Okabe and Ito)."""

MIN_RADIUS_RATIO, MAX_RADIUS_RATIO = 0.008, 0.03
"""Radius of a ball per diagonal of the model: visible, and not hiding what it marks."""

GROUP = "findings"
"""Name of the group of the balls."""

SEGMENTS_COUNT = 24
"""Sides of a ball around its axis."""


def mark_findings(scene: Scene, verdict: Verdict) -> Scene:
    """Return a scene with a ball at each numbered place, named after number, check and code of its finding.

    Args:
        scene: Millimeters, Z up: the model as it was checked.
        verdict: Its findings.
    """
    low, high = bounds(scene)
    diagonal = float(np.linalg.norm(high - low))
    severities = list(COLORS)
    parts = []
    for finding, places in zip(verdict.findings, number_places(verdict), strict=True):
        for number, place in places:
            least, most = MIN_RADIUS_RATIO * diagonal, MAX_RADIUS_RATIO * diagonal
            transform = np.diag([*[min(max(place.size_mm / 2, least), most)] * 3, 1.0])
            transform[:3, 3] = place.position_mm
            material = len(scene.materials) + severities.index(finding.severity)
            name = f"{number} {finding.check} {finding.code}"
            parts.append(Part(len(scene.meshes), transform, name, (GROUP,), material))
    if not parts:
        return scene
    materials = tuple(Material(severity, color, unlit=True) for severity, color in COLORS.items())
    return replace(
        scene,
        meshes=(*scene.meshes, _make_ball()),
        parts=(*scene.parts, *parts),
        materials=(*scene.materials, *materials),
    )


def _make_ball() -> Mesh:
    """Return a ball of radius 1."""
    rings = SEGMENTS_COUNT // 2
    polar, turn = np.meshgrid(
        np.linspace(0, np.pi, rings + 1), np.arange(SEGMENTS_COUNT) * (2 * np.pi / SEGMENTS_COUNT), indexing="ij"
    )
    points = np.stack([np.sin(polar) * np.cos(turn), np.sin(polar) * np.sin(turn), np.cos(polar)], axis=-1)
    # rounded, so that the points of a pole are equal
    vertices: Float64 = np.round(points, 12).reshape(-1, 3) + 0.0
    index = np.arange(len(vertices)).reshape(rings + 1, SEGMENTS_COUNT)
    a, b = index[:-1], np.roll(index[:-1], -1, axis=1)
    c, d = index[1:], np.roll(index[1:], -1, axis=1)
    # at the poles, one triangle of each square has no area
    upper = np.stack([a, c, d], axis=-1)[: rings - 1].reshape(-1, 3)
    lower = np.stack([a, d, b], axis=-1)[1:].reshape(-1, 3)
    return Mesh(vertices, np.concatenate([upper, lower]).astype(np.int32), name="place")
