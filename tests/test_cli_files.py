"""Files that the command line reads, replaces and keeps."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import subprocess
import sys
import unicodedata
import zipfile
from pathlib import Path

import pytest

from builtin_formats import TARGETS
from distributions import install
from meshhub import Format, InProcess, Inspection, Isolated, OutputExists, Registry, Report, Source, Target
from meshhub.engine.contract import Cancel, Task
from meshhub.errors import DiskFull, UnreadableFile
from meshhub.pipeline.existing_files import is_own_result
from test_cli import list_files, meshhub_cli, meshhub_process, write_stl

pytestmark = pytest.mark.once

RED = "newmtl red\nKd 1 0 0\n"
OBJ = "mtllib m.mtl\nusemtl red\nv 0 0 0\nv 9 0 0\nv 0 9 0\nv 0 0 9\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"

posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")


def write_red_obj(folder: Path) -> Path:
    """Write an OBJ with a material; return its path."""
    folder.mkdir(exist_ok=True)
    (folder / "m.mtl").write_text(RED)
    (folder / "m.obj").write_text(OBJ)
    return folder / "m.obj"


def read_files(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in list_files(folder)}


@pytest.mark.parametrize("force", [[], ["--force"]])
@pytest.mark.parametrize(
    ("paths", "to"),
    [
        (["a.stl", "b.stl"], ["--to", "3mf"]),
        (["a.stl", "b.stl"], ["--to", "stl"]),
        (["a.stl", "b.stl"], []),
        (["m.mtl", "m.obj"], ["--to", "3mf"]),
        (["m.obj", "m.mtl"], ["--to", "3mf"]),
        (["a.stl", "new.obj"], ["--to", "3mf"]),
        (["a.stl", "a.stl"], ["--to", "stl"]),
        (["a.stl", "same.stl"], []),
        (["a.stl", "also.stl"], []),
    ],
)
def test_two_inputs_without_an_output_folder_are_rejected(
    tmp_path: Path, paths: list[str], to: list[str], force: list[str]
) -> None:
    write_red_obj(tmp_path)
    write_stl(tmp_path / "b.stl", (5, 5, 5))
    os.link(write_stl(tmp_path / "a.stl"), tmp_path / "same.stl")
    (tmp_path / "also.stl").symlink_to("a.stl")
    before = read_files(tmp_path)
    result = meshhub_cli("convert", *paths, *to, *force, "--repair", cwd=tmp_path)
    assert result.returncode == 2, result.stderr
    assert b"--output-dir" in result.stderr
    assert read_files(tmp_path) == before


@pytest.mark.parametrize("to", [[], ["--to", "obj"]])
@pytest.mark.parametrize("paths", [("a.stl", "b.obj"), ("a.stl", "b.OBJ"), ("a.stl", "link.obj"), ("part", "b.obj")])
def test_a_second_model_is_kept_even_with_force(tmp_path: Path, paths: tuple[str, str], to: list[str]) -> None:
    """The shell expands `convert * --force` to two files of different formats."""
    write_stl(tmp_path / "a.stl")
    write_stl(tmp_path / "part.stl").rename(tmp_path / "part")
    for name in ("b.obj", "b.OBJ"):
        (tmp_path / name).write_text(OBJ)
    (tmp_path / "link.obj").symlink_to("b.obj")
    before = read_files(tmp_path)
    result = meshhub_cli("convert", *paths, *to, "--force", cwd=tmp_path)
    assert result.returncode == 2
    assert f"--output {paths[1]} --force" in result.stderr.decode()
    assert b"--output-dir DIR" in result.stderr
    assert read_files(tmp_path) == before


def test_a_second_model_without_force_names_the_flags(tmp_path: Path) -> None:
    write_stl(tmp_path / "a.stl")
    (tmp_path / "b c.obj").write_text(OBJ)
    result = meshhub_cli("convert", "a.stl", "b c.obj", "--json", cwd=tmp_path)
    assert result.returncode == 6
    outcome = json.loads(result.stdout)
    assert outcome["error_code"] == "output_exists"
    assert outcome["error"].count("use --output 'b c.obj' --force to overwrite it") == 1
    (tmp_path / "a.obj").write_text(OBJ)
    derived = meshhub_cli("convert", "a.stl", "--to", "obj", cwd=tmp_path)
    assert derived.returncode == 6
    assert b"use --force to overwrite it" in derived.stderr


def test_a_named_output_is_replaced_with_force(tmp_path: Path) -> None:
    write_stl(tmp_path / "a.stl")
    command = ("convert", "a.stl", "--output", "a.ply")
    assert meshhub_cli(*command, cwd=tmp_path).returncode == 0
    first = (tmp_path / "a.ply").read_bytes()
    rejected = meshhub_cli(*command, cwd=tmp_path)
    assert rejected.returncode == 6
    assert b"use --force to overwrite it" in rejected.stderr
    (tmp_path / "a.ply").write_text("other")
    assert meshhub_cli(*command, "--force", cwd=tmp_path).returncode == 0
    assert (tmp_path / "a.ply").read_bytes() == first
    # also a model of the input's format, and a file whose extension names no format
    write_stl(tmp_path / "b.stl", (5, 5, 5))
    (tmp_path / "a.tmp").write_text("other")
    for output in ("b.stl", "a.tmp"):
        result = meshhub_cli("convert", "a.stl", "--output", output, "--to", "stl", "--force", cwd=tmp_path)
        assert result.returncode == 0, result.stderr
    assert (tmp_path / "a.tmp").read_bytes() == (tmp_path / "b.stl").read_bytes()
    piped = meshhub_process("convert", "a.stl", "--output", "-", "--to", "ply", cwd=tmp_path)
    assert piped.stdout == first


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["a.stl", "--output", "a.stl", "--force"], "the input itself"),
        (["a.stl", "--output", "hard.stl", "--force"], "the input itself"),
        (["a.stl", "b.stl", "--output", "c.stl"], "--output takes one INPUT"),
        (["a.stl", "--output", "b.stl", "--to", "ply", "--force"], "extension of the format ply"),
        (["a.stl", "--output", "c.ply", "--to", "ply", "--output-dir", "out"], "give one of them"),
    ],
)
def test_an_ambiguous_output_name_is_rejected(tmp_path: Path, arguments: list[str], reason: str) -> None:
    write_stl(tmp_path / "b.stl", (5, 5, 5))
    os.link(write_stl(tmp_path / "a.stl"), tmp_path / "hard.stl")
    before = read_files(tmp_path)
    result = meshhub_cli("convert", *arguments, cwd=tmp_path)
    assert result.returncode == 2
    assert reason in result.stderr.decode()
    assert read_files(tmp_path) == before


@pytest.mark.parametrize("target", [format_id for format_id in TARGETS if format_id != "stl"])
def test_the_same_command_runs_again_with_force(tmp_path: Path, target: str) -> None:
    write_stl(tmp_path / "a.stl")
    command = ("convert", "a.stl", f"a.{target}")
    if meshhub_cli(*command, cwd=tmp_path).returncode == 7:
        pytest.skip("a package that this target needs is not installed")
    first = (tmp_path / f"a.{target}").read_bytes()
    write_stl(tmp_path / "a.stl", (5, 5, 5))
    again = meshhub_cli(*command, "--force", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert (tmp_path / f"a.{target}").read_bytes() != first


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("part", ["n.3mf"]),
        ("part", ["n.obj"]),
        ("part.unknown", ["n.3mf"]),
        ("a.stl", ["result", "--to", "3mf"]),
        ("part", ["result.bin", "--to", "ply"]),
    ],
)
def test_the_same_command_runs_again_if_a_name_has_no_extension(tmp_path: Path, source: str, target: list[str]) -> None:
    write_stl(tmp_path / "model.stl").rename(tmp_path / source)
    command = ("convert", source, *target)
    assert meshhub_cli(*command, cwd=tmp_path).returncode == 0
    first = (tmp_path / target[0]).read_bytes()
    write_stl(tmp_path / "model.stl", (5, 5, 5)).rename(tmp_path / source)
    assert meshhub_cli(*command, cwd=tmp_path).returncode in (2, 6)
    assert (tmp_path / target[0]).read_bytes() == first
    again = meshhub_cli(*command, "--force", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert (tmp_path / target[0]).read_bytes() != first


@pytest.mark.parametrize("source", ["a.stl", "part"])
def test_a_result_of_the_same_format_is_replaced_with_force(tmp_path: Path, source: str) -> None:
    write_stl(tmp_path / "a.stl").rename(tmp_path / source)
    command = ("convert", source, "b.stl", "--repair")
    assert meshhub_cli(*command, cwd=tmp_path).returncode == 0
    first = (tmp_path / "b.stl").read_bytes()
    write_stl(tmp_path / "a.stl", (5, 5, 5)).rename(tmp_path / source)
    kept = meshhub_cli(*command, cwd=tmp_path)
    assert kept.returncode == 6
    assert b"use --force to overwrite it" in kept.stderr
    assert (tmp_path / "b.stl").read_bytes() == first
    again = meshhub_cli(*command, "--force", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "b.stl").read_bytes() != first


def test_a_damaged_archive_is_not_an_own_output(tmp_path: Path) -> None:
    path = tmp_path / "a.3mf"
    with Registry() as registry:
        registry.convert(write_stl(tmp_path / "a.stl"), path)
        format_ = registry.formats["3mf"]
    assert is_own_result(path, [format_])
    data = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        model = archive.getinfo("3D/3dmodel.model")
    header, directory = model.header_offset, data.rindex(b"PK\x01\x02", 0, data.rindex(model.filename.encode()))
    content = header + 30 + len(model.filename)

    def change(replacement: bytes, *positions: int) -> bytes:
        changed = bytearray(data)
        for position in positions:
            changed[position : position + len(replacement)] = replacement
        return bytes(changed)

    damaged = {
        "empty": b"",
        "cut off": data[:-30],
        "only its signature": b"PK\x03\x04",
        "without the model": data.replace(b"3dmodel.model", b"3dmodel.other"),
        "encrypted": change(b"\x01", header + 6, directory + 8),
        "packed by another method": change(b"\x63", header + 8, directory + 10),
        "wrong deflate stream": change(b"\xff" * 40, content),
        "deflate stream that ends early": change(b"\x03\x00", content),
    }
    for name, replacement in damaged.items():
        path.write_bytes(replacement)
        assert not is_own_result(path, [format_]), name
    assert not is_own_result(tmp_path, [format_])
    assert not is_own_result(tmp_path / "missing.3mf", [format_])


def test_a_format_declares_the_entry_that_names_its_program(tmp_path: Path) -> None:
    plain = Format(id="any", label="Any", extensions=(".any",))
    packed = Format(id="any", label="Any", extensions=(".any",), generator_entry="about.txt")
    for name, is_own in {"about.txt": True, "other.txt": False}.items():
        with zipfile.ZipFile(tmp_path / name, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(name, "by meshhub " * 50)
        assert is_own_result(tmp_path / name, [plain, packed]) is is_own
    (tmp_path / "plain").write_bytes(b"# meshhub")
    assert is_own_result(tmp_path / "plain", [])


def test_an_output_that_cannot_be_an_input_is_replaced_with_force(tmp_path: Path) -> None:
    source = write_stl(tmp_path / "a.stl")
    (tmp_path / "a.ply").touch()
    assert meshhub_cli("convert", "a.stl", "a.ply", "--force", cwd=tmp_path).returncode == 0
    first = (tmp_path / "a.ply").read_bytes()
    for arguments in (("-", "a.ply"), ("a.stl", "--to", "ply")):
        (tmp_path / "a.ply").write_text("other")
        result = meshhub_cli("convert", *arguments, "--force", stdin=source.read_bytes(), cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        assert (tmp_path / "a.ply").read_bytes() == first
    assert meshhub_cli("convert", "a.stl", "a.tmp", "--to", "ply", cwd=tmp_path).returncode == 0
    assert (tmp_path / "a.tmp").read_bytes() == first


def test_companions_do_not_replace_existing_files(tmp_path: Path) -> None:
    source, out = write_red_obj(tmp_path / "in"), tmp_path / "out"
    out.mkdir()
    command = ("convert", source, out / "m.obj")
    assert meshhub_cli(*command).returncode == 0
    (companion,) = (name for name in list_files(out) if name != "m.obj")
    os.utime(out / companion, (1, 1))
    assert meshhub_cli(*command[:2], out / "n.obj").returncode == 0
    assert (out / companion).stat().st_mtime == 1
    for force in ([], ["--force"]):
        (out / companion).write_text("edited by hand")
        (out / "n.obj").unlink(missing_ok=True)
        before = read_files(out)
        result = meshhub_cli(*command[:2], out / "n.obj", *force)
        assert result.returncode == 6, result.stderr
        assert companion.encode() in result.stderr
        assert read_files(out) == before


@pytest.mark.parametrize("same", [True, False])
def test_a_companion_written_by_a_concurrent_conversion_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, same: bool
) -> None:
    link = os.link

    def link_after_other_conversion(file: Path, place: Path) -> None:
        if place.suffix == ".mtl":
            place.write_bytes(file.read_bytes() if same else b"other")
        link(file, place)

    source = write_red_obj(tmp_path / "in")
    monkeypatch.setattr(os, "link", link_after_other_conversion)
    with contextlib.nullcontext() if same else pytest.raises(FileExistsError, match="other content"):
        Registry(entry_points=False).convert(source, tmp_path / "n.obj")
    assert (tmp_path / "n.obj").exists() == same


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_a_batch_never_replaces_its_inputs(tmp_path: Path, force: list[str]) -> None:
    for name in ("a.stl", "b.stl"):
        write_stl(tmp_path / name)
    write_red_obj(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a.stl").symlink_to(tmp_path / "b.stl")
    before = read_files(tmp_path)
    for output in (".", "out"):
        result = meshhub_cli(
            "convert", "a.stl", "b.stl", "m.obj", "--to", "stl", "-o", output, "--json", *force, cwd=tmp_path
        )
        assert result.returncode == 1, result.stderr
        outcomes = json.loads(result.stdout)
        assert outcomes[0]["error_code"] == "output_exists"
        assert "input of this command" in outcomes[0]["error"]
        assert "report" in outcomes[2]
    after = read_files(tmp_path)
    assert {name: after[name] for name in before} == before
    assert after.keys() - before.keys() == {"m.stl", "out/b.stl", "out/m.stl"}


def test_an_output_folder_can_be_or_contain_the_input_folder(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    write_stl(tmp_path / "parts" / "a.stl")
    for number, output in enumerate((".", "parts")):
        result = meshhub_cli("convert", "parts", "--to", ("ply", "obj")[number], "-o", output, cwd=tmp_path)
        assert result.returncode == 0, result.stderr
    assert list_files(tmp_path) == ["a.ply", "parts/a.obj", "parts/a.stl"]


def test_a_batch_does_not_convert_its_earlier_results(tmp_path: Path) -> None:
    write_stl(tmp_path / "a.stl")
    for again in ([], ["--force"]):
        result = meshhub_cli("convert", ".", "--to", "stl", "-o", "out", *again, cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        assert list_files(tmp_path) == ["a.stl", "out/a.stl"]


def test_each_input_of_a_batch_has_its_own_output(tmp_path: Path) -> None:
    spellings = [unicodedata.normalize(form, "é") for form in ("NFC", "NFD")]
    for folder, name in zip("xyz", [*spellings, "É"], strict=True):
        (tmp_path / folder).mkdir()
        write_stl(tmp_path / folder / f"{name}.stl")
    out = tmp_path / "out"
    out.mkdir()
    (out / "p.ply").symlink_to(out / "q.ply")
    inputs = [*(tmp_path / folder for folder in "xyz"), write_stl(tmp_path / "p.stl"), write_stl(tmp_path / "q.stl")]
    result = meshhub_cli("convert", *inputs, "--to", "ply", "-o", out)
    assert result.returncode == 0, result.stderr
    assert len({unicodedata.normalize("NFC", name).casefold() for name in list_files(out)}) == 6
    assert len({path.resolve() for path in out.iterdir()}) == 5


@posix
def test_a_redirection_to_the_input_is_rejected(tmp_path: Path) -> None:
    source = write_stl(tmp_path / "a.stl")
    before = source.read_bytes()
    command = f"{sys.executable} -m meshhub convert"
    for line in (
        f"{command} a.stl - --to stl >> a.stl",
        f"{command} - --to stl < a.stl >> a.stl",
        f"{command} - a.stl --force < a.stl",
        f"{command} /dev/stdin a.stl --force < a.stl",
    ):
        result = subprocess.run(line, shell=True, cwd=tmp_path, capture_output=True, timeout=300, check=False)
        assert result.returncode == 2, result.stderr
        assert b"the input itself" in result.stderr
        assert source.read_bytes() == before


class Meanwhile(InProcess):
    """Engine that changes the target's folder before each task runs."""

    def __init__(self, appears: Path | None = None) -> None:
        self.appears = appears

    def run(self, task: Task, *, timeout: float | None = None, cancel: Cancel | None = None) -> Report | Inspection:
        assert task.target is not None
        assert task.target.folder is not None
        if self.appears is not None:
            self.appears.write_text("new")
        else:
            (task.target.folder / task.target.name).symlink_to("/dev/full")
        return super().run(task, timeout=timeout, cancel=cancel)


