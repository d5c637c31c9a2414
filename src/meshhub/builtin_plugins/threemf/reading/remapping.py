"""Change the numbers of filaments in a slicer's project, and keep everything else in it."""

# why this way: docs/decisions/0045-retargeting.md
from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping

from meshhub.builtin_plugins.threemf.paint_trees import remap_code
from meshhub.builtin_plugins.threemf.reading.filament_settings import read_colors
from meshhub.builtin_plugins.threemf.reading.package import Package, is_sliced
from meshhub.builtin_plugins.threemf.writing.zip_writer import write_zip
from meshhub.errors import InvalidOption, quote
from meshhub.model.source import Source
from meshhub.toolkit.printers import MAX_FILAMENTS

_OPTION = "threemf_remap_filaments"
_ENTRY = re.compile(r"([1-9][0-9]?)=([1-9][0-9]?)")
_PAINT = re.compile(rb"""(\b(?:paint_color|mmu_segmentation)\s*=\s*["'])([0-9A-Fa-f]+)""")
_OBJECT = re.compile(rb"(<object\b[^>]*>)(.*?)(?=<part\b|<volume\b|</object>)", re.DOTALL)
"""Start of an object in the settings, and its own metadata."""

_EXTRUDER = re.compile(rb'(<metadata\b[^>]*\bkey="extruder"[^>]*\bvalue=")([0-9]+)')
_NUMBERS = (
    # layers at which the filament changes
    re.compile(rb'(<(?:layer|code)\b[^>]*\bextruder=")([0-9]+)'),
    # height ranges with settings
    re.compile(rb'(<option\b[^>]*\bopt_key="extruder"[^>]*>)([0-9]+)'),
    # filaments of walls, infill and supports in the settings of PrusaSlicer, and of BambuStudio and OrcaSlicer
    re.compile(rb"(?m)(^; (?:\w+_)?(?:perimeter|infill|material|interface|tower)_extruder = )([0-9]+)"),
    re.compile(rb'("\w*(?:wall|infill|support|support_interface|wipe_tower)_filament"\s*:\s*")([0-9]+)'),
)
"""Numbers of filaments in the other settings; 0 is the default of each."""


def parse_mapping(text: str) -> dict[int, int]:
    """Parse the new number of each filament, such as "1=4,2=1".

    Raises:
        InvalidOption: An entry is malformed, a number is too large, or a filament occurs twice.
    """
    mapping: dict[int, int] = {}
    for entry in filter(None, (part.replace(" ", "") for part in text.split(","))):
        match = _ENTRY.fullmatch(entry)
        old, new = map(int, match.groups()) if match else (0, 0)
        if match is None or old in mapping or max(old, new) > max(MAX_FILAMENTS.values()):
            raise InvalidOption(
                f"option '{{{_OPTION}}}' lists each filament once, as old=new from 1 to "
                f"{max(MAX_FILAMENTS.values())}, such as 1=4,2=1; got {quote(text)}",
                options=(_OPTION,),
            )
        mapping[old] = new
    return mapping


def remap_filaments(package: Package, name: str, mapping: Mapping[int, int]) -> Source:
    """Return a project with other numbers of filaments; geometry, colors and settings are unchanged.

    Args:
        package: The project.
        name: Name of the file.
        mapping: New number of each filament; others keep theirs.
    Raises:
        InvalidOption: The file is not a project of a slicer, it is already sliced, or it lacks one of the filaments.
    """
    fault = None
    count = len(read_colors(package))
    if not any(map(package.find, ("Metadata/Slic3r_PE_model.config", "Metadata/model_settings.config"))):
        fault = "needs a project of PrusaSlicer, BambuStudio or OrcaSlicer"
    elif is_sliced(package.names):
        fault = "cannot change machine code; export the project without slicing it"
    elif count and max(mapping.values(), default=0) > count:
        fault = f"names filament {max(mapping.values())}, but the project has {count}; add it in the slicer"
    if fault is not None:
        raise InvalidOption(f"option '{{{_OPTION}}}' {fault}", options=(_OPTION,))
    file = io.BytesIO()
    write_zip(file, _remap_entries(package, mapping))
    return Source.from_bytes(file.getvalue(), name)


def _remap_entries(package: Package, mapping: Mapping[int, int]) -> Iterator[tuple[str, list[bytes]]]:
    codes: dict[bytes, bytes] = {}

    def remap_paint(match: re.Match[bytes]) -> bytes:
        code = match[2]
        if code not in codes:
            codes[code] = remap_code(code, mapping)
        return match[1] + codes[code]

    for name in package.names:
        data = package.read(name)
        kind = name.casefold()
        if kind.endswith(".model"):
            data = _PAINT.sub(remap_paint, data)
        elif kind.startswith("metadata/") and kind.endswith((".config", ".xml")):
            data = _remap_settings(data, mapping)
        yield name, [data]


def _remap_settings(data: bytes, mapping: Mapping[int, int]) -> bytes:
    def remap(match: re.Match[bytes]) -> bytes:
        number = int(match[2])
        return match[1] + b"%d" % mapping.get(number, number)

    data = _EXTRUDER.sub(remap, _OBJECT.sub(_set_default, data) if 1 in mapping else data)
    for pattern in _NUMBERS:
        data = pattern.sub(remap, data)
    return data


def _set_default(match: re.Match[bytes]) -> bytes:
    """Return the start of an object with its filament, which is 1 if it states none."""
    start, own = match.groups()
    value = _EXTRUDER.search(own)
    if value is None:
        return start + b'<metadata type="object" key="extruder" value="1"/>' + own
    return start + own[: value.start(2)] + (value[2].lstrip(b"0") or b"1") + own[value.end(2) :]
