"""Contracts of meshhub, run against the installed plug-in."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib

from prints import BRICK, SQUARE

from meshhub import Source
from meshhub.testing import ReaderContract


def make_binary(text: bytes) -> bytes:
    """Return text as binary G-code with one block, stored as it is."""
    header = struct.pack("<HHI", 1, 0, len(text)) + b"\0\0"
    return b"GCDE" + struct.pack("<IH", 1, 1) + header + text + struct.pack("<I", zlib.crc32(header + text))


def make_package(text: bytes) -> bytes:
    """Return text as the G-code of a plate."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("3D/3dmodel.model", "<model/>")
        archive.writestr("Metadata/plate_1.gcode", text)
    return buffer.getvalue()


class TestGcode(ReaderContract):
    format_id = "gcode"
    brick = Source.from_bytes(BRICK, "brick.gcode")
    samples = (Source.from_bytes(SQUARE, "square.gcode"),)


class TestBinary(ReaderContract):
    format_id = "bgcode"
    brick = Source.from_bytes(make_binary(BRICK), "brick.bgcode")
    samples = (Source.from_bytes(make_binary(SQUARE), "square.bgcode"),)


class TestPackage(ReaderContract):
    format_id = "gcode-3mf"
    brick = Source.from_bytes(make_package(BRICK), "brick.gcode.3mf")
    samples = (Source.from_bytes(make_package(SQUARE), "square.gcode.3mf"),)
