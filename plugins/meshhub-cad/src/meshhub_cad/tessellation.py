"""Triangles of kernel shapes, without a Python loop over triangles.

The triangulations of all faces are serialized in the kernel's binary format (BinTools, version 1), and numpy reads them
in place.
"""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from meshhub import UnreadableFile
from meshhub.toolkit.geometry import distinct
from meshhub.toolkit.opencascade import explore, is_kernel_failure
from meshhub.toolkit.topology import Edges, components, edges, half_edges

MIN_DEVIATION_RATIO = 2e-5
"""Share of the diagonal of a body's box; a finer deviation would take minutes for bodies of several meters."""
MAX_DEVIATION_RATIO = 1e-2
"""Share of the diagonal of a body's box; a larger deviation would make small bodies angular."""
MAX_COORDINATE_MM = 1e9
"""Millimeters (1000 km); larger geometry is damaged, and the kernel would triangulate for hours."""

_GAP_RATIO = 3.0
"""Gap between points of two faces that is closed, as a multiple of the largest tolerance of an edge, because each face
may be one tolerance away from the edge.
"""

_MARK = b"\nTriangulations "
"""Precedes the number of triangulations and their data in the kernel's binary format."""

Points = NDArray[np.float64]
Index = NDArray[np.integer[Any]]


class BodyMesh(NamedTuple):
    """Triangles of a body.

    vertices:          (n, 3) millimeters; different solids share no vertices
    faces:             (m, 3) vertex indices
    kernel_face:       (m,) position of each triangle's face among the faces of the shape
    face_count:        faces of the shape
    loose_face_count:  faces outside solids
    failed_face_count: faces without triangles
    open_solid_count:  solids whose triangles do not close
    solid_count:       solids of the shape
    deviation_mm:      deviation that was used
    """

    vertices: Points
    faces: NDArray[np.int32]
    kernel_face: Index
    face_count: int
    loose_face_count: int
    failed_face_count: int
    open_solid_count: int
    solid_count: int
    deviation_mm: float


def list_faces(shape: Any) -> tuple[list[Any], Index]:
    """Return the faces of a shape, those of solids first, and the number of each face's solid; 0 for none.

    A solid that a compound holds several times in one place is listed once, and so is a face outside solids, unless it
    is a face of a solid.
    """
    from OCP.TopAbs import TopAbs_FACE, TopAbs_SOLID

    faces: list[Any] = []
    solids: list[int] = []
    for number, solid in enumerate(_distinct(explore(shape, TopAbs_SOLID)), 1):
        own = list(explore(solid, TopAbs_FACE))
        faces += own
        solids += [number] * len(own)
    loose = list(_distinct(explore(shape, TopAbs_FACE, TopAbs_SOLID), faces))
    return faces + loose, np.array(solids + [0] * len(loose), np.intp)


def _distinct(shapes: Iterable[Any], known: Iterable[Any] = ()) -> Iterator[Any]:
    """Yield shapes without known ones and those that were yielded before: the same geometry in the same place."""
    from OCP.collections import IndexedMap_TopoDS_Shape_TopTools_ShapeMapHasher

    seen = IndexedMap_TopoDS_Shape_TopTools_ShapeMapHasher()
    for shape in known:
        seen.Add(shape)
    for shape in shapes:
        count = seen.Extent()
        seen.Add(shape)
        if seen.Extent() > count:
            yield shape


def tessellate(shape: Any, deviation_mm: float, angle_rad: float, label: str) -> BodyMesh | None:
    """Triangulate a shape of the kernel.

    Args:
        shape: Shape, millimeters.
        deviation_mm: Maximum distance of a triangle from the surface; clamped to shares of the shape's diagonal.
        angle_rad: Maximum angle between neighboring segments of a curve.
        label: Format of the file, for messages.
    Returns:
        Triangles, outward for closed solids; None if the shape has no face.
    Raises:
        UnreadableFile: The shape has no extent, or exceeds MAX_COORDINATE_MM.
    """
    from OCP.IMeshTools import IMeshTools_MeshAlgoType_Delabella, IMeshTools_MeshAlgoType_Watson

    faces, solid = list_faces(shape)
    if not faces:
        return None
    diagonal = _diagonal_mm(shape, label)
    used_mm = min(max(deviation_mm, MIN_DEVIATION_RATIO * diagonal), MAX_DEVIATION_RATIO * diagonal)
    best: BodyMesh | None = None
    failures: list[Exception] = []
    # Delabella's algorithm is faster, and the other one closes some solids that it leaves open
    for algorithm in (IMeshTools_MeshAlgoType_Delabella, IMeshTools_MeshAlgoType_Watson):
        try:
            _triangulate(shape, used_mm, angle_rad, algorithm)
        except Exception as failure:
            if not is_kernel_failure(failure):
                raise
            failures.append(failure)
            continue
        mesh = _collect(faces, solid, used_mm)
        defects = mesh.failed_face_count + mesh.open_solid_count
        if best is None or defects < best.failed_face_count + best.open_solid_count:
            best = mesh
        if defects == 0:
            break
    if best is None:
        raise failures[0]
    return best


