"""What clients convert, and what must come back: models with a size of their own, converted beforehand in process."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import random
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from meshhub import Isolated, MeshhubError, Registry, Source, Target
from meshhub.http.errors import status_of
from meshhub.model.scene import Mesh, Part, Scene
from meshhub.testing import conversions, memory_format, sample_scenes

FORMATS = ("stl", "obj", "ply", "glb", "gltf", "3mf", "step")

OPTIONS: tuple[Mapping[str, str], ...] = (
    {},
    {"repair": "true"},
    {"place_on_bed": "on"},
    {"target_height_mm": "40"},
    {"flatten_base_mm": "0.5"},
    {"optimize_target_faces": "600", "place_on_bed": "1"},
    {"repair": "yes", "optimize_target_faces": "900", "target_height_mm": "25", "flatten_base_mm": "0.25"},
)

_SMALL_CORPUS_FILE = 3 << 20


def digest(data: bytes) -> str:
    """What stands for an expected file."""
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True)
class Expected:
    """What a conversion must answer: an error's status and code, or a file with so many faces and its companions."""

    status: int
    code: str = ""
    file: str = ""
    faces: int = 0
    size: int = 0
    companions: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Case:
    """A conversion, prepared."""

    name: str
    data: bytes
    target: str
    options: Mapping[str, str]
    expected: Expected


@dataclass(frozen=True)
class Look:
    """An inspection, prepared: the JSON that must come back."""

    name: str
    data: bytes
    body: bytes


@dataclass(frozen=True)
class Bundle:
    """An archive, prepared: its bytes, and the entries that must come back for a target."""

    archive: bytes
    target: str
    entries: Mapping[str, str]
    failed: Mapping[str, str]


@dataclass
class Book:
    """Everything that one client may ask for."""

    cases: list[Case]
    looks: list[Look]
    bundles: list[Bundle]
    steps: list[bytes]


def sphere(radius: float, rings: int) -> Scene:
    """A closed sphere with waves on it: `4 * rings * (rings - 1)` faces."""
    segments = 2 * rings
    theta = np.linspace(0, np.pi, rings + 1)[1:-1, None]
    phi = np.linspace(0, 2 * np.pi, segments, endpoint=False)[None]
    away = radius * (1 + 0.03 * np.sin(5 * theta) * np.cos(7 * phi))
    grid = np.stack(
        [away * np.sin(theta) * np.cos(phi), away * np.sin(theta) * np.sin(phi), away * np.cos(theta)], axis=2
    )
    points = np.concatenate([grid.reshape(-1, 3), [[0, 0, radius], [0, 0, -radius]]])
    ring, after = np.arange(segments), (np.arange(segments) + 1) % segments
    rows = np.arange(rings - 2)[:, None] * segments
    a, b = rows + ring, rows + after
    c, d = a + segments, b + segments
    top, bottom = len(points) - 2, len(points) - 1
    last = (rings - 2) * segments
    faces = [
        np.stack([np.full(segments, top), ring, after], axis=1),
        np.stack([a, c, d], axis=2).reshape(-1, 3),
        np.stack([a, d, b], axis=2).reshape(-1, 3),
        np.stack([np.full(segments, bottom), last + after, last + ring], axis=1),
    ]
    return Scene((Mesh(points, np.concatenate(faces).astype(np.int32)),), (Part(0),))


def punched(scene: Scene) -> Scene:
    """The scene's mesh with a dozen faces gone."""
    mesh = scene.meshes[0]
    gone = np.linspace(10, len(mesh.faces) - 10, 12).astype(int)
    return replace(scene, meshes=(replace(mesh, faces=np.delete(mesh.faces, gone, axis=0)),))


def sized(scene: Scene, factor: float) -> Scene:
    """The scene, so much larger."""
    meshes = tuple(replace(mesh, vertices=mesh.vertices * factor) for mesh in scene.meshes)
    return replace(scene, meshes=meshes, parts=tuple(_moved(part, factor) for part in scene.parts))


def _moved(part: Part, factor: float) -> Part:
    transform = part.transform.copy()
    transform[:3, 3] *= factor
    return replace(part, transform=transform)


