"""Read meshes: all primitives of a mesh become one mesh of the scene, with a material per face."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.gltf.reading import draco
from meshhub.builtin_plugins.gltf.reading.accessors import Accessors, AttributeRows
from meshhub.builtin_plugins.gltf.reading.appearance import (
    MappedMaterial,
    MaterialReader,
    UvMapping,
    encode_vertex_colors,
)
from meshhub.builtin_plugins.gltf.reading.buffers import Buffers
from meshhub.builtin_plugins.gltf.reading.json_object import JsonObject
from meshhub.builtin_plugins.gltf.reading.primitives import FAN, STRIP, TRIANGLES, decode_triangles
from meshhub.errors import UnreadableFile, format_count
from meshhub.model.notes import note
from meshhub.model.scene import Float32, Float64, Int32, Mesh, UInt8
from meshhub.toolkit.geometry import face_normals

_IGNORED_MODES = {0: "points", 1: "lines", 2: "lines", 3: "lines"}

_MIN_NORMAL_LENGTH = 1e-30
"""Minimum length of a normal; a shorter one has no usable direction and becomes zero."""


@dataclass(eq=False)
class _VertexBlock:
    """Primitives that share their vertices."""

    positions: AttributeRows
    normals: AttributeRows | None
    uv: AttributeRows | None
    mapping: UvMapping
    colors: AttributeRows | None
    faces: list[NDArray[Any]] = field(default_factory=list)
    materials: list[MappedMaterial] = field(default_factory=list)


class MeshReader:
    """Reads meshes when they are first used, and collects them."""

    def __init__(
        self,
        document: JsonObject,
        buffers: Buffers,
        accessors: Accessors,
        materials: MaterialReader,
    ) -> None:
        self.meshes: list[Mesh] = []
        self._document = document
        self._buffers = buffers
        self._accessors = accessors
        self._materials = materials
        self._cache: dict[int, tuple[int, int | None] | None] = {}
        self._index_by_geometry: dict[object, int] = {}

    def read(self, index: int, referrer: str) -> tuple[int, int | None] | None:
        """Read a mesh. Meshes that differ only in a single material share a mesh of the scene.

        Args:
            referrer: JSON path of the value that holds the index.
        Returns:
            Index of the mesh in the scene, and the material of the parts that place the mesh; None if it has no
            triangles.
        Raises:
            UnreadableFile: The mesh is invalid.
        """
        if index not in self._cache:
            self._cache[index] = self._read(self._document.entry("meshes", index, referrer))
        return self._cache[index]

    def _read(self, source: JsonObject) -> tuple[int, int | None] | None:
        primitives = source.entries("primitives")
        materials = {self._read_material(primitive) for primitive in primitives}
        uniform = materials.pop() if len(materials) == 1 else None
        geometry = None if uniform is None else self._geometry_key(source, primitives, uniform)
        index = self._index_by_geometry.get(geometry) if geometry is not None else None
        if index is None:
            blocks: dict[object, _VertexBlock] = {}
            for primitive in primitives:
                self._add_primitive(primitive, blocks)
            filled = [block for block in blocks.values() if any(len(faces) for faces in block.faces)]
            if not filled:
                return None
            index = len(self.meshes)
            self.meshes.append(self._join(filled, source.name(), has_face_materials=uniform is None))
            if geometry is not None:
                self._index_by_geometry[geometry] = index
        return index, uniform.material if uniform is not None and uniform.material >= 0 else None

    def _read_material(self, primitive: JsonObject) -> MappedMaterial:
        return self._materials.read(primitive.integer_or_none("material"), primitive.path_of("material"))

    def _geometry_key(self, source: JsonObject, primitives: list[JsonObject], material: MappedMaterial) -> object:
        """Return a key that meshes of equal geometry share; None for a mesh with extensions, which it ignores."""
        keys = []
        for primitive in primitives:
            attributes = primitive.child("attributes")
            if attributes is None or primitive.has("extensions"):
                return None
            mode, indices = primitive.integer("mode", TRIANGLES), primitive.integer_or_none("indices")
            ignores_alpha = material.is_opaque and attributes.has("COLOR_0")
            keys.append((mode, indices, _vertex_key(attributes, material.mapping), ignores_alpha))
        return source.name(), material.mapping, tuple(keys)

    def _add_primitive(self, primitive: JsonObject, blocks: dict[object, _VertexBlock]) -> None:
        """Add the triangles of a primitive to the block of its vertices."""
        mode = primitive.integer("mode", TRIANGLES)
        if mode in _IGNORED_MODES:
            kind = _IGNORED_MODES[mode]
            note(f"{kind}_ignored", f"the model has {kind} beside its triangles; they were left out")
            return
        if mode not in (TRIANGLES, STRIP, FAN):
            primitive.reject("mode", f"is {mode}, which glTF 2.0 does not define")
        if primitive.values("targets"):
            note("morph_targets_ignored", "the model has morph targets; only its base shape was read")
        attributes = primitive.child_or_empty("attributes")
        material = self._read_material(primitive)
        compressed = primitive.extension(draco.EXTENSION)
        if compressed is not None and (draco.is_available() or not self._has_fallback(primitive, attributes)):
            faces, decoded = draco.decode(compressed, attributes, self._buffers, self._accessors)
            key: object = primitive.path
        else:
            faces, decoded, key = None, {}, (_vertex_key(attributes, material.mapping), material.mapping)
        if key not in blocks:
            block = self._read_block(attributes, decoded, material.mapping)
            if block is None:
                return
            blocks[key] = block
        block = blocks[key]
        if faces is None:
            faces = self._read_faces(primitive, mode, len(block.positions))
        faces = self._drop_invalid_faces(primitive, faces, len(block.positions))
        self._buffers.spend(len(faces))
        block.faces.append(faces)
        block.materials.append(material)

    def _has_fallback(self, primitive: JsonObject, attributes: JsonObject) -> bool:
        """Return whether the file also has the compressed primitive in uncompressed form."""
        references = [(attributes, "POSITION")] if attributes.has("POSITION") else []
        if primitive.has("indices"):
            references.append((primitive, "indices"))
        accessors = [self._accessors.declaration(owner.integer(key), owner.path_of(key)) for owner, key in references]
        return bool(accessors) and all(accessor.has("bufferView") for accessor in accessors)

    def _read_block(
        self, attributes: JsonObject, decoded: dict[str, AttributeRows], mapping: UvMapping
    ) -> _VertexBlock | None:
        """Read the vertices of a primitive, from `decoded` if it was compressed; None if it has no positions."""
        positions = decoded.get("POSITION")
        if positions is None:
            index = attributes.integer_or_none("POSITION")
            if index is None:
                note("primitive_ignored", f"{attributes.path} has no POSITION; the primitive was left out")
                return None
            positions = self._accessors.read(index, attributes.path_of("POSITION"))
        if positions.width != 3:
            attributes.reject("POSITION", "must be of type VEC3")

        def read_optional(name: str, widths: tuple[int, ...]) -> AttributeRows | None:
            """Read an attribute other than the positions; an invalid one causes a note."""
            rows = decoded.get(name)
            try:
                if rows is None:
                    index = attributes.integer_or_none(name)
                    if index is None or decoded:
                        return None
                    rows = self._accessors.read(index, attributes.path_of(name))
                if rows.width not in widths or len(rows) != len(positions):
                    shape = f"{len(rows)} rows of {rows.width}"
                    attributes.reject(name, f"has {shape} components for {len(positions)} vertices")
            except UnreadableFile as error:
                note("attribute_ignored", error.message)
                return None
            return rows

        return _VertexBlock(
            positions,
            read_optional("NORMAL", (3,)),
            read_optional(f"TEXCOORD_{mapping.set}", (2,)),
            mapping,
            read_optional("COLOR_0", (3, 4)),
        )

    def _read_faces(self, primitive: JsonObject, mode: int, vertex_count: int) -> NDArray[Any]:
        index = primitive.integer_or_none("indices")
        if index is None:
            self._buffers.spend(vertex_count)
            return decode_triangles(mode, np.arange(vertex_count, dtype=np.uint32), None)
        rows = self._accessors.read(index, primitive.path_of("indices"))
        if rows.width != 1 or rows.values.dtype.kind != "u":
            primitive.reject("indices", "must name an accessor of unsigned integers of type SCALAR")
        self._buffers.spend(len(rows))
        indices = np.ascontiguousarray(rows.values[:, 0])
        if mode == TRIANGLES and len(indices) % 3:
            note("indices_left_over", f"{primitive.path} ends within a triangle, which was left out")
        return decode_triangles(mode, indices, int(np.iinfo(indices.dtype).max))

    def _drop_invalid_faces(self, primitive: JsonObject, faces: NDArray[Any], vertex_count: int) -> NDArray[Any]:
        """Return the triangles whose vertices exist, as int32."""
        if len(faces) and int(faces.max()) >= vertex_count:
            is_valid = (faces < vertex_count).all(axis=1)
            if not is_valid.any():
                primitive.reject("indices", f"names vertices up to {int(faces.max())}, and there are {vertex_count}")
            note(
                "faces_dropped",
                f"{primitive.path}: left out {format_count(int((~is_valid).sum()), 'triangle', 'triangles')} "
                f"with vertices beyond its {vertex_count}",
                count=int((~is_valid).sum()),
            )
            faces = faces[is_valid]
        return faces.view(np.int32) if faces.dtype == np.uint32 else faces.astype(np.int32)

    def _join(self, blocks: list[_VertexBlock], name: str, *, has_face_materials: bool) -> Mesh:
        """Return one mesh of all blocks; the vertices of each block follow those of the previous one."""
        faces: list[Int32] = []
        vertices: list[Float64] = []
        selections: list[NDArray[np.intp] | None] = []
        total = 0
        for block in blocks:
            block_faces = block.faces[0] if len(block.faces) == 1 else np.concatenate(block.faces)
            selection = None
            if block_faces.size < len(block.positions):
                # many meshes can share one list of vertices, so only the vertices of these few triangles are read
                selection, block_faces = np.unique(block_faces, return_inverse=True)
                block_faces = block_faces.reshape(-1, 3).astype(np.int32)
            self._buffers.spend(len(block.positions) if selection is None else len(selection))
            vertices.append(block.positions.select(selection).as_floats())
            faces.append(block_faces + np.int32(total) if total else block_faces)
            selections.append(selection)
            total += len(vertices[-1])
        owners = [material for block in blocks for material in block.materials]
        face_counts = [len(primitive_faces) for block in blocks for primitive_faces in block.faces]
        materials = np.repeat(np.array([owner.material for owner in owners], np.int32), face_counts)
        all_faces = _concatenate(faces)
        colors = _join_optional(
            blocks,
            selections,
            lambda block: block.colors,
            lambda _, rows: encode_vertex_colors(rows),
            np.full(4, 255, np.uint8),
        )
        if colors is not None:
            is_opaque = np.repeat([owner.is_opaque for owner in owners], face_counts)
            _ignore_alpha(colors, all_faces, is_opaque)
        return Mesh(
            vertices=_concatenate(vertices),
            faces=all_faces,
            normals=_join_normals(blocks, selections, vertices, faces),
            uv=_join_optional(blocks, selections, lambda block: block.uv, _convert_uv, np.zeros(2, np.float32)),
            colors=colors,
            face_material=materials if has_face_materials and (materials >= 0).any() else None,
            name=name,
        )


def _vertex_key(attributes: JsonObject, mapping: UvMapping) -> tuple[int | None, ...]:
    """Return the accessors of a primitive's vertices."""
    names = ("POSITION", "NORMAL", f"TEXCOORD_{mapping.set}", "COLOR_0")
    return tuple(attributes.integer_or_none(name) for name in names)


