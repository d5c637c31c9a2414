"""Conformance kit: contracts for readers, writers, operations and checks, as test classes to inherit.

    from meshhub.testing import ReaderContract, WriterContract

    class TestReader(ReaderContract):
        format_id = "off"

    class TestWriter(WriterContract):
        format_id = "off"

pytest collects the subclasses and runs the inherited tests through a real registry. A test is skipped only if the
declaration of the capability rules it out; no test depends on the name of the format. Requires pytest.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from meshhub.testing.checks import CheckContract
    from meshhub.testing.contract import Contract
    from meshhub.testing.operations import OperationContract
    from meshhub.testing.readers import ReaderContract
    from meshhub.testing.writers import WriterContract

__all__ = ["CheckContract", "Contract", "OperationContract", "ReaderContract", "WriterContract"]

_MODULES = {
    "CheckContract": "meshhub.testing.checks",
    "Contract": "meshhub.testing.contract",
    "OperationContract": "meshhub.testing.operations",
    "ReaderContract": "meshhub.testing.readers",
    "WriterContract": "meshhub.testing.writers",
}
"""Home of each name. Imported on first use: the child processes need neither pytest nor scipy, and start often."""


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'meshhub.testing' has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)
