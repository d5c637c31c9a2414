"""Turn the whole scene, as one rigid body, onto its largest stable face."""

from __future__ import annotations

import numpy as np

from meshhub.builtin_plugins.lay_flat import LayFlatOptions
from meshhub.errors import format_number
from meshhub.model.notes import did, note
from meshhub.model.scene import Scene
from meshhub.toolkit.geometry import soup, turned
from meshhub.toolkit.poses import center_of_mass, find_sides, rotation_to_bed

MIN_SIDE_RATIO = 0.02
"""Area of a flat side as a share of the area of the hull; on a smaller side, a model is as unstable as a ball."""


def run(scene: Scene, options: LayFlatOptions) -> Scene:
    """Turn the scene so that it rests on the largest side of its convex hull on which it does not tip over.

    Of equal sides, the one that needs the smallest turn wins, so a model that already lies flat is not turned.

    Args:
        scene: Millimeters, Z up.
        options: `lay_flat` False leaves the scene unchanged.
    Returns:
        Turned scene; see `turned` for the position that does not change.
    Raises:
        ValueError: The scene has no faces.
    """
    if not options.lay_flat:
        return scene
    vertices, faces = soup(scene)
    used = vertices[np.unique(faces)]
    sides = find_sides(used, center_of_mass(vertices, faces))
    if sides is None:
        note("no_flat_side", "the model is flat or a line, and was not turned")
        return scene
    normal, area = sides.normals[sides.best], float(sides.areas[sides.best])
    if area < MIN_SIDE_RATIO * sides.hull_area:
        note(
            "no_flat_side",
            f"the largest flat side has only {format_number(area, 3)} mm²: the model is round, and may roll",
        )
    rotation = rotation_to_bed(normal)
    did(side_area_mm2=area, turned_deg=float(np.rad2deg(np.arccos(np.clip(-normal[2], -1, 1)))))
    return scene if np.allclose(rotation, np.eye(3), rtol=0, atol=1e-9) else turned(scene, rotation)
