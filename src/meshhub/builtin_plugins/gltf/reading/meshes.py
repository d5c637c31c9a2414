"""Meshes: all primitives of one as one mesh of the scene, a material for each face."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.gltf.color_space import to_srgb
from meshhub.builtin_plugins.gltf.reading import draco
from meshhub.builtin_plugins.gltf.reading.accessors import Accessors, Column
from meshhub.builtin_plugins.gltf.reading.appearance import Mapping, Materials, Surface
from meshhub.builtin_plugins.gltf.reading.buffers import Buffers
from meshhub.builtin_plugins.gltf.reading.document import Item
from meshhub.builtin_plugins.gltf.reading.findings import Findings
from meshhub.builtin_plugins.gltf.reading.primitives import FAN, STRIP, TRIANGLES, triangles
from meshhub.errors import UnreadableFile
from meshhub.model.scene import Float32, Float64, Int32, Mesh
from meshhub.toolkit.geometry import face_normals

_LEFT_OUT = {0: "points", 1: "lines", 2: "lines", 3: "lines"}


@dataclass(eq=False)
class _Block:
    """Primitives that share their vertices."""

    position: Column
    normal: Column | None
    uv: Column | None
    mapping: Mapping
    color: Column | None
    faces: list[NDArray[Any]] = field(default_factory=list)
    materials: list[int] = field(default_factory=list)


class Meshes:
    """Turns meshes into the scene's when they are first asked for."""

    def __init__(
        self, document: Item, buffers: Buffers, accessors: Accessors, materials: Materials, findings: Findings
    ) -> None:
        """Reads nothing yet."""
        self.meshes: list[Mesh] = []
        self._document = document
        self._buffers = buffers
        self._accessors = accessors
        self._materials = materials
        self._findings = findings
        self._known: dict[int, tuple[int, int | None] | None] = {}
        self._shapes: dict[object, int] = {}

    def index(self, number: int, named_by: str) -> tuple[int, int | None] | None:
        """The scene's index of a mesh, and the material of the parts that show it; None for one without triangles.

        Meshes that differ by their one material alone are one mesh of the scene.

        Raises UnreadableFile.
        """
        if number not in self._known:
            self._known[number] = self._mesh(self._document.entry("meshes", number, named_by))
        return self._known[number]

    def _mesh(self, item: Item) -> tuple[int, int | None] | None:
        primitives = item.entries("primitives")
        surfaces = {self._surface(primitive) for primitive in primitives}
        uniform = surfaces.pop() if len(surfaces) == 1 else None
        shape = None if uniform is None else self._shape(item, primitives, uniform.mapping)
        index = self._shapes.get(shape) if shape is not None else None
        if index is None:
            blocks: dict[object, _Block] = {}
            for primitive in primitives:
                self._add(primitive, blocks)
            filled = [block for block in blocks.values() if any(len(faces) for faces in block.faces)]
            if not filled:
                return None
            index = len(self.meshes)
            self.meshes.append(self._joined(filled, item.name(), uniform is None))
            if shape is not None:
                self._shapes[shape] = index
        return index, uniform.material if uniform is not None and uniform.material >= 0 else None

    def _surface(self, primitive: Item) -> Surface:
        return self._materials.surface(primitive.optional("material"), primitive.place("material"))

    def _shape(self, item: Item, primitives: list[Item], mapping: Mapping) -> object:
        """What two meshes have in common that are one but for their material; None where that is not plain to see."""
        parts = []
        for primitive in primitives:
            attributes = primitive.item("attributes")
            if attributes is None or primitive.has("extensions"):
                return None
            mode, indices = primitive.integer("mode", TRIANGLES), primitive.optional("indices")
            parts.append((mode, indices, self._key(attributes, mapping)))
        return item.name(), mapping, tuple(parts)

    def _add(self, item: Item, blocks: dict[object, _Block]) -> None:
        """Put a primitive's triangles into the block of its vertices."""
        mode = item.integer("mode", TRIANGLES)
        if mode in _LEFT_OUT:
            kind = _LEFT_OUT[mode]
            self._findings.add(f"{kind}_ignored", f"the model has {kind} beside its triangles; they were left out")
            return
        if mode not in (TRIANGLES, STRIP, FAN):
            item.refuse("mode", f"is {mode}, which glTF 2.0 does not have")
        if item.values("targets"):
            self._findings.add("morph_targets_ignored", "the model can change its shape; the base shape was taken")
        attributes = item.item("attributes") or Item({}, item.place("attributes"))
        surface = self._surface(item)
        packed = item.extension(draco.EXTENSION)
        if packed is not None and (draco.available() or not self._has_plain(item, attributes)):
            faces, columns = draco.decoded(packed, attributes, self._buffers, self._accessors)
            key: object = item.where
        else:
            faces, columns, key = None, {}, (self._key(attributes, surface.mapping), surface.mapping)
        if key not in blocks:
            block = self._block(attributes, columns, surface.mapping)
            if block is None:
                return
            blocks[key] = block
        block = blocks[key]
        if faces is None:
            faces = self._faces(item, mode, len(block.position))
        faces = self._in_range(item, faces, len(block.position))
        self._buffers.spend(len(faces))
        block.faces.append(faces)
        block.materials.append(surface.material)

    def _has_plain(self, item: Item, attributes: Item) -> bool:
        """Whether a compressed primitive is there uncompressed too."""
        named = [(attributes, "POSITION")] if attributes.has("POSITION") else []
        if item.has("indices"):
            named.append((item, "indices"))
        shapes = [self._accessors.shape(owner.integer(key), owner.place(key)) for owner, key in named]
        return bool(shapes) and all(shape.has("bufferView") for shape in shapes)

    def _key(self, attributes: Item, mapping: Mapping) -> tuple[int | None, ...]:
        names = ("POSITION", "NORMAL", f"TEXCOORD_{mapping.set}", "COLOR_0")
        return tuple(attributes.optional(name) for name in names)

    def _block(self, attributes: Item, columns: dict[str, Column], mapping: Mapping) -> _Block | None:
        def column(name: str, widths: tuple[int, ...], count: int) -> Column | None:
            """An attribute beside the positions; a wrong one is told and left out."""
            found = columns.get(name)
            try:
                if found is None:
                    index = attributes.optional(name)
                    if index is None or columns:
                        return None
                    found = self._accessors.column(index, attributes.place(name))
                if found.width not in widths or len(found) != count:
                    attributes.refuse(name, f"has {len(found)} rows of {found.width} for {count} vertices")
            except UnreadableFile as error:
                self._findings.add("attribute_ignored", error.message)
                return None
            return found

        position = columns.get("POSITION")
        if position is None:
            index = attributes.optional("POSITION")
            if index is None:
                self._findings.add("primitive_ignored", f"{attributes.where} has no POSITION; it was left out")
                return None
            position = self._accessors.column(index, attributes.place("POSITION"))
        if position.width != 3:
            attributes.refuse("POSITION", "must be of type VEC3")
        count = len(position)
        return _Block(
            position,
            column("NORMAL", (3,), count),
            column(f"TEXCOORD_{mapping.set}", (2,), count),
            mapping,
            column("COLOR_0", (3, 4), count),
        )

    def _faces(self, item: Item, mode: int, count: int) -> NDArray[Any]:
        index = item.optional("indices")
        if index is None:
            self._buffers.spend(count)
            return triangles(mode, np.arange(count, dtype=np.uint32), None)
        column = self._accessors.column(index, item.place("indices"))
        if column.width != 1 or column.values.dtype.kind != "u":
            item.refuse("indices", "must name an accessor of unsigned integers of type SCALAR")
        self._buffers.spend(len(column))
        values = np.ascontiguousarray(column.values[:, 0])
        if mode == TRIANGLES and len(values) % 3:
            self._findings.add("indices_left_over", f"{item.where} ends within a triangle, which was left out")
        return triangles(mode, values, int(np.iinfo(values.dtype).max))

    def _in_range(self, item: Item, faces: NDArray[Any], count: int) -> NDArray[Any]:
        """The triangles whose vertices exist, as signed integers of 32 bits."""
        if len(faces) and int(faces.max()) >= count:
            kept = (faces < count).all(axis=1)
            if not kept.any():
                item.refuse("indices", f"name vertices up to {int(faces.max())}, and there are {count}")
            self._findings.add(
                "faces_dropped",
                f"{item.where} has {int((~kept).sum())} triangles that name vertices beyond its {count}; "
                "they were left out",
            )
            faces = faces[kept]
        return faces.view(np.int32) if faces.dtype == np.uint32 else faces.astype(np.int32)

    def _joined(self, blocks: list[_Block], name: str, varied: bool) -> Mesh:
        """One mesh from the blocks, the vertices of each after those of the one before.

        varied: whether its faces have materials of their own
        """
        faces: list[Int32] = []
        vertices: list[Float64] = []
        used: list[NDArray[np.intp] | None] = []
        total = 0
        for block in blocks:
            own = block.faces[0] if len(block.faces) == 1 else np.concatenate(block.faces)
            rows = None
            if own.size < len(block.position):
                # a few triangles of vertices that many meshes share: only theirs are taken
                rows, own = np.unique(own, return_inverse=True)
                own = own.reshape(-1, 3).astype(np.int32)
            self._buffers.spend(len(block.position) if rows is None else len(rows))
            vertices.append(block.position.rows(rows).floats())
            faces.append(own + np.int32(total) if total else own)
            used.append(rows)
            total += len(vertices[-1])
        materials = np.repeat(
            np.array([one for block in blocks for one in block.materials], np.int32),
            [len(part) for block in blocks for part in block.faces],
        )
        return Mesh(
            vertices=_concatenated(vertices),
            faces=_concatenated(faces),
            normals=_normals(blocks, used, vertices, faces),
            uv=_optional(blocks, used, lambda block: block.uv, _uv, np.zeros(2, np.float32)),
            colors=_optional(
                blocks, used, lambda block: block.color, lambda _, column: to_srgb(column), np.full(4, 255, np.uint8)
            ),
            face_material=materials if varied and (materials >= 0).any() else None,
            name=name,
        )


