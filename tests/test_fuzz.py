"""Every registered reader against damaged files: a result or an error with a code, and nothing else.

The files are small valid ones of our own writers, which are then cut, and changed at critical places: numbers
of a header, members of a JSON document, attributes of XML, lines of text.
"""

from __future__ import annotations

import functools
import io
import json
import random
import re
import struct
import warnings
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bombs import zip_entries
from builtin_formats import MESH_TARGETS
from meshhub import Material, MeshhubError, Part, PluginError, Registry, Scene, Source, Target
from meshhub.model.capabilities import NoOptions
from meshhub.model.scene import Image, Mesh
from meshhub.pipeline.declarations import load
from meshhub.toolkit.geometry import to_frame
from models import brick, sphere

pytestmark = pytest.mark.once

REGISTRY = Registry(entry_points=False)
READERS = sorted(reader.capability.format.id for reader in REGISTRY.declarations.readers)
TEXTS = {"stl": "stl_ascii", "ply": "ply_ascii"}
INTEGERS = (0, 1, -1, 2, 255, 65_535, 2**31 - 1, 2**31, 2**32 - 1, 2**53, 2**63 - 1, 2**63, -(2**31), -(2**63), 10**30)
WORDS = ("nan", "inf", "-inf", "1e308", "-1e308", "1e-320", "1e400", "", "x", "--1", "1_0", "0x1", "\u0661", "\x1b[2J")
NUMBER = re.compile(rb"[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")
VALUES: tuple[Any, ...] = (
    *INTEGERS, 1.5, 1e308, None, True, "", "\0", "data:,", "http://127.0.0.1:1/x", "file:///etc/passwd", "../../x", [],
    {}, [[]], [{}], "SCALAR", "VEC3", "MAT4", 5121, 5126,
)  # fmt: skip
MEMBERS = ("sparse", "byteOffset", "byteStride", "children", "matrix", "rotation", "scale", "mode", "uri", "count")

QUICK = settings(max_examples=30, suppress_health_check=list(HealthCheck))


def scene() -> Scene:
    """Three parts of two meshes, with everything a scene can carry."""
    ball = sphere(segments=8)
    ball = replace(
        ball,
        uv=np.clip(ball.vertices[:, :2] / 20 + 0.5, 0, 1).astype(np.float32),
        normals=(ball.vertices / 10).astype(np.float32),
        face_material=(np.arange(len(ball.faces)) % 2).astype(np.int32),
    )
    box = replace(brick(), colors=np.arange(32, dtype=np.uint8).reshape(8, 4) * 8)
    materials = (Material("red", (1, 0, 0, 1), base_color_image=0), Material("green", (0, 1, 0, 0.5)))
    images = (Image(b"\x89PNG\r\n\x1a\n", "image/png", "picture"),)
    elsewhere = np.diag([-1.0, 1, 1, 1])
    elsewhere[:3, 3] = 30, 0, 0
    parts = (Part(0, name="a b"), Part(1, elsewhere, "é", ("one", "two")), Part(0, elsewhere))
    return Scene((box, ball), parts, materials, images)


def small_scene() -> Scene:
    """One triangle."""
    return Scene((Mesh(np.eye(3) * 9, np.array([[0, 1, 2]], np.int32)),), (Part(0),))


@functools.cache
def build_seeds(format_id: str, *, small: bool = False) -> tuple[bytes, ...]:
    """Sound files of a format, one for each way of writing it."""
    if format_id not in MESH_TARGETS:
        return (b"",)
    writer = next(
        writer.capability for writer in REGISTRY.declarations.writers if writer.capability.format.id == format_id
    )
    ways: list[dict[str, bool]] = [{}, {TEXTS[format_id]: True}] if format_id in TEXTS else [{}]
    seeds = []
    for way in ways:
        target = Target()
        struct_type = writer.options or NoOptions
        load(writer.run)(to_frame(small_scene() if small else scene(), writer.frame), target, struct_type(**way))
        seeds.append(target.read())
    return tuple(seeds)


def assert_coded_result(data: bytes, format_id: str) -> None:
    """Read it, and write what came; fails for anything but a result or an error with a code."""
    extension = next(
        reader.capability.format.extensions[0]
        for reader in REGISTRY.declarations.readers
        if reader.capability.format.id == format_id
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            report = REGISTRY.convert(Source.from_bytes(data, "upload" + extension), Target(), target="stl")
            messages = [note.message for note in report.notes]
        except PluginError as error:
            raise AssertionError(error.message) from error
        except MeshhubError as error:
            messages = [error.message]
    assert len(messages) < 100
    assert all(message.isprintable() and len(message) <= 2000 for message in messages)


def mutate_bytes(data: bytes, chance: random.Random) -> bytes:
    """Some bytes changed, put in, taken out or repeated; near the beginning more often than elsewhere."""
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 5))):
        if not changed:
            break
        at = chance.randrange(min(len(changed), chance.choice((100, 400, len(changed)))))
        kind = chance.randrange(5)
        if kind == 0:
            width = chance.choice((1, 2, 4, 8))
            number = chance.choice(INTEGERS) % (1 << 8 * width)
            changed[at : at + width] = number.to_bytes(width, chance.choice(("little", "big")))
        elif kind == 1:
            changed[at : at + 4] = struct.pack("<f", chance.choice((np.nan, np.inf, -np.inf, 3e38, 1e-45)))
        elif kind == 2:
            del changed[at : at + chance.choice((1, 4, 50))]
        elif kind == 3:
            changed[at:at] = changed[: chance.choice((1, 12, 50))]
        else:
            changed[at:at] = chance.randbytes(chance.choice((1, 4, 50)))
    return bytes(changed)


