"""The command line as a user runs it: a process, its files, its exit status."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import click
import numpy as np
import pytest
import trimesh
from click.testing import CliRunner

import meshhub
from builtin_formats import MESH_TARGETS, TARGETS
from distributions import install
from meshhub.cli import main, root
from meshhub.cli.exits import code_of, exit_status
from meshhub.cli.signals import INTERRUPTED
from meshhub.model.capabilities import Stage
from models import brick
from signals import reset_interrupts
from waiting import MAX_WAIT_S

EXAMPLE = Path(__file__).parent.parent / "examples" / "bracket.stl"


def meshhub_cli(
    *arguments: object, stdin: bytes = b"", cwd: Path | None = None, columns: int = 160
) -> subprocess.CompletedProcess[bytes]:
    """Run the command line in this process, which has loaded its libraries."""
    command = ["meshhub", *map(str, arguments)]
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    with (
        pytest.MonkeyPatch.context() as patch,
        CliRunner(env={"COLUMNS": str(columns), "NO_COLOR": "1"}).isolation(stdin) as (stdout, stderr, _),
        contextlib.chdir(cwd or Path.cwd()),
    ):
        patch.setattr(sys, "argv", command)
        # each call loads the plug-ins that are installed then, as a process does
        for name in ("convert", "explain", "inspect", "render"):
            patch.setattr(root.get_command(click.Context(root), name), "_registry", None)
        try:
            with pytest.raises(SystemExit) as end:
                main()
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
        sys.stdout.flush()
        sys.stderr.flush()
        status = end.value.code or 0
        assert isinstance(status, int)
        return subprocess.CompletedProcess(command, status, stdout.getvalue(), stderr.getvalue())


def meshhub_process(
    *arguments: object, stdin: bytes = b"", cwd: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run the command line as a user does."""
    environment = {**os.environ, "COLUMNS": "160", "NO_COLOR": "1"}
    return subprocess.run(
        [sys.executable, "-m", "meshhub", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        cwd=cwd,
        env=environment,
        timeout=MAX_WAIT_S,
        check=False,
    )


def write_stl(path: Path, size: tuple[float, float, float] = (10, 20, 30)) -> Path:
    mesh = brick(*size)
    trimesh.Trimesh(mesh.vertices, mesh.faces, process=False).export(path)
    return path


def read_mesh(path: Path) -> trimesh.Trimesh:
    return trimesh.load_mesh(path)


def list_files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_file_is_repaired_scaled_and_placed(tmp_path: Path) -> None:
    target = tmp_path / "bracket.stl"
    done = meshhub_process("convert", EXAMPLE, target, "--repair", "--target-height-mm", "40", "--place-on-bed")
    assert done.returncode == 0, done.stderr
    mesh = read_mesh(target)
    assert mesh.is_watertight
    assert mesh.body_count == 1
    assert mesh.extents[2] == pytest.approx(40, rel=1e-6)
    assert mesh.bounds[0][2] == 0
    assert mesh.bounds.mean(axis=0)[:2] == pytest.approx([0, 0], abs=1e-5)
    assert b"40 mm" in done.stderr
    assert done.stdout == b""


def test_the_example_converts_to_every_target(tmp_path: Path) -> None:
    for target in TARGETS:
        done = meshhub_cli("convert", EXAMPLE, tmp_path / f"bracket.{target}", "--repair")
        assert done.returncode in ((0, 7) if target == "step" else (0,)), done.stderr
        assert target == "step" or (tmp_path / f"bracket.{target}").stat().st_size > 1000


def test_an_existing_file_needs_force(tmp_path: Path) -> None:
    source, target = write_stl(tmp_path / "a.stl"), tmp_path / "b.ply"
    target.write_text("mine")
    done = meshhub_cli("convert", source, target)
    assert done.returncode == 6
    assert b"--force" in done.stderr
    assert target.read_text() == "mine"
    assert meshhub_cli("convert", source, target, "--force").returncode == 0
    assert target.read_bytes().startswith(b"ply")
    assert list_files(tmp_path) == ["a.stl", "b.ply"]


def test_the_input_is_never_the_output(tmp_path: Path) -> None:
    source = write_stl(tmp_path / "a.stl")
    before = source.read_bytes()
    assert meshhub_cli("convert", source, source, "--force", "--repair").returncode == 2
    assert source.read_bytes() == before


def test_standard_input_and_output_are_used_for_a_dash(tmp_path: Path) -> None:
    data = write_stl(tmp_path / "a.stl").read_bytes()
    done = meshhub_process("convert", "-", "--to", "ply", stdin=data)
    assert done.returncode == 0, done.stderr
    mesh = trimesh.load_mesh(io.BytesIO(done.stdout), file_type="ply")
    assert mesh.volume == pytest.approx(6000)
    assert meshhub_process("convert", "-", tmp_path / "b.ply", stdin=data).returncode == 0
    assert (tmp_path / "b.ply").read_bytes() == done.stdout
    piped = meshhub_process("convert", tmp_path / "a.stl", "-", "--to", "ply", "-q")
    assert piped.stdout == done.stdout
    assert piped.stderr == b""
    assert meshhub_process("convert", tmp_path / "a.stl", "-").returncode == 2


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_or_device_is_never_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "out.ply")
    done = meshhub_cli("convert", write_stl(tmp_path / "a.stl"), tmp_path / "out.ply", "--force")
    assert done.returncode == 6
    assert b"device or a pipe" in done.stderr
    assert (tmp_path / "out.ply").is_fifo()


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_the_target_of_a_symlink_is_written_and_the_link_kept(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    for target in ("there.ply", "not yet.ply"):
        link = tmp_path / "latest.ply"
        link.unlink(missing_ok=True)
        link.symlink_to(tmp_path / "models" / target)
        if target == "there.ply":
            link.write_bytes(b"old")
            assert meshhub_cli("convert", write_stl(tmp_path / "a.stl"), link).returncode == 6
        assert meshhub_cli("convert", write_stl(tmp_path / "a.stl"), link, "--force").returncode == 0
        assert link.is_symlink()
        assert (tmp_path / "models" / target).read_bytes().startswith(b"ply")
    link.unlink()
    link.symlink_to(tmp_path / "nowhere" / "x.ply")
    assert meshhub_cli("convert", write_stl(tmp_path / "a.stl"), link).returncode == 6


@pytest.mark.skipif(sys.platform == "win32", reason="there is no shell to close it")
def test_a_closed_standard_input_is_reported(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "meshhub", "convert", "-", str(tmp_path / "a.ply")]
    done = subprocess.run(["sh", "-c", 'exec "$@" <&-', "sh", *command], capture_output=True, check=False)
    assert done.returncode == 2
    assert b"standard input is closed" in done.stderr


def test_an_output_without_a_name_is_written_beside_its_input(tmp_path: Path) -> None:
    assert meshhub_cli("convert", write_stl(tmp_path / "a.stl"), "--to", "ply").returncode == 0
    assert list_files(tmp_path) == ["a.ply", "a.stl"]


def test_a_batch_runs_with_a_long_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / ("long" * 25)
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    done = meshhub_cli("convert", write_stl(tmp_path / "a.stl"), "--to", "ply", "--output-dir", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert list_files(tmp_path / "out") == ["a.ply"]
    assert list(folder.iterdir()) == []


def test_a_batch_continues_after_a_failed_file(tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    (parts / "deep").mkdir(parents=True)
    write_stl(parts / "a.stl")
    write_stl(parts / "deep" / "b.stl", (5, 5, 5))
    (parts / "broken.stl").write_bytes(b"solid nothing at all")
    (parts / "readme.txt").write_text("not a model")
    other = write_stl(tmp_path / "a.stl")
    out = tmp_path / "out"
    done = meshhub_cli("convert", parts, other, "--to", "ply", "--output-dir", out, "--place-on-bed", "--jobs", 2)
    assert done.returncode == 1
    assert list_files(out) == ["a-2.ply", "a.ply", "deep/b.ply"]
    assert b"3 converted, 1 failed" in done.stderr
    assert b"broken.stl" in done.stderr
    again = meshhub_cli("convert", parts / "a.stl", "--to", "ply", "--output-dir", out, "--json")
    assert again.returncode == 1
    assert json.loads(again.stdout)[0]["error_code"] == "output_exists"


@pytest.mark.skipif(sys.platform == "win32", reason="a signal ends a program in another way there")
def test_an_interrupt_during_the_imports_prints_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    for program in (["-m", "meshhub"], ["-c", "from meshhub.__main__ import main; main()"]):
        done = subprocess.run(
            [sys.executable, *program, "serve"],
            env=environment,
            capture_output=True,
            timeout=300,
            check=False,
            preexec_fn=reset_interrupts,
        )
        assert done.returncode == -signal.SIGINT
        assert done.stderr == b""


def test_an_interrupted_command_reports_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("meshhub.cli.inspect.read_from", interrupted)
    monkeypatch.setattr(sys, "argv", ["meshhub", "inspect", str(EXAMPLE)])
    with pytest.raises(SystemExit) as error:
        main()
    assert error.value.code == INTERRUPTED
    assert "interrupted" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="it has no such signals")
@pytest.mark.parametrize(
    ("number", "batch"), [("SIGINT", False), ("SIGTERM", False), ("SIGHUP", False), ("SIGINT", True)]
)
def test_a_signal_leaves_no_partial_output(tmp_path: Path, number: str, batch: bool) -> None:
    corners = np.random.default_rng(1).random((600_000, 3))
    trimesh.Trimesh(corners, np.arange(600_000).reshape(-1, 3), process=False).export(tmp_path / "a.stl")
    out, scratch = tmp_path / "out", tmp_path / "scratch"
    out.mkdir()
    scratch.mkdir()
    output = ["--to", "step", "--output-dir", out] if batch else [out / "a.step"]
    with subprocess.Popen(
        [sys.executable, "-m", "meshhub", "convert", tmp_path / "a.stl", *output],
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(scratch)},
        preexec_fn=reset_interrupts,
    ) as process:
        # wait for the worker: Python loses an exception that a signal raises during a fork
        while not any(out.glob(".meshhub-*/.out-*/*")) and process.poll() is None:
            threading.Event().wait(0.01)
        process.send_signal(getattr(signal, number))
        _, stderr = process.communicate(timeout=300)
    assert process.returncode == {"SIGINT": INTERRUPTED, "SIGTERM": 143, "SIGHUP": 129}[number], stderr
    assert b"interrupted" in stderr
    assert list(out.iterdir()) == []
    assert list(scratch.iterdir()) == []


def test_waiting_for_a_worker_does_not_count_against_the_timeout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    install(site, "toys", toys="toys")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site), str(Path(__file__).parent / "support")]))
    files = [tmp_path / f"{number}.toy" for number in range(3)]
    # on a loaded machine, a conversion itself may take longer than the first timeout
    for timeout_s in (2, 20, 200):
        for file in files:
            file.write_text(f"toy! sleep {timeout_s / 2}")
        done = meshhub_process(
            "convert", *files, "--to", "toy", "-o", tmp_path / "out", "--force", "--jobs", 1, "--timeout", timeout_s
        )
        if done.returncode == 0:
            return
    pytest.fail(done.stderr.decode())