@pytest.mark.parametrize("has_links", [True, False])
def test_a_file_created_during_a_conversion_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_links: bool
) -> None:
    def no_link(*_: object) -> None:
        raise PermissionError(errno.EPERM, "no links here")

    if not has_links:
        monkeypatch.setattr(os, "link", no_link)
    source, target = write_stl(tmp_path / "a.stl"), tmp_path / "b.ply"
    Registry(entry_points=False).convert(source, tmp_path / "c.ply", overwrite=False)
    with pytest.raises(OutputExists, match=r"b\.ply"):
        Registry(entry_points=False, engine=Meanwhile(target)).convert(source, target, overwrite=False)
    assert target.read_text() == "new"
    assert list_files(tmp_path) == ["a.stl", "b.ply", "c.ply"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
def test_a_full_disk_is_reported_with_the_name_of_the_output(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left") as error:
        Registry(entry_points=False, engine=Meanwhile()).convert(write_stl(tmp_path / "a.stl"), tmp_path / "b.ply")
    assert (error.value.errno, error.value.filename) == (errno.ENOSPC, str(tmp_path / "b.ply"))
    assert list_files(tmp_path) == ["a.stl"]
    (tmp_path / "full").symlink_to("/dev/full")
    with pytest.raises(DiskFull) as full, Target("full", folder=tmp_path).open() as file:
        file.write(b"x")
    assert full.value.error_code == "server_busy"
    result = subprocess.run(
        f"{sys.executable} -m meshhub convert {tmp_path / 'a.stl'} - --to ply > /dev/full",
        shell=True, capture_output=True, timeout=300, check=False,
    )  # fmt: skip
    assert result.returncode == 6
    assert result.stderr.strip() == b"error: standard output: No space left on device"


@pytest.mark.parametrize("failing", ["tempfile.mkdtemp", "pathlib.Path.replace"])
def test_an_unwritable_folder_is_reported_with_the_name_of_the_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "/somewhere/.meshhub-temporary")

    source = write_stl(tmp_path / "a.stl")
    monkeypatch.setattr(failing, refuse)
    with pytest.raises(PermissionError) as error:
        Registry(entry_points=False).convert(source, tmp_path / "b.ply", overwrite=True)
    assert error.value.filename == str(tmp_path / "b.ply")
    assert list_files(tmp_path) == ["a.stl"]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="this system has no folder in which no user can write")
