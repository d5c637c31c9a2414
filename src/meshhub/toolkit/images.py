"""Media types of images, their pixels, and their conversion to PNG."""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from meshhub.model.scene import Image, UInt8

MAX_DECODED_SIDE = 4096
"""Maximum pixels; larger images are reduced, because a side of 16 384 pixels would take a gigabyte."""

MAX_SMALL_BYTES = 256 << 10
"""Bytes up to which an image is not shrunk."""

SHRUNK_QUALITY = 85
"""Quality of JPEG images that are shrunk; Pillow advises at most 95."""

_DISPLAYED = ("image/png", "image/jpeg", "image/webp")
"""Media types that glTF and browsers show."""

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
        (height, width, 4) sRGB pixels with alpha, at most MAX_DECODED_SIDE on a side; None if Pillow is not installed,
        cannot decode the image, or would need gigabytes for it.
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


def shrink_image(image: Image, max_side: int) -> Image:
    """Return a small image for display, as JPEG, or as PNG if it is transparent.

    Args:
        image: Encoded image.
        max_side: Pixels of the longer side.
    Returns:
        The image itself if it is small, or if Pillow is not installed or cannot decode it.
    """
    if len(image.data) <= MAX_SMALL_BYTES and image.media_type in _DISPLAYED:
        return image
    pixels = decode_image(image.data)
    if pixels is None:
        return image
    from dataclasses import replace

    from PIL import Image as Pillow

    is_opaque = bool((pixels[..., 3] == 255).all())
    picture = Pillow.fromarray(pixels).convert("RGB" if is_opaque else "RGBA")
    picture.thumbnail((max_side, max_side), Pillow.Resampling.BOX)
    content = io.BytesIO()
    picture.save(content, "JPEG" if is_opaque else "PNG", quality=SHRUNK_QUALITY)
    return replace(image, data=content.getvalue(), media_type="image/jpeg" if is_opaque else "image/png")


def convert_to_png(data: bytes) -> bytes | None:
    """Return an image as PNG, for formats that support few types of images; None if `decode_image` returns None."""
    from meshhub.toolkit.png import encode_png

    pixels = decode_image(data)
    return None if pixels is None else encode_png(pixels)
