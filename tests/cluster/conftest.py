"""Servers and workers of a cluster; they take minutes, so only `tox -e cluster` runs them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from clusters import Cluster, cluster
from postgres_schemas import URL, temporary_schema


@pytest.fixture(autouse=True)
def skip_without_cluster() -> None:
    if os.environ.get("MESHHUB_TEST_CLUSTER") != "1":
        pytest.skip("MESHHUB_TEST_CLUSTER is not 1; see tox -e cluster")


@pytest.fixture
def database_url() -> Iterator[str]:
    if not URL:
        pytest.skip("MESHHUB_TEST_POSTGRES_URL names no PostgreSQL")
    with temporary_schema() as url:
        yield url


@pytest.fixture
def start_cluster(tmp_path: Path, database_url: str) -> Iterator[Callable[..., Cluster]]:
    with ExitStack() as stack:

        def start(**settings: Any) -> Cluster:
            return stack.enter_context(cluster(tmp_path, database_url, **settings))

        yield start
