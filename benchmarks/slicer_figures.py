"""Compare the G-code of meshhub-slicer with that of the slicers' own command lines, on the same files and settings.

    python -m benchmarks.slicer_figures prusa FOLDER [--seconds 500] [--out figures.csv]

Continues a table that exists. Needs the distribution, and the slicer.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import os
import platform
import subprocess
import tempfile
import time
from pathlib import Path

from meshhub_gcode.facts import read_facts
from meshhub_slicer import SlicerOptions
from meshhub_slicer.cura import (
    SEARCH_VARIABLE,
    TIME,
    VOLUME,
    find_definition,
    find_definitions,
    make_command,
    make_settings,
    state_figures,
)
from meshhub_slicer.printing import Order

from meshhub import MeshhubError, Registry, Scene
from meshhub.toolkit.slicers import run_slicer

PRINTERS = {"prusa": "prusa-mk3s", "cura": "creality-ender-3"}
"""Printers with profiles in the slicers of Debian 12."""

BEDS = {"prusa": "125,105"}

FIELDS = ("machine", "recorded", "file", "seconds", "own_seconds", "filament_mm", "own_filament_mm", "layers", "error")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("slicer", choices=PRINTERS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=500)
    parser.add_argument("--out", type=Path, default=Path("figures.csv"))
    arguments = parser.parse_args()
    done = set()
    if arguments.out.exists():
        with arguments.out.open() as file:
            done = {row["file"] for row in csv.DictReader(file)}
    end = time.monotonic() + arguments.seconds
    files = sorted((file for file in arguments.folder.iterdir() if file.suffix.lower() == ".stl"), key=_size)
    with arguments.out.open("a", newline="") as file, Registry() as registry:
        table = csv.DictWriter(file, FIELDS)
        if not done:
            table.writeheader()
        for model in files:
            if model.name in done:
                continue
            if time.monotonic() > end:
                break
            table.writerow(compare(registry, arguments.slicer, model))
            file.flush()


def _size(file: Path) -> int:
    return file.stat().st_size


def compare(registry: Registry, slicer: str, model: Path) -> dict[str, object]:
    """Return the figures of both ways."""
    row: dict[str, object] = {"machine": platform.processor(), "recorded": str(datetime.date.today())}
    row |= {"file": model.name}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        options = {"slicer_program": slicer, "slicer_printer": PRINTERS[slicer], "slicer_supports": "none"}
        try:
            report = registry.convert(model, folder / "ours.gcode", **options)
        except MeshhubError as error:
            return row | {"error": str(error)[:120]}
        figures = report.steps[-1].figures
        row |= {name: figures[name] for name in ("seconds", "filament_mm", "layers")}
        text = (folder / "ours.gcode").read_text()
        make = _run_prusa if slicer == "prusa" else _run_cura
        try:
            own = read_facts(make(text, model, folder).read_bytes())
        except subprocess.CalledProcessError:
            return row | {"error": f"the command line of {slicer} alone fails"}
        row |= {"own_seconds": own.seconds, "own_filament_mm": round(own.filament_mm or 0.0, 2)}
    return row


def _run_prusa(text: str, model: Path, folder: Path) -> Path:
    """Slice the file with the settings that the G-code lists, by the command line alone."""
    block = text[text.index("; prusaslicer_config = begin") :].splitlines()[1:-1]
    (folder / "own.ini").write_text("".join(f"{line[2:]}\n" for line in block if line.startswith("; ")))
    command = [
        "prusa-slicer",
        "--export-gcode",
        "--load",
        "own.ini",
        "--center",
        BEDS["prusa"],
        "--output",
        "own.gcode",
    ]
    rotation = ["--rotate", "90"] if "turned by 90" in text else []
    subprocess.run([*command, *rotation, str(model)], cwd=folder, check=True, capture_output=True)
    return folder / "own.gcode"


def _run_cura(_: str, model: Path, folder: Path) -> Path:
    """Slice the file by the command line of the writer."""
    folders = find_definitions()
    options = SlicerOptions(slicer_program="cura", slicer_printer=PRINTERS["cura"], slicer_supports="none")
    definition = find_definition(PRINTERS["cura"], folders)
    settings = make_settings(Order(Scene((), ()), options, {}, "cura", ".gcode", folder), definition, folders)
    command = [*make_command("CuraEngine", definition, settings), "-l", str(model), "-o", "own.gcode"]
    search = {SEARCH_VARIABLE: os.pathsep.join(map(str, folders))}
    output = run_slicer("CuraEngine", command, folder / "log", search)
    seconds, volume = TIME.search(output), VOLUME.search(output)
    assert seconds is not None
    assert volume is not None
    state_figures(folder / "own.gcode", float(seconds[1]), float(volume[1]))
    return folder / "own.gcode"


if __name__ == "__main__":
    main()
