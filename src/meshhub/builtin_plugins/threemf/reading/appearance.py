"""From property groups to what a scene has: materials, vertex colours, texture coordinates.

Base materials become materials of faces. Colours and texture coordinates stand at the corners of
triangles in 3MF, and at vertices in a scene: a vertex is doubled where its corners differ.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.threemf.reading.document import (
    Base,
    Colors,
    Composite,
    Document,
    Group,
    Int,
    Multi,
    Object,
    TextureGroup,
    Triangles,
)
from meshhub.builtin_plugins.threemf.reading.package import Package
from meshhub.model.notes import note
from meshhub.model.scene import Float32, Image, Int32, Material, Mesh, UInt8
from meshhub.toolkit.geometry import weld

_WRAPS = {"wrap": "repeat", "mirror": "mirror", "clamp": "clamp", "none": "clamp"}
_PICTURES = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"))
_WHITE = np.array([255, 255, 255, 255], np.uint8)


class _Corners:
    """What is found for the faces of one mesh, at its corners."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.material = np.full(count, -1, np.int32)
        self._colors: UInt8 | None = None
        self._uv: Float32 | None = None

    def colors(self) -> UInt8:
        """(m, 3, 4), white until told."""
        if self._colors is None:
            self._colors = np.full((self.count, 3, 4), 255, np.uint8)
        return self._colors

    def uv(self) -> Float32:
        """(m, 3, 2), zero until told."""
        if self._uv is None:
            self._uv = np.zeros((self.count, 3, 2), np.float32)
        return self._uv

    def mesh(self, triangles: Triangles, name: str) -> Mesh:
        """The scene's mesh, vertices doubled at seams."""
        faces = triangles.triangles.astype(np.int32, copy=False)
        own = self.material if (self.material >= 0).any() else None
        plain = Mesh(triangles.vertices, faces, face_material=own, name=name)
        if self._colors is None and self._uv is None:
            return plain
        columns: list[NDArray[np.int32]] = []
        if self._colors is not None:
            columns.append(np.ascontiguousarray(self._colors).reshape(-1, 4).view(np.int32))
        if self._uv is not None:
            columns.append(np.ascontiguousarray(self._uv + np.float32(0)).reshape(-1, 2).view(np.int32))
        said = np.concatenate(columns, axis=1)
        corners = faces.ravel()
        at_vertex = np.zeros((len(triangles.vertices), said.shape[1]), np.int32)
        at_vertex[corners] = said
        vertices = plain.vertices
        if not np.array_equal(at_vertex[corners], said):
            first, index = weld(np.concatenate([corners[:, None], said], axis=1))
            at_vertex, vertices = said[first], vertices[corners[first]]
            faces = index.reshape(-1, 3)
        at_vertex = np.ascontiguousarray(at_vertex)
        colors = uv = None
        if self._colors is not None:
            colors = np.ascontiguousarray(at_vertex[:, :1]).view(np.uint8).reshape(-1, 4)
        if self._uv is not None:
            uv = np.ascontiguousarray(at_vertex[:, -2:]).view(np.float32).reshape(-1, 2)
        return replace(plain, vertices=vertices, faces=faces, colors=colors, uv=uv)


