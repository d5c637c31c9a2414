"""A correct demo plug-in, whose format is a scene as JSON, and faulty variants of it for each contract."""

from __future__ import annotations

import base64
import ctypes
import os
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta, Struct

from meshhub import (
    Check,
    Finding,
    Format,
    Frame,
    Magic,
    Operation,
    Place,
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
from meshhub.toolkit.geometry import baked, moved, soup, transformed

MAGIC = b"demo!"
FORMAT = Format(id="demo", label="Demo", extensions=(".demo",), magic=(Magic(MAGIC),))


class DemoOptions(Struct, frozen=True, kw_only=True):
    demo_loud: Annotated[bool, Meta(title="Loud", description="Changes nothing.")] = False


class LiftOptions(Struct, frozen=True, kw_only=True):
    lift_mm: Annotated[float, Meta(title="Lift", description="Move up.", ge=0, le=1000)] | None = None


class TallOptions(Struct, frozen=True, kw_only=True):
    tall_mm: Annotated[float, Meta(title="Height", description="Most height.", ge=1)] = 100.0


class UntitledOption(Struct, frozen=True, kw_only=True):
    demo_quiet: bool = False


class UndescribedOption(Struct, frozen=True, kw_only=True):
    demo_quiet: Annotated[bool, Meta(title="Quiet")] = False


class OutOfBoundsDefault(Struct, frozen=True, kw_only=True):
    demo_quiet: Annotated[float, Meta(title="Quiet", description="Of 10.", ge=0, le=10)] = 11.0


class UndescribedLiftOption(Struct, frozen=True, kw_only=True):
    lift_far: Annotated[bool, Meta(title="Far")] = False


class MisnamedOption(Struct, frozen=True, kw_only=True):
    volume: Annotated[float, Meta(title="Volume", description="Of 11.")] | None = None


class TextOptionWithExample(Struct, frozen=True, kw_only=True):
    lift_mm: Annotated[str, Meta(title="Lift", description="Up.", examples=["7 mm"])] | None = None


class OutOfBoundsExample(Struct, frozen=True, kw_only=True):
    lift_mm: Annotated[float, Meta(title="Lift", description="Up.", le=5, examples=[7])] | None = None


# ---------------------------------------------------------------- the demo format


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
    metadata: dict[str, str]


def read(source: Source, options: DemoOptions) -> Scene:
    data = source.read()
    if not data.startswith(MAGIC):
        raise UnreadableFile("the file does not start with the magic bytes; send a demo file")
    try:
        file = msgspec.json.decode(data.removeprefix(MAGIC), type=_File)
        if file.unit != "mm":
            raise UnreadableFile("the unit is unknown; write the file in mm")
        return Scene(
            tuple(
                Mesh(
                    np.array(mesh.vertices, np.float64).reshape(-1, 3),
                    np.array(mesh.faces, np.int32).reshape(-1, 3),
                    *(None if values is None else np.array(values) for values in (mesh.normals, mesh.uv)),
                    None if mesh.colors is None else np.array(mesh.colors, np.uint8),
                    None if mesh.face_material is None else np.array(mesh.face_material, np.int32),
                    mesh.name,
                )
                for mesh in file.meshes
            ),
            tuple(
                Part(part.mesh, np.array(part.transform), part.name, part.path, part.material) for part in file.parts
            ),
            tuple(Material(name, color, image) for name, color, image in file.materials),
            tuple(Image(base64.b64decode(data), media_type) for media_type, data in file.images),
            metadata=file.metadata,
        )
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError, OverflowError):
        raise UnreadableFile("the file is damaged; export it again") from None


def sniff(head: bytes, size: int) -> int:
    return 100 if head.startswith(MAGIC) else 0


