"""Meshes of USD as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pxr import Usd, UsdGeom, UsdShade

from meshhub import Mesh, UnreadableFile, note
from meshhub.toolkit.colors import encode_srgb
from meshhub.toolkit.geometry import distinct, unit_vectors
from meshhub.toolkit.polygons import triangulate_corners
from meshhub_usdz.appearance import DEFAULT_UV, ReadAppearance
from meshhub_usdz.shapes import build_shape

Index = NDArray[np.int64]
Values = NDArray[np.float64]

_PER_CORNER, _PER_FACE, _CONSTANT = "faceVarying", "uniform", "constant"


@dataclass(frozen=True)
class _Attribute:
    """Values, and the row of each corner of each triangle."""

    values: Values
    rows: Index


@dataclass(frozen=True)
class _Topology:
    """Triangles of a mesh: positions of their corners in the list of all corners, and their polygons."""

    point_count: int
    corner_point: Index
    corners: Index
    polygon: NDArray[np.int32]
    polygon_count: int


def read_mesh(prim: Any, time: Any, appearance: ReadAppearance) -> tuple[Mesh | None, int | None]:
    """Read a UsdGeomMesh.

    The mesh, or None if it has no triangles, and the material of the faces that have none themselves.
    Raises:
        UnreadableFile: Indices or counts do not match.
    """
    mesh = UsdGeom.Mesh(prim)
    points = _array(mesh.GetPointsAttr().Get(time), 3)
    topology = _read_topology(mesh, points, time)
    if topology is None:
        return None, None
    if mesh.GetSubdivisionSchemeAttr().HasAuthoredValue() and mesh.GetSubdivisionSchemeAttr().Get() != "none":
        note("subdivision_dropped", "read the control cage of subdivision surfaces, without smoothing them")
    own = {"normals": _read_normals(mesh, topology, time)}
    return _assemble(
        mesh, points, topology, time, appearance, own, is_flipped=mesh.GetOrientationAttr().Get() == "leftHanded"
    )


def read_shape(prim: Any, time: Any, appearance: ReadAppearance) -> tuple[Mesh | None, int | None]:
    """Read a shape that is not a mesh: its triangles, as `read_mesh` does."""
    shape = build_shape(prim, time)
    if shape is None:
        note("shape_skipped", f"skipped a {prim.GetTypeName()}: only meshes and solid shapes are read")
        return None, None
    points, faces = shape
    if len(faces) == 0:
        return None, None
    corners: Index = np.arange(3 * len(faces)).reshape(-1, 3)
    topology = _Topology(len(points), faces.ravel(), corners, np.arange(len(faces), dtype=np.int32), len(faces))
    return _assemble(UsdGeom.Gprim(prim), points, topology, time, appearance, {}, is_flipped=False)


def _assemble(
    mesh: Any,
    points: Values,
    topology: _Topology,
    time: Any,
    appearance: ReadAppearance,
    own: dict[str, _Attribute | None],
    *,
    is_flipped: bool,
) -> tuple[Mesh, int | None]:
    """Return a mesh with its attributes, and the material of the faces that have none themselves."""
    face_material, base = _read_bindings(mesh, topology, time, appearance)
    used = sorted({*np.unique(face_material).tolist(), *([] if base is None else [base])} - {-1})
    attributes = {
        **own,
        "uv": _read_uv(mesh, topology, time, [appearance.uv_names[index] for index in used]),
    }
    # a material hides vertex colors unless it reads them
    if not used or any(appearance.shows_colors[index] for index in used):
        attributes["colors"] = _read_colors(mesh, topology, time)
    present = {name: each for name, each in attributes.items() if each is not None}
    columns = [topology.corner_point[topology.corners], *(each.rows for each in present.values())]
    rows, index = distinct(np.stack([column.ravel() for column in columns], axis=1).astype(np.int32))
    faces = index.reshape(-1, 3)
    if is_flipped:
        faces = faces[:, ::-1]
    gathered: dict[str, Any] = {
        name: each.values[rows[:, column]] for column, (name, each) in enumerate(present.items(), 1)
    }
    for name in ("normals", "uv"):
        if name in gathered:
            gathered[name] = gathered[name].astype(np.float32)
    if "colors" in gathered:
        gathered["colors"] = np.rint(gathered["colors"] * 255).astype(np.uint8)
    material = face_material if (face_material >= 0).any() else None
    return Mesh(points[rows[:, 0]], faces, face_material=material, **gathered), base


def _array(values: Any, width: int) -> Values:
    """Return (n, width) float64."""
    if values is None:
        return np.empty((0, width))
    return np.array(values, np.float64).reshape(-1, width)


def _read_topology(mesh: Any, points: Values, time: Any) -> _Topology | None:
    """Return the triangles of a mesh; None without any. Raises UnreadableFile."""
    counts: Index = np.array(mesh.GetFaceVertexCountsAttr().Get(time) or (), np.int64)
    indices: Index = np.array(mesh.GetFaceVertexIndicesAttr().Get(time) or (), np.int64)
    name = mesh.GetPrim().GetName()[:40]
    if len(counts) and (counts.min() < 0 or counts.sum() != len(indices)):
        raise UnreadableFile(f"mesh {name!r}: the corners of its faces do not add up; export the model again")
    if len(indices) and (indices.min() < 0 or indices.max() >= len(points)):
        raise UnreadableFile(f"mesh {name!r}: an index lies outside 0 … {len(points) - 1}; export the model again")
    corners, polygon = triangulate_corners(points, counts, indices)
    holes = np.array(mesh.GetHoleIndicesAttr().Get(time) or (), np.int64)
    if len(holes):
        keep = ~np.isin(polygon, holes)
        corners, polygon = corners[keep], polygon[keep]
    if len(corners) == 0:
        return None
    return _Topology(len(points), indices, corners, polygon, len(counts))


def _attribute(values: Values, interpolation: str, topology: _Topology, what: str) -> _Attribute | None:
    """Return the values of a primvar per corner; None, with a note, if their number is wrong."""
    if interpolation == _CONSTANT:
        needed, rows = 1, np.zeros_like(topology.corners)
    elif interpolation == _PER_FACE:
        needed = topology.polygon_count
        rows = np.repeat(topology.polygon[:, None].astype(np.int64), 3, axis=1)
    elif interpolation == _PER_CORNER:
        needed, rows = len(topology.corner_point), topology.corners
    else:
        needed, rows = topology.point_count, topology.corner_point[topology.corners]
    if len(values) < needed or not np.isfinite(values).all():
        note("attribute_skipped", f"skipped {what} of a mesh: {len(values)} values instead of {needed}")
        return None
    return _Attribute(values, rows)


def _read_normals(mesh: Any, topology: _Topology, time: Any) -> _Attribute | None:
    primvar = UsdGeom.PrimvarsAPI(mesh).GetPrimvar("normals")
    if primvar and primvar.HasValue():
        values, interpolation = _array(primvar.ComputeFlattened(time), 3), str(primvar.GetInterpolation())
    elif mesh.GetNormalsAttr().HasValue():
        values, interpolation = _array(mesh.GetNormalsAttr().Get(time), 3), str(mesh.GetNormalsInterpolation())
    else:
        return None
    return _attribute(unit_vectors(values), interpolation, topology, "normals")


def _read_uv(mesh: Any, topology: _Topology, time: Any, names: list[str]) -> _Attribute | None:
    api = UsdGeom.PrimvarsAPI(mesh)
    candidates = [api.GetPrimvar(name) for name in (*names, DEFAULT_UV)]
    candidates += [each for each in api.GetPrimvarsWithValues() if "texCoord" in str(each.GetTypeName())]
    for primvar in candidates:
        kind = str(primvar.GetTypeName()) if primvar and primvar.HasValue() else ""
        if kind.startswith(("texCoord2", "float2", "double2", "half2")) and kind.endswith("[]"):
            values = _array(primvar.ComputeFlattened(time), 2)
            return _attribute(values, str(primvar.GetInterpolation()), topology, "texture coordinates")
    return None


def _read_colors(mesh: Any, topology: _Topology, time: Any) -> _Attribute | None:
    """Return display colors and opacities as sRGB fractions with alpha."""
    primvar, opacity = mesh.GetDisplayColorPrimvar(), mesh.GetDisplayOpacityPrimvar()
    if not primvar.HasValue():
        return None
    rgb = encode_srgb(_array(primvar.ComputeFlattened(time), 3))
    colors = _attribute(np.column_stack([rgb, np.ones(len(rgb))]), str(primvar.GetInterpolation()), topology, "colors")
    if colors is None or not opacity.HasValue():
        return colors
    alpha = np.clip(_array(opacity.ComputeFlattened(time), 1), 0, 1)
    if opacity.GetInterpolation() == primvar.GetInterpolation() and len(alpha) == len(rgb):
        colors.values[:, 3] = alpha[:, 0]
    elif len(alpha) == 1:
        colors.values[:, 3] = alpha[0, 0]
    return colors


def _read_bindings(
    mesh: Any, topology: _Topology, time: Any, appearance: ReadAppearance
) -> tuple[NDArray[np.int32], int | None]:
    """Return the material of each triangle, -1 for that of the mesh, and the material of the mesh."""
    binding = UsdShade.MaterialBindingAPI(mesh.GetPrim())
    polygons = np.full(topology.polygon_count, -1, np.int32)
    for subset in binding.GetMaterialBindSubsets():
        bound = UsdShade.MaterialBindingAPI(subset.GetPrim()).ComputeBoundMaterial()[0]
        indices = np.array(subset.GetIndicesAttr().Get(time) or (), np.int64)
        if bound and len(indices):
            if indices.min() < 0 or indices.max() >= len(polygons):
                raise UnreadableFile(f"subset {subset.GetPrim().GetName()[:40]!r} has faces that do not exist")
            polygons[indices] = appearance.material(bound)
    bound = binding.ComputeBoundMaterial()[0]
    base = appearance.material(bound) if bound else None
    return polygons[topology.polygon], base


def earliest(stage: Any) -> Any:
    """Return the time at which a stage is read: its start if it is animated."""
    if stage.HasAuthoredTimeCodeRange():
        note("first_frame", "read the first frame of the animation")
        return Usd.TimeCode(stage.GetStartTimeCode())
    return Usd.TimeCode.EarliestTime()
