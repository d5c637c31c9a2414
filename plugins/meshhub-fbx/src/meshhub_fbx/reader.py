"""FBX reader: ufbx parses the file and composes its transforms; its arrays are copied, because they end with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import ufbx
from numpy.typing import NDArray

from meshhub import EmptyModel, Frame, Mesh, ModelTooComplex, NoOptions, Part, Scene, Source, UnreadableFile, note
from meshhub.model.capabilities import MILLIMETRES_PER
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import distinct, unit_vectors
from meshhub.toolkit.names import single_line
from meshhub.toolkit.polygons import triangulate_corners
from meshhub_fbx.appearance import Appearance
from meshhub_fbx.elements import copy_array, hold, hold_all

_MAX_DEPTH_COUNT = 256
"""Nested nodes; bones of characters form chains of some dozens."""

_MAX_PARTS_COUNT = 100_000
"""Placed meshes."""

_UNIT_TOLERANCE_RATIO = 1e-6
"""Relative difference from a unit; files hold centimeters as float."""


_WIDTHS = {"normals": 3, "uv": 2, "colors": 4}
"""Components of each attribute."""


def read(source: Source, options: NoOptions) -> Scene:  # noqa: ARG001
    """Read an FBX file, binary or text, of versions 3000 to 7700.

    Returns:
        Scene in the unit of the file, Y up, in the bind pose.
    Raises:
        UnreadableFile: The file is damaged, or not FBX.
        EmptyModel: The file has no triangles.
        ModelTooComplex: The file has too many parts.
    """
    try:
        scene = hold(
            ufbx.load_memory(
                source.read(),
                file_format=ufbx.FileFormat.FBX,
                target_axes=ufbx.axes_right_handed_y_up,
                # by default, ufbx moves an index that is out of range to the last valid one
                index_error_handling=ufbx.IndexErrorHandling.ABORT_LOADING,
                node_depth_limit=_MAX_DEPTH_COUNT,
                load_external_files=False,
                ignore_animation=True,
                generate_missing_normals=False,
            )
        )
    except ufbx.UfbxError as error:
        reason = str(error).splitlines()[0][:80] if str(error) else "it is malformed"
        raise UnreadableFile(f"not a readable FBX file ({reason}); export the model again") from None
    frame, matrix = _read_frame(scene)
    builder = _Builder(Appearance(source), matrix)
    for node in hold_all(scene.nodes):
        mesh = hold(node.mesh)
        if mesh is not None:
            builder.add(node, mesh)
    if len(scene.nurbs_surfaces) or len(scene.procedural_geometries):
        note("surface_skipped", "skipped NURBS and procedural surfaces: only meshes are read")
    if not builder.parts:
        raise EmptyModel("the file has no triangles; export the model again")
    appearance = builder.appearance
    return Scene(
        tuple(builder.meshes),
        tuple(builder.parts),
        materials=tuple(appearance.materials),
        images=tuple(appearance.images),
        frame=frame,
    )


def _read_frame(scene: Any) -> tuple[Frame, Float64]:
    """Return the frame of the scene, and the matrix from the unit of the file to it. Raises UnreadableFile."""
    mm = scene.settings.unit_meters * MILLIMETRES_PER["m"]
    if not (np.isfinite(mm) and mm > 0):
        raise UnreadableFile(f"UnitScaleFactor gives {mm:g} mm, not a positive number; correct it in the file")
    for name, millimeters in MILLIMETRES_PER.items():
        if abs(mm / millimeters - 1) < _UNIT_TOLERANCE_RATIO:
            return Frame(name, "y"), np.eye(4)
    return Frame("mm", "y"), np.diag([mm, mm, mm, 1.0])


class _Builder:
    """Meshes and parts of a file.

    Attributes:
        meshes: Meshes, one for each mesh and set of materials.
        parts: Placed meshes.
    """

    def __init__(self, appearance: Appearance, matrix: Float64) -> None:
        self.meshes: list[Mesh] = []
        self.parts: list[Part] = []
        self.appearance = appearance
        self._matrix = matrix
        self._index: dict[tuple[int, tuple[int, ...]], int | None] = {}

    def add(self, node: Any, mesh: Any) -> None:
        """Add the mesh of a node. Raises UnreadableFile or ModelTooComplex."""
        if not node.visible:
            note("invisible_skipped", "skipped invisible objects")
            return
        if len(self.parts) >= _MAX_PARTS_COUNT:
            raise ModelTooComplex(f"the file places more than {_MAX_PARTS_COUNT} meshes; split the model")
        if len(mesh.skin_deformers) or len(mesh.blend_deformers):
            note("bind_pose", "dropped bones and morphs; the model has its bind pose")
        slots = hold_all(node.materials) or hold_all(mesh.materials)
        materials = tuple(self.appearance.material(each) for each in slots if each is not None)
        single = materials[0] if len(materials) == 1 else None
        key = (mesh.element_id, () if single is not None else materials)
        if key not in self._index:
            result = _read_mesh(mesh, key[1], [self.appearance.uv_sets[each] for each in materials])
            self._index[key] = None if result is None else len(self.meshes)
            if result is not None:
                self.meshes.append(result)
        index = self._index[key]
        if index is None:
            return
        columns = node.geometry_to_world
        matrix = np.eye(4)
        matrix[:3] = np.array([columns.c0, columns.c1, columns.c2, columns.c3]).T
        if not np.isfinite(matrix).all():
            raise UnreadableFile(f"node {node.name[:40]!r} has a transform that is not finite; export the file again")
        self.parts.append(Part(index, self._matrix @ matrix, single_line(node.name), _path(node), single))


def _path(node: Any) -> tuple[str, ...]:
    """Return the names of the groups of a node, outermost first."""
    names: list[str] = []
    parent = hold(node.parent)
    while parent is not None and not parent.is_root:
        names.append(single_line(parent.name))
        parent = hold(parent.parent)
    return tuple(name for name in reversed(names) if name)


def _read_mesh(mesh: Any, materials: tuple[int, ...], uv_sets: list[str]) -> Mesh | None:
    """Return a mesh; None if it has no triangles. `materials` are those of its slots, or none for a single one."""
    faces = copy_array(mesh.faces, np.int64, 2)
    positions = copy_array(mesh.vertex_position.values, np.float64, 3)
    if len(faces) == 0 or mesh.num_triangles == 0:
        return None
    point = copy_array(mesh.vertex_position.indices, np.int64)
    counts = faces[:, 1]
    if (faces[:, 0] != np.cumsum(counts) - counts).any():
        raise UnreadableFile(f"mesh {mesh.name[:40]!r}: its faces do not follow each other; export the model again")
    corners, polygon = triangulate_corners(positions, counts, point[: int(counts.sum())])
    if len(mesh.face_hole):
        keep = ~copy_array(mesh.face_hole, np.bool_)[polygon]
        corners, polygon = corners[keep], polygon[keep]
    if mesh.reversed_winding:
        corners = corners[:, ::-1]
    uv = next((each.vertex_uv for each in hold_all(mesh.uv_sets) if each.name in uv_sets and each.name), mesh.vertex_uv)
    attributes = {"normals": mesh.vertex_normal, "uv": uv, "colors": mesh.vertex_color}
    present = {name: each for name, each in attributes.items() if each.exists}
    columns = [point[corners], *(copy_array(each.indices, np.int64)[corners] for each in present.values())]
    rows, index = distinct(np.stack([column.ravel() for column in columns], axis=1).astype(np.int32))
    gathered: dict[str, Any] = {}
    for column, (name, each) in enumerate(present.items(), 1):
        values = copy_array(each.values, np.float64, _WIDTHS[name])[rows[:, column]]
        gathered[name] = _convert(name, np.where(np.isfinite(values), values, 0.0))
    face_material = None
    if materials and len(mesh.face_material):
        slot = copy_array(mesh.face_material, np.int64)[polygon]
        face_material = np.array([*materials, -1], np.int32)[np.minimum(slot, len(materials))]
    return Mesh(
        positions[rows[:, 0]],
        index.reshape(-1, 3),
        face_material=face_material,
        name=single_line(mesh.name),
        **gathered,
    )


def _convert(name: str, values: Float64) -> NDArray[Any]:
    """Return attribute values in the type of the scene."""
    if name == "normals":
        return unit_vectors(values).astype(np.float32)
    if name == "colors":
        return np.rint(np.clip(values, 0, 1) * 255).astype(np.uint8)
    return values.astype(np.float32)
