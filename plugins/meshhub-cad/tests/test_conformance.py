"""Contracts of meshhub, run against the installed plug-in."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import ClassVar

from shapes import box, brep, colored_iges, svg

from meshhub import Source
from meshhub.testing import ReaderContract, WriterContract

with tempfile.TemporaryDirectory() as folder:
    BRICK = colored_iges(Path(folder, "brick.igs"))

# as small programs write it; a whole drawing of ezdxf has a hundred times as many lines
CORNERS = ((0, 0), (10, 0), (10, 20), (0, 20))
SIDES = zip(CORNERS, (*CORNERS[1:], CORNERS[0]), strict=True)
DXF_BRICK = (
    "0 SECTION 2 HEADER 9 $INSUNITS 70 4 0 ENDSEC 0 SECTION 2 ENTITIES "
    + "".join(f"0 LINE 8 0 10 {x}.0 20 {y}.0 11 {to_x}.0 21 {to_y}.0 " for (x, y), (to_x, to_y) in SIDES)
    + "0 ENDSEC 0 EOF "
).replace(" ", "\n")


class TestIges(ReaderContract):
    format_id = "iges"
    brick = Source.from_bytes(BRICK, "brick.igs")
    may_crash = True


class TestBrep(ReaderContract):
    format_id = "brep"
    brick = Source.from_bytes(brep(box()), "brick.brep")
    may_crash = True


class TestDxf(ReaderContract):
    format_id = "dxf"
    brick = Source.from_bytes(DXF_BRICK.encode(), "brick.dxf")
    options: ClassVar = {"dxf_height_mm": 30}


class TestSvg(ReaderContract):
    format_id = "svg"
    # the Y axis of SVG points down: the lower left corner of the rectangle, above the page, is the origin
    brick = Source.from_bytes(
        svg('<rect y="-20" width="10" height="20"/>', 'width="9mm" height="9mm" viewBox="0 0 9 9" overflow="visible"'),
        "brick.svg",
    )
    options: ClassVar = {"svg_height_mm": 30}


class TestIgesWriter(WriterContract):
    format_id = "iges"


class TestBrepWriter(WriterContract):
    format_id = "brep"