def write(scene: Scene, target: Target, options: DemoOptions) -> None:
    def rows(values: Any) -> Any:
        return None if values is None else values.tolist()

    file = _File(
        "mm",
        [
            _Mesh(
                mesh.name,
                *map(rows, (mesh.vertices, mesh.faces, mesh.normals, mesh.uv, mesh.colors, mesh.face_material)),
            )
            for mesh in scene.meshes
        ],
        [_Part(part.mesh, rows(part.transform), part.name, part.path, part.material) for part in scene.parts],
        [(each.name, each.base_color, each.base_color_image) for each in scene.materials],
        [(image.media_type, base64.b64encode(image.data).decode()) for image in scene.images],
        dict(scene.metadata),
    )
    with target.open() as out:
        out.write(MAGIC + msgspec.json.encode(file))


def lift_by_text(scene: Scene, options: TextOptionWithExample) -> Scene:
    number, unit = (options.lift_mm or "").split()
    assert unit == "mm"
    return lift(scene, LiftOptions(lift_mm=float(number)))


def lift(scene: Scene, options: LiftOptions) -> Scene:
    matrix = np.eye(4)
    matrix[2, 3] = options.lift_mm or 0
    return moved(scene, matrix)


# ---------------------------------------------------------------- faulty readers and sniffers


def change_meshes(scene: Scene, change: Callable[[Mesh], Mesh]) -> Scene:
    return replace(scene, meshes=tuple(map(change, scene.meshes)))


def read_by_stated_size(source: Source, options: DemoOptions) -> Scene:
    """Mistake the size of a text in another encoding for that of its content."""
    return read(source, options) if source.size == len(source.read()) else read_larger(source, options)


def read_larger(source: Source, options: DemoOptions) -> Scene:
    return change_meshes(read(source, options), lambda mesh: replace(mesh, vertices=mesh.vertices * 10))


def read_inside_out(source: Source, options: DemoOptions) -> Scene:
    return change_meshes(read(source, options), lambda mesh: replace(mesh, faces=mesh.faces[:, ::-1]))


def read_in_meters(source: Source, options: DemoOptions) -> Scene:
    scene = change_meshes(read(source, options), lambda mesh: replace(mesh, vertices=mesh.vertices / 1000))
    return replace(scene, frame=Frame("m", "z"))


def read_without_features(source: Source, options: DemoOptions) -> Scene:
    scene = read(source, options)
    parts = tuple(Part(index, part.transform) for index, part in enumerate(scene.parts))
    return Scene(
        tuple(Mesh(scene.meshes[part.mesh].vertices, scene.meshes[part.mesh].faces) for part in scene.parts), parts
    )


def read_by_hash(source: Source, options: DemoOptions) -> Scene:
    return replace(read(source, options), name=str(hash("salted")))


def read_not_finite(source: Source, options: DemoOptions) -> Scene:
    return change_meshes(read(source, options), lambda mesh: replace(mesh, uv=np.full((len(mesh.vertices), 2), np.nan)))


def read_empty_files(source: Source, options: DemoOptions) -> Scene:
    if not source.size:
        return Scene((Mesh(np.eye(3), np.array([[0, 1, 2]], np.int32)),), (Part(0),))
    return read(source, options)


def read_raising(source: Source, options: DemoOptions) -> Scene:
    msgspec.json.decode(source.read().removeprefix(MAGIC))
    return read(source, options)


def read_warning(source: Source, options: DemoOptions) -> Scene:
    if source.size < 20:
        warnings.warn("short", stacklevel=1)
    return read(source, options)


def read_littering(source: Source, options: DemoOptions) -> Scene:
    tempfile.mkstemp()
    return read(source, options)


def read_printing(source: Source, options: DemoOptions) -> Scene:
    sys.stdout.write("reading")
    return read(source, options)


def read_without_memory(source: Source, options: DemoOptions) -> Scene:
    if not source.read().startswith(MAGIC):
        raise MemoryError
    return read(source, options)


def read_crashing(source: Source, options: DemoOptions) -> Scene:
    if source.size == 83 and not source.read().isascii():
        os._exit(3)
    return read(source, options)


def read_hanging(source: Source, options: DemoOptions) -> Scene:
    # bounded, so that the test ends even if the kit does not kill the reader
    end = time.process_time() + 15
    while source.size == 83 and not source.read().isascii() and time.process_time() < end:
        pass
    return read(source, options)


