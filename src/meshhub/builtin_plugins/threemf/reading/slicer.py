"""Slicer projects: take out the volumes that are not printed, and name in notes everything that is not read.

PrusaSlicer merges the volumes of an object into one mesh and states the ranges of their triangles. BambuStudio and
OrcaSlicer make each volume a component. All of them paint triangles by attributes, see `document.PAINT`.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.threemf.reading.document import Document, Object, Triangles
from meshhub.builtin_plugins.threemf.reading.markup import Attributes, parse
from meshhub.builtin_plugins.threemf.reading.package import Package
from meshhub.errors import UnreadableFile
from meshhub.model.notes import note

_VOLUMES = ("Metadata/Slic3r_PE_model.config", "Metadata/model_settings.config")
_CHANGES = ("Metadata/Prusa_Slicer_custom_gcode_per_print_z.xml", "Metadata/custom_gcode_per_layer.xml")
_SETTINGS = {
    "metadata/slic3r_pe.config": "print settings",
    "metadata/project_settings.config": "print settings",
    "metadata/print_profile.config": "print settings",
    "metadata/slic3r_pe_layer_heights_profile.txt": "layer heights",
    "metadata/layer_heights_profile.txt": "layer heights",
    "metadata/prusa_slicer_layer_config_ranges.xml": "settings of height ranges",
    "metadata/layer_config_ranges.xml": "settings of height ranges",
    "metadata/slic3r_pe_sla_support_points.txt": "support points",
    "metadata/slic3r_pe_sla_drain_holes.txt": "drain holes",
    "metadata/brim_ear_points.txt": "brim ears",
}
"""Files of a project by their folded names, and what they hold."""

_PLAIN_KINDS = frozenset(("", "ModelPart", "normal_part"))
_NEGATIVE = "negative volumes (what they cut away stays)"
_SUPPORT = "support enforcers or blockers"
_KINDS = {
    "NegativeVolume": _NEGATIVE,
    "negative_part": _NEGATIVE,
    "SupportEnforcer": _SUPPORT,
    "support_enforcer": _SUPPORT,
    "SupportBlocker": _SUPPORT,
    "support_blocker": _SUPPORT,
}
"""Volumes that are not printed, by the slicer's name; all others are modifiers."""

_CURA_KINDS = {
    "cura:infill_mesh": "modifiers",
    "cura:cutting_mesh": "modifiers",
    "cura:support_mesh": _SUPPORT,
    "cura:anti_overhang_mesh": _SUPPORT,
}
_PAINT_NOTES = {
    "color": ("color_paint_dropped", "filament colors"),
    "seam": ("seam_paint_dropped", "seam positions"),
    "supports": ("support_paint_dropped", "support enforcers or blockers"),
    "fuzzy skin": ("fuzzy_skin_paint_dropped", "fuzzy skin"),
}
_MAX_LISTED_COUNT = 8
"""Filament numbers that a note lists."""


@dataclass
class _Volume:
    """A volume of an object: a range of triangles, first and last included, or a component by its object's id."""

    span: tuple[int, int] = (-1, -1)
    part: int = -1
    kind: str = ""
    filament: int = 0


@dataclass
class _Settings:
    """What a project states of its objects, by their ids. Filament 0 is the default one."""

    volumes: dict[int, list[_Volume]] = field(default_factory=dict)
    filaments: dict[int, int] = field(default_factory=dict)
    plates: int = 0
    changes: int = 0


class Project:
    """The slicer's project around a model."""

    def __init__(self, package: Package, document: Document) -> None:
        """Read the settings, and take the volumes that are not printed out of the document's objects."""
        self._document = document
        self._files = {name.casefold() for name in package.names}
        self._settings = _Settings()
        self._painted: dict[str, tuple[int, int]] = {}
        self._left_out: set[int] = set()
        for names, read in ((_VOLUMES, _read_volumes), (_CHANGES, _read_changes)):
            for path in filter(None, map(package.find, names)):
                # settings are not a part of 3MF, and broken ones do not make the model unreadable
                with contextlib.suppress(UnreadableFile):
                    read(package.read(path), path, self._settings)
        self._skipped: Counter[str] = Counter()
        for made in document.objects.values():
            if made.cura.get("cura:extruder_nr", "").isdecimal():
                self._settings.filaments[made.id] = int(made.cura["cura:extruder_nr"][:9]) + 1
            self._skipped.update(_take_out(made, self._settings.volumes.get(made.id, [])))

    def leave_out(self, made: Object) -> bool:
        """Return whether Cura does not print an object, which is counted once."""
        kind = next((kind for key, kind in _CURA_KINDS.items() if made.cura.get(key, "").lower() == "true"), None)
        if kind is not None and id(made) not in self._left_out:
            self._left_out.add(id(made))
            self._skipped[kind] += 1
        return kind is not None

    def count_paint(self, mesh: Triangles) -> None:
        """Count the painted triangles of a mesh that is read."""
        for kind, is_painted in mesh.paint.items():
            count = int(np.count_nonzero(is_painted))
            if count:
                triangles, objects = self._painted.get(kind, (0, 0))
                self._painted[kind] = triangles + count, objects + 1

    def note_losses(self) -> None:
        """Add a note for each kind of information that was not read."""
        if self._skipped:
            listed = ", ".join(f"{kind}: {count}" for kind, count in sorted(self._skipped.items()))
            note("modifiers_skipped", f"the slicer's project has volumes that were left out; {listed}")
        for kind, (code, label) in _PAINT_NOTES.items():
            if kind in self._painted:
                triangles, objects = self._painted[kind]
                where = f"{_counted(triangles, 'triangle')} of {_counted(objects, 'object')}"
                note(code, f"{label} painted on {where} in the slicer were not read")
        self._note_filaments()
        if self._settings.plates > 1:
            note(
                "plates_merged",
                f"the project has {self._settings.plates} plates with objects; they became one scene, side by side",
            )
        if self._settings.changes:
            note(
                "layer_changes_dropped",
                f"the project changes color, pauses or runs G-code at {_counted(self._settings.changes, 'layer')}; "
                "this was not read",
            )
        kinds = [kind for name, kind in _SETTINGS.items() if name in self._files]
        if any(name.startswith("cura/") for name in self._files):
            kinds.append("print settings")
        if kinds:
            listed = ", ".join(dict.fromkeys(kinds))
            note(
                "slicer_settings_dropped",
                f"settings of the slicer were not read ({_counted(len(kinds), 'file')}): {listed}",
            )

    def _note_filaments(self) -> None:
        objects = [key for key in self._document.objects if self._settings.filaments.get(key, 0) > 1]
        volumes = [
            volume
            for key in self._document.objects
            for volume in self._settings.volumes.get(key, [])
            if volume.filament > 1 and volume.kind in _PLAIN_KINDS
        ]
        if objects or volumes:
            numbers = {self._settings.filaments[key] for key in objects} | {volume.filament for volume in volumes}
            listed = ", ".join(map(str, sorted(numbers)[:_MAX_LISTED_COUNT]))
            more = ", …" if len(numbers) > _MAX_LISTED_COUNT else ""
            note(
                "filament_assignments_dropped",
                f"{_counted(len(objects), 'object')} and {_counted(len(volumes), 'part')} have filaments other than "
                f"the first ({listed}{more}); the assignments and their colors were not read",
            )


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + "s" * (count != 1)


