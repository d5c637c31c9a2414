"""IGES reader: bodies and loose faces with names and colors, through OpenCASCADE; loose faces are sewn to solids."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub import EmptyModel, Frame, Scene, Source, UnreadableFile
from meshhub.toolkit.colors import encode_srgb
from meshhub.toolkit.encodings import decode_names
from meshhub.toolkit.names import single_line
from meshhub.toolkit.opencascade import use_kernel
from meshhub.toolkit.visibility import report_hidden
from meshhub_cad import IgesOptions
from meshhub_cad.bodies import Accuracy, Body, Color, build_scene, sew
from meshhub_cad.tessellation import list_faces

_FRAMES: dict[int, tuple[Frame, float]] = {
    1: (Frame("in", "z"), 25.4),
    4: (Frame("ft", "z"), 304.8),
    6: (Frame("m", "z"), 1000.0),
    9: (Frame("um", "z"), 0.001),
    10: (Frame("cm", "z"), 10.0),
}
"""Frames and millimeters per unit by unit flag (IGES 5.3 §2.2.4.3.14); others are read in millimeters."""

_MIN_SEWING_MM = 1e-4
"""Maximum gap in millimeters that is sewn; files declare resolutions below their actual gaps."""
_MAX_SEWING_MM = 0.05
"""Millimeters; sewing across larger gaps would join thin walls."""
_MAX_NAME_LENGTH = 250
"""Maximum characters; bounds the names in the scene."""
_COLUMN_COUNT = 80
"""Columns of a line; the last eight hold the letter of the section and the number of the line."""


def read(source: Source, options: IgesOptions) -> Scene:
    """Read an IGES file and tessellate its surfaces.

    Returns:
        Scene in the unit of the file, Z up; each root of the file is a mesh.
    Raises:
        UnreadableFile: The file is truncated, damaged or not IGES.
        EmptyModel: The file has no faces.
    """
    data = _check_lines(source.read())
    accuracy = Accuracy(options.iges_deviation_mm, options.iges_angle_degrees, "iges_deviation_mm")
    with use_kernel("IGES"):
        file = _load(data, reads_hidden=False)
        hidden_count = file.hidden_count
        is_hidden_read = hidden_count > 0 and not any(list_faces(body.shape)[0] for body in _list_bodies(file))
        if is_hidden_read:
            file = _load(data, reads_hidden=True)
        report_hidden(hidden_count, is_read=is_hidden_read)
        frame, mm_per_unit = _FRAMES.get(file.header.UnitFlag(), (Frame("mm", "z"), 1.0))
        # the kernel converts lengths of the file to millimeters, but not the resolution
        tolerance_mm = min(max(file.header.Resolution() * mm_per_unit, _MIN_SEWING_MM), _MAX_SEWING_MM)
        bodies = [sew(body, tolerance_mm) for body in _list_bodies(file)]
        return build_scene(bodies, accuracy, frame, mm_per_unit, "IGES")


def _check_lines(data: bytes) -> bytes:
    """Return the lines of a file with uniform ends, after a check of its sections, because the kernel crashes on
    damaged ones.

    Raises:
        EmptyModel: The file is empty.
        UnreadableFile: The file is not IGES as text, is cut off, or has damaged sections (IGES 5.3 §2.2.4).
    """
    lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").rstrip()
    if not lines:
        raise EmptyModel("the file is empty; export it again")
    rows = lines.split(b"\n")
    widths = {len(row) for row in rows[:-1]} | {len(rows[-1].ljust(_COLUMN_COUNT))}
    if max(widths) > _COLUMN_COUNT or b"\0" in lines:
        raise UnreadableFile("the file is not IGES as text: a line has more than 80 columns; export it again")
    table = np.frombuffer(b"".join(row.ljust(_COLUMN_COUNT) for row in rows), np.uint8).reshape(-1, _COLUMN_COUNT)
    letters = table[:, 72].tobytes()
    if not letters.endswith(b"T"):
        raise UnreadableFile(
            "the IGES file is cut off: its last line is not the terminate section; export it again",
            values={"defect": "cut_off"},
        )
    counts = {letter: letters.count(letter) for letter in (b"S", b"G", b"D", b"P", b"T")}
    numbers = _integers(table[:, 73:])
    expected = np.concatenate([np.arange(1, count + 1) for count in counts.values()])
    directory = _integers(table[letters.index(b"D") :][: counts[b"D"], :64].reshape(-1, 8)) if counts[b"D"] else None
    if (
        letters != b"".join(letter * count for letter, count in counts.items())
        or not np.array_equal(numbers, expected)
        or directory is None
        or not _is_valid_directory(directory.reshape(-1, 16), counts[b"P"])
    ):
        raise UnreadableFile("the sections of the IGES file are damaged: its lines do not fit; export it again")
    return lines + b"\n"


def _integers(fields: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return the integers of (n, width) right-aligned fields; -1 for a field that holds anything else, 0 for blanks."""
    texts = np.ascontiguousarray(fields).view(f"S{fields.shape[1]}")[:, 0]
    stripped = np.strings.strip(texts)
    digits = np.strings.lstrip(stripped, b"-")
    is_integer = np.strings.isdigit(digits) | (stripped == b"")
    return np.where(is_integer, np.where(stripped == b"", b"0", stripped), b"-1").astype(np.int64)


