"""Scenes, bytes and binary files in Python: what a program that embeds meshhub passes and gets."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import io
import re
import subprocess
import sys
import threading
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

import toys
from meshhub import (
    Canceled,
    Failure,
    FileReport,
    Frame,
    Image,
    InvalidOption,
    Isolated,
    Material,
    Mesh,
    Note,
    Part,
    Registry,
    Report,
    Scene,
    Source,
    Target,
    UnreadableFile,
    UnsupportedTarget,
    hookimpl,
)
from meshhub.engine.contract import Cancel, Task
from meshhub.engine.in_process import InProcess
from meshhub.model.report import Inspection
from meshhub.pipeline.scene_file import decode_scene, encode_scene
from models import brick, scene_of, sphere, volume

REGISTRY = Registry(entry_points=False)


def painted() -> Scene:
    """A scene that uses every field of the model."""
    box = brick()
    mesh = replace(
        box,
        normals=np.tile(np.float32([0, 0, 1]), (8, 1)),
        uv=np.linspace(0, 1, 16, dtype=np.float32).reshape(8, 2),
        colors=np.arange(32, dtype=np.uint8).reshape(8, 4),
        face_material=np.int32([0, 1, -1] * 4),
    )
    turned = np.array([[0, -1, 0, 5], [1, 0, 0, 6], [0, 0, 1, 7], [0, 0, 0, 1]], np.float64)
    return Scene(
        meshes=(mesh, brick(1, 2, 3, "small")),
        parts=(Part(0, name="a", path=("group", "inner"), material=1), Part(1, transform=turned), Part(0)),
        materials=(
            Material(name="red", base_color=(1, 0, 0, 1)),
            Material(base_color_image=0, wrap=("clamp", "mirror")),
        ),
        images=(Image(b"no picture", "image/png", "odd"),),
        frame=Frame("in", "y"),
        name="painted",
        metadata={"author": "Ä"},
    )


def encoded(scene: Scene) -> bytes:
    content = io.BytesIO()
    encode_scene(scene, content)
    return content.getvalue()


def assert_equal(actual: Scene, expected: Scene) -> None:
    for name in ("materials", "images", "frame", "name", "metadata"):
        assert getattr(actual, name) == getattr(expected, name)
    assert len(actual.meshes) == len(expected.meshes)
    for mine, other in zip(actual.meshes, expected.meshes, strict=True):
        assert mine.name == other.name
        for name in ("vertices", "faces", "normals", "uv", "colors", "face_material"):
            first, second = getattr(mine, name), getattr(other, name)
            assert (first is None) == (second is None)
            if first is not None:
                assert first.dtype == second.dtype
                np.testing.assert_array_equal(first, second)
    assert [(p.mesh, p.name, p.path, p.material) for p in actual.parts] == [
        (p.mesh, p.name, p.path, p.material) for p in expected.parts
    ]
    for mine, other in zip(actual.parts, expected.parts, strict=True):
        np.testing.assert_array_equal(mine.transform, other.transform)


# the scene file


def test_a_scene_file_keeps_every_field() -> None:
    assert_equal(decode_scene(encoded(painted())), painted())


def test_arrays_of_a_decoded_scene_are_aligned_and_read_only() -> None:
    for mesh in decode_scene(encoded(painted())).meshes:
        for array in (mesh.vertices, mesh.faces):
            assert array.flags.aligned and not array.flags.writeable


@given(st.data())
def test_a_damaged_scene_file_is_unreadable_or_a_scene(data: st.DataObject) -> None:
    content = bytearray(encoded(painted()))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(UnreadableFile):
        decode_scene(bytes(content[: data.draw(st.integers(0, len(content)))]))


# reading, writing, converting


def test_read_returns_millimeters_with_z_up(tmp_path: Path) -> None:
    path = tmp_path / "brick.stl"
    REGISTRY.write(scene_of(brick()), path)
    scene = REGISTRY.read(path, input_unit="in", input_up="y")
    assert scene.frame == Frame("mm", "z")
    np.testing.assert_allclose(np.ptp(scene.meshes[0].vertices, axis=0), [254, 762, 508], rtol=1e-6)


def test_read_runs_operations() -> None:
    scene = REGISTRY.read(scene_of(brick()), target_height_mm=60, place_on_bed=True)
    (mesh,) = scene.meshes
    placed = mesh.vertices @ scene.parts[0].transform[:3, :3].T + scene.parts[0].transform[:3, 3]
    np.testing.assert_allclose(np.ptp(placed, axis=0), [20, 40, 60])


def test_a_scene_survives_reading_unchanged() -> None:
    scene = replace(painted(), frame=Frame("mm", "z"))
    assert_equal(REGISTRY.read(scene), scene)


def test_a_scene_is_written_repaired_and_read_back(tmp_path: Path) -> None:
    box = brick()
    flipped = scene_of(Mesh(box.vertices, box.faces[:, ::-1][:-1]))
    report = REGISTRY.convert(flipped, tmp_path / "out.3mf", repair=True)
    assert report.source.format == "scene"
    scene = REGISTRY.read(tmp_path / "out.3mf")
    assert volume(scene.meshes[0].vertices, scene.meshes[0].faces) == pytest.approx(6000, rel=1e-6)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, io.BytesIO])
def test_bytes_and_files_are_read(kind: type) -> None:
    content = REGISTRY.convert_bytes(scene_of(brick()), "stl")
    assert REGISTRY.read(kind(content)).face_count == 12
    assert REGISTRY.inspect(kind(content)).model.watertight


def test_the_name_of_an_open_file_helps_as_an_extension(tmp_path: Path) -> None:
    path = tmp_path / "odd.obj"
    path.write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    with path.open("rb") as file:
        assert REGISTRY.read(file).face_count == 1


def test_a_result_goes_to_an_open_file(tmp_path: Path) -> None:
    path = tmp_path / "out.bin"
    with path.open("wb") as file:
        REGISTRY.convert(scene_of(brick()), file, target="stl")
    assert path.read_bytes() == REGISTRY.convert_bytes(scene_of(brick()), "stl")


def test_inspect_takes_a_scene() -> None:
    inspection = REGISTRY.inspect(scene_of(brick()))
    assert (inspection.model.volume_mm3, inspection.model.bodies) == (pytest.approx(6000), 1)


def test_options_by_name_join_the_keywords() -> None:
    registry = Registry([toys], entry_points=False)
    scene = registry.read(Source.from_bytes(b"toy", "a.toy"), options={"toy_size": "3"}, place_on_bed=True)
    assert scene.face_count > 0
    with pytest.raises(InvalidOption, match="repare"):
        REGISTRY.read(scene_of(brick()), options={"repare": True})


def test_a_textured_obj_does_not_fit_into_one_file() -> None:
    scene = replace(painted(), frame=Frame("mm", "z"))
    with pytest.raises(UnsupportedTarget, match=r"companions .* convert to a path or to a Target"):
        REGISTRY.convert_bytes(scene, "obj")
    target = Target()
    REGISTRY.convert(scene, target, target="obj")
    assert len(target.names) > 1


@pytest.mark.parametrize("value", [None, 3, {"a.stl"}, io.StringIO("solid")])
def test_other_sources_raise_a_type_error(value: object) -> None:
    with pytest.raises(TypeError, match=r"model must be a path|mode 'rb'"):
        REGISTRY.read(value)  # type: ignore[arg-type]


def test_other_targets_raise_a_type_error() -> None:
    with pytest.raises(TypeError, match="target must be a path"):
        REGISTRY.convert(scene_of(brick()), 3, target="stl")  # type: ignore[arg-type]


def test_a_target_without_an_extension_needs_a_format() -> None:
    with pytest.raises(UnsupportedTarget, match="name the format with target="):
        REGISTRY.convert(scene_of(brick()), io.BytesIO())


def test_no_request_from_outside_gets_a_scene_file() -> None:
    with pytest.raises(UnsupportedTarget):
        REGISTRY.convert_bytes(scene_of(brick()), "scene")
    with pytest.raises(InvalidOption):
        REGISTRY.read(scene_of(brick()), options={"input_format": "scene"})


def test_listeners_hear_of_a_read_scene() -> None:
    reports = []

    class Listener:
        @hookimpl
        def meshhub_finished(self, report: object) -> None:
            reports.append(report)

    Registry([Listener()], entry_points=False).read(scene_of(brick()))
    assert len(reports) == 1


def test_scenes_cross_to_another_process_and_back() -> None:
    scene = replace(painted(), frame=Frame("mm", "z"))
    with Registry(entry_points=False, engine=Isolated(workers=1)) as registry:
        assert_equal(registry.read(scene), scene)


# the registry itself


def test_a_registry_closes_its_engine() -> None:
    class Engine(InProcess):
        closed = False

        def close(self) -> None:
            self.closed = True

    engine = Engine()
    with Registry(entry_points=False, engine=engine):
        pass
    assert engine.closed


def test_a_registry_lists_formats_operations_and_options() -> None:
    assert {"stl", "3mf", "step"} <= set(REGISTRY.formats)
    assert next(iter(REGISTRY.operations)) == "repair"
    assert REGISTRY.options["target_height_mm"].kind == "number"
    assert "7 formats" in repr(REGISTRY)


def test_the_twins_do_not_block_the_loop() -> None:
    async def main() -> tuple[int, bytes, bool]:
        scene = scene_of(brick())
        read, content, inspection = await asyncio.gather(
            REGISTRY.read_async(scene),
            REGISTRY.convert_bytes_async(scene, "stl"),
            REGISTRY.inspect_async(scene),
        )
        return read.face_count, content, inspection.model.watertight

    assert asyncio.run(main()) == (12, REGISTRY.convert_bytes(scene_of(brick()), "stl"), True)


def test_cancelling_a_task_stops_its_conversion() -> None:
    stopped = threading.Event()

    class Engine(InProcess):
        def run(self, task: Task, *, timeout: float | None = None, cancel: Cancel | None = None) -> Inspection:
            assert cancel is not None
            while not cancel.requested:
                pass
            stopped.set()
            raise Canceled("stopped")

    async def main() -> None:
        registry = Registry(entry_points=False, engine=Engine())
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(registry.inspect_async(scene_of(brick())), 0.1)
        assert await asyncio.to_thread(stopped.wait, 30)

    asyncio.run(main())


# the model


def test_a_mesh_rejects_indices_of_missing_vertices() -> None:
    for faces in ([[0, 1, 3]], [[0, 1, -1]]):
        with pytest.raises(ValueError, match=r"indices from .* but there are 3 vertices"):
            Mesh(np.zeros((3, 3)), np.int32(faces))


def test_a_mesh_does_not_change_with_the_callers_arrays() -> None:
    vertices, faces = np.eye(3), np.int32([[0, 1, 2]])
    mesh = Mesh(vertices, faces)
    vertices[:], faces[:] = 7, 0
    np.testing.assert_array_equal(mesh.vertices, np.eye(3))
    np.testing.assert_array_equal(mesh.faces, [[0, 1, 2]])
    assert vertices.flags.writeable


def test_a_mesh_shares_arrays_that_nobody_can_change() -> None:
    vertices = np.eye(3)
    vertices.flags.writeable = False
    assert np.shares_memory(Mesh(vertices, np.int32([[0, 1, 2]])).vertices, vertices)


def test_descriptions_fit_into_a_line() -> None:
    scene = painted()
    for value in (scene, *scene.meshes, *scene.images, REGISTRY, Source.from_bytes(bytes(10_000), "x.stl")):
        assert len(repr(value)) < 120
    assert repr(scene.meshes[0]) == "Mesh(8 vertices, 12 faces, normals, uv, colors, face_material, name='brick')"
    two = replace(scene_of(brick()), meshes=(brick(), brick()), parts=(Part(0), Part(1), Part(1)))
    assert repr(two) == "Scene(2 meshes, 3 parts, 36 faces, mm, z up)"


@pytest.mark.large
def test_mypy_knows_the_options(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="mypy is in the group `types`")
    pytest.importorskip("httpx", reason="the client is an extra")
    script = tmp_path / "script.py"
    right = (
        "from meshhub import Registry",
        "from meshhub.client import AsyncClient, Client",
        "registry = Registry()",
        "registry.convert('a.stl', 'b.stl', repair=True, target_height_mm=40, options={'toy_size': 3})",
        "registry.convert_bytes(b'', 'stl', repair=True, timeout=9)",
        "scene = registry.read('a.stl', options={'toy_size': 3})",
        "registry.write(scene, 'b.stl', repair=True, overwrite=False)",
        "client, other = Client('http://a.example'), AsyncClient('http://a.example')",
        "client.convert('a.stl', 'b.stl', repair=True, options={'toy_size': 3})",
    )
    wrong = (
        "registry.read('a.stl', target_height_mm='high')",
        "registry.convert('a.stl', 'b.stl', repare=True)",
        "registry.convert_bytes(b'', 'stl', repare=True)",
        "registry.read('a.stl', repare=True)",
        "registry.write(scene, 'b.stl', repare=True)",
        "registry.inspect('a.stl', repare=True)",
        "a = registry.convert_async('a.stl', 'b.stl', repare=True)",
        "b = registry.convert_bytes_async(b'', 'stl', repare=True)",
        "c = registry.read_async('a.stl', repare=True)",
        "d = registry.write_async(scene, 'b.stl', repare=True)",
        "e = registry.inspect_async('a.stl', repare=True)",
        "client.convert('a.stl', 'b.stl', repare=True)",
        "client.submit('a.stl', target='stl', repare=True)",
        "client.inspect('a.stl', repare=True)",
        "f = other.convert('a.stl', 'b.stl', repare=True)",
        "g = other.submit('a.stl', target='stl', repare=True)",
        "h = other.inspect('a.stl', repare=True)",
    )
    script.write_text("\n".join((*right, *wrong, "")))
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), str(script)],
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [int(line) for line in re.findall(r":(\d+): error:", checked.stdout)]
    assert lines == [len(right) + number for number in range(1, len(wrong) + 1)], checked.stdout


# notebooks


class _Tags(HTMLParser):
    """Tags and texts of a document, which must be closed in order."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.sources: list[str] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(document)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == "img":
            self.sources += [value or "" for name, value in attributes if name == "src"]
        else:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_a_scene_in_a_notebook_is_a_picture_and_facts() -> None:
    shown = _Tags(painted()._repr_html_())
    (source,) = shown.sources
    data = base64.b64decode(source.removeprefix("data:image/png;base64,"), validate=True)
    assert data.startswith(b"\x89PNG")
    assert {"36", "painted", "in, Y up", "part", "a"} <= set(shown.texts)
    # the size in millimeters, Z up
    assert any(text.endswith(" mm") for text in shown.texts)


