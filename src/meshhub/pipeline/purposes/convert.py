"""Conversion of one file to another format."""

from __future__ import annotations

from collections.abc import Mapping

from meshhub.model.capabilities import Writer
from meshhub.model.chain import Ending, Step
from meshhub.model.options import Value
from meshhub.model.plans import Caller
from meshhub.pipeline.declarations import Declarations, Declared
from meshhub.pipeline.purpose import CheckedRequest, Purpose
from meshhub.pipeline.steps import find_writer, make_write


class ConvertPurpose(Purpose):
    """Write the scene of a file in another format."""

    shows_scene = False
    target_field = "required"
    report_field = "flag"

    def choose_writers(self, declarations: Declarations, target: str, caller: Caller) -> tuple[Declared[Writer], None]:
        """Return the writer of the target."""
        return find_writer(declarations, target, caller), None

    def make_ending(
        self,
        declarations: Declarations,
        checked: CheckedRequest,
        options: Mapping[str, Value],
        caller: Caller,
    ) -> tuple[tuple[Step, ...], Ending]:
        """Write the file."""
        assert checked.writer is not None
        write, ending = make_write(checked.target, checked.writer, options)
        return (write,), ending


PURPOSE = ConvertPurpose("convert")
