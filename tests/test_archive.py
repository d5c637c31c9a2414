"""Archive reader: readable archives, rejected archives, and archives with wrong sizes."""

from __future__ import annotations

import os
import random
import stat
import struct
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bombs import special_entry, zip_entries, zip_to_pipe
from meshhub.errors import UnreadableFile, UnsafeArchive
from meshhub.toolkit.archive import UPLOAD_LIMITS, Archive, ArchiveLimits, is_system_file


def central(data: bytes, number: int = 0) -> int:
    """Return the start of the central header of an entry."""
    at = -1
    for _ in range(number + 1):
        at = data.index(b"PK\x01\x02", at + 1)
    return at


def patched(data: bytes, at: int, layout: str, value: int) -> bytes:
    changed = bytearray(data)
    struct.pack_into(layout, changed, at, value)
    return bytes(changed)


NOISE = random.Random(1).randbytes(700_000)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("on_disk", [False, True])
def test_entries_are_read_and_extracted(tmp_path: Path, method: int, on_disk: bool) -> None:
    files = [("a.stl", b"solid"), ("deep/er/ü.obj", NOISE), ("empty", b""), ("folder/", b"")]
    data = zip_entries(*files, method=method)
    if on_disk:
        (tmp_path / "x.zip").write_bytes(data)
    with Archive(tmp_path / "x.zip" if on_disk else data, UPLOAD_LIMITS) as archive:
        assert [entry.name for entry in archive.entries] == ["a.stl", "deep/er/ü.obj", "empty"]
        for number, (name, content) in enumerate(files[:3]):
            assert archive.entries[number].size == len(content)
            assert archive.read(name) == content
            for size in (0, 3, 300_000, len(content), len(content) + 1):
                assert archive.read_head(name, size) == content[:size]
            assert archive.extract(name, tmp_path / str(number)) == len(content)
            assert (tmp_path / str(number)).read_bytes() == content
        for read in (archive.read, lambda name: archive.read_head(name, 1)):
            with pytest.raises(KeyError):
                read("missing")
        assert archive.find("DEEP/ER/U\u0308.OBJ") == "deep/er/ü.obj"
        assert archive.find("nothing") is None


def test_zip64_and_streamed_archives_are_read() -> None:
    with Archive(zip_to_pipe("a.bin", NOISE)) as archive:
        assert archive.read("a.bin") == NOISE


@pytest.mark.parametrize(
    "name",
    ["/etc/x", "../x", "a/../../x", "C:x", "c:/x", "..\\x", "c:\\x", "a\nb", "a\x7fb", "x" * 2000, "a/" * 40 + "b"],
)
def test_unsafe_names_are_rejected(name: str) -> None:
    with pytest.raises(UnsafeArchive):
        Archive(zip_entries((special_entry(name), b"x")), UPLOAD_LIMITS)


def test_a_nul_in_a_name_is_rejected() -> None:
    data = zip_entries(("a_b.stl", b"x")).replace(b"a_b.stl", b"a\0b.stl")
    with pytest.raises(UnsafeArchive):
        Archive(data, UPLOAD_LIMITS)


def test_backslashes_are_read_as_slashes() -> None:
    data = zip_entries(("3D_m.model", b"x")).replace(b"3D_m.model", b"3D\\m.model")
    with Archive(data, UPLOAD_LIMITS) as archive:
        assert archive.read("3D/m.model") == b"x"


def test_backslashes_can_be_rejected() -> None:
    data = zip_entries(("3D_m.model", b"x")).replace(b"3D_m.model", b"3D\\m.model")
    with pytest.raises(UnsafeArchive, match="use slashes"):
        Archive(data, ArchiveLimits(backslashes=False))