def mutate_words(data: bytes, chance: random.Random) -> bytes:
    """Some numbers of a text replaced, some pieces taken out, repeated or swapped."""
    for _ in range(chance.choice((1, 1, 2, 4))):
        numbers = list(NUMBER.finditer(data))
        if numbers and chance.random() < 0.5:
            number = chance.choice(numbers[:12] if chance.random() < 0.4 else numbers)
            word = chance.choice([*WORDS, *map(str, INTEGERS)]).encode()
            data = data[: number.start()] + word + data[number.end() :]
            continue
        mark = chance.choice((b"\n", b" ", b'"', b"<", b"/"))
        pieces = data.split(mark)
        first, second = chance.randrange(len(pieces)), chance.randrange(len(pieces))
        kind = chance.randrange(4)
        if kind == 0:
            del pieces[first]
        elif kind == 1:
            pieces[first], pieces[second] = pieces[second], pieces[first]
        elif kind == 2:
            pieces[first:first] = pieces[second : second + 3] * chance.choice((1, 2, 30))
        else:
            pieces.insert(first, bytes(chance.randrange(32, 127) for _ in range(chance.choice((1, 5, 40)))))
        data = mark.join(pieces)
    return data


def list_members(value: Any) -> list[tuple[Any, Any]]:
    """Every member below a JSON value: what holds it, and by which key."""
    keys: list[Any] = list(value) if isinstance(value, dict) else list(range(len(value)))
    members = [(value, key) for key in keys]
    for key in keys:
        if isinstance(value[key], dict | list):
            members += list_members(value[key])
    return members


def mutate_members(text: bytes, chance: random.Random) -> bytes:
    """Some members of a JSON document replaced, taken out, exchanged or put in."""
    document = json.loads(text)
    for _ in range(chance.choice((1, 1, 2, 3))):
        members = list_members(document)
        if not members:
            break
        holder, key = chance.choice(members)
        kind = chance.randrange(6)
        if kind <= 2:
            holder[key] = chance.choice(VALUES)
        elif kind == 3:
            del holder[key]
        elif kind == 4:
            other, name = chance.choice(members)
            holder[key] = json.loads(json.dumps(other[name]))
        elif isinstance(holder, dict):
            holder[chance.choice(MEMBERS)] = chance.choice(VALUES)
    return json.dumps(document).encode()


def mutate_glb(data: bytes, chance: random.Random) -> bytes:
    """The JSON of a GLB changed, its lengths right again."""
    (length,) = struct.unpack_from("<I", data, 12)
    text = mutate_members(data[20 : 20 + length], chance)
    text += b" " * (-len(text) % 4)
    body = struct.pack("<II", len(text), 0x4E4F534A) + text + data[20 + length :]
    return b"glTF" + struct.pack("<II", 2, 12 + len(body)) + body


def mutate_package(data: bytes, chance: random.Random) -> bytes:
    """Return a valid 3MF package with one changed part."""
    contents = unpack(data)
    chosen = chance.choice([*contents, *[name for name in contents if name.endswith(".model")] * 5])
    contents[chosen] = mutate_words(contents[chosen], chance)
    return zip_entries(*contents.items(), method=zipfile.ZIP_STORED)


def unpack(data: bytes) -> dict[str, bytes]:
    """The parts of a 3MF package by their names."""
    with zipfile.ZipFile(io.BytesIO(data)) as package:
        return {name: package.read(name) for name in package.namelist()}


WAYS: dict[str, tuple[Callable[[bytes, random.Random], bytes], ...]] = {
    "3mf": (mutate_package, mutate_package, mutate_bytes),
    "glb": (mutate_glb, mutate_glb, mutate_bytes),
    "gltf": (mutate_members, mutate_members, mutate_words),
    "obj": (mutate_words,),
    "ply": (mutate_words, mutate_bytes),
    "stl": (mutate_words, mutate_bytes),
}


