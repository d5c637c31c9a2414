"""PLY reader: polygons and strips of any layout as one triangle mesh."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.ply import appearance
from meshhub.builtin_plugins.ply.elements import read_elements
from meshhub.builtin_plugins.ply.header import Header, read_header
from meshhub.builtin_plugins.ply.row_layout import ElementTable, ListColumn
from meshhub.errors import EmptyModel, UnreadableFile, format_count, format_number
from meshhub.model.capabilities import NoOptions
from meshhub.model.notes import note
from meshhub.model.scene import Float64, Image, Int32, Material, Mesh, Part, Scene, UInt8, read_only
from meshhub.model.source import Source
from meshhub.toolkit.geometry import weld
from meshhub.toolkit.polygons import note_incomplete_faces, triangulate_corners

_VERTEX = frozenset(("x", "y", "z", "nx", "ny", "nz")) | appearance.COLOR_NAMES | appearance.UV_NAMES
_INDICES = ("vertex_indices", "vertex_index", "vertex_indexes", "vertices", "indices")
_FACE = frozenset(_INDICES) | appearance.COLOR_NAMES | {"texcoord", "texnumber"}
_SELECTION = {
    "vertex": _VERTEX, "vertices": _VERTEX, "face": _FACE, "faces": _FACE, "polygon": _FACE,
    "tristrips": frozenset(_INDICES),
}  # fmt: skip
_POLYGONS = _SELECTION.keys() - {"vertex", "vertices"}

Index = NDArray[np.int64]


@np.errstate(invalid="ignore")  # the pipeline rejects NaN by value, but a signaling NaN would also cause a warning here
def read(source: Source, options: NoOptions) -> Scene:  # noqa: ARG001
    """Read a PLY file.

    Returns:
        Scene with one mesh, in the units of the file.
    Raises:
        UnreadableFile: The file is damaged, cut off, or not PLY.
        EmptyModel: The file has no faces.
    """
    data = source.read()
    header = read_header(data)
    tables = read_elements(data, header, _SELECTION)
    vertex = tables.get("vertex") or tables.get("vertices")
    if vertex is None or vertex.count == 0:
        raise EmptyModel("the PLY file has no vertices; export the model again")
    if header.is_gaussian_splat and not tables.keys() & _POLYGONS:
        raise EmptyModel(
            f"the PLY file is a Gaussian splat: {vertex.count} splats and no faces; export a mesh from the program "
            "that made it"
        )
    if not all(axis in vertex.columns for axis in "xyz"):
        raise UnreadableFile("the vertices of the PLY file have no x, y and z; export the model again")
    face = tables.get("face") or tables.get("faces") or tables.get("polygon")
    counts, indices = _read_polygons(face, vertex.count)
    strips = _read_strips(tables.get("tristrips"), vertex.count)
    mesh = Mesh(
        read_only(_read_points(vertex, indices, strips)),
        np.empty((0, 3), np.int32),
        normals=appearance.read_normals(vertex),
        uv=appearance.read_uv(vertex),
        colors=appearance.read_colors(vertex),
    )
    if face is not None and len(strips) == 0 and len(counts) and _has_only_triangles(face, counts, header):
        # most files: without the positions of corners, which take more memory than the mesh
        mesh = replace(mesh, faces=read_only(indices.reshape(-1, 3)))
        _note_points(mesh)
        return Scene((mesh,), (Part(0),))
    corners, polygon = triangulate_corners(mesh.vertices, counts, indices)
    faces = np.concatenate([indices[corners], strips])
    if len(faces) == 0:
        raise EmptyModel(_describe_missing_faces(header, vertex.count))
    mesh = replace(mesh, faces=read_only(faces))
    _note_points(mesh)
    if face is None:
        return Scene((mesh,), (Part(0),))
    mesh = _add_corner_uv(mesh, face, corners)
    polygon = np.concatenate([polygon, np.full(len(strips), -1, np.int32)])
    return _add_materials(mesh, face, polygon, source, header)


def _has_only_triangles(face: ElementTable, counts: Index, header: Header) -> bool:
    """Return whether all faces are triangles, and have neither colors nor textures."""
    has_appearance = bool(face.columns) or len(face.lists) > 1 or bool(header.textures)
    return not has_appearance and bool((counts == 3).all())


def _read_points(vertex: ElementTable, *corners: Int32) -> Float64:
    """Return the (n, 3) positions; scanners write NaN for points that they do not see, and no face uses these.

    Raises:
        UnreadableFile: A coordinate at a corner is not finite.
    """
    points = np.empty((vertex.count, 3))
    for number, axis in enumerate("xyz"):
        points[:, number] = vertex.columns[axis]
    if not np.isfinite(points).all():
        is_bad = np.logical_not(np.isfinite(points)).any(axis=1, keepdims=True).ravel()
        used = np.concatenate([each.ravel() for each in corners])
        if is_bad[used].any():
            place = vertex.row_name("vertex", int(used[is_bad[used]].min()))
            raise UnreadableFile(f"{place} has a coordinate that is not a finite number; export the model again")
        points[is_bad] = 0
    return points


def _note_points(mesh: Mesh) -> None:
    """Note the points that no face uses, which the conversion leaves out."""
    is_used = np.zeros(len(mesh.vertices), np.bool_)
    is_used[mesh.faces] = True
    if count := int(np.count_nonzero(~is_used)):
        note("points_ignored", f"left out {format_count(count, 'point', 'points')} that no face uses")


def _describe_missing_faces(header: Header, vertex_count: int) -> str:
    has_faces = any(
        element.count
        for element in header.elements
        if element.name in _SELECTION and element.name not in ("vertex", "vertices")
    )
    if has_faces:
        return "no face of the PLY file has three corners; export the model again"
    return f"the file is a point cloud: {vertex_count} points and no faces; build a surface first, e.g. in MeshLab"


def _find_indices(table: ElementTable | None) -> ListColumn | None:
    if table is None:
        return None
    return next((table.lists[name] for name in _INDICES if name in table.lists), None)


def _read_polygons(face: ElementTable | None, vertex_count: int) -> tuple[Index, Int32]:
    """Return the corner count of each face, and the vertex of each corner. Raises UnreadableFile for a bad index."""
    lists = _find_indices(face)
    if face is None or lists is None:
        return np.empty(0, np.int64), np.empty(0, np.int32)
    indices = _check_indices(face, lists, vertex_count, lowest=0)
    note_incomplete_faces(lists.counts)
    return lists.counts, indices


def _check_indices(table: ElementTable, lists: ListColumn, vertex_count: int, lowest: int) -> Int32:
    """Return the items as integers. Raises UnreadableFile for a vertex outside `lowest` … vertex_count - 1."""
    values = lists.values
    with np.errstate(invalid="ignore"):
        is_bad = ~((values >= lowest) & (values < vertex_count))
        if values.dtype.kind == "f":
            is_bad |= values != np.floor(values)
    if is_bad.any():
        item = int(is_bad.argmax())
        row = int(np.searchsorted(np.cumsum(lists.counts), item, side="right"))
        raise UnreadableFile(
            f"{table.row_name('face', row)} refers to vertex {format_number(float(values[item]))}, but the file has "
            f"{vertex_count} vertices (from 0); export the model again"
        )
    # a file has fewer than 2³¹ vertices, because they are stored as rows of an int32 index
    return values.astype(np.int32, copy=False)


def _read_strips(table: ElementTable | None, vertex_count: int) -> Int32:
    """Return the (m, 3) faces of triangle strips. -1 starts a new strip; every second triangle is flipped."""
    lists = _find_indices(table)
    if table is None or lists is None or len(lists.values) < 3:
        return np.empty((0, 3), np.int32)
    indices = _check_indices(table, lists, vertex_count, lowest=-1)
    is_start = np.zeros(len(indices), np.bool_)
    is_start[(np.cumsum(lists.counts) - lists.counts)[lists.counts > 0]] = True
    is_start[1:] |= indices[:-1] < 0
    position = np.arange(len(indices))
    strip_position = position - np.maximum.accumulate(np.where(is_start, position, 0))
    last = np.flatnonzero((strip_position >= 2) & (indices >= 0))
    is_odd = strip_position[last] % 2 == 1
    a, b, c = indices[last - 2], indices[last - 1], indices[last]
    faces = np.stack([np.where(is_odd, b, a), np.where(is_odd, a, b), c], axis=1).astype(np.int32)
    # writers join strips with degenerate triangles
    has_area: Int32 = faces[(faces != np.roll(faces, 1, axis=1)).all(axis=1)]
    return has_area


def _add_materials(mesh: Mesh, face: ElementTable, polygon: Int32, source: Source, header: Header) -> Scene:
    """Build the scene with the textures or the colors of the faces.

    Args:
        polygon: (m,) row of `face` for each triangle, -1 for triangles of strips.
        source: The file, with its companions.
        header: The header, with the names of the textures.
    """
    if header.textures and mesh.uv is not None:
        materials, images = appearance.read_textures(source, header.textures)
        if images:
            return _build_scene(mesh, polygon, _texture_numbers(face, len(materials)), materials, images)
    colors = appearance.read_colors(face)
    if colors is None:
        return Scene((mesh,), (Part(0),))
    if mesh.colors is not None:
        note("face_colors_dropped", "the PLY file has vertex colors and face colors: dropped the face colors")
        return Scene((mesh,), (Part(0),))
    color_materials, index = _materials_from_colors(colors)
    return _build_scene(mesh, polygon, index, color_materials)


def _build_scene(
    mesh: Mesh, polygon: Int32, material: Int32, materials: tuple[Material, ...], images: tuple[Image, ...] = ()
) -> Scene:
    """Build the scene from the (p,) material of each polygon; triangles of strips get none."""
    face_material = np.full(len(polygon), -1, np.int32)
    is_polygon = polygon >= 0
    face_material[is_polygon] = material[polygon[is_polygon]]
    return Scene((replace(mesh, face_material=face_material),), (Part(0),), materials, images)


def _texture_numbers(face: ElementTable, texture_count: int) -> Int32:
    """Return the (p,) texture of each face, -1 for a number out of range; without numbers, the first texture."""
    numbers = face.columns.get("texnumber")
    if numbers is None:
        return np.zeros(face.count, np.int32)
    with np.errstate(invalid="ignore"):
        return np.where((numbers >= 0) & (numbers < texture_count), numbers, -1).astype(np.int32)


def _materials_from_colors(colors: UInt8) -> tuple[tuple[Material, ...], Int32]:
    """Return a material per distinct color, and the (p,) material of each row of (p, 4) colors."""
    first, index = weld(colors.view("<u4").astype(np.float64).reshape(-1, 1))
    materials = tuple(
        Material(base_color=(red, green, blue, alpha), alpha_mode="blend" if alpha < 1 else "opaque")
        for red, green, blue, alpha in (colors[first] / 255).tolist()
    )
    return materials, index


def _add_corner_uv(mesh: Mesh, face: ElementTable, corners: Index) -> Mesh:
    """Add the UV of each corner from a `texcoord` list; duplicate vertices whose corners have different UV.

    Args:
        mesh: Triangles of polygons, then triangles of strips, which get zero UV.
        corners: (p, 3) corners of the triangles of polygons.
    """
    uv_lists, index_lists = face.lists.get("texcoord"), _find_indices(face)
    if uv_lists is None or index_lists is None or not len(uv_lists.values):
        return mesh
    is_matching = uv_lists.counts == 2 * index_lists.counts
    if not is_matching.all():
        unmatched_count = int((~is_matching & (uv_lists.counts > 0)).sum())
        if unmatched_count:
            note(
                "texcoords_dropped",
                f"dropped the texture coordinates of {format_count(int(unmatched_count), 'face', 'faces')}: "
                "not two per corner",
                count=int(unmatched_count),
            )
    # position of each corner's pair among the values; corners of faces without pairs get zeros
    corner_count = index_lists.counts
    uv_start = np.cumsum(uv_lists.counts) - uv_lists.counts
    corner_in_face = np.arange(len(index_lists.values)) - np.repeat(
        np.cumsum(corner_count) - corner_count, corner_count
    )
    has_uv = np.repeat(is_matching, corner_count)
    if not has_uv.any():
        return mesh
    position = np.where(has_uv, np.repeat(uv_start, corner_count) + 2 * corner_in_face, 0)
    values = appearance.replace_non_finite(uv_lists.values)
    pairs = np.where(has_uv[:, None], np.stack([values[position], values[position + 1]], axis=1), np.float32(0))
    vertex = mesh.faces.reshape(-1)
    strip_corner_count = len(vertex) - corners.size
    uv = np.concatenate([pairs[corners.reshape(-1)], np.zeros((strip_corner_count, 2), np.float32)])
    keys: Float64 = np.column_stack([vertex.astype(np.float64), uv.astype(np.float64)])
    first, index = weld(keys)
    rows = vertex[first]
    return Mesh(
        mesh.vertices[rows],
        index.reshape(-1, 3),
        normals=None if mesh.normals is None else mesh.normals[rows],
        uv=uv[first],
        colors=None if mesh.colors is None else mesh.colors[rows],
    )