class Kitchen:
    """Makes models and what must become of them, in this process."""

    def __init__(self) -> None:
        self.registry = Registry(plugins=[memory_format], entry_points=False)

    def written(self, scene: Scene, format_id: str, **options: object) -> Target:
        """The scene as a file."""
        return conversions.write(self.registry, format_id, scene, options)

    def expected(self, source: Source, target: str, options: Mapping[str, str]) -> Expected:
        """What a conversion answers, here and now."""
        return expected(self.registry, source, target, options)

    def case(self, name: str, data: bytes, target: str, options: Mapping[str, str]) -> Case:
        """A conversion with what must come of it."""
        return Case(name, data, target, options, self.expected(Source.from_bytes(data, name), target, options))

    def book(self, client: int, cases: int) -> Book:
        """What one client asks for; its models have a size that no other client's have."""
        rng = random.Random(client)
        factor = 1 + client / 64
        scenes = {
            "brick": sized(sample_scenes.brick(), factor),
            "full": sized(sample_scenes.full(), factor),
            "names": sized(sample_scenes.names(), factor),
            "textures": sized(sample_scenes.textures(), factor),
            "mirrored": sized(sample_scenes.mirrored(), factor),
            "sphere": sphere(15 * factor, 16),
            "middling": sphere(20 * factor, 60 + client),
            "punched": punched(sphere(15 * factor, 20)),
        }
        # the kernel of STEP is the slow one, and one client proves as much as all
        self._proven(scenes["brick"], 6000 * factor**3, FORMATS if client == 0 else FORMATS[:-1])
        book = Book([], [], [], [])
        wanted = [(source, target) for source in FORMATS for target in FORMATS]
        rng.shuffle(wanted)
        for number, (source, target) in enumerate(wanted[:cases]):
            word = rng.choice(sorted(scenes))
            if "step" in (source, target) and word == "middling":
                # thousands of plane faces: a benchmark of its own
                word = "sphere"
            ascii_options = {"stl_ascii": True} if source == "stl" and number % 2 else {}
            made = self.written(scenes[word], source, **ascii_options)
            name = f"c{client}-{word}.{source}"
            options = {"repair": "true"} if word == "punched" else rng.choice(OPTIONS)
            book.cases.append(self.case(name, made.read(), target, options))
            if source == "step":
                book.steps.append(made.read())
            if len(book.looks) < 8:
                book.looks.append(self._look(name, made.read()))
        if not book.steps:
            book.steps.append(self.written(scenes["brick"], "step").read())
        for target in ("glb", "3mf", "obj"):
            book.bundles.append(self._bundle(client, scenes, target))
        return book

    def large(self) -> Case:
        """A conversion of a size that is kept in pieces on its way: 15 MB in."""
        data = self.written(sphere(50, 275), "stl").read()
        return self.case("large.stl", data, "3mf", {})

    def _look(self, name: str, data: bytes) -> Look:
        return Look(name, data, msgspec.json.encode(self.registry.inspect(Source.from_bytes(data, name))))

    def _proven(self, scene: Scene, volume: float, formats: Sequence[str]) -> None:
        """See that what is expected is right by a formula: the volume, through every format."""
        for format_id in formats:
            written = self.written(scene, format_id)
            found = self.registry.inspect(conversions.as_source(written, "." + format_id)).model
            assert found.watertight, format_id
            assert abs((found.volume_mm3 or 0) / volume - 1) < 1e-4, (format_id, found.volume_mm3, volume)

    def _bundle(self, client: int, scenes: Mapping[str, Scene], target: str) -> Bundle:
        """An archive with a model that needs its companions, one that does not, one in a folder, litter, rubbish."""
        textured, simple = self.written(scenes["textures"], "obj"), self.written(scenes["brick"], "stl").read()
        beside = {name: textured.read(name) for name in textured.names[1:]}
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(f"c{client}-textured.obj", textured.read())
            for name, data in beside.items():
                archive.writestr(name, data)
            archive.writestr(f"deep/er/c{client}-brick.stl", simple)
            archive.writestr("__MACOSX/._brick.stl", b"litter")
            archive.writestr("notes.xyz", b"neither a model nor part of one")
        entries: dict[str, str] = {}
        for stem, source in (
            (f"c{client}-textured", Source.from_bytes(textured.read(), "a.obj", beside)),
            (f"deep/er/c{client}-brick", Source.from_bytes(simple, "a.stl")),
        ):
            told = self.expected(source, target, {})
            entries[f"{stem}.{target}"] = told.file
            folder = stem.rpartition("/")[0]
            entries |= {f"{folder}/{name}".lstrip("/"): held for name, held in told.companions}
        return Bundle(packed.getvalue(), target, entries, {"notes.xyz": "unsupported_format"})


def expected(registry: Registry, source: Source, target: str, options: Mapping[str, str]) -> Expected:
    """What a conversion answers."""
    made = Target("model." + target)
    asked: dict[str, Any] = dict(options)
    try:
        report = registry.convert(source, made, to=target, timeout=60, **asked)
    except MeshhubError as error:
        return Expected(status_of(error), error.code)
    data = made.read()
    companions = tuple((name, digest(made.read(name))) for name in made.names[1:])
    return Expected(200, "", digest(data), report.target.faces, len(data), companions)


def corpus(count: int) -> list[Case]:
    """Conversions of real files, when there are some; each was tried in a process of its own."""
    folder = Path(os.environ.get("MESHHUB_CORPUS", ""))
    if not os.environ.get("MESHHUB_CORPUS") or not (folder / "INDEX.csv").is_file():
        return []
    registry = Registry(entry_points=False, engine=Isolated())
    try:
        return list(_real(folder, registry, count))
    finally:
        registry.close()


def _real(folder: Path, registry: Registry, count: int) -> Iterator[Case]:
    rng = random.Random(4)
    with (folder / "INDEX.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if int(row["bytes"]) < _SMALL_CORPUS_FILE]
    for row in rng.sample(rows, min(count, len(rows))):
        data = (folder / row["file"]).read_bytes()
        target = rng.choice(["stl", "obj", "ply", "glb", "gltf", "3mf"])
        name = "real." + row["file"].rpartition(".")[2]
        told = expected(registry, Source.from_bytes(data, name), target, {})
        # what took long here may take too long there
        if told.code not in ("conversion_timeout", "worker_crashed"):
            yield Case(name, data, target, {}, told)
