"""Turn the whole scene, as one rigid body, onto its largest flat side."""

from __future__ import annotations

import numpy as np

from meshhub.builtin_plugins.lay_flat import LayFlatOptions
from meshhub.errors import format_number
from meshhub.model.notes import did, note
from meshhub.model.scene import Scene
from meshhub.toolkit.geometry import soup, turned
from meshhub.toolkit.poses import center_of_mass, choose_side, rotation_to_bed


def run(scene: Scene, options: LayFlatOptions) -> Scene:
    """Turn the scene so that it rests on the side with the most faces on the bed on which it does not tip over.

    Closed sides come before open ones. A model that already lies flat is not turned.

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
    side = choose_side(vertices, faces, center_of_mass(vertices, faces))
    if side is None:
        note("no_flat_side", "the model is flat or a line, and was not turned")
        return scene
    if not side.is_steady:
        note(
            "no_flat_side",
            f"no flat side holds the model upright: it lies on {format_number(side.contact_mm2, 3)} mm², and may roll",
        )
    rotation = rotation_to_bed(side.normal)
    did(
        side_area_mm2=side.contact_mm2,
        turned_deg=float(np.rad2deg(np.arccos(np.clip(-side.normal[2], -1, 1)))),
    )
    return scene if np.allclose(rotation, np.eye(3), rtol=0, atol=1e-9) else turned(scene, rotation)
