"""Debian machines; they take minutes, so only `tox -e machines` runs their tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from machines import Machine, boot, install_layers, reason_to_skip


@pytest.fixture(scope="session")
def layers(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return the layers of the disk of a machine on which the guide installed meshhub, the highest first."""
    if reason := reason_to_skip():
        pytest.skip(reason)
    return install_layers(tmp_path_factory.mktemp("machines"))


@pytest.fixture(scope="module")
def start(layers: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Machine]]:
    """Return a function that boots a machine with a name."""
    folder = tmp_path_factory.mktemp("disks")
    with ExitStack() as stack:
        yield lambda name: stack.enter_context(boot(folder / name, *layers))
