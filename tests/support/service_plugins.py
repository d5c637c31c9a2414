"""Small format for tests of the service; the words of its one line select what the reader does."""

from __future__ import annotations

import ctypes
import json
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from meshhub import EmptyModel, ExternalReference, ModelTooComplex, PluginError, Scene, UnreadableFile, did, note
from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import Format, Operation, Reader, Stage, Writer
from meshhub.model.chain import Chain
from meshhub.model.plans import Caller, Objection
from meshhub.model.source import Source, Target
from models import brick, scene_of

TOY = Format(id="toy", label="Toy", extensions=(".toy",), media_types=("model/x-toy",))
GILDED = Format(id="gilded", label="Gilded toy", extensions=(".gilded",))
LACKING = Format(id="lacking", label="Lacking toy", extensions=(".lacking",))


class ToyOptions(Struct, frozen=True, kw_only=True):
    toy_size: Annotated[float, Meta(title="Size", description="How tall.", gt=0, le=100)] | None = None
    toy_notes: Annotated[int, Meta(title="Notes", description="How many.", ge=0, le=10_000)] = 0


class PolishOptions(Struct, frozen=True, kw_only=True):
    polish: Annotated[bool, Meta(title="Polish", description="Note that it was polished.")] = False
    polish_strength: Annotated[float, Meta(title="Strength", description="Of the polish.", ge=0, le=1)] | None = None


class ToyWriting(Struct, frozen=True, kw_only=True):
    toy_twins: Annotated[bool, Meta(title="Twins", description="Write a companion.")] = False
    toy_weight: Annotated[int, Meta(title="Weight", description="Bytes to write.", ge=0, le=1 << 30)] = 0


def sniff(head: bytes, size: int) -> int:
    return 90 if head.startswith(b"toy") else 0


def read(source: Source, options: ToyOptions) -> Scene:
    words = source.read().decode("utf-8", "replace").split()
    if not words or words[0] != "toy":
        raise UnreadableFile(f"{source.name!r} does not begin with toy; write toy first")
    for number in range(options.toy_notes):
        note(f"remark_{number}", "a remark that is as long as remarks should not be: " + "é" * 50)
    match words[1:]:
        case [name] if name in ERRORS:
            kind, message = ERRORS[name]
            raise kind(message)
        case ["crash"]:
            ctypes.string_at(0)
        case ["hang"]:
            # the interpreter lock is held: only a kill ends it
            ctypes.PyDLL(None).sleep(600)
        case ["wait", path]:
            # write a file to report the start, then wait for the caller's file or the end of the process
            Path(f"{path}.{os.getpid()}").write_text("running")
            while not Path(path).exists():
                time.sleep(0.01)
        case ["needs", name]:
            if source.sibling(name) is None:
                raise ExternalReference(f"{name!r} is missing; send it too")
            did(companion=name)
    return scene_of(brick(1, 2, options.toy_size or 3))


ERRORS: dict[str, tuple[type[Exception], str]] = {
    "empty": (EmptyModel, "there is no toy in it; put one in"),
    "complex": (ModelTooComplex, "far too many toys; reduce them with optimize_target_faces"),
    "broken": (PluginError, "the toy broke"),
    "fault": (KeyError, "secret path /etc/toy"),
}
"""Errors that the reader raises, by word in the file."""


def write(scene: Scene, target: Target, options: Struct) -> None:
    with target.open() as file:
        file.write(json.dumps({"faces": scene.face_count}).encode())
        if isinstance(options, ToyWriting):
            file.write(bytes(options.toy_weight))
    if isinstance(options, ToyWriting) and options.toy_twins:
        target.companion("twin.txt", b"%d" % scene.meshes[0].vertices[:, 2].max())


@hookimpl
def meshhub_readers() -> Iterable[Reader]:
    return [Reader(format=TOY, options=ToyOptions, run="service_plugins:read", sniff="service_plugins:sniff")]


def polish(scene: Scene, _options: PolishOptions) -> Scene:
    note("polished", "the toy was polished")
    return scene


@hookimpl
def meshhub_operations() -> Iterable[Operation]:
    return [
        Operation(id="polish", label="Polish", stage=Stage.PLACE, options=PolishOptions, run="service_plugins:polish")
    ]


@hookimpl
def meshhub_writers() -> Iterable[Writer]:
    return [
        Writer(format=TOY, options=ToyWriting, run="service_plugins:write"),
        Writer(format=GILDED, run="service_plugins:write", requires="pro"),
        Writer(format=LACKING, run="service_plugins:write", needs=("no_such_module",), install="toys[all]"),
    ]


class Reviewer:
    """Review that objects to one size."""

    @hookimpl
    def meshhub_review(self, chain: Chain, caller: Caller) -> Iterable[Objection]:
        if chain.steps[0].options.get("toy_size") == 66:
            return [Objection(code="size_refused", message="66 is not a size", remedy="take 67")]
        if chain.steps[0].options.get("toy_size") == 67:
            raise RuntimeError("a broken gate, at /secret/path")
        return []