@pytest.mark.parametrize(
    ("first", "second"),
    [("a.stl", "A.STL"), ("ü.stl", "u\u0308.stl"), ("a", "a/b.stl"), ("a/b.stl", "a"), ("a.stl", "./a.stl")],
)
def test_names_that_are_equal_or_nested_are_rejected(first: str, second: str) -> None:
    with pytest.raises(UnsafeArchive):
        Archive(zip_entries((first, b"1"), (second, b"2")), UPLOAD_LIMITS)


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFIFO, stat.S_IFSOCK])
def test_links_and_devices_are_rejected(kind: int) -> None:
    with pytest.raises(UnsafeArchive):
        Archive(zip_entries((special_entry("a.stl", kind), b"/etc/passwd")), UPLOAD_LIMITS)


def test_encryption_and_other_methods_are_rejected() -> None:
    data = zip_entries(("a.stl", b"x" * 100))
    with pytest.raises(UnsafeArchive, match="encrypted"):
        Archive(patched(data, central(data) + 8, "<H", 1), UPLOAD_LIMITS)
    with pytest.raises(UnsafeArchive, match="method 14"):
        Archive(zip_entries(("a.stl", b"x" * 100), method=zipfile.ZIP_LZMA), UPLOAD_LIMITS)


def test_nested_archives_are_rejected_in_uploads_only() -> None:
    data = zip_entries(("inner.ZIP", b"PK"))
    with pytest.raises(UnsafeArchive, match="archive in the archive"):
        Archive(data, UPLOAD_LIMITS)
    Archive(data).close()
    Archive(zip_entries(("model.3mf", b"PK")), UPLOAD_LIMITS).close()


def test_overlapping_entries_are_rejected() -> None:
    data = zip_entries(("a.stl", b"x" * 100), ("b.stl", b"y" * 100))
    with pytest.raises((UnsafeArchive, UnreadableFile)) as caught:
        Archive(patched(data, central(data, 1) + 42, "<L", 0), UPLOAD_LIMITS)
    assert caught.type is UnsafeArchive


def test_a_bomb_is_rejected_by_its_declared_sizes() -> None:
    bomb = zip_entries(("a.stl", bytes(50_000_000)))
    assert len(bomb) < 60_000
    with pytest.raises(UnsafeArchive):
        Archive(bomb, UPLOAD_LIMITS)


@pytest.mark.parametrize("declared_size", [10, 1_000_000])
def test_a_bomb_with_wrong_sizes_is_stopped_while_it_inflates(tmp_path: Path, declared_size: int) -> None:
    bomb = zip_entries(("a.stl", bytes(50_000_000)))
    lying = patched(bomb, central(bomb) + 24, "<L", declared_size)
    with Archive(lying, UPLOAD_LIMITS) as archive:
        with pytest.raises((UnsafeArchive, UnreadableFile)):
            archive.read("a.stl")
        with pytest.raises((UnsafeArchive, UnreadableFile)):
            archive.extract("a.stl", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_byte_limits_apply() -> None:
    data = zip_entries(*((f"{k}.bin", NOISE[: 100_000 + k]) for k in range(5)))
    with pytest.raises(UnsafeArchive):
        Archive(data, ArchiveLimits(max_total_bytes=400_000))
    with pytest.raises(UnsafeArchive):
        Archive(data, ArchiveLimits(max_entry_bytes=100_003))
    with pytest.raises(UnsafeArchive):
        Archive(data, ArchiveLimits(max_entries=4))
    with Archive(data, ArchiveLimits(max_total_bytes=500_010, max_entry_bytes=100_004, max_entries=5)) as archive:
        with pytest.raises(UnsafeArchive):
            archive.read("0.bin", limit=99_999)
        assert len(archive.read("0.bin", limit=100_000)) == 100_000


def test_a_million_entries_are_rejected_by_their_count() -> None:
    record = struct.pack("<4s6H3L5H2L", b"PK\x01\x02", 20, 20, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0) + b"a"
    directory = record * 1_000_000
    end_64 = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, 10**6, 10**6, len(directory), 0)
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, len(directory), 1)
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    with pytest.raises(UnsafeArchive, match="more than 10000"):
        Archive(directory + end_64 + locator + end, UPLOAD_LIMITS)
    few = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 5, 5, len(directory), 0, 0)
    with pytest.raises(UnreadableFile):
        Archive(directory + few, UPLOAD_LIMITS)


