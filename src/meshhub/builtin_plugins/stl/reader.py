"""Reads STL: tells binary from text by content, and makes an indexed mesh of either."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.stl.appearance import face_colors
from meshhub.builtin_plugins.stl.sniff import HEADER, RECORD, declared_triangles, exactly_binary, looks_like_text
from meshhub.builtin_plugins.stl.text import read_text
from meshhub.errors import EmptyModel, UnreadableFile
from meshhub.model.capabilities import NoOptions
from meshhub.model.notes import note
from meshhub.model.scene import Mesh, Part, Scene
from meshhub.model.source import HEAD_BYTES, Source
from meshhub.toolkit.geometry import distinct

_FAR = 1000.0
"""How many times farther out than the counted triangles uncounted ones may lie to be believed."""

_ABSURD = 1e12
"""No coordinate of a model lies beyond it; random bytes nearly always do."""


@np.errstate(invalid="ignore")  # a signalling NaN is refused by its value, not by a warning on the way
def read(source: Source, options: NoOptions) -> Scene:  # noqa: ARG001
    """An STL file as a scene, in the file's own numbers.

    Raises UnreadableFile, EmptyModel.
    """
    data = source.read()
    head = data[:HEAD_BYTES]
    if exactly_binary(head, len(data)):
        return _binary(data)
    if looks_like_text(head):
        return read_text(data)
    if data.lstrip()[:5].lower() == b"solid" and (len(data) < HEADER + RECORD or b"\0" not in head):
        raise EmptyModel("the STL text holds a solid without any facet; export the model again")
    return _binary(data)


def _binary(data: bytes) -> Scene:
    """Binary STL, as much of it as is whole."""
    if len(data) < HEADER:
        raise UnreadableFile(
            f"neither STL text nor binary STL: {len(data)} bytes, and a binary header alone has {HEADER}; "
            "export the model again"
        )
    whole, rest = divmod(len(data) - HEADER, RECORD)
    declared = declared_triangles(data)
    rows = np.frombuffer(data, np.uint8, whole * RECORD, HEADER).reshape(whole, RECORD)
    count = _believed(rows, declared, rest)
    if count == 0:
        raise EmptyModel("the binary STL holds no triangle; export the model again")
    rows = rows[:count]
    corners = np.ascontiguousarray(rows[:, 12:48]).view("<f4").reshape(-1, 3).astype(np.float32, copy=False)
    points, index = distinct(corners)
    attributes = np.ascontiguousarray(rows[:, 48:]).view("<u2")[:, 0].astype(np.uint16, copy=False)
    materials, face_material = face_colors(data[:80], attributes)
    mesh = Mesh(points.astype(np.float64), index.reshape(-1, 3), face_material=face_material)
    return Scene((mesh,), (Part(0),), materials)


def _believed(rows: NDArray[np.uint8], declared: int, rest: int) -> int:
    """How many of the whole triangles that are there belong to the model; notes where the header lies.

    Raises UnreadableFile when the file was cut off.
    """
    whole = len(rows)
    if declared == whole:
        if rest:
            note("trailing_bytes", f"{rest} bytes after the last of {whole} triangles were left out")
        return whole
    if declared > whole:
        if rest or whole == 0:
            raise UnreadableFile(
                f"the binary STL is cut off: its header tells {declared} triangles, and {whole} whole ones are there; "
                "send the whole file, or export it again"
            )
        if not _plausible(rows[:0], rows):
            raise UnreadableFile(
                "neither STL text nor binary STL: the header's count is wrong and the numbers are no coordinates; "
                "export the model again"
            )
        note(
            "wrong_count",
            f"the header tells {declared} triangles, the file holds {whole} whole ones: read {whole} of {declared}; "
            "check that the file is complete",
        )
        return whole
    if rest == 0 and _plausible(rows[:declared], rows[declared:]):
        note("wrong_count", f"the header tells {declared} triangles, the file holds {whole}: all {whole} were read")
        return whole
    extra = (whole - declared) * RECORD + rest
    note("trailing_bytes", f"{extra} bytes after the last of {declared} triangles were left out: they are no triangles")
    return declared


def _plausible(counted: NDArray[np.uint8], uncounted: NDArray[np.uint8]) -> bool:
    """Whether the bytes after the counted triangles are triangles of the same model."""

    def corners(rows: NDArray[np.uint8]) -> NDArray[np.float32]:
        found: NDArray[np.float32] = np.ascontiguousarray(rows[:, 12:48]).view("<f4")
        return found

    found = np.abs(corners(uncounted))
    if not np.isfinite(found).all() or not found.any():
        return False
    size = float(np.nanmax(np.abs(corners(counted)))) if len(counted) else _ABSURD / _FAR
    return bool(float(found.max()) <= _FAR * size)
