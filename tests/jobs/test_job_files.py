"""Folder of inputs and results."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from meshhub.service.jobs.files import LocalJobFiles, hash_file

pytestmark = pytest.mark.once


@pytest.fixture
def files(tmp_path: Path) -> LocalJobFiles:
    return LocalJobFiles(tmp_path / "jobs", orphan_age_s=60)


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_inputs_are_moved_and_returned_in_order(files: LocalJobFiles, tmp_path: Path) -> None:
    paths = [write(tmp_path / name, name.encode()) for name in ("b", "a")]
    files.add_inputs("job", paths)
    assert not any(path.exists() for path in paths)
    assert [path.read_bytes() for path in files.fetch_inputs("job", 2, tmp_path)] == [b"b", b"a"]
    files.remove_inputs("job")
    assert not any(path.exists() for path in files.fetch_inputs("job", 2, tmp_path))


def test_only_the_result_of_the_last_run_is_kept(files: LocalJobFiles, tmp_path: Path) -> None:
    for token in ("first", "second"):
        files.add_result("job", token, write(tmp_path / "result", token.encode()))
    assert files.read_result("job", "first", 1, 3) == b"irs"
    files.remove_results("job", keep="second")
    assert files.read_result("job", "second", 0, 100) == b"second"
    with pytest.raises(FileNotFoundError):
        files.read_result("job", "first", 0, 1)
    files.remove_results("job")
    with pytest.raises(FileNotFoundError):
        files.read_result("job", "second", 0, 1)


def test_only_old_files_without_a_job_are_removed(files: LocalJobFiles, tmp_path: Path) -> None:
    for job_id in ("known", "young", "old"):
        files.add_inputs(job_id, [write(tmp_path / "model", b"x")])
    files.add_result("old-result", "token", write(tmp_path / "result", b"x"))
    for name in ("in/known", "in/old", "out/old-result"):
        os.utime(tmp_path / "jobs" / name, (0, 0))
    assert files.sweep({"known"}.intersection) == 2
    assert sorted(os.listdir(tmp_path / "jobs" / "in")) == ["known", "young"]
    assert os.listdir(tmp_path / "jobs" / "out") == []


def test_the_folders_belong_to_one_user(files: LocalJobFiles, tmp_path: Path) -> None:
    files.add_inputs("job", [write(tmp_path / "model", b"x")])
    for folder in (tmp_path / "jobs", tmp_path / "jobs" / "in", tmp_path / "jobs" / "in" / "job"):
        assert folder.stat().st_mode & 0o077 == 0


def test_the_hash_is_that_of_the_content(tmp_path: Path) -> None:
    assert hash_file(write(tmp_path / "a", b"abc")).startswith("ba7816bf8f01cfea")
