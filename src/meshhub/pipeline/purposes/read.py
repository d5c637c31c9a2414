"""Conversion of one file to a scene for the program."""

from __future__ import annotations

from meshhub.model.plans import Caller
from meshhub.pipeline.declarations import Declarations
from meshhub.pipeline.program_scenes import SCENE_WRITER
from meshhub.pipeline.purpose import Writers
from meshhub.pipeline.purposes.convert import ConvertPurpose


class ReadPurpose(ConvertPurpose):
    """Return the scene of a file."""

    expands_recipes = False

    def choose_writers(self, declarations: Declarations, target: str, caller: Caller) -> Writers:
        """Return the writer of scenes for the program."""
        return SCENE_WRITER, None


PURPOSE = ReadPurpose("read")
