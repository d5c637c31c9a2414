"""Readers: assimp parses the file and its transforms; all arrays are copied, because they end with the import."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub import EmptyModel, Frame, Mesh, ModelTooComplex, NoOptions, Part, Scene, Source, UnreadableFile, note
from meshhub.model.capabilities import MILLIMETERS_PER, Up
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import distinct, frame_matrix, unit_vectors
from meshhub.toolkit.names import single_line
from meshhub.toolkit.polygons import triangulate_corners
from meshhub.toolkit.visibility import report_hidden
from meshhub_assimp import ROWS, Row, fbx_rewriting
from meshhub_assimp.appearance import Appearance
from meshhub_assimp.hiding import take_out_hidden
from meshhub_assimp.library import Import, import_file, read_numbers
from meshhub_assimp.library import Mesh as ImportedMesh
from meshhub_assimp.preparation import merge_sides

_MAX_DEPTH_COUNT = 1024
"""Maximum nested nodes; assimp makes up to 17 of a node with pivots, and bones of characters form chains of dozens."""

_MAX_PARTS_COUNT = 100_000
"""Maximum placed meshes."""

_Z_AXIS = 2
"""Value of UpAxis for Z; 1 is Y."""

_UNIT_TOLERANCE_RATIO = 1e-6
"""Relative difference up to which a unit counts as a known one, because files hold centimeters as float."""

_MILLIMETERS_PER_CENTIMETER = 10.0
"""UnitScaleFactor counts centimeters."""

_PREPARATIONS = {"ac3d": merge_sides, "fbx": fbx_rewriting.prepare}
"""Changes to files that assimp would read wrongly."""

_FACE = np.dtype([("count", np.uint32), ("padding", np.uint32), ("indices", np.uintp)])
"""`aiFace` on machines of 64 bits."""


def read(source: Source, options: NoOptions, row: Row) -> Scene:  # noqa: ARG001
    """Read a file.

    Returns:
        Scene in the unit of the file, with its axis up, in the bind pose.
    Raises:
        UnreadableFile: The file is damaged, or of another format.
        EmptyModel: The file has no triangles.
        ModelTooComplex: The file has too many parts.
    """
    preparation = _PREPARATIONS.get(row.format.id, bytes)
    visible = take_out_hidden(preparation(source.read()), row.format.id)
    contents = _import(visible.data, row, source, reads_hidden=False)
    hidden_count = visible.hidden_count + contents.builder.hidden_count
    if contents.builder.hidden_count and not contents.builder.parts:
        contents = _import(visible.data, row, source, reads_hidden=True)
        visible = visible._replace(is_whole=True)
    report_hidden(hidden_count, is_read=visible.is_whole)
    builder, reasons = contents.builder, contents.reasons
    for reason in reasons:
        note("damaged_element", f"dropped a damaged element: {reason}")
    if not builder.parts and reasons:
        raise UnreadableFile(f"the file is damaged ({reasons[0]}); export the model again")
    if not builder.parts:
        raise EmptyModel("the file has no triangles; export the model again")
    return Scene(
        tuple(builder.meshes),
        tuple(builder.parts),
        materials=tuple(builder.appearance.materials),
        images=tuple(builder.appearance.images),
        frame=contents.frame,
    )


class _Contents(NamedTuple):
    builder: _Builder
    frame: Frame
    reasons: list[str]


def _import(data: bytes, row: Row, source: Source, *, reads_hidden: bool) -> _Contents:
    """Return the contents of a file, hidden nodes only if `reads_hidden`."""
    with import_file(data, row.format.extensions[0], row.format.label) as file:
        if row.unit is None:
            frame, matrix = _read_frame(read_numbers(file.scene.metadata))
        else:
            frame, matrix = Frame(row.unit, row.up), np.eye(4)
        # assimp has turned the model to Y up
        matrix = matrix @ frame_matrix(Frame(frame.unit, "y"), frame)
        builder = _Builder(file, Appearance(file, source))
        for item in _placements(file, re.compile(row.generated_names)):
            if item.is_visible or reads_hidden:
                builder.add(item.name, item.path, matrix @ item.placement, item.meshes)
            else:
                builder.hidden_count += 1
        return _Contents(builder, frame, file.reasons)


def _read_frame(settings: dict[str, float]) -> tuple[Frame, Float64]:
    """Return the frame of the file, and the matrix from the unit of the file to it. Raises UnreadableFile.

    The root node of assimp contains the rotation from the axes of the file to Y up, but not its unit.
    """
    up: Up = "z" if settings.get("UpAxis") == _Z_AXIS else "y"
    mm = settings.get("UnitScaleFactor", 1.0) * _MILLIMETERS_PER_CENTIMETER
    if not (np.isfinite(mm) and mm > 0):
        raise UnreadableFile(f"UnitScaleFactor gives {mm:g} mm, not a positive number; correct it in the file")
    for name, millimeters in MILLIMETERS_PER.items():
        if abs(mm / millimeters - 1) < _UNIT_TOLERANCE_RATIO:
            return Frame(name, up), np.eye(4)
    return Frame("mm", up), np.diag([mm, mm, mm, 1.0])


class _Placement(NamedTuple):
    """Node with meshes: name, groups, placement, meshes, and whether the file shows it."""

    name: str
    path: tuple[str, ...]
    placement: Float64
    meshes: tuple[int, ...]
    is_visible: bool


def _placements(file: Import, generated_names: re.Pattern[str]) -> Iterator[_Placement]:
    """Yield each node with meshes. Raises UnreadableFile or ModelTooComplex.

    FBX hides a node and those below it by `Visibility`, unless they do not inherit it; `Show` hides its own meshes.
    """
    stack: list[tuple[Any, tuple[str, ...], Float64, int, bool]] = [(file.scene.root.contents, (), np.eye(4), 0, True)]
    while stack:
        node, path, parent, depth, is_shown = stack.pop()
        if depth > _MAX_DEPTH_COUNT:
            raise ModelTooComplex(f"the file nests nodes more than {_MAX_DEPTH_COUNT} deep; flatten its groups")
        placement = parent @ np.array(node.matrix, np.float64).reshape(4, 4)
        name = single_line(file.decode(node.name))
        if generated_names.match(name):
            name = ""
        if not np.isfinite(placement).all():
            raise UnreadableFile(f"node {name[:40]!r} has a transform that is not finite; export the file again")
        settings = read_numbers(node.metadata)
        is_shown = (is_shown or not settings.get("Visibility Inheritance", 1)) and settings.get("Visibility", 1) != 0
        if node.meshes_count:
            meshes = tuple(node.meshes[: node.meshes_count])
            yield _Placement(name, path, placement, meshes, is_shown and bool(settings.get("Show", True)))
        if depth and name:
            path = (*path, name)
        children = [node.children[number].contents for number in range(node.children_count)]
        stack += [(child, path, placement, depth + 1, is_shown) for child in reversed(children)]


class _Builder:
    """Meshes and parts of a file.

    Attributes:
        meshes: Meshes, one for each geometry, although the library splits them by material.
        parts: Placed meshes.
        appearance: Their materials.
        hidden_count: Nodes that were left out because they are hidden.
    """

    def __init__(self, file: Import, appearance: Appearance) -> None:
        self.meshes: list[Mesh] = []
        self.parts: list[Part] = []
        self.hidden_count = 0
        self.appearance = appearance
        self._file = file
        self._index: dict[tuple[int, ...], tuple[int, int | None] | None] = {}

    def add(self, name: str, path: tuple[str, ...], matrix: Float64, numbers: tuple[int, ...]) -> None:
        """Add the meshes of a node as one part. Raises UnreadableFile or ModelTooComplex."""
        if len(self.parts) >= _MAX_PARTS_COUNT:
            raise ModelTooComplex(f"the file places more than {_MAX_PARTS_COUNT} meshes; split the model")
        if numbers not in self._index:
            self._index[numbers] = self._add_mesh(numbers)
        entry = self._index[numbers]
        if entry is not None:
            self.parts.append(Part(entry[0], matrix, name, path, entry[1]))

    def _add_mesh(self, numbers: tuple[int, ...]) -> tuple[int, int | None] | None:
        """Return the index of the mesh, and its material if it has a single one; None without triangles."""
        pieces: list[Mesh] = []
        materials: list[int | None] = []
        for number in numbers:
            imported = self._file.scene.meshes[number].contents
            if imported.bones_count or imported.morphs_count:
                note("bind_pose", "dropped bones and morphs; the model has its bind pose")
            material = self.appearance.material(imported.material)
            uv_set = 0 if material is None else self.appearance.uv_sets[material]
            piece = _read_mesh(imported, uv_set, single_line(self._file.decode(imported.name)))
            if piece is not None:
                pieces.append(piece)
                materials.append(material)
        if not pieces:
            return None
        is_single = len(set(materials)) == 1
        face_material = [-1 if material is None else material for material in materials]
        self.meshes.append(_join(pieces, None if is_single else face_material))
        return len(self.meshes) - 1, materials[0] if is_single else None


def _read_mesh(imported: ImportedMesh, uv_set: int, name: str) -> Mesh | None:
    """Return a mesh; None if it has no triangles. Raises UnreadableFile."""
    count = imported.vertices_count
    positions = _copy(imported.vertices, np.dtype(np.float32), count, 3)
    faces = np.frombuffer(_copy_bytes(imported.faces, imported.faces_count * _FACE.itemsize), _FACE)
    if positions is None or len(faces) == 0 or int(faces["count"].max()) < 3:
        return None
    rows = zip(faces["indices"].tolist(), (faces["count"].astype(np.int64) * 4).tolist(), strict=True)
    indices = np.frombuffer(b"".join(ctypes.string_at(*row) for row in rows), np.uint32).astype(np.int64)
    try:
        corners, _ = triangulate_corners(positions.astype(np.float64), faces["count"].astype(np.int64), indices)
    except ValueError as error:
        raise UnreadableFile(f"a mesh is damaged ({error}); export the model again") from None
    uv_set = uv_set if uv_set < len(imported.uv) and imported.uv[uv_set] else 0
    attributes = {
        "normals": _copy(imported.normals, np.dtype(np.float32), count, 3),
        "uv": _copy(imported.uv[uv_set], np.dtype(np.float32), count, 3),
        "colors": _copy(imported.colors[0], np.dtype(np.float32), count, 4),
    }
    present = {name: values for name, values in attributes.items() if values is not None}
    # the library repeats vertices at each corner
    columns = np.concatenate([positions, *(np.nan_to_num(values) for values in present.values())], axis=1)
    table, index = distinct(columns[indices[corners].ravel()])
    bounds = np.cumsum([3, *(values.shape[1] for values in present.values())])
    pieces = zip(present, np.split(table, bounds[:-1], axis=1)[1:], strict=True)
    converted = {key: _convert(key, values) for key, values in pieces}
    return Mesh(table[:, :3].astype(np.float64), index.reshape(-1, 3), name=name, **converted)


def _convert(name: str, values: NDArray[np.float32]) -> NDArray[Any]:
    """Return attribute values in the type of the scene."""
    if name == "normals":
        return unit_vectors(values.astype(np.float64)).astype(np.float32)
    if name == "colors":
        return np.rint(np.clip(values, 0, 1) * 255).astype(np.uint8)
    return values[:, :2]


def _join(pieces: list[Mesh], face_material: list[int] | None) -> Mesh:
    """Return the parts of a geometry as one mesh; attributes that some of them lack are dropped."""
    offsets = np.cumsum([0, *(len(piece.vertices) for piece in pieces)])
    columns: dict[str, Any] = {}
    for name in ("normals", "uv", "colors"):
        values = [getattr(piece, name) for piece in pieces]
        if all(each is not None for each in values):
            columns[name] = np.concatenate(values)
    if face_material is not None:
        columns["face_material"] = np.repeat(face_material, [len(piece.faces) for piece in pieces]).astype(np.int32)
    return Mesh(
        np.concatenate([piece.vertices for piece in pieces]),
        np.concatenate([piece.faces + offset for piece, offset in zip(pieces, offsets, strict=False)]).astype(np.int32),
        name=pieces[0].name,
        **columns,
    )


def _copy(address: int | None, dtype: np.dtype[Any], count: int, width: int) -> NDArray[Any] | None:
    """Return a copy of a table of the library; None without one."""
    data = _copy_bytes(address, count * width * dtype.itemsize)
    return np.frombuffer(data, dtype).reshape(-1, width) if data else None


def _copy_bytes(address: int | None, size: int) -> bytes:
    return ctypes.string_at(address, size) if address else b""


_BY_ID = {row.format.id: row for row in ROWS}

read_fbx = partial(read, row=_BY_ID["fbx"])
read_3ds = partial(read, row=_BY_ID["3ds"])
read_lwo = partial(read, row=_BY_ID["lwo"])
read_ms3d = partial(read, row=_BY_ID["ms3d"])
read_ac3d = partial(read, row=_BY_ID["ac3d"])
read_b3d = partial(read, row=_BY_ID["b3d"])
read_directx = partial(read, row=_BY_ID["directx"])
