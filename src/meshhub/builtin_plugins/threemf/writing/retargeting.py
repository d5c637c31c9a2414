"""Prepare a project of BambuStudio or OrcaSlicer for another printer, and keep everything else in it."""

# why this way: docs/decisions/0045-retargeting.md
from __future__ import annotations

import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Any

import msgspec
import numpy as np

from meshhub.builtin_plugins.threemf.printers import PRINTERS, ProjectPrinter
from meshhub.builtin_plugins.threemf.reading.filament_settings import (
    BAMBU_SETTINGS,
    read_colors,
    read_filament_types,
)
from meshhub.builtin_plugins.threemf.reading.package import Package, is_sliced
from meshhub.builtin_plugins.threemf.reading.project_files import note_damaged, read_project_file
from meshhub.builtin_plugins.threemf.writing.project_settings import Setting, format_settings
from meshhub.builtin_plugins.threemf.writing.xml_text import format_transform
from meshhub.builtin_plugins.threemf.writing.zip_writer import write_zip
from meshhub.errors import InvalidOption, format_count, format_number
from meshhub.model.notes import note
from meshhub.model.scene import Float64, Scene
from meshhub.toolkit.geometry import bounds_of_parts

_PLATE_GAP_RATIO = 0.2
"""Gap between two plates, as a ratio of the size of a plate."""

_VERSION = "02.00.00.00"
"""Version of the slicer, for a project that states none."""

_KEPT = ("filament_colour", "filament_multi_colour", "filament_colour_type")
"""Settings that belong to the filaments and to no preset."""

_COMPUTED = ("flush_volumes_matrix", "wipe_tower_x")
"""Settings that slicers compute for their printer."""

_OWN_PRESETS = re.compile(r"metadata/(?:machine|process|filament)_settings_\d+\.config")
"""Presets of users in the project; they are for its printer."""

_PLATE_DETAILS = re.compile(r"metadata/(?:plate_\d+\.json|filament_sequence\.json|slice_info\.config)")
"""Results of slicing for the old printer."""

_MODEL_SETTINGS = "Metadata/model_settings.config"
_PLATE = re.compile(rb"<plate\b.*?</plate>", re.DOTALL)
_INSTANCE = re.compile(rb"<model_instance\b.*?</model_instance>", re.DOTALL)
_ITEM = re.compile(rb"<item\b[^>]*>")
_TRANSFORM = re.compile(rb'\s+transform\s*=\s*"([^"]*)"')
_OBJECT_ID = re.compile(rb'\sobjectid\s*=\s*"(\d+)"')
_MAX_LISTED = 60
"""Characters of the settings that a note names."""


def retarget(scene: Scene, package: Package, printer: ProjectPrinter) -> bytes:
    """Return a project for another printer: with its presets, and all objects in the same places of their plates.

    Settings of the process that the user changed are kept, unless they have a value for each nozzle.

    Args:
        scene: Scene that was read from the project.
        package: The project.
        printer: New printer.
    Raises:
        InvalidOption: The project is sliced.
    """
    if is_sliced(package.names):
        raise InvalidOption(
            "option '{threemf_printer}' cannot change machine code; export the project without slicing it",
            options=("threemf_printer",),
        )
    old = _read_settings(package)
    colors = [f"#{color or 'FFFFFF'}" for color in read_colors(package)] or ["#FFFFFF"]
    types = read_filament_types(package, len(colors))
    settings = format_settings(printer.presets, colors, types, str(old.get("version", _VERSION)))
    settings |= {key: old[key] for key in _KEPT if key in old}
    _note_losses(package, old, _keep_process(old, settings))
    _note_size(scene, printer)
    file = io.BytesIO()
    write_zip(file, _write_entries(package, settings, _find_plate(old), printer))
    return file.getvalue()


def _read_settings(package: Package) -> dict[str, Setting]:
    settings = read_project_file(package, BAMBU_SETTINGS, msgspec.json.Decoder(dict[str, Any]).decode)
    return {key: value for key, value in (settings or {}).items() if _is_setting(value)}


def _is_setting(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(entry, str) for entry in value))


def _keep_process(old: Mapping[str, Setting], settings: dict[str, Setting]) -> list[str]:
    """Copy the changed settings of the process that have one value, and return the names of the others."""
    groups = [_split(entry) for entry in _as_list(old.get("different_settings_to_system", []))]
    kept = [key for key in (groups[0] if groups else []) if isinstance(old.get(key), str)]
    settings |= {key: old[key] for key in kept}
    settings["different_settings_to_system"] = [";".join(kept), *settings["different_settings_to_system"][1:]]
    return sorted({key for group in groups for key in group} - set(kept)) + [key for key in _COMPUTED if key in old]


def _note_losses(package: Package, old: Mapping[str, Setting], lost: list[str]) -> None:
    """Note the settings that the presets of the new printer replace."""
    preset_count = sum(_OWN_PRESETS.fullmatch(name.casefold()) is not None for name in package.names)
    if preset_count:
        lost = [format_count(preset_count, "own preset", "own presets"), *lost]
    printer = str(old.get("printer_settings_id", "")) or "an unknown printer"
    note(
        "printer_settings_replaced",
        f"settings of {printer[:40]} and its filaments became those of presets"
        + (f"; lost: {_list_some(lost)}" if lost else ""),
    )


