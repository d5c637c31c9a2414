"""Outlines and sharp edges, found in the picture: lines where neighboring samples belong to different surfaces."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.model.scene import Int32
from meshhub.toolkit.rendering.camera import Float32
from meshhub.toolkit.rendering.triangles import CREASE_COSINE
from meshhub.toolkit.rendering.visibility import VisibleSamples

MIN_STEP_SAMPLES = 3.0
"""Depth in samples by which one surface must lie behind another."""

MAX_SLOPE = 20.0
"""Change of the depth per sample from which a surface counts as seen edge-on."""


class SurfaceFacts(NamedTuple):
    """Visible faces.

    normals: (v, 3) unit normals in the camera's frame, toward the viewer
    part:    (v,) part of each face
    """

    normals: Float32
    part: Int32


def find_lines(
    visible: VisibleSamples, face: Int32, facts: SurfaceFacts, shape: tuple[int, int], edges: Literal["feature", "mesh"]
) -> tuple[NDArray[np.intp], Int32]:
    """Return the samples of lines on surfaces, and those of outlines on the background.

    Args:
        visible: The visible samples.
        face: (k,) index in `facts` of the face of each.
        facts: The visible faces.
        shape: Height and width of the picture in samples.
        edges: Which lines.
    """
    height, width = shape
    # one more row above and below, so that every sample has neighbors
    number = np.full((height + 2) * width, -1, np.int32)
    at = visible.position.astype(np.int32) + np.int32(width)
    number[at] = np.arange(len(face), dtype=np.int32)
    is_line = np.zeros(len(face), np.bool_)
    outlines: list[Int32] = []
    toward = np.maximum(facts.normals[:, 2], 1e-6)
    slopes = (facts.normals[:, 0] / toward, -facts.normals[:, 1] / toward)
    for offset, slope in ((np.int32(1), slopes[0]), (np.int32(width), slopes[1])):
        for step in (-offset, offset):
            neighbor = number[at + step]
            is_border = neighbor < 0
            outlines.append(at[is_border] + step)
            is_line |= is_border
        sample = np.flatnonzero(~is_border & (face != face[neighbor]))
        neighbor = neighbor[sample]
        if edges == "feature":
            clipped: Float32 = np.clip(slope, -MAX_SLOPE, MAX_SLOPE).astype(np.float32)
            drawn = _is_feature(visible.depth, face, facts, clipped, sample, neighbor)
            sample, neighbor = sample[drawn], neighbor[drawn]
        is_line[sample] = is_line[neighbor] = True
    outline = np.concatenate(outlines) - np.int32(width)
    return visible.position[is_line], outline[(outline >= 0) & (outline < height * width)]


def _is_feature(
    depth: Float32, face: Int32, facts: SurfaceFacts, slope: Float32, sample: NDArray[np.intp], neighbor: Int32
) -> NDArray[np.bool_]:
    """Return which pairs of neighboring samples are separated by a step, a sharp edge, or the border of two parts.

    Args:
        depth: (k,) depth of each sample.
        face: (k,) its face.
        facts: The faces.
        slope: (v,) change of the depth of each face from the first to the second sample.
        sample: (p,) first samples.
        neighbor: (p,) second samples.
    """
    step = depth[neighbor] - depth[sample]
    first, second = face[sample], face[neighbor]
    jump = np.minimum(np.abs(step - slope[first]), np.abs(step - slope[second]))
    cosine = np.einsum("ij,ij->i", facts.normals[first], facts.normals[second])
    is_feature: NDArray[np.bool_] = (
        (jump > MIN_STEP_SAMPLES) | (cosine < CREASE_COSINE) | (facts.part[first] != facts.part[second])
    )
    return is_feature