class Surfaces:
    """Collects the materials and images of a scene while its meshes are made."""

    def __init__(self, package: Package) -> None:
        self.materials: list[Material] = []
        self.images: list[Image] = []
        self._package = package
        self._bases: dict[tuple[str, int], int] = {}
        self._textured: dict[tuple[str, int], int] = {}
        self._pictures: dict[str, int | None] = {}
        self._mixtures: dict[tuple[str, int], UInt8] = {}

    def mesh(self, document: Document, made: Object, triangles: Triangles) -> Mesh:
        """An object's mesh with everything that its triangles and the object say about the surface."""
        found = _Corners(len(triangles.triangles))
        group, index = _with_defaults(triangles, made)
        if group is not None and index is not None:
            order = np.argsort(group, kind="stable")
            ids, starts = np.unique(group[order], return_index=True)
            for number, faces in zip(ids.tolist(), np.split(order, starts[1:]), strict=True):
                if number < 0:
                    continue
                named = document.groups.get(number)
                if named is None:
                    note(
                        "bad_property", f"{document.part!r}: triangles name a property group {number} that is not there"
                    )
                    continue
                self._apply(found, document, (number, named), faces, index[faces])
        return found.mesh(triangles, made.name)

    def _apply(
        self, found: _Corners, document: Document, named: tuple[int, Group], faces: Int, index: Int, blend: str = "mix"
    ) -> None:
        """Say for some faces (k,) what a group has at the indices (k, 3) of their corners."""
        number, group = named
        if isinstance(group, Multi):
            self._layers(found, document, named, faces, index)
            return
        size = _size(group)
        right = ((index >= 0) & (index < size)).all(axis=1)
        if not right.all():
            note("bad_property", f"{document.part!r}: triangles name properties that group {number} does not have")
            faces, index = faces[right], index[right]
        if len(faces) == 0:
            return
        if isinstance(group, Base):
            found.material[faces] = self._base(document, number, group) + index[:, 0]
        elif isinstance(group, TextureGroup):
            found.material[faces] = self._texture(document, group.texture)
            found.uv()[faces] = group.uv[index]
            if blend == "mix" and found._colors is not None:
                found.colors()[faces] = 255
        else:
            colors = group.colors if isinstance(group, Colors) else self._mixed(document, number, group)
            self._color(found, colors[index], faces, blend)

    def _mixed(self, document: Document, number: int, group: Group) -> UInt8:
        """The colours (k, 4) of a group of mixtures, made once."""
        key = (document.part, number)
        if key not in self._mixtures:
            self._mixtures[key] = _mixed(document, group)
        return self._mixtures[key]

    def _color(self, found: _Corners, colors: UInt8, faces: Int, blend: str) -> None:
        """Put colours (k, 3, 4) on what the faces have already."""
        if blend == "multiply":
            below = found.colors()[faces].astype(np.uint16)
            found.colors()[faces] = ((below * colors + 127) // 255).astype(np.uint8)
            return
        found.material[faces] = -1
        found.colors()[faces] = colors

    def _layers(self, found: _Corners, document: Document, named: tuple[int, Group], faces: Int, index: Int) -> None:
        """Materials §5: layers of properties, each blended onto those before it."""
        number, group = named
        assert isinstance(group, Multi)
        right = ((index >= 0) & (index < len(group.indices))).all(axis=1)
        if not right.all():
            note("bad_property", f"{document.part!r}: triangles name properties that group {number} does not have")
            faces, index = faces[right], index[right]
        for layer, name in enumerate(group.groups):
            inner = document.groups.get(name)
            if inner is None or isinstance(inner, Multi):
                note("bad_property", f"{document.part!r}: property group {number} has a layer that may not be one")
                continue
            blend = group.blends[layer - 1] if 0 < layer <= len(group.blends) else "mix"
            chosen = group.indices[:, layer][index]
            if isinstance(inner, TextureGroup) and blend == "multiply":
                self._tint(found, faces)
            self._apply(found, document, (name, inner), faces, chosen, blend)

    def _tint(self, found: _Corners, faces: Int) -> None:
        """Keep a base material's colour as a vertex colour, for its place is taken by a texture."""
        faces = faces[found.material[faces] >= 0]
        used, index = np.unique(found.material[faces], return_inverse=True)
        shades = [self.materials[number].base_color for number in used.tolist()]
        colors = np.rint(np.array(shades, np.float64).reshape(-1, 4) * 255).astype(np.uint8)
        tinted = (colors != _WHITE).any(axis=1)[index]
        if tinted.any():
            found.colors()[faces[tinted]] = colors[index[tinted]][:, None]

    def _base(self, document: Document, number: int, group: Base) -> int:
        """The first material of a group of base materials."""
        key = (document.part, number)
        if key not in self._bases:
            self._bases[key] = len(self.materials)
            for name, color in zip(group.names, (group.colors / 255.0).tolist(), strict=True):
                opaque = color[3] == 1
                self.materials.append(
                    Material(name=name, base_color=tuple(color), alpha_mode="opaque" if opaque else "blend")
                )
        return self._bases[key]

    def _texture(self, document: Document, number: int) -> int:
        """The material that shows a texture."""
        key = (document.part, number)
        if key not in self._textured:
            texture = document.textures.get(number)
            image, wrap, blend = None, ("repeat", "repeat"), "linear"
            if texture is None:
                note("bad_property", f"{document.part!r}: a texture {number} is not there")
            else:
                image = self._picture(texture.path, document.part)
                wrap = (_WRAPS.get(texture.tiles[0], "repeat"), _WRAPS.get(texture.tiles[1], "repeat"))
                blend = "nearest" if texture.filter == "nearest" else "linear"
            self._textured[key] = len(self.materials)
            material = Material(base_color_image=image, wrap=wrap, filter=blend)  # type: ignore[arg-type]
            self.materials.append(material)
        return self._textured[key]

    def _picture(self, path: str, base: str) -> int | None:
        name = self._package.find(path, base)
        if name is None:
            note("missing_texture", f"the texture {path[-80:]!r} is not in the file; its faces stay plain")
            return None
        if name not in self._pictures:
            data = self._package.read(name)
            kind = next((kind for magic, kind in _PICTURES if data.startswith(magic)), None)
            self._pictures[name] = None
            if kind is None:
                note("missing_texture", f"the texture {path[-80:]!r} is neither PNG nor JPEG; its faces stay plain")
            else:
                self._pictures[name] = len(self.images)
                plain = name.rsplit("/", 1)[-1].rsplit(".", 1)[0]
                self.images.append(Image(data, kind, name=plain))
        return self._pictures[name]


def _with_defaults(triangles: Triangles, made: Object) -> tuple[Int | None, Int | None]:
    """By row its group (m,) and its corners' indices (m, 3), the object's own where a row has none (core §4.1.4)."""
    count = len(triangles.triangles)
    if triangles.group is None or triangles.index is None:
        if made.group is None:
            return None, None
        return np.full(count, made.group, np.int64), np.full((count, 3), made.index, np.int64)
    group, index = triangles.group.astype(np.int64), triangles.index.astype(np.int64)
    if made.group is not None:
        silent = index[:, 0] < 0
        group[silent | (group < 0)] = made.group
        index[silent] = made.index
    else:
        group[index[:, 0] < 0] = -1
    return group, index


def _size(group: Group) -> int:
    if isinstance(group, Base | Colors):
        return len(group.colors)
    return len(group.uv) if isinstance(group, TextureGroup) else len(getattr(group, "mixtures", ()))


def _mixed(document: Document, group: Group) -> UInt8:
    """The colours (k, 4) of mixtures of base materials, by their parts."""
    assert isinstance(group, Composite)
    base = document.groups.get(group.base)
    colors = np.full((len(group.mixtures), 4), 255, np.uint8)
    if not isinstance(base, Base) or not all(member < len(base.colors) for member in group.members):
        note("bad_property", f"{document.part!r}: composite materials are made of base materials that are not there")
        return colors
    members: Int32 = np.array(group.members, np.int32)
    for row, mixture in enumerate(group.mixtures):
        parts = np.zeros(len(members))
        given = np.maximum(np.array(mixture[: len(members)], np.float64), 0)
        parts[: len(given)] = given
        if parts.sum() > 0:
            colors[row] = np.rint(parts @ base.colors[members] / parts.sum())
    return colors
