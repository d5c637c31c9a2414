"""Write the project files of BambuStudio and OrcaSlicer: filaments of objects and parts, plates, and settings."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from meshhub.builtin_plugins.threemf.printers import ProjectPrinter
from meshhub.builtin_plugins.threemf.writing.appearance import Chunk
from meshhub.builtin_plugins.threemf.writing.filaments import FilamentWriter
from meshhub.builtin_plugins.threemf.writing.object_tree import GroupObject, MeshObject, ObjectTree
from meshhub.builtin_plugins.threemf.writing.project_settings import format_settings
from meshhub.builtin_plugins.threemf.writing.xml_text import format_attribute
from meshhub.model.notes import note
from meshhub.model.scene import Float64, Scene
from meshhub.toolkit.geometry import bounds


def place_on_plate(tree: ObjectTree, scene: Scene, printer: ProjectPrinter) -> None:
    """Move all build items so that those of the first plate are in its middle, unless they are on it.

    The slicers arrange models of unknown origin, but not projects, and most models have their origin in the middle.
    """
    first = min(item.plate for item in tree.items)
    box = bounds(replace(scene, parts=tuple(part for part in scene.parts if part.plate == first)))[:, :2]
    plate = np.array(printer.plate_mm)
    if box.min() >= 0 and bool((box[1] <= plate).all()):
        return
    shift = np.eye(4)
    shift[:2, 3] = plate / 2 - box.mean(axis=0)
    tree.items = [item._replace(matrix=shift @ item.matrix) for item in tree.items]
    note("moved_to_plate", "the model was off the plate and moved to its middle; heights are unchanged")


def format_entries(
    tree: ObjectTree, filaments: FilamentWriter, printer: ProjectPrinter
) -> list[tuple[str, list[Chunk]]]:
    """Return the project files: every object of a build item with its parts, on its plate, and the printer."""
    model = [
        '<?xml version="1.0" encoding="UTF-8"?>\n<config>\n',
        *_format_objects(tree, filaments),
        *_format_plates(tree, filaments.dialect.thumbnail),
        "</config>\n",
    ]
    version = filaments.dialect.application.partition("-")[2]
    settings = format_settings(printer.presets, filaments.colors(), filaments.types(), version)
    return [
        ("Metadata/model_settings.config", ["".join(model).encode()]),
        ("Metadata/project_settings.config", [json.dumps(settings, indent=1).encode()]),
    ]


def _format_objects(tree: ObjectTree, filaments: FilamentWriter) -> Iterator[str]:
    """Yield an element for each object that the build section places; the slicers list objects by their names."""
    for number, item in enumerate({id(item): item for item, _, _ in tree.items}.values(), 1):
        name = item.name or filaments.title or f"Object {number}"
        parts = list(_find_parts(item, np.eye(4)))
        areas: defaultdict[int, float] = defaultdict(float)
        for part, _ in parts:
            areas[filaments.objects[part].filament] += filaments.objects[part].area
        yield (
            f'<object id="{item.id}">\n{_format_metadata("name", name)}'
            f"{_format_metadata('extruder', str(max(areas, key=areas.__getitem__)))}"
        )
        for part, matrix in parts:
            numbers = " ".join(repr(number).removesuffix(".0") for number in (matrix + 0.0).ravel().tolist())
            yield (
                f'<part id="{part.id}" subtype="normal_part">\n{_format_metadata("name", part.name or name)}'
                f"{_format_metadata('matrix', numbers)}"
                f"{_format_metadata('extruder', str(filaments.objects[part].filament))}</part>\n"
            )
        yield "</object>\n"


def _find_parts(item: MeshObject | GroupObject, matrix: Float64) -> Iterator[tuple[MeshObject, Float64]]:
    """Yield the mesh objects below an object, which slicers read as its parts, with their matrices."""
    if isinstance(item, MeshObject):
        yield item, matrix
        return
    for member, inner in item.members:
        yield from _find_parts(member, matrix @ inner)


def _format_plates(tree: ObjectTree, thumbnail: str) -> Iterator[str]:
    """Yield the elements of the plates with their build items."""
    instances: defaultdict[int, list[str]] = defaultdict(list)
    counts: Counter[int] = Counter()
    for number, (item, _, plate) in enumerate(tree.items, 1):
        instances[plate].append(
            f"<model_instance>\n{_format_metadata('object_id', str(item.id))}"
            f"{_format_metadata('instance_id', str(counts[item.id]))}"
            f"{_format_metadata('identify_id', str(number))}</model_instance>\n"
        )
        counts[item.id] += 1
    for number, plate in enumerate(sorted(instances), 1):
        # the picture shows the whole scene
        picture = _format_metadata("thumbnail_file", thumbnail) if number == 1 else ""
        yield (
            f"<plate>\n{_format_metadata('plater_id', str(number))}{_format_metadata('plater_name', '')}"
            f"{_format_metadata('locked', 'false')}{picture}"
            f"{''.join(instances[plate])}</plate>\n"
        )


def _format_metadata(key: str, value: str) -> str:
    text = format_attribute("value", value) or ' value=""'
    return f'<metadata key="{key}"{text}/>\n'