def test_a_folder_is_an_input_for_its_visible_files(tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    (parts / ".trash").mkdir(parents=True)
    for name in ("a.stl", "._a.stl", ".trash/b.stl"):
        write_stl(parts / name)
    done = meshhub_cli("convert", parts, "--to", "ply", "--output-dir", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert list_files(tmp_path / "out") == ["a.ply"]


def test_lines_of_the_summary_fit_the_width_for_long_names(tmp_path: Path) -> None:
    long = write_stl(tmp_path / f"{'long' * 50}.stl")
    done = meshhub_cli("convert", long, write_stl(tmp_path / "a.stl"), "--to", "ply", "--output-dir", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stderr.decode().splitlines())) <= 160


def test_failures_are_reported_as_json(tmp_path: Path) -> None:
    broken = tmp_path / "a.stl"
    broken.write_bytes(b"solid nothing at all")
    for arguments in (("convert", broken, tmp_path / "b.ply"), ("inspect", broken)):
        done = meshhub_cli(*arguments, "--json")
        payload = json.loads(done.stdout)
        assert done.returncode == 3
        assert payload["error_code"] in ("unreadable_file", "empty_model")
        assert payload["error"]
    missing = meshhub_cli("inspect", tmp_path / "none.stl", "--json")
    assert json.loads(missing.stdout)["error_code"] == "unreadable_file"


def test_reports_are_printed_as_json(tmp_path: Path) -> None:
    source = write_stl(tmp_path / "a.stl")
    done = meshhub_cli("convert", source, tmp_path / "b.glb", "--target-height-mm", 60, "--json")
    report = json.loads(done.stdout)
    assert report["target"]["size_mm"] == pytest.approx([20, 40, 60])
    assert [step["step"] for step in report["steps"]] == ["stl", "target-height", "glb"]
    assert "a.stl" not in done.stdout.decode()


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["convert", "none.stl", "b.ply"], 3, "does not exist"),
        (["convert", "a.stl", "b.xyz"], 2, "choose from"),
        (["convert", "a.stl", "b"], 2, "extension"),
        (["convert", "a.stl"], 2, "--to FORMAT"),
        (["convert", "a.stl", "b.stl", "c.stl", "--to", "ply"], 2, "--output-dir"),
        (["convert", "a.stl", "--output-dir", "out"], 2, "--to FORMAT"),
        (["convert", "a.stl", "b.ply", "--target-height-mm", "-3"], 2, "'--target-height-mm'"),
        (["convert", "a.stl", "b.ply", "--target-height-mm", "nan"], 2, "'--target-height-mm'"),
        (["convert", "a.stl", "b.ply", "--flatten-base-mm", "30"], 2, "'--flatten-base-mm'"),
        (["convert", "a.stl", "b.ply", "--optimize-target-faces", "3"], 2, "'--optimize-target-faces'"),
        (["convert", "a.stl", "b.ply", "--input-format", "x"], 2, "'--input-format'"),
        (["convert", "a.stl", "b.ply", "--timeout", "0.001"], 5, "0.001 s"),
        (["convert", "a.stl", "b.ply", "--no-such-flag"], 2, "--no-such-flag"),
        (["convert", "empty.stl", "b.ply"], 3, "0 bytes"),
        (["convert", "text.txt", "b.ply"], 2, "neither content nor extension"),
        (["convert", "a.stl", "missing/folder/b.ply"], 6, "missing/folder"),
        (["convert", "a.stl", "."], 2, "is a folder; add --to FORMAT"),
        (["convert", "a.stl", "new/"], 2, "is a folder; add --to FORMAT"),
        (["convert", "-", ".", "--to", "ply"], 2, "standard input has no name"),
        (["convert", ".", "ply"], 2, "--output-dir DIR"),
        (["convert", ".", "new/", "--to", "ply"], 2, "--output-dir new/"),
        (["convert", "", "ply"], 2, "is a folder"),
        (["inspect", ""], 3, "is a folder"),
        (["inspect", "nothing"], 2, "a folder without a model file"),
        (["convert", "-", "b.ply"], 3, "0 bytes"),
        (["inspect", "a.stl", "--repair"], 2, "--repair"),
        (["convert", "a.stl", "b.ply", "--timeout", "-1"], 2, "--timeout"),
        (["convret", "a.stl"], 2, "convert"),
        (["inspect", "none.stl"], 3, "does not exist"),
        (["explain", "a.stl", "xyz"], 2, "choose from"),
    ],
)
def test_errors_state_what_to_do(tmp_path: Path, arguments: list[str], status: int, message: str) -> None:
    write_stl(tmp_path / "a.stl")
    (tmp_path / "empty.stl").touch()
    (tmp_path / "text.txt").write_text("hello")
    (tmp_path / "nothing").mkdir()
    done = meshhub_cli(*arguments, cwd=tmp_path)
    assert done.returncode == status, done.stderr
    assert message in done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()
    assert list_files(tmp_path) == ["a.stl", "empty.stl", "text.txt"]


