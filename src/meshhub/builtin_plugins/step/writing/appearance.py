"""The colour of each triangle, as an index into a palette: STEP colours whole faces and bodies."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from meshhub.model.notes import note
from meshhub.model.scene import Color, Mesh, Scene

MOST_COLOURS = 64
"""More vertex colours than this are a picture or a gradient, and would cut every face into crumbs."""

Paint = NDArray[np.int32]


def paint_of(scene: Scene, mesh: Mesh, material: int | None) -> tuple[Paint, list[Color | None]]:
    """The paint of each face (m,), and the palette it points into; None is no colour.

    A material colours more surely than vertices do: vertex colours count where there is no material.
    """
    shown = np.full(len(mesh.faces), -1 if material is None else material, np.int32)
    if mesh.face_material is not None:
        shown = np.where(mesh.face_material < 0, shown, mesh.face_material).astype(np.int32)
    palette: list[Color | None] = [None]
    paint = np.zeros(len(mesh.faces), np.int32)
    places: dict[Color, int] = {}
    for index in np.unique(shown[shown >= 0]).tolist():
        color = scene.materials[index].base_color
        if color not in places:
            places[color] = len(palette)
            palette.append(color)
        paint[shown == index] = places[color]
    bare = shown < 0
    if mesh.colors is not None and bare.any():
        _add_vertex_colours(mesh, bare, paint, palette)
    return paint, palette


def _add_vertex_colours(mesh: Mesh, bare: NDArray[np.bool_], paint: Paint, palette: list[Color | None]) -> None:
    assert mesh.colors is not None
    packed = np.ascontiguousarray(mesh.colors).view(np.uint32)[:, 0][mesh.faces[bare]]
    # the colour that two corners agree on, else the first one's
    chosen = np.where(packed[:, 1] == packed[:, 2], packed[:, 1], packed[:, 0])
    values, index = np.unique(chosen, return_inverse=True)
    if len(values) > MOST_COLOURS:
        note(
            "colours_dropped",
            f"the {len(values)} vertex colours of a part are a gradient, and STEP colours whole faces only: "
            "left out. GLB, PLY and 3MF keep them",
        )
        return
    paint[bare] = index.reshape(-1).astype(np.int32) + len(palette)
    for red, green, blue, opacity in np.ascontiguousarray(values).view(np.uint8).reshape(-1, 4).tolist():
        palette.append((red / 255, green / 255, blue / 255, opacity / 255))
