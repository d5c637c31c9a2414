"""A sound plug-in, and one that is wrong for each contract: its format is a scene as JSON."""

from __future__ import annotations

import base64
import ctypes
import os
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta, Struct

from meshhub import (
    Format,
    Frame,
    Magic,
    Operation,
    Reader,
    Source,
    Stage,
    Target,
    UnreadableFile,
    Writer,
    hookimpl,
)
from meshhub.model.capabilities import FEATURES
from meshhub.model.scene import Image, Material, Mesh, Part, Scene
from meshhub.toolkit.geometry import baked, moved, transformed

MAGIC = b"sound!"
FORMAT = Format(id="sound", label="Sound", extensions=(".sound",), magic=(Magic(MAGIC),))


class SoundOptions(Struct, frozen=True, kw_only=True):
    sound_loud: Annotated[bool, Meta(title="Loud", description="Changes nothing.")] = False


class LiftOptions(Struct, frozen=True, kw_only=True):
    lift_mm: Annotated[float, Meta(title="Lift", description="Move up.", ge=0, le=1000)] | None = None


class Untitled(Struct, frozen=True, kw_only=True):
    sound_quiet: bool = False


class Undescribed(Struct, frozen=True, kw_only=True):
    sound_quiet: Annotated[bool, Meta(title="Quiet")] = False


class Unbounded(Struct, frozen=True, kw_only=True):
    sound_quiet: Annotated[float, Meta(title="Quiet", description="Of 10.", ge=0, le=10)] = 11.0


class UndescribedLift(Struct, frozen=True, kw_only=True):
    lift_far: Annotated[bool, Meta(title="Far")] = False


class Misnamed(Struct, frozen=True, kw_only=True):
    volume: Annotated[float, Meta(title="Volume", description="Of 11.")] | None = None


class Exemplary(Struct, frozen=True, kw_only=True):
    lift_mm: Annotated[str, Meta(title="Lift", description="Up.", examples=["7 mm"])] | None = None


class Contradictory(Struct, frozen=True, kw_only=True):
    lift_mm: Annotated[float, Meta(title="Lift", description="Up.", le=5, examples=[7])] | None = None


# ---------------------------------------------------------------- the sound format


class _Mesh(Struct):
    name: str
    vertices: list[tuple[float, float, float]]
    faces: list[tuple[int, int, int]]
    normals: list[tuple[float, float, float]] | None
    uv: list[tuple[float, float]] | None
    colors: list[tuple[int, int, int, int]] | None
    face_material: list[int] | None


class _Part(Struct):
    mesh: int
    transform: list[tuple[float, float, float, float]]
    name: str
    path: tuple[str, ...]
    material: int | None


class _File(Struct):
    unit: str
    meshes: list[_Mesh]
    parts: list[_Part]
    materials: list[tuple[str, tuple[float, float, float, float], int | None]]
    images: list[tuple[str, str]]


def read(source: Source, options: SoundOptions) -> Scene:
    data = source.read()
    if not data.startswith(MAGIC):
        raise UnreadableFile("it does not begin as it must; send another")
    try:
        file = msgspec.json.decode(data.removeprefix(MAGIC), type=_File)
        if file.unit != "mm":
            raise UnreadableFile("its unit is unknown; send another")
        return Scene(
            tuple(
                Mesh(
                    np.array(one.vertices, np.float64).reshape(-1, 3),
                    np.array(one.faces, np.int32).reshape(-1, 3),
                    *(None if kept is None else np.array(kept) for kept in (one.normals, one.uv)),
                    None if one.colors is None else np.array(one.colors, np.uint8),
                    None if one.face_material is None else np.array(one.face_material, np.int32),
                    one.name,
                )
                for one in file.meshes
            ),
            tuple(Part(one.mesh, np.array(one.transform), one.name, one.path, one.material) for one in file.parts),
            tuple(Material(name, color, image) for name, color, image in file.materials),
            tuple(Image(base64.b64decode(held), kind) for kind, held in file.images),
        )
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError, OverflowError):
        raise UnreadableFile("it is damaged; send another") from None


def sniff(head: bytes, size: int) -> int:
    return 100 if head.startswith(MAGIC) else 0


