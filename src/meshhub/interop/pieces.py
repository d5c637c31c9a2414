"""Parts of a scene in the form that other libraries need: one mesh with one material."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from msgspec import Struct

from meshhub.model.scene import Float64, Image, Material, Mesh, Scene
from meshhub.toolkit.geometry import compacted


class Piece(Struct, frozen=True):
    """Faces of a part that have the same material."""

    name: str
    """Name of the part, or of its mesh."""

    mesh: Mesh
    """The faces, with the vertices that they use."""

    transform: Float64
    """(4, 4) placement of the part."""

    material: Material | None
    """Material of all faces."""

    base_color_image: Image | None
    """Image of the material's base color."""


def pieces(scene: Scene) -> Iterator[Piece]:
    """Yield the parts of a scene, split by material."""
    for part in scene.parts:
        mesh = scene.meshes[part.mesh]
        default = -1 if part.material is None else part.material
        own = mesh.face_material
        index = np.full(len(mesh.faces), default) if own is None else np.where(own < 0, default, own)
        for number in np.unique(index).tolist():
            mask = index == number
            material = scene.materials[number] if number >= 0 else None
            image = None if material is None else material.base_color_image
            yield Piece(
                name=part.name or mesh.name,
                mesh=mesh if mask.all() else compacted(replace(mesh, faces=mesh.faces[mask], face_material=None)),
                transform=part.transform,
                material=material,
                base_color_image=None if image is None else scene.images[image],
            )


def open_image(image: Image) -> Any:
    """Return an image as a Pillow image. Raises ImportError without Pillow."""
    import PIL.Image

    return PIL.Image.open(io.BytesIO(image.data))


def encode_image(image: Any) -> Image:
    """Return a Pillow image, or an array (h, w, 3 or 4) of uint8, as PNG. Raises ImportError without Pillow."""
    import PIL.Image

    content = io.BytesIO()
    picture = image if isinstance(image, PIL.Image.Image) else PIL.Image.fromarray(np.asarray(image))
    picture.save(content, "PNG")
    return Image(data=content.getvalue(), media_type="image/png")


class SceneBuilder:
    """Builder of a scene from meshes, materials and images."""

    def __init__(self) -> None:
        self.meshes: list[Mesh] = []
        self.materials: list[Material] = []
        self.images: list[Image] = []

    def add_mesh(self, mesh: Mesh) -> int:
        """Add a mesh and return its index."""
        self.meshes.append(mesh)
        return len(self.meshes) - 1

    def add_material(self, material: Material, base_color_image: Any = None) -> int:
        """Add a material with a Pillow image or an array as its texture; return its index."""
        if base_color_image is not None:
            self.images.append(encode_image(base_color_image))
            material = replace(material, base_color_image=len(self.images) - 1)
        self.materials.append(material)
        return len(self.materials) - 1


def as_rgba(colors: Any, count: int) -> np.ndarray[Any, np.dtype[np.uint8]] | None:
    """Return colors as (count, 4) uint8, or None if their shape does not fit.

    Args:
        colors: (count, 3 or 4), uint8 or floats from 0 to 1.
        count: Number of vertices.
    """
    array = np.asarray(colors)
    if array.ndim != 2 or array.shape[0] != count or array.shape[1] not in (3, 4):
        return None
    if array.dtype.kind == "f":
        array = np.rint(np.clip(array, 0, 1) * 255)
    rgba = np.full((count, 4), 255, np.uint8)
    rgba[:, : array.shape[1]] = array
    return rgba
