"""Turn the filaments of slicers into materials: paint of triangles, then volumes, then objects."""

# why this way: docs/decisions/0023-filaments.md
from __future__ import annotations

import colorsys
from dataclasses import replace
from typing import Literal

import numpy as np

from meshhub.builtin_plugins.threemf.paint_trees import ParsedTrees, parse_codes
from meshhub.builtin_plugins.threemf.reading.model_document import ModelDocument, TriangleMesh
from meshhub.builtin_plugins.threemf.reading.paint import split_triangles
from meshhub.errors import format_count
from meshhub.model.destination import get_destination
from meshhub.model.notes import note
from meshhub.model.scene import Color, Division, Int32, Material, Mesh, Part

PaintMode = Literal["dominant", "split", "auto"]

_GOLDEN_RATIO = 0.618
"""Turns of hue between two filaments without a color, so that any number of them differ."""


_MAX_AUTO_TRIANGLES_COUNT = 500_000
"""Maximum triangles that `auto` makes from paint; inspecting them takes four seconds; ten times as many need 2 GB. """


class FilamentReader:
    """Collects the filaments of meshes and parts, and finally replaces them by materials.

    A file whose parts all have the first filament and no paint gets a material only if its color is known.
    """

    def __init__(self, mode: PaintMode, colors: list[str]) -> None:
        """Read paint according to `mode`, with the colors `RRGGBB` of the filaments; "" for an unknown one."""
        self._mode = mode
        self._colors = colors
        self._trees: dict[str, ParsedTrees] = {}
        self._faces: list[Int32] = []
        self._divisions: list[Division | None] = []
        self._parts: list[int] = []
        self._mixed_count = self._blended_count = self._malformed_count = 0
        self._whole_count = self._split_count = 0

    def read_mesh(self, document: ModelDocument, source: TriangleMesh) -> TriangleMesh:
        """Record the filaments of a mesh, and return it with its triangles split along the paint if that is requested.

        Filaments of the result are 0 for triangles that have the filament of their part.
        """
        filament = np.zeros(len(source.triangles), np.int32) if source.filament is None else source.filament
        codes = source.paint.get("color")
        division = None
        if codes is not None and codes.any():
            trees = self._parse(document)
            roots = np.where(codes > 0, trees.roots[codes], -1)
            self._malformed_count += int(np.count_nonzero((codes > 0) & (roots < 0)))
            is_flat = _has_flat_properties(source)
            if is_flat and self._splits(trees, codes):
                vertices, triangles, parent, painted = split_triangles(source.vertices, source.triangles, roots, trees)
                self._whole_count += len(source.triangles)
                self._split_count += len(triangles)
                division = Division(source.triangles.astype(np.int32), parent.astype(np.int32))
                source = replace(
                    source,
                    vertices=vertices,
                    triangles=triangles,
                    group=None if source.group is None else source.group[parent],
                    index=None if source.index is None else source.index[parent],
                )
                filament = filament[parent]
            else:
                dominant, is_mixed = trees.dominant_filaments()
                painted = dominant[codes]
                mixed_count = int(np.count_nonzero(is_mixed[codes]))
                self._mixed_count += mixed_count
                self._blended_count += 0 if is_flat else mixed_count
            filament = np.where(painted > 0, painted, filament)
        source = replace(source, filament=filament)
        self._faces.append(filament)
        self._divisions.append(division)
        return source

    def record_part(self, filament: int) -> None:
        """Record the filament of the next part."""
        self._parts.append(filament)

    def assign_materials(
        self, meshes: list[Mesh], parts: list[Part], materials: list[Material]
    ) -> tuple[list[Mesh], list[Part]]:
        """Return the meshes and parts with a material for each filament, and add these materials.

        Textures and vertex colors remain on unpainted triangles. Plain materials are dropped, because slicers do not
        print them.
        """
        used = sorted({*self._parts, *(number for faces in self._faces for number in np.unique(faces).tolist())} - {0})
        self._note_paint()
        if not used or (used == [1] and not self._is_known(1)):
            return meshes, parts
        is_textured = np.array([*(material.base_color_image is not None for material in materials), False])
        material_of = np.full(max(used) + 1, -1, np.int32)
        material_of[used] = len(materials) + np.arange(len(used))
        materials += [Material(name=f"Filament {number}", base_color=self._get_color(number)) for number in used]
        keeps_appearance = []
        for index, (mesh, faces, division) in enumerate(zip(meshes, self._faces, self._divisions, strict=True)):
            present = np.full(len(faces), -1, np.int32) if mesh.face_material is None else mesh.face_material
            keeps_appearance.append(mesh.colors is not None or bool(is_textured[present].any()))
            present = present if keeps_appearance[index] else np.full(len(faces), -1, np.int32)
            assigned = np.where(faces > 0, material_of[faces], present)
            meshes[index] = replace(mesh, face_material=assigned if (assigned >= 0).any() else None)
            if mesh.colors is None and mesh.uv is None:
                # other vertices are those of the triangles
                meshes[index] = meshes[index].with_division(division)
        parts = [
            part if keeps_appearance[part.mesh] else replace(part, material=int(material_of[number]))
            for part, number in zip(parts, self._parts, strict=True)
        ]
        self._note_unknown_colors(used)
        return meshes, parts

    def _splits(self, trees: ParsedTrees, codes: Int32) -> bool:
        """Return whether to split the triangles of the next mesh, which have these codes (m,)."""
        if self._mode != "auto":
            return self._mode == "split"
        leaf_count = int(trees.count_leaves()[codes[codes > 0]].sum())
        return self._split_count + leaf_count <= _MAX_AUTO_TRIANGLES_COUNT

    def _parse(self, document: ModelDocument) -> ParsedTrees:
        if document.part not in self._trees:
            self._trees[document.part] = parse_codes(document.paint_codes)
        return self._trees[document.part]

    def _get_color(self, number: int) -> Color:
        if self._is_known(number):
            red, green, blue = (value / 255 for value in bytes.fromhex(self._colors[number - 1]))
        else:
            red, green, blue = colorsys.hsv_to_rgb(number * _GOLDEN_RATIO % 1, 0.8, 0.9)
        return red, green, blue, 1.0

    def _is_known(self, number: int) -> bool:
        """Return whether the project defines the color of a filament."""
        return number <= len(self._colors) and bool(self._colors[number - 1])

    def _note_unknown_colors(self, used: list[int]) -> None:
        unknown = [number for number in used if not self._is_known(number)]
        if unknown:
            note(
                "filament_colors_unknown",
                f"the project does not define the colors of {len(unknown)} of {len(used)} filaments; "
                "distinct ones were chosen",
                count=len(unknown),
                total=len(used),
            )

    def _note_paint(self) -> None:
        if self._mixed_count:
            remedy = "set {threemf_paint=split} to split them"
            if self._blended_count == self._mixed_count:
                remedy = "paint over textures or corner colors is not split"
            note(
                "paint_simplified",
                f"triangles painted with several filaments took the one that covers most of them "
                f"({self._mixed_count:,}); {remedy}",
                options=("threemf_paint",),
                count=int(self._mixed_count),
            )
        # a slicer gets the paint back, and not the pieces
        if self._split_count > self._whole_count and get_destination().max_colors is None:
            note(
                "paint_split",
                f"{format_count(self._whole_count, 'triangle', 'triangles')} split along the paint "
                f"into {self._split_count:,}; "
                "set {threemf_paint=dominant} to keep them whole",
                options=("threemf_paint",),
                count=int(self._whole_count),
                result=int(self._split_count),
            )
        if self._malformed_count:
            note(
                "bad_paint",
                f"malformed paint was not read (triangles: {self._malformed_count:,})",
                count=int(self._malformed_count),
            )


def _has_flat_properties(source: TriangleMesh) -> bool:
    """Return whether all triangles have equal properties at their corners, so that their pieces can share them."""
    return source.index is None or bool((source.index == source.index[:, :1]).all())
