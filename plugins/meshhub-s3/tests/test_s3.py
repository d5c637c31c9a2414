"""Conversions between objects of a real S3 server, and stores that misbehave."""

from __future__ import annotations

import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from meshhub_s3 import objects

from meshhub import (
    InProcess,
    InvalidOption,
    Isolated,
    ModelTooComplex,
    OutputExists,
    Registry,
    RequestError,
    RequestRefused,
    Source,
    UnreadableFile,
)

CORNERS = [(0, 0, 0), (10, 0, 0), (10, 20, 0), (0, 20, 0), (0, 0, 30), (10, 0, 30), (10, 20, 30), (0, 20, 30)]
QUADS = [(4, 3, 2, 1), (5, 6, 7, 8), (1, 2, 6, 5), (2, 3, 7, 6), (3, 4, 8, 7), (4, 1, 5, 8)]
BRICK = "".join([f"v {x} {y} {z}\n" for x, y, z in CORNERS] + [f"f {a} {b} {c} {d}\n" for a, b, c, d in QUADS]).encode()


@pytest.fixture
def registry(environment: None) -> Registry:
    registry = Registry()
    assert "s3" in registry.declarations.storages, registry.faults
    return registry


@pytest.fixture
def brick(client: Any) -> str:
    client.put_object(Bucket="models", Key="in/brick.obj", Body=BRICK)
    return "s3://models/in/brick.obj"


def keys(client: Any, prefix: str) -> list[str]:
    return [item["Key"] for item in client.list_objects_v2(Bucket="models", Prefix=prefix).get("Contents", [])]


def content(client: Any, key: str) -> bytes:
    return client.get_object(Bucket="models", Key=key)["Body"].read()


def test_a_conversion_from_object_to_object(registry: Registry, client: Any, brick: str) -> None:
    report = registry.convert(brick, "s3://models/out/brick.stl", overwrite=False)
    assert report.target.size_mm == pytest.approx((10, 20, 30))
    assert len(content(client, "out/brick.stl")) == 84 + 50 * 12
    assert registry.inspect("s3://models/out/brick.stl").model.volume_mm3 == pytest.approx(6000)


@pytest.mark.parametrize("key", ["a b/ü#%20?&+.stl", "x.stl", "a/b/c/d.stl"])
def test_keys_are_taken_literally(registry: Registry, client: Any, key: str) -> None:
    registry.convert(BRICK, f"s3://models/{key}")
    assert keys(client, key) == [key]
    assert registry.inspect(f"s3://models/{key}").model.faces == 12


def test_companions_are_stored_beside_the_result_and_never_over_other_content(registry: Registry, client: Any) -> None:
    model = b"mtllib a.mtl\nusemtl red\nv 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n"
    source = Source.from_bytes(model, "a.obj", {"a.mtl": b"newmtl red\nKd 1 0 0\n"})
    registry.convert(source, "s3://models/painted/a.obj")
    registry.convert(source, "s3://models/painted/b.obj")
    materials, *objs = sorted(keys(client, "painted/"), key=lambda key: not key.endswith(".mtl"))
    assert objs == ["painted/a.obj", "painted/b.obj"]
    assert materials.rpartition("/")[2].encode() in content(client, "painted/a.obj")
    client.put_object(Bucket="models", Key=materials, Body=b"mine")
    with pytest.raises(FileExistsError, match="other content"):
        registry.convert(source, "s3://models/painted/c.obj")
    assert content(client, materials) == b"mine"
    assert "painted/c.obj" not in keys(client, "painted/")


MODEL = BRICK.replace(b"f 4 3 2 1", b"mtllib Paint 1.mtl\nusemtl wood\nvt 0 0\nf 4/1 3/1 2/1 1/1")
MTL = b"newmtl wood\nKd 1 1 1\nmap_Kd textures/Wood%201.PNG\n"


