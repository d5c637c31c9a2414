"""Write the project files of PrusaSlicer: filaments of the objects, and colors of the filaments."""

from __future__ import annotations

from meshhub.builtin_plugins.threemf.writing.appearance import Chunk
from meshhub.builtin_plugins.threemf.writing.filaments import FilamentWriter
from meshhub.builtin_plugins.threemf.writing.object_tree import ObjectTree
from meshhub.builtin_plugins.threemf.writing.xml_text import format_attribute

_NOZZLE_MM = 0.4
"""Millimeters; PrusaSlicer counts extruders by their nozzles, and 0.4 is the default of its printers."""


def format_entries(tree: ObjectTree, filaments: FilamentWriter) -> list[tuple[str, list[Chunk]]]:
    """Return the project files. Each mesh object has one volume."""
    rows = []
    for number, item in enumerate(tree.meshes, 1):
        name = item.name or filaments.title or f"Object {number}"
        painted = filaments.objects[item]
        rows.append(
            f'<object id="{item.id}"><metadata type="object" key="extruder" value="{painted.filament}"/>\n'
            f'<volume firstid="0" lastid="{painted.count - 1}">'
            f'<metadata type="volume" key="name"{format_attribute("value", name)}/>'
            '<metadata type="volume" key="volume_type" value="ModelPart"/></volume></object>\n'
        )
    model = '<?xml version="1.0" encoding="UTF-8"?>\n<config>\n' + "".join(rows) + "</config>\n"
    colors = filaments.colors()
    settings = "".join(
        f"; {name} = {value}\n"
        for name, value in (
            ("extruder_colour", ";".join(colors)),
            ("filament_colour", ";".join(colors)),
            ("filament_type", ";".join(filaments.types())),
            ("filament_settings_id", ";".join(map(_quote, filaments.names()))),
            ("nozzle_diameter", ",".join([f"{_NOZZLE_MM}"] * len(colors))),
        )
    )
    return [
        ("Metadata/Slic3r_PE_model.config", [model.encode()]),
        ("Metadata/Slic3r_PE.config", [settings.encode()]),
    ]


def _quote(name: str) -> str:
    """Return a text as PrusaSlicer writes it in a list; line breaks would end the setting."""
    text = " ".join(name.split()).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
