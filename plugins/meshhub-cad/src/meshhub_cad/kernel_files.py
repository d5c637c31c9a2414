"""Writers of IGES and BREP: the surfaces that meshhub finds for STEP, written by OpenCASCADE."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from meshhub import ConversionFailed, Scene, Target, UnreadableFile, did, note
from meshhub.builtin_plugins.step import StepWriteOptions
from meshhub.builtin_plugins.step.reading.xcaf import collect_products
from meshhub.builtin_plugins.step.writer import write as write_step
from meshhub.model.notes import collecting
from meshhub.model.scene import Float64
from meshhub.toolkit.opencascade import explore, use_kernel
from meshhub_cad import BrepWriterOptions, IgesWriterOptions
from meshhub_cad.iges import read_name

_MAX_VOLUME_RATIO = 1e-3
"""Share of the volume by which a body may differ when an IGES file is read back; its numbers are rounded."""

_NO_DATE = "19700101.000000"
"""Date of all IGES files, because equal scenes give equal bytes."""


def write_iges(scene: Scene, target: Target, options: IgesWriterOptions) -> None:
    """Write solids (entity 186) with names and colors, in millimeters, and read the file back.

    Raises:
        ConversionFailed: A body is not a valid solid, or is not the same when it is read back.
    """
    step = find_surfaces(scene, options.iges_surfaces, options.iges_tolerance_mm, "IGES", "iges")
    with use_kernel_to_write("IGES"), tempfile.TemporaryDirectory() as folder:
        from OCP.IGESCAFControl import IGESCAFControl_Writer
        from OCP.IGESControl import IGESControl_Controller
        from OCP.Interface import Interface_Static
        from OCP.TCollection import TCollection_HAsciiString

        document = _flatten(_read_document(step))
        IGESControl_Controller.Init_s()
        # solids instead of faces without connections
        Interface_Static.SetIVal_s("write.iges.brep.mode", 1)
        writer = IGESCAFControl_Writer()
        writer.SetColorMode(True)
        writer.SetNameMode(True)
        path = Path(folder, "model.igs")
        # one by one, because names of several roots get a random order
        labels = _list_roots(document)
        if not all(writer.Transfer(labels.Value(number)) for number in range(1, labels.Length() + 1)):
            raise ConversionFailed("OpenCASCADE cannot write the surfaces as IGES; choose STEP")
        writer.ComputeModel()
        section = writer.Model().GlobalSection()
        for change in (section.SetDate, section.SetLastChangeDate):
            change(TCollection_HAsciiString(_NO_DATE))
        section.SetFileName(TCollection_HAsciiString("model"))
        section.SetSystemId(TCollection_HAsciiString("meshhub"))
        writer.Model().SetGlobalSection(section)
        if not writer.Write(str(path)):
            raise ConversionFailed("OpenCASCADE cannot write the IGES file; choose STEP")
        _compare(_list_solids(_shape_of(document)), _list_solids(_read_iges(path)))
        data = path.read_bytes()
    with target.open() as file:
        file.write(data)


def write_brep(scene: Scene, target: Target, options: BrepWriterOptions) -> None:
    """Write the text format of OpenCASCADE, in millimeters; one shape, or a compound of all.

    Raises:
        ConversionFailed: A body is not a valid solid.
    """
    step = find_surfaces(scene, options.brep_surfaces, options.brep_tolerance_mm, "BREP", "brep")
    with use_kernel_to_write("BREP"):
        from OCP.BRepTools import BRepTools
        from OCP.TopTools import TopTools_FormatVersion

        stream = io.BytesIO()
        version = TopTools_FormatVersion.TopTools_FormatVersion_VERSION_1
        BRepTools.Write_s(_shape_of(_read_document(step)), stream, False, False, version)
    with target.open() as file:
        # readers skip the lines before the version
        file.write(stream.getvalue().replace(b"\n", b"\nmeshhub\n", 1))


@contextmanager
def use_kernel_to_write(label: str) -> Iterator[None]:
    """Use the kernel for writing. Raises ConversionFailed if it fails."""
    try:
        with use_kernel(label):
            yield
    except UnreadableFile as error:
        raise ConversionFailed(f"OpenCASCADE cannot write the model as {label}; choose STEP") from error


def find_surfaces(
    scene: Scene,
    surfaces: Literal["analytic", "freeform", "planar"],
    tolerance_mm: float | None,
    label: str,
    prefix: str,
) -> bytes:
    """Return a scene as STEP, which OpenCASCADE has checked. Notes and errors name the format and its options."""
    result = Target("model.step")
    try:
        with collecting("step") as remarks:
            write_step(scene, result, StepWriteOptions(step_surfaces=surfaces, step_tolerance_mm=tolerance_mm))
    except ConversionFailed as error:
        if error.error_code != "invalid_solid":
            raise
        raise ConversionFailed(
            f"a body is not a valid solid in {label}; use '{{repair}}', or choose STEP, which keeps invalid ones",
            error_code="invalid_solid",
            options=("repair",),
        ) from error
    for remark in remarks.notes:
        message = remark.message.replace("'step_", f"'{prefix}_").replace("STEP", label)
        note(remark.code, message, options=tuple(name.replace("step_", f"{prefix}_") for name in remark.options))
    did(**remarks.figures)
    return result.read()


def _make_document() -> Any:
    """Return an empty document with lengths in millimeters."""
    from OCP.TCollection import TCollection_ExtendedString
    from OCP.TDocStd import TDocStd_Document
    from OCP.UnitsMethods import UnitsMethods_LengthUnit_Millimeter
    from OCP.XCAFApp import XCAFApp_Application
    from OCP.XCAFDoc import XCAFDoc_DocumentTool

    document = TDocStd_Document(TCollection_ExtendedString("BinXCAF"))
    XCAFApp_Application.GetApplication_s().InitDocument(document)
    XCAFDoc_DocumentTool.SetLengthUnit_s(document, 1.0, UnitsMethods_LengthUnit_Millimeter)
    return document


def _read_document(step: bytes) -> Any:
    """Return the document of a STEP file."""
    from OCP.IFSelect import IFSelect_RetDone
    from OCP.STEPCAFControl import STEPCAFControl_Reader

    document = _make_document()
    reader = STEPCAFControl_Reader()
    reader.SetNameMode(True)
    reader.SetColorMode(True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.step")
        path.write_bytes(step)
        if reader.ReadFile(str(path)) != IFSelect_RetDone or not reader.Transfer(document):
            raise ConversionFailed("OpenCASCADE cannot read the surfaces that were found; choose STEP")
    return document


def list_bodies(step: bytes) -> list[tuple[Any, str]]:
    """Return the shape and the name of each placed body of a STEP file."""
    from OCP.XCAFDoc import XCAFDoc_ShapeTool

    document = _flatten(_read_document(step))
    labels = _list_roots(document)
    roots = [labels.Value(number) for number in range(1, labels.Length() + 1)]
    return [(XCAFDoc_ShapeTool.GetShape_s(label), read_name(label, {})) for label in roots]


def _flatten(document: Any) -> Any:
    """Return a document with each placed body as a root, with its name and its colors; IGES has no instances.

    A face has its own color, otherwise that of its instance, of its body, or of the assembly around it.
    """
    from OCP.BRepBuilderAPI import BRepBuilderAPI_Transform
    from OCP.Quantity import Quantity_Color, Quantity_ColorRGBA, Quantity_TOC_sRGB
    from OCP.TCollection import TCollection_ExtendedString
    from OCP.TDataStd import TDataStd_Name
    from OCP.TopAbs import TopAbs_FACE
    from OCP.XCAFDoc import XCAFDoc_ColorGen, XCAFDoc_ColorSurf, XCAFDoc_DocumentTool, XCAFDoc_ShapeTool

    result = _make_document()
    shapes = XCAFDoc_DocumentTool.ShapeTool_s(result.Main())
    colors = XCAFDoc_DocumentTool.ColorTool_s(result.Main())
    sources = XCAFDoc_DocumentTool.ColorTool_s(document.Main())
    contents = collect_products(document, reads_hidden=True)
    for placement in contents.placements:
        product = contents.products[placement.product]
        shape = XCAFDoc_ShapeTool.GetShape_s(product.label)
        # a copy, because faces of a shape with a location cannot have colors
        placed = BRepBuilderAPI_Transform(shape, _make_transform(placement.matrix), True).Shape()
        label = shapes.AddShape(placed, False)
        name = (placement.name or product.name).encode("latin-1", "replace").decode("latin-1")
        TDataStd_Name.Set_s(label, TCollection_ExtendedString(name))
        color = placement.own_color or product.color or placement.inherited_color
        if color is not None:
            colors.SetColor(label, Quantity_Color(*color[:3], Quantity_TOC_sRGB), XCAFDoc_ColorGen)
        for before, after in zip(explore(shape, TopAbs_FACE), explore(placed, TopAbs_FACE), strict=True):
            own = Quantity_ColorRGBA()
            if sources.GetColor(before, XCAFDoc_ColorSurf, own) or sources.GetColor(before, XCAFDoc_ColorGen, own):
                colors.SetColor(shapes.AddSubShape(label, after), own, XCAFDoc_ColorSurf)
    return result


def _list_roots(document: Any) -> Any:
    from OCP.collections import Sequence_TDF_Label
    from OCP.XCAFDoc import XCAFDoc_DocumentTool

    labels = Sequence_TDF_Label()
    XCAFDoc_DocumentTool.ShapeTool_s(document.Main()).GetFreeShapes(labels)
    return labels


def _make_transform(matrix: Float64) -> Any:
    from OCP.gp import gp_Trsf

    transform = gp_Trsf()
    transform.SetValues(*matrix[:3].ravel().tolist())
    return transform


def _shape_of(document: Any) -> Any:
    """Return the one shape of a document, or a compound of all."""
    from OCP.XCAFDoc import XCAFDoc_DocumentTool

    return XCAFDoc_DocumentTool.ShapeTool_s(document.Main()).GetOneShape()


def _read_iges(path: Path) -> Any:
    from OCP.IGESControl import IGESControl_Reader

    reader = IGESControl_Reader()
    reader.ReadFile(str(path))
    reader.TransferRoots()
    return reader.OneShape()


def _list_solids(shape: Any) -> list[tuple[float, int, bool]]:
    """Return the volume, the number of faces and the validity of each solid, in the order of volume."""
    from OCP.BRepCheck import BRepCheck_Analyzer
    from OCP.BRepGProp import BRepGProp
    from OCP.GProp import GProp_GProps
    from OCP.TopAbs import TopAbs_FACE, TopAbs_SOLID

    solids = []
    for solid in explore(shape, TopAbs_SOLID):
        properties = GProp_GProps()
        BRepGProp.VolumeProperties_s(solid, properties)
        count = sum(1 for _ in explore(solid, TopAbs_FACE))
        solids.append((properties.Mass(), count, BRepCheck_Analyzer(solid).IsValid()))
    return sorted(solids)


def _compare(expected: list[tuple[float, int, bool]], found: list[tuple[float, int, bool]]) -> None:
    """Raise ConversionFailed if the solids of the IGES file are others than those that were written."""
    is_same = len(expected) == len(found) and all(
        abs(before[0] - after[0]) <= _MAX_VOLUME_RATIO * abs(before[0]) and before[1] == after[1] and after[2]
        for before, after in zip(expected, found, strict=True)
    )
    if not is_same:
        raise ConversionFailed(
            "IGES cannot hold a body of the model: OpenCASCADE reads the file back with another volume or other faces; "
            "choose STEP, or set '{iges_surfaces=planar}'",
            error_code="invalid_solid",
            options=("iges_surfaces",),
        )
