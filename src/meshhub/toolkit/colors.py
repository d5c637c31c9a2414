"""Color conversion between sRGB and linear light (IEC 61966-2-1), color products, and color differences."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshhub.model.scene import Float64, UInt8

MIN_SEAM_LEVELS = 8
"""Levels, of 255, by which colors at one point must differ at a seam; smaller differences are noise of interpolation.
"""


def clamp_fraction(value: float) -> float:
    """Return the value clamped to 0 … 1."""
    return min(max(float(value), 0.0), 1.0)


def encode_srgb(linear: Float64) -> Float64:
    """Convert linear light to sRGB, both 0 … 1; clip values outside, and read NaN as 0."""
    clipped = np.clip(np.nan_to_num(linear), 0.0, 1.0)
    return np.where(clipped <= 0.0031308, clipped * 12.92, 1.055 * np.power(clipped, 1 / 2.4) - 0.055)


def decode_srgb(encoded: Float64) -> Float64:
    """Convert sRGB to linear light, both 0 … 1; clip values outside."""
    clipped = np.clip(encoded, 0.0, 1.0)
    return np.where(clipped <= 0.04045, clipped / 12.92, np.power((clipped + 0.055) / 1.055, 2.4))


def multiply_colors(first: UInt8, second: UInt8) -> UInt8:
    """Multiply sRGB colors in linear light, and multiply their alpha.

    Args:
        first: (…, 4) colors.
        second: (…, 4) colors that broadcast against `first`.
    Returns:
        (…, 4) products.
    Source:
        glTF 2.0 §3.9.2: the base color is the product of its factor, its texture and the vertex color.
    """
    a, b = first.astype(np.float64) / 255, second.astype(np.float64) / 255
    product = a * b
    product[..., :3] = encode_srgb(decode_srgb(a[..., :3]) * decode_srgb(b[..., :3]))
    result: UInt8 = np.rint(product * 255).astype(np.uint8)
    return result


LINEAR_OF_BYTE = decode_srgb(np.arange(256) / 255)
"""Linear light of each sRGB byte."""

_LINEAR_TO_LMS = np.array(
    [
        (0.4122214708, 0.5363325363, 0.0514459929),
        (0.2119034982, 0.6806995451, 0.1073969566),
        (0.0883024619, 0.2817188376, 0.6299787005),
    ]
)
_LMS_TO_OKLAB = np.array(
    [
        (0.2104542553, 0.7936177850, -0.0040720468),
        (1.9779984951, -2.4285922050, 0.4505937099),
        (0.0259040371, 0.7827717662, -0.8086757660),
    ]
)
_LINEAR_TO_XYZ = np.array(
    [
        (0.4123907993, 0.3575843394, 0.1804807884),
        (0.2126390059, 0.7151686788, 0.0721923154),
        (0.0193308187, 0.1191947798, 0.9505321522),
    ]
)
_D65_WHITE = _LINEAR_TO_XYZ.sum(axis=1)


def _multiply(matrix: Float64, columns: Float64) -> Float64:
    """Return the product of a (3, 3) matrix and (3, …) columns, without the threads of BLAS.

    The threads of BLAS gain nothing for three rows, and they wait actively for each other: on two busy cores, they took
    a quarter of the processor time of a reduction of colors.
    """
    result: Float64 = np.einsum("dc,c...->d...", matrix, columns)
    return result


def _linear_columns(colors: UInt8) -> Float64:
    """Return the linear light (3, …) of (…, 3) sRGB colors."""
    return LINEAR_OF_BYTE[np.ascontiguousarray(np.moveaxis(colors, -1, 0))]


def convert_to_oklab(colors: UInt8) -> Float64:
    """Convert (…, 3) sRGB colors to OKLab.

    Source:
        Ottosson, "A perceptual color space for image processing", 2020.
    """
    return np.moveaxis(_multiply(_LMS_TO_OKLAB, np.cbrt(_multiply(_LINEAR_TO_LMS, _linear_columns(colors)))), 0, -1)


def convert_from_oklab(lab: Float64) -> UInt8:
    """Convert (…, 3) OKLab colors to sRGB; clip colors outside of it."""
    columns = np.ascontiguousarray(np.moveaxis(lab, -1, 0))
    linear = _multiply(np.linalg.inv(_LINEAR_TO_LMS), _multiply(np.linalg.inv(_LMS_TO_OKLAB), columns) ** 3)
    result: UInt8 = np.rint(np.moveaxis(encode_srgb(linear), 0, -1) * 255).astype(np.uint8)
    return result


def convert_to_lab(colors: UInt8) -> Float64:
    """Convert (…, 3) sRGB colors to CIE L*a*b* (D65)."""
    xyz = _multiply(_LINEAR_TO_XYZ / _D65_WHITE[:, None], _linear_columns(colors))
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz * (29 / 6) ** 2 / 3 + 4 / 29)
    x, y, z = f
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)


def measure_delta_e(first: Float64, second: Float64) -> Float64:
    """Compute the color difference CIEDE2000 of (…, 3) L*a*b* colors that broadcast against each other.

    Source:
        Sharma, Wu, Dalal, "The CIEDE2000 color-difference formula", Color Research & Application 30, 2005.
    """
    (l1, a1, b1), (l2, a2, b2) = np.moveaxis(first, -1, 0), np.moveaxis(second, -1, 0)
    mean_c7 = ((np.hypot(a1, b1) + np.hypot(a2, b2)) / 2) ** 7
    stretch = 1.5 - 0.5 * np.sqrt(mean_c7 / (mean_c7 + 25.0**7))
    a1, a2 = a1 * stretch, a2 * stretch
    c1, c2 = np.hypot(a1, b1), np.hypot(a2, b2)
    h1, h2 = np.arctan2(b1, a1), np.arctan2(b2, a2)
    # the difference of the hues in -π … π, and their mean on the shorter arc
    difference = (h2 - h1 + np.pi) % (2 * np.pi) - np.pi
    is_gray = c1 * c2 == 0
    difference = np.where(is_gray, 0.0, difference)
    hue = np.where(is_gray, h1 + h2, h1 + difference / 2)
    lightness, chroma = (l1 + l2) / 2, (c1 + c2) / 2
    t = (
        1
        - 0.17 * np.cos(hue - np.pi / 6)
        + 0.24 * np.cos(2 * hue)
        + 0.32 * np.cos(3 * hue + np.pi / 30)
        - 0.20 * np.cos(4 * hue - np.deg2rad(63))
    )
    offset = np.square(lightness - 50)
    delta_l = (l2 - l1) / (1 + 0.015 * offset / np.sqrt(20 + offset))
    delta_c = (c2 - c1) / (1 + 0.045 * chroma)
    delta_h = 2 * np.sqrt(c1 * c2) * np.sin(difference / 2) / (1 + 0.015 * chroma * t)
    degrees = np.rad2deg(hue) % 360
    angle = np.deg2rad(60) * np.exp(-np.square((degrees - 275) / 25))
    chroma7 = chroma**7
    rotation = -2 * np.sqrt(chroma7 / (chroma7 + 25.0**7)) * np.sin(angle)
    square = delta_l**2 + delta_c**2 + delta_h**2 + rotation * delta_c * delta_h
    result: Float64 = np.sqrt(np.maximum(square, 0))
    return result


def has_color_seam(colors: UInt8, point: NDArray[np.integer[Any]]) -> bool:
    """Return whether vertices at one point have clearly different colors.

    Args:
        colors: (n, 4) of the vertices.
        point: (n,) number of the point of each vertex.
    """
    count = int(point.max(initial=-1)) + 1
    lowest, highest = np.full((count, 4), 255, np.uint8), np.zeros((count, 4), np.uint8)
    np.minimum.at(lowest, point, colors)
    np.maximum.at(highest, point, colors)
    return bool((highest.astype(np.int16) - lowest > MIN_SEAM_LEVELS).any())