def _take_out(made: Object, volumes: list[_Volume]) -> list[str]:
    """Take the volumes that are not printed out of an object, and return what each is."""
    taken = [volume for volume in volumes if volume.kind not in _PLAIN_KINDS]
    if not taken:
        return []
    components = {component.object for component in made.components}
    parts = {volume.part for volume in taken}
    made.components = [component for component in made.components if component.object not in parts]
    count = 0 if made.mesh is None else len(made.mesh.triangles)
    changes = np.zeros(count + 1, np.int64)
    kinds = []
    for volume in taken:
        first, last = volume.span
        is_range = 0 <= first <= last and first < count
        if is_range:
            changes[first] += 1
            changes[min(last + 1, count)] -= 1
        if is_range or volume.part in components:
            kinds.append(_KINDS.get(volume.kind, "modifiers"))
    kept = np.cumsum(changes)[:-1] == 0
    if made.mesh is not None and not kept.all():
        _keep(made.mesh, kept)
    return kinds


def _keep(mesh: Triangles, kept: NDArray[np.bool_]) -> None:
    """Keep the triangles (m,) that are marked."""
    mesh.triangles = mesh.triangles[kept]
    mesh.group = None if mesh.group is None else mesh.group[kept]
    mesh.index = None if mesh.index is None else mesh.index[kept]
    mesh.paint = {kind: is_painted[kept] for kind, is_painted in mesh.paint.items()}


def _read_volumes(data: bytes, name: str, settings: _Settings) -> None:
    """Read the objects, volumes and plates of a project."""
    above: list[str] = []
    thing = -1
    volume = _Volume()
    is_counted = False

    def start(_namespace: str, local: str, attributes: Attributes, _at: int) -> None:
        nonlocal thing, volume, is_counted
        owner = above[-1] if above else ""
        above.append(local)
        if local == "object":
            thing = _number(attributes, "id")
        elif local in ("volume", "part"):
            span = _number(attributes, "firstid"), _number(attributes, "lastid")
            part = _number(attributes, "id") if local == "part" else -1
            volume = _Volume(span, part, attributes.get("subtype", ""))
            settings.volumes.setdefault(thing, []).append(volume)
        elif local == "plate":
            is_counted = False
        elif local == "model_instance" and not is_counted:
            is_counted = True
            settings.plates += 1
        elif local == "metadata" and owner == "object" and attributes.get("key") == "extruder":
            settings.filaments[thing] = _number(attributes, "value")
        elif local == "metadata" and owner in ("volume", "part"):
            _take_metadata(volume, attributes)

    def end() -> None:
        above.pop()

    parse(data, f"{name!r}", start=start, end=end)


def _take_metadata(volume: _Volume, attributes: Attributes) -> None:
    """Take the filament or the kind of a volume."""
    key, value = attributes.get("key"), attributes.get("value", "")
    if key == "extruder":
        volume.filament = _number(attributes, "value")
    elif volume.kind in _PLAIN_KINDS and key == "volume_type":
        volume.kind = value
    elif volume.kind in _PLAIN_KINDS and key == "modifier" and value == "1":
        volume.kind = "ParameterModifier"


def _read_changes(data: bytes, name: str, settings: _Settings) -> None:
    """Count the color changes, pauses and pieces of G-code at layers."""

    def start(_namespace: str, local: str, _attributes: Attributes, _at: int) -> None:
        settings.changes += local in ("layer", "code")

    parse(data, f"{name!r}", start=start, end=lambda: None)


def _number(attributes: Attributes, name: str) -> int:
    text = attributes.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1
