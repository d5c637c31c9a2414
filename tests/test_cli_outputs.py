"""Names and folders of outputs that the command line derives from its inputs."""

from __future__ import annotations

import itertools
import json
import os
import sys
import zipfile
from pathlib import Path
from typing import Any, cast

import pytest
import trimesh
from click.testing import CliRunner

import toys
from meshhub import Registry, Report
from meshhub.cli import root
from meshhub.cli.target_checks import is_foreign_model
from models import brick
from test_cli import EXAMPLE, list_files, meshhub_cli, meshhub_process, write_stl

pytestmark = pytest.mark.once


posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")


def write_original_ply(path: Path) -> bytes:
    """Write a PLY file as another program does; return its content."""
    mesh = brick(1, 2, 3)
    trimesh.Trimesh(mesh.vertices, mesh.faces, process=False).export(path)
    return path.read_bytes()


@pytest.mark.parametrize("folder", ["out", "out/", "new/", "new/deep/", "."])
def test_a_file_is_written_into_a_folder(tmp_path: Path, folder: str) -> None:
    write_stl(tmp_path / "a.stl")
    (tmp_path / "out").mkdir()
    done = meshhub_cli("convert", "a.stl", folder, "--to", "PLY", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert list_files(tmp_path) == sorted(["a.stl", str(Path(folder) / "a.ply")])
    again = meshhub_cli("convert", "a.stl", folder, "--to", "ply", cwd=tmp_path)
    assert again.returncode == 6
    assert b"use --force" in again.stderr
    assert meshhub_cli("convert", "a.stl", folder, "--to", "ply", "-f", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize("arguments", [[], ["--dry-run"]])
def test_several_files_are_written_into_a_folder_at_the_end(tmp_path: Path, arguments: list[str]) -> None:
    inputs = [write_stl(tmp_path / name).name for name in ("a.stl", "b.stl")]
    done = meshhub_cli("convert", *inputs, "new/", "--to", "ply", *arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert list_files(tmp_path) == sorted([*inputs, *([] if arguments else ["new/a.ply", "new/b.ply"])])


@pytest.mark.parametrize("inputs", [["a.stl", "b.stl", "out"], ["in/", "other/", "out/"]])
def test_what_a_pattern_may_have_matched_is_no_folder_for_results(tmp_path: Path, inputs: list[str]) -> None:
    for folder in ("in", "other", "out"):
        (tmp_path / folder).mkdir()
    before = [write_stl(tmp_path / name).name for name in ("a.stl", "b.stl")]
    done = meshhub_cli("convert", *inputs, "--to", "ply", cwd=tmp_path)
    assert done.returncode == 2
    assert b"DIR/ at the end, or --output-dir DIR" in done.stderr
    assert list_files(tmp_path) == before


@pytest.mark.parametrize("name", ["3mf", "3MF", ".ply", "glb"])
def test_the_name_of_a_format_writes_beside_the_input(tmp_path: Path, name: str) -> None:
    (tmp_path / "parts").mkdir()
    write_stl(tmp_path / "parts" / "a.v2.stl")
    done = meshhub_cli("convert", "parts/a.v2.stl", name, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert list_files(tmp_path) == sorted(["parts/a.v2.stl", f"parts/a.v2.{name.lower().removeprefix('.')}"])


def test_the_name_of_a_format_converts_standard_input_to_standard_output(tmp_path: Path) -> None:
    done = meshhub_process("convert", "-", "ply", stdin=write_stl(tmp_path / "a.stl").read_bytes())
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b"ply")


def test_a_file_or_folder_with_the_name_of_a_format_is_a_path(tmp_path: Path) -> None:
    write_stl(tmp_path / "a.stl")
    (tmp_path / "ply").mkdir()
    (tmp_path / "obj").write_text("mine")
    done = meshhub_cli("convert", "a.stl", "ply", "--to", "3mf", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert meshhub_cli("convert", "a.stl", "obj", "--force", cwd=tmp_path).returncode == 2
    assert list_files(tmp_path) == ["a.stl", "obj", "ply/a.3mf"]
    assert (tmp_path / "obj").read_text() == "mine"


@pytest.mark.parametrize("arguments", [("stl",), (".", "--to", "stl"), ("--to", "stl")])
@pytest.mark.parametrize("force", [(), ("--force",)])
def test_a_derived_name_that_is_the_input_says_so(
    tmp_path: Path, arguments: tuple[str, ...], force: tuple[str, ...]
) -> None:
    before = write_stl(tmp_path / "a.stl").read_bytes()
    done = meshhub_cli("convert", "a.stl", *arguments, *force, cwd=tmp_path)
    assert done.returncode == 2
    assert b"a.stl is the input itself" in done.stderr
    assert (tmp_path / "a.stl").read_bytes() == before


@pytest.mark.parametrize("arguments", [("ply",), (".", "--to", "ply"), ("./", "--to", "ply")])
def test_a_model_of_another_program_at_a_derived_name_is_kept(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    write_stl(tmp_path / "a.stl")
    before = write_original_ply(tmp_path / "a.ply")
    for force, status in (([], 6), (["--force"], 2)):
        done = meshhub_cli("convert", "a.stl", *arguments, *force, cwd=tmp_path)
        assert done.returncode == status
        assert b"--output a.ply --force" in done.stderr
        assert (tmp_path / "a.ply").read_bytes() == before
    assert meshhub_cli("convert", "a.stl", "--output", "a.ply", "--force", cwd=tmp_path).returncode == 0
    assert meshhub_cli("convert", "a.stl", *arguments, "--force", cwd=tmp_path).returncode == 0


def test_a_model_that_cannot_be_examined_is_kept(tmp_path: Path) -> None:
    """The format of a plug-in, and one whose package is missing, count as models of another program."""
    registry = Registry(plugins=[toys], entry_points=False)
    (tmp_path / "a.toy").write_text("mine")
    assert is_foreign_model(registry, tmp_path / "a.toy")
    (tmp_path / "b.ply").write_text("no model")
    assert not is_foreign_model(registry, tmp_path / "b.ply")
    write_original_ply(tmp_path / "b.ply")
    assert is_foreign_model(registry, tmp_path / "b.ply")
    registry.write(registry.read(write_stl(tmp_path / "a.stl")), tmp_path / "c.ply")
    assert not is_foreign_model(registry, tmp_path / "c.ply")


@posix
def test_a_link_at_a_derived_name_is_not_followed(tmp_path: Path) -> None:
    write_stl(tmp_path / "a.stl")
    (tmp_path / "out").mkdir()
    (tmp_path / "elsewhere").write_text("mine")
    for link in (tmp_path / "a.ply", tmp_path / "out" / "a.ply"):
        link.symlink_to(tmp_path / "elsewhere")
    for arguments in (["ply"], ["out/", "--to", "ply"]):
        done = meshhub_cli("convert", "a.stl", *arguments, "--force", cwd=tmp_path)
        assert done.returncode == 2
        assert b"is a link" in done.stderr
    assert (tmp_path / "elsewhere").read_text() == "mine"


def test_the_input_is_kept_if_its_folder_is_the_output_folder(tmp_path: Path) -> None:
    before = write_stl(tmp_path / "a.stl").read_bytes()
    done = meshhub_cli("convert", "a.stl", ".", "--to", "stl", "--repair", "--force", cwd=tmp_path)
    assert done.returncode == 2
    assert (tmp_path / "a.stl").read_bytes() == before


def test_inspect_takes_a_folder(tmp_path: Path) -> None:
    (tmp_path / "parts" / "sub").mkdir(parents=True)
    write_stl(tmp_path / "parts" / "a.stl", (1, 2, 3))
    write_stl(tmp_path / "parts" / "sub" / "b.STL", (4, 5, 6))
    (tmp_path / "parts" / "read.me").write_text("no model")
    done = meshhub_cli("inspect", "parts/", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    sizes = {result["file"]: result["model"]["size_mm"] for result in json.loads(done.stdout)}
    assert sizes == {str(Path("parts/a.stl")): [1, 2, 3], str(Path("parts/sub/b.STL")): [4, 5, 6]}
    (tmp_path / "parts" / "sub" / "b.STL").write_text("broken")
    done = meshhub_cli("inspect", "parts", cwd=tmp_path)
    assert done.returncode == 1
    assert b"1 \xc3\x97 2 \xc3\x97 3 mm" in done.stdout
    assert b"b.STL" in done.stderr
    (tmp_path / "parts" / "a.stl").unlink()
    done = meshhub_cli("inspect", "parts", "--json", cwd=tmp_path)
    assert done.returncode == 1
    assert [result["error_code"] for result in json.loads(done.stdout)] == ["unreadable_file"]


def test_an_input_named_by_an_extension_alone_has_a_visible_output(tmp_path: Path) -> None:
    write_stl(tmp_path / ".stl")
    for arguments in (["ply"], ["--to", "ply", "-o", "out", "--name", "{stem}-{extension}"]):
        done = meshhub_cli("convert", ".stl", *arguments, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert list_files(tmp_path) == [".stl", "model.ply", "out/model-stl.ply"]


def test_a_template_names_the_outputs(tmp_path: Path) -> None:
    (tmp_path / "parts" / "sub").mkdir(parents=True)
    write_stl(tmp_path / "parts" / "a.STL")
    write_stl(tmp_path / "parts" / "sub" / "a.stl")
    template = "{stem}-{extension}-{format}"
    done = meshhub_cli("convert", "parts", "--to", "ply", "-o", "out", "--name", template, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert list_files(tmp_path / "out") == ["a-stl-ply.ply", "sub/a-stl-ply.ply"]
    done = meshhub_cli("convert", "parts/a.STL", "glb", "--name", "{stem}.x.GLB", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = meshhub_cli("convert", "parts/a.STL", "parts/", "--to", "glb", "--name", "{{{stem}}}", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert list_files(tmp_path / "parts") == ["a.STL", "a.x.GLB", "sub/a.stl", "{a}.glb"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a.stl", "b.ply", "--name", "x"], "derived from the input"),
        (["a.stl", "--output", "b.ply", "--name", "x"], "give one of them"),
        (["a.stl", "ply", "--name", "{steem}"], "known are {stem}, {extension}, {folder}, {format}"),
        (["a.stl", "ply", "--name", "{stem!r}"], "unknown field"),
        (["a.stl", "ply", "--name", "{stem:>9}"], "unknown field"),
        (["a.stl", "ply", "--name", "{}"], "unknown field"),
        (["a.stl", "ply", "--name", "{stem"], "braces"),
        (["a.stl", "ply", "--name", "../{stem}"], "--output-dir"),
        (["a.stl", "ply", "--name", "x\\{stem}"], "--output-dir"),
        (["a.stl", "ply", "--name", "x\n"], "contains"),
        (["a.stl", "ply", "--name", ".{stem}"], "hidden"),
        (["a.stl", "ply", "--name", " "], "empty"),
        (["a.stl", "b.stl", "--to", "ply", "-o", "out", "--name", "x"], "a.stl and b.stl have one output"),
        (["a.stl", "b.stl", "--to", "ply", "-o", "out", "--name", "{format}"], "out/ply.ply"),
        (["a.stl", "A.STL", "--to", "ply", "-o", "out", "--name", "{stem}"], "have one output"),
        (["a.stl", "ply", "--force", "--skip-existing"], "give one of them"),
    ],
)
def test_a_wrong_template_is_rejected_before_anything_is_written(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    for name in ("a.stl", "b.stl", "A.STL"):
        write_stl(tmp_path / name)
    before = list_files(tmp_path)
    done = meshhub_cli("convert", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr.decode()
    assert list_files(tmp_path) == before


def test_a_dry_run_prints_outputs_and_steps(tmp_path: Path) -> None:
    write_stl(tmp_path / "a.stl")
    write_stl(tmp_path / "b.stl")
    flags = ["--repair", "--optimize-target-faces", "0.5k", "--dry-run"]
    done = meshhub_cli("convert", "a.stl", "3mf", *flags, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.decode().splitlines()
    assert lines[0] == "a.stl → a.3mf"
    operations = ["  run Repair (--repair)", "  run Reduce faces (--optimize-target-faces 500)"]
    assert lines[1:] == ["  read STL", *operations, "  write 3MF"]
    done = meshhub_cli("convert", "a.stl", "new/deep/", "--to", "ply", "--dry-run", "--json", cwd=tmp_path)
    preview = json.loads(done.stdout)
    assert Path(preview["output"]) == Path("new/deep/a.ply")
    assert [step["id"] for step in preview["chain"]["steps"]] == ["stl", "ply"]
    done = meshhub_cli("convert", ".", "--to", "ply", "-o", "out", *flags, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [Path(entry["output"]).name for entry in json.loads(done.stdout)] == ["a.ply", "b.ply"]
    done = meshhub_cli("convert", ".", "--to", "ply", "-o", "out", *flags, cwd=tmp_path)
    assert b"2 would be converted" in done.stderr
    assert meshhub_cli("-q", "convert", ".", "--to", "ply", "-o", "out", *flags, cwd=tmp_path).stdout == done.stdout
    assert b"--optimize-target-faces 500" in done.stdout
    assert list_files(tmp_path) == ["a.stl", "b.stl"]
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("a.stl", "b.xyz"),
        ("none.stl", "b.obj"),
        ("a.stl", "old.ply"),
        ("a.stl", "missing/b.ply"),
        ("a.stl", "b.ply", "--target-height-mm", "-1"),
        ("a.stl", "b.ply", "--optimize-target-faces", "1.2345k"),
        ("a.stl", "b.ply", "--optimize-target-faces", "k"),
        ("text.txt", "b.ply"),
        ("a.stl", "a.stl", "--force"),
        ("a.stl", "text.txt", "--to", "ply", "-o", "out"),
        ("a.stl", "-", "--json"),
    ],
)
def test_a_dry_run_fails_as_the_conversion_does(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    write_stl(tmp_path / "a.stl")
    (tmp_path / "old.ply").write_text("mine")
    (tmp_path / "text.txt").write_text("hello")
    before = list_files(tmp_path)
    preview = meshhub_cli("convert", *arguments, "--dry-run", cwd=tmp_path)
    assert list_files(tmp_path) == before
    real = meshhub_cli("convert", *arguments, cwd=tmp_path)
    assert preview.returncode == real.returncode != 0
    messages = [
        [line.partition("rror: ")[2].removeprefix("text.txt: ") for line in done.stderr.decode().splitlines()]
        for done in (preview, real)
    ]
    messages = [[message for message in listed if message] for listed in messages]
    assert messages[0]
    assert messages[0] == messages[1]


def test_a_dry_run_to_standard_output_prints_no_model(tmp_path: Path) -> None:
    source = write_stl(tmp_path / "a.stl")
    done = meshhub_process("convert", source, "-", "--to", "ply", "--dry-run")
    assert done.returncode == 0
    assert done.stdout == b""
    assert b"write PLY" in done.stderr


def test_existing_outputs_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    for name in ("a.stl", "b.stl"):
        write_stl(tmp_path / "parts" / name)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a.ply").write_text("mine")
    arguments = ("convert", "parts", "--to", "ply", "-o", "out", "--skip-existing")
    done = meshhub_cli(*arguments, "--dry-run", cwd=tmp_path)
    assert b"1 skipped, 1 would be converted" in done.stderr
    done = meshhub_cli(*arguments, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    outcomes = {Path(outcome["file"]).name: outcome for outcome in json.loads(done.stdout)}
    assert outcomes["a.stl"]["skipped"] is True
    assert outcomes["b.stl"]["report"]["target"]["faces"] == 12
    again = meshhub_cli(*arguments, cwd=tmp_path)
    assert again.returncode == 0
    assert b"0 converted, 0 failed, 2 skipped" in again.stderr
    assert (tmp_path / "out" / "a.ply").read_text() == "mine"
    single = meshhub_cli("convert", "parts/a.stl", "out", "--to", "ply", "--skip-existing", cwd=tmp_path)
    assert single.returncode == 0
    assert b"exists, skipped" in single.stderr
    assert (tmp_path / "out" / "a.ply").read_text() == "mine"


def name_outputs(folder: Path, *inputs: str) -> dict[str, str]:
    done = meshhub_cli("convert", *inputs, "--to", "ply", "-o", "out", "--dry-run", "--json", cwd=folder)
    return {outcome["file"]: outcome["output"] for outcome in json.loads(done.stdout)}


def test_names_of_outputs_do_not_depend_on_the_order_of_the_inputs(tmp_path: Path) -> None:
    for name in ("a/part.stl", "b/part.stl", "c/part-2.stl"):
        (tmp_path / name).parent.mkdir()
        write_stl(tmp_path / name)
    expected = {"b/part.stl": "out/part-3.ply", "a/part.stl": "out/part.ply", "c/part-2.stl": "out/part-2.ply"}
    for order in itertools.permutations(expected):
        assert name_outputs(tmp_path, *order) == expected


def test_results_beside_their_inputs_get_no_numbers(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write_stl(tmp_path / "in" / "a.stl")
    command = ("convert", "in", "--to", "3mf", "-o", "in", "--skip-existing")
    assert meshhub_cli(*command, cwd=tmp_path).returncode == 0
    done = meshhub_cli(*command, cwd=tmp_path)
    assert done.returncode == 2
    assert b"in/a.3mf and in/a.stl have one output, in/a.3mf; distinguish them with" in done.stderr
    assert list_files(tmp_path / "in") == ["a.3mf", "a.stl"]


def test_models_of_an_archive_with_one_output_are_rejected(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "parts.zip", "w") as archive:
        for name in ("x.stl", "x.obj"):
            archive.write(write_stl(tmp_path / "model.stl"), name)
    done = meshhub_cli(
        "convert", "parts.zip", "--to", "ply", "-o", "out", "--name", "{stem}-new", "--force", cwd=tmp_path
    )
    assert done.returncode == 2
    assert b"have one output, out/x-new.ply; use other fields in --name" in done.stderr


def skip(folder: Path, source: str, *flags: str) -> dict[str, Any]:
    """Convert a file into out/ with --skip-existing; return the outcome."""
    done = meshhub_cli("convert", source, "--to", "ply", "-o", "out", "--skip-existing", "--json", *flags, cwd=folder)
    (outcome,) = json.loads(done.stdout)
    assert done.returncode == (1 if "error" in outcome else 0)
    return cast(dict[str, Any], outcome)


def make_older(output: Path, source: Path) -> None:
    """Set the time of an output to a second before that of its source."""
    status = source.stat()
    os.utime(output, ns=(status.st_atime_ns, status.st_mtime_ns - 10**9))


def test_a_result_that_is_older_than_its_input_is_replaced(tmp_path: Path) -> None:
    source, output = write_stl(tmp_path / "x.stl"), tmp_path / "out" / "x.ply"
    assert "report" in skip(tmp_path, "x.stl")
    assert skip(tmp_path, "x.stl", "--target-height-mm", "40")["skipped"] is True
    make_older(output, source)
    assert "report" in skip(tmp_path, "x.stl")
    make_older(output, source)
    single = meshhub_cli("convert", "x.stl", "out/", "--to", "ply", "--skip-existing", "--json", cwd=tmp_path)
    assert "source" in json.loads(single.stdout)
    single = meshhub_cli("convert", "x.stl", "out/", "--to", "ply", "--skip-existing", "--json", cwd=tmp_path)
    assert json.loads(single.stdout)["skipped"] is True


def test_an_input_that_is_missing_is_an_error_although_its_output_exists(tmp_path: Path) -> None:
    write_stl(tmp_path / "x.stl")
    command = ("out.ply", "--skip-existing")
    assert meshhub_cli("convert", "x.stl", *command, cwd=tmp_path).returncode == 0
    done = meshhub_cli("convert", "y.stl", *command, cwd=tmp_path)
    assert done.returncode != 0
    assert b"y.stl" in done.stderr


def test_an_old_file_of_another_program_is_kept(tmp_path: Path) -> None:
    source, output = write_stl(tmp_path / "x.stl"), tmp_path / "out" / "x.ply"
    output.parent.mkdir()
    write_original_ply(output)
    before = output.read_bytes()
    make_older(output, source)
    assert skip(tmp_path, "x.stl")["skipped"] is True
    assert output.read_bytes() == before


def test_a_result_is_compared_with_the_archive_of_its_input(tmp_path: Path) -> None:
    model = write_stl(tmp_path / "x.stl")
    with zipfile.ZipFile(tmp_path / "parts.zip", "w") as archive:
        archive.write(model, "x.stl")
    assert "report" in skip(tmp_path, "parts.zip")
    assert skip(tmp_path, "parts.zip")["skipped"] is True
    make_older(tmp_path / "out" / "x.ply", tmp_path / "parts.zip")
    assert "report" in skip(tmp_path, "parts.zip")


def test_inputs_with_one_output_are_rejected_if_outputs_are_kept(tmp_path: Path) -> None:
    for name in ("p.stl", "p.obj"):
        write_stl(tmp_path / "model.stl").rename(tmp_path / name)
    command = ("convert", "p.stl", "p.obj", "--to", "ply", "-o", "out", "--skip-existing")
    done = meshhub_cli(*command, cwd=tmp_path)
    assert done.returncode == 2
    assert (
        b"p.obj and p.stl have one output, out/p.ply; distinguish them with --name '{stem}-{extension}'" in done.stderr
    )
    assert list_files(tmp_path / "out") == []
    assert meshhub_cli(*command, "--name", "{stem}-{extension}", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize("batch", [False, True])
def test_a_file_that_appears_during_the_conversion_is_kept_and_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: bool
) -> None:
    source, target = write_stl(tmp_path / "a.stl"), tmp_path / "a.ply"
    convert = Registry.convert

    def convert_late(registry: Registry, *arguments: Any, **keywords: Any) -> Report:
        target.write_text("mine")
        return convert(registry, *arguments, **keywords)

    monkeypatch.setattr(Registry, "convert", convert_late)
    where = ["-o", str(tmp_path)] if batch else []
    done = CliRunner().invoke(root, ["convert", str(source), "--to", "ply", "--skip-existing", *where])
    assert done.exit_code == 0, done.output
    assert "skipped" in done.output
    assert target.read_text() == "mine"


@pytest.mark.parametrize(
    ("text", "faces"), [("500", 500), ("0.5k", 500), (".5K", 500), ("0.0005M", 500), ("+5e2", None), ("0.0004k", None)]
)
def test_counts_have_suffixes(tmp_path: Path, text: str, faces: int | None) -> None:
    done = meshhub_cli("explain", EXAMPLE, "ply", "--optimize-target-faces", text, "--json")
    if faces is None:
        assert done.returncode == 2
        assert b"'--optimize-target-faces' must be a whole number" in done.stderr
    else:
        assert json.loads(done.stdout)["steps"][1]["options"] == {"optimize_target_faces": faces}
