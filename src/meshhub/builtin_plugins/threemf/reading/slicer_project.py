"""Read slicer projects: filaments and their colors, and the volumes that are not printed.

Notes report the data that is not read. PrusaSlicer merges the volumes of an object into one mesh and states the ranges
of their triangles. BambuStudio and OrcaSlicer make each volume a component. All of them paint triangles with
attributes, see `model_document.PAINT`.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.threemf.reading.filament_settings import MAX_FILAMENT, PRUSA_SETTINGS, read_colors
from meshhub.builtin_plugins.threemf.reading.model_document import (
    ModelDocument,
    ModelObject,
    ObjectPlacement,
    TriangleMesh,
)
from meshhub.builtin_plugins.threemf.reading.package import Package
from meshhub.builtin_plugins.threemf.reading.project_files import read_project_file
from meshhub.errors import format_count
from meshhub.model.notes import note
from meshhub.toolkit.safe_xml import Attributes, as_utf8, parse_xml

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
"""Content of the files of a project, by casefolded name."""

_PLAIN_KINDS = frozenset(("", "ModelPart", "normal_part"))
_NEGATIVE = "negative volumes (the cut was not applied)"
_SUPPORT = "support enforcers or blockers"
_KINDS = {
    "NegativeVolume": _NEGATIVE,
    "negative_part": _NEGATIVE,
    "SupportEnforcer": _SUPPORT,
    "support_enforcer": _SUPPORT,
    "SupportBlocker": _SUPPORT,
    "support_blocker": _SUPPORT,
}
"""Kinds of volumes that are not printed, by the name in the slicer; all others are modifiers."""

_CURA_KINDS = {
    "cura:infill_mesh": "modifiers",
    "cura:cutting_mesh": "modifiers",
    "cura:support_mesh": _SUPPORT,
    "cura:anti_overhang_mesh": _SUPPORT,
}
_PAINT_NOTES = {
    "seam": ("seam_paint_dropped", "seam positions"),
    "supports": ("support_paint_dropped", "support enforcers or blockers"),
    "fuzzy skin": ("fuzzy_skin_paint_dropped", "fuzzy skin"),
}
_MAX_DIGITS_COUNT = 9
"""Maximum digits of a number in the settings; more would not fit into 32 bits."""


@dataclass
class _Volume:
    """Volume of an object.

    span:     first and last triangle, or -1
    part:     id of the object of a component, or -1
    filament: filament from 1; 0 for that of the object
    """

    span: tuple[int, int] = (-1, -1)
    part: int = -1
    kind: str = ""
    filament: int = 0


@dataclass
class _Settings:
    """Settings of the objects of a project, by object id.

    filaments: filament of an object from 1
    plates:    plates with objects
    plate_of:  number of the plate, from 0, of an instance of an object: its id and the number of the instance
    changes:   layers at which the color changes, or the print pauses or runs G-code
    """

    volumes: dict[int, list[_Volume]] = field(default_factory=dict)
    filaments: dict[int, int] = field(default_factory=dict)
    plates: int = 0
    plate_of: dict[tuple[int, int], int] = field(default_factory=dict)
    changes: int = 0


class SlicerProject:
    """Project of a slicer around a model.

    Attributes:
        colors: Colors of the filaments, `RRGGBB`; "" for an unknown one.
    """

    def __init__(self, package: Package, document: ModelDocument) -> None:
        """Read the settings, assign filaments to volumes, and remove the volumes that are not printed."""
        self._document = document
        self._files = {name.casefold() for name in package.names}
        self._settings = _Settings()
        self._painted: dict[str, tuple[int, int]] = {}
        self._left_out: set[int] = set()
        for name in _VOLUMES:
            read_volumes = partial(_read_volumes, settings=self._settings)
            read_project_file(package, name, read_volumes, risk="modifiers may have become solid")
        for name in _CHANGES:
            read_project_file(package, name, partial(_read_changes, settings=self._settings))
        self.colors = read_colors(package)
        self._skipped: Counter[str] = Counter()
        self._copy_count = 0
        self._cura_filaments: dict[int, int] = {}
        self._lost_count = _count_lost(document.objects, self._settings.volumes)
        for model_object in document.objects.values():
            extruder = model_object.cura.get("cura:extruder_nr", "")
            if extruder.isdecimal():
                self._cura_filaments[model_object.id] = int(extruder[:_MAX_DIGITS_COUNT]) + 1
            volumes = self._settings.volumes.get(model_object.id, [])
            _assign_filaments(model_object, volumes)
            self._skipped.update(_remove_unprinted_ranges(model_object, volumes))
            self._copy_count += _count_copies(model_object.components, volumes)
            self._skipped.update(_apply_volumes(model_object, volumes))

    @property
    def has_skipped(self) -> bool:
        """Whether volumes that are not printed were left out."""
        return bool(self._skipped)

    def leave_out(self, model_object: ModelObject) -> bool:
        """Return whether Cura does not print an object, and count it once if so."""
        cura = model_object.cura
        kind = next((kind for key, kind in _CURA_KINDS.items() if cura.get(key, "").lower() == "true"), None)
        if kind is not None and id(model_object) not in self._left_out:
            self._left_out.add(id(model_object))
            self._skipped[kind] += 1
        return kind is not None

    def get_filament(self, placed: int, key: tuple[str, int], component: int | None) -> int:
        """Return the filament of a part, from 1.

        Args:
            placed: Object of the document that a build item places.
            key: Model part and id of the object with the mesh, which is the placed one or below it.
            component: Filament of the component that places it; None if no volume describes the component.
        """
        part, number = key
        if component is None:
            volumes = self._settings.volumes.get(placed, [])
            component = next((volume.filament for volume in volumes if volume.part == number), 0)
        owners = (placed, number) if part == self._document.part else (placed,)
        candidates = (
            component,
            self._settings.filaments.get(placed, 0),
            *(self._cura_filaments.get(owner, 0) for owner in owners),
        )
        return next((filament for filament in candidates if 1 <= filament <= MAX_FILAMENT), 1)

    def find_plate(self, placed: int, instance: int) -> int:
        """Return the number of the plate, from 0, of an instance of an object of the document."""
        return self._settings.plate_of.get((placed, instance), 0)

    def count_paint(self, mesh: TriangleMesh) -> None:
        """Count the painted triangles of a mesh that becomes a part of the scene."""
        for kind, codes in mesh.paint.items():
            count = int(np.count_nonzero(codes))
            if count:
                triangles, objects = self._painted.get(kind, (0, 0))
                self._painted[kind] = triangles + count, objects + 1

    def note_losses(self) -> None:
        """Add a note for each kind of information that was not read."""
        if self._skipped:
            listed = ", ".join(f"{kind}: {count}" for kind, count in sorted(self._skipped.items()))
            note("modifiers_skipped", f"volumes of the slicer project that are not printed were left out; {listed}")
        if self._lost_count:
            note(
                "modifiers_not_found",
                f"{format_count(self._lost_count, 'modifier', 'modifiers')} of the slicer project could not be found "
                "in the model and may have become solid; save the project again",
                count=self._lost_count,
            )
        for kind, (paint_code, label) in _PAINT_NOTES.items():
            if kind in self._painted:
                triangles, objects = self._painted[kind]
                where = (
                    f"{format_count(triangles, 'triangle', 'triangles')} of "
                    f"{format_count(objects, 'object', 'objects')}"
                )
                note(paint_code, f"{label} painted on {where} in the slicer were not read")
        if self._copy_count:
            note(
                "volume_settings_copied",
                f"the project has no settings for {format_count(self._copy_count, 'copy', 'copies')} of "
                "volumes: read with kind and filament of the first volume with that mesh, as slicers do",
                count=self._copy_count,
            )
        if self._settings.plates > 1:
            note(
                "plates_merged",
                f"the project has {self._settings.plates} plates; they stand side by side in one scene, and "
                "{each_bed} writes a file for each",
                options=("each_bed",),
                count=self._settings.plates,
            )
        if self._settings.changes:
            note(
                "layer_changes_dropped",
                f"color changes, pauses or G-code at {format_count(self._settings.changes, 'layer', 'layers')}; "
                "they were not read",
                count=self._settings.changes,
            )
        kinds = [kind for name, kind in _SETTINGS.items() if name in self._files]
        if any(name.startswith("cura/") for name in self._files):
            kinds.append("print settings")
        if kinds:
            listed = ", ".join(dict.fromkeys(kinds))
            note(
                "slicer_settings_dropped",
                f"slicer settings were not read ({format_count(len(kinds), 'file', 'files')}): {listed}",
                count=len(kinds),
            )


def find_project_kinds(package: Package, metadata: Mapping[str, str]) -> tuple[str, ...]:
    """Return the profiles of the writer for the slicers that open the file as their project, () for none.

    OrcaSlicer opens the projects of BambuStudio, which does not read the settings of others.
    """
    if package.find(_VOLUMES[0]) or package.find(PRUSA_SETTINGS):
        return ("prusa",)
    if not package.find(_VOLUMES[1]):
        return ()
    return ("orca",) if metadata.get("Application", "").startswith("OrcaSlicer") else ("bambu", "orca")


def _assign_filaments(model_object: ModelObject, volumes: list[_Volume]) -> None:
    """Set the filament of the triangles of each volume."""
    mesh = model_object.mesh
    spans = [volume for volume in volumes if 1 <= volume.filament <= MAX_FILAMENT and volume.span[0] >= 0]
    if mesh is None or not spans:
        return
    mesh.filament = np.zeros(len(mesh.triangles), np.int32)
    for volume in spans:
        mesh.filament[volume.span[0] : volume.span[1] + 1] = volume.filament


def _apply_volumes(model_object: ModelObject, volumes: list[_Volume]) -> list[str]:
    """Set the filaments of components, remove those that are not printed, and return the kind of each of these."""
    matches = _match_volumes(model_object.components, volumes)
    components, kinds = [], []
    for component, volume in zip(model_object.components, matches, strict=True):
        if volume is None:
            components.append(component)
        elif volume.kind in _PLAIN_KINDS:
            components.append(replace(component, filament=volume.filament))
        else:
            kinds.append(_KINDS.get(volume.kind, "modifiers"))
    model_object.components = components
    return kinds


def _match_volumes(components: list[ObjectPlacement], volumes: list[_Volume]) -> list[_Volume | None]:
    """Return the volume of each component: the one at its position, otherwise the first with the id of its object.

    This is necessary, because copies of a mesh in one object are volumes with one id, and so are objects of different
    model parts.

    Source:
        `_BBS_3MF_Importer::_generate_volumes_new` of BambuStudio and OrcaSlicer.
    """
    first = {volume.part: volume for volume in reversed(volumes)}
    pairs = itertools.zip_longest(components, volumes[: len(components)])
    return [
        volume if volume is not None and volume.part == component.object else first.get(component.object)
        for component, volume in pairs
    ]


def _count_copies(components: list[ObjectPlacement], volumes: list[_Volume]) -> int:
    """Return how many components have no separate volume although a copy of their mesh has one."""
    records = Counter(volume.part for volume in volumes)
    counts = Counter(component.object for component in components)
    return sum(max(0, count - records[number]) for number, count in counts.items() if records[number])


def _count_lost(objects: Mapping[int, ModelObject], settings: Mapping[int, list[_Volume]]) -> int:
    """Return how many volumes that are not printed name triangles or components that do not exist.

    Settings of objects that the file does not have are harmless: slicers keep them when they export one plate.
    """
    count = 0
    for number, volumes in settings.items():
        model_object = objects.get(number)
        if model_object is None and number >= 0:
            continue
        placed = {component.object for component in model_object.components} if model_object is not None else set()
        mesh = model_object.mesh if model_object is not None else None
        total = 0 if mesh is None else len(mesh.triangles)
        count += sum(
            volume.kind not in _PLAIN_KINDS
            and volume.part not in placed
            and not 0 <= volume.span[0] <= volume.span[1] < total
            for volume in volumes
        )
    return count


def _remove_unprinted_ranges(model_object: ModelObject, volumes: list[_Volume]) -> list[str]:
    """Remove the triangles of volumes that are not printed from an object, and return the kind of each volume."""
    count = 0 if model_object.mesh is None else len(model_object.mesh.triangles)
    # +1 where a range of removed triangles starts, -1 after its end, so that the running sum counts the ranges
    changes = np.zeros(count + 1, np.int64)
    kinds = []
    for volume in volumes:
        first, last = volume.span
        if volume.kind not in _PLAIN_KINDS and 0 <= first <= last and first < count:
            changes[first] += 1
            changes[min(last + 1, count)] -= 1
            kinds.append(_KINDS.get(volume.kind, "modifiers"))
    keep = np.cumsum(changes)[:-1] == 0
    if model_object.mesh is not None and not keep.all():
        _keep_triangles(model_object.mesh, keep)
    return kinds


def _keep_triangles(mesh: TriangleMesh, keep: NDArray[np.bool_]) -> None:
    """Keep the triangles that the mask (m,) selects."""
    mesh.triangles = mesh.triangles[keep]
    mesh.group = None if mesh.group is None else mesh.group[keep]
    mesh.index = None if mesh.index is None else mesh.index[keep]
    mesh.paint = {kind: codes[keep] for kind, codes in mesh.paint.items()}
    mesh.filament = None if mesh.filament is None else mesh.filament[keep]


def _read_volumes(data: bytes, settings: _Settings) -> None:
    """Read the objects and volumes of a project, then its plates."""
    ancestors: list[str] = []
    object_id = -1
    volume = _Volume()

    def start(_namespace: str, local: str, attributes: Attributes, _at: int) -> None:
        nonlocal object_id, volume
        parent = ancestors[-1] if ancestors else ""
        ancestors.append(local)
        if local == "object":
            object_id = _parse_id(attributes, "id")
        elif local in ("volume", "part"):
            span = _parse_id(attributes, "firstid"), _parse_id(attributes, "lastid")
            part = _parse_id(attributes, "id") if local == "part" else -1
            volume = _Volume(span, part, attributes.get("subtype", ""))
            settings.volumes.setdefault(object_id, []).append(volume)
        elif local == "metadata" and parent == "object" and attributes.get("key") == "extruder":
            settings.filaments[object_id] = _parse_id(attributes, "value")
        elif local == "metadata" and parent in ("volume", "part"):
            _apply_metadata(volume, attributes)

    def end() -> None:
        ancestors.pop()

    _parse_settings(data, start, end)
    _read_plates(data, settings)


def _read_plates(data: bytes, settings: _Settings) -> None:
    """Count the plates with objects, and read which instances are on each. Slicers number them, in any order."""
    ancestors: list[str] = []
    plates: list[tuple[int, list[dict[str, int]]]] = []

    def start(_namespace: str, local: str, attributes: Attributes, _at: int) -> None:
        parent = ancestors[-1] if ancestors else ""
        ancestors.append(local)
        if local == "plate":
            plates.append((-1, []))
        elif local == "model_instance" and plates:
            plates[-1][1].append({})
        elif local == "metadata" and parent == "plate" and attributes.get("key") == "plater_id":
            plates[-1] = (_parse_id(attributes, "value"), plates[-1][1])
        elif local == "metadata" and parent == "model_instance" and plates:
            plates[-1][1][-1][attributes.get("key", "")] = _parse_id(attributes, "value")

    def end() -> None:
        ancestors.pop()

    _parse_settings(data, start, end)
    filled = [instances for _, instances in sorted(plates, key=lambda plate: plate[0]) if instances]
    settings.plates = len(filled)
    for index, instances in enumerate(filled):
        for instance in instances:
            place = instance.get("object_id", -1), instance.get("instance_id", 0)
            settings.plate_of.setdefault(place, index)


def _apply_metadata(volume: _Volume, attributes: Attributes) -> None:
    """Set the filament or the kind of a volume."""
    key, value = attributes.get("key"), attributes.get("value", "")
    if key == "extruder":
        volume.filament = _parse_id(attributes, "value")
    elif volume.kind in _PLAIN_KINDS and key == "volume_type":
        volume.kind = value
    elif volume.kind in _PLAIN_KINDS and key == "modifier" and value == "1":
        volume.kind = "ParameterModifier"


def _read_changes(data: bytes, settings: _Settings) -> None:
    """Count the layers with color changes, pauses or G-code."""

    def start(_namespace: str, local: str, _attributes: Attributes, _at: int) -> None:
        settings.changes += local in ("layer", "code")

    _parse_settings(data, start, lambda: None)


def _parse_settings(data: bytes, start: Callable[[str, str, Attributes, int], None], end: Callable[[], None]) -> None:
    """Parse settings as slicers do, which write `<slic3rpe:text>` and `<slic3rpe:shape>` without the namespace."""
    document, encoding = as_utf8(data)
    parse_xml(document, "the file", start=start, end=end, encoding=encoding, namespaces=False)


def _parse_id(attributes: Attributes, name: str) -> int:
    """Return a non-negative integer; -1 for other values."""
    text = attributes.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS_COUNT else -1
