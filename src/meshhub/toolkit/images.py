"""Media types of images, and their pixels."""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from meshhub.model.scene import UInt8

MAX_DECODED_SIDE = 4096
"""Pixels; larger images are reduced, because a side of 16 384 pixels would take a gigabyte."""

_DECODED_FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "TGA")
"""Formats of Pillow that model files use."""

_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"BM", "image/bmp"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
)


def detect_media_type(data: bytes) -> str:
    """Return the media type of an image from its first bytes; TGA has no signature, so it is the fallback."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((media_type for signature, media_type in _SIGNATURES if data.startswith(signature)), "image/x-tga")


def decode_image(data: bytes) -> UInt8 | None:
    """Decode an image with Pillow.

    Args:
        data: Content of an image file.
    Returns:
        (height, width, 4) sRGB pixels with alpha, at most MAX_DECODED_SIDE on a side; None if Pillow is not installed
        or cannot decode the image, or if the image is so large that decoding would take gigabytes.
    """
    try:
        from PIL import Image
    except ImportError:
        return None
    import numpy as np

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(data), formats=_DECODED_FORMATS) as image:
                image.draft("RGB", (MAX_DECODED_SIDE, MAX_DECODED_SIDE))
                image.thumbnail((MAX_DECODED_SIDE, MAX_DECODED_SIDE), Image.Resampling.BOX)
                return np.asarray(image.convert("RGBA"))
    except Exception:
        # decoders raise errors of many types
        return None