def _list_some(names: list[str]) -> str:
    """Return the names that fit into a message, and the number of the others."""
    ends = list(accumulate(len(name) + 2 for name in names))
    count = max(1, sum(end <= _MAX_LISTED for end in ends))
    return ", ".join(names[:count]) + (f" and {len(names) - count} more" if count < len(names) else "")


def _split(entry: str) -> list[str]:
    return [key for key in entry.replace('"', "").split(";") if key]


def _as_list(value: Setting) -> list[str]:
    return value if isinstance(value, list) else [value]


def _find_plate(old: Mapping[str, Setting]) -> Float64:
    """Return the corners (2, 2) of the plate that the settings state, or that of their printer."""
    corners = [corner.split("x") for corner in _as_list(old.get("printable_area", []))]
    try:
        numbers = np.array([[float(x) for x in corner] for corner in corners])
    except ValueError:
        numbers = np.empty(0)
    if numbers.shape[1:] == (2,) and len(numbers) > 2:
        return np.array([numbers.min(axis=0), numbers.max(axis=0)])
    if corners:
        note_damaged(BAMBU_SETTINGS)
    preset = old.get("printer_settings_id")
    known = next((printer for printer in PRINTERS.values() if printer.presets.printer == preset), PRINTERS["bambu-p1s"])
    return np.array([(0.0, 0.0), known.plate_mm])


def _note_size(scene: Scene, printer: ProjectPrinter) -> None:
    """Note parts that are larger than the plate."""
    sizes = np.ptp(bounds_of_parts(scene)[..., :2], axis=1)
    count = int(np.count_nonzero((sizes > printer.plate_mm).any(axis=1)))
    if count:
        width, depth = map(format_number, printer.plate_mm)
        model = printer.presets.model
        note(
            "larger_than_plate",
            f"{count:,} of {len(sizes):,} parts are larger than the plate of {model} ({width} × {depth} mm); "
            "scale them with {scale_percent}, or divide them with {split_for_bed}",
            options=("scale_percent", "split_for_bed"),
            count=count,
            total=len(sizes),
            printer=model,
            size=f"{width} × {depth} mm",
        )


def _write_entries(
    package: Package, settings: Mapping[str, Setting], plate_mm: Float64, printer: ProjectPrinter
) -> Iterator[tuple[str, list[bytes]]]:
    placements = _read_plates(package)
    model = package.find_model()
    settings_file = package.find(BAMBU_SETTINGS) or BAMBU_SETTINGS
    data = msgspec.json.format(msgspec.json.encode(settings), indent=1)
    for name in package.names:
        kind = name.casefold()
        if _OWN_PRESETS.fullmatch(kind) or _PLATE_DETAILS.fullmatch(kind) or name == settings_file:
            continue
        entry = package.read(name)
        yield name, [_move_items(entry, placements, plate_mm, printer) if name == model else entry]
    yield settings_file, [data]


def _read_plates(package: Package) -> dict[tuple[int, int], int]:
    """Return the plate of each instance, from 0, by the ids of its object and of the instance."""
    path = package.find(_MODEL_SETTINGS)
    plates = _PLATE.findall(package.read(path)) if path is not None else []
    placements = {}
    for number, plate in enumerate(plates):
        for instance in _INSTANCE.findall(plate):
            ids = [_find_value(instance, key) for key in (b"object_id", b"instance_id")]
            placements[ids[0], ids[1]] = number
    return placements


def _find_value(element: bytes, key: bytes) -> int:
    match = re.search(rb'key="' + key + rb'"\s+value="(\d{1,9})"', element)
    return int(match[1]) if match else 0


def _move_items(
    data: bytes, placements: Mapping[tuple[int, int], int], plate_mm: Float64, printer: ProjectPrinter
) -> bytes:
    """Return the model with its build items at the same distance from the middles of their plates."""
    counts: Counter[int] = Counter()
    columns = math.ceil(math.sqrt(max(placements.values(), default=0) + 1))
    new_mm = np.array([(0.0, 0.0), printer.plate_mm])

    def move(match: re.Match[bytes]) -> bytes:
        element = match[0]
        found = _OBJECT_ID.search(element)
        number = int(found[1]) if found else 0
        plate = placements.get((number, counts[number]), 0)
        counts[number] += 1
        cell = np.array([plate % columns, -(plate // columns)])
        shift = _find_middle(new_mm, cell) - _find_middle(plate_mm, cell)
        stated = _TRANSFORM.search(element)
        matrix = _parse_transform(stated[1] if stated else b"")
        if matrix is None:
            return element
        matrix[:2, 3] += shift
        plain = _TRANSFORM.sub(b"", element)
        return b"<item" + format_transform(matrix).encode() + plain[len(b"<item") :]

    return _ITEM.sub(move, data)


def _find_middle(plate_mm: Float64, cell: Iterable[int]) -> Float64:
    """Return the middle (2,) of a plate in the grid of plates."""
    middle: Float64 = plate_mm.mean(axis=0) + np.ptp(plate_mm, axis=0) * (1 + _PLATE_GAP_RATIO) * np.array(cell)
    return middle


def _parse_transform(text: bytes) -> Float64 | None:
    """Return the (4, 4) matrix for column vectors of a transform, or None for a malformed one."""
    matrix = np.eye(4)
    if text.strip():
        try:
            matrix[:3] = np.array([float(number) for number in text.split()]).reshape(4, 3).T
        except ValueError:
            return None
    return matrix
