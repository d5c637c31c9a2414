"""Reads PLY: polygons and strips of any layout as one triangle mesh."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.ply import appearance
from meshhub.builtin_plugins.ply.header import Header, read_header
from meshhub.builtin_plugins.ply.rows import Lists, Table
from meshhub.builtin_plugins.ply.tables import read_tables
from meshhub.errors import EmptyModel, UnreadableFile
from meshhub.model.capabilities import NoOptions
from meshhub.model.notes import note
from meshhub.model.scene import Float64, Int32, Material, Mesh, Part, Scene
from meshhub.model.source import Source
from meshhub.toolkit.geometry import weld
from meshhub.toolkit.polygons import triangulate_corners

_VERTEX = frozenset(("x", "y", "z", "nx", "ny", "nz")) | appearance.COLOR_NAMES | appearance.UV_NAMES
_INDICES = ("vertex_indices", "vertex_index", "vertex_indexes", "vertices", "indices")
_FACE = frozenset(_INDICES) | appearance.COLOR_NAMES | {"texcoord", "texnumber"}
_WANTED = {
    "vertex": _VERTEX, "vertices": _VERTEX, "face": _FACE, "faces": _FACE, "polygon": _FACE,
    "tristrips": frozenset(_INDICES),
}  # fmt: skip

Index = NDArray[np.int64]


@np.errstate(invalid="ignore")  # a signalling NaN is refused by its value, not by a warning on the way
def read(source: Source, options: NoOptions) -> Scene:  # noqa: ARG001
    """A PLY file as a scene, in the file's own numbers.

    Raises UnreadableFile, EmptyModel.
    """
    data = source.read()
    header = read_header(data)
    tables = read_tables(data, header, _WANTED)
    vertex = tables.get("vertex") or tables.get("vertices")
    if vertex is None or vertex.count == 0:
        raise EmptyModel("the PLY file holds no vertex; export the model again")
    if not all(axis in vertex.columns for axis in "xyz"):
        raise UnreadableFile("the vertices of the PLY file have no x, y and z; export the model again")
    face = tables.get("face") or tables.get("faces") or tables.get("polygon")
    counts, indices = _polygons(face, vertex.count)
    strips = _strips(tables.get("tristrips"), vertex.count)
    mesh = Mesh(
        np.stack([vertex.columns[axis] for axis in "xyz"], axis=1).astype(np.float64),
        np.empty((0, 3), np.int32),
        normals=appearance.normals(vertex),
        uv=appearance.uv(vertex),
        colors=appearance.colors(vertex),
    )
    corners, polygon = triangulate_corners(mesh.vertices, counts, indices)
    faces = np.concatenate([indices[corners].astype(np.int32).reshape(-1, 3), strips])
    if len(faces) == 0:
        raise EmptyModel(_faceless(header, vertex.count))
    mesh = replace(mesh, faces=faces)
    if face is None:
        return Scene((mesh,), (Part(0),))
    return _dressed(mesh, face, corners, polygon, source, header)


def _faceless(header: Header, points: int) -> str:
    tells = any(one.count for one in header.elements if one.name in _WANTED and one.name not in ("vertex", "vertices"))
    if tells:
        return "no face of the PLY file has three corners; export the model again"
    return f"a point cloud: {points} points and no face; make a surface of it first, in MeshLab for example"


def _index_list(table: Table | None) -> Lists | None:
    if table is None:
        return None
    return next((table.lists[name] for name in _INDICES if name in table.lists), None)


def _polygons(face: Table | None, points: int) -> tuple[Index, Index]:
    """The corners' count of each face, and all corners. Raises UnreadableFile for one that is not there."""
    found = _index_list(face)
    if found is None:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    indices = _checked(found, points, lowest=0)
    short = int((found.counts < 3).sum())
    if short:
        note("incomplete_faces", f"{short} of {len(found.counts)} faces have fewer than three corners: left out")
    return found.counts, indices


def _checked(found: Lists, points: int, lowest: int) -> Index:
    """Indices that lie between `lowest` and the number of points. Raises UnreadableFile."""
    values = found.values
    with np.errstate(invalid="ignore"):
        wrong = ~((values >= lowest) & (values < points))
        if values.dtype.kind == "f":
            wrong |= values != np.floor(values)
    if wrong.any():
        at = int(wrong.argmax())
        row = int(np.searchsorted(np.cumsum(found.counts), at, side="right"))
        raise UnreadableFile(
            f"face {row} of the PLY file names the vertex {values[at]}, and there are {points} (from 0); "
            "export the model again"
        )
    return values.astype(np.int64)


