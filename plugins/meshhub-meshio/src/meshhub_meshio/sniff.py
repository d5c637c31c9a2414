"""Detection of the formats by content; imports no heavy modules."""

from __future__ import annotations

import re

_ABAQUS = re.compile(rb"(?:\*\*[^\n]*\n|\s)*\*(?:heading|node|part|include)\b", re.IGNORECASE)
_NASTRAN = re.compile(rb"^(?:BEGIN BULK|GRID[ *,])", re.IGNORECASE | re.MULTILINE)


_AVS = re.compile(
    rb"(?:#[^\n]*\n)*[ \t]*[1-9]\d*[ \t]+\d+(?:[ \t]+\d+){3}[ \t]*\r?\n[ \t]*\d+(?:[ \t]+[-+.\deE]+){3}[ \t]*\r?\n"
)


def sniff_avsucd(head: bytes, size: int) -> int:  # noqa: ARG001
    """Return the confidence that the file is AVS UCD, 0 … 100; many programs name it `.inp`, as Abaqus does."""
    return 75 if _AVS.match(head) else 0


def sniff_vtk(head: bytes, size: int) -> int:  # noqa: ARG001
    """Return the confidence that the file is a legacy VTK file, 0 … 100."""
    return 95 if head.startswith(b"# vtk DataFile Version") else 0


def sniff_vtu(head: bytes, size: int) -> int:  # noqa: ARG001
    """Return the confidence that the file is an unstructured grid of VTK, 0 … 100."""
    return 95 if b"<VTKFile" in head and b"UnstructuredGrid" in head else 0


def sniff_gmsh(head: bytes, size: int) -> int:  # noqa: ARG001
    """Return the confidence that the file is a mesh of Gmsh, 0 … 100."""
    return 95 if head.lstrip().startswith((b"$MeshFormat", b"$Comments")) else 0


def sniff_abaqus(head: bytes, size: int) -> int:  # noqa: ARG001
    """Return the confidence that the file is an input of Abaqus, 0 … 100."""
    return 70 if _ABAQUS.match(head) else 0


def sniff_nastran(head: bytes, size: int) -> int:  # noqa: ARG001
    """Return the confidence that the file is bulk data of Nastran, 0 … 100."""
    return 60 if _NASTRAN.search(head) else 0


def sniff_xdmf(head: bytes, size: int) -> int:  # noqa: ARG001
    """Return the confidence that the file is XDMF, 0 … 100."""
    return 95 if b"<Xdmf" in head else 0


def sniff_su2(head: bytes, size: int) -> int:  # noqa: ARG001
    """Return the confidence that the file is a mesh of SU2, 0 … 100."""
    return 80 if b"NDIME=" in head.replace(b" ", b"") else 0


def sniff_medit(head: bytes, size: int) -> int:  # noqa: ARG001
    """Return the confidence that the file is a mesh of Medit, as text or binary, 0 … 100."""
    return 90 if head.lstrip().startswith(b"MeshVersionFormatted") else 60 if head[:4] == b"\1\0\0\0" else 0


def sniff_netgen(head: bytes, size: int) -> int:  # noqa: ARG001
    """Return the confidence that the file is a mesh of Netgen, 0 … 100."""
    return 80 if re.search(rb"^mesh3d\b", head, re.MULTILINE) else 0


def sniff_flac3d(head: bytes, size: int) -> int:  # noqa: ARG001
    """Return the confidence that the file is a grid of FLAC3D, 0 … 100."""
    return 80 if re.search(rb"^\* ?FLAC3D grid|^\*GRIDPOINTS|^\* GRIDPOINTS", head, re.MULTILINE) else 0
