"""Inspection of one file."""

from __future__ import annotations

from meshhub.model.chain import Inspect
from meshhub.pipeline.purpose import CheckedRequest, End, Options, Purpose


class InspectPurpose(Purpose):
    """Report what is in a file, and whether it is printable."""

    runs_operations = False
    expands_recipes = False
    main_field = "file"

    def make_end(self, checked: CheckedRequest, options: Options) -> End:
        """Inspect the scene."""
        return (), Inspect()


PURPOSE = InspectPurpose("inspect")