def test_inspect_prints_the_size_and_the_defects(tmp_path: Path) -> None:
    source = write_stl(tmp_path / "a.stl")
    done = meshhub_cli("inspect", source)
    assert done.returncode == 0, done.stderr
    assert "10 × 20 × 30 mm" in done.stdout.decode()
    inspection = json.loads(meshhub_cli("inspect", source, "--json").stdout)
    assert inspection["model"]["volume_mm3"] == pytest.approx(6000)
    assert inspection["model"]["watertight"] is True
    broken = json.loads(meshhub_cli("inspect", EXAMPLE, "--json").stdout)
    assert broken["model"]["watertight"] is False
    assert broken["model"]["bodies"] > 1
    several = meshhub_cli("inspect", source, tmp_path / "none.stl", "--json")
    assert several.returncode == 1
    assert len(json.loads(several.stdout)) == 2


def test_inspect_reports_an_inside_out_model_and_advises_an_installed_repair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mesh = brick(10, 20, 30)
    trimesh.Trimesh(mesh.vertices, mesh.faces[:, ::-1], process=False).export(tmp_path / "a.stl")
    assert "inside out: convert it with --repair" in meshhub_process("inspect", tmp_path / "a.stl").stdout.decode()
    monkeypatch.setenv("MESHHUB_DISABLED_PLUGINS", "repair")
    output = meshhub_process("inspect", tmp_path / "a.stl").stdout.decode()
    assert "inside out" in output
    assert "--repair" not in output


