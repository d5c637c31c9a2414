"""What a print takes, as its slicer states, and what the slicer warns of."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

from meshhub_gcode.binary import read_binary
from meshhub_gcode.facts import Facts, read_facts

from meshhub import ConversionFailed, did, note
from meshhub.errors import format_number, printable
from meshhub.pipeline.rate_files import read_rates
from meshhub.service.settings import load
from meshhub.toolkit.print_materials import FILAMENTS
from meshhub_slicer import SlicerOptions
from meshhub_slicer.printing import Sliced
from meshhub_slicer.profiles import check_code

_LAYER = re.compile(rb"^;(?:LAYER_CHANGE|LAYER:\d+|CHANGE_LAYER)", re.MULTILINE)
_HEIGHT = re.compile(rb"^;\s?(?:Z:|Z_HEIGHT: )([\d.]+)", re.MULTILINE)
_MOVE_UP = re.compile(rb"^G[01] [^\n;]*Z([\d.]+)", re.MULTILINE)
_NOISE = re.compile(r"\[trace\]|=>|^Slicing result exported|^\s*$|^Done\.|\[info\]|\[debug\]")
_WARNING = re.compile(
    r"warning|error|empty layer|outside|collision|unprintable|not supported|too (?:low|thin|tall|large)", re.IGNORECASE
)
_PREFIX = re.compile(r"^(?:\[[^\]]*\]\s*)*(?:print warning:\s*|warning:\s*)?", re.IGNORECASE)


_NO_NUMBER = re.compile(rb"^G[0-3][^;\n]*(?:inf|nan)", re.MULTILINE)
"""Move to no number: PrusaSlicer 2.5 writes some, and a printer could take them for anything."""


def report_warnings(label: str, output: str) -> None:
    """Report the warnings of a slicer as notes with their text."""
    for line in output.splitlines():
        if _WARNING.search(line) and not _NOISE.search(line):
            text = printable(_PREFIX.sub("", line).strip())[:140]
            if text:
                note("slicer_warning", f"{label} warns: {text}", slicer=label, text=text)


def report_print(sliced: Sliced, options: SlicerOptions, label: str) -> None:
    """Report time, filament by tool, layers, height, and the cost by the rate card of the settings.

    Raises:
        ConversionFailed: The file prints nothing.
        InvalidOption: The profile put a command for a host together.
    """
    for text, metadata in _read_plates(sliced.file):
        if _NO_NUMBER.search(text):
            raise ConversionFailed("the slicer wrote moves to infinity, a defect of it: try again, or update it")
        if options.slicer_profile is not None:
            check_code(text)
        facts = read_facts(text, metadata)
        lengths = facts.lengths_mm
        if not sum(lengths):
            raise ConversionFailed(
                "the G-code prints nothing: the model may be thinner than a line; use '{thicken_mm}'",
                options=("thicken_mm",),
            )
        density = FILAMENTS[options.slicer_material].density_g_cm3
        grams = [round(facts.weigh(length, tool, density), 2) for tool, length in enumerate(lengths)]
        height = _find_height(text)
        layers = len(_LAYER.findall(text)) or facts.layers or 0
        seconds = facts.seconds or 0.0
        did(slicer=facts.slicer, seconds=seconds, layers=layers)
        did(filament_mm=round(sum(lengths), 2), filament_g=round(sum(grams), 2))
        for tool, (length, gram) in enumerate(zip(lengths, grams, strict=True), 1):
            if len(lengths) > 1 and length:
                did(**{f"tool_{tool}_mm": round(length, 2), f"tool_{tool}_g": gram})
        amounts = f"{format_number(seconds / 60, 3)} min, {format_number(sum(grams), 3)} g"
        note(
            "sliced",
            f"{label}{facts.slicer or 'the slicer'} states {amounts}, {layers} layers, {height:g} mm high",
            minutes=round(seconds / 60, 1),
            grams=round(sum(grams), 2),
            layers=layers,
            height=height,
        )
        _report_cost(lengths, facts, options)


def _read_plates(file: Path) -> list[tuple[bytes, list[tuple[str, str]]]]:
    """Return G-code and metadata of each plate of a file."""
    if file.suffix == ".bgcode":
        content = read_binary(file.read_bytes())
        return [(content.text, list(content.metadata))]
    if file.suffix == ".3mf":
        with zipfile.ZipFile(file) as archive:
            names = sorted(name for name in archive.namelist() if re.fullmatch(r"Metadata/plate_\d+\.gcode", name))
            return [(archive.read(name), []) for name in names]
    return [(file.read_bytes(), [])]


def _find_height(text: bytes) -> float:
    """Return the height of the last layer in mm: that of comments, or of the moves of Cura's layers."""
    heights = _HEIGHT.findall(text)
    if not heights:
        heights = _MOVE_UP.findall(text[text.find(b";LAYER:0") : text.rfind(b";TIME_ELAPSED:")])
    return max(map(float, heights), default=0.0)


def _report_cost(lengths: list[float], facts: Facts, options: SlicerOptions) -> None:
    """Report the price of one piece by the rate card that the settings name, without one nothing."""
    path = load().settings.rates_file
    if path is None:
        return
    card = read_rates(path)
    volume = sum(length * facts.cross_section(tool) for tool, length in enumerate(lengths))
    material = options.slicer_material if options.slicer_material in card.materials else None
    price = card.price_print(volume, facts.seconds or 0.0, material)
    did(cost=float(price.total), currency=price.currency)
