"""Findings as colors of faces and as bodies in a scene, for any viewer."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from meshhub.model.scene import Float64, Material, Mesh, Part, Scene
from meshhub.model.verdict import SEVERITIES, Finding, Place, Severity, Verdict
from meshhub.pipeline.numbered_places import number_places
from meshhub.toolkit.distances import closest_points
from meshhub.toolkit.geometry import bounds, weld
from meshhub.toolkit.orientation import topology_of
from meshhub.toolkit.rendering.analysis import measure_surface
from meshhub.toolkit.rendering.options import Measure
from meshhub.toolkit.rendering.triangles import PlacedTriangles, place_triangles
from meshhub.toolkit.scene_defects import Defect, find_defects

COLORS: dict[Severity, tuple[float, float, float, float]] = {
    "error": (0.84, 0.37, 0.0, 1.0),
    "warning": (0.9, 0.62, 0.0, 1.0),
    "info": (0.34, 0.71, 0.91, 1.0),
}
"""Colors of severities, which color-blind people can distinguish (Okabe and Ito)."""

NEUTRAL = (0.8, 0.8, 0.8, 1.0)
"""Color of faces without a finding."""

MIN_RADIUS_RATIO, MAX_RADIUS_RATIO = 0.008, 0.015
"""Radius of a ball per diagonal of the model: visible, and not hiding what it marks."""

TOUCH_RATIO = 1e-6
"""Distance per diagonal of the model within which a point is on a face, and points are equal: rounding to float32."""

GROUP = "findings"
"""Name of the group of the balls."""

SEGMENTS_COUNT = 24
"""Sides of a ball around its axis."""

Mask = NDArray[np.bool_]


def mark_findings(scene: Scene, verdict: Verdict) -> Scene:
    """Return a scene whose faces have the color of their worst finding, with a ball at each numbered place.

    The balls are in groups by check, and named after code and number of their finding.

    Args:
        scene: Millimeters, Z up: the model as it was checked.
        verdict: Its findings.
    """
    triangles = place_triangles(scene)
    low, high = bounds(scene)
    diagonal = float(np.linalg.norm(high - low))
    rank = _rank_faces(scene, triangles, verdict, diagonal)
    meshes: dict[tuple[int, bytes], Mesh] = {}
    parts = []
    for number, part in enumerate(scene.parts):
        own = rank[triangles.first_face[number] : triangles.first_face[number + 1]]
        mesh = scene.meshes[part.mesh]
        # instances with equal findings share a mesh
        key = part.mesh, own.tobytes()
        meshes.setdefault(key, Mesh(mesh.vertices, mesh.faces, normals=mesh.normals, face_material=own, name=mesh.name))
        parts.append(replace(part, mesh=list(meshes).index(key), material=None))
    balls = _make_parts(verdict, len(meshes), diagonal)
    # the ranks of faces are numbers of materials
    materials = [Material(severity, COLORS[severity]) for severity in SEVERITIES]
    marks = [Material(f"{severity} place", COLORS[severity], unlit=True) for severity in SEVERITIES]
    return replace(
        scene,
        meshes=(*meshes.values(), _make_ball()) if balls else tuple(meshes.values()),
        parts=(*parts, *balls),
        materials=(*materials, Material("no finding", NEUTRAL), *marks),
        images=(),
    )


def _rank_faces(scene: Scene, triangles: PlacedTriangles, verdict: Verdict, diagonal: float) -> NDArray[np.int32]:
    """Return the severity (m,) of the worst finding of each face: its index in SEVERITIES, or their number."""
    rank = np.full(len(triangles.faces), len(SEVERITIES), np.int32)
    defects = find_defects(scene, topology_of(scene))
    for finding in verdict.findings:
        mask = _find_faces(scene, triangles, finding, defects, TOUCH_RATIO * diagonal)
        rank[mask] = np.minimum(rank[mask], SEVERITIES.index(finding.severity))
    return rank


def _find_faces(
    scene: Scene, triangles: PlacedTriangles, finding: Finding, defects: tuple[Defect, ...], tolerance: float
) -> Mask:
    """Return the faces (m,) of a finding: those beyond the limit of its measure, or those at its places."""
    corners = triangles.vertices[triangles.faces]
    defect = next((defect for defect in defects if defect.finding.kind == finding.code), None)
    if defect is not None:
        return _share_edge(corners, defect.corners, tolerance)
    measures: tuple[Measure, ...] = get_args(Measure)
    measure = next((known for known in measures if known == finding.picture.get("color_by")), None)
    limit = finding.picture.get("color_limit")
    if measure is not None and isinstance(limit, int | float):
        field = measure_surface(scene, measure, limit).field
        assert field is not None
        beyond: Mask = field(np.arange(len(corners)), corners.mean(axis=1)) < limit
        return beyond
    result = np.zeros(len(corners), np.bool_)
    low, high = corners.min(axis=1), corners.max(axis=1)
    for place in finding.places:
        result |= _touch(corners, low, high, place, tolerance)
    return result


def _touch(corners: Float64, low: Float64, high: Float64, place: Place, tolerance: float) -> Mask:
    """Return the faces (m, 3, 3) within a place; `low` and `high` (m, 3) are their boxes."""
    center, radius = np.array(place.position_mm), max(place.size_mm / 2, tolerance)
    result: Mask = np.asarray(((low <= center + radius) & (high >= center - radius)).all(axis=1))
    near = np.flatnonzero(result)
    nearest = closest_points(np.broadcast_to(center, (len(near), 3)), corners[near])
    result[near] = np.linalg.norm(nearest - center, axis=1) <= radius
    return result


def _share_edge(corners: Float64, marked: Float64, tolerance: float) -> Mask:
    """Return the faces (m, 3, 3) with two corners at corners of marked edges or faces (k, c, 3)."""
    points = np.concatenate([corners.reshape(-1, 3), marked.reshape(-1, 3)])
    _, index = weld(np.rint(points / tolerance))
    is_marked = np.zeros(int(index.max()) + 1, np.bool_)
    is_marked[index[3 * len(corners) :]] = True
    result: Mask = is_marked[index[: 3 * len(corners)]].reshape(-1, 3).sum(axis=1) >= 2
    return result


def _make_parts(verdict: Verdict, ball: int, diagonal: float) -> list[Part]:
    """Return a ball at each numbered place; `ball` is its mesh."""
    parts = []
    for finding, places in zip(verdict.findings, number_places(verdict), strict=True):
        for number, place in places:
            least, most = MIN_RADIUS_RATIO * diagonal, MAX_RADIUS_RATIO * diagonal
            transform = np.diag([*[min(max(place.size_mm / 2, least), most)] * 3, 1.0])
            transform[:3, 3] = place.position_mm
            material = len(SEVERITIES) + 1 + SEVERITIES.index(finding.severity)
            parts.append(Part(ball, transform, f"{finding.code} {number}", (GROUP, finding.check), material))
    return parts


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
