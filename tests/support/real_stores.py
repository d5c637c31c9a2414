"""PostgreSQL and Redis servers for a single test, which can freeze them."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from waiting import wait_until


@contextlib.contextmanager
def postgres() -> Iterator[tuple[str, int]]:
    """Start a PostgreSQL in a temporary folder; yield its URL and its process id."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name))
    if not programs:
        pytest.skip("PostgreSQL is not installed")
    user = ("runuser", "-u", "postgres", "--") if os.getuid() == 0 else ()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        if user:
            shutil.chown(folder, "postgres")

        def run(program: str, *arguments: str) -> None:
            command = [*user, str(programs[-1] / program), "-D", str(folder / "data"), *arguments]
            subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, timeout=300)

        run("initdb", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        run("pg_ctl", "-l", str(folder / "log"), "-w", "-o", f"-c listen_addresses='' -k {folder} -F", "start")
        try:
            process_id = int((folder / "data" / "postmaster.pid").read_text().split()[0])
            yield f"postgresql://postgres@/postgres?host={folder}", process_id
        finally:
            run("pg_ctl", "-m", "immediate", "stop")


@contextlib.contextmanager
def redis() -> Iterator[tuple[str, int]]:
    """Start a Redis on a Unix socket; yield its URL and its process id."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("Redis is not installed")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "redis.sock")
        command = [program, "--port", "0", "--unixsocket", str(path), "--save", "", "--dir", folder]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            try:
                wait_until(path.exists)
                yield f"redis+unix://{path}", process.pid
            finally:
                process.terminate()


@contextlib.contextmanager
def frozen(process_id: int) -> Iterator[None]:
    """Stop a process and its children with SIGSTOP; continue them at the end."""
    children = Path(f"/proc/{process_id}/task/{process_id}/children").read_text().split()
    process_ids = [process_id, *map(int, children)]
    try:
        for stopped_id in process_ids:
            os.kill(stopped_id, signal.SIGSTOP)
        yield
    finally:
        for stopped_id in process_ids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(stopped_id, signal.SIGCONT)
