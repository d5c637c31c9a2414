"""Fixtures of the tests of formats."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from meshhub.builtin_plugins.step import writer
from meshhub.builtin_plugins.step.kernel import kernel_check


@pytest.fixture(scope="session", autouse=True)
def _patient_kernel_check() -> Iterator[None]:
    """Let OpenCASCADE end its checks also on a busy machine; tests of the time limit set their own."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (kernel_check, writer):
            patch.setattr(module, "MAX_CHECK_S", 300.0)
        patch.setattr(kernel_check, "MAX_MESH_S", 300.0)
        yield
