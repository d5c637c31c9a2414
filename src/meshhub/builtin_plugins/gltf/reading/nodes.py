"""The node tree: which mesh is placed where, under which names."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meshhub.builtin_plugins.gltf.reading.accessors import Accessors
from meshhub.builtin_plugins.gltf.reading.document import Item
from meshhub.builtin_plugins.gltf.reading.findings import Findings
from meshhub.errors import ModelTooComplex, UnreadableFile
from meshhub.model.scene import Float64

MOST_PLACEMENTS = 250_000
MOST_REPEATS = 10_000
MOST_NAMES = 64
"""Groups that a part's path may have; deeper ones are walked and not named, else a deep chain costs its square."""

_IDENTITY = tuple(np.eye(4).ravel().tolist())
_LAST_ROW = (0.0, 0.0, 0.0, 1.0)
_INSTANCING = "EXT_mesh_gpu_instancing"


@dataclass(frozen=True, eq=False)
class Placement:
    """A mesh of the document (by index, and the place that names it) somewhere in the scene."""

    mesh: int
    named_by: str
    transform: Float64
    name: str
    path: tuple[str, ...]


class Walk:
    """One walk over the nodes of a scene, without recursion.

    A node below several parents is against glTF 2.0 §3.5.2, and meant as an instance below each by those who write
    it so: it is placed below each, as often as `MOST_REPEATS` allows. A node below itself is refused.
    """

    def __init__(self, document: Item, accessors: Accessors, findings: Findings) -> None:
        """Reads nothing yet."""
        self.placements: list[Placement] = []
        self._document = document
        self._accessors = accessors
        self._findings = findings
        self._seen: set[int] = set()
        self._repeats = 0
        self._joints = self._first_joints()
        self._world: dict[int, Float64] = {}
        self._skinned: list[tuple[Item, Placement]] = []

    def run(self, roots: list[int], named_by: str) -> None:
        """Place everything below the roots. Raises UnreadableFile for nodes below themselves."""
        for root in roots:
            if root in self._seen:
                self._findings.add("node_repeated", f"{named_by} names nodes[{root}] again; it was placed once")
            else:
                self._descend(root, named_by)
        self._pose()

    def _descend(self, root: int, named_by: str) -> None:
        above: set[int] = set()
        # a negative index is met when everything below that node is done
        waiting: list[tuple[int, str, Float64, tuple[str, ...]]] = [(root, named_by, np.eye(4), ())]
        while waiting:
            index, by, parent, path = waiting.pop()
            if index < 0:
                above.discard(~index)
                continue
            node = self._document.entry("nodes", index, by)
            self._meet(index, by, above)
            if self._hidden(node):
                continue
            own = _local(node)
            matrix = parent if own is None else parent @ own
            if index in self._joints:
                self._world[index] = matrix
            name = node.name()
            self._place(node, matrix, name, path)
            below = (*path, name) if name and len(path) < MOST_NAMES else path
            place = node.place("children")
            children = node.indices("children")
            if children:
                above.add(index)
                waiting.append((~index, "", matrix, ()))
                waiting += [(child, place, matrix, below) for child in reversed(children)]

    def _meet(self, index: int, by: str, above: set[int]) -> None:
        if index in above:
            raise UnreadableFile(
                f"{by} names nodes[{index}], which is above it; the glTF file is damaged, export it again"
            )
        if index not in self._seen:
            self._seen.add(index)
            return
        self._repeats += 1
        if self._repeats > MOST_REPEATS:
            raise UnreadableFile(
                f"{by} names nodes[{index}], which has other parents, as have more than {MOST_REPEATS} nodes; "
                "the glTF file is damaged, export it again"
            )
        self._findings.add("node_repeated", "the file has nodes with several parents; they were placed below each")

    def _hidden(self, node: Item) -> bool:
        visibility = node.extension("KHR_node_visibility")
        if visibility is None or visibility.flag("visible", True):
            return False
        self._findings.add("hidden_ignored", "the model has hidden nodes; they and what is below them were left out")
        return True

    def _place(self, node: Item, matrix: Float64, name: str, path: tuple[str, ...]) -> None:
        mesh = node.optional("mesh")
        if mesh is None:
            return
        where = node.place("mesh")
        instancing = node.extension(_INSTANCING)
        if instancing is not None:
            matrices = matrix @ self._instances(instancing)
            self._count(len(matrices))
            self.placements += [Placement(mesh, where, each, name, path) for each in matrices]
            return
        self._count(1)
        placement = Placement(mesh, where, matrix, name, path)
        if node.data.get("skin") is not None and self._skins():
            self._skinned.append((node, placement))
        else:
            self.placements.append(placement)

    def _count(self, more: int) -> None:
        if len(self.placements) + len(self._skinned) + more > MOST_PLACEMENTS:
            raise ModelTooComplex(f"the model places more than {MOST_PLACEMENTS} parts; join some before exporting it")

    def _instances(self, item: Item) -> Float64:
        """The (n, 4, 4) matrices of EXT_mesh_gpu_instancing."""
        attributes = item.item("attributes") or Item({}, item.place("attributes"))
        columns: dict[str, Float64] = {}
        for name, width in (("TRANSLATION", 3), ("ROTATION", 4), ("SCALE", 3)):
            index = attributes.optional(name)
            if index is None:
                continue
            column = self._accessors.column(index, attributes.place(name))
            if column.width != width:
                attributes.refuse(name, f"must have {width} components")
            self._count(len(column))
            columns[name] = column.floats()
        counts = {len(values) for values in columns.values()}
        if len(counts) != 1:
            item.refuse("attributes", "must be accessors of TRANSLATION, ROTATION, SCALE with the same count")
        count = counts.pop()
        return _composed(
            columns.get("TRANSLATION", np.zeros((count, 3))),
            columns.get("ROTATION", np.tile([0.0, 0.0, 0.0, 1.0], (count, 1))),
            columns.get("SCALE", np.ones((count, 3))),
        )

    def _skins(self) -> list[object]:
        return self._document.values("skins")

    def _first_joints(self) -> frozenset[int]:
        found = set()
        for skin in self._skins():
            joints = skin.get("joints") if isinstance(skin, dict) else None
            if isinstance(joints, list) and joints and isinstance(joints[0], int):
                found.add(joints[0])
        return frozenset(found)

    def _pose(self) -> None:
        """Place skinned meshes as they were bound: glTF 2.0 §3.7.3.3 ignores their own node's transform.

        In the pose in which a mesh was bound, every joint's world matrix times its inverse bind matrix is the same.
        """
        for node, placement in self._skinned:
            self._findings.add("skin_ignored", "the model has a skeleton; it was taken in the pose it was bound in")
            try:
                matrix = self._bound(node)
            except UnreadableFile as error:
                self._findings.add("skin_ignored", error.message)
                matrix = None
            if matrix is not None:
                placement = Placement(placement.mesh, placement.named_by, matrix, placement.name, placement.path)
            self.placements.append(placement)

    def _bound(self, node: Item) -> Float64 | None:
        skin = self._document.entry("skins", node.integer("skin"), node.place("skin"))
        joints = skin.values("joints")
        world = self._world.get(joints[0]) if joints and isinstance(joints[0], int) else None
        index = skin.optional("inverseBindMatrices")
        if world is None or index is None:
            return world
        first = self._accessors.matrix(index, skin.place("inverseBindMatrices"))
        matrix = world @ first
        sound = np.isfinite(matrix).all() and abs(np.linalg.det(matrix[:3, :3])) > 1e-30
        if not sound or not np.allclose(matrix[3], [0, 0, 0, 1], atol=1e-5):
            return None
        matrix[3] = [0, 0, 0, 1]
        return matrix


