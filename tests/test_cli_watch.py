"""A watched folder, as a process that lives until a signal."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import structs

from meshhub import Registry
from meshhub.cli import watch as watch_module
from meshhub.cli.batch import Batch, Conversion
from meshhub.cli.convert_flags import ConvertFlags
from meshhub.cli.watch import _SETTLE_S, Arrivals, _Watch
from signals import reset_interrupts
from test_cli import list_files, meshhub_cli, read_mesh, write_stl
from waiting import MAX_WAIT_S, wait_until

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(sys.platform == "win32", reason="a signal ends a program in another way there"),
]


PROGRAM = """
from meshhub.cli import watch
watch.POLL_S, watch._SETTLE_S = 0.05, 0.3
from meshhub.__main__ import main
main()
"""
"""The program, with a tenth of its waits."""


class Watching:
    """A running watch; its streams are files."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.output, self._errors = folder / "stdout", folder / "stderr"
        with self.output.open("wb") as output, self._errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, "convert", "--watch", "in", "--to", "ply", "-o", "out", *arguments],
                cwd=folder,
                stdout=output,
                stderr=errors,
                env={**os.environ, "NO_COLOR": "1"},
                preexec_fn=reset_interrupts,
            )

    @property
    def errors(self) -> str:
        return self._errors.read_text()

    def wait_for(self, condition: Callable[[], bool]) -> None:
        wait_until(lambda: condition() or self.process.poll() is not None)
        assert condition(), self.errors

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(MAX_WAIT_S)


@contextlib.contextmanager
def watch(folder: Path, *arguments: str) -> Iterator[Watching]:
    (folder / "in").mkdir(exist_ok=True)
    watching = Watching(folder, *arguments)
    try:
        watching.wait_for(lambda: "watching in" in watching.errors or "-q" in arguments)
        yield watching
    finally:
        watching.process.kill()
        watching.process.wait()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_arrives_is_converted_until_a_signal(tmp_path: Path, number: int) -> None:
    (tmp_path / "in").mkdir()
    write_stl(tmp_path / "in" / "before.stl")
    with watch(tmp_path, "--jobs", "1", "--name", "{stem}-{format}") as watching:
        watching.wait_for((tmp_path / "out" / "before-ply.ply").exists)
        (tmp_path / "in" / "bad.stl").write_text("not a model")
        (tmp_path / "in" / "sub").mkdir()
        write_stl(tmp_path / "moved.stl").rename(tmp_path / "in" / "sub" / "moved.stl")
        watching.wait_for((tmp_path / "out" / "sub" / "moved-ply.ply").exists)
        watching.wait_for(lambda: "bad.stl" in watching.errors)
        write_stl(tmp_path / "in" / ".hidden.stl")
        write_stl(tmp_path / "in" / "late.stl", (3, 4, 5))
        watching.wait_for((tmp_path / "out" / "late-ply.ply").exists)
        watching.wait_for(lambda: "late-ply.ply:" in watching.errors)
        assert watching.stop(number) == 0
        assert "3 converted, 1 failed" in watching.errors
        assert "Traceback" not in watching.errors
    assert list_files(tmp_path / "out") == ["before-ply.ply", "late-ply.ply", "sub/moved-ply.ply"]
    assert read_mesh(tmp_path / "out" / "late-ply.ply").extents.tolist() == [3, 4, 5]


def test_a_file_is_converted_once_it_is_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(watch_module, "time", SimpleNamespace(monotonic=lambda: now))
    path = tmp_path / "a.stl"
    arrivals = Arrivals(tmp_path, frozenset({".stl"}), tmp_path / "out")
    with path.open("wb", buffering=0) as upload:
        for _ in range(3):
            upload.write(b"solid")
            for _ in range(2):
                assert list(arrivals.poll()) == []
                now += 0.9 * _SETTLE_S
    assert list(arrivals.poll()) == [path]
    assert list(arrivals.poll()) == []


def test_an_upload_that_paused_is_converted_again(tmp_path: Path) -> None:
    obj = "v 0 0 0\nv 9 0 0\nv 0 9 0\nv 0 0 9\nf 1 3 2\n"
    with watch(tmp_path) as watching:
        path, result = tmp_path / "in" / "a.obj", tmp_path / "out" / "a.ply"
        path.write_text(obj)
        watching.wait_for(lambda: " mm, 1 face," in watching.errors)
        with path.open("a") as upload:
            upload.write("f 1 2 4\nf 1 4 3\nf 2 3 4\n")
        watching.wait_for(lambda: " mm, 4 faces," in watching.errors)
        assert len(read_mesh(result).faces) == 4
        result.write_text("mine")
        path.write_text(obj + "f 1 2 4\n")
        watching.wait_for(lambda: "already exists" in watching.errors)
        assert result.read_text() == "mine"


def test_a_file_that_is_renamed_before_its_turn_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_module, "_SETTLE_S", 0.3)
    (tmp_path / "in").mkdir()
    file = write_stl(tmp_path / "in" / "a.stl")
    flags: dict[str, Any] = dict.fromkeys(field.name for field in structs.fields(ConvertFlags))
    batch = Batch(Registry(), "ply", tmp_path / "out", ConvertFlags(**flags), {})
    arrivals, gate = _Watch(tmp_path / "in", batch), threading.Event()

    def wait_for_arrival() -> Future[Conversion]:
        submitted: list[Future[Conversion]] = []
        wait_until(lambda: bool(submitted.extend(arrivals.submit(pool)) or submitted))
        return submitted[0]

    with ThreadPoolExecutor(1) as pool:
        pool.submit(gate.wait)
        conversion = wait_for_arrival()
        file.rename(tmp_path / "in" / "b.stl")
        gate.set()
        arrivals.finish(conversion.result())
        assert not arrivals.counts
        arrivals.finish(wait_for_arrival().result())
    assert arrivals.counts == {"converted": 1}
    assert list_files(tmp_path / "out") == ["b.ply"]


