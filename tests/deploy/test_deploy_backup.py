"""The commands of the guide "Back up, restore and migrate", with SQLite and PostgreSQL."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sql

from job_stores import new_job
from meshhub.errors import InvalidKey
from meshhub.service.jobs.files import LocalJobFiles
from meshhub.service.jobs.job import Outcome
from meshhub.service.jobs.postgres import PostgresJobStore
from meshhub.service.jobs.sqlite import SqliteJobStore
from meshhub.service.jobs.store import JobStore
from meshhub.service.keys import KeyStore
from meshhub.service.webhook_secrets import WebhookSecrets
from postgres_schemas import URL

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "back-up.md"
GUIDE_URL = "postgresql://meshhub@db.internal/meshhub"

needs_postgres = pytest.mark.skipif(not URL, reason="MESHHUB_TEST_POSTGRES_URL names no PostgreSQL")


def read_commands(heading: str, program: str) -> list[str]:
    """Return the commands below a heading, in the blocks that call a program."""
    (section,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    blocks = [block for block in re.findall(r"^```console\n(.*?)^```", section, re.M | re.S) if program in block]
    assert blocks
    return [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]


def run(commands: list[str], folder: Path, url: str = "") -> None:
    """Run commands of the guide in one shell, with folders, a database and the Python of this test."""
    replaced = "\n".join(commands).replace("/var/lib/meshhub", str(folder / "data"))
    for copy in folder.glob("backup/*"):
        replaced = replaced.replace("/backup/2026-10-01-030000", str(copy))
    replaced = re.sub(r"(?<![\w/])/backup\b", str(folder / "backup"), replaced)
    replaced = replaced.replace("/opt/meshhub/bin/python", shlex.quote(sys.executable))
    replaced = replaced.replace(f'"{GUIDE_URL}"', f"'{url}'").replace(GUIDE_URL, f"'{url}'")
    folders = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-euc", replaced],
        cwd=ROOT,
        env={**os.environ, "PATH": folders},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{replaced}: {done.stderr}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data" / "jobs").mkdir(parents=True)
    return tmp_path


@pytest.fixture
def database() -> Iterator[str]:
    """Create a database in PostgreSQL; yield its URL, which libpq understands, too."""
    name = f"meshhub_{os.getpid()}_{os.urandom(4).hex()}"
    maker = sql.create_engine(URL, isolation_level="AUTOCOMMIT", poolclass=sql.NullPool)
    with maker.connect() as connection:
        connection.execute(sql.text(f"CREATE DATABASE {name}"))
    yield maker.url.set(database=name, drivername="postgresql").render_as_string(hide_password=False)
    with maker.connect() as connection:
        connection.execute(sql.text(f"DROP DATABASE {name} WITH (FORCE)"))


class Opened:
    """Stores that the end of a test closes."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._stack = stack

    def keys(self, url: str) -> KeyStore:
        return self._stack.enter_context(contextlib.closing(KeyStore(url)))

    def jobs(self, url: str | Path) -> JobStore:
        store = SqliteJobStore(url) if isinstance(url, Path) else PostgresJobStore(url)
        return self._stack.enter_context(contextlib.closing(store))


@pytest.fixture
def opened() -> Iterator[Opened]:
    with contextlib.ExitStack() as stack:
        yield Opened(stack)


def add_jobs(store: JobStore) -> tuple[str, str]:
    """Add a job that has ended, and one that waits; return their ids."""
    ended, _ = store.submit(new_job(), max_queued=10)
    running = store.claim("worker")
    assert running is not None
    assert store.finish(ended.id, running.token or "", Outcome(error_code="empty_model", error="it is empty"))
    waiting, _ = store.submit(new_job(), max_queued=10)
    return ended.id, waiting.id