def read_and_exit(source: Source, options: DemoOptions) -> Scene:
    os._exit(0)


def read_and_quit(source: Source, options: DemoOptions) -> Scene:
    sys.exit(0)


def read_and_end_natively(source: Source, options: DemoOptions) -> Scene:
    ctypes.CDLL(None).exit(0)
    return read(source, options)


def read_sleeping(source: Source, options: DemoOptions) -> Scene:
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
    """Backtrack exponentially over a long run with a mismatch at its end."""
    return 100 if re.match(rb"(\w+\s?)*$", head) else 0


def sniff_name(head: bytes, size: int) -> int:
    """Backtrack in the same way, but only after the magic bytes."""
    return 100 if re.match(rb'demo!\{"unit":"([a-z]+)+"', head) else 0


def sniff_everywhere(head: bytes, size: int) -> int:
    """Search for the end of a run from each of its positions, in quadratic time."""
    return 100 if re.search(rb"a+b", head) else 0


# ---------------------------------------------------------------- faulty writers


def write_and_exit(scene: Scene, target: Target, options: DemoOptions) -> None:
    os._exit(0)


def write_axes_swapped(scene: Scene, target: Target, options: DemoOptions) -> None:
    write(change_meshes(scene, lambda mesh: replace(mesh, vertices=mesh.vertices[:, [0, 2, 1]])), target, options)


def write_one_instance(scene: Scene, target: Target, options: DemoOptions) -> None:
    first_parts = {part.mesh: part for part in reversed(scene.parts)}
    write(replace(scene, parts=tuple(first_parts[index] for index in sorted(first_parts))), target, options)


def write_in_one_place(scene: Scene, target: Target, options: DemoOptions) -> None:
    write(replace(scene, parts=tuple(replace(part, transform=np.eye(4)) for part in scene.parts)), target, options)


def write_mirrored_inside_out(scene: Scene, target: Target, options: DemoOptions) -> None:
    meshes = tuple(
        Mesh(transformed(scene.meshes[part.mesh].vertices, part.transform), scene.meshes[part.mesh].faces)
        for part in scene.parts
    )
    write(Scene(meshes, tuple(Part(index) for index in range(len(meshes)))), target, options)


def without_feature(feature: str) -> Callable[[Scene], Scene]:
    def strip(scene: Scene) -> Scene:
        if feature == "names":
            scene = change_meshes(scene, lambda mesh: replace(mesh, name=""))
            return replace(scene, parts=tuple(replace(part, name="") for part in scene.parts))
        if feature == "hierarchy":
            return replace(scene, parts=tuple(replace(part, path=()) for part in scene.parts))
        if feature == "metadata":
            return replace(scene, metadata={})
        if feature == "instances":
            return baked(scene)
        if feature == "materials":
            return replace(scene, materials=tuple(Material(material.name) for material in scene.materials))
        if feature == "textures":
            return replace(
                scene, materials=tuple(replace(material, base_color_image=None) for material in scene.materials)
            )
        return change_meshes(scene, lambda mesh: replace(mesh, **{feature: None}))

    return strip


def write_no_names(scene: Scene, target: Target, options: DemoOptions) -> None:
    write(without_feature("names")(scene), target, options)


def write_no_hierarchy(scene: Scene, target: Target, options: DemoOptions) -> None:
    write(without_feature("hierarchy")(scene), target, options)


def write_no_metadata(scene: Scene, target: Target, options: DemoOptions) -> None:
    write(without_feature("metadata")(scene), target, options)


def write_no_instances(scene: Scene, target: Target, options: DemoOptions) -> None:
    write(without_feature("instances")(scene), target, options)


def write_no_materials(scene: Scene, target: Target, options: DemoOptions) -> None:
    write(without_feature("materials")(scene), target, options)


def write_no_textures(scene: Scene, target: Target, options: DemoOptions) -> None:
    write(without_feature("textures")(scene), target, options)


def write_no_normals(scene: Scene, target: Target, options: DemoOptions) -> None:
    write(without_feature("normals")(scene), target, options)


def write_no_uv(scene: Scene, target: Target, options: DemoOptions) -> None:
    write(without_feature("uv")(scene), target, options)


