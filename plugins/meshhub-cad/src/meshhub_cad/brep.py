"""BREP reader: the shapes of OpenCASCADE, as text or binary; one body."""

from __future__ import annotations

import io
from typing import Any

from meshhub import EmptyModel, Frame, Scene, Source, UnreadableFile
from meshhub_cad import BrepOptions
from meshhub_cad.bodies import Accuracy, Body, build_scene
from meshhub_cad.kernel import kernel


def read(source: Source, options: BrepOptions) -> Scene:
    """Read a BREP file and tessellate its surfaces; BREP has no units, and its numbers are millimeters.

    Raises:
        UnreadableFile: The file is truncated, damaged or not BREP.
        EmptyModel: The file has no faces.
    """
    data = source.read()
    accuracy = Accuracy(options.brep_deviation_mm, options.brep_angle_degrees, "brep_deviation_mm")
    with kernel("BREP"):
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
        BRepTools.Read_s(shape, io.BytesIO(data), BRep_Builder())
    else:
        raise UnreadableFile("the file does not begin as BREP files do; check its format, or export it again")
    if shape.IsNull():
        raise EmptyModel("the BREP file holds no shape, or is cut off; export it again")
    return shape
