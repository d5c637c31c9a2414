"""Legacy VTK files as VTK and other programs write them: polygons, strips, grids, every section, both encodings."""

from __future__ import annotations

import base64
import lzma
import struct
import zlib
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cell_bricks import CORNERS, SIZE

from meshhub import MeshhubError, Registry, Source

POINTS = CORNERS * SIZE
HEAD = "# vtk DataFile Version 3.0\ntitle\nASCII\n"
TEXT = "\n".join(" ".join(f"{value:g}" for value in row) for row in POINTS.tolist())
QUADS = [(3, 2, 1, 0), (4, 5, 6, 7), (0, 1, 5, 4), (1, 2, 6, 5), (2, 3, 7, 6), (3, 0, 4, 7)]
LIST = "\n".join("4 " + " ".join(map(str, quad)) for quad in QUADS)
POLYDATA = f"{HEAD}DATASET POLYDATA\nPOINTS 8 float\n{TEXT}\nPOLYGONS 6 30\n{LIST}\n"


def inspect(data: str | bytes, **options: object) -> Any:
    data = data.encode() if isinstance(data, str) else data
    return Registry().inspect(Source.from_bytes(data, "a.vtk"), **options)


def assert_is_the_brick(data: str | bytes, name: str = "a.vtk") -> None:
    data = data.encode() if isinstance(data, str) else data
    model = Registry().inspect(Source.from_bytes(data, name)).model
    assert model.watertight
    assert model.volume_mm3 == pytest.approx(6000)
    assert model.size_mm == pytest.approx((10, 20, 30))


def test_polygons_as_text_and_binary() -> None:
    assert_is_the_brick(POLYDATA)
    assert_is_the_brick(POLYDATA.replace("\n", "\r\n"))
    binary = b"# vtk DataFile Version 4.2\ntitle\nBINARY\nDATASET POLYDATA\nPOINTS 8 double\n"
    binary += POINTS.astype(">f8").tobytes() + b"\nPOLYGONS 6 30\n"
    assert_is_the_brick(binary + np.array([(4, *quad) for quad in QUADS], ">i4").tobytes() + b"\n")


def test_version_5_has_offsets_and_connectivity() -> None:
    binary = b"# vtk DataFile Version 5.1\ntitle\nBINARY\nDATASET POLYDATA\nPOINTS 8 float\n"
    binary += POINTS.astype(">f4").tobytes() + b"\nMETADATA\nINFORMATION 0\n\nPOLYGONS 7 24\nOFFSETS vtktypeint64\n"
    binary += np.arange(0, 25, 4).astype(">i8").tobytes() + b"\nCONNECTIVITY vtktypeint64\n"
    assert_is_the_brick(binary + np.array(QUADS, ">i8").tobytes() + b"\n")


STRIPS = "8 5 4 1 0 2 3 6 7\n4 3 0 7 4\n4 1 2 5 6\n"


def test_triangle_strips_and_lines() -> None:
    lists = f"LINES 1 3\n2 0 1\nTRIANGLE_STRIPS 3 19\n{STRIPS}POLYGONS 1 5\n4 4 5 6 7\n"
    assert_is_the_brick(f"{HEAD}DATASET POLYDATA\nPOINTS 8 float\n{TEXT}\n{lists}")
    cells = f"CELLS 4 24\n{STRIPS}4 4 5 6 7\nCELL_TYPES 4\n6 6 6 9\n"
    assert_is_the_brick(f"{HEAD}DATASET UNSTRUCTURED_GRID\nPOINTS 8 float\n{TEXT}\n{cells}")


@pytest.mark.parametrize(
    ("kind", "points", "volume"),
    [
        (11, [(x, y, z) for z in (0, 1) for y in (0, 1) for x in (0, 1)], 1.0),
        (
            15,
            [(np.cos(k), np.sin(k), z) for z in (0, 2) for k in np.arange(5) * 2 * np.pi / 5],
            5 * np.sin(2 * np.pi / 5),
        ),
        (16, [(np.cos(k), np.sin(k), z) for z in (0, 2) for k in np.arange(6) * np.pi / 3], 6 * np.sin(np.pi / 3)),
    ],
)
def test_voxels_and_prisms(kind: int, points: list[tuple[float, float, float]], volume: float) -> None:
    rows = "\n".join(" ".join(f"{value:.9g}" for value in row) for row in points)
    count = len(points)
    text = f"{HEAD}DATASET UNSTRUCTURED_GRID\nPOINTS {count} double\n{rows}\nCELLS 1 {count + 1}\n{count} "
    model = inspect(text + " ".join(map(str, range(count))) + f"\nCELL_TYPES 1\n{kind}\n").model
    assert model.watertight
    assert model.volume_mm3 == pytest.approx(volume)