def _concatenated(arrays: list[Any]) -> Any:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _optional(
    blocks: list[_Block],
    used: list[NDArray[np.intp] | None],
    take: Callable[[_Block], Column | None],
    convert: Callable[[_Block, Column], NDArray[Any]],
    missing: NDArray[Any],
) -> NDArray[Any] | None:
    """An attribute of all blocks, `missing` where one lacks it; None where all do."""
    if all(take(block) is None for block in blocks):
        return None
    made: list[NDArray[Any]] = []
    for block, rows in zip(blocks, used, strict=True):
        column = take(block)
        if column is None:
            count = len(block.position) if rows is None else len(rows)
            made.append(np.tile(missing, (count, 1)))
        else:
            made.append(convert(block, column.rows(rows)))
    return made[0] if len(made) == 1 else np.concatenate(made)


def _uv(block: _Block, column: Column) -> Float32:
    """Texture coordinates with the origin at the lower left; glTF's is at the upper left (§3.8.3)."""
    uv = column.floats()
    if block.mapping.transform is not None:
        a, b, c, d, e, f = block.mapping.transform
        uv = uv @ np.array([[a, d], [b, e]]) + np.array([c, f])
    uv[:, 1] = 1.0 - uv[:, 1]
    return np.nan_to_num(uv, posinf=0.0, neginf=0.0).astype(np.float32)