def write(scene: Scene, target: Target, options: SoundOptions) -> None:
    def rows(values: Any) -> Any:
        return None if values is None else values.tolist()

    file = _File(
        "mm",
        [
            _Mesh(one.name, *map(rows, (one.vertices, one.faces, one.normals, one.uv, one.colors, one.face_material)))
            for one in scene.meshes
        ],
        [_Part(one.mesh, rows(one.transform), one.name, one.path, one.material) for one in scene.parts],
        [(one.name, one.base_color, one.base_color_image) for one in scene.materials],
        [(one.media_type, base64.b64encode(one.data).decode()) for one in scene.images],
    )
    with target.open() as out:
        out.write(MAGIC + msgspec.json.encode(file))


def lift_as_said(scene: Scene, options: Exemplary) -> Scene:
    number, unit = (options.lift_mm or "").split()
    assert unit == "mm"
    return lift(scene, LiftOptions(lift_mm=float(number)))


def lift(scene: Scene, options: LiftOptions) -> Scene:
    matrix = np.eye(4)
    matrix[2, 3] = options.lift_mm or 0
    return moved(scene, matrix)


# ---------------------------------------------------------------- what can be wrong with a reader


def each_mesh(scene: Scene, change: Callable[[Mesh], Mesh]) -> Scene:
    return replace(scene, meshes=tuple(map(change, scene.meshes)))


def read_larger(source: Source, options: SoundOptions) -> Scene:
    return each_mesh(read(source, options), lambda mesh: replace(mesh, vertices=mesh.vertices * 10))


def read_lying(source: Source, options: SoundOptions) -> Scene:
    return replace(read(source, options), frame=Frame("mm", "y"))


def read_inside_out(source: Source, options: SoundOptions) -> Scene:
    return each_mesh(read(source, options), lambda mesh: replace(mesh, faces=mesh.faces[:, ::-1]))


def read_metres(source: Source, options: SoundOptions) -> Scene:
    scene = each_mesh(read(source, options), lambda mesh: replace(mesh, vertices=mesh.vertices / 1000))
    return replace(scene, frame=Frame("m", "z"))


def read_bare(source: Source, options: SoundOptions) -> Scene:
    scene = read(source, options)
    parts = tuple(Part(index, part.transform) for index, part in enumerate(scene.parts))
    return Scene(
        tuple(Mesh(scene.meshes[one.mesh].vertices, scene.meshes[one.mesh].faces) for one in scene.parts), parts
    )


def read_by_hash(source: Source, options: SoundOptions) -> Scene:
    return replace(read(source, options), name=str(hash("salted")))


def read_not_finite(source: Source, options: SoundOptions) -> Scene:
    return each_mesh(read(source, options), lambda mesh: replace(mesh, uv=np.full((len(mesh.vertices), 2), np.nan)))


def read_nothing(source: Source, options: SoundOptions) -> Scene:
    if not source.size:
        return Scene((Mesh(np.eye(3), np.array([[0, 1, 2]], np.int32)),), (Part(0),))
    return read(source, options)


def read_raising(source: Source, options: SoundOptions) -> Scene:
    msgspec.json.decode(source.read().removeprefix(MAGIC))
    return read(source, options)


def read_warning(source: Source, options: SoundOptions) -> Scene:
    if source.size < 20:
        warnings.warn("short", stacklevel=1)
    return read(source, options)


def read_littering(source: Source, options: SoundOptions) -> Scene:
    tempfile.mkstemp()
    return read(source, options)


def read_printing(source: Source, options: SoundOptions) -> Scene:
    sys.stdout.write("reading")
    return read(source, options)


def read_greedy(source: Source, options: SoundOptions) -> Scene:
    if not source.read().startswith(MAGIC):
        raise MemoryError
    return read(source, options)


def read_crashing(source: Source, options: SoundOptions) -> Scene:
    if source.size == 83 and not source.read().isascii():
        os._exit(3)
    return read(source, options)


def read_hanging(source: Source, options: SoundOptions) -> Scene:
    # not for ever, so that the test of the kit ends even if the kit does not end this
    end = time.process_time() + 15
    while source.size == 83 and not source.read().isascii() and time.process_time() < end:
        pass
    return read(source, options)


def read_and_exit(source: Source, options: SoundOptions) -> Scene:
    os._exit(0)


def read_and_quit(source: Source, options: SoundOptions) -> Scene:
    sys.exit(0)


def read_and_end_natively(source: Source, options: SoundOptions) -> Scene:
    ctypes.CDLL(None).exit(0)
    return read(source, options)


def read_asleep(source: Source, options: SoundOptions) -> Scene:
    time.sleep(40)
    return read(source, options)


