"""Contract of meshhub, run against the installed plug-in."""

from __future__ import annotations

from houses import BRICK, TWICE

from meshhub.testing import ReaderContract


class TestReader(ReaderContract):
    format_id = "ifc"
    brick = BRICK
    samples = (TWICE,)
    # IfcOpenShell is native code
    may_crash = True
