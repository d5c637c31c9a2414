"""Servers for the tests of the service."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import service_plugins
from http_serving import Running, serving
from meshhub.engine.contract import Engine
from meshhub.engine.isolated import Isolated
from meshhub.http.admission import threads


@pytest.fixture(scope="session", autouse=True)
def _lookup_timeout() -> Iterator[None]:
    """Let lookups in the key database take as long as they do on a loaded machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "_LOOKUP_TIMEOUT_S", 60.0)
        yield


@pytest.fixture(scope="session")
def engine() -> Iterator[Isolated]:
    """Create the engine that all servers share."""
    shared = Isolated(workers=4)
    yield shared
    shared.close()


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Serve with the default plans, except for the rate limit; conversions run in the server process."""
    settings = {"workers": 4, "drain_seconds": 60}
    with serving(tmp_path_factory.mktemp("service"), settings, None, (service_plugins.Reviewer,)) as running:
        yield running


@pytest.fixture(scope="session")
def isolated(tmp_path_factory: pytest.TempPathFactory, engine: Isolated) -> Iterator[Running]:
    """Serve with a worker process for each conversion."""
    with serving(tmp_path_factory.mktemp("isolated"), {"workers": 4}, engine) as running:
        yield running


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Start servers with their own settings; default: conversions run in the server process."""
    with contextlib.ExitStack() as stack:
        count = iter(range(100))

        def start(engine: Engine | None = None, **settings: Any) -> Running:
            folder = tmp_path / f"server-{next(count)}"
            folder.mkdir()
            return stack.enter_context(serving(folder, settings, engine))

        yield start


@pytest.fixture(scope="session")
def pro(service: Running) -> dict[str, str]:
    """Return the header of a Pro customer."""
    key, _ = service.keys.create("pro", label="tests")
    return {"X-Api-Key": key}


@pytest.fixture
def no_short_conversions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a new service expect nothing of its conversions, so that the queue has its size."""
    monkeypatch.setattr("meshhub.http.admission.resources.LEAST_S", math.inf)