def _is_valid_directory(entries: NDArray[np.int64], line_count: int) -> bool:
    """Return whether the entries of the directory section are plausible.

    Args:
        entries: (e, 16) fields of the two lines of each entry, without the status numbers' labels.
        line_count: Lines of the parameter section.
    """
    pointer, parameter_lines = entries[:, 1], entries[:, 11]
    is_plausible = (
        (entries[:, 0] == entries[:, 8])
        & (entries[:, 0] >= 0)
        & (pointer >= 1)
        & (parameter_lines >= 0)
        & (pointer + np.maximum(parameter_lines, 1) - 1 <= line_count)
        # structure, line font, level, view and matrix refer to other entries
        & (np.abs(entries[:, [2, 3, 5, 6]]) <= 2 * len(entries)).all(axis=1)
    )
    return bool(is_plausible.all())


class _File(NamedTuple):
    """File in the kernel.

    document: XCAF document, with lengths in millimeters
    header:   global section
    names:    names as the kernel decodes them, and as the file means them
    hidden_count: roots that were left out
    """

    document: Any
    header: Any
    names: dict[str, str]
    hidden_count: int


def _load(data: bytes, *, reads_hidden: bool) -> _File:
    """Load a file, the roots that it hides only if `reads_hidden`.

    Raises:
        UnreadableFile: The file is damaged.
    """
    from OCP.TCollection import TCollection_ExtendedString
    from OCP.TDocStd import TDocStd_Document
    from OCP.UnitsMethods import UnitsMethods_LengthUnit_Millimeter
    from OCP.XCAFApp import XCAFApp_Application
    from OCP.XCAFDoc import XCAFDoc_DocumentTool

    document = TDocStd_Document(TCollection_ExtendedString("BinXCAF"))
    XCAFApp_Application.GetApplication_s().InitDocument(document)
    XCAFDoc_DocumentTool.SetLengthUnit_s(document, 1.0, UnitsMethods_LengthUnit_Millimeter)
    # the kernel reads IGES only from paths
    with tempfile.TemporaryDirectory(prefix="meshhub-iges-") as folder:
        path = Path(folder, "model.igs")
        path.write_bytes(data)
        reader = _read_file(path, reads_hidden=True)
        roots = [reader.RootForTransfer(number) for number in range(1, reader.NbRootsForTransfer() + 1)]
        # blank status (IGES 5.3 §2.2.4.4.9.1)
        hidden_count = sum(root.BlankStatus() == 1 for root in roots)
        if hidden_count and not reads_hidden:
            reader = _read_file(path, reads_hidden=False)
    has_roots = reads_hidden or hidden_count < len(roots)
    if has_roots and not reader.Transfer(document):
        raise UnreadableFile("the entities of the IGES file cannot be converted: it is damaged; export it again")
    names = {} if data.isascii() else _decode_names(reader.IGESModel())
    return _File(document, reader.IGESModel().GlobalSection(), names, hidden_count)


def _read_file(path: Path, *, reads_hidden: bool) -> Any:
    """Return a reader of the kernel that has read a file. Raises UnreadableFile."""
    from OCP.IFSelect import IFSelect_RetDone
    from OCP.IGESCAFControl import IGESCAFControl_Reader

    reader = IGESCAFControl_Reader()
    reader.SetNameMode(True)
    reader.SetColorMode(True)
    reader.SetLayerMode(False)
    reader.SetReadVisible(not reads_hidden)
    if reader.ReadFile(str(path)) != IFSelect_RetDone or reader.IGESModel() is None:
        raise UnreadableFile("the sections of the IGES file are damaged: it cannot be read; export it again")
    return reader


