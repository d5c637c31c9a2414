"""Build the glTF document of a scene, and the bytes of its buffer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.gltf.writing.appearance import MaterialWriter, Object, decode_vertex_colors
from meshhub.builtin_plugins.gltf.writing.transforms import choose_local_origin, decompose_transform
from meshhub.model.progress import track
from meshhub.model.scene import Float32, Float64, Int32, Mesh, Part, Scene
from meshhub.toolkit.geometry import compacted, extremes, placed_mesh

_FLOAT, _SHORT, _INT = 5126, 5123, 5125
_ARRAY, _ELEMENT = 34962, 34963

_MAX_SHORT_INDEX = 65_534
"""Largest 16-bit vertex index; 65 535 restarts a primitive where that is enabled (glTF 2.0 §3.7.2.1)."""

_MIN_NORMAL_LENGTH = 1e-30
"""Length below which a normal has no usable direction."""


@dataclass(frozen=True, eq=False)
class _Geometry:
    """A mesh in the buffer.

    attributes: accessors by semantic
    indices:    accessor of the indices for each material, -1 for none
    origin:     (3,) vector that was subtracted from the vertices
    """

    attributes: Object
    indices: list[tuple[int, int]]
    origin: Float64


class DocumentBuilder:
    """Content of a file, without its packing. Parts that share a mesh share its bytes, even with other materials."""

    def __init__(self, scene: Scene) -> None:
        """Lay out the whole buffer."""
        self.chunks: list[bytes | memoryview] = []
        self.size = 0
        self._scene = scene
        self._views: list[Object] = []
        self._accessors: list[Object] = []
        self._meshes: list[Object] = []
        self._nodes: list[Object] = []
        self._roots: list[int] = []
        self._groups: dict[tuple[str, ...], int] = {}
        self._geometries: dict[int, _Geometry] = {}
        self._mesh_cache: dict[tuple[int, int | None], int] = {}
        self._materials = MaterialWriter(scene, lambda data: self._add_view(data, None))
        for part in track(scene.parts):
            if len(scene.meshes[part.mesh].faces):
                self._add_part(part)

    def document(self, uri: str | None) -> Object:
        """Return the JSON document.

        Args:
            uri: URI of the buffer, which is the last member of the document; None for a binary chunk.
        """
        scene: Object = {"nodes": self._roots}
        if self._scene.name:
            scene = {"name": self._scene.name, **scene}
        lists = {
            "nodes": self._nodes,
            "meshes": self._meshes,
            "materials": self._materials.materials,
            "textures": self._materials.textures,
            "samplers": self._materials.samplers,
            "images": self._materials.images,
            "accessors": self._accessors,
            "bufferViews": self._views,
        }
        buffer: Object = {"byteLength": self.size}
        if uri is not None:
            buffer["uri"] = uri
        extensions = sorted(self._materials.extensions)
        required = [name for name in extensions if name in self._materials.required]
        return {
            "asset": {"version": "2.0", "generator": "meshhub"},
            **({"extensionsUsed": extensions} if extensions else {}),
            **({"extensionsRequired": required} if required else {}),
            "scene": 0,
            "scenes": [scene],
            **{name: values for name, values in lists.items() if values},
            "buffers": [buffer],
        }

    def _add_part(self, part: Part) -> None:
        transform = decompose_transform(part.transform)
        if transform is None:
            # glTF 2.0 §3.5.3 does not allow matrices with shear, so the matrix is applied to the vertices
            geometry = self._write_geometry(placed_mesh(self._scene.meshes[part.mesh], part.transform))
            # no other part shares this mesh, so the key is one that no mesh of the scene has
            key = -1 - len(self._meshes)
            transform = {"translation": geometry.origin.tolist()} if geometry.origin.any() else {}
        else:
            key = part.mesh
            if key not in self._geometries:
                self._geometries[key] = self._write_geometry(self._scene.meshes[key])
            geometry = self._geometries[key]
            if geometry.origin.any():
                matrix = part.transform.copy()
                matrix[:3, 3] += part.transform[:3, :3] @ geometry.origin
                transform = decompose_transform(matrix) or {}
        node: Object = {"name": part.name} if part.name else {}
        node["mesh"] = self._add_mesh(key, geometry, part)
        node.update(transform)
        siblings = self._nodes[self._add_group(part.path)]["children"] if part.path else self._roots
        siblings.append(len(self._nodes))
        self._nodes.append(node)

    def _add_group(self, path: tuple[str, ...]) -> int:
        """Return the node of a group of parts; create it and the groups above it if they are new."""
        for depth in range(1, len(path) + 1):
            parent, group = path[: depth - 1], path[:depth]
            if group in self._groups:
                continue
            siblings = self._nodes[self._groups[parent]]["children"] if parent else self._roots
            siblings.append(len(self._nodes))
            self._groups[group] = len(self._nodes)
            self._nodes.append({"name": group[-1], "children": []} if group[-1] else {"children": []})
        return self._groups[path]

    def _add_mesh(self, key: int, geometry: _Geometry, part: Part) -> int:
        """Return the mesh object of a geometry with the material of a part."""
        fallback = part.material if any(material < 0 for material, _ in geometry.indices) else None
        if (key, fallback) not in self._mesh_cache:
            source = self._scene.meshes[part.mesh]
            mesh: Object = {"name": source.name} if source.name else {}
            has_uv = "TEXCOORD_0" in geometry.attributes
            is_translucent = source.colors is not None and bool((source.colors[:, 3] < 255).any())
            mesh["primitives"] = [
                {
                    "attributes": geometry.attributes,
                    "indices": indices,
                    "material": self._materials.write(
                        fallback if material < 0 else material, has_uv=has_uv, is_translucent=is_translucent
                    ),
                }
                for material, indices in geometry.indices
            ]
            self._mesh_cache[key, fallback] = len(self._meshes)
            self._meshes.append(mesh)
        return self._mesh_cache[key, fallback]

    def _write_geometry(self, mesh: Mesh) -> _Geometry:
        mesh = compacted(mesh)
        low, high = extremes(mesh.vertices)
        origin = choose_local_origin(low, high)
        positions = (mesh.vertices - origin if origin.any() else mesh.vertices).astype("<f4")
        # rounding is monotonic, so the rounded extremes are the extremes of the rounded positions
        bounds = {"min": (low - origin).astype("<f4").tolist(), "max": (high - origin).astype("<f4").tolist()}
        attributes: Object = {"POSITION": self._add_accessor(positions, _FLOAT, "VEC3", **bounds)}
        if mesh.normals is not None:
            attributes["NORMAL"] = self._add_accessor(_normalize(mesh.normals), _FLOAT, "VEC3")
        if mesh.uv is not None:
            flipped = np.nan_to_num(mesh.uv).astype("<f4")
            flipped[:, 1] = np.float32(1) - flipped[:, 1]
            attributes["TEXCOORD_0"] = self._add_accessor(flipped, _FLOAT, "VEC2")
        if mesh.colors is not None:
            colors = decode_vertex_colors(mesh.colors).astype("<u2")
            attributes["COLOR_0"] = self._add_accessor(colors, _SHORT, "VEC4", normalized=True)
        indices = [(material, self._add_indices(faces)) for material, faces in _split_by_material(mesh)]
        return _Geometry(attributes, indices, origin)

    def _add_indices(self, faces: Int32) -> int:
        is_short = int(faces.max()) <= _MAX_SHORT_INDEX
        flat = faces.ravel().astype("<u2") if is_short else faces.ravel().view("<u4")
        return self._add_accessor(flat, _SHORT if is_short else _INT, "SCALAR", target=_ELEMENT)

    def _add_accessor(
        self, rows: NDArray[Any], component: int, kind: str, *, target: int = _ARRAY, **members: Any
    ) -> int:
        view = self._add_view(np.ascontiguousarray(rows).data.cast("B"), target)
        self._accessors.append(
            {"bufferView": view, "componentType": component, "count": len(rows), "type": kind, **members}
        )
        return len(self._accessors) - 1

    def _add_view(self, data: bytes | memoryview, target: int | None) -> int:
        """Add a view for one array, aligned to four bytes."""
        view: Object = {"buffer": 0, "byteOffset": self.size, "byteLength": len(data)}
        if target is not None:
            view["target"] = target
        self.chunks.append(data)
        self.size += len(data)
        if self.size % 4:
            self.chunks.append(bytes(-self.size % 4))
            self.size += -self.size % 4
        self._views.append(view)
        return len(self._views) - 1


def _split_by_material(mesh: Mesh) -> list[tuple[int, Int32]]:
    """Return the faces of each material, -1 for none, in ascending order; faces keep their order."""
    materials = mesh.face_material
    if materials is None:
        return [(-1, mesh.faces)]
    if (materials == materials[0]).all():
        return [(int(materials[0]), mesh.faces)]
    order = np.argsort(materials, kind="stable")
    values, starts = np.unique(materials[order], return_index=True)
    return [
        (int(value), mesh.faces[rows]) for value, rows in zip(values, np.split(order, starts[1:].tolist()), strict=True)
    ]


def _normalize(normals: Float32) -> Float32:
    """Return unit normals, which the glTF validator requires; +Y for normals without direction."""
    squared = np.einsum("ij,ij->i", normals, normals)
    if np.all(np.abs(squared - 1) < 1e-5):
        return normals.astype("<f4", copy=False)
    wide = normals.astype(np.float64)
    length = np.linalg.norm(wide, axis=1, keepdims=True)
    is_valid = np.isfinite(length) & (length > _MIN_NORMAL_LENGTH)
    unit = np.where(is_valid, wide / np.where(is_valid, length, 1.0), [0.0, 1.0, 0.0])
    return unit.astype("<f4")