def write_faded_colors(scene: Scene, target: Target, options: DemoOptions) -> None:
    def fade(mesh: Mesh) -> Mesh:
        return mesh if mesh.colors is None else replace(mesh, colors=mesh.colors // 2 + 127)

    write(change_meshes(scene, fade), target, options)


def write_textured_only(scene: Scene, target: Target, options: DemoOptions) -> None:
    if scene.images:
        scene = replace(scene, parts=tuple(part for part in scene.parts if scene.meshes[part.mesh].uv is not None))
    write(scene, target, options)


def _write_with_suffix(scene: Scene, target: Target, suffix: str) -> None:
    write(change_meshes(scene, lambda mesh: replace(mesh, name=mesh.name + suffix)), target, DemoOptions())


def write_by_hash(scene: Scene, target: Target, options: DemoOptions) -> None:
    _write_with_suffix(scene, target, str(hash("salted")))


def write_by_time(scene: Scene, target: Target, options: DemoOptions) -> None:
    _write_with_suffix(scene, target, time.strftime("%Y-%m-%d", time.localtime()))


def write_file_name(scene: Scene, target: Target, options: DemoOptions) -> None:
    _write_with_suffix(scene, target, target.name)


def write_beside(scene: Scene, target: Target, options: DemoOptions) -> None:
    if target.folder is not None:
        (target.folder / "beside.txt").write_text("here")
    write(scene, target, options)


def write_in_place(scene: Scene, target: Target, options: DemoOptions) -> None:
    vertices = scene.meshes[0].vertices
    owner = vertices if vertices.base is None else vertices.base
    owner.flags.writeable = True
    owner += 1
    write(scene, target, options)


def write_littering(scene: Scene, target: Target, options: DemoOptions) -> None:
    Path("scratch.txt").write_text("here")
    write(scene, target, options)


def write_no_open_meshes(scene: Scene, target: Target, options: DemoOptions) -> None:
    assert all(len(mesh.faces) > 2 for mesh in scene.meshes)
    write(scene, target, options)


# ---------------------------------------------------------------- faulty operations


def lift_and_exit(scene: Scene, options: LiftOptions) -> Scene:
    os._exit(0)


def lift_busily(scene: Scene, options: LiftOptions) -> Scene:
    while True:
        pass


def lift_open(scene: Scene, options: LiftOptions) -> Scene:
    return lift(change_meshes(scene, lambda mesh: replace(mesh, faces=mesh.faces[1:])), options)


def lift_inside_out(scene: Scene, options: LiftOptions) -> Scene:
    return lift(change_meshes(scene, lambda mesh: replace(mesh, faces=mesh.faces[:, ::-1])), options)


def lift_one_part(scene: Scene, options: LiftOptions) -> Scene:
    return lift(replace(scene, parts=scene.parts[:1]), options)


def lift_to_one_place(scene: Scene, options: LiftOptions) -> Scene:
    return replace(scene, parts=tuple(replace(part, transform=np.eye(4)) for part in scene.parts))


def lift_no_colors(scene: Scene, options: LiftOptions) -> Scene:
    return lift(without_feature("colors")(scene), options)


def lift_by_hash(scene: Scene, options: LiftOptions) -> Scene:
    return replace(lift(scene, options), name=str(hash("salted")))


def lift_in_place(scene: Scene, options: LiftOptions) -> Scene:
    vertices = scene.meshes[0].vertices
    owner = vertices if vertices.base is None else vertices.base
    owner.flags.writeable = True
    owner += [0, 0, options.lift_mm]
    return scene


def lift_warning(scene: Scene, options: LiftOptions) -> Scene:
    warnings.warn("lifting", stacklevel=1)
    return lift(scene, options)


def lift_no_open_meshes(scene: Scene, options: LiftOptions) -> Scene:
    assert all(len(mesh.faces) > 2 for mesh in scene.meshes)
    return lift(scene, options)


# ---------------------------------------------------------------- faulty checks


def measure(scene: Scene, options: TallOptions) -> Iterator[Finding]:
    corners = soup(scene)[0]
    top = corners[corners[:, 2].argmax()]
    height = float(np.ptp(corners[:, 2]))
    if height > options.tall_mm:
        yield Finding(
            code="too_tall",
            severity="warning",
            message=f"the model is {height:g} mm tall; use {{target_height_mm}}",
            options=("target_height_mm",),
            amount=height,
            limit=options.tall_mm,
            unit="mm",
            places=(Place(position_mm=tuple(top.tolist())),),
            places_found=1,
            remedy={"target_height_mm": options.tall_mm},
        )


def _change_findings(**changes: Any) -> Callable[[Scene, TallOptions], list[Finding]]:
    """Return a check whose findings have other members."""

    def run(scene: Scene, options: TallOptions) -> list[Finding]:
        return [msgspec.structs.replace(finding, **changes) for finding in measure(scene, options)]

    return run


find_by_wrong_code = _change_findings(code="Too tall")
find_fatal = _change_findings(severity="fatal")
find_elsewhere = _change_findings(places=(Place(position_mm=(0.0, 0.0, -500.0)),))
find_uncounted = _change_findings(places_found=0)
advise_unknown = _change_findings(options=("shrink_mm",))
advise_vainly = _change_findings(remedy={"rotate_z_deg": 90.0})
advise_out_of_bounds = _change_findings(remedy={"target_height_mm": -1.0})


def find_nothing(scene: Scene, options: TallOptions) -> list[Finding]:
    return []


def find_always(scene: Scene, options: TallOptions) -> list[Finding]:
    return [Finding(code="too_tall", severity="error", message="the model is tall")]


def find_by_hash(scene: Scene, options: TallOptions) -> list[Finding]:
    return [Finding(code="too_tall", severity="info", message=f"{hash('height')}")]


def check_in_place(scene: Scene, options: TallOptions) -> list[Finding]:
    for mesh in scene.meshes:
        mesh.vertices.setflags(write=True)
        mesh.vertices[:] += 1
    return []


def check_loudly(scene: Scene, options: TallOptions) -> list[Finding]:
    print("tall")  # noqa: T201
    return []


def check_no_open_meshes(scene: Scene, options: TallOptions) -> list[Finding]:
    assert all(len(mesh.faces) > 2 for mesh in scene.meshes)
    return []


def check_and_exit(scene: Scene, options: TallOptions) -> list[Finding]:
    os._exit(0)


# ---------------------------------------------------------------- the plug-ins


class FaultyPlugin:
    """The correct demo plug-in with some members of its declarations replaced."""

    MESHHUB_API: str | None = "1.0"

    def __init__(self, name: str = "demo", **changes: Any) -> None:
        """Take the changed members of the declarations `reader`, `writer`, `operation` and `check`."""
        self.__name__ = name
        self.changes = {"reader": {}, "writer": {}, "operation": {}, "check": {}, **changes}

    @hookimpl
    def meshhub_readers(self) -> list[Reader]:
        declaration = Reader(
            format=FORMAT,
            run="faulty_plugins:read",
            sniff="faulty_plugins:sniff",
            options=DemoOptions,
            carries=FEATURES,
        )
        return [msgspec.structs.replace(declaration, **self.changes["reader"])]

    @hookimpl
    def meshhub_writers(self) -> list[Writer]:
        declaration = Writer(format=FORMAT, run="faulty_plugins:write", options=DemoOptions, carries=FEATURES)
        return [msgspec.structs.replace(declaration, **self.changes["writer"])]

    @hookimpl
    def meshhub_operations(self) -> list[Operation]:
        declaration = Operation(
            id="lift", label="Lift", run="faulty_plugins:lift", stage=Stage.PLACE, options=LiftOptions
        )
        return [msgspec.structs.replace(declaration, **self.changes["operation"])]

    @hookimpl
    def meshhub_checks(self) -> list[Check]:
        declaration = Check(
            id="tall", label="Height", description="Height.", run="faulty_plugins:measure", options=TallOptions
        )
        return [msgspec.structs.replace(declaration, **self.changes["check"])]