def _normals(
    blocks: list[_Block], used: list[NDArray[np.intp] | None], vertices: list[Float64], faces: list[Int32]
) -> Float32 | None:
    """Unit normals; where a block has none beside blocks that have, those of its own triangles, averaged."""
    if all(block.normal is None for block in blocks):
        return None
    made: list[Float32] = []
    total = 0
    for block, rows, points, own in zip(blocks, used, vertices, faces, strict=True):
        if block.normal is None:
            local = own - np.int32(total)
            weighted = np.repeat(face_normals(points, local), 3, axis=0)
            summed = [np.bincount(local.ravel(), weighted[:, axis], len(points)) for axis in range(3)]
            made.append(_unit(np.stack(summed, axis=1)))
        else:
            made.append(_unit(block.normal.rows(rows).floats()))
        total += len(points)
    return _concatenated(made)  # type: ignore[no-any-return]


def _unit(vectors: Float64) -> Float32:
    squared = np.einsum("ij,ij->i", vectors, vectors)
    if not np.all(np.abs(squared - 1.0) < 1e-6):
        length = np.sqrt(squared)
        sound = np.isfinite(length) & (length > 1e-30)
        vectors = np.where(sound[:, None], vectors, 0.0) / np.where(sound, length, 1.0)[:, None]
    return vectors.astype(np.float32)