def _decode_names(model: Any) -> dict[str, str]:
    """Return the names of entities as the kernel decodes them, as UTF-8, and as the file means them."""
    from OCP.TCollection import TCollection_ExtendedString

    entities = (model.Entity(number) for number in range(1, model.NbEntities() + 1))
    values = [entity.NameValue() for entity in entities if entity.HasName()]
    # the binding returns single bytes as characters
    raw = [bytes(ord(value.Value(place)) for place in range(1, value.Length() + 1)) for value in values]
    decoded = [TCollection_ExtendedString(value.String(), True).ToExtString() for value in values]
    return dict(zip(decoded, decode_names(raw), strict=True))


def _list_bodies(file: _File) -> list[Body]:
    """Return the roots of a document; roots that are single faces or shells are one body together."""
    from OCP.BRep import BRep_Builder
    from OCP.collections import Sequence_TDF_Label
    from OCP.TopAbs import TopAbs_FACE, TopAbs_SHELL
    from OCP.TopoDS import TopoDS_Compound
    from OCP.XCAFDoc import XCAFDoc_DocumentTool, XCAFDoc_ShapeTool

    document = file.document
    labels = Sequence_TDF_Label()
    XCAFDoc_DocumentTool.ShapeTool_s(document.Main()).GetFreeShapes(labels)
    builder, loose = BRep_Builder(), TopoDS_Compound()
    builder.MakeCompound(loose)
    bodies: list[Body] = []
    has_loose = False
    for number in range(1, labels.Length() + 1):
        shape = XCAFDoc_ShapeTool.GetShape_s(labels.Value(number))
        if shape is None or shape.IsNull():
            continue
        if shape.ShapeType() in (TopAbs_FACE, TopAbs_SHELL):
            builder.Add(loose, shape)
            has_loose = True
        else:
            color = _label_color(labels.Value(number))
            name = read_name(labels.Value(number), file.names)
            bodies.append(Body(shape, name, _color_finder(document, color)))
    if has_loose:
        bodies.append(Body(loose, "", _color_finder(document, None)))
    return bodies


def _color_finder(document: Any, default: Color | None) -> Any:
    """Return a function that returns the color of a face: its own color, otherwise the default."""
    from OCP.Quantity import Quantity_ColorRGBA
    from OCP.XCAFDoc import XCAFDoc_ColorGen, XCAFDoc_ColorSurf, XCAFDoc_DocumentTool

    colors = XCAFDoc_DocumentTool.ColorTool_s(document.Main())

    def find(face: Any) -> Color | None:
        rgba = Quantity_ColorRGBA()
        for kind in (XCAFDoc_ColorSurf, XCAFDoc_ColorGen):
            if colors.GetColor(face, kind, rgba):
                return _as_srgb(rgba)
        return default

    return find


def _label_color(label: Any) -> Color | None:
    from OCP.Quantity import Quantity_ColorRGBA
    from OCP.XCAFDoc import XCAFDoc_ColorGen, XCAFDoc_ColorSurf, XCAFDoc_ColorTool

    rgba = Quantity_ColorRGBA()
    for kind in (XCAFDoc_ColorSurf, XCAFDoc_ColorGen):
        if XCAFDoc_ColorTool.GetColor_s(label, kind, rgba):
            return _as_srgb(rgba)
    return None


def _as_srgb(rgba: Any) -> Color:
    """Return a color of the kernel, which stores linear light in 32-bit numbers."""
    light = rgba.GetRGB()
    encoded = encode_srgb(np.array([light.Red(), light.Green(), light.Blue()]))
    red, green, blue = (round(float(channel), 6) for channel in encoded)
    return red, green, blue, round(min(max(rgba.Alpha(), 0.0), 1.0), 6)


def read_name(label: Any, names: dict[str, str]) -> str:
    """Return the name of a label; "" without one.

    Args:
        label: Label of the document.
        names: Names that the kernel decodes wrongly, and what they mean.
    """
    from OCP.TDataStd import TDataStd_Name

    identity = TDataStd_Name.GetID_s()
    if not label.IsAttribute(identity):
        return ""
    attribute = TDataStd_Name()
    label.FindAttribute(identity, attribute)
    try:
        name: str = attribute.Get().ToExtString()
    except UnicodeError:
        return ""
    return single_line(names.get(name, name).encode("utf-8", "replace").decode())[:_MAX_NAME_LENGTH]
