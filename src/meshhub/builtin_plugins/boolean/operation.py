"""Combine the solids of all parts to one."""

from __future__ import annotations

from meshhub.builtin_plugins.boolean import BooleanOptions
from meshhub.errors import InvalidOption
from meshhub.model.notes import did, note
from meshhub.model.scene import Scene
from meshhub.toolkit.combining import combine_parts
from meshhub.toolkit.geometry import signed_volume
from meshhub.toolkit.validity import find_damage, note_damage


def run(scene: Scene, options: BooleanOptions) -> Scene:
    """Combine all parts to a union, a difference or an intersection.

    Args:
        scene: Millimeters, Z up.
        options: `boolean` None leaves the scene unchanged.
    Returns:
        Scene of one part without a name, with the materials of the faces.
    Raises:
        ConversionFailed: A part is not a solid.
        InvalidOption: Nothing would be left.
    """
    if options.boolean is None:
        return scene
    result, volumes = combine_parts(scene, options.boolean, "repair")
    mesh = result.meshes[0]
    if len(mesh.faces) == 0:
        raise InvalidOption(
            f"option '{{boolean}}' {options.boolean} would leave nothing of the model; move its parts",
            options=("boolean",),
        )
    if len(volumes) == 1:
        note(
            "one_part",
            "the model has one part, which has nothing to be combined with; use {split_parts} on it before",
            options=("split_parts",),
        )
    else:
        note("parts_merged", f"{len(volumes):,} parts are one part now, without names", count=len(volumes))
    note_damage("the combined solid", find_damage(mesh))
    did(volume_before_mm3=volumes[0], volume_after_mm3=signed_volume(mesh.vertices, mesh.faces))
    return result
