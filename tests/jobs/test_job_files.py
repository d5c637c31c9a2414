"""Inputs and results in a folder and in an S3-compatible store."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import pytest

from meshhub.errors import JobStoreUnavailable
from meshhub.service.jobs.files import JobFiles, LocalJobFiles, hash_file
from meshhub.service.jobs.object_files import ObjectJobFiles

pytestmark = pytest.mark.once


@pytest.fixture
def local_files(tmp_path: Path) -> LocalJobFiles:
    return LocalJobFiles(tmp_path / "jobs", orphan_age_s=60)


@pytest.fixture
def bucket_url(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return an empty folder of a bucket."""
    server = request.getfixturevalue("object_server")
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    return f"{server.url}/{secrets.token_hex(4)}"


@pytest.fixture(params=["folder", "bucket"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> JobFiles:
    if request.param == "folder":
        return LocalJobFiles(tmp_path / "jobs", orphan_age_s=60)
    return ObjectJobFiles(request.getfixturevalue("bucket_url"), orphan_age_s=60)


def has_inputs(files: JobFiles, job_id: str, folder: Path) -> bool:
    folder /= secrets.token_hex(4)
    folder.mkdir()
    try:
        return all(path.exists() for path in files.fetch_inputs(job_id, 1, folder))
    except FileNotFoundError:
        return False


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_inputs_are_returned_in_order(files: JobFiles, tmp_path: Path) -> None:
    paths = [write(tmp_path / name, name.encode()) for name in ("b", "a")]
    files.add_inputs("job", paths)
    assert [path.read_bytes() for path in files.fetch_inputs("job", 2, tmp_path)] == [b"b", b"a"]
    files.remove_inputs("job")
    assert not has_inputs(files, "job", tmp_path)


def test_inputs_are_moved_into_the_folder(local_files: LocalJobFiles, tmp_path: Path) -> None:
    path = write(tmp_path / "a", b"a")
    local_files.add_inputs("job", [path])
    assert not path.exists()


def test_only_the_result_of_the_last_run_is_kept(files: JobFiles, tmp_path: Path) -> None:
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


def test_only_old_files_without_a_job_are_removed(local_files: LocalJobFiles, tmp_path: Path) -> None:
    files = local_files
    for job_id in ("known", "young", "old"):
        files.add_inputs(job_id, [write(tmp_path / "model", b"x")])
    files.add_result("old-result", "token", write(tmp_path / "result", b"x"))
    for name in ("in/known", "in/old", "out/old-result"):
        os.utime(tmp_path / "jobs" / name, (0, 0))
    assert files.sweep({"known"}.intersection) == 2
    assert sorted(os.listdir(tmp_path / "jobs" / "in")) == ["known", "young"]
    assert os.listdir(tmp_path / "jobs" / "out") == []


def test_only_old_objects_without_a_job_are_removed(bucket_url: str, tmp_path: Path) -> None:
    old, young = ObjectJobFiles(bucket_url, orphan_age_s=-60), ObjectJobFiles(bucket_url, orphan_age_s=60)
    for job_id in ("known", "orphan"):
        old.add_inputs(job_id, [write(tmp_path / "model", b"x")])
        old.add_result(job_id, "token", write(tmp_path / "result", b"x"))
    old.add_result("orphan-result", "token", write(tmp_path / "result", b"x"))
    assert young.sweep({"known"}.intersection) == 0
    assert old.sweep({"known"}.intersection) == 2
    assert has_inputs(old, "known", tmp_path)
    assert not has_inputs(old, "orphan", tmp_path)
    with pytest.raises(FileNotFoundError):
        old.read_result("orphan-result", "token", 0, 1)
    assert old.read_result("known", "token", 0, 1) == b"x"


def test_a_large_object_is_read_in_parts(bucket_url: str, tmp_path: Path) -> None:
    files = ObjectJobFiles(bucket_url)
    # larger than one part of an upload
    content = os.urandom(12 << 20)
    files.add_result("job", "token", write(tmp_path / "result", content))
    assert files.read_result("job", "token", 6 << 20, 1 << 20) == content[6 << 20 : 7 << 20]
    assert files.read_result("job", "token", 0, len(content)) == content


def test_a_store_without_the_bucket_is_unavailable(bucket_url: str, tmp_path: Path) -> None:
    files = ObjectJobFiles("s3://absent-bucket/jobs")
    with pytest.raises((JobStoreUnavailable, FileNotFoundError)):
        files.add_inputs("job", [write(tmp_path / "model", b"x")])


def test_the_folders_belong_to_one_user(local_files: LocalJobFiles, tmp_path: Path) -> None:
    files = local_files
    files.add_inputs("job", [write(tmp_path / "model", b"x")])
    for folder in (tmp_path / "jobs", tmp_path / "jobs" / "in", tmp_path / "jobs" / "in" / "job"):
        assert folder.stat().st_mode & 0o077 == 0


def test_the_hash_is_that_of_the_content(tmp_path: Path) -> None:
    assert hash_file(write(tmp_path / "a", b"abc")).startswith("ba7816bf8f01cfea")
