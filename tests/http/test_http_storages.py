"""Storages of plug-ins: addresses such as shelf://name in Python and on the command line, never over HTTP."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import distributions
import shelf_plugin
from http_serving import serving
from meshhub import (
    MeshhubError,
    MissingDependency,
    OutputExists,
    PluginError,
    Registry,
    RequestError,
    Scene,
    Source,
    Storage,
    Target,
    hookimpl,
)
from models import brick, scene_of

pytestmark = pytest.mark.once

BRICK = Registry(entry_points=False).convert_bytes(scene_of(brick()), "stl")


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the storage, which has a model."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    (folder / "brick.stl").write_bytes(BRICK)
    monkeypatch.setenv("SHELF", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    shelf_plugin.OPENED.clear()
    return folder


@pytest.fixture
def registry() -> Registry:
    return Registry(plugins=[shelf_plugin], entry_points=False)


def test_python_converts_between_addresses_and_leaves_no_temporary_file(
    shelf: Path, registry: Registry, tmp_path: Path
) -> None:
    report = registry.convert("shelf://brick.stl", "shelf://brick.3mf", place_on_bed=True)
    assert report.target.size_mm == pytest.approx((10, 20, 30))
    assert (shelf / "brick.3mf").read_bytes().startswith(b"PK")
    assert isinstance(registry.read("shelf://brick.3mf"), Scene)
    assert registry.inspect("SHELF://brick.stl").model.volume_mm3 == pytest.approx(6000)
    registry.render("shelf://brick.stl", "shelf://brick.png")
    assert (shelf / "brick.png").read_bytes().startswith(b"\x89PNG")
    assert os.listdir(tmp_path / "temporary") == []


def test_companions_are_stored_beside_the_result(shelf: Path, registry: Registry) -> None:
    model = b"mtllib a.mtl\nusemtl red\nv 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n"
    source = Source.from_bytes(model, "a.obj", {"a.mtl": b"newmtl red\nKd 1 0 0\n"})
    registry.convert(source, "shelf://a.obj")
    assert sorted(path.suffix for path in shelf.iterdir()) == [".mtl", ".obj", ".stl"]


def test_a_model_gets_the_companions_that_it_mentions(shelf: Path, registry: Registry, tmp_path: Path) -> None:
    (shelf / "a.obj").write_bytes(b"mtllib sub\\A.MTL\nusemtl red\nv 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    (shelf / "sub").mkdir()
    (shelf / "sub" / "a.mtl").write_bytes(b"newmtl red\nKd 1 0 0\n")
    (shelf / "other.mtl").write_bytes(b"newmtl red\nKd 0 1 0\n")
    assert registry.read("shelf://a.obj").materials[0].base_color == (1, 0, 0, 1)
    assert os.listdir(tmp_path / "temporary") == []


def test_a_companion_that_disappears_is_missing(
    shelf: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shelf / "a.obj").write_bytes(b"mtllib gone.mtl\nusemtl red\nv 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    gone = shelf_plugin.ShelfFile("shelf://gone.mtl")
    monkeypatch.setattr(shelf_plugin.ShelfFile, "list_folder", lambda _: {"gone.mtl": gone})
    report = registry.convert("shelf://a.obj", "shelf://a.glb")
    assert "missing_companion" in {note.code for note in report.notes}


def test_an_existing_file_stays_without_overwrite(shelf: Path, registry: Registry) -> None:
    (shelf / "brick.ply").write_bytes(b"mine")
    with pytest.raises(OutputExists, match=r"shelf://brick\.ply"):
        registry.convert("shelf://brick.stl", "shelf://brick.ply", overwrite=False)
    assert (shelf / "brick.ply").read_bytes() == b"mine"


def test_a_failed_conversion_stores_nothing(shelf: Path, registry: Registry) -> None:
    (shelf / "bad.stl").write_bytes(b"solid bad\nfacet\n")
    with pytest.raises(MeshhubError):
        registry.convert("shelf://bad.stl", "shelf://bad.ply")
    assert not (shelf / "bad.ply").exists()


@pytest.mark.parametrize(
    ("address", "error", "message"),
    [
        ("https://example.org/a.stl", RequestError, "no plug-in opens https:// addresses"),
        ("shelf://", RequestError, "names no file"),
        ("shelf://folder/", RequestError, "names no file"),
        ("shelf://a/..", RequestError, "names no file"),
        ("shelf://a\n.stl", RequestError, "names no file"),
        ("shelf://missing.stl", FileNotFoundError, "no such file"),
        ("broken://a.stl", PluginError, "storage of plug-in 'shelf_plugin'"),
        ("absent://a.stl", MissingDependency, r"pip install \"shelf\[absent\]\""),
    ],
)
@pytest.mark.usefixtures("shelf")
def test_the_error_of_a_bad_address_says_why(
    registry: Registry, address: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        registry.inspect(address)


def test_only_text_with_a_scheme_is_an_address(shelf: Path, registry: Registry, tmp_path: Path) -> None:
    registry.inspect(Source.from_bytes(BRICK, "shelf://brick.stl"))
    registry.inspect(shelf / "brick.stl")
    registry.convert(BRICK, Target("shelf://brick.ply"), target="ply")
    with pytest.raises(FileNotFoundError):
        registry.inspect(Path("shelf://brick.stl"))
    with pytest.raises(FileNotFoundError):
        registry.inspect("C:/shelf.stl")
    assert shelf_plugin.OPENED == []


def test_the_service_never_opens_an_address(shelf: Path, tmp_path: Path) -> None:
    folder = tmp_path / "service"
    folder.mkdir()
    names = ("shelf://brick.stl", "shelf:/brick.stl", "brick.stl")
    model = b"mtllib shelf://a.mtl\nv 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n"
    with serving(folder, {}, plugins=(shelf_plugin,)) as service:
        for name in names:
            assert service.convert(BRICK, name, "ply").status_code == 200
            assert service.convert(b"shelf://brick.stl", name, "ply").status_code >= 400
            assert service.convert(BRICK, name, "shelf://out.ply").status_code == 400
            assert service.post("/inspect", {"file": (name, BRICK)}).status_code == 200
        assert service.convert(model, "a.obj", "ply").status_code == 200
        assert service.post("/convert", data={"file": "shelf://brick.stl", "target": "ply"}).status_code == 400
        assert service.many((names[0], BRICK), target="ply").status_code == 200
        assert "shelf://" not in service.get("/supported").text
    assert shelf_plugin.OPENED == []
    assert os.listdir(shelf) == ["brick.stl"]


def test_a_storage_that_cannot_be_kept_is_a_fault() -> None:
    class Declaring:
        def __init__(self, name: str, scheme: str, run: str = "shelf_plugin:ShelfFile") -> None:
            self.__name__ = name
            self.storage = Storage(scheme=scheme, run=run)

        @hookimpl
        def meshhub_storages(self) -> list[Storage]:
            return [self.storage]

    plugins = [
        shelf_plugin,
        Declaring("second", "shelf"),
        Declaring("drive", "c"),
        Declaring("capital", "Shelf"),
        Declaring("nowhere", "nowhere", "no_such_module:run"),
    ]
    registry = Registry(plugins=plugins, builtins=False, entry_points=False)
    scheme = "scheme must be a scheme of two or more of a-z, 0-9, '+', '.' and '-'"
    assert [(fault.plugin, fault.message) for fault in registry.faults] == [
        ("second", "storage of 'shelf': it is already declared by 'shelf_plugin'"),
        ("drive", f"storage of 'c': {scheme}, got 'c'"),
        ("capital", f"storage of 'Shelf': {scheme}, got 'Shelf'"),
        ("nowhere", "storage of 'nowhere': the module of 'no_such_module:run' does not exist"),
    ]


@pytest.fixture
def run(shelf: Path, tmp_path: Path):  # type: ignore[no-untyped-def]
    """Return a function that runs meshhub with the plug-in installed."""
    distributions.install(tmp_path / "site", "meshhub-shelf", shelf="shelf_plugin")
    path = os.pathsep.join([str(tmp_path / "site"), str(Path(shelf_plugin.__file__).parent)])
    environment = {**os.environ, "PYTHONPATH": path}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "meshhub", *arguments],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
            cwd=tmp_path,
        )

    return run


@pytest.mark.large
def test_the_command_line_opens_addresses(shelf: Path, tmp_path: Path, run) -> None:  # type: ignore[no-untyped-def]
    assert run("convert", "shelf://brick.stl", "shelf://brick.ply").returncode == 0
    again = run("convert", "shelf://brick.stl", "shelf://brick.ply")
    assert (again.returncode, "use --force" in again.stderr) == (6, True)
    assert run("convert", "shelf://brick.stl", "shelf://brick.ply", "--force").returncode == 0
    assert run("convert", "shelf://brick.ply", "local.glb").returncode == 0
    assert (tmp_path / "local.glb").read_bytes().startswith(b"glTF")
    assert "10 × 20 × 30 mm" in run("inspect", "shelf://brick.ply").stdout
    assert "target 3mf" in run("explain", "shelf://brick.stl", "3mf").stdout
    assert run("render", "shelf://brick.stl", "shelf://brick.png").returncode == 0
    assert sorted(os.listdir(shelf)) == ["brick.ply", "brick.png", "brick.stl"]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("convert", "shelf://brick.stl", "--to", "ply"), 2, "an address needs an OUTPUT"),
        (("convert", "shelf://brick.stl", "shelf://brick.stl", "--force"), 2, "is the input itself"),
        (("convert", "shelf://brick.stl", "--to", "ply", "-o", "out"), 2, "convert each address to its own OUTPUT"),
        (("convert", "shelf://missing.stl", "a.ply"), 3, "the shelf has no such file"),
        (("convert", "shelf://brick.stl", "other://a.ply"), 2, "no plug-in opens other:// addresses"),
        (("inspect", "https://example.org/a.stl"), 2, "no plug-in opens https:// addresses"),
    ],
)
def test_the_command_line_rejects_bad_addresses(arguments, status, message, run) -> None:  # type: ignore[no-untyped-def]
    process = run(*arguments)
    assert (process.returncode, message in process.stderr) == (status, True), process.stderr
