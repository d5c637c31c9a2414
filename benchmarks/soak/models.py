"""Models that clients convert, each in a size of its own, and the expected results, converted beforehand in process."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import random
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from benchmarks.soak.server import TESTS

sys.path.append(str(TESTS))

from builtin_formats import MESH_TARGETS, TARGETS
from meshhub import Isolated, MeshhubError, Registry, Source, Target
from meshhub.model.scene import Mesh, Part, Scene
from meshhub.testing import conversions, memory_format, sample_scenes

OPTIONS: tuple[Mapping[str, str], ...] = (
    {},
    {"repair": "true"},
    {"place_on_bed": "on"},
    {"target_height_mm": "40"},
    {"flatten_base_mm": "0.5"},
    {"optimize_target_faces": "600", "place_on_bed": "1"},
    {"repair": "yes", "optimize_target_faces": "900", "target_height_mm": "25", "flatten_base_mm": "0.25"},
)

_MAX_CORPUS_FILE_BYTES = 3 << 20
"""Larger files would dominate the run."""


def hash_bytes(data: bytes) -> str:
    """Return the SHA-256 of a file, which is kept instead of the file."""
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True)
class Expected:
    """Expected response of a conversion: status and code of an error, or a file, its face count and its companions."""

    status: int
    code: str = ""
    file: str = ""
    faces: int = 0
    size: int = 0
    companions: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Case:
    """Conversion and its expected response."""

    name: str
    data: bytes
    target: str
    options: Mapping[str, str]
    expected: Expected


@dataclass(frozen=True)
class InspectionCase:
    """Inspection and the expected JSON."""

    name: str
    data: bytes
    body: bytes


@dataclass(frozen=True)
class ArchiveCase:
    """Archive to convert to a target, the digests of the expected entries, and the error codes of the others."""

    archive: bytes
    target: str
    entries: Mapping[str, str]
    failed: Mapping[str, str]


@dataclass
class Workload:
    """Requests that one client chooses from."""

    cases: list[Case]
    inspections: list[InspectionCase]
    archives: list[ArchiveCase]
    step_files: list[bytes]


def sphere(radius: float, rings: int) -> Scene:
    """Return a closed sphere with waves: `4 * rings * (rings - 1)` faces."""
    segments = 2 * rings
    theta = np.linspace(0, np.pi, rings + 1)[1:-1, None]
    phi = np.linspace(0, 2 * np.pi, segments, endpoint=False)[None]
    distance = radius * (1 + 0.03 * np.sin(5 * theta) * np.cos(7 * phi))
    grid = np.stack(
        [distance * np.sin(theta) * np.cos(phi), distance * np.sin(theta) * np.sin(phi), distance * np.cos(theta)],
        axis=2,
    )
    points = np.concatenate([grid.reshape(-1, 3), [[0, 0, radius], [0, 0, -radius]]])
    ring, following = np.arange(segments), (np.arange(segments) + 1) % segments
    rows = np.arange(rings - 2)[:, None] * segments
    a, b = rows + ring, rows + following
    c, d = a + segments, b + segments
    top, bottom = len(points) - 2, len(points) - 1
    last = (rings - 2) * segments
    faces = [
        np.stack([np.full(segments, top), ring, following], axis=1),
        np.stack([a, c, d], axis=2).reshape(-1, 3),
        np.stack([a, d, b], axis=2).reshape(-1, 3),
        np.stack([np.full(segments, bottom), last + following, last + ring], axis=1),
    ]
    return Scene((Mesh(points, np.concatenate(faces).astype(np.int32)),), (Part(0),))


def punch_holes(scene: Scene) -> Scene:
    """Return the scene's mesh without a dozen faces."""
    mesh = scene.meshes[0]
    removed = np.linspace(10, len(mesh.faces) - 10, 12).astype(int)
    return replace(scene, meshes=(replace(mesh, faces=np.delete(mesh.faces, removed, axis=0)),))


def scale(scene: Scene, factor: float) -> Scene:
    """Return the scene, scaled about the origin."""
    meshes = tuple(replace(mesh, vertices=mesh.vertices * factor) for mesh in scene.meshes)
    return replace(scene, meshes=meshes, parts=tuple(_scale_position(part, factor) for part in scene.parts))


def _scale_position(part: Part, factor: float) -> Part:
    transform = part.transform.copy()
    transform[:3, 3] *= factor
    return replace(part, transform=transform)