def test_an_unwritable_output_gives_status_6(tmp_path: Path) -> None:
    source = write_stl(tmp_path / "a.stl")
    for folder in ("/proc", "/proc/self/fdinfo"):
        result = meshhub_cli("convert", source, f"{folder}/a.ply", "--json")
        assert result.returncode == 6, result.stderr
        payload = json.loads(result.stdout)
        assert payload["error_code"] == "output_failed"
        assert folder in payload["error"]
        assert ".meshhub-" not in payload["error"]
    batch = meshhub_cli("convert", source, "--to", "ply", "-o", "/proc", "--json")
    (payload,) = json.loads(batch.stdout)
    assert (batch.returncode, payload["error_code"]) == (1, "output_failed")
    assert ".meshhub-" not in payload["error"]


@posix
@pytest.mark.parametrize("engine", ["in-process", "isolated"])
def test_a_pipe_is_read_as_a_file(tmp_path: Path, engine: str) -> None:
    data = write_stl(tmp_path / "a.stl").read_bytes()
    registry = Registry(entry_points=False, engine=Isolated(workers=1) if engine == "isolated" else None)
    try:
        read, write = os.pipe()
        with os.fdopen(write, "wb") as file:
            file.write(data)
        registry.convert(f"/dev/fd/{read}", tmp_path / "b.ply")
        os.close(read)
        plain = os.open(tmp_path / "a.stl", os.O_RDONLY)
        assert registry.inspect(f"/dev/fd/{plain}").model.faces == 12
        os.close(plain)
    finally:
        registry.close()
    assert (tmp_path / "b.ply").read_bytes().startswith(b"ply")