def test_damaged_archives_are_unreadable() -> None:
    data = zip_entries(("a.stl", NOISE[:5000]))
    for broken in (b"", b"PK\x03\x04", data[:-30], data[100:], b"x" + data, NOISE[:1000]):
        with pytest.raises(UnreadableFile):
            Archive(broken, UPLOAD_LIMITS)
    flipped = bytearray(data)
    flipped[1000] ^= 255
    with Archive(bytes(flipped), UPLOAD_LIMITS) as archive, pytest.raises(UnreadableFile):
        archive.read("a.stl")


@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=8), st.integers(0, 400))
def test_changed_bytes_end_in_a_coded_error_or_the_right_bytes(changes: list[tuple[int, int]], cut: int) -> None:
    whole = zip_entries(("a.stl", b"solid " * 40), ("b/c.obj", b"v 0 0 0\n" * 9))
    data = bytearray(whole)
    for at, value in changes:
        data[at % len(data)] = value
    broken = bytes(data[: len(data) - cut] if cut % 3 == 0 else data)
    try:
        with Archive(broken, UPLOAD_LIMITS) as archive:
            for entry in archive.entries:
                assert len(archive.read(entry.name)) == entry.size
    except (UnreadableFile, UnsafeArchive):
        pass


def contents(data: bytes) -> dict[str, bytes] | None:
    """Return the content of each entry, or None if the archive is rejected, in whole or in part."""
    try:
        with Archive(data, UPLOAD_LIMITS) as archive:
            return {entry.name: archive.read(entry.name) for entry in archive.entries}
    except (UnreadableFile, UnsafeArchive):
        return None


SMALL = (
    zip_entries(("a.stl", b"solid " * 20), ("b/c.obj", b"v 0 0 0\n")),
    zip_entries(("a.stl", b"solid"), ("b/", b""), method=zipfile.ZIP_STORED),
)


@pytest.mark.parametrize("data", SMALL)
def test_an_archive_cut_at_any_byte_is_rejected(data: bytes) -> None:
    for length in range(len(data)):
        assert contents(data[:length]) is None
        assert contents(data[length + 1 :]) is None
    assert contents(data)


@pytest.mark.parametrize("data", SMALL)
@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_a_changed_number_never_changes_the_content(data: bytes, width: int) -> None:
    """With any value in any header field, the archive is rejected or its content is unchanged."""
    maximum = 256**width - 1
    right = set(contents(data).values()) | {b""}
    for at in range(len(data) - width + 1):
        for value in (0, 1, maximum // 2, maximum // 2 + 1, maximum - 1, maximum, len(data)):
            changed = bytearray(data)
            changed[at : at + width] = (value & maximum).to_bytes(width, "little")
            files = contents(bytes(changed))
            assert files is None or set(files.values()) <= right


@pytest.mark.parametrize(
    "name", ["__MACOSX/a.stl", ".DS_Store", "x/.DS_Store", "a/._b.stl", "Thumbs.db", "x/desktop.ini"]
)
def test_system_files_are_detected(name: str) -> None:
    assert is_system_file(name)


@pytest.mark.parametrize("name", ["a.stl", "x/thumbs.stl", "_MACOSX/a.stl", "DS_Store.obj"])
def test_models_are_not_system_files(name: str) -> None:
    assert not is_system_file(name)


def test_a_closed_archive_releases_its_file(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    path.write_bytes(zip_entries(("a.stl", b"solid")))
    open_file_count = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    for _ in range(50):
        with Archive(path) as archive:
            archive.read("a.stl")
    if open_file_count:
        assert len(os.listdir("/proc/self/fd")) <= open_file_count + 1
