"""Borders between charts, moved onto their surfaces: both lie off the mesh, but near each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from meshhub.builtin_plugins.step.facets.skin import Skin
from meshhub.builtin_plugins.step.recognition.regions import Regions
from meshhub.builtin_plugins.step.surfaces.arrays import distinct_pairs, sum_by_label
from meshhub.builtin_plugins.step.surfaces.surfaces import find_charts, gradients
from meshhub.toolkit.geometry import face_normals

_STEPS = 2
"""Steps to the middle between the surfaces at a point."""


def move_chart_borders(skin: Skin, regions: Regions) -> Skin:
    """Return a skin whose points between charts alone lie in the middle between their surfaces.

    Args:
        skin: Mesh, millimeters.
        regions: Regions with their surfaces.
    """
    charts = find_charts(regions.surfaces)
    if not charts.any():
        return skin
    count = len(skin.points)
    region, point = distinct_pairs(np.repeat(regions.region, 3), skin.faces.ravel(), count)
    is_between = (np.bincount(point, minlength=count) > 1) & (np.bincount(point, ~charts[region], count) == 0)
    is_open = skin.twin < 0
    is_between[skin.begin[is_open]] = is_between[skin.end[is_open]] = False
    region, point = region[is_between[point]], point[is_between[point]]
    if len(point) == 0:
        return skin
    surfaces, points = regions.surfaces.take(region), skin.points.copy()
    size = np.bincount(point, minlength=count)[is_between]
    for _ in range(_STEPS):
        distance, normal = gradients(surfaces, points[point])
        step = distance[:, None] * normal
        mean = np.stack([sum_by_label(point, column, count)[is_between] for column in step.T], axis=1) / size[:, None]
        points[is_between] -= mean
    return replace(skin, points=points, cross=face_normals(points, skin.faces))