@posix
def test_named_pipes_and_dev_stdin_are_read(tmp_path: Path) -> None:
    data = write_stl(tmp_path / "a.stl").read_bytes()
    os.mkfifo(tmp_path / "pipe.stl")
    for arguments in (("inspect", "/dev/stdin"), ("explain", "/dev/stdin", "ply"), ("convert", "/dev/stdin", "b.ply")):
        result = meshhub_process(*arguments, stdin=data, cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        with (tmp_path / "a.stl").open("rb") as file:
            command = [sys.executable, "-m", "meshhub", *arguments, *(["-f"] if arguments[0] == "convert" else [])]
            assert subprocess.run(command, stdin=file, cwd=tmp_path, timeout=300, check=False).returncode == 0
    with subprocess.Popen(["cp", "a.stl", "pipe.stl"], cwd=tmp_path):
        result = meshhub_cli("convert", "pipe.stl", "a.stl", "--to", "ply", "-o", "out", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "out" / "pipe.ply").read_bytes() == (tmp_path / "b.ply").read_bytes()


@posix
def test_an_unreadable_input_gives_status_3(tmp_path: Path) -> None:
    (tmp_path / "endless").symlink_to("/dev/zero")
    with pytest.raises(UnreadableFile, match="device"):
        Source.from_path(tmp_path / "endless")
    assert meshhub_cli("inspect", tmp_path / "endless").returncode == 3
    if os.geteuid() != 0:
        write_stl(tmp_path / "a.stl").chmod(0)
        assert meshhub_cli("convert", "a.stl", "b.ply", cwd=tmp_path).returncode == 3


@posix
def test_a_link_with_the_name_of_a_derived_output_is_not_followed(tmp_path: Path) -> None:
    write_stl(tmp_path / "a.stl")
    write_stl(tmp_path / "b.stl", (5, 5, 5))
    (tmp_path / "out").mkdir()
    for link in (tmp_path / "a.3mf", tmp_path / "out" / "a.3mf"):
        link.symlink_to(tmp_path / "b.stl")
    before = (tmp_path / "b.stl").read_bytes()
    single = meshhub_cli("convert", "a.stl", "--to", "3mf", "--force", cwd=tmp_path)
    assert single.returncode == 2
    assert b"a.3mf is a link" in single.stderr
    batch = meshhub_cli("convert", "a.stl", "--to", "3mf", "-o", "out", "--force", cwd=tmp_path)
    assert batch.returncode == 1
    assert b"[output_exists]" in batch.stderr
    assert (tmp_path / "b.stl").read_bytes() == before


@posix
def test_a_batch_replaces_no_file_through_a_link(tmp_path: Path) -> None:
    """Keep the link target, both in the output folder and inside a linked folder."""
    (tmp_path / "parts" / "sub").mkdir(parents=True)
    for name in ("a.stl", "sub/b.stl", "sub/c.stl"):
        write_stl(tmp_path / "parts" / name)
    (tmp_path / "out").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out" / "keep.ply").write_text("mine")
    (tmp_path / "out" / "a.ply").symlink_to("keep.ply")
    (tmp_path / "out" / "sub").symlink_to("../elsewhere")
    (tmp_path / "elsewhere" / "b.ply").write_text("mine")
    result = meshhub_cli("convert", "parts", "--to", "ply", "-o", "out", "--force", "--json", cwd=tmp_path)
    assert result.returncode == 1
    outcomes = {Path(outcome["file"]).name: outcome for outcome in json.loads(result.stdout)}
    assert outcomes["a.stl"]["error_code"] == outcomes["b.stl"]["error_code"] == "output_exists"
    assert "link" in outcomes["a.stl"]["error"]
    assert "report" in outcomes["c.stl"]
    assert (tmp_path / "out" / "keep.ply").read_text() == (tmp_path / "elsewhere" / "b.ply").read_text() == "mine"


def test_a_second_path_is_kept_if_the_first_has_no_extension(tmp_path: Path) -> None:
    write_stl(tmp_path / "part.stl").rename(tmp_path / "part")
    before = write_stl(tmp_path / "b.stl", (5, 5, 5)).read_bytes()
    result = meshhub_cli("convert", "part", "b.stl", "--force", cwd=tmp_path)
    assert result.returncode == 2
    assert b"--output-dir" in result.stderr
    assert (tmp_path / "b.stl").read_bytes() == before


def test_output_of_a_plugin_during_its_import_goes_to_standard_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    install(site, "noisy", noisy="noisy")
    (site / "noisy.py").write_text("print('loading')\n")
    monkeypatch.setenv("PYTHONPATH", str(site))
    result = meshhub_process("convert", write_stl(tmp_path / "a.stl"), "-", "--to", "ply", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(b"ply\n")
    assert b"loading" in result.stderr


@posix
@pytest.mark.parametrize("arguments", [("convert", "a.stl", "-", "--to", "ply"), ("formats",), ("inspect", "a.stl")])
def test_a_closed_output_pipe_ends_the_command_without_a_message(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    write_stl(tmp_path / "a.stl")
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "meshhub", *arguments]
    result = subprocess.run(command, cwd=tmp_path, stdout=write, stderr=subprocess.PIPE, timeout=300, check=False)
    os.close(write)
    assert result.returncode == 128 + 13
    assert result.stderr == b""


def test_a_batch_with_force_keeps_models_of_other_programs(tmp_path: Path) -> None:
    for name in ("a.obj", "b.obj"):
        (tmp_path / name).write_text(OBJ)
    foreign = write_stl(tmp_path / "a.stl").read_bytes()
    command = ("convert", "a.obj", "b.obj", "--to", "stl", "-o", ".", "--json", "--force")
    for _ in range(2):
        result = meshhub_cli(*command, cwd=tmp_path)
        assert result.returncode == 1
        outcomes = json.loads(result.stdout)
        assert outcomes[0]["error_code"] == "output_exists"
        assert "--output a.stl --force" in outcomes[0]["error"]
        assert "report" in outcomes[1]
        assert (tmp_path / "a.stl").read_bytes() == foreign