GRIDS = {
    "points": "DATASET STRUCTURED_POINTS\nDIMENSIONS 3 3 4\nORIGIN 0 0 0\nSPACING 5 10 10\n",
    "rectilinear": "DATASET RECTILINEAR_GRID\nDIMENSIONS 3 2 2\nX_COORDINATES 3 float\n0 1 10\n"
    "Y_COORDINATES 2 float\n0 20\nZ_COORDINATES 2 float\n0 30\n",
    "structured": "DATASET STRUCTURED_GRID\nDIMENSIONS 2 2 2\nPOINTS 8 float\n"
    + "\n".join(f"{x * 10} {y * 20} {z * 30}" for z in (0, 1) for y in (0, 1) for x in (0, 1))
    + "\n",
    "left-handed": "DATASET STRUCTURED_POINTS\nDIMENSIONS 2 2 2\nORIGIN 10 0 0\nSPACING -10 20 30\n",
}


@pytest.mark.parametrize("grid", GRIDS)
def test_the_surface_of_grids_faces_outward(grid: str) -> None:
    assert_is_the_brick(HEAD + GRIDS[grid])


def test_data_of_every_section_are_passed_over_or_read() -> None:
    data = (
        "CELL_DATA 6\nFIELD FieldData 2\nnames 1 6 string\na b\nc\nd\ne\nf\ng\nids 1 6 int\n1 2 3 4 5 6\nPOINT_DATA 8\n"
        "SCALARS heat float 1\nLOOKUP_TABLE default\n1 2 3 4 5 6 7 8\nNORMALS n float\n"
        + "0 0 1\n" * 8
        + "COLOR_SCALARS c 3\n"
        + "0 0 1\n" * 8
        + "TEXTURE_COORDINATES uv 2 float\n"
        + "0 1\n" * 8
        + "GLOBAL_IDS g vtkIdType\n1 2 3 4 5 6 7 8\nLOOKUP_TABLE lut 1\n0 0 0 1\n"
    )
    assert_is_the_brick(POLYDATA + data)
    scene = Registry().read(Source.from_bytes((POLYDATA + data).encode(), "a.vtk"), meshio_color_by="heat")
    assert scene.meshes[0].colors is not None
    by_cell = Registry().read(Source.from_bytes((POLYDATA + data).encode(), "a.vtk"), meshio_color_by="ids")
    assert len(by_cell.materials) == 6


def test_strings_in_binary_files_are_passed_over() -> None:
    binary = (
        b"# vtk DataFile Version 4.2\ntitle\nBINARY\nFIELD f 1\nname 1 2 string\n\xc3abc"
        + b"\x80\x46"
        + b"d" * 70
        + b"\n"
    )
    binary += b"DATASET POLYDATA\nPOINTS 8 double\n" + POINTS.astype(">f8").tobytes() + b"\nPOLYGONS 6 30\n"
    assert_is_the_brick(binary + b"".join(struct.pack(">5i", 4, *quad) for quad in QUADS))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (POLYDATA[:150], "cut off"),
        (POLYDATA.replace("30\n4 3", "30\n9 3"), "do not match their counts"),
        (POLYDATA.replace("POLYGONS 6", "POLYGONS x"), "where a count belongs"),
        (POLYDATA.replace("POINTS 8 float", "POINTS 8 variant"), "of the type 'variant'"),
        (POLYDATA.replace("4 3 2 1 0", "4 3 2 1 8"), "does not exist|outside 0"),
        (POLYDATA.replace("DATASET POLYDATA", "DATASET TABLE"), "data 'TABLE'"),
        (HEAD + GRIDS["rectilinear"].replace("DIMENSIONS 3", "DIMENSIONS 4"), "do not match its DIMENSIONS"),
    ],
)
def test_the_error_of_an_unreadable_file_says_why(text: str, message: str) -> None:
    with pytest.raises(MeshhubError, match=message):
        inspect(text)


def vtu(pieces: str, *, attributes: str = "", appended: bytes = b"") -> bytes:
    """Return an unstructured grid in XML."""
    text = f'<VTKFile type="UnstructuredGrid" version="2.3" byte_order="LittleEndian" {attributes}><UnstructuredGrid>'
    end = b'<AppendedData encoding="raw">\n_' + appended + b"\n</AppendedData>" if appended else b""
    return f"{text}{pieces}</UnstructuredGrid>".encode() + end + b"</VTKFile>"


