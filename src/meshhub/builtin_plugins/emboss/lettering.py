"""Outlines of a line of text in the font Lato Bold."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import manifold3d
import numpy as np
from fontTools.pens.basePen import BasePen
from fontTools.ttLib import TTFont

from meshhub.errors import InvalidOption, quote
from meshhub.model.scene import Float64

CURVE_SEGMENTS = 6
"""Straight segments of each curve of an outline."""

SHARES = np.linspace(0, 1, CURVE_SEGMENTS + 1)[1:, None]
"""(CURVE_SEGMENTS, 1) parameters of the ends of the segments."""


class _Outlines(BasePen):  # type: ignore[misc]
    """Pen of fontTools that collects the contours of glyphs as polygons."""

    def __init__(self, glyphs: Any) -> None:
        super().__init__(glyphs)
        self.x = 0.0
        self.contours: list[list[Float64]] = []

    def _moveTo(self, pt: tuple[float, float]) -> None:  # noqa: N802 - name of fontTools
        self.contours.append([self._place(pt)[None]])

    def _lineTo(self, pt: tuple[float, float]) -> None:  # noqa: N802 - name of fontTools
        self.contours[-1].append(self._place(pt)[None])

    def _qCurveToOne(self, pt1: tuple[float, float], pt2: tuple[float, float]) -> None:  # noqa: N802
        start, middle, end = self.contours[-1][-1][-1], self._place(pt1), self._place(pt2)
        self.contours[-1].append((1 - SHARES) ** 2 * start + 2 * SHARES * (1 - SHARES) * middle + SHARES**2 * end)

    def _place(self, point: tuple[float, float]) -> Float64:
        return np.array(point, np.float64) + [self.x, 0.0]


def draw_text(text: str) -> manifold3d.CrossSection:
    """Return a line of text whose capitals are 1 high, with the center of its box at the origin.

    Raises:
        InvalidOption: The font lacks a character, or none is visible.
    """
    with TTFont(files("font_lato") / "files" / "Lato-Bold.ttf", lazy=True) as font:
        names = font.getBestCmap()
        missing = "".join(dict.fromkeys(character for character in text if ord(character) not in names))
        if missing:
            raise InvalidOption(
                f"option '{{emboss_text}}' has characters that the font lacks: {quote(missing)}; remove them",
                options=("emboss_text",),
            )
        glyphs = font.getGlyphSet()
        pen = _Outlines(glyphs)
        for character in text:
            glyph = glyphs[names[ord(character)]]
            glyph.draw(pen)
            pen.x += glyph.width
        scale = 1 / font["OS/2"].sCapHeight
    polygons = [np.concatenate(contour) * scale for contour in pen.contours]
    outline = manifold3d.CrossSection(polygons, manifold3d.FillRule.NonZero)
    if outline.is_empty():
        raise InvalidOption("option '{emboss_text}' has no visible character", options=("emboss_text",))
    left, low, right, high = outline.bounds()
    return outline.translate((-(left + right) / 2, -(low + high) / 2))