def _strips(table: Table | None, points: int) -> Int32:
    """(m, 3) faces of triangle strips; -1 begins a new one, every second triangle is turned round."""
    found = _index_list(table)
    if found is None or len(found.values) < 3:
        return np.empty((0, 3), np.int32)
    indices = _checked(found, points, lowest=-1)
    begins = np.zeros(len(indices), np.bool_)
    begins[(np.cumsum(found.counts) - found.counts)[found.counts > 0]] = True
    begins[1:] |= indices[:-1] < 0
    at = np.arange(len(indices))
    place = at - np.maximum.accumulate(np.where(begins, at, 0))
    ends = (place >= 2) & (indices >= 0)
    last = np.flatnonzero(ends)
    odd = place[last] % 2 == 1
    a, b, c = indices[last - 2], indices[last - 1], indices[last]
    faces = np.stack([np.where(odd, b, a), np.where(odd, a, b), c], axis=1).astype(np.int32)
    # strips are joined by triangles without area
    whole: Int32 = faces[(faces != np.roll(faces, 1, axis=1)).all(axis=1)]
    return whole


def _dressed(mesh: Mesh, face: Table, corners: Index, polygon: Int32, source: Source, header: Header) -> Scene:
    """The mesh with what its faces carry: texture coordinates of corners, pictures, colours."""
    extra = len(mesh.faces) - len(polygon)

    def spread(per_polygon: Int32) -> Int32:
        """Of each face, from each polygon; -1 for strips."""
        made: Int32 = np.concatenate([per_polygon[polygon], np.full(extra, -1, np.int32)])
        return made

    mesh = _cornered(mesh, face, corners, extra)
    if header.textures and mesh.uv is not None:
        materials, images = appearance.textures(source, header.textures)
        if images:
            number = np.zeros(face.count, np.int32)
            if "texnumber" in face.columns:
                given = face.columns["texnumber"]
                with np.errstate(invalid="ignore"):
                    number = np.where((given >= 0) & (given < len(materials)), given, -1).astype(np.int32)
            return Scene((replace(mesh, face_material=spread(number)),), (Part(0),), materials, images)
    shades = appearance.colors(face)
    if shades is None or mesh.colors is not None:
        if shades is not None:
            note("face_colors_dropped", "both vertices and faces have colours: those of the vertices were kept")
        return Scene((mesh,), (Part(0),))
    first, index = weld(shades.view("<u4").astype(np.float64).reshape(-1, 1))
    distinct = (shades[first] / 255).tolist()
    coloured = tuple(
        Material(base_color=(r, g, b, a), alpha_mode="blend" if a < 1 else "opaque") for r, g, b, a in distinct
    )
    return Scene((replace(mesh, face_material=spread(index)),), (Part(0),), coloured)


def _cornered(mesh: Mesh, face: Table, corners: Index, extra: int) -> Mesh:
    """The mesh with the UV that a `texcoord` list gives each corner; a vertex is doubled where they differ."""
    found, indexed = face.lists.get("texcoord"), _index_list(face)
    if found is None or indexed is None or not len(found.values):
        return mesh
    matching = found.counts == 2 * indexed.counts
    if not matching.all():
        unmatched = int((~matching & (found.counts > 0)).sum())
        if unmatched:
            note("texcoords_dropped", f"{unmatched} faces have texture coordinates for other than their corners")
    # where each corner's pair lies among the values; corners of faces without any take a zero pair
    before = np.cumsum(found.counts) - found.counts
    within = np.arange(len(indexed.values)) - np.repeat(np.cumsum(indexed.counts) - indexed.counts, indexed.counts)
    usable = np.repeat(matching, indexed.counts)
    if not usable.any():
        return mesh
    at = np.where(usable, np.repeat(before, indexed.counts) + 2 * within, 0)
    values = appearance.finite(found.values)
    pairs = np.where(usable[:, None], np.stack([values[at], values[at + 1]], axis=1), np.float32(0))
    picked = np.concatenate([pairs[corners.reshape(-1)], np.zeros((3 * extra, 2), np.float32)])
    vertex = mesh.faces.reshape(-1)
    keys: Float64 = np.column_stack([vertex.astype(np.float64), picked.astype(np.float64)])
    first, index = weld(keys)
    rows = vertex[first]
    return Mesh(
        mesh.vertices[rows],
        index.reshape(-1, 3),
        normals=None if mesh.normals is None else mesh.normals[rows],
        uv=picked[first],
        colors=None if mesh.colors is None else mesh.colors[rows],
    )