@pytest.mark.parametrize("format_id", MESH_TARGETS)
@given(seed=st.integers(0, 2**32 - 1))
@QUICK
def test_mutated_files_give_a_result_or_a_coded_error(format_id: str, seed: int) -> None:
    chance = random.Random(seed)
    change = chance.choice(WAYS.get(format_id, (mutate_bytes,)))
    assert_coded_result(change(chance.choice(build_seeds(format_id)), chance), format_id)


@pytest.mark.parametrize("format_id", MESH_TARGETS)
def test_truncated_files_give_a_result_or_a_coded_error(format_id: str) -> None:
    """At every byte of the beginning and of the end, and at many between."""
    for data in build_seeds(format_id):
        middle = range(64, len(data) - 32, max(1, len(data) // 100))
        for length in [*range(64), *middle, *range(max(len(data) - 32, 64), len(data))]:
            assert_coded_result(data[:length], format_id)


@pytest.mark.parametrize("format_id", MESH_TARGETS)
def test_a_small_file_truncated_at_every_byte_gives_a_result_or_a_coded_error(format_id: str) -> None:
    for data in build_seeds(format_id, small=True):
        for length in range(len(data) + 1):
            assert_coded_result(data[:length], format_id)


WRONG = tuple(word.encode() for word in ("-1", "0", "3", "65536", "4294967295", "9" * 19, "1e308", "nan", "", "x"))


def list_fields(data: bytes, format_id: str) -> Iterator[tuple[int, int, tuple[bytes, ...]]]:
    """The places of a file where a number stands, and what is put there: counts, offsets, sizes and all others."""
    body = {"3mf": 0, "glb": 4, "stl": 76, "ply": data.find(b"end_header\n") + 11}.get(format_id, len(data))
    if data.startswith((b"solid", b"ply\nformat ascii")):
        body = len(data)
    if format_id not in ("3mf", "glb"):
        yield from ((match.start(), match.end(), WRONG) for match in NUMBER.finditer(data[:body]))
    width = 2 if format_id == "3mf" else 4
    most = 256**width - 1
    values = tuple(number.to_bytes(width, "little") for number in (0, 7, most // 2 + 1, most))
    step = 2 if format_id == "3mf" else 1  # there are many, and the archive's own tests take each
    yield from ((at, at + width, values) for at in range(body, len(data) - width + 1, step))


@pytest.mark.parametrize("format_id", MESH_TARGETS)
def test_any_wrong_number_in_a_small_file_gives_a_result_or_a_coded_error(format_id: str) -> None:
    for data in build_seeds(format_id, small=True):
        for start, end, values in list_fields(data, format_id):
            for value in values:
                assert_coded_result(data[:start] + value + data[end:], format_id)


def test_any_wrong_number_in_a_3mf_model_gives_a_result_or_a_coded_error() -> None:
    """Damage a part inside of the package, which stays valid."""
    (data,) = build_seeds("3mf", small=True)
    contents = unpack(data)
    (name,) = (name for name in contents if name.endswith(".model"))
    for match in NUMBER.finditer(contents[name]):
        for value in WRONG:
            model = contents[name][: match.start()] + value + contents[name][match.end() :]
            assert_coded_result(zip_entries(*(contents | {name: model}).items(), method=zipfile.ZIP_STORED), "3mf")


@pytest.mark.parametrize("format_id", READERS)
@given(tail=st.binary(max_size=300))
@settings(QUICK, max_examples=12)
def test_random_bytes_after_a_valid_head_give_a_result_or_a_coded_error(format_id: str, tail: bytes) -> None:
    for data in build_seeds(format_id):
        for length in (0, 4, 16, 84):
            assert_coded_result(data[:length] + tail, format_id)


@pytest.mark.parametrize("format_id", [name for name in MESH_TARGETS if name in ("obj", "stl", "ply", "gltf")])
@given(text=st.text(st.characters(codec="utf-8"), max_size=200))
@settings(QUICK, max_examples=12)
def test_random_text_in_a_file_gives_a_result_or_a_coded_error(format_id: str, text: str) -> None:
    data = build_seeds(format_id)[-1]
    middle = len(data) // 2
    assert_coded_result(data[:middle] + text.encode() + data[middle:], format_id)


FOUND = {
    "a comma for a number in STL text": ("stl", b"solid\nvertex 0 0 0\nvertex 1.5 0 0\nvertex 0 1 ,\n"),
    "one number for the texture coordinates of all faces of a PLY": (
        "ply",
        b"ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\n"
        b"element face 2\nproperty list uchar int vertex_indices\nproperty list uchar float texcoord\nend_header\n"
        b"0 0 0\n9 0 0\n0 9 0\n3 0 1 2 1 1\n0 0\n",
    ),
}
"""What `benchmarks/fuzz.py` found, cut down to what it takes."""


@pytest.mark.parametrize("what", FOUND)
def test_earlier_findings_give_a_result_or_a_coded_error(what: str) -> None:
    format_id, data = FOUND[what]
    assert_coded_result(data, format_id)
