"""Text that meshio 5.3 rejects although it does not need it, removed before it reads a file."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from meshhub import UnreadableFile, note
from meshhub.toolkit.columns import Irregular, read_numbers

_DOCTYPE = re.compile(rb"<!DOCTYPE\s+Xdmf\b[^<>\[\]]{0,200}(?:\[\s*\]\s*)?>")
"""Document type of XDMF without entities, which VTK, ParaView and FEniCS write."""

_GROUP = re.compile(rb"^[ \t]*[ZF]GROUP\b[^\n]*\n(?:[ \t\d]*\d[ \t\d]*(?:\n|\Z))*", re.MULTILINE)
"""Group of zones or faces of FLAC3D; those without a slot are rejected."""

_BULK = re.compile(rb"^\s*BEGIN\s+BULK", re.IGNORECASE | re.MULTILINE)
_CONTINUED = re.compile(rb"^([^\n$+*,][^\n,]{0,71})[^\n,]{0,8}\n {8}(?=[^\n,]*\d)", re.MULTILINE)
"""Line of fixed fields that continues on a line with an empty first field; meshio loses the second line of some."""

_NETGEN_SECTION = re.compile(rb"^[ \t]*([a-z_]\w*)[^\n]*\n", re.MULTILINE)
_NETGEN_NEEDED = (b"mesh3d", b"dimension", b"geomtype", b"surfaceelements", b"volumeelements", b"points")


def clean_xdmf(data: bytes) -> bytes:
    """Return an XDMF file without its document type."""
    return _DOCTYPE.sub(b"", data, count=1)


def clean_flac3d(data: bytes) -> bytes:
    """Return a text grid of FLAC3D without groups."""
    return _GROUP.sub(b"", data.replace(b"\r\n", b"\n")) if b"GROUP" in data else data


def clean_netgen(data: bytes) -> bytes:
    """Return a mesh of Netgen without descriptors, colors, and the geometry behind the mesh."""
    text = data.replace(b"\r\n", b"\n")
    pieces = []
    matches = list(_NETGEN_SECTION.finditer(text))
    for match, end in zip(matches, [*(each.start() for each in matches[1:]), len(text)], strict=True):
        if match[1] == b"endmesh":
            break
        if match[1].startswith(_NETGEN_NEEDED):
            pieces.append(text[match.start() : end])
    return b"".join(pieces) + b"endmesh\n"


def clean_elements(data: bytes) -> bytes:
    """Return elements of TetGen with their corners alone. Raises UnreadableFile."""
    text = re.sub(rb"#[^\n]*", b"", data)
    try:
        numbers, _ = read_numbers(text, "f8")
    except Irregular:
        return data
    if len(numbers) < 3 or numbers[1] != 10:
        return data
    count, size, attributes = (int(value) for value in numbers[:3])
    width = 1 + size + attributes
    if len(numbers) < 3 + count * width:
        raise UnreadableFile("the elements of TetGen are cut off; export them again", values={"defect": "cut_off"})
    note("middles_left_out", "read elements of second degree with straight edges")
    rows = numbers[3 : 3 + count * width].reshape(count, width)[:, :5].astype(np.int64)
    lines = "\n".join(" ".join(map(str, row)) for row in rows.tolist())
    return f"{count} 4 0\n{lines}\n".encode()


def clean_nastran(data: bytes) -> bytes:
    """Return bulk data with marked continuations, and with the begin and the end of the data."""
    text = _CONTINUED.sub(lambda match: match[1].ljust(72) + b"+\n+       ", data.replace(b"\r\n", b"\n"))
    begin = b"" if _BULK.search(text) else b"BEGIN BULK\n"
    return begin + text + (b"" if b"ENDDATA" in text else b"\nENDDATA\n")


CLEANERS: dict[str, Callable[[bytes], bytes]] = {
    "xdmf": clean_xdmf,
    "flac3d": clean_flac3d,
    "netgen": clean_netgen,
    "nastran": clean_nastran,
}
"""Functions by the module of meshio."""
