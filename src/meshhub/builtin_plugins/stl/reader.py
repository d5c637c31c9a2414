"""STL reader: detect binary or text by content, and weld the corners to an indexed mesh."""

from __future__ import annotations

import io
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.stl.appearance import read_face_colors
from meshhub.builtin_plugins.stl.sniff import HEADER_BYTES, RECORD_BYTES, declared_triangles, has_binary_size, is_text
from meshhub.errors import CUT_OFF, OTHER_KIND, EmptyModel, UnreadableFile
from meshhub.model.capabilities import NoOptions
from meshhub.model.notes import note
from meshhub.model.scene import Mesh, Part, Scene, read_only
from meshhub.model.source import Source
from meshhub.toolkit.geometry import distinct

_BLOCK_ROWS = 1 << 16
"""Records to read at a time: 3 MB."""

_MAX_EXTENT_RATIO = 1000.0
"""Triangles beyond the declared count belong to the model only within this multiple of its largest coordinate. """

_MAX_COORDINATE = 1e12
"""Largest plausible coordinate, in any unit; nearly all random data contains a larger one."""


@np.errstate(invalid="ignore")  # the pipeline rejects NaN by value; a signaling NaN would also warn here
def read(source: Source, options: NoOptions) -> Scene:  # noqa: ARG001
    """Read an STL file.

    Returns:
        Scene in the units of the file.
    Raises:
        UnreadableFile: The file is damaged, cut off, or not STL.
        EmptyModel: The file has no triangles.
        ModelTooComplex: The text has too many solids.
    """
    head = source.head()
    if has_binary_size(head, source.size):
        with source.open() as file:
            return _read_triangles(file, declared_triangles(head))
    data = source.read()
    if is_text(head):
        from meshhub.builtin_plugins.stl.text_parser import parse_text

        return parse_text(data)
    if data.lstrip()[:5].lower() == b"solid" and (len(data) < HEADER_BYTES + RECORD_BYTES or b"\0" not in head):
        raise EmptyModel("the STL text has a solid without facets; export the model again")
    return _read_binary(data)


def _read_binary(data: bytes) -> Scene:
    """Read the complete triangles of a binary STL file with a wrong size. Raises UnreadableFile, EmptyModel."""
    if len(data) < HEADER_BYTES:
        raise UnreadableFile(
            f"the file is neither STL text nor binary STL: it has {len(data)} bytes, a binary header {HEADER_BYTES}; "
            "export the model again",
            values=OTHER_KIND,
        )
    complete_count, rest_bytes = divmod(len(data) - HEADER_BYTES, RECORD_BYTES)
    rows = np.frombuffer(data, np.uint8, complete_count * RECORD_BYTES, HEADER_BYTES).reshape(-1, RECORD_BYTES)
    count = _count_triangles(rows, declared_triangles(data), rest_bytes)
    return _read_triangles(io.BytesIO(data), count)


def _read_triangles(file: BinaryIO, count: int) -> Scene:
    """Read the header and `count` records of a binary STL file, in blocks, so that the file is never in memory.

    Raises:
        EmptyModel: There are no records.
        UnreadableFile: The file has become shorter.
    """
    if count == 0:
        raise EmptyModel("the binary STL has no triangles; export the model again")
    header = file.read(HEADER_BYTES)
    corners, attributes = np.empty((count, 9), np.float32), np.empty(count, np.uint16)
    for start in range(0, count, _BLOCK_ROWS):
        block = slice(start, min(start + _BLOCK_ROWS, count))
        content = file.read((block.stop - start) * RECORD_BYTES)
        if len(content) < (block.stop - start) * RECORD_BYTES:
            raise UnreadableFile("the file became shorter while it was read; try again")
        rows = np.frombuffer(content, np.uint8).reshape(-1, RECORD_BYTES)
        corners[block] = _corners(rows)
        attributes[block] = np.ascontiguousarray(rows[:, 48:]).view("<u2")[:, 0]
    points, index = distinct(corners.reshape(-1, 3), overwrite=True)
    del corners
    materials, face_material = read_face_colors(header[:80], attributes)
    vertices, faces = read_only(points.astype(np.float64)), read_only(index.reshape(-1, 3))
    mesh = Mesh(vertices, faces, face_material=face_material)
    return Scene((mesh,), (Part(0),), materials)


def _count_triangles(rows: NDArray[np.uint8], declared: int, rest_bytes: int) -> int:
    """Return how many of the complete records belong to the model; note a wrong count in the header.

    Args:
        rows: (n, RECORD_BYTES) complete records.
        rest_bytes: Bytes after the last complete record.
    Raises:
        UnreadableFile: The file is cut off or not STL.
    """
    complete_count = len(rows)
    if declared == complete_count:
        if rest_bytes:
            note(
                "trailing_bytes",
                f"ignored {rest_bytes} bytes after the last of {complete_count} triangles",
                count=int(rest_bytes),
            )
        return complete_count
    if declared > complete_count:
        if rest_bytes or complete_count == 0:
            raise UnreadableFile(
                f"the binary STL is cut off: its header declares {declared} triangles, and {complete_count} are "
                "complete; use the whole file, or export it again",
                values=CUT_OFF,
            )
        if not _are_triangles(rows, rows[:0]):
            raise UnreadableFile(
                "the file is neither STL text nor binary STL: its triangle count and its coordinates are wrong; "
                "export the model again",
                values=OTHER_KIND,
            )
        note(
            "wrong_count",
            f"the header declares {declared} triangles: read {complete_count} of {declared}; "
            "check that the file is complete",
            declared=int(declared),
            read=int(complete_count),
        )
        return complete_count
    if rest_bytes == 0 and _are_triangles(rows[declared:], rows[:declared]):
        note(
            "wrong_count",
            f"the header declares {declared} triangles: read all {complete_count} in the file",
            declared=int(declared),
            read=int(complete_count),
        )
        return complete_count
    extra_bytes = (complete_count - declared) * RECORD_BYTES + rest_bytes
    note(
        "trailing_bytes",
        f"ignored {extra_bytes} bytes after the last of {declared} triangles; they hold none",
        count=int(extra_bytes),
    )
    return declared


def _are_triangles(rows: NDArray[np.uint8], declared_rows: NDArray[np.uint8]) -> bool:
    """Return whether records beyond the declared count are triangles of the same model."""
    coordinates = np.abs(_corners(rows))
    if not np.isfinite(coordinates).all() or not coordinates.any():
        return False
    limit = _MAX_COORDINATE
    if len(declared_rows):
        limit = _MAX_EXTENT_RATIO * float(np.nanmax(np.abs(_corners(declared_rows))))
    return bool(float(coordinates.max()) <= limit)


def _corners(rows: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return the (n, 9) corner coordinates of binary records."""
    corners: NDArray[np.float32] = np.ascontiguousarray(rows[:, 12:48]).view("<f4")
    return corners
