"""Conversion of several files to one."""

from __future__ import annotations

from meshhub.pipeline.purposes.convert import ConvertPurpose


class CombinePurpose(ConvertPurpose):
    """Write the scenes of several files as one."""

    main_field = "files"
    combines = True


PURPOSE = CombinePurpose("combine")