def sniff_above(head: bytes, size: int) -> int:
    return 101 if head.startswith(MAGIC) else 0


def sniff_below(head: bytes, size: int) -> int:
    return 0 if head.startswith(MAGIC) else -1


def sniff_text(head: bytes, size: int) -> str:
    return "100"


def sniff_raising(head: bytes, size: int) -> int:
    return 100 * (head[0] == MAGIC[0])


def sniff_and_quit(head: bytes, size: int) -> int:
    sys.exit(0)


def sniff_and_exit(head: bytes, size: int) -> int:
    os._exit(0)


def sniff_words(head: bytes, size: int) -> int:
    """Take for ever over a long run that does not end as it should."""
    return 100 if re.match(rb"(\w+\s?)*$", head) else 0


def sniff_name(head: bytes, size: int) -> int:
    """The same, only behind the magic."""
    return 100 if re.match(rb'sound!\{"unit":"([a-z]+)+"', head) else 0


def sniff_everywhere(head: bytes, size: int) -> int:
    """Look for a run's end from each of its places."""
    return 100 if re.search(rb"a+b", head) else 0


# ---------------------------------------------------------------- what can be wrong with a writer


def write_and_exit(scene: Scene, target: Target, options: SoundOptions) -> None:
    os._exit(0)


def write_lying(scene: Scene, target: Target, options: SoundOptions) -> None:
    write(each_mesh(scene, lambda mesh: replace(mesh, vertices=mesh.vertices[:, [0, 2, 1]])), target, options)


def write_once(scene: Scene, target: Target, options: SoundOptions) -> None:
    kept = {part.mesh: part for part in reversed(scene.parts)}
    write(replace(scene, parts=tuple(kept[index] for index in sorted(kept))), target, options)


def write_in_one_place(scene: Scene, target: Target, options: SoundOptions) -> None:
    write(replace(scene, parts=tuple(replace(part, transform=np.eye(4)) for part in scene.parts)), target, options)


def write_mirrored_inside_out(scene: Scene, target: Target, options: SoundOptions) -> None:
    meshes = tuple(
        Mesh(transformed(scene.meshes[part.mesh].vertices, part.transform), scene.meshes[part.mesh].faces)
        for part in scene.parts
    )
    write(Scene(meshes, tuple(Part(index) for index in range(len(meshes)))), target, options)


def write_without(feature: str) -> Callable[[Scene], Scene]:
    def stripped(scene: Scene) -> Scene:
        if feature == "names":
            scene = each_mesh(scene, lambda mesh: replace(mesh, name=""))
            return replace(scene, parts=tuple(replace(part, name="") for part in scene.parts))
        if feature == "instances":
            return baked(scene)
        if feature == "materials":
            return replace(scene, materials=tuple(Material(one.name) for one in scene.materials))
        if feature == "textures":
            return replace(scene, materials=tuple(replace(one, base_color_image=None) for one in scene.materials))
        return each_mesh(scene, lambda mesh: replace(mesh, **{feature: None}))

    return stripped


def write_no_names(scene: Scene, target: Target, options: SoundOptions) -> None:
    write(write_without("names")(scene), target, options)


def write_no_instances(scene: Scene, target: Target, options: SoundOptions) -> None:
    write(write_without("instances")(scene), target, options)


def write_no_materials(scene: Scene, target: Target, options: SoundOptions) -> None:
    write(write_without("materials")(scene), target, options)


def write_no_textures(scene: Scene, target: Target, options: SoundOptions) -> None:
    write(write_without("textures")(scene), target, options)


def write_no_normals(scene: Scene, target: Target, options: SoundOptions) -> None:
    write(write_without("normals")(scene), target, options)


def write_no_uv(scene: Scene, target: Target, options: SoundOptions) -> None:
    write(write_without("uv")(scene), target, options)


