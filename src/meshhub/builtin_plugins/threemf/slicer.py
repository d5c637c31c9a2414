"""What slicers keep beside the model: which of its volumes are modifiers and not printed.

PrusaSlicer merges the volumes of an object into one mesh and tells the ranges of their triangles;
Bambu Studio and OrcaSlicer make each a component and tell its kind.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field

import numpy as np

from meshhub.builtin_plugins.threemf.document import Document, Object
from meshhub.builtin_plugins.threemf.markup import Attributes, parse
from meshhub.builtin_plugins.threemf.package import Package
from meshhub.errors import UnreadableFile
from meshhub.notes import note

_SETTINGS = ("Metadata/Slic3r_PE_model.config", "Metadata/model_settings.config")


@dataclass
class _Found:
    """Ranges of triangles by object, first and last included, and components by their object's and their own id."""

    ranges: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    components: set[tuple[int, int]] = field(default_factory=set)


def leave_out_modifiers(package: Package, document: Document) -> None:
    """Take the volumes that are not printed out of a model's objects, with a note."""
    found = _Found()
    for name in _SETTINGS:
        settings = package.find(name)
        if settings is not None:
            # settings are no part of 3MF, and broken ones no reason to refuse the model
            with contextlib.suppress(UnreadableFile):
                _read(package.read(settings), settings, found)
    taken = [_taken(made, found) for made in document.objects.values()]
    if any(taken):
        note("modifiers_skipped", "modifiers, negative volumes and blockers of the slicer's project were left out")


def _taken(made: Object, found: _Found) -> bool:
    """Whether something was taken out of an object."""
    before = len(made.components)
    made.components = [one for one in made.components if (made.id, one.object) not in found.components]
    ranges = found.ranges.get(made.id)
    if made.mesh is None or not ranges:
        return len(made.components) < before
    mesh = made.mesh
    count = len(mesh.triangles)
    changes = np.zeros(count + 1, np.int64)
    for first, last in ranges:
        changes[min(first, count)] += 1
        changes[min(max(last + 1, first), count)] -= 1
    kept = np.cumsum(changes)[:-1] == 0
    mesh.triangles = mesh.triangles[kept]
    mesh.group = None if mesh.group is None else mesh.group[kept]
    mesh.index = None if mesh.index is None else mesh.index[kept]
    return not kept.all()


def _read(data: bytes, name: str, found: _Found) -> None:
    thing = -1
    span: tuple[int, int] | None = None

    def start(_namespace: str, local: str, attributes: Attributes, _at: int) -> None:
        nonlocal thing, span
        if local == "object":
            thing, span = _number(attributes, "id"), None
        elif local == "volume":
            span = _number(attributes, "firstid"), _number(attributes, "lastid")
        elif local == "part" and attributes.get("subtype", "normal_part") != "normal_part":
            found.components.add((thing, _number(attributes, "id")))
        elif local == "metadata" and span is not None and min(span) >= 0:
            key, value = attributes.get("key"), attributes.get("value")
            if (key == "volume_type" and value != "ModelPart") or (key == "modifier" and value == "1"):
                found.ranges.setdefault(thing, []).append(span)

    parse(data, f"{name!r}", start=start, end=lambda: None)


def _number(attributes: Attributes, name: str) -> int:
    text = attributes.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1
