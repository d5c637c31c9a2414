"""Operation and writer with options that depend on each other."""

from __future__ import annotations

import os
import time
from typing import Annotated

from msgspec import Meta, Struct

from meshhub import Format, InvalidOption, Operation, Scene, Stage, Target, Writer, hookimpl


class CoatOptions(Struct, frozen=True, kw_only=True):
    coat_gray: Annotated[int, Meta(title="Gray", description="Brightness.", ge=0, le=255)] | None = None
    coat_layers: (
        Annotated[int, Meta(title="Layers", description="Layers.", ge=1, le=99, extra={"requires": ("coat_gray",)})]
        | None
    ) = None
    coat_clear: Annotated[
        bool,
        Meta(title="Clear", description="Remove.", extra={"conflicts_with": ("coat_gray", "repair")}),
    ] = False
    coat_mood: Annotated[str, Meta(title="Mood", description="What the check does.")] = ""

    def check(self) -> None:
        if self.coat_gray == 0 and self.coat_layers == 2:
            raise InvalidOption("{coat_layers} 2 is too much for black", options=("coat_layers",))
        if self.coat_gray == 0 and self.coat_layers == 3:
            raise ValueError("three black layers never dry")
        match self.coat_mood:
            case "raise":
                raise KeyError("a secret")
            case "hang":
                time.sleep(60)
            case "exit":
                os._exit(3)


class CoatWriterOptions(Struct, frozen=True, kw_only=True):
    coatfile_lines: Annotated[int, Meta(title="Lines", description="Lines of text.", ge=1)] = 1
    coatfile_short: Annotated[bool, Meta(title="Short", description="Few lines.")] = False

    def check(self) -> None:
        if self.coatfile_short and self.coatfile_lines > 5:
            raise ValueError("a short file has at most five lines")


@hookimpl
def meshhub_operations() -> list[Operation]:
    return [Operation(id="coat", label="Coat", stage=Stage.PLACE, options=CoatOptions, run="coat:run")]


@hookimpl
def meshhub_writers() -> list[Writer]:
    coat_file = Format(id="coatfile", label="Coat", extensions=(".coat",))
    return [Writer(format=coat_file, options=CoatWriterOptions, run="coat:write")]


def run(scene: Scene, options: CoatOptions) -> Scene:
    return scene


def write(scene: Scene, target: Target, options: CoatWriterOptions) -> None:
    with target.open() as file:
        file.write(b"coat\n" * options.coatfile_lines)
