"""Color conversion between sRGB and linear light (IEC 61966-2-1), and color products."""

from __future__ import annotations

import numpy as np

from meshhub.model.scene import Float64, UInt8


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
