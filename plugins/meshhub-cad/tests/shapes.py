"""Files of the formats, made by OpenCASCADE, by ezdxf, or by hand."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ezdxf
from OCP.BinTools import BinTools
from OCP.BRepAlgoAPI import BRepAlgoAPI_Cut
from OCP.BRepPrimAPI import BRepPrimAPI_MakeBox, BRepPrimAPI_MakeCylinder
from OCP.BRepTools import BRepTools
from OCP.gp import gp_Ax2, gp_Dir, gp_Pnt
from OCP.IGESCAFControl import IGESCAFControl_Writer
from OCP.IGESControl import IGESControl_Controller, IGESControl_Writer
from OCP.Interface import Interface_Static
from OCP.Message import Message
from OCP.Quantity import Quantity_Color, Quantity_TOC_RGB
from OCP.TCollection import TCollection_ExtendedString
from OCP.TDataStd import TDataStd_Name
from OCP.TDocStd import TDocStd_Document
from OCP.TopAbs import TopAbs_FACE
from OCP.TopExp import TopExp_Explorer
from OCP.XCAFApp import XCAFApp_Application
from OCP.XCAFDoc import XCAFDoc_ColorGen, XCAFDoc_ColorSurf, XCAFDoc_DocumentTool


def box(x: float = 10, y: float = 20, z: float = 30) -> Any:
    return BRepPrimAPI_MakeBox(x, y, z).Shape()


def bored_box() -> Any:
    """Return a box of 40 × 20 × 10 with a bore of radius 5."""
    bore = BRepPrimAPI_MakeCylinder(gp_Ax2(gp_Pnt(20, 10, -1), gp_Dir(0, 0, 1)), 5, 12).Shape()
    return BRepAlgoAPI_Cut(box(40, 20, 10), bore).Shape()


def iges(path: Path, *shapes: Any, unit: str = "MM", solids: bool = True) -> bytes:
    """Write shapes as solids, or as faces without connections, and return the file."""
    messenger = Message.DefaultMessenger_s()
    messenger.ChangePrinters().Clear()
    IGESControl_Controller.Init_s()
    writer = IGESControl_Writer(unit, int(solids))
    for shape in shapes:
        writer.AddShape(shape)
    writer.ComputeModel()
    assert writer.Write(str(path))
    return path.read_bytes()


def named_iges(path: Path, shapes: dict[str, Any]) -> bytes:
    """Write solids with names."""
    Message.DefaultMessenger_s().ChangePrinters().Clear()
    IGESControl_Controller.Init_s()
    Interface_Static.SetIVal_s("write.iges.brep.mode", 1)
    document = TDocStd_Document(TCollection_ExtendedString("BinXCAF"))
    XCAFApp_Application.GetApplication_s().InitDocument(document)
    tool = XCAFDoc_DocumentTool.ShapeTool_s(document.Main())
    writer = IGESCAFControl_Writer()
    writer.SetNameMode(True)
    for name, shape in shapes.items():
        label = tool.AddShape(shape, False)
        TDataStd_Name.Set_s(label, TCollection_ExtendedString(name))
        writer.Transfer(label)
    writer.ComputeModel()
    assert writer.Write(str(path))
    return path.read_bytes()


def colored_iges(path: Path) -> bytes:
    """Write a box with the name "red box" and a red face on a green body."""
    document = TDocStd_Document(TCollection_ExtendedString("BinXCAF"))
    XCAFApp_Application.GetApplication_s().InitDocument(document)
    shape = box()
    label = XCAFDoc_DocumentTool.ShapeTool_s(document.Main()).AddShape(shape, False)
    TDataStd_Name.Set_s(label, TCollection_ExtendedString("red box"))
    colors = XCAFDoc_DocumentTool.ColorTool_s(document.Main())
    colors.SetColor(label, Quantity_Color(0, 1, 0, Quantity_TOC_RGB), XCAFDoc_ColorGen)
    face = TopExp_Explorer(shape, TopAbs_FACE).Current()
    colors.SetColor(face, Quantity_Color(1, 0, 0, Quantity_TOC_RGB), XCAFDoc_ColorSurf)
    Message.DefaultMessenger_s().ChangePrinters().Clear()
    IGESControl_Controller.Init_s()
    writer = IGESCAFControl_Writer()
    writer.SetColorMode(True)
    writer.SetNameMode(True)
    assert writer.Transfer(document)
    assert writer.Write(str(path))
    return path.read_bytes()


def brep(shape: Any, *, binary: bool = False) -> bytes:
    stream = io.BytesIO()
    if binary:
        BinTools.Write_s(shape, stream)
    else:
        BRepTools.Write_s(shape, stream)
    return stream.getvalue()


def dxf(draw: Callable[[Any, Any], object], unit: int = 4, version: str = "R2010") -> bytes:
    """Return the drawing that a function draws into a model space and its document."""
    document = ezdxf.new(version)
    document.header["$INSUNITS"] = unit
    draw(document.modelspace(), document)
    text = io.StringIO()
    document.write(text)
    return text.getvalue().encode()


def rectangle(x: float, y: float) -> Callable[[Any, Any], object]:
    return lambda space, _: space.add_lwpolyline([(0, 0), (x, 0), (x, y), (0, y)], close=True)


def svg(body: str, attributes: str = 'width="100mm" height="50mm" viewBox="0 0 100 50"') -> bytes:
    names = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    return f"<svg {names} {attributes}>{body}</svg>".encode()
