"""A service for the clients."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from client_programs import Service


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("service")
    environment = {
        **os.environ,
        "XDG_DATA_HOME": str(folder),
        "MESHHUB_TEMPORARY_FOLDER": str(folder),
        "MESHHUB_PLAN_FREE_REQUESTS_PER_MINUTE": "1000",
    }
    meshhub = [sys.executable, "-m", "meshhub"]
    create_key = [*meshhub, "keys", "create", "--plan", "pro", "--label", "clients"]
    key = subprocess.run(create_key, env=environment, capture_output=True, text=True, check=True).stdout.strip()
    serve = [*meshhub, "serve", "--port", "0"]
    with subprocess.Popen(serve, stderr=subprocess.PIPE, env=environment, text=True) as process:
        assert process.stderr is not None
        try:
            first = process.stderr.readline()
            match = re.search(r"http://127\.0\.0\.1:\d+", first)
            assert match is not None, first
            yield Service(match[0], key)
        finally:
            process.send_signal(signal.SIGTERM)
            process.stderr.read()
            process.wait(300)
