"""STEP files as XCAF documents, loaded by OpenCASCADE without lasting effects on the process."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from meshhub.errors import ExternalReference, UnreadableFile
from meshhub.model.capabilities import Unit
from meshhub.toolkit.opencascade import use_kernel

_UNITS: dict[str, Unit] = {
    "micrometre": "um", "micrometer": "um", "millimetre": "mm", "millimeter": "mm", "centimetre": "cm",
    "centimeter": "cm", "metre": "m", "meter": "m", "inch": "in", "foot": "ft",
}  # fmt: skip
HIDING_ENTITY = b"INVISIBILITY"
"""Entity that hides styled items and layers."""
_DOCUMENT_FILE, _DISABLED_DOCUMENT_FILE = b"DOCUMENT_FILE", b"DOCUMENT_NONE"


@dataclass(frozen=True, eq=False)
class LoadedFile:
    """A STEP file in the kernel.

    document:         XCAF document; lengths in millimeters
    unit:             length unit of the file's numbers; millimeters if the file names several units or an unknown one
    unresolved_count: references in the file to entities that it does not have
    is_complete:      whether the kernel transferred every root to the document
    """

    document: Any
    unit: Unit
    unresolved_count: int
    is_complete: bool


_FIXES = tuple(
    f"FixShape.{name}Mode"
    for name in (
        "FixFreeShell", "FixFreeFace", "FixFreeWire", "FixSameParameter", "FixSolid", "FixShell", "FixFace", "FixWire",
        "FixShellOrientation", "FixFaceOrientation", "FixOrientation", "FixMissingSeam", "FixSmallAreaWire",
        "FixIntersectingWires", "FixLoopWires", "FixSplitFace", "FixDegenerated", "FixVertexPosition",
        "FixVertexTolerance",
    )
)  # fmt: skip
"""Parameters of the kernel that turn repairs of shapes off."""


@contextmanager
def load_file(data: bytes, *, is_plain: bool) -> Iterator[LoadedFile]:
    """Load a STEP file as an XCAF document.

    Exceptions of the kernel inside the `with` block become UnreadableFile: the file is their cause.

    Args:
        data: The file.
        is_plain: Whether the kernel leaves shapes as the file has them.
    Raises:
        UnreadableFile: The kernel cannot read the file.
        ExternalReference: The file names other files in a form that cannot be disabled.
    """
    with use_kernel("STEP"):
        from OCP.TCollection import TCollection_ExtendedString
        from OCP.TDocStd import TDocStd_Document
        from OCP.UnitsMethods import UnitsMethods_LengthUnit_Millimeter
        from OCP.XCAFApp import XCAFApp_Application
        from OCP.XCAFDoc import XCAFDoc_DocumentTool

        document = TDocStd_Document(TCollection_ExtendedString("BinXCAF"))
        XCAFApp_Application.GetApplication_s().InitDocument(document)
        # the unit of the document takes precedence over the process-wide setting xstep.cascade.unit
        XCAFDoc_DocumentTool.SetLengthUnit_s(document, 1.0, UnitsMethods_LengthUnit_Millimeter)
        yield _read_into(document, data, is_plain=is_plain)


def _read_into(document: Any, data: bytes, *, is_plain: bool) -> LoadedFile:
    from OCP.IFSelect import IFSelect_RetDone
    from OCP.STEPCAFControl import STEPCAFControl_Reader

    reader = STEPCAFControl_Reader()
    reader.SetNameMode(True)
    reader.SetColorMode(True)
    # layers may be hidden
    reader.SetLayerMode(True)
    for set_unused_mode in (
        reader.SetGDTMode, reader.SetPropsMode, reader.SetViewMode,
        reader.SetMatMode, reader.SetMetaMode,
    ):  # fmt: skip
        set_unused_mode(False)
    if is_plain:
        _turn_off_fixes(reader)
    # the kernel would open any file on this machine that a STEP file names: these entities are renamed
    text = data.replace(_DOCUMENT_FILE, _DISABLED_DOCUMENT_FILE)
    if reader.ReadStream("model.step", io.BytesIO(text)) != IFSelect_RetDone:
        raise UnreadableFile("the text of the STEP file is damaged: its entities cannot be read; export it again")
    basic_reader = reader.ChangeReader()
    _reject_external_files(basic_reader)
    unresolved_count = _count_unresolved(basic_reader)
    unit = _length_unit(basic_reader)
    if HIDING_ENTITY in data:
        _resolve_layers(basic_reader.StepModel())
    return LoadedFile(document, unit, unresolved_count, bool(reader.Transfer(document)))


def _resolve_layers(model: Any) -> None:
    """Assign shapes to layers instead of the styled items of shapes, which the kernel does not read in layers."""
    from OCP.StepVisual import StepVisual_PresentationLayerAssignment, StepVisual_StyledItem

    for number in range(1, model.NbEntities() + 1):
        layer = model.Value(number)
        if not isinstance(layer, StepVisual_PresentationLayerAssignment) or not layer.NbAssignedItems():
            continue
        items = layer.AssignedItems()
        for position in range(items.Lower(), items.Upper() + 1):
            item = items.Value(position)
            if isinstance(item.Value(), StepVisual_StyledItem):
                item.SetValue(item.Value().Item())
                items.SetValue(position, item)


def _turn_off_fixes(reader: Any) -> None:
    from OCP.collections import DataMap_TCollection_AsciiString_TCollection_AsciiString
    from OCP.TCollection import TCollection_AsciiString

    values = DataMap_TCollection_AsciiString_TCollection_AsciiString()
    for name in _FIXES:
        values.Bind(TCollection_AsciiString(name), TCollection_AsciiString("0"))
    reader.SetShapeFixParameters(values)


def _reject_external_files(reader: Any) -> None:
    from OCP.STEPConstruct import STEPConstruct_ExternRefs

    references = STEPConstruct_ExternRefs(reader.WS())
    if references.LoadExternRefs() and references.NbExternRefs():
        raise ExternalReference("the STEP file names other files in an unusual way; export it as one file")


def _count_unresolved(reader: Any) -> int:
    check = reader.StepModel().GlobalCheck(True)
    return sum(check.CFail(number).startswith("Unresolved") for number in range(1, check.NbFails() + 1))


def _length_unit(reader: Any) -> Unit:
    from OCP.collections import Sequence_TCollection_AsciiString

    lengths, angles, solid_angles = (Sequence_TCollection_AsciiString() for _ in range(3))
    reader.FileUnits(lengths, angles, solid_angles)
    names = {lengths.Value(number).ToCString().strip().lower() for number in range(1, lengths.Length() + 1)}
    return _UNITS.get(names.pop(), "mm") if len(names) == 1 else "mm"
