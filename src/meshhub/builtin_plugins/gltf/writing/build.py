"""A scene as a glTF document and the bytes of its buffer."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.gltf.color_space import to_linear
from meshhub.builtin_plugins.gltf.writing.appearance import Surfaces
from meshhub.builtin_plugins.gltf.writing.transforms import local_origin, node_transform
from meshhub.model.scene import Float32, Float64, Int32, Mesh, Part, Scene
from meshhub.toolkit.geometry import compacted, extremes, placed_mesh

_FLOAT, _SHORT, _INT = 5126, 5123, 5125
_ARRAY, _ELEMENT = 34962, 34963

_LAST_SHORT = 65_534
"""65 535 begins a primitive anew where that is enabled, and is no index (glTF 2.0 §3.7.2.1)."""

Object = dict[str, Any]


class Build:
    """Everything of a file but its packing.

    Parts that share a mesh share its bytes, under different materials too.
    """

    def __init__(self, scene: Scene) -> None:
        """Lays out the whole buffer."""
        self.chunks: list[bytes | memoryview] = []
        self.size = 0
        self._scene = scene
        self._views: list[Object] = []
        self._accessors: list[Object] = []
        self._meshes: list[Object] = []
        self._nodes: list[Object] = []
        self._roots: list[int] = []
        self._groups: dict[tuple[str, ...], int] = {}
        self._geometry: dict[int, tuple[Object, list[tuple[int, int]], Float64]] = {}
        self._placed: dict[tuple[int, int | None], int] = {}
        self._surfaces = Surfaces(scene, self._image)
        for part in scene.parts:
            if len(scene.meshes[part.mesh].faces):
                self._part(part)

    def document(self, uri: str | None) -> Object:
        """The JSON; `uri` is the buffer's and its last member, None when it is the binary chunk."""
        scene: Object = {"nodes": self._roots}
        if self._scene.name:
            scene = {"name": self._scene.name, **scene}
        lists = {
            "nodes": self._nodes,
            "meshes": self._meshes,
            "materials": self._surfaces.materials,
            "textures": self._surfaces.textures,
            "samplers": self._surfaces.samplers,
            "images": self._surfaces.images,
            "accessors": self._accessors,
            "bufferViews": self._views,
        }
        buffer: Object = {"byteLength": self.size}
        if uri is not None:
            buffer["uri"] = uri
        extensions = sorted(self._surfaces.extensions)
        required = [name for name in extensions if name in self._surfaces.required]
        return {
            "asset": {"version": "2.0", "generator": "meshhub"},
            **({"extensionsUsed": extensions} if extensions else {}),
            **({"extensionsRequired": required} if required else {}),
            "scene": 0,
            "scenes": [scene],
            **{name: values for name, values in lists.items() if values},
            "buffers": [buffer],
        }

    def _part(self, part: Part) -> None:
        transform = node_transform(part.transform)
        if transform is None:
            # a shear has no translation, rotation and scale; glTF 2.0 §3.5.3 allows no other matrix
            key, geometry = self._sheared(part)
            transform = {}
            origin = geometry[2]
            if origin.any():
                transform = {"translation": origin.tolist()}
        else:
            if part.mesh not in self._geometry:
                self._geometry[part.mesh] = self._laid_out(self._scene.meshes[part.mesh])
            key, geometry = part.mesh, self._geometry[part.mesh]
            if geometry[2].any():
                moved = part.transform.copy()
                moved[:3, 3] += part.transform[:3, :3] @ geometry[2]
                transform = node_transform(moved) or {}
        node: Object = {"name": part.name} if part.name else {}
        node["mesh"] = self._mesh(key, geometry, part)
        node.update(transform)
        self._add_node(node, part.path)

    def _sheared(self, part: Part) -> tuple[int, tuple[Object, list[tuple[int, int]], Float64]]:
        geometry = self._laid_out(placed_mesh(self._scene.meshes[part.mesh], part.transform))
        # no other part shares it: a key that no mesh of the scene has
        return -1 - len(self._meshes), geometry

    def _add_node(self, node: Object, path: tuple[str, ...]) -> None:
        siblings = self._roots
        if path:
            siblings = self._nodes[self._group(path)]["children"]
        siblings.append(len(self._nodes))
        self._nodes.append(node)

    def _group(self, path: tuple[str, ...]) -> int:
        """The node of a group of parts, made with those above it when it is first met."""
        for depth in range(1, len(path) + 1):
            above, here = path[: depth - 1], path[:depth]
            if here in self._groups:
                continue
            siblings = self._nodes[self._groups[above]]["children"] if above else self._roots
            siblings.append(len(self._nodes))
            self._groups[here] = len(self._nodes)
            self._nodes.append({"name": here[-1], "children": []} if here[-1] else {"children": []})
        return self._groups[path]

    def _mesh(self, key: int, geometry: tuple[Object, list[tuple[int, int]], Float64], part: Part) -> int:
        """The mesh object of a geometry under a part's own material."""
        attributes, groups, _ = geometry
        own = part.material if any(material < 0 for material, _ in groups) else None
        if (key, own) not in self._placed:
            name = self._scene.meshes[part.mesh].name
            mesh: Object = {"name": name} if name else {}
            textured = "TEXCOORD_0" in attributes
            mesh["primitives"] = [
                {
                    "attributes": attributes,
                    "indices": indices,
                    "material": self._surfaces.index(own if material < 0 else material, textured),
                }
                for material, indices in groups
            ]
            self._placed[key, own] = len(self._meshes)
            self._meshes.append(mesh)
        return self._placed[key, own]

    def _laid_out(self, mesh: Mesh) -> tuple[Object, list[tuple[int, int]], Float64]:
        """The attributes, (material, indices) for each material, and the origin that was taken off the vertices."""
        mesh = compacted(mesh)
        low, high = extremes(mesh.vertices)
        origin = local_origin(low, high)
        positions = (mesh.vertices - origin if origin.any() else mesh.vertices).astype("<f4")
        # rounding keeps order: the extremes of the rounded are the rounded extremes
        bounds = {"min": (low - origin).astype("<f4").tolist(), "max": (high - origin).astype("<f4").tolist()}
        attributes: Object = {"POSITION": self._accessor(positions, _FLOAT, "VEC3", **bounds)}
        if mesh.normals is not None:
            attributes["NORMAL"] = self._accessor(_unit(mesh.normals), _FLOAT, "VEC3")
        if mesh.uv is not None:
            flipped = np.nan_to_num(mesh.uv).astype("<f4")
            flipped[:, 1] = np.float32(1) - flipped[:, 1]
            attributes["TEXCOORD_0"] = self._accessor(flipped, _FLOAT, "VEC2")
        if mesh.colors is not None:
            colors = to_linear(mesh.colors).astype("<u2")
            attributes["COLOR_0"] = self._accessor(colors, _SHORT, "VEC4", normalized=True)
        return attributes, [(material, self._indices(faces)) for material, faces in _by_material(mesh)], origin

    def _indices(self, faces: Int32) -> int:
        short = int(faces.max()) <= _LAST_SHORT
        flat = faces.ravel().astype("<u2" if short else "<u4")
        return self._accessor(flat, _SHORT if short else _INT, "SCALAR", target=_ELEMENT)

    def _accessor(self, rows: NDArray[Any], component: int, kind: str, *, target: int = _ARRAY, **more: Any) -> int:
        view = self._view(np.ascontiguousarray(rows).data.cast("B"), target)
        self._accessors.append(
            {"bufferView": view, "componentType": component, "count": len(rows), "type": kind, **more}
        )
        return len(self._accessors) - 1

    def _view(self, data: bytes | memoryview, target: int | None) -> int:
        """A view of its own for each array, aligned to four bytes."""
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

    def _image(self, data: bytes) -> int:
        return self._view(data, None)


def _by_material(mesh: Mesh) -> list[tuple[int, Int32]]:
    """The faces of each material, ascending, their order kept; -1 for none."""
    own = mesh.face_material
    if own is None:
        return [(-1, mesh.faces)]
    if (own == own[0]).all():
        return [(int(own[0]), mesh.faces)]
    order = np.argsort(own, kind="stable")
    values, starts = np.unique(own[order], return_index=True)
    return [
        (int(value), mesh.faces[rows]) for value, rows in zip(values, np.split(order, starts[1:].tolist()), strict=True)
    ]


def _unit(normals: Float32) -> Float32:
    """Normals of length one, as the validator wants them; what has no direction looks up."""
    squared = np.einsum("ij,ij->i", normals, normals)
    if np.all(np.abs(squared - 1) < 1e-5):
        return normals.astype("<f4", copy=False)
    wide = normals.astype(np.float64)
    length = np.linalg.norm(wide, axis=1, keepdims=True)
    sound = np.isfinite(length) & (length > 1e-30)
    unit = np.where(sound, wide / np.where(sound, length, 1.0), [0.0, 1.0, 0.0])
    return unit.astype("<f4")