def _triangulate(shape: Any, deviation_mm: float, angle_rad: float, algorithm: Any) -> None:
    from OCP.BRepMesh import BRepMesh_IncrementalMesh
    from OCP.BRepTools import BRepTools
    from OCP.IMeshTools import IMeshTools_Parameters

    # the kernel would keep triangles from the file, however coarse they are
    BRepTools.Clean_s(shape)
    parameters = IMeshTools_Parameters()
    parameters.Deflection = deviation_mm
    parameters.Angle = angle_rad
    parameters.Relative = False
    # the engine sets OMP_NUM_THREADS=1 in workers, because other workers use the remaining cores
    parameters.InParallel = os.environ.get("OMP_NUM_THREADS") != "1" and (os.cpu_count() or 1) > 1
    parameters.MeshAlgo = algorithm
    BRepMesh_IncrementalMesh(shape, parameters)


def _collect(faces: list[Any], solid: Index, deviation_mm: float) -> BodyMesh:
    """Return the triangles that the faces have in the kernel."""
    points, triangles, owner, counts = _join([_triangulation(face) for face in faces], faces)
    # the solid's number is a coordinate of the point, so that touching solids are welded separately and stay closed
    rows, index = distinct(np.column_stack([points, solid[owner].astype(np.float64)]))
    welded = _close_gaps(rows, index[triangles], min(_GAP_RATIO * _edge_tolerance_mm(faces), deviation_mm))
    # the kernel closes poles and seams with degenerate triangles
    a, b, c = welded.T
    proper = (a != b) & (b != c) & (c != a)
    vertices, kept = np.ascontiguousarray(rows[:, :3]), welded[proper]
    face = np.repeat(np.arange(len(faces)), counts)[proper]
    is_open = _open_solids(kept, solid[face], int(solid.max(initial=0)))
    kept = _turn_outward(vertices, kept, solid[face], is_open)
    return BodyMesh(
        vertices,
        kept.astype(np.int32),
        face,
        face_count=len(faces),
        loose_face_count=int((solid == 0).sum()),
        failed_face_count=int((counts == 0).sum()),
        open_solid_count=int(is_open[1:].sum()),
        solid_count=int(solid.max(initial=0)),
        deviation_mm=deviation_mm,
    )


def _edge_tolerance_mm(faces: list[Any]) -> float:
    """Return the largest tolerance of the edges, because faces that share an edge may be that far from it."""
    from OCP.BRep import BRep_Tool
    from OCP.TopAbs import TopAbs_EDGE
    from OCP.TopoDS import TopoDS

    tolerances = (BRep_Tool.Tolerance_s(TopoDS.Edge(edge)) for face in faces for edge in explore(face, TopAbs_EDGE))
    return max(tolerances, default=0.0)


def _close_gaps(rows: Points, triangles: Index, gap_mm: float) -> Index:
    """Weld the points on open edges that are closer than a gap; points of different solids stay apart.

    The triangles of two faces end at slightly different points where the faces were sewn.

    Args:
        rows: (n, 4) points, and the number of the solid of each.
        triangles: (m, 3) indices of points.
        gap_mm: Largest gap.
    """
    if len(triangles) == 0:
        return triangles
    begin, end = half_edges(triangles)
    unbalanced, grouped = _unbalanced_edges(triangles)
    half = grouped.order[grouped.start[unbalanced]]
    border = np.unique(np.concatenate([begin[half], end[half]]))
    if len(border) < 2:
        return triangles
    # the factor moves different solids out of reach of each other
    points = rows[border] * (1.0, 1.0, 1.0, 4 * MAX_COORDINATE_MM)
    near, neighbor = cKDTree(points).query(points, k=4, distance_upper_bound=gap_mm)
    first, nth = np.nonzero(np.isfinite(near[:, 1:]))
    _, label = components(len(border), first, neighbor[first, nth + 1])
    representative = np.arange(len(rows))
    _, chosen = np.unique(label, return_index=True)
    representative[border] = border[chosen[label]]
    return representative[triangles]


def _unbalanced_edges(triangles: Index) -> tuple[NDArray[np.bool_], Edges]:
    """Return which edges more triangles use in one direction than in the other, and all edges."""
    grouped = edges(triangles)
    begin, end = half_edges(triangles)
    direction = np.where(begin < end, 1, -1)[grouped.order]
    return np.add.reduceat(direction, grouped.start) != 0, grouped


