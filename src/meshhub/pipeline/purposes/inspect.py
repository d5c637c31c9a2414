"""Inspection of one file."""

from __future__ import annotations

from collections.abc import Mapping

from meshhub.model.chain import Ending, Inspect, Step
from meshhub.model.options import Value
from meshhub.model.plans import Caller
from meshhub.pipeline.declarations import Declarations
from meshhub.pipeline.purpose import CheckedRequest, Purpose


class InspectPurpose(Purpose):
    """Report what is in a file, and whether it is printable."""

    runs_operations = False
    expands_recipes = False
    main_field = "file"

    def make_ending(
        self, declarations: Declarations, checked: CheckedRequest, options: Mapping[str, Value], caller: Caller
    ) -> tuple[tuple[Step, ...], Ending]:
        """Inspect the scene."""
        return (), Inspect()


PURPOSE = InspectPurpose("inspect")