def _concatenate(arrays: list[Any]) -> Any:
    """Concatenate arrays, without a copy of a single one."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _join_optional(
    blocks: list[_VertexBlock],
    selections: list[NDArray[np.intp] | None],
    get: Callable[[_VertexBlock], AttributeRows | None],
    convert: Callable[[_VertexBlock, AttributeRows], NDArray[Any]],
    default: NDArray[Any],
) -> NDArray[Any] | None:
    """Join an attribute of all blocks, with `default` for blocks without it; None if no block has it."""
    if all(get(block) is None for block in blocks):
        return None
    arrays: list[NDArray[Any]] = []
    for block, selection in zip(blocks, selections, strict=True):
        rows = get(block)
        if rows is None:
            count = len(block.positions) if selection is None else len(selection)
            arrays.append(np.tile(default, (count, 1)))
        else:
            arrays.append(convert(block, rows.select(selection)))
    return _concatenate(arrays)  # type: ignore[no-any-return]


def _ignore_alpha(colors: UInt8, faces: Int32, is_opaque: NDArray[np.bool_]) -> None:
    """Make the vertices of opaque faces opaque; those that other faces share keep their alpha (glTF 2.0 §3.9.4)."""
    has_alpha = np.zeros(len(colors), np.bool_)
    has_alpha[faces[~is_opaque]] = True
    colors[~has_alpha, 3] = 255


def _convert_uv(block: _VertexBlock, rows: AttributeRows) -> Float32:
    """Return texture coordinates with the origin at the lower left; glTF §3.8.3 has it at the upper left."""
    uv = rows.as_floats()
    if block.mapping.transform is not None:
        a, b, c, d, e, f = block.mapping.transform
        uv = uv @ np.array([[a, d], [b, e]]) + np.array([c, f])
    uv[:, 1] = 1.0 - uv[:, 1]
    return np.nan_to_num(uv, posinf=0.0, neginf=0.0).astype(np.float32)


def _join_normals(
    blocks: list[_VertexBlock],
    selections: list[NDArray[np.intp] | None],
    vertices: list[Float64],
    faces: list[Int32],
) -> Float32 | None:
    """Return unit normals; a block without them gets area-weighted averages of its face normals.

    None if no block has normals.
    """
    if all(block.normals is None for block in blocks):
        return None
    normals: list[Float32] = []
    total = 0
    for block, selection, points, block_faces in zip(blocks, selections, vertices, faces, strict=True):
        if block.normals is None:
            local = block_faces - np.int32(total)
            weighted = np.repeat(face_normals(points, local), 3, axis=0)
            sums = [np.bincount(local.ravel(), weighted[:, axis], len(points)) for axis in range(3)]
            normals.append(_normalize(np.stack(sums, axis=1)))
        else:
            normals.append(_normalize(block.normals.select(selection).as_floats()))
        total += len(points)
    return _concatenate(normals)  # type: ignore[no-any-return]


def _normalize(vectors: Float64) -> Float32:
    """Return unit vectors; zero for vectors without direction."""
    squared = np.einsum("ij,ij->i", vectors, vectors)
    if not np.all(np.abs(squared - 1.0) < 1e-6):
        length = np.sqrt(squared)
        is_valid = np.isfinite(length) & (length > _MIN_NORMAL_LENGTH)
        vectors = np.where(is_valid[:, None], vectors, 0.0) / np.where(is_valid, length, 1.0)[:, None]
    return vectors.astype(np.float32)
