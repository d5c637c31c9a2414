"""Readers: the printed lines become tubes, and notes report what the print takes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

from meshhub import EmptyModel, Material, Part, Scene, Source, UnreadableFile, did, note
from meshhub.errors import format_count, format_number
from meshhub.model.scene import Color, Mesh
from meshhub.toolkit.archive import Archive
from meshhub.toolkit.safe_xml import as_utf8, read_xml_tree
from meshhub_gcode import GcodeOptions
from meshhub_gcode.binary import read_binary
from meshhub_gcode.facts import DEFAULT_DIAMETER_MM, Facts, read_facts
from meshhub_gcode.lines import find_heights, find_kinds, list_layers, read_marks
from meshhub_gcode.moves import Moves, estimate_seconds, follow, measure_filament
from meshhub_gcode.tubes import MAX_SLANTED_COUNT, Segments, build_tubes, join_straight
from meshhub_gcode.words import read_commands

_PLATE = re.compile(r"metadata/plate_(\d{1,4})\.gcode", re.IGNORECASE)

_PLATE_LIST = "Metadata/slice_info.config"

_COLORS = {
    "support interface": "00801A",
    "support": "00B32E",
    "skirt": "008066",
    "brim": "008066",
    "raft": "00B32E",
    "prime": "B3E3AB",
    "wipe": "B3E3AB",
    "custom": "5ED194",
    "ironing": "FF8C69",
    "bridge": "4D80BA",
    "overhang": "1F1FFF",
    "gap": "FFFFFF",
    "top": "F04040",
    "bottom": "665CC7",
    "internal solid": "9654CC",
    "solid": "9654CC",
    "skin": "F04040",
    "external": "FF7D38",
    "outer": "FF7D38",
    "inner": "FFE64D",
    "wall": "FFE64D",
    "perimeter": "FFE64D",
    "fill": "B03029",
}
"""Color by a word in the name of a kind of lines, the first that occurs: those of PrusaSlicer."""

_TOOL_COLORS = ("FF8000", "DB5182", "3EC0FF", "FF4F4F", "FBEB7D", "9F5FFF", "53C653", "A0A0A0")
"""Colors of tools for which the file states none."""

_UNKNOWN_COLOR = "C0C0C0"


def read_gcode(source: Source, options: GcodeOptions) -> Scene:
    """Read G-code as text.

    Returns:
        Scene in millimeters, with a part of each kind of line, or of each tool.
    Raises:
        UnreadableFile: A number is damaged.
        EmptyModel: No move prints.
    """
    return _read([(source.read(), ())], options)


def read_bgcode(source: Source, options: GcodeOptions) -> Scene:
    """Read binary G-code. Raises as `read_gcode`, and UnreadableFile for damaged blocks."""
    content = read_binary(source.read())
    return _read([(content.text, content.metadata)], options)


def read_gcode_3mf(source: Source, options: GcodeOptions) -> Scene:
    """Read the G-code of all plates of a 3MF package.

    Raises as `read_gcode`, and UnreadableFile for a damaged package, or one without G-code.
    """
    with Archive(source.path or source.read()) as archive:
        plates = sorted(
            (int(match[1]), entry.name) for entry in archive.entries if (match := _PLATE.fullmatch(entry.name))
        )
        if not plates:
            raise UnreadableFile("the 3MF package has no G-code of a plate; slice the project, or name it .3mf")
        stated = _read_plate_list(archive)
        return _read([(archive.read(name), stated.get(number, [])) for number, name in plates], options)


def _read_plate_list(archive: Archive) -> dict[int, list[tuple[str, str]]]:
    """Return what the list of plates states about each, by its number: its time and the weight of its filament."""
    name = archive.find(_PLATE_LIST)
    plates: dict[int, list[tuple[str, str]]] = {}
    if name is not None:
        data, _ = as_utf8(archive.read(name))
        for plate in read_xml_tree(data, "the list of plates", namespaces=False).iter("plate"):
            values = {item.get("key") or "": item.get("value") or "" for item in plate.iter("metadata")}
            if values.get("index", "").isdecimal():
                plates[int(values["index"])] = [(key, values[key]) for key in ("prediction", "weight") if key in values]
    return plates


def _read(plates: Sequence[tuple[bytes, Iterable[tuple[str, str]]]], options: GcodeOptions) -> Scene:
    """Return the scene of one or more files of G-code, each a plate."""
    meshes: list[Mesh] = []
    parts: list[Part] = []
    materials: list[Material] = []
    tops: set[float] = set()
    for plate, (text, metadata) in enumerate(plates):
        label = f"plate {plate + 1}: " if len(plates) > 1 else ""
        for name, color, mesh in _read_plate(text, metadata, options, label, tops):
            material = Material(name=name, base_color=color)
            if material not in materials:
                materials.append(material)
            parts.append(Part(len(meshes), name=name, material=materials.index(material), plate=plate))
            meshes.append(mesh)
    did(layers_mm=sorted(tops))
    if not parts:
        raise EmptyModel("the G-code prints nothing: no move pushes filament; slice the model again")
    return Scene(tuple(meshes), tuple(parts), tuple(materials))


def _read_plate(
    text: bytes, metadata: Iterable[tuple[str, str]], options: GcodeOptions, label: str, tops: set[float]
) -> list[tuple[str, Color, Mesh]]:
    """Report the facts of a plate; return the name, the color and the mesh of each group of lines.

    Add the heights of the tops of its layers in millimeters to `tops`.
    """
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    facts = read_facts(text, metadata)
    moves = follow(read_commands(text), options.gcode_tolerance_mm)
    diameters = np.array(facts.diameter_mm or [DEFAULT_DIAMETER_MM])
    cross_section = np.pi / 4 * diameters[np.minimum(moves.tool, len(diameters) - 1)] ** 2
    if facts.is_volumetric:
        moves = moves._replace(filament=moves.filament / cross_section)
    marks = read_marks(text)
    length = np.linalg.norm((moves.end - moves.start)[:, :2], axis=1)
    is_printed = (moves.filament > 0) & (length > 1e-6)
    line, z = moves.line[is_printed], moves.end[is_printed, 2]
    # a purge line comes before the first layer
    is_layer = line >= marks.layer_at[0] if len(marks.layer_at) else np.ones(len(line), np.bool_)
    layers = list_layers(marks, line[is_layer], z[is_layer])
    tops.update(np.round(layers, 3).tolist())
    _report(facts, moves, len(layers), label)
    if not is_printed.any():
        return []

    group = moves.tool[is_printed] if options.gcode_color_by == "tool" else find_kinds(marks, line)
    volume = (moves.filament * cross_section)[is_printed]
    segments = Segments(
        moves.start[is_printed],
        moves.end[is_printed],
        volume / length[is_printed],
        find_heights(marks, line, z),
        group,
    )
    segments = join_straight(segments, options.gcode_tolerance_mm)
    is_slanted = len(segments.start) <= MAX_SLANTED_COUNT
    groups = []
    for number in np.unique(group).tolist():
        if options.gcode_color_by == "tool":
            name, color = f"Tool {number + 1}", _color_tool(number, facts)
        else:
            name = marks.kinds[number]
            color = _color_kind(name)
        groups.append((name, color, build_tubes(segments.choose(segments.group == number), is_slanted=is_slanted)))
    return groups


def _color_kind(name: str) -> Color:
    lower = name.lower()
    return _parse_color(next((color for word, color in _COLORS.items() if word in lower), _UNKNOWN_COLOR))


def _color_tool(number: int, facts: Facts) -> Color:
    stated = facts.colors[number] if number < len(facts.colors) else ""
    return _parse_color(
        stated.removeprefix("#")[:6]
        if re.fullmatch(r"#[0-9A-Fa-f]{6,8}", stated)
        else _TOOL_COLORS[number % len(_TOOL_COLORS)]
    )


def _parse_color(text: str) -> Color:
    red, green, blue = (byte / 255 for byte in bytes.fromhex(text))
    return (red, green, blue, 1.0)


def _report(facts: Facts, moves: Moves, layers: int, label: str) -> None:
    """Report what a print takes: as the file states, and as its moves do."""
    origin = facts.slicer or "the file"
    made = [f"sliced by {facts.slicer}" if facts.slicer else "", f"for {facts.printer}" if facts.printer else ""]
    if any(made):
        note("gcode_origin", label + " ".join(filter(None, made)))
        did(slicer=facts.slicer, printer=facts.printer)

    estimate = estimate_seconds(moves, facts.machine())
    did(estimated_seconds=round(estimate, 1))
    if facts.seconds is not None:
        did(stated_seconds=facts.seconds)
        note("gcode_time", f"{label}{_format_time(facts.seconds)} of printing, as {origin} states")
    else:
        note(
            "gcode_time",
            f"{label}about {_format_time(estimate)} of printing, estimated from the moves: the file states no time, "
            "and heating is not included",
        )

    used = measure_filament(moves)
    total = sum(used.values())
    did(filament_mm=round(total, 2), layers=facts.layers or layers)
    grams, cost = facts.filament_g, facts.cost
    if grams is None and facts.density_g_cm3:
        grams = sum(facts.weigh(length, tool) for tool, length in used.items())
    amounts = [f"{format_number(total / 1000, 4)} m of filament"]
    if grams:
        did(filament_g=round(grams, 2))
        amounts.append(f"{format_number(grams, 4)} g")
    if cost:
        did(filament_cost=round(cost, 2))
        amounts.append(f"cost {cost:.2f}")
    tools = len([length for length in used.values() if length > 0])
    by_tools = f" by {tools} tools" if tools > 1 else ""
    stated = ""
    if facts.filament_mm is not None:
        did(stated_filament_mm=facts.filament_mm)
        stated = f"; {origin} states {format_number(facts.filament_mm / 1000, 4)} m"
    note("gcode_filament", f"{label}{', '.join(amounts)}{by_tools}, by the moves{stated}")
    note("gcode_layers", f"{label}{format_count(facts.layers or layers, 'layer', 'layers')}")


def _format_time(seconds: float) -> str:
    if seconds < 3600:
        minutes, rest = divmod(max(1, round(seconds)), 60)
        return f"{minutes} min {rest} s" if minutes else f"{rest} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min"
