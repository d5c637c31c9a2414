"""Contents of files with filaments: JSON, CSV, lines of text, and settings of slicers."""

from __future__ import annotations

import csv
import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from meshhub.builtin_plugins.reduce_colors.color_names import CSS_COLORS
from meshhub.builtin_plugins.reduce_colors.filaments import MAX_NAME_LENGTH, OPTION, Filament, parse_list
from meshhub.errors import InvalidOption
from meshhub.toolkit.names import single_line

MAX_LISTED_COUNT = 1000
"""Maximum filaments of a list to choose from; their comparison with the colors of a model takes two seconds."""

_SETTING_KEYS = ("filament_colour", "default_filament_colour", "extruder_colour")
"""Settings of slicers with colors."""

_COLOR_KEYS = (*_SETTING_KEYS, "hex", "color_hex", "hex_code", "rgb", "color", "colour")
"""Keys of colors in slicer settings, in lists of other programs, and in headers of CSV files; the first one counts."""

_NAME_KEYS = ("filament_settings_id", "name", "filament_name", "title", "color", "colour")
"""Keys of names; "color" is a name if another key has the code."""

_TRANSMISSION_KEYS = ("transmissivity", "transmission_distance", "transmission_mm", "td", "td_mm")
"""Keys of transmission distances in millimeters, in libraries of HueForge and in headers of CSV files."""

_NUMBERS = (int, float, str)
"""Types of a length in JSON and CSV."""

_CODE = re.compile(r"#?([0-9a-fA-F]{6})(?:[0-9a-fA-F]{2})?")
"""Color code, with or without alpha."""

_LINE = re.compile(r"(?P<name>[^#=,;]*?)[\s,;:]*(?P<code>#[0-9a-fA-F]{6})")
"""Line of text with a name and a color code."""

_SETTING = re.compile(r"[ \t]*;?[ \t]*(\w+)[ \t]*=[ \t]*(.*)")
"""Line of the settings of a slicer; in its projects and in G-code, a semicolon precedes it."""

_SECTION = re.compile(r"\[filament:(.+)\]")
"""Header of a filament in a bundle of settings of PrusaSlicer."""


class _Record(NamedTuple):
    """Name, color code and transmission distance (mm, 0 for none) of a filament."""

    name: str
    code: str
    transmission_mm: float = 0.0


def parse_filaments(text: str) -> list[Filament]:
    """Parse a palette: a list such as "#FFFFFF,red,Fire red=#D01020", or the content of a file with filaments.

    Raises:
        InvalidOption: An entry is malformed, a color of a list occurs twice, or the number of entries is not allowed.
    """
    records = _read_records(text)
    filaments = parse_list(text) if records is None else _build_filaments(records)
    if not 1 <= len(filaments) <= MAX_LISTED_COUNT:
        raise InvalidOption(
            f"option '{{{OPTION}}}' lists 1 to {MAX_LISTED_COUNT} colors, got {len(filaments)}", options=(OPTION,)
        )
    return filaments


def _read_records(text: str) -> list[_Record] | None:
    """Return names and codes of JSON, of settings, of CSV with a header, or of lines; None for other texts."""
    settings = filter(None, map(_SETTING.fullmatch, text.splitlines()))
    if any(match[1] in _SETTING_KEYS for match in settings):
        return _read_settings(text)
    if text.lstrip().startswith(("{", "[")):
        return _read_json(text)
    return _read_table(text) or _read_lines(text)


def _build_filaments(records: list[_Record]) -> list[Filament]:
    """Return filaments; of several with one color, the first one counts."""
    filaments: dict[tuple[int, ...], Filament] = {}
    for record in records:
        match = _CODE.fullmatch(record.code.strip())
        if match:
            red, green, blue = bytes.fromhex(match[1])
            name = single_line(record.name)[:MAX_NAME_LENGTH].strip()
            filament = Filament(name, (red, green, blue), record.transmission_mm)
            filaments.setdefault(filament.color, filament)
    return list(filaments.values())


