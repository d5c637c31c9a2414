"""AMF writer: an object per mesh, and a constellation that places them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from xml.sax.saxutils import escape, quoteattr

import numpy as np
from numpy.typing import NDArray

from meshhub import Mesh, Part, Scene, Target
from meshhub.model.scene import Float64
from meshhub.toolkit.colors import multiply_colors
from meshhub.toolkit.columns import shortest, write_rows
from meshhub.toolkit.geometry import placed_mesh
from meshhub.toolkit.names import single_line
from meshhub_amf import AmfWriterOptions

_RIGID_TOLERANCE = 1e-9
"""Maximum difference of a matrix from a rotation, because instances have angles and a translation, but no scale."""

_ENTRY_NAME = "model.amf"
_ZIP_DATE = (1980, 1, 1, 0, 0, 0)
"""Date of the entry; constant, so that the same scene gives the same bytes."""

Rows = NDArray[np.float64]


def write(scene: Scene, target: Target, options: AmfWriterOptions) -> None:
    """Write a scene as AMF, plain or in a ZIP archive."""
    pieces = _document(scene, options)
    with target.open() as file:
        if not options.amf_compress:
            for piece in pieces:
                file.write(piece)
            return
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
            entry = zipfile.ZipInfo(_ENTRY_NAME, _ZIP_DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, b"".join(pieces))
        file.write(buffer.getvalue())


def _document(scene: Scene, options: AmfWriterOptions) -> Iterator[bytes | memoryview]:
    """Yield the pieces of the document."""
    yield b'<?xml version="1.0" encoding="UTF-8"?>\n<amf unit="millimeter" version="1.1">\n<!-- meshhub -->\n'
    yield _metadata({"name": scene.name, **scene.metadata})
    parts = [part for part in scene.parts if len(scene.meshes[part.mesh].faces)]
    objects, instances = _share_objects(scene, parts, options)
    materials = sorted({part.material for _, part in objects if part.material is not None})
    for index in materials:
        material = scene.materials[index]
        # id 0 is reserved for no material (ISO/ASTM 52915 §6.1)
        yield f'<material id="{index + 1}">\n'.encode() + _metadata({"name": material.name})
        yield _color(material.base_color).encode() + b"\n</material>\n"
    count = len(materials) and materials[-1] + 1
    for number, (mesh, part) in enumerate(objects, count + 1):
        yield from _object(scene, mesh, part, number)
    if any(part.name or not np.array_equal(part.transform, np.eye(4)) for _, part in instances):
        yield f'<constellation id="{count + len(objects) + 1}">\n'.encode()
        for index, part in instances:
            yield _instance(index + count + 1, part)
        yield b"</constellation>\n"
    yield b"</amf>\n"


def _share_objects(
    scene: Scene, parts: list[Part], options: AmfWriterOptions
) -> tuple[list[tuple[Mesh, Part]], list[tuple[int, Part]]]:
    """Return the objects, and the object and placement of each part.

    Parts that differ only in their position share an object. With `amf_rotations`, those that differ in a rotation
    share one, too. Scale, mirror and shear are part of the object, because the standard has no elements for them.
    """
    objects: list[tuple[Mesh, Part]] = []
    instances: list[tuple[int, Part]] = []
    shared: dict[tuple[int, int | None, bytes], int] = {}
    for part in parts:
        own, placement = part.transform.copy(), part.transform
        if options.amf_rotations and _is_rigid(part.transform):
            own = np.eye(4)
        else:
            own[:3, 3] = 0.0
            placement = np.eye(4)
            placement[:3, 3] = part.transform[:3, 3]
        key = (part.mesh, part.material, own.tobytes())
        if key not in shared:
            shared[key] = len(objects)
            objects.append((placed_mesh(scene.meshes[part.mesh], own), part))
        instances.append((shared[key], replace(part, transform=placement)))
    return objects, instances


def _is_rigid(matrix: Float64) -> bool:
    linear = matrix[:3, :3]
    return bool(np.abs(linear @ linear.T - np.eye(3)).max() < _RIGID_TOLERANCE and np.linalg.det(linear) > 0)


def _object(scene: Scene, mesh: Mesh, part: Part, number: int) -> Iterator[bytes | memoryview]:
    """Yield an object with one volume."""
    mesh = _resolve_colors(scene, mesh, part)
    yield f'<object id="{number}">\n'.encode() + _metadata({"name": part.name or mesh.name})
    yield b"<mesh>\n<vertices>\n"
    literals = ["<vertex><coordinates><x>", "</x><y>", "</y><z>", "</z></coordinates></vertex>\n"]
    columns = list(shortest(mesh.vertices).T)
    if mesh.colors is not None:
        literals[-1:] = ["</z></coordinates><color><r>", *_COLOR_SEPARATORS, "</a></color></vertex>\n"]
        columns += list(_fractions(mesh.colors).T)
    yield write_rows(literals, columns)
    yield b"</vertices>\n<volume"
    yield b">\n" if part.material is None else f" materialid={quoteattr(str(part.material + 1))}>\n".encode()
    yield from _triangles(scene, mesh)
    yield b"</volume>\n</mesh>\n</object>\n"


_COLOR_SEPARATORS = ("</r><g>", "</g><b>", "</b><a>")


def _resolve_colors(scene: Scene, mesh: Mesh, part: Part) -> Mesh:
    """Multiply materials into vertex colors, because AMF takes only the most specific color of a face."""
    if mesh.colors is None:
        return mesh
    palette = np.array([*(material.base_color for material in scene.materials), (1.0, 1.0, 1.0, 1.0)])
    material = np.full(len(mesh.faces), -1) if mesh.face_material is None else mesh.face_material
    material = np.where(material < 0, -1 if part.material is None else part.material, material)
    # a vertex between two materials is split
    keys = mesh.faces.astype(np.int64) * len(palette) + material[:, None] % len(palette)
    distinct, index = np.unique(keys, return_inverse=True)
    vertex, color = distinct // len(palette), distinct % len(palette)
    products = multiply_colors(mesh.colors[vertex], np.rint(palette[color] * 255).astype(np.uint8))
    return Mesh(mesh.vertices[vertex], index.reshape(-1, 3), colors=products, name=mesh.name)


def _triangles(scene: Scene, mesh: Mesh) -> Iterator[memoryview]:
    """Yield the triangles: those with the material of the part first, then those with their own colors."""
    literals = ["<triangle><v1>", "</v1><v2>", "</v2><v3>", "</v3></triangle>\n"]
    own = np.zeros(len(mesh.faces), np.bool_) if mesh.face_material is None else mesh.face_material >= 0
    yield write_rows(literals, list(mesh.faces[~own].T))
    if mesh.face_material is not None and own.any():
        palette = np.array([material.base_color for material in scene.materials])
        colors = _fractions(np.rint(palette[mesh.face_material[own]] * 255).astype(np.uint8))
        literals = ["<triangle><color><r>", *_COLOR_SEPARATORS, "</a></color><v1>", *literals[1:]]
        yield write_rows(literals, [*colors.T, *mesh.faces[own].T])


def _fractions(colors: NDArray[np.uint8]) -> Rows:
    """Return bytes as fractions of six digits, which identify each byte."""
    rounded: Rows = np.round(colors / 255, 6)
    return rounded


def _color(color: tuple[float, ...]) -> str:
    values = zip("rgba", color, strict=True)
    return f"<color>{''.join(f'<{name}>{round(value, 6)}</{name}>' for name, value in values)}</color>"


def _metadata(texts: dict[str, str]) -> bytes:
    """Return <metadata> elements for the texts that are not empty."""
    lines = [
        f"<metadata type={quoteattr(key)}>{escape(text)}</metadata>\n"
        for key, text in ((single_line(key), single_line(text)) for key, text in texts.items())
        if key and text
    ]
    return "".join(lines).encode()


def _instance(number: int, part: Part) -> bytes:
    """Return an <instance> with the angles of a rotation about X, then Y, then Z."""
    m = part.transform
    angles = np.degrees(
        [np.arctan2(m[2, 1], m[2, 2]), np.arcsin(np.clip(-m[2, 0], -1, 1)), np.arctan2(m[1, 0], m[0, 0])]
    )
    if abs(m[2, 0]) > 1 - _RIGID_TOLERANCE:
        # at a right angle about Y, the rotations about X and Z have the same axis
        angles[[0, 2]] = 0.0, np.degrees(np.arctan2(-m[0, 1], m[1, 1]))
    values = zip(("deltax", "deltay", "deltaz", "rx", "ry", "rz"), (*m[:3, 3], *angles), strict=True)
    fields = "".join(f"<{name}>{float(value) + 0.0!r}</{name}>" for name, value in values)
    return (
        f'<instance objectid="{number}">\n'.encode()
        + _metadata({"name": part.name})
        + f"{fields}\n</instance>\n".encode()
    )
