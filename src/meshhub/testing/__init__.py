"""The conformance kit: contracts that every reader, writer and operation keeps, as classes of tests to inherit.

    from meshhub.testing import ReaderContract, WriterContract

    class TestReader(ReaderContract):
        format_id = "off"

    class TestWriter(WriterContract):
        format_id = "off"

pytest collects the subclasses and runs what they inherit, through a real registry. What a contract
cannot ask of a capability is skipped by what the capability declares, never by its name. Needs pytest.
"""

from __future__ import annotations

from meshhub.testing.contract import Contract
from meshhub.testing.operations import OperationContract
from meshhub.testing.readers import ReaderContract
from meshhub.testing.writers import WriterContract

__all__ = ["Contract", "OperationContract", "ReaderContract", "WriterContract"]
