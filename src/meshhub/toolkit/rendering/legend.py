"""Legends of pictures: colors with labels, and scales of measured values."""

from __future__ import annotations

import numpy as np

from meshhub.model.scene import UInt8
from meshhub.toolkit.rendering.lettering import GLYPH_HEIGHT, blend_text, draw_text, text_width
from meshhub.toolkit.rendering.scales import Scale

MAX_LEGEND_ENTRIES = 12
"""Maximum entries of a legend; the others are counted. A palette has few (filaments), and all are shown. """

MAX_LABEL_LENGTH = 32
"""Maximum characters of one entry of a legend."""

MAX_SCALE_LETTERS = 72
"""Width of the longest scale in letters."""

Entries = list[tuple[str, UInt8]]
"""Entries of a legend: label and (4,) color."""


def ink(background: str) -> tuple[int, int, int]:
    """Return the color of lines and letters on a background."""
    return (225, 228, 232) if background == "dark" else (52, 58, 66)


def shorten(entries: Entries) -> Entries:
    """Return the entries that fit into a legend."""
    if len(entries) > MAX_LEGEND_ENTRIES:
        rest = len(entries) - MAX_LEGEND_ENTRIES + 1
        entries = [*entries[: MAX_LEGEND_ENTRIES - 1], (f"and {rest} more", np.zeros(4, np.uint8))]
    return [(label[:MAX_LABEL_LENGTH], color) for label, color in entries]


def draw_legend(picture: UInt8, entries: Entries, scale: int, background: str) -> int:
    """Draw the legend at the bottom of the picture, and return its height in pixels.

    It takes at most a third of the height, or one line; a picture that is lower than two lines has none.
    """
    height, width = picture.shape[:2]
    line, gap = (GLYPH_HEIGHT + 6) * scale, 8 * scale
    if not entries or height < 2 * line:
        return 0
    rows: list[Entries] = [[]]
    left = gap
    for label, color in entries:
        needed = line + text_width(label, scale) + gap
        if rows[-1] and left + needed > width:
            rows.append([])
            left = gap
        rows[-1].append((label, color))
        left += needed
    rows = rows[: max(1, height // 3 // line)]
    for number, row in enumerate(rows):
        top, left = height - (len(rows) - number) * line, gap
        for label, color in row:
            swatch = picture[top + 3 * scale : top + line - 5 * scale, left : left + line - 6 * scale]
            if color[3] > 0:
                # a frame, because white filaments would not be visible on a light background
                swatch[:] = (*ink(background), 255)
                swatch[1:-1, 1:-1] = color
            write(picture, label, left + line - 2 * scale, top + 4 * scale, scale, background)
            left += line + text_width(label, scale) + gap
    return len(rows) * line + gap // 2


def draw_scale(picture: UInt8, values: Scale, scale: int, background: str) -> int:
    """Draw a scale at the bottom of the picture, and return its height in pixels; 0 where it would take half of it."""
    height, width = picture.shape[:2]
    line, gap = (GLYPH_HEIGHT + 6) * scale, 8 * scale
    length = min(width - 2 * gap, text_width("x" * MAX_SCALE_LETTERS, scale))
    needed = 3 * line + gap // 2
    if 2 * needed > height or length < text_width(values.title, scale):
        return 0
    top = height - 3 * line
    write(picture, values.title, gap, top + 3 * scale, scale, background)
    bar = picture[top + line : top + 2 * line - 2 * scale, gap : gap + length]
    bar[:] = (*ink(background), 255)
    steps = (np.arange(length - 2) + 0.5) / (length - 2) * values.top
    bar[1:-1, 1:-1, :3] = values.colors(steps)
    right = 0
    for value, label in values.labels():
        place = gap + round(value / values.top * length)
        if 0 < value < values.top:
            mark = picture[top + line - 3 * scale : top + 2 * line + scale, place - scale : place + scale]
            mark[:] = (*ink(background), 255)
        half = text_width(label, scale) // 2
        left = min(max(gap, place - half), gap + length - text_width(label, scale))
        if left >= right:
            write(picture, label, left, top + 2 * line + 2 * scale, scale, background)
            right = left + text_width(label, scale)
    return needed


def write(picture: UInt8, text: str, left: int, top: int, scale: int, background: str) -> None:
    """Write a line of text, clipped to the picture."""
    coverage = draw_text(text, scale)
    blend_text(picture[top : top + coverage.shape[0], left : left + coverage.shape[1]], coverage, ink(background))