def test_explain_prints_the_chain_without_converting(tmp_path: Path) -> None:
    source = write_stl(tmp_path / "a.stl")
    done = meshhub_cli("explain", source, "out.3mf", "--repair", "--place-on-bed")
    text = done.stdout.decode()
    assert done.returncode == 0, done.stderr
    assert text.index("read") < text.index("stage repair") < text.index("stage place") < text.index("target .3mf")
    chain = json.loads(meshhub_cli("explain", source, "stl", "--json").stdout)
    assert [step["kind"] for step in chain["steps"]] == ["read", "write"]
    assert list_files(tmp_path) == ["a.stl"]


def test_listings_name_formats_operations_and_plugins() -> None:
    text = meshhub_cli("formats").stdout.decode()
    for name in (*TARGETS, "--stl-ascii"):
        assert name in text
    operations = json.loads(meshhub_cli("operations", "--json").stdout)
    places = [(Stage[operation["stage"].upper()], operation["id"]) for operation in operations]
    assert places == sorted(places)
    assert (places[0][1], places[-1][1]) == ("repair", "place-on-bed")
    plugins = meshhub_cli("plugins")
    assert plugins.returncode == 0, plugins.stderr
    assert "built-in" in plugins.stdout.decode()


@pytest.mark.parametrize(
    "command", ["convert", "inspect", "explain", "formats", "operations", "plugins", "serve", "keys", "config"]
)
def test_every_command_has_help(command: str) -> None:
    done = meshhub_cli(command, "--help")
    assert done.returncode == 0
    assert len(done.stdout) > 100
    if command == "convert":
        for flag in ("--repair", "--target-height-mm", "--optimize-target-faces", "--place-on-bed", "--input-unit"):
            assert flag in done.stdout.decode()


