"""Colors of the visible samples: light, vertex colors and textures, interpolated over each triangle."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.model.scene import Int32, UInt8
from meshhub.toolkit.rendering.appearance import Appearance, Texture
from meshhub.toolkit.rendering.camera import Float32

KEY_LIGHT = np.array([-0.42, 0.72, 0.55]) / np.linalg.norm([-0.42, 0.72, 0.55])
"""Direction to the main light, in the camera's frame: from the upper left."""

AMBIENT, KEY, FRONT = 0.40, 0.50, 0.14
"""Shares of the light: ambient, from the main light, from the viewer."""

BACK_SIDE = 0.62
"""Brightness of the inner side of a surface."""

MIN_BLENDED_SAMPLES = 6.0
"""Area in samples from which colors are interpolated over a triangle; smaller triangles get the mean of their corners.
"""


class SampledFaces(NamedTuple):
    """Visible faces in the picture.

    x:       (v, 3) samples to the right
    y:       (v, 3) samples down
    normals: (v, 3, 3) unit normals of the corners, in the camera's frame; (v, 1, 3) for flat facets
    front:   (v,) whether the outer side is visible
    """

    x: Float32
    y: Float32
    normals: Float32
    front: NDArray[np.bool_]


def shade(
    faces: SampledFaces, appearance: Appearance, face: Int32, position: NDArray[np.intp], width: int
) -> NDArray[np.uint32]:
    """Return the (k,) colors of samples, packed as red, green, blue, alpha.

    Args:
        faces: The visible faces.
        appearance: Their colors.
        face: (k,) face of each sample.
        position: (k,) index of each sample.
        width: Samples of a row.
    """
    light = _light(faces, appearance)
    corner = appearance.corner_color[..., :3].astype(np.float32) * light[..., None]
    flat = np.minimum(corner.mean(axis=1) + np.float32(0.5), 255).astype(np.uint8)
    opaque = np.column_stack([flat, np.full(len(flat), 255, np.uint8)])
    colors: NDArray[np.uint32] = opaque.view(np.uint32).ravel()[face]
    is_blended = _needs_blending(faces, appearance, light)
    samples = np.flatnonzero(is_blended[face])
    if len(samples):
        chosen = face[samples]
        row, column = np.divmod(position[samples].astype(np.int32), np.int32(width))
        weights = _weights(faces, chosen, column, row)
        blended = sum(weights[:, number, None] * corner[chosen, number] for number in range(3))
        _apply_textures(blended, appearance, faces, chosen, weights)
        bytes_of_colors = colors.view(np.uint8).reshape(-1, 4)
        bytes_of_colors[samples, :3] = np.clip(blended + np.float32(0.5), 0, 255).astype(np.uint8)
    return colors


def _light(faces: SampledFaces, appearance: Appearance) -> Float32:
    """Return the (v, 3) brightness of the corners; (v, 1) for flat facets."""
    normals = np.where(faces.front[:, None, None], faces.normals, -faces.normals)
    key = normals @ KEY_LIGHT.astype(np.float32)
    # the square of a wrapped cosine, so that no part of the model is black
    light = AMBIENT + KEY * np.square(key * 0.5 + 0.5) * 1.15 + FRONT * np.maximum(normals[..., 2], 0)
    light = np.where(faces.front[:, None], light, light * BACK_SIDE)
    result: Float32 = np.where(appearance.is_unlit[:, None], 1.0, light).astype(np.float32)
    return result


def _needs_blending(faces: SampledFaces, appearance: Appearance, light: Float32) -> NDArray[np.bool_]:
    """Return whether a face has several colors and is large enough to show them."""
    x, y = faces.x, faces.y
    area = np.abs((x[:, 1] - x[:, 0]) * (y[:, 2] - y[:, 0]) - (x[:, 2] - x[:, 0]) * (y[:, 1] - y[:, 0])) / 2
    changes = ~appearance.is_uniform | (np.ptp(light, axis=1) > 1 / 255)
    result: NDArray[np.bool_] = (changes & (area >= MIN_BLENDED_SAMPLES)) | (appearance.texture >= 0)
    return result


