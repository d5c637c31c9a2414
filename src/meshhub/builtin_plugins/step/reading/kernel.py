"""Reading a STEP file into an XCAF document by OpenCASCADE, without a trace left in the process.

OpenCASCADE holds the interpreter's lock while it reads, cannot be stopped, and may crash on damaged
files: a service reads in a process of its own. Its messages go to a global messenger, which is
silenced meanwhile.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from meshhub.errors import ExternalReference, UnreadableFile
from meshhub.model.capabilities import Unit

_UNITS: dict[str, Unit] = {
    "micrometre": "um", "micrometer": "um", "millimetre": "mm", "millimeter": "mm", "centimetre": "cm",
    "centimeter": "cm", "metre": "m", "meter": "m", "inch": "in", "foot": "ft",
}  # fmt: skip
_DOCUMENT_FILE, _NO_FILE = b"DOCUMENT_FILE", b"DOCUMENT_NONE"

_turn = threading.RLock()


@dataclass(frozen=True, eq=False)
class Loaded:
    """A file in the kernel's terms.

    document:   the XCAF document, in millimetres
    unit:       what the file's own numbers are in, where it names one of ours and only one
    unresolved: references in the file that lead to nothing
    whole:      whether every root was brought into the document
    """

    document: Any
    unit: Unit
    unresolved: int
    whole: bool


@contextmanager
def loaded(data: bytes) -> Iterator[Loaded]:
    """The file as an XCAF document; what the kernel raises meanwhile is the file's fault.

    Raises UnreadableFile, ExternalReference.
    """
    with _turn, _silence(), _blamed():
        from OCP.TCollection import TCollection_ExtendedString
        from OCP.TDocStd import TDocStd_Document
        from OCP.UnitsMethods import UnitsMethods_LengthUnit_Millimeter
        from OCP.XCAFApp import XCAFApp_Application
        from OCP.XCAFDoc import XCAFDoc_DocumentTool

        document = TDocStd_Document(TCollection_ExtendedString("BinXCAF"))
        XCAFApp_Application.GetApplication_s().InitDocument(document)
        # the document's unit decides, whatever the process-wide xstep.cascade.unit says
        XCAFDoc_DocumentTool.SetLengthUnit_s(document, 1.0, UnitsMethods_LengthUnit_Millimeter)
        yield _read(data, document)


def _read(data: bytes, document: Any) -> Loaded:
    from OCP.IFSelect import IFSelect_RetDone
    from OCP.STEPCAFControl import STEPCAFControl_Reader

    reader = STEPCAFControl_Reader()
    reader.SetNameMode(True)
    reader.SetColorMode(True)
    for unused in (
        reader.SetLayerMode, reader.SetGDTMode, reader.SetPropsMode, reader.SetViewMode,
        reader.SetMatMode, reader.SetMetaMode,
    ):  # fmt: skip
        unused(False)
    # the kernel opens files that a STEP file names, anywhere on the machine: their entities are renamed
    text = data.replace(_DOCUMENT_FILE, _NO_FILE)
    if reader.ReadStream("model.step", io.BytesIO(text)) != IFSelect_RetDone:
        raise UnreadableFile("the text of the STEP file is damaged: its entities cannot be read; export it again")
    basic = reader.ChangeReader()
    _refuse_files(basic)
    unresolved = _unresolved(basic)
    unit = _unit(basic)
    return Loaded(document, unit, unresolved, bool(reader.Transfer(document)))


def _refuse_files(reader: Any) -> None:
    from OCP.STEPConstruct import STEPConstruct_ExternRefs

    references = STEPConstruct_ExternRefs(reader.WS())
    if references.LoadExternRefs() and references.NbExternRefs():
        raise ExternalReference("the STEP file names other files in an unusual way; export it as one file")


def _unresolved(reader: Any) -> int:
    check = reader.StepModel().GlobalCheck(True)
    return sum(check.CFail(number).startswith("Unresolved") for number in range(1, check.NbFails() + 1))


def _unit(reader: Any) -> Unit:
    from OCP.collections import Sequence_TCollection_AsciiString

    lengths, angles, solid_angles = (Sequence_TCollection_AsciiString() for _ in range(3))
    reader.FileUnits(lengths, angles, solid_angles)
    named = {lengths.Value(number).ToCString().strip().lower() for number in range(1, lengths.Length() + 1)}
    return _UNITS.get(named.pop(), "mm") if len(named) == 1 else "mm"


@contextmanager
def _silence() -> Iterator[None]:
    from OCP.Message import Message

    messenger = Message.DefaultMessenger_s()
    printers = messenger.Printers()
    kept = [printers.Value(number) for number in range(1, printers.Length() + 1)]
    messenger.ChangePrinters().Clear()
    try:
        yield
    finally:
        for printer in kept:
            messenger.AddPrinter(printer)


@contextmanager
def _blamed() -> Iterator[None]:
    """The kernel's exceptions share no class but Exception, only the package they come from."""
    try:
        yield
    except Exception as failure:
        kind = type(failure)
        if kind.__name__ == "Standard_OutOfMemory":
            raise MemoryError from failure
        if kind.__module__.split(".")[0] != "OCP" and not isinstance(failure, RuntimeError):
            raise
        raise UnreadableFile(
            f"the CAD kernel gave up on the geometry of the STEP file ({kind.__name__}); "
            "check the model in its CAD program and export it again"
        ) from failure