@pytest.mark.once
def test_python_and_the_command_line_give_the_same_bytes(tmp_path: Path) -> None:
    registry = meshhub.Registry()
    for target in MESH_TARGETS:
        here, there = tmp_path / f"here.{target}", tmp_path / f"there.{target}"
        registry.convert(EXAMPLE, here, repair=True, optimize_target_faces=500, place_on_bed=True)
        flags = ("--repair", "--optimize-target-faces", 500, "--place-on-bed")
        assert meshhub_cli("convert", EXAMPLE, there, *flags).returncode == 0
        assert here.read_bytes() == there.read_bytes()


def test_keys_are_created_listed_rotated_and_revoked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sqlalchemy", reason="keys need the extra http")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("MESHHUB_DATABASE_URL", raising=False)
    assert json.loads(meshhub_cli("keys", "list", "--json").stdout) == []
    result = meshhub_cli("keys", "create", "--plan", "pro", "--label", "acme [x]", "--expires-days", 3)
    key = result.stdout.decode()
    assert re.fullmatch(r"[A-Za-z0-9_-]{30,}\n", key)
    (record,) = json.loads(meshhub_cli("keys", "list", "--json").stdout)
    assert (record["plan"], record["label"], record["state"]) == ("pro", "acme [x]", "active")
    assert key.strip() not in meshhub_cli("keys", "list").stdout.decode()
    assert key.strip().encode() not in b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    rotated = meshhub_cli("keys", "rotate", record["id"], "--grace-hours", "1.5")
    assert re.fullmatch(r"[A-Za-z0-9_-]{30,}\n", rotated.stdout.decode())
    assert b"1.5 more hours" in rotated.stderr
    listed = json.loads(meshhub_cli("keys", "list", "--json").stdout)
    # both may be created within one second, which leaves their order open
    old, new = sorted(listed, key=lambda listed_record: listed_record["id"] != record["id"])
    assert (old["state"], old["revoked"] > old["created"]) == ("active", True)
    assert (new["label"], new["expires"] - new["created"]) == ("acme [x]", old["expires"] - old["created"])
    assert old["expires"] - old["created"] == pytest.approx(3 * 86_400, abs=60)
    assert meshhub_cli("keys", "rotate", record["id"]).returncode == 2
    assert meshhub_cli("keys", "revoke", record["id"]).returncode == 0
    assert b"revoked" in meshhub_cli("keys", "list").stdout
    assert meshhub_cli("keys", "revoke", "mh_nobody").returncode == 2
    assert meshhub_cli("keys", "create", "--plan", "no-such-plan").returncode == 2