def test_names_in_a_notebook_are_escaped() -> None:
    name = "<script>alert('1')</script>\x1b[2J" + 1000 * "x"
    scene = replace(painted(), name=name, parts=(Part(0, name=name),))
    report = REGISTRY.convert(replace(scene, frame=Frame("mm", "z")), Target(), target="3mf")
    report = structs.replace(report, notes=(Note("<b>", name),))
    inspection = structs.replace(REGISTRY.inspect(scene), notes=(Note("<b>", name),))
    for described in (scene, report, inspection):
        document = described._repr_html_()
        assert set(_Tags(document).tags) <= {"div", "img", "table", "caption", "b", "tr", "th", "td"}
        assert "<script" not in document
        assert "\x1b" not in document
        assert "&lt;script&gt;" in document
        assert len(document) < 200_000


@pytest.mark.parametrize(
    "scene",
    [
        Scene((), ()),
        Scene((Mesh(np.zeros((3, 3)), np.empty((0, 3), np.int32)),), (Part(0),)),
        scene_of(Mesh(np.zeros((3, 3)), np.int32([[0, 1, 2]]))),
        scene_of(Mesh(np.full((3, 3), np.nan), np.int32([[0, 1, 2]]))),
        scene_of(Mesh(np.full((3, 3), 1e300), np.int32([[0, 1, 2]]))),
    ],
    ids=["nothing", "no faces", "a point", "not a number", "huge"],
)
def test_unusual_scenes_are_described(scene: Scene) -> None:
    assert "faces" in _Tags(scene._repr_html_()).texts


