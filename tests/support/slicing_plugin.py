"""Small format that the page offers beside the operations: three layers, and what they take to print."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from msgspec import Meta, Struct

from meshhub import Format, InvalidOption, Part, Reader, Scene, Source, Target, Writer, did, hookimpl
from meshhub.model.scene import Mesh

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


def write_layers(scene: Scene, target: Target, options: LayersOptions) -> None:
    if options.layers_printer is None:
        raise InvalidOption("layers are for one printer; set '{layers_printer}'", options=("layers_printer",))
    did(seconds=5400.0, layers=len(LAYERS_MM), filament_mm=4200.0, filament_g=12.5, cost=3.25, currency="EUR")
    with target.open() as file:
        file.write(b"; prepared by meshhub\n")


def read_layers(source: Source, options: object) -> Scene:
    did(layers_mm=LAYERS_MM)
    corners = np.array([[x, y, z] for z in (0.0, 30.0) for y in (0.0, 20.0) for x in (0.0, 20.0)])
    faces = [[0, 2, 3], [0, 3, 1], [4, 5, 7], [4, 7, 6], [0, 1, 5], [0, 5, 4]]
    faces += [[1, 3, 7], [1, 7, 5], [3, 2, 6], [3, 6, 7], [2, 0, 4], [2, 4, 6]]
    return Scene((Mesh(corners, np.array(faces, np.int32)),), (Part(0),))
