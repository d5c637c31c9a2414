"""Raise or engrave a text on the largest flat region of a side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import manifold3d
import numpy as np

from meshhub.builtin_plugins.emboss import MIN_SIZE_MM, EmbossOptions
from meshhub.builtin_plugins.emboss.lettering import draw_text
from meshhub.builtin_plugins.emboss.regions import Places, Region, find_regions
from meshhub.errors import InvalidOption, format_number, quote
from meshhub.model.notes import did, note
from meshhub.model.scene import Float64, Mesh, Part, Scene
from meshhub.toolkit.combining import note_overlaps
from meshhub.toolkit.reshaping import (
    name_of,
    reshaped_in_place,
    solid_surface,
    subtracted,
    to_manifold,
    unite_overlaps,
    united,
)
from meshhub.toolkit.validity import find_damage, note_damage

MARGIN_RATIO = 0.2
"""Distance from the text to the border of its region, per height of capital letters."""

SHRINK_RATIO = 0.95
"""Ratio of each size that is tried to the size before it."""

OVERLAP_MM = 0.05
"""Millimeters by which the letters reach into the model, or out of it when engraved: surfaces never coincide."""

FLOOR_RATIO = 1.25
"""Minimum thickness of the wall that a text is engraved into, per depth of the text."""

MAX_PROBES = 64
"""Places of the text where the thickness of the material is measured."""


class _Placement(NamedTuple):
    """Text in its place.

    letters: its outline, in the coordinates of the region
    frame:   (4, 4) matrix from these coordinates
    size:    height of capitals, mm
    """

    letters: manifold3d.CrossSection
    frame: Float64
    size: float


def run(scene: Scene, options: EmbossOptions) -> Scene:
    """Put the text on the largest flat region that faces the side, of the part that has it, in all its instances.

    Args:
        scene: Millimeters, Z up.
        options: `emboss_text` None leaves the scene unchanged.
    Returns:
        Scene with the text, whose faces look like the nearest faces of the mesh.
    Raises:
        ConversionFailed: A part is not a closed solid.
        InvalidOption: The text does not fit, is deeper than the model, or has characters that the font lacks.
    """
    if options.emboss_text is None:
        return scene
    search = _Search(options.emboss_side)
    reshaped_in_place(scene, search.change)
    if search.area == 0:
        raise InvalidOption(
            f"the {options.emboss_side} of the model has no flat region; choose another {{emboss_side}}",
            options=("emboss_side",),
        )
    engraver = _Engraver(options, draw_text(options.emboss_text.strip()), search.best)
    result = reshaped_in_place(scene, engraver.change)
    did(text_size_mm=engraver.size)
    return result


@dataclass
class _Search:
    """Search for the mesh with the largest region; meshes are numbered in the order of the calls."""

    side: str
    number: int = -1
    best: int = -1
    area: float = 0.0

    def change(self, mesh: Mesh, parts: list[Part]) -> Mesh:
        """Return the mesh itself."""
        self.number += 1
        regions = find_regions(*solid_surface(unite_overlaps(mesh, parts), parts), self.side)
        if regions and regions[0].area > self.area * (1 + 1e-6):
            self.area, self.best = regions[0].area, self.number
        return mesh


@dataclass
class _Engraver:
    """Text on the mesh with a number."""

    options: EmbossOptions
    text: manifold3d.CrossSection
    chosen: int
    number: int = -1
    size: float = 0.0

    def change(self, mesh: Mesh, parts: list[Part]) -> Mesh:
        """Return the mesh with the text, or the mesh itself if it is not the chosen one."""
        self.number += 1
        if self.number != self.chosen:
            return mesh
        original, mesh = mesh, unite_overlaps(mesh, parts)
        if mesh is not original:
            note_overlaps(name_of(mesh, parts))
        solid = to_manifold(mesh, parts)
        regions = find_regions(*solid_surface(mesh, parts), self.options.emboss_side)
        place = self._choose_place(solid, regions)
        if place is None or place.size < MIN_SIZE_MM:
            raise self._describe_misfit(place, name_of(mesh, parts))
        self.size = place.size
        if place.size < self.options.emboss_size_mm * (1 - 1e-9):
            note(
                "text_shrunk",
                f"the text has capitals of {format_number(place.size, 3)} mm instead of "
                f"{format_number(self.options.emboss_size_mm, 3)} mm, to fit; shorten {{emboss_text}}",
                options=("emboss_text",),
                size=float(place.size),
                requested=self.options.emboss_size_mm,
            )
        height = self.options.emboss_height_mm
        low, high = (-OVERLAP_MM, height) if height > 0 else (height, OVERLAP_MM)
        tool = manifold3d.Manifold.extrude(place.letters, high - low).translate((0, 0, low)).transform(place.frame[:3])
        if height < 0:
            self._check_depth(solid, place)
        result = (united if height > 0 else subtracted)(mesh, solid, [tool])
        note_damage(name_of(mesh, parts), find_damage(result))
        return result

    def _choose_place(self, solid: manifold3d.Manifold, regions: list[Region]) -> _Placement | None:
        """Return the place in the largest visible region where the text fits at its size, else where it is largest."""
        best: _Placement | None = None
        for region in regions:
            place = self._fit(region)
            if place is None or not _is_visible(solid, place):
                continue
            if best is None or place.size > best.size:
                best = place
            if best.size == self.options.emboss_size_mm:
                break
        return best

    def _fit(self, region: Region) -> _Placement | None:
        """Return the largest text up to its size in a region, along the longer side if it does not fit upright."""
        left, low, right, high = self.text.bounds()
        wide, tall = right - left, high - low
        size = self.options.emboss_size_mm
        smallest = MIN_SIZE_MM / 10
        while size >= smallest:
            inner = region.outline.offset(-MARGIN_RATIO * size, manifold3d.JoinType.Miter)
            if not inner.is_empty():
                places = Places(inner)
                for turn, (width, height) in ((0, (wide, tall)), (90, (tall, wide))):
                    center = places.find(width * size, height * size)
                    if center is not None:
                        letters = self.text.scale((size, size)).rotate(turn).translate(center.tolist())
                        if (letters - inner).is_empty():
                            return _Placement(letters, region.frame, size)
            size *= SHRINK_RATIO
        return None

    def _describe_misfit(self, place: _Placement | None, name: str) -> InvalidOption:
        side = self.options.emboss_side
        what = f"text {quote(self.options.emboss_text)} does not fit on the {side} of {name}"
        if place is None:
            return InvalidOption(
                f"{what} at any size; choose another '{{emboss_side}}'", options=("emboss_text", "emboss_side")
            )
        return InvalidOption(
            f"{what}: only capitals of {format_number(place.size, 2)} mm would, which are too small to print; "
            "shorten '{emboss_text}'",
            options=("emboss_text", "emboss_side"),
        )

    def _check_depth(self, solid: manifold3d.Manifold, place: _Placement) -> None:
        """Raise InvalidOption if the material below the text is too thin to engrave it."""
        depth = -self.options.emboss_height_mm
        corners = np.concatenate(place.letters.to_polygons())
        corners = corners[:: len(corners) // MAX_PROBES + 1]
        outward, reach = place.frame[:3, 2], FLOOR_RATIO * depth
        starts = corners @ place.frame[:3, :2].T + place.frame[:3, 3] - OVERLAP_MM * outward
        thickness = [
            float(np.linalg.norm(hits[0].position - start)) + OVERLAP_MM
            for start in starts
            if (hits := solid.ray_cast(start.tolist(), (start - reach * outward).tolist()))
        ]
        if thickness:
            raise InvalidOption(
                f"option '{{emboss_height_mm}}' {format_number(-depth)} is too deep: the wall is "
                f"{format_number(min(thickness), 3)} mm thick there; use at most four fifths of it",
                options=("emboss_height_mm",),
            )


def _is_visible(solid: manifold3d.Manifold, place: _Placement) -> bool:
    """Return whether no part of the model, such as the roof of a cavity, is in front of the middle of a text."""
    left, low, right, high = place.letters.bounds()
    middle = place.frame @ [(left + right) / 2, (low + high) / 2, OVERLAP_MM, 1]
    box = np.array(solid.bounding_box()).reshape(2, 3)
    far = middle[:3] + np.linalg.norm(box[1] - box[0]) * place.frame[:3, 2]
    return not solid.ray_cast(middle[:3].tolist(), far.tolist())