def png() -> bytes:
    """Return an image of one pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\0\xff\0\0")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


@pytest.fixture
def painted(client: Any) -> str:
    """Return the address of a model with a material and a texture, beside other models."""
    objects = {"wood.obj": MODEL, "paint 1.mtl": MTL, "textures/wood 1.png": png(), "large.obj": BRICK, "no.png": b"x"}
    for name, content in objects.items():
        client.put_object(Bucket="models", Key=f"painted in/{name}", Body=content)
    return "s3://models/painted in/wood.obj"


def codes(registry: Registry, model: str) -> set[str]:
    with tempfile.TemporaryDirectory() as folder:
        return {note.code for note in registry.convert(model, Path(folder, "a.glb")).notes}


def test_a_model_gets_the_companions_that_it_mentions(
    registry: Registry, client: Any, painted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[str] = []
    fetch = objects.S3Object.fetch
    monkeypatch.setattr(objects.S3Object, "fetch", lambda self, file: (fetched.append(self._key), fetch(self, file)))
    scene = registry.read(painted)
    assert [image.data for image in scene.images] == [png()]
    assert scene.materials[0].base_color_image == 0
    assert fetched == ["painted in/wood.obj", "painted in/paint 1.mtl", "painted in/textures/wood 1.png"]


@pytest.mark.parametrize("engine", [InProcess(), Isolated()], ids=["in-process", "isolated"])
def test_companions_go_from_prefix_to_prefix(environment: None, client: Any, painted: str, engine: Any) -> None:
    with Registry(engine=engine) as registry:
        registry.convert(painted, "s3://models/painted out/wood.obj")
        scene = registry.read("s3://models/painted out/wood.obj")
    assert sorted(Path(key).suffix for key in keys(client, "painted out/")) == [".mtl", ".obj", ".png"]
    assert [image.data for image in scene.images] == [png()]


def test_a_missing_companion_has_a_note(registry: Registry, client: Any, painted: str) -> None:
    assert "missing_companion" not in codes(registry, painted)
    client.delete_object(Bucket="models", Key="painted in/textures/wood 1.png")
    assert "missing_companion" in codes(registry, painted)


def test_objects_of_neighboring_prefixes_are_no_companions(registry: Registry, client: Any, painted: str) -> None:
    client.put_object(Bucket="models", Key="painted input/paint 1.mtl", Body=MTL)
    client.delete_object(Bucket="models", Key="painted in/paint 1.mtl")
    assert "missing_companion" in codes(registry, painted)


def test_a_companion_over_the_limit_is_an_error(
    registry: Registry, client: Any, painted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.put_object(Bucket="models", Key="painted in/textures/wood 1.png", Body=bytes(100_000))
    monkeypatch.setenv("MESHHUB_S3_MAX_BYTES", "50000")
    with pytest.raises(ModelTooComplex, match=r"wood 1\.png is larger than 50000 bytes"):
        registry.inspect(painted)


def test_a_model_in_the_root_of_a_bucket_has_companions(registry: Registry, client: Any) -> None:
    client.put_object(Bucket="models", Key="root.obj", Body=MODEL)
    client.put_object(Bucket="models", Key="Paint 1.mtl", Body=b"newmtl wood\nKd 1 0 0\n")
    assert registry.read("s3://models/root.obj").materials[0].base_color[1:3] == (0, 0)


def test_without_the_right_to_list_a_model_has_no_companions(
    registry: Registry, scripted: Callable[..., list[bytes]]
) -> None:
    model = f"{HEADERS}Content-Length: {len(MODEL)}\r\n\r\n".encode() + MODEL
    requests = scripted(model, DENIED)
    assert registry.inspect("s3://models/in/a.obj").model.faces == 12
    assert b"list-type=2" in requests[1]
    assert b"prefix=in" in requests[1]


def test_a_store_that_cannot_list_is_an_error(registry: Registry, scripted: Callable[..., list[bytes]]) -> None:
    scripted(f"{HEADERS}Content-Length: {len(MODEL)}\r\n\r\n".encode() + MODEL, FAILING)
    with pytest.raises(UnreadableFile, match=r"objects beside s3://models/a\.obj cannot be listed"):
        registry.inspect("s3://models/a.obj")


PAGES = ["plugins/meshhub-s3/README.md", "docs/how-to/object-storage.md"]


@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_the_documentation_runs(
    environment: None, client: Any, page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (Path(__file__).parent.parent.parent.parent / page).read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    monkeypatch.setenv("MESHHUB_S3_BUCKETS", "models,prints")
    client.create_bucket(Bucket="prints")
    client.put_object(Bucket="models", Key="bracket.stl", Body=Registry().convert_bytes(BRICK, "stl"))
    exec(code, {})
    assert client.get_object(Bucket="prints", Key="bracket.3mf")["Body"].read(2) == b"PK"


def test_an_existing_object_stays_without_overwrite(
    registry: Registry, client: Any, brick: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.put_object(Bucket="models", Key="mine.stl", Body=b"mine")
    with pytest.raises(OutputExists, match=r"s3://models/mine\.stl already exists"):
        registry.convert(brick, "s3://models/mine.stl", overwrite=False)
    # another program writes it after the check
    monkeypatch.setattr(objects, "_exists", lambda *_: False)
    with pytest.raises(OutputExists, match=r"s3://models/mine\.stl already exists"):
        registry.convert(brick, "s3://models/mine.stl", overwrite=False)
    with pytest.raises(OutputExists, match="not a result of meshhub"):
        registry.convert(brick, "s3://models/mine.stl")
    assert content(client, "mine.stl") == b"mine"
    for overwrite in (True, None):
        registry.convert(brick, "s3://models/mine.stl", overwrite=overwrite)
    assert content(client, "mine.stl") != b"mine"
    with pytest.raises(OutputExists, match="is an input"):
        registry.convert("s3://models/mine.stl", "S3://models/mine.stl", overwrite=True)


def test_large_objects_go_in_parts_and_come_back(registry: Registry, client: Any, tmp_path: Path) -> None:
    path = tmp_path / "large.bin"
    path.write_bytes(os.urandom(objects.PART_BYTES * 2 + 12_345))
    place = objects.open_object("s3://models/large.bin")
    place.store([path], overwrite=True)
    # the tag of an object that was sent in parts ends with their number
    assert client.head_object(Bucket="models", Key="large.bin")["ETag"].endswith('-3"')
    with (tmp_path / "back.bin").open("wb") as file:
        place.fetch(file)
    assert (tmp_path / "back.bin").read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("address", "error", "message"),
    [
        ("s3://private/a.stl", RequestRefused, "bucket 'private' is not allowed; add it to MESHHUB_S3_BUCKETS"),
        ("s3://models.evil/a.stl", RequestRefused, "is not allowed"),
        ("s3://../a.stl", RequestError, "is not the name of a bucket"),
        ("s3:///a.stl", RequestError, "is not the name of a bucket"),
        ("s3://user@models/a.stl", RequestError, "is not the name of a bucket"),
        ("s3://models/a//b.stl", RequestError, "has an empty part"),
        ("s3://models/../private/a.stl", RequestError, "has an empty part"),
        ("s3://models/" + "x" * 1025, RequestError, "at most 1024 bytes"),
        ("s3://models/missing.stl", FileNotFoundError, "the object does not exist"),
        ("s3://absent/a.stl", FileNotFoundError, "the bucket does not exist"),
    ],
)
def test_the_error_of_a_bad_address_says_why(
    registry: Registry, tmp_path: Path, address: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=re.escape(message)):
        registry.convert(address, tmp_path / "a.ply")
    if error is not FileNotFoundError:
        with pytest.raises(error, match=re.escape(message)):
            registry.convert(BRICK, address, target="ply")


def test_no_bucket_is_allowed_by_default(registry: Registry, monkeypatch: pytest.MonkeyPatch, brick: str) -> None:
    monkeypatch.delenv("MESHHUB_S3_BUCKETS")
    with pytest.raises(RequestRefused, match="MESHHUB_S3_BUCKETS"):
        registry.inspect(brick)
    monkeypatch.setenv("MESHHUB_S3_BUCKETS", "*")
    assert registry.inspect(brick).model.faces == 12


def test_a_result_for_a_missing_bucket_fails(registry: Registry, brick: str) -> None:
    with pytest.raises(FileNotFoundError, match="the bucket does not exist"):
        registry.convert(brick, "s3://absent/a.stl")


@pytest.mark.parametrize("variable", ["MESHHUB_S3_MAX_BYTES", "MESHHUB_S3_TIMEOUT_S"])
@pytest.mark.parametrize("value", ["0", "-5", "1e9", "lots"])
def test_bad_settings_are_rejected(
    registry: Registry, brick: str, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(InvalidOption, match=f"{variable} must be a whole number"):
        registry.inspect(brick)


def test_objects_over_the_limit_are_not_fetched(
    registry: Registry, brick: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MESHHUB_S3_MAX_BYTES", str(len(BRICK) - 1))
    with pytest.raises(ModelTooComplex, match="raise MESHHUB_S3_MAX_BYTES"):
        registry.inspect(brick)
    monkeypatch.setenv("MESHHUB_S3_MAX_BYTES", str(len(BRICK)))
    assert registry.inspect(brick).model.faces == 12


HEADERS = 'HTTP/1.1 200 OK\r\nETag: "1"\r\nLast-Modified: Wed, 21 Oct 2015 07:28:00 GMT\r\nConnection: close\r\n'
OK = f"{HEADERS}Content-Length: {len(BRICK)}\r\n\r\n".encode() + BRICK
DENIED = (
    b"HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 66\r\n\r\n"
    b"<Error><Code>AccessDenied</Code><Message>secret?</Message></Error>"
)
FAILING = b"HTTP/1.1 503 Slow Down\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


def test_denied_access(registry: Registry, scripted: Callable[..., list[bytes]]) -> None:
    requests = scripted(DENIED)
    with pytest.raises(UnreadableFile, match=r"s3://models/a\.obj cannot be fetched: access is denied"):
        registry.inspect("s3://models/a.obj")
    assert len(requests) == 1
    with pytest.raises(PermissionError, match="access is denied"):
        registry.convert(BRICK, "s3://models/a.stl")


def test_failed_requests_are_repeated(registry: Registry, scripted: Callable[..., list[bytes]]) -> None:
    requests = scripted(FAILING, b"", OK)
    assert registry.inspect("s3://models/a.obj").model.faces == 12
    assert len(requests) == 3


def test_a_store_that_keeps_failing_is_given_up(registry: Registry, scripted: Callable[..., list[bytes]]) -> None:
    requests = scripted(FAILING)
    with pytest.raises(UnreadableFile, match="cannot be fetched: the store does not answer"):
        registry.inspect("s3://models/a.obj")
    assert len(requests) == 1 + objects.MAX_RETRIES
    with pytest.raises(OSError, match="the store does not answer"):
        registry.convert(BRICK, "s3://models/a.stl")


def test_a_body_without_end_stops_at_the_limit(
    registry: Registry, scripted: Callable[..., list[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def send(connection: socket.socket) -> None:
        connection.sendall(f"{HEADERS}Content-Length: 1000000000000\r\n\r\n".encode())
        while True:
            connection.sendall(b"x" * 65_536)

    def send_in_chunks(connection: socket.socket) -> None:
        connection.sendall(f"{HEADERS}Transfer-Encoding: chunked\r\n\r\n".encode())
        while True:
            connection.sendall(b"10000\r\n" + b"x" * 65_536 + b"\r\n")

    monkeypatch.setenv("MESHHUB_S3_MAX_BYTES", "10000000")
    scripted(send)
    with pytest.raises(ModelTooComplex, match="larger than 10000000 bytes"):
        registry.inspect("s3://models/a.obj")
    scripted(send_in_chunks)
    with pytest.raises((UnreadableFile, ModelTooComplex), match=r"s3://models/a\.obj"):
        registry.inspect("s3://models/a.obj")


def test_a_body_that_stalls_ends_at_the_timeout(
    registry: Registry, scripted: Callable[..., list[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stall(connection: socket.socket) -> None:
        connection.sendall(OK[:-20])
        time.sleep(30)

    monkeypatch.setenv("MESHHUB_S3_TIMEOUT_S", "1")
    scripted(stall)
    began = time.monotonic()
    with pytest.raises(UnreadableFile, match="cannot be fetched"):
        registry.inspect("s3://models/a.obj")
    assert time.monotonic() - began < 20


def test_a_body_that_breaks_off_is_not_converted(registry: Registry, scripted: Callable[..., list[bytes]]) -> None:
    def reset(connection: socket.socket) -> None:
        connection.sendall(OK[:-20])
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    scripted(reset)
    with pytest.raises(UnreadableFile, match="cannot be fetched"):
        registry.inspect("s3://models/a.obj")


def test_the_command_line_converts_objects(environment: None, client: Any, brick: str) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "meshhub", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    done = run("convert", brick, "s3://models/cli/brick.3mf", "--place-on-bed")
    assert done.returncode == 0, done.stderr
    assert content(client, "cli/brick.3mf").startswith(b"PK")
    refused = run("inspect", "s3://private/a.obj")
    assert (refused.returncode, "MESHHUB_S3_BUCKETS" in refused.stderr) == (2, True)