def array(name: str, kind: str, content: str, attributes: str = 'format="ascii"') -> str:
    return f'<DataArray Name="{name}" type="{kind}" NumberOfComponents="" {attributes}>{content}</DataArray>'


def piece(points: str, connectivity: str, offsets: str, types: str) -> str:
    return (
        f'<Piece><Points><DataArray type="Float32" NumberOfComponents="3" format="ascii">{points}</DataArray></Points>'
        f"<Cells>{array('connectivity', 'Int64', connectivity)}{array('offsets', 'Int64', offsets)}"
        f"{array('types', 'UInt8', types)}</Cells></Piece>"
    )


def test_strips_and_pieces_in_xml() -> None:
    strips = piece(TEXT, "5 4 1 0 2 3 6 7 3 0 7 4 1 2 5 6", "8 12 16", "6 6 6")
    lid = piece("0 0 30 10 0 30 10 20 30 0 20 30", "0 1 2 3", "4", "9")
    scene = Registry().read(Source.from_bytes(vtu(strips + lid), "a.vtu"))
    assert len(scene.meshes[0].faces) == 12
    assert_is_the_brick(
        vtu(
            strips.replace("4 1 2 5 6", "4 1 2 5 6 4 5 6 7")
            .replace("8 12 16", "8 12 16 20")
            .replace("6 6 6", "6 6 6 9")
        ),
        "a.vtu",
    )


@pytest.mark.parametrize("compressor", ["", "vtkZLibDataCompressor", "vtkLZMADataCompressor", "vtkLZ4DataCompressor"])
@pytest.mark.parametrize("form", ["raw", "base64"])
def test_every_compression_and_encoding(compressor: str, form: str) -> None:
    pack = {
        "vtkZLibDataCompressor": zlib.compress,
        "vtkLZMADataCompressor": lzma.compress,
        "vtkLZ4DataCompressor": lambda data: bytes(pa.compress(data, codec="lz4_raw")),
    }
    appended, arrays = b"", []
    contents = (
        ("points", "Float64", POINTS.astype("<f8").tobytes()),
        ("connectivity", "Int32", np.array(QUADS, "<i4").tobytes()),
        ("offsets", "Int32", np.arange(4, 25, 4).astype("<i4").tobytes()),
        ("types", "UInt8", bytes([9] * 6)),
    )
    for name, kind, content in contents:
        header, body = struct.pack("<Q", len(content)), content
        if compressor:
            body = pack[compressor](content)
            header = struct.pack("<4Q", 1, len(content), 0, len(body))
        encoded = [header + body] if not compressor else [header, body]
        text = "".join(base64.b64encode(part).decode() for part in encoded)
        attributes = f'format="appended" offset="{len(appended)}"' if form == "raw" else 'format="binary"'
        arrays.append(array(name, kind, "" if form == "raw" else text, attributes))
        appended += header + body
    arrays[0] = arrays[0].replace('NumberOfComponents=""', 'NumberOfComponents="3"')
    pieces = f"<Piece><Points>{arrays[0]}</Points><Cells>{''.join(arrays[1:])}</Cells></Piece>"
    attributes = 'header_type="UInt64"' + (f' compressor="{compressor}"' if compressor else "")
    assert_is_the_brick(vtu(pieces, attributes=attributes, appended=appended if form == "raw" else b""), "a.vtu")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (vtu("<Piece/>", attributes='compressor="vtkNew"'), "compressed by 'vtkNew'"),
        (vtu(piece(TEXT, "0 1 2", "4", "5")), "offsets do not match"),
        (vtu(piece(TEXT, "0 1 8", "3", "5")), "outside 0 … 7"),
        (vtu(piece(TEXT, "0 1 two", "3", "5")), "'two' for a number"),
        (vtu(piece(TEXT, "0 1 2", "3", "5").replace('format="ascii"', 'format="binary"')), "damaged or cut off"),
        (vtu("").replace(b"UnstructuredGrid>", b"PolyData>"), "not an unstructured grid"),
    ],
)
def test_the_error_of_an_unreadable_grid_says_why(data: bytes, message: str) -> None:
    with pytest.raises(MeshhubError, match=message):
        Registry().inspect(Source.from_bytes(data, "a.vtu"), input_format="vtu")
