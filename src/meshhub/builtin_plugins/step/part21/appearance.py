"""Colors of the triangles of a mesh; STEP colors whole faces and bodies."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from meshhub.errors import format_count
from meshhub.model.notes import note
from meshhub.model.scene import Color, Mesh, Scene

MAX_VERTEX_COLORS_COUNT = 64
"""Colors of a part; more are a picture or a gradient, and would split every face into single triangles."""

_WHITE = 255
"""Component of a vertex color that leaves a material as it is."""

Paint = NDArray[np.int32]
"""(m,) palette index of each triangle."""


def collect_paint(scene: Scene, mesh: Mesh, material: int | None) -> tuple[Paint, list[Color | None]]:
    """Return the color of each triangle of a mesh.

    A material takes precedence over vertex colors, which count only for triangles without a material.

    Args:
        scene: Owner of the materials.
        mesh: A mesh of the scene, with or without face materials and vertex colors.
        material: Material of triangles that have none of their own.
    Returns:
        (m,) palette indices, and the palette; index 0 is None, which means no color.
    """
    shown = np.full(len(mesh.faces), -1 if material is None else material, np.int32)
    if mesh.face_material is not None:
        shown = np.where(mesh.face_material < 0, shown, mesh.face_material).astype(np.int32)
    palette: list[Color | None] = [None]
    paint = np.zeros(len(mesh.faces), np.int32)
    index_of_color: dict[Color, int] = {}
    for number in np.unique(shown[shown >= 0]).tolist():
        color = scene.materials[number].base_color
        if color not in index_of_color:
            index_of_color[color] = len(palette)
            palette.append(color)
        paint[shown == number] = index_of_color[color]
    bare = shown < 0
    if mesh.colors is not None:
        _note_hidden_colors(mesh, ~bare)
        if bare.any():
            _add_vertex_colors(mesh, bare, paint, palette)
    return paint, palette


def _note_hidden_colors(mesh: Mesh, has_material: NDArray[np.bool_]) -> None:
    """Report the triangles with a material whose vertex colors, which tint it, are lost."""
    assert mesh.colors is not None
    count = int((mesh.colors[mesh.faces[has_material]] != _WHITE).any(axis=(1, 2)).sum())
    if count:
        note(
            "colors_dropped",
            f"the vertex colors of {format_count(count, 'triangle', 'triangles')} were left out: "
            "their materials color the STEP faces; "
            "use GLB, PLY or 3MF",
        )


def _add_vertex_colors(mesh: Mesh, bare: NDArray[np.bool_], paint: Paint, palette: list[Color | None]) -> None:
    """Color the triangles without a material by their vertices, in place; leave them if there are too many colors."""
    assert mesh.colors is not None
    packed = np.ascontiguousarray(mesh.colors).view(np.uint32)[:, 0][mesh.faces[bare]]
    blended = int((packed != packed[:, :1]).any(axis=1).sum())
    # the color of two corners, otherwise that of the first
    chosen = np.where(packed[:, 1] == packed[:, 2], packed[:, 1], packed[:, 0])
    values, index = np.unique(chosen, return_inverse=True)
    if len(values) > MAX_VERTEX_COLORS_COUNT:
        note(
            "colors_dropped",
            f"{len(values)} vertex colors of a part were left out: STEP colors whole faces, not gradients; "
            "use GLB, PLY or 3MF",
        )
        return
    if blended:
        note(
            "colors_dropped",
            f"kept one color of {format_count(blended, 'triangle', 'triangles')} with other colors at each corner: "
            "STEP colors whole faces; "
            "use GLB, PLY or 3MF",
        )
    paint[bare] = index.reshape(-1).astype(np.int32) + len(palette)
    for red, green, blue, opacity in np.ascontiguousarray(values).view(np.uint8).reshape(-1, 4).tolist():
        palette.append((red / 255, green / 255, blue / 255, opacity / 255))
