"""BREP reader: the shapes of OpenCASCADE, as text or binary; one body."""

from __future__ import annotations

import io
import re
from typing import Any

from meshhub import EmptyModel, Frame, Scene, Source, UnreadableFile
from meshhub.toolkit.opencascade import use_kernel
from meshhub_cad import BrepOptions
from meshhub_cad.bodies import Accuracy, Body, build_scene

_SECTIONS = (
    b"Locations", b"Curve2ds", b"Curves", b"Polygon3D", b"PolygonOnTriangulations", b"Surfaces", b"Triangulations",
    b"TShapes",
)  # fmt: skip
"""Sections of a text file, in order; all of them are present, with the number of their entries."""

_HEADING = re.compile(rb"^(" + rb"|".join(_SECTIONS) + rb") (\d{1,9})[ \r]*$", re.MULTILINE)
_REFERENCE = re.compile(rb"(?<!\S)\+(\d{1,9})(?!\S)")
"""Reference to a shape; for reversed shapes, it looks like a negative number."""
_ROOT = re.compile(rb"[+\-ie]\d{1,9} +\d{1,9}\s*(?:\n0\s*)?\Z")
"""Last line: the shape that the file holds. The test program of the kernel appends a 0."""
_UNPRINTABLE = re.compile(rb"[^\t\n\r\x20-\x7e]")
_FOREIGN = re.compile(rb"[^\s\d.eEp+-]")
"""Character that occurs neither in a number nor as the mark of a polygon's parameters."""


def read(source: Source, options: BrepOptions) -> Scene:
    """Read a BREP file and tessellate its surfaces; BREP has no units, and its numbers are millimeters.

    Raises:
        UnreadableFile: The file is truncated, damaged or not BREP.
        EmptyModel: The file has no faces.
    """
    data = source.read()
    accuracy = Accuracy(options.brep_deviation_mm, options.brep_angle_degrees, "brep_deviation_mm")
    with use_kernel("BREP"):
        shape = _load(data)
        return build_scene([Body(shape, "", lambda _: None)], accuracy, Frame("mm", "z"), 1.0, "BREP")


def _load(data: bytes) -> Any:
    from OCP.BinTools import BinTools
    from OCP.BRep import BRep_Builder
    from OCP.BRepTools import BRepTools
    from OCP.TopoDS import TopoDS_Shape

    shape = TopoDS_Shape()
    if data.lstrip().startswith(b"Open CASCADE Topology"):
        BinTools.Read_s(shape, io.BytesIO(data))
    elif b"CASCADE Topology V" in data[:200]:
        _check_text(data)
        BRepTools.Read_s(shape, io.BytesIO(data), BRep_Builder())
    else:
        raise UnreadableFile("the file does not begin as BREP files do; check its format, or export it again")
    if shape.IsNull():
        raise EmptyModel("the BREP file holds no shape, or is cut off; export it again")
    return shape


def _check_text(data: bytes) -> None:
    """Check the sections of a text file, because the kernel needs seconds of processor time for truncated or damaged
    ones.

    A file without any section is left to the kernel, which finds no shape in it.

    Raises:
        UnreadableFile: A section is missing, has fewer entries than it states, or contains anything but numbers.
    """
    headings = list(_HEADING.finditer(data))
    if not headings:
        return
    counts = [int(heading[2]) for heading in headings]
    ends = [heading.start() for heading in headings[1:]]
    bodies = [data[heading.end() : end] for heading, end in zip(headings, ends, strict=False)]
    shapes = data[headings[-1].end() :]
    # each entry of a section takes a line or more, and each shape ends with an asterisk
    is_complete = (
        tuple(heading[1] for heading in headings) == _SECTIONS
        and all(body.count(b"\n") > count for body, count in zip(bodies, counts, strict=False))
        and shapes.split().count(b"*") == counts[-1]
        and _ROOT.search(shapes) is not None
    )
    if not is_complete or _UNPRINTABLE.search(data) or any(_FOREIGN.search(body) for body in bodies):
        raise UnreadableFile("the sections of the BREP file are damaged, or it is cut off; export it again")
    if max((int(number) for number in _REFERENCE.findall(shapes)), default=0) > counts[-1]:
        raise UnreadableFile("the BREP file refers to shapes that it does not have; export it again")