def _weights(faces: SampledFaces, face: Int32, column: Int32, row: Int32) -> Float32:
    """Return the (k, 3) barycentric coordinates of samples."""
    x, y = faces.x, faces.y
    ax, ay, bx, by = x[:, 1] - x[:, 0], y[:, 1] - y[:, 0], x[:, 2] - x[:, 0], y[:, 2] - y[:, 0]
    area = ax * by - bx * ay
    inverse = np.divide(1, area, out=np.zeros_like(area), where=area != 0)
    dx = column.astype(np.float32) + np.float32(0.5) - x[face, 0]
    dy = row.astype(np.float32) + np.float32(0.5) - y[face, 0]
    second = (dx * by[face] - dy * bx[face]) * inverse[face]
    third = (dy * ax[face] - dx * ay[face]) * inverse[face]
    weights = np.clip(np.stack([1 - second - third, second, third], axis=1), 0, 1)
    result: Float32 = weights / weights.sum(axis=1, keepdims=True)
    return result


def _apply_textures(
    blended: Float32, appearance: Appearance, faces: SampledFaces, face: Int32, weights: Float32
) -> None:
    """Multiply the colors of samples by their textures."""
    image = appearance.texture[face]
    for number, texture in appearance.textures.items():
        samples = np.flatnonzero(image == number)
        if not len(samples):
            continue
        chosen = face[samples]
        uv = np.einsum("kc,kcd->kd", weights[samples], appearance.uv[chosen])
        texels = _texels_per_sample(texture, faces, appearance.uv)[chosen]
        blended[samples] *= _fetch(texture, uv, texels).astype(np.float32) / 255


def _texels_per_sample(texture: Texture, faces: SampledFaces, uv: Float32) -> Float32:
    """Return the (v,) side of a sample of each face in texels."""
    height, width = texture.pixels.shape[:2]
    x, y = faces.x, faces.y
    u, v = uv[..., 0] * width, uv[..., 1] * height
    drawn, covered = (
        np.abs((a[:, 1] - a[:, 0]) * (b[:, 2] - b[:, 0]) - (a[:, 2] - a[:, 0]) * (b[:, 1] - b[:, 0]))
        for a, b in ((x, y), (u, v))
    )
    result: Float32 = np.sqrt(covered / np.maximum(drawn, 1e-6))
    return result


def _fetch(texture: Texture, uv: Float32, texels: Float32) -> UInt8:
    """Return the (k, 3) pixels at texture coordinates, from copies reduced to about one pixel per sample."""
    result = np.empty((len(uv), 3), np.uint8)
    level = np.floor(np.log2(np.maximum(texels, 1))).astype(np.int32)
    pixels = texture.pixels[..., :3]
    for number in range(int(level.max(initial=0)) + 1):
        if number and min(pixels.shape[:2]) >= 2:
            even = pixels[: pixels.shape[0] // 2 * 2, : pixels.shape[1] // 2 * 2].astype(np.uint16)
            pixels = ((even[::2, ::2] + even[1::2, ::2] + even[::2, 1::2] + even[1::2, 1::2] + 2) // 4).astype(np.uint8)
        chosen = np.flatnonzero(level == number)
        height, width = pixels.shape[:2]
        column = _wrapped(uv[chosen, 0], texture.wrap[0], width)
        row = height - 1 - _wrapped(uv[chosen, 1], texture.wrap[1], height)
        result[chosen] = pixels[row, column]
    return result


def _wrapped(coordinate: Float32, wrap: str, count: int) -> NDArray[np.intp]:
    """Return the pixel at a coordinate along one axis."""
    if wrap == "mirror":
        coordinate = 1 - np.abs(np.mod(coordinate, 2) - 1)
    elif wrap == "repeat":
        coordinate = np.mod(coordinate, 1)
    return np.clip(np.nan_to_num(coordinate) * count, 0, count - 1).astype(np.intp)