def check_jobs(store: JobStore, ids: tuple[str, str]) -> None:
    states = [job.state if job is not None else None for job in map(store.get, ids)]
    assert states == ["failed", "queued"]
    assert [row.job_id for row in store.list_usage()] == [ids[0]]
    assert store.depth().queued == 1


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="the program sqlite3 is not installed")
def test_a_backup_of_sqlite_restores_keys_and_jobs(folder: Path, opened: Opened) -> None:
    data = folder / "data"
    keys = opened.keys(f"sqlite:///{data / 'meshhub.sqlite3'}")
    key, record = keys.create("pro")
    secret = WebhookSecrets(keys).create(record.id)
    store, files = opened.jobs(data / "jobs" / "jobs.sqlite3"), LocalJobFiles(data / "jobs")
    ids = add_jobs(store)
    (folder / "model.stl").write_bytes(b"solid")
    files.add_inputs(ids[1], [folder / "model.stl"])
    (data / "jobs" / "out").mkdir()
    # both databases are open, as in a running service
    run(read_commands("Back up", "sqlite3"), folder)
    (copy,) = folder.glob("backup/*")
    assert stat.S_IMODE(copy.stat().st_mode) == 0o700
    late, _ = keys.create("pro")
    store.cancel(ids[1])
    store.close()
    files.remove_inputs(ids[1])
    run(read_commands("Restore", "sqlite3"), folder)
    restored = opened.keys(f"sqlite:///{data / 'meshhub.sqlite3'}")
    assert restored.check(key).id == record.id
    assert WebhookSecrets(restored).active(record.id) == [secret]
    with pytest.raises(InvalidKey):
        restored.check(late)
    check_jobs(opened.jobs(data / "jobs" / "jobs.sqlite3"), ids)
    (path,) = files.fetch_inputs(ids[1], 1, folder)
    assert path.read_bytes() == b"solid"


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="the program sqlite3 is not installed")
def test_a_backup_creates_no_missing_database(folder: Path) -> None:
    with pytest.raises(AssertionError, match="unable to open database"):
        run(read_commands("Back up", "sqlite3"), folder)
    assert not any(folder.glob("data/**/*.sqlite3"))


@needs_postgres
@pytest.mark.skipif(shutil.which("pg_dump") is None, reason="pg_dump is not installed")
def test_a_backup_of_postgres_restores_keys_and_jobs(folder: Path, opened: Opened, database: str) -> None:
    keys, store = opened.keys(database), opened.jobs(database)
    key, record = keys.create("pro")
    ids = add_jobs(store)
    run(read_commands("Back up", "pg_dump"), folder, database)
    keys.revoke(record.id)
    store.cancel(ids[1])
    store.close()
    keys.close()
    run(read_commands("Restore", "pg_restore"), folder, database)
    assert opened.keys(database).check(key).id == record.id
    store = opened.jobs(database)
    check_jobs(store, ids)
    # the numbers of new jobs go on after those of the copy
    assert store.submit(new_job(), max_queued=10)[1]


@needs_postgres
@pytest.mark.large
def test_keys_and_the_ledger_migrate_from_sqlite_to_postgres(folder: Path, opened: Opened, database: str) -> None:
    data = folder / "data"
    keys = opened.keys(f"sqlite:///{data / 'meshhub.sqlite3'}")
    key, record = keys.create("pro", label="acme")
    secret = WebhookSecrets(keys).create(record.id)
    ids = add_jobs(opened.jobs(data / "jobs" / "jobs.sqlite3"))
    commands = read_commands("Migrate", "copy_tables")
    run(commands, folder, database)
    moved = opened.keys(database)
    assert moved.check(key) == record
    assert WebhookSecrets(moved).active(record.id) == [secret]
    # the service of the cluster adds its other tables
    store = opened.jobs(database)
    assert [(row.job_id, row.key_id) for row in store.list_usage()] == [(ids[0], "mh_a")]
    assert store.get(ids[1]) is None
    moved.revoke(record.id)
    run(commands, folder, database)
    assert moved.list()[0].revoked is not None
    assert len(store.list_usage()) == 1