def _open_solids(triangles: Index, solid: Index, count: int) -> NDArray[np.bool_]:
    """Return (count + 1,) whether the triangles of each solid leave edges open."""
    is_open = np.ones(count + 1, np.bool_)
    is_open[np.unique(solid)] = False
    if len(triangles):
        # each edge of a closed solid is used by as many triangles in one direction as in the other
        unbalanced, grouped = _unbalanced_edges(triangles)
        is_open[solid[grouped.order[grouped.start[unbalanced]] // 3]] = True
    return is_open


def _turn_outward(vertices: Points, triangles: Index, solid: Index, is_open: NDArray[np.bool_]) -> Index:
    """Reverse the triangles of closed solids that are inside out."""
    a, b, c = (vertices[triangles[:, corner]] for corner in range(3))
    volume = np.bincount(solid, np.einsum("ij,ij->i", a, np.cross(b, c)), len(is_open))
    inside_out = (volume < 0) & ~is_open
    inside_out[0] = False
    return np.where(inside_out[solid][:, None], triangles[:, ::-1], triangles)


def _diagonal_mm(shape: Any, label: str) -> float:
    from OCP.Bnd import Bnd_Box
    from OCP.BRepBndLib import BRepBndLib

    box = Bnd_Box()
    BRepBndLib.Add_s(shape, box, False)
    if box.IsVoid():
        raise UnreadableFile(f"the faces of the {label} file have no extent: its geometry is damaged; export it again")
    low, high = box.CornerMin(), box.CornerMax()
    corners = np.array([[low.X(), low.Y(), low.Z()], [high.X(), high.Y(), high.Z()]])
    # written so that NaN is rejected, too
    if not np.abs(corners).max() < MAX_COORDINATE_MM:
        raise UnreadableFile(f"the {label} file is larger than 1000 km: its geometry is damaged; export it again")
    return float(np.linalg.norm(corners[1] - corners[0]))


def _triangulation(face: Any) -> tuple[Any, Any]:
    """Return the triangulation of a face, None if it has no triangle, and its location."""
    from OCP.BRep import BRep_Tool
    from OCP.TopLoc import TopLoc_Location
    from OCP.TopoDS import TopoDS

    location = TopLoc_Location()
    triangulation = BRep_Tool.Triangulation_s(TopoDS.Face(face), location)
    return (None if triangulation is None or triangulation.NbTriangles() == 0 else triangulation), location


def _join(triangulations: list[tuple[Any, Any]], faces: list[Any]) -> tuple[Points, Index, Index, Index]:
    """Return the points (n, 3) of all faces, triangles (m, 3), the face (n,) of each point, and triangles per face."""
    from OCP.TopAbs import TopAbs_REVERSED

    blocks = _serialize([triangulation for triangulation, _ in triangulations if triangulation is not None])
    points: list[Points] = [np.empty((0, 3))]
    triangles: list[Index] = [np.empty((0, 3), np.int64)]
    sizes, counts = np.zeros(len(faces), np.int64), np.zeros(len(faces), np.int64)
    offset = 0
    for number, ((triangulation, location), face) in enumerate(zip(triangulations, faces, strict=True)):
        if triangulation is None:
            continue
        nodes, corners = blocks.pop(0)
        inside_out = face.Orientation() == TopAbs_REVERSED
        if not location.IsIdentity():
            transformation = location.Transformation()
            matrix = np.array([[transformation.Value(row, column) for column in range(1, 5)] for row in range(1, 4)])
            nodes = nodes @ matrix[:, :3].T + matrix[:, 3]
            inside_out ^= transformation.IsNegative()
        points.append(nodes)
        # the kernel numbers nodes from 1
        triangles.append((corners[:, ::-1] if inside_out else corners) + np.int64(offset - 1))
        sizes[number], counts[number] = len(nodes), len(corners)
        offset += len(nodes)
    return np.concatenate(points), np.concatenate(triangles), np.repeat(np.arange(len(faces)), sizes), counts


def _serialize(triangulations: list[Any]) -> list[tuple[Points, Index]]:
    """Return nodes and triangles of each triangulation, by way of the kernel's binary format."""
    from OCP.BinTools import BinTools, BinTools_FormatVersion_VERSION_1
    from OCP.BRep import BRep_Builder
    from OCP.Message import Message_ProgressRange
    from OCP.TopoDS import TopoDS_Compound, TopoDS_Face

    # the kernel writes a triangulation that several faces share once
    unique = {id(triangulation): triangulation for triangulation in triangulations}
    if not unique:
        return []
    builder, compound = BRep_Builder(), TopoDS_Compound()
    builder.MakeCompound(compound)
    for triangulation in unique.values():
        face = TopoDS_Face()
        builder.MakeFace(face, triangulation)
        builder.Add(compound, face)
    stream = io.BytesIO()
    BinTools.Write_s(compound, stream, True, False, BinTools_FormatVersion_VERSION_1, Message_ProgressRange())
    buffer = stream.getvalue()
    start = buffer.index(_MARK) + len(_MARK)
    offset = buffer.index(b"\n", start)
    if int(buffer[start:offset]) != len(unique):
        raise RuntimeError("OpenCASCADE wrote a different number of triangulations than it received")
    offset += 1
    blocks: dict[int, tuple[Points, Index]] = {}
    for key in unique:
        node_count, triangle_count, has_uv = struct.unpack_from("<ii?", buffer, offset)
        # the counts and the flag, then the deflection (float64)
        offset += 9 + 8
        nodes = np.frombuffer(buffer, "<f8", 3 * node_count, offset).reshape(-1, 3)
        offset += 24 * node_count + 16 * node_count * has_uv
        blocks[key] = nodes, np.frombuffer(buffer, "<i4", 3 * triangle_count, offset).reshape(-1, 3)
        offset += 12 * triangle_count
    return [blocks[id(triangulation)] for triangulation in triangulations]
