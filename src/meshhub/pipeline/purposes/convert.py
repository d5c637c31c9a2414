"""Conversion of one file to another format."""

from __future__ import annotations

from meshhub.model.plans import Caller
from meshhub.pipeline.declarations import Declarations
from meshhub.pipeline.purpose import CheckedRequest, End, Options, Purpose, Writers
from meshhub.pipeline.steps import find_writer, make_write


class ConvertPurpose(Purpose):
    """Write the scene of a file in another format."""

    shows_scene = False
    target_field = "required"
    report_field = "flag"

    def choose_writers(self, declarations: Declarations, target: str, caller: Caller) -> Writers:
        """Return the writer of the target."""
        return find_writer(declarations, target, caller), None

    def make_end(self, checked: CheckedRequest, options: Options) -> End:
        """Write the file."""
        assert checked.writer is not None
        write, ending = make_write(checked.target, checked.writer, options)
        return (write,), ending


PURPOSE = ConvertPurpose("convert")
