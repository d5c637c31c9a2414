"""Polygons with holes: <ph> elements, whose <p> is the outline and whose <h> are holes."""

from __future__ import annotations

import manifold3d
import numpy as np
from numpy.typing import NDArray

from meshhub import note

Index = NDArray[np.int64]
Values = NDArray[np.float64]


def triangulate_holes(points: Values, counts: Index, contours: Index) -> Index:
    """Return triangles of polygons with holes.

    Args:
        points: (n, 3) corners of all contours, one contour after the other.
        counts: (c,) corners of each contour.
        contours: (m,) contours of each polygon; the first is its outline.
    Returns:
        (t, 3) rows of `points`, in the direction of the outlines.
    """
    ends = np.cumsum(counts)
    first = np.cumsum(contours) - contours
    parts = [np.empty((0, 3), np.int64)]
    for start, count in zip(first.tolist(), contours.tolist(), strict=True):
        rings = [np.arange(ends[k] - counts[k], ends[k]) for k in range(start, start + count) if counts[k] > 2]
        if rings and counts[start] > 2:
            parts.append(_triangulate(points, rings))
    return np.concatenate(parts)


def _triangulate(points: Values, rings: list[Index]) -> Index:
    """Return the triangles between an outline and its holes."""
    spokes = points[rings[0][1:]] - points[rings[0][0]]
    normal = np.cross(spokes[:-1], spokes[1:]).sum(axis=0)
    axis = int(np.abs(normal).argmax())
    across, up = (axis + 1) % 3, (axis + 2) % 3
    plane = (across, up) if normal[axis] > 0 else (up, across)
    flat = [points[ring][:, plane] - points[rings[0][0], plane] for ring in rings]
    # holes run the other way round than the outline, whatever the file has
    turned = [number > 0 and _signed_area(contour) > 0 for number, contour in enumerate(flat)]
    rings = [ring[::-1] if is_turned else ring for ring, is_turned in zip(rings, turned, strict=True)]
    flat = [contour[::-1] if is_turned else contour for contour, is_turned in zip(flat, turned, strict=True)]
    order = np.concatenate(rings)
    triangles = np.asarray(manifold3d.triangulate(flat, allow_convex=True), np.int64).reshape(-1, 3)
    area = sum(map(_signed_area, flat))
    a, b, c = np.concatenate(flat)[triangles].transpose(1, 2, 0)
    filled = float(((b[0] - a[0]) * (c[1] - a[1]) - (c[0] - a[0]) * (b[1] - a[1])).sum() / 2)
    if abs(filled - area) > 1e-6 * abs(area):
        note("holes_inexact", "a polygon crosses its own holes; its triangles do not cover it exactly")
    return order[triangles]


def _signed_area(contour: Values) -> float:
    x, y = contour.T
    return float((x * np.roll(y, -1) - np.roll(x, -1) * y).sum() / 2)