def test_stl_ascii_writes_an_ascii_stl(tmp_path: Path) -> None:
    done = meshhub_cli("convert", write_stl(tmp_path / "a.stl"), tmp_path / "b.stl", "--stl-ascii")
    assert done.returncode == 0
    assert (tmp_path / "b.stl").read_bytes().startswith(b"solid")
    np.testing.assert_allclose(read_mesh(tmp_path / "b.stl").extents, [10, 20, 30])


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (FileNotFoundError("x"), 3, "unreadable_file"),
        (IsADirectoryError("x"), 3, "unreadable_file"),
        (PermissionError("x"), 6, "output_failed"),
        (BrokenPipeError("x"), 6, "output_failed"),
        (OSError("x"), 6, "output_failed"),
        (ValueError("x"), 70, "internal_error"),
    ],
)
def test_errors_of_python_have_an_exit_status_and_a_code(error: Exception, status: int, code: str) -> None:
    assert (exit_status(error), code_of(error)) == (status, code)


def test_a_picture_is_drawn(tmp_path: Path) -> None:
    picture = tmp_path / "part.png"
    done = meshhub_cli("render", write_stl(tmp_path / "part.stl"), picture, "--size", "320x240", "--view", "iso,top")
    assert done.returncode == 0, done.stderr
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert b"12 faces, 10 \xc3\x97 20 \xc3\x97 30 mm" in done.stderr
    assert not done.stdout
    again = meshhub_cli("render", tmp_path / "part.stl", picture)
    assert again.returncode == 6
    assert b"--force" in again.stderr
    piped = meshhub_process(
        "render", "-", "-", "--size", "320x240", "--view", "iso,top", stdin=(tmp_path / "part.stl").read_bytes()
    )
    assert piped.returncode == 0, piped.stderr
    assert piped.stdout == picture.read_bytes()


def test_a_picture_shows_a_model_before_and_after_operations(tmp_path: Path) -> None:
    model = write_stl(tmp_path / "part.stl")
    done = meshhub_cli(
        "render", model, "part.png", "--size", "320x240", "--reduce-colors", "4", "--target-height-mm", "60", "--json",
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert [step["step"] for step in report["steps"]] == ["stl", "target-height", "reduce-colors", "png"]
    assert report["steps"][2]["figures"]["filaments"] == ["Filament 1"]
    # sizes and faces are those of the file
    assert report["source"]["size_mm"] == [10, 20, 30]
    assert meshhub_cli("render", model, "other.png", "--threemf-profile", "prusa", cwd=tmp_path).returncode == 2


def test_a_wrong_option_of_a_picture_is_an_error(tmp_path: Path) -> None:
    model = write_stl(tmp_path / "part.stl")
    for arguments, status, text in (
        (("part.jpg",), 2, b".png"),
        (("part.png", "--size", "big"), 2, b"'--size'"),
        (("part.png", "--color-by", "surface"), 2, b"'--color-by'"),
        (("no-folder/part.png",), 6, b"no-folder"),
    ):
        done = meshhub_cli("render", model, *arguments, cwd=tmp_path)
        assert done.returncode == status, done.stderr
        assert text in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["part.stl"]
    report = meshhub_cli("render", model, "part.jpg", "--json", cwd=tmp_path)
    assert json.loads(report.stdout)["error_code"] == "unsupported_target"


def test_the_surfaces_of_a_step_file_are_printed(tmp_path: Path) -> None:
    done = meshhub_cli("convert", EXAMPLE.with_name("bracket-clean.stl"), tmp_path / "part.step")
    assert done.returncode == 0, done.stderr
    line = done.stderr.decode().splitlines()[1]
    counts = re.findall(r"\d+ (solid|faces|planes|cylinders|cones)", line)
    assert counts == ["solid", "faces", "planes", "cylinders", "cones"]
    deviation = re.search(r"within ([\d.]+) mm of the mesh$", line)
    assert deviation is not None
    # the facets of its holes lie this far below the arcs
    assert float(deviation[1]) == pytest.approx(0.00716, rel=0.02)