def write_pale(scene: Scene, target: Target, options: SoundOptions) -> None:
    def paled(mesh: Mesh) -> Mesh:
        return mesh if mesh.colors is None else replace(mesh, colors=mesh.colors // 2 + 127)

    write(each_mesh(scene, paled), target, options)


def write_textured_only(scene: Scene, target: Target, options: SoundOptions) -> None:
    if scene.images:
        scene = replace(scene, parts=tuple(part for part in scene.parts if scene.meshes[part.mesh].uv is not None))
    write(scene, target, options)


def _signed(scene: Scene, target: Target, word: str) -> None:
    write(each_mesh(scene, lambda mesh: replace(mesh, name=mesh.name + word)), target, SoundOptions())


def write_by_hash(scene: Scene, target: Target, options: SoundOptions) -> None:
    _signed(scene, target, str(hash("salted")))


def write_by_time(scene: Scene, target: Target, options: SoundOptions) -> None:
    _signed(scene, target, time.strftime("%Y-%m-%d", time.localtime()))


def write_signed(scene: Scene, target: Target, options: SoundOptions) -> None:
    _signed(scene, target, target.name)


def write_beside(scene: Scene, target: Target, options: SoundOptions) -> None:
    if target.folder is not None:
        (target.folder / "beside.txt").write_text("here")
    write(scene, target, options)


def write_in_place(scene: Scene, target: Target, options: SoundOptions) -> None:
    vertices = scene.meshes[0].vertices
    held = vertices if vertices.base is None else vertices.base
    held.flags.writeable = True
    held += 1
    write(scene, target, options)


def write_littering(scene: Scene, target: Target, options: SoundOptions) -> None:
    Path("scratch.txt").write_text("here")
    write(scene, target, options)


def write_no_sheets(scene: Scene, target: Target, options: SoundOptions) -> None:
    assert all(len(mesh.faces) > 2 for mesh in scene.meshes)
    write(scene, target, options)


# ---------------------------------------------------------------- what can be wrong with an operation


def lift_and_exit(scene: Scene, options: LiftOptions) -> Scene:
    os._exit(0)


def lift_busily(scene: Scene, options: LiftOptions) -> Scene:
    while True:
        pass


def lift_open(scene: Scene, options: LiftOptions) -> Scene:
    return lift(each_mesh(scene, lambda mesh: replace(mesh, faces=mesh.faces[1:])), options)


def lift_inside_out(scene: Scene, options: LiftOptions) -> Scene:
    return lift(each_mesh(scene, lambda mesh: replace(mesh, faces=mesh.faces[:, ::-1])), options)


def lift_one(scene: Scene, options: LiftOptions) -> Scene:
    return lift(replace(scene, parts=scene.parts[:1]), options)


def lift_onto_one_place(scene: Scene, options: LiftOptions) -> Scene:
    return replace(scene, parts=tuple(replace(part, transform=np.eye(4)) for part in scene.parts))


def lift_no_colors(scene: Scene, options: LiftOptions) -> Scene:
    return lift(write_without("colors")(scene), options)


def lift_by_hash(scene: Scene, options: LiftOptions) -> Scene:
    return replace(lift(scene, options), name=str(hash("salted")))


def lift_in_place(scene: Scene, options: LiftOptions) -> Scene:
    vertices = scene.meshes[0].vertices
    held = vertices if vertices.base is None else vertices.base
    held.flags.writeable = True
    held += [0, 0, options.lift_mm]
    return scene


def lift_warning(scene: Scene, options: LiftOptions) -> Scene:
    warnings.warn("lifting", stacklevel=1)
    return lift(scene, options)


def lift_no_sheets(scene: Scene, options: LiftOptions) -> Scene:
    assert all(len(mesh.faces) > 2 for mesh in scene.meshes)
    return lift(scene, options)


# ---------------------------------------------------------------- the plug-ins


class Wrong:
    """A plug-in like the sound one, but for what it is told."""

    def __init__(self, name: str = "sound", reader: Any = None, writer: Any = None, operation: Any = None) -> None:
        self.__name__ = name
        self.changes = {"reader": reader or {}, "writer": writer or {}, "operation": operation or {}}

    @hookimpl
    def meshhub_readers(self) -> list[Reader]:
        declared = Reader(
            format=FORMAT,
            run="faulty_plugins:read",
            sniff="faulty_plugins:sniff",
            options=SoundOptions,
            carries=FEATURES,
        )
        return [msgspec.structs.replace(declared, **self.changes["reader"])]

    @hookimpl
    def meshhub_writers(self) -> list[Writer]:
        declared = Writer(format=FORMAT, run="faulty_plugins:write", options=SoundOptions, carries=FEATURES)
        return [msgspec.structs.replace(declared, **self.changes["writer"])]

    @hookimpl
    def meshhub_operations(self) -> list[Operation]:
        declared = Operation(id="lift", label="Lift", run="faulty_plugins:lift", stage=Stage.PLACE, options=LiftOptions)
        return [msgspec.structs.replace(declared, **self.changes["operation"])]
