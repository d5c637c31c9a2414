"""Confinement to allowed folders: links, `..`, absolute paths, races, devices, sizes."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from meshhub_mcp.folders import FileTooLarge, Folders, PathNotAllowed, PathNotFound

from meshhub import MeshhubError, OutputExists

SECRET = b"secret"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "allowed"
    (root / "parts").mkdir(parents=True)
    (root / "parts" / "a.stl").write_bytes(b"model")
    (tmp_path / "secret.stl").write_bytes(SECRET)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.stl").write_bytes(SECRET)
    return root


@pytest.fixture
def folders(root: Path) -> Iterator[Folders]:
    folders = Folders([root], 1000)
    yield folders
    folders.close()


def test_files_are_named_by_relative_or_absolute_paths(folders: Folders, root: Path) -> None:
    for path in ("parts/a.stl", "./parts//a.stl", f"{root}/parts/a.stl"):
        source = folders.read(path)
        assert (source.read(), source.name, source.path) == (b"model", "a.stl", None)


@pytest.mark.parametrize(
    "path",
    [
        "../secret.stl", "parts/../../secret.stl", "{root}/../secret.stl", "{root}evil/a.stl", "/etc/passwd",
        "parts/\0",
        "file.stl", "folder/a.stl", "loop/a.stl", "{root}/folder/a.stl", "parts/a.stl/x",
    ],
)  # fmt: skip
def test_paths_that_lead_outside_are_rejected_for_reading_and_writing(folders: Folders, root: Path, path: str) -> None:
    (root / "file.stl").symlink_to(root.parent / "secret.stl")
    (root / "folder").symlink_to(root.parent / "outside")
    (root / "loop").symlink_to("loop")
    path = path.format(root=root)
    with pytest.raises(PathNotAllowed) as caught:
        folders.read(path)
    assert caught.value.error_code == "path_not_allowed"
    with pytest.raises((PathNotAllowed, OutputExists)):
        folders.check_new(path)
    with pytest.raises((PathNotAllowed, OutputExists)):
        folders.write(path, b"new", {})
    assert (root.parent / "secret.stl").read_bytes() == SECRET
    assert os.listdir(root.parent / "outside") == ["a.stl"]


def test_a_link_to_an_allowed_folder_may_be_the_root(root: Path) -> None:
    (root.parent / "link").symlink_to(root)
    folders = Folders([root.parent / "link"], 1000)
    assert folders.read(f"{root.parent}/link/parts/a.stl").read() == b"model"
    assert folders.read(f"{root}/parts/a.stl").read() == b"model"
    folders.close()


def test_several_folders(root: Path) -> None:
    other = root.parent / "outside"
    folders = Folders([root, other], 1000)
    assert folders.read(f"{other}/a.stl").read() == SECRET
    files, _ = folders.list_files(str(other), frozenset({".stl"}))
    assert [file.path for file in files] == [f"{other}/a.stl"]
    folders.close()


def test_only_files_are_read(folders: Folders, root: Path) -> None:
    os.mkfifo(root / "pipe.stl")
    for path in ("pipe.stl", "parts", ".", "", "missing.stl", "missing/a.stl", "x" * 3000):
        with pytest.raises(PathNotFound):
            folders.read(path)


def test_the_size_limit_includes_companions(folders: Folders, root: Path) -> None:
    (root / "a.obj").write_bytes(b"mtllib a.mtl\n" + b" " * 900)
    (root / "a.mtl").write_bytes(b"newmtl a\n")
    assert folders.read("a.obj").sibling("a.mtl") is not None
    (root / "a.mtl").write_bytes(b" " * 100)
    with pytest.raises(FileTooLarge):
        folders.read("a.obj")
    (root / "big.stl").write_bytes(b" " * 1001)
    with pytest.raises(FileTooLarge, match="limit of this server"):
        folders.read("big.stl")


def test_companions_are_the_files_that_the_model_names(folders: Folders, root: Path) -> None:
    (root / "a.obj").write_bytes(b"mtllib a.mtl\nmtllib link.mtl\nmtllib ../secret.stl\n")
    (root / "a.mtl").write_bytes(b"newmtl a\nmap_Kd textures/my%20wood.png\n")
    (root / "textures").mkdir()
    (root / "textures" / "my wood.png").write_bytes(b"png")
    (root / "unrelated.png").write_bytes(b"png")
    (root / "link.mtl").symlink_to(root.parent / "secret.stl")
    source = folders.read("a.obj")
    texture = source.sibling("textures/my%20wood.png")
    assert texture is not None
    assert texture.read() == b"png"
    assert all(source.sibling(name) is None for name in ("unrelated.png", "link.mtl", "../secret.stl", "secret.stl"))


def test_results_are_new_files_and_leave_no_temporary_file(folders: Folders, root: Path) -> None:
    folders.check_new("parts/b.obj")
    folders.write("parts/b.obj", b"new", {"b.mtl": b"red"})
    folders.write("parts/c.obj", b"new", {"b.mtl": b"red"})
    assert sorted(os.listdir(root / "parts")) == ["a.stl", "b.mtl", "b.obj", "c.obj"]
    for path in ("parts/a.stl", "parts/b.obj", "parts", "."):
        with pytest.raises(OutputExists):
            folders.check_new(path)
    for path, companions in (("parts/a.stl", {}), ("parts/d.obj", {"b.mtl": b"blue"})):
        with pytest.raises(OutputExists):
            folders.write(path, b"other", companions)
    assert (root / "parts" / "a.stl").read_bytes() == b"model"
    assert sorted(os.listdir(root / "parts")) == ["a.stl", "b.mtl", "b.obj", "c.obj"]


def test_listings_leave_out_links_and_hidden_files(folders: Folders, root: Path) -> None:
    (root / "link.stl").symlink_to(root / "parts" / "a.stl")
    (root / "outside").symlink_to(root.parent / "outside")
    (root / ".hidden.stl").write_bytes(b"")
    (root / "notes.txt").write_bytes(b"")
    assert folders.list_files(".", frozenset({".stl"})) == ([("parts/a.stl", 5)], False)
    for number in range(600):
        (root / "parts" / f"{number}.stl").write_bytes(b"")
    files, is_truncated = folders.list_files("parts", frozenset({".stl"}))
    assert (len(files), is_truncated) == (500, True)


def test_listings_open_one_folder_at_a_time(folders: Folders, root: Path) -> None:
    resource = pytest.importorskip("resource", reason="limits need POSIX")
    count = 400
    for number in range(count):
        (root / f"{number}").mkdir()
        (root / f"{number}" / "b.stl").write_bytes(b"model")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
    try:
        files, more = folders.list_files("", frozenset({".stl"}))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert (len(files), more) == (count + 1, False)


def test_a_folder_that_becomes_a_link_meanwhile_leads_nowhere(folders: Folders, root: Path) -> None:
    """Swap a folder and a link to another one as fast as possible while files are read and written."""
    ended = threading.Event()
    folder, link, spare = root / "parts", root / "link", root / "spare"
    link.symlink_to(root.parent / "outside")

    def swap() -> None:
        while not ended.is_set():
            for first, second in ((folder, spare), (link, folder), (folder, link), (spare, folder)):
                first.rename(second)

    thread = threading.Thread(target=swap)
    thread.start()
    read = written = rejected = 0
    try:
        for number in range(3000):
            try:
                assert folders.read("parts/a.stl").read() == b"model"
                read += 1
                folders.write(f"parts/{number}.stl", b"new", {})
                written += 1
            except MeshhubError as error:
                assert error.error_code in ("path_not_allowed", "not_found")
                rejected += 1
    finally:
        ended.set()
        thread.join()
    assert min(read, written, rejected) > 0
    assert os.listdir(root.parent / "outside") == ["a.stl"]