def _local(node: Item) -> Float64 | None:
    """A node's own matrix; None for the identity. Raises UnreadableFile for one that is not affine."""
    if node.data.get("matrix") is not None:
        numbers = node.numbers("matrix", 16, _IDENTITY)
        x, y, z, w = numbers[3], numbers[7], numbers[11], numbers[15]
        if abs(x) > 1e-6 or abs(y) > 1e-6 or abs(z) > 1e-6 or abs(w - 1) > 1e-6:
            node.refuse("matrix", "is not affine: its last row must be 0 0 0 1")
        matrix = np.array(numbers).reshape(4, 4).T
        matrix[3] = _LAST_ROW
        return matrix
    translation = node.numbers("translation", 3, (0.0, 0.0, 0.0))
    rotation = node.numbers("rotation", 4, (0.0, 0.0, 0.0, 1.0))
    scale = node.numbers("scale", 3, (1.0, 1.0, 1.0))
    if rotation != (0.0, 0.0, 0.0, 1.0):
        matrices = _composed(np.array([translation]), np.array([rotation]), np.array([scale]))
        turned: Float64 = matrices[0]
        return turned
    if translation == (0.0, 0.0, 0.0) and scale == (1.0, 1.0, 1.0):
        return None
    (x, y, z), (a, b, c) = translation, scale
    return np.array([[a, 0, 0, x], [0, b, 0, y], [0, 0, c, z], _LAST_ROW])


def _composed(translation: Float64, rotation: Float64, scale: Float64) -> Float64:
    """(n, 4, 4) matrices from (n, 3) translations, (n, 4) quaternions x y z w and (n, 3) scales."""
    length = np.linalg.norm(rotation, axis=1, keepdims=True)
    unit = np.where(length > 0, rotation / np.where(length > 0, length, 1.0), [0.0, 0.0, 0.0, 1.0])
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