class ModelFactory:
    """Generator of models and of the expected results, in this process."""

    def __init__(self) -> None:
        self.registry = Registry(plugins=[memory_format], entry_points=False)

    def write(self, scene: Scene, format_id: str, **options: object) -> Target:
        """Write the scene in a format."""
        return conversions.write(self.registry, format_id, scene, options)

    def case(self, name: str, data: bytes, target: str, options: Mapping[str, str]) -> Case:
        """Return a conversion with its expected response."""
        return Case(name, data, target, options, convert(self.registry, Source.from_bytes(data, name), target, options))

    def workload(self, client: int, cases: int) -> Workload:
        """Return the requests of a client, whose models differ in size from those of all other clients."""
        rng = random.Random(client)
        factor = 1 + client / 64
        scenes = {
            "brick": scale(sample_scenes.brick(), factor),
            "full": scale(sample_scenes.full(), factor),
            "names": scale(sample_scenes.names(), factor),
            "textures": scale(sample_scenes.textures(), factor),
            "mirrored": scale(sample_scenes.mirrored(), factor),
            "sphere": sphere(15 * factor, 16),
            "medium": sphere(20 * factor, 60 + client),
            "punched": punch_holes(sphere(15 * factor, 20)),
        }
        # one client is enough for STEP, whose kernel is slow
        self._check_volumes(scenes["brick"], 6000 * factor**3, TARGETS if client == 0 else MESH_TARGETS)
        workload = Workload([], [], [], [])
        pairs = [(source, target) for source in TARGETS for target in TARGETS]
        rng.shuffle(pairs)
        for number, (source, target) in enumerate(pairs[:cases]):
            name = rng.choice(sorted(scenes))
            if "step" in (source, target) and name == "medium":
                # thousands of plane faces take too long
                name = "sphere"
            ascii_options = {"stl_ascii": True} if source == "stl" and number % 2 else {}
            data = self.write(scenes[name], source, **ascii_options).read()
            file_name = f"c{client}-{name}.{source}"
            options = {"repair": "true"} if name == "punched" else rng.choice(OPTIONS)
            workload.cases.append(self.case(file_name, data, target, options))
            if source == "step":
                workload.step_files.append(data)
            if len(workload.inspections) < 8:
                workload.inspections.append(self._inspection(file_name, data))
        if not workload.step_files:
            workload.step_files.append(self.write(scenes["brick"], "step").read())
        for target in ("glb", "3mf", "obj"):
            workload.archives.append(self._archive(client, scenes, target))
        return workload

    def large(self) -> Case:
        """Return a conversion of 15 MB, whose upload the service writes to disk in parts."""
        data = self.write(sphere(50, 275), "stl").read()
        return self.case("large.stl", data, "3mf", {})

    def _inspection(self, name: str, data: bytes) -> InspectionCase:
        return InspectionCase(name, data, msgspec.json.encode(self.registry.inspect(Source.from_bytes(data, name))))

    def _check_volumes(self, scene: Scene, volume: float, formats: Sequence[str]) -> None:
        """Check the expected results against a formula: the volume, through every format."""
        for format_id in formats:
            file = self.write(scene, format_id)
            model = self.registry.inspect(conversions.as_source(file, "." + format_id)).model
            assert model.watertight, format_id
            assert abs((model.volume_mm3 or 0) / volume - 1) < 1e-4, (format_id, model.volume_mm3, volume)

    def _archive(self, client: int, scenes: Mapping[str, Scene], target: str) -> ArchiveCase:
        """Return an archive: a model with companions, one in a folder, a system file, and an unsupported file."""
        textured, simple = self.write(scenes["textures"], "obj"), self.write(scenes["brick"], "stl").read()
        companions = {name: textured.read(name) for name in textured.names[1:]}
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(f"c{client}-textured.obj", textured.read())
            for name, data in companions.items():
                archive.writestr(name, data)
            archive.writestr(f"outer/inner/c{client}-brick.stl", simple)
            archive.writestr("__MACOSX/._brick.stl", b"metadata")
            archive.writestr("notes.xyz", b"not a model")
        entries: dict[str, str] = {}
        for stem, source in (
            (f"c{client}-textured", Source.from_bytes(textured.read(), "a.obj", companions)),
            (f"outer/inner/c{client}-brick", Source.from_bytes(simple, "a.stl")),
        ):
            expected = convert(self.registry, source, target, {})
            entries[f"{stem}.{target}"] = expected.file
            folder = stem.rpartition("/")[0]
            entries |= {f"{folder}/{name}".lstrip("/"): digest for name, digest in expected.companions}
        return ArchiveCase(buffer.getvalue(), target, entries, {"notes.xyz": "unsupported_format"})


def convert(registry: Registry, source: Source, target: str, options: Mapping[str, str]) -> Expected:
    """Convert a file and return the response that the service must give."""
    output = Target("model." + target)
    arguments: dict[str, Any] = dict(options)
    try:
        report = registry.convert(source, output, target=target, timeout=60, **arguments)
    except MeshhubError as error:
        return Expected(error.http_status, error.error_code)
    data = output.read()
    companions = tuple((name, hash_bytes(output.read(name))) for name in output.names[1:])
    return Expected(200, "", hash_bytes(data), report.target.faces, len(data), companions)


def corpus(count: int) -> list[Case]:
    """Return conversions of real files, tried in isolated workers; empty without MESHHUB_CORPUS."""
    folder = Path(os.environ.get("MESHHUB_CORPUS", ""))
    if not os.environ.get("MESHHUB_CORPUS") or not (folder / "INDEX.csv").is_file():
        return []
    registry = Registry(entry_points=False, engine=Isolated())
    try:
        return list(_real_cases(folder, registry, count))
    finally:
        registry.close()


def _real_cases(folder: Path, registry: Registry, count: int) -> Iterator[Case]:
    rng = random.Random(4)
    with (folder / "INDEX.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if int(row["bytes"]) < _MAX_CORPUS_FILE_BYTES]
    for row in rng.sample(rows, min(count, len(rows))):
        data = (folder / row["file"]).read_bytes()
        target = rng.choice(MESH_TARGETS)
        name = "real." + row["file"].rpartition(".")[2]
        expected = convert(registry, Source.from_bytes(data, name), target, {})
        # a file that is slow here may exceed the deadline of the service
        if expected.code not in ("conversion_timeout", "worker_crashed"):
            yield Case(name, data, target, {}, expected)