def test_results_below_the_watched_folder_are_not_converted(tmp_path: Path) -> None:
    with watch(tmp_path, "-o", "in/out", "--json") as watching:
        for name in ("a.stl", "b.stl"):
            write_stl(tmp_path / "in" / name)
        watching.wait_for(lambda: watching.output.read_text().count("\n") == 2)
        # the results would be converted before a file that is younger
        write_stl(tmp_path / "in" / "c.stl")
        watching.wait_for(lambda: watching.output.read_text().count("\n") == 3)
        assert watching.stop() == 0
    results = [json.loads(line) for line in watching.output.read_text().splitlines()]
    assert sorted(result["file"] for result in results) == ["in/a.stl", "in/b.stl", "in/c.stl"]
    assert list_files(tmp_path / "in") == ["a.stl", "b.stl", "c.stl", "out/a.ply", "out/b.ply", "out/c.ply"]


def test_a_second_run_skips_what_the_first_converted(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write_stl(tmp_path / "in" / "a.stl")
    with watch(tmp_path, "--skip-existing") as watching:
        watching.wait_for((tmp_path / "out" / "a.ply").exists)
        assert watching.stop() == 0
    before = (tmp_path / "out" / "a.ply").stat().st_mtime_ns
    write_stl(tmp_path / "in" / "b.stl")
    with watch(tmp_path, "--skip-existing") as watching:
        watching.wait_for((tmp_path / "out" / "b.ply").exists)
        watching.wait_for(lambda: "b.ply:" in watching.errors)
        assert watching.stop() == 0
        assert "1 converted, 0 failed, 1 skipped" in watching.errors
    assert (tmp_path / "out" / "a.ply").stat().st_mtime_ns == before


def test_a_result_of_a_removed_file_is_not_taken_for_that_of_another(tmp_path: Path) -> None:
    with watch(tmp_path, "--skip-existing") as watching:
        write_stl(tmp_path / "in" / "a.stl")
        watching.wait_for(lambda: "out/a.ply:" in watching.errors)
        (tmp_path / "in" / "a.stl").unlink()
        write_stl(tmp_path / "in" / "a.STL")
        watching.wait_for(lambda: "in/a.stl and in/a.STL have one output" in watching.errors)
        assert watching.stop() == 0
        assert "1 converted, 1 failed" in watching.errors


def test_a_lost_folder_is_awaited(tmp_path: Path) -> None:
    with watch(tmp_path) as watching:
        (tmp_path / "in").rename(tmp_path / "away")
        watching.wait_for(lambda: "in is not available" in watching.errors)
        write_stl(tmp_path / "away" / "a.stl")
        (tmp_path / "away").rename(tmp_path / "in")
        watching.wait_for((tmp_path / "out" / "a.ply").exists)
        assert "in is available again" in watching.errors


def test_two_files_with_one_output_are_reported(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write_stl(tmp_path / "in" / "a.stl")
    write_stl(tmp_path / "in" / "a.STL")
    with watch(tmp_path, "--force") as watching:
        watching.wait_for(lambda: "have one output" in watching.errors)
        watching.wait_for((tmp_path / "out" / "a.ply").exists)
        assert watching.process.poll() is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--watch", "in"], "--to FORMAT and --output-dir"),
        (["--watch", "in", "--to", "ply"], "--to FORMAT and --output-dir"),
        (["--watch", "in", "a.stl", "--to", "ply", "-o", "out"], "neither an INPUT"),
        (["--watch", "in", "--to", "ply", "-o", "out", "--dry-run"], "nor --dry-run"),
        (["--watch", "in", "--to", "ply", "-o", "in"], "would arrive in in"),
        (["--watch", "in", "--to", "ply", "-o", "."], "would arrive in in"),
        (["--watch", "none", "--to", "ply", "-o", "out"], "'none' does not exist"),
        (["--watch", "in", "--to", "xyz", "-o", "out"], "choose from"),
        (["--watch", "in", "--to", "ply", "-o", "out", "--target-height-mm", "-1"], "--target-height-mm"),
        (["--watch", "in", "--to", "ply", "-o", "out", "--output", "x.ply"], "give one of them"),
        ([], "give an INPUT"),
    ],
)
def test_wrong_flags_end_the_command_at_once(tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "in").mkdir()
    write_stl(tmp_path / "in" / "a.stl")
    done = meshhub_cli("convert", *arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr.decode()
    assert list_files(tmp_path) == ["in/a.stl"]


def test_a_file_that_changed_between_two_runs_is_converted_again(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    source = write_stl(tmp_path / "in" / "a.stl")
    done = meshhub_cli("convert", "in/a.stl", "--to", "ply", "-o", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    output = tmp_path / "out" / "a.ply"
    before = output.read_bytes()
    write_stl(source, (1, 2, 3))
    os.utime(source, ns=(output.stat().st_atime_ns, output.stat().st_mtime_ns + 10**9))
    with watch(tmp_path, "--skip-existing") as watching:
        watching.wait_for(lambda: "out/a.ply:" in watching.errors)
        assert watching.stop() == 0
        assert "1 converted, 0 failed" in watching.errors
    assert output.read_bytes() != before
