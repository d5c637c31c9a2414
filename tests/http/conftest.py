"""Servers for the tests of the service."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import service_plugins
from http_serving import Running, serving
from meshhub.engine.contract import Engine
from meshhub.engine.isolated import Isolated


@pytest.fixture(scope="session")
def engine() -> Iterator[Isolated]:
    """One engine for all servers."""
    made = Isolated(workers=4)
    yield made
    made.close()


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server with the plans as they are, but for the rate; conversions run in its process."""
    with serving(tmp_path_factory.mktemp("service"), {"workers": 4}, None, (service_plugins.Reviewer,)) as running:
        yield running


@pytest.fixture(scope="session")
def isolated(tmp_path_factory: pytest.TempPathFactory, engine: Isolated) -> Iterator[Running]:
    """The same with a process for every conversion."""
    with serving(tmp_path_factory.mktemp("isolated"), {"workers": 4}, engine) as running:
        yield running


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Servers with settings of their own; conversions run in the process unless an engine is given."""
    with contextlib.ExitStack() as stack:
        count = iter(range(100))

        def start(engine: Engine | None = None, **settings: Any) -> Running:
            folder = tmp_path / f"server-{next(count)}"
            folder.mkdir()
            return stack.enter_context(serving(folder, settings, engine))

        yield start


@pytest.fixture(scope="session")
def pro(service: Running) -> dict[str, str]:
    """The header of a Pro customer."""
    key, _ = service.keys.create("pro", label="tests")
    return {"X-Api-Key": key}
