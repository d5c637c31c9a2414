"""Visible colors of a surface at any point: base color × texture × vertex color × alpha over a background."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.model.installing import describe_install
from meshhub.model.notes import note
from meshhub.model.scene import Float32, Int32, Material, Scene, UInt8
from meshhub.toolkit.colors import LINEAR_OF_BYTE, decode_srgb, encode_srgb
from meshhub.toolkit.geometry import IntIndex
from meshhub.toolkit.images import decode_image

CHUNK_SIZE = 262_144
"""Samples computed at a time; bounds the memory."""

_LINEAR = LINEAR_OF_BYTE.astype(np.float32)
_ALPHA = (np.arange(256) / 255).astype(np.float32)

_LINEAR_STEP_COUNT = 65_535
"""Steps of linear light in the table below; fine enough, because the darkest sRGB bytes are 20 steps apart."""

_BYTE_OF_LINEAR = np.rint(encode_srgb(np.arange(_LINEAR_STEP_COUNT + 1) / _LINEAR_STEP_COUNT) * 255).astype(np.uint8)

_MAX_REPEAT_COUNT = 65_536
"""Maximum repetitions of a texture; larger float32 coordinates, and NaN, cannot address a pixel. """

WHITE = (255, 255, 255)
"""Background of transparent surfaces if the caller gives none."""


class Surface(NamedTuple):
    """Mesh with the material of a part; parts that share both have the same colors.

    mesh:     index into the meshes of the scene
    material: index of the material of faces without one, or None
    """

    mesh: int
    material: int | None


def get_face_materials(scene: Scene, surface: Surface) -> Int32:
    """Return the material (m,) of each face of a surface, -1 for none."""
    mesh = scene.meshes[surface.mesh]
    fallback = np.int32(-1 if surface.material is None else surface.material)
    if mesh.face_material is None:
        return np.full(len(mesh.faces), fallback, np.int32)
    return np.where(mesh.face_material < 0, fallback, mesh.face_material)


class SurfaceColors:
    """Colors of several surfaces, whose faces are numbered one surface after the other.

    Textures are filtered, and colors are interpolated and multiplied, in linear light (glTF 2.0 §3.9.2). Normals, light
    and metal are ignored; emission is ignored by default.
    """

    def __init__(
        self,
        scene: Scene,
        surfaces: Sequence[Surface],
        background: tuple[int, int, int] = WHITE,
        *,
        emission: bool = False,
    ) -> None:
        """Decode the textures that the surfaces use.

        Args:
            scene: Any frame.
            surfaces: Surfaces of the scene.
            background: sRGB color behind transparent surfaces.
            emission: Add the light that materials emit.
        """
        self._material = np.concatenate(
            [np.empty(0, np.int32), *(get_face_materials(scene, surface) for surface in surfaces)]
        )
        self._factor = np.ones((4, len(scene.materials) + 1), np.float32)
        for number, material in enumerate(scene.materials):
            self._factor[:3, number] = decode_srgb(np.array(material.base_color[:3]))
            self._factor[3, number] = material.base_color[3]
        used = sorted(set(np.unique(self._material).tolist()) - {-1})
        self._materials = {number: scene.materials[number] for number in used}
        self._background = _LINEAR[list(background)][:, None]
        self._uv = _collect_corners(scene, surfaces, "uv")
        self._colors = _collect_corners(scene, surfaces, "colors")
        has_uv = np.concatenate(
            [
                np.empty(0, np.bool_),
                *(np.full(len(scene.meshes[s.mesh].faces), scene.meshes[s.mesh].uv is not None) for s in surfaces),
            ]
        )
        base = {number: material.base_color_image for number, material in self._materials.items()}
        self._pixels = _decode_textures(scene, base) if has_uv.any() else {}
        self._has_uv = has_uv
        self._is_textured: NDArray[np.bool_] = np.isin(self._material, list(self._pixels)) & has_uv
        emitting = {n: m.emissive_image for n, m in self._materials.items() if emission and any(m.emissive)}
        self._emission = {n: decode_srgb(np.array(self._materials[n].emissive)).astype(np.float32) for n in emitting}
        self._emission_pixels = _decode_textures(scene, emitting) if has_uv.any() else {}

    @property
    def is_textured(self) -> NDArray[np.bool_]:
        """(m,) whether each face has a texture that could be decoded."""
        return self._is_textured

    @property
    def has_color(self) -> bool:
        """Whether any face has a color other than white."""
        if self._colors is not None or self._is_textured.any() or self._emission:
            return True
        return bool((self._factor[:, np.unique(self._material)] != 1).any())

    def get_materials(self, face: IntIndex) -> Int32:
        """Return the material (k,) of each face, -1 for none."""
        return self._material[face]

    def measure_texels(self, face: IntIndex) -> Float32:
        """Return the distances (k, 3) between the corners and the middles of faces, in pixels of their textures.

        Args:
            face: (k,) faces with a texture.
        """
        assert self._uv is not None
        sizes = np.ones((2, len(self._factor[0])), np.float32)
        for number, pixels in self._pixels.items():
            sizes[:, number] = pixels.shape[1::-1]
        corners = self._uv[:, :, face] * sizes[:, None, self._material[face]]
        distances: Float32 = np.linalg.norm(corners - corners.mean(axis=1, keepdims=True), axis=0).T
        return distances

    def sample(self, face: Int32 | IntIndex, weights: Float32) -> UInt8:
        """Return the colors of points.

        Args:
            face: (k,) face of each point.
            weights: (k, 3) barycentric coordinates of the points.
        Returns:
            (k, 3) sRGB colors.
        """
        result = np.empty((len(face), 3), np.uint8)
        for start in range(0, len(face), CHUNK_SIZE):
            rows = slice(start, start + CHUNK_SIZE)
            result[rows] = self._sample(face[rows], weights[rows])
        return result

    def _sample(self, face: Int32 | IntIndex, weights: Float32) -> UInt8:
        material = self._material[face]
        # a row for each channel, because numpy is slow at rows of four numbers
        linear = self._factor.take(material, axis=1)
        corner_shares = np.ascontiguousarray(weights.T)
        if self._colors is not None:
            linear[:3] *= _interpolate(_LINEAR, self._colors[:3], face, corner_shares)
            linear[3:] *= _interpolate(_ALPHA, self._colors[3:], face, corner_shares)
        is_textured = self._is_textured[face]
        for number, pixels in self._pixels.items():
            is_own = is_textured & (material == number)
            if is_own.any():
                # most models have one material, and a view of all rows avoids copies
                rows = slice(None) if is_own.all() else np.flatnonzero(is_own)
                linear[:, rows] *= self._sample_texture(number, pixels, face[rows], corner_shares[:, rows])
        for number, color in self._emission.items():
            rows = np.flatnonzero(material == number)
            linear[:3, rows] += color[:, None] * self._sample_emission(number, face[rows], corner_shares[:, rows])
        self._blend(linear, material)
        steps = np.clip(linear[:3], 0, 1)
        steps *= np.float32(_LINEAR_STEP_COUNT)
        steps += np.float32(0.5)
        result = np.empty((len(face), 3), np.uint8)
        for channel in range(3):
            result[:, channel] = _BYTE_OF_LINEAR.take(steps[channel].astype(np.uint16))
        return result

    def _sample_texture(self, number: int, pixels: UInt8, face: Int32 | IntIndex, corner_shares: Float32) -> Float32:
        """Return the (4, k) linear colors of a texture of a material, with alpha."""
        assert self._uv is not None
        u, v = _interpolate(None, self._uv, face, corner_shares)
        return sample_texture(pixels, u, v, self._materials[number])

    def _sample_emission(self, number: int, face: Int32 | IntIndex, corner_shares: Float32) -> Float32:
        """Return the (3, k) linear colors of the emission map of a material; 1 without a map or coordinates."""
        result = np.ones((3, len(face)), np.float32)
        if number in self._emission_pixels:
            rows = np.flatnonzero(self._has_uv[face])
            pixels = self._emission_pixels[number]
            result[:, rows] = self._sample_texture(number, pixels, face[rows], corner_shares[:, rows])[:3]
        return result

    def _blend(self, linear: Float32, material: Int32) -> None:
        """Blend transparent colors (4, k) with the background, in place."""
        for number, description in self._materials.items():
            if description.alpha_mode == "opaque":
                continue
            rows = np.flatnonzero(material == number)
            alpha = linear[3, rows]
            if description.alpha_mode == "mask":
                alpha = (alpha >= description.alpha_cutoff).astype(np.float32)
            linear[:3, rows] = linear[:3, rows] * alpha + self._background * (1 - alpha)


def _interpolate(
    table: Float32 | None, values: NDArray[Any], face: Int32 | IntIndex, corner_shares: Float32
) -> Float32:
    """Interpolate values at the corners of faces.

    Args:
        table: Number for each byte, if the values are bytes.
        values: (d, 3, m) values at the corners of all faces.
        face: (k,) face of each point.
        corner_shares: (3, k) shares of the corners.
    Returns:
        (d, k) values.
    """
    result = np.zeros((len(values), len(face)), np.float32)
    for number, corners in enumerate(values):
        for corner, share in zip(corners, corner_shares, strict=True):
            own = corner.take(face)
            result[number] += (own if table is None else table.take(own)) * share
    return result


def _collect_corners(scene: Scene, surfaces: Sequence[Surface], name: str) -> NDArray[Any] | None:
    """Return the (d, 3, m) values of a vertex attribute at the corners of all faces; None if no mesh has it."""
    meshes = [scene.meshes[surface.mesh] for surface in surfaces]
    present = [getattr(mesh, name) for mesh in meshes if getattr(mesh, name) is not None]
    if not present:
        return None
    # meshes without UV have no texture, and those without colors are white
    default = np.zeros((1, 3, 2), np.float32) if name == "uv" else np.full((1, 3, 4), 255, np.uint8)
    rows = [
        np.broadcast_to(default, (len(mesh.faces), *default.shape[1:]))
        if getattr(mesh, name) is None
        else getattr(mesh, name)[mesh.faces]
        for mesh in meshes
    ]
    result = np.ascontiguousarray(np.concatenate(rows).T)
    if name == "uv":
        result[~(np.abs(result) < _MAX_REPEAT_COUNT)] = 0
    return result


def _decode_textures(scene: Scene, images: Mapping[int, int | None]) -> dict[int, UInt8]:
    """Return the (height, width, 4) pixels of the images of materials, by material; materials may share them."""
    used = {image for image in images.values() if image is not None}
    decoded = {image: decode_image(scene.images[image].data) for image in sorted(used)}
    if any(pixels is None for pixels in decoded.values()):
        note(
            "texture_not_decoded",
            "a texture cannot be decoded, so its colors are missing; "
            f"`{describe_install('meshhub[textures]')}` adds a decoder",
        )
    return {
        number: pixels
        for number, image in images.items()
        if image is not None and (pixels := decoded[image]) is not None
    }


def sample_texture(pixels: UInt8, u: Float32, v: Float32, material: Material) -> Float32:
    """Return the (4, k) linear colors, with alpha, of a texture.

    Args:
        pixels: (height, width, 4) sRGB, the top row first.
        u: (k,) horizontal coordinates, from 0 at the left edge.
        v: (k,) vertical coordinates, from 0 at the lower edge.
        material: The wrap and filter modes of the texture apply; alpha is 1 if the image has no transparency.
    """
    height, width = pixels.shape[:2]
    packed = np.ascontiguousarray(pixels).view(np.uint32).ravel()
    x, y = u * np.float32(width), (1 - v) * np.float32(height)
    result = np.zeros((4, len(u)), np.float32)
    if material.filter == "nearest":
        column, row = _wrap(np.floor(x), material.wrap[0], width), _wrap(np.floor(y), material.wrap[1], height)
        neighbors = [(row * width + column, np.ones(1, np.float32))]
    else:
        x -= np.float32(0.5)
        y -= np.float32(0.5)
        left, top = np.floor(x), np.floor(y)
        right_share, bottom_share = x - left, y - top
        columns = [_wrap(left + step, material.wrap[0], width) for step in (0, 1)]
        rows = [_wrap(top + step, material.wrap[1], height) * width for step in (0, 1)]
        neighbors = [
            (row + column, row_share * share)
            for row, row_share in zip(rows, (1 - bottom_share, bottom_share), strict=True)
            for column, share in zip(columns, (1 - right_share, right_share), strict=True)
        ]
    is_opaque = material.alpha_mode == "opaque"
    tables = [_LINEAR] * 3 if is_opaque else [_LINEAR] * 3 + [_ALPHA]
    for index, share in neighbors:
        channels = packed.take(index).view(np.uint8).reshape(-1, 4)
        for channel, table in enumerate(tables):
            result[channel] += table.take(channels[:, channel]) * share
    if is_opaque:
        result[3] = 1
    return result


def _wrap(position: Float32, mode: str, count: int) -> IntIndex:
    """Return the pixel at a whole position along one axis."""
    index = position.astype(np.intp)
    if mode == "repeat":
        # for powers of two, a mask takes a tenth of the time of the remainder
        return index & (count - 1) if count & (count - 1) == 0 else index % count
    if mode == "mirror":
        index %= 2 * count
        return np.minimum(index, 2 * count - 1 - index)
    return np.clip(index, 0, count - 1)
