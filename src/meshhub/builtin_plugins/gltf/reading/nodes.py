"""Walk the node tree: where each mesh is placed, and under which names."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from meshhub.builtin_plugins.gltf.reading.accessors import Accessors
from meshhub.builtin_plugins.gltf.reading.json_object import JsonObject
from meshhub.errors import ModelTooComplex, UnreadableFile
from meshhub.model.notes import note
from meshhub.model.scene import Float64

_MAX_PLACEMENTS_COUNT = 250_000
"""Maximum parts of a scene; bounds the memory and time that small files with instancing can cost."""
_MAX_REPEATS_COUNT = 10_000
"""Maximum visits of nodes that were visited before; a chain of nodes with two parents each would double at every level.
"""
_MAX_PATH_COUNT = 64
"""Maximum groups in the path of a part; deeper ones are not named: the paths of a deep chain grow quadratically. """
_MAX_AFFINE_ERROR = 1e-6
"""Deviation of the last row of a matrix from 0 0 0 1 that counts as rounding."""
_MAX_BIND_ERROR = 1e-5
"""The same for a product of two float32 matrices."""
_MIN_DETERMINANT = 1e-30
"""Determinant below which a bind matrix flattens its mesh and is ignored."""

_IDENTITY = tuple(np.eye(4).ravel().tolist())
_LAST_ROW = (0.0, 0.0, 0.0, 1.0)
_NO_ROTATION = (0.0, 0.0, 0.0, 1.0)
_INSTANCING = "EXT_mesh_gpu_instancing"


@dataclass(frozen=True, eq=False)
class MeshPlacement:
    """A mesh placed in the scene.

    mesh:      position in `meshes`
    referrer:  JSON path of the value that holds it
    transform: (4, 4) matrix for column vectors
    name:      name of the node
    path:      names of the nodes above it
    """

    mesh: int
    referrer: str
    transform: Float64
    name: str
    path: tuple[str, ...]


def _is_hidden(node: JsonObject) -> bool:
    visibility = node.extension("KHR_node_visibility")
    return visibility is not None and not visibility.flag("visible", True)


class NodeWalk:
    """Walk over the nodes of a scene, without recursion.

    Some exporters give a node several parents to place it several times, although glTF 2.0 §3.5.2 forbids it. Such a
    node is placed below each parent, up to `_MAX_REPEATS_COUNT` times. A cycle raises an error.

    Attributes:
        placements:   Placed meshes.
        hidden_count: Nodes that were left out with those below them, because they are hidden.
    """

    def __init__(self, document: JsonObject, accessors: Accessors, *, reads_hidden: bool) -> None:
        self.placements: list[MeshPlacement] = []
        self.hidden_count = 0
        self._reads_hidden = reads_hidden
        self._document = document
        self._accessors = accessors
        self._visited: set[int] = set()
        self._repeat_count = 0
        self._first_joints = _find_first_joints(document.values("skins"))
        self._joint_transforms: dict[int, Float64] = {}
        self._skinned: list[tuple[JsonObject, MeshPlacement]] = []

    def run(self, roots: list[int], referrer: str) -> None:
        """Place all meshes below the roots.

        Args:
            roots: Positions in `nodes`.
            referrer: JSON path of the list that holds them.
        Raises:
            UnreadableFile: A node is invalid, or its own descendant.
            ModelTooComplex: The scene has too many parts.
        """
        for root in roots:
            if root in self._visited:
                note("node_repeated", f"{referrer} names nodes[{root}] again; it was placed once")
            else:
                self._descend(root, referrer)
        self._place_skinned()

    def _descend(self, root: int, root_referrer: str) -> None:
        ancestors: set[int] = set()
        # ~index on the stack marks the point at which all nodes below that node are done
        stack: list[tuple[int, str, Float64, tuple[str, ...]]] = [(root, root_referrer, np.eye(4), ())]
        while stack:
            index, referrer, parent, path = stack.pop()
            if index < 0:
                ancestors.discard(~index)
                continue
            node = self._document.entry("nodes", index, referrer)
            self._check_visit(index, referrer, ancestors)
            if not self._reads_hidden and _is_hidden(node):
                self.hidden_count += 1
                continue
            local = _read_transform(node)
            transform = parent if local is None else parent @ local
            if index in self._first_joints:
                self._joint_transforms[index] = transform
            name = node.name()
            self._place(node, transform, name, path)
            child_path = (*path, name) if name and len(path) < _MAX_PATH_COUNT else path
            child_referrer = node.path_of("children")
            children = node.indices("children")
            if children:
                ancestors.add(index)
                stack.append((~index, "", transform, ()))
                stack += [(child, child_referrer, transform, child_path) for child in reversed(children)]

    def _check_visit(self, index: int, referrer: str, ancestors: set[int]) -> None:
        if index in ancestors:
            raise UnreadableFile(
                f"{referrer} names nodes[{index}], its own ancestor; the glTF file is damaged, export it again"
            )
        if index not in self._visited:
            self._visited.add(index)
            return
        self._repeat_count += 1
        if self._repeat_count > _MAX_REPEATS_COUNT:
            raise UnreadableFile(
                f"{referrer} names nodes[{index}], which has other parents, like over {_MAX_REPEATS_COUNT} nodes; "
                "the glTF file is damaged, export it again"
            )
        note("node_repeated", "the file has nodes with several parents; they were placed below each parent")

    def _place(self, node: JsonObject, transform: Float64, name: str, path: tuple[str, ...]) -> None:
        mesh = node.integer_or_none("mesh")
        if mesh is None:
            return
        referrer = node.path_of("mesh")
        instancing = node.extension(_INSTANCING)
        if instancing is not None:
            transforms = transform @ self._read_instances(instancing)
            self._check_count(len(transforms))
            self.placements += [MeshPlacement(mesh, referrer, instance, name, path) for instance in transforms]
            return
        self._check_count(1)
        placement = MeshPlacement(mesh, referrer, transform, name, path)
        if node.data.get("skin") is not None and self._document.values("skins"):
            self._skinned.append((node, placement))
        else:
            self.placements.append(placement)

    def _check_count(self, added: int) -> None:
        if len(self.placements) + len(self._skinned) + added > _MAX_PLACEMENTS_COUNT:
            raise ModelTooComplex(
                f"the model places more than {_MAX_PLACEMENTS_COUNT} parts; join some of them before the export",
                values={"limit": _MAX_PLACEMENTS_COUNT},
            )

    def _read_instances(self, extension: JsonObject) -> Float64:
        """Return the (n, 4, 4) matrices of EXT_mesh_gpu_instancing."""
        attributes = extension.child_or_empty("attributes")
        columns: dict[str, Float64] = {}
        for name, width in (("TRANSLATION", 3), ("ROTATION", 4), ("SCALE", 3)):
            index = attributes.integer_or_none(name)
            if index is None:
                continue
            rows = self._accessors.read(index, attributes.path_of(name))
            if rows.width != width:
                attributes.reject(name, f"must have {width} components")
            self._check_count(len(rows))
            columns[name] = rows.as_floats()
        counts = {len(values) for values in columns.values()}
        if len(counts) != 1:
            extension.reject("attributes", "must have TRANSLATION, ROTATION or SCALE, with the same count")
        count = counts.pop()
        return _compose(
            columns.get("TRANSLATION", np.zeros((count, 3))),
            columns.get("ROTATION", np.tile(_NO_ROTATION, (count, 1))),
            columns.get("SCALE", np.ones((count, 3))),
        )

    def _place_skinned(self) -> None:
        """Place skinned meshes in their bind pose; glTF 2.0 §3.7.3.3 ignores the transform of their own node."""
        for node, placement in self._skinned:
            note("skin_ignored", "the model has a skeleton; it was read in its bind pose")
            try:
                transform = self._read_bind_pose(node)
            except UnreadableFile as error:
                note("skin_ignored", error.message)
                transform = None
            self.placements.append(placement if transform is None else replace(placement, transform=transform))

    def _read_bind_pose(self, node: JsonObject) -> Float64 | None:
        """Return the world matrix of a skinned mesh in its bind pose; None if it is unusable.

        In that pose, the world matrix of every joint times its inverse bind matrix is the same; the first one is used.
        """
        skin = self._document.entry("skins", node.integer("skin"), node.path_of("skin"))
        joints = skin.values("joints")
        joint = self._joint_transforms.get(joints[0]) if joints and isinstance(joints[0], int) else None
        index = skin.integer_or_none("inverseBindMatrices")
        if joint is None or index is None:
            return joint
        transform = joint @ self._accessors.read_first_matrix(index, skin.path_of("inverseBindMatrices"))
        is_usable = np.isfinite(transform).all() and abs(np.linalg.det(transform[:3, :3])) > _MIN_DETERMINANT
        if not is_usable or not np.allclose(transform[3], _LAST_ROW, atol=_MAX_BIND_ERROR):
            return None
        transform[3] = _LAST_ROW
        return transform


def _find_first_joints(skins: list[object]) -> frozenset[int]:
    """Return the first joint of each skin."""
    joints = set()
    for skin in skins:
        names = skin.get("joints") if isinstance(skin, dict) else None
        if isinstance(names, list) and names and isinstance(names[0], int):
            joints.add(names[0])
    return frozenset(joints)


def _read_transform(node: JsonObject) -> Float64 | None:
    """Return the local (4, 4) matrix of a node; None for the identity.

    Raises:
        UnreadableFile: The matrix is not affine.
    """
    if node.data.get("matrix") is not None:
        numbers = node.numbers("matrix", 16, _IDENTITY)
        last_row = numbers[3::4]
        if any(abs(a - b) > _MAX_AFFINE_ERROR for a, b in zip(last_row, _LAST_ROW, strict=True)):
            node.reject("matrix", "is not affine: its last row must be 0 0 0 1")
        matrix = np.array(numbers).reshape(4, 4).T
        matrix[3] = _LAST_ROW
        return matrix
    translation = node.numbers("translation", 3, (0.0, 0.0, 0.0))
    rotation = node.numbers("rotation", 4, _NO_ROTATION)
    scale = node.numbers("scale", 3, (1.0, 1.0, 1.0))
    if rotation != _NO_ROTATION:
        matrices = _compose(np.array([translation]), np.array([rotation]), np.array([scale]))
        rotated: Float64 = matrices[0]
        return rotated
    if translation == (0.0, 0.0, 0.0) and scale == (1.0, 1.0, 1.0):
        return None
    (x, y, z), (a, b, c) = translation, scale
    return np.array([[a, 0, 0, x], [0, b, 0, y], [0, 0, c, z], _LAST_ROW])


def _compose(translation: Float64, rotation: Float64, scale: Float64) -> Float64:
    """Return (n, 4, 4) matrices from (n, 3) translations, (n, 4) quaternions x y z w and (n, 3) scales."""
    length = np.linalg.norm(rotation, axis=1, keepdims=True)
    unit = np.where(length > 0, rotation / np.where(length > 0, length, 1.0), _NO_ROTATION)
    x, y, z, w = unit.T
    linear = np.stack(
        [
            np.stack([1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)], axis=1),
            np.stack([2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)], axis=1),
            np.stack([2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)], axis=1),
        ],
        axis=1,
    )
    matrices = np.zeros((len(translation), 4, 4))
    matrices[:, :3, :3] = linear * scale[:, None, :]
    matrices[:, :3, 3] = translation
    matrices[:, 3, 3] = 1.0
    return matrices