def test_a_huge_scene_is_described_without_a_picture() -> None:
    ball = sphere(segments=512)
    scene = Scene((ball,), tuple(Part(0) for _ in range(8)))
    shown = _Tags(scene._repr_html_())
    assert shown.sources == []
    assert "2,088,960" in shown.texts


def test_reports_and_inspections_in_a_notebook_are_tables() -> None:
    report = REGISTRY.convert(scene_of(brick()), Target(), target="stl", options={"place_on_bed": True})
    texts = _Tags(report._repr_html_()).texts
    assert {"scene → stl", "source", "target", "place-on-bed"} <= set(texts)
    assert any("684 bytes, 12 faces, 10 × 20 × 30 mm" in text for text in texts)
    texts = _Tags(REGISTRY.inspect(scene_of(brick()))._repr_html_()).texts
    assert {"6,000.0 mm³", "yes", "10 × 20 × 30 mm"} <= set(texts)
    failed = Report(source=FileReport(format="stl"), target=FileReport(format="ply"), error=Failure("no", "it failed"))
    assert "it failed [no]" in _Tags(failed._repr_html_()).texts


@pytest.mark.parametrize("engine", [None, Isolated(workers=2, method="fork")], ids=["here", "apart"])
def test_many_files_are_converted_and_an_error_stops_no_other(engine: Isolated | None, tmp_path: Path) -> None:
    brick_file = tmp_path / "brick.stl"
    REGISTRY.convert(scene_of(brick()), brick_file)
    outputs = [tmp_path / name for name in ("one.ply", "two.obj", "three.3mf", "four.xyz")]
    sources = [brick_file, tmp_path / "missing.stl", brick_file, brick_file]
    heard: dict[int, object] = {}
    with Registry(entry_points=False, engine=engine) as registry:
        results = registry.convert_many(
            zip(sources, outputs, strict=True), on_result=heard.__setitem__, place_on_bed=True, timeout=60
        )
    assert heard == dict(enumerate(results))
    assert [type(result) for result in results] == [Report, FileNotFoundError, Report, UnsupportedTarget]
    assert [path.is_file() for path in outputs] == [True, False, True, False]


def test_many_conversions_end_with_an_exception_of_the_listener(tmp_path: Path) -> None:
    class Stop(Exception):
        pass

    def stop(index: int, result: object) -> None:
        raise Stop

    pairs = [(scene_of(brick()), tmp_path / f"{number}.ply") for number in range(50)]
    with pytest.raises(Stop):
        REGISTRY.convert_many(pairs, on_result=stop)
    assert len(list(tmp_path.iterdir())) < len(pairs)
    cancel = Cancel()
    cancel()
    results = REGISTRY.convert_many(pairs[:2], cancel=cancel)
    assert [type(result) for result in results] == [Canceled, Canceled]
    assert REGISTRY.convert_many([]) == []
    with pytest.raises(ValueError, match="two conversions have the output"):
        REGISTRY.convert_many([("a.stl", tmp_path / "b.ply"), ("c.stl", str(tmp_path / "b.ply"))])
    assert asyncio.run(REGISTRY.convert_many_async(pairs[:1]))[0].ok  # type: ignore[union-attr]
