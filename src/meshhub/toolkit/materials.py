"""Notes on the properties of materials that formats cannot keep."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from meshhub.model.notes import note
from meshhub.model.scene import Material


def note_lost_finish(label: str, materials: Sequence[Material], kept: Collection[str] = ()) -> None:
    """Add a note for properties beside colors and images that materials have and a format does not keep.

    Args:
        label: Name of the format.
        materials: Materials in use.
        kept: Properties that the format keeps, or whose loss the writer notes itself: of "names", "metal", "emission",
            "cutoff", "sides" and "unlit".
    """
    properties = {
        "names": ("names", [bool(material.name) for material in materials]),
        # glTF materials that state neither have metallic 1 and roughness 1
        "metal": (
            "metal and roughness",
            [material.roughness < 1 or 0 < material.metallic < 1 for material in materials],
        ),
        "emission": ("emissive colors", [any(material.emissive) for material in materials]),
        "cutoff": ("alpha cutoff", [material.alpha_mode == "mask" for material in materials]),
        "sides": ("double-sided faces", [material.double_sided for material in materials]),
        "unlit": ("unlit display", [material.unlit for material in materials]),
    }
    lost = [name for key, (name, has_property) in properties.items() if key not in kept and any(has_property)]
    if lost:
        note("material_properties_dropped", f"{label} materials have no {' or '.join(lost)}; these were left out")
