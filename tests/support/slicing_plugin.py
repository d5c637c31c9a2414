"""Small format that the page offers beside the operations, and printers for it, which are folders.

The folder of each printer is in that of the variable BENCH; `busy` prints, and `off` does not respond.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, BinaryIO

import numpy as np
from msgspec import Meta, Struct

from meshhub import (
    Caller,
    Format,
    InvalidOption,
    NetworkPrinter,
    OutputExists,
    Part,
    Reader,
    Scene,
    Source,
    Storage,
    Target,
    UnreadableFile,
    Writer,
    did,
    hookimpl,
)
from meshhub.model.scene import Mesh
from meshhub.toolkit.objects import divide_beds

MESHHUB_API = "1.0"

LAYERS = Format(id="layers", label="Layers", extensions=(".layers",), media_types=("text/x-layers",))

LAYERS_MM = [10.0, 20.0, 30.0]


class LayersOptions(Struct, frozen=True, kw_only=True):
    layers_printer: (
        Annotated[
            str,
            Meta(title="Printer of the layers", extra={"everyday": True, "titles": {"mk4": "Prusa MK4", "k1": "K1"}}),
        ]
        | None
    ) = None
    layers_speed: Annotated[int, Meta(title="Speed of the layers")] = 50


@hookimpl
def meshhub_readers() -> list[Reader]:
    return [Reader(format=LAYERS, run="slicing_plugin:read_layers")]


@hookimpl
def meshhub_writers() -> list[Writer]:
    return [Writer(format=LAYERS, run="slicing_plugin:write_layers", options=LayersOptions, action="Slice")]


@hookimpl
def meshhub_storages() -> list[Storage]:
    return [
        Storage(
            scheme="bench",
            run="slicing_plugin:BenchFile",
            printers="slicing_plugin:list_printers",
            prints=(".layers",),
            start_query="?print=true",
            requires="bench",
        )
    ]


@hookimpl
def meshhub_grants(caller: Caller) -> list[str]:
    return ["bench"] if caller.id or os.environ.get("BENCH_FOR") == "everybody" else []


def list_printers(scheme: str) -> list[NetworkPrinter]:
    states = {"left": "ready", "busy": "printing", "off": ""}
    return [
        NetworkPrinter(address=f"{scheme}://{name}", name=name, state=state, error="" if state else "off is off")
        for name, state in states.items()
    ]


class BenchFile:
    """File on a printer; the file `starts` lists what was printed."""

    def __init__(self, address: str) -> None:
        place, _, query = address.partition("://")[2].partition("?")
        self.printer, _, self.name = place.partition("/")
        self.start = query == "print=true"
        self.folder = Path(os.environ["BENCH"], self.printer)

    def fetch(self, file: BinaryIO) -> None:
        raise UnreadableFile("files are not read from printers")

    def store(self, files: Sequence[Path], *, overwrite: bool) -> None:
        if self.printer == "off":
            raise OSError(errno.EHOSTUNREACH, "off cannot be reached; switch it on")
        if self.printer == "busy" and self.start:
            raise OSError(errno.EBUSY, "busy is printing, so nothing was sent")
        self.folder.mkdir(exist_ok=True)
        if (self.folder / self.name).exists() and not overwrite:
            raise OutputExists(f"{self.name} already exists on {self.printer}")
        shutil.copy(files[0], self.folder / self.name)
        if self.start:
            with (self.folder / "starts").open("a") as starts:
                starts.write(f"{self.name}\n")


def write_layers(scene: Scene, target: Target, options: LayersOptions) -> None:
    if options.layers_printer is None:
        raise InvalidOption("layers are for one printer; set '{layers_printer}'", options=("layers_printer",))
    did(seconds=5400.0, layers=len(LAYERS_MM), filament_mm=4200.0, filament_g=12.5, cost=3.25, currency="EUR")
    for number, _ in enumerate(divide_beds(scene)):
        with (target.add_bed() if number else target).open() as file:
            file.write(b"; prepared by meshhub\n")


def read_layers(source: Source, options: object) -> Scene:
    did(layers_mm=LAYERS_MM)
    corners = np.array([[x, y, z] for z in (0.0, 30.0) for y in (0.0, 20.0) for x in (0.0, 20.0)])
    faces = [[0, 2, 3], [0, 3, 1], [4, 5, 7], [4, 7, 6], [0, 1, 5], [0, 5, 4]]
    faces += [[1, 3, 7], [1, 7, 5], [3, 2, 6], [3, 6, 7], [2, 0, 4], [2, 4, 6]]
    return Scene((Mesh(corners, np.array(faces, np.int32)),), (Part(0),))