def _read_json(text: str) -> list[_Record]:
    try:
        return list(_find_records(json.loads(text), ""))
    except (ValueError, RecursionError) as error:
        raise InvalidOption(
            f"option '{{{OPTION}}}' begins as JSON does, but is not valid JSON: {str(error)[:60]}", options=(OPTION,)
        ) from None


def _find_records(value: object, key: str) -> Iterator[_Record]:
    """Yield names and codes in lists of any depth, records with a color, and objects that map names to codes."""
    if isinstance(value, list):
        for item in value:
            yield from _find_records(item, "")
    elif isinstance(value, str) and value.startswith("#") and _CODE.fullmatch(value):
        yield _Record(key, value)
    elif isinstance(value, dict):
        records = _read_record({name.lower(): content for name, content in value.items()})
        if records is not None:
            yield from records
        else:
            for name, item in value.items():
                yield from _find_records(item, name)


def _read_record(record: Mapping[str, object]) -> list[_Record] | None:
    """Return the filaments of a record, None if it has no color; slicers list the names and codes of all.

    Several codes in other programs are one filament of several colors, which is left out.
    """
    key = next((key for key in _COLOR_KEYS if _list_codes(record.get(key))), None)
    if key is None:
        return None
    codes = _list_codes(record[key])
    if len(codes) > 1 and key not in _SETTING_KEYS:
        return []
    names = next(filter(None, (_list_texts(record.get(key)) for key in _NAME_KEYS)), [])
    # Spoolman has fields of the user, whose values are JSON
    extra = record.get("extra")
    fields = {**extra, **record} if isinstance(extra, dict) else record
    transmission_mm = next((_read_length(fields[key]) for key in _TRANSMISSION_KEYS if key in fields), 0.0)
    pairs = itertools.zip_longest(codes, names[: len(codes)], fillvalue="")
    return [_Record("" if name == code else name, code, transmission_mm) for code, name in pairs]


def _read_length(value: object) -> float:
    """Return a positive number of a record, 0 for anything else."""
    try:
        length = float(value.strip('"') if isinstance(value, str) else value) if isinstance(value, _NUMBERS) else 0.0
    except (ValueError, OverflowError):
        return 0.0
    return length if length > 0 and math.isfinite(length) else 0.0


def _list_texts(value: object) -> list[str]:
    texts = value if isinstance(value, list) else [value]
    return [text for text in texts if isinstance(text, str)]


def _list_codes(value: object) -> list[str]:
    texts = _list_texts(value)
    return texts if any(_CODE.fullmatch(text.strip()) for text in texts) else []


def _read_settings(text: str) -> list[_Record]:
    """Read filaments from the settings of a slicer, which have a section for each filament, or one list for all."""
    records: list[_Record] = []
    section: dict[str, object] | None = {}
    for line in [*text.splitlines(), "[end]"]:
        match = _SETTING.fullmatch(line)
        if line.startswith("["):
            records += _read_record(section or {}) or []
            header = _SECTION.fullmatch(line.strip())
            section = {"name": header[1]} if header else None
        elif match and section is not None:
            section[match[1]] = [item.strip().strip('"') for item in match[2].split(";")]
    return records


def _read_table(text: str) -> list[_Record] | None:
    """Return names and codes of a CSV file whose header names a color; None for other texts."""
    lines = text.splitlines()
    separator = next((mark for mark in "\t;," if mark in lines[0]), ",") if lines else ","
    try:
        rows = list(csv.reader(lines, delimiter=separator))
    except csv.Error:
        return None
    header = [re.sub(r"\W+", "_", title.strip().lower()) for title in rows[0]] if rows else []
    if len(rows) < 2 or set(_COLOR_KEYS).isdisjoint(header):
        return None
    return [pair for row in rows[1:] for pair in _read_record(dict(zip(header, row, strict=False))) or []]


def _read_lines(text: str) -> list[_Record] | None:
    """Return names and codes of lines that have one of each; None for other texts."""
    matches = [_LINE.fullmatch(line.strip()) for line in text.splitlines() if line.strip()]
    records = [_Record(match["name"], match["code"]) for match in matches if match]
    # a line such as "red,#0000FF" lists two colors
    if len(records) < len(matches) or all(name.lower() in {"", *CSS_COLORS} for name, *_ in records):
        return None
    return records
