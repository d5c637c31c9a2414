"""Objects of AMF: a mesh per volume, with the colors of vertices and triangles."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import NDArray

from meshhub import Mesh, UnreadableFile, note
from meshhub.model.scene import Color, Float64
from meshhub.toolkit.columns import Irregular
from meshhub.toolkit.geometry import compacted
from meshhub.toolkit.names import single_line
from meshhub.toolkit.safe_xml import OFFSET
from meshhub_amf.colors import WHITE, Palette, color_table
from meshhub_amf.tags import Tags

_PRINTED = "ModelPart"
"""Kind of the volumes that Slic3r and PrusaSlicer print."""

_SUPPORT = "support enforcers or blockers"
_KINDS = {
    "NegativeVolume": "negative volumes (the cut was not applied)",
    "SupportEnforcer": _SUPPORT,
    "SupportBlocker": _SUPPORT,
}
"""Kinds of volumes that are not printed, by the name in the slicer; all others are modifiers."""

_MAX_TEXT_CHARACTERS_COUNT = 10_000
"""Maximum characters of a metadata value; descriptions are shorter."""

Colors = NDArray[np.uint8]


@dataclass(frozen=True)
class Volume:
    """Mesh of a volume, ready to be placed."""

    mesh: int
    name: str
    path: tuple[str, ...]
    material: int | None


def metadata_of(element: Element) -> dict[str, str]:
    """Return the metadata of an element by type; the first of equal types."""
    metadata: dict[str, str] = {}
    for each in element.findall("metadata"):
        text = single_line((each.text or "")[:_MAX_TEXT_CHARACTERS_COUNT])
        metadata.setdefault(single_line(each.get("type", "")), text)
    metadata.pop("", None)
    return metadata


class ObjectReader:
    """Reader of <object> elements.

    Attributes:
        meshes: Meshes of all objects so far.
    """

    def __init__(self, bodies: dict[int, Tags], palette: Palette) -> None:
        """Create a reader.

        Args:
            bodies: Vertices and triangles by the position of their container.
            palette: Materials, which grow while objects are read.
        """
        self.meshes: list[Mesh] = []
        self._bodies = bodies
        self._palette = palette
        self._skipped: Counter[str] = Counter()

    def read(self, element: Element) -> tuple[Volume, ...]:
        """Read an object. Raises UnreadableFile."""
        name = metadata_of(element).get("name", "")
        read: list[Volume] = []
        meshes = element.findall("mesh")
        for mesh in meshes:
            volumes = [volume for volume in mesh.findall("volume") if self._is_printed(volume)]
            own_name = name if len(volumes) == len(meshes) == 1 else ""
            vertices, colors = self._read_vertices(mesh)
            read += [self._read_volume(volume, element, vertices, colors, own_name, name) for volume in volumes]
        return tuple(read)

    def note_losses(self) -> None:
        """Add a note for the volumes that are not printed."""
        if self._skipped:
            listed = ", ".join(f"{kind}: {count}" for kind, count in sorted(self._skipped.items()))
            note("modifiers_skipped", f"volumes of the slicer project that are not printed were left out; {listed}")

    def _is_printed(self, volume: Element) -> bool:
        """Return whether a volume is part of the model; count the others."""
        metadata = metadata_of(volume)
        # older versions write the flag alone
        is_modifier = metadata.get("slic3r.modifier", "").strip() == "1"
        kind = metadata.get("slic3r.volume_type", "" if is_modifier else _PRINTED)
        if kind == _PRINTED:
            return True
        self._skipped[_KINDS.get(kind, "modifiers")] += 1
        return False

    def _body(self, container: Element | None) -> Tags:
        tags = None if container is None else self._bodies.get(int(container.attrib[OFFSET]))
        return Tags(b"") if tags is None else tags

    def _read_vertices(self, mesh: Element) -> tuple[Float64, Colors | None]:
        """Return (n, 3) positions, and (n, 5) colors or None. Raises UnreadableFile."""
        if len(mesh.findall("vertices")) > 1:
            raise UnreadableFile("a mesh has several lists of vertices; export the file again")
        tags = self._body(mesh.find("vertices"))
        owner = tags.elements("vertex", 0)
        try:
            positions, counts = tags.table(owner, "coordinates", "x y z")
        except Irregular:
            raise UnreadableFile("a vertex has a coordinate that is not a number; export the file again") from None
        if (counts != 1).any() or not np.isfinite(positions).all():
            raise UnreadableFile("a vertex does not have three finite coordinates; export the file again")
        if tags.has("edge", "normal"):
            note("curves_left_out", "dropped normals and curved edges: the triangles are read as flat")
        return positions, color_table(tags, owner)

    def _read_volume(
        self, volume: Element, owner: Element, vertices: Float64, colors: Colors | None, name: str, group: str
    ) -> Volume:
        """Read a volume; `name` is used if it has none. Raises UnreadableFile."""
        tags = self._body(volume)
        triangles = tags.elements("triangle", 0)
        try:
            indices, counts = tags.table(triangles, None, "v1 v2 v3")
        except Irregular:
            raise UnreadableFile("a triangle has a vertex that is not a number; export the file again") from None
        if (counts != 1).any() or not (
            (indices >= 0) & (indices < len(vertices)) & (indices == np.rint(indices))
        ).all():
            raise UnreadableFile(f"a triangle does not have three vertices from 0 to {len(vertices) - 1}")
        if tags.has("texmap", "map"):
            note("amf_features_left_out", "dropped texture coordinates: only plain colors are read")
        base = self._palette.resolve(volume, owner)
        own_name = metadata_of(volume).get("name", "") or name
        faces = indices.astype(np.int32)
        mesh = Mesh(vertices, faces, name=own_name)
        mesh, is_base_in_colors = _with_colors(mesh, colors, color_table(tags, triangles), base, self._palette)
        self.meshes.append(mesh)
        if base is not None and is_base_in_colors:
            base = (base[0], WHITE) if base[0] else None
        material = None if base is None else self._palette.add(*base)
        path = (group,) if group and group != own_name else ()
        return Volume(len(self.meshes) - 1, own_name, path, material)


def _with_colors(
    mesh: Mesh,
    vertex_colors: Colors | None,
    triangle_colors: Colors | None,
    base: tuple[str, Color] | None,
    palette: Palette,
) -> tuple[Mesh, bool]:
    """Add the colors of vertices and triangles to a mesh.

    The color of a triangle replaces those of its vertices, which replace the color of the volume.

    Returns:
        The mesh without unused vertices, and whether its vertex colors include the color of the volume.
    """
    vertices, faces = mesh.vertices, mesh.faces
    face_material = None
    own = np.zeros(len(faces), np.bool_)
    if triangle_colors is not None:
        own = triangle_colors[:, 4] > 0
        distinct, index = np.unique(triangle_colors[own, :4], axis=0, return_inverse=True)
        materials = np.array([palette.add("", tuple(color)) for color in (distinct / 255).tolist()], np.int32)
        face_material = np.full(len(faces), -1, np.int32)
        face_material[own] = materials[index.reshape(-1)]
    used = None
    if vertex_colors is not None:
        is_colored = np.zeros(len(vertices), np.bool_)
        is_colored[faces[~own]] = True
        used = vertex_colors if (vertex_colors[is_colored, 4] > 0).any() else None
    if used is None:
        return compacted(Mesh(vertices, faces, face_material=face_material, name=mesh.name)), False
    default = np.rint(np.array(base[1] if base else WHITE) * 255)
    colors = np.where(used[:, 4:] > 0, used[:, :4], default.astype(np.uint8))
    corners = faces[own].ravel()
    split = faces.copy()
    split[own] = len(vertices) + np.arange(len(corners), dtype=np.int32).reshape(-1, 3)
    result = Mesh(
        np.concatenate([vertices, vertices[corners]]),
        split,
        colors=np.concatenate([colors, np.full((len(corners), 4), 255, np.uint8)]),
        face_material=face_material,
        name=mesh.name,
    )
    return compacted(result), True
